"""Search statistics of an affine policy by compiled loops: every class of one dose is affine.

A constant, a linear rule and a sum of RBFs are all τ = φ(x)'β, clipped; they differ in φ alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.kernels import Boundary
from titrant.kernels.power import polynomial
from titrant.optimize.layout import block_shape, hermite, in_blocks
from titrant.optimize.statistics import SearchStatistics

if TYPE_CHECKING:
    from types import ModuleType

    from titrant._types import Array
    from titrant.kernels import Kernel
    from titrant.outcome.table import DoseTable

_TERMS = 3
"""b, w·e, w."""
_TAPED = 32_768
"""Rows up to which sums are recorded; beyond, the tape of many candidates would leave the cache."""


@cache
def compiled_sums() -> ModuleType:
    """Return the compiled loops, which load numba; looked up once, as a search calls them often."""
    from titrant.optimize.compiled import sums  # noqa: PLC0415

    return sums


class Second(IntEnum):
    """Which second moments a search asks for."""

    NONE = 0
    WEIGHTS = 1
    """Σw², for an ESS floor."""
    ALL = 2
    """All products of terms, for a penalty on the standard error."""


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
    kernel: Kernel
    h: float
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
        loop = compiled_sums().fused_sums
        z, dz, squares, slopes = loop(np.ascontiguousarray(params), *self.packed)
        zz, dzz = self._matrix(squares), self._matrix(slopes)
        if self.direct:
            z, dz = z[:, :1].copy(), dz[:, :1].copy()
        return SearchStatistics(len(self.t), z, dz, zz, dzz, self.center)

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

    def _slopes(self) -> int:
        """Return how many sums need slopes, in the order b, w·e, w and the pairs."""
        if self.second:
            return _TERMS + len(self._pairs())
        return 1 if self.direct else 2 + int(self.weight_slopes)

    def _packed(self) -> tuple[Any, ...]:
        """Return the arguments of the compiled loop after the parameters."""
        shape = block_shape(*self.phi.shape)
        bounds = np.zeros((len(self.t), 0))
        if self.lower is not None and self.upper is not None:
            bounds = np.stack([self.lower, self.upper], axis=1)
        return (
            in_blocks(self.phi, shape),
            # 1/q = 0 in the rows that fill the last block: they have no weight.
            in_blocks(np.stack([self.t, self.e, 1.0 / (self.h * self.q)], axis=1), shape),
            np.array(self._pairs(), dtype=np.int64).reshape(-1, 2),
            self._slopes(),
            polynomial(self.kernel),
            float(self.h),
            int(self.boundary if bounds.size else Boundary.NONE),
            in_blocks(bounds, shape),
            float(self.low),
            float(self.high),
            *hermite(self.table, self.center),
        )
