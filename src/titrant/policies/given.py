"""Policies as people have them: a number, doses row by row, a function of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant._tables import LIBRARIES, table_of
from titrant.data.columns import is_table
from titrant.data.logged import LoggedData
from titrant.data.validate import counted, listed, treatment
from titrant.errors import DataError, InvalidArgument
from titrant.policies.base import Policy
from titrant.policies.calling import (
    NOT_THE_RULE,
    called_function,
    check_takes_contexts,
    checked_doses,
)
from titrant.policies.constant import as_policy, is_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant._types import Array
    from titrant.data.columns import Recipe
    from titrant.data.source import Source

# A function of a table with the user's own columns.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TablePolicy(Policy):
    """τ = function(table): a function of a data frame with the contexts under their own names.

    The table has the columns that the contexts of a log were made of: texts as texts, and no value
    where there was none. Columns that are no contexts are not in it. Like any policy it must treat
    each row by itself, since a large log is handed to it in batches; doses go to rows by position,
    and a Series whose index says that rows are in another order is refused.

    Parameters
    ----------
    function : from a data frame to one dose a row: an array, a list or a Series
    library : whose data frame it is: "pandas", "polars" or "pyarrow"

    >>> rule = TablePolicy(lambda df: 20 + 0.3 * df["age"])
    >>> rule({"age": np.array([40.0, 50.0])})
    array([32., 35.])
    """

    function: Callable[[Any], Any]
    library: str = field(default="pandas", kw_only=True)
    names: tuple[str, ...] | None = field(default=None, kw_only=True)
    recipe: Recipe | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            rule = "a function of a table"
            raise _check.invalid("function", "TablePolicy", rule, self.function)
        check_takes_contexts(self.function, called_function(self.function))
        if self.library not in LIBRARIES:
            rule = f"one of {', '.join(map(repr, LIBRARIES))}"
            raise _check.invalid("library", "TablePolicy", rule, self.library)

    @property
    def features(self) -> tuple[str, ...] | None:
        """The contexts of the log that it is asked about; None before that."""
        return self.names

    def on(self, log: Source) -> TablePolicy:
        """Return the policy that knows how the contexts of a log were made of columns."""
        flow = log.flow if isinstance(log, LoggedData) else None
        return replace(self, names=log.names, recipe=None if flow is None else flow.recipe)

    def __call__(self, X: object) -> Array:
        """Return the doses of a table, or of contexts (n, p) of the log it is asked about."""
        owner = called_function(self.function)
        if is_table(X):
            return self._doses(X, owner, None)
        if self.names is None:
            raise InvalidArgument(
                f"The {owner} takes a table, and was given an array, whose columns have no names. "
                "Pass a data frame, or use it on a log."
            )
        from titrant.data.features import decoded  # noqa: PLC0415 - loads pyarrow

        columns = decoded(np.asarray(X), self.names, self.recipe)
        return self._doses(table_of(columns, self.library), owner, columns)

    def _doses(self, table: Any, owner: str, columns: Mapping[str, Any] | None) -> Array:  # noqa: ANN401
        try:
            value = self.function(table)
        except NOT_THE_RULE:
            raise
        except Exception as error:
            if columns is None:
                raise
            raise DataError(
                f"The {owner} failed: {type(error).__name__} {error}. Its {self.library} table has "
                f"the columns of the log's contexts, {listed(columns) or 'none'}. A column that is "
                "no context is not in it: name it as a context, or work out the doses on your own "
                "table and pass them, one a row."
            ) from error
        _check_order(table, value, owner)
        n = len(next(iter(columns.values()))) if columns else len(value)
        return checked_doses(value, n, owner)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: code is not data."""
        raise InvalidArgument(
            f"The {called_function(self.function)} is a Python function and cannot be saved as "
            "data. Save a policy such as `Linear` or `RBF`, or keep the function in a module."
        )


