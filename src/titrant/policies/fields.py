"""What the fields of policies have in common: how they are checked and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import DataError
from titrant.policies.contexts import contexts_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array


def read_only(array: Array) -> Array:
    """Return a copy that cannot be written to."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def number_or_vector(value: ArrayLike, name: str, owner: str) -> float | Array:
    """Return a finite number as a float, and d ≥ 1 of them as a read-only array (d,)."""
    if isinstance(value, np.ndarray) and not value.ndim:
        return _check.number(value[()], name, owner)
    if np.isscalar(value):
        return _check.number(value, name, owner)
    return read_only(matrix(value, name, owner, ndim=1))


def matrix(value: ArrayLike, name: str, owner: str, *, ndim: int | tuple[int, ...]) -> Array:
    """Return finite numbers as a read-only array with at least one entry."""
    array = _check.finite_array(value, name, owner, ndim=ndim)
    if not array.size:
        raise _check.invalid(name, owner, "an array with at least one entry", value)
    return read_only(array)


def feature_names(
    value: Sequence[str] | None, columns: int | None, owner: str
) -> tuple[str, ...] | None:
    """Return distinct names, one for each of the columns (where their number is known)."""
    if value is None:
        return None
    names = tuple(value) if isinstance(value, (list, tuple)) else ()
    strings = bool(names) and all(isinstance(name, str) for name in names)
    if not strings or len(set(names)) < len(names) or columns not in {None, len(names)}:
        amount = "" if columns is None else f"{columns} "
        raise _check.invalid("features", owner, f"a list of {amount}distinct names", value)
    return names


def parameters(params: ArrayLike, size: int, owner: str) -> Array:
    """Return the parameters of a policy as a finite array (size,)."""
    array = _check.finite_array(params, "params", owner, ndim=1)
    if len(array) != size:
        raise _check.invalid("params", owner, f"{size} finite numbers", params)
    return array


def context(X: object, columns: int, owner: str, names: tuple[str, ...] | None) -> Array:
    """Return the context as floats (n, p) after checking that p is what the policy knows."""
    array = contexts_for(names, X, f"policy `{owner}`")
    if array.ndim != 2 or array.shape[1] != columns:  # noqa: PLR2004
        listed = f" ({', '.join(names)})" if names else ""
        raise DataError(
            f"The context of `{owner}` must be a table with {columns} columns{listed}; "
            f"got an array of shape {array.shape}. Pass the columns the policy was made for."
        )
    return array


def per_dose(value: float | Array, tau: Array, name: str, owner: str) -> float | Array:
    """Return a number or vector (d,) that may be combined with doses (n,) or (n, d)."""
    size = tau.shape[1] if tau.ndim > 1 else 1
    if isinstance(value, np.ndarray) and len(value) != size:
        raise DataError(
            f"The `{name}` of `{owner}` has {len(value)} entries, but its policy gives "
            f"{size} dose(s) per row. Give one number, or one for each dose."
        )
    return value
