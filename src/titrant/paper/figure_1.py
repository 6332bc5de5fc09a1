"""Figure 1: the value of the best policy, τ(x) = x, estimated from n = 10 … 300 rows."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.paper.result import (
    COLORS,
    Row,
    around,
    falls,
    mean_of,
    ribbon,
    rmse_row,
    standard_error,
    where,
    with_halves,
)
from titrant.paper.study import Findings, Study
from titrant.paper.synthetic import (
    METHODS,
    ORACLE_ROWS,
    OURS,
    SHOWN,
    estimates,
    least_error,
    line,
    log_tasks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from titrant._types import Array
    from titrant.paper.study import Measurement, Piece, Settings, Task


ROWS = (10, 20, 30, 50, 75, 100, 150, 200, 250, 300)
QUICK_ROWS = (30, 100, 300)
JUDGED = 300
DEFAULT_FROM = 20
"""Titrant's default chooses between outcome models on folds of folds, which takes so many rows."""

FEW = 30
"""Rows against which the error of 300 is held: the estimate converges if it has fallen."""
BINNED = "discretized, 10 bins"

PILOT = (
    "The paper does not say how its unknowns are smoothed. The normal reference rule smooths the "
    "kink of the outcome away, finds too little curvature and chooses h near {h:.2f}; half of it, "
    "nearer to what cross-validation chooses, chooses {half:.2f}."
)

KINK = (
    "The outcome has a kink at this very policy. Averaging around a kink overstates the loss; the "
    "mean error is that bias, at h near {h:.2f}."
)


PRINTED = "kernel, plug-in as printed"
COMPARED = (PRINTED, f"{PRINTED}, half pilot", "kernel, h = 0.1")
"""Kernel estimates whose spread the discretized one's is held against: the paper's bandwidth first,
about which it says that discretizing has the larger variance."""
SPREAD = {
    BINNED: COLORS[SHOWN.index(BINNED)],
    PRINTED: COLORS[SHOWN.index(PRINTED)],
    **dict(zip(COMPARED[1:], COLORS[len(SHOWN) :], strict=True)),
}
"""Estimates whose spread is drawn, and their colors."""


def tasks(logging: str, settings: Settings) -> list[Task]:
    """Return one task for each log."""
    return log_tasks(settings, [logging], QUICK_ROWS if settings.quick else ROWS)


def measure(task: Task) -> Measurement:
    """Return every estimate of the value of τ(x) = x on one log."""
    return {name: estimates(METHODS[name], task, {"best": line(1.0)}) for name in _asked(task)}


def _asked(task: Task) -> list[str]:
    left_out = {"titrant's default"} if task["n"] < DEFAULT_FROM else set()
    if task["n"] not in ORACLE_ROWS:
        left_out.add("IPW, oracle bandwidth")
    return [name for name in METHODS if name not in left_out]


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the table at n = 300 and the curves over n; the true value is 0."""
    logging = pieces[0].task["logging"]
    rows: list[Row] = []
    for method in METHODS:
        errors = answers(pieces, method, JUDGED, "value")
        rows.append(mean_of(method, "mean error", errors, note=_note(method, pieces)))
        limits = None
        if method == "IPW, oracle bandwidth":
            expected = least_error(logging, JUDGED)[1]
            limits = around(expected, 0.02 * expected)
        rows.append(rmse_row(method, errors**2, limits=limits))
    rows += [_converges(pieces, m) for m in METHODS if m.startswith("kernel")]
    rows.append(_biased(pieces))
    return Findings(
        rows=(*rows, *(_spread(pieces, kernel) for kernel in COMPARED)),
        series={method: _curve(pieces, method) for method in METHODS},
        sample=_sample(pieces),
    )


def answers(pieces: Sequence[Piece], method: str, n: int, what: str) -> Array:
    """Return the values or bandwidths of a method over the logs of n rows that have an answer."""
    found = [piece.found.get(method, {}).get("best") for piece in where(pieces, {"n": n})]
    return np.array([answer[what] for answer in found if answer is not None], dtype=np.float64)


def _sample(pieces: Sequence[Piece]) -> dict[str, float]:
    """Return the estimates on the first log of the judged size."""
    first = where(pieces, {"n": JUDGED, "replication": 0})[0].found
    return {method: answer["best"]["value"] for method, answer in first.items() if answer}


def _note(method: str, pieces: Sequence[Piece]) -> str:
    if method == "titrant's default":
        return KINK.format(h=answers(pieces, method, JUDGED, "h").mean())
    if method != "kernel, plug-in as printed":
        return ""
    whole, half = (
        answers(pieces, f"kernel, plug-in as printed{pilot}", JUDGED, "h").mean()
        for pilot in ("", ", half pilot")
    )
    return PILOT.format(h=whole, half=half)


def _spread(pieces: Sequence[Piece], kernel: str) -> Row:
    """Return how much wider the discretized estimate spreads than the kernel's."""
    ratio = float(
        answers(pieces, BINNED, JUDGED, "value").std()
        / answers(pieces, kernel, JUDGED, "value").std()
    )
    return Row(
        f"discretized ÷ {kernel}",
        "ratio of sd",
        ratio,
        # An sd of R values is known to 1/√(2R) of itself, and there are two.
        se=ratio / float(np.sqrt(len(where(pieces, {"n": JUDGED})))),
        limits=(1.0, None) if kernel == PRINTED else None,
    )


