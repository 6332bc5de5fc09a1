"""Results as tables for people."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from titrant.cli.phrases import as_typed
from titrant.cli.terminal import note, visible
from titrant.inference import Verdict
from titrant.report.numbers import number, percent, told
from titrant.report.rules import linear_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from titrant.evaluation import Comparison, Contrast, Estimate
    from titrant.inference import Check, Diagnostics
    from titrant.policies import Linear, Policy

_COLORS = {"ok": "green", "warn": "yellow", "refuse": "red"}


def values(
    estimates: Mapping[str, Estimate],
    level: float,
    truth: Mapping[str, float] | None = None,
    refused: Iterable[str] = (),
) -> Table:
    """Return the values of policies with their intervals, bandwidths and verdicts.

    Policies that are refused have a row, but no number in it.
    """
    rows = next(iter(estimates.values())).rows
    headings = ["policy", "value", f"{percent(level)} CI", "h", f"ESS of {rows:,}", "verdict"]
    table = _table([*headings, *(["truth"] if truth else [])])
    for name, estimate in estimates.items():
        known = [number(truth[name])] if truth else []
        _add(table, *_cells(name, estimate, level), *known)
    for name in refused:
        _add(table, name, *["–"] * 4, Verdict.REFUSE.value)
    return table


def refusals(refused: Mapping[str, str]) -> list[str]:
    """Return a sentence about each policy that has no estimate."""
    return [
        f"Refused ({name}, and every difference to it): {as_typed(reason)}"
        for name, reason in refused.items()
    ]


def differences(
    comparison: Comparison,
    level: float,
    *,
    maximize: bool,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Table:
    """Return the paired difference of each pair of policies, and which is better if it is clear."""
    table = _table(["difference", "value", f"{percent(level)} CI", "better"])
    for a, b in combinations(comparison.estimates, 2) if pairs is None else pairs:
        contrast = comparison.contrast(a, b)
        better = _better(contrast, level, maximize=maximize)
        _add(table, f"{a} − {b}", *told(contrast.difference, contrast.interval(level)), better)
    return table


def coefficients(learned: Policy, truth: Linear) -> Table:
    """Return the coefficients of a learned linear rule beside those of the best one."""
    found = linear_part(learned)
    table = _table(["rule: dose =", "learned", "truth"])
    if found is None or found.coef is None or truth.coef is None:
        return table
    _add(table, "intercept", number(float(found.intercept)), number(float(truth.intercept)))
    for name, ours, theirs in zip(truth.features or (), found.coef, truth.coef, strict=True):
        _add(table, f"per unit of {name}", number(float(ours)), number(float(theirs)))
    return table


def candidates(found: Sequence[Mapping[str, Any]], *, maximize: bool) -> Table:
    """Return what a learned policy was chosen from, with values on rows held out."""
    value = "held-out reward" if maximize else "held-out loss"
    table = _table(["candidate", value, "behind the best", "SE", "weight"])
    for c in found:
        numbers = (-c["loss"] if maximize else c["loss"], c["behind"], c["behind_se"])
        _add(table, c["name"], *map(number, numbers), f"{c['weight']:.1%}")
    return table


def checks(report: Diagnostics) -> Table:
    """Return the checks of a trust report, each with its verdict and its sentence."""
    table = _table(["check", "verdict", "finding"])
    for check in report.checks:
        _add(table, check.name.replace("_", " "), check.verdict.value, as_typed(check.message))
    return table


def overlap(estimates: Mapping[str, Estimate]) -> Table:
    """Return how much of the log speaks about each policy."""
    rows = next(iter(estimates.values())).rows
    table = _table(["overlap", f"ESS of {rows:,}", "largest weight", "mean weight"])
    for name, estimate in estimates.items():
        checks = estimate.diagnostics
        largest, mean = checks["largest_weight_share"].value, checks["mean_weight"].value
        _add(table, name, f"{estimate.ess:,.0f}", f"{largest:.1%}", f"{mean:.3f}")
    return table


def reading(*, maximize: bool) -> str:
    """Return how values are to be read."""
    sense = "a reward, higher" if maximize else "a loss, lower"
    return f"Outcome: {sense} is better."


def cautions(estimates: Mapping[str, Estimate]) -> None:
    """Say on standard error what the trust checks object to and what was unusual."""
    for name, estimate in estimates.items():
        for verdict, word in ((Verdict.REFUSE, "Not to be trusted"), (Verdict.WARN, "Warning")):
            for message in estimate.diagnostics.messages(verdict):
                note(f"{word} ({name}): {as_typed(message)}")
        for remark in _remarks(estimate):
            note(f"Note ({name}): {remark}")


def bandwidth(estimate: Estimate) -> str:
    """Return the bandwidth of an estimate, of each dose if there are several."""
    if estimate.bandwidth is None:
        return "–"
    return ", ".join(number(h) for h in estimate.bandwidth.h.ravel().tolist())


def _remarks(estimate: Estimate) -> list[str]:
    """Return what was unusual: of the bandwidth, of the interval, of the checks themselves."""
    h, interval = estimate.bandwidth, estimate.confidence.note
    said = [f"bandwidth, {h.flag}"] if h is not None and h.flag else []
    said += [f"interval, {interval}"] if interval else []
    said += [check.message for check in estimate.diagnostics if _names_a_bin(check)]
    return [*said, *estimate.diagnostics.notes]


def _names_a_bin(check: Check) -> bool:
    """Whether a check says in which bin a dose fell, and is no caution that is said anyway."""
    return check.name == "dose_bin" and check.verdict is Verdict.OK


def _cells(name: str, estimate: Estimate, level: float) -> list[str]:
    verdict = estimate.diagnostics.verdict
    return [
        name,
        *told(estimate.value, estimate.interval(level)),
        bandwidth(estimate),
        f"{estimate.ess:,.0f}",
        verdict.value,
    ]


def _add(table: Table, name: str, *cells: str) -> None:
    """Add a row; texts are shown as they are, also those with brackets or control characters."""
    colored = (Text(visible(cell), style=_COLORS.get(cell, "")) for cell in cells)
    table.add_row(Text(visible(name)), *colored)


def _better(contrast: Contrast, level: float, *, maximize: bool) -> str:
    """Return the better policy, or that the interval leaves it open."""
    low, high = contrast.interval(level)
    if low <= 0 <= high:
        return "not clear"
    return contrast.a if (low > 0) is maximize else contrast.b


def _table(headings: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        words = place == 0 or heading in {"verdict", "better", "finding"}
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    return table
