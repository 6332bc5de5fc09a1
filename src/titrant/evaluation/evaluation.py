"""The one page where the rooms meet for evaluation: a log and a policy in, an estimate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import finalize

import numpy as np

from titrant.bandwidth import AveragedBiasPath, Bandwidth, LeaveOneOut, Subsampled, as_selector
from titrant.data import LoggedData
from titrant.errors import InvalidArgument, NoOverlap, UntrustedEstimate
from titrant.estimators import (
    Discretized,
    DoublyRobust,
    Estimator,
    Observed,
    PartlyObserved,
    Problem,
    Question,
    SmoothedEstimator,
    WeightedEstimator,
)
from titrant.estimators.discretized import few_levels
from titrant.estimators.form import knows_point_masses
from titrant.estimators.joint import joint_estimates, of_policy
from titrant.evaluation.model_checks import (
    SecondOpinions,
    plan_findings,
    rank_findings,
    unseen_notes,
)
from titrant.evaluation.models.fitting import check_groups, fits_models
from titrant.evaluation.models.jackknife import filled, models_share, share_notes
from titrant.evaluation.models.kept import forget
from titrant.evaluation.models.masses import asked_of_masses, mass_findings
from titrant.evaluation.models.moves import caps_without_cdf, move_findings, refuse_moves
from titrant.evaluation.models.nuisance import Nuisances, PolicyRows
from titrant.evaluation.passes import (
    HeldBlocks,
    OverBlocks,
    Point,
    nearest_dose,
    over_rows_of,
    point_statistics,
    served,
    smoothed_rows,
)
from titrant.evaluation.repeated import (
    level_findings,
    repeated_findings,
    residuals,
    together_among,
    together_in,
)
from titrant.evaluation.shared import rows_numbered
from titrant.evaluation.survey import SEED, check_log, survey_of
from titrant.execute import BLOCK, Engine, as_engine
from titrant.execute.engine import pinned
from titrant.inference import Diagnostics, IntervalMethod, RobustBiasCorrected
from titrant.inference.base import without_rounding
from titrant.inference.results import Comparison, Contrast, Estimate
from titrant.inference.trust import rules
from titrant.inference.trust.balance import Bins
from titrant.inference.trust.doubts import ignored
from titrant.inference.trust.evidence import LogFacts, diagnose
from titrant.inference.trust.support import Support
from titrant.kernels import Scale
from titrant.policies import Policy, StatusQuo, as_policy
from titrant.policies.base import is_exactly
from titrant.policies.calling import check_features
from titrant.policies.constant import is_number
from titrant.policies.given import Planned, TablePolicy, bound_to
from titrant.policies.moves import Limited, Move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import BandwidthSelector
    from titrant.data.source import Source
    from titrant.estimators import Joint, JointPass, Rows
    from titrant.estimators.joint import Search
    from titrant.evaluation.models.masses import AskedMasses
    from titrant.evaluation.questions.functionals import Functional
    from titrant.evaluation.questions.population import Population
    from titrant.evaluation.survey import Survey
    from titrant.inference import Check, Interval
    from titrant.propensity import CrossPropensity, PropensityModel

    AnyPolicy = Policy | Callable[[Array], ArrayLike] | ArrayLike


S = TypeVar("S")

MOST_KNOWN = 65_536
"""Rows times policies of which the distances are kept between passes."""
REASONS = 3
"""Of many refusals at once so many are told."""

__all__ = ["Comparison", "Contrast", "Estimate", "Evaluation", "compare", "evaluate"]


def evaluate(
    log: Source,
    policy: AnyPolicy,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    weights_to: object = None,
    functional: Functional | None = None,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
) -> Estimate:
    """Return how good ``policy`` would have been on the contexts of ``log``.

    Parameters
    ----------
    log : the logged rows, in memory or by `scan_parquet`
    policy : a policy of titrant; a number, the same dose for all; one dose for each row of a log in
        memory; or a function from contexts (n, p) to doses, in the order of the log, which
        `TablePolicy` hands a data frame instead. A policy that knows its ``features`` finds them
        among the names of the log, in any order
    estimator : `DoublyRobust()` unless given: cross-fitted and self-normalized
    bandwidth : a number, one per dose, a matrix, or a selector; chooses itself unless given
    propensity : a model of f(t | x) to fit; unless given, the log's own column if it has one,
        else an average of four that follow contexts which act nonlinearly, cross-fitted
    interval : `RobustBiasCorrected()` unless given
    weights_to : a second table of contexts, or an array in the order of the log's: the value is
        that in this population, to which the rows of the log are weighted
    functional : what is asked of the outcomes under the policy in place of their mean: `Exceeds`,
        `Quantile` or `TailMean`
    allow_untrusted : return an estimate that the trust rules refuse, marked, instead of raising
    ignore_doubts : tell what is doubtful about columns in notes, which lower no verdict
    executor : where partitions of the log are worked on, any `concurrent.futures.Executor` or an
        `Engine`; unless given, threads for files and this thread for a log in memory

    Returns
    -------
    Estimate : ``value``, the mean outcome under the policy, with ``se`` and ``interval(level)``;
        ``diagnostics``, the trust report; ``bandwidth``, ``ess`` and ``method``, how it was made.
        ``to_frame()``, ``to_latex()``, ``to_dict()`` and ``plot()`` take it elsewhere

    Raises
    ------
    UntrustedEstimate : when the data cannot answer; NoOverlap when no row is near the policy

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> age, noise = rng.uniform(30, 70, 500), rng.normal(size=(2, 500))
    >>> dose = 20 + 0.3 * age + 4 * noise[0]
    >>> loss = (dose - 0.7 * age) ** 2 / 40 + noise[1]
    >>> table = {"age": age, "dose": dose, "loss": loss}
    >>> log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context="age")
    >>> quick = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    >>> found = tt.evaluate(log, 35, **quick)  # without `quick`: better models, more time
    >>> found
    Estimate(constant 35: value 1.453  95% CI 0.9459 … 1.959  h 3.489  ESS 181 of 500  warn)
    >>> [round(end, 2) for end in found.interval(0.9)]
    [1.03, 1.88]
    >>> found.diagnostics.verdict.value, found.trusted
    ('warn', True)
    """
    name = name_of(policy)
    return compare(
        log,
        {name: policy},
        estimator=estimator,
        bandwidth=bandwidth,
        propensity=propensity,
        interval=interval,
        weights_to=weights_to,
        functional=functional,
        allow_untrusted=allow_untrusted,
        ignore_doubts=ignore_doubts,
        executor=executor,
    )[name]


def compare(
    log: Source,
    policies: Mapping[str, AnyPolicy],
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    weights_to: object = None,
    functional: Functional | None = None,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
) -> Comparison:
    """Return how good each policy would have been on the same rows, and all differences.

    The parameters are those of `evaluate`. Each policy has its own bandwidth; differences are
    paired, so that what the policies share does not widen their intervals.

    A policy that the log cannot answer for has no estimate: its reason is in ``refused``, and the
    other policies are compared all the same. With ``allow_untrusted`` only a policy that no row
    is near is refused.

    Returns
    -------
    Comparison : an `Estimate` of each policy by its name, ``contrast(a, b)`` and ``differences()``,
        ``simultaneous()`` intervals, ``refused``. Differences are a less b: negative means that a
        loses less. Unless the log says ``maximize=True``, lower is better

    Raises
    ------
    UntrustedEstimate : when every policy is refused; NoOverlap when no row is near any of them

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> age, noise = rng.uniform(30, 70, 500), rng.normal(size=(2, 500))
    >>> dose = 20 + 0.3 * age + 4 * noise[0]
    >>> loss = (dose - 0.7 * age) ** 2 / 40 + noise[1]
    >>> table = {"age": age, "dose": dose, "loss": loss}
    >>> log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context="age")
    >>> quick = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    >>> by_age = tt.Linear([0.5], intercept=10, features=["age"])
    >>> found = tt.compare(log, {"by age": by_age, "flat": 35}, **quick)
    >>> print(found)
    by age  value 0.2171  95% CI -0.02568 … 0.4599  h 2.467  ESS 160 of 500  ok
    flat    value 1.453  95% CI 0.9459 … 1.959  h 3.489  ESS 181 of 500  warn
    by age − flat: -1.236  95% CI -1.795 … -0.6757
    >>> found.contrast("by age", "flat").difference < 0
    True
    """
    if functional is not None:
        from titrant.evaluation.questions.functionals import Setting  # noqa: PLC0415

        found = functional.compare(
            Setting(
                log=log,
                policies=policies,
                estimator=estimator,
                bandwidth=bandwidth,
                propensity=propensity,
                interval=interval,
                weights_to=weights_to,
                allow_untrusted=allow_untrusted,
                ignore_doubts=ignore_doubts,
                executor=executor,
            )
        )
        return found.said_of(log.about.by(repr(functional)))
    impossible = caps_without_cdf(policies, estimator, propensity)
    if impossible:
        policies = {name: rule for name, rule in policies.items() if name not in impossible}
    evaluation = Evaluation.of(
        log,
        policies,
        estimator,
        propensity,
        executor,
        weights_to=weights_to,
        ignore_doubts=ignore_doubts,
    )
    found = evaluation.compare(bandwidth, interval, allow_untrusted=allow_untrusted)
    return found.refusing(impossible) if impossible else found


@dataclass(frozen=True)
class Evaluation:
    """Policies on a log, with the nuisances estimated: what every question is asked of."""

    source: Source
    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    estimator: Estimator
    nuisances: Nuisances
    survey: Survey
    engine: Engine = field(default_factory=lambda: Engine(pin=False))
    ignore_doubts: bool = False
    """Whether what is doubtful about columns is told without lowering a verdict."""
    judged_by: Survey | None = None
    """The survey of the log that these rows are a part of: columns are judged by all of it."""
    population: Population | None = None
    """To which the rows are weighted; None for the log as it is."""

    @classmethod
    def of(
        cls,
        log: Source,
        policies: Mapping[str, AnyPolicy],
        estimator: Estimator | None,
        propensity: PropensityModel | None,
        executor: Executor | Engine | None = None,
        *,
        ignore_doubts: bool = False,
        judged_by: Survey | None = None,
        hidden: tuple[str, ...] = (),
        weights_to: object = None,
        law: PropensityModel | CrossPropensity | None = None,
    ) -> Evaluation:
        """Check the policies and estimate what the estimator needs.

        Contexts that are ``hidden``, of a log in memory, are seen by policies and by no model.
        ``law`` is the given propensity where it was fitted to the same rows before.
        """
        if not isinstance(policies, Mapping):
            raise InvalidArgument(
                f"The policies must be a dict with a name for each; got {policies!r}."
            )
        if not policies:
            raise InvalidArgument("There is no policy to evaluate; give at least one.")
        check_log(log)
        log, policies = bound_to(log, policies)
        rules = _rules(policies, log.names)
        checked = _checked(DoublyRobust() if estimator is None else estimator)
        refuse_moves(dict(zip(policies, rules, strict=True)), log, checked, propensity)
        engine = as_engine(executor, log)
        survey, population = survey_of(log, engine, shared=weights_to is None), None
        if weights_to is not None:
            from titrant.evaluation.questions.population import Population  # noqa: PLC0415

            population = Population.of(log, survey, weights_to)
            log = population.on(log)
            survey = survey_of(log, engine, shared=True)
        check_groups(survey)
        chosen = _laid_out(checked, survey)
        if executor is None and fits_models(log, chosen, propensity):
            engine = replace(engine, pin=True)
        masses = survey.masses if knows_point_masses(chosen) else None
        if hidden and isinstance(log, LoggedData):
            seen = log.without(hidden)
            fitted = Nuisances.of(seen, chosen, propensity, survey_of(seen, engine), masses)
            nuisances = replace(fitted, hidden=hidden)
        else:
            nuisances = Nuisances.of(log, chosen, propensity, survey, masses, law=law)
        known = log, tuple(policies), rules, chosen, nuisances, survey, engine
        return cls(*known, ignore_doubts, judged_by, population)

    def with_policies(self, policies: Mapping[str, AnyPolicy]) -> Evaluation:
        """Return the evaluation of other policies by the same nuisances, estimated once."""
        rules = _rules(policies, self.source.names)
        model = self.nuisances.propensity
        known = dict(zip(policies, rules, strict=True))
        refuse_moves(known, self.source, self.estimator, model)
        return replace(self, names=tuple(policies), policies=rules)

    def compare(
        self,
        bandwidth: BandwidthSelector | ArrayLike | None = None,
        interval: IntervalMethod | None = None,
        *,
        allow_untrusted: bool = False,
    ) -> Comparison:
        """Return the comparison of all policies, each at its own bandwidth; see `compare`."""
        if not isinstance(interval, IntervalMethod | None):
            raise InvalidArgument(
                f"The `interval` must be a method such as RobustBiasCorrected(); got {interval!r}."
            )
        choices = self.choices(bandwidth)
        refused = {self.names[i]: refusal for i, refusal in choices.refused.items()}
        if not choices.bandwidths:
            raise nothing_answered(refused)
        comparison = self.comparison(choices.bandwidths, interval, choices.point)
        if not allow_untrusted:
            refused |= _untrusted(comparison)
        if len(refused) == len(self.names):
            raise nothing_answered(refused)
        reasons = {name: str(refused[name]) for name in self.names if name in refused}
        return comparison.refusing(reasons) if reasons else comparison

    @property
    def log(self) -> LoggedData:
        """The rows in memory: all of them, or the sample that stands for a larger log."""
        return self.survey.sample.log

    @property
    def held(self) -> bool:
        """Whether all rows are in memory."""
        return isinstance(self.source, LoggedData)

    @cached_property
    def policy_rows(self) -> PolicyRows:
        """Makes the rows of any block under every policy; those in files are predicted once."""
        own = "" if self.held else uuid4().hex
        if own:
            finalize(self, forget, own)
        return PolicyRows(self.nuisances, self.names, self.policies, BLOCK, own)

    @cached_property
    def held_blocks(self) -> HeldBlocks:
        """The rows in memory under every policy."""
        prepared = map(self.nuisances.prepare, self.log.batches(BLOCK))
        blocks = [self.policy_rows.block(block) for block in prepared]
        return HeldBlocks(blocks, keep=len(self.log) * len(self.policies) <= MOST_KNOWN)

    @property
    def _blas(self) -> AbstractContextManager[None]:
        """Keeps BLAS to one thread where passes over the rows have one, also between them."""
        return pinned() if self.engine.pin else nullcontext()

    @property
    def over_rows(self) -> JointPass:
        """Gives the sum of a statistic over all blocks, in their order."""
        if self.held:
            return partial(self.engine.add_up, partitions=self.held_blocks)
        return self._over_files

    def _over_files(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        return self.engine.add_up(OverBlocks(self.policy_rows, statistic), self.source.partitions)

    def problem(self, i: int, estimator: SmoothedEstimator) -> Problem:
        """Return the problem of choosing a bandwidth for policy number i."""
        return Problem(
            estimator,
            self.nuisances.n,
            self.nuisances.spread,
            partial(over_rows_of, i, self.over_rows),
            partial(self.sampled_rows, i),
            i,
            masses=self.nuisances.masses is not None or isinstance(self.policies[i], Move),
            alike=self.nuisances.keys is None and not self.source.weighted,
        )

    def sampled_rows(self, i: int) -> Rows:
        """Return all rows under policy i, or the sample of them that is in memory."""
        sample = self.survey.sample
        return self.policy_rows.rows(self.nuisances.prepare(sample.log, sample.numbers_if_some), i)

    def bandwidth(
        self, i: int, bandwidth: BandwidthSelector | ArrayLike | None
    ) -> Bandwidth | None:
        """Return the bandwidth of policy i, None if the estimator has none; or refuse the policy.

        Refused is a policy that no row is near.
        """
        chosen, refused = self.bandwidths(bandwidth, [i])
        for refusal in refused.values():
            raise refusal
        return chosen[i]

    def bandwidths(
        self,
        bandwidth: BandwidthSelector | ArrayLike | None,
        policies: Sequence[int] | None = None,
    ) -> tuple[dict[int, Bandwidth | None], dict[int, UntrustedEstimate]]:
        """Return the bandwidths of the policies, and the refusals of those that no row is near."""
        choices = self.choices(bandwidth, policies)
        return choices.bandwidths, choices.refused

    def choices(
        self,
        bandwidth: BandwidthSelector | ArrayLike | None,
        policies: Sequence[int] | None = None,
    ) -> Choices:
        """Return the bandwidths of the policies, and what was found in choosing them.

        All policies choose together, so that their number does not multiply the passes.
        """
        with self._blas:
            which = list(range(len(self.policies)) if policies is None else policies)
            smoothed = [i for i in which if self.smoothed(i)]
            selector = self._selector(bandwidth)
            searches = [self._select(selector, i) for i in smoothed]
            found = dict(zip(smoothed, served(searches, self.over_rows), strict=True))
            chosen: dict[int, Bandwidth | None] = {}
            refused: dict[int, UntrustedEstimate] = {}
            for i in which:
                h = found.get(i)
                if isinstance(h, UntrustedEstimate):
                    refused[i] = h
                else:
                    chosen[i] = h
            point = self.point(chosen) if chosen else None
            reached = [] if point is None else point.joint.tally.count.tolist()
            for i, rows in zip(list(chosen), reached, strict=True):
                if not rows:
                    refused[i] = NoOverlap(self._no_overlap(i, chosen.pop(i)))
            kept = point if all(reached) else None
            return Choices(chosen, dict(sorted(refused.items())), kept)

    def _select(self, selector: BandwidthSelector, i: int) -> Search[Bandwidth]:
        """Return the bandwidth of policy i, in passes over the rows."""
        estimator = self._estimator(i)
        if not isinstance(estimator, SmoothedEstimator):
            raise InvalidArgument(f"`{type(estimator).__name__}` has no bandwidth.")
        problem = self.problem(i, estimator)
        if problem.masses:
            problem = problem.of_smoothed(self._smoothed_rows(i))
        found = yield from selector.search(problem)
        if not isinstance(found, Bandwidth):
            raise InvalidArgument(
                f"A bandwidth selector must return a `Bandwidth(h=…, selector=…, reason=…)`; got "
                f"{found!r}."
            )
        return found

    def _selector(self, bandwidth: BandwidthSelector | ArrayLike | None) -> BandwidthSelector:
        """Return the selector; one that looks at every pair of rows looks at some rows only."""
        selector = as_selector(AveragedBiasPath() if bandwidth is None else bandwidth)
        if isinstance(selector, LeaveOneOut) and not self.survey.sample.whole:
            return Subsampled(selector)
        return selector

    def question(self, i: int, bandwidth: Bandwidth | None) -> Question:
        """Return the question how good policy i is."""
        h, kink = (1.0, 0.0) if bandwidth is None else (bandwidth.h, bandwidth.kink)
        estimator, scale = self._estimator(i), Scale.of(h, self.source.dimension)
        exact = isinstance(estimator, SmoothedEstimator) and not self.smoothed(i)
        return Question(estimator, i, scale, kink, exact=exact)

    def smoothed(self, i: int) -> bool:
        """Whether a bandwidth has a say in the value of policy i."""
        if not isinstance(self._estimator(i), SmoothedEstimator):
            return False
        if isinstance(self.policies[i], Move):
            return self._smoothed_rows(i) > 0
        return self.asked_masses is None or self.asked_masses[i].elsewhere > 0

    def _smoothed_rows(self, i: int) -> int:
        """Return how many rows a kernel decides about in the value of policy i."""
        if self.asked_masses is not None:
            return self.asked_masses[i].smoothed
        if isinstance(self.policies[i], Limited):  # all but those that no cap can touch
            return self.over_rows(partial(of_policy, i, smoothed_rows))
        return 0

    @cached_property
    def asked_masses(self) -> tuple[AskedMasses, ...] | None:
        """At which point masses each policy's doses are, in one pass; None if there are none."""
        masses = self.nuisances.masses
        if masses is None or not self.estimator.uses_propensity:
            return None
        spread = self.nuisances.unit
        return self.over_rows(partial(asked_of_masses, masses, spread)).parts

    def _estimator(self, i: int) -> Estimator:
        """Return the estimator of policy i: the status quo needs none but the mean outcome."""
        return self.of_logged if is_exactly(self.policies[i], StatusQuo) else self.estimator

    @property
    def of_logged(self) -> Estimator:
        """The estimator of the status quo: where outcomes are missing, normalized as the others."""
        if self.nuisances.seen is None:
            return Observed()
        own = self.estimator
        plain = isinstance(own, WeightedEstimator) and not own.normalized
        return PartlyObserved(self_normalized=not plain)

    def point(self, bandwidths: Mapping[int, Bandwidth | None]) -> Point:
        """Return the estimates of policies at these bandwidths."""
        questions = [self.question(i, h) for i, h in bandwidths.items()]
        found = self.over_rows(partial(point_statistics, questions))
        share = found.raised / self.nuisances.n
        return Point(joint_estimates(questions, found.statistics), share)

    def comparison(
        self,
        bandwidths: Mapping[int, Bandwidth | None],
        interval: IntervalMethod | None,
        known: Point | None = None,
    ) -> Comparison:
        """Return the joint estimates of the policies that have a bandwidth.

        ``known`` are the estimates themselves, where they have been asked for already.
        """
        with self._blas:
            asked = self.point(bandwidths) if known is None else known
            familiar = self.held_blocks.first if self.held else []
            share = models_share(
                self.policy_rows, asked.joint.questions, self.survey.sample, familiar
            )
            whole = filled(share, asked.joint.covariance)
            point = asked.joint.with_models(whole, max(self.nuisances.folds - 1, 1))
            facts = self.facts(asked.floor_share)
            method = interval or RobustBiasCorrected()
            searches: list[Search[Any]] = [method.search(point), diagnose(point, facts)]
            inference, reports = _without_refusals(served(searches, self.over_rows))
            models = self._second_opinions(point, familiar).findings()
            for one, i in zip(models, bandwidths, strict=True):
                one.extend(self._mass_findings(i))
                one.extend(self.nuisances.weight_notes)
                one.extend(self._unseen_notes(i))
                one.extend(self._level_findings(i))
                one.extend(self._plan_findings(i))
                one.extend([] if self.population is None else self.population.findings())
            for k, one in enumerate(models):
                one.extend(self._variation_findings(point, k, inference.interval(k)))
            for one, note in zip(models, share_notes(share), strict=True):
                one.extend([] if note is None else [note])
            for one, more in zip(models, self._repeated_findings(point), strict=True):
                one.extend(more)
            estimates = [
                Estimate(
                    policy=self.names[i],
                    value=float(point.values[k]),
                    se=float(point.se[k]),
                    rows=self.nuisances.n,
                    ess=float(point.tally.ess[k]),
                    method=self.method(i, asked.floor_share),
                    bandwidth=h,
                    confidence=inference.interval(k),
                    diagnostics=reports[k] + Diagnostics.of(models[k]),
                    flow=self.log.flow,
                    about=self.source.about,
                )
                for k, (i, h) in enumerate(bandwidths.items())
            ]
            return Comparison(
                estimates={e.policy: e for e in estimates},
                covariance=point.covariance,
                inference=inference,
                about=self.source.about,
            )

    def _repeated_findings(self, point: Joint) -> list[list[Check | str]]:
        """Return for each question what is found about rows that seem to belong together."""
        if self.nuisances.keys is not None:
            return [[] for _ in point.questions]
        log = self.log
        known = list(together_in(log) if self.held else together_among(self.survey))
        if not known:
            return [[] for _ in point.questions]
        blocks: Sequence[Sequence[Rows]] = self.held_blocks if self.held else []
        numbers = None
        if not self.held:
            asked = np.unique(np.concatenate([one.keys.numbers for one in known]))
            some, numbers = rows_numbered(self.source, asked, self.engine)
            cuts = [slice(i, i + BLOCK) for i in range(0, len(some), BLOCK)]
            made = (self.nuisances.prepare(some.rows(cut), numbers[cut]) for cut in cuts)
            blocks = [self.policy_rows.block(one) for one in made]
        own = [
            residuals(question, point.mean(i), point.rows, blocks)
            for i, question in enumerate(point.questions)
        ]
        encoded = () if log.flow is None else log.flow.encoded
        return repeated_findings(known, point, own, numbers, contexts=log.names, encoded=encoded)

    def facts(self, floor_share: float) -> LogFacts:
        """Return what the trust checks of every policy take from the log."""
        survey = self.survey
        judged = survey if self.judged_by is None else self.judged_by
        return LogFacts(
            contexts=survey.contexts,
            bins=Bins.of(survey.looked_at.context, survey.contexts.names, survey.contexts.hold),
            support=Support.of(
                survey.sample.log,
                self.nuisances.floor,
                modeled=self.nuisances.propensity is not None,
                spread=survey.spread,
                ends=survey.dose_ends,
                context_ends=survey.context_ends,
            ),
            floor=self.nuisances.floor,
            floor_share=floor_share,
            bounded=self._bounded,
            modeled=self.nuisances.propensity is not None,
            outcome_ends=survey.outcome_ends,
            evenness=survey.evenness,
            outcomes=self._doubts(judged.outcome_doubts),
            columns=self._doubts(judged.context_doubts),
            seen=survey.seen_share,
            ranks=self._ranks,
            levels=few_levels(survey.sample.log.treatment)
            if isinstance(self.estimator, Discretized)
            else None,
            dose_ends=self.nuisances.ends,
        )

    def _mass_findings(self, i: int) -> list[Check | str]:
        """Return what is found about policy i because the doses have point masses."""
        masses, found = self.survey.masses, self._estimator(i).uses_propensity
        if masses is None or not found:
            return []
        if isinstance(self.policies[i], Move):
            asked = None if self.asked_masses is None else self.asked_masses[i]
            return list(move_findings(masses, self._smoothed_rows(i), asked, self.nuisances.n))
        if self.asked_masses is None:
            name = type(self.estimator).__name__
            return [f"Of the log, {masses.told()}. `{name}` takes them for a density."]
        return list(mass_findings(masses, self.asked_masses[i]))

    def _level_findings(self, i: int) -> Iterator[Check]:
        """Yield what is found about doses of policy i that are unheard of at levels of a text."""
        policy, log = self.policies[i], self.survey.looked_at
        if isinstance(policy, Move) or is_exactly(policy, StatusQuo) or log.dimension > 1:
            return
        if self._estimator(i).uses_propensity and not self.nuisances.known:
            yield from level_findings(log, policy.of_rows(log)[:, 0])

    def _plan_findings(self, i: int) -> Iterator[Check]:
        """Yield what is found about doses that policy i plans for these very rows."""
        policy = self.policies[i]
        if isinstance(policy, Planned) and self._estimator(i).uses_propensity:
            yield from plan_findings(self.nuisances, self.survey.sample, policy)

    def _variation_findings(self, point: Joint, k: int, interval: Interval) -> Iterator[Check]:
        """Yield the check of answer k if its interval has no width but for rounding."""
        value, (least, greatest) = float(point.values[k]), self.survey.outcome_ends
        low, high = interval.at(0.95)
        if without_rounding(high - low, max(abs(value), greatest - least)) == 0.0:
            noun = "rows" if point.row_count is None else "groups"
            binary = {least, greatest} <= {0.0, 1.0} and value in (0.0, 1.0)
            yield rules.no_variation(value, float(point.tally.ess[k]), noun, binary=binary)

    def _unseen_notes(self, i: int) -> Iterator[str]:
        """Return what the estimate of policy i takes for granted about columns left out."""
        estimator = self._estimator(i)
        by_model = estimator.uses_outcome_model and not estimator.uses_propensity
        by_law = estimator.uses_propensity and not self.nuisances.known
        return unseen_notes(self.log, modeled=by_model or by_law)

    def _doubts(self, found: tuple[Check | str, ...]) -> tuple[Check | str, ...]:
        return tuple(ignored(found)) if self.ignore_doubts else found

    @cached_property
    def _ranks(self) -> tuple[Check | str, ...]:
        return tuple(rank_findings(self.nuisances, self.survey.sample))

    def _second_opinions(self, point: Joint, familiar: Sequence[Rows]) -> SecondOpinions:
        """Return the questions to be asked of a sample of rows, with other nuisances as well."""
        sample, hold = self.survey.sample, self.survey.held
        known = self.nuisances, sample, hold, self.names, self.policies
        return SecondOpinions(*known, point.questions, point.se, familiar)

    def method(self, i: int, floor_share: float) -> dict[str, Any]:
        """Return how the estimate of policy i was made, as plain values."""
        estimator, outcome = self._estimator(i), self._outcome_name
        weighted = estimator.uses_propensity
        return {
            "estimator": repr(estimator),
            "propensity": self._propensity_name if weighted else None,
            "floor": self.nuisances.floor if weighted else None,
            "floor_share": floor_share if weighted else None,
            "outcome_model": outcome if estimator.uses_outcome_model else None,
            **self._sampled(estimator),
            **self._counted,
        }

    @property
    def _bounded(self) -> bool:
        """Whether kernels meet a bound: one of the log's, or a point mass at the end of doses."""
        masses = self.nuisances.masses
        ends = () if masses is None else (masses.low, masses.high)
        return self.source.bounded or any(map(np.isfinite, ends))

    @cached_property
    def _outcome_name(self) -> str | None:
        outcome = self.nuisances.outcome
        return None if outcome is None else repr(outcome.model)

    @cached_property
    def _propensity_name(self) -> str:
        model = self.nuisances.propensity
        return "the log's column" if model is None else repr(model)

    def _sampled(self, estimator: Estimator) -> dict[str, Any]:
        """Return on how many rows models were fitted, where that was not on all."""
        sample = self.survey.sample
        models = self.nuisances.propensity is not None and estimator.uses_propensity
        fitted_on = self.nuisances.fitted_on
        rows = len(sample.log) if fitted_on is None else fitted_on
        if rows == sample.of or not (models or estimator.uses_outcome_model):
            return {}
        return {"models_fitted_on": rows, "sample_seed": SEED}

    @property
    def _counted(self) -> dict[str, Any]:
        """Return how many groups there are, and what weights are worth, where rows have them."""
        keys, evenness = self.nuisances.keys, self.survey.evenness
        groups = {} if keys is None else {"groups": len(keys)}
        worth = {} if evenness is None else {"weights_worth": evenness * self.nuisances.n}
        there = {} if self.population is None else {"population": self.population.to_dict()}
        return groups | worth | there

    def _no_overlap(self, i: int, bandwidth: Bandwidth | None) -> str:
        if isinstance(self.policies[i], Move):
            return (
                f"Policy {self.names[i]!r} gives none of {self.nuisances.n:,} rows a dose that the "
                "propensities make possible. Ask about a smaller change of the dose."
            )
        if bandwidth is None and isinstance(self._estimator(i), SmoothedEstimator):
            return (
                f"No logged dose is the point mass that policy {self.names[i]!r} gives in any of "
                f"{self.nuisances.n:,} rows. Ask about a dose that such rows were given."
            )
        if bandwidth is None:
            return (
                f"No logged dose falls in the bin of the dose of policy {self.names[i]!r} in any "
                f"of {self.nuisances.n:,} rows. Use fewer bins or check that doses share a unit."
            )
        nearest = self.over_rows(partial(of_policy, i, nearest_dose)).distance
        return (
            f"No logged dose lies within h = {bandwidth.h} of the dose of policy "
            f"{self.names[i]!r} in any of {self.nuisances.n:,} rows (closest {nearest:.3g}). "
            "Increase the bandwidth or check that doses share a unit."
        )


