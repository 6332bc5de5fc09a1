"""Designs: each draw agrees with its own density, and each truth with brute force."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import titrant as tt
from titrant import data
from titrant.data import simulate
from titrant.data.simulate import (
    DESIGNS,
    Dosing,
    NormalDose,
    Quadratic,
    Synthetic,
    TenContexts,
    UniformDose,
    evenly_spread,
)
from titrant.errors import InvalidArgument

# Seeds are fixed, so a Monte-Carlo mean is off by > 4.5 SE only if the formula is wrong (p < 1e-5).
SIGMAS = 4.5
# The same for a Kolmogorov–Smirnov p-value.
LEAST_P = 1e-4
# Adaptive quadrature of smooth integrands.
QUADRATURE = 1e-8
# Central differences of a cdf with step 1e-5·sd: error O(step²) + rounding/step.
DIFFERENCE = 1e-6
# 65,536 midpoints of 2|x − βx|^1.5: error O(n^−2), amplified at the kink.
MIDPOINTS = 1e-9
# 65,536 evenly spread normal contexts in ten dimensions, relative to values of order 5.
TEN_DIMENSIONS = 0.01

N = 20_000
NAMES = list(DESIGNS)


@pytest.fixture(params=NAMES)
def design(request):
    return DESIGNS[request.param]


def agree(sample, truth):
    """Whether the mean of the sample is the truth, by its own standard error."""
    return abs(sample.mean() - truth) < SIGMAS * sample.std(ddof=1) / np.sqrt(len(sample))


# ── laws of every design ─────────────────────────────────────────────────────────────────────────
def test_a_draw_is_a_log_with_the_design_written_in(design):
    log = design.draw(100, 3)
    assert len(log) == 100
    assert log.names == design.names
    assert log.lower.min() == design.law.lower
    assert log.upper.max() == design.law.upper
    np.testing.assert_array_equal(log.propensity, design.density(log.context, log.treatment))


def test_a_seed_gives_one_log_and_another_seed_another(design):
    a, b, c = design.draw(50, 3), design.draw(50, np.random.default_rng(3)), design.draw(50, 4)
    np.testing.assert_array_equal(a.outcome, b.outcome)
    assert not np.array_equal(a.outcome, c.outcome)
    without = design.draw(50, 3, propensity=False)
    assert without.propensity is None
    np.testing.assert_array_equal(a.outcome, without.outcome)


def test_logged_doses_follow_the_cdf(design):
    # The probability integral transform of each coordinate is uniform.
    log = design.draw(N, 5)
    center = design.center(log.context).reshape(N, -1)
    for j in range(log.dimension):
        pit = design.law.cdf(center[:, j], log.doses[:, j])
        assert stats.kstest(pit, "uniform").pvalue > LEAST_P
    if log.dimension == 1:
        np.testing.assert_array_equal(pit, design.cdf(log.context, log.treatment))


def test_the_density_is_the_derivative_of_the_cdf(design):
    log = design.draw(500, 6)
    center, t = design.center(log.context).reshape(500, -1)[:, 0], log.doses[:, 0]
    step = 1e-5 * t.std()
    slope = (design.law.cdf(center, t + step) - design.law.cdf(center, t - step)) / (2 * step)
    np.testing.assert_allclose(slope, design.law.density(center, t), atol=DIFFERENCE)


def test_weights_turn_logged_doses_into_uniform_ones(design):
    # E[g(T)/q] = ∫ g for every g within the support; g is a box around the best dose.
    log = design.draw(N, 7)
    half = 0.3 * log.doses.std(axis=0)
    center = design.center(log.context).reshape(N, -1)
    inside = np.all(np.abs(log.doses - center) <= half, axis=1)
    within = np.clip(center + half, log.lower, log.upper) - np.clip(
        center - half, log.lower, log.upper
    )
    assert agree(inside / log.propensity / np.prod(within, axis=1), 1.0)


def test_outcomes_are_the_mean_outcome_and_noise(design):
    log = design.draw(N, 8)
    residual = log.outcome - design.mean_outcome(log.context, log.treatment)
    assert agree(residual, 0.0)
    assert agree(residual**2, design.noise**2)
    assert stats.kstest(residual / design.noise, "norm").pvalue > LEAST_P


def test_no_dose_is_better_than_the_best(design):
    x = design.context(np.random.default_rng(9), 300)
    least = design.mean_outcome(x, design.best(x))
    for off in (-1.0, -0.01, 0.01, 1.0):
        assert np.all(design.mean_outcome(x, design.best(x) + off) >= least)


def test_the_value_of_a_policy_is_its_mean_outcome(design):
    # Brute force over random contexts; the policy errs by a context-dependent dose.
    def policy(X):
        return design.best(X) + (0.3 + 0.1 * np.sin(X[:, :1]) if design.best(X).ndim == 2
                                 else 0.3 + 0.1 * np.sin(X[:, 0]))  # fmt: skip

    x = design.context(np.random.default_rng(10), 200_000)
    sample = design.mean_outcome(x, policy(x))
    error = SIGMAS * sample.std() / np.sqrt(len(sample))
    assert abs(sample.mean() - design.value(policy)) < error + TEN_DIMENSIONS * (len(x[0]) == 10)


def test_contexts_from_uniforms_have_the_law_of_the_random_ones(design):
    spread = design.context_at(evenly_spread(N, design.uniforms))
    drawn = design.context(np.random.default_rng(11), N)
    for j in range(len(design.names)):
        assert stats.ks_2samp(spread[:, j], drawn[:, j]).pvalue > LEAST_P


@pytest.mark.parametrize("n", [1, 0, 2.5])
def test_a_draw_needs_two_rows(n):
    with pytest.raises(InvalidArgument, match=r"The `n` of `Design\.draw`"):
        DESIGNS["synthetic"].draw(n, 0)


# ── known answers ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("beta", "printed"), [(1.0, 0.0), (0.0, 0.8), (0.5, 0.28284), (1.3, 0.13145)]
)
def test_slopes_of_the_paper(beta, printed):
    assert Synthetic.value_of_slope(beta) == pytest.approx(printed, abs=5e-6)
    for name in ("synthetic", "synthetic-uniform"):
        value = DESIGNS[name].value(lambda X: beta * X[:, 0])
        assert value == pytest.approx(Synthetic.value_of_slope(beta), abs=MIDPOINTS)


def test_the_paper_logs_around_the_best_dose_or_anywhere():
    X, t = np.array([[0.4], [0.4]]), np.array([0.5, 1.0])
    # N(0.5, 0.5²) at its center and one sd away: 1/(0.5√(2π)) = 0.797885 and ·e^−½ = 0.483941.
    np.testing.assert_allclose(DESIGNS["synthetic"].density(X, t), [0.797885, 0.483941], atol=5e-7)
    np.testing.assert_allclose(DESIGNS["synthetic-uniform"].density(X, t), 1 / 1.8)
    np.testing.assert_allclose(DESIGNS["synthetic-uniform"].density(X, t + 0.9), [0, 0])
    # 2·0.1^1.5 = 0.0632456 and 2·0.6^1.5 = 0.9295160.
    mean = DESIGNS["synthetic"].mean_outcome(X, t)
    np.testing.assert_allclose(mean, [0.0632456, 0.9295160], atol=5e-8)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_quadratic_design_smooths_exactly(dimension):
    # ∫ ∏K(u_j) m(τ + hu) du − m(τ) = dimension·κ₂h², κ₂ = 1/5 for K(u) = ¾(1 − u²).
    design, h = Quadratic(dimension=dimension), 0.7
    assert design.value(lambda X: design.best(X) + 0.5) == pytest.approx(
        design.value_of_offset(0.5), abs=1e-6
    )
    u, weight = np.polynomial.legendre.leggauss(6)
    k = 0.75 * (1 - u**2) * weight
    grids = np.meshgrid(*[u] * dimension)
    mass = np.prod(np.meshgrid(*[k] * dimension), axis=0).ravel()
    X = np.tile([0.3, 0.8], (mass.size, 1))
    tau = design.best(X)
    shift = grids[0].ravel() if dimension == 1 else np.column_stack([g.ravel() for g in grids])
    smoothed = mass @ design.mean_outcome(X, tau + h * shift)
    plain = design.mean_outcome(X[:1], tau[:1])[0]
    assert smoothed - plain == pytest.approx(dimension * 0.2 * h**2, abs=QUADRATURE)


def test_dosing_known_answer():
    # 80 kg, 55 years: best 19 + 28 − 11 = 36, carriers 27; logged around 25.5 + 16 − 5.5 = 36, 33.
    X, design = np.array([[80.0, 55.0, 0.0], [80.0, 55.0, 1.0]]), Dosing()
    np.testing.assert_allclose(design.best(X), [36.0, 27.0])
    np.testing.assert_allclose(design.center(X), [36.0, 33.0])
    # 9 mg off: 3 + 12(√(1 + (9/12)²) − 1) = 3 + 12·0.25 = 6.
    np.testing.assert_allclose(design.mean_outcome(X, np.array([36.0, 36.0])), [3.0, 6.0])


def test_dosing_is_worth_learning():
    # Better than any one dose, which is better than what physicians did; the best is possible.
    design = Dosing()
    log = design.draw(N, 12)
    one_dose = min(design.value(lambda X, c=c: np.full(len(X), c)) for c in np.arange(25.0, 45.0))
    assert design.value(design.best) == pytest.approx(3.0)
    assert 3.0 + 1.5 < one_dose < log.outcome.mean() - 0.5
    best = design.best(log.context)
    assert np.all((best > design.law.lower) & (best < design.law.upper))
    assert log.context[:, 2].mean() == pytest.approx(0.3, abs=0.02)


# ── ten contexts ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("seed", range(4))
def test_the_affine_value_in_closed_form(seed):
    design = TenContexts.sample(seed)
    rng = np.random.default_rng(seed)
    coef, intercept = rng.normal(size=10), rng.normal()
    x = design.context(rng, 400_000)
    sample = design.mean_outcome(x, x @ coef + intercept)
    assert agree(sample, design.value_of_affine(coef, intercept))


def excess(design, coef, intercept=0.0):
    """R(b'x + c) − R(best linear rule) = (b − b*)'S(b − b*) + (c − 2.5)² − 6.25."""
    return design.value_of_affine(coef, intercept) - design.value_of_affine(design.best_coef)


def test_the_best_rule_without_intercept_is_six_and_a_quarter_worse():
    for seed in range(10):
        design = TenContexts.sample(seed)
        assert excess(design, design.best_coef) == 0.0
        assert excess(design, design.best_coef, 2.5) == pytest.approx(-6.25)
        # b = b* + e₀: excess S₀₀.
        moved = design.best_coef + np.eye(10)[0]
        assert excess(design, moved) == pytest.approx(design.variances[0])


def test_coefficients_are_drawn_as_in_the_paper():
    designs = [TenContexts.sample(seed) for seed in range(200)]
    for design in designs:
        assert [np.count_nonzero(b) for b in (design.b_x, design.b_xt, design.b_q)] == [3, 3, 3]
        assert design.variances.min() == pytest.approx(0.25)
    wide = np.concatenate([d.b_xt[d.b_xt != 0] for d in designs])
    assert wide.std() == pytest.approx(1.5, rel=0.1)
    theta = np.array([d.logging - d.b_q for d in designs])
    means = np.array([2, 4, 6, 0, 2, 2, 2, 2, 2, 2])
    np.testing.assert_allclose(theta.mean(axis=0), means, atol=SIGMAS / np.sqrt(200))
    np.testing.assert_allclose(theta.std(axis=0), 1.0, atol=0.25)


@pytest.mark.parametrize("seed", range(3))
def test_as_printed_the_outcome_has_a_product_and_the_doses_minus_three(seed):
    code, printed = TenContexts.sample(seed), TenContexts.sample(seed, printed=True)
    # The same draws, but for −3x₃ in place of −2x₃.
    np.testing.assert_array_equal(printed.variances, code.variances)
    np.testing.assert_array_equal(printed.b_q, code.b_q)
    np.testing.assert_allclose(code.logging - printed.logging, np.eye(10)[3])
    # y = (β_T·T)(β_x'x) + (β_xT'x)T + (T − β_q'x)², β_T = −5
    x, t = np.random.default_rng(seed).normal(size=(2, 50, 10))
    t = t[:, 0]
    expected = (-5.0 * t) * (x @ code.b_x) + (x @ code.b_xt) * t + (t - x @ code.b_q) ** 2
    np.testing.assert_allclose(printed.mean_outcome(x, t), expected)
    # Its best rule has no intercept: the paper's class holds it.
    assert printed.best_intercept == 0.0
    assert excess(printed, printed.best_coef, 1.5) == pytest.approx(1.5**2)
    grid = np.linspace(-40.0, 40.0, 80_001)
    for row in x[:3]:
        everywhere = printed.mean_outcome(np.tile(row, (len(grid), 1)), grid)
        assert grid[everywhere.argmin()] == pytest.approx(row @ printed.best_coef, abs=1e-3)


def test_scenario_b_keeps_the_draws_and_has_overlap():
    shares = []
    for seed in range(30):
        printed, shrunk = TenContexts.sample(seed), TenContexts.sample(seed, overlap=True)
        for part in ("variances", "b_x", "b_xt", "b_q"):
            np.testing.assert_array_equal(getattr(printed, part), getattr(shrunk, part))
        assert np.sqrt(shrunk.variances @ shrunk.logging**2) == pytest.approx(0.7)
        # Same direction, shrunk.
        ratio = shrunk.logging / printed.logging
        np.testing.assert_allclose(ratio, ratio[0])
        x = printed.context(np.random.default_rng(seed), 2_000)
        shares += [[np.mean(d.density(x, d.best(x)) < 0.02) for d in (printed, shrunk)]]
    under, under_shrunk = np.mean(shares, axis=0)
    # "46 % of units under the clip" in scenario A; next to none in B.
    assert 0.40 < under < 0.52
    assert under_shrunk < 0.05


# ── laws of doses ────────────────────────────────────────────────────────────────────────────────
def test_normal_doses_against_scipy():
    center, t = np.array([-1.0, 0.3, 2.0]), np.array([0.2, 0.0, 1.5])
    law = NormalDose(sd=0.8, lower=-0.5, upper=1.75)
    reference = stats.truncnorm((-0.5 - center) / 0.8, (1.75 - center) / 0.8, center, 0.8)
    np.testing.assert_allclose(law.density(center, t), reference.pdf(t))
    np.testing.assert_allclose(law.cdf(center, t), reference.cdf(t))
    np.testing.assert_array_equal(law.density(center, t + 9), 0.0)
    np.testing.assert_array_equal(law.cdf(center, t + 9), 1.0)
    np.testing.assert_array_equal(law.cdf(center, t - 9), 0.0)


def test_vector_doses_are_independent():
    center, t = np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])
    law = NormalDose(sd=1.0)
    np.testing.assert_allclose(law.density(center, t), stats.norm.pdf(0.5) ** 2)
    np.testing.assert_allclose(law.cdf(center, t), stats.norm.cdf(0.5) * stats.norm.cdf(-0.5))
    uniform = UniformDose(lower=0.0, upper=2.0)
    np.testing.assert_allclose(uniform.density(center, t), [0.25])
    np.testing.assert_allclose(uniform.cdf(center, t), [0.0625])


def test_laws_refuse_what_is_no_law():
    with pytest.raises(InvalidArgument, match="The `sd` of `NormalDose`"):
        NormalDose(sd=0.0)
    with pytest.raises(InvalidArgument, match="of `UniformDose`"):
        UniformDose(lower=1.0, upper=1.0)
    with pytest.raises(InvalidArgument, match="The `dimension` of `Quadratic`"):
        Quadratic(dimension=0)


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_evenly_spread_points_integrate_better_than_random_ones(k):
    n = 4_096
    u = evenly_spread(n, k)
    assert u.shape == (n, k)
    assert np.all((u > 0) & (u < 1))
    # Symmetric around the center: odd functions integrate exactly.
    np.testing.assert_allclose(np.mean((u - 0.5) ** 3, axis=0), 0.0, atol=1e-12)
    # ∫ ∏ (1 + (u_j − ½)/2 + (u_j − ½)²) du = (13/12)^k; random points err by about 0.3/√n = 0.005.
    value = np.mean(np.prod(1 + (u - 0.5) / 2 + (u - 0.5) ** 2, axis=1))
    assert value == pytest.approx((13 / 12) ** k, abs=0.002)


def test_what_the_logged_doses_are_worth():
    # Quadratic logs T = b(x) + 0.2 + 0.6·Z, so E[m(T, X)] = 1.5 + 0.2² + 0.6² = 1.9; the sd of m
    # is below 1.2, hence that of a mean of 500,000 below 0.0017.
    assert abs(Quadratic().logged_value() - 1.9) < SIGMAS * 0.0017
    log = DESIGNS["dosing"].draw(N, 5)
    assert agree(log.outcome, DESIGNS["dosing"].logged_value())


def test_the_value_of_a_policy_goes_by_names():
    design = DESIGNS["dosing"]  # weight, age, carrier
    rule = tt.Linear([0.35, -0.2, -9.0], 19.0, features=design.names)
    turned = tt.Linear([-9.0, -0.2, 0.35], 19.0, features=design.names[::-1])
    assert design.value(turned, 1000) == pytest.approx(design.value(rule, 1000), rel=1e-12)
    few = tt.Linear([0.35, -0.2], 19.0, features=["weight", "age"])
    whole = tt.Linear([0.35, -0.2, 0.0], 19.0, features=design.names)
    assert design.value(few, 1000) == pytest.approx(design.value(whole, 1000), rel=1e-12)
    with pytest.raises(tt.DataError, match="uses the context `bmi`"):
        design.value(tt.Linear([1.0], features=["bmi"]))


# ── Public names ─────────────────────────────────────────────────────────────────────────────────


def test_designs_are_public_names_of_their_room():
    for name in ("DESIGNS", "Design", "Dosing", "NormalDose", "Quadratic", "Synthetic"):
        assert name in data.__all__
        assert getattr(data, name) is getattr(simulate, name)
    with pytest.raises(AttributeError, match=r"titrant\.data.*no attribute 'Nothing'"):
        data.Nothing  # noqa: B018


def test_a_log_does_not_load_what_designs_need():
    code = "import sys; from titrant.data import LoggedData; print('scipy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "False\n"
