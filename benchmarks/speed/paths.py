"""Row 12: all bandwidths with their joint covariance; and row 13: how calls grow with the rows."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from benchmarks.speed import search
from benchmarks.speed.contestants import numpy_value
from benchmarks.speed.log import CLIP, H, Log, problem
from benchmarks.speed.measuring import Line, at_most, in_turn, told
from titrant.bandwidth import path_of
from titrant.estimators import Question, Rows, SelfNormalized, ask
from titrant.kernels import Scale

if TYPE_CHECKING:
    from collections.abc import Callable

BANDWIDTHS = np.geomspace(0.02, 0.5, 200)
"""In units of sd(T)."""
ONE = Question(SelfNormalized(), 0, Scale.of(H, 1))


def single(rows: Rows) -> Any:
    """Return value and SE, with the correction at the bound and the tally of weights."""
    return ask([ONE], lambda statistic: statistic([rows]))


def paths(n: int, repeats: int) -> list[Line]:
    """Row 12: paths in evaluations of one bandwidth, by ourselves and by plain numpy.

    Ours is no fixed unit: when it becomes slower, the path seems to become faster.
    """
    log = Log.draw(n)
    bounded, free = log.rows(bounded=True), log.rows(bounded=False)
    near, far = problem(SelfNormalized(), bounded), problem(SelfNormalized(), free)
    logged = log.logged()
    (numpy, one, default, all_free, all_near), _ = in_turn(
        [
            lambda: numpy_value(logged, log.tau, H),
            lambda: single(bounded),
            lambda: path_of(near),
            lambda: path_of(far, BANDWIDTHS),
            lambda: path_of(near, BANDWIDTHS),
        ],
        repeats,
    )
    joint, of = "bandwidths with their joint covariance", "× numpy's value and standard error"
    work = f"27 {joint}, near a bound, n = {n:,}"
    return [
        told(work, default / numpy, of, seconds=default, peer=numpy),
        at_most(12, work, default / one, 10, "× our own value and standard error", peer=one),
        told(f"200 {joint}, no bound, n = {n:,}", all_free / numpy, of),
        told(f"200 {joint}, near a bound, n = {n:,}", all_near / numpy, of),
    ]


def growth(sizes: tuple[int, ...], repeats: int) -> list[Line]:
    """Return how far the time for more rows is from proportional."""
    logs = [Log.draw(n) for n in sizes]
    tasks = {
        "evaluate() self-normalized": [whole(log) for log in logs],
        "27 bandwidths": [
            partial(path_of, problem(SelfNormalized(), log.rows(bounded=True))) for log in logs
        ],
    }
    lines = []
    for name, calls in tasks.items():
        # Few rows are evaluated as often as it takes to have as many: no clock is that fine.
        times = [max(1, 10**6 // n) for n in sizes]
        least, _ = in_turn(
            [partial(again, call, k) for call, k in zip(calls, times, strict=True)], repeats
        )
        each = [1e9 * s / (n * k) for s, n, k in zip(least, sizes, times, strict=True)]
        # What does not depend on the rows is spread over more: only growing is against the aim.
        more = max(b / a - 1 for a, b in pairwise(each))
        work = f"{name}, n = {' → '.join(f'{n:,}' for n in sizes)}"
        lines.append(at_most(13, work, more, 0.15, "above linear", nanoseconds_a_row=each))
    return [*lines, search.growth(sizes, repeats)]


def whole(log: Log) -> Callable[[], Any]:
    """Return the public call on a log."""
    how: dict[str, Any] = {"estimator": SelfNormalized(clip=CLIP), "bandwidth": H}
    policy = tt.Linear(coef=[1.0], intercept=0.05)
    return partial(tt.evaluate, log.logged(), policy, **how, allow_untrusted=True)


def again(call: Callable[[], Any], times: int) -> None:
    """Call several times."""
    for _ in range(times):
        call()
