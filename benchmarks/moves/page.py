"""Write the page about changed doses from the records: `python -m benchmarks.moves.page`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.moves.designs import DESIGNS
from benchmarks.moves.study import RECORDS, REFERENCE, SIZES
from titrant.inference.trust.rules import RATIO_GAP_SD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Array = np.ndarray
    Record = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "moves.md"
TITLE = """\
# Doses that are shifted or multiplied

[Policies that change the logged dose](../how-to/change-the-dose.md) are weighted by ratios of
densities, which the default call has to learn. How often do their intervals cover? Measured by
`python -m benchmarks.moves`, written by `python -m benchmarks.moves.page`; the designs are in
`benchmarks/moves/designs.py`. All have two contexts and confounding that is not linear, and nothing
is told of the propensities.

Coverage is that of the 95 % interval of the value, and of the paired difference to the status quo,
± its Monte-Carlo standard error, over all logs, trusted or not. Bias and the median standard error
are in units of the outcome; *ok* is the share of logs with that verdict. The last row of each
design is one dose for everyone, which takes a kernel, for comparison."""
CONSTANT = "constant"
BAND = (0.93, 0.97)
"""What intervals of 95 % should cover."""
FORMER = f"""\
The verdicts were given when `outcome_model_gap` warned of a gap of 0.05 sd. Today it must be
{RATIO_GAP_SD:g}, so that the logs of *hours* would be warned of less often."""


def page(records: Sequence[Record]) -> str:
    """Return the page made of some records."""
    failed = [r for r in records if "failed" in r]
    whole = [r for r in records if "failed" not in r]
    told = "\n".join(f"- *{name}*: {design.about}." for name, design in DESIGNS.items())
    parts = [TITLE, told, f"{len(whole):,} logs; {len(failed)} could not be evaluated."]
    parts += [in_band(whole), FORMER] if whole else []
    for n in SIZES:
        own = [r for r in whole if r["n"] == n]
        if own:
            parts += [f"## {n:,} rows", "\n".join(_table(own)), _summary(own)]
    return "\n\n".join(parts) + "\n"


def in_band(records: Sequence[Record]) -> str:
    """Return how many changes have intervals that cover about what they say."""
    values, differences = [], []
    for n in SIZES:
        for name, design in DESIGNS.items():
            own = [r for r in records if r["design"] == name and r["n"] == n]
            for policy in design.moves if own else ():
                values.append(covered(own, list(design.policies).index(policy)).mean())
                differences.append(difference_covered(own, name, policy).mean())
    outside = [sum(not BAND[0] <= c <= BAND[1] for c in some) for some in (values, differences)]
    ends = [f"{min(some):.3f} to {max(some):.3f}" for some in (values, differences)]
    return (
        f"Of {len(values)} values of changed doses, {outside[0]} are covered outside "
        f"[{BAND[0]:.2f}, {BAND[1]:.2f}] ({ends[0]}), of as many differences {outside[1]} "
        f"({ends[1]})."
    )


def _table(records: Sequence[Record]) -> Iterator[str]:
    yield "| design | policy | logs | bias | median SE | coverage | of the difference | ok |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, design in DESIGNS.items():
        own = [r for r in records if r["design"] == name]
        order = list(design.policies)
        for policy in (*design.moves, CONSTANT) if own else ():
            i = order.index(policy)
            value, se, truth = (np.array([r[k][i] for r in own]) for k in ("value", "se", "truth"))
            verdicts = [r["verdict"][i] for r in own]
            cells = [
                f"{np.mean(value - truth):+.3f}",
                f"{np.median(se):.3f}",
                _rate(covered(own, i)),
                _difference(own, name, policy),
                f"{verdicts.count('ok') / len(own):.2f}",
            ]
            yield f"| {name} | {policy} | {len(own)} | {' | '.join(cells)} |"


def covered(records: Sequence[Record], i: int) -> Array:
    """Return in which logs the interval of policy i holds the truth."""
    return np.array([r["low"][i] <= r["truth"][i] <= r["high"][i] for r in records])


def difference_covered(records: Sequence[Record], design: str, policy: str) -> Array:
    """Return in which logs the interval of the difference to the status quo holds the truth."""
    order, j = list(DESIGNS[design].policies), list(DESIGNS[design].moves).index(policy)
    i, quo = order.index(policy), order.index(REFERENCE)
    return np.array(
        [
            r["difference_low"][j] <= r["truth"][i] - r["truth"][quo] <= r["difference_high"][j]
            for r in records
        ]
    )


def _difference(records: Sequence[Record], design: str, policy: str) -> str:
    if policy == CONSTANT:
        return "–"
    return _rate(difference_covered(records, design, policy))


def _rate(hits: Array) -> str:
    c = float(hits.mean())
    return f"{c:.3f} ± {np.sqrt(max(c * (1.0 - c), 0.25 / len(hits)) / len(hits)):.3f}"


def _summary(records: Sequence[Record]) -> str:
    """Return the coverage of all moves of these logs together, and of those that are ok."""
    each, fine, paired = [], [], []
    for name, design in DESIGNS.items():
        own = [r for r in records if r["design"] == name]
        for policy in design.moves if own else ():
            i = list(design.policies).index(policy)
            each.append(covered(own, i))
            fine.append(np.array([r["verdict"][i] == "ok" for r in own]))
            paired.append(difference_covered(own, name, policy))
    hits, ok = np.concatenate(each), np.concatenate(fine)
    sure = f"{hits[ok].mean():.3f} ({int(ok.sum()):,} estimates)" if ok.any() else "none"
    return (
        f"All changes together cover {hits.mean():.3f}, their differences "
        f"{np.concatenate(paired).mean():.3f}; of estimates with the verdict ok {sure}."
    )


def main() -> None:
    PAGE.write_text(page(records_in(RECORDS)), encoding="utf-8")


if __name__ == "__main__":
    main()
