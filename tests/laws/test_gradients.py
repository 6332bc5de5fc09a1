"""Every derivative that a policy search or a standard error uses, against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import CASES, IDS, PAIRS, at, name, ready, take, variants
from titrant.estimators import ESTIMATORS, Discretized, WeightedEstimator
from titrant.estimators.weight import weight, weight_slope
from titrant.kernels import KERNELS, Boundary
from titrant.moments import Moments

STEP = 1e-6
DIFFERENCE = 3e-7  # of the largest slope: rounding 1e-16/STEP, curvature STEP² × 1e4


def away_from_corners(case, edges=()):
    """Rows of the case whose doses stay off every corner of a kernel, bound or bin."""
    rows = case.rows(60, seed=3)
    # Off the bounds themselves: a step of τ must not cross one.
    rows = at(rows, np.clip(rows.tau, 0.003, 0.997))
    v = (rows.t - rows.tau) @ case.scale.inverse_root
    distance = np.abs(np.abs(v)[..., None] - [0.0, 1.0]).min(axis=(1, 2))
    if rows.lower is not None:
        ends = np.stack([rows.lower - rows.tau, rows.upper - rows.tau]) / case.scale.axes
        distance = np.minimum(distance, np.abs(np.abs(ends) - 1).min(axis=(0, 2)))
    for edge in edges:
        distance = np.minimum(distance, np.abs(rows.tau[:, 0] - edge))
    kept = take(rows, np.flatnonzero(distance > 1e-3))
    assert len(kept.y) > 30
    return kept


def difference(f, rows):
    """∂f/∂τ (n, …, d) by central differences, one dose at a time."""
    columns = []
    for j in range(rows.tau.shape[1]):
        step = np.zeros(rows.tau.shape[1])
        step[j] = STEP
        up, down = f(at(rows, rows.tau + step)), f(at(rows, rows.tau - step))
        columns.append((up - down) / (2 * STEP))
    return np.stack(columns, axis=-1)


def assert_slope(actual, expected, what):
    assert actual.shape == expected.shape
    size = np.abs(actual).max() + 1
    np.testing.assert_allclose(actual, expected, rtol=0, atol=DIFFERENCE * size, err_msg=what)


@pytest.mark.parametrize(("estimator", "case"), PAIRS, ids=IDS)
def test_terms_move_as_dterms_say(estimator, case):
    estimator = ready(estimator, case.rows(60, seed=3))
    edges = estimator.edges if isinstance(estimator, Discretized) else ()
    rows = away_from_corners(case, edges)
    for variant in variants(estimator):
        expected = difference(lambda r, e=variant: e.terms(r, case.scale), rows)
        assert_slope(variant.dterms(rows, case.scale), expected, repr(variant))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("boundary", list(Boundary), ids=lambda b: b.name)
@pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=lambda k: str(k)[:-2])
def test_weights_move_as_their_slope_says(case, boundary, kernel):
    rows = away_from_corners(case)
    slope = weight_slope(rows, kernel, boundary, case.scale)
    assert slope.shape == rows.tau.shape
    assert np.abs(slope).max() > 0 or type(kernel).__name__ == "Uniform"
    expected = difference(lambda r: weight(r, kernel, boundary, case.scale), rows)
    assert_slope(slope, expected, repr(kernel))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_gradient_is_the_slope_of_the_value_in_the_means(estimator):
    mean = np.array([1.3, -0.7, 0.8])[: estimator.size]
    slope = [
        (estimator.value(mean + s) - estimator.value(mean - s)) / (2 * STEP)
        for s in STEP * np.eye(estimator.size)
    ]
    np.testing.assert_allclose(estimator.gradient(mean), slope, atol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_hessian_is_the_slope_of_the_gradient(estimator):
    mean = np.array([1.3, -0.7, 0.8])[: estimator.size]
    slope = [
        (estimator.gradient(mean + s) - estimator.gradient(mean - s)) / (2 * STEP)
        for s in STEP * np.eye(estimator.size)
    ]
    np.testing.assert_allclose(estimator.hessian(mean), slope, atol=1e-8)


@pytest.mark.parametrize(("estimator", "case"), PAIRS, ids=IDS)
def test_value_moves_with_every_dose_by_the_chain_rule(estimator, case):
    # What a search follows: dv/dτᵢ = ∇value(mean)·dtermsᵢ/n.
    estimator = ready(estimator, case.rows(60, seed=3))
    edges = estimator.edges if isinstance(estimator, Discretized) else ()
    rows = away_from_corners(case, edges)

    def value(r):
        return np.array(estimator.value(Moments.of(estimator.terms(r, case.scale)).mean))

    direction = np.random.default_rng(1).normal(size=rows.tau.shape)
    moved = [value(at(rows, rows.tau + s * direction)) for s in (STEP, -STEP)]
    g = estimator.gradient(Moments.of(estimator.terms(rows, case.scale)).mean)
    slopes = np.einsum("k,nkd->nd", g, estimator.dterms(rows, case.scale)) / len(rows.y)
    expected = (moved[0] - moved[1]) / (2 * STEP)
    assert (slopes * direction).sum() == pytest.approx(expected, abs=1e-6)


def test_gradients_of_the_specification():
    # IPW: dv/dβ = (1/(nh)) Σ x K′(u) y/(h q), Epanechnikov: −(3/(2nh²)) Σ x u (y/q) 1{|u| ≤ 1};
    # SN: (1/(hB)) Σ x K′(u)(y − v)/q, B = ΣK(u)/q; u = (τ − t)/h, τ = βx.
    case = CASES[0]
    rows, h = case.rows(), case.h
    ipw, sn = (e for e in ESTIMATORS if name(e) in {"IPW()", "SelfNormalized()"})
    x, y, q, n = rows.x[:, 0], rows.y, rows.q, len(rows.y)
    u = (rows.tau[:, 0] - rows.t[:, 0]) / h
    inside, k = np.abs(u) <= 1, 0.75 * (1 - u**2) * (np.abs(u) <= 1)

    def along(estimator):
        g = estimator.gradient(Moments.of(estimator.terms(rows, case.scale)).mean)
        return np.einsum("k,nkd,n->", g, estimator.dterms(rows, case.scale), x) / n

    stated = -3 / (2 * n * h**2) * (x * u * y / q * inside).sum()
    assert along(ipw) == pytest.approx(stated, rel=1e-12)
    b = (k / q).sum()
    v = (k * y / q).sum() / b
    stated = (x * -1.5 * u * inside * (y - v) / q).sum() / (h * b)
    assert along(sn) == pytest.approx(stated, rel=1e-11)


def test_a_slope_that_is_missing_is_asked_for():
    case = CASES[0]
    rows = replace(case.rows(), r_slope=None)
    for estimator in ESTIMATORS:
        if estimator.uses_outcome_model:
            with pytest.raises(ValueError, match="needs `r_slope`"):
                estimator.dterms(rows, case.scale)
        elif isinstance(estimator, WeightedEstimator):
            ready(estimator, rows).dterms(rows, case.scale)
