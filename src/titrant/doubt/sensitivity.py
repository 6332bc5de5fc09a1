"""How strong would a hidden cause have to be? Bounds on a value or a difference as it grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check, _drawing
from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.doubt.answers import (
    STATUS_QUO,
    Answer,
    all_answered,
    asked_pair,
    interval_method,
    named,
    questions_at,
)
from titrant.doubt.benchmarks import LeftOut, chosen_blocks, densities
from titrant.doubt.residuals import Cutoffs, Doubt, Doubted, SignedWeight, doubted
from titrant.estimators.joint import Ask, ask, relayed
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.fitting import MOST_TO_FIT
from titrant.evaluation.models.jackknife import judged_rows, share_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.bandwidth import BandwidthSelector
    from titrant.data.source import Source
    from titrant.doubt.answers import Found
    from titrant.doubt.benchmarks import Progress
    from titrant.estimators import Estimator, Question, Rows
    from titrant.estimators.joint import Search
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.evaluation.survey import Sample
    from titrant.execute import Engine
    from titrant.inference import IntervalMethod
    from titrant.inference.results import Comparison
    from titrant.propensity import PropensityModel

LARGEST = 20.0
"""The strength up to which a tipping point is looked for."""
GRID = tuple(float(g) for g in np.geomspace(1.0, LARGEST, 13))
"""Strengths at which bounds are always known: what pictures are drawn from."""
SHOWN = (1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
"""Strengths in tables."""
FRAGILE = 1.1
"""A conclusion that tips below this strength hangs on every cause being recorded."""
ROUNDS, POINTS = 3, 8
"""The tipping point is looked for at so many strengths between two at once, so many times: three
rounds leave a 2,900th of a step of the grid, .01 % of Γ."""


@dataclass(frozen=True, slots=True)
class Tipping:
    """The least strength at which a conclusion goes: by the bound alone, and by its interval.

    None: not by Γ = 20. 1: there is no conclusion without any hidden cause either.
    """

    bound: float | None
    interval: float | None

    def to_dict(self) -> dict[str, float | None]:
        """Return both as plain values."""
        return {"bound": self.bound, "interval": self.interval}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity(Tabular):
    """Bounds on a policy's value, or its difference to another, under hidden causes of the dose.

    A hidden cause of strength Γ makes the logged doses of some rows up to Γ times as likely, or as
    unlikely, as the recorded contexts say: 1/Γ ≤ f(t | x, u)/f(t | x) ≤ Γ. Γ = 1 is none. For a
    policy that moves the logged dose, Γ limits the same of the ratio of densities at two doses.
    """

    policy: str
    against: str | None
    """The policy that is subtracted; None if the value itself is bounded."""
    level: float
    """Of the intervals that decide about the tipping point."""
    reference: float
    """What the conclusion is drawn against: the status quo's value, 0 for a difference."""
    tipping: Tipping
    """The least Γ at which the policy is no longer told from the reference."""
    benchmarks: Mapping[str, float]
    """Γ of each recorded context, were it not recorded; the strongest first."""
    benchmark_rows: int
    """Rows that the models of benchmarks were fitted on."""
    known: BoundedPair = field(repr=False, compare=False)
    """What answers for further strengths."""

    def bounds(self, gamma: float) -> tuple[float, float]:
        """Return the least and the largest value, or difference, at strength Γ ≥ 1."""
        low, high = self._found(gamma)
        return low.value, high.value

    def interval(self, gamma: float, level: float | None = None) -> tuple[float, float]:
        """Return the interval of all values between the bounds: lower − t·s … upper + t·s."""
        low, high = self._found(gamma)
        at = self.level if level is None else level
        return low.interval(at)[0], high.interval(at)[1]

    def _found(self, gamma: float) -> tuple[Found, Found]:
        strength = _strength(gamma)
        answers = self.known.answers([(strength, False), (strength, True)])
        low, high = (one.target(against=self.against is not None) for one in answers)
        return low, high

    @property
    def estimate(self) -> float:
        """The value, or the difference, without any hidden cause."""
        return self.bounds(1.0)[0]

    @property
    def verdict(self) -> str:
        """One word: "undecided", "fragile", "doubtful", "unrated" or "robust".

        Undecided: the interval holds the reference without any hidden cause. Fragile: a cause
        weaker than Γ = 1.1 undoes the conclusion. Doubtful: one as strong as the strongest recorded
        context would. Robust: not even that. Unrated: there is no recorded context to compare with.
        """
        tip = self.tipping.interval
        if tip is None:
            return "robust"
        if tip <= 1.0:
            return "undecided"
        if tip < FRAGILE:
            return "fragile"
        if not self.benchmarks:
            return "unrated"
        return "doubtful" if tip <= max(self.benchmarks.values()) else "robust"

    @property
    def sentence(self) -> str:
        """The finding in words."""
        tip, verdict = self.tipping.interval, self.verdict
        what = self._conclusion
        if verdict == "undecided":
            return f"Undecided: without any hidden cause the log does not tell {what}."
        if tip is None:
            said = f"no hidden cause up to Γ = {LARGEST:g} undoes that {what}"
        else:
            said = f"a hidden cause of Γ = {tip:.2f} would undo that {what}"
        return f"{verdict.capitalize()}: {said}{self._beside(tip)}."

    @property
    def _conclusion(self) -> str:
        other = STATUS_QUO if self.against is None else self.against
        if self.verdict == "undecided":
            return f"{self.policy} from {other}"
        higher = self.estimate > self.reference
        return f"the value of {self.policy} is {'above' if higher else 'below'} that of {other}"

    def _beside(self, tip: float | None) -> str:
        """Return how that compares with the strongest recorded context."""
        if not self.benchmarks:
            return ""
        name, strength = next(iter(self.benchmarks.items()))
        if tip is None:
            return f"; {name}, the strongest recorded context, is Γ = {strength:.2f}"
        if strength >= tip:
            return f"; a context as strong as {name}, Γ = {strength:.2f}, would do"
        return f", more than {name}, the strongest recorded context, Γ = {strength:.2f}"

    def table(
        self, gammas: Iterable[float] = SHOWN, *, level: float | None = None
    ) -> list[dict[str, float]]:
        """Return bounds and intervals at some strengths, a row each."""
        strengths = [_strength(g) for g in gammas]
        self.known.answers([(g, up) for g in strengths for up in (False, True)])
        rows = []
        for g in strengths:
            (lower, upper), (low, high) = self.bounds(g), self.interval(g, level)
            rows.append({"gamma": g, "lower": lower, "upper": upper, "low": low, "high": high})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "policy": self.policy,
            "against": self.against,
            "estimate": self.estimate,
            "reference": self.reference,
            "level": self.level,
            "bounds": self.table(sorted({*SHOWN, *GRID})),
            "tipping": self.tipping.to_dict(),
            "largest_gamma": LARGEST,
            "benchmarks": dict(self.benchmarks),
            "benchmark_rows": self.benchmark_rows,
            "verdict": self.verdict,
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        tip = self.tipping.interval
        reached = f"not reached by {LARGEST:g}" if tip is None else f"{tip:.2f}"
        target = self.policy if self.against is None else f"{self.policy} − {self.against}"
        return f"Sensitivity({target} {brief(self.estimate)}; tipping Γ {reached}; {self.verdict})"

    def _texts(self, level: float) -> list[list[str]]:
        rows = [
            [f"{r['gamma']:g}", between(r["lower"], r["upper"]), between(r["low"], r["high"])]
            for r in self._numbers(level)
        ]
        return [["Γ", "bounds", f"{100 * level:g}% interval"], *rows]

    def _numbers(self, level: float) -> list[dict[str, float]]:
        return self.table(level=level)

    def _caption(self) -> str:
        return self.sentence

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw bounds and interval over Γ with tipping points and benchmarks; return the axes."""
        drawn = _drawing.new_axes(ax)
        rows = self.table(GRID)
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        return _drawing.bounds(
            drawn,
            columns,
            reference=self.reference,
            tipping=self.tipping.to_dict(),
            benchmarks=self.benchmarks,
            label=_drawing.escaped(
                self.known.evaluation.source.about.axis(difference=self.against is not None)
            ),
        )


def sensitivity(
    log: Source,
    policy: AnyPolicy,
    against: AnyPolicy | None = None,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    level: float = 0.95,
    benchmarks: Sequence[str] | None = None,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Return how the value of ``policy`` may change under causes of the dose that nobody recorded.

    Parameters
    ----------
    log, policy, estimator, bandwidth, propensity, interval, allow_untrusted, ignore_doubts,
    executor : as in `evaluate`
    against : another policy: then their difference is bounded, in which rows that both use alike
        cancel; where one of them moves the logged dose, such as `Shift`, each is bounded by itself
        unless the other is the status quo. Unless given, the value of ``policy`` is bounded, and
        the conclusion is that it differs from the status quo
    level : of the intervals that decide about the tipping point
    benchmarks : columns of the context to leave out, one at a time, for the strength that each
        would have were it not recorded; all unless given, () for none. Each takes a fit of the
        propensity, on 2,000 rows at most
    progress : called with a stage, the steps done and the steps in all

    Returns
    -------
    Sensitivity : ``bounds(gamma)`` and ``interval(gamma)`` at any strength Γ; ``tipping``, the
        strength that undoes the conclusion; ``benchmarks``; ``verdict`` and ``sentence``

    >>> from titrant import Constant, SelfNormalized
    >>> from titrant.data import DESIGNS
    >>> log = DESIGNS["dosing"].draw(300, 0)
    >>> quick = {"estimator": SelfNormalized(), "bandwidth": 8, "benchmarks": ()}
    >>> found = sensitivity(log, Constant(35), Constant(45), **quick)
    >>> found.verdict, round(found.tipping.bound, 1)
    ('undecided', 1.3)
    """
    say = _silent if progress is None else progress
    say("evaluation", 0, 1)
    policies = named(policy, against)
    models = estimator, propensity, executor
    evaluation = Evaluation.of(log, policies, *models, ignore_doubts=ignore_doubts)
    comparison = evaluation.compare(bandwidth, interval, allow_untrusted=allow_untrusted)
    left_out = left_out_of(evaluation, propensity, benchmarks, say)
    return sensitivity_of(
        evaluation, comparison, left_out, interval, given=against is not None, level=level
    )


