"""L-BFGS over many starts at once, what it returns, and the checkpoints it goes on from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from titrant import _check
from titrant._writing import draft
from titrant.errors import DataError, ExecutionError
from titrant.optimize.constraints import Constraint, Free, limits_of
from titrant.optimize.projected import ProjectedRuns, check_members

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.optimize.objective import Objective

    Arrays = Sequence[NDArray[Any]]
    State = tuple[Array, Array, Array, NDArray[np.int64], Array, float]
    """That of the runs, see `compiled.steps`; the limits of the set, and its radius."""

# What a search returns: the best point found, and a status that is a value, not an exception.


class Status(Enum):
    """How a search ended; the value is the advice that goes with it."""

    CONVERGED = "The search converged."
    STALLED = "No step lowered the objective any further; the point may be a kink. It is usable."
    OUT_OF_STEPS = "The search ran out of steps. Raise `steps`, or rescale the contexts."
    INFEASIBLE = (
        "No policy of the class reaches the effective sample size asked for. Raise the bandwidth "
        "or lower the floor."
    )
    UNSOLVED = (
        "A linear program could not be solved. Check that the constraints leave room, or rescale "
        "the contexts."
    )
    NOT_FINITE = "The objective was not finite at any start. Check the bandwidth and the bounds."


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The best of several runs of a minimizer."""

    params: Array
    """The best parameters (P,)."""
    value: float
    """The objective there (penalties included)."""
    status: Status
    starts: Array
    """Where each run began (m, P)."""
    ends: Array
    """Where each run ended (m, P)."""
    values: Array
    """The objective at each end (m,)."""
    evaluations: int
    """Objective evaluations, all runs together."""
    bound: float | None = None
    """A lower bound on the objective over the whole class, when the search proves one."""

    @property
    def gap(self) -> float | None:
        """How far the value can be from the least one: a certificate when it is 0."""
        return None if self.bound is None else self.value - self.bound

    def to_dict(self) -> dict[str, Any]:
        """Return the solution as plain values."""
        return {
            "params": self.params.tolist(),
            "value": self.value,
            "status": self.status.name.lower(),
            "advice": self.status.value,
            "values": self.values.tolist(),
            "evaluations": self.evaluations,
            "bound": self.bound,
        }


# The state of a long search on disk, so that a search that was killed goes on where it was.
#
# The name of a file is made of everything the search depends on: one folder serves any number of
# searches, and a search finds its own state or none.

