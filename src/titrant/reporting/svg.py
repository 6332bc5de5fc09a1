"""A matplotlib figure as inline SVG that follows the page: its colors, its font, its width.

Colors in the figure are stand-ins that become CSS variables, so that one drawing serves light and
dark. Text stays text. A figure is as wide as a phone, in units of CSS pixels: its text is then
read at its own size there, and larger on a desk.
"""

from __future__ import annotations

import io
import re
import warnings
from contextlib import contextmanager
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant._drawing import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from titrant._types import Array


WIDTH = 4.9
"""Inches; 353 points, which a phone of 390 pixels shows at full size."""
UPRIGHT, BESIDE_A_LEGEND, ACROSS = 24, 18, 52
"""Letters in a line of a label that stands upright, and of one that does not."""
INK = "#010203"
"""Stands for the color of the page's text."""
SERIES = tuple(f"#0102{10 + k:02x}" for k in range(4))
"""Stand for the page's colors of policies."""
GOOD = "#010299"
"""Stands for the page's color of what is better."""
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: small, searchable, readable aloud
    "svg.hashsalt": "titrant",  # the same report gives the same bytes
    "path.simplify": False,
    "font.family": "sans-serif",
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.borderpad": 0.1,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
}


@contextmanager
def canvas(height: float, strips: int = 1) -> Iterator[tuple[Figure, Any]]:
    """Lend a figure of the page's width and its axes, of several ``strips`` an array of them.

    It is drawn, and turned into text, in the style of the page.
    """
    from cycler import cycler  # noqa: PLC0415
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415  (no pyplot: no global state)

    with rc_context({**_STYLE, "axes.prop_cycle": cycler(color=SERIES)}):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure, figure.subplots(strips, 1, sharex=True, squeeze=strips == 1)


def upright(text: str, letters: int = UPRIGHT) -> str:
    """Return the label of an axis in lines short enough for it, unless told for a vertical one."""
    return escaped("\n".join(wrap(text, letters, max_lines=3, placeholder=" …")))


def svg(
    figure: Figure,
    name: str,
    title: str,
    description: str,
    at: tuple[Axes, Array, Array] | None = None,
) -> str:
    """Return a figure as an element with a title and a description for those who do not see it.

    ``at`` are axes, parameters (m,) and y (m, 3), values and their intervals: where they lie in the
    drawing is said in `data-at`, for a mark that a reader moves.
    """
    out = io.StringIO()
    nothing = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    with warnings.catch_warnings():  # the page's font has signs that matplotlib's own lacks
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    text = out.getvalue()
    body = _in_page_colors(_slim(text[text.index("<svg") :], name))
    words = (
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
    )
    view = re.search(r'viewBox="[^"]*"', body)
    box = view[0] if view else ""
    marks = "" if at is None else f' data-at="{_places(figure, *at)}"'
    opening = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {box} role="img" id="{name}-figure" '
        f'aria-labelledby="{name}-title {name}-desc"{marks}>'
    )
    return opening + words + body[body.index(">") + 1 :]


def _places(figure: Figure, axes: Axes, x: Array, y: Array) -> str:
    """Return x, y and the ends of an interval in the units of a drawing that was made before."""
    held = np.clip(y, *axes.get_ylim())
    points = [axes.transData.transform(np.column_stack([x, held[:, k]])) for k in range(3)]
    unit = 72.0 / figure.dpi
    top = 72.0 * figure.get_figheight()
    rows = zip(points[0][:, 0] * unit, *(top - p[:, 1] * unit for p in points), strict=True)
    return " ".join(",".join(f"{value:.1f}" for value in row) for row in rows)


def _slim(text: str, name: str) -> str:
    """Return the drawing without what the page sets itself, its ids made its own."""
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>\s*", "", text, flags=re.DOTALL)  # it would be global
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", text)
    text = re.sub(r'(id="|href="#|url\(#)(?=[^")]+)', rf"\g<1>{name}-", text)
    text = re.sub(r'<path d="[^"]*" style="fill: none"/>', "", text)  # backgrounds, not seen
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)  # a hundredth of a pixel is enough
    text = re.sub(r"; stroke-line(?:join|cap): \w+", "", text)  # the page's style has them
    text = re.sub(r" transform=\"rotate\(-0[^\"]*\)\"", "", text)
    text = re.sub(r"\s*\n\s*", "\n", text)
    text = re.sub(r"\n?([MLCQz]) ?(?=[-\d\"\nM]|$)", r"\1", text, flags=re.MULTILINE)
    for empty in (r"<defs>\s*</defs>", r"<g>\s*</g>"):
        text = re.sub(rf"{empty}\n?", "", text)
    return text


def _in_page_colors(text: str) -> str:
    for place, color in enumerate(SERIES):
        text = text.replace(color, f"var(--c{place + 1})")
    return text.replace(GOOD, "var(--ok)").replace(INK, "currentColor")
