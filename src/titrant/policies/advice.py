"""What is told of each person's dose: which doses are as good, whether they were seen, and why.

The people of a log are kept as a few groups of like people, each with the doses that were given in
it and its mean estimated loss over the doses. That is what a policy's file can hold: of a new
person it tells what was learned of those most alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant._tables import Tabular, rows_of
from titrant.data.columns import IS_MISSING
from titrant.errors import PolicyFileError
from titrant.policies.base import is_exactly
from titrant.policies.bent import Additive, Products
from titrant.policies.calling import recommended
from titrant.policies.clipped import Clipped, InLimits, Rounded
from titrant.policies.constant import Constant
from titrant.policies.linear import Linear
from titrant.policies.trees import LinearTree, Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.policies.base import Policy
    from titrant.policies.trees import Questions

FINE = 201
"""Doses at which a range is looked for."""
DIGITS = 6
"""Of the numbers in a file: a group's mean loss is known to fewer."""
TERMS = 6
"""Contexts in a reason, the largest if there are more."""
NEAR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """m groups of like people of a log, with p contexts and a grid of G doses."""

    names: tuple[str, ...]
    centers: Array
    """Their mean contexts (m, p)."""
    scale: Array
    """What distances are counted in (p,)."""
    reach: Array
    """How far from its center a group goes (m,)."""
    doses: Array
    """The smallest and largest dose that was given in each group (m, 2)."""
    grid: Array
    """Doses (G,)."""
    losses: Array
    """The mean estimated loss of each group at each dose (m, G)."""
    margin: float
    """What counts as no loss unless said otherwise: a twentieth of the outcome's sd."""

    def nearest(self, x: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the group (n,) next to contexts x (n, p), and whether they are in its reach."""
        far = np.zeros((len(x), len(self.centers)))
        for j, unit in enumerate(self.scale):
            far += ((x[:, j, None] - self.centers[:, j]) / unit) ** 2
        group = np.argmin(far, axis=1)
        return group, np.sqrt(far[np.arange(len(x)), group]) <= self.reach[group] + NEAR

    def as_good(self, group: NDArray[np.intp], dose: Array, margin: float) -> tuple[Array, Array]:
        """Return the ends (n,) of the doses about a dose that lose at most a margin more."""
        fine = np.linspace(self.grid[0], self.grid[-1], FINE)
        curves = np.stack([np.interp(fine, self.grid, losses) for losses in self.losses])[group]
        held = np.clip(dose, fine[0], fine[-1])
        step = fine[1] - fine[0]
        place = np.clip(np.round((held - fine[0]) / step).astype(np.intp), 0, FINE - 1)
        at = np.array([np.interp(d, fine, c) for d, c in zip(held, curves, strict=True)])
        worse = curves > (at + margin)[:, None]
        doses = np.arange(FINE)
        below = np.where(worse & (doses < place[:, None]), doses, -1).max(axis=1) + 1
        above = np.where(worse & (doses > place[:, None]), doses, FINE).min(axis=1) - 1
        return np.minimum(fine[below], dose), np.maximum(fine[above], dose)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of a policy's file."""
        arrays = ("centers", "scale", "reach", "doses", "grid", "losses")
        found = {name: _short(getattr(self, name)) for name in arrays}
        return {"contexts": list(self.names), **found, "margin": self.margin}

    @classmethod
    def from_dict(cls, content: object) -> People:
        """Return what `to_dict` described."""
        try:
            given = dict(content)  # type: ignore[call-overload]
            names = tuple(map(str, given.pop("contexts")))
            margin = float(given.pop("margin"))
            found = {key: np.asarray(value, dtype=np.float64) for key, value in given.items()}
            made = cls(names=names, margin=margin, **found)
            made.check()
        except (TypeError, ValueError, KeyError) as error:
            raise PolicyFileError(
                "The entry `people` of the policy file is not as it was written "
                f"({type(error).__name__}: {error}). Save the policy again."
            ) from None
        return made

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        m, g, p = len(self.reach), len(self.grid), len(self.names)
        shapes = {"centers": (m, p), "scale": (p,), "doses": (m, 2), "losses": (m, g)}
        wrong = [name for name, shape in shapes.items() if getattr(self, name).shape != shape]
        if wrong or not m or g < 2:  # noqa: PLR2004
            raise ValueError(f"the shape of {', '.join(wrong) or 'reach'}")


def _short(array: Array) -> list[Any]:
    """Return the numbers of an array with few digits."""
    flat = [float(f"{value:.{DIGITS}g}") for value in array.ravel()]
    found: list[Any] = np.array(flat).reshape(array.shape).tolist()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Recommended(Tabular):
    """The doses of n people, and what is known of each."""

    dose: Array
    """What is given (n,); nan where nothing is."""
    low: Array
    """Doses from `low` to `high` lose at most the margin more (n,); nan where that is unknown."""
    high: Array
    seen: NDArray[np.bool_]
    """Whether such people and doses were in the log (n,)."""
    reason: tuple[str, ...]
    """Why, in the terms of the rule."""

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists; None where there is no number."""
        numbers = {name: getattr(self, name).tolist() for name in ("dose", "low", "high")}
        clean = {k: [None if v != v else v for v in values] for k, values in numbers.items()}  # noqa: PLR0124
        return {**clean, "seen": self.seen.tolist(), "reason": list(self.reason)}

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        return rows_of(self.to_dict())

    def _texts(self, level: float) -> list[list[str]]:
        rows = [
            [
                "–" if v is None else f"{v:.6g}" if isinstance(v, float) else str(v)
                for v in row.values()
            ]
            for row in self._numbers(level)
        ]
        return [["dose", "low", "high", "seen", "reason"], *rows]


def advice(
    policy: Policy,
    x: Array,
    people: People | None,
    strange: NDArray[np.bool_],
    *,
    margin: float | None = None,
    current: Array | None = None,
) -> Recommended:
    """Return the doses of contexts x (n, p), ordered as the policy's features, and what is known.

    Who is unlike all of the log, or would get a dose that was not given to those alike, gets no
    dose; with a ``current`` one (n,), which a policy may know itself, that. ``strange`` (n,) marks
    who is known to be unlike.
    """
    ends = np.full((len(x), 2), [-np.inf, np.inf])
    if is_exactly(policy, InLimits):
        ends = np.column_stack(policy.limits(x))
        if current is None and policy.current is not None:
            current = x[:, (policy.features or ()).index(policy.current)]
    possible = np.asarray(ends[:, 0] <= ends[:, 1])
    dose = np.full(len(x), np.nan)
    dose[possible] = recommended(policy, x[possible])
    low, high = np.full(len(x), np.nan), np.full(len(x), np.nan)
    alike, given, usual = ~strange, np.ones(len(x), dtype=bool), np.zeros((len(x), 2))
    if people is not None:
        group, near = people.nearest(x)
        alike &= near
        usual = people.doses[group]
        given = (dose >= usual[:, 0] - NEAR) & (dose <= usual[:, 1] + NEAR)
        known = possible & alike & given
        wide = people.margin if margin is None else margin
        found = people.as_good(group[known], dose[known], wide)
        low[known], high[known] = (np.clip(one, *ends[known].T) for one in found)
    seen = alike & given & possible
    why = _refusals(dose, usual, possible, alike)
    said = iter(reasons(policy, x[possible]))
    told = [next(said) if able else "" for able in possible]
    words = [
        told[i] if seen[i] else f"{why[i]}{_kept(current, i)}" + (f" ({told[i]})" * bool(told[i]))
        for i in range(len(x))
    ]
    instead = np.full(len(x), np.nan) if current is None else current
    return Recommended(np.where(seen, dose, instead), low, high, seen, tuple(words))


def _refusals(
    dose: Array, ends: Array, possible: NDArray[np.bool_], alike: NDArray[np.bool_]
) -> list[str]:
    """Return why each row would get no dose."""
    return [
        "the limits leave no dose"
        if not able
        else "no one like this is in the log"
        if not like
        else f"{_number(d)} was not given to people like this, who got {_number(a)} … {_number(b)}"
        for d, (a, b), able, like in zip(dose, ends, possible, alike, strict=True)
    ]


def _kept(current: Array | None, i: int) -> str:
    return ": no dose" if current is None else f": the current dose {_number(current[i])} is kept"


# The reason of a dose in the terms of its rule.


def reasons(policy: Policy, x: Array) -> list[str]:
    """Return how a rule comes to the dose of each row of contexts x (n, p), in words."""
    return list(_reasons(policy, x))


def _reasons(policy: Policy, x: Array) -> Iterator[str]:
    if is_exactly(policy, Clipped) or is_exactly(policy, Rounded) or is_exactly(policy, InLimits):
        inside = policy.policy
        own = x if inside.features is None else x[:, : len(inside.features)]
        before, after = recommended(inside, own), recommended(policy, x)
        low, high = _limits(policy, x)
        for i, words in enumerate(_reasons(inside, own)):
            same = abs(before[i] - after[i]) <= NEAR * (1.0 + abs(before[i]))
            yield words if same else words + _changed(before[i], after[i], low[i], high[i])
        return
    rule = REASONS.get(type(policy))
    yield from ["by those who are most alike"] * len(x) if rule is None else rule(policy, x)


def _limits(policy: Clipped | Rounded | InLimits, x: Array) -> tuple[Array, Array]:
    """Return what a wrapped rule is held between in each row (n,), before it is on steps."""
    if isinstance(policy, InLimits):
        return replace(policy, steps=None).limits(x)
    ends = (policy.lower, policy.upper) if isinstance(policy, Clipped) else (-np.inf, np.inf)
    low, high = (np.full(len(x), end) for end in ends)
    return low, high


def _changed(before: float, after: float, low: float, high: float) -> str:
    """Return what becomes of a rule's dose within limits, in words."""
    if low <= before <= high:
        return f", rounded to {_number(after)}"
    end, words = (low, "at least") if before < low else (high, "at most")
    exact = abs(after - end) <= NEAR * (1.0 + abs(end))
    return f", {words} {_number(end)}" + ("" if exact else f", so {_number(after)}")


def _of_terms(level: float, names: Sequence[str], terms: Array, x: Array) -> Iterator[str]:
    """Yield level + Σ term of each context (n, p) in words, the largest terms first named."""
    for row, values in zip(terms, x, strict=True):
        order = np.argsort(-np.abs(row), kind="stable")
        shown = sorted(order[:TERMS])
        parts = [
            f" {'−' if row[j] < 0 else '+'} {_number(abs(row[j]))} {_given(names[j], values[j])}"
            for j in shown
            if row[j]
        ]
        rest = float(row[order[TERMS:]].sum())
        if rest:
            parts.append(f" {'−' if rest < 0 else '+'} {_number(abs(rest))} for the others")
        yield _number(level) + "".join(parts)


def _given(name: str, value: float) -> str:
    """Return what a term is for: a context with its value, or what an indicator says."""
    column, equals, text = name.partition("=")
    if value == 1.0 and equals:
        return f"as {column} is {text}"
    if value == 1.0 and name.endswith(IS_MISSING):
        return f"as {name}"
    return f"for {name} {_number(value)}"


def _linear(policy: Linear, x: Array) -> Iterator[str]:
    names = policy.features or tuple(f"context {j}" for j in range(x.shape[1]))
    yield from _of_terms(float(policy.intercept), names, x * np.asarray(policy.coef), x)


def _additive(policy: Additive, x: Array) -> Iterator[str]:
    names = policy.features or tuple(f"context {j}" for j in range(x.shape[1]))
    terms = np.column_stack([policy.added(j, x[:, j]) for j in range(x.shape[1])])
    yield from _of_terms(float(policy.start[0]), names, terms, x)


def _products(policy: Products, x: Array) -> Iterator[str]:
    names = policy.features or tuple(f"context {j}" for j in range(x.shape[1]))
    more = policy.basis(x) @ policy.bends
    lines = _of_terms(float(policy.intercept), names, x * policy.coef, x)
    for line, one in zip(lines, more, strict=True):
        yield f"{line} {'−' if one < 0 else '+'} {_number(abs(one))} for products of them"


def _tree(policy: Tree, x: Array) -> Iterator[str]:
    for leaf, asked in zip(policy.leaves(x), _asked(policy, x), strict=True):
        yield f"{asked}: {_number(float(policy.doses[leaf]))}"


def _linear_tree(policy: LinearTree, x: Array) -> Iterator[str]:
    names = policy.features or tuple(f"context {j}" for j in range(x.shape[1]))
    leaves = policy.leaves(x)
    lines, given = policy.lines(x, leaves), policy(x)
    for i, (leaf, asked) in enumerate(zip(leaves, _asked(policy, x), strict=True)):
        terms = (x[i] * policy.slopes[leaf])[None]
        (line,) = _of_terms(float(policy.doses[leaf]), names, terms, x[i : i + 1])
        low, high = float(policy.lower[leaf]), float(policy.upper[leaf])
        held = "" if lines[i] == given[i] else _changed(lines[i], given[i], low, high)
        yield f"{asked}: {line}{held}"


def _asked(policy: Questions, x: Array) -> Iterator[str]:
    """Yield the answers that lead each row to its leaf."""
    names = policy.features or tuple(f"context {j}" for j in range(x.shape[1]))
    paths = {leaf: answers for answers, leaf in policy.paths()}
    for leaf in policy.leaves(x):
        yield ", ".join(
            _answer(names[policy.columns[s]], float(policy.cuts[s]), at_most=low)
            for s, low in paths[int(leaf)]
        )


def _answer(name: str, cut: float, *, at_most: bool) -> str:
    """Return one answer of a tree; an indicator of a text is there or not."""
    column, equals, text = name.partition("=")
    if equals and 0.0 <= cut < 1.0:
        return f"{column} is {'not ' if at_most else ''}{text}"
    return f"{name} {'≤' if at_most else '>'} {_number(cut)}"


def _constant(policy: Constant, x: Array) -> Iterator[str]:
    yield from [f"{_number(float(policy.dose))} for everyone"] * len(x)


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


REASONS: dict[type[Policy], Callable[[Any, Array], Iterator[str]]] = {
    Constant: _constant,
    Linear: _linear,
    Additive: _additive,
    Products: _products,
    Tree: _tree,
    LinearTree: _linear_tree,
}
"""How each rule explains a dose; others dose by those most alike."""
