"""The columns of a table: which plays which role, what was done to them, what became contexts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from titrant.data.about import About
from titrant.data.validate import closest, counted, did_you_mean, listed
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from titrant._types import Array
    from titrant.data.frames import NamedTable
    from titrant.data.gaps import Difference

# Which column of a table plays which role.


Roles: TypeAlias = tuple[tuple[str, str], ...]  # (role, column name)
TREATED_ON = "treatment date"
"""The role of the column that dates the treatment. It may be a context as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names of the columns that make a log.

    `treatment` names one column, or d of them for a treatment in R^d; `context` names any number
    of columns, also none; `propensity` names the column of f(t | x) if the table has one, `weights`
    that of sampling weights, `groups` that of ids of those who have several rows. Those of
    the contexts that `after` names were measured after the treatment and are not used. `maximize`
    says whether more of the outcome is better, and `units` by name what treatment and outcome are
    measured in, as `LoggedData.from_frame` does.

    >>> Columns(treatment="dose", outcome="loss", context=["age", "bmi"]).needed
    ('dose', 'loss', 'age', 'bmi')
    """

    treatment: str | Iterable[str]
    outcome: str
    context: str | Iterable[str]
    propensity: str | None = None
    weights: str | None = None
    groups: str | None = None
    after: str | Iterable[str] = ()
    maximize: bool | None = None
    units: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Store lists as tuples; refuse names that are not text and columns with two roles."""
        object.__setattr__(self, "treatment", _kept(self.treatment, "treatment"))
        after = _several(_kept(self.after, "`after`"))
        object.__setattr__(self, "after", after)
        object.__setattr__(self, "context", _without(_kept(self.context, "context"), after))
        if not self.doses:
            raise DataError(
                "The treatment must name at least one column; got none. Name the dose column."
            )
        check_roles(self.roles)
        _ = self.about  # refuses a direction and units that are none

    @property
    def about(self) -> About:
        """What the log is about, as far as the names of its columns say it."""
        return About(
            treatments=self.doses,
            outcome=self.outcome,
            units=self.units,
            maximize=self.maximize,
        )

    @property
    def doses(self) -> tuple[str, ...]:
        """The d treatment columns."""
        return _several(self.treatment)

    @property
    def features(self) -> tuple[str, ...]:
        """The p context columns."""
        return _several(self.context)

    @property
    def roles(self) -> Roles:
        """Each (role, column): treatment, outcome, propensity, weights, groups, context."""
        single = ("propensity", "weights", "groups")
        named = [(role, getattr(self, role)) for role in single]
        return (
            *(("treatment", name) for name in self.doses),
            ("outcome", self.outcome),
            *((role, name) for role, name in named if name is not None),
            *context_roles(self.features),
        )

    def by_outcome(
        self,
        names: Iterable[str],
        *,
        maximize: bool | Collection[str] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> dict[str, Columns]:
        """Return the columns of logs of the same rows, one for each outcome; none is a context.

        ``maximize`` says of all of them whether they are rewards, or names those that are; it and
        ``units`` are as they were unless given.
        """
        every = _several(_kept(names, "outcome"))
        aside = tuple(role for role in self.roles if role[0] != "outcome")
        check_roles((*aside, *(("outcome", name) for name in every)))
        after = tuple(name for name in self.after if name not in every)
        own = _rewards(every, maximize=self.maximize if maximize is None else maximize)
        measured = self.units if units is None else units
        found = {}
        for name in every:
            apart = (*after, *(other for other in every if other != name))
            found[name] = replace(
                self,
                outcome=name,
                context=(*self.features, *apart),
                after=apart,
                maximize=own[name],
                units={n: u for n, u in measured.items() if n == name or n not in every},
            )
        return found

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns to read, each once."""
        return tuple(name for _, name in self.roles)


def _rewards(
    outcomes: tuple[str, ...], *, maximize: bool | Collection[str] | None
) -> dict[str, bool | None]:
    """Return of each outcome whether it is a reward; None where nobody says it."""
    if maximize is None or isinstance(maximize, bool):
        return dict.fromkeys(outcomes, maximize)
    rewards = _several(maximize)
    strange = [name for name in rewards if name not in outcomes]
    if strange:
        raise DataError(
            f"`maximize` names `{strange[0]}`, which is none of the outcomes {listed(outcomes)}"
            f"{did_you_mean(strange[0], outcomes)}"
        )
    return {name: name in rewards for name in outcomes}


def dated_roles(roles: Roles, treated_on: str | None) -> Roles:
    """Return the roles with that of the column that dates the treatment, if one does."""
    if treated_on is None:
        return roles
    check_roles((*(one for one in roles if one[0] != "context"), (TREATED_ON, treated_on)))
    known = any(name == treated_on for _, name in roles)
    return roles if known else (*roles, (TREATED_ON, treated_on))


def context_roles(names: Iterable[str]) -> Roles:
    """Return the roles of a table that holds contexts alone."""
    return tuple(("context", name) for name in names)


def check_roles(roles: Roles) -> None:
    """Refuse names that are not text and columns with two roles."""
    seen: dict[str, str] = {}
    for role, name in roles:
        if not isinstance(name, str):
            raise _name_not_text(name, role)
        if name in seen:
            first = seen[name]
            used = f"twice as {first}" if first == role else f"as {first} and as {role}"
            raise DataError(
                f"A column must have one role; got `{name}` {used}. Remove it from one of the two."
            )
        seen[name] = role


def check_present(roles: Roles, available: Sequence[object]) -> None:
    """Refuse a table whose column names repeat or lack one that is needed."""
    names = [str(name) for name in available]
    if len(set(names)) < len(names):
        raise duplicate_names(names)
    for role, name in roles:
        if name not in names:
            raise missing_column(name, role, names)
        given = available[names.index(name)]
        if not isinstance(given, str):
            raise _name_not_text(given, role)


def duplicate_names(names: Sequence[str]) -> DataError:
    """Refuse a table in which several columns share a name."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    counts = ", ".join(f"`{name}` {names.count(name)} times" for name in twice)
    return DataError(
        f"The column names of a table must differ; got {counts}. Rename or drop the repeated ones."
    )


def missing_column(name: str, role: str, available: Sequence[str]) -> DataError:
    """Refuse a column name that the table lacks, and suggest the closest one.

    Of a context that is made of a column, such as `sex=male`, that column is named, too.
    """
    from titrant.data.features import column_of  # noqa: PLC0415  (pyarrow)

    column = column_of(name) if role == "context" else name
    nor = "" if column == name else f", nor is the column `{column}` of which it is made"
    return DataError(
        f"The {role} column `{name}` is not in the table{nor}{did_you_mean(column, available)} "
        f"The table has {counted(len(available), 'column')}: {listed(available) or 'none'}."
    )


def _name_not_text(name: object, role: str) -> DataError:
    return DataError(
        f"The name of the {role} column must be text; got {name!r}. "
        "Rename the columns of the table to text."
    )


def _without(context: str | tuple[str, ...], after: tuple[str, ...]) -> str | tuple[str, ...]:
    """Return the contexts but those measured after the treatment, each of which must be one."""
    names = _several(context)
    for name in after:
        if name not in names:
            # Passed over, a misspelled name would leave the column that is meant in the contexts.
            raise DataError(
                f"The column `{name}`, said to be measured after the treatment, is not among the "
                f"contexts{did_you_mean(name, names)} They are {listed(names) or 'none'}."
            )
    return tuple(name for name in names if name not in after) if after else context


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _kept(names: str | Iterable[str], role: str) -> str | tuple[str, ...]:
    """Return a name as it is and a list of names as a tuple, so that `Columns` can be hashed."""
    if isinstance(names, str):
        return names
    if not isinstance(names, Iterable):
        raise _name_not_text(names, role)
    if isinstance(names, (set, frozenset)):
        # The order of a set changes from run to run, and coefficients follow the order.
        raise DataError(
            f"The names of the {role} columns must come in an order; got a set. Give them as a "
            "list."
        )
    return tuple(names)


# Contexts as users hold them, a bare array or a table with names, and how names are matched.


@runtime_checkable
class KnowsFeatures(Protocol):
    """A rule that may know the names of its contexts."""

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names in their order, None if unknown."""


def named_table(contexts: object) -> NamedTable | None:
    """Return a table of any library by its columns' names, None for arrays and numbered columns."""
    if isinstance(contexts, (np.ndarray, list, tuple)):
        return None
    from titrant.data import frames  # noqa: PLC0415 - loads pyarrow, which arrays do not need

    return frames.named(contexts)


def is_table(contexts: object) -> bool:
    """Whether something is a table with columns that are more than counted."""
    if isinstance(contexts, (np.ndarray, list, tuple)):
        return False
    from titrant.data import frames  # noqa: PLC0415 - loads pyarrow, which arrays do not need

    return frames.is_table(contexts)


def named_columns(
    contexts: object, names: Sequence[str] | None
) -> tuple[object, Sequence[str] | None]:
    """Return contexts as an array and their names: those of a table are its own.

    What is no table is returned as it is, with the ``names`` given.
    """
    table = named_table(contexts)
    if table is None:
        return contexts, names
    own: tuple[str, ...] = table.names
    if names is not None and tuple(names) != own:
        raise DataError(
            f"The context is a table with the columns {listed(own)}; got the `names` "
            f"{listed(names)} besides. Leave `names` out, or rename or select the columns of the "
            "table."
        )
    x: Array = table.columns(own)
    return x, own


def select(X: Array, features: Sequence[str] | None, names: Sequence[str], owner: str) -> Array:
    """Return the columns of X (n, p), called ``names``, that are the ``features``, in their order.

    Without features, or with the very names, it is X itself.
    """
    if not features or tuple(features) == tuple(names):
        return X
    return np.take(X, places(features, names, owner), axis=1)


def places(features: Sequence[str], names: Sequence[str], owner: str) -> tuple[int, ...]:
    """Return where each of the features is among the names, or refuse to guess those missing."""
    missing = [feature for feature in features if feature not in names]
    if missing:
        noun = "context" if len(missing) == 1 else "contexts"
        raise DataError(
            f"The {owner} uses the {noun} {listed(missing)}, which the log lacks"
            f"{did_you_mean(missing[0], names)} The log has {listed(names) or 'none'}. Name the "
            "columns as the policy does: a log made of arrays takes `LoggedData(…, names=[…])`."
        )
    return tuple(map(list(names).index, features))


# ── How contexts are made of the columns of a table, as far as their names do not say it ──────────


IS_MISSING = " is missing"
"""After the name of a column, the 0/1 context that says where it was."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the names of contexts do not say of how they are made."""

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts of each column that was encoded, the reference first."""
    fills: Mapping[str, float] = field(default_factory=dict)
    """The number that stands for a missing one, by context."""
    codes: tuple[str, ...] = ()
    """The encoded columns that are one context, the place of the text among the levels."""
    dates: Mapping[str, str] = field(default_factory=dict)
    """The columns of dates that were written as text, each with its format, such as %d.%m.%Y."""
    clocks: Mapping[str, str] = field(default_factory=dict)
    """The time zone of the hours and days of each column of dates, "" of one that names none."""


def one_clock(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    """Return the time zones of the dates in two sets of rows; refuse a column that has two."""
    for name in one.keys() & other.keys():
        if one[name] != other[name]:
            raise DataError(
                f"The dates of the column `{name}` must be of one time zone, by which their hours "
                f"are taken; got {zone_called(one[name])} in some files and "
                f"{zone_called(other[name])} in others. Convert the column to one zone in all."
            )
    return {**one, **other}


def zone_called(clock: str) -> str:
    """Return what sentences call the time zone of a column."""
    return clock or "none"


# ── What was done to a table on its way to a log ──────────────────────────────────────────────────

ENCODED, FILLED, LEFT_OUT, WEIGHTED = "encoded", "filled", "left out", "weighted"
READ = "read"
"""What may have been done to a column."""


@dataclass(frozen=True, slots=True)
class Step:
    """Rows that were left out, and why."""

    reason: str
    rows: int


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """What was done to one column, in a word and in a sentence."""

    column: str
    done: str
    text: str
    missing: float = 0.0
    """The share of rows in which it is missing."""


@dataclass(frozen=True, slots=True)
class Dated:
    """How many dates of a column are after those of the treatment."""

    column: str
    later: int
    rows: int
    """Those in which both dates are known."""

    @property
    def after(self) -> bool:
        """Whether most of them are."""
        return 2 * self.later > self.rows

    def __str__(self) -> str:
        return f"{self.later:,} of {self.rows:,} rows ({self.later / self.rows:.1%})"


@dataclass(frozen=True, slots=True)
class Flow:
    """From the rows of a table to those of a log, with a reason for each step.

    >>> print(Flow(1629, 1566, (Step("the outcome column `loss` is missing", 63),)))
    1,629 rows → 1,566 used: 63 left out because the outcome column `loss` is missing.
    """

    rows_in: int
    rows_used: int
    steps: tuple[Step, ...] = ()
    notes: tuple[ColumnNote, ...] = ()
    """On each column that was not taken as it is."""
    recipe: Recipe | None = None
    """How the contexts are made of the columns of a table; None if they are its columns."""
    differing: tuple[Difference, ...] = ()
    """Columns by which the rows left out differ from those used."""
    dated: tuple[Dated, ...] = ()
    """Columns of dates, compared with that of the treatment where it was stated."""
    decimal_groups: str | None = None
    """The column that says which rows belong together, where it holds decimal numbers."""
    contexts: tuple[str, ...] = ()
    """All contexts, in their order: those named, or those found in the table."""

    @property
    def late(self) -> tuple[str, ...]:
        """The columns whose dates are mostly after that of the treatment."""
        return tuple(one.column for one in self.dated if one.after)

    @property
    def codes(self) -> tuple[str, ...]:
        """The contexts that are codes of texts, not amounts."""
        return () if self.recipe is None else self.recipe.codes

    @property
    def missing(self) -> dict[str, float]:
        """The share of rows in which each column is missing that is so in some."""
        return {note.column: note.missing for note in self.notes if note.missing}

    @property
    def running(self) -> tuple[str, ...]:
        """The contexts that are the running time of dates."""
        return tuple(f"{name}.days" for name in self.encoded)

    @property
    def encoded(self) -> tuple[str, ...]:
        """The columns of which contexts were made."""
        return tuple(note.column for note in self.notes if note.done == ENCODED)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that are no contexts."""
        return tuple(note.column for note in self.notes if note.done == LEFT_OUT)

    @property
    def plain(self) -> bool:
        """Whether the table was taken as it is."""
        return not self.steps and not self.notes

    @property
    def rows(self) -> str:
        """The rows in a sentence."""
        if not self.steps:
            return f"{counted(self.rows_in, 'row')}, all used."
        reasons = "; ".join(f"{s.rows:,} left out because {s.reason}" for s in self.steps)
        return f"{counted(self.rows_in, 'row')} → {self.rows_used:,} used: {reasons}."

    def __iter__(self) -> Iterator[str]:
        """Return all sentences, that of the rows first."""
        yield self.rows
        yield from (note.text for note in self.notes)

    def __str__(self) -> str:
        return "\n".join(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "rows_in": self.rows_in,
            "rows_used": self.rows_used,
            "steps": [{"reason": step.reason, "rows": step.rows} for step in self.steps],
            "columns": [
                {"column": note.column, "done": note.done, "note": note.text} for note in self.notes
            ],
            "contexts": list(self.contexts),
        }


# ── Which texts the columns hold from which 0/1 indicators are made ───────────────────────────────
# In a log that is read part by part the user names the indicators. A name that is misspelled, or a
# file that spells a text otherwise, gives 0 in these rows, which no number shows: so the texts that
# have no indicator are kept, and all but one, the reference, are refused.

MOST_OTHERS = 50
"""Texts without an indicator that are kept of a column; that there are more is kept, too."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one column in some rows; the texts of several sets of rows add up."""

    column: str
    named: tuple[str, ...]
    """Those that an indicator was asked for."""
    found: frozenset[str]
    """Those of them that a row has."""
    others: tuple[str, ...]
    """The texts without an indicator in alphabetical order, one more than `MOST_OTHERS` at most."""

    @classmethod
    def of(cls, column: str, named: Iterable[str], present: Iterable[str]) -> Texts:
        """Return what the texts ``present`` in some rows say of a column."""
        asked, there = tuple(named), frozenset(present)
        return cls(column, asked, there.intersection(asked), _first(there.difference(asked)))

    def __add__(self, other: Texts) -> Texts:
        """Return the texts of both sets of rows."""
        named = tuple(dict.fromkeys(self.named + other.named))
        others = _first({*self.others, *other.others}.difference(named))
        return Texts(self.column, named, self.found | other.found, others)

    @property
    def levels(self) -> tuple[str, ...]:
        """All texts of the column, the one without an indicator first."""
        return (*self.others, *(text for text in self.named if text in self.found))


def added_texts(texts: Iterable[Texts]) -> tuple[Texts, ...]:
    """Return the texts of each column over all rows."""
    by_column = groupby(sorted(texts, key=attrgetter("column")), key=attrgetter("column"))
    return tuple(sum(rest, first) for _, (first, *rest) in by_column)


def check_texts(texts: Iterable[Texts], contexts: Collection[str]) -> None:
    """Refuse indicators that no row has, and columns with several texts but no indicator of them.

    A column that is itself among the ``contexts`` loses nothing by such texts.
    """
    for column in texts:
        for text in column.named:
            if text not in column.found:
                name, close = column.column, closest(text, column.levels)
                hint = f"; did you mean `{name}={close}`?" if close else "."
                raise DataError(
                    f"The context `{name}={text}` would be 0 in all rows: none has the text "
                    f"`{text}` in the column `{name}`{hint} Its texts are {listed(column.levels)}."
                )
        if len(column.others) > 1 and column.column not in contexts:
            indicators = listed(f"{column.column}={text}" for text in column.named)
            raise DataError(
                f"The column `{column.column}` must have one text beside those of the indicators "
                f"{indicators}; got {listed(column.others)}, which would all count as one "
                "category. Spell each category in one way, and name an indicator for all but one "
                "of them."
            )


def _first(texts: Iterable[str]) -> tuple[str, ...]:
    # The first ones of the alphabet, so that the order of adding up does not matter.
    return tuple(sorted(texts)[: MOST_OTHERS + 1])
