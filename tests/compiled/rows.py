"""Rows to compute fused and in numpy: more than a chunk, with everything an estimator asks for."""

from __future__ import annotations

import numpy as np

from titrant.estimators import ESTIMATORS, Rows
from titrant.estimators.form import has_common_terms
from titrant.kernels import KERNELS
from titrant.kernels.polynomial import power_form

FUSED_KERNELS = tuple(k() for k in KERNELS if power_form(k()) is not None)
FUSED_ESTIMATORS = tuple(e for e in ESTIMATORS if has_common_terms(e))
"""Those of the rooms' lists that loops know; the others run by their own methods."""


def rows(n=700, *, bounds=None, seed=0, tau=None):
    """n rows of one dose; bounds None, "shared" ones or some "of each row"."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=n), rng.uniform(size=n)
    tau = np.clip(t + rng.normal(scale=0.3, size=n), 0.0, 1.0) if tau is None else tau
    y = 2.0 + np.sin(3 * t) + x + rng.normal(size=n)
    lower, upper = None, None
    if bounds == "shared":
        lower, upper = np.broadcast_to(0.0, (n, 1)), np.broadcast_to(np.inf, (n, 1))
    elif bounds == "of each row":
        # Some doses have passed their bound, some are closer than h to both.
        lower = rng.uniform(-0.3, 0.2, (n, 1))
        upper = rng.choice([0.9, 1.0, np.inf], (n, 1))
    return Rows(
        tau=tau[:, None],
        t=t[:, None],
        y=y,
        x=x[:, None],
        center=float(y.mean()),
        q=rng.uniform(0.3, 2.0, n),
        lower=lower,
        upper=upper,
        r_logged=1.5 + np.cos(2 * t) + x,
        r_tau=1.5 + np.cos(2 * tau) + x,
    )


BOUNDS = (None, "shared", "of each row")
