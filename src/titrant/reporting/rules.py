"""Policies in words: a formula on the user's scale, its coefficients, and its document."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.data.columns import IS_MISSING
from titrant.errors import InvalidArgument
from titrant.policies import (
    RBF,
    Additive,
    Clipped,
    Constant,
    Function,
    InLimits,
    Linear,
    LinearTree,
    Personal,
    Products,
    Rounded,
    StatusQuo,
    Tree,
)
from titrant.policies.base import ParametricPolicy, is_exactly
from titrant.policies.clipped import unwrapped
from titrant.policies.moves import Limited, Move, Moved, Multiply, OneToOne, Randomized, Shift, Tilt
from titrant.policies.points import MOVED, short
from titrant.policies.trees import Questions
from titrant.reporting.content import Coefficient, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.policies import Policy
    from titrant.policies.points import Points

LARGEST_DOCUMENT = 10_000
"""Characters of JSON that a page takes for one policy; a sum of bumps can have many more."""
_FINEST = 12
"""Powers of ten by which rounding is made finer until that holds."""
_BENT = 9.0
"""How far a bend can move a dose: squares of contexts are held at three sizes."""
_TERMS = 12
"""Contexts in a formula, the largest if there are more."""
LISTED = 30
"""Coefficients in a table."""


@dataclass(frozen=True, slots=True)
class Speech:
    """What contexts are called in a formula."""

    names: Sequence[str]
    """Of the log, in its order: those of a policy that knows none."""
    yes_no: frozenset[str] = frozenset()
    """The contexts that are 0 or 1."""
    called: Callable[[str], str] = str
    points: Points | None = None
    """Those of the rule inside, if it has curves."""

    def of(self, policy: Policy) -> list[str]:
        """Return the names of a policy's contexts."""
        return list(policy.features or self.names)

    def term(self, size: str, name: str) -> str:
        """Return what a context adds: so much for each unit, or if something is so."""
        label = self.called(name)
        if name.endswith(IS_MISSING):
            return f"{size} if {label}"
        if "=" in name:
            return f"{size} if {label.replace('=', ' is ', 1).replace('  ', ' ')}"
        return f"{size} if {label} = 1" if name in self.yes_no else f"{size} · {label}"


def rule(
    name: str,
    policy: Policy,
    treatments: Sequence[str],
    log: LoggedData,
    *,
    sd: Array,
    called: Callable[[str], str] = str,
) -> Rule:
    """Return a policy in words, rounded for the people of a log; ``sd`` (p,) of its contexts."""
    x, inside, shown = log.context, unwrapped(policy), readable(policy, log)
    zeros_and_ones = ((x == 0.0) | (x == 1.0)).all(axis=0)
    yes_no = frozenset(np.array(log.names)[zeros_and_ones].tolist())
    points = inside.points(log).largest(_TERMS) if is_exactly(inside, Additive) else None
    speech = Speech(log.names, yes_no, called, points)
    start, terms = _terms(inside, speech) or (None, {})
    found = _coefficients(terms, dict(zip(log.names, sd.tolist(), strict=True)))
    return Rule(
        policy=name,
        formulas=(
            *(_formula(shown, j, t, speech) for j, t in enumerate(treatments)),
            *_details(unwrapped(shown), speech),
        ),
        intercept=None if start is None else tuple(start.tolist()),
        coefficients=_largest(found),
        left_out=max(0, len(found) - LISTED),
        document=_document(policy),
        points=points,
    )


