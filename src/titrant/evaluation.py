"""The one page where the rooms meet for evaluation: a log and a policy in, an estimate out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from titrant.bandwidth import AveragedBiasPath, as_selector
from titrant.errors import InvalidArgument, NoOverlap
from titrant.estimators import (
    Discretized,
    DoublyRobust,
    Estimator,
    Observed,
    Problem,
    Question,
    SmoothedEstimator,
    ask,
)
from titrant.execute import BLOCK, add_up
from titrant.inference import RobustBiasCorrected
from titrant.inference.balance import Contexts
from titrant.inference.results import Comparison, Contrast, Estimate
from titrant.inference.trust_evidence import Ground, diagnose
from titrant.inference.trust_support import Support
from titrant.kernels import Scale
from titrant.nuisance import Nuisances
from titrant.policies import StatusQuo, as_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import Bandwidth, BandwidthSelector
    from titrant.data import LoggedData
    from titrant.estimators import Rows
    from titrant.inference import IntervalMethod
    from titrant.nuisance import Prepared
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel

    AnyPolicy = Policy | Callable[[Array], ArrayLike]

S = TypeVar("S")

__all__ = ["Comparison", "Contrast", "Estimate", "Evaluation", "compare", "evaluate"]


def evaluate(
    log: LoggedData,
    policy: AnyPolicy,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    allow_untrusted: bool = False,
) -> Estimate:
    """Return how good ``policy`` would have been on the contexts of ``log``.

    Parameters
    ----------
    log : the logged rows
    policy : a policy of `titrant.policies`, or any function from contexts (n, p) to doses
    estimator : `DoublyRobust()` unless given: cross-fitted and self-normalized
    bandwidth : a number, one a dose, a matrix, or a selector; chooses itself unless given
    propensity : a model of f(t | x) to fit; unless given, the log's own column if it has one,
        else a mixture of linear-Gaussian models
    interval : `RobustBiasCorrected()` unless given
    allow_untrusted : return an estimate that the trust rules refuse, marked, instead of raising

    Raises
    ------
    UntrustedEstimate : when the data cannot answer; NoOverlap when no row is near the policy
    """
    name = _name(policy)
    comparison = compare(
        log,
        {name: policy},
        estimator=estimator,
        bandwidth=bandwidth,
        propensity=propensity,
        interval=interval,
        allow_untrusted=allow_untrusted,
    )
    return comparison[name]


def compare(
    log: LoggedData,
    policies: Mapping[str, AnyPolicy],
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    allow_untrusted: bool = False,
) -> Comparison:
    """Return how good each policy would have been on the same rows, and all differences.

    The parameters are those of `evaluate`. Each policy has its own bandwidth; differences are
    paired, so that what the policies share does not widen their intervals.
    """
    evaluation = Evaluation.of(log, policies, estimator, propensity)
    return evaluation.compare(bandwidth, interval, allow_untrusted=allow_untrusted)


@dataclass(frozen=True)
class Evaluation:
    """Policies on a log, with the nuisances estimated: what every question is asked of."""

    log: LoggedData
    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    estimator: Estimator
    nuisances: Nuisances

    @classmethod
    def of(
        cls,
        log: LoggedData,
        policies: Mapping[str, AnyPolicy],
        estimator: Estimator | None,
        propensity: PropensityModel | None,
    ) -> Evaluation:
        """Check the policies and estimate what the estimator needs."""
        if not policies:
            raise InvalidArgument("There is no policy to evaluate; give at least one.")
        chosen = _laid_out(DoublyRobust() if estimator is None else estimator, log)
        rules = tuple(as_policy(p) for p in policies.values())
        return cls(log, tuple(policies), rules, chosen, Nuisances.of(log, chosen, propensity))

    def with_policies(self, policies: Mapping[str, AnyPolicy]) -> Evaluation:
        """Return the evaluation of other policies by the same nuisances, estimated once."""
        rules = tuple(as_policy(p) for p in policies.values())
        return Evaluation(self.log, tuple(policies), rules, self.estimator, self.nuisances)

    def compare(
        self,
        bandwidth: BandwidthSelector | ArrayLike | None = None,
        interval: IntervalMethod | None = None,
        *,
        allow_untrusted: bool = False,
    ) -> Comparison:
        """Return the comparison of all policies, each at its own bandwidth; see `compare`."""
        bandwidths = {i: self.bandwidth(i, bandwidth) for i in range(len(self.policies))}
        comparison = self.comparison(bandwidths, interval)
        if not allow_untrusted:
            for estimate in comparison.estimates.values():
                estimate.diagnostics.require_trust()
        return comparison

    @cached_property
    def prepared(self) -> list[Prepared]:
        """The blocks of the log with what does not depend on a policy."""
        return [self.nuisances.prepare(block) for block in self.log.batches(BLOCK)]

    @cached_property
    def blocks(self) -> list[list[Rows]]:
        """The rows of each block under each policy."""
        return [
            [self.nuisances.rows(block, policy) for policy in self.policies]
            for block in self.prepared
        ]

    def over_rows(self, statistic: Callable[[Sequence[Rows]], S]) -> S:
        """Return the sum of a statistic over all blocks, in their order."""
        return add_up(statistic, self.blocks)

    def problem(self, i: int, estimator: SmoothedEstimator) -> Problem:
        """Return the problem of choosing a bandwidth for policy number i."""

        def over_rows(statistic: Callable[[Rows], S]) -> S:
            return self.over_rows(lambda rows: statistic(rows[i]))

        def rows() -> Rows:
            return self.nuisances.rows(self.nuisances.prepare(self.log), self.policies[i])

        return Problem(estimator, self.nuisances.n, self.nuisances.spread, over_rows, rows)

    def bandwidth(
        self, i: int, bandwidth: BandwidthSelector | ArrayLike | None
    ) -> Bandwidth | None:
        """Return the bandwidth of policy i, None if the estimator has none; or refuse the policy.

        Refused is a policy that no row is near.
        """
        chosen = None
        estimator = self._estimator(i)
        if isinstance(estimator, SmoothedEstimator):
            selector = as_selector(AveragedBiasPath() if bandwidth is None else bandwidth)
            chosen = selector.select(self.problem(i, estimator))
        answer = ask([self.question(i, chosen)], self.over_rows)
        if not answer.tally.count[0]:
            raise NoOverlap(self._no_overlap(i, chosen))
        return chosen

    def question(self, i: int, bandwidth: Bandwidth | None) -> Question:
        """Return the question how good policy i is."""
        h = 1.0 if bandwidth is None else bandwidth.h
        return Question(self._estimator(i), i, Scale.of(h, self.log.dimension))

    def _estimator(self, i: int) -> Estimator:
        """Return the estimator of policy i: the status quo needs none but the mean outcome."""
        return Observed() if isinstance(self.policies[i], StatusQuo) else self.estimator

    def comparison(
        self, bandwidths: Mapping[int, Bandwidth | None], interval: IntervalMethod | None
    ) -> Comparison:
        """Return the joint estimates of the policies that have a bandwidth."""
        point = ask([self.question(i, h) for i, h in bandwidths.items()], self.over_rows)
        inference = (interval or RobustBiasCorrected()).infer(point, self.over_rows)
        reports = diagnose(point, self.ground, self.over_rows)
        estimates = [
            Estimate(
                policy=self.names[i],
                value=float(point.values[k]),
                se=float(point.se[k]),
                rows=self.nuisances.n,
                ess=float(point.tally.ess[k]),
                method=self.method(i),
                bandwidth=h,
                confidence=inference.interval(k),
                diagnostics=reports[k],
            )
            for k, (i, h) in enumerate(bandwidths.items())
        ]
        return Comparison(
            estimates={e.policy: e for e in estimates},
            covariance=point.covariance,
            inference=inference,
        )

    @cached_property
    def floor_share(self) -> float:
        """The share of all rows whose propensity the floor raised."""
        return sum(block.touched * len(block.log) for block in self.prepared) / self.nuisances.n

    @cached_property
    def ground(self) -> Ground:
        """What the trust checks of every policy take from the log."""
        return Ground(
            contexts=Contexts.of(self.log.context, self.log.names),
            support=Support.of(self.log, self.nuisances.propensity, self.nuisances.floor),
            floor=self.nuisances.floor,
            floor_share=self.floor_share,
            bounded=self.log.bounded,
        )

    def method(self, i: int) -> dict[str, Any]:
        """Return how the estimate of policy i was made, as plain values."""
        estimator, outcome = self._estimator(i), self.nuisances.outcome
        weighted = estimator.uses_propensity
        return {
            "estimator": repr(estimator),
            "propensity": self._propensity_name() if weighted else None,
            "floor": self.nuisances.floor if weighted else None,
            "floor_share": self.floor_share if weighted else None,
            "outcome_model": repr(outcome.model)
            if estimator.uses_outcome_model and outcome is not None
            else None,
        }

    def _propensity_name(self) -> str:
        model = self.nuisances.propensity
        return "the log's column" if model is None else repr(model)

    def _no_overlap(self, i: int, bandwidth: Bandwidth | None) -> str:
        if bandwidth is None:
            return (
                f"No logged dose falls in the bin of the dose of policy {self.names[i]!r} in any "
                f"of {self.nuisances.n:,} rows. Use fewer bins or check that doses share a unit."
            )
        nearest = min(float(np.abs(b[i].tau - b[i].t).max(axis=1).min()) for b in self.blocks)
        return (
            f"No logged dose lies within h = {bandwidth.h} of the dose of policy "
            f"{self.names[i]!r} in any of {self.nuisances.n:,} rows (closest {nearest:.3g}). "
            "Increase the bandwidth or check that doses share a unit."
        )


def _laid_out(estimator: Estimator, log: LoggedData) -> Estimator:
    """Return the estimator with what it takes from the log's doses, such as bin edges."""
    if not isinstance(estimator, Estimator):
        raise InvalidArgument(
            f"The `estimator` must be an estimator such as SelfNormalized(); got {estimator!r}."
        )
    return estimator.on(log.treatment) if isinstance(estimator, Discretized) else estimator


def _name(policy: object) -> str:
    return policy.__name__ if isinstance(policy, FunctionType) else type(policy).__name__
