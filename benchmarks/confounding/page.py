"""Write the page about confounding from the records: `python -m benchmarks.confounding.page`."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from benchmarks.confounding import laws, never, remedies, safe, study
from benchmarks.confounding.contestants import CONTESTANTS
from benchmarks.confounding.designs import DESIGNS, GROUPS, JUMPS
from benchmarks.confounding.records import records_in, task_of
from benchmarks.confounding.targets import targets
from benchmarks.rules.found import listed
from benchmarks.widths import (
    FACTOR_HEADS,
    FACTORS,
    NORMAL,
    TWO_SIDED,
    factor_table,
    least_corrected,
    narrow_se,
    told_and_off,
)
from benchmarks.widths import RECORDS as WIDTHS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from benchmarks.confounding.designs import AnyDesign
    from benchmarks.confounding.records import Task

    Array = np.ndarray
    Record = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "confounding.md"
TITLE = """\
# Where dose and outcome share a cause

In most logs a context moved both the dose and the outcome, and nobody wrote down how: a threshold
in kidney function, a site's habits, the hour of the day. The default models have to find out. This
page says how well they do, and what they cannot.

Measured by `python -m benchmarks.confounding --plan`, written by
`python -m benchmarks.confounding.page`; the designs are in `benchmarks/confounding/designs.py`.
Each log is evaluated by the very default call, without propensities but in the last group, at two
constant doses and under a rule that follows a context. This is the measurement of the default as
users call it, propensities estimated. What [another page](calibration.md) holds beside it, by
`python -m benchmarks.coverage`, are bandwidth selectors and forms of the interval against each
other, with known propensities and plain models. On the same log and policies:

- *plain* is the same call with `GaussianMixture()` and `Stack(ridge_pair())`;
- *gam* is the mean prediction of a ridge on splines of each context, of the dose, and their
  products;
- *boosted* is doubly robust with boosted trees, cross-fitted, and a Gaussian propensity around a
  boosted mean."""
TARGETS = """\
## What was asked, and what was found

What the default was to reach, set before it was measured. The designs are those of the groups *held
out*, *newest* and *latest*; 1,000 rows unless said otherwise."""
READING = """\
Coverage is that of the 95 % interval, over estimates with the verdict ok or warn; ± is its
Monte-Carlo standard error, the policies of one log counted as one draw. A *silent miss* is an
interval that misses with the verdict ok. RMSE is over the same estimates for all contestants, of
the first logs of a design alone (60 of 1,000 rows, 20 of 300, 10 of 5,000), and *of best* divides
that of the default by the least of the three others. CPU s is the median of the default call for
all policies of a log. The last rows are means over designs. The true values are averages over a
million contexts, exact to about .001 sd of the outcome."""
HEADS = {
    "tuning": "## Designs that were looked at while the default was put together",
    "held out": "## Designs written before the default was first frozen, seen since",
    "fresh": "## Designs written before the models and checks changed again, seen since",
    "attacked": "## Kinds that a reviewer broke; looked at while they were mended",
    "seen since": "## Designs written when the first of these were mended, seen since",
    "newest": "## Designs written after that; three were seen when `leftover_bias` was made",
    "latest": "## Designs written after all that, not seen while anything was chosen",
    "oblique": "## Designs written by a reviewer when everything was frozen; nothing changed since",
    "jumps": "## Kinks and jumps in the dose",
    "calibration": "## The designs of the calibration page, their propensities estimated",
    "known": "## The designs of the calibration page, their propensities known",
}
CLOSING = """\
## What is assumed, what is seen, and what is not

- **Assumed**: every cause that moved both dose and outcome is among the contexts. No table can
  show one that is not.
- **Followed**: contexts that act by curves, steps, products of two (also of a code's levels with
  another context; of more than 15 contexts, among the 15 along which forests see most), values that
  are repeated (a clinic, a postal code) and what comes again among whole numbers (a weekday, an
  hour, a month), if there are rows enough. A note says so where plain models would be off.
- **Seen**: a fitted law of the doses with another center, spread or shape (`propensity_pit`; what
  it does not see is above), contexts that the weights leave out of balance on average or in some
  of their range (`covariate_balance`, `binned_balance`), weights and outcomes that rows alike in up
  to three contexts share beyond what models explain (`leftover_bias`; pairs of at most 28 contexts
  and triples of 14, with a note where there are more), people whose like never had the dose
  (`never_given`), an outcome that jumps at the very dose (`dose_jump`), values that rest on cut
  predictions, on few rows or on doses outside the support. Each is measured above; the
  [trust report](../how-to/read-the-trust-report.md) tells what to do.
- **Not seen**: a shape of many contexts at once, such as a ball in eight. No learner tried finds
  it in 1,000 rows, and no check sees it. The row marked *radial* is a mild one
  of this kind. Of a checkerboard, where two contexts tell nothing alone and their product nothing
  either, half stays in the estimate (the other learners leave all of it), and mostly it is warned
  of. Waves along a slanted line, rings, and products of two that bend are followed, products of
  three mostly.
