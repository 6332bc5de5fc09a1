"""Public calls before a commit's changes and now: ``python -m benchmarks.speed.since COMMIT``.

Each call runs in two processes, one on the commit's sources and one on those here, which take turns
once their loops are compiled; told is the least CPU time of each. Some minutes; every call is
written when it was measured, and the page on performance at the end. ``--only`` takes words of the
names of calls and measures these anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from scripts.sources import tree_of

from benchmarks.speed import page
from benchmarks.speed.measuring import (
    ROOT,
    cpu,
    environment,
    least_in_turn,
    machine,
    source,
    today,
)
from benchmarks.speed.since_calls import CALLS
from benchmarks.speed.starting import STARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OUT = page.SINCE
FEWEST, MOST, SECONDS = 5, 50, 3.0
"""Turns: as many as take so long, within these bounds."""


class NotKnownError(Exception):
    """What is asked for cannot be had from a tree's sources."""


@contextmanager
def called(name: str, tree: Path) -> Iterator[Callable[[], float]]:
    """Give what calls once more, in a process on a tree's sources, and returns the CPU seconds."""
    command = [sys.executable, "-m", "benchmarks.speed.since_calls", name]
    pipe: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    silent = {"stderr": subprocess.DEVNULL, "cwd": ROOT, "env": environment(tree)}
    with subprocess.Popen(command, **pipe, **silent) as process:  # noqa: S603
        asked, told = process.stdin, process.stdout

        def seconds() -> float:
            print(file=asked, flush=True)
            return float(told.readline())

        try:
            cannot = json.loads(told.readline())["cannot"]
            if cannot:
                raise NotKnownError(cannot)
            yield seconds
        finally:
            asked.close()


@contextmanager
def started(name: str, tree: Path) -> Iterator[Callable[[], float]]:
    """Give what starts a command anew, and returns its CPU seconds."""
    yield partial(cpu, STARTS[name], ROOT, tree)


def measured(name: str, before: Path, now: Path) -> dict[str, Any]:
    """Return the least CPU seconds of a call by both trees, or what a tree says to it."""
    how = started if name in STARTS else called
    with ExitStack() as stack:
        clocks = []
        for which, tree in (("before", before), ("now", now)):
            try:
                clocks.append(stack.enter_context(how(name, tree)))
            except NotKnownError as reason:
                return {"cannot": which, "reason": str(reason)}
        first = sum(least_in_turn(clocks, 1))  # of a command: it writes bytecode
        turns = min(MOST, max(FEWEST, int(SECONDS / first)))
        seconds = least_in_turn(clocks, turns)
    return {"before": seconds[0], "now": seconds[1], "turns": turns}


def shown(name: str, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    if "cannot" in found:
        return f"{name}: cannot be asked {found['cannot']}: {found['reason']}"
    before, now = found["before"], found["now"]
    return f"{before:9.4f} s {now:9.4f} s {now / before:6.2f}  {name}"


def main(arguments: list[str]) -> None:
    """Measure, print the table, and write it with the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("commit")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORDS")
    given = parser.parse_args(arguments)
    kept = json.loads(OUT.read_text()) if OUT.exists() else {}
    with tree_of(given.commit) as before:
        of = {"commit": given.commit, "source": source(before)}
        calls = kept["calls"] if kept.get("before") == of else {}
        print("   before         now  ratio  call")
        for name in (*CALLS, *STARTS):
            if any(words in name for words in given.only):
                facts = {"source": source(), "date": today(), "load": os.getloadavg()[0]}
                calls[name] = measured(name, before, ROOT) | facts
                print(shown(name, calls[name]), flush=True)
                order = {other: calls[other] for other in (*CALLS, *STARTS) if other in calls}
                command = f"python -m benchmarks.speed.since {given.commit}"
                table = {"command": command, "machine": machine(), "before": of, "calls": order}
                OUT.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    page.write(json.loads(page.RESULTS.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
