"""Which files a path means.

Names that begin with ``.`` or ``_`` are what programs keep for themselves (checkpoints of
notebooks, transaction logs, files that are still being written), so they are left out unless the
path spells them out.
"""

from __future__ import annotations

import glob
import warnings
from collections import defaultdict
from contextlib import suppress
from fnmatch import fnmatch, fnmatchcase
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from titrant.data.files.stores import StorePath, in_store, name_of, opened
from titrant.data.validate import counted, did_you_mean, listed
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_COMPRESSED = ("", ".gz", ".bz2", ".zst")
ENDINGS = {
    "CSV": tuple(f".csv{z}" for z in _COMPRESSED),
    "TSV": tuple(f".tsv{z}" for z in _COMPRESSED),
    "Excel": (".xlsx", ".xlsm"),
    "Parquet": (".parquet", ".pq"),
    "Arrow": (".arrow", ".feather", ".ipc", ".arrows"),
}
"""How the names of files of each format end."""
_OTHER_COMPRESSIONS = (".xz", ".lzma", ".lz4", ".zip", ".7z", ".br", ".z", ".sz", ".snappy")
"""Endings of compressed files that cannot be read."""
_ENDS = 1 << 16
"""Bytes at both ends of a file that are compared before all of it."""
_OWN = (".", "_")
"""How names begin that programs keep for themselves."""
_DEEP = 3
"""Levels of folders that are searched for tables, to say that they are there."""


class FilesWarning(UserWarning):
    """The files of a log are readable, but perhaps not what their user takes them for."""


def paths_of(path: str, only: str | None = None) -> list[str]:
    """Return the files meant by ``path``, in order of their names.

    A folder means the tables directly in it; with ``only``, they must be of this format. A path
    may be one of an object store (`titrant.data.files.stores`).
    """
    if not path.strip():
        raise DataError(
            "The path of the table is empty. Name a file, a folder (`.` for the working directory) "
            "or a pattern such as `logs/*.parquet`."
        )
    here = Path(path)
    if in_store(path):
        store = StorePath.of(path)
        if not glob.has_magic(store.key) and store.size() is not None:
            return [str(store)]
        found = _in_store(store, only)
    elif here.is_dir():
        found = _in_folder(here, only)
    elif here.exists() or not glob.has_magic(path):
        return [_alone(path, here)]  # also when its name contains a bracket
    else:
        found = _matching(path)
    _check_one_table(path, found)
    _say_partition_keys(found)
    return found


def no_match(pattern: str) -> DataError:
    """Refuse a pattern that matches no file."""
    return DataError(
        f"No file matches `{pattern}`. Quote the pattern and check the working directory."
    )


def format_of(path: str) -> str | None:
    """Return the name of the format that the name of a file says; None if it says none."""
    name = name_of(path).lower()
    return next((form for form, ends in ENDINGS.items() if name.endswith(ends)), None)


def say_other_columns(columns: Mapping[str, Sequence[str]]) -> None:
    """Warn of columns that only some files have; ``columns`` gives those of each file."""
    every = list(dict.fromkeys(name for names in columns.values() for name in names))
    lacking = {path: [name for name in every if name not in set(has)]
               for path, has in columns.items()}  # fmt: skip
    some = {path: names for path, names in lacking.items() if names}
    if some:
        first = next(iter(some))
        _warn(
            f"{len(some):,} of {len(columns):,} files {'lacks' if len(some) == 1 else 'lack'} "
            f"columns that others have, first `{first}` without {listed(some[first])}. Columns "
            "that are not in every file are not read; narrow the path if the files are not of one "
            "log."
        )


def check_no_copies(path: str, rows: Mapping[str, int]) -> None:
    """Refuse files of one content, whose rows would count twice; ``rows`` gives those of each.

    Files without rows are often alike, and do no harm.
    """
    groups: list[list[str]] = [[one for one, n in rows.items() if n > 0]]
    for key in (_size, _ends, _content):  # each is read only of files that were alike so far
        groups = [alike for group in groups for alike in _alike(group, key)]
    for one, other, *_ in groups:
        raise _twice(path, one, other)


def _twice(path: str, one: str, other: str) -> DataError:
    return DataError(
        f"Each file of a table must be there once; got `{path}` with `{one}` and `{other}`, which "
        "seem to be the same. Remove one of the two, or name the files to read by a pattern."
    )


def _alike(files: Sequence[str], key: Callable[[str], object]) -> list[list[str]]:
    """Return the groups of several files with the same key."""
    groups: dict[object, list[str]] = defaultdict(list)
    for one in files:
        groups[key(one)].append(one)
    return [group for group in groups.values() if len(group) > 1]


def _size(path: str) -> int:
    with opened(path) as file:
        return int(file.size())


def _ends(path: str) -> tuple[bytes, bytes]:
    with opened(path) as file:
        first = file.read(_ENDS)
        file.seek(max(file.size() - _ENDS, 0))
        return blake2b(first).digest(), blake2b(file.read()).digest()


