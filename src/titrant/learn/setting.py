"""The units of a learning problem: features, doses and outcomes on scales that mean the same.

Policies are affine in standardized contexts and cut to the doses that were logged, τ = φ(x)'β
with φ = (1, z). Bandwidths, floors and ridges are in units of s, the sd of the dose left after
regressing it on the context: the room that logging left for a policy to move in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.errors import DataError
from titrant.policies import Clipped, Linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies import Policy

TAILS = (0.005, 0.995)
"""The quantiles of the logged dose between which a learned policy stays."""


@dataclass(frozen=True, slots=True)
class Units:
    """Centers and scales, taken from the rows a policy is learned on."""

    x_mean: Array
    x_sd: Array
    """sd of each context (p,); infinite for a constant one, which then has coefficient 0."""
    dose_sd: float
    """s, the sd of the dose that the context does not explain."""
    outcome_sd: float
    low: float
    """The smallest dose a policy may give."""
    high: float

    @classmethod
    def of(cls, log: LoggedData) -> Self:
        """Return the units of a log with one treatment."""
        x, t = log.context, log.treatment
        sd = x.std(axis=0)
        low, high = np.quantile(t, TAILS)
        if not low < high:
            raise DataError(
                f"The logged doses lie at {low:.6g} from the {TAILS[0]:.1%} to the {TAILS[1]:.1%} "
                "quantile, so there is no range of doses to learn in. Collect varied doses."
            )
        centered = x - x.mean(axis=0)
        residual = t - t.mean() - centered @ np.linalg.lstsq(centered, t - t.mean(), rcond=None)[0]
        return cls(
            x_mean=x.mean(axis=0),
            x_sd=np.where(sd > 0, sd, np.inf),
            dose_sd=float(residual.std()),
            outcome_sd=float(log.outcome.std()) or 1.0,
            low=float(low),
            high=float(high),
        )

    def features(self, X: Array) -> Array:
        """Return φ = (1, (x − mean)/sd) (n, 1 + p)."""
        return np.column_stack([np.ones(len(X)), (X - self.x_mean) / self.x_sd])

    def doses(self, params: Array, X: Array) -> Array:
        """Return τ = φ'β cut to the logged range (n,)."""
        return np.clip(self.features(X) @ params, self.low, self.high)

    def policy(self, params: Array, names: Sequence[str]) -> Policy:
        """Return the policy with coefficients on the user's scale."""
        coef = params[1:] / self.x_sd
        intercept = params[0] - coef @ self.x_mean
        return Clipped(Linear(coef, intercept, features=tuple(names)), self.low, self.high)