def _check_order(table: Any, value: Any, owner: str) -> None:  # noqa: ANN401
    """Refuse a Series whose index has the rows of the table in another order.

    Parts that are put together by `concat`, or sorted rows, would give their doses to others.
    """
    if not all(hasattr(getattr(one, "index", None), "equals") for one in (table, value)):
        return  # a list has an `index` that is another thing
    rows, given = table.index, value.index
    if given.equals(rows) or len(given) != len(rows):
        return
    if rows.is_unique and given.is_unique and given.isin(rows).all():
        raise DataError(
            f"The {owner} returns its doses in another order than that of the rows: the index of "
            "the Series says so, and doses go to rows by position. Return "
            "`doses.reindex(table.index)`."
        )


# Doses that someone planned, one for each row of a log: they go with its rows wherever those go.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Planned(Policy):
    """The doses in columns ``first`` … of what is planned for the rows of a log."""

    first: int

    def __call__(self, X: Array) -> Array:  # noqa: ARG002
        """Refuse: they are of the rows of one log."""
        raise InvalidArgument(
            "Doses that are given one a row are those of one log; there are none for other "
            "contexts. Give a rule, such as `Linear`, `Tree` or a function."
        )

    @property
    def is_rule(self) -> bool:
        """Not a rule: it is about the rows of a log."""
        return False

    def of_rows(self, log: LoggedData) -> Array:
        """Return the doses (n, d) of some rows of the log that they were planned for."""
        if log.planned is None:
            return self(log.context)
        return log.planned[:, self.first : self.first + log.dimension]


def bound_to(log: Source, policies: Mapping[str, Any]) -> tuple[Source, dict[str, Policy]]:
    """Return the log with the doses that are planned for its rows, and the policies on it."""
    found: dict[str, Policy] = {}
    for name, policy in policies.items():
        if _is_plan(policy):
            log, found[name] = _planned(policy, log, f"doses of policy `{name}`")
        else:
            found[name] = _bound(as_policy(policy), log)
    return log, found


def _bound(policy: Policy, log: Source) -> Policy:
    """Return a policy whose functions of tables, within others too, know the log."""
    if isinstance(policy, TablePolicy):
        return policy.on(log)
    own: Any = policy  # a user's own need not be a dataclass
    inner = {f.name: getattr(own, f.name) for f in fields(own)} if is_dataclass(own) else {}
    known = {name: _bound(one, log) for name, one in inner.items() if isinstance(one, Policy)}
    changed = {name: one for name, one in known.items() if one is not inner[name]}
    return replace(own, **changed) if changed else policy


def _is_plan(policy: object) -> bool:
    """Return whether something is doses, and no rule."""
    if isinstance(policy, (Policy, str, bytes, Mapping)) or callable(policy) or is_number(policy):
        return False
    return isinstance(policy, (list, tuple)) or hasattr(policy, "__array__")


def _planned(doses: Any, log: Source, what: str) -> tuple[LoggedData, Planned]:  # noqa: ANN401
    """Return a log in memory with doses, one for each row, and the policy that gives them."""
    if not isinstance(log, LoggedData):
        raise InvalidArgument(
            f"The {what} are given one a row; a log that is read part by part takes rules alone. "
            "Read it with `LoggedData.from_frame`, or give a function."
        )
    t = treatment(doses, what)
    t = t[:, None] if t.ndim == 1 else t
    if t.shape != (len(log), log.dimension):
        raise InvalidArgument(
            f"The {what} must be one for each row of the log: {_size(len(log), log.dimension)}; "
            f"got {_size(*t.shape)}.{_left_out(log)} For the same dose in every row give a number, "
            "or `Constant` with one for each treatment."
        )
    first = 0 if log.planned is None else log.planned.shape[1]
    return log.with_plans(checked_doses(t, len(t), what)), Planned(first)


def _size(rows: int, doses: int) -> str:
    return counted(rows, "row") + (f" of {doses} doses" if doses > 1 else "")


def _left_out(log: LoggedData) -> str:
    """Return the remedy where a log has fewer rows than the table it was made of."""
    if log.flow is None or not log.flow.steps:
        return ""
    return f" Of the table, {log.flow.rows} Leave these rows out of the doses too."