def _content(path: str) -> bytes:
    with opened(path) as file:
        return file_digest(file, blake2b).digest()


def _warn(sentence: str) -> None:
    warnings.warn(sentence, FilesWarning, stacklevel=4)


def _alone(path: str, here: Path) -> str:
    if not here.exists():
        folder = here.parent
        beside = [str(folder / one.name) for one in folder.iterdir()] if folder.is_dir() else []
        raise DataError(
            f"There is no file at `{path}`{did_you_mean(path, beside)} Check the path and the "
            "working directory."
        )
    return path


# A folder


def _in_folder(folder: Path, only: str | None) -> list[str]:
    """Return the tables directly in a folder on this machine."""
    inside = sorted(folder.iterdir())
    return _tables_of(
        str(folder),
        [str(one) for one in inside if _is_table(one)],
        [str(one) for one in inside if _is_visible_folder(one) and any(_tables_in(one, _DEEP))],
        [str(one) for one in inside if _is_unreadable_table(one)],
        only,
    )


def _tables_of(
    folder: str, found: list[str], deeper: list[str], compressed: list[str], only: str | None
) -> list[str]:
    """Return the tables directly in a folder; refuse one whose tables lie in folders of it."""
    split = [one for one in deeper if _key(Path(name_of(one)).name)]
    if split:
        raise DataError(
            f"`{folder}` is split into folders such as `{split[0]}`, and their files need not have "
            f"the column `{_key(Path(name_of(split[0])).name)}`. Give a pattern such as "
            f"`{folder}/**/*.parquet` to read them all, with the columns that are in the files."
        )
    if not found and not deeper:
        raise no_match(folder)
    if not found:
        raise DataError(
            f"No table lies directly in `{folder}`, but {counted(len(deeper), 'folder')} in it "
            f"{'has' if len(deeper) == 1 else 'have'} tables, first `{deeper[0]}`. Give a pattern "
            f"such as `{folder}/**/*.parquet` to read them all."
        )
    if deeper:
        _warn(
            f"Only the tables directly in `{folder}` are read, not those in "
            f"{counted(len(deeper), 'folder')} of it, first `{deeper[0]}`. Give a pattern such as "
            f"`{folder}/**/*.parquet` to read all, or `{folder}/*.parquet` to read these alone."
        )
    if compressed:
        _warn(
            f"{counted(len(compressed), 'table')} in `{folder}`, first `{compressed[0]}`, "
            f"{'is' if len(compressed) == 1 else 'are'} not read: only a CSV may be compressed, by "
            "gzip (.gz), bzip2 (.bz2) or zstd (.zst). Decompress what belongs to the log."
        )
    if only is not None and {format_of(one) for one in found}.isdisjoint({only}):
        raise DataError(
            f"Only {only} files are read part by part; got `{folder}` with others, first "
            f"`{found[0]}`. Convert them to {only}, or read them into memory."
        )
    return found


def _is_table(one: Path) -> bool:
    # A link to nowhere counts, so that it is refused by its name rather than passed over.
    return _names_table(one.name) and not one.is_dir()


def _names_table(name: str) -> bool:
    return not name.startswith(_OWN) and format_of(name) is not None


def _is_unreadable_table(one: Path) -> bool:
    """Return whether a name is that of a table in a compression that is not read."""
    compressed = one.suffix.lower() in (*_OTHER_COMPRESSIONS, *_COMPRESSED[1:])
    table = compressed and format_of(one.name) is None and format_of(one.stem) is not None
    return table and not one.name.startswith(_OWN)


def _is_visible_folder(one: Path) -> bool:
    return one.is_dir() and not one.name.startswith(_OWN)


def _tables_in(folder: Path, levels: int) -> Iterator[Path]:
    """Yield the tables in a folder and so many levels of folders, itself the first."""
    inside: list[Path] = []
    with suppress(OSError):  # a folder that may not be looked into says nothing
        inside = list(folder.iterdir())
    yield from filter(_is_table, inside)
    if levels > 1:
        for one in filter(_is_visible_folder, inside):
            yield from _tables_in(one, levels - 1)


# A pattern


def _matching(pattern: str) -> list[str]:
    """Return the files that match a pattern; ``**`` stands for folders at any depth."""
    _check_stars(pattern)
    # A pattern may be absolute, which Path.glob refuses.
    every = glob.glob(pattern, recursive=True)  # noqa: PTH207
    meant = sorted(one for one in every if _is_spelled_out(one, pattern))
    folders = [one for one in meant if Path(one).is_dir()]
    tables = [one for one in folders if format_of(one) is not None]
    if tables:
        raise DataError(
            f"A pattern must match files; got `{pattern}`, which matches the folder `{tables[0]}`. "
            "Add `/*` to read the files in such folders, or narrow the pattern."
        )
    found = [one for one in meant if one not in set(folders)]
    if not found:
        raise no_match(pattern)
    read = set(map(Path, found))
    dropped = [one for one in folders if not read.issuperset(_tables_in(Path(one), _DEEP))]
    if dropped:
        _warn(
            f"`{pattern}` matches {counted(len(dropped), 'folder')} with tables that are not read, "
            f"first `{dropped[0]}`. Write `**` for folders at any depth, as in "
            "`logs/**/*.parquet`, to read them, or narrow the pattern to the ending of the files."
        )
    return found


