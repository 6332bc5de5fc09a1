"""A rule with curves as a table of points: what a context adds to the dose at round values of it.

The table is a rule of its own, with straight lines between its points. It has as many points and
digits as it takes for nobody's dose in a log to move by more than a hundredth of the doses' sd.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check, _drawing, _text
from titrant._tables import Tabular
from titrant.policies.calling import called, contexts_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies.bent import Additive

MOVED = 0.01
"""Of the doses' sd: by no more may rounding a rule move anyone's dose."""
_FINEST = 12
"""How often rounding is made finer until that holds."""
_PARTS, _ENDS = 2, 5
"""A curve has at least so many parts between its points, and ends on so many times finer ones."""
_SHOWN = 12
"""Points of a curve that are shown at once: more are left to who asks for every one."""
_DEPTH = 8
"""How often the distance of points is made smaller where a curve bends."""
_DRAWN = 81
"""Values at which a curve is drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class CurvePoints:
    """What one context adds to d doses: 0 at its middle."""

    context: str
    middle: float
    values: Array
    """Of the context (m,)."""
    added: Array
    """What is added there, rounded (m, d)."""
    first: tuple[int, ...]
    """The places of the points that are shown: so many as tell its shape."""
    knots: Array
    """Where its pieces meet (k,)."""
    people: Array
    """The least, first tenth, last tenth and largest value in the log (4,)."""
    line: Array
    """The curve as it is: values and what is added (81, 1 + d)."""

    def at(self, x: Array, *, every: bool = True) -> Array:
        """Return what is added at values x (n,), by straight lines between points: (n, d)."""
        of = slice(None) if every else list(self.first)
        return between(self.values[of], self.added[of], x)

    def beyond(self, x: Array) -> NDArray[np.bool_]:
        """Return whether values x (n,) are beyond the points (n,)."""
        return np.asarray((x < self.values[0]) | (x > self.values[-1]))

    def texts(self, decimals: tuple[int, ...]) -> list[tuple[str, ...]]:
        """Return value and what is added there, in words, of the points shown."""
        return [
            (value(self.values[i]), *map(change, self.added[i].tolist(), decimals))
            for i in self.first
        ]

    def plot(self, ax: Axes | None = None, *, dose: int = 0, color: str = "C0") -> Axes:
        """Draw the curve with its knots over the people of the log; return the axes."""
        x, y = self.line[:, 0], self.line[:, 1 + dose]
        at_knots = self.knots, np.interp(self.knots, x, y)
        drawn = _drawing.new_axes(ax)
        return _drawing.rule_curve(drawn, (x, y), at_knots, self.context, self.people, color=color)


