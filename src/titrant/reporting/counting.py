"""From rows to counts and means: what a page may keep of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.evaluation.questions.cells import cuts_of
from titrant.reporting.content import (
    LOGGED,
    DoseCounts,
    DoseSummary,
    OverlapMap,
    Profile,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from titrant._types import Array

    Counts = NDArray[np.int64]

BINS = 40
"""Of a histogram of doses."""
CELLS = 24
"""Of each side of an overlap map."""
PARTS = 8
"""Of a context with many values, in a profile."""
THIRDS = 3
_TENTHS = (0.1, 0.5, 0.9)


def dose_counts(logged: Array, by_policy: Mapping[str, Array]) -> DoseCounts:
    """Return counts of logged (n,) and policies' doses (n,) in bins over the range of all."""
    every = {LOGGED: logged, **by_policy}
    edges = _even_edges(list(every.values()), BINS)
    return DoseCounts(edges, {name: np.histogram(t, edges)[0] for name, t in every.items()})


def dose_summary(policy: str, treatment: str, tau: Array, logged: Array) -> DoseSummary:
    """Return mean, spread and change of the doses tau (n,) of a policy beside the logged (n,)."""
    low, median, high = np.quantile(tau, _TENTHS).tolist()
    return DoseSummary(
        policy=policy,
        treatment=treatment,
        mean=float(tau.mean()),
        low=low,
        median=median,
        high=high,
        change=float(np.abs(tau - logged).mean()),
    )


def overlap_map(
    policy: str, treatment: str, logged: Array, tau: Array, bandwidth: float | None
) -> OverlapMap:
    """Return how many rows have which logged dose (n,) and which dose of the policy (n,)."""
    edges = _even_edges([logged, tau], CELLS)
    near = None if bandwidth is None else float(np.mean(np.abs(logged - tau) < bandwidth))
    return OverlapMap(
        policy=policy,
        treatment=treatment,
        edges=edges,
        counts=np.histogram2d(logged, tau, (edges, edges))[0].astype(np.int64),
        within=near,
        bandwidth=bandwidth,
    )


def parts_of(x: Array, parts: int) -> NDArray[np.intp]:
    """Return the part of each row (n,), 0 … k − 1, of a context x (n,)."""
    return np.searchsorted(cuts_of(x, parts), x, side="left")


def profile(
    context: str, treatment: str, x: Array, logged: Array, by_policy: Mapping[str, Array]
) -> Profile:
    """Return the doses (n,) of the log and of each policy over parts of a context x (n,)."""
    part = parts_of(x, PARTS)
    rows = np.bincount(part).astype(np.int64)
    k = range(len(rows))
    ends = np.array([np.quantile(logged[part == j], (0.1, 0.9)) for j in k])
    return Profile(
        context=context,
        treatment=treatment,
        centers=_means(x, part, rows),
        rows=rows,
        logged=np.column_stack([ends[:, 0], _means(logged, part, rows), ends[:, 1]]),
        means={name: _means(tau, part, rows) for name, tau in by_policy.items()},
    )


def explained(dose: Array, part: NDArray[np.intp]) -> float:
    """Return the share of the variance of a dose (n,) that lies between parts (n,)."""
    total = float(dose.var())
    if total <= 0.0:
        return 0.0
    rows = np.bincount(part).astype(np.int64)
    between = rows @ (_means(dose, part, rows) - dose.mean()) ** 2 / len(dose)
    return float(between) / total


def main_contexts(X: Array, doses: list[Array], most: int) -> list[int]:
    """Return the columns of X (n, p) that doses, each (n,), go with most, the strongest first."""
    varying = [j for j in range(X.shape[1]) if np.ptp(X[:, j]) > 0]
    strength = {}
    for j in varying:
        part = parts_of(X[:, j], PARTS)
        strength[j] = max(explained(dose, part) for dose in doses)
    return sorted(varying, key=lambda j: (-strength[j], j))[:most]


def _means(values: Array, part: NDArray[np.intp], rows: Counts) -> Array:
    return np.asarray(np.bincount(part, weights=values) / rows)


def _even_edges(doses: list[Array], bins: int) -> Array:
    low, high = min(float(t.min()) for t in doses), max(float(t.max()) for t in doses)
    return np.linspace(low, high, bins + 1)
