"""Goal 12: the default call, whose models are estimated, beside an analyst's boosted trees."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

import titrant as tt
from benchmarks.confounding.designs import TUNING
from benchmarks.optimize import Line, in_turn

DOSE = 0.5
DESIGNS = {3: "threshold", 10: "linear, ten contexts"}
"""By the number of contexts."""
SECONDS = 1.5
"""Of CPU that people wait for 1,000 rows without a second thought."""


def boosted(log: tt.LoggedData) -> float:
    """Return the value of a dose, doubly robust, by scikit-learn's trees as they come, five-fold.

    r̂(x, t) and E[T | x] are boosted; the density is normal around that mean.
    """
    x, t, y = log.context, log.treatment, log.outcome
    pairs, asked = np.column_stack([x, t]), np.column_stack([x, np.full(len(t), DOSE)])
    mean, at_logged, at_dose = np.empty((3, len(t)))
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        mean[test] = HistGradientBoostingRegressor().fit(x[train], t[train]).predict(x[test])
        outcome = HistGradientBoostingRegressor().fit(pairs[train], y[train])
        at_logged[test], at_dose[test] = (outcome.predict(a[test]) for a in (pairs, asked))
    sd, h = (t - mean).std(), 1.06 * t.std() * len(t) ** -0.2
    weight = np.exp(-0.5 * ((t - DOSE) / h) ** 2 + 0.5 * ((t - mean) / sd) ** 2)
    return float(at_dose.mean() + weight @ (y - at_logged) / weight.sum())


def default_models(repeats: int) -> list[Line]:
    """Return what the default call costs at 1,000 and 100,000 rows."""
    lines = []
    for n in (1_000, 100_000):
        for p, name in DESIGNS.items():
            log = TUNING[name].draw(n, [12, n])

            def call(log: tt.LoggedData = log) -> tt.Estimate:
                return tt.evaluate(log, tt.Constant(DOSE), allow_untrusted=True)

            (ours, theirs), _ = in_turn([call, lambda log=log: boosted(log)], repeats)
            work = f"evaluate() with models estimated, n = {n:,}, {p} contexts"
            details = {"seconds": ours, "peer": theirs, "rows": n}
            if n == 1_000:
                asked = f"≤ {SECONDS:g} CPU s"
                lines.append(Line(12, work, ours, asked, passed=ours <= SECONDS, details=details))
            else:
                asked = "≤ 1 × boosted trees, five-fold, doubly robust"
                ratio = ours / theirs
                lines.append(Line(12, work, ratio, asked, passed=ratio <= 1.0, details=details))
    return lines
