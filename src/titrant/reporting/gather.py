"""From a comparison to a report: the only part of this room that asks the library for numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

from titrant import __version__
from titrant.errors import InvalidArgument
from titrant.evaluation.description import Description
from titrant.policies import StatusQuo
from titrant.policies.base import is_exactly
from titrant.reporting import counting
from titrant.reporting.content import (
    CONTEXTS,
    DOSES,
    LOGGED,
    MAIN_COLUMNS,
    MOST_COLUMNS,
    DoseCounts,
    DoseSummary,
    LogSummary,
    OverlapMap,
    Profile,
    Report,
    called,
)
from titrant.reporting.estimates import (
    balance,
    calibration,
    curves,
    doses_of,
    paths,
    shifts,
    strengths,
    weights,
)
from titrant.reporting.rules import rule
from titrant.reporting.whom import person, subgroups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import BandwidthSelector
    from titrant.data import LoggedData
    from titrant.data.about import About
    from titrant.evaluation.curves import Curve
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.inference import IntervalMethod
    from titrant.policies import Policy
    from titrant.reporting.content import Rule


__all__ = ["gather"]

CURVES_BEGIN, STRENGTHS_BEGIN, CURVES_END, CALIBRATION_END = (
    (percent, 100) for percent in (5, 45, 65, 90)
)
"""How much of the time is over, in percent, as measured on 100,000 rows."""


def gather(
    comparison: Comparison,
    evaluation: Evaluation,
    *,
    level: float = 0.95,
    maximize: bool | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    interval: IntervalMethod | None = None,
    settings: Mapping[str, object] | None = None,
    config: str | None = None,
    truth: Mapping[str, float] | None = None,
    learned: Mapping[str, Any] | None = None,
    rules: Mapping[str, Policy] | None = None,
    treatments: Sequence[str] | None = None,
    outcome: str | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    doubts: Callable[[Evaluation, Comparison, str], Mapping[str, Any]] | None = None,
    trade_offs: Mapping[str, Any] | None = None,
    protocol: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Return the report of a comparison and of the evaluation that it was made by.

    Of a log that is read part by part, doses are counted on the sample of rows that models are
    fitted on; all values, curves, weights, balances and differences are of all rows.

    Parameters
    ----------
    comparison, evaluation : ``evaluation.compare(bandwidth, interval)`` and the evaluation itself;
        its nuisances serve the report, too, and nothing is fitted twice but the calibration
    level, maximize : of all intervals; whether the outcome is a reward, unless the log says it
    bandwidth, interval : as the comparison was made
    settings, config : how to repeat the run: by name, and as a file
    truth : the true values of the policies, where they are known
    learned : of a learned policy, plain values: ``name`` in the comparison; ``deployed``, a bool;
        ``honest`` with ``value``, ``interval`` (at ``level``), ``verdict`` and ``against``
        (name → ``difference``, ``interval``); ``chosen``, ``because`` and ``decision``, texts;
        ``objection``, what speaks against a policy that was not deployed, a clause or None;
        ``candidates``, each with ``name``, ``behind`` and ``behind_se`` (its score on rows held
        out, less the chosen one's), ``weight`` (None of their average) and ``chosen``, a bool;
        ``outcome_models``
        (name → weight); ``choice`` with ``finding``, a line, and ``table``, the classes of rules
        that were compared, headings first. Other entries go into the JSON as they are
    rules : the policies as they are to be shown, where they were wrapped to be evaluated
    treatments, outcome : what the doses and the outcome are called, unless the log knows it
    title, labels, units : of the page; what columns are called on it; the units of doses and of the
        outcome, by their names in the log, besides those that it knows
    doubts : called with the evaluation and comparison of the policy that the page looks at most and
        the status quo, and the policy's name; returns ``sensitivity`` and ``stress``, each as its
        ``to_dict()`` says or None
    trade_offs : of several outcomes, of which this comparison is about the first:
        ``Outcomes.trade_offs()``
    protocol : of a study that was announced: ``hash``, and ``checklist`` with ``items``,
        ``topic``, ``told`` and ``by`` (whom) for each of its entries
    seed : draws the folds of the calibration, and rows for it where there are many
    progress : called with what is at work, the share of the time that is over, and 100
    """
    say = _silent if progress is None else progress
    both, whole = _with_status_quo(comparison, evaluation, interval)
    log, base, about = whole.log, _reference(whole), whole.source.about
    reward = about.direction(maximize, "report")
    names = _Names.of(about, treatments, log.dimension, labels, units)
    first = _focus(both, base, learned, maximize=reward)
    chosen = _drawn(both, base, first, maximize=reward)
    tau = {n: doses_of(p, log) for n, p in zip(whole.names, whole.policies, strict=True)}
    seen = {name: tau[name] for name in chosen}
    drawn = _Curves.of(whole, names.called, first, bandwidth, say)
    say("calibration", *CURVES_END)
    calibrated, calibration_checks = calibration(whole, seed)
    doubted = None
    if doubts is not None and first != base:
        say("what if we are wrong", *CALIBRATION_END)
        doubted = doubts(_only(whole, (first, base)), both.only([first, base]), first)
    say("who gets what", *CALIBRATION_END)
    return Report(
        comparison=both,
        status_quo=base,
        focus=first,
        drawn=chosen,
        log=_summary(whole, names, outcome or about.outcome, maximize=reward),
        description=_description(whole),
        level=level,
        maximize=reward,
        doses=_dose_counts(log, seen),
        dose_summaries=_dose_summaries(log, tau, names.called, base),
        curves=drawn.doses,
        curve_notes=drawn.notes,
        strengths=drawn.strengths,
        shifts=drawn.shifts,
        profiles=_profiles(log, seen, names.called, first),
        subgroups=subgroups(whole, both, (first, base), tau[first], level),
        overlap=_overlap(both, log, seen, names.called),
        weights=weights(whole, both, base),
        paths=paths(whole, chosen),
        calibration=calibrated,
        calibration_checks=calibration_checks,
        balance=balance(whole, both, chosen),
        rules=_rules(whole, rules or {}, names, {base, *chosen}),
        versions=_versions(),
        settings=settings or {},
        config=config,
        truth=truth,
        learned=learned,
        doubts=doubted,
        trade_offs=trade_offs,
        protocol=protocol,
        person=_person(whole, both, first, rules or {}),
        title=title,
        labels=names.labels,
        units=names.units,
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """What columns are called on a page, and their units."""

    treatments: Sequence[str]
    """The doses by their names in the log."""
    labels: Mapping[str, str]
    units: Mapping[str, str]

    @classmethod
    def of(
        cls,
        about: About,
        treatments: Sequence[str] | None,
        dimension: int,
        labels: Mapping[str, str] | None,
        units: Mapping[str, str] | None,
    ) -> _Names:
        """Return what a call says, and else the log."""
        columns = _treatment_names(treatments or about.treatments or None, dimension)
        return cls(columns, labels or {}, {**about.units, **(units or {})})

    @property
    def called(self) -> list[str]:
        """What the doses are called."""
        return [self.labels.get(name, name) for name in self.treatments]


@dataclass(frozen=True, slots=True)
class _Curves:
    """Values over doses, over the strength of a rule and over a change of every dose."""

    doses: Mapping[str, Curve]
    notes: tuple[str, ...]
    strengths: Curve | None
    shifts: Curve | None

    @classmethod
    def of(
        cls,
        whole: Evaluation,
        treatments: Sequence[str],
        focus: str,
        bandwidth: BandwidthSelector | ArrayLike | None,
        say: Callable[[str, int, int], None],
    ) -> _Curves:
        """Return what the log answers of them."""
        say("value over dose", *CURVES_BEGIN)
        found, notes = curves(whole, treatments, bandwidth)
        say("value over the strength of the rule", *STRENGTHS_BEGIN)
        return cls(found, notes, strengths(whole, focus, bandwidth), shifts(whole, bandwidth))


def _only(whole: Evaluation, names: Sequence[str]) -> Evaluation:
    """Return the evaluation of some of its policies."""
    return whole.with_policies({name: whole.policies[whole.names.index(name)] for name in names})


def _silent(_: str, __: int, ___: int) -> None:
    """Report progress to nobody."""


def _rules(
    whole: Evaluation,
    as_written: Mapping[str, Policy],
    names: _Names,
    wanted: set[str],
) -> tuple[Rule, ...]:
    sd, label = whole.survey.contexts.spread, partial(called, labels=names.labels)
    return tuple(
        rule(name, as_written.get(name, policy), names.called, whole.log, sd=sd, called=label)
        for name, policy in zip(whole.names, whole.policies, strict=True)
        if name in wanted
    )


def _person(
    whole: Evaluation, comparison: Comparison, focus: str, as_written: Mapping[str, Policy]
) -> dict[str, Any] | None:
    """Return what doses one person by the focus."""
    policy = as_written.get(focus, whole.policies[whole.names.index(focus)])
    if not policy.is_rule:
        return None
    reach = _bandwidth_of(comparison, focus, 0) or 0.5 * float(whole.log.doses[:, 0].std())
    return person(policy, whole.log, reach)


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "scikit-learn")
    found = {name: version(name) for name in packages}
    return {"titrant": __version__, "Python": python_version(), **found}


