"""Whether a compiled loop may stand in for an estimator: the one place that decides.

A loop computes what the classes of this room define. It may take the place of a method only where
the estimator leaves that method as it is here. Whatever a class of a user's own overrides, or one
estimator by itself, runs by its own `terms`, `dterms` and `values`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from titrant._own import leaves
from titrant.estimators.base import Estimator, SmoothedEstimator, WeightedEstimator
from titrant.estimators.discretized import Discretized
from titrant.estimators.doubly_robust import DirectMethod, DoublyRobust
from titrant.estimators.ipw import IPW, SelfNormalized
from titrant.kernels import Boundary
from titrant.kernels.polynomial import polynomial

if TYPE_CHECKING:
    from titrant._types import Array

_TERMS = ("size", "terms", "weights", "baseline")
_VALUE = ("size", "value", "values", "gradient", "hessian")
_SEARCH = (
    *_TERMS,
    *_VALUE,
    "weight",
    "references",
    "dterms",
    "weight_slope",
    "baseline_slope",
    "uses_propensity",
    "uses_outcome_model",
)
"""All that a compiled search replaces."""
_SEARCHED = (IPW, SelfNormalized, DoublyRobust, DirectMethod)
_AROUND_A_CONSTANT = (IPW, SelfNormalized, Discretized)


def has_weighted_terms(estimator: Estimator) -> TypeGuard[WeightedEstimator]:
    """Whether its terms are b, w·e, w, by its own `baseline` and `weight`."""
    return isinstance(estimator, WeightedEstimator) and leaves(
        estimator, ("size", "terms", "weights"), of=WeightedEstimator
    )


def has_common_terms(estimator: Estimator) -> TypeGuard[SmoothedEstimator]:
    """Whether its terms are those of all kernel estimators, by its own `references` alone."""
    return has_kernel_weight(estimator) and leaves(estimator, _TERMS, of=SmoothedEstimator)


def has_kernel_weight(estimator: Estimator) -> TypeGuard[SmoothedEstimator]:
    """Whether its weight is the kernel's, w = K*(u)/(|H|^{1/2}·q)."""
    return isinstance(estimator, SmoothedEstimator) and leaves(
        estimator, ("weight",), of=SmoothedEstimator
    )


def knows_point_masses(estimator: Estimator) -> bool:
    """Whether its weight is exact at point masses of the dose, or it has none.

    A class that weights rows in a way of its own sees one density for all doses.
    """
    bins = isinstance(estimator, Discretized) and leaves(estimator, ("weight",), of=Discretized)
    return bins or has_kernel_weight(estimator) or not estimator.uses_propensity


def is_ratio(estimator: Estimator) -> TypeGuard[WeightedEstimator]:
    """Whether its value is m₀ + m₁/m₂."""
    return has_common_value(estimator) and estimator.normalized


def is_robust_ratio(estimator: Estimator) -> bool:
    """Whether it is a ratio in which an outcome model makes up for much that weights get wrong."""
    return isinstance(estimator, DoublyRobust) and is_ratio(estimator)


def has_common_value(estimator: Estimator) -> TypeGuard[WeightedEstimator]:
    """Whether its value is m₀ + m₁/m₂ or m₀ + m₁, as `normalized` says."""
    return isinstance(estimator, WeightedEstimator) and leaves(
        estimator, _VALUE, of=WeightedEstimator
    )


def is_ratio_around_a_constant(estimator: Estimator) -> bool:
    """Whether rows without weight cannot move its value: a ratio around a constant baseline."""
    constant = any(leaves(estimator, ("references",), of=own) for own in _AROUND_A_CONSTANT)
    plain = has_weighted_terms(estimator) and leaves(estimator, ("baseline",), of=WeightedEstimator)
    return plain and constant and is_ratio(estimator)


def is_built_in(estimator: Estimator) -> bool:
    """Whether it is one of the estimators that are searched here, with any kernel and settings."""
    return any(
        isinstance(estimator, own) and leaves(estimator, _SEARCH, of=own) for own in _SEARCHED
    )


def has_search_loop(estimator: Estimator) -> bool:
    """Whether the compiled search over policies of one dose computes what this estimator does."""
    if not is_built_in(estimator):
        return False
    if not isinstance(estimator, SmoothedEstimator):
        return True
    return polynomial(estimator.kernel) is not None and estimator.boundary <= Boundary.LINEAR


def is_piecewise(estimator: Estimator) -> TypeGuard[SmoothedEstimator]:
    """Whether its value is piecewise polynomial or rational in the dose, away from bounds."""
    return isinstance(estimator, (IPW, SelfNormalized)) and has_search_loop(estimator)


def values_of(estimator: Estimator, means: Array) -> Array:
    """Return many values (…) from mean terms (…, k), by `value` if that is all a class defines."""
    if leaves(estimator, ("value",), of=Estimator):
        return estimator.values(means)
    flat = means.reshape(-1, means.shape[-1])
    return np.array([estimator.value(mean) for mean in flat]).reshape(means.shape[:-1])
