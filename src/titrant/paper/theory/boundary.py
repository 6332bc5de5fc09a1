"""Doses that end: what each correction leaves of the bias near a bound.

T ~ U[0, 1], τ(x) = 0.1x, h = 0.2, m = 1 + 3t: up to half of the kernel hangs over the edge.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.paper.result import Row, around, standard_error, where
from titrant.paper.study import Findings, crossed
from titrant.paper.theory.designs import Edge, moments, population

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant.paper.study import Measurement, Piece, Settings, Task


NAME = "boundary"
H, ROWS, CHUNK = 0.2, 500, 50
BIAS = f"bias, h = {H}"
POLICY = tt.Linear(coef=[0.1], intercept=0.0)
VALUE = 1.15
"""1 + 3·0.1·E[X]."""
CORRECTIONS = {
    "no correction": tt.Boundary.NONE,
    "mass": tt.Boundary.MASS,
    "linear kernel": tt.Boundary.LINEAR,
}
ORDER = {"no correction": 0.0, "mass": 1.0, "linear kernel": 2.0}
"""The power of h in the bias at the bound itself."""
STEPS = (0.1, 0.05)
DOSES = tuple(round(0.02 * k, 2) for k in range(16))


@cache
def known(correction: str) -> float:
    """Return the bias by integrating over the kernel, which ends at v = −τ/h = −x/2.

    With aⱼ = ∫vʲK over what is left of it: E[m·a₀ + 3h·a₁] − V without a correction, 3h·E[a₁/a₀]
    divided by the mass, and 0 by the linear kernel, as m is a line.
    """
    if correction == "linear kernel":
        return 0.0
    nodes, shares = np.polynomial.legendre.leggauss(40)
    x, dx = 0.5 * (nodes + 1.0), 0.5 * shares
    low = -0.1 * x / H
    half = 0.5 * (1.0 - low)
    v = low[:, None] + half[:, None] * (nodes + 1.0)
    each = half[:, None] * shares * tt.Epanechnikov()(v)
    mass, first = each.sum(axis=1), (each * v).sum(axis=1)
    if correction == "mass":
        return float(dx @ (3.0 * H * first / mass))
    return float(dx @ ((1.0 + 0.3 * x) * mass + 3.0 * H * first)) - VALUE


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each correction, and one for every 50 logs."""
    first = range(0, max(settings.replications // 2, CHUNK), CHUNK)
    return [
        *crossed({"part": [NAME], "kind": ["population"], "correction": CORRECTIONS}),
        *crossed({"part": [NAME], "kind": ["logs"], "first": first, "seed": [settings.seed]}),
    ]


def measure(task: Task) -> Measurement:
    """Return the biases of a correction in the population, or the estimates on some logs."""
    return _population(task) if task["kind"] == "population" else _logs(task)


def _population(task: Task) -> Measurement:
    estimator = tt.IPW(clip=0.0, boundary=CORRECTIONS[task["correction"]])
    straight, curved = population(Edge()), population(Edge(curved=True), contexts=1, doses=65_536)
    flat = population(Edge(), contexts=1)
    over = [moments(flat, tt.Constant(dose), estimator, [H])[0][0] for dose in DOSES]
    at_bound = moments(curved, tt.Constant(0.0), estimator, sorted(STEPS))[0][::-1] - 1.0
    found = {
        "bias": moments(straight, POLICY, estimator, [H])[0] - VALUE,
        "over doses": np.array(over) - 1.0 - 3.0 * np.array(DOSES),
        "order": np.log(at_bound[:1] / at_bound[1:]) / np.log(STEPS[0] / STEPS[1]),
    }
    # The quantiles of the population are good to seven digits.
    return {name: (np.round(values, 6) + 0.0).tolist() for name, values in found.items()}


def _logs(task: Task) -> Measurement:
    found: Measurement = {name: [] for name in CORRECTIONS}
    for k in range(task["first"], task["first"] + CHUNK):
        log = Edge().draw(ROWS, np.random.default_rng([task["seed"], 3, k]))
        for name, boundary in CORRECTIONS.items():
            estimator = tt.IPW(clip=0.0, boundary=boundary)
            path = tt.bandwidth_path(log, POLICY, estimator=estimator, bandwidths=[H])
            found[name].append(float(path.values[0]))
    return found


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return what each correction leaves of the bias."""
    whole = {p.task["correction"]: p.found for p in where(pieces, {"kind": "population"})}
    logs = where(pieces, {"kind": "logs"})
    rows = [row for name in CORRECTIONS for row in _rows(name, whole[name], logs)]
    series: dict[str, Any] = {name: whole[name]["over doses"] for name in CORRECTIONS}
    return Findings(
        rows=(*rows, _divisor(whole["mass"])),
        series={NAME: {"doses": list(DOSES), **series}},
        sample={f"first log at the edge, {name}": logs[0].found[name][0] for name in CORRECTIONS},
    )


def _rows(name: str, found: Measurement, logs: Sequence[Piece]) -> list[Row]:
    values = np.array([value for piece in logs for value in piece.found[name]])
    bias_known, label = known(name), f"Boundary, {name}"
    over_logs, at_bound = f"{label}, logs of {ROWS} rows", f"{label}, at the bound"
    bias, se = float(values.mean()) - VALUE, standard_error(values)
    order, wanted = found["order"][0], around(ORDER[name], 0.1)
    return [
        Row(label, BIAS, found["bias"][0], limits=around(bias_known, 0.0005)),
        Row(over_logs, BIAS, bias, se=se, limits=around(bias_known, 0.005)),
        Row(at_bound, "power of h in the bias", order, limits=wanted),
    ]


def _divisor(mass: Measurement) -> Row:
    """Return what the divisor that the paper prints does: it lacks 1/h."""
    return Row(
        "Boundary, divided as printed",
        BIAS,
        (mass["bias"][0] + VALUE) / H - VALUE,
        note="The divisor ∫K((τ − t)/h)dt is h times the mass: estimates come out 1/h too large.",
    )
