"""Contexts as users hold them, a bare array or a table with names, and how names are matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from titrant.data import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.data.frames import NamedTable


@runtime_checkable
class KnowsFeatures(Protocol):
    """A rule that may know the names of its contexts."""

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names in their order, None if unknown."""


def named_table(contexts: object) -> NamedTable | None:
    """Return a table of any library by its columns' names, None for arrays and numbered columns."""
    if isinstance(contexts, (np.ndarray, list, tuple)):
        return None
    from titrant.data import frames  # noqa: PLC0415 - loads pyarrow, which arrays do not need

    return frames.named(contexts)


def is_table(contexts: object) -> bool:
    """Whether something is a table with columns that are more than counted."""
    if isinstance(contexts, (np.ndarray, list, tuple)):
        return False
    from titrant.data import frames  # noqa: PLC0415 - loads pyarrow, which arrays do not need

    return frames.is_table(contexts)


def named_columns(
    contexts: object, names: Sequence[str] | None
) -> tuple[object, Sequence[str] | None]:
    """Return contexts as an array and their names: those of a table are its own.

    What is no table is returned as it is, with the ``names`` given.
    """
    table = named_table(contexts)
    if table is None:
        return contexts, names
    own: tuple[str, ...] = table.names
    if names is not None and tuple(names) != own:
        raise wording.names_of_a_table(own, names)
    x: Array = table.columns(own)
    return x, own


def select(X: Array, features: Sequence[str] | None, names: Sequence[str], owner: str) -> Array:
    """Return the columns of X (n, p), called ``names``, that are the ``features``, in their order.

    Without features, or with the very names, it is X itself.
    """
    if not features or tuple(features) == tuple(names):
        return X
    return np.take(X, places(features, names, owner), axis=1)


def places(features: Sequence[str], names: Sequence[str], owner: str) -> tuple[int, ...]:
    """Return where each of the features is among the names, or refuse to guess those missing."""
    missing = [feature for feature in features if feature not in names]
    if missing:
        raise wording.lacks_contexts(owner, missing, names)
    return tuple(map(list(names).index, features))
