"""Compiled by one process for all: those that start together do not each compile the same.

Whoever finds a function not kept on disk takes the lock beside it, looks again, and compiles;
whoever waited for the lock finds what the other one left. The lock is the operating system's: it
ends with its process. Who cannot have it in time, or at all, compiles for itself.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from numba.core.compiler_lock import global_compiler_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK = "titrant.lock"
"""The file beside the compiled code that is locked while some of it is made."""
WAIT = 120.0
"""Seconds to wait for another process: several times what it should take."""
LOOK = 0.05
"""Seconds between two looks at the lock."""
PATIENCE = 1.0
"""Seconds of compiling after which a user is told."""
SAID = (
    "titrant compiles its loops: once, for about 20 seconds. `titrant warm-up` does it ahead of "
    "time."
)


@dataclass(slots=True)
class Compiling:
    """What this process compiles: a function, and whatever it calls. numba's lock guards it."""

    depth: int = 0
    begun: bool = False
    end: ExitStack = field(default_factory=ExitStack)
    """What is to be given back at the end of the outermost function."""
    told: bool = False

    @contextmanager
    def function(self) -> Iterator[None]:
        """Be at a function, which is loaded or compiled."""
        with global_compiler_lock:
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1
                if not self.depth:
                    self.begun = False
                    self.end.close()

    def begin(self, folder: str) -> bool:
        """Begin to compile; return whether another process may have done it in the meantime."""
        if self.begun:
            return False
        self.begun = True
        timer = Timer(PATIENCE, self._tell)
        timer.daemon = True
        timer.start()
        self.end.callback(timer.cancel)
        with suppress(OSError):  # a folder or a file system without locks
            # Nothing is ever written into it: it is there to be locked.
            file = os.open(Path(folder, LOCK), os.O_RDWR | os.O_CREAT)
            self.end.callback(os.close, file)
            _take(file)
        return True

    def _tell(self) -> None:
        if not self.told:
            self.told = True
            logging.getLogger("titrant").warning(SAID)


_compiling = Compiling()


def _take(file: int) -> None:
    """Lock a file until it is closed; give up after `WAIT` seconds."""
    if sys.platform == "win32":  # has no such lock: there each process compiles for itself
        return
    import fcntl  # noqa: PLC0415

    until = monotonic() + WAIT
    while monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(LOOK)
        else:
            return


def share(function: Any) -> None:  # noqa: ANN401  (numba's dispatcher is untyped)
    """Have a function that is kept on disk compiled by one process at a time."""
    kept, compile_it = function._cache, function.compile  # noqa: SLF001  (not published by numba)
    load = kept.load_overload

    def found(signature: object, context: object) -> Any:  # noqa: ANN401
        here = load(signature, context)
        if here is None and _compiling.begin(kept.cache_path):
            here = load(signature, context)
        return here

    def made(signature: object) -> Any:  # noqa: ANN401
        with _compiling.function():
            return compile_it(signature)

    kept.load_overload, function.compile = found, made
