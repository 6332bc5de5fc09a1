"""From a JSON document back to the policy it describes, and to where it was learned.

Nothing in a file is ever executed.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant.data.columns import Recipe
from titrant.errors import InvalidArgument, PolicyFileError
from titrant.policies.advice import People
from titrant.policies.bent import Additive, Products
from titrant.policies.clipped import Clipped, InLimits, Rounded
from titrant.policies.constant import Constant, StatusQuo
from titrant.policies.formats.saving import FORMAT, TRAINING, VERSION, read, write
from titrant.policies.linear import Linear
from titrant.policies.lookup import Personal
from titrant.policies.moves import MOVES
from titrant.policies.rbf import RBF
from titrant.policies.trees import LinearTree, Tree

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.policies.base import Policy

    Known = Mapping[str, type[Policy]]

POLICIES: tuple[type[Policy], ...] = (
    *(Constant, Linear, Additive, Products, Tree, LinearTree, RBF, Personal),
    *(Clipped, Rounded, InLimits),
)
"""Every policy with a formula; the law tests run over this list."""
_ALL: tuple[type[Policy], ...] = (*POLICIES, StatusQuo, *MOVES)
SAVED: dict[str, type[Policy]] = {cls.__name__: cls for cls in _ALL}
"""Every class that a file may name without being told."""
MOST_NESTED = 100
"""How often a policy may be wrapped in another: Python cannot call them to any depth."""


def load_policy(path: str | os.PathLike[str], *, classes: Sequence[type[Policy]] = ()) -> Policy:
    """Return the policy that `Policy.save` wrote to `path`.

    A policy of a class of your own needs that class among ``classes``.
    """
    return policy_from_dict(read(path), classes=classes)


def policy_from_dict(content: object, *, classes: Sequence[type[Policy]] = ()) -> Policy:
    """Return the policy whose `to_dict()` is `content`; see `load_policy`."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise PolicyFileError(
            f'A saved policy is a JSON object with "format": "{FORMAT}"; this one is not. '
            "Give a file that `policy.save` wrote."
        )
    if content.get("version") != VERSION:
        raise PolicyFileError(
            f"The policy has version {content.get('version')!r}; this titrant reads version "
            f"{VERSION}. Update titrant, or save the policy again."
        )
    return _policy(
        {
            key: value
            for key, value in content.items()
            if key not in {"format", "version", TRAINING}
        },
        {cls.__name__: cls for cls in classes} | SAVED,
    )


def _policy(content: dict[str, Any], known: Known, depth: int = 0) -> Policy:
    """Return the policy of a document without its header, `depth` policies around it."""
    if depth > MOST_NESTED:
        raise PolicyFileError(
            f"The policy is wrapped more than {MOST_NESTED} times. Save one that is wrapped less."
        )
    cls = _class(content.get("class"), known)
    own = cls not in SAVED.values()
    given = {
        key: _decoded(value, known, depth, own=own)
        for key, value in content.items()
        if key != "class"
    }
    _check_fields(cls, given)
    try:
        return cls(**given)
    except (InvalidArgument, OverflowError) as error:
        raise PolicyFileError(f"The policy file holds a wrong value. {error}") from error


def _decoded(value: object, known: Known, depth: int, *, own: bool) -> object:
    """Return a field; in a class of the user's own what JSON calls an array is a tuple again."""
    if own and isinstance(value, list):
        return tuple(_decoded(entry, known, depth, own=own) for entry in value)
    return _policy(value, known, depth + 1) if isinstance(value, dict) else value


def _class(name: object, known: Known) -> type[Policy]:
    if not isinstance(name, str) or name not in known:
        shown = name if isinstance(name, str) and name.isidentifier() else "YourPolicy"
        raise PolicyFileError(
            f"The policy has class {name!r}; known are {', '.join(known)}. If the class is your "
            f"own, read the file in Python by `load_policy(path, classes=[{shown}])`; else update "
            "titrant, or save the policy again."
        )
    return known[name]


def _check_fields(cls: Any, given: dict[str, Any]) -> None:  # noqa: ANN401
    expected = {field.name for field in fields(cls)}
    wrong = [f"without {sorted(expected - set(given))}"] if expected - set(given) else []
    wrong += [f"with unknown {sorted(set(given) - expected)}"] if set(given) - expected else []
    if wrong:
        raise PolicyFileError(
            f"The policy of class {cls.__name__} comes {' and '.join(wrong)}; it has the fields "
            f"{sorted(expected)}. Save the policy again instead of editing its file."
        )


# Where a policy was learned: the ranges of its contexts, kept in the policy's file.
#
# A file of a learned policy has one more entry, ``"training": {"version": 1, "rows": …,
# "context": {name: [low, high], …}}``, with ``"levels": {column: [text, …], …}`` where contexts are
# the 0/1 indicators of a column of texts: the indicators alone do not say which text the reference
# is. ``"people"`` are groups of like people with their doses and losses, for `recommend --explain`;
# readers that do not know them leave them aside. Where numbers were missing, version 2 has
# ``"fills": {name: number, …}``, and where a context is a code of texts, ``"codes": [column, …]``,
# and where dates were written as text, ``"dates": {column: format, …}``. Either version may have
# ``"clocks": {column: zone, …}`` of the dates of which contexts are made. `load_policy` leaves the
# entry aside: the policy is the same.

