"""Logged data: who was treated how, and what came of it. Validated here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

import numpy as np

from titrant import _check
from titrant.data import validate
from titrant.data.about import About
from titrant.data.columns import Columns, Flow, named_columns
from titrant.data.gaps import REFUSE, MissingRule, counted_anew, differences
from titrant.data.keys import group_keys
from titrant.data.masses import check_given, checked_atoms
from titrant.data.notes import warn_of
from titrant.data.validate import Intake, Parts, frozen
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.data.columns import Texts
    from titrant.data.keys import Keys
    from titrant.data.masses import Atoms
    from titrant.data.validate import Bounds, Labels


RowChoice: TypeAlias = "slice | NDArray[np.bool_] | NDArray[np.integer] | Sequence[int]"

_SHOWN_NAMES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is said of a log besides its rows; each is an attribute of `LoggedData`."""

    texts: tuple[Texts, ...] = ()
    clocks: Mapping[str, str] = field(default_factory=dict)
    atoms: tuple[float, ...] | None = None
    after: tuple[str, ...] = ()
    flow: Flow | None = None
    about: About = field(default_factory=About)
    ids: Mapping[str, Keys] = field(default_factory=dict)
    """Columns of the table that are no amounts among the contexts, of texts or whole numbers that
    repeat: keys of their values (n,). Known of a whole log in memory alone."""
    orders: Mapping[str, Array] = field(default_factory=dict)
    """Columns of numbers that were left out of the context, such as row numbers (n,); likewise."""


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class LoggedData:
    """Rows (x, t, y, q): context, treatment given, outcome, and density q = f(t | x) if known.

    All arrays are float64, C-contiguous and read-only. They share memory with the arrays given
    when those already are float64 and contiguous; do not change those afterwards.

    Parameters
    ----------
    context : (n, p) or (n,), p may be 0; a pandas, polars or Arrow table or a dict of columns
        brings its names along
    treatment : (n,) for a scalar dose, (n, d) for a dose in R^d
    outcome : (n,)
    propensity : (n,), > 0, or None when the density of the logged doses is not known
    bounds : None or a pair (lower, upper) of the range in which doses are possible; each side is
        None, a number, one number per row (n,), or for a dose in R^d d numbers or (n, d)
    weights : (n,), ≥ 0, sampling weights: how many of the population each row stands for, in any
        unit. They are no counts of equal rows, whose errors would be smaller: repeat such rows
    groups : (n,), an id of the patient, customer or site that each row belongs to, where one has
        several rows; what is said of errors then counts groups, not rows
    names : p names of the context columns; unless given, those of the table, or x0, x1, … for an
        array. A policy that knows its features finds its columns by these names
    atoms : doses that many rows have exactly, such as 0 or list prices, where the dose has a
        probability and not a density; unless given they are looked for, and () says there are none
    missing_outcome : "refuse" rows without an outcome, "drop" them, or "weight" the others so that
        they stand for them
    maximize : True where more of the outcome is better, such as a profit, False for a loss. Said
        here, every sentence, picture and search on the log knows it; unless said, less is better

    Attributes
    ----------
    context (n, p), treatment (n,) or (n, d), outcome (n,), propensity (n,) or None, names,
    weights (n,) or None, groups (n,) keys of the ids or None, observed (n,), 0 where the outcome
    is missing (and stands as 0) and else 1, or None if it never is,
    flow (what was done to the table that the log was made of, None if nothing was),
    bounded (whether any bound is finite), first_row (place of row 0 in the log it was cut from),
    texts (what the columns hold of which a batch of files made indicators; else empty), clocks (the
    time zones of the dates of which a batch made contexts; else empty), atoms (as given), after
    (columns that `from_frame` left out of the context, measured after the treatment), about (names
    and units of doses and outcome, as far as they are known), maximize

    >>> LoggedData([[1.0], [2.0], [3.0]], [5, 6, 8], [0.1, 0.4, 0.2], bounds=(0, None))
    LoggedData(3 rows; dose 5 … 8 within 0 … ∞; context x0; no propensity)
    """

    context: Array
    treatment: Array
    outcome: Array
    propensity: Array | None
    weights: Array | None
    groups: NDArray[np.int64] | None
    observed: Array | None
    planned: Array | None
    names: tuple[str, ...]
    bounded: bool
    first_row: int
    texts: tuple[Texts, ...]
    clocks: Mapping[str, str]
    atoms: tuple[float, ...] | None
    after: tuple[str, ...]
    flow: Flow | None
    about: About
    ids: Mapping[str, Keys]
    orders: Mapping[str, Array]
    _lower: Array  # (1, d) when all rows share the bound, else (n, d)
    _upper: Array

    def __init__(
        self,
        context: ArrayLike,
        treatment: ArrayLike,
        outcome: ArrayLike,
        propensity: ArrayLike | None = None,
        *,
        bounds: Bounds = None,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        atoms: Atoms = None,
        missing_outcome: str = REFUSE,
        maximize: bool | None = None,
    ) -> None:
        """Validate the parts and keep them; see the class for their shapes."""
        missing = MissingRule(outcome=missing_outcome)
        x, own = named_columns(context, names)
        parts = Parts(
            context=validate.matrix(x, "context"),
            treatment=validate.treatment(treatment, "treatment"),
            outcome=validate.vector(outcome, "outcome"),
            propensity=None if propensity is None else validate.vector(propensity, "propensity"),
            weights=None if weights is None else validate.vector(weights, "weights"),
            groups=None if groups is None else group_keys(groups),
        )
        columns = validate.context_names(own, parts.context.shape[1])
        labels = validate.array_labels(parts, columns)
        validate.check_lengths(parts.lengths)
        n = len(parts.outcome)
        settled = missing.settle(np.empty((n, 0)), parts.outcome, (), labels.outcome)
        named = {"treatment": parts.doses[:, 0]} if parts.doses.shape[1] == 1 else {}
        named |= dict(zip(columns, parts.context.T, strict=True))
        apart = differences(settled.kept, named)
        if settled.kept is not None:
            parts = parts.each(lambda part: part[settled.kept])
        steps = settled.steps
        rows = n, len(parts.outcome)
        flow = Flow(*rows, steps, settled.notes, differing=apart, contexts=columns)
        intake = Intake(
            parts.marked(settled.observed),
            labels,
            columns,
            settled.kept,
            None if flow.plain else flow,
        )
        _fill_checked(self, intake, bounds, atoms, About(maximize=maximize))

    @overload
    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        treatment: str | Iterable[str],
        outcome: str,
        context: str | Iterable[str] | None = ...,
        propensity: str | None = ...,
        weights: str | None = ...,
        groups: str | None = ...,
        bounds: Bounds = ...,
        atoms: Atoms = ...,
        after: str | Iterable[str] = ...,
        treated_on: str | None = ...,
        missing_treatment: str = ...,
        missing_outcome: str = ...,
        maximize: bool | None = ...,
        units: Mapping[str, str] | None = ...,
    ) -> LoggedData: ...

    @overload
    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        treatment: str | Iterable[str],
        outcome: list[str] | tuple[str, ...],
        context: str | Iterable[str] | None = ...,
        propensity: str | None = ...,
        weights: str | None = ...,
        groups: str | None = ...,
        bounds: Bounds = ...,
        atoms: Atoms = ...,
        after: str | Iterable[str] = ...,
        treated_on: str | None = ...,
        missing_treatment: str = ...,
        missing_outcome: str = ...,
        maximize: bool | Collection[str] | None = ...,
        units: Mapping[str, str] | None = ...,
    ) -> dict[str, LoggedData]: ...

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        treatment: str | Iterable[str],
        outcome: str | list[str] | tuple[str, ...],
        context: str | Iterable[str] | None = None,
        propensity: str | None = None,
        weights: str | None = None,
        groups: str | None = None,
        bounds: Bounds = None,
        atoms: Atoms = None,
        after: str | Iterable[str] = (),
        treated_on: str | None = None,
        missing_treatment: str = REFUSE,
        missing_outcome: str = REFUSE,
        maximize: bool | Collection[str] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> LoggedData | dict[str, LoggedData]:
        """Return the log held in named columns of a table, as people have it.

        `frame` is a pandas, polars or pyarrow table, an Arrow stream, a duckdb relation, or a
        dict of columns; only the named columns are read. What was done to it is said in `flow`, and
        in a `TableWarning` with the sentences that the command line prints.
        `bounds` and `atoms` are those of the class. Contexts that `after` names were measured after
        the treatment: they are left out, and every trust report says so. So are dates that are
        mostly after those in the column `treated_on`.

        Parameters
        ----------
        outcome : the name of a column; a list of names gives a dict with a log of the same rows for
            each, as `outcomes` takes it. None of them is a context of another
        context : names of columns; None for all others that are fit to be contexts. Texts and
            categories become 0/1 columns such as ``sex=male``, or one column of codes where they
            are more than 50; dates their year, month, day, weekday, hour and running days; missing
            numbers the median, with a 0/1 column such as ``age is missing``; missing texts a level
            of their own
        treated_on : the column with the date of the treatment, which may be a context as well. A
            context whose dates are after it in most rows is taken as one of `after`; one that is so
            in more than a twentieth of the rows is doubted
        missing_treatment : "refuse" rows without a treatment, or "drop" them
        missing_outcome : "refuse" rows without an outcome, "drop" them (of several outcomes, rows
            without any one of them), or "weight" the others so that they stand for them
        maximize : that of the class; of several outcomes also the names of those that are rewards
        units : of doses and outcomes by their columns, such as ``{"dose": "mg"}``, for pictures

        >>> table = {"dose": [1, 2, 4], "loss": [0.5, 0.1, 0.9], "age": [30, 41, None]}
        >>> log = LoggedData.from_frame(table, treatment="dose", outcome="loss", context="age")
        >>> log
        LoggedData(3 rows; dose 1 … 4; context age, age is missing; no propensity)
        >>> print(log.flow)
        3 rows, all used.
        Column `age` is missing in 1 of 3 rows: the median, 30, stands there; `age is missing` ...
        """
        from titrant.data.intake import taken_in  # noqa: PLC0415 - loads pyarrow

        several = isinstance(outcome, Iterable) and not isinstance(outcome, str)
        named = list(outcome) if several else [cast("str", outcome)]
        if not named:
            raise DataError("The outcome must name at least one column; got none.")
        columns = Columns(
            treatment=treatment,
            outcome=named[0],
            # Without a choice, all that is not left out is a context.
            context=after if context is None else context,
            propensity=propensity,
            weights=weights,
            groups=groups,
            after=after,
        )
        missing = MissingRule(treatment=missing_treatment, outcome=missing_outcome)
        each = columns.by_outcome(named, maximize=maximize, units=units)
        if several:
            from titrant.data.frames import read_once  # noqa: PLC0415 - loads pyarrow

            frame = read_once(frame)
        logs = {}
        for name, own in each.items():
            beside = [other for other in each if other != name]
            intake = taken_in(
                frame,
                own,
                missing,
                all_others=context is None,
                beside=beside,
                treated_on=treated_on,
            )
            late = () if intake.flow is None else intake.flow.late
            logs[name] = object.__new__(cls)
            _fill_checked(logs[name], intake, bounds, atoms, own.about, after=(*own.after, *late))
        warn_of(logs[columns.outcome], chosen=context is None)
        return logs if several else logs[named[0]]

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.outcome)

    @property
    def has_propensity(self) -> bool:
        """Whether the density of the logged doses is known."""
        return self.propensity is not None

    @property
    def maximize(self) -> bool | None:
        """Whether more of the outcome is better; None where nobody said it."""
        return self.about.maximize

    @property
    def grouped(self) -> bool:
        """Whether several rows may belong to one group."""
        return self.groups is not None

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.weights is not None

    @property
    def partitions(self) -> tuple[LoggedData]:
        """The log itself: all rows are in memory."""
        return (self,)

    @property
    def sample_rows(self) -> int:
        """The number of rows: models are fitted on all of them."""
        return len(self)

    @property
    def dimension(self) -> int:
        """The dimension d of the treatment."""
        return 1 if self.treatment.ndim == 1 else self.treatment.shape[1]

    @property
    def doses(self) -> Array:
        """The treatment as (n, d), also when d = 1."""
        return self.treatment.reshape(len(self), self.dimension)

    @property
    def lower(self) -> Array:
        """The lower bound of each dose (n, d), −inf where there is none."""
        return np.broadcast_to(self._lower, (len(self), self.dimension))

    @property
    def upper(self) -> Array:
        """The upper bound of each dose (n, d), +inf where there is none."""
        return np.broadcast_to(self._upper, (len(self), self.dimension))

    def rows(self, selection: RowChoice) -> LoggedData:
        """Return the rows that a slice, a mask (n,) or an array of row numbers selects.

        Nothing is validated again. A slice of consecutive rows shares memory and keeps its place
        in `first_row`; any other selection is a log of its own, whose `first_row` is 0.
        """
        if not isinstance(selection, slice):
            chosen = np.asarray(selection)
            index = chosen if chosen.size else chosen.astype(np.intp)
            return self._cut(lambda part: part[index], 0)
        start, _, step = selection.indices(len(self))
        first = self.first_row + start if step == 1 else 0
        return self._cut(lambda part: np.ascontiguousarray(part[selection]), first)

    def batches(self, size: int) -> Iterator[LoggedData]:
        """Yield consecutive slices of `size` rows, the last one shorter."""
        step = _check.count(size, "size", "LoggedData.batches")
        return (self.rows(slice(i, i + step)) for i in range(0, len(self), step))

    def numbered(self, first_row: int) -> LoggedData:
        """Return the same rows as those of a larger log that begin at row ``first_row``."""
        return self._with(first_row=first_row)

    def with_propensity(self, propensity: ArrayLike | None) -> LoggedData:
        """Return the same rows with another propensity (n,), or with none."""
        q = None if propensity is None else validate.vector(propensity, "propensity")
        if q is not None:
            validate.check_lengths({"outcome": len(self), "propensity": len(q)})
            validate.check_finite({"propensity": q})
            validate.check_propensity(q, "propensity")
        return self._with(parts=replace(self._parts, propensity=q))

    def with_outcome(self, outcome: ArrayLike, *, maximize: bool | None = None) -> LoggedData:
        """Return the same rows with another outcome (n,), ``maximize`` said of it anew."""
        y = validate.vector(outcome, "outcome")
        validate.check_lengths({"treatment": len(self), "outcome": len(y)})
        validate.check_finite({"outcome": y})
        beside = replace(self._beside, about=self.about.without_outcome(maximize))
        return self._with(parts=replace(self._parts, outcome=y), beside=beside)

    def losses(self, *, maximize: bool) -> LoggedData:
        """Return the same rows with a loss for the outcome: negated if it is to be maximized."""
        return self.with_outcome(-self.outcome, maximize=False) if maximize else self

    def with_treatment(self, treatment: ArrayLike) -> LoggedData:
        """Return the same rows with other doses, (n,) or (n, d), looked at anew for point masses.

        A propensity is the density of the doses that were there before: there is none.
        """
        t = validate.treatment(treatment, "treatment")
        parts = replace(self._parts, treatment=t, propensity=None)
        labels = validate.array_labels(parts, self.names)
        validate.check_lengths({"outcome": len(self), "treatment": len(t)})
        validate.check_finite(validate.by_label(parts, labels))
        validate.check_varies(parts.doses, labels.treatment)
        validate.check_within(parts.doses, *self._limits, labels.treatment)
        return self._with(parts=parts, beside=replace(self._beside, atoms=None))

    def without(self, contexts: Sequence[str]) -> LoggedData:
        """Return the same rows without some of the contexts, given by their names."""
        unknown = [name for name in contexts if name not in self.names]
        if unknown:
            raise DataError(
                f"The log has no context {unknown[0]!r}; it has {', '.join(self.names) or 'none'}."
            )
        kept = [j for j, name in enumerate(self.names) if name not in contexts]
        parts = replace(self._parts, context=np.ascontiguousarray(self.context[:, kept]))
        names = tuple(self.names[j] for j in kept)
        flow = None if self.flow is None else replace(self.flow, contexts=names)
        beside = replace(self._beside, flow=flow)
        return _assembled(parts, names, self._limits, self.first_row, beside)

    def with_weights(self, weights: ArrayLike | None) -> LoggedData:
        """Return the same rows with other weights (n,), or with none."""
        w = None if weights is None else validate.vector(weights, "weights")
        if w is not None:
            validate.check_lengths({"treatment": len(self), "weights": len(w)})
            validate.check_finite({"weights": w})
            validate.check_weights(w, "weights")
        return self._with(parts=replace(self._parts, weights=w))

    def with_plans(self, planned: Array) -> LoggedData:
        """Return the same rows with doses (n, k) planned for them, after those there are."""
        every = planned if self.planned is None else np.hstack([self.planned, planned])
        return self._with(parts=replace(self._parts, planned=every))

    def with_bounds(self, bounds: Bounds) -> LoggedData:
        """Return the same rows with other bounds, or with none."""
        limits = validate.bound_arrays(bounds, len(self), self.dimension)
        labels = validate.array_labels(self._parts, self.names)
        validate.check_within(self.doses, *limits, labels.treatment)
        return self._with(limits=limits)

    def with_atoms(self, atoms: Atoms) -> LoggedData:
        """Return the same rows with other point masses; None to look for them, () for none."""
        own = checked_atoms(atoms, self.dimension, "LoggedData.with_atoms")
        check_given(own, self.doses)
        return self._with(beside=replace(self._beside, atoms=own))

    def to_columns(
        self,
        *,
        treatment: str = "treatment",
        outcome: str = "outcome",
        propensity: str = "propensity",
        weights: str = "weights",
        groups: str = "groups",
    ) -> dict[str, Any]:
        """Return each column (n,) by name, ready for any table; doses in R^d are numbered."""
        several = [f"{treatment}_{j}" for j in range(self.dimension)]
        columns = Columns(
            treatment=treatment if self.dimension == 1 else several,
            outcome=outcome,
            context=self.names,
            propensity=None if self.propensity is None else propensity,
            weights=None if self.weights is None else weights,
            groups=None if self.groups is None else groups,
        )
        return (
            {name: self.context[:, j] for j, name in enumerate(columns.features)}
            | {name: self.doses[:, j] for j, name in enumerate(columns.doses)}
            | {outcome: self._known_outcome}
            | ({} if self.propensity is None else {propensity: self.propensity})
            | ({} if self.weights is None else {weights: self.weights})
            | ({} if self.groups is None else {groups: self.groups})
        )

    def __repr__(self) -> str:
        """Return one readable line."""
        within = f" within {_range(self._lower, self._upper)}" if self.bounded else ""
        known = "propensity known" if self.propensity is not None else "no propensity"
        dose = "dose" if self.dimension == 1 else f"{self.dimension} doses"
        what = f"{dose} {_range(self.treatment, self.treatment)}{within}"
        rows = f"{len(self):,} rows"
        if self.groups is not None:
            rows += f" of {len(np.unique(self.groups)):,} groups"
        weighted = "; weighted" if self.weights is not None else ""
        better = "" if self.maximize is None else f"; {self.about.better} outcomes are better"
        return f"LoggedData({rows}; {what}; {_shown(self.names)}; {known}{weighted}{better})"

    def __reduce__(self) -> tuple[Callable[..., LoggedData], tuple[object, ...]]:
        """Pickle the compact bounds, and come back read-only in another process."""
        beside = replace(self._beside, texts=self.texts, clocks=self.clocks)
        return _assembled, (self._parts, self.names, self._limits, self.first_row, beside)

    @property
    def _known_outcome(self) -> Array:
        """The outcome, NaN where it is missing."""
        if self.observed is None:
            return self.outcome
        return np.where(self.observed > 0.0, self.outcome, np.nan)

    @property
    def _beside(self) -> Beside:
        """What is said of the log besides its rows; not what a batch of files held."""
        return Beside(atoms=self.atoms, after=self.after, flow=self.flow, about=self.about)

    @property
    def _parts(self) -> Parts:
        return Parts(**{part.name: getattr(self, part.name) for part in fields(Parts)})

    @property
    def _limits(self) -> tuple[Array, Array]:
        return self._lower, self._upper

    def _cut(self, take: Callable[[Array], Array], first_row: int) -> LoggedData:
        lower = self._lower if len(self._lower) == 1 else take(self._lower)
        upper = self._upper if len(self._upper) == 1 else take(self._upper)
        parts = self._parts.each(take)
        return self._with(parts=parts, limits=(lower, upper), first_row=first_row)

    def _with(
        self,
        *,
        parts: Parts | None = None,
        limits: tuple[Array, Array] | None = None,
        first_row: int | None = None,
        beside: Beside | None = None,
    ) -> LoggedData:
        """Return a log that differs in what is given, all of it validated."""
        return _assembled(
            self._parts if parts is None else parts,
            self.names,
            self._limits if limits is None else limits,
            self.first_row if first_row is None else first_row,
            self._beside if beside is None else beside,
        )