- **Followed in part, and hardly seen**: regions with oblique borders at which doses and outcomes
  step, such as the nearest of several places, the highest of several markers, steps of a sum, a
  window that another context moves. {oblique}Boosted trees do no better. If you know the
  region, give it as a context: a column with the nearest site, or the highest marker. With it most
  of the bias is gone, as measured above.
- **Half seen**: a kink of the outcome at the very dose of the policy, or a bend as steep as one.
  Smoothing rounds it off, and among 1,000 rows with ordinary noise (or more, where the dose follows
  contexts closely) the bandwidth path and lines from either side do not always tell it from a
  gentle one. Where they do, the interval is wider; where they do not, a loss such as
  |dose − target| at its very target is overstated, with the verdict ok.
  See the first dose of the kinked designs. Half the bandwidth helps, as measured
  [above](#the-designs-of-the-calibration-page-their-propensities-known).
- **Seen from a thousand rows on**: people who were never given doses like the one asked about, if
  one or two contexts tell who they are and they are at least a twentieth (`never_given`, measured
  above). The fitted law lends them doses of the others, and `support`, which goes by it, counts
  only a part of them. Among 300 rows, or told by three contexts, or in several small groups, they
  are mostly not seen. Fewer than 3 % of the rows are a note, not a warning. What the dose would do
  to them no log can say: `weights_to=` a population without them, or subgroups, ask about the rest.
- **Half seen**: a code of many values, twenty rows each, that moves the effect of the dose as well
  as its size. What its values do is shrunk, and a part of it stays in the estimate.
- **Seen late**: where the outcome is a rare event, few rows decide. With less than 10 % of events
  in 1,000 rows, do not go on over a warning."""
OBLIQUE = """\
Doses and outcomes step at borders that no single context draws. The reviewer looked for designs of
this kind that fool the default; the third held, and is shown beside them."""
REGIONS = """\
With the number of the region as one more context, the default call covers again. On the first logs
of both, all policies together:"""
KINKS = f"""\
Where the outcome has its kink at the very dose that is asked about, plain models do better. The
smooth ones follow the kink in part and round it off. Less of it is left in their residuals, so the
bandwidth path finds less evidence of a kink (*evidence*, `estimate.bandwidth.kink`) and takes a
larger bandwidth, which has more bias and a narrower interval. On {remedies.KINKED_LOGS} logs of
two designs:"""
LESS_SMOOTH = """\
If you know that the outcome has a kink at the dose you ask about, as |dose − target| has at the
target, halve the bandwidth, `bandwidth=estimate.bandwidth.h / 2`, or take plain models where
contexts act about linearly. Both cover more here, with a smaller RMSE. Where there is no kink, half
the bandwidth only adds noise."""
ALL_TOGETHER = "All designs and sizes together; refused estimates are those given on request alone."
FIRES = """\
The share of estimates, all sizes together, for which a check warns or refuses: where nothing is
wrong this is a false alarm, where the interval misses the truth it is a detection. *Nonlinear*
holds the radial designs too."""
SPEAKING = """\
How often intervals of the default cover where a check warns; *alone* is where no other does. An
estimate that several checks warn of is counted with each. Where `leftover_bias` or `dose_jump`
warns, intervals miss often; where others warn, they cover about as often as they say. That depends
on the designs: nearly all warnings of these two are where contexts act in a way that the default
follows badly, or where the outcome jumps at the dose. On sound designs warned estimates cover, too.
Coverage is given from ten estimates on."""
UNHEARD_OF = """\
Where nobody alike in one or two contexts was given a dose near the policy's, the value rests on
others. The share of 300 logs in which `never_given` warns of a constant dose, beside the share of
people of whom in truth fewer than one in 200 had a dose near it. Its limits were set on the designs
written before. Measured by `python -m benchmarks.confounding.never`."""
WRONG_LAWS = f"""\
What if the propensities are wrong? The doses of a log follow one law, and `evaluate` and `check`
are told another: a model that cannot follow it, a function, or a column of densities. The shares of
{laws.LOGS} logs that are warned of, with 300 / 1,000 / 2,500 rows; ± 0.06 at most, and a share of
0 may be 0.05. Slow models, and the default, have {laws.FEW} logs (± 0.11), of 1,000 rows so far;
the default is judged by `check` alone. A dash is what was not measured; a column has no ranks. All
cases were written for this table, with the rules in view, and no limit was changed. The last column
counts every check of `SelfNormalized()` at a high dose, also those of overlap and smoothing, so
that it warns of right laws too. Measured by `python -m benchmarks.confounding.laws`."""
SEEN_OF_LAWS = """\
- **Seen**: what moves the ranks of many rows the same way, a shift, a wrong spread or a wrong
  shape. From 1,000 rows on `propensity_pit` warns of these in most logs, with 300 rows in some. In
  `evaluate`, where a model has seen its rows, it is as sharp as in `check`.
- **Not seen by the ranks**: errors that cancel over the rows. A line in place of a step, and a law
  that ignores the contexts altogether, leave ranks even. Only the balance of contexts can show
  these, and it looks at the policy's dose.
- **Columns of densities** that are off by half are seen by `stabilized_weight` and `mean_weight`; a
  factor of .9 is seen in some logs only.
- **Rounded doses** are found as point masses and have probabilities of their own, so that the ranks
  do not object.
- **Right laws**: `propensity_pit` gave no false alarm, `stabilized_weight` few."""
FORMS = """\
At 1,000 rows, the default v ± t·s beside `Narrow()`, on the same estimates; s is the larger of
se_R and a standard error widened by the gap to the bias-corrected center
([formula](default.md#the-interval)). On sound designs the
default covers more than it says, and the narrow form about what it says; where models are off, the
width of the default is what keeps misses rare. A silent miss is worse than an interval that is an
eighth too wide, so the wide form is the default. *SE/spread* is the mean standard error of a
design and policy over the sd of its errors, *RMS bias/SE* its mean error in standard errors,
squared less what chance adds and averaged over these: whether the SE itself is right."""
EXCESS = """\
What intervals cover beyond 95 % on sound designs is width that reaches over smoothing bias, of
which these designs have little. The printed SE is somewhat less than the spread of the estimates,
so that 1.96·SE alone covers too seldom; the SE of the order-four fit makes up for this and adds
more. Residuals, gap and Student's t add a few percent at most."""
FORMS_OF_INTERVAL = _, CORRECTED, NARROW, WIDE = "1.96·SE", "t·se_R", "narrow", "default"
"""Half-widths about the value."""
COMPARED_ROWS = 1000
WITHOUT_EFFECT = """\
The outcome does not depend on the dose, so every deployment by `PolicyLearner(safe=True)` is a
false one. *Bound above zero* is how often the bound alone, without the verdict, would have
deployed. Measured by `python -m benchmarks.confounding.safe`."""
WITH_INTERVALS = ("default", "plain")
FIRED_AMONG = (
    (("sound",), ""),
    (("nonlinear", "radial"), "missed"),
    (("nonlinear", "radial"), "covered"),
    (("jump",), "missed"),
    (("jump",), "covered"),
)
"""Kinds of designs, and whether the interval misses, among which checks are counted."""
COLUMNS = {
    "refused": ".2f",
    "ok": ".2f",
    "coverage if ok": ".3f",
    "coverage if warned": ".3f",
    "silent misses": ".3f",
    "RMSE": ".3f",
    "of best": ".2f",
    "RMSE, plain": ".3f",
    "RMSE, gam": ".3f",
    "RMSE, boosted": ".3f",
    "coverage, plain": ".3f",
    "RMS of error/SE": ".2f",
    "CPU s": ".1f",
}
"""The numbers of a row, after logs and coverage, and how they are written."""
IN_OWN_UNITS = {"RMSE", *(f"RMSE, {name}" for name in ("plain", *CONTESTANTS))}
"""Numbers whose mean over designs would say nothing."""
FEWEST = 10
"""Logs of a design and size without which it has no row."""
MISSED_MOST = 3
"""Designs that are named where misses come from."""
APART = "*plain against rich*"
RICH_SE = 2.0
"""As the note of an estimate has it: by so many SE the plain models' value differs."""
LATER = {"never_given": ", made after nearly all of these logs"}
"""Checks that the records cannot show."""


@dataclass(frozen=True)
class Estimates:
    """What one contestant with intervals said of several logs: arrays over all their estimates."""

    records: list[Record]
    by: str = "default"

    def number(self, what: str, by: str | None = None) -> Array:
        """Return a recorded number, NaN where there is none."""
        each = [
            r.get(by or self.by, {}).get(what) or [None] * len(r["truth"]) for r in self.records
        ]
        return np.array([v for values in each for v in values], dtype=float)

    @cached_property
    def log(self) -> Array:
        """The number of the log of each estimate."""
        return np.repeat(np.arange(len(self.records)), [len(r["truth"]) for r in self.records])

    @cached_property
    def policy(self) -> Array:
        """The number of the policy of each estimate."""
        return np.array([i for r in self.records for i, _ in enumerate(r["truth"])], dtype=int)

    @cached_property
    def error(self) -> Array:
        """Value less truth."""
        return self.error_of(self.by)

    def error_of(self, by: str) -> Array:
        """Return value less truth of any contestant."""
        return self.number("value", by) - self.truth

    @cached_property
    def truth(self) -> Array:
        """The true value."""
        return np.array([v for r in self.records for v in r["truth"]], dtype=float)

    @cached_property
    def verdict(self) -> Array:
        """The verdict of the trust report; refuse also where no row is near the policy."""
        return np.array([v for r in self.records for v in r[self.by]["verdict"]], dtype=str)

    @cached_property
    def given(self) -> Array:
        """Where the call gives an estimate."""
        return self.verdict != "refuse"

    @cached_property
    def covers(self) -> Array:
        """Where the interval holds the truth."""
        return (self.number("low") <= self.truth) & (self.truth <= self.number("high"))

    def fires(self, check: str) -> Array:
        """Return where a check warns or refuses."""
        return np.array(
            [check in c for r in self.records for c in r[self.by]["checks"]], dtype=bool
        )

    @cached_property
    def gap(self) -> Array:
        """Value less bias-corrected center."""
        return self.number("value") - self.number("center")

    def of_each_policy(self, among: Array) -> Iterator[tuple[Array, Array]]:
        """Yield errors and standard errors of each design and policy, among some estimates."""
        design = np.array([r["design"] for r in self.records])[self.log]
        for name, policy in dict.fromkeys(zip(design, self.policy, strict=True)):
            own = among & (design == name) & (self.policy == policy)
            yield self.error[own], self.number("se")[own]

    def coverage(self, among: Array) -> tuple[float, float]:
        """Return the coverage among some estimates and its Monte-Carlo standard error."""
        return share(self.covers, among), share_se(self.covers, among, self.log)


def main() -> None:
    records = map(records_in, (study.RECORDS, safe.RECORDS, WIDTHS))
    PAGE.write_text(page(*records), encoding="utf-8")


def page(every: list[Record], safe_runs: list[Record], made_again: list[Record]) -> str:
    """Return the page of the records."""
    known = [r for r in every if "failed" not in r]
    parts = [TITLE, *asked(known, safe_runs), "## How to read the tables", READING, origin(every)]
    sizes = sorted({r["n"] for r in known})
    for group, designs in GROUPS.items():
        tables = [t for n in sizes for t in group_tables(known, designs, n)]
        parts += [HEADS[group], *tables, *AFTER.get(group, list)()] if tables else []
    if few := with_few_logs(known):
        parts.append(few)
    if known:
        parts += [verdicts(known), forms(known, made_again), checks(known), speaking(known)]
    if safe_runs:
        parts.append(deployments(safe_runs))
    parts.append(f"## Doses that nobody alike was given\n\n{UNHEARD_OF}\n\n{never.table()}")
    parts.append(f"## Doses of another law\n\n{WRONG_LAWS}\n\n{laws.table()}\n\n{SEEN_OF_LAWS}")
    return "\n\n".join([*parts, closing(known)]) + "\n"


def asked(known: list[Record], safe_runs: list[Record]) -> list[str]:
    """Return the targets and what was found, if there are records of them all."""
    sizes = grouped(known, "n", "design")
    rows: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for (n, name), logs in sizes.items():
        if len(logs) >= FEWEST:
            rows[n][name] = numbers(Estimates(logs))
    of_design = {name: Estimates(logs) for (n, name), logs in sizes.items() if n == COMPARED_ROWS}
    every = Estimates(judged(known, "default"))
    lines = [list(one.cells) for one in targets(rows, of_design, every, safe_runs)]
    return [TARGETS, table(["target", "measured", ""], lines)] if lines else []


def kinked() -> list[str]:
    """Return what can be done about a kink at the very dose."""
    heads = ["design", "call", "coverage", "silent misses", "bias", "RMSE", "width"]
    lines = remedies.kinks()
    return [KINKS, table([*heads, "h (median)", "evidence (mean)"], lines), LESS_SMOOTH]


def regions() -> list[str]:
    """Return what telling the region does."""
    heads = ["design", "logs", "coverage", "silent misses", "bias", "RMSE"]
    return [OBLIQUE, REGIONS, table(heads, remedies.regions())]


AFTER: dict[str, Callable[[], list[str]]] = {"oblique": regions, "known": kinked}
"""What is said of a group besides its tables."""


def closing(known: list[Record]) -> str:
    """Return what is assumed, seen and not seen, with the numbers of oblique borders."""
    return CLOSING.format(oblique=oblique_numbers(known))


def oblique_numbers(known: list[Record]) -> str:
    """Return how far the default is off where borders are oblique, and boosted trees beside it."""
    each = []
    for name in remedies.REGIONS:
        logs = [r for r in known if r["design"] == name and r["n"] == COMPARED_ROWS]
        if len(logs) < FEWEST:
            return ""
        found = Estimates(logs)
        row = numbers(found)
        bias = max((e.mean() for e, _ in found.of_each_policy(found.given)), key=abs)
        each.append(
            f"*{name}*: the bias is up to {bias:.2f}, {row['coverage']:.2f} of intervals cover, "
            f"{row['silent misses']:.2f} miss with the verdict ok, and the RMSE is "
            f"{row['RMSE']:.2f}, that of boosted trees {row['RMSE, boosted']:.2f}"
        )
    return f"With {COMPARED_ROWS:,} rows, {'; '.join(each)}. "


def origin(records: list[Record]) -> str:
    """Return of how many logs the page is made."""
    if not records:
        return "There is no record yet."
    said = (
        f"These tables rest on {len(records):,} logs. A design with fewer than {FEWEST} logs of a "
        "size is not in the table of that size, but in the pooled one below."
    )
    failed = [r for r in records if "failed" in r]
    said += f" {missing(study.plan(study.SEED), records)}"
    if failed:
        first = failed[0]
        said += f" {len(failed):,} failed, the first in {first['design']}: {first['failed']}"
    return said


def missing(tasks: Iterable[Task], records: Iterable[Record]) -> str:
    """Return which logs of a plan have no record, by group and rows."""
    known = set(map(task_of, records))
    plan = list(tasks)
    group_of = {name: group for group, designs in GROUPS.items() for name in designs}
    left = Counter((group_of[t.design], t.n) for t in plan if t not in known)
    if not left:
        return f"All {len(plan):,} logs of the plan are among them."
    each = (f"*{group}* {count:,} of {n:,} rows" for (group, n), count in left.items())
    return f"Of the plan's {len(plan):,} logs {left.total():,} are missing: {', '.join(each)}."


# Tables of designs


def group_tables(records: list[Record], designs: Mapping[str, AnyDesign], n: int) -> list[str]:
    """Return the table of some designs at one size, and what follows from it; or nothing."""
    of_size = grouped((r for r in records if r["n"] == n), "design")
    logs = {name: of_size[name,] for name in designs if len(of_size.get((name,), ())) >= FEWEST}
    if not logs:
        return []
    rows = {name: numbers(Estimates(found)) for name, found in logs.items()}
    kinds = {name: designs[name].kind for name in rows}
    lines = [cells(name, kinds[name], row) for name, row in rows.items()]
    for kind in dict.fromkeys(kinds.values()):
        chosen = [row for name, row in rows.items() if kinds[name] == kind]
        lines += [cells("*mean*", kind, mean_row(chosen))] if len(chosen) > 1 else []
    if len(set(kinds.values())) > 1:
        lines.append(cells("*mean*", "all", mean_row(list(rows.values()))))
    heads = ["design", "kind", "logs", "coverage", *COLUMNS, "best other"]
    ratio = [max(row["of best"], 1.0) for row in rows.values()]
    after = (
        "With the default itself among the contestants, its RMSE is on average "
        f"{np.mean(ratio):.2f} times the best's, {max(ratio):.2f} times at most."
    )
    found = [f"n = {n:,}", table(heads, lines), after]
    return [*found, by_policy(logs)] if designs is JUMPS else found


def numbers(found: Estimates) -> dict[str, Any]:
    """Return the numbers of one row."""
    plain = Estimates(judged(found.records, "plain"), "plain")
    errors = {name: found.error_of(name) for name in ("default", "plain", *CONTESTANTS)}
    compared = found.given & np.all(np.isfinite(list(errors.values())), axis=0)
    rmse = {name: root_mean_square(error[compared]) for name, error in errors.items()}
    best = min(("plain", *CONTESTANTS), key=rmse.__getitem__)
    coverage, se = found.coverage(found.given)
    ok = found.verdict == "ok"
    return {
        "logs": len(found.records),
        "coverage": coverage,
        "coverage se": se,
        "refused": np.mean(~found.given),
        "ok": np.mean(ok),
        "coverage if ok": share(found.covers, ok),
        "coverage if warned": share(found.covers, found.verdict == "warn"),
        "silent misses": share(ok & ~found.covers, found.given),
        "RMSE": rmse["default"],
        "of best": rmse["default"] / rmse[best],
        **{f"RMSE, {name}": rmse[name] for name in ("plain", *CONTESTANTS)},
        "coverage, plain": share(plain.covers, plain.given),
        "RMS of error/SE": root_mean_square((found.error / found.number("se"))[found.given]),
        "CPU s": np.median([r["default"]["cpu"] for r in found.records]),
        "best other": best,
    }


def mean_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over designs; a number that some designs lack is a mean over the others."""
    found: dict[str, Any] = {"logs": sum(row["logs"] for row in rows), "best other": ""}
    for name in ("coverage", *COLUMNS):
        known = [row[name] for row in rows if np.isfinite(row[name])]
        found[name] = np.mean(known) if known and name not in IN_OWN_UNITS else np.nan
    found["coverage se"] = np.sqrt(np.sum([row["coverage se"] ** 2 for row in rows])) / len(rows)
    return found


def cells(name: str, kind: str, row: dict[str, Any]) -> list[str]:
    """Return one line of the table."""
    each = [written(row[column], form) for column, form in COLUMNS.items()]
    coverage = with_error(row["coverage"], row["coverage se"])
    return [name, kind, f"{row['logs']:,}", coverage, *each, row["best other"]]


def by_policy(logs: dict[str, list[Record]]) -> str:
    """Return the coverage of each policy: the kink or jump is at the first dose, or near it."""
    lines = []
    for name, records in logs.items():
        found = Estimates(records)
        each = [found.given & (found.policy == i) for i, _ in enumerate(DESIGNS[name].policies)]
        lines.append([name, *(with_error(*found.coverage(chosen)) for chosen in each)])
    heads = ["design", *(f"coverage, {name}" for name in DESIGNS[lines[0][0]].policies)]
    return table(heads, lines)


# Tables over all designs


def with_few_logs(records: list[Record]) -> str:
    """Return what is found of designs that have no row of their own, by group and kind; or ""."""
    lines = []
    of_design = grouped(records, "design", "n")
    few = {key: found for key, found in of_design.items() if len(found) < FEWEST}
    for group, designs in GROUPS.items():
        for kind in dict.fromkeys(design.kind for design in designs.values()):
            own = {k: v for k, v in few.items() if k[0] in designs and designs[k[0]].kind == kind}
            for n in sorted({n for _, n in own}):
                logs = [r for key, found in own.items() if key[1] == n for r in found]
                found = Estimates(judged(logs, "default"))
                ok = found.verdict == "ok"
                lines.append(
                    [
                        group,
                        kind,
                        f"{n:,}",
                        f"{len({r['design'] for r in logs})}",
                        f"{len(logs):,}",
                        with_error(*found.coverage(found.given)),
                        written(share(ok, np.ones(len(ok), dtype=bool)), ".2f"),
                        written(share(ok & ~found.covers, found.given), ".3f"),
                    ]
                )
    heads = ["designs", "kind", "rows", "of them", "logs", "coverage", "ok", "silent misses"]
    named = (f"- *{group}*: {HEADS[group][3:]}" for group in dict.fromkeys(x[0] for x in lines))
    parts = [f"Those with fewer than {FEWEST} logs of a size, a kind of designs together."]
    parts += ["\n".join(named), table(heads, lines)]
    return "\n\n".join(["## Designs with few logs", *parts]) if lines else ""


def warned_where(records: list[Record]) -> str:
    """Return which designs the misses of warned estimates come from, and how others do."""
    found = Estimates(judged(records, "default"))
    design = np.array([r["design"] for r in found.records])[found.log]
    warned = (found.verdict == "warn") & np.isfinite(found.error)
    names, misses = np.unique(design[warned & ~found.covers], return_counts=True)
    if not len(names):
        return ""
    order = np.argsort(-misses, kind="stable")[:MISSED_MOST]
    most = [f"{names[i]} ({misses[i] / misses.sum():.0%})" for i in order]
    others = share(found.covers, warned & ~np.isin(design, names[order]))
    said = (
        f"Of {misses.sum():,} misses among warned estimates, most come from few designs: "
        f"{', '.join(most)}. In all other designs warned estimates cover {others:.3f}."
    )
    ok = (found.verdict == "ok") & np.isfinite(found.error)
    each = []
    for group in ("held out", "newest", "latest"):
        own = np.isin(design, list(GROUPS[group]))
        if (warned & own).any():
            both = share(found.covers, warned & own), share(found.covers, ok & own)
            each.append(f"{both[0]:.3f} and {both[1]:.3f} in the designs *{group}*")
    return f"{said} Warned and ok ones cover {', '.join(each)}." if each else said


def verdicts(records: list[Record]) -> str:
    """Return how often intervals cover among each verdict, over everything."""
    lines = []
    for verdict in ("ok", "warn", "refuse"):
        line = [verdict]
        for by in WITH_INTERVALS:
            found = Estimates(judged(records, by), by)
            chosen = (found.verdict == verdict) & np.isfinite(found.error)
            line += [f"{chosen.sum():,}", with_error(*found.coverage(chosen))]
        lines.append(line)
    heads = ["verdict", "estimates", "coverage", "estimates, plain", "coverage, plain"]
    parts = [ALL_TOGETHER, table(heads, lines), warned_where(records)]
    return "\n\n".join(["## What a verdict is worth", *filter(None, parts)])


def forms(records: list[Record], made_again: list[Record]) -> str:
    """Return how the forms of the interval do on the same estimates, and what their widths are of.

    ``made_again`` are the records of `benchmarks.widths`.
    """
    lines, groups, more = [], {}, []
    for group, kind in product(("held out", "newest", "latest"), ("nonlinear", "sound")):
        names = [name for name, design in GROUPS[group].items() if design.kind == kind]
        found = of_form(records, names)
        among = np.isfinite(found.error)
        half, covers = halves(found), covering(found, halves(found))
        most = covering(found, halves(found, found.number("center_se")))
        each = {form: share(covers[form], among) for form in covers}
        more.append([share(most[form], among) - each[form] for form in (CORRECTED, NARROW)])
        line = [group, kind, f"{among.sum():,}"]
        line += [with_error(c, share_se(covers[f], among, found.log)) for f, c in each.items()]
        line += [f"{share(silent(found, covers[form]), among):.3f}" for form in (NARROW, WIDE)]
        line.append(f"{(half[NARROW] / half[WIDE])[among].mean():.2f}")
        lines.append([*line, *map("{:.2f}".format, told_and_off(found.of_each_policy(among)))])
        groups[f"{group}, {kind}"] = names
    heads = ["designs", "kind", "estimates", *(f"coverage, {form}" for form in FORMS_OF_INTERVAL)]
    heads += [f"silent misses, {form}" for form in (NARROW, WIDE)]
    heads += ["width, narrow", "SE/spread", "RMS bias/SE"]
    at_most = dict(zip((CORRECTED, NARROW), np.max(more, axis=0), strict=True))
    bounds = (
        "Records hold s, not se_R: where s may be either that or the widened standard error, the "
        f"smaller se_R is taken. The coverage of {CORRECTED} may therefore be up to "
        f"{at_most[CORRECTED]:.3f} more than the table says, that of the narrow form up to "
        f"{at_most[NARROW]:.3f}."
    )
    parts = ["## The interval and its narrow form", FORMS, bounds, table(heads, lines)]
    parts += [FACTORS, table(FACTOR_HEADS, factor_table(made_again, groups)), EXCESS]
    return "\n\n".join([*parts, trade(records)])


def of_form(records: Sequence[Record], names: Container[str]) -> Estimates:
    """Return the estimates by which forms of the interval are compared, of some designs."""
    own = [r for r in records if r["design"] in names and r["n"] == COMPARED_ROWS]
    return Estimates(judged(own, "default"))


def halves(found: Estimates, corrected: Array | None = None) -> dict[str, Array]:
    """Return the half-widths of each form of the interval, by se_R or the least there may be."""
    se, reach, gap = found.number("se"), found.number("center_se"), found.gap
    of_fit = least_corrected(se, reach, gap) if corrected is None else corrected
    t = stdtrit(found.number("degrees"), TWO_SIDED)
    wide = (found.number("high") - found.number("low")) / 2
    each = (NORMAL * se, t * of_fit, t * narrow_se(se, of_fit, gap), wide)
    return dict(zip(FORMS_OF_INTERVAL, each, strict=True))


def covering(found: Estimates, half: dict[str, Array]) -> dict[str, Array]:
    """Return where each form of the interval holds the truth."""
    within = {form: np.abs(found.error) <= own for form, own in half.items()}
    return within | {WIDE: found.covers}


def silent(found: Estimates, covers: Array) -> Array:
    """Return where an interval misses with the verdict ok."""
    return ~covers & (found.verdict == "ok")


def trade(records: Sequence[Record]) -> str:
    """Return what `Narrow()` does in place of the default, where models are sound and where not."""
    said = []
    for kind in ("sound", "nonlinear"):
        names = [name for name in study.CLAIMED if DESIGNS[name].kind == kind]
        found = of_form(records, names)
        among, half = np.isfinite(found.error), halves(found)
        covers = covering(found, half)
        missed = [share(silent(found, covers[form]), among) for form in (NARROW, WIDE)]
        wider = (half[WIDE] / half[NARROW])[among].mean() - 1.0
        said.append(
            f"on the {len(names)} {kind} designs it covers {share(covers[NARROW], among):.3f}, "
            f"with {missed[0]:.3f} silent misses, where the default, {wider:.0%} wider, covers "
            f"{share(covers[WIDE], among):.3f}, with {missed[1]:.3f}"
        )
    return (
        "What a user can do is `interval=Narrow()`. In the groups of confounding *held out*, "
        f"*newest* and *latest*, with {COMPARED_ROWS:,} rows: {'; '.join(said)}."
    )


def checks(records: list[Record]) -> str:
    """Return how often each check fires, by the kind of design and whether the interval misses."""
    heads, columns = ["check"], []
    for by in WITH_INTERVALS:
        for kinds, outcome in FIRED_AMONG:
            of_kinds = [r for r in records if DESIGNS[r["design"]].kind in kinds]
            found = Estimates(judged(of_kinds, by), by)
            missed = {"missed": ~found.covers, "covered": found.covers}
            chosen = np.isfinite(found.error) & missed.get(outcome, True)
            heads.append(f"{by}: {kinds[0]} {outcome}".rstrip())
            columns.append((found, chosen))
    names = dict.fromkeys(name for by in WITH_INTERVALS for name in said(records, by))
    shares = [("any", [share(f.verdict != "ok", chosen) for f, chosen in columns])]
    shares.append((APART, [share(*apart(f, chosen)) for f, chosen in columns]))
    shares += [
        (f"`{k}`{LATER.get(k, '')}", [share(f.fires(k), chosen) for f, chosen in columns])
        for k in names
    ]
    lines = [[name, *(written(v, ".3f") for v in values)] for name, values in shares]
    lines.append(["*estimates*", *(f"{chosen.sum():,}" for _, chosen in columns)])
    return f"## What the checks see\n\n{FIRES}\n\n{table(heads, lines)}"


def speaking(records: list[Record]) -> str:
    """Return how often intervals cover where a check warns, all designs and sound ones."""
    found = Estimates(judged(records, "default"))
    known = np.isfinite(found.error)
    kind = np.array([DESIGNS[r["design"]].kind for r in found.records])[found.log]
    fired = {name: found.fires(name) & known for name in said(records, "default")}
    how_many = np.sum(list(fired.values()), axis=0)
    rows = {"*no check*": known & (how_many == 0)}
    for name in sorted(fired, key=lambda name: -fired[name].sum()):
        rows[f"`{name}`{LATER.get(name, '')}"] = fired[name]
    lines = []
    for name, where in rows.items():
        line = [name]
        for among in (where, where & (kind == "sound"), where & (how_many == 1)):
            enough = among.sum() >= FEWEST
            line += [f"{among.sum():,}", with_error(*found.coverage(among)) if enough else "–"]
        lines.append(line)
    heads = ["check", "estimates", "coverage", "sound", "coverage, sound"]
    heads += ["alone", "coverage, alone"]
    return (
        f"## How often estimates cover where a check warns\n\n{SPEAKING}\n\n{table(heads, lines)}"
    )


def said(records: list[Record], by: str) -> list[str]:
    """Return the names of the checks that warned of anything, in the order of the records."""
    every = (name for r in judged(records, by) for c in r[by]["checks"] for name in c)
    return list(dict.fromkeys(every))


def apart(found: Estimates, among: Array) -> tuple[Array, Array]:
    """Return where the values of plain models and of the default are more than 2 plain SE apart.

    And among which of some estimates: those of which both are known.
    """
    gap = found.number("value", "plain") - found.number("value", "default")
    in_se = np.abs(gap) / found.number("se", "plain")
    return in_se > RICH_SE, among & np.isfinite(in_se)


def deployments(runs: list[Record]) -> str:
    """Return how often a safe learner deployed without any effect."""
    done = [r for r in runs if "failed" not in r]
    lines = []
    for (name, n), found in grouped(done, "design", "n").items():
        line = [name, f"{n:,}", f"{len(found):,}"]
        # Without a bound the log was refused.
        bound = np.array([r.get("bound", -np.inf) for r in found])
        for true in (np.array([r["deployed"] for r in found], dtype=bool), bound > 0.0):
            every = np.ones(len(true), dtype=bool)
            line.append(with_error(true.mean(), share_se(true, every, np.arange(len(true)))))
        given = [r["verdict"] for r in found]
        line += [f"{given.count(verdict) / len(given):.2f}" for verdict in ("warn", "refuse")]
        lines.append([*line, f"{np.median([r['cpu'] for r in found]):.1f}"])
    heads = ["confounding", "rows", "logs", "deployed", "bound above zero", "warned", "refused"]
    heads.append("CPU s")
    failed = len(runs) - len(done)
    parts = [WITHOUT_EFFECT, f"{failed:,} runs failed." if failed else "", never_ok(done)]
    parts.append(still_to_run(runs))
    said = " ".join(filter(None, parts))
    return f"## Safe deployments without any effect\n\n{said}\n\n{table(heads, lines)}"


def never_ok(runs: list[Record]) -> str:
    """Return for which kinds no log got the verdict ok, without which nothing is deployed."""
    kinds = grouped(runs, "design")
    none = [name for (name,), found in kinds.items() if all(r["verdict"] != "ok" for r in found)]
    if not none:
        return ""
    return (
        f"Of the kind {listed(none)} no log got the verdict ok, and a safe learner deploys on ok "
        "alone: that it never deployed there is nearly automatic."
    )


def still_to_run(runs: list[Record]) -> str:
    """Return which kinds have fewer logs than the plan says."""
    count = Counter(r["design"] for r in runs if r["n"] == safe.ROWS)
    left = {name: safe.RUNS - count[name] for name in safe.SETTINGS if count[name] < safe.RUNS}
    each = ", ".join(f"{more:,} of *{name}*" for name, more in left.items())
    return f"Missing of the plan: {each}." if left else ""


# Small parts


def judged(records: list[Record], by: str) -> list[Record]:
    """Return the logs on which a contestant ran."""
    return [r for r in records if by in r]


def grouped(records: Iterable[Record], *keys: str) -> dict[Any, list[Record]]:
    """Return the records with the same values under some keys."""
    found: dict[Any, list[Record]] = defaultdict(list)
    for r in records:
        found[tuple(r[key] for key in keys)].append(r)
    return dict(found)


def share(true: Array, among: Array) -> float:
    """Return the share of true ones among some estimates, NaN if there are none."""
    return float(np.mean(true[among])) if np.any(among) else np.nan


def share_se(true: Array, among: Array, log: Array) -> float:
    """Return the Monte-Carlo standard error of a share, the estimates of a log being one draw.

    Half a log is taken to be off, so that a share of 0 or 1 is not said to be exact.
    """
    if not np.any(among):
        return np.nan
    off = np.bincount(log[among], true[among] - share(true, among))
    half = 0.5 * np.sum(among) / len(np.unique(log[among]))
    return float(np.sqrt(np.sum(off**2) + half**2) / np.sum(among))


def root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else np.nan


def with_error(number: float, se: float) -> str:
    return f"{number:.3f} ± {se:.3f}" if np.isfinite(number) else "–"


def written(number: float, form: str) -> str:
    return f"{number:{form}}" if np.isfinite(number) else "–"


def table(heads: list[str], lines: list[list[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    main()
