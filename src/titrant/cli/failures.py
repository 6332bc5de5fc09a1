"""What went wrong, as one sentence with a remedy and an exit code."""

from __future__ import annotations

import re
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from titrant._writing import TALLY
from titrant.cli.phrases import as_typed
from titrant.cli.terminal import Terminated, note
from titrant.errors import TitrantError, UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant.cli.terminal import Guarded

_STOPPED = "Interrupted; no file was left half written."
_ENDED = "Terminated; no file was left half written."
_NO_MEMORY = "Error: The memory does not suffice. Name fewer columns with `--context`."

_LONG_WORD = re.compile(r"\S{500,}")
"""Longer than paths are: a number of thousands of digits says no more than its first ones."""
_SHOWN = 40

REFUSED, BAD_INPUT, BUG, INTERRUPTED, TERMINATED = 1, 2, 3, 130, 143


def explain(error: BaseException, *, debug: bool) -> int:
    """Say on standard error what went wrong and return the exit code."""
    if debug:
        note("".join(traceback.format_exception(error)), keep="\n")
    code, sentence = _diagnosis(error)
    note(as_typed(_LONG_WORD.sub(_shortened, sentence)))
    return code


def settled(output: Guarded, code: int) -> int:
    """Return the exit code of a run whose standard output may have been closed or full."""
    sys.stdout.flush()
    if output.failure is None:
        return code
    files = "" if code or not TALLY.files else " The files that were asked for are written."
    note(
        f"Error: Standard output could not be written to: {output.failure.strerror}. Check where "
        f"it goes.{files}"
    )
    return code or BAD_INPUT


def _diagnosis(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the sentence of the first kind that the error is of."""
    return next((code, say(error)) for kind, code, say in _KINDS if isinstance(error, kind))


def _usage(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    hint = "" if ctx is None else f" Try `{ctx.command_path} --help`."
    return f"Error: {_sentence(error.format_message())}{hint}"


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _shortened(word: re.Match[str]) -> str:
    return f"{word[0][:_SHOWN]}… ({len(word[0]):,} characters)"


def _of_file(error: OSError) -> str:
    what = "A file" if error.filename is None else f"`{error.filename}`"
    reason = (error.strerror or str(error)).rstrip(".")
    return f"Error: {what} cannot be read or written: {reason}. Check the path and its permissions."


def _bug(error: BaseException) -> str:
    return (
        f"Error: titrant failed in a way it should not ({type(error).__name__}: {error}). "
        "Run it again with `--debug` for the details, and report them."
    )


_KINDS: tuple[tuple[type[BaseException], int, Callable[[Any], str]], ...] = (
    (click.Abort, INTERRUPTED, lambda _: _STOPPED),
    (KeyboardInterrupt, INTERRUPTED, lambda _: _STOPPED),
    (Terminated, TERMINATED, lambda _: _ENDED),
    (UntrustedEstimate, REFUSED, lambda error: f"Refused: {error}"),
    (TitrantError, BAD_INPUT, lambda error: f"Error: {error}"),
    (click.ClickException, BAD_INPUT, _usage),
    (OSError, BAD_INPUT, _of_file),
    (MemoryError, BAD_INPUT, lambda _: _NO_MEMORY),
    (BaseException, BUG, _bug),
)
"""Kinds of errors, the special before the general."""
