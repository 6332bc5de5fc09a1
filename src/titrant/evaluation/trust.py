"""Whether a log can be trusted at all: the full report, with the checks that take time.

`evaluate` makes every check that costs one pass over the rows. Calibrating the propensity means
fitting it again on each fold, so that is done here, once for a log, and not for every policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import DataError, InvalidArgument, TitrantError, UntrustedEstimate
from titrant.estimators import DoublyRobust, SelfNormalized
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.model_checks import ranks_of
from titrant.evaluation.models.fitting import contexts
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import survey_of
from titrant.execute import as_engine
from titrant.execute.engine import pinned
from titrant.inference import Diagnostics
from titrant.inference.trust.doubts import ignored
from titrant.inference.trust.rules import overlap, propensity_pit, stabilized_weight, unfitted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from titrant.bandwidth import BandwidthSelector
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.estimators import Estimator
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.evaluation.survey import Sample, Survey
    from titrant.execute import Engine
    from titrant.inference import Check
    from titrant.propensity import Calibration, PropensityModel


CALIBRATION_ROWS = 20_000
"""Rows that a calibration looks at: enough to see a distance of .014, and the limit is .05."""


def check(
    log: Source,
    policy: AnyPolicy | None = None,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    folds: int = 5,
    seed: int = 0,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
) -> Diagnostics:
    """Return the full trust report of a log and, if given, of a policy on it.

    Besides the checks that every estimate carries, the propensity is calibrated on held-out
    rows (``folds``, drawn by ``seed``; about 20,000 rows at most). The other parameters are those
    of `evaluate`. A refusal is part of the report here, not an error. Doubtful columns come first.
    """
    engine = as_engine(executor, log)
    if policy is None:
        survey = survey_of(log, engine)
        columns = doubts_report(survey, ignore_doubts=ignore_doubts)
        try:
            # Nothing but the propensities is of interest, so no outcome model is fitted.
            nuisances = Nuisances.of(log, SelfNormalized(), propensity, survey, survey.masses)
        except DataError as error:
            return columns + unfitted_report(error, columns)
        return columns + calibration_report(nuisances, survey.sample, folds, seed)
    chosen = DoublyRobust() if estimator is None else estimator
    try:
        evaluation = Evaluation.of(
            log, {"policy": policy}, chosen, propensity, executor, ignore_doubts=ignore_doubts
        )
    except DataError as error:
        columns = doubts_report(survey_of(log, engine), ignore_doubts=ignore_doubts)
        return columns + unfitted_report(error, columns)
    found = policy_report(evaluation, bandwidth)
    if not chosen.uses_propensity:
        return found
    rows = evaluation.survey.sample
    return found.updated(calibration_report(evaluation.nuisances, rows, folds, seed))


def doubts_report(survey: Survey, *, ignore_doubts: bool) -> Diagnostics:
    """Return what is doubtful about the columns of a log."""
    doubts = (*survey.outcome_doubts, *survey.context_doubts)
    return Diagnostics.of(ignored(doubts) if ignore_doubts else doubts)


def unfitted_report(error: DataError, columns: Diagnostics) -> Diagnostics:
    """Return the refusal of a log whose doubtful columns make models fail; else it is an error."""
    if not columns.checks:
        raise error
    return Diagnostics((unfitted(str(error.__cause__ or error)),))


def policy_report(
    evaluation: Evaluation, bandwidth: BandwidthSelector | ArrayLike | None
) -> Diagnostics:
    """Return the checks of the one policy of an evaluation, or why it has no estimate at all."""
    try:
        chosen = evaluation.bandwidth(0, bandwidth)
    except UntrustedEstimate as refusal:
        return Diagnostics((overlap(str(refusal)),))
    return evaluation.comparison({0: chosen}, None)["policy"].diagnostics


def calibration_report(nuisances: Nuisances, rows: Sample, folds: int, seed: int) -> Diagnostics:
    """Return the checks of the propensities, modeled or the log's own column."""
    try:
        found = calibrated(nuisances, rows.thinned(CALIBRATION_ROWS), folds, seed)
    except TitrantError as error:
        return Diagnostics((), (f"The propensities could not be calibrated: {error}",))
    return Diagnostics.of(calibration_checks(found))


def calibration_checks(found: Calibration) -> Iterator[Check | str]:
    """Yield the checks of a calibration."""
    yield stabilized_weight(found.mean_weight, found.mean_weight_se)
    yield from shape_checks(found)


def shape_checks(found: Calibration) -> Iterator[Check | str]:
    """Yield the check of a calibration that estimates have as well."""
    if found.ks_distance is None or found.ks_p_value is None:
        yield "The shape of the propensities was not checked: that takes a model with a cdf."
    else:
        yield propensity_pit(found.ks_distance, found.ks_p_value)


@pinned()
def calibrated(nuisances: Nuisances, rows: Sample, folds: int, seed: int) -> Calibration:
    """Return the held-out calibration of the propensities, modeled or the log's own column.

    Models that were cross-fitted are judged as they are, others are fitted again on each fold.
    """
    from titrant.propensity import (  # noqa: PLC0415
        Known,
        calibration,
        calibration_of,
    )

    log, model = rows.log, nuisances.propensity
    x, t = contexts(log), log.treatment
    low, high = limits(log)
    column, masses = log.propensity, nuisances.masses
    if masses is not None:
        q = nuisances.prepare(log, rows.numbers).q
        if q is None:
            raise InvalidArgument("There is neither a model nor a column of propensities.")
        ranks = None if nuisances.known else ranks_of(nuisances.law(log, rows.numbers), t)
        ends = np.maximum(low, masses.low), np.minimum(high, masses.high)
        split: dict[str, Any] = {"folds": folds, "seed": seed, "masses": masses}
        return calibration_of(q, ranks, t, lower=ends[0], upper=ends[1], **split)
    if nuisances.crossed:
        law = nuisances.law(log, rows.numbers)
        q, pit = law.density(log.doses), law.cdf(t)
        return calibration_of(q, pit, t, folds=folds, seed=seed, lower=low, upper=high)
    if isinstance(model, Known):
        try:  # it is not truncated: what is known holds within the bounds as it is
            return calibration(model, x, t, folds=folds, seed=seed)
        except InvalidArgument:  # it was made without a cdf
            column = Known.density(model, x, t)
    elif model is not None:
        return calibration(model, x, t, folds=folds, seed=seed, lower=low, upper=high)
    if column is None:
        raise InvalidArgument("There is neither a model nor a column of propensities.")
    return calibration_of(column, None, t, folds=folds, seed=seed, lower=low, upper=high)


def limits(log: LoggedData) -> tuple[ArrayLike, ArrayLike]:
    """Return the bounds of each dose (n,); none for vector doses, whose laws are not truncated."""
    return (log.lower[:, 0], log.upper[:, 0]) if log.dimension == 1 else (-np.inf, np.inf)
