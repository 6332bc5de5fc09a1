"""The steps of L-BFGS inside a box or a ball."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.optimize.compiled.pieces import between, beyond

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array

    Index = NDArray[np.int64]

# The sets that parameters stay in, as numbers: bounds, and a ball over the counted parameters.
#
# limits (3, P) holds the lower and the upper bounds, and 1 where a parameter counts for the norm;
# without a ball the radius is infinite. Bounds and a ball do not come together.


_ON_SPHERE = 1.0 - 1e-12
"""Share of the radius from which a point is on the sphere: projection rounds."""


@compiled
def project(x: Array, limits: Array, radius: float) -> None:
    """Move x (P,) to the nearest point of the set."""
    norm = 0.0
    for k in range(len(x)):
        x[k] = min(max(x[k], limits[0, k]), limits[1, k])
        norm += limits[2, k] * x[k] ** 2
    norm = math.sqrt(norm)
    if norm > radius:
        for k in range(len(x)):
            if limits[2, k] > 0.0:
                x[k] *= radius / norm


@compiled
def multiplier(x: Array, g: Array, limits: Array, radius: float) -> float:
    """Return μ ≥ 0 for which g + μx (over the counted) is tangent to the ball; 0 inside it."""
    if radius == math.inf:
        return 0.0
    square = inner = 0.0
    for k in range(len(x)):
        square += limits[2, k] * x[k] ** 2
        inner += limits[2, k] * g[k] * x[k]
    if inner >= 0.0 or square < (_ON_SPHERE * radius) ** 2:
        return 0.0
    return -inner / square


@compiled
def reduce_gradient(
    x: Array, g: Array, limits: Array, radius: float, r: Array, free: Array
) -> None:
    """Set r (P,) to the gradient without what the set holds back, free (P,) to 0 at held bounds."""
    mu = multiplier(x, g, limits, radius)
    for k in range(len(x)):
        held = (x[k] <= limits[0, k] and g[k] > 0.0) or (x[k] >= limits[1, k] and g[k] < 0.0)
        free[k] = 0.0 if held else 1.0
        r[k] = free[k] * (g[k] + mu * limits[2, k] * x[k])


@compiled
def stay_tangent(x: Array, g: Array, limits: Array, radius: float, d: Array) -> None:
    """Take off d (P,) what leads out of the sphere that holds x back."""
    if multiplier(x, g, limits, radius) == 0.0:
        return
    square = inner = 0.0
    for k in range(len(x)):
        square += limits[2, k] * x[k] ** 2
        inner += limits[2, k] * d[k] * x[k]
    for k in range(len(x)):
        d[k] -= limits[2, k] * x[k] * inner / square


@compiled
def largest_move(x: Array, r: Array, limits: Array) -> float:
    """Return max |P(x − r) − x|, P the projection onto the bounds: 0 at a solution."""
    largest = 0.0
    for k in range(len(x)):
        move = min(max(x[k] - r[k], limits[0, k]), limits[1, k]) - x[k]
        largest = max(largest, abs(move))
    return largest


# The two halves of a round of L-BFGS: propose points to evaluate, receive their values.
#
# The state of m runs with P parameters and a memory of M steps is four arrays, changed in place:
#
#     vectors (m, 6, P)    x, gradient g, reduced gradient r, direction d, trial, 1 where free
#     pairs   (m, 2, M, P) recent steps s and changes y of the gradient, each a ring
#     numbers (m, 10)      F … FIRST below
#     counts  (m, 6)       STATUS … TRIALS below
#
# A run never looks at another, so each does the same whether alone or in company.

X, G, R, D, TRIAL, FREE = range(6)
F, STEP, SLOPE, LOW, F_LOW, D_LOW, HIGH, F_HIGH, D_HIGH, FIRST = range(10)
"""Value at x; trial step; slope r'd; ends of the bracket, values and slopes there; first value."""
STATUS, PHASE, KEPT, NEXT, ACCEPTED, TRIALS = range(6)
"""How it ended; what comes next; steps in memory; place of the next; steps; trials of this one."""
NEW, AIMLESS, SEARCHING, SETTLING = range(4)
"""Phases: x not evaluated; no direction yet; in a line search; back at its best known step."""
RUNNING, CONVERGED, STALLED, OUT_OF_STEPS, NOT_FINITE = range(5)

_DECREASE = 1e-3
"""Armijo: share of the predicted decrease that a step must reach."""
_FLATTER = 0.9
"""Wolfe: share of the slope that may be left at its end, or else the step was too short."""
_CURVED = 1e-14
"""A step is remembered when s'y is more than this share of |s||y|."""
_DESCENDS = 1e-12
"""A direction descends when −r'd is more than this share of |r||d|."""
_ROUNDING = 1e-15
"""Share of a value under which a decrease is rounding."""
_TRIALS = 20
"""Trials of one line search."""


