"""Rows 1 to 3: the default call beside simpler ones, boosted trees and plain numpy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import titrant as tt
from benchmarks.speed.contestants import boosted_value, numpy_value
from benchmarks.speed.draws import people, rule
from benchmarks.speed.measuring import Line, at_most, in_turn, told
from titrant.compiled import FEWEST

if TYPE_CHECKING:
    from collections.abc import Callable

H = 0.1


def beside_self_normalized(n: int, repeats: int) -> list[Line]:
    """Row 1; and in plain numpy, as a slower call of our own would flatter the ratio."""
    log, policy = people(n, 3, known=True), rule(3)
    tau = policy(log.context)
    (ours, plain, numpy), _ = in_turn(
        [
            lambda: tt.evaluate(log, policy),
            lambda: tt.evaluate(log, policy, estimator=tt.SelfNormalized()),
            lambda: numpy_value(log, tau, H),
        ],
        repeats,
    )
    work = f"evaluate(), n = {n:,}, 3 contexts, propensity known"
    of = "× self-normalized, without models"
    return [
        at_most(1, work, ours / plain, 12, of, seconds=ours, peer=plain),
        told(work, ours / numpy, "× numpy's value and standard error", peer=numpy),
    ]


def beside_trees(n: int, p: int, repeats: int) -> list[Line]:
    """Row 2."""
    log, policy = people(n, p, known=False), rule(p)
    tau = policy(log.context)
    tt.evaluate(people(2_000, p, known=False), policy, allow_untrusted=True)
    (ours, trees), _ = in_turn(
        [
            lambda: tt.evaluate(log, policy, allow_untrusted=True),
            lambda: boosted_value(log, tau),
        ],
        repeats,
        warm=False,
    )
    work = f"evaluate(), n = {n:,}, {p} contexts, propensity fitted"
    of = "× boosted trees, doubly robust, five folds"
    return [at_most(2, work, ours / trees, 1, of, seconds=ours, peer=trees)]


def beside_numpy(n: int, repeats: int) -> list[Line]:
    """Row 3."""
    log, policy = people(n, 3, known=True), rule(3)
    tau = policy(log.context)
    how: dict[str, Any] = {"estimator": tt.SelfNormalized(clip=0.1), "allow_untrusted": True}

    def call() -> Any:
        return tt.evaluate(log, policy, **how)

    (ours, plain, given, slow), _ = in_turn(
        [
            call,
            lambda: numpy_value(log, tau, H),
            lambda: tt.evaluate(log, policy, bandwidth=H, **how),
            lambda: without_loops(call),
        ],
        repeats,
    )
    work = f"evaluate() self-normalized, n = {n:,}"
    of = "× numpy's value and standard error"
    return [
        at_most(3, f"{work}, bandwidth chosen", ours / plain, 8, of, seconds=ours, peer=plain),
        told(f"{work}, bandwidth given", given / plain, of, seconds=given),
        told(f"{work}, bandwidth chosen, by numpy alone", slow / ours, "× with compiled loops"),
    ]


def without_loops(call: Callable[[], Any]) -> Any:
    """Return what a call returns when every row goes through numpy."""
    with patch.dict(FEWEST, dict.fromkeys(FEWEST, sys.maxsize)):
        return call()
