"""Figures from arrays: what `.plot()` of the results and the report page draw alike.

matplotlib is imported when something is drawn and not before. Colors are those of the current
style (`C0`, the axes' own ink), so that a figure follows the reader's theme.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant._text import written_out

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes as Axes  # noqa: PLC0414  (result classes name it from here)
    from matplotlib.typing import ColorType

    from titrant._types import Array

ROW = 0.42
"""Inches that one row of a forest takes."""
LINE_STYLES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
"""Told apart without color, too."""
MOST_DOTS = 2000
"""Rows that are drawn one by one."""
MOST_NAMED = 6
"""Benchmarks that are named in a picture."""
_LONGEST = 44
_VERDICT_COLORS = {"ok": "#1c8a4b", "warn": "#b07700", "refuse": "#cc3333"}


def new_axes(ax: Axes | None, height: float | None = None) -> Axes:
    """Return the axes given, or those of a new figure, ``height`` inches high if that is given."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt  # noqa: PLC0415

    size = None if height is None else (plt.rcParams["figure.figsize"][0], height)
    return plt.subplots(figsize=size, layout="constrained")[1]


def escaped(text: str) -> str:
    """Return a text without what matplotlib would read as a formula, or has no glyph for."""
    return written_out(text).replace("$", r"\$")


def shown(name: str) -> str:
    """Return a name as a figure shows it, shortened in its middle if it is long."""
    if len(name) > _LONGEST:
        name = f"{name[: _LONGEST // 2]} … {name[-_LONGEST // 2 :]}"
    return escaped(name)


def forest(
    ax: Axes,
    names: Sequence[str],
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    *,
    marks: Sequence[float | None] | None = None,
    line: float | None = None,
    colors: Sequence[str] | None = None,
) -> Axes:
    """Draw one row for each name: its interval, its value, its name above.

    ``marks`` are upright strokes, such as known truths; ``line`` is a reference for all.
    """
    tones = ["C0"] * len(names) if colors is None else colors
    if line is not None:
        ax.axvline(line, color=ink(ax), lw=1, ls=(0, (2, 2)), alpha=0.7)
    for place, (name, value, (low, high)) in enumerate(zip(names, values, ends, strict=True)):
        ax.plot([low, high], [place, place], color=tones[place], lw=2.5, solid_capstyle="butt")
        ax.plot([value], [place], "o", color=tones[place], ms=7)
        ax.text(
            0, place - 0.22, shown(name), transform=ax.get_yaxis_transform(), va="bottom", ha="left"
        )
    for place, mark in enumerate(marks or ()):
        if mark is not None:
            ax.plot([mark], [place], "|", color=ink(ax), ms=17, mew=1.8)
    ax.set_yticks([])
    ax.set_ylim(len(names) - 0.6, -0.85)
    ax.spines["left"].set_visible(False)
    return ax


def band(
    ax: Axes, x: Array, values: Array, bands: Sequence[Array], *, color: str = "C0", label: str = ""
) -> Axes:
    """Draw a line over bands (m, 2) around it, the widest first; each is drawn fainter."""
    for step, ends in enumerate(bands):
        ax.fill_between(x, ends[:, 0], ends[:, 1], color=color, alpha=0.16 + 0.1 * step, lw=0)
    marker = "o" if len(x) == 1 else None
    ax.plot(x, values, color=color, lw=2, label=label or None, marker=marker)
    return ax


def path(
    ax: Axes, h: Array, values: Array, half: Array, *, chosen: float | None = None, color: str
) -> Axes:
    """Draw values ± half over bandwidths h (m,) on a log scale, with the one that was chosen."""
    band(ax, h, values, [np.column_stack([values - half, values + half])], color=color)
    _plain_log(ax)
    ax.set_xlim(h[0], h[-1])
    if chosen is not None:
        ax.axvline(chosen, color=ink(ax), lw=1.2, ls=(0, (2, 2)))
    return ax


