"""The log of single steps: one dose with a lower bound, a policy near it, known propensities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from titrant import LoggedData
from titrant.estimators import Problem, Rows

Array = np.ndarray[Any, np.dtype[np.float64]]

H = 0.1
"""The bandwidth of a single evaluation: a fifth of the rows have a weight."""
CLIP = 0.1


@dataclass(frozen=True)
class Log:
    """n rows; doses t ≥ 0 around the context, the policy's dose τ = x + 1/20."""

    x: Array
    t: Array
    y: Array
    q: Array

    @classmethod
    def draw(cls, n: int, seed: int = 0) -> Log:
        """Return n rows."""
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=n)
        mean, sd = x + 0.1, 0.5
        t = np.abs(mean + sd * rng.normal(size=n))
        y = 2 * (t - x) ** 2 + rng.normal(size=n)
        # Of the normal dose folded at 0.
        folded = np.exp(-0.5 * ((t - mean) / sd) ** 2) + np.exp(-0.5 * ((t + mean) / sd) ** 2)
        return cls(x, t, y, folded / (sd * np.sqrt(2 * np.pi)))

    @cached_property
    def tau(self) -> Array:
        """The policy's doses (n,)."""
        return self.x + 0.05

    def rows(self, *, bounded: bool) -> Rows:
        """Return all rows as an estimator sees them, clipped."""
        n = len(self.t)
        bounds: dict[str, Any] = {
            "lower": np.broadcast_to(0.0, (n, 1)),
            "upper": np.broadcast_to(np.inf, (n, 1)),
        }
        return Rows(
            tau=self.tau[:, None],
            t=self.t[:, None],
            y=self.y,
            x=self.x[:, None],
            center=float(self.y.mean()),
            q=np.maximum(self.q, CLIP),
            floor=CLIP,
            r_tau=2 * (self.tau - self.x) ** 2,
            r_logged=2 * (self.t - self.x) ** 2,
            **(bounds if bounded else {}),
        )

    def logged(self) -> LoggedData:
        """Return the log as a user has it."""
        return LoggedData(self.x[:, None], self.t, self.y, self.q, bounds=(0.0, None))


def problem(estimator: Any, rows: Rows) -> Problem:
    """Return the problem of choosing a bandwidth on rows in one block."""

    def over_rows(statistic: Any) -> Any:
        return statistic(rows)

    return Problem(estimator, len(rows.y), rows.t.std(axis=0), over_rows, lambda: rows)
