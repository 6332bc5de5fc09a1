"""Any Python function of the context as a policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.policies.base import Policy
from titrant.policies.calling import checked_doses
from titrant.policies.contexts import contexts_for
from titrant.policies.fields import feature_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array


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
        object.__setattr__(self, "features", feature_names(self.features, None, "Function"))

    def __call__(self, X: object) -> Array:
        """Return the doses for contexts X, an array (n, p) or a table: (n,) or (n, d), checked."""
        owner = _name(self.function)
        x = contexts_for(self.features, X, owner)
        return checked_doses(self.function(x), len(x), owner)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: code is not data."""
        raise InvalidArgument(
            f"The {_name(self.function)} is a Python function and cannot be saved as data. "
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
    return f"policy function `{getattr(function, '__qualname__', type(function).__name__)}`"
