"""A policy written in another language gives the same doses, run there."""

import bisect
import math
import re
import sqlite3
from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from policies.examples import EXAMPLES, FEATURES, NAMED, contexts
from titrant.data.columns import Recipe
from titrant.errors import InvalidArgument
from titrant.policies import (
    POLICIES,
    Additive,
    Clipped,
    InLimits,
    Linear,
    Personal,
    Rounded,
    StatusQuo,
    Tree,
    to_excel,
    to_python,
    to_sql,
)
from titrant.policies.calling import recommended
from titrant.policies.formats.exporting import LONGEST_CELL, SHORT

CLOSE = 1e-9  # a spreadsheet keeps 15 digits; sums run in another order
WITHOUT = "function", "clipped function", "personal"
"""Code, and a table of people: nothing that fits into a formula."""
WITH_FORMULA = {name: policy for name, policy in NAMED.items() if name not in WITHOUT}


def by_database(connect, text, table, types=None):
    """``types`` are those of columns that are not what their values are."""
    database = connect(":memory:")
    kinds = {name.replace('"', '""'): kind for name, kind in (types or _types(table)).items()}
    names = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    database.execute(f"CREATE TABLE people ({names})")
    marks = ", ".join("?" * table.num_columns)
    database.executemany(f"INSERT INTO people VALUES ({marks})", _rows(table))  # noqa: S608
    return database.execute(f"SELECT {text} FROM people").fetchall()  # noqa: S608


def _types(table):
    texts = {name: pa.types.is_string(table[name].type) for name in table.column_names}
    return {name: "VARCHAR" if text else "DOUBLE" for name, text in texts.items()}


