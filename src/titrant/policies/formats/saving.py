"""How policies are checked and saved as versioned JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant._writing import write_text
from titrant.errors import DataError, InvalidArgument, PolicyFileError
from titrant.policies.calling import contexts_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array

# What the fields of policies have in common: how they are checked and kept.


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


# From a policy to a JSON document and to its file.
#
# A document is ``{"format": "titrant-policy", "version": 1, "class": …}`` and the fields of the
# policy's dataclass. Python writes a float with as many digits as identify it, so numbers come
# back bit for bit. JSON has no infinity: an unbounded side is written as null.

FORMAT = "titrant-policy"
VERSION = 1
TRAINING = "training"
"""The entry of a learned policy's file that says where it was learned."""


def document(policy: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the document of a policy."""
    return {"format": FORMAT, "version": VERSION, **_fields(policy)}


def write(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a document to a file."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def read(path: str | os.PathLike[str]) -> object:
    """Return the content of a file that should hold a document."""
    try:
        text = _text(os.fspath(path))
        content: object = json.loads(text, object_pairs_hook=partial(_once, path))
    except OSError as error:
        raise PolicyFileError(
            f"The policy file {path} cannot be opened: {error.strerror}."
        ) from error
    except DataError as error:  # of a store, in a sentence
        raise PolicyFileError(str(error)) from None
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise PolicyFileError(
            f"The file {path} is not JSON ({reason}). Give a file that `policy.save` wrote."
        ) from None
    return content


def _text(path: str) -> str:
    if "://" not in path:
        return Path(path).read_text(encoding="utf-8")
    from titrant.data.files.stores import read_text  # noqa: PLC0415  (loads pyarrow)

    return read_text(path)


def _once(path: object, entries: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; of a name that comes twice, Python would keep the last value."""
    values: dict[str, object] = {}
    for name, value in entries:
        if name in values:
            raise PolicyFileError(
                f"In the policy file {path}, `{name}` is given twice. Keep the value that is meant."
            )
        values[name] = value
    return values


def _fields(policy: Any) -> dict[str, Any]:  # noqa: ANN401
    name, own = type(policy).__name__, _is_users_own(policy)
    if not dataclasses.is_dataclass(policy):
        raise InvalidArgument(
            f"`{name}` cannot be saved, because only the fields of a dataclass are. Decorate its "
            "class with `@dataclass(frozen=True, eq=False, repr=False)`."
        )
    values: dict[str, Any] = {}
    for field in dataclasses.fields(policy):
        try:
            values[field.name] = _encoded(getattr(policy, field.name), own=own)
        except TypeError as error:
            raise InvalidArgument(
                f"The field `{field.name}` of `{name}` cannot be saved: it holds {error}. Use "
                "finite numbers, strings, None, policies, and arrays or tuples of them."
            ) from None
    return {"class": name, **values}


def _is_users_own(policy: object) -> bool:
    """Whether a policy's class is not one of titrant's; refuse one that would be read as such."""
    from titrant.policies.formats.loading import SAVED  # noqa: PLC0415  (it imports the policies)

    name = type(policy).__name__
    own = SAVED.get(name) is not type(policy)
    if own and name in SAVED:
        raise InvalidArgument(
            f"A policy class of your own called `{name}` would be read back as titrant's `{name}`. "
            "Give it another name."
        )
    return own


def _encoded(value: Any, *, own: bool) -> Any:  # noqa: ANN401
    """Return a field of a policy in the types that JSON knows; a TypeError names what is not."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _encoded(value.tolist(), own=own)
    if isinstance(value, (list, tuple)):
        return [_encoded(entry, own=own) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        # titrant's policies take null for an open side; what another class would, nobody knows.
        if own or math.isnan(value):
            raise TypeError(value)
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return _nested(value)


def _nested(policy: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a policy inside a policy, through its own `to_dict`: some refuse to be saved."""
    from titrant.policies.base import Policy  # noqa: PLC0415  (it imports this module)

    if not isinstance(policy, Policy):
        raise TypeError(f"a {type(policy).__name__}")
    header = ("format", "version")
    return {key: value for key, value in policy.to_dict().items() if key not in header}
