"""Rows without a treatment or an outcome: refused, left out, or kept with a mark, as was asked."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.data.columns import WEIGHTED, ColumnNote, Step
from titrant.data.validate import first_rows, of_rows
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array

REFUSE, DROP, WEIGHT = "refuse", "drop", "weight"
_FEWEST_KNOWN = 2
APART = 0.1
"""Difference of means, in sds, from which on rows left out differ from the others,"""
BY_CHANCE = 0.01
"""if chance makes one of all columns differ so much no more often than this."""
FEWEST = 5
"""Rows on either side without which nothing is compared."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A column whose mean differs between rows left out and rows kept, by so many sds."""

    column: str
    sds: float


def differences(
    kept: NDArray[np.bool_] | None, columns: Mapping[str, Array]
) -> tuple[Difference, ...]:
    """Return by which columns (n,) the rows left out differ from those kept, the most first.

    d = (m₁ − m₀)/s with s the sd of all; it counts where |d| > .1 and |d|/√(1/n₁ + 1/n₀) is beyond
    the normal quantile of .01, divided by the number of columns. NaN are passed over. That is the
    error of d where the rows were drawn by chance: of few rows left out none may have a level, and
    the sd of these alone would be 0. Of 400 logs each of 300 to 3,000 rows that lose 8 to 100 of
    them by chance, with 21 columns of which 12 are levels with 3 or 11 % of the rows and 3 squares
    of exponential values, .02 to .08 have a difference.
    """
    if kept is None or not columns:
        return ()
    from scipy.special import ndtri  # noqa: PLC0415

    limit = -float(ndtri(BY_CHANCE / 2.0 / len(columns)))
    found = []
    for name, column in columns.items():
        known = np.isfinite(column)
        gone, stays = column[known & ~kept], column[known & kept]
        if min(len(gone), len(stays)) < FEWEST:
            continue
        apart = float(gone.mean() - stays.mean())
        sd = float(column[known].std())
        se = sd * float(np.sqrt(1.0 / len(gone) + 1.0 / len(stays)))
        if abs(apart) > APART * sd and abs(apart) > limit * se:
            found.append(Difference(name, apart / sd))
    return tuple(sorted(found, key=lambda one: -abs(one.sds)))


@contextmanager
def counted_anew(kept: NDArray[np.bool_] | None) -> Iterator[None]:
    """Say of what is refused of the rows kept that their numbers are not those of the table."""
    try:
        yield
    except DataError as error:
        if kept is None:
            raise
        left = f"Of the {np.count_nonzero(kept):,} rows left, counted anew"
        raise DataError(f"{left}: {error}") from None


@dataclass(frozen=True, slots=True)
class Settled:
    """Which rows of a table stay, and which of them have an outcome."""

    kept: NDArray[np.bool_] | None = None
    """None for all rows."""
    observed: Array | None = None
    """1 where the outcome of a row that stays is known, else 0; None if all are."""
    steps: tuple[Step, ...] = ()
    notes: tuple[ColumnNote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRule:
    """What becomes of rows whose treatment or outcome is missing."""

    treatment: str = REFUSE
    outcome: str = REFUSE

    def __post_init__(self) -> None:
        """Refuse anything but the words known."""
        for name, known in (("treatment", (REFUSE, DROP)), ("outcome", (REFUSE, DROP, WEIGHT))):
            if getattr(self, name) not in known:
                rule = f"one of {', '.join(map(repr, known))}"
                raise _check.invalid(f"missing_{name}", "LoggedData", rule, getattr(self, name))

    def settle(
        self, t: Array, y: Array, doses: Sequence[str], outcome: str, *, column: str = "outcome"
    ) -> Settled:
        """Return what becomes of rows with doses t (n, d) and outcomes y (n,), NaN if missing.

        ``doses`` and ``outcome`` are what sentences call the columns; ``column`` is the outcome's.
        """
        without_dose, without_outcome = np.isnan(t), np.isnan(y)
        if not without_dose.any() and not without_outcome.any():
            return Settled()
        gone: NDArray[np.bool_] = np.logical_or.reduce(without_dose, axis=1)
        if gone.any() and self.treatment == REFUSE:
            label = next(one for one, gap in zip(doses, without_dose.T, strict=True) if gap.any())
            raise DataError(
                f"The {label} must be present in every row; it is missing in {of_rows(gone)} "
                f'({first_rows(gone)}). Give `missing_treatment="drop"` to leave these rows out.'
            )
        steps = [
            Step(f"the {label} is missing", int(np.count_nonzero(gap)))
            for label, gap in zip(doses, _first_true(without_dose).T, strict=True)
            if gap.any()
        ]
        unknown = without_outcome & ~gone
        if unknown.any() and self.outcome == REFUSE:
            raise DataError(
                f"The {outcome} must be present in every row; it is missing in {of_rows(unknown)} "
                f'({first_rows(unknown)}). Give `missing_outcome="weight"` to let the other rows '
                "stand for these, which holds where contexts and doses say all about who lacks it; "
                '`missing_outcome="drop"` to leave them out, which holds where they are missing by '
                'pure chance; or `missing_outcome="refuse"` to be stopped here.'
            )
        if unknown.any() and self.outcome == DROP:
            steps.append(Step(f"the {outcome} is missing", int(np.count_nonzero(unknown))))
            gone, unknown = gone | unknown, np.zeros_like(unknown)
        kept = None if not gone.any() else ~gone
        if not unknown.any():
            return Settled(kept, None, tuple(steps))
        known = ~unknown if kept is None else ~unknown[kept]
        if np.count_nonzero(known) < _FEWEST_KNOWN:
            raise DataError(
                f"The {outcome} is missing in {of_rows(~known)}. Use a log with outcomes."
            )
        said = (
            f"The {outcome} is missing in {of_rows(~known)}: these rows stay, and rows with like "
            "contexts and doses stand for them."
        )
        note = ColumnNote(column, WEIGHTED, said)
        return Settled(kept, known.astype(np.float64), tuple(steps), (note,))


def _first_true(gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return gaps (n, d) with only the first of each row, so that each row is counted once."""
    return np.asarray(gaps & (np.cumsum(gaps, axis=1) == 1))
