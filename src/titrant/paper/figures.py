"""Figures of studies: one style, SVG and PNG, the same bytes from the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from titrant._writing import draft

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
        with draft(stem.with_name(f"{stem.name}.svg")) as stream:
            figure.savefig(stream, format="svg", metadata=nothing)
        with draft(stem.with_name(f"{stem.name}.png")) as stream:
            figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})


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


def boxes(axes: Axes, losses: dict[str, Any], *, label: str, most: float | None = None) -> None:
    """Draw 5, 25, 50, 75 and 95 % of losses as one box a rule, the mean printed beside its name.

    ``losses`` maps a rule to its "mean" and "quartiles" (5); ``most`` ends the axis.
    """
    for place, one in enumerate(losses.values()):
        least, low, middle, high, greatest = one["quartiles"]
        axes.plot([least, greatest], [place, place], color="#5a6b7b", lw=0.8, zorder=1)
        axes.barh(place, high - low, left=low, height=0.6, color="#b7d1ea", zorder=2)
        axes.plot([middle, middle], [place - 0.3, place + 0.3], color=COLORS[0], zorder=3)
        axes.plot(one["mean"], place, marker="D", ms=3, color=COLORS[1], zorder=4)
    names = [f"{name}  {one['mean']:.2f}" for name, one in losses.items()]
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    if most is not None:
        axes.set_xlim(0.0, most)


def dots(axes: Axes, values: dict[str, dict[str, list[float]]], *, label: str) -> None:
    """Draw the mean ± 2 SE of values (group → name → numbers), one row a name."""
    for k, (group, by_name) in enumerate(values.items()):
        numbers = [np.asarray(one) for one in by_name.values()]
        error = [2.0 * one.std() / max(len(one) - 1, 1) ** 0.5 for one in numbers]
        places = [place + 0.25 * k for place in range(len(numbers))]
        means = [one.mean() for one in numbers]
        axes.errorbar(means, places, xerr=error, fmt="o", ms=3, color=COLORS[k], label=group)
    axes.set_yticks(range(len(by_name)), list(by_name), fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=1.0)
    axes.axvline(0.0, color="black", lw=0.8)
    axes.set_xlabel(label)
    axes.legend(fontsize=7)
