"""Learning within limits: what searches see of the rows, and how a budget is kept.

Where rows have limits of their own, a search sees D_i(clip(g, low_i, high_i)) in place of D_i(g).
Steps are left to the end: the nearest dose on the steps is what is scored. A rule that passes the
budget is learned again with a bound on its mean dose, and then moved downward as a whole until the
mean of the doses as they are given meets the budget. Where learning saw other rows than those of
the log, each once, the last move is by the means of all rows with their weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError, InvalidArgument
from titrant.learn.candidates import learn_candidates
from titrant.learn.classes.base import DoseCurves
from titrant.learn.limits.declared import ROUNDS
from titrant.learn.setting import cut
from titrant.optimize import Box, Free
from titrant.policies import Clipped, Constant, LinearTree, Personal, Tree
from titrant.policies.base import is_exactly
from titrant.policies.calling import recommended
from titrant.policies.lookup import least_dose

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.candidates import Candidate, LearningRows
    from titrant.learn.classes import CurveClass
    from titrant.learn.limits.declared import RowLimits
    from titrant.learn.limits.population import Population
    from titrant.learn.setting import Units
    from titrant.optimize import Constraint, Solution
    from titrant.policies import Policy

NOTHING = 1e-6
"""What may be left of a move that is a rule of the class, as a share of the range of doses."""
FAR = 0.005
"""By how much of the range of doses groups may stay apart beyond their margin."""
TILTS = 50
"""Bisections of the price of a unit of the mean dose."""


# Classes that are affine in their parameters.


def learn_within(
    candidates: tuple[Candidate, ...], rows: LearningRows, units: Units, constraint: Constraint
) -> tuple[Array, list[Solution]]:
    """Return the parameters (candidates, P) of rules within the budget, and their searches."""
    limits = rows.limits
    if limits is None:
        return learn_candidates(candidates, rows, units, constraint)
    if limits.slopes or limits.moves:
        check_free(constraint)
    within = _box(rows) if limits.slopes else constraint
    params, solutions = learn_candidates(candidates, rows, units, within)
    over = limits.exceeded(params @ rows.phi.T)
    if not over.any():
        return np.stack([settled(one, rows) for one in params]), solutions
    check_level(rows)
    # The mean dose that the rules that pass the budget have, before limits, when they meet it.
    raw = params[over] @ rows.phi.T
    most = max(float(one.mean()) + limits.shift(one) for one in raw)
    params, solutions = _bounded(candidates, rows, units, most)
    return np.stack([settled(one, rows) for one in params]), solutions


def settled(params: Array, rows: LearningRows) -> Array:
    """Return the parameters (P,) of a rule moved, group by group, so that its means keep limits."""
    limits = rows.limits
    if limits is None or not limits.moves:
        return params
    raw = rows.phi @ params
    offset = limits.offset(raw)
    return _moved_by(params, offset, rows) if offset.any() else params


def _moved_by(params: Array, offset: Array, rows: LearningRows) -> Array:
    """Return the parameters (P,) of a rule whose doses are larger by an offset (n,)."""
    by = np.linalg.lstsq(rows.phi, offset, rcond=None)[0]
    left = np.abs(offset - rows.phi @ by).max()
    if rows.limits is None or left > NOTHING * np.ptp(rows.limits.ends):
        raise InvalidArgument(
            "Limits of mean doses move a rule as a whole, or group by group: that takes a class "
            "with an intercept and, for `equal_across`, with the contexts that tell groups apart. "
            "Learn a class with them, such as `LinearClass()`."
        )
    return np.asarray(params + by)


def kept(
    params: Array,
    rows: LearningRows,
    population: Population | None,
    rule: Callable[[Array], Policy],
) -> Array:
    """Return the same, by the means of a population if there is one; ``rule`` is that of β/s (P,).

    A rule whose groups stay further apart than their margin is refused.
    """
    params, limits = settled(params, rows), rows.limits
    if limits is None:
        return params
    if population is None:
        apart = limits.apart(rows.phi @ params)
    else:
        params = _kept_by(population, params, rows, rule)
        apart = population.apart(rule(params))
    if apart > limits.margin + FAR * np.ptp(limits.ends):
        raise DataError(
            f"The mean doses of the groups still differ by {apart:.6g}, more than the "
            f"margin of {limits.margin:.6g}: the other limits leave no dose nearer. Widen the "
            "margin, or allow finer steps and wider limits."
        )
    return params


def _kept_by(
    population: Population, params: Array, rows: LearningRows, rule: Callable[[Array], Policy]
) -> Array:
    """Return the parameters (P,) of a rule moved so that its means in a population keep limits."""
    groups = None if rows.limits is None else rows.limits.groups
    place = np.full(len(rows.phi), -1) if groups is None else groups
    for _ in range(ROUNDS):
        moves = population.moves(rule(params))
        if not moves.any():
            break
        params = _moved_by(params, moves[place], rows)
    return params


def _bounded(
    candidates: tuple[Candidate, ...], rows: LearningRows, units: Units, most: float
) -> tuple[Array, list[Solution]]:
    """Learn with a mean dose of at most ``most``: a bound on the level beside centered features."""
    means = rows.phi.mean(axis=0) / rows.phi[0, 0]
    means[0] = 0.0
    centered = replace(rows, phi=rows.phi - rows.phi[:, :1] * means)
    params, solutions = learn_candidates(candidates, centered, units, _box(rows, most))
    params[:, 0] -= params @ means
    return params, solutions


def _box(rows: LearningRows, most: float = np.inf) -> Box:
    """Return the slopes' signs and the largest level as bounds of the parameters."""
    low, high = np.full(rows.phi.shape[1], -np.inf), np.full(rows.phi.shape[1], np.inf)
    for place, sign in (rows.limits.slopes if rows.limits else {}).items():
        (low if sign > 0 else high)[place] = 0.0
    high[0] = min(high[0], most)
    return Box(low, high)


