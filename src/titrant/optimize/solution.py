"""What a search returns: the best point found, and a status that is a value, not an exception."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from titrant._types import Array


class Status(Enum):
    """How a search ended; the value is the advice that goes with it."""

    CONVERGED = "The search converged."
    STALLED = "No step lowered the objective any further; the point may be a kink. It is usable."
    OUT_OF_STEPS = "The search ran out of steps. Raise `steps`, or rescale the contexts."
    INFEASIBLE = (
        "No policy of the class reaches the effective sample size asked for. Raise the bandwidth "
        "or lower the floor."
    )
    UNSOLVED = (
        "A linear program could not be solved. Check that the constraints leave room, or rescale "
        "the contexts."
    )
    NOT_FINITE = "The objective was not finite at any start. Check the bandwidth and the bounds."


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The best of several runs of a minimizer."""

    params: Array
    """The best parameters (P,)."""
    value: float
    """The objective there (penalties included)."""
    status: Status
    starts: Array
    """Where each run began (m, P)."""
    ends: Array
    """Where each run ended (m, P)."""
    values: Array
    """The objective at each end (m,)."""
    evaluations: int
    """Objective evaluations, all runs together."""
    bound: float | None = None
    """A lower bound on the objective over the whole class, when the search proves one."""

    @property
    def gap(self) -> float | None:
        """How far the value can be from the least one: a certificate when it is 0."""
        return None if self.bound is None else self.value - self.bound

    def to_dict(self) -> dict[str, Any]:
        """Return the solution as plain values."""
        return {
            "params": self.params.tolist(),
            "value": self.value,
            "status": self.status.name.lower(),
            "advice": self.status.value,
            "values": self.values.tolist(),
            "evaluations": self.evaluations,
            "bound": self.bound,
        }
