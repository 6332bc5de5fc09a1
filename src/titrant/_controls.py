"""Control characters in the names that users give: shown, so that they do not act."""

from __future__ import annotations

import re

CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]")
"""Characters that act on the terminal of whoever prints the source of a page, and have no glyph."""


def written_out(text: str) -> str:
    r"""Return a text whose control characters, but for tabs and line breaks, are spelled.

    >>> written_out("a\x1b[31mred")
    'a\\x1b[31mred'
    """
    return CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)
