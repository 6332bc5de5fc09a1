"""The group of commands, and what is said when one fails."""

from __future__ import annotations

import difflib
import re
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from titrant import __version__
from titrant._writing import WRITTEN
from titrant.cli.terminal import Terminated, note
from titrant.errors import TitrantError, UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from titrant.cli.terminal import Guarded

# The group of commands; a command's module is imported when it is called.


COMMANDS = {
    "demo": "Evaluate three policies, learn one, beside the known truth; leaves report.html.",
    "describe": "Show what is in a log: doses, outcomes, contexts, doubtful columns.",
    "check": "Say whether a log, and a policy on it, can be trusted.",
    "evaluate": "Estimate how good one policy would have been.",
    "compare": "Estimate several policies on the same rows, and their differences.",
    "curve": "Estimate the value of every dose, of a shift, or of a rule applied in part.",
    "sensitivity": "Say how strong a cause that nobody recorded would have to be.",
    "stress": "Put an estimate to the test: placebos, simulated outcomes, other models.",
    "subgroups": "Estimate what a policy changes for whom, in parts of a log.",
    "outcomes": "Estimate policies by several outcomes at once: benefit and harm.",
    "learn": "Learn a policy, with an honest value against the status quo.",
    "protocol": "Write down what a command will do, before any outcome is read.",
    "recommend": "Apply a saved policy to new contexts.",
    "export": "Write a saved policy as SQL, Python or a spreadsheet formula.",
    "simulate": "Write a log of a built-in design, with its truth beside it.",
    "reproduce": "Run the paper's experiments again: tables with verdicts, numbers and figures.",
    "warm-up": "Compile ahead what the first use of long logs and of learning would.",
}
"""Each command with its line in the list."""
_HOME = {
    "compare": "evaluate",
    "check": "evaluate",
    "describe": "evaluate",
    "sensitivity": "doubt",
    "stress": "doubt",
    "demo": "simulate",
    "reproduce": "simulate",
    "export": "recommend",
    "curve": "asking",
    "subgroups": "asking",
    "outcomes": "asking",
}
"""The module of a command, where it has not the same name."""


class LazyGroup(click.Group):
    """A group that knows the names of its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's interface)
        """Return the names in the order of a user's way."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return the command called `cmd_name`."""
        if cmd_name not in COMMANDS:
            close = difflib.get_close_matches(cmd_name, COMMANDS, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            ctx.fail(f"No such command {cmd_name!r}.{hint}")
        name = cmd_name.replace("-", "_")
        module = import_module(f"titrant.cli.commands.{_HOME.get(name, name)}")
        return cast("click.Command", getattr(module, name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_COMPLETION = """\b
Completion by the Tab key, in ~/.bashrc (or zsh_source in ~/.zshrc):
  eval "$(_TITRANT_COMPLETE=bash_source titrant)"
"""


@click.group(
    cls=LazyGroup,
    epilog=_COMPLETION,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="titrant")
@click.pass_context
def titrant(ctx: click.Context) -> None:
    """Evaluate dosing, pricing and other continuous-treatment policies from logged data.

    Begin with `titrant demo`. `titrant COMMAND --help` lists the options of a command.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


# What went wrong, as one sentence with a remedy and an exit code.

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
    code, sentence = next(
        (code, say(error)) for kind, code, say in _KINDS if isinstance(error, kind)
    )
    note(as_typed(_LONG_WORD.sub(_shortened, sentence)))
    return code


def settled(output: Guarded, code: int) -> int:
    """Return the exit code of a run whose standard output may have been closed or full."""
    sys.stdout.flush()
    if output.failure is None:
        return code
    files = "" if code or not WRITTEN.files else " The files that were asked for are written."
    note(
        f"Error: Standard output could not be written to: {output.failure.strerror}. Check where "
        f"it goes.{files}"
    )
    return code or BAD_INPUT


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


# Remedies of the library, as they are typed here.

_TYPED = {
    "Pass `allow_untrusted=True`": "Pass `--allow-untrusted`",
    "Wrap it as `Clipped(policy, lower, upper)`": "Write it as `clipped:LO,HI:POLICY`",
    "for example by `Clipped`": "for example as `clipped:LO,HI:POLICY`",
    "Name fewer contexts": "Name fewer columns by `--context`",
    "or give `propensity` and an outcome model of your own": (
        "or evaluate with `--estimator sn` and `--propensity-model linear-gaussian`"
    ),
    "by `titrant.check`": "by `titrant check`",
    "into memory (`LoggedData.from_frame`)": "as a whole (without `--in-parts`)",
    '`missing_treatment="drop"`': "`--missing-treatment drop`",
    '`missing_outcome="weight"`': "`--missing-outcome weight`",
    '`missing_outcome="drop"`': "`--missing-outcome drop`",
    "Choose others with `context=[…]`": "Choose others with `--context`",
    '`missing_outcome="refuse"`': "`--missing-outcome refuse`",
    "Give `propensity=Known(function)` with the density as a function of contexts and dose, or a "
    "model to fit such as `LinearGaussian()`": (
        "Leave `--propensity` out, so that it is learned, or give `--propensity-model`; in Python, "
        "`Known(function)`"
    ),
    "call it through `evaluate` with `propensity=` a model such as LinearGaussian()": (
        "give `--propensity-model linear-gaussian`"
    ),
}


def as_typed(sentence: str) -> str:
    """Return a sentence of the library with its remedies in the words of the command line."""
    for said, typed in _TYPED.items():
        sentence = sentence.replace(said, typed)
    return sentence