# The log and the doses of policies beside it, counted.


def _summary(
    whole: Evaluation, names: _Names, outcome: str | None, *, maximize: bool
) -> LogSummary:
    """Return the log in a few words."""
    survey = whole.survey
    result = outcome or ("reward" if maximize else "loss")
    return LogSummary(
        rows=survey.n,
        text=repr(whole.source)
        .partition("(")[2]
        .removesuffix(")")
        .replace("; no propensity", "; no propensity column"),
        contexts=len(whole.source.names),
        treatments=tuple(names.called),
        outcome=names.labels.get(result, result),
        units=tuple(names.units.get(name, "") for name in names.treatments),
        outcome_unit=names.units.get(result, ""),
        flow=whole.log.flow,
        sample=None if survey.sample.whole else len(survey.sample.log),
    )


def _description(whole: Evaluation) -> Description:
    """Return what is in the log; of many contexts the main ones."""
    found = Description.of(whole.survey)
    many = len(found.contexts) > MOST_COLUMNS
    return found.main_contexts(MAIN_COLUMNS) if many else found


def _treatment_names(given: Sequence[str] | None, dimension: int) -> list[str]:
    """Return what the doses are called."""
    if given is None:
        return ["dose"] if dimension == 1 else [f"dose {j + 1}" for j in range(dimension)]
    if len(given) != dimension:
        raise InvalidArgument(
            f"The log has {dimension} treatment(s), but {len(given)} name(s) for them were given."
        )
    return list(given)


