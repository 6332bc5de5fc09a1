"""More of the outcome under a policy than its mean: how often it is large, quantiles, its tail.

`Exceeds(c)` is the mean of 1{y > c}. A quantile solves F̂(θ) = p, F̂ the doubly robust estimate of
P(Y ≤ θ) under the policy: a first θ₀ by weights alone; F̂(θ₀) with an outcome model of 1{y ≤ θ₀};
from there to p along the weighted distribution of outcomes, G(θ) − G(θ₀), over so short a way that
other models would hardly differ. Its interval is that of F̂, [p − t·se, p + t·se], read off the same
way (Woodruff 1952): no density is estimated. The mean of the worst share α is c + E(Y − c)₊/α at
the quantile c, where its derivative in c is 0, so that the error of c counts for nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.bandwidth import BandwidthSelector
from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.estimators import SelfNormalized, SmoothedEstimator
from titrant.estimators.doubly_robust import DirectMethod
from titrant.evaluation.evaluation import Comparison, Evaluation, nothing_answered
from titrant.evaluation.questions.changed import changed
from titrant.evaluation.questions.together import Evaluations, Pick
from titrant.inference import Diagnostics
from titrant.inference.base import StudentInference, StudentInterval, quantile
from titrant.inference.trust import rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from titrant._types import Array
    from titrant.bandwidth import Bandwidth
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.estimators import Estimator, Problem, Question, Rows
    from titrant.estimators.joint import Search
    from titrant.evaluation.questions.changed import Change
    from titrant.inference import IntervalMethod
    from titrant.inference.results import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A comparison as asked for: the parameters of `compare`."""

    log: Source
    policies: Mapping[str, Any]
    estimator: Estimator | None
    bandwidth: Any
    propensity: Any
    interval: IntervalMethod | None
    weights_to: object
    allow_untrusted: bool
    ignore_doubts: bool
    executor: Any

    def evaluation(
        self,
        policies: Mapping[str, Any],
        change: Change | None = None,
        judged: Evaluation | None = None,
        estimator: Estimator | None = None,
    ) -> Evaluation:
        """Return the evaluation of some policies on the log, with its outcome changed."""
        return Evaluation.of(
            self.log if change is None else changed(self.log, change),
            policies,
            estimator or self.estimator,
            self.propensity,
            self.executor,
            ignore_doubts=self.ignore_doubts,
            judged_by=None if judged is None else judged.survey,
            weights_to=self.weights_to,
        )


class Functional(ABC):
    """What is asked of the outcomes under a policy, in place of their mean."""

    @abstractmethod
    def compare(self, setting: Setting) -> Comparison:
        """Return the comparison of policies by it."""


@dataclass(frozen=True, slots=True)
class Exceeds(Functional):
    """P(Y > c): how often the outcome under the policy is more than ``threshold``.

    Its interval is not cut at 0 and 1, where no share can be.

    >>> Exceeds(30.0)
    Exceeds(threshold=30.0)
    """

    threshold: float

    def __post_init__(self) -> None:
        _check.number(self.threshold, "threshold", "Exceeds")

    def compare(self, setting: Setting) -> Comparison:
        """Return the comparison of policies by how often outcomes exceed the threshold."""
        known = _Known.of(setting)
        low, high = known.start.survey.outcome_ends
        if not low <= self.threshold < high:
            which = "No" if self.threshold >= high else "Every"
            raise InvalidArgument(
                f"{which} outcome exceeds {self.threshold:g}; they run from {low:.4g} to "
                f"{high:.4g}. Give a threshold between them."
            )
        answered = {name: setting.policies[name] for name in known.bandwidths}
        evaluation = setting.evaluation(answered, Above(self.threshold), known.start)
        selector = ChosenBefore(tuple(known.bandwidths.values()))
        allowed = setting.allow_untrusted
        found = evaluation.compare(selector, setting.interval, allow_untrusted=allowed)
        refused = {name: str(why) for name, why in known.refused.items()} | dict(found.refused)
        return _renamed(replace(found, refused=refused), self)


