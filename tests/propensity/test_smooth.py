"""Propensities that bend with the context, their average, and cross-fitting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from titrant.errors import DataError, InvalidArgument
from titrant.outcome import FoldForests, Forest, fold_of
from titrant.propensity import (
    CrossPropensity,
    DensityAverage,
    GatedMixture,
    GaussianMixture,
    HeteroscedasticGaussian,
    KernelConditional,
    Known,
    LinearGaussian,
    MultivariateGaussian,
    SmoothLocation,
    SmoothLocationScale,
    smooth_members,
    truncated_density,
)
from titrant.propensity.average import WithoutExtra, average_weights
from titrant.propensity.gated import log_softmax, newton_step
from titrant.propensity.smooth import regressed

# Log scores of 4,000 fresh rows have a standard error of about .012.
NEAR = 0.06
ROUNDING = 1e-12
BENT = [SmoothLocation, SmoothLocationScale, GatedMixture, DensityAverage]
PAIR = {"line": LinearGaussian(), "bend": SmoothLocation()}


def mean_of(shape, x):
    return {
        "step": 1.5 * (x[:, 0] > 0),
        "U": 0.8 * np.minimum(x[:, 0] ** 2, 4.0),
        "product": 0.8 * x[:, 0] * x[:, 1],
    }[shape]


def draw(shape, n, seed, p=4, sd=0.6):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    scale = sd * np.exp(0.5 * np.tanh(x[:, 1] ** 2 - 1)) if shape == "U" else np.full(n, sd)
    mean = mean_of(shape, x) + 0.3 * x[:, 2]
    t = mean + scale * rng.normal(size=n)
    return x, t, norm.logpdf(t, mean, scale)


@pytest.mark.parametrize("shape", ["step", "U", "product"])
def test_the_average_comes_near_the_true_density(shape):
    x, t, _ = draw(shape, 1500, seed=0)
    new, dose, truth = draw(shape, 4000, seed=1)
    plain = GaussianMixture().fit(x, t).score(new, dose)
    lost = truth.mean() - DensityAverage().fit(x, t).score(new, dose)
    assert lost < 0.5 * (truth.mean() - plain)
    assert lost < (2 * NEAR if shape == "step" else NEAR)


def test_location_scale_finds_a_spread_that_bends():
    x, t, _ = draw("U", 1500, seed=0)
    new, dose, truth = draw("U", 4000, seed=1)
    fitted = SmoothLocationScale().fit(x, t)
    assert truth.mean() - fitted.score(new, dose) < NEAR
    assert fitted.score(new, dose) > SmoothLocation().fit(x, t).score(new, dose) + 0.02
    at = np.zeros((2, 4))
    at[1, 1] = 1.7
    sds = np.sqrt(np.diff(np.stack([fitted.cdf(at, 0.3), fitted.cdf(at, -0.3)]), axis=0) ** 2)
    assert sds[0, 0] > 1.5 * sds[0, 1]  # narrow at 0, wide at 1.7


@pytest.mark.parametrize("n", [300, 1000])
def test_the_gate_follows_two_protocols_in_every_log(n):
    new, dose, truth = draw("step", 4000, seed=99)
    for seed in range(8):
        x, t, _ = draw("step", n, seed)
        # One regression loses .23; a climb that ends in a lower valley as much.
        assert truth.mean() - GatedMixture().fit(x, t).score(new, dose) < 0.12


@pytest.mark.parametrize("model", [SmoothLocation, SmoothLocationScale])
def test_spreads_are_not_too_small(model):
    # Pure noise and 217 features: what a fit explains in sample is not there.
    spreads = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        fitted = model().fit(rng.normal(size=(250, 14)), rng.normal(size=250))
        ranks = fitted.cdf(rng.normal(size=(2000, 14)), rng.normal(size=2000))
        spreads.append(np.std(norm.ppf(np.clip(ranks, 1e-6, 1 - 1e-6))))
    # 1 if the law is right; of one log it varies by .06, of which six leave .025.
    assert np.mean(spreads) == pytest.approx(1.0, abs=0.08)


def test_left_out_residuals_are_those_of_fits_without_the_row():
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(60, 2)), rng.normal(size=60)
    found = regressed(x, u, extra=0, seed=0)
    F, ridge = found.line.context(x), found.line.ridge
    sd = F.std(axis=0)
    z = np.column_stack([np.ones(60), (F - F.mean(axis=0)) / np.where(sd > 1e-9, sd, np.inf)])
    penalty = 60 * ridge.penalty * np.diag([0.0, *np.ones(F.shape[1])])
    for i in (0, 31):
        rest = np.arange(60) != i
        coef = np.linalg.solve(z[rest].T @ z[rest] + penalty, z[rest].T @ u[rest])
        assert found.residual[i] == pytest.approx(u[i] - z[i] @ coef, rel=1e-8)
    # The mean of a row does not move with the targets of its fold.
    fold = fold_of(0, 60, 5, 0)
    other = regressed(x, np.where(fold == 2, -u, u), extra=0, seed=0)
    np.testing.assert_allclose(other.mean[fold == 2], found.mean[fold == 2], rtol=1e-9)


@pytest.mark.parametrize("model", BENT)
@pytest.mark.parametrize("columns", [1, 3])
def test_contexts_of_few_values_hold_no_false_certainty(model, columns):
    # Yes/no contexts: what a row's own absence does to its mean is not taken for a cause.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = (rng.uniform(size=(5000, columns)) < 0.4).astype(float)
        t = x @ np.ones(columns) + 0.7 * rng.normal(size=5000)
        fitted = model().fit(x[:1000], t[:1000])
        truth = norm.logpdf(t[1000:], x[1000:] @ np.ones(columns), 0.7).mean()
        assert truth - fitted.score(x[1000:], t[1000:]) < 0.03


@pytest.mark.parametrize("n", [300, 1000])
def test_a_forest_that_tells_nothing_new_does_not_shrink_the_spread(n):
    # One yes/no context. The out-of-bag mean of a row lacks the row's own dose, which is all that
    # is left of it after the context; a regression on it would "explain" up to a quarter of T.
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = (rng.uniform(size=(n, 1)) < 0.4).astype(float)
        t = x[:, 0] + 0.7 * rng.normal(size=n)
        told = Forest(seed=seed).fit_out_of_bag(x, t[:, None])
        model = SmoothLocation(1, extra=1).fit(np.hstack([x, told]), t)
        found.append(model.sd_ * model.residual_.sds_[0])
    assert np.mean(found) == pytest.approx(0.7, rel=0.05)


def test_extra_columns_sharpen_the_mean():
    x, t, _ = draw("step", 800, seed=0)
    new, dose, _ = draw("step", 4000, seed=1)
    forest = Forest()
    told = forest.fit_out_of_bag(x, t[:, None])
    with_forest = SmoothLocation(extra=1).fit(np.hstack([x, told]), t)
    seen = np.hstack([new, forest.predict(new)])
    assert with_forest.score(seen, dose) > SmoothLocation().fit(x, t).score(new, dose) + 0.05
    only = WithoutExtra(SmoothLocation(), extra=1).fit(np.hstack([x, told]), t)
    np.testing.assert_allclose(
        only.density(seen, dose), SmoothLocation().fit(x, t).density(new, dose), rtol=ROUNDING
    )


@pytest.mark.parametrize("model", BENT)
def test_the_order_of_rows_does_not_matter(model):
    x, t, _ = draw("U", 400, seed=0)
    new, dose, _ = draw("U", 500, seed=1)
    order = np.random.default_rng(5).permutation(400)
    plain, other = model().fit(x, t), model().fit(x[order], t[order])
    # Up to the draws of starts and folds.
    assert other.score(new, dose) == pytest.approx(plain.score(new, dose), abs=0.03)


@pytest.mark.parametrize("model", BENT)
@pytest.mark.parametrize("p", [1, 5, 60])
def test_few_rows_odd_columns_and_an_absurd_cell(model, p):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, p))
    x[3, 0] = 1e9
    if p > 1:
        x[:, 1], x[:, 2] = 4.0, x[:, 0]  # constant, repeated
    t = rng.normal(size=30)
    if model is GatedMixture and p == 60:
        with pytest.raises(DataError, match="30 rows cannot determine"):
            model().fit(x, t)
        return
    fitted = model().fit(x, t)
    q = fitted.density(x, t)
    assert np.all(np.isfinite(q))
    assert 0.05 < np.exp(np.mean(np.log(np.maximum(q, 1e-3)))) < 3.0
    mass, _ = quad(lambda u: fitted.density(x[:1], u)[0], -30.0, 30.0, points=[t[0]], limit=500)
    assert mass == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("model", BENT)
def test_an_absurd_cell_does_not_blind_the_model_to_its_column(model):
    x, t, _ = draw("step", 600, seed=0)
    new, dose, truth = draw("step", 2000, seed=1)
    x[11, 0] = 1e12
    lost = truth.mean() - model().fit(x, t).score(new, dose)
    assert lost < 0.35  # a model blind to the first context loses .45


def test_the_newton_step_climbs_to_the_logistic_regression():
    rng = np.random.default_rng(0)
    Z = np.column_stack([np.ones(400), rng.normal(size=(400, 2))])
    truth = np.array([[0.2, 1.0, -0.5], [-0.2, -1.0, 0.5]])
    scores = np.exp(Z @ truth.T)
    member = scores / scores.sum(axis=1, keepdims=True)
    gate = np.zeros((2, 3))
    for _ in range(20):
        gate, logs = newton_step(gate, log_softmax(Z, gate), Z, member)
        np.testing.assert_array_equal(logs, log_softmax(Z, gate))
    # Soft memberships of a gate lead back to it, but for the ridge of .001.
    np.testing.assert_allclose(gate, truth, atol=0.02)


def test_weights_are_those_of_greatest_likelihood():
    # Two densities, f₁ = 2 and 1/2, f₂ = 1/2 and 2, on 3 and 1 rows of four: w maximizes
    # 3·log(.5 + 1.5w) + log(2 − 1.5w), so 3(2 − 1.5w) = .5 + 1.5w and w = 11/12.
    t = np.array([-1.0, 1.0, -1.0, 1.0])  # sd 1
    logs = np.log(np.array([[2.0, 0.5], [2.0, 0.5], [2.0, 0.5], [0.5, 2.0]]))
    np.testing.assert_allclose(average_weights(logs, t, 0), [11 / 12, 1 / 12], atol=1e-4)
    # In other units of the dose the densities are others, the weights the same.
    np.testing.assert_allclose(
        average_weights(logs - np.log(40.0), 40.0 * t, 0), [11 / 12, 1 / 12], atol=1e-4
    )


def test_members_without_use_are_dropped():
    logs = np.log(np.column_stack([np.ones(50), np.full(50, 0.1), np.full(50, 0.99)]))
    weights = average_weights(logs, np.random.default_rng(0).normal(size=50), 0)
    assert weights[1] == 0.0
    assert weights.sum() == pytest.approx(1.0)
    # One dose that a member holds impossible costs it no more than the floor of 1e-4.
    spoiled = np.zeros((200, 2))
    spoiled[:, 1] = np.log(0.5)
    spoiled[0, 0] = -np.inf
    assert average_weights(spoiled, np.random.default_rng(0).normal(size=200), 0)[0] > 0.9


def test_a_member_that_cannot_be_fitted_is_left_out_and_named():
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(30, 40)), rng.normal(size=30)
    fitted = DensityAverage({"line": LinearGaussian(), "bend": SmoothLocation()}).fit(x, t)
    assert fitted.names_ == ("bend",)
    assert "cannot determine" in fitted.refused_["line"]
    with pytest.raises(DataError, match="30 rows cannot determine"):
        DensityAverage({"line": LinearGaussian()}).fit(x, t)
    with pytest.raises(InvalidArgument, match="`members` of `DensityAverage` must be a mapping"):
        DensityAverage({}).fit(x, t)


def test_the_average_is_the_weighted_sum_of_its_members(log, fresh):
    fitted = DensityAverage({"a": LinearGaussian(), "b": HeteroscedasticGaussian()}).fit(*log)
    a, b = (model.density(*fresh) for model in fitted.average_.models)
    np.testing.assert_allclose(
        fitted.density(*fresh), fitted.weights_ @ np.stack([a, b]), rtol=1e-10
    )


def test_members_may_be_any_propensity(log, fresh):
    known = Known(
        lambda x, t: norm.pdf(t, 15.0, 2.0 + 0 * x[:, 0]),
        lambda x, t: norm.cdf(t, 15.0, 2.0 + 0 * x[:, 0]),
        lambda x, rng: rng.normal(15.0, 2.0, len(x)),
    )
    average = CrossPropensity({"known": known, "line": LinearGaussian()}).fit(*log)
    assert average.weights_.sum() == pytest.approx(1.0)
    row = fresh[0][:1]
    mass, _ = quad(
        lambda u: average.on(np.zeros(1, dtype=int)).density(row, u)[0], -20, 50, limit=300
    )
    assert mass == pytest.approx(1.0, abs=1e-7)


@pytest.fixture(scope="module")
def crossed():
    x, t, _ = draw("step", 400, seed=0)
    return x, t, CrossPropensity(PAIR).fit(x, t), fold_of(0, 400, 5, 0)


def test_weights_are_found_from_densities_of_rows_held_out(crossed):
    x, t, fitted, fold = crossed
    logs = np.empty((400, 2))
    for k in range(5):
        rows = fold == k
        for m, model in enumerate(PAIR.values()):
            logs[rows, m] = clone(model).fit(x[~rows], t[~rows]).log_density(x[rows], t[rows])
    expected = average_weights(logs, t, 0)
    assert expected[1] > 0.6  # the dose bends
    np.testing.assert_allclose(fitted.weights_, expected, atol=1e-4)


def test_each_row_is_judged_by_models_that_have_not_seen_its_fold(crossed):
    x, t, fitted, fold = crossed
    for k in (0, 3):
        rows = fold == k
        members = {n: clone(m).fit(x[~rows], t[~rows]) for n, m in PAIR.items()}
        expected = sum(
            w * members[n].density(x[rows], t[rows])
            for n, w in zip(fitted.names_, fitted.weights_, strict=True)
        )
        np.testing.assert_allclose(fitted.on(fold).density(x, t)[rows], expected, rtol=1e-9)


def test_a_cross_fitted_law_is_a_law(crossed):
    x, t, fitted, fold = crossed
    law, step = fitted.on(fold), 1e-4
    slope = (law.cdf(x, t + step) - law.cdf(x, t - step)) / (2 * step)
    np.testing.assert_allclose(slope, law.density(x, t), atol=1e-6)
    np.testing.assert_allclose(
        np.exp(law.log_probability(x, t, t + 1)), law.cdf(x, t + 1) - law.cdf(x, t), atol=1e-12
    )
    # Truncated as any other model is.
    inside = truncated_density(law, x, t, t - 1.0, t + 1.0)
    np.testing.assert_allclose(
        inside, law.density(x, t) / (law.cdf(x, t + 1) - law.cdf(x, t - 1)), rtol=1e-8
    )
    with pytest.raises(DataError, match="folds are those of 400 rows; got contexts of 7"):
        law.density(x[:7], t[:7])
    with pytest.raises(InvalidArgument, match="between 0 and 4"):
        fitted.on(np.array([0, 5]))


def test_folds_are_those_of_the_outcome_wherever_the_rows_stand():
    x, t, _ = draw("step", 200, seed=0)
    numbers = np.arange(77, 277)
    a = CrossPropensity(PAIR, seed=2).fit(x, t, first_row=77)
    b = CrossPropensity(PAIR, seed=2).fit(x, t, numbers=numbers)
    fold = fold_of(77, 200, 5, 2)
    np.testing.assert_array_equal(a.fold(77, 200), fold)
    np.testing.assert_array_equal(
        a.on(fold).density(x, t), b.on(b.fold(0, 200, numbers)).density(x, t)
    )


def test_extended_contexts_through_the_forests_of_the_folds():
    x, t, truth = draw("step", 600, seed=0)
    y = t + 2 * (x[:, 0] > 0)
    fold = fold_of(0, 600, 5, 0)
    forests = FoldForests(Forest(trees=40))
    learned = forests.fit_extend(x, t, y)
    extended = forests.extend(fold, x)
    fitted = CrossPropensity(smooth_members(2)).fit(x, t, extended=learned, held_out=extended)
    score = np.mean(np.log(fitted.on(fold).density(extended, t)))
    plain = CrossPropensity({"mixture": GaussianMixture()}).fit(x, t)
    assert truth.mean() - score < 0.12
    assert score > np.mean(np.log(plain.on(fold).density(x, t))) + 0.15


def test_members_learn_from_no_more_rows_than_allowed():
    x, t, _ = draw("step", 300, seed=0)
    fitted = CrossPropensity({"kernel": KernelConditional()}, rows=100).fit(x, t)
    assert [average.models[0].components_ for average in fitted.averages_] == [100] * 5


def test_mixtures_of_many_rows_are_learned_from_some_of_them(monkeypatch):
    x, t, _ = draw("step", 3000, seed=0)
    new, dose, _ = draw("step", 2000, seed=1)
    for model in (SmoothLocation, SmoothLocationScale, GatedMixture):
        whole = model().fit(x, t).score(new, dose)
        for most in ("smooth.SAMPLE", "gated.MOST"):
            monkeypatch.setattr(f"titrant.propensity.{most}", 1000)
        assert model().fit(x, t).score(new, dose) == pytest.approx(whole, abs=0.03)
        monkeypatch.undo()


def test_vector_treatments():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    t = x + rng.normal(size=(200, 2))
    fitted = CrossPropensity({"normal": MultivariateGaussian()}).fit(x, t)
    fold = fold_of(0, 200, 5, 0)
    np.testing.assert_array_equal(fitted.weights_, [1.0])
    rows = fold == 1
    expected = MultivariateGaussian().fit(x[~rows], t[~rows]).density(x[rows], t[rows])
    np.testing.assert_allclose(fitted.on(fold).density(x, t)[rows], expected, rtol=1e-10)


class Unsolvable(LinearGaussian):
    """A member whose linear algebra fails."""

    def fit(self, X, y):  # noqa: ARG002
        raise np.linalg.LinAlgError("SVD did not converge")


def test_a_member_without_a_solution_is_refused():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    members = {"line": LinearGaussian(), "none": Unsolvable()}
    for model in (DensityAverage(members), CrossPropensity(members)):
        fitted = model.fit(x, x[:, 0] + rng.normal(size=60))
        assert fitted.names_ == ("line",)
        assert "found no solution in" in fitted.refused_["none"]


@pytest.mark.parametrize("size", [4.0, 30.0])
@pytest.mark.parametrize("model", [SmoothLocation(), SmoothLocationScale(), DensityAverage()])
def test_contexts_over_many_decades_give_finite_densities_or_a_data_error(model, size):
    rng = np.random.default_rng(2)
    x, t = np.exp(size * rng.normal(size=(60, 20))), rng.normal(size=60)
    try:
        found = clone(model).fit(x, t)
    except DataError:
        return
    assert np.isfinite(found.density(x, t)).all()


def test_scales_are_held():
    # Of ever larger contexts, the fits without a fold extrapolate by any factor.
    rng = np.random.default_rng(0)
    x, t = np.exp(30 * rng.normal(size=(60, 3))), rng.normal(size=60)
    low, high = SmoothLocationScale().fit(x, t).log_scale_range_
    assert -60.0 < low <= high < 60.0


def test_a_density_that_is_not_known_counts_as_none():
    rng = np.random.default_rng(0)
    logs = np.column_stack([np.full(50, -1.0), np.full(50, np.nan)])
    np.testing.assert_array_equal(average_weights(logs, rng.normal(size=50), 0), [1.0, 0.0])


def test_residuals_that_are_not_finite_are_a_data_error(monkeypatch):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(60, 1)), rng.normal(size=60)
    everything = "titrant.propensity.smooth.leverages"
    monkeypatch.setattr(everything, lambda total, ridge, f, w: np.ones(len(f)))  # noqa: ARG005
    with (
        np.errstate(divide="ignore"),
        pytest.raises(DataError, match="no finite residual in 60 of 60 rows"),
    ):
        SmoothLocation().fit(x, t)


def test_cross_fitting_alone():
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(60, 2)), rng.normal(size=60)
    fold, model = fold_of(0, 60, 5, 0), CrossPropensity(PAIR)
    with pytest.raises(NotFittedError):
        model.on(fold)
    said = clone(model).fit(x, t).on(fold).density(x, t)
    again = clone(model).fit(x.tolist(), t.tolist()).on(fold).density(x, t)
    np.testing.assert_array_equal(again, said)
    with pytest.raises(DataError, match="cannot learn from 1 of 60 rows"):
        clone(model).fit(np.where(x == x[0, 0], np.nan, x), t)
    with pytest.raises(DataError, match=r"shapes \(60, 2\) and \(59,\)"):
        clone(model).fit(x, t[1:])


def test_an_average_of_too_few_rows_is_a_data_error():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="needs at least 4 rows to learn from; got 3"):
        DensityAverage().fit(rng.normal(size=(3, 1)), rng.normal(size=3))
