"""Dask as the executor: a local cluster of processes, or one that is already running.

Dask's `client.get_executor()` is a `concurrent.futures.Executor` as it is; this module starts or
finds the cluster behind it, looks after it while it is waited for, and says in the house's words
what went wrong.
"""

from __future__ import annotations

import logging
import pickle
import sys
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from titrant import _check
from titrant.errors import ExecutionError, InvalidArgument
from titrant.execute.installed import WhichInstalled, cannot_load, check_same, installed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from types import ModuleType

ANSWER = 30.0
"""Seconds in which a scheduler has to answer."""
EMPTY = 300.0
"""Seconds that a cluster may be without any worker: new machines need minutes to start."""
ASK = 10.0
"""Seconds between two questions to a scheduler that is waited for."""
_GRACE = 2.0
"""Seconds in which Dask, its time being up, says so itself."""
_LOOPBACK = "127.0.0.1"
_ENCRYPTED = ("tls://", "wss://")


@contextmanager
def dask_executor(
    *, workers: int | None = None, address: str | None = None, answer: float = ANSWER
) -> Iterator[Executor]:
    """Lend an executor on a local Dask cluster of ``workers`` processes, or on one at ``address``.

    A local cluster listens on this machine alone and ends with the block; one at an address, such
    as ``tcp://scheduler:8786``, is left running. Its workers need titrant installed and must see
    the same files.

    Parameters
    ----------
    workers : processes of one thread each; a nanny starts a process anew when it dies
    address : of a running scheduler, instead of `workers`
    answer : seconds in which the scheduler at `address` has to answer, and after which a connection
        that is lost counts as lost for good
    """
    if (workers is None) == (address is None):
        raise InvalidArgument(
            "Dask needs the `workers` of a local cluster or the `address` of a running one; got "
            f"{'neither' if workers is None else 'both'}. Give one of the two."
        )
    distributed = _distributed()
    if workers is not None:
        with _local(distributed, workers) as cluster, distributed.Client(cluster) as client:
            yield client.get_executor()
    else:
        with _connected(distributed, str(address), answer) as client:
            yield client.get_executor()


def _local(distributed: ModuleType, workers: int) -> Any:  # noqa: ANN401  (untyped)
    """Return a cluster on this machine, one thread a process, without its web page."""
    return distributed.LocalCluster(
        n_workers=_check.count(workers, "workers", "dask_executor"),
        threads_per_worker=1,
        processes=True,
        host=_LOOPBACK,
        # Port 0 is a free one: two runs side by side do not warn about each other.
        dashboard_address=f"{_LOOPBACK}:0",
        scheduler_kwargs={"dashboard": False},
        # A failure reaches the caller as an error; the log lines before it would only repeat it.
        silence_logs=logging.CRITICAL,
    )


def _connected(distributed: ModuleType, address: str, answer: float) -> Any:  # noqa: ANN401
    seconds = _check.positive(answer, "answer", "Dask")
    found: Future[Any] = Future()
    # Dask waits forever where somebody accepts a connection and then says nothing. Its thread
    # ends with this process.
    try:
        _check_address(address)
    except ValueError as reason:
        raise _no_address(address, reason) from reason
    Thread(target=_connect, args=(found, distributed, address, seconds), daemon=True).start()
    try:
        return found.result(seconds + _GRACE)
    except (ValueError, TypeError) as reason:  # it reads like no address, or lacks certificates
        raise _no_address(address, reason) from reason
    except (OSError, TimeoutError) as reason:
        raise ExecutionError(
            f"No Dask scheduler answers at `{address}` within {answer:g} seconds "
            f"({type(reason).__name__}). Check the address and that the scheduler runs."
        ) from reason


def _check_address(address: str) -> None:
    """Raise a ValueError for what reads like no address: a client that fails leaves a loop behind.

    Such a loop may keep the next client of this process from starting.
    """
    from distributed.comm.addressing import parse_address, parse_host_port  # noqa: PLC0415
    from distributed.comm.registry import get_backend  # noqa: PLC0415

    scheme, place = parse_address(address)
    get_backend(scheme)
    parse_host_port(place)


def _no_address(address: str, reason: Exception) -> ExecutionError:
    if address.startswith(_ENCRYPTED):
        return ExecutionError(
            f"The Dask scheduler at `{address}` wants an encrypted connection, for which Dask has "
            "no certificates. Name them in Dask's configuration under `distributed.comm.tls`."
        )
    return ExecutionError(
        f"`{address}` is not the address of a Dask scheduler ({str(reason).splitlines()[0]}). Give "
        "host and port, such as `tcp://scheduler:8786`."
    )


def _connect(found: Future[Any], distributed: ModuleType, address: str, answer: float) -> None:
    """Find the scheduler, or what is wrong with it."""
    try:
        found.set_result(distributed.Client(address, timeout=answer))
    except BaseException as reason:  # noqa: BLE001  (it is raised where it is waited for)
        found.set_exception(reason)


