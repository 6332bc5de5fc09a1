"""Count doubts about sound and about spoiled logs: ``python -m benchmarks.doubts``.

Logs of every design of `benchmarks.confounding`, `benchmarks.coverage` and `benchmarks.structure`
(with its structure said), none of which has a doubtful column, are looked at as they are; then one
column is spoiled, or an honest one is added. Counted are the logs in which a column is doubted at
all, and those in which the spoiled one is named. Codes are also looked for in columns alone, which
takes next to no time: honest ones of many kinds, and such with two codes side by side. The table
goes to ``benchmarks/results/doubts.json``; ``--logs 5`` is a trial and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from benchmarks.confounding.designs import (
    ATTACKED,
    CALIBRATION,
    FRESH,
    HELD_OUT,
    JUMPS,
    NEWEST,
    SEEN_SINCE,
    TUNING,
)
from benchmarks.structure.designs import DESIGNS as STRUCTURE
from titrant.inference.trust.doubts import heaped
from titrant.scaling import codes_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Spoil = Callable[[np.random.Generator, tt.LoggedData], Array]
    """Returns a column more (n,)."""
    Draw = Callable[[np.random.Generator, int], Array]
    """Returns a column (n,)."""

OUT = Path(__file__).parent / "results" / "doubts.json"
LOGS, ROWS = 100, (300, 1000)
ALONE_TO_LOGS = 4
"""So many times as many columns are looked at alone."""
ADDED = "added"
DESIGNS = {
    **TUNING, **HELD_OUT, **FRESH, **ATTACKED, **SEEN_SINCE, **NEWEST, **JUMPS, **CALIBRATION
}  # fmt: skip


# ── columns that are added ───────────────────────────────────────────────────────────────────────
def first(log: tt.LoggedData) -> Array:
    """Return the first context (n,)."""
    return log.context[:, 0]


def factor(log: tt.LoggedData) -> Array:
    """Return the first context (n,), 1 where it is 0."""
    return np.where(first(log) == 0.0, 1.0, first(log))


def noisy(rng: np.random.Generator, column: Array, r2: float) -> Array:
    """Return a column (n,) with noise, of which it explains ``r2``."""
    return column + column.std() * np.sqrt(1.0 / r2 - 1.0) * rng.normal(size=len(column))


def coded(rng: np.random.Generator, column: Array, code: float) -> Array:
    """Return a column (n,) in which a tenth of the rows hold a code."""
    return np.where(rng.random(len(column)) < 0.1, code, column)


def incomes(rng: np.random.Generator, log: tt.LoggedData) -> Array:
    """Return incomes in full (n,)."""
    return np.round(rng.lognormal(10.5, 0.8, len(log)))


def rounded_by_some(rng: np.random.Generator, column: Array, unit: float) -> Array:
    """Return a column (n,) of which half of the rows are rounded to a unit, others to a tenth."""
    return np.where(rng.random(len(column)) < 0.5, unit * np.round(column / unit), column.round(1))


def priced(rng: np.random.Generator, n: int, *, cut: float) -> Array:
    """Return list prices (n,), some of them cut by up to a third."""
    usual = np.array([9, 19, 29, 39, 49, 59, 69, 79, 89, 99, 129, 149, 199, 249, 299, 399.0])
    price = rng.choice(usual, n, p=(odds := 1.0 / np.sqrt(usual)) / odds.sum())
    return np.where(rng.random(n) < cut, np.round(price * rng.uniform(2 / 3, 1, n), 2), price)


@dataclass(frozen=True)
class Known:
    """What a context explains of the outcome and was there before the dose, which may follow it."""

    r2: float
    """Of the outcome by the context."""
    followed: float = 0.0
    """The correlation of dose and context."""
    without_effect: bool = False
    """The dose itself does nothing: outcomes are those of other rows."""

    def __call__(self, rng: np.random.Generator, log: tt.LoggedData) -> tt.LoggedData:
        """Return a log with such a context more, and in its outcomes."""
        t = log.doses[:, 0]
        y = rng.permutation(log.outcome) if self.without_effect else log.outcome
        chance = np.sqrt(1.0 - self.followed**2) * rng.normal(size=len(log))
        known = self.followed * (t - t.mean()) / t.std() + chance
        before = y.std() * np.sqrt(self.r2 / (1.0 - self.r2)) * known
        return with_column(log.with_outcome(y + before), before)


SPOILED: dict[str, Spoil] = {
    "outcome plus a context": lambda _, log: log.outcome + first(log),
    "outcome less the dose": lambda _, log: log.outcome - log.doses[:, 0],
    "twice the outcome plus the dose": lambda _, log: 2.0 * log.outcome + log.doses[:, 0],
    "outcome plus a context, rounded": lambda _, log: _rounded(log.outcome + first(log)),
    "outcome times a context": lambda _, log: log.outcome * factor(log),
    "outcome over a context": lambda _, log: log.outcome / factor(log),
    "outcome less a squared context": lambda _, log: log.outcome - first(log) ** 2,
    "outcome less a product of contexts": lambda _, log: (
        log.outcome - first(log) * log.context[:, -1]
    ),
    "dose in whole numbers of its sd": lambda _, log: np.round(
        log.doses[:, 0] / log.doses[:, 0].std()
    ),
    "outcome on another scale": lambda _, log: 3.0 - 2.0 * log.outcome,
    "whether the outcome is high": lambda _, log: 1.0 * (log.outcome > np.median(log.outcome)),
    "dose on another scale": lambda _, log: 2.0 * log.doses[:, 0] + 1.0,
    "transformed dose": lambda _, log: np.arctan(log.doses[:, 0]),
    "dose plus a context": lambda _, log: log.doses[:, 0] + first(log),
    "ages with -99": lambda rng, log: coded(rng, rng.integers(18, 90, len(log)), -99.0),
    "counts with -1": lambda rng, log: coded(rng, rng.poisson(9.0, len(log)), -1.0),
    "pressures with 999": lambda rng, log: coded(rng, rng.normal(120, 20, len(log)), 999.0),
    "ages with -99 and -98": lambda rng, log: coded(
        rng, coded(rng, rng.integers(18, 90, len(log)), -99.0), -98.0
    ),
    "answers from 1 to 5 with 8 and 9": lambda rng, log: coded(
        rng, coded(rng, rng.integers(1, 6, len(log)), 8.0), 9.0
    ),
    "changes with -99, sd 30": lambda rng, log: coded(rng, rng.normal(0, 30, len(log)), -99.0),
    "changes with 99, sd 30": lambda rng, log: coded(rng, rng.normal(0, 30, len(log)), 99.0),
    "changes with -99, sd 100": lambda rng, log: coded(rng, rng.normal(0, 100, len(log)), -99.0),
    "balances with 88": lambda rng, log: coded(rng, rng.uniform(-200, 200, len(log)), 88.0),
    "whole balances with -99": lambda rng, log: coded(
        rng, np.round(rng.uniform(-200, 200, len(log))), -99.0
    ),
    "ages with 77": lambda rng, log: coded(rng, rng.integers(18, 90, len(log)), 77.0),
    "incomes with 999": lambda rng, log: coded(rng, incomes(rng, log), 999.0),
    "incomes with 9999": lambda rng, log: coded(rng, incomes(rng, log), 9999.0),
    "incomes, a third 0, with 9999": lambda rng, log: coded(
        rng, incomes(rng, log) * (rng.random(len(log)) > 1 / 3), 9999.0
    ),
    "one value": lambda _, log: np.ones(len(log)),
    "a context in other units": lambda _, log: 2.2 * first(log) + 5.0,
    "later outcome, R² .90": lambda rng, log: noisy(rng, log.outcome, 0.90),
    "later outcome, R² .95": lambda rng, log: noisy(rng, log.outcome, 0.95),
    "later outcome, R² .98": lambda rng, log: noisy(rng, log.outcome, 0.98),
    "row numbers": lambda _, log: np.arange(1.0, len(log) + 1.0),
    "shuffled keys": lambda rng, log: 1000.0 + rng.permutation(3 * len(log))[: len(log)],
}
HONEST: dict[str, Spoil | Known] = {
    "earlier outcome, R² .90": Known(0.90),
    "earlier outcome, R² .95": Known(0.95),
    "earlier outcome, R² .98": Known(0.98),
    "earlier outcome, R² .95, correlated .5 with the dose": Known(0.95, 0.5),
    "earlier outcome, R² .95, correlated .8 with the dose": Known(0.95, 0.8),
    "earlier outcome, R² .95, correlated .5 with a dose without effect": Known(
        0.95, 0.5, without_effect=True
    ),
    "cause of the dose, R² .95": lambda rng, log: noisy(rng, log.doses[:, 0], 0.95),
    "ages": lambda rng, log: rng.integers(18, 90, len(log)),
    "incomes in full": incomes,
    "incomes in thousands": lambda rng, log: np.round(incomes(rng, log), -3),
    "changes of weight": lambda rng, log: rounded_by_some(rng, rng.normal(-2, 6, len(log)), 5.0),
    "scores in elevenths": lambda rng, log: 11.0 * rng.binomial(14, 0.5, len(log)),
    "scores, a tenth at the top, 99": lambda rng, log: np.minimum(
        np.round(rng.normal(77, 17, len(log))), 99.0
    ),
    "percentages of nines": lambda rng, log: np.round(99.0 * rng.beta(3, 3, len(log)) ** 0.1),
    "counts about 88": lambda rng, log: rng.poisson(88, len(log)),
    "prices such as 99": lambda rng, log: priced(rng, len(log), cut=0.0),
    "prices such as 99, half of them cut": lambda rng, log: priced(rng, len(log), cut=0.5),
    "days after, some before": lambda rng, log: rng.geometric(0.2, len(log)) - 4.0,
    "rare event": lambda rng, log: 1.0 * (rng.random(len(log)) < 0.01),
}


# ── columns that are looked at alone ─────────────────────────────────────────────────────────────
def levels(*values: float, odds: tuple[float, ...] | None = None) -> Draw:
    """Return a draw of few values, with these odds or as likely as each other."""
    share = None if odds is None else np.array(odds) / sum(odds)
    return lambda rng, n: rng.choice(np.array(values, dtype=float), n, p=share)


def mostly_zero(rng: np.random.Generator, column: Array, zeros: float) -> Array:
    """Return a column (n,) of which a share is 0."""
    return np.where(rng.random(len(column)) < zeros, 0.0, column)


def within(column: Array, low: float, high: float) -> Array:
    """Return a column (n,) in whole numbers from low to high, at which what lies beyond counts."""
    return np.clip(np.round(column), low, high)


ALONE: dict[str, Draw] = {
    # scales
    "answers from 1 to 5": levels(1, 2, 3, 4, 5),
    "answers from 1 to 5, few in the middle": levels(1, 2, 3, 4, 5, odds=(30, 3, 2, 15, 50)),
    "answers from 1 to 7, bent": levels(1, 2, 3, 4, 5, 6, 7, odds=(1, 1, 2, 5, 20, 40, 30)),
    "answers from -2 to 2": levels(-2, -1, 0, 1, 2),
    "answers from -2 to 2 without 0": levels(-2, -1, 1, 2),
    "answers from 0 to 10": lambda rng, n: 1.0 * rng.binomial(10, 0.8, n),
    "answers from 0 to 10, mostly 0": lambda rng, n: mostly_zero(
        rng, 1.0 * rng.integers(0, 11, n), 0.7
    ),
    "of newborns, 0 to 10, mostly 9": levels(
        *range(1, 11), odds=(0.2, 0.2, 0.3, 0.4, 0.6, 1, 3, 12, 78, 4)
    ),
    "none or one": levels(0, 1),
    "one in fifty": levels(0, 1, odds=(49, 1)),
    "one or two": levels(1, 2),
    "-1, 0 and 1": levels(-1, 0, 1),
    "-1, 0 and 1, mostly 0": levels(-1, 0, 1, odds=(3, 94, 3)),
    "grades from 1.0 to 5.0 by thirds": levels(
        1, 1.3, 1.7, 2, 2.3, 2.7, 3, 3.3, 3.7, 4, 5, odds=(5, 8, 9, 10, 12, 12, 11, 9, 7, 7, 10)
    ),
    "grades -3, 0, 2, 4, 7, 10, 12": levels(
        -3, 0, 2, 4, 7, 10, 12, odds=(1, 5, 10, 24, 30, 20, 10)
    ),
    "story points": levels(1, 2, 3, 5, 8, 13, odds=(30, 30, 20, 12, 6, 2)),
    "story points, mostly 1 and 2": levels(1, 2, 3, 5, 8, odds=(60, 30, 6, 2, 2)),
    "doubled doses": levels(1, 2, 4, 8, 16, 32),
    "tablets of 5, 10, 20, 40, 80": levels(5, 10, 20, 40, 80, odds=(10, 30, 35, 20, 5)),
    "speed limits": levels(30, 50, 70, 100, 130, odds=(40, 30, 15, 10, 5)),
    "hours": lambda rng, n: 1.0 * rng.integers(0, 24, n),
    "months": lambda rng, n: 1.0 * rng.integers(1, 13, n),
    # counts
    "few events": lambda rng, n: rng.poisson(0.5, n),
    "events": lambda rng, n: rng.poisson(4.0, n),
    "uneven counts": lambda rng, n: rng.negative_binomial(0.3, 0.03, n),
    "uneven counts, mostly 0": lambda rng, n: mostly_zero(
        rng, 1.0 * rng.negative_binomial(1, 0.15, n), 0.8
    ),
    "counts with a long tail": lambda rng, n: np.minimum(rng.zipf(2.0, n), 1e6),
    "pairs": lambda rng, n: 2.0 * rng.poisson(1.5, n),
    "packs of six": lambda rng, n: 6.0 * rng.geometric(0.5, n),
    "cigarettes a day": levels(
        0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 60, odds=(60, 2, 2, 2, 4, 1, 9, 5, 11, 2, 2, 0.5)
    ),
    "people at home": lambda rng, n: 1.0 + rng.poisson(1.4, n),
    "counts up to 9": lambda rng, n: within(rng.exponential(2.0, n), 0, 9),
    "visits up to 8, many at 8": lambda rng, n: within(rng.exponential(4.0, n), 0, 8),
    "goals more than theirs": lambda rng, n: rng.poisson(1.5, n) - rng.poisson(1.2, n),
    "days after, none before -2": lambda rng, n: rng.geometric(0.1, n) - 3.0,
    "minutes late": lambda rng, n: np.round(rng.gamma(1.5, 6.0, n) - 6.0),
    "strokes over par": lambda rng, n: np.round(rng.normal(3, 5, n)),
    # ages and years
    "ages of adults": lambda rng, n: rng.integers(18, 90, n),
    "ages of all": lambda rng, n: within(rng.beta(1.3, 1.7, n) * 101, 0, 100),
    "ages of the old": lambda rng, n: 65.0 + np.minimum(np.floor(rng.exponential(9.0, n)), 40.0),
    "ages of the very old": lambda rng, n: 90.0 + np.minimum(np.floor(rng.exponential(4.0, n)), 18),
    "ages up to 99": lambda rng, n: within(rng.normal(70, 15, n), 18, 99),
    "ages up to 90": lambda rng, n: within(rng.normal(60, 20, n), 18, 90),
    "ages of children in months": lambda rng, n: 1.0 * rng.integers(0, 60, n),
    "years": lambda rng, n: 1.0 * rng.integers(1990, 2025, n),
    "years of birth": lambda rng, n: np.round(rng.normal(1968, 17, n)),
    "years of few": levels(1998, 1999, 2008, 2009),
    # percentages
    "percentages": lambda rng, n: np.round(100 * rng.beta(2, 2, n)),
    "percentages, many at 100": lambda rng, n: within(rng.normal(85, 20, n), 0, 100),
    "percentages, many near 100": lambda rng, n: np.round(100 * rng.beta(20, 1, n)),
    "percentages by tens": lambda rng, n: 10.0 * rng.binomial(10, 0.6, n),
    "oxygen": lambda rng, n: within(100.5 - rng.gamma(2.0, 1.5, n), 60, 100),
    "oxygen up to 99": lambda rng, n: within(99.5 - rng.gamma(2.0, 1.0, n), 60, 99),
    "discounts": levels(0, 5, 10, 15, 20, 25, 30, 50, 70, odds=(50, 8, 12, 5, 10, 4, 5, 4, 2)),
    # measured
    "temperatures": lambda rng, n: np.round(rng.normal(8, 5, n)),
    "temperatures, cold": lambda rng, n: np.round(rng.normal(-5, 9, n)),
    "fever in whole degrees F": lambda rng, n: np.round(98.4 + rng.gamma(1.0, 1.0, n)),
    "fever in tenths F": lambda rng, n: np.round(rng.normal(98.4, 0.7, n), 1),
    "pressures in tens": lambda rng, n: 10.0 * np.round(rng.normal(13, 2, n)),
    "multiples of 5": lambda rng, n: 5.0 * rng.poisson(5.0, n),
    "meridians": lambda rng, n: np.round(rng.normal(-95, 12, n)),
    "z-scores in tenths": lambda rng, n: np.round(rng.normal(size=n), 1),
    "scores of 0 mean and sd 40": lambda rng, n: np.round(rng.normal(0, 40, n)),
    "credit scores": lambda rng, n: within(rng.normal(710, 90, n), 300, 850),
    "half the limit of detection": lambda rng, n: np.where(
        (x := rng.lognormal(1, 1, n)) < 1.0, 0.5, x.round(1)
    ),
    # money
    "prices": lambda rng, n: priced(rng, n, cut=0.0),
    "prices of plans": levels(0, 9, 29, 49, 99, odds=(40, 30, 15, 10, 5)),
    "prices from 98": levels(98, 99, 109, 119, 129),
    "prices in full, some sold out": lambda rng, n: np.round(rng.lognormal(4, 1, n)) - 0.01,
    "money in round numbers": lambda rng, n: 500.0 * np.round(rng.lognormal(1.5, 0.8, n)),
    "money, mostly 0": lambda rng, n: mostly_zero(rng, np.round(rng.lognormal(5, 1, n), 2), 0.6),
    "money in tens, mostly 0": lambda rng, n: mostly_zero(
        rng, 10 * np.round(rng.lognormal(2, 1, n)), 0.8
    ),
    "money back now and then": lambda rng, n: np.where(
        rng.random(n) < 0.03, -20.0, np.round(rng.lognormal(4, 0.8, n), 2)
    ),
    "balances": lambda rng, n: np.round(rng.normal(50, 150, n), 2),
    "balances in tens": lambda rng, n: 10.0 * np.round(rng.normal(5, 15, n)),
    # heavy tails
    "t with 2 degrees of freedom": lambda rng, n: rng.standard_t(2, n),
    "t with 2 degrees of freedom, rounded": lambda rng, n: np.round(rng.standard_t(2, n)),
    "costs": lambda rng, n: np.round(rng.lognormal(6, 2, n)),
    "Pareto": lambda rng, n: np.round(rng.pareto(1.5, n), 1),
    # looked at later
    "children, up to 12": lambda rng, n: within(rng.geometric(0.45, n) - 1.0, 0, 12),
    "hours of half and full days": levels(0, 2, 4, 8, 9, odds=(2, 2, 2, 3, 1)),
    "packs of 1 to 5, and of 10": levels(1, 2, 3, 4, 5, 10, odds=(8, 4, 3, 2, 1, 2)),
    "arrivals less departures": lambda rng, n: rng.poisson(20, n) - rng.poisson(2, n),
    "changes up to 9 either way": lambda rng, n: within(2.0 * rng.standard_t(2, n), -9, 9),
    "none, or about 40": lambda rng, n: mostly_zero(rng, rng.normal(40, 5, n), 0.2),
    "costs up to 9999, half of them 0": lambda rng, n: np.minimum(
        mostly_zero(rng, rng.gamma(1.0, 900.0, n), 0.5), 9999.0
    ),
}
"""Honest columns of many kinds: no value of them is a code."""
LIKE_CODED: dict[str, Draw] = {
    "categories 1 to 4, and 9": levels(1, 2, 3, 4, 9, odds=(6, 6, 4, 3, 1)),
    "hours from 0 to 4, and 8": levels(0, 1, 2, 3, 4, 8, odds=(3, 3, 3, 3, 3, 10)),
    "packs of 1 to 5, and of 8": levels(1, 2, 3, 4, 5, 8, odds=(8, 4, 3, 2, 1, 2)),
    "profits of bids, -1 for a lost one": lambda rng, n: np.where(
        rng.random(n) < 0.6, -1.0, np.round(rng.gamma(3.0, 10.0, n), 2)
    ),
    "sales, -5 for a return": lambda rng, n: np.where(
        rng.random(n) < 0.06, -5.0, np.round(rng.gamma(2.0, 20.0, n), 2)
    ),
    "prices of 9, 19, 29, 39 and 99": levels(9, 19, 29, 39, 99, odds=(3, 3, 2, 1, 1)),
    "prices of 7, 17, 27 and 77": levels(7, 17, 27, 77),
}
"""Honest columns that no number tells from coded ones: a doubt about them is to be ignored."""
CHOSEN: dict[str, Draw] = {
    "doses 1, 2, 3, 4, 8": levels(1, 2, 3, 4, 8),
    "doses 1, 2, 3, 8": levels(1, 2, 3, 8, odds=(4, 3, 2, 1)),
    "doses 1, 2, 3, 9": levels(1, 2, 3, 9),
    "doses 0 to 5, and 9": levels(0, 1, 2, 3, 4, 5, 9),
    "doses 5, 10, 20, 99": levels(5, 10, 20, 99),
    "doses 10, 20, 30, 77": levels(10, 20, 30, 77),
}
"""Honest doses, which are looked at as such."""
BASES: dict[str, Draw] = {
    "ages": ALONE["ages of adults"],
    "answers": ALONE["answers from 1 to 5"],
    "answers from 0 to 10": levels(*range(11)),
    "counts": lambda rng, n: rng.poisson(9.0, n),
    "pressures": lambda rng, n: rng.normal(120, 20, n),
    "changes": lambda rng, n: np.round(rng.normal(0, 5, n), 1),
}
"""What codes are put into, each in 5 % of the rows."""
PAIRS: dict[str, tuple[tuple[float, ...], ...]] = {
    "ages": (
        (-99, -98), (98, 99), (-1, -2), (-7, -8), (-8, -9), (-7, -8, -9), (997, 998, 999),
        (998, 999), (9998, 9999), (-88, -99), (-98,), (-97,), (-90,),
        tuple(range(-99, -94)), tuple(range(9995, 10000)), tuple(range(-8, 0)), (996, 998),
        (996, 999), (-99, -96), (-66, -77, -88, -99), (9996, 9998, 9999), (-6, -7, -8, -9, -99),
    ),
    "answers": ((8, 9), (98, 99), (-99, -98), (-8, -9), (998, 999), (9,), (-1,)),
    "answers from 0 to 10": ((-9,), (-8, -9)),
    "counts": ((-99, -98), (-1, -2), (-8, -9), (98, 99), (998, 999)),
    "pressures": (
        (-99, -98), (-1, -2), (998, 999), (9998, 9999), (-95, -98, -99), (991, 992, 993, 994, 995),
    ),
    "changes": ((-99, -98), (98, 99), (998, 999), (9998, 9999), (-98,)),
}  # fmt: skip


def two_codes(rng: np.random.Generator, base: str, found: tuple[float, ...], rows: int) -> Array:
    """Return a column (n,) with codes, each in 5 % of the rows."""
    column = np.asarray(BASES[base](rng, rows), dtype=float)
    place = rng.random(rows)
    for k, code in enumerate(found):
        column[(place >= 0.05 * k) & (place < 0.05 * (k + 1))] = code
    return column


def seen_in(column: Array) -> set[float]:
    """Return the values of a column (n,) that look like codes."""
    far = codes_of(column)
    return {v for v in (*far, *(v for v, _ in heaped(column, far))) if v}


def count_alone(columns: int) -> dict[str, dict[str, float]]:
    """Return the shares of columns that are doubted, and in which all codes are seen."""

    def drawn(kind: int) -> Any:
        return ((np.random.default_rng([11, kind, k]), ROWS[k % 2]) for k in range(columns))

    honest = {
        name: share(bool(seen_in(1.0 * draw(rng, n))) for rng, n in drawn(i))
        for i, (name, draw) in enumerate(ALONE.items())
    }
    like_coded = {
        name: share(bool(seen_in(1.0 * draw(rng, n))) for rng, n in drawn(2000 + i))
        for i, (name, draw) in enumerate(LIKE_CODED.items())
    }
    chosen = {
        name: share(bool(codes_of(draw(rng, n), chosen=True)) for rng, n in drawn(3000 + i))
        for i, (name, draw) in enumerate(CHOSEN.items())
    }
    cases = [(base, pair) for base, pairs in PAIRS.items() for pair in pairs]
    coded = {
        f"{base} with {' and '.join(f'{v:g}' for v in pair)}": share(
            seen_in(two_codes(rng, base, pair, n)) == set(pair) for rng, n in drawn(1000 + i)
        )
        for i, (base, pair) in enumerate(cases)
    }
    return {"honest": honest, "like coded": like_coded, "chosen": chosen, "coded": coded}


def _rounded(column: Array) -> Array:
    """Return a column (n,) rounded to a twentieth of its sd."""
    unit = column.std() / 20.0
    return np.round(column / unit) * unit


# ── the count ────────────────────────────────────────────────────────────────────────────────────
def doubted(log: tt.LoggedData) -> dict[str, str]:
    """Return the doubts about a log, by name."""
    return {check.name: check.message for check in tt.describe(log).doubts}


def with_column(log: tt.LoggedData, column: Array) -> tt.LoggedData:
    """Return a log with a context more."""
    x = np.column_stack([log.context, column])
    return tt.LoggedData(x, log.treatment, log.outcome, names=[*log.names, ADDED])


def count(logs: int) -> dict[str, Any]:
    """Return the shares of logs that are doubted, as they are and with a column more."""
    clean = {
        name: {
            str(rows): share(bool(doubted(design.draw(rows, [7, rows, k]))) for k in range(logs))
            for rows in ROWS
        }
        for name, design in DESIGNS.items()
    }
    for name, structured in STRUCTURE.items():
        clean[name] = {
            str(rows): share(
                bool(doubted(structured.versions(rows, [7, rows, k])[0])) for k in range(logs)
            )
            for rows in ROWS
        }
    added: dict[str, dict[str, float]] = {}
    for what, spoils in (("spoiled", SPOILED), ("honest", HONEST)):
        added[what] = {kind: share(_named(spoil, logs)) for kind, spoil in spoils.items()}
    return {"logs": logs, "clean": clean, **added, "alone": count_alone(ALONE_TO_LOGS * logs)}


def _named(spoil: Spoil | Known, logs: int) -> list[bool]:
    """Return whether the added column is named, in logs of the designs in turn.

    Designs with yes/no outcomes are left out: what explains nine tenths of one knows it.
    """
    found = []
    designs = [d for d in DESIGNS.values() if len(np.unique(d.draw(100, [1]).outcome)) > 2]
    for k in range(logs):
        rows = ROWS[k % len(ROWS)]
        log = designs[k % len(designs)].draw(rows, [8, rows, k])
        more = spoil(np.random.default_rng([9, k]), log)
        more = more if isinstance(more, tt.LoggedData) else with_column(log, more)
        found.append(any(repr(ADDED) in message for message in doubted(more).values()))
    return found


def share(found: Any) -> float:
    """Return the share of what is true."""
    truths = list(found)
    return round(sum(truths) / len(truths), 4)


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOGS)
    logs = parser.parse_args().logs
    start = time.process_time()
    found = count(logs)
    shares = [s for of_rows in found["clean"].values() for s in of_rows.values()]
    print(f"{len(shares)} clean designs and sizes: {np.mean(shares):.4f} doubted, {max(shares):.2f}"
          f" at most; {time.process_time() - start:.0f} s of CPU")  # fmt: skip
    for name, by_rows in found["clean"].items():
        if any(by_rows.values()):
            print(f"  {name}: {by_rows}")
    for what in ("spoiled", "honest"):
        for kind, named in found[what].items():
            print(f"{what}: {kind}: named in {named:.2f}")
    for what, shares_of in found["alone"].items():
        for kind, named in shares_of.items():
            print(f"alone, {what}: {kind}: named in {named:.3f}")
    if logs >= LOGS:
        OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
