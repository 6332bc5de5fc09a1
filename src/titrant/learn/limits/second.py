"""A cap on a second outcome: the mean of y₂ under the rule is at most c.

Rules are learned for the loss y + μ·y₂, from the curves of both, for prices μ from none to large:
the trade-off. The smallest price at which the mean of y₂ on rows held out keeps to the cap is
taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.data import LoggedData
from titrant.errors import DataError, InvalidArgument
from titrant.learn.candidates import robust_scores
from titrant.learn.choice import amount, difference
from titrant.learn.halves import half_of
from titrant.learn.tables import Curves

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data.keys import Keys
    from titrant.data.source import Source
    from titrant.learn.candidates import LearningRows
    from titrant.learn.classes import PolicyClass
    from titrant.learn.contenders import Arena, Contender
    from titrant.outcome import DoseTable

PRICES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Of the second outcome, in units of sd(y)/sd(y₂)."""
BISECTIONS = 5


@dataclass(frozen=True, slots=True)
class TradeOff:
    """A price of the second outcome and what the rule learned at it does, on rows held out."""

    price: float
    """μ of the loss y + μ·y₂."""
    second: float
    """The mean of y₂, doubly robust."""
    second_se: float
    loss: float
    """The mean loss less that of the rule without a cap, smoothed."""
    loss_se: float
    mean_dose: float

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {name: getattr(self, name) for name in self.__slots__}

    def row(self) -> tuple[str, ...]:
        """Return the cells of a table of trade-offs."""
        numbers = (self.price, self.second, self.second_se, self.loss, self.loss_se, self.mean_dose)
        return tuple(f"{number:.3g}".replace("-", "−") for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cap:
    """The mean of a second outcome is at most a number.

    Parameters
    ----------
    log : the rows of the log with the second outcome, in memory: ``log.with_outcome(y2)``
    at_most : the largest mean
    name : what it is called
    """

    log: LoggedData
    at_most: float
    name: str = "the second outcome"

    def __post_init__(self) -> None:
        _check_rows(self.log)
        _check.number(self.at_most, "at_most", "Cap")

    def check(self, log: Source) -> None:
        """Refuse a log that is not the same rows."""
        same = isinstance(log, LoggedData) and np.array_equal(log.doses, self.log.doses)
        if not same or log.weighted:
            raise InvalidArgument(
                "A cap on a second outcome takes a log in memory, without weights, and the same "
                "rows with another outcome: `Cap(log=log.with_outcome(y2), at_most=…)`."
            )

    def of_half(self, half: int, seed: int) -> Cap:
        """Return the cap for half of the rows."""
        return replace(self, log=half_of(self.log, half, seed))


def _check_rows(log: object) -> None:
    if not isinstance(log, LoggedData):
        rule = "a log in memory with the second outcome, such as `log.with_outcome(y2)`"
        raise _check.invalid("log", "Cap", rule, type(log).__name__)


@dataclass(frozen=True, slots=True)
class Capped:
    """The rule at the smallest price that keeps to the cap, and the trade-off."""

    chosen: Contender[Arena]
    arena: Arena
    """What it was learned from: losses with the second outcome at its price."""
    curve: tuple[TradeOff, ...]
    at: TradeOff


def capped(
    kind: PolicyClass, free: Contender[Arena], arena: Arena, second: Arena, cap: Cap
) -> Capped:
    """Return the rule of a class that keeps to a cap; refuse a cap that no rule keeps to."""
    from titrant.learn.contenders import contender  # noqa: PLC0415  (it keeps to limits)

    def tried(price: float) -> tuple[Contender[Arena], Arena, TradeOff]:
        priced = with_price(arena, second, price)
        found = free if price == 0.0 else contender(kind, priced)
        return found, priced, _trade_off(price, found.doses, free.doses, arena, second)

    unit = arena.units.outcome_sd / second.units.outcome_sd
    path = [tried(unit * share) for share in (0.0, *PRICES)]
    keeps = [point.second <= cap.at_most for _, _, point in path]
    if not any(keeps):
        least = min((point for _, _, point in path), key=lambda point: point.second)
        raise DataError(
            f"No rule was found with a mean of {cap.name} of at most {cap.at_most:.6g}: the least "
            f"is {amount(least.second, least.second_se)}, on rows held out. Raise the cap."
        )
    best = keeps.index(True)
    if best:
        low, high = path[best - 1], path[best]
        for _ in range(BISECTIONS):
            middle = tried((low[2].price + high[2].price) / 2.0)
            low, high = (low, middle) if middle[2].second <= cap.at_most else (middle, high)
        path.insert(best, high)
    found, priced, at = path[best]
    return Capped(found, priced, tuple(point for _, _, point in path), at)


def _trade_off(price: float, doses: Array, free: Array, arena: Arena, second: Arena) -> TradeOff:
    groups = arena.log.groups
    mean, se = second_mean(doses, second, groups)
    loss, loss_se = difference(arena.score(doses), arena.score(free), groups)
    return TradeOff(price, mean, se, loss, loss_se, float(doses.mean()))


def second_mean(doses: Array, second: Arena, groups: Keys | None) -> tuple[float, float]:
    """Return the mean of the second outcome under doses (n,) learned without each row's fold."""
    found = second.score(doses, robust_scores)
    mean, se = difference(found, np.zeros_like(found), groups)
    return mean + second.center, se


def with_price(arena: Arena, second: Arena, price: float) -> Arena:
    """Return what is learned from if the loss is y + price·y₂."""
    if not price:
        return arena
    splits = tuple(
        replace(
            mine,
            seen=_sum(mine.seen, other.seen, price),
            graded=_sum(mine.graded, other.graded, price),
        )
        for mine, other in zip(arena.splits, second.splits, strict=True)
    )
    y = arena.log.outcome + price * second.log.outcome
    return replace(
        arena,
        log=arena.log.with_outcome(y),
        rows=_rows(arena.rows, second.rows, price),
        splits=splits,
    )


def _rows(mine: LearningRows, other: LearningRows, price: float) -> LearningRows:
    seen, also = mine.rows, other.rows
    logged = seen.need("r_logged", "cap") + price * also.need("r_logged", "cap")
    rows = replace(seen, y=seen.y + price * also.y, r_logged=logged)
    return replace(mine, rows=rows, table=_table(mine.curves, other.curves, price))


def _sum(mine: Curves, other: Curves, price: float) -> Curves:
    return Curves(_table(mine.table, other.table, price), mine.logged + price * other.logged)


def _table(mine: DoseTable, other: DoseTable, price: float) -> DoseTable:
    return replace(mine, values=mine.values + price * other.values)