@dataclass(frozen=True, slots=True, eq=False)
class Points(Tabular):
    """A rule with curves as a dose to start from and what each context adds to it."""

    doses: tuple[str, ...]
    """What the doses are called (d,)."""
    start: Array
    """The dose where every curve is at its middle and other contexts are 0 (d,)."""
    lines: dict[str, Array]
    """What a unit of each context without a curve adds (d,)."""
    curves: tuple[CurvePoints, ...]
    decimals: tuple[int, ...]
    """To which each dose is told."""
    off: Array
    """By how much straight lines between the points shown move a dose at most (d,)."""
    least_off: Array
    """By how much those between every point do (d,)."""
    outside: int
    """Rows of the log beyond the points of a curve."""
    left_out: int = 0
    """Curves that are smaller than those listed."""

    def __getitem__(self, context: str) -> CurvePoints:
        """Return the points of a context."""
        known = {one.context: one for one in self.curves}
        if context not in known:
            rule = f"one with a curve, {', '.join(known) or 'of which there is none'}"
            raise _check.invalid("context", "Points", rule, context)
        return known[context]

    def plot(self, context: str | None = None, ax: Axes | None = None, *, dose: int = 0) -> Axes:
        """Draw the curve of a context, of the first unless named; return the axes."""
        name = self.curves[0].context if context is None and self.curves else context
        return self[name or ""].plot(ax, dose=dose)

    def every(self) -> Points:
        """Return the same with every point shown, as many as it takes to be as near as can be."""
        curves = (replace(one, first=tuple(range(len(one.values)))) for one in self.curves)
        return replace(self, curves=tuple(curves), off=self.least_off)

    def largest(self, most: int) -> Points:
        """Return the curves that move doses most, in the order of the contexts."""
        size = np.array([np.ptp(one.line[:, 1:], axis=0).max() for one in self.curves])
        kept = np.sort(np.argsort(-size, kind="stable")[:most]).tolist()
        left_out = self.left_out + len(self.curves) - len(kept)
        return replace(self, curves=tuple(self.curves[i] for i in kept), left_out=left_out)

    def given(self, x: Mapping[str, Array], *, every: bool = True) -> Array:
        """Return the doses (n, d) of contexts by the points: every one, or those shown."""
        lines = (np.multiply.outer(x[name], slopes) for name, slopes in self.lines.items())
        curves = (one.at(x[one.context], every=every) for one in self.curves)
        return np.asarray(self.start + sum(lines) + sum(curves))

    def table(self) -> list[tuple[str, ...]]:
        """Return the headings, the start, and what contexts add at the points shown."""
        added = [f"added to {name}" for name in self.doses]
        middles = ", ".join(f"{one.context} {value(one.middle)}" for one in self.curves)
        begin = [f"{v:.{max(0, n)}f}" for v, n in zip(self.start, self.decimals, strict=True)]
        rows = [("start", middles, *(text.replace("-", "−") for text in begin))]
        for name, slopes in self.lines.items():
            rows.append((name, "each unit", *(value(slope, sign=True) for slope in slopes)))
        for one in self.curves:
            rows += [(one.context, *row) for row in one.texts(self.decimals)]
        return [("context", "value", *added), *rows]

    def lines_of_text(self) -> list[str]:
        """Return a line for each curve and dose: what is added at the points shown at once."""
        found = []
        for one in self.curves:
            for j, name in enumerate(self.doses):
                of = f" for {name}" if len(self.doses) > 1 else ""
                told = (f"{row[1 + j]} at {row[0]}" for row in one.texts(self.decimals))
                found.append(f"curve({one.context}){of}: {', '.join(told)}")
        return found

    def __str__(self) -> str:
        return "\n".join(_text.columns(self.table()))

    def __repr__(self) -> str:
        return f"Points({', '.join(one.context for one in self.curves)})"

    def _texts(self, level: float) -> list[tuple[str, ...]]:  # noqa: ARG002
        return self.table()

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        names = [f"added to {name}" for name in self.doses]
        rows = [("start", None, self.start), *((name, 1.0, by) for name, by in self.lines.items())]
        for one in self.curves:
            rows += [(one.context, float(one.values[i]), one.added[i]) for i in one.first]
        return [
            {"context": name, "value": at, **dict(zip(names, added.tolist(), strict=True))}
            for name, at, added in rows
        ]


def points_of(policy: Additive, log: LoggedData) -> Points:
    """Return a rule with curves as points, by which no dose of a log moves by more than .01 sd."""
    x = contexts_for(policy.features, log.context, called(policy), log.names)
    names = policy.features or log.names
    exact = policy(x).reshape(len(x), -1)
    spread = np.maximum(log.doses.std(axis=0), np.finfo(float).tiny)
    doses = tuple(map(log.about.dose, range(len(spread))))
    if len(set(doses)) < len(doses):
        doses = tuple(f"dose {j + 1}" for j in range(len(spread)))
    column = dict(zip(names, x.T, strict=True))
    for halvings in range(_FINEST):
        found = _within(policy, x, names, doses, MOVED * spread * 0.5**halvings)
        beyond = np.zeros(len(x), dtype=np.bool_)
        for one in found.curves:
            beyond |= one.beyond(column[one.context])
        inside = ~beyond
        if (np.abs(found.given(column) - exact)[inside] <= MOVED * spread).all():
            break
    least_off, off = (
        np.abs(found.given(column, every=every) - exact)[inside].max(axis=0, initial=0.0)
        for every in (True, False)
    )
    return replace(found, off=off, least_off=least_off, outside=int(beyond.sum()))