@dataclass(frozen=True, slots=True)
class Choices:
    """The bandwidths of policies, why others are refused, and the estimates of those that are not.

    None for the estimates where they have to be asked for again.
    """

    bandwidths: dict[int, Bandwidth | None]
    refused: dict[int, UntrustedEstimate]
    point: Point | None


def _without_refusals(found: Sequence[Any]) -> Sequence[Any]:
    for one in found:
        if isinstance(one, UntrustedEstimate):
            raise one
    return found


def _untrusted(comparison: Comparison) -> dict[str, UntrustedEstimate]:
    """Return the policies whose estimate the trust rules refuse, each with the refusal."""
    found = {name: e.diagnostics.refusal() for name, e in comparison.estimates.items()}
    return {name: refusal for name, refusal in found.items() if refusal is not None}


def nothing_answered(refused: Mapping[str, UntrustedEstimate]) -> UntrustedEstimate:
    """Return the error of a comparison without any estimate."""
    refusals = list(refused.values())
    if len(refusals) == 1:
        return refusals[0]
    kind = NoOverlap if all(isinstance(r, NoOverlap) for r in refusals) else UntrustedEstimate
    reasons = [f"Policy {name!r}: {refusal}" for name, refusal in refused.items()]
    told = " ".join(reasons[:REASONS])
    return kind(f"The log answers for none of the {len(refusals)} policies. {told}")


