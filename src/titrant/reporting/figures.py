"""Figures of a page: counts and results in, inline SVG out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _drawing
from titrant.inference.base import quantile
from titrant.inference.trust.rules import IMBALANCE_SD, balance_limit, is_unbalanced
from titrant.policies.points import value as of_context
from titrant.reporting.content import LOGGED
from titrant.reporting.numbers import number, percent, share, span
from titrant.reporting.svg import ACROSS, BESIDE_A_LEGEND, GOOD, INK, SERIES, canvas, svg, upright

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes

    from titrant._types import Array
    from titrant.evaluation.curves import Curve
    from titrant.policies.points import CurvePoints
    from titrant.propensity import Calibration
    from titrant.reporting.content import Balance, DoseCounts, OverlapMap, Profile, Report


# Figures of doses: who got what, and who would get what.

TALLEST = 2.5
"""How many times higher than the logged doses a bar may rise; a constant is all in one bar."""
FEW = 3
"""So few parts of a context are marked one by one."""


def histogram(report: Report, counts: DoseCounts, treatment: str, name: str) -> str:
    """Return one strip for each policy: its doses in color over the logged ones in gray."""
    drawn = list(report.drawn) or [LOGGED]
    logged = _shares(counts, LOGGED)
    with canvas(0.6 + 0.85 * len(drawn), len(drawn)) as (figure, found):
        strips = np.ravel(found)
        for axes, policy in zip(strips, drawn, strict=True):
            color = color_of(report, policy)
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
        strips[-1].set_xlabel(_drawing.shown(_with_unit(report, treatment)))
        described = (
            f"{treatment} as logged (gray area) and under {', '.join(drawn)}; "
            "the table has means and spreads."
        )
        return svg(figure, name, f"{treatment}: logged and by policy", described)


def profile(report: Report, found: Profile, name: str) -> str:
    """Return a dose against a context: logged mean and middle 80 %, and the policies."""
    x = found.centers
    with canvas(2.5) as (figure, axes):
        axes.fill_between(x, found.logged[:, 0], found.logged[:, 2], color=INK, alpha=0.16, lw=0)
        axes.plot(x, found.logged[:, 1], color=INK, lw=1.6, marker="o", ms=3)
        for k, (policy, doses) in enumerate(found.means.items()):
            axes.plot(x, doses, color=color_of(report, policy), lw=1.8, ls=line_style(k))
        if len(x) <= FEW:
            axes.set_xticks(x, [f"{value:.4g}" for value in x])
            axes.margins(x=0.25)
        context = report.called(found.context)
        axes.set_xlabel(_drawing.shown(context))
        axes.set_ylabel(upright(_with_unit(report, found.treatment)))
        described = (
            f"Mean {found.treatment} in {len(x)} parts of {context}: the log (gray, with "
            f"its middle 80 %) and {', '.join(found.means)}; the table has the numbers."
        )
        return svg(figure, name, f"{found.treatment} against {context}", described)


def rule_curve(report: Report, policy: str, found: CurvePoints, treatment: str, name: str) -> str:
    """Return what a context adds to a dose by a rule, over the people of the log."""
    place = report.log.treatments.index(treatment)
    context, added = report.called(found.context), found.line[:, 1 + place]
    with canvas(2.2) as (figure, axes):
        found.plot(axes, dose=place, color=color_of(report, policy))
        axes.set_xlabel(_drawing.shown(_unit_of(report, found.context)))
        axes.set_ylabel(upright(f"added to {_with_unit(report, treatment)}"))
        described = (
            f"From {number(added.min())} to {number(added.max())}, 0 at {context} "
            f"{of_context(found.middle)}; the table has the points."
        )
        return svg(figure, name, f"What {context} adds to {treatment}", described)


def _unit_of(report: Report, context: str) -> str:
    unit = report.units.get(context)
    return f"{report.called(context)} ({unit})" if unit else report.called(context)


def _shares(counts: DoseCounts, policy: str) -> Array:
    found = counts.counts[policy]
    return np.asarray(found / found.sum())


# Figures for doubts: overlap, weights, bandwidths, propensities, balance.

TONES = 6
"""Shades of an overlap map."""


def overlap(report: Report, found: OverlapMap, name: str) -> str:
    """Return where rows lie by logged dose and policy's dose; near the diagonal they speak."""
    with canvas(3.1) as (figure, axes):
        color = color_of(report, found.policy)
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
    drawn = [w for w in report.weights if w.policy in report.drawn and w.largest]
    # The axes and a line of the legend for each.
    with canvas(2.3 + 0.25 * len(drawn)) as (figure, axes):
        for k, w in enumerate(drawn):
            axes.plot(
                w.largest,
                100 * np.array(w.share),
                color=color_of(report, w.policy),
                marker="o",
                ms=4,
                ls=line_style(k),
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
    color = color_of(report, policy)
    with canvas(2.5) as (figure, axes):
        _drawing.path(axes, h, values, half, chosen=chosen, color=color)
        _within_sight(axes, values, half, found.ess[seen])
        axes.set_title(_drawing.shown(policy), color=color)
        axes.set_ylabel(upright(f"mean {report.log.outcome}"))
        unit = f" ({report.dose_unit})" if report.dose_unit else ""
        axes.set_xlabel(f"bandwidth h{unit}" if scalar else "bandwidth h, in sd of the dose")
        choice = "" if chosen is None else f" The chosen one is {number(chosen)}."
        described = f"From {number(h[0])} to {number(h[-1])}.{choice} The table has the numbers."
        title = f"{policy} over the bandwidth, with {percent(report.level)} intervals"
        return svg(figure, name, title, described)


def calibration(found: Calibration) -> str:
    """Return how evenly held-out doses fall over the tenths of their predicted distributions."""
    parts = 100 * np.array(found.pit_histogram)
    with canvas(2.3) as (figure, axes):
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
    """Return a Love plot: the distance of rows near a policy from all rows, and when weighted.

    What the check minds is crossed.
    """
    count = len(found.contexts)
    places = np.arange(count)
    minded = is_unbalanced(found.weighted, found.in_se, balance_limit(report.log.contexts))
    with canvas(0.95 + 0.34 * count) as (figure, axes):
        color = color_of(report, found.policy)
        axes.axvline(IMBALANCE_SD, color=INK, lw=1.2, ls=(0, (2, 2)), alpha=0.7)
        if not found.of_all:
            for place in places:
                ends = found.near[place], found.weighted[place]
                axes.plot(ends, [place, place], color=INK, lw=1, alpha=0.35)
            axes.plot(found.near, places, "o", mfc="none", color=INK, ms=6, label="near the policy")
        axes.plot(found.weighted, places, "o", color=color, ms=6, label="weighted")
        if minded.any():
            label = "beyond chance"
            axes.plot(found.weighted[minded], places[minded], "x", color=INK, ms=9, label=label)
        labels = [_drawing.shown(report.called(name)) for name in found.contexts]
        axes.set_yticks(places, labels)
        axes.set_ylim(count - 0.4, -0.6)
        axes.set_xlim(left=-0.005)
        axes.set_xlabel("distance from all rows, in sd")
        figure.legend(loc="outside upper left", ncols=3, columnspacing=1.0, handletextpad=0.2)
        before = "" if found.of_all else f"{number(found.near.max())} sd near the policy and "
        described = (
            f"The largest distance is {before}"
            f"{number(found.weighted.max())} sd after weighting; {IMBALANCE_SD} is the usual limit."
        )
        return svg(figure, "balance", f"Balance of the contexts, {found.policy}", described)


def sensitivity(report: Report, found: Mapping[str, Any]) -> str:
    """Return bounds over the strength of a hidden cause, with tipping points and benchmarks."""
    rows = found["bounds"]
    with canvas(3.1) as (figure, axes):
        _drawing.bounds(
            axes,
            {name: np.array([row[name] for row in rows]) for name in rows[0]},
            reference=found["reference"],
            tipping=found["tipping"],
            benchmarks={report.called(name): by for name, by in found["benchmarks"].items()},
            label=upright(f"mean {report.log.outcome}"),
        )
        return svg(figure, "sensitivity", "Bounds under a hidden cause", found["sentence"])


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


# Figures of values: the policies, their differences, and one dose for all.

FEW_POINTS = 30
"""So few points of a curve are marked one by one: between them nothing was computed."""
MOST_ROWS = 12
"""Of a forest; beyond, it shows the drawn policies only."""


def color_of(report: Report, policy: str) -> str:
    """Return the color of a policy on this page; one that is not drawn has the text's."""
    return dict(zip(report.drawn, SERIES, strict=False)).get(policy, INK)


def line_style(place: int) -> Any:  # noqa: ANN401  (whatever matplotlib takes)
    """Return how the line at a place is dashed."""
    return _drawing.LINE_STYLES[place % len(_drawing.LINE_STYLES)]


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
    found = {name: (report.comparison[name].value, report.interval(name)) for name in names}
    marks = None if truth is None else [truth.get(name) for name in names]
    outcome = f"mean {report.log.outcome}"
    title = f"Estimated {outcome} of each policy"
    return _forest(report, found, ("forest", title, _drawing.shown(outcome)), marks=marks)


def answer(report: Report) -> str:
    """Return each policy less the status quo with its interval: the picture of the answer."""
    others = [name for name in report.comparison.names if name != report.status_quo]
    names = [name for name in others if _fits(report, name)]
    pairs = [report.comparison.contrast(name, report.status_quo) for name in names]
    found = {pair.a: (pair.difference, pair.interval(report.level)) for pair in pairs}
    title = f"Difference to the status quo in mean {report.log.outcome}, on the same rows"
    unit = f" ({report.log.outcome_unit})" if report.log.outcome_unit else ""
    label = upright(f"difference in mean {report.log.outcome}{unit}", ACROSS)
    truth = report.truth or {}
    zero = truth.get(report.status_quo)
    marks = [None if zero is None or n not in truth else truth[n] - zero for n in names]
    words = ("answer", title, label)
    return _forest(report, found, words, marks=marks, line=0.0)


def _forest(
    report: Report,
    found: dict[str, tuple[float, tuple[float, float]]],
    words: tuple[str, str, str],
    *,
    marks: list[float | None] | None = None,
    line: float | None = None,
) -> str:
    """Return numbers with their intervals, one row for each policy."""
    name, title, label = words
    values, ends = zip(*found.values(), strict=True)
    tones = [color_of(report, policy) for policy in found]
    with canvas(0.75 + _drawing.ROW * 1.25 * len(found)) as (figure, axes):
        _drawing.forest(axes, list(found), values, ends, marks=marks, line=line, colors=tones)
        axes.set_xlabel(label)
        if line is not None:
            _better_side(axes, line, maximize=report.maximize)
        described = "; ".join(f"{n}: {number(v)}, from {span(*e)}" for n, (v, e) in found.items())
        return svg(figure, name, title, f"{described}.")


def _better_side(axes: Axes, line: float, *, maximize: bool) -> None:
    """Shade the side of a line on which values are better, and say so."""
    low, high = axes.get_xlim()
    room = 0.04 * (high - low)
    low, high = min(low, line - 4 * room), max(high, line + 4 * room)
    axes.set_xlim(low, high)
    side, where = ((line, high), "left") if maximize else ((low, line), "right")
    axes.axvspan(*side, color=GOOD, alpha=0.09, lw=0, zorder=0)
    sign = "better →" if maximize else "← better"
    shift = (5, 0) if maximize else (-5, 0)
    axes.annotate(
        sign,
        (line, 1.0),
        xycoords=axes.get_xaxis_transform(),
        xytext=shift,
        textcoords="offset points",
        ha=where,
        va="bottom",
        color=GOOD,
    )


def curve(report: Report, treatment: str, name: str) -> str:
    """Return the value of the same dose for all, with both bands, beside what the others reach."""
    label = f"{_with_unit(report, treatment)}, the same for everyone"
    title = f"Value of the same {treatment} for everyone"
    return _curve(report, report.curves[treatment], (name, title, label))


def strengths(report: Report, found: Curve) -> str:
    """Return the value of the focus over the strength with which it is applied."""
    title = f"Value of “{report.focus}” over the strength β with which it is applied"
    label = f"β: 0 the mean {report.word} for all, 1 the rule"
    return _curve(report, found, ("strengths", title, label))


def moved(report: Report, found: Curve) -> str:
    """Return the value of every logged dose raised or lowered by as much."""
    treatment = report.log.treatments[0]
    title = f"Value of every {treatment} raised or lowered by as much"
    label = f"added to {_with_unit(report, treatment)}"
    return _curve(report, found, ("shifts", title, label))


def _with_unit(report: Report, treatment: str) -> str:
    units = dict(zip(report.log.treatments, report.log.units, strict=False))
    return f"{treatment} ({units[treatment]})" if units.get(treatment) else treatment


def _curve(report: Report, found: Curve, words: tuple[str, str, str]) -> str:
    """Return a curve with both bands beside what the status quo and the focus reach."""
    name, title, label = words
    order = np.argsort(found.parameters)
    x, line = found.parameters[order], found.values[order]
    bands = [found.band(report.level, simultaneous=both)[order] for both in (True, False)]
    values = {name: report.comparison[name].value for name in (report.status_quo, report.focus)}
    with canvas(2.9) as (figure, axes):
        _drawing.band(axes, x, line, bands, color=INK)
        if len(x) <= FEW_POINTS:
            axes.plot(x, line, "o", color=INK, ms=4)
        for k, policy in enumerate(values):
            color, style = color_of(report, policy), line_style(k + 1)
            label_of = _drawing.shown(policy)
            axes.axhline(values[policy], color=color, lw=1.4, ls=style, label=label_of)
        seen = np.append(line, list(values.values()))
        axes.set_ylim(*_in_sight(seen, bands[0]))
        axes.set_xlabel(upright(label, ACROSS))
        unit = f" ({report.log.outcome_unit})" if report.log.outcome_unit else ""
        axes.set_ylabel(upright(f"mean {report.log.outcome}{unit}", BESIDE_A_LEGEND))
        figure.legend(loc="outside upper left", ncols=1)
        best = int((np.argmax if report.maximize else np.argmin)(line))
        width = float(np.ptp(bands[1][best]))
        described = (
            f"From {number(x[0])} to {number(x[-1])}; best at {number(x[best])} with "
            f"{number(line[best], width)}. The inner band holds at each point, the outer one at "
            f"all at once ({percent(report.level)})."
        )
        ends = bands[1][np.argsort(order)]
        at = axes, found.parameters, np.column_stack([found.values, ends])
        return svg(figure, name, title, described, at)


def _in_sight(values: Array, band: Array) -> tuple[float, float]:
    """Return the ends of an axis: a band may leave it where it is much wider than all values."""
    reach = float(np.ptp(values)) or float(np.ptp(band)) or 1.0
    low = max(float(band.min()), float(values.min()) - reach)
    high = min(float(band.max()), float(values.max()) + reach)
    ends = min(low, float(values.min())), max(high, float(values.max()))
    margin = 0.05 * ((ends[1] - ends[0]) or reach)
    return ends[0] - margin, ends[1] + margin


def _fits(report: Report, name: str) -> bool:
    """Return whether a forest has a row for this policy: for all of them, unless they are many."""
    few = len(report.comparison.names) <= MOST_ROWS
    return few or name == report.status_quo or name in report.drawn
