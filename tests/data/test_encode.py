"""Text columns as 0/1 indicators whose names say how to make them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from titrant.data.columns import Recipe
from titrant.data.features import date_part, unseen, with_features
from titrant.data.intake import MOST_LEVELS, encode
from titrant.errors import DataError

TABLE = pa.table(
    {
        "dose": [1.0, 2.0, 3.0],
        "age": [30, 40, 50],
        "smoker": [True, False, True],
        "ward": ["b", "a", "c"],
        "day": [dt.date(2020, 1, 1)] * 3,
        "site": ["x", "x", "x"],
        "note": pa.nulls(3),
    }
)


def test_known_answer():
    # ward has the levels a, b, c; a is the reference, so rows b, a, c give (1, 0), (0, 0), (0, 1).
    found = encode(TABLE, None, ["dose"])
    assert found.names == ("age", "smoker", "ward=b", "ward=c")
    assert found.table["ward=b"].to_pylist() == [1.0, 0.0, 0.0]
    assert found.table["ward=c"].to_pylist() == [0.0, 0.0, 1.0]
    days, *others = (note.text for note in found.notes)
    assert days == (
        "Column `day` is left out of the context: its dates differ in neither day nor hour."
    )
    assert tuple(others) == (
        "Column `site` is left out of the context: all its values are the same.",
        "Column `note` is left out of the context: it is empty.",
        "Column `ward` is text: encoded 0/1 as `ward=b`, `ward=c` (all 0: `a`).",
    )


def test_texts_that_differ_in_capitals_or_blanks_alone_are_told():
    table = pa.table({"a": ["yes", "Yes ", "no"], "b": ["on off", "onoff", "ON"]})
    first, second = (note.text for note in encode(table, None, ()).notes)
    assert first == (
        "Column `a` is text: encoded 0/1 as `a=no`, `a=yes` (all 0: `Yes `). Its texts `Yes `, "
        "`yes` differ in capitals or blanks alone, and count as different ones: spell them alike "
        "if they mean the same."
    )
    assert "spell" not in second
    several = pa.table({"a": ["yes", "YES", "no", "NO", "?", "??"]})
    assert "`NO`, `no` (and 1 more such) differ" in encode(several, None, ()).notes[0].text


def test_what_is_hardly_a_context_is_left_out_unless_named():
    n = 30
    table = pa.table(
        {
            "": range(n, 0, -1),  # what pandas writes in front of a table
            "patient_id": [7 * i for i in range(n)],
            "Propensity": [0.1] * n,
            "age": [20 + 2 * i for i in range(n)],
            "visits": [i % 3 for i in range(n)],
        }
    )
    found = encode(table, None, ())
    assert found.names == ("age", "visits")
    numbers, key, density = (note.text for note in found.notes)
    assert "it numbers the rows" in numbers
    assert "it looks like a key" in key
    assert "name it as the propensity to use it" in density
    assert encode(table, ["patient_id", "Propensity", ""], ()).names[:2] == (
        "patient_id",
        "Propensity",
    )
    decimal = table.set_column(0, "", pa.array([float(i) for i in range(n, 0, -1)]))
    assert encode(decimal, None, ()).names == ("age", "visits")  # as a dict of columns brings them
    assert encode(table.slice(0, 5), None, ()).names == ("", "age", "visits")  # too few to tell
    few = pa.table({"name": [f"P-{i}" for i in range(12)], "ward": ["a", "b", "c"] * 4})
    assert encode(few, None, ()).names == ("ward=b", "ward=c")


def of_days(*days):
    return encode(pa.table({"day": [dt.date(*day) for day in days]}), None, ()).names


def test_a_date_has_the_parts_that_say_something_of_their_own():
    # 19,723 days lie between 1970-01-01 and 2024-01-01: 54 years, 13 of them leap years.
    within = pa.table({"day": [dt.date(2024, 1, 1), dt.date(2024, 1, 30)]})
    found = encode(within, None, ())
    assert found.names == ("day.weekday", "day.days")  # a Monday and a Tuesday of one month
    assert found.table["day.days"].to_pylist() == [19723.0, 19752.0]
    assert of_days((2024, 1, 1), (2024, 1, 8)) == ("day.days",)
    assert of_days((2024, 1, 1), (2024, 4, 1)) == ("day.month", "day.days")
    assert of_days((2018, 1, 1), (2024, 1, 1)) == ("day.year",)
    # Before 1970, in its last hour of local time.
    early = pa.array([-3600, 0], pa.timestamp("s", "UTC"))
    assert date_part(pa.chunked_array([early]), "day", "days").to_pylist() == [-1.0, 0.0]


def of_ids(values):
    return encode(pa.table({"store_id": pa.array(values)}), None, ())


@pytest.mark.parametrize(
    "kind", [int, float, lambda i: f"{i:04}", lambda i: f"S{i}"], ids=["int", "float", "0012", "S"]
)
def test_ids_that_repeat_as_categories_do_are_contexts(kind):
    # 30 stores of 15 rows each, whatever they are called: indicators of all but the first.
    found = of_ids([kind(12 + i % 30) for i in range(450)])
    assert len(found.names) == 29
    assert found.notes[0].text.startswith(
        "Column `store_id` is called as a key is, but a category, each value in 15 rows on average:"
    )
    # One row less of a store, and they are keys of those who have a few rows each.
    fewer = of_ids([kind(12 + i % 30) for i in range(449)])
    assert fewer.names == ()
    assert (
        "a key, of 30 that have 15.0 rows each on average; say `groups='sto" in fewer.notes[0].text
    )
    assert of_ids([kind(i) for i in range(450)]).notes[0].text.endswith("it looks like a key.")
    # Of more than 50 it is a code, of more than 500 a key again.
    assert of_ids([kind(i % 60) for i in range(900)]).recipe.codes == ("store_id",)
    assert of_ids([kind(i % 501) for i in range(501 * 15)]).names == ()


def test_ids_are_the_same_ones_in_a_later_table():
    found = of_ids([None, *(float(7 + i % 3) for i in range(60))])
    assert found.names == ("store_id=8", "store_id=9", "store_id=missing")
    later = pa.table({"store_id": [9, 7, None, 12]})  # whole numbers now: the gap is another
    made = with_features(later, found.names, found.recipe)
    assert made["store_id=9"].to_pylist() == [1.0, 0.0, 0.0, 0.0]
    assert made["store_id=missing"].to_pylist() == [0.0, 0.0, 1.0, 0.0]


# A file or a database shows whole numbers with a gap among them as 7.0.
def test_whole_numbers_are_the_same_texts_when_they_are_written_as_floats():
    levels = {"store": ("7", "8", "9"), "version": ("1", "1.0")}
    table = pa.table({"store": ["7.0", "8", "9.0", "9.5"], "version": ["1", "1.0", "1", "1.0"]})
    indicators = ["store=8", "store=9", "version=1.0"]
    found = with_features(table, indicators, Recipe(levels))
    assert found["store=8"].to_pylist() == [0.0, 1.0, 0.0, 0.0]
    assert found["store=9"].to_pylist() == [0.0, 0.0, 1.0, 0.0]
    assert found["version=1.0"].to_pylist() == [0.0, 1.0, 0.0, 1.0]  # a level of its own
    codes = with_features(table, ["store"], Recipe(levels, codes=("store",)))
    assert codes["store"].to_pylist() == [0.0, 1.0, 2.0, 3.0]
    strange = {name: rows.tolist() for name, rows in unseen(table, levels).items()}
    assert strange == {"store": [False, False, False, True], "version": [False] * 4}


def test_ids_without_a_choice():
    assert "it is empty" in of_ids(pa.nulls(40, pa.int64())).notes[0].text
    assert "all its values are the same" in of_ids([7] * 40).notes[0].text
    assert of_ids([i % 2 == 0 for i in range(40)]).names == ("store_id",)  # yes or no is no key
    assert of_ids([i % 2 + 0.5 for i in range(40)]).names == ("store_id",)


def test_named_contexts_keep_their_order():
    found = encode(TABLE, ["ward", "age"], ["dose"])
    assert found.names == ("ward=b", "ward=c", "age")


def test_categories_of_any_kind():
    numbers = pa.array([7, 8, 7]).dictionary_encode()
    texts = pa.array(["ü=1", "b", "b"]).dictionary_encode()
    found = encode(pa.table({"k": numbers, "l": texts}), None, ())
    assert found.names == ("k=8", "l=ü=1")
    assert found.table["k=8"].to_pylist() == [0.0, 1.0, 0.0]
    assert found.table["l=ü=1"].to_pylist() == [1.0, 0.0, 0.0]


def test_indicators_can_be_made_anew_from_their_names():
    # A table with other levels than the one that was encoded first.
    new = pa.table({"ward": ["c", "d", "b"], "age": [1, 2, 3]})
    made = with_features(new, ["age", "ward=b", "ward=c"])
    assert made["ward=b"].to_pylist() == [0.0, 0.0, 1.0]
    assert made["ward=c"].to_pylist() == [1.0, 0.0, 0.0]


def test_features_of_absent_columns_are_left_to_be_missed():
    assert with_features(TABLE, ["wad=b", "age"]).column_names == TABLE.column_names


def test_keys_are_left_out_also_when_named():
    names = pa.table({"id": [f"p{i}" for i in range(MOST_LEVELS + 1)]})
    assert encode(names, None, ()).names == ()
    found = encode(names, ["id"], ())
    assert found.names == ()
    assert "take 51 different values in 51 rows, as a key does" in found.notes[0].text


@pytest.mark.parametrize("missing", [None, "", " "])
def test_missing_categories_are_a_level_of_their_own(missing):
    found = encode(pa.table({"ward": ["a", missing, "b", "z"]}), None, ())
    assert found.names == ("ward=b", "ward=z", "ward=missing")
    assert found.table["ward=missing"].to_pylist() == [0.0, 1.0, 0.0, 0.0]
    assert "missing in 1 of 4 rows, the level `missing`" in found.notes[0].text


def test_numbers_with_a_few_texts_are_not_left_out_in_silence():
    texts = [f"{i}.5e-1" for i in range(30)]
    assert encode(pa.table({"bmi": [f"v{t}" for t in texts]}), None, ()).names == ()
    texts[7], texts[9] = "high", None
    said = r"`bmi` holds numbers, but not in 1 of 30 rows \(first 'high'; row 7, counting from 0\)"
    with pytest.raises(DataError, match=said):
        encode(pa.table({"bmi": texts, "age": range(30)}), None, ())
    assert encode(pa.table({"bmi": texts, "age": range(30)}), ["age"], ()).names == ("age",)


@pytest.mark.parametrize("written", ["1,{:03}.5", "{},5", "$ {}.00", "{} %", "1'{:03}", "3 {:03}"])
def test_numbers_written_for_people_are_not_left_out_in_silence(written):
    table = pa.table({"income": [written.format(i) for i in range(30)]})
    with pytest.raises(DataError, match=r"`income` holds numbers with separators or signs, such"):
        encode(table, None, ())


@pytest.mark.parametrize("written", ["2020-99-{:02}", "1.2.{}", "12 {}", "v{}", "{}/7"])
def test_other_texts_with_digits_are_left_out(written):
    table = pa.table({"key": [written.format(i) for i in range(30)]})
    assert encode(table, None, ()).names == ()


def test_a_column_that_is_there_already_is_not_overwritten():
    table = pa.table({"s": ["a", "b"], "s=b": [5.0, 6.0]})
    with pytest.raises(DataError, match="`s=b` 2 times"):
        encode(table, ["s"], ())


def test_a_missing_column_is_answered_with_the_closest_name():
    with pytest.raises(DataError, match="did you mean `ward`"):
        encode(TABLE, ["wrad"], ())
