"""Whatever a user holds numbers in, as float64 arrays; text, dates and categories are refused."""

from __future__ import annotations

import numbers
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from titrant.data import wording

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

_NUMERIC_KINDS = "biuf"  # bool, signed, unsigned, float of any width and byte order
_MOMENT_KINDS = "mM"


def floats(value: object, label: str) -> Array:
    """Return `value` as a C-contiguous float64 array; missing entries become NaN.

    The array shares memory with `value` when that already is one.
    """
    array = _plain(value, label)
    kind = array.dtype.kind
    if not array.size:
        return np.empty(array.shape)
    if kind == "O":
        return _from_objects(array, label)
    if kind not in _NUMERIC_KINDS:
        raise _refusal(array, label)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes inf, refused later
        return np.asarray(array, dtype=np.float64, order="C")


def frozen(array: Array) -> Array:
    """Return a read-only view; the owner of the memory keeps its own permissions."""
    view = array.view()
    view.flags.writeable = False
    return view


def _plain(value: object, label: str) -> NDArray[np.generic]:
    if isinstance(value, np.ma.MaskedArray):
        # np.asarray would drop the mask and use what lies under it.
        return np.where(np.ma.getmaskarray(value), np.nan, floats(value.data, label))
    try:
        return np.asarray(value)
    except ValueError:
        raise wording.not_rectangular(label) from None


def _from_objects(array: NDArray[np.generic], label: str) -> Array:
    """Convert Python numbers one by one; np.astype would also turn the text '1.5' into 1.5."""
    flat = array.ravel().tolist()
    for k, item in enumerate(flat):
        if not (_is_number(item) or _is_missing(item)):
            raise wording.not_numeric(label, _name(item), item, _row(k, array), _remedy(item))
    out = np.array([np.nan if _is_missing(item) else _to_float(item) for item in flat])
    return out.astype(np.float64, copy=False).reshape(array.shape)


def _is_number(item: object) -> bool:
    return isinstance(item, (numbers.Real, Decimal, np.bool_))


def _is_missing(item: object) -> bool:
    # pandas.NA by its printed form: it cannot be compared, and pandas need not be installed.
    return item is None or repr(item) in ("<NA>", "NaT")


def _to_float(item: float) -> float:
    try:
        return float(item)
    except OverflowError:
        return np.inf


def _refusal(array: NDArray[np.generic], label: str) -> Exception:
    flat = array.ravel()
    if array.dtype.kind == "U":
        k = first_non_number(flat.tolist())
        remedy = wording.NUMBERS_AS_TEXT if k is None else wording.TEXT
        return wording.not_numeric(label, "text", str(flat[k or 0]), _row(k or 0, array), remedy)
    remedy = wording.MOMENTS if array.dtype.kind in _MOMENT_KINDS else wording.OTHER
    return wording.not_numeric(label, array.dtype, flat[0], 0, remedy)


def first_non_number(texts: list[str | None]) -> int | None:
    """Return where the first text stands that does not read as a number, None if all do."""
    for k, text in enumerate(texts):
        if text is not None and not wording.looks_numeric(text):
            return k
    return None


def _remedy(item: object) -> str:
    if isinstance(item, str):
        return wording.NUMBERS_AS_TEXT if wording.looks_numeric(item) else wording.TEXT
    return wording.OTHER


def _row(k: int, array: NDArray[np.generic]) -> int:
    """Return the row of the k-th entry of the flattened array."""
    return int(np.unravel_index(k, array.shape)[0]) if array.ndim else 0


def _name(item: object) -> str:
    return "text" if isinstance(item, str) else type(item).__name__
