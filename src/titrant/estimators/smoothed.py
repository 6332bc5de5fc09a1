"""Weighted estimators whose weight is the kernel's: IPW, self-normalized and doubly robust.

They share three settings: the ``kernel``, the floor ``clip`` under the propensity (None is the
default floor of the evaluation) and the correction at the ``boundary``.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.weight import weight, weight_slope
from titrant.estimators.weighted import WeightedEstimator
from titrant.kernels import Boundary, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


class SmoothedEstimator(WeightedEstimator):
    """A weighted estimator with w = K*(u)/(|H|^{1/2}·q)."""

    kernel: Kernel
    clip: float | None
    boundary: Boundary

    def check_smoothing(self) -> None:
        """Check the three shared settings."""
        owner = type(self).__name__
        if not isinstance(self.kernel, Kernel):
            raise _check.invalid("kernel", owner, "a kernel such as Epanechnikov()", self.kernel)
        if type(self.kernel).__hash__ is None:
            rule = "hashable: decorate its class with `@dataclass(frozen=True)`"
            raise _check.invalid("kernel", owner, rule, self.kernel)
        if self.clip is not None:
            _check.nonnegative(self.clip, "clip", owner)
        if not isinstance(self.boundary, Boundary):
            raise _check.invalid("boundary", owner, "a member of Boundary", self.boundary)

    def with_boundary(self, boundary: Boundary) -> Self:
        """Return the same estimator with another correction at the bounds."""
        record: Any = self  # the leaves are dataclasses, this base is not
        known = {f.name for f in fields(record)} if is_dataclass(type(self)) else set()
        if "boundary" not in known:
            raise InvalidArgument(
                f"`{type(self).__name__}` must be a dataclass with a field `boundary`: intervals "
                "and trust checks ask it with another correction at bounds. Decorate it with "
                "`@dataclass(frozen=True)`, or derive it from `Estimator`."
            )
        changed: Self = replace(record, boundary=boundary)
        return changed

    def weight(self, rows: Rows, scale: Scale) -> Array:
        """Return w (n,)."""
        return weight(rows, self.kernel, self.boundary, scale)

    def weight_slope(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂w/∂τ (n, d)."""
        return weight_slope(rows, self.kernel, self.boundary, scale)