@dataclass(frozen=True, slots=True)
class Quantile(Functional):
    """The outcome that a share ``probability`` of those under the policy stays below.

    >>> Quantile(0.9)
    Quantile(probability=0.9)
    """

    probability: float

    def __post_init__(self) -> None:
        _check.probability(self.probability, "probability", "Quantile")

    def compare(self, setting: Setting) -> Comparison:
        """Return the comparison of policies by a quantile of outcomes."""
        found, solved = self.solved(_Known.of(setting))
        names = found.names
        own = found.inference
        assert isinstance(own, StudentInference)  # noqa: S101  (by `Evaluations.inferred`)
        inference = QuantileInference.of(own, [solved[name] for name in names])
        estimates = {
            name: replace(
                found[name],
                value=float(inference.centers[i]),
                se=float(np.sqrt(inference.covariance[i, i])),
                confidence=inference.interval(i),
                method={**found[name].method, "functional": repr(self)},
            )
            for i, name in enumerate(names)
        }
        return Comparison(
            estimates=estimates,
            covariance=inference.covariance,
            inference=inference,
            refused=found.refused,
        )

    def solved(self, known: _Known) -> tuple[Comparison, dict[str, Distribution]]:
        """Return F̂(θ₀) of each policy, and the way from there to the quantile."""
        start, p = known.start, self.probability
        grid = np.unique(_known_outcomes(start.log))
        asked = [start.question(start.names.index(n), h) for n, h in known.bandwidths.items()]
        first = start.over_rows(partial(heights, grid, asked))
        theta = {
            name: float(grid[_place(first.curve(k), p)]) for k, name in enumerate(known.bandwidths)
        }
        found, again = known.answered({n: UpTo(value) for n, value in theta.items()}, p, grid)
        return found, {
            name: Distribution(p, theta[name], found[name].value, grid, curve)
            for name, curve in again.items()
        }


@dataclass(frozen=True, slots=True)
class TailMean(Functional):
    """The mean of the largest outcomes under the policy, a ``share`` of all (expected shortfall).

    ``lower`` asks for the smallest ones, the worst of rewards.

    >>> TailMean(0.1)
    TailMean(share=0.1, lower=False)
    """

    share: float
    lower: bool = False

    def __post_init__(self) -> None:
        _check.probability(self.share, "share", "TailMean")

    def compare(self, setting: Setting) -> Comparison:
        """Return the comparison of policies by the mean of their worst outcomes."""
        p = self.share if self.lower else 1.0 - self.share
        known = _Known.of(setting)
        found, solved = Quantile(p).solved(known)
        cut = {name: way.at(p) for name, way in solved.items()}
        changes: dict[str, Change] = {n: Excess(c, self.lower) for n, c in cut.items()}
        refused = {name: UntrustedEstimate(why) for name, why in found.refused.items()}
        tails, _ = replace(known, refused=refused).answered(changes, p)
        scale = (-1.0 if self.lower else 1.0) / self.share
        return _moved(tails, np.array([cut[name] for name in tails.names]), scale, self)


# Outcomes as they are asked about.


@dataclass(frozen=True, slots=True)
class Above:
    """1{y > c} for the outcome."""

    c: float

    def __call__(self, log: LoggedData) -> LoggedData:
        """Return some rows with this outcome."""
        return _with(log, log.outcome > self.c)


@dataclass(frozen=True, slots=True)
class UpTo:
    """1{y ≤ c} for the outcome."""

    c: float

    def __call__(self, log: LoggedData) -> LoggedData:
        """Return some rows with this outcome."""
        return _with(log, log.outcome <= self.c)


@dataclass(frozen=True, slots=True)
class Excess:
    """(y − c)₊ for the outcome, or (c − y)₊."""

    c: float
    lower: bool

    def __call__(self, log: LoggedData) -> LoggedData:
        """Return some rows with this outcome."""
        over = self.c - log.outcome if self.lower else log.outcome - self.c
        return _with(log, np.maximum(over, 0.0))


def _with(log: LoggedData, outcome: Any) -> LoggedData:  # noqa: ANN401  (numbers or flags)
    """Return the rows with another outcome, 0 where it is missing."""
    y = np.asarray(outcome, dtype=np.float64)
    return log.with_outcome(y if log.observed is None else np.where(log.observed > 0.0, y, 0.0))


def _known_outcomes(log: LoggedData) -> Array:
    return log.outcome if log.observed is None else log.outcome[log.observed > 0.0]


# The distribution of outcomes under a policy.


@dataclass(frozen=True, slots=True)
class Heights:
    """Σw of outcomes up to each of some numbers and beyond the last, (m, g + 1), of m questions."""

    masses: Array

    def __add__(self, other: Heights) -> Heights:
        """Return those of both sets of rows."""
        return Heights(self.masses + other.masses)

    def curve(self, i: int) -> Array:
        """Return G (g,), the weighted share of outcomes up to each number; it never falls."""
        along = np.cumsum(self.masses[i])
        return np.asarray(np.maximum.accumulate(along[:-1] / along[-1]))


