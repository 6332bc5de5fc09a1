"""What a policy search keeps of the rows: sums of terms and their slopes in the parameters.

The slope of a term in β is its slope in the dose times ∂τ/∂β, summed by the policy's
vector-Jacobian product. These sums add up over blocks of rows like all else, so a search runs
wherever an evaluation runs. Here they are defined, by the estimator's own terms and for any policy
with parameters; `AffineSearch` leads to the compiled twin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.kernels import Boundary, Epanechnikov
from titrant.kernels.polynomial import polynomial
from titrant.policies import ParametricPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.estimators import Estimator, Rows
    from titrant.kernels import Kernel, Scale
    from titrant.outcome.table import DoseTable


class Second(IntEnum):
    """Which second moments a search asks for."""

    NONE = 0
    WEIGHTS = 1
    """Σw², for an ESS floor."""
    ALL = 2
    """All products of terms, for a penalty on the standard error."""


@dataclass(frozen=True, slots=True)
class SearchStatistics:
    """Sums over n rows for m candidate policies with P parameters and k terms.

    The first term is counted from `center`, the mean outcome or so. Raw second moments suffice
    then, unlike for a standard error that is reported: the penalty only steers the search.
    """

    n: int
    z: Array
    """Σz (m, k)."""
    dz: Array
    """∂Σz/∂β (m, k, P)."""
    zz: Array
    """Σzz' (m, k, k)."""
    dzz: Array
    """∂Σzz'/∂β (m, k, k, P); it and zz are empty when nothing needs them."""
    center: float = 0.0

    @property
    def mean(self) -> Array:
        """The mean terms (m, k), the center added back."""
        mean = self.z / self.n
        mean[:, 0] += self.center
        return mean

    def pull(self, by_z: Array, by_zz: Array) -> Array:
        """Return the gradients (m, P) of functions of the sums with slopes (m, k) and (m, k, k)."""
        m, k = by_z.shape
        gradient = _dot(by_z, self.dz)
        if by_zz.size:
            gradient = gradient + _dot(by_zz.reshape(m, k * k), self.dzz.reshape(m, k * k, -1))
        return gradient

    def __add__(self, other: SearchStatistics) -> SearchStatistics:
        """Return the sums over both sets of rows, counted from the same center."""
        return SearchStatistics(
            self.n + other.n,
            self.z + other.z,
            self.dz + other.dz,
            self.zz + other.zz,
            self.dzz + other.dzz,
            self.center,
        )


class SearchSums(ABC):
    """The sums of a search over some rows, as a function of parameters."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P), in one pass over the rows."""

    @property
    def second(self) -> Second:
        """Which second moments are among them."""
        return Second.ALL

    @property
    def in_memory(self) -> tuple[Any, ...] | None:
        """The rows as compiled loops take them, where those do a whole search by themselves."""
        return None


def _dot(g: Array, a: Array) -> Array:
    """Return Σₖ gₖaₖ (m, P) of g (m, k) and a (m, k, P).

    Term by term, so that a candidate's gradient is the same in every company.
    """
    total = g[:, :1] * a[:, 0]
    for k in range(1, g.shape[1]):
        total = total + g[:, k : k + 1] * a[:, k]
    return total


def search_statistics(
    estimator: Estimator,
    policy: ParametricPolicy,
    scale: Scale,
    rows: Rows,
    features: Array | None = None,
) -> SearchStatistics:
    """Return the sums of one candidate (m = 1); rows carry its doses, r̂ and slopes, and x.

    ``features`` (n, P) are what the policy is a function of, if not the contexts.
    """
    x = rows.need("x", "search") if features is None else features
    z, slope = estimator.terms(rows, scale), estimator.dterms(rows, scale)
    z[:, 0] -= rows.center
    k = z.shape[1]

    def pulled(g: Array) -> Array:
        return policy.vjp(x, g[:, 0] if g.shape[1] == 1 else g)

    dz = np.stack([pulled(slope[:, b]) for b in range(k)])
    zdz = np.stack(
        [np.stack([pulled(z[:, a, None] * slope[:, b]) for b in range(k)]) for a in range(k)]
    )
    dzz = zdz + np.swapaxes(zdz, 0, 1)
    return SearchStatistics(
        len(z), z.sum(axis=0)[None], dz[None], (z.T @ z)[None], dzz[None], rows.center
    )


