"""What a policy is: a rule τ(x), and for the learnable ones its parameters and their gradient."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from inspect import isabstract
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np

from titrant.errors import InvalidArgument
from titrant.policies.calling import doses
from titrant.policies.formats.saving import document, write

if TYPE_CHECKING:
    import os

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies.formats.formulas import Formula

P = TypeVar("P", bound="Policy")


class Policy(ABC):
    """A deterministic rule τ(x) that gives each context its dose.

    A concrete policy is a frozen dataclass; being saved, compared and shown rest on its fields.
    One that knows its ``features`` finds them by name in a log or a table, whatever the order of
    the columns there; columns it does not know are left out, and one it lacks is an error.
    """

    __slots__ = ()

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """Return τ(X) for contexts X (n, p): (n,), or (n, d) for a treatment of d doses.

        An array has its columns in the order of ``features``. Policies of titrant also take pandas,
        polars and Arrow tables and dicts of columns.
        """

    def of_rows(self, log: LoggedData) -> Array:
        """Return the doses (n, d) of the rows of a log, checked."""
        return doses(self, log.context, log.dimension, log.names)

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the context columns in their order; () if it uses none, None if unknown."""
        return None

    @property
    def is_rule(self) -> bool:
        """Whether it gives a dose for any contexts; else it is about the rows of a log."""
        return True

    @property
    def parametric(self) -> bool:
        """Whether `params`, `with_params` and `vjp` may be used."""
        return False

    def formulas(self, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:  # noqa: ARG002
        """Return the rule as a formula for each dose, given those of its contexts."""
        raise InvalidArgument(
            f"`{type(self).__name__}` has no formula that could be written in another language. "
            "Give a policy with one, such as a learned rule, or define its `formulas`."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as a JSON-ready document; `policy_from_dict` reads it back exactly."""
        return document(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to `path` as JSON; `load_policy` reads it back exactly."""
        write(self.to_dict(), path)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            _same(mine, theirs)
            for (_, mine), (_, theirs) in zip(_items(self), _items(other), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def __repr__(self) -> str:
        shown = (f"{name}={_short(value)}" for name, value in _items(self) if value is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


class ParametricPolicy(Policy):
    """A policy with parameters β (P,) that a learner may move."""

    __slots__ = ()

    @property
    def parametric(self) -> bool:
        """Whether `params`, `with_params` and `vjp` may be used."""
        return True

    @property
    @abstractmethod
    def params(self) -> Array:
        """The parameters β (P,)."""

    @abstractmethod
    def with_params(self, params: Array) -> ParametricPolicy:
        """Return the same policy with other parameters β (P,)."""

    @abstractmethod
    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ·∂τ(xᵢ)/∂β (P,) for contexts X (n, p) and g shaped like the doses."""


def formulas_of(policy: Policy, contexts: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """Return the policy's `formulas`; refuse those of a class that its subclass doses otherwise."""
    own = type(policy)
    for base in own.__mro__[1:]:
        if not issubclass(base, Policy) or isabstract(base):
            continue
        if base.formulas is own.formulas and base.__call__ is not own.__call__:
            return Policy.formulas(policy, contexts)
    return policy.formulas(contexts)


def _same(mine: object, theirs: object) -> bool:
    if isinstance(mine, tuple) and isinstance(theirs, tuple):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    arrays = isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray)
    return np.array_equal(mine, theirs) if arrays else bool(mine == theirs)  # type: ignore[arg-type]


def is_exactly(policy: object, kind: type[P]) -> TypeGuard[P]:
    """Whether a policy is of this class itself: a subclass may dose in another way."""
    return type(policy) is kind


def _items(policy: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    return [(field.name, getattr(policy, field.name)) for field in dataclasses.fields(policy)]


def _short(value: object) -> str:
    """Return a value on one line, long arrays shortened."""
    if isinstance(value, tuple) and any(isinstance(part, np.ndarray) for part in value):
        return f"[{', '.join(map(_short, value))}]"
    if not isinstance(value, np.ndarray):
        return repr(value)
    text = np.array2string(value, separator=", ", threshold=8, edgeitems=2, max_line_width=10_000)
    return " ".join(text.split())
