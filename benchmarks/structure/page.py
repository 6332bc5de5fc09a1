"""Write the page about structure from the records: `python -m benchmarks.structure.page`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.structure.calibration import NEW, OUT
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
units of the outcome; *SE* is the mean of the printed standard errors as a share of the spread (sd)
of the estimates over logs, 1 where it says what it should; *ok* is the share of logs with that
verdict, *refused* that of estimates which are given on request only (`allow_untrusted=True`), and
which count here all the same."""
NOTES = {
    "Rows that belong together": """\
With is `groups=`; without, rows count as independent.""",
    "Rows drawn with unequal chances": """\
With is `weights=`; without, rows count alike.""",
    "Outcomes that are missing": """\
With is `missing_outcome="weight"`; without, rows that have no outcome are dropped.""",
    "Texts of many levels": """\
With is the text as a context; without, it is left out. Levels are equally frequent, have effects of
their own on outcomes, as large as the noise, and the doses follow these.""",
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
    se: Array
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
            own["se"],
            [r[version]["verdict"][place] for r in records],
        )

    @property
    def told(self) -> float:
        """The mean standard error as a share of the spread of the estimates."""
        return float(self.se.mean() / self.error.std(ddof=1))

    def cells(self) -> list[str]:
        """Return bias, coverage, width, standard error and the shares of verdicts."""
        c = float(self.covered.mean())
        error = np.sqrt(max(c * (1.0 - c), 0.25 / len(self.covered)) / len(self.covered))
        ok, refused = (self.verdicts.count(v) / len(self.verdicts) for v in ("ok", "refuse"))
        return [
            f"{self.error.mean():+.3f}",
            f"{c:.3f} ± {error:.3f}",
            f"{np.median(self.width):.2f}",
            f"{self.told:.2f}",
            f"{ok:.2f}",
            f"{refused:.2f}",
        ]


_NUMBERS = ("value", "se", "low", "high")
BAND = (0.92, 0.98)
"""What intervals of 95 % should cover."""
TOO_SMALL, MANY = 0.9, 100
"""A standard error below this share of the spread is named, where so many logs tell it."""
COPIED, OWN = "four copies", "rows of their own"
THIN = "a text of 400 levels"


def page(records: Sequence[Record]) -> str:
    """Return the page made of some records."""
    failed = [r for r in records if "failed" in r]
    whole = [r for r in records if "failed" not in r]
    parts = [TITLE, f"{len(whole):,} logs; {len(failed)} could not be evaluated.", in_band(whole)]
    parts.append(standard_errors(whole))
    for heading, names in GROUPS.items():
        parts += [f"## {heading}", *([NOTES[heading]] if heading in NOTES else [])]
        parts.append("\n".join(f"- *{name}*: {DESIGNS[name].about}." for name in names))
        own = [r for r in whole if r["design"] in names]
        parts.append("\n".join(_table(own, names)))
        parts += [said(own) for said in SAID.get(heading, ()) if own]
    return "\n\n".join(parts) + "\n"


def with_remedy(records: Sequence[Record]) -> Iterator[tuple[str, str, Found]]:
    """Yield what is found with the remedy of each design and policy."""
    for names in GROUPS.values():
        for name in names:
            own = [r for r in records if r["design"] == name]
            for place, policy in enumerate(DESIGNS[name].policies if own else ()):
                yield name, policy, Found.of(own, "with", place)


def in_band(records: Sequence[Record]) -> str:
    """Return how many rows of the tables cover about what they say, with the remedy."""
    rates = [float(found.covered.mean()) for _, _, found in with_remedy(records)]
    below, above = sum(c < BAND[0] for c in rates), sum(c > BAND[1] for c in rates)
    return (
        f"With the remedy, {len(rates) - below - above} of {len(rates)} rows cover between "
        f"{BAND[0]:.2f} and {BAND[1]:.2f}, {below} less and {above} more."
    )


def standard_errors(records: Sequence[Record]) -> str:
    """Return how far printed standard errors are from the spread of the estimates."""
    every = with_remedy(records)
    told = {(n, p): found.told for n, p, found in every if len(found.error) >= MANY}
    small = sorted((share, key) for key, share in told.items() if share < TOO_SMALL)
    named = ", ".join(f"{share:.2f} of it (*{name}*, {policy})" for share, (name, policy) in small)
    rest = [share for share in told.values() if share >= TOO_SMALL]
    return (
        "Printed standard errors are about the spread of the estimates, or a little less: with the "
        f"remedy, of designs with {MANY} logs or more, {named}; in the other {len(rest)} rows "
        f"{min(rest):.2f} to {max(rest):.2f}, {np.median(rest):.2f} in the middle (a share from "
        "300 logs is good to .04, one from 40 to .11). Intervals cover all the same: they allow "
        "for the bias of smoothing and go by Student's law, so they are wider than 1.96 standard "
        "errors on each side."
    )


