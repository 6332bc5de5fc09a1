"""Where a policy was learned: the ranges of its contexts, kept in the policy's file.

A file of a learned policy has one more entry, ``"training": {"version": 1, "rows": …,
"context": {name: [low, high], …}}``, with ``"levels": {column: [text, …], …}`` where contexts are
the 0/1 indicators of a column of texts: the indicators alone do not say which text the reference
is. `load_policy` leaves the entry aside: the policy is the same.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant.errors import PolicyFileError
from titrant.policies.saving import TRAINING, read, write

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.policies.base import Policy

VERSION = 1


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRange:
    """The smallest and largest context (p,) each, among the rows that a policy was learned from."""

    names: tuple[str, ...]
    low: Array
    high: Array
    rows: int
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of each column that was encoded."""

    @classmethod
    def of(cls, context: Array, names: tuple[str, ...]) -> Self:
        """Return the range of contexts (n, p)."""
        return cls(names, context.min(axis=0), context.max(axis=0), len(context))

    def with_levels(self, levels: Mapping[str, tuple[str, ...]]) -> Self:
        """Return the same range of contexts that stand for columns with these texts."""
        return replace(self, levels=dict(levels))

    def of_features(self, features: Sequence[str]) -> Self:
        """Return the ranges of the contexts that a policy knows, by name, in the policy's order."""
        missing = [feature for feature in features if feature not in self.names]
        if missing:
            raise _refusal(f"has no range for {', '.join(f'`{name}`' for name in missing)}")
        at = list(map(self.names.index, features))
        return replace(self, names=tuple(features), low=self.low[at], high=self.high[at])

    def beyond(self, X: Array) -> NDArray[np.bool_]:
        """Return where contexts X (n, p), ordered as ``names``, lie outside the range (n, p)."""
        return np.asarray((self.low > X) | (self.high < X))

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a policy's file."""
        ends = zip(self.low.tolist(), self.high.tolist(), strict=True)
        context = {name: list(pair) for name, pair in zip(self.names, ends, strict=True)}
        texts = {"levels": {k: list(v) for k, v in self.levels.items()}} if self.levels else {}
        return {"version": VERSION, "rows": self.rows, "context": context, **texts}

    @classmethod
    def from_dict(cls, content: object) -> Self:
        """Return the range that `to_dict` described."""
        if not isinstance(content, dict) or content.get("version") != VERSION:
            raise _refusal(f"has no version {VERSION}, which this titrant reads")
        context, rows = content.get("context"), content.get("rows")
        if not isinstance(context, dict) or not isinstance(rows, int):
            raise _refusal("lacks its rows or its contexts")
        if not all(_is_range(pair) for pair in context.values()):
            raise _refusal("has a context without a smallest and a largest value")
        ends = np.array(list(context.values()), dtype=np.float64).reshape(-1, 2)
        return cls(tuple(context), ends[:, 0], ends[:, 1], rows, _levels(content.get("levels", {})))


def save_learned(policy: Policy, training: TrainingRange, path: str | os.PathLike[str]) -> None:
    """Write a policy with the range it was learned on; `load_policy` reads the policy back."""
    write({**policy.to_dict(), TRAINING: training.to_dict()}, path)


def load_training(path: str | os.PathLike[str]) -> TrainingRange | None:
    """Return the range in the file of a learned policy, or None where there is none."""
    content = read(path)
    found = content.get(TRAINING) if isinstance(content, dict) else None
    return None if found is None else TrainingRange.from_dict(found)


def _levels(content: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(content, dict) or not all(map(_are_texts, content.values())):
        raise _refusal("has a column without the list of its texts")
    return {name: tuple(texts) for name, texts in content.items()}


def _are_texts(texts: object) -> bool:
    return isinstance(texts, list) and all(isinstance(text, str) for text in texts)


def _is_range(pair: object) -> bool:
    if not isinstance(pair, list) or len(pair) != 2:  # noqa: PLR2004
        return False
    return all(isinstance(end, (int, float)) and abs(end) <= sys.float_info.max for end in pair)


def _refusal(what: str) -> PolicyFileError:
    return PolicyFileError(
        f"The entry `{TRAINING}` of the policy file {what}. Save the policy again."
    )
