"""Policies in words: a formula on the user's scale, its coefficients, and its document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import InvalidArgument
from titrant.policies import (
    RBF,
    Additive,
    Clipped,
    Constant,
    Function,
    InLimits,
    Linear,
    Personal,
    Products,
    Rounded,
    StatusQuo,
    Tree,
)
from titrant.policies.base import is_exactly
from titrant.policies.moves import Limited, Move, Moved, Multiply, OneToOne, Randomized, Shift, Tilt
from titrant.report.content import Coefficient, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from titrant._types import Array
    from titrant.policies import Policy

LARGEST_DOCUMENT = 10_000
"""Characters of JSON that a page takes for one policy; a sum of bumps can have many more."""
_TERMS = 12
"""Contexts in a formula, the largest if there are more."""
LISTED = 30
"""Coefficients in a table."""


def rule(
    name: str, policy: Policy, treatments: Sequence[str], names: Sequence[str], sd: Array
) -> Rule:
    """Return a policy in words; ``sd`` (p,) are those of the contexts ``names`` of the log."""
    linear = linear_part(policy)
    found = () if linear is None else _coefficients(linear, dict(zip(names, sd, strict=True)))
    return Rule(
        policy=name,
        formulas=(
            *(_formula(policy, j, t, names) for j, t in enumerate(treatments)),
            *_details(unwrapped(policy), treatments, names),
        ),
        intercept=None if linear is None else _entries(linear.intercept),
        coefficients=_largest(found),
        left_out=max(0, len(found) - LISTED),
        document=_document(policy),
    )


def _formula(policy: Policy, j: int, treatment: str, names: Sequence[str]) -> str:
    """Return the rule for dose number j."""
    if is_exactly(policy, StatusQuo):
        return f"{treatment} as it was given"
    if is_exactly(policy, Clipped):
        low, high = _entry(policy.lower, j), _entry(policy.upper, j)
        return _formula(policy.policy, j, treatment, names) + _kept(low, high)
    if is_exactly(policy, Rounded):
        step = f", rounded to steps of {_shown(_entry(policy.step, j))}"
        offset = _entry(policy.offset, j)
        start = f" from {_shown(offset)}" if offset else ""
        return _formula(policy.policy, j, treatment, names) + step + start
    if is_exactly(policy, InLimits):
        return _formula(policy.policy, j, treatment, names) + _limited(policy)
    if isinstance(policy, Move):
        return _change(policy, treatment, names)
    return f"{treatment} = {_right_side(policy, j, names)}"


def _limited(policy: InLimits) -> str:
    """Return the limits of a rule in words."""
    steps, said = policy.steps, []
    if isinstance(steps, float):
        said.append(f"in steps of {_shown(steps)}")
    elif steps is not None:
        said.append(f"one of {', '.join(map(_shown, steps))}")
    for words, end in (("at least", policy.at_least), ("at most", policy.at_most)):
        if end is not None:
            said.append(f"{words} {end if isinstance(end, str) else _shown(end)}")
    if policy.current is not None:
        said.append(f"within {_shown(policy.largest_change or 0.0)} of {policy.current}")
    return "".join(f", {one}" for one in said)


def _change(policy: Move, treatment: str, names: Sequence[str]) -> str:
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
        return f"{_formula(policy.policy, 0, treatment, names)}, ± {_shown(policy.sd)} at random"
    elif isinstance(policy, Moved):
        given = f"what a Python function makes of {given}"
    if isinstance(policy, Limited):
        return given + _kept(policy.low, policy.high)
    ends = _kept(policy.low, policy.high) if isinstance(policy, OneToOne) else ""
    return f"{given}{ends} or as it was" if ends else given


def _right_side(policy: Policy, j: int, names: Sequence[str]) -> str:
    if isinstance(policy, Function):
        return "what a Python function returns: it has no formula to show"
    said = SIDES.get(type(policy))
    return type(policy).__name__ if said is None else said(policy, j, names)


def _linear(policy: Linear, j: int, names: Sequence[str]) -> str:
    if policy.coef is None:
        return type(policy).__name__
    slopes = policy.coef.reshape(len(policy.coef), -1)[:, j]
    return _sum(_entry(policy.intercept, j), policy.features or names, slopes)


def _bumps(policy: RBF, j: int, names: Sequence[str]) -> str:  # noqa: ARG001
    level = _shown(_entry(policy.intercept, j))
    return f"{level} + a sum of {len(policy.centers)} bumps of width {_width(policy.scale)}"


def _people(policy: Personal, j: int, names: Sequence[str]) -> str:  # noqa: ARG001
    alike = f"the {policy.nearest} of {len(policy.contexts):,} people who are most alike"
    return f"the dose with the least mean loss of {alike}"


def _sum(intercept: float, names: Sequence[str], slopes: Array) -> str:
    """Return intercept ± |slope| · name ± …, the largest if there are many."""
    most = np.argsort(-np.abs(slopes), kind="stable")[:_TERMS]
    terms = [
        f" {'−' if slopes[i] < 0 else '+'} {_shown(abs(slopes[i]))} · {names[i]}"
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


def _coefficients(linear: Linear, sd: Mapping[str, float]) -> tuple[Coefficient, ...]:
    coef = np.asarray(linear.coef)
    rows = coef.reshape(len(coef), -1)
    names = linear.features or (tuple(sd) if len(sd) == len(rows) else ())
    return tuple(
        Coefficient(
            context=context,
            values=tuple(slopes.tolist()),
            per_sd=tuple((slopes * sd[context]).tolist()) if context in sd else None,
        )
        for context, slopes in zip(names, rows, strict=True)
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


def unwrapped(policy: Policy) -> Policy:
    """Return the policy inside limits and steps."""
    if is_exactly(policy, Clipped) or is_exactly(policy, Rounded) or is_exactly(policy, InLimits):
        return unwrapped(policy.policy)
    return policy


# Rules that take more than a line: curves by their points, squares by their units, trees by leaves.


def _additive(policy: Additive, j: int, names: Sequence[str]) -> str:
    """Return intercept ± slope · name … + curve(name) … in words."""
    known = policy.features or names
    bent = np.array([len(k) > 0 for k in policy.knots])
    slopes = policy.coef.reshape(len(policy.coef), -1)[:, j]
    line = _sum(_entry(policy.intercept, j), known, np.where(bent, 0.0, slopes))
    curves = "".join(f" + curve({known[i]})" for i in np.flatnonzero(bent)[:_TERMS])
    rest = int(bent.sum()) - _TERMS
    return line + curves + (f" + … ({rest} curves more)" if rest > 0 else "")


def _products(policy: Products, j: int, names: Sequence[str]) -> str:
    """Return intercept ± slope · name … ± factor · u(name)·u(name) … in words."""
    known = policy.features or names
    slopes = policy.coef.reshape(len(policy.coef), -1)[:, j]
    factors = policy.bends.reshape(len(policy.bends), -1)[:, j]
    terms = [
        f"u({known[a]})²" if a == b else f"u({known[a]})·u({known[b]})" for a, b in policy.pairs
    ]
    return _sum(_entry(policy.intercept, j), [*known, *terms], np.append(slopes, factors))


def _details(policy: Policy, treatments: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield the lines that a formula leaves out."""
    if is_exactly(policy, Additive):
        known = policy.features or names
        for i, knots in enumerate(policy.knots):
            if not len(knots):
                continue
            heights = policy.curve(i, knots).reshape(len(knots), -1)
            for t, column in zip(treatments, heights.T, strict=True):
                of = f" for {t}" if len(treatments) > 1 else ""
                points = (f"{_shown(y)} at {_shown(x)}" for x, y in zip(knots, column, strict=True))
                yield f"curve({known[i]}){of}: {', '.join(points)}"
    elif is_exactly(policy, Products):
        known = policy.features or names
        for i in sorted({i for pair in policy.pairs for i in pair}):
            center = f"{_shown(abs(policy.center[i]))}"
            sign = "+" if policy.center[i] < 0 else "−"
            unit = _shown(policy.size[i])
            yield f"u({known[i]}) = ({known[i]} {sign} {center})/{unit}, held within ±3"
    elif is_exactly(policy, Tree):
        known = policy.features or names
        doses = policy.doses.reshape(len(policy.doses), -1)
        for answers, leaf in policy.paths():
            asked = ", ".join(
                _answer(known[policy.columns[s]], policy.cuts[s], at_most=low) for s, low in answers
            )
            yield f"{asked}: {', '.join(map(_shown, doses[leaf]))}"


