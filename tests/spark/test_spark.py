"""A Spark DataFrame as a log: the numbers of the same rows in files, and errors that say why."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="Spark is tested by `make test-spark`")

import grouped
import titrant as tt
from titrant.execute.spark import OnSpark, scan_spark
from titrant.outcome import RidgeModel, SecondOrder

MERGED = 1e-10  # sums over other partitions, added in another order

CONTEXT = ["age", "body mass"]
KNOWN = tt.Columns(treatment="dose", outcome="loss", context=CONTEXT, propensity="density")
UNKNOWN = tt.Columns(treatment="dose", outcome="loss", context=CONTEXT)
POLICIES = {"linear": tt.Linear(coef=[0.1, 0.3], intercept=0.1), "constant": tt.Constant(0.2)}
METHODS = {
    "known propensity": (KNOWN, {"estimator": tt.SelfNormalized()}),
    "linear-Gaussian": (
        UNKNOWN,
        {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()},
    ),
    "doubly robust": (KNOWN, {"estimator": tt.DoublyRobust()}),
}


@pytest.fixture(scope="module")
def frame(spark, files):
    """The rows of the files, in their order: each file is one partition."""
    return reduce(lambda a, b: a.union(b), [spark.read.parquet(path) for path in files])


@pytest.fixture(params=METHODS, ids=lambda name: name)
def method(request):
    return METHODS[request.param]


def numbers(comparison):
    """Everything that was estimated, as one array."""
    rows = [
        [e.value, e.se, e.ess, e.bandwidth.h, *e.interval()] for e in comparison.estimates.values()
    ]
    return np.concatenate([np.ravel(rows), np.ravel(comparison.covariance)])


def test_the_rows_of_each_partition_are_counted(frame, files):
    source = scan_spark(frame, KNOWN)
    in_files = tt.scan_parquet(files, KNOWN)
    assert [len(p) for p in source.partitions] == [len(p) for p in in_files.partitions]
    assert [p.first_row for p in source.partitions] == [p.first_row for p in in_files.partitions]
    assert repr(source).startswith("SparkSource(24,000 rows in 5 partitions; 1 dose")


def test_partitions_without_rows_are_left_out(frame):
    empty = frame.where("dose > 1e9")
    source = scan_spark(empty.union(frame).union(empty), KNOWN)
    assert len(source) == 24_000
    assert len(source.partitions) == 5
    assert source.partitions[0].first_row == 0


def test_the_same_partitions_give_the_same_bits(frame, files, method):
    columns, how = method
    here = tt.compare(tt.scan_parquet(files, columns), POLICIES, **how)
    there = tt.compare(scan_spark(frame, columns), POLICIES, **how)
    assert numbers(there).tobytes() == numbers(here).tobytes()


def test_other_partitions_give_the_same_numbers(frame, files):
    how = METHODS["known propensity"][1]
    here = tt.compare(tt.scan_parquet(files, KNOWN), POLICIES, **how)
    there = tt.compare(scan_spark(frame.repartition(3, "age").cache(), KNOWN), POLICIES, **how)
    np.testing.assert_allclose(numbers(there), numbers(here), rtol=MERGED)


def test_groups_that_straddle_partitions_give_the_same_bits(spark, tmp_path):
    paths = grouped.write(tmp_path / "log")
    table = reduce(lambda a, b: a.union(b), [spark.read.parquet(path) for path in paths])
    there = grouped.answers(scan_spark(table, grouped.COLUMNS))
    assert there == grouped.answers(tt.scan_parquet(paths, grouped.COLUMNS))


def test_bounds_are_kept(frame, files):
    how = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
    source = scan_spark(frame, KNOWN, bounds=(-9, 9))
    here = tt.evaluate(tt.scan_parquet(files, KNOWN, bounds=(-9, 9)), POLICIES["linear"], **how)
    assert tt.evaluate(source, POLICIES["linear"], **how).value == here.value


def test_a_search_finds_the_policy_it_finds_in_files(frame, files):
    def learned(log):
        procedure = tt.CPO(restarts=1, bandwidth=1.0)
        learner = tt.PolicyLearner(policy=tt.Constant(0.0), procedure=procedure, honest=False)
        return learner.fit(log).learned_.to_dict()

    assert learned(scan_spark(frame, KNOWN)) == learned(tt.scan_parquet(files, KNOWN))


def test_the_honest_value_is_that_of_the_same_halves_in_files(frame, files):
    # Halves are drawn by row numbers, which Spark's partitions give as files do. Few passes, since
    # each takes Spark seconds: the policy is learned from the sample.
    def learned(log):
        procedure = tt.StackedDR(models={"quadratic": RidgeModel(SecondOrder())}, folds=3)
        grade = tt.SelfNormalized()
        return tt.PolicyLearner(policy=tt.Constant(0.0), procedure=procedure, grade=grade).fit(log)

    there = learned(scan_spark(frame, KNOWN, sample_rows=2_000))
    here = learned(tt.scan_parquet(files, KNOWN, sample_rows=2_000))
    assert there.estimate_.to_dict() == here.estimate_.to_dict()
    assert there.decision_ == here.decision_


def test_progress_and_timeout_are_those_of_the_engine_given(frame):
    seen = []
    engine = tt.Engine(timeout=100, progress=lambda done, total: seen.append((done, total)))
    source = scan_spark(frame, KNOWN)
    estimator = tt.SelfNormalized()
    tt.evaluate(source, tt.Constant(0.2), estimator=estimator, bandwidth=0.5, executor=engine)
    assert seen[:5] == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


# What goes wrong


def test_a_missing_column_is_named(frame):
    with pytest.raises(tt.DataError, match="outcome column `lost` is not in the table"):
        scan_spark(frame, tt.Columns(treatment="dose", outcome="lost", context="age"))


def test_rows_that_are_no_numbers_are_refused_with_their_partition(frame):
    source = scan_spark(frame.selectExpr("dose", "age", "if(age > 3, NULL, loss) AS loss"),
                        tt.Columns(treatment="dose", outcome="loss", context="age"))  # fmt: skip
    with pytest.raises(tt.DataError, match=r"In Spark partition \d.*missing or infinite"):
        tt.evaluate(source, tt.Constant(0.2))


def test_rows_that_change_are_refused(frame):
    source = scan_spark(frame, KNOWN)
    first, *others = source.partitions
    changed = replace(source, partitions=(replace(first, n=first.n + 1), *others))
    with pytest.raises(tt.DataError, match="same rows on every pass; got 4,000 in Spark partition"):
        tt.evaluate(changed, tt.Constant(0.2))


def test_an_error_in_a_worker_is_an_error_here(frame):
    def fails(_):
        raise KeyError("seven")

    source = scan_spark(frame, KNOWN)
    with pytest.raises(tt.ExecutionError, match=r"Spark could not work .* KeyError: 'seven'"):
        OnSpark.of(source, tt.Engine()).add_up(fails, source.partitions)
    # A policy's own error comes back with its name, as in memory.
    with pytest.raises(tt.DataError, match=r"policy function .*fails` failed: KeyError 'seven'"):
        tt.evaluate(source, fails, estimator=tt.SelfNormalized(), bandwidth=0.5)


def test_a_job_that_takes_too_long_is_stopped(frame):
    def asleep(_):
        time.sleep(3600)

    source = scan_spark(frame, KNOWN)
    begun = time.monotonic()
    engine = OnSpark.of(source, tt.Engine(timeout=5.0))
    with pytest.raises(tt.ExecutionError, match="Spark gave no result within 5 seconds"):
        engine.add_up(asleep, source.partitions)
    assert time.monotonic() - begun < 60
    # The session goes on.
    assert len(scan_spark(frame, KNOWN)) == 24_000


def test_another_executor_is_refused(frame):
    with ThreadPoolExecutor(1) as threads, pytest.raises(tt.InvalidArgument, match="by Spark its"):
        tt.evaluate(scan_spark(frame, KNOWN), tt.Constant(0.2), executor=threads)


def test_rows_are_not_read_elsewhere(frame):
    with pytest.raises(tt.ExecutionError, match="are in Spark"):
        scan_spark(frame, KNOWN).partitions[0].batches(10)
