"""A hidden cause as another residual: the bound is the same estimator of other outcomes.

Let some u that nobody recorded change the density of the dose, 1/Γ ≤ f(t | x, u)/f(t | x) ≤ Γ. Then
E[Y_t | x] = E[λY | t, x] with 1/Γ ≤ λ ≤ Γ and E[λ | t, x] = 1, and the largest such value is
E[Y]/Γ + (1 − 1/Γ)·CVaR of Y at p = Γ/(1 + Γ) (Rockafellar & Uryasev 2000). Of residuals that is

    ψ(e) = e/Γ + (1 − 1/Γ)·(c + (1 + Γ)·max(e − c, 0)),  c the weighted p-quantile of e:

the upper bound is the value with ψ(e) in place of e, the lower one that with −ψ(−e). Any c gives a
valid bound; at the quantile it is the smallest, and its derivative in c is 0, so that c adds
nothing to the standard error.

A difference a − b has one signed weight a row, A = κ_a·w_a − κ_b·w_b with κ = ∂value/∂mean(w·e),
and its largest value takes ψ(e) where A > 0 and −ψ(−e) where A < 0. So rows that both policies use
alike cancel: λ = f(t | x)/f(t | x, u) is the same for both. A value alone is the case κ_b = 0: rows
whose weight is negative, as it may be at bounds of the dose, count with their sign. Written as
outcomes, y + (ψ(e) − e), all of it goes through estimators, intervals, groups, weights and files as
they are.

A policy that moves the logged dose, such as t + δ, has λ = f(t | x)/f(t | x, u) times
f(t − δ | x, u)/f(t − δ | x) instead. So a row has one λ under that policy and another one under any
other, be it a rule of contexts or a second move, and each side is bounded by itself:
upper_a − lower_b. The status quo has w = 1 and no λ: there the move alone is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators.form import has_weighted_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.estimators import Joint, Question, Rows


def psi(e: Array, gamma: float, c: float) -> Array:
    """Return ψ(e) = e/Γ + (1 − 1/Γ)·(c + (1 + Γ)·max(e − c, 0)) (n,); e itself at Γ = 1."""
    tail = c + (1.0 + gamma) * np.maximum(e - c, 0.0)
    return np.asarray(e / gamma + (1.0 - 1.0 / gamma) * tail)


@dataclass(frozen=True, slots=True)
class SignedWeight:
    """A = Σ κ·w over one or two questions: how a row's residual counts in a value or difference."""

    parts: tuple[tuple[Question, float], ...]
    """Each question that has weights, with κ; that of a policy that is subtracted is negative."""

    @classmethod
    def of(cls, point: Joint) -> SignedWeight:
        """Return that of the first question less the second, if there are two."""
        signs = (1.0, -1.0)
        parts = []
        for i, (question, sign) in enumerate(zip(point.questions, signs, strict=False)):
            estimator = question.estimator
            if not (estimator.uses_outcome_model or estimator.uses_propensity):
                continue  # what was observed
            if has_weighted_terms(estimator):
                parts.append((question, sign * float(estimator.gradient(point.mean(i))[1])))
            else:
                raise InvalidArgument(
                    "A hidden cause is bounded through weighted residuals, and "
                    f"`{type(estimator).__name__}` has none. Take `DoublyRobust()` or "
                    "`SelfNormalized()`."
                )
        if not parts:
            raise InvalidArgument(
                "The value of the status quo is what was observed: no hidden cause can change it. "
                "Ask about a policy that gives other doses."
            )
        return cls(tuple(parts))

    def apart(self) -> tuple[SignedWeight, ...]:
        """Return that of each question by itself."""
        return tuple(SignedWeight((part,)) for part in self.parts)

    def __call__(self, rows: Mapping[int, Rows] | Sequence[Rows]) -> Array:
        """Return A (n,), up to a factor that all rows share."""
        each = [k * q.estimator.weight(rows[q.policy], q.scale) for q, k in self.parts]  # type: ignore[attr-defined]
        return np.asarray(sum(each))

    def residual(self, rows: Mapping[int, Rows] | Sequence[Rows]) -> Array:
        """Return e (n,), that of the first question: another of the same estimator has the same."""
        question, _ = self.parts[0]
        return np.asarray(question.estimator.baseline(rows[question.policy])[1])  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Weighted quantiles of residuals: sorted ±e (m,), by the sign of A, and the weights so far."""

    values: Array
    cumulated: Array

    @classmethod
    def of(cls, signed: SignedWeight, rows: Mapping[int, Rows]) -> Cutoffs:
        """Return those of some rows, all of a log or a sample of it."""
        a, e = signed(rows), signed.residual(rows)
        size = np.abs(a) * next(iter(rows.values())).counts
        near = np.flatnonzero(size > 0.0)
        values = np.where(a[near] < 0.0, -e[near], e[near])
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.cumsum(size[near][order]))

    def at(self, gamma: float, *, up: bool) -> float:
        """Return c: the Γ/(1 + Γ) quantile of the residuals, or of their negatives.

        That of the negatives is the negative of the 1/(1 + Γ) quantile: each is a value below which
        lies no more than that share, and above which no more than the rest.
        """
        if not len(self.values):
            return 0.0
        p = gamma / (1.0 + gamma) if up else 1.0 / (1.0 + gamma)
        i = int(np.searchsorted(self.cumulated, p * self.cumulated[-1]))
        c = float(self.values[min(i, len(self.values) - 1)])
        return c if up else -c


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows as they would look if a hidden cause of strength Γ worked for, or against, a policy."""

    signed: SignedWeight
    gamma: float
    cutoff: float
    up: bool
    """Whether the bound is the upper one."""

    def __call__(self, rows: Mapping[int, Rows] | Sequence[Rows]) -> Mapping[int, Rows]:
        """Return the rows under each policy with outcomes y + (ψ(e) − e) where weights are."""
        changed: dict[int, Rows]
        changed = dict(rows) if isinstance(rows, Mapping) else dict(enumerate(rows))
        e = self.signed.residual(rows)
        sign = np.where(self.signed(rows) < 0.0, -1.0, 1.0) * (1.0 if self.up else -1.0)
        moved = sign * psi(sign * e, self.gamma, self.cutoff) - e
        for question, _ in self.signed.parts:
            own = rows[question.policy]
            other = replace(own, y=own.y + moved)
            other.known.update(own.known)  # weights do not depend on outcomes
            changed[question.policy] = other
        return changed


@dataclass(frozen=True, slots=True)
class Doubted:
    """A statistic of rows, asked of the rows under one doubt after the other."""

    doubts: tuple[Doubt, ...]
    statistic: Callable[[Any], Any]

    def __call__(self, rows: Sequence[Rows]) -> Any:  # noqa: ANN401  (whatever the statistic is)
        """Return the statistic."""
        return self.statistic(doubted(self.doubts, rows))


def doubted(
    doubts: Sequence[Doubt], rows: Mapping[int, Rows] | Sequence[Rows]
) -> Mapping[int, Rows]:
    """Return the rows under one doubt after the other."""
    first, *others = doubts
    changed = first(rows)
    for doubt in others:
        changed = doubt(changed)
    return changed