def _within(
    policy: Additive, x: Array, names: tuple[str, ...], doses: tuple[str, ...], by: Array
) -> Points:
    """Return the points of a rule; each curve and number is off by at most ``by`` (d,)."""
    lines, curves = {}, []
    for j, name in enumerate(names):
        if len(policy.knots[j]):
            curves.append(_curve(policy, j, x[:, j], name, by))
        elif policy.coef[j].any():
            far = max(float(np.abs(x[:, j]).max()), np.finfo(float).tiny)
            lines[name] = short(policy.coef[j].reshape(-1), by / far)
    decimals = tuple(map(decimals_of, by.tolist()))
    start = rounded(policy.start, decimals)
    none = np.zeros(len(start))
    return Points(doses, start, lines, tuple(curves), decimals, none, none, outside=0)


def _curve(policy: Additive, j: int, x: Array, name: str, by: Array) -> CurvePoints:
    """Return the points of context number j, whose values in a log are x (n,)."""

    def height(at: Array) -> Array:
        return policy.added(j, at).reshape(len(at), -1)

    knots, middle, reach = policy.knots[j], policy.middle(j), float(policy.reach[j])
    people = np.quantile(x, [0.0, 0.1, 0.9, 1.0])
    held = knots[0] - reach, knots[-1] + reach
    seen = np.unique(x[(x >= held[0]) & (x <= held[1])])
    low, high = np.min([knots[0], *seen[:1]]), np.max([knots[-1], *seen[-1:]])
    whole = bool((seen == np.round(seen)).all())
    unit, fine = (round_below((high - low) / parts) for parts in (_PARTS, _ENDS))
    if whole:  # there is no month 0
        unit, fine = max(unit, 1.0), 1.0
    ends = np.floor(low / fine), np.ceil(high / fine)
    # Where a curve is held, its last points are on the line that ends there.
    first = ends[0] + (ends[0] * fine < held[0])
    last = ends[1] - (ends[1] * fine > held[1])
    outer = _multiples(first, last, fine)[[0, -1]]
    inner = _multiples(np.ceil(outer[0] / unit), np.floor(outer[1] / unit), unit)
    coarse = np.unique([*outer, *inner, middle])

    grid = Grid(height, seen, by, 1.0 if whole else 0.0)
    values = grid.all_needed(coarse, unit)
    shown = grid.most_telling(coarse, values, unit)
    line = np.linspace(values[0], values[-1], _DRAWN)
    return CurvePoints(
        context=name,
        middle=middle,
        values=values,
        added=rounded(height(values), tuple(map(decimals_of, by.tolist()))),
        first=tuple(np.searchsorted(values, shown).tolist()),
        knots=knots,
        people=people,
        line=np.column_stack([line, height(line)]),
    )


@dataclass(frozen=True, slots=True)
class Grid:
    """Where straight lines between points need another point, to be as near a curve as wanted."""

    height: Callable[[Array], Array]
    seen: Array
    """The values (n,) at which lines are to be near."""
    within: Array
    """How near (d,)."""
    finest: float
    """The least distance of points, 1 for whole numbers."""

    def all_needed(self, coarse: Array, unit: float) -> Array:
        """Return the points (m,) that are needed, the coarse ones among them."""
        more = (self.needed(a, b, unit) for a, b in pairwise(coarse.tolist()))
        return np.unique([*coarse, *chain.from_iterable(more)])

    def most_telling(self, coarse: Array, values: Array, unit: float) -> Array:
        """Return the coarse points and those of ``values`` that tell most, the roundest first."""
        shown, heights = coarse, self.height(values)
        for _ in range(_DEPTH):
            unit = next_finer(unit)
            round_ = np.isclose(values / unit, np.round(values / unit), rtol=0.0, atol=1e-6)
            while len(shown) < _SHOWN:
                off = np.abs(between(shown, self.height(shown), values) - heights) / self.within
                gain = np.where(round_, off.max(axis=1), 0.0)
                if gain.max() <= 1.0:
                    break
                shown = np.union1d(shown, values[np.argmax(gain)])
        return shown

    def needed(self, low: float, high: float, unit: float, depth: int = 0) -> Iterator[float]:
        """Yield round values between two points that are ``unit`` apart, or less."""
        here = self.seen[(self.seen > low) & (self.seen < high)]
        if not len(here):
            return
        ends = np.array([low, high])
        off = np.abs(between(ends, self.height(ends), here) - self.height(here))
        finer = next_finer(unit)
        if depth == _DEPTH or finer < self.finest or (off <= self.within).all():
            return
        inner = _multiples(np.floor(low / finer), np.ceil(high / finer), finer)
        places = [low, *inner[(inner > low) & (inner < high)].tolist(), high]
        for a, b in pairwise(places):
            yield from self.needed(a, b, finer, depth + 1)
            if b < high:
                yield b


