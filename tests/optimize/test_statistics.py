"""Sums of a search: they add up over blocks of rows, and their compiled loops are plain Python."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from numba import config
from numba.core.registry import CPUDispatcher

from laws.designs import name
from optimize.affine import affine_search
from optimize.functions import Absolute, Nowhere, Quadratic, Rosenbrock
from optimize.lines import EXACT_KERNELS, H, design, reach
from optimize.problems import (
    DIFFERENTIABLE,
    POLICIES,
    OwnSums,
    around,
    fused,
    log,
    with_boundary,
)
from titrant.compiled.decorators import SOURCES
from titrant.estimators import IPW, DirectMethod, DoublyRobust, SelfNormalized
from titrant.kernels import Boundary, Epanechnikov, Gaussian, Scale
from titrant.optimize import (
    LBFGS,
    AffineSearch,
    Ball,
    Box,
    PolicyObjective,
    Second,
    exact_line,
    search_statistics,
)
from titrant.optimize.compiled import line, search, sums

SAME = 1e-11  # relative: the same sums in another order
COMPILED = [
    module
    for path, module in sys.modules.items()
    if path.startswith("titrant.optimize.compiled.") and not path.endswith("decorators")
]


def as_arrays(statistics):
    return [statistics.mean, statistics.dz, statistics.zz, statistics.dzz]


def assert_same(actual, expected):
    assert actual.n == expected.n
    for a, b in zip(as_arrays(actual), as_arrays(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=SAME, atol=SAME * (1 + np.abs(b).max(initial=0.0)))


# ── adding up ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", DIFFERENTIABLE, ids=name)
@pytest.mark.parametrize("cuts", [(20,), (1, 7, 59)])
def test_sums_add_up_over_blocks(estimator, cuts):
    data, policy = log(bounded=True), POLICIES["clipped"]
    center, points = float(data.y.mean()), around(policy)
    edges = [0, *cuts, len(data.t)]
    blocks = [data.take(slice(a, b)) for a, b in pairwise(edges)]

    def searched(block):
        rows = replace(block.rows(policy), center=center)
        table = block.table if estimator.uses_outcome_model else None
        search = affine_search(estimator, policy, rows, 0.9, table=table, second=Second.ALL)
        return search(points)

    def summed(block):
        rows = replace(block.rows(policy), center=center)
        return search_statistics(estimator, policy, Scale.of(0.9, 1), rows)

    assert_same(reduce(add, map(searched, blocks)), searched(data))
    assert_same(reduce(add, map(summed, blocks)), summed(data))


def test_a_search_over_blocks_is_the_search_over_all():
    data, policy = log(200), POLICIES["linear"]
    rows = data.rows(policy)
    whole = affine_search(SelfNormalized(), policy, rows, 0.9)
    halves = [
        affine_search(
            SelfNormalized(), policy, replace(data.take(part).rows(policy), center=rows.center), 0.9
        )
        for part in (slice(0, 90), slice(90, 200))
    ]
    settings = {"estimator": SelfNormalized(), "ridge": 0.02}
    together = PolicyObjective(statistics=whole, **settings)
    apart = PolicyObjective(statistics=OwnSums(lambda p: halves[0](p) + halves[1](p)), **settings)
    points = around(policy, 4)
    a, b = LBFGS().minimize(together, points), LBFGS().minimize(apart, points)
    assert b.value == pytest.approx(a.value, abs=1e-7)


def test_more_rows_than_a_block_and_features_than_a_stride():
    # 2,600 rows are three blocks; 1 to 9 features leave every remainder of four.
    rng = np.random.default_rng(0)
    for width in range(1, 10):
        phi, t, e = rng.normal(size=(2600, width)), rng.normal(size=2600), rng.normal(size=2600)
        search = AffineSearch(phi=phi, t=t, e=e, q=np.full(2600, 0.4), kernel=Epanechnikov(), h=0.8)
        beta = 0.3 * rng.normal(size=(2, width))
        found = search(beta)
        for j in range(2):
            u = (t - phi @ beta[j]) / 0.8
            w = 0.75 * (1 - u**2) * (np.abs(u) <= 1) / (0.8 * 0.4)
            dw = 1.5 * u * (np.abs(u) <= 1) / (0.8**2 * 0.4)
            np.testing.assert_allclose(found.z[j], [0, w @ e, w.sum()], rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(found.dz[j, 1], phi.T @ (dw * e), rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(found.dz[j, 2], phi.T @ dw, rtol=1e-9, atol=1e-9)
            # Two candidates are computed at a time: which comes first, or alone, changes no bit.
            for company in (beta[[j]], beta[[1 - j, j]], beta[[j, j, 1 - j]]):
                at = 1 if len(company) == 2 else 0
                again = search(company)
                assert np.array_equal(again.z[at], found.z[j])
                assert np.array_equal(again.dz[at], found.dz[j])


def test_three_rows_worked_out():
    # x = 0, 1, 2; τ = β₀ + β₁x with β = (1, 0): doses 1. t = 1, 1.5, 9; y = 2, 4, 6; q = 1, ½, 1;
    # h = 1, Epanechnikov. u = (t − 1)/h = 0, ½, 8: w = ¾, ¾·¾·2 = 9/8, 0.
    # ∂w/∂τ = 1.5·u/q = 0, 1.5, 0. SN: (¾·2 + 9/8·4)/(15/8) = (3/2 + 9/2)·8/15 = 16/5.
    # dv/dβ = Σ ∂w(y − v)(1, x)/Σw = 1.5·(4 − 3.2)·(1, 1)·8/15 = (.64, .64).
    # IPW: mean w·y = 6/3 = 2, slope 1.5·4/3·(1, 1) = (2, 2). ESS = (15/8)²/(9/16 + 81/64) = 25/13.
    search = AffineSearch(
        phi=np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]),
        t=np.array([1.0, 1.5, 9.0]),
        e=np.array([2.0, 4.0, 6.0]),
        q=np.array([1.0, 0.5, 1.0]),
        kernel=Epanechnikov(),
        h=1.0,
        second=Second.WEIGHTS,
    )
    beta = np.array([[1.0, 0.0]])
    value, slope = PolicyObjective(statistics=search, estimator=SelfNormalized())(beta)
    np.testing.assert_allclose([value[0], *slope[0]], [3.2, 0.64, 0.64])
    value, slope = PolicyObjective(statistics=search, estimator=IPW())(beta)
    np.testing.assert_allclose([value[0], *slope[0]], [2.0, 2.0, 2.0])
    # A floor of 5 is missed by 5·13/25 − 1 = 1.6; its square on top of the value.
    floor = PolicyObjective(statistics=search, estimator=SelfNormalized(), ess_floor=5.0)
    np.testing.assert_allclose(floor(beta)[0], 3.2 + 1.6**2)
    ridge = PolicyObjective(
        statistics=search, estimator=SelfNormalized(), ridge=np.array([0.0, 2.0]), ridge_center=3.0
    )
    np.testing.assert_allclose(ridge(beta)[0], 3.2 + 2 * 9)
    np.testing.assert_allclose(ridge(beta)[1][0], [0.64, 0.64 - 12])


def test_no_row_near_is_not_finite_and_no_warning():
    policy = POLICIES["linear"]
    away = np.array([[99.0, 0.0, 0.0, 0.0]])
    assert np.isnan(fused(SelfNormalized(), policy, log())(away)[0][0])
    assert fused(IPW(), policy, log(), ess_floor=5.0)(away)[0][0] == np.inf
    assert fused(IPW(), policy, log())(away)[0][0] == 0.0


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


def test_what_the_loops_do_not_know_is_refused():
    data = log()
    rows = data.rows(POLICIES["linear"])
    with pytest.raises(ValueError, match="given for the direct method"):
        affine_search(DirectMethod(), POLICIES["linear"], rows, 0.9)
    with pytest.raises(ValueError, match=r"at most Boundary\.LINEAR"):
        affine_search(IPW(boundary=Boundary.QUADRATIC), POLICIES["linear"], rows, 0.9)
    with pytest.raises(ValueError, match="The `h` of `AffineSearch` must be a finite number > 0"):
        affine_search(IPW(), POLICIES["linear"], rows, 0.0)
    with pytest.raises(ValueError, match="compact, such as"):
        AffineSearch(phi=data.x, t=data.t, e=data.y, q=data.q, kernel=Gaussian(), h=1.0)


def test_impossible_penalties_are_refused():
    search = affine_search(IPW(), POLICIES["linear"], log().rows(POLICIES["linear"]), 0.9)
    for settings in ({"se_weight": -1.0}, {"ess_floor": np.inf}, {"scale": 0.0}, {"ridge": np.nan}):
        (field,) = settings
        with pytest.raises(ValueError, match=f"The `{field}` of `PolicyObjective` must be"):
            PolicyObjective(statistics=search, estimator=IPW(), **settings)
    for settings, level in (({"se_weight": 1.0}, "ALL"), ({"ess_floor": 9.0}, "WEIGHTS")):
        with pytest.raises(ValueError, match=rf"a search with `second=Second\.{level}`"):
            PolicyObjective(statistics=search, estimator=IPW(), **settings)
    with pytest.raises(ValueError, match="an estimator with weights"):
        PolicyObjective(statistics=search, estimator=DirectMethod(), ess_floor=3.0)


# ── compiled code is what its Python says ────────────────────────────────────────────────────────


@pytest.fixture
def plain_python(monkeypatch):
    """Run the compiled modules as Python: every function the one that was compiled."""

    def switch():
        for module in COMPILED:
            for key, value in vars(module).copy().items():
                if isinstance(value, CPUDispatcher):
                    monkeypatch.setattr(module, key, value.py_func)

    return switch


@pytest.mark.parametrize("policy", [POLICIES["clipped"], POLICIES["constant"]], ids=repr)
@pytest.mark.parametrize(
    "settings", [{}, {"se_weight": 0.5}, {"ess_floor": 15.0}, {"ess_floor": 2.0}], ids=str
)
def test_sums_in_python(plain_python, policy, settings):
    bounded, points = log(20, bounded=True), around(policy, 2)
    estimators = [
        with_boundary(SelfNormalized(), Boundary.LINEAR),
        with_boundary(DoublyRobust(self_normalized=False), Boundary.MASS),
        with_boundary(IPW(), Boundary.NONE),
    ]
    if "ess_floor" not in settings:
        estimators.append(DirectMethod())
    # The last point is off the data.
    points = np.concatenate([points, points[:1] + 50.0])
    ways = [(e, in_memory) for e in estimators for in_memory in (True, False)]
    compiled = [fused(e, policy, bounded, in_memory=way, **settings)(points) for e, way in ways]
    plain_python()
    for (e, way), expected in zip(ways, compiled, strict=True):
        with np.errstate(all="ignore"):  # off the data: compiled code does not warn
            value, gradient = fused(e, policy, bounded, in_memory=way, **settings)(points)
        np.testing.assert_allclose(value, expected[0], rtol=1e-12)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-12)


def test_steps_in_python(plain_python):
    starts = np.random.default_rng(0).normal(size=(3, 3))
    counted = np.array([False, True, True])
    sets = (Box(np.full(3, -0.5), np.full(3, 0.4)), Ball(0.6, counted), Ball(9.0))
    runs = [
        (objective, LBFGS(constraint=constraint, steps=30))
        for objective in (Quadratic.random(3, 1), Rosenbrock(), Absolute())
        for constraint in sets
    ]
    runs.append((Rosenbrock(), LBFGS(steps=2)))
    runs.append((Nowhere(), LBFGS()))
    compiled = [minimizer.minimize(objective, starts) for objective, minimizer in runs]
    plain_python()
    for (objective, minimizer), expected in zip(runs, compiled, strict=True):
        solution = minimizer.minimize(objective, starts)
        np.testing.assert_allclose(solution.values, expected.values, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", EXACT_KERNELS, ids=str)
def test_sweeps_in_python(plain_python, monkeypatch, kernel):
    x, rows = design(40, 2, signed=True)
    x[::7] = 0.0
    estimators = (SelfNormalized(kernel=kernel), IPW(kernel=kernel, centered=True))
    everywhere = reach(rows, 0.01)
    searches = [
        *(lambda e=e: exact_line(e, rows, 2 * H, slope=x, low=-2, high=3) for e in estimators),
        # A bandwidth so small that rows are alone, with nothing between them.
        *(lambda e=e: exact_line(e, rows, 0.01, ess_floor=0.0, **everywhere) for e in estimators),
    ]
    compiled = [once() for once in searches]
    plain_python()
    # As if there were many rows: their sums are carried along, and taken afresh when half left.
    monkeypatch.setattr(line, "SMALL", 0)
    monkeypatch.setattr(line, "FEW", 2)
    for again, expected in zip(searches, compiled, strict=True):
        solution = again()
        # A row that is alone has the same value wherever it has weight: β is not compared.
        assert solution.value == pytest.approx(expected.value, abs=1e-10)
        assert solution.gap <= 1e-8  # without the care that few rows are given


def test_polynomials():
    # (x − 1)(x − 2)(x − 4) = −8 + 14x − 7x² + x³ changes sign at 1 and 2 within (0, 3).
    c = np.array([-8.0, 14.0, -7.0, 1.0])
    np.testing.assert_allclose(line.roots(c, 3.0), [1.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(line.roots(c, 0.5), [])
    moved = c.copy()
    line.shift(moved, 1.5)
    for at in (-1.0, 0.3, 2.0):
        assert line.at(moved, at) == pytest.approx(line.at(c, at + 1.5))
    np.testing.assert_allclose(line.derivative(c), [14.0, -14.0, 3.0])
    np.testing.assert_allclose(line.product(c, c[:2]), np.convolve(c, c[:2]))


def test_the_next_step_is_where_a_cubic_is_least():
    # f(s) = (s − 1)²: from 0 (f 1, slope −2) and 3 (f 4, slope 4), and beyond ½ (f ¼, slope −1).
    assert search.between(0.0, 1.0, -2.0, 3.0, 4.0, 4.0) == pytest.approx(1.0)
    assert search.beyond(0.0, 1.0, -2.0, 0.5, 0.25, -1.0) == pytest.approx(1.0)
    assert search.between(0.0, 1.0, -2.0, 3.0, np.inf, np.nan) == pytest.approx(1.5)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="numba is switched off: nothing is compiled")
def test_compiled_code_is_kept_for_this_state_of_all_files():
    functions = [v for m in COMPILED for v in vars(m).values() if isinstance(v, CPUDispatcher)]
    assert len(functions) > 40
    for function in functions:
        assert function._cache._cache_file._source_stamp == SOURCES
    assert {line, search, sums} <= set(COMPILED)
