"""The same dose for everyone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.policies.base import ParametricPolicy
from titrant.policies.contexts import contexts_for
from titrant.policies.fields import number_or_vector, parameters

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Constant(ParametricPolicy):
    """τ(x) = dose: a number, or d numbers for a treatment of d doses.

    The parameters are the dose.

    >>> Constant(35.0)(np.zeros((2, 4)))
    array([35., 35.])
    """

    dose: float | Array

    def __init__(self, dose: ArrayLike) -> None:
        object.__setattr__(self, "dose", number_or_vector(dose, "dose", "Constant"))

    def __call__(self, X: object) -> Array:
        """Return the dose for each row of X, an array (n, p) or a table: (n,) or (n, d)."""
        n = len(contexts_for(self.features, X, "policy `Constant`"))
        return np.full((n, *np.shape(self.dose)), self.dose)

    @property
    def features(self) -> tuple[str, ...]:
        """No context at all."""
        return ()

    @property
    def params(self) -> Array:
        """The parameters β = dose (1,) or (d,)."""
        return np.atleast_1d(np.array(self.dose))

    def with_params(self, params: Array) -> Constant:
        """Return the policy with another dose."""
        new = parameters(params, np.size(self.dose), "Constant")
        return Constant(new if np.ndim(self.dose) else new[0])

    def vjp(self, X: Array, g: Array) -> Array:  # noqa: ARG002
        """Return Σᵢ gᵢ (1,) or (d,): the dose moves every row alike."""
        return np.atleast_1d(np.sum(g, axis=0))
