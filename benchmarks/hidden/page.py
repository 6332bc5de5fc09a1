"""Write the page about hidden causes from the records: `python -m benchmarks.hidden.page`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.hidden.designs import DESIGNS
from benchmarks.hidden.study import RECORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    Record = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "hidden.md"
TITLE = """\
# Causes that nobody recorded

How often bounds hold the truth when the log has a hidden cause. Measured by
`python -m benchmarks.hidden`, written by `python -m benchmarks.hidden.page`; the designs are in
`benchmarks/hidden/designs.py`. Logs have 1,000 rows, propensities and outcomes are estimated by the
default models, and bounds are asked for at the true strength Γ, of the value of one policy and of
its difference to another.

- *mild*: the hidden cause is 1 in half of the rows, more often where the dose is high; Γ is the
  least strength that holds for all doses, and outcomes have noise besides.
- *worst*: at the policy's doses the hidden cause is as strong as Γ allows and decides the residual
  alone. There the lower bound of the value *is* the truth: bounds without sampling error miss it in
  half of the logs, and their interval has nothing to spare.

*Estimate*: the share of 95 % intervals at Γ = 1 that hold the truth. *Bounds* and *interval*: those
at Γ. Shares are ± their Monte-Carlo standard error; widths are medians, in units of the outcome."""
FEWEST = 50
"""Logs of a design without which it has no row: a share of few logs says nothing."""
HEADINGS = (
    "design",
    "of",
    "logs",
    "bias at Γ = 1",
    "estimate",
    "bounds",
    "interval",
    "width of bounds",
    "width of interval",
    "median tipping Γ",
)


def main() -> None:
    PAGE.write_text(page(records_in(RECORDS)), encoding="utf-8")
    print(f"{PAGE.name} is written")


def page(records: Sequence[Record]) -> str:
    """Return the page."""
    done = [r for r in records if "failed" not in r]
    rows = [
        row(name, what, own)
        for name in DESIGNS
        if len(own := [r for r in done if r["design"] == name]) >= FEWEST
        for what in ("value", "difference")
    ]
    table = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    table += ["| " + " | ".join(cells) + " |" for cells in rows]
    parts = [TITLE, "\n".join(table), left_aside(done), *notes(done, len(records) - len(done))]
    return "\n\n".join(filter(None, parts)) + "\n"


def left_aside(records: Sequence[Record]) -> str:
    """Return which designs have too few logs for a row."""
    logs = {name: sum(r["design"] == name for r in records) for name in DESIGNS}
    few = [f"*{name}* ({n})" for name, n in logs.items() if 0 < n < FEWEST]
    return f"Not in the table, with fewer than {FEWEST} logs: {', '.join(few)}." if few else ""


def row(name: str, what: str, records: Sequence[Record]) -> list[str]:
    """Return what is found of one design, of a value or a difference."""
    own = [r[what] for r in records]
    truth = np.array([r["truth"] for r in own])
    bounds, interval, plain = (
        np.array([r[key] for r in own]) for key in ("bounds", "interval", "plain")
    )
    held = [(ends[:, 0] <= truth) & (truth <= ends[:, 1]) for ends in (plain, bounds, interval)]
    bias = np.mean([r["estimate"] for r in own] - truth)
    tips = [np.inf if r["tipping"][1] is None else r["tipping"][1] for r in own]
    tip = float(np.median(tips))
    return [
        name,
        what,
        f"{len(own)}",
        f"{bias:+.3f}",
        *map(share, held),
        f"{np.median(np.diff(bounds)):.2f}",
        f"{np.median(np.diff(interval)):.2f}",
        "over 20" if np.isinf(tip) else f"{tip:.2f}",
    ]


def share(held: np.ndarray) -> str:
    """Return a share with its Monte-Carlo standard error."""
    n, p = len(held), float(held.mean())
    return f"{p:.3f} ± {np.sqrt(max(p * (1 - p), 0.25 / n) / n):.3f}"


def notes(records: Sequence[Record], failed: int) -> list[str]:
    """Return what holds for all logs."""
    same = max(
        abs(r[what]["estimate"] - end)
        for r in records
        for what in ("value", "difference")
        for end in r[what]["at_one"]
    )
    ratio = np.median([r["cpu"][1] / r["cpu"][0] for r in records])
    nested = all(
        r[what]["tipping"][1] is not None and r[what]["tipping"][1] <= r[what]["tipping"][0]
        for r in records
        for what in ("value", "difference")
        if r[what]["tipping"][0] is not None
    )
    left_out = [r["gamma"] for r in records if r["design"] == "a context left out"]
    tips = "all of them" if nested else "not all of them"
    exact = (
        f"At Γ = 1 both bounds are the estimate: the largest difference is {same:.1g}, in all "
        f"{len(records)} logs. The interval tips no later than the bound in {tips}."
    )
    cost = (
        "All bounds of a log, at thirteen strengths up and down, with intervals and tipping "
        f"points, take {ratio:.2f} times the CPU time of its evaluation (median)."
    )
    found = [exact, cost]
    if len(left_out) >= FEWEST:
        low, high = np.quantile(left_out, [0.1, 0.9])
        found.append(
            "*A context left out*: a normal context with a say in dose and outcome is recorded and "
            "left out. Its ratio has no limit; Γ is the benchmark that the recorded log gives for "
            f"it, {np.median(left_out):.2f} (median; "
            f"80 % lie between {low:.2f} and {high:.2f})."
        )
    if failed:
        found.append(f"{failed} logs failed.")
    return found


if __name__ == "__main__":
    main()
