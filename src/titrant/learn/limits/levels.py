"""Steps that nobody named: where logged doses are levels, such as list prices, rules give these.

What lies between levels was never tried, and a level with few rows cannot be graded. So levels with
enough rows are the steps, and a rule that gives one of them to many people who hardly ever got it
gives a level next to it in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError
from titrant.inference.trust.rules import MASS_ROWS_NEEDED, MASS_ROWS_WANTED, MASS_SHARE
from titrant.learn.limits.declared import LimitedClass, Limits
from titrant.learn.setting import Units
from titrant.policies.base import is_exactly
from titrant.policies.calling import recommended
from titrant.policies.clipped import InLimits

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.evaluation.survey import Survey
    from titrant.learn.classes.base import PolicyClass
    from titrant.policies import Policy

ENOUGH = (MASS_ROWS_NEEDED + MASS_ROWS_WANTED) / 2.0
"""Rows of a half that were given the dose which a rule gives them: a grade needs 10 of them, and by
chance the half that grades has fewer than the one that learns."""
OFTEN = MASS_SHARE / 2.0
"""A level that a rule gives to so many rows needs them: the other half may have twice as many."""
FEWEST = 2
"""Levels without which there is nothing to choose between."""
ON_ANY_STEPS = {"monotone"}
"""Limits that a rule keeps to whatever its steps are."""


@dataclass(frozen=True, slots=True)
class LevelSteps:
    """The levels of a log as the steps of a rule."""

    levels: tuple[float, ...]
    """All levels of the log, increasing,"""
    kept: tuple[float, ...]
    """and those with enough rows."""
    half: float
    """The rows of half of the log."""
    given: Limits
    """What else a rule must keep to."""

    @classmethod
    def of(
        cls, survey: Survey, given: Limits | None, policy_class: PolicyClass
    ) -> LevelSteps | None:
        """Return the steps of a log; None if they are named, doses vary freely, or none fits."""
        masses, limits = survey.masses, Limits() if given is None else given
        if masses is None or not masses.levels or limits.steps is not None:
            return None
        if len(masses.values) < FEWEST:
            return None
        half = survey.n / 2.0
        enough = masses.shares * half >= ENOUGH
        if enough.sum() < FEWEST:
            enough[np.argsort(-masses.shares, kind="stable")[:FEWEST]] = True
        levels, kept = masses.values, masses.values[enough]
        found = cls(tuple(levels.tolist()), tuple(kept.tolist()), half, limits)
        return found if found._fits(survey.sample.log, policy_class) else None

    @property
    def limits(self) -> Limits:
        """All that a rule must keep to."""
        return replace(self.given, steps=self.kept)

    def _fits(self, log: LoggedData, policy_class: PolicyClass) -> bool:
        """Return whether every row has a dose on the steps within the other limits."""
        try:
            units = Units.of(log, LimitedClass(policy_class, self.limits).limits)
            self.limits.on(log, units)
        except DataError:
            return False
        return True

    def graded(self, policy: Policy, log: LoggedData) -> Policy:
        """Return the rule learned from a log without levels that it gives to many and few got.

        Where limits of means or of rows were given, which fewer steps may break, the rule as it is.
        """
        if not is_exactly(policy, InLimits) or set(self.given.parts) - ON_ANY_STEPS:
            return policy
        wanted = recommended(policy.policy, log.context, log.names)
        doses = recommended(policy, log.context, log.names)
        steps = np.array(self.kept)
        steps = steps[(steps >= doses.min()) & (steps <= doses.max())]
        fewer = enough_got(steps, wanted, log.treatment, self.half / len(log))
        return policy if len(fewer) == len(steps) else replace(policy, steps=fewer)

    def note(self, policy: Policy) -> str:
        """Return what was done, in words, ``policy`` being the learned rule."""
        steps = self.kept
        if is_exactly(policy, InLimits) and isinstance(policy.steps, np.ndarray):
            steps = tuple(policy.steps.tolist())
        few = [level for level in self.levels if level not in self.kept]
        seldom = [level for level in self.kept if level not in steps]
        said = f"Logged doses are levels, so the rule gives only these: {_listed(steps)}."
        if few:
            said += (
                f" Left out since half of the log has fewer than {ENOUGH:g} rows of each, too few "
                f"to grade: {_listed(few)}."
            )
        if seldom:
            said += (
                " Left out since too few of those to whom the rule would give them got them: "
                f"{_listed(seldom)}."
            )
        return f"{said} `limits=Limits(steps=[…])` names others."


def enough_got(steps: Array, wanted: Array, logged: Array, scale: float) -> Array:
    """Return those of the steps (K,), increasing, on which a rule's doses (n,) are best put.

    Each that is given to many rows was logged in enough of them, ``scale`` times their number. Of
    such steps they are the ones nearest to the rule's doses, in mean square. Which rows a step gets
    depends on the steps next to it, so the best list that ends with two steps is found from those
    that end with two before them. If there is none, the two steps that most rows have.
    """
    size, n, order = len(steps), len(wanted), np.argsort(wanted)
    w, own = wanted[order], steps[:, None]
    before = np.zeros((size, 1))
    got = np.hstack([before, np.cumsum(logged[order] == own, axis=1)])
    far = np.hstack([before, np.cumsum((w - own) ** 2, axis=1)])
    # Steps are 1 … K here, 0 is before the first and K + 1 after the last of them.
    first = np.zeros((size + 2, size + 2), dtype=np.intp)
    first[1:-1, 1:-1] = np.searchsorted(w, (own + steps) / 2.0)
    first[:, -1] = n
    best = np.full((size + 2, size + 2), np.inf)
    best[0, 1:-1] = 0.0
    last = np.zeros((size + 2, size + 2), dtype=np.intp)
    for b in range(1, size + 1):
        for c in range(b + 1, size + 2):
            low, high = first[:b, b], first[b, c]
            fine = (high - low <= OFTEN * n) | (
                scale * (got[b - 1, high] - got[b - 1, low]) >= ENOUGH
            )
            total = np.where(fine, best[:b, b] + far[b - 1, high] - far[b - 1, low], np.inf)
            if c > size:  # one step for all is no rule
                total[0] = np.inf
            last[b, c] = np.argmin(total)
            best[b, c] = total[last[b, c]]
    b, c = int(np.argmin(best[:, -1])), size + 1
    if not np.isfinite(best[b, c]):
        return np.sort(steps[np.argsort(-got[:, -1], kind="stable")[:FEWEST]])
    chosen = list[int]()
    while b > 0:
        chosen.append(b - 1)
        b, c = int(last[b, c]), b
    return steps[chosen[::-1]]


def _listed(levels: tuple[float, ...] | list[float]) -> str:
    return ", ".join(f"{level:.6g}" for level in levels)
