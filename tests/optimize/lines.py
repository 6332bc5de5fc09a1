"""Rows for searches over one parameter, and the objective by brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from titrant.estimators import ESTIMATORS, Estimator, Rows
from titrant.estimators.form import is_piecewise
from titrant.kernels import KERNELS
from titrant.kernels.polynomial import polynomial

EXACT_KERNELS = tuple(k() for k in KERNELS if polynomial(k()) is not None)
EXACT_ESTIMATORS = tuple(e for e in ESTIMATORS if is_piecewise(e))
"""Those of the rooms' lists whose value is a piecewise rational function of one dose."""
H = 0.25


def design(n: int, seed: int = 0, *, signed: bool = False, shift: float = 0.0):
    """The paper's one-parameter design: x and rows with y = 2|x − t|^1.5 + .2ε."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0 if signed else 0.0, 1.0, n)
    t = x + 0.1 + 0.5 * rng.normal(size=n)
    y = 2 * np.abs(x - t) ** 1.5 + 0.2 * rng.normal(size=n) + shift
    q = np.exp(-0.5 * ((t - x - 0.1) / 0.5) ** 2) / (0.5 * np.sqrt(2 * np.pi))
    return x, Rows(
        tau=t[:, None],
        t=t[:, None],
        y=y,
        x=x[:, None],
        center=float(y.mean()),
        q=np.maximum(q, 0.1),
    )


def negated(rows: Rows) -> Rows:
    """The rows whose least estimate is the largest of the others."""
    return replace(rows, y=-rows.y, center=-rows.center)


def reach(rows: Rows, h: float, slope: np.ndarray | float = 1.0) -> dict[str, float]:
    """The β between which any row has weight."""
    kinks = np.concatenate([(rows.t[:, 0] - h) / slope, (rows.t[:, 0] + h) / slope])
    return {"low": kinks.min(), "high": kinks.max()}


@dataclass(frozen=True)
class Brute:
    """The estimate and the effective sample size at any β, from all rows."""

    estimator: Estimator
    rows: Rows
    h: float
    slope: np.ndarray | float

    def __call__(self, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values and effective sample sizes (m,) at β (m,)."""
        b, e = self.estimator.baseline(self.rows)
        value, ess = np.empty(len(beta)), np.zeros(len(beta))
        for i, beta_i in enumerate(beta):
            u = (self.slope * beta_i - self.rows.t[:, 0]) / self.h
            w = self.estimator.kernel(u) / (self.h * self.rows.q)
            total = w.sum() if self.estimator.normalized else len(w)
            value[i] = b[0] + (w @ e) / total if total > 0 else np.nan
            ess[i] = w.sum() ** 2 / (w @ w) if w.any() else 0.0
        return value, ess

    def least(self, low: float, high: float, count: int, floor: float) -> float:
        """The least value on a grid where the effective sample size reaches the floor."""
        value, ess = self(np.linspace(low, high, count))
        enough = ess >= floor
        return value[enough].min() if enough.any() else np.inf