def left_out_of(
    evaluation: Evaluation,
    propensity: PropensityModel | None,
    benchmarks: Sequence[str] | None,
    progress: Progress,
) -> LeftOut:
    """Return what the benchmarks of any policy on a log are taken from."""
    chosen = chosen_blocks(evaluation.source.names, benchmarks, "sensitivity")
    return LeftOut.of(evaluation, propensity, chosen, progress)


def sensitivity_of(
    evaluation: Evaluation,
    comparison: Comparison,
    left_out: LeftOut,
    interval: IntervalMethod | None = None,
    *,
    given: bool,
    level: float = 0.95,
) -> Sensitivity:
    """Return the sensitivity of an evaluation of two policies that was made before.

    ``given`` says that the second was asked for, so that the difference is what is bounded.
    """
    _check.probability(level, "level", "sensitivity")
    method = interval_method(interval, "sensitivity")
    a, b = evaluation.names
    chosen = {0: comparison[a].bandwidth, 1: comparison[b].bandwidth}
    known = BoundedPair.of(evaluation, questions_at(evaluation, chosen), method)
    known.answers([(g, up) for g in GRID for up in (False, True)])
    return Sensitivity(
        policy=a,
        against=b if given else None,
        level=level,
        reference=0.0 if given else comparison[b].value,
        tipping=tipping_of(known, level),
        benchmarks=left_out.strengths(evaluation, known.signed),
        benchmark_rows=len(left_out.sample.log),
        known=known,
    )


