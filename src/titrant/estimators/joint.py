"""Many questions at once: what is kept of the rows for them, and how passes are asked for."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from titrant.kernels import Scale
from titrant.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators.base import SmoothedEstimator
    from titrant.estimators.question import Question
    from titrant.estimators.rows import Rows


# A tally of weights: how many rows carry an estimate, and how unevenly.

KEPT = 256
"""Largest weights kept of each question, enough for the shape of the tail."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums of the weights of m questions, each (m,), and the largest ones (m, ≤ 256)."""

    n: int
    total: Array
    """Σw."""
    absolute: Array
    """Σ|w|."""
    squares: Array
    """Σw²."""
    count: Array
    """Rows with w ≠ 0."""
    largest: Array
    """The largest |w|, in decreasing order."""

    @classmethod
    def of(cls, w: Array, n: int | None = None) -> Tally:
        """Return the tally of weights (n, m), of all n rows or of those that have any."""
        # Most rows are far from the policy's dose: the others are taken out once.
        size = len(w) if n is None else n
        carried = [column[column != 0.0] for column in w.T]
        sizes = [np.abs(some) for some in carried]
        return cls(
            n=size,
            total=_each(np.sum, carried),
            absolute=_each(np.sum, sizes),
            squares=_each(np.vdot, carried, carried),
            count=_each(len, carried),
            largest=np.stack([_largest(some, size) for some in sizes]),
        )

    def __add__(self, other: Tally) -> Tally:
        """Return the tally of both sets of rows."""
        return Tally(
            n=self.n + other.n,
            total=self.total + other.total,
            absolute=self.absolute + other.absolute,
            squares=self.squares + other.squares,
            count=self.count + other.count,
            largest=np.stack(
                [
                    _largest(np.concatenate(both), self.n + other.n)
                    for both in zip(self.largest, other.largest, strict=True)
                ]
            ),
        )

    def per(self, size: float) -> Tally:
        """Return the tally of w/size."""
        return replace(
            self,
            total=self.total / size,
            absolute=self.absolute / size,
            squares=self.squares / size**2,
            largest=self.largest / size,
        )

    @property
    def ess(self) -> Array:
        """The effective sample size (Σw)²/Σw² (m,); 0 without overlap."""
        return _ratio(self.total**2, self.squares)

    @property
    def degrees_of_freedom(self) -> Array:
        """ν = ESS − 1 (m,), at least 1: what a t quantile needs."""
        return np.maximum(self.ess - 1.0, 1.0)

    @property
    def purity(self) -> Array:
        """|Σw|/Σ|w| (m,): 1 when no weight is negative."""
        return _ratio(np.abs(self.total), self.absolute)

    @property
    def mean(self) -> Array:
        """The mean weight (m,), which is 1 up to noise when the propensities are right."""
        return self.total / self.n

    @property
    def mean_se(self) -> Array:
        """The standard error of the mean weight (m,)."""
        return np.sqrt(np.maximum(self.squares / self.n - self.mean**2, 0.0) / self.n)


def _each(sum_of: Callable[..., float], *parts: Sequence[Array]) -> Array:
    """Return a sum of each question's numbers (m,)."""
    return np.array([sum_of(*some) for some in zip(*parts, strict=True)], dtype=np.float64)


def _largest(size: Array, n: int) -> Array:
    """Return the largest of some numbers > 0 in decreasing order, 256 or n, the rest 0."""
    top = np.zeros(min(KEPT, n))
    if k := min(len(top), len(size)):
        top[:k] = np.sort(np.partition(size, -k)[-k:])[::-1]
    return top


