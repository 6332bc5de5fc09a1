"""A run as a TOML file: every option under its own name."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from titrant.cli.terminal import note
from titrant.cli.writing import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_OF_THE_RUN = ("config", "save_config", "debug")
_MOST = 10**1000
"""Whole numbers end below this: Python refuses to write out one of several thousand digits."""
_ANY_NUMBER = -1
"""What click calls an argument that may be given several times."""


def load(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Make the options in a TOML file the defaults of this command."""
    if path is not None:
        own = {str(parameter.name): parameter for parameter in _settable(ctx)}
        content = _read(path)
        given = {key.replace("-", "_"): value for key, value in content.items()}
        if len(given) < len(content):
            twice = next(key for key in content if "-" in key and key.replace("-", "_") in content)
            raise _refusal(f"`{twice}` is given twice in `{path}`, once with `_`. Keep one.")
        for name in given:
            _check_known(name, list(own), path)
        ctx.default_map = {
            name: _value(own[name], value, path) for name, value in given.items() if name in own
        }
    return path


def save(ctx: click.Context, path: str | None) -> None:
    """Write the options of this run, also those left at their defaults."""
    if path is not None:
        write_text(path, text(ctx, Path(path).name))


def text(ctx: click.Context, name: str = "run.toml") -> str:
    """Return the options of this run as a file called `name`."""
    lines = [
        f"{_key(parameter)} = {_toml(ctx.params[parameter.name])}"
        for parameter in _settable(ctx)
        if ctx.params.get(str(parameter.name)) not in (None, ())
    ]
    head = f"# Repeat with: {ctx.command_path} --config {name}"
    return "\n".join([head, *lines]) + "\n"


def settings(ctx: click.Context) -> dict[str, object]:
    """Return the options of this run by name, as they would be saved."""
    return {_key(p): ctx.params[str(p.name)] for p in _settable(ctx)}


def _settable(ctx: click.Context) -> list[click.Parameter]:
    return [p for p in ctx.command.params if p.name not in _NOT_OF_THE_RUN]


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise _refusal(f"`{path}` cannot be opened: {error.strerror}.") from None
    except RecursionError:
        raise _refusal(
            f"`{path}` is nested too deeply; an option takes one value or a list."
        ) from None
    except ValueError as error:  # bad TOML, bad UTF-8, or a number of thousands of digits
        raise _refusal(f"`{path}` is not TOML: {str(error).rstrip('.')}.") from None


def _check_known(name: str, own: Sequence[str], path: str) -> None:
    """Refuse a name that is no option; an option of another command only is left aside."""
    from titrant.cli.options import vocabulary  # noqa: PLC0415  (it imports this module)

    if name in own:
        return
    if name not in vocabulary():
        raise _refusal(_unknown(path, name.replace("_", "-"), own))
    note(f"`{name.replace('_', '-')}` in `{path}` is no option of this command and is left aside.")


def _value(parameter: click.Parameter, value: Any, path: str) -> Any:  # noqa: ANN401
    """Return a value of the file in the form that click expects of a default."""
    key = _key(parameter)
    if isinstance(value, dict):
        raise _refusal(f"`{key}` in `{path}` is a table; write `{key} = …` with a plain value.")
    if not _can_be_typed(value):
        raise _refusal(f"`{key}` in `{path}` holds a NUL or a number of over 1,000 digits.")
    if _holds_flag(value) and not (isinstance(parameter, click.Option) and parameter.is_flag):
        raise _refusal(f"`{key}` in `{path}` is true or false; this option takes another value.")
    several = parameter.multiple or parameter.nargs == _ANY_NUMBER
    if isinstance(value, list) and not several:
        raise _refusal(f"`{key}` in `{path}` is a list; this option takes one value.")
    entries = [_typed(entry) for entry in value] if isinstance(value, list) else [_typed(value)]
    return entries if several else entries[0]


def _can_be_typed(value: object) -> bool:
    """Return whether a value could stand on a command line: no NUL, no endless number."""
    if isinstance(value, list):
        return all(map(_can_be_typed, value))
    if isinstance(value, int):
        return -_MOST < value < _MOST
    return "\0" not in str(value)


def _holds_flag(value: object) -> bool:
    return any(isinstance(entry, bool) for entry in (value if isinstance(value, list) else [value]))


def _typed(value: object) -> object:
    """Return a value as it would be typed: click would cut the number 1.5 to a whole one."""
    return value if isinstance(value, bool) else str(value)


def _unknown(path: str, key: str, known: Sequence[str]) -> str:
    names = [name.replace("_", "-") for name in known]
    close = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"known are {', '.join(names)}."
    return f"`{path}` sets `{key}`, which is no option of this command; {hint}"


def _refusal(sentence: str) -> click.BadParameter:
    return click.BadParameter(sentence, param_hint="'--config'")


def _key(parameter: click.Parameter) -> str:
    return str(parameter.name).replace("_", "-")


def _toml(value: object) -> str:
    """Return a value in TOML; a JSON text is a TOML text once DEL is escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
