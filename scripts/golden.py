"""Golden numbers: forty fixed cases, held against what they were.

    python scripts/golden.py --since main                    # exit code 1 where a number moved
    python scripts/golden.py --compare scripts/golden.json   # against a file of any machine
    python scripts/golden.py --write scripts/golden.json     # after a change that was meant

`--since` asks today's cases of the sources of a commit, then of those here, on this machine: its
processor rounds both alike, to the last bit. Another machine than the one that wrote a file rounds
otherwise, which shows where numbers nearly cancel: `--compare` leaves room for that in two places
(`GAPS`, `NO_ERROR`) and says so. Values, errors and intervals are held to 1e-10 by both.
`--only NAME …` computes some of the cases. Under two CPU minutes a run, half of them to compile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from golden_cases import CASES
from golden_logs import MANY, loops_from
from sources import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from golden_cases import Numbers

RELATIVE, ABSOLUTE = 1e-10, 1e-12
"""How far a number may be from what it was: rounding, but no other method."""
GAPS = ("bandwidth_sensitivity", "smoothing_gap", "outcome_model_gap")
"""Checks that are the difference of two estimates in units of its SE."""
OF_GAPS = 1e-9
"""How far they may be from what they were on another machine: estimates of up to a thousand SEs are
subtracted, which machines round to 1e-12."""
NO_ERROR = 1e-7
"""An SE on a path under this share of its value is what rounding leaves of 0: the root of the
difference of numbers as large as the value's square, which are rounded to 1e-16."""
OPENLY = (
    f"Between machines checks that are gaps in SEs may differ by {OF_GAPS:g}, and SEs on a path "
    f"under {NO_ERROR:g} of their value count as 0."
)
SHOWN = 8
"""Numbers told of each case that differs, the farthest first."""


def computed(names: Iterable[str]) -> Iterator[tuple[str, Numbers]]:
    """Give the numbers of each case that these sources can, and say on the way how long it took."""
    for name in names:
        begun = time.process_time()
        try:
            with loops_from(MANY):
                numbers = CASES[name]()
        except Exception as reason:  # noqa: BLE001  (a case may ask for what is not there yet)
            print(f"cannot be computed: {name}: {reason!r}", flush=True)
            numbers = {}
        seconds = time.process_time() - begun
        print(f"{seconds:6.1f} s of CPU  {len(numbers):4} numbers  {name}", flush=True)
        yield name, numbers


def differences(
    found: Numbers, known: Numbers, relative: float = RELATIVE, *, between_machines: bool = False
) -> dict[str, tuple[float, str]]:
    """Return the numbers that differ: how far, in units of what they were, and in words."""
    told: dict[str, tuple[float, str]] = {}
    for name in [*known, *(name for name in found if name not in known)]:
        if name not in found or name not in known:
            told[name] = float("inf"), "is gone" if name in known else "is new"
            continue
        new, old = found[name], known[name]
        if new is None or old is None:
            if new is not old:
                told[name] = float("inf"), f"{old} → {new}"
        elif between_machines and is_rounding(name, new, old, known):
            continue
        elif abs(new - old) > max(ABSOLUTE, relative * abs(old)):
            distance = abs(new - old) / abs(old) if old else float("inf")
            told[name] = distance, f"{old!r} → {new!r}, relative {distance:.1e}"
    return told


def is_rounding(name: str, new: float, old: float, known: Numbers) -> bool:
    """Return whether two machines may differ so where numbers nearly cancel."""
    if name.endswith(GAPS):
        return abs(new - old) <= OF_GAPS
    value = known.get(name.replace("se.", "values.")) if "se." in name else None
    return value is not None and max(new, old) <= NO_ERROR * abs(value)


def report(name: str, told: Mapping[str, tuple[float, str]]) -> str:
    """Return what moved in a case, the farthest first."""
    order = sorted(told, key=lambda number: -told[number][0])
    lines = [f"{name}: {len(told)} numbers differ", *(f"    {n}: {told[n][1]}" for n in order)]
    more = len(told) - SHOWN
    return "\n".join(lines[: 1 + SHOWN] + ([f"    and {more} more"] if more > 0 else []))


def read(path: Path) -> dict[str, Numbers]:
    """Return the cases of a file."""
    cases: dict[str, Numbers] = json.loads(path.read_text("utf-8"))
    return cases


def write(path: Path, cases: Mapping[str, Numbers]) -> None:
    """Write cases a line each, every number with all its digits."""
    lines = [f"{json.dumps(name)}: {json.dumps(cases[name], allow_nan=False)}" for name in cases]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def compare(
    known: Mapping[str, Numbers],
    cases: Iterable[tuple[str, Numbers]],
    relative: float,
    *,
    between_machines: bool,
) -> int:
    """Print every case that differs from what is known; return how many do."""
    moved = 0
    for name, numbers in cases:
        before = known.get(name, {})
        told = differences(numbers, before, relative, between_machines=between_machines)
        moved += bool(told or not numbers)
        if not (numbers and before):
            print(f"{name}: nothing {'to compare it with' if numbers else 'is computed'}")
        elif told:
            print(report(name, told), flush=True)
    if between_machines:
        print(OPENLY)
    print(f"{moved} cases differ by more than {relative:g}." if moved else "No number differs.")
    return moved


def computed_since(revision: str, names: Iterable[str]) -> dict[str, Numbers]:
    """Return what the sources of a commit give to today's cases, in a work tree of a moment."""
    with TemporaryDirectory() as folder, tree_of(revision) as tree:
        path = Path(folder) / "cases.json"
        subprocess.run(  # noqa: S603  (these very cases)
            [sys.executable, __file__, "--write", path, "--only", *names],
            env=os.environ | {"PYTHONPATH": str(tree / "src")},
            check=False,
        )
        if not path.exists():
            sys.exit(f"Today's cases cannot be asked of the sources of {revision}.")
        return read(path)


def main(arguments: list[str]) -> int:
    """Write or compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--since", metavar="COMMIT")
    what.add_argument("--compare", type=Path, metavar="FILE.json")
    what.add_argument("--write", type=Path, metavar="FILE.json")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--relative", type=float, default=RELATIVE, metavar="TOLERANCE")
    given = parser.parse_args(arguments)
    if given.write is not None:
        found = dict(computed(given.only))
        write(given.write, found)
        return int(not all(found.values()))
    by_file = given.compare is not None
    known = read(given.compare) if by_file else computed_since(given.since, given.only)
    cases = computed(given.only)
    return int(compare(known, cases, given.relative, between_machines=by_file) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
