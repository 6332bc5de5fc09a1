"""From a JSON document back to the policy it describes; nothing in a file is ever executed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from titrant.errors import InvalidArgument, PolicyFileError
from titrant.policies.clipped import Clipped, Rounded
from titrant.policies.constant import Constant, StatusQuo
from titrant.policies.linear import Linear
from titrant.policies.rbf import RBF
from titrant.policies.saving import FORMAT, TRAINING, VERSION, read

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from titrant.policies.base import Policy

    Known = Mapping[str, type[Policy]]

POLICIES: tuple[type[Policy], ...] = (Constant, Linear, RBF, Clipped, Rounded)
"""Every policy with a formula; the law tests run over this list."""
_ALL: tuple[type[Policy], ...] = (*POLICIES, StatusQuo)
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
    expected = {field.name for field in dataclasses.fields(cls)}
    wrong = [f"without {sorted(expected - set(given))}"] if expected - set(given) else []
    wrong += [f"with unknown {sorted(set(given) - expected)}"] if set(given) - expected else []
    if wrong:
        raise PolicyFileError(
            f"The policy of class {cls.__name__} comes {' and '.join(wrong)}; it has the fields "
            f"{sorted(expected)}. Save the policy again instead of editing its file."
        )
