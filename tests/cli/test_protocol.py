"""A study is announced before its outcomes are read, and a run is held to what was announced."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import click
import jsonschema
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pages.schemas import schema

import titrant as tt
from titrant.cli.app import titrant
from titrant.cli.commands.protocol import COMMANDS, ELSEWHERE, SECTIONS, fingerprint

ASKED = ("--policy", "35", "--bandwidth", "8")
WORDS = ("--question", "Which dose?", "--eligible", "adults")


@pytest.fixture
def announced(call, csv_log, plain):
    """Return the protocol of an evaluation as it was written."""
    said = call("protocol", *WORDS, "evaluate", csv_log, *plain, *ASKED)
    assert said.code == 0, said.err
    return tomllib.loads(Path("protocol.toml").read_text(encoding="utf-8"))


def test_a_protocol_tells_the_study(announced):
    assert announced["words"] == {"question": "Which dose?", "eligible": "adults"}
    assert announced["population"]["rows"] == 600
    assert announced["treatment"]["treatment"] == ["dose"]
    assert announced["outcome"]["outcome"] == "loss"
    assert announced["contexts"]["context"] == ["weight", "age", "carrier"]
    assert announced["estimand"] == {"command": "evaluate", "policy": ["35"], "level": 0.95}
    assert announced["estimator"] == {"estimator": "sn", "bandwidth": "8", "seed": 0}
    assert announced["trust"] == {
        "allow_untrusted": False, "ignore_doubts": False, "version": tt.__version__
    }  # fmt: skip
    assert announced["hash"].startswith("sha256:")


@pytest.mark.parametrize("outcome", ["none", "words", "other bytes", "parquet", "parquet without"])
def test_no_outcome_is_read(call, csv_log, plain, announced, outcome):
    # Whatever is in the outcome's column, and whether it is there at all, the protocol is the same.
    table = pa_csv.read_csv(csv_log)
    place = table.column_names.index("loss")
    path = Path("other.parquet" if outcome.startswith("parquet") else "other.csv")
    if outcome in {"none", "parquet without"}:
        table = table.drop_columns("loss")
    else:
        table = table.set_column(place, "loss", pa.array(["unknown"] * len(table)))
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pa_csv.write_csv(table, path)
    if outcome == "other bytes":
        path.write_bytes(path.read_bytes().replace(b"unknown", b"\xff\xfe"))
    said = call("protocol", *WORDS, "-o", "again.toml", "evaluate", path, *plain, *ASKED)
    assert said.code == 0, said.err
    assert tomllib.loads(Path("again.toml").read_text(encoding="utf-8")) == announced


def test_contexts_that_are_not_named_are_found_without_the_outcome(call, csv_log):
    columns = ("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity")
    assert call("protocol", "evaluate", csv_log, *columns, *ASKED).code == 0
    found = tomllib.loads(Path("protocol.toml").read_text(encoding="utf-8"))["contexts"]["context"]
    assert found == ["weight", "age", "carrier", 'Größe, "cm"', "sex=male"]
    run = ("--estimator", "sn", "--protocol", "protocol.toml")
    assert (
        '`estimator` is "sn", announced was "dr"'
        in call("evaluate", csv_log, *columns, *ASKED, *run).err
    )


@pytest.mark.usefixtures("announced")
def test_the_run_that_was_announced_has_a_checklist(call, csv_log, plain):
    files = ("--json", "out.json", "--html", "page.html")
    said = call("evaluate", csv_log, *plain, *ASKED, *files, "--protocol", "protocol.toml")
    assert said.code == 0, said.err
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema("estimate")).validate(result)
    told = result["protocol"]
    by = {one["topic"]: one for one in told["checklist"]}
    assert by["Question"]["told"] == "Which dose?"
    assert by["Participants"]["told"] == "600 rows, all used"
    unknown = [topic for topic, one in by.items() if one["by"] == "the authors"]
    assert unknown == [
        "Abstract, background, rationale",
        "Start and end of follow-up",
        "Distribution of the outcome",
        "Interpretation and limitations",
        "Ethics, registration, sharing, funding, interests",
    ]
    # Each of the 21 items of the statement is on the list; 6 and 7 have a letter for each element.
    items = ", ".join(one["items"] for one in told["checklist"]).split(", ")
    pairs = [f"{number}{letter}" for letter in "abcdefgh" for number in (6, 7)]
    others = [str(number) for number in range(1, 22) if number not in {6, 7}]
    assert sorted(items) == sorted([*others, *pairs])
    page = Path("page.html").read_text(encoding="utf-8")
    assert told["hash"] in page
    assert "The study as it was announced" in page


@pytest.mark.usefixtures("announced")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--bandwidth", "9"), '`bandwidth` is "9", announced was "8"'),
        (("--level", "0.9"), "`level` is 0.9, announced was 0.95"),
        (("--maximize",), "`maximize` is true, announced was false"),
        (("--margin", "0"), "`margin` is 0.0, announced was left out"),
        (("--context", "sex"), "`context` is "),
        (("--allow-untrusted",), "`allow_untrusted` is true, announced was false"),
    ],
)
def test_another_run_is_refused_with_what_differs(call, csv_log, plain, options, words):
    said = call("evaluate", csv_log, *plain, *ASKED, *options, "--protocol", "protocol.toml")
    assert said.code == 2
    assert "This run is not the one announced in `protocol.toml`: " in said.err
    assert words in said.err


@pytest.mark.usefixtures("announced")
def test_other_rows_commands_and_files_are_refused(call, csv_log, rewritten, plain):
    held = (*plain, "--protocol", "protocol.toml")
    said = call("evaluate", rewritten(lambda lines: lines[:-1]), *held, *ASKED)
    assert "`rows` is 599, announced was 600; `fingerprint` is" in said.err
    said = call("compare", csv_log, *held, *ASKED, "--policy", "30")
    assert '`command` is "compare", announced was "evaluate"' in said.err
    path = Path("protocol.toml")
    path.write_text(path.read_text(encoding="utf-8").replace("adults", "all"), encoding="utf-8")
    said = call("evaluate", csv_log, *held, *ASKED)
    assert "`protocol.toml` was changed after it was written" in said.err
    path.write_text("not toml", encoding="utf-8")
    assert "is not TOML" in call("evaluate", csv_log, *held, *ASKED).err
    path.unlink()
    assert "cannot be opened" in call("evaluate", csv_log, *held, *ASKED).err


@pytest.mark.usefixtures("plain_models")
def test_learning_is_held_to_what_was_announced(call, csv_log, plain):
    columns = (*plain[: plain.index("--estimator")], "--models", "ridge")
    asked = ("learn", csv_log, *columns, "--policy-class", "constant")
    assert call("protocol", *WORDS, *asked).code == 0
    held = ("--protocol", "protocol.toml")
    said = call(*asked, *held, "--json", "out.json", "--html", "page.html")
    assert said.code == 0, said.err
    told = json.loads(Path("out.json").read_text(encoding="utf-8"))["protocol"]
    assert {one["topic"]: one["told"] for one in told["checklist"]}["Question"] == "Which dose?"
    assert told["hash"] in Path("page.html").read_text(encoding="utf-8")
    assert Path("policy.json").exists()
    Path("policy.json").unlink()
    other = call(*asked[:-1], "linear", *held)
    assert other.code == 2
    assert '`policy_class` is "linear", announced was "constant"' in other.err
    assert "`safe` is true, announced was false" in call(*asked, "--safe", *held).err
    assert not Path("policy.json").exists()  # nothing is learned from a run that is refused


def test_a_policy_in_a_file_is_announced_by_its_content(call, csv_log, plain):
    tt.Constant(35.0).save("rule.json")
    asked = ("evaluate", csv_log, *plain, "--policy", "rule.json", "--bandwidth", "8")
    assert call("protocol", *asked).code == 0
    assert call(*asked, "--protocol", "protocol.toml").code == 0
    tt.Constant(36.0).save("rule.json")
    assert "`policy` is" in call(*asked, "--protocol", "protocol.toml").err


def test_what_is_not_announced(call, csv_log, plain):
    said = call("protocol", "check", csv_log, *plain)
    assert said.code == 2
    assert "`check` is none of evaluate, compare, learn." in said.err
    assert call("protocol", "evaluate", csv_log, "--treatment", "dose").code == 2
    mistyped = call("protocol", "evaluate", csv_log, *plain, "--nonsense")
    assert "Try `titrant evaluate --help`." in mistyped.err
    assert "A pipe can be read only once." in call("protocol", "evaluate", "-", *plain, *ASKED).err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_announced_or_bears_on_no_number(name):
    command = titrant.get_command(click.Context(titrant), name)
    told = [option for options in SECTIONS.values() for option in options]
    own = {p.name for p in command.params}
    assert own <= {*told, *ELSEWHERE}
    assert set(told).isdisjoint(ELSEWHERE)


def test_fingerprints_tell_rows_apart():
    table = pa.table({"a": [1.0, None], "b": ["x", None]})
    alike = pa.table({"b": pa.array(["x", None]).dictionary_encode(), "a": [1, None]})
    assert fingerprint(table) == fingerprint(alike)
    others = ({"a": [1.0, 2.0]}, {"b": ["x", "y"]}, {"c": [1.0, 1.0]})
    assert (
        len({fingerprint(pa.table({"a": [1.0, None], "b": ["x", None], **o})) for o in others}) == 3
    )
