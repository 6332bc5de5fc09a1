"""Rows to ask questions of, and passes over them in one or several blocks."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import reduce
from operator import add

import numpy as np

from titrant.estimators import Rows


def some_rows(n: int = 60, seed: int = 0) -> Rows:
    """Doses around a policy's, propensities that vary, a wrong outcome model."""
    rng = np.random.default_rng(seed)
    t, tau = rng.normal(size=(n, 1)), rng.normal(scale=0.5, size=(n, 1))
    y = np.sin(2 * t[:, 0]) + rng.normal(size=n)
    return Rows(
        tau=tau,
        t=t,
        y=y,
        center=float(y.mean()),
        q=rng.uniform(0.2, 0.6, n),
        r_tau=np.cos(tau[:, 0]),
        r_logged=np.cos(t[:, 0]),
    )


def at_distances(v, *, w=None, y=None) -> Rows:
    """Rows whose logged dose is v away from the policy's dose 0; propensity 1/w."""
    v = np.asarray(v, dtype=float)
    y = np.arange(len(v), dtype=float) if y is None else np.asarray(y, dtype=float)
    q = np.ones(len(v)) if w is None else 1 / np.asarray(w, dtype=float)
    return Rows(tau=np.zeros((len(v), 1)), t=v[:, None], y=y, center=float(y.mean()), q=q)


def in_one_block(*policies: Rows):
    return lambda statistic: statistic(list(policies))


def in_blocks(*policies: Rows, cuts=(7, 8, 30)):
    """The same rows in blocks of uneven size, each knowing its place."""

    def over_rows(statistic):
        index = np.split(np.arange(len(policies[0].y)), cuts)
        return reduce(add, [statistic([cut(rows, i) for rows in policies]) for i in index])

    return over_rows


def cut(rows: Rows, index: np.ndarray) -> Rows:
    chosen = {
        f.name: value[index]
        for f in fields(rows)
        if isinstance(value := getattr(rows, f.name), np.ndarray)
    }
    return replace(rows, first_row=rows.first_row + int(index[0]), **chosen)
