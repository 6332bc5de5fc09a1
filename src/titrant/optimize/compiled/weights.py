"""The weight of each row and its baseline, with their slopes in the dose.

A compact kernel comes as five coefficients, constant first: K(v) = Σₖ cₖ|v|ᵏ on |v| ≤ 1. The
policy's dose is τ cut to [low, high]; where it is cut it does not move, and all slopes are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.compiled.decorators import compiled, fast

if TYPE_CHECKING:
    from titrant._types import Array

    Ends = tuple[float, float]


@fast
def set_weights(
    t: Array, g: Array, tau: Array, ends: Ends, h: float, c: Array, w: Array, dw: Array
) -> None:
    """Set w = g·K((t − τ)/h) and ∂w/∂τ, each (B,); without branches, so that it vectorizes."""
    (low, high), r = ends, 1.0 / h
    c0, c1, c2, c3, c4 = c[0], c[1], c[2], c[3], c[4]
    d1, d2, d3 = 2.0 * c2, 3.0 * c3, 4.0 * c4
    for i in range(len(t)):
        raw = tau[i]
        v = (t[i] - min(max(raw, low), high)) * r
        a = abs(v)
        scale = g[i] if a <= 1.0 else 0.0
        w[i] = scale * (c0 + a * (c1 + a * (c2 + a * (c3 + a * c4))))
        moving = 0.0 if (raw <= low or raw >= high or v == 0.0) else scale * r
        slope = moving * (c1 + a * (d1 + a * (d2 + a * d3)))
        dw[i] = slope if v < 0.0 else -slope


@compiled
def set_weights_near_bounds(
    t: Array,
    g: Array,
    tau: Array,
    ends: Ends,
    h: float,
    c: Array,
    degree: int,
    bounds: Array,
    w: Array,
    dw: Array,
) -> None:
    """Replace w and ∂w/∂τ (B,) of rows within h of a bound (2, B) by the boundary kernel's."""
    low, high = ends
    for i in range(len(t)):
        dose = min(max(tau[i], low), high)
        left, right, v = (bounds[0, i] - dose) / h, (bounds[1, i] - dose) / h, (t[i] - dose) / h
        # Rows that fill the last block have g = 0 and no bounds to speak of.
        if abs(v) <= 1.0 and (left > -1.0 or right < 1.0) and g[i] > 0.0:
            value, slope = local_kernel_slope(c, degree, v, left, right)
            w[i] = g[i] * value
            dw[i] = g[i] * slope / h if low < tau[i] < high else 0.0


@compiled
def set_baselines(
    table: Array, start: int, tau: Array, ends: Ends, grid: Ends, b: Array, db: Array
) -> None:
    """Set b = r̂(τ, x) and ∂b/∂τ, each (B,), by the cubic Hermite interpolant of a dose table.

    table (n, G, 2) holds r̂ and its slope a step at the doses of a grid (first dose, step).
    Beyond the grid the curve is flat (see `titrant.outcome.table`).
    """
    (low, high), last = ends, table.shape[1] - 1
    for i in range(min(len(tau), len(table) - start)):
        place = (min(max(tau[i], low), high) - grid[0]) / grid[1]
        inside = low < tau[i] < high and 0.0 <= place <= last
        place = min(max(place, 0.0), float(last))
        cell = min(int(place), last - 1)
        left, right = table[start + i, cell], table[start + i, cell + 1]
        u = place - cell
        v = 1.0 - u
        b[i] = v * v * ((1.0 + 2.0 * u) * left[0] + u * left[1])
        b[i] += u * u * ((3.0 - 2.0 * u) * right[0] - v * right[1])
        slope = 6.0 * u * v * (right[0] - left[0])
        slope += v * (1.0 - 3.0 * u) * left[1] + u * (3.0 * u - 2.0) * right[1]
        db[i] = slope / grid[1] if inside else 0.0
    for i in range(max(len(table) - start, 0), len(tau)):
        b[i] = db[i] = 0.0


@compiled
def local_kernel_slope(
    c: Array, degree: int, v: float, low: float, high: float
) -> tuple[float, float]:
    """Return K*(v) and h·∂K*/∂τ for |v| ≤ 1 (see `titrant.kernels.boundary`); degree 0 or 1.

    A bound that the dose has passed is held at 0 and does not move with it.
    """
    value, slope = kernel_value(c, v), kernel_slope(c, v)
    left = kernel_value(c, low) if low <= 0.0 else 0.0
    right = kernel_value(c, high) if high >= 0.0 else 0.0
    lo, hi = max(min(low, 0.0), -1.0), min(max(high, 0.0), 1.0)
    a0, d0 = kernel_area(c, 0, hi) - kernel_area(c, 0, lo), left - right
    if degree == 0:
        return value / a0, -slope / a0 - value * d0 / a0**2
    a1, d1 = kernel_area(c, 1, hi) - kernel_area(c, 1, lo), lo * left - hi * right
    a2, d2 = kernel_area(c, 2, hi) - kernel_area(c, 2, lo), lo * lo * left - hi * hi * right
    det = a0 * a2 - a1 * a1
    ddet = d0 * a2 + a0 * d2 - 2.0 * a1 * d1
    c0, c1 = a2 / det, -a1 / det
    dc0, dc1 = (d2 - c0 * ddet) / det, (-d1 - c1 * ddet) / det
    p = c0 + c1 * v
    return value * p, value * (dc0 + dc1 * v - c1) - slope * p


@compiled
def kernel_value(c: Array, v: float) -> float:
    """Return K(v)."""
    a = abs(v)
    return c[0] + a * (c[1] + a * (c[2] + a * (c[3] + a * c[4]))) if a <= 1.0 else 0.0


@compiled
def kernel_slope(c: Array, v: float) -> float:
    """Return K′(v) for |v| ≤ 1; 0 at a corner."""
    a = abs(v)
    slope = c[1] + a * (2.0 * c[2] + a * (3.0 * c[3] + a * 4.0 * c[4]))
    return slope if v > 0.0 else (-slope if v < 0.0 else 0.0)


@compiled
def kernel_area(c: Array, j: int, u: float) -> float:
    """Return ∫₀ᵘ vʲK(v) dv for |u| ≤ 1."""
    a = abs(u)
    total = 0.0
    for k in range(len(c) - 1, -1, -1):
        total = total * a + c[k] / (j + k + 1)
    value = total * a ** (j + 1)
    return -value if (u < 0.0 and j % 2 == 0) else value
