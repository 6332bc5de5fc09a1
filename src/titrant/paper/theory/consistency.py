"""Theorem 3 and its corollary: the error falls with n, if h goes to 0 and nh to infinity.

The paper asks for the second only; the rows with a fixed h show why that is not enough.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.paper.result import Row, around, rmse_row, where
from titrant.paper.study import Findings, crossed
from titrant.paper.theory.designs import BEST, ESTIMATORS, VALUE, SmoothWell
from titrant.paper.theory.expansion import predicted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.paper.study import Measurement, Piece, Settings, Task


NAME = "consistency"
SIZES = (200, 800, 3_200, 12_800)
SHARE = 10
"""One log for every ten of the study's replications."""
CHUNK = 20
FIXED, REACHED = 0.5, 20.0
"""h = 0.5 whatever n, and nh = 20 whatever n."""
RATE = -0.4
"""The power of n in the RMSE as n goes to infinity."""
ON_THE_WAY = (
    "IPW's −V²/n still counts at these n: theory gives −{power:.2f} here, and −0.4 only as n → ∞."
)


def bandwidths(estimator: str, n: int) -> dict[str, float]:
    """Return how h depends on n: as Theorem 2 says, not at all, or as 1/n."""
    return {
        "best h": predicted(estimator, n).optimal_bandwidth(),
        "fixed h": FIXED,
        "fixed nh": REACHED / n,
    }


def tasks(settings: Settings) -> list[Task]:
    """Return a task for every 20 logs of a size."""
    first = range(0, max(settings.replications // SHARE, CHUNK), CHUNK)
    return crossed({"part": [NAME], "n": SIZES, "first": first, "seed": [settings.seed]})


def measure(task: Task) -> Measurement:
    """Return the estimates on some logs at each kind of bandwidth."""
    found: Measurement = {name: {} for name in ESTIMATORS}
    for k in range(task["first"], task["first"] + CHUNK):
        log = SmoothWell().draw(task["n"], np.random.default_rng([task["seed"], 2, k, task["n"]]))
        for name, estimator in ESTIMATORS.items():
            kinds = sorted(bandwidths(name, task["n"]).items(), key=lambda pair: pair[1])
            h = [value for _, value in kinds]
            path = tt.bandwidth_path(log, BEST, estimator=estimator, bandwidths=h)
            for (kind, _), value in zip(kinds, path.values.tolist(), strict=True):
                found[name].setdefault(kind, []).append(value)
    return found


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the errors over n beside the prediction, and how fast they fall."""
    rows = [row for name in ESTIMATORS for row in _rows(name, pieces)]
    kinds = list(bandwidths("IPW", SIZES[0]))
    series: dict[str, Any] = {"n": list(SIZES)}
    for name in ESTIMATORS:
        series[name] = {
            kind: [_rmse(errors(pieces, name, kind, n)) for n in SIZES] for kind in kinds
        } | {"predicted": [_predicted(name, n) for n in SIZES]}
    first = pieces[0].found
    sample = {f"first log of {SIZES[0]}, {name}": first[name]["best h"][0] for name in ESTIMATORS}
    return Findings(rows=tuple(rows), series={NAME: series}, sample=sample)


def errors(pieces: Sequence[Piece], estimator: str, kind: str, n: int) -> Array:
    """Return the errors over all logs of a size."""
    found = [piece.found[estimator][kind] for piece in where(pieces, {"n": n})]
    return np.concatenate(found) - VALUE


def _rows(name: str, pieces: Sequence[Piece]) -> list[Row]:
    label = f"Theorem 3, {name}"
    rows = []
    for n in (SIZES[1], SIZES[-1]):
        wanted = _predicted(name, n)
        squares = errors(pieces, name, "best h", n) ** 2
        limits, quantity = (0.92 * wanted, 1.08 * wanted), f"RMSE, n = {n:,}"
        rows.append(rmse_row(f"{label}, best h", squares, quantity=quantity, limits=limits))
    power = _power([_predicted(name, n) for n in SIZES])
    bias = predicted(name).bias(FIXED)
    stuck = rmse_row(
        f"{label}, h = {FIXED} for all n",
        errors(pieces, name, "fixed h", SIZES[-1]) ** 2,
        quantity=f"RMSE, n = {SIZES[-1]:,}",
        limits=(0.9 * bias, 1.15 * bias),
    )
    note = f"The paper asks for 1/(nh) → 0 alone; without h → 0 the bias, {bias:.3f}, stays."
    rate = _rate(f"{label}, best h", "best h", name, pieces, power, paper=RATE)
    return [
        *rows,
        replace(rate, note=ON_THE_WAY.format(power=abs(power))) if name == "IPW" else rate,
        replace(stuck, note=note),
        _rate(f"{label}, nh = {REACHED:g} for all n", "fixed nh", name, pieces, 0.0),
    ]


def _rate(
    label: str,
    kind: str,
    name: str,
    pieces: Sequence[Piece],
    wanted: float,
    *,
    paper: float | None = None,
) -> Row:
    """Return the power of n in the RMSE."""
    x = np.log(SIZES) - np.mean(np.log(SIZES))
    each = [errors(pieces, name, kind, n) for n in SIZES]
    power = _power([_rmse(e) for e in each])
    # The log of an RMSE of R errors has the standard error 1/√(2R).
    se = float(np.sqrt(np.sum(x**2 / [2 * len(e) for e in each])) / (x @ x))
    limits = around(wanted, 0.05)
    return Row(label, "power of n in the RMSE", power, se=se, paper=paper, limits=limits)


def _power(rmse: Sequence[float]) -> float:
    """Return the power of n, by least squares of log RMSE over log n."""
    x = np.log(SIZES) - np.mean(np.log(SIZES))
    return float(x @ np.log(rmse) / (x @ x))


def _predicted(name: str, n: int) -> float:
    """Return the RMSE at the best bandwidth, by Theorem 2."""
    theory = predicted(name, n)
    return float(np.sqrt(theory.mse(theory.optimal_bandwidth())))


def _rmse(errors: Array) -> float:
    return float(np.sqrt(np.mean(errors**2)))
