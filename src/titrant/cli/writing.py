"""Files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

STDOUT = "-"


def check_writable(option: str, path: str | None) -> None:
    """Refuse a path that cannot be written to before any work is done for it."""
    if path is None or path == STDOUT:
        return
    target, folder = Path(path), Path(path).parent
    if not folder.is_dir():
        raise _refusal(option, f"The folder `{folder}` does not exist. Make it first")
    if target.is_dir():
        raise _refusal(option, f"`{target}` is a folder. Give the name of a file")
    if not os.access(folder, os.W_OK):
        raise _refusal(option, f"The folder `{folder}` cannot be written to. Choose another place")


@contextlib.contextmanager
def draft(path: str) -> Iterator[Path]:
    """Give a temporary file beside `path` that takes its place when all went well.

    Its name ends like that of the target, because a writer may choose the format by the ending.
    """
    target = Path(path)
    temporary = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str, text: str) -> None:
    """Write `text` to a file, or to standard output for ``-``."""
    if path == STDOUT:
        click.echo(text, nl=False)
        return
    with draft(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _refusal(option: str, sentence: str) -> click.BadParameter:
    return click.BadParameter(f"{sentence}.", param_hint=f"'{option}'")