def _distributed() -> ModuleType:
    try:
        import distributed  # noqa: PLC0415  (an extra, and slow to load)
    except ModuleNotFoundError:
        raise InvalidArgument(
            "Dask is not installed. Install it with `pip install 'titrant[dask]'`."
        ) from None
    module: ModuleType = distributed
    return module


# While it works


class Watch(Protocol):
    """Looks after an executor that is waited for."""

    @property
    def there(self) -> bool:
        """Whether the executor can be spoken to."""

    def begin(self, timeout: float | None) -> None:
        """Refuse an executor that cannot do the work of a pass."""

    def look(self) -> None:
        """Raise an `ExecutionError` if the executor is gone."""


class Trusting:
    """The watch of an executor that tells by itself when its workers are gone."""

    there = True

    def begin(self, timeout: float | None) -> None:
        """Trust it."""

    def look(self) -> None:
        """Trust it."""


_asked: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The workers of each client that have said which titrant they run."""


@dataclass(slots=True)
class DaskWatch:
    """Watches the connection to a Dask scheduler and its workers, not how long a task takes.

    A client that loses its scheduler tries for a while to find it again, and then closes without a
    word to those who wait for its results.
    """

    client: Any
    answer: float
    """Seconds in which the scheduler has to answer, or to be found again."""
    connected: float = field(default_factory=monotonic)
    """When the scheduler was last known to be connected."""
    manned: float = field(default_factory=monotonic)
    """When it was last known to have a worker."""
    heard: float = -ASK
    """When it was last asked."""

    @property
    def there(self) -> bool:
        """Whether the client is connected to its scheduler."""
        return str(self.client.status) == "running"

    def begin(self, timeout: float | None) -> None:
        """Refuse a client that is closed, and workers that run another titrant."""
        self._check_connection()
        if self.there:
            self._ask()
        if not _asked.get(self.client):
            self._ask_the_first(inf if timeout is None else monotonic() + timeout)

    def look(self) -> None:
        """Raise an error if the scheduler or all workers are gone."""
        self._check_connection()
        if self.there and monotonic() - self.heard >= ASK:
            self._ask()

    def _check_connection(self) -> None:
        if self.there:
            self.connected = monotonic()
        elif self.client.status != "connecting" or monotonic() - self.connected > self.answer:
            raise self._gone("The connection to the Dask scheduler{} is lost")

    def _ask(self) -> None:
        """Ask the scheduler for its workers, and new workers which titrant they run."""
        try:
            workers = self.client.sync(self.client.scheduler.ncores, callback_timeout=self.answer)
        except TimeoutError:
            seconds = f"{self.answer:g} seconds"
            raise self._gone(f"The Dask scheduler{{}} did not answer for {seconds}") from None
        except OSError:
            return  # the connection is being lost: the next look will tell
        self.heard = monotonic()
        if workers:
            self.manned = self.heard
            self._greet(set(workers))
        elif self.heard - self.manned > EMPTY:
            raise self._gone(f"The Dask scheduler{{}} had no worker for {EMPTY:g} seconds")

    def _ask_the_first(self, until: float) -> None:
        """Wait for a first worker and ask it, by a task that any worker can load.

        A cluster may start workers only when there is work. A worker that cannot load its task
        would drop it, and Dask say nothing.
        """
        answer = self.client.submit(pickle.loads, pickle.dumps(WhichInstalled()), pure=False)
        while not answer.done() and monotonic() < until:
            self.look()
            with suppress(TimeoutError):
                answer.exception(timeout=_GRACE)
        if answer.status == "finished":
            check_same(installed(), str(answer.result()), "a worker")
        elif answer.status == "error":
            raise cannot_load(str(answer.exception()))

    def _greet(self, workers: set[str]) -> None:
        """Ask workers that were not asked before which titrant they run."""
        known = _asked.setdefault(self.client, set())
        new = sorted(workers - known)
        if not new:
            return
        answers: dict[str, Any] = {}
        # Who does not answer in time is busy: its tasks make sure themselves.
        with suppress(TimeoutError, OSError):
            answers = self.client.run(
                pickle.loads,
                pickle.dumps(WhichInstalled()),
                workers=new,
                on_error="return",
                callback_timeout=self.answer,
            )
        for worker, answer in answers.items():
            if isinstance(answer, ImportError | AttributeError):
                raise cannot_load(f"{worker}: {answer}")
            if isinstance(answer, str):
                check_same(installed(), answer, worker)
        known.update(new)

    def _gone(self, what: str) -> ExecutionError:
        scheduler = self.client.scheduler
        place = "" if scheduler is None else f" at `{scheduler.address}`"
        return ExecutionError(
            f"{what.format(place)}. Check that it runs and can be reached, and start the work "
            "again; a search with a checkpoint goes on where it was."
        )


def watch_of(executor: Executor) -> Watch:
    """Return who looks after an executor."""
    # Whoever has an executor of Dask's has imported it.
    distributed = sys.modules.get("distributed.cfexecutor")
    if distributed is not None and isinstance(executor, distributed.ClientExecutor):
        client = executor._client  # noqa: SLF001  (it has no other name)
        return DaskWatch(client, max(ANSWER, client._timeout))  # noqa: SLF001
    return Trusting()
