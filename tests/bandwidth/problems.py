"""Problems to choose a bandwidth for: made of arrays, with all that a selector may ask for."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import reduce
from operator import add

import numpy as np

from titrant.estimators import Problem, Rows


def logged(n=240, d=1, *, bounded=False, off=0.3, seed=0):
    """A smooth outcome of a context and d doses; the policy is `off` away from what was logged."""
    rng = np.random.default_rng(seed)
    x, noise = rng.uniform(size=n), 0.3 * rng.normal(size=n)
    if bounded:
        t = rng.uniform(size=(n, d))
        tau, q = np.repeat(0.05 + 0.4 * x[:, None], d, axis=1), np.ones(n)
    else:
        spread = np.arange(1.0, d + 1)  # doses in different units
        z = rng.normal(size=(n, d))
        t, tau = (z + x[:, None]) * spread, (off + np.tile(x[:, None], d)) * spread
        q = np.exp(-0.5 * (z**2).sum(axis=1)) / np.sqrt(2 * np.pi) ** d / np.prod(spread)
    z, at = t / t.std(axis=0), tau / t.std(axis=0)
    return Rows(
        tau=tau,
        t=t,
        y=3 + np.cos(1.5 * z).sum(axis=1) + x * z[:, 0] + noise,
        x=x[:, None],
        center=3.0,
        q=q,
        lower=np.zeros((n, d)) if bounded else None,
        upper=np.ones((n, d)) if bounded else None,
        r_logged=3 + 0.5 * z.sum(axis=1) + x,
        r_tau=3 + 0.5 * at.sum(axis=1) + x,
        floor=0.01 / float(np.prod(t.std(axis=0))),
    )


def problem(estimator, rows, parts=1):
    """The problem of these rows, which come in `parts` chunks."""
    blocks = [rows.take(i) for i in np.array_split(np.arange(len(rows.y)), parts)]

    def over_rows(statistic):
        return reduce(add, map(statistic, blocks))

    return Problem(estimator, len(rows.y), rows.t.std(axis=0), over_rows, lambda: rows)


def affine(rows, factor, shift):
    """Outcomes in other units; the model, refitted, predicts in those."""
    names = ("y", "center", "r_tau", "r_logged")
    return replace(rows, **{name: factor * getattr(rows, name) + shift for name in names})


def redosed(rows, factor):
    """Doses in other units, with densities per unit of dose."""
    volume = factor ** rows.t.shape[1]
    bounds = {}
    if rows.lower is not None:
        bounds = {"lower": factor * rows.lower, "upper": factor * rows.upper}
    return replace(
        rows,
        t=factor * rows.t,
        tau=factor * rows.tau,
        q=rows.q / volume,
        floor=rows.floor / volume,
        **bounds,
    )


def name(selector):
    """The class and what is not its default."""
    default = type(selector)()
    told = [
        f.name for f in fields(selector) if getattr(selector, f.name) != getattr(default, f.name)
    ]
    return "-".join([type(selector).__name__, *told])
