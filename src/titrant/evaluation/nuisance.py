"""What has to be known before a value: the propensity, its floor, and the outcome model.

`Nuisances.of` estimates them once for a log; `Nuisances.rows` then shows any policy on any block
of that log to an estimator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import DataError, InvalidArgument, UntrustedEstimate
from titrant.estimators import Discretized, Rows
from titrant.evaluation.masses import (
    FoldedRows,
    check_known_masses,
    fitted_density,
    fitted_probabilities,
    learns_masses,
    with_masses,
)
from titrant.evaluation.moves import DoseLaw, with_move
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.moments import Moments
from titrant.policies import StatusQuo, doses
from titrant.policies.base import is_exactly
from titrant.policies.moves import Move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.masses import PointMasses
    from titrant.data.source import Partition, Source
    from titrant.estimators import Estimator
    from titrant.evaluation.survey import Sample, Sums, Survey
    from titrant.outcome import CrossFit, FoldForests
    from titrant.outcome.base import Curves
    from titrant.outcome.crossfit import Folds
    from titrant.policies import Policy
    from titrant.propensity import CrossMasses, CrossPropensity, PropensityModel, Truncated
    from titrant.propensity.gaussian import LinearSums
    from titrant.propensity.masses import ScalarLaws
    from titrant.propensity.observed import SeenModel


FEWEST_TO_FOLLOW = 50
"""Rows from which on default models follow contexts that act nonlinearly."""
MOST_TO_FIT = 10_000
"""Rows that default models are fitted on; of more, so many are drawn. A hundred features are known
from them to a hundredth of the noise variance, and their error falls out of doubly robust estimates
to first order; all rows would take most of the time of a call."""
DEFAULT_FLOOR = 0.01
"""The default floor under q, in units of 1/sd(T): a hundredth of a flat density one sd wide."""
OPERATIONS_PER_MINUTE = 3.6e12
"""Of linear algebra on one core, as measured from 100 to 600 contexts on 5,000 rows."""
MOST_MINUTES = 10.0
"""A log whose default models would take longer is refused: few would wait, and none expects it."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A block of a log with what does not depend on the policy: q and r̂(t, x), each (n,)."""

    log: LoggedData
    q: Array | None
    factor: Array | None
    """a = Δ/p̂ (n,), where outcomes are missing."""
    r_logged: Array | None
    fold: Folds | None
    """Which models have not seen each row (n,)."""
    seen: Array
    """The contexts as the outcome model sees them: those of the log, or extended by a forest."""
    outcome: Curves | None
    """t ↦ r̂(t, x), by which r̂ at the doses of any policy is found."""
    law: ScalarLaws | None
    """The law of the dose in each row, where it is modeled."""
    of_all: Callable[[Array], Array] | None = None
    """By how much f(t | x) of all rows is larger than that of rows with an outcome, at doses (n,);
    where outcomes are missing and the law was fitted to the latter."""
    numbers: NDArray[np.int64] | None = None
    """The numbers of the rows in the whole log (n,), if they are not consecutive."""


