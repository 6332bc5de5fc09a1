"""A smooth well: the outcome grows with the distance of the dose from a line in the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from titrant import _check
from titrant.errors import DataError
from titrant.outcome.base import OutcomeModel, inputs, training
from titrant.outcome.standard import Standard, grained
from titrant.outcome.well_search import PILOT, Problem, search

if TYPE_CHECKING:
    from titrant._types import Array

NEGLIGIBLE = 1e-3
"""Doses are measured from their mean if the context leaves less than this share of their sd."""


class Well(OutcomeModel):
    """r̂(t, x) = a'z + c·√((t − g'z)² + e), z = (1, x): a valley along the doses g'z, or a ridge.

    Fitted by least squares in standard units, with a ridge that draws a to 0 and g to the line of
    the logged doses: a well's bottom far from all doses cannot be seen. The sum of squares has
    several valleys: the search starts along the logged doses, at the vertex of a parabola, at the
    mean dose, and along lines drawn at random; the best is kept.

    Parameters
    ----------
    ridge : the penalty; None is σ²p/n, that of slopes as large together as one sd of the outcome,
        with σ² the share of its variance that a first fit leaves.
    starts : of the search; those beyond three are random.
    seed : draws the random starts.
    """

    def __init__(self, *, ridge: float | None = None, starts: int = 4, seed: int = 0) -> None:
        self.ridge = ridge
        self.starts = starts
        self.seed = seed

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Learn from contexts X (n, p), doses t (n,) and outcomes y (n,)."""
        x, doses, outcome = training(X, t, y, "Well")
        if self.ridge is not None:
            _check.positive(self.ridge, "ridge", "Well")
        starts = _check.count(self.starts, "starts", "Well")
        seed = _check.count(self.seed, "seed", "Well", at_least=0)
        self.context_, self.outcome_ = Standard.of_contexts(x), Standard.of(outcome[:, None])
        z = _design(self.context_.grained(x))
        self.dose_ = DoseUnits.of(z, _only_dose(doses))
        target = self.outcome_.grained(outcome[:, None])[:, 0]
        problem = Problem(z, grained(self.dose_(z, doses[:, 0])), target, self.ridge or PILOT)
        random = np.random.default_rng(seed).normal(0.0, 0.5, (starts, z.shape[1]))
        lines = [self.dose_.logged, problem.vertex(), self.dose_.mean, *random][:starts]
        self.shape_ = search(problem, lines, adapt=self.ridge is None)
        return self

    def curve(self, X: Array, doses: Array) -> Array:
        """Return r̂(doses[j], xᵢ) (n, G) for a grid of scalar doses (G,)."""
        z = _design(self.context_(X))
        value = self.shape_(z, self.dose_(z, doses[:, None])).T
        return self.outcome_.back(value.reshape(-1, 1)).reshape(value.shape)

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        x, doses = inputs(X, t, "Well")
        z = _design(self.context_(x))
        value = self.shape_(z, self.dose_(z, _only_dose(doses)))
        return self.outcome_.back(value[:, None])[:, 0]


@dataclass(frozen=True, slots=True)
class DoseUnits:
    """s = (t − line'z)/sd: how far a dose is from what was usual for its context."""

    line: Array
    """Least squares of the logged doses on z (p + 1,)."""
    sd: float
    """What it leaves."""

    @classmethod
    def of(cls, z: Array, t: Array) -> DoseUnits:
        """Return the units of doses t (n,) logged in contexts z (n, p + 1)."""
        line = np.asarray(np.linalg.lstsq(z, t, rcond=None)[0], dtype=np.float64)
        left, plain = float((t - z @ line).std()), float(t.std())
        if left > NEGLIGIBLE * plain:
            return cls(line, left)
        return cls(np.append(t.mean(), np.zeros(z.shape[1] - 1)), plain or 1.0)

    def __call__(self, z: Array, t: Array) -> Array:
        """Return doses t (n,) in these units."""
        return (t - z @ self.line) / self.sd

    @property
    def logged(self) -> Array:
        """The line of the logged doses in these units (p + 1,)."""
        return np.zeros_like(self.line)

    @property
    def mean(self) -> Array:
        """The line of the mean dose in these units (p + 1,); the contexts z have mean 0."""
        return np.append(0.0, -self.line[1:] / self.sd)


def _design(z: Array) -> Array:
    return np.column_stack([np.ones(len(z)), z])


def _only_dose(doses: Array) -> Array:
    """Return the doses (n, 1) as (n,)."""
    if doses.shape[1] != 1:
        raise DataError(
            f"`Well` models one dose; this treatment has {doses.shape[1]}. Leave it out."
        )
    return doses[:, 0]