def _rows(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def by_sqlite(policy, table, recipe):
    return by_database(sqlite3.connect, to_sql(policy, recipe=recipe), table)


def by_duckdb(policy, table, recipe):
    return by_database(duckdb.connect, to_sql(policy, recipe=recipe), table)


def by_python(policy, table, recipe):
    made = {}
    exec(to_python(policy, recipe=recipe), made)  # noqa: S102
    return [made["dose"](row) for row in table.to_pylist()]


@dataclass(frozen=True)
class Cell:
    """A reference to a cell, by the documented rules of Excel; a blank one holds None."""

    value: object

    @property
    def counts(self):
        """Whether MIN and MAX see it: they pass over texts, TRUE and FALSE."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    def __le__(self, number):
        """Numbers rank below texts, these below FALSE and TRUE; a blank is 0."""
        return number >= 0.0 if self.value is None else self.counts and self.value <= number

    def __gt__(self, number):
        return not self <= number


def of_numbers(extreme):
    """Return MIN or MAX, which is 0 if it sees no number."""

    def found(*values):
        cells = [value for value in values if isinstance(value, Cell)]
        numbers = [value for value in values if not isinstance(value, Cell)]
        return extreme([*numbers, *(cell.value for cell in cells if cell.counts)], default=0.0)

    return found


def as_number(cell):
    """Return N(…): a number, 1 for TRUE, and 0 for FALSE, a text and a blank."""
    return float(cell.value) if isinstance(cell.value, int | float) else 0.0


SPREADSHEET = {
    "IF": lambda test, then, otherwise: then if test else otherwise,
    "MIN": of_numbers(min),
    "MAX": of_numbers(max),
    "N": as_number,
    "LOOKUP": lambda number, starts, found: found[bisect.bisect(starts, number) - 1],
    "INT": math.floor,
    "EXP": math.exp,
    "OR": lambda *tests: any(tests),
    "ISBLANK": lambda cell: cell.value is None,
    "ISTEXT": lambda cell: isinstance(cell.value, str),
    "EXACT": lambda left, right: left == right,
    "TRIM": str.strip,
    "NA": lambda: None,
    "TEXT": lambda cell: "" if cell.value is None else str(cell.value),
}


def by_excel(policy, table, recipe):
    """What a spreadsheet does, as far as the formulas go: texts are joined by &."""
    where, *formulas = to_excel(policy, recipe=recipe).splitlines()
    if where.startswith("="):
        where, formulas = "", [where, *formulas]
    cells = dict(part.split(": ", 1) for part in where.split("; ") if part)
    compiled = []
    for formula in formulas:
        text = re.sub(r'([A-Z]+2)&""', r"TEXT(\1)", formula.removeprefix("="))
        text = re.sub(r"\{([-+.,e\d]+)\}", r"(\1)", text.replace("^", "**"))
        compiled.append(re.sub(r'"((?:[^"]|"")*)"', lambda m: repr(m[1].replace('""', '"')), text))
    found = []
    for row in table.to_pylist():
        values = {cell: Cell(row[name]) for cell, name in cells.items()}
        found.append([eval(text, {**SPREADSHEET, **values}) for text in compiled])  # noqa: S307
    return found


WAYS = {"sqlite": by_sqlite, "duckdb": by_duckdb, "python": by_python, "excel": by_excel}


def as_doses(found, doses):
    """Return doses (n, d), nan where a row has none."""
    rows = [list(np.atleast_1d(row)) for row in found]
    filled = [[None] * doses if None in row else row for row in rows]
    return np.array(filled, dtype=float)


# law: every policy of the room's list gives the same doses in every language.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WITH_FORMULA)
def test_doses_are_those_of_the_policy(name, way):
    policy, x = WITH_FORMULA[name], 3.0 * contexts(60)
    table = pa.table(dict(zip(FEATURES, x.T, strict=True)))
    expected = policy(x).reshape(len(x), -1)
    found = as_doses(WAYS[way](policy, table, None), expected.shape[1])
    np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE)


def test_the_list_of_policies_is_covered():
    assert {type(policy) for policy in WITH_FORMULA.values()} == set(POLICIES) - {Personal}


RECIPE = Recipe(
    levels={"sex": ("female", 'it\'s "x"', "missing"), "state": ("OH", "NY", "missing")},
    fills={"age": 41.5},
    codes=("state",),
)
PEOPLE = pa.table(
    {
        "age": pa.array([30.0, None, 50.0, 61.25, None], pa.float64()),
        "sex": ["female", 'it\'s "x"', None, "NA", "other"],
        "state": ["NY", "OH", "TX", None, " "],
        'we"ight': [70.0, 80.5, -3.0, 1e-9, 12.0],
    }
)
MIXED = Linear(
    [0.5, 2.0, -1.5, 0.75, 0.1, 1.0],
    3.0,
    features=["age", "age is missing", 'sex=it\'s "x"', "sex=missing", "state", 'we"ight'],
)


# Row 2: age filled 41.5, is missing 1, sex it's "x", state OH (place 0), weight 80.5:
# 20.75 + 2 − 1.5 + 0 + 0 + 80.5 + 3 = 104.75
@pytest.mark.parametrize("way", WAYS)
def test_texts_gaps_and_codes_are_read_as_in_the_training(way):
    found = as_doses(WAYS[way](MIXED, PEOPLE, RECIPE), 1)[:, 0]
    expected = recommended(MIXED, PEOPLE, recipe=RECIPE)
    assert expected[1] == pytest.approx(104.75)
    np.testing.assert_allclose(found, expected, rtol=CLOSE)


@pytest.mark.parametrize("way", WAYS)
def test_a_row_without_a_needed_value_has_no_dose(way):
    policy = Linear([1.0, 0.0], features=["age", "unused"])
    table = pa.table({"age": pa.array([1.0, None]), "unused": pa.array([None, 2.0], pa.float64())})
    found = as_doses(WAYS[way](policy, table, None), 1)[:, 0]
    assert found[0] == 1.0  # a column of slope 0 is not asked for
    assert np.isnan(found[1])


# To DuckDB and others NaN is larger than all numbers: a rule would give its largest dose.
@pytest.mark.parametrize("way", ["sqlite", "duckdb", "python"])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_row_with_what_is_no_number_has_no_dose(way, odd):
    policy = Clipped(Linear([0.5], 1.0, features=["age"]), 2.0, 60.0)
    found = as_doses(WAYS[way](policy, pa.table({"age": [4.0, odd]}), None), 1)[:, 0]
    assert found[0] == 3.0
    assert np.isnan(found[1])


@pytest.mark.parametrize("way", ["duckdb", "python"])
def test_what_is_no_number_is_filled_as_a_gap(way):
    policy = Linear([1.0, 100.0], features=["age", "age is missing"])
    table = pa.table({"age": [4.0, math.nan]})
    found = as_doses(WAYS[way](policy, table, Recipe(fills={"age": 41.5})), 1)[:, 0]
    assert found.tolist() == [4.0, 141.5]


# What `.import` of SQLite makes of a CSV, what a cell holds that was typed as text, yes and no.

CONNECT = {"sqlite": sqlite3.connect, "duckdb": duckdb.connect}
FILL = Recipe(fills={"age": 41.5})
ON_AGE = {
    "line": Linear([0.5, 0.1], 10.0, features=["age", "now"]),
    "tree": Tree([0], [0.5], [-1], [-2], [18.15, 23.1], features=["age"]),
    "limit": InLimits(Linear([1.0], 15.0, features=["now"]), at_most="age"),
}
AMOUNTS = {
    **{name: (policy, None) for name, policy in ON_AGE.items()},
    **{f"{name}, filled": (policy, FILL) for name, policy in ON_AGE.items()},
    "is missing": (Linear([5.0], 10.0, features=["age is missing"]), FILL),
}


def of_ages(ages, kind):
    return pa.table({"age": pa.array(ages, kind), "now": [5.0] * len(ages)})


def by_typed_database(way, rule, table, kind):
    policy, recipe = AMOUNTS[rule]
    types = {"age": kind, "now": "DOUBLE"}
    return as_doses(by_database(CONNECT[way], to_sql(policy, recipe=recipe), table, types), 1)[:, 0]


@pytest.mark.parametrize("way", CONNECT)
@pytest.mark.parametrize("rule", AMOUNTS)
def test_numbers_in_a_column_of_texts_are_read(rule, way):
    policy, recipe = AMOUNTS[rule]
    texts = ["25", "50.125", " 15 ", "1e1", "-0.5", "0"]
    expected = recommended(policy, of_ages([*map(float, texts)], pa.float64()), recipe=recipe)
    found = by_typed_database(way, rule, of_ages(texts, pa.string()), "VARCHAR")
    np.testing.assert_allclose(found, expected, rtol=CLOSE)


@pytest.mark.parametrize("text", ["", "NA", "age", "15 mg", "2024-12-31", "1,5", "0x1G"])
@pytest.mark.parametrize("rule", AMOUNTS)
def test_a_text_that_is_no_number_has_no_dose(rule, text):
    table = of_ages([text], pa.string())
    assert np.isnan(by_typed_database("sqlite", rule, table, "VARCHAR"))
    assert np.isnan(as_doses(by_excel(AMOUNTS[rule][0], table, AMOUNTS[rule][1]), 1))
    with pytest.raises(duckdb.ConversionException):
        by_typed_database("duckdb", rule, table, "VARCHAR")


# MIN passes over a cell "15", and `<=` ranks it above all numbers.
@pytest.mark.parametrize("rule", AMOUNTS)
def test_a_number_typed_as_text_into_a_cell_has_no_dose(rule):
    policy, recipe = AMOUNTS[rule]
    assert np.isnan(as_doses(by_excel(policy, of_ages(["15"], pa.string()), recipe), 1))


# SQLite takes the name of a column that a table lacks for a text.
@pytest.mark.parametrize("rule", AMOUNTS)
def test_a_table_without_the_column_has_no_dose_in_sqlite(rule):
    text = to_sql(AMOUNTS[rule][0], recipe=AMOUNTS[rule][1])
    query = f"SELECT {text} FROM (SELECT 75.0 AS years, 5.0 AS now)"  # noqa: S608
    assert sqlite3.connect(":memory:").execute(query).fetchall() == [(None,)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", AMOUNTS)
def test_yes_and_no_are_read_as_1_and_0(rule, way):
    policy, recipe = AMOUNTS[rule]
    table = of_ages([True, False] if recipe is None else [True, False, None], pa.bool_())
    expected = recommended(policy, table, recipe=recipe)
    if way in CONNECT:
        found = by_typed_database(way, rule, table, "BOOLEAN")
    else:
        found = as_doses(WAYS[way](policy, table, recipe), 1)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=CLOSE)


# DuckDB and SQLite write the number 7 of a column of floats as 7.0, Python too.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("of", [[7.0, 8.0, None], ["7.0", "8", None]], ids=["floats", "texts"])
@pytest.mark.parametrize("codes", [("store",), ()], ids=["code", "indicators"])
def test_whole_numbers_are_categories_also_where_they_are_floats(way, of, codes):
    features = ["store"] if codes else ["store=8", "store=missing"]
    policy = Linear([3.0] if codes else [3.0, 6.0], features=features)
    recipe = Recipe(levels={"store": ("7", "8", "missing")}, codes=codes)
    table = pa.table({"store": of})
    assert recommended(policy, table, recipe=recipe).tolist() == [0.0, 3.0, 6.0]
    found = as_doses(WAYS[way](policy, table, recipe), 1)[:, 0]
    assert found.tolist() == [0.0, 3.0, 6.0]


def test_a_date_that_is_missing_is_filled_part_by_part():
    policy = Linear([1.0, 100.0], features=["visit.month", "visit is missing"])
    recipe = Recipe(fills={"visit.month": 7.0, "visit.days": 19_000.0})
    at = np.array(["2024-12-31", "NaT"], "datetime64[s]")
    table = pa.table({"visit": pa.array(at)})
    assert recommended(policy, table, recipe=recipe).tolist() == [12.0, 107.0]
    assert by_python(policy, table, recipe) == [12.0, 107.0]
    database = duckdb.connect(":memory:")
    database.register("people", table)
    text = to_sql(policy, recipe=recipe)
    found = database.execute(f"SELECT {text} FROM people").fetchall()  # noqa: S608
    assert found == [(12.0,), (107.0,)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneMore(Linear):
    """Another dose than that of the class whose formula it has."""

    def __call__(self, X):
        return Linear.__call__(self, X) + 1.0


@pytest.mark.parametrize("around", [lambda p: p, lambda p: Clipped(p, 0.0, 9.0)])
def test_a_subclass_that_doses_otherwise_has_not_the_formula_of_its_base(around):
    policy = OneMore([0.5], features=["age"])
    assert policy(np.array([[4.0]])) == 3.0
    with pytest.raises(InvalidArgument, match="`OneMore` has no formula"):
        to_sql(around(policy))


def test_dates_that_were_written_as_text_are_refused():
    policy = Linear([1.0], features=["visit.month"])
    with pytest.raises(InvalidArgument, match=r"`visit` were written as text \(%m/%d/%Y\)"):
        to_excel(policy, recipe=Recipe(dates={"visit": "%m/%d/%Y"}))


def test_dates_are_taken_apart():
    parts = ("month", "weekday", "hour", "day", "days")
    policy = Linear([1.0, 10.0, 100.0, 1000.0, 1e5], features=[f"visit.{part}" for part in parts])
    table = pa.table({"visit": pa.array(np.array(["2024-12-31T23:59:00"], "datetime64[s]"))})
    # 12 + 10·2 (a Tuesday) + 100·23 + 1000·31 + 1e5·(19,723 + 365)
    expected = recommended(policy, table)
    assert expected.tolist() == [2008833332.0]
    assert by_python(policy, table, None) == expected.tolist()
    text = to_sql(policy)
    database = duckdb.connect(":memory:")
    database.execute("CREATE TABLE people (visit TIMESTAMP)")
    database.execute("INSERT INTO people VALUES ('2024-12-31 23:59:00')")
    found = database.execute(f"SELECT {text} FROM people").fetchall()  # noqa: S608
    assert found == [(2008833332.0,)]
    # A spreadsheet counts 45,657 days to 2024-12-31, 25,569 more than since 1970.
    assert "(INT(A2)-25569)" in to_excel(policy)
    assert "WEEKDAY(A2,2)" in to_excel(policy)


def test_what_has_no_formula_is_refused():
    for name in WITHOUT:
        with pytest.raises(InvalidArgument, match="no formula"):
            to_sql(NAMED[name])
    with pytest.raises(InvalidArgument, match=r"no formula|no names"):
        to_sql(StatusQuo())
    with pytest.raises(InvalidArgument, match="have no names"):
        to_python(EXAMPLES["rbf"])
    with pytest.raises(InvalidArgument, match="identifier"):
        to_python(NAMED["linear"], name="my dose")


def test_a_formula_too_long_for_a_cell_is_refused():
    bumps = NAMED["rbf"]
    many = replace(bumps, centers=np.tile(bumps.centers, (60, 1)), coef=np.ones(120))
    with pytest.raises(InvalidArgument, match=f"{LONGEST_CELL:,} characters"):
        to_excel(many)


# Hostile names cannot leave their quotes.
@pytest.mark.parametrize("name", ['x"; DROP TABLE people; --', "x'] or __import__('os') #", "a\nb"])
def test_hostile_names_stay_names(name):
    policy = Linear([2.0], features=[name])
    table = pa.table({name: [1.5]})
    for way in ("python", "duckdb", "sqlite"):
        assert as_doses(WAYS[way](policy, table, None), 1) == 3.0


# What steps and limits ask for again is written once.

STRENGTHS = [5.0, 10.0, 15.0, 17.5, 20.0, 22.5, 25.0, 30.0]
_COLUMNS = "age", "age is missing", "sex=female", "now", "kg", "most"
_KNOTS = {"age": [20, 35, 45, 55, 70], "now": [10, 15, 20, 25, 30], "kg": [50, 60, 70, 80, 90],
          "most": [20, 24, 28, 32, 36]}  # fmt: skip
CURVES = Additive(
    [0.05, 1.0, -2.0, 0.3, 0.1, 0.02],
    4.0,
    knots=[_KNOTS.get(name, []) for name in _COLUMNS],
    bends=np.random.default_rng(0).normal(size=20),
    reach=np.full(6, 10.0),
    features=_COLUMNS,
)
FILLED = Recipe(levels={"sex": ("female", "male")}, fills={"age": 41.5})
LIMITS = {
    "strengths": {"steps": STRENGTHS},
    "multiples": {"steps": 2.5},
    "strengths, each row's limits": {
        "steps": STRENGTHS, "at_most": "most", "current": "now", "largest_change": 9.0,
    },
    "multiples, each row's limits": {
        "steps": 2.5, "at_least": 5.0, "at_most": "most", "current": "now", "largest_change": 9.0,
    },
    "each row's limits": {"at_most": "most", "current": "now", "largest_change": 2.0},
}  # fmt: skip


def patients(n=80):
    rng = np.random.default_rng(1)
    numbers = {
        "age": rng.uniform(10, 90, n),
        "now": rng.uniform(14, 22, n),
        "kg": rng.normal(70, 20, n),
        "most": rng.choice([20.0, 22.5, 24.0, 30.0, 40.0], n),
    }
    sex = rng.choice(["female", "male", "neither"], n)
    lacking = pa.array(np.arange(n) % 7 == 0)
    none = pa.scalar(None, pa.float64())
    age = pa.compute.if_else(lacking, none, pa.array(numbers["age"]))
    return pa.table({**numbers, "age": age, "sex": sex})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limits", LIMITS)
def test_a_long_rule_within_limits_gives_the_same_doses(limits, way):
    policy, table = InLimits(CURVES, **LIMITS[limits]), patients()
    expected = recommended(policy, table, recipe=FILLED)
    assert len(np.unique(expected)) > 3
    found = as_doses(WAYS[way](policy, table, FILLED), 1)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("limits", LIMITS)
def test_a_long_rule_within_limits_stays_short(limits):
    policy = InLimits(CURVES, **LIMITS[limits])
    assert len(to_sql(policy, recipe=FILLED)) < 20_000
    longest = max(map(len, to_excel(policy, recipe=FILLED).splitlines()))
    assert longest < LONGEST_CELL
    # law: strengths and limits add the same text to every rule.
    simple = InLimits(Linear([1.0, 1.0, 1.0], features=["now", "most", "kg"]), **LIMITS[limits])
    added = max(map(len, to_excel(simple).splitlines()))
    assert longest < max(map(len, to_excel(CURVES, recipe=FILLED).splitlines())) + added


# A name longer than what is repeated is worked out in the subquery; the others are the names there.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["age", "a" * (SHORT + 1), "part1" * SHORT, "PART1", "inside"])
def test_a_dose_halfway_between_two_is_the_larger_one(name, way):
    table = pa.table({name: [-1.0, 7.5, 7.499999, 12.5, 16.25, 27.5, 99.0, 12.0, 18.75]})
    rule = Linear([1.0], features=[name])
    for steps, wanted in (
        (STRENGTHS, [5.0, 10.0, 5.0, 15.0, 17.5, 30.0, 30.0, 10.0, 20.0]),
        (5.0, [0.0, 10.0, 5.0, 15.0, 15.0, 30.0, 100.0, 10.0, 20.0]),
        ([20.0], [20.0] * 9),
    ):
        policy = InLimits(rule, steps=steps)
        assert recommended(policy, table).tolist() == wanted
        assert as_doses(WAYS[way](policy, table, None), 1)[:, 0].tolist() == wanted


# A database may read a column called like the subquery as the whole of its row.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["inside", "Inside", "inside_", "part1"])
def test_a_column_called_like_a_subquery_is_read(name, way):
    table = pa.table({name: [80.0, 10.0, 60.0], "age": [30.0, 20.0, 12.0]})
    rule = Linear([0.2512345678901234, -1.5123456789], 20.123456789, features=[name, "age"])
    limits = {"at_most": "age", "current": name, "largest_change": 50.0}
    policy = InLimits(Clipped(rule, 5.0, 60.0), steps=2.5, **limits)
    expected = recommended(policy, table)
    assert expected.tolist() == [30.0, 5.0, 12.5 - 2.5]
    found = as_doses(WAYS[way](policy, table, None), 1)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=CLOSE)


# A largest change of exactly a step; limits within rounding of a strength count as it.
@pytest.mark.parametrize("way", WAYS)
def test_limits_on_a_strength_allow_it(way):
    table = pa.table({"now": [15.0, 15.0, 20.0, 0.1 + 0.2], "most": [17.5, 17.4, 22.5, 5.0]})
    rule = Linear([0.0, 0.0], 99.0, features=["now", "most"])
    limits = {"at_most": "most", "current": "now", "largest_change": 2.5}
    policy = InLimits(rule, steps=[0.3, *STRENGTHS], **limits)
    wanted = [17.5, 15.0, 22.5, 0.3]
    assert recommended(policy, table).tolist() == wanted
    np.testing.assert_allclose(
        as_doses(WAYS[way](policy, table, None), 1)[:, 0], wanted, rtol=CLOSE
    )


# Where limits leave no dose there is none, as `recommend` says; never one that breaks a limit.
NO_DOSE = {
    "an end above the other": {"at_least": "least", "at_most": "most"},
    "a number above a row's": {"at_least": 20.0, "at_most": "most"},
    "a number below a row's": {"at_least": "least", "at_most": 20.0},
    "a change away from limits": {"at_most": "most", "current": "now", "largest_change": 4.0},
    "no multiple": {"steps": 10.0, "at_least": "least", "at_most": "most"},
    "no multiple near": {"steps": 10.0, "current": "now", "largest_change": 3.0},
    "no strength": {"steps": STRENGTHS, "at_least": "least", "at_most": "most"},
    "no strength near": {"steps": STRENGTHS, "current": "now", "largest_change": 0.9},
    "all strengths above": {"steps": STRENGTHS, "at_most": "most"},
    "all strengths below": {"steps": STRENGTHS, "at_least": "least"},
    "the only strength below": {"steps": [12.0], "at_least": "least"},
    "strengths below 0 below": {"steps": [-20.0, -7.0], "at_least": "shifted"},
    "a number and no strength": {"steps": STRENGTHS, "at_least": 16.0, "at_most": "most"},
}
WISHED = Linear([1.0, 0.0, 0.0, 0.0], features=["now", "least", "most", "shifted"])


def narrow(n=200):
    rng = np.random.default_rng(2)
    least, most, now = rng.integers(0, 70, (3, n)) / 2.0
    return pa.table({"least": least, "most": most, "now": now, "shifted": least - 30.0})


def some_rows(table, rows):
    return pa.table({name: table[name].to_numpy()[rows] for name in table.column_names})


def wrapped(policy, by):
    return {
        "alone": policy,
        "clipped": Clipped(policy, 1.0, 30.0),
        "rounded": Rounded(policy, 4.0),
        "within others": InLimits(policy, steps=[3.0, 30.0]),
    }[by]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside", [WISHED, CURVES], ids=["short", "long"])
@pytest.mark.parametrize("limits", NO_DOSE)
def test_a_row_whose_limits_leave_no_dose_has_none(limits, inside, way):
    table = narrow()
    for name in ("age", "kg"):
        table = table.append_column(name, pa.array(np.linspace(10.0, 90.0, len(table))))
    table = table.append_column("sex", pa.array(["female"] * len(table)))
    policy = InLimits(inside, **NO_DOSE[limits])
    x = {"sex=female": np.ones(len(table)), "age is missing": np.zeros(len(table))}
    x |= {name: table[name].to_numpy() for name in table.column_names if name != "sex"}
    possible = policy.possible(x)
    assert 0.05 < possible.mean() < 0.95
    found = as_doses(WAYS[way](policy, table, FILLED), 1)[:, 0]
    assert np.isnan(found).tolist() == (~possible).tolist()
    expected = recommended(policy, some_rows(table, possible), recipe=FILLED)
    np.testing.assert_allclose(found[possible], expected, rtol=CLOSE, atol=CLOSE)


# A step or limit around it must not make a dose of none: MAX(NULL, 3) may be 3.
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("by", ["alone", "clipped", "rounded", "within others"])
def test_no_dose_stays_none_whatever_is_around_it(by, way):
    table, inside = narrow(), InLimits(WISHED, **NO_DOSE["a change away from limits"])
    policy, possible = wrapped(inside, by), inside.possible(table)
    found = as_doses(WAYS[way](policy, table, None), 1)[:, 0]
    assert np.isnan(found).tolist() == (~possible).tolist()
    expected = recommended(policy, some_rows(table, possible))
    np.testing.assert_allclose(found[possible], expected, rtol=CLOSE, atol=CLOSE)


# law: limits that always leave a dose add no test of it.
@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"steps": STRENGTHS},
        {"steps": 2.5, "at_least": 5.0, "at_most": 22.0},
        {"steps": STRENGTHS, "at_least": 5.0, "at_most": 22.0},
        {"at_most": "most"},
        {"steps": 2.5, "at_least": "least"},
        {"current": "now", "largest_change": 2.0},
    ],
)
def test_limits_that_always_leave_a_dose_are_not_tested(limits):
    policy, table = InLimits(WISHED, **limits), narrow()
    assert policy.possible(table).all()
    for text, none in ((to_sql(policy), "NULL ELSE"), (to_python(policy), "(None if")):
        assert text.count(none) == 1  # where a column has no value
    assert to_excel(policy).count("NA()") == 1


def test_constant_limits_are_written_as_the_doses_that_they_allow():
    rule = Linear([0.5], features=["age"])
    excel = to_excel(InLimits(rule, steps=[5.0, 10.0], at_least=4.0, at_most=9.0)).split("\n")[1]
    nearest = "LOOKUP((0.5*N(A2)+0.0),{-9e+307,7.5},{5.0,10.0})"
    assert excel == f"=IF(OR(ISTEXT(A2),ISBLANK(A2)),NA(),MIN(MAX({nearest},5.0),5.0))"
    multiples = to_excel(InLimits(rule, steps=2.5, at_least=4.0, at_most=9.0))
    assert multiples.endswith(",5.0),7.5))")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "limits",
    [
        {"at_least": 5.0, "at_most": 3.0},
        {"steps": STRENGTHS, "at_least": 31.0},
        {"steps": STRENGTHS, "at_most": 4.0},
        {"steps": 10.0, "at_least": 11.0, "at_most": 19.0},
    ],
)
def test_constant_limits_without_a_dose_give_nobody_one(limits, way):
    policy, table = InLimits(WISHED, **limits), narrow(5)
    assert not policy.possible(table).any()
    assert np.isnan(as_doses(WAYS[way](policy, table, None), 1)).all()


@pytest.mark.parametrize("way", ["sqlite", "duckdb", "python"])
@pytest.mark.parametrize("odd", [None, math.nan, math.inf, -math.inf])
def test_a_long_rule_has_no_dose_for_a_row_with_what_is_no_number(way, odd):
    policy, table = InLimits(CURVES, **LIMITS["strengths, each row's limits"]), patients(4)
    column = pa.array([table["most"][0].as_py(), odd, *table["most"].to_pylist()[2:]], pa.float64())
    gaps = table.set_column(table.column_names.index("most"), "most", column)
    found = as_doses(WAYS[way](policy, gaps, FILLED), 1)[:, 0]
    expected = recommended(policy, table, recipe=FILLED)
    assert np.isnan(found[1])
    np.testing.assert_allclose(np.delete(found, 1), np.delete(expected, 1), rtol=CLOSE)


@pytest.mark.parametrize("connect", [sqlite3.connect, duckdb.connect])
def test_the_expression_of_a_long_rule_stands_wherever_one_may(connect):
    policy, table = InLimits(CURVES, **LIMITS["strengths, each row's limits"]), patients()
    expected = recommended(policy, table, recipe=FILLED)
    dose = to_sql(policy, recipe=FILLED).removesuffix(' AS "dose"')
    database = connect(":memory:")
    names = ", ".join(f'"{name}" {kind}' for name, kind in _types(table).items())
    database.execute(f"CREATE TABLE people ({names})")
    database.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", _rows(table))
    query = f"SELECT {dose}, COUNT(*) FROM people p WHERE {dose} > 15 GROUP BY 1 ORDER BY 1"  # noqa: S608
    values, counts = np.unique(expected[expected > 15], return_counts=True)
    assert database.execute(query).fetchall() == list(zip(values, counts, strict=True))
    (mean,) = database.execute(f"SELECT AVG({dose}) FROM people").fetchone()  # noqa: S608
    assert mean == pytest.approx(expected.mean())
    database.execute(f"UPDATE people SET kg = {dose}")  # noqa: S608
    found = database.execute("SELECT kg FROM people").fetchall()
    assert sorted(found) == sorted((one,) for one in expected)


# The planner of SQLite may write a subquery out wherever its columns are named.
def test_a_bump_is_worked_out_once_for_each_row():
    policy = InLimits(NAMED["rbf"], steps=[-1.0, 0.0, 0.5, 1.0], at_most="bmi")
    calls = []

    def counted(power):
        calls.append(power)
        return math.exp(power)

    database = sqlite3.connect(":memory:")
    database.create_function("EXP", 1, counted)
    database.execute("CREATE TABLE people (age DOUBLE, bmi DOUBLE, sex DOUBLE)")
    database.executemany("INSERT INTO people VALUES (?, ?, ?)", contexts(10).tolist())
    database.execute(f"SELECT {to_sql(policy)} FROM people").fetchall()  # noqa: S608
    assert len(calls) == 10 * len(policy.policy.centers)
