"""Results as plain values: what JSON knows, and nothing else."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np


def plain(value: Any) -> Any:  # noqa: ANN401  (anything in, JSON out)
    """Return a value as dicts, lists, texts and finite numbers; what is not finite is None.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (2, "x")})
    {'a': [1.0, None], 'b': [2, 'x']}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return _object(value)


def _object(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Enum):
        return plain(value.value)
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return str(value)
