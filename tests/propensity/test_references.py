"""The same numbers from other software."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import gaussian_kde, multivariate_normal, norm
from sklearn.mixture import GaussianMixture as UnconditionalMixture
from statsmodels.nonparametric.kernel_density import KDEMultivariateConditional

from titrant.errors import DataError, InvalidArgument
from titrant.propensity import (
    GaussianMixture,
    HeteroscedasticGaussian,
    KernelConditional,
    LinearGaussian,
    LocationScale,
    MultivariateGaussian,
)
from titrant.propensity import gaussian as scoring
from titrant.propensity.base import log_normal_interval
from titrant.propensity.gaussian import Affine
from titrant.propensity.mixture import Regressions, climb, extrapolated, guesses, memberships, step

# One direct formula against another.
EXACT = 1e-9
# Two optimizers of one smooth likelihood, stopped at a gradient of 1e-7.
OPTIMUM = 1e-5


def test_least_squares_against_statsmodels(log, fresh):
    (X, t), (x, u) = log, fresh
    ols = sm.OLS(t, sm.add_constant(X)).fit()
    model = LinearGaussian().fit(X, t)
    np.testing.assert_allclose(model.mean_.slopes, ols.params[1:], rtol=EXACT)
    np.testing.assert_allclose(model.mean_.intercept, ols.params[0], rtol=EXACT)
    assert model.sd_ == pytest.approx(np.sqrt(ols.scale), rel=EXACT)
    law = norm(ols.predict(sm.add_constant(x)), np.sqrt(ols.scale))
    np.testing.assert_allclose(model.density(x, u), law.pdf(u), rtol=EXACT)
    np.testing.assert_allclose(model.cdf(x, u), law.cdf(u), rtol=EXACT)


def test_kernel_conditional_against_statsmodels(log, fresh):
    (X, t), (x, u) = log, fresh
    ours = KernelConditional().fit(X, t)
    with warnings.catch_warnings():
        # It announces a change of its random numbers, of which it uses none here.
        warnings.simplefilter("ignore", FutureWarning)
        theirs = KDEMultivariateConditional(t, X, "c", "ccc", bw="normal_reference")
    bandwidths = [ours.treatment_bandwidth_, *ours.context_bandwidths_]
    np.testing.assert_allclose(bandwidths, theirs.bw, rtol=EXACT)
    np.testing.assert_allclose(ours.density(x, u), theirs.pdf(u, x), rtol=EXACT)
    np.testing.assert_allclose(ours.cdf(x, u), theirs.cdf(u, x), rtol=EXACT)


def test_kernel_conditional_at_its_own_rows_against_a_loop(log):
    X, t = log[0][:40], log[1][:40]
    model = KernelConditional().fit(X, t)
    h, b = model.context_bandwidths_, model.treatment_bandwidth_
    for i in range(40):
        others = [j for j in range(40) if j != i]
        votes = [np.exp(-0.5 * np.sum(((X[i] - X[j]) / h) ** 2)) for j in others]
        parts = [v * norm.pdf(t[i], t[j], b) for v, j in zip(votes, others, strict=True)]
        expected = sum(parts) / sum(votes)
        assert model.density(X[i : i + 1], t[i]) == pytest.approx([expected], rel=EXACT)


def test_multivariate_gaussian_against_scipy(log, fresh):
    (X, t), (x, u) = log, fresh
    rng = np.random.default_rng(0)
    T = np.column_stack([t, 0.5 * t + X[:, 0] + rng.normal(size=len(t))])
    U = np.column_stack([u, u - 3.0])
    model = MultivariateGaussian().fit(X, T)
    fit = [sm.OLS(column, sm.add_constant(X)).fit() for column in T.T]
    means = np.column_stack([f.predict(sm.add_constant(x)) for f in fit])
    e = np.column_stack([f.resid for f in fit])
    law = multivariate_normal(cov=e.T @ e / (len(t) - 4))
    np.testing.assert_allclose(model.density(x, U), law.pdf(U - means), rtol=EXACT)
    many = model.sample(np.repeat(x[:1], 40_000, axis=0), seed=1)
    # Standard errors at 40,000 draws: sd/200 of a mean, √2·S/200 of a variance.
    np.testing.assert_allclose(many.mean(axis=0), means[0], atol=4 * np.sqrt(law.cov.max()) / 200)
    np.testing.assert_allclose(np.cov(many.T), law.cov, atol=4 * 1.5 * law.cov.max() / 200)


def test_multivariate_gaussian_refuses_what_it_cannot_do(log):
    X, t = log
    model = MultivariateGaussian().fit(X, np.column_stack([t, t**2]))
    with pytest.raises(InvalidArgument, match="has no cdf"):
        model.cdf(X, t)
    with pytest.raises(DataError, match=r"400 rows of 2 finite numbers; got shape \(400,\)"):
        model.density(X, t)
    with pytest.raises(DataError, match="3 components of the treatment are linearly dependent"):
        model.fit(X, np.column_stack([t, t**2, t - 2 * t**2]))


def test_one_component_of_the_multivariate_model_is_linear_gaussian(log, fresh):
    one, other = LinearGaussian().fit(*log), MultivariateGaussian().fit(*log)
    np.testing.assert_allclose(other.density(*fresh), one.density(*fresh), rtol=EXACT)


def test_heteroscedastic_likelihood_against_a_general_optimizer(log):
    X, t = log
    A = sm.add_constant((X - X.mean(axis=0)) / X.std(axis=0))

    # Treatments count as recorded with an error of 1 % of the residual sd.
    error = 0.01 * LinearGaussian().fit(X, t).sd_

    def loss(params):
        log_sd = A @ params[4:]
        squares = (t - A @ params[:4]) ** 2 + error**2
        return np.mean(log_sd + 0.5 * squares * np.exp(-2 * log_sd))

    start = np.zeros(8)
    start[0] = t.mean()
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
    model = HeteroscedasticGaussian().fit(X, t)
    np.testing.assert_allclose(model.mean_.predict(X), A @ found.x[:4], atol=OPTIMUM * 10)
    factor = np.log(np.sqrt(400 / 396))
    np.testing.assert_allclose(model.log_sd_.predict(X), A @ found.x[4:] + factor, atol=OPTIMUM)


def test_heteroscedastic_gradient_against_finite_differences(log):
    X, t = log
    ols = Affine.least_squares(X, t)
    Z, r = ols.design(X), (t - ols.predict(X)) / t.std()
    rng = np.random.default_rng(0)
    b, g = 0.1 * rng.normal(size=4), 0.1 * rng.normal(size=4)
    mean, log_sd = scoring.log_likelihood_gradient(Z, r, b, g)
    for j, shift in enumerate(1e-6 * np.eye(4)):
        up, down = (scoring.log_likelihood(Z, r, b + s, g) for s in (shift, -shift))
        assert mean[j] == pytest.approx((up - down) / 2e-6, abs=1e-8)
        up, down = (scoring.log_likelihood(Z, r, b, g + s) for s in (shift, -shift))
        assert log_sd[j] == pytest.approx((up - down) / 2e-6, abs=1e-8)


def test_mixture_without_context_against_scikit_learn():
    rng = np.random.default_rng(0)
    t = np.concatenate([rng.normal(0.0, 1.0, 600), rng.normal(6.0, 0.5, 300)])
    one = np.ones((900, 1))
    ours = GaussianMixture().fit(one, t)
    theirs = UnconditionalMixture(2, n_init=3, tol=1e-8, random_state=0).fit(t[:, None])
    assert ours.components_ == 2
    order = np.argsort(-theirs.weights_)
    # EM stops when a stride gains 0.01 of log likelihood: a few 1e-4 of the parameters.
    np.testing.assert_allclose(ours.weights_, theirs.weights_[order], atol=1e-3)
    # The degrees-of-freedom factor: two intercepts of 900 rows.
    sds = np.sqrt(theirs.covariances_.ravel()[order] * 900 / 898)
    np.testing.assert_allclose(ours.sds_, sds, rtol=2e-3)
    np.testing.assert_allclose(
        [mean.intercept + mean.slopes[0] for mean in ours.means_],
        theirs.means_.ravel()[order],
        atol=5e-3,
    )


def test_expectation_maximization_never_descends(log):
    X, t = log
    ols = Affine.least_squares(X, t)
    Z, r = ols.design(X), t - ols.predict(X)
    for start in guesses(Z, r, 3, number=4, floor=0.01, rng=np.random.default_rng(0)):
        np.testing.assert_allclose(memberships(start, Z, r)[0].sum(axis=1), 1.0, rtol=1e-12)
        model, levels = start, []
        for _ in range(40):
            model, level = step(model, Z, r, 0.01)
            levels.append(level)
        assert np.all(np.diff(levels) > -1e-9)
        strides = [climb(start, Z, r, floor=0.01, strides=k) for k in range(12)]
        assert np.all(np.diff([model.log_likelihood(Z, r) for model in strides]) > -1e-9)


def test_a_leap_jumps_to_the_limit_of_a_geometric_sequence():
    # θ₀, θ₁, θ₂ at distances 1, ½, ¼ from their limit 3: d = ½, v = −¼, s = 2, so
    # θ₀ + 2·2·½ − 4·¼ = 2 + 2 − 1 = 3. Weights ¼, ¾ and sds 1 stay.
    path = [
        Regressions(np.log([0.25, 0.75]), np.array([[c], [c]]), np.ones(2))
        for c in (2.0, 2.5, 2.75)
    ]
    leap = extrapolated(*path, floor=0.01)
    np.testing.assert_allclose(leap.coef, 3.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(leap.log_weights), [0.25, 0.75], rtol=1e-12)
    np.testing.assert_allclose(leap.sds, 1.0, rtol=1e-12)


def test_location_scale_without_context_against_scipy(fresh):
    t = np.random.default_rng(0).gamma(3.0, size=300)
    model = LocationScale().fit(np.ones((300, 1)), t)
    _, u = fresh
    u = u / 5.0
    width = model.residual_.bandwidth * model.scale_range_[0]
    kde = gaussian_kde(t, bw_method=width / np.std(t, ddof=1))
    np.testing.assert_allclose(model.density(np.ones((50, 1)), u), kde(u), rtol=EXACT)


@pytest.mark.parametrize(
    ("a", "b"),
    [(-1.0, 2.0), (0.0, 1e-3), (3.0, 3.5), (38.0, 39.0), (-39.0, -38.0), (50.0, np.inf)],
)
def test_normal_mass_of_an_interval_against_quadrature(a, b):
    # ∫_a^b φ = φ(a) ∫_0^{b−a} exp(−a s − s²/2) ds, mirrored so that a is the end nearer to 0.
    near, far = (a, b) if a > -b else (-b, -a)
    inner, _ = quad(lambda s: np.exp(-near * s - 0.5 * s * s), 0.0, min(far - near, 40.0 / 1.0))
    expected = norm.logpdf(near) + np.log(inner)
    got = log_normal_interval(np.array([[a]]), np.array([[b]]))[0, 0]
    assert got == pytest.approx(expected, rel=EXACT)


def test_normal_mass_of_empty_and_endless_intervals():
    a = np.array([[1.0, -np.inf, -np.inf, 2.0, np.inf]])
    b = np.array([[1.0, np.inf, 0.0, np.inf, np.inf]])
    expected = [[-np.inf, 0.0, np.log(0.5), norm.logsf(2.0), -np.inf]]
    np.testing.assert_allclose(log_normal_interval(a, b), expected, rtol=EXACT)
