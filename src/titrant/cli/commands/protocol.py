"""`titrant protocol`: what will be done, written before any outcome is read; and held to later.

A protocol is made of a command as it would be typed. Every option that bears on a number is an
entry of it; so is a fingerprint of the rows, without their outcomes. `--protocol FILE` makes the
same of the run at hand and refuses it if any entry differs.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import titrant as tt
from titrant.cli import inputs
from titrant.cli.options import (
    LogOptions,
    RunOptions,
    argument,
    option,
    save_config,
    takes,
    toml,
)
from titrant.cli.terminal import bad_value, note
from titrant.cli.writing import PIPE, check_outputs, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from titrant.data.columns import Flow

COMMANDS = ("evaluate", "compare", "learn")
"""The commands that can be announced."""
SECTIONS = {
    "population": ("missing_treatment", "groups", "weights", "population"),
    "treatment": ("treatment", "propensity", "bounds", "atoms"),
    "outcome": ("outcome", "missing_outcome", "maximize"),
    "contexts": ("context", "after", "treated_on"),
    "estimand": (
        *("policy", "against", "functional", "margin", "level", "policy_class", "safe"),
        *("safe_level", "steps", "at_least", "at_most", "current", "largest_change"),
        *("increasing", "decreasing", "mean_dose", "equal_across", "alike_across", "cap"),
    ),
    "estimator": (
        *("estimator", "propensity_model", "outcome_model", "kernel", "bandwidth", "clip"),
        *("edges", "models", "procedure", "seed"),
    ),
    "trust": ("allow_untrusted", "ignore_doubts"),
}
"""Where each option that bears on a number is announced."""
ELSEWHERE = (
    *("log", "sep", "decimal", "encoding", "sheet"),  # the fingerprint is of what they lead to
    *("html", "json", "out_csv", "output", "title", "label", "unit", "sensitivity", "stress"),
    *("in_parts", "workers", "dask", "checkpoint", "protocol", "config", "save_config", "debug"),
)
"""Options that do not: where the log is and how it is written, where results go, who works."""
POLICIES = ("policy", "against")
IN_PARTS = "not taken of a log that is read part by part"


@dataclass(frozen=True, slots=True)
class ProtocolOptions:
    """What is announced, and where it goes."""

    command: tuple[str, ...] = argument(
        "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND…"
    )
    output: str = option(
        "-o", "--output", default="protocol.toml", metavar="FILE", help="The protocol."
    )
    question: str | None = option(
        "--question", metavar="TEXT", help="What is to be decided, in your words."
    )
    eligible: str | None = option(
        "--eligible", metavar="TEXT", help="Who is in the log, and from when on, in your words."
    )


_EXAMPLE = """\b
Example:
  titrant protocol --question "Which dose?" evaluate log.csv --treatment dose --outcome loss \\
    --policy 35
  titrant evaluate log.csv --treatment dose --outcome loss --policy 35 --protocol protocol.toml
"""


@click.command("protocol", epilog=_EXAMPLE, context_settings={"allow_interspersed_args": False})
@takes(ProtocolOptions, RunOptions)
def protocol(options: ProtocolOptions, run: RunOptions) -> None:
    """Write down what COMMAND will do, before any outcome is read.

    COMMAND is `evaluate`, `compare` or `learn` with its options, as it will be typed; options of
    the protocol come before it. The outcome's column is not read, and need not be there yet. The
    hash in the file is that of all its entries: deposit either where others can see the date.
    """
    name, *arguments = options.command
    if name not in COMMANDS:
        raise bad_value("COMMAND", f"`{name}` is none of {', '.join(COMMANDS)}.")
    group = click.get_current_context().parent
    command = group.command.get_command(group, name)  # type: ignore[union-attr]
    with command.make_context(name, arguments, parent=group) as typed:
        announced = announcement(name, typed.params)
    words = {"question": options.question, "eligible": options.eligible}
    announced["words"] = {key: text for key, text in words.items() if text is not None}
    read = [("LOG", typed.params["log"]), *inputs.files(typed.params.get("policy", ()))]
    check_outputs(run, [("--output", options.output)], read)
    save_config(run.save_config)
    write_text(options.output, as_text(announced))
    note(
        f"Wrote {options.output}, hash {hash_of(announced)}. Add `--protocol {options.output}` to "
        f"`titrant {name} …` to be held to it."
    )


def announcement(name: str, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries of a protocol by section; options without a value are left out."""
    found: dict[str, dict[str, Any]] = {
        section: {
            option: _plain(option, value)
            for option in options
            if (value := params.get(option)) not in (None, ())
        }
        for section, options in SECTIONS.items()
    }
    found["estimand"] = {"command": name, **found["estimand"]}
    found["trust"]["version"] = tt.__version__
    log = LogOptions(**{f: params[f] for f in LogOptions.__dataclass_fields__})
    if params["in_parts"] or params["workers"] or params["dask"]:
        found["population"]["fingerprint"] = IN_PARTS
        return found
    if log.log == PIPE:
        raise bad_value(
            "LOG", "A pipe can be read only once. Save the log in a file to announce it."
        )
    capped = str(params.get("cap") or "").rpartition(":")[0]
    table, contexts = _without_outcome(log, [capped] if capped else [])
    found["contexts"]["context"] = contexts
    found["population"] |= {"rows": len(table), "fingerprint": fingerprint(table)}
    return found