@dataclass(frozen=True, slots=True)
class BoundedPair:
    """Two policies on a log, and what is known of their bounds at strengths Γ, up and down."""

    evaluation: Evaluation
    questions: tuple[Question, ...]
    method: IntervalMethod
    signed: SignedWeight
    sides: tuple[tuple[SignedWeight, Cutoffs], ...]
    """What a hidden cause acts on as one: the difference, or each policy by itself."""
    judged: tuple[Mapping[int, Rows], ...]
    """The rows as the models of each fold see them."""
    few: Sample
    found: dict[tuple[float, bool], Answer] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls, evaluation: Evaluation, questions: Sequence[Question], method: IntervalMethod
    ) -> BoundedPair:
        """Return what bounds of the first policy less the second rest on, in one pass."""
        point = ask(questions, evaluation.over_rows)
        signed = SignedWeight.of(point)
        few = evaluation.survey.sample.thinned(MOST_TO_FIT)
        policies = {q.policy for q in questions}
        judged = tuple(judged_rows(evaluation.policy_rows, policies, few))
        sampled = {q.policy: evaluation.sampled_rows(q.policy) for q, _ in signed.parts}
        each = signed.apart() if _act_apart(evaluation, signed) else (signed,)
        sides = tuple((side, Cutoffs.of(side, sampled)) for side in each)
        return cls(evaluation, tuple(questions), method, signed, sides, judged, few)

    def answers(self, asked: Sequence[tuple[float, bool]]) -> list[Answer]:
        """Return the answers at strengths Γ, upper bounds or lower, in passes that they share."""
        missing = [one for one in dict.fromkeys(asked) if one not in self.found]
        if missing:
            searches = [self._search(gamma, up=up) for gamma, up in missing]
            answers = all_answered(searches, self.evaluation)
            self.found.update(zip(missing, answers, strict=True))
        return [self.found[one] for one in asked]

    def _search(self, gamma: float, *, up: bool) -> Search[Answer]:
        """Ask about the rows under the doubt of one strength and direction."""
        doubts = tuple(
            Doubt(side, gamma, cutoffs.at(gamma, up=up), up) for side, cutoffs in self.sides
        )
        degrees = max(self.evaluation.nuisances.folds - 1, 1)
        search = asked_pair(self.questions, partial(self._share, doubts), degrees, self.method)
        return relayed(search, lambda a: Ask(Doubted(doubts, a.statistic)), lambda answer: answer)

    def _share(self, doubts: tuple[Doubt, ...]) -> Array:
        judged = (doubted(doubts, rows) for rows in self.judged)
        return share_of(judged, self.questions, self.few)