@dataclass(frozen=True, slots=True)
class Nuisances:
    """Everything estimated from a log before a policy is looked at."""

    n: int
    center: float
    """The mean outcome."""
    spread: Array
    """sd(T) of each dose (d,)."""
    floor: float
    propensity: PropensityModel | CrossPropensity | None
    """The fitted model, or None when the log's own column is used."""
    outcome: CrossFit | None
    forests: FoldForests | None = None
    """What extends the contexts that default models see; one forest a fold serves both."""
    fitted_on: int | None = None
    """Rows that default models were fitted on."""
    masses: PointMasses | None = None
    """Doses that many rows have exactly: there the dose has a probability, not a density."""
    probabilities: CrossMasses | None = None
    """The model of these probabilities, where they are not known or the propensity's own."""
    mean_weight: float | None = None
    """Of the rows, None if they have no weights."""
    keys: NDArray[np.int64] | None = None
    """Of all groups, in increasing order; None if rows have none."""
    seen: Seen | None = None
    """The chance that an outcome is seen, where some are missing."""
    ends: tuple[float, float] = (-np.inf, np.inf)
    """The least and the greatest logged dose, of one."""
    hidden: tuple[str, ...] = ()
    """Contexts that policies see and models do not."""

    @classmethod
    def of(
        cls,
        log: Source,
        estimator: Estimator,
        propensity: PropensityModel | None,
        survey: Survey | None = None,
        masses: PointMasses | None = None,
    ) -> Nuisances:
        """Estimate from ``log`` what ``estimator`` needs; its survey, if it has been made.

        Without ``masses`` the dose is taken to have a density everywhere.
        """
        refuse_crossed(propensity)
        known = survey_of(log, Engine(pin=False)) if survey is None else survey
        check_work(
            log,
            outcome=takes_default_outcome(estimator),
            propensity=takes_default_propensity(log, estimator, propensity),
        )
        check_enough(len(known.sample.seen.log), estimator)
        if len(known.sample.seen.log) < FEWEST_TO_FOLLOW:  # too few to learn probabilities from
            masses = None
        try:
            models = fitted_models(log, estimator, propensity, known, masses)
        except DataError as error:
            raise known.explained(error) from error
        made = cls(
            n=known.n,
            center=known.center,
            spread=known.spread,
            floor=floor_of(estimator, known.spread),
            propensity=models.propensity,
            outcome=models.outcome,
            forests=models.forests,
            fitted_on=models.fitted_on,
            masses=masses,
            probabilities=models.probabilities,
            mean_weight=known.mean_weight,
            keys=known.keys,
            seen=seen_model(known, estimator, known=is_known(models.propensity)),
            ends=(float(known.dose_ends[0][0]), float(known.dose_ends[1][0])),
        )
        if masses is not None and estimator.uses_propensity and made.known:
            some = known.sample.thinned(MOST_TO_FIT)
            q = made.prepare(some.log, some.numbers_if_some).q
            check_known_masses(q, some.log.treatment, masses, made.unit)
        return made

    def prepare(
        self, log: LoggedData, numbers: NDArray[np.int64] | None = None, *, by: int | None = None
    ) -> Prepared:
        """Return a block with its propensities, floored, and model predictions.

        ``numbers`` (n,) are the rows' numbers in the whole log, if they are not consecutive. All
        rows are judged ``by`` the models that have not seen that fold, if it is given; else each
        row by those that have not seen its own.
        """
        whole, log = log, self._visible(log)
        fold = self._fold(log, numbers)
        if fold is not None and by is not None:
            fold = np.full_like(fold, by)
        extended = self._extended(log, fold)
        seen = log.context if extended is None or not self._follows else extended
        law = self._law(log, fold, extended)
        outcome = self._outcome(seen, fold)
        q = self._floored(self._column(log) if law is None else self._checked(law, log.doses))
        factor = None if self.seen is None else self.seen.factor(log, numbers, self.keys, by)
        return Prepared(
            log=whole,
            q=q if q is None or factor is None else over(q, factor),
            factor=factor,
            r_logged=None if outcome is None else outcome(log.doses),
            fold=fold,
            seen=seen,
            outcome=outcome,
            law=law,
            of_all=None if self.seen is None else self.seen.of_all(log, numbers, self.keys, by),
            numbers=numbers,
        )

    def predicted(self, prepared: Prepared) -> Prepared:
        """Return a block, prepared by nuisances with other outcome models, with these ones."""
        outcome = self._outcome(prepared.seen, prepared.fold)
        r_logged = None if outcome is None else outcome(prepared.log.doses)
        return replace(prepared, r_logged=r_logged, outcome=outcome)

    def law(self, log: LoggedData, numbers: NDArray[np.int64] | None = None) -> ScalarLaws:
        """Return the law of the dose in each row of a block, by models that have not seen it."""
        log = self._visible(log)
        fold = self._fold(log, numbers)
        law = self._law(log, fold, self._extended(log, fold))
        if law is None:
            raise InvalidArgument("The law of the doses is not modeled: the log has propensities.")
        return law

    def rows(self, prepared: Prepared, policy: Policy) -> Rows:
        """Return the block as an estimator sees it under ``policy``."""
        log, law = prepared.log, prepared.law
        tau = self._doses(log, policy)
        whole = Rows(
            tau=tau,
            t=log.doses,
            y=log.outcome,
            x=log.context,
            center=self.center,
            q=prepared.q,
            lower=log.lower if log.bounded else None,
            upper=log.upper if log.bounded else None,
            r_tau=self._at_policy(prepared, policy, tau),
            r_logged=prepared.r_logged,
            probability=None if law is None or log.dimension > 1 else law.between,
            density=None if law is None else law.density,
            floor=self.floor,
            omega=None if self.mean_weight is None else counted(log) / self.mean_weight,
            group=None if self.keys is None else log.groups,
            seen=prepared.factor,
            first_row=log.first_row,
            numbers=prepared.numbers,
        )
        if isinstance(policy, Move):
            return with_move(whole, policy, prepared, DoseLaw(self.masses, self.unit, *self.ends))
        return whole if self.masses is None else with_masses(whole, self.masses, self.unit)

    def _visible(self, log: LoggedData) -> LoggedData:
        """Return a block as models see it."""
        return log.without(self.hidden) if self.hidden else log

    def _doses(self, log: LoggedData, policy: Policy) -> Array:
        if is_exactly(policy, StatusQuo) or isinstance(policy, Move):
            return log.doses
        tau = doses(policy, log.context, log.dimension, log.names)
        check_within_bounds(tau, log)
        return tau

    def _at_policy(self, prepared: Prepared, policy: Policy, tau: Array) -> Array | None:
        if prepared.outcome is None or isinstance(policy, Move):  # which predicts by itself
            return prepared.r_logged
        return prepared.outcome(tau)

    @property
    def folds(self) -> int:
        """In how many folds models were cross-fitted; 1 if none were."""
        folded = self.outcome if self.forests is None else self.forests
        return 1 if folded is None else folded.folds

    @property
    def crossed(self) -> bool:
        """Whether the propensity is the default one, which has not seen the rows that it judges."""
        from titrant.propensity import CrossPropensity  # noqa: PLC0415

        return isinstance(self.propensity, CrossPropensity)

    @property
    def known(self) -> bool:
        """Whether the law of the doses is known, as a column or a function."""
        return is_known(self.propensity)

    @property
    def unit(self) -> float:
        """What a probability is divided by to have the unit of a density: sd(T)."""
        return float(np.prod(self.spread))

    @property
    def weight_notes(self) -> tuple[str, ...]:
        """Which models learned from weighted rows as if they counted alike, in sentences."""
        if self.mean_weight is None:
            return ()
        from titrant.outcome import OfRegressor  # noqa: PLC0415
        from titrant.outcome.base import takes_weights  # noqa: PLC0415

        given: list[Any] = [] if self.outcome is None else [self.outcome.model]
        given += [] if self.known or self.crossed else [self.propensity]
        bare = [m.regressor if isinstance(m, OfRegressor) else m for m in given]
        return tuple(
            f"`{type(model).__name__}` learned from the rows as if they counted alike: its `fit` "
            "takes no `sample_weight`. The means around it are weighted."
            for model in bare
            if not takes_weights(model.fit)
        )

    @property
    def _follows(self) -> bool:
        """Whether the outcome model is the default one, which sees extended contexts."""
        return self.outcome is not None and self.outcome.extended_

    def _extended(self, log: LoggedData, fold: Folds | None) -> Array | None:
        if self.forests is None or fold is None:
            return None
        return self.forests.extend(fold, contexts(log))

    def _law(
        self, log: LoggedData, fold: Folds | None, extended: Array | None
    ) -> ScalarLaws | None:
        if self.propensity is None:
            return None
        masses = self.masses
        if masses is None:
            return self._smooth_law(log, fold, extended)
        from titrant.propensity.masses import (  # noqa: PLC0415
            KnownMixedLaws,
            MixedLaws,
            interval_probabilities,
        )

        smooth = self._smooth_law(log, fold, extended, masses.low, masses.high)
        if self.known:
            return KnownMixedLaws(masses, smooth, self.unit)
        latent = interval_probabilities(smooth, masses, len(log)) if masses.levels else None
        if self.probabilities is None or fold is None or extended is None:
            assert latent is not None  # noqa: S101  (else probabilities are fitted)
            p = latent
        else:
            p = self.probabilities.probabilities(fold, extended, latent)
        if not masses.levels:
            return MixedLaws(masses, p, smooth, self.unit)
        size = len(masses.values)
        return MixedLaws(masses, p[:, :size], None, self.unit, rare=p[:, size:])

    def _smooth_law(
        self,
        log: LoggedData,
        fold: Folds | None,
        extended: Array | None,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Truncated:
        """Return the law of the dose in each row, or of what is no point mass, within bounds."""
        from titrant.propensity import CrossPropensity, Known, Truncated  # noqa: PLC0415

        model = self.propensity
        assert model is not None  # noqa: S101  (asked by _law)
        bounds: tuple[float | Array, float | Array] = (low, high)
        if isinstance(model, Known):  # what is known holds within the bounds as it is
            bounds = (-np.inf, np.inf)
        elif log.bounded:
            bounds = np.maximum(_scalar(log.lower), low), np.minimum(_scalar(log.upper), high)
        if isinstance(model, CrossPropensity) and fold is not None and extended is not None:
            return Truncated.of(model.on(fold), extended, *bounds)
        return Truncated.of(model, contexts(log), *bounds)

    def _column(self, log: LoggedData) -> Array | None:
        if log.propensity is None or self.masses is None:
            return log.propensity
        from titrant.propensity.masses import read_at_masses  # noqa: PLC0415

        return read_at_masses(log.propensity, log.treatment, self.masses, self.unit)

    def _checked(self, law: ScalarLaws, doses: Array) -> Array:
        """Return the density of the logged doses (n, d), checked, as models may be a user's own."""
        q = law.density(doses)
        check_density(q, len(doses), self.propensity)
        return q

    def _floored(self, q: Array | None) -> Array | None:
        if q is None:
            return None
        floored = np.maximum(q, self.floor)
        if not (floored > 0).all():
            raise DataError(
                f"The propensity is 0 in {int(np.sum(floored <= 0)):,} of {len(q):,} rows. "
                "Give the estimator a `clip` > 0 or check the propensity model."
            )
        return floored

    def _fold(self, log: LoggedData, numbers: NDArray[np.int64] | None) -> Folds | None:
        folded = self.outcome if self.forests is None else self.forests
        if folded is None:
            return None
        return folded.fold(log.first_row, len(log), folding_numbers(log, numbers, self.keys))

    def _outcome(self, seen: Array, fold: Folds | None) -> Curves | None:
        if self.outcome is None or fold is None:
            return None
        # A model of one's own that is not cross-fitted may stand beside cross-fitted forests.
        own = np.zeros_like(fold) if self.outcome.folds == 1 else fold
        return self.outcome.given(own, seen)


def is_known(propensity: PropensityModel | CrossPropensity | None) -> bool:
    """Return whether a law of the doses is known, as a column (None) or a function."""
    from titrant.propensity import Known  # noqa: PLC0415

    return propensity is None or isinstance(propensity, Known)


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
    from titrant.propensity.observed import SeenModel  # noqa: PLC0415

    folds, seed = folds_of(estimator)
    apart = None if known else SeenModel(folds=folds, seed=seed)
    unfitted = Seen(SeenModel(folds=folds, seed=seed), with_dose=known, by_dose=apart)
    return unfitted.fitted(survey.sample.counting.thinned(MOST_TO_FIT), survey.keys)


def over(q: Array, factor: Array) -> Array:
    """Return q/a (n,), infinite where the outcome is missing: such rows have no weight."""
    return np.divide(q, factor, out=np.full_like(q, np.inf), where=factor > 0.0)


@dataclass(frozen=True, slots=True)
class PolicyRows:
    """Makes the rows of any block of a log under several policies."""

    nuisances: Nuisances
    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    size: int
    """Rows of a block."""

    def blocks(self, partition: Partition) -> Iterator[list[Rows]]:
        """Yield the blocks of a partition, the rows of each under every policy."""
        for block in partition.batches(self.size):
            yield self.block(self.nuisances.prepare(block))

    @property
    def folds(self) -> int:
        """In how many folds models were cross-fitted; 1 if none were."""
        return self.nuisances.folds

    def judged_by(self, k: int, sample: Sample) -> Callable[[int], Rows]:
        """Return what gives the rows under policy i, all by the models without fold k."""
        return partial(self.rows, self.nuisances.prepare(sample.log, sample.numbers_if_some, by=k))

    def block(self, prepared: Prepared) -> list[Rows]:
        """Return the rows of one block under every policy."""
        return [self.rows(prepared, i) for i in range(len(self.policies))]

    def rows(self, prepared: Prepared, i: int) -> Rows:
        """Return the rows of one block under policy i; an error names the policy among others."""
        try:
            return self.nuisances.rows(prepared, self.policies[i])
        except DataError as error:
            if len(self.policies) == 1:
                raise
            raise DataError(f"Policy {self.names[i]!r}: {error}") from error


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


FOREST_MINUTES = 2e-7
"""Of a row and a context, on one core: 3.5 s of 5,000 rows with 60 contexts."""


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


def floor_of(estimator: Estimator, spread: Array) -> float:
    """Return the user's floor, or .01/∏sd(T): it scales with the dose as a density does."""
    clip: float | None = getattr(estimator, "clip", None)
    return DEFAULT_FLOOR / float(np.prod(spread)) if clip is None else clip


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
) -> Models:
    """Return what the estimator needs, fitted: models that are given, and default ones otherwise.

    Default models follow contexts that act nonlinearly. They share folds, and one forest a fold
    that extends the contexts by its predictions of outcome and dose; each row is judged by models
    that have not seen its fold. Logs of few rows take plain models: there is nothing to bend.
    Rows count by their weights, in all models that take any; rows without weight are left out.

    Of a dose with point masses the density is that of the other rows, and their probabilities are
    a model of their own; of a dose with levels the density, fitted to all rows, tells about these
    probabilities.
    """
    default_q = takes_default_propensity(log, estimator, propensity)
    default_r = takes_default_outcome(estimator)
    sample, keys = survey.sample.seen.counting, survey.keys
    apart = masses is not None and learns_masses(log, estimator, propensity, masses)
    if (default_q or default_r) and sample.log.weights is not None:
        check_units(sample.log, folds_of(estimator)[0])
    if len(sample.log) < FEWEST_TO_FOLLOW or not (default_q or default_r or apart):
        given = fitted_propensity(log, estimator, propensity, survey)
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
        given = fitted_propensity(log, estimator, propensity, survey)
        return Models(given, outcome, forests, len(rows))
    fold = forests.fold(rows.first_row, len(rows), numbers)
    named = sample.numbers if numbers is None else numbers
    seen = FoldedRows(rows, named, forests, fold, extended, forests.extend(fold, x))
    if default_q:
        density: PropensityModel | CrossPropensity | None = fitted_density(seen, x, masses)
    else:
        density = fitted_propensity(log, estimator, propensity, survey, masses)
    p = fitted_probabilities(seen, density, masses) if apart and masses is not None else None
    return Models(density, outcome, forests, len(rows), p)


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


