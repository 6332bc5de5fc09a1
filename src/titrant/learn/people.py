"""The people of a log as a few groups of like people, for what is told of each new person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.data.columns import places
from titrant.learn.candidates import smoothed_curves
from titrant.policies.advice import People
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from titrant.learn.contenders import Arena
    from titrant.policies import Policy

ROWS, GROUPS, MOST = 25, 30, 5000
"""Rows of a group, on average, the most groups, and the most rows that they are made of."""
FEWEST = 5
"""Rows of a group that is kept: fewer say little of doses, and much of a person."""
EVERY = 2
"""Every second dose of a curve is kept."""
GIVEN = (0.01, 0.99)
"""The quantiles of a group's doses between which a dose was given in it."""
WITHIN, BEYOND = 0.99, 1.25
"""The share of a group that its reach is taken from, and how much further it goes: new people who
are like the others lie a little beyond."""
MARGIN = 0.05
"""In units of sd(y)."""


def people_of(policy: Policy, arena: Arena, seed: int) -> People | None:
    """Return groups of like rows with their doses and mean smoothed curves; None without names."""
    from sklearn.cluster import KMeans  # noqa: PLC0415

    names = policy.features
    if names is None:
        return None
    at = list(places(names, arena.log.names, "policy"))
    n = len(arena.log)
    some = np.unique(np.linspace(0, n - 1, min(n, MOST)).astype(np.intp))
    x, t = arena.log.context[some][:, at], arena.log.treatment[some]
    spread = spread_of(Held.of(x).columns(x)) if at else np.empty(0)
    scale = np.where(spread > 0.0, spread, 1.0)
    grid, curves = smoothed_curves(arena.rows, arena.units)
    losses = curves[some][:, ::EVERY]
    group = np.zeros(len(some), dtype=np.intp)
    if at:
        count = int(np.clip(len(some) // ROWS, 1, GROUPS))
        group = KMeans(count, n_init=1, random_state=seed).fit_predict(x / scale)
    every = [np.flatnonzero(group == g) for g in np.unique(group)]
    each = [rows for rows in every if len(rows) >= FEWEST]
    if not each:
        return None
    centers = np.stack([x[rows].mean(axis=0) for rows in each])
    far = [
        np.sqrt((((x[rows] - center) / scale) ** 2).sum(axis=1))
        for rows, center in zip(each, centers, strict=True)
    ]
    return People(
        names=names,
        centers=centers,
        scale=scale,
        reach=BEYOND * np.array([np.quantile(one, WITHIN) for one in far]),
        doses=np.stack([np.quantile(t[rows], GIVEN) for rows in each]),
        grid=grid[::EVERY],
        losses=np.stack([losses[rows].mean(axis=0) for rows in each]) + arena.center,
        margin=MARGIN * arena.units.outcome_sd,
    )
