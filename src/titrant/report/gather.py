"""From a comparison to a report: the only part of this room that asks the library for numbers."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

from titrant import __version__
from titrant.report.content import Report
from titrant.report.estimates import balance, calibration, curves, paths, strengths, weights
from titrant.report.log import (
    dose_counts,
    dose_summaries,
    doses_of,
    drawn,
    focus,
    overlap,
    profiles,
    reference,
    summary,
    treatment_names,
    with_status_quo,
)
from titrant.report.rules import rule
from titrant.report.subgroups import subgroups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from titrant.bandwidth import BandwidthSelector
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.inference import IntervalMethod
    from titrant.policies import Policy
    from titrant.report.content import Rule


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
    maximize: bool = False,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    interval: IntervalMethod | None = None,
    settings: Mapping[str, object] | None = None,
    config: str | None = None,
    truth: Mapping[str, float] | None = None,
    learned: Mapping[str, Any] | None = None,
    rules: Mapping[str, Policy] | None = None,
    treatments: Sequence[str] | None = None,
    outcome: str | None = None,
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
    level, maximize : of all intervals; whether the outcome is a reward
    bandwidth, interval : as the comparison was made
    settings, config : how to repeat the run: by name, and as a file
    truth : the true values of the policies, where they are known
    learned : of a learned policy, plain values: ``name`` in the comparison; ``deployed``, a bool;
        ``honest`` with ``value``, ``interval`` (at ``level``), ``verdict`` and ``against``
        (name → ``difference``, ``interval``); ``chosen``, ``because`` and ``decision``, texts;
        ``objection``, what speaks against a policy that was not deployed, a clause or None;
        ``candidates``, each with
        ``name``, ``loss``, ``behind``, ``behind_se`` and ``weight``; ``outcome_models``
        (name → weight). Other entries go into the JSON as they are
    rules : the policies as they are to be shown, where they were wrapped to be evaluated
    treatments, outcome : what the doses and the outcome are called
    seed : draws the folds of the calibration, and rows for it where there are many
    progress : called with what is at work, the share of the time that is over, and 100
    """
    say = _silent if progress is None else progress
    both, whole = with_status_quo(comparison, evaluation, interval)
    log, base = whole.log, reference(whole)
    named = treatment_names(treatments, log.dimension)
    first = focus(both, base, learned, maximize=maximize)
    chosen = drawn(both, base, first, maximize=maximize)
    tau = {n: doses_of(p, log) for n, p in zip(whole.names, whole.policies, strict=True)}
    seen = {name: tau[name] for name in chosen}
    say("value over dose", *CURVES_BEGIN)
    found_curves, curve_notes = curves(whole, named, bandwidth)
    say("value over the strength of the rule", *STRENGTHS_BEGIN)
    found_strengths = strengths(whole, first, bandwidth)
    say("calibration", *CURVES_END)
    calibrated, calibration_checks = calibration(whole, seed)
    say("who gets what", *CALIBRATION_END)
    return Report(
        comparison=both,
        status_quo=base,
        focus=first,
        drawn=chosen,
        log=summary(whole, named, outcome, maximize=maximize),
        level=level,
        maximize=maximize,
        doses=dose_counts(log, seen),
        dose_summaries=dose_summaries(log, tau, named, base),
        curves=found_curves,
        curve_notes=curve_notes,
        strengths=found_strengths,
        profiles=profiles(log, seen, named, first),
        subgroups=subgroups(whole, both, (first, base), tau[first], level),
        overlap=overlap(both, log, seen, named),
        weights=weights(whole, both, base),
        paths=paths(whole, chosen),
        calibration=calibrated,
        calibration_checks=calibration_checks,
        balance=balance(whole, both, chosen),
        rules=_rules(whole, rules or {}, named, {base, *chosen}),
        versions=_versions(),
        settings=settings or {},
        config=config,
        truth=truth,
        learned=learned,
    )


def _silent(_: str, __: int, ___: int) -> None:
    """Report progress to nobody."""


def _rules(
    whole: Evaluation,
    as_written: Mapping[str, Policy],
    treatments: Sequence[str],
    wanted: set[str],
) -> tuple[Rule, ...]:
    sd = whole.survey.contexts.spread
    return tuple(
        rule(name, as_written.get(name, policy), treatments, whole.source.names, sd)
        for name, policy in zip(whole.names, whole.policies, strict=True)
        if name in wanted
    )


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "scikit-learn")
    found = {name: version(name) for name in packages}
    return {"titrant": __version__, "Python": python_version(), **found}
