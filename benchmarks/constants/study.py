"""One log of the study: the default call with each constant as it is, then with one changed.

A constant is named as on the page that explains it: the module or class below `titrant`, then the
name, such as `inference.rbc.SHRINK` or `outcome.Forest.trees`.
"""

from __future__ import annotations

import inspect
import zlib
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from benchmarks.confounding.designs import DESIGNS, KNOWN, TUNING
from benchmarks.confounding.records import Task
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.jackknife import filled, models_share
from titrant.inference import RobustBiasCorrected

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = Path(__file__).parents[1] / "results" / "constants.jsonl.gz"
SEED = 2033
ROWS = 1000
STAGES = ((KNOWN, 30), (TUNING, 3))
"""Designs and logs of each: first those that bandwidth and interval were chosen on, with known
propensities; then those that the models were chosen on, of which each log takes 20 s of CPU."""


class Place(NamedTuple):
    """Where a constant stands: in a module, or as a default of a class's `__init__`."""

    owner: Any
    name: str

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the class's `__init__`."""
        return self.owner.__init__.__kwdefaults__ or {}

    @property
    def value(self) -> Any:
        """What the code says."""
        if not inspect.isclass(self.owner):
            return getattr(self.owner, self.name)
        if self.name in self.defaults:
            return self.defaults[self.name]
        return inspect.signature(self.owner).parameters[self.name].default

    def changed(self, value: float) -> AbstractContextManager[Any]:
        """Return a context in which the constant has another value."""
        if inspect.isclass(self.owner):
            return patch.dict(self.defaults, {self.name: value})
        return patch.object(self.owner, self.name, value)


def place_of(name: str) -> Place:
    """Return where `inference.rbc.SHRINK` or `outcome.Forest.trees` stands."""
    *path, last = name.split(".")
    owner = import_module(f"titrant.{path[0]}")
    for step in path[1:]:
        whole = f"{owner.__name__}.{step}"
        owner = getattr(owner, step) if hasattr(owner, step) else import_module(whole)
    return Place(owner, last)


MODELS: dict[str, tuple[float, float]] = {
    "estimators.DoublyRobust.folds": (3, 10),
    "evaluation.models.nuisance.DEFAULT_FLOOR": (0.002, 0.05),
    "outcome.Forest.trees": (20, 80),
    "outcome.Forest.leaf": (7, 30),
    "outcome.landmarks.Landmarks.landmarks": (100, 400),
    "outcome.repeated.CLEAR": (1.5, 6.0),
    "outcome.context.TOLD": (0.025, 0.1),
    "outcome.SmoothContext.knots": (4, 7),
    "outcome.stack.MARGIN": (0.0, 2.0),
    "propensity.average.FLOOR": (1e-5, 1e-3),
}
"""Constants of the models: the smaller and the larger value tried."""
SMOOTHING: dict[str, tuple[float, float]] = {
    "bandwidth.AveragedBiasPath.range_penalty": (1.5, 6.0),
    "bandwidth.AveragedBiasPath.ess_floor": (6.0, 24.0),
    "bandwidth.AveragedBiasPath.nugget": (0.005, 0.1),
    "bandwidth.averaged_bias_path.LEAST_OF_ENVELOPE": (0.0, 1.0),
    "inference.RobustBiasCorrected.shrink": (0.71, 1.0),
    "inference.RobustBiasCorrected.at_kink": (0.45, 0.84),
    "bandwidth.base.CLEAR_KINK": (0.05, 0.2),
}
"""Those of bandwidth and interval, by the same models."""


IMPORTED: dict[str, tuple[str, ...]] = {
    "bandwidth.base.CLEAR_KINK": ("inference.rbc.CLEAR_KINK",),
    "bandwidth.path.FEWEST": ("bandwidth.averaged_bias_path.FEWEST",),
    "evaluation.models.fitting.MOST_TO_FIT": (
        "evaluation.models.jackknife.MOST_TO_FIT",
        "evaluation.models.nuisance.MOST_TO_FIT",
    ),
    "learn.tables.DOSES": ("learn.stacked.DOSES",),
}
"""Under which names the default call imports a constant."""


@contextmanager
def with_constant(name: str, value: float) -> Iterator[None]:
    """Change one constant for a while, wherever a module has imported it."""
    with ExitStack() as changed:
        for place in map(place_of, (name, *IMPORTED.get(name, ()))):
            changed.enter_context(place.changed(value))
        yield


def plan() -> list[Task]:
    """Return every log of the plan; any stop leaves a balanced record of its stage."""
    return [
        Task(name, ROWS, replication, SEED)
        for designs, replications in STAGES
        for replication in range(replications)
        for name in designs
    ]


def study(task: Task) -> dict[str, Any]:
    """Return values and intervals of all policies of a log, by the default and by each change."""
    design = DESIGNS[task.design]
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    log = design.draw(task.n, seed)
    default = Evaluation.of(log, design.policies, None, None)
    found = {"default": estimates(default)}
    for name, values in SMOOTHING.items():
        for value in values:
            with with_constant(name, value):
                found[f"{name}={value:g}"] = estimates(default)
    for name, values in MODELS.items() if task.design in TUNING else ():
        for value in values:
            with with_constant(name, value):
                found[f"{name}={value:g}"] = estimates(
                    Evaluation.of(log, design.policies, None, None)
                )
    truths = [float(f"{design.truths[policy]:.5g}") for policy in design.policies]
    return {"truth": truths, "found": found}


def estimates(evaluation: Evaluation) -> list[list[float]]:
    """Return value, low and high of each policy; trust is not asked for."""
    chosen, _ = evaluation.bandwidths(None)
    asked = evaluation.point(chosen).joint
    # As `Evaluation.comparison` does.
    share = models_share(evaluation.policy_rows, asked.questions, evaluation.survey.sample)
    degrees = max(evaluation.nuisances.folds - 1, 1)
    point = asked.with_models(filled(share, asked.covariance), degrees)
    inference = RobustBiasCorrected().infer(point, evaluation.over_rows)
    ends = [inference.interval(i).at(0.95) for i in range(len(point.values))]
    each = zip(point.values.tolist(), ends, strict=True)
    return [[float(f"{number:.5g}") for number in (value, *both)] for value, both in each]
