"""`titrant export` writes a saved policy in another language."""

import json
import sqlite3

import pytest

from titrant.policies import Clipped, Linear


@pytest.fixture
def policy_file(tmp_path):
    Clipped(Linear([0.5], 2.0, features=["age"]), 5.0, 30.0).save(tmp_path / "policy.json")
    return tmp_path / "policy.json"


def test_each_language(call, policy_file):
    sql = call("export", policy_file, "--sql", "--name", "mg")
    assert sql.code == 0
    ages = "(SELECT 20.0 AS age UNION SELECT 100.0)"
    rows = sqlite3.connect(":memory:").execute(f"SELECT {sql.out} FROM {ages}").fetchall()  # noqa: S608
    assert rows == [(12.0,), (30.0,)]
    assert 'AS "mg"' in sql.out
    made = {}
    exec(call("export", policy_file, "--python").out, made)  # noqa: S102
    assert made["dose"]({"age": 1.0}) == 5.0
    assert call("export", policy_file, "--excel").out.splitlines()[0] == "A2: age"


def test_to_a_file(call, policy_file, tmp_path):
    said = call("export", policy_file, "--sql", "-o", "rule.sql")
    assert said.code == 0
    assert (tmp_path / "rule.sql").read_text().startswith("CASE WHEN")


def test_one_language_and_no_file_destroyed(call, policy_file):
    before = policy_file.read_text()
    for arguments in ((), ("--sql", "--excel"), ("--sql", "-o", policy_file)):
        assert call("export", policy_file, *arguments).code == 2
    assert policy_file.read_text() == before


def test_a_learned_rule_with_texts(call, tmp_path):
    content = Linear([3.0], 1.0, features=["sex=male"]).to_dict()
    content["training"] = {
        "version": 1,
        "rows": 10,
        "context": {"sex=male": [0.0, 1.0]},
        "levels": {"sex": ["female", "male"]},
    }
    (tmp_path / "learned.json").write_text(json.dumps(content))
    made = {}
    exec(call("export", "learned.json", "--python").out, made)  # noqa: S102
    assert [made["dose"]({"sex": sex}) for sex in ("male", "female", None)] == [4.0, 1.0, None]
