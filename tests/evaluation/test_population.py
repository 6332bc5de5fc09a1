"""Another population: weights to a second table of contexts."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import titrant as tt
from titrant.errors import DataError, InvalidArgument, UntrustedEstimate
from titrant.evaluation.questions.population import CAP, Population
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.outcome.crossfit import fold_of
from titrant.propensity.logistic import DensityRatio

POLICY = tt.Linear([0.4, 0.0], 0.1)
QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": 0.6}


def log_of(n=800, seed=0, **more):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = 0.5 * x[:, 0] + rng.normal(size=n)
    y = (t - 0.5 * x[:, 0]) ** 2 + x[:, 0] + 0.3 * rng.normal(size=n)
    context = {"a": x[:, 0], "b": x[:, 1]}
    return tt.LoggedData(context, t, y, stats.norm.pdf(t - 0.5 * x[:, 0]), **more)


def people(shift=0.5, n=1500, seed=9):
    rng = np.random.default_rng(seed)
    return {"b": rng.normal(size=n), "a": rng.normal(shift, size=n)}


def found_in(log, table):
    return Population.of(log, survey_of(log, Engine(pin=False)), table)


# ── the weights ──────────────────────────────────────────────────────────────────────────────────


def test_the_ratio_of_two_normals_is_found():
    """N(.5, 1) over N(0, 1) is exp(x/2 − 1/8)."""
    rng = np.random.default_rng(1)
    x, there = rng.normal(size=(4000, 1)), rng.normal(0.5, 1.0, size=(3000, 1))
    model = DensityRatio().fit(x, there)
    ratio = model.ratio(model.fold(0, 4000), x)
    truth = np.exp(x[:, 0] / 2 - 0.125)
    inner = np.abs(x[:, 0]) < 2
    assert np.abs(np.log(ratio / truth))[inner].mean() < 0.1
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)


def test_the_unit_of_weights_does_not_matter():
    rng = np.random.default_rng(2)
    x, there = rng.normal(size=(300, 2)), rng.normal(0.4, 1.0, size=(500, 2))
    w, fold = rng.uniform(0.5, 2.0, 300), fold_of(0, 300, 5, 0)
    once, again = (DensityRatio().fit(x, there, weights=c * w).ratio(fold, x) for c in (1.0, 7.0))
    np.testing.assert_allclose(once, again, rtol=1e-9)


def test_weights_bring_the_means_of_the_population():
    found = found_in(log_of(), people())
    assert found.before.max() > 0.4
    assert found.after.max() < 0.1
    assert found.cut == 0.0
    assert found.unseen < 0.002
    assert 0.5 < found.worth < 0.95


def test_the_same_population_changes_next_to_nothing():
    log = log_of(2000)
    same = tt.evaluate(log, POLICY, weights_to=log.context, **QUICK)
    plain = tt.evaluate(log, POLICY, **QUICK)
    assert same.value == pytest.approx(plain.value, abs=0.2 * plain.se)
    assert same.method["population"]["worth"] > 0.98


def test_names_are_found_in_any_order_and_arrays_go_by_place():
    table = people()
    log = log_of()
    by_name = tt.evaluate(log, POLICY, weights_to=table, **QUICK)
    by_place = tt.evaluate(
        log, POLICY, weights_to=np.column_stack([table["a"], table["b"]]), **QUICK
    )
    assert by_name.value == by_place.value
    assert by_name.diagnostics["population_balance"].value < 0.1
    assert any("count as known" in note for note in by_name.diagnostics.notes)


def test_a_value_with_these_weights_is_that_of_a_log_with_them():
    log = log_of()
    found = found_in(log, people())
    weights = np.minimum(found.transport.ratio(log), CAP)
    there = tt.evaluate(log, POLICY, weights_to=people(), **QUICK)
    known = tt.evaluate(log.with_weights(3 * weights), POLICY, **QUICK)
    assert there.value == pytest.approx(known.value, rel=1e-12)
    assert there.interval() == pytest.approx(known.interval(), rel=1e-10)


def test_weights_of_rows_are_multiplied():
    rng = np.random.default_rng(4)
    log = log_of(weights=rng.uniform(0.5, 2.0, 800))
    found = found_in(log, people())
    moved = found.on(log)
    np.testing.assert_allclose(
        moved.weights, log.weights * np.minimum(found.transport.ratio(log), CAP)
    )


def test_files_are_memory(tmp_path):
    log = log_of()
    names = {"treatment": "t", "outcome": "y", "propensity": "q"}
    table = pa.table(log.to_columns(**names))
    for k in range(2):
        pq.write_table(table.slice(400 * k, 400), tmp_path / f"{k}.parquet")
    source = tt.scan_parquet(str(tmp_path / "*.parquet"), tt.Columns(**names, context=("a", "b")))
    there = tt.evaluate(source, POLICY, weights_to=people(), **QUICK)
    here = tt.evaluate(log, POLICY, weights_to=people(), **QUICK)
    assert there.value == pytest.approx(here.value, rel=1e-9)
    assert there.interval() == pytest.approx(here.interval(), rel=1e-9)


def test_groups_and_subgroups_and_comparisons_take_it():
    log = log_of(groups=np.arange(800) // 2)
    pair = {"p": POLICY, "q": tt.StatusQuo()}
    whole = tt.compare(log, pair, weights_to=people(), **QUICK)
    parts = tt.subgroups(log, POLICY, by={"a": 2}, weights_to=people(), **QUICK)
    assert parts.whole["Linear"].value == pytest.approx(whole["p"].value)
    total = sum(part.share * part.against for part in parts)
    assert total == pytest.approx(whole["q"].value)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


def test_a_population_elsewhere_is_refused():
    with pytest.raises(UntrustedEstimate, match="times as often there as in the log"):
        tt.evaluate(log_of(), POLICY, weights_to=people(4.0), **QUICK)
    shown = tt.evaluate(log_of(), POLICY, weights_to=people(4.0), allow_untrusted=True, **QUICK)
    assert shown.diagnostics["population_overlap"].verdict.value == "refuse"


def sites(texts, n=200, seed=3):
    rng = np.random.default_rng(seed)
    return {"a": rng.normal(size=n), "site": rng.choice(texts, n).tolist()}


def test_texts_that_the_log_never_had_are_refused():
    rng = np.random.default_rng(4)
    table = sites(["Aachen", "Ulm"], 300) | {
        "dose": rng.normal(size=300),
        "y": rng.normal(size=300),
    }
    log = tt.LoggedData.from_frame(table, treatment="dose", outcome="y")
    assert found_in(log, sites(["Aachen", "Ulm"])).rows == 200
    new = sites(["Aachen", "Ulm"])
    new["site"][:50] = ["ULM"] * 20 + ["ulm "] * 30
    with pytest.raises(
        DataError, match=r"`site` .* in 50 of 200 rows \('ulm ' in 30, 'ULM' in 20\)"
    ):
        found_in(log, new)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (log_of(20), "must be a table of contexts; got a log"),
        ({}, "has no columns; the log's contexts are `a`, `b`"),
        ({"a": [1.0, 2.0]}, "context column `b` is not in the table"),
        ({"a": [], "b": []}, "has no rows"),
        (np.zeros(30), r"must have 2 columns.*got an array of shape \(30,\)"),
        (np.zeros((30, 3)), "must have 2 columns"),
        (3.0, "must have 2 columns"),
        (np.where(np.arange(60).reshape(30, 2) < 4, np.nan, 1.0), "not finite in 2 of 30 rows"),
        ({"a": [np.nan, 1.0], "b": [0.0, 1.0]}, "missing or infinite one in 1 of 2 rows"),
    ],
    ids=["log", "empty", "column", "rows", "flat", "wide", "number", "gaps", "gap in a table"],
)
def test_what_is_no_table_of_contexts(table, sentence):
    with pytest.raises((DataError, InvalidArgument), match=sentence):
        found_in(log_of(100), table)


def test_what_is_no_population():
    bare = tt.LoggedData(np.empty((100, 0)), np.arange(100.0), np.arange(100.0))
    with pytest.raises(InvalidArgument, match="no contexts"):
        tt.evaluate(bare, tt.Constant(1.0), weights_to=np.empty((50, 0)))
    with pytest.raises(DataError):
        tt.evaluate(log_of(), POLICY, weights_to={"a": [1.0, 2.0]}, **QUICK)
