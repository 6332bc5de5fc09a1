"""One profile of a log: what is in it, and what is doubtful, before anything is estimated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from titrant import _drawing
from titrant._tables import Tabular
from titrant._text import brief
from titrant.data.about import About
from titrant.evaluation.survey import survey_of
from titrant.execute import as_engine
from titrant.inference import Diagnostics
from titrant.inference.trust.balance import Bins
from titrant.inference.trust.doubts import FEW_LEVELS, is_key, standardized

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import NDArray

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.data.masses import PointMasses
    from titrant.data.source import Source
    from titrant.evaluation.survey import Survey
    from titrant.execute import Engine

NUMBER, YES_NO, FEW, CODE, CONSTANT = "number", "yes/no", "few values", "code", "constant"
COMMON, LEAST_COMMON = 5, 0.01
"""Values that are named as common at most, and the least share of rows that makes them so."""
BINS = 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_YES_NO_VALUES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """One column in numbers."""

    name: str
    kind: str
    """"number", "yes/no" (two values), "few values" (up to 12), "code" (a key, or the places of
    many texts in the alphabet), "constant"."""
    mean: float
    sd: float
    low: float
    quartiles: tuple[float, float, float]
    high: float
    distinct: int
    """How many different values it has in the rows looked at."""
    common: tuple[tuple[float, float], ...]
    """Its most common values, each with its share of the rows, as far as that is 1 % or more."""
    missing: float = 0.0
    """The share of rows in which it is missing in the table that the log was made of."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "mean": self.mean,
            "sd": self.sd,
            "low": self.low,
            "quartiles": list(self.quartiles),
            "high": self.high,
            "distinct": self.distinct,
            "common": _listed(self.common),
            "missing": self.missing,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentSummary:
    """One dose, with how often it was given."""

    column: ColumnSummary
    edges: Array
    """Of the histogram (bins + 1,)."""
    counts: Array
    """Rows in each bin (bins,)."""
    masses: tuple[tuple[float, float], ...] = ()
    """Doses that many rows have exactly, each with its share: they are valued by these rows."""
    levels: bool = False
    """Whether (nearly) all rows have one of them."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        histogram = {"edges": self.edges.tolist(), "counts": self.counts.tolist()}
        masses = {"point_masses": _listed(self.masses), "levels": self.levels}
        return {**self.column.to_dict(), "histogram": histogram, **masses}

    @property
    def exact(self) -> tuple[float, ...]:
        """The point masses among doses that vary freely."""
        return () if self.levels else tuple(dose for dose, _ in self.masses)

    def exactly(self, name: str) -> str | None:
        """Return at which doses, called ``name``, rows pile up, in a sentence; None if at none."""
        if not self.masses:
            return None
        if self.levels:
            shown = [f"{dose:.6g}" for dose, _ in self.masses[: 2 * COMMON]]
            what = f"Nearly every {name} is one of {len(self.masses):,} levels: "
        else:
            largest = sorted(self.masses, key=lambda one: -one[1])[:COMMON]
            shown = [f"{share:.1%} exactly at {dose:.6g}" for dose, share in largest]
            what = f"Point masses of the {name}: "
        left = len(self.masses) - len(shown)
        return f"{what}{', '.join(shown)}{f' and {left:,} more' if left else ''}."

    @property
    def picture(self) -> str:
        """The histogram in a line of blocks; a bin without rows is blank."""
        top = max(int(self.counts.max()), 1)
        level = np.ceil(self.counts / top * len(_BLOCKS)).astype(int)
        return "".join(_BLOCKS[k - 1] if k else " " for k in level)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSummary:
    """One context, and how doses and outcomes go with it."""

    column: ColumnSummary
    correlation: tuple[float, ...]
    """With each dose."""
    explains_dose: tuple[float, ...]
    """The share of each dose's variance that it explains: by a line or by its sixths or values,
    whichever is more; by its values where they are texts."""
    explains_outcome: float

    @property
    def is_amount(self) -> bool:
        """Whether means and correlations say something: a code is no amount of anything."""
        return self.column.kind != CODE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; a code has no mean, no sd and no correlation."""
        amount = {} if self.is_amount else {"mean": None, "sd": None}
        return {
            **self.column.to_dict(),
            **amount,
            "correlation": list(self.correlation) if self.is_amount else None,
            "explains_dose": list(self.explains_dose),
            "explains_outcome": self.explains_outcome,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Description(Tabular):
    """What is in a log. Means, sds and ends are of all rows, all else of those looked at."""

    rows: int
    groups: int | None
    """How many groups the rows belong to, if that is known."""
    evenness: float | None
    """(Σω)²/(nΣω²) of the rows' weights: the share of even ones that they are worth."""
    seen: float | None
    """The share of rows whose outcome is known, if some are missing; those are not looked at."""
    looked_at: int
    """Rows by which quantiles, values, correlations and doubts are found."""
    treatments: tuple[TreatmentSummary, ...]
    outcome: ColumnSummary
    contexts: tuple[ContextSummary, ...]
    doubts: Diagnostics
    """The doubtful columns."""
    about: About = field(default_factory=About)
    """What the log calls its doses."""

    @classmethod
    def of(cls, survey: Survey) -> Self:
        """Return the description of a log that has been surveyed."""
        seen = survey.columns
        summaries = _summaries(survey)
        d = survey.dimension
        doses, outcome, contexts = summaries[:d], summaries[d], summaries[d + 1 :]
        correlation, explained = _explained(survey)
        return cls(
            rows=survey.n,
            groups=None if survey.sums.keys is None else len(survey.sums.keys),
            evenness=survey.evenness,
            seen=survey.seen_share,
            looked_at=len(seen),
            treatments=tuple(
                _treatment(column, logged, survey.masses)
                for column, logged in zip(doses, seen.doses.T, strict=True)
            ),
            outcome=outcome,
            contexts=tuple(
                ContextSummary(
                    column=column,
                    correlation=tuple(correlation[j, :d].tolist()),
                    explains_dose=tuple(explained[j, :d].tolist()),
                    explains_outcome=float(explained[j, d]),
                )
                for j, column in enumerate(contexts)
            ),
            doubts=Diagnostics.of([*survey.outcome_doubts, *survey.context_doubts]),
        )

    @property
    def size(self) -> str:
        """How many rows there are, in how many groups, and how many of them were looked at."""
        said = [f"{self.rows:,} rows"]
        if self.groups is not None:
            said.append(f"in {self.groups:,} groups")
        if self.evenness is not None:
            said.append(f"with weights worth {self.evenness:.1%} of even ones")
        if self.seen is not None:
            said.append(f"the outcome known in {self.seen:.1%}")
        if self.looked_at < self.rows:
            said.append(f"{self.looked_at:,} of them looked at")
        return ", ".join(said)

    def main_contexts(self, most: int) -> Description:
        """Return the same with the contexts alone that explain most of doses or outcomes."""
        weight = [max(*c.explains_dose, c.explains_outcome) for c in self.contexts]
        kept = sorted(np.argsort(-np.array(weight), kind="stable")[:most].tolist())
        return replace(self, contexts=tuple(self.contexts[j] for j in kept))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "rows": self.rows,
            "groups": self.groups,
            "evenness": self.evenness,
            "seen": self.seen,
            "looked_at": self.looked_at,
            "treatments": [t.to_dict() for t in self.treatments],
            "outcome": self.outcome.to_dict(),
            "contexts": [c.to_dict() for c in self.contexts],
            "doubts": self.doubts.to_dict(),
        }

    @property
    def columns(self) -> tuple[ColumnSummary, ...]:
        """Those of the doses, the outcome and the contexts."""
        told = (*(t.column for t in self.treatments), self.outcome)
        return (*told, *(context.column for context in self.contexts))

    @property
    def gaps(self) -> bool:
        """Whether some column is missing in some rows."""
        return any(column.missing for column in self.columns)

    @property
    def headings(self) -> tuple[str, ...]:
        """Of the table: the share of missing cells is there if some are."""
        return HEADINGS if self.gaps else tuple(h for h in HEADINGS if h != MISSING)

    def table(self) -> list[tuple[str, ...]]:
        """Return a row of texts for each column, under `headings`."""
        told = (*(t.column for t in self.treatments), self.outcome)
        rows = [(*_cells(column), "", "", "") for column in told]
        rows += [(*_cells(c.column, amount=c.is_amount), *_relations(c)) for c in self.contexts]
        at = HEADINGS.index(MISSING)
        return rows if self.gaps else [(*row[:at], *row[at + 1 :]) for row in rows]

    def common_values(self) -> list[str]:
        """Return a sentence for each dose or outcome of which some values come often."""
        told = (*(t.column for t in self.treatments), self.outcome)
        exact = (t.exactly(t.column.name) for t in self.treatments)
        return [said for said in exact if said] + [
            f"Most common values of the {c.name}: "
            + ", ".join(f"{value:.6g} ({share:.1%})" for value, share in c.common)
            + "."
            for c, known in zip(told, (*(t.exact for t in self.treatments), ()), strict=True)
            if not {value for value, _ in c.common} <= set(known)
        ]

    def __str__(self) -> str:
        lines = _aligned([self.headings, *self.table()])
        pictures = [
            f"{t.column.name}: {brief(t.column.low)} {t.picture} {brief(t.column.high)}"
            for t in self.treatments
        ]
        doubts = str(self.doubts) or "No column is doubtful."
        return "\n".join([self.size, *lines, *pictures, *self.common_values(), doubts])

    def __repr__(self) -> str:
        doses, doubts = len(self.treatments), ", ".join(self.doubts.names) or "no doubts"
        return f"Description({self.size}; {doses} dose(s), {len(self.contexts)} contexts; {doubts})"

    def plot(self, ax: Axes | None = None, *, dose: int = 0) -> Axes:
        """Draw how often each dose was given; return the matplotlib axes."""
        found = self.treatments[dose]
        drawn = _drawing.new_axes(ax)
        name = self.about.dose(dose) if self.about.treatments else found.column.name
        return _drawing.histogram(drawn, found.edges, found.counts, name)

    def _texts(self, level: float) -> list[tuple[str, ...]]:  # noqa: ARG002
        return [self.headings, *self.table()]

    def _numbers(self, level: float) -> list[dict[str, Any]]:  # noqa: ARG002
        return [_numbers(column) for column in self.columns]

    def _caption(self) -> str:
        doubts = [c.message for c in self.doubts] + list(self.doubts.notes)
        return " ".join([f"{self.size}.", *self.common_values(), *doubts])


