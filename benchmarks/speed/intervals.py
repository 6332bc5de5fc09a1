"""Goals 5 and 6: intervals against a loop that resamples rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.optimize import Line, in_turn
from benchmarks.speed.log import Array, H, Log
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
    """Goal 5: intervals from one reading, against 10,000 draws."""
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
    details = {"loop_draws_timed": LOOPED, "loop_seconds": whole}
    return [
        Line(
            5,
            f"{name}, n = {n:,}",
            whole / seconds,
            asked,
            bool(whole / seconds >= least),
            details | {"seconds": seconds},
        )
        for name, seconds, asked, least in (
            ("value and delta-method interval", one, "≥ 1000 × 10,000 draws", 1000),
            ("robust bias-corrected interval", rbc, "for information", 0),
        )
    ]


def bootstrap(n: int, draws: int, repeats: int) -> list[Line]:
    """Goal 6: the bootstrap of an estimate, and that its interval is the loop's."""
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
    return [
        Line(
            6,
            f"bootstrap of {draws:,} draws, n = {n:,}",
            loop / mine,
            "≥ 50 × resampling",
            bool(loop / mine >= 50),
            {"seconds": mine, "rows_in_reach": int(np.count_nonzero(w)), "se_over_loops": spread},
        )
    ]