def _formula(policy: Policy, j: int, treatment: str, speech: Speech) -> str:
    """Return the rule for dose number j."""
    if is_exactly(policy, StatusQuo):
        return f"{treatment} as it was given"
    if is_exactly(policy, Clipped):
        low, high = _entry(policy.lower, j), _entry(policy.upper, j)
        return _formula(policy.policy, j, treatment, speech) + _kept(low, high)
    if is_exactly(policy, Rounded):
        step = f", rounded to steps of {_shown(_entry(policy.step, j))}"
        offset = _entry(policy.offset, j)
        start = f" from {_shown(offset)}" if offset else ""
        return _formula(policy.policy, j, treatment, speech) + step + start
    if is_exactly(policy, InLimits):
        return _formula(policy.policy, j, treatment, speech) + _limited(policy, speech)
    if isinstance(policy, Move):
        return _change(policy, treatment, speech)
    return f"{treatment} = {_right_side(policy, j, speech)}"


def _limited(policy: InLimits, speech: Speech) -> str:
    """Return the limits of a rule in words."""
    steps, said = policy.steps, []
    if isinstance(steps, float):
        said.append(f"in steps of {_shown(steps)}")
    elif steps is not None:
        said.append(f"one of {', '.join(map(_shown, steps))}")
    for words, end in (("at least", policy.at_least), ("at most", policy.at_most)):
        if end is not None:
            said.append(f"{words} {speech.called(end) if isinstance(end, str) else _shown(end)}")
    if policy.current is not None:
        said.append(
            f"within {_shown(policy.largest_change or 0.0)} of {speech.called(policy.current)}"
        )
    return "".join(f", {one}" for one in said)


def _change(policy: Move, treatment: str, speech: Speech) -> str:
    """Return how a policy changes what was given."""
    given = f"{treatment} as it was given"
    if isinstance(policy, Shift):
        sign = "−" if policy.by < 0.0 else "+"
        given = f"{given} {sign} {_shown(abs(policy.by))}"
    elif isinstance(policy, Multiply):
        given = f"{_shown(policy.by)} · {given}"
    elif isinstance(policy, Tilt):
        return f"{given}, tilted by e^({_shown(policy.strength)} · {treatment})"
    elif isinstance(policy, Randomized):
        return f"{_formula(policy.policy, 0, treatment, speech)}, ± {_shown(policy.sd)} at random"
    elif isinstance(policy, Moved):
        given = f"what a Python function makes of {given}"
    if isinstance(policy, Limited):
        return given + _kept(policy.low, policy.high)
    ends = _kept(policy.low, policy.high) if isinstance(policy, OneToOne) else ""
    return f"{given}{ends} or as it was" if ends else given


def _right_side(policy: Policy, j: int, speech: Speech) -> str:
    if isinstance(policy, Function):
        return "what a Python function returns: it has no formula to show"
    said = SIDES.get(type(policy))
    return type(policy).__name__ if said is None else said(policy, j, speech)


def _linear(policy: Linear, j: int, speech: Speech) -> str:
    if policy.coef is None:
        return type(policy).__name__
    slopes = policy.coef.reshape(len(policy.coef), -1)[:, j]
    return _sum(_entry(policy.intercept, j), speech.of(policy), slopes, speech.term)


def _bumps(policy: RBF, j: int, speech: Speech) -> str:  # noqa: ARG001
    level = _shown(_entry(policy.intercept, j))
    return f"{level} + a sum of {len(policy.centers)} bumps of width {_width(policy.scale)}"


def _people(policy: Personal, j: int, speech: Speech) -> str:  # noqa: ARG001
    alike = f"the {policy.nearest} of {len(policy.contexts):,} people who are most alike"
    return f"the dose with the least mean loss of {alike}"


def _sum(
    intercept: float, names: Sequence[str], slopes: Array, said: Callable[[str, str], str]
) -> str:
    """Return intercept ± |slope| · name ± …, the largest if there are many."""
    most = np.argsort(-np.abs(slopes), kind="stable")[:_TERMS]
    terms = [
        f" {'−' if slopes[i] < 0 else '+'} {said(_shown(abs(slopes[i])), names[i])}"
        for i in np.sort(most)
        if slopes[i]
    ]
    rest = int(np.count_nonzero(slopes)) - len(terms)
    more = f" + … ({rest} more in the table)" if rest > 0 else ""
    return f"{_shown(intercept)}{''.join(terms)}{more}"


