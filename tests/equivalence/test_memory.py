"""Memory that does not grow with the rows, and files that are read by their columns alone."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

import titrant as tt
from evaluation.logs import NEAR
from sweeps import long
from titrant.data.about import About
from titrant.data.simulate import Quadratic
from titrant.evaluation import evaluation, survey
from titrant.execute import Engine
from titrant.learn import search

FLAT = 1.25  # peak of four times the rows over the peak of the rows

ROWS = 2_000
"""Of a block."""


@dataclass(frozen=True)
class Drawn:
    """A partition that exists only while it is read."""

    first_row: int
    seed: int

    def __len__(self):
        return 2 * ROWS

    def batches(self, size):
        log = Quadratic().draw(len(self), self.seed)
        for batch in log.batches(size):
            yield batch.numbered(self.first_row + batch.first_row)


@dataclass(frozen=True)
class DrawnSource:
    """A log of that many partitions, nowhere in memory as a whole."""

    count: int
    names = ("x0", "x1")
    about = About()
    dimension = 1
    bounded = False
    has_propensity = True
    grouped = False
    weighted = False
    atoms = None
    sample_rows = ROWS

    @property
    def partitions(self):
        return [Drawn(2 * ROWS * k, k) for k in range(self.count)]

    def __len__(self):
        return 2 * ROWS * self.count


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK", ROWS)
    for module in (survey, search):
        monkeypatch.setattr(module, "BATCH", ROWS)


def peak(work):
    """The most bytes that `work` holds at any time."""
    work()  # what is imported, compiled and cached is not of interest
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("estimator", [tt.SelfNormalized(), *long(tt.DoublyRobust())], ids=repr)
def test_an_evaluation(estimator):
    def ask(count):
        return tt.evaluate(DrawnSource(count), NEAR, estimator=estimator, executor=Engine())

    assert peak(lambda: ask(8)) < FLAT * peak(lambda: ask(2))


def test_a_search():
    procedure = tt.CPO(bandwidth=0.8, restarts=2)

    def learn(count):
        learner = tt.PolicyLearner(procedure=procedure, honest=False, executor=Engine())
        return learner.fit(DrawnSource(count))

    assert peak(lambda: learn(8)) < FLAT * peak(lambda: learn(2))


def test_in_memory_it_would_grow():
    # So that the tests above would fail if rows were kept.
    def ask(count):
        log = Quadratic().draw(2 * ROWS * count, 0)
        return tt.evaluate(log, NEAR, estimator=tt.SelfNormalized())

    assert peak(lambda: ask(8)) > FLAT * peak(lambda: ask(2))


def test_drawn_partitions_are_one_log():
    first, second = DrawnSource(2).partitions
    assert [batch.first_row for batch in second.batches(ROWS)] == [2 * ROWS, 3 * ROWS]
    assert len(first) == second.first_row
    assert np.isfinite(next(first.batches(5)).outcome).all()
