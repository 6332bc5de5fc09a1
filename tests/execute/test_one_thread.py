"""BLAS keeps to one thread while models are fitted and asked, whatever it was told before."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info, threadpool_limits

import titrant as tt
from titrant.execute.engine import pinned


def threads():
    """How many threads each library of linear algebra has."""
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


SEEN: list[set[int]] = []


class Watched(LinearRegression):
    """Notes the threads there are when it is fitted and asked."""

    def fit(self, X, y):
        SEEN.append(threads())
        return super().fit(X, y)

    def predict(self, X):
        SEEN.append(threads())
        return super().predict(X)


def a_log():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(120, 2))
    t = x[:, 0] + rng.normal(size=120)
    return tt.LoggedData(x, t, (t - 0.3) ** 2 + x[:, 1] + rng.normal(size=120))


CALLS = {
    "evaluate": lambda log, own: tt.evaluate(log, 0.5, estimator=own),
    "check": lambda log, own: tt.check(log, 0.5, estimator=own),
    "curve": lambda log, own: tt.curve(log, tt.Constant, [0.0, 0.5], estimator=own),
    "learn": lambda log, own: tt.PolicyLearner(policy=tt.Constant(0.0), grade=own).fit(log),
}


pytestmark = pytest.mark.usefixtures("two_threads")


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("BLAS has no second thread on this machine")
        yield


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_models_are_fitted_and_asked_on_one_thread(call):
    SEEN.clear()
    call(a_log(), tt.DoublyRobust(outcome=Watched()))
    assert SEEN
    assert {frozenset(seen) for seen in SEEN} == {frozenset({1})}
    assert threads() == {2}


def test_an_answer_is_the_same_whatever_threads_there_are():
    by_two = tt.evaluate(a_log(), 0.5)
    with threadpool_limits(limits=1, user_api="blas"):
        by_one = tt.evaluate(a_log(), 0.5)
    assert (by_two.value, by_two.se, by_two.interval()) == (
        by_one.value,
        by_one.se,
        by_one.interval(),
    )


def test_an_error_gives_the_threads_back():
    with pytest.raises(ZeroDivisionError), pinned(), pinned():
        raise ZeroDivisionError
    assert threads() == {2}


OVERLAPPING = """
import threading
from threadpoolctl import threadpool_info
import scipy.linalg
from titrant.execute.engine import pinned

def threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}

def first():
    with pinned():
        meet.wait()  # the second is inside, too
    meet.wait()  # the first has left

def second():
    with pinned():
        meet.wait()
        meet.wait()
        seen.append(threads())

before, seen, meet = threads(), [], threading.Barrier(2, timeout=30)
for _ in range(2):
    both = [threading.Thread(target=one) for one in (first, second)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    seen.append(threads())
print(before, *seen)
"""


def test_the_last_of_calls_that_overlap_gives_the_threads_back():
    settings = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    line = [sys.executable, "-c", OVERLAPPING]
    run = subprocess.run(line, env=settings, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["{2}", "{1}", "{2}", "{1}", "{2}"], run.stderr
