"""Laws of rows whose contexts are given say what the model says of any dose."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.propensity import (
    PROPENSITIES,
    CrossPropensity,
    DensityAverage,
    GaussianMixture,
    KernelConditional,
    LinearGaussian,
    MultivariateGaussian,
    SmoothLocation,
    Truncated,
    truncated_density,
)
from titrant.propensity.laws import AskedModel, laws_of
from titrant.propensity.mixture import shortest, weighted_sums

# The same sums in another order.
ROUNDING = 1e-12
SCALAR = [model for model in PROPENSITIES if model is not MultivariateGaussian]


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 2))
    return x, x[:, 0] + rng.choice([-1.0, 1.0], 160) + 0.4 * rng.normal(size=160)


@pytest.mark.parametrize("model", SCALAR)
def test_given_laws_are_those_of_the_model(model, log):
    x, t = log
    fitted = model().fit(x, t)
    laws, asked = laws_of(fitted, x), AskedModel(fitted, x)
    assert isinstance(laws, AskedModel) == (model is KernelConditional)  # it has answers of its own
    for dose in (t, t[::-1] + 0.3):
        for ask in ("density", "cdf", "log_density"):
            expected = getattr(asked, ask)(dose)
            np.testing.assert_allclose(getattr(laws, ask)(dose), expected, rtol=ROUNDING)
    expected = asked.log_probability(t - 0.2, t + 3.0)
    np.testing.assert_allclose(laws.log_probability(t - 0.2, t + 3.0), expected, rtol=ROUNDING)


def test_laws_of_folds_are_those_of_each_fold(log):
    x, t = log
    crossed = CrossPropensity({"a": LinearGaussian(), "b": GaussianMixture()}).fit(x, t)
    fold = crossed.fold(0, len(t))
    laws = crossed.on(fold).laws(x)
    for k, average in enumerate(crossed.averages_):
        rows = fold == k
        np.testing.assert_array_equal(laws.density(t)[rows], average.density(x[rows], t[rows]))
        np.testing.assert_array_equal(laws.cdf(t)[rows], average.cdf(x[rows], t[rows]))


class Halved(SmoothLocation):
    """A user's own model, which writes its density anew and nothing else."""

    def density(self, X, t):
        return 0.5 * SmoothLocation.density(self, X, t)


class Shifted(DensityAverage):
    """A user's own average, which writes the logarithm of its density anew."""

    def log_density(self, X, t):
        return DensityAverage.log_density(self, X, t) + 1.0


@pytest.mark.parametrize(("model", "factor"), [(Halved(), 0.5), (Shifted(), np.e)])
def test_a_model_that_writes_an_answer_anew_is_asked_by_it(model, factor, log):
    x, t = log
    plain = type(model).__mro__[1]().fit(x, t)
    own = truncated_density(model.fit(x, t), x, t, -np.inf, np.inf)
    np.testing.assert_allclose(own, factor * plain.density(x, t), rtol=ROUNDING)
    within = Truncated.of(model, x, -9.0, 9.0).density(t)
    expected = factor * truncated_density(plain, x, t, -9.0, 9.0)
    np.testing.assert_allclose(within, expected, rtol=ROUNDING)


def test_laws_too_large_to_keep_are_asked_anew(log, monkeypatch):
    x, t = log
    fitted = GaussianMixture().fit(x, t)
    monkeypatch.setattr("titrant.propensity.base._BLOCK", 100)
    laws = laws_of(fitted, x)
    assert isinstance(laws, AskedModel)
    np.testing.assert_allclose(laws.density(t), fitted.law(x).density(t), rtol=ROUNDING)


def test_weighted_regressions_are_the_shortest_of_least_squares():
    # Three components: all rows, two rows for three coefficients, and none.
    rng = np.random.default_rng(0)
    Z, r = rng.normal(size=(30, 3)), rng.normal(size=30)
    member = np.column_stack([np.ones(30), np.arange(30) < 2, np.zeros(30)]).astype(float)
    found = shortest(*weighted_sums(Z, r, member))
    np.testing.assert_allclose(found[0], np.linalg.lstsq(Z, r, rcond=None)[0], rtol=1e-10)
    np.testing.assert_allclose(found[1], np.linalg.lstsq(Z[:2], r[:2], rcond=None)[0], rtol=1e-10)
    np.testing.assert_array_equal(found[2], 0.0)
    # Weights so small that their inverse is beyond all numbers are weights all the same.
    np.testing.assert_allclose(
        shortest(*weighted_sums(Z, r, 1e-309 * member))[0], found[0], rtol=1e-2
    )
