"""One draw of a problem: the excess risk of every contestant, or whether the interval covers."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import Task, digits
from benchmarks.rules.contestants import PLUG_INS, causal_forest
from benchmarks.rules.problems import DOSES, PROBLEMS, Problem, line_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from titrant.data import LoggedData
    from titrant.learn import PolicyClass
    from titrant.learn.choice import ClassChoice
    from titrant.learn.contenders import Arena, Contender
    from titrant.outcome import OutcomeModel
    from titrant.policies import Policy

    Array = np.ndarray

RESULTS = Path(__file__).parents[1] / "results"
RECORDS = RESULTS / "learning_rules.jsonl.gz"
ECONML_RECORDS = RESULTS / "learning_rules_econml.jsonl.gz"
WARFARIN_RECORDS = RESULTS / "learning_rules_warfarin.jsonl.gz"
HONEST_RECORDS = RESULTS / "learning_rules_honest.jsonl.gz"
SEED = 2042
PEOPLE = 2000
"""Contexts over which a risk is averaged."""
MANY = 20_000
"""Contexts over which the true value of a rule is averaged."""
WARFARIN = "warfarin"
TABLETS = {"steps of 2.5 mg a week": 2.5, "steps of 2.5 mg a day": 17.5}
"""Of the dose, mg a week."""
HONEST_PROBLEMS = ("thresholds", "product")
AUTOMATIC, LINEAR = "automatic", "linear"
CONTESTANTS = (AUTOMATIC, LINEAR, *PLUG_INS)


@dataclass(frozen=True, slots=True)
class Draw:
    """A log, new people, and the loss of the best dose of each."""

    x: Array
    t: Array
    y: Array
    new: Array
    problem: Problem
    grid: Array
    every: Array
    """Losses of the doses of the grid for the new people (n, G)."""
    ends: tuple[float, float]
    """The doses between which a rule stays."""

    @classmethod
    def of(cls, task: Task, people: int = PEOPLE) -> Draw:
        """Return the draw of a task."""
        problem = PROBLEMS[task.design]
        rng = np.random.default_rng([task.seed, task.replication, zlib.crc32(task.design.encode())])
        x, t, y = problem.draw(rng)
        new = problem.context(rng, people)
        grid = np.linspace(t.min() - 2.0, t.max() + 2.0, DOSES)
        every = problem.losses(new, grid)
        low, high = np.quantile(t, [0.005, 0.995])
        return cls(x, t, y, new, problem, grid, every, (float(low), float(high)))

    @property
    def best(self) -> float:
        """The mean loss where each of the new people has the best dose."""
        return float(self.every.min(axis=1).mean())

    def excess(self, tau: Array) -> float:
        """Return the mean loss of doses (n,) of the new people, over the best."""
        return float(self.problem.loss(self.new, tau).mean()) - self.best

    def truth(self) -> dict[str, float]:
        """Return what the best constant, line and rule within the doses lose, and sd(m)."""
        inside = (self.grid >= self.ends[0]) & (self.grid <= self.ends[1])
        return {
            "constant": self.every.mean(axis=0).min() - self.best,
            "line": line_loss(self.problem, self.new, self.ends) - self.best,
            "within": self.every[:, inside].min(axis=1).mean() - self.best,
            "sd": self.problem.loss(self.x, self.t).std(),
        }

    def plugged_in(self, rule: Callable[..., Array]) -> float:
        """Return the excess of a plug-in rule."""
        return self.excess(rule(self.x, self.t, self.y, self.new, self.ends))


@dataclass(frozen=True, slots=True)
class Competition:
    """What every class learned from one log, and the CPU s of models and of rules."""

    arena: Arena
    found: dict[PolicyClass, Contender[Arena]]
    choice: ClassChoice
    cpu: list[float]

    @classmethod
    def on(cls, log: LoggedData, models: Mapping[str, OutcomeModel] | None = None) -> Competition:
        """Let the classes of the default compete, on curves of the default or of other models.

        What `PolicyLearner` learns by default and, asked for one class, with that: bit for bit.
        """
        import titrant as tt  # noqa: PLC0415
        from titrant.learn import ClippedClass, TrainingLog  # noqa: PLC0415
        from titrant.learn.choice import ClassChoice  # noqa: PLC0415
        from titrant.learn.contenders import contender  # noqa: PLC0415

        began = time.process_time()
        kind: PolicyClass = tt.Automatic()
        if log.bounded:
            kind = ClippedClass(kind, float(log.lower.max()), float(log.upper.min()))
        arena = tt.StackedDR(models=models).arena(TrainingLog.of(log), kind)
        modeled = time.process_time()
        found = {one: contender(one, arena) for one in kind.competing(log)}
        choice = ClassChoice.of(list(found.values()), arena)
        cpu = [digits(modeled - began), digits(time.process_time() - modeled)]
        return cls(arena, found, choice, cpu)

    def policies(self, *names: str) -> dict[str, Policy]:
        """Return the rules of some classes, or of all, and of the chosen one."""
        chosen = self.choice.chosen
        learned = {
            one.name: one.learned(self.arena).policy
            for one in self.found.values()
            if not names or one.name in {chosen, *names}
        }
        return {AUTOMATIC: learned[chosen], **learned}

    def in_steps(self, step: float) -> Policy:
        """Return the rule of the chosen class learned in steps of the dose."""
        from titrant.learn.contenders import contender  # noqa: PLC0415
        from titrant.learn.limits import Limits  # noqa: PLC0415
        from titrant.learn.limits.found import within  # noqa: PLC0415

        kind = next(kind for kind, one in self.found.items() if one.name == self.choice.chosen)
        arena = within(Limits(steps=step), self.arena)
        return contender(kind, arena).learned(arena).policy


def measure(task: Task) -> dict[str, Any]:
    """Return the excess risks of all contestants on one draw, and what was chosen."""
    import titrant as tt  # noqa: PLC0415

    draw = Draw.of(task)
    competition = Competition.on(tt.LoggedData(draw.x, draw.t, draw.y))
    choice, rules = competition.choice, competition.policies()
    excess = {name: draw.excess(rule(draw.new)) for name, rule in rules.items()}
    excess |= {name: draw.plugged_in(rule) for name, rule in PLUG_INS.items()}
    return {
        "chosen": choice.chosen,
        "announced": line_falls_short(choice),
        "excess": {name: digits(float(value)) for name, value in excess.items()},
        "truth": {name: digits(float(value)) for name, value in draw.truth().items()},
        "finding": choice.finding,
        "cpu": competition.cpu,
    }


def line_falls_short(choice: ClassChoice) -> bool:
    """Whether a line is clearly behind the chosen rule, or it is chosen and not enough."""
    if choice.line is not None:
        return choice.line.loses
    return choice.chosen == LINEAR and choice.richer is not None


def econml(task: Task) -> dict[str, Any]:
    """Return the excess risk of EconML's causal forest on one draw."""
    began = time.process_time()
    excess = Draw.of(task).plugged_in(causal_forest)
    return {"excess": digits(excess), "cpu": digits(time.process_time() - began)}