_BROKEN = (OSError, ValueError, KeyError, EOFError, BadZipFile)
"""What numpy raises at a file that is no archive of arrays."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where the state of a search is kept, and what the search is about."""

    folder: str
    about: str = ""
    """What distinguishes the search besides its starts and settings: the data, the estimator."""

    def file(self, starts: NDArray[Any], settings: str) -> Path:
        """Return the file of the search with these starts (m, P) and settings."""
        digest = sha256()
        for part in (self.about.encode(), settings.encode(), repr(starts.shape).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
        digest.update(np.ascontiguousarray(starts).tobytes())
        return Path(self.folder, f"search-{digest.hexdigest()[:32]}.npz")

    @staticmethod
    def load(file: Path, into: Arrays) -> bool:
        """Fill arrays with the state in a file; return False, and change nothing, without one."""
        if not file.exists():
            return False
        try:
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
                arrays = [kept[f"arr_{i}"] for i in range(len(into))]
            for array, saved in zip(into, arrays, strict=True):
                array[...] = saved
        except _BROKEN as reason:
            raise DataError(
                f"`{file}` cannot be read as the state of a search ({type(reason).__name__}). "
                "Delete it to begin the search anew."
            ) from reason
        return True

    @staticmethod
    def save(file: Path, state: Arrays) -> None:
        """Write arrays to a file, as a whole or not at all."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with draft(file) as stream:
                np.savez(stream, *state)
        except OSError as reason:
            raise ExecutionError(
                f"The state of the search cannot be written to `{file}`: {reason.strerror}. "
                "Make room there, or give another folder; the state before is kept."
            ) from reason


# L-BFGS over many starts at once, inside a convex set.
#
# All runs take their trial steps together, so each round is one call of the objective, and one
# pass over the data, whatever the number of runs. A run proposes a point of its line search,
# projected onto the set, and receives its value; both halves are compiled.

_STATUS = (
    Status.OUT_OF_STEPS,
    Status.CONVERGED,
    Status.STALLED,
    Status.OUT_OF_STEPS,
    Status.NOT_FINITE,
)
"""What the statuses of `compiled.steps` mean, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LBFGS:
    """Limited-memory BFGS inside a box or a ball, all starts together.

    Inside any other convex set, which is known by its `project` alone, projected BFGS.
    """

    steps: int = 500
    """Accepted steps of a run."""
    memory: int = 10
    gradient_tolerance: float = 1e-6
    """A run has converged when no entry of its projected gradient is larger."""
    value_tolerance: float = 2e-9
    """Or when a step lowers the objective by less than this share of |value|, taken as at least 1
    and, beyond that, as no more than the decrease so far: an outcome's zero says nothing."""
    constraint: Constraint = field(default_factory=Free)
    progress: Callable[[int, float], None] | None = None
    """Called after each round with the round and the best value so far."""
    checkpoint: Checkpoint | None = None
    """Where the state is kept after each round; a search that finds its state there goes on."""

    def __post_init__(self) -> None:
        _check.count(self.steps, "steps", "LBFGS")
        _check.count(self.memory, "memory", "LBFGS")
        _check.nonnegative(self.gradient_tolerance, "gradient_tolerance", "LBFGS")
        _check.nonnegative(self.value_tolerance, "value_tolerance", "LBFGS")

    def minimize(self, objective: Objective, starts: Array) -> Solution:
        """Return the best end over all starts (m, P)."""
        known = limits_of(self.constraint, starts.shape[1])
        if known is None:
            return self._project(objective, starts)
        runs = Runs.at(starts, self.memory)
        state = (*runs.state, known[0], float(known[1]))
        told = self.progress is not None or self.checkpoint is not None
        rows = None if told else objective.in_memory
        if rows is None:
            evaluations = self._by_rounds(objective, starts, runs, state)
        else:
            evaluations = self._descend(rows, runs, state)
        return runs.solution(starts, evaluations)

    def _descend(self, rows: tuple[Any, ...], runs: Runs, state: State) -> int:
        """Take all runs to their ends in compiled code; return the number of evaluations."""
        from titrant.optimize.compiled.search import descend  # noqa: PLC0415  (numba)

        _, evaluations = descend(state, self._tolerances, runs.points, runs.index, *rows)
        return int(evaluations)

    def _by_rounds(self, objective: Objective, starts: Array, runs: Runs, state: State) -> int:
        """Do the same with one call of the objective a round, and tell about each."""
        from titrant.optimize.compiled.steps import propose, receive  # noqa: PLC0415  (numba)

        done = np.zeros(2, dtype=np.int64)  # rounds and evaluations
        file = self._resume(starts, f"{state[5]} {state[4].tolist()}", (*runs.state, done))
        while active := propose(*state, runs.points, runs.index):
            f, g = map(np.ascontiguousarray, objective(runs.points[:active]))
            best = receive(*state, runs.index[:active], f, g, self._tolerances)
            self._tell(done, active, best, file, runs.state)
        return int(done[1])

    def _project(self, objective: Objective, starts: Array) -> Solution:
        """Return the best end inside a set that is known by its projection alone."""
        runs = ProjectedRuns.at(starts, self.constraint)
        done = np.zeros(2, dtype=np.int64)
        file = self._resume(starts, repr(self.constraint), (*runs.state, done))
        while active := len(trials := runs.trials()):
            best = runs.receive(*objective(trials), self._tolerances)
            self._tell(done, active, best, file, runs.state)
        ends = runs.vectors[:, 0]
        check_members(self.constraint, ends)
        return best_of(ends, runs.numbers[:, 0], runs.counts[:, 0], starts, int(done[1]))

    def _tell(
        self,
        done: NDArray[np.int64],
        active: int,
        best: float,
        file: Path | None,
        state: tuple[NDArray[Any], ...],
    ) -> None:
        """Count a round, keep the state and tell about it."""
        done += 1, active
        if file is not None:
            Checkpoint.save(file, (*state, done))
        if self.progress is not None:
            self.progress(int(done[0]), float(best))

    @property
    def _tolerances(self) -> tuple[float, float, int]:
        return float(self.gradient_tolerance), float(self.value_tolerance), self.steps

    def _resume(self, starts: Array, limits: str, state: tuple[NDArray[Any], ...]) -> Path | None:
        """Fill the state with what was kept of this search, and return where it is kept."""
        if self.checkpoint is None:
            return None
        numbers = (self.steps, self.memory, self.gradient_tolerance, self.value_tolerance)
        file = self.checkpoint.file(starts, f"{numbers} {limits}")
        Checkpoint.load(file, state)
        return file


@dataclass(frozen=True, slots=True)
class Runs:
    """The state of m runs with P parameters, and room for one round's trials."""

    state: tuple[Array, Array, Array, NDArray[np.int64]]
    """See `compiled.steps`."""
    points: Array
    """Trial points (m, P), those of running runs first."""
    index: NDArray[np.int64]
    """Their runs (m,)."""

    @classmethod
    def at(cls, starts: Array, memory: int) -> Runs:
        """Return runs that are about to begin at starts (m, P)."""
        m, p = starts.shape
        vectors, numbers = np.zeros((m, 6, p)), np.zeros((m, 10))
        vectors[:, 0] = starts
        numbers[:, 0] = np.inf
        pairs, counts = np.zeros((m, 2, memory, p)), np.zeros((m, 6), dtype=np.int64)
        return cls((vectors, pairs, numbers, counts), np.zeros((m, p)), np.zeros(m, dtype=np.int64))

    def solution(self, starts: Array, evaluations: int) -> Solution:
        """Return the best of all runs; the first start if the objective is finite at none."""
        vectors, _, numbers, counts = self.state
        return best_of(vectors[:, 0], numbers[:, 0], counts[:, 0], starts, evaluations)


def best_of(
    ends: Array, values: Array, statuses: NDArray[np.int64], starts: Array, evaluations: int
) -> Solution:
    """Return the best of m runs that ended at points (m, P) with values (m,)."""
    best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
    return Solution(
        params=ends[best].copy(),
        value=float(values[best]),
        status=_STATUS[statuses[best]],
        starts=starts,
        ends=ends.copy(),
        values=values.copy(),
        evaluations=evaluations,
    )
