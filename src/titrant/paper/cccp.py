"""The convex-concave procedure for the triangular kernel: a series of linear programs.

With ℓₐ(u) = max(a, u) the triangular kernel is K(u) = ℓ₋₁ − 2ℓ₀ + ℓ₁ exactly, so the objective
Σcᵢ·K(uᵢ), uᵢ = (φᵢ'β − tᵢ)/h, is a difference G − H of convex functions:

    G = Σ_{c>0} c(ℓ₋₁ + ℓ₁) + Σ_{c<0} 2|c|ℓ₀,    H = Σ_{c>0} 2cℓ₀ + Σ_{c<0} |c|(ℓ₋₁ + ℓ₁).

Each step replaces H by its tangent at β and minimizes the rest, a linear program. As the tangent
lies below H, the objective never increases. A self-normalized estimate Σw·e/Σw is treated by
Dinkelbach's method: c = (e − λ)/q with λ the value at β, so that a step below 0 lowers it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.form import is_piecewise, is_ratio
from titrant.kernels import Boundary, Triangular
from titrant.optimize.constraints import Box, Constraint, Free, limits_of
from titrant.optimize.lbfgs import Solution, Status
from titrant.optimize.sums import AffineSearch

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.optimize.objective import PolicyObjective


_FEASIBLE = 1e-10
"""How far a linear program may miss a constraint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CCCP:
    """The convex-concave procedure, one start after the other."""

    steps: int = 100
    """Linear programs of a run."""
    value_tolerance: float = 1e-9
    """A run has converged when a step lowers the objective by less than this share."""
    constraint: Constraint = field(default_factory=Free)
    """`Free` or a `Box`."""
    progress: Callable[[int, float], None] | None = None
    """Called after each linear program with its number and the value."""

    def __post_init__(self) -> None:
        _check.count(self.steps, "steps", "CCCP")
        _check.nonnegative(self.value_tolerance, "value_tolerance", "CCCP")
        if type(self.constraint) not in (Free, Box):
            rule = "`Free` or a `Box`"
            raise _check.invalid("constraint", "CCCP", rule, self.constraint)

    def minimize(self, objective: PolicyObjective, starts: Array) -> Solution:
        """Return the best end over all starts (m, P)."""
        search = affine_triangular(objective)
        program = Program.of(search, self.constraint)
        runs = [self._run(objective, program, start) for start in starts]
        values = np.array([run.value for run in runs])
        best = runs[int(np.argmin(np.where(np.isfinite(values), values, np.inf)))]
        return Solution(
            params=best.params,
            value=best.value,
            status=best.status,
            starts=starts,
            ends=np.stack([run.params for run in runs]),
            values=values,
            evaluations=sum(run.steps for run in runs),
        )

    def _run(self, objective: PolicyObjective, program: Program, start: Array) -> Run:
        """Return the end of one run."""
        params = self.constraint.project(start[None])[0]
        value = _value(objective, params)
        for step in range(self.steps):
            if not np.isfinite(value):
                return Run(params, value, Status.NOT_FINITE, step)
            trial = program.solve(params, *_target(objective, value))
            if trial is None:
                return Run(params, value, Status.UNSOLVED, step)
            lower = _value(objective, trial)
            decrease = value - lower
            if not decrease > 0:
                return Run(params, value, Status.CONVERGED, step + 1)
            params, value = trial, lower
            if self.progress is not None:
                self.progress(step + 1, value)
            if decrease <= self.value_tolerance * max(1.0, abs(value)):
                return Run(params, value, Status.CONVERGED, step + 1)
        return Run(params, value, Status.OUT_OF_STEPS, self.steps)


@dataclass(frozen=True, slots=True)
class Run:
    """Where a run ended, and how."""

    params: Array
    value: float
    status: Status
    steps: int


@dataclass(frozen=True, slots=True)
class Program:
    """The linear programs of one search: rows u = Uβ − v, and what β must keep."""

    rows: Array
    """U = φ/h (n, P)."""
    offset: Array
    """v = t/h (n,)."""
    weight: Array
    """1/q (n,)."""
    e: Array
    """Residuals (n,)."""
    bounds: Array
    """Lower and upper bounds of β (P, 2)."""

    @classmethod
    def of(cls, search: AffineSearch, constraint: Constraint) -> Program:
        """Lay out the rows of a search."""
        bounds = limits_of(constraint, search.phi.shape[1])
        assert bounds is not None  # noqa: S101  (CCCP takes a box or none)
        return cls(
            search.phi / search.h,
            search.t / search.h,
            1.0 / search.q,
            search.e,
            bounds[0][:2].T,
        )

    def solve(self, params: Array, sign: float, level: float) -> Array | None:
        """Return the minimizer of G minus the tangent of H at β for c = (±e − λ)/q, or None.

        Epigraph variables s stand for the maxima: of both kinks ±1 where c > 0, of the kink 0
        where c < 0.
        """
        from scipy import optimize  # noqa: PLC0415  (scipy only when it is needed)
        from scipy.sparse import csr_array, hstack, identity  # noqa: PLC0415

        c = (sign * self.e - level) * self.weight
        c = c / np.sum(np.abs(c))
        u = self.rows @ params - self.offset
        gain, loss = np.flatnonzero(c > 0), np.flatnonzero(c < 0)
        slope = np.where(c > 0, 2.0 * c * (u > 0), -c * ((u > -1) * 1.0 + (u > 1)))
        index = np.concatenate([gain, gain, loss])
        kinks = np.repeat([-1.0, 1.0, 0.0], [len(gain), len(gain), len(loss)])
        above = hstack([csr_array(self.rows[index]), -identity(len(index), format="csr")])
        linprog: Any = optimize.linprog  # its published types know no sparse matrices
        solved = linprog(
            np.concatenate([-slope @ self.rows, c[gain], c[gain], -2.0 * c[loss]]),
            A_ub=above,
            b_ub=self.offset[index],
            bounds=np.concatenate([self.bounds, np.stack([kinks, np.full(len(kinks), np.inf)]).T]),
            method="highs",
            options={"primal_feasibility_tolerance": _FEASIBLE},
        )
        if solved.x is None:
            return None
        found: Array = np.clip(solved.x[: len(params)], self.bounds[:, 0], self.bounds[:, 1])
        return found


def affine_triangular(objective: PolicyObjective) -> AffineSearch:
    """Return the rows of an objective that a linear program can descend on, or refuse it."""
    search, estimator = objective.statistics, objective.estimator
    if (
        isinstance(search, AffineSearch)
        and type(search.kernel) is Triangular
        and is_piecewise(estimator)
        and search.table is None
        and (search.lower is None or search.boundary is Boundary.NONE)
        and np.isinf([search.low, search.high]).all()
        and not (objective.se_weight or objective.ess_floor or np.any(objective.ridge))
    ):
        return search
    raise InvalidArgument(
        "The convex-concave procedure needs `IPW` or `SelfNormalized` with `Triangular()`, an "
        "`AffineSearch` without table, limits or a correction at bounds, and no penalties. Use "
        "LBFGS for anything else."
    )


def _target(objective: PolicyObjective, value: float) -> tuple[float, float]:
    """Return the sign of e and λ: the level of Σw·e/Σw that the next point must go below."""
    sign = -1.0 if objective.maximize else 1.0
    if not is_ratio(objective.estimator):
        return sign, 0.0
    center = objective.statistics.center if isinstance(objective.statistics, AffineSearch) else 0.0
    return sign, value * objective.scale - sign * center


def _value(objective: PolicyObjective, params: Array) -> float:
    return float(objective(params[None])[0][0])
