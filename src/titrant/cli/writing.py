"""Where results go: a file, or standard output; and which files cannot be meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from titrant import _writing
from titrant.cli.clashes import check_apart
from titrant.cli.terminal import put

if TYPE_CHECKING:
    from collections.abc import Iterable

    Named = Iterable[tuple[str, str | None]]

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
