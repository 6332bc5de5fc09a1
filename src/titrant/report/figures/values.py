"""Figures of values: the policies, their differences, and one dose for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant import _drawing
from titrant.report.content import LOGGED
from titrant.report.figures.svg import INK, SERIES, canvas, styled, svg, upright
from titrant.report.typeset import number, percent, span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.curves import Curve
    from titrant.report.content import Report

MOST_ROWS = 12
"""Of a forest; beyond, it shows the drawn policies only."""


def colors(report: Report, names: Sequence[str]) -> list[str]:
    """Return the color of each policy on this page; those not drawn have the text's."""
    known = dict(zip(report.drawn, SERIES, strict=False))
    return [known.get(name, INK) for name in names]


def legend(report: Report) -> list[tuple[str, str, str]]:
    """Return name, color and dashes of each line in figures that have all policies."""
    dashes = ("", "6 3", "7 2 2 2", "2 3", "6 2 2 2 2 2")
    found = [
        (name, f"var(--c{k + 1})", dashes[k % len(dashes)]) for k, name in enumerate(report.drawn)
    ]
    return [(LOGGED, "currentColor", ""), *found]


def forest(report: Report) -> str:
    """Return the value of each policy with its interval, and the truth where it is known."""
    names, truth = [n for n in report.comparison.names if _fits(report, n)], report.truth
    values = [report.comparison[name].value for name in names]
    ends = [report.interval(name) for name in names]
    with styled():
        figure = canvas(0.62 + _drawing.ROW * 1.25 * len(names))
        axes = figure.subplots()
        _drawing.forest(
            axes,
            names,
            values,
            ends,
            marks=None if truth is None else [truth.get(name) for name in names],
            colors=colors(report, names),
        )
        axes.set_xlabel(_drawing.shown(f"mean {report.log.outcome}"))
        described = "; ".join(
            f"{n}: {number(v)}, from {span(*e)}"
            for n, v, e in zip(names, values, ends, strict=True)
        )
        title = f"Estimated mean {report.log.outcome} of each policy"
        return svg(figure, "forest", title, f"{described}.")


def differences(report: Report) -> str:
    """Return each policy less the status quo, with its interval, beside zero."""
    others = [name for name in report.comparison.names if name != report.status_quo]
    names = [name for name in others if _fits(report, name)]
    pairs = [report.comparison.contrast(name, report.status_quo) for name in names]
    ends = [pair.interval(report.level) for pair in pairs]
    with styled():
        figure = canvas(0.62 + _drawing.ROW * 1.25 * len(names))
        axes = figure.subplots()
        values = [pair.difference for pair in pairs]
        _drawing.forest(axes, names, values, ends, line=0.0, colors=colors(report, names))
        side = "right" if report.maximize else "left"
        axes.set_xlabel(f"difference; {side} of the line is better")
        described = "; ".join(
            f"{n}: {number(v)}, from {span(*e)}"
            for n, v, e in zip(names, values, ends, strict=True)
        )
        title = "Differences to the status quo, on the same rows"
        return svg(figure, "differences", title, f"{described}.")


def curve(report: Report, treatment: str, name: str) -> str:
    """Return the value of the same dose for all, with both bands, beside what the others reach."""
    label = f"{treatment}, the same for everyone"
    title = f"Value of the same {treatment} for everyone"
    return _curve(report, report.curves[treatment], (name, title, label))


def strengths(report: Report, found: Curve) -> str:
    """Return the value of the focus over the strength with which it is applied."""
    title = f"Value of “{report.focus}” over the strength β with which it is applied"
    label = "β: 0 the mean dose for all, 1 the rule"
    return _curve(report, found, ("strengths", title, label))


def _curve(report: Report, found: Curve, words: tuple[str, str, str]) -> str:
    """Return a curve with both bands beside what the status quo and the focus reach."""
    name, title, label = words
    bands = [found.band(report.level, simultaneous=both) for both in (True, False)]
    lines = dict.fromkeys([report.status_quo, report.focus])
    with styled():
        figure = canvas(2.9)
        axes = figure.subplots()
        _drawing.band(axes, found.parameters, found.values, bands, color=INK)
        for k, policy in enumerate(lines):
            value = report.comparison[policy].value
            color = colors(report, [policy])[0]
            style = _drawing.LINE_STYLES[k + 1]
            axes.axhline(value, color=color, lw=1.4, ls=style, label=_drawing.shown(policy))
        lines_at = [report.comparison[policy].value for policy in lines]
        axes.set_ylim(*_in_sight(np.append(found.values, lines_at), bands[0]))
        axes.set_xlabel(_drawing.shown(label))
        axes.set_ylabel(upright(f"mean {report.log.outcome}"))
        figure.legend(loc="outside upper left", ncols=1)
        best = int((np.argmax if report.maximize else np.argmin)(found.values))
        described = (
            f"From {number(found.parameters.min())} to {number(found.parameters.max())}; best at "
            f"{number(found.parameters[best])} with {number(found.values[best])}. The inner band "
            f"holds at each point, the outer one at all at once ({percent(report.level)})."
        )
        return svg(figure, name, title, described)


def _in_sight(values: Array, band: Array) -> tuple[float, float]:
    """Return the ends of an axis: a band may leave it where it is much wider than all values."""
    reach = float(np.ptp(values)) or float(np.ptp(band)) or 1.0
    low = max(float(band.min()), float(values.min()) - reach)
    high = min(float(band.max()), float(values.max()) + reach)
    ends = min(low, float(values.min())), max(high, float(values.max()))
    margin = 0.05 * (ends[1] - ends[0])
    return ends[0] - margin, ends[1] + margin


def _fits(report: Report, name: str) -> bool:
    """Return whether a forest has a row for this policy: for all of them, unless they are many."""
    few = len(report.comparison.names) <= MOST_ROWS
    return few or name == report.status_quo or name in report.drawn
