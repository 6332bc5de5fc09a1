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


def test_one_policy_has_no_differences():
    found = tt.outcomes(logs_of(), {"some": RULES["some"]}, **QUICK)
    assert found.differences("some") == {}
    assert found.to_dict()["differences"] == {"some": {}}


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


# From a table with a column for each outcome


def table_of(n=300, seed=3):
    logs = logs_of(n, seed)
    log = logs["pain"]
    table = {"a": log.context[:, 0], "t": log.treatment, "q": log.propensity}
    return logs, table | {name: one.outcome.copy() for name, one in logs.items()}


ROLES = {"treatment": "t", "propensity": "q"}


@pytest.mark.parametrize("context", [None, "a"])
def test_a_table_with_several_outcomes_is_one_log_for_each(context):
    logs, table = table_of()
    found = tt.LoggedData.from_frame(table, outcome=["pain", "nausea"], context=context, **ROLES)
    assert list(found) == ["pain", "nausea"]
    for name, log in found.items():
        assert log.names == ("a",)  # no outcome is a context of another
        (other,) = set(found) - {name}
        assert log.after == (other,)
        np.testing.assert_array_equal(log.outcome, logs[name].outcome)
    joint = tt.outcomes(found, RULES, **QUICK)
    np.testing.assert_array_equal(joint.covariance, tt.outcomes(logs, RULES, **QUICK).covariance)


def test_a_stream_is_read_once_for_all_outcomes():
    _, table = table_of()
    stream = pa.table(table).to_reader()
    found = tt.LoggedData.from_frame(stream, outcome=["pain", "nausea"], **ROLES)
    assert [len(log) for log in found.values()] == [300, 300]


def test_all_outcomes_keep_the_same_rows():
    _, table = table_of()
    table["pain"][3] = table["nausea"][[5, 6]] = np.nan
    names = ["pain", "nausea"]

    def made(rule):
        return tt.LoggedData.from_frame(table, outcome=names, missing_outcome=rule, **ROLES)

    for log in made("drop").values():
        assert len(log) == 297
        assert "the outcome column `nausea` or `pain` is missing" in str(log.flow)
    weighted = made("weight")
    assert {name: int((log.observed == 0).sum()) for name, log in weighted.items()} == {
        "pain": 1,
        "nausea": 2,
    }
    with pytest.raises(DataError, match="The outcome column `pain` must be present"):
        made("refuse")


@pytest.mark.parametrize(
    ("outcome", "more", "words"),
    [
        ([], {}, "at least one column"),
        (["pain", "pain"], {}, "twice as outcome"),
        (["pain", "nausea"], {"context": ["a", "nausea"]}, "as context and as outcome"),
        (["pain", "hope"], {}, "`hope` is not in the table"),
    ],
)
def test_outcomes_that_cannot_be_taken(outcome, more, words):
    _, table = table_of()
    with pytest.raises(DataError, match=words):
        tt.LoggedData.from_frame(table, outcome=outcome, **ROLES, **more)


class Counting(tt.LinearGaussian):
    """Counts how often it is fitted."""

    fits = 0

    def fit(self, X, t, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, t, sample_weight=sample_weight)


@pytest.mark.parametrize("model", [Counting(), tt.LinearGaussian()], ids=["counted", "plain"])
@pytest.mark.parametrize("estimator", [tt.SelfNormalized(), PLAIN], ids=["sn", "dr"])
def test_a_given_law_of_the_doses_is_fitted_once_and_changes_no_number(model, estimator):
    logs = {name: log.with_propensity(None) for name, log in logs_of().items()}
    Counting.fits = 0
    settings = QUICK | {"estimator": estimator, "propensity": model}
    found = tt.outcomes(logs, RULES, **settings)
    assert Counting.fits == (1 if isinstance(model, Counting) else 0)
    for name, log in logs.items():
        alone = tt.compare(log, RULES, **settings)
        for rule in RULES:
            assert found[name][rule].value == alone[rule].value
            assert found[name][rule].interval() == alone[rule].interval()


def test_a_law_is_fitted_anew_where_outcomes_are_missing_in_other_rows():
    _, table = table_of()
    table["nausea"][:40] = np.nan
    logs = tt.LoggedData.from_frame(
        table, outcome=["pain", "nausea"], treatment="t", context="a", missing_outcome="weight"
    )
    settings = QUICK | {"propensity": tt.LinearGaussian()}
    found = tt.outcomes(logs, RULES, **settings)
    for name, log in logs.items():
        alone = tt.compare(log, RULES, **settings)
        assert found[name]["some"].value == alone["some"].value


def test_files_of_other_rows_are_refused(tmp_path):
    settings = {"treatment": "t", "propensity": "q", "context": ("a",)}
    there = {}
    for seed, name in enumerate(["pain", "nausea"]):
        _, table = table_of(seed=seed)
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        columns = tt.Columns(outcome=name, **settings)
        there[name] = tt.scan_parquet(tmp_path / f"{name}.parquet", columns)
    with pytest.raises(DataError, match="not the same rows"):
        tt.outcomes(there, RULES, **QUICK)


def test_trade_offs_are_told():
    found = tt.outcomes(logs_of(), RULES, **QUICK)
    assert found.reference == "logged"
    headings, *rows = found.difference_table()
    assert headings == ["difference", "pain", "95% at once", "nausea", "95% at once"]
    assert [row[0] for row in rows] == ["none − logged", "some − logged"]
    (first, *_), plain = found.differences("logged")["none"].values(), found.to_dict()
    assert plain["differences"]["logged"]["none"]["pain"]["difference"] == first[0]
    assert plain["dominated"] == {p: list(by) for p, by in found.dominated().items()}
    beaten = tt.outcomes(logs_of(), RULES, **QUICK).dominated(["nausea"])
    said = found.sentences(maximize=["nausea"])
    assert len(said) == sum(map(len, beaten.values()))
    assert any("none is beaten by some" in one for one in said)
    shown = sum(map(len, found.dominated(["nausea"], 0.95).values()))
    assert sum("the intervals show" in one for one in said) == shown
    wide = {"far": tt.Constant(-1.0), "some": tt.Constant(0.5)}
    (clear,) = tt.outcomes(logs_of(2000), wide, **QUICK).sentences(maximize=["nausea"])
    assert clear.startswith("far is beaten by some")
    assert clear.endswith("the intervals show.")
    two = {name: RULES[name] for name in ("none", "some")}
    assert "each gives something up" in tt.outcomes(logs_of(), two, **QUICK).sentences()[0]
