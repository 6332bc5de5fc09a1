"""One log as arrays, in chunks, in Parquet files, on threads and on processes: the same answer.

Where the partitions are the same the answer has the same bits; where only the rows are the same
it agrees to 1e-10, since sums are added in another order.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grouped
import titrant as tt
from evaluation.logs import FAR, NEAR, smooth_log
from sweeps import long
from titrant.bandwidth import SELECTORS
from titrant.data.simulate import Dosing, Quadratic
from titrant.data.source import SAMPLE
from titrant.estimators import ESTIMATORS, SmoothedEstimator
from titrant.evaluation import evaluation
from titrant.inference import INTERVALS, Verdict
from titrant.outcome import Stack, ridge_pair

CLOSE = 1e-10  # sums added in another order
DERIVED = 1e-8  # functions of small differences of such sums, such as a check in standard errors

N = 120
LOG = smooth_log(N)
POLICIES = {"near": NEAR, "constant": tt.Constant(0.4), "status quo": tt.StatusQuo()}
# A mean, a ratio, and a ratio with a model; laws/test_everywhere.py has the rooms' whole lists.
FORMS = list({type(e): e for e in ESTIMATORS if isinstance(e, SmoothedEstimator)}.values())
DENSITIES = [None, tt.LinearGaussian()]


@dataclass(frozen=True)
class Chunks:
    """A log in memory as a source of partitions of `size` rows."""

    log: tt.LoggedData
    size: int
    sample_rows: int = SAMPLE

    @property
    def names(self):
        return self.log.names

    @property
    def about(self):
        return self.log.about

    @property
    def dimension(self):
        return self.log.dimension

    @property
    def bounded(self):
        return self.log.bounded

    @property
    def has_propensity(self):
        return self.log.has_propensity

    @property
    def grouped(self):
        return self.log.grouped

    @property
    def weighted(self):
        return self.log.weighted

    @property
    def atoms(self):
        return self.log.atoms

    @property
    def partitions(self):
        return list(self.log.batches(self.size))

    def __len__(self):
        return len(self.log)


def columns_of(log):
    several = [f"treatment_{j}" for j in range(log.dimension)]
    return tt.Columns(
        treatment="treatment" if log.dimension == 1 else several,
        outcome="outcome",
        context=log.names,
        propensity="propensity" if log.has_propensity else None,
    )


def in_files(log, folder, files, **settings):
    """The log in that many Parquet files of about equal size."""
    table = pa.table(log.to_columns())
    ends = np.linspace(0, len(log), files + 1).astype(int)
    for k in range(files):
        part = table.slice(ends[k], ends[k + 1] - ends[k])
        pq.write_table(part, folder / f"{k:03}.parquet")
    return tt.scan_parquet(str(folder), columns_of(log), **settings)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(
    params=[("chunks", 50), ("files", 5), *long((("files", 1),))], ids=lambda p: f"{p[0]} {p[1]}"
)
def cut(request, tmp_path):
    """A function from a log to the same log in another form."""
    kind, number = request.param
    if kind == "chunks":
        return lambda log, **settings: Chunks(log, number, **settings)
    return lambda log, **settings: in_files(log, tmp_path, number, **settings)


def assert_same(a, b):
    """Two estimates of one policy agree in every number."""
    assert b.value == pytest.approx(a.value, rel=CLOSE)
    assert b.se == pytest.approx(a.se, rel=CLOSE)
    assert b.ess == pytest.approx(a.ess, rel=CLOSE)
    assert b.rows == a.rows
    np.testing.assert_allclose(b.interval(), a.interval(), rtol=CLOSE)
    assert (a.bandwidth is None) == (b.bandwidth is None)
    if a.bandwidth is not None:
        np.testing.assert_allclose(b.bandwidth.h, a.bandwidth.h, rtol=CLOSE)
    for check in a.diagnostics.checks:
        other = b.diagnostics[check.name]
        assert other.verdict == check.verdict
        assert other.value == pytest.approx(check.value, rel=DERIVED, abs=DERIVED)
    assert b.diagnostics.names == a.diagnostics.names
    assert b.diagnostics.notes == a.diagnostics.notes


# The same rows. Models are plain where it is not they that may differ: test_many_files and those of
# a sample take the default ones.


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("propensity", DENSITIES, ids=repr)
@pytest.mark.parametrize("estimator", FORMS, ids=lambda e: type(e).__name__)
def test_compare(estimator, propensity, cut):
    def ask(log):
        return tt.compare(
            log, POLICIES, estimator=estimator, propensity=propensity, allow_untrusted=True
        )

    whole, parts = ask(LOG), ask(cut(LOG))
    for name in POLICIES:
        assert_same(whole[name], parts[name])
        assert parts[name].method.keys() == whole[name].method.keys()
        for key in ("floor", "floor_share"):
            a, b = whole[name].method[key], parts[name].method[key]
            assert a == b or b == pytest.approx(a, rel=CLOSE)
    a, b = (c.contrast("near", "constant") for c in (whole, parts))
    assert b.se == pytest.approx(a.se, rel=DERIVED)
    np.testing.assert_allclose(b.interval(), a.interval(), rtol=DERIVED)


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_chunks_of_any_size(size):
    a, b = (tt.evaluate(log, NEAR, bandwidth=0.5) for log in (LOG, Chunks(LOG, size)))
    assert_same(a, b)


def steps_by_site(n=1000):
    """A log in which a site's number moves dose and outcome, by no line."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 6, n)
    level = np.array([0.0, 1.5, -1.0, 0.5, 2.0, -1.5])[site]
    t = 0.8 * level + rng.normal(size=n)
    y = 0.5 * (t - 0.5) ** 2 + 2.0 * (t > 1) + 1.2 * level + 0.7 * rng.normal(size=n)
    return tt.LoggedData(np.column_stack([site, rng.normal(size=n)]), t, y, names=("site", "age"))


