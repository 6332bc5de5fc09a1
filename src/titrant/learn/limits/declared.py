"""What limits there are, which of them a learner was given, and what they are for n rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.data.columns import places
from titrant.errors import DataError, InvalidArgument
from titrant.learn.classes.base import CurveClass, PolicyClass, slope_of
from titrant.learn.classes.bent import AdditiveClass
from titrant.learn.classes.linear import ConstantClass, LinearClass
from titrant.learn.classes.rbf import RBFClass
from titrant.learn.limits.prices import AlikeValues, groups_of, indicators
from titrant.policies.clipped import (
    InLimits,
    Steps,
    check_limits,
    check_possible,
    limit_columns,
    row_limits,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.learn.classes.base import DoseLimits, FittedClass
    from titrant.learn.limits.prices import Cap, Priced
    from titrant.learn.setting import Units
    from titrant.policies import Policy

PARTS: dict[str, tuple[str, ...]] = {
    "steps": ("steps",),
    "at least": ("at_least",),
    "at most": ("at_most",),
    "largest change": ("current", "largest_change"),
    "monotone": ("increasing", "decreasing"),
    "mean dose": ("mean_dose",),
    "equal": ("equal_across", "margin"),
    "cap": ("cap",),
    "alike values": ("alike_across", "value_margin"),
}
"""Every limit and the fields of `Limits` that say it; the law tests run over this list."""
OF_THE_RULE = {"monotone", "mean dose", "equal", "cap", "alike values"}
"""Limits that a rule keeps by its parameters."""
BY_CLASS = ("increasing", "decreasing", "equal_across")
"""Limits that not every class has rules for."""
BISECTIONS = 60
ROUNDS = 5
"""How often groups and the budget take turns: one moves what the other has settled."""
SLACK = 1e-11
"""A budget is kept if it is passed by no more than this share of it."""
HAIR = 1e-12
"""Of the range of doses: more than rounding, less than any dose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a learned rule of one dose must keep to.

    Parameters
    ----------
    steps : a number whose multiples can be given, or a list of strengths
    at_least, at_most : a number, or the context that holds each row's own
    current, largest_change : the context that holds each row's dose so far, and how far the new
        one may be from it
    increasing, decreasing : contexts with which the dose must not fall, or not rise, all others
        the same. The rule is a constant, a line or curves that are lines in these contexts
    mean_dose : the budget: the mean dose of the log's rows, by their weights, is at most this. A
        total for N people is a mean of total/N
    equal_across, margin : a column of texts, or a context with two values; the mean doses of its
        groups differ by at most the margin. The rule is a constant, a line, curves or products
    cap : a `Cap` on the mean of a second outcome under the rule
    alike_across, value_margin : groups as for ``equal_across``, whose mean outcomes under the rule
        differ by at most the margin: those who do worse count more, as much as it takes

    The contexts that hold limits are contexts of the log: whoever chose the logged doses knew them.

    >>> Limits(steps=2.5, mean_dose=30).parts
    ('steps', 'mean dose')
    """

    steps: float | Sequence[float] | None = None
    at_least: float | str | None = None
    at_most: float | str | None = None
    current: str | None = None
    largest_change: float | None = None
    increasing: tuple[str, ...] = ()
    decreasing: tuple[str, ...] = ()
    mean_dose: float | None = None
    equal_across: str | None = None
    margin: float | None = None
    cap: Cap | None = None
    alike_across: str | None = None
    value_margin: float | None = None

    def __post_init__(self) -> None:
        of = Steps.checked(self.steps, "Limits").of
        object.__setattr__(self, "steps", tuple(of.tolist()) if isinstance(of, np.ndarray) else of)
        check_limits("Limits", self.at_least, self.at_most, self.current, self.largest_change)
        for name in ("increasing", "decreasing"):
            given = getattr(self, name)
            names = (given,) if isinstance(given, str) else tuple(given)
            object.__setattr__(self, name, names)
        if both := set(self.increasing) & set(self.decreasing):
            rule = f"without {', '.join(sorted(both))}, which `increasing` has"
            raise _check.invalid("decreasing", "Limits", rule, self.decreasing)
        if self.mean_dose is not None:
            _check.number(self.mean_dose, "mean_dose", "Limits")
        for across, margin in (("equal_across", "margin"), ("alike_across", "value_margin")):
            column, most = getattr(self, across), getattr(self, margin)
            if (column is None) != (most is None):
                given = column if most is None else most
                raise _check.invalid(margin, "Limits", f"given together with `{across}`", given)
            if most is not None:
                _check.nonnegative(most, margin, "Limits")
        if self.cap is not None and self.alike_across is not None:
            rule = "left out beside a cap: each has a price of its own, and one is searched for"
            raise _check.invalid("alike_across", "Limits", rule, self.alike_across)

    @property
    def parts(self) -> tuple[str, ...]:
        """The limits that are given, by their names in `PARTS`."""
        return tuple(
            part
            for part, names in PARTS.items()
            if any(getattr(self, name) not in (None, ()) for name in names)
        )

    def without(self, part: str) -> Limits:
        """Return all limits but one."""
        usual = Limits()
        return replace(self, **{name: getattr(usual, name) for name in PARTS[part]})

    def of_half(self, half: int, seed: int) -> Limits:
        """Return the limits for half of the rows."""
        return self if self.cap is None else replace(self, cap=self.cap.of_half(half, seed))

    @property
    def priced(self) -> Priced | None:
        """The limit that a rule keeps to at a price, if any."""
        if self.alike_across is not None and self.value_margin is not None:
            return AlikeValues(self.alike_across, self.value_margin)
        return self.cap

    @property
    def budget(self) -> float:
        """The largest mean dose; infinite unless given."""
        return np.inf if self.mean_dose is None else self.mean_dose

    @property
    def signs(self) -> dict[str, int]:
        """Which way the dose may go with a context: 1 upward, −1 downward."""
        return dict.fromkeys(self.increasing, 1) | dict.fromkeys(self.decreasing, -1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The contexts that hold limits."""
        return limit_columns(self.at_least, self.at_most, self.current)

    def check(self, log: Source) -> None:
        """Refuse limits that a log has nothing of."""
        if self.parts and log.dimension > 1:
            raise InvalidArgument(
                f"Limits are for one dose; the log has {log.dimension}. Leave them out, or learn "
                "the doses one by one."
            )
        if self.priced is not None:
            self.priced.check(log)
        places((*self.columns, *self.signs), log.names, "set of limits")
        if self.equal_across is not None:
            told = {log.names[j] for j in indicators(self.equal_across, log.names)}
            if both := told & {*self.signs, *self.columns}:
                raise InvalidArgument(
                    f"`{min(both)}` cannot tell groups apart whose doses are alike and be a limit "
                    "or a context with a sign besides."
                )
        if both := set(self.columns) & set(self.signs):
            raise InvalidArgument(
                f"`{min(both)}` holds a limit of each row, and the dose goes with it as that does: "
                "it cannot be asked to be monotone in it besides."
            )

    def on(self, log: LoggedData, units: Units) -> RowLimits:
        """Return what the limits are in the rows of a log; refuse what no dose keeps to."""
        limits = self.of_rows(log, (units.low, units.high))
        check_possible(limits.low, limits.high, self.columns)
        _check_near(limits.steps, log.treatment, units)
        if self.equal_across is not None:
            limits = replace(limits, groups=groups_of(self.equal_across, log))
        check_least(float(limits.given(np.full(len(log), units.low)).mean()), limits.budget)
        return limits

    def of_rows(self, log: LoggedData, ends: tuple[float, float]) -> RowLimits:
        """Return what the limits are in some rows of a log, for a rule learned between ends."""
        names = self.columns
        found = places(names, log.names, "set of limits")
        columns = {name: log.context[:, j] for name, j in zip(names, found, strict=True)}
        steps = Steps.checked(self.steps, "Limits")
        low, high = row_limits(self, steps, columns, len(log))
        margin = np.inf if self.margin is None else self.margin
        return RowLimits(low, high, steps, ends, self.budget, self.signs, margin=margin)

    def kept(self, policy: Policy) -> Policy:
        """Return a policy that keeps to the limits of each row."""
        limited = InLimits(
            policy,
            steps=self.steps,
            at_least=self.at_least,
            at_most=self.at_most,
            current=self.current,
            largest_change=self.largest_change,
        )
        return limited if set(self.parts) - OF_THE_RULE else policy

    def within(self, limits: DoseLimits) -> DoseLimits:
        """Return the smallest and largest dose on the steps within bounds of all rows."""
        steps = Steps.checked(self.steps, "Limits")
        low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in limits)
        return float(steps.above(low)[0]), float(steps.below(high)[0])


