"""Count doubts about sound and about spoiled logs: ``python -m benchmarks.doubts``.

Logs of every design of `benchmarks.confounding`, `benchmarks.coverage` and `benchmarks.structure`
(with its structure said), none of which has a doubtful column, are looked at as they are; then one
column is spoiled, or an honest one is added. Counted are the logs in which a column is doubted at
all, and those in which the spoiled one is named. The table goes to
``benchmarks/results/doubts.json``; ``--logs 5`` is a trial and writes nothing.
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

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Spoil = Callable[[np.random.Generator, tt.LoggedData], Array]
    """Returns a column more (n,)."""

OUT = Path(__file__).parent / "results" / "doubts.json"
LOGS, ROWS = 100, (300, 1000)
ADDED = "added"
DESIGNS = {
    **TUNING, **HELD_OUT, **FRESH, **ATTACKED, **SEEN_SINCE, **NEWEST, **JUMPS, **CALIBRATION
}  # fmt: skip


# ── columns that are added ───────────────────────────────────────────────────────────────────────
def first(log: tt.LoggedData) -> Array:
    """Return the first context (n,)."""
    return log.context[:, 0]


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
    "outcome on another scale": lambda _, log: 3.0 - 2.0 * log.outcome,
    "whether the outcome is high": lambda _, log: 1.0 * (log.outcome > np.median(log.outcome)),
    "dose on another scale": lambda _, log: 2.0 * log.doses[:, 0] + 1.0,
    "transformed dose": lambda _, log: np.arctan(log.doses[:, 0]),
    "dose plus a context": lambda _, log: log.doses[:, 0] + first(log),
    "ages with -99": lambda rng, log: coded(rng, rng.integers(18, 90, len(log)), -99.0),
    "counts with -1": lambda rng, log: coded(rng, rng.poisson(9.0, len(log)), -1.0),
    "pressures with 999": lambda rng, log: coded(rng, rng.normal(120, 20, len(log)), 999.0),
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
    return {"logs": logs, "clean": clean, **added}


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
    if logs >= LOGS:
        OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