@pytest.mark.parametrize("plain", [True, *long((False,))], ids=["plain", "default"])
def test_every_check_of_models_and_bins(plain, cut):
    models = {
        "estimator": tt.DoublyRobust(outcome=Stack(ridge_pair())),
        "propensity": tt.GaussianMixture(),
    }
    log = steps_by_site()
    a, b = (
        tt.evaluate(rows, tt.Constant(1.0), allow_untrusted=True, **(models if plain else {}))
        for rows in (log, cut(log))
    )
    assert_same(a, b)
    wanted = {"binned_balance", "dose_jump", "propensity_pit", "cut_predictions"}
    assert wanted <= set(a.diagnostics.names)
    # The means of both contexts stay, and plain models follow no steps: only bins show it.
    assert a.diagnostics["covariate_balance"].verdict is Verdict.OK
    found = a.diagnostics["binned_balance"]
    assert (found.verdict is Verdict.WARN) == plain
    assert ("share of 'site' = " in found.message) or not plain
    assert a.diagnostics["dose_jump"].verdict is Verdict.WARN
    assert any("act nonlinearly" in note for note in a.diagnostics.notes) != plain


def test_many_files(tmp_path):
    a, b = (tt.evaluate(log, NEAR) for log in (LOG, in_files(LOG, tmp_path, 24)))
    assert_same(a, b)


@pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
def test_every_interval(interval):
    def ask(log):
        return tt.evaluate(
            log, NEAR, estimator=tt.SelfNormalized(), interval=interval, bandwidth=0.5
        ).interval()

    np.testing.assert_allclose(ask(Chunks(LOG, 50)), ask(LOG), rtol=CLOSE)


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_every_selector(selector):
    def ask(log):
        return tt.evaluate(
            log, NEAR, estimator=tt.SelfNormalized(), bandwidth=selector, allow_untrusted=True
        )

    assert_same(ask(LOG), ask(Chunks(LOG, 50)))


@pytest.mark.usefixtures("plain_models")
def test_bandwidth_path(cut):
    a, b = (tt.bandwidth_path(log, NEAR) for log in (LOG, cut(LOG)))
    np.testing.assert_allclose(b.values, a.values, rtol=CLOSE)
    np.testing.assert_allclose(b.covariance, a.covariance, rtol=DERIVED, atol=1e-14)
    assert (b.count == a.count).all()


def test_curve(cut):
    # The last dose is refused: no row is near it.
    def ask(log):
        return tt.curve(log, tt.Constant, [0.2, 0.5, 0.8, 9.0], estimator=tt.SelfNormalized())

    a, b = ask(LOG), ask(cut(LOG))
    assert b.parameters.tolist() == a.parameters.tolist()
    np.testing.assert_allclose(b.values, a.values, rtol=CLOSE)
    np.testing.assert_allclose(b.band(), a.band(), rtol=CLOSE)
    assert b.refused.keys() == a.refused.keys() == {9.0}


@pytest.mark.parametrize(
    ("policy", "propensity"),
    [(None, None), (NEAR, tt.LinearGaussian()), *long((NEAR, None), (None, tt.LinearGaussian()))],
)
def test_check(policy, propensity, cut):
    a, b = (tt.check(log, policy, propensity=propensity) for log in (LOG, cut(LOG)))
    assert b.names == a.names
    assert b.notes == a.notes
    for check in a.checks:
        assert b[check.name].value == pytest.approx(check.value, rel=DERIVED, abs=DERIVED)


def test_bins(cut):
    def ask(log):
        return tt.evaluate(
            log,
            NEAR,
            estimator=tt.Discretized(quantiles=True),
            propensity=tt.LinearGaussian(),
            allow_untrusted=True,
        )

    assert_same(ask(LOG), ask(cut(LOG)))


