"""Which column of a table plays which role, and how names of contexts are matched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import numpy as np

from titrant.data.phrases import counted, did_you_mean, listed
from titrant.errors import DataError

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data.frames import NamedTable

# Which column of a table plays which role.


Roles: TypeAlias = tuple[tuple[str, str], ...]  # (role, column name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names of the columns that make a log.

    `treatment` names one column, or d of them for a treatment in R^d; `context` names any number
    of columns, also none; `propensity` names the column of f(t | x) if the table has one, `weights`
    that of sampling weights, `groups` that of ids of those who have several rows. Those of
    the contexts that `after` names were measured after the treatment and are not used.

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

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns to read, each once."""
        return tuple(name for _, name in self.roles)


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
    """Refuse a column name that the table lacks, and suggest the closest one."""
    return DataError(
        f"The {role} column `{name}` is not in the table{did_you_mean(name, available)} "
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
