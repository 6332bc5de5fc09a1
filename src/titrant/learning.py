"""The one page where the rooms meet for learning: a log in, a policy and its honest value out."""

from __future__ import annotations

import warnings
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from titrant import _check, _drawing
from titrant.data.columns import named_table
from titrant.data.validate import first_rows, listed, of_rows
from titrant.errors import InvalidArgument, NoOverlap
from titrant.estimators import DoublyRobust, Estimator
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.fitting import (
    check_work,
    takes_default_outcome,
    takes_default_propensity,
)
from titrant.evaluation.survey import check_log
from titrant.execute.engine import pinned
from titrant.inference import Verdict
from titrant.learn.classes import ClippedClass, class_of
from titrant.learn.honest import LEARNED, MEAN_DOSE, STATUS_QUO, HonestValue
from titrant.learn.limits import LimitedClass, Limits
from titrant.learn.limits.levels import LevelSteps
from titrant.learn.setting import Procedure, TrainingLog, one_or_more, silent
from titrant.learn.stacked import StackedDR
from titrant.learn.vector import VectorDR
from titrant.policies import Additive, Constant, StatusQuo, TrainingRange, save_learned
from titrant.policies.advice import advice
from titrant.policies.base import is_exactly
from titrant.policies.calling import called, check_features, contexts_for, recommended
from titrant.policies.clipped import unwrapped
from titrant.policies.given import bound_to

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.evaluation.survey import Survey
    from titrant.execute import Engine
    from titrant.inference.results import Comparison, Estimate
    from titrant.learn.choice import ClassChoice
    from titrant.learn.classes import PolicyClass
    from titrant.learn.limits import LimitsFound
    from titrant.learn.setting import Learned, Progress
    from titrant.policies import Policy
    from titrant.policies.advice import Recommended
    from titrant.policies.points import Points
    from titrant.propensity import PropensityModel

IN_SAMPLE = "learned, in-sample"
"""The name of an estimate on the rows that the policy was learned from."""
EVERY, FIRST, SECOND = "all rows", "first half", "second half"
PROCEDURES = "a procedure such as StackedDR() or CPO()"
FITS = 4.0
"""Learning and grading fit models of the size of one evaluation about so often."""
SAFE_LEVELS = (Verdict.OK.value, Verdict.WARN.value)
"""The worst verdict on the honest value with which a safe learner deploys its policy."""