MISSING = "missing"
HEADINGS = (
    *("column", "kind", "values", MISSING, "mean", "sd", "least", "median", "greatest"),
    *("r with dose", "R² of dose", "R² of outcome"),
)


def _numbers(column: ColumnSummary) -> dict[str, Any]:
    lower, median, upper = column.quartiles
    middle = {"lower_quartile": lower, "median": median, "upper_quartile": upper}
    ends = {"low": column.low, **middle, "high": column.high, "distinct": column.distinct}
    return {
        "column": column.name,
        "kind": column.kind,
        "mean": column.mean,
        "sd": column.sd,
        **ends,
        "missing": column.missing,
    }


def describe(log: Source, *, executor: Executor | Engine | None = None) -> Description:
    """Return what is in a log: rows, doses, outcomes, contexts beside them, doubtful columns.

    Nothing is fitted. Of more than 100,000 rows, and of files, all but means, sds and ends is of a
    sample, whose size the result states. ``executor`` is that of `evaluate`.
    """
    found = Description.of(survey_of(log, as_engine(executor, log)))
    return replace(found, about=log.about)


def _summaries(survey: Survey) -> list[ColumnSummary]:
    """Return the doses, the outcome and the contexts of a log in numbers."""
    seen, sums = survey.columns, survey.sums
    values = np.column_stack([seen.doses, seen.outcome, seen.context])
    names = (*seen.dose_names, "outcome", *seen.names)
    mean = sums.moments.mean.copy()
    sd = np.sqrt(np.maximum(np.diagonal(sums.moments.covariance), 0.0))
    if survey.seen_share is not None:  # sums have the mean in place of missing outcomes
        mean[survey.dimension], sd[survey.dimension] = seen.outcome.mean(), seen.outcome.std()
    moments = zip(mean, sd, strict=True)
    ends = zip(sums.low, sums.high, strict=True)
    found = list(map(_summary, names, values.T, moments, ends))
    unseen = 0.0 if survey.seen_share is None else 1.0 - survey.seen_share
    told, first = found[: survey.dimension], survey.dimension + 1
    return [*told, replace(found[first - 1], missing=unseen), *_contexts(survey, found[first:])]


