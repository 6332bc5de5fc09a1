"""From a JSON document back to the policy it describes; nothing in a file is ever executed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from titrant.errors import InvalidArgument, PolicyFileError
from titrant.policies.clipped import Clipped
from titrant.policies.constant import Constant
from titrant.policies.linear import Linear
from titrant.policies.rbf import RBF
from titrant.policies.rounded import Rounded
from titrant.policies.saving import FORMAT, TRAINING, VERSION, read
from titrant.policies.status_quo import StatusQuo

if TYPE_CHECKING:
    import os

    from titrant.policies.base import Policy

POLICIES: tuple[type[Policy], ...] = (Constant, Linear, RBF, Clipped, Rounded)
"""Every policy with a formula; the law tests run over this list."""
MOST_NESTED = 100
"""How often a policy may be wrapped in another: Python cannot call them to any depth."""


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Return the policy that `Policy.save` wrote to `path`."""
    return policy_from_dict(read(path))


def policy_from_dict(content: object) -> Policy:
    """Return the policy whose `to_dict()` is `content`."""
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
        {key: value for key, value in content.items() if key not in {"format", "version", TRAINING}}
    )


def _policy(content: dict[str, Any], depth: int = 0) -> Policy:
    """Return the policy of a document without its header, `depth` policies around it."""
    if depth > MOST_NESTED:
        raise PolicyFileError(
            f"The policy is wrapped more than {MOST_NESTED} times. Save one that is wrapped less."
        )
    cls = _class(content.get("class"))
    given = {key: _decoded(value, depth) for key, value in content.items() if key != "class"}
    _check_fields(cls, given)
    try:
        return cls(**given)
    except (InvalidArgument, OverflowError) as error:
        raise PolicyFileError(f"The policy file holds a wrong value. {error}") from error


def _decoded(value: object, depth: int) -> object:
    return _policy(value, depth + 1) if isinstance(value, dict) else value


def _class(name: object) -> type[Policy]:
    saved: tuple[type[Policy], ...] = (*POLICIES, StatusQuo)
    known = {cls.__name__: cls for cls in saved}
    if not isinstance(name, str) or name not in known:
        raise PolicyFileError(
            f"The policy has class {name!r}; known are {', '.join(known)}. "
            "Update titrant, or save the policy again."
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
