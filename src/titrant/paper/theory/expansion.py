"""Theorems 1 and 2: bias ∝ h², variance ∝ 1/(nh), the best bandwidth; and where they fail.

Predictions are those of `titrant.inference.Expansion` with constants worked out by hand, or
integrals over the kernel. They are compared with populations (no chance) and with logs of 1,000
rows (chance, stated).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.inference import Expansion
from titrant.paper.result import Row, around, mean_of, standard_error, where
from titrant.paper.study import Findings
from titrant.paper.synthetic import LOGGING, least_error
from titrant.paper.theory.designs import (
    BEST,
    CURVATURE,
    ESTIMATORS,
    NOISE,
    REST,
    VALUE,
    SmoothWell,
    moments,
    population,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant.data.simulate import Design
    from titrant.paper.study import Measurement, Piece, Settings, Task


NAME = "expansion"
KERNEL = tt.Epanechnikov()
KINKED = {f"kinked, {logging}": logging for logging in LOGGING}
DESIGNS: dict[str, Design] = {
    "smooth": SmoothWell(),
    **{name: LOGGING[logging] for name, logging in KINKED.items()},
}
GRID = tuple(float(h) for h in np.geomspace(0.04, 1.2, 26))
KINKED_GRID = tuple(float(h) for h in np.geomspace(0.03, 0.3, 26))
"""Policy and reach stay within the doses logged at random."""
JUDGED = (0.4, 0.2, 0.1)
SIZES = (300, 1_000, 10_000, 100_000)
ROWS, CHUNK = 1_000, 50
"""Rows of a log, and logs of a task."""
KINKED_SIZES = (100, 1_000, 5_000)


def predicted(estimator: str, n: int = 1) -> Expansion:
    """Return Theorems 1 and 2, corrected, for the smooth design."""
    return Expansion(
        kernel=KERNEL, curvature=CURVATURE, noise=NOISE[estimator], n=n, rest=REST[estimator]
    )


def printed(estimator: str, n: int = 1) -> Expansion:
    """Return Theorems 1 and 2 as printed: Y² whatever the estimator, and no −V²."""
    del estimator
    return Expansion(kernel=KERNEL, curvature=CURVATURE, noise=NOISE["IPW"], n=n)


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each population, and one for every 50 logs."""
    whole = [("smooth", name) for name in ESTIMATORS]
    whole += [(design, "IPW") for design in DESIGNS if design != "smooth"]
    logs = range(0, settings.replications, CHUNK)
    return [
        {"part": NAME, "kind": "population", "design": design, "estimator": estimator}
        for design, estimator in whole
    ] + [
        {
            "part": NAME,
            "kind": "logs",
            "first": first,
            "count": min(CHUNK, settings.replications - first),
            "seed": settings.seed,
        }
        for first in logs
    ]


def measure(task: Task) -> Measurement:
    """Return E v̂ and n·Var v̂ of a population, or the estimates on some logs."""
    return _population(task) if task["kind"] == "population" else _logs(task)


def _population(task: Task) -> Measurement:
    everybody = population(DESIGNS[task["design"]]).with_bounds(None)
    grid = (*JUDGED, *(GRID if task["design"] == "smooth" else KINKED_GRID))
    h = sorted(set(grid))
    mean, variance = moments(everybody, BEST, ESTIMATORS[task["estimator"]], h)
    return {"h": h, "mean": mean.tolist(), "variance": variance.tolist()}


