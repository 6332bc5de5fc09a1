"""Distances between doses in bandwidths: u = H^{−1/2}(τ − t) for doses in R^d.

The product kernel ∏ⱼ K(uⱼ) divided by |H|^{1/2} integrates to one over t. A number h is
H = h²I; a vector (h₁, …, h_d) is H = diag(hⱼ²); a matrix is H itself, in squared dose units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant._check import invalid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """A bandwidth in R^d: ``inverse_root`` = H^{−1/2} (d, d) and ``volume`` = |H|^{1/2}."""

    inverse_root: Array
    volume: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale) and np.array_equal(self.inverse_root, other.inverse_root)

    def __hash__(self) -> int:
        return hash(tuple(self.inverse_root.ravel().tolist()))

    @classmethod
    def of(cls, bandwidth: ArrayLike, dimension: int) -> Scale:
        """Return the scale of a number, a vector (d,) or a matrix (d, d)."""
        h = _finite(bandwidth)
        if h.ndim < 2:  # noqa: PLR2004
            return cls._of_vector(h, dimension)
        return cls._of_matrix(h, dimension)

    @classmethod
    def _of_vector(cls, h: Array, d: int) -> Scale:
        if h.ndim == 1 and h.shape != (d,):
            raise invalid("bandwidth", "evaluate", f"a number or {d} numbers, one per dose", h)
        if (h <= 0).any():
            raise invalid("bandwidth", "evaluate", "a finite number > 0", _plain(h))
        each = np.broadcast_to(h, (d,))
        return cls(np.diag(1.0 / each), float(np.prod(each)))

    @classmethod
    def _of_matrix(cls, h: Array, d: int) -> Scale:
        rule = f"a symmetric positive definite {d} × {d} matrix"
        # Tolerances relative to H itself: squared doses may be of any size.
        if h.shape != (d, d) or np.abs(h - h.T).max() > 1e-8 * np.abs(h).max():
            raise invalid("bandwidth", "evaluate", rule, h)
        eigenvalues, v = np.linalg.eigh(h)
        if eigenvalues.min() <= d * np.finfo(np.float64).eps * eigenvalues.max():
            raise invalid("bandwidth", "evaluate", rule, h)
        return cls((v / np.sqrt(eigenvalues)) @ v.T, float(np.sqrt(np.prod(eigenvalues))))

    def times(self, factor: float) -> Scale:
        """Return the scale of ``factor`` times the bandwidth."""
        d = len(self.inverse_root)
        return Scale(self.inverse_root / factor, self.volume * factor**d)

    @property
    def axes(self) -> Array | None:
        """The bandwidth of each dose (d,), or None when H ties the doses together."""
        diagonal = np.diagonal(self.inverse_root)
        return None if np.any(self.inverse_root != np.diag(diagonal)) else 1.0 / diagonal


def _finite(bandwidth: ArrayLike) -> Array:
    try:
        h = np.asarray(bandwidth)
    except ValueError:  # rows of different lengths
        raise invalid("bandwidth", "evaluate", "a finite number > 0", bandwidth) from None
    if h.dtype.kind not in "iuf":
        raise invalid("bandwidth", "evaluate", "a finite number > 0", bandwidth)
    if not np.isfinite(h).all() or h.size == 0 or h.ndim > 2:  # noqa: PLR2004
        raise invalid("bandwidth", "evaluate", "a finite number > 0", _plain(h))
    return h.astype(np.float64)


def _plain(h: Array) -> object:
    return h.item() if h.ndim == 0 else h
