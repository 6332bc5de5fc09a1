"""A dose that is a sum of Gaussian bumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.learn.classes.base import FittedClass, PolicyClass, used_columns, varying
from titrant.policies import RBF
from titrant.policies.rbf import scales_of
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData

RBF_RIDGE = 0.03
"""The ridge of bumps over that of lines. On four simulated designs, 400 and 1,500 rows, .1 and .01
were alike (a line, 1,500 rows: excess .005 and .002) and better than 1 (.034)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RBFClass(PolicyClass):
    """Sums of Gaussian bumps: a ball of the RKHS with kernel exp(−Σⱼ((xⱼ − zⱼ)/scaleⱼ)²/2).

    ``centers`` are as many contexts drawn by ``seed`` unless given as an array (m, p). ``scale`` is
    a number or one a context; unless given, the sd of each context times the median distance
    between contexts in these units, so that no context counts for its unit. ``names`` are the
    contexts of the log that the policy uses, in the order of the centers; all unless given.
    """

    centers: int | Array = 50
    scale: float | Array | None = None
    seed: int = 0
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.centers):
            _check.finite_array(self.centers, "centers", "RBFClass", ndim=2)
        else:
            _check.count(self.centers, "centers", "RBFClass")
        if self.scale is not None:
            scales_of(self.scale, None, "RBFClass")
        _check.count(self.seed, "seed", "RBFClass", at_least=0)

    def on(self, log: LoggedData) -> FittedRBF:
        """Return the class with its centers and scale."""
        used = varying(self.names, log, "An RBF policy")
        rng = np.random.default_rng(self.seed)
        x = used_columns(log.context, used)
        centers = self._centers(x, rng)
        scale = _usual_scale(x, rng) if self.scale is None else self.scale
        return FittedRBF(centers, scale, tuple(log.names[j] for j in used), used)

    def _centers(self, x: Array, rng: np.random.Generator) -> Array:
        """Return the centers (m, p) for contexts x (n, p)."""
        if np.ndim(self.centers) == 0:
            number = min(int(self.centers), len(x))
            held = Held.of(x).columns(x)  # a bump around an absurd value would serve one row
            return np.unique(held[np.sort(rng.choice(len(x), number, replace=False))], axis=0)
        given = np.asarray(self.centers, dtype=np.float64)
        if given.shape[1] != x.shape[1]:
            rule = f"as wide as the context, which has {x.shape[1]} columns"
            raise _check.invalid("centers", "RBFClass", rule, f"shape {given.shape}")
        return given


@dataclass(frozen=True, slots=True)
class FittedRBF(FittedClass):
    """φ = (1, k(x, C)·L⁻ᵀ) with k(C, C) = LLᵀ, so that ‖β‖ is the norm in the RKHS."""

    centers: Array
    scale: float | Array
    names: tuple[str, ...]
    places: tuple[int, ...]
    """Where the contexts it uses are among those of the log."""

    def features(self, X: Array) -> Array:
        """Return φ (n, 1 + m)."""
        bumps = np.linalg.solve(self._root(), self._kernel(used_columns(X, self.places)).T).T
        return np.column_stack([np.ones(len(X)), bumps])

    def policy(self, params: Array) -> RBF:
        """Return the policy as a sum of bumps."""
        coef = np.linalg.solve(self._root().T, params[1:])
        return RBF(self.centers, coef, scale=self.scale, intercept=params[0], features=self.names)

    @property
    def penalized(self) -> Array:
        """All but the intercept."""
        counted = np.ones(1 + len(self.centers))
        counted[0] = 0.0
        return counted

    @property
    def roughness(self) -> Array:
        """A part of the norm: that of a line is many times the variance of its doses."""
        return RBF_RIDGE * self.penalized

    def _kernel(self, X: Array) -> Array:
        """Return k(x, C) (n, m): one dose for each center, with a coefficient of 1."""
        return RBF(self.centers, np.eye(len(self.centers)), scale=self.scale)(X)

    def _root(self) -> Array:
        # A little on the diagonal: centers that almost coincide would make L singular.
        gram = self._kernel(self.centers) + 1e-8 * np.eye(len(self.centers))
        return np.asarray(np.linalg.cholesky(gram))


def _usual_scale(x: Array, rng: np.random.Generator) -> Array:
    """Return the sd of each context (p,) times their median distance in sds, from up to 500 rows.

    A constant context keeps apart nothing, whatever its scale.
    """
    held = Held.of(x).columns(x)
    spread = spread_of(held)
    unit = np.where(spread > 0.0, spread, 1.0)
    some = held[rng.choice(len(x), min(500, len(x)), replace=False)] / unit
    distance = np.sqrt(np.sum((some[:, None, :] - some) ** 2, axis=2))
    median = float(np.median(distance[np.triu_indices(len(some), 1)]))
    return unit * (median if median > 0 else 1.0)
