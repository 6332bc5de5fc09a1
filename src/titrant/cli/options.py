"""The one vocabulary of options, each defined once; a command takes them in groups.

A group is a dataclass whose fields carry the declaration of their option. `takes` gives a command
the options of some groups and calls it with one filled object for each. A run is saved and repeated
as a TOML file with every option under its own name.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from titrant.cli.names import (
    ESTIMATORS,
    KERNELS,
    OUTCOME_MODELS,
    PROPENSITIES,
    SMOOTH,
    BandwidthText,
    EdgesText,
)
from titrant.cli.terminal import bad_value, note
from titrant.cli.writing import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_DECLARATION = "declaration"
MOST_SEEDS = 2**32 - 1
"""The largest seed that all libraries take."""
MOST_ROWS, MOST_RUNS, MOST_WORKERS = 10**9, 10**6, 10**4
"""Beyond these a number is a slip of the finger: nothing of it would end, or fit in memory."""


# Kinds of options. Each function returns the field of a group.


def option(*names: str, **settings: Any) -> Any:  # noqa: ANN401  (what click.option takes)
    """Return the field of an option; a default is shown in its help."""
    settings = {"show_default": "default" in settings, **settings}
    return field(metadata={_DECLARATION: click.option(*names, **settings)})


def argument(name: str, **settings: Any) -> Any:  # noqa: ANN401
    """Return the field of an argument."""
    return field(metadata={_DECLARATION: click.argument(name, **settings)})


def flag(name: str, text: str) -> Any:  # noqa: ANN401
    """Return the field of an option that is given or not."""
    return option(name, is_flag=True, help=text)


def choice(name: str, known: Iterable[str], text: str, **settings: Any) -> Any:  # noqa: ANN401
    """Return the field of an option that takes one of some names."""
    return option(name, type=click.Choice(list(known)), help=text, **settings)


def whole_number(*names: str, least: int = 1, most: int, **settings: Any) -> Any:  # noqa: ANN401
    """Return the field of an option that takes a whole number."""
    return option(*names, type=click.IntRange(least, most), metavar="N", **settings)


def column_names(name: str, text: str, **settings: Any) -> Any:  # noqa: ANN401
    """Return the field of an option that names columns."""
    return option(name, multiple=True, metavar="COLUMN,…", help=text, **settings)


# Options of several groups.


def policies(*, required: bool) -> Any:  # noqa: ANN401
    """Return the field of the policies as typed."""
    return option(
        "--policy",
        multiple=True,
        required=required,
        metavar="[NAME=]POLICY",
        help="A dose for everyone (`35`), a saved policy (file.json), "
        "`linear:intercept=20,age=0.3`, `logged-mean`, `status-quo` (as logged), "
        "`clipped:LO,HI:POLICY` or `rounded:STEP:POLICY`; "
        "or a change of the logged dose: `shift:-5` (`shift:-5:0,` keeps doses ≥ 0), "
        "`multiply:0.9`, `limited:0,40`, `tilt:0.5`, `randomized:2:POLICY`.",
    )


def json_file() -> Any:  # noqa: ANN401
    """Return the field of the file for programs."""
    text = "Write the result for programs; `-` for standard output."
    return option("--json", metavar="FILE", help=text)


def csv_file() -> Any:  # noqa: ANN401
    """Return the field of the file for spreadsheets."""
    text = "Write the table of the result with all digits; `-` for standard output."
    return option("--out-csv", metavar="FILE", help=text)


def separator() -> Any:  # noqa: ANN401
    """Return the field of the sign between the columns of a CSV."""
    text = "Of the columns of a CSV: one character, or `tab`.  [default: as its first line shows]"
    return option("--sep", metavar="SIGN", help=text)


def decimal() -> Any:  # noqa: ANN401
    """Return the field of the decimal mark of a CSV."""
    text = "What stands before the decimals of numbers.  [default: as they show, and it is said]"
    return choice("--decimal", (".", ","), text)


def encoding() -> Any:  # noqa: ANN401
    """Return the field of the encoding of a CSV."""
    return option("--encoding", metavar="NAME", help="Of a CSV, such as latin-1.  [default: utf-8]")


def sheet() -> Any:  # noqa: ANN401
    """Return the field of the sheet of a workbook."""
    return option("--sheet", metavar="NAME", help="Of an Excel workbook.  [default: the first]")


def level() -> Any:  # noqa: ANN401
    """Return the field of the level of intervals."""
    return option(
        "--level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        metavar="P",
        help="Of the confidence intervals.",
    )


def population() -> Any:  # noqa: ANN401
    """Return the field of a second table of contexts."""
    return option(
        "--population",
        metavar="FILE",
        help="A table of contexts to which the rows are weighted: the values are those there.",
    )


def propensity_model() -> Any:  # noqa: ANN401
    """Return the field of the model of the propensities."""
    return choice(
        "--propensity-model",
        [SMOOTH, *PROPENSITIES],
        "The model of f(t | x) to fit.  [default: the --propensity column, or else smooth: an "
        "average of four that follow contexts which act nonlinearly]",
    )


def allow_untrusted() -> Any:  # noqa: ANN401
    """Return the field of the override of the trust rules."""
    return flag("--allow-untrusted", "Show numbers that the trust rules refuse.")


def ignore_doubts() -> Any:  # noqa: ANN401
    """Return the field of the override of doubts about columns."""
    return flag(
        "--ignore-doubts",
        "Tell what is doubtful about columns in notes that lower no verdict, once it is known to "
        "be in order.",
    )


def seed() -> Any:  # noqa: ANN401
    """Return the field of the seed."""
    text = "Of everything that is drawn at random."
    return whole_number("--seed", least=0, most=MOST_SEEDS, default=0, help=text)


def explained(known: dict[str, str]) -> str:
    """Return what each name of a choice means."""
    return "; ".join(f"{name}: {what}" for name, what in known.items()) + "."


# A run as a TOML file: every option under its own name.

_NOT_OF_THE_RUN = ("config", "save_config", "debug")
_MOST = 10**1000
"""Whole numbers end below this: Python refuses to write out one of several thousand digits."""
_ANY_NUMBER = -1
"""What click calls an argument that may be given several times."""
_refused = partial(bad_value, "--config")


def _load_config(ctx: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Make the options in a TOML file the defaults of this command."""
    if path is not None:
        own = {str(parameter.name): parameter for parameter in _settable(ctx)}
        content = _read(path)
        given = {key.replace("-", "_"): value for key, value in content.items()}
        if len(given) < len(content):
            twice = next(key for key in content if "-" in key and key.replace("-", "_") in content)
            raise _refused(f"`{twice}` is given twice in `{path}`, once with `_`. Keep one.")
        for name in given:
            _check_known(name, list(own), path)
        ctx.default_map = {
            name: _value(own[name], value, path) for name, value in given.items() if name in own
        }
    return path


