"""How a policy is called: its contexts by name, its doses checked."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING

import numpy as np

from titrant.data.columns import is_table, named_table, places, select
from titrant.data.validate import counted, floats, listed
from titrant.errors import DataError, InvalidArgument, TitrantError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.data.columns import Recipe
    from titrant.policies.base import Policy

# Contexts as a policy wants them: the one place where its names meet those of a log or a table.


def contexts_for(
    features: Sequence[str] | None,
    X: object,
    owner: str,
    names: Sequence[str] | None = None,
    recipe: Recipe | None = None,
) -> Array:
    """Return the contexts (n, p) in the order of ``features``, the names that a policy knows.

    The columns of a table are matched by name, and so are those of an array X with ``names``, as a
    log has them; others are left out. A bare array has no names: it is taken as it is. A table
    whose columns are numbered, or named in several levels, is refused where names are wanted. A
    policy that knows no names (None) gets all columns in the order in which they are. With the
    ``recipe`` of the log that a policy was learned from, gaps of a table are filled as there.
    """
    if names is not None:
        return select(np.asarray(X), features, names, owner)
    table = named_table(X)
    if table is None:
        if features and is_table(X):
            raise DataError(
                f"The {owner} finds its contexts by name ({', '.join(features)}); the columns of "
                "this table are numbered or named in several levels. Name them by texts, or pass "
                "an array with the contexts in this order."
            )
        return floats(X, f"context of the {owner}")
    if features is None:
        return table.read(table.names)
    return table.read(features, recipe) if features else np.empty((len(table), 0))


# Calling a policy and trusting what comes back.

NOT_THE_RULE = (TitrantError, OSError, MemoryError)
"""What a policy may raise that says all there is to say, or that another try may mend."""


def doses(policy: Policy, X: object, dimension: int, names: Sequence[str] | None = None) -> Array:
    """Return the doses of contexts X (n, p) as (n, d), finite and of the log's dimension d.

    ``names`` are those of the columns of X: the policy gets the ones it knows, in its own order.
    """
    tau = recommended(policy, X, names)
    given = tau.shape[1] if tau.ndim > 1 else 1
    if given != dimension:
        raise DataError(
            f"The {called(policy)} gives {given} dose(s) per row, but the log has {dimension} "
            "treatment(s). Give a policy for the same treatments in the same order."
        )
    return tau.reshape(len(tau), dimension)


def recommended(
    policy: Policy,
    X: object,
    names: Sequence[str] | None = None,
    *,
    owner: str | None = None,
    recipe: Recipe | None = None,
) -> Array:
    """Return the doses (n,) or (n, d) of a table or of contexts X (n, p), checked like a log."""
    who = owner or called(policy)
    x = contexts_for(policy.features, X, who, names, recipe)
    try:
        value = policy(x)
    except NOT_THE_RULE:
        raise
    except Exception as error:
        called_by = f" in the order {listed(names)}" if names else ""
        raise DataError(
            f"The {who} failed: {type(error).__name__} {error}. It gets the contexts as an array, "
            f"here of {x.shape[0]:,} rows and {counted(x.shape[1], 'column')}{called_by}, not as a "
            "table, and must not write into it: take columns by their place, such as X[:, 0], "
            "change a copy, `X.copy()`, or wrap it as `TablePolicy(function)` to get a table."
        ) from error
    return checked_doses(value, len(x), who)


def checked_doses(value: object, n: int, owner: str) -> Array:
    """Return what a policy returned for n rows as finite numbers, (n,) or (n, d).

    Rows go by position: the index of a Series is not looked at. A copy: a policy may use its array
    again for the next rows.
    """
    tau = floats(value, f"dose of the {owner}").copy()
    if tau.ndim not in {1, 2} or len(tau) != n or (tau.ndim > 1 and not tau.shape[1]):
        raise DataError(
            f"The {owner} must return one dose per row, shape ({n},) or ({n}, d); got {tau.shape}. "
            "For the same dose in every row use `Constant`."
        )
    finite = np.isfinite(tau)
    if not finite.all():
        bad = ~finite.reshape(n, -1).all(axis=1)
        raise DataError(
            f"The {owner} gives a dose that is missing or not finite in {bad.sum():,} of {n:,} "
            f"rows (first: row {int(np.argmax(bad))}). Check it for divisions by zero, logarithms "
            "and missing contexts."
        )
    return tau


def check_takes_contexts(function: Callable[..., object], owner: str) -> None:
    """Refuse a function that cannot be called with the contexts alone, as one of (X, t) cannot."""
    try:
        takes = signature(function)
    except (TypeError, ValueError):  # a function of C code says nothing of its arguments
        return
    try:
        takes.bind("contexts")
    except TypeError:
        raise InvalidArgument(
            f"The {owner} takes {takes}, but is called with the contexts alone. For doses that "
            "follow the logged dose t use `Shift(by)`, `Multiply(by)`, or "
            "`Moved(function, inverse)` with functions of contexts and doses, such as "
            "`Moved(lambda X, t: 0.9 * t, lambda X, t: t / 0.9)`."
        ) from None


def check_features(policy: Policy, names: Sequence[str], owner: str | None = None) -> None:
    """Raise unless a log with these context ``names`` has all that the policy knows."""
    places(policy.features or (), names, owner or called(policy))


def called(policy: Policy) -> str:
    """Return how a sentence calls a policy."""
    function = getattr(policy, "function", None)
    return f"policy `{type(policy).__name__}`" if function is None else called_function(function)


def called_function(function: object) -> str:
    """Return how a sentence calls a function that is a policy."""
    return f"policy function `{getattr(function, '__qualname__', type(function).__name__)}`"
