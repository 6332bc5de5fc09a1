"""What changes of constants do to errors and intervals: ratios to the default, and their errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.constants.study import place_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Array = np.ndarray
    Record = dict[str, Any]

HEAD = ("constant", "value", "tried", "RMSE", "coverage", "width")
SAME = "the same"
CLEAR = 2.0
"""Errors by which a ratio must be off one to be seen."""


def known_records(path: Path) -> list[Record]:
    """Return the records of logs that did not fail."""
    return [r for r in records_in(path) if "failed" not in r]


def told(records: Sequence[Record]) -> str:
    errors, covered, _ = numbers(records, "default")
    designs = len({r["design"] for r in records})
    share = np.mean([c.mean() for c in covered])
    return (
        f"{len(records)} logs of {designs} {'design' if designs == 1 else 'designs'}, "
        f"{sum(map(len, errors))} estimates; the default "
        f"covers {share:.3f} ± {clustered(covered):.3f}"
    )


def decides(records: Sequence[Record], constants: Mapping[str, tuple[float, float]]) -> str:
    """Return how many of the changes move the RMSE by more than chance."""
    found = [
        ratio(records, f"{name}={value:g}")
        for name, values in constants.items()
        for value in values
    ]
    return seen([one for one in found if one is not None], "RMSE")


def seen(found: Sequence[tuple[float, float]], of: str) -> str:
    """Return how many ratios are off one by more than two errors, and what an error hides."""
    if not found:
        return f"No change moves the {of}."
    each, moved = np.array(found), sum(map(clear, found))
    hidden = CLEAR * float(np.median(each[:, 1]))
    return (
        f"Changes that move the {of}: {len(each)}; by more than two of their errors: {moved},\n"
        f"where chance alone would show {0.05 * len(each):.1f}. For half of them two errors are\n"
        f"{percent(hidden)} or more, and smaller effects stay hidden."
    )


def clear(found: tuple[float, float] | None) -> bool:
    """Whether a ratio is off one by more than two of its errors."""
    return found is not None and abs(found[0] - 1.0) > CLEAR * found[1]


def percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def table(records: Sequence[Record], constants: Mapping[str, tuple[float, float]]) -> list[str]:
    rows = [HEAD, ("---",) * len(HEAD)]
    for name, values in constants.items():
        now = f"{place_of(name).value:g}"
        changes = [(f"{value:g}", effect(records, f"{name}={value:g}")) for value in values]
        rows += [(f"`{name}`", now, tried, *found) for tried, found in changes]
    return ["| " + " | ".join(row) + " |" for row in rows]


def effect(records: Sequence[Record], change: str) -> tuple[str, str, str]:
    """Return the ratio of RMSEs, the coverage and the ratio of widths, with their errors."""
    if unmoved(records, change):
        return SAME, SAME, SAME
    before, after = numbers(records, "default"), numbers(records, change)
    moved, spread = ratio(records, change) or (1.0, 0.0)
    covered = np.mean([c.mean() for c in after[1]])
    widths = np.array([np.log(w2 / w1).mean() for w1, w2 in zip(before[2], after[2], strict=True)])
    return (
        f"{moved:.3f} ± {spread:.3f}",
        f"{covered:.3f} ± {clustered(after[1]):.3f}",
        f"{np.exp(widths.mean()):.3f}",
    )


def unmoved(records: Sequence[Record], change: str, parts: tuple[int, ...] = (0, 2)) -> bool:
    """Whether a change leaves all errors (part 0) and widths (part 2) as they are."""
    before, after = numbers(records, "default"), numbers(records, change)
    return all(
        np.array_equal(a, b) for i in parts for a, b in zip(before[i], after[i], strict=True)
    )


def ratio(records: Sequence[Record], change: str) -> tuple[float, float] | None:
    """Return the ratio of RMSEs with its paired error; None where no value moved."""
    if unmoved(records, change, (0,)):
        return None
    units = unit_errors(records, change)
    a, b = (squares(numbers(records, by)[0], units) for by in ("default", change))
    found = float(np.sqrt(b.mean() / a.mean()))
    spread = (b / b.mean() - a / a.mean()).std() / np.sqrt(len(a)) * found / 2
    return found, float(spread)


def numbers(records: Sequence[Record], change: str) -> tuple[list[Array], list[Array], list[Array]]:
    """Return errors, coverage and widths of the policies of each log."""
    errors, covered, widths = [], [], []
    for record in records:
        truth = np.array(record["truth"])
        value, low, high = np.array(record["found"][change]).T
        errors.append(value - truth)
        covered.append(((low <= truth) & (truth <= high)).astype(float))
        widths.append(high - low)
    return errors, covered, widths


def unit_errors(records: Sequence[Record], change: str) -> list[float]:
    """Return the RMSE on the design of each log, of the default and the change together.

    In these units no design outweighs the others. In units of the default's own RMSE, of a few
    logs, what is random in it would count against every change.
    """
    by_design: dict[str, list[Array]] = {}
    for by in ("default", change):
        for record, error in zip(records, numbers(records, by)[0], strict=True):
            by_design.setdefault(record["design"], []).append(error)
    rmse = {name: float(np.sqrt(np.mean(np.square(e)))) for name, e in by_design.items()}
    return [rmse[record["design"]] for record in records]


def squares(errors: Sequence[Array], units: Sequence[float]) -> Array:
    """Return the mean squared error of each log, in its unit."""
    return np.array([np.mean((e / unit) ** 2) for e, unit in zip(errors, units, strict=True)])


def clustered(covered: Sequence[Array]) -> float:
    """Return the standard error of the mean coverage, the policies of a log one draw."""
    each = np.array([c.mean() for c in covered])
    return float(each.std() / np.sqrt(len(each)))
