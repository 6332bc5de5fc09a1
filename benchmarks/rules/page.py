"""What the records say of the rules that are found, as a section of the page on learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.confounding.records import records_in
from benchmarks.rules import library, vector
from benchmarks.rules.contestants import PLUG_INS
from benchmarks.rules.measure import (
    AUTOMATIC,
    CONTESTANTS,
    ECONML_RECORDS,
    HONEST_PROBLEMS,
    HONEST_RECORDS,
    LINEAR,
    RECORDS,
    WARFARIN_RECORDS,
)
from benchmarks.rules.problems import PROBLEMS

Array = np.ndarray
Record = dict[str, Any]

NONE, MUCH, PLAIN = 0.01, 0.1, 0.3
"""How far a line falls short, in sds of the mean loss: nothing below the first, much from the
second on; from the third on it should be announced."""
KINDS = ("a line is best", "a line is nearly best", "a line is not enough")
ECONML, CONSTANT, LEARNED_CONSTANT = "EconML", "best constant", "learned constant"

INTRODUCTION = """\
## Which rules are found

Excess risk over the best dose of every person, on {draws} draws of {problems} problems, all
contestants on the same draws; ± is the Monte-Carlo standard error. *Automatic* is the default,
`PolicyLearner()`; *linear* is `PolicyLearner(policy=Linear())` with the same outcome models, one of
which came with the choice: the former default but for that model. The others take for each person
the dose with the least predicted loss: of gradient-boosted trees, a random forest, a ridge
regression on all squares and products (all of scikit-learn), and of EconML's `CausalForestDML` for
the dose and its square ({econml} draws). *Short* is how much more the best line loses than the best
rule, both within the logged doses, in sds of the mean loss: what no line can have. *Best constant*
is the best there is, which nobody knows: where one dose is best for all it loses nothing, and with
enough draws every learner is seen to lose more. *Learned constant* is what
`PolicyLearner(policy=Constant(0))` finds in the same logs. Problems in *italics* were invented, and
run for the first time, after the recipe was settled; the others were looked at, on other seeds,
while it was made. The command is `python -m benchmarks.rules --draws 20`; it goes on where it was
stopped."""


@dataclass(frozen=True, slots=True)
class Found:
    """The records of one problem."""

    name: str
    records: list[Record]
    econml: Array
    """The excess of EconML on some of the same draws."""
    econml_draws: tuple[int, ...] = ()
    """Their numbers."""

    @property
    def short(self) -> float:
        """How far a line falls short, in sds of the mean loss."""
        return float(np.mean([_short(record) for record in self.records]))

    @property
    def kind(self) -> str:
        """What that means."""
        return KINDS[(self.short >= NONE) + (self.short >= MUCH)]

    def excess(self, contestant: str) -> Array:
        """Return the excess of a contestant on each draw."""
        if contestant == ECONML:
            return self.econml
        if contestant == CONSTANT:
            return np.array([record["truth"]["constant"] for record in self.records])
        name = "constant" if contestant == LEARNED_CONSTANT else contestant
        return np.array([record["excess"][name] for record in self.records])

    def ratio(self, contestant: str) -> float:
        """Return the mean excess of the automatic rule over that of a contestant.

        On the draws that the contestant was measured on.
        """
        theirs = self.excess(contestant)
        mine = self.excess(AUTOMATIC)
        if contestant == ECONML:
            mine = mine[np.isin([r["replication"] for r in self.records], self.econml_draws)]
        return float(mine.mean() / theirs.mean())

    def worse_than(self, contestant: str) -> bool:
        """Whether the automatic rule is worse by more than two standard errors."""
        more = self.excess(AUTOMATIC) - self.excess(contestant)
        return bool(more.mean() > 2 * _error(more))

    @property
    def ratio_to_the_best(self) -> float:
        """The mean excess of the automatic rule over that of the best other contestant.

        EconML is one of them where it was measured.
        """
        others = [other for other in CONTESTANTS if other != AUTOMATIC]
        return max(self.ratio(other) for other in [*others, *[ECONML] * bool(len(self.econml))])


def found_in(records: list[Record], econml: list[Record]) -> list[Found]:
    """Return the records by problem, in the order of the problems."""
    found = []
    for name in PROBLEMS:
        mine, theirs = (_of_problem(some, name) for some in (records, econml))
        if mine:
            draws = {r["replication"] for r in mine}
            theirs = [r for r in theirs if r["replication"] in draws]
            excess = np.array([r["excess"] for r in theirs])
            found.append(Found(name, mine, excess, tuple(r["replication"] for r in theirs)))
    return found


def _of_problem(records: list[Record], name: str) -> list[Record]:
    return [r for r in records if r["design"] == name and "failed" not in r]


def section() -> str:
    """Return the section as Markdown; every number comes from the records."""
    records, econml = records_in(RECORDS), records_in(ECONML_RECORDS)
    found = found_in(records, econml)
    draws = [len(one.records) for one in found]
    others = [len(one.econml) for one in found]
    introduction = INTRODUCTION.format(
        draws=_span(draws), problems=len(found), econml=_span(others)
    )
    parts = [introduction, _table(found), _summary(found), _announced(records)]
    parts += [_honest(records_in(HONEST_RECORDS)), *_warfarin(records_in(WARFARIN_RECORDS))]
    parts += [*_library(records_in(library.RECORDS)), *_vector(records_in(vector.RECORDS))]
    return "\n\n".join(parts) + "\n"


def _table(found: list[Found]) -> str:
    contestants = [*CONTESTANTS, ECONML, LEARNED_CONSTANT, CONSTANT]
    heads = ["problem", "short", "draws", *contestants, "chosen"]
    rows = [heads, ["---"] * len(heads)]
    for one in found:
        name = f"*{one.name}*" if PROBLEMS[one.name].fresh else one.name
        kinds = [record["chosen"] for record in one.records]
        chosen = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        cells = [_amount(one.excess(contestant)) for contestant in contestants]
        rows.append([name, f"{max(one.short, 0.0):.2f}", str(len(one.records)), *cells, chosen])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _summary(found: list[Found]) -> str:
    lines = []
    for kind in KINDS:
        for fresh, which in ((False, "seen"), (True, "fresh")):
            mine = [f for f in found if f.kind == kind and PROBLEMS[f.name].fresh == fresh]
            if mine:
                mean = np.exp(np.mean([np.log(one.ratio(LINEAR)) for one in mine]))
                lines.append(
                    f"- Where {kind} ({len(mine)} {which} problems), the automatic rule has "
                    f"{mean:.2f} times the excess of the linear one (geometric mean)."
                )
    for other in (*PLUG_INS, LEARNED_CONSTANT, CONSTANT):
        worse = [one.name for one in found if one.worse_than(other)]
        told = f"on {', '.join(worse)}" if worse else "nowhere"
        lines.append(f"- Worse than *{other}* by more than 2 SE: {told}.")
    best = float(np.mean([one.ratio_to_the_best for one in found]))
    middle = float(np.median([one.ratio_to_the_best for one in found]))
    lines.append(
        "- Over the best other contestant of each problem, known only afterwards: "
        f"{best:.2f} times its excess on average, {middle:.2f} in the median."
    )
    return "\n".join(lines)


def _announced(records: list[Record]) -> str:
    known = [record for record in records if "failed" not in record]
    plain = [r["announced"] for r in known if _short(r) >= PLAIN]
    none = [r["announced"] for r in known if _short(r) < NONE]
    return (
        f"That a line is not enough is said in {_share(plain)} draws where it falls short by "
        f"{PLAIN:g} sd or more, and in {_share(none)} where it does not fall short; in brackets "
        "95 % intervals of the shares."
    )


def _honest(records: list[Record]) -> str:
    parts = []
    for name in HONEST_PROBLEMS:
        mine = [r for r in records if r["design"] == name and "failed" not in r]
        whole, halves = (_share([r[key] for r in mine]) for key in ("covers", "covers_the_halves"))
        parts.append(
            f"*{name}*: it covers the value of the rule in {whole} logs, and the mean value of the "
            f"rules of the two halves, which it estimates, in {halves}"
        )
    return f"The honest 95 % interval by `python -m benchmarks.rules --honest`. {'; '.join(parts)}."


def _warfarin(records: list[Record]) -> list[str]:
    """Return how far doses are from those that proved right; nothing without records."""
    mine = [record["plain"] for record in records if "failed" not in record]
    if not mine:
        return []
    amounts = {name: _amount(np.array([plain[name] for plain in mine])) for name in mine[0]}
    rows = [("rule", "mean distance from the right dose, mg a week"), ("---", "---")]
    rows.extend(amounts.items())
    told = (
        f"Warfarin, {len(mine)} splits of the patients, by `python -m benchmarks.rules --warfarin` "
        "(the table is yours to bring): rules learned from the logged, thresholded loss alone, the "
        "chosen class also within steps; *right* is the right dose itself on these steps, which no "
        "rule on them can be better than. The class is the one that is chosen without steps; "
        "`PolicyLearner(limits=Limits(steps=…))` lets the classes compete within the steps; it may "
        "take another one."
    )
    return [told, "\n".join(f"| {' | '.join(row)} |" for row in rows)]


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
    rows = [[*heads, "squared dose error, automatic", "quadratic", "chosen"], ["---"] * 7]
    for name in vector.DESIGNS:
        mine = [r for r in known if r["design"] == name]
        cells = [
            _amount(np.array([r[what][who] for r in mine]))
            for what in ("excess", "squared")
            for who in (AUTOMATIC, vector.QUADRATIC)
        ]
        kinds = [r["chosen"] for r in mine]
        chosen = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        rows.append([name, str(len(mine)), *cells, chosen])
    return [told, "\n".join(f"| {' | '.join(row)} |" for row in rows)]


def _short(record: Record) -> float:
    truth = record["truth"]
    return float((truth["line"] - truth["within"]) / truth["sd"])


def _share(said: list[bool]) -> str:
    """Return how many of how many, and Wilson's 95 % interval of the share."""
    n, z = len(said), 1.96
    if not n:
        return "none of none"
    share = float(np.mean(said))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return f"{sum(said)} of {n} ({middle - half:.0%} to {middle + half:.0%})"


def _amount(values: Array) -> str:
    if not len(values):
        return "–"
    error = f" ± {_error(values):.3f}" if len(values) > 1 else ""
    return f"{abs(values.mean()):.3f}{error}"


def _error(values: Array) -> float:
    """Return the standard error of the mean; of one value it is not known."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _span(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