def _check_stars(pattern: str) -> None:
    for part in Path(pattern).parts:
        if "**" in part and part != "**":
            raise DataError(
                "`**` must be a whole part of a path, such as in `logs/**/*.parquet`; got "
                f"`{part}` in `{pattern}`. Write `**/{part.replace('**', '*')}` to read files at "
                "any depth, or a single `*`."
            )


def _is_spelled_out(match: str, pattern: str) -> bool:
    """Return whether every name in a match that programs keep for themselves is in the pattern."""
    wanted = [part for part in Path(pattern).parts if part.startswith(_OWN)]
    own = [part for part in Path(match).parts if part.startswith(_OWN)]
    return all(any(fnmatch(part, want) for want in wanted) for part in own)


# A folder or a pattern in an object store, which knows keys and no folders


def _in_store(store: StorePath, only: str | None) -> list[str]:
    """Return the tables in a folder of a store, or those that match a pattern."""
    if glob.has_magic(store.key):
        _check_stars(store.key)
        pattern = store.key.split("/")
        fixed = next(i for i, part in enumerate(pattern) if glob.has_magic(part))
        keys = store.at("/".join(pattern[:fixed])).files()
        meant = [key for key in keys if _fits(key.split("/"), pattern)]
        found = [key for key in meant if _is_spelled_out(key, store.key)]
        if not found:
            raise no_match(str(store))
        return [str(store.at(key)) for key in found]
    inside = [Path(key).relative_to(store.key or ".") for key in store.files()]
    beside = [one.parts for one in inside if not any(map(_is_own, one.parts[:-1]))]
    tables = [parts for parts in beside if _names_table(parts[-1])]
    direct = [parts[0] for parts in beside if len(parts) == 1]

    def typed(name: str) -> str:
        return str(store.at(f"{store.key}/{name}".strip("/")))

    return _tables_of(
        name_of(str(store)).rstrip("/"),
        [typed(name) for name in direct if _names_table(name)],
        [typed(name) for name in sorted({parts[0] for parts in tables if len(parts) > 1})],
        [typed(name) for name in direct if _is_unreadable_table(Path(name))],
        only,
    )


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the parts of a key are those of a pattern; ``**`` is any number of them."""
    if not (names and pattern):
        return not names and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _fits(names, pattern[1:]) or _fits(names[1:], pattern)
    return fnmatchcase(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


def _is_own(name: str) -> bool:
    return name.startswith(_OWN)


# Files that go together


def _check_one_table(path: str, found: Sequence[str]) -> None:
    """Refuse files of several formats, and one table that is there twice."""
    by_format: dict[str, list[str]] = defaultdict(list)
    for one in found:
        form = format_of(one)
        if form is not None:  # else whoever reads it says what is wrong
            by_format[form].append(one)
    if len(by_format) > 1:
        each = ", ".join(
            f"{len(some):,} {form} (first `{some[0]}`)" for form, some in by_format.items()
        )
        raise DataError(
            f"All files of a table must have one format; got `{path}` with {each}. Name those to "
            "read by a pattern with their ending."
        )
    same_stem = _pairs({one: _without_ending(one) for one in found})  # log.csv and log.csv.gz
    for one, other in [*same_stem, *_same_file(found)]:
        raise _twice(path, one, other)


def _same_file(found: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of names of one file, such as a link and what it points to."""
    places: dict[str, object] = {}
    for one in found:
        with suppress(OSError):  # whoever reads it says what is wrong
            stat = Path(one).stat()
            places[one] = (stat.st_dev, stat.st_ino)
    return _pairs(places)


def _pairs(keys: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return each file whose key a file before it has, behind that file."""
    first: dict[object, str] = {}
    return [(first[key], one) for one, key in keys.items() if first.setdefault(key, one) != one]


def _without_ending(path: str) -> str:
    form = format_of(path)
    for ending in ENDINGS[form] if form else ():
        if name_of(path).lower().endswith(ending):
            return name_of(path)[: -len(ending)]
    return path


def _key(folder: str) -> str:
    """Return the column that the name of a partition folder, such as year=2026, stands for."""
    key, equals, _ = folder.partition("=")
    return key if equals else ""


def _say_partition_keys(found: Sequence[str]) -> None:
    """Warn if the folders of the files stand for columns that differ and are in no file."""
    values: dict[str, set[str]] = defaultdict(set)
    for one in found:
        for folder in Path(name_of(one)).parent.parts:
            if _key(folder):
                values[_key(folder)].add(folder)
    for key, folders in values.items():
        if len(folders) > 1:
            first, *_, last = sorted(folders)
            _warn(
                f"The files lie in {len(folders):,} folders, from `{first}` to `{last}`: "
                f"`{key}` is not read from the names of folders. Write it into the files if it "
                "matters."
            )
