"""Theorem 5 and Corollary 6: how far the estimate of the best-looking policy is off.

Policies τ(x) = βx with |β| ≤ 1, doses logged at random on [−2, 2], outcomes in [0, 1]: the bound
for all policies at once, beside the largest gap |V − v̂| over the policies that each log shows. At a
fixed h the gap stays at the smoothing bias; with h → 0 as n^(−1/5) it falls as n^(−2/5).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.inference import Generalization, LinearBall, RBFBall
from titrant.paper.result import Row, around, mean_of, standard_error, where
from titrant.paper.study import Findings, crossed
from titrant.paper.synthetic import line
from titrant.paper.theory.designs import BoundedLoss, moments, population

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.bandwidth import BandwidthPath
    from titrant.paper.study import Measurement, Piece, Settings, Task


NAME = "generalization"
H, DELTA = 0.5, 0.05
SIZES = (250, 1_000, 4_000, 16_000)
CHUNK, SHARE = 5, 50
"""Logs of a task; one log for every fifty of the study's replications."""
BETAS = tuple(round(-1.0 + 0.1 * k, 1) for k in range(21))
SIGNED, DRAWS, SEEDS = 400, 1_000, 10
"""Contexts, draws of their signs, and how often: for the complexities."""


def tasks(settings: Settings) -> list[Task]:
    """Return a task for the population, for the complexities and for every 5 logs of a size."""
    part, seed = [NAME], [settings.seed]
    first = range(0, max(settings.replications // SHARE, 2 * CHUNK), CHUNK)
    return [
        *crossed({"part": part, "kind": ["population"]}),
        *crossed({"part": part, "kind": ["complexity"], "seed": seed}),
        *crossed({"part": part, "kind": ["logs"], "n": SIZES, "first": first, "seed": seed}),
    ]


def measure(task: Task) -> Measurement:
    """Return truths and biases of the policies, complexities, or estimates on some logs."""
    if task["kind"] == "complexity":
        return _complexities(task["seed"])
    return _population() if task["kind"] == "population" else _logs(task)


def _population() -> Measurement:
    design, everybody = BoundedLoss(), population(BoundedLoss(), contexts=32, doses=2048)
    truth = [design.value(line(beta)) for beta in BETAS]
    mean = [moments(everybody, line(beta), tt.IPW(clip=0.0), [H])[0][0] for beta in BETAS]
    return {"truth": truth, "bias": [m - v for m, v in zip(mean, truth, strict=True)]}


def _logs(task: Task) -> Measurement:
    """Return the estimates (logs, β) at a fixed h and at one that shrinks, and complexities."""
    logs = [
        BoundedLoss().draw(task["n"], np.random.default_rng([task["seed"], 4, k, task["n"]]))
        for k in range(task["first"], task["first"] + CHUNK)
    ]
    both = np.array([[_estimates(log, beta) for beta in BETAS] for log in logs])
    return {
        "estimates": both[:, :, 0].tolist(),
        "shrinking": both[:, :, 1].tolist(),
        "complexity": [LinearBall(1.0).bound(log.context) for log in logs],
    }


def shrinking(n: int) -> float:
    """Return h ∝ n^(−1/5), which is the fixed one at the least n."""
    return float(H * (SIZES[0] / n) ** 0.2)


def _estimates(log: tt.LoggedData, beta: float) -> list[float]:
    """Return the estimates of a policy at both bandwidths, the fixed one first."""
    widths = sorted({H, shrinking(len(log))})
    path: BandwidthPath = tt.bandwidth_path(
        log, line(beta), estimator=tt.IPW(clip=0.0), bandwidths=widths
    )
    return [float(path.values[-1]), float(path.values[0])]


def _complexities(seed: int) -> Measurement:
    """Return R_n of unit balls: an intercept alone, one uniform context, an RKHS of two."""
    rng = np.random.default_rng([seed, 5])
    contexts = {
        "an intercept": (LinearBall(1.0), np.ones((SIGNED, 1))),
        "a context in [0, 1]": (LinearBall(1.0), rng.uniform(0.0, 1.0, (SIGNED, 1))),
        "a Gaussian RKHS": (RBFBall(1.0, 0.5), rng.uniform(0.0, 1.0, (SIGNED, 2))),
    }
    return {
        name: {
            "found": [ball.estimate(X, draws=DRAWS, seed=seed + k) for k in range(SEEDS)],
            "bound": ball.bound(X),
            "exact": 2.0 * math.sqrt(2.0 / math.pi * float(np.mean(X**2)) / SIGNED),
        }
        for name, (ball, X) in contexts.items()
    }


def bound(n: int, complexity: float, bias: float) -> float:
    """Return the bound of Theorem 5 that fails in one log of twenty."""
    return Generalization(
        kernel=tt.Epanechnikov(),
        h=H,
        n=n,
        largest_outcome=1.0,
        largest_inverse_propensity=4.0,
        complexity=complexity,
        bias=bias,
    ).at(DELTA)


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the bound beside the gaps, the regret, and the complexities beside theirs."""
    whole = where(pieces, {"kind": "population"})[0].found
    found = where(pieces, {"kind": "complexity"})[0].found
    truth, bias = np.array(whole["truth"]), float(np.max(np.abs(whole["bias"])))
    rows: list[Row] = []
    series: dict[str, Any] = {"n": list(SIZES), "bound": [], "gap": [], "regret": []}
    falling: list[Array] = []
    for n in SIZES:
        logs = where(pieces, {"kind": "logs", "n": n})
        values = np.array([v for piece in logs for v in piece.found["estimates"]])
        gaps = np.abs(values - truth).max(axis=1)
        bounds = np.array([bound(n, c, bias) for piece in logs for c in piece.found["complexity"]])
        regret = truth[np.argmin(values, axis=1)] - truth.min()
        rows += _gap_rows(n, gaps, bounds, regret)
        narrow = np.array([v for piece in logs for v in piece.found["shrinking"]])
        falling.append(np.abs(narrow - truth).max(axis=1))
        series["bound"].append(float(bounds.mean()))
        series["gap"].append(float(np.quantile(gaps, 0.95)))
        series["regret"].append(float(regret.mean()))
    logs = where(pieces, {"kind": "logs", "n": SIZES[0]})
    return Findings(
        rows=(
            *rows,
            *_vanishing(gaps, bias, falling),
            *(_complexity(name, one) for name, one in found.items()),
        ),
        series={NAME: series},
        sample={"first log, τ = −x": logs[0].found["estimates"][0][0]},
    )


def _gap_rows(n: int, gaps: Array, bounds: Array, regret: Array) -> list[Row]:
    """Return bound, gap and regret: a bound tens of times the gap cannot fail, so no verdict."""
    label = f"Theorem 5, n = {n:,}"
    within, quantity = float(np.mean(gaps <= bounds)), "share of logs within the bound"
    return [
        Row(label, quantity, within),
        mean_of(label, "bound", bounds),
        mean_of(label, "largest gap |V − v̂|", gaps),
        mean_of(label, "regret of the best-looking policy", regret),
    ]


def _vanishing(stuck: Array, bias: float, falling: Sequence[Array]) -> list[Row]:
    """Return what h → 0 does to the largest gap; ``stuck`` are those of a fixed h, many rows."""
    stays = mean_of(
        f"Corollary 6, fixed h, n = {SIZES[-1]:,}",
        "largest gap ÷ largest smoothing bias",
        stuck / bias,
        limits=(1.0, 1.1),
    )
    few, many = falling[0], falling[-1]
    span = math.log(SIZES[-1] / SIZES[0])
    power = math.log(many.mean() / few.mean()) / span
    se = math.hypot(*(standard_error(one) / one.mean() for one in (few, many))) / span
    label = "Corollary 6, h ∝ n^(−1/5)"
    return [
        stays,
        mean_of(label, f"largest gap |V − v̂| at n = {SIZES[-1]:,}", many),
        Row(label, "power of n in the largest gap", power, se=se, limits=around(-0.4, 0.05)),
    ]


def _complexity(name: str, found: Measurement) -> Row:
    """Return R_n beside what it can be at most; the paper's bound is half of that."""
    values, printed = np.array(found["found"]), found["bound"] / 2.0
    note = "Above the bound that the paper prints: with its factor 2/n the bound is 2WX/√n."
    return mean_of(
        f"Rademacher complexity, {name}, n = {SIGNED}",
        "R_n",
        values,
        paper=printed,
        limits=(0.0, found["bound"]),
        note=note if values.mean() > printed else "",
    )
