"""Dask as the executor: a local cluster of processes, or one that is already running.

Dask's `client.get_executor()` is a `concurrent.futures.Executor` as it is; this module starts or
finds the cluster behind it and says in the house's words what went wrong.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from titrant import _check
from titrant.errors import ExecutionError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor
    from types import ModuleType

ANSWER = 30.0
"""Seconds in which a scheduler has to answer."""
_LOOPBACK = "127.0.0.1"


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
    answer : seconds in which the scheduler at `address` has to answer
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
    try:
        return distributed.Client(address, timeout=_check.positive(answer, "answer", "Dask"))
    except (OSError, ValueError) as reason:  # ValueError: it reads like no address
        raise ExecutionError(
            f"No Dask scheduler answers at `{address}` within {answer:g} seconds "
            f"({type(reason).__name__}). Check the address and that the scheduler runs."
        ) from reason


def _distributed() -> ModuleType:
    try:
        import distributed  # noqa: PLC0415  (an extra, and slow to load)
    except ModuleNotFoundError:
        raise InvalidArgument(
            "Dask is not installed. Install it with `pip install 'titrant[dask]'`."
        ) from None
    module: ModuleType = distributed
    return module
