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
from titrant.optimize.projected import ProjectedRuns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.optimize.objective import Objective

    Arrays = Sequence[NDArray[Any]]
    Tolerances = tuple[float, float, int]
    """Of the gradient and of the value, and the number of steps."""

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
        runs: CompiledRuns | ProjectedRuns
        if known is None:
            runs = ProjectedRuns.at(starts, self.constraint)
        else:
            runs = CompiledRuns.at(starts, self.memory, known)
            told = self.progress is not None or self.checkpoint is not None
            if not told and objective.in_memory is not None:
                evaluations = runs.descend(self._tolerances, *objective.in_memory)
                return _best_of(runs, starts, evaluations)
        return _best_of(runs, starts, self._by_rounds(objective, starts, runs))

    def _by_rounds(
        self, objective: Objective, starts: Array, runs: CompiledRuns | ProjectedRuns
    ) -> int:
        """Take all runs to their ends, one call of the objective a round; return the evaluations.

        The state is kept and the user told after each round.
        """
        done = np.zeros(2, dtype=np.int64)  # rounds and evaluations
        state, file = (*runs.state, done), None
        if self.checkpoint is not None:
            numbers = (self.steps, self.memory, self.gradient_tolerance, self.value_tolerance)
            file = self.checkpoint.file(starts, f"{numbers} {runs.within}")
            Checkpoint.load(file, state)
        while active := len(points := runs.propose()):
            best = runs.receive(*objective(points), self._tolerances)
            done += 1, active
            if file is not None:
                Checkpoint.save(file, state)
            if self.progress is not None:
                self.progress(int(done[0]), float(best))
        return int(done[1])

    @property
    def _tolerances(self) -> Tolerances:
        return float(self.gradient_tolerance), float(self.value_tolerance), self.steps


@dataclass(frozen=True, slots=True)
class CompiledRuns:
    """The state of m runs with P parameters inside a box or a ball, and room for their trials."""

    state: tuple[Array, Array, Array, NDArray[np.int64]]
    """See `compiled.steps`."""
    limits: tuple[Array, float]
    points: Array
    """Trial points (m, P), those of running runs first."""
    index: NDArray[np.int64]
    """Their runs (m,)."""
    active: NDArray[np.int64]
    """How many there are (1,)."""

    @classmethod
    def at(cls, starts: Array, memory: int, limits: tuple[Array, float]) -> CompiledRuns:
        """Return runs that are about to begin at starts (m, P)."""
        m, p = starts.shape
        vectors, numbers = np.zeros((m, 6, p)), np.zeros((m, 10))
        vectors[:, 0] = starts
        numbers[:, 0] = np.inf
        pairs, counts = np.zeros((m, 2, memory, p)), np.zeros((m, 6), dtype=np.int64)
        index, active = np.zeros(m, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls((vectors, pairs, numbers, counts), limits, np.zeros((m, p)), index, active)

    @property
    def within(self) -> str:
        """The set, as it belongs to what a search is about."""
        return f"{self.limits[1]} {self.limits[0].tolist()}"

    def propose(self) -> Array:
        """Return the next point (a, P) of each running run."""
        from titrant.optimize.compiled.search import propose  # noqa: PLC0415  (numba)

        self.active[0] = propose(self.state, self.limits, self.points, self.index)
        return self.points[: self.active[0]]

    def receive(self, f: Array, g: Array, tolerances: Tolerances) -> float:
        """Take in values (a,) and gradients (a, P) at the trials; return the best value so far."""
        from titrant.optimize.compiled.search import receive  # noqa: PLC0415  (numba)

        index = self.index[: self.active[0]]
        f, g = np.ascontiguousarray(f), np.ascontiguousarray(g)
        return float(receive(self.state, self.limits, index, f, g, tolerances))

    def descend(self, tolerances: Tolerances, *rows: Any) -> int:  # noqa: ANN401
        """Take all runs to their ends in compiled code; return the number of evaluations."""
        from titrant.optimize.compiled.search import descend  # noqa: PLC0415  (numba)

        room = (self.points, self.index)
        return int(descend(self.state, self.limits, tolerances, *room, *rows))

    def ends(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return where the runs ended (m, P), the values there (m,) and how they ended (m,)."""
        vectors, _, numbers, counts = self.state
        return vectors[:, 0].copy(), numbers[:, 0].copy(), counts[:, 0]


def _best_of(runs: CompiledRuns | ProjectedRuns, starts: Array, evaluations: int) -> Solution:
    """Return the best of all runs; the first start if the objective is finite at none."""
    ends, values, statuses = runs.ends()
    best = int(np.argmin(np.where(np.isfinite(values), values, np.inf)))
    return Solution(
        params=ends[best].copy(),
        value=float(values[best]),
        status=_STATUS[statuses[best]],
        starts=starts,
        ends=ends,
        values=values,
        evaluations=evaluations,
    )
