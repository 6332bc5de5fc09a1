"""Limits that have a price: a cap on a second outcome, and outcomes of groups that are alike.

Rules are learned for another loss at prices μ from none to large: the trade-off. The smallest price
at which rows held out keep to the limit is taken. For a cap, that the mean of y₂ is at most c, the
loss is y + μ·y₂. For values V_g of groups that differ by at most a margin it is y times a weight
∝ exp(μ·V_g/sd(y)), V_g of the rule without a price: the groups that do worst count most. No weight
is negative, so nobody is given a worse dose to be like the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.data import LoggedData
from titrant.data.columns import places
from titrant.errors import DataError, InvalidArgument
from titrant.learn.candidates import robust_scores
from titrant.learn.choice import amount, difference
from titrant.learn.halves import half_of
from titrant.learn.tables import Curves

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.keys import Keys
    from titrant.data.source import Source
    from titrant.learn.candidates import LearningRows
    from titrant.learn.classes import PolicyClass
    from titrant.learn.contenders import Arena, Contender
    from titrant.outcome import DoseTable

PRICES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Of a second outcome in units of sd(y)/sd(y₂), of a difference of values in none."""
BISECTIONS = 5


@dataclass(frozen=True, slots=True)
class TradeOff:
    """A price and what the rule learned at it does, on rows held out."""

    price: float
    """μ."""
    second: float
    """The mean of y₂, or the largest difference between groups, doubly robust."""
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


class Priced(ABC):
    """A limit that a rule keeps to at a price."""

    __slots__ = ()
    name: str

    @property
    @abstractmethod
    def most(self) -> float:
        """The largest amount that keeps to the limit."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """What is limited, at the beginning of a sentence."""

    @abstractmethod
    def check(self, log: Source) -> None:
        """Refuse a log that the limit says nothing of."""

    @abstractmethod
    def market(self, arena: Arena, free: Array, fitted: Callable[[Array], Arena]) -> Market:
        """Return what a price does, beside the doses (n,) of the rule without one.

        ``fitted`` gives the curves of another outcome of all rows.
        """


@dataclass(frozen=True, slots=True)
class Market:
    """What is learned from at a price, and the amount under doses (n,), with its SE."""

    priced: Callable[[float], Arena]
    amount: Callable[[Array], tuple[float, float]]
    unit: float
    """Of prices."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cap(Priced):
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

    @property
    def most(self) -> float:
        """The largest mean."""
        return self.at_most

    @property
    def subject(self) -> str:
        """The mean of the second outcome."""
        return f"The mean of {self.name}"

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

    def market(self, arena: Arena, free: Array, fitted: Callable[[Array], Arena]) -> Market:  # noqa: ARG002
        """Return what a price of the second outcome does."""
        second = fitted(self.log.outcome)
        groups = arena.log.groups
        return Market(
            lambda price: with_price(arena, second, price),
            lambda doses: second_mean(doses, second, groups),
            arena.units.outcome_sd / second.units.outcome_sd,
        )


def _check_rows(log: object) -> None:
    if not isinstance(log, LoggedData):
        rule = "a log in memory with the second outcome, such as `log.with_outcome(y2)`"
        raise _check.invalid("log", "Cap", rule, type(log).__name__)


@dataclass(frozen=True, slots=True)
class AlikeValues(Priced):
    """The mean outcomes of groups under the rule differ by at most a margin."""

    across: str
    margin: float

    @property
    def name(self) -> str:  # type: ignore[override]  # said, not given
        """What is limited."""
        return f"the difference between groups of {self.across}"

    @property
    def most(self) -> float:
        """The margin."""
        return self.margin

    @property
    def subject(self) -> str:
        """The largest difference between two groups."""
        return f"The largest difference between the mean outcomes of groups of {self.across}"

    def check(self, log: Source) -> None:
        """Refuse a log without such groups."""
        indicators(self.across, log.names)

    def market(self, arena: Arena, free: Array, fitted: Callable[[Array], Arena]) -> Market:  # noqa: ARG002
        """Return what it does to count those more who do worse."""
        group, units = groups_of(self.across, arena.log), arena.log.groups
        values = _by_group(arena.score(free, robust_scores), group) / arena.units.outcome_sd

        def priced(price: float) -> Arena:
            weight = np.exp(price * (values - values.max()))[group]
            return weighed(arena, weight / weight.mean()) if price else arena

        def largest(doses: Array) -> tuple[float, float]:
            return largest_difference(arena.score(doses, robust_scores), group, units)

        return Market(priced, largest, 1.0)


@dataclass(frozen=True, slots=True)
class Capped:
    """The rule at the smallest price that keeps to a limit, and the trade-off."""

    chosen: Contender[Arena]
    arena: Arena
    """What it was learned from: losses at its price."""
    curve: tuple[TradeOff, ...]
    at: TradeOff