def _converges(pieces: Sequence[Piece], method: str) -> Row:
    """Return how the mean squared error falls from few rows to many."""
    few, many = (answers(pieces, method, n, "value") ** 2 for n in (FEW, JUDGED))
    return falls(method, "MSE", few, many, (FEW, JUDGED))


def _biased(pieces: Sequence[Piece]) -> Row:
    """Return the lower end of the 95 % interval of the discretized estimate's bias."""
    errors = answers(pieces, BINNED, JUDGED, "value")
    se = standard_error(errors)
    low = float(errors.mean()) - 1.96 * se
    return Row(BINNED, "mean error less 1.96 SE", low, se=se, limits=(0.0, None))


def _curve(pieces: Sequence[Piece], method: str) -> dict[str, list[float]]:
    """Return mean, half of its 95 % interval, RMSE and share of logs with an answer, over n."""
    sizes = sorted({piece.task["n"] for piece in pieces})
    points = [(n, answers(pieces, method, n, "value")) for n in sizes]
    logs = {n: len(where(pieces, {"n": n})) for n in sizes}
    kept = [(n, values) for n, values in points if len(values) > 1]
    return {
        "n": [n for n, _ in kept],
        **with_halves([values for _, values in kept]),
        "rmse": [float(np.sqrt(np.mean(values**2))) for _, values in kept],
        "answered": [len(values) / logs[n] for n, values in kept],
    }


TICKS, SD_TICKS = (10, 30, 100, 300), (0.02, 0.05, 0.1, 0.2)


def draw(figure: Figure, series: dict[str, Any]) -> None:
    """Draw the estimates with 95 % intervals of their means, their errors and their spread."""
    figure.set_size_inches(12.0, 4.0)
    left, middle, right = figure.subplots(1, 3)
    for method, color in zip(SHOWN, COLORS, strict=False):
        one = series[method]
        ribbon(left, one["n"], one["mean"], one["half"], label=method, color=color)
        middle.plot(one["n"], one["rmse"], color=color, marker=".")
    left.axhline(0.0, color="black", lw=0.8)
    left.set(xlabel="n", ylabel="estimate (truth 0)", ylim=(-0.1, 0.6))
    left.legend(fontsize=7)
    middle.set(xlabel="n", ylabel="RMSE", xscale="log", yscale="log", ylim=(0.02, 1.0))
    for method, color in SPREAD.items():
        one = series[method]
        right.plot(one["n"], _sd(one), color=color, marker=".", label=method)
    right.set(xlabel="n", ylabel="standard deviation", xscale="log", yscale="log")
    right.legend(fontsize=7)
    for axes in (middle, right):
        axes.set_xticks(TICKS, [str(n) for n in TICKS])
        axes.minorticks_off()
    right.set_yticks(SD_TICKS, [str(sd) for sd in SD_TICKS])


def _sd(one: dict[str, list[float]]) -> list[float]:
    """Return the standard deviation over n: RMSE² = mean² + sd², since the true value is 0."""
    return [math.sqrt(r**2 - m**2) for r, m in zip(one["rmse"], one["mean"], strict=True)]


def _study(name: str, logging: str, words: str) -> Study:
    return Study(
        name=name,
        title=f"Evaluating the best policy as n grows, {words}",
        claim=(
            "the kernel estimate converges to the truth; discretizing is biased, inconsistent and "
            "of larger variance."
        ),
        ours=OURS,
        replications=100,
        quick_replications=10,
        tasks=partial(tasks, logging),
        measure=measure,
        summarize=summarize,
        draw=draw,
    )


NORMAL = _study("figure-1", "normal", "doses logged around the best")
UNIFORM = _study("figure-1-uniform", "uniform", "doses logged at random")
