"""Real results are what the published schemas say, and nothing else is."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
from pages.schemas import TITLES, schema

import titrant as tt
from evaluation.logs import KINDS, kind_name, propensity_for
from titrant.cli import run
from titrant.data.simulate import DESIGNS, Quadratic
from titrant.inference import INTERVALS
from titrant.outcome import ridge_pair
from titrant.policies.formats.loading import POLICIES
from titrant.policies.moves import MOVES

LOG = Quadratic().draw(400, 0)
RULE = tt.Linear([1.0, -0.5], 0.2)


# What default models add to a result is in the default estimate; elsewhere they may be quick.
plainly = pytest.mark.usefixtures("plain_models")


def holds(name, result):
    """The result, as JSON has it, is what the schema says."""
    plain = json.loads(json.dumps(result, allow_nan=False))
    jsonschema.Draft202012Validator(schema(name)).validate(plain)
    return plain


@pytest.mark.parametrize("name", TITLES)
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_the_default_estimate():
    holds("estimate", tt.evaluate(LOG, RULE).to_dict())


@pytest.mark.parametrize("estimator", KINDS, ids=kind_name)
def test_estimates(estimator):
    asked = {"estimator": estimator, "propensity": propensity_for(estimator)}
    holds("estimate", tt.evaluate(LOG, RULE, allow_untrusted=True, **asked).to_dict())


@pytest.mark.parametrize("interval", INTERVALS, ids=repr)
def test_intervals(interval):
    estimate = tt.evaluate(LOG, RULE, estimator=tt.SelfNormalized(), interval=interval)
    holds("estimate", estimate.to_dict())


@pytest.mark.parametrize("bandwidth", [None, 0.4, [0.4, 0.5], [[0.3, 0.1], [0.1, 0.3]]])
def test_bandwidths_of_one_and_of_two_doses(bandwidth):
    two = not np.isscalar(bandwidth) and bandwidth is not None
    log = Quadratic(dimension=2).draw(400, 0) if two else LOG
    rule = tt.Constant([0.5, 0.9]) if two else RULE
    estimate = tt.evaluate(log, rule, bandwidth=bandwidth, allow_untrusted=True)
    holds("estimate", estimate.to_dict())


@plainly
def test_comparisons_contrasts_and_reports():
    comparison = tt.compare(LOG, {"rule": RULE, "status quo": tt.StatusQuo()})
    holds("comparison", comparison.to_dict())
    holds("contrast", comparison.contrast("rule", "status quo").to_dict())
    holds("contrast", comparison.contrast("rule", "status quo", margin=0.5).to_dict())
    holds("diagnostics", tt.check(LOG, RULE).to_dict())
    holds("diagnostics", tt.check(LOG, tt.Constant(50.0)).to_dict())


def test_descriptions():
    holds("description", tt.describe(LOG).to_dict())
    holds("description", tt.describe(Quadratic(dimension=2).draw(400, 0)).to_dict())


def test_subgroups():
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
    found = tt.subgroups(LOG, RULE, by={"x0": 3}, **settings)
    assert holds("subgroups", found.to_dict())["equality"][0]["parts"] == 3
    few = np.where(np.arange(len(LOG)) < 9, "few", "rest")
    holds("subgroups", tt.subgroups(LOG, RULE, by=few, **settings).to_dict())


@plainly
def test_outcomes_functionals_and_populations():
    quick = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5, "allow_untrusted": True}
    rules = {"rule": RULE, "status quo": tt.StatusQuo()}
    both = {"y": LOG, "z": LOG.with_outcome(LOG.outcome**2)}
    holds("outcomes", tt.outcomes(both, rules, **quick).to_dict())
    for functional in (tt.Quantile(0.5), tt.Exceeds(0.5), tt.TailMean(0.2)):
        holds("comparison", tt.compare(LOG, rules, functional=functional, **quick).to_dict())
    there = tt.evaluate(LOG, RULE, weights_to=LOG.context[:200], **quick)
    assert holds("estimate", there.to_dict())["method"]["population"]["rows"] == 200


@plainly
def test_curves():
    holds("curve", tt.curve(LOG, tt.Constant, [0.2, 0.5, 9.0]).to_dict())


@plainly
def test_doubts():
    quick = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
    holds("sensitivity", tt.sensitivity(LOG, RULE, **quick, benchmarks=["x0"]).to_dict())
    holds("stress", tt.stress(LOG, RULE, tt.Constant(0.5), **quick, draws=1).to_dict())


@plainly
def test_learning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    learner = tt.PolicyLearner(procedure=tt.StackedDR(models=ridge_pair())).fit(LOG)
    holds("honest", learner.estimate_.to_dict())
    learner.save("learned.json")
    holds("policy", json.loads((tmp_path / "learned.json").read_text("utf-8")))


@pytest.mark.parametrize(
    "policy",
    [
        tt.Constant(3.0),
        tt.Constant([1.0, 2.0]),
        RULE,
        tt.Linear([[1.0, 2.0]], [0.0, 1.0], features=["age"]),
        tt.RBF([[0.0, 1.0]], [0.5], scale=2.0),
        tt.Clipped(tt.Rounded(RULE, 0.5), 0.0, None),
        tt.StatusQuo(),
        tt.Shift(-5.0, low=0.0),
        tt.Multiply(0.9),
        tt.Limited(high=40.0),
        tt.Tilt(0.5),
        tt.Randomized(RULE, 2.0),
    ],
    ids=repr,
)
def test_policies(policy):
    plain = holds("policy", policy.to_dict())
    with pytest.raises(jsonschema.ValidationError):
        holds("policy", {**plain, "comment": "edited"})
    with pytest.raises(jsonschema.ValidationError):
        holds("policy", {key: value for key, value in plain.items() if key != "version"})


def test_every_policy_has_a_schema():
    rules = schema("policy")["anyOf"]
    named = {rule["properties"]["class"]["const"] for rule in rules}
    assert named == {cls.__name__ for cls in (*POLICIES, *MOVES)} | {"StatusQuo"}


@plainly
def test_results_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["simulate", "dosing", "-n", "400", "-o", "log.csv"]) == 0
    assert DESIGNS["dosing"].names == ("weight", "age", "carrier")
    log = ["log.csv", "--treatment", "dose", "--outcome", "loss", "--propensity", "propensity"]
    flat, mean = ["--policy", "constant:35"], ["--policy", "logged-mean"]
    calls = {
        "estimate": ["evaluate", *log, *flat],
        "comparison": ["compare", *log, *flat, *mean],
        "diagnostics": ["check", *log, *flat],
        "description": ["describe", *log],
        "learning": ["learn", *log, "--models", "ridge"],
    }
    for name, call in calls.items():
        assert run([*call, "--json", "out.json"]) == 0, name
        holds(name, json.loads((tmp_path / "out.json").read_text("utf-8")))
    holds("policy", json.loads((tmp_path / "policy.json").read_text("utf-8")))