TRAINING_VERSION, FILLED_VERSION = 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRange:
    """The smallest and largest context (p,) each, among the rows that a policy was learned from."""

    names: tuple[str, ...]
    low: Array
    high: Array
    rows: int
    recipe: Recipe = field(default_factory=Recipe)
    """How the contexts are made of the columns of a table."""
    people: People | None = None
    """Groups of like people, if they are known."""

    @classmethod
    def of(cls, context: Array, names: tuple[str, ...]) -> Self:
        """Return the range of contexts (n, p)."""
        return cls(names, context.min(axis=0), context.max(axis=0), len(context))

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """The texts of each column that was encoded."""
        return self.recipe.levels

    def of_features(self, features: Sequence[str]) -> Self:
        """Return the ranges of the contexts that a policy knows, by name, in the policy's order."""
        missing = [feature for feature in features if feature not in self.names]
        if missing:
            raise _refusal(f"has no range for {', '.join(f'`{name}`' for name in missing)}")
        at = list(map(self.names.index, features))
        return replace(self, names=tuple(features), low=self.low[at], high=self.high[at])

    def texts_of(self, features: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the texts of each column of which some of the features are made."""
        from titrant.data.features import stored  # noqa: PLC0415  (pyarrow)

        used = stored(features, list(self.levels))
        return {name: self.levels[name] for name in used if name in self.levels}

    def beyond(self, X: Array) -> NDArray[np.bool_]:
        """Return where contexts X (n, p), ordered as ``names``, lie outside the range (n, p)."""
        return np.asarray((self.low > X) | (self.high < X))

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a policy's file."""
        ends = zip(self.low.tolist(), self.high.tolist(), strict=True)
        context = {name: list(pair) for name, pair in zip(self.names, ends, strict=True)}
        made = {
            "levels": {name: list(texts) for name, texts in self.levels.items()},
            "fills": dict(self.recipe.fills),
            "codes": list(self.recipe.codes),
            "dates": dict(self.recipe.dates),
            "clocks": dict(self.recipe.clocks),
        }
        filled = made["fills"] or made["codes"] or made["dates"]
        version = FILLED_VERSION if filled else TRAINING_VERSION
        there = {key: value for key, value in made.items() if value}
        people = {} if self.people is None else {"people": self.people.to_dict()}
        return {"version": version, "rows": self.rows, "context": context, **there, **people}

    @classmethod
    def from_dict(cls, content: object) -> Self:
        """Return the range that `to_dict` described."""
        known = (TRAINING_VERSION, FILLED_VERSION)
        if not isinstance(content, dict) or content.get("version") not in known:
            versions = " or ".join(map(str, known))
            raise _refusal(f"has no version {versions}, which this titrant reads")
        context, rows = content.get("context"), content.get("rows")
        if not isinstance(context, dict) or not isinstance(rows, int):
            raise _refusal("lacks its rows or its contexts")
        if not all(_is_range(pair) for pair in context.values()):
            raise _refusal("has a context without a smallest and a largest value")
        ends = np.array(list(context.values()), dtype=np.float64).reshape(-1, 2)
        people = content.get("people")
        known_people = None if people is None else People.from_dict(people)
        return cls(tuple(context), ends[:, 0], ends[:, 1], rows, _recipe(content), known_people)


def save_learned(policy: Policy, training: TrainingRange, path: str | os.PathLike[str]) -> None:
    """Write a policy with the range it was learned on; `load_policy` reads the policy back."""
    write({**policy.to_dict(), TRAINING: training.to_dict()}, path)


def load_training(path: str | os.PathLike[str]) -> TrainingRange | None:
    """Return the range in the file of a learned policy, or None where there is none."""
    content = read(path)
    found = content.get(TRAINING) if isinstance(content, dict) else None
    return None if found is None else TrainingRange.from_dict(found)


def _recipe(content: dict[str, Any]) -> Recipe:
    levels, codes = _levels(content.get("levels", {})), content.get("codes", [])
    fills = content.get("fills", {})
    if not isinstance(fills, dict) or not all(map(_is_number, fills.values())):
        raise _refusal("has a fill that is no number")
    if not _are_texts(codes) or not set(codes).issubset(levels):
        raise _refusal("has a code without the list of its texts")
    dates = content.get("dates", {})
    if not isinstance(dates, dict) or not _are_texts(list(dates.values())):
        raise _refusal("has a date without its format")
    clocks = content.get("clocks", {})
    if not isinstance(clocks, dict) or not _are_texts(list(clocks.values())):
        raise _refusal("has a clock without its time zone")
    filled = {name: float(fill) for name, fill in fills.items()}
    return Recipe(levels, filled, tuple(codes), dates, clocks)


def _levels(content: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(content, dict) or not all(map(_are_texts, content.values())):
        raise _refusal("has a column without the list of its texts")
    return {name: tuple(texts) for name, texts in content.items()}


def _are_texts(texts: object) -> bool:
    return isinstance(texts, list) and all(isinstance(text, str) for text in texts)


def _is_range(pair: object) -> bool:
    if not isinstance(pair, list) or len(pair) != 2:  # noqa: PLR2004
        return False
    return all(map(_is_number, pair))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max


def _refusal(what: str) -> PolicyFileError:
    return PolicyFileError(
        f"The entry `{TRAINING}` of the policy file {what}. Save the policy again."
    )
