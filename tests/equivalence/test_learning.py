"""A policy learned in memory, from chunks, from Parquet files, on threads and processes."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import titrant as tt
from equivalence.test_sources import Chunks, in_files
from titrant.data.simulate import Dosing, Quadratic
from titrant.evaluation.survey import quantiles, survey_of
from titrant.execute import Engine
from titrant.learn import TrainingLog
from titrant.learn.halves import half_of, halves_of
from titrant.outcome import RidgeModel, SecondOrder, fold_of

REACHED = 1e-8  # a search stops when its steps are this small; rounding moves it no further
CLOSE = 1e-10  # sums added in another order

N = 400
LOG = Quadratic().draw(N, 1)
# Wide bandwidths: the search has one valley, and rounding cannot send it into another.
SEARCH = tt.CPO(bandwidth=0.8, restarts=3)
SEARCHES = {
    "self-normalized": SEARCH,
    "centered IPW": tt.CPO(estimator=tt.IPW(centered=True), bandwidth=0.8, restarts=3),
    "penalties": tt.CPO(bandwidth=0.8, restarts=3, ridge=0.01, se_weight=0.2, ess_floor=30),
    "a Gaussian kernel": tt.CPO(
        estimator=tt.SelfNormalized(kernel=tt.Gaussian()), bandwidth=0.5, restarts=2
    ),
    "from a policy": tt.CPO(bandwidth=0.8, restarts=2, start=tt.Constant(0.3)),
}
DIRECT = RidgeModel(SecondOrder())


def learned(log, procedure=SEARCH, **settings):
    return tt.PolicyLearner(procedure=procedure, honest=False, **settings).fit(log)


def params(learner):
    policy = learner.policy_
    inside = policy.policy if isinstance(policy, tt.Clipped) else policy
    return np.append(inside.params, np.ravel([policy.lower, policy.upper]))


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_reaches_the_policy_found_in_memory(name):
    # Scales by sums over all rows and exact quantiles, though the sample holds a quarter of them.
    a, b = (learned(log, SEARCHES[name]) for log in (LOG, Chunks(LOG, 90, sample_rows=100)))
    np.testing.assert_allclose(params(b), params(a), rtol=REACHED, atol=REACHED)
    assert b.solution_.value == pytest.approx(a.solution_.value, rel=CLOSE)


def test_rewards():
    rewards = LOG.with_outcome(-LOG.outcome)
    a, b = (learned(log, maximize=True) for log in (rewards, Chunks(rewards, 90, sample_rows=100)))
    np.testing.assert_allclose(params(b), params(a), atol=REACHED)


@pytest.mark.parametrize("files", [1, 5, 24])
def test_from_parquet(tmp_path, files):
    np.testing.assert_allclose(
        params(learned(in_files(LOG, tmp_path, files))), params(learned(LOG)), atol=REACHED
    )


@pytest.mark.parametrize("size", [7, 1_000])
def test_from_chunks(size):
    np.testing.assert_allclose(
        params(learned(Chunks(LOG, size))), params(learned(LOG)), atol=REACHED
    )


@pytest.mark.parametrize(
    "policy",
    [tt.Constant(0.0), tt.Clipped(tt.Linear(), 0.0, 1.0), tt.RBFClass(centers=3)],
    ids=lambda p: type(p).__name__,
)
def test_other_classes(policy):
    # RBF centers are drawn from the sample, which here is the whole log.
    def ask(log):
        return learned(log, tt.CPO(bandwidth=0.8, restarts=2, ridge=0.01), policy=policy)

    a, b = ask(LOG).policy_, ask(Chunks(LOG, 90)).policy_
    np.testing.assert_allclose(b(LOG.context), a(LOG.context), atol=1e-6)


@pytest.mark.parametrize(
    "estimator", [tt.DoublyRobust(outcome=DIRECT), tt.DirectMethod(outcome=DIRECT)]
)
def test_outcome_models(estimator):
    procedure = tt.CPO(estimator=estimator, bandwidth=0.8, restarts=2, ridge=0.003)
    a, b = (learned(log, procedure) for log in (LOG, Chunks(LOG, 150)))
    np.testing.assert_allclose(params(b), params(a), atol=1e-7)
    some = learned(Chunks(LOG, 150, sample_rows=200), procedure).learned_
    assert 150 < some.report["models_fitted_on"] < 250
    assert some.report["rows"] == N


def test_fitted_propensities_and_bounds():
    log = Dosing().draw(300, 0, propensity=False)

    def ask(log):
        return learned(log, tt.CPO(bandwidth=15.0, restarts=2), propensity=tt.LinearGaussian())

    np.testing.assert_allclose(
        params(ask(Chunks(log, 90, sample_rows=100))), params(ask(log)), rtol=1e-7
    )


def test_two_doses():
    log = Quadratic(dimension=2).draw(300, 0)
    procedure = tt.CPO(bandwidth=1.5, restarts=2, ridge=0.01)
    a, b = (learned(one, procedure) for one in (log, Chunks(log, 80, sample_rows=100)))
    np.testing.assert_allclose(b.policy_(log.context), a.policy_(log.context), atol=1e-7)


def test_every_engine_gives_the_same_bits(tmp_path):
    source = in_files(LOG, tmp_path, 5)
    serial = params(learned(source, executor=Engine())).tobytes()
    assert params(learned(source)).tobytes() == serial
    with ThreadPoolExecutor(3) as threads:
        assert params(learned(source, executor=threads)).tobytes() == serial
    with ProcessPoolExecutor(2) as processes:
        assert params(learned(source, executor=processes)).tobytes() == serial


# Other procedures learn from the sample


def test_another_procedure_learns_from_the_sample():
    fast = tt.StackedDR(models={"quadratic": DIRECT}, folds=3)
    whole, chunks = learned(LOG, fast), learned(Chunks(LOG, 90), fast)
    assert (params(chunks) == params(whole)).all()
    some = learned(Chunks(LOG, 90, sample_rows=200), fast).learned_
    assert 150 < some.report["learned_on"] < 250
    assert some.report["rows"] == N


WEIGHED = tt.LoggedData(
    LOG.context,
    LOG.treatment,
    LOG.outcome,
    LOG.propensity,
    weights=np.random.default_rng(8).integers(4, size=N).astype(float),
)


@pytest.mark.parametrize("procedure", [SEARCH, tt.StackedDR(models={"quadratic": DIRECT}, folds=3)])
def test_weights_count_in_files_as_in_memory(procedure):
    a, b = (learned(log, procedure) for log in (WEIGHED, Chunks(WEIGHED, 90)))
    np.testing.assert_array_equal(params(b), params(a))
    # A weight of k counts as k rows, so other weights give another rule.
    assert not np.allclose(params(a), params(learned(LOG, procedure)), atol=1e-3)
    some = learned(Chunks(WEIGHED, 90, sample_rows=200), procedure).learned_
    assert 150 < some.report["learned_on"] < 250
    assert some.report["rows"] == N


# Honest halves


# Rows of one group lie in many partitions.
GROUPED = tt.LoggedData(
    LOG.context,
    LOG.treatment,
    LOG.outcome,
    LOG.propensity,
    groups=[f"p{k}" for k in np.random.default_rng(7).integers(90, size=N)],
)


@pytest.mark.parametrize("size", [1, 7, 1_000])
@pytest.mark.parametrize("n", [60, 61])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("whole", [LOG, GROUPED], ids=["rows", "groups"])
def test_a_half_has_the_rows_and_numbers_it_has_in_memory(whole, which, n, size):
    log = whole.rows(slice(0, n))
    keys = survey_of(log, Engine()).keys
    expected = halves_of(log, 3, keys, Engine())[which]
    half = halves_of(Chunks(log, 10), 3, keys, Engine())[which]
    assert half_of(log, which, 3).outcome.tolist() == expected.outcome.tolist()
    batches = [batch for part in half.partitions for batch in part.batches(size)]
    assert len(half) == len(expected) == sum(map(len, half.partitions))
    assert np.concatenate([b.outcome for b in batches]).tolist() == expected.outcome.tolist()
    ends = np.cumsum([0, *map(len, batches)])
    assert [batch.first_row for batch in batches] == ends[:-1].tolist()
    starts = np.cumsum([0, *map(len, half.partitions)])
    assert [part.first_row for part in half.partitions] == starts[:-1].tolist()


def test_halves_of_rows_and_of_groups_by_hand():
    # Row i, or the i-th of the groups by their keys, belongs to the half that a hash of i draws.
    rows = halves_of(LOG, 3, None, Engine())
    for which, half in enumerate(rows):
        assert half.outcome.tolist() == LOG.outcome[fold_of(0, N, 2, seed=3) == which].tolist()
    keys = sorted(set(GROUPED.groups.tolist()))
    drawn = dict(zip(keys, fold_of(0, len(keys), 2, seed=3), strict=True))
    own = np.array([drawn[key] for key in GROUPED.groups.tolist()])
    groups = halves_of(GROUPED, 3, np.array(keys), Engine())
    for which, half in enumerate(groups):
        assert half.outcome.tolist() == GROUPED.outcome[own == which].tolist()
    assert not set(groups[0].groups) & set(groups[1].groups)


def test_one_group_has_no_halves():
    log = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, LOG.propensity, groups=["a"] * N)
    for one in (log, Chunks(log, 90)):
        with pytest.raises(tt.DataError, match="All rows belong to one group"):
            TrainingLog.of(one).halves(0)


@pytest.mark.parametrize(
    "estimator", [tt.SelfNormalized(), tt.DoublyRobust(outcome=DIRECT)], ids=["plain", "modeled"]
)
def test_a_policy_learned_from_files_with_groups_is_that_of_memory(tmp_path, estimator):
    table = {"dose": LOG.treatment, "loss": LOG.outcome, "q": LOG.propensity}
    table |= {name: LOG.context[:, j] for j, name in enumerate(LOG.names)}
    table["who"] = [f"p{k}" for k in np.random.default_rng(7).integers(90, size=N)]
    roles = {"treatment": "dose", "outcome": "loss", "context": LOG.names, "propensity": "q"}
    for k, rows in enumerate(np.array_split(np.arange(N), 3)):
        some = {name: np.asarray(column)[rows] for name, column in table.items()}
        pq.write_table(pa.table(some), tmp_path / f"{k}.parquet")
    memory = tt.LoggedData.from_frame(table, **roles, groups="who")
    files = tt.scan_parquet(tmp_path, tt.Columns(**roles, groups="who"))
    search = tt.CPO(estimator=estimator, bandwidth=0.8, restarts=2, ridge=0.003)
    how = {"procedure": search, "grade": estimator, "safe": True}
    a, b = (tt.PolicyLearner(**how).fit(log) for log in (memory, files))
    np.testing.assert_allclose(params(b), params(a), atol=1e-7)
    assert b.estimate_.value == pytest.approx(a.estimate_.value, rel=1e-7)
    np.testing.assert_allclose(b.estimate_.interval(), a.estimate_.interval(), rtol=1e-7)
    assert (b.deployed_, b.decision_) == (a.deployed_, a.decision_)
    # The same rows without their groups are other halves.
    other = tt.PolicyLearner(**how).fit(LOG)
    assert other.estimate_.value != pytest.approx(a.estimate_.value, rel=1e-5)


def test_the_default_procedure_learns_from_chunks_with_groups_as_in_memory():
    fast = tt.StackedDR(models={"quadratic": DIRECT}, folds=3)
    how = {"procedure": fast, "grade": tt.DoublyRobust(outcome=DIRECT)}
    a, b = (tt.PolicyLearner(**how).fit(log) for log in (GROUPED, Chunks(GROUPED, 90)))
    assert (params(b) == params(a)).all()
    assert b.estimate_.value == pytest.approx(a.estimate_.value, rel=1e-7)
    np.testing.assert_allclose(b.estimate_.interval(), a.estimate_.interval(), rtol=1e-7)


def test_models_of_a_search_have_not_seen_the_group_of_a_row():
    search = tt.CPO(estimator=tt.DoublyRobust(outcome=DIRECT), bandwidth=0.8)
    training = TrainingLog.of(GROUPED)
    found = search._search(training, tt.LinearClass().fitted(training.survey), tt.LinearClass())
    fold = found._fold(found.model, GROUPED)
    assert set(fold) == set(range(found.model.folds))
    for group in np.unique(GROUPED.groups):
        assert len(set(fold[GROUPED.groups == group])) == 1
    # A fold's model is the one that is fitted to the rows of all other groups.
    shown = GROUPED.outcome - training.survey.center
    others = fold != 0
    alone = RidgeModel(SecondOrder()).fit(
        GROUPED.context[others], GROUPED.treatment[others], shown[others]
    )
    mine = fold == 0
    np.testing.assert_allclose(
        found._predict(GROUPED, GROUPED.doses[None])[0][mine],
        alone.predict(GROUPED.context[mine], GROUPED.treatment[mine]),
        rtol=CLOSE,
    )


@pytest.mark.parametrize("grade", [tt.SelfNormalized(), tt.DoublyRobust(outcome=DIRECT)])
def test_the_honest_value(grade):
    def ask(log):
        learner = tt.PolicyLearner(procedure=SEARCH, grade=grade, safe=True)
        return learner.fit(log)

    a, b = ask(LOG), ask(Chunks(LOG, 90))
    assert b.estimate_.value == pytest.approx(a.estimate_.value, rel=1e-7)
    np.testing.assert_allclose(b.estimate_.interval(), a.estimate_.interval(), rtol=1e-7)
    assert (b.deployed_, b.decision_) == (a.deployed_, a.decision_)
    assert b.in_sample_estimate().value == pytest.approx(a.in_sample_estimate().value, rel=1e-7)


def test_a_saved_policy_knows_the_range_of_all_rows(tmp_path):
    for name, log in {"a": LOG, "b": Chunks(LOG, 90, sample_rows=50)}.items():
        learned(log).save(tmp_path / name)
    a, b = (json.loads((tmp_path / name).read_text())["training"] for name in "ab")
    assert a == b


def test_only_logs_are_learned_from():
    with pytest.raises(tt.InvalidArgument, match="takes a `LoggedData`; got a list"):
        learned([1, 2, 3])


# Stopping and going on


class Stop(BaseException):
    """Like a kill: nothing in the library catches it."""


def test_a_stopped_search_goes_on_to_the_same_policy(tmp_path):
    source = Chunks(LOG, 90)
    passes = [0]

    def stop(done, total):
        passes[0] += done == total
        if passes[0] == 12:
            raise Stop

    expected = learned(source, executor=Engine())
    with pytest.raises(Stop):
        learned(source, executor=Engine(progress=stop), checkpoint=tmp_path)
    assert list(tmp_path.iterdir())
    counted = []
    engine = Engine(progress=lambda done, total: counted.append(done == total))
    resumed = learned(source, executor=engine, checkpoint=tmp_path)
    assert params(resumed).tobytes() == params(expected).tobytes()
    assert resumed.solution_.evaluations == expected.solution_.evaluations
    # Survey, features and the rounds that were left.
    again = []
    learned(source, executor=Engine(progress=lambda d, t: again.append(d == t)))
    assert sum(counted) < sum(again)


# Quantiles


def columns(log):
    return np.column_stack([log.doses, np.round(log.outcome)])


@pytest.mark.parametrize("width", [6.0, 1e-9])
def test_quantiles_are_exact(width, monkeypatch):
    # Also of rounded numbers, which repeat; and when the first neighborhood is too small.
    monkeypatch.setattr("titrant.evaluation.survey.WIDTH", width)
    monkeypatch.setattr("titrant.evaluation.survey.FEWEST", 2.0 if width > 1 else 0.0)
    log = Quadratic().draw(3_000, 5)
    source = Chunks(log, 700, sample_rows=300)
    sample = survey_of(source, Engine()).sample
    assert not sample.whole
    levels = [0.0, 0.005, 0.1, 0.5, 0.995, 1.0]
    found = quantiles(source, sample, Engine(), columns, levels)
    assert (found == np.quantile(columns(log), levels, axis=0)).all()
