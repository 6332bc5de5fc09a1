"""Any Python function of the context as a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.errors import DataError, InvalidArgument
from titrant.policies.base import Policy
from titrant.policies.calling import check_doses

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(Policy):
    """τ(x) = function(x): a function from contexts (n, p) to doses (n,) or (n, d).

    It must treat each row by itself, since a large log is handed to it in batches.
    """

    function: Callable[[Array], ArrayLike]

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise _check.invalid("function", "Function", "a function of the context", self.function)

    def __call__(self, X: Array) -> Array:
        """Return the doses for contexts X (n, p): (n,) or (n, d), checked."""
        returned = self.function(X)
        try:
            tau = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(
                f"{_name(self.function)} must return one number per row; got a "
                f"{type(returned).__name__} that does not turn into an array of numbers."
            ) from None
        check_doses(tau, len(X), _name(self.function))
        return tau

    def to_dict(self) -> dict[str, Any]:
        """Refuse: code is not data."""
        raise InvalidArgument(
            f"{_name(self.function)} is a Python function and cannot be saved as data. "
            "Save a policy such as `Linear` or `RBF`, or keep the function in a module."
        )


def as_policy(policy: Policy | Callable[[Array], ArrayLike]) -> Policy:
    """Return a policy as it is, and a function of the context wrapped as a policy."""
    if isinstance(policy, Policy):
        return policy
    if callable(policy) and not isinstance(policy, type):
        return Function(policy)
    raise InvalidArgument(
        f"A policy must be a policy of titrant or a function of the context array; got {policy!r}. "
        "For one dose use `Constant(dose)`, for a fitted regressor pass its `predict`."
    )


def _name(function: object) -> str:
    """Return how an error calls the function."""
    return f"The policy function `{getattr(function, '__qualname__', type(function).__name__)}`"