def _answer(name: str, cut: float, *, at_most: bool) -> str:
    """Return one answer of a tree; an indicator of a text is there or not."""
    if "=" in name and 0.0 <= cut < 1.0:
        return f"not {name}" if at_most else name
    return f"{name} {'≤' if at_most else '>'} {_shown(cut)}"


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
    return f"{value:.6g}".replace("-", "−")


def _width(scale: float | Array) -> str:
    widths = np.unique(scale)
    return _shown(widths[0]) if len(widths) == 1 else f"{_shown(widths[0])} … {_shown(widths[-1])}"


def _entry(value: float | Array, j: int) -> float:
    entries = np.atleast_1d(value)
    return float(entries[j] if len(entries) > 1 else entries[0])


def _entries(value: float | Array) -> tuple[float, ...]:
    return tuple(np.atleast_1d(value).tolist())


SIDES: dict[type[Policy], Callable[[Any, int, Sequence[str]], str]] = {
    Constant: lambda policy, j, _: _shown(_entry(policy.dose, j)),
    Linear: _linear,
    Additive: _additive,
    Products: _products,
    Tree: lambda policy, _, __: f"the dose of one of {len(policy.doses)} groups",
    RBF: _bumps,
    Personal: _people,
}
"""How the right side of each policy's formula is written, for dose number j."""
