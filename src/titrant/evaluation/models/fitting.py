"""Models that are fitted before a policy is valued: of the dose, the outcome, what is missing.

`fitted_models` fits what an estimator needs, those that are given and default ones otherwise;
`seen_model` says which outcomes are seen; `check_work` refuses what would take too long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import DataError, InvalidArgument, UntrustedEstimate
from titrant.estimators import Discretized
from titrant.evaluation.models.masses import (
    FoldedRows,
    fitted_density,
    fitted_probabilities,
    learns_masses,
)
from titrant.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.masses import PointMasses
    from titrant.data.source import Source
    from titrant.estimators import Estimator
    from titrant.evaluation.survey import Sample, Sums, Survey
    from titrant.outcome import CrossFit, FoldForests
    from titrant.outcome.crossfit import Folds
    from titrant.propensity import CrossMasses, CrossPropensity, PropensityModel
    from titrant.propensity.gaussian import LinearSums
    from titrant.propensity.logistic import SeenModel

FEWEST_TO_FOLLOW = 50
"""Rows from which on default models follow contexts that act nonlinearly."""
MOST_TO_FIT = 10_000
"""Rows that default models are fitted on; of more, so many are drawn. A hundred features are known
from them to a hundredth of the noise variance, and their error falls out of doubly robust estimates
to first order; all rows would take most of the time of a call."""


@dataclass(frozen=True, slots=True)
class Models:
    """Fitted models: see `Nuisances`."""

    propensity: PropensityModel | CrossPropensity | None
    outcome: CrossFit | None
    forests: FoldForests | None = None
    fitted_on: int | None = None
    probabilities: CrossMasses | None = None


def fitted_models(
    log: Source,
    estimator: Estimator,
    propensity: PropensityModel | None,
    survey: Survey,
    masses: PointMasses | None = None,
    *,
    law: PropensityModel | CrossPropensity | None = None,
) -> Models:
    """Return what the estimator needs, fitted: models that are given, and default ones otherwise.

    Default models follow contexts that act nonlinearly. They share folds, and one forest a fold
    that extends the contexts by its predictions of outcome and dose; each row is judged by models
    that have not seen its fold. Logs of few rows take plain models: there is nothing to bend.
    Rows count by their weights, in all models that take any; rows without weight are left out.

    Of a dose with point masses the density is that of the other rows, and their probabilities are
    a model of their own; of a dose with levels the density, fitted to all rows, tells about these
    probabilities. ``law`` is the given propensity where it was fitted to the same rows before.
    """
    default_q = takes_default_propensity(log, estimator, propensity)
    default_r = takes_default_outcome(estimator)
    sample, keys = survey.sample.seen.counting, survey.keys

    def own_law(
        beside: PointMasses | None = None,
    ) -> PropensityModel | CrossPropensity | None:
        if law is not None:
            return law
        return fitted_propensity(log, estimator, propensity, survey, beside)

    apart = masses is not None and learns_masses(log, estimator, propensity, masses)
    if (default_q or default_r) and sample.log.weights is not None:
        check_units(sample.log, folds_of(estimator)[0])
    if few_to_follow(sample) or not (default_q or default_r or apart):
        given = own_law()
        numbers = folding_numbers(sample.log, sample.numbers_if_some, keys)
        return Models(given, fitted_outcome(sample.log, estimator, numbers))
    sample = sample.thinned(MOST_TO_FIT)
    if keys is not None:
        sample = sample.once
    rows = sample.log
    check_units(rows, folds_of(estimator)[0])
    numbers = folding_numbers(rows, sample.numbers_if_some, keys)
    from titrant.outcome import CrossFit, FoldForests, Stack, smooth_library  # noqa: PLC0415

    folds, seed = folds_of(estimator)
    x, t, y = contexts(rows), rows.treatment, rows.outcome
    place: dict[str, Any] = {"first_row": rows.first_row, "numbers": numbers}
    forests = FoldForests(folds=folds, seed=seed)
    # Rows of one group are not told apart in folds within folds.
    units = None if keys is None else numbers
    place["sample_weight"] = rows.weights
    extended = forests.fit_extend(x, t, y, units=units, **place)
    outcome: CrossFit | None
    if default_r:
        jumps = () if masses is None or masses.levels else tuple(masses.values.tolist())
        stack = Stack(smooth_library(extra=forests.extra_, jumps=jumps), seed=seed)
        crossfit = CrossFit(stack, folds=folds, seed=seed)
        outcome = crossfit.fit(x, t, y, extended=extended, units=units, **place)
    else:
        whole = survey.sample.seen.counting
        by = folding_numbers(whole.log, whole.numbers_if_some, keys)
        outcome = fitted_outcome(whole.log, estimator, by)
    if not (default_q or apart):
        given = own_law()
        return Models(given, outcome, forests, len(rows))
    fold = forests.fold(rows.first_row, len(rows), numbers)
    named = sample.numbers if numbers is None else numbers
    seen = FoldedRows(rows, named, forests, fold, extended, forests.extend(fold, x))
    if default_q:
        density: PropensityModel | CrossPropensity | None = fitted_density(seen, x, masses)
    else:
        density = own_law(masses)
    p = fitted_probabilities(seen, density, masses) if apart and masses is not None else None
    return Models(density, outcome, forests, len(rows), p)


def few_to_follow(sample: Sample) -> bool:
    """Return whether rows are too few to follow contexts that bend, or to learn probabilities."""
    return len(sample.log) < FEWEST_TO_FOLLOW


# The dose and the outcome.


def fitted_propensity(
    log: Source,
    estimator: Estimator,
    propensity: PropensityModel | None,
    survey: Survey,
    masses: PointMasses | None = None,
) -> PropensityModel | None:
    """Return a fitted copy of the user's model, of the default one, or None for the column.

    On a log that is read part by part, a linear-Gaussian model is fitted by sums over all rows,
    unless values of contexts are held or rows have weights; then, and any other model, on the
    sample of rows. Beside ``masses`` it is fitted to the other rows.
    """
    if not estimator.uses_propensity or (propensity is None and log.has_propensity):
        return None
    model = unfitted_propensity(propensity, log.dimension)
    from titrant.propensity import LinearGaussian, MultivariateGaussian  # noqa: PLC0415

    by_sums = type(model) in (LinearGaussian, MultivariateGaussian)
    whole = survey.sample.log
    all_rows = whole.observed is None and whole.weights is None and masses is None
    if by_sums and all_rows and survey.as_they_are and not survey.sample.whole:
        from titrant.propensity.gaussian import linear_gaussian, multivariate_gaussian  # noqa: PLC0415

        sums = linear_sums(survey.sums, log.dimension)
        scalar = type(model) is LinearGaussian
        return linear_gaussian(sums) if scalar else multivariate_gaussian(sums)
    rows = survey.sample.seen.counting.log
    if masses is not None and not masses.levels:
        rows = rows.rows(masses.index(rows.treatment) < 0)
    from titrant.outcome.base import weighed  # noqa: PLC0415

    return weighed(model.fit, contexts(rows), rows.treatment, weights=rows.weights)


def unfitted_propensity(propensity: PropensityModel | None, dimension: int) -> PropensityModel:
    """Return a copy of the user's model, or of the default one, yet to be fitted."""
    refuse_crossed(propensity)
    from sklearn.base import clone  # noqa: PLC0415

    from titrant.propensity import GaussianMixture, Known, MultivariateGaussian  # noqa: PLC0415

    if propensity is None:
        propensity = GaussianMixture() if dimension == 1 else MultivariateGaussian()
    if isinstance(propensity, type):
        raise InvalidArgument(
            f"The `propensity` must be a model, not its class: write `{propensity.__name__}()`."
        )
    try:
        model: PropensityModel = propensity if isinstance(propensity, Known) else clone(propensity)
    except TypeError:
        raise InvalidArgument(
            "The `propensity` must be a model such as LinearGaussian(), or Known(function); got a "
            f"{type(propensity).__name__}, of which scikit-learn makes no copy to fit. Let a model "
            "of your own inherit `sklearn.base.BaseEstimator`. A column of propensities goes into "
            "the log."
        ) from None
    return model


