"""The paper's v DR: an outcome model, corrected by the weighted residuals it leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from titrant import _check
from titrant.estimators.smoothed import SmoothedEstimator
from titrant.kernels import Boundary, Epanechnikov, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublyRobust(SmoothedEstimator):
    """v̂ = mean r̂(τ, x) + Σw·e/Σw, or + mean(w·e) un-normalized; e = y − r̂(t, x).

    ``outcome`` is a model r̂(t, x), never an array: two predictions are needed, at the policy's
    and at the logged dose. Any scikit-learn regressor of the columns (x, t) will do; None is the
    stack of two ridge models, a quadratic and a spline, with which the default interval was
    calibrated. It is cross-fitted over ``folds``, drawn by ``seed``.

    The delta-method SE takes r̂ as given. At a bandwidth of one sd(T) or more the noise of a learned
    r̂ adds to it through its curvature (an SE 6 to 14 % short in simulations, at any n); the default
    interval, whose kernel is of order four, is not touched by that.
    """

    outcome: object = None
    folds: int = 5
    self_normalized: bool = True
    kernel: Kernel = field(default_factory=Epanechnikov)
    clip: float | None = None
    boundary: Boundary = Boundary.LINEAR
    seed: int = 0

    uses_outcome_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_smoothing()
        _check.count(self.folds, "folds", "DoublyRobust")
        _check.count(self.seed, "seed", "DoublyRobust", at_least=0)

    @property
    def normalized(self) -> bool:
        """As the user asked."""
        return self.self_normalized

    def references(self, rows: Rows) -> tuple[Array, Array]:
        """Return r̂(τ, x) and r̂(t, x)."""
        return rows.need("r_tau", "DoublyRobust"), rows.need("r_logged", "DoublyRobust")

    def baseline_slope(self, rows: Rows) -> Array:
        """Return ∂r̂/∂t at τ (n, d)."""
        return rows.need("r_slope", "DoublyRobust")
