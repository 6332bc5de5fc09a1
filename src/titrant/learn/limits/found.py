"""What limits do to a learned rule: where they bind, and what each costs.

Costs are paired differences of held-out scores, as classes are compared: the same rows, curves and
folds, the same class learned with all limits and without one of them. The score is a smoothed loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _text
from titrant._tables import Tabular
from titrant.errors import DataError
from titrant.learn.choice import amount, difference
from titrant.learn.limits.declared import LimitedClass, Limits

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.learn.classes import PolicyClass
    from titrant.learn.contenders import Arena, Contender
    from titrant.learn.limits.prices import Capped, TradeOff

HEADINGS = ("limit", "binds in", "costs", "SE")
TRADED = ("price", "what is limited", "SE", "loss against no limit", "SE", "mean dose")
ALL = "all limits"
STEP = 0.1
"""How far the budget is moved either way to see its price, in units of s."""
MOVED = 1e-9
"""A dose that differs by no more than this share of s is the same."""


@dataclass(frozen=True, slots=True)
class LimitCost:
    """A limit, in how many rows the dose is another one without it, and what it costs."""

    name: str
    binds: float
    """The share of rows whose dose it changes."""
    cost: float
    """The mean held-out loss with all limits less that without this one."""
    se: float

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values."""
        return {"limit": self.name, "binds": self.binds, "cost": self.cost, "se": self.se}


@dataclass(frozen=True, slots=True)
class CapFound:
    """What became of a limit that has a price."""

    subject: str
    """What is limited."""
    at_most: float
    at: TradeOff
    """The rule that was taken."""
    curve: tuple[TradeOff, ...]
    """Rules at prices from none to large."""
    honest: tuple[float, float] | None = None
    """The honest mean of a second outcome and its SE, if graded."""

    @property
    def finding(self) -> str:
        """Return what is limited against its limit, in a line."""
        found = amount(self.at.second, self.at.second_se)
        graded = "" if self.honest is None else f", {amount(*self.honest)} graded by halves"
        return (
            f"{self.subject} is {found} on rows held out{graded}; it is to be at most "
            f"{self.at_most:.6g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "subject": self.subject,
            "at_most": self.at_most,
            "at": self.at.to_dict(),
            "curve": [point.to_dict() for point in self.curve],
            "honest": None if self.honest is None else list(self.honest),
        }

    def table(self) -> tuple[tuple[str, ...], ...]:
        """Return the headings, then the rule at each price."""
        return TRADED, *(point.row() for point in self.curve)


@dataclass(frozen=True, slots=True, repr=False)
class LimitsFound(Tabular):
    """What the limits of a learned rule do to it."""

    costs: tuple[LimitCost, ...]
    """Of each limit, and of all of them together if there are several."""
    mean_dose: float
    """The mean dose of the log's rows under the rules that were learned without them."""
    budget: float | None = None
    price: tuple[float, float] | None = None
    """What one unit more of the mean dose would save, and its SE, where the budget binds."""
    cap: CapFound | None = None
    """What became of a limit that has a price."""

    def __getitem__(self, name: str) -> LimitCost:
        """Return the entry of a limit."""
        return {one.name: one for one in self.costs}[name]

    @property
    def finding(self) -> str:
        """Which limits bind, and the price of the budget, in a line."""
        binding = [one.name for one in self.costs if one.binds and one.name != ALL]
        said = f"Limits that bind: {', '.join(binding)}." if binding else "No limit binds."
        if self.price is not None:
            said += f" One unit more of the mean dose would save {amount(*self.price)}."
        return said if self.cap is None else f"{said} {self.cap.finding}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "finding": self.finding,
            "costs": [one.to_dict() for one in self.costs],
            "mean_dose": self.mean_dose,
            "budget": self.budget,
            "price": None if self.price is None else list(self.price),
            "cap": None if self.cap is None else self.cap.to_dict(),
        }

    def graded(self, value: float, se: float) -> LimitsFound:
        """Return the same with the honest mean of the second outcome."""
        cap = None if self.cap is None else replace(self.cap, honest=(value, se))
        return replace(self, cap=cap)

    def table(self) -> tuple[tuple[str, ...], ...]:
        """Return the headings, then each limit: where it binds, what it costs, the SE of that."""
        return HEADINGS, *(
            (one.name, f"{one.binds:.0%}", f"{one.cost:+.3g}".replace("-", "−"), f"{one.se:.2g}")
            for one in self.costs
        )

    def __str__(self) -> str:
        found = [self.table(), *([] if self.cap is None else [self.cap.table()])]
        return "\n".join([*(line for one in found for line in _text.columns(one)), self.finding])

    def __repr__(self) -> str:
        return f"LimitsFound({', '.join(one.name for one in self.costs)})"

    def _texts(self, level: float) -> tuple[tuple[str, ...], ...]:  # noqa: ARG002
        return self.table()

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        return [one.to_dict() for one in self.costs]

    def _caption(self) -> str:
        return self.finding