@pytest.mark.usefixtures("plain_models")
def test_two_doses(cut):
    log = Quadratic(dimension=2).draw(N, 0, propensity=False)

    def ask(log):
        return tt.evaluate(log, tt.Constant([0.4, 0.4]), allow_untrusted=True)

    assert_same(ask(log), ask(cut(log)))


@pytest.mark.usefixtures("plain_models")
def test_bounds(tmp_path):
    log = Dosing().draw(N, 0, propensity=False)

    def ask(log):
        return tt.evaluate(log, tt.Constant(40.0), allow_untrusted=True)

    assert_same(ask(log), ask(Chunks(log, 50)))
    low, high = float(log.lower[0, 0]), float(log.upper[0, 0])
    assert_same(ask(log), ask(in_files(log, tmp_path, 3, bounds=(low, high))))


@pytest.mark.usefixtures("plain_models")
def test_no_context(cut):
    log = tt.LoggedData(np.empty((N, 0)), LOG.treatment, LOG.outcome)

    def ask(log):
        return tt.evaluate(log, tt.Constant(0.4), propensity=tt.LinearGaussian())

    assert_same(ask(log), ask(cut(log)))


@pytest.mark.usefixtures("plain_models")
def test_refusals_are_the_same(cut):
    for log in (LOG, cut(LOG)):
        with pytest.raises(tt.NoOverlap, match=r"within h = 0.01 .* of 120 rows \(closest"):
            tt.evaluate(log, tt.Constant(99.0), bandwidth=0.01)
    policies = {"lost": tt.Constant(99.0), "edge": tt.Constant(2.5), **POLICIES}
    here, there = (tt.compare(log, policies, bandwidth=0.5) for log in (LOG, cut(LOG)))
    assert list(here.refused) == list(there.refused) == ["lost", "edge"]
    assert here.refused["lost"] == there.refused["lost"]
    for name in POLICIES:
        assert_same(here[name], there[name])


# The same partitions


def bits(comparison):
    return pickle.dumps(comparison.to_dict())


@pytest.mark.parametrize("estimator", FORMS, ids=lambda e: type(e).__name__)
def test_every_engine_gives_the_same_bits(estimator, tmp_path, processes):
    source = in_files(LOG, tmp_path, 5)

    def ask(executor):
        return bits(
            tt.compare(
                source,
                POLICIES,
                estimator=estimator,
                propensity=tt.LinearGaussian(),
                allow_untrusted=True,
                executor=executor,
            )
        )

    serial = ask(tt.Engine())
    assert ask(None) == serial
    assert ask(processes) == serial
    with ThreadPoolExecutor(3) as threads:
        assert ask(threads) == serial


def test_every_engine_gives_the_same_bits_with_groups_and_weights(tmp_path, processes):
    source = tt.scan_parquet(grouped.write(tmp_path / "log"), grouped.COLUMNS)
    assert len(source.partitions) == 3
    serial = grouped.answers(source, tt.Engine())
    assert '"groups": 60' in serial[0]
    assert grouped.answers(source) == serial
    assert grouped.answers(source, processes) == serial
    with ThreadPoolExecutor(3) as threads:
        assert grouped.answers(source, threads) == serial


def test_one_file_is_the_array(tmp_path):
    # One partition of one block: nothing is added up that was not added up in memory.
    source = in_files(LOG, tmp_path, 1)
    a, b = (
        tt.compare(log, POLICIES, estimator=tt.SelfNormalized(), executor=tt.Engine())
        for log in (LOG, source)
    )
    for name in POLICIES:
        assert a[name].se == b[name].se or a[name].se == pytest.approx(b[name].se, rel=1e-14)
        assert a[name].value == pytest.approx(b[name].value, rel=1e-15)


@pytest.mark.usefixtures("plain_models")
def test_arrays_on_an_executor(processes, monkeypatch):
    # A log in memory is cut into blocks, and these are the partitions.
    monkeypatch.setattr(evaluation, "BLOCK", 50)

    def ask(executor):
        return bits(tt.compare(LOG, POLICIES, executor=executor))

    serial = ask(tt.Engine())
    assert ask(processes) == serial
    assert ask(None) == serial
    with ThreadPoolExecutor(2) as threads:
        assert ask(threads) == serial


@pytest.mark.usefixtures("plain_models")
def test_bandwidth_path_curve_and_check_on_processes(tmp_path, processes):
    source = in_files(LOG, tmp_path, 5)
    for executor in (tt.Engine(), processes):
        path = tt.bandwidth_path(source, NEAR, executor=executor)
        curve = tt.curve(source, tt.Constant, [0.2, 0.5], executor=executor)
        report = tt.check(source, NEAR, executor=executor)
        found = (path.values.tobytes(), curve.values.tobytes(), pickle.dumps(report.to_dict()))
        if isinstance(executor, tt.Engine):
            serial = found
    assert found == serial