def _plain(option: str, value: object) -> object:
    """Return the value of an option as TOML holds it; policies in files by their content, too."""
    if option in POLICIES:
        texts: Any = value
        return [_with_content(text, [path for _, path in inputs.files([text])]) for text in texts]
    if option == "population":
        return _with_content(str(value), [str(value)])
    return list(value) if isinstance(value, tuple) else value


def _with_content(text: str, files: list[str]) -> str:
    digests = [hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16] for path in files]
    return " ".join([text, *(f"(content {digest})" for digest in digests)])


def _without_outcome(log: LogOptions, also: list[str]) -> tuple[pa.Table, list[str]]:
    """Return what is known before any outcome: the other columns with a role, and the contexts.

    Outcomes named ``also`` are not read either.
    """
    from titrant.data.columns import context_roles, dated_roles  # noqa: PLC0415
    from titrant.data.files import read_table  # noqa: PLC0415
    from titrant.data.intake import dated, encode  # noqa: PLC0415

    chosen, after = inputs.columns(log.context), inputs.columns(log.after)
    own = {"propensity": log.propensity, "groups": log.groups, "weights": log.weights}
    given = [(role, name) for role, name in own.items() if name is not None]
    others = [("treatment", name) for name in inputs.columns(log.treatment)] + given
    taken = [name for _, name in others]
    roles = dated_roles((*others, *context_roles([*chosen, *after])), log.treated_on)
    how = replace(inputs.written(log), unread=(log.outcome, *also))
    table = read_table(log.log, roles, others=not chosen, how=how)
    found = chosen or [name for name in table.column_names if name not in taken]
    before = [name for name in found if name not in after]
    late = {one.column for one in dated(table, log.treated_on, before) if one.after}
    kept = [name for name in before if name not in late]
    apart = [name for name in table.column_names if name not in kept]
    contexts = list(encode(table, kept if chosen else None, apart).names)
    used = [n for n in table.column_names if n in taken or _made_of(n, contexts)]
    return table.select(used), contexts


def _made_of(column: str, contexts: list[str]) -> bool:
    from titrant.data.features import source_of  # noqa: PLC0415

    return any(column in (name, source_of(name, [column])[0]) for name in contexts)


def fingerprint(table: pa.Table) -> str:
    """Return a hash of the names and values of all columns, whatever file they came from."""
    import numpy as np  # noqa: PLC0415

    from titrant.data.features import as_text, is_number  # noqa: PLC0415
    from titrant.data.frames import from_arrow  # noqa: PLC0415

    found = hashlib.sha256()
    for name in sorted(table.column_names):
        column = table[name]
        if is_number(column.type):
            numbers = from_arrow(column, name)
            content = np.where(np.isnan(numbers), np.nan, numbers).tobytes()
        else:
            texts = as_text(column).to_pylist()
            content = "\0".join("\1" if text is None else text for text in texts).encode()
        found.update(f"{name}\0{len(column)}\0".encode() + content)
    return found.hexdigest()[:32]


