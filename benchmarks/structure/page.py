"""Write the page about structure from the records: `python -m benchmarks.structure.page`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from benchmarks.confounding.page import table, trade
from benchmarks.confounding.records import records_in
from benchmarks.confounding.study import RECORDS as CONFOUNDING
from benchmarks.structure.calibration import NEW, OUT
from benchmarks.structure.designs import DESIGNS, GROUPS, POINT_MASSES
from benchmarks.structure.study import RECORDS, VERSIONS
from benchmarks.widths import (
    FACTOR_HEADS,
    FACTORS,
    NORMAL,
    STRUCTURED,
    Steps,
    factor_table,
    geometric_mean,
    told_and_off,
)
from benchmarks.widths import RECORDS as WIDTHS
from titrant.inference.trust.rules import EVEN_WANTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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

WIDTHS_READ = """\
With the remedy. *SE/spread* is as above, a mean over policies; *RMS bias/SE* is the mean error
of a policy in standard errors, squared less what chance adds and averaged over policies: whether
the SE itself is right. *A normal law* is how often intervals of that width would cover errors of
that spread, normal and without bias. The policies of designs with point masses stand together: a
value *at point masses* is not smoothed and its interval is hardly wider than 1.96 SE."""


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

    @property
    def normal_coverage(self) -> float:
        """How often intervals so wide would cover if errors were normal, without bias."""
        return float(2.0 * ndtr(self.width.mean() / 2 / self.error.std(ddof=1)) - 1.0)

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
MISSING = "outcomes missing"
AT_MASSES, AT_ONE, AT_NONE = "at point masses", "at a point mass or not, by context", "at none"


def page(records: Sequence[Record], made_again: Sequence[Record], others: Sequence[Record]) -> str:
    """Return the page of the records, of those of `benchmarks.widths` and those of confounding."""
    failed = [r for r in records if "failed" in r]
    whole = [r for r in records if "failed" not in r]
    parts = [TITLE, f"{len(whole):,} logs; {len(failed)} could not be evaluated.", in_band(whole)]
    parts += [standard_errors(whole), widths(whole, made_again, others)]
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


def widths(
    records: Sequence[Record], made_again: Sequence[Record], others: Sequence[Record]
) -> str:
    """Return what the widths of intervals with the remedy are made of, and what they cost."""
    kinds: dict[str, list[Found]] = {}
    for name, policy, found in with_remedy(records):
        kinds.setdefault(_kind(name, policy), []).append(found)
    lines = [[kind, *_width_cells(every)] for kind, every in kinds.items()]
    heads = ["designs", "estimates", "coverage, 1.96·SE", "coverage, default"]
    heads += ["half-width/1.96·SE", "SE/spread", "RMS bias/SE", "a normal law"]
    factors = factor_table(made_again, {name: [name] for name in STRUCTURED})
    parts = ["## Where the width comes from", WIDTHS_READ, table(heads, lines)]
    parts += [_excess(kinds), FACTORS, table(FACTOR_HEADS, factors)]
    return "\n\n".join([*parts, _missing(kinds[MISSING], made_again), trade(others)])


def _excess(kinds: Mapping[str, Sequence[Found]]) -> str:
    """Return what coverage beyond 95 % is."""
    exact, smoothed = (
        np.concatenate([found.covered for found in kinds[kind]]).mean()
        for kind in (AT_MASSES, AT_NONE)
    )
    return (
        "What intervals cover beyond 95 % is width that reaches over a smoothing bias which these "
        f"designs hardly have: at point masses, where nothing is smoothed, they cover {exact:.3f}, "
        f"at other doses of the same designs {smoothed:.3f}. No such width makes up for "
        f"confounding that is left, as in *{THIN}*."
    )


def _missing(every: Sequence[Found], made_again: Sequence[Record]) -> str:
    """Return why intervals cover most where outcomes are missing, and what narrow ones would."""
    error, se, covered, width = (
        np.concatenate([getattr(found, name) for found in every])
        for name in ("error", "se", "covered", "width")
    )
    made = Steps([r for r in made_again if r["design"] == MISSING])
    order_four, narrow = geometric_mean(made.factors()["order four"]), geometric_mean(made.narrow())
    sds = np.mean([found.width.mean() / 2 / found.error.std(ddof=1) for found in every])
    told, _ = told_and_off((found.error, found.se) for found in every)
    outside = 1.0 - np.mean([found.normal_coverage for found in every])
    return (
        f"Why do intervals cover {covered.mean():.3f} in *{MISSING}*? The SE is {told:.2f} of the "
        f"spread, and 1.96·SE alone covers {np.mean(np.abs(error) <= NORMAL * se):.3f}. The "
        f"half-width is {geometric_mean(width / (2.0 * NORMAL * se)):.2f} times that, in the logs "
        f"evaluated again {order_four:.2f} by the order-four fit alone, and {sds:.1f} sd of the "
        f"errors: a normal law leaves {outside:.3f} outside, {outside * len(error):.0f} of "
        f"{len(error)} estimates, and {np.sum(~covered)} were. With {narrow:.2f} times 1.96·SE, "
        f"the width of `Narrow()` in these logs, "
        f"{np.mean(np.abs(error) <= narrow * NORMAL * se):.3f} of all would be covered."
    )


def _kind(design: str, policy: str) -> str:
    """Return the name of the row in which a policy is: those at point masses have rows together."""
    if design not in POINT_MASSES:
        return design
    share = POINT_MASSES[design].on_masses(policy)
    return AT_MASSES if share == 1.0 else AT_NONE if share == 0.0 else AT_ONE


def _width_cells(every: Sequence[Found]) -> list[str]:
    """Return a row's numbers, over its designs and policies."""
    half = np.concatenate([found.width / 2 for found in every])
    naive = NORMAL * np.concatenate([found.se for found in every])
    error = np.concatenate([found.error for found in every])
    covered = np.concatenate([found.covered for found in every])
    told, off = told_and_off((found.error, found.se) for found in every)
    normal = np.mean([found.normal_coverage for found in every])
    return [
        f"{len(error):,}",
        f"{np.mean(np.abs(error) <= naive):.3f}",
        f"{covered.mean():.3f}",
        f"{geometric_mean(half / naive):.2f}",
        f"{told:.2f}",
        f"{off:.2f}",
        f"{normal:.3f}",
    ]


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
    records = map(records_in, (RECORDS, WIDTHS, CONFOUNDING))
    PAGE.write_text(page(*records), encoding="utf-8")


if __name__ == "__main__":
    main()
