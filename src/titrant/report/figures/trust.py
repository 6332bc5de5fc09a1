"""Figures for doubts: overlap, weights, bandwidths, propensities, balance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _drawing
from titrant.inference.base import quantile
from titrant.report.figures.svg import INK, SERIES, canvas, styled, svg, upright
from titrant.report.figures.values import colors
from titrant.report.typeset import number, percent, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

    from titrant._types import Array
    from titrant.propensity import Calibration
    from titrant.report.content import Balance, OverlapMap, Report

TONES = 6
"""Shades of an overlap map."""
SENSITIVE_SD = 0.1
"""The usual limit of a material imbalance."""


def overlap(report: Report, found: OverlapMap, name: str) -> str:
    """Return where rows lie by logged dose and policy's dose; near the diagonal they speak."""
    with styled():
        figure = canvas(3.1)
        axes = figure.subplots()
        color = colors(report, [found.policy])[0]
        _cells(axes, found.edges, found.counts, color)
        _diagonal(axes, found)
        axes.set_title(_drawing.shown(found.policy), color=color)
        axes.set_xlabel(_drawing.shown(f"{found.treatment}, logged"))
        axes.set_ylabel(upright(f"{found.treatment}, policy"))
        near = (
            ""
            if found.within is None
            else f" {share(found.within)} of the rows lie within the bandwidth of the line."
        )
        described = f"The stronger the color, the more rows.{near}"
        title = f"Logged {found.treatment} against that of {found.policy}"
        return svg(figure, name, title, described)


def weights(report: Report) -> str:
    """Return the share of all weight that the largest weights hold."""
    with styled():
        drawn = [w for w in report.weights if w.policy in report.drawn and w.largest]
        figure = canvas(2.3 + 0.25 * len(drawn))  # the axes and a line of the legend for each
        axes = figure.subplots()
        tones = colors(report, [w.policy for w in drawn])
        for k, (w, color) in enumerate(zip(drawn, tones, strict=True)):
            axes.plot(
                w.largest,
                100 * np.array(w.share),
                color=color,
                marker="o",
                ms=4,
                ls=_drawing.LINE_STYLES[k % len(_drawing.LINE_STYLES)],
                label=_drawing.shown(w.policy),
            )
        axes.set_xscale("log")
        ticks = sorted({k for w in drawn for k in w.largest})
        axes.set_xticks(ticks, [f"{k}" for k in ticks])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("number of largest weights")
        axes.set_ylabel("% of all weight")
        figure.legend(loc="outside upper left", ncols=1)
        described = "; ".join(
            f"{w.policy}: the largest weight holds {share(w.share[0])}" for w in drawn
        )
        return svg(figure, "weights", "How few rows carry each estimate", f"{described}.")


def path(report: Report, policy: str, name: str) -> str:
    """Return the estimate of a policy over bandwidths, with the one that was chosen."""
    found = report.paths[policy]
    z = quantile(0.5 + report.level / 2, float("inf"))
    seen = np.isfinite(found.values) & (found.ess >= 1)
    scalar = len(found.spread) == 1
    h = (found.bandwidths if scalar else found.factors)[seen]
    values, half = found.values[seen], z * found.se[seen]
    chosen = _chosen(report, policy, scalar=scalar)
    color = colors(report, [policy])[0]
    with styled():
        figure = canvas(2.5)
        axes = figure.subplots()
        _drawing.path(axes, h, values, half, chosen=chosen, color=color)
        _within_sight(axes, values, half, found.ess[seen])
        axes.set_title(_drawing.shown(policy), color=color)
        axes.set_ylabel(upright(f"mean {report.log.outcome}"))
        axes.set_xlabel("bandwidth h" if scalar else "bandwidth h, in sd of the dose")
        choice = "" if chosen is None else f" The chosen one is {number(chosen)}."
        described = f"From {number(h[0])} to {number(h[-1])}.{choice} The table has the numbers."
        title = f"{policy} over the bandwidth, with {percent(report.level)} intervals"
        return svg(figure, name, title, described)


