"""BLAS on one thread: sums in one order, so that every engine gives the same bits."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadpoolctl import ThreadpoolController


def this_process() -> tuple[str, int]:
    """Return the host and the number of this process; containers share numbers, not hosts."""
    return socket.gethostname(), os.getpid()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS of this process to one thread for a while."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


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
