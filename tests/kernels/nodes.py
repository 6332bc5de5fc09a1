"""How many nodes integrate a kernel exactly."""

from __future__ import annotations

from titrant.kernels import CompactKernel, Kernel

SMOOTH = 20  # for what is no polynomial: a Gaussian on panels of width one, to rounding


def nodes(kernel: Kernel, *, power: int = 1, times: int = 4, otherwise: int = SMOOTH) -> int:
    """Nodes of Gauss–Legendre by which ∫K(u)ᵖ·p(u) du between two corners is exact.

    p is any polynomial of degree `times`; m nodes are exact up to degree 2m − 1.
    """
    if not isinstance(kernel, CompactKernel):
        return otherwise
    degree = power * (len(kernel.coefficients) - 1) + times
    return degree // 2 + 1
