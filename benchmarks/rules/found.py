"""The records of each problem: excess risks, what they are told in, and which kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rules.measure import AUTOMATIC, CONTESTANTS, LINEAR
from benchmarks.rules.problems import PROBLEMS

Array = np.ndarray
Record = dict[str, Any]

NONE, MUCH = 0.01, 0.1
"""How far a line falls short, in sds of the mean loss: nothing below the first, much from the
second on."""
KINDS = ("a line is best", "a line is nearly best", "a line is not enough")
ECONML, CONSTANT, LEARNED_CONSTANT = "EconML", "best constant", "learned constant"


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
        return float(np.mean([short_of(record) for record in self.records]))

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
        return bool(more.mean() > 2 * error(more))

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


def of_kind(found: list[Found], kind: str) -> list[Found]:
    """Return the problems of a kind."""
    return [one for one in found if one.kind == kind]


def by_freshness(found: list[Found]) -> list[tuple[str, list[Found]]]:
    """Return those seen while the recipe was made and the fresh ones, where there are any."""
    parts = {
        which: [one for one in found if PROBLEMS[one.name].fresh == fresh]
        for which, fresh in (("seen", False), ("fresh", True))
    }
    return [(which, some) for which, some in parts.items() if some]


def mean_ratio(found: list[Found]) -> float:
    """Return the geometric mean of the excess over that of a line."""
    return float(np.exp(np.mean([np.log(one.ratio(LINEAR)) for one in found])))


def listed(names: list[str]) -> str:
    """Return names of problems within a sentence."""
    told = [f"*{name}*" for name in names]
    return " and ".join([", ".join(told[:-1]), *told[-1:]][len(told) < 2 :]) or "none"


def short_of(record: Record) -> float:
    """Return how far the best line falls short, in sds of the mean loss."""
    truth = record["truth"]
    return float((truth["line"] - truth["within"]) / truth["sd"])


def share_of(said: list[bool]) -> str:
    """Return how many of how many, and Wilson's 95 % interval of the share."""
    n, z = len(said), 1.96
    if not n:
        return "none of none"
    share = float(np.mean(said))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return f"{sum(said)} of {n} ({middle - half:.0%} to {middle + half:.0%})"


def amount(values: Array) -> str:
    """Return a mean with its standard error."""
    if not len(values):
        return "–"
    more = f" ± {error(values):.3f}" if len(values) > 1 else ""
    return f"{abs(values.mean()):.3f}{more}"


def error(values: Array) -> float:
    """Return the standard error of the mean; of one value it is not known."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def span(counts: list[int]) -> str:
    """Return the least and the greatest of some counts."""
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"