def _check_near(steps: Steps, logged: Array, units: Units) -> None:
    """Refuse steps that are all farther than one sd from every logged dose (n,)."""
    ends = np.array([logged.min(), logged.max()])
    if steps.above(ends - units.dose_sd)[0] > steps.below(ends + units.dose_sd)[1]:
        raise DataError(
            f"No dose on the steps is near a logged dose: those are from {ends[0]:.6g} to "
            f"{ends[1]:.6g}. Allow steps among them."
        )


def passes(mean: float | Array, budget: float) -> NDArray[np.bool_]:
    """Return whether mean doses pass a budget."""
    return np.asarray(mean > budget + SLACK * abs(budget))


def check_least(least: float, budget: float) -> None:
    """Refuse a budget that even the smallest doses, with this mean, pass."""
    if passes(least, budget):
        raise DataError(
            f"No rule has a mean dose of at most {budget:.6g}: the smallest doses that the "
            f"log and the other limits allow have a mean of {least:.6g}. Raise the budget, or "
            "allow smaller doses."
        )


@dataclass(frozen=True, slots=True)
class RowLimits:
    """The limits of n rows, and how a rule's dose becomes the one that is given."""

    low: Array
    """The smallest dose on the steps that each row allows (n,)."""
    high: Array
    steps: Steps
    ends: tuple[float, float]
    """The doses between which a rule is learned."""
    budget: float
    """The mean dose is at most this."""
    signs: Mapping[str, int]
    """Which way the dose may go with a context."""
    slopes: Mapping[int, int] = field(default_factory=dict)
    """The signs of parameters of a class, by their places."""
    groups: NDArray[np.intp] | None = None
    """The group of each row (n,), where their mean doses must be alike."""
    margin: float = np.inf
    """By how much the mean doses of groups may differ."""

    def given(self, raw: Array) -> Array:
        """Return the doses given in place of a rule's doses (…, n)."""
        return np.clip(self.steps.nearest(np.clip(raw, *self.ends)), self.low, self.high)

    def held(self, raw: Array) -> Array:
        """Return doses (n, G) held within the limits of the rows, before they are on steps."""
        low, high = self.low[:, None], self.high[:, None]
        return np.clip(np.clip(raw, *self.ends), low, high)

    @property
    def per_row(self) -> bool:
        """Whether any row has narrower limits than the rule."""
        return bool((self.low > self.ends[0]).any() or (self.high < self.ends[1]).any())

    @property
    def budgeted(self) -> bool:
        """Whether the mean dose is limited."""
        return bool(np.isfinite(self.budget))

    def exceeded(self, raw: Array) -> NDArray[np.bool_]:
        """Return whether the mean given dose of each rule (…, n) passes the budget."""
        return passes(self.given(raw).mean(axis=-1), self.budget)

    @property
    def moves(self) -> bool:
        """Whether rules may have to be moved to keep to limits of means."""
        return self.budgeted or self.groups is not None

    def shift(self, raw: Array) -> float:
        """Return the smallest move downward of a rule (n,) with which it keeps to the budget."""
        if not self.exceeded(raw):
            return 0.0
        low, high = self.ends[0] - float(raw.max()), 0.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.exceeded(raw + middle) else (middle, high)
        # On steps the last move ends where a row is about to change its dose: rounding must not.
        return low - HAIR * float(np.ptp(self.ends))

    def offset(self, raw: Array) -> Array:
        """Return what to add to a rule (n,) so that its means keep to limits, group by group."""
        if self.groups is None:
            return np.full_like(raw, self.shift(raw))
        moved = raw + self.shift(raw)
        for _ in range(ROUNDS):
            moved = self._equal(moved, self.groups)
            if not self.exceeded(moved):
                break
            moved = moved + self.shift(moved)
        return moved - raw

    def apart(self, raw: Array) -> float:
        """Return by how much the mean given doses of groups differ at most."""
        return 0.0 if self.groups is None else float(np.ptp(self._means(raw, self.groups)[0]))

    def _means(self, raw: Array, groups: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return the mean given dose of each group, and their rows."""
        _, place, size = np.unique(groups, return_inverse=True, return_counts=True)
        return np.bincount(place, self.given(raw)) / size, size.astype(np.float64)

    def _equal(self, raw: Array, groups: NDArray[np.intp]) -> Array:
        """Return a rule (n,) whose groups are moved toward each other, by as little as it takes."""
        means, size = self._means(raw, groups)
        if np.ptp(means) <= self.margin:
            return raw
        low = nearest_interval(means, size, self.margin)
        moved = raw.copy()
        goals = np.clip(means, low, low + self.margin)
        for g, mean, goal in zip(np.unique(groups), means, goals, strict=True):
            if mean != goal:
                rows = np.flatnonzero(groups == g)
                moved[rows] += self.take(rows).toward(raw[rows], float(goal))
        return moved

    def toward(self, raw: Array, goal: float) -> float:
        """Return the move of a rule (n,) with which the mean given dose is a goal, or next to it.

        Coming from above the mean stays at most the goal, from below at least.
        """
        low, high = self.ends[0] - float(raw.max()), self.ends[1] - float(raw.min())
        down = bool(self.given(raw).mean() > goal)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2.0
            mean = self.given(raw + middle).mean()
            above = mean > goal if down else mean >= goal
            low, high = (low, middle) if above else (middle, high)
        return low if down else high

    def of_class(self, fitted: FittedClass) -> RowLimits:
        """Return the limits with the signs of a class's parameters."""
        found = {slope_of(fitted, name): sign for name, sign in self.signs.items()}
        return replace(self, slopes={j: sign for j, sign in found.items() if j is not None})

    def take(self, index: NDArray[np.intp]) -> RowLimits:
        """Return the limits of some rows."""
        groups = None if self.groups is None else self.groups[index]
        return replace(self, low=self.low[index], high=self.high[index], groups=groups)


@dataclass(frozen=True, slots=True, eq=False)
class LimitedClass(PolicyClass):
    """The policies of a class that keep to limits."""

    inside: PolicyClass
    to: Limits
    told: bool = False
    """Whether it is wanted what each limit costs."""

    @property
    def kept(self) -> Limits:
        """What its policies keep to."""
        return self.to

    def on(self, log: LoggedData) -> FittedClass:  # noqa: ARG002
        """Refuse: a search over parameters alone knows no limits of rows."""
        raise InvalidArgument(
            "`StackedDR` keeps to `limits`, for logs with one dose; other procedures do not. Leave "
            "the procedure out, or the limits."
        )

    @property
    def name(self) -> str:
        """That of the class inside."""
        return self.inside.name

    def competing(self, log: LoggedData) -> tuple[PolicyClass, ...]:
        """Return those of the class inside that can keep to the limits."""
        found = self.inside.competing(log)
        refusals = [self._refusal(kind, log) for kind in found]
        if refusals[0] is not None and None not in refusals:
            raise refusals[0]
        able = zip(found, refusals, strict=True)
        return tuple(self._straight(kind) for kind, refusal in able if refusal is None)

    def notes(self, log: LoggedData) -> list[str]:
        """Return a sentence if some classes cannot keep to the limits, so do not compete."""
        found = self.inside.competing(log)
        out = [kind.name for kind in found if self._refusal(kind, log) is not None]
        if not out:
            return []
        limits = [f"`{name}`" for name in BY_CLASS if getattr(self.to, name)]
        said = "Left out of the choice among classes, since their rules cannot keep to"
        return [f"{said} {' and '.join(limits)}: {', '.join(out)}."]

    def _refusal(self, kind: PolicyClass, log: LoggedData) -> InvalidArgument | None:
        """Return why no rule of a class can keep to the limits, and which classes can."""
        if not (self._alike(kind) and self._monotone(kind)):
            return InvalidArgument(self._said(kind))
        if self.to.signs:
            fitted = self._straight(kind).on(log)
            try:
                for context in self.to.signs:
                    slope_of(fitted, context)
            except InvalidArgument as refusal:
                return refusal
        return None

    def _said(self, kind: PolicyClass) -> str:
        """Return why the kind of a class rules out a limit."""
        opening = f"A rule of the class `{kind.name}` cannot"
        if not self._monotone(kind):
            named = ", ".join(f"`{context}`" for context in self.to.signs)
            return (
                f"{opening} be held monotone in {named}: it has no slope there whose sign could be "
                "kept. `ConstantClass()`, `LinearClass()` and `AdditiveClass()` can (with lines in "
                "these contexts, curves in the others); or leave `increasing` and `decreasing` out."
            )
        constant = "" if self.to.columns else "`ConstantClass()`, "
        products = "" if self.to.signs else ", `ProductsClass()`"
        return (
            f"{opening} be kept alike across `{self.to.equal_across}`: it cannot be moved group by "
            f"group. These can: {constant}`LinearClass()`, `AdditiveClass()`{products}. Or leave "
            "`equal_across` out."
        )

    def _straight(self, kind: PolicyClass) -> PolicyClass:
        """Return the rules of a class that have slopes whose signs can be kept."""
        if self.to.signs and isinstance(kind, AdditiveClass):
            return replace(kind, straight=tuple(self.to.signs))
        return kind

    def _alike(self, kind: PolicyClass) -> bool:
        """Whether groups can be moved toward each other."""
        # One dose for all has groups apart where limits of rows hold it.
        fixed = (ConstantClass,) if self.to.columns else ()
        return self.to.equal_across is None or not isinstance(kind, (CurveClass, RBFClass, *fixed))

    def _monotone(self, kind: PolicyClass) -> bool:
        """Whether a class has slopes whose signs can be kept."""
        return not self.to.signs or isinstance(kind, (ConstantClass, LinearClass, AdditiveClass))

    @property
    def limits(self) -> DoseLimits:
        """Those of the class inside, on the steps."""
        return self.to.within(self.inside.limits)


def nearest_interval(means: Array, size: Array, margin: float) -> float:
    """Return the low end of the interval as wide as the margin that is nearest to all means.

    It is the least of Σ size·(distance of mean)², a convex function of the end.
    """
    low, high = float(means.min()), float(means.max()) - margin
    for _ in range(BISECTIONS):
        end = (low + high) / 2.0
        pull = size @ (means - np.clip(means, end, end + margin))
        low, high = (end, high) if pull > 0.0 else (low, end)
    return (low + high) / 2.0