def hash_of(announced: Mapping[str, Any]) -> str:
    """Return the hash of all entries."""
    text = json.dumps(announced, sort_keys=True, ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def as_text(announced: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a protocol as a TOML file with its hash at the top."""
    lines = ["# A study protocol, written by titrant before any outcome was read."]
    lines += ["# The hash is that of all entries: one that is changed is noticed."]
    lines.append(f'hash = "{hash_of(announced)}"')
    for section, entries in announced.items():
        lines += ["", f"[{section}]", *(f"{key} = {toml(value)}" for key, value in entries.items())]
    return "\n".join(lines) + "\n"


# A run that is held to its protocol.


def held_to(path: str | None) -> dict[str, Any] | None:
    """Return the protocol of this run, None if there is none; refuse a run that differs from it."""
    if path is None:
        return None
    ctx = click.get_current_context()
    try:
        announced = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise bad_value("--protocol", f"`{path}` cannot be opened: {error.strerror}.") from None
    except ValueError as error:
        raise bad_value("--protocol", f"`{path}` is not TOML: {error}.") from None
    told = announced.pop("hash", None)
    if told != hash_of(announced):
        raise bad_value(
            "--protocol",
            f"`{path}` was changed after it was written: its hash is not that of its entries. "
            "Announce the study anew by `titrant protocol`.",
        )
    now = announcement(str(ctx.info_name), ctx.params)
    differing = [
        f"`{key}` is {_shown(now[section].get(key))}, announced was "
        f"{_shown(announced.get(section, {}).get(key))}"
        for section in now
        for key in dict.fromkeys([*now[section], *announced.get(section, {})])
        if now[section].get(key) != announced.get(section, {}).get(key)
    ]
    if differing:
        raise bad_value(
            "--protocol",
            f"This run is not the one announced in `{path}`: {'; '.join(differing)}. Run what was "
            "announced, or announce this by `titrant protocol` and say so.",
        )
    return {"hash": told, **announced}


def _shown(value: object) -> str:
    return "left out" if value is None else toml(value)


# What a report of such a study has to tell: the items of the TARGET statement (Cashin and others
# 2025) by number, in our words. 6 is about the trial that one would run, 7 about how the data stand
# for it.

ITEMS = {
    "Abstract, background, rationale": "1, 2, 4",
    "Question": "3",
    "Data source and setting": "5",
    "Eligibility": "6a, 7a",
    "Treatment strategies": "6b, 7b",
    "Assignment": "6c, 7c",
    "Start and end of follow-up": "6d, 7d, 10",
    "Outcome": "6e, 7e",
    "Causal contrast": "6f, 7f",
    "Identifying assumptions": "6g, 7g",
    "Analysis plan": "6h, 7h",
    "Participants": "8",
    "Baseline characteristics": "9",
    "Missing data": "11",
    "Distribution of the outcome": "12",
    "Estimates and their precision": "13",
    "Further analyses": "14",
    "Interpretation and limitations": "15, 16",
    "Ethics, registration, sharing, funding, interests": "17, 18, 19, 20, 21",
}
"""The numbers of the items on each topic."""

YOURS = "for you to tell"
RUN, ANNOUNCED, AUTHORS = "this run", "the protocol", "the authors"
BOTH = f"{RUN}, in part"
"""Who tells a topic."""


def filled(
    held: Mapping[str, Any] | None, flow: Flow | None, tried: Mapping[str, bool] | None = None
) -> dict[str, Any] | None:
    """Return the protocol of a run with its checklist, None of a run without a protocol.

    ``flow`` is what was done to the rows, ``tried`` says which further analyses were made.
    """
    if held is None:
        return None
    return {"hash": held["hash"], "checklist": checklist(held, flow, tried or {})}


def checklist(
    held: Mapping[str, Any], flow: Flow | None, tried: Mapping[str, bool]
) -> list[dict[str, str]]:
    """Return each topic with what this run knows of it; what it does not is for the authors."""
    words, log, how = held["words"], held["population"], held["estimator"]
    aim, outcome = held["estimand"], held["outcome"]
    rows = f"{log['rows']:,} rows, all used" if "rows" in log else None
    made = " and ".join(name for name, was in tried.items() if was)
    rules = _listed(aim["policy"]) if "policy" in aim else "a rule that is learned"
    told = {
        "Question": (words.get("question"), ANNOUNCED),
        "Data source and setting": (f"rows with fingerprint {log['fingerprint']}", BOTH),
        "Eligibility": (words.get("eligible"), ANNOUNCED),
        "Treatment strategies": (f"{_listed(held['treatment']['treatment'])} by {rules}", RUN),
        "Assignment": (
            f"not randomized; adjusted for {_listed(held['contexts'].get('context', []))}",
            BOTH,
        ),
        "Outcome": (
            f"{outcome['outcome']}, {'higher' if outcome['maximize'] else 'lower'} is better",
            BOTH,
        ),
        "Causal contrast": (
            (
                f"{aim.get('functional', 'mean')} outcome had all followed each policy, and their "
                f"differences, at level {aim['level']:g}"
            ),
            RUN,
        ),
        "Identifying assumptions": (
            (
                "no common cause of treatment and outcome besides the contexts, and overlap, which "
                "the checks judge; whether the outcome of a dose is well defined is for you to tell"
            ),
            BOTH,
        ),
        "Analysis plan": (
            ", ".join(f"{key} {value}" for key, value in how.items())
            + f"; titrant {held['trust']['version']}",
            RUN,
        ),
        "Participants": (rows if flow is None else flow.rows.rstrip("."), RUN),
        "Baseline characteristics": ("of rows near each policy, against those of all rows", BOTH),
        "Missing data": (
            (
                f"treatment: {log['missing_treatment']}, outcome: {outcome['missing_outcome']}; "
                "contexts filled and marked"
            ),
            BOTH,
        ),
        "Estimates and their precision": ("values, differences and intervals of this run", RUN),
        "Further analyses": (made or "none of `--sensitivity` and `--stress`", RUN),
    }
    lines = [(topic, *told.get(topic, (None, AUTHORS))) for topic in ITEMS]
    return [
        {
            "items": ITEMS[topic],
            "topic": topic,
            "told": text or YOURS,
            "by": by if text else AUTHORS,
        }
        for topic, text, by in lines
    ]


def _listed(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, list) and names else "nothing"
