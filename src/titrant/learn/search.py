"""The sums of an estimator's terms over the policies of a class, with every scale fixed.

The one place that chooses how they are computed: policies τ = φ(x)'β of one dose, by an estimator
with a compiled loop, go through that; all else by the estimator's own terms. Rows in memory are
laid out once, others anew in each pass, which serves all restarts together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.compiled import Loop, pays
from titrant.data import LoggedData
from titrant.estimators import Rows
from titrant.estimators.form import has_kernel_weight, has_search_loop
from titrant.evaluation.models.fitting import folding_numbers
from titrant.execute import BATCH, OverBatches, add_up
from titrant.kernels import Scale
from titrant.learn.setting import one_or_more
from titrant.optimize import AffineSearch, SearchSums, TermSearch
from titrant.policies import Clipped, as_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data.keys import Keys
    from titrant.data.source import Source
    from titrant.estimators import DirectMethod, SmoothedEstimator
    from titrant.evaluation.models.nuisance import Nuisances
    from titrant.execute import Engine
    from titrant.learn.classes import FittedClass
    from titrant.optimize import SearchStatistics, Second
    from titrant.outcome import CrossFit
    from titrant.outcome.crossfit import Folds
    from titrant.policies import Policy

    Searched = SmoothedEstimator | DirectMethod

TABULATED = 4096
"""Rows whose outcome curves are tabulated at a time: tables that stay in cache take half the time
of those of a whole batch."""
STEP = 0.02
"""Of the central differences of an outcome model, in units of the dose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySearch:
    """From any rows of a log with d doses to sums at any parameters of a class."""

    fitted: FittedClass
    estimator: Searched
    second: Second
    unit: Array
    """Units of the parameters, one a dose (d,)."""
    h: Array
    """Bandwidths (d,)."""
    low: Array
    """The smallest doses a policy may give (d,)."""
    high: Array
    ends: Array
    """The doses between which outcome models are tabulated (2, d)."""
    model: CrossFit | None = None
    keys: Keys | None = None
    """Of all groups, in increasing order, where the model's folds go by groups."""
    nuisances: Nuisances | None = None
    """Where the propensities come from, if the estimator uses any."""
    floor: float = 0.0
    """The floor under them."""
    sign: float = 1.0
    """−1 if outcomes are shown to the estimator as losses and were logged as rewards."""
    center: float = 0.0
    """What outcomes are counted from."""
    shown_center: float = 0.0
    """The mean outcome as an estimator of a user's own sees it."""

    @property
    def units(self) -> Array:
        """The unit of each parameter (K,): a policy of a user's own has its own."""
        size = len(self.fitted.penalized)
        return np.tile(self.unit, size) if self.fitted.affine else np.ones(size)

    @property
    def limits(self) -> tuple[float | Array, float | Array]:
        """The range of doses: numbers for one dose, (d,) for several."""
        return one_or_more(self.low), one_or_more(self.high)

    def params(self, found: Array) -> Array:
        """Return the parameters of the class, (P,) or (P, d), from those of the search (K,)."""
        beta = found * self.units
        several = self.fitted.affine and len(self.unit) > 1
        return beta.reshape(-1, len(self.unit)) if several else beta

    def over(self, log: Source, engine: Engine) -> SearchSums:
        """Return the sums over a log as a function of parameters (m, K): one pass each."""
        # A search asks thousands of times: rows in memory are laid out once for all of them, where
        # a pass would predict and tabulate them anew each time.
        return self.on(log) if isinstance(log, LoggedData) else Passes(self, log, engine)

    def __call__(self, params: Array, log: LoggedData) -> SearchStatistics:
        """Return the sums of a block at parameters (m, K)."""
        blocks = [log] if self.model is None else log.batches(TABULATED)
        return add_up(lambda block: self.on(block)(params), blocks)

    def on(self, log: LoggedData) -> SearchSums:
        """Return the sums of a block as a function of parameters (m, K)."""
        q = np.ones(len(log)) if self.nuisances is None else self.nuisances.prepare(log).q
        losses = log.with_outcome(self.sign * log.outcome - self.center)
        affine = log.dimension == 1 and self.fitted.affine
        if affine and pays(Loop.SEARCH, len(log)) and has_search_loop(self.estimator):
            return self._compiled(losses, np.asarray(q))
        return self._by_terms(losses, np.asarray(q))

    def _compiled(self, log: LoggedData, q: Array) -> AffineSearch:
        table, logged, smoothing = None, self._predict(log, log.doses[None]), dict[str, Any]()
        if self.model is not None:
            from titrant.outcome import DoseTable  # noqa: PLC0415

            ends = self.ends[:, 0].tolist()
            table = DoseTable.of(self.model, self._fold(self.model, log), log.context, bounds=ends)
        if has_kernel_weight(self.estimator):
            smoothing = {"kernel": self.estimator.kernel, "boundary": self.estimator.boundary}
        if smoothing and log.bounded:
            smoothing |= {"lower": log.lower[:, 0].copy(), "upper": log.upper[:, 0].copy()}
        return AffineSearch(
            phi=self.fitted.features(log.context) * self.unit[0],
            t=log.treatment,
            e=log.outcome - logged[0],
            q=q,
            h=float(self.h[0]),
            low=float(self.low[0]),
            high=float(self.high[0]),
            table=table,
            second=self.second,
            direct=not smoothing,
            **smoothing,
        )

    def _by_terms(self, log: LoggedData, q: Array) -> TermSearch:
        modeled = self.model is not None
        rows = Rows(
            tau=log.doses,  # not read
            t=log.doses,
            y=log.outcome,
            x=log.context,
            center=self.shown_center,
            q=q,
            lower=log.lower if log.bounded else None,
            upper=log.upper if log.bounded else None,
            r_logged=self._predict(log, log.doses[None])[0] if modeled else None,
            first_row=log.first_row,
            floor=self.floor,
        )
        return TermSearch(
            rows=rows,
            features=self.fitted.features(log.context),
            policy=Clipped(self.fitted.searched(self.unit), *self.limits),
            estimator=self.estimator,
            scale=Scale.of(self.h, log.dimension),
            outcome=partial(self._predict, log) if modeled else None,
            step=STEP * self.unit,
        )

    def _predict(self, log: LoggedData, tau: Array) -> Array:
        """Return r̂ (k, n) at k doses (k, n, d) of each row, by the model that has not seen it."""
        k, n, d = tau.shape
        if self.model is None:
            return np.zeros((k, n))
        # All at once: the models are quick, and calling them is not.
        fold = np.tile(self._fold(self.model, log), k)
        at = tau.reshape(k * n, d) if d > 1 else tau.ravel()
        return self.model.predict(fold, np.tile(log.context, (k, 1)), at).reshape(k, n)

    def _fold(self, model: CrossFit, log: LoggedData) -> Folds:
        numbers = folding_numbers(log, None, self.keys)
        return model.fold(log.first_row, len(log), numbers)


