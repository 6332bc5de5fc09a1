"""Run studies: ``python -m titrant.studies figure-1 --quick``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from titrant.studies import STUDIES

if TYPE_CHECKING:
    from collections.abc import Callable


def main(arguments: list[str] | None = None) -> int:
    """Run the studies named, write their files, print their tables; 1 if a number is off."""
    given = _parser().parse_args(arguments)
    names = list(STUDIES) if "all" in given.names else given.names
    everything_well = True
    for name in names:
        result = STUDIES[name].run(
            quick=given.quick,
            replications=given.replications,
            seed=given.seed,
            workers=given.workers,
            folder=given.out,
            data=given.data,
            simulated=given.simulated,
            fresh=given.fresh,
            progress=_progress(name) if sys.stderr.isatty() else None,
        )
        sys.stdout.write(result.as_text() + "\n\n")
        everything_well &= result.ok
    return 0 if everything_well else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m titrant.studies", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*STUDIES, "all"], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="a reduced run")
    parser.add_argument("--replications", type=int, help="how often; each study has its own number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--out", default="results", help="folder of NAME.json, NAME.svg, NAME.png")
    parser.add_argument("--data", help="the warfarin table")
    parser.add_argument("--simulated", action="store_true", help="made-up patients in its place")
    parser.add_argument("--fresh", action="store_true", help="forget an interrupted run")
    return parser


def _progress(name: str) -> Callable[[int, int], None]:
    def show(done: int, total: int) -> None:
        sys.stderr.write(f"\r{name} {done:,} of {total:,}" + ("\n" if done == total else ""))

    return show


if __name__ == "__main__":
    sys.exit(main())
