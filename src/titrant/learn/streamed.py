"""Learning from a log that does not fit in memory.

The search of `CPO` is a function of sums over rows, so it runs as it is: one pass over the log
for each step of all restarts together. Its scales come from sums too, and the range of doses from
exact quantiles, so that the policy is the one that would be found in memory. Outcome models, and
any other procedure, learn from the sample of rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from titrant.evaluation.nuisance import (
    Nuisances,
    fitted_outcome,
    fitted_propensity,
    floor_of,
    linear_sums,
)
from titrant.evaluation.survey import quantiles
from titrant.execute import BATCH, OverBatches, add_up
from titrant.execute.engine import pinned
from titrant.execute.installed import installed
from titrant.learn.classes import ClippedClass, FittedLinear, LinearClass
from titrant.learn.cpo import CPO
from titrant.learn.search import Problem, propensities, search_of
from titrant.learn.setting import TAILS, Learned, check_rows, check_varied, cut, range_between
from titrant.optimize import LBFGS, Checkpoint
from titrant.policies import as_policy, doses

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.evaluation.survey import StreamSurvey
    from titrant.execute import Engine
    from titrant.learn.classes import FittedClass, PolicyClass
    from titrant.learn.cpo import Searched
    from titrant.learn.setting import Procedure, Progress
    from titrant.optimize import SearchStatistics, Second
    from titrant.outcome import CrossFit
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel
    from titrant.propensity.gaussian import Affine

TABULATED = 4096
"""Rows whose outcome curves are tabulated at a time: tables that stay in cache take half the time
of those of a whole batch."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A log that is read part by part, what is known of it, and where it is worked on."""

    log: Source
    survey: StreamSurvey
    engine: Engine
    sign: float
    """−1 if the outcome is a reward."""
    propensity: PropensityModel | None
    checkpoint: str | os.PathLike[str] | None


def learn_streamed(
    procedure: Procedure, stream: Stream, policy_class: PolicyClass, progress: Progress
) -> Learned:
    """Return what a procedure learns: `CPO` from all rows, any other from the sample of rows."""
    if isinstance(procedure, CPO):
        return Streamed(procedure, stream, policy_class).learn(progress)
    rows = stream.survey.sample.log
    losses = rows.with_outcome(stream.sign * rows.outcome)
    learned = procedure.learn(losses, propensities(rows, stream.propensity), policy_class, progress)
    report = {"learned_on": len(rows), **learned.report, "rows": stream.survey.n}
    return replace(learned, report=report)


