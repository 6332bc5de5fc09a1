"""One draw of a problem: what is learned with each constant of the learner as it is, or changed.

All rules of a draw are learned from one log and judged by the same people. What a change does not
touch is not done again: those in `SEARCHED` take the default's curves, those in `CHOOSING` also
what its classes have learned.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from benchmarks.confounding.records import Task, digits
from benchmarks.constants.study import with_constant
from benchmarks.rules.measure import RESULTS, Competition, Draw
from benchmarks.rules.problems import PROBLEMS
from titrant.learn.choice import ClassChoice
from titrant.learn.contenders import contender

RECORDS = RESULTS / "constants_learner.jsonl.gz"
SEED = 2053
DRAWS = 6
NAMES = (
    "linear, p = 5",
    "thresholds",
    "sine",
    "noisy, n = 200",
    "one dose for all",
    "price and purchase",
)
"""Of `benchmarks.rules`, all of them seen while the learner was put together."""

FOLDED: dict[str, tuple[float, float]] = {
    "learn.stacked.StackedDR.folds": (3, 8),
    "learn.tables.DOSES": (41, 161),
}
"""Constants of the curves: the smaller and the larger value tried."""
SEARCHED: dict[str, tuple[float, float]] = {
    "learn.candidates.ROUGHLY": (1e-9, 1e-5),
    "learn.candidates.BANDWIDTH": (0.4, 1.6),
    "learn.candidates.SCORE_FLOOR": (0.0125, 0.2),
    "learn.candidates.CANDIDATE_FLOOR": (0.05, 0.8),
    "learn.candidates.TEMPERATURE": (0.25, 1.0),
    "learn.candidates.WORSE": (0.0, 1.0),
}
"""Those of what each class learns from the same curves."""
CHOOSING: dict[str, tuple[float, float]] = {"learn.choice.WITHIN": (0.0, 2.0)}
"""Those of the choice among the same classes."""
LEARNER = {**FOLDED, **SEARCHED, **CHOOSING}


def plan() -> list[Task]:
    """Return every draw of the plan; any stop leaves a balanced record."""
    return [Task(name, PROBLEMS[name].n, draw, SEED) for draw in range(DRAWS) for name in NAMES]


def study(task: Task) -> dict[str, Any]:
    """Return the excess risk, the class and the CPU s of the default and of each change."""
    import titrant as tt  # noqa: PLC0415

    warm()
    draw = Draw.of(task)
    log = tt.LoggedData(draw.x, draw.t, draw.y)
    default = Competition.on(log)
    found = {"default": judged(draw, default)}
    for name, values in LEARNER.items():
        for value in values:
            with with_constant(name, value):
                again = Competition.on(log) if name in FOLDED else repeated(name, default)
                found[f"{name}={value:g}"] = judged(draw, again)
    return {"found": found}


@cache
def warm() -> None:
    """Learn once, so that no CPU time of a record is that of imports."""
    import titrant as tt  # noqa: PLC0415

    draw = Draw.of(Task("noisy, n = 200", 200, 0, SEED))
    judged(draw, Competition.on(tt.LoggedData(draw.x, draw.t, draw.y)))


def repeated(name: str, default: Competition) -> Competition:
    """Return what a changed constant makes of the same curves or, if it only chooses, classes."""
    began = time.process_time()
    arena, found = default.arena, default.found
    if name in SEARCHED:
        found = {kind: contender(kind, arena) for kind in found}
    choice = ClassChoice.of(list(found.values()), arena)
    models, rules = default.cpu
    spent = digits(time.process_time() - began) if name in SEARCHED else rules
    return Competition(arena, found, choice, [models, spent])


def judged(draw: Draw, competition: Competition) -> dict[str, Any]:
    """Return the excess risk of the chosen rule, its class, and the CPU s that it took."""
    began = time.process_time()
    choice = competition.choice
    learned = list(competition.found.values())[choice.place].learned(competition.arena)
    cpu = sum(competition.cpu) + time.process_time() - began
    excess = draw.excess(learned.policy(draw.new))
    return {"excess": digits(excess), "chosen": choice.chosen, "cpu": digits(cpu)}
