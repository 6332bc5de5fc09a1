"""The terminal: where tables, notes and signs of life go."""

from __future__ import annotations

import io
import os
import signal
import sys
import unicodedata
import warnings
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 160
"""Columns for a table that goes into a file or a pipe: wide enough that nothing is cut."""
_STDIN, _STDOUT, _STDERR = range(3)
_HIDDEN = {"Cc", "Cs", "Zl", "Zp"}
"""Controls, which move the cursor or recolor the screen; halves of characters; line separators."""
_TURNING = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that turn the direction of writing, by which a text can look like another."""


def behave() -> Guarded:
    """Make this process a good neighbor in a shell; return its standard output."""
    _fill_gaps()
    output = Guarded(_STDOUT)
    if sys.platform != "win32":  # whose console is no file
        sys.stdout = _text(output, sys.stdout)
        sys.stderr = _text(Guarded(_STDERR), sys.stderr)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` wants it ignored
                signal.signal(number, _terminate)
    warnings.showwarning = _warned  # a library's warning without its lines of code
    return output


class Terminated(BaseException):
    """Another process wants this one to end, which it does like after Ctrl-C: tidily."""

    def __init__(self, number: int) -> None:
        self.number = number


class Guarded(io.FileIO):
    """A standard stream that nobody may be reading any more.

    A table that cannot be printed is no reason to leave without the files that were asked for: the
    first failure is kept, to be told at the end, and what comes after it is dropped.
    """

    def __init__(self, number: int) -> None:
        io.FileIO.__init__(self, number, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, content: Any, /) -> int:  # noqa: ANN401  (whatever has a buffer)
        """Write what is wanted, or say so."""
        if self.failure is None:
            try:
                return io.FileIO.write(self, content) or 0
            except OSError as error:
                self.failure = error
        return len(content)


def show(what: RenderableType) -> None:
    """Print a table or text on standard output."""
    from rich.console import Console  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else _PIPE_WIDTH, highlight=False)
    console.print(visible(what, keep="\n") if isinstance(what, str) else what, markup=False)


def put(text: str) -> None:
    """Write data to standard output as they are; a terminal gets them without controls.

    Not by click, which takes colors out of a text that goes to a file, also out of data.
    """
    sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)


def note(text: str, *, keep: str = "") -> None:
    """Say something beside the result, in one line on standard error."""
    click.echo(visible(text, keep=keep), err=True)


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text whose control characters are written out, but for those to `keep`.

    >>> visible("a\x1b[31mred")
    'a\\x1b[31mred'
    """
    if text.isprintable() and text.isascii():
        return text
    return "".join(c if c in keep or not _acts(c) else _escaped(c) for c in text)


def _acts(character: str) -> bool:
    """Return whether a terminal would act on a character instead of showing it."""
    return character in _TURNING or unicodedata.category(character) in _HIDDEN


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _fill_gaps() -> None:
    """Open what the shell closed: the next file to be opened would become a standard stream."""
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            # Read-only, so that writing fails as it would on a closed stream.
            os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115


def _text(raw: Guarded, before: TextIO | None) -> TextIO:
    """Return a text stream like the one before, which was None if it was closed."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=None if before is None else before.encoding,
        errors="replace",  # a terminal without − or ≥ still gets its table
        line_buffering=raw.isatty() or raw.fileno() == _STDERR,
    )


def _terminate(number: int, _: object) -> NoReturn:
    raise Terminated(number)


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    note(f"Warning: {' '.join(str(message).split())}")