@dataclass(frozen=True, slots=True)
class Streamed:
    """The search of `CPO` over a log that is read part by part."""

    procedure: CPO
    stream: Stream
    policy_class: PolicyClass

    def learn(self, progress: Progress) -> Learned:
        """Return the policy with the least penalized estimate found."""
        cpo, stream, survey = self.procedure, self.stream, self.stream.survey
        fitted = fitted_on(self.policy_class, survey)
        sums = self._sums(fitted)
        center = cpo.center(self._sign * survey.center)
        unit_of_outcome = survey.outcome_sd or 1.0
        progress("search", 0, 1)
        over = OverStream(sums, stream)
        objective = cpo.objective(over, fitted, sums, unit_of_outcome)
        size = len(fitted.penalized)
        within = cpo.within(sums, size)
        starts = within.project(self._starts(fitted, sums.unit))
        search = LBFGS(constraint=within, checkpoint=self._checkpoint(sums, starts))
        solution = search.minimize(objective, starts)
        progress("search", 1, 1)
        policy = cut(fitted.policy(sums.params(solution.params)), *sums.limits)
        report = cpo.report(sums, center, unit_of_outcome) | self._sampled()
        return Learned(policy=policy, solution=solution, report=report)

    def _checkpoint(self, sums: SearchSums, starts: Array) -> Checkpoint | None:
        """Return where the state of this search is kept, if it is."""
        folder = self.stream.checkpoint
        if folder is None:
            return None
        return Checkpoint(os.fspath(folder), _about(self.procedure, sums, self.stream, starts))

    def _sums(self, fitted: FittedClass) -> SearchSums:
        """Return what is summed over the rows: all scales are known before the search begins."""
        cpo, stream = self.procedure, self.stream
        survey, log = stream.survey, stream.log
        sd, ends = self._scales()
        low, high = range_between(
            survey.possible, self.policy_class.limits, ends if cpo.clipped else None
        )
        sample = survey.sample
        model = fitted_outcome(
            sample.log.with_outcome(self._loss(sample.log)),
            cpo.estimator,
            None if sample.whole else sample.numbers,
        )
        return SearchSums(
            fitted=fitted,
            estimator=cpo.estimator,
            second=cpo.second,
            unit=cpo.unit(sd),
            h=cpo.bandwidths(sd, survey.n),
            low=low,
            high=high,
            ends=ends[:, 0],
            model=model,
            sign=self._sign,
            center=cpo.center(self._sign * survey.center),
            shown_center=cpo.shown_center(self._sign * survey.center),
            nuisances=Nuisances(
                n=survey.n,
                center=survey.center,
                spread=survey.spread,
                floor=floor_of(cpo.estimator, survey.spread),
                propensity=fitted_propensity(log, cpo.estimator, stream.propensity, survey),
                outcome=None,
            ),
        )

    def _loss(self, log: LoggedData) -> Array:
        center = self.procedure.center(self._sign * self.stream.survey.center)
        return self._sign * log.outcome - center

    @property
    def _sign(self) -> float:
        """−1 if outcomes are shown to the estimator as losses and were logged as rewards."""
        return self.stream.sign * self.procedure.shown_sign

    def _scales(self) -> tuple[Array, Array]:
        """Return s (d,), the sd of doses given contexts, and quantiles of the doses (2, d)."""
        from titrant.outcome.standard import MIDDLE, without_strays  # noqa: PLC0415

        stream, survey = self.stream, self.stream.survey
        check_rows(survey.n, len(survey.names))
        mean, sd = regression(survey)
        column = DosesAndResiduals(mean)
        found = quantiles(
            stream.log, survey.sample, stream.engine, column, sorted({*TAILS, *MIDDLE})
        )
        at = dict(zip(sorted({*TAILS, *MIDDLE}), found, strict=True))
        d = survey.dimension
        s = without_strays(sd, np.stack([at[level][d:] for level in MIDDLE]))
        check_varied(s, survey.dose_ends[1] - survey.dose_ends[0])
        return s, np.stack([at[level][:d] for level in TAILS])

    def _starts(self, fitted: FittedClass, unit: Array) -> Array:
        """Return the starts (restarts, P·d) around the policy of the class nearest to the first."""
        stream = self.stream
        start = self.procedure.start
        task = partial(feature_sums, fitted, start, stream.survey.mean_dose)
        sums: FeatureSums = stream.engine.add_up(OverBatches(task, BATCH), stream.log.partitions)
        first = np.asarray(np.linalg.lstsq(sums.squares, sums.products, rcond=None)[0], float)
        return self.procedure.around(first, np.diagonal(sums.squares) / sums.n, unit)

    def _sampled(self) -> dict[str, object]:
        """Return on how many rows models were fitted, where that was not on all."""
        sample = self.stream.survey.sample
        modeled = self.procedure.estimator.uses_outcome_model or not self.stream.log.has_propensity
        if sample.whole or not modeled:
            return {"rows": sample.of}
        return {"rows": sample.of, "models_fitted_on": len(sample.log)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSums:
    """The sums of terms over the rows of a block for any parameters, with all scales fixed."""

    fitted: FittedClass
    estimator: Searched
    second: Second
    unit: Array
    h: Array
    low: Array
    high: Array
    ends: Array
    """The doses between which outcome models are tabulated (2,)."""
    model: CrossFit | None
    sign: float
    center: float
    """What outcomes are counted from."""
    shown_center: float
    """The mean outcome as an estimator of a user's own sees it."""
    nuisances: Nuisances

    def __call__(self, params: Array, log: LoggedData) -> SearchStatistics:
        """Return the sums of a block at parameters (m, P·d)."""
        if self.model is None:
            return self._sums(params, log)
        return add_up(partial(self._sums, params), log.batches(TABULATED))

    def _sums(self, params: Array, log: LoggedData) -> SearchStatistics:
        problem = self._problem(log)
        return search_of(problem, self.estimator, self.second, self.model, self.ends)(params)

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

    def _problem(self, log: LoggedData) -> Problem:
        q = np.ones(len(log))
        if self.estimator.uses_propensity:
            prepared = self.nuisances.prepare(log).q
            q = q if prepared is None else prepared
        return Problem(
            log=log.with_outcome(self.sign * log.outcome - self.center),
            q=q,
            phi=self.fitted.features(log.context),
            unit=self.unit,
            h=self.h,
            low=self.low,
            high=self.high,
            center=self.shown_center,
            floor=self.nuisances.floor,
        )


@dataclass(frozen=True, slots=True)
class OverStream:
    """The sums over a whole log as a function of parameters: one pass each."""

    sums: SearchSums
    stream: Stream

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P·d)."""
        task = OverBatches(partial(self.sums, params.copy()), BATCH)
        return self.stream.engine.add_up(task, self.stream.log.partitions)


@dataclass(frozen=True, slots=True)
class FeatureSums:
    """ΦᵀΦ (P, P) and Φᵀτ (P, d) over n rows, τ the doses of a first policy."""

    n: int
    squares: Array
    products: Array

    def __add__(self, other: FeatureSums) -> FeatureSums:
        """Return the sums over both sets of rows."""
        squares, products = self.squares + other.squares, self.products + other.products
        return FeatureSums(self.n + other.n, squares, products)


def feature_sums(
    fitted: FittedClass, start: Policy | None, mean: Array, log: LoggedData
) -> FeatureSums:
    """Return the sums of a block; without a first policy, for the mean dose (d,)."""
    phi = fitted.features(log.context)
    if start is None:
        tau = np.broadcast_to(mean, log.doses.shape)
    else:
        tau = doses(as_policy(start), log.context, log.dimension, log.names)
    return FeatureSums(len(log), phi.T @ phi, phi.T @ tau)


@dataclass(frozen=True, slots=True)
class DosesAndResiduals:
    """The doses (n, d) and beside them what least squares leaves of them."""

    mean: Affine

    def __call__(self, log: LoggedData) -> Array:
        """Return the columns (n, 2d)."""
        from titrant.evaluation.nuisance import contexts  # noqa: PLC0415

        fit = self.mean.predict(contexts(log)).reshape(log.doses.shape)
        return np.hstack([log.doses, log.doses - fit])


def regression(survey: StreamSurvey) -> tuple[Affine, Array]:
    """Return the least squares of the doses on the contexts, and the sd (d,) of what is left.

    By sums over all rows; by the rows drawn, where values of contexts are held.
    """
    if survey.as_they_are:
        mean, squares = linear_sums(survey.sums, survey.dimension).regression()
        return mean, np.sqrt(np.maximum(np.diagonal(squares), 0.0) / survey.n)
    from titrant.propensity.gaussian import Affine  # noqa: PLC0415

    log = survey.sample.log
    fit = Affine.least_squares(log.context, log.doses)
    return fit, (log.doses - fit.predict(log.context)).std(axis=0)


def fitted_on(policy_class: PolicyClass, survey: StreamSurvey) -> FittedClass:
    """Return a class with the scales of all rows; RBF centers are drawn from the sample."""
    if isinstance(policy_class, ClippedClass) and type(policy_class) is ClippedClass:
        return fitted_on(policy_class.inside, survey)
    on_sample = policy_class.on(survey.sample.log)
    if not isinstance(policy_class, LinearClass) or not isinstance(on_sample, FittedLinear):
        return on_sample
    if type(policy_class).on is not LinearClass.on:  # scales of its own, which only it can find
        return on_sample
    # Where values are held, only the rows themselves tell what is left.
    if survey.sample.whole or not policy_class.standardize or not survey.as_they_are:
        return on_sample
    contexts, used = survey.contexts, list(on_sample.places)
    mean, spread = contexts.center[used], contexts.spread[used]
    center = mean if policy_class.intercept else np.zeros_like(mean)
    size = np.sqrt(spread**2 + (mean - center) ** 2)
    return replace(on_sample, center=center, size=np.where(size > 0.0, size, np.inf))


def _about(cpo: CPO, sums: SearchSums, stream: Stream, starts: Array) -> str:
    """Return what determines the search besides the starts: titrant, settings and every row.

    Two functions of a user's own may look the same when they are printed. So what the search
    computes from the sample of rows at its starts belongs to it as well: it shows another density,
    outcome model or estimator.
    """
    survey = stream.survey
    numbers = [sums.unit, sums.h, sums.low, sums.high, sums.ends, np.array([sums.center])]
    with pinned():
        at_start = sums(starts, survey.sample.log)
    content = sha256()
    for array in (*numbers, at_start.z, at_start.dz, at_start.zz, at_start.dzz):
        content.update(np.ascontiguousarray(array).tobytes())
    rows = f"{survey.n} rows {survey.sums.digest:016x} of {survey.names!r}, sign {stream.sign:+g}"
    settings = f"{cpo!r} {sums.fitted!r} {sums.nuisances.propensity!r}"
    return f"{installed()} {rows} {settings} {content.hexdigest()}"
