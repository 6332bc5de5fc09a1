"""`evaluate` and `compare` against the paper's sums as loops, from the table to the interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression

import naive
from evaluation.logs import KINDS, KNOWN, NEAR, WrongMean, kind_name, smooth_log, with_model
from titrant import (
    IPW,
    Constant,
    DirectMethod,
    Discretized,
    DoublyRobust,
    Epanechnikov,
    LoggedData,
    SelfNormalized,
    compare,
    evaluate,
)
from titrant.estimators import ESTIMATORS, Observed, SmoothedEstimator
from titrant.inference import RobustBiasCorrected
from titrant.kernels import KERNELS
from titrant.outcome import fold_of

LOOP = 1e-12  # the same sums in another order
QUADRATURE = 1e-11  # the oracle integrates the boundary kernel's moments numerically


def one_dose(n=60):
    return smooth_log(n, seed=3), NEAR, 0.6


def bounded(n=60):
    # Bounds that differ by row, T uniform between them; the policy hugs the lower one.
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(n, 1))
    lower, upper = x[:, 0], 1.5 + x[:, 0] ** 2
    t = rng.uniform(lower, upper)
    y = np.sin(3 * t) + x[:, 0] + rng.normal(scale=0.5, size=n)
    log = LoggedData(x, t, y, 1 / (upper - lower), bounds=(lower, upper))
    return log, lambda X: X[:, 0] + np.maximum(0.3 * X[:, 0] - 0.1, 0.0), 0.8


def two_doses(n=60, h=(0.9, 1.3)):
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(n, 1))
    t = rng.normal(x, 1.0, size=(n, 2))
    y = (t**2).sum(axis=1) + x[:, 0] + rng.normal(size=n)
    q = np.exp(-0.5 * ((t - x) ** 2).sum(axis=1)) / (2 * np.pi)
    return LoggedData(x, t, y, q), lambda X: np.column_stack([X[:, 0], 0.5 + 0 * X[:, 0]]), h


def two_doses_one_matrix():
    return two_doses(h=((1.2, 0.4), (0.4, 1.5)))


def two_bounded_doses(n=90, policy_dose=0.9):
    rng = np.random.default_rng(6)
    x, t = rng.uniform(size=(n, 1)), rng.uniform(size=(n, 2))
    log = LoggedData(x, t, t.sum(axis=1) + rng.normal(size=n), np.ones(n), bounds=(0.0, 1.0))
    return log, lambda X: np.column_stack([0.2 * X[:, 0], policy_dose + 0 * X[:, 0]]), (0.4, 0.5)


def corner():
    # So few rows in the corner that the order-four weights cancel: second order at h/2.
    return two_bounded_doses(120, 1.0)


def empty_corner():
    # Here those at h/2 cancel as well.
    return two_bounded_doses(60, 1.0)


CASES = [
    one_dose,
    bounded,
    two_doses,
    two_doses_one_matrix,
    two_bounded_doses,
    corner,
    empty_corner,
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
each_kernel = pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=repr)


def loop_weights(log, tau, h, *, kernel="Epanechnikov", degree=1, floor=0.0):
    """The weight of each row, by loops."""
    return [
        naive.weight(
            kernel,
            degree,
            h,
            tau=tau[i].tolist(),
            t=log.doses[i].tolist(),
            q=max(float(log.propensity[i]), floor),
            lower=log.lower[i].tolist() if log.bounded else None,
            upper=log.upper[i].tolist() if log.bounded else None,
        )
        for i in range(len(log))
    ]


def default_floor(log):
    """.01 divided by the standard deviation of each dose."""
    floor = 0.01
    for j in range(log.dimension):
        column = log.doses[:, j].tolist()
        mean = sum(column) / len(column)
        floor /= math.sqrt(sum((t - mean) ** 2 for t in column) / len(column))
    return floor


def predictions(log, doses):
    return WrongMean().predict(np.column_stack([log.context, doses]))


def loop_estimate(estimator, log, policy, h):
    """Value and standard error by the loops of `naive`; the outcome model is `WrongMean`."""
    tau = np.reshape(policy(log.context), log.doses.shape)
    y, r_tau, r_logged = log.outcome, predictions(log, tau), predictions(log, log.doses)
    if isinstance(estimator, Observed):
        return naive.mean_and_error(y)
    if isinstance(estimator, DirectMethod):
        return naive.direct_method(r_tau)
    floor = default_floor(log) if estimator.clip is None else estimator.clip
    w = loop_weights(log, tau, h, kernel=type(estimator.kernel).__name__, floor=floor)
    if isinstance(estimator, IPW):
        c = sum(y) / len(y) if estimator.centered else 0.0
        value, se = naive.ipw(w, [yi - c for yi in y])
        return value + c, se
    if isinstance(estimator, SelfNormalized):
        return naive.self_normalized(w, y)
    form = naive.doubly_robust_self_normalized if estimator.normalized else naive.doubly_robust
    return form(w, y, r_tau, r_logged)


WITHOUT_BINS = [with_model(e, WrongMean()) for e in ESTIMATORS if not isinstance(e, Discretized)]


@each_case
@pytest.mark.parametrize("estimator", WITHOUT_BINS, ids=kind_name)
def test_value_and_error_are_those_of_the_loops(estimator, case):
    log, policy, h = case()
    expected = loop_estimate(estimator, log, policy, h)
    found = evaluate(log, policy, estimator=estimator, bandwidth=h, allow_untrusted=True)
    tolerance = QUADRATURE if log.bounded else LOOP
    assert (found.value, found.se) == pytest.approx(expected, rel=tolerance)


@each_kernel
def test_every_kernel_and_a_floor_that_bites(kernel):
    log, policy, h = one_dose()
    estimator = SelfNormalized(kernel=kernel, clip=0.3)
    found = evaluate(log, policy, estimator=estimator, bandwidth=h, allow_untrusted=True)
    expected = loop_estimate(estimator, log, policy, h)
    assert (found.value, found.se) == pytest.approx(expected, rel=LOOP)
    touched = sum(q < 0.3 for q in log.propensity) / len(log)
    assert touched > 0.1
    assert found.method["floor_share"] == pytest.approx(touched)
    assert found.method["floor"] == 0.3


@pytest.mark.parametrize("self_normalized", [True, False])
def test_bins_are_those_of_the_loop(self_normalized):
    log, policy, _ = one_dose()
    estimator = Discretized(bins=4, self_normalized=self_normalized, clip=0.0)
    found = evaluate(log, policy, estimator=estimator, propensity=KNOWN, allow_untrusted=True)
    low, high = min(log.treatment), max(log.treatment)
    edges = [low + (high - low) * k / 4 for k in (1, 2, 3)]
    tau = policy(log.context)
    w = []
    for i in range(len(log)):
        x = log.context[i : i + 1]

        def probability(a, b, x=x):
            return float(KNOWN.cdf(x, [b])[0] - KNOWN.cdf(x, [a])[0])

        w.append(naive.bin_weight(tau[i], log.treatment[i], edges, probability))
    loop = naive.self_normalized if self_normalized else naive.ipw
    assert (found.value, found.se) == pytest.approx(loop(w, log.outcome), rel=LOOP)


@pytest.mark.parametrize("folds", [1, 2, 5])
def test_cross_fitting_is_least_squares_on_the_other_folds(folds):
    # Each row is predicted by a regression on the rows of all other folds; one fold sees them all.
    # The models' share in the error comes of all rows, predicted by each regression in turn.
    log, policy, h = one_dose(80)
    tau, n = policy(log.context), len(log)
    fold = fold_of(0, n, folds, 11)
    ones = np.ones((n, 1))
    design = np.hstack([ones, log.context, log.doses])
    target = np.hstack([ones, log.context, tau[:, None]])
    w = loop_weights(log, tau[:, None], h, floor=default_floor(log))
    r_tau, r_logged, values = np.empty(n), np.empty(n), []
    for k in range(folds):
        others = [j for j in range(n) if fold[j] != k or folds == 1]
        beta, *_ = np.linalg.lstsq(design[others], log.outcome[others], rcond=None)
        for i in range(n):
            if fold[i] == k:
                r_tau[i], r_logged[i] = target[i] @ beta, design[i] @ beta
        by_one = naive.doubly_robust_self_normalized(w, log.outcome, target @ beta, design @ beta)
        values.append(by_one[0])
    value, se = naive.doubly_robust_self_normalized(w, log.outcome, r_tau, r_logged)
    se = math.sqrt(se**2 + naive.models_share(values))
    estimator = DoublyRobust(outcome=LinearRegression(), folds=folds, seed=11)
    found = evaluate(log, policy, estimator=estimator, bandwidth=h, allow_untrusted=True)
    assert (found.value, found.se) == pytest.approx((value, se), rel=1e-10)


STAND_INS = (
    (0.84, 2, None),
    (0.5, 1, "second-order kernel at h/2"),
    (1.0, 1, "second-order kernel at h, its smoothing bias not corrected"),
)


def loop_interval(log, policy, h, estimator):
    """The default interval from its definition: order four at .84h, each row left out in turn.

    Where the order-four weights cancel: second order at h/2; where those cancel: at h.
    """
    tau = np.reshape(policy(log.context), log.doses.shape)
    floor, power = default_floor(log), 2 if np.ndim(h) == 2 else 1
    for factor, degree, note in STAND_INS:  # noqa: B007
        scaled = (np.asarray(h) * factor**power).tolist()
        w = loop_weights(log, tau, scaled, degree=degree, floor=floor)
        if abs(sum(w)) >= 0.5 * sum(map(abs, w)):
            break
    n, b = len(log), [0.0] * len(log)
    e = list(log.outcome)
    if estimator.uses_outcome_model:
        b = list(predictions(log, tau))
        e = [yi - ri for yi, ri in zip(e, predictions(log, log.doses), strict=True)]

    def ratio(rows):
        return sum(w[j] * e[j] for j in rows) / sum(w[j] for j in rows)

    full, base = ratio(range(n)), sum(b) / n
    influence = [
        b[i] - base + n * (full - ratio([j for j in range(n) if j != i])) for i in range(n)
    ]
    se = math.sqrt(sum(f * f for f in influence)) / n
    degrees = max(sum(w) ** 2 / sum(wi**2 for wi in w) - 1, 1)
    half = student.ppf(0.975, degrees) * se
    return (base + full - half, base + full + half), note


@each_case
@pytest.mark.parametrize(
    "estimator", [SelfNormalized(), DoublyRobust(outcome=WrongMean())], ids=kind_name
)
def test_the_default_interval_is_the_leave_one_out_loop(estimator, case):
    log, policy, h = case()
    asked = {"estimator": estimator, "bandwidth": h, "allow_untrusted": True}
    found = evaluate(log, policy, **asked)
    expected, note = loop_interval(log, policy, h, estimator)
    low, high = expected
    tolerance = 1e-9 if log.bounded else 1e-10  # three moments more, and a quantile
    corrected = evaluate(log, policy, interval=RobustBiasCorrected(recentered=True), **asked)
    assert corrected.interval() == pytest.approx(expected, rel=tolerance, abs=tolerance)
    # By default the same width stands around the value, and more where the two differ by more than
    # chance: s² = max(se_R², se² + max(0, (v − c)² − (se_R² − se²))).
    se, se_r = found.se, corrected.confidence.se
    gap = found.value - (low + high) / 2
    s = math.sqrt(max(se_r**2, se**2 + max(0.0, gap**2 - max(se_r**2 - se**2, 0.0))))
    half = (high - low) / 2 * (s / se_r if se_r > 0 else 1.0)
    around = found.value - half, found.value + half
    assert found.interval() == pytest.approx(around, rel=tolerance, abs=tolerance)
    assert found.confidence.note == note
    assert (note is None) == (case not in (corner, empty_corner))


POLICIES = {"near": NEAR, "same dose": Constant(0.4), "function": lambda X: 0.3 + 0.2 * X[:, 1]}


def loop_influence(estimator, log, policy, h):
    """Each row's influence by numerical differentiation in the row's weight: no formula at all."""
    n, out = len(log), []
    tau = np.reshape(policy(log.context), log.doses.shape)
    w = np.array(loop_weights(log, tau, h, floor=default_floor(log)))
    b = predictions(log, tau) if estimator.uses_outcome_model else np.zeros(n)
    e = log.outcome - (predictions(log, log.doses) if estimator.uses_outcome_model else 0.0)

    def value(p):
        weighted = p @ (w * e)
        return p @ b / p.sum() + weighted / (p @ w if estimator.normalized else p.sum())

    for i in range(n):
        step = np.zeros(n)
        step[i] = 1e-4
        out.append(n * (value(1 + step) - value(1 - step)) / 2e-4)
    return np.array(out)


# The loop below takes the mean outcome as part of the data; centered weighting as a constant.
SMOOTHED = [e for e in WITHOUT_BINS if isinstance(e, SmoothedEstimator) and e != IPW(centered=True)]


@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
def test_contrasts_are_paired(estimator):
    # SE of the difference = √Σ(φ_a − φ_b)²/n, φ the rows' influences; not √(SE_a² + SE_b²).
    log, _, h = one_dose(80)
    result = compare(log, POLICIES, estimator=estimator, bandwidth=h, allow_untrusted=True)
    phi = {name: loop_influence(estimator, log, p, h) for name, p in POLICIES.items()}
    n = len(log)
    for a in POLICIES:
        assert result[a].se == pytest.approx(np.sqrt(np.sum(phi[a] ** 2)) / n, rel=1e-6)
        for b in POLICIES:
            found = result.contrast(a, b)
            expected = np.sqrt(np.sum((phi[a] - phi[b]) ** 2)) / n
            assert found.difference == result[a].value - result[b].value
            assert found.se == pytest.approx(expected, rel=1e-6, abs=1e-9)
            if a != b:
                assert abs(found.se - math.hypot(result[a].se, result[b].se)) > 0.1 * found.se


def test_every_estimator_is_held_to_a_loop():
    covered = {*map(kind_name, WITHOUT_BINS), "Discretized-self_normalized", "Discretized"}
    assert {kind_name(k) for k in KINDS} <= covered
    assert SelfNormalized().kernel == Epanechnikov()
