"""Row 13: the plug-in's conditional moments, against statsmodels with quadrature over y."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.speed.log import Log
from benchmarks.speed.measuring import Line, at_least, in_turn
from titrant.bandwidth.plug_in import dose_density, outcome_moments

GRID = 201
"""Points of the quadrature over y."""


def plug_in(n: int, points: int, repeats: int) -> list[Line]:
    """Return how much faster E[Y | τ, x], E[Y² | τ, x] and f(τ | x) are at a query point."""
    from statsmodels.nonparametric.kernel_density import (  # noqa: PLC0415
        KDEMultivariateConditional,
    )

    log = Log.draw(n)
    t, x, y = log.t[:, None], log.x[:, None], log.y
    at_t, at_x = log.tau[:points, None], x[:points]
    with warnings.catch_warnings():  # of a change in drawing random numbers, of which none are
        warnings.simplefilter("ignore", FutureWarning)
        outcome = KDEMultivariateConditional(
            y, np.column_stack([t, x]), "c", "cc", "normal_reference"
        )
        dose = KDEMultivariateConditional(t, x, "c", "c", "normal_reference")
    grid = np.linspace(y.min() - 1, y.max() + 1, GRID)

    def mine() -> Any:
        found = outcome_moments(y, t, x, at_t, at_x)
        return found.mean[0], found.square[0], dose_density(t, x, at_t, at_x)[0]

    def theirs() -> Any:
        f = outcome.pdf(grid, np.tile([at_t[0, 0], at_x[0, 0]], (GRID, 1)))
        moments = [np.trapezoid(f * grid**k, grid) for k in (1, 2)]
        return *moments, float(dose.pdf(at_t[:1], at_x[:1]))

    (ours, one), (a, b) = in_turn([mine, theirs], repeats)
    np.testing.assert_allclose(a, b, atol=1e-3)  # what the quadrature leaves
    ratio = one / (ours / points)
    work = f"moments and density a query point, n = {n:,} (curvature included on our side alone)"
    return [at_least(13, work, ratio, 500, "× faster than statsmodels", seconds=ours / points)]