def check_level(rows: LearningRows) -> None:
    """Refuse a budget for rules that cannot be moved as a whole."""
    level = rows.phi[:, 0]
    if not level[0] or np.ptp(level):
        raise InvalidArgument(
            "A limit of the mean dose moves a rule as a whole, which takes one with an intercept. "
            "Learn a class with one, such as `LinearClass()`."
        )


def check_free(constraint: Constraint) -> None:
    """Refuse a constraint on parameters beside limits that are kept by them."""
    if not isinstance(constraint, Free):
        raise InvalidArgument(
            "`increasing`, `decreasing` or `mean_dose` and a constraint on parameters cannot be "
            "kept together. Leave one of them out."
        )


# Classes with a search of their own.


def found_within(
    kind: CurveClass, log: LoggedData, curves: DoseCurves, limits: RowLimits | None
) -> tuple[Policy, ...]:
    """Return the policies that a class finds on curves, within the budget.

    Those that pass it are found again where a unit of the dose has its price λ, D + λ·g, and then
    moved. λ is that at which the best dose of each row by itself meets the budget.
    """
    found = kind.found(log, curves)
    if limits is None or not limits.budgeted:
        return found
    over = [bool(limits.exceeded(_doses(policy, log))) for policy in found]
    if not any(over):
        return found
    again = kind.found(log, tilted(curves, limits, price_of_all(curves, limits)))
    chosen = zip(over, found, again, strict=True)
    return tuple(_settled(new, log, limits) if passes else old for passes, old, new in chosen)


def tilted(curves: DoseCurves, limits: RowLimits, price: float) -> DoseCurves:
    """Return curves with a price on each unit of the dose as it is held within limits."""
    cost = price * limits.held(np.broadcast_to(curves.grid, curves.model.shape))
    return DoseCurves(curves.grid, curves.model + cost, curves.robust + cost)


def price_of_all(curves: DoseCurves, limits: RowLimits) -> float:
    """Return the price λ at which the doses with the least model + λ·g keep to the budget."""

    def exceeded(price: float) -> bool:
        return bool(limits.exceeded(least_dose(curves.grid, tilted(curves, limits, price).model)))

    if not exceeded(0.0):
        return 0.0
    step = curves.grid[1] - curves.grid[0]
    low, high = 0.0, float(np.ptp(curves.model, axis=1).max() / step)
    for _ in range(TILTS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if exceeded(middle) else (low, middle)
    return high


def least_within(curves: DoseCurves, limits: RowLimits) -> Array:
    """Return the dose (n,) with the least model for each row, within the budget."""
    price = price_of_all(curves, limits) if limits.budgeted else 0.0
    return least_dose(curves.grid, tilted(curves, limits, price).model)


def _doses(policy: Policy, log: LoggedData) -> Array:
    return recommended(policy, log.context, log.names)


def found_kept(policy: Policy, population: Population | None) -> Policy:
    """Return a policy moved so that its mean dose in a population, if any, is in budget."""
    by = 0.0 if population is None else float(population.moves(policy)[-1])
    return policy if population is None or not by else moved(policy, by, population.ends)


def _settled(policy: Policy, log: LoggedData, limits: RowLimits) -> Policy:
    by = limits.shift(_doses(policy, log))
    return moved(policy, by, limits.ends) if by else policy


def moved(policy: Policy, by: float, ends: tuple[float, float]) -> Policy:
    """Return a policy whose doses are all larger by a number, held between ends."""
    found = _larger(policy, by)
    if is_exactly(found, Tree):
        return found.with_params(np.clip(found.params, *ends))
    if is_exactly(found, LinearTree):
        return replace(found, lower=np.clip(found.lower, *ends), upper=np.clip(found.upper, *ends))
    return cut(found, *ends)


def _larger(policy: Policy, by: float) -> Policy:
    if is_exactly(policy, Constant) or is_exactly(policy, Tree):
        return policy.with_params(policy.params + by)
    if is_exactly(policy, LinearTree):
        return policy.moved(by)
    if is_exactly(policy, Personal):
        return replace(policy, grid=policy.grid + by)
    if is_exactly(policy, Clipped):
        return Clipped(_larger(policy.policy, by), policy.lower + by, policy.upper + by)
    raise InvalidArgument(
        f"A limit of the mean dose moves a rule as a whole; `{type(policy).__name__}` is not known "
        "to be movable. Learn a class such as `LinearClass()` or `TreeClass()`."
    )