def _dose_counts(log: LoggedData, tau: Mapping[str, Array]) -> tuple[DoseCounts, ...]:
    """Return how often each dose was logged and would be given, for each treatment."""
    return tuple(
        counting.dose_counts(log.doses[:, j], {name: t[:, j] for name, t in tau.items()})
        for j in range(min(DOSES, log.dimension))
    )


def _dose_summaries(
    log: LoggedData, tau: Mapping[str, Array], treatments: Sequence[str], reference: str
) -> tuple[DoseSummary, ...]:
    """Return mean and spread of each dose as logged and under each policy."""
    rows = {LOGGED: log.doses} | {name: t for name, t in tau.items() if name != reference}
    return tuple(
        counting.dose_summary(name, treatment, t[:, j], log.doses[:, j])
        for j, treatment in enumerate(treatments)
        for name, t in rows.items()
    )


def _profiles(
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


def _overlap(
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


def _with_status_quo(
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


def _reference(whole: Evaluation) -> str:
    """Return the name of the status quo."""
    pairs = zip(whole.names, whole.policies, strict=True)
    return next(name for name, policy in pairs if is_exactly(policy, StatusQuo))


def _focus(
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


def _drawn(
    comparison: Comparison, reference: str, focus: str, *, maximize: bool
) -> tuple[str, ...]:
    """Return the focus and the best others, in the order of the comparison."""
    ranked = _ranked(comparison, reference, maximize=maximize)
    chosen = sorted(ranked, key=lambda name: name != focus)[:DRAWN]
    return tuple(name for name in comparison.names if name in chosen)


def _ranked(comparison: Comparison, reference: str, *, maximize: bool) -> list[str]:
    sign = -1.0 if maximize else 1.0
    others = [name for name in comparison.names if name != reference]
    return sorted(others, key=lambda name: sign * comparison[name].value)