def heights(grid: Array, questions: Sequence[Question], rows: Sequence[Rows]) -> Heights:
    """Return the sums of some rows; outcomes are those of the first policy."""
    place = np.searchsorted(grid, rows[0].y, side="left")
    masses = [
        np.bincount(place, weights=_weights(q, rows[q.policy]), minlength=len(grid) + 1)
        for q in questions
    ]
    return Heights(np.stack(masses))


def _weights(question: Question, rows: Rows) -> Array:
    """Return how much each outcome counts (n,)."""
    return question.weights(question.terms(rows)) * rows.counts


def _place(curve: Array, p: float) -> int:
    """Return the first place at which a curve reaches p, or its greatest height."""
    return int(np.searchsorted(curve, min(p, curve[-1]) - _ROUNDING, side="left"))


_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """F̂(θ) = F̂(θ₀) + G(θ) − G(θ₀), G the weighted distribution of outcomes (g,) on a grid (g,)."""

    p: float
    theta: float
    """θ₀."""
    value: float
    """F̂(θ₀)."""
    grid: Array
    curve: Array

    def at(self, p: float) -> float:
        """Return the least θ with F̂(θ) ≥ p, an outcome of the log."""
        start = self.curve[np.searchsorted(self.grid, self.theta)]
        return float(self.grid[_place(self.curve, p - self.value + start)])

    def ends(self, half: float) -> tuple[float, float]:
        """Return the θ of p − half and of p + half."""
        return self.at(self.p - half), self.at(self.p + half)


@dataclass(frozen=True, slots=True)
class WoodruffInterval(StudentInterval):
    """The quantiles between which F̂ stays within p ± t_ν·se."""

    way: Distribution | None = None
    spread: float = 0.0
    """The standard error of F̂."""

    def around(self, p: float) -> tuple[float, float]:
        """Return the quantiles at p ± (p-quantile of t_ν)·se."""
        assert self.way is not None  # noqa: S101  (always given)
        return self.way.ends(self.spread * quantile(p, self.degrees))


@dataclass(frozen=True, slots=True)
class QuantileInference(StudentInference):
    """Quantiles with their joint covariance: that of F̂ over the slopes of the distributions."""

    ways: tuple[Distribution, ...] = ()
    spreads: tuple[float, ...] = ()

    @classmethod
    def of(cls, found: StudentInference, ways: Sequence[Distribution]) -> QuantileInference:
        """Return the inference about quantiles from that about F̂(θ₀)."""
        se = np.sqrt(np.maximum(np.diagonal(found.covariance), 0.0))
        ends = np.array([way.ends(s) for way, s in zip(ways, se, strict=True)])
        slope = np.divide(ends[:, 1] - ends[:, 0], 2 * se, out=np.zeros_like(se), where=se > 0.0)
        return cls(
            f"Woodruff, {found.method}",
            np.array([way.at(way.p) for way in ways]),
            found.covariance * np.outer(slope, slope),
            found.degrees,
            tuple(_edge(way, s, n) for way, s, n in zip(ways, se, found.notes, strict=True)),
            tuple(ways),
            tuple(se.tolist()),
        )

    def only(self, kept: Sequence[int]) -> QuantileInference:
        """Return the inference about some of the estimates."""
        some = StudentInference.only(self, kept)
        return QuantileInference(
            some.method,
            some.centers,
            some.covariance,
            some.degrees,
            some.notes,
            tuple(self.ways[i] for i in kept),
            tuple(self.spreads[i] for i in kept),
        )

    def interval(self, i: int) -> WoodruffInterval:
        """Return the interval of quantile i."""
        se = float(np.sqrt(self.covariance[i, i]))
        known = float(self.centers[i]), se, float(self.degrees[i]), self.method, self.notes[i]
        return WoodruffInterval(*known, self.ways[i], self.spreads[i])


def _edge(way: Distribution, se: float, note: str | None) -> str | None:
    """Return the note that an interval ends where outcomes do, not where it should."""
    if way.p - 2.0 * se > 0.0 and way.p + 2.0 * se < 1.0:
        return note
    edge = "an end is the least or greatest outcome seen, too few rows lie beyond the quantile"
    return f"{note}; {edge}" if note else edge


# From questions about changed outcomes to a comparison.


@dataclass(frozen=True, slots=True)
class ChosenBefore(BandwidthSelector):
    """Bandwidths that were chosen before, by the number of the policy.

    All that is asked of the outcomes' distribution takes the bandwidth of the outcome itself, by
    weights alone. One chosen for the few rows of a tail follows their noise: self-normalized
    intervals of the mean of the largest tenth covered .82 with it in logs of 800 rows, 1.00 so.
    """

    found: tuple[Bandwidth | None, ...]

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the bandwidth of the problem's policy."""
        yield from ()
        chosen = self.found[problem.policy]
        assert chosen is not None  # noqa: S101  (policies without a bandwidth do not ask)
        return chosen


