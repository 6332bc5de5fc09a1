"""The numbers behind a trust report, gathered in one pass over the rows for all policies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.estimators import Discretized, DoublyRobust, SelfNormalized, SmoothedEstimator
from titrant.estimators.form import has_common_terms, has_weighted_terms, is_robust_ratio
from titrant.estimators.joint import Ask, Tally, joint_estimates, statistics_of
from titrant.estimators.weight import weight
from titrant.inference.base import difference_se
from titrant.inference.diagnostics import Diagnostics
from titrant.inference.rbc import corrected_question
from titrant.inference.trust import rules
from titrant.inference.trust.balance import balance_sums, binned_imbalance, binned_sums, imbalance
from titrant.kernels import Boundary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from titrant._types import Array
    from titrant.estimators import Estimator, Joint, Question, Rows
    from titrant.estimators.joint import AnyStatistics, Search
    from titrant.inference.diagnostics import Check
    from titrant.inference.trust.balance import Bins, Codes, Contexts
    from titrant.inference.trust.support import Support
    from titrant.kernels import Scale

# The tail index of weights: how fast the largest ones grow with the number of rows.
#
# Beyond a high threshold the excesses of almost any law look generalized Pareto with shape k. Their
# mean exists for k < 1 and their variance for k < ½; in practice weighted means are reliable up to
# about k = .7 (Vehtari, Simpson, Gelman, Yao & Gabry 2024, Pareto smoothed importance sampling).


_FEWEST = 5
"""Weights without which a tail cannot be fitted."""
_PRIOR_ROWS, _PRIOR_SHAPE = 10, 0.5
"""A weak prior, worth ten weights at k = ½, steadies the index of a short tail."""
_NEARLY_EXPONENTIAL = 1e-100
"""Stands in for θ = 0, the exponential tail, where θ/k(θ) is 0/0."""
_ROUNDING = 1e-12
"""Excesses below this share of the largest weight are rounding: the weights are equal."""


def tail_index(largest: Array, count: int) -> float | None:
    """Return k̂ of the tail of ``count`` weights, from the ``largest`` of them in decreasing order.

    The tail is the M = min(count/5, 3√count) largest, as far as they were kept; the next one is
    the threshold. None when fewer than 5 remain or when they are all equal.
    """
    size = min(int(min(0.2 * count, 3.0 * np.sqrt(count))), len(largest) - 1)
    if size < _FEWEST:
        return None
    excess = (largest[:size] - largest[size])[::-1]
    if excess[_quartile(size)] <= _ROUNDING * largest[0]:
        return None
    k = pareto_shape(excess / excess[-1])
    return float((size * k + _PRIOR_ROWS * _PRIOR_SHAPE) / (size + _PRIOR_ROWS))


def pareto_shape(x: Array) -> float:
    """Return the shape k of excesses x (n,), increasing and > 0, by Zhang & Stephens (2009).

    With θ = −k/σ the profile likelihood of n excesses is ℓ(θ) = n(log(−θ/k(θ)) − k(θ) − 1),
    k(θ) = mean log(1 − θx). The estimate is k at the posterior mean of θ over a grid of
    30 + √n quantiles of a prior set by the maximum and the first quartile of x.
    """
    n = len(x)
    m = 30 + int(np.sqrt(n))
    spread = 1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    theta = 1.0 / x[-1] + spread / (3.0 * x[_quartile(n)])
    theta = np.where(theta == 0.0, _NEARLY_EXPONENTIAL, theta)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    likelihood = n * (np.log(-theta / k) - k - 1.0)
    weight = np.exp(likelihood - likelihood.max())
    return float(np.log1p(-(weight @ theta / weight.sum()) * x).mean())


def _quartile(n: int) -> int:
    """Return the place of the first quartile among n increasing numbers."""
    return int(n / 4 + 0.5) - 1


# Whether the outcome jumps at the policy's dose.
#
# A threshold in the doses, such as a package size or a rule of payment, may make the outcome jump
# exactly where a policy puts its dose. A kernel around the dose averages both sides, and no
# bandwidth helps. Seen from below and from above, by the linear boundary kernel whose bound is the
# policy's own dose, the residuals then have two different values. A steep bend looks alike at one
# bandwidth, but its two values come together as the bandwidth shrinks; those of a jump do not.

NARROW = 0.5
"""The smaller of the two bandwidths, in units of h."""
FEWEST = (6.0, 3.0)
"""Effective rows that a side needs at h and at the smaller bandwidth."""


@dataclass(frozen=True, slots=True)
class Jump:
    """The residuals just above the policy's dose less those just below."""

    size: float
    se: float
    narrow: float
    """The size at the smaller bandwidth."""

    @classmethod
    def of(cls, sums: Array) -> Self | None:
        """Return the jump from the sums of `side_sums`; None if a side has too few rows."""
        w, we, w2, w2e, w2e2 = np.moveaxis(sums, -1, 0)
        ess = np.divide(w**2, w2, out=np.zeros_like(w), where=w2 > 0.0)
        if (w <= 0.0).any() or (ess < np.array(FEWEST)[:, None]).any():
            return None
        mean = we / w
        variance = np.maximum(w2e2 - 2.0 * mean * w2e + mean**2 * w2, 0.0) / w**2
        size = mean[:, 1] - mean[:, 0]
        return cls(float(size[0]), float(np.sqrt(variance[0].sum())), float(size[1]))


