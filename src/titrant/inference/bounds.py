"""The paper's theory as numbers: Theorems 1 and 2, the generalization bound, its complexities.

Corrected where the paper errs: the bias is the curvature of the dose response alone, the
variance constant is that of the estimator in use, 1/q lies in [0, M_Q], and the Rademacher
complexity of a norm ball under the paper's 2/n definition is 2WX/√n, twice what it prints.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.kernels import Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """Theorems 1 and 2: bias, variance and mean squared error of an estimate over h.

    With doses in R^d and one bandwidth h for all of them:
    bias(h) = (κ₂/2)·h²·Σⱼ E[∂²m/∂tⱼ²], variance(h) = R^d·E[E[(·)²|τ,X]/f]/(n·h^d) + rest/n.
    """

    kernel: Kernel
    curvature: float
    """Σⱼ E[∂²m/∂tⱼ²(τ(X), X)]; for the doubly robust estimator that of the residual."""
    noise: float
    """E[E[s² | τ, X]/f(τ | X)], s = Y for IPW, Y − V self-normalized, Y − r̂ doubly robust."""
    n: int
    rest: float = 0.0
    """What no bandwidth changes: −V² for IPW, Var m(τ(X), X) − E[δ²] with δ = m − r̂ for the doubly
    robust estimator, which is Var r̂(τ(X), X) where r̂ is right."""
    dimension: int = 1

    def __post_init__(self) -> None:
        _check.number(self.curvature, "curvature", "Expansion")
        _check.nonnegative(self.noise, "noise", "Expansion")
        _check.number(self.rest, "rest", "Expansion")
        _check.count(self.n, "n", "Expansion")
        _check.count(self.dimension, "dimension", "Expansion")

    def bias(self, h: float) -> float:
        """Return the leading term of the smoothing bias."""
        return 0.5 * self.kernel.second_moment * h**2 * self.curvature

    def variance(self, h: float) -> float:
        """Return the leading terms of the variance."""
        roughness = self.kernel.roughness**self.dimension
        return (roughness * self.noise / h**self.dimension + self.rest) / self.n

    def mse(self, h: float) -> float:
        """Return bias² + variance."""
        return self.bias(h) ** 2 + self.variance(h)

    def optimal_bandwidth(self) -> float:
        """Return h* = (d·C₃/(4C₁²n))^{1/(d+4)}; infinite when there is no curvature."""
        c1 = 0.5 * self.kernel.second_moment * self.curvature
        c3 = self.kernel.roughness**self.dimension * self.noise
        if c1 == 0.0:
            return math.inf
        return float((self.dimension * c3 / (4 * c1**2 * self.n)) ** (1 / (self.dimension + 4)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Generalization:
    """The uniform bound: with probability 1 − δ, for every policy of the class,

    |V − v̂| ≤ (L_K·M_Q·M_y/h²)·R_n + (M_y·M_Q·M_K/h)·√(2·ln(2/δ)/n) + |bias|.
    """  # noqa: D400

    kernel: Kernel
    h: float
    n: int
    largest_outcome: float
    """M_y: |y| ≤ M_y."""
    largest_inverse_propensity: float
    """M_Q: 0 ≤ 1/q ≤ M_Q."""
    complexity: float
    """R_n of the policy class, see `LinearBall` and `RBFBall`."""
    bias: float = 0.0
    """The largest |smoothing bias| over the class."""

    def __post_init__(self) -> None:
        for name in ("h", "n", "largest_outcome", "largest_inverse_propensity"):
            _check.positive(getattr(self, name), name, "Generalization")
        _check.nonnegative(self.complexity, "complexity", "Generalization")

    def at(self, delta: float) -> float:
        """Return the bound that fails with probability at most ``delta``."""
        _check.probability(delta, "delta", "Generalization")
        scale = self.largest_outcome * self.largest_inverse_propensity
        # A single policy is not searched for: its bound holds for kernels with jumps as well.
        smoothness = self.kernel.lipschitz if self.complexity > 0.0 else 0.0
        search = scale * smoothness / self.h**2 * self.complexity
        chance = scale * self.kernel.bound / self.h * math.sqrt(2 * math.log(2 / delta) / self.n)
        return search + chance + abs(self.bias)


class PolicyBall(ABC):
    """A norm ball of policies; the larger it is, the more it can fit by chance."""

    @abstractmethod
    def bound(self, X: Array) -> float:
        """Return an upper bound on the complexity R_n given contexts X (n, p)."""

    @abstractmethod
    def estimate(self, X: Array, *, draws: int = 1000, seed: int = 0) -> float:
        """Return R_n = E sup |(2/n) Σσᵢτ(xᵢ)| by drawing the signs σ."""


@dataclass(frozen=True, slots=True)
class LinearBall(PolicyBall):
    """τ(x) = β'x with ‖β‖₂ ≤ radius."""

    radius: float

    def __post_init__(self) -> None:
        _check.positive(self.radius, "radius", "LinearBall")

    def bound(self, X: Array) -> float:
        """Return 2W·max‖x‖/√n."""
        return float(2 * self.radius * np.linalg.norm(X, axis=1).max() / math.sqrt(len(X)))

    def estimate(self, X: Array, *, draws: int = 1000, seed: int = 0) -> float:
        """Return (2W/n)·E‖Σσᵢxᵢ‖: the supremum over the ball is attained along the sum."""
        sums = _signs(len(X), draws, seed) @ X
        return float(2 * self.radius / len(X) * np.linalg.norm(sums, axis=1).mean())


@dataclass(frozen=True, slots=True)
class RBFBall(PolicyBall):
    """The ball of a Gaussian RKHS: τ = Σⱼ aⱼk(xⱼ, ·), ‖τ‖ ≤ radius, k(x, z) = e^{−‖x−z‖²/2s²}."""

    radius: float
    scale: float

    def __post_init__(self) -> None:
        _check.positive(self.radius, "radius", "RBFBall")
        _check.positive(self.scale, "scale", "RBFBall")

    def bound(self, X: Array) -> float:
        """Return (2W/n)·√(tr K) = 2W/√n, because k(x, x) = 1."""
        return 2 * self.radius / math.sqrt(len(X))

    def estimate(self, X: Array, *, draws: int = 1000, seed: int = 0) -> float:
        """Return (2W/n)·E√(σ'Kσ)."""
        squared = np.sum(X**2, axis=1)
        distance = np.maximum(squared[:, None] + squared - 2 * X @ X.T, 0.0)
        signs = _signs(len(X), draws, seed)
        forms = np.einsum("bi,bi->b", signs @ np.exp(-distance / (2 * self.scale**2)), signs)
        return float(2 * self.radius / len(X) * np.sqrt(np.maximum(forms, 0.0)).mean())


def _signs(n: int, draws: int, seed: int) -> Array:
    """Return independent random signs (draws, n)."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(draws, n))