def checked_batch(
    parts: Parts,
    names: tuple[str, ...],
    limits: tuple[Array, Array],
    labels: Labels,
    first_row: int,
    *,
    texts: tuple[Texts, ...] = (),
    clocks: Mapping[str, str] | None = None,
    flow: Flow | None = None,
    ids: Mapping[str, Keys] | None = None,
) -> LoggedData:
    """Return a batch of a log, each of its rows checked; whether doses vary shows in all rows."""
    validate.check_finite(validate.by_label(parts, labels), remedy=validate.IN_MEMORY)
    if parts.propensity is not None:
        validate.check_propensity(parts.propensity, labels.propensity)
    if parts.weights is not None and len(parts.weights):
        validate.check_weights(parts.weights, labels.weights)
    validate.check_within(parts.doses, *limits, labels.treatment)
    beside = Beside(texts=texts, clocks=clocks or {}, flow=flow, ids=ids or {})
    return _assembled(parts, names, limits, first_row, beside)


def joined(logs: Sequence[LoggedData]) -> LoggedData:
    """Return the rows of several logs of one kind, one after the other, as a log of its own."""
    if len(logs) == 1:
        return logs[0]
    shared = all(len(log._lower) == 1 for log in logs)  # noqa: SLF001
    limits = logs[0]._limits  # noqa: SLF001
    if not shared:
        limits = (
            np.concatenate([log.lower for log in logs]),
            np.concatenate([log.upper for log in logs]),
        )
    parts = Parts.joined([log._parts for log in logs])  # noqa: SLF001
    return _assembled(parts, logs[0].names, limits, 0, logs[0]._beside)  # noqa: SLF001


