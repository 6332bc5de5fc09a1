"""Where passes over rows run: an ordered sum over partitions on any executor."""

from __future__ import annotations

import os
import socket
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, reduce
from math import inf
from operator import add
from pickle import PicklingError
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from titrant import _check
from titrant.data import LoggedData
from titrant.data.source import root_of
from titrant.errors import ExecutionError
from titrant.execute.dask import watch_of
from titrant.execute.installed import cannot_load, check_sender, installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from threadpoolctl import ThreadpoolController

    from titrant.data.source import Partition, Source
    from titrant.execute.dask import Watch

# The ordered sum over blocks of rows: one answer, bit for bit, wherever the blocks are.


B = TypeVar("B")
S = TypeVar("S")

BLOCK = 65_536
"""Rows of a block: large enough for numpy to be busy, small enough to stay in cache."""
BATCH = 32_768
"""Rows of a block whose statistic copies all columns: half the memory, and as fast; 16,384 rows
take a tenth longer."""


def add_up(statistic: Callable[[B], S], blocks: Iterable[B]) -> S:
    """Return statistic(block₁) + statistic(block₂) + …, in this order."""
    return reduce(add, map(statistic, blocks))


@dataclass(frozen=True, slots=True)
class OverBatches(Generic[S]):
    """A statistic of batches as a task of partitions: the sum over a partition's batches."""

    statistic: Callable[[LoggedData], S]
    size: int

    def __call__(self, partition: Partition) -> S:
        """Return the sum over the batches of one partition, in order."""
        return add_up(self.statistic, partition.batches(self.size))


# BLAS on one thread: sums in one order, so that every engine gives the same bits. And models of
# thousands of rows are fitted before several threads of BLAS have found each other: where other
# work shares the processor, these wait in loops, and a call of one second takes a minute.

_LOCK = Lock()
_HELD: list[Any] = []
"""What gives the threads back, once for each call that wants one alone: calls may overlap."""


