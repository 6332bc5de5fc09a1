"""The paper's plug-in against statsmodels, quadrature, finite differences and rows by hand."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.nonparametric.kernel_density import KDEMultivariateConditional

from bandwidth.problems import affine, logged, problem
from titrant.bandwidth import PlugIn
from titrant.bandwidth import plug_in as kde
from titrant.bandwidth.leave_one_out import sample
from titrant.errors import InvalidArgument
from titrant.estimators import IPW, DoublyRobust, Rows, SelfNormalized
from titrant.kernels import Gaussian

REFERENCE = 0.01  # what the project promises on 300 rows
TIGHT = 1e-3  # what quadrature over y and second differences leave of it
SLOPES = 1e-5  # second differences with a step of 1e-3
EXACT = 1e-10


def conditional(endog, exog, indep_type):
    with warnings.catch_warnings():  # of a change in drawing random numbers, of which none are
        warnings.simplefilter("ignore", FutureWarning)
        return KDEMultivariateConditional(endog, exog, "c", indep_type, "normal_reference")


def statsmodels_moments(e, t, x, at_t, at_x):
    """Mean, mean square and second derivative of e at (t, x): ∫eʲf(e|t, x)de as a sum over e."""
    model = conditional(e, np.column_stack([t, x]), "cc")
    h = model.bw[0]
    # A trapezoid sum of normal densities at steps of their sd is exact to exp(−2π²) = 3e-9.
    grid = np.arange(e.min() - 6 * h, e.max() + 6 * h, h)
    step = 0.05 * model.bw[1]  # its square over 12 is the relative error of the difference

    def moments(dose, context):
        exog = np.tile([dose, context], (len(grid), 1))
        f = model.pdf(grid, exog) * h
        return f @ grid, f @ grid**2

    rows = []
    for dose, context in zip(at_t, at_x, strict=True):
        (left, _), (mid, square), (right, _) = (
            moments(dose + k * step, context) for k in (-1, 0, 1)
        )
        rows.append((mid, square, (left - 2 * mid + right) / step**2))
    return np.array(rows).T


def statsmodels_density(t, x, at_t, at_x):
    return conditional(t, x, "c").pdf(at_t, at_x)


def by_statsmodels(estimator, rows, points, *, as_printed):
    """h* of the paper's formula with every unknown from statsmodels."""
    e, centered = {
        "IPW": (rows.y, False),
        "SelfNormalized": (rows.y, True),
        "DoublyRobust": (rows.y - rows.r_logged, True),
    }[type(estimator).__name__]
    if as_printed:
        e, centered = rows.y, False
    t, x, at = rows.t[:, 0], rows.x[:, 0], (rows.tau[points, 0], rows.x[points, 0])
    mean, square, curvature = statsmodels_moments(e, t, x, *at)
    v = mean.mean() if centered else 0.0
    f = np.maximum(statsmodels_density(t, x, *at), rows.floor)
    c1 = (1 / 5) / 2 * curvature.mean()
    c3 = 3 / 5 * ((square - 2 * v * mean + v**2) / f).mean()
    return (c3 / (4 * c1**2 * len(e))) ** 0.2


CASES = [
    (SelfNormalized(), False, 300),  # every row; fewer below, because statsmodels is slow
    (DoublyRobust(), False, 30),
    (IPW(), False, 30),
    (SelfNormalized(), True, 30),
]
IDS = ["self-normalized", "doubly robust", "ipw", "as printed"]


@pytest.mark.parametrize(("estimator", "as_printed", "points"), CASES, ids=IDS)
def test_it_agrees_with_statsmodels_on_300_rows(estimator, as_printed, points):
    rows = logged(300)
    choice = PlugIn(as_printed=as_printed, points=points).select(problem(estimator, rows))
    assert choice.flag is None
    index = sample(300, points, 0)
    expected = by_statsmodels(estimator, rows, index, as_printed=as_printed)
    assert float(choice.h) == pytest.approx(expected, rel=REFERENCE)
    assert float(choice.h) == pytest.approx(expected, rel=TIGHT)  # and in fact far better