@compiled
def propose(
    vectors: Array,
    pairs: Array,
    numbers: Array,
    counts: Index,
    limits: Array,
    radius: float,
    points: Array,
    index: Index,
) -> int:
    """Fill points (m, P) and index (m,) with the trials of all running runs; return how many."""
    active = 0
    for j in range(len(counts)):
        if counts[j, STATUS] != RUNNING:
            continue
        if counts[j, PHASE] == AIMLESS:
            aim(vectors[j], pairs[j], numbers[j], counts[j], limits, radius)
        set_trial(vectors[j], numbers[j, STEP])
        project(vectors[j, TRIAL], limits, radius)
        copy(vectors[j, TRIAL], points[active])
        index[active] = j
        active += 1
    return active


@compiled
def receive(
    vectors: Array,
    pairs: Array,
    numbers: Array,
    counts: Index,
    limits: Array,
    radius: float,
    index: Index,
    values: Array,
    gradients: Array,
    tolerances: tuple[float, float, int],
) -> float:
    """Take in values (a,) and gradients (a, P) at the trials of runs `index`; return the best.

    tolerances are those of the gradient and of the value, and the number of steps.
    """
    for i in range(len(values)):
        j, f, g = index[i], values[i], gradients[i]
        if counts[j, PHASE] == NEW or judge(vectors[j], numbers[j], counts[j], f, g):
            before = numbers[j, F]
            move(vectors[j], pairs[j], numbers[j], counts[j], limits, radius, f, g)
            end(vectors[j], numbers[j], counts[j], limits, before, tolerances)
    best = np.inf
    for j in range(len(numbers)):
        best = min(best, numbers[j, F])
    return best


