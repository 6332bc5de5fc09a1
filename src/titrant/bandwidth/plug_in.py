"""The paper's plug-in: the formula of the best bandwidth, its unknowns by conditional densities.

    h* = (C₃/(4C₁²n))^{1/5},  C₁ = (κ₂/2)·E[∂²m/∂t²(τ(X), X)],  C₃ = R·E[E[(·)² | τ(X), X]/f],

for d doses h_j = g·sd_j with g^{d+4} = d·C₃/(4C₁²n) in units of sd_j. The square (·)² is that of
the estimator in use; the paper prints y² for all of them:

| estimator             | (·)²                         | m       |
|-----------------------|------------------------------|---------|
| IPW                   | y²  (centered: (y − c)²)     | E[Y]    |
| self-normalized       | (y − V)²                     | E[Y]    |
| doubly robust         | (y − r̂)², less its mean     | E[Y−r̂] |
|                       | when self-normalized         |         |

Conditional moments and f(τ | x) come from Gaussian product kernels in closed form
(below), at the rows' own (τ(x), x). Known propensities do not
enter: rows carry them at the logged dose only. f is floored like every propensity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth, best_factor, rate
from titrant.bandwidth.leave_one_out import sample
from titrant.bandwidth.path import fall_back, moved_inside, path_search, reached, usable
from titrant.errors import InvalidArgument
from titrant.estimators.form import has_common_terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.bandwidth.path import BandwidthPath
    from titrant.estimators import Problem
    from titrant.estimators.joint import Search

_SMALLEST_DENSITY = 1e-12
"""Floor under f in units of 1/∏sd_j, for the user who has set none."""


@dataclass(frozen=True, slots=True)
class PlugInConstants:
    """C₁ and C₃ for bandwidths in units of sd(T): bias C₁g², variance C₃/(n·gᵈ)."""

    c1: float
    c3: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlugIn(BandwidthSelector):
    """The paper's plug-in bandwidth.

    ``as_printed=True`` takes y² and the curvature of E[Y] whatever the estimator, as the paper
    does; it then moves with the zero of the outcome. The constants are means over ``points``
    rows drawn by ``seed``; smoothing is over all rows, so time grows with points × rows.
    ``pilot`` multiplies the normal reference bandwidths of that smoothing, which the paper leaves
    open; where the dose response has a kink, the choice follows it almost in proportion.

    It is here because the paper has it. Smoothing over contexts costs it its accuracy: over the
    test designs its error is about twice that of the best bandwidth.
    """

    as_printed: bool = False
    points: int = 500
    seed: int = 0
    pilot: float = 1.0

    def __post_init__(self) -> None:
        _check.count(self.points, "points", "PlugIn")
        _check.count(self.seed, "seed", "PlugIn", at_least=0)
        _check.positive(self.pilot, "pilot", "PlugIn")

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return h*, moved into the usable bandwidths."""
        path = yield from path_search(problem)
        some = usable(path)
        if not len(some):
            return fall_back(path, problem, "PlugIn", "no usable bandwidth")
        constants, d = self.constants(problem), len(problem.spread)
        wanted = best_factor(constants.c1**2, constants.c3 / problem.n, d)
        g, flag = moved_inside(wanted, path.factors[some[0]], path.factors[some[-1]])
        return Bandwidth(
            h=as_bandwidth(g, problem),
            selector="PlugIn",
            reason=(
                f"(C₃/(4C₁²n))^(1/5) is {wanted:.3g} sd(T) with C₁ = {constants.c1:.3g} and "
                f"C₃ = {constants.c3:.3g} in units of sd(T), n = {problem.n:,}."
            ),
            bias=constants.c1 * g**2,
            se=_standard_error(constants, g, path),
            flag=flag,
        )

    def constants(self, problem: Problem) -> PlugInConstants:
        """Return C₁ and C₃ by kernel estimates at the rows' (τ(x), x)."""
        rows, estimator = problem.rows(), problem.estimator
        if not has_common_terms(estimator):
            owner = type(estimator).__name__
            raise InvalidArgument(
                f"`PlugIn` knows the constants of the kernel's own weight; `{owner}` weights rows "
                "in its own way. Use the default selector, or a number."
            )
        x = rows.need("x", "PlugIn")
        chosen = sample(len(rows.y), self.points, self.seed)
        at = rows.tau[chosen], x[chosen]
        e = rows.y if self.as_printed else estimator.baseline(rows)[1]
        e_at_tau = outcome_moments(e, rows.t, x, *at, pilot=self.pilot)
        centered = estimator.normalized and not self.as_printed
        c = float(e_at_tau.mean.mean()) if centered else 0.0
        square = e_at_tau.square - 2.0 * c * e_at_tau.mean + c * c
        unit, d = float(np.prod(problem.spread)), len(problem.spread)
        floor = max(rows.floor, _SMALLEST_DENSITY / unit)
        f = np.maximum(dose_density(rows.t, x, *at, pilot=self.pilot), floor)
        kernel = estimator.kernel
        return PlugInConstants(
            c1=float(kernel.second_moment / 2 * (e_at_tau.curvature @ problem.spread**2).mean()),
            c3=float(kernel.roughness**d * (square / f).mean() / unit),
        )