def test_every_moment_agrees_with_statsmodels():
    rows = logged(300)
    t, x = rows.t[:, 0], rows.x[:, 0]
    at = rows.tau[:12, 0], rows.x[:12, 0]
    ours = kde.outcome_moments(rows.y, rows.t, rows.x, rows.tau[:12], rows.x[:12])
    mean, square, curvature = statsmodels_moments(rows.y, t, x, *at)
    np.testing.assert_allclose(ours.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(ours.square, square, rtol=1e-6)
    np.testing.assert_allclose(ours.curvature[:, 0], curvature, rtol=0, atol=TIGHT)
    density = kde.dose_density(rows.t, rows.x, rows.tau[:12], rows.x[:12])
    np.testing.assert_allclose(density, statsmodels_density(t, x, *at), rtol=EXACT)


@pytest.mark.parametrize("pilot", [1.0, 0.5])
def test_three_rows_by_hand(pilot):
    # t = −1, 0, 1 and e = 1, 0, 1 without context: sd(t)² = 2/3, sd(e)² = 2/9, two columns, so
    # b = pilot·1.06·3^(−1/6) sd. At t = 0 the votes are p = (a, 1, a)/(1 + 2a),
    # a = exp(−1/(2b_t²)): mean = 2a/(1 + 2a) =: m, square = m + b_e², curvature = m(1 − m)/b_t⁴.
    t, e, none = np.array([[-1.0], [0.0], [1.0]]), np.array([1.0, 0.0, 1.0]), np.empty((3, 0))
    b_t2, b_e2 = ((pilot * 1.06) ** 2 * 3 ** (-1 / 3) * v for v in (2 / 3, 2 / 9))
    a = math.exp(-1 / (2 * b_t2))
    m = 2 * a / (1 + 2 * a)
    ours = kde.outcome_moments(e, t, none, np.array([[0.0]]), np.empty((1, 0)), pilot=pilot)
    assert ours.mean[0] == pytest.approx(m, rel=EXACT)
    assert ours.square[0] == pytest.approx(m + b_e2, rel=EXACT)
    assert ours.curvature[0, 0] == pytest.approx(m * (1 - m) / b_t2**2, rel=EXACT)
    # One column for the density: b = pilot·1.06·3^(−1/5) sd.
    b2 = (pilot * 1.06) ** 2 * 3 ** (-2 / 5) * 2 / 3
    density = kde.dose_density(t, none, np.array([[0.0]]), np.empty((1, 0)), pilot=pilot)
    expected = (1 + 2 * math.exp(-1 / (2 * b2))) / (3 * math.sqrt(2 * math.pi * b2))
    assert density[0] == pytest.approx(expected, rel=EXACT)


def test_curvature_is_the_second_difference_of_the_mean_in_each_dose():
    rows, step = logged(200, d=2), 1e-3
    tau, x = rows.tau[:20], rows.x[:20]

    def mean(shift):
        return kde.outcome_moments(rows.y, rows.t, rows.x, tau + shift, x).mean

    ours = kde.outcome_moments(rows.y, rows.t, rows.x, tau, x).curvature
    for j in range(2):
        shift = step * np.eye(2)[j]
        expected = (mean(shift) - 2 * mean(0.0) + mean(-shift)) / step**2
        np.testing.assert_allclose(ours[:, j], expected, atol=SLOPES)


def test_the_dose_density_integrates_to_one_over_two_doses():
    rows = logged(150, d=2)
    axes = [np.linspace(t.min() - 4, t.max() + 4, 161) for t in rows.t.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    x = np.full((len(grid), 1), 0.4)
    cell = np.prod([a[1] - a[0] for a in axes])
    total = kde.dose_density(rows.t, rows.x, grid, x).sum() * cell
    assert total == pytest.approx(1.0, abs=1e-6)


def test_points_far_from_all_rows_have_finite_moments():
    # Plain products of kernels are 0/0 there.
    rows = logged(100)
    far = np.full((1, 1), 1e4)
    ours = kde.outcome_moments(rows.y, rows.t, rows.x, far, rows.x[:1])
    assert np.isfinite([*ours.mean, *ours.square, *ours.curvature[:, 0]]).all()
    assert rows.y.min() <= ours.mean[0] <= rows.y.max()
    assert kde.dose_density(rows.t, rows.x, far, rows.x[:1])[0] == 0.0


def test_blocks_change_nothing(monkeypatch):
    task = problem(DoublyRobust(), logged())
    whole = PlugIn().constants(task)
    monkeypatch.setattr(kde, "CELLS", 1000)  # four points at a time
    blocks = PlugIn().constants(task)
    assert (blocks.c1, blocks.c3) == pytest.approx((whole.c1, whole.c3), rel=EXACT)


def test_a_constant_context_is_no_context():
    rows = logged()
    constant = replace(rows, x=np.full_like(rows.x, 7.0))
    none = replace(rows, x=np.empty((len(rows.y), 0)))
    a, b = (PlugIn().constants(problem(SelfNormalized(), r)) for r in (constant, none))
    assert (a.c1, a.c3) == pytest.approx((b.c1, b.c3), rel=EXACT)


def test_the_constants_of_each_estimator_differ_as_the_theory_says():
    rows = logged()
    plain, centered, normalized, doubly = (
        PlugIn().constants(problem(e, rows))
        for e in (IPW(), IPW(centered=True), SelfNormalized(), DoublyRobust())
    )
    printed = PlugIn(as_printed=True)
    for estimator in (IPW(), SelfNormalized(), DoublyRobust()):
        constants = printed.constants(problem(estimator, rows))
        assert (constants.c1, constants.c3) == pytest.approx((plain.c1, plain.c3), rel=EXACT)
    # The same curvature of E[Y] but for the doubly robust, whose residual has its own;
    # E[(Y − V)²/f] is less than with any other constant in place of V = E[Y] when f is even,
    # and outcomes near 3 make E[Y²/f] far larger.
    assert (centered.c1, normalized.c1) == pytest.approx((plain.c1, plain.c1), rel=1e-9)
    assert doubly.c1 != pytest.approx(plain.c1, rel=0.01)
    assert normalized.c3 < centered.c3 * 1.5 < plain.c3


def test_the_floor_is_under_the_density_at_the_policys_dose():
    # With a floor above every density C₃ is R·E[(Y − c)²]/floor, in units of sd(T).
    rows = replace(logged(), floor=50.0)
    constants = PlugIn().constants(problem(IPW(), rows))
    square = kde.outcome_moments(rows.y, rows.t, rows.x, rows.tau, rows.x).square
    assert constants.c3 == pytest.approx(0.6 * square.mean() / 50 / rows.t.std(), rel=EXACT)


def test_the_printed_plug_in_moves_with_the_zero_of_the_outcome():
    rows = logged()
    here, far = (
        PlugIn(as_printed=True).constants(problem(SelfNormalized(), r))
        for r in (rows, affine(rows, 1.0, 20.0))
    )
    assert far.c1 == pytest.approx(here.c1, rel=1e-9)
    assert far.c3 > 10 * here.c3  # E[Y²] of outcomes near 23, near 3


def test_a_quadratic_outcome_with_an_even_density_has_the_textbook_constants():
    # m = t², T normal(0, 1), τ = 0, noise of sd 1, no context: C₁ = (κ₂/2)·2,
    # C₃ = R·E[(Y − V)²|0]/φ(0) = R·√(2π) with V = 0.
    # Smoothing biases both: b = .18 sd, and its square times Var(y) = 3 is part of E[(Y − V)²].
    rng = np.random.default_rng(8)
    n = 40_000
    t = rng.normal(size=(n, 1))
    y = t[:, 0] ** 2 + rng.normal(size=n)
    rows = Rows(tau=np.zeros((n, 1)), t=t, y=y, x=np.empty((n, 0)), q=np.ones(n))
    for estimator, kappa2, roughness in (
        (SelfNormalized(), 0.2, 0.6),
        (SelfNormalized(kernel=Gaussian()), 1.0, 1 / (2 * math.sqrt(math.pi))),
    ):
        found = PlugIn(points=1).constants(problem(estimator, rows))
        assert found.c1 == pytest.approx(kappa2, rel=0.15)
        assert found.c3 == pytest.approx(roughness * math.sqrt(2 * math.pi), rel=0.15)


def test_the_estimated_errors_are_those_of_the_formula_at_h():
    # At h* the squared bias is a quarter of the variance (MSE* = 1.25·C₃/(n·h*)).
    choice = PlugIn().select(problem(SelfNormalized(), logged()))
    assert choice.flag is None
    assert 4 * choice.bias**2 == pytest.approx(choice.se**2, rel=1e-9)


def test_a_straight_outcome_takes_the_largest_usable_bandwidth():
    rows = logged()
    flat = replace(rows, y=np.ones_like(rows.y), center=1.0)
    choice = PlugIn().select(problem(IPW(), flat))
    assert choice.flag == "the largest usable bandwidth"


def test_settings_are_checked():
    with pytest.raises(InvalidArgument, match="`points` of `PlugIn` must be a whole number ≥ 1"):
        PlugIn(points=0)
    with pytest.raises(InvalidArgument, match="`seed` of `PlugIn`"):
        PlugIn(seed=-1)
    with pytest.raises(InvalidArgument, match="`pilot` of `PlugIn` must be a finite number > 0"):
        PlugIn(pilot=0.0)


def test_the_variance_is_about_the_value_at_each_point():
    # (E[e²] − 2c·E[e] + c²)/f with c the mean of E[e]: where f is large E[e] is small here, so
    # that −c² in place of −2c·E[e] + c² would be another number.
    rng = np.random.default_rng(0)
    n = 300
    x = rng.normal(size=(n, 1))
    t = x + np.where(x > 0, 0.3, 1.5) * rng.normal(size=(n, 1))
    y = np.where(x[:, 0] > 0, 1.0, 6.0) + 0.5 * t[:, 0] + 0.2 * rng.normal(size=n)
    rows = Rows(tau=x, t=t, y=y, x=x, center=float(y.mean()), q=np.ones(n), floor=1e-3)
    some = sample(n, 100, 0)
    at = x[some], x[some]
    e = y - y.mean()
    moments, f = kde.outcome_moments(e, t, x, *at), kde.dose_density(t, x, *at)
    c = moments.mean.mean()
    unit = 0.6 / float(t.std())

    def c3(square):
        return unit * float((square / np.maximum(f, 1e-3)).mean())

    found = PlugIn(points=100).constants(problem(SelfNormalized(), rows)).c3
    right = c3(moments.square - 2 * c * moments.mean + c**2)
    assert found == pytest.approx(right, rel=EXACT)
    assert abs(c3(moments.square - c**2) / right - 1) > 0.01
