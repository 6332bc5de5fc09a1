"""The ordered map-reduce: one answer on every executor, and what happens when one fails."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from titrant.errors import DataError, ExecutionError, InvalidArgument
from titrant.execute import Engine


@dataclass(frozen=True)
class Word:
    """A statistic whose sum shows the order in which it was added."""

    text: str

    def __add__(self, other):
        return Word(f"({self.text}{other.text})")


def slow_first(partition):
    time.sleep(0.05 if partition == "a" else 0.0)
    return Word(partition)


def sum_of_products(seed):
    x = np.random.default_rng(seed).normal(size=(3_000, 20))
    return x.T @ x


def kill(partition):
    os._exit(partition)


def refuse(partition):
    raise DataError(f"no rows in {partition}")


def blas_threads(partition):  # noqa: ARG001
    from threadpoolctl import threadpool_info  # noqa: PLC0415

    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


class Flaky(Executor):
    """Fails the first `failures` submissions, then works at once."""

    def __init__(self, failures, error):
        self.left, self.error = failures, error

    def submit(self, task, /, *args):
        future = Future()
        if self.left:
            self.left -= 1
            future.set_exception(self.error)
        else:
            future.set_result(task(*args))
        return future


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2) as pool:
        yield pool


def test_results_are_added_in_the_order_of_the_partitions():
    # The first partition is the last one to be ready.
    with ThreadPoolExecutor(3) as pool:
        assert Engine(executor=pool).add_up(slow_first, "abcd") == Word("(((ab)c)d)")
    assert Engine().add_up(slow_first, "abcd") == Word("(((ab)c)d)")


def test_serial_threads_and_processes_give_the_same_bits(processes):
    serial = Engine().add_up(sum_of_products, range(7))
    with ThreadPoolExecutor(2) as pool:
        assert (Engine(executor=pool).add_up(sum_of_products, range(7)) == serial).all()
    assert (Engine(executor=processes).add_up(sum_of_products, range(7)) == serial).all()


@dataclass(frozen=True)
class Seen:
    threads: frozenset

    def __add__(self, other):
        return Seen(self.threads | other.threads)


def seen_threads(partition):
    return Seen(frozenset(blas_threads(partition)))


def test_blas_has_one_thread_in_every_worker(processes):
    assert Engine().add_up(seen_threads, range(2)).threads == {1}
    assert Engine(executor=processes).add_up(seen_threads, range(4)).threads == {1}
    with ThreadPoolExecutor(2) as pool:
        assert Engine(executor=pool).add_up(seen_threads, range(4)).threads == {1}


def test_more_partitions_than_are_handed_out_at_a_time(monkeypatch):
    monkeypatch.setattr("titrant.execute.engine.AHEAD", 3)
    with ThreadPoolExecutor(2) as pool:
        assert Engine(executor=pool).add_up(int, range(20)) == 190


def test_progress_is_told_in_the_calling_thread():
    told, here = [], threading.get_ident()
    engine = Engine(progress=lambda done, total: told.append((done, total, threading.get_ident())))
    assert engine.add_up(int, [1, 2, 3]) == 6
    assert told == [(1, 3, here), (2, 3, here), (3, 3, here)]


def test_a_failure_of_the_engine_is_tried_again():
    assert Engine(executor=Flaky(2, OSError("lost"))).add_up(int, [1, 2]) == 3
    with pytest.raises(ExecutionError, match=r"Partition 1 failed on `Flaky` \(OSError: lost\)"):
        Engine(executor=Flaky(9, OSError("lost"))).add_up(int, [1, 2])


def test_an_error_of_the_task_is_raised_at_once():
    calls = []
    with pytest.raises(DataError, match="no rows in x"):
        Engine(progress=lambda *_: calls.append(1)).add_up(refuse, ["x", "y"])
    with ThreadPoolExecutor(1) as pool, pytest.raises(DataError, match="no rows in x"):
        Engine(executor=pool).add_up(refuse, ["x", "y"])
    flaky = Flaky(1, ZeroDivisionError("1/0"))
    with pytest.raises(ZeroDivisionError):
        Engine(executor=flaky).add_up(int, [1, 2])
    assert not calls


def test_a_partition_that_takes_too_long():
    gate = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        with pytest.raises(ExecutionError, match=r"Partition 1 gave no result within 0.1 seconds"):
            Engine(executor=pool, timeout=0.1).add_up(lambda _: gate.wait(10), [1, 2, 3])
        assert time.monotonic() - began < 5
        gate.set()


def test_a_worker_that_dies():
    with ProcessPoolExecutor(1) as pool, pytest.raises(ExecutionError, match="BrokenProcessPool"):
        Engine(executor=pool).add_up(kill, [1])


def test_an_executor_that_was_shut_down():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(ExecutionError, match="Partition 1 failed on `ThreadPoolExecutor`"):
        Engine(executor=pool).add_up(int, [1])


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"executor": 2}, "executor"), ({"timeout": 0.0}, "timeout"), ({"retries": -1}, "retries")],
)
def test_settings_are_checked(settings, named):
    with pytest.raises(InvalidArgument, match=f"The `{named}` of `Engine`"):
        Engine(**settings)


def test_partials_travel(processes):
    assert Engine(executor=processes).add_up(partial(pow, 2), range(4)) == 15


def test_what_cannot_travel_is_said(processes):
    with pytest.raises(ExecutionError, match=r"cannot be sent to another process .*on threads"):
        Engine(executor=processes).add_up(lambda x: x, [1, 2])
