"""Contexts as users hold them: a bare array, or a table whose columns have names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.data import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.data.frames import NamedTable


def named_table(contexts: object) -> NamedTable | None:
    """Return a table of any library by its columns' names, None for arrays and numbered columns."""
    if isinstance(contexts, (np.ndarray, list, tuple)):
        return None
    from titrant.data import frames  # noqa: PLC0415 - loads pyarrow, which arrays do not need

    return frames.named(contexts)


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