def side_sums(rows: Rows, question: Question) -> Array | None:
    """Return Σw, Σwe, Σw², Σw²e, Σw²e² at h and h/2, of rows below and above τ; (2, 2, 5).

    Rows whose dose is τ itself are on neither side. None for vector doses, which have no sides,
    and for an estimator that weights rows in a way of its own.
    """
    estimator, scale = question.estimator, question.scale
    if rows.tau.shape[1] > 1 or question.exact or not has_common_terms(estimator):
        return None
    rows = rows.smoothed()
    reach = estimator.kernel.support / float(scale.inverse_root[0, 0])
    distance = np.abs(rows.t[:, 0] - rows.tau[:, 0])
    near = _bounded_at_tau(rows.take(np.flatnonzero((distance > 0.0) & (distance <= reach))))
    e = estimator.baseline(near)[1]
    above = near.t[:, 0] > near.tau[:, 0]
    found = np.zeros((2, 2, 5))
    for i, h in enumerate((scale, scale.times(NARROW))):
        w = weight(near, estimator.kernel, Boundary.LINEAR, h)
        w = w if near.omega is None else near.omega * w
        each = np.stack([w, w * e, w**2, w**2 * e, w**2 * e**2])
        for side, there in enumerate((~above, above)):
            found[i, side] = each @ there
    return found


def _bounded_at_tau(rows: Rows) -> Rows:
    """Return rows off the policy's dose, each as if that dose were a bound of its own side."""
    infinite = np.broadcast_to(np.inf, rows.tau.shape)
    lower = -infinite if rows.lower is None else rows.lower
    upper = infinite if rows.upper is None else rows.upper
    above = rows.t > rows.tau
    return replace(
        rows, lower=np.where(above, rows.tau, lower), upper=np.where(above, upper, rows.tau)
    )


# The numbers behind a trust report, gathered in one pass over the rows for all policies.

