"""Figures of doses: who got what, and who would get what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant import _drawing
from titrant.report.content import LOGGED
from titrant.report.figures.svg import INK, canvas, styled, svg, upright
from titrant.report.figures.values import colors

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.report.content import DoseCounts, Profile, Report

TALLEST = 2.5
"""How many times higher than the logged doses a bar may rise; a constant is all in one bar."""
FEW = 3
"""So few parts of a context are marked one by one."""


def histogram(report: Report, counts: DoseCounts, treatment: str, name: str) -> str:
    """Return one strip for each policy: its doses in color over the logged ones in gray."""
    drawn = list(report.drawn) or [LOGGED]
    logged = _shares(counts, LOGGED)
    with styled():
        figure = canvas(0.6 + 0.85 * len(drawn))
        strips = figure.subplots(len(drawn), 1, sharex=True, squeeze=False)[:, 0]
        for axes, policy, color in zip(strips, drawn, colors(report, drawn), strict=True):
            axes.stairs(logged, counts.edges, fill=True, color=INK, alpha=0.25, lw=0)
            shares = _shares(counts, policy)
            if policy != LOGGED:
                axes.stairs(shares, counts.edges, fill=True, color=color, alpha=0.3, lw=0)
                axes.stairs(shares, counts.edges, color=color, lw=1.5)
            top = min(shares.max(), TALLEST * logged.max())
            axes.set_ylim(0, 1.05 * max(top, logged.max()))
            axes.set_title(_drawing.shown(policy), color=color, pad=2)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        strips[-1].set_xlabel(_drawing.shown(treatment))
        described = (
            f"{treatment} as logged (gray area) and under {', '.join(drawn)}; "
            "the table has means and spreads."
        )
        return svg(figure, name, f"{treatment}: logged and by policy", described)


def profile(report: Report, found: Profile, name: str) -> str:
    """Return a dose against a context: logged mean and middle 80 %, and the policies."""
    x = found.centers
    with styled():
        figure = canvas(2.5)
        axes = figure.subplots()
        axes.fill_between(x, found.logged[:, 0], found.logged[:, 2], color=INK, alpha=0.16, lw=0)
        axes.plot(x, found.logged[:, 1], color=INK, lw=1.6, marker="o", ms=3)
        for k, (policy, color) in enumerate(
            zip(found.means, colors(report, list(found.means)), strict=True)
        ):
            style = _drawing.LINE_STYLES[k % len(_drawing.LINE_STYLES)]
            axes.plot(x, found.means[policy], color=color, lw=1.8, ls=style)
        if len(x) <= FEW:
            axes.set_xticks(x, [f"{value:.4g}" for value in x])
            axes.margins(x=0.25)
        axes.set_xlabel(_drawing.shown(found.context))
        axes.set_ylabel(upright(found.treatment))
        described = (
            f"Mean {found.treatment} in {len(x)} parts of {found.context}: the log (gray, with "
            f"its middle 80 %) and {', '.join(found.means)}; the table has the numbers."
        )
        return svg(figure, name, f"{found.treatment} against {found.context}", described)


def _shares(counts: DoseCounts, policy: str) -> Array:
    found = counts.counts[policy]
    return np.asarray(found / found.sum())
