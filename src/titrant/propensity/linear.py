"""Affine functions of the context, fitted by least squares on a whitened design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant.errors import DataError
from titrant.scaling import ROUNDING, Held, spread_of

if TYPE_CHECKING:
    from titrant._types import Array

# A residual spread below this share of the range of treatments is rounding, not randomness.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Design:
    """The whitened context: (1, (x − center) P), with ZᵀZ = n·I on the training rows.

    Collinear and constant columns of X leave through P, so every later solve is well posed.
    `center` is (k,), `projection` P is (k, r), r the rank of the centered context; k is p and the
    number of codes that `hold` makes columns of.
    """

    center: Array
    projection: Array
    hold: Held | None = None

    @classmethod
    def of(cls, X: Array) -> Self:
        """Return the design of training contexts X (n, p)."""
        hold = Held.of(X)
        held = hold(X)
        center, spread = held.mean(axis=0), spread_of(held)
        # A column that varies by rounding only is constant: its direction is noise.
        scale = np.where(spread > 0.0, spread, np.inf)
        triangle = np.linalg.qr((held - center) / scale, mode="r")
        _, singular, directions = np.linalg.svd(triangle, full_matrices=False)
        keep = singular > np.finfo(np.float64).eps * max(X.shape) * max(singular.max(), 1.0)
        projection = directions[keep].T / singular[keep] * np.sqrt(len(X)) / scale[:, None]
        return cls(center, projection, hold)

    @property
    def rank(self) -> int:
        """The number of coefficients the training rows determine, with the intercept."""
        return 1 + int(self.projection.shape[1])

    def __call__(self, X: Array) -> Array:
        """Return Z (n, rank) for contexts X (n, p)."""
        held = X if self.hold is None else self.hold(X)
        return np.column_stack([np.ones(len(X)), (held - self.center) @ self.projection])


@dataclass(frozen=True, slots=True)
class Affine:
    """An affine function of the context, Z(x)·coef, with `coef` (rank,) or (rank, d)."""

    design: Design
    coef: Array

    @classmethod
    def least_squares(cls, X: Array, t: Array) -> Self:
        """Return the ordinary least squares fit of t (n,) or (n, d) on X (n, p)."""
        design = Design.of(X)
        return cls(design, weighted_least_squares(design(X), t, np.ones(len(X))))

    def predict(self, X: Array) -> Array:
        """Return the function's values, (n,) or (n, d)."""
        return np.asarray(self.design(X) @ self.coef, dtype=np.float64)

    @property
    def slopes(self) -> Array:
        """The coefficients of the columns of X, held, (k,) or (k, d); 0 if constant."""
        return np.asarray(self.design.projection @ self.coef[1:], dtype=np.float64)

    @property
    def intercept(self) -> Array:
        """The value at x = 0, () or (d,)."""
        return np.asarray(self.coef[0] - self.design.center @ self.slopes, dtype=np.float64)


def weighted_least_squares(Z: Array, t: Array, w: Array) -> Array:
    """Return argmin_b Σ w_i (t_i − z_i·b)², the shortest one if several.

    Z is (n, k), t is (n,) or (n, d), w is (n,); the result is (k,) or (k, d).
    """
    # √w on both sides: the product of a matrix with itself takes half the work.
    root = np.sqrt(w)
    A = Z * root[:, None]
    target = t * root if t.ndim == 1 else t * root[:, None]
    return np.asarray(np.linalg.lstsq(A.T @ A, A.T @ target, rcond=None)[0])


def degrees_of_freedom(n: int, coefficients: int) -> int:
    """Return n − coefficients, the rows left to estimate the spread of the treatment."""
    if n <= coefficients:
        raise DataError(
            f"The {n:,} rows cannot determine {coefficients:,} coefficients and a spread of the "
            f"treatment. Use more than {coefficients:,} rows or fewer context columns."
        )
    return n - coefficients


def residual_sd(residuals: Array, t: Array, coefficients: int) -> float:
    """Return √(Σe²/(n − coefficients)), refusing a treatment that the context determines."""
    n = len(t)
    sd = float(np.sqrt(np.sum(residuals**2) / degrees_of_freedom(n, coefficients)))
    if sd <= max(_ROUNDING * float(np.ptp(t)), ROUNDING * float(np.abs(t).max())):
        raise DataError(
            f"The treatment is constant or an exact linear function of the context in all {n:,} "
            f"rows (residual sd {sd:.3g}), so it has no density given the context. Remove the "
            "context columns that determine it, or log treatments that vary."
        )
    return sd
