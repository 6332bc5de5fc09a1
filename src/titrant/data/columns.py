"""Which column of a table plays which role."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from titrant.data import wording

Roles: TypeAlias = tuple[tuple[str, str], ...]  # (role, column name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names of the columns that make a log.

    `treatment` names one column, or d of them for a treatment in R^d; `context` names any number
    of columns, also none; `propensity` names the column of f(t | x) if the table has one.

    >>> Columns(treatment="dose", outcome="loss", context=["age", "bmi"]).needed
    ('dose', 'loss', 'age', 'bmi')
    """

    treatment: str | Iterable[str]
    outcome: str
    context: str | Iterable[str]
    propensity: str | None = None

    def __post_init__(self) -> None:
        """Store lists as tuples; refuse names that are not text and columns with two roles."""
        object.__setattr__(self, "treatment", _kept(self.treatment, "treatment"))
        object.__setattr__(self, "context", _kept(self.context, "context"))
        if not self.doses:
            raise wording.no_treatment_column()
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
        """Each (role, column) in the order treatment, outcome, propensity, context."""
        return (
            *(("treatment", name) for name in self.doses),
            ("outcome", self.outcome),
            *(() if self.propensity is None else (("propensity", self.propensity),)),
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
            raise wording.name_not_text(name, role)
        if name in seen:
            raise wording.two_roles(name, seen[name], role)
        seen[name] = role


def check_present(roles: Roles, available: Sequence[object]) -> None:
    """Refuse a table whose column names repeat or lack one that is needed."""
    names = [str(name) for name in available]
    if len(set(names)) < len(names):
        raise wording.duplicate_names(names)
    for role, name in roles:
        if name not in names:
            raise wording.missing_column(name, role, names)
        given = available[names.index(name)]
        if not isinstance(given, str):
            raise wording.name_not_text(given, role)


def _several(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _kept(names: str | Iterable[str], role: str) -> str | tuple[str, ...]:
    """Return a name as it is and a list of names as a tuple, so that `Columns` can be hashed."""
    if isinstance(names, str):
        return names
    if not isinstance(names, Iterable):
        raise wording.name_not_text(names, role)
    if isinstance(names, (set, frozenset)):
        # The order of a set changes from run to run, and coefficients follow the order.
        raise wording.names_without_order(role)
    return tuple(names)