@dataclass(frozen=True)
class _Known:
    """What is asked, the log as it is, its bandwidths, and the policies that are refused."""

    setting: Setting
    start: Evaluation
    bandwidths: dict[str, Bandwidth | None]
    refused: dict[str, UntrustedEstimate]

    @classmethod
    def of(cls, setting: Setting) -> _Known:
        """Choose the bandwidths of all policies by the outcomes as they are."""
        start = _start(setting)
        choices = start.choices(setting.bandwidth)
        refused = {start.names[i]: why for i, why in choices.refused.items()}
        if not choices.bandwidths:
            raise nothing_answered(refused)
        chosen = {start.names[i]: h for i, h in choices.bandwidths.items()}
        return cls(setting, start, chosen, refused)

    def answered(
        self, changes: Mapping[str, Change], p: float, grid: Array | None = None
    ) -> tuple[Comparison, dict[str, Array]]:
        """Return each policy's value by its own outcome, jointly, and weighted distributions.

        ``p`` is the share of outcomes below the quantile that matters.
        """
        setting, evaluations, picks = self.setting, [self.start], []
        refused, estimates = dict(self.refused), dict[str, "Estimate"]()
        for name, change in changes.items():
            own = setting.evaluation({name: setting.policies[name]}, change, self.start)
            try:
                estimate = self._judged(own, name, p)
            except UntrustedEstimate as refusal:
                refused[name] = refusal
                continue
            estimates[name] = estimate
            picks.append(Pick(len(evaluations), 0, estimate.bandwidth))
            evaluations.append(own)
        if not estimates:
            raise nothing_answered(refused)
        together = Evaluations(tuple(evaluations))
        point, inference = together.inferred(picks, setting.interval)
        comparison = Comparison(
            estimates=estimates,
            covariance=point.covariance,
            inference=inference,
            refused={name: str(why) for name, why in refused.items()},
        )
        if grid is None:
            return comparison, {}
        asked = [together.question(pick) for pick in picks]
        again = together.over_rows(partial(heights, grid, asked))
        return comparison, {name: again.curve(k) for k, name in enumerate(estimates)}

    def _judged(self, own: Evaluation, name: str, p: float) -> Estimate:
        """Return the estimate of a policy by its own outcome, the thin side of p looked at."""
        setting, allowed = self.setting, self.setting.allow_untrusted
        selector = ChosenBefore((self.bandwidths[name],))
        found = own.compare(selector, setting.interval, allow_untrusted=allowed)[name]
        side = "above" if p > 0.5 else "below"  # noqa: PLR2004
        thin = rules.tail_rows(found.ess * min(p, 1.0 - p), f"{side} the quantile")
        judged = found.diagnostics + Diagnostics((thin,))
        if not allowed:
            judged.require_trust()
        return replace(found, diagnostics=judged)


def _start(setting: Setting) -> Evaluation:
    """Return the evaluation of the outcomes as they are, by weights alone."""
    chosen = setting.estimator
    if isinstance(chosen, DirectMethod):
        raise InvalidArgument(
            "`DirectMethod` has a model of mean outcomes, not of their distribution. Take "
            "`DoublyRobust()` or `SelfNormalized()`."
        )
    if isinstance(chosen, SmoothedEstimator):
        chosen = SelfNormalized(kernel=chosen.kernel, clip=chosen.clip, boundary=chosen.boundary)
    return setting.evaluation(setting.policies, estimator=chosen or SelfNormalized())


def _renamed(found: Comparison, functional: Functional) -> Comparison:
    """Return a comparison whose estimates say of what they are."""
    told = {
        name: replace(e, method={**e.method, "functional": repr(functional)})
        for name, e in found.estimates.items()
    }
    return replace(found, estimates=told)


def _moved(found: Comparison, zero: Array, scale: float, functional: Functional) -> Comparison:
    """Return the comparison by zero + scale·value, zero (m,) known numbers."""
    own = found.inference
    assert isinstance(own, StudentInference)  # noqa: S101  (by `Evaluations.inferred`)
    inference = StudentInference(
        own.method, zero + scale * own.centers, scale**2 * own.covariance, own.degrees, own.notes
    )
    estimates = {
        name: replace(
            e,
            value=float(zero[i] + scale * e.value),
            se=abs(scale) * e.se,
            confidence=inference.interval(i),
        )
        for i, (name, e) in enumerate(found.estimates.items())
    }
    moved = replace(
        found,
        estimates=estimates,
        covariance=scale**2 * found.covariance,
        inference=inference,
    )
    return _renamed(moved, functional)
