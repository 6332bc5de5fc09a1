"""From replications to a table: RMSE against the best bandwidth, coverage and width."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

DEFAULT = "averaged bias path"
DEFAULT_INTERVAL = f"{DEFAULT} | robust bias-corrected"
LARGE = 1000
"""Sample size from which the tighter bands hold."""
ANSWERED_OFTEN = 0.99
"""A bandwidth competes for the oracle's place when this share of the logs reach that far."""


def summarize(truth: float, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of one cell; coverages come with their Monte-Carlo standard error."""
    answered = [r for r in records if "values" in r]
    oracle = oracle_rmse(np.array([r["path"] for r in answered], dtype=float), truth)
    names = dict.fromkeys(name for r in answered for name in r["values"])
    kinds = dict.fromkeys(kind for r in answered for kind in r["intervals"])
    return {
        "replications": len(records),
        "answered": len(answered),
        "oracle_rmse": oracle,
        "selectors": {name: _selector(name, answered, truth, oracle) for name in names},
        "intervals": {kind: _interval(kind, answered, truth) for kind in kinds},
        "verdicts": _verdicts(answered, records, truth),
    }


def oracle_rmse(paths: np.ndarray, truth: float) -> float:
    """Return the least RMSE over the grid of bandwidths, one bandwidth for all logs (R, m)."""
    errors = (paths - truth) ** 2
    often = np.isfinite(paths).mean(axis=0) >= ANSWERED_OFTEN
    return float(np.sqrt(np.nanmean(errors[:, often], axis=0).min()))


def _selector(
    name: str, records: list[dict[str, Any]], truth: float, oracle: float
) -> dict[str, float]:
    values = np.array([r["values"][name] for r in records if name in r["values"]])
    rmse = float(np.sqrt(np.mean((values - truth) ** 2)))
    return {
        "replications": len(values),
        "bias": float(values.mean() - truth),
        "rmse": rmse,
        "rmse_over_oracle": rmse / oracle,
    }


def _interval(kind: str, records: list[dict[str, Any]], truth: float) -> dict[str, float]:
    ends = np.array([r["intervals"][kind] for r in records if kind in r["intervals"]])
    covered = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return {
        "replications": len(ends),
        "coverage": float(covered.mean()),
        "coverage_se": monte_carlo_se(float(covered.mean()), len(ends)),
        "median_width": float(np.median(ends[:, 1] - ends[:, 0])),
    }


def _verdicts(
    answered: list[dict[str, Any]], records: list[dict[str, Any]], truth: float
) -> dict[str, Any]:
    """Return how often the default interval covers among each verdict of the trust rules."""
    count, covered = Counter(r["verdict"] for r in records), Counter()
    for r in answered:
        low, high = r["intervals"][DEFAULT_INTERVAL]
        covered[r["verdict"]] += low <= truth <= high
    with_interval = Counter(r["verdict"] for r in answered)
    return {
        verdict: {
            "replications": count[verdict],
            "with_interval": with_interval[verdict],
            "covered": int(covered[verdict]),
        }
        for verdict in ("ok", "warn", "refuse")
    }


def monte_carlo_se(p: float, n: int) -> float:
    """Return √(p(1 − p)/n), the standard error of a coverage."""
    return math.sqrt(max(p * (1 - p), 0.0) / n) if n else math.nan


def band(cell: dict[str, Any]) -> tuple[float, float]:
    """Return the band that the coverage of the default 95 % interval is to keep in a cell."""
    if not cell["smooth"]:
        return 0.90, 1.0
    return (0.91, 0.98) if cell["n"] < LARGE else (0.93, 0.97)


def keeps_its_band(cell: dict[str, Any]) -> bool:
    """Return whether the default interval keeps its band within two Monte-Carlo errors."""
    found = cell["intervals"][DEFAULT_INTERVAL]
    slack = 2 * monte_carlo_se(0.95, found["replications"])
    low, high = band(cell)
    return low - slack <= found["coverage"] <= high + slack