def refuse_crossed(propensity: object) -> None:
    """Refuse a model that is cross-fitted by itself: its folds would not be those of the rest."""
    if propensity is None:  # then scikit-learn need not be loaded, which takes a second
        return
    from titrant.propensity import CrossPropensity  # noqa: PLC0415

    if isinstance(propensity, CrossPropensity):
        raise InvalidArgument(
            "The `propensity` cannot be a `CrossPropensity`, whose folds are not those of the "
            "evaluation. Leave `propensity` out for the default, which is cross-fitted, or give "
            "`DensityAverage(members)`."
        )


def is_known(propensity: PropensityModel | CrossPropensity | None) -> bool:
    """Return whether a law of the doses is known, as a column (None) or a function."""
    if propensity is None:
        return True
    from titrant.propensity import Known  # noqa: PLC0415

    return isinstance(propensity, Known)


def linear_sums(sums: Sums, d: int) -> LinearSums:
    """Return the sums of d doses and of contexts that least squares needs."""
    from titrant.propensity.gaussian import LinearSums  # noqa: PLC0415

    k = len(sums.low)
    mean, comoment = sums.moments.mean, sums.moments.comoment
    if k == d + 1:  # without contexts, one constant column as in `contexts`
        mean = np.append(mean, 1.0)
        comoment = np.pad(comoment, (0, 1))
        largest = np.ones(1)
    else:
        largest = np.maximum(np.abs(sums.low), np.abs(sums.high))[d + 1 :]
    keep = np.delete(np.arange(len(mean)), d)
    moments = Moments(sums.moments.n, mean[keep], comoment[np.ix_(keep, keep)])
    return LinearSums(moments, d, largest)


