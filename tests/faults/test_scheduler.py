"""A Dask cluster that is gone ends in an error, soon; one that is slow is waited for."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest
from distributed import Client

import titrant as tt
from faults.clusters import LOOPBACK, cluster
from faults.gates import Gates, frozen, kill
from faults.logs import KNOWN, write
from faults.tasks import HeldPolicy, deadly, moments
from titrant.errors import ExecutionError
from titrant.execute import Engine
from titrant.execute.dask import ANSWER, dask_executor

SHORT = 2.0  # seconds to wait for a scheduler in these tests
LONG = 180.0  # seconds: a test that reaches it has failed
SOON = 20.0  # seconds in which everything is over on a busy machine, beginning with the fault
HOW = {"estimator": tt.SelfNormalized(), "bandwidth": 0.5}
PARTITIONS = range(8)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return [str(path) for path in write(tmp_path_factory.mktemp("faults") / "log", 6)]


@pytest.fixture
def gates(tmp_path):
    folder = tmp_path / "gates"
    folder.mkdir()
    return Gates(str(folder))


@pytest.fixture
def impatient(monkeypatch):
    """Ask often, and take silence for an answer soon."""
    monkeypatch.setattr("titrant.execute.dask.ASK", 0.2)
    monkeypatch.setattr("titrant.execute.dask.ANSWER", SHORT)
    monkeypatch.setattr("titrant.execute.dask.EMPTY", SHORT)
    monkeypatch.setattr("titrant.execute.engine.LOOK", 0.2)


def held(paths, gates):
    """A policy that waits at a gate with the rows of the third file."""
    age = pq.read_table(paths[2])["age"][0].as_py()
    return HeldPolicy(gates, {age: "middle"})


def evaluated(paths, policy, executor):
    return tt.evaluate(tt.scan_parquet(paths, KNOWN), policy, **HOW, executor=executor)


def on(running):
    """All of one run on a cluster whose worker is there: connect, evaluate, and leave."""
    with Client(running.address) as client:
        client.wait_for_workers(1, timeout=LONG)

    def run(paths, policy):
        with dask_executor(address=running.address, answer=SHORT) as executor:
            return evaluated(paths, policy, executor)

    return run


def test_every_wait_ends_within_a_minute():
    assert ANSWER <= 45.0


def test_a_scheduler_that_is_killed_in_the_middle(tmp_path, paths, gates):
    with cluster(tmp_path, bare=1, nannied=0) as running, ThreadPoolExecutor(1) as aside:
        result = aside.submit(on(running), paths, held(paths, gates))
        gates.wait_for("middle")
        kill(running.scheduler)
        began = time.monotonic()
        with pytest.raises(ExecutionError, match=r"connection to the Dask scheduler.* is lost"):
            result.result(SOON)
        assert time.monotonic() - began < SOON
        gates.open("middle")


def test_a_client_of_ones_own(tmp_path, paths, gates):
    with (
        cluster(tmp_path, bare=1, nannied=0) as running,
        ThreadPoolExecutor(1) as aside,
        Client(running.address, timeout=SHORT) as client,
    ):
        result = aside.submit(evaluated, paths, held(paths, gates), client.get_executor())
        gates.wait_for("middle")
        kill(running.scheduler)
        with pytest.raises(ExecutionError, match=r"connection to the Dask scheduler.* is lost"):
            result.result(SOON)
        gates.open("middle")  # a worker that waits there ends slowly


@pytest.mark.long
def test_a_scheduler_that_is_killed_between_two_passes(tmp_path, paths):
    with (
        cluster(tmp_path, bare=1, nannied=0) as running,
        dask_executor(address=running.address, answer=SHORT) as executor,
    ):
        evaluated(paths, tt.Constant(0.1), executor)
        kill(running.scheduler)
        began = time.monotonic()
        with pytest.raises(ExecutionError, match=r"Dask scheduler.* is lost"):
            evaluated(paths, tt.Constant(0.1), executor)
        # The client has closed by now, and does not come back.
        with pytest.raises(ExecutionError, match=r"Dask scheduler.* is lost"):
            evaluated(paths, tt.Constant(0.1), executor)
        assert time.monotonic() - began < SOON


@pytest.mark.usefixtures("impatient")
@pytest.mark.long
def test_a_scheduler_that_says_nothing(tmp_path, paths, gates):
    with cluster(tmp_path, bare=1, nannied=0) as running, ThreadPoolExecutor(1) as aside:
        result = aside.submit(on(running), paths, held(paths, gates))
        gates.wait_for("middle")
        with (
            frozen(running.scheduler),
            pytest.raises(ExecutionError, match="did not answer for 2 seconds"),
        ):
            result.result(SOON)
        gates.open("middle")


@pytest.mark.usefixtures("impatient")
@pytest.mark.long
def test_no_worker_is_left(tmp_path, paths, gates):
    with cluster(tmp_path, bare=1, nannied=0) as running, ThreadPoolExecutor(1) as aside:
        result = aside.submit(on(running), paths, held(paths, gates))
        gates.wait_for("middle")
        kill(*running.bare)
        with pytest.raises(ExecutionError, match="had no worker for 2 seconds"):
            result.result(SOON)


@pytest.mark.long
@pytest.mark.usefixtures("impatient")
def test_a_slow_task_is_waited_for(tmp_path, paths, gates):
    with cluster(tmp_path, bare=1, nannied=0) as running, ThreadPoolExecutor(1) as aside:
        result = aside.submit(on(running), paths, held(paths, gates))
        gates.wait_for("middle")
        # Longer than any of the waits.
        time.sleep(3 * SHORT)
        assert not result.done()
        gates.open("middle")
        expected = evaluated(paths, held(paths, gates), Engine())
        assert result.result(SOON).to_dict() == expected.to_dict()


@pytest.mark.long
def test_a_task_that_kills_every_worker_needs_no_timeout():
    with dask_executor(workers=1) as executor:
        with pytest.raises(ExecutionError, match="KilledWorker"):
            Engine(executor=executor, retries=0).add_up(deadly, PARTITIONS)
        # The cluster is still there for others.
        alone = Engine().add_up(moments, PARTITIONS)
        assert Engine(executor=executor).add_up(moments, PARTITIONS).n == alone.n


@pytest.mark.parametrize("address", ["foo", "", "tcp://localhost", "http://localhost:8786"])
def test_what_reads_like_no_address_is_called_so(address):
    with (
        pytest.raises(ExecutionError, match=f"^`{address}` is not the address of a Dask scheduler"),
        dask_executor(address=address),
    ):
        pass


def test_an_encrypted_address_without_certificates():
    with (
        pytest.raises(ExecutionError, match=r"no certificates\. Name them in Dask's configuration"),
        dask_executor(address="tls://localhost:8786"),
    ):
        pass


def test_an_address_where_somebody_listens_and_says_nothing():
    with socket.create_server((LOOPBACK, 0)) as server:
        address = f"tcp://{LOOPBACK}:{server.getsockname()[1]}"
        began = time.monotonic()
        with (
            pytest.raises(ExecutionError, match="No Dask scheduler answers at"),
            dask_executor(address=address, answer=1.0),
        ):
            pass
        assert time.monotonic() - began < SOON
