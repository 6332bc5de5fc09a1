"""Where the CPU time of a row of the table goes: ``python -m benchmarks.speed.profile 2-3 6``.

One public call of the size of the row, in a process of its own. Whatever CPU time has passed since
the last look at the stack belongs to the part of the code that the stack shows: interpreted and
compiled code are slowed alike, by next to nothing, where a tracing profiler slows the former. Of a
first call told is what takes it longer than the second. Shares are kept, and the page on
performance tells them; without names all rows are run, some minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.speed import page
from benchmarks.speed.measuring import ROOT, environment, source, today

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

OUT = page.SHARES
TICK = 0.002
"""CPU seconds between two looks."""
REST = "the rest"
FIRST = {
    "importing": r"_bootstrap>:_find_and_load\n",
    "compiling and loading loops": r"numba/core/dispatcher\.py:|titrant/compiled/once\.py:",
}
EVALUATING = FIRST | {
    "reading the file": r"titrant/cli/inputs\.py:",
    "surveying the log": r"evaluation/survey\.py:",
    "growing forests and finding landmarks": r"outcome/forest\.py:fit_extend\n",
    "fitting laws of the doses": r"models/masses\.py:fitted_|fitting\.py:fitted_propensity\n",
    "fitting ridges": r"outcome/crossfit\.py:fit\n",
    "asking models": r"models/nuisance\.py:(?!of\n)",
    "evidence for the trust rules": r"inference/trust/|evaluation/model_checks\.py:",
    "the interval": r"inference/rbc\.py:|models/jackknife\.py:",
    "the bandwidth and the estimate at it": r"titrant/bandwidth/|passes\.py:point_statistics\n",
}
LEARNING = FIRST | {
    "the honest value": r"titrant/evaluation/",
    "the search of the classes": r"learn/contenders\.py:",
    "outcome models and their curves": r"titrant/outcome/|learn/tables\.py:",
}
"""Part of the code: what a line `file:function` of its stacks looks like; the first that fits."""


class Watch:
    """CPU seconds by part of the code, while it is entered."""

    def __init__(self, parts: dict[str, str]) -> None:
        self.parts = {name: re.compile(pattern) for name, pattern in parts.items()}
        self.seconds: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Begin to look."""
        self.before = time.process_time()
        signal.signal(signal.SIGPROF, self.look)
        signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
        return self

    def __exit__(self, *_: object) -> None:
        """Look for the last time."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        self.look(0, None)

    def look(self, _: int, frame: FrameType | None) -> None:
        """Give what has passed since the last look to the part that runs."""
        now = time.process_time()
        self.seconds[self.part(frame)] += now - self.before
        self.before = now

    def part(self, frame: FrameType | None) -> str:
        """Return the part that a stack belongs to."""
        lines = []
        while frame is not None:
            lines.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}\n")
            frame = frame.f_back
        stack = "".join(lines)
        return next((name for name, one in self.parts.items() if one.search(stack)), REST)


def watched(call: Callable[[], Any], parts: dict[str, str]) -> Counter[str]:
    """Return the CPU seconds of a call by part."""
    with Watch(parts) as watch:
        call()
    return watch.seconds


def evaluation(n: int, p: int, *, known: bool, warm: int = 2_000, **how: Any) -> Counter[str]:
    """Return the parts of rows 1 to 3."""
    import titrant as tt  # noqa: PLC0415 - a first call is to import it
    from benchmarks.speed.draws import people, rule  # noqa: PLC0415

    how |= {"allow_untrusted": True}
    tt.evaluate(people(warm, p, known=known), rule(p), **how)
    log, policy = people(n, p, known=known), rule(p)
    return watched(lambda: tt.evaluate(log, policy, **how), EVALUATING)


def self_normalized(n: int) -> Counter[str]:
    """Return the parts of row 3."""
    from titrant import SelfNormalized  # noqa: PLC0415

    return evaluation(n, 3, known=True, warm=n, estimator=SelfNormalized(clip=0.1))


def first(call: str, n: int) -> Counter[str]:
    """Return the parts of what a first call takes beyond the second, row 4."""
    from benchmarks.speed.draws import people  # noqa: PLC0415
    from benchmarks.speed.job import CALLS  # noqa: PLC0415

    work = CALLS[call](people(n, 3, known=True))
    parts = LEARNING if call == "learn" else EVALUATING
    found = watched(work, parts)
    found.subtract(watched(work, parts))
    return +found


def command() -> Counter[str]:
    """Return the parts of row 6, propensity fitted: the command in this interpreter."""
    from benchmarks.speed.starting import COLUMNS, POLICY  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fitted.csv")
        write = "from benchmarks.speed.starting import Path, write; "
        write += f"write(Path({str(path)!r}), 5_000, 3, known=False)"
        subprocess.run([sys.executable, "-c", write], check=True)  # noqa: S603
        sys.argv = ["titrant", "evaluate", str(path), *COLUMNS, *POLICY]

        def work() -> None:
            try:
                runpy.run_module("titrant", run_name="__main__")
            except SystemExit as end:
                if end.code:
                    raise

        return watched(work, EVALUATING)


def learning(n: int) -> Counter[str]:
    """Return the parts of row 10."""
    import titrant as tt  # noqa: PLC0415
    from benchmarks.speed.draws import people  # noqa: PLC0415

    tt.PolicyLearner().fit(people(600, 5, known=False))
    log = people(n, 5, known=False)
    return watched(lambda: tt.PolicyLearner().fit(log), LEARNING)


ROWS: dict[str, Callable[[], Counter[str]]] = {
    "1": lambda: evaluation(1_000_000, 3, known=True, warm=1_000_000),
    "2-3": lambda: evaluation(100_000, 3, known=False),
    "2-60": lambda: evaluation(100_000, 60, known=False),
    "3": lambda: self_normalized(1_000_000),
    "4-evaluate-5000": lambda: first("evaluate", 5_000),
    "4-evaluate-40000": lambda: first("evaluate", 40_000),
    "4-evaluate-1000000": lambda: first("evaluate", 1_000_000),
    "4-learn-5000": lambda: first("learn", 5_000),
    "6": command,
    "10": lambda: learning(10_000),
}
"""By the name of the step; those of files and clusters take long, or have other processes."""


def alone(name: str) -> dict[str, float]:
    """Return the shares of CPU time of a row, measured in a process of its own."""
    work = "import json, sys; from benchmarks.speed import profile; "
    work += "found = profile.ROWS[sys.argv[1]](); print(); print(json.dumps(found))"
    with tempfile.TemporaryDirectory() as empty:
        cold = {"NUMBA_CACHE_DIR": empty} if name.startswith("4-") else {}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", work, name],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(**cold),
        )
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    whole = sum(seconds.values())
    order = sorted(seconds, key=lambda part: -seconds[part])
    return {part: seconds[part] / whole for part in order}


def main() -> None:
    """Measure the rows named, or all, print their shares, and write them and the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ROWS)}")
    names = parser.parse_args().names or list(ROWS)
    if unknown := [name for name in names if name not in ROWS]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    kept = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in names:
        facts = {"source": source(), "date": today()}
        kept[name] = facts | {"shares": alone(name)}
        print(name)
        for part, share in kept[name]["shares"].items():
            print(f"  {share:6.1%}  {part}", flush=True)
        OUT.write_text(json.dumps({n: kept[n] for n in ROWS if n in kept}, indent=1) + "\n")
    page.write(json.loads(page.RESULTS.read_text()))


if __name__ == "__main__":
    main()
