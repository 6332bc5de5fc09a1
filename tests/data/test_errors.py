"""Bad input: each case with the whole sentence that refuses it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from titrant.data import Columns, LoggedData
from titrant.errors import DataError, InvalidArgument, TitrantError

N = 6
X = np.arange(12.0).reshape(N, 2)
T = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
Y = np.array([0.5, 0.1, 0.9, 0.3, 0.2, 0.7])
Q = np.full(N, 0.25)
NAN, INF = np.nan, np.inf

TABLE = {"dose": T, "loss": Y, "age": X[:, 0], "bmi": X[:, 1], "q": Q}
ROLES = {"treatment": "dose", "outcome": "loss", "context": ["age", "bmi"], "propensity": "q"}


def changed(array, row, value):
    out = np.array(array, dtype=object if isinstance(value, (str, type(None))) else float)
    out[row] = value
    return out


def table(**columns):
    return TABLE | columns


def from_table(frame, **roles):
    return lambda: LoggedData.from_frame(frame, **(ROLES | roles))


def no_outcome(label, where):
    """The sentence that refuses rows without an outcome, and names what may be asked for."""
    return (
        f"The {label} must be present in every row; it is missing in {where}. Give "
        '`missing_outcome="weight"` to let the other rows stand for these, which holds where '
        'contexts and doses say all about who lacks it; `missing_outcome="drop"` to leave them '
        'out, which holds where they are missing by pure chance; or `missing_outcome="refuse"` '
        "to be stopped here."
    )


# ── arrays ───────────────────────────────────────────────────────────────────────────────────────
ARRAYS = {
    "lengths": (
        lambda: LoggedData(X, T[:5], Y, Q),
        (
            "All parts of a log must have the same number of rows; got context 6, treatment 5, "
            "outcome 6, propensity 6. Build them from the same rows of one table."
        ),
    ),
    "empty": (
        lambda: LoggedData(np.empty((0, 2)), [], []),
        (
            "A log must have at least 2 rows; got an empty table. "
            "Check the filter or the query that made it."
        ),
    ),
    "one row": (
        lambda: LoggedData([[1.0]], [2.0], [3.0]),
        "A log must have at least 2 rows; got 1 row. Check the filter or the query that made it.",
    ),
    "nan in one place": (
        lambda: LoggedData(X, T, changed(Y, 3, NAN)),
        no_outcome("outcome", "1 of 6 rows (row 3, counting from 0)"),
    ),
    "nan and inf in many places": (
        lambda: LoggedData(
            changed(X, (4, 1), INF), changed(T, 0, NAN), changed(Y, 4, -INF), changed(Q, 5, NAN)
        ),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in 3 "
            "of 6 rows (treatment: 1, outcome: 1, propensity: 1, context column `x1`: 1; first "
            "rows, counting from 0: 0, 4, 5). Drop these rows or impute their values."
        ),
    ),
    "many bad rows show the first five": (
        lambda: LoggedData(X, T, np.full(N, NAN)),
        no_outcome("outcome", "6 of 6 rows (first rows, counting from 0: 0, 1, 2, 3, 4)"),
    ),
    "missing Python values": (
        lambda: LoggedData(X, changed(T, 1, None), Y),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in "
            "1 of 6 rows (treatment: 1; row 1, counting from 0). "
            "Drop these rows or impute their values."
        ),
    ),
    "what lies under a mask": (
        lambda: LoggedData(X, np.ma.MaskedArray(T, T == 3), Y),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in "
            "1 of 6 rows (treatment: 1; row 2, counting from 0). "
            "Drop these rows or impute their values."
        ),
    ),
    "numbers too large for float64": (
        lambda: LoggedData(X, T, [1, 2, 3, 4, 5, 10**400]),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in "
            "1 of 6 rows (outcome: 1; row 5, counting from 0). "
            "Drop these rows or impute their values."
        ),
    ),
    "nan in one of two doses": (
        lambda: LoggedData(X, np.column_stack([T, changed(T, 2, NAN)]), Y),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in "
            "1 of 6 rows (treatment column 1: 1; row 2, counting from 0). "
            "Drop these rows or impute their values."
        ),
    ),
    "propensity": (
        lambda: LoggedData(X, T, Y, changed(changed(Q, 2, 0.0), 4, -0.5)),
        (
            "The propensity must be > 0, being the density of the dose that was given; got 2 of 6 "
            "rows at or below 0 (smallest -0.5; first rows, counting from 0: 2, 4). Drop these "
            "rows, or leave the propensity out to have it estimated."
        ),
    ),
    "constant treatment": (
        lambda: LoggedData(X, np.full(N, 7.0), Y),
        (
            "The treatment must vary; got 7 in all 6 rows. "
            "One dose says nothing about another: use a log in which doses differ."
        ),
    ),
    "constant in one dimension": (
        lambda: LoggedData(X, np.column_stack([T, np.zeros(N)]), Y),
        (
            "The treatment column 1 must vary; got 0 in all 6 rows. "
            "One dose says nothing about another: use a log in which doses differ."
        ),
    ),
    "text": (
        lambda: LoggedData(X, changed(T, 2, "high"), Y),
        (
            "The treatment must be numeric; got values of type text, first 'high' in row 2, "
            "counting from 0. Convert it to numbers: without units, yes and no as 1 and 0."
        ),
    ),
    "text with signs": (
        lambda: LoggedData(X, ["19.2 %", "7 %", "€ 3", "1,5", "2", "3"], Y),
        (
            "The treatment must be numeric; got values of type text, first '19.2 %' in row 0, "
            "counting from 0. Write it with digits and a decimal point alone; a file in which all "
            "values have the same sign is read as it is, on the command line and by "
            "`titrant.data.files.read_log`."
        ),
    ),
    "text among contexts": (
        lambda: LoggedData(changed(X, (2, 0), "high"), T, Y),
        (
            "The context must be numeric; got values of type text, first 'high' in row 2, "
            "counting from 0. Convert it to numbers, or one-hot encode it if its values are "
            "categories."
        ),
    ),
    "text array": (
        lambda: LoggedData(X, T, np.array(["1", "2", "low", "4", "5", "6"])),
        (
            "The outcome must be numeric; got values of type text, first 'low' in row 2, "
            "counting from 0. Convert it to numbers: without units, yes and no as 1 and 0."
        ),
    ),
    "numbers as text": (
        lambda: LoggedData(X, T, ["1", "2.5", "3", "4", "5", "6e1"]),
        (
            "The outcome must be numeric; got values of type text, first '1' in row 0, "
            "counting from 0. Its values look like numbers: convert the column to a numeric type."
        ),
    ),
    "one number as text": (
        lambda: LoggedData(changed(X, (5, 0), "12"), T, Y),
        (
            "The context must be numeric; got values of type text, first '12' in row 5, "
            "counting from 0. Its values look like numbers: convert the column to a numeric type."
        ),
    ),
    "dates": (
        lambda: LoggedData(np.arange(6).astype("datetime64[D]"), T, Y),
        (
            "The context must be numeric; got values of type datetime64[D], "
            "first np.datetime64('1970-01-01') in row 0, counting from 0. "
            "Replace it by a number, such as days since a fixed date."
        ),
    ),
    "complex": (
        lambda: LoggedData(X, T, Y + 1j),
        (
            "The outcome must be numeric; got values of type complex128, first "
            "np.complex128(0.5+1j) in row 0, counting from 0. "
            "Replace it by a column of plain numbers."
        ),
    ),
    "objects": (
        lambda: LoggedData(X, T, [1, 2, {"a": 1}, 4, 5, 6]),
        (
            "The outcome must be numeric; got values of type dict, first {'a': 1} in row 2, "
            "counting from 0. Replace it by a column of plain numbers."
        ),
    ),
    "empty text array": (
        lambda: LoggedData(X, T, np.array([], dtype=str)),
        (
            "All parts of a log must have the same number of rows; got context 6, treatment 6, "
            "outcome 0. Build them from the same rows of one table."
        ),
    ),
    "ragged": (
        lambda: LoggedData([[1.0, 2.0], [3.0]], [1.0, 2.0], [3.0, 4.0]),
        (
            "The context must be an array with rows of one length; got rows of different lengths. "
            "Give every row the same number of values."
        ),
    ),
    "context in three dimensions": (
        lambda: LoggedData(X[None], T, Y),
        (
            "The context must have 1 or 2 dimensions; got shape (1, 6, 2). "
            "Reshape it to one row per unit."
        ),
    ),
    "scalar treatment": (
        lambda: LoggedData(X, 3.0, Y),
        "The treatment must have 1 or 2 dimensions; got shape (). Reshape it to one row per unit.",
    ),
    "treatment without columns": (
        lambda: LoggedData(X, np.empty((N, 0)), Y),
        (
            "The treatment must have at least one column; got shape (6, 0). "
            "Reshape it to one row per unit."
        ),
    ),
    "outcome with two columns": (
        lambda: LoggedData(X, T, X),
        "The outcome must have one column; got shape (6, 2). Reshape it to one row per unit.",
    ),
    "outside bounds": (
        lambda: LoggedData(X, T, Y, bounds=(1.5, 4)),
        (
            "The treatment must lie within its bounds; got 3 of 6 rows outside (values there from "
            "1 to 6, bounds from 1.5 to 4; first rows, counting from 0: 0, 4, 5). Widen the "
            "bounds, or drop these rows or correct their units."
        ),
    ),
    "outside bounds of its row": (
        lambda: LoggedData(X, T, Y, bounds=(None, changed(T + 1, 3, 3.5))),
        (
            "The treatment must lie within its bounds; got 1 of 6 rows outside (values there from "
            "4 to 4, bounds from -inf to 7; row 3, counting from 0). Widen the bounds, or drop "
            "these rows or correct their units."
        ),
    ),
    "outside bounds in one dimension": (
        lambda: LoggedData(X, np.column_stack([T, -T]), Y, bounds=((0, -5), None)),
        (
            "The treatment column 1 must lie within its bounds; got 1 of 6 rows outside (values "
            "there from -6 to -6, bounds from -5 to inf; row 5, counting from 0). Widen the "
            "bounds, or drop these rows or correct their units."
        ),
    ),
    "bounds crossed": (
        lambda: LoggedData(X, T, Y, bounds=(9, 0)),
        (
            "The lower bound must be below the upper bound; got 9 and 0. "
            "Give the bounds as the pair (lower, upper)."
        ),
    ),
    "bounds crossed in some rows": (
        lambda: LoggedData(X, T, Y, bounds=(changed(T - 1, [1, 2], 8.0), 8)),
        (
            "The lower bound must be below the upper bound; got 8 and 8 (2 of 6 rows; first rows, "
            "counting from 0: 1, 2). Give the bounds as the pair (lower, upper)."
        ),
    ),
    "bounds of the wrong length": (
        lambda: LoggedData(X, T, Y, bounds=([0, 1], None)),
        (
            "The lower bound must be None, a number, or one for each of the 6 rows; got shape "
            "(2,). Give the bounds as the pair (lower, upper)."
        ),
    ),
    "bounds of the wrong shape": (
        lambda: LoggedData(X, np.column_stack([T, T]), Y, bounds=(None, T + 1)),
        (
            "The upper bound must be None, a number, or 2 numbers or 6 rows of 2; got shape (6,). "
            "Give the bounds as the pair (lower, upper)."
        ),
    ),
    "nan bound": (
        lambda: LoggedData(X, T, Y, bounds=(NAN, None)),
        (
            "The lower bound must be None, a number or an array of numbers; got nan. "
            "Use None where there is no bound."
        ),
    ),
    "text bound": (
        lambda: LoggedData(X, T, Y, bounds=(0, "max")),
        (
            "The upper bound must be None, a number or an array of numbers; got 'max'. "
            "Use None where there is no bound."
        ),
    ),
}

# ── tables ───────────────────────────────────────────────────────────────────────────────────────
TABLES = {
    "missing column": (
        from_table(TABLE, treatment="Doses"),
        (
            "The treatment column `Doses` is not in the table; did you mean `dose`? "
            "The table has 5 columns: `dose`, `loss`, `age`, `bmi`, `q`."
        ),
    ),
    "missing column like no other": (
        from_table(TABLE, context=["age", "creatinine"]),
        (
            "The context column `creatinine` is not in the table. "
            "The table has 5 columns: `dose`, `loss`, `age`, `bmi`, `q`."
        ),
    ),
    "missing column of a wide table": (
        from_table({f"gene{j:02d}": T for j in range(20)}, treatment="dose"),
        "The treatment column `dose` is not in the table. The table has 20 columns: "
        + ", ".join(f"`gene{j:02d}`" for j in range(12))
        + " and 8 more.",
    ),
    "missing column of one column": (
        from_table({"x": T}, treatment="dose"),
        "The treatment column `dose` is not in the table. The table has 1 column: `x`.",
    ),
    "no columns at all": (
        from_table({}),
        "The treatment column `dose` is not in the table. The table has 0 columns: none.",
    ),
    "one column, two roles": (
        from_table(TABLE, context=["age", "dose"]),
        (
            "A column must have one role; got `dose` as treatment and as context. "
            "Remove it from one of the two."
        ),
    ),
    "one column twice": (
        from_table(TABLE, context=["age", "bmi", "age"]),
        "A column must have one role; got `age` twice as context. Remove it from one of the two.",
    ),
    "no treatment": (
        from_table(TABLE, treatment=[]),
        "The treatment must name at least one column; got none. Name the dose column.",
    ),
    "a name that is a number": (
        from_table(TABLE, treatment=3),
        (
            "The name of the treatment column must be text; got 3. "
            "Rename the columns of the table to text."
        ),
    ),
    "names that are numbers": (
        from_table(TABLE, context=[0, 1]),
        (
            "The name of the context column must be text; got 0. "
            "Rename the columns of the table to text."
        ),
    ),
    "a pandas column named by a number": (
        from_table(pd.DataFrame(TABLE).rename(columns={"age": 0}), context=["0"]),
        (
            "The name of the context column must be text; got 0. "
            "Rename the columns of the table to text."
        ),
    ),
    "a column named by a number that would be a context": (
        from_table(pd.DataFrame(TABLE).rename(columns={"age": 0}), context=None),
        (
            "The name of the context column must be text; got 0. "
            "Rename the columns of the table to text."
        ),
    ),
    "names in a set": (
        from_table(TABLE, context={"age", "bmi"}),
        "The names of the context columns must come in an order; got a set. Give them as a list.",
    ),
    "lengths": (
        from_table(table(loss=Y[:4])),
        (
            "All parts of a log must have the same number of rows; got treatment column `dose` 6, "
            "outcome column `loss` 4, propensity column `q` 6, context column `age` 6, context "
            "column `bmi` 6. Build them from the same rows of one table."
        ),
    ),
    "empty": (
        from_table(pd.DataFrame(TABLE)[:0]),
        (
            "A log must have at least 2 rows; got an empty table. "
            "Check the filter or the query that made it."
        ),
    ),
    "one row": (
        from_table(pl.DataFrame(TABLE)[:1]),
        "A log must have at least 2 rows; got 1 row. Check the filter or the query that made it.",
    ),
    "numbers that are infinite": (
        from_table(pd.DataFrame(table(bmi=changed(X[:, 1], [1, 4], NAN), loss=changed(Y, 4, INF)))),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in 1 "
            "of 6 rows (outcome column `loss`: 1; row 4, counting from 0). Drop these rows or "
            "impute their values."
        ),
    ),
    "missing doses": (
        from_table(pd.DataFrame(table(dose=pd.array([1, None, 3, 4, None, 6], dtype="Int64")))),
        (
            "The treatment column `dose` must be present in every row; it is missing in 2 of 6 "
            'rows (first rows, counting from 0: 1, 4). Give `missing_treatment="drop"` to leave '
            "these rows out."
        ),
    ),
    "missing outcomes": (
        from_table(pl.DataFrame(table(loss=[None, *Y[1:]]))),
        no_outcome("outcome column `loss`", "1 of 6 rows (row 0, counting from 0)"),
    ),
    "missing propensities": (
        from_table(pd.DataFrame(table(q=changed(Q, 2, NAN)))),
        (
            "All numbers of a log must be present and finite; got a missing or infinite one in "
            "1 of 6 rows (propensity column `q`: 1; row 2, counting from 0). "
            "Drop these rows or impute their values."
        ),
    ),
    "wrong numbers among the rows left": (
        from_table(
            table(dose=changed(T, 0, NAN), bmi=changed(X[:, 1], 4, INF)), missing_treatment="drop"
        ),
        (
            "Of the 5 rows left, counted anew: All numbers of a log must be present and finite; "
            "got a missing or infinite one in 1 of 5 rows (context column `bmi`: 1; row 3, "
            "counting from 0). Drop these rows or impute their values."
        ),
    ),
    "ids that some of the rows left lack": (
        from_table(
            table(dose=changed(T, 0, NAN), who=[*"aabbc", None]),
            groups="who",
            missing_treatment="drop",
        ),
        (
            "Of the 5 rows left, counted anew: The groups column `who` must be an id in every row; "
            "got none in 1 of 5 rows (row 4, counting from 0). Give each of these rows the id of "
            "its own, or drop them."
        ),
    ),
    "an empty table of text": (
        from_table(pl.DataFrame(schema=dict.fromkeys(TABLE, pl.String))),
        (
            "A log must have at least 2 rows; got an empty table. "
            "Check the filter or the query that made it."
        ),
    ),
    "propensity": (
        from_table(table(q=changed(Q, 1, 0.0))),
        (
            "The propensity column `q` must be > 0, being the density of the dose that was given; "
            "got 1 of 6 rows at or below 0 (smallest 0; row 1, counting from 0). Drop these rows, "
            "or leave the propensity out to have it estimated."
        ),
    ),
    "constant treatment": (
        from_table(table(dose=[3] * N)),
        (
            "The treatment column `dose` must vary; got 3 in all 6 rows. "
            "One dose says nothing about another: use a log in which doses differ."
        ),
    ),
    "outside bounds": (
        from_table(TABLE, bounds=(0, 5)),
        (
            "The treatment column `dose` must lie within its bounds; got 1 of 6 rows outside "
            "(values there from 6 to 6, bounds from 0 to 5; row 5, counting from 0). Widen the "
            "bounds, or drop these rows or correct their units."
        ),
    ),
    "not a table": (
        from_table([1, 2]),
        (
            "The `frame` of `LoggedData.from_frame` must be a pandas, polars, pyarrow or duckdb "
            "table, an Arrow stream or a dict of columns; got an object of type `list`. Read files "
            "with `titrant.data.files.read_log`, and arrays with `LoggedData(context, treatment, "
            "outcome)`."
        ),
    ),
    "a path": (
        from_table("log.csv"),
        (
            "The `frame` of `LoggedData.from_frame` must be a pandas, polars, pyarrow or duckdb "
            "table, an Arrow stream or a dict of columns; got the text 'log.csv'. Read files with "
            "`titrant.data.files.read_log`, and arrays with `LoggedData(context, treatment, "
            "outcome)`."
        ),
    ),
    "one column": (
        from_table(pl.Series("dose", T)),
        (
            "The `frame` of `LoggedData.from_frame` must be a pandas, polars, pyarrow or duckdb "
            "table, an Arrow stream or a dict of columns; got an object of type `Series`. Read "
            "files with `titrant.data.files.read_log`, and arrays with `LoggedData(context, "
            "treatment, outcome)`."
        ),
    ),
}

# ── columns that are not numbers, by kind of table ───────────────────────────────────────────────
DAY = dt.datetime(2018, 2, 18)  # noqa: DTZ001 - frames hold naive times
TEXT = ["low", "1", "high", "2", "3", "4"]
REMEDY_TEXT = "Convert it to numbers, or one-hot encode it if its values are categories."
REMEDY_AMOUNTS = "Convert it to numbers: without units, yes and no as 1 and 0."
REMEDY_NUMBERS = "Its values look like numbers: convert the column to a numeric type."
REMEDY_CATEGORIES = "One-hot encode it, or convert it to a numeric type if its values are amounts."
REMEDY_MOMENTS = "Replace it by a number, such as days since a fixed date."
REMEDY_OTHER = "Replace it by a column of plain numbers."
KINDS = {
    "pandas text": (pd.DataFrame(table(age=TEXT)), "text, first 'low' in row 0", REMEDY_TEXT),
    "pandas numbers as text": (
        pd.DataFrame(table(age=["1", "2", "3.5", None, "5", "6"])),
        "text, first '1' in row 0",
        REMEDY_NUMBERS,
    ),
    "pandas mixed": (
        pd.DataFrame(table(age=[1, 2.5, "three", 4, 5, 6])),
        "text, first 'three' in row 2",
        REMEDY_TEXT,
    ),
    "pandas category": (
        pd.DataFrame(table(age=pd.Categorical(TEXT))),
        "category, first 'low' in row 0",
        REMEDY_CATEGORIES,
    ),
    "pandas category of numbers": (
        pd.DataFrame(table(age=pd.Categorical([None, 2, 3, 4, 5, 6]))),
        "category, first 2 in row 1",
        REMEDY_CATEGORIES,
    ),
    "pandas complex": (
        pd.DataFrame(table(age=T + 1j)),
        "complex128, first np.complex128(1+1j) in row 0",
        REMEDY_OTHER,
    ),
    "polars text": (
        pl.DataFrame(table(age=["1", None, "3", "x", "5", "6"])),
        "text, first 'x' in row 3",
        REMEDY_TEXT,
    ),
    "polars category": (
        pl.DataFrame(table(age=pl.Series(TEXT, dtype=pl.Categorical))),
        "category, first 'low' in row 0",
        REMEDY_CATEGORIES,
    ),
    "polars dates": (
        pl.DataFrame(table(age=[None] + [DAY] * 5)),
        "timestamp[us], first datetime.datetime(2018, 2, 18, 0, 0) in row 1",
        REMEDY_MOMENTS,
    ),
    "polars lists": (
        pl.DataFrame(table(age=[[1.0]] * N)),
        "large_list<item: double>, first [1.0] in row 0",
        REMEDY_OTHER,
    ),
    "Arrow dictionary": (
        pa.table(table(age=pa.array(TEXT).dictionary_encode())),
        "category, first 'low' in row 0",
        REMEDY_CATEGORIES,
    ),
    "Arrow duration": (
        pa.table(table(age=pa.array([dt.timedelta(days=1)] * N))),
        "duration[us], first datetime.timedelta(days=1) in row 0",
        REMEDY_MOMENTS,
    ),
    "Arrow bytes": (
        pa.table(table(age=[b"a long value that does not fit on one line of text"] * N)),
        "binary, first b'a long value that does not fit on o... in row 0",
        REMEDY_OTHER,
    ),
}


@pytest.mark.parametrize(("make", "sentence"), (ARRAYS | TABLES).values(), ids=ARRAYS | TABLES)
def test_the_whole_sentence(make, sentence):
    with pytest.raises(DataError) as error:
        make()
    assert str(error.value) == sentence


@pytest.mark.parametrize(("frame", "got", "remedy"), KINDS.values(), ids=KINDS)
def test_columns_that_are_not_numbers(frame, got, remedy):
    with pytest.raises(DataError) as error:
        from_table(frame, outcome="age", context=["bmi"])()
    of_one_column = REMEDY_AMOUNTS if remedy in {REMEDY_TEXT, REMEDY_CATEGORIES} else remedy
    assert str(error.value) == (
        f"The outcome column `age` must be numeric; got values of type {got}, counting from 0. "
        + of_one_column
    )


TAKEN_IN = {
    "pandas text": ("age=2", "age=3", "age=4", "age=high", "age=low"),
    "pandas numbers as text": ("age=2", "age=3.5", "age=5", "age=6", "age=missing"),
    "pandas category": ("age=2", "age=3", "age=4", "age=high", "age=low"),
    "pandas category of numbers": ("age=3", "age=4", "age=5", "age=6", "age=missing"),
    "polars text": ("age=3", "age=5", "age=6", "age=x", "age=missing"),
    "polars category": ("age=2", "age=3", "age=4", "age=high", "age=low"),
    "polars dates": (),  # all the same
    "Arrow dictionary": ("age=2", "age=3", "age=4", "age=high", "age=low"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_that_are_not_numbers_are_taken_in_if_they_can_be(kind):
    frame, got, remedy = KINDS[kind]
    if kind in TAKEN_IN:
        log = from_table(frame)()
        assert log.names == (*TAKEN_IN[kind], "bmi")
        assert "`age`" in log.flow.notes[0].text
        return
    with pytest.raises(DataError) as error:
        from_table(frame)()
    assert str(error.value) == (
        f"The context column `age` must be numeric; got values of type {got}, counting from 0. "
        + remedy
    )


def test_a_relation_with_text():
    with duckdb.connect() as connection:
        relation = connection.from_arrow(pa.table(table(age=TEXT)))
        assert from_table(relation)().names[:2] == ("age=2", "age=3")


def test_every_sentence_ends_with_advice():
    for make, _ in (ARRAYS | TABLES).values():
        with pytest.raises(DataError) as error:
            make()
        assert len(str(error.value).split(". ")) >= 2 or "did you mean" in str(error.value)


DUPLICATES = {
    "pandas": lambda: pd.DataFrame(np.ones((N, 3)), columns=["dose", "age", "age"]),
    "Arrow": lambda: pa.table([T, T, T], names=["dose", "age", "age"]),
    "Arrow reader": lambda: pa.table([T, T, T], names=["dose", "age", "age"]).to_reader(),
    "duckdb": lambda: duckdb.connect().sql("select 1.0 as dose, 2 as age, 3 as age"),
}


@pytest.mark.parametrize("make", DUPLICATES.values(), ids=DUPLICATES)
def test_repeated_column_names(make):
    with pytest.raises(DataError) as error:
        from_table(make())()
    assert str(error.value) == (
        "The column names of a table must differ; got `age` 2 times. "
        "Rename or drop the repeated ones."
    )


@pytest.mark.parametrize(
    ("names", "rule"),
    [(["a"], "2 different texts"), (["a", "a"], "2 different texts"), ([0, 1], "2 different texts"),
     ("ab", "2 different texts")],
)  # fmt: skip
def test_names_of_the_context(names, rule):
    with pytest.raises(InvalidArgument, match=f"The `names` of `LoggedData` must be {rule}; got"):
        LoggedData(X, T, Y, names=names)


@pytest.mark.parametrize("bounds", [3.0, (1, 2, 3), "ab", {0, 9}, ()])
def test_bounds_are_a_pair(bounds):
    with pytest.raises(InvalidArgument, match="must be None or a pair"):
        LoggedData(X, T, Y, bounds=bounds)


def test_data_errors_are_value_errors_of_titrant():
    assert issubclass(DataError, ValueError)
    assert issubclass(DataError, TitrantError)


def test_a_refusal_changes_nothing():
    arrays = [X.copy(), T.copy(), changed(Y, 2, NAN)]
    before = [array.copy() for array in arrays]
    with pytest.raises(DataError):
        LoggedData(*arrays)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
        assert array.flags.writeable


def test_columns_are_checked_before_any_table_is_seen():
    with pytest.raises(DataError, match="`q` as outcome and as propensity"):
        Columns(treatment="dose", outcome="q", context=[], propensity="q")
    with pytest.raises(DataError, match="outcome column must be text; got None"):
        Columns(treatment="dose", outcome=None, context=[])


def test_decimal_nan_counts_as_missing():
    with pytest.raises(DataError, match="1 of 6 rows"):
        LoggedData(X, T, [Decimal("NaN"), *Y[1:].tolist()])


def test_pandas_na_counts_as_missing_in_arrays():
    with pytest.raises(DataError, match=r"2 of 6 rows .*: 0, 3"):
        LoggedData(X, T, pd.array([None, True, False, None, True, False], dtype="boolean"))


def test_columns_called_by_numbers_are_refused_in_words():
    table = pd.DataFrame([[1.0, 2.0, 3.0]] * 5)
    with pytest.raises(DataError, match="must be text; got 1"):
        LoggedData.from_frame(table, treatment=1, outcome=2)


def test_integers_that_no_machine_word_holds_are_numbers():
    table = pd.DataFrame({"dose": [1.0, 2.0, 3.0], "loss": 0.0, "code": [2**70, 2**71, 5]})
    log = LoggedData.from_frame(table, treatment="dose", outcome="loss", context="code")
    assert log.context[:, 0].tolist() == [2.0**70, 2.0**71, 5.0]
