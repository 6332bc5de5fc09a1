"""The numbers behind a trust report, gathered in one pass over the rows for all policies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.estimators import Discretized, DoublyRobust, SelfNormalized, SmoothedEstimator
from titrant.estimators.form import has_common_terms
from titrant.estimators.joint import joint_estimates, statistics_of
from titrant.inference import trust_rules
from titrant.inference.balance import balance_sums, imbalance
from titrant.inference.base import difference_se
from titrant.inference.diagnostics import Diagnostics
from titrant.inference.pareto import tail_index
from titrant.inference.rbc import corrected_question
from titrant.kernels import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from titrant._types import Array
    from titrant.estimators import Estimator, Joint, JointPass, Question, Rows
    from titrant.estimators.joint import Statistics
    from titrant.inference.balance import Contexts
    from titrant.inference.diagnostics import Check
    from titrant.inference.trust_support import Support
    from titrant.kernels import Scale

FACTORS = (1.0, 0.5, 0.5**0.5, 2.0**0.5, 2.0)
"""The bandwidths, in units of h, over which an estimate should hold; the first is its own."""
_PURITY = 0.5
"""Below this |Σw|/Σ|w| positive and negative weights cancel: a local quadratic fit is unusable."""
SHOWN_BINS = 3
"""Bins that a check names."""
SAME_DOSE = 1e-9
"""Doses closer than this share of the largest one are the same but for rounding."""
_ROUNDING = 1e-12
"""A difference below this share of the value itself is rounding."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known of a log before any policy is looked at."""

    contexts: Contexts
    support: Support | None
    floor: float
    floor_share: float
    bounded: bool
    outcomes: tuple[Check | str, ...] = ()
    """What was found about outcomes and doses, for every estimate."""
    columns: tuple[Check | str, ...] = ()
    """What was found about contexts, for every estimate that adjusts for them."""
    levels: Array | None = None
    """The logged doses (k,) where there are few of them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask of the rows about one estimate."""

    question: Question
    mean_weight: float
    path: tuple[Question, ...]
    """The same question at the bandwidths of `FACTORS`, the first being the estimate itself."""
    corrected: tuple[Question, ...]
    """The bias-corrected question, and the same without outcome model if it has one."""

    @classmethod
    def of(cls, question: Question, mean_weight: float, ground: Ground) -> Self:
        """Return what can be asked about ``question``."""
        if not isinstance(question.estimator, SmoothedEstimator):
            return cls(question, mean_weight, (question,), ())
        path = tuple(replace(question, scale=question.scale.times(f)) for f in FACTORS)
        # A full bandwidth matrix has no correction at bounds, hence no bias-corrected estimate.
        if ground.bounded and question.scale.axes is None:
            return cls(question, mean_weight, path, ())
        versions = (question, *without_outcome_model(question))
        corrected = tuple(corrected_question(q) for q in versions)
        return cls(question, mean_weight, path, corrected)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is kept of the rows about one estimate; it adds up over blocks."""

    answers: Statistics
    """Of the questions of the plan: its path, then the corrected ones."""
    balance: Array
    """See `balance_sums`, (2, p)."""
    raised: float
    """Σ|w| of the rows whose propensity the floor raised."""
    outside: int
    """Rows whose policy dose lies outside the support."""
    near_bound: int
    """Rows whose policy dose lies within h of a bound."""
    bins: BinsOfDoses | None = None
    """In which bins the policy's doses fell, for an estimator that has bins."""

    def __add__(self, other: Evidence) -> Evidence:
        """Return the evidence of both sets of rows."""
        return Evidence(
            self.answers + other.answers,
            self.balance + other.balance,
            self.raised + other.raised,
            self.outside + other.outside,
            self.near_bound + other.near_bound,
            None if self.bins is None or other.bins is None else self.bins + other.bins,
        )


@dataclass(frozen=True, slots=True)
class BinsOfDoses:
    """In which bins the doses of a policy fell."""

    counts: Array
    """Rows of each bin."""
    off: int
    """Rows whose dose is none of the logged levels, where there are few; else 0."""
    low: float
    high: float

    @classmethod
    def of(cls, estimator: Discretized, levels: Array | None, tau: Array) -> Self:
        """Return those of doses (n,)."""
        bins = len(estimator.edges or ()) + 1
        counts = np.bincount(estimator.bin_of(tau), minlength=bins).astype(np.float64)
        off = 0 if levels is None else int(np.count_nonzero(_apart(tau, levels)))
        return cls(counts, off, float(tau.min()), float(tau.max()))

    def __add__(self, other: BinsOfDoses) -> BinsOfDoses:
        """Return those of both sets of rows."""
        return BinsOfDoses(
            self.counts + other.counts,
            self.off + other.off,
            min(self.low, other.low),
            max(self.high, other.high),
        )


