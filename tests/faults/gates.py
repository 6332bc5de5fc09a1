"""Places in the work where a test holds a process: files, since sleeping proves nothing."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 180.0  # seconds; a machine that needs more is stuck, not slow


def wait_until(true, what):
    """Return what `true()` returns once it is true."""
    until = time.monotonic() + PATIENCE
    while not (result := true()):
        if time.monotonic() > until:
            raise TimeoutError(what)
        time.sleep(0.01)
    return result


def kill(pid):
    os.kill(pid, signal.SIGKILL)


@contextmanager
def frozen(pid):
    """Stop a process, which keeps its connections and says nothing, and let it go on."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@dataclass(frozen=True)
class Gates:
    """Named gates in a folder that all processes see. Whoever comes to one leaves its number."""

    folder: str

    def come_to(self, name):
        """Say that this process is here, and wait until the gate is open."""
        Path(self.folder, f"{name}.at.{os.getpid()}").touch()
        wait_until(Path(self.folder, f"{name}.open").exists, f"gate {name} was never opened")

    def at(self, name):
        """The processes that came to the gate, in no order."""
        return {int(path.suffix[1:]) for path in Path(self.folder).glob(f"{name}.at.*")}

    def wait_for(self, name, count=1):
        """The processes at the gate, once there are as many."""
        return wait_until(
            lambda: len(self.at(name)) >= count and self.at(name), f"{count} at gate {name}"
        )

    def open(self, *names):
        for name in names:
            Path(self.folder, f"{name}.open").touch()
