"""What learning starts from and ends with: rows with what is known of them, units, a policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant.data.logged import drawn_by_weight
from titrant.errors import DataError, InvalidArgument
from titrant.estimators import SelfNormalized
from titrant.evaluation.models.fitting import contexts, linear_sums
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import quantiles, survey_of
from titrant.execute import as_engine
from titrant.learn.halves import halves_of
from titrant.policies import Clipped, Constant
from titrant.policies.base import is_exactly
from titrant.scaling import ends_without_few

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Executor

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.evaluation.survey import Survey
    from titrant.execute import Engine
    from titrant.learn.choice import ClassChoice
    from titrant.learn.classes import DoseLimits, FittedClass, PolicyClass
    from titrant.learn.limits import LimitsFound
    from titrant.optimize import Solution
    from titrant.policies import Policy
    from titrant.policies.advice import People
    from titrant.propensity import PropensityModel
    from titrant.propensity.gaussian import Affine

    Progress = Callable[[str, int, int], None]
    """Called with the stage, steps done and steps in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLog:
    """A log to learn from, in memory or not: what is known of it, and where it is worked on."""

    log: Source
    survey: Survey
    engine: Engine
    propensity: PropensityModel | None = None
    """The model of f(t | x), unless the log's own column or the default one is used."""
    maximize: bool = False
    """Whether the outcome is a reward."""
    checkpoint: str | os.PathLike[str] | None = None
    """The folder that keeps the state of a search."""
    drawn_from: TrainingLog | None = None
    """The log from whose rows these were drawn by weight."""

    @classmethod
    def of(
        cls,
        log: Source,
        *,
        propensity: PropensityModel | None = None,
        maximize: bool | None = None,
        executor: Executor | Engine | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Return a log with its survey; ``maximize`` is as the log says unless given."""
        engine = as_engine(executor, log)
        return cls(
            log=log,
            survey=survey_of(log, engine),
            engine=engine,
            propensity=propensity,
            maximize=log.about.direction(maximize, "TrainingLog"),
            checkpoint=checkpoint,
        )

    def halves(self, seed: int) -> tuple[Self, Self]:
        """Return two halves of the rows, or groups, drawn by a hash of their numbers."""
        first, second = halves_of(self.log, seed, self.survey.keys, self.engine)
        return self.part(first), self.part(second)

    def even(self) -> Self:
        """Return rows that count once each, drawn as often as their weights say.

        Of a log that is not in memory they are drawn from the sample of its rows.
        """
        if self.survey.sample.log.observed is not None:
            raise InvalidArgument(
                "A policy is learned from rows whose outcome is known; in "
                f"{1 - (self.survey.seen_share or 0):.0%} of the rows it is missing. Drop them "
                "(`missing_outcome='drop'`) if those who are left are like the others."
            )
        if not self.log.weighted:
            return self
        drawn = self.part(drawn_by_weight(self.survey.sample.log)[0])
        return replace(drawn, drawn_from=self)

    @property
    def each_once(self) -> bool:
        """Whether the rows in memory are all rows of the log, and count alike."""
        whole = self.drawn_from or self
        return self.survey.sample.whole and not whole.log.weighted

    def part(self, log: Source) -> Self:
        """Return some of the rows with what is known of them."""
        return replace(self, log=log, survey=survey_of(log, self.engine))

    def held(self) -> tuple[Self, list[str]]:
        """Return the rows with a few absurd outcomes held, and what there is to say of it.

        Like a slip in a context they count as the median: a residual of a million sds would decide
        scales, models and scores alone. An estimate of a value takes outcomes as they are.
        """
        log = self.survey.sample.log
        low, high = ends_without_few(log.outcome)
        far = (log.outcome < low) | (log.outcome > high)
        if not far.any():
            return self, []
        middle = float(np.median(log.outcome))
        held = log.with_outcome(np.where(far, middle, log.outcome), maximize=log.about.maximize)
        survey = replace(self.survey, sample=replace(self.survey.sample, log=held))
        note = (
            f"The outcome of {np.count_nonzero(far):,} of {len(log):,} rows lies far beyond all "
            f"others, such as {log.outcome[far][0]:.6g}: the search counts it as the median, "
            f"{middle:.6g}, and an estimate of the value as it is."
        )
        return replace(self, log=held if self.log is log else self.log, survey=survey), [note]

    def losses(self) -> LoggedData:
        """Return the rows that are in memory, all or a sample, rewards as losses."""
        return self.survey.sample.log.losses(maximize=self.maximize)

    def propensities(self) -> Array:
        """Return the propensities of the rows in memory (n,), from the column or a fitted model.

        They may be 0, where a model gives a dose no chance: what learns from them has a floor.
        """
        rows, smallest = self.survey.sample.log, float(np.finfo(np.float64).tiny)
        q = Nuisances.of(rows, SelfNormalized(clip=smallest), self.propensity).prepare(rows).q
        if q is None:
            raise InvalidArgument("The log has no propensities and no model was given.")
        return np.where(q > smallest, q, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A learned policy and how it came about."""

    policy: Policy
    solution: Solution
    """Of the search on all rows that was given the most say."""
    report: Mapping[str, Any] = field(default_factory=dict)
    """Every choice and what it rests on, as plain values."""
    choice: ClassChoice | None = None
    """How the class compares with others on rows held out, where that was measured."""
    people: People | None = None
    """Groups of like people of the log, where their curves are known."""
    limits: LimitsFound | None = None
    """What the limits that were given do to the policy, and what each costs."""

    def noted(self, notes: Sequence[str]) -> Self:
        """Return the same with more sentences on what was chosen for the user."""
        if not notes:
            return self
        said = [*self.report.get("notes", ()), *notes]
        return replace(self, report={**self.report, "notes": said})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "policy": self.policy.to_dict(),
            "search": self.solution.to_dict(),
            "report": dict(self.report),
        }


