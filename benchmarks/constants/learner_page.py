"""The table of the learner's constants, from the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.constants import learner
from benchmarks.constants.effects import SAME, clear, known_records, seen
from benchmarks.constants.study import place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.constants.effects import Record

HEAD = ("constant", "value", "tried", "excess risk", "another class", "CPU")


def learners() -> str:
    """Return what is said of the learner's constants, and their table."""
    records = known_records(learner.RECORDS)
    changes = [(k, f"{v:g}") for k, values in learner.LEARNER.items() for v in values]
    rows = [HEAD, ("---",) * len(HEAD)]
    for name, tried in changes:
        rows.append(
            (f"`{name}`", f"{place_of(name).value:g}", tried, *learned(records, name, tried))
        )
    ratios = [excess_ratio(records, f"{name}={tried}") for name, tried in changes]
    problems = list(dict.fromkeys(r["design"] for r in records))
    return "\n".join(
        [
            "Each constant is changed alone, and `PolicyLearner(honest=False)` learns again from",
            "the same log (`python -m benchmarks.constants --learner`):",
            f"{len(records)} logs of {len(problems)} problems of [learning](learning.md) that were",
            f"seen before ({', '.join(f'*{name}*' for name in problems)}). The excess risk",
            "is the true loss of the learned rule over that of the best doses, as a ratio to the",
            "default's, each problem in units of what both lose there on average; ± is its paired",
            "Monte-Carlo standard error. *Another class* is the share of logs where the",
            "change chooses another class. CPU is that of the whole call, a median of ratios; what",
            "a change does not touch counts as it does for the default.",
            "",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
            seen([one for one in ratios if one is not None], "excess risk"),
            "",
            "Changes by more than two errors, on each problem:",
            "",
            *by_problem(records, [f"{name}={tried}" for name, tried in changes]),
        ]
    )


def by_problem(records: Sequence[Record], changes: Sequence[str]) -> list[str]:
    """Return the ratios of excess risks on each problem, of changes that are clear over all."""
    problems = list(dict.fromkeys(r["design"] for r in records))
    rows = [("change", *problems), ("---",) * (len(problems) + 1)]
    for change in changes:
        if clear(excess_ratio(records, change)):
            each = [[r for r in records if r["design"] == name] for name in problems]
            rows.append((f"`{change}`", *(ratio_in(excess_ratio(one, change)) for one in each)))
    return ["| " + " | ".join(row) + " |" for row in rows]


def ratio_in(found: tuple[float, float] | None) -> str:
    return SAME if found is None else f"{found[0]:.3f} ± {found[1]:.3f}"


def learned(records: Sequence[Record], name: str, tried: str) -> tuple[str, str, str]:
    """Return the ratio of excess risks with its error, the share of other classes, and of CPU."""
    change = f"{name}={tried}"
    pairs = [(r["found"]["default"], r["found"][change]) for r in records]
    other = np.mean([a["chosen"] != b["chosen"] for a, b in pairs])
    cpu = np.median([b["cpu"] / a["cpu"] for a, b in pairs])
    return ratio_in(excess_ratio(records, change)), f"{other:.2f}", f"{cpu:.2f}"


def excess_ratio(records: Sequence[Record], change: str) -> tuple[float, float] | None:
    """Return the ratio of excess risks with its paired error; None where none moved."""
    a, b = (np.array([r["found"][by]["excess"] for r in records]) for by in ("default", change))
    if np.array_equal(a, b):
        return None
    problem = np.array([r["design"] for r in records])
    # Of both together: in units of the default's own mean, of a few logs, what is random in it
    # would count against every change.
    units = {name: (a + b)[problem == name].mean() / 2 for name in np.unique(problem)}
    unit = np.array([units[name] for name in problem])
    found = float((b / unit).mean() / (a / unit).mean())
    off = (b - found * a) / unit / (a / unit).mean()
    return found, float(off.std() / np.sqrt(len(a)))
