"""A Dask scheduler and workers as processes of their own, on this machine's loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from faults.gates import wait_until

LOOPBACK = "127.0.0.1"
_NO_PAGES = ("--no-dashboard", "--dashboard-address", f"{LOOPBACK}:0")


@dataclass(frozen=True)
class Cluster:
    address: str
    scheduler: int
    """Its process number."""
    bare: tuple[int, ...]
    """The process numbers of the workers without a nanny."""


@contextmanager
def cluster(folder, *, bare, nannied, path=()):
    """Lend a cluster with workers that nobody starts anew, and workers that a nanny does.

    They look for modules in ``path`` first, and then where this process finds them.
    """
    with ExitStack() as stack:
        file = Path(folder, "scheduler.json")
        where = ("--host", LOOPBACK, "--port", "0", "--scheduler-file", file)
        scheduler = _start(stack, folder, (), "scheduler", *where, *_NO_PAGES)
        wait_until(lambda: file.exists() and file.read_text(), "no scheduler")
        address = json.loads(file.read_text())["address"]
        alone = [_worker(stack, folder, path, address, "--no-nanny") for _ in range(bare)]
        for _ in range(nannied):
            _worker(stack, folder, path, address, "--nanny")
        yield Cluster(address, scheduler.pid, tuple(process.pid for process in alone))


def _worker(stack, folder, path, address, *options):
    return _start(stack, folder, path, "worker", address, "--host", LOOPBACK, *_NO_PAGES,
                  "--nthreads", "1", "--local-directory", folder, *options)  # fmt: skip


def _start(stack, folder, path, *command):
    # Workers find titrant and the tasks of these tests where this process finds them.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *sys.path])}
    line = [sys.executable, "-m", "dask", *map(str, command)]
    with Path(folder, "log.txt").open("a") as log:
        process = subprocess.Popen(line, env=environment, stdout=log, stderr=log)
    stack.callback(_stop, process)
    return process


def _stop(process):
    process.terminate()  # a nanny ends its worker first
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
