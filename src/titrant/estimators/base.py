"""What an estimator is: per-row terms, and a smooth function of their means.

Standard error, paired comparison, bootstrap, execution in chunks and the gradient of a policy
search all follow from these two; an estimator never sums inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators.weight import weight, weight_slope
from titrant.kernels import Boundary, Kernel

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


class Estimator(ABC):
    """Terms (n, k) of rows, and the value as a function of their mean (k,)."""

    size: ClassVar[int]
    """k, the number of terms of a row."""
    uses_propensity: ClassVar[bool] = True
    uses_outcome_model: ClassVar[bool] = False

    @abstractmethod
    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return the per-row terms (n, k)."""

    @abstractmethod
    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂terms/∂τ (n, k, d)."""

    @abstractmethod
    def weights(self, terms: Array) -> Array:
        """Return how much each row counts (n,), from its terms (n, k)."""

    def value(self, mean: Array) -> float:
        """Return the estimate from the mean of the terms (k,)."""
        return float(self.values(mean))

    @abstractmethod
    def values(self, means: Array) -> Array:
        """Return many estimates (…) from the means of their terms (…, k)."""

    @abstractmethod
    def gradient(self, mean: Array) -> Array:
        """Return ∂value/∂mean (…, k): with it the delta method gives the standard error."""

    @abstractmethod
    def hessian(self, mean: Array) -> Array:
        """Return ∂²value/∂mean² (…, k, k): how the standard error itself moves with the mean."""


# Estimators whose value is the mean of one term.


@dataclass(frozen=True)
class MeanTerm(Estimator):
    """v̂ = mean of the one term, without weights and without a bandwidth."""

    __slots__ = ()

    size: ClassVar[int] = 1
    uses_propensity: ClassVar[bool] = False

    def weights(self, terms: Array) -> Array:
        """Return 1 (n,): every row counts alike."""
        return np.ones(len(terms))

    def values(self, means: Array) -> Array:
        """Return m₀ (…)."""
        return np.asarray(means[..., 0])

    def gradient(self, mean: Array) -> Array:
        """Return 1 (…, 1): the value is the mean itself."""
        return np.ones_like(mean)

    def hessian(self, mean: Array) -> Array:
        """Return 0 (…, 1, 1): the value is linear."""
        return np.zeros((*mean.shape, mean.shape[-1]))


# The common form of every weighted estimator: a baseline plus weighted residuals.
#
#     terms  b, w·e, w        value  m₀ + m₁  or, self-normalized,  m₀ + m₁/m₂
#
# | estimator                | baseline b   | residual e    | self-normalized |
# |--------------------------|--------------|---------------|-----------------|
# | IPW                      | 0            | y             | no              |
# | IPW, centered            | c            | y − c         | no              |
# | self-normalized          | c            | y − c         | yes             |
# | doubly robust            | r̂(τ, x)     | y − r̂(t, x)  | yes or no       |
#
# with c the mean outcome of the log. For the self-normalized estimator c changes nothing but the
# rounding: c + Σw(y − c)/Σw = Σwy/Σw; it keeps an outcome far from zero from swamping its variance.


class WeightedEstimator(Estimator):
    """An estimator made of a baseline, residuals and weights."""

    size: ClassVar[int] = 3

    @property
    @abstractmethod
    def normalized(self) -> bool:
        """Whether the weighted residuals are divided by the mean weight."""

    @abstractmethod
    def references(self, rows: Rows) -> tuple[Array | float, Array | float]:
        """Return b and r, with e = y − r: each (n,), or a number that all rows share."""

    @abstractmethod
    def baseline_slope(self, rows: Rows) -> Array:
        """Return ∂b/∂τ (n, d); e does not depend on τ."""

    @abstractmethod
    def weight(self, rows: Rows, scale: Scale) -> Array:
        """Return w (n,)."""

    @abstractmethod
    def weight_slope(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂w/∂τ (n, d)."""

    def baseline(self, rows: Rows) -> tuple[Array, Array]:
        """Return b and e, each (n,)."""
        b, r = self.references(rows)
        return np.broadcast_to(b, rows.y.shape), rows.y - r

    def terms(self, rows: Rows, scale: Scale) -> Array:
        """Return b, w·e, w (n, 3), each of them contiguous: what follows goes column by column."""
        b, e = self.baseline(rows)
        w = self.weight(rows, scale)
        return np.stack([b, w * e, w]).T

    def dterms(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂b/∂τ, ∂w/∂τ·e, ∂w/∂τ (n, 3, d)."""
        _, e = self.baseline(rows)
        slope = self.weight_slope(rows, scale)
        return np.stack([self.baseline_slope(rows), slope * e[:, None], slope], axis=1)

    def weights(self, terms: Array) -> Array:
        """Return w (n,), the last term."""
        return terms[:, 2]

    def values(self, means: Array) -> Array:
        """Return m₀ + m₁/m₂ when self-normalized, else m₀ + m₁ (…)."""
        weighted = means[..., 1] / means[..., 2] if self.normalized else means[..., 1]
        return np.asarray(means[..., 0] + weighted)

    def gradient(self, mean: Array) -> Array:
        """Return (1, 1/m₂, −m₁/m₂²) when self-normalized, else (1, 1, 0); (…, 3)."""
        first = np.ones_like(mean)
        if not self.normalized:
            first[..., 2] = 0.0
            return first
        first[..., 1] = 1.0 / mean[..., 2]
        first[..., 2] = -mean[..., 1] / mean[..., 2] ** 2
        return first

    def hessian(self, mean: Array) -> Array:
        """Return the second derivatives of m₁/m₂ when self-normalized, else 0 (…, 3, 3)."""
        second = np.zeros((*mean.shape, 3))
        if self.normalized:
            second[..., 1, 2] = second[..., 2, 1] = -1.0 / mean[..., 2] ** 2
            second[..., 2, 2] = 2.0 * mean[..., 1] / mean[..., 2] ** 3
        return second


# Weighted estimators whose weight is the kernel's: IPW, self-normalized and doubly robust.
#
# They share three settings: the ``kernel``, the floor ``clip`` under the propensity (None is the
# default floor of the evaluation) and the correction at the ``boundary``.


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
        _check_kernel(self.kernel, owner)
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
        # Not `dataclasses.replace`: a class may keep more than its fields.
        changed = object.__new__(type(self))
        for name in known | set(getattr(self, "__dict__", ())):
            object.__setattr__(changed, name, getattr(self, name))
        object.__setattr__(changed, "boundary", boundary)
        return changed

    def weight(self, rows: Rows, scale: Scale) -> Array:
        """Return w (n,); a class that overrides this gets a copy that it may change."""
        w = weight(rows, self.kernel, self.boundary, scale)
        return w if type(self).weight is SmoothedEstimator.weight else w.copy()

    def weight_slope(self, rows: Rows, scale: Scale) -> Array:
        """Return ∂w/∂τ (n, d)."""
        return weight_slope(rows, self.kernel, self.boundary, scale)


def _check_kernel(kernel: Kernel, owner: str) -> None:
    """Refuse a kernel that cannot be told from others: what was computed for one serves its equals.

    A dataclass is equal to another with the same fields, whatever else they hold.
    """
    try:
        hash(kernel)
    except TypeError:
        rule = "hashable: decorate its class with `@dataclass(frozen=True)`, and no list in a field"
        raise _check.invalid("kernel", owner, rule, kernel) from None
    kinds = type(kernel).__mro__
    author: Any = next(kind for kind in kinds if "__eq__" in vars(kind))
    if not is_dataclass(author):  # equal to itself alone, or as its author says
        return
    held = set(getattr(kernel, "__dict__", ()))
    held.update(*(_slots(kind) for kind in kinds))
    if apart := held - {f.name for f in fields(author) if f.compare}:
        rule = f"a dataclass with a field for all that differs; {min(apart)!r} is none"
        raise _check.invalid("kernel", owner, rule, kernel)


def _slots(kind: type) -> set[str]:
    """Return the names of what instances of a class have room for."""
    named = vars(kind).get("__slots__", ())
    return ({named} if isinstance(named, str) else set(named)) - {"__dict__", "__weakref__"}


# The value of the status quo: the outcomes that were observed, averaged.


@dataclass(frozen=True)
class Observed(MeanTerm):
    """v̂ = mean(y): what the logged doses were worth, whatever policy is asked about."""

    def terms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return y (n, 1)."""
        return rows.y[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, 1, d): no policy changes what was observed."""
        return np.zeros((len(rows.y), 1, rows.tau.shape[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyObserved(WeightedEstimator):
    """v̂ = mean r + Σa·e/Σa, or + mean(a·e) un-normalized: mean(y) where outcomes are missing.

    e = y − r, a = Δ/p̂ as rows have it, r = r̂(t, x) or, without an outcome model, the mean outcome.
    It is the common form with w = a, so that a policy which changes no dose has the same value.
    """

    self_normalized: bool = True

    uses_propensity: ClassVar[bool] = False

    @property
    def normalized(self) -> bool:
        """As the policies beside it are."""
        return self.self_normalized

    def references(self, rows: Rows) -> tuple[Array | float, Array | float]:
        """Return r twice: the dose is the logged one."""
        r = rows.center if rows.r_logged is None else rows.r_logged
        return r, r

    def weight(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return a (n,), 1 where no outcome is missing."""
        return np.ones(len(rows.y)) if rows.seen is None else rows.seen

    def baseline_slope(self, rows: Rows) -> Array:
        """Return 0 (n, d): no policy changes what was observed."""
        return np.zeros_like(rows.tau)

    def weight_slope(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, d)."""
        return np.zeros_like(rows.tau)
