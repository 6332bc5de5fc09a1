"""The theory as numbers: against numerical minima, exact biases, hand computations and suprema."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from titrant import Epanechnikov, Gaussian, InvalidArgument, Triangular, Uniform
from titrant.data.simulate import Quadratic
from titrant.inference.bounds import (
    Expansion,
    Generalization,
    LinearBall,
    RBFBall,
    _signs,
)
from titrant.kernels import KERNELS

EXACT = 1e-12
MINIMUM = 1e-5  # a minimum is flat: its place is known to the root of the rounding

each_kernel = pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=repr)

# ── Theorems 1 and 2 ─────────────────────────────────────────────────────────────────────────────


@each_kernel
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize(("curvature", "noise", "n"), [(2.0, 3.0, 500), (-0.1, 40.0, 10_000)])
def test_the_optimal_bandwidth_is_the_minimum_of_the_error(kernel, dimension, curvature, noise, n):
    theory = Expansion(
        kernel=kernel, curvature=curvature, noise=noise, n=n, rest=0.7, dimension=dimension
    )
    best = theory.optimal_bandwidth()
    found = minimize_scalar(
        lambda log_h: theory.mse(math.exp(log_h)),
        bracket=(math.log(best) - 2, math.log(best) + 1.5),
        tol=1e-12,
    )
    assert best == pytest.approx(math.exp(found.x), rel=MINIMUM)
    # At the minimum the squared bias is d/4 of the variance that h can change.
    assert theory.bias(best) ** 2 == pytest.approx(
        dimension / 4 * (theory.variance(best) - 0.7 / n), rel=1e-9
    )


@each_kernel
def test_the_least_error_in_one_dose(kernel):
    # MSE* = 1.25·C₃/(n h*), C₃ = R·noise.
    theory = Expansion(kernel=kernel, curvature=1.5, noise=2.0, n=800)
    best = theory.optimal_bandwidth()
    assert theory.mse(best) == pytest.approx(1.25 * kernel.roughness * 2.0 / (800 * best), rel=1e-9)


def test_known_numbers():
    # Epanechnikov, κ₂ = 1/5, R = 3/5: bias(.5) = .1·.25·4 = .1, variance(.5) = (.6·2/.5 + 3)/100.
    theory = Expansion(kernel=Epanechnikov(), curvature=4.0, noise=2.0, n=100, rest=3.0)
    assert theory.bias(0.5) == pytest.approx(0.1, rel=EXACT)
    assert theory.variance(0.5) == pytest.approx(0.054, rel=EXACT)
    assert theory.mse(0.5) == pytest.approx(0.064, rel=EXACT)
    # h* = (1.2/(4·.4²·100))^{1/5} = .01875^{1/5}.
    assert theory.optimal_bandwidth() == pytest.approx(0.01875**0.2, rel=EXACT)


def test_without_curvature_no_bandwidth_is_too_wide():
    theory = Expansion(kernel=Epanechnikov(), curvature=0.0, noise=2.0, n=100)
    assert theory.optimal_bandwidth() == math.inf
    assert theory.bias(7.0) == 0.0


@each_kernel
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_bias_is_exact_where_the_outcome_is_quadratic(kernel, dimension):
    # E v̂ − V = ∫ ∏K(vⱼ)[m(τ + hv) − m(τ)] dv by Gauss–Legendre on panels; m″ = 2 in each dose.
    design = Quadratic(dimension=dimension)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    panels = np.linspace(-10, 10, 41)  # ends at 0 and ±1, the corners of the kernels
    half = 0.25
    v = (panels[:-1, None] + half + half * nodes).ravel()
    w = np.tile(half * weights, 40) * kernel(v)
    x = np.array([[0.3, 0.8]])
    tau = np.reshape(design.best(x) + 0.1, (1, dimension))
    total = 0.0
    for vi, wi in zip(v, w, strict=True):  # in the first dose; the doses' biases add up
        t = tau.copy()
        t[0, 0] += 0.4 * vi
        total += wi * float(design.mean_outcome(x, t[:, 0] if dimension == 1 else t)[0])
    at_tau = float(design.mean_outcome(x, tau[:, 0] if dimension == 1 else tau)[0])
    theory = Expansion(
        kernel=kernel, curvature=2.0 * dimension, noise=1.0, n=10, dimension=dimension
    )
    assert theory.bias(0.4) == pytest.approx(dimension * (total - at_tau), rel=1e-8)
    assert theory.bias(0.4) == pytest.approx(kernel.second_moment * 0.16 * dimension, rel=EXACT)


@pytest.mark.parametrize(
    "bad",
    [
        {"noise": -1.0},
        {"noise": math.nan},
        {"n": 0},
        {"n": 10.5},
        {"dimension": 0},
        {"curvature": math.inf},
        {"rest": "none"},
    ],
)
def test_constants_are_checked(bad):
    settings = {"kernel": Epanechnikov(), "curvature": 1.0, "noise": 1.0, "n": 10} | bad
    with pytest.raises(InvalidArgument, match=f"The `{next(iter(bad))}` of `Expansion` must be"):
        Expansion(**settings)


# ── generalization ───────────────────────────────────────────────────────────────────────────────

BOUND = {
    "kernel": Epanechnikov(),
    "h": 0.5,
    "n": 100,
    "largest_outcome": 2.0,
    "largest_inverse_propensity": 4.0,
    "complexity": 0.1,
    "bias": -0.03,
}


def test_the_generalization_bound_by_hand():
    # L_K = 3/2, M_K = 3/4, M_y·M_Q = 8: (8·1.5/.25)·.1 + (8·.75/.5)·√(2 ln 40/100) + .03
    # = 4.8 + 12·.271620 + .03 = 8.08944.
    assert Generalization(**BOUND).at(0.05) == pytest.approx(8.08944, abs=1e-5)


def test_it_grows_and_shrinks_as_it_should():
    at = Generalization(**BOUND).at(0.05)
    assert Generalization(**BOUND).at(0.01) > at
    for change in ({"n": 200}, {"h": 0.6}, {"complexity": 0.05}, {"largest_outcome": 1.0}):
        assert Generalization(**BOUND | change).at(0.05) < at
    gaussian = Generalization(**BOUND | {"kernel": Gaussian()}).at(0.05)
    assert gaussian < at  # a smoother and lower kernel


def test_a_kernel_with_jumps_bounds_no_search():
    # The uniform kernel has no Lipschitz constant; a single policy needs none.
    jump = BOUND | {"kernel": Uniform()}
    assert Generalization(**jump).at(0.05) == math.inf
    one = Generalization(**jump | {"complexity": 0.0}).at(0.05)
    assert one == pytest.approx(8 * 0.5 / 0.5 * math.sqrt(2 * math.log(40) / 100) + 0.03)


@pytest.mark.parametrize(
    "bad",
    [
        {"h": 0.0},
        {"n": 0},
        {"largest_outcome": -1.0},
        {"largest_inverse_propensity": math.nan},
        {"complexity": -0.1},
    ],
)
def test_its_constants_are_checked(bad):
    name = next(iter(bad))
    with pytest.raises(InvalidArgument, match=f"The `{name}` of `Generalization` must be"):
        Generalization(**BOUND | bad)
    with pytest.raises(InvalidArgument, match="`delta`"):
        Generalization(**BOUND).at(1.0)


@pytest.mark.parametrize("kernel", [Epanechnikov(), Triangular(), Gaussian()], ids=repr)
def test_it_holds_for_the_whole_class_in_simulated_logs(kernel):
    # T ~ U[−1, 1], y = 1{t > 0}, τ = βx, |β| ≤ ½, |x| ≤ ½, h = ½: no kernel leaves [−1, 1] but the
    # Gaussian's, which the allowance covers. The largest gap over the class stays below the bound.
    rng = np.random.default_rng(0)
    n, h = 400, 0.5
    for _ in range(20):
        x, t = rng.uniform(-0.5, 0.5, n), rng.uniform(-1, 1, n)
        y = (t > 0).astype(float)
        gaps = []
        for beta in np.linspace(-0.5, 0.5, 21):
            w = kernel((beta * x - t) / h) / (h * 0.5)
            gaps.append(abs(np.mean(w * y) - np.mean(beta * x > 0)))
        bound = Generalization(
            kernel=kernel,
            h=h,
            n=n,
            largest_outcome=1.0,
            largest_inverse_propensity=2.0,
            complexity=LinearBall(0.5).bound(x[:, None]),
            bias=0.5,
        ).at(0.05)
        assert max(gaps) < bound


# ── complexities ─────────────────────────────────────────────────────────────────────────────────

contexts = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.integers(1, 3)),
    elements=st.floats(-10, 10, allow_subnormal=False),
)


@given(contexts)
def test_complexities_are_at_most_their_bounds(X):
    # Over all signs of up to eight rows, so without a Monte-Carlo error.
    n = len(X)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    linear = 2 * 1.7 / n * np.linalg.norm(signs @ X, axis=1).mean()
    assert linear <= LinearBall(1.7).bound(X) * (1 + 1e-12)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 8)
    forms = np.maximum(np.einsum("bi,ij,bj->b", signs, K, signs), 0.0)
    rbf = 2 * 1.7 / n * np.sqrt(forms).mean()
    assert rbf <= RBFBall(1.7, 2.0).bound(X) * (1 + 1e-12)
    # 2,000 draws of the signs: the estimates within 4.5 of their standard errors, each below 1/√n.
    slack = 4.5 * 2 * 1.7 / math.sqrt(n * 2_000)
    largest = np.linalg.norm(X, axis=1).max()
    found = LinearBall(1.7).estimate(X, draws=2_000)
    assert found == pytest.approx(linear, abs=slack * largest + 1e-12)
    assert RBFBall(1.7, 2.0).estimate(X, draws=2_000) == pytest.approx(rbf, abs=slack)


def test_the_linear_supremum_is_that_of_all_directions():
    # sup over ‖β‖ ≤ W of |(2/n)Σσᵢβ'xᵢ| by 40,000 directions of the plane, draw by draw.
    X = np.random.default_rng(0).normal(size=(15, 2))
    signs = _signs(15, 200, seed=4)
    angle = np.linspace(0, np.pi, 40_000)
    directions = 2.5 * np.stack([np.cos(angle), np.sin(angle)])
    largest = np.abs(signs @ X @ directions).max(axis=1)
    expected = 2 / 15 * largest.mean()
    found = LinearBall(2.5).estimate(X, draws=200, seed=4)
    assert found == pytest.approx(expected, rel=1e-8)
    assert found < LinearBall(2.5).bound(X)


def test_the_linear_complexity_of_orthogonal_contexts_is_its_bound():
    # ‖Σσᵢxᵢ‖ = √n·‖x‖ whatever the signs: the bound is attained.
    X = 3 * np.eye(9)
    assert LinearBall(2.0).estimate(X, draws=5) == pytest.approx(2 * 2 * 3 / 3, rel=EXACT)
    assert LinearBall(2.0).bound(X) == pytest.approx(4.0, rel=EXACT)


def test_the_rbf_supremum_by_linear_algebra():
    # τ = Σaⱼk(xⱼ, ·), ‖τ‖² = a'Ka ≤ W². With K = LL' and b = L'a: sup σ'Lb over ‖b‖ ≤ W = W‖L'σ‖.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 2))
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K = np.exp(-squared / (2 * 0.7**2))
    L = np.linalg.cholesky(K)
    signs = _signs(12, 300, seed=5)
    expected = 2 * 1.4 / 12 * np.linalg.norm(signs @ L, axis=1).mean()
    found = RBFBall(1.4, 0.7).estimate(X, draws=300, seed=5)
    assert found == pytest.approx(expected, rel=1e-10)
    # And no policy on the sphere does better than the supremum.
    a = rng.normal(size=(2_000, 12))
    a *= 1.4 / np.sqrt(np.einsum("bi,ij,bj->b", a, K, a))[:, None]
    assert (np.abs(a @ K @ signs.T).max(axis=0) <= 1.4 * np.linalg.norm(signs @ L, axis=1)).all()


def test_signs_are_fair():
    signs = _signs(50, 4_000, seed=0)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 4 / math.sqrt(signs.size)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, "wide"])
def test_balls_have_a_radius(bad):
    with pytest.raises(InvalidArgument, match="The `radius` of `LinearBall` must be"):
        LinearBall(bad)
    with pytest.raises(InvalidArgument, match="The `radius` of `RBFBall` must be"):
        RBFBall(bad, 1.0)
    with pytest.raises(InvalidArgument, match="The `scale` of `RBFBall` must be"):
        RBFBall(1.0, bad)
