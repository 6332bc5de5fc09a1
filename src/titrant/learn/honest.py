"""The honest value of a learned policy: learned on one half, graded on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.bandwidth import Bandwidth
from titrant.inference.base import Inference, StudentInterval, quantile
from titrant.inference.diagnostics import Check, Diagnostics, Verdict
from titrant.inference.results import Comparison, Estimate
from titrant.inference.trust.rules import bears_on_confounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.inference.base import Interval
    from titrant.policies import Policy

# The honest value of a learned policy: learned on one half, graded on the other.
#
# A policy looks better on the rows it was chosen on, and also by the outcome model that helped to
# choose it. So each half grades the policy of the other half with outcome models of its own; the
# two grades are of independent rows and are averaged.

LEARNED, STATUS_QUO, MEAN_DOSE = "learned", "status quo", "mean dose"
"""The names under which every half compares."""


@dataclass(frozen=True, slots=True, repr=False)
class HonestValue(Tabular):
    """The value of a learned policy and its differences to others, from both halves."""

    halves: tuple[Comparison, ...]
    """Each half's comparison of the policy that the other half learned."""
    maximize: bool
    policies: tuple[Policy, ...] = ()
    """What each half was asked about: the policy that the other half learned."""

    @property
    def comparison(self) -> Comparison:
        """Both halves as one: means weighted by rows, errors of independent rows."""
        return pooled_comparison(self.halves)

    @property
    def value(self) -> float:
        """The mean of the halves' estimates, weighted by rows."""
        return self.comparison[LEARNED].value

    @property
    def se(self) -> float:
        """Its standard error: the halves share no rows."""
        return self.comparison[LEARNED].se

    @property
    def confidence(self) -> StudentInterval:
        """The bias-corrected interval of the value."""
        return student(self.comparison[LEARNED].confidence)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the value at ``level``."""
        return self.confidence.at(level)

    @property
    def names(self) -> list[str]:
        """What the learned policy is compared with."""
        return [name for name in self.halves[0].names if name != LEARNED]

    def contrast(self, name: str = STATUS_QUO) -> StudentInterval:
        """Return the paired difference, learned less ``name``."""
        return student(self.comparison.contrast(LEARNED, name).confidence)

    @property
    def trusted(self) -> bool:
        """Whether no check refuses the grade of either half."""
        return all(half[LEARNED].trusted for half in self.halves)

    @property
    def verdict(self) -> Verdict:
        """The worse verdict of the two halves."""
        return self.comparison[LEARNED].diagnostics.verdict

    def gain(self, name: str = STATUS_QUO, level: float = 0.95) -> tuple[float, float]:
        """Return the improvement over ``name``, positive if better, and its lower bound.

        The bound is one-sided: the improvement is larger with probability ``level``.
        """
        difference = self.contrast(name)
        p = _check.probability(level, "level", "HonestValue.gain")
        gain = difference.center if self.maximize else -difference.center
        return gain, gain - quantile(p, difference.degrees) * difference.se

    def improves(self, name: str = STATUS_QUO, level: float = 0.95) -> bool:
        """Return whether the one-sided bound of the improvement over ``name`` excludes zero.

        Never where the trust rules refuse the grade of the learned policy.
        """
        return self.trusted and self.gain(name, level)[1] > 0.0

    def objections(self, worst: Verdict = Verdict.OK) -> tuple[Check, ...]:
        """Return the checks that make the estimate no ground for a decision, the gravest kind.

        Those that refuse the grade of the learned policy; else warnings that bear on confounding,
        whatever ``worst`` is; else, unless ``worst`` is a warning, all others.
        """
        report = self.comparison[LEARNED].diagnostics
        refused = tuple(c for c in report if c.verdict is Verdict.REFUSE)
        warned = tuple(c for c in report if c.verdict is Verdict.WARN)
        confounded = tuple(c for c in warned if bears_on_confounding(c))
        return refused or confounded or (warned if worst is Verdict.OK else ())

    def objection(self, worst: Verdict = Verdict.OK) -> str | None:
        """Return why the estimate is no ground for a decision, in a clause; None if it is one.

        ``worst`` is the verdict up to which the trust checks are content; a warning that bears on
        confounding is an objection all the same.
        """
        found = self.objections(worst)
        if not found:
            return None
        names = ", ".join(check.name for check in found)
        if not self.trusted:
            return f"the trust rules refuse the grade of the learned policy ({names})"
        kind = " that bears on confounding" if bears_on_confounding(found[0]) else ""
        said = " ".join(dict.fromkeys(check.message for check in found)).rstrip(".")
        return f"the honest estimate carries a warning{kind} ({names}): {said}"

    def finding(
        self, name: str = STATUS_QUO, level: float = 0.95, worst: Verdict = Verdict.WARN
    ) -> str:
        """Return what was found about the improvement over ``name``, in a sentence.

        Where the improvement is clear, the sentence ends with the `objection` to it, if any.
        """
        bound = self.gain(name, level)[1] + 0.0  # no sign of nothing
        difference = self.comparison.contrast(LEARNED, name).difference
        gain = (difference if self.maximize else -difference) + 0.0
        side = f"the one-sided {100 * level:.6g}% bound is {bound:.4g}"
        said = f"The improvement over the {name} is {gain:.4g}; {side}"
        objection = self.objection(worst)
        if not self.trusted:
            return f"{said}, but {objection}."
        if bound > 0.0 and objection is not None:
            return f"{said}, which excludes zero, but {objection}."
        return f"{said}, which {'excludes' if bound > 0 else 'does not exclude'} zero."

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain values, with intervals at ``level``."""
        return {
            "value": self.value,
            "se": self.se,
            "interval": self.confidence.to_dict(level),
            "verdict": self.verdict.value,
            "maximize": self.maximize,
            "improves": self.improves(),
            "contrasts": {name: self.contrast(name).to_dict(level) for name in self.names},
            "halves": [half.to_dict(level) for half in self.halves],
        }

    def __str__(self) -> str:
        low, high = self.interval()
        contrast = self.comparison.contrast(LEARNED, STATUS_QUO)
        d_low, d_high = contrast.interval()
        return (
            f"honest value {brief(self.value, high - low)}  95% CI {between(low, high)}  "
            f"against the status quo {'+' * (contrast.difference >= 0)}"
            f"{brief(contrast.difference, d_high - d_low)} ({between(d_low, d_high)})  "
            f"{self.verdict.value}"
        )

    def __repr__(self) -> str:
        return f"HonestValue({self})"

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the learned policy and what it is compared with; return the matplotlib axes."""
        return self.comparison.plot(ax, level=level)

    def _texts(self, level: float) -> list[list[str]]:
        rows = [
            [r["honest"], brief(r["estimate"], r["high"] - r["low"]), between(r["low"], r["high"])]
            for r in self._numbers(level)
        ]
        return [["honest", "estimate", f"{100 * level:g}% CI"], *rows]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        names = ("honest", "estimate", "se", "low", "high")
        rows = [("value", self.value, self.se, *self.interval(level))]
        for name in self.names:
            c = self.comparison.contrast(LEARNED, name)
            rows.append((f"learned − {name}", c.difference, c.se, *c.interval(level)))
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _caption(self) -> str:
        return f"verdict: {self.verdict.value}"


# One comparison from several on rows that have nothing in common.


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
        about=parts[0].about,
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
        flow=parts[0].flow,
        about=parts[0].about,
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