def _checked(estimator: Estimator) -> Estimator:
    """Refuse what is no estimator."""
    if not isinstance(estimator, Estimator):
        raise InvalidArgument(
            f"The `estimator` must be an estimator such as SelfNormalized(); got {estimator!r}."
        )
    return estimator


def _laid_out(estimator: Estimator, survey: Survey) -> Estimator:
    """Return the estimator with what it takes from the log's doses, such as bin edges."""
    if isinstance(estimator, Discretized):
        return estimator.on(survey.sample.log.treatment)
    return estimator


def _rules(policies: Mapping[str, AnyPolicy], names: Sequence[str]) -> tuple[Policy, ...]:
    """Return the policies, each of which finds its contexts among the names of the log."""
    rules = {name: as_policy(policy) for name, policy in policies.items()}
    for name, rule in rules.items():
        check_features(rule, names, f"policy `{name}`")
    return tuple(rules.values())


def name_of(policy: object) -> str:
    """Return what a policy is called that nobody named."""
    if isinstance(policy, TablePolicy):
        return name_of(policy.function)
    if is_number(policy):
        return f"constant {policy:g}"
    if isinstance(policy, FunctionType):
        return policy.__name__
    rule = isinstance(policy, Policy) or callable(policy)
    return type(policy).__name__ if rule else "doses given"
