"""A learned policy finds its contexts by name, and a template says which ones it uses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import titrant as tt
from learn.examples import FAST
from policies.examples import TABLES
from titrant.data.simulate import DESIGNS
from titrant.learn.classes import LinearClass
from titrant.learn.classes.base import places_of
from titrant.outcome import RidgeModel, SecondOrder

# A search over standardized contexts in another order stops elsewhere by its own tolerance.
SEARCHED = 1e-5

LOG = DESIGNS["dosing"].draw(300, 1)
COLUMNS = dict(zip(LOG.names, LOG.context.T, strict=True))  # weight, age, carrier
QUICK = tt.CPO(restarts=2, ridge=0.003)


def with_contexts(*names) -> tt.LoggedData:
    x = pd.DataFrame(COLUMNS)[list(names)]
    return tt.LoggedData(x, LOG.treatment, LOG.outcome, LOG.propensity)


def in_file(log, folder, **settings):
    pq.write_table(pa.table(log.to_columns()), folder / "log.parquet")
    columns = tt.Columns(
        treatment="treatment", outcome="outcome", context=log.names, propensity="propensity"
    )
    return tt.scan_parquet(str(folder / "log.parquet"), columns, **settings)


@pytest.fixture(scope="module")
def learned():
    return tt.PolicyLearner(procedure=QUICK, honest=False).fit(LOG)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_predict_goes_by_name(learned, table):
    expected = learned.predict(LOG.context)
    turned = dict(reversed(COLUMNS.items()))
    np.testing.assert_array_equal(learned.predict(table(turned)), expected)
    np.testing.assert_array_equal(learned.predict(table({"id": turned["age"], **turned})), expected)
    with pytest.raises(tt.DataError, match="`weight` is not in the table"):
        learned.predict(table({name: turned[name] for name in ("age", "carrier")}))


def test_predict_refuses_missing_contexts(learned):
    x = LOG.context.copy()
    x[2, 1] = np.nan
    with pytest.raises(tt.DataError, match=r"not finite in 1 of 300 rows \(first: row 2\)"):
        learned.predict(x)
    with pytest.raises(tt.DataError, match=r"3 columns \(weight, age, carrier\)"):
        learned.predict(LOG.context[:, :2])


def test_a_loaded_policy_goes_by_name(learned, tmp_path):
    learned.save(tmp_path / "policy.json")
    frame = pd.DataFrame(COLUMNS)[["carrier", "weight", "age"]]
    loaded = tt.load_policy(tmp_path / "policy.json")
    np.testing.assert_array_equal(loaded(frame), learned.predict(LOG.context))


@pytest.mark.parametrize("kind", ["memory", "file"])
@pytest.mark.parametrize("names", [("age", "weight"), ("carrier", "age", "weight")])
def test_a_template_chooses_contexts_by_name(kind, names, tmp_path):
    # The policy is that of a template in the log's own order; adjustment uses all contexts.
    log = LOG if kind == "memory" else in_file(LOG, tmp_path)
    own_order = [name for name in LOG.names if name in names]

    def fit(features):
        return tt.PolicyLearner(
            policy=tt.Linear(features=features), procedure=QUICK, honest=False
        ).fit(log)

    found, expected = fit(names), fit(own_order)
    assert found.policy_.features == names
    given = found.predict(COLUMNS)
    np.testing.assert_allclose(given, expected.predict(COLUMNS), rtol=SEARCHED)
    np.testing.assert_array_equal(
        given, found.predict(np.column_stack([COLUMNS[name] for name in names]))
    )
    assert found.range_.names == LOG.names


@pytest.mark.parametrize("standardized", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_template_on_files_has_the_scales_of_all_rows(intercept, standardized, tmp_path):
    # The sample is a third of the rows, so that scales of it would show.
    log = with_contexts(*LOG.names)
    chosen = LinearClass(features=("age", "weight"), intercept=intercept, standardize=standardized)
    procedure = tt.CPO(restarts=1, ridge=0.003)
    found, expected = (
        tt.PolicyLearner(policy=chosen, procedure=procedure, honest=False)
        .fit(rows)
        .predict(COLUMNS)
        for rows in (in_file(log, tmp_path, sample_rows=100), log)
    )
    np.testing.assert_allclose(found, expected, rtol=SEARCHED)


def test_rbf_template_by_name():
    template = tt.RBF([[50.0, 80.0], [30.0, 60.0]], scale=20.0, features=["age", "weight"])
    turned = tt.RBF([[80.0, 50.0], [60.0, 30.0]], scale=20.0, features=["weight", "age"])
    found, expected = (
        tt.PolicyLearner(policy=p, procedure=QUICK, honest=False).fit(LOG).predict(COLUMNS)
        for p in (template, turned)
    )
    np.testing.assert_allclose(found, expected, rtol=SEARCHED)


def test_a_template_with_a_name_that_the_log_lacks():
    learner = tt.PolicyLearner(policy=tt.Linear(features=["age", "height"]), honest=False)
    with pytest.raises(tt.DataError, match="policy to learn uses the context `height`"):
        learner.fit(LOG)


def honest_values(log):
    """Differences to policies that know their contexts, graded on halves."""
    old = tt.Linear([0.3, -0.1], 15.0, features=["weight", "age"])
    learner = tt.PolicyLearner(
        policy=tt.Constant(0.0),
        procedure=QUICK,
        grade=tt.SelfNormalized(),
        against={"old": old, "clipped": tt.Clipped(old, 20.0, 40.0)},
    )
    found = learner.fit(log).estimate_
    return [found.contrast(name).center for name in ("old", "clipped")]


def test_policies_to_compare_with_go_by_name(tmp_path):
    expected = honest_values(LOG)
    turned = with_contexts("carrier", "age", "weight")
    assert honest_values(turned) == expected
    np.testing.assert_allclose(honest_values(in_file(turned, tmp_path)), expected, rtol=1e-8)


def test_a_policy_to_compare_with_that_the_log_cannot_serve_is_refused_at_once():
    old = tt.Linear([0.3, -0.1], features=["weight", "height"])
    stages = []
    learner = tt.PolicyLearner(against={"old": old}, progress=lambda *stage: stages.append(stage))
    with pytest.raises(tt.DataError, match="The policy `old` uses the context `height`"):
        learner.fit(LOG)
    assert not stages


def test_the_start_of_a_search_goes_by_name(tmp_path):
    # From the same start the same search ends in the same policy.
    def found(log, names, coef):
        start = tt.Linear(coef, 15.0, features=names)
        learner = tt.PolicyLearner(procedure=tt.CPO(restarts=1, start=start), honest=False)
        return learner.fit(log).predict(COLUMNS)

    expected = found(LOG, ["weight", "age"], [0.3, -0.1])
    turned = found(LOG, ["age", "weight"], [-0.1, 0.3])
    np.testing.assert_allclose(turned, expected, rtol=SEARCHED)
    in_parts = found(in_file(LOG, tmp_path), ["age", "weight"], [-0.1, 0.3])
    np.testing.assert_allclose(in_parts, expected, rtol=SEARCHED)


def test_learning_from_columns_in_another_order():
    # Narrow bandwidths have kinks, of which rounding takes one or another on other machines.
    smooth = [one for one in FAST.candidates if one.bandwidth is None or one.bandwidth >= 1.6]
    procedure = replace(FAST, candidates=tuple(smooth))
    turned = with_contexts("carrier", "weight", "age")
    unbounded = with_contexts(*LOG.names)
    expected = tt.PolicyLearner(procedure=procedure, honest=False).fit(unbounded)
    found = tt.PolicyLearner(procedure=procedure, honest=False).fit(turned)
    assert found.policy_.features == ("carrier", "weight", "age")
    np.testing.assert_allclose(found.predict(COLUMNS), expected.predict(COLUMNS), rtol=1e-8)
    # Each is graded on the other's log by its own names.
    values = [
        tt.evaluate(log, expected.policy_, estimator=tt.SelfNormalized()).value
        for log in (unbounded, turned)
    ]
    assert values[0] == values[1]


def test_the_drawing_goes_by_name():
    learner = tt.PolicyLearner(
        policy=tt.Linear(features=["age", "weight"]), procedure=QUICK, honest=False
    ).fit(LOG)
    points = [line.get_xydata() for line in learner.plot(context="weight").lines]
    expected = np.column_stack([COLUMNS["weight"], learner.predict(COLUMNS)])
    assert any(np.array_equal(drawn, expected) for drawn in points)


MODEL = RidgeModel(SecondOrder())
BASELINES = {
    "direct linear": lambda log: tt.direct_linear(log, MODEL),
    "direct argmin": lambda log: tt.direct_argmin(log, MODEL, doses=5),
    "discretized": lambda log: tt.discretized_policy(log, bins=3, restarts=1),
}


@pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES)
def test_baselines_go_by_name(baseline):
    policy = baseline(LOG)
    assert policy.features == LOG.names
    frame = pd.DataFrame(COLUMNS)[["carrier", "age", "weight"]]
    expected = policy(LOG.context)
    assert np.ptp(expected) > 0
    np.testing.assert_array_equal(policy(frame), expected)


def test_a_median_regression_keeps_the_names_of_a_table():
    frame = pd.DataFrame(COLUMNS)[["age", "weight"]]
    best = 10.0 + 0.3 * COLUMNS["weight"]
    policy = tt.median_regression(frame, best)
    assert policy.features == ("age", "weight")
    np.testing.assert_allclose(policy(COLUMNS), best, rtol=1e-9)
    chosen = tt.median_regression(frame, best, features=["weight"])
    np.testing.assert_allclose(chosen(COLUMNS), best, rtol=1e-9)


def test_a_text_that_the_log_did_not_have_is_warned_of():
    rng = np.random.default_rng(5)
    ward = np.array(["a", "b", "c"])[rng.integers(0, 3, 300)]
    dose = rng.normal(size=300)
    table = {"ward": ward, "dose": dose, "loss": (dose - (ward == "b")) ** 2}
    log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss")
    learned = tt.PolicyLearner(
        procedure=tt.CPO(bandwidth=0.5, restarts=1), propensity=tt.LinearGaussian(), honest=False
    ).fit(log)
    known = learned.predict({"ward": ["a", "b"]})
    with pytest.warns(UserWarning, match=r"`ward` has a text .* in 1 of 3 rows .* dose of `a`"):
        found = learned.predict({"ward": ["z", "a", "b"]})
    np.testing.assert_array_equal(found, [known[0], *known])
    learned.predict(np.array([[1.0, 0.0]]))  # an array has no texts


def test_a_rule_does_not_follow_the_running_time_unless_told_to():
    rng = np.random.default_rng(6)
    dose = rng.normal(size=200)
    table = {"day": pd.date_range("2024-01-01", periods=200), "dose": dose, "loss": dose**2}
    log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss")
    places = places_of(None, log)
    assert [log.names[j] for j in places] == ["day.month", "day.day", "day.weekday"]
    assert places_of(("day.days",), log) == (log.names.index("day.days"),)
