"""The units of a learning problem: doses and outcomes on scales that mean the same everywhere.

Bandwidths, floors and ridges are in units of s, the sd of the dose left after regressing it on
the context: the room that logging left for a policy to move in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.errors import DataError
from titrant.policies import Clipped

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass

TAILS = (0.005, 0.995)
"""The quantiles of the logged dose between which a learned policy stays."""


@dataclass(frozen=True, slots=True)
class Units:
    """Scales of dose and outcome, and the doses a learned policy may give."""

    dose_sd: float
    """s, the sd of the dose that the context does not explain."""
    outcome_sd: float
    low: float
    """The smallest dose a policy may give."""
    high: float

    @classmethod
    def of(cls, log: LoggedData) -> Self:
        """Return the units of a log with one treatment."""
        t = log.treatment
        low, high = np.quantile(t, TAILS).tolist()
        if not low < high:
            raise DataError(
                f"The logged doses lie at {low:.6g} from the {TAILS[0]:.1%} to the {TAILS[1]:.1%} "
                "quantile, so there is no range of doses to learn in. Collect varied doses."
            )
        x = log.context - log.context.mean(axis=0)
        residual = t - t.mean() - x @ np.linalg.lstsq(x, t - t.mean(), rcond=None)[0]
        s = float(residual.std())
        if s <= 1e-6 * (high - low):
            raise DataError(
                "The logged doses are a linear function of the context, so no other dose was ever "
                "tried for a context. Collect doses that vary for like contexts."
            )
        return cls(s, float(log.outcome.std()) or 1.0, low, high)

    def clipped(self, fitted: FittedClass, params: Array) -> Clipped:
        """Return the policy with parameters β (P,), cut to the logged range."""
        return Clipped(fitted.policy(params), self.low, self.high)
