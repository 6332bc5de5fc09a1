"""Write the page about these questions from the records: `python -m benchmarks.questions.page`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.questions.designs import DESIGNS, FUNCTIONALS, Elsewhere, Parts, Risk
from benchmarks.questions.study import DEFAULT, KNOWN, RECORDS, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Array = np.ndarray
    Record = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "questions.md"
TITLE = """\
# Parts, other populations and risk: how often intervals hold

Measured by `python -m benchmarks.questions`, written by `python -m benchmarks.questions.page`; the
designs are in `benchmarks/questions/designs.py`, and their truths are known in closed form. The
*default call* is told nothing of the propensities. *Weights alone* is `SelfNormalized()` with known
propensities. Shares are of 95 % intervals, over all logs, trusted or not, ± their Monte-Carlo
standard error; bias is in units of the outcome."""
PARTS = """\
## In parts of a log

[`subgroups`](../how-to/for-whom.md): the difference of a policy to the status quo, in parts that a
context cuts. *One part* is the share of parts whose own interval holds the truth, *all at once* the
share of logs in which the simultaneous intervals hold it in all parts. *Found different* is the
share of logs in which the test of equality has p < .05: false alarms where the parts are alike,
power where they are not."""
ELSEWHERE = """\
## In another population

[`weights_to=`](../how-to/for-whom.md): contexts have mean 0 in the log, .5 and .3 in the other
population, in standard deviations. The table of the other population is taken for the population
itself; *beyond* is the share that holds the value in the population from which its 1,000 rows were
drawn, which the interval does not claim to do. *SE over spread* is the mean standard error, divided
by the standard deviation of the errors."""
RISK = """\
## Beyond the mean

[`functional=`](../how-to/several-outcomes-and-risk.md): thresholds, quantiles and tails of the
outcome under a policy. Shares that hold the truth, with the bias in parentheses."""


def page(records: Sequence[Record]) -> str:
    """Return the page made of some records."""
    whole = [r for r in records if "failed" not in r]
    told = "\n".join(
        f"- *{name}*: {design.about}; {design.rows:,} rows, {_count(whole, name)} logs."
        for name, design in DESIGNS.items()
    )
    failed = len(records) - len(whole)
    parts = [TITLE, told, *([f"{failed} logs could not be evaluated."] if failed else [])]
    for heading, kind, table in (
        (PARTS, Parts, _parts),
        (ELSEWHERE, Elsewhere, _elsewhere),
        (RISK, Risk, _risk),
    ):
        names = [name for name, design in DESIGNS.items() if isinstance(design, kind)]
        own = {name: [r for r in whole if r["design"] == name] for name in names}
        lines = [line for name, some in own.items() if some for line in table(name, some)]
        headings = _HEADINGS[kind]
        rule = "|" + "---|" * (headings.count("|") - 1)
        parts += [heading, "\n".join([headings, rule, *lines])]
    return "\n\n".join(parts) + "\n"


_HEADINGS = {
    Parts: "| design | call | bias | one part | all at once | found different |",
    Elsewhere: "| call | bias | holds the truth | beyond | SE over spread |",
    Risk: f"| call | {' | '.join(f'`{name}`' for name in FUNCTIONALS)} |",
}


def _count(records: Sequence[Record], name: str) -> int:
    return sum(r["design"] == name for r in records)


def _parts(name: str, records: Sequence[Record]) -> Iterator[str]:
    truth = np.array([r["truth"] for r in records])
    for how in (DEFAULT, KNOWN):
        own = [r[how] for r in records]
        one, every = (_held(np.array([r[key] for r in own]), truth) for key in ("ends", "at_once"))
        p = np.array([r["p"] for r in own])
        bias = np.mean(np.array([r["value"] for r in own]) - truth)
        # Parts of one log are not independent: the error is that of the logs' shares.
        cells = [f"{bias:+.3f}", _rate(one.mean(axis=1)), _rate(every.all(axis=1)), _rate(p < 0.05)]
        yield f"| {name} | {how} | {' | '.join(cells)} |"


def _elsewhere(_: str, records: Sequence[Record]) -> Iterator[str]:
    truth, beyond = (np.array([r[key] for r in records]) for key in ("truth", "beyond"))
    for call in (key for key in records[0] if isinstance(records[0][key], dict)):
        own = [r[call] for r in records]
        error = np.array([e["value"] for e in own]) - truth
        ends = np.array([e["ends"] for e in own])
        ratio = np.mean([e["se"] for e in own]) / error.std()
        shares = [_rate(_held(ends, aim)) for aim in (truth, beyond)]
        yield f"| {call} | {error.mean():+.3f} | {' | '.join(shares)} | {ratio:.2f} |"


def _risk(_: str, records: Sequence[Record]) -> Iterator[str]:
    for how in SETTINGS:
        cells = []
        for name in FUNCTIONALS:
            own, truth = [r[how][name] for r in records], records[0]["truth"][name]
            held = _held(np.array([e["ends"] for e in own]), np.array(truth))
            bias = np.mean([e["value"] - truth for e in own])
            cells.append(f"{_rate(held)} ({bias:+.3f})")
        yield f"| {how} | {' | '.join(cells)} |"


def _held(ends: Array, truth: Array) -> Array:
    """Return where intervals (…, 2) hold the truth (…)."""
    return np.asarray((ends[..., 0] <= truth) & (truth <= ends[..., 1]))


def _rate(hits: Array) -> str:
    """Return the mean of shares, one a log, with its Monte-Carlo standard error."""
    n, mean = len(hits), float(np.mean(hits))
    error = np.sqrt(max(float(np.var(hits)), 0.25 / n) / n)
    return f"{mean:.3f} ± {error:.3f}"


def main() -> None:
    PAGE.write_text(page(records_in(RECORDS)), encoding="utf-8")


if __name__ == "__main__":
    main()
