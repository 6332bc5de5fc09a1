"""What a class of a user's own says otherwise than the class that it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def written_anew(part: object, methods: Sequence[str], *, since: str) -> bool:
    """Return whether a part says otherwise what the author of its method `since` relied on.

    In its class, however late that was written, or by itself.
    """
    cls, own = type(part), getattr(part, "__dict__", {})
    author = next(base for base in cls.__mro__ if since in vars(base))
    return any(
        name in own or getattr(cls, name, None) is not getattr(author, name, None)
        for name in methods
    )
