"""Bandwidths in R^d: a number, one per dose, or a matrix; and those that are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg

import naive
from titrant.errors import InvalidArgument
from titrant.kernels import Scale

ROUNDING = 1e-12  # roots of well-conditioned matrices


def random_matrix(d: int, seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(d, d)) + 2 * np.eye(d)
    return root @ root.T


def test_a_number():
    scale = Scale.of(0.5, 3)
    np.testing.assert_array_equal(scale.inverse_root, 2 * np.eye(3))
    assert scale.volume == 0.125
    np.testing.assert_array_equal(scale.axes, [0.5, 0.5, 0.5])


def test_one_number_a_dose():
    scale = Scale.of([0.5, 4], 2)
    np.testing.assert_array_equal(scale.inverse_root, [[2, 0], [0, 0.25]])
    assert scale.volume == 2
    np.testing.assert_array_equal(scale.axes, [0.5, 4])


def test_a_matrix_is_in_squared_units():
    # diag(h²) is the vector h; [[h²]] is the number h.
    scale = Scale.of([[0.25, 0], [0, 16]], 2)
    np.testing.assert_allclose(scale.inverse_root, [[2, 0], [0, 0.25]], rtol=ROUNDING)
    assert scale.volume == pytest.approx(2)
    np.testing.assert_allclose(scale.axes, [0.5, 4])
    assert Scale.of([[0.09]], 1).volume == pytest.approx(0.3)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
def test_a_full_matrix(d, unit):
    H = random_matrix(d, seed=d) * unit
    scale = Scale.of(H, d)
    root = scale.inverse_root
    np.testing.assert_allclose(root, root.T, rtol=ROUNDING)
    np.testing.assert_allclose(root @ H @ root, np.eye(d), atol=1e-10)
    np.testing.assert_allclose(root, np.linalg.inv(linalg.sqrtm(H)), rtol=1e-9)
    np.testing.assert_allclose(root, naive.inverse_root(H), rtol=1e-9)
    assert scale.volume == pytest.approx(math.sqrt(np.linalg.det(H)))
    assert scale.axes is None


def test_times_is_the_scale_of_a_larger_bandwidth():
    for bandwidth, larger in [
        (0.5, 1.5),
        ([0.5, 4.0], [1.5, 12.0]),
        (random_matrix(2, 0), random_matrix(2, 0) * 9),
    ]:
        scale, expected = Scale.of(bandwidth, 2).times(3.0), Scale.of(larger, 2)
        np.testing.assert_allclose(scale.inverse_root, expected.inverse_root, rtol=ROUNDING)
        assert scale.volume == pytest.approx(expected.volume)


NUMBERS = [
    0,
    0.0,
    -1,
    -0.3,
    math.nan,
    math.inf,
    np.float64(0),
    None,
    "wide",
    "0.2",
    True,
    [],
    {},
    [[1.0], [1.0, 2.0]],
]


@pytest.mark.parametrize("bandwidth", NUMBERS, ids=repr)
@pytest.mark.parametrize("d", [1, 2])
def test_no_bandwidth(bandwidth, d):
    with pytest.raises(InvalidArgument) as error:
        Scale.of(bandwidth, d)
    sentence = "The `bandwidth` of `evaluate` must be a finite number > 0; got "
    assert str(error.value).startswith(sentence)


def test_the_sentence():
    with pytest.raises(InvalidArgument) as error:
        Scale.of(0.0, 1)
    sentence = "The `bandwidth` of `evaluate` must be a finite number > 0; got 0.0."
    assert str(error.value) == sentence


@pytest.mark.parametrize("bandwidth", [[0.1, 0], [0.1, -2], [0.1, math.nan], [[[1.0]]]], ids=repr)
def test_no_bandwidth_for_each_dose(bandwidth):
    with pytest.raises(InvalidArgument, match="must be a finite number > 0; got"):
        Scale.of(bandwidth, 2)


@pytest.mark.parametrize(("bandwidth", "d"), [([0.1, 0.2, 0.3], 2), ([0.1], 2), ([0.1, 0.2], 1)])
def test_wrong_number_of_bandwidths(bandwidth, d):
    with pytest.raises(InvalidArgument, match=f"a number or {d} numbers, one per dose; got"):
        Scale.of(bandwidth, d)


@pytest.mark.parametrize(
    "bandwidth",
    [
        np.eye(3),
        np.ones((2, 3)),
        [[1, 0.5], [0.4, 1]],  # not symmetric
        [[1e-9, 5e-10], [-5e-10, 1e-9]],  # not symmetric, in small units
        [[1, 2], [2, 1]],  # negative eigenvalue
        [[-1, 0], [0, -1]],
        [[1, 0], [0, 0]],
        [[1, 1], [1, 1]],  # singular
        np.outer([0.3, 0.7], [0.3, 0.7]),  # singular up to rounding
        np.outer([1, 3], [1, 3]) * 1e-20,
    ],
    ids=repr,
)
def test_no_bandwidth_matrix(bandwidth):
    with pytest.raises(InvalidArgument, match="must be a symmetric positive definite 2 × 2 matrix"):
        Scale.of(bandwidth, 2)


def test_singular_matrices_are_refused_however_they_round():
    rng = np.random.default_rng(0)
    for v in rng.normal(size=(300, 2)):
        with pytest.raises(InvalidArgument, match="positive definite"):
            Scale.of(np.outer(v, v), 2)


def test_nan_in_a_matrix():
    with pytest.raises(InvalidArgument, match="must be a finite number"):
        Scale.of([[1, math.nan], [math.nan, 1]], 2)
