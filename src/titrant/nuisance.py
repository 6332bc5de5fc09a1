"""What has to be known before a value: the propensity, its floor, and the outcome model.

`Nuisances.of` estimates them once for a log; `Nuisances.rows` then shows any policy on any block
of that log to an estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import DataError, InvalidArgument
from titrant.estimators import Rows
from titrant.policies import StatusQuo, doses

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.estimators import Estimator
    from titrant.outcome import CrossFit
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel

DEFAULT_FLOOR = 0.01
"""The default floor under q, in units of 1/sd(T): a hundredth of a flat density one sd wide."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A block of a log with what does not depend on the policy: q and r̂(t, x), each (n,)."""

    log: LoggedData
    q: Array | None
    r_logged: Array | None
    touched: float
    """The share of these rows whose propensity the floor raised."""


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Everything estimated from a log before a policy is looked at."""

    n: int
    center: float
    """The mean outcome."""
    spread: Array
    """sd(T) of each dose (d,)."""
    floor: float
    propensity: PropensityModel | None
    """The fitted model, or None when the log's own column is used."""
    outcome: CrossFit | None

    @classmethod
    def of(
        cls, log: LoggedData, estimator: Estimator, propensity: PropensityModel | None
    ) -> Nuisances:
        """Estimate from ``log`` what ``estimator`` needs."""
        spread = log.doses.std(axis=0)
        return cls(
            n=len(log),
            center=float(log.outcome.mean()),
            spread=spread,
            floor=floor_of(estimator, spread),
            propensity=fitted_propensity(log, estimator, propensity),
            outcome=fitted_outcome(log, estimator),
        )

    def prepare(self, log: LoggedData) -> Prepared:
        """Return a block with its propensities, floored, and model predictions."""
        q = self._density(log)
        if q is None:
            return Prepared(log, None, self._predict(log, log.doses), 0.0)
        floored = np.maximum(q, self.floor)
        if not (floored > 0).all():
            raise DataError(
                f"The propensity is 0 in {int(np.sum(floored <= 0)):,} of {len(log):,} rows. "
                "Give the estimator a `clip` > 0 or check the propensity model."
            )
        touched = float(np.mean(q < self.floor))
        return Prepared(log, floored, self._predict(log, log.doses), touched)

    def rows(self, prepared: Prepared, policy: Policy) -> Rows:
        """Return the block as an estimator sees it under ``policy``."""
        log = prepared.log
        tau = self._doses(log, policy)
        return Rows(
            tau=tau,
            t=log.doses,
            y=log.outcome,
            x=log.context,
            center=self.center,
            q=prepared.q,
            lower=log.lower if log.bounded else None,
            upper=log.upper if log.bounded else None,
            r_tau=self._predict(log, tau),
            r_logged=prepared.r_logged,
            probability=self._probability(log),
            floor=self.floor,
            first_row=log.first_row,
        )

    def _doses(self, log: LoggedData, policy: Policy) -> Array:
        if isinstance(policy, StatusQuo):
            return log.doses
        tau = doses(policy, log.context, log.dimension)
        check_within_bounds(tau, log)
        return tau

    def _density(self, log: LoggedData) -> Array | None:
        if self.propensity is None:
            return log.propensity
        from titrant.propensity import Known, truncated_density  # noqa: PLC0415

        x = contexts(log)
        if isinstance(self.propensity, Known) or not log.bounded:
            return self.propensity.density(x, log.treatment)
        low, high = _scalar(log.lower), _scalar(log.upper)
        return truncated_density(self.propensity, x, log.treatment, low, high)

    def _probability(self, log: LoggedData) -> Callable[[Array, Array], Array] | None:
        if self.propensity is None or log.dimension > 1:
            return None
        model, x = self.propensity, contexts(log)
        from titrant.propensity import truncated_cdf  # noqa: PLC0415

        lower, upper = log.lower[:, 0], log.upper[:, 0]

        def between(low: Array, high: Array) -> Array:
            above = truncated_cdf(model, x, high, lower, upper)
            return np.maximum(above - truncated_cdf(model, x, low, lower, upper), 0.0)

        return between

    def _predict(self, log: LoggedData, at: Array) -> Array | None:
        if self.outcome is None:
            return None
        fold = self.outcome.fold(log.first_row, len(log))
        return self.outcome.predict(fold, log.context, at)


def floor_of(estimator: Estimator, spread: Array) -> float:
    """Return the user's floor, or .01/∏sd(T): it scales with the dose as a density does."""
    clip: float | None = getattr(estimator, "clip", None)
    return DEFAULT_FLOOR / float(np.prod(spread)) if clip is None else clip


def fitted_propensity(
    log: LoggedData, estimator: Estimator, propensity: PropensityModel | None
) -> PropensityModel | None:
    """Return a fitted copy of the user's model, of the default one, or None for the column."""
    if not estimator.uses_propensity or (propensity is None and log.propensity is not None):
        return None
    from sklearn.base import clone  # noqa: PLC0415

    from titrant.propensity import GaussianMixture, Known, MultivariateGaussian  # noqa: PLC0415

    if propensity is None:
        propensity = GaussianMixture() if log.dimension == 1 else MultivariateGaussian()
    if isinstance(propensity, type):
        raise InvalidArgument(
            f"The `propensity` must be a model, not its class: write `{propensity.__name__}()`."
        )
    try:
        model: Any = propensity if isinstance(propensity, Known) else clone(propensity)
    except TypeError:
        raise InvalidArgument(
            "The `propensity` must be a model such as LinearGaussian(), or Known(function); got a "
            f"{type(propensity).__name__}. A column of propensities goes into the log."
        ) from None
    fitted: PropensityModel = model.fit(contexts(log), log.treatment)
    return fitted


def fitted_outcome(log: LoggedData, estimator: Estimator) -> CrossFit | None:
    """Return the estimator's outcome model, cross-fitted on the log, or None if it has none."""
    if not estimator.uses_outcome_model:
        return None
    from titrant.outcome import CrossFit, Stack, ridge_pair  # noqa: PLC0415

    settings: Any = estimator
    model = settings.outcome
    if model is None:
        # Smooth models: the bandwidth and the interval are calibrated with the residuals they
        # leave. Trees and wells leave steps and kinks of their own near the policy's dose.
        model = Stack(ridge_pair(), seed=settings.seed)
    crossfit = CrossFit(model, folds=settings.folds, seed=settings.seed)
    return crossfit.fit(log.context, log.treatment, log.outcome, first_row=log.first_row)


def contexts(log: LoggedData) -> Array:
    """Return the context (n, p), or one constant column when there is none."""
    return log.context if log.context.shape[1] else np.ones((len(log), 1))


def check_within_bounds(tau: Array, log: LoggedData) -> None:
    """Raise when the policy asks for doses that the log says are impossible."""
    if not log.bounded:
        return
    outside = ((tau < log.lower) | (tau > log.upper)).any(axis=1)
    if outside.any():
        raise DataError(
            f"The policy gives doses outside the bounds in {int(outside.sum()):,} of "
            f"{len(log):,} rows (its doses run from {tau.min():.6g} to {tau.max():.6g}). "
            "Wrap it as `Clipped(policy, lower, upper)`, or widen the bounds."
        )


def _scalar(bound: Array) -> Array:
    return bound[:, 0] if bound.shape[1] == 1 else bound
