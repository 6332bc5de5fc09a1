"""The compiled twin of `titrant.optimize.sums`, for policies τ = φ'β of one dose.

A constant, a linear rule and a sum of RBFs are all τ = φ(x)'β, clipped; they differ in φ alone.
Rows are laid out for the compiled loops in blocks that stay in cache, column by column inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.kernels import Boundary, Epanechnikov
from titrant.kernels.polynomial import polynomial
from titrant.optimize.sums import SearchStatistics, Second

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.kernels import Kernel
    from titrant.outcome.table import DoseTable

_TERMS = 3
"""b, w·e, w."""
_TAPED = 32_768
"""Rows up to which sums are recorded; beyond, the tape of many candidates would leave the cache."""
_CACHE = 32_768
"""Numbers of a block of features: 256 KiB stay in a core's cache while all candidates pass."""
_FEWEST, _MOST = 64, 1024
"""Rows of a block."""
_LINE = 8
"""Numbers of a cache line; the rows of a block are a multiple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AffineSearch:
    """The sums of terms (b, w·e, w) for policies τ = φ'β cut to [low, high], on n rows."""

    phi: Array
    """Features of each row (n, P)."""
    t: Array
    """Logged doses (n,)."""
    e: Array
    """Residuals y − r̂(t, x), or y − c (n,)."""
    q: Array
    """Floored propensities (n,)."""
    kernel: Kernel = field(default_factory=Epanechnikov)
    h: float = 1.0
    boundary: Boundary = Boundary.NONE
    lower: Array | None = None
    """Bounds of the dose (n,), for the boundary kernel."""
    upper: Array | None = None
    low: float = -np.inf
    """The policy's own limits."""
    high: float = np.inf
    table: DoseTable | None = None
    """r̂(·, xᵢ), the baseline b of each row; without it the baseline is `center`."""
    center: float = 0.0
    """c, taken off the baseline in the sums and added back to their mean."""
    second: Second = Second.NONE
    weight_slopes: bool = True
    """Whether ∂Σw/∂β is wanted (else 0): not without self-normalization or an ESS floor."""
    direct: bool = False
    """Whether b is the only term, as for the direct method."""
    packed: tuple[Any, ...] = field(init=False, repr=False)
    """The rows as the compiled loops take them after the parameters."""

    def __post_init__(self) -> None:
        owner = "AffineSearch"
        _check.positive(self.h, "h", owner)
        if polynomial(self.kernel) is None:
            rule = "compact, such as Epanechnikov(): a polynomial of degree four at most"
            raise _check.invalid("kernel", owner, rule, self.kernel)
        if self.boundary > Boundary.LINEAR:
            raise _check.invalid("boundary", owner, "at most Boundary.LINEAR", self.boundary)
        if self.direct and self.table is None:
            raise _check.invalid("table", owner, "given for the direct method", self.table)
        object.__setattr__(self, "packed", self._packed())

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P)."""
        from titrant.optimize.compiled.sums import added_sums  # noqa: PLC0415  (numba)

        z, dz = added_sums(np.ascontiguousarray(params), *self.packed)
        k = 1 if self.direct else _TERMS
        zz, dzz = self._matrix(z[:, _TERMS:]), self._matrix(dz[:, _TERMS:])
        return SearchStatistics(len(self.t), z[:, :k], dz[:, :k], zz, dzz, self.center)

    @property
    def fits_in_memory(self) -> bool:
        """Whether a tape of all rows is small enough to be faster than a second slope a row."""
        return len(self.t) <= _TAPED

    def _matrix(self, products: Array) -> Array:
        """Return (m, S, …) sums over pairs of terms as symmetric (m, k, k, …); k = 0 for none."""
        k = (1 if self.direct else _TERMS) if self.second else 0
        matrix = np.zeros((len(products), k, k, *products.shape[2:]))
        for s, (a, b) in enumerate(self._pairs()):
            matrix[:, a, b] = matrix[:, b, a] = products[:, s]
        return matrix

    def _pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of terms whose products are summed; a constant b needs none."""
        if self.second is Second.WEIGHTS:
            return [] if self.direct else [(2, 2)]
        terms = range(0 if self.table is not None else 1, 1 if self.direct else _TERMS)
        return [(a, b) for a in terms for b in terms if a <= b] if self.second else []

    def _packed(self) -> tuple[Any, ...]:
        """Return the arguments of the compiled loops after the parameters."""
        shape = _block_shape(*self.phi.shape)
        bounds = np.zeros((len(self.t), 0))
        if self.lower is not None and self.upper is not None:
            bounds = np.stack([self.lower, self.upper], axis=1)
        # 1/(h·q) = 0 in rows without a weight: those that fill the last block, and all of the
        # direct method.
        g = np.zeros_like(self.t) if self.direct else 1.0 / (self.h * self.q)
        rows = np.stack([self.t, self.e, g], axis=1)
        blocks = [_in_blocks(a, shape) for a in (self.phi, rows, bounds)]
        table, grid = _hermite(self.table, self.center)
        pairs = self._pairs()
        slopes = 1 if self.direct else 2 + int(self.weight_slopes)
        return (
            (*blocks, table),
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
            _TERMS + len(pairs) if self.second else slopes,
            (
                polynomial(self.kernel),
                float(self.h),
                int(self.boundary if bounds.size else Boundary.NONE),
                float(self.low),
                float(self.high),
                grid,
            ),
        )


def _block_shape(n: int, width: int) -> tuple[int, int]:
    """Return how many blocks n rows of `width` features make, and their rows."""
    most = min(max(_CACHE // max(width, 1), _FEWEST), _MOST)
    count = max(-(-n // most), 1)
    return count, _LINE * -(-n // (count * _LINE))


def _in_blocks(columns: Array, shape: tuple[int, int]) -> Array:
    """Return columns (n, K) as blocks (count, K, B); rows that fill the last one are 0."""
    count, size = shape
    filled = np.zeros((count * size, columns.shape[1]))
    filled[: len(columns)] = columns
    blocks = _aligned((count, columns.shape[1], size))
    blocks[...] = filled.reshape(count, size, -1).transpose(0, 2, 1)
    return blocks


def _aligned(shape: tuple[int, ...]) -> Array:
    """Return an array that begins on a cache line, where vectors load fastest."""
    size = math.prod(shape)
    room = np.empty(size + _LINE)
    start = -(room.ctypes.data // room.itemsize) % _LINE
    return room[start : start + size].reshape(shape)


def _hermite(table: DoseTable | None, center: float) -> tuple[Array, tuple[float, float]]:
    """Return r̂ − center and its slope a step (n, G, 2), and the grid's first dose and step."""
    if table is None:
        return np.zeros((0, 0, 2)), (0.0, 1.0)
    cells = table.values.shape[1] - 1
    pairs = np.stack([table.values - center, table.slopes], axis=2)
    return pairs, (float(table.lower), float((table.upper - table.lower) / cells))
