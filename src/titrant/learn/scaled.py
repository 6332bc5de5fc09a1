"""A constraint on parameters that are searched in other units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.optimize import Constraint

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True)
class Scaled(Constraint):
    """{γ : scale·γ in the set}; a ball needs one scale for all parameters, a box may have (P,)."""

    inside: Constraint
    scale: float | Array

    def project(self, params: Array) -> Array:
        """Return the nearest points (m, P) of the set."""
        return self.inside.project(params * self.scale) / self.scale

    def limits(self, size: int) -> tuple[Array, float]:
        """Return bounds and what counts for the norm (3, P), and its limit, in these units."""
        limits, radius = self.inside.limits(size)
        limits[:2] /= self.scale
        return limits, float(radius / np.max(self.scale))
