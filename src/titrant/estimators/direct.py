"""The direct method: trust the outcome model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from titrant import _check
from titrant.estimators.average import Average

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectMethod(Average):
    """v̂ = mean r̂(τ(x), x).

    Its standard error is that of averaging over contexts; the error of the model, which it
    cannot see, comes on top.
    """

    outcome: object = None
    folds: int = 5
    seed: int = 0

    uses_outcome_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check.count(self.folds, "folds", "DirectMethod")
        _check.count(self.seed, "seed", "DirectMethod", at_least=0)

    def terms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return r̂(τ, x) (n, 1)."""
        return rows.need("r_tau", "DirectMethod")[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return ∂r̂/∂t at τ (n, 1, d)."""
        return rows.need("r_slope", "DirectMethod")[:, None, :]
