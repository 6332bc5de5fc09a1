"""The last move of a rule: means over all rows of a log, with their weights, keep to limits.

Learning may see fewer rows than the log has, or rows drawn by weight, and a mean over these is not
that of the log. So the move that settles a mean is found over all rows, in memory or in files: a
pass adds up the doses given after each of a few moves, and the next looks between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.execute import BATCH, OverBatches
from titrant.learn.limits.declared import HAIR, ROUNDS, check_least, nearest_interval, passes
from titrant.learn.limits.prices import indicators, told_apart
from titrant.policies.calling import recommended

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.execute import Engine
    from titrant.learn.limits.declared import Limits
    from titrant.learn.setting import TrainingLog, Units
    from titrant.policies import Policy

AT_ONCE, PASSES = 31, 8
"""Moves that a pass tries, and passes: a move is found to 32⁻⁸ = 1e-12 of where it may lie."""


@dataclass(frozen=True, slots=True)
class Population:
    """All rows of a log, and the limits that means over them keep to.

    Groups are those of the rows that were learned from; a last column stands for all other rows,
    which is where all are if no groups must be alike.
    """

    log: Source
    engine: Engine
    limits: Limits
    ends: tuple[float, float]
    """The doses between which a rule is learned."""
    groups: Array
    """What tells groups apart (G, m)."""

    @classmethod
    def of(
        cls, training: TrainingLog, limits: Limits, learned_on: LoggedData, units: Units
    ) -> Self | None:
        """Return the rows that those learned from stand for; None without limits of means."""
        across, whole = limits.equal_across, training.drawn_from or training
        if across is None and limits.mean_dose is None:
            return None
        groups = np.empty((0, 0)) if across is None else told_apart(across, learned_on)[0]
        # The rows of a cap are no limit of a mean dose, and need not go to other processes.
        means = limits.without("cap")
        return cls(whole.log, whole.engine, means, (units.low, units.high), groups)

    def moves(self, rule: Policy) -> Array:
        """Return what to add to a rule's doses so that its means keep to limits (G + 1,)."""
        moves = np.zeros(len(self.groups) + 1)
        moves = moves + self._shift(rule, moves)
        for _ in range(ROUNDS):
            by = self._equal(rule, moves)
            if not by.any():
                break
            moves = moves + by
            moves = moves + self._shift(rule, moves)
        return moves

    def apart(self, rule: Policy) -> float:
        """Return by how much the mean doses of groups differ at most."""
        return self._as_it_is(rule).apart

    def notes(self, rule: Policy) -> list[str]:
        """Return a sentence if some rows belong to groups that were not learned from."""
        weight = self._as_it_is(rule).weight
        if not len(self.groups) or not weight[-1]:
            return []
        said = (
            f"{weight[-1] / weight.sum():.2%} of the log is in groups of "
            f"`{self.limits.equal_across}` of which no row was learned from: their mean doses are "
            "not kept near those of the others."
        )
        return [said]

    def _as_it_is(self, rule: Policy) -> Given:
        return self._given(rule, np.zeros((1, len(self.groups) + 1)))

    def _given(self, rule: Policy, moves: Array) -> Given:
        """Return what is given over all rows after moves (K, G + 1) of a rule."""
        statistic = Moved(rule, moves, self.limits, self.ends, self.groups)
        return self.engine.add_up(OverBatches(statistic, BATCH), self.log.partitions)

    def _shift(self, rule: Policy, moves: Array) -> float:
        """Return the smallest move downward of all rows with which they keep to the budget."""
        given, budget = self._given(rule, moves[None]), self.limits.budget
        if not passes(given.mean[0], budget):
            return 0.0
        check_least(given.least, budget)

        def exceeded(tried: Array) -> NDArray[np.bool_]:
            return passes(self._given(rule, moves + tried).mean, budget)[:, None]

        down = self.ends[0] - given.high.max(keepdims=True)
        low, _ = narrowed(exceeded, down, np.zeros(1))
        return float(low[0]) - self._hair

    def _equal(self, rule: Policy, moves: Array) -> Array:
        """Return the moves (G + 1,) that bring groups together, as small as they can be.

        Coming from above the mean of a group stays at most its goal, from below at least.
        """
        margin, by = self.limits.margin, np.zeros_like(moves)
        if margin is None or (given := self._given(rule, moves[None])).apart <= margin:
            return by
        known = given.known
        means = given.means[0][known]
        low = nearest_interval(means, given.weight[known], margin)
        goals = np.clip(means, low, low + margin)
        down = means > goals

        def above(tried: Array) -> NDArray[np.bool_]:
            each = np.zeros((len(tried), len(by)))
            each[:, known] = tried
            found = self._given(rule, moves + each).means[:, known]
            return np.asarray(np.where(down, found > goals, found >= goals))

        ends = self.ends[0] - given.high[known], self.ends[1] - given.low[known]
        below, beyond = narrowed(above, *ends)
        by[known] = np.where(means == goals, 0.0, np.where(down, below - self._hair, beyond))
        return by

    @property
    def _hair(self) -> float:
        # On steps a move ends where a row is about to change its dose: rounding must not.
        return HAIR * float(np.ptp(self.ends))


