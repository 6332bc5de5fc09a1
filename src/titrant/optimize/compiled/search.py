"""The penalized estimate of policies τ = φ'β, and a whole search for the least one.

The compiled twin of `titrant.optimize.objective`, where all rows are in memory and an estimate is
b + w·e or b + w·e/w: no round of a search goes through Python. Value and gradient take two
readings of a tape, one pass over the features each way. Arguments that come as tuples: `state` and
`limits`, see below; `log`, the arguments of `sums.added_sums` after the parameters; `penalties`,
which are (the number of rows, whether the estimate is normalized, the center of its first term),
the factors (sign, λ, ESS floor, its strength), and ridge and its center (P,).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.compiled.decorators import compiled, fast
from titrant.optimize.compiled.sums import blank_tape, record, replay

if TYPE_CHECKING:
    from titrant._types import Array

    Log = tuple[Any, ...]
    Shape = tuple[int, bool, float]
    Factors = tuple[float, float, float, float]
    Penalties = tuple[Shape, Factors, Array, Array]
    from numpy.typing import NDArray

    Index = NDArray[np.int64]
    Limits = tuple[Array, float]
    State = tuple[Array, Array, Array, Index]
    Tolerances = tuple[float, float, int]


@compiled
def descend(
    state: State,
    limits: Limits,
    tolerances: Tolerances,
    points: Array,
    index: Index,
    log: Log,
    penalties: Penalties,
) -> int:
    """Take all runs to their ends; return the number of evaluations."""
    tape = blank_tape(len(points), log[0])
    evaluations = 0
    while True:
        active = propose(state, limits, points, index)
        if active == 0:
            return evaluations
        f, g = penalized_estimates(tape, points[:active], log, penalties)
        receive(state, limits, index[:active], f, g, tolerances)
        evaluations += active


@compiled
def objective(params: Array, log: Log, penalties: Penalties) -> tuple[Array, Array]:
    """Return the values (m,) and gradients (m, P) at points (m, P)."""
    return penalized_estimates(blank_tape(len(params), log[0]), params, log, penalties)


@compiled
def penalized_estimates(
    tape: Array, params: Array, log: Log, penalties: Penalties
) -> tuple[Array, Array]:
    """Do the same with a tape that is there."""
    shape, factors, ridge, ridge_center = penalties
    blocks, pairs, _, how = log
    sums = record(tape, params, blocks, pairs, how)
    value, slopes = np.zeros(len(params)), np.zeros(sums.shape)
    for j in range(len(params)):
        value[j] = penalized(sums[j], pairs, shape, factors, slopes[j])
    gradient = replay(tape, blocks, pairs, slopes)
    for j in range(len(params)):
        for k in range(len(ridge)):
            away = params[j, k] - ridge_center[k]
            value[j] += ridge[k] * away * away
            gradient[j, k] += 2.0 * ridge[k] * away
    return value, gradient


@compiled
def penalized(sums: Array, pairs: Index, shape: Shape, factors: Factors, slopes: Array) -> float:
    """Return sign·v + λ·SE + strength·max(0, floor/ESS − 1)², and set its slopes in the sums.

    sums (3 + S,) are those of b − center, w·e and w, and of the products of pairs (S, 2).
    """
    n, normalized, center = shape
    sign, weight, floor, strength = factors
    b, we, w = sums[0] / n + center, sums[1] / n, sums[2] / n
    g, bend = np.ones(3), np.zeros(2)
    if normalized:
        v = b + we / w
        g[1], g[2] = 1.0 / w, -we / (w * w)
        bend[0], bend[1] = -1.0 / (w * w), 2.0 * we / (w * w * w)
    else:
        v = b + we
        g[2] = 0.0
    value: float = sign * v
    for a in range(3):
        slopes[a] = sign * g[a] / n
    if weight != 0.0:
        value += weight * standard_error(sums, pairs, n, g, bend, weight, slopes)
    if floor != 0.0:
        value += shortage(sums, floor, strength, slopes)
    return value


@compiled
def standard_error(
    sums: Array, pairs: Index, n: int, g: Array, bend: Array, weight: float, slopes: Array
) -> float:
    """Return SE, SE² = g'Cg/n with C = zz/n − oo', o = z/n; add λ times its slopes.

    They are λ/(2n²·SE) times 2(HCg − (g'o)g) in z and gg' in zz; bend (2,) is H₁₂ and H₂₂.
    """
    level = variance = 0.0
    cg = np.zeros(3)
    for s in range(len(pairs)):
        one, two = pairs[s]
        c = sums[3 + s] / n - sums[one] / n * sums[two] / n
        cg[one] += c * g[two]
        if one != two:
            cg[two] += c * g[one]
    for a in range(3):
        level += g[a] * sums[a] / n
        variance += g[a] * cg[a]
    se = math.sqrt(max(variance, 0.0) / n)
    scale = weight / (2.0 * n * n * max(se, 1e-300))
    through = np.array([0.0, bend[0] * cg[2], bend[0] * cg[1] + bend[1] * cg[2]])
    for a in range(3):
        slopes[a] += 2.0 * scale * (through[a] - level * g[a])
    for s in range(len(pairs)):
        one, two = pairs[s]
        slopes[3 + s] += scale * g[one] * g[two] * (1.0 if one == two else 2.0)
    return se


@compiled
def shortage(sums: Array, floor: float, strength: float, slopes: Array) -> float:
    """Return strength·max(0, floor·Σw²/(Σw)² − 1)², Σw² the last of the sums; add its slopes.

    Without any weight the effective sample size is 0 and the result infinite.
    """
    w, w2 = sums[2], sums[-1]
    if w == 0.0:
        return math.inf
    short: float = floor * w2 / (w * w) - 1.0
    if not short > 0.0:
        return 0.0
    scale = 2.0 * strength * short * floor / (w * w)
    slopes[-1] += scale
    slopes[2] -= 2.0 * scale * w2 / w
    return strength * short * short


# ── The steps of L-BFGS inside a box or a ball ────────────────────────────────────────────────────

# The sets that parameters stay in, as numbers: bounds, and a ball over the counted parameters.
#
# `limits` are an array (3, P), the lower and the upper bounds and 1 where a parameter counts for
# the norm, and the radius of the ball, infinite without one. Bounds and balls are not combined.

_ON_SPHERE = 1.0 - 1e-12
"""Share of the radius from which a point is on the sphere: projection rounds."""


@compiled
def project(x: Array, limits: Limits) -> None:
    """Move x (P,) to the nearest point of the set."""
    low, high, counted, radius = limits[0][0], limits[0][1], limits[0][2], limits[1]
    norm = 0.0
    for k in range(len(x)):
        x[k] = min(max(x[k], low[k]), high[k])
        norm += counted[k] * x[k] ** 2
    norm = math.sqrt(norm)
    if norm > radius:
        for k in range(len(x)):
            if counted[k] > 0.0:
                x[k] *= radius / norm


@compiled
def multiplier(x: Array, g: Array, limits: Limits) -> float:
    """Return μ ≥ 0 for which g + μx (over the counted) is tangent to the ball; 0 inside it."""
    counted, radius = limits[0][2], limits[1]
    if radius == math.inf:
        return 0.0
    square = inner = 0.0
    for k in range(len(x)):
        square += counted[k] * x[k] ** 2
        inner += counted[k] * g[k] * x[k]
    if inner >= 0.0 or square < (_ON_SPHERE * radius) ** 2:
        return 0.0
    return -inner / square


@compiled
def reduce_gradient(x: Array, g: Array, limits: Limits, r: Array, free: Array) -> None:
    """Set r (P,) to the gradient without what the set holds back, free (P,) to 0 at held bounds."""
    low, high, counted = limits[0][0], limits[0][1], limits[0][2]
    mu = multiplier(x, g, limits)
    for k in range(len(x)):
        held = (x[k] <= low[k] and g[k] > 0.0) or (x[k] >= high[k] and g[k] < 0.0)
        free[k] = 0.0 if held else 1.0
        r[k] = free[k] * (g[k] + mu * counted[k] * x[k])


@compiled
def stay_tangent(x: Array, g: Array, limits: Limits, d: Array) -> None:
    """Take off d (P,) what leads out of the sphere that holds x back."""
    if multiplier(x, g, limits) == 0.0:
        return
    counted = limits[0][2]
    square = inner = 0.0
    for k in range(len(x)):
        square += counted[k] * x[k] ** 2
        inner += counted[k] * d[k] * x[k]
    for k in range(len(x)):
        d[k] -= counted[k] * x[k] * inner / square


@compiled
def largest_move(x: Array, r: Array, limits: Limits) -> float:
    """Return max |P(x − r) − x|, P the projection onto the bounds: 0 at a solution."""
    low, high = limits[0][0], limits[0][1]
    largest = 0.0
    for k in range(len(x)):
        move = min(max(x[k] - r[k], low[k]), high[k]) - x[k]
        largest = max(largest, abs(move))
    return largest


# The two halves of a round of L-BFGS: propose points to evaluate, receive their values.
#
# The state of m runs with P parameters and a memory of M steps is four arrays, changed in place,
# and the state of one run the same four without the first axis:
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
def propose(state: State, limits: Limits, points: Array, index: Index) -> int:
    """Fill points (m, P) and index (m,) with the trials of all running runs; return how many."""
    vectors, pairs, numbers, counts = state
    active = 0
    for j in range(len(counts)):
        if counts[j, STATUS] != RUNNING:
            continue
        if counts[j, PHASE] == AIMLESS:
            aim((vectors[j], pairs[j], numbers[j], counts[j]), limits)
        v = vectors[j]
        for k in range(v.shape[1]):
            v[TRIAL, k] = v[X, k] + numbers[j, STEP] * v[D, k]
        project(v[TRIAL], limits)
        copy(v[TRIAL], 1.0, points[active])
        index[active] = j
        active += 1
    return active


@compiled
def receive(
    state: State,
    limits: Limits,
    index: Index,
    values: Array,
    gradients: Array,
    tolerances: Tolerances,
) -> float:
    """Take in values (a,) and gradients (a, P) at the trials of runs `index`; return the best.

    tolerances are those of the gradient and of the value, and the number of steps.
    """
    vectors, pairs, numbers, counts = state
    for i in range(len(values)):
        j, f, g = index[i], values[i], gradients[i]
        run = (vectors[j], pairs[j], numbers[j], counts[j])
        if counts[j, PHASE] == NEW or judge(run, f, g):
            before = numbers[j, F]
            move(run, limits, f, g)
            end(run, limits, before, tolerances)
    best: float = numbers[:, F].min()
    return best


@fast
def dot(a: Array, b: Array) -> float:
    """Return a'b."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@compiled
def copy(a: Array, times: float, out: Array) -> None:
    """Set out to a times a number; a loop compiles faster than an assignment of arrays."""
    for k in range(len(a)):
        out[k] = times * a[k]


@compiled
def aim(run: State, limits: Limits) -> None:
    """Begin a line search: quasi-Newton where that descends, else against the gradient."""
    v, pairs, numbers, counts = run
    copy(v[R], -1.0, v[D])
    inverse_hessian(v[D], v[FREE], pairs, counts[KEPT], counts[NEXT])
    stay_tangent(v[X], v[G], limits, v[D])
    steep = dot(v[R], v[R])
    slope = dot(v[D], v[R])
    if not slope < -_DESCENDS * math.sqrt(dot(v[D], v[D]) * steep):
        counts[KEPT] = 0
        copy(v[R], -1.0, v[D])
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
def judge(run: State, f: float, g: Array) -> bool:
    """Return whether the trial is good enough to move to; if not, choose the next step.

    It must be low enough (Armijo) and, unless the set bent its path, not too steep (Wolfe).
    """
    v, _, numbers, counts = run
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
def move(run: State, limits: Limits, f: float, g: Array) -> None:
    """Make the trial the point x, and remember the step if it was one."""
    v, pairs, numbers, counts = run
    if counts[PHASE] != NEW:
        old, new = multiplier(v[X], v[G], limits), multiplier(v[TRIAL], g, limits)
        s, y = pairs[0, counts[NEXT]], pairs[1, counts[NEXT]]
        for k in range(len(g)):
            s[k] = v[TRIAL, k] - v[X, k]
            held = limits[0][2, k] * (new * v[TRIAL, k] - old * v[X, k])
            y[k] = g[k] - v[G, k] + held
        if dot(s, y) > _CURVED * math.sqrt(dot(s, s) * dot(y, y)):
            counts[NEXT] = (counts[NEXT] + 1) % pairs.shape[1]
            counts[KEPT] = min(counts[KEPT] + 1, pairs.shape[1])
        counts[ACCEPTED] += 1
    counts[PHASE] = AIMLESS
    numbers[F] = f
    copy(v[TRIAL], 1.0, v[X])
    copy(g, 1.0, v[G])
    reduce_gradient(v[X], v[G], limits, v[R], v[FREE])


@compiled
def end(run: State, limits: Limits, before: float, tolerances: Tolerances) -> None:
    """Set the status of a run that need not or cannot go on from x."""
    v, _, numbers, counts = run
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


# The step of a line search: where a cubic through two ends with their slopes is least.

_NEAR, _FAR = 0.1, 0.9
"""A new step keeps this share of the bracket away from both of its ends."""
_LEAST, _MOST = 2.0, 5.0
"""Factors by which a step grows that was too short."""


@compiled
def between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return a step between a, which descends (da < 0), and b > a, which is too far.

    The minimizer of the cubic through values f and slopes d; of the quadratic through fa, da, fb
    when that is nearer to a; the middle when f or d is not finite at b.
    """
    width = b - a
    step = a + 0.5 * width
    if abs(fb) < float("inf"):
        curvature = (fb - fa) / width - da
        if curvature > 0.0:
            step = a - 0.5 * da * width / curvature
        cubic = _cubic(a, fa, da, b, fb, db)
        if a < cubic < b:
            step = cubic if (curvature <= 0.0 or cubic < step) else 0.5 * (cubic + step)
    return min(max(step, a + _NEAR * width), a + _FAR * width)


@compiled
def beyond(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return a step beyond b > a, where the function still descends steeply."""
    step = _cubic(a, fa, da, b, fb, db)
    if not step > b:
        step = a + _MOST * (b - a)
    return min(max(step, a + _LEAST * (b - a)), a + _MOST * (b - a))


@compiled
def _cubic(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return where the cubic interpolant is least (Nocedal & Wright, 3.59), or nan."""
    d1 = da + db - 3.0 * (fa - fb) / (a - b)
    square: float = d1 * d1 - da * db
    if not square >= 0.0:
        return float("nan")
    d2 = math.sqrt(square)
    below = db - da + 2.0 * d2
    if below == 0.0:
        return float("nan")
    return b - (b - a) * (db + d2 - d1) / below
