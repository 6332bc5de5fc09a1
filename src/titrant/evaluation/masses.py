"""At which point masses a policy's doses are, and what that says about its estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.inference import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from titrant._types import Array
    from titrant.data.masses import PointMasses
    from titrant.estimators import Rows
    from titrant.inference import Check

WIDE = 0.75
"""Levels further apart than this, in sd(T), tell nothing of doses between them."""
THIN = 0.05
"""A point mass with less probability is seldom given to contexts like these."""


@dataclass(frozen=True, slots=True)
class AskedMasses:
    """Counts of n rows by the dose that a policy gives them; arrays are (K,) over point masses."""

    n: int
    asked: Array
    """Rows whose policy dose is the point mass,"""
    matched: Array
    """those that were given it,"""
    thin: Array
    """and those that seldom are."""
    elsewhere: int
    """Rows whose policy dose is no point mass."""
    smoothed: int
    """Rows that a kernel decides about."""
    wide: int
    """Rows whose policy dose lies between levels that are far apart."""

    @classmethod
    def of(cls, masses: PointMasses, spread: float, rows: Rows) -> AskedMasses:
        """Return the counts of some rows, ``spread`` being sd(T)."""
        t, tau = masses.index(rows.t[:, 0]), masses.index(rows.tau[:, 0])
        size, exact = len(masses.values), tau >= 0
        thin = np.zeros(len(tau), dtype=bool)
        if rows.density is not None:
            thin = exact & (rows.density(rows.tau) * spread < THIN)
        wide = ~exact & masses.levels & (masses.gap(rows.tau[:, 0]) > WIDE * spread)
        smoothed = 0 if rows.fixed is None else np.count_nonzero(np.isnan(rows.fixed))
        return cls(
            n=len(tau),
            asked=np.bincount(tau[exact], minlength=size),
            matched=np.bincount(tau[exact & (t == tau)], minlength=size),
            thin=np.bincount(tau[thin], minlength=size),
            elsewhere=int(np.count_nonzero(~exact)),
            smoothed=int(smoothed),
            wide=int(np.count_nonzero(wide)),
        )

    def __add__(self, other: AskedMasses) -> AskedMasses:
        """Return the counts of both sets of rows."""
        return AskedMasses(
            self.n + other.n,
            self.asked + other.asked,
            self.matched + other.matched,
            self.thin + other.thin,
            self.elsewhere + other.elsewhere,
            self.smoothed + other.smoothed,
            self.wide + other.wide,
        )


@dataclass(frozen=True, slots=True)
class AskedOfAll:
    """The counts of several policies."""

    parts: tuple[AskedMasses, ...]

    def __add__(self, other: AskedOfAll) -> AskedOfAll:
        """Return the counts of both sets of rows, policy by policy."""
        return AskedOfAll(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def asked_of_masses(masses: PointMasses, spread: float, rows: Sequence[Rows]) -> AskedOfAll:
    """Return the counts of some rows under every policy."""
    return AskedOfAll(tuple(AskedMasses.of(masses, spread, own) for own in rows))


def mass_findings(masses: PointMasses, asked: AskedMasses) -> Iterator[Check | str]:
    """Yield the checks of a policy on a log whose doses have point masses."""
    n = asked.n
    often = np.flatnonzero(asked.asked > rules.MASS_SHARE * n)
    if asked.elsewhere < n:
        some = often if len(often) else np.flatnonzero(asked.asked)
        fewest = int(some[np.argmin(asked.matched[some])])
        yield rules.rows_at_mass(
            int(asked.matched[fewest]), float(masses.values[fewest]), int(asked.asked[fewest])
        )
        thin = int(np.argmax(asked.thin))
        yield rules.thin_mass(asked.thin[thin] / n, float(masses.values[thin]), THIN)
    if masses.levels and asked.elsewhere:
        levels = masses.values
        yield rules.between_levels(asked.elsewhere / n, asked.wide / n, WIDE, levels)
    yield f"Of the log, {masses.told()}. {_read(masses, asked)}"


def _read(masses: PointMasses, asked: AskedMasses) -> str:
    """Return which rows answer for the policy, in words."""
    if not asked.elsewhere:
        return "Rows with exactly the policy's dose answer for it; no bandwidth is needed."
    if masses.levels:
        return "Rows at levels near the policy's dose answer for a dose between them."
    if asked.elsewhere == asked.n:
        return "The rows with other doses answer for the policy, which gives none of these."
    return "They answer where the policy gives exactly that, and the other rows where it does not."