@fast
def dot(a: Array, b: Array) -> float:
    """Return a'b."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled
def copy(a: Array, out: Array) -> None:
    """Set out to a; a loop compiles faster than an assignment of arrays."""
    for k in range(len(a)):
        out[k] = a[k]


@compiled
def scale(a: Array, by: float) -> None:
    """Multiply a by a number."""
    for k in range(len(a)):
        a[k] *= by


@compiled
def set_trial(v: Array, step: float) -> None:
    """Set the trial to x + step·d."""
    for k in range(v.shape[1]):
        v[TRIAL, k] = v[X, k] + step * v[D, k]


@compiled
def aim(
    v: Array, pairs: Array, numbers: Array, counts: Index, limits: Array, radius: float
) -> None:
    """Begin a line search: quasi-Newton where that descends, else against the gradient."""
    copy(v[R], v[D])
    inverse_hessian(v[D], v[FREE], pairs, counts[KEPT], counts[NEXT])
    scale(v[D], -1.0)
    stay_tangent(v[X], v[G], limits, radius, v[D])
    steep = dot(v[R], v[R])
    slope = dot(v[D], v[R])
    if not slope < -_DESCENDS * math.sqrt(dot(v[D], v[D]) * steep):
        counts[KEPT] = 0
        copy(v[R], v[D])
        scale(v[D], -1.0)
        slope = -steep
    size = math.sqrt(dot(v[D], v[D]))
    # Without memory the length of a step is unknown: one unit, as L-BFGS-B does.
    numbers[STEP] = 1.0 if counts[KEPT] > 0 or size == 0.0 else 1.0 / size
    numbers[SLOPE] = slope
    numbers[LOW], numbers[F_LOW], numbers[D_LOW] = 0.0, numbers[F], slope
    numbers[HIGH] = np.inf
    counts[TRIALS] = 0
    counts[PHASE] = SEARCHING


@fast
def inverse_hessian(q: Array, free: Array, pairs: Array, kept: int, following: int) -> None:
    """Replace q (P,) by H·q over the free parameters (Nocedal & Wright, algorithm 7.4).

    Held parameters are left out of every product, so that H is the inverse over the free alone.
    """
    memory, p = pairs.shape[1], pairs.shape[2]
    alpha, rho = np.zeros(memory), np.zeros(memory)
    unit = 0.0
    for back in range(1, kept + 1):
        i = (following - back) % memory
        s, y = pairs[0, i], pairs[1, i]
        sy = yy = sq = 0.0
        for k in range(p):
            sy += free[k] * s[k] * y[k]
            yy += free[k] * y[k] * y[k]
            sq += free[k] * s[k] * q[k]
        if sy <= _CURVED * yy:
            continue
        rho[i] = 1.0 / sy
        unit = sy / yy if unit == 0.0 else unit
        alpha[i] = rho[i] * sq
        for k in range(p):
            q[k] -= alpha[i] * y[k]
    unit = 1.0 if unit == 0.0 else unit
    for k in range(p):
        q[k] *= unit * free[k]
    for back in range(kept, 0, -1):
        i = (following - back) % memory
        s, y = pairs[0, i], pairs[1, i]
        beta = rho[i] * dot(y, q)
        if rho[i] > 0.0:
            for k in range(p):
                q[k] += free[k] * (alpha[i] - beta) * s[k]


@compiled
def judge(v: Array, numbers: Array, counts: Index, f: float, g: Array) -> bool:
    """Return whether the trial is good enough to move to; if not, choose the next step.

    It must be low enough (Armijo) and, unless the set bent its path, not too steep (Wolfe).
    """
    step = numbers[STEP]
    predicted = slope = 0.0
    bent = False
    for k in range(len(g)):
        predicted += v[R, k] * (v[TRIAL, k] - v[X, k])
        slope += g[k] * v[D, k]
        bent = bent or v[TRIAL, k] != v[X, k] + step * v[D, k]
    counts[TRIALS] += 1
    last = counts[PHASE] == SETTLING or counts[TRIALS] >= _TRIALS
    finite = math.isfinite(f) and math.isfinite(slope)
    if finite and predicted < 0.0 and f <= numbers[F] + _DECREASE * predicted:
        if last or bent or slope >= _FLATTER * numbers[SLOPE]:
            return True
        go_further(numbers, f, slope)
    elif last:
        give_up(numbers, counts)
    else:
        go_back(numbers, f if finite else np.inf, slope)
    return False


@compiled
def go_further(numbers: Array, f: float, slope: float) -> None:
    """Lengthen a step that is low enough but still steep."""
    low, f_low, d_low, step = numbers[LOW], numbers[F_LOW], numbers[D_LOW], numbers[STEP]
    if numbers[HIGH] == np.inf:
        numbers[STEP] = beyond(low, f_low, d_low, step, f, slope)
    else:
        numbers[STEP] = between(step, f, slope, numbers[HIGH], numbers[F_HIGH], numbers[D_HIGH])
    numbers[LOW], numbers[F_LOW], numbers[D_LOW] = step, f, slope


@compiled
def go_back(numbers: Array, f: float, slope: float) -> None:
    """Shorten a step that is not low enough."""
    numbers[HIGH], numbers[F_HIGH], numbers[D_HIGH] = numbers[STEP], f, slope
    numbers[STEP] = between(numbers[LOW], numbers[F_LOW], numbers[D_LOW], numbers[HIGH], f, slope)


@compiled
def give_up(numbers: Array, counts: Index) -> None:
    """End a line search: at its best step, or anew without memory, or else the run."""
    if numbers[LOW] > 0.0 and counts[PHASE] != SETTLING:
        numbers[STEP] = numbers[LOW]
        counts[PHASE] = SETTLING
    elif counts[KEPT] > 0:
        counts[KEPT] = 0
        counts[PHASE] = AIMLESS
    else:
        counts[STATUS] = STALLED


@compiled
def move(
    v: Array,
    pairs: Array,
    numbers: Array,
    counts: Index,
    limits: Array,
    radius: float,
    f: float,
    g: Array,
) -> None:
    """Make the trial the point x, and remember the step if it was one."""
    if counts[PHASE] != NEW:
        old, new = multiplier(v[X], v[G], limits, radius), multiplier(v[TRIAL], g, limits, radius)
        s, y = pairs[0, counts[NEXT]], pairs[1, counts[NEXT]]
        for k in range(len(g)):
            s[k] = v[TRIAL, k] - v[X, k]
            held = limits[2, k] * (new * v[TRIAL, k] - old * v[X, k])
            y[k] = g[k] - v[G, k] + held
        if dot(s, y) > _CURVED * math.sqrt(dot(s, s) * dot(y, y)):
            counts[NEXT] = (counts[NEXT] + 1) % pairs.shape[1]
            counts[KEPT] = min(counts[KEPT] + 1, pairs.shape[1])
        counts[ACCEPTED] += 1
    counts[PHASE] = AIMLESS
    numbers[F] = f
    copy(v[TRIAL], v[X])
    copy(g, v[G])
    reduce_gradient(v[X], v[G], limits, radius, v[R], v[FREE])


@compiled
def end(
    v: Array,
    numbers: Array,
    counts: Index,
    limits: Array,
    before: float,
    tolerances: tuple[float, float, int],
) -> None:
    """Set the status of a run that need not or cannot go on from x."""
    f = numbers[F]
    if not math.isfinite(before):
        numbers[FIRST] = f
    # Relative to the value, but to no more than it has changed: an outcome's zero says nothing.
    unit = max(min(abs(f), numbers[FIRST] - f), 1.0)
    least = max(tolerances[1] * unit, _ROUNDING * abs(f))
    settled = math.isfinite(before) and before - f <= least
    if not (math.isfinite(f) and math.isfinite(dot(v[G], v[G]))):
        counts[STATUS] = NOT_FINITE
    elif settled or largest_move(v[X], v[R], limits) <= tolerances[0]:
        counts[STATUS] = CONVERGED
    elif counts[ACCEPTED] >= tolerances[2]:
        counts[STATUS] = OUT_OF_STEPS
