"""Policies without parameters but a dose: a constant, the status quo, any function."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.policies.base import ParametricPolicy, Policy, is_exactly
from titrant.policies.calling import (
    called_function,
    check_takes_contexts,
    checked_doses,
    contexts_for,
)
from titrant.policies.formats.formulas import Number
from titrant.policies.formats.saving import feature_names, number_or_vector, parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies.formats.formulas import Formula

# The same dose for everyone.


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

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:  # noqa: ARG002
        """Return the dose, or each dose."""
        return tuple(map(Number, np.atleast_1d(self.dose).tolist()))

    def with_params(self, params: Array) -> Constant:
        """Return the policy with another dose."""
        new = parameters(params, np.size(self.dose), "Constant")
        return Constant(new if np.ndim(self.dose) else new[0])

    def vjp(self, X: Array, g: Array) -> Array:  # noqa: ARG002
        """Return Σᵢ gᵢ (1,) or (d,): the dose moves every row alike."""
        return np.atleast_1d(np.sum(g, axis=0))


# What was done: the doses of the log, as they were given.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatusQuo(Policy):
    """Keep dosing as before. Its value on a log is the mean outcome; no weights are needed.

    It has no formula, so it gives no doses for new contexts.
    """

    def __call__(self, X: Array) -> Array:  # noqa: ARG002
        """Refuse: what was done is in the log, not in a formula."""
        raise InvalidArgument(
            "The status quo has no formula for new contexts: keep dosing as before. "
            "Use it in `compare`, beside the policies that would replace it."
        )

    @property
    def is_rule(self) -> bool:
        """Not a rule: it is about the rows of a log. A subclass with a formula is one."""
        return not is_exactly(self, StatusQuo)

    def of_rows(self, log: LoggedData) -> Array:
        """Return the doses (n, d) as they were given, or as a subclass gives them."""
        return log.doses if is_exactly(self, StatusQuo) else Policy.of_rows(self, log)


# Any Python function of the context as a policy.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(Policy):
    """τ(x) = function(x): a function from contexts (n, p) to doses (n,) or (n, d).

    It must treat each row by itself, since a large log is handed to it in batches. It gets the
    contexts as an array, in the order of the log, or with ``features`` those columns in that order.
    Doses go to rows by position: the index of a Series that it returns is not looked at.
    """

    function: Callable[[Array], ArrayLike]
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise _check.invalid("function", "Function", "a function of the context", self.function)
        check_takes_contexts(self.function, called_function(self.function))
        object.__setattr__(self, "features", feature_names(self.features, None, "Function"))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d), checked."""
        owner = called_function(self.function)
        x = contexts_for(self.features, X, owner)
        return checked_doses(self.function(x), len(x), owner)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: code is not data."""
        raise InvalidArgument(
            f"The {called_function(self.function)} is a Python function and cannot be saved as "
            "data. Save a policy such as `Linear` or `RBF`, or keep the function in a module."
        )


def as_policy(policy: object) -> Policy:
    """Return a policy as it is; a number as a constant one, a function of the context wrapped."""
    if isinstance(policy, Policy):
        return policy
    if is_number(policy):
        return Constant(policy)
    if callable(policy) and not isinstance(policy, type):
        return Function(policy)
    raise InvalidArgument(
        "A policy must be a policy of titrant, a number, one dose for each row of a log, or a "
        f"function of the contexts; got {policy!r}. For a fitted regressor pass its `predict`."
    )


def is_number(policy: object) -> TypeGuard[float]:
    """Whether something is a dose for everyone."""
    return isinstance(policy, Real) and not isinstance(policy, (bool, np.bool_))
