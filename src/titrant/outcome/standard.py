"""Columns in units of their own spread, so that no answer depends on the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from titrant._types import Array

APART = 1e-10
"""Standardized values closer than this are one value up to rounding."""
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
    hold: Held | None = None
    """How far values are held before they are measured."""

    @classmethod
    def of(cls, x: Array) -> Standard:
        """Return the units of the columns of x (n, k)."""
        spread = spread_of(x)
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0.0)
        return cls(x.mean(axis=0), inverse)

    @classmethod
    def of_contexts(cls, x: Array) -> Standard:
        """Return the units of contexts x (n, p), held; several far values add a column."""
        hold = Held.of(x)
        return replace(cls.of(hold(x)), hold=hold)

    @classmethod
    def of_doses(cls, t: Array) -> Standard:
        """Return the units of doses t (n, d), which far ones do not stretch.

        Doses themselves stay as they are: a policy may ask about any.
        """
        return cls.of(Held.of(t).columns(t))

    def __call__(self, x: Array) -> Array:
        """Return x (n, k) in these units."""
        held = x if self.hold is None else self.hold(x)
        return (held - self.center) * self.inverse

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
    design = np.column_stack([np.ones(len(x)), Standard.of_contexts(x)(x)])
    residual = t - design @ np.linalg.lstsq(design, t, rcond=None)[0]
    return without_strays(residual.std(axis=0), np.quantile(residual, MIDDLE, axis=0))


def without_strays(sd: Array, middle: Array) -> Array:
    """Return the sd of residuals (d,), or what the middle 98 % of them (2, d) say it should be."""
    low, high = middle
    strayed = (high > low) & (sd > WIDEST * (high - low))
    return np.where(strayed, NORMAL * (high - low), sd)