@dataclass(frozen=True, slots=True)
class Passes(SearchSums):
    """The sums over a log that is not in memory as a function of parameters: one pass each."""

    search: PolicySearch
    log: Source
    engine: Engine

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, K)."""
        task = OverBatches(partial(self.search, params.copy()), BATCH)
        return self.engine.add_up(task, self.log.partitions)


# The policy of a class that is nearest to another one, by least squares over all rows.


@dataclass(frozen=True, slots=True)
class Triangle:
    """R of the QR decomposition of features and doses side by side (n, P + d)."""

    r: Array

    @classmethod
    def of(cls, columns: Array) -> Triangle:
        """Return that of some rows, from their columns or from what is left of them."""
        return cls(np.asarray(np.linalg.qr(columns, mode="r")))

    def __add__(self, other: Triangle) -> Triangle:
        """Return that of both sets of rows."""
        return Triangle.of(np.vstack([self.r, other.r]))


def nearest(
    fitted: FittedClass, policy: Policy | None, mean: Array, log: Source, engine: Engine
) -> tuple[Array, Array]:
    """Return the parameters (P, d) nearest to a policy, and the mean squares of features (P,).

    Without a policy nearest to the mean dose (d,).
    """
    columns = partial(_columns, fitted, policy, mean)
    # Least squares of the columns themselves where they are at hand, which rounds less than what is
    # left of them after a pass; the search starts here, so its digits would follow.
    if isinstance(log, LoggedData):
        found = columns(log)
    else:
        found = engine.add_up(OverBatches(partial(_triangle, columns), BATCH), log.partitions).r
    phi, tau = np.split(found, [found.shape[1] - len(mean)], axis=1)
    first = np.linalg.lstsq(phi, tau, rcond=None)[0]
    return np.asarray(first, dtype=np.float64), np.sum(phi**2, axis=0) / len(log)


def _columns(fitted: FittedClass, policy: Policy | None, mean: Array, log: LoggedData) -> Array:
    """Return features and doses side by side (n, P + d)."""
    tau = np.broadcast_to(mean, log.doses.shape)
    if policy is not None:
        tau = as_policy(policy).of_rows(log)
    return np.hstack([fitted.features(log.context), tau])


def _triangle(columns: Callable[[LoggedData], Array], log: LoggedData) -> Triangle:
    return Triangle.of(columns(log))
