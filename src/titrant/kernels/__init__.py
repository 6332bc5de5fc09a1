"""Room 2, kernels: how much a logged dose counts by its distance from the policy's dose."""

from titrant.kernels.base import CompactKernel, Kernel
from titrant.kernels.boundary import Boundary
from titrant.kernels.gaussian import Gaussian
from titrant.kernels.polynomial import Biweight, Epanechnikov, Triangular, Uniform
from titrant.kernels.product import Scale

KERNELS: tuple[type[Kernel], ...] = (Epanechnikov, Gaussian, Triangular, Uniform, Biweight)
"""Every kernel; the law tests run over this list."""

__all__ = [
    "KERNELS",
    "Biweight",
    "Boundary",
    "CompactKernel",
    "Epanechnikov",
    "Gaussian",
    "Kernel",
    "Scale",
    "Triangular",
    "Uniform",
]
