"""Which policies a report shows, and what they give."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from titrant.policies import StatusQuo, doses
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.evaluation import Comparison, Evaluation
    from titrant.inference import IntervalMethod
    from titrant.policies import Policy

STATUS_QUO = "status quo"
DRAWN = 4
"""Policies in figures, the status quo not counted: more lines than that cannot be told apart."""


def with_status_quo(
    comparison: Comparison, evaluation: Evaluation, interval: IntervalMethod | None
) -> tuple[Comparison, Evaluation]:
    """Return the comparison and its evaluation with the status quo among the policies.

    The other estimates stay what they are: they keep their bandwidths, or stay refused.
    """
    if any(is_exactly(policy, StatusQuo) for policy in evaluation.policies):
        return comparison, evaluation
    name = STATUS_QUO if STATUS_QUO not in evaluation.names else "as logged"
    known = dict(zip(evaluation.names, evaluation.policies, strict=True))
    whole = evaluation.with_policies({name: StatusQuo(), **known})
    chosen = {0: None} | {
        whole.names.index(n): e.bandwidth for n, e in comparison.estimates.items()
    }
    return replace(whole.comparison(chosen, interval), refused=comparison.refused), whole


def reference(whole: Evaluation) -> str:
    """Return the name of the status quo."""
    pairs = zip(whole.names, whole.policies, strict=True)
    return next(name for name, policy in pairs if is_exactly(policy, StatusQuo))


def focus(
    comparison: Comparison,
    reference: str,
    learned: Mapping[str, Any] | None,
    *,
    maximize: bool,
) -> str:
    """Return the learned policy, or the best one that is not refused, other than the status quo."""
    if learned is not None:
        name = str(learned["name"])
        return comparison[name].policy
    ranked = _ranked(comparison, reference, maximize=maximize)
    trusted = [name for name in ranked if comparison[name].trusted]
    return next(iter(trusted or ranked), reference)


def drawn(comparison: Comparison, reference: str, focus: str, *, maximize: bool) -> tuple[str, ...]:
    """Return the focus and the best others, in the order of the comparison."""
    ranked = _ranked(comparison, reference, maximize=maximize)
    chosen = sorted(ranked, key=lambda name: name != focus)[:DRAWN]
    return tuple(name for name in comparison.names if name in chosen)


def _ranked(comparison: Comparison, reference: str, *, maximize: bool) -> list[str]:
    sign = -1.0 if maximize else 1.0
    others = [name for name in comparison.names if name != reference]
    return sorted(others, key=lambda name: sign * comparison[name].value)


def doses_of(policy: Policy, log: LoggedData) -> Array:
    """Return the doses of a policy (n, d); those of the status quo are in the log."""
    if is_exactly(policy, StatusQuo):
        return log.doses
    return doses(policy, log.context, log.dimension, log.names)
