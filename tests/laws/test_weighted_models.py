"""Models that learn from rows with weights: the laws of `sample_weight`.

Weights on another scale change nothing, equal ones are none, a weight of 0 is a row that is not
there, and a whole number is as many copies wherever no cross-validation would see them.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import titrant as tt
from titrant.errors import DataError
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.moments import Moments
from titrant.outcome import OUTCOMES, FoldForests, Forest, Landmarks, OutcomeModel, Stack
from titrant.outcome.base import scaled_weights, worth
from titrant.outcome.repeated import Shrinkage
from titrant.outcome.ridge import leverages, ridge_gcv
from titrant.propensity import PROPENSITIES, CrossMasses, CrossPropensity, smooth_members
from titrant.propensity.average import likeliest
from titrant.propensity.gated import Experts, newton_step, weighted_lines
from titrant.propensity.gaussian import LinearGaussian, log_likelihood, log_likelihood_gradient
from titrant.propensity.logistic import SeenModel
from titrant.propensity.mixture import Regressions, step

EXACT = 1e-10
"""Sums of the same numbers in another order."""
N = 160


def rows(n=N, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = 0.6 * x[:, 0] + rng.normal(size=n)
    y = (t - 0.2) ** 2 + x[:, 0] + 0.3 * rng.normal(size=n)
    return x, t, y, rng.integers(1, 4, size=n).astype(float)


def said(model, x, t):
    """Return what a fitted model of either kind says of rows."""
    if isinstance(model, OutcomeModel):
        return model.predict(x, t)
    return model.log_density(x, t)


def told(model, x, t, y, w):
    fresh = clone(model)
    fit = (x, t, y) if isinstance(model, OutcomeModel) else (x, t)
    return said(fresh.fit(*fit, sample_weight=w), x[:20], t[:20])


MODELS = [*OUTCOMES, Stack(), *(model() for model in PROPENSITIES)]


# ── every model ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_scale_of_weights_changes_nothing_and_equal_ones_are_none(model):
    x, t, y, w = rows()
    own = told(model, x, t, y, w)
    # fit(ω) = fit(cω)
    np.testing.assert_allclose(told(model, x, t, y, 0.3 * w), own, rtol=EXACT)
    plain = told(model, x, t, y, None)
    # fit(c, c, …) = fit(None), to the last bit
    np.testing.assert_array_equal(told(model, x, t, y, np.full(N, 0.7)), plain)
    # and weights do something
    assert not np.allclose(own, plain, rtol=1e-6)


@pytest.mark.parametrize("model", [LinearGaussian(), OUTCOMES[0]], ids=repr)
def test_weights_that_are_none_are_refused(model):
    x, t, y, w = rows()
    for bad in (-w, np.where(w > 2, np.nan, w), 0.0 * w, w[:-1]):
        with pytest.raises(DataError, match="weight"):
            told(model, x, t, y, bad)


def test_weights_are_worth_as_many_equal_rows():
    """ω = 1, 1, 2 is worth 4²/6 rows: Σω = 8/3, in the ratio 1 : 1 : 2."""
    w = scaled_weights([1.0, 1.0, 2.0], 3, "Model")
    assert w == pytest.approx(np.array([2 / 3, 2 / 3, 4 / 3]))
    assert worth(w, 3) == pytest.approx(8 / 3)
    assert scaled_weights([5.0, 5.0, 5.0], 3, "Model") is None
    assert worth(None, 3) == 3


# ── copies, for what has no folds of its own ─────────────────────────────────────────────────────


def test_three_rows():
    """Values 0, 4, 6 with weights 1, 1, 2: mean (4 + 12)/4 = 4, C = 16 + 0 + 2·4 = 24."""
    found = Moments.of(np.array([[0.0], [4.0], [6.0]]), np.array([1.0, 1.0, 2.0]))
    assert (found.n, found.mean[0], found.comoment[0, 0]) == pytest.approx((4.0, 4.0, 24.0))


def test_moments_of_weighted_rows_are_those_of_copies_and_add_up():
    x, t, y, w = rows()
    columns = np.column_stack([x, t, y])
    copied = Moments.of(np.repeat(columns, w.astype(int), axis=0))
    for found in (
        Moments.of(columns, w),
        Moments.of(columns[:50], w[:50]) + Moments.of(columns[50:], w[50:]),
    ):
        assert found.n == copied.n
        np.testing.assert_allclose(found.mean, copied.mean, atol=EXACT)
        np.testing.assert_allclose(found.comoment, copied.comoment, atol=1e-9)


def test_a_ridge_of_weighted_rows_is_that_of_copies():
    # Moments decide about a ridge, penalty and all; a leverage is that of all copies together.
    x, t, y, w = rows()
    columns, times = np.column_stack([x, t, y]), w.astype(int)
    weighted, copied = Moments.of(columns, w), Moments.of(np.repeat(columns, times, axis=0))
    one, other = ridge_gcv(weighted), ridge_gcv(copied)
    assert one.penalty == other.penalty
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9)
    features = columns[:, :-1]
    each = leverages(copied, other, np.repeat(features, times, axis=0))
    summed = np.add.reduceat(each, np.concatenate([[0], np.cumsum(times)[:-1]]))
    np.testing.assert_allclose(leverages(weighted, one, features, w), summed, rtol=1e-9)


def test_leverages_leave_out_a_weighted_row():
    # e/(1 − h) is the residual of the weighted least squares without the row.
    x, t, y, w = rows(30)
    z = np.column_stack([np.ones(30), x, t])
    w = scaled_weights(w, 30, "test")
    columns = np.column_stack([x, t, y])
    moments = Moments.of(columns, w)
    ridge = ridge_gcv(moments)
    if ridge.penalty > 2e-6:
        ridge = type(ridge)(ridge.intercept, ridge.coef, 0.0, ridge.df, ridge.score)
    share = leverages(moments, ridge, columns[:, :-1], w)
    root = np.sqrt(w)
    hat = (z * root[:, None]) @ np.linalg.inv((z.T * w) @ z) @ (z * root[:, None]).T
    np.testing.assert_allclose(share, np.diagonal(hat), atol=1e-4)


def test_steps_of_mixtures_with_weights_are_those_of_copies():
    x, t, _, w = rows()
    z, times = np.column_stack([np.ones(N), x]), w.astype(int)
    model = Regressions(
        np.log([0.5, 0.5]), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.2]]), np.ones(2)
    )
    moved, level = step(model, z, t, 0.05, w)
    copied, same = step(model, np.repeat(z, times, axis=0), np.repeat(t, times), 0.05)
    assert level == pytest.approx(same)
    for name in ("log_weights", "coef", "sds"):
        np.testing.assert_allclose(getattr(moved, name), getattr(copied, name), atol=EXACT)


def test_steps_of_gates_with_weights_are_those_of_copies():
    x, t, _, w = rows()
    z, times = np.column_stack([np.ones(N), x]), w.astype(int)
    many = np.repeat(z, times, axis=0)
    gate, member = np.array([[0.1, 0.2, 0.0], [0.0, -0.1, 0.3]]), np.empty((N, 2))
    member[:, 0] = 1 / (1 + np.exp(-t))
    member[:, 1] = 1 - member[:, 0]
    experts = Experts(gate, gate, np.ones(2))
    logs = experts.law(z).log_weights
    moved = newton_step(gate, logs, z, member, w)[0]
    copied = newton_step(
        gate, np.repeat(logs, times, axis=0), many, np.repeat(member, times, axis=0)
    )[0]
    np.testing.assert_allclose(moved, copied, atol=EXACT)
    lines = weighted_lines(z, t, member * w[:, None])
    same = weighted_lines(many, np.repeat(t, times), np.repeat(member, times, axis=0))
    np.testing.assert_allclose(lines[0], same[0], atol=1e-7)  # its tiny ridge counts rows


def test_averaging_weights_and_shrunken_means_are_those_of_copies():
    _, _, y, w = rows()
    times, rng = w.astype(int), np.random.default_rng(1)
    f = rng.uniform(0.1, 1.0, (N, 3))
    np.testing.assert_allclose(likeliest(f, w), likeliest(np.repeat(f, times, axis=0)), atol=1e-9)
    codes, left = rng.integers(8, size=N), y[:, None] + 3.0 * rng.integers(8, size=N)[:, None]
    one = Shrinkage.of(codes, left, w)
    other = Shrinkage.of(np.repeat(codes, times), np.repeat(left, times, axis=0))
    np.testing.assert_allclose(one.within, other.within, rtol=EXACT)
    np.testing.assert_allclose(one.between, other.between, rtol=EXACT)


def test_a_linear_propensity_of_three_rows():
    """Doses 0, 1, 3 with weights 1, 2, 1 and no context: mean 5/4, worth 16/6 rows.

    Σω(t − m)²/Σω = (25/16 + 2/16 + 49/16)/4 = 19/16; times n/(n − 1) with n = 8/3: 1.9.
    """
    model = LinearGaussian().fit(np.ones((3, 1)), [0.0, 1.0, 3.0], [1.0, 2.0, 1.0])
    assert model.mean_.predict(np.ones((1, 1)))[0] == pytest.approx(1.25)
    assert model.sd_**2 == pytest.approx(19 / 16 * 8 / 5)


def test_the_gradient_of_a_weighted_likelihood():
    x, t, _, w = rows()
    z, w = np.column_stack([np.ones(N), x]), scaled_weights(w, N, "test")
    b, g, eps = np.array([0.1, 0.4, 0.0]), np.array([0.0, 0.1, -0.1]), 1e-6
    found = log_likelihood_gradient(z, t, b, g, w)
    for k, unit in enumerate(np.eye(3)):
        up, down = (log_likelihood(z, t, b, g + s * eps * unit, w) for s in (1, -1))
        assert found[1][k] == pytest.approx((up - down) / (2 * eps), abs=1e-6)
        up, down = (log_likelihood(z, t, b + s * eps * unit, g, w) for s in (1, -1))
        assert found[0][k] == pytest.approx((up - down) / (2 * eps), abs=1e-6)


# ── forests, landmarks, folds ────────────────────────────────────────────────────────────────────


def test_forests_and_landmarks_follow_the_rows_that_count():
    # Half of the rows say 0 and count next to nothing, the others x.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    quiet = np.arange(400) % 2 == 0
    u = np.where(quiet, 0.0, x[:, 0])
    w = np.where(quiet, 1e-6, 1.0)
    for model in (Forest(), Landmarks()):
        slopes = []
        for weights in (None, w):
            fitted = clone(model).fit(x, u, sample_weight=weights)
            slopes.append(np.polyfit(x[:, 0], fitted.predict(x)[:, 0] * u.std(), 1)[0])
        assert slopes[0] == pytest.approx(0.5, abs=0.12)
        assert slopes[1] == pytest.approx(1.0, abs=0.12)


def test_extended_contexts_know_no_scale_of_weights():
    x, t, y, w = rows()
    one, other = (FoldForests().fit_extend(x, t, y, sample_weight=c * w) for c in (1.0, 7.3))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=EXACT, atol=EXACT)


def test_cross_fitted_models_take_weights_by_row():
    x, t, _, w = rows()
    models = CrossPropensity(smooth_members()).fit(x, t, sample_weight=w)
    again = CrossPropensity(smooth_members()).fit(x, t, sample_weight=4.0 * w)
    np.testing.assert_allclose(models.weights_, again.weights_, rtol=EXACT)
    fold = models.fold(0, N)
    index = np.where(t > 0.3, 0, -1)
    parts = [x[fold != k] for k in range(5)]
    masses = CrossMasses().fit(
        index, size=1, extended=parts, held_out=x, fold=fold, sample_weight=w
    )
    assert masses.shares_[0] == pytest.approx(w[t > 0.3].sum() / w.sum())
    seen = SeenModel().fit(x, 1.0 * (t > -0.5), sample_weight=w)
    other = SeenModel().fit(x, 1.0 * (t > -0.5))
    assert not np.allclose(seen.coef_, other.coef_)


# ── a log ────────────────────────────────────────────────────────────────────────────────────────


def nuisances(log, estimator=None, propensity=None):
    return Nuisances.of(log, estimator or tt.DoublyRobust(), propensity)


def test_the_default_models_of_a_log_learn_by_weight():
    x, t, y, w = rows()
    plain, weighted, scaled, equal = (
        nuisances(tt.LoggedData(x, t, y, weights=own)) for own in (None, w, 0.2 * w, np.ones(N))
    )
    log = tt.LoggedData(x, t, y)
    q, r = (lambda made: made.prepare(log).q), (lambda made: made.prepare(log).r_logged)
    for part in (q, r):
        assert not np.allclose(part(weighted), part(plain), rtol=1e-4)
        np.testing.assert_allclose(part(scaled), part(weighted), rtol=1e-9)
        np.testing.assert_array_equal(part(equal), part(plain))


def test_rows_without_weight_are_as_if_they_were_not_there():
    # Rows 0 … 9 of a log stay, though without weight: the numbers, and so the folds, of all others.
    x, t, y, w = rows()
    w = np.where(np.arange(N) < 10, 0.0, w)
    far = np.where(np.arange(N)[:, None] < 10, 40.0, x)
    log = tt.LoggedData(x, t, y)
    one, other = (nuisances(tt.LoggedData(own, t, y, weights=w)) for own in (x, far))
    np.testing.assert_array_equal(one.prepare(log).q[10:], other.prepare(log).q[10:])
    np.testing.assert_array_equal(one.prepare(log).r_logged[10:], other.prepare(log).r_logged[10:])


def test_a_row_counts_as_much_as_its_copies_in_a_group():
    x, t, y, w = rows()
    again = np.repeat(np.arange(N), 2)
    copied = tt.LoggedData(x[again], t[again], y[again], weights=w[again], groups=again)
    once = survey_of(copied, Engine(pin=False)).sample.once.log
    np.testing.assert_array_equal(once.outcome, y)
    np.testing.assert_allclose(once.weights, 2.0 * w)


class Mean(OutcomeModel):
    """The mean outcome; its `fit` knows no weights."""

    def fit(self, X, t, y):  # noqa: ARG002
        self.mean_ = y.mean()
        return self

    def predict(self, X, t):  # noqa: ARG002
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize("outcome", [Mean(), KNeighborsRegressor()], ids=repr)
def test_a_model_that_takes_no_weights_is_told_of(outcome):
    x, t, y, w = rows()
    estimator = tt.DoublyRobust(outcome=outcome)
    log = tt.LoggedData(x, t, y, weights=w)
    found = tt.evaluate(log, tt.Constant(0.0), estimator=estimator, allow_untrusted=True)
    name = type(outcome).__name__
    assert any("sample_weight" in note and name in note for note in found.diagnostics.notes)
    plain = tt.LoggedData(x, t, y)
    found = tt.evaluate(plain, tt.Constant(0.0), estimator=estimator, allow_untrusted=True)
    assert not any("sample_weight" in note for note in found.diagnostics.notes)


def test_a_regressor_that_takes_weights_gets_them():
    x, t, y, w = rows()
    log = tt.LoggedData(x, t, y, weights=w)
    estimator = tt.DirectMethod(outcome=LinearRegression(), folds=1)
    made = nuisances(log, estimator)
    columns = np.column_stack([x, t])
    expected = LinearRegression().fit(columns, y, w).predict(columns)
    np.testing.assert_allclose(made.prepare(log).r_logged, expected, rtol=1e-9)
    found = Evaluation.of(log, {"p": tt.Constant(0.0)}, estimator, None, Engine(pin=False))
    assert found.nuisances.weight_notes == ()