def _apart(tau: Array, levels: Array) -> Array:
    """Return which doses (n,) are none of the levels (k,), but for rounding."""
    after = np.clip(np.searchsorted(levels, tau), 1, max(len(levels) - 1, 1))
    nearest = np.minimum(np.abs(tau - levels[after - 1]), np.abs(tau - levels[after % len(levels)]))
    return np.asarray(nearest > SAME_DOSE * np.abs(levels).max())


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The evidence about several estimates."""

    parts: tuple[Evidence, ...]

    def __add__(self, other: SideBySide) -> SideBySide:
        """Return the evidence of both sets of rows, estimate by estimate."""
        return SideBySide(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def diagnose(point: Joint, ground: Ground, over_rows: JointPass) -> list[Diagnostics]:
    """Return the trust report of each answer in ``point``, in one pass over the rows."""
    plans = [
        Plan.of(question, float(point.tally.mean[i]), ground)
        for i, question in enumerate(point.questions)
    ]
    gathered = over_rows(partial(gather, plans, ground))
    return [
        report(point, i, plan, ground, evidence)
        for i, (plan, evidence) in enumerate(zip(plans, gathered.parts, strict=True))
    ]


def gather(plans: Sequence[Plan], ground: Ground, rows: Sequence[Rows]) -> SideBySide:
    """Return the evidence of some rows about every estimate."""
    return SideBySide(tuple(evidence_of(plan, ground, rows) for plan in plans))


def evidence_of(plan: Plan, ground: Ground, rows: Sequence[Rows]) -> Evidence:
    """Return the evidence of some rows about one estimate."""
    own, estimator = rows[plan.question.policy], plan.question.estimator
    w = estimator.weights(estimator.terms(own, plan.question.scale))
    outside = 0 if ground.support is None else np.count_nonzero(ground.support.outside(own))
    bins = (
        BinsOfDoses.of(estimator, ground.levels, own.tau[:, 0])
        if isinstance(estimator, Discretized)
        else None
    )
    return Evidence(
        statistics_of((*plan.path, *plan.corrected), rows),
        balance_sums(w, own.need("x", "balance"), plan.mean_weight, ground.contexts),
        raised_weight(w, own),
        int(outside),
        int(np.count_nonzero(within_reach_of_bound(own, plan.question.scale))),
        bins,
    )


def raised_weight(w: Array, rows: Rows) -> float:
    """Return Σ|w| over the rows whose propensity is the floor itself; w (n,)."""
    return 0.0 if rows.q is None else float(np.abs(w[rows.q <= rows.floor]).sum())


def within_reach_of_bound(rows: Rows, scale: Scale) -> Array:
    """Return which rows (n,) have a policy dose less than h from a bound, in any dose."""
    if rows.lower is None or rows.upper is None:
        return np.zeros(len(rows.y))
    root = np.linalg.inv(scale.inverse_root)
    h = np.sqrt(np.diagonal(root @ root))
    return np.asarray(((rows.tau - rows.lower < h) | (rows.upper - rows.tau < h)).any(axis=1))


def without_outcome_model(question: Question) -> Iterator[Question]:
    """Yield the question by the self-normalized estimator, if it is a doubly robust one.

    One with terms of its own has no such twin among the estimators here.
    """
    e = question.estimator
    if isinstance(e, DoublyRobust) and has_common_terms(e):
        plain = SelfNormalized(kernel=e.kernel, clip=e.clip, boundary=e.boundary)
        yield replace(question, estimator=plain)


def report(point: Joint, i: int, plan: Plan, ground: Ground, evidence: Evidence) -> Diagnostics:
    """Return all checks of answer i that apply, and notes on those that could not be made."""
    joint = joint_estimates((*plan.path, *plan.corrected), evidence.answers)
    return Diagnostics.of(
        [
            *weight_checks(point, i, plan, ground, evidence),
            *support_checks(plan, ground, evidence),
            *smoothing_checks(joint, plan),
            *ground.outcomes,
            *(ground.columns if adjusts(plan.question.estimator) else ()),
        ]
    )


def adjusts(estimator: Estimator) -> bool:
    """Whether an estimator adjusts for contexts."""
    return estimator.uses_propensity or estimator.uses_outcome_model


def weight_checks(
    point: Joint, i: int, plan: Plan, ground: Ground, evidence: Evidence
) -> Iterator[Check | str]:
    """Yield the checks of the weights; the direct method weights all rows alike."""
    tally = point.tally
    largest = tally.largest[i]
    one, five, ten = (float(largest[:k].sum() / tally.absolute[i]) for k in (1, 5, 10))
    yield trust_rules.effective_sample_size(float(tally.ess[i]), tally.n)
    yield trust_rules.largest_weight_share((one, five, ten))
    yield trust_rules.mean_weight(float(tally.mean[i]), float(tally.mean_se[i]))
    if not plan.question.estimator.uses_propensity:
        if plan.question.estimator.uses_outcome_model:  # not so the mean of observed outcomes
            yield "The direct method uses no propensities: nothing shows how wrong its model is."
        return
    index = tail_index(largest, int(tally.count[i]))
    if index is None:
        yield "The tail of the weights was not fitted: too few weights, or all of one size."
    else:
        yield trust_rules.weight_tail(index)
    if isinstance(plan.question.estimator, SmoothedEstimator):
        share = evidence.raised / float(tally.absolute[i])
        yield trust_rules.floor_share(share, ground.floor, ground.floor_share)
    if ground.contexts.names:
        found = imbalance(evidence.balance, ground.contexts)
        yield trust_rules.covariate_balance(found, ground.contexts.names)


def support_checks(plan: Plan, ground: Ground, evidence: Evidence) -> Iterator[Check | str]:
    """Yield the checks of where the policy's doses lie."""
    n, support, estimator = ground.contexts.n, ground.support, plan.question.estimator
    if support is None:
        yield "The support was not checked: no linear-Gaussian model of the doses can be fitted."
    else:
        share = evidence.outside / n
        yield trust_rules.support(share, support.level, surrogate=support.surrogate)
    if isinstance(estimator, Discretized) and evidence.bins is not None:
        yield bin_check(estimator, ground.levels, evidence.bins)
    if ground.bounded and isinstance(estimator, SmoothedEstimator):
        corrected = estimator.boundary is not Boundary.NONE
        yield trust_rules.boundary_mass(evidence.near_bound / n, corrected=corrected)