def _kept(low: float, high: float) -> str:
    if np.isfinite(low) and np.isfinite(high):
        return f", kept within {_shown(low)} … {_shown(high)}"
    if np.isfinite(low):
        return f", at least {_shown(low)}"
    return f", at most {_shown(high)}" if np.isfinite(high) else ""


def _terms(policy: Policy, speech: Speech) -> tuple[Array, dict[str, Array]] | None:
    """Return the start (d,) of a rule and what a unit of each term adds (d,); None without."""
    if is_exactly(policy, Linear) and policy.coef is not None:
        names = (
            speech.of(policy) if policy.features or len(speech.names) == len(policy.coef) else []
        )
        slopes = policy.coef.reshape(len(policy.coef), -1)
        return np.ravel(policy.intercept), dict(zip(names, slopes, strict=False))
    if is_exactly(policy, Additive):
        slopes = policy.coef.reshape(len(policy.coef), -1)
        bent = [len(knots) > 0 for knots in policy.knots]
        found = zip(speech.of(policy), slopes, bent, strict=True)
        return policy.start, {name: by for name, by, curved in found if not curved and by.any()}
    if is_exactly(policy, Products):
        slopes = np.vstack([b.reshape(len(b), -1) for b in (policy.coef, policy.bends)])
        terms = [*speech.of(policy), *_products_in_words(policy, speech)]
        return np.ravel(policy.intercept), dict(zip(terms, slopes, strict=True))
    return None


def _coefficients(slopes: Mapping[str, Array], sd: Mapping[str, float]) -> tuple[Coefficient, ...]:
    return tuple(
        Coefficient(
            context=name,
            values=tuple(by.tolist()),
            per_sd=tuple((by * sd[name]).tolist()) if name in sd else None,
        )
        for name, by in slopes.items()
    )


def _largest(found: tuple[Coefficient, ...]) -> tuple[Coefficient, ...]:
    """Return the coefficients that move doses most, in the order of the contexts."""
    if len(found) <= LISTED:
        return found
    size = [max(map(abs, c.per_sd or c.values)) for c in found]
    kept = sorted(range(len(found)), key=lambda i: -size[i])[:LISTED]
    return tuple(found[i] for i in sorted(kept))


def linear_part(policy: Policy) -> Linear | None:
    """Return the linear rule inside a policy, if there is one."""
    inside = unwrapped(policy)
    return inside if is_exactly(inside, Linear) and inside.coef is not None else None


def limits(policy: Policy) -> list[tuple[str, Policy]]:
    """Return a policy from the rule inside to all its steps and limits, each in words."""
    if is_exactly(policy, Clipped):
        said = _kept(_entry(policy.lower, 0), _entry(policy.upper, 0)).removeprefix(", ")
    elif is_exactly(policy, Rounded):
        said = f"rounded to steps of {_shown(_entry(policy.step, 0))}"
    else:
        return [("by the rule", policy)]
    return [*limits(policy.policy), (said, policy)]


# A rule in as few digits as leave everyone's dose alone.


def readable(policy: Policy, log: LoggedData) -> Policy:
    """Return the policy with shorter numbers, which move no logged dose by more than .01 sd(T).

    Numbers that are short stay as they are, and so does a policy of a class that is not listed.
    """
    spread = log.doses.std(axis=0)
    inside = unwrapped(policy)
    template = isinstance(inside, Linear) and inside.coef is None
    if not len(log) or template or type(inside) not in ROUNDED:
        return policy
    exact = policy.of_rows(log)
    for power in range(_FINEST):
        candidate = _shortened(policy, MOVED * float(spread.min()) * 10.0**-power, log)
        moved = np.abs(candidate.of_rows(log) - exact).max(axis=0)
        if (moved <= MOVED * spread).all():
            return candidate
    return policy


