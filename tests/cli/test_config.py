"""A run as TOML: saved, read back, repeated to the last digit."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import click
import pytest

from titrant.cli.app import COMMANDS, titrant
from titrant.cli.options import (
    _NOT_OF_THE_RUN,
    LogOptions,
    config_text,
    toml,
    typed,
    vocabulary,
)


@pytest.fixture
def saved(call, csv_log, plain) -> Path:
    """Return the saved options of a comparison whose result is in first.json."""
    said = call(
        *("compare", csv_log, *plain, "--policy", "flat=constant:35", "--policy"),
        *("rule=linear:age=0.1,intercept=30", "--bandwidth", "rule-of-thumb", "--clip", "1e-3"),
        *("--maximize", "--level", "0.8", "--json", "first.json", "--save-config", "run.toml"),
    )
    assert said.code == 0, said.err
    return Path("run.toml")


def test_a_saved_run_repeats_to_the_last_digit(call, saved):
    again = call("compare", "--config", saved, "--json", "second.json")
    assert again.code == 0, again.err
    assert Path("first.json").read_bytes() == Path("second.json").read_bytes()
    assert "80% CI" in again.out


def test_every_option_of_the_run_is_in_the_file(saved, csv_log):
    assert tomllib.loads(saved.read_text(encoding="utf-8")) == {
        "log": str(csv_log),
        "treatment": ["dose"],
        "outcome": "loss",
        "context": ["weight,age,carrier"],
        "propensity": "propensity",
        "missing-treatment": "refuse",
        "missing-outcome": "refuse",
        "bounds": ["5,75"],
        "policy": ["flat=constant:35", "rule=linear:age=0.1,intercept=30"],
        "estimator": "sn",
        "bandwidth": "rule-of-thumb",
        "clip": 0.001,
        "seed": 0,
        "allow-untrusted": False,
        "ignore-doubts": False,
        "maximize": True,
        "level": 0.8,
        "json": "first.json",
        "sensitivity": False,
        "stress": False,
        "in-parts": False,
    }


def test_saving_again_gives_the_same_file(call, saved):
    assert call("compare", "--config", saved, "--save-config", "again.toml").code == 0
    assert Path("again.toml").read_text().splitlines()[1:] == saved.read_text().splitlines()[1:]


def test_what_is_typed_comes_before_what_is_saved(call, saved):
    said = call("compare", "--config", saved, "--level", "0.5", "--json", "-")
    now, before = json.loads(said.out), json.loads(Path("first.json").read_text(encoding="utf-8"))
    for name, estimate in now["estimates"].items():
        assert estimate["value"] == before["estimates"][name]["value"]
        assert (estimate["interval"]["level"], before["estimates"][name]["interval"]["level"]) == (
            0.5,
            0.8,
        )
    assert "50% CI" in call("compare", "--config", saved, "--level", "0.5").out


def test_a_file_written_by_hand_may_use_plain_values(call, csv_log):
    Path("run.toml").write_text(
        f"""
        log = "{csv_log}"
        treatment = "dose"
        outcome = "loss"
        context = ["weight", "age"]
        propensity = "propensity"
        policy = "constant:35"
        estimator = "sn"
        bandwidth = 6
        """
    )
    said = call("evaluate", "--config", "run.toml", "--json", "-")
    assert json.loads(said.out)["bandwidth"]["h"] == 6.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tretment = 'dose'", "which is no option of this command; did you mean `treatment`?"),
        ("outcome = ['a', 'b']", "`outcome` in `run.toml` is a list; this option takes one value."),
        ("[outcome]\na = 1", "`outcome` in `run.toml` is a table"),
        ("outcome = ", "`run.toml` is not TOML: Invalid value"),
        ("kernel = 'cosine'", "'cosine' is not one of"),
        ("seed = 1.5", "'--seed'"),
        ("clip = true", "`clip` in `run.toml` is true or false; this option takes another value."),
        ("policy = [false]", "`policy` in `run.toml` is true or false"),
        ("level = 0.9\nlevel = 0.8", "is not TOML"),
        ("propensity-model = 'normal'\npropensity_model = 'kde'",
         "`propensity-model` is given twice in `run.toml`, once with `_`."),
        ("config = 'other.toml'", "`run.toml` sets `config`, which is no option"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(call, csv_log, text, sentence):
    Path("run.toml").write_text(text)
    columns = () if "outcome" in text else ("--treatment", "dose", "--outcome", "loss")
    said = call("evaluate", csv_log, *columns, "--config", "run.toml", "--policy", "constant:35")
    assert said.code == 2
    assert sentence in said.err


def test_a_missing_file_is_refused(call):
    said = call("evaluate", "--config", "nowhere.toml")
    assert said.code == 2
    assert "`nowhere.toml` cannot be opened: No such file or directory." in said.err


@pytest.mark.parametrize(
    "value",
    ["plain", 'quo"te', "back\\slash", "line\nend\ttab", "Größe −\x7f\x01", True, -3, 1e-300],
)
def test_values_survivetoml(value):
    assert tomllib.loads(f"key = {toml(value)}")["key"] == value
    assert tomllib.loads(f"key = {toml((value, value))}")["key"] == [value, value]


def test_arguments_that_may_be_several_are_saved_and_read(call, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "titrant.cli.commands.simulate._chosen", lambda options: asked.append(options) or []
    )
    named = ("reproduce", "figure-1", "figure-4", "--quick", "--save-config", "run.toml")
    assert call(*named).code == 0
    said = call("reproduce", "--config", "run.toml", "--workers", 1)
    assert said.code == 0, said.err
    assert asked[1] == replace(asked[0], workers=1)
    assert asked[1].names == ("figure-1", "figure-4")


# ── every option of every command ────────────────────────────────────────────────────────────────


def settable(name: str) -> list[click.Parameter]:
    command = titrant.get_command(click.Context(titrant), name)
    return [p for p in command.params if p.name not in _NOT_OF_THE_RUN]


def some_value(parameter: click.Parameter) -> object:
    """Return a value that an option takes, and that is not its default."""
    kind = parameter.type
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return True
    if isinstance(kind, click.Choice):
        return next(c for c in reversed(kind.choices) if c != parameter.default)
    if isinstance(kind, click.IntRange):
        return int(kind.min or 0) + 1
    if isinstance(kind, (click.FloatRange, click.types.FloatParamType)):
        return 0.25
    text = "x" if isinstance(kind, click.types.StringParamType) else "1,2"
    return ["x", "y"] if parameter.multiple or parameter.nargs == -1 else text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_goes_through_a_file(tmp_path, name):
    command = titrant.get_command(click.Context(titrant), name)
    given = {p.name.replace("_", "-"): some_value(p) for p in settable(name)}
    path = tmp_path / "run.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in given.items()))
    with command.make_context(name, ["--config", str(path)]) as ctx:
        for parameter in settable(name):
            value = ctx.params[parameter.name]
            meant = given[parameter.name.replace("_", "-")]
            assert (list(value) if isinstance(value, tuple) else value) == meant, parameter.name
        assert tomllib.loads(config_text()) == given


def test_one_file_may_serve_all_commands(call, csv_log, plain):
    Path("run.toml").write_text('policy-class = "linear"\nat = "20,30"\n', encoding="utf-8")
    said = call("evaluate", csv_log, *plain, "--policy", "35", "--config", "run.toml")
    assert said.code == 0
    assert "`policy-class` in `run.toml` is no option of this command" in said.err
    assert {p.name for name in COMMANDS for p in settable(name)} == vocabulary()


def test_a_log_is_typed_again_as_it_was():
    arguments = ["my log.csv", "--treatment", "dose", "--outcome", "loss", "--bounds", "0,"]
    command = titrant.get_command(click.Context(titrant), "learn")
    with command.make_context("learn", [*arguments]) as ctx:
        own = {f.name: ctx.params[f.name] for f in fields(LogOptions)}
        assert typed(LogOptions(**own)) == arguments
