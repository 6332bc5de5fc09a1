"""How people write tables: encodings, separators, decimal marks, numbers with signs, sheets.

What a user does not say is found out where the file leaves no doubt, and told in a note that goes
with the table. Where it leaves doubt, texts stay texts, and whoever needs numbers refuses them.
"""

from __future__ import annotations

import codecs
import io
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data.columns import READ, ColumnNote, check_present
from titrant.data.features import as_text, gaps, is_text
from titrant.data.files.stores import opened
from titrant.data.frames import noted
from titrant.data.validate import unreadable
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

POINT, COMMA = MARKS = (".", ",")
"""What stands before the decimals of a number."""
SEPARATORS = (";", "\t", "|", ",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """How a table is written, as far as its user says; what is None is found out, and told."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    unread: tuple[str, ...] = ()
    """Columns that are not read at all, whatever they hold."""

    def check_used(self, path: str, form: str, taken: Collection[str]) -> None:
        """Refuse what a file of this format has not."""
        given = (name for name, value in asdict(self).items() if value is not None)
        for name in given:
            if name not in (*taken, "unread"):
                raise DataError(
                    f"`{path}` is a file in {form}, which has no {name} to choose. Leave the "
                    "option out."
                )


AS_IT_SEEMS = Written()
"""All is found out."""


def of_file(text: str) -> ColumnNote:
    """Return a note on the file as a whole."""
    return ColumnNote("", READ, text)


# Bytes as UTF-8, and the sign between columns.


def in_utf8(path: str, content: bytes, encoding: str | None) -> bytes:
    """Return the content of a file in UTF-8; refuse what is written in another encoding."""
    if encoding is not None:
        try:
            return content.decode(encoding).encode()
        except (UnicodeError, LookupError) as error:
            raise DataError(
                f"`{path}` cannot be read in the encoding {encoding!r}: {error}. Common ones are "
                "utf-8, latin-1, cp1252 and utf-16."
            ) from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise not_utf8(path, "it begins as a file in UTF-16 does", "utf-16")
    if "\ufffd" in first_line_of(content, errors="replace"):
        raise not_utf8(path, "its column names hold other bytes")
    return content


def first_line_of(content: bytes, errors: str = "strict") -> str:
    """Return the line of column names."""
    return content.lstrip().split(b"\n", 1)[0].decode(errors=errors)


def not_utf8(path: str, where: str, perhaps: str = "latin-1") -> DataError:
    """Refuse a file of another encoding."""
    return DataError(
        f"`{path}` is not in UTF-8: {where}. Name its encoding, such as `--encoding {perhaps}`, or "
        "save it as CSV in UTF-8."
    )


def separator(
    path: str, content: bytes, usual: str, given: str | None
) -> tuple[str, tuple[ColumnNote, ...]]:
    """Return what separates the columns, and a note if it is neither given nor the usual.

    A column name may hold a comma itself, and then there seem to be a few columns.
    """
    if given is not None:
        return given, ()
    header = first_line_of(content)
    other = max(SEPARATORS, key=header.count)
    if header.count(other) <= header.count(usual):
        return usual, ()
    return other, (of_file(f"`{path}`: its columns are separated by {other!r}."),)


# Numbers as people write them: 1,234.5 or 1.234,5, 12.5 %, $3.

_BLANK = "[\\s\u00a0\u202f]*"
_APART = ("'", "’", " ", "\u00a0", "\u202f")
"""What may stand between thousands besides the mark that is not the decimal one."""
_SHOWS = (
    "(^|[^0-9{other}])0[{mark}][0-9]"  # 0,125
    "|[{mark}]([0-9]{{1,2}}|[0-9]{{4,}})[^0-9]*$"  # 12,5
    "|[{other}][0-9]{{3}}[{mark}{other}][0-9]"  # 1.234,5 and 1.234.567
)
"""Numbers that have a mark before their decimals beyond doubt; 1,234 leaves it in doubt."""


def _pattern(mark: str) -> str:
    """Return numbers with this decimal mark: sign, currency, digits, percent."""
    others = [COMMA if mark == POINT else POINT, *_APART]
    groups = "|".join(f"[1-9][0-9]{{0,2}}(?:[{one}][0-9]{{3}})+" for one in others)
    digits = f"(?:{groups}|[0-9]+)(?:[{mark}][0-9]*)?|[{mark}][0-9]+"
    return (
        f"^(?P<minus>[-+−]?){_BLANK}(?P<before>[$€£]?){_BLANK}"
        f"(?P<digits>{digits}){_BLANK}(?P<after>[%$€£]?)$"
    )


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts of a column that are there, without blanks around them."""
    return pc.utf8_trim_whitespace(as_text(column).filter(pa.array(~gaps(column))))


def _seem_numbers(column: pa.ChunkedArray) -> bool:
    """Return whether all texts look like numbers, each by one decimal mark or the other."""
    there = _present(column)
    either = pc.or_(*(pc.match_substring_regex(there, _pattern(mark)) for mark in MARKS))
    return len(there) > 0 and bool(pc.all(either).as_py())


def decimal_marks(columns: Iterable[pa.ChunkedArray]) -> set[str]:
    """Return the decimal marks that texts show beyond doubt: 12,5 a comma, 1,234 none."""
    found = set()
    for column in columns:
        there = _present(column)
        for mark, other in (MARKS, MARKS[::-1]):
            shows = _SHOWS.format(mark=mark, other=other)
            if pc.any(pc.match_substring_regex(there, shows)).as_py():
                found.add(mark)
    return found


def numbers(column: pa.ChunkedArray, mark: str) -> pa.ChunkedArray | None:
    """Return texts as numbers by their decimal mark, None if any is none.

    All must have the same sign of percent or currency, or none: 12.5 % is not 0.125, nor $3 £3.
    """
    missing = gaps(column)
    texts = pc.if_else(pa.array(missing), None, pc.utf8_trim_whitespace(as_text(column)))
    parts = pc.extract_regex(texts, _pattern(mark))
    minus, before, digits, after = (pc.struct_field(parts, [k]) for k in range(4))
    understood = np.asarray(parts.is_valid().to_numpy())
    signs = pc.unique(pc.binary_join_element_wise(before, after, "").drop_null())
    if not missing.size or missing.all() or len(signs) > 1 or not (understood | missing).all():
        return None
    plain = pc.replace_substring_regex(digits, f"[^0-9{mark}]", "")
    sizes = pc.cast(pc.replace_substring(plain, mark, POINT), pa.float64())
    below = pc.is_in(minus, value_set=pa.array(["-", "−"]))
    return pc.if_else(below, pc.negate(sizes), sizes)


def settled(
    parsed: Callable[[str], pa.Table], given: str | None, typed: Collection[str] | None
) -> pa.Table:
    """Return the table that `parsed` makes by a decimal mark: the one given, or that of its texts.

    Columns that are not `typed` stay as they are written. Texts that are numbers by the mark become
    numbers; so do those that are the same by either.
    """
    table = parsed(given or POINT)
    check_present((), table.column_names)
    seeming = [name for name in _own(table, typed) if _seem_numbers(table[name])]
    if not seeming:
        return table
    if given is not None:
        return _read(table, seeming, (given,))
    other = parsed(COMMA)
    points = (n for n in table.column_names if pa.types.is_floating(table[n].type))
    as_written = [other[n] for n in points if is_text(other[n].type)]
    marks = decimal_marks([*(table[name] for name in seeming), *as_written])
    if any(numbers(column, COMMA) is None for column in as_written):
        marks.add(POINT)
    if marks != {COMMA}:
        return _read(table, seeming, tuple(marks) if len(marks) == 1 else MARKS)
    name = next(n for n in seeming if decimal_marks([table[n]]))
    first = _present(table[name])[0].as_py()
    text = f"Numbers are read with a decimal comma: {first!r} in column `{name}`, for one."
    left = [name for name in _own(other, typed) if _seem_numbers(other[name])]
    return _read(noted(other, [of_file(text)]), left, (COMMA,))


def _own(table: pa.Table, typed: Collection[str] | None) -> list[str]:
    """Return the columns of texts that may hold numbers."""
    names = table.column_names if typed is None else [n for n in table.column_names if n in typed]
    return [name for name in names if is_text(table[name].type)]


def _read(table: pa.Table, names: Iterable[str], marks: tuple[str, ...]) -> pa.Table:
    """Return the table with columns as the numbers that they are by each of the marks."""
    notes = []
    for name in names:
        column = table[name]
        first, *others = (numbers(column, mark) for mark in marks)
        if first is None or any(one is None or not one.equals(first) for one in others):
            continue
        row = int(np.argmin(gaps(column)))
        said = f"{column[row].as_py()!r} is {first[row].as_py():g}"
        text = f"Column `{name}` is written with signs or separators, and read as numbers: {said}."
        notes.append(ColumnNote(name, READ, text))
        table = table.set_column(table.column_names.index(name), name, first)
    return noted(table, notes)


# A sheet of a workbook.


def sheet_of(path: str, named: str | None, unread: Collection[str] = ()) -> pa.Table:
    """Return the table in a sheet of a workbook, whose first row names its columns."""
    try:
        from openpyxl import load_workbook  # noqa: PLC0415
    except ImportError:
        raise DataError(
            f"`{path}` is an Excel workbook, which needs openpyxl. Install it with `pip install "
            '"titrant[excel]"`, or save the sheet as CSV.'
        ) from None
    try:
        with opened(path) as file:
            content = io.BytesIO(file.read())
        book = load_workbook(content, read_only=True, data_only=True)
    except (BadZipFile, KeyError, ValueError) as reason:  # no archive, or none of a workbook
        raise unreadable(path, "Excel", reason) from None
    try:
        names = book.sheetnames
        if named is not None and named not in names:
            raise DataError(f"`{path}` has no sheet `{named}`; it has {', '.join(names)}.")
        rows = [row for row in book[named or names[0]].iter_rows(values_only=True) if any(
            cell is not None for cell in row)]  # fmt: skip
    finally:
        book.close()
    if not rows:
        raise DataError(f"`{path}` is empty. A sheet begins with a row of column names.")
    head, *body = rows
    columns = {}
    for place, name in enumerate(head):
        cells = [row[place] if place < len(row) else None for row in body]
        if name in unread or (name is None and all(cell is None for cell in cells)):
            continue
        if name is None or str(name) in columns:
            wrong = "no name" if name is None else f"the name `{name}`, as another has"
            raise DataError(
                f"Each column of `{path}` must have a name of its own in the first row; got number "
                f"{place + 1} with {wrong}. Name it, or empty the column."
            )
        columns[str(name)] = _cells(cells)
    told = []
    if named is None and len(names) > 1:
        first = f"the first, `{names[0]}`, is read; `--sheet` chooses another"
        told.append(of_file(f"`{path}` has {len(names)} sheets: {first}."))
    return noted(pa.table(columns), told)


def _cells(cells: list[Any]) -> pa.ChunkedArray:
    """Return the cells of a column by their type; as texts where they have several."""
    try:
        column = pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        column = pa.array([None if cell is None else str(cell) for cell in cells])
    return pa.chunked_array([column])
