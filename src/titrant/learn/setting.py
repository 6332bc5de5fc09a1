"""What a learning procedure is, and the units of a learning problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant.errors import DataError
from titrant.policies import Clipped, Constant
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass, Limits, PolicyClass
    from titrant.optimize import Solution
    from titrant.policies import Policy

    Progress = Callable[[str, int, int], None]
    """Called with the stage, steps done and steps in all."""

# What a learning procedure is: from a log to a policy, with the reasons for it.


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


# The units of a learning problem: doses and outcomes on scales that mean the same everywhere.
#
# Bandwidths, floors, ridges and the parameters of a search are in units of s, the sd of the dose
# left after regressing it on the context: the room that logging left for a policy to move in.

TAILS = (0.005, 0.995)
"""The quantiles of the logged dose between which a learned policy stays."""
NEGLIGIBLE = 1e-6
"""Doses whose sd given the context is below this share of their range are a function of it."""


@dataclass(frozen=True, slots=True)
class Units:
    """Scales of dose and outcome, and the doses a learned policy may give."""

    dose_sd: float
    """s, the sd of the dose that the context does not explain."""
    outcome_sd: float
    low: float
    """The smallest dose a policy may give."""
    high: float

    @classmethod
    def of(cls, log: LoggedData, limits: Limits = (-np.inf, np.inf), *, tails: bool = True) -> Self:
        """Return the units of a log with one treatment, for a class with these limits."""
        low, high = dose_range(log, limits, tails=tails)
        s = float(dose_sd(log)[0])
        return cls(s, outcome_sd(log), float(low[0]), float(high[0]))

    def policy(self, fitted: FittedClass, params: Array) -> Policy:
        """Return the policy with parameters β/s (P,), cut to its range."""
        return cut(fitted.policy(params * self.dose_sd), self.low, self.high)


def dose_range(log: LoggedData, limits: Limits, *, tails: bool) -> tuple[Array, Array]:
    """Return the smallest and largest doses (d,) that a learned policy may give.

    They are within the limits of the class, possible in every row, and with ``tails`` between the
    .5 and 99.5 % quantiles of the logged doses.
    """
    ends = np.quantile(log.doses, TAILS, axis=0) if tails else None
    return range_between((log.lower.max(axis=0), log.upper.min(axis=0)), limits, ends)


def range_between(
    possible: tuple[Array, Array], limits: Limits, ends: Array | None
) -> tuple[Array, Array]:
    """Return the same from the doses possible in every row (d,) and quantiles of them (2, d)."""
    low, high = np.maximum(possible[0], limits[0]), np.minimum(possible[1], limits[1])
    if ends is not None:
        if not np.all(ends[0] < ends[1]):
            raise DataError(
                f"The logged doses lie at {_listed(ends[0])} from the {TAILS[0]:.1%} to the "
                f"{TAILS[1]:.1%} quantile, so there is no range of doses to learn in. "
                "Collect varied doses."
            )
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
    if not np.all(low < high):
        raise DataError(
            f"No dose is left to learn: a policy could give at least {_listed(low)} and at most "
            f"{_listed(high)} by the logged doses, the bounds of all rows and the limits of the "
            "policy. Widen them; bounds that differ between rows must overlap."
        )
    return low, high


def dose_sd(log: LoggedData) -> Array:
    """Return s (d,), the sd of each dose after least squares on the context."""
    from titrant.outcome.standard import residual_sd  # noqa: PLC0415

    check_rows(*log.context.shape)
    s = residual_sd(log.context, log.doses)
    check_varied(s, np.ptp(log.doses, axis=0))
    return s


def check_rows(n: int, p: int) -> None:
    """Refuse n rows with p contexts that leave nothing to learn from."""
    if n <= p + 1:
        raise DataError(
            f"Of {n:,} rows with {p:,} contexts nothing can be learned: there must be more rows "
            "than contexts, in each half if the value is to be honest. Name fewer contexts."
        )


def check_varied(s: Array, extent: Array) -> None:
    """Refuse doses of which the context leaves an sd of s (d,), next to nothing of their range."""
    if np.any(s <= NEGLIGIBLE * extent):
        raise DataError(
            "The logged doses are a linear function of the context, so no other dose was ever "
            "tried for a context. Collect doses that vary for like contexts."
        )


def outcome_sd(log: LoggedData) -> float:
    """Return sd(y), or 1 if all outcomes are the same."""
    return float(log.outcome.std()) or 1.0


def cut(policy: Policy, low: float | Array, high: float | Array) -> Policy:
    """Return the policy cut to [low, high], a constant one as the constant it then is."""
    if is_exactly(policy, Constant):
        return Constant(np.clip(policy.dose, low, high))
    if np.all(np.isinf(low)) and np.all(np.isinf(high)):
        return policy
    return Clipped(policy, low, high)


def _listed(doses: Array) -> str:
    return ", ".join(f"{dose:.6g}" for dose in doses)