def save_config(path: str | None) -> None:
    """Write the options of this run, also those left at their defaults."""
    if path is not None:
        write_text(path, config_text(Path(path).name))


def config_text(name: str = "run.toml") -> str:
    """Return the options of this run as a file called `name`."""
    ctx = click.get_current_context()
    lines = [
        f"{_key(parameter)} = {toml(ctx.params[parameter.name])}"
        for parameter in _settable(ctx)
        if ctx.params.get(str(parameter.name)) not in (None, ())
    ]
    head = f"# Repeat with: {ctx.command_path} --config {name}"
    return "\n".join([head, *lines]) + "\n"


def settings() -> dict[str, object]:
    """Return the options of this run by name, as they would be saved."""
    ctx = click.get_current_context()
    return {_key(p): ctx.params[str(p.name)] for p in _settable(ctx)}


def _settable(ctx: click.Context) -> list[click.Parameter]:
    return [p for p in ctx.command.params if p.name not in _NOT_OF_THE_RUN]


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise _refused(f"`{path}` cannot be opened: {error.strerror}.") from None
    except RecursionError:
        sentence = f"`{path}` is nested too deeply; an option takes one value or a list."
        raise _refused(sentence) from None
    except ValueError as error:  # bad TOML, bad UTF-8, or a number of thousands of digits
        raise _refused(f"`{path}` is not TOML: {str(error).rstrip('.')}.") from None


def _check_known(name: str, own: Sequence[str], path: str) -> None:
    """Refuse a name that is no option; an option of another command only is left aside."""
    if name in own:
        return
    if name not in vocabulary():
        raise _refused(_unknown(path, name.replace("_", "-"), own))
    note(f"`{name.replace('_', '-')}` in `{path}` is no option of this command and is left aside.")


