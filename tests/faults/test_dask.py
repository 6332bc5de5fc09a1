"""Workers that die, on a real Dask cluster: the same bits, or an error that says what happened."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import dask
import pytest
from distributed import Client

from faults.clusters import cluster
from faults.gates import Gates, kill
from faults.tasks import Held, deadly, moments
from titrant.errors import ExecutionError, InvalidArgument
from titrant.execute import Engine
from titrant.execute.dask import dask_executor

PARTITIONS = range(8)
LONG = 60.0  # seconds: a test that reaches it has failed


def same_bits(a, b):
    return (
        a.n == b.n
        and a.mean.tobytes() == b.mean.tobytes()
        and a.comoment.tobytes() == b.comoment.tobytes()
    )


def serial():
    return Engine().add_up(moments, PARTITIONS)


@pytest.fixture
def gates(tmp_path):
    folder = tmp_path / "gates"
    folder.mkdir()
    return Gates(str(folder))


def test_adding_in_another_order_would_show():
    # Without this the tests below could not fail.
    assert not same_bits(serial(), Engine().add_up(moments, PARTITIONS[::-1]))


def test_a_local_cluster_gives_the_bits_of_serial_work():
    with dask_executor(workers=2) as executor, ThreadPoolExecutor(2) as threads:
        on_dask = Engine(executor=executor, timeout=LONG).add_up(moments, PARTITIONS)
        in_threads = Engine(executor=threads, timeout=LONG).add_up(moments, PARTITIONS)
    assert same_bits(on_dask, serial())
    assert same_bits(in_threads, serial())


def test_a_worker_dies_and_then_the_last_one_under_its_nanny(tmp_path, gates):
    with (
        cluster(tmp_path, bare=1, nannied=1) as running,
        dask_executor(address=running.address) as executor,
        ThreadPoolExecutor(1) as aside,
    ):
        with Client(running.address) as client:
            client.wait_for_workers(2, timeout=LONG)
        held = Held(gates, (0, 1))
        engine = Engine(executor=executor, timeout=LONG)
        result = aside.submit(engine.add_up, held, PARTITIONS)
        # Both workers are in the middle of a partition when they die.
        working = gates.wait_for("0") | gates.wait_for("1")
        (lost,) = running.bare
        (nursed,) = working - {lost}
        kill(lost)
        kill(nursed)
        gates.open("0", "1")
        assert same_bits(result.result(LONG), serial())
    # What was left undone came to a third process, the one that the nanny started.
    assert (gates.at("0") | gates.at("1")) - {lost, nursed}


def test_a_task_that_always_kills_its_worker_is_an_error():
    begun = time.monotonic()
    twice = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with twice, dask_executor(workers=2) as executor:
        engine = Engine(executor=executor, timeout=LONG, retries=0)
        # Dask may blame a partition that waited behind the deadly one in the same process.
        with pytest.raises(ExecutionError, match=r"Partition \d failed .*KilledWorker: .* died"):
            engine.add_up(deadly, PARTITIONS)
        # The cluster goes on.
        assert same_bits(engine.add_up(moments, PARTITIONS), serial())
    assert time.monotonic() - begun < LONG


def test_no_worker_left_is_an_error_when_time_is_up(tmp_path):
    with (
        cluster(tmp_path, bare=1, nannied=0) as running,
        dask_executor(address=running.address) as executor,
    ):
        engine = Engine(executor=executor, timeout=5.0, retries=0)
        with pytest.raises(ExecutionError, match=r"Partition \d gave no result within 5 seconds"):
            engine.add_up(deadly, PARTITIONS)


def test_no_scheduler_at_the_address():
    with (
        pytest.raises(ExecutionError, match=r"No Dask scheduler answers at `tcp://127\.0\.0\.1:1`"),
        dask_executor(address="tcp://127.0.0.1:1", answer=0.5),
    ):
        pass


@pytest.mark.parametrize("given", [{}, {"workers": 2, "address": "tcp://127.0.0.1:1"}])
def test_a_cluster_is_local_or_elsewhere(given):
    with pytest.raises(InvalidArgument, match="Give one of the two"), dask_executor(**given):
        pass
