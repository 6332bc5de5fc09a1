"""A policy rounded to the steps in which a dose can be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.policies.base import Policy
from titrant.policies.calling import recommended
from titrant.policies.fields import number_or_vector, per_dose
from titrant.policies.function import as_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array


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

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the context columns of the policy inside."""
        return self.policy.features
