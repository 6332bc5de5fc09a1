"""The smooth well: its gradient, its recovery, its starts."""

from __future__ import annotations

import numpy as np
import pytest

from outcome.models import log
from titrant.errors import InvalidArgument
from titrant.outcome import Well
from titrant.outcome.well import DoseUnits, Shape, WellFit, descend

# Central differences at step 1e-6.
GRADIENT = 1e-8


def problem(n=50, p=3, seed=0):
    rng = np.random.default_rng(seed)
    z = np.column_stack([np.ones(n), rng.normal(size=(n, p))])
    return WellFit(z, rng.normal(size=n), rng.normal(size=n), 0.05)


def test_the_value_of_a_well():
    # One context z = (1, 2), s = 4: line 0.5·1 + 0.25·2 = 1, √((4 − 1)² + 16) = 5,
    # 1·1 + 3·2 + 2·5 = 17.
    shape = Shape(np.array([1.0, 3.0]), 2.0, np.array([0.5, 0.25]), 16.0)
    np.testing.assert_allclose(shape(np.array([[1.0, 2.0]]), np.array([4.0])), [17.0])
    theta = np.array([1.0, 3.0, 2.0, 0.5, 0.25, np.log(4.0)])
    np.testing.assert_allclose(Shape.of(theta)(np.array([[1.0, 2.0]]), np.array([4.0])), [17.0])


def test_gradient_is_that_of_finite_differences():
    least_squares = problem()
    theta = np.random.default_rng(1).normal(size=10)
    eps = 1e-6
    expected = [
        (least_squares.loss(theta + step)[0] - least_squares.loss(theta - step)[0]) / (2 * eps)
        for step in eps * np.eye(10)
    ]
    np.testing.assert_allclose(least_squares.loss(theta)[1], expected, atol=GRADIENT)


def test_loss_is_the_penalized_sum():
    least_squares = problem(n=5, p=1)
    theta = np.array([0.1, 0.2, 0.7, -0.3, 0.4, -1.0])
    total = 0.0
    for z, s, y in zip(least_squares.z, least_squares.s, least_squares.y, strict=True):
        distance = np.sqrt((s + 0.3 - 0.4 * z[1]) ** 2 + np.exp(-2.0))
        total += (0.1 + 0.2 * z[1] + 0.7 * distance - y) ** 2 / 10
    total += 0.05 * (0.2**2 + 0.4**2) / 2
    np.testing.assert_allclose(least_squares.loss(theta)[0], total, rtol=1e-14)


def test_descending_descends():
    least_squares = problem()
    start = least_squares.around(np.zeros(4))
    values = [least_squares.loss(descend(least_squares, start, k))[0] for k in (1, 5, 40, 500)]
    assert sorted(values, reverse=True) == values
    assert np.abs(least_squares.loss(descend(least_squares, start, 500))[1][:-1]).max() < 1e-5


@pytest.mark.parametrize("sign", [1, -1])
def test_a_well_or_a_ridge_is_recovered(sign):
    # y = ±2|t − 3 − x₀ + x₁/2| + x₂: the bottom is found to the noise of a corner rounded at .02.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    t = 3 + X[:, 1] + 2 * rng.normal(size=400)
    y = sign * 2 * np.abs(t - 3 - X[:, 0] + X[:, 1] / 2) + X[:, 2] + 0.1 * rng.normal(size=400)
    model = Well().fit(X, t, y)
    new, dose = rng.normal(size=(300, 3)), rng.normal(3, 2, size=300)
    truth = sign * 2 * np.abs(dose - 3 - new[:, 0] + new[:, 1] / 2) + new[:, 2]
    assert np.sqrt(np.mean((model.predict(new, dose) - truth) ** 2)) < 0.06


def test_vertex_of_a_parabola():
    # y = (s − 1 − z₁)²: the line is (1, 1, …), up to the small ridge that steadies the fit.
    least_squares = problem(2000, 2)
    line = np.array([1.0, 1.0, 0.0])
    bent = WellFit(
        least_squares.z, least_squares.s, (least_squares.s - least_squares.z @ line) ** 2, 0.1
    )
    np.testing.assert_allclose(bent.vertex(), line, atol=0.05)
    flat = WellFit(least_squares.z, least_squares.s, np.zeros(2000), 0.1)
    np.testing.assert_array_equal(flat.vertex(), np.zeros(3))


def test_more_starts_are_never_worse():
    X, t, y = log(80, p=6)
    loss = []
    for starts in (1, 2, 3, 8):
        model = Well(ridge=0.01, starts=starts).fit(X, t, y)
        residual = (model.predict(X, t) - y) / y.std()
        slopes = np.append(model.shape_.a[1:], model.shape_.g[1:])
        loss.append(0.5 * np.mean(residual**2) + 0.5 * 0.01 * np.sum(slopes**2))
    # Screening stops early, so the order may fail by the last digits.
    assert np.all(np.diff(loss) < 1e-6)


def test_the_ridge_adapts_to_noise():
    # σ²p/n with σ² the residual variance: here y is noise of variance 4 about an exact well.
    rng = np.random.default_rng(2)
    z = np.column_stack([np.ones(4000), rng.normal(size=(4000, 2))])
    shape = Shape(np.zeros(3), 1.0, np.zeros(3), 0.25)
    s = rng.normal(size=4000)
    noisy = WellFit(z, s, shape(z, s) + 2 * rng.normal(size=4000), 1e-3)
    theta = np.concatenate([shape.a, [shape.c], shape.g, [np.log(0.5)]])
    assert noisy.adapted(theta).ridge == pytest.approx(4 * 2 / 4000, rel=0.1)


def test_dose_units():
    # Doses 1 + 2z ± 0.5: the line is (1, 2), the rest has sd 0.5.
    z = np.column_stack([np.ones(4), [-1.0, -1.0, 1.0, 1.0]])
    t = np.array([-1.5, -0.5, 2.5, 3.5])
    units = DoseUnits.of(z, t)
    np.testing.assert_allclose(units.line, [1, 2], atol=1e-14)
    assert units.sd == pytest.approx(0.5)
    np.testing.assert_allclose(units(z, t), [-1, 1, -1, 1], atol=1e-13)
    # The mean dose 1 is at (1 − 1 − 2z)/0.5 = −4z from the line.
    np.testing.assert_allclose(units.mean, [0, -4], atol=1e-13)
    # A dose that the context determines is measured from its mean instead.
    exact = DoseUnits.of(z, 1 + 2 * z[:, 1])
    np.testing.assert_allclose(exact.line, [1, 0], atol=1e-14)
    assert exact.sd == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [({"ridge": 0.0}, "ridge"), ({"starts": 0}, "starts"), ({"seed": -1}, "seed")],
)
def test_bad_parameters_are_refused(parameters, name):
    with pytest.raises(InvalidArgument, match=f"The `{name}` of `Well`"):
        Well(**parameters).fit(*log(30))
