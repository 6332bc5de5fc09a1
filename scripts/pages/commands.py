"""The reference of the command line and of its configuration files, from the commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from titrant.cli.app import COMMANDS, titrant

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_CODES = (
    (0, "well"),
    (1, "refused: the trust rules say that the number means nothing"),
    (2, "a mistake in the call or in the data, or a result that could not be printed"),
    (3, "a bug of titrant"),
    (130, "interrupted"),
    (143, "terminated"),
)
FILES = """\
Files are written as a whole or not at all, whatever stops the run. A file that a command reads
is never written by the same command, and no file is written twice: such a call is refused before
any work. Where standard output is closed, full, or a pipe that nobody reads, the files that were
asked for are written all the same, and the exit code is 2. Without standard error, notes are
lost and nothing else changes. Control characters in names and messages are shown as `\\x1b`."""
NOT_IN_A_FILE = ("config", "save_config", "debug", "help")


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its name."""
    ctx = click.Context(titrant, info_name="titrant")
    for name in COMMANDS:
        yield name, titrant.get_command(ctx, name)


def page() -> str:
    """Return the reference of the command line."""
    rows = "\n".join(f"| [`titrant {n}`](#titrant-{n}) | {what} |" for n, what in COMMANDS.items())
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES)
    head = [
        "# Command line",
        f"| command | what it does |\n|---|---|\n{rows}",
        "Results go to standard output, everything else to standard error. Exit codes:",
        f"| code | meaning |\n|---|---|\n{codes}",
        FILES,
    ]
    return "\n\n".join([*head, *(_command(name, command) for name, command in commands())]) + "\n"


def _command(name: str, command: click.Command) -> str:
    ctx = click.Context(command, info_name=f"titrant {name}")
    usage = command.get_usage(ctx).removeprefix("Usage: ")
    shown = [p for p in command.params if isinstance(p, click.Option)]
    rows = "\n".join(f"| {_names(p)} | {_cell(_help(p, ctx))} |" for p in shown)
    return "\n\n".join(
        part
        for part in (
            f"## titrant {name} {{ #titrant-{name} }}",
            f"```text\n{usage}\n```",
            _prose(command.help or ""),
            f"| option | meaning |\n|---|---|\n{rows}",
            _example(command.epilog or ""),
        )
        if part
    )


def _names(option: click.Option) -> str:
    """Return how an option is typed; a zero-width break lets a long one wrap."""
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.is_flag:
        return names
    if isinstance(option.type, click.Choice):
        return names + " " + " · ".join(f"`{choice}`" for choice in option.type.choices)
    kind = option.metavar or option.type.name.upper()
    return f"{names} `{kind}`".replace("|", "\\|")


def _help(option: click.Option, ctx: click.Context) -> str:
    """Return the help with its default and whether it is required."""
    text = option.help or ""
    extra = option.get_help_extra(ctx)
    if option.required:
        text += " **Required.**"
    if "default" in extra:
        text += f" Default `{extra['default']}`."
    text = re.sub(r"\s*\[default: (.*?)\]", r" Default: \1.", text, flags=re.DOTALL)
    return f"{text} May be repeated." if option.multiple else text


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(p.split()) for p in text.split("\n\n"))


def _example(epilog: str) -> str:
    body = epilog.replace("\b", "").strip()
    if not body:
        return ""
    lines = [line.strip() for line in body.splitlines()[1:]]
    return "Example:\n\n```text\n" + "\n".join(lines) + "\n```"


def config_page() -> str:
    """Return the reference of configuration files."""
    table: dict[str, tuple[str, list[str]]] = {}
    for name, command in commands():
        for option in command.params:
            settable = any(p.name == "config" for p in command.params)
            if not settable or option.name in NOT_IN_A_FILE:
                continue
            told = _told(option, click.Context(command))
            table.setdefault(str(option.name), (_value(option) + _cell(told), []))[1].append(name)
    rows = "\n".join(
        f"| `{name.replace('_', '-')}` | {what} | {', '.join(users)} |"
        for name, (what, users) in table.items()
    )
    return CONFIG.format(rows=rows)


def _told(parameter: click.Parameter, ctx: click.Context) -> str:
    if isinstance(parameter, click.Option):
        return _help(parameter, ctx)
    return f"The argument `{parameter.make_metavar(ctx)}`."


def _value(option: click.Parameter) -> str:
    if isinstance(option, click.Option) and option.is_flag:
        return "`true` or `false`. "
    return "A list of texts. " if option.multiple else ""


CONFIG = """# Configuration files

A run of the command line can be written to a TOML file and repeated from it:

```text
titrant evaluate log.csv --treatment dose --outcome loss --policy constant:35 --save-config run.toml
titrant evaluate log.csv --config run.toml
```

`--save-config` writes every option of the run, also those left at their defaults, so that a later
version with other defaults repeats the same run. A name in the file is the name of the option
without the dashes. What is typed on the command line comes before what is in the file. A name that
no command knows is an error that suggests the right one; an option of another command is left
aside with a note, so that one file can serve several commands.

```toml
log = "log.csv"
treatment = ["dose"]
outcome = "loss"
policy = ["constant:35"]
estimator = "dr"
level = 0.95
```

The library itself reads no files and no environment variables: what it does depends on its
arguments alone.

| name | meaning | commands |
|---|---|---|
{rows}
"""
