"""Other people's code for the same numbers: KDEpy, scipy and statsmodels.

With q = 1 and y = 1, IPW is a kernel density of the doses at τ; with q = 1, the self-normalized
estimator is Nadaraya–Watson regression.
"""

from __future__ import annotations

import numpy as np
import pytest
from KDEpy import NaiveKDE
from scipy import stats
from statsmodels.nonparametric.kernel_density import KDEMultivariate
from statsmodels.nonparametric.kernel_regression import KernelReg

from laws.designs import estimate
from titrant.estimators import IPW, DirectMethod, Rows, SelfNormalized
from titrant.kernels import (
    KERNELS,
    Biweight,
    Boundary,
    Epanechnikov,
    Gaussian,
    Scale,
    Triangular,
    Uniform,
)

SAME = 1e-10  # the same sum, rounded otherwise

# statsmodels announces another default for its random numbers, of which there are none here.
announced = pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")

NAMES = {
    Epanechnikov: "epa",
    Gaussian: "gaussian",
    Triangular: "tri",
    Uniform: "box",
    Biweight: "biweight",
}
POINTS = [-0.8, 0.05, 0.6]


def sample(d: int, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(12)
    t = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3)
    return t, np.sin(t).sum(axis=1) + rng.normal(scale=0.3, size=n)


def rows_at(tau, t, y) -> Rows:
    n, d = t.shape
    return Rows(tau=np.broadcast_to(tau, (n, d)).astype(float), t=t, y=y, q=np.ones(n))


@pytest.mark.parametrize("kernel", NAMES, ids=lambda k: k.__name__)
def test_density_by_kdepy(kernel):
    # KDEpy scales its kernels to unit variance, so its bandwidth is h·√κ₂.
    t, y = sample(1)
    h = 0.7
    kde = NaiveKDE(kernel=NAMES[kernel], bw=h * np.sqrt(kernel.second_moment)).fit(t[:, 0])
    for tau, expected in zip(POINTS, kde.evaluate(np.array(POINTS)), strict=True):
        value, _ = estimate(IPW(kernel=kernel()), rows_at(tau, t, np.ones_like(y)), Scale.of(h, 1))
        assert value == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_density_with_a_matrix_by_scipy(d):
    # scipy takes H = factor²·cov(t): a full matrix.
    t, y = sample(d)
    kde = stats.gaussian_kde(t.T, bw_method=0.6)
    tau = np.full(d, 0.2)
    given, scale = rows_at(tau, t, np.ones_like(y)), Scale.of(np.atleast_2d(kde.covariance), d)
    value, _ = estimate(IPW(kernel=Gaussian()), given, scale)
    if d == 1:
        assert value == pytest.approx(kde(tau)[0], rel=SAME)
    # A product of Gaussians in turned axes is the multivariate normal density itself.
    normal = stats.multivariate_normal(mean=tau, cov=kde.covariance)
    assert value == pytest.approx(np.mean(normal.pdf(t)), rel=SAME)
    assert value == pytest.approx(kde(tau)[0], rel=SAME)


@announced
def test_density_of_two_doses_by_statsmodels():
    t, y = sample(2)
    h = [0.5, 0.8]
    kde = KDEMultivariate(t, var_type="cc", bw=h)
    for tau in ([0.1, -0.4], [1.0, 0.7]):
        value, _ = estimate(
            IPW(kernel=Gaussian()), rows_at(tau, t, np.ones_like(y)), Scale.of(h, 2)
        )
        assert value == pytest.approx(float(kde.pdf([tau])), rel=SAME)


@announced
@pytest.mark.parametrize("d", [1, 2])
def test_regression_by_statsmodels(d):
    t, y = sample(d)
    h = [0.5, 0.8][:d]
    fit = KernelReg(y, t, var_type="c" * d, reg_type="lc", bw=h)
    for point in POINTS:
        tau = np.full(d, point)
        for center in (0.0, float(y.mean())):
            given = rows_at(tau, t, y)
            given = Rows(tau=given.tau, t=t, y=y, q=given.q, center=center)
            value, _ = estimate(SelfNormalized(kernel=Gaussian()), given, Scale.of(h, d))
            assert value == pytest.approx(float(fit.fit([tau])[0][0]), rel=SAME)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_self_normalized_is_numpys_weighted_average(kernel):
    t, y = sample(1)
    w = kernel()((t[:, 0] - 0.3) / 0.6)
    given = rows_at(0.3, t, y)
    value, _ = estimate(SelfNormalized(kernel=kernel()), given, Scale.of(0.6, 1))
    assert value == pytest.approx(np.average(y, weights=w), rel=SAME)


def test_boundary_mass_is_a_truncated_normal():
    # K/α on [lo, hi] with the Gaussian kernel is the normal density truncated to the bounds.
    t = np.linspace(0.02, 0.98, 25)[:, None]
    tau, h = 0.1, 0.3
    n = len(t)
    given = Rows(
        tau=np.full((n, 1), tau),
        t=t,
        y=np.ones(n),
        q=np.ones(n),
        lower=np.zeros((n, 1)),
        upper=np.ones((n, 1)),
    )
    w = IPW(kernel=Gaussian(), boundary=Boundary.MASS).weight(given, Scale.of(h, 1))
    truncated = stats.truncnorm(-tau / h, (1 - tau) / h, loc=tau, scale=h)
    np.testing.assert_allclose(w, truncated.pdf(t[:, 0]), rtol=SAME)


def test_errors_of_means_are_scipys():
    # scipy divides by n − 1 inside the root.
    t, y = sample(1)
    given = Rows(tau=t, t=t, y=y, r_tau=y, q=np.ones(len(y)))
    expected = stats.sem(y, ddof=0)
    assert estimate(DirectMethod(), given, Scale.of(1, 1))[1] == pytest.approx(expected, rel=SAME)
    top = Epanechnikov.bound
    assert estimate(IPW(), given, Scale.of(1, 1))[1] == pytest.approx(top * expected, rel=SAME)
