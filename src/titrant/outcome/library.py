"""The outcome models that titrant tries when the user names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.outcome.bounded import Bounded
from titrant.outcome.contexts_only import ContextsOnly
from titrant.outcome.quadratic import Quadratic
from titrant.outcome.ridge import RidgeModel
from titrant.outcome.smooth import SmoothContext
from titrant.outcome.spline import Spline
from titrant.outcome.trees import Trees
from titrant.outcome.well import Well

if TYPE_CHECKING:
    from titrant.outcome.base import OutcomeModel


def ridge_pair() -> dict[str, OutcomeModel]:
    """Return the two ridge models: the fast variant of the library."""
    return {
        "quadratic": Bounded(RidgeModel(Quadratic())),
        "spline": Bounded(RidgeModel(Spline())),
    }


def library(dimension: int = 1, *, seed: int = 0) -> dict[str, OutcomeModel]:
    """Return all models that apply to a treatment of `dimension` doses, by name."""
    well = {"well": Bounded(Well(seed=seed))} if dimension == 1 else {}
    return {**ridge_pair(), **well, "trees": Bounded(Trees(seed=seed))}


def smooth_library(dimension: int = 1) -> dict[str, OutcomeModel]:
    """Return four ridge models for contexts that `FoldForests` extended, d doses, by name.

    All are smooth in the dose: the bandwidth and the interval are calibrated on that.
    """
    extra = 1 + dimension
    plain = {**ridge_pair(), "smooth": Bounded(RidgeModel(SmoothContext()))}
    return {
        **{name: ContextsOnly(model, extra=extra) for name, model in plain.items()},
        "forest": Bounded(RidgeModel(SmoothContext(extra=extra))),
    }