def _act_apart(evaluation: Evaluation, signed: SignedWeight) -> bool:
    """Return whether a hidden cause acts on the same row by another ratio under each policy."""
    policies = [evaluation.policies[question.policy] for question, _ in signed.parts]
    moved = any(densities(policy) > 1 for policy in policies)
    return moved and policies[0] != policies[-1]  # which are one where the status quo is the other


def tipping_of(known: BoundedPair, level: float) -> Tipping:
    """Return the least Γ at which the difference reaches 0: by its bound, and by its interval."""
    at_one = known.answers([(1.0, True)])[0].difference.value
    up = at_one < 0.0

    def end(answer: Answer, *, interval: bool) -> float:
        found = answer.difference
        return found.interval(level)[1 if up else 0] if interval else found.value

    def reached(gamma: float, *, interval: bool) -> bool:
        of = end(known.answers([(gamma, up)])[0], interval=interval)
        return of >= 0.0 if up else of <= 0.0

    brackets: dict[bool, tuple[float, float]] = {}
    for interval in (False, True):
        k = next((k for k, g in enumerate(GRID) if reached(g, interval=interval)), None)
        if k is not None:
            brackets[interval] = GRID[max(k - 1, 0)], GRID[k]
    for _ in range(ROUNDS):
        between_ends = {i: np.geomspace(*ends, POINTS + 2) for i, ends in brackets.items()}
        known.answers([(float(g), up) for grid in between_ends.values() for g in grid])
        for interval, grid in between_ends.items():
            first = next(k for k, g in enumerate(grid) if reached(float(g), interval=interval))
            brackets[interval] = float(grid[max(first - 1, 0)]), float(grid[first])
    tips = {interval: high for interval, (_, high) in brackets.items()}
    return Tipping(tips.get(False), tips.get(True))


def _strength(gamma: float) -> float:
    return _check.at_least(gamma, 1.0, "gamma", "Sensitivity")


def _silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""
