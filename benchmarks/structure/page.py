"""Write the page about structure from the records: `python -m benchmarks.structure.page`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.structure.designs import DESIGNS, GROUPS
from benchmarks.structure.study import RECORDS, VERSIONS
from titrant.inference.trust.rules import EVEN_WANTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Array = np.ndarray
    Record = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "structure.md"
TITLE = """\
# Rows and doses with a structure of their own

Rows that belong together, that were drawn with unequal chances, that have no outcome, or of which
many have exactly one dose: what the default call does when it knows, and what happens if it does
not. Measured by `python -m benchmarks.structure`, written by
`python -m benchmarks.structure.page`; the designs are in `benchmarks/structure/designs.py`. All
have confounding that is not linear, and 1,000 rows.

*With* is the default call; *without* the same log, nothing said of its structure. Coverage is that
of the 95 % interval over all estimates, ± its Monte-Carlo standard error; bias and width are in
units of the outcome; *ok* is the share of logs with that verdict, *refused* that of estimates
which are given on request only (`allow_untrusted=True`), and which count here all the same."""
NOTES = {
    "Rows that belong together": """\
With is `groups=`; without, rows count as independent.""",
    "Rows drawn with unequal chances": """\
With is `weights=`; without, rows count alike.""",
    "Outcomes that are missing": """\
With is `missing_outcome="weight"`; without, rows that have no outcome are dropped.""",
    "Doses with point masses": """\
Without is `atoms=()`: one density for all doses. The outcome model of the default call follows
these designs well, and then both versions hold: exact weights buy safety, not width. Without, the
value of the dose 0 is nearly always refused and no other verdict of that design is ok, nor is one
at the cap. Where all doses are levels, the value that is smoothed over them is as good here and
mostly narrower; it rests on outcomes that change little from one level to the next, which exact
weights do not need. A dose *between* list prices
(9.5, 37 mg) is read off its neighbors either way, and with the remedy always warned of.""",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What one version says about one policy, over logs."""

    error: Array
    covered: Array
    width: Array
    verdicts: Sequence[str]

    @classmethod
    def of(cls, records: Sequence[Record], version: str, place: int) -> Found:
        """Return what is found of records that have an estimate."""
        kept = [r for r in records if r[version]["value"][place] is not None]
        own = {name: np.array([r[version][name][place] for r in kept]) for name in _NUMBERS}
        truth = np.array([r["truth"][place] for r in kept])
        return cls(
            own["value"] - truth,
            (own["low"] <= truth) & (truth <= own["high"]),
            own["high"] - own["low"],
            [r[version]["verdict"][place] for r in records],
        )

    def cells(self) -> list[str]:
        """Return bias, coverage, width and the shares of verdicts."""
        c = float(self.covered.mean())
        error = np.sqrt(max(c * (1.0 - c), 0.25 / len(self.covered)) / len(self.covered))
        ok, refused = (self.verdicts.count(v) / len(self.verdicts) for v in ("ok", "refuse"))
        return [
            f"{self.error.mean():+.3f}",
            f"{c:.3f} ± {error:.3f}",
            f"{np.median(self.width):.2f}",
            f"{ok:.2f}",
            f"{refused:.2f}",
        ]


_NUMBERS = ("value", "low", "high")
BAND = (0.92, 0.98)
"""What intervals of 95 % should cover."""
COPIED = "four copies"


def page(records: Sequence[Record]) -> str:
    """Return the page made of some records."""
    failed = [r for r in records if "failed" in r]
    whole = [r for r in records if "failed" not in r]
    parts = [TITLE, f"{len(whole):,} logs; {len(failed)} could not be evaluated.", in_band(whole)]
    for heading, names in GROUPS.items():
        parts += [f"## {heading}", *([NOTES[heading]] if heading in NOTES else [])]
        parts.append("\n".join(f"- *{name}*: {DESIGNS[name].about}." for name in names))
        own = [r for r in whole if r["design"] in names]
        parts.append("\n".join(_table(own, names)))
        parts += [said(own) for said in SAID.get(heading, ()) if own]
    return "\n\n".join(parts) + "\n"


def in_band(records: Sequence[Record]) -> str:
    """Return how many rows of the tables cover about what they say, with the remedy."""
    rates = []
    for names in GROUPS.values():
        for name in names:
            own = [r for r in records if r["design"] == name]
            places = range(len(DESIGNS[name].policies) if own else 0)
            rates += [float(Found.of(own, "with", i).covered.mean()) for i in places]
    below, above = sum(c < BAND[0] for c in rates), sum(c > BAND[1] for c in rates)
    return (
        f"With the remedy, {len(rates) - below - above} of {len(rates)} rows cover between "
        f"{BAND[0]:.2f} and {BAND[1]:.2f}, {below} less and {above} more."
    )


def _copies(records: Sequence[Record]) -> str:
    """Return how much wider intervals are that know of copies."""
    own = [r for r in records if r["design"] == COPIED]
    wider, off = [], []
    for place in range(len(DESIGNS[COPIED].policies)):
        known, taken = (Found.of(own, version, place) for version in VERSIONS)
        wider.append(f"{np.median(known.width) / np.median(taken.width):.2f}")
        off.append(f"{taken.error.mean():+.2f}")
    return (
        f"Of *{COPIED}*, intervals with `groups=` are {', '.join(wider)} times as wide as without. "
        "Where propensities and bandwidth are given, they are twice as wide, as a test holds them "
        "to (1.8 times at least). Here widths do not compare: without groups, models have seen "
        f"copies of the rows that they judge, and values are off by {', '.join(off)}."
    )


def _uneven(records: Sequence[Record]) -> str:
    """Return why estimates from weighted rows are warned of."""
    verdicts = [v for r in records for v in r["with"]["verdict"]]
    checks = [c for r in records for c in r["with"]["checks"]]
    warned = [c for v, c in zip(verdicts, checks, strict=True) if v == "warn"]
    by_weights = sum("row_weights" in c for c in warned)
    alone = sum(c == ["row_weights"] for c in warned)
    return (
        f"With weights {len(warned)} of {len(verdicts)} estimates are warned of, {by_weights} of "
        f"them by `row_weights` ({alone} by nothing else): these weights make 1,000 rows worth "
        f"less than {EVEN_WANTED:.0%} of as many that count alike."
    )


def _table(records: Sequence[Record], names: Sequence[str]) -> Iterator[str]:
    columns = ("bias", "coverage", "width", "ok", "refused")
    heads = [f"{column}, {version}" for version in VERSIONS for column in columns]
    yield "| design | policy | logs | " + " | ".join(heads) + " |"
    yield "|---|---|" + "---|" * (1 + len(heads))
    for name in names:
        own = [r for r in records if r["design"] == name]
        for place, policy in enumerate(DESIGNS[name].policies if own else ()):
            cells = [c for version in VERSIONS for c in Found.of(own, version, place).cells()]
            yield f"| {name} | {policy} | {len(own)} | " + " | ".join(cells) + " |"


SAID = {
    "Rows that belong together": (_copies,),
    "Rows drawn with unequal chances": (_uneven,),
}
"""What follows from a table."""


def main() -> None:
    PAGE.write_text(page(records_in(RECORDS)), encoding="utf-8")


if __name__ == "__main__":
    main()