def _logs(task: Task) -> Measurement:
    found: Measurement = {name: [] for name in ESTIMATORS}
    for k in range(task["first"], task["first"] + task["count"]):
        log = SmoothWell().draw(ROWS, np.random.default_rng([task["seed"], 1, k]))
        for name, estimator in ESTIMATORS.items():
            path = tt.bandwidth_path(log, BEST, estimator=estimator, bandwidths=JUDGED)
            found[name].append(path.values[::-1].tolist())  # paths go up, JUDGED goes down
    return found


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return bias, variance and best bandwidth beside what theory predicts."""
    whole = {
        (piece.task["design"], piece.task["estimator"]): piece.found
        for piece in where(pieces, {"kind": "population"})
    }
    logs = where(pieces, {"kind": "logs"})
    rows = [
        *_bias(whole["smooth", "IPW"]),
        *_kink(whole["kinked, normal", "IPW"]),
        *(row for name in ESTIMATORS for row in _variance(name, whole["smooth", name])),
        *(row for name in ESTIMATORS for row in _over_logs(name, logs)),
        *(row for name in ESTIMATORS for row in _best(name, whole["smooth", name])),
        *(row for design in KINKED for row in _oracle(design, whole)),
    ]
    series = {"expansion": _series(whole)}
    first = logs[0].found
    sample = {f"first log, {name}": first[name][0][0] for name in ESTIMATORS}
    return Findings(rows=tuple(rows), series=series, sample=sample)


def _bias(found: Measurement) -> list[Row]:
    """Return the population's bias ÷ (κ₂/2)h²E[m″], which tends to 1; its limits are exact."""
    first = {h: predicted("IPW").bias(h) for h in JUDGED}
    return [
        Row(
            f"Theorem 1, bias, h = {h}",
            "exact ÷ predicted",
            (_at(found, "mean", h) - VALUE) / first[h],
            # The quantiles of a population know a bias to a millionth.
            limits=around(well_bias(h) / first[h], 1e-6 / first[h]),
        )
        for h in JUDGED
    ]


def well_bias(h: float) -> float:
    """Return the exact bias in the well, 1 − ∫K(u)·exp(−h²u²)du, in closed form."""
    bell = math.sqrt(math.pi) * math.erf(h) / h  # ∫exp(−h²u²)du over [−1, 1]
    second = (0.5 * bell - math.exp(-(h**2))) / h**2  # ∫u²·exp(−h²u²)du
    return 1.0 - 0.75 * (bell - second)


def _kink(found: Measurement) -> list[Row]:
    """Return the bias at the kink of the paper's example: (8/15)h^1.5, and not ∝ h²."""
    bias = {h: _at(found, "mean", h) for h in JUDGED}  # the value is 0
    slope = float(np.log(bias[0.4] / bias[0.1]) / np.log(4.0))
    label = "Theorem 1, bias at the paper's kink"
    share = bias[0.1] / (8.0 / 15.0 * 0.1**1.5)
    note = (
        "The paper's own example, m = 2|x − t|^1.5 at τ = x, has no second derivative: its "
        "bias falls like h^1.5."
    )
    return [
        Row(label, "power of h", slope, paper=2.0, limits=(1.49, 1.51), note=note),
        Row(label, "bias ÷ (8/15)h^1.5, h = 0.1", share, limits=(0.99, 1.01)),
    ]


def _variance(name: str, found: Measurement) -> list[Row]:
    """Return n·Var v̂ beside the corrected constant and the printed one."""
    return [
        Row(
            f"Theorem 1, variance, {name}, h = {h}",
            "n·Var",
            _at(found, "variance", h),
            paper=printed(name).variance(h),
            limits=_around(predicted(name).variance(h), 0.03),
        )
        for h in JUDGED[1:]
    ]


def _over_logs(name: str, logs: Sequence[Piece]) -> list[Row]:
    """Return bias and variance over logs of 1,000 rows, with their Monte-Carlo errors."""
    rows = []
    for j, h in enumerate(JUDGED[:2]):
        values = np.array([value[j] for piece in logs for value in piece.found[name]])
        spread = ROWS * (values - values.mean()) ** 2 * len(values) / (len(values) - 1)
        label = f"Theorem 1, logs of 1,000 rows, {name}, h = {h}"
        paper, theory = printed(name), predicted(name)
        limits = _around(theory.variance(h), 0.12 if h > 0.2 else 0.05)  # noqa: PLR2004
        rows += [
            Row(
                label,
                "bias",
                float(values.mean()) - VALUE,
                se=standard_error(values),
                paper=paper.bias(h),
                limits=_around(theory.bias(h), 0.05),
            ),
            mean_of(label, "n·Var", spread, paper=paper.variance(h), limits=limits),
        ]
    return rows


