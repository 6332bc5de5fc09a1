"""The one page where the rooms meet for evaluation: a log and a policy in, an estimate out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from titrant.bandwidth import AveragedBiasPath, as_selector
from titrant.errors import InvalidArgument, NoOverlap
from titrant.estimators import (
    Discretized,
    DoublyRobust,
    Estimator,
    Problem,
    Question,
    SmoothedEstimator,
    ask,
)
from titrant.execute import BLOCK, add_up
from titrant.inference import Diagnostics, RobustBiasCorrected
from titrant.inference.diagnostics import smoothing_check, weight_checks
from titrant.inference.results import Comparison, Contrast, Estimate
from titrant.kernels import Scale
from titrant.nuisance import Nuisances
from titrant.policies import as_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import Bandwidth, BandwidthSelector
    from titrant.data import LoggedData
    from titrant.estimators import Joint, Rows
    from titrant.inference import Inference, IntervalMethod
    from titrant.nuisance import Prepared
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel

    AnyPolicy = Policy | Callable[[Array], ArrayLike]

S = TypeVar("S")

__all__ = ["Comparison", "Contrast", "Estimate", "compare", "evaluate"]


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
    bandwidths = evaluation.bandwidths(AveragedBiasPath() if bandwidth is None else bandwidth)
    point = evaluation.point(bandwidths)
    inference = (interval or RobustBiasCorrected()).infer(point, evaluation.over_rows)
    estimates = evaluation.estimates(point, inference, bandwidths)
    if not allow_untrusted:
        for estimate in estimates.values():
            estimate.diagnostics.require_trust()
    return Comparison(estimates=estimates, contrasts=_contrasts(list(estimates), point, inference))


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

    def bandwidths(self, bandwidth: BandwidthSelector | ArrayLike) -> list[Bandwidth | None]:
        """Return the bandwidth of each policy, None where the estimator has none."""
        everyone = range(len(self.policies))
        if not isinstance(self.estimator, SmoothedEstimator):
            return [None for _ in everyone]
        selector = as_selector(bandwidth)
        return [selector.select(self.problem(i, self.estimator)) for i in everyone]

    def point(self, bandwidths: Sequence[Bandwidth | None]) -> Joint:
        """Return the estimates of all policies, or say that there is no overlap."""
        d = self.log.dimension
        questions = [
            Question(self.estimator, i, Scale.of(1.0 if b is None else b.h, d))
            for i, b in enumerate(bandwidths)
        ]
        point = ask(questions, self.over_rows)
        for i in np.flatnonzero(point.tally.count == 0).tolist():
            raise NoOverlap(self._no_overlap(i, bandwidths[i]))
        return point

    def estimates(
        self, point: Joint, inference: Inference, bandwidths: Sequence[Bandwidth | None]
    ) -> dict[str, Estimate]:
        """Return the estimate of each policy by name."""
        method = self.method()
        return {
            name: Estimate(
                policy=name,
                value=float(point.values[i]),
                se=float(point.se[i]),
                rows=self.nuisances.n,
                ess=float(point.tally.ess[i]),
                method=method,
                bandwidth=bandwidths[i],
                confidence=inference.interval(i),
                diagnostics=diagnostics(point, inference, i),
            )
            for i, name in enumerate(self.names)
        }

    def method(self) -> dict[str, Any]:
        """Return how the estimates were made, as plain values."""
        touched = sum(block.touched * len(block.log) for block in self.prepared)
        return {
            "estimator": repr(self.estimator),
            "propensity": self._propensity_name(),
            "floor": self.nuisances.floor if self.estimator.uses_propensity else None,
            "floor_share": touched / self.nuisances.n,
            "outcome_model": None
            if self.nuisances.outcome is None
            else repr(self.nuisances.outcome.model),
        }

    def _propensity_name(self) -> str | None:
        if not self.estimator.uses_propensity:
            return None
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


def diagnostics(point: Joint, inference: Inference, i: int) -> Diagnostics:
    """Return the trust checks of estimate i."""
    tally = point.tally
    return Diagnostics(
        (
            *weight_checks(
                ess=float(tally.ess[i]),
                largest_share=float(tally.largest_share[i]),
                mean_weight=float(tally.mean[i]),
                mean_weight_se=float(tally.mean_se[i]),
                rows=tally.n,
            ),
            smoothing_check(float(point.values[i]), inference.interval(i)),
        )
    )


def _laid_out(estimator: Estimator, log: LoggedData) -> Estimator:
    """Return the estimator with what it takes from the log's doses, such as bin edges."""
    if not isinstance(estimator, Estimator):
        raise InvalidArgument(
            f"The `estimator` must be an estimator such as SelfNormalized(); got {estimator!r}."
        )
    return estimator.on(log.treatment) if isinstance(estimator, Discretized) else estimator


def _contrasts(
    names: Sequence[str], point: Joint, inference: Inference
) -> dict[tuple[str, str], Contrast]:
    """Return the paired difference of every ordered pair of policies."""
    c = point.covariance
    return {
        (names[a], names[b]): Contrast(
            a=names[a],
            b=names[b],
            difference=float(point.values[a] - point.values[b]),
            se=float(np.sqrt(max(c[a, a] + c[b, b] - 2 * c[a, b], 0.0))),
            confidence=inference.contrast(a, b),
        )
        for a, b in permutations(range(len(names)), 2)
    }


def _name(policy: object) -> str:
    return policy.__name__ if isinstance(policy, FunctionType) else type(policy).__name__
