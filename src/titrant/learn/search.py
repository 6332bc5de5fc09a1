"""What a search over policies needs of a log: propensities, and sums at any parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators import DirectMethod, SelfNormalized
from titrant.estimators.form import has_search_loop
from titrant.evaluation.nuisance import Nuisances
from titrant.kernels import Boundary, Epanechnikov
from titrant.learn.setting import TAILS
from titrant.learn.vector import VectorSearch
from titrant.optimize import AffineSearch, Second

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.estimators import Estimator, SmoothedEstimator
    from titrant.optimize import SearchStatistics
    from titrant.outcome import CrossFit, DoseTable
    from titrant.propensity import PropensityModel

# The propensities that learning starts from.


def propensities(log: LoggedData, propensity: PropensityModel | None) -> Array:
    """Return the propensities of the logged doses (n,), from the column or a fitted model.

    They may be 0, where a model gives a dose no chance: what learns from them has a floor.
    """
    smallest = float(np.finfo(np.float64).tiny)
    nuisances = Nuisances.of(log, SelfNormalized(clip=smallest), propensity)
    q = nuisances.prepare(log).q
    if q is None:
        raise InvalidArgument("The log has no propensities and no model was given.")
    return np.where(q > smallest, q, 0.0)


# The sums that a search over policies τ = φ(x)'β, cut to a range, needs of a log.
#
# One dose and an estimator with a compiled loop go through that; all else through `vector`.


class Ranges(Protocol):
    """The scales of a search: units, bandwidths and range of each dose (d,)."""

    @property
    def unit(self) -> Array:
        """Units of the parameters."""

    @property
    def h(self) -> Array:
        """Bandwidths."""

    @property
    def low(self) -> Array:
        """The smallest doses a policy may give."""

    @property
    def high(self) -> Array:
        """The largest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A log of n rows with d doses, and a class with P features, as a search sees them."""

    log: LoggedData
    q: Array
    """Floored propensities (n,)."""
    phi: Array
    """Features (n, P)."""
    unit: Array
    """Units of the parameters, one a dose (d,)."""
    h: Array
    """Bandwidths (d,)."""
    low: Array
    """The smallest doses a policy may give (d,)."""
    high: Array
    center: float = 0.0
    """The mean outcome, if an estimator of a user's own is to see outcomes as they were logged."""
    floor: float = 0.0
    """The floor already applied to q."""

    @property
    def limits(self) -> tuple[float | Array, float | Array]:
        """The range of doses: numbers for one dose, (d,) for several."""
        if len(self.unit) == 1:
            return float(self.low[0]), float(self.high[0])
        return self.low, self.high

    def params(self, found: Array) -> Array:
        """Return the parameters of the class, (P,) or (P, d), from those of the search (P·d,)."""
        matrix = found.reshape(-1, len(self.unit)) * self.unit
        return matrix[:, 0] if len(self.unit) == 1 else matrix


def statistics_of(
    problem: Problem, estimator: SmoothedEstimator | DirectMethod, second: Second
) -> Callable[[Array], SearchStatistics]:
    """Return the function from parameters (m, P·d) to the sums of the estimator's terms."""
    ends = np.quantile(problem.log.doses, TAILS, axis=0)[:, 0]
    return search_of(problem, estimator, second, _model(problem.log, estimator), ends)


def search_of(
    problem: Problem,
    estimator: SmoothedEstimator | DirectMethod,
    second: Second,
    model: CrossFit | None,
    ends: Array,
) -> AffineSearch | VectorSearch:
    """Return the same by a fitted model, tabulated between the doses ``ends`` (2,)."""
    if problem.log.dimension > 1 or not has_search_loop(estimator):
        return VectorSearch.of(problem, estimator, model)
    direct = isinstance(estimator, DirectMethod)
    log, bounded = problem.log, problem.log.bounded and not direct
    table, logged = (
        (None, np.zeros(len(log))) if model is None else _tabulated(problem, model, ends)
    )
    return AffineSearch(
        phi=problem.phi * problem.unit[0],
        t=log.treatment,
        e=log.outcome - logged,
        q=problem.q,
        kernel=Epanechnikov() if isinstance(estimator, DirectMethod) else estimator.kernel,
        h=float(problem.h[0]),
        boundary=Boundary.NONE if isinstance(estimator, DirectMethod) else estimator.boundary,
        lower=log.lower[:, 0].copy() if bounded else None,
        upper=log.upper[:, 0].copy() if bounded else None,
        low=float(problem.low[0]),
        high=float(problem.high[0]),
        table=table,
        second=second,
        direct=direct,
    )


def _model(log: LoggedData, estimator: Estimator) -> CrossFit | None:
    from titrant.evaluation.nuisance import fitted_outcome  # noqa: PLC0415

    return fitted_outcome(log, estimator)


def _tabulated(problem: Problem, model: CrossFit, ends: Array) -> tuple[DoseTable, Array]:
    """Return r̂(·, x) of each row over the logged range of doses, and r̂(t, x) (n,)."""
    from titrant.outcome import DoseTable  # noqa: PLC0415

    log = problem.log
    low, high = ends.tolist()
    fold = model.fold(log.first_row, len(log))
    table = DoseTable.of(model, fold, log.context, bounds=(low, high))
    return table, model.predict(fold, log.context, log.treatment)
