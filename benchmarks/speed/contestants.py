"""What people would run instead: plain numpy, and scikit-learn's boosted trees as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.rules.contestants import least

if TYPE_CHECKING:
    from titrant import LoggedData

    Array = np.ndarray[Any, np.dtype[np.float64]]


def numpy_value(log: LoggedData, tau: Array, h: float) -> tuple[float, float]:
    """Return the self-normalized value and its standard error: no bound, interval or check."""
    u = (tau - log.treatment) / h
    w = 0.75 * (1 - u**2) * (np.abs(u) <= 1) / np.maximum(log.propensity, 0.1)
    value = (w * log.outcome).sum() / w.sum()
    return float(value), float(np.sqrt(((w * (log.outcome - value)) ** 2).sum()) / w.sum())


def boosted_value(log: LoggedData, tau: Array) -> float:
    """Return the value of doses τ, doubly robust, cross-fitted in five folds.

    r̂(x, t) and, unless propensities are known, E[T | x] are boosted; the density is normal around
    that mean. The bandwidth is a rule of thumb; there is no interval.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor as Boosted  # noqa: PLC0415
    from sklearn.model_selection import KFold  # noqa: PLC0415

    x, t, y = log.context, log.treatment, log.outcome
    pairs, asked = np.column_stack([x, t]), np.column_stack([x, tau])
    mean, at_logged, at_tau = np.zeros((3, len(t)))
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        if log.propensity is None:
            mean[test] = Boosted().fit(x[train], t[train]).predict(x[test])
        outcome = Boosted().fit(pairs[train], y[train])
        at_logged[test], at_tau[test] = (outcome.predict(a[test]) for a in (pairs, asked))
    if log.propensity is None:
        sd = (t - mean).std()
        density = np.exp(-0.5 * ((t - mean) / sd) ** 2) / sd
    else:
        density = log.propensity
    h = 1.06 * t.std() * len(t) ** -0.2
    weight = np.exp(-0.5 * ((t - tau) / h) ** 2) / density
    return float(at_tau.mean() + weight @ (y - at_logged) / weight.sum())


def boosted_rule(log: LoggedData) -> Array:
    """Return for each row the dose with the least prediction by trees fitted without its fold."""
    from sklearn.ensemble import HistGradientBoostingRegressor as Boosted  # noqa: PLC0415
    from sklearn.model_selection import KFold  # noqa: PLC0415

    x, t, y = log.context, log.treatment, log.outcome
    doses, ends = np.empty(len(t)), (float(t.min()), float(t.max()))
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        model = Boosted().fit(np.column_stack([x, t])[train], y[train])
        doses[test] = least(model, x[test], ends)
    return doses
