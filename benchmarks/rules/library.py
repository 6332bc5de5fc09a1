"""Whether the learner's curves gain by the models that evaluation has and the learner has not.

They are a ridge on splines and products of the contexts, and one that also has a forest's
predictions of outcome and dose. Both libraries learn from the same draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from benchmarks.confounding.records import Task, digits
from benchmarks.rules.measure import AUTOMATIC, LINEAR, RESULTS, Competition, Draw
from titrant.outcome.base import Bounded, OutcomeModel
from titrant.outcome.context import SmoothContext
from titrant.outcome.forest import Forest
from titrant.outcome.ridge import RidgeModel
from titrant.outcome.stack import library

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray

RECORDS = RESULTS / "learning_rules_library.jsonl.gz"
SEED = 2047
PROBLEMS = (
    "linear, p = 5",
    "thresholds",
    "clearance, relative loss",
    "slopes of three sites",
    "step of a sum",
    "wave among 15 contexts",
)
USUAL, WIDER = "usual", "with forest features"


class ForestRidge(OutcomeModel):
    """A ridge on splines of the contexts and on a forest's predictions of outcome and dose.

    It learns from what trees grown without a row say of it.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Grow the forest, then fit the ridge on the contexts that it extends."""
        self.forest_ = Forest(seed=self.seed)
        seen = self.forest_.fit_out_of_bag(X, np.column_stack([y, t]))
        self.ridge_ = RidgeModel(SmoothContext(extra=seen.shape[1]))
        self.ridge_.fit(np.column_stack([X, seen]), t, y)
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return the predicted outcomes (n,)."""
        return self.ridge_.predict(np.column_stack([X, self.forest_.predict(X)]), t)

    def curve(self, X: Array, doses: Array) -> Array:
        """Return the predictions at each dose (n, G): the forest is asked once."""
        return self.ridge_.curve(np.column_stack([X, self.forest_.predict(X)]), doses)


def wider() -> Mapping[str, OutcomeModel]:
    """Return the learner's library with two more models."""
    return {
        **library(),
        "smooth": Bounded(RidgeModel(SmoothContext())),
        "forest": Bounded(ForestRidge()),
    }


def measure(task: Task) -> dict[str, Any]:
    """Return the excess risks of the chosen and of the linear rule with either library."""
    import titrant as tt  # noqa: PLC0415

    draw = Draw.of(task)
    log = tt.LoggedData(draw.x, draw.t, draw.y)
    found = {USUAL: Competition.on(log), WIDER: Competition.on(log, wider())}
    excess = {}
    for name, one in found.items():
        rules = one.policies(LINEAR)
        excess[name] = {
            kind: digits(draw.excess(rules[kind](draw.new))) for kind in (AUTOMATIC, LINEAR)
        }
    stack = dict(zip(wider(), found[WIDER].arena.stack.tolist(), strict=True))
    return {
        "excess": excess,
        "chosen": {name: one.choice.chosen for name, one in found.items()},
        "stack": {name: digits(weight) for name, weight in stack.items()},
        "cpu": {name: one.cpu for name, one in found.items()},
    }
