"""Generalized propensities q = f(t|x): what the log's treatments looked like given the context.

Scalar treatments: `Known`, `LinearGaussian`, `HeteroscedasticGaussian`, `GaussianMixture`,
`LocationScale`, `KernelConditional`; for contexts that act nonlinearly `SmoothLocation`,
`SmoothLocationScale`, `GatedMixture` and the `DensityAverage` of several; `CrossPropensity`
cross-fits such an average, and with `smooth_members` it is the default where propensities are
unknown. Vector treatments: `MultivariateGaussian`. An unconditional density is a model fitted on
one constant column.
"""

from titrant.propensity.average import DensityAverage, smooth_members
from titrant.propensity.base import FittedPropensity, NormalModel, Propensity, PropensityModel
from titrant.propensity.calibration import Calibration, calibration, calibration_of, held_out
from titrant.propensity.crossfit import CrossPropensity
from titrant.propensity.gated import GatedMixture
from titrant.propensity.gaussian import (
    HeteroscedasticGaussian,
    LinearGaussian,
    MultivariateGaussian,
)
from titrant.propensity.kernel_conditional import KernelConditional
from titrant.propensity.known import Known
from titrant.propensity.laws import Truncated, truncated_cdf, truncated_density
from titrant.propensity.masses import CrossMasses, MixedLaws
from titrant.propensity.mixture import GaussianMixture
from titrant.propensity.smooth import LocationScale, SmoothLocation, SmoothLocationScale

PROPENSITIES: tuple[type[Propensity], ...] = (
    LinearGaussian,
    HeteroscedasticGaussian,
    GaussianMixture,
    LocationScale,
    KernelConditional,
    SmoothLocation,
    SmoothLocationScale,
    GatedMixture,
    DensityAverage,
    MultivariateGaussian,
)
"""The models fitted from data; the law tests run over this list."""

__all__ = [
    "PROPENSITIES",
    "Calibration",
    "CrossMasses",
    "CrossPropensity",
    "DensityAverage",
    "FittedPropensity",
    "GatedMixture",
    "GaussianMixture",
    "HeteroscedasticGaussian",
    "KernelConditional",
    "Known",
    "LinearGaussian",
    "LocationScale",
    "MixedLaws",
    "MultivariateGaussian",
    "NormalModel",
    "Propensity",
    "PropensityModel",
    "SmoothLocation",
    "SmoothLocationScale",
    "Truncated",
    "calibration",
    "calibration_of",
    "held_out",
    "smooth_members",
    "truncated_cdf",
    "truncated_density",
]
