"""The paper's theorems, executed: what is predicted beside what is measured.

Each part has its own file: tasks, their measurement, and rows that put a prediction and a number
side by side. Exact numbers come from populations (`designs`), the others state their Monte-Carlo
standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from titrant.paper.result import COLORS
from titrant.paper.study import Findings, Study
from titrant.paper.theory import boundary, consistency, descent, doubly, expansion, generalization
from titrant.paper.theory.designs import ESTIMATORS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from titrant.paper.study import Measurement, Piece, Settings, Task


PARTS: dict[str, ModuleType] = {
    part.NAME: part for part in (expansion, consistency, doubly, generalization, boundary, descent)
}
"""Every part by its name, in the order of the paper: its tasks carry the name under "part"."""


def tasks(settings: Settings) -> list[Task]:
    """Return the tasks of all parts."""
    return [task for part in PARTS.values() for task in part.tasks(settings)]


def measure(task: Task) -> Measurement:
    """Return what the task's part measures."""
    found: Measurement = PARTS[task["part"]].measure(task)
    return found


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the findings of all parts, one after the other."""
    each: list[Findings] = [
        part.summarize([piece for piece in pieces if piece.task["part"] == name])
        for name, part in PARTS.items()
    ]
    series: dict[str, Any] = {}
    sample: dict[str, float] = {}
    for findings in each:
        series |= findings.series
        sample |= findings.sample
    return Findings(
        rows=tuple(row for one in each for row in one.rows), series=series, sample=sample
    )


# The figure: one panel a statement, lines predicted, dots measured.

BLUE, RED, GREEN, PURPLE = COLORS[:4]
SMALL = 6.5
TICKS = (0.05, 0.1, 0.2, 0.4)


def draw(figure: Figure, series: dict[str, Any]) -> None:
    """Draw nine panels."""
    figure.set_size_inches(9.0, 8.0)
    panels = figure.subplots(3, 3).ravel()
    found = series["expansion"]
    _bias(panels[0], found)
    _variance(panels[1], found)
    _best(panels[2], found)
    _consistency(panels[3], series[consistency.NAME])
    _doubly(panels[4], series[doubly.NAME])
    _generalization(panels[5], series[generalization.NAME])
    _boundary(panels[6], series[boundary.NAME])
    for axes, name in zip(panels[7:], descent.ESTIMATORS, strict=True):
        _descent(axes, name, series[descent.NAME][name])
    for axes in panels:
        axes.title.set_size(8)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=SMALL)


def _bias(axes: Axes, found: dict[str, Any]) -> None:
    axes.loglog(found["h"], found["predicted bias"], color=BLUE, label="(κ₂/2)h²E[m″]")
    axes.loglog(found["h"], found["bias"], ".", color=BLUE, label="smooth, exact")
    kink = [8.0 / 15.0 * h**1.5 for h in found["kink h"]]
    axes.loglog(found["kink h"], kink, color=RED, label="(8/15)h^1.5")
    axes.loglog(
        found["kink h"], found["kink bias"], ".", color=RED, label="the paper's kink, exact"
    )
    axes.set(title="Theorem 1: bias", xlabel="h")


def _variance(axes: Axes, found: dict[str, Any]) -> None:
    for name, color in zip(ESTIMATORS, (BLUE, GREEN), strict=True):
        one = found["variance"][name]
        axes.loglog(found["h"], one["predicted"], color=color, label=f"{name}, corrected")
        axes.loglog(found["h"], one["exact"], ".", color=color)
    axes.loglog(
        found["h"], found["variance"]["IPW"]["printed"], "--", color=RED, label="as printed"
    )
    axes.set(title="Theorem 1: n·Var", xlabel="h", xlim=(0.035, 0.65), ylim=(0.3, 70.0))
    axes.minorticks_off()
    axes.set_xticks(TICKS, [str(h) for h in TICKS])


def _best(axes: Axes, found: dict[str, Any]) -> None:
    for name, color in zip(ESTIMATORS, (BLUE, GREEN), strict=True):
        one = found["best h"][name]
        axes.loglog(found["n"], one["predicted"], color=color, label=f"{name}, corrected")
        axes.loglog(found["n"], one["exact"], "o", ms=4, color=color)
    printed = found["best h"]["self-normalized"]["printed"]
    axes.loglog(found["n"], printed, "--", color=RED, label="as printed, any estimator")
    axes.set(title="Theorem 2: best h", xlabel="n")


def _consistency(axes: Axes, found: dict[str, Any]) -> None:
    for name, color in zip(ESTIMATORS, (BLUE, GREEN), strict=True):
        axes.loglog(found["n"], found[name]["predicted"], color=color)
        axes.loglog(
            found["n"], found[name]["best h"], "o", ms=4, color=color, label=f"{name}, best h"
        )
    one = found["self-normalized"]
    axes.loglog(found["n"], one["fixed h"], "s-", ms=3, color=RED, label="fixed h")
    axes.loglog(found["n"], one["fixed nh"], "^-", ms=3, color=PURPLE, label="fixed nh")
    axes.set(title="Theorem 3: RMSE", xlabel="n")


def _doubly(axes: Axes, found: dict[str, Any]) -> None:
    for name, color in zip(doubly.CASES, COLORS, strict=False):
        axes.plot(found["h"], found[name]["predicted"], color=color)
        axes.plot(found["h"], found[name]["bias"], "o", ms=4, color=color, label=name)
    right = next(iter(doubly.CASES))
    axes.plot(
        found["h"], found[right]["printed"], "--", color="black", label="right models, as printed"
    )
    axes.set(title="Doubly robust: bias", xlabel="h", ylim=(-0.01, 0.27))


def _generalization(axes: Axes, found: dict[str, Any]) -> None:
    axes.loglog(found["n"], found["bound"], color=RED, label="bound")
    axes.loglog(found["n"], found["gap"], "o-", ms=4, color=BLUE, label="gap, 95 % of logs")
    axes.loglog(found["n"], found["regret"], "^-", ms=4, color=GREEN, label="regret")
    axes.set(title="Theorem 5: generalization", xlabel="n")


def _boundary(axes: Axes, found: dict[str, Any]) -> None:
    for name, color in zip(boundary.CORRECTIONS, (RED, PURPLE, BLUE), strict=True):
        axes.plot(found["doses"], found[name], color=color, label=name)
    axes.axhline(0.0, color="black", lw=0.6)
    axes.set(title="Bias near the bound 0, h = 0.2", xlabel="dose of the policy")


def _descent(axes: Axes, name: str, traces: list[list[float]]) -> None:
    for trace, color in zip(traces, COLORS, strict=False):
        axes.plot(range(len(trace)), trace, ".-", color=color)
    axes.set(title=f"CCCP: {name}", xlabel="linear programs", ylabel="estimate")


STUDY = Study(
    name="theory",
    title="The theorems, executed",
    claim=(
        "the bias goes as h² and the variance as 1/(nh), which sets the best bandwidth; the "
        "estimates are consistent, and so is the policy that minimizes them."
    ),
    replications=4_000,
    quick_replications=200,
    tasks=tasks,
    measure=measure,
    summarize=summarize,
    draw=draw,
)
