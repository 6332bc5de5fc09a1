"""What a report says: the results, and counts of rows in place of the rows themselves.

A `Report` is all that a page is made of. It is small whatever the number of rows, and `gather`
(in `titrant.reporting.gather`) is the only way from a log to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING, Any

from titrant import __version__
from titrant._text import written_out
from titrant.reporting.numbers import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.bandwidth import BandwidthPath
    from titrant.data.columns import Flow
    from titrant.evaluation.curves import Curve
    from titrant.evaluation.description import Description
    from titrant.evaluation.evaluation import Comparison
    from titrant.inference import Check, Diagnostics
    from titrant.policies.points import Points
    from titrant.propensity import Calibration

    Counts = NDArray[np.int64]

LOGGED = "logged"
"""How the doses of the log are called beside those of the policies."""
DOSES = 3
"""Treatments that are drawn, if there are several."""
MOST_COLUMNS, MAIN_COLUMNS = 20, 4
"""Contexts that a table of columns has at most, and those that it has of a log with more."""
WORDS = ("dose", "price", "bid", "discount", "rate", "budget", "duration", "temperature")
"""What may be called by the last word of its name."""
ROUNDING = 1e-9
"""Of a distance in sd: less is none."""
CONTEXTS = 3
"""Contexts that doses are drawn against, and that subgroups are made by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """The log in a few words."""

    rows: int
    text: str
    """Its one line."""
    contexts: int
    """How many context columns it has."""
    treatments: tuple[str, ...]
    """What the doses are called, one name each."""
    outcome: str
    units: tuple[str, ...] = ()
    """Of the doses, one each; empty texts where they are not known."""
    outcome_unit: str = ""
    flow: Flow | None = None
    """What was done to the table that the log was made of."""
    sample: int | None = None
    """Rows drawn at random on which doses are counted, where that is not done on all."""


