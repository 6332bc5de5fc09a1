"""What a part of a user's own says otherwise than the class that it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def leaves(part: object, names: Sequence[str], *, of: type) -> bool:
    """Return whether a part leaves methods and settings as a class `of` this project has them.

    Neither its own class nor the part by itself says otherwise.
    """
    cls, own = type(part), getattr(part, "__dict__", {})
    return all(
        name not in own and getattr(cls, name, None) is getattr(of, name, None) for name in names
    )


def written_anew(part: object, methods: Sequence[str], *, since: str) -> bool:
    """Return whether a part says otherwise what the author of its method `since` relied on.

    In its class, however late that was written, or by itself.
    """
    author = next(base for base in type(part).__mro__ if since in vars(base))
    return not leaves(part, methods, of=author)