def _contexts(survey: Survey, found: list[ColumnSummary]) -> list[ColumnSummary]:
    """Return contexts with what is known of the columns of the table that they were made of."""
    flow, codes = survey.sample.log.flow, _codes(survey)
    gaps = {} if flow is None else flow.missing
    if not codes and not gaps:
        return found
    from titrant.data.features import source_of  # noqa: PLC0415  (pyarrow)

    return [
        replace(
            column,
            kind=CODE if column.name in codes else column.kind,
            missing=gaps.get(source_of(column.name, gaps)[0], 0.0),
        )
        for column in found
    ]


def _codes(survey: Survey) -> tuple[str, ...]:
    """Return the contexts that are places of texts in the alphabet."""
    flow = survey.sample.log.flow
    return () if flow is None else flow.codes


def _listed(pairs: tuple[tuple[float, float], ...]) -> list[dict[str, float]]:
    return [{"value": value, "share": share} for value, share in pairs]


def _summary(
    name: str, column: Array, moments: tuple[float, float], ends: tuple[float, float]
) -> ColumnSummary:
    values, rows = np.unique(column, return_counts=True)
    most = [k for k in np.argsort(-rows, kind="stable")[:COMMON] if rows[k] > 1]
    shares = [(float(values[k]), float(rows[k] / len(column))) for k in most]
    lower, median, upper = np.quantile(column, (0.25, 0.5, 0.75)).tolist()
    return ColumnSummary(
        name=name,
        kind=_kind(column, len(values), name),
        mean=float(moments[0]),
        sd=float(moments[1]),
        low=float(ends[0]),
        quartiles=(lower, median, upper),
        high=float(ends[1]),
        distinct=len(values),
        common=tuple((value, share) for value, share in shares if share >= LEAST_COMMON),
    )


