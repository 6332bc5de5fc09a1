"""A learned policy as a report describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from titrant.errors import InvalidArgument
from titrant.inference import Verdict
from titrant.learn.honest import LEARNED, MEAN_DOSE, STATUS_QUO
from titrant.policies import Constant, StatusQuo

if TYPE_CHECKING:
    from titrant.learn.honest import HonestValue
    from titrant.learning import PolicyLearner
    from titrant.policies import Policy


def honest_value(learner: PolicyLearner) -> HonestValue:
    """Return the honest value of a learner that was asked for it."""
    if learner.estimate_ is None:
        raise InvalidArgument("There is no honest value to show; learn with `honest=True`.")
    return learner.estimate_


def policies(learner: PolicyLearner) -> dict[str, Policy]:
    """Return the learned policy and all that it is compared with, as they are on all rows."""
    mean = learner.survey_.mean_dose
    return {
        LEARNED: learner.learned_.policy,
        STATUS_QUO: StatusQuo(),
        MEAN_DOSE: Constant(float(mean[0]) if len(mean) == 1 else mean),
        **learner.against_,
    }


def described(learner: PolicyLearner, level: float = 0.95) -> dict[str, Any]:
    """Return how the policy was learned, as the report describes it."""
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
        "candidates": [
            {
                "name": name,
                "loss": c["held_out_loss"],
                "behind": c["behind_the_best"],
                "behind_se": c["behind_the_best_se"],
                "weight": c["weight"],
            }
            for name, c in chosen.get("scores", {}).items()
        ],
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
