"""`report`: a log and policies in, the page about them out, in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from titrant._writing import write_text
from titrant.errors import InvalidArgument
from titrant.evaluation.evaluation import Comparison, Estimate, Evaluation, name_of
from titrant.inference import Verdict
from titrant.policies import Constant, StatusQuo
from titrant.reporting.gather import gather
from titrant.reporting.page import render

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from typing import Any

    from numpy.typing import ArrayLike

    from titrant.bandwidth import BandwidthSelector
    from titrant.data.source import Source
    from titrant.estimators import Estimator
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.execute import Engine
    from titrant.inference import IntervalMethod
    from titrant.learn.honest import HonestValue
    from titrant.learning import PolicyLearner
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel
    from titrant.reporting.content import Report


def report(
    log: Source,
    policies: Mapping[str, AnyPolicy] | AnyPolicy | PolicyLearner,
    path: str | os.PathLike[str] | None = None,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    weights_to: object = None,
    level: float = 0.95,
    maximize: bool | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    sensitivity: bool = False,
    stress: bool = False,
    seed: int = 0,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Write the page about policies on a log to ``path``, and return what it shows.

    One HTML file that needs nothing but itself: what to do, how sure that is, for whom, what if we
    are wrong. The status quo is always among the policies. ``comparison`` of what comes back is the
    `Comparison` that the page is made of, so that nothing has to be estimated twice.

    Parameters
    ----------
    log : the logged rows, as for `evaluate`; ``maximize`` and units are taken from it
    policies : one policy or several by name, as for `evaluate` and `compare`, or a `PolicyLearner`
        that was fitted to the log, whose own settings then say how
    path : of the file; None writes nothing
    estimator, bandwidth, propensity, interval, weights_to, allow_untrusted, ignore_doubts, executor
        : as for `evaluate`
    level : of all intervals
    maximize : whether the outcome is a reward, unless the log says it
    title, labels, units : of the page; what columns are called on it, and their units, by name
    sensitivity, stress : look into hidden causes, and put the estimate to trials, which takes some
        twenty times as long as the rest
    seed : of all draws
    progress : called with what is at work, the share of the time that is over, and 100

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=300), rng.normal(size=300)
    >>> log = tt.LoggedData({"age": x}, t, (t - x) ** 2 + rng.normal(size=300))
    >>> quick = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    >>> page = tt.report(log, {"none": 0.0, "some": 0.5}, **quick)  # and "page.html" to write it
    >>> page
    Report('status quo', 'none', 'some'; verdict ok; not written)
    """
    from titrant.learning import PolicyLearner  # noqa: PLC0415 - loads scikit-learn

    how: dict[str, Any] = {"estimator": estimator, "bandwidth": bandwidth, "propensity": propensity}
    shown: dict[str, Any] = {"learned": None, "interval": interval}
    if isinstance(policies, PolicyLearner):
        comparison, evaluation = _of_learner(log, policies)
        given = [name for name, one in {**how, "interval": interval}.items() if one is not None]
        if given:
            raise InvalidArgument(
                f"The `{given[0]}` of a learned policy is that of its learner. Leave it out, or "
                "give it to `PolicyLearner`."
            )
        shown["learned"], seed = described(policies, level), policies.seed
        how = {"estimator": policies.grade, "bandwidth": None, "propensity": policies.propensity}
    else:
        asked = policies if isinstance(policies, Mapping) else {name_of(policies): policies}
        _refuse_results(asked)
        models = estimator, propensity, executor
        evaluation = Evaluation.of(
            log, asked, *models, weights_to=weights_to, ignore_doubts=ignore_doubts
        )
        comparison = evaluation.compare(bandwidth, interval, allow_untrusted=allow_untrusted)
    found = gather(
        comparison,
        evaluation,
        level=level,
        maximize=maximize,
        bandwidth=how["bandwidth"],
        **shown,
        title=title,
        labels=labels,
        units=units,
        doubts=doubts_of(how, sensitivity=sensitivity, stress=stress, seed=seed, level=level),
        seed=seed,
        progress=progress,
    )
    if path is not None:
        write_text(path, render(found))
        return replace(found, path=os.fspath(path))
    return found


def _of_learner(log: Source, learner: PolicyLearner) -> tuple[Comparison, Evaluation]:
    """Return the honest comparison of a learner, and its policies on all rows."""
    honest, source = honest_value(learner), learner.source_
    if (len(log), log.names) != (len(source), source.names):
        raise InvalidArgument(
            f"The learner was fitted to another log, of {len(source):,} rows; this one has "
            f"{len(log):,}. Give the log that it was fitted to."
        )
    evaluation = Evaluation.of(
        source,
        learned_policies(learner),
        learner.grade,
        learner.propensity,
        learner.executor,
        ignore_doubts=learner.ignore_doubts,
    )
    return honest.comparison, evaluation


