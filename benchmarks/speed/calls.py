"""All default calls, from Python and from the command line, by rows and contexts."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import titrant as tt
from benchmarks.speed.contestants import boosted_rule, boosted_value
from benchmarks.speed.draws import people, rule
from benchmarks.speed.measuring import IMPORT_NUMPY, Line, commands_in_turn, told
from benchmarks.speed.starting import COLUMNS, TITRANT, write

if TYPE_CHECKING:
    from collections.abc import Callable

FEW = 1_000
DOSES = (-0.5, 0.0, 0.5, 1.0, 1.5)
LEARNED = {3: 100_000, 20: 10_000, 60: 1_000}
"""The most rows that are learned from, by contexts: more would take longer than all the rest."""
MOST = {3: 1_000_000, 20: 100_000, 60: 100_000}
SIZES = {"1e3": 1_000, "1e4": 10_000, "1e5": 100_000, "1e6": 1_000_000}
IN_PYTHON = {f"calls-{size}-{p}": (n, p) for size, n in SIZES.items() for p in MOST if n <= MOST[p]}
"""Rows and contexts of the calls from Python, by the name of the step."""
COMMANDS = {f"commands-{size}": n for size, n in SIZES.items() if n <= LEARNED[3]}
"""Rows of the file that commands read."""
TREES, NUMPY = "× boosted trees, doubly robust, five folds", "× import numpy"


def works(log: tt.LoggedData, known: tt.LoggedData) -> dict[str, Callable[[], Any]]:
    """Return the calls on a log by name; the first is what the others are told in."""
    n, p = log.context.shape
    policy, allow = rule(p), {"allow_untrusted": True}
    others: dict[str, Any] = {"rule": policy, "0.3": 0.3, "status quo": tt.StatusQuo()}
    calls: dict[str, Callable[[], Any]] = {
        "boosted trees": lambda: boosted_value(log, policy(log.context)),
        "evaluate": lambda: tt.evaluate(log, policy, **allow),
        "evaluate, propensity known": lambda: tt.evaluate(known, policy, **allow),
        "compare, three policies": lambda: tt.compare(log, others, **allow),
        "curve, five doses": lambda: tt.curve(log, tt.Constant, DOSES, **allow),
        "check": lambda: tt.check(log, policy),
    }
    if n <= LEARNED[p]:
        kept: list[tt.PolicyLearner] = []
        calls["boosted rule"] = lambda: boosted_rule(log)
        calls["learn"] = lambda: kept.append(tt.PolicyLearner().fit(log))
        calls["recommend"] = lambda: kept[-1].recommend(log.context)
    return calls


def in_python(n: int, p: int) -> list[Line]:
    """Return the CPU seconds of each call, once, after all ran on few rows."""
    logs = {m: tuple(people(m, p, known=known) for known in (False, True)) for m in (FEW, n)}
    for call in works(*logs[FEW]).values():
        call()
    seconds = {}
    for name, call in works(*logs[n]).items():
        begun = time.process_time()
        call()
        seconds[name] = time.process_time() - begun
        print(f"      {name}: {seconds[name]:.2f} s", file=sys.stderr, flush=True)
    trees = seconds.pop("boosted trees")
    return [
        told(f"{name} | {p} contexts", s / trees, TREES, call=name, p=p, n=n, seconds=s, peer=trees)
        for name, s in seconds.items()
    ]


def commands(n: int) -> list[Line]:
    """Return the CPU seconds of each command on a file of three contexts, beside numpy's import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("log.csv", "log.parquet"):
            write(folder / file, n, 3, known=False)
        policies = ("--policy", "constant:0.3", "--policy", "status-quo")
        one, allow = policies[:2], "--allow-untrusted"
        asked = {
            "evaluate": ("evaluate", "log.csv", *COLUMNS, *one, allow),
            "evaluate, Parquet in parts": (
                *("evaluate", "log.parquet", *COLUMNS, *one, allow, "--in-parts"),
            ),
            "compare": ("compare", "log.csv", *COLUMNS, *policies, allow),
            "curve": ("curve", "log.csv", *COLUMNS, "--at=-0.5:1.5:0.5", allow),
            "check": ("check", "log.csv", *COLUMNS, *one),
        }
        if n <= LEARNED[20]:
            asked["learn"] = ("learn", "log.csv", *COLUMNS, "-o", "policy.json")
            asked["recommend"] = ("recommend", "policy.json", "log.csv", "-o", "doses.csv")
        words = [(*TITRANT, *words) for words in asked.values()]
        numpy, *seconds = commands_in_turn([IMPORT_NUMPY, *words], 1, folder)
    return [
        told(f"titrant {name}", s / numpy, NUMPY, call=f"titrant {name}", n=n, seconds=s)
        for name, s in zip(asked, seconds, strict=True)
    ]
