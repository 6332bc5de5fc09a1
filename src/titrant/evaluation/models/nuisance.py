"""What must be known before a policy can be valued: the propensity, its floor, the outcome model.

`Nuisances.of` has them estimated once for a log (`fitting.py`); `Nuisances.prepare`
adds q and r̂(t, x) to any block of that log, and `Nuisances.rows` shows it to an estimator under any
policy.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import DataError, InvalidArgument
from titrant.estimators import Rows
from titrant.evaluation.models.fitting import (
    MOST_TO_FIT,
    check_enough,
    check_work,
    contexts,
    counted,
    few_to_follow,
    fits_models,
    fitted_models,
    folding_numbers,
    is_known,
    refuse_crossed,
    seen_model,
    takes_default_outcome,
    takes_default_propensity,
)
from titrant.evaluation.models.kept import memory
from titrant.evaluation.models.masses import check_known_masses, with_masses
from titrant.evaluation.models.moves import DoseLaw, as_seen, with_move
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.execute.engine import pinned
from titrant.policies import StatusQuo
from titrant.policies.base import is_exactly
from titrant.policies.moves import Move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.masses import PointMasses
    from titrant.data.source import Partition, Source
    from titrant.estimators import Estimator
    from titrant.evaluation.models.fitting import Seen
    from titrant.evaluation.survey import Sample, Survey
    from titrant.outcome import CrossFit, FoldForests
    from titrant.outcome.base import Curves
    from titrant.outcome.crossfit import Folds
    from titrant.policies import Policy
    from titrant.propensity import CrossMasses, CrossPropensity, PropensityModel, Truncated
    from titrant.propensity.masses import ScalarLaws


DEFAULT_FLOOR = 0.01
"""The default floor under q, in units of 1/sd(T): a hundredth of a flat density one sd wide."""


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
        *,
        law: PropensityModel | CrossPropensity | None = None,
    ) -> Nuisances:
        """Estimate from ``log`` what ``estimator`` needs; its survey, if it has been made.

        Without ``masses`` the dose is taken to have a density everywhere. ``law`` is a given
        propensity that was fitted to the same rows before.
        """
        refuse_crossed(propensity)
        known = survey_of(log, Engine(pin=False)) if survey is None else survey
        check_work(
            log,
            outcome=takes_default_outcome(estimator),
            propensity=takes_default_propensity(log, estimator, propensity),
        )
        check_enough(len(known.sample.seen.log), estimator)
        if few_to_follow(known.sample.seen):
            masses = None
        try:
            with pinned() if fits_models(log, estimator, propensity) else nullcontext():
                models = fitted_models(log, estimator, propensity, known, masses, law=law)
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

    def rows(self, prepared: Prepared, policy: Policy, r_tau: Array | None = None) -> Rows:
        """Return the block as an estimator sees it under ``policy``; r̂(τ, x), if it is known."""
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
            r_tau=self._at_policy(prepared, policy, tau) if r_tau is None else r_tau,
            r_logged=prepared.r_logged,
            probability=None if law is None or log.dimension > 1 else law.between,
            density=None if law is None else law.density,
            floor=self.floor,
            omega=None if self.mean_weight is None else counted(log) / self.mean_weight,
            group=None if self.keys is None else log.groups,
            seen=None if prepared.factor is None else as_seen(prepared, log.doses),
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
        tau = policy.of_rows(log)
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
        if self.propensity is None:
            return False
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


@dataclass(frozen=True, slots=True)
class PolicyRows:
    """Makes the rows of any block of a log under several policies."""

    nuisances: Nuisances
    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    size: int
    """Rows of a block."""
    evaluation: str = ""
    """By which name predictions are kept between passes over files; "" for not at all."""

    def blocks(self, partition: Partition) -> Iterator[list[Rows]]:
        """Yield the blocks of a partition, the rows of each under every policy."""
        kept = memory().of(self.evaluation) if self._keeps else None
        for k, block in enumerate(partition.batches(self.size)):
            if kept is None:
                yield self.block(self.nuisances.prepare(block))
                continue
            numbers = kept.get((partition.first_row, k), len(block))
            if numbers is None:
                found = self.block(self.nuisances.prepare(block))
                kept.put((partition.first_row, k), _predictions(found))
                yield found
            else:
                yield self._again(block, numbers)

    @property
    def _keeps(self) -> bool:
        """Whether all that models say of a row are a few numbers."""
        n = self.nuisances
        modeled = n.outcome is not None or n.propensity is not None
        plain = n.masses is None and n.seen is None and not n.hidden
        moved = any(isinstance(policy, Move) for policy in self.policies)
        return bool(self.evaluation) and modeled and plain and not moved

    def _again(self, block: LoggedData, numbers: Array) -> list[Rows]:
        """Return the rows of a block of which `_predictions` are known."""
        left = iter(numbers)
        n = self.nuisances
        q = next(left) if block.propensity is not None or n.propensity is not None else None
        r_logged = None if n.outcome is None else next(left)
        law = None if n.propensity is None else LaterLaws(partial(n.law, block))
        prepared = Prepared(block, q, None, r_logged, None, block.context, None, law)
        return [
            n.rows(prepared, policy, None if r_logged is None else next(left))
            for policy in self.policies
        ]

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


def _predictions(block: Sequence[Rows]) -> Array:
    """Return q, r̂ at the logged dose and r̂ at that of each policy, those there are (k, n)."""
    first = block[0]
    parts = [first.q, first.r_logged, *(rows.r_tau for rows in block)]
    return np.stack([part for part in parts if part is not None])


@dataclass(slots=True)
class LaterLaws:
    """The law of the dose in each row of a block, found when it is asked for."""

    find: Callable[[], ScalarLaws]

    def density(self, t: ArrayLike) -> Array:
        """Return f(t | x) (n,)."""
        return self.find().density(t)

    def cdf(self, t: ArrayLike) -> Array:
        """Return F(t | x) (n,)."""
        return self.find().cdf(t)

    def between(self, low: Array, high: Array) -> Array:
        """Return P(low < T ≤ high | x) (n,)."""
        return self.find().between(low, high)


def floor_of(estimator: Estimator, spread: Array) -> float:
    """Return the user's floor, or .01/∏sd(T): it scales with the dose as a density does."""
    clip: float | None = getattr(estimator, "clip", None)
    return DEFAULT_FLOOR / float(np.prod(spread)) if clip is None else clip


def over(q: Array, factor: Array) -> Array:
    """Return q/a (n,), infinite where the outcome is missing: such rows have no weight."""
    return np.divide(q, factor, out=np.full_like(q, np.inf), where=factor > 0.0)


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