def between(values: Array, added: Array, x: Array) -> Array:
    """Return what straight lines between points (m, d) are at x (n,): (n, d)."""
    return np.column_stack([np.interp(x, values, column) for column in added.T])


def _multiples(first: float, last: float, unit: float) -> Array:
    """Return the multiples of a round number, without the dust of binary fractions."""
    return np.array([float(f"{k * unit:.12g}") for k in np.arange(first, last + 1)])


# Round numbers, and numbers in few digits.


def round_below(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is at most a number > 0.

    >>> round_below(8.0), round_below(0.2), round_below(1999.0)
    (5.0, 0.2, 1000.0)
    """
    power = int(np.floor(np.log10(value)))
    most = value * (1.0 + 1e-9)
    return max(found for m in (1, 2, 5) if (found := float(f"{m}e{power}")) <= most)


def next_finer(unit: float) -> float:
    """Return the next round number below one of them that divides it: 5, 1, 0.5, 0.1.

    >>> next_finer(5.0), next_finer(2.0), next_finer(1.0)
    (1.0, 1.0, 0.5)
    """
    return round_below(unit / 5.0 if f"{unit:e}".startswith("5") else unit / 2.0)


def rounded(values: Array, decimals: tuple[int, ...]) -> Array:
    """Return numbers (…, d) rounded to the decimals of each dose."""
    columns = zip(values.reshape(-1, len(decimals)).T, decimals, strict=True)
    found = [[round(v, n) + 0.0 for v in column.tolist()] for column, n in columns]
    return np.array(found).T.reshape(values.shape)


def short(values: float | Array, within: float | Array) -> Any:  # noqa: ANN401
    """Return numbers in the decimals that leave them within a distance; short ones as they are.

    >>> short(35.3137, 0.1), short(35.25, 0.1), short(float("inf"), 0.1)
    (35.3, 35.25, inf)
    """
    found = np.array(
        [
            v if not np.isfinite(v) or float(f"{v:.5g}") == v else round(v, decimals_of(by))
            for v, by in np.broadcast(np.asarray(values, dtype=np.float64), within)
        ]
    ).reshape(np.shape(values))
    return found if found.ndim else float(found)


def decimals_of(within: float) -> int:
    """Return how many decimals leave a number within a distance.

    >>> decimals_of(0.1), decimals_of(0.05), decimals_of(0.04)
    (1, 1, 2)
    """
    return int(np.clip(np.ceil(-np.log10(2.0 * within) - 1e-9), -300, 300))


def value(of: float, *, sign: bool = False) -> str:
    """Return a value of a context, or with its sign what a unit of one adds.

    >>> value(-2.5), value(0.25, sign=True)
    ('−2.5', '+0.25')
    """
    return f"{of:{'+' if sign else ''}.12g}".replace("-", "−")


def change(by: float, decimals: int) -> str:
    """Return what is added to a dose, to so many decimals.

    >>> change(-1.2, 2), change(0.5, 1), change(0.0, 2)
    ('−1.20', '+0.5', '0')
    """
    return f"{by:+.{max(0, decimals)}f}".replace("-", "−") if by else "0"