def _kind(column: Array, distinct: int, name: str) -> str:
    if distinct <= _YES_NO_VALUES:
        return CONSTANT if distinct < _YES_NO_VALUES else YES_NO
    if distinct <= FEW_LEVELS:
        return FEW
    return CODE if is_key(column, name) else NUMBER


def _treatment(column: ColumnSummary, doses: Array, masses: PointMasses | None) -> TreatmentSummary:
    counts, edges = np.histogram(doses, BINS)
    found = TreatmentSummary(column=column, edges=edges, counts=counts)
    if masses is None:
        return found
    pairs = tuple(zip(masses.values.tolist(), masses.shares.tolist(), strict=True))
    return replace(found, masses=pairs, levels=masses.levels)


def _explained(survey: Survey) -> tuple[Array, Array]:
    """Return how each context goes with the doses and the outcome: correlations and R², (p, d + 1).

    R² is the larger one of r² and of what bins explain. The code of a text is no amount: each text
    is a bin of its own, and r², which is that of the alphabet, does not count.
    """
    log = survey.columns
    n, p = log.seen.shape
    targets = standardized(np.column_stack([log.doses, log.outcome]))
    r = standardized(log.seen).T @ targets / n
    explained = r**2
    bins = Bins.of(log.context, log.names, log.held)
    places = bins.codes(log.context) - bins.starts[:-1] if p else np.empty((n, 0), np.intp)
    texts = _codes(survey)
    for j, name in enumerate(log.names):
        if name in texts:
            explained[j] = _between(np.unique(log.context[:, j], return_inverse=True)[1], targets)
        else:
            explained[j] = np.maximum(explained[j], _between(places[:, j], targets))
    return r, np.clip(explained, 0.0, 1.0)


def _between(place: NDArray[np.intp], targets: Array) -> Array:
    """Return how much of standardized targets (n, m) lies between k bins, given each row's (n,).

    That is 1 − (1 − η²)(n − 1)/(n − k), which is 0 on average where bins say nothing.
    """
    n, rows = len(place), np.bincount(place)
    k = len(rows)
    if not 1 < k < n:
        return np.zeros(targets.shape[1])
    sums = np.stack([np.bincount(place, y, k) for y in targets.T])
    eta = np.sum(sums**2 / np.maximum(rows, 1), axis=1) / n
    return np.asarray(1.0 - (1.0 - eta) * (n - 1) / (n - k))


def _cells(c: ColumnSummary, *, amount: bool = True) -> tuple[str, ...]:
    """Return the texts of one column by itself; what is no ``amount`` has no mean."""
    numbers = (c.mean, c.sd, c.low, c.quartiles[1], c.high)
    told = map(brief, numbers) if amount else [""] * len(numbers)
    return (c.name, c.kind, f"{c.distinct:,}", f"{c.missing:.1%}" if c.missing else "", *told)


def _relations(context: ContextSummary) -> tuple[str, str, str]:
    """Return the texts of how a context goes with doses and outcome."""
    r = ", ".join(f"{one:.2f}" for one in context.correlation) if context.is_amount else ""
    dose = ", ".join(f"{one:.2f}" for one in context.explains_dose)
    return r, dose, f"{context.explains_outcome:.2f}"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows of texts as lines with columns below each other, the first two to the left."""
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = 2
    return [
        "  ".join(
            cell.ljust(w) if k < left else cell.rjust(w)
            for k, (cell, w) in enumerate(zip(row, width, strict=True))
        ).rstrip()
        for row in rows
    ]
