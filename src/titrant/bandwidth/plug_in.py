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
(:mod:`titrant.bandwidth.conditional_kde`), at the rows' own (τ(x), x). Known propensities do not
enter: rows carry them at the logged dose only. f is floored like every propensity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_bandwidth, best_factor
from titrant.bandwidth.conditional_kde import dose_density, outcome_moments
from titrant.bandwidth.leave_one_out import sample
from titrant.bandwidth.path import path_search
from titrant.bandwidth.usable import fall_back, moved_inside, usable
from titrant.errors import InvalidArgument
from titrant.estimators.form import has_common_terms

if TYPE_CHECKING:
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
