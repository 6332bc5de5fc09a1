"""From a policy to a JSON document and to its file.

A document is ``{"format": "titrant-policy", "version": 1, "class": …}`` and the fields of the
policy's dataclass. Python writes a float with as many digits as identify it, so numbers come
back bit for bit. JSON has no infinity: an unbounded side is written as null.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant._writing import write_text
from titrant.errors import PolicyFileError

if TYPE_CHECKING:
    import os

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
        content: object = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyFileError(
            f"The policy file {path} cannot be opened: {error.strerror}."
        ) from error
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise PolicyFileError(
            f"The file {path} is not JSON ({reason}). Give a file that `policy.save` wrote."
        ) from None
    return content


def _fields(policy: Any) -> dict[str, Any]:  # noqa: ANN401
    values = {f.name: _encoded(getattr(policy, f.name)) for f in dataclasses.fields(policy)}
    return {"class": type(policy).__name__, **values}


def _encoded(value: Any) -> Any:  # noqa: ANN401
    """Return a field of a policy in the types that JSON knows."""
    if isinstance(value, np.ndarray):
        return _encoded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_encoded(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str) else _nested(value)


def _nested(policy: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a policy inside a policy, through its own `to_dict`: some refuse to be saved."""
    header = ("format", "version")
    return {key: value for key, value in policy.to_dict().items() if key not in header}
