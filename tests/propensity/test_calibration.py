"""Does calibration tell a right propensity from a wrong one?"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import norm

from titrant.errors import InvalidArgument
from titrant.propensity import (
    Calibration,
    Known,
    LinearGaussian,
    MultivariateGaussian,
    calibration,
    calibration_of,
    held_out,
)

N = 3_000


@pytest.fixture(scope="module")
def design():
    """T | x ~ N(x, 1) with sd(x) = ½, so that stabilized weights have a variance."""
    rng = np.random.default_rng(4)
    X = 0.5 * rng.normal(size=(N, 1))
    return X, X[:, 0] + rng.normal(size=N)


def gaussian(sd):
    return Known(lambda X, t: norm.pdf(t, X[:, 0], sd), lambda X, t: norm.cdf(t, X[:, 0], sd))


def test_the_truth_and_a_fit_of_its_kind_pass(design):
    for model in (gaussian(1.0), LinearGaussian()):
        found = calibration(model, *design)
        assert found.rows == N
        assert found.ks_p_value > 0.05
        assert abs(found.mean_weight - 1.0) < 3 * found.mean_weight_se
        # E log f = −½log(2πe) = −1.4189, standard error √½/√n = .013.
        assert found.log_score == pytest.approx(-0.5 * np.log(2 * np.pi * np.e), abs=0.04)
        # Tenths of 3,000 uniform values: 0.1 ± 0.0055.
        np.testing.assert_allclose(found.pit_histogram, 0.1, atol=0.02)


@pytest.mark.parametrize("sd", [0.7, 1.5])
def test_a_wrong_spread_is_flagged(design, sd):
    found, right = calibration(gaussian(sd), *design), calibration(gaussian(1.0), *design)
    assert found.ks_p_value < 1e-6
    assert found.log_score < right.log_score
    ends = found.pit_histogram[0] + found.pit_histogram[-1]
    # Too small a spread fills the ends of the histogram, too large a one the middle.
    assert ends > 0.3 if sd < 1.0 else ends < 0.12


def test_a_spread_too_wide_shows_in_the_mean_weight(design):
    # f̂ is too low where doses are common: E[g/f̂] = ∫∫ g(t) f(t|x)/f̂(t|x) dt dP(x) = 1.11. (With
    # a spread too small the weights have no variance, and their mean tells little.)
    found = calibration(gaussian(1.5), *design)
    assert found.mean_weight - 1.0 > 3 * found.mean_weight_se


def test_every_row_is_predicted_by_the_other_folds(design):
    X, t = design[0][:60], design[1][:60]
    found = held_out(LinearGaussian(), X, t, folds=60)
    for i in (0, 17, 59):
        others = np.delete(np.arange(60), i)
        model = LinearGaussian().fit(X[others], t[others])
        assert found.density[i] == pytest.approx(model.density(X[i : i + 1], t[i])[0])
        assert found.cdf[i] == pytest.approx(model.cdf(X[i : i + 1], t[i])[0])


def test_ks_distance_by_hand():
    # PIT values .15, .25, .35, .95: the empirical cdf is ¾ right after .35, a distance of .4.
    pit = np.array([0.15, 0.25, 0.35, 0.95])
    model = Known(lambda _X, t: np.ones(len(t)), lambda _X, t: t)
    found = calibration(model, np.zeros((4, 1)), pit, folds=2)
    assert found.ks_distance == pytest.approx(0.75 - 0.35)
    np.testing.assert_allclose(
        found.pit_histogram, np.array([0, 1, 1, 1, 0, 0, 0, 0, 0, 1]) / 4, atol=1e-12
    )


def test_a_column_of_propensities(design):
    X, t = design
    q = norm.pdf(t, X[:, 0])
    found = calibration_of(q, None, t)
    assert (found.ks_distance, found.ks_p_value, found.pit_histogram) == (None, None, None)
    assert found.log_score == pytest.approx(np.mean(np.log(q)))
    assert abs(found.mean_weight - 1.0) < 3 * found.mean_weight_se
    # Densities in other units (per half dose) are half as large: weights are doubled.
    halved = calibration_of(q / 2, None, t)
    assert halved.mean_weight == pytest.approx(2 * found.mean_weight)
    assert halved.mean_weight - 1.0 > 3 * halved.mean_weight_se
    # The same marginal density stands behind both calls.
    assert calibration(gaussian(1.0), X, t).mean_weight == pytest.approx(found.mean_weight)


def test_bounds_belong_to_the_law():
    # N(x, 1) cut to [−½, ∞): without the bound in the model its mass beyond is missing.
    rng = np.random.default_rng(4)
    X = 0.5 * rng.normal(size=(6_000, 1))
    t = X[:, 0] + rng.normal(size=6_000)
    X, t = X[t >= -0.5], t[t >= -0.5]
    inside = calibration(gaussian(1.0), X, t, lower=-0.5)
    assert inside.ks_p_value > 0.01
    assert abs(inside.mean_weight - 1.0) < 0.05
    assert calibration(gaussian(1.0), X, t).ks_p_value < 1e-6
    per_row = calibration(gaussian(1.0), X, t, lower=np.full(len(t), -0.5))
    assert per_row == inside


def test_vector_treatments_have_a_mean_weight_but_no_ranks(design):
    X, t = design
    T = np.column_stack([t, np.random.default_rng(0).normal(size=N) + 0.3 * X[:, 0]])
    found = calibration(MultivariateGaussian(), X, T)
    assert found.ks_distance is None
    assert abs(found.mean_weight - 1.0) < 3 * found.mean_weight_se


def test_a_density_of_zero_is_reported_not_hidden(design):
    X, t = design
    q = norm.pdf(t, X[:, 0])
    q[3] = 0.0
    found = calibration_of(q, None, t)
    assert found.log_score == -np.inf
    assert found.mean_weight == np.inf


def test_results_describe_themselves(design):
    found = calibration(LinearGaussian(), *design)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    restored = Calibration(**found.to_dict())
    assert restored.log_score == found.log_score
    assert repr(found).startswith("Calibration  log score -1.4")
    assert "rows 3,000" in repr(found)
    assert "<code>" in found._repr_html_()
    assert "PIT" not in repr(calibration_of(np.ones(20), None, np.arange(20.0)))


def test_bad_requests_are_refused(design):
    X, t = design
    with pytest.raises(InvalidArgument, match="`folds` of `held_out` must be a whole number ≥ 2"):
        calibration(LinearGaussian(), X, t, folds=1)
    with pytest.raises(InvalidArgument, match="must be a whole number ≥ 5; got 3"):
        calibration(LinearGaussian(), X[:3], t[:3])
