"""The one place that writes files: as a whole or not at all.

A file is written as a draft in the folder of its target, brought to the disk, and then renamed, so
that a reader sees the old file or the new one, whoever else writes it and whenever the power goes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    AnyPath = str | os.PathLike[str]

DRAFT_PREFIX, DRAFT_SUFFIX = ".titrant-draft-", ".part"
"""How the name of a draft begins and ends: hidden, and no pattern for tables matches it."""


@dataclass(slots=True)
class FilesWritten:
    """What this process has done, for those who report on it at its end."""

    files: int = 0
    """Written so far."""


WRITTEN = FilesWritten()
_BINARY = getattr(os, "O_BINARY", 0)  # Windows only
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # not on Windows
_SYSTEM, _SHARED_MEMORY = ("/dev/", "/proc/"), "/dev/shm/"  # noqa: S108  (plain files lie there)
_MOST_LINKS = 40
"""Links behind each other that an operating system follows at most."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY


@contextlib.contextmanager
def draft(path: AnyPath) -> Iterator[IO[bytes]]:
    """Lend a stream whose content takes the place of `path` when all went well.

    A file that was there keeps its permissions; a new one has those that the umask gives. Where
    `path` is a link, the link is replaced and what it points to stays as it is.
    """
    target = Path(path)
    before = _permissions(target)
    temporary = _name(target)
    try:
        with os.fdopen(_opened(temporary, target, private=before is not None), "w+b") as stream:
            yield stream
            if before is not None:
                temporary.chmod(before)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
        WRITTEN.files += 1
    except BaseException:  # a signal too, at whatever moment it comes
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _keep_name(target.parent)


def write_text(path: AnyPath, text: str) -> None:
    """Write `text` to a file in UTF-8."""
    with draft(path) as stream:
        stream.write(text.encode())


def append_text(path: AnyPath, text: str) -> None:
    """Add `text` to the end of a file that is written line by line, and never through a link.

    Its last line may be cut off by a crash, which its reader must expect.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _NO_LINK | _BINARY
    with os.fdopen(os.open(path, flags, 0o666), "ab") as stream:
        stream.write(text.encode())


def is_of_the_system(path: AnyPath) -> bool:
    """Return whether a path leads through the folders of devices and processes.

    A name such as /dev/stdout is a link that everyone uses, and it may lead to a regular file:
    renaming a draft to it would take it away from the whole machine.
    """
    here = os.path.abspath(path)  # noqa: PTH100  (`resolve` would follow the links at once)
    for _ in range(_MOST_LINKS):
        folder = os.path.dirname(here)  # noqa: PTH120
        if _is_in_system(here) or _is_in_system(os.path.realpath(folder)):
            return True
        if not os.path.islink(here):  # noqa: PTH114
            return False
        here = os.path.normpath(
            os.path.join(os.path.realpath(folder), os.readlink(here))  # noqa: PTH115, PTH118
        )
    return True


def _is_in_system(path: str) -> bool:
    return f"{path}/".startswith(_SYSTEM) and not f"{path}/".startswith(_SHARED_MEMORY)


def _permissions(target: Path) -> int | None:
    """Return the permissions of the file that is there; refuse what cannot be replaced."""
    if is_of_the_system(target):
        raise OSError(None, "it leads through /dev or /proc, where no file is written", str(target))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):  # a device or a pipe would be gone for everyone
        raise OSError(None, "it is not a regular file, so it cannot be replaced", str(target))
    return stat.S_IMODE(mode) & 0o777


def _name(target: Path) -> Path:
    """Return a name for a draft that is not taken, not even by a link to nowhere."""
    while True:
        path = target.with_name(f"{DRAFT_PREFIX}{secrets.token_hex(8)}{DRAFT_SUFFIX}")
        if not os.path.lexists(path):
            return path


def _opened(temporary: Path, target: Path, *, private: bool) -> int:
    """Return the descriptor of a new file.

    Not by `tempfile`, whose files are private: a new file is made with the permissions that the
    umask and the folder give it, which no function can ask for without changing them.
    """
    try:
        return os.open(temporary, _NEW, 0o600 if private else 0o666)
    except OSError as error:  # of the file that was asked for, not of the draft
        raise OSError(error.errno, error.strerror, str(target)) from None


def _keep_name(folder: Path) -> None:
    """Bring the new name to the disk, where a folder can be opened at all."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