def _ratio(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


# Several estimates on one log, with their joint covariance.
#
# A question is an estimator, a policy and a bandwidth, and may be about some of the rows. The terms
# of many questions stand side by side as one long row, so their joint covariance, and with it every
# paired contrast, bandwidth path and curve, comes from the same moments as one estimate.

S = TypeVar("S")
"""A statistic that adds up over rows."""
R = TypeVar("R")
"""What a search finds."""
Search = Generator["Ask", Any, R]
"""Work that asks for passes over the rows, ``answer = yield Ask(…)``, and returns what it finds."""


class JointPass(Protocol):
    """One pass over a log under several policies."""

    def __call__(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        """Return the sum of ``statistic`` over all blocks of rows, one Rows for each policy."""


class AnyStatistics(Protocol):
    """What `statistics_of` keeps of some rows: it adds up, and settles to the statistics of all."""

    def __add__(self, other: Any) -> AnyStatistics:  # noqa: ANN401  (of the same kind)
        """Return that of both sets of rows."""

    def settled(self) -> Statistics:
        """Return the statistics of means."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is kept of the rows for m questions: joint moments of terms, and a tally of weights."""

    moments: Moments
    tally: Tally
    by_row: Moments | None = None
    """The moments were each row its own group, where it is not."""

    def __add__(self, other: Statistics) -> Statistics:
        """Return the statistics of both sets of rows."""
        return Statistics(self.moments + other.moments, self.tally + other.tally)

    def settled(self) -> Statistics:
        """Return the statistics of means."""
        return self


# Rows that do not count alike, or not for themselves.
#
# With weights ω the means are Σωz/Σω: terms (ω·z, ω), and a smooth function of their means as ever.
# With groups the same sums are taken over the rows of each group first, and groups are what is
# averaged. Rows without weights are the case ω = 1, rows without groups that of groups of one.


@dataclass(frozen=True, slots=True)
class GroupSums:
    """Sums of columns over the rows of each group (G, k), by its key (G,) in increasing order."""

    keys: NDArray[np.int64]
    sums: Array
    rows: int

    @classmethod
    def of(cls, keys: NDArray[np.int64], columns: Array) -> GroupSums:
        """Return the sums of columns (n, k) over rows with these keys (n,)."""
        known, place = np.unique(keys, return_inverse=True)
        sums = np.zeros((len(known), columns.shape[1]))
        np.add.at(sums, place, columns)
        return cls(known, sums, len(keys))

    def __add__(self, other: GroupSums) -> GroupSums:
        """Return the sums over both sets of rows: a group may have rows in both."""
        keys = np.concatenate([self.keys, other.keys])
        both = GroupSums.of(keys, np.concatenate([self.sums, other.sums]))
        return replace(both, rows=self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class WeightedStatistics:
    """The moments of (ω·z, ω) over rows, and a tally of ω·w."""

    moments: Moments
    tally: Tally

    @classmethod
    def of(cls, columns: Array, m: int) -> WeightedStatistics:
        """Return those of columns (n, k + m + 1): terms, weights of m questions, and ω."""
        terms = np.delete(columns, np.s_[-1 - m : -1], axis=1)
        return cls(Moments.of(terms), Tally.of(columns[:, -1 - m : -1]))

    def __add__(self, other: WeightedStatistics) -> WeightedStatistics:
        """Return the statistics of both sets of rows."""
        return WeightedStatistics(self.moments + other.moments, self.tally + other.tally)

    def settled(self) -> Statistics:
        """Return the statistics of the means Σωz/Σω."""
        return Statistics(weighted_means(self.moments), self.tally.per(self.moments.mean[-1]))


def weighted_means(moments: Moments) -> Moments:
    """Return the moments of z from those of (ω·z, ω): m = Σωz/Σω, and the spread of ω(z − m)/ω̄."""
    size = moments.mean[-1]
    mean = moments.mean[:-1] / size
    rest = np.column_stack([np.eye(len(mean)), -mean]) / size
    return Moments(moments.n, mean, rest @ moments.comoment @ rest.T)


@dataclass(frozen=True, slots=True)
class GroupedStatistics:
    """The sums of (ω·z, ω·w, ω) over each group, and the statistics were there none."""

    groups: GroupSums
    rows: WeightedStatistics
    m: int
    """The number of questions."""

    def __add__(self, other: GroupedStatistics) -> GroupedStatistics:
        """Return the statistics of both sets of rows."""
        return GroupedStatistics(self.groups + other.groups, self.rows + other.rows, self.m)

    def settled(self) -> Statistics:
        """Return the statistics of means over groups.

        The comoment has the factor G(n − 1)/((G − 1)n), which is 1 where each row is a group: few
        groups vary less around their own mean than around the true one.
        """
        n, groups = self.groups.rows, len(self.groups.keys)
        found = WeightedStatistics.of(self.groups.sums, self.m).settled()
        factor = groups * (n - 1) / (max(groups - 1, 1) * n)
        comoment = factor * found.moments.comoment
        by_row = self.rows.settled().moments
        return Statistics(replace(found.moments, comoment=comoment), found.tally, by_row)


@dataclass(frozen=True, slots=True)
class Joint:
    """m estimates: values (m,), their covariance (m, m), and the weights behind them."""

    questions: tuple[Question, ...]
    values: Array
    covariance: Array
    moments: Moments
    tally: Tally
    models: Array | float = 0.0
    """The part of the covariance (m, m) that the models behind the terms are to blame for."""
    models_degrees: float = np.inf
    """Degrees of freedom of that part."""
    row_count: int | None = None
    """The number of rows where they are grouped: then the moments count groups."""
    design_effect: Array | float = 1.0
    """By how much groups make each variance (m,) larger than that of rows on their own."""

    @property
    def rows(self) -> int:
        """The number of rows n, of one group or several."""
        return self.moments.rows if self.row_count is None else self.row_count

    def with_models(self, share: Array, degrees: float) -> Joint:
        """Return the same estimates with the models' share (m, m) in their covariance."""
        whole = self.covariance + share
        return replace(self, covariance=whole, models=share, models_degrees=degrees)

    def degrees_with_models(self, variance: Array, degrees: Array) -> Array:
        """Return the degrees of freedom (m,) of variances (m,) of so many plus the models' share.

        ν = (v + N)²/(v²/ν₀ + N²/ν_N) (Satterthwaite 1946).
        """
        share = np.diagonal(np.broadcast_to(self.models, self.covariance.shape))
        parts = variance**2 / degrees + share**2 / self.models_degrees
        whole = (variance + share) ** 2
        kept = np.array(degrees, dtype=np.float64)
        return np.asarray(np.divide(whole, parts, out=kept, where=parts > 0.0))

    @property
    def se(self) -> Array:
        """The standard errors (m,)."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    def mean(self, i: int) -> Array:
        """Return the mean terms (k,) of question i."""
        return self.moments.mean[_columns(self.questions)[i]]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for one pass: the sum of ``statistic`` over all blocks of rows."""

    statistic: Callable[[Sequence[Rows]], Any]
    """Of a block, given as one Rows for each policy."""


def asked(questions: Sequence[Question]) -> Search[Joint]:
    """Ask for one pass over the rows, and return the answers to all questions."""
    statistics = yield Ask(partial(statistics_of, questions))
    return joint_estimates(questions, statistics)


def ask(questions: Sequence[Question], over_rows: JointPass) -> Joint:
    """Return the answers to all questions, in one pass over the rows."""
    return answered(asked(questions), over_rows)


def answered(search: Search[R], over_rows: JointPass) -> R:
    """Return what a search finds, each of its requests answered by a pass of its own."""
    answer = None
    while True:
        try:
            request = search.send(answer)
        except StopIteration as end:
            found: R = end.value
            return found
        answer = over_rows(request.statistic)


def relayed(search: Search[R], put: Callable[[Ask], Ask], take: Callable[[Any], Any]) -> Search[R]:
    """Return what a search finds whose requests are put in another way, to take answers from it."""
    answer = None
    while True:
        try:
            request = search.send(answer)
        except StopIteration as end:
            found: R = end.value
            return found
        answer = take((yield put(request)))


def statistics_of(questions: Sequence[Question], rows: Sequence[Rows]) -> AnyStatistics:
    """Return the statistics of some rows; rows[j] are those of policy number j."""
    one = rows[questions[0].policy]
    if one.alike and all(q.weighted for q in questions):
        return _weighted_statistics(questions, rows)
    terms, weights = [], []
    for q in questions:
        terms.append(q.terms(rows[q.policy]))
        weights.append(q.weights(terms[-1]))
    z, w = np.concatenate(terms, axis=1), np.stack(weights).T
    if one.alike:
        alone = [
            _weighted_statistics([q], rows).moments if q.weighted else Moments.of(own)
            for q, own in zip(questions, terms, strict=True)
        ]
        return Statistics(_each_alone(Moments.of(z), alone), Tally.of(w))
    omega = one.counts[:, None]
    columns = np.hstack([omega * z, omega * w, omega])
    each = WeightedStatistics.of(columns, len(questions))
    if one.group is None:
        return each
    return GroupedStatistics(GroupSums.of(one.group, columns), each, len(questions))


def _weighted_statistics(questions: Sequence[Question], rows: Sequence[Rows]) -> Statistics:
    """Return the statistics of rows that count alike, all questions with terms b, w·e, w.

    Most rows are far from the doses asked about, and have b, 0, 0: the others are taken out once.
    """
    known: dict[tuple[int, int], tuple[Array, Array]] = {}
    weights = []
    for q in questions:
        own: Any = q.estimator  # a weighted one
        if (id(own), q.policy) not in known:
            known[id(own), q.policy] = own.baseline(rows[q.policy])
        weights.append(own.weight(rows[q.policy], q.scale))
    pairs = [known[id(q.estimator), q.policy] for q in questions]
    baselines, n = [b for b, _ in pairs], len(weights[0])
    near = np.flatnonzero(np.logical_or.reduce([w != 0.0 for w in weights]))
    z = np.empty((3 * len(questions), len(near)))
    for i, ((b, e), w) in enumerate(zip(pairs, weights, strict=True)):
        z[3 * i], z[3 * i + 2] = b[near], w[near]
        np.multiply(z[3 * i + 2], e[near], out=z[3 * i + 1])
    joint = Moments.of(z.T) + _moments_of_baselines(baselines, near)
    alone = [joint]
    if len(questions) > 1:
        alone = [_moments_alone(b, near, z[3 * i : 3 * i + 3]) for i, b in enumerate(baselines)]
    return Statistics(_each_alone(joint, alone), Tally.of(z[2::3].T, n))


def _moments_alone(baseline: Array, near: NDArray[np.intp], z: Array) -> Moments:
    """Return the moments of one question's b, w·e, w, known as z (3, k) of the rows ``near``."""
    own = np.flatnonzero(z[2])
    if len(own) < len(near):
        near, z = near[own], z.take(own, axis=1)
    return Moments.of(z.T) + _moments_of_baselines([baseline], near)


def _each_alone(joint: Moments, alone: Sequence[Moments]) -> Moments:
    """Return joint moments in which those of each question are, to the last bit, its own alone."""
    mean, comoment, at = joint.mean.copy(), joint.comoment.copy(), 0
    for own in alone:
        mine = slice(at, at + len(own.mean))
        mean[mine], comoment[mine, mine] = own.mean, own.comoment
        at = mine.stop
    return replace(joint, mean=mean, comoment=comoment)


def _moments_of_baselines(baselines: Sequence[Array], near: NDArray[np.intp]) -> Moments:
    """Return the moments of terms b, 0, 0 of m questions over all rows but those ``near``."""
    m, n = len(baselines), len(baselines[0])
    found = Moments.empty(3 * m)
    if len(near) == n:
        return found
    mean, comoment = found.mean, found.comoment
    if all(b.strides == (0,) for b in baselines):  # a number that all rows share
        mean[::3] = [b[0] for b in baselines]
    else:
        far = np.ones(n, dtype=np.bool_)
        far[near] = False
        own = Moments.of(np.stack([b[far] for b in baselines]).T)
        mean[::3], comoment[::3, ::3] = own.mean, own.comoment
    return Moments(n - len(near), mean, comoment)


def joint_estimates(questions: Sequence[Question], statistics: AnyStatistics) -> Joint:
    """Return the values and, by the delta method, G Cov(terms) Gᵀ/n, G the stacked gradients.

    Without overlap (no weight at all) a value is nan; the evaluation refuses it.
    """
    settled = statistics.settled()
    moments, tally = settled.moments, settled.tally
    values = np.full(len(questions), np.nan)
    g = np.zeros((len(questions), len(moments.mean)))
    for i, (question, columns) in enumerate(zip(questions, _columns(questions), strict=True)):
        if tally.total[i] != 0.0:
            values[i] = question.value(moments.mean[columns])
            g[i, columns] = question.gradient(moments.mean[columns])
    covariance = g @ moments.covariance @ g.T / moments.n
    joint = Joint(tuple(questions), values, covariance, moments, tally)
    if settled.by_row is None:
        return joint
    n = settled.by_row.rows
    alone = np.einsum("ij,jk,ik->i", g, settled.by_row.covariance, g) / n
    effect = _ratio(np.diagonal(covariance).copy(), alone)
    return replace(joint, row_count=n, design_effect=effect)


def _columns(questions: Sequence[Question]) -> list[slice]:
    """Return where the terms of each question stand in the joint row."""
    ends = np.cumsum([q.size for q in questions]).tolist()
    return [slice(end - q.size, end) for q, end in zip(questions, ends, strict=True)]


# One policy on one log: what a bandwidth selector, an interval or a trust check may ask for.


class Pass(Protocol):
    """One pass over the rows of a problem, wherever they are."""

    def __call__(self, statistic: Callable[[Rows], S]) -> S:
        """Return the sum of ``statistic`` over all blocks of rows, added in their order."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A policy's value by ``estimator``, at a bandwidth still to be chosen."""

    estimator: SmoothedEstimator
    n: int
    spread: Array
    """sd(T) of each dose (d,): the unit of bandwidths."""
    over_rows: Pass
    rows: Callable[[], Rows]
    """All rows at once (a seeded sample of them where they do not fit in memory)."""
    policy: int = 0
    """The number of the policy among those that a pass shows."""
    masses: bool = False
    """Whether doses have point masses, so that weights of some rows are fixed."""
    only_smoothed: bool = False
    """Whether only rows that a kernel decides about are asked."""
    alike: bool = True
    """Whether each row counts once, for itself: then rows can be dropped into bins."""

    def of_smoothed(self, n: int) -> Problem:
        """Return the problem of the n rows that a kernel decides about."""
        every = self.rows
        return replace(self, n=n, rows=lambda: every().smoothed(), only_smoothed=True)

    def ask(self, statistic: Callable[[Rows], Any]) -> Ask:
        """Return the request for the sum of a statistic over the rows under this policy."""
        own = partial(of_smoothed, statistic) if self.only_smoothed else statistic
        return Ask(partial(of_policy, self.policy, own))

    def answered(self, search: Search[R]) -> R:
        """Return what a search about this problem finds, in passes of its own."""
        return answered(search, self._pass)

    def _pass(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        return self.over_rows(partial(of_one, self.policy, statistic))

    def scale(self, factor: float) -> Scale:
        """Return the bandwidth ``factor`` × sd(T) of each dose."""
        return Scale.of(factor * self.spread, len(self.spread))


def of_policy(i: int, statistic: Callable[[Rows], S], rows: Sequence[Rows]) -> S:
    """Return a statistic of the rows under policy i."""
    return statistic(rows[i])


def of_smoothed(statistic: Callable[[Rows], S], rows: Rows) -> S:
    """Return a statistic of the rows that a kernel decides about."""
    return statistic(rows.smoothed())


def of_one(i: int, statistic: Callable[[Any], S], rows: Rows) -> S:
    """Return a statistic of rows of which only those under policy i are at hand."""
    return statistic({i: rows})
