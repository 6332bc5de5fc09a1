"""A dose that is linear in the context."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.policies.base import ParametricPolicy
from titrant.policies.formats.formulas import each_dose, linear
from titrant.policies.formats.saving import (
    context,
    feature_names,
    matrix,
    number_or_vector,
    parameters,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.policies.formats.formulas import Formula


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Linear(ParametricPolicy):
    """τ(x) = intercept + coef'x, coef (p,); or d doses at once with coef (p, d), intercept (d,).

    The parameters are the intercept and then the coefficients (row by row). `Linear()` without
    coefficients is a template for a learner to fill. `features` names the columns of the context.

    >>> Linear(coef=[0.3, 1.1], intercept=20)(np.array([[10.0, 2.0]]))
    array([25.2])
    """

    coef: Array | None = None
    intercept: float | Array = 0.0
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        coef: ArrayLike | None = None,
        intercept: ArrayLike = 0.0,
        *,
        features: Sequence[str] | None = None,
    ) -> None:
        slopes = None if coef is None else matrix(coef, "coef", "Linear", ndim=(1, 2))
        columns = None if slopes is None else len(slopes)
        object.__setattr__(self, "coef", slopes)
        object.__setattr__(self, "intercept", intercept_for(slopes, intercept, "Linear"))
        object.__setattr__(self, "features", feature_names(features, columns, "Linear"))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d)."""
        coef = self._filled()
        return context(X, len(coef), "Linear", self.features) @ coef + self.intercept

    @property
    def params(self) -> Array:
        """The parameters β = (intercept, coef) (1 + p,) or (d + p·d,)."""
        return np.append(self.intercept, self._filled())

    def with_params(self, params: Array) -> Linear:
        """Return the policy with another intercept and other coefficients."""
        coef = self._filled()
        d = np.size(self.intercept)
        new = parameters(params, d + coef.size, "Linear")
        intercept = new[:d] if np.ndim(self.intercept) else new[0]
        return Linear(new[d:].reshape(coef.shape), intercept, features=self.features)

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
        """Return intercept + coef'x for each dose."""
        coef = self._filled()
        slopes = coef.reshape(len(coef), -1).T
        levels = each_dose(self.intercept, len(slopes))
        return tuple(linear(b, own, contexts) for b, own in zip(levels, slopes, strict=True))

    def vjp(self, X: Array, g: Array) -> Array:
        """Return (Σᵢ gᵢ, Σᵢ xᵢgᵢ) (P,)."""
        x = context(X, len(self._filled()), "Linear", self.features)
        return np.append(np.sum(g, axis=0), x.T @ g)

    def _filled(self) -> Array:
        if self.coef is None:
            raise InvalidArgument(
                "`Linear()` without `coef` is a template: it has no doses yet. Give coefficients, "
                "one for each column of the context, or let a learner fill it."
            )
        return self.coef


def intercept_for(coef: Array | None, intercept: ArrayLike, owner: str) -> float | Array:
    """Return the intercept: a number beside coef (p,), a vector (d,) beside coef (p, d)."""
    value = number_or_vector(intercept, "intercept", owner)
    if coef is None:
        return value
    d = coef.shape[1:]
    if np.shape(value) not in {(), d}:
        rule = f"a number or {d[0]} numbers" if d else "a number"
        raise _check.invalid(
            "intercept", owner, f"{rule} beside `coef` of shape {coef.shape}", value
        )
    return number_or_vector(np.full(d, value), "intercept", owner)