def narrowed(
    above: Callable[[Array], NDArray[np.bool_]], low: Array, high: Array
) -> tuple[Array, Array]:
    """Return the ends (m,) of the intervals in which moves come to be above what is sought.

    Each round tries several moves (K, m) in one pass; the low ends never are above.
    """
    share = np.linspace(0.0, 1.0, AT_ONCE + 2)[1:-1, None]
    for _ in range(PASSES):
        tried = low + share * (high - low)
        first = np.count_nonzero(~above(tried), axis=0)
        edges = np.vstack([low, tried, high])
        low, high = edges[first, np.arange(len(low))], edges[first + 1, np.arange(len(low))]
    return low, high


# What a pass adds up.


@dataclass(frozen=True, slots=True)
class Given:
    """The doses given to some rows after K moves of a rule, group by group."""

    total: Array
    """Σ weight·dose (K, G + 1)."""
    weight: Array
    """Σ weight (G + 1,)."""
    smallest: float
    """Σ weight·(the smallest dose that the row allows)."""
    low: Array
    """The smallest dose of the rule itself after the first of the moves (G + 1,)."""
    high: Array
    """The largest."""

    def __add__(self, other: Given) -> Given:
        """Return the sums over both sets of rows."""
        return Given(
            self.total + other.total,
            self.weight + other.weight,
            self.smallest + other.smallest,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    @property
    def mean(self) -> Array:
        """The mean dose of all rows after each move (K,)."""
        return np.asarray(self.total.sum(axis=1) / self.weight.sum())

    @property
    def least(self) -> float:
        """The mean of the smallest doses that rows allow."""
        return float(self.smallest / self.weight.sum())

    @property
    def known(self) -> NDArray[np.intp]:
        """The groups with any weight, without the last column."""
        return np.flatnonzero(self.weight[:-1])

    @property
    def means(self) -> Array:
        """The mean dose of each group after each move (K, G + 1), 0 where nothing has weight."""
        return self.total / np.where(self.weight > 0.0, self.weight, 1.0)

    @property
    def apart(self) -> float:
        """By how much the mean doses of groups differ at most after the first of the moves."""
        means = self.means[0][self.known]
        return float(np.ptp(means)) if len(means) else 0.0


@dataclass(frozen=True, slots=True)
class Moved:
    """What is given after K moves of a rule, as a statistic of some rows of a log."""

    rule: Policy
    moves: Array
    """(K, G + 1)."""
    limits: Limits
    ends: tuple[float, float]
    groups: Array

    def __call__(self, log: LoggedData) -> Given:
        """Return what the rows are given."""
        rows, size = self.limits.of_rows(log, self.ends), len(self.groups) + 1
        raw, place = recommended(self.rule, log.context, log.names), self.place(log)
        weight = np.ones(len(log)) if log.weights is None else log.weights
        total = [
            np.bincount(place, weight * rows.given(raw + by[place]), size) for by in self.moves
        ]
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, place, raw + self.moves[0][place])
        np.maximum.at(high, place, raw + self.moves[0][place])
        return Given(
            total=np.stack(total),
            weight=np.bincount(place, weight, size).astype(np.float64),
            smallest=float(weight @ rows.given(np.full(len(log), self.ends[0]))),
            low=low,
            high=high,
        )

    def place(self, log: LoggedData) -> NDArray[np.intp]:
        """Return the place of each row's group (n,), G for any other."""
        place = np.full(len(log), len(self.groups))
        if self.limits.equal_across is not None:
            values = log.context[:, indicators(self.limits.equal_across, log.names)]
            for g, group in enumerate(self.groups):
                place[(values == group).all(axis=1)] = g
        return place
