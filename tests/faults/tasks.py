"""Tasks that workers import, since what a test file defines is not found in another process."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from titrant.moments import Moments

if TYPE_CHECKING:
    from faults.gates import Gates


def block(partition):
    """Rows (1000, 3) of wildly different sizes: another order of adding shows in the last bits."""
    rng = np.random.default_rng(partition)
    return rng.standard_normal((1000, 3)) * 10.0 ** rng.integers(-6, 7, size=(1000, 1))


def moments(partition):
    return Moments.of(block(partition))


@dataclass(frozen=True)
class Held:
    """The same moments; some partitions wait at a gate of their own."""

    gates: Gates
    partitions: tuple[int, ...] = field(default=())

    def __call__(self, partition):
        if partition in self.partitions:
            self.gates.come_to(str(partition))
        return moments(partition)


def deadly(partition):
    """Kill the process that works on partition 2, always."""
    if partition == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return moments(partition)