def drawn_by_weight(log: LoggedData) -> tuple[LoggedData, NDArray[np.intp]]:
    """Return as many rows, each as often as its weight says and counting once; and which they are.

    What learns from them learns of the population that weights stand for, whatever it is. Rows are
    drawn in equal steps along the summed weights, so each as often as it should be within one. The
    same row drawn twice is a group, as are rows of one group.
    """
    n = len(log)
    if log.weights is None:
        return log, np.arange(n)
    along = np.cumsum(log.weights) * (n / log.weights.sum())
    drawn = np.minimum(np.searchsorted(along, np.arange(n) + 0.5), n - 1)
    rows = log.rows(drawn)
    groups = log.first_row + drawn.astype(np.int64) if log.groups is None else rows.groups
    parts = replace(rows._parts, weights=None, groups=groups)  # noqa: SLF001
    return rows._with(parts=parts), drawn  # noqa: SLF001


def _fill_checked(
    log: LoggedData,
    intake: Intake,
    bounds: Bounds,
    atoms: Atoms,
    about: About,
    *,
    after: tuple[str, ...] = (),
) -> None:
    """Check the parts by themselves and against each other, then store them."""
    with counted_anew(intake.kept):
        limits = _checked(intake, bounds)
    own = checked_atoms(atoms, intake.parts.doses.shape[1], "LoggedData")
    check_given(own, intake.parts.doses)
    beside = Beside(
        atoms=own,
        after=after,
        flow=intake.flow,
        about=about,
        ids=intake.ids,
        orders=intake.orders,
    )
    _fill(log, intake.parts, intake.names, limits, 0, beside)


