"""Figures of studies: one style, SVG and PNG, the same bytes from the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "titrant",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
_SIZE = (9.0, 4.0)
_DPI = 130
COLORS = ("#2a78c2", "#c2572a", "#3a9a5c", "#8a5ac2", "#b8860b", "#5a6b7b", "#c23a7a", "#20a0a0")


def saved(stem: Path, draw: Callable[[Figure], None]) -> None:
    """Write `stem`.svg and `stem`.png as `draw` fills an empty figure."""
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415  (no pyplot: no global state)

    with rc_context(_STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw(figure)
        nothing: Any = {"Date": None, "Creator": None}
        figure.savefig(stem.with_name(stem.name + ".svg"), metadata=nothing)
        figure.savefig(stem.with_name(stem.name + ".png"), dpi=_DPI, metadata={"Software": None})


def ribbon(
    axes: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    half: Sequence[float],
    *,
    label: str,
    color: str,
) -> None:
    """Draw a mean with the band mean ± half around it."""
    axes.plot(x, mean, label=label, color=color)
    low = [m - a for m, a in zip(mean, half, strict=True)]
    high = [m + a for m, a in zip(mean, half, strict=True)]
    axes.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
