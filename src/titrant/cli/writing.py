"""Where results go: a file, or standard output; and which files cannot be meant."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from titrant import _writing
from titrant.cli.terminal import put

if TYPE_CHECKING:
    from collections.abc import Iterable

    Named = Iterable[tuple[str, str | None]]
    Identity = tuple[object, ...]


STDOUT = "-"


def check_outputs(outputs: Named, inputs: Named = (), *, made: Named = ()) -> None:
    """Refuse files that cannot be written, or that are read too, before any work is done.

    All are pairs (option, path); the folders of ``made`` need not exist yet.
    """
    listed = list(outputs)
    for option, path in listed:
        check_writable(option, path)
    check_apart([*listed, *made], inputs)


def check_writable(option: str, path: str | None) -> None:
    """Refuse a path that cannot be written to."""
    if path is None or path == STDOUT:
        return
    target, folder = Path(path), Path(path).parent
    if not folder.is_dir():
        raise _refusal(option, f"The folder `{folder}` does not exist. Make it first")
    if target.is_dir():
        raise _refusal(option, f"`{target}` is a folder. Give the name of a file")
    if target.exists() and not target.is_file():
        raise _refusal(option, f"`{target}` is a device or a pipe. Give the name of a file, or -")
    if _writing.is_of_the_system(target):
        raise _refusal(
            option,
            f"`{target}` leads through /dev or /proc, where no file is written. Give the name of a "
            "file, or - for standard output",
        )
    if not os.access(folder, os.W_OK):
        raise _refusal(option, f"The folder `{folder}` cannot be written to. Choose another place")


def write_text(path: str, text: str) -> None:
    """Write `text` to a file, or to standard output for ``-``."""
    if path == STDOUT:
        put(text)
    else:
        _writing.write_text(path, text)


def _refusal(option: str, sentence: str) -> click.BadParameter:
    return click.BadParameter(f"{sentence}.", param_hint=f"'{option}'")


# Files that a command would both read and write, or write twice.

# `Path` fails at a text that is too long for the name of a file; `os.path` says that it is none.
# ruff: noqa: PTH110, PTH112, PTH113, PTH207


PIPE = "-"
_STDIN = 0


@dataclass(frozen=True, slots=True)
class Given:
    """A file on the command line, and what it was given as."""

    option: str
    path: str


def check_apart(outputs: Named, inputs: Named) -> None:
    """Refuse an output that is another output or an input; all are pairs (option, path)."""
    taken: dict[Identity, Given] = {}
    inputs = list(inputs)
    read = [Given(option, path) for option, path in inputs if path not in (None, "", PIPE)]
    sources = {identity(file): given for given in read for file in _files(given.path)}
    sources |= {_redirected(): Given(option, PIPE) for option, path in inputs if path == PIPE}
    for option, path in outputs:
        if path is None:
            continue
        here = identity(path)
        if here in taken:
            raise _clash(option, _twice(path, taken[here]))
        if here in sources:
            raise _clash(option, _replaced(path, sources[here]))
        for given in read:
            if _would_be_read(path, given.path):
                raise _clash(option, _mixed(path, given))
        taken[here] = Given(option, path)


def identity(path: str) -> Identity:
    """Return what two paths share if they are one file, by whatever names and links.

    A file that is yet to be made is its folder and its name, whose case many disks ignore.
    """
    if path == PIPE:
        return (PIPE,)
    real = Path(os.path.realpath(path))
    try:
        found = real.stat()
    except OSError:
        return (*_folder(real.parent), real.name.casefold())
    return (found.st_dev, found.st_ino)


def _redirected() -> Identity:
    """Return the file behind standard input, as in ``< log.csv``; a pipe is like no file."""
    try:
        found = os.fstat(_STDIN)
    except OSError:  # it is closed
        return ()
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else ()


def _folder(folder: Path) -> Identity:
    try:
        found = folder.stat()
    except OSError:
        return (str(folder),)
    return (found.st_dev, found.st_ino)


def _files(path: str) -> list[str]:
    """Return the files and folders that reading `path` would open."""
    if os.path.isdir(path):
        return [path, *map(str, Path(path).iterdir())]
    if not os.path.exists(path) and glob.has_magic(path):
        return glob.glob(path, recursive=True)
    return [path]


def _would_be_read(output: str, source: str) -> bool:
    """Return whether a file at `output` would be taken for a part of the log at `source`."""
    if output == PIPE or os.path.isfile(source):
        return False
    target = Path(os.path.realpath(output))
    if os.path.isdir(source):
        folder = _folder(Path(source))
        return _is_table(target.name) and any(_folder(one) == folder for one in target.parents)
    return glob.has_magic(source) and _matches(target, source)


def _matches(target: Path, pattern: str) -> bool:
    """Return whether a file that may not exist yet would be found by a pattern."""
    where, name = os.path.split(pattern)
    where = pattern if name == "**" else where
    folders = glob.glob(where, recursive=True) if where else ["."]
    inside = any(_folder(Path(one)) == _folder(target.parent) for one in folders)
    return inside and fnmatch.fnmatch(target.name, name)


def _is_table(name: str) -> bool:
    from titrant.data.files import FORMATS  # noqa: PLC0415  (loads pyarrow)

    endings = tuple(ending for form in FORMATS for ending in form.endings)
    return name.lower().endswith(endings)


def _twice(path: str, other: Given) -> str:
    if path == PIPE:
        return f"Standard output takes `{other.option}` already. Give the name of a file."
    return f"`{path}` is the file of `{other.option}` too. Give each its own."


def _replaced(path: str, source: Given) -> str:
    if source.path == PIPE:
        return (
            f"`{path}` would replace the file that is read from standard input as "
            f"`{source.option}`. {_OTHER}"
        )
    return f"`{path}` would replace `{source.path}`, which is read as `{source.option}`. {_OTHER}"


def _mixed(path: str, source: Given) -> str:
    return (
        f"`{path}` would be read as a part of `{source.path}` (`{source.option}`) the next time. "
        f"{_OTHER}"
    )


_OTHER = "Give another name or folder."


def _clash(option: str, sentence: str) -> click.BadParameter:
    return click.BadParameter(sentence, param_hint=f"'{option}'")
