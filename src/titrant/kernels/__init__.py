"""Room 2, kernels: how much a logged dose counts by its distance from the policy's dose."""

from titrant.kernels.base import Kernel
from titrant.kernels.biweight import Biweight
from titrant.kernels.boundary import Boundary
from titrant.kernels.epanechnikov import Epanechnikov
from titrant.kernels.gaussian import Gaussian
from titrant.kernels.product import Scale
from titrant.kernels.triangular import Triangular
from titrant.kernels.uniform import Uniform

KERNELS: tuple[type[Kernel], ...] = (Epanechnikov, Gaussian, Triangular, Uniform, Biweight)
"""Every kernel; the law tests run over this list."""

__all__ = [
    "KERNELS",
    "Biweight",
    "Boundary",
    "Epanechnikov",
    "Gaussian",
    "Kernel",
    "Scale",
    "Triangular",
    "Uniform",
]
