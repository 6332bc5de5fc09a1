"""Rows 10 and 11: learning a rule with its honest value, beside boosted trees, and its growth."""

from __future__ import annotations

import titrant as tt
from benchmarks.speed import job
from benchmarks.speed.contestants import boosted_rule
from benchmarks.speed.draws import people
from benchmarks.speed.measuring import Line, at_most, in_turn

CONTEXTS = 5
DATA = 8 * (CONTEXTS + 2)
"""Bytes of a row."""


def beside_trees(n: int, repeats: int) -> list[Line]:
    """Row 10."""
    log = people(n, CONTEXTS, known=False)
    tt.PolicyLearner().fit(people(600, CONTEXTS, known=False))
    (ours, trees), _ = in_turn(
        [lambda: tt.PolicyLearner().fit(log), lambda: boosted_rule(log)], repeats, warm=False
    )
    work = f"PolicyLearner().fit(), honest, n = {n:,}, {CONTEXTS} contexts"
    of = "× the least prediction of boosted trees, five folds"
    return [at_most(10, work, ours / trees, 6, of, seconds=ours, peer=trees)]


def growth(few: int, many: int) -> list[Line]:
    """Row 11."""
    jobs = [{"call": "learn", "rows": n, "p": CONTEXTS, "known": False, "warm": True}
            for n in (few, many)]  # fmt: skip
    small, large = (job.run(one) for one in jobs)
    seconds = [found["cpu"][0] for found in (small, large)]
    held = (large["peak_mb"] - small["peak_mb"]) * 2**20 / (many - few) - DATA
    work = f"PolicyLearner().fit(), honest, n = {many:,}, {CONTEXTS} contexts"
    return [
        at_most(11, work, seconds[1] / seconds[0], 12, f"× n = {few:,}", seconds=seconds),
        at_most(11, f"{work}: bytes a row above the data", held, 4_000, "bytes",
                peak_mb=[small["peak_mb"], large["peak_mb"]]),
    ]  # fmt: skip
