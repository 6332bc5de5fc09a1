"""What models could not see: columns that were left out, no context at all, and the time.

Where something that changed while the log was written is not among the contexts, what models leave
of doses and of outcomes both drift along the order of the rows. Either drift alone confounds
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.inference import Verdict, rules
from titrant.inference.doubts import centered_ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.inference import Check

BLOCKS, RUNS = 10, 10
"""Blocks of consecutive rows whose means are compared, and runs of rows in each of them, by whose
means chance is judged: rows of one patient that follow each other are no drift."""
FEWEST = 2 * BLOCKS * RUNS
"""Rows from which on it is looked for."""
SORTED = 0.1
"""Neighbors that differ by less, in units of what chance makes 2: rows were sorted by that column.
Sorted by the outcome, or by the dose, they show no time. (A price may stay for weeks, so that doses
must rise or fall throughout.)

None of 3,600 simulated logs of 200, 1,000 and 2,500 independent rows, a third with long tails and a
third sorted by a context, was warned of; with 5 rows of a patient together, 4 of 800 logs of 200
rows and none of 1,600 larger ones. Drift that makes up a third of the variance of doses and of
outcomes, given the contexts, is seen in .67 of logs of 200 rows and in all larger ones; a tenth in
.02 and in all larger ones."""


def unseen_notes(log: LoggedData, *, modeled: bool) -> Iterator[str]:
    """Yield what an estimate takes for granted about columns that are no contexts.

    Where propensities are known and not ``modeled``, it takes nothing for granted.
    """
    if not modeled:
        return
    if not log.names:
        yield (
            "The log has no contexts: the estimate is right only if doses were given without "
            "regard to anything that matters to the outcome, as at random."
        )
    left_out = () if log.flow is None else log.flow.left_out
    for name in left_out:
        if name in log.ids:
            rows = len(log) / len(np.unique(log.ids[name]))
            yield (
                f"The column `{name}` is no context, being a key whose values have {rows:.1f} rows "
                "each on average: the estimate is right only if those who differ in dose and "
                "outcome do so by their contexts. Name it as a context if they do not."
            )


def drift_findings(
    ranks: Array, left: Array, log: LoggedData, orders: Mapping[str, Array]
) -> list[Check]:
    """Return a check if both doses and outcomes drift along one of several orders, of the first.

    ``ranks`` are F(t | x) and ``left`` is y − r̂(t, x), each (n,), by models that have not seen the
    row; ``log`` has the same rows, and so have the columns of ``orders``.
    """
    for along, column in orders.items():
        order = np.argsort(column, kind="stable")
        found = list(_findings(ranks[order], left[order], log.rows(order), along))
        if found:
            return found
    return []


def _findings(ranks: Array, left: Array, log: LoggedData, along: str) -> Iterator[Check]:
    steps = np.diff(log.treatment)
    by_dose = bool((steps >= 0.0).all() or (steps <= 0.0).all())
    if len(left) < FEWEST or by_dose or is_sorted(log.outcome):
        return
    found = rules.drift(drift(ranks), drift(left), along)
    if found.verdict is not Verdict.OK:
        yield found


def drift(values: Array) -> float:
    """Return the p-value of no drift along the order of values (n,).

    It is that of an analysis of variance of m_bs, the mean rank in run s of block b:

        F = S·Σ_b (m_b − m)²/(B − 1) / (Σ_bs (m_bs − m_b)²/(B·(S − 1))).
    """
    from scipy.special import fdtrc  # noqa: PLC0415

    runs = np.array_split(centered_ranks(values), BLOCKS * RUNS)
    m = np.array([run.mean() for run in runs]).reshape(BLOCKS, RUNS)
    of_block = m.mean(axis=1)
    between = RUNS * np.sum((of_block - m.mean()) ** 2) / (BLOCKS - 1)
    within = np.sum((m - of_block[:, None]) ** 2) / (BLOCKS * (RUNS - 1))
    if within == 0.0:
        return 1.0
    return float(fdtrc(BLOCKS - 1, BLOCKS * (RUNS - 1), between / within))


def is_sorted(values: Array) -> bool:
    """Return whether neighbors among values (n,) are much closer than chance would have them.

    That is von Neumann's ratio of their ranks, Σ(r_{i+1} − r_i)²/Σ(r_i − r̄)², about 2 by chance.
    """
    r = centered_ranks(values)
    total = float(r @ r)
    return total == 0.0 or float(np.sum(np.diff(r) ** 2)) < SORTED * total