def this_process() -> tuple[str, int]:
    """Return the host and the number of this process; containers share numbers, not hosts."""
    return socket.gethostname(), os.getpid()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS of this process to one thread for a while, until all who asked for it are done."""
    with _LOCK:
        _HELD.append(_HELD[0] if _HELD else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _LOCK:
            limit = _HELD.pop()
            if not _HELD:
                _anyone_may_set()
                limit.restore_original_limits()
                _anyone_may_set()


def _anyone_may_set() -> None:
    """Let any thread set the number of BLAS's: newer threadpoolctl lets one thread only.

    The one that is done last gives back what the first one took.
    """
    from threadpoolctl import OpenBLASController  # noqa: PLC0415

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@cache
def pin_for_good() -> None:
    """Keep BLAS of this process, a worker, to one thread."""
    # Not for a while: two tasks in threads of one worker would restore each other's limits.
    _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """Return the libraries to pin, looked up once: that takes 40 ms."""
    import numpy.linalg  # noqa: F401, PLC0415  (loads BLAS before it is looked for)
    import scipy.linalg  # noqa: F401, PLC0415  (brings its own)
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415

    return ThreadpoolController()


# An ordered map-reduce over partitions, on any executor of `concurrent.futures`.
#
# Partitions are fixed before the work begins and their results are added in their order, with BLAS
# on one thread. So serial, threads, processes and a cluster give the same numbers, bit for bit,
# also after a worker has died and its partitions were done again.

P = TypeVar("P")

LOOK = 1.0
"""Seconds after which a wait looks whether the executor is still there."""
AHEAD = 256
"""Partitions handed out at a time: enough for any cluster, and not the memory of all of them."""
_ENGINE = (OSError, TimeoutError, BrokenExecutor, CancelledError)
"""Failures of an engine rather than of the task. The library wraps what it cannot read itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where partitions are worked on, and how long to wait for them.

    Parameters
    ----------
    executor : any `concurrent.futures.Executor`, such as threads, processes or Dask's
        `client.get_executor()`; None works in this thread
    timeout : seconds to wait for one partition once those before it are done; None waits as long
        as the executor is there
    retries : how often a partition is handed out again after a worker failed; not after a timeout
    progress : called with the partitions done and in all, in this thread
    pin : whether BLAS is kept to one thread
    """

    executor: Executor | None = None
    timeout: float | None = None
    retries: int = 2
    progress: Callable[[int, int], None] | None = None
    pin: bool = True

    def __post_init__(self) -> None:
        given: object = self.executor
        if given is not None and not isinstance(given, Executor):
            rule = "a concurrent.futures.Executor or None"
            raise _check.invalid("executor", "Engine", rule, given)
        if self.timeout is not None:
            _check.positive(self.timeout, "timeout", "Engine")
        _check.count(self.retries, "retries", "Engine", at_least=0)

    def add_up(self, task: Callable[[P], S], partitions: Sequence[P]) -> S:
        """Return task(partition₁) + task(partition₂) + …, in this order.

        For another process, ``task``, partitions and results must be picklable.
        """
        with pinned() if self.pin else nullcontext():
            total: Any = None
            for done, result in enumerate(self._results(task, partitions), start=1):
                total = result if total is None else total + result
                if self.progress is not None:
                    self.progress(done, len(partitions))
            return total  # type: ignore[no-any-return]

    def _results(self, task: Callable[[P], S], partitions: Sequence[P]) -> Iterator[S]:
        """Return the result of each partition, in order."""
        if self.executor is None:
            return map(task, partitions)
        watch = watch_of(self.executor)
        return Handed(self, self.executor, Task(task, self.pin), watch).results(partitions)


@dataclass(frozen=True, slots=True)
class Task(Generic[P, S]):
    """A task that can be sent to another process, where it arrives as one that was sent."""

    task: Callable[[P], S]
    pin: bool

    def __call__(self, partition: P) -> S:
        """Return the result of one partition."""
        return self.task(partition)

    def __reduce__(self) -> tuple[type[Sent[P, S]], tuple[Any, ...]]:
        """Return what is pickled: the task, and where and of which titrant it comes."""
        return Sent, (self.task, self.pin, this_process(), installed())


@dataclass(frozen=True, slots=True)
class Sent(Generic[P, S]):
    """A task that has been sent: it makes sure that it arrived at the same titrant.

    It also keeps BLAS of the process that it was sent to to one thread.
    """

    task: Callable[[P], S]
    pin: bool
    home: tuple[str, int]
    sender: str
    """The titrant of the process that sent it."""

    def __call__(self, partition: P) -> S:
        """Return the result of one partition."""
        here = this_process()
        check_sender(self.sender, here[0])
        if self.pin and here != self.home:
            pin_for_good()
        return self.task(partition)


@dataclass(frozen=True, slots=True)
class Handed(Generic[P, S]):
    """Partitions handed to an executor, a few ahead of the one that is waited for."""

    engine: Engine
    executor: Executor
    task: Task[P, S]
    watch: Watch

    def results(self, partitions: Sequence[P]) -> Iterator[S]:
        """Yield the result of each partition, in order; cancel the rest when one fails."""
        waiting: deque[tuple[int, P, Future[S]]] = deque()
        self.watch.begin(self.engine.timeout)
        with ExitStack() as cleanup:
            cleanup.callback(self._cancel, waiting)
            for number, partition in enumerate(partitions):
                waiting.append((number, partition, self._submit(number, partition)))
                if len(waiting) >= AHEAD:
                    yield self._result(waiting)
            while waiting:
                yield self._result(waiting)

    def _result(self, waiting: deque[tuple[int, P, Future[S]]]) -> S:
        """Return the result of the first partition, handing it out again if a worker failed."""
        number, partition, future = waiting[0]
        for left in range(self.engine.retries, -1, -1):
            self._wait(number, future)
            try:
                result = future.result()
            except Exception as error:
                if _unpicklable(error):
                    raise _cannot_travel(error) from error
                if _unknown_there(error):
                    raise cannot_load(_first_line(error)) from error
                if not _engines_own(error):
                    raise
                # A broken executor stays broken.
                if not left or isinstance(error, BrokenExecutor):
                    raise self._failure(number, error) from error
                future = self._submit(number, partition)
                waiting[0] = (number, partition, future)
            else:
                waiting.popleft()
                return result
        raise AssertionError  # the last round returns or raises

    def _wait(self, number: int, future: Future[S]) -> None:
        """Wait until a partition is done, as long as the executor is there and time is left."""
        timeout = self.engine.timeout
        until = inf if timeout is None else monotonic() + timeout
        while not future.done():
            left = until - monotonic()
            if left <= 0:
                raise self._late(number)
            # A task may take as long as it takes; an executor that is gone will never finish it.
            self.watch.look()
            wait([future], min(left, LOOK))

    def _submit(self, number: int, partition: P) -> Future[S]:
        try:
            return self.executor.submit(self.task, partition)
        except Exception as error:
            # RuntimeError: it was shut down.
            if isinstance(error, RuntimeError) or _engines_own(error):
                raise self._failure(number, error) from error
            raise

    def _cancel(self, waiting: deque[tuple[int, P, Future[S]]]) -> None:
        """Call back what was handed out, if there is someone to tell."""
        if self.watch.there:
            for _, _, future in waiting:
                future.cancel()

    def _late(self, number: int) -> ExecutionError:
        return ExecutionError(
            f"Partition {number + 1:,} gave no result within {self.engine.timeout:g} seconds on "
            f"`{type(self.executor).__name__}`. Give the engine a longer `timeout`, smaller "
            "partitions or more workers, and check that its workers stay alive."
        )

    def _failure(self, number: int, error: BaseException) -> ExecutionError:
        self.watch.look()  # an executor that is gone explains it better
        return ExecutionError(
            f"Partition {number + 1:,} failed on `{type(self.executor).__name__}` "
            f"({type(error).__name__}: {_first_line(error)}). Check the memory and the logs of "
            "the workers; smaller partitions need less of it."
        )


def _engines_own(error: BaseException) -> bool:
    """Return whether an error is the engine's: a worker died, a connection broke, time ran out."""
    # Dask's own errors (a killed worker, a lost connection) are known by where they come from.
    return isinstance(error, _ENGINE) or type(error).__module__.startswith("distributed")