def _shortened(policy: Policy, budget: float, log: LoggedData) -> Policy:
    """Return a policy whose parameters, rounded, together move a dose by about the budget."""
    if is_exactly(policy, Clipped):
        ends = (short(end, budget) for end in (policy.lower, policy.upper))
        return Clipped(_shortened(policy.policy, budget, log), *ends)
    if is_exactly(policy, Rounded):
        return Rounded(_shortened(policy.policy, budget, log), policy.step, policy.offset)
    if is_exactly(policy, InLimits):
        return replace(policy, policy=_shortened(policy.policy, budget, log))
    if not isinstance(policy, ParametricPolicy):
        return policy
    reach = _reach(policy, log)
    shorter = policy.with_params(short(policy.params, budget / (reach * (reach > 0).sum() ** 0.5)))
    if is_exactly(shorter, LinearTree):
        low, high = (short(end, budget) for end in (shorter.lower, shorter.upper))
        return replace(shorter, cuts=_cuts(shorter, log), lower=low, upper=high)
    return replace(shorter, cuts=_cuts(shorter, log)) if is_exactly(shorter, Tree) else shorter


def _cuts(policy: Questions, log: LoggedData) -> Array:
    """Return shorter cuts that part the rows of a log in the same way."""
    names = list(policy.features or log.names)
    columns = [log.context[:, log.names.index(names[c])] for c in policy.columns]
    cuts = zip(columns, policy.cuts, strict=True)
    return np.array([_cut(x, float(cut)) for x, cut in cuts])


def _reach(policy: Any, log: LoggedData) -> Array:  # noqa: ANN401  (any of the list)
    """Return how far one unit of each parameter can move a dose (P,)."""
    if isinstance(policy, (Constant, Tree)):
        return np.ones(policy.params.size)
    far = dict(zip(log.names, np.abs(log.context).max(axis=0).tolist(), strict=True))
    each = [max(far[name], 1e-9) for name in policy.features or log.names]
    if isinstance(policy, LinearTree):
        return np.append(np.ones(len(policy.doses)), np.tile(each, len(policy.doses)))
    d = np.size(policy.intercept)
    found = np.append(np.ones(d), np.repeat(each, d))
    return np.append(found, np.full(policy.params.size - found.size, _BENT))


def _cut(x: Array, cut: float) -> float:
    """Return the shortest number that parts the values x (n,) as a cut does."""
    below, above = x[x <= cut], x[x > cut]
    if not len(below) or not len(above):
        return cut
    low, high = float(below.max()), float(above.min())
    for decimals in range(-int(np.ceil(np.log10(high - low))) - 1, _FINEST):
        ten = 10.0**decimals
        for rounded in (round(cut, decimals), float(np.floor(cut * ten) / ten)):
            if low <= rounded < high:
                return rounded
    return cut


# Rules that take more than a line: curves by their points, squares by their units, trees by leaves.


def _additive(policy: Additive, j: int, speech: Speech) -> str:
    """Return start ± slope · name … + curve(name) … in words."""
    points = speech.points
    if points is None:  # of no log
        return type(policy).__name__
    slopes = np.array([by[j] for by in points.lines.values()])
    line = _sum(float(points.start[j]), list(points.lines), slopes, speech.term)
    curves = "".join(f" + curve({speech.called(one.context)})" for one in points.curves)
    rest = f" + … ({points.left_out} smaller curves)" if points.left_out else ""
    return line + curves + rest


def _products(policy: Products, j: int, speech: Speech) -> str:
    """Return intercept ± slope · name … ± factor · u(name)·u(name) … in words."""
    slopes = policy.coef.reshape(len(policy.coef), -1)[:, j]
    factors = policy.bends.reshape(len(policy.bends), -1)[:, j]
    products = _products_in_words(policy, speech)

    def said(size: str, name: str) -> str:
        return f"{size} · {name}" if name in products else speech.term(size, name)

    terms = [*speech.of(policy), *products]
    return _sum(_entry(policy.intercept, j), terms, np.append(slopes, factors), said)


