"""What a trust report is: checks with a number, a verdict and what to do about it.

The rules by which a number earns its verdict are in `titrant.inference.trust.rules`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

from titrant import _drawing
from titrant._tables import Tabular
from titrant.errors import InvalidArgument, UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from titrant._drawing import Axes


class Verdict(Enum):
    """What a check says of an estimate."""

    OK = "ok"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Check:
    """One number about an estimate, with its verdict."""

    name: str
    value: float
    verdict: Verdict
    message: str
    """A sentence with the number, the rule and, unless ok, the remedy."""
    explains: bool = False
    """Whether it may be the cause of what other checks find, and is told with any refusal."""

    def __str__(self) -> str:
        return f"{self.verdict.value:<6}  {self.name}: {self.message}"


@dataclass(frozen=True, slots=True, repr=False)
class Diagnostics(Tabular):
    """The checks of one estimate; its verdict is that of the worst."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """What could not be checked and why, and values that were held; a sentence each."""

    @classmethod
    def of(cls, findings: Iterable[Check | str]) -> Self:
        """Return the report of checks and, among them, notes."""
        found = list(findings)
        return cls(
            tuple(f for f in found if isinstance(f, Check)),
            tuple(f for f in found if isinstance(f, str)),
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst check."""
        order = list(Verdict)
        return max((c.verdict for c in self.checks), key=order.index, default=Verdict.OK)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the checks, in their order."""
        return tuple(c.name for c in self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    def __getitem__(self, name: str) -> Check:
        """Return the check called `name`."""
        for c in self.checks:
            if c.name == name:
                return c
        known = ", ".join(map(repr, self.names))
        raise InvalidArgument(f"There is no check {name!r} in this report; it has {known}.")

    def __add__(self, other: Diagnostics) -> Diagnostics:
        """Return one report of the checks of both."""
        return Diagnostics(self.checks + other.checks, self.notes + other.notes)

    def updated(self, other: Diagnostics) -> Diagnostics:
        """Return one report of both, in which ``other`` speaks for the checks that both have."""
        kept = tuple(c for c in self.checks if c.name not in other.names)
        return Diagnostics(kept + other.checks, self.notes + other.notes)

    def messages(self, verdict: Verdict) -> list[str]:
        """Return the sentences of all checks with this verdict."""
        return [c.message for c in self.checks if c.verdict is verdict]

    def refusal(self) -> UntrustedEstimate | None:
        """Return an error with the numbers and remedies if a check refuses, else None."""
        if self.verdict is not Verdict.REFUSE:
            return None
        told = (c for c in self.checks if c.verdict is Verdict.REFUSE or c.explains)
        reasons = [c.message for c in told]
        return UntrustedEstimate(
            f"{' '.join(reasons)} Pass `allow_untrusted=True` to see the number all the same."
        )

    def require_trust(self) -> None:
        """Raise an error with the numbers and remedies when a check refuses."""
        if refusal := self.refusal():
            raise refusal

    def to_dict(self) -> dict[str, Any]:
        """Return the checks as plain values; a number that is not finite is None."""
        checks = {
            c.name: {
                "value": c.value if math.isfinite(c.value) else None,
                "verdict": c.verdict.value,
                "message": c.message,
            }
            for c in self.checks
        }
        return {"verdict": self.verdict.value, "checks": checks, "notes": list(self.notes)}

    def __str__(self) -> str:
        return "\n".join([*map(str, self.checks), *(f"note    {note}" for note in self.notes)])

    def __repr__(self) -> str:
        raised = ", ".join(c.name for c in self.checks if c.verdict is not Verdict.OK)
        of = f"; {raised}" if raised else ""
        return f"Diagnostics({self.verdict.value}; {len(self.checks)} checks{of})"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw each check with its number and verdict; return the matplotlib axes."""
        names = [c.name.replace("_", " ") for c in self.checks]
        marks = [c.verdict.value for c in self.checks]
        numbers = [f"{c.value:.3g}" for c in self.checks]
        drawn = _drawing.new_axes(ax, 0.6 + 0.3 * len(self.checks))
        return _drawing.verdicts(drawn, names, marks, numbers)

    def _texts(self, level: float) -> list[tuple[str, ...]]:  # noqa: ARG002
        rows = [(c.verdict.value, c.name, c.message) for c in self.checks]
        rows += [("note", "", note) for note in self.notes]
        return [("verdict", "check", "finding"), *rows]

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        checks = self.to_dict()["checks"]
        return [{"check": name, **found} for name, found in checks.items()]
