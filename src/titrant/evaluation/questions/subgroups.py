"""For whom a policy changes what: its difference to the status quo in parts of a log.

A part is a row weight 1{i ∈ part} of the one form that all estimates have, so nothing is fitted
again and no row taken out: models, floor and bandwidth are those of the whole log. At its bandwidth
parts are smoothed less than they would choose themselves (h falls as n^{−1/5}), which leaves less
bias and wider intervals, and values of parts add up to that of the whole. The covariance of all
parts under both policies, over groups and with the models' share, comes from the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from titrant import _drawing
from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.estimators import Ask, Estimator
from titrant.estimators.form import is_robust_ratio
from titrant.estimators.joint import asked
from titrant.evaluation.evaluation import Evaluation, name_of
from titrant.evaluation.models.jackknife import filled, models_share
from titrant.evaluation.passes import served
from titrant.evaluation.questions.cells import Inside, cells_of
from titrant.inference import Diagnostics, Normal, RobustBiasCorrected, Verdict
from titrant.inference.base import (
    ROUNDING,
    StudentInference,
    paired,
    simultaneous_probability,
)
from titrant.inference.trust import rules
from titrant.kernels import Scale
from titrant.policies import StatusQuo
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike, NDArray

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.bandwidth import Bandwidth, BandwidthSelector
    from titrant.data.source import Source
    from titrant.estimators import Estimator, Joint, Question, Rows
    from titrant.estimators.joint import Search
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.evaluation.questions.cells import By, Cells
    from titrant.execute import Engine
    from titrant.inference import Check, IntervalMethod
    from titrant.inference.base import StudentInterval
    from titrant.inference.results import Comparison
    from titrant.propensity import PropensityModel

STATUS_QUO = "status quo"
Found: TypeAlias = "tuple[tuple[Subgroup, ...], StudentInference, StudentInference]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroup:
    """What a policy changes for some of the rows."""

    column: str
    label: str
    rows: int
    share: float
    """Of the rows, by their weights."""
    logged_dose: Array
    """The mean logged dose (d,)."""
    policy_dose: Array
    """The mean dose of the policy (d,)."""
    outcome: float
    """The mean outcome as logged."""
    value: float
    """Of the policy; nan where no row is near."""
    against: float
    """Of what it is compared with."""
    difference: float
    se: float
    """Of the difference, by the delta method."""
    ess: float
    diagnostics: Diagnostics
    confidence: StudentInterval | None
    """None where too few rows speak about the part."""

    @property
    def trusted(self) -> bool:
        """Whether the part is answered."""
        return self.confidence is not None

    @property
    def reason(self) -> str | None:
        """Why the part is not answered, None if it is."""
        return None if self.trusted else " ".join(self.diagnostics.messages(Verdict.REFUSE))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the difference at ``level``; raise the reason if it has none."""
        if self.confidence is None:
            raise UntrustedEstimate(f"{self.label} has no estimate. {self.reason}")
        return self.confidence.at(level)


