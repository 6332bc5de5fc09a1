"""What a policy changes for whom: for parts of the log, and for one person at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import TitrantError
from titrant.evaluation.questions.cells import FEW_VALUES, Cut, cuts_of
from titrant.evaluation.questions.subgroups import parts_on
from titrant.policies.formats.exporting import RuleFormulas, context_formula
from titrant.policies.formats.formulas import Number, Product, as_lists
from titrant.policies.points import MOVED, decimals_of
from titrant.reporting import counting
from titrant.reporting.content import CONTEXTS, ShownSubgroup
from titrant.reporting.numbers import number
from titrant.reporting.rules import limits, linear_part, readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.columns import Recipe
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.evaluation.questions.subgroups import Subgroup
    from titrant.policies import Policy


def subgroups(
    whole: Evaluation, comparison: Comparison, pair: tuple[str, str], tau: Array, level: float
) -> tuple[ShownSubgroup, ...]:
    """Return what the first policy of the pair changes against the second, by thirds of contexts.

    The contexts are those that the policy's doses ``tau``, or else the logged ones, go with most
    in the rows in memory; what is said about a part is from all of its rows.
    """
    cells = list(_thirds(whole, tau))
    if pair[0] == pair[1] or not cells:
        return ()
    bandwidths = {name: comparison[name].bandwidth for name in pair}
    parts, *_ = parts_on(whole, bandwidths, cells)
    return tuple(_shown(part, level) for part in parts)


def _thirds(whole: Evaluation, tau: Array) -> Iterator[Cut]:
    """Yield the main contexts in thirds, or by their values if they have few."""
    log = whole.log
    columns = [tau[:, j] for j in range(tau.shape[1])] + list(log.doses.T)
    for c in counting.main_contexts(log.context, columns, CONTEXTS):
        cuts = tuple(cuts_of(log.context[:, c], counting.THIRDS).tolist())
        yield Cut(whole.source.names[c], c, cuts, levels=len(cuts) < FEW_VALUES)


def _shown(part: Subgroup, level: float) -> ShownSubgroup:
    return ShownSubgroup(
        context=part.column,
        label=part.label,
        rows=part.rows,
        logged_dose=part.logged_dose,
        policy_dose=part.policy_dose,
        outcome=part.outcome,
        ess=part.ess,
        difference=part.difference if part.trusted else None,
        interval=part.interval(level) if part.trusted else None,
    )


# One person: the rule as data that a page can evaluate, and how many in the log were alike.

DOSE_BINS = 48
"""Bins of the logged doses by which people are counted who got about a dose."""
MOST_FIELDS = 30
"""Columns that a form asks for; nobody fills in more."""


def person(policy: Policy, log: LoggedData, reach: float) -> dict[str, Any] | None:
    """Return what a page needs to dose one person by a policy; None if it has no formula.

    ``fields``: the columns it asks for, each with ``column``, ``kind`` (number, level, text or
    date), ``levels`` to choose from, ``low`` and ``high`` of the log, a ``start`` and whether it
    may be ``missing``. ``stages``: from the rule to its limits and steps, each its ``words`` and
    its ``doses`` as nested lists (`as_lists`). ``needed``: tests of which none may hold; where one
    of ``impossible`` does, the limits leave no dose. ``terms`` of a linear rule: what each context
    adds. ``near``: how many in the log were alike, and got about as much, within ``reach``.
    ``decimals`` to which doses are told.
    """
    recipe = None if log.flow is None else log.flow.recipe
    try:
        rule = RuleFormulas.of(policy, recipe, log.names)
        shown = [words for words, _ in limits(readable(policy, log))]
        parts = [RuleFormulas.of(part, recipe, log.names) for _, part in limits(policy)]
    except TitrantError:
        return None
    if not 0 < len(rule.columns) <= MOST_FIELDS:
        return None
    return {
        "fields": [_field(column, recipe, log) for column in rule.columns],
        "needed": as_lists(rule.needed),
        "impossible": as_lists(rule.impossible),
        "stages": [
            {"words": words, "doses": as_lists(part.doses)}
            for words, part in zip(shown, parts, strict=True)
        ],
        "terms": list(_terms(policy, recipe, log)),
        "near": _near(policy, recipe, log, reach) if log.dimension == 1 else None,
        "decimals": max(0, *(decimals_of(MOVED * sd) for sd in log.doses.std(axis=0).tolist())),
    }


def _field(column: str, recipe: Recipe | None, log: LoggedData) -> dict[str, Any]:
    field: dict[str, Any] = {"column": column, "kind": "number", "missing": False}
    if recipe is not None and column in recipe.levels:
        texts = recipe.levels[column]
        start = _usual(column, texts, log)
        return field | {"kind": "text", "levels": list(texts), "start": start}
    field["missing"] = recipe is not None and column in recipe.fills
    if column not in log.names:
        dated = any(name.startswith(f"{column}.") for name in log.names)
        return field | {"kind": "date"} if dated else field
    x = log.context[:, log.names.index(column)]
    values = np.unique(x)
    middle = float(values[np.abs(values - np.median(x)).argmin()])
    usual = float(f"{middle:.3g}")
    if len(values) <= FEW_VALUES and not field["missing"]:
        levels = [f"{value:.12g}" for value in values]
        return field | {"kind": "level", "levels": levels, "start": f"{middle:.12g}"}
    low, high = float(values[0]), float(values[-1])
    return field | {"low": low, "high": high, "start": usual if low <= usual <= high else middle}


def _usual(column: str, levels: tuple[str, ...], log: LoggedData) -> str:
    """Return the text that most rows have, the reference if its indicators say so."""
    if column in log.names:  # a code: the place of the text
        places = log.context[:, log.names.index(column)].astype(np.intp)
        return levels[min(int(np.bincount(places).argmax()), len(levels) - 1)]
    share = {
        level: float(log.context[:, log.names.index(f"{column}={level}")].mean())
        for level in levels
        if f"{column}={level}" in log.names
    }
    rest = [level for level in levels if level not in share]
    shares = share | ({rest[0]: 1.0 - sum(share.values())} if rest else {})
    return max(shares, key=lambda level: shares[level])


def _terms(policy: Policy, recipe: Recipe | None, log: LoggedData) -> Iterator[dict[str, Any]]:
    """Yield the contexts of a linear rule, each with its rounded slope and what it adds."""
    exact, rounded = linear_part(policy), linear_part(readable(policy, log))
    if exact is None or rounded is None or log.dimension > 1:
        return
    names = exact.features or log.names
    for name, slope, shown in zip(names, exact.params[1:], rounded.params[1:], strict=True):
        if slope:
            adds = Product((Number(float(slope)), context_formula(name, recipe)))
            yield {"context": name, "slope": float(shown), "adds": as_lists(adds)}


def _near(
    policy: Policy, recipe: Recipe | None, log: LoggedData, reach: float
) -> dict[str, Any] | None:
    """Return counts of people by parts of the rule's main contexts and by their logged dose."""
    used = [name for name in policy.features or log.names if name in log.names]
    places = [log.names.index(name) for name in used]
    chosen = counting.main_contexts(log.context[:, places], [log.treatment], CONTEXTS)
    if not chosen:
        return None
    contexts, cell = [], np.zeros(len(log), dtype=np.intp)
    for j in (places[k] for k in chosen):
        x = log.context[:, j]
        cuts = cuts_of(x, counting.THIRDS)
        cell = cell * (len(cuts) + 1) + np.searchsorted(cuts, x, side="left")
        contexts.append(
            {
                "context": log.names[j],
                "value": as_lists(context_formula(log.names[j], recipe)),
                "cuts": cuts.tolist(),
                "words": _ranges(x, cuts, log.names[j]),
            }
        )
    size = int(np.prod([len(one["cuts"]) + 1 for one in contexts]))
    edges = np.linspace(log.treatment.min(), log.treatment.max(), DOSE_BINS + 1)
    counts = np.histogram2d(cell, log.treatment, (np.arange(size + 1) - 0.5, edges))[0]
    return {
        "contexts": contexts,
        "edges": edges.tolist(),
        "counts": counts.astype(np.int64).tolist(),
        "reach": reach,
        "rows": len(log),
    }


def _ranges(x: Array, cuts: Array, name: str) -> list[str]:
    """Return the values of each part of a context in words."""
    if set(np.unique(x).tolist()) == {0.0, 1.0}:
        text, level = name.partition("=")[::2]
        return [f"not {level}", level] if text and level else ["no", "yes"]
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    parts = [x[(x > low) & (x <= high)] for low, high in pairwise(ends)]
    spans = [(number(float(part.min())), number(float(part.max()))) for part in parts]
    return [low if low == high else f"{low} to {high}" for low, high in spans]