FACTORS = (1.0, 0.5, 0.5**0.5, 2.0**0.5, 2.0)
"""The bandwidths, in units of h, over which an estimate should hold; the first is its own."""
_PURITY = 0.5
"""Below this |Σw|/Σ|w| positive and negative weights cancel: a local quadratic fit is unusable."""
SHOWN_BINS = 3
"""Bins that a check names."""
SAME_DOSE = 1e-9
"""Doses closer than this share of the largest one are the same but for rounding."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What is known of a log before any policy is looked at."""

    contexts: Contexts
    bins: Bins
    support: Support | None
    floor: float
    floor_share: float
    bounded: bool
    modeled: bool
    """Whether propensities are fitted, not given."""
    outcome_ends: tuple[float, float]
    """The least and the greatest outcome."""
    evenness: float | None
    """(Σω)²/(nΣω²) of the rows' weights, None without."""
    seen: float | None
    """The share of rows whose outcome is known, None if it is in all."""
    outcomes: tuple[Check | str, ...] = ()
    """What was found about outcomes and doses, for every estimate."""
    columns: tuple[Check | str, ...] = ()
    """What was found about contexts, for every estimate that adjusts for them."""
    ranks: tuple[Check | str, ...] = ()
    """What was found about the propensities, for every estimate that uses them."""
    levels: Array | None = None
    """The logged doses (k,) where there are few of them."""
    dose_ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the greatest logged dose, of one."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What to ask of the rows about one estimate."""

    question: Question
    mean_weight: float
    mean: Array
    """The mean terms (k,)."""
    path: tuple[Question, ...]
    """The same question at the bandwidths of `FACTORS`, the first being the estimate itself."""
    corrected: tuple[Question, ...]
    """The bias-corrected question, and the same without outcome model if it has one."""

    @classmethod
    def of(cls, point: Joint, i: int, facts: LogFacts) -> Self:
        """Return what can be asked about answer i."""
        question = point.questions[i]
        known = question, float(point.tally.mean[i]), point.mean(i)
        if not isinstance(question.estimator, SmoothedEstimator):
            return cls(*known, (question,), ())
        if question.exact:  # nothing is smoothed; the outcome model can be left out all the same
            return cls(*known, (question,), (question, *without_outcome_model(question)))
        path = tuple(replace(question, scale=question.scale.times(f)) for f in FACTORS)
        # A full bandwidth matrix has no correction at bounds, hence no bias-corrected estimate.
        if facts.bounded and question.scale.axes is None:
            return cls(*known, path, ())
        versions = (question, *without_outcome_model(question))
        corrected = tuple(corrected_question(q) for q in versions)
        return cls(*known, path, corrected)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is kept of the rows about one estimate; it adds up over blocks."""

    answers: AnyStatistics
    """Of the questions of the inquiry: its path, then the corrected ones."""
    balance: Array
    """See `balance_sums`, (2, p)."""
    binned: Array
    """See `binned_sums`, (4, B)."""
    influence: Tally
    """Of how far the weight of each row moves the estimate."""
    raised: Array
    """Σ|w| and the summed influence of the rows whose propensity the floor raised (2,)."""
    outside: int
    """Rows whose policy dose lies outside the support."""
    near_bound: int
    """Rows whose policy dose lies within h of a bound."""
    sides: Array | None = None
    """See `side_sums`, where rows have two sides."""
    bins: BinsOfDoses | None = None
    """In which bins the policy's doses fell, for an estimator that has bins."""
    moved: MovedDoses | None = None
    """Where doses went, for a policy that changes the logged one."""

    def __add__(self, other: Evidence) -> Evidence:
        """Return the evidence of both sets of rows."""
        return Evidence(
            self.answers + other.answers,
            self.balance + other.balance,
            self.binned + other.binned,
            self.influence + other.influence,
            self.raised + other.raised,
            self.outside + other.outside,
            self.near_bound + other.near_bound,
            None if self.sides is None or other.sides is None else self.sides + other.sides,
            None if self.bins is None or other.bins is None else self.bins + other.bins,
            None if self.moved is None or other.moved is None else self.moved + other.moved,
        )