def fitted_outcome(
    log: LoggedData, estimator: Estimator, numbers: NDArray[np.int64] | None = None
) -> CrossFit | None:
    """Return the estimator's outcome model, cross-fitted on the log, or None if it has none.

    ``numbers`` (n,) are the rows' numbers in a larger log of which they are a sample.
    """
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
    x, t, y = log.context, log.treatment, log.outcome
    place: dict[str, Any] = {"first_row": log.first_row, "numbers": numbers}
    return crossfit.fit(x, t, y, sample_weight=log.weights, **place)


# What a model is fitted to, and by whose choice.


def fits_models(
    log: Source, estimator: Estimator, propensity: PropensityModel | CrossPropensity | None
) -> bool:
    """Return whether anything has to be fitted before a policy can be valued."""
    known = log.has_propensity if propensity is None else is_known(propensity)
    return estimator.uses_outcome_model or (estimator.uses_propensity and not known)


def takes_default_outcome(estimator: Estimator) -> bool:
    """Return whether the estimator takes the default outcome model."""
    settings: Any = estimator
    return estimator.uses_outcome_model and settings.outcome is None


def takes_default_propensity(
    log: Source, estimator: Estimator, propensity: PropensityModel | None
) -> bool:
    """Return whether the default model of one dose is fitted; that of several takes no time."""
    wanted = estimator.uses_propensity and propensity is None
    return wanted and log.dimension == 1 and not log.has_propensity


def folds_of(estimator: Estimator) -> tuple[int, int]:
    """Return number and seed of the folds: those of an estimator with an outcome model."""
    settings: Any = estimator
    folds, seed = (settings.folds, settings.seed) if estimator.uses_outcome_model else (5, 0)
    return max(folds, 2), seed


