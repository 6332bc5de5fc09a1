"""The one page where the rooms meet for learning: a log in, a policy and its honest value out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator

from titrant.errors import InvalidArgument
from titrant.evaluation import compare
from titrant.learn.classes import class_of
from titrant.learn.honest import LEARNED, MEAN_DOSE, STATUS_QUO, HonestValue
from titrant.learn.stacked import StackedDR
from titrant.nuisance import Nuisances
from titrant.policies import Constant, StatusQuo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.estimators import Estimator
    from titrant.evaluation import AnyPolicy
    from titrant.inference.results import Comparison, Estimate
    from titrant.learn.classes import PolicyClass
    from titrant.learn.procedure import Learned, Procedure
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel


class PolicyLearner(BaseEstimator):
    """Learn a dosing policy from a log, with an honest value against the status quo.

    Parameters
    ----------
    policy : what kind of policy: `Linear()` unless given; `Constant(0)`, an `RBF`, or a policy
        class of `titrant.learn.classes`
    procedure : how it is learned: `StackedDR()` unless given; `CPO(...)` is the paper's
    propensity : a model of f(t | x) to fit; unless given, the log's own column if it has one
    maximize : whether the outcome is a reward
    safe : keep the status quo unless the improvement's interval excludes zero
    against : policies by name to compare the learned one with, besides status quo and mean dose
    grade : the estimator of the honest value: `DoublyRobust()` unless given
    honest : whether to compute the honest value, which learns twice more on halves of the log
    seed : draws the halves
    progress : called with a stage, the steps done and the steps in all

    Attributes
    ----------
    policy_ : the learned policy, or the status quo when ``safe`` kept it
    learned_ : what the procedure learned on all rows, with its report
    estimate_ : the `HonestValue`, or None without ``honest``
    solution_ : the search behind the policy
    deployed_ : whether ``policy_`` is the learned policy
    """

    def __init__(
        self,
        *,
        policy: Policy | PolicyClass | None = None,
        procedure: Procedure | None = None,
        propensity: PropensityModel | None = None,
        maximize: bool = False,
        safe: bool = False,
        against: Mapping[str, AnyPolicy] | None = None,
        grade: Estimator | None = None,
        honest: bool = True,
        seed: int = 0,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.policy = policy
        self.procedure = procedure
        self.propensity = propensity
        self.maximize = maximize
        self.safe = safe
        self.against = against
        self.grade = grade
        self.honest = honest
        self.seed = seed
        self.progress = progress

    def fit(self, log: LoggedData) -> Self:
        """Learn on all rows; grade by halves; keep the status quo if asked to be safe."""
        if self.safe and not self.honest:
            raise InvalidArgument("`safe=True` needs `honest=True`: it rests on the honest value.")
        self.learned_ = self._learn(log)
        self.estimate_ = self._honest_value(log) if self.honest else None
        self.deployed_ = not self.safe or (self.estimate_ is not None and self.estimate_.improves())
        self.policy_ = self.learned_.policy if self.deployed_ else StatusQuo()
        self.solution_ = self.learned_.solution
        self.log_ = log
        return self

    def predict(self, X: Array) -> Array:
        """Return the doses of the policy for contexts X (n, p)."""
        return self.policy_(np.asarray(X, dtype=np.float64))

    def in_sample_estimate(self) -> Estimate:
        """Return the value on the rows the policy was learned from: optimistic, for comparison."""
        name = "learned, in-sample"
        found = compare(
            self.log_,
            {name: self.learned_.policy},
            estimator=self.grade,
            propensity=self.propensity,
            allow_untrusted=True,
        )
        return found[name]

    def _learn(self, log: LoggedData) -> Learned:
        losses = log.with_outcome(-log.outcome) if self.maximize else log
        procedure = StackedDR() if self.procedure is None else self.procedure
        q = propensities(log, self.propensity)
        return procedure.learn(losses, q, class_of(self.policy), self.progress or _silent)

    def _honest_value(self, log: LoggedData) -> HonestValue:
        from titrant.outcome import fold_of  # noqa: PLC0415

        half = fold_of(log.first_row, len(log), 2, self.seed)
        first, second = log.rows(half == 0), log.rows(half == 1)
        parts = (self._graded(first, second), self._graded(second, first))
        return HonestValue(parts, self.maximize)

    def _graded(self, learned_on: LoggedData, graded_on: LoggedData) -> Comparison:
        """Return the comparison on one half of the policy learned on the other."""
        policies = {
            LEARNED: self._learn(learned_on).policy,
            STATUS_QUO: StatusQuo(),
            MEAN_DOSE: Constant(learned_on.treatment.mean(axis=0)),
            **(self.against or {}),
        }
        return compare(
            graded_on,
            policies,
            estimator=self.grade,
            propensity=self.propensity,
            allow_untrusted=True,
        )


def propensities(log: LoggedData, propensity: PropensityModel | None) -> Array:
    """Return the propensities of the logged doses (n,), from the column or a fitted model."""
    from titrant.estimators import SelfNormalized  # noqa: PLC0415

    nuisances = Nuisances.of(log, SelfNormalized(clip=0.0), propensity)
    q = nuisances.prepare(log).q
    if q is None:
        raise InvalidArgument("The log has no propensities and no model was given.")
    return q


def _silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""
