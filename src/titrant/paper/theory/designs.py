"""Designs on which the paper's statements are tried."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtri

import titrant as tt
from titrant.data.simulate import NormalDose, OneContext, UniformDose
from titrant.outcome import OutcomeModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant._types import Array
    from titrant.bandwidth import BandwidthPath
    from titrant.data.simulate import Design, DoseLaw
    from titrant.estimators import SmoothedEstimator
    from titrant.policies import Policy

# An outcome model that is known and learns nothing.


class Given(OutcomeModel):
    """r̂(t, x) = function(x, t).

    Parameters
    ----------
    function : takes contexts (n, p) and doses (n,), returns (n,)
    """

    def __init__(self, function: Callable[[Array, Array], Array]) -> None:
        self.function = function

    def fit(self, X: Array, t: Array, y: Array) -> Self:
        """Return the model as it is."""
        del X, t, y
        return self

    def predict(self, X: Array, t: Array) -> Array:
        """Return r̂(tᵢ, xᵢ) (n,)."""
        return self.function(X, np.reshape(t, len(X)))


# Where theory is tried: a smooth outcome, the paper's kinked one, and populations of both.
#
# A population is a log without chance. Contexts and doses lie at evenly spaced quantiles, and every
# row stands twice, with the noise added and taken off. The estimate on it is the mean of the
# estimates on all logs, E v̂, and its squared standard error times the rows is n·Var v̂: titrant's
# own code, asked on everybody at once.

CONTEXTS = 16
DOSES = 8192
"""Quantiles of the context and of the dose given the context: 262,144 rows with both noises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothWell(OneContext):
    """Smooth: m = 2 + x − exp(−(t − x)²), x ~ U[0, 1], T ~ N(x + 0.1, 0.5²).

    At the policy τ(x) = x: V = 1.5, m = 1 + x and ∂²m/∂t² = 2 for every context.
    """

    law: DoseLaw = field(default_factory=lambda: NormalDose(sd=0.5))
    noise: float = 0.5

    def center(self, X: Array) -> Array:
        """Return x + 0.1."""
        return X[:, 0] + 0.1

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return 2 + x − exp(−(t − x)²)."""
        return 2.0 + X[:, 0] - np.exp(-((t - X[:, 0]) ** 2))

    def best(self, X: Array) -> Array:
        """Return x."""
        return X[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedLoss(OneContext):
    """Bounded: y = 1 − exp(−(t − x/2)²) in [0, 1], T ~ U[−2, 2], x ~ U[0, 1]."""

    law: DoseLaw = field(default_factory=lambda: UniformDose(lower=-2.0, upper=2.0))
    noise: float = 0.0

    def center(self, X: Array) -> Array:
        """Return 0: every dose was as likely."""
        return np.zeros(len(X))

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return 1 − exp(−(t − x/2)²)."""
        return -np.expm1(-((t - self.best(X)) ** 2))

    def best(self, X: Array) -> Array:
        """Return x/2."""
        return 0.5 * X[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge(OneContext):
    """Doses that end at 0 and 1: T ~ U[0, 1], m = 1 + 3t or, curved, m = exp(2t).

    The context moves the policy only.
    """

    curved: bool = False
    law: DoseLaw = field(default_factory=lambda: UniformDose(lower=0.0, upper=1.0))
    noise: float = 0.5

    def center(self, X: Array) -> Array:
        """Return ½: every dose was as likely."""
        return np.full(len(X), 0.5)

    def mean_outcome(self, X: Array, t: Array) -> Array:
        """Return 1 + 3t, or exp(2t)."""
        return (np.exp(2.0 * t) if self.curved else 1.0 + 3.0 * t) + 0.0 * X[:, 0]

    def best(self, X: Array) -> Array:
        """Return 0."""
        return np.zeros(len(X))


BEST = tt.Linear(coef=[1.0], intercept=0.0)
"""τ(x) = x."""
VALUE = 1.5
"""V of τ(x) = x in the well."""
CURVATURE = 2.0
"""E[∂²m/∂t²] there."""
DENSITY = math.exp(-0.5 * 0.2**2) / (0.5 * math.sqrt(2.0 * math.pi))
"""f(τ(x) | x) there: 0.1 below the center, a fifth of the sd."""
NOISE = {
    "IPW": (7.0 / 3.0 + SmoothWell().noise ** 2) / DENSITY,
    "self-normalized": (1.0 / 12.0 + SmoothWell().noise ** 2) / DENSITY,
}
"""E[E[s² | τ, X]/f], s = Y or Y − V: E[(1 + X)²] = 7/3, Var(1 + X) = 1/12."""
REST = {"IPW": -(VALUE**2), "self-normalized": 0.0}
"""The part of n·Var that no bandwidth changes; the paper leaves −V² out."""
ESTIMATORS: dict[str, SmoothedEstimator] = {
    "IPW": tt.IPW(clip=0.0),
    "self-normalized": tt.SelfNormalized(clip=0.0),
}
"""Both with the Epanechnikov kernel, and no floor under the propensities."""


def population(
    design: Design, *, contexts: int = CONTEXTS, doses: int = DOSES, propensity: bool = True
) -> tt.LoggedData:
    """Return the log of everybody: all pairs of the quantiles of x and of t, with both noises."""
    u = np.repeat((np.arange(contexts) + 0.5) / contexts, doses)
    x = design.context_at(u[:, None])
    t = _quantiles(design, x, np.tile((np.arange(doses) + 0.5) / doses, contexts))
    m, q = design.mean_outcome(x, t), design.density(x, t) if propensity else None
    return tt.LoggedData(
        np.tile(x, (2, 1)),
        np.tile(t, 2),
        np.concatenate([m + design.noise, m - design.noise]),
        None if q is None else np.tile(q, 2),
        bounds=(design.law.lower, design.law.upper),
        names=design.names,
    )


def _quantiles(design: Design, X: Array, u: Array) -> Array:
    """Return the doses (n,) whose cdf is u."""
    law = design.law
    if isinstance(law, UniformDose):
        return law.lower + (law.upper - law.lower) * u
    if isinstance(law, NormalDose) and np.isinf([law.lower, law.upper]).all():
        return np.asarray(design.center(X) + law.sd * ndtri(u))
    raise TypeError(f"No quantiles are known for {law!r}.")


def moments(
    log: tt.LoggedData, policy: Policy, estimator: SmoothedEstimator, bandwidths: Sequence[float]
) -> tuple[Array, Array]:
    """Return E v̂ and n·Var v̂ at each bandwidth, from a population."""
    path: BandwidthPath = tt.bandwidth_path(log, policy, estimator=estimator, bandwidths=bandwidths)
    return path.values, path.n * path.se**2
