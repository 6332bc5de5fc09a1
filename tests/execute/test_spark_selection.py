"""Half of a Spark DataFrame where no Spark is: the rows that its workers would select."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import titrant as tt
from titrant.data.simulate import Quadratic
from titrant.execute import spark
from titrant.outcome import RidgeModel, SecondOrder

LOG = Quadratic().draw(500, 2)
TABLE = pa.table(LOG.to_columns(treatment="dose", outcome="loss"))
CUTS = (0, 151, 152, 400, 500)  # of partitions, one of them of a single row
KNOWN = tt.Columns(treatment="dose", outcome="loss", context=LOG.names, propensity="propensity")
QUICK = tt.StackedDR(models={"quadratic": RidgeModel(SecondOrder())}, folds=3)


@dataclass(frozen=True)
class Frame:
    """What a DataFrame is to `scan_spark`: columns, and partitions whose rows pass once."""

    columns = TABLE.column_names

    def select(self, *_):
        return self


def on_this_thread(monkeypatch):
    """Let the work of Spark's workers be done here, partition by partition."""

    def collected(_frame, work, timeout):  # noqa: ARG001
        found = {}
        for number, (start, end) in enumerate(itertools.pairwise(CUTS)):
            monkeypatch.setattr(spark, "_number", lambda n=number: n)
            rows = TABLE.slice(start, end - start).to_batches(max_chunksize=70)
            for batch in work(iter(rows)):
                found |= {number: batch["result"][0].as_py()}
        return found

    monkeypatch.setattr(spark, "_collected", collected)


@dataclass(frozen=True)
class Parts:
    """The same partitions in memory."""

    names = LOG.names
    about = LOG.about
    dimension = 1
    bounded = False
    has_propensity = True
    grouped = False
    weighted = False
    atoms = None
    sample_rows = 200

    @property
    def partitions(self):
        return [LOG.rows(slice(a, b)) for a, b in itertools.pairwise(CUTS)]

    def __len__(self):
        return len(LOG)


def test_the_honest_value_is_that_of_the_same_partitions_elsewhere(monkeypatch):
    on_this_thread(monkeypatch)

    def learned(log):
        how = {"procedure": QUICK, "grade": tt.SelfNormalized()}
        return tt.PolicyLearner(policy=tt.Constant(0.0), **how).fit(log)

    there, here = learned(spark.scan_spark(Frame(), KNOWN, sample_rows=200)), learned(Parts())
    assert there.estimate_.to_dict() == here.estimate_.to_dict()
    assert np.array_equal(there.policy_(LOG.context), here.policy_(LOG.context))
