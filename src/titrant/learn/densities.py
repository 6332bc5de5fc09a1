"""The propensities that learning starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators import SelfNormalized
from titrant.nuisance import Nuisances

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.propensity import PropensityModel


def propensities(log: LoggedData, propensity: PropensityModel | None) -> Array:
    """Return the propensities of the logged doses (n,), from the column or a fitted model.

    They may be 0, where a model gives a dose no chance: what learns from them has a floor.
    """
    smallest = float(np.finfo(np.float64).tiny)
    nuisances = Nuisances.of(log, SelfNormalized(clip=smallest), propensity)
    q = nuisances.prepare(log).q
    if q is None:
        raise InvalidArgument("The log has no propensities and no model was given.")
    return np.where(q > smallest, q, 0.0)
