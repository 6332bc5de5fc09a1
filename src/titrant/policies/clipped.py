"""Policies wrapped in others: kept within bounds, in steps, or within limits of each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.data.columns import places
from titrant.data.validate import first_rows, of_rows
from titrant.errors import DataError, InvalidArgument
from titrant.policies.base import ParametricPolicy, Policy, formulas_of, is_exactly
from titrant.policies.calling import contexts_for, recommended
from titrant.policies.constant import as_policy
from titrant.policies.formats.formulas import (
    Above,
    Floor,
    Largest,
    Number,
    Product,
    Ratio,
    Smallest,
    Stairs,
    Sum,
    Unless,
    Within,
    each_dose,
)
from titrant.policies.formats.saving import number_or_vector, per_dose, read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.policies.formats.formulas import Formula

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
        inside = formulas_of(self.policy, contexts)
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
        inside = formulas_of(self.policy, contexts)
        sizes, starts = (each_dose(value, len(inside)) for value in (self.step, self.offset))
        return tuple(map(_rounded, inside, sizes, starts))

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the context columns of the policy inside."""
        return self.policy.features


def _rounded(tau: Formula, step: float, offset: float) -> Formula:
    steps = Ratio(Sum((tau, Number(-offset))), step)
    return Sum((Number(offset), Product((Number(step), Floor(Sum((steps, Number(0.5))))))))


# A policy within the limits of the real world: doses there are, limits of each row.

