"""The paper's own learner: minimize one estimate over the class, from many starts.

It overfits rather than gets stuck: the best of many restarts by the unpenalized value is often
worse than a typical one. Keep a penalty, and prefer the default procedure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.errors import DataError
from titrant.estimators import IPW, DirectMethod, SelfNormalized, SmoothedEstimator
from titrant.estimators.form import has_weighted_terms, is_built_in
from titrant.learn.search import Problem, statistics_of
from titrant.learn.setting import Learned, Procedure, cut, dose_range, dose_sd, outcome_sd
from titrant.optimize import LBFGS, Box, Constraint, Free, PolicyObjective, Scaled
from titrant.optimize.sums import Second
from titrant.policies import Constant, as_policy, doses

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass, PolicyClass
    from titrant.learn.search import Ranges
    from titrant.learn.setting import Progress
    from titrant.optimize import SearchStatistics
    from titrant.policies import Policy

    Searched = SmoothedEstimator | DirectMethod

ESTIMATORS = (
    "IPW(), SelfNormalized(), DoublyRobust() or DirectMethod(), or derived from `SmoothedEstimator`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CPO(Procedure):
    """Minimize v̂(β) + λ·SE + ridge‖β‖² by L-BFGS from seeded random starts.

    Value and SE are in units of sd(y). Parameters β are those of the policy class (of a linear
    policy: of standardized contexts), for d doses as a matrix (P, d), row by row.

    Parameters
    ----------
    estimator : IPW, SelfNormalized, DoublyRobust or DirectMethod, with kernel and clip; or one of
        your own derived from `SmoothedEstimator`, searched by its own terms
    bandwidth : in units of the dose, one number or one a dose; None is s·n^(−1/(4+d)), s the sd
        of the dose given the context
    se_weight, ridge, ess_floor : penalties; the ridge is on (β/s)²
    restarts, spread : random starts around the first, and how far they go in units of s
    start : a policy; the one of the class nearest to it is the first start. None is the mean dose
    constraint : a `Box` or `Ball` on the parameters of the class, or any convex set of your own
        with a `project`
    clipped : keep doses in the range that was logged (.5 to 99.5 %)
    seed : draws the starts
    rewards : whether the outcomes are negated rewards, which an estimator of your own is then shown
        as they were logged; `PolicyLearner(maximize=True)` sets it
    """

    estimator: Searched = field(default_factory=SelfNormalized)
    bandwidth: ArrayLike | None = None
    se_weight: float = 0.0
    ridge: float = 0.0
    ess_floor: float = 0.0
    restarts: int = 32
    spread: float = 1.0
    start: Policy | None = None
    constraint: Constraint = field(default_factory=Free)
    clipped: bool = True
    seed: int = 0
    rewards: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, (SmoothedEstimator, DirectMethod)):
            raise _check.invalid("estimator", "CPO", ESTIMATORS, self.estimator)
        constraint: object = self.constraint
        if not isinstance(constraint, Constraint):
            rule = "a constraint such as Box(lower, upper) or Ball(1.0)"
            raise _check.invalid("constraint", "CPO", rule, constraint)
        if self.bandwidth is not None:
            h = _check.finite_array(self.bandwidth, "bandwidth", "CPO", ndim=(0, 1))
            if not np.all(h > 0):
                raise _check.invalid("bandwidth", "CPO", "a finite number > 0", self.bandwidth)
        _check.count(self.restarts, "restarts", "CPO")
        _check.count(self.seed, "seed", "CPO", at_least=0)
        for name in ("se_weight", "ridge", "ess_floor", "spread"):
            _check.nonnegative(getattr(self, name), name, "CPO")
        if self.ess_floor and not has_weighted_terms(self.estimator):
            raise _check.invalid("ess_floor", "CPO", "0 without weights", self.ess_floor)

    def learn(
        self, log: LoggedData, q: Array, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the policy with the least penalized estimate found."""
        from titrant.evaluation.nuisance import floor_of  # noqa: PLC0415

        shown = self.shown_sign * log.outcome
        mean = float(shown.mean())
        center = self.center(mean)
        losses = log.with_outcome(shown - center)
        fitted, sd = policy_class.on(log), dose_sd(log)
        floor = floor_of(self.estimator, log.doses.std(axis=0))
        low, high = dose_range(log, policy_class.limits, tails=self.clipped)
        phi = fitted.features(log.context)
        problem = Problem(
            log=losses,
            q=self._floored(log, q, floor),
            phi=phi,
            unit=self.unit(sd),
            h=self.bandwidths(sd, len(log)),
            low=low,
            high=high,
            center=self.shown_center(mean),
            floor=floor,
        )
        progress("search", 0, 1)
        statistics = statistics_of(problem, self.estimator, self.second)
        objective = self.objective(statistics, fitted, problem, outcome_sd(losses))
        within = self.within(problem, phi.shape[1])
        starts = within.project(self._starts(problem))
        solution = LBFGS(constraint=within).minimize(objective, starts)
        progress("search", 1, 1)
        policy = cut(fitted.policy(problem.params(solution.params)), *problem.limits)
        report = self.report(problem, center, outcome_sd(problem.log))
        return Learned(policy=policy, solution=solution, report=report)

    def objective(
        self,
        statistics: Callable[[Array], SearchStatistics],
        fitted: FittedClass,
        ranges: Ranges,
        outcome_unit: float,
    ) -> PolicyObjective:
        """Return the penalized estimate as a function of the parameters."""
        return PolicyObjective(
            statistics=statistics,
            estimator=self.estimator,
            maximize=self.shown_sign < 0.0,
            se_weight=self.se_weight,
            ridge=self.ridge * np.repeat(fitted.penalized, len(ranges.unit)),
            ess_floor=self.ess_floor,
            scale=outcome_unit,
        )

    def within(self, ranges: Ranges, size: int) -> Scaled:
        """Return the constraint in the units of the search, for P = ``size`` features."""
        return Scaled(self.constraint, np.tile(ranges.unit, size))

    def center(self, mean_outcome: float) -> float:
        """Return what outcomes are counted from: their mean, if that cannot change the policy.

        It can with plain IPW, and may with an estimator of a user's own: these count from 0.
        """
        plain = isinstance(self.estimator, IPW) and not self.estimator.centered
        return 0.0 if plain or not is_built_in(self.estimator) else mean_outcome

    @property
    def shown_sign(self) -> float:
        """−1 where losses are turned back into the rewards that an estimator of one's own knows."""
        return -1.0 if self.rewards and not is_built_in(self.estimator) else 1.0

    def shown_center(self, mean_outcome: float) -> float:
        """Return the mean outcome as the estimator sees it: one of a user's own, as it is."""
        return 0.0 if is_built_in(self.estimator) else mean_outcome

    def _floored(self, log: LoggedData, q: Array, floor: float) -> Array:
        """Return the propensities (n,), floored; 1 for the direct method, which needs none."""
        if not self.estimator.uses_propensity:
            return np.ones(len(log))
        floored = np.maximum(q, floor)
        if not (floored > 0).all():
            raise DataError(
                f"The propensity is 0 in {int(np.sum(floored <= 0)):,} of {len(log):,} rows. "
                "Give the estimator a `clip` > 0 or check the propensity model."
            )
        return floored

    def unit(self, sd: Array) -> Array:
        """Return the units (d,) of the parameters: each dose's own, or one for all.

        One for all where the constraint ties parameters of several doses together.
        """
        apart = type(self.constraint) in (Free, Box)
        return sd if apart else np.full_like(sd, np.exp(np.mean(np.log(sd))))

    def bandwidths(self, sd: Array, n: int) -> Array:
        """Return the bandwidth of each dose (d,)."""
        if self.bandwidth is None:
            return np.asarray(sd * n ** (-1.0 / (4 + len(sd))))
        h = np.asarray(self.bandwidth, dtype=np.float64)
        if h.ndim and h.shape != sd.shape:
            raise _check.invalid("bandwidth", "CPO", f"one number or {len(sd)}", self.bandwidth)
        return np.broadcast_to(h, sd.shape)

    @property
    def second(self) -> Second:
        """Which second moments the penalties need."""
        if self.se_weight:
            return Second.ALL
        return Second.WEIGHTS if self.ess_floor else Second.NONE

    def _starts(self, problem: Problem) -> Array:
        """Return the first start and random ones around it (restarts, P·d), in the units."""
        phi, log = problem.phi, problem.log
        policy = Constant(log.doses.mean(axis=0)) if self.start is None else as_policy(self.start)
        start = doses(policy, log.context, log.dimension, log.names)
        first: Array = np.asarray(np.linalg.lstsq(phi, start, rcond=None)[0])
        return self.around(first, np.mean(phi**2, axis=0), problem.unit)

    def around(self, first: Array, squares: Array, unit: Array) -> Array:
        """Return a start (P, d) and random ones around it (restarts, P·d), in the units.

        ``squares`` (P,) are the mean squares of the features.
        """
        size = np.sqrt(squares * len(squares))
        noise = np.random.default_rng(self.seed).standard_normal((self.restarts, *first.shape))
        noise[0] = 0.0
        around = self.spread * noise / np.where(size > 0, size, 1.0)[:, None]
        return np.asarray(first / unit + around).reshape(self.restarts, -1)

    def report(self, ranges: Ranges, center: float, outcome_unit: float) -> dict[str, object]:
        """Return every choice as plain values."""
        return {
            "procedure": "continuous policy optimizer",
            "objective": repr(self.estimator),
            "bandwidth": ranges.h.tolist() if len(ranges.h) > 1 else float(ranges.h[0]),
            "se_weight": self.se_weight,
            "ridge": self.ridge,
            "ess_floor": self.ess_floor,
            "constraint": repr(self.constraint),
            "restarts": self.restarts,
            "start": "mean dose" if self.start is None else repr(self.start),
            "seed": self.seed,
            "dose_range": [ranges.low.tolist(), ranges.high.tolist()],
            "dose_unit": ranges.unit.tolist(),
            "outcome_center": center,
            "outcome_unit": outcome_unit,
        }