def _checked(intake: Intake, bounds: Bounds) -> tuple[Array, Array]:
    """Check the parts of a log; return the bounds of its doses."""
    parts, labels, kept = intake.parts, intake.labels, intake.kept
    validate.check_lengths(parts.lengths)
    validate.check_rows(len(parts.outcome))
    validate.check_finite(validate.by_label(parts, labels))
    validate.check_varies(parts.doses, labels.treatment)
    for label, column in zip(labels.treatment, parts.doses.T, strict=True):
        validate.check_scale(label, column.min(), column.max())
    validate.check_scale(labels.outcome, parts.outcome.min(), parts.outcome.max())
    if parts.propensity is not None:
        validate.check_propensity(parts.propensity, labels.propensity)
    if parts.weights is not None:
        validate.check_weights(parts.weights, labels.weights)
    n, d = parts.doses.shape
    lower, upper = validate.bound_arrays(bounds, n if kept is None else len(kept), d)
    if kept is not None:
        lower, upper = (side if len(side) == 1 else side[kept] for side in (lower, upper))
    validate.check_within(parts.doses, lower, upper, labels.treatment)
    return lower, upper


def _assembled(
    parts: Parts,
    names: tuple[str, ...],
    limits: tuple[Array, Array],
    first_row: int,
    beside: Beside | None = None,
) -> LoggedData:
    """Return a log of parts that have been validated."""
    log = object.__new__(LoggedData)
    _fill(log, parts, names, limits, first_row, Beside() if beside is None else beside)
    return log


def _fill(  # noqa: PLR0917  (all that a log holds)
    log: LoggedData,
    parts: Parts,
    names: tuple[str, ...],
    limits: tuple[Array, Array],
    first_row: int,
    beside: Beside,
) -> None:
    store = object.__setattr__  # the class is frozen
    for held in (parts.each(frozen), beside):
        for part in fields(held):
            store(log, part.name, getattr(held, part.name))
    store(log, "names", names)
    store(log, "bounded", any(bool(np.isfinite(limit).any()) for limit in limits))
    store(log, "first_row", first_row)
    store(log, "_lower", frozen(limits[0]))
    store(log, "_upper", frozen(limits[1]))


def _range(low: Array, high: Array) -> str:
    if not low.size:
        return "none"
    return f"{low.min():.6g} … {high.max():.6g}".replace("inf", "∞")


def _shown(names: tuple[str, ...]) -> str:
    if not names:
        return "no context"
    rest = len(names) - _SHOWN_NAMES
    return "context " + ", ".join(names[:_SHOWN_NAMES]) + (f" and {rest} more" if rest > 0 else "")