def _products_in_words(policy: Products, speech: Speech) -> list[str]:
    """Return u(name)² and u(name)·u(name) of each pair."""
    label = [speech.called(name) for name in speech.of(policy)]
    return [
        f"u({label[a]})²" if a == b else f"u({label[a]})·u({label[b]})" for a, b in policy.pairs
    ]


def _details(policy: Policy, speech: Speech) -> Iterator[str]:
    """Yield the lines that a formula leaves out."""
    names = speech.of(policy)
    known = [speech.called(name) for name in names]
    if is_exactly(policy, Products):
        for i in sorted({i for pair in policy.pairs for i in pair}):
            center = f"{abs(policy.center[i]):.6g}"
            sign = "+" if policy.center[i] < 0 else "−"
            unit = f"{policy.size[i]:.6g}"
            yield f"u({known[i]}) = ({known[i]} {sign} {center})/{unit}, held within ±3"
    elif isinstance(policy, Questions):
        for answers, leaf in policy.paths():
            asked = ", ".join(
                _answer(speech, names[policy.columns[s]], policy.cuts[s], at_most=low)
                for s, low in answers
            )
            yield f"{asked}: {_leaf(policy, leaf, speech)}"


def _leaf(policy: Questions, leaf: int, speech: Speech) -> str:
    """Return the doses of a leaf, or its line and what keeps it."""
    if not is_exactly(policy, LinearTree):
        return ", ".join(map(_shown, np.ravel(policy.doses[leaf])))
    slopes = policy.slopes[leaf]
    line = _sum(float(policy.doses[leaf]), speech.of(policy), slopes, speech.term)
    return line + _kept(policy.lower[leaf], policy.upper[leaf]) if slopes.any() else line


def _answer(speech: Speech, name: str, cut: float, *, at_most: bool) -> str:
    """Return one answer of a tree; an indicator of a text is there or not."""
    label = speech.called(name)
    if "=" in name and 0.0 <= cut < 1.0:
        column, _, level = label.replace(" = ", "=").partition("=")
        return f"{column} is {'not ' if at_most else ''}{level}"
    if name in speech.yes_no and 0.0 <= cut < 1.0:
        return f"{label} = {0 if at_most else 1}"
    return f"{label} {'≤' if at_most else '>'} {_shown(cut)}"


def _document(policy: Policy) -> dict[str, Any] | None:
    """Return what `load_policy` reads; None for code, for the log itself, and when too large."""
    if is_exactly(policy, StatusQuo):
        return None
    try:
        found = policy.to_dict()
    except InvalidArgument:  # a Python function is not data
        return None
    return found if len(json.dumps(found)) <= LARGEST_DOCUMENT else None


def _shown(value: float) -> str:
    return f"{value:.12g}".replace("-", "−")


def _width(scale: float | Array) -> str:
    widths = np.unique(scale)
    return _shown(widths[0]) if len(widths) == 1 else f"{_shown(widths[0])} … {_shown(widths[-1])}"


def _entry(value: float | Array, j: int) -> float:
    entries = np.atleast_1d(value)
    return float(entries[j] if len(entries) > 1 else entries[0])


SIDES: dict[type[Policy], Callable[[Any, int, Speech], str]] = {
    Constant: lambda policy, j, _: _shown(_entry(policy.dose, j)),
    Linear: _linear,
    Additive: _additive,
    Products: _products,
    Tree: lambda policy, _, __: f"the dose of one of {len(policy.doses)} groups",
    LinearTree: lambda policy, _, __: f"the line of one of {len(policy.doses)} groups",
    RBF: _bumps,
    Personal: _people,
}
"""How the right side of each policy's formula is written, for dose number j."""
ROUNDED = (Constant, Linear, Additive, Products, Tree, LinearTree)
"""The classes whose parameters are written shorter than they are."""
