"""The ranges in a learned policy's file: an entry beside the policy, which stays what it is."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from policies.examples import EXAMPLES
from titrant.data.columns import Recipe
from titrant.policies import TrainingRange, load_training, save_learned

X = np.array([[1.0, -3.0], [2.0, 0.1], [0.5, 7e-9]])
TRAINING = TrainingRange.of(X, ("age", "sex=male"))


@pytest.mark.parametrize("policy", EXAMPLES.values(), ids=EXAMPLES)
def test_a_policy_with_ranges_comes_back_exactly(policy, tmp_path):
    path = tmp_path / "policy.json"
    save_learned(policy, TRAINING, path)
    assert tt.load_policy(path) == policy
    back = load_training(path)
    assert back.names == TRAINING.names
    assert back.rows == 3
    np.testing.assert_array_equal(back.low, [0.5, -3.0])
    np.testing.assert_array_equal(back.high, [2.0, 0.1])


def test_a_policy_without_ranges(tmp_path):
    path = tmp_path / "policy.json"
    tt.Constant(1.0).save(path)
    assert load_training(path) is None


def test_the_entry_has_a_version(tmp_path):
    path = tmp_path / "policy.json"
    save_learned(tt.Constant(1.0), TRAINING, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["training"] == {
        "version": 1,
        "rows": 3,
        "context": {"age": [0.5, 2.0], "sex=male": [-3.0, 0.1]},
    }


def test_the_texts_behind_indicators_come_back(tmp_path):
    path = tmp_path / "policy.json"
    levels = {"sex": ("female", "male"), "ward": ("Ä", "b", "")}
    save_learned(tt.Constant(1.0), replace(TRAINING, recipe=Recipe(levels)), path)
    assert load_training(path).levels == levels
    assert load_training(path).names == TRAINING.names
    save_learned(tt.Constant(1.0), TRAINING, path)
    assert load_training(path).levels == {}


def test_fills_codes_and_dates_come_back_in_the_next_version(tmp_path):
    path = tmp_path / "policy.json"
    dates = {"visit": "%d.%m.%Y"}
    recipe = Recipe({"state": ("Iowa", "Ohio")}, {"age": 41.5}, ("state",), dates)
    save_learned(tt.Constant(1.0), replace(TRAINING, recipe=recipe), path)
    assert load_training(path).recipe == recipe
    assert json.loads(path.read_text(encoding="utf-8"))["training"]["version"] == 2


def test_the_ranges_of_some_contexts_by_name():
    turned = TRAINING.of_features(["sex=male", "age"])
    assert turned.names == ("sex=male", "age")
    asked = np.array([[0.5, 0.1], [0.49, 0.0], [3.0, 0.2], [1.0, -3.0]])
    np.testing.assert_array_equal(turned.beyond(asked[:, ::-1]), TRAINING.beyond(asked)[:, ::-1])
    alone = TRAINING.of_features(["sex=male"])
    np.testing.assert_array_equal(alone.beyond(asked[:, 1:]), TRAINING.beyond(asked)[:, 1:])
    with pytest.raises(
        tt.PolicyFileError, match=r"no range for `bmi`, `sex`\. Save the policy again"
    ):
        TRAINING.of_features(["bmi", "age", "sex"])


def test_beyond_is_strict():
    asked = np.array([[0.5, 0.1], [0.49, 0.0], [3.0, 0.2], [1.0, -3.0]])
    np.testing.assert_array_equal(
        TRAINING.beyond(asked), [[False, False], [True, False], [True, True], [False, False]]
    )


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {"version": 3, "rows": 1, "context": {}},
        {"version": 2, "rows": 1, "context": {}, "fills": {"age": "old"}},
        {"version": 2, "rows": 1, "context": {}, "fills": [3.0]},
        {"version": 2, "rows": 1, "context": {}, "codes": ["state"]},
        {"version": 2, "rows": 1, "context": {}, "dates": {"visit": 1}},
        {"version": 1, "context": {}},
        {"version": 1, "rows": 1, "context": {"a": [1.0]}},
        {"version": 1, "rows": 1, "context": {"a": [1.0, "b"]}},
        {"version": 1, "rows": 1, "context": {}, "levels": ["male"]},
        {"version": 1, "rows": 1, "context": {}, "levels": {"sex": "male"}},
        {"version": 1, "rows": 1, "context": {}, "levels": {"sex": ["male", 1]}},
    ],
)
def test_entries_that_cannot_be_read(entry, tmp_path):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({**tt.Constant(1.0).to_dict(), "training": entry}))
    assert tt.load_policy(path) == tt.Constant(1.0)
    with pytest.raises(tt.PolicyFileError, match="The entry `training` of the policy file"):
        load_training(path)
