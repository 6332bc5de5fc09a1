"""A policy's value and its difference to another, with intervals: what each doubt is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.estimators.joint import asked
from titrant.evaluation.evaluation import name_of
from titrant.evaluation.models.jackknife import filled
from titrant.evaluation.passes import served
from titrant.inference import IntervalMethod, RobustBiasCorrected
from titrant.inference.base import paired
from titrant.policies import Policy, StatusQuo
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import Bandwidth, BandwidthSelector
    from titrant.estimators import Joint, Question
    from titrant.estimators.joint import Search
    from titrant.evaluation.evaluation import AnyPolicy, Evaluation
    from titrant.inference.base import Inference, Interval

STATUS_QUO = "status quo"
_LONGEST = 40
"""Letters of a name."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value or a difference, its standard error and its interval."""

    value: float
    se: float
    confidence: Interval

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval at ``level``."""
        return self.confidence.at(level)


@dataclass(frozen=True, slots=True)
class Answer:
    """The value of a policy, and its difference to another on the same rows."""

    value: Found
    difference: Found

    @classmethod
    def of(cls, point: Joint, inference: Inference) -> Answer:
        """Return the answer about two policies, the first less the second."""
        own = Found(float(point.values[0]), float(point.se[0]), inference.interval(0))
        apart, se = paired(point.values, point.covariance, 0, 1)
        return cls(own, Found(apart, se, inference.contrast(0, 1)))

    def target(self, *, against: bool) -> Found:
        """Return the difference if another policy was named, else the value."""
        return self.difference if against else self.value


def asked_pair(
    questions: Sequence[Question],
    share: Callable[[], Array],
    degrees: float,
    method: IntervalMethod,
) -> Search[Answer]:
    """Ask about two policies, and return the answer; ``share`` is what the models add (m, m)."""
    point = yield from asked(questions)
    whole = point.with_models(filled(share(), point.covariance), degrees)
    inference = yield from method.search(whole)
    return Answer.of(whole, inference)


def questions_of(
    evaluation: Evaluation, bandwidth: BandwidthSelector | ArrayLike | None
) -> list[Question]:
    """Return the questions of both policies at their own bandwidths, or raise what refuses one."""
    chosen, refused = evaluation.bandwidths(bandwidth)
    for refusal in refused.values():
        raise refusal
    return questions_at(evaluation, chosen)


def questions_at(
    evaluation: Evaluation, bandwidths: Mapping[int, Bandwidth | None]
) -> list[Question]:
    """Return the questions of policies at these bandwidths."""
    return [evaluation.question(i, h) for i, h in bandwidths.items()]


def all_answered(searches: Sequence[Search[Any]], evaluation: Evaluation) -> list[Any]:
    """Return what searches find, in passes that they share; raise the first refusal."""
    found = served(searches, evaluation.over_rows)
    for one in found:
        if isinstance(one, UntrustedEstimate):
            raise one
    return found


def interval_method(interval: IntervalMethod | None, owner: str) -> IntervalMethod:
    """Return the interval method, the default one unless it is given."""
    if not isinstance(interval, IntervalMethod | None):
        raise InvalidArgument(
            f"The `interval` of `{owner}` must be a method such as RobustBiasCorrected(); got "
            f"{interval!r}."
        )
    return RobustBiasCorrected() if interval is None else interval


def named(policy: AnyPolicy, against: AnyPolicy | None) -> dict[str, AnyPolicy]:
    """Return both policies by names that differ; the status quo stands for no other."""
    other = StatusQuo() if against is None else against
    if is_exactly(policy, StatusQuo):
        raise InvalidArgument(
            "The value of the status quo is what was observed: there is nothing to doubt. Ask "
            "about a policy that gives other doses, and name the status quo by `against`."
        )
    a, b = _name(policy), STATUS_QUO if is_exactly(other, StatusQuo) else _name(other)
    return {a: policy, b if a != b else f"{b} (against)": other}


def _name(policy: object) -> str:
    """Return how a policy is called: a function by its name, others as written if short."""
    written = repr(policy)
    short = isinstance(policy, Policy) and len(written) <= _LONGEST
    return written if short else name_of(policy)