def _value(parameter: click.Parameter, value: Any, path: str) -> Any:  # noqa: ANN401
    """Return a value of the file in the form that click expects of a default."""
    key = _key(parameter)
    if isinstance(value, dict):
        raise _refused(f"`{key}` in `{path}` is a table; write `{key} = …` with a plain value.")
    if not _can_be_typed(value):
        raise _refused(f"`{key}` in `{path}` holds a NUL or a number of over 1,000 digits.")
    if _holds_flag(value) and not (isinstance(parameter, click.Option) and parameter.is_flag):
        raise _refused(f"`{key}` in `{path}` is true or false; this option takes another value.")
    several = parameter.multiple or parameter.nargs == _ANY_NUMBER
    if isinstance(value, list) and not several:
        raise _refused(f"`{key}` in `{path}` is a list; this option takes one value.")
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


def _key(parameter: click.Parameter) -> str:
    return str(parameter.name).replace("_", "-")


def toml(value: object) -> str:
    """Return a value in TOML; a JSON text is a TOML text once DEL is escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


# The groups.


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which table is the log, and which of its columns play which role."""

    log: str = argument("log", metavar="LOG")
    treatment: tuple[str, ...] = column_names(
        "--treatment", "The dose, price or bid; several columns for a vector.", required=True
    )
    outcome: str = option(
        "--outcome", required=True, metavar="COLUMN", help="What came of it: a loss."
    )
    context: tuple[str, ...] = column_names(
        "--context",
        "What was known before the treatment.  [default: all other columns but keys]  Texts are "
        "encoded, dates taken apart, gaps filled and marked; each is said.",
    )
    after: tuple[str, ...] = column_names(
        "--after", "What was measured after the treatment, and is not to be used as context."
    )
    treated_on: str | None = option(
        "--treated-on",
        metavar="COLUMN",
        help="The date of the treatment: dates that are mostly after it are not used as context.",
    )
    propensity: str | None = option(
        "--propensity",
        metavar="COLUMN",
        help="The density f(t | x) of the logged dose, where the log has it.",
    )
    groups: str | None = option(
        "--groups",
        metavar="COLUMN",
        help="Who a row belongs to, where patients, stores or devices have several: errors then "
        "count them, not rows.",
    )
    weights: str | None = option(
        "--weights",
        metavar="COLUMN",
        help="Sampling weights: how many of the population a row stands for.",
    )
    missing_treatment: str = choice(
        "--missing-treatment",
        ("refuse", "drop"),
        "Rows without a dose: stop, or leave them out.",
        default="refuse",
    )
    missing_outcome: str = choice(
        "--missing-outcome",
        ("refuse", "drop", "weight"),
        "Rows without an outcome: stop; leave them out; or weight the others so that they stand "
        "for them.",
        default="refuse",
    )
    bounds: tuple[str, ...] = option(
        "--bounds",
        multiple=True,
        metavar="LO,HI",
        help="Between which doses are possible; either may be empty. Once for all treatments, or "
        "once for each.",
    )
    atoms: str | None = option(
        "--atoms",
        metavar="DOSE,…",
        help="Doses that many rows have exactly, such as 0 or list prices; `none` if there are "
        "none.  [default: those that are found]",
    )
    sep: str | None = separator()
    decimal: str | None = decimal()
    encoding: str | None = encoding()
    sheet: str | None = sheet()


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The policies to evaluate."""

    policy: tuple[str, ...] = policies(required=True)


@dataclass(frozen=True, slots=True)
class EstimatorOptions:
    """How a value is estimated from the log."""

    estimator: str = choice(
        "--estimator",
        ESTIMATORS,
        explained({name: known.help for name, known in ESTIMATORS.items()}),
        default="dr",
    )
    propensity_model: str | None = propensity_model()
    outcome_model: str | None = choice("--outcome-model", OUTCOME_MODELS, explained(OUTCOME_MODELS))
    kernel: str | None = choice(
        "--kernel",
        KERNELS,
        "How rows count by the distance of their dose.  [default: epanechnikov]",
    )
    bandwidth: str | None = option(
        "--bandwidth",
        type=BandwidthText(),
        help="In units of the dose: a number, one for each dose (2,0.5), or a selector such as "
        "rule-of-thumb.  [default: auto]",
    )
    clip: float | None = option(
        "--clip",
        type=float,
        metavar="Q",
        help="Floor under the propensity.  [default: 0.01/sd(dose)]",
    )
    edges: str | None = option(
        "--edges",
        type=EdgesText(),
        help="Where the bins of `--estimator discretized` meet.  [default: ten bins over the "
        "logged doses, or midway between them where they are few]",
    )
    seed: int = seed()


@dataclass(frozen=True, slots=True)
class MethodOptions(EstimatorOptions):
    """How a value is estimated from the log, and which objections to it are passed over."""

    allow_untrusted: bool = allow_untrusted()
    ignore_doubts: bool = ignore_doubts()


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """What is asked of the outcomes, and where."""

    population: str | None = population()
    functional: str | None = option(
        "--functional",
        metavar="WHAT",
        help="Of the outcomes under a policy: `quantile:0.9`, `exceeds:30` (how often), `tail:0.1` "
        "(the mean of the largest tenth) or `lower-tail:0.1`.  [default: their mean]",
    )
    margin: float | None = option(
        "--margin",
        type=click.FloatRange(0),
        metavar="M",
        help="Say of each pair whether the first is shown to be not worse by more than M.",
    )


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How the result is read and where it goes."""

    maximize: bool = flag("--maximize", "The outcome is a reward: higher is better.")
    level: float = level()
    html: str | None = option("--html", metavar="FILE", help="Write a report page.")
    json: str | None = json_file()
    out_csv: str | None = csv_file()
    protocol: str | None = option(
        "--protocol",
        metavar="FILE",
        help="Refuse a run other than the one that `titrant protocol` announced in FILE; page and "
        "JSON then hold a checklist.",
    )


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What a report page is called, and what it calls things."""

    title: str | None = option("--title", metavar="TEXT", help="With --html: the page's title.")
    label: tuple[str, ...] = option(
        "--label",
        multiple=True,
        metavar="COLUMN=NAME",
        help="With --html: what a column is called on the page.",
    )
    unit: tuple[str, ...] = option(
        "--unit",
        multiple=True,
        metavar="[COLUMN=]UNIT",
        help="With --html: the unit of a column, of the outcome unless a column is named.",
    )


@dataclass(frozen=True, slots=True)
class DoubtOptions:
    """What a report page says about the possibility of being wrong."""

    sensitivity: bool = flag(
        "--sensitivity",
        "With --html: how strong a cause that nobody recorded would have to be; takes as long "
        "again for each context.",
    )
    stress: bool = flag(
        "--stress",
        "With --html: placebos, simulated outcomes and other models; takes twenty times as long.",
    )


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Who works on a log that is larger than memory."""

    in_parts: bool = flag(
        "--in-parts",
        "Read Parquet files part by part, in flat memory, by the threads of this process.",
    )
    workers: int | None = whole_number(
        "--workers", most=MOST_WORKERS, help="The same by N processes on this machine (Dask)."
    )
    dask: str | None = option(
        "--dask",
        metavar="ADDRESS",
        help="The same by a running Dask cluster, such as tcp://10.0.0.5:8786.",
    )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is repeated, and looked into when it fails."""

    save_config: str | None = option(
        "--save-config", metavar="FILE", help="Write all options of this run as TOML."
    )
    config: str | None = option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_load_config,
        help="Take options from a TOML file; those typed here come first.",
    )
    debug: bool = flag("--debug", "Show the traceback of an error.")


def typed(group: LogOptions) -> list[str]:
    """Return a log as it is typed: its name, and the options that are not at their defaults."""
    ctx = click.get_current_context()
    known = {p.name: p for p in ctx.command.params}
    told = [group.log]
    for name in (f.name for f in fields(group) if f.name != "log"):
        value, parameter = getattr(group, name), known[name]
        if value != parameter.get_default(ctx) and value not in (None, ()):
            for one in value if isinstance(value, tuple) else [value]:
                told += [parameter.opts[0], str(one)]
    return told


def vocabulary() -> set[str]:
    """Return the names of all options of all commands."""
    from titrant.cli.app import COMMANDS, titrant  # noqa: PLC0415  (which imports this module)

    ctx = click.Context(titrant)
    every = (p for name in COMMANDS for p in titrant.get_command(ctx, name).params)
    return {str(p.name) for p in every if p.name not in _NOT_OF_THE_RUN}


def takes(*groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command the options of these groups."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:  # noqa: ANN401  (click passes options by name)
            filled = [
                group(**{f.name: given.pop(f.name) for f in fields(group)}) for group in groups
            ]
            command(*filled, **given)

        for group in reversed(groups):
            for declared in reversed(fields(group)):
                call = declared.metadata[_DECLARATION](call)
        return call

    return decorate