ROUNDING = 1e-9
"""A limit is on a step if it is this near, in steps: .3 is three times .1."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The doses that can be given: multiples of a number, a list of strengths, or all (None)."""

    of: float | Array | None

    @classmethod
    def checked(cls, value: ArrayLike | None, owner: str) -> Steps:
        """Return the steps that a number > 0 or a list of strengths says."""
        if value is None:
            return cls(None)
        if np.ndim(value) == 0:
            return cls(_check.positive(value, "steps", owner))
        strengths = _check.finite_array(value, "steps", owner, ndim=1)
        if len(strengths) == 0 or len(np.unique(strengths)) < len(strengths):
            raise _check.invalid("steps", owner, "a number > 0 or a list of distinct doses", value)
        return cls(read_only(np.sort(strengths)))

    def nearest(self, tau: Array) -> Array:
        """Return the doses next to others, the larger one of two as near."""
        if self.of is None:
            return tau
        if isinstance(self.of, float):
            return self.of * np.floor(tau / self.of + 0.5)
        middle = (self.of[1:] + self.of[:-1]) / 2.0
        return np.asarray(self.of[np.searchsorted(middle, tau, side="right")])

    def above(self, low: Array) -> Array:
        """Return the smallest doses not below others; infinite if there are none."""
        if self.of is None:
            return low
        if isinstance(self.of, float):
            return self.of * np.ceil(low / self.of - ROUNDING)
        at = np.searchsorted(self.of, low - self._near())
        return np.append(self.of, np.inf)[at]

    def below(self, high: Array) -> Array:
        """Return the largest doses not above others; −infinite if there are none."""
        return -Steps(self._mirrored()).above(-high)

    def nearest_formula(self, tau: Formula) -> Formula:
        """Return `nearest` as a formula."""
        if self.of is None:
            return tau
        if isinstance(self.of, float):
            return _rounded(tau, self.of, 0.0)
        if len(self.of) == 1:
            return Number(float(self.of[0]))
        middle = (self.of[1:] + self.of[:-1]) / 2.0
        return Stairs(tau, tuple(middle.tolist()), tuple(self.of.tolist()))

    def above_formula(self, low: Formula) -> Formula:
        """Return `above` as a formula; more than any strength where there is none."""
        return _minus(Steps(self._mirrored()).below_formula(_minus(low)))

    def below_formula(self, high: Formula) -> Formula:
        """Return `below` as a formula; less than any strength where there is none."""
        if self.of is None:
            return high
        if isinstance(high, Number):
            found = float(self.below(np.array(high.value)))
            return Number(found if np.isfinite(found) else self._none)
        if isinstance(self.of, float):
            steps = Floor(Sum((Ratio(high, self.of), Number(ROUNDING))))
            return Product((Number(self.of), steps))
        strengths = tuple(self.of.tolist())
        return Stairs(Sum((high, Number(self._near()))), strengths, (self._none, *strengths))

    @property
    def _none(self) -> float:
        """A number clearly below all strengths, in a formula for −infinity."""
        first = float(np.asarray(self.of).min())
        return first - 1.0 - abs(first)

    def _mirrored(self) -> float | Array | None:
        return -self.of[::-1] if isinstance(self.of, np.ndarray) else self.of

    def _near(self) -> float:
        return ROUNDING * float(np.abs(np.asarray(self.of)).max())


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class InLimits(Policy):
    """τ(x) = the dose next to policy(x) that can be given and that the limits of the row allow.

    Parameters
    ----------
    policy : the rule inside, of one dose
    steps : a number, whose multiples can be given, or a list of strengths
    at_least, at_most : a number, or the context that holds each row's own
    current, largest_change : the context that holds each row's dose so far, and how far the new
        one may be from it

    A row whose limits leave no dose is an error; `possible` tells which they are.

    >>> from titrant.policies import Constant
    >>> rule = InLimits(Constant(36.2), steps=2.5, at_most="most")
    >>> rule({"most": [50.0, 31.0]})
    array([35., 30.])
    """

    policy: Policy
    steps: float | Array | None
    at_least: float | str | None
    at_most: float | str | None
    current: str | None
    largest_change: float | None

    def __init__(
        self,
        policy: Policy | Callable[[Array], ArrayLike],
        *,
        steps: ArrayLike | None = None,
        at_least: float | str | None = None,
        at_most: float | str | None = None,
        current: str | None = None,
        largest_change: float | None = None,
    ) -> None:
        inside = as_policy(policy)
        check_limits("InLimits", at_least, at_most, current, largest_change)
        own = limit_columns(at_least, at_most, current)
        if own and inside.features is None:
            rule = f"one that knows the names of its contexts, beside limits by {', '.join(own)}"
            raise _check.invalid("policy", "InLimits", rule, inside)
        object.__setattr__(self, "policy", inside)
        object.__setattr__(self, "steps", Steps.checked(steps, "InLimits").of)
        object.__setattr__(self, "at_least", at_least)
        object.__setattr__(self, "at_most", at_most)
        object.__setattr__(self, "current", current)
        object.__setattr__(self, "largest_change", largest_change)

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,)."""
        x = contexts_for(self.features, X, "policy `InLimits`")
        inside = self.policy.features
        tau = recommended(self.policy, x if inside is None else x[:, : len(inside)])
        if tau.ndim > 1:
            raise DataError(
                f"`InLimits` keeps one dose within limits; the policy inside gives {tau.shape[1]}."
            )
        low, high = self.limits(x)
        check_possible(low, high, self._own)
        return np.clip(Steps(self.steps).nearest(tau), low, high)

    def limits(self, x: Array) -> tuple[Array, Array]:
        """Return the smallest and largest dose (n,) that each row of contexts x (n, p) allows."""
        found = places(self._own, self.features or (), "policy `InLimits`")
        columns = {name: x[:, j] for name, j in zip(self._own, found, strict=True)}
        return row_limits(self, Steps(self.steps), columns, len(x))

    def possible(self, X: object) -> NDArray[np.bool_]:
        """Return which rows of X (n,) have a dose within their limits."""
        low, high = self.limits(contexts_for(self.features, X, "policy `InLimits`"))
        return np.asarray(low <= high)

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the contexts of the policy inside, then those of limits."""
        inside = self.policy.features
        if inside is None:
            return None
        return tuple(dict.fromkeys((*inside, *self._own)))

    @property
    def _own(self) -> tuple[str, ...]:
        return limit_columns(self.at_least, self.at_most, self.current)

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return the dose on the steps next to that of the policy inside, within the limits.

        A row whose limits leave no dose has none; this is tested only where there may be such rows.
        """
        known = dict(zip(self.features or (), contexts, strict=True))
        inside = formulas_of(self.policy, contexts[: len(self.policy.features or ())])
        steps = Steps(self.steps)
        tau = steps.nearest_formula(inside[0])
        ends = self._end_formulas(known)
        low = tuple(map(steps.above_formula, ends[0]))
        high = tuple(map(steps.below_formula, ends[1]))
        if low:
            tau = Largest((tau, *low))
        if high:
            tau = Smallest((tau, *high))
        if isinstance(steps.of, np.ndarray):  # they have ends of their own
            first, last = steps.of[[0, -1]].tolist()
            low, high = low or (Number(first),), high or (Number(last),)
        if not low or not high or self._always_possible:
            return (tau,)
        lowest = low[0] if len(low) == 1 else Largest(low)
        highest = high[0] if len(high) == 1 else Smallest(high)
        return (Unless(tau, Above(lowest, highest)),)

    @property
    def _always_possible(self) -> bool:
        """Whether limits on both sides leave every row a dose, whatever its columns hold."""
        if not self._own:
            low, high = self.limits(np.empty((1, len(self.features or ()))))
            return bool((low <= high).all())
        # Around the dose so far there is always one if any dose can be given.
        return self.steps is None and self.at_least is None and self.at_most is None

    def _end_formulas(
        self, known: dict[str, Formula]
    ) -> tuple[tuple[Formula, ...], tuple[Formula, ...]]:
        """Return what the dose must not be below, and what not above."""
        ends = tuple(
            () if end is None else ((known[end] if isinstance(end, str) else Number(float(end))),)
            for end in (self.at_least, self.at_most)
        )
        if self.current is None or self.largest_change is None:
            return ends[0], ends[1]
        now, far = known[self.current], float(self.largest_change)
        low, high = (Sum((now, Number(by))) for by in (-far, far))
        return (*ends[0], low), (*ends[1], high)


def check_limits(
    owner: str,
    at_least: float | str | None,
    at_most: float | str | None,
    current: str | None,
    largest_change: float | None,
) -> None:
    """Refuse limits that are none."""
    for name, end in (("at_least", at_least), ("at_most", at_most)):
        if end is not None and not isinstance(end, str):
            _check.number(end, name, owner)
    if (current is None) != (largest_change is None):
        given = current if largest_change is None else largest_change
        raise _check.invalid("largest_change", owner, "given together with `current`", given)
    if largest_change is not None:
        _check.nonnegative(largest_change, "largest_change", owner)
        if not isinstance(current, str):
            raise _check.invalid("current", owner, "the name of a context", current)


def row_limits(
    of: Any,  # noqa: ANN401  (what has the limits of an `InLimits`)
    steps: Steps,
    columns: Mapping[str, Array],
    n: int,
) -> tuple[Array, Array]:
    """Return the smallest and largest dose (n,) on the steps that limits allow each of n rows.

    ``columns`` (n,) are the contexts that hold limits.
    """
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if of.at_least is not None:
        low = np.maximum(low, columns.get(of.at_least, of.at_least))
    if of.at_most is not None:
        high = np.minimum(high, columns.get(of.at_most, of.at_most))
    if of.current is not None:
        low = np.maximum(low, columns[of.current] - of.largest_change)
        high = np.minimum(high, columns[of.current] + of.largest_change)
    return steps.above(low), steps.below(high)


def check_possible(low: Array, high: Array, columns: Sequence[str]) -> None:
    """Refuse rows whose limits (n,) leave no dose."""
    if (bad := low > high).any():
        row = int(np.argmax(bad))
        raise DataError(
            f"In {of_rows(bad)} ({first_rows(bad)}) the limits leave no dose: in row {row} it must "
            f"be at least {low[row]:.6g} and at most {high[row]:.6g}. Check "
            f"{', '.join(f'`{name}`' for name in columns) or 'the limits'}."
        )


def limit_columns(*ends: object) -> tuple[str, ...]:
    """Return the contexts among limits, each once."""
    return tuple(dict.fromkeys(end for end in ends if isinstance(end, str)))


def _minus(of: Formula) -> Formula:
    if isinstance(of, Number):
        return Number(0.0 - of.value)
    return Product((Number(-1.0), of))


def unwrapped(policy: Policy) -> Policy:
    """Return the policy inside limits and steps."""
    if is_exactly(policy, Clipped) or is_exactly(policy, Rounded) or is_exactly(policy, InLimits):
        return unwrapped(policy.policy)
    return policy
