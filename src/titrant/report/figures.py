"""Figures as inline SVG that follow the page's colors, in light and in dark."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from titrant.report.content import LOGGED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from titrant.report.content import DoseCounts, Report

_INK = "#010203"
"""Stands for the page's text color and is replaced by it; no figure uses this color otherwise."""
_ACCENT, _TRUTH = "#2a78c2", "#c2572a"
_WIDTH = 7.0
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: small, searchable, readable aloud
    "svg.hashsalt": "titrant",  # the same report gives the same bytes
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def forest(report: Report) -> str:
    """Return the values of all policies with their intervals, truths beside them."""
    estimates = report.comparison.estimates
    with _styled():
        figure, axes = _canvas(0.9 + 0.42 * len(estimates))
        for place, (name, estimate) in enumerate(estimates.items()):
            axes.plot(estimate.interval(report.level), [place, place], color=_ACCENT, lw=2)
            axes.plot([estimate.value], [place], "o", color=_ACCENT)
            if report.truth is not None:
                axes.plot([report.truth[name]], [place], "|", color=_TRUTH, ms=16, mew=2)
        axes.set_yticks(range(len(estimates)), [_plain(name) for name in estimates])
        axes.set_ylim(len(estimates) - 0.5, -0.5)
        axes.set_xlabel("mean reward" if report.maximize else "mean loss")
        return _svg(figure)


def dose_histogram(counts: DoseCounts) -> str:
    """Return one row for each policy: its doses as a line over the logged ones as an area.

    Each is drawn to its own greatest count, since a constant dose would dwarf all others.
    """
    policies = {name: count for name, count in counts.counts.items() if name != LOGGED}
    logged = counts.counts[LOGGED]
    with _styled():
        figure = _figure(0.7 + 0.55 * len(policies))
        rows = figure.subplots(len(policies), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (name, count) in zip(rows, policies.items(), strict=True):
            axes.stairs(logged / logged.max(), counts.edges, fill=True, color=_INK, alpha=0.2)
            axes.stairs(count / count.max(), counts.edges, color=_ACCENT, lw=1.5)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.set_ylabel(_plain(name), rotation=0, ha="right", va="center")
        rows[-1].set_xlabel("dose")
        return _svg(figure)


def _styled() -> Any:  # noqa: ANN401  (matplotlib's context manager)
    from matplotlib import rc_context  # noqa: PLC0415

    return rc_context(_STYLE)


def _canvas(height: float) -> tuple[Figure, Axes]:
    figure = _figure(height)
    return figure, figure.subplots()


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415  (no pyplot: no global state)

    return Figure(figsize=(_WIDTH, height), layout="constrained")


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].replace(_INK, "currentColor")
    # A fixed width in points would not fit a phone; the view box keeps the proportions.
    return re.sub(r'<svg ([^>]*?)height="[^"]*" ([^>]*?)width="[^"]*"', r"<svg \1\2", text, count=1)


def _plain(name: str) -> str:
    """Return a name without what matplotlib would read as a formula."""
    return name.replace("$", r"\$")
