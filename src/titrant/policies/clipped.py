"""Policies wrapped in others: kept within bounds, or rounded to steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.policies.base import ParametricPolicy, Policy
from titrant.policies.calling import recommended
from titrant.policies.constant import as_policy
from titrant.policies.formulas import Floor, Number, Product, Ratio, Sum, Within, each_dose
from titrant.policies.saving import number_or_vector, per_dose, read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.policies.formulas import Formula

    Bound = float | Array | Sequence[float | None] | None

# A policy kept within bounds.


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Clipped(ParametricPolicy):
    """τ(x) = min(max(policy(x), lower), upper).

    Bounds are numbers, d numbers (one for each dose), or None for an open side. It is parametric
    if the policy inside is, with the same parameters. Where a bound binds, the dose does not move
    with them: the gradient of such a row is 0, also exactly at the bound, where τ has a kink.
    """

    policy: Policy
    lower: float | Array = field(default=-np.inf)
    upper: float | Array = field(default=np.inf)

    def __init__(
        self,
        policy: Policy | Callable[[Array], ArrayLike],
        lower: Bound = None,
        upper: Bound = None,
    ) -> None:
        low, high = _bound(lower, -np.inf, "lower"), _bound(upper, np.inf, "upper")
        if np.size(low) != np.size(high) and 1 not in {np.size(low), np.size(high)}:
            raise _check.invalid("upper", "Clipped", "as long as `lower`", upper)
        if not np.all(np.less(low, high)):
            raise _check.invalid("upper", "Clipped", f"above `lower` = {low}", upper)
        object.__setattr__(self, "policy", as_policy(policy))
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        tau = recommended(self.policy, X)
        return np.clip(tau, *self._bounds(tau))

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the context columns of the policy inside."""
        return self.policy.features

    @property
    def parametric(self) -> bool:
        """Whether the policy inside has parameters."""
        return self.policy.parametric

    @property
    def params(self) -> Array:
        """The parameters β (P,) of the policy inside."""
        return self._inside().params

    def with_params(self, params: Array) -> Clipped:
        """Return the policy with other parameters inside."""
        return Clipped(self._inside().with_params(params), self.lower, self.upper)

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return the formula of the policy inside, held within the bounds, for each dose."""
        inside = self.policy.formulas(contexts)
        lower, upper = (each_dose(bound, len(inside)) for bound in (self.lower, self.upper))
        return tuple(map(Within, inside, lower, upper))

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ·∂τ(xᵢ)/∂β (P,) over the doses strictly between the bounds."""
        inside = self._inside()
        tau = inside(X)
        lower, upper = self._bounds(tau)
        return inside.vjp(X, np.where((tau > lower) & (tau < upper), g, 0.0))

    def _bounds(self, tau: Array) -> tuple[float | Array, float | Array]:
        lower = per_dose(self.lower, tau, "lower", "Clipped")
        return lower, per_dose(self.upper, tau, "upper", "Clipped")

    def _inside(self) -> ParametricPolicy:
        if not isinstance(self.policy, ParametricPolicy):
            raise InvalidArgument(
                f"`Clipped` has no parameters because `{type(self.policy).__name__}` has none. "
                "Clip a policy such as `Linear` to learn within bounds."
            )
        return self.policy


def _bound(value: Bound, open_side: float, name: str) -> float | Array:
    """Return a bound, with `open_side` for each None, as a float or a read-only array (d,)."""
    rule = "a number, one number for each dose, or None"
    if value is None:
        return open_side
    if not isinstance(value, (list, tuple, np.ndarray)):
        return open_side if value == open_side else _check.number(value, name, "Clipped")
    try:
        filled = np.array(
            [open_side if entry is None else entry for entry in value], dtype=np.float64
        )
    except (TypeError, ValueError):
        raise _check.invalid(name, "Clipped", rule, value) from None
    if (
        filled.ndim != 1
        or not filled.size
        or not np.all(np.isfinite(filled) | (filled == open_side))
    ):
        raise _check.invalid(name, "Clipped", rule, value)
    return read_only(filled)


# A policy rounded to the steps in which a dose can be given.


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Rounded(Policy):
    """τ(x) = offset + step·round((policy(x) − offset)/step), halves upward: tablets, price points.

    Steps are a number or d numbers. Rounding may pass a bound by half a step; clip outside of it
    where that matters. A rounded policy is evaluated, not learned: its gradient is 0.

    >>> from titrant.policies import Constant
    >>> Rounded(Constant(36.2), step=2.5)(np.zeros((1, 1)))
    array([35.])
    """

    policy: Policy
    step: float | Array
    offset: float | Array = 0.0

    def __init__(
        self,
        policy: Policy | Callable[[Array], ArrayLike],
        step: ArrayLike,
        offset: ArrayLike = 0.0,
    ) -> None:
        size = number_or_vector(step, "step", "Rounded")
        if not np.all(np.greater(size, 0.0)):
            raise _check.invalid("step", "Rounded", "made of numbers > 0", step)
        object.__setattr__(self, "policy", as_policy(policy))
        object.__setattr__(self, "step", size)
        object.__setattr__(self, "offset", number_or_vector(offset, "offset", "Rounded"))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        tau = recommended(self.policy, X)
        step = per_dose(self.step, tau, "step", "Rounded")
        offset = per_dose(self.offset, tau, "offset", "Rounded")
        return offset + step * np.floor((tau - offset) / step + 0.5)

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return offset + step·⌊(τ − offset)/step + ½⌋ for each dose."""
        inside = self.policy.formulas(contexts)
        sizes, starts = (each_dose(value, len(inside)) for value in (self.step, self.offset))
        return tuple(map(_rounded, inside, sizes, starts))

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the context columns of the policy inside."""
        return self.policy.features


def _rounded(tau: Formula, step: float, offset: float) -> Formula:
    steps = Ratio(Sum((tau, Number(-offset))), step)
    return Sum((Number(offset), Product((Number(step), Floor(Sum((steps, Number(0.5))))))))
