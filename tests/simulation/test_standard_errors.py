"""Repeated logs of a smooth design: standard errors, bias and variance are those of the theory.

Quadratic design, T ~ N(b(x) + .2, .6²), noise ½, policy τ = b(x) + .1 with V = 1.51.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from evaluation.logs import DESIGN, NEAR, TrueMean
from sweeps import long
from titrant import IPW, DoublyRobust, Epanechnikov, SelfNormalized
from titrant.estimators import Question, ask
from titrant.evaluation.evaluation import Evaluation
from titrant.inference import RobustBiasCorrected
from titrant.inference.bounds import Expansion
from titrant.kernels import Scale

SIGMAS = 4  # of the Monte-Carlo error of the quantity compared
DELTA = 0.05  # what the standard error is held to; R replications know an sd to 1/√(2R)

VALUE = DESIGN.value_of_offset(0.1)
BANDWIDTHS = (0.3, 0.6, 0.9, 1.2)


class Parabola(BaseEstimator):
    """Least squares on all squares and products of (x, t): the right model, to be learned."""

    def fit(self, X, y):
        self.beta_ = np.linalg.lstsq(self._design(X), y, rcond=None)[0]
        return self

    def predict(self, X):
        return self._design(X) @ self.beta_

    def _design(self, X):
        i, j = np.triu_indices(X.shape[1])
        return np.column_stack([np.ones(len(X)), X, X[:, i] * X[:, j]])


FORMS = {
    "IPW": IPW(),
    "SN": SelfNormalized(),
    "DR": DoublyRobust(outcome=Parabola(), self_normalized=False),
    "DR-SN": DoublyRobust(outcome=Parabola()),
}
each_form = pytest.mark.parametrize("form", FORMS)


def answers(log, estimators, bandwidths):
    """Values and standard errors (estimators, bandwidths, 2); the last estimator has the model."""
    evaluation = Evaluation.of(log, {"policy": NEAR}, estimators[-1], None)
    questions = [Question(e, 0, Scale.of(h, 1)) for e in estimators for h in bandwidths]
    joint = ask(questions, evaluation.over_rows)
    return np.stack([joint.values, joint.se], axis=1).reshape(len(estimators), -1, 2)


def replicated(estimators, bandwidths, *, n, times, seed):
    """The answers (times, estimators, bandwidths, 2) on independent logs of n rows."""
    rng = np.random.default_rng(seed)
    return np.array([answers(DESIGN.draw(n, rng), estimators, bandwidths) for _ in range(times)])


@pytest.fixture(scope="module")
def narrow(replications):
    times = replications(2_000, 10_000)
    return replicated(list(FORMS.values()), (0.3,), n=600, times=times, seed=1)[:, :, 0]


@pytest.fixture(scope="module")
def wide(replications):
    times = replications(600, 10_000)
    return replicated(list(FORMS.values()), BANDWIDTHS, n=500, times=times, seed=2)


@pytest.mark.long
@pytest.mark.slow
@each_form
def test_the_delta_error_is_the_spread_of_the_estimates(narrow, form):
    # 2,000 logs know their standard deviation to 1.6 %.
    values, errors = narrow[:, list(FORMS).index(form)].T
    assert errors.mean() == pytest.approx(values.std(), rel=DELTA)
    # And as a scale: |v − E v|/SE exceeds 1.96 in 5 % of the logs.
    beyond = np.mean(np.abs(values - values.mean()) > 1.96 * errors)
    assert beyond == pytest.approx(0.05, abs=SIGMAS * np.sqrt(0.05 * 0.95 / len(values)))


@pytest.mark.slow
@pytest.mark.parametrize("j", range(len(BANDWIDTHS)), ids=[f"h = {h}" for h in BANDWIDTHS])
@pytest.mark.parametrize("form", ["IPW", "SN"])
def test_so_it_is_at_every_bandwidth(wide, form, j):
    values, errors = wide[:, list(FORMS).index(form), j].T
    slack = SIGMAS / np.sqrt(2 * len(values))  # 600 logs: 2.9 % each
    assert errors.mean() == pytest.approx(values.std(), rel=slack)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("outcome", [Parabola(), LinearRegression()], ids=["right", "wrong"])
def test_with_a_learned_model_the_interval_knows_all_of_the_error(replications, outcome):
    # The delta error takes r̂ as given. Smoothing lets its noise in, by (κ₂/2)h²·∂²r̂/∂t²: nothing
    # at a narrow bandwidth, a tenth of the error at one twice the spread of the dose. The kernel of
    # order four that the interval rests on does not bend r̂, so its error is complete.
    times = replications(400, 4_000)
    estimator, scale, rng = (
        DoublyRobust(outcome=outcome),
        Scale.of(1.2, 1),
        np.random.default_rng(5),
    )
    found = []
    for _ in range(times):
        evaluation = Evaluation.of(DESIGN.draw(500, rng), {"policy": NEAR}, estimator, None)
        point = ask([Question(estimator, 0, scale)], evaluation.over_rows)
        interval = (
            RobustBiasCorrected(recentered=True).infer(point, evaluation.over_rows).interval(0)
        )
        low, high = interval.at(0.95)
        found.append((interval.center, interval.se, low < VALUE < high))
    centers, errors, covered = np.transpose(found)
    assert errors.mean() == pytest.approx(centers.std(), rel=SIGMAS / np.sqrt(2 * times))
    assert covered.mean() == pytest.approx(0.95, abs=SIGMAS * np.sqrt(0.05 * 0.95 / times))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["IPW", "SN"])
def test_bias_grows_with_the_square_of_the_bandwidth(wide, form):
    # m″ = 2: exactly κ₂h² = h²/5 for IPW; the ratio adds less than the Monte-Carlo error.
    values = wide[:, list(FORMS).index(form), :, 0]
    theory = Expansion(kernel=Epanechnikov(), curvature=2.0, noise=1.0, n=500)
    expected = np.array([theory.bias(h) for h in BANDWIDTHS])
    np.testing.assert_allclose(expected, np.square(BANDWIDTHS) / 5)
    bias, error = values.mean(axis=0) - VALUE, values.std(axis=0) / np.sqrt(len(values))
    slack = 0.0 if form == "IPW" else 0.002
    assert (np.abs(bias - expected) < SIGMAS * error + slack).all()
    # Power of h by which the bias grows from .6 to 1.2, where it is 35 to 130 times its error.
    assert np.log2(bias[3] / bias[1]) == pytest.approx(2.0, abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["DR", "DR-SN"])
def test_a_right_model_leaves_no_bias(wide, form):
    # The bias is that of the residual, which has no curvature.
    values = wide[:, list(FORMS).index(form), :, 0]
    bias, error = values.mean(axis=0) - VALUE, values.std(axis=0) / np.sqrt(len(values))
    assert (np.abs(bias) < SIGMAS * error).all()
    plain = wide[:, 1, 3, 0].mean() - VALUE
    assert np.abs(bias[3]) < 0.03 * plain


def theory_of(form, n):
    """Theorem 1's variance in numbers: f(τ|x) = φ(1/6)/.6 in every row, m(τ, x) = 1.01 + x₀."""
    density = norm.pdf(0.1 / 0.6) / 0.6
    spread = 1 / 12  # Var x₀
    second = {"IPW": VALUE**2 + spread + 0.25, "SN": spread + 0.25, "DR": 0.25}[form]
    rest = {"IPW": -(VALUE**2), "SN": 0.0, "DR": spread}[form]
    return Expansion(kernel=Epanechnikov(), curvature=2.0, noise=second / density, n=n, rest=rest)


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, *long(1_600)])
def test_variance_falls_with_n_and_h_as_the_theory_says(replications, n):
    # DR with the true model. The next term is of order h², 2 % at h = .3.
    times = replications(400, 4_000)
    forms = [IPW(), SelfNormalized(), DoublyRobust(outcome=TrueMean(), self_normalized=False)]
    found = replicated(forms, (0.15, 0.3), n=n, times=times, seed=2)[..., 0].var(axis=0)
    for i, form in enumerate(("IPW", "SN", "DR")):
        theory = theory_of(form, n)
        for j, h in enumerate((0.15, 0.3)):
            slack = SIGMAS * np.sqrt(2 / times) + 0.04
            assert found[i, j] == pytest.approx(theory.variance(h), rel=slack)


@pytest.mark.slow
def test_the_optimal_bandwidth_has_the_least_error(replications):
    # h* = (C₃/(4C₁²n))^{1/5} = .42 for SN at n = 500: its error is near the least of a grid.
    times = replications(400, 4_000)
    best = theory_of("SN", 500).optimal_bandwidth()
    assert best == pytest.approx((0.6 * (1 / 3) / 0.6557 / (4 * 0.2**2 * 500)) ** 0.2, rel=1e-3)
    grid = best * np.array([0.35, 0.6, 1.0, 1.6, 2.4])
    values = replicated([SelfNormalized()], grid, n=500, times=times, seed=3)[:, 0, :, 0]
    mse = np.mean((values - VALUE) ** 2, axis=0)
    assert mse[2] < 1.05 * mse.min()
    assert (mse[[0, 4]] > 1.3 * mse[2]).all()
    expected = [theory_of("SN", 500).mse(h) for h in grid]
    np.testing.assert_allclose(mse, expected, rtol=0.3)
