"""What the records say of the rules that are found, as sections of the page on learning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.confounding.safe import RECORDS as SAFE_RECORDS
from benchmarks.rules import library, vector
from benchmarks.rules.contestants import PLUG_INS
from benchmarks.rules.found import (
    CONSTANT,
    ECONML,
    KINDS,
    LEARNED_CONSTANT,
    Found,
    amount,
    by_freshness,
    found_in,
    listed,
    mean_ratio,
    of_kind,
    span,
)
from benchmarks.rules.measure import (
    AUTOMATIC,
    CONTESTANTS,
    ECONML_RECORDS,
    HONEST_RECORDS,
    RECORDS,
    SEED,
    WARFARIN_RECORDS,
)
from benchmarks.rules.problems import PROBLEMS
from benchmarks.rules.targets import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = dict[str, Any]

TARGETS = """\
## What was asked, and what was found

What `PolicyLearner()` was to reach, set before it was measured. In brackets 95 % intervals of the
shares. *Seen* problems were looked at while the recipe was made, *fresh* ones invented after it.
The honest interval is measured by `python -m benchmarks.rules --honest`, deployments by
`python -m benchmarks.confounding.safe`, all else
by the commands [below](#which-rules-are-found)."""
INTRODUCTION = """\
## Which rules are found

Excess risk over the best dose of every person, on {draws} draws of {problems} problems, all
contestants on the same draws; ± is the Monte-Carlo standard error. *Automatic* is the default,
`PolicyLearner()`; *linear* is `PolicyLearner(policy=Linear())` with the same outcome models, one of
which came with the choice: the former default but for that model. The others take for each person
the dose with the least predicted loss: of gradient-boosted trees, a random forest, a ridge
regression on all squares and products (all of scikit-learn), and of EconML's `CausalForestDML` for
the dose and its square. *Short* is how much more the best line loses than the best rule, both
within the logged doses, in sds of the mean loss: what no line can have. *Best constant* is the best
there is, which nobody knows: where one dose is best for all it loses nothing, and with enough draws
every learner is seen to lose more. *Learned constant* is what `PolicyLearner(policy=Constant(0))`
finds in the same logs. The command is `python -m benchmarks.rules --draws 20`; it goes on where it
was stopped."""
SEEN = """\
**What was seen before.** Only the {fresh} problems in *italics* were new when the recipe was
frozen; the others were looked at, on other seeds, while it was made. All draws are those of seed
{seed}, the same since the problems were written. Draws 0 to {last} of every problem, the fresh ones
too, were read with earlier learners, and the learner was changed after that. Draws from {new} on
were first run with today's. On these alone the automatic rule has, of the excess of the linear one
(geometric means):

{again}"""
NEW = 9
"""The first draw that was not run with an earlier learner."""
ALONE = """\
EconML is no dependency of titrant, and is measured by another interpreter that has it. One was at
hand for one draw of {n} problems. One draw has no standard error, so EconML is left out of *worse
than* above; it counts as a contestant on its own draw. There its excess is below the automatic
rule's on {better}."""


def section() -> str:
    """Return the sections as Markdown; every number comes from the records."""
    records, econml = records_in(RECORDS), records_in(ECONML_RECORDS)
    warfarin = records_in(WARFARIN_RECORDS)
    found = found_in(records, econml)
    asked = targets(found, records_in(HONEST_RECORDS), warfarin, records_in(SAFE_RECORDS))
    draws = span([len(one.records) for one in found])
    parts = [TARGETS, table([("target", "measured", ""), *(one.cells for one in asked)])]
    parts += [INTRODUCTION.format(draws=draws, problems=len(found)), _seen(found, records)]
    parts += [_table(found), _summary(found), *_econml(found), *_warfarin(warfarin)]
    parts += [*_library(records_in(library.RECORDS)), *_vector(records_in(vector.RECORDS))]
    return "\n\n".join(parts)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table, of which the first is its head."""
    head, *others = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *others])


def _seen(found: list[Found], records: list[Record]) -> str:
    """Return which problems and draws earlier learners were run on."""
    new = found_in([r for r in records if r["replication"] >= NEW], [])
    again = [
        f"- {mean_ratio(mine):.2f} times where {kind} ({len(mine)} {which} problems)"
        for kind in KINDS
        for which, mine in by_freshness([one for one in new if one.name in named(found, kind)])
    ]
    fresh = sum(PROBLEMS[one.name].fresh for one in found)
    return SEEN.format(fresh=fresh, seed=SEED, last=NEW - 1, new=NEW, again="\n".join(again))


def named(found: list[Found], kind: str) -> set[str]:
    """Return the names of the problems of a kind, by all draws."""
    return {one.name for one in of_kind(found, kind)}


def _table(found: list[Found]) -> str:
    contestants = [*CONTESTANTS, ECONML, LEARNED_CONSTANT, CONSTANT]
    rows = [["problem", "short", "draws", *contestants, "chosen"]]
    for one in found:
        name = f"*{one.name}*" if PROBLEMS[one.name].fresh else one.name
        kinds = [record["chosen"] for record in one.records]
        chosen = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        cells = [amount(one.excess(contestant)) for contestant in contestants]
        rows.append([name, f"{max(one.short, 0.0):.2f}", str(len(one.records)), *cells, chosen])
    return table(rows)


def _summary(found: list[Found]) -> str:
    lines = [
        f"- Where {kind} ({len(mine)} {which} problems), the automatic rule has "
        f"{mean_ratio(mine):.2f} times the excess of the linear one (geometric mean)."
        for kind in KINDS
        for which, mine in by_freshness(of_kind(found, kind))
    ]
    for other in (*PLUG_INS, LEARNED_CONSTANT, CONSTANT):
        worse = [one.name for one in found if one.worse_than(other)]
        told = f"on {listed(worse)}" if worse else "nowhere"
        lines.append(f"- Worse than *{other}* by more than 2 SE: {told}.")
    best = float(np.mean([one.ratio_to_the_best for one in found]))
    middle = float(np.median([one.ratio_to_the_best for one in found]))
    lines.append(
        "- Over the best other contestant of each problem, known only afterwards: "
        f"{best:.2f} times its excess on average, {middle:.2f} in the median."
    )
    return "\n".join(lines)


def _econml(found: list[Found]) -> list[str]:
    """Return what one draw of EconML can tell; nothing without records."""
    with_it = [one for one in found if len(one.econml)]
    if not with_it:
        return []
    better = [one.name for one in with_it if one.ratio(ECONML) > 1.0]
    return [ALONE.format(n=len(with_it), better=listed(better))]


def _warfarin(records: list[Record]) -> list[str]:
    """Return how far doses are from those that proved right; nothing without records."""
    mine = [record["plain"] for record in records if "failed" not in record]
    if not mine:
        return []
    amounts = {name: amount(np.array([plain[name] for plain in mine])) for name in mine[0]}
    rows = [("rule", "mean distance from the right dose, mg a week"), *amounts.items()]
    told = (
        f"Warfarin, {len(mine)} splits of the patients, by `python -m benchmarks.rules --warfarin` "
        "(the table is yours to bring): rules learned from the logged, thresholded loss alone, the "
        "chosen class also within steps; *right* is the right dose itself on these steps, which no "
        "rule on them can be better than. The class is the one that is chosen without steps; "
        "`PolicyLearner(limits=Limits(steps=…))` lets the classes compete within the steps; it may "
        "take another one."
    )
    return [told, table(rows)]


def _library(records: list[Record]) -> list[str]:
    """Return what more outcome models bring; nothing without records."""
    known = [record for record in records if "failed" not in record]
    if not known:
        return []
    ratios, stacked = [], []
    for name in library.PROBLEMS:
        mine = [r for r in known if r["design"] == name]
        if mine:
            usual, wider = (
                np.mean([r["excess"][which][AUTOMATIC] for r in mine])
                for which in (library.USUAL, library.WIDER)
            )
            ratios.append(float(wider / usual))
            stacked += [r["stack"]["forest"] + r["stack"]["smooth"] for r in mine]
    mean, low, high = np.exp(np.mean(np.log(ratios))), min(ratios), max(ratios)
    told = (
        "Two more outcome models that evaluation has and learning has not, a ridge on splines of "
        "the contexts and one with a forest's predictions as features, by "
        f"`python -m benchmarks.rules --library --draws 5`: on {len(ratios)} problems "
        f"({len(known)} draws) the automatic rule then has {mean:.2f} times the excess it has "
        f"without them (geometric mean; {low:.2f} to {high:.2f}); the stack gives them "
        f"{np.mean(stacked):.0%} of the weight. They are left out."
    )
    return [told]


def _vector(records: list[Record]) -> list[str]:
    """Return how two doses at once are learned; nothing without records."""
    known = [record for record in records if "failed" not in record]
    if not known:
        return []
    told = (
        f"Two doses at once, {vector.CONTEXTS} contexts, n = {vector.N}, by `python -m "
        "benchmarks.rules --vector`: the default against the pair of doses with the least "
        "prediction of the quadratic ridge regression, which is right where the best doses are "
        "*lines* and wrong where they jump between *groups*."
    )
    heads = ["best doses", "draws", "excess risk, automatic", "quadratic"]
    rows = [[*heads, "squared dose error, automatic", "quadratic", "chosen"]]
    for name in vector.DESIGNS:
        mine = [r for r in known if r["design"] == name]
        cells = [
            amount(np.array([r[what][who] for r in mine]))
            for what in ("excess", "squared")
            for who in (AUTOMATIC, vector.QUADRATIC)
        ]
        kinds = [r["chosen"] for r in mine]
        chosen = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        rows.append([name, str(len(mine)), *cells, chosen])
    return [told, table(rows)]
