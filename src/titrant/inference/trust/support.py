"""The support of a log: which doses were given to contexts like these, often enough to be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.errors import InvalidArgument
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.estimators import Rows


THINNEST = 0.01
"""The least density, in units of 1/∏sd(T), at which a dose counts as logged; also the default
floor under propensities, so that a lower floor of the user's does not widen the support."""
SURROGATE_ROWS = 20_000
"""Rows to which the surrogate is fitted: its coefficients are good to a hundredth of an sd."""
EDGE = 0.05
"""The share of the doses at each end whose width is how far the range may be extended: a bound
itself lies just beyond the last dose logged."""
_SINGULAR = 1e-10
"""Residual variance below this share of the doses' own, in any direction, is rounding."""


@dataclass(frozen=True, slots=True)
class Support:
    """Doses t with f(t | x) ≥ ``level``, not far beyond the range of all logged doses."""

    model: LinearSurrogate | None
    """Where a column of propensities says nothing of doses that were not logged."""
    level: float
    lowest: Array
    """The least dose (d,) not far beyond those logged."""
    highest: Array

    @classmethod
    def of(
        cls,
        log: LoggedData,
        floor: float,
        *,
        modeled: bool,
        spread: Array | None = None,
        ends: tuple[Array, Array] | None = None,
        context_ends: tuple[Array, Array] | None = None,
    ) -> Self | None:
        """Return the support by the rows' own laws if doses are ``modeled``, else by a surrogate.

        None if no linear-Gaussian surrogate can be fitted. Where ``log`` is a sample of a larger
        one, ``spread`` (d,) and ``ends`` (d,) are the sd of all doses and the least and greatest;
        so are ``context_ends`` (p,) of the contexts, if they are known.
        """
        doses = log.doses
        unit = float(np.prod(doses.std(axis=0) if spread is None else spread))
        model = None if modeled else LinearSurrogate.of(_sample(log), context_ends)
        if unit == 0.0 or not (modeled or model):
            return None
        level = max(floor, THINNEST / unit)
        return cls(model, level, *extended_range(doses, ends))

    @property
    def surrogate(self) -> bool:
        """Whether the law of the doses was fitted for this purpose alone."""
        return self.model is not None

    def outside(self, rows: Rows) -> NDArray[np.bool_]:
        """Return which rows (n,) have a policy dose outside the support."""
        beyond = ((rows.tau < self.lowest) | (rows.tau > self.highest)).any(axis=1)
        return np.asarray(beyond | (self._density(rows) < self.level))

    def _density(self, rows: Rows) -> Array:
        """Return f(τ(x) | x) (n,), within the bounds as the weights have it."""
        if self.model is not None:
            return self.model.density(rows.need("x", "Support"), rows.tau)
        if rows.density is None:
            raise InvalidArgument("The rows carry no law of the doses to find the support by.")
        return rows.density(rows.tau)


@dataclass(frozen=True, slots=True)
class LinearSurrogate:
    """T | x ~ N(a + B(x − x̄), S) by least squares in numpy alone.

    The models of `titrant.propensity` can do this too, but loading scikit-learn for them takes
    longer than a whole evaluation with known propensities.
    """

    hold: Held | None
    """How far values of contexts are held; None where all of them pass as they are."""
    center: Array
    """x̄ (k,), of contexts and codes."""
    constant: Array
    """a (d,)."""
    coef: Array
    """B (k, d)."""
    inverse_root: Array
    """L⁻¹ (d, d), S = LLᵀ."""

    @classmethod
    def of(cls, log: LoggedData, ends: tuple[Array, Array] | None = None) -> Self | None:
        """Return the fit to a log, or None when its contexts determine its doses.

        ``ends`` are the least and the greatest value (p,) that any context will have, if known.
        """
        hold = Held.of(log.context)
        held = hold(log.context)
        center, spread = held.mean(axis=0), spread_of(held)
        unit = np.where(spread > 0.0, spread, np.inf)
        z, t = _design((held - center) / unit), log.doses
        coef, _, rank, _ = np.linalg.lstsq(z, t, rcond=None)
        if len(z) <= rank:
            return None
        e = t - z @ coef
        covariance = e.T @ e / (len(z) - rank)
        own = np.outer(t.std(axis=0), t.std(axis=0))
        if not own.all() or np.linalg.eigvalsh(covariance / own)[0] < _SINGULAR:
            return None
        inverse_root = np.linalg.inv(np.linalg.cholesky(covariance))
        held_on = None if ends is not None and hold.passes(*ends) else hold
        return cls(held_on, center, coef[0], coef[1:] / unit[:, None], inverse_root)

    def density(self, X: Array, t: Array) -> Array:
        """Return f(t | x) (n,) at contexts X (n, p) and doses t (n, d)."""
        x = X if self.hold is None else self.hold(X)
        e = t - self.constant - (x - self.center) @ self.coef
        z = self.inverse_root @ e.T
        peak = float(np.prod(np.diagonal(self.inverse_root))) / (2.0 * np.pi) ** (len(z) / 2)
        return np.asarray(np.exp(-0.5 * np.sum(z * z, axis=0)) * peak)


def extended_range(doses: Array, ends: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Return the ends (d,) of the range of doses (n, d), extended by the width of its edges.

    With the least dose a and the 5 % quantile b the lower end is a − (b − a); so the upper one.
    The least and greatest dose are ``ends``, if these doses are a sample.
    """
    low, high = (doses.min(axis=0), doses.max(axis=0)) if ends is None else ends
    inner_low, inner_high = np.quantile(doses, [EDGE, 1.0 - EDGE], axis=0)
    return low - (inner_low - low), high + (high - inner_high)


def _design(z: Array) -> Array:
    return np.column_stack([np.ones(len(z)), z])


def _sample(log: LoggedData) -> LoggedData:
    """Return all rows, or as many as the surrogate needs, the same at every call."""
    if len(log) <= SURROGATE_ROWS:
        return log
    drawn = np.random.default_rng(0).choice(len(log), SURROGATE_ROWS, replace=False)
    return log.rows(np.sort(drawn))