class PolicyLearner(BaseEstimator):
    """Learn a dosing policy from a log, with an honest value against the status quo.

    Parameters
    ----------
    policy : what kind of policy: `Linear()`, `Constant(0)`, an `RBF`, one of them `Clipped`, or a
        policy class such as `TreeClass()`. Unless given, `Automatic()` chooses the class, but
        `CPO(...)` learns a line. With ``features`` the policy uses these contexts of the log, in
        this order; the others still serve to adjust
    procedure : how it is learned: `StackedDR()` unless given (for vector doses its relative
        `VectorDR()`); `CPO(...)` is the paper's
    propensity : a model of f(t | x) to fit; unless given, the log's own column if it has one
    limits : the `Limits` that the rule must keep to: steps, limits of each row, a budget, …; the
        rule is learned and graded within them. Where logged doses are levels, such as list prices,
        and no steps are given, `StackedDR` takes the levels that have enough rows
    maximize : whether the outcome is a reward; unless given, as the log says, else it is a loss
    safe : keep the status quo unless the improvement's interval excludes zero and the verdict on
        the honest value is good enough
    safe_level : how good: "ok", or "warn" to deploy in spite of warnings; never when it is refused
        or a warning bears on confounding, see `titrant.inference.trust.rules.CONFOUNDING`
    against : policies by name to compare the learned one with, besides status quo and mean dose
    grade : the estimator of the honest value: `DoublyRobust()` unless given
    honest : whether to compute the honest value, which learns twice more on halves of the log
    seed : draws the halves
    progress : called with a stage, the steps done and the steps in all
    ignore_doubts : tell what is doubtful about columns in notes, which lower no verdict
    executor : where partitions of the log are worked on, see `evaluate`
    checkpoint : a folder that keeps the state of a search by `CPO`, so that a search that was
        stopped goes on where it was; see `titrant.optimize.Checkpoint`

    Attributes
    ----------
    policy_ : the learned policy, or the status quo when ``safe`` kept it
    learned_ : what the procedure learned on all rows, with its report
    estimate_ : the `HonestValue`, or None without ``honest``
    solution_ : the search behind the policy
    choice_ : the `ClassChoice`: how other classes compare on rows held out, and what a richer rule
        would gain; None where the procedure does not measure that
    limits_ : the `LimitsFound`: where limits bind and what each costs; None without ``limits``
    deployed_ : whether ``policy_`` is the learned policy
    stopped_by_ : names of the checks for which ``safe`` kept the status quo, although the bound of
        the improvement excludes zero
    decision_ : why, in a sentence
    notes_ : what the learner chose by itself, in sentences

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> age, noise = rng.uniform(30, 70, 500), rng.normal(size=(2, 500))
    >>> dose = 20 + 0.3 * age + 4 * noise[0]
    >>> loss = (dose - 0.7 * age) ** 2 / 40 + noise[1]
    >>> table = {"age": age, "dose": dose, "loss": loss}
    >>> log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context="age")
    >>> from titrant.outcome import ridge_pair
    >>> quick = {"procedure": tt.StackedDR(models=ridge_pair()), "grade": tt.SelfNormalized()}
    >>> learner = tt.PolicyLearner(policy=tt.Linear(), propensity=tt.LinearGaussian(), **quick)
    >>> learner.fit(log).decision_
    'The improvement over the status quo is 0.9098; the one-sided 95% bound is 0.6843, which ...'
    >>> learner.predict({"age": [40.0, 60.0]}).round(1)
    array([27.9, 42.2])
    >>> learner.estimate_  # on rows that it was not learned from
    HonestValue(honest value 0.02065  95% CI -0.2389 … 0.2802  against the status quo -0.9098 ...)
    """

    def __init__(
        self,
        *,
        policy: Policy | PolicyClass | None = None,
        procedure: Procedure | None = None,
        propensity: PropensityModel | None = None,
        limits: Limits | None = None,
        maximize: bool | None = None,
        safe: bool = False,
        safe_level: str = Verdict.OK.value,
        against: Mapping[str, AnyPolicy] | None = None,
        grade: Estimator | None = None,
        honest: bool = True,
        seed: int = 0,
        progress: Callable[[str, int, int], None] | None = None,
        ignore_doubts: bool = False,
        executor: Executor | Engine | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.policy = policy
        self.procedure = procedure
        self.propensity = propensity
        self.limits = limits
        self.maximize = maximize
        self.safe = safe
        self.safe_level = safe_level
        self.against = against
        self.grade = grade
        self.honest = honest
        self.seed = seed
        self.progress = progress
        self.ignore_doubts = ignore_doubts
        self.executor = executor
        self.checkpoint = checkpoint

    @pinned()
    def fit(self, log: Source) -> Self:
        """Learn on all rows; grade by halves; keep the status quo if asked to be safe.

        On files (`scan_parquet`), `CPO` searches over all rows, one pass a step; any other
        procedure learns from a sample of the rows, whose size its report states, and so does `CPO`
        where rows have weights. The honest value is over all rows.
        """
        whole = self._begin(log)
        log = whole.log
        self.learned_ = self._learn(whole, whole, EVERY)
        self.estimate_ = self._honest_value(whole) if self.honest else None
        self.deployed_ = not self.safe or self._is_safe()
        self.stopped_by_ = self._stopped_by()
        self.decision_ = self._decision()
        self.policy_ = self.learned_.policy if self.deployed_ else StatusQuo()
        self.solution_ = self.learned_.solution
        self.choice_ = self._choice()
        self.limits_ = self._limits()
        self.notes_ = (*self.learned_.report.get("notes", ()), *self._doubts(whole.survey))
        self.source_ = log
        self.survey_ = whole.survey
        survey = whole.survey
        people = self.learned_.people if self.deployed_ else None
        self.range_ = TrainingRange(
            log.names, *survey.context_ends, survey.n, survey.recipe, people
        )
        return self

    def predict(self, X: object) -> Array:
        """Return the doses of the policy for contexts X: (n,), or (n, d) for d doses.

        X is a pandas, polars or Arrow table or a dict of columns, in which the policy finds its
        contexts by name, with gaps filled as in the log it was learned from, or an array (n, p)
        with the columns in the order of ``policy_.features``. A text that the log did not have
        gets the dose of the reference, with a warning.
        """
        check_is_fitted(self, "policy_")
        table = named_table(X)
        if table is None:
            return recommended(self.policy_, X, recipe=self.range_.recipe)
        levels = self.range_.texts_of(self.policy_.features or ()) if self.range_.levels else {}
        for name, rows in table.unseen(levels).items() if levels else ():
            if rows.any():
                warnings.warn(
                    f"The column `{name}` has a text that the policy was not learned from, none of "
                    f"{listed(levels[name])}, in {of_rows(rows)} ({first_rows(rows)}): these get "
                    f"the dose of `{levels[name][0]}`. Check them.",
                    stacklevel=2,
                )
        return recommended(self.policy_, table.frame, recipe=self.range_.recipe)

    def recommend(
        self, X: object, *, margin: float | None = None, current: ArrayLike | None = None
    ) -> Recommended:
        """Return for each row of X its dose, doses as good, whether that was seen, and the reason.

        Doses are as good if by the outcome models they lose at most ``margin`` more in the group of
        people most alike; a twentieth of the outcome's sd unless given. A row that is unlike all
        of the log, or whose dose was not given to those alike, gets none, or with ``current`` (n,)
        the current one. X is as for `predict`.
        """
        check_is_fitted(self, "policy_")
        features, who = self.policy_.features, called(self.policy_)
        x = contexts_for(features, X, who, recipe=self.range_.recipe)
        ranges = None if features is None else self.range_.of_features(features)
        strange = np.zeros(len(x), dtype=np.bool_)
        if ranges is not None and features:
            strange = np.asarray(ranges.beyond(x).any(axis=1))
            table, levels = named_table(X), ranges.texts_of(features) if ranges.levels else {}
            if table is not None and levels:
                strange = np.any([strange, *table.unseen(levels).values()], axis=0)
        now = None if current is None else np.asarray(current, dtype=np.float64)
        people = self.range_.people
        return advice(self.policy_, x, people, strange, margin=margin, current=now)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy and the ranges of the contexts it was learned on, as JSON.

        `load_policy` reads the policy back; `titrant recommend` marks rows outside the ranges.
        """
        check_is_fitted(self, "policy_")
        save_learned(self.policy_, self.range_, path)

    def plot(self, ax: Axes | None = None, *, context: str | None = None, dose: int = 0) -> Axes:
        """Draw logged doses and those of the learned policy against a context; return the axes.

        The context is the one that the policy's dose goes with most, unless named; ``dose`` says
        which, if there are several.
        """
        check_is_fitted(self, "policy_")
        log, policy = self.survey_.sample.log, self.learned_.policy
        learned = policy.of_rows(log)[:, dose]
        drawn, label = _drawing.new_axes(ax), self.source_.about.dose(dose)
        if context is None and not log.names:
            row = np.arange(0.0, len(log))
            return _drawing.learned_doses(
                drawn, row, log.doses[:, dose], learned, "row", label=label
            )
        name = _main_context(log, learned) if context is None else context
        if name not in log.names:
            rule = f"one of the log's contexts, {', '.join(log.names) or 'of which it has none'}"
            raise _check.invalid("context", "PolicyLearner.plot", rule, name)
        x = log.context[:, log.names.index(name)]
        return _drawing.learned_doses(drawn, x, log.doses[:, dose], learned, name, label=label)

    def points(self) -> Points:
        """Return what contexts add to the dose by a learned rule with curves, at round values.

        It prints and is shown as a table, `to_frame` has every point, and ``plot("age")`` draws a
        curve. Limits and steps come after what the points say.
        """
        check_is_fitted(self, "policy_")
        inside = unwrapped(self.learned_.policy)
        if not is_exactly(inside, Additive):
            raise InvalidArgument(
                f"Points are those of curves, and the learned rule is of the class "
                f"`{type(inside).__name__}`. Ask for curves by `policy=AdditiveClass()`."
            )
        return inside.points(self.survey_.sample.log)

    def in_sample_estimate(self) -> Estimate:
        """Return the value on the rows the policy was learned from: optimistic, for comparison."""
        check_is_fitted(self, "policy_")
        policies = {IN_SAMPLE: self.learned_.policy}
        return self._compared(self.source_, policies, self.survey_)[IN_SAMPLE]

    def _repr_html_(self) -> str:
        """Return the decision, the honest value and the policy; before `fit`, the parameters."""
        if "policy_" not in vars(self):
            from sklearn.utils import estimator_html_repr  # noqa: PLC0415

            return str(estimator_html_repr(self))
        grades = "" if self.estimate_ is None else self.estimate_._repr_html_()
        rule = f"<p><code>{escape(repr(self.policy_))}</code></p>"
        return f"<p>{escape(self.decision_)}</p>{grades}{rule}"

    def _repr_mimebundle_(self, include: object, exclude: object) -> dict[str, str]:  # noqa: ARG002
        """Return what a notebook shows, which asks for this before `_repr_html_`."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _begin(self, log: Source) -> TrainingLog:
        """Return the log as parts of learning see it, checked, with ``against`` bound to it."""
        check_log(log)
        log, self.against_ = bound_to(log, self.against or {})
        self._check(log)
        return TrainingLog.of(
            log,
            propensity=self.propensity,
            maximize=log.about.direction(self.maximize, "PolicyLearner"),
            executor=self.executor,
            checkpoint=self.checkpoint,
        )

    def _check(self, log: Source) -> None:
        """Refuse what cannot work, or not in minutes, before any work is done."""
        if self.safe_level not in SAFE_LEVELS:
            rule = f"one of {', '.join(map(repr, SAFE_LEVELS))}"
            raise _check.invalid("safe_level", "PolicyLearner", rule, self.safe_level)
        self._check_work(log)
        if self.safe and not self.honest:
            raise InvalidArgument("`safe=True` needs `honest=True`: it rests on the honest value.")
        if self.limits is not None:
            if not isinstance(self.limits, Limits):
                raise _check.invalid("limits", "PolicyLearner", "a `Limits`", self.limits)
            self.limits.check(log)
        if self.procedure is not None and not isinstance(self.procedure, Procedure):
            raise _check.invalid("procedure", "PolicyLearner", PROCEDURES, self.procedure)
        _check.count(self.seed, "seed", "PolicyLearner", at_least=0)
        taken = {LEARNED, STATUS_QUO, MEAN_DOSE} & set(self.against or {})
        if taken:
            rule = f"policies under names of their own, not {' or '.join(map(repr, taken))}"
            raise _check.invalid("against", "PolicyLearner", rule, sorted(self.against or {}))
        for name, policy in self.against_.items():
            check_features(policy, log.names, f"policy `{name}`")

    def _check_work(self, log: Source) -> None:
        """Refuse more contexts than the default models of learning and grading can take."""
        grade = DoublyRobust() if self.grade is None else self.grade
        procedure = StackedDR() if self.procedure is None else self.procedure
        library = isinstance(procedure, StackedDR) and procedure.models is None
        graded = self.honest and isinstance(grade, Estimator) and takes_default_outcome(grade)
        propensity = takes_default_propensity(log, DoublyRobust(), self.propensity)
        check_work(log, outcome=library or graded, propensity=propensity, times=FITS)

    def _learn(self, rows: TrainingLog, whole: TrainingLog, where: str) -> Learned:
        """Return what is learned on some rows of a log, within the bounds of all of them."""
        every, rows = rows, rows.even()
        procedure = self.procedure
        if procedure is None:
            procedure = default_procedure(rows.survey.sample.log)
        policy_class = procedure.usual_class if self.policy is None else class_of(self.policy)
        if whole.log.bounded:
            policy_class = ClippedClass(policy_class, *map(one_or_more, whole.survey.possible))
        levels = None
        if isinstance(procedure, StackedDR):
            levels = LevelSteps.of(whole.survey, self.limits, policy_class)
        limits = self.limits if levels is None else levels.limits
        if limits is not None:
            half = {FIRST: 0, SECOND: 1}.get(where)
            kept = limits if half is None else limits.of_half(half, self.seed)
            told = half is None and self.limits is not None
            policy_class = LimitedClass(policy_class, kept, told=told)
        learned = procedure.learn(rows, policy_class, self._reporter(where))
        if levels is not None:
            policy = levels.graded(learned.policy, rows.survey.sample.log)
            learned = replace(learned, policy=policy).noted([levels.note(policy)])
        if rows is every:
            return learned
        on = learned.report.get("learned_on", len(rows.log))
        drawn = {"learned_on": on, "rows": every.survey.n}
        return replace(learned, report={**learned.report, **drawn})

    def _honest_value(self, whole: TrainingLog) -> HonestValue:
        first, second = whole.halves(self.seed)
        by_second, of_first = self._graded(first, second, whole, FIRST)
        by_first, of_second = self._graded(second, first, whole, SECOND)
        return HonestValue((by_second, by_first), whole.maximize, (of_first, of_second))

    def _graded(
        self, learned_on: TrainingLog, graded_on: TrainingLog, whole: TrainingLog, where: str
    ) -> tuple[Comparison, Policy]:
        """Return the comparison on one half of the policy learned on the other, and that policy."""
        mean = one_or_more(np.clip(learned_on.survey.mean_dose, *whole.survey.possible))
        policy = self._learn(learned_on, whole, where).policy
        policies = {
            LEARNED: policy,
            STATUS_QUO: StatusQuo(),
            MEAN_DOSE: Constant(mean),
            **self.against_,
        }
        report = self._reporter(where)
        report("grading", 0, 1)
        graded = self._compared(graded_on.log, policies, whole.survey)
        report("grading", 1, 1)
        return graded, policy

    def _compared(
        self, log: Source, policies: Mapping[str, AnyPolicy], judged_by: Survey
    ) -> Comparison:
        """Return the comparison of all policies; raise if no row is near one of them."""
        evaluation = Evaluation.of(
            log,
            policies,
            self.grade,
            self.propensity,
            self.executor,
            ignore_doubts=self.ignore_doubts,
            judged_by=judged_by,
        )
        found = evaluation.compare(allow_untrusted=True)
        for name, reason in found.refused.items():
            doubts = (one.message for one in judged_by.outcome_doubts if not isinstance(one, str))
            raise NoOverlap(" ".join([f"Policy {name!r} cannot be graded. {reason}", *doubts]))
        return found

    def _choice(self) -> ClassChoice | None:
        """Return how the class was chosen, with the honest value of all that."""
        choice, honest = self.learned_.choice, self.estimate_
        if choice is None or honest is None:
            return choice
        return choice.graded(honest.value, honest.se)

    def _doubts(self, survey: Survey) -> list[str]:
        """Return what is doubtful about doses and outcomes, unless the honest value tells it."""
        if self.estimate_ is not None:
            return []
        return [one if isinstance(one, str) else one.message for one in survey.outcome_doubts]

    def _limits(self) -> LimitsFound | None:
        """Return what limits do to the rule, with the honest mean of a second outcome."""
        found, honest = self.learned_.limits, self.estimate_
        cap = None if self.limits is None else self.limits.cap
        if found is None or honest is None or cap is None:
            return found
        survey = TrainingLog.of(cap.log, executor=self.executor).survey
        # The policy of the first half is graded on the second, and the other way round.
        halves = tuple(
            self._compared(cap.of_half(half, self.seed).log, {LEARNED: policy}, survey)
            for half, policy in zip((1, 0), honest.policies, strict=True)
        )
        second = HonestValue(halves, maximize=False)
        return found.graded(second.value, second.se)

    def _is_safe(self) -> bool:
        """Return whether the learned policy is clearly better, by an estimate worth relying on."""
        worst = Verdict(self.safe_level)
        honest = self.estimate_
        return honest is not None and honest.improves() and honest.objection(worst) is None

    def _stopped_by(self) -> tuple[str, ...]:
        """Return the checks without which the learned policy would have been deployed."""
        if self.deployed_ or self.estimate_ is None or self.estimate_.gain()[1] <= 0.0:
            return ()
        found = self.estimate_.objections(Verdict(self.safe_level))
        return tuple(check.name for check in found)

    def _decision(self) -> str:
        """Return whether to deploy the learned policy, and why, in a sentence."""
        if self.estimate_ is None:
            return "The learned policy was not compared with the status quo (`honest=False`)."
        if not self.safe:
            return self.estimate_.finding()
        finding = self.estimate_.finding(worst=Verdict(self.safe_level))
        what = "Deploy the learned policy" if self.deployed_ else "Keep the status quo"
        return f"{what}. {finding}"

    def _reporter(self, where: str) -> Progress:
        """Return the user's callback with the rows at work before each stage."""
        progress = self.progress
        if progress is None:
            return silent
        return lambda stage, done, total: progress(f"{where}: {stage}", done, total)


def _main_context(log: LoggedData, doses: Array) -> str:
    """Return the context with the largest correlation with doses (n,)."""
    x, t = log.context - log.context.mean(axis=0), doses - doses.mean()
    size = np.sqrt(np.sum(x**2, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(size > 0, np.abs(t @ x) / size, 0.0)
    return log.names[int(np.argmax(share))]


def default_procedure(log: LoggedData) -> Procedure:
    """Return stacked DR for one dose; for several its closest relative."""
    return StackedDR() if log.dimension == 1 else VectorDR()