def stacked(parts: Sequence[SearchStatistics]) -> SearchStatistics:
    """Return the statistics of several candidates on the same rows as one."""
    return replace(
        parts[0],
        z=np.concatenate([p.z for p in parts]),
        dz=np.concatenate([p.dz for p in parts]),
        zz=np.concatenate([p.zz for p in parts]),
        dzz=np.concatenate([p.dzz for p in parts]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TermSearch(SearchSums):
    """The sums of an estimator's own terms for any policy with parameters, on n rows, in numpy."""

    rows: Rows
    """The rows; the policy doses that they carry are not read."""
    features: Array
    """What the policy is a function of (n, …)."""
    policy: ParametricPolicy
    """Any policy of the class."""
    estimator: Estimator
    scale: Scale
    outcome: Callable[[Array], Array] | None = None
    """r̂ (k, n) at k doses (k, n, d) of each row, if the estimator has a model."""
    step: Array | float = 1.0
    """Of the central differences of r̂ in each dose (d,)."""

    def __call__(self, params: Array) -> SearchStatistics:
        """Return the sums at parameters (m, P)."""
        policies = [self.policy.with_params(p) for p in params]
        shape = self.rows.t.shape
        tau = np.stack([np.reshape(policy(self.features), shape) for policy in policies])
        rows = [replace(self.rows, tau=one) for one in tau]
        if self.outcome is not None:
            found = zip(rows, *self._model_at(self.outcome, tau), strict=True)
            rows = [replace(one, r_tau=value, r_slope=slope) for one, value, slope in found]
        return stacked(
            [
                search_statistics(self.estimator, policy, self.scale, one, self.features)
                for policy, one in zip(policies, rows, strict=True)
            ]
        )

    def _model_at(self, outcome: Callable[[Array], Array], tau: Array) -> tuple[Array, Array]:
        """Return r̂ (m, n) at doses (m, n, d), and ∂r̂/∂t (m, n, d) by central differences."""
        d = tau.shape[2]
        steps = np.diag(np.broadcast_to(self.step, d))
        moves = np.concatenate([np.zeros((1, d)), steps, -steps])
        asked = (tau[:, None] + moves[:, None, :]).reshape(-1, *tau.shape[1:])
        found = outcome(asked).reshape(len(tau), len(moves), -1)
        rise = found[:, 1 : d + 1] - found[:, d + 1 :]
        return found[:, 0], np.moveaxis(rise, 1, 2) / (2.0 * self.step)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FeaturePolicy(ParametricPolicy):
    """τ = φ·(B·unit): a policy of features φ (n, P), B (P,) for one dose and (P, d) for several."""

    matrix: Array
    unit: Array
    """(1,) or (d,)."""

    def __call__(self, X: Array) -> Array:
        """Return the doses (n,) or (n, d) of features X (n, P)."""
        return X @ (self.matrix * self.unit)

    @property
    def params(self) -> Array:
        """B, row by row."""
        return self.matrix.ravel()

    def with_params(self, params: Array) -> FeaturePolicy:
        """Return the policy with another B."""
        return FeaturePolicy(params.reshape(self.matrix.shape), self.unit)

    def vjp(self, X: Array, g: Array) -> Array:
        """Return Σᵢ gᵢ·∂τ(φᵢ)/∂B, row by row."""
        return np.asarray((X.T @ (g * self.unit)).ravel())


# ── The compiled twin ─────────────────────────────────────────────────────────────────────────────
# A constant, a linear rule and a sum of RBFs are all τ = φ(x)'β, clipped; they differ in φ alone.
# Rows are laid out for the compiled loops in blocks that stay in cache, column by column inside.

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
class AffineSearch(SearchSums):
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
    def in_memory(self) -> tuple[Any, ...] | None:
        """The rows, if a tape of them all is so small that it is faster than a second slope each.

        `packed`, and (n, P, center).
        """
        if len(self.t) > _TAPED:
            return None
        return self.packed, (*self.phi.shape, float(self.center))

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
    pairs = np.empty((*table.values.shape, 2))
    np.subtract(table.values, center, out=pairs[..., 0])
    pairs[..., 1] = table.slopes
    return pairs, (float(table.lower), float((table.upper - table.lower) / cells))
