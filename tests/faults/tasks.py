"""Tasks that workers import, since what a test file defines is not found in another process."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
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
class HeldPolicy:
    """A constant dose; the rows of some partitions, known by their first age, wait at a gate."""

    gates: Gates
    ages: dict[float, str]
    dose: float = 0.1

    def __call__(self, X):
        name = self.ages.get(float(X[0, 0]))
        if name is not None:
            self.gates.come_to(name)
        return np.full(len(X), self.dose)


def deadly(partition):
    """Kill the process that works on partition 2, always."""
    if partition == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return moments(partition)
