"""What a policy is learned from: rows with features, propensities and an outcome model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass
    from titrant.learn.setting import Units
    from titrant.learn.tables import Curves


@dataclass(frozen=True, slots=True)
class LearningRows:
    """n rows as a search for P parameters sees them."""

    phi: Array
    """Features (n, P), times s: parameters are in units of s."""
    roughness: Array
    """How much a ridge counts each parameter (P,)."""
    t: Array
    y: Array
    q: Array
    """Propensities (n,), not floored."""
    lower: Array | None
    """Bounds of the dose (n,), or None."""
    upper: Array | None
    curves: Curves | None = None
    """An outcome model that has not seen these rows."""

    @classmethod
    def of(cls, log: LoggedData, q: Array, fitted: FittedClass, units: Units) -> Self:
        """Return the rows of a log with one treatment."""
        bounds = (log.lower[:, 0].copy(), log.upper[:, 0].copy()) if log.bounded else (None, None)
        phi = fitted.features(log.context) * units.dose_sd
        return cls(phi, fitted.roughness, log.treatment, log.outcome, q, *bounds)

    def only(self, rows: NDArray[np.intp]) -> Self:
        """Return some of the rows, without their outcome model."""
        return replace(
            self,
            phi=self.phi[rows],
            t=self.t[rows],
            y=self.y[rows],
            q=self.q[rows],
            lower=None if self.lower is None else self.lower[rows],
            upper=None if self.upper is None else self.upper[rows],
            curves=None,
        )

    def with_curves(self, curves: Curves) -> Self:
        """Return the same rows with an outcome model."""
        return replace(self, curves=curves)

    @property
    def model(self) -> Curves:
        """The outcome model."""
        if self.curves is None:
            raise InvalidArgument("These rows carry no outcome model; give one by `with_curves`.")
        return self.curves