def _plain_log(ax: Axes, subs: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Put a log scale below, with plain numbers at 1, 2 and 5: powers of ten alone are too few."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=tuple(subs)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def bounds(
    ax: Axes,
    columns: Mapping[str, Array],
    *,
    reference: float,
    tipping: Mapping[str, float | None],
    benchmarks: Mapping[str, float],
    label: str,
) -> Axes:
    """Draw bounds and their interval over strengths Γ (m,), on a log scale up to what matters.

    Benchmarks are strokes at the foot, the strongest ones named; tipping points are upright lines.
    """
    gamma = columns["gamma"]
    strong = dict(list(benchmarks.items())[:MOST_NAMED])
    tips = [tip for tip in tipping.values() if tip is not None]
    last = min(max(2.0, 1.25 * max([*tips, *strong.values()], default=2.0)), gamma[-1])
    ax.fill_between(gamma, columns["low"], columns["high"], color="C0", alpha=0.16, lw=0)
    ax.fill_between(gamma, columns["lower"], columns["upper"], color="C0", alpha=0.3, lw=0)
    ax.axhline(reference, color=ink(ax), lw=1, ls=(0, (2, 2)), alpha=0.7)
    for style, (_, tip) in zip(LINE_STYLES, tipping.items(), strict=False):
        if tip is not None:
            ax.axvline(tip, color=ink(ax), lw=1.2, ls=style)
    _plain_log(ax, (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0))
    ax.set_xlim(1.0, last)
    shown_rows = gamma <= last * 1.3
    low, high = columns["low"][shown_rows].min(), columns["high"][shown_rows].max()
    room = 0.05 * (high - low)
    ax.set_ylim(min(low, reference) - 2 * room, max(high, reference) + room)
    for name, strength in strong.items():
        if strength <= last:
            ax.plot([strength], [0.03], "^", color="C1", transform=ax.get_xaxis_transform(), ms=7)
            ax.annotate(
                shown(name),
                (strength, 0.03),
                xycoords=ax.get_xaxis_transform(),
                xytext=(0, 7),
                textcoords="offset points",
                rotation=60,
                fontsize="small",
            )
    ax.set_xlabel("strength Γ of a hidden cause")
    ax.set_ylabel(label)
    return ax


def learned_doses(
    ax: Axes, x: Array, logged: Array, learned: Array, context: str, *, label: str = "dose"
) -> Axes:
    """Draw logged and learned doses (n,) against a context x (n,); of many rows evenly some."""
    some = np.unique(np.linspace(0, len(x) - 1, MOST_DOTS).astype(np.intp))
    ax.plot(x[some], logged[some], "o", color=ink(ax), alpha=0.25, ms=3, mew=0, label="logged")
    ax.plot(x[some], learned[some], "o", color="C0", alpha=0.8, ms=3, mew=0, label="learned")
    ax.set_xlabel(shown(context))
    ax.set_ylabel(escaped(label))
    ax.legend(markerscale=2)
    return ax


def rule_curve(
    ax: Axes,
    line: tuple[Array, Array],
    knots: tuple[Array, Array],
    context: str,
    people: Array | None = None,
    *,
    color: str = "C0",
) -> Axes:
    """Draw what a context adds to a dose: a line, and the knots between which it bends.

    ``people`` are the least, first tenth, last tenth and largest value in a log (4,): the middle
    is shaded, and beyond all of them the line is broken.
    """
    x, added = line
    ax.axhline(0.0, color=ink(ax), lw=1, ls=(0, (2, 2)), alpha=0.7)
    ends = (x[0], x[-1])
    if people is not None:
        ax.axvspan(people[1], people[2], color=ink(ax), alpha=0.1, lw=0)
        ends = (people[0], people[-1])
    ax.plot(x, added, color=color, lw=1.5, ls=(0, (1, 1.5)))
    among = (x >= ends[0]) & (x <= ends[1])
    ax.plot(x[among], added[among], color=color, lw=2.0)
    ax.plot(*knots, "o", color=color, ms=5)
    ax.set_xlabel(shown(context))
    ax.set_ylabel("added to the dose")
    return ax


def histogram(ax: Axes, edges: Array, counts: Array, name: str) -> Axes:
    """Draw counts (k,) of rows between edges (k + 1,) of a column."""
    ax.stairs(counts, edges, fill=True, color="C0", alpha=0.8)
    ax.set_xlabel(shown(name))
    ax.set_ylabel("rows")
    return ax


def verdicts(
    ax: Axes, names: Sequence[str], verdicts: Sequence[str], values: Sequence[str]
) -> Axes:
    """Draw one row for each check: a dot in the color of its verdict, its name and its number."""
    for place, (name, verdict, value) in enumerate(zip(names, verdicts, values, strict=True)):
        ax.plot([0.0], [place], "o", color=_VERDICT_COLORS[verdict], ms=9)
        ax.text(0.04, place, shown(name), va="center")
        ax.text(0.72, place, value, va="center", ha="right")
        ax.text(0.76, place, verdict, va="center", color=_VERDICT_COLORS[verdict])
    ax.set_xlim(-0.04, 1.0)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_axis_off()
    return ax


def ink(ax: Axes) -> ColorType:
    """Return the color of the axes' own lines."""
    return ax.spines["bottom"].get_edgecolor()
