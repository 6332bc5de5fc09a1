"""What is said of a learned policy: on the terminal, as JSON and as a page."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from titrant.cli import show
from titrant.cli.terminal import REPORTING, bar, visible
from titrant.cli.terminal import show as to_terminal
from titrant.cli.writing import STDOUT, write_text
from titrant.errors import InvalidArgument
from titrant.evaluation.evaluation import Evaluation
from titrant.inference import Verdict
from titrant.learn.honest import LEARNED, MEAN_DOSE, STATUS_QUO
from titrant.policies import Constant, StatusQuo
from titrant.report.rules import rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.table import Table

    from titrant.cli.options import (
        OutputOptions,
    )
    from titrant.data.source import Source
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.learn.honest import HonestValue
    from titrant.learning import PolicyLearner


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """How a result is told: names, the level of intervals, and what repeats the run."""

    treatments: Sequence[str]
    outcome: str
    level: float = 0.95
    maximize: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    config: str | None = None
    truth: Mapping[str, float] | None = None
    """The true values of the policies, where the log was simulated."""


def finish(learner: PolicyLearner, log: Source, output: OutputOptions, telling: Telling) -> bool:
    """Print and write what was learned; return whether its honest value can be trusted."""
    honest = honest_value(learner)
    show.cautions({LEARNED: honest.comparison[LEARNED]})
    if STDOUT not in (output.json, output.html):
        to_terminal(formulas(learner, telling))
        to_terminal(show.values(honest.comparison.estimates, telling.level))
        to_terminal(differences(honest, telling.level, maximize=telling.maximize))
        if found := described(learner)["candidates"]:
            to_terminal(show.candidates(found, maximize=telling.maximize))
        to_terminal(show.reading(maximize=telling.maximize))
        to_terminal(learner.decision_)
    if output.json is not None:
        result = plain(learner, output.level)
        write_text(output.json, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    if output.html is not None:
        with bar(REPORTING) as steps:
            steps.begin(REPORTING)
            write_text(output.html, page(learner, log, telling, steps.advance))
    return honest.trusted


def honest_value(learner: PolicyLearner) -> HonestValue:
    """Return the honest value of a learner that was asked for it."""
    if learner.estimate_ is None:
        raise InvalidArgument("There is no honest value to show; learn with `honest=True`.")
    return learner.estimate_


def plain(learner: PolicyLearner, level: float = 0.95) -> dict[str, Any]:
    """Return the result for programs."""
    return {
        "deployed": learner.deployed_,
        "stopped_by": list(learner.stopped_by_),
        "decision": learner.decision_,
        "honest": honest_value(learner).to_dict(level),
        "learned": learner.learned_.to_dict(),
    }


def policies(learner: PolicyLearner) -> dict[str, AnyPolicy]:
    """Return the learned policy and all that it is compared with, as they are on all rows."""
    mean = learner.survey_.mean_dose
    return {
        LEARNED: learner.learned_.policy,
        STATUS_QUO: StatusQuo(),
        MEAN_DOSE: Constant(float(mean[0]) if len(mean) == 1 else mean),
        **(learner.against or {}),
    }


def formulas(learner: PolicyLearner, telling: Telling) -> str:
    """Return the learned rule in words, on the user's scale."""
    contexts = learner.survey_.contexts
    names, sd = contexts.names, contexts.spread
    found = rule(LEARNED, learner.learned_.policy, telling.treatments, names, sd)
    lines = [f"  {visible(formula)}" for formula in found.formulas]
    return "\n".join(["The learned rule:", *lines]) + "\n"


def differences(honest: HonestValue, level: float, *, maximize: bool = False) -> Table:
    """Return the learned policy's honest differences to all others."""
    pairs = [(LEARNED, name) for name in honest.names]
    return show.differences(honest.comparison, level, maximize=maximize, pairs=pairs)


def described(learner: PolicyLearner, level: float = 0.95) -> dict[str, Any]:
    """Return how the policy was learned, as the report describes it."""
    honest, report = honest_value(learner), learner.learned_.report
    chosen = report.get("candidates", {})
    return {
        "name": LEARNED,
        "deployed": learner.deployed_,
        "decision": learner.decision_,
        "objection": _objection(learner, honest),
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
    }


def _objection(learner: PolicyLearner, honest: HonestValue) -> str | None:
    """Return what speaks against a policy that looks better but was not deployed."""
    if not learner.stopped_by_:
        return None
    return honest.objection(Verdict(learner.safe_level))


def page(
    learner: PolicyLearner,
    log: Source,
    telling: Telling,
    progress: Callable[[str, int, int], None] | None = None,
) -> str:
    """Return the report: honest values, and what the policy does to the rows of the log."""
    from titrant.report import gather, render  # noqa: PLC0415

    known = policies(learner)
    return render(
        gather(
            honest_value(learner).comparison,
            Evaluation.of(log, known, learner.grade, learner.propensity, learner.executor),
            level=telling.level,
            maximize=telling.maximize,
            settings=telling.settings,
            config=telling.config,
            truth=telling.truth,
            learned=described(learner, telling.level),
            treatments=telling.treatments,
            outcome=telling.outcome,
            seed=learner.seed,
            progress=progress,
        )
    )
