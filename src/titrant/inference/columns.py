"""What the columns of a log look like: codes among the numbers, contexts that say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from titrant.inference import rules
from titrant.scaling import Held, robust_sd, spread_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.inference.diagnostics import Check

FAR = 5.0
"""Robust sds from the median beyond which a value is one of the few that may dominate."""
FEW = 0.05
FEWEST_RANKED, RANKED = 20, 2_500
"""Rows by which ranks are compared: a handful agree by chance, and ranking many takes time."""


class Coded(NamedTuple):
    """A value that looks like a code, and where it stands."""

    column: str
    value: float
    rows: int


def outcome_findings(log: LoggedData) -> Iterator[Check | str]:
    """Yield the checks of codes among outcomes and doses, and of those far from all others."""
    several = log.dimension > 1
    doses = [f"treatment {j}" if several else "treatment" for j in range(log.dimension)]
    columns = np.column_stack([log.doses, log.outcome])
    found = codes(Held.of(columns), (*doses, "outcome"))
    if found:
        yield rules.coded_values("coded_outcomes", found, len(log))
    for name, column in zip(doses, log.doses.T, strict=True):
        if not spread_by_many(column):
            yield rules.stray_doses(name, farthest(column))
    if not spread_by_many(log.outcome):
        yield rules.stray_outcomes(farthest(log.outcome))


def context_findings(log: LoggedData, held: Held) -> Iterator[Check | str]:
    """Yield the checks of codes among contexts, of contexts that say nothing or all, if any.

    Constant contexts, and values that are held, are told in notes: nothing is wrong with the
    first, and the others count as far as is plausible.
    """
    found = codes(held, log.names)
    if found:
        yield rules.coded_values("coded_contexts", found, len(log))
    seen = held(log.context)[:, : len(log.names)]
    columns = list(zip(log.names, seen.T, spread_of(seen), strict=True))
    constant = [name for name, column, _ in columns if np.ptp(column) == 0.0]
    silent = [name for name, column, sd in columns if not (sd and spread_by_many(column))]
    silent = [name for name in silent if name not in constant]
    if silent:
        yield rules.silent_contexts(silent, len(log.names))
    copies = [name for name, column, sd in columns if sd and ranks_with(column, log.outcome)]
    if copies:
        yield rules.copied_outcomes(copies)
    if constant:
        yield f"Contexts with one value in all rows explain nothing: {', '.join(constant)}."
    yield from _held_values(log, held)


def _held_values(log: LoggedData, held: Held) -> Iterator[str]:
    """Yield a note for each context with values that are held, codes aside."""
    strays = held.strays(log.context)
    for j in np.flatnonzero(strays.any(axis=0)):
        far = log.context[strays[:, j], j]
        yield (
            f"In {len(far):,} rows the context {log.names[j]!r} lies far beyond all other values "
            f"(such as {far[0]:.6g}); models count it as the last "
            "value before that."
        )


def codes(held: Held, names: tuple[str, ...]) -> list[Coded]:
    """Return the codes in named columns; 0 is left out, which is an amount as well."""
    return [Coded(names[c.column], c.value, c.rows) for c in held.codes if c.value]


def ranks_with(column: Array, outcome: Array) -> bool:
    """Whether a column (n,) puts rows in the order of the outcome (n,), or in the opposite one."""
    if len(column) < FEWEST_RANKED:
        return False
    some = slice(None, None, max(1, len(column) // RANKED))
    a, b = centered_ranks(column[some]), centered_ranks(outcome[some])
    size = float(np.sqrt((a @ a) * (b @ b)))
    return size > 0.0 and abs(float(a @ b)) > rules.SAME_ORDER * size


def centered_ranks(values: Array) -> Array:
    """Return the ranks of values (n,) less their mean; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - count / 2.0)[place] - len(values) / 2.0)


def spread_by_many(column: Array) -> bool:
    """Whether more than a tenth of Σ(x − median)² is left without the few farthest rows."""
    distance = np.abs(column - np.median(column))
    far = distance > FAR * robust_sd(column)
    if not far.any() or np.mean(far) > FEW:
        return True
    squares = (distance / distance.max()) ** 2
    return bool(squares[~far].sum() > rules.SPREAD_LEFT * squares.sum())


def farthest(column: Array) -> float:
    """Return the value of a column (n,) that is farthest from its median."""
    return float(column[np.argmax(np.abs(column - np.median(column)))])
