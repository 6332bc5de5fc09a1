"""One comparison from several on rows that have nothing in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.bandwidth import Bandwidth
from titrant.inference.base import Inference, StudentInterval
from titrant.inference.diagnostics import Check, Diagnostics, Verdict
from titrant.inference.results import Comparison, Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.inference.base import Interval


def pooled(shares: Array, parts: Sequence[StudentInterval]) -> StudentInterval:
    """Return the interval of Σ share·center over independent parts, Welch's degrees of freedom.

    With vₖ = (shareₖ·seₖ)²: se² = Σvₖ, ν = (Σvₖ)²/Σ(vₖ²/νₖ).
    """
    variances = shares**2 * np.array([part.se**2 for part in parts])
    degrees = np.array([part.degrees for part in parts])
    total = float(variances.sum())
    spread = float(np.sum(variances**2 / degrees))
    return StudentInterval(
        float(shares @ [part.center for part in parts]),
        total**0.5,
        total**2 / spread if spread > 0 else float(degrees.min()),
        f"{parts[0].method}, two halves",
        next((part.note for part in parts if part.note), None),
    )


def student(interval: Interval) -> StudentInterval:
    """Return a t interval as it is; no other kind can be pooled."""
    if not isinstance(interval, StudentInterval):
        raise TypeError(f"halves are graded by t intervals, not by {type(interval).__name__}")
    return interval


def shares_of(parts: Sequence[Comparison]) -> Array:
    """Return the share of all rows that each part has."""
    rows = np.array([next(iter(part.estimates.values())).rows for part in parts], dtype=np.float64)
    return np.asarray(rows / rows.sum())


@dataclass(frozen=True, slots=True)
class PooledInference(Inference):
    """The intervals of several parts, each pooled."""

    parts: tuple[Inference, ...]
    shares: Array

    def interval(self, i: int) -> StudentInterval:
        """Return the interval of estimate i."""
        return pooled(self.shares, [student(part.interval(i)) for part in self.parts])

    def contrast(self, a: int, b: int) -> StudentInterval:
        """Return the interval of a − b, paired within each part."""
        return pooled(self.shares, [student(part.contrast(a, b)) for part in self.parts])


def pooled_comparison(parts: Sequence[Comparison]) -> Comparison:
    """Return the mean of comparisons of like-named policies, weighted by their rows."""
    shares = shares_of(parts)
    inference = PooledInference(tuple(part.inference for part in parts), shares)
    estimates = [
        _estimate([part[name] for part in parts], shares, inference.interval(i))
        for i, name in enumerate(parts[0].names)
    ]
    return Comparison(
        estimates={e.policy: e for e in estimates},
        covariance=np.tensordot(shares**2, np.stack([part.covariance for part in parts]), axes=1),
        inference=inference,
    )


def _estimate(parts: Sequence[Estimate], shares: Array, interval: StudentInterval) -> Estimate:
    return Estimate(
        policy=parts[0].policy,
        value=float(shares @ [part.value for part in parts]),
        se=float(np.sqrt(np.sum((shares * [part.se for part in parts]) ** 2))),
        rows=sum(part.rows for part in parts),
        ess=float(sum(part.ess for part in parts)),
        method=parts[0].method,
        bandwidth=_bandwidth([part.bandwidth for part in parts]),
        confidence=interval,
        diagnostics=_worse([part.diagnostics for part in parts]),
    )


def _bandwidth(chosen: Sequence[Bandwidth | None]) -> Bandwidth | None:
    """Return the mean bandwidth; each part is estimated at its own."""
    known = [h for h in chosen if h is not None]
    if not known:
        return None
    return Bandwidth(
        h=np.mean([b.h for b in known], axis=0),
        selector=known[0].selector,
        reason="The mean of the halves' bandwidths. " + " ".join(b.reason for b in known),
        kink=max(b.kink for b in known),
        flag=next((b.flag for b in known if b.flag), None),
    )


def _worse(reports: Sequence[Diagnostics]) -> Diagnostics:
    """Return each check as the part in which it is worse found it."""
    order = list(Verdict)
    names = dict.fromkeys(name for report in reports for name in report.names)
    found: list[Check | str] = [
        max(
            (report[name] for report in reports if name in report.names),
            key=lambda check: order.index(check.verdict),
        )
        for name in names
    ]
    return Diagnostics.of([*found, *dict.fromkeys(n for report in reports for n in report.notes)])
