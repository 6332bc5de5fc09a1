"""What an evaluation returns: frozen, self-describing, and plain when asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check, _drawing
from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.data.about import About
from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.inference.base import (
    ROUNDING,
    StudentInference,
    paired,
    simultaneous_probability,
    without_rounding,
)
from titrant.inference.diagnostics import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.bandwidth import Bandwidth
    from titrant.data.columns import Flow
    from titrant.inference.base import Inference, Interval
    from titrant.inference.diagnostics import Diagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Tabular):
    """The value of one policy on one log, with how sure one may be of it."""

    policy: str
    value: float
    """The estimate v̂ at the chosen bandwidth."""
    se: float
    """Its standard error by the delta method (variance only; the interval also knows the bias)."""
    rows: int
    ess: float
    """Effective sample size."""
    method: Mapping[str, Any]
    """Estimator, kernel, propensity, floor and outcome model, as plain values."""
    bandwidth: Bandwidth | None
    """None for estimators that have none."""
    confidence: Interval
    diagnostics: Diagnostics
    flow: Flow | None = None
    """What was done to the table that the log was made of; None if it was made of arrays."""
    about: About = field(default_factory=About, repr=False)
    """What the log calls doses and outcome, and which way is better."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval at ``level``."""
        return self.confidence.at(level)

    @property
    def units(self) -> str:
        """What the effective sample size counts, and how many there are: rows, or their groups."""
        groups = self.method.get("groups")
        return f"{self.rows:,}" if groups is None else f"{groups:,} groups"

    @property
    def trusted(self) -> bool:
        """Whether no check refuses the estimate."""
        return self.diagnostics.verdict is not Verdict.REFUSE

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON, with the interval at ``level``."""
        return {
            "policy": self.policy,
            "value": self.value,
            "se": self.se,
            "interval": self.confidence.to_dict(level),
            "rows": self.rows,
            "effective_sample_size": self.ess,
            "bandwidth": None if self.bandwidth is None else self.bandwidth.to_dict(),
            "method": dict(self.method),
            "diagnostics": self.diagnostics.to_dict(),
            "data": None if self.flow is None else self.flow.to_dict(),
        }

    def __str__(self) -> str:
        low, high = self.interval()
        h = "" if self.bandwidth is None else f"  h {_short(self.bandwidth.h.tolist())}"
        return (
            f"value {brief(self.value, high - low)}  95% CI {between(low, high)}{h}  "
            f"ESS {self.ess:,.0f} of {self.units}  {self.diagnostics.verdict.value}"
        )

    def __repr__(self) -> str:
        return f"Estimate({self.policy}: {self})"

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the value with its interval; return the matplotlib axes."""
        return _forest(ax, {self.policy: (self.value, self.interval(level))}, self.about.value)

    def _texts(self, level: float) -> list[list[str]]:
        return [_headings(level), _cells(self, level)]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        h = None if self.bandwidth is None else self.bandwidth.h.tolist()
        return [
            {
                "policy": self.policy,
                "value": self.value,
                "low": low,
                "high": high,
                "se": self.se,
                "bandwidth": h,
                "ess": self.ess,
                "rows": self.rows,
                "verdict": self.diagnostics.verdict.value,
                "reason": None,
            }
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast(Tabular):
    """The difference of two policies on the same rows."""

    a: str
    b: str
    difference: float
    """v̂_a − v̂_b; negative means that a loses less."""
    se: float
    confidence: Interval
    margin: float | None = None
    """By how much a may be worse than b and still count as not worse; None if that is not asked."""
    maximize: bool | None = None
    """Whether the outcome is a reward, so that less is worse; None where nobody said it."""
    about: About = field(default_factory=About, repr=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the difference at ``level``."""
        return self.confidence.at(level)

    def bound(self, level: float = 0.95) -> float:
        """Return the one-sided bound at ``level``: how much worse a may be than b, at the most.

        That is an end of the interval at 2·level − 1. Worse is more, or less of a reward.
        """
        if _check.probability(level, "level", "bound") <= 0.5:  # noqa: PLR2004
            raise _check.invalid("level", "bound", "a number between 0.5 and 1", level)
        low, high = self.interval(2.0 * level - 1.0)
        return -low if self.maximize else high

    def not_worse(self, level: float = 0.95) -> bool:
        """Return whether a is shown to be worse than b by less than ``margin``.

        Shown means that the one-sided bound is below the margin: where a is worse by the margin,
        that happens in 1 − level of logs. Regulators ask for .975, the end of a 95 % interval.
        """
        if self.margin is None:
            raise InvalidArgument(
                f"`{self.a} − {self.b}` has no margin; ask for contrast(a, b, margin=…)."
            )
        return self.bound(level) < self.margin

    def better(self, level: float = 0.95) -> str | None:
        """Return the better of the two, None where the interval leaves it open."""
        low, high = self.interval(level)
        if low <= 0 <= high:
            return None
        return self.a if (low > 0) is bool(self.maximize) else self.b

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON, with the interval at ``level``."""
        found: dict[str, Any] = {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "se": self.se,
            "interval": self.confidence.to_dict(level),
        }
        if self.margin is None:
            return found
        judged = {
            "margin": self.margin,
            "maximize": bool(self.maximize),
            "level": level,
            "bound": self.bound(level),
            "not_worse": self.not_worse(level),
        }
        return found | {"margin": judged}

    def __str__(self) -> str:
        low, high = self.interval()
        difference = brief(self.difference, high - low)
        return f"{self.a} − {self.b}: {difference}  95% CI {between(low, high)}{self._judged()}"

    def _judged(self) -> str:
        """Return the verdict about the margin in words, at the one-sided level of 95 %."""
        if self.margin is None:
            return ""
        shown = "not worse" if self.not_worse() else "not shown to be not worse"
        return (
            f"  {shown} by more than {self.margin:g} (bound {brief(self.bound())}, one-sided 95%)"
        )

    def __repr__(self) -> str:
        return f"Contrast({self})"

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the difference with its interval beside zero; return the matplotlib axes."""
        row = {f"{self.a} − {self.b}": (self.difference, self.interval(level))}
        return _forest(ax, row, self.about.difference, line=0.0)

    def _texts(self, level: float) -> list[list[str]]:
        low, high = self.interval(level)
        difference = brief(self.difference, high - low)
        cells = [f"{self.a} − {self.b}", difference, between(low, high)]
        headings = ["difference", "value", f"{100 * level:g}% CI"]
        # Which is better is said where someone said which way is.
        known = [] if self.maximize is None else ["better"]
        return [[*headings, *known], [*cells, *(self.better(level) or "not clear" for _ in known)]]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        known = None if self.maximize is None else self.better(level)
        numbers = {"difference": self.difference, "low": low, "high": high, "se": self.se}
        return [{"a": self.a, "b": self.b, **numbers, "better": known}]


@dataclass(frozen=True, slots=True)
class Differences(Tabular):
    """Paired differences of policies, one below the other."""

    contrasts: tuple[Contrast, ...]

    def __iter__(self) -> Iterator[Contrast]:
        return iter(self.contrasts)

    def __len__(self) -> int:
        return len(self.contrasts)

    def __str__(self) -> str:
        return "\n".join(map(str, self.contrasts))

    def _texts(self, level: float) -> list[list[str]]:
        tables = [one._texts(level) for one in self.contrasts]  # noqa: SLF001
        return [*tables[0][:1], *(table[1] for table in tables)]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        return [row for one in self.contrasts for row in one._numbers(level)]  # noqa: SLF001


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Tabular):
    """Several policies on one log, with all paired differences."""

    estimates: Mapping[str, Estimate]
    """By policy, in the order given; without those that are refused."""
    covariance: Array
    """Joint covariance (m, m) of the values, in the order of the estimates."""
    inference: Inference
    """What the intervals of all estimates and differences rest on."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """The policies that the log cannot answer for, each with the reason; they have no estimate."""
    about: About = field(default_factory=About, repr=False)
    """What the log calls doses and outcome, and which way is better."""

    @property
    def names(self) -> list[str]:
        """The names of the policies that have an estimate, in the order given."""
        return list(self.estimates)

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate of the policy called `name`; raise the reason if it is refused."""
        self._place(name)
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names of the policies that have an estimate, in their order."""
        return iter(self.estimates)

    def __contains__(self, name: object) -> bool:
        return name in self.estimates

    def __len__(self) -> int:
        return len(self.estimates)

    def only(self, names: Sequence[str]) -> Comparison:
        """Return the comparison of some of the policies."""
        kept = [self._place(name) for name in names]
        return Comparison(
            estimates={name: self.estimates[name] for name in names},
            covariance=self.covariance[np.ix_(kept, kept)],
            inference=self.inference.only(kept),
            about=self.about,
        )

    def refusing(self, refused: Mapping[str, str]) -> Comparison:
        """Return the comparison with some policies refused: reasons in place of estimates."""
        kept = [name for name in self.names if name not in refused]
        return replace(self.only(kept), refused={**self.refused, **refused})

    def said_of(self, about: About) -> Comparison:
        """Return the same with other names of what it is about."""
        own = {name: replace(e, about=about) for name, e in self.estimates.items()}
        return replace(self, estimates=own, about=about)

    def contrast(
        self, a: str, b: str, *, margin: float | None = None, maximize: bool | None = None
    ) -> Contrast:
        """Return how much the value of `a` differs from that of `b`, paired.

        With a ``margin`` ≥ 0 it also says whether a is shown to be not worse than b by more than
        that (non-inferiority); ``maximize`` says that the outcome is a reward, unless the log does.
        Raise the reason if either is refused.
        """
        reward = self.about.direction(maximize, "contrast")
        if margin is not None:
            _check.nonnegative(margin, "margin", "contrast")
        i, j = self._place(a), self._place(b)
        values = np.array([one.value for one in self.estimates.values()])
        between, se = paired(values, self.covariance, i, j)
        confidence = self.inference.contrast(i, j)
        # Sums in another order, as of pooled halves, are one number and shown as one.
        apart = without_rounding(between - confidence.center, abs(values[i]) + abs(values[j]))
        return Contrast(
            a=a,
            b=b,
            difference=between if apart else confidence.center,
            se=se,
            confidence=confidence,
            margin=margin,
            maximize=None if maximize is None and self.about.maximize is None else reward,
            about=self.about,
        )

    def differences(self) -> Differences:
        """Return the paired difference of every two policies, the first less the second."""
        pairs = combinations(self.names, 2)
        return Differences(tuple(self.contrast(a, b) for a, b in pairs))

    def simultaneous(self, level: float = 0.95, *, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Return intervals that hold for all policies at once with probability ``level``."""
        inference = self._student()
        p = simultaneous_probability(inference.covariance, level, seed)
        return {name: inference.interval(i).around(p) for i, name in enumerate(self.estimates)}

    def simultaneous_contrasts(
        self, reference: str, level: float = 0.95, *, seed: int = 0
    ) -> dict[str, tuple[float, float]]:
        """Return intervals of each policy less ``reference`` that hold at once."""
        inference, j = self._student(), self._place(reference)
        others = [i for i in range(len(self.estimates)) if i != j]
        d = np.eye(len(self.estimates))[others] - np.eye(len(self.estimates))[j]
        joint, own = d @ inference.covariance @ d.T, np.diagonal(inference.covariance)
        # A policy that is the reference but for rounding moves with nothing.
        moving = np.diagonal(joint) > ROUNDING * (own[others] + own[j])
        p = simultaneous_probability(joint * np.outer(moving, moving), level, seed)
        return {self.names[i]: inference.contrast(i, j).around(p) for i in others}

    def to_dict(
        self, level: float = 0.95, *, margin: float | None = None, maximize: bool | None = None
    ) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON; each pair once.

        ``margin`` and ``maximize`` are those of `contrast`.
        """
        pairs = combinations(self.names, 2)
        estimates = {name: e.to_dict(level) for name, e in self.estimates.items()}
        data = [estimate.pop("data") for estimate in estimates.values()]  # said once for all
        return {
            "estimates": estimates,
            "refused": dict(self.refused),
            "contrasts": [
                self.contrast(a, b, margin=margin, maximize=maximize).to_dict(level)
                for a, b in pairs
            ],
            "data": data[0] if data else None,
        }

    def __str__(self) -> str:
        refused = {name: f"refused: {reason}" for name, reason in self.refused.items()}
        said = {**self.estimates, **refused}
        width = max(map(len, said))
        lines = [f"{name:<{width}}  {what}" for name, what in said.items()]
        return "\n".join([*lines, *map(str, self._brief_differences())])

    def __repr__(self) -> str:
        values = [f"{name} {brief(e.value)}" for name, e in self.estimates.items()]
        refused = [f"{name} refused" for name in self.refused]
        apart = [
            f"{c.a} − {c.b} {brief(c.difference)} ({between(*c.interval())})"
            for c in self._brief_differences()
        ]
        between_them = f"; {', '.join(apart)}" if apart else ""
        return f"Comparison({', '.join(values + refused)}{between_them})"

    def _brief_differences(self) -> tuple[Contrast, ...]:
        """Return all differences where they are few lines, and none of many policies."""
        return self.differences().contrasts if len(self) <= MOST_PAIRED else ()

    def _shown_differences(self) -> tuple[Contrast, ...]:
        """Return all differences, or of many policies those to the first."""
        names = self.names
        if len(names) > MOST_PAIRED:
            return tuple(self.contrast(name, names[0]) for name in names[1:])
        return self.differences().contrasts

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the value of each policy with its interval; return the matplotlib axes."""
        rows = {name: (e.value, e.interval(level)) for name, e in self.estimates.items()}
        return _forest(ax, rows, self.about.value)

    def _texts(self, level: float) -> list[list[str]]:
        rows = [_cells(e, level) for e in self.estimates.values()]
        rows += [_refused_cells(name, reason) for name, reason in self.refused.items()]
        return [_headings(level), *rows]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        rows = [row for e in self.estimates.values() for row in e._numbers(level)]  # noqa: SLF001
        empty = dict.fromkeys(rows[0])
        refused = {"verdict": Verdict.REFUSE.value}
        return rows + [
            {**empty, **refused, "policy": name, "reason": reason}
            for name, reason in self.refused.items()
        ]

    def _repr_html_(self) -> str:
        shown = self._shown_differences()
        return Tabular._repr_html_(self) + (Differences(shown)._repr_html_() if shown else "")

    def _place(self, name: str) -> int:
        if name in self.refused:
            raise UntrustedEstimate(f"Policy {name!r} has no estimate. {self.refused[name]}")
        if name not in self.estimates:
            known = ", ".join(map(repr, [*self.estimates, *self.refused]))
            raise InvalidArgument(
                f"There is no policy {name!r} in this comparison; it has {known}."
            )
        return self.names.index(name)

    def _student(self) -> StudentInference:
        if not isinstance(self.inference, StudentInference):
            raise InvalidArgument(
                "Simultaneous intervals need `interval=RobustBiasCorrected()` or `Normal()`; "
                f"this comparison has {self.inference.interval(0).method} intervals."
            )
        return self.inference


MOST_PAIRED = 4
"""Policies up to which every two are compared where a comparison is shown in short."""


def _headings(level: float) -> list[str]:
    return ["policy", "value", f"{100 * level:g}% CI", "h", "ESS", "rows", "verdict"]


def _cells(estimate: Estimate, level: float) -> list[str]:
    """Return a row of the table that notebooks show."""
    low, high = estimate.interval(level)
    return [
        estimate.policy,
        brief(estimate.value, high - low),
        between(low, high),
        "–" if estimate.bandwidth is None else _short(estimate.bandwidth.h.tolist()),
        f"{estimate.ess:,.0f}",
        f"{estimate.rows:,}",
        estimate.diagnostics.verdict.value,
    ]


def _refused_cells(name: str, reason: str) -> list[str]:
    """Return the row of a policy without an estimate: no number, and why."""
    return [name, *["–"] * 5, f"{Verdict.REFUSE.value}: {reason}"]


def _forest(
    ax: Axes | None,
    rows: Mapping[str, tuple[float, tuple[float, float]]],
    label: str,
    line: float | None = None,
) -> Axes:
    values, ends = [value for value, _ in rows.values()], [pair for _, pair in rows.values()]
    drawn = _drawing.new_axes(ax, 0.8 + 1.3 * _drawing.ROW * len(rows))
    drawn.set_xlabel(_drawing.escaped(label))
    return _drawing.forest(drawn, list(rows), values, ends, line=line)


def _short(h: Any) -> str:  # noqa: ANN401  (a number or nested lists of numbers)
    return f"{h:.4g}" if isinstance(h, float) else "[" + ", ".join(map(_short, h)) + "]"
