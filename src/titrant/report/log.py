"""The log and the doses of policies beside it, counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from titrant.errors import InvalidArgument
from titrant.policies import StatusQuo, doses
from titrant.policies.base import is_exactly
from titrant.report import counting
from titrant.report.content import LOGGED, DoseCounts, DoseSummary, LogSummary, OverlapMap, Profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.inference import IntervalMethod
    from titrant.policies import Policy


DOSES = 3
"""Treatments that are drawn, if there are several."""
CONTEXTS = 3
"""Contexts that doses are drawn against, and that subgroups are made by."""


def summary(
    whole: Evaluation, treatments: Sequence[str], outcome: str | None, *, maximize: bool
) -> LogSummary:
    """Return the log in a few words."""
    survey = whole.survey
    return LogSummary(
        rows=survey.n,
        text=repr(whole.source)
        .partition("(")[2]
        .removesuffix(")")
        .replace("; no propensity", "; no propensity column"),
        contexts=len(whole.source.names),
        treatments=tuple(treatments),
        outcome=outcome or ("reward" if maximize else "loss"),
        sample=None if survey.sample.whole else len(survey.sample.log),
    )


def treatment_names(given: Sequence[str] | None, dimension: int) -> list[str]:
    """Return what the doses are called."""
    if given is None:
        return ["dose"] if dimension == 1 else [f"dose {j + 1}" for j in range(dimension)]
    if len(given) != dimension:
        raise InvalidArgument(
            f"The log has {dimension} treatment(s), but {len(given)} name(s) for them were given."
        )
    return list(given)


def dose_counts(log: LoggedData, tau: Mapping[str, Array]) -> tuple[DoseCounts, ...]:
    """Return how often each dose was logged and would be given, for each treatment."""
    return tuple(
        counting.dose_counts(log.doses[:, j], {name: t[:, j] for name, t in tau.items()})
        for j in range(min(DOSES, log.dimension))
    )


def dose_summaries(
    log: LoggedData, tau: Mapping[str, Array], treatments: Sequence[str], reference: str
) -> tuple[DoseSummary, ...]:
    """Return mean and spread of each dose as logged and under each policy."""
    rows = {LOGGED: log.doses} | {name: t for name, t in tau.items() if name != reference}
    return tuple(
        counting.dose_summary(name, treatment, t[:, j], log.doses[:, j])
        for j, treatment in enumerate(treatments)
        for name, t in rows.items()
    )


def profiles(
    log: LoggedData, tau: Mapping[str, Array], treatments: Sequence[str], focus: str
) -> tuple[Profile, ...]:
    """Return each dose against the contexts that the focus, or else the log, goes with most."""
    if focus not in tau:
        return ()
    found = []
    for j, treatment in enumerate(treatments[:DOSES]):
        logged = log.doses[:, j]
        chosen = counting.main_contexts(log.context, [tau[focus][:, j], logged], CONTEXTS)
        by_policy = {name: t[:, j] for name, t in tau.items()}
        found += [
            counting.profile(log.names[c], treatment, log.context[:, c], logged, by_policy)
            for c in chosen
        ]
    return tuple(found)


def overlap(
    comparison: Comparison,
    log: LoggedData,
    tau: Mapping[str, Array],
    treatments: Sequence[str],
) -> tuple[OverlapMap, ...]:
    """Return where the policies' doses lie beside the logged ones."""
    return tuple(
        counting.overlap_map(
            name, treatment, log.doses[:, j], t[:, j], _bandwidth_of(comparison, name, j)
        )
        for name, t in tau.items()
        for j, treatment in enumerate(treatments[:DOSES])
    )


def _bandwidth_of(comparison: Comparison, name: str, j: int) -> float | None:
    """Return the bandwidth of dose j; None where there is none, or a matrix."""
    chosen = comparison[name].bandwidth
    if chosen is None or chosen.h.ndim > 1:
        return None
    return float(chosen.h if chosen.h.ndim == 0 else chosen.h[j])


# Which policies a report shows, and what they give.

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