def _unpicklable(error: BaseException) -> bool:
    """Return whether something could not be sent to another process; Python has no type for it."""
    told = isinstance(error, (AttributeError, TypeError)) and "pickle" in str(error)
    return told or isinstance(error, PicklingError)


def _cannot_travel(error: BaseException) -> ExecutionError:
    return ExecutionError(
        f"A policy, model or partition cannot be sent to another process ({_first_line(error)}). "
        "Define its functions in a module of their own, or work on threads."
    )


def _unknown_there(error: BaseException) -> bool:
    """Return whether a worker has no titrant, or one that lacks a part of the task."""
    told = isinstance(error, AttributeError) and "Can't get attribute" in str(error)
    return (told or isinstance(error, ImportError)) and "titrant" in str(error)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"


def as_engine(executor: Executor | Engine | None, log: Source) -> Engine:
    """Return where to work on a log: as told, else on threads for files, in this one for arrays."""
    from titrant.execute.spark import OnSpark, SparkSource  # noqa: PLC0415  (which imports this)

    if isinstance(root := root_of(log), SparkSource):
        return OnSpark.of(root, executor)
    if isinstance(executor, Engine):
        return executor
    if executor is not None:
        return Engine(executor=executor)
    if isinstance(log, LoggedData):
        # One partition: there is nothing to hand to threads. And many small logs are evaluated in
        # memory without any model: finding BLAS to pin it would take longer.
        return Engine(pin=False)
    return Engine(executor=_threads(*this_process()))


@cache
def _threads(_: str, __: int) -> ThreadPoolExecutor:
    """Return the threads of this process, which work on all files that it reads.

    New threads for each call would each keep memory of their own; in a forked process those of
    its parent do not run.
    """
    return ThreadPoolExecutor(os.cpu_count())