def told(
    policy_class: PolicyClass,
    kind: PolicyClass,
    chosen: Contender[Arena],
    arena: Arena,
    capped: Capped | None,
) -> LimitsFound | None:
    """Return what the limits of a class do to the chosen rule, if that is wanted."""
    if not isinstance(policy_class, LimitedClass) or not policy_class.told:
        return None
    limits = policy_class.to
    others = {part: limits.without(part) for part in limits.parts}
    if len(others) > 1:
        others[ALL] = Limits()
    compared = Compared(kind, arena, arena if capped is None else capped.arena)
    costs = tuple(compared.cost(name, chosen, other) for name, other in others.items())
    budget = limits.mean_dose
    binds = budget is not None and next(c for c in costs if c.name == "mean dose").binds > 0.0
    price = compared.price(limits) if binds else None
    cap = None
    if limits.priced is not None and capped is not None:
        cap = CapFound(limits.priced.subject, limits.priced.most, capped.at, capped.curve)
    return LimitsFound(costs, float(chosen.doses.mean()), budget, price, cap)


@dataclass(frozen=True, slots=True)
class Compared:
    """A class learned within other limits, on the same rows, curves and folds."""

    kind: PolicyClass
    arena: Arena
    """By what rules are scored."""
    priced: Arena
    """From what rules within a limit that has a price are learned."""

    def doses(self, limits: Limits) -> Array:
        """Return the dose of each row (n,), learned without its fold within limits."""
        from titrant.learn.contenders import contender  # noqa: PLC0415  (it keeps to limits)

        return contender(
            self.kind, within(limits, self.priced if limits.priced else self.arena)
        ).doses

    def cost(self, name: str, chosen: Contender[Arena], other: Limits) -> LimitCost:
        """Return what a limit costs: the difference to the rule with other limits, all but it."""
        doses, arena = self.doses(other), self.arena
        apart = np.abs(doses - chosen.doses) > MOVED * arena.units.dose_sd
        cost, se = difference(arena.score(chosen.doses), arena.score(doses), arena.log.groups)
        return LimitCost(name, float(apart.mean()), cost, se)

    def price(self, limits: Limits) -> tuple[float, float] | None:
        """Return −Δloss/Δ(mean dose) and its SE between budgets a little smaller and larger."""
        arena = self.arena
        budget, step = limits.mean_dose or 0.0, STEP * arena.units.dose_sd
        try:
            less, more = (
                self.doses(replace(limits, mean_dose=budget + by)) for by in (-step, step)
            )
        except DataError:  # no rule spends less
            return None
        spent = float((more - less).mean())
        if spent <= 0.0:
            return None
        saved, se = difference(arena.score(less), arena.score(more), arena.log.groups)
        return saved / spent, se / spent


def within(limits: Limits, arena: Arena) -> Arena:
    """Return the same rows, curves and folds with other limits."""
    rows = replace(arena.rows, limits=limits.on(arena.log, arena.units))
    return replace(arena, rows=rows, limits=limits)
