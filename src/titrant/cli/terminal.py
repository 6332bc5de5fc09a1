"""The terminal: where tables, notes and signs of life go."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

_PIPE_WIDTH = 160
"""Columns for a table that goes into a file or a pipe: wide enough that nothing is cut."""


def behave() -> None:
    """Make this process a good neighbor in a shell."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without − or ≥ still gets its table
    if sys.platform != "win32":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `titrant … | head` ends without a word
    warnings.showwarning = _warned  # a library's warning without its lines of code


def show(what: RenderableType) -> None:
    """Print a table or text on standard output."""
    from rich.console import Console  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else _PIPE_WIDTH, highlight=False)
    console.print(what, markup=False)


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    click.echo(text, err=True)


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    note(f"Warning: {message}")
