"""A policy as one SQL expression, a Python function or a spreadsheet formula.

The columns are those of the table that the policy was learned from, texts and gaps included. A row
in which a column has no value that the rule knows how to fill, or whose limits leave no dose, has
none: NULL, None or #N/A.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date
from itertools import chain, groupby
from typing import TYPE_CHECKING

import numpy as np

from titrant.data.columns import IS_MISSING, Recipe
from titrant.errors import InvalidArgument
from titrant.policies.base import formulas_of
from titrant.policies.formats.formulas import (
    Above,
    AtMost,
    Choice,
    Column,
    DatePart,
    Exponential,
    Floor,
    Formula,
    IsMissing,
    Largest,
    NoNumber,
    Number,
    Product,
    Ratio,
    Reads,
    Smallest,
    Stairs,
    Sum,
    Test,
    Unless,
    Within,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from titrant.policies.base import Policy


def to_sql(policy: Policy, *, recipe: Recipe | None = None, name: str = "dose") -> str:
    r"""Return the policy as one SQL expression a dose, `… AS "dose"`.

    It needs CASE and CAST, and FLOOR and EXP where the rule rounds or bends: PostgreSQL, DuckDB,
    SQLite, Snowflake and others have them. Parts of a long rule that its steps and limits ask for
    again are worked out once, in a scalar subquery that reads columns of the row outside of it.
    ``recipe`` says how the contexts are made of columns; ``name`` is that of the dose, numbered if
    there are several.

    >>> from titrant import Linear
    >>> rule = Linear(coef=[0.5], features=["age"])
    >>> print(to_sql(rule).replace(" OR", "\nOR").replace(" THEN", "\nTHEN"))
    CASE WHEN "age" <> CAST("age" AS DOUBLE PRECISION)
    OR "age" IS NULL
    OR CAST("age" AS DOUBLE PRECISION) NOT BETWEEN -1e308 AND 1e308
    THEN NULL ELSE (0.5 * CAST("age" AS DOUBLE PRECISION) + 0.0) END AS "dose"
    """
    rule = RuleFormulas.of(policy, recipe)
    names = _numbered(name, len(rule.doses))
    doses = zip(rule.doses, names, strict=True)
    return ",\n".join(
        f"{rule.written(dose, Sql(rule.columns))} AS {_quoted(own)}" for dose, own in doses
    )


def to_python(policy: Policy, *, recipe: Recipe | None = None, name: str = "dose") -> str:
    """Return the policy as a Python function that needs nothing but Python.

    It takes a row as a dict of columns and returns the dose, a list of several, or None.

    >>> from titrant import Constant
    >>> exec(to_python(Constant(2.5)))
    >>> dose({})
    2.5
    """
    if not name.isidentifier():
        raise InvalidArgument(f"The `name` of a function must be an identifier; got {name!r}.")
    rule, language = RuleFormulas.of(policy, recipe), Python()
    doses = [rule.written(dose, language) for dose in rule.doses]
    value = doses[0] if len(doses) == 1 else f"[{', '.join(doses)}]"
    columns = ", ".join(rule.columns) or "no column"
    lines = [
        "import bisect",
        "import math",
        "",
        "",
        f"def {name}(row):",
        f"    {_literal(f'Return the dose of a row, a dict with {columns}.')}",
        "    def missing(value):",
        "        return value is None or value != value or value in (math.inf, -math.inf)",
        "",
        f"    return {value}",
    ]
    return "\n".join(lines) + "\n"


def to_excel(policy: Policy, *, recipe: Recipe | None = None, row: int = 2) -> str:
    """Return the policy as a spreadsheet formula a dose, of cells A2, B2, … (or another ``row``).

    The first line says which column stands where.

    >>> from titrant import Linear
    >>> print(to_excel(Linear(coef=[0.5], intercept=2.0, features=["age"])))
    A2: age
    =IF(OR(ISTEXT(A2),ISBLANK(A2)),NA(),(0.5*N(A2)+2.0))
    """
    rule = RuleFormulas.of(policy, recipe)
    cells = {column: f"{_letters(i)}{row}" for i, column in enumerate(rule.columns)}
    where = "; ".join(f"{cell}: {column}" for column, cell in cells.items())
    doses = [f"={rule.written(dose, Excel(cells))}" for dose in rule.doses]
    too_long = max(map(len, doses))
    if too_long > LONGEST_CELL:
        raise InvalidArgument(
            f"A spreadsheet's formula has at most {LONGEST_CELL:,} characters; this rule takes "
            f"{too_long:,}. Export it as SQL or Python, or learn a simpler rule."
        )
    return "\n".join([*([where] if where else []), *doses])


LONGEST_CELL = 8192
SHORT = 100
"""Parts of SQL with at most so many characters are repeated as they are, without a subquery."""
_LOWEST_NUMBER = -9e307
"""A spreadsheet knows hardly any number below."""
_EPOCH, _SPREADSHEET = date(1970, 1, 1), date(1899, 12, 30)
"""Day 0 of the running time, and of a spreadsheet."""


# What the columns are, and where a row has no dose.


@dataclass(frozen=True, slots=True)
class RuleFormulas:
    """The doses as formulas of columns, and the columns without which there is none."""

    doses: tuple[Formula, ...]
    columns: tuple[str, ...]
    needed: tuple[Test, ...]
    """What must not be: a column without a value, where nothing stands for one."""
    amounts: tuple[str, ...]
    """The columns that are read as numbers, also where a number stands for a missing one."""

    @classmethod
    def of(
        cls, policy: Policy, recipe: Recipe | None, names: Sequence[str] | None = None
    ) -> RuleFormulas:
        """Return the rule of a policy whose contexts are made by the recipe.

        ``names`` are those of the contexts of a policy that knows none.
        """
        features = names if policy.features is None else policy.features
        if features is None:
            raise InvalidArgument(
                f"The contexts of `{type(policy).__name__}` have no names that a formula could "
                "call them by. Give the policy its `features`."
            )
        made = [_Made.of(feature, recipe or Recipe()) for feature in features]
        doses = formulas_of(policy, tuple(one.formula for one in made))
        used = {column for dose in doses for column in _columns(dose)}
        there = [one for one in made if one.column in used]
        columns = tuple(dict.fromkeys(one.column for one in there))
        needed = tuple(dict.fromkeys(one.needed for one in there if one.needed is not None))
        read = _columns(doses, but=(DatePart, IsMissing, Reads))
        return cls(doses, columns, needed, tuple(name for name in columns if name in read))

    @property
    def impossible(self) -> tuple[Test, ...]:
        """What must not be either: limits that leave no dose."""
        return _impossible(self.doses)

    def written(self, dose: Formula, language: Language) -> str:
        """Return one dose in a language."""
        misread = (language.misread(language.column(name)) for name in self.amounts)
        tests = [*chain.from_iterable(misread), *map(language.test, self.needed)]
        return language.guarded(tests, language.whole(dose))


def context_formula(name: str, recipe: Recipe | None) -> Formula:
    """Return a context as a formula of the column that it is made of."""
    return _Made.of(name, recipe or Recipe()).formula


@dataclass(frozen=True, slots=True)
class _Made:
    """A context as a formula of the column that it is made of."""

    formula: Formula
    column: str
    needed: Test | None
    """That the column has no value; None if the context knows what to do then."""

    @classmethod
    def of(cls, feature: str, recipe: Recipe) -> _Made:
        from titrant.data.features import PARTS, split  # noqa: PLC0415

        source, level = split(feature, recipe.levels)
        if feature in recipe.codes or source != feature:
            return cls._of_texts(feature, source, level, recipe)
        fill = recipe.fills.get(feature)
        base = feature.removesuffix(IS_MISSING)
        if base != feature and base in recipe.fills:
            return cls(_indicator(NoNumber(Column(base))), base, None)
        if base != feature and any(f"{base}.{part}" in recipe.fills for part in PARTS):
            return cls(_indicator(IsMissing(Column(base))), base, None)
        base, _, part = feature.rpartition(".")
        dated = bool(base) and part in PARTS
        if dated and base in recipe.dates:
            raise InvalidArgument(
                f"The dates of the column `{base}` were written as text ({recipe.dates[base]}), "
                "which other programs may read in other ways. Convert the column to a type of "
                "dates and learn again, or leave it out of the rule."
            )
        if dated and recipe.clocks.get(base):
            raise InvalidArgument(
                f"The hours and days of the column `{base}` are those of {recipe.clocks[base]}, "
                "and other programs may read them by another clock. Convert the column to times "
                "of that place without a zone and learn again, or leave it out of the rule."
            )
        column = Column(base if dated else feature)
        value: Formula = DatePart(column, part) if dated else column
        lacking = IsMissing(column) if dated else NoNumber(column)
        if fill is None:
            return cls(value, column.name, lacking)
        return cls(Choice(lacking, Number(fill), value), column.name, None)

    @classmethod
    def _of_texts(cls, feature: str, source: str, level: str, recipe: Recipe) -> _Made:
        from titrant.data.features import MARKS, MISSING, spellings  # noqa: PLC0415

        column, levels = Column(source), recipe.levels[source]
        gap = IsMissing(column, MARKS) if MISSING in levels else None
        needed = IsMissing(column, ()) if gap is None else None
        if feature not in recipe.codes:
            if level == MISSING and gap is not None:
                return cls(_indicator(gap), source, None)
            test = Reads(column, level, spellings(level, levels))
            return cls(_indicator(test), source, needed)
        # The place of the text in the list, its end if it is new.
        code: Formula = Number(float(len(levels)))
        for place, text in reversed(list(enumerate(levels))):
            reads = Reads(column, text, spellings(text, levels))
            own = gap if text == MISSING and gap is not None else reads
            code = Choice(own, Number(float(place)), code)
        return cls(code, source, needed)


def _indicator(test: Test) -> Formula:
    return Choice(test, Number(1.0), Number(0.0))


def _columns(part: object, but: tuple[type, ...] = ()) -> set[str]:
    """Return the names of the columns in a formula, or in anything that it is made of.

    Those in parts of the kinds ``but`` are passed over.
    """
    if isinstance(part, Column):
        return {part.name}
    inside = () if isinstance(part, but) else _parts(part)
    return set().union(*(_columns(one, but) for one in inside))


def _impossible(part: object) -> tuple[Test, ...]:
    """Return the tests in a formula, or in several, where any of which holds there is no dose."""
    own = [part.test] if isinstance(part, Unless) else []
    inside = (test for one in _parts(part) for test in _impossible(one))
    return tuple(dict.fromkeys([*own, *inside]))


def _parts(of: object) -> tuple[object, ...]:
    """Return what a formula, or a tuple of them, is made of."""
    if isinstance(of, tuple):
        return of
    return tuple(getattr(of, one.name) for one in (fields(of) if is_dataclass(of) else ()))


# The languages.


class Language(ABC):
    """How formulas are written."""

    times, over, plus = " * ", " / ", " + "
    nothing: str
    """What stands for no dose."""

    def whole(self, formula: Formula) -> str:
        """Return a formula that is part of no other."""
        return self.possible(formula)

    def possible(self, formula: Formula) -> str:
        """Return a formula, and no dose where it has none."""
        tests = [self.test(one) for one in _impossible(formula)]
        return self.guarded(tests, self.write(formula))

    def once(self, of: str) -> str:
        """Return what may be written several times."""
        return of

    def write(self, formula: Formula) -> str:
        """Return a formula, in brackets where it needs them."""
        match formula:
            case Sum(parts):
                found = f"({self.plus.join(map(self.write, parts))})"
            case Product(parts):
                written = groupby(map(self.write, parts))
                found = self.times.join(self.power(of, len(list(same))) for of, same in written)
            case Ratio(of, by):
                found = f"({self.write(of)}{self.over}{self.number(by)})"
            case Exponential(of) | Floor(of):
                function = self.floor if isinstance(formula, Floor) else self.exponential
                found = function(self.write(of))
            case Within(of, low, high):
                found = self.within(self.write(of), low, high)
            case Stairs(of, starts, levels):
                found = self.stairs(self.write(of), starts, levels)
            case Largest(parts) | Smallest(parts):
                several = tuple(map(self.write, parts))
                found = self.extreme(several, largest=isinstance(formula, Largest))
            case Choice() | Unless():
                found = self.tested(formula)
            case Number() | Column() | DatePart():
                found = self.leaf(formula)
        return found

    def tested(self, formula: Choice | Unless) -> str:
        """Return a formula that depends on a test."""
        if isinstance(formula, Unless):  # `possible` asks that test, of the whole dose
            return self.write(formula.of)
        then, otherwise = self.write(formula.then), self.write(formula.otherwise)
        return self.choice(self.test(formula.test), then, otherwise)

    def leaf(self, formula: Number | Column | DatePart) -> str:
        """Return what is made of nothing else."""
        if isinstance(formula, Number):
            return self.number(formula.value)
        if isinstance(formula, Column):
            return self.amount(self.column(formula.name))
        return self.date_part(self.column(formula.column.name), formula.part)

    def number(self, value: float) -> str:
        """Return a number with all its digits; a negative one in brackets."""
        return f"({value!r})" if value < 0.0 else repr(value)

    def power(self, of: str, times: int) -> str:
        """Return the product of something with itself."""
        return self.times.join([of] * times)

    def test(self, test: Test) -> str:
        """Return a test."""
        match test:
            case AtMost(of, limit):
                return f"{self.write(of)} <= {self.number(limit)}"
            case Above(of, other):
                return f"{self.once(self.write(of))} > {self.once(self.write(other))}"
            case Reads(column, text, also):
                return self.reads(self.column(column.name), (text, *also))
            case NoNumber(column):
                return self.no_number(self.column(column.name))
            case IsMissing(column, marks):
                return self.missing(self.column(column.name), marks)

    def guarded(self, tests: Sequence[str], dose: str) -> str:
        """Return no dose where one of the tests holds."""
        return self.choice(self.either(tests), self.nothing, dose) if tests else dose

    @abstractmethod
    def column(self, name: str) -> str:
        """Return the value of a column."""

    def amount(self, column: str) -> str:
        """Return a column as a number: that of yes is 1, that of no is 0."""
        return column

    def misread(self, column: str) -> Sequence[str]:
        """Return tests of what is no number and would silently be read as one, or as a gap."""
        del column
        return ()

    @abstractmethod
    def date_part(self, column: str, part: str) -> str:
        """Return a part of a date."""

    @abstractmethod
    def exponential(self, of: str) -> str:
        """Return e to a power."""

    @abstractmethod
    def floor(self, of: str) -> str:
        """Return the whole number below."""

    @abstractmethod
    def within(self, of: str, low: float, high: float) -> str:
        """Return something held within two numbers."""

    @abstractmethod
    def stairs(self, of: str, starts: Sequence[float], levels: Sequence[float]) -> str:
        """Return the level that something has reached."""

    @abstractmethod
    def extreme(self, of: tuple[str, ...], *, largest: bool) -> str:
        """Return the largest or the smallest of several."""

    @abstractmethod
    def choice(self, test: str, then: str, otherwise: str) -> str:
        """Return one or the other."""

    @abstractmethod
    def either(self, tests: Sequence[str]) -> str:
        """Return whether one of the tests holds."""

    @abstractmethod
    def reads(self, column: str, texts: Sequence[str]) -> str:
        """Return whether a column holds one of these texts."""

    def no_number(self, column: str) -> str:
        """Return whether a column has no finite number."""
        return self.missing(column, None)

    @abstractmethod
    def missing(self, column: str, marks: Sequence[str] | None) -> str:
        """Return whether a column has no value; ``marks`` stand for none among texts."""


@dataclass(frozen=True)
class Sql(Language):
    """SQL as most databases read it, for one dose.

    A CASE repeats what it compares; a long part is worked out once, in a subquery, and has a name.
    """

    columns: Sequence[str] = ()
    """The columns of the rule: none of them is called like a part or a subquery."""
    parts: dict[str, str] = field(default_factory=dict)
    """What is worked out once, and its name; each comes after those it is made of."""

    nothing = "NULL"

    def whole(self, formula: Formula) -> str:
        """Return a formula, as a subquery if it has parts that are worked out once."""
        found = self.possible(formula)
        depths: dict[str, int] = {}
        for part, name in self.parts.items():
            used = (depth for other, depth in depths.items() if other in part)
            depths[name] = 1 + max(used, default=0)
        table = ""
        for depth in range(1, 1 + max(depths.values(), default=0)):
            own = [
                f"{part} AS {name}" for part, name in self.parts.items() if depths[name] == depth
            ]
            named = ", ".join(["*", *own] if table else own)
            inside = f" FROM {table}" if table else ""
            # Of one row, and yet DISTINCT: without it SQLite and others write parts out again
            # wherever they are named.
            table = f"(SELECT DISTINCT {named}{inside}) AS {self.own('inside')}"
        return f"(SELECT {found} FROM {table})" if table else found  # noqa: S608  (names are quoted)

    def once(self, of: str) -> str:
        """Return what may be written several times: a long part is called by its name."""
        if len(of) <= SHORT:
            return of
        return self.parts.setdefault(of, f"{self.own('part')}{1 + len(self.parts)}")

    def own(self, name: str) -> str:
        """Return a name that no column of the rule begins with: the name, or one like it."""
        while any(column.lower().startswith(name) for column in self.columns):
            name += "_"
        return name

    def power(self, of: str, times: int) -> str:
        """Return the product of something with itself."""
        return self.times.join([self.once(of) if times > 1 else of] * times)

    def column(self, name: str) -> str:
        """Return a quoted name."""
        return _quoted(name)

    def amount(self, column: str) -> str:
        """Return CAST(…), for columns of texts and of yes and no."""
        return f"CAST({column} AS DOUBLE PRECISION)"

    def misread(self, column: str) -> Sequence[str]:
        """Return a test of texts that are no number, of which SQLite makes 0; others raise errors.

        SQLite also takes the name of a column that a table lacks for a text.
        """
        return (f"{column} <> {self.amount(column)}",)

    def date_part(self, column: str, part: str) -> str:
        """Return EXTRACT(…)."""
        if part == "days":
            return f"(CAST({column} AS DATE) - DATE '1970-01-01')"
        return f"EXTRACT({'ISODOW' if part == 'weekday' else part.upper()} FROM {column})"

    def exponential(self, of: str) -> str:
        """Return EXP(…)."""
        return f"EXP({of})"

    def floor(self, of: str) -> str:
        """Return FLOOR(…)."""
        return f"FLOOR({of})"

    def within(self, of: str, low: float, high: float) -> str:
        """Return a CASE: not every database has LEAST and GREATEST."""
        ends = [(end, sign) for end, sign in ((low, "<"), (high, ">")) if np.isfinite(end)]
        if not ends:
            return of
        value = self.once(of)
        cases = (
            f" WHEN {value} {sign} {self.number(end)} THEN {self.number(end)}" for end, sign in ends
        )
        return f"CASE{''.join(cases)} ELSE {value} END"

    def stairs(self, of: str, starts: Sequence[float], levels: Sequence[float]) -> str:
        """Return a CASE with a line for each start."""
        value = self.once(of)
        cases = (
            f" WHEN {value} < {self.number(start)} THEN {self.number(level)}"
            for start, level in zip(starts, levels[:-1], strict=True)
        )
        return f"CASE{''.join(cases)} ELSE {self.number(levels[-1])} END"

    def extreme(self, of: tuple[str, ...], *, largest: bool) -> str:
        """Return a CASE for each but the first."""
        found, sign = of[0], ">=" if largest else "<="
        for other in map(self.once, of[1:]):
            found = self.once(found)
            found = f"CASE WHEN {found} {sign} {other} THEN {found} ELSE {other} END"
        return found

    def choice(self, test: str, then: str, otherwise: str) -> str:
        """Return a CASE."""
        return f"CASE WHEN {test} THEN {then} ELSE {otherwise} END"

    def either(self, tests: Sequence[str]) -> str:
        """Return … OR …."""
        return " OR ".join(tests)

    def reads(self, column: str, texts: Sequence[str]) -> str:
        """Return whether a column holds one of these texts."""
        found, known = f"CAST({column} AS VARCHAR)", list(map(_sql_text, texts))
        return f"{found} = {known[0]}" if len(known) == 1 else f"{found} IN ({', '.join(known)})"

    def no_number(self, column: str) -> str:
        """Return whether a column is NULL, NaN or infinite.

        To many databases NaN is a number larger than all others: a rule would give its largest
        dose. None has a test of it that others know.
        """
        return f"{column} IS NULL OR {self.amount(column)} NOT BETWEEN -1e308 AND 1e308"

    def missing(self, column: str, marks: Sequence[str] | None) -> str:
        """Return whether a column is NULL, or a text that stands for it."""
        if marks is None:
            return f"{column} IS NULL"
        texts = ", ".join(map(_sql_text, ("", *marks)))
        return f"{column} IS NULL OR TRIM(CAST({column} AS VARCHAR)) IN ({texts})"


class Python(Language):
    """A Python expression of a dict called row."""

    nothing = "None"

    def column(self, name: str) -> str:
        """Return an entry of the row."""
        return f"row[{_literal(name)}]"

    def date_part(self, column: str, part: str) -> str:
        """Return an attribute of a date."""
        if part == "days":
            return f"({column}.toordinal() - {_EPOCH.toordinal()})"
        return f"{column}.{'isoweekday()' if part == 'weekday' else part}"

    def exponential(self, of: str) -> str:
        """Return math.exp(…)."""
        return f"math.exp({of})"

    def floor(self, of: str) -> str:
        """Return math.floor(…)."""
        return f"math.floor({of})"

    def within(self, of: str, low: float, high: float) -> str:
        """Return min(max(…))."""
        if np.isfinite(low):
            of = f"max({of}, {self.number(low)})"
        return f"min({of}, {self.number(high)})" if np.isfinite(high) else of

    def stairs(self, of: str, starts: Sequence[float], levels: Sequence[float]) -> str:
        """Return the level behind as many starts as have been reached."""
        return f"{tuple(levels)!r}[bisect.bisect({tuple(starts)!r}, {of})]"

    def extreme(self, of: tuple[str, ...], *, largest: bool) -> str:
        """Return max(…) or min(…)."""
        return f"{'max' if largest else 'min'}({', '.join(of)})"

    def choice(self, test: str, then: str, otherwise: str) -> str:
        """Return … if … else …."""
        return f"({then} if {test} else {otherwise})"

    def either(self, tests: Sequence[str]) -> str:
        """Return … or …."""
        return " or ".join(tests)

    def reads(self, column: str, texts: Sequence[str]) -> str:
        """Return whether a column holds one of these texts."""
        found, known = f"str({column})", list(map(_literal, texts))
        return f"{found} == {known[0]}" if len(known) == 1 else f"{found} in ({', '.join(known)})"

    def missing(self, column: str, marks: Sequence[str] | None) -> str:
        """Return whether a value is None, nan or infinite, or a text that stands for it."""
        if marks is None:
            return f"missing({column})"
        texts = ", ".join(map(_literal, ("", *marks)))
        return f"(missing({column}) or str({column}).strip() in ({texts},))"


@dataclass(frozen=True)
class Excel(Language):
    """A formula as spreadsheets with English function names read it."""

    cells: Mapping[str, str] = field(default_factory=dict)
    """Where each column stands."""

    nothing = "NA()"
    times, over, plus = "*", "/", "+"

    def column(self, name: str) -> str:
        """Return the cell of a column."""
        return self.cells[name]

    def amount(self, column: str) -> str:
        """Return N(…): MIN and MAX pass over cells of TRUE and FALSE, `<=` ranks them last."""
        return f"N({column})"

    def misread(self, column: str) -> Sequence[str]:
        """Return a test of texts, of which N makes 0, also of those that look like a number."""
        return (f"ISTEXT({column})",)

    def date_part(self, column: str, part: str) -> str:
        """Return MONTH(…) or the like."""
        if part == "days":
            return f"(INT({column})-{(_EPOCH - _SPREADSHEET).days})"
        return f"WEEKDAY({column},2)" if part == "weekday" else f"{part.upper()}({column})"

    def exponential(self, of: str) -> str:
        """Return EXP(…)."""
        return f"EXP({of})"

    def floor(self, of: str) -> str:
        """Return INT(…), which rounds down."""
        return f"INT({of})"

    def within(self, of: str, low: float, high: float) -> str:
        """Return MIN(MAX(…))."""
        if np.isfinite(low):
            of = f"MAX({of},{self.number(low)})"
        return f"MIN({of},{self.number(high)})" if np.isfinite(high) else of

    def stairs(self, of: str, starts: Sequence[float], levels: Sequence[float]) -> str:
        """Return LOOKUP(…), which finds the last start that has been reached."""
        reached, there = (",".join(map(repr, row)) for row in ((_LOWEST_NUMBER, *starts), levels))
        return f"LOOKUP({of},{{{reached}}},{{{there}}})"

    def power(self, of: str, times: int) -> str:
        """Return something to a power."""
        return f"({of})^{times}" if times > 1 else of

    def extreme(self, of: tuple[str, ...], *, largest: bool) -> str:
        """Return MAX(…) or MIN(…)."""
        return f"{'MAX' if largest else 'MIN'}({','.join(of)})"

    def choice(self, test: str, then: str, otherwise: str) -> str:
        """Return IF(…)."""
        return f"IF({test},{then},{otherwise})"

    def either(self, tests: Sequence[str]) -> str:
        """Return OR(…)."""
        return tests[0] if len(tests) == 1 else f"OR({','.join(tests)})"

    def reads(self, column: str, texts: Sequence[str]) -> str:
        """Return whether a cell holds one of these texts: `=` would not mind capitals."""
        return self.either([f'EXACT({column}&"",{_excel_text(text)})' for text in texts])

    def missing(self, column: str, marks: Sequence[str] | None) -> str:
        """Return whether a cell is blank, or a text that stands for it."""
        if marks is None:
            return f"ISBLANK({column})"
        texts = (f'EXACT(TRIM({column}&""),{_excel_text(mark)})' for mark in ("", *marks))
        return f"OR({','.join(texts)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _excel_text(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(text: str) -> str:
    """Return a text as Python reads it, on one line and in ASCII: nothing in it can run."""
    return ascii(text)


def _letters(i: int) -> str:
    """Return the letters of a spreadsheet's column number i."""
    return (_letters(i // 26 - 1) if i >= 26 else "") + chr(ord("A") + i % 26)  # noqa: PLR2004


def _numbered(name: str, doses: int) -> list[str]:
    return [name] if doses == 1 else [f"{name}_{j}" for j in range(doses)]