def check_units(rows: LoggedData, folds: int) -> None:
    """Refuse fewer groups, or rows with any weight, than models can be cross-fitted on."""
    counts = np.arange(len(rows)) if rows.groups is None else rows.groups
    units = len(np.unique(counts if rows.weights is None else counts[rows.weights > 0.0]))
    if units >= folds:
        return
    what = "rows that count" if rows.groups is None else "groups"
    raise UntrustedEstimate(
        f"Models are fitted without each of {folds} folds, which takes as many {what}; there are "
        f"{units:,}. Collect more of them, or give a propensity and an estimator without an "
        "outcome model."
    )


def counted(log: LoggedData) -> Array:
    """Return how much each row counts (n,), 1 without weights."""
    return np.ones(len(log)) if log.weights is None else log.weights


def folds_of(estimator: Estimator) -> tuple[int, int]:
    """Return number and seed of the folds: those of an estimator with an outcome model."""
    settings: Any = estimator
    folds, seed = (settings.folds, settings.seed) if estimator.uses_outcome_model else (5, 0)
    return max(folds, 2), seed


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
    from titrant.propensity import CrossPropensity  # noqa: PLC0415

    if isinstance(propensity, CrossPropensity):
        raise InvalidArgument(
            "The `propensity` cannot be a `CrossPropensity`, whose folds are not those of the "
            "evaluation. Leave `propensity` out for the default, which is cross-fitted, or give "
            "`DensityAverage(members)`."
        )


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


def check_density(q: object, n: int, model: object) -> None:
    """Refuse what a model gives for a density unless it is n finite numbers ≥ 0."""
    owner = f"The density of the propensity `{type(model).__name__}`"
    kind = getattr(q, "dtype", None)
    if not isinstance(q, np.ndarray) or isinstance(q, np.ma.MaskedArray) or kind != np.float64:
        got = type(q).__name__ if kind is None else f"{type(q).__name__} of {kind}"
        raise DataError(f"{owner} must be an array of floats, one a row; got a {got}.")
    if q.shape != (n,):
        raise DataError(f"{owner} must give one number a row, shape ({n},); got shape {q.shape}.")
    bad = int(np.count_nonzero(~(q >= 0.0) | np.isinf(q)))
    if bad:
        raise DataError(
            f"{owner} is negative or not finite in {bad:,} of {n:,} rows. Check the model at these "
            "rows."
        )


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