@dataclass(frozen=True, slots=True)
class DoseCounts:
    """How often one dose was given, and how often each policy would give it, by bins."""

    edges: Array
    """(bins + 1,)"""
    counts: Mapping[str, Counts]
    """By policy, and `LOGGED`: (bins,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoseSummary:
    """One dose under one policy, or as `LOGGED`."""

    policy: str
    treatment: str
    mean: float
    low: float
    """10 % of the rows get less."""
    median: float
    high: float
    """10 % of the rows get more."""
    change: float
    """The mean distance from the logged dose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How one dose goes with one context; arrays are (k,) over bins of the context."""

    context: str
    treatment: str
    centers: Array
    """The mean context of each bin."""
    rows: Counts
    logged: Array
    """Lowest tenth, mean and highest tenth of the logged dose (k, 3)."""
    means: Mapping[str, Array]
    """The mean dose of each policy (k,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSubgroup:
    """What a policy does to some of the rows, against the status quo."""

    context: str
    label: str
    rows: int
    logged_dose: Array
    """The mean logged dose (d,)."""
    policy_dose: Array
    """The mean dose of the policy (d,)."""
    outcome: float
    """The mean outcome as logged."""
    ess: float
    difference: float | None
    """Policy less status quo on these rows; None where too few rows speak about it."""
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapMap:
    """How many rows were logged at one dose while the policy would give another."""

    policy: str
    treatment: str
    edges: Array
    """(k + 1,), for both axes."""
    counts: Counts
    """(k, k): logged dose by policy's dose."""
    within: float | None
    """The share of rows whose two doses differ by less than the bandwidth."""
    bandwidth: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How unevenly rows carry the estimate of one policy."""

    policy: str
    reached: int
    """Rows with a weight other than 0."""
    ess: float
    mean: float
    mean_se: float
    largest: tuple[int, ...]
    """Numbers of rows 1, 2, 5, …"""
    share: tuple[float, ...]
    """The share of all weight that so many largest weights hold."""
    tail: float | None
    """The tail index of the largest weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """How far the rows that speak about one policy differ from all rows, by context.

    In standard deviations of the context: of rows near the policy's doses, and of the same rows
    divided by the propensity, as the estimate uses them.
    """

    policy: str
    contexts: tuple[str, ...]
    near: Array
    """(p,)"""
    weighted: Array
    """(p,)"""
    in_se: Array
    """The weighted distance in standard errors (p,)."""
    check: Check
    """Of all contexts, by these numbers."""

    @property
    def of_all(self) -> bool:
        """Whether all rows speak about the policy, as about one that changes the logged dose."""
        return bool((self.near < ROUNDING).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One context in a linear rule."""

    context: str
    values: tuple[float, ...]
    """What one unit of the context adds to each dose."""
    per_sd: tuple[float, ...] | None
    """What one standard deviation of the context adds to each dose, where it is in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A policy in words, in numbers and as a document."""

    policy: str
    formulas: tuple[str, ...]
    """One for each dose, then what they leave out: units of products, leaves of a tree."""
    intercept: tuple[float, ...] | None
    coefficients: tuple[Coefficient, ...]
    left_out: int
    """Coefficients that are smaller than those listed."""
    document: Mapping[str, Any] | None
    """What `load_policy` reads; None for code, and for documents too large for a page."""
    points: Points | None = None
    """What contexts add to the dose, of a rule with curves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything a page shows."""

    comparison: Comparison
    """All policies, the status quo among them."""
    status_quo: str
    """The name of the status quo in the comparison."""
    focus: str
    """The policy the page looks at most: the learned one, or else the best."""
    drawn: tuple[str, ...]
    """The policies in figures; tables have all."""
    log: LogSummary
    description: Description
    """What is in the log, with its main contexts, and which columns are doubtful."""
    level: float
    maximize: bool
    doses: tuple[DoseCounts, ...]
    """One for each of the d doses."""
    dose_summaries: tuple[DoseSummary, ...]
    curves: Mapping[str, Curve]
    """The value of the same dose for all, by treatment."""
    curve_notes: tuple[str, ...]
    strengths: Curve | None
    """The value of the focus applied to part, from the mean dose for all (0) to itself (1)."""
    shifts: Curve | None
    """The value of every logged dose raised or lowered by as much."""
    profiles: tuple[Profile, ...]
    subgroups: tuple[ShownSubgroup, ...]
    overlap: tuple[OverlapMap, ...]
    weights: tuple[Weights, ...]
    paths: Mapping[str, BandwidthPath]
    calibration: Calibration | None
    calibration_checks: Diagnostics
    balance: tuple[Balance, ...]
    rules: tuple[Rule, ...]
    versions: Mapping[str, str]
    settings: Mapping[str, object] = field(default_factory=dict)
    config: str | None = None
    """A file that repeats the run."""
    truth: Mapping[str, float] | None = None
    """The true values of the policies, where the log was simulated."""
    learned: Mapping[str, Any] | None = None
    """How the policy was learned, as `gather` describes it."""
    doubts: Mapping[str, Any] | None = None
    """What if we are wrong: sensitivity and stress as `gather` describes them, where asked for."""
    trade_offs: Mapping[str, Any] | None = None
    """The policies by several outcomes at once, where there are several."""
    protocol: Mapping[str, Any] | None = None
    """The hash of the study's protocol and its checklist, where it was announced."""
    person: Mapping[str, Any] | None = None
    """What gives one person's dose by the focus, as `whom.person` describes it."""
    title: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """What columns are called on the page."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The units of columns."""
    path: str | None = None
    """The file that the page was written to."""

    def __repr__(self) -> str:
        from titrant.reporting.words import decide  # noqa: PLC0415  (which is about reports)

        names = ", ".join(map(repr, [*self.comparison.names, *self.comparison.refused]))
        where = "not written" if self.path is None else repr(self.path)
        return f"Report({names}; verdict {decide(self).verdict.value}; {where})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the conclusion, its verdict and the values."""
        from titrant.reporting import words  # noqa: PLC0415

        found = words.decide(self)
        said = words.answer(self, found), f"{found.verdict.value}: {words.verdict(self, found)}"
        paragraphs = "".join(f"<p>{escape(written_out(text))}</p>" for text in said)
        return paragraphs + self.comparison._repr_html_()

    @property
    def word(self) -> str:
        """What a dose is called in a sentence: price, bid, or the word that fits anything."""
        if len(self.log.treatments) > 1:
            return "dose"
        name = self.log.treatments[0]
        last = name.rpartition(" ")[2]
        several = name.endswith("s") and not name.endswith(("ss", "us", "is"))
        plain_word = name.isalpha() and name.islower() and not several
        return last if last in WORDS or plain_word else "treatment"

    def called(self, name: str) -> str:
        """Return what a context is called on the page."""
        return called(name, self.labels)

    def mean_dose(self, treatment: str) -> float:
        """Return the mean of a dose as it was logged."""
        logged = (s for s in self.dose_summaries if s.policy == LOGGED)
        return next(s.mean for s in logged if s.treatment == treatment)

    @property
    def dose_unit(self) -> str:
        """The unit of the first dose."""
        return self.log.units[0] if self.log.units else ""

    def interval(self, name: str) -> tuple[float, float]:
        """Return the interval of a policy at the level of the report."""
        return self.comparison[name].interval(self.level)

    def shown_pairs(self) -> list[tuple[str, str]]:
        """Return which differences the page shows: to the status quo, and among drawn policies."""
        others = [name for name in self.comparison.names if name != self.status_quo]
        return [(name, self.status_quo) for name in others] + list(combinations(self.drawn, 2))

    def to_dict(self) -> dict[str, Any]:
        """Return every number of the page as plain values."""
        names = self.comparison.names
        return {
            "titrant": __version__,
            "level": self.level,
            "maximize": self.maximize,
            "log": self._log(),
            "description": plain(self.description.to_dict()),
            "status_quo": self.status_quo,
            "focus": self.focus,
            "drawn": list(self.drawn),
            "result": plain(self.comparison.to_dict(self.level)),
            "intervals": {n: plain(self.interval(n)) for n in names},
            "differences": [self._difference(a, b) for a, b in self.shown_pairs()],
            "truth": plain(self.truth),
            "curves": {name: self._curve(curve) for name, curve in self.curves.items()},
            "curve_notes": list(self.curve_notes),
            "strengths": None if self.strengths is None else self._curve(self.strengths),
            "shifts": None if self.shifts is None else self._curve(self.shifts),
            "doses": plain(self.doses),
            "dose_summaries": plain(self.dose_summaries),
            "profiles": plain(self.profiles),
            "subgroups": plain(self.subgroups),
            "overlap": plain(self.overlap),
            "weights": plain(self.weights),
            "bandwidth_paths": {name: plain(p.to_dict()) for name, p in self.paths.items()},
            "calibration": None if self.calibration is None else plain(self.calibration.to_dict()),
            "calibration_checks": plain(self.calibration_checks.to_dict()),
            "balance": plain(self.balance),
            "rules": plain(self.rules),
            "learned": plain(self.learned),
            "doubts": plain(self.doubts),
            "trade_offs": plain(self.trade_offs),
            "protocol": plain(self.protocol),
            "person": plain(self.person),
            "title": self.title,
            "labels": plain(self.labels),
            "units": plain(self.units),
            "settings": plain(self.settings),
            "config": self.config,
            "versions": plain(self.versions),
        }

    def _log(self) -> dict[str, Any]:
        flow = self.log.flow
        return {**plain(self.log), "flow": None if flow is None else flow.to_dict()}

    def _difference(self, a: str, b: str) -> dict[str, Any]:
        contrast = self.comparison.contrast(a, b)
        ends = contrast.interval(self.level)
        return {"a": a, "b": b, "difference": contrast.difference, "interval": plain(ends)}

    def _curve(self, curve: Curve) -> dict[str, Any]:
        return {
            "parameters": plain(curve.parameters),
            "values": plain(curve.values),
            "pointwise": plain(curve.band(self.level, simultaneous=False)),
            "simultaneous": plain(curve.band(self.level)),
            "refused": plain(curve.refused),
        }


def called(name: str, labels: Mapping[str, str]) -> str:
    """Return what a context is called: by the label of the column that it is made of.

    >>> called("Race=Hispanic", {"Race": "ethnicity"}), called("age is missing", {"age": "Age"})
    ('ethnicity = Hispanic', 'Age is missing')
    """
    if name in labels:
        return labels[name]
    signs = ("=", ".", " is ")
    own = (c for c in labels if name.startswith(tuple(f"{c}{sign}" for sign in signs)))
    base = max(own, key=len, default="")
    label = f"{labels[base]}{name[len(base) :]}" if base else name
    column, equals, level = label.partition("=")
    return f"{column} = {level}" if equals and column and level else label
