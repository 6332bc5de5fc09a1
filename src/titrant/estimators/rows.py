"""What an estimator sees: one policy on some rows, with everything estimated beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from titrant.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.kernels import Boundary, Kernel, Scale


KEPT = 2**21
"""Numbers that are kept of the distances of some rows, at most."""


class Reached(NamedTuple):
    """The m rows in reach of a kernel: which, v = H^{−1/2}(t − τ) and K(v), each (m, d)."""

    near: NDArray[np.intp]
    v: Array
    values: Array

    @property
    def size(self) -> int:
        """How many numbers these are."""
        return self.near.size + self.v.size + self.values.size


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """t − τ of some rows, and what kernels made of them, which neither q nor a bound changes.

    So other models on the same rows, sides of the policy's dose and later passes share it.
    """

    t: Array
    tau: Array
    whole: tuple[Distances, NDArray[np.intp]] | None = None
    """The rows that these are some of, and which of them, where that is known."""
    kept: dict[tuple[Kernel, Scale], Reached] = field(default_factory=dict)

    def reached(self, kernel: Kernel, scale: Scale) -> Reached:
        """Return the rows in reach of a kernel, and its values there."""
        asked = kernel, scale
        found = self.kept.get(asked) or self._of_whole(asked)
        if found is None:
            v = (self.t - self.tau) @ scale.inverse_root
            near = np.flatnonzero((np.abs(v) <= kernel.support).all(axis=1))
            v = v[near]
            values = np.empty_like(v)
            for j in range(v.shape[1]):
                values[:, j] = kernel(v[:, j].copy())  # a user's kernel may write into it
            found = Reached(near, v, values)
        self._keep(asked, found)
        return found

    def _keep(self, asked: tuple[Kernel, Scale], found: Reached) -> None:
        """Keep what was found for those who ask again, while it is little."""
        others = sum(one.size for one in self.kept.values())
        if asked not in self.kept and others + found.size <= KEPT:
            self.kept[asked] = found

    def _of_whole(self, asked: tuple[Kernel, Scale]) -> Reached | None:
        """Return what is known of all rows, for these."""
        if self.whole is None or self.t.shape[1] > 1 or asked not in self.whole[0].kept:
            return None
        every, index = self.whole
        found = every.kept[asked]
        place = np.full(len(every.t), -1)
        place[found.near] = np.arange(len(found.near))
        at = place[index]
        near = np.flatnonzero(at >= 0)
        return Reached(near, found.v[at[near]], found.values[at[near]])


UNKNOWN = Distances(np.empty((0, 0)), np.empty((0, 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """n rows of a log beside the doses a policy would have given.

    tau, t, lower, upper are (n, d); y, q, r_tau, r_logged are (n,); r_slope is (n, d).
    A field that the estimator does not need may be None.
    """

    tau: Array
    """τ(x), the policy's dose."""
    t: Array
    """The logged dose."""
    y: Array
    """The outcome."""
    x: Array | None = None
    """The context (n, p); for bandwidth selectors that smooth over it."""
    center: float = 0.0
    """c, the mean outcome of the log, for estimators that take it off first."""
    q: Array | None = None
    """max(f(t | x), θ), the propensity of the logged dose, floored."""
    lower: Array | None = None
    upper: Array | None = None
    r_tau: Array | None = None
    """r̂(τ(x), x), the outcome model at the policy's dose."""
    r_logged: Array | None = None
    """r̂(t, x), the outcome model at the logged dose."""
    r_slope: Array | None = None
    """∂r̂/∂t at the policy's dose; for gradients only."""
    probability: Callable[[Array, Array], Array] | None = None
    """P(low < T ≤ high | x) of each row for edges (n,); for the discretized estimator."""
    density: Callable[[Array], Array] | None = None
    """f(t | x) of each row at doses (n, d), within the bounds; for the check of the support."""
    fixed: Array | None = None
    """The part of w (n,) that no kernel decides about: 1{t = a}/P(T = a | x) where the policy's
    dose is a point mass a, a ratio of densities where the policy changes the logged dose. None if
    a kernel decides everywhere;"""
    share: Array | None = None
    """else by how much the kernel's weight is multiplied (n,): w = fixed + share·K*(u)/(…)."""
    about: Array | None = None
    """The dose (n, d) that the kernel lies about, where that is not the policy's."""
    kept: NDArray[np.bool_] | None = None
    """Which rows (n,) keep their dose because the policy's would lie beyond bounds; None unless the
    policy changes the logged dose."""
    off_levels: NDArray[np.bool_] | None = None
    """Which rows (n,) keep their dose because it is none of the levels, nor is the policy's."""
    omega: Array | None = None
    """ω, how much each row counts (n,), of mean 1 over the log; None if all count alike."""
    group: NDArray[np.int64] | None = None
    """The key of the group that each row belongs to (n,); None if each is its own."""
    seen: Array | None = None
    """a = Δ/P(Δ = 1 | x, t), 0 where the outcome is missing; None if none is. q holds such a factor
    already, with the chance given x alone where q was fitted to rows with an outcome."""
    first_row: int = 0
    """The number of the first of these rows in the whole log."""
    numbers: NDArray[np.int64] | None = None
    """The number of each row in the whole log (n,); None if they follow the first."""
    floor: float = 0.0
    """θ, the floor already applied to q."""
    known: dict[tuple[Kernel, Boundary, Scale], Array] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    """Weights (n,) that were asked for already. Rows that are changed or copied know none."""
    distances: Distances = field(default=UNKNOWN, repr=False, compare=False)
    """t − τ, as kernels see it; made anew where t or τ is another."""

    def __post_init__(self) -> None:
        if self.distances.t is not self.t or self.distances.tau is not self.aim:
            object.__setattr__(self, "distances", Distances(self.t, self.aim))

    @property
    def aim(self) -> Array:
        """The dose (n, d) that kernels lie about."""
        return self.tau if self.about is None else self.about

    @property
    def alike(self) -> bool:
        """Whether each row counts once, for itself."""
        return self.omega is None and self.group is None

    @property
    def counts(self) -> Array:
        """ω (n,), 1 where all rows count alike."""
        return np.ones(len(self.y)) if self.omega is None else self.omega

    def need(self, name: str, owner: str) -> Array:
        """Return the array `name`, or say that `owner` cannot do without it."""
        array: Array | None = getattr(self, name)
        if array is None:
            raise InvalidArgument(f"`{owner}` needs `{name}` for its terms; the rows carry none.")
        return array

    def like(self, other: Rows | None) -> Rows:
        """Return these rows, with what is known of the distances of others if they are the same."""
        if other is None or (self.about is None) is not (other.about is None):
            return self
        mine, theirs = (self.t, self.tau, self.aim), (other.t, other.tau, other.aim)
        if not all(map(np.array_equal, mine, theirs)):
            return self
        known = other.distances
        return replace(self, t=other.t, tau=other.tau, about=other.about, distances=known)

    def forgotten(self) -> Rows:
        """Return these rows without anything that was found of them."""
        return replace(self, distances=UNKNOWN)

    def smoothed(self) -> Rows:
        """Return the rows that a kernel decides about, each with that part of its weight alone."""
        if self.share is None:
            return self
        some = self.take(np.flatnonzero(self.share))
        q = None if some.q is None or some.share is None else some.q / some.share
        return replace(some, tau=some.aim, q=q, fixed=None, share=None, about=None)

    def take(self, index: NDArray[np.intp]) -> Rows:
        """Return the rows with these indices, without the laws, which know all rows only.

        ``center`` and ``floor`` stay those of the log.
        """
        chosen: dict[str, Any] = {
            f.name: value[index]
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), np.ndarray)
        }
        aim = chosen.get("about", chosen["tau"])
        some = Distances(chosen["t"], aim, (self.distances, index))
        return replace(self, probability=None, density=None, distances=some, **chosen)
