"""Formulas of the pages, from LaTeX to MathML: browsers draw it by themselves, without a script."""

from __future__ import annotations

import re
from html import unescape

from latex2mathml.converter import convert

# What `pymdownx.arithmatex` leaves of $…$ and $$…$$ in its generic form.
LEFT = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def typeset(html: str) -> str:
    """Return a page with its formulas as MathML."""
    return LEFT.sub(lambda found: mathml(unescape(found[2]), display=found[1] == "div"), html)


def mathml(latex: str, *, display: bool = False) -> str:
    """Return a formula as MathML, in a line of its own if `display`."""
    drawn = convert(latex.strip(), display="block" if display else "inline")
    # A wide formula scrolls by itself, so that the page does not.
    return f'<div class="formula" tabindex="0">{drawn}</div>' if display else drawn
