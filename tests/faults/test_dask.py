"""Workers that die, on a real Dask cluster: the same bits, or an error that says what happened."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import numpy as np
import pyarrow.parquet as pq
import pytest
from distributed import Client

import grouped
import titrant as tt
from faults.clusters import cluster
from faults.copies import altered
from faults.gates import Gates, kill
from faults.logs import KNOWN, UNKNOWN, write
from faults.tasks import HeldPolicy, deadly, moments
from titrant.cli import run
from titrant.errors import ExecutionError, InvalidArgument
from titrant.execute import Engine
from titrant.execute.dask import dask_executor
from titrant.execute.installed import installed

PARTITIONS = range(8)
NEAR = tt.Linear(coef=[0.1, 0.3], intercept=0.1)
METHODS = [
    {"estimator": tt.SelfNormalized(), "bandwidth": 0.5},
    {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()},
    {"estimator": tt.DoublyRobust()},
]
SEARCHED = 1e-7  # a search stops when its steps are this small
MERGED = 1e-10  # sums over files, added in another order than over rows in memory
LONG = 180.0  # seconds: a test that reaches it has failed


def same_bits(a, b):
    return (
        a.n == b.n
        and a.mean.tobytes() == b.mean.tobytes()
        and a.comoment.tobytes() == b.comoment.tobytes()
    )


def serial():
    return Engine().add_up(moments, PARTITIONS)


def found(paths, executor, how, policy=NEAR):
    """All numbers of an evaluation, in a form in which equal means equal bits."""
    columns = KNOWN if how.get("propensity") is None else UNKNOWN
    source = tt.scan_parquet([str(path) for path in paths], columns)
    estimate = tt.evaluate(source, policy, **how, executor=executor)
    return json.dumps(estimate.to_dict(), sort_keys=True)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write(tmp_path_factory.mktemp("faults") / "log", 6)


@pytest.fixture
def gates(tmp_path):
    folder = tmp_path / "gates"
    folder.mkdir()
    return Gates(str(folder))


def test_adding_in_another_order_would_show():
    # Without this the tests below could not fail.
    assert not same_bits(serial(), Engine().add_up(moments, PARTITIONS[::-1]))


@pytest.mark.long
def test_a_local_cluster_gives_the_bits_of_serial_work(paths):
    with dask_executor(workers=2) as executor, ThreadPoolExecutor(2) as threads:
        on_dask = Engine(executor=executor, timeout=LONG)
        assert same_bits(on_dask.add_up(moments, PARTITIONS), serial())
        for how in METHODS:
            alone = found(paths, Engine(), how)
            assert found(paths, on_dask, how) == alone
            assert found(paths, threads, how) == alone


@pytest.mark.long
def test_a_local_cluster_gives_the_bits_with_groups_and_weights(tmp_path):
    source = tt.scan_parquet(grouped.write(tmp_path / "log"), grouped.COLUMNS)
    with dask_executor(workers=2) as executor:
        on_dask = Engine(executor=executor, timeout=LONG)
        assert grouped.answers(source, on_dask) == grouped.answers(source, Engine())


@pytest.mark.long
def test_a_worker_dies_and_then_the_last_one_under_its_nanny(tmp_path, paths, gates):
    # Two partitions are known by the first age of their rows.
    ages = {pq.read_table(paths[k])["age"][0].as_py(): str(k) for k in (0, 1)}
    policy = HeldPolicy(gates, ages)
    with (
        cluster(tmp_path, bare=1, nannied=1) as running,
        dask_executor(address=running.address) as executor,
        ThreadPoolExecutor(1) as aside,
    ):
        with Client(running.address) as client:
            client.wait_for_workers(2, timeout=LONG)
        engine = Engine(executor=executor, timeout=LONG)
        result = aside.submit(found, paths, engine, METHODS[0], policy)
        # Both workers are in the middle of a partition when they die.
        working = gates.wait_for("0") | gates.wait_for("1")
        (lost,) = running.bare
        (nursed,) = working - {lost}
        kill(lost)
        kill(nursed)
        gates.open("0", "1")
        assert result.result(LONG) == found(paths, Engine(), METHODS[0], policy)
    # What was left undone came to a third process, the one that the nanny started.
    assert (gates.at("0") | gates.at("1")) - {lost, nursed, os.getpid()}


def test_a_task_that_always_kills_its_worker_is_an_error():
    twice = dask.config.set({"distributed.scheduler.allowed-failures": 1})
    with twice, dask_executor(workers=2) as executor:
        engine = Engine(executor=executor, timeout=30.0, retries=0)
        # Dask gives up on a task after some deaths, or loses track of it and waits forever: then
        # our own timeout ends it. It may blame a partition that waited in the same process.
        killed, lost = "failed .*KilledWorker: .* died", "gave no result within 30 seconds"
        with pytest.raises(ExecutionError, match=rf"Partition \d ({killed}|{lost})"):
            engine.add_up(deadly, PARTITIONS)


@pytest.mark.long
def test_no_worker_left_is_an_error_when_time_is_up(tmp_path):
    with (
        cluster(tmp_path, bare=1, nannied=0) as running,
        dask_executor(address=running.address) as executor,
    ):
        engine = Engine(executor=executor, timeout=5.0, retries=0)
        with pytest.raises(ExecutionError, match=r"Partition \d gave no result within 5 seconds"):
            engine.add_up(deadly, PARTITIONS)


def test_a_worker_with_another_titrant_is_refused(tmp_path, paths):
    with (
        cluster(tmp_path, bare=1, nannied=0, path=[altered(tmp_path / "other")]) as running,
        dask_executor(address=running.address) as executor,
        pytest.raises(ExecutionError) as caught,
    ):
        found(paths, executor, METHODS[0])
    # The error names the titrant of each.
    ours, theirs = re.findall(r"\(source \w+\)", str(caught.value))
    assert ours in installed()
    assert ours != theirs


@pytest.mark.long
def test_a_worker_whose_titrant_lacks_the_task_is_refused(tmp_path, paths):
    other = altered(tmp_path / "other")
    Path(other, "titrant", "execute", "engine.py").write_text('"""Nothing."""')
    with (
        cluster(tmp_path, bare=1, nannied=0, path=[other]) as running,
        dask_executor(address=running.address) as executor,
        pytest.raises(ExecutionError, match=r"cannot load its task .*Install titrant"),
    ):
        found(paths, Engine(executor=executor, timeout=LONG), METHODS[0])


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


@pytest.mark.long
def test_the_commands_on_a_cluster_print_what_they_print_in_memory(paths, capsys):
    columns = ["--treatment", "dose", "--outcome", "loss", "--context", "age,bmi"]
    log = [str(paths[0].parent), *columns, "--propensity", "q", "--estimator", "sn"]
    policies = ["--policy", "constant:0.1", "--policy", "logged-mean"]

    def printed(*words):
        assert run(["compare", *log, *policies, "--json", "-", *words]) == 0
        return json.loads(capsys.readouterr().out)

    def numbers(result):
        rows = [result["estimates"][name] for name in sorted(result["estimates"])]
        return [[row["value"], row["se"], row["effective_sample_size"]] for row in rows]

    in_memory, on_dask = printed(), printed("--workers", "2")
    np.testing.assert_allclose(numbers(on_dask), numbers(in_memory), rtol=MERGED)


@pytest.mark.long
def test_learning_on_a_cluster_finds_the_policy_found_by_threads(paths, capsys, tmp_path):
    log = [str(paths[0].parent), "--treatment", "dose", "--outcome", "loss", "--context", "age,bmi"]
    how = ["--propensity", "q", "--procedure", "cpo", "--policy-class", "constant"]

    def learned(name, *words):
        files = ["-o", str(tmp_path / f"{name}.json"), "--json", "-", "--allow-untrusted"]
        assert run(["learn", *log, *how, *files, *words]) == 0
        return json.loads(capsys.readouterr().out), (tmp_path / f"{name}.json").read_bytes()

    page, state = tmp_path / "report.html", tmp_path / "state"
    threads = learned("threads", "--in-parts")
    assert learned("dask", "--workers", "2", "--html", str(page), "--checkpoint", state) == threads
    assert len(list(state.glob("search-*.npz"))) == 3  # of all rows and of each half
    shown = page.read_text(encoding="utf-8")
    assert f"{len(paths)} files" in shown
    in_memory = learned("memory")[0]
    np.testing.assert_allclose(
        threads[0]["honest"]["value"], in_memory["honest"]["value"], rtol=SEARCHED
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "2"], "Name the context columns"),
        (["--context", "age", "--workers", "2", "--dask", "tcp://127.0.0.1:1"], "one of the two"),
    ],
)
def test_options_that_do_not_go_together(paths, words, said, capsys):
    log = [str(paths[0].parent), "--treatment", "dose", "--outcome", "loss"]
    assert run(["evaluate", *log, "--policy", "constant:0.1", *words]) == 2
    assert said in capsys.readouterr().err