@dataclass(frozen=True, slots=True)
class MovedDoses:
    """Where doses went under a policy that changes the logged one: shares are of rows that count.

    Sums of ω over all rows, and over those that keep their dose at a bound, whose new dose lies
    beyond all logged ones, and below 0.
    """

    sums: Array

    @classmethod
    def of(cls, rows: Rows, ends: tuple[float, float]) -> Self | None:
        """Return those of some rows; None if the policy gives each context its dose."""
        if rows.kept is None:
            return None
        tau, low = rows.tau[:, 0], ends[0]
        beyond = (tau < low) | (tau > ends[1])
        each = np.stack([np.ones(len(tau)), rows.kept, beyond, (tau < 0.0) & (low >= 0.0)])
        return cls(each @ rows.counts)

    def __add__(self, other: MovedDoses) -> MovedDoses:
        """Return those of both sets of rows."""
        return MovedDoses(self.sums + other.sums)

    def checks(self, ends: tuple[float, float]) -> Iterator[Check]:
        """Yield the checks of where doses went."""
        kept, beyond, negative = (self.sums[1:] / self.sums[0]).tolist()
        yield rules.kept_doses(kept)
        yield rules.beyond_logged(beyond, negative, *ends)


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
class AllEvidence:
    """The evidence about several estimates."""

    parts: tuple[Evidence, ...]

    def __add__(self, other: AllEvidence) -> AllEvidence:
        """Return the evidence of both sets of rows, estimate by estimate."""
        return AllEvidence(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def diagnose(point: Joint, facts: LogFacts) -> Search[list[Diagnostics]]:
    """Return the trust report of each answer in ``point``, in one pass over the rows."""
    inquiries = [Inquiry.of(point, i, facts) for i in range(len(point.questions))]
    gathered = yield Ask(partial(evidence_about, inquiries, facts))
    return [
        diagnosis(point, i, inquiry, facts, evidence)
        for i, (inquiry, evidence) in enumerate(zip(inquiries, gathered.parts, strict=True))
    ]


def evidence_about(
    inquiries: Sequence[Inquiry], facts: LogFacts, rows: Sequence[Rows]
) -> AllEvidence:
    """Return the evidence of some rows about every estimate."""
    codes = facts.bins.codes(rows[0].need("x", "balance"))
    return AllEvidence(tuple(map(partial(evidence_of, facts, rows, codes), inquiries)))


def evidence_of(facts: LogFacts, rows: Sequence[Rows], codes: Codes, inquiry: Inquiry) -> Evidence:
    """Return the evidence of some rows, in bins (n, p), about one estimate."""
    own, estimator = rows[inquiry.question.policy], inquiry.question.estimator
    terms = estimator.terms(own, inquiry.question.scale)
    plain, influence = estimator.weights(terms), weighted_influence(inquiry, terms)
    residuals = terms[:, 1] if has_weighted_terms(estimator) else None
    w = plain
    if own.omega is not None:
        w, influence = own.omega * plain, own.omega * influence
        residuals = None if residuals is None else own.omega * residuals
    outside = 0 if facts.support is None else np.count_nonzero(facts.support.outside(own))
    bins = (
        BinsOfDoses.of(estimator, facts.levels, own.tau[:, 0])
        if isinstance(estimator, Discretized)
        else None
    )
    return Evidence(
        statistics_of((*inquiry.path, *inquiry.corrected), rows),
        balance_sums(
            plain,
            own.need("x", "balance"),
            inquiry.mean_weight,
            facts.contexts,
            1.0 if own.omega is None else own.omega,
        ),
        binned_sums(codes, int(facts.bins.starts[-1]), w, residuals, own.omega),
        Tally.of(influence[:, None]),
        raised_weight(w, influence, own),
        int(outside),
        int(np.count_nonzero(within_reach_of_bound(own.smoothed(), inquiry.question.scale))),
        side_sums(own, inquiry.question),
        bins,
        MovedDoses.of(own, facts.dose_ends),
    )


def weighted_influence(inquiry: Inquiry, terms: Array) -> Array:
    """Return how far n times the estimate moves with the weight of each row (n,).

    w·(e − Σwe/Σw)/w̄ of a ratio; the baseline is not weighted. Terms of another kind have no such
    parts: theirs is the row's whole influence.
    """
    estimator = inquiry.question.estimator
    slope = estimator.gradient(inquiry.mean)
    if has_weighted_terms(estimator):
        return np.asarray(terms[:, 1:] @ slope[1:])
    return np.asarray((terms - inquiry.mean) @ slope)


def raised_weight(w: Array, influence: Array, rows: Rows) -> Array:
    """Return Σ|w| and Σ influence over the rows whose propensity is the floor itself (2,)."""
    if rows.q is None:
        return np.zeros(2)
    raised = rows.q <= rows.floor
    return np.array([np.abs(w[raised]).sum(), influence[raised].sum()])


def within_reach_of_bound(rows: Rows, scale: Scale) -> Array:
    """Return which rows (n,) have a policy dose less than h from a bound, in any dose."""
    if rows.lower is None or rows.upper is None:
        return np.zeros(len(rows.y))
    root = np.linalg.inv(scale.inverse_root)
    h = np.sqrt(np.diagonal(root @ root))
    near = ((rows.tau - rows.lower < h) | (rows.upper - rows.tau < h)).any(axis=1)
    return np.asarray(near)


def without_outcome_model(question: Question) -> Iterator[Question]:
    """Yield the question by the self-normalized estimator, if it is a doubly robust one.

    One with terms of its own has no such twin among the estimators here.
    """
    e = question.estimator
    if isinstance(e, DoublyRobust) and has_common_terms(e):
        plain = SelfNormalized(kernel=e.kernel, clip=e.clip, boundary=e.boundary)
        yield replace(question, estimator=plain)


def diagnosis(
    point: Joint, i: int, inquiry: Inquiry, facts: LogFacts, evidence: Evidence
) -> Diagnostics:
    """Return all checks of answer i that apply, and notes on those that could not be made."""
    joint = joint_estimates((*inquiry.path, *inquiry.corrected), evidence.answers)
    return Diagnostics.of(
        [
            *facts.outcomes,
            *(facts.columns if adjusts(inquiry.question.estimator) else ()),
            *weight_checks(point, i, inquiry, facts, evidence),
            *support_checks(inquiry, facts, evidence),
            *smoothing_checks(joint, inquiry, evidence),
            *jump_checks(point, i, evidence),
            rules.value_range(float(point.values[i]), *facts.outcome_ends),
            *(facts.ranks if inquiry.question.estimator.uses_propensity else ()),
        ]
    )


def adjusts(estimator: Estimator) -> bool:
    """Whether an estimator adjusts for contexts."""
    return estimator.uses_propensity or estimator.uses_outcome_model


def weight_checks(
    point: Joint, i: int, inquiry: Inquiry, facts: LogFacts, evidence: Evidence
) -> Iterator[Check | str]:
    """Yield the checks of the weights; the direct method weights all rows alike."""
    tally = point.tally
    largest = tally.largest[i]
    one, five, ten = (float(largest[:k].sum() / tally.absolute[i]) for k in (1, 5, 10))
    noun = "rows" if point.row_count is None else "groups"
    yield rules.effective_sample_size(float(tally.ess[i]), tally.n, noun)
    if point.row_count is not None:
        yield rules.group_count(tally.n)
    if facts.evenness is not None:
        yield rules.row_weights(facts.evenness, point.rows)
    if facts.seen is not None:
        yield rules.outcomes_seen(facts.seen)
    yield rules.largest_weight_share((one, five, ten))
    # A ratio does not feel a common factor, nor much of the rest if a model explains outcomes; a
    # column of propensities that is off by a factor is wrong all the same.
    estimator = inquiry.question.estimator
    robust = facts.modeled and is_robust_ratio(estimator)
    ratio = is_ratio_of_densities(inquiry, evidence)
    gap = rules.MEAN_WEIGHT_GAP_DR if robust and not ratio else rules.MEAN_WEIGHT_GAP
    yield rules.mean_weight(float(tally.mean[i]), float(tally.mean_se[i]), gap)
    if not inquiry.question.estimator.uses_propensity:
        if inquiry.question.estimator.uses_outcome_model:  # not so the mean of observed outcomes
            yield "The direct method uses no propensities: nothing shows how wrong its model is."
        return
    yield tail_check(point, i, evidence)
    if ratio:
        yield from ratio_checks(point, i, facts)
    se, value = float(point.se[i]), float(point.values[i])
    if isinstance(inquiry.question.estimator, SmoothedEstimator):
        share = float(evidence.raised[0] / tally.absolute[i])
        moved = in_se(evidence.raised[1] / point.rows, se, value)
        yield rules.floor_share(share, facts.floor, facts.floor_share, moved)
    if facts.contexts.names:
        effect = float(np.broadcast_to(point.design_effect, point.values.shape)[i])
        found = imbalance(evidence.balance, facts.contexts, max(effect, 1.0))
        yield rules.covariate_balance(found, facts.contexts.names)
        residuals = has_weighted_terms(inquiry.question.estimator)
        binned = binned_imbalance(
            evidence.binned, facts.bins, residuals=residuals, design_effect=max(effect, 1.0)
        )
        yield rules.binned_balance(binned, facts.bins, max(se, _ROUNDING * abs(value)))


def is_ratio_of_densities(inquiry: Inquiry, evidence: Evidence) -> bool:
    """Whether weights are ratios of densities: the policy changes the dose, without a kernel."""
    return evidence.moved is not None and inquiry.question.exact


def ratio_checks(point: Joint, i: int, facts: LogFacts) -> Iterator[Check]:
    """Yield the checks of weights that are ratios of densities, which have limits of their own."""
    tally = point.tally
    # What unequal weights and missing outcomes take is not the policy's doing.
    worth = tally.n * (facts.evenness or 1.0) * (facts.seen or 1.0)
    yield rules.ratio_rows(min(float(tally.ess[i]) / worth, 1.0))
    index = tail_index(tally.largest[i], int(tally.count[i]))
    if index is not None:
        yield rules.ratio_tail(index)


def tail_check(point: Joint, i: int, evidence: Evidence) -> Check | str:
    """Return the check of the tail of the rows' influence, or why there is none."""
    largest, n = evidence.influence.largest[0], evidence.influence.n
    index = tail_index(largest, int(evidence.influence.count[0]))
    if index is None:
        return "The tail of the weights was not fitted: too few weights, or all of one size."
    variance = float(n * point.se[i]) ** 2
    share = float((largest[:5] ** 2).sum()) / variance if variance > 0.0 else 0.0
    return rules.influence_tail(index, share)


def jump_checks(point: Joint, i: int, evidence: Evidence) -> Iterator[Check | str]:
    """Yield the check of a jump at the policy's dose, where rows have two sides."""
    if evidence.sides is None:
        return
    found = Jump.of(evidence.sides)
    if found is None:
        yield "A jump at the policy's dose was not looked for: too few doses close by on one side."
        return
    effect = float(np.broadcast_to(point.design_effect, point.values.shape)[i])
    size = in_se(found.size, found.se * math.sqrt(max(effect, 1.0)), float(point.values[i]))
    yield rules.dose_jump(found.size, size, found.narrow)


def support_checks(inquiry: Inquiry, facts: LogFacts, evidence: Evidence) -> Iterator[Check | str]:
    """Yield the checks of where the policy's doses lie."""
    n, support, estimator = facts.contexts.n, facts.support, inquiry.question.estimator
    if support is None:
        yield "The support was not checked: no linear-Gaussian model of the doses can be fitted."
    else:
        share = evidence.outside / n
        yield rules.support(share, support.level, surrogate=support.surrogate)
    if evidence.moved is not None:
        yield from evidence.moved.checks(facts.dose_ends)
    if isinstance(estimator, Discretized) and evidence.bins is not None:
        yield bin_check(estimator, facts.levels, evidence.bins)
    if facts.bounded and isinstance(estimator, SmoothedEstimator) and inquiry.question.smoothed:
        corrected = estimator.boundary is not Boundary.NONE
        yield rules.boundary_mass(evidence.near_bound / n, corrected=corrected)


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
    return rules.dose_bin(bins.low, bins.high, named, bins.off / n, logged)


def _logged(estimator: Discretized, levels: Array, reached: Sequence[int]) -> str:
    """Return the levels in some bins."""
    there = levels[np.isin(estimator.bin_of(levels), reached)]
    return ", ".join(f"{level:.6g}" for level in there) or "no dose"


def smoothing_checks(joint: Joint, inquiry: Inquiry, evidence: Evidence) -> Iterator[Check | str]:
    """Yield the checks of what the bandwidth and the outcome model do to the estimate."""
    k, v, se = len(inquiry.path), joint.values, joint.se
    if k > 1:
        moved = float(np.nanmax(v[:k]) - np.nanmin(v[:k]))
        yield rules.bandwidth_sensitivity(in_se(moved, float(se[0]), v[0]))
    if not inquiry.corrected:
        return
    if not (joint.tally.purity[k:] >= _PURITY).all():
        yield "The bias-corrected estimate was not compared: its weights cancel at this bandwidth."
        return
    if inquiry.question.smoothed:
        yield rules.smoothing_gap(in_se(v[0] - v[k], float(se[k]), v[0]))
    if len(inquiry.corrected) > 1:
        gap_se = difference_se(joint.covariance, k, k + 1)
        gap = in_se(v[k] - v[k + 1], gap_se, v[0])
        if is_ratio_of_densities(inquiry, evidence):
            sd = float(se[k]) * math.sqrt(joint.moments.n)
            yield rules.ratio_model_gap(gap, in_se(v[k] - v[k + 1], sd, v[0]))
        else:
            yield rules.outcome_model_gap(gap)
    elif isinstance(inquiry.question.estimator, DoublyRobust):
        yield (
            "The outcome model was not left out for comparison: "
            f"`{type(inquiry.question.estimator).__name__}` weights rows in its own way."
        )


def in_se(difference: float, se: float, value: float) -> float:
    """Return |difference|/se, 0 for a difference that is rounding of ``value``."""
    size = abs(float(difference))
    if size <= _ROUNDING * abs(value):
        return 0.0
    return size / se if se > 0.0 else math.inf
