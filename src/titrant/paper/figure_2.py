"""Figures 2 and 3: the value of τ(x) = βx for β in [0, 1.3], estimated from 300 rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.data.simulate import Synthetic
from titrant.paper.result import COLORS, Row, mean_of, ribbon, rmse_row, standard_error
from titrant.paper.study import Findings, Study
from titrant.paper.synthetic import METHODS, OURS, SHOWN, estimates, line, log_tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from titrant._types import Array
    from titrant.paper.study import Measurement, Piece, Settings, Task


N = 300
BETAS = tuple(round(0.1 * k, 1) for k in range(14))
TRUTH = np.array([Synthetic.value_of_slope(beta) for beta in BETAS])
ASKED = tuple(method for method in METHODS if method != "IPW, oracle bandwidth")
"""The oracle is known at β = 1 alone."""
NEAR = (0.9, 1.1)
"""The paper finds the least evaluation at the best slope, 1; the grid has steps of 0.1."""


def tasks(logging: str, settings: Settings) -> list[Task]:
    """Return one task for each log."""
    return log_tasks(settings, [logging], [N])


def measure(task: Task) -> Measurement:
    """Return every estimate of the value of every slope on one log."""
    policies = {str(beta): line(beta) for beta in BETAS}
    return {method: estimates(METHODS[method], task, policies) for method in ASKED}


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return how far the evaluations are from the truth, and where they are least."""
    rows: list[Row] = []
    series: dict[str, Any] = {"beta": list(BETAS), "truth": TRUTH.tolist()}
    for method in ASKED:
        errors = evaluations(pieces, method) - TRUTH
        rows += [
            rmse_row(method, (errors**2).mean(axis=1), quantity="RMSE over β"),
            rmse_row(method, errors[:, BETAS.index(1.0)] ** 2, quantity="RMSE at β = 1"),
            _least(method, errors),
            _regret(method, errors),
        ]
        series[method] = {
            "mean": (errors + TRUTH).mean(axis=0).tolist(),
            "half": [1.96 * standard_error(column) for column in errors.T],
        }
    return Findings(rows=tuple(rows), series=series, sample=_sample(pieces))


def evaluations(pieces: Sequence[Piece], method: str) -> Array:
    """Return the estimates (replications, β) of the logs that answer for all β."""
    found = [piece.found[method] for piece in pieces if piece.found[method]]
    return np.array([[answer[str(beta)]["value"] for beta in BETAS] for answer in found])


def _sample(pieces: Sequence[Piece]) -> dict[str, float]:
    """Return the estimates for β = 0.5 on the first log."""
    first = pieces[0].found
    return {method: answer["0.5"]["value"] for method, answer in first.items() if answer}


def _least(method: str, errors: Array) -> Row:
    """Return the slope at which the mean evaluation is least."""
    best = BETAS[int(np.argmin(errors.mean(axis=0) + TRUTH))]
    kernel = method.startswith("kernel")
    step = float(BETAS[1] - BETAS[0])  # a slope between two of them may be the least
    return Row(method, "least at β", best, se=round(step, 6), limits=NEAR if kernel else None)


def _regret(method: str, errors: Array) -> Row:
    """Return the mean value of the slope that looks best on each log; the least value is 0."""
    chosen = TRUTH[np.argmin(errors + TRUTH, axis=1)]
    return mean_of(method, "regret of the best-looking β", chosen)


def draw(figure: Figure, series: dict[str, Any]) -> None:
    """Draw the evaluations and their distance from the truth, with 95 % intervals of the means."""
    left, right = figure.subplots(1, 2)
    beta, truth = series["beta"], series["truth"]
    left.plot(beta, truth, color="black", lw=1.2, label="truth")
    for method, color in zip(SHOWN, COLORS, strict=False):
        one = series[method]
        ribbon(left, beta, one["mean"], one["half"], label=method, color=color)
        error = [m - v for m, v in zip(one["mean"], truth, strict=True)]
        ribbon(right, beta, error, one["half"], label=method, color=color)
    left.set(xlabel="β", ylabel="value of τ(x) = βx")
    left.legend(fontsize=7)
    right.axhline(0.0, color="black", lw=0.8)
    right.set(xlabel="β", ylabel="estimate − truth", ylim=(-0.2, 0.2))


def _study(name: str, logging: str, words: str) -> Study:
    return Study(
        name=name,
        title=f"Evaluating τ(x) = βx from {N} rows, {words}",
        claim=(
            "evaluations are tight near the optimum, and least where the policy is best, at β = 1."
        ),
        ours=OURS,
        replications=50,
        quick_replications=10,
        tasks=partial(tasks, logging),
        measure=measure,
        summarize=summarize,
        draw=draw,
    )


UNIFORM = _study("figure-2", "uniform", "doses logged at random")
NORMAL = _study("figure-3", "normal", "doses logged around the best")