@dataclass(frozen=True, slots=True)
class Equality:
    """The test that a policy changes as much in all K parts of a column (Welch 1951).

    With d the bias-corrected differences, Σ their covariance and ν their degrees of freedom, C what
    parts differ by, u = 1/diag Σ and Λ = Σ(1 − u/Σu)²/ν,
    F = dᵀCᵀ(CΣCᵀ)⁻¹Cd/(K − 1)/(1 + 2(K − 2)Λ/(K² − 1)) ~ F(K − 1, (K² − 1)/(3Λ)). Of two parts
    that is the t test with Satterthwaite's degrees of freedom.
    """

    column: str
    statistic: float
    parts: int
    degrees: float
    p_value: float
    corrected: bool = False
    """Whether the differences are bias-corrected, and not those that are shown."""

    @classmethod
    def of(
        cls, column: str, found: StudentInference, *, corrected: bool = False
    ) -> Equality | None:
        """Return the test of some differences, None of fewer than two."""
        m, variance = len(found.centers), np.diagonal(found.covariance)
        if m < 2:  # noqa: PLR2004
            return None
        contrast = np.diff(np.eye(m), axis=0)
        spread = contrast @ found.covariance @ contrast.T
        apart = contrast @ found.centers
        if not (np.linalg.eigvalsh(spread) > ROUNDING * variance.max()).all():
            return cls(column, 0.0, m, np.inf, 1.0, corrected)  # the same policy twice
        u = 1.0 / variance
        slack = float(np.sum((1.0 - u / u.sum()) ** 2 / found.degrees))
        statistic = float(apart @ np.linalg.solve(spread, apart)) / (m - 1)
        statistic /= 1.0 + 2.0 * (m - 2) * slack / (m**2 - 1)
        degrees = (m**2 - 1) / (3.0 * slack) if slack > 0.0 else np.inf
        p_value = _beyond(statistic, m - 1, degrees)
        return cls(column, statistic, m, degrees, p_value, corrected)

    def __str__(self) -> str:
        nu = "∞" if np.isinf(self.degrees) else f"{self.degrees:.0f}"
        return (
            f"{self.column}: equal in all {self.parts} parts? "
            f"F({self.parts - 1}, {nu}) = {self.statistic:.2f}, p = {self.p_value:.2g}"
            f"{' (of bias-corrected differences)' if self.corrected else ''}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgroups(Tabular):
    """What a policy changes in parts of a log, with the same for the whole."""

    policy: str
    against: str
    parts: tuple[Subgroup, ...]
    whole: Comparison
    """Of both policies on all rows; its verdict is that of the models all parts share."""
    inference: StudentInference
    """Of the differences in the parts that are answered, in their order."""
    corrected: StudentInference
    """The same around the bias-corrected fits: what the tests of equality rest on."""

    def __getitem__(self, label: str) -> Subgroup:
        """Return the part called `label`."""
        for part in self.parts:
            if part.label == label:
                return part
        known = ", ".join(repr(part.label) for part in self.parts)
        raise InvalidArgument(f"There is no part {label!r}; there are {known}.")

    def __iter__(self) -> Iterator[Subgroup]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def answered(self) -> tuple[Subgroup, ...]:
        """The parts that have an interval."""
        return tuple(part for part in self.parts if part.trusted)

    @property
    def refused(self) -> dict[str, str]:
        """The parts that the log cannot answer for, each with the reason."""
        return {part.label: part.reason for part in self.parts if part.reason is not None}

    @property
    def equality(self) -> tuple[Equality, ...]:
        """For each column, the test that the policy changes as much in all of its parts."""
        columns = [part.column for part in self.answered]
        corrected = not np.array_equal(self.corrected.centers, self.inference.centers)
        found = []
        for column in dict.fromkeys(columns):
            own = [i for i, name in enumerate(columns) if name == column]
            test = Equality.of(column, self.corrected.only(own), corrected=corrected)
            found.extend([] if test is None else [test])
        return tuple(found)

    def simultaneous(self, level: float = 0.95, *, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Return intervals of the differences that hold for all parts at once."""
        p = simultaneous_probability(self.inference.covariance, level, seed)
        return {
            part.label: self.inference.interval(i).around(p) for i, part in enumerate(self.answered)
        }

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON, with intervals at ``level``."""
        at_once = self.simultaneous(level)
        return {
            "policy": self.policy,
            "against": self.against,
            "level": level,
            "whole": self.whole.to_dict(level),
            "parts": [_plain(part, level, at_once.get(part.label)) for part in self.parts],
            "equality": [
                {
                    "column": test.column,
                    "statistic": test.statistic,
                    "parts": test.parts,
                    "degrees": test.degrees if np.isfinite(test.degrees) else None,
                    "p_value": test.p_value,
                }
                for test in self.equality
            ],
        }

    def headings(self, level: float = 0.95) -> list[str]:
        """Return what the columns of `table` are called."""
        numbers = ["rows", "value", self.against, "difference", f"{100 * level:g}% CI"]
        return ["who", *numbers, "all at once", "ESS", "verdict"]

    def table(self, level: float = 0.95) -> list[list[str]]:
        """Return a row of texts for the whole log and for each part."""
        own, at_once = self.whole.contrast(self.policy, self.against), self.simultaneous(level)
        estimate, base = self.whole[self.policy], self.whole[self.against]
        low, high = own.interval(level)
        wide = high - low
        return [
            [
                "all rows",
                f"{estimate.rows:,}",
                brief(estimate.value, wide),
                brief(base.value, wide),
                brief(own.difference, wide),
                between(low, high),
                "–",
                f"{estimate.ess:,.0f}",
                estimate.diagnostics.verdict.value,
            ],
            *(_cells(part, level, at_once.get(part.label)) for part in self.parts),
        ]

    def __str__(self) -> str:
        rows = [self.headings(), *self.table()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *map(str, self.equality)])

    def __repr__(self) -> str:
        return f"Subgroups({self.policy} − {self.against}; {len(self)} parts)"

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the difference in each part with its interval beside zero; return the axes."""
        drawn = _drawing.new_axes(ax, 0.8 + 1.3 * _drawing.ROW * len(self.answered))
        drawn.set_xlabel(_drawing.escaped(self.whole.about.difference))
        labels = [part.label for part in self.answered]
        ends = [part.interval(level) for part in self.answered]
        return _drawing.forest(
            drawn, labels, [part.difference for part in self.answered], ends, line=0.0
        )

    def _texts(self, level: float) -> list[list[str]]:
        return [self.headings(level), *self.table(level)]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        own, at_once = self.whole.contrast(self.policy, self.against), self.simultaneous(level)
        estimate = self.whole[self.policy]
        (low, high), none = own.interval(level), (None, None)
        rows: list[tuple[Any, ...]] = [
            (
                *(None, "all rows", estimate.rows, estimate.value),
                *(self.whole[self.against].value, own.difference, own.se, low, high, *none),
                *(estimate.ess, estimate.diagnostics.verdict.value),
            )
        ]
        for part in self.parts:
            told = _plain(part, level, at_once.get(part.label))
            ends = part.interval(level) if part.trusted else none
            rows.append(
                (
                    *(told[name] for name in ("column", "label", "rows", "value", "against")),
                    *(told["difference"], told["se"], *ends, *(told["simultaneous"] or none)),
                    *(part.ess, part.diagnostics.verdict.value),
                )
            )
        return [dict(zip(_COLUMNS, row, strict=True)) for row in rows]


_COLUMNS = (
    *("column", "part", "rows", "value", "against", "difference", "se", "low", "high"),
    *("at_once_low", "at_once_high", "ess", "verdict"),
)


def subgroups(
    log: Source,
    policy: AnyPolicy,
    *,
    by: By,
    against: AnyPolicy | None = None,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    weights_to: object = None,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
) -> Subgroups:
    """Return what ``policy`` changes in parts of the log, and whether it is as much in all.

    Models and bandwidths are those of the whole log, fitted once. The trust rules judge each part
    by the rows that speak about it; a part that they refuse has no difference, and its reason is in
    ``refused``. The other parameters are those of `evaluate`.

    Parameters
    ----------
    by : a context, taken value by value; ``{"age": [40, 60]}``, cut points; ``{"age": 3}``, parts
        of as many rows; several columns in one dict; or a label of each row of a log in memory
    against : what the policy is compared with; the status quo unless given
    interval : `RobustBiasCorrected()` unless given, `Narrow()` or `Normal()`

    Returns
    -------
    Subgroups : a `Subgroup` of each part, with its ``difference`` and ``interval(level)``;
        ``equality``, a test of each column; ``simultaneous()`` intervals; ``refused``; ``whole``,
        the `Comparison` on all rows

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.integers(0, 2, 2000), rng.normal(size=2000)
    >>> y = (t - x) ** 2 + rng.normal(size=2000)
    >>> q = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    >>> log = tt.LoggedData({"old": x}, t, y, q)
    >>> found = tt.subgroups(log, tt.Constant(1.0), by="old", estimator=tt.SelfNormalized())
    >>> [(part.label, round(part.difference, 1)) for part in found]
    [('old = 0', 0.1), ('old = 1', -2.0)]
    >>> found.equality[0].p_value < 0.001
    True
    """
    policies = {name_of(policy): policy}
    if against is None:
        policies[STATUS_QUO] = StatusQuo()
    else:
        name = name_of(against)
        policies[f"other {name}" if name in policies else name] = against
    evaluation = Evaluation.of(
        log,
        policies,
        estimator,
        propensity,
        executor,
        weights_to=weights_to,
        ignore_doubts=ignore_doubts,
    )
    return subgroups_on(evaluation, by, bandwidth, interval, allow_untrusted=allow_untrusted)


def subgroups_on(
    evaluation: Evaluation,
    by: By,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    interval: IntervalMethod | None = None,
    *,
    allow_untrusted: bool = False,
) -> Subgroups:
    """Return the same of an evaluation of two policies: what the first changes to the second."""
    if all(is_exactly(rule, StatusQuo) for rule in evaluation.policies):
        raise InvalidArgument("The status quo changes nothing in any part; give another policy.")
    method = _student(interval)
    cells = cells_of(by, evaluation.source, evaluation.survey)
    whole = evaluation.compare(bandwidth, method, allow_untrusted=allow_untrusted)
    first, second = evaluation.names
    # Raises why the log as a whole does not answer for one of them.
    bandwidths = {name: whole[name].bandwidth for name in (first, second)}
    parts, inference, corrected = parts_on(
        evaluation, bandwidths, cells, method, allow_untrusted=allow_untrusted
    )
    return Subgroups(
        policy=first,
        against=second,
        parts=parts,
        whole=whole,
        inference=inference,
        corrected=corrected,
    )


def parts_on(
    evaluation: Evaluation,
    bandwidths: Mapping[str, Bandwidth | None],
    cells: Sequence[Cells],
    interval: IntervalMethod | None = None,
    *,
    allow_untrusted: bool = False,
) -> Found:
    """Return the parts of an evaluation's log, and two inferences about those that are answered.

    The first is that of intervals, the second that of tests: see `Subgroups`.
    ``bandwidths`` are those of the policy and of what it is compared with, by name, in this order.
    """
    places = [evaluation.names.index(name) for name in bandwidths]
    pair = [evaluation.question(i, h) for i, h in zip(places, bandwidths.values(), strict=True)]
    known = [Inside(one, k) for one in cells for k in range(len(one))]
    search = _search(evaluation, pair, known, interval or RobustBiasCorrected(), allow_untrusted)
    (found,) = served([search], evaluation.over_rows)
    if isinstance(found, UntrustedEstimate):
        raise found
    return found


def _search(
    evaluation: Evaluation,
    pair: Sequence[Question],
    known: Sequence[Inside],
    interval: IntervalMethod,
    allow_untrusted: bool,  # noqa: FBT001
) -> Search[Found]:
    """Return the parts and the inference about them, in passes over the rows."""
    logged = evaluation.of_logged
    sums: PartSums = yield Ask(partial(part_sums, known, logged, pair[0].policy))
    # Parts without any row that counts are no parts of this log.
    filled_parts = [j for j in range(len(known)) if sums.sums[j, 0] > 0.0]
    questions = [replace(q, part=known[j]) for j in filled_parts for q in pair]
    point = yield from _with_models(evaluation, questions)
    reports = {
        j: Diagnostics.of(_checks(evaluation, point, 2 * k, sums.rows[j]))
        for k, j in enumerate(filled_parts)
    }
    reached = [
        k for k in range(len(filled_parts)) if np.isfinite(point.values[2 * k : 2 * k + 2]).all()
    ]
    kept = [
        k
        for k in reached
        if allow_untrusted or reports[filled_parts[k]].verdict is not Verdict.REFUSE
    ]
    chosen = [questions[2 * k + side] for k in kept for side in (0, 1)]
    if len(chosen) == len(questions):
        inference, corrected = yield from _differences(point, interval)
    elif chosen:
        again = yield from _with_models(evaluation, chosen)
        inference, corrected = yield from _differences(again, interval)
    else:
        inference = corrected = NOTHING
    intervals = {k: inference.interval(i) for i, k in enumerate(kept)}
    found = [
        _subgroup(sums, known, logged, j, _Pair.of(point, k), reports[j], intervals.get(k))
        for k, j in enumerate(filled_parts)
    ]
    return tuple(found), inference, corrected


def _with_models(evaluation: Evaluation, questions: Sequence[Question]) -> Search[Joint]:
    """Return the answers to questions about parts, with the models' share in their error."""
    point = yield from asked(questions)
    share = models_share(evaluation.policy_rows, questions, evaluation.survey.sample)
    degrees = max(evaluation.nuisances.folds - 1, 1)
    return point.with_models(filled(share, point.covariance), degrees)


NOTHING = StudentInference("none", np.empty(0), np.empty((0, 0)), np.empty(0), ())


def _differences(
    point: Joint, interval: IntervalMethod
) -> Search[tuple[StudentInference, StudentInference]]:
    """Return the inference about differences by the interval, and around bias-corrected fits.

    An interval around the value is as wide as one around the corrected fit, whose error is larger;
    a test of the values by that width would hardly ever reject. That of the corrected fits does
    as often as it should.
    """
    found = yield from interval.search(point)
    if not isinstance(found, StudentInference):
        raise _no_student(interval)
    if isinstance(interval, Normal):
        return _paired(found), _paired(found)
    corrected = yield from RobustBiasCorrected(recentered=True).search(point)
    return _paired(found), _paired(corrected)


def _paired(found: StudentInference) -> StudentInference:
    """Return the inference about the differences of estimates 0 and 1, 2 and 3, and so on."""
    first = range(0, len(found.centers), 2)
    d = np.kron(np.eye(len(first)), [1.0, -1.0])
    apart = [paired(found.centers, found.covariance, i, i + 1) for i in first]
    moving = np.array([se > 0.0 for _, se in apart], dtype=bool)  # the same policy twice does not
    return StudentInference(
        found.method,
        np.array([between for between, _ in apart]),
        d @ found.covariance @ d.T * np.outer(moving, moving),
        found.degrees.reshape(-1, 2).min(axis=1),
        tuple(found.notes[i] or found.notes[i + 1] for i in first),
    )


def _checks(evaluation: Evaluation, point: Joint, i: int, rows: int) -> Iterator[Check]:
    """Yield the checks of the weights behind the policy's value in one part."""
    tally, grouped = point.tally, point.row_count is not None
    if not tally.total[i]:
        yield rules.overlap(f"None of the {rows:,} rows of this part is near the policy's dose.")
        return
    ess, s = float(tally.ess[i]), point.questions[i].share(point.mean(i))
    units = float(tally.n * s)
    yield rules.effective_sample_size(ess, round(units), "groups" if grouped else "rows")
    shares = [float(tally.largest[i][:k].sum() / tally.absolute[i]) for k in (1, 5, 10)]
    yield rules.largest_weight_share((shares[0], shares[1], shares[2]))
    estimator = point.questions[i].estimator
    modeled = evaluation.nuisances.propensity is not None
    robust = modeled and is_robust_ratio(estimator)
    mean = float(tally.mean[i]) / s
    se = float(np.sqrt(max(tally.squares[i] / units - mean**2, 0.0) / units))
    gap = rules.MEAN_WEIGHT_GAP_DR if robust else rules.MEAN_WEIGHT_GAP
    yield rules.mean_weight(mean, se, gap)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The values of both policies in a part, their difference with its SE, and the ESS."""

    value: float
    against: float
    difference: float
    se: float
    ess: float

    @classmethod
    def of(cls, point: Joint, k: int) -> _Pair:
        """Return pair k of the answers."""
        a, b = 2 * k, 2 * k + 1
        apart = paired(point.values, point.covariance, a, b)
        return cls(
            float(point.values[a]), float(point.values[b]), *apart, float(point.tally.ess[a])
        )


def _subgroup(  # noqa: PLR0917  (all that is known of a part)
    sums: PartSums,
    known: Sequence[Inside],
    logged: Estimator,
    j: int,
    pair: _Pair,
    report: Diagnostics,
    confidence: StudentInterval | None,
) -> Subgroup:
    cells, weight = known[j].cells, sums.sums[j, 0]
    d = (sums.sums.shape[1] - 1 - logged.size) // 2
    means = sums.sums[j, 1:] / weight
    return Subgroup(
        column=cells.column,
        label=cells.label(known[j].k, float(sums.low[j]), float(sums.high[j])),
        rows=int(sums.rows[j]),
        share=float(weight / sums.total),
        logged_dose=means[:d],
        policy_dose=means[d : 2 * d],
        outcome=logged.value(means[2 * d :]),
        value=pair.value,
        against=pair.against,
        difference=pair.difference,
        se=pair.se,
        ess=pair.ess,
        diagnostics=report,
        confidence=confidence,
    )


# What is known of a part besides: how many rows, and their means.


@dataclass(frozen=True, slots=True)
class PartSums:
    """Of K parts: rows and the range of the column, each (K,); Σ(ω, ωt, ωτ, ωz) (K, …); Σω.

    z are the terms of the estimator of the status quo, whose value is the mean outcome.
    """

    rows: NDArray[np.int64]
    low: Array
    high: Array
    sums: Array
    total: float

    def __add__(self, other: PartSums) -> PartSums:
        """Return the sums over both sets of rows."""
        return PartSums(
            self.rows + other.rows,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.sums + other.sums,
            self.total + other.total,
        )


def part_sums(
    known: Sequence[Inside], logged: Estimator, policy: int, rows: Sequence[Rows]
) -> PartSums:
    """Return the sums of some rows under a policy; ``logged`` is that of the status quo."""
    own = rows[policy]
    z = logged.terms(own, Scale.of(1.0, own.t.shape[1]))
    omega = own.counts
    columns = omega[:, None] * np.hstack([np.ones((len(z), 1)), own.t, own.tau, z])
    inside = [part.inside(own) for part in known]
    values = [part.cells.values(own) for part in known]
    return PartSums(
        np.array([np.count_nonzero(some) for some in inside]),
        np.array([v[some].min(initial=np.inf) for v, some in zip(values, inside, strict=True)]),
        np.array([v[some].max(initial=-np.inf) for v, some in zip(values, inside, strict=True)]),
        np.stack([columns[some].sum(axis=0) for some in inside]),
        float(omega.sum()),
    )


def _plain(part: Subgroup, level: float, at_once: tuple[float, float] | None) -> dict[str, Any]:
    known = part.confidence
    told = np.isfinite(part.value)
    return {
        "column": part.column,
        "label": part.label,
        "rows": part.rows,
        "share": part.share,
        "logged_dose": part.logged_dose.tolist(),
        "policy_dose": part.policy_dose.tolist(),
        "outcome": part.outcome,
        "value": part.value if told and known is not None else None,
        "against": part.against if known is not None else None,
        "difference": None if known is None else part.difference,
        "se": None if known is None else part.se,
        "interval": None if known is None else known.to_dict(level),
        "simultaneous": None if at_once is None else list(at_once),
        "effective_sample_size": part.ess,
        "diagnostics": part.diagnostics.to_dict(),
    }


def _cells(part: Subgroup, level: float, at_once: tuple[float, float] | None) -> list[str]:
    """Return the row of a part; without an answer no number, only the verdict."""
    verdict = part.diagnostics.verdict.value
    if not part.trusted or at_once is None:
        return [part.label, f"{part.rows:,}", *"–––––", f"{part.ess:,.0f}", verdict]
    low, high = part.interval(level)
    wide = high - low
    return [
        part.label,
        f"{part.rows:,}",
        brief(part.value, wide),
        brief(part.against, wide),
        brief(part.difference, wide),
        between(low, high),
        between(*at_once),
        f"{part.ess:,.0f}",
        verdict,
    ]


def _student(interval: IntervalMethod | None) -> IntervalMethod:
    """Return the method, refusing one whose intervals have no joint covariance."""
    from titrant.inference import EmpiricalBernstein, PoissonBootstrap  # noqa: PLC0415

    if isinstance(interval, EmpiricalBernstein | PoissonBootstrap):
        raise _no_student(interval)
    return RobustBiasCorrected() if interval is None else interval


def _no_student(interval: IntervalMethod) -> InvalidArgument:
    return InvalidArgument(
        "Subgroups need `interval=RobustBiasCorrected()`, `Narrow()` or `Normal()`: intervals of "
        f"other kinds have no joint covariance; got {interval!r}."
    )


def _beyond(statistic: float, rank: int, degrees: float) -> float:
    """Return P(F > statistic), F with ``rank`` and ``degrees``; infinite: χ²/rank."""
    from scipy.special import chdtrc, fdtrc  # noqa: PLC0415

    if np.isinf(degrees):
        return float(chdtrc(rank, rank * statistic))
    return float(fdtrc(rank, degrees, statistic))