def _refuse_results(policies: Mapping[str, object]) -> None:
    """Refuse what was estimated before: numbers do not hold the rows that a page is about."""
    from titrant.learn.honest import HonestValue  # noqa: PLC0415

    for given in policies.values():
        if isinstance(given, Comparison | Estimate | HonestValue):
            raise InvalidArgument(
                f"A page is about the rows of a log, which a `{type(given).__name__}` does not "
                "hold. Give `report` the log and the policies, or the learner; what it returns has "
                "the estimates as `comparison`."
            )


# A learned policy as a page describes it. The room of learning is imported where there is one.


def honest_value(learner: PolicyLearner) -> HonestValue:
    """Return the honest value of a learner that was asked for it."""
    if learner.estimate_ is None:
        raise InvalidArgument("There is no honest value to show; learn with `honest=True`.")
    return learner.estimate_


def learned_policies(learner: PolicyLearner) -> dict[str, Policy]:
    """Return the learned policy and all that it is compared with, as they are on all rows."""
    from titrant.learn.honest import LEARNED, MEAN_DOSE, STATUS_QUO  # noqa: PLC0415

    mean = learner.survey_.mean_dose
    return {
        LEARNED: learner.learned_.policy,
        STATUS_QUO: StatusQuo(),
        MEAN_DOSE: Constant(float(mean[0]) if len(mean) == 1 else mean),
        **learner.against_,
    }


def described(learner: PolicyLearner, level: float = 0.95) -> dict[str, Any]:
    """Return how the policy was learned, as the report describes it."""
    from titrant.learn.honest import LEARNED  # noqa: PLC0415

    honest, report = honest_value(learner), learner.learned_.report
    chosen = report.get("candidates", {})
    return {
        "name": LEARNED,
        "deployed": learner.deployed_,
        "decision": learner.decision_,
        # What speaks against a policy that looks better but was not deployed.
        "objection": honest.objection(Verdict(learner.safe_level)) if learner.stopped_by_ else None,
        "honest": {
            "value": honest.value,
            "interval": honest.interval(level),
            "verdict": honest.verdict.value,
            "against": {
                name: {
                    "difference": honest.comparison.contrast(LEARNED, name).difference,
                    "interval": honest.contrast(name).at(level),
                }
                for name in honest.names
            },
        },
        "chosen": chosen.get("chosen"),
        "because": chosen.get("because"),
        "candidates": _candidates(chosen),
        "outcome_models": report.get("outcome_models", {}),
        "choice": None
        if (choice := learner.choice_) is None
        else {"finding": choice.finding, "table": choice.table()},
        "limits": None
        if (kept := learner.limits_) is None
        else {
            "finding": kept.finding,
            "table": kept.table(),
            "traded": None if kept.cap is None else kept.cap.table(),
        },
    }


def _candidates(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the policy was chosen from; an average of them all has no weight of its own."""
    chosen, scores = found.get("chosen"), found.get("scores", {})
    rows = [
        {
            "name": name,
            "behind": c["behind_the_chosen"],
            "behind_se": c["behind_the_chosen_se"],
            "weight": c["weight"],
            "chosen": name == chosen,
        }
        for name, c in scores.items()
    ]
    if not rows or chosen in scores:
        return rows
    return [
        *rows,
        {"name": chosen, "behind": 0.0, "behind_se": 0.0, "weight": None, "chosen": True},
    ]


# What if we are wrong: the doubts of a page, found where they are wanted.


def doubts_of(
    how: Mapping[str, Any], *, sensitivity: bool, stress: bool, seed: int, level: float
) -> Callable[[Evaluation, Comparison, str], Mapping[str, Any]] | None:
    """Return what finds the doubts of a page; None if none are wanted.

    ``how`` are the estimator, bandwidth and propensity of `evaluate`.
    """
    if not (sensitivity or stress):
        return None
    from titrant.doubt.sensitivity import left_out_of, sensitivity_of  # noqa: PLC0415
    from titrant.doubt.stress import stressed  # noqa: PLC0415

    def found(evaluation: Evaluation, comparison: Comparison, name: str) -> Mapping[str, Any]:
        bounds, trials = None, None
        if sensitivity:
            left_out = left_out_of(evaluation, how["propensity"], None, lambda *_: None)
            known = sensitivity_of(evaluation, comparison, left_out, given=False, level=level)
            bounds = known.to_dict()
        if stress:
            pair = dict(zip(evaluation.names, evaluation.policies, strict=True))
            ignore = evaluation.ignore_doubts
            tried = stressed(
                evaluation.source, pair, given=False, **how, seed=seed, ignore_doubts=ignore
            )
            trials = tried.to_dict(level)
        return {"policy": name, "sensitivity": bounds, "stress": trials}

    return found
