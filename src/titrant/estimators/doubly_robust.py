"""Estimators with an outcome model: the direct method, and the doubly robust one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from titrant import _check
from titrant.estimators.base import MeanTerm, SmoothedEstimator
from titrant.kernels import Boundary, Epanechnikov, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale

# The direct method: trust the outcome model.


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectMethod(MeanTerm):
    """v̂ = mean r̂(τ(x), x).

    Its standard error is that of averaging over contexts; the error of the model, which it
    cannot see, comes on top.
    """

    outcome: object = None
    folds: int = 5
    seed: int = 0

    uses_outcome_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_folds(self.folds, self.outcome, "DirectMethod")
        _check.count(self.seed, "seed", "DirectMethod", at_least=0)

    def terms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return r̂(τ, x) (n, 1)."""
        return rows.need("r_tau", "DirectMethod")[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return ∂r̂/∂t at τ (n, 1, d)."""
        return rows.need("r_slope", "DirectMethod")[:, None, :]


def check_folds(folds: int, outcome: object, owner: str) -> None:
    """Refuse a number of folds that the outcome model does not take."""
    if _check.count(folds, "folds", owner) == 1 and outcome is None:
        rule = "at least 2 for the default outcome model, which is cross-fitted"
        raise _check.invalid("folds", owner, rule, folds)


# The paper's v DR: an outcome model, corrected by the weighted residuals it leaves.


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublyRobust(SmoothedEstimator):
    """v̂ = mean r̂(τ, x) + Σw·e/Σw, or + mean(w·e) un-normalized; e = y − r̂(t, x).

    ``outcome`` is a model r̂(t, x), never an array: two predictions are needed, at the policy's
    and at the logged dose. Any scikit-learn regressor of the columns (x, t) will do; None is a
    stack of ridge models that follow contexts which act nonlinearly (of fewer than 50 rows: of two
    plain ones). It is cross-fitted over ``folds``, drawn by ``seed``; 1 fits a model of your own
    once, on all rows.

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
        check_folds(self.folds, self.outcome, "DoublyRobust")
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