def capped(
    kind: PolicyClass, free: Contender[Arena], arena: Arena, market: Market, limit: Priced
) -> Capped:
    """Return the rule of a class that keeps to a limit; refuse one that no rule keeps to."""
    from titrant.learn.contenders import contender  # noqa: PLC0415  (it keeps to limits)

    def tried(price: float) -> tuple[Contender[Arena], Arena, TradeOff]:
        priced = market.priced(price)
        found = free if price == 0.0 else contender(kind, priced)
        return found, priced, _trade_off(price, found.doses, free.doses, arena, market)

    path = [tried(market.unit * share) for share in (0.0, *PRICES)]
    keeps = [point.second <= limit.most for _, _, point in path]
    if not any(keeps):
        least = min((point for _, _, point in path), key=lambda point: point.second)
        raise DataError(
            f"{limit.subject} is to be at most {limit.most:.6g}, and no rule was found that keeps "
            f"to it: the least is {amount(least.second, least.second_se)}, on rows held out. Allow "
            "more."
        )
    best = keeps.index(True)
    if best:
        low, high = path[best - 1], path[best]
        for _ in range(BISECTIONS):
            middle = tried((low[2].price + high[2].price) / 2.0)
            low, high = (low, middle) if middle[2].second <= limit.most else (middle, high)
        path.insert(best, high)
    found, priced, at = path[best]
    return Capped(found, priced, tuple(point for _, _, point in path), at)


def _trade_off(price: float, doses: Array, free: Array, arena: Arena, market: Market) -> TradeOff:
    mean, se = market.amount(doses)
    loss, loss_se = difference(arena.score(doses), arena.score(free), arena.log.groups)
    return TradeOff(price, mean, se, loss, loss_se, float(doses.mean()))


def second_mean(doses: Array, second: Arena, groups: Keys | None) -> tuple[float, float]:
    """Return the mean of the second outcome under doses (n,) learned without each row's fold."""
    found = second.score(doses, robust_scores)
    mean, se = difference(found, np.zeros_like(found), groups)
    return mean + second.center, se


# Groups that must be alike.


def indicators(column: str, names: Sequence[str]) -> list[int]:
    """Return where the contexts are that tell the groups of a column apart."""
    from titrant.data.features import column_of  # noqa: PLC0415 - loads pyarrow

    found = [j for j, name in enumerate(names) if column in (name, column_of(name))]
    return found or list(places((column,), names, "limits"))


def groups_of(column: str, log: LoggedData) -> NDArray[np.intp]:
    """Return the group of each row (n,), its place among `told_apart`."""
    return told_apart(column, log)[1]


def told_apart(column: str, log: LoggedData) -> tuple[Array, NDArray[np.intp]]:
    """Return what tells groups apart (G, m), and the group of each row (n,).

    By a column of texts, or a context with two values.
    """
    at = indicators(column, log.names)
    values = log.context[:, at]
    if len(at) == 1 and len(np.unique(values)) > 2:  # noqa: PLR2004
        raise InvalidArgument(
            f"`{column}` has {len(np.unique(values))} values; groups are told apart by a column of "
            "texts or by a context with two values. Make one of it."
        )
    groups, place = np.unique(values, axis=0, return_inverse=True)
    return groups, place.astype(np.intp).ravel()


def _by_group(score: Array, group: NDArray[np.intp]) -> Array:
    """Return the mean score of each group (G,)."""
    return np.bincount(group, score) / np.bincount(group)


def largest_difference(
    score: Array, group: NDArray[np.intp], units: Keys | None
) -> tuple[float, float]:
    """Return the largest difference between mean scores of groups, and its SE."""
    means, share = _by_group(score, group), np.bincount(group) / len(group)
    high, low = int(np.argmax(means)), int(np.argmin(means))
    sides = (group == high) / share[high] - (group == low) / share[low]
    # Whose group is whose was not decided by the draw alone: residuals count, not scores.
    _, se = difference(sides * (score - means[group]), np.zeros_like(score), units)
    return float(means[high] - means[low]), se


def weighed(arena: Arena, weight: Array) -> Arena:
    """Return what is learned from if the loss of each row counts by a weight (n,)."""

    def times(curves: Curves, of: Array) -> Curves:
        return Curves(_scaled(curves.table, of), curves.logged * of)

    splits = tuple(
        replace(
            split,
            seen=times(split.seen, weight[split.train]),
            graded=times(split.graded, weight[split.test]),
        )
        for split in arena.splits
    )
    seen = arena.rows.rows
    rows = replace(
        arena.rows,
        rows=replace(seen, y=seen.y * weight, r_logged=seen.need("r_logged", "weights") * weight),
        table=_scaled(arena.rows.curves, weight),
    )
    log = arena.log.with_outcome(arena.log.outcome * weight)
    return replace(arena, log=log, rows=rows, splits=splits)


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


def _scaled(table: DoseTable, weight: Array) -> DoseTable:
    return replace(table, values=table.values * weight[:, None])
