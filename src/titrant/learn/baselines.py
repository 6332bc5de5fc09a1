"""Simple policies to compare a learned one with, each in one line.

>>> from titrant.data import DESIGNS
>>> log = DESIGNS["synthetic"].draw(300, 0)
>>> mean_dose(log)
Constant(dose=0.66...)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack

from titrant import _check
from titrant.data.columns import named_table
from titrant.errors import InvalidArgument
from titrant.estimators import DirectMethod, DoublyRobust
from titrant.estimators.form import is_piecewise
from titrant.evaluation.evaluation import compare
from titrant.evaluation.models.nuisance import Nuisances
from titrant.learn.bins import learn_bins
from titrant.learn.classes import ConstantClass, LinearClass
from titrant.learn.cpo import CPO
from titrant.learn.setting import TAILS, TrainingLog, dose_range, dose_sd, outcome_sd, silent
from titrant.optimize import exact_line
from titrant.policies import Constant, Function, Linear

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.search import Searched
    from titrant.outcome import OutcomeModel
    from titrant.outcome.base import Regressor
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel


_ROUNDING = 1e-9
"""Estimates that differ by less than this share of sd(y) are the same."""


def mean_dose(log: LoggedData) -> Constant:
    """Return the mean logged dose for everyone."""
    return Constant(log.treatment.mean(axis=0))


def best_constant(
    log: LoggedData,
    *,
    estimator: Searched | None = None,
    bandwidth: float | None = None,
    propensity: PropensityModel | None = None,
    maximize: bool | None = None,
    doses: int = 41,
    allow_untrusted: bool = False,
) -> Constant:
    """Return the same dose for everyone with the best estimate that `evaluate` does not refuse.

    Parameters
    ----------
    log : rows of one treatment
    estimator, bandwidth, propensity : those of `evaluate`, with its defaults: doubly robust, each
        dose at a bandwidth of its own
    maximize : whether the outcome is a reward; as the log says unless given
    doses : how many are compared, equally spaced between the .5 and 99.5 % quantiles of the log;
        of those with the same estimate the one that most effective rows speak about is returned
    allow_untrusted : search between those quantiles without asking the trust rules, at one
        ``bandwidth`` (s·n^(−1/5) unless given): the paper's way. For IPW and self-normalized
        estimates without bounds that search is exact, else by restarts

    Raises
    ------
    UntrustedEstimate : when the log can answer for none of the doses
    """
    _one_dose(log, "best_constant")
    _check.count(doses, "doses", "best_constant", at_least=2)
    reward = log.about.direction(maximize, "best_constant")
    chosen = DoublyRobust() if estimator is None else estimator
    if allow_untrusted:
        return _searched_constant(log, chosen, bandwidth, propensity, maximize=reward)
    losses = log.losses(maximize=reward)
    return _compared_constant(losses, doses, chosen, bandwidth, propensity)


def _compared_constant(
    log: LoggedData,
    doses: int,
    estimator: Searched,
    bandwidth: float | None,
    propensity: PropensityModel | None,
) -> Constant:
    """Return the constant of least estimate on a grid, among those that are not refused."""
    low, high = dose_range(log, (-np.inf, np.inf), tails=True)
    grid = np.linspace(low[0], high[0], doses).tolist()
    compared = compare(
        log,
        {f"constant {dose!r}": Constant(dose) for dose in grid},
        estimator=estimator,
        bandwidth=bandwidth,
        propensity=propensity,
    )
    found = [(dose, compared.estimates.get(f"constant {dose!r}")) for dose in grid]
    known = [(dose, estimate) for dose, estimate in found if estimate is not None]
    least = min(estimate.value for _, estimate in known)
    # Sums of many rows differ by rounding where the outcome does not depend on the dose.
    tied = [one for one in known if one[1].value <= least + _ROUNDING * outcome_sd(log)]
    return Constant(max(tied, key=lambda one: one[1].ess)[0])


def _searched_constant(
    log: LoggedData,
    estimator: Searched,
    bandwidth: float | None,
    propensity: PropensityModel | None,
    *,
    maximize: bool,
) -> Constant:
    """Return the constant of least estimate between the tails, at one bandwidth."""
    h = float(dose_sd(log)[0]) * len(log) ** -0.2 if bandwidth is None else bandwidth
    if is_piecewise(estimator) and not log.bounded:
        losses = log.losses(maximize=maximize)
        return Constant(_exact_constant(losses, estimator, h, propensity))
    training = TrainingLog.of(log, propensity=propensity, maximize=maximize)
    procedure = CPO(estimator=estimator, bandwidth=h, spread=2.0)
    found = procedure.learn(training, ConstantClass(), silent).policy
    return Constant(float(found(log.context[:1])[0]))


def direct_argmin(
    log: LoggedData,
    model: OutcomeModel | Regressor | None = None,
    *,
    doses: int = 81,
    maximize: bool | None = None,
) -> Function:
    """Return the dose with the best prediction for each context: the direct method unrestricted.

    ``model`` is fitted on all rows (the stacked library unless given), and looked up at so many
    doses between the logged tails.
    """
    from sklearn.base import clone  # noqa: PLC0415

    from titrant.outcome import Stack, as_outcome_model  # noqa: PLC0415
    from titrant.outcome.base import curve_of  # noqa: PLC0415

    _one_dose(log, "direct_argmin")
    _check.count(doses, "doses", "direct_argmin", at_least=2)
    losses = log.losses(maximize=log.about.direction(maximize, "direct_argmin"))
    low, high = np.quantile(log.treatment, TAILS).tolist()
    grid = np.linspace(low, high, doses)
    fitted = clone(as_outcome_model(Stack() if model is None else model))
    fitted.fit(losses.context, losses.treatment, losses.outcome)

    def best(X: Array) -> Array:
        """Return the dose of each context."""
        return np.asarray(grid[np.argmin(curve_of(fitted, X, grid), axis=1)])

    return Function(best, features=log.names or None)


def direct_linear(
    log: LoggedData,
    model: OutcomeModel | Regressor | None = None,
    *,
    ridge: float = 0.003,
    maximize: bool | None = None,
    seed: int = 0,
) -> Policy:
    """Return the linear policy with the best mean prediction: the direct method within the class.

    ``model`` (the stacked library unless given) is cross-fitted and tabulated over doses. The
    ridge is on (coefficient/s)² of standardized contexts, the loss in units of sd(y).
    """
    procedure = CPO(
        estimator=DirectMethod(outcome=model, seed=seed), ridge=ridge, restarts=8, seed=seed
    )
    reward = log.about.direction(maximize, "direct_linear")
    training = TrainingLog.of(log, maximize=reward)
    return procedure.learn(training, LinearClass(), silent).policy


def discretized_policy(
    log: LoggedData,
    *,
    bins: int = 10,
    quantiles: bool = False,
    propensity: PropensityModel | None = None,
    clip: float | None = None,
    ridge: float = 0.001,
    se_weight: float = 0.0,
    maximize: bool | None = None,
    restarts: int = 4,
    seed: int = 0,
) -> Function:
    """Return the policy that picks one of a few doses, learned as if they were mere actions.

    As POEM does it: a multinomial-logistic policy over ``bins`` of the dose (of equal width, or of
    equal count with ``quantiles``), by the least self-normalized estimate with w = π(bin | x)/
    P(bin | x), plus ``se_weight``·SE and a ridge on its coefficients, all in units of sd(y). The
    policy returned gives the dose of the likeliest bin: its center, or with ``quantiles`` its
    median logged dose. It knows nothing of doses being near each other, which is why it fails.

    ``propensity`` is a model with a cdf, a mixture of linear-Gaussian models unless given;
    ``clip`` floors the density.
    """
    _one_dose(log, "discretized_policy")
    learned = learn_bins(
        log.losses(maximize=log.about.direction(maximize, "discretized_policy")),
        bins=_check.count(bins, "bins", "discretized_policy", at_least=2),
        quantiles=quantiles,
        propensity=propensity,
        clip=clip,
        penalties=(
            _check.nonnegative(ridge, "ridge", "discretized_policy"),
            _check.nonnegative(se_weight, "se_weight", "discretized_policy"),
        ),
        restarts=_check.count(restarts, "restarts", "discretized_policy"),
        seed=_check.count(seed, "seed", "discretized_policy", at_least=0),
    )
    return Function(learned, features=log.names or None)


def median_regression(
    X: ArrayLike,
    best_dose: ArrayLike,
    *,
    intercept: bool = True,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    features: Sequence[str] | None = None,
) -> Linear:
    """Return the linear policy nearest to known best doses: min Σ|best − intercept − coef'x|.

    For simulations, where the best dose (n,) of contexts X (n, p) is known: no policy of the class
    loses less in L1. ``lower`` and ``upper`` are bounds on the coefficients, numbers or (p,), such
    as the paper's. ``features`` name the columns of X, or choose them if X is a table; unless
    given, a table's own names. Solved as a linear program.
    """
    table = named_table(X)
    names = table.names if features is None and table is not None else features
    given = table.read(names) if table is not None and names else X
    x = _check.finite_array(given, "X", "median_regression", ndim=2)
    t = _check.finite_array(best_dose, "best_dose", "median_regression", ndim=1)
    if len(x) != len(t):
        raise _check.invalid("best_dose", "median_regression", f"{len(x)} numbers", t.shape)
    low = np.full(x.shape[1], -np.inf if lower is None else lower, dtype=np.float64)
    high = np.full(x.shape[1], np.inf if upper is None else upper, dtype=np.float64)
    coef, level = least_absolute(x, t, low, high, intercept=intercept)
    return Linear(coef, level, features=names)


def _one_dose(log: LoggedData, owner: str) -> None:
    if log.dimension > 1:
        raise InvalidArgument(f"`{owner}` is for one dose; the log has {log.dimension}.")


def _exact_constant(
    log: LoggedData, estimator: Searched, h: float, propensity: PropensityModel | None
) -> float:
    """Return the dose with the least estimate between the logged tails, by exact search."""
    low, high = np.quantile(log.treatment, TAILS).tolist()
    nuisances = Nuisances.of(log, estimator, propensity)
    rows = nuisances.rows(nuisances.prepare(log), mean_dose(log))
    return float(exact_line(estimator, rows, h, low=low, high=high).params[0])


def least_absolute(
    x: Array, t: Array, lower: Array, upper: Array, *, intercept: bool
) -> tuple[Array, float]:
    """Return b (p,) and c with the least Σ|t − c − b'x|, lower ≤ b ≤ upper; c = 0 if none is asked.

    min Σ(u + v) over b, c, u ≥ 0, v ≥ 0 with Xb + c + u − v = t, solved by HiGHS with columns in
    units of their size.
    """
    n, p = x.shape
    size = np.abs(x).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    level = 1.0 if intercept else 0.0
    columns = np.column_stack([x / size, np.full(n, level)])
    equations = hstack([csr_array(columns), eye_array(n), -eye_array(n)], format="csr")
    bounds = [
        *zip(lower * size, upper * size, strict=True),
        (None, None),
        *[(0.0, None)] * (2 * n),
    ]
    cost = np.concatenate([np.zeros(p + 1), np.ones(2 * n)])
    found = linprog(cost, A_eq=equations, b_eq=t, bounds=bounds, method="highs")
    if found.x is None:
        raise InvalidArgument(f"The linear program of the median regression: {found.message}")
    return np.clip(found.x[:p] / size, lower, upper), level * float(found.x[p])