def bin_check(estimator: Discretized, levels: Array | None, bins: BinsOfDoses) -> Check:
    """Return the check of the bins that a policy's doses fell in, the fullest ones named."""
    order = np.argsort(-bins.counts, kind="stable")
    reached = [int(i) for i in order if bins.counts[i] > 0.0]
    n = float(bins.counts.sum())
    shown = ", ".join(
        estimator.name_of(i) if len(reached) == 1 else f"{estimator.name_of(i)} ({share:.0%})"
        for i in reached[:SHOWN_BINS]
        for share in [float(bins.counts[i]) / n]
    )
    more = len(reached) - SHOWN_BINS
    named = f"{shown} and {more} more" if more > 0 else shown
    logged = None if levels is None else _logged(estimator, levels, reached)
    return trust_rules.dose_bin(bins.low, bins.high, named, bins.off / n, logged)


def _logged(estimator: Discretized, levels: Array, reached: Sequence[int]) -> str:
    """Return the levels in some bins."""
    there = levels[np.isin(estimator.bin_of(levels), reached)]
    return ", ".join(f"{level:.6g}" for level in there) or "no dose"


def smoothing_checks(joint: Joint, plan: Plan) -> Iterator[Check | str]:
    """Yield the checks of what the bandwidth and the outcome model do to the estimate."""
    k, v, se = len(plan.path), joint.values, joint.se
    if k > 1:
        moved = float(np.nanmax(v[:k]) - np.nanmin(v[:k]))
        yield trust_rules.bandwidth_sensitivity(in_se(moved, float(se[0]), v[0]))
    if not plan.corrected:
        return
    if not (joint.tally.purity[k:] >= _PURITY).all():
        yield "The bias-corrected estimate was not compared: its weights cancel at this bandwidth."
        return
    yield trust_rules.smoothing_gap(in_se(v[0] - v[k], float(se[k]), v[0]))
    if len(plan.corrected) > 1:
        gap_se = difference_se(joint.covariance, k, k + 1)
        yield trust_rules.outcome_model_gap(in_se(v[k] - v[k + 1], gap_se, v[0]))
    elif isinstance(plan.question.estimator, DoublyRobust):
        yield (
            "The outcome model was not left out for comparison: "
            f"`{type(plan.question.estimator).__name__}` weights rows in its own way."
        )


def in_se(difference: float, se: float, value: float) -> float:
    """Return |difference|/se, 0 for a difference that is rounding of ``value``."""
    size = abs(float(difference))
    if size <= _ROUNDING * abs(value):
        return 0.0
    return size / se if se > 0.0 else math.inf