def _copies(records: Sequence[Record]) -> str:
    """Return how much wider intervals are that know of copies."""
    own = [r for r in records if r["design"] == COPIED]
    single = [r for r in records if r["design"] == OWN]
    wider, honest, off = [], [], []
    for place in range(len(DESIGNS[COPIED].policies)):
        known, taken = (Found.of(own, version, place) for version in VERSIONS)
        apart = Found.of(single, "with", place)
        wider.append(f"{np.median(known.width) / np.median(taken.width):.2f}")
        honest.append(f"{np.median(known.width) / np.median(apart.width):.2f}")
        off.append(f"{taken.error.mean():+.2f}")
    return (
        f"Of *{COPIED}*, intervals with `groups=` are {', '.join(honest)} times as wide as those "
        f"of as many *{OWN}*, which is what copies pass for: a row that is there four times is "
        f"worth one, and √4 is 2. Against the same log without groups they are {', '.join(wider)} "
        "times as wide, which compares nothing: there models have seen copies of the rows that "
        f"they judge, and values are off by {', '.join(off)}."
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
    columns = ("bias", "coverage", "width", "SE", "ok", "refused")
    heads = [f"{column}, {version}" for version in VERSIONS for column in columns]
    yield "| design | policy | logs | " + " | ".join(heads) + " |"
    yield "|---|---|" + "---|" * (1 + len(heads))
    for name in names:
        own = [r for r in records if r["design"] == name]
        for place, policy in enumerate(DESIGNS[name].policies if own else ()):
            cells = [c for version in VERSIONS for c in Found.of(own, version, place).cells()]
            yield f"| {name} | {policy} | {len(own)} | " + " | ".join(cells) + " |"


def _thin(records: Sequence[Record]) -> str:
    """Return what is left of the confounding where a level has few rows."""
    own = [r for r in records if r["design"] == THIN]
    places = [Found.of(own, "with", i) for i in range(len(DESIGNS[THIN].policies))]
    bare = [Found.of(own, "without", i) for i in range(len(DESIGNS[THIN].policies))]
    covered = [float(found.covered.mean()) for found in places]
    worst = int(np.argmin(covered))
    left = places[worst].error.mean() / bare[worst].error.mean()
    verdicts = [v for found in places for v in found.verdicts]
    seen = sum("left_in_levels" in checks for r in own for checks in r["with"]["checks"])
    return (
        f"**Two or three rows a level are too few.** Of *{THIN}*, intervals with the column cover "
        f"{min(covered):.2f} to {max(covered):.2f}: {left:.0%} of the bias that the column should "
        f"remove is left at worst. `left_in_levels` warns of {seen / len(verdicts):.0%} of these "
        "estimates: what models leave of doses and outcomes still goes together within levels. "
        "Join levels before (regions of postal codes, groups of products), or give as columns what "
        "makes them differ."
    )


def _calibration(_: Sequence[Record]) -> str:
    """Return how well the probabilities of point masses are calibrated."""
    measured = json.loads(OUT.read_text(encoding="utf-8"))
    lines = []
    for name, logs in measured["slopes"].items():
        flat = np.concatenate(logs)
        low, high = np.quantile(flat, [0.1, 0.9])
        lines.append(f"| {name} | {len(flat)} | {flat.mean():.2f} | {low:.2f} | {high:.2f} |")
    said = (
        "The probabilities P(T = a | x) behind the weights are estimated. Their calibration is the "
        f"slope of whether a dose is a on its probability, in {NEW:,} new rows: 1 is calibrated, "
        "less than 1 says that probabilities vary more than they should, more than 1 that they "
        f"follow the contexts too little. Of {measured['logs']} logs of 1,000 rows a design, over "
        "its point masses (`python -m benchmarks.structure.calibration`):"
    )
    head = ["| design | slopes | mean | 10 % | 90 % |", "|---|---|---|---|---|"]
    return "\n".join([said, "", *head, *lines])


SAID = {
    "Rows that belong together": (_copies,),
    "Texts of many levels": (_thin,),
    "Doses with point masses": (_calibration,),
    "Rows drawn with unequal chances": (_uneven,),
}
"""What follows from a table."""


def main() -> None:
    PAGE.write_text(page(records_in(RECORDS)), encoding="utf-8")


if __name__ == "__main__":
    main()
