"""Where an estimator must end up: wide and narrow bandwidths, perfect and useless models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import CASES, at, estimate, model, name, variants
from titrant.estimators import (
    ESTIMATORS,
    IPW,
    DirectMethod,
    DoublyRobust,
    Estimator,
    SelfNormalized,
)
from titrant.estimators.weight import weight
from titrant.kernels import KERNELS, Boundary, Scale

WIDE = 1e6  # times the spread of the doses: a corner kernel is flat to 1e-6 there
FLAT = 1e-5
EXACT = 1e-11  # the same sums in another order

FREE = [case for case in CASES if not case.bounded]
unbounded = pytest.mark.parametrize("case", FREE, ids=lambda c: c.name)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def wide(case) -> Scale:
    return Scale.of(np.asarray(case.h) * WIDE ** (2 if np.ndim(case.h) == 2 else 1), case.d)


@unbounded
def test_a_wide_bandwidth_weights_by_one_over_q_alone(case):
    # h → ∞: SN → Σ(y/q)/Σ(1/q), DR-SN → mean r̂(τ) + Σ(e/q)/Σ(1/q), IPW·|H|^{1/2} → K*(0)ᵈ mean(y/q)
    rows = case.rows()
    scale, share = wide(case), (1 / rows.q) / (1 / rows.q).sum()
    for variant in variants(SelfNormalized()):
        value, _ = estimate(variant, rows, scale)
        assert value == pytest.approx(share @ rows.y, rel=FLAT), variant
    for variant in variants(DoublyRobust()):
        value, _ = estimate(variant, rows, scale)
        expected = rows.r_tau.mean() + share @ (rows.y - rows.r_logged)
        assert value == pytest.approx(expected, rel=FLAT), variant
    for kernel in KERNELS:
        value, _ = estimate(IPW(kernel=kernel()), rows, scale)
        top = kernel()(np.zeros(1))[0] ** case.d
        assert value * scale.volume == pytest.approx(top * (rows.y / rows.q).mean(), rel=FLAT)


@unbounded
def test_a_wide_bandwidth_leaves_the_model_alone(case):
    # h → ∞: the correction of un-normalized DR has no weight, centered IPW is the mean outcome.
    rows = case.rows()
    for variant in variants(DoublyRobust(self_normalized=False)):
        assert estimate(variant, rows, wide(case))[0] == pytest.approx(rows.r_tau.mean(), rel=FLAT)
    for variant in variants(IPW(centered=True)):
        assert estimate(variant, rows, wide(case))[0] == pytest.approx(rows.y.mean(), rel=FLAT)


def legendre(k, x):
    return np.polynomial.legendre.legval(x, np.eye(k + 1)[k])


@pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=lambda k: str(k)[:-2])
@pytest.mark.parametrize(
    "boundary", [Boundary.MASS, Boundary.LINEAR, Boundary.QUADRATIC], ids=lambda b: b.name
)
def test_a_wide_bandwidth_between_bounds_is_a_global_polynomial_fit(kernel, boundary):
    # h → ∞ on [lo, hi]: w·q → Σ_{k ≤ p} (2k + 1)P_k(ξ)P_k(η)/(hi − lo), Legendre polynomials of
    # t and τ placed on [−1, 1]: the kernel that reproduces polynomials of degree p.
    rows = CASES[1].rows()
    rows = replace(rows, upper=np.minimum(rows.upper, 1.5))
    width = rows.upper - rows.lower
    xi, eta = ((2 * z - rows.lower - rows.upper) / width for z in (rows.t, rows.tau))
    fit = sum((2 * k + 1) * legendre(k, xi) * legendre(k, eta) for k in range(boundary + 1))
    w = weight(rows, kernel, boundary, Scale.of(1e4, 1))
    np.testing.assert_allclose(w * rows.q, (fit / width)[:, 0], atol=2e-3)


@every_case
def test_a_narrow_bandwidth_is_the_one_row_that_matches(case):
    # h → 0 with τ = t in one row only: SN is that row's outcome, without a doubt.
    rows = case.rows()
    far = rows.tau.copy()
    far[:] = rows.t + np.where(rows.t < 0.5, 0.3, -0.3)
    far[7] = rows.t[7]
    rows = at(rows, far)
    narrow = Scale.of(0.005, case.d)
    for kernel in KERNELS:
        value, se = estimate(SelfNormalized(kernel=kernel()), rows, narrow)
        assert value == pytest.approx(rows.y[7], rel=1e-9)
        assert se < 1e-6  # the root of a rounded zero
        value, _ = estimate(DoublyRobust(kernel=kernel()), rows, narrow)
        expected = rows.r_tau.mean() + rows.y[7] - rows.r_logged[7]
        assert value == pytest.approx(expected, rel=1e-9)


MODELED = [e for e in ESTIMATORS if e.uses_outcome_model]


@every_case
@pytest.mark.parametrize("estimator", MODELED, ids=name)
def test_a_perfect_model_gives_the_truth(estimator: Estimator, case):
    # y = r̂(t, x): whatever the weights, the value is mean m(τ(x), x), its error that of averaging.
    rows = case.rows()
    truth = model(rows.tau, rows.x[:, 0])
    rows = replace(rows, y=model(rows.t, rows.x[:, 0]))
    for variant in variants(estimator):
        expected = [truth.mean(), truth.std() / np.sqrt(len(truth))]
        np.testing.assert_allclose(estimate(variant, rows, case.scale), expected, rtol=EXACT)


@every_case
def test_self_normalizing_forgives_a_model_that_is_off_by_a_constant(case):
    rows = case.rows()
    truth = model(rows.tau, rows.x[:, 0])
    y = model(rows.t, rows.x[:, 0])
    rows = replace(rows, y=y, r_tau=truth + 40, r_logged=y + 40)
    for variant in variants(DoublyRobust()):
        assert estimate(variant, rows, case.scale)[0] == pytest.approx(truth.mean(), rel=1e-8)
    # … which un-normalized DR and the model alone do not
    for estimator in (DoublyRobust(self_normalized=False), DirectMethod()):
        assert abs(estimate(estimator, rows, case.scale)[0] - truth.mean()) > 0.1


@every_case
def test_a_model_of_nothing_is_no_model(case):
    # r̂ = 0: DR is IPW, DR-SN is SN. r̂ = ȳ: DR is centered IPW. Values and errors.
    rows = case.rows()
    nothing, mean = np.zeros_like(rows.y), np.full_like(rows.y, rows.center)
    for prediction, modeled, plain in [
        (nothing, DoublyRobust(self_normalized=False), IPW()),
        (nothing, DoublyRobust(), SelfNormalized()),
        (mean, DoublyRobust(), SelfNormalized()),
        (mean, DoublyRobust(self_normalized=False), IPW(centered=True)),
    ]:
        same = replace(rows, r_tau=prediction, r_logged=prediction)
        for a, b in zip(variants(modeled), variants(plain), strict=True):
            expected = estimate(b, same, case.scale)
            np.testing.assert_allclose(estimate(a, same, case.scale), expected, rtol=1e-9)