def _best(name: str, found: Measurement) -> list[Row]:
    """Return the bandwidth of least exact MSE beside the formula, and the MSE it reaches."""
    rows = []
    for n in SIZES:
        h, mse = best_bandwidth(found, VALUE, n)
        theory = predicted(name, n)
        share = 0.02 if n >= 100_000 else 0.06 if n >= 10_000 else 0.15  # noqa: PLR2004
        best, paper = theory.optimal_bandwidth(), printed(name, n)
        label, theirs = f"Theorem 2, {name}, n = {n:,}", paper.optimal_bandwidth()
        rows.append(Row(label, "best h", h, paper=theirs, limits=_around(best, share)))
    limits = _around(theory.mse(best), 0.03)
    return [*rows, Row(label, "least MSE", mse, paper=paper.mse(theirs), limits=limits)]


def _oracle(design: str, whole: dict[tuple[str, str], Measurement]) -> list[Row]:
    """Return the best bandwidths at the kink: ∝ n^(−1/4), where the formula has none."""
    best = {n: best_bandwidth(whole[design, "IPW"], 0.0, n) for n in KINKED_SIZES}
    least, most = KINKED_SIZES[0], KINKED_SIZES[-1]
    power = math.log(best[most][0] / best[least][0]) / math.log(most / least)
    rows = []
    for n in KINKED_SIZES:
        label, found = f"Theorem 2, {design}, n = {n:,}", float(np.sqrt(best[n][1]))
        h, rmse = least_error(KINKED[design], n)
        rows += [
            Row(label, "best h", best[n][0], limits=_around(h, 0.005)),
            Row(label, "least RMSE", found, limits=_around(rmse, 0.005)),
        ]
    label, note = (
        f"Theorem 2, {design}",
        "At a kink of power 1.5 the best bandwidth goes as n^(−1/4).",
    )
    quantity, limits = "power of n in the best h", (-0.26, -0.23)
    return [*rows, Row(label, quantity, power, paper=-0.2, limits=limits, note=note)]


def best_bandwidth(found: Measurement, value: float, n: int) -> tuple[float, float]:
    """Return the h of least exact MSE = (E v̂ − V)² + (n·Var v̂)/n, and that MSE."""
    from scipy.interpolate import CubicSpline  # noqa: PLC0415
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    mean, variance = np.array(found["mean"]), np.array(found["variance"])
    log_h = np.log(found["h"])
    curve = CubicSpline(log_h, np.log((mean - value) ** 2 + variance / n))
    start = log_h[int(np.argmin(curve(log_h)))]
    within = (max(start - 0.3, log_h[0]), min(start + 0.3, log_h[-1]))
    found_at = minimize_scalar(
        lambda at: float(curve(at)), bounds=within, method="bounded", options={"xatol": 1e-7}
    )
    return float(np.exp(found_at.x)), float(np.exp(found_at.fun))


def _series(whole: dict[tuple[str, str], Measurement]) -> dict[str, Any]:
    """Return what the figure shows: bias, variance and best bandwidths."""
    smooth, kink = whole["smooth", "IPW"], whole["kinked, normal", "IPW"]
    return {
        "h": smooth["h"],
        "bias": [m - VALUE for m in smooth["mean"]],
        "predicted bias": [predicted("IPW").bias(h) for h in smooth["h"]],
        "kink h": kink["h"],
        "kink bias": kink["mean"],
        "variance": {
            name: {
                "exact": whole["smooth", name]["variance"],
                "predicted": [predicted(name).variance(h) for h in smooth["h"]],
                "printed": [printed(name).variance(h) for h in smooth["h"]],
            }
            for name in ESTIMATORS
        },
        "n": list(SIZES),
        "best h": {
            name: {
                "exact": [best_bandwidth(whole["smooth", name], VALUE, n)[0] for n in SIZES],
                "predicted": [predicted(name, n).optimal_bandwidth() for n in SIZES],
                "printed": [printed(name, n).optimal_bandwidth() for n in SIZES],
            }
            for name in ESTIMATORS
        },
        "kink best h": [best_bandwidth(kink, 0.0, n)[0] for n in (100, 300, 1_000, 5_000)],
    }


def _at(found: Measurement, what: str, h: float) -> float:
    """Return a number of a population at one of its bandwidths."""
    return float(found[what][found["h"].index(h)])


def _around(value: float, share: float) -> tuple[float, float]:
    """Return limits of a share of the value around it."""
    low, high = sorted((value * (1.0 - share), value * (1.0 + share)))
    return low, high
