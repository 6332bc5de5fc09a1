"""The paper's own learner: minimize one estimate over the class, from many starts.

It overfits rather than gets stuck: the best of many restarts by the unpenalized value is often
worse than a typical one. Keep a penalty, and prefer the default procedure.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.estimators import IPW, DirectMethod, SelfNormalized, SmoothedEstimator
from titrant.estimators.form import has_weighted_terms, is_built_in
from titrant.evaluation.models.fitting import fitted_outcome, folding_numbers
from titrant.evaluation.models.nuisance import Nuisances, floor_of
from titrant.execute.engine import pinned
from titrant.execute.installed import installed
from titrant.learn.search import PolicySearch, nearest
from titrant.learn.setting import Learned, Procedure, cut, dose_scales, range_between
from titrant.optimize import LBFGS, Checkpoint, Constraint, Free, PolicyObjective, Scaled, Second
from titrant.optimize.constraints import ties_no_parameters
from titrant.policies import ParametricPolicy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.learn.classes import FittedClass, PolicyClass
    from titrant.learn.search import Searched
    from titrant.learn.setting import Progress, TrainingLog
    from titrant.outcome import CrossFit
    from titrant.policies import Policy

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
    start : a policy; the one of the class nearest to it is the first start. None is the mean dose,
        or a policy of your own as it was given
    constraint : a `Box` or `Ball` on the parameters of the class, or any convex set of your own
        with a `project`
    clipped : keep doses in the range that was logged (.5 to 99.5 %)
    seed : draws the starts
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
        self, training: TrainingLog, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the policy with the least penalized estimate found.

        The objective is a function of sums over rows: in memory of all rows at once, else with one
        pass over the log for each step of all restarts together.
        """
        fitted = policy_class.fitted(training.survey)
        search = self._search(training, fitted, policy_class)
        unit = training.survey.outcome_sd or 1.0
        progress("search", 0, 1)
        within = Scaled(self.constraint, search.units)
        starts = within.project(self._starts(training, search))
        minimizer = LBFGS(constraint=within, checkpoint=self._checkpoint(training, search, starts))
        objective = PolicyObjective(
            statistics=search.over(training.log, training.engine),
            estimator=self.estimator,
            maximize=training.maximize and not is_built_in(self.estimator),
            se_weight=self.se_weight,
            ridge=self.ridge
            * np.repeat(fitted.penalized, len(search.units) // len(fitted.penalized)),
            ess_floor=self.ess_floor,
            scale=unit,
        )
        solution = minimizer.minimize(objective, starts)
        progress("search", 1, 1)
        policy = cut(fitted.policy(search.params(solution.params)), *search.limits)
        report = self._report(search, unit) | self._rows(training)
        return Learned(policy=policy, solution=solution, report=report)

    def _search(
        self, training: TrainingLog, fitted: FittedClass, policy_class: PolicyClass
    ) -> PolicySearch:
        """Return what is summed over rows: all scales are known before the search begins.

        Outcomes are counted from their mean where that cannot change the policy. It can with plain
        IPW, and may with an estimator of a user's own, which is shown them as they were logged.
        """
        survey, estimator = training.survey, self.estimator
        own = not is_built_in(estimator)
        sign = -1.0 if training.maximize and not own else 1.0
        mean = sign * survey.center
        plain = isinstance(estimator, IPW) and not estimator.centered
        center = 0.0 if plain or own else mean
        sd, ends = dose_scales(training)
        low, high = range_between(
            survey.possible, policy_class.limits, ends if self.clipped else None
        )
        return PolicySearch(
            fitted=fitted,
            estimator=estimator,
            second=Second.ALL if self.se_weight else Second(int(self.ess_floor > 0)),
            unit=self._unit(sd),
            h=self._bandwidths(sd, survey.n),
            low=low,
            high=high,
            ends=ends,
            model=self._model(training, sign, center),
            keys=survey.keys,
            nuisances=self._propensities(training),
            floor=floor_of(estimator, survey.spread),
            sign=sign,
            center=center,
            shown_center=mean if own else 0.0,
        )

    def _model(self, training: TrainingLog, sign: float, center: float) -> CrossFit | None:
        """Return the outcome model, cross-fitted on the rows that are in memory."""
        sample = training.survey.sample
        shown = sample.log.with_outcome(sign * sample.log.outcome - center)
        numbers = folding_numbers(shown, sample.numbers_if_some, training.survey.keys)
        return fitted_outcome(shown, self.estimator, numbers)

    def _propensities(self, training: TrainingLog) -> Nuisances | None:
        """Return where propensities come from, with the floor of the estimator; None if unused."""
        if not self.estimator.uses_propensity:
            return None
        floored = SelfNormalized(clip=floor_of(self.estimator, training.survey.spread))
        return Nuisances.of(training.log, floored, training.propensity, training.survey)

    def _unit(self, sd: Array) -> Array:
        """Return the units (d,) of the parameters: each dose's own, or one for all.

        One for all where the constraint ties parameters of several doses together.
        """
        apart = ties_no_parameters(self.constraint)
        return sd if apart else np.full_like(sd, np.exp(np.mean(np.log(sd))))

    def _bandwidths(self, sd: Array, n: int) -> Array:
        """Return the bandwidth of each dose (d,)."""
        if self.bandwidth is None:
            return np.asarray(sd * n ** (-1.0 / (4 + len(sd))))
        h = np.asarray(self.bandwidth, dtype=np.float64)
        if h.ndim and h.shape != sd.shape:
            raise _check.invalid("bandwidth", "CPO", f"one number or {len(sd)}", self.bandwidth)
        return np.broadcast_to(h, sd.shape)

    def _starts(self, training: TrainingLog, search: PolicySearch) -> Array:
        """Return the first start and random ones around it (restarts, K), in the units."""
        unit, rng = search.unit, np.random.default_rng(self.seed)
        noise = rng.standard_normal((self.restarts, len(search.units)))
        noise[0] = 0.0
        if not search.fitted.affine:
            first = self._own_start(search.fitted.searched(unit))
            return np.asarray(first + self.spread * np.exp(np.mean(np.log(unit))) * noise)
        near, squares = nearest(
            search.fitted, self.start, training.survey.mean_dose, training.log, training.engine
        )
        size = np.repeat(np.sqrt(squares * len(squares)), len(unit))
        around = self.spread * noise / np.where(size > 0, size, 1.0)
        return np.asarray((near / unit).ravel() + around)

    def _own_start(self, given: ParametricPolicy) -> Array:
        """Return where the search for a policy of a user's own begins (P,)."""
        if self.start is None:
            return given.params
        if not isinstance(self.start, ParametricPolicy) or type(self.start) is not type(given):
            rule = f"None or a `{type(given).__name__}`, as the policy to learn"
            raise _check.invalid("start", "CPO", rule, self.start)
        return self.start.params

    def _checkpoint(
        self, training: TrainingLog, search: PolicySearch, starts: Array
    ) -> Checkpoint | None:
        """Return where the state of this search is kept, if it is, and what it is about.

        Besides the starts titrant, the settings and every row determine it. Two functions of a
        user's own may look the same when they are printed. So what the search computes from the
        rows in memory at its starts belongs to it as well: it shows another density, outcome model
        or estimator.
        """
        if training.checkpoint is None:
            return None
        survey, log = training.survey, training.log
        sample, nuisances = survey.sample.log, search.nuisances
        with pinned():
            at_start = search(starts, sample)
        numbers = (search.unit, search.h, search.low, search.high, search.ends, search.center)
        content = sha256()
        for array in (*numbers, at_start.z, at_start.dz, at_start.zz, at_start.dzz):
            content.update(np.ascontiguousarray(array).tobytes())
        rows = f"{survey.n} rows {survey.digest:016x} of {log.names!r}, reward {training.maximize}"
        model = None if nuisances is None else nuisances.propensity
        about = f"{installed()} {rows} {self!r} {search.fitted!r} {model!r} {content.hexdigest()}"
        return Checkpoint(os.fspath(training.checkpoint), about)

    def _report(self, search: PolicySearch, outcome_unit: float) -> dict[str, object]:
        """Return every choice as plain values."""
        return {
            "procedure": "continuous policy optimizer",
            "objective": repr(self.estimator),
            "bandwidth": search.h.tolist() if len(search.h) > 1 else float(search.h[0]),
            "se_weight": self.se_weight,
            "ridge": self.ridge,
            "ess_floor": self.ess_floor,
            "constraint": repr(self.constraint),
            "restarts": self.restarts,
            "start": "mean dose" if self.start is None else repr(self.start),
            "seed": self.seed,
            "dose_range": [search.low.tolist(), search.high.tolist()],
            "dose_unit": search.unit.tolist(),
            "outcome_center": search.center,
            "outcome_unit": outcome_unit,
        }

    def _rows(self, training: TrainingLog) -> dict[str, object]:
        """Return the number of rows, and on how many models were fitted if not on all."""
        sample = training.survey.sample
        modeled = self.estimator.uses_outcome_model or not training.log.has_propensity
        fitted_on = {} if sample.whole or not modeled else {"models_fitted_on": len(sample.log)}
        return {"rows": sample.of, **fitted_on}
