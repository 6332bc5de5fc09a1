"""Row 13: intervals against a loop that resamples rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.speed.log import Array, H, Log
from benchmarks.speed.measuring import Line, at_least, in_turn, told
from titrant.estimators import Question, Rows, SelfNormalized, ask
from titrant.inference import PoissonBootstrap, RobustBiasCorrected
from titrant.kernels import Scale

LOOPED = 50
"""Draws of the loop that are timed; the time of the others is taken to be the same."""


def resample(w: Array, y: Array, draws: int) -> Array:
    """Return the values of resampled logs, numerator and denominator drawn together."""
    rng, n = np.random.default_rng(0), len(w)
    values = np.empty(draws)
    for b in range(draws):
        i = rng.integers(n, size=n)
        values[b] = (w[i] * y[i]).sum() / w[i].sum()
    return values


def point(rows: Rows) -> Any:
    """Return the estimate that intervals are made around."""
    return ask([Question(SelfNormalized(), 0, Scale.of(H, 1))], lambda s: s([rows]))


def delta(n: int, repeats: int) -> list[Line]:
    """Return intervals from one reading, against 10,000 draws."""
    draws = 10_000
    rows = Log.draw(n).rows(bounded=True)
    w = SelfNormalized().weight(rows, Scale.of(H, 1))
    found = point(rows)
    (loop, one, rbc), _ = in_turn(
        [
            lambda: resample(w, rows.y, LOOPED),
            lambda: point(rows),
            lambda: RobustBiasCorrected().infer(found, lambda s: s([rows])).interval(0).at(0.95),
        ],
        repeats,
    )
    whole = loop * draws / LOOPED
    of = "× faster than 10,000 draws"
    return [
        at_least(
            13,
            f"value and delta-method interval, n = {n:,}",
            whole / one,
            1000,
            of,
            loop_draws_timed=LOOPED,
            seconds=one,
        ),
        told(f"robust bias-corrected interval, n = {n:,}", whole / rbc, of, seconds=rbc),
    ]


def bootstrap(n: int, draws: int, repeats: int) -> list[Line]:
    """Return the bootstrap of an estimate, and that its interval is the loop's."""
    rows = Log.draw(n).rows(bounded=True)
    found, method = point(rows), PoissonBootstrap(draws=draws, bias_corrected=False)
    w = SelfNormalized().weight(rows, Scale.of(H, 1))
    (mine, loop), (inference, drawn) = in_turn(
        [
            lambda: method.infer(found, lambda s: s([rows])),
            lambda: resample(w, rows.y, draws),
        ],
        repeats,
    )
    spread = inference.interval(0).se / drawn.std()
    work = f"bootstrap of {draws:,} draws, n = {n:,}"
    reach = int(np.count_nonzero(w))
    more = {"seconds": mine, "rows_in_reach": reach, "se_over_loops": spread}
    return [at_least(13, work, loop / mine, 50, "× faster than resampling", **more)]