# A sample of the rows


def test_models_fitted_on_a_sample_say_so(cut):
    source = cut(LOG, sample_rows=100)
    estimate = tt.evaluate(source, NEAR, allow_untrusted=True)
    assert 70 < estimate.method["models_fitted_on"] < 130
    assert estimate.rows == N
    whole = tt.evaluate(LOG, NEAR, allow_untrusted=True)
    assert "models_fitted_on" not in whole.method
    assert estimate.value == pytest.approx(whole.value, abs=3 * whole.se)


def test_the_sample_does_not_depend_on_the_partitions(tmp_path):
    a = tt.evaluate(Chunks(LOG, 7, sample_rows=100), NEAR, allow_untrusted=True)
    b = tt.evaluate(in_files(LOG, tmp_path, 5, sample_rows=100), NEAR, allow_untrusted=True)
    assert_same(a, b)
    assert a.method == b.method


def test_without_models_a_sample_changes_nothing(cut):
    # Weights by the log's column and sums over all rows: nothing is fitted.
    def ask(log):
        return tt.evaluate(log, NEAR, estimator=tt.SelfNormalized())

    a, b = ask(LOG), ask(cut(LOG, sample_rows=100))
    assert b.value == pytest.approx(a.value, rel=CLOSE)
    assert "models_fitted_on" not in b.method


@pytest.mark.parametrize("dimension", [1, 2])
def test_linear_gaussian_needs_no_sample(cut, dimension):
    log = Quadratic(dimension=dimension).draw(N, 0, propensity=False)
    model = tt.LinearGaussian() if dimension == 1 else tt.MultivariateGaussian()
    policy = tt.Constant(0.4 if dimension == 1 else [0.4, 0.4])

    def ask(log):
        return tt.evaluate(
            log, policy, estimator=tt.SelfNormalized(), propensity=model, allow_untrusted=True
        )

    a, b = ask(log), ask(cut(log, sample_rows=60))
    assert b.value == pytest.approx(a.value, rel=CLOSE)
    assert b.se == pytest.approx(a.se, rel=CLOSE)


def test_collinear_and_constant_contexts_by_sums():
    x = LOG.context
    wide = np.column_stack([x, x @ [1.0, 2.0], np.full(N, 3.0)])
    log = tt.LoggedData(wide, LOG.treatment, LOG.outcome)
    model, policy = tt.LinearGaussian(), tt.Constant(0.4)
    a, b = (
        tt.evaluate(one, policy, estimator=tt.SelfNormalized(), propensity=model)
        for one in (log, Chunks(log, 50))
    )
    assert b.value == pytest.approx(a.value, rel=1e-9)


def test_doses_that_the_context_determines_are_refused():
    log = tt.LoggedData(LOG.context, LOG.context @ [1.0, 2.0], LOG.outcome)
    for one in (log, Chunks(log, 50)):
        with pytest.raises(tt.DataError, match="exact linear function of the context"):
            tt.evaluate(one, FAR, propensity=tt.LinearGaussian())


def test_a_selector_of_pairs_of_rows_looks_at_some_of_them():
    log = smooth_log(400)
    selector = tt.LeaveOneOut()
    chosen = evaluation.Evaluation.of(
        Chunks(log, 100, sample_rows=100), {"near": NEAR}, tt.SelfNormalized(), None
    )._selector(selector)
    assert chosen == tt.Subsampled(selector)
    assert chosen.selector is selector


def test_folds_of_a_sample_are_those_of_the_whole_log():
    from titrant.outcome.crossfit import fold_at, fold_of  # noqa: PLC0415

    rows = np.array([3, 0, 17, 999, 12_345_678_901])
    whole = fold_of(0, 1_000, 5, 3)
    assert fold_at(rows[:4], 5, 3).tolist() == whole[rows[:4]].tolist()
    assert fold_at(rows, 5, 3)[4] == fold_of(12_345_678_901, 1, 5, 3)[0]


def test_the_sample_is_drawn_evenly_and_apart_from_the_folds():
    from titrant.evaluation.survey import drawn_rows  # noqa: PLC0415
    from titrant.outcome.crossfit import fold_at  # noqa: PLC0415

    numbers = np.arange(200_000)
    drawn = numbers[drawn_rows(numbers, 0.1)]
    assert len(drawn) == pytest.approx(20_000, abs=5 * np.sqrt(18_000))
    assert np.bincount(drawn // 50_000) == pytest.approx(5_000, abs=5 * np.sqrt(5_000))
    assert np.bincount(fold_at(drawn, 5, 0)) == pytest.approx(4_000, abs=5 * np.sqrt(4_000))
