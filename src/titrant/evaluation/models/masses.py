"""Doses with point masses: what is fitted, the weights of rows, and what is said of a policy.

Where many rows have one dose exactly, such as 0, a cap or a list price, the dose has a probability
and not a density. A policy that gives such a dose is valued by the rows at it, and any other dose
by the rows that have none (`with_masses`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError
from titrant.inference.trust import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.masses import PointMasses
    from titrant.data.source import Source
    from titrant.estimators import Estimator, Rows
    from titrant.inference import Check
    from titrant.outcome import FoldForests
    from titrant.outcome.crossfit import Folds
    from titrant.propensity import CrossMasses, CrossPropensity, PropensityModel


# What is fitted.


@dataclass(frozen=True, slots=True)
class FoldedRows:
    """Rows that default models are fitted on, as the models of each fold see them."""

    log: LoggedData
    numbers: NDArray[np.int64]
    """By which rows are in folds."""
    forests: FoldForests
    fold: Folds
    extended: Sequence[Array]
    """The contexts of the rows outside each fold, which its models learn from."""
    held_out: Array
    """The contexts of each row as models see them that have not seen it."""


def learns_masses(
    log: Source, estimator: Estimator, propensity: PropensityModel | None, masses: PointMasses
) -> bool:
    """Return whether the probabilities of point masses take a model of their own.

    What is known holds them already. A model that is given says how likely each of several levels
    is by the doses around it.
    """
    if not estimator.uses_propensity:
        return False
    if propensity is None:
        return not log.has_propensity
    from titrant.propensity import Known  # noqa: PLC0415

    return not (isinstance(propensity, Known) or masses.levels)


def fitted_density(seen: FoldedRows, x: Array, masses: PointMasses | None) -> CrossPropensity:
    """Return the default density at contexts x (n, p), of the doses that are no point mass.

    Where doses are levels it is fitted to them all, and says how likely each is by the doses
    around it.
    """
    from titrant.propensity import CrossPropensity, smooth_members  # noqa: PLC0415

    forests, t, weights = seen.forests, seen.log.treatment, seen.log.weights
    folds, seed = forests.folds, forests.seed
    members = CrossPropensity(smooth_members(forests.extra_, seed=seed), folds=folds, seed=seed)
    if masses is None or masses.levels:
        return members.fit(
            x,
            t,
            numbers=seen.numbers,
            extended=seen.extended,
            held_out=seen.held_out,
            sample_weight=weights,
        )
    other = masses.index(t) < 0
    return members.fit(
        x[other],
        t[other],
        numbers=seen.numbers[other],
        extended=[part[other[seen.fold != k]] for k, part in enumerate(seen.extended)],
        held_out=seen.held_out[other],
        sample_weight=None if weights is None else weights[other],
    )


def fitted_probabilities(
    seen: FoldedRows, density: PropensityModel | CrossPropensity | None, masses: PointMasses
) -> CrossMasses:
    """Return the model of P(T = a | x); of levels, the density beside it is averaged in."""
    from titrant.propensity import CrossMasses, CrossPropensity, Truncated  # noqa: PLC0415
    from titrant.propensity.masses import interval_probabilities  # noqa: PLC0415

    log, forests, latent = seen.log, seen.forests, None
    if masses.levels and isinstance(density, CrossPropensity):
        ends = (log.lower[:, 0], log.upper[:, 0]) if log.bounded else (-np.inf, np.inf)
        laws = Truncated.of(density.on(seen.fold), seen.held_out, *ends)
        latent = interval_probabilities(laws, masses, len(log))
    model = CrossMasses(extra=forests.extra_, folds=forests.folds, seed=forests.seed)
    index, size = masses.index(log.treatment), len(masses.values)
    if masses.levels:  # a dose that is none of them is likelier in some contexts than in others
        index = np.where(index < 0, size + masses.side(log.treatment), index)
        size += 3
    return model.fit(
        index,
        size=size,
        extended=seen.extended,
        held_out=seen.held_out,
        fold=seen.fold,
        latent=latent,
        sample_weight=log.weights,
    )


# The weights of rows.


def with_masses(rows: Rows, masses: PointMasses, unit: float) -> Rows:
    """Return rows whose weights are fixed where the policy's dose or the logged one is a mass.

    q at a point mass a is P(T = a | x)/s, s the ``unit``. Where the policy's dose is a, rows at a
    answer for it, w = 1{t = a}/P(T = a | x). Elsewhere the kernel runs over rows that have no point
    mass, and one at the end of all doses bounds it. Of doses that are levels, it runs over rows
    at levels, each of which stands for the doses around it: q = P(T = a | x)/spacing.
    """
    if rows.q is None:
        return rows
    t, tau = masses.index(rows.t[:, 0]), masses.index(rows.tau[:, 0])
    exact = tau >= 0
    fixed = np.where(exact & (t == tau), 1.0 / (unit * rows.q), 0.0)
    return beside_masses(replace(rows, fixed=fixed, share=np.where(exact, 0.0, 1.0)), masses, unit)


def beside_masses(rows: Rows, masses: PointMasses, unit: float) -> Rows:
    """Return rows of which the kernel sees those that answer for doses which are no point mass.

    See `with_masses`. ``share`` is how much of each row's weight the kernel decides about.
    """
    assert rows.q is not None and rows.share is not None  # noqa: S101, PT018
    t = masses.index(rows.t[:, 0])
    if masses.levels:
        around = unit / masses.spacing[np.maximum(t, 0)]
        share = np.where(t < 0, 0.0, rows.share)
        return replace(rows, share=share, q=np.where(share > 0.0, rows.q * around, rows.q))
    share = np.where(t < 0, rows.share, 0.0)
    if not (np.isfinite(masses.low) or np.isfinite(masses.high)):
        return replace(rows, share=share)
    # A dose beyond all that were logged is not smoothed toward them.
    about = rows.aim
    lower = -np.inf if rows.lower is None else rows.lower
    upper = np.inf if rows.upper is None else rows.upper
    return replace(
        rows,
        share=share,
        lower=np.where(about < masses.low, lower, np.maximum(lower, masses.low)),
        upper=np.where(about > masses.high, upper, np.minimum(upper, masses.high)),
    )


KNOWN_GAP, KNOWN_SE = 0.25, 4.0
"""How far the mean of 1{t = a}/P(T = a | x) may be from 1: this much, or so many SE."""


def check_known_masses(q: Array | None, t: Array, masses: PointMasses, unit: float) -> None:
    """Refuse known propensities q (n,) of doses t (n,) that are no probabilities at point masses.

    There 1{t = a}/P(T = a | x) averages to 1, whatever the policy.
    """
    if q is None:
        return
    at = masses.index(t)
    for k, value in enumerate(masses.values.tolist()):
        inverse = np.where(at == k, 1.0 / (unit * q), 0.0)
        gap, se = abs(float(inverse.mean()) - 1.0), float(inverse.std() / np.sqrt(len(t)))
        if gap > KNOWN_GAP and gap > KNOWN_SE * se:
            raise DataError(
                f"{100 * masses.shares[k]:.2g} % of doses are exactly {value:.6g}, and there the "
                f"known propensity is no probability: 1{{t = {value:.6g}}}/q averages to "
                f"{inverse.mean():.3g}, not 1. Give P(T = a | x) at point masses and the density "
                "of the other doses elsewhere; or leave the propensity out, so that it is learned; "
                "or say `atoms=()` if these doses are rounded ones."
            )


# What is said of a policy.

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
    """those that were given it and have an outcome,"""
    thin: Array
    """and those that seldom are."""
    elsewhere: int
    """Rows whose policy dose is no point mass."""
    smoothed: int
    """Rows that a kernel decides about."""
    wide: int
    """Rows whose policy dose lies between levels that are far apart."""
    off_levels: int
    """Rows that keep a dose which is none of the levels, for want of rows at the policy's."""

    @classmethod
    def of(cls, masses: PointMasses, spread: float, rows: Rows) -> AskedMasses:
        """Return the counts of some rows, ``spread`` being sd(T)."""
        tau = masses.index(rows.tau[:, 0])
        size, exact = len(masses.values), tau >= 0
        thin = np.zeros(len(tau), dtype=bool)
        if rows.density is not None:
            thin = exact & (rows.density(rows.tau) * spread < THIN)
        wide = ~exact & masses.levels & (masses.gap(rows.tau[:, 0]) > WIDE * spread)
        fixed = np.zeros(len(tau)) if rows.fixed is None else rows.fixed
        share = np.zeros(len(tau)) if rows.share is None else rows.share
        smoothed, weighted = np.count_nonzero(share), fixed > 0.0
        return cls(
            n=len(tau),
            asked=_counts(tau[exact], size),
            matched=_counts(tau[exact & weighted], size),
            thin=_counts(tau[thin], size),
            elsewhere=int(np.count_nonzero(~exact)),
            smoothed=int(smoothed),
            wide=int(np.count_nonzero(wide)),
            off_levels=0 if rows.off_levels is None else int(np.count_nonzero(rows.off_levels)),
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
            self.off_levels + other.off_levels,
        )


def _counts(index: NDArray[np.intp], size: int) -> Array:
    return np.bincount(index, minlength=size).astype(np.float64)


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
    if asked.elsewhere < (1.0 - rules.MASS_SHARE) * n:
        often = np.flatnonzero(asked.asked > rules.MASS_SHARE * n)
        if len(often):
            k = int(often[np.argmin(asked.matched[often])])
            rows, of, what = asked.matched[k], asked.asked[k], f"exactly {masses.values[k]:.6g}"
        else:
            rows, of = asked.matched.sum(), asked.asked.sum()
            what = "one of the doses given often"
        yield rules.rows_at_mass(int(rows), int(of), what)
        thin = int(np.argmax(asked.thin))
        yield rules.thin_mass(float(asked.thin[thin]) / n, float(masses.values[thin]), THIN)
    if masses.levels and asked.elsewhere:
        levels = masses.values.tolist()
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