def _standard_error(constants: PlugInConstants, g: float, path: BandwidthPath) -> float:
    """Return √(C₃/(n·gᵈ) + Var(b)/n)."""
    kernel_part = constants.c3 / (path.n * g ** len(path.spread))
    return float(np.sqrt(kernel_part + path.baseline_variance))


# ── Conditional moments and densities by Gaussian product kernels, in closed form ─────────────────
# The joint density of columns is estimated with a Gaussian product kernel and the normal reference
# bandwidths b_j = 1.06·sd_j·n^(−1/(4+q)), q the number of columns that vary; dividing by the
# density of the columns given is what statsmodels calls ``KDEMultivariateConditional``. Its
# integrals need no quadrature. With votes
#
#     p_j ∝ ∏ φ((t − t_j)/b_t) ∏ φ((x − x_j)/b_x),  Σp_j = 1,
#
#     E[e | t, x]         = Σp_j e_j                        (Nadaraya–Watson regression)
#     E[(e − c)² | t, x]  = Σp_j (e_j − c)² + b_e²          (the kernel's own spread is part of it)
#     ∂²E[e | t, x]/∂t²   = Σp_j (t_j − t̄)²(e_j − ē)/b_t⁴,  t̄ = Σp_j t_j, ē = Σp_j e_j,
#
# the last because ∂log p_j/∂t = (t_j − t̄)/b_t². Columns are measured in their own sd, so that one
# number is the bandwidth of all.

CELLS = 32_768
"""Votes held at once, points × rows of a block: as many as stay in cache."""


@dataclass(frozen=True, slots=True)
class OutcomeMoments:
    """What is known of e at m points (t, x): mean (m,), square (m,), curvature (m, d)."""

    mean: Array
    """E[e | t, x]."""
    square: Array
    """E[e² | t, x]."""
    curvature: Array
    """∂²E[e | t, x]/∂t_j² of each dose."""


def outcome_moments(
    e: Array, t: Array, x: Array, at_t: Array, at_x: Array, *, pilot: float = 1.0
) -> OutcomeMoments:
    """Return the moments of e at the points (at_t (m, d), at_x (m, p)), by n rows e, t, x.

    `pilot` multiplies the normal reference bandwidths.
    """
    columns = _Columns.of(np.concatenate([t, x], axis=1))
    b = pilot * _normal_reference(len(e), columns.varying + int(np.ptp(e) > 0))
    # Measured from the means: the expansion of a central moment below then loses no digits.
    center = e.mean()
    r, z = e - center, t - t.mean(axis=0)
    features = np.concatenate([np.ones((len(e), 1)), z, z * z], axis=1)
    features = np.concatenate([features, features * r[:, None], (r * r)[:, None]], axis=1)
    at = np.concatenate([at_t, at_x], axis=1)
    averages = np.concatenate(
        [_votes(block, columns.z, b)[0] @ features for block in columns.blocks(at)]
    )
    averages /= averages[:, :1]
    return _moments(averages, t.std(axis=0) * b, center, (e.std() * b) ** 2)


