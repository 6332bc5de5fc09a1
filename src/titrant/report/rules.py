"""Policies in words: a formula on the user's scale, its coefficients, and its document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import InvalidArgument
from titrant.policies import RBF, Clipped, Constant, Function, Linear, Rounded, StatusQuo
from titrant.policies.base import is_exactly
from titrant.policies.moves import Limited, Move, Moved, Multiply, OneToOne, Randomized, Shift, Tilt
from titrant.report.content import Coefficient, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        formulas=tuple(_formula(policy, j, t, names) for j, t in enumerate(treatments)),
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
    if isinstance(policy, Move):
        return _change(policy, treatment, names)
    return f"{treatment} = {_right_side(policy, j, names)}"


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
    if is_exactly(policy, Constant):
        return _shown(_entry(policy.dose, j))
    if is_exactly(policy, Linear) and policy.coef is not None:
        slopes = policy.coef.reshape(len(policy.coef), -1)[:, j]
        return _sum(_entry(policy.intercept, j), policy.features or names, slopes)
    if is_exactly(policy, RBF):
        level = _shown(_entry(policy.intercept, j))
        return f"{level} + a sum of {len(policy.centers)} bumps of width {_width(policy.scale)}"
    if isinstance(policy, Function):
        return "what a Python function returns: it has no formula to show"
    return type(policy).__name__


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
    if is_exactly(policy, Clipped) or is_exactly(policy, Rounded):
        return linear_part(policy.policy)
    return policy if is_exactly(policy, Linear) and policy.coef is not None else None


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