class Procedure(ABC):
    """A way from a log to a policy."""

    @abstractmethod
    def learn(
        self, training: TrainingLog, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the policy of the class with the best estimated value."""

    @property
    def usual_class(self) -> PolicyClass:
        """The class that is learned unless one is asked for."""
        from titrant.learn.classes import LinearClass  # noqa: PLC0415

        return LinearClass()


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


# The units of a learning problem: doses and outcomes on scales that mean the same everywhere.
#
# Bandwidths, floors, ridges and the parameters of a search are in units of s, the sd of the dose
# left after regressing it on the context: the room that logging left for a policy to move in.

TAILS = (0.005, 0.995)
"""The quantiles of the logged dose between which a learned policy stays."""
NEGLIGIBLE = 1e-6
"""Doses whose sd given the context is below this share of their range are a function of it."""


@dataclass(frozen=True, slots=True)
class Units:
    """Scales of dose and outcome, and the doses a learned policy may give."""

    dose_sd: float
    """s, the sd of the dose that the context does not explain."""
    outcome_sd: float
    low: float
    """The smallest dose a policy may give."""
    high: float

    @classmethod
    def of(
        cls, log: LoggedData, limits: DoseLimits = (-np.inf, np.inf), *, tails: bool = True
    ) -> Self:
        """Return the units of a log with one treatment, for a class with these limits."""
        low, high = dose_range(log, limits, tails=tails)
        s = float(dose_sd(log)[0])
        return cls(s, outcome_sd(log), float(low[0]), float(high[0]))

    def policy(self, fitted: FittedClass, params: Array) -> Policy:
        """Return the policy with parameters β/s (P,), cut to its range."""
        return cut(fitted.policy(params * self.dose_sd), self.low, self.high)


def dose_range(log: LoggedData, limits: DoseLimits, *, tails: bool) -> tuple[Array, Array]:
    """Return the smallest and largest doses (d,) that a learned policy may give.

    They are within the limits of the class, possible in every row, and with ``tails`` between the
    .5 and 99.5 % quantiles of the logged doses.
    """
    ends = np.quantile(log.doses, TAILS, axis=0) if tails else None
    return range_between((log.lower.max(axis=0), log.upper.min(axis=0)), limits, ends)


def range_between(
    possible: tuple[Array, Array], limits: DoseLimits, ends: Array | None
) -> tuple[Array, Array]:
    """Return the same from the doses possible in every row (d,) and quantiles of them (2, d)."""
    low, high = np.maximum(possible[0], limits[0]), np.minimum(possible[1], limits[1])
    if ends is not None:
        if not np.all(ends[0] < ends[1]):
            raise DataError(
                f"The logged doses lie at {_listed(ends[0])} from the {TAILS[0]:.1%} to the "
                f"{TAILS[1]:.1%} quantile, so there is no range of doses to learn in. "
                "Collect varied doses."
            )
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    if not np.all(low < high):
        raise DataError(
            f"No dose is left to learn: a policy could give at least {_listed(low)} and at most "
            f"{_listed(high)} by the logged doses, the bounds of all rows and the limits of the "
            "policy. Widen them; bounds that differ between rows must overlap."
        )
    return low, high


def dose_scales(training: TrainingLog) -> tuple[Array, Array]:
    """Return s (d,), the sd of doses given contexts, and quantiles of the doses (2, d).

    Of more rows than are in memory by sums over all of them and exact quantiles.
    """
    from titrant.scaling import MIDDLE, without_strays  # noqa: PLC0415

    survey, d = training.survey, training.log.dimension
    if survey.sample.whole:
        rows = survey.sample.log
        return dose_sd(rows), np.quantile(rows.doses, TAILS, axis=0)
    _check_rows(survey.n, len(training.log.names))
    mean, sd = _regression(survey, d)
    levels = sorted({*TAILS, *MIDDLE})
    column = DosesAndResiduals(mean)
    found = quantiles(training.log, survey.sample, training.engine, column, levels)
    at = dict(zip(levels, found, strict=True))
    s = without_strays(sd, np.stack([at[level][d:] for level in MIDDLE]))
    _check_varied(s, survey.dose_ends[1] - survey.dose_ends[0])
    return s, np.stack([at[level][:d] for level in TAILS])


@dataclass(frozen=True, slots=True)
class DosesAndResiduals:
    """The doses (n, d) and beside them what least squares leaves of them."""

    mean: Affine

    def __call__(self, log: LoggedData) -> Array:
        """Return the columns (n, 2d)."""
        fit = self.mean.predict(contexts(log)).reshape(log.doses.shape)
        return np.hstack([log.doses, log.doses - fit])


def _regression(survey: Survey, d: int) -> tuple[Affine, Array]:
    """Return the least squares of d doses on the contexts, and the sd (d,) of what is left.

    By sums over all rows; by the rows drawn, where values of contexts are held.
    """
    if survey.as_they_are:
        mean, squares = linear_sums(survey.sums, d).regression()
        return mean, np.sqrt(np.maximum(np.diagonal(squares), 0.0) / survey.n)
    from titrant.propensity.gaussian import Affine  # noqa: PLC0415

    log = survey.sample.log
    fit = Affine.least_squares(log.context, log.doses)
    return fit, (log.doses - fit.predict(log.context)).std(axis=0)


def dose_sd(log: LoggedData) -> Array:
    """Return s (d,), the sd of each dose after least squares on the context."""
    from titrant.scaling import residual_sd  # noqa: PLC0415

    _check_rows(*log.context.shape)
    s = residual_sd(log.context, log.doses)
    _check_varied(s, np.ptp(log.doses, axis=0))
    return s


def _check_rows(n: int, p: int) -> None:
    """Refuse n rows with p contexts that leave nothing to learn from."""
    if n <= p + 1:
        raise DataError(
            f"Of {n:,} rows with {p:,} contexts nothing can be learned: there must be more rows "
            "than contexts, in each half if the value is to be honest. Name fewer contexts."
        )


def _check_varied(s: Array, extent: Array) -> None:
    """Refuse doses of which the context leaves an sd of s (d,), next to nothing of their range."""
    if np.any(s <= NEGLIGIBLE * extent):
        raise DataError(
            "The logged doses are a linear function of the context, so no other dose was ever "
            "tried for a context. Collect doses that vary for like contexts."
        )


def outcome_sd(log: LoggedData) -> float:
    """Return sd(y), or 1 if all outcomes are the same."""
    return float(log.outcome.std()) or 1.0


def cut(policy: Policy, low: float | Array, high: float | Array) -> Policy:
    """Return the policy cut to [low, high], a constant one as the constant it then is."""
    if is_exactly(policy, Constant):
        return Constant(np.clip(policy.dose, low, high))
    if np.all(np.isinf(low)) and np.all(np.isinf(high)):
        return policy
    return Clipped(policy, low, high)


def one_or_more(doses: Array) -> float | Array:
    """Return a number for one dose, and (d,) for several."""
    return float(doses[0]) if len(doses) == 1 else doses


def _listed(doses: Array) -> str:
    return ", ".join(f"{dose:.6g}" for dose in doses)
