"""Which class of policies to take: the simplest that loses nothing that can be seen.

Classes are compared by the paired differences of their scores on the same rows, which had no part
in learning them. The score is a smoothed loss: differences of it are shown, never itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _text
from titrant._tables import Tabular

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.data.keys import Keys
    from titrant.learn.contenders import Arena, Contender
    from titrant.learn.vector import VectorArena

WITHIN = 1.0
"""The simplest class is taken that is within so many standard errors of the best."""
CLEAR = 2.0
"""A gain or loss of so many standard errors is said to be there."""
PERSONAL = "personal"
LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class ClassScore:
    """A class and how its held-out score differs from that of the chosen class."""

    name: str
    size: int | None
    """Parameters of a rule, leaves of a tree; None for a dose of each person's own."""
    behind: float
    """The mean difference of losses: positive if the chosen class is better."""
    se: float

    @property
    def gains(self) -> bool:
        """Whether it is clearly better than the chosen class."""
        return -self.behind > CLEAR * self.se

    @property
    def loses(self) -> bool:
        """Whether it is clearly worse than the chosen class."""
        return self.behind > CLEAR * self.se

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {"class": self.name, "size": self.size, "behind": self.behind, "se": self.se}


@dataclass(frozen=True, slots=True, repr=False)
class ClassChoice(Tabular):
    """The classes that competed, simplest first, and a personal rule for reference."""

    chosen: str
    classes: tuple[ClassScore, ...]
    personal: ClassScore | None
    """Each person's own best dose, which no rule can be: what is left to be gained."""
    honest: tuple[float, float] | None = None
    """The honest value of the whole procedure, this choice included, and its SE, if graded."""

    @classmethod
    def of(cls, found: Sequence[Contender[Any]], arena: Arena | VectorArena) -> ClassChoice:
        """Return the choice among classes that learned on the same folds."""
        score = np.stack([arena.score(one.doses) for one in found])
        groups = arena.log.groups
        at = simplest(score, groups)
        names = [one.name for one in found]
        classes = tuple(
            ClassScore(one.name, one.size, *difference(s, score[at], groups))
            for one, s in zip(found, score, strict=True)
        )
        if PERSONAL in names or not arena.bounds_personal:
            return cls(names[at], classes, None)
        own = arena.score(arena.personal())
        personal = ClassScore(PERSONAL, None, *difference(own, score[at], groups))
        return cls(names[at], classes, personal)

    @property
    def place(self) -> int:
        """The place of the chosen class."""
        return [one.name for one in self.classes].index(self.chosen)

    @property
    def richer(self) -> ClassScore | None:
        """The rule richer than the chosen one that gains most, if any clearly gains."""
        others = (*self.classes[self.place + 1 :], *([self.personal] if self.personal else []))
        clear = [one for one in others if one.gains]
        return min(clear, key=lambda one: one.behind) if clear else None

    @property
    def line(self) -> ClassScore | None:
        """The linear class, where a richer one was chosen."""
        return next((one for one in self.classes[: self.place] if one.name == LINEAR), None)

    @property
    def finding(self) -> str:
        """What simpler rules would lose and what a richer one would gain, in a line."""
        said = []
        line = self.line
        if line is not None and line.behind > WITHIN * line.se:
            lost = amount(line.behind, line.se)
            clear = f"would lose {lost}" if line.loses else f"is {lost} behind, perhaps by chance"
            said.append(f"A linear rule {clear}.")
        if self.richer is None:
            said.append(f"No richer rule is seen to gain anything over the {self.chosen} one.")
        else:
            gain = amount(-self.richer.behind, self.richer.se)
            article = "An" if self.richer.name[0] in "aeiou" else "A"
            said.append(
                f"{article} {self.richer.name} rule would gain {gain}; the {self.chosen} rule is "
                "not enough."
            )
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "chosen": self.chosen,
            "finding": self.finding,
            "classes": [one.to_dict() for one in self.classes],
            "personal": None if self.personal is None else self.personal.to_dict(),
            "honest": None if self.honest is None else list(self.honest),
        }

    def graded(self, value: float, se: float) -> ClassChoice:
        """Return the choice with the honest value of the procedure that made it."""
        return replace(self, honest=(value, se))

    def table(self) -> tuple[tuple[str, ...], ...]:
        """Return the headings, then each class: size, difference to the chosen one, its SE.

        Where it was graded, also the honest value, of the chosen class alone.
        """
        headings = HEADINGS if self.honest is None else (*HEADINGS, GRADED)
        rows = (*self.classes, *([self.personal] if self.personal else []))
        return headings, *(self._row(one)[: len(headings)] for one in rows)

    def _row(self, one: ClassScore) -> tuple[str, ...]:
        size = "–" if one.size is None else str(one.size)
        if one.name == self.chosen:
            value = "–" if self.honest is None else amount(*self.honest)
            return f"{one.name}, chosen", size, "–", "–", value
        behind = f"{one.behind:+.3g}".replace("-", "−")
        return one.name, size, behind, f"{one.se:.2g}", "–"

    def __str__(self) -> str:
        return "\n".join([*_text.columns(self.table()), self.finding])

    def __repr__(self) -> str:
        return f"ClassChoice(chosen={self.chosen!r}, of {len(self.classes)})"

    def _texts(self, level: float) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        return self.table()

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        rows = (*self.classes, *([self.personal] if self.personal else []))
        return [{**one.to_dict(), "chosen": one.name == self.chosen} for one in rows]

    def _caption(self) -> str:
        return self.finding


HEADINGS = ("class", "size", "behind the chosen", "SE")
GRADED = "honest value"


def simplest(score: Array, groups: Keys | None = None) -> int:
    """Return the first class within one SE of the best; score (classes, n), simplest first."""
    best = score[int(np.argmin(score.mean(axis=1)))]
    for place, one in enumerate(score):
        behind, se = difference(one, best, groups)
        if behind <= WITHIN * se:
            return place
    return int(np.argmin(score.mean(axis=1)))


def difference(a: Array, b: Array, groups: Keys | None = None) -> tuple[float, float]:
    """Return the mean of a − b (n,) and its standard error, of groups' sums where there are groups.

    SE² = Σ_g (Σ_{i ∈ g} (dᵢ − d̄))²/n², d = a − b.
    """
    d = a - b
    mean = float(d.mean())
    off: Array = d - mean
    if groups is not None:
        _, place = np.unique(groups, return_inverse=True)
        off = np.bincount(place, off).astype(np.float64)
    return mean, float(np.sqrt(np.sum(off**2)) / len(d))


def amount(value: float, se: float) -> str:
    """Return value ± SE, with the digits that the SE leaves."""
    if not se > 0.0:
        return f"{value:.3g}"
    digits = max(0, 1 - int(np.floor(np.log10(se))))
    return f"{value:.{digits}f} ± {se:.{digits}f}"
