"""The group of commands; a command's module is imported when it is called."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import cast

import click

from titrant import __version__

COMMANDS = {
    "demo": "Evaluate three policies, learn one, beside the known truth; leaves report.html.",
    "check": "Say whether a log, and a policy on it, can be trusted.",
    "evaluate": "Estimate how good one policy would have been.",
    "compare": "Estimate several policies on the same rows, and their differences.",
    "learn": "Learn a policy, with an honest value against the status quo.",
    "recommend": "Apply a saved policy to new contexts.",
    "simulate": "Write a log of a built-in design, with its truth beside it.",
    "reproduce": "Run the paper's experiments again: tables with verdicts, numbers and figures.",
}
"""Each command with its line in the list; its module has the same name."""


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
        return cast("click.Command", import_module(f"titrant.cli.{cmd_name}").command)

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
