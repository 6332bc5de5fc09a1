"""Every sentence that refuses a table, in one form: what is wrong, how often, where, what to do.

Rows are counted from 0 in the order of the table, and each sentence says so. A *label* names a
column as the user knows it: ``treatment column `dose` `` for a table, ``treatment`` for an array.
"""

from __future__ import annotations

import difflib
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

_SHOWN_ROWS = 5
_SHOWN_NAMES = 12
_LONGEST = 40

TEXT = "Convert it to numbers, or one-hot encode it if its values are categories."
NUMBERS_AS_TEXT = "Its values look like numbers: convert the column to a numeric type."
CATEGORIES = "One-hot encode it, or convert it to a numeric type if its values are amounts."
MOMENTS = "Replace it by a number, such as days since a fixed date."
OTHER = "Replace it by a column of plain numbers."


def listed(names: Iterable[object]) -> str:
    """Return the names in backticks, at most a dozen of them."""
    every = [f"`{name}`" for name in names]
    rest = len(every) - _SHOWN_NAMES
    return ", ".join(every[:_SHOWN_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Return where the mask `bad` (n,) is first true, as "first rows, counting from 0: 4, 17"."""
    rows = np.flatnonzero(bad)
    if rows.size == 1:
        return f"row {rows[0]}, counting from 0"
    return "first rows, counting from 0: " + ", ".join(map(str, rows[:_SHOWN_ROWS]))


def of_rows(bad: NDArray[np.bool_]) -> str:
    """Return how many rows the mask `bad` (n,) marks, as "3 of 12,000 rows"."""
    return f"{np.count_nonzero(bad):,} of {bad.size:,} rows"


# The table and its columns


def not_a_table(frame: object) -> DataError:
    """Refuse an object that is no table."""
    got = f"the text {frame!r}" if isinstance(frame, str) else f"an object of type `{_kind(frame)}`"
    return DataError(
        "The `frame` of `LoggedData.from_frame` must be a pandas, polars, pyarrow or duckdb table, "
        f"an Arrow stream or a dict of columns; got {got}. Read files with "
        "`titrant.data.files.read_log`, and arrays with `LoggedData(context, treatment, outcome)`."
    )


def missing_column(name: str, role: str, available: Sequence[str]) -> DataError:
    """Refuse a column name that the table lacks, and suggest the closest one."""
    close = _closest(name, available)
    hint = f"; did you mean `{close}`?" if close else "."
    return DataError(
        f"The {role} column `{name}` is not in the table{hint} "
        f"The table has {_count(len(available), 'column')}: {listed(available) or 'none'}."
    )


def lacks_contexts(owner: str, missing: Sequence[str], available: Sequence[str]) -> DataError:
    """Refuse to guess the contexts that a policy knows by names which a log does not have."""
    close = _closest(missing[0], available)
    hint = f"; did you mean `{close}`?" if close else "."
    noun = "context" if len(missing) == 1 else "contexts"
    return DataError(
        f"The {owner} uses the {noun} {listed(missing)}, which the log lacks{hint} "
        f"The log has {listed(available) or 'none'}. Name the columns as the policy does: a log "
        "made of arrays takes `LoggedData(…, names=[…])`."
    )


def names_of_a_table(own: Sequence[object], names: Sequence[object]) -> DataError:
    """Refuse names for the columns of a table that are not its own."""
    return DataError(
        f"The context is a table with the columns {listed(own)}; got the `names` {listed(names)} "
        "besides. Leave `names` out, or rename or select the columns of the table."
    )


def duplicate_names(names: Sequence[str]) -> DataError:
    """Refuse a table in which several columns share a name."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    counts = ", ".join(f"`{name}` {names.count(name)} times" for name in twice)
    return DataError(
        f"The column names of a table must differ; got {counts}. Rename or drop the repeated ones."
    )


def name_not_text(name: object, role: str) -> DataError:
    """Refuse a column name that is not a string."""
    return DataError(
        f"The name of the {role} column must be text; got {name!r}. "
        "Rename the columns of the table to text."
    )


def names_without_order(role: str) -> DataError:
    """Refuse a set of column names."""
    return DataError(
        f"The names of the {role} columns must come in an order; got a set. Give them as a list."
    )


def two_roles(name: str, first: str, second: str) -> DataError:
    """Refuse one column named for two roles, or twice for one."""
    used = f"twice as {first}" if first == second else f"as {first} and as {second}"
    return DataError(
        f"A column must have one role; got `{name}` {used}. Remove it from one of the two."
    )


def no_treatment_column() -> DataError:
    """Refuse an empty list of treatment columns."""
    return DataError("The treatment must name at least one column; got none. Name the dose column.")


# The values of one column


def not_numeric(label: str, dtype: object, value: object, row: int, remedy: str) -> DataError:
    """Refuse a column that does not hold numbers."""
    return DataError(
        f"The {label} must be numeric; got values of type {dtype}, first {_short(value)} "
        f"in row {row}, counting from 0. {remedy}"
    )


def looks_numeric(text: str) -> bool:
    """Return whether `text` reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def not_rectangular(label: str) -> DataError:
    """Refuse nested lists of unequal lengths."""
    return DataError(
        f"The {label} must be an array with rows of one length; got rows of different lengths. "
        "Give every row the same number of values."
    )


def wrong_shape(label: str, rule: str, shape: tuple[int, ...]) -> DataError:
    """Refuse an array of the wrong number of dimensions or columns."""
    return DataError(
        f"The {label} must have {rule}; got shape {shape}. Reshape it to one row per unit."
    )


def missing_categories(name: str, bad: NDArray[np.bool_]) -> DataError:
    """Refuse a text column with missing values."""
    return DataError(
        f"The context column `{name}` must name a category in every row; got none in "
        f"{of_rows(bad)} ({first_rows(bad)}). Drop these rows, or give them a category of their "
        "own."
    )


def mostly_numbers(name: str, like: NDArray[np.bool_], texts: Sequence[object]) -> DataError:
    """Refuse a column of texts that are like numbers in most rows (n,), but not in all."""
    first = str(texts[int(np.argmin(like))])
    return DataError(
        f"The column `{name}` holds numbers, but not in {of_rows(~like)} (first {first!r}; "
        f"{first_rows(~like)}). Correct or empty these, drop the rows, or name the context columns "
        "to use."
    )


def numbers_with_signs(name: str, like: NDArray[np.bool_], texts: Sequence[object]) -> DataError:
    """Refuse a column of texts that most rows (n,) show to be numbers for people."""
    row = int(np.argmax(like))
    return DataError(
        f"The column `{name}` holds numbers with separators or signs, such as {str(texts[row])!r} "
        f"in row {row}, counting from 0. Write them with digits and a decimal point alone, or "
        "name the context columns to use."
    )


def too_many_levels(name: str, count: int, most: int) -> DataError:
    """Refuse a text column that looks like a name or a key."""
    return DataError(
        f"The context column `{name}` must have at most {most} different texts to be encoded; got "
        f"{count:,}. Group them, or leave the column out of the context."
    )


def no_such_level(column: str, text: str, levels: Sequence[str]) -> DataError:
    """Refuse an indicator that would be 0 in all rows."""
    close = _closest(text, levels)
    hint = f"; did you mean `{column}={close}`?" if close else "."
    return DataError(
        f"The context `{column}={text}` would be 0 in all rows: none has the text `{text}` in the "
        f"column `{column}`{hint} Its texts are {listed(levels)}."
    )


def levels_without_indicator(column: str, named: Sequence[str], others: Sequence[str]) -> DataError:
    """Refuse texts that would all be 0, as if they were one category."""
    indicators = listed(f"{column}={text}" for text in named)
    return DataError(
        f"The column `{column}` must have one text beside those of the indicators {indicators}; "
        f"got {listed(others)}, which would all count as one category. Spell each category in one "
        "way, and name an indicator for all but one of them."
    )


# The rows


def unequal_lengths(lengths: Mapping[str, int]) -> DataError:
    """Refuse columns of different lengths."""
    got = ", ".join(f"{label} {n:,}" for label, n in lengths.items())
    return DataError(
        f"All parts of a log must have the same number of rows; got {got}. "
        "Build them from the same rows of one table."
    )


def too_few_rows(n: int) -> DataError:
    """Refuse an empty table and a table of one row."""
    got = _count(n, "row") if n else "an empty table"
    return DataError(
        f"A log must have at least 2 rows; got {got}. Check the filter or the query that made it."
    )


def not_finite(masks: Mapping[str, NDArray[np.bool_]], of: str = "a log") -> DataError:
    """Refuse missing and infinite numbers; `masks` gives the bad rows (n,) of each column."""
    bad = np.logical_or.reduce(list(masks.values()))
    each = ", ".join(f"{label}: {np.count_nonzero(mask):,}" for label, mask in masks.items())
    return DataError(
        f"All numbers of {of} must be present and finite; got a missing or infinite one in "
        f"{of_rows(bad)} ({each}; {first_rows(bad)}). Drop these rows or impute their values."
    )


def nameless_table(owner: str, features: Sequence[str]) -> DataError:
    """Refuse to match names with columns that are numbered, or named in several levels."""
    return DataError(
        f"The {owner} finds its contexts by name ({', '.join(features)}); the columns of this "
        "table are numbered or named in several levels. Name them by texts, or pass an array with "
        "the contexts in this order."
    )


def too_large(label: str, column: NDArray[np.float64], largest: float) -> DataError:
    """Refuse numbers of a column (n,) whose squares overflow."""
    bad = np.abs(column) >= largest
    return DataError(
        f"The {label} must stay below {largest:g} in size, since larger numbers overflow when they "
        f"are squared; got {of_rows(bad)} beyond it ({first_rows(bad)}). Correct these rows, or "
        "give the column in a larger unit."
    )


def too_small(label: str, extent: float) -> DataError:
    """Refuse a column whose differences are 0 when squared."""
    return DataError(
        f"The {label} varies by {extent:.3g} in all, which is 0 when it is squared. "
        "Give the column in a smaller unit."
    )


def not_positive(label: str, q: NDArray[np.float64]) -> DataError:
    """Refuse propensities ≤ 0, q (n,)."""
    bad = q <= 0
    return DataError(
        f"The {label} must be > 0, being the density of the dose that was given; got "
        f"{of_rows(bad)} at or below 0 (smallest {q.min():g}; {first_rows(bad)}). "
        "Drop these rows, or leave the propensity out to have it estimated."
    )


def constant_treatment(label: str, value: float, n: int) -> DataError:
    """Refuse a treatment that never varies."""
    return DataError(
        f"The {label} must vary; got {value:g} in all {n:,} rows. "
        "One dose says nothing about another: use a log in which doses differ."
    )


def outside_bounds(
    label: str, t: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> DataError:
    """Refuse treatments t (n,) outside [lower, upper], each (n,)."""
    bad = (t < lower) | (t > upper)
    return DataError(
        f"The {label} must lie within its bounds; got {of_rows(bad)} outside (values there from "
        f"{t[bad].min():g} to {t[bad].max():g}, bounds from {lower.min():g} to {upper.max():g}; "
        f"{first_rows(bad)}). Widen the bounds, or drop these rows or correct their units."
    )


# The bounds


def bounds_not_a_number(side: str, got: object) -> DataError:
    """Refuse a bound that is NaN or no number."""
    return DataError(
        f"The {side} bound must be None, a number or an array of numbers; got {_short(got)}. "
        "Use None where there is no bound."
    )


def bounds_shape(side: str, shape: tuple[int, ...], n: int, d: int) -> DataError:
    """Refuse a bound that fits neither the rows nor the dimensions of the treatment."""
    rule = f"one for each of the {n:,} rows" if d == 1 else f"{d} numbers or {n:,} rows of {d}"
    return DataError(
        f"The {side} bound must be None, a number, or {rule}; got shape {shape}. "
        "Give the bounds as the pair (lower, upper)."
    )


def bounds_crossed(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> DataError:
    """Refuse lower ≥ upper, each (n, d), or (1, d) when all rows share them."""
    crossed = lower >= upper
    bad = np.logical_or.reduce(crossed, axis=1)
    i, j = np.argwhere(crossed)[0]
    where = f" ({of_rows(bad)}; {first_rows(bad)})" if len(bad) > 1 else ""
    return DataError(
        f"The lower bound must be below the upper bound; got {lower[i, j]:g} and {upper[i, j]:g}"
        f"{where}. "
        "Give the bounds as the pair (lower, upper)."
    )


# Files


def no_file(path: str, siblings: Sequence[str]) -> DataError:
    """Refuse a path at which there is nothing, and suggest the closest file beside it."""
    close = _closest(path, siblings)
    hint = f"; did you mean `{close}`?" if close else "."
    return DataError(
        f"There is no file at `{path}`{hint} Check the path and the working directory."
    )


def no_match(pattern: str) -> DataError:
    """Refuse a pattern that matches no file."""
    return DataError(
        f"No file matches `{pattern}`. Quote the pattern and check the working directory."
    )


def empty_path() -> DataError:
    """Refuse a path without a character, which would stand for the working directory."""
    return DataError(
        "The path of the table is empty. Name a file, a folder (`.` for the working directory) or "
        "a pattern such as `logs/*.parquet`."
    )


def no_table(folder: str, deeper: Sequence[str]) -> DataError:
    """Refuse a folder without tables directly in it; `deeper` are its folders that have some."""
    if not deeper:
        return no_match(folder)
    return DataError(
        f"No table lies directly in `{folder}`, but {_count(len(deeper), 'folder')} in it "
        f"{'has' if len(deeper) == 1 else 'have'} tables, first `{deeper[0]}`. Give a pattern such "
        f"as `{folder}/**/*.parquet` to read them all."
    )


def folders_not_read(folder: str, deeper: Sequence[str]) -> str:
    """Say that only the tables directly in a folder are read."""
    return (
        f"Only the tables directly in `{folder}` are read, not those in "
        f"{_count(len(deeper), 'folder')} of it, first `{deeper[0]}`. Give a pattern such as "
        f"`{folder}/**/*.parquet` to read all, or `{folder}/*.parquet` to read these alone."
    )


def partition_folders(folder: str, first: str, key: str) -> DataError:
    """Refuse a folder that is split into folders by the values of a column."""
    return DataError(
        f"`{folder}` is split into folders such as `{first}`, and their files need not have the "
        f"column `{key}`. Give a pattern such as `{folder}/**/*.parquet` to read them all, with "
        "the columns that are in the files."
    )


def keys_not_read(key: str, folders: Sequence[str]) -> str:
    """Say that a column stands in the names of folders alone."""
    return (
        f"The files lie in {len(folders):,} folders, from `{folders[0]}` to `{folders[-1]}`: "
        f"`{key}` is not read from the names of folders. Write it into the files if it matters."
    )


def other_format(folder: str, first: str, only: str) -> DataError:
    """Refuse a folder whose tables are of a format that cannot be read there."""
    return DataError(
        f"Only {only} files are read part by part; got `{folder}` with others, first `{first}`. "
        f"Convert them to {only}, or read them into memory."
    )


def mixed_formats(path: str, by_format: Mapping[str, Sequence[str]]) -> DataError:
    """Refuse files of several formats, which are hardly one table."""
    each = ", ".join(
        f"{len(some):,} {form} (first `{some[0]}`)" for form, some in by_format.items()
    )
    return DataError(
        f"All files of a table must have one format; got `{path}` with {each}. Name those to read "
        "by a pattern with their ending."
    )


def table_twice(path: str, one: str, other: str) -> DataError:
    """Refuse files of which two are the same table, whose rows would count twice."""
    return DataError(
        f"Each file of a table must be there once; got `{path}` with `{one}` and `{other}`, which "
        "seem to be the same. Remove one of the two, or name the files to read by a pattern."
    )


def folder_matches(pattern: str, folder: str) -> DataError:
    """Refuse a pattern that matches a folder with the name of a table."""
    return DataError(
        f"A pattern must match files; got `{pattern}`, which matches the folder `{folder}`. Add "
        "`/*` to read the files in such folders, or narrow the pattern."
    )


def matched_folders_not_read(pattern: str, folders: Sequence[str]) -> str:
    """Say that a pattern matches folders, whose tables are not read."""
    return (
        f"`{pattern}` matches {_count(len(folders), 'folder')} with tables that are not read, "
        f"first `{folders[0]}`. Write `**` for folders at any depth, as in `logs/**/*.parquet`, to "
        "read them, or narrow the pattern to the ending of the files."
    )


def half_of_a_part(pattern: str, part: str) -> DataError:
    """Refuse ``**`` beside other letters, where it means no more than ``*``."""
    return DataError(
        f"`**` must be a whole part of a path, such as in `logs/**/*.parquet`; got `{part}` in "
        f"`{pattern}`. Write `**/{part.replace('**', '*')}` to read files at any depth, or a "
        "single `*`."
    )


def compressed_not_read(folder: str, compressed: Sequence[str]) -> str:
    """Say that a folder has tables which cannot be read."""
    return (
        f"{_count(len(compressed), 'table')} in `{folder}`, first `{compressed[0]}`, "
        f"{'is' if len(compressed) == 1 else 'are'} not read: only a CSV may be compressed, by "
        "gzip (.gz), bzip2 (.bz2) or zstd (.zst). Decompress what belongs to the log."
    )


def columns_of_some_files(first: str, lacking: Sequence[str], some: int, every: int) -> str:
    """Say that some of several files lack columns that others have."""
    return (
        f"{some:,} of {every:,} files {'lacks' if some == 1 else 'lack'} columns that others have, "
        f"first `{first}` without {listed(lacking)}. Columns that are not in every file are not "
        "read; narrow the path if the files are not of one log."
    )


def unknown_format(path: str, known: Sequence[str]) -> DataError:
    """Refuse a file whose name does not say its format."""
    return DataError(
        f"The format of `{path}` is not known from its name; got an ending other than "
        f"{', '.join(known)}. Rename or convert the file, or pipe CSV to `-`."
    )


def unreadable(path: str, kind: str, reason: object) -> DataError:
    """Refuse a file that is not what its name says."""
    lines = str(reason).strip().splitlines() or ["no reason given"]
    return DataError(
        f"`{path}` cannot be read as {kind}: {lines[0].rstrip('.')}. Check that it is complete and "
        f"in this format."
    )


def not_utf8(path: str, where: str) -> DataError:
    """Refuse a CSV in another encoding."""
    return DataError(f"`{path}` is not in UTF-8: {where}. Save it as CSV in UTF-8.")


def empty_file(path: str) -> DataError:
    """Refuse a CSV of 0 bytes."""
    return DataError(f"`{path}` is empty. A CSV begins with a line of column names.")


def wrong_separator(path: str, header: str, separator: str) -> DataError:
    """Refuse a CSV that is separated by something else than its name says."""
    return DataError(
        f"`{path}` has a column named `{header}`: its columns seem to be separated by "
        f"{separator!r}. Save it separated by commas, or by tabs with the ending .tsv."
    )


def files_differ(path: str, first: str, lacking: Sequence[str]) -> DataError:
    """Refuse several files of one table that do not have the same columns."""
    return DataError(
        f"All files of a table must have the same columns; got `{path}` without {listed(lacking)}, "
        f"which `{first}` has. Narrow the pattern, or add the column."
    )


def files_disagree(path: str, first: str, reason: object) -> DataError:
    """Refuse several files of one table whose columns have types that do not combine."""
    lines = str(reason).strip().splitlines() or ["no reason given"]
    return DataError(
        f"The columns of all files of a table must have types that combine; got one in `{path}` "
        f"that differs from `{first}` ({lines[0].rstrip('.')}). Convert the files to the same "
        "types."
    )


def in_file(path: str, error: DataError) -> DataError:
    """Refuse a file for a reason that does not name it."""
    return DataError(f"In `{path}`: {error}")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in a refusal that does not."""
    try:
        yield
    except DataError as error:
        raise (error if f"`{path}`" in str(error) else in_file(path, error)) from None


def in_rows_of_file(path: str, first: int, error: DataError) -> DataError:
    """Refuse a part of a file for a reason that counts the rows of this part."""
    return DataError(f"In `{path}`, rows counted from row {first:,} of the file: {error}")


def other_type(path: str, name: str, role: str, kind: object) -> DataError:
    """Refuse a file whose column of that name does not hold numbers."""
    return DataError(
        f"In `{path}`: the {role} column `{name}` must be numeric; got type {kind}. "
        "Convert the column to numbers, or leave the file out."
    )


def file_changed(path: str, before: int, now: int) -> DataError:
    """Refuse a file that is no longer what it was when it was scanned."""
    return DataError(
        f"`{path}` must not change while it is in use; got {now:,} rows in a part that had "
        f"{before:,} when it was scanned. Scan the files again."
    )


def _closest(name: str, names: Sequence[str]) -> str | None:
    """Return the entry of `names` nearest to `name`, ignoring case and outer spaces."""
    folded = {other.strip().casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches(name.strip().casefold(), list(folded), n=1)
    return folded[close[0]] if close else None


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _kind(value: object) -> str:
    return type(value).__name__
