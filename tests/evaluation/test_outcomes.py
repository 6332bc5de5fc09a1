"""Several outcomes of the same rows: each as alone, and jointly."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

import titrant as tt
from titrant.errors import DataError, InvalidArgument

RULES = {"none": tt.Constant(0.0), "some": tt.Constant(0.5), "logged": tt.StatusQuo()}
QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5, "allow_untrusted": True}
PLAIN = tt.DoublyRobust(outcome=LinearRegression(), folds=2)


def logs_of(n=600, seed=0, **more):
    rng = np.random.default_rng(seed)
    x, t = rng.normal(size=n), rng.normal(size=n)
    noise = rng.normal(size=n)
    pain = tt.LoggedData({"a": x}, t, (t - 1) ** 2 + noise, stats.norm.pdf(t), **more)
    return {"pain": pain, "nausea": pain.with_outcome(t + 0.5 * noise + rng.normal(size=n))}


@pytest.mark.parametrize("estimator", [tt.SelfNormalized(), PLAIN], ids=["sn", "dr"])
def test_each_outcome_is_as_alone(estimator):
    logs = logs_of(groups=np.arange(600) // 2)
    settings = QUICK | {"estimator": estimator}
    found = tt.outcomes(logs, RULES, **settings)
    m = len(RULES)
    for k, (name, log) in enumerate(logs.items()):
        alone = tt.compare(log, RULES, **settings)
        own = np.ix_(range(k * m, k * m + m), range(k * m, k * m + m))
        np.testing.assert_allclose(found.covariance[own], alone.covariance, rtol=1e-10)
        for i, rule in enumerate(RULES):
            joint = found.inference.interval(k * m + i).at(0.95)
            np.testing.assert_allclose(joint, alone[rule].interval(), rtol=1e-10)
        assert found[name]["some"].value == alone["some"].value


def test_the_same_outcome_twice_moves_as_one():
    log = logs_of()["pain"]
    other = log.with_outcome(-2.0 * log.outcome)
    found = tt.outcomes({"loss": log, "gain": other}, RULES, **QUICK)
    c = found.covariance
    np.testing.assert_allclose(c[3:, :3], -2.0 * c[:3, :3], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(c[3:, 3:], 4.0 * c[:3, :3], rtol=1e-8, atol=1e-12)


def test_the_covariance_of_two_means_is_that_of_the_outcomes():
    logs = logs_of()
    found = tt.outcomes(logs, {"logged": tt.StatusQuo()}, **QUICK)
    y = np.stack([log.outcome for log in logs.values()])
    np.testing.assert_allclose(found.covariance, np.cov(y, ddof=0) / 600, rtol=1e-10)


def test_trade_offs():
    found = tt.outcomes(logs_of(), RULES, **QUICK)
    told = found.differences("none")["some"]
    difference, low, high = told["pain"]
    single = found["pain"].contrast("some", "none")
    assert difference == pytest.approx(single.difference)
    assert low < single.interval()[0]
    assert high > single.interval()[1]
    assert told["nausea"][0] > 0.0 > difference
    # Less pain for more nausea: neither beats the other, unless nausea is what is wanted.
    assert "none" not in found.dominated()
    assert "some" not in found.dominated() or "none" not in found.dominated()["some"]
    assert "some" in found.dominated(maximize=["nausea"])["none"]
    clear = found.dominated(maximize=["nausea"], level=0.95)
    assert set(clear) <= set(found.dominated(maximize=["nausea"]))


def test_files_are_memory(tmp_path):
    logs = logs_of()
    columns = logs["pain"].to_columns(treatment="t", outcome="pain", propensity="q")
    table = pa.table(columns | {"nausea": logs["nausea"].outcome})
    for k in range(2):
        pq.write_table(table.slice(300 * k, 300), tmp_path / f"{k}.parquet")
    there = {
        name: tt.scan_parquet(
            str(tmp_path / "*.parquet"),
            tt.Columns(treatment="t", outcome=name, propensity="q", context=("a",)),
        )
        for name in logs
    }
    settings = QUICK | {"estimator": PLAIN}
    here, read = tt.outcomes(logs, RULES, **settings), tt.outcomes(there, RULES, **settings)
    np.testing.assert_allclose(read.covariance, here.covariance, rtol=1e-8)
    np.testing.assert_allclose(read.inference.covariance, here.inference.covariance, rtol=1e-8)


def test_a_policy_that_is_refused_for_one_outcome_is_in_no_difference():
    rules = {"none": tt.Constant(0.0), "far": tt.Constant(60.0)}
    found = tt.outcomes(logs_of(), rules, estimator=tt.SelfNormalized(), bandwidth=0.5)
    assert found.policies == ("none",)
    with pytest.raises(InvalidArgument, match="not answered for every outcome"):
        found.differences("far")


def test_it_says_itself():
    found = tt.outcomes(logs_of(), RULES, **QUICK)
    assert str(found).splitlines()[0].split() == [
        "policy",
        "pain",
        "95%",
        "CI",
        "nausea",
        "95%",
        "CI",
    ]
    assert repr(found) == "Outcomes(pain, nausea; 3 policies)"
    assert "nausea" in found._repr_html_()
    assert np.diagonal(found.to_dict()["correlation"]) == pytest.approx(1.0)


def test_what_cannot_be_asked():
    logs = logs_of()
    with pytest.raises(DataError, match="not the same rows"):
        tt.outcomes(logs | {"nausea": logs["nausea"].rows(slice(0, 500))}, RULES, **QUICK)
    with pytest.raises(DataError, match="not the same rows"):
        tt.outcomes(logs | {"nausea": logs_of(seed=1)["nausea"]}, RULES, **QUICK)
    with pytest.raises(InvalidArgument, match="a dict with a log"):
        tt.outcomes([logs["pain"]], RULES)
    with pytest.raises(InvalidArgument, match="no outcome 'x'"):
        tt.outcomes(logs, RULES, **QUICK)["x"]
