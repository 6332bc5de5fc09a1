"""Goals 1, 2 and 11: one evaluation, all bandwidths, and how both grow."""

from __future__ import annotations

import sys
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

import titrant as tt
from benchmarks.optimize import Line, in_turn
from benchmarks.speed.log import CLIP, Array, H, Log, blocks, problem
from titrant.bandwidth import binned, path_of
from titrant.estimators import DoublyRobust, Question, Rows, SelfNormalized, ask, weight
from titrant.kernels import Scale

if TYPE_CHECKING:
    from collections.abc import Callable

BANDWIDTHS = np.geomspace(0.02, 0.5, 200)
"""In units of sd(T)."""


@njit(fastmath={"reassoc", "nsz", "contract", "arcp"})
def read(a: Array, b: Array, c: Array, d: Array) -> float:
    """Return the sum of four arrays: no evaluation can be faster than reading its rows."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] + b[i] + c[i] + d[i]
    return total


def peer(log: Log) -> float:
    """Return the self-normalized value as a peer writes it: no bound, no standard error."""
    u = (log.tau - log.t) / H
    w = 0.75 * (1 - u**2) * (np.abs(u) <= 1) / np.maximum(log.q, CLIP)
    return float((w * log.y).sum() / w.sum())


PLAIN, ROBUST = (Question(e, 0, Scale.of(H, 1)) for e in (SelfNormalized(), DoublyRobust()))


def single(rows: Rows, question: Question = PLAIN) -> tuple[float, float]:
    """Return value and SE, with the correction at the bound and the tally of weights."""
    joint = ask([question], lambda statistic: statistic([rows]))
    return float(joint.values[0]), float(joint.se[0])


def in_blocks(parts: list[Rows]) -> float:
    """Return the value over blocks of rows, as an evaluation asks for it."""

    def over_rows(statistic: Any) -> Any:
        total = statistic([parts[0]])
        for part in parts[1:]:
            total = total + statistic([part])
        return total

    return float(ask([PLAIN], over_rows).values[0])


def evaluating(n: int, repeats: int) -> list[Line]:
    """Goal 1."""
    log = Log.draw(n)
    bounded, free = log.rows(bounded=True), log.rows(bounded=False)
    parts = blocks(bounded)
    tau, q = log.tau, np.maximum(log.q, CLIP)
    contestants: dict[str, Callable[[], Any]] = {
        "reading four arrays": lambda: read(log.t, tau, log.y, q),
        "plain numpy, value only": lambda: peer(log),
        "clip and boundary": lambda: single(bounded),
        "clip, no bound": lambda: single(free),
        "clip and boundary, in blocks": lambda: in_blocks(parts),
        "doubly robust, clip and boundary": lambda: single(bounded, ROBUST),
    }
    least, _ = in_turn(list(contestants.values()), repeats)
    limit, plain = least[0], least[1]
    lines = []
    for name, seconds in list(zip(contestants, least, strict=True))[2:]:
        share, faster = limit / seconds, plain / seconds
        # Six arrays instead of four are read for the doubly robust estimate.
        share *= 1.5 if "robust" in name else 1.0
        details = {"seconds": seconds, "rows": n, "times_plain_numpy": faster}
        work = f"value + SE + tally of weights, n = {n:,}, {name}"
        lines.append(Line(1, work, share, "≥ .55 of the read limit", bool(share >= 0.55), details))
        lines.append(Line(1, work, faster, "≥ 8 × plain numpy's value", bool(faster >= 8), details))
    return lines


def whole_call(n: int, repeats: int) -> list[Line]:
    """Return what the public call costs, with interval and trust checks, and without loops."""
    log = Log.draw(n)
    call = whole(log)
    (mine, plain, by_numpy), _ = in_turn(
        [call, lambda: peer(log), lambda: without_loops(call)], repeats
    )
    work = f"evaluate(): value, interval, trust checks, n = {n:,}"
    details = {"seconds": mine, "rows": n}
    told = "for information: in plain numpy's values"
    gain = "for information: × the same by numpy alone"
    return [
        Line(1, work, mine / plain, told, passed=True, details=details),
        Line(1, work, by_numpy / mine, gain, passed=True, details=details),
    ]


def without_loops(call: Callable[[], Any]) -> Any:
    """Return what a call returns when every row goes through numpy."""
    kept = weight.MANY
    weight.MANY = binned.MANY = sys.maxsize
    try:
        return call()
    finally:
        weight.MANY = binned.MANY = kept


def paths(n: int, repeats: int) -> list[Line]:
    """Goal 2."""
    log = Log.draw(n)
    bounded, free = log.rows(bounded=True), log.rows(bounded=False)
    tasks = {
        "no bound": problem(SelfNormalized(), free),
        "a bound": problem(SelfNormalized(), bounded),
    }
    m = len(BANDWIDTHS)
    contestants: dict[str, Callable[[], Any]] = {
        "single, no bound": lambda: single(free),
        "single, a bound": lambda: single(bounded),
        f"{m} bandwidths with their joint covariance, no bound": lambda: path_of(
            tasks["no bound"], BANDWIDTHS
        ),
        f"{m} bandwidths, a bound": lambda: path_of(tasks["a bound"], BANDWIDTHS, joint=False),
        f"{m} bandwidths with their joint covariance, a bound": lambda: path_of(
            tasks["a bound"], BANDWIDTHS
        ),
        "27 bandwidths with their joint covariance, a bound (the default)": lambda: path_of(
            tasks["a bound"]
        ),
    }
    least, _ = in_turn(list(contestants.values()), repeats)
    lines = []
    for name, seconds in list(zip(contestants, least, strict=True))[2:]:
        one = least[1] if "a bound" in name else least[0]
        ratio = seconds / one
        lines.append(
            Line(
                2,
                f"{name}, n = {n:,}",
                ratio,
                "≤ 7 evaluations",
                bool(ratio <= 7),
                {"seconds": seconds},
            )
        )
    return lines


def growth(sizes: tuple[int, ...], repeats: int) -> list[Line]:
    """Goal 11: how far the time for more rows is from proportional."""
    logs = [Log.draw(n) for n in sizes]
    tasks = {
        "evaluate(), value, interval, trust checks": [whole(log) for log in logs],
        "27 bandwidths with their joint covariance": [whole_path(log) for log in logs],
    }
    lines = []
    for name, calls in tasks.items():
        # Few rows are evaluated as often as it takes to have as many: no clock is that fine.
        times = [max(1, 10**6 // n) for n in sizes]
        least, _ = in_turn(
            [partial(again, call, k) for call, k in zip(calls, times, strict=True)], repeats
        )
        per_row = [s / (n * k) for s, n, k in zip(least, sizes, times, strict=True)]
        off = max(abs(b / a - 1) for a, b in pairwise(per_row))
        shown = " → ".join(f"{n:,}" for n in sizes)
        details = {"nanoseconds_a_row": [1e9 * s for s in per_row]}
        asked = "≤ .15 from proportional"
        lines.append(Line(11, f"{name}, n = {shown}", off, asked, bool(off <= 0.15), details))
    return lines


def whole(log: Log) -> Callable[[], Any]:
    """Return the public call on a log."""
    return partial(
        tt.evaluate,
        log.logged(),
        tt.Linear(coef=[1.0], intercept=0.05),
        estimator=SelfNormalized(clip=CLIP),
        bandwidth=H,
        allow_untrusted=True,
    )


def whole_path(log: Log) -> Callable[[], Any]:
    """Return the path over the default grid, as the selector asks for it."""
    return partial(path_of, problem(SelfNormalized(), log.rows(bounded=True)))


def again(call: Callable[[], Any], times: int) -> None:
    """Call several times."""
    for _ in range(times):
        call()
