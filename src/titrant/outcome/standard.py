"""Columns in units of their own spread, so that no answer depends on the user's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from titrant._types import Array

CONSTANT = 1e-10
"""A column whose spread is below this share of its size holds one value up to rounding."""
GRAIN = 2.0**-24
"""The precision of `grained`: far below any effect, far above rounding."""
MIDDLE = (0.01, 0.99)
NORMAL = 0.215
"""The sd of a normal law as a share of the range from its 1 % to its 99 % quantile."""
WIDEST = 0.54
"""The largest share that is taken for an sd: .295 is a uniform law's, .5 that of two equal lumps,
the most without tails."""


@dataclass(frozen=True, slots=True)
class Standard:
    """z = (x − center)·inverse: mean 0 and variance 1 in each column; 0 in a constant one."""

    center: Array
    """(k,)"""
    inverse: Array
    """1/sd (k,); 0 for a constant column."""

    @classmethod
    def of(cls, x: Array) -> Standard:
        """Return the units of the columns of x (n, k)."""
        center, spread = x.mean(axis=0), x.std(axis=0)
        moving = spread > CONSTANT * np.abs(x).max(axis=0, initial=0.0)
        return cls(center, np.divide(1.0, spread, out=np.zeros_like(spread), where=moving))

    def __call__(self, x: Array) -> Array:
        """Return x (n, k) in these units."""
        return (x - self.center) * self.inverse

    def only(self, columns: slice) -> Standard:
        """Return the units of some of the columns."""
        return Standard(self.center[columns], self.inverse[columns])

    def grained(self, x: Array) -> Array:
        """Return x (n, k) in these units, grained."""
        return grained(self(x))

    def back(self, z: Array) -> Array:
        """Return z (n, k) in the original units; the one value of a constant column."""
        spread = np.divide(
            1.0, self.inverse, out=np.zeros_like(self.inverse), where=self.inverse > 0
        )
        return self.center + z * spread


def grained(z: Array) -> Array:
    """Return numbers of order one rounded to a multiple of 2⁻²⁴.

    Trees, and searches with several valleys, may take another turn when the last bit of a number
    changes. Grained, the same data in other units are the same numbers.
    """
    return np.round(z / GRAIN) * GRAIN


def residual_sd(x: Array, t: Array) -> Array:
    """Return the sd of each dose t (n, d) after least squares on x (n, p) and a constant (d,).

    Where it is larger than the middle 98 % of the residuals can explain, a few stray doses made it
    so; the sd of a normal law with the same middle then stands in.
    """
    design = np.column_stack([np.ones(len(x)), Standard.of(x)(x)])
    residual = t - design @ np.linalg.lstsq(design, t, rcond=None)[0]
    return without_strays(residual.std(axis=0), np.quantile(residual, MIDDLE, axis=0))


def without_strays(sd: Array, middle: Array) -> Array:
    """Return the sd of residuals (d,), or what the middle 98 % of them (2, d) say it should be."""
    low, high = middle
    strayed = (high > low) & (sd > WIDEST * (high - low))
    return np.where(strayed, NORMAL * (high - low), sd)