def calibration(found: Calibration) -> str:
    """Return how evenly held-out doses fall over the tenths of their predicted distributions."""
    parts = 100 * np.array(found.pit_histogram)
    with styled():
        figure = canvas(2.3)
        axes = figure.subplots()
        axes.bar(np.arange(1, 11), parts, width=0.84, color=SERIES[0], alpha=0.75, lw=0)
        axes.axhline(10, color=INK, lw=1.2, ls=(0, (2, 2)))
        axes.set_xticks(range(1, 11))
        axes.set_xlabel("tenth of the predicted distribution")
        axes.set_ylabel("% of rows")
        described = (
            f"Between {number(parts.min())} % and {number(parts.max())} % of {found.rows:,} "
            "held-out doses fall into each tenth; 10 % would be even."
        )
        return svg(figure, "calibration", "Calibration of the propensities", described)


def balance(report: Report, found: Balance) -> str:
    """Return how far the rows near a policy differ from all rows, before and after weighting."""
    count = len(found.contexts)
    places = np.arange(count)
    with styled():
        figure = canvas(0.95 + 0.34 * count)
        axes = figure.subplots()
        color = colors(report, [found.policy])[0]
        axes.axvline(SENSITIVE_SD, color=INK, lw=1.2, ls=(0, (2, 2)), alpha=0.7)
        axes.plot(found.near, places, "o", mfc="none", color=INK, ms=6, label="near the policy")
        axes.plot(found.weighted, places, "o", color=color, ms=6, label="weighted")
        axes.set_yticks(places, [_drawing.shown(name) for name in found.contexts])
        axes.set_ylim(count - 0.4, -0.6)
        axes.set_xlim(left=-0.005)
        axes.set_xlabel("distance from all rows, in sd")
        figure.legend(loc="outside upper left", ncols=2)
        described = (
            f"The largest distance is {number(found.near.max())} sd near the policy and "
            f"{number(found.weighted.max())} sd after weighting; {SENSITIVE_SD} is the usual limit."
        )
        return svg(figure, "balance", f"Balance of the contexts, {found.policy}", described)


def _cells(axes: Axes, edges: Array, counts: Any, color: str) -> None:  # noqa: ANN401
    """Draw the density in a few shades, one path each; counts are (logged, policy)."""
    from matplotlib.patches import PathPatch  # noqa: PLC0415

    # Square root: a constant policy puts all rows into one line, and others must stay visible.
    tone = np.ceil(TONES * np.sqrt(counts / max(counts.max(), 1))).astype(int)
    for level in range(1, TONES + 1):
        path = _rectangles(edges, tone == level)
        if path is not None:
            axes.add_patch(PathPatch(path, fc=color, ec="none", alpha=0.12 + 0.13 * level))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(edges[0], edges[-1])


def _rectangles(edges: Array, where: Array) -> Any:  # noqa: ANN401  (a matplotlib Path, or None)
    """Return the cells that are true as one path, neighbors along the first axis as one piece."""
    from matplotlib.path import Path  # noqa: PLC0415

    corners = []
    for j in range(where.shape[1]):
        for first, last in _runs(where[:, j]):
            left, right, low, high = edges[first], edges[last], edges[j], edges[j + 1]
            corners += [(left, low), (right, low), (right, high), (left, high), (left, low)]
    if not corners:
        return None
    codes = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY] * (len(corners) // 5)
    return Path(corners, codes)


def _runs(where: Array) -> Iterator[tuple[int, int]]:
    """Yield first and one past the last place of each run of true entries."""
    steps = np.diff(np.concatenate([[0], where.astype(int), [0]]))
    yield from zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True)


def _diagonal(axes: Axes, found: OverlapMap) -> None:
    """Draw where both doses are equal, and the bandwidth around it."""
    ends = np.array([found.edges[0], found.edges[-1]])
    axes.plot(ends, ends, color=INK, lw=1.2)
    if found.bandwidth is not None:
        for side in (-found.bandwidth, found.bandwidth):
            axes.plot(ends, ends + side, color=INK, lw=1, ls=(0, (3, 3)))


def _chosen(report: Report, name: str, *, scalar: bool) -> float | None:
    chosen = report.comparison[name].bandwidth
    if chosen is None or chosen.h.ndim or not scalar:
        return None
    return float(chosen.h)


def _within_sight(axes: Axes, values: Array, half: Array, ess: Array) -> None:
    """Limit the axis to what enough rows speak about; the first bandwidths are mostly noise."""
    enough = ess >= min(30.0, float(ess.max()))
    low, high = (values - half)[enough].min(), (values + half)[enough].max()
    margin = 0.08 * (high - low)
    if high > low:
        axes.set_ylim(low - margin, high + margin)