def _moments(averages: Array, b_t: Array, center: float, own: float) -> OutcomeMoments:
    """Return the moments from averages (m, 4d + 3) of 1, z, z², r, zr, z²r, r²."""
    d = len(b_t)
    _, tt, t2, mean, tr, t2r, r2 = np.split(
        averages, np.cumsum([1, d, d, 1, d, d]).tolist(), axis=1
    )
    # Σp(t − t̄)²(e − ē), expanded.
    third = t2r - mean * t2 - 2.0 * tt * (tr - mean * tt)
    mean, r2 = mean[:, 0], r2[:, 0]
    return OutcomeMoments(
        mean=center + mean,
        square=r2 + 2.0 * center * mean + center**2 + own,
        curvature=np.divide(third, b_t**4, out=np.zeros_like(third), where=b_t > 0),
    )


def dose_density(t: Array, x: Array, at_t: Array, at_x: Array, *, pilot: float = 1.0) -> Array:
    """Return f(t | x) (m,) at the points (at_t (m, d), at_x (m, p)), by n rows t, x.

    `pilot` multiplies the normal reference bandwidths.
    """
    both, context = _Columns.of(np.concatenate([t, x], axis=1)), _Columns.of(x)
    b = pilot * _normal_reference(len(t), both.varying)
    at = np.concatenate([at_t, at_x], axis=1)
    joint = [_log_total(block, both.z, b) for block in both.blocks(at)]
    given = [_log_total(block, context.z, b) for block in context.blocks(at_x)]
    unit = np.prod(t.std(axis=0) * b * np.sqrt(2.0 * np.pi))
    return np.asarray(np.exp(np.concatenate(joint) - np.concatenate(given)) / unit)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns that vary, in units of their sd: z (n, varying); constant ones do not matter."""

    z: Array
    keep: NDArray[np.bool_]
    sd: Array

    @classmethod
    def of(cls, columns: Array) -> _Columns:
        sd = columns.std(axis=0)
        keep = np.ptp(columns, axis=0) > 0
        return cls(columns[:, keep] / sd[keep], keep, sd)

    @property
    def varying(self) -> int:
        return int(self.z.shape[1])

    def blocks(self, at: Array) -> Iterator[Array]:
        """Yield the points (m, columns) in the units of z, a few at a time."""
        points = at[:, self.keep] / self.sd[self.keep]
        size = max(1, CELLS // len(self.z))
        for start in range(0, len(points), size):
            yield points[start : start + size]


def _normal_reference(n: int, q: int) -> float:
    """Return 1.06·n^(−1/(4+q)), the bandwidth of each of q columns in units of its sd."""
    return float(1.06 * n ** (-1.0 / (4 + q)))


def _votes(at: Array, z: Array, b: float) -> tuple[Array, Array]:
    """Return w = ∏exp(−½(Δ/b)²) (m, n), over the largest of each point, and its log (m,).

    The largest vote is divided out so that points far from all rows have votes as well.
    """
    log_w = np.zeros((len(at), len(z)))
    for column in range(z.shape[1]):
        difference = at[:, None, column] - z[:, column]
        difference *= difference
        log_w -= difference
    log_w *= 0.5 / b**2
    top = log_w.max(axis=1)
    log_w -= top[:, None]
    return np.exp(log_w, out=log_w), top


def _log_total(at: Array, z: Array, b: float) -> Array:
    """Return log Σ∏exp(−½(Δ/b)²) (m,)."""
    w, top = _votes(at, z, b)
    return np.asarray(top + np.log(w.sum(axis=1)))


# ── The rule of thumb: h = c·sd(T)·n^(−1/(d+4)), blind to the outcome ─────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOfThumb(BandwidthSelector):
    """h = constant·sd(T)·n^(−1/(d+4)): the right rate, a constant for doses that look normal.

    Only where that reaches no two rows is it moved, and flagged.
    """

    constant: float = 1.0

    def __post_init__(self) -> None:
        _check.positive(self.constant, "constant", "RuleOfThumb")

    def factor(self, problem: Problem) -> float:
        """Return h/sd(T)."""
        return self.constant * rate(problem)

    def search(self, problem: Problem) -> Search[Bandwidth]:
        """Return the rule's bandwidth."""
        g, d = self.factor(problem), len(problem.spread)
        path = yield from path_search(problem, np.array([g]))
        if not len(reached(path)):
            why = "no two rows in reach of it"
            return fall_back((yield from path_search(problem)), problem, "RuleOfThumb", why)
        return Bandwidth(
            h=as_bandwidth(g, problem),
            selector="RuleOfThumb",
            reason=f"{self.constant:g} × sd(T) × n^(−1/{d + 4}) with n = {problem.n:,}.",
            se=float(path.se[0]),
        )