def folding_numbers(
    log: LoggedData, numbers: NDArray[np.int64] | None, keys: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Return the numbers (n,) by which rows are in folds: with groups, those of the groups.

    So no group is in two folds, and folds have as many groups, within one. ``keys`` are those of
    all groups, ``numbers`` those of the rows if they are not consecutive.
    """
    if keys is None or log.groups is None:
        return numbers
    return np.searchsorted(keys, log.groups)


def contexts(log: LoggedData) -> Array:
    """Return the context (n, p), or one constant column when there is none."""
    return log.context if log.context.shape[1] else np.ones((len(log), 1))


def counted(log: LoggedData) -> Array:
    """Return how much each row counts (n,), 1 without weights."""
    return np.ones(len(log)) if log.weights is None else log.weights


# Which outcomes are seen.


@dataclass(frozen=True, slots=True)
class Seen:
    """The chance that an outcome is seen, by models that have not seen a row's fold.

    Fitted propensities are learned from rows with an outcome, f(t | x, Δ = 1), and what remains is
    P(Δ = 1 | x). Those that are known, as a column or a function, are f(t | x) of all rows: then
    the chance depends on the dose as well.
    """

    model: SeenModel
    with_dose: bool
    by_dose: SeenModel | None = None
    """P(Δ = 1 | x, t) where the other does not know the dose."""

    def factor(
        self,
        log: LoggedData,
        numbers: NDArray[np.int64] | None,
        keys: NDArray[np.int64] | None,
        by: int | None,
    ) -> Array:
        """Return a = Δ/p̂ (n,)."""
        if log.observed is None:
            return np.ones(len(log))
        fold = self._fold(log, numbers, keys, by)
        return np.asarray(log.observed / self.model.probability(fold, self._contexts(log)))

    def of_all(
        self,
        log: LoggedData,
        numbers: NDArray[np.int64] | None,
        keys: NDArray[np.int64] | None,
        by: int | None,
    ) -> Callable[[Array], Array] | None:
        """Return f(t | x)/f(t | x, Δ = 1) = P(Δ = 1 | x)/P(Δ = 1 | x, t) as a function of t (n,).

        None where the propensities are those of all rows.
        """
        if self.by_dose is None:
            return None
        x, fold, by_dose = contexts(log), self._fold(log, numbers, keys, by), self.by_dose
        chance = self.model.probability(fold, x)
        return lambda t: chance / by_dose.probability(fold, np.column_stack([x, t]))

    def _fold(
        self,
        log: LoggedData,
        numbers: NDArray[np.int64] | None,
        keys: NDArray[np.int64] | None,
        by: int | None,
    ) -> Folds:
        fold = self.model.fold(log.first_row, len(log), folding_numbers(log, numbers, keys))
        return fold if by is None else np.full_like(fold, by)

    def _contexts(self, log: LoggedData) -> Array:
        return np.column_stack([contexts(log), log.doses]) if self.with_dose else contexts(log)

    def fitted(self, sample: Sample, keys: NDArray[np.int64] | None) -> Seen:
        """Return the same, fitted to a sample of rows with and without outcomes."""
        log = sample.log
        numbers = folding_numbers(log, sample.numbers_if_some, keys)
        place: dict[str, Any] = {"first_row": log.first_row, "numbers": numbers}
        observed = np.ones(len(log)) if log.observed is None else log.observed
        place["sample_weight"] = log.weights
        fitted = replace(self, model=self.model.fit(self._contexts(log), observed, **place))
        if self.by_dose is None:
            return fitted
        both = np.column_stack([contexts(log), log.doses])
        return replace(fitted, by_dose=self.by_dose.fit(both, observed, **place))


def seen_model(survey: Survey, estimator: Estimator, *, known: bool) -> Seen | None:
    """Return the model of which outcomes are seen; None if all are.

    ``known`` says that the propensities are known, and hence those of all rows.
    """
    if survey.sample.log.observed is None:
        return None
    if isinstance(estimator, Discretized):
        raise InvalidArgument(
            "`Discretized` does not know missing outcomes. Take `DoublyRobust()`, or drop the rows "
            "without an outcome."
        )
    from titrant.propensity.logistic import SeenModel  # noqa: PLC0415

    folds, seed = folds_of(estimator)
    apart = None if known else SeenModel(folds=folds, seed=seed)
    unfitted = Seen(SeenModel(folds=folds, seed=seed), with_dose=known, by_dose=apart)
    return unfitted.fitted(survey.sample.counting.thinned(MOST_TO_FIT), survey.keys)


# What is refused: too few rows, too many contexts.


LEAST_TO_STACK = 10
"""Rows that the default outcome model learns from at least, two of each of its five folds."""


def check_enough(n: int, estimator: Estimator) -> None:
    """Refuse fewer rows than the default outcome model takes, one of its folds being held out."""
    if not takes_default_outcome(estimator):
        return
    settings: Any = estimator
    folds = settings.folds
    least = max(2 * folds, -(-LEAST_TO_STACK * folds // (folds - 1)))
    if n < least:
        raise DataError(
            f"`{type(estimator).__name__}` needs at least {least} rows with an outcome; the log "
            f"has {n}. Collect more rows: of so few no estimate would be worth its interval."
        )


def check_groups(survey: Survey) -> None:
    """Refuse rows that are all of one group: nothing shows how an estimate would vary."""
    if survey.keys is not None and len(survey.keys) == 1:
        raise DataError(
            f"All {survey.n:,} rows belong to one group: errors are known from how groups differ, "
            "so nothing can be said of them. Give as `groups` (`--groups`) a column with an id for "
            "each patient, customer or site, or none if rows are independent."
        )


def check_units(rows: LoggedData, folds: int) -> None:
    """Refuse fewer groups, or rows with any weight, than models can be cross-fitted on."""
    counts = np.arange(len(rows)) if rows.groups is None else rows.groups
    units = len(np.unique(counts if rows.weights is None else counts[rows.weights > 0.0]))
    if units >= folds:
        return
    what = "rows that count" if rows.groups is None else "groups"
    there = "there is 1" if units == 1 else f"there are {units:,}"
    raise UntrustedEstimate(
        f"Models are fitted without each of {folds} folds, which takes as many {what}; {there}. "
        f"Collect more of them, or give a propensity and an estimator without an "
        "outcome model."
    )


OPERATIONS_PER_MINUTE = 3.6e12
"""Of linear algebra on one core, as measured from 100 to 600 contexts on 5,000 rows."""
MOST_MINUTES = 10.0
"""A log whose default models would take longer is refused: few would wait, and none expects it."""
FOREST_MINUTES = 2e-7
"""Of a row and a context, on one core: 3.5 s of 5,000 rows with 60 contexts."""


def check_work(log: Source, *, outcome: bool, propensity: bool, times: float = 1.0) -> None:
    """Refuse more contexts than the default models of a log can be fitted to in minutes.

    ``outcome`` and ``propensity`` say which of the two are default models; ``times`` how often
    they are fitted.
    """
    n, p, d = min(len(log), log.sample_rows, MOST_TO_FIT), len(log.names), log.dimension

    def minutes(contexts: int) -> float:
        work = outcome * outcome_work(n, contexts, d) + propensity * propensity_work(n, contexts)
        return times * work / OPERATIONS_PER_MINUTE

    if minutes(p) <= MOST_MINUTES:
        return
    most = next((k for k in range(min(n - 1, p) - 1, 0, -1) if minutes(k) <= MOST_MINUTES), 0)
    raise DataError(
        f"The default models would take about {minutes(p):,.0f} minutes for {p:,} contexts and "
        f"{n:,} rows; more than {MOST_MINUTES:.0f} are not begun. Name fewer contexts (up to "
        f"{most:,} for so many rows), or give `propensity` and an outcome model of your own."
    )


def outcome_work(n: int, p: int, d: int) -> float:
    """Return about how many operations the default outcome models take for p contexts, d doses.

    Few contexts: most are spent on the forests. Many: on splines in the dose, crossed with all
    contexts, in four models of 25 + 5 fits, each with the products of all its features on the rows
    and an eigendecomposition.
    """
    features = float(p + 5 * d * (p + 1))
    forests = FOREST_MINUTES * min(n, MOST_TO_FIT) * p * OPERATIONS_PER_MINUTE
    return forests + 4.0 * (16.0 * n * features**2 + 250.0 * features**3)


def propensity_work(n: int, p: int) -> float:
    """Return about how many operations the default propensity takes for p contexts.

    Weighted regressions, some thousand on a few thousand rows, then a few hundred on all; hardly
    any where there are too few rows for a second component. The factors are those of 60 and 150
    contexts on 5,000 rows, 6 and 20 s.
    """
    few, all_rows = (6000.0, 600.0) if n >= 4 * (p + 1) else (15.0, 5.0)
    return few * (min(n, 5_000) * p**2 + 20.0 * p**3) + all_rows * n * p**2
