"""What a learning procedure is: from a log to a policy, with the reasons for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import PolicyClass
    from titrant.optimize import Solution
    from titrant.policies import Policy

    Progress = Callable[[str, int, int], None]
    """Called with the stage, steps done and steps in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A learned policy and how it came about."""

    policy: Policy
    solution: Solution
    """Of the search on all rows that was given the most say."""
    report: Mapping[str, Any] = field(default_factory=dict)
    """Every choice and what it rests on, as plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "policy": self.policy.to_dict(),
            "search": self.solution.to_dict(),
            "report": dict(self.report),
        }


class Procedure(ABC):
    """A way from a log of losses to a policy."""

    @abstractmethod
    def learn(
        self, log: LoggedData, q: Array, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the policy of the class with the least estimated loss.

        ``q`` (n,) are the propensities of the logged doses, not floored.
        """


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""
