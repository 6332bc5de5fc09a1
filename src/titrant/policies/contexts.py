"""Contexts as a policy wants them: the one place where its names meet those of a log or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.data import wording
from titrant.data.arrays import floats
from titrant.data.named import is_table, named_table, select

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array


def contexts_for(
    features: Sequence[str] | None, X: object, owner: str, names: Sequence[str] | None = None
) -> Array:
    """Return the contexts (n, p) in the order of ``features``, the names that a policy knows.

    The columns of a table are matched by name, and so are those of an array X with ``names``, as a
    log has them; others are left out. A bare array has no names: it is taken as it is. A table
    whose columns are numbered, or named in several levels, is refused where names are wanted. A
    policy that knows no names (None) gets all columns in the order in which they are.
    """
    if names is not None:
        return select(np.asarray(X), features, names, owner)
    table = named_table(X)
    if table is None:
        if features and is_table(X):
            raise wording.nameless_table(owner, features)
        return floats(X, f"context of the {owner}")
    if features is None:
        return table.read(table.names)
    return table.read(features) if features else np.empty((len(table), 0))
