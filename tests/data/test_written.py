"""Tables as people write them: what is found out is told, what leaves doubt stays a text."""

from __future__ import annotations

import sys

import openpyxl
import pytest

from titrant.data import Columns
from titrant.data.files import Written, read_log, read_table
from titrant.data.frames import notes_of
from titrant.errors import DataError

GERMAN = (
    "größe;dosis;rabatt;datum\n1,5;1.234,5;12,5 %;01.03.2021\n2,5;2.000;3 %;15.03.2021\n",
    {"größe": [1.5, 2.5], "dosis": [1234.5, 2000.0], "rabatt": [12.5, 3.0]},
)
WRITTEN = {
    "a German file": GERMAN,
    "thousands": ('a,b\n"1,234.5",1\n"2,000",2\n', {"a": [1234.5, 2000.0]}),
    # 70.5 is no group of thousands, so that the comma is one.
    "a mark in another column": ('a,b\n"1,234",70.5\n"2,500",71.25\n', {"a": [1234.0, 2500.0]}),
    "points between thousands": ("a;b\n1,5;5.500\n2,5;6.250\n", {"b": [5500.0, 6250.0]}),
    "percent": ("a,b\n12.5 %,1\n3%,2\n", {"a": [12.5, 3.0]}),
    "currency": ("a,b\n$3,1\n$4.50,2\n", {"a": [3.0, 4.5]}),
    "below zero": ("a|b\n−3 %|1\n-4 %|2\n", {"a": [-3.0, -4.0]}),
    "blanks and quotes": ("a\tb\n1'234.5\t5\n1 234.5\t6\n", {"a": [1234.5, 1234.5]}),
    "gaps": ("a,b\n3 %,1\nNA,2\n,3\n", {"a": [3.0, None, None]}),
}
DOUBTFUL = {
    "groups or decimals": "a;b\n1,234;5\n2,500;6\n",
    "both marks": "a;b\n1,5;5.5\n2,5;6.25\n",
    "a sign in some rows": "a,b\n3 %,5\n0.04,6\n",
    "two currencies": "a,b\n$3,5\n£4,6\n",
    "a code with zeros": "a,b\n030 123,5\n040 456,6\n",
    "dates": "a,b\n01.03.2021,5\n15.03.2021,6\n",
    "words": "a,b\n12 mg,5\n13 mg,6\n",
}


def read(tmp_path, text, **how):
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode(how.get("encoding", "utf-8")))
    return read_table(str(path), how=Written(**how))


@pytest.mark.parametrize("name", WRITTEN)
def test_numbers_are_read_as_they_are_meant_and_it_is_told(tmp_path, name):
    text, meant = WRITTEN[name]
    table = read(tmp_path, text)
    assert {column: table[column].to_pylist() for column in meant} == meant
    told = " ".join(note.text for note in notes_of(table))
    assert "decimal comma" in told or all(f"`{column}`" in told for column in meant)


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_leaves_doubt_stays_a_text(tmp_path, name):
    table = read(tmp_path, DOUBTFUL[name])
    assert all(isinstance(value, str) for value in table["a"].to_pylist())


def test_a_mark_that_is_given_settles_the_doubt(tmp_path):
    text = DOUBTFUL["groups or decimals"]
    assert read(tmp_path, text, decimal=",")["a"].to_pylist() == [1.234, 2.5]
    assert read(tmp_path, text, decimal=".")["a"].to_pylist() == [1234.0, 2500.0]


def test_plain_files_have_no_notes(tmp_path):
    assert notes_of(read(tmp_path, "a,b\n1.5,x\n2,y\n")) == ()


def test_encodings_and_separators_that_are_given(tmp_path):
    assert read(tmp_path, GERMAN[0], encoding="latin-1")["größe"].to_pylist() == [1.5, 2.5]
    assert read(tmp_path, "a b\n1 2\n", separator=" ").column_names == ["a", "b"]
    path = tmp_path / "log.csv"
    path.write_text(GERMAN[0], encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read in the encoding 'ascii'"):
        read_table(str(path), how=Written(encoding="ascii"))


def test_the_separator_is_that_of_the_names(tmp_path):
    text = 'dose;loss;"weight, kg"\n1;2;3\n'
    table = read(tmp_path, text)
    assert table.column_names == ["dose", "loss", "weight, kg"]
    assert notes_of(table)[0].text.endswith("its columns are separated by ';'.")


def test_what_was_read_is_told_by_the_log_and_not_of_columns_that_it_has_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("dose;loss;age;unused\n1,5;3 %;30;$2\n2,5;4 %;40;$3\n", encoding="utf-8")
    log = read_log(str(path), Columns(treatment="dose", outcome="loss", context="age"))
    assert log.outcome.tolist() == [3.0, 4.0]
    assert [note.column for note in log.flow.notes] == ["", "", "loss"]
    assert log.flow.to_dict()


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return str(path)


def test_a_workbook(tmp_path):
    rows = [["dose", "rate", None, "mixed"], [1, "3 %", None, 5], [2.5, "4,5 %", None, "#N/A"]]
    path = workbook(tmp_path / "log.xlsx", [*rows, [None] * 4], [["other"], [1]])
    table = read_table(path)
    assert table.to_pydict() == {"dose": [1.0, 2.5], "rate": [3.0, 4.5], "mixed": [5.0, None]}
    assert "has 2 sheets: the first, `sheet 0`, is read" in notes_of(table)[0].text
    assert read_table(path, how=Written(sheet="sheet 1")).to_pydict() == {"other": [1]}
    with pytest.raises(DataError, match="has no sheet `x`; it has sheet 0, sheet 1"):
        read_table(path, how=Written(sheet="x"))


def test_a_workbook_that_is_no_table(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        read_table(workbook(tmp_path / "empty.xlsx", []))
    with pytest.raises(DataError, match="got number 2 with no name"):
        read_table(workbook(tmp_path / "unnamed.xlsx", [["a", None], [1, 2]]))
    with pytest.raises(DataError, match="got number 2 with the name `a`"):
        read_table(workbook(tmp_path / "twice.xlsx", [["a", "a"], [1, 2]]))


def test_a_workbook_without_openpyxl(tmp_path, monkeypatch):
    path = workbook(tmp_path / "log.xlsx", [["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match=r'Install it with `pip install "titrant\[excel\]"`'):
        read_table(path)


def test_what_a_format_has_not_is_refused(tmp_path):
    path = workbook(tmp_path / "log.xlsx", [["a"], [1]])
    with pytest.raises(DataError, match="is a file in Excel, which has no separator to choose"):
        read_table(path, how=Written(separator=";"))
