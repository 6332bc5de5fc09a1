"""Intervals that know of the smoothing bias, the default: the SE is that of a kernel of order four.

The estimate at the best bandwidth has a bias as large as its standard error, so ±1.96 of these
miss too often. The same estimator with the local quadratic kernel at a slightly smaller bandwidth
has a bias of higher order, and a larger standard error: the price of correcting the bias. That
standard error, with leave-one-out (HC3) residuals and a t quantile, is wide enough around the
estimate itself, which has the smaller error of the two and then always lies in its interval. Where
the two differ by more than chance explains, the interval reaches over the difference. At a
kink of the outcome the bias is in proportion to h and no kernel removes it; where the bandwidth
path shows one, h shrinks more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import CLEAR_KINK
from titrant.estimators import Question, SmoothedEstimator
from titrant.estimators.form import is_ratio
from titrant.estimators.joint import Ask, GroupSums, asked
from titrant.inference.base import IntervalMethod, StudentInference
from titrant.kernels import Boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators import Joint, Rows
    from titrant.estimators.joint import Search

SHRINK = 0.84
"""The bandwidth of the interval in units of h: it covers 95 % over the calibration designs."""
AT_KINK = 0.6
"""The same where the outcome has a kink at the policy's dose, which no smooth kernel corrects."""
_PURITY = 0.5
"""Below this |Σw|/Σ|w| positive and negative weights cancel: the order-four fit is not usable."""
_FEWEST = 2
"""Nor is a fit to one row, which leaves no residual to judge it by."""
_FALLBACK = 0.5
"""Then the second-order kernel at half the bandwidth stands in: a quarter of the bias."""
_SMALLEST = 0.05
"""Floor under 1 − leverage, so that one dominating row cannot make the interval infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustBiasCorrected(IntervalMethod):
    """v ± t·SE, the SE (HC3) and t quantile those of the local quadratic fit at ``shrink`` × h.

    The SE is larger where that fit and v differ by more than chance explains: see `widening`.

    ``shrink`` = .84 covers 95 % over the calibration designs; .71 is the conservative choice.
    ``at_kink`` takes its place as far as the bandwidth was chosen with evidence of a kink.
    ``recentered`` puts the interval around the bias-corrected fit instead of the value, which may
    then lie outside. Estimators without a bandwidth have no smoothing bias and are kept as they
    are.
    """

    shrink: float = SHRINK
    at_kink: float = AT_KINK
    recentered: bool = False

    def __post_init__(self) -> None:
        _check.positive(self.shrink, "shrink", "RobustBiasCorrected")
        _check.positive(self.at_kink, "at_kink", "RobustBiasCorrected")

    def search(self, point: Joint) -> Search[StudentInference]:
        """Return centers, joint covariance and degrees of freedom, in two passes over the rows."""
        answers = yield from corrected_answers(point, self.shrink, self.at_kink)
        questions, means = [a.question for a in answers], [a.mean for a in answers]
        found = yield Ask(partial(influence_sums, questions, means, point.rows))
        n, comoment = point.rows, found.comoment()
        corrected = np.array([a.value for a in answers])
        degrees = np.array([a.degrees for a in answers])
        covariance = comoment / n**2 + point.models
        if not self.recentered:
            factor = widening(point, corrected, np.diagonal(covariance))
            covariance = covariance * np.outer(factor, factor)
        return StudentInference(
            method="robust bias-corrected t",
            centers=corrected if self.recentered else point.values,
            covariance=covariance,
            degrees=point.degrees_with_models(np.diagonal(comoment) / n**2, degrees),
            notes=tuple(a.note for a in answers),
        )


def widening(point: Joint, corrected: Array, variance: Array) -> Array:
    """Return by how much an interval around the value must be wider than by its corrected fit (m,).

    The value v and the corrected fit c differ by chance, with a variance of about se_R² − se², and
    by the bias. What chance does not explain is bias that the interval has to reach over:
    s² = max(se_R², se² + max(0, (v − c)² − max(0, se_R² − se²))).
    """
    own = np.diagonal(point.covariance)
    bias = np.maximum((point.values - corrected) ** 2 - np.maximum(variance - own, 0.0), 0.0)
    reach = np.maximum(variance, own + bias)
    return np.sqrt(np.divide(reach, variance, out=np.ones_like(reach), where=variance > 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow(IntervalMethod):
    """v ± t·s, s² = (1 − a)·se² + a·(se_R² + (v − c)²): both fits combined, a = ``share``.

    se is the standard error of the value v, (c, se_R) the bias-corrected fit. About an eighth
    narrower than `RobustBiasCorrected()` and as good where the nuisances are sound; where they are
    not, it misses more often, since a narrower interval hides less of an error it does not know.
    """

    share: float = 0.3

    def __post_init__(self) -> None:
        _check.probability(self.share, "share", "Narrow")

    def search(self, point: Joint) -> Search[StudentInference]:
        """Return centers, joint covariance and degrees of freedom, in two passes over the rows."""
        corrected = yield from RobustBiasCorrected(recentered=True).search(point)
        gap = point.values - corrected.centers
        wide = corrected.covariance + np.outer(gap, gap)
        return replace(
            corrected,
            method="narrow t",
            centers=point.values,
            covariance=(1.0 - self.share) * point.covariance + self.share * wide,
        )


@dataclass(frozen=True, slots=True)
class Estimated:
    """A question, its value, mean terms (k,) and degrees of freedom."""

    question: Question
    value: float
    mean: Array
    degrees: float
    note: str | None
    """What stands in for the bias-corrected question, if anything does."""

    @classmethod
    def of(cls, joint: Joint, i: int, note: str | None = None) -> Estimated:
        """Return answer i of several."""
        degrees = float(joint.tally.degrees_of_freedom[i])
        return cls(joint.questions[i], float(joint.values[i]), joint.mean(i), degrees, note)


def corrected_answers(
    point: Joint, shrink: float = SHRINK, at_kink: float = AT_KINK
) -> Search[list[Estimated]]:
    """Return the bias-corrected answers, or what stands in for them, in one pass over the rows.

    Where the order-four weights cancel or reach fewer than two rows, that is the second-order
    kernel at h/2; where that cancels (it may, at a bound) or reaches too few, the estimate itself.
    """
    m = len(point.questions)
    corrected = [corrected_question(q, shrink, at_kink) for q in point.questions]
    halved = [plain_question(q, _FALLBACK) for q in point.questions]
    both = yield from asked([*corrected, *halved])
    usable = (both.tally.count >= _FEWEST) & (both.tally.purity >= _PURITY)

    def best(i: int) -> Estimated:
        if usable[i]:
            return Estimated.of(both, i)
        if usable[m + i]:
            return Estimated.of(both, m + i, "second-order kernel at h/2")
        return Estimated.of(point, i, "second-order kernel at h, its smoothing bias not corrected")

    return [best(i) for i in range(m)]


def corrected_question(
    question: Question, shrink: float = SHRINK, at_kink: float = AT_KINK
) -> Question:
    """Return the question by the local quadratic kernel at ``shrink`` × h, less at a kink."""
    if question.exact or not isinstance(question.estimator, SmoothedEstimator):
        return question
    estimator = question.estimator.with_boundary(Boundary.QUADRATIC)
    factor = shrink + (min(at_kink, shrink) - shrink) * min(question.kink / CLEAR_KINK, 1.0)
    return replace(question, estimator=estimator, scale=question.scale.times(factor))


def plain_question(question: Question, shrink: float) -> Question:
    """Return the question as it is, at ``shrink`` × h."""
    return replace(question, scale=question.scale.times(shrink))


@dataclass(frozen=True, slots=True)
class Comoment:
    """Σᵢ φᵢφᵢᵀ (m, m) over some rows, φ the influence functions of m questions."""

    of_rows: Array

    def __add__(self, other: Comoment) -> Comoment:
        """Return that of both sets of rows."""
        return Comoment(self.of_rows + other.of_rows)

    def comoment(self) -> Array:
        """Return Σφφᵀ (m, m)."""
        return self.of_rows


@dataclass(frozen=True, slots=True)
class GroupedInfluence:
    """Sums over each group of ω times the `parts` of m questions."""

    sums: GroupSums
    shares: Array
    """1/n of the rows that each question is about (m,)."""

    def __add__(self, other: GroupedInfluence) -> GroupedInfluence:
        """Return those of both sets of rows."""
        return GroupedInfluence(self.sums + other.sums, self.shares)

    def comoment(self) -> Array:
        """Return Σφφᵀ (m, m) over groups."""
        phi = left_out(self.sums.sums, self.shares)
        return np.asarray(phi.T @ phi)


def influence_sums(
    questions: Sequence[Question], means: Sequence[Array], n: int, rows: Sequence[Rows]
) -> Comoment | GroupedInfluence:
    """Return what is kept of some rows for Σφφᵀ over all n: of rows, or of groups."""
    one = rows[questions[0].policy]
    each = []
    for q, mean in zip(questions, means, strict=True):
        each.append(parts(q, mean, n, rows[q.policy]))
    if one.alike:
        phi = np.stack([_row_left_out(own) for own in each], axis=1)
        return Comoment(phi.T @ phi)
    omega = one.counts[:, None]
    columns = np.hstack([omega * own for own in each])
    pairs = zip(questions, means, strict=True)
    shares = np.array([1.0 / (n * q.share(mean)) for q, mean in pairs])
    if one.group is not None:
        return GroupedInfluence(GroupSums.of(one.group, columns), shares)
    phi = left_out(columns, shares)
    return Comoment(phi.T @ phi)


def influence(question: Question, mean: Array, n: int, rows: Rows) -> Array:
    """Return φ (n,), the influence of each row on the estimate, the row itself left out (HC3).

    Self-normalized: φᵢ = bᵢ − m₀ + n·ℓᵢ(eᵢ − m₁/m₂)/(1 − ℓᵢ), ℓᵢ = wᵢ/Σw; otherwise the delta
    method's ∇value·(termsᵢ − mean).
    """
    return _row_left_out(parts(question, mean, n, rows))


def _row_left_out(found: Array) -> Array:
    base, own, leverage, _ = found.T
    return np.asarray(base + own / np.maximum(1.0 - leverage, _SMALLEST))


def parts(question: Question, mean: Array, n: int, rows: Rows) -> Array:
    """Return b − m₀, w(e − m₁/m₂)/m₂, ℓ = w/Σw and 1/n of each row (n, 4).

    Of an estimator that is no ratio, the delta method's ∇value·(terms − mean), 0, 0 and 1/n. Of a
    part of the log, b − m₀ is divided by its share and n is that of its rows; others have 0.
    """
    terms = question.terms(rows)
    found = np.zeros((4, len(terms))).T  # what follows goes column by column
    inside = 1.0 if question.part is None else terms[:, -1]
    share = question.share(mean)
    if is_ratio(question.estimator):
        found[:, 0] = (terms[:, 0] - inside * (mean[0] / share)) / share
        found[:, 1] = (terms[:, 1] - terms[:, 2] * (mean[1] / mean[2])) / mean[2]
        found[:, 2] = terms[:, 2] / (n * mean[2])
    else:
        found[:, 0] = (terms - mean) @ question.gradient(mean)
    found[:, 3] = inside / (n * share)
    return found


def left_out(columns: Array, shares: Array) -> Array:
    """Return φ (G, m) of groups, each left out, from sums of ω·`parts` (G, 4m).

    With N = Σω of the group over all, and 1/n that of a row (``shares``, of each question),
    φ = (b − m₀)(1 − 1/n)/(1 − N) + w(e − m₁/m₂)/(m₂(1 − L)): of n rows that are groups of their
    own and count alike, that is `influence`.
    """
    base, own, leverage, share = (columns[:, k::4] for k in range(4))
    alone = (1.0 - shares) / np.maximum(1.0 - share, _SMALLEST)
    return np.asarray(base * alone + own / np.maximum(1.0 - leverage, _SMALLEST))