def honest(task: Task) -> dict[str, Any]:
    """Return whether the honest interval covers the true value of what was learned."""
    import titrant as tt  # noqa: PLC0415

    draw = Draw.of(task, MANY)
    began = time.process_time()
    learner = tt.PolicyLearner().fit(tt.LoggedData(draw.x, draw.t, draw.y))
    low, high = learner.estimate_.interval()
    policies = learner.policy_, *learner.estimate_.policies
    whole, *halves = (draw.problem.loss(draw.new, rule(draw.new)).mean() for rule in policies)
    true = {"whole": float(whole), "halves": float(np.mean(halves))}
    return {
        "covers": bool(low <= true["whole"] <= high),
        "covers_the_halves": bool(low <= true["halves"] <= high),
        "true": {name: digits(value) for name, value in true.items()},
        "interval": [digits(low), digits(high)],
        "verdict": learner.estimate_.verdict.value,
        "chosen": learner.choice_.chosen,
        "cpu": digits(time.process_time() - began),
    }


def warfarin(task: Task) -> dict[str, Any]:
    """Return how far the doses of new patients are from those that proved right, mg a week."""
    from titrant.paper.warfarin import Case, find_table  # noqa: PLC0415
    from titrant.paper.warfarin_table import load_warfarin  # noqa: PLC0415

    case = Case.of(load_warfarin(find_table(None)), task.replication)
    competition = Competition.on(case.log)
    named = dict(zip(case.log.names, case.patients.T, strict=True))
    doses = {name: rule(case.patients) for name, rule in competition.policies(LINEAR).items()}
    for name, step in TABLETS.items():
        doses[name] = competition.in_steps(step)(named)
        # What no rule can do without: the dose that proved right, in the same steps.
        right = case.cohort.therapeutic_dose[case.test]
        doses[f"right, {name}"] = step * np.round(right / step)
    off = {name: case.cohort.plain(tau, case.test).mean() for name, tau in doses.items()}
    return {
        "chosen": competition.choice.chosen,
        "plain": {name: digits(float(value)) for name, value in off.items()},
        "finding": competition.choice.finding,
        "cpu": competition.cpu,
    }
