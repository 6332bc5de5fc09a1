"""The bias of the doubly robust estimator: that of its residual, not Theorem 1 plus a product.

With ρ = f/q̂ and δ = m − r̂ the bias is E[(ρ − 1)δ] + (κ₂/2)h²·E[(ρδ)″] at the policy's dose. The
paper says: the bias of Theorem 1, and in excess of it the product. Yet a right outcome model
leaves nothing to smooth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import titrant as tt
from titrant.paper.result import Row, around
from titrant.paper.study import Findings
from titrant.paper.theory.designs import BEST, CURVATURE, VALUE, SmoothWell, moments, population

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.paper.study import Measurement, Piece, Settings, Task


NAME = "doubly robust"
H = (0.05, 0.1, 0.2, 0.4)
JUDGED = 0.2
LEVEL, CENTER, SD = 0.5, -0.3, 0.5
"""The wrong outcome model says 0.5 + x whatever the dose, the wrong propensity N(x − 0.3, 0.5²)."""
DELTA = 1.0 - LEVEL
"""δ at the policy's dose, where m = 1 + x."""
SLOPE = (0.1 - CENTER) / SD**2
RATIO = math.exp(0.5 * (CENTER**2 - 0.1**2) / SD**2)
"""ρ = f/q̂ = RATIO·exp(SLOPE·s), s = t − x, as f is the density of N(x + 0.1, 0.5²)."""
KAPPA = tt.Epanechnikov().second_moment


@dataclass(frozen=True, slots=True)
class WrongModels:
    """Which of the two models is wrong."""

    outcome: bool
    propensity: bool

    def predicted(self, h: float) -> float:
        """Return E[(ρ − 1)δ] + (κ₂/2)h²·E[(ρδ)″] at s = 0, the same for every context."""
        if not self.outcome:
            return 0.0
        rho, slope = (RATIO, SLOPE) if self.propensity else (1.0, 0.0)
        # (ρδ)″ = ρ(slope²·δ + 2·slope·δ′ + δ″) with δ′ = 0 and δ″ = 2.
        second = rho * (slope**2 * DELTA + CURVATURE)
        return (rho - 1.0) * DELTA + 0.5 * KAPPA * h**2 * second

    def printed(self, h: float) -> float:
        """Return the bias of Theorem 1 and, in excess, the product (ρ − 1)δ."""
        rho = RATIO if self.propensity else 1.0
        delta = DELTA if self.outcome else 0.0
        return 0.5 * KAPPA * h**2 * CURVATURE + (rho - 1.0) * delta


CASES = {
    "right outcome model, right propensity": WrongModels(outcome=False, propensity=False),
    "right outcome model, wrong propensity": WrongModels(outcome=False, propensity=True),
    "wrong outcome model, right propensity": WrongModels(outcome=True, propensity=False),
    "both wrong": WrongModels(outcome=True, propensity=True),
}


def tasks(settings: Settings) -> list[Task]:
    """Return a task for each case."""
    del settings
    return [{"part": NAME, "case": case} for case in CASES]


def measure(task: Task) -> Measurement:
    """Return the bias in the population at each bandwidth."""
    from titrant.paper.theory.designs import Given  # noqa: PLC0415  (loads scikit-learn)

    case, log = CASES[task["case"]], population(SmoothWell())
    if case.propensity:
        z = (log.treatment - log.context[:, 0] - CENTER) / SD
        log = log.with_propensity(np.exp(-0.5 * z**2) / (SD * math.sqrt(2.0 * math.pi)))
    outcome = Given(_flat if case.outcome else SmoothWell().mean_outcome)
    estimator = tt.DoublyRobust(outcome=outcome, folds=1, self_normalized=False, clip=0.0)
    mean, _ = moments(log, BEST, estimator, H)
    return {"bias": (np.round(mean - VALUE, 9) + 0.0).tolist()}


def _flat(X: Array, t: Array) -> Array:
    """Return 0.5 + x whatever the dose."""
    return LEVEL + X[:, 0] + 0.0 * t


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the bias of each case beside the corrected prediction and the printed one."""
    found = {piece.task["case"]: piece.found["bias"] for piece in pieces}
    rows = [
        Row(
            f"Doubly robust, {name}, h = {JUDGED}",
            "bias",
            found[name][H.index(JUDGED)],
            paper=case.printed(JUDGED),
            limits=_limits(case.predicted(JUDGED)),
        )
        for name, case in CASES.items()
    ]
    series = {
        name: {
            "bias": found[name],
            "predicted": [case.predicted(h) for h in H],
            "printed": [case.printed(h) for h in H],
        }
        for name, case in CASES.items()
    }
    return Findings(rows=tuple(rows), series={NAME: {"h": list(H), **series}})


def _limits(wanted: float) -> tuple[float, float]:
    """Return 3 % around a bias, a millionth around none."""
    return around(wanted, max(0.03 * abs(wanted), 1e-6))
