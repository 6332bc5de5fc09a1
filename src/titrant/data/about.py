"""What a log is about: what its doses and its outcome are called, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from titrant.errors import DataError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Names, units and direction: what sentences, tables and pictures of a log's results say.

    >>> About(outcome="gain", units={"gain": "kg"}, maximize=True).value
    'gain in kg, higher is better'
    """

    treatments: tuple[str, ...] = ()
    """What the doses are called; empty where nobody said it."""
    outcome: str | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    """By the names of doses and outcome."""
    maximize: bool | None = None
    """Whether more of the outcome is better; None where nobody said it: then less is."""

    def __post_init__(self) -> None:
        if self.maximize is not None and not isinstance(self.maximize, bool):
            raise InvalidArgument(
                "The `maximize` of a log must be True (the outcome is a reward) or False (it is a "
                f"loss); got {self.maximize!r}."
            )
        known = [*self.treatments, *([] if self.outcome is None else [self.outcome])]
        strange = [name for name in self.units if name not in known]
        if strange:
            raise DataError(
                f"A unit is given for `{strange[0]}`, which is neither a treatment nor the outcome "
                f"of the log; they are {', '.join(known) or 'not named'}."
            )

    def direction(self, asked: bool | None, owner: str) -> bool:  # noqa: FBT001  (None: not said)
        """Return whether more is better, as a call says or else the log; refuse a contradiction."""
        if asked is None:
            return bool(self.maximize)
        if self.maximize is not None and asked != self.maximize:
            better = "higher" if self.maximize else "lower"
            raise InvalidArgument(
                f"`{owner}` is told maximize={asked}, but the log was made with "
                f"maximize={self.maximize}: {better} outcomes are better. Leave `maximize` out "
                "here, or make the log anew."
            )
        return asked

    def without_outcome(self, maximize: bool | None = None) -> About:  # noqa: FBT001
        """Return what is said of the same doses with another outcome, whose name is not known."""
        units = {name: unit for name, unit in self.units.items() if name in self.treatments}
        return About(treatments=self.treatments, units=units, maximize=maximize)

    def by(self, functional: str) -> About:
        """Return what is said where not the mean of the outcome is asked for, but a functional."""
        found = self.without_outcome(self.maximize)
        return (
            found
            if self.outcome is None
            else replace(found, outcome=f"{self.outcome}: {functional}")
        )

    def dose(self, j: int = 0) -> str:
        """Return what an axis of dose number j is called."""
        return self._with_unit(self.treatments[j]) if self.treatments else "dose"

    @property
    def value(self) -> str:
        """What an axis of values is called."""
        name = "value" if self.outcome is None else self._with_unit(self.outcome)
        return name if self.maximize is None else f"{name}, {self.better} is better"

    @property
    def difference(self) -> str:
        """What an axis of differences is called."""
        if self.outcome is None:
            return "difference"
        return f"difference of {self._with_unit(self.outcome)}"

    def axis(self, *, difference: bool) -> str:
        """Return what an axis of values, or of differences, is called."""
        return self.difference if difference else self.value

    @property
    def better(self) -> str:
        """Which values are better, in a word."""
        return "higher" if self.maximize else "lower"

    def _with_unit(self, name: str) -> str:
        return f"{name} in {self.units[name]}" if self.units.get(name) else name
