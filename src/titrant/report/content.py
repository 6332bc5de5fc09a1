"""What a report says: the results, and counts of doses in place of rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import __version__
from titrant.policies import StatusQuo, doses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.evaluation import Comparison
    from titrant.policies import Policy

_BINS = 40
LOGGED = "logged"


@dataclass(frozen=True, slots=True)
class DoseCounts:
    """How often one dose was given, and how often each policy would give it, by bins."""

    edges: Array
    """(bins + 1,)"""
    counts: Mapping[str, Array]
    """By policy, and `LOGGED`: (bins,)."""

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {
            "edges": self.edges.tolist(),
            "counts": {name: c.tolist() for name, c in self.counts.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything a page shows, small whatever the number of rows."""

    comparison: Comparison
    summary: str
    """The log in one line."""
    doses: tuple[DoseCounts, ...]
    """One for each of the d doses."""
    level: float
    maximize: bool
    settings: Mapping[str, object]
    truth: Mapping[str, float] | None = None
    """The true values of the policies, where the log was simulated."""

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        log: LoggedData,
        policies: Mapping[str, Policy],
        *,
        level: float,
        maximize: bool,
        settings: Mapping[str, object],
        truth: Mapping[str, float] | None = None,
    ) -> Report:
        """Return the report of a comparison made on `log`; of the rows only counts are kept."""
        tau = {name: _doses(policy, log) for name, policy in policies.items()}
        return cls(
            comparison=comparison,
            summary=repr(log).removeprefix("LoggedData(").removesuffix(")"),
            doses=tuple(
                dose_counts(log.doses[:, j], {name: t[:, j] for name, t in tau.items()})
                for j in range(log.dimension)
            ),
            level=level,
            maximize=maximize,
            settings=settings,
            truth=truth,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return every number of the page as plain values."""
        at = self.level
        names = list(self.comparison.estimates)
        return {
            "titrant": __version__,
            "log": self.summary,
            "level": at,
            "maximize": self.maximize,
            "result": self.comparison.to_dict(),
            "intervals": {n: list(self.comparison[n].interval(at)) for n in names},
            "difference_intervals": [
                {"a": a, "b": b, "interval": list(self.comparison.contrast(a, b).interval(at))}
                for a, b in combinations(names, 2)
            ],
            "doses": [d.to_dict() for d in self.doses],
            "truth": None if self.truth is None else dict(self.truth),
            "settings": dict(self.settings),
        }


def _doses(policy: Policy, log: LoggedData) -> Array:
    """Return the doses of a policy (n, d); those of the status quo are in the log."""
    if isinstance(policy, StatusQuo):
        return log.doses
    return doses(policy, log.context, log.dimension)


def dose_counts(logged: Array, by_policy: Mapping[str, Array]) -> DoseCounts:
    """Return counts of logged (n,) and policies' doses (n,) in bins over the range of all."""
    every = {LOGGED: logged, **by_policy}
    low = min(float(t.min()) for t in every.values())
    high = max(float(t.max()) for t in every.values())
    edges = np.linspace(low, high, _BINS + 1)
    return DoseCounts(edges, {name: np.histogram(t, edges)[0] for name, t in every.items()})
