"""Search statistics of several doses at once, or of any estimator, by numpy.

The same sums as the compiled loop of one dose, by the estimator's own terms; each candidate is one
pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators import Rows
from titrant.kernels import Scale
from titrant.optimize import search_statistics, stacked
from titrant.policies import Clipped, ParametricPolicy

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators import Estimator
    from titrant.learn.search import Problem
    from titrant.optimize import SearchStatistics
    from titrant.outcome import CrossFit

STEP = 0.02
"""Of the central differences of an outcome model, in bandwidths of the parameters' units."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Affine(ParametricPolicy):
    """τ = φ·(B·unit): a policy of features φ (n, P), B (P,) for one dose and (P, d) for several."""

    matrix: Array
    unit: Array
    """(1,) or (d,)."""

    def __call__(self, X: Array) -> Array:
        """Return the doses (n,) or (n, d) of features X (n, P)."""
        return X @ (self.matrix * self.unit)

    @property
    def params(self) -> Array:
        """B, row by row."""
        return self.matrix.ravel()

    def with_params(self, params: Array) -> Affine:
        """Return the policy with another B."""
        return Affine(params.reshape(self.matrix.shape), self.unit)

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ·∂τ(φᵢ)/∂B, row by row."""
        return np.asarray((X.T @ (g * self.unit)).ravel())


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSearch:
    """The sums of an estimator's terms for policies τ = φB cut to a range, on n rows."""

    rows: Rows
    phi: Array
    """The features (n, P)."""
    policy: ParametricPolicy
    """Any policy of the class."""
    estimator: Estimator
    scale: Scale
    step: Array
    """Of the differences of r̂ in each dose (d,)."""
    model: CrossFit | None

    @classmethod
    def of(cls, problem: Problem, estimator: Estimator, model: CrossFit | None) -> VectorSearch:
        """Return the search over a problem's policies by an estimator with a fitted model."""
        log, d = problem.log, problem.log.dimension
        logged = None
        if model is not None:
            fold = model.fold(log.first_row, len(log))
            logged = model.predict(fold, log.context, log.doses)
        rows = Rows(
            tau=log.doses,
            t=log.doses,
            y=log.outcome,
            x=log.context,
            center=problem.center,
            q=problem.q,
            lower=log.lower if log.bounded else None,
            upper=log.upper if log.bounded else None,
            r_logged=logged,
            first_row=log.first_row,
            floor=problem.floor,
        )
        size = problem.phi.shape[1]
        start = Affine(np.zeros(size if d == 1 else (size, d)), problem.unit)
        return cls(
            rows=rows,
            phi=problem.phi,
            policy=Clipped(start, *problem.limits),
            estimator=estimator,
            scale=Scale.of(problem.h, d),
            step=STEP * problem.unit,
            model=model,
        )

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P·d)."""
        policies = [self.policy.with_params(p) for p in params]
        tau = np.stack([policy(self.phi).reshape(self.rows.t.shape) for policy in policies])
        value, slope = self._model_at(tau)
        rows = [
            replace(self.rows, tau=tau[j], r_tau=value[j], r_slope=slope[j])
            if self.model is not None
            else replace(self.rows, tau=tau[j])
            for j in range(len(policies))
        ]
        return stacked(
            [
                search_statistics(self.estimator, policy, self.scale, seen, self.phi)
                for policy, seen in zip(policies, rows, strict=True)
            ]
        )

    def _model_at(self, tau: Array) -> tuple[Array, Array]:
        """Return r̂ (m, n) at doses (m, n, d), and ∂r̂/∂t (m, n, d) by central differences."""
        steps = np.diag(self.step)
        moves = np.concatenate([np.zeros((1, len(steps))), steps, -steps])
        asked = (tau[:, None] + moves[:, None, :]).reshape(-1, *tau.shape[1:])
        found = self._predict(asked).reshape(len(tau), len(moves), -1)
        up, down = found[:, 1 : len(steps) + 1], found[:, len(steps) + 1 :]
        return found[:, 0], np.moveaxis(up - down, 1, 2) / (2.0 * self.step)

    def _predict(self, tau: Array) -> Array:
        """Return r̂ (k, n) at k doses (k, n, d) of each row, by the model that has not seen it."""
        k, n = tau.shape[:2]
        if self.model is None:
            return np.zeros((k, n))
        # All at once: the models are quick, and calling them is not.
        fold = np.tile(self.model.fold(self.rows.first_row, n), k)
        context = np.tile(self.rows.need("x", "VectorSearch"), (k, 1))
        flat = self.model.predict(fold, context, tau.reshape(k * n, -1))
        return flat.reshape(k, n)
