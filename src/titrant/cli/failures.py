"""What went wrong, as one sentence with a remedy and an exit code."""

from __future__ import annotations

import traceback

import click

from titrant.cli.terminal import note
from titrant.errors import TitrantError, UntrustedEstimate

REFUSED, BAD_INPUT, BUG, INTERRUPTED = 1, 2, 3, 130

_IN_OPTIONS = {
    "Pass `allow_untrusted=True`": "Pass `--allow-untrusted`",
    "Wrap it as `Clipped(policy, lower, upper)`": "Write it as `clipped:LO,HI:POLICY`",
    "call it through `evaluate` with `propensity=` a model such as LinearGaussian()": (
        "give `--propensity-model linear-gaussian`"
    ),
}
"""Remedies of the library, as they are typed here."""


def explain(error: BaseException, *, debug: bool) -> int:
    """Say on standard error what went wrong and return the exit code."""
    if debug:
        note("".join(traceback.format_exception(error)))
    code, sentence = _diagnosis(error)
    for said, typed in _IN_OPTIONS.items():
        sentence = sentence.replace(said, typed)
    note(sentence)
    return code


def _diagnosis(error: BaseException) -> tuple[int, str]:
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return INTERRUPTED, "Interrupted; no output was written."
    if isinstance(error, UntrustedEstimate):
        return REFUSED, f"Refused: {error}"
    if isinstance(error, TitrantError):
        return BAD_INPUT, f"Error: {error}"
    if isinstance(error, click.UsageError):
        return BAD_INPUT, f"Error: {_sentence(error.format_message())}{_help(error)}"
    if isinstance(error, click.ClickException):
        return BAD_INPUT, f"Error: {_sentence(error.format_message())}"
    if isinstance(error, OSError):
        return BAD_INPUT, f"Error: {_of_file(error)}"
    if isinstance(error, MemoryError):
        return BAD_INPUT, "Error: The memory does not suffice. Name fewer columns with `--context`."
    return BUG, (
        f"Error: titrant failed in a way it should not ({type(error).__name__}: {error}). "
        "Run it again with `--debug` for the details, and report them."
    )


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _help(error: click.UsageError) -> str:
    if error.ctx is None or "--help" in error.format_message():
        return ""
    return f" Try `{error.ctx.command_path} --help`."


def _of_file(error: OSError) -> str:
    what = "A file" if error.filename is None else f"`{error.filename}`"
    reason = error.strerror or type(error).__name__
    return f"{what} cannot be read or written: {reason}. Check the path and its permissions."
