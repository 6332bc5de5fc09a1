"""Calling a policy and trusting what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.policies.base import Policy


def doses(policy: Policy, X: Array, dimension: int) -> Array:
    """Return the doses of contexts X (n, p) as (n, d), finite and of the log's dimension d."""
    tau = policy(X)
    owner = f"The policy `{type(policy).__name__}`"
    check_doses(tau, len(X), owner)
    given = tau.shape[1] if tau.ndim > 1 else 1
    if given != dimension:
        raise DataError(
            f"{owner} gives {given} dose(s) per row, but the log has {dimension} treatment(s). "
            "Give a policy for the same treatments in the same order."
        )
    return tau.reshape(len(X), dimension)


def check_doses(tau: Array, n: int, owner: str) -> None:
    """Raise unless tau is n finite doses, (n,) or (n, d)."""
    if tau.ndim not in {1, 2} or len(tau) != n or (tau.ndim > 1 and not tau.shape[1]):
        raise DataError(
            f"{owner} must return one dose per row, shape ({n},) or ({n}, d); got {tau.shape}. "
            "For the same dose in every row use `Constant`."
        )
    finite = np.isfinite(tau)
    if not finite.all():
        bad = ~finite.reshape(n, -1).all(axis=1)
        raise DataError(
            f"{owner} gives a dose that is not finite in {bad.sum():,} of {n:,} rows "
            f"(first: row {int(np.argmax(bad))}). Check it for divisions by zero, logarithms and "
            "missing contexts."
        )
