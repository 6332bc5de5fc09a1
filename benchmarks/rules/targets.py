"""What rules were to reach, what was measured, and why a target is missed: a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.rules.found import (
    CONSTANT,
    KINDS,
    LEARNED_CONSTANT,
    NONE,
    Found,
    by_freshness,
    listed,
    mean_ratio,
    of_kind,
    share_of,
    short_of,
)
from benchmarks.rules.measure import AUTOMATIC, HONEST_PROBLEMS, LINEAR, TABLETS

Record = dict[str, Any]

ENOUGH = 300
"""Logs of a setting that make a share of them known."""
PLAIN = 0.3
"""A loss, in sds of the mean loss, that should be announced."""
DAILY = max(TABLETS, key=lambda name: TABLETS[name])
"""The widest steps of tablets."""


class Target(NamedTuple):
    """A row of the table."""

    asked: str
    measured: str
    met: bool | None
    """None where there are too few logs to tell."""
    reason: str = ""
    """Why it is missed; told where it is."""

    @property
    def cells(self) -> tuple[str, str, str]:
        """What the table shows."""
        if self.met is None:
            return self.asked, self.measured, f"open: fewer than {ENOUGH} logs"
        return self.asked, self.measured, "met" if self.met else f"missed. {self.reason}"


def targets(
    found: list[Found], honest: list[Record], warfarin: list[Record], safe: list[Record]
) -> list[Target]:
    """Return every target; those without records are left out."""
    rows = [*_shapes(found), *_others(found), *_announced(found)]
    return [*rows, *_warfarin(warfarin), *_honest(honest), *deployed(safe)]


def _shapes(found: list[Found]) -> list[Target]:
    """Against a line: where it is not enough, and where it is best."""
    bent, nearly = of_kind(found, KINDS[2]), of_kind(found, KINDS[1])
    straight = of_kind(found, KINDS[0])
    by_bent, by_straight = by_freshness(bent), by_freshness(straight)
    parts = "; ".join(f"{mean_ratio(fs):.3f} on {len(fs)} {w}" for w, fs in by_bent)
    all_bent = mean_ratio([*bent, *nearly])
    lines = "; ".join(f"{mean_ratio(fs):.2f} on {len(fs)} {w}" for w, fs in by_straight)
    worst = max(straight, key=lambda one: one.ratio(LINEAR))
    other = sum(record["chosen"] != LINEAR for record in worst.records)
    behind = [one.name for one in bent if one.ratio(LINEAR) > 0.75]
    return [
        Target(
            "excess ≤ .25 of that of a line where a line is not best (geometric mean)",
            f"{parts}; {all_bent:.2f} with the {len(nearly)} where it is nearly best",
            max(all_bent, *(mean_ratio(fs) for _, fs in by_bent)) <= 0.25,
            "Where a line is nearly best there is little to gain, and on "
            f"{listed(behind)} no class has the shape of the best rule.",
        ),
        Target(
            "excess ≤ 1.0 of that of a line where a line is best (geometric mean)",
            f"{lines}; {mean_ratio(straight):.2f} on all",
            max(mean_ratio(fs) for _, fs in by_straight) <= 1.0,
            f"On *{worst.name}* it is {worst.ratio(LINEAR):.2f}: a choice within one standard "
            f"error takes another shape by chance, in {other} of {len(worst.records)} draws.",
        ),
    ]


def _others(found: list[Found]) -> list[Target]:
    """Against other learners, and constants."""
    boosted, constant, learned = (
        [one.name for one in found if one.worse_than(other)]
        for other in ("boosted", CONSTANT, LEARNED_CONSTANT)
    )
    best = float(np.mean([one.ratio_to_the_best for one in found]))
    n = len(found)
    return [
        Target(
            "excess at most that of boosted trees, within 2 SE, on every problem",
            f"on {n - len(boosted)} of {n}",
            not boosted,
            f"On {listed(boosted)} the best dose jumps along a sum of two contexts; no class "
            "has an oblique cut.",
        ),
        Target(
            "excess ≤ 1.5 of that of the best other contestant (mean over problems)",
            f"{best:.2f}",
            best <= 1.5,
        ),
        Target(
            "nowhere worse than the best constant by more than 2 SE",
            f"on {n - len(constant)} of {n}",
            not constant,
            f"On {listed(constant)} one dose is best, or nearly, for all. The best constant is "
            "known to nobody, and any learner is seen to lose to it with enough draws; the "
            f"constant that titrant learns is ahead on {listed(learned)}.",
        ),
    ]


def _announced(found: list[Found]) -> list[Target]:
    """How often it is said that a line is not enough."""
    records = [record for one in found for record in one.records]
    plain = [r["announced"] for r in records if short_of(r) >= PLAIN]
    learned = [r["announced"] for r in records if _learned_line(r) >= PLAIN]
    none = [r["announced"] for r in records if short_of(r) < NONE]
    return [
        Target(
            f"that a line is not enough is said in ≥ 90 % of logs where it loses ≥ {PLAIN:g} sd",
            f"{share_of(plain)} where the best line does, {share_of(learned)} where the learned "
            "one does",
            bool(min(np.mean(plain), np.mean(learned)) >= 0.9) if plain else None,
            "The learned line also loses what its own errors cost, which no richer shape mends.",
        ),
        Target(
            "it is said in ≤ 5 % of logs where the best line is as good as any rule",
            share_of(none),
            float(np.mean(none)) <= 0.05 if none else None,
            "One standard error is exceeded by chance.",
        ),
    ]


def _learned_line(record: Record) -> float:
    return float(record["excess"][LINEAR] / record["truth"]["sd"])


def _warfarin(records: list[Record]) -> list[Target]:
    mine = [record["plain"] for record in records if "failed" not in record]
    if not mine:
        return []
    off = {name: float(np.mean([plain[name] for plain in mine])) for name in mine[0]}
    more = off[DAILY] - off[AUTOMATIC]
    return [
        Target(
            "warfarin: ≤ 8.6 mg a week from the right dose, all choices from the log",
            f"{off[AUTOMATIC]:.2f} over {len(mine)} splits",
            off[AUTOMATIC] <= 8.6,
        ),
        Target(
            "warfarin in steps of 2.5 mg a day: within .1 of that",
            f"{more:.2f} more",
            more <= 0.1,
            f"The right dose itself, on these steps, is {off[f'right, {DAILY}']:.2f} mg off.",
        ),
    ]


def _honest(records: list[Record]) -> list[Target]:
    """Whether the honest interval covers, by what it is to cover."""
    rows = []
    done = [record for record in records if "failed" not in record]
    for key, true, what in (
        ("covers_the_halves", "halves", "the rules of the halves"),
        ("covers", "whole", "the rule"),
    ):
        of = {
            name: [record[key] for record in done if record["design"] == name]
            for name in HONEST_PROBLEMS
        }
        shares = [float(np.mean(covers)) for covers in of.values() if covers]
        if not shares:
            return []
        known = min(len(covers) for covers in of.values()) >= ENOUGH
        missed = [record for record in done if not record[key]]
        better = sum(record["true"][true] < record["interval"][0] for record in missed)
        why = (
            f"Of {len(missed)} intervals that miss, {better} are too pessimistic: halves are "
            "graded, and the rule of all rows, learned from twice as many, is better than theirs."
            if min(shares) < 0.92
            else "It is wider than it need be."
        )
        rows.append(
            Target(
                f"the honest 95 % interval covers the value of {what} in .92 to .98 of "
                f"{ENOUGH} logs",
                "; ".join(f"*{name}* {share_of(covers)}" for name, covers in of.items()),
                all(0.92 <= share <= 0.98 for share in shares) if known else None,
                why,
            )
        )
    return rows


def deployed(records: list[Record]) -> list[Target]:
    """How often safe learners deploy what does nothing."""
    mine = [record for record in records if "failed" not in record]
    if not mine:
        return []
    of = {
        name: [r["deployed"] for r in mine if r["design"] == name]
        for name in dict.fromkeys(r["design"] for r in mine)
    }
    shares = [float(np.mean(deployed)) for deployed in of.values()]
    return [
        Target(
            f"`safe=True` deploys without any effect in ≤ 5 % of {ENOUGH} logs of each kind",
            "; ".join(f"{name} {sum(some)} of {len(some)}" for name, some in of.items()),
            max(shares) <= 0.05 if min(map(len, of.values())) >= ENOUGH else None,
            "The verdict and the bound let too many through.",
        )
    ]
