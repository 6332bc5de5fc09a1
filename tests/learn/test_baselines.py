"""Baselines: each does what its one line says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LinearRegression

import titrant as tt
from learn.examples import QUADRATIC, changed, quadratic_log
from sweeps import long
from titrant.data.simulate import DESIGNS
from titrant.learn.baselines import least_absolute
from titrant.learn.bins import BinObjective, bin_doses, softmax
from titrant.outcome import RidgeModel, SecondOrder

ROUNDING = 1e-9
DIFFERENCES = 1e-6  # central differences with step 1e-6

LOG = quadratic_log(300)
MODEL = RidgeModel(SecondOrder())
SIMPLE = tt.LinearGaussian()


def test_the_mean_dose():
    assert tt.mean_dose(LOG) == tt.Constant(LOG.treatment.mean())
    both = DESIGNS["quadratic-2d"].draw(50, 1)
    assert tt.mean_dose(both) == tt.Constant(both.treatment.mean(axis=0))


# ── the best constant ────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("estimator", [tt.SelfNormalized(), tt.IPW(centered=True)])
@pytest.mark.parametrize("bounds", [None, (-4.0, 5.0)], ids=["exact", "by restarts"])
def test_no_constant_on_a_grid_is_better(estimator, bounds):
    log, h = LOG.with_bounds(bounds), 0.5
    best = tt.best_constant(log, estimator=estimator, bandwidth=h, allow_untrusted=True)
    low, high = np.quantile(log.treatment, [0.005, 0.995])
    assert low <= best.dose <= high
    every = {str(d): tt.Constant(d) for d in [best.dose, *np.linspace(low, high, 101)]}
    # Beside others a policy has the value it has alone (evaluation/test_compare.py).
    settings = {"estimator": estimator, "bandwidth": h, "allow_untrusted": True}
    values = [one.value for one in tt.compare(log, every, **settings).estimates.values()]
    assert values[0] <= min(values) + 1e-7


def confounded_log(n: int, seed: int) -> tt.LoggedData:
    """Sicker patients got more: V(constant t) = (t − 1)²/2, but outcomes rise with the dose."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = 1.5 * x[:, 0] + 0.7 * rng.normal(size=n)
    return tt.LoggedData(x, t, (t - 1) ** 2 / 2 + 4 * x[:, 0] + rng.normal(size=n))


@pytest.mark.parametrize("seed", [0, *long(1, 2, 3)])
def test_under_confounding_the_best_constant_is_near_the_best(seed):
    # The paper's way loses .27 to 2.4 more than the best dose, 1, on these logs.
    log = confounded_log(1_000, seed)
    found = tt.best_constant(log)
    assert (found.dose - 1) ** 2 / 2 < 0.05
    paper = tt.best_constant(log, estimator=tt.SelfNormalized(), allow_untrusted=True)
    assert (paper.dose - 1) ** 2 / 2 > 0.2


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize(
    "settings",
    [{}, {"estimator": tt.SelfNormalized()}, {"bandwidth": 0.4}, {"propensity": SIMPLE}],
    ids=["default", "estimator", "bandwidth", "propensity"],
)
def test_the_best_constant_is_the_best_that_evaluate_does_not_refuse(settings):
    log = confounded_log(250, 2)
    low, high = np.quantile(log.treatment, [0.005, 0.995])
    every = {str(dose): tt.Constant(dose) for dose in np.linspace(low, high, 15).tolist()}
    # Beside others a policy has the value it has alone (evaluation/test_compare.py).
    found = tt.compare(log, every, allow_untrusted=True, **settings).estimates
    values = {every[name].dose: one.value for name, one in found.items() if one.trusted}
    assert len(values) < len(every)
    best = min(values, key=values.get)
    assert tt.best_constant(log, doses=15, **settings) == tt.Constant(best)


@pytest.mark.usefixtures("plain_models")
def test_a_refused_dose_is_not_chosen_however_good_it_looks():
    # Three rows far away with wonderful outcomes: nobody should be sent there.
    t, y = LOG.treatment.copy(), LOG.outcome.copy()
    t[:3], y[:3] = t.max() + 1.0, y.min() - 500.0
    log = tt.LoggedData(LOG.context, t, y)
    last = tt.Constant(float(np.quantile(t, 0.995)))  # the end of the grid
    for settings in ({}, {"estimator": tt.SelfNormalized()}):
        tempting = tt.evaluate(log, last, allow_untrusted=True, **settings)
        found = tt.evaluate(log, tt.best_constant(log, **settings), **settings)
        assert not tempting.trusted
        assert tempting.value < found.value


@pytest.mark.usefixtures("plain_models")
def test_of_equal_constants_the_one_with_most_effective_rows_is_chosen():
    flat = LOG.with_outcome(np.full(len(LOG), 7.0))
    grid = np.linspace(*np.quantile(LOG.treatment, [0.005, 0.995]), 9).tolist()
    every = {str(dose): tt.Constant(dose) for dose in grid}
    found = tt.compare(flat, every).estimates
    best = max(found.values(), key=lambda estimate: estimate.ess)
    assert tt.best_constant(flat, doses=9) == every[best.policy]


def test_where_every_constant_is_refused_there_is_no_best_one():
    with pytest.raises(tt.UntrustedEstimate, match="answers for none of the 5 policies") as caught:
        tt.best_constant(LOG, estimator=tt.SelfNormalized(), bandwidth=1e-6, doses=5)
    assert str(caught.value).count("Policy 'constant ") == 3


def test_the_best_constant_is_possible_in_every_row():
    low = np.full(len(LOG), -9.0)
    low[:5] = np.median(LOG.treatment)
    t = np.maximum(LOG.treatment, low)
    log = tt.LoggedData(LOG.context, t, LOG.outcome, bounds=(low, None))
    assert tt.best_constant(log, doses=9, bandwidth=1.0).dose >= low[0]


def test_the_best_constant_is_for_one_dose():
    both = DESIGNS["quadratic-2d"].draw(50, 1)
    with pytest.raises(tt.InvalidArgument, match="`best_constant` is for one dose; the log has 2"):
        tt.best_constant(both)


@pytest.mark.long
def test_the_best_constant_of_rewards_is_that_of_losses():
    assert tt.best_constant(changed(LOG, outcome=-1), maximize=True) == tt.best_constant(LOG)


def test_the_best_constant_by_a_model():
    # m = (t − b)² + …: the best constant is the mean of b = x0 − x1/2, which a right model finds.
    found = tt.best_constant(LOG, estimator=tt.DirectMethod(outcome=MODEL))
    assert found.dose == pytest.approx(QUADRATIC.best(LOG.context).mean(), abs=0.1)


# ── the direct method ────────────────────────────────────────────────────────────────────────────
def test_each_context_gets_the_dose_with_the_least_prediction():
    policy = tt.direct_argmin(LOG, MODEL, doses=31)
    fitted = RidgeModel(SecondOrder()).fit(LOG.context, LOG.treatment, LOG.outcome)
    grid = np.linspace(*np.quantile(LOG.treatment, [0.005, 0.995]), 31)
    for x in LOG.context[:5]:
        curve = fitted.predict(np.tile(x, (31, 1)), grid)
        assert policy(x[None])[0] == grid[np.argmin(curve)]


def test_the_direct_method_of_rewards():
    ours = tt.direct_argmin(LOG, MODEL)(LOG.context)
    theirs = tt.direct_argmin(changed(LOG, outcome=-1), MODEL, maximize=True)(LOG.context)
    np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("maximize", [False, True])
def test_the_linear_direct_method_finds_the_best_line(maximize):
    log = changed(LOG, outcome=-1) if maximize else LOG
    policy = tt.direct_linear(log, MODEL, maximize=maximize)
    assert QUADRATIC.value(policy) < 1.52
    np.testing.assert_allclose(policy.policy.coef, [1.0, -0.5], atol=0.25)


def test_any_regressor_serves():
    assert isinstance(tt.direct_linear(LOG, LinearRegression()), tt.Clipped)


# ── bins ─────────────────────────────────────────────────────────────────────────────────────────
def objective(se_weight) -> BinObjective:
    rng = np.random.default_rng(0)
    return BinObjective(
        phi=np.column_stack([np.ones(30), rng.normal(size=30)]),
        chosen=rng.integers(0, 3, 30),
        inverse=rng.uniform(1, 5, 30),
        y=rng.normal(size=30),
        bins=3,
        ridge=np.array([0.1, 0.2]),
        se_weight=se_weight,
    )


@pytest.mark.parametrize("se_weight", [0.0, 2.0])
def test_the_gradient_over_bins(se_weight):
    f = objective(se_weight)
    point = np.random.default_rng(1).normal(size=(1, 6))
    steps = 1e-6 * np.eye(6)
    numerical = [(f(point + s)[0] - f(point - s)[0])[0] / 2e-6 for s in steps]
    np.testing.assert_allclose(f(point)[1][0], numerical, atol=DIFFERENCES)


def test_the_estimate_over_bins_is_that_of_a_loop():
    f = objective(1.5)
    W = np.random.default_rng(1).normal(size=(2, 3))
    a = np.empty(30)
    for i in range(30):
        scores = np.exp(f.phi[i] @ W)
        a[i] = scores[f.chosen[i]] / scores.sum() * f.inverse[i]
    v = sum(a * f.y) / sum(a)
    se = np.sqrt(sum(a**2 * (f.y - v) ** 2)) / sum(a)
    penalty = 0.1 * sum(W[0] ** 2) + 0.2 * sum(W[1] ** 2)
    assert f(W.reshape(1, 6))[0][0] == pytest.approx(v + 1.5 * se + penalty, rel=1e-12)


def test_probabilities_sum_to_one_also_for_huge_scores():
    p = softmax(np.array([[1e4, 0.0], [0.0, np.log(3)]]))
    np.testing.assert_allclose(p, [[1, 0], [0.25, 0.75]])


def test_the_doses_of_bins():
    t = np.array([0.0, 1.0, 2.0, 9.0, 10.0])
    inner, chosen = np.array([5.0]), np.array([0, 0, 0, 1, 1])
    np.testing.assert_array_equal(bin_doses(t, inner, chosen, medians=False), [2.5, 7.5])
    np.testing.assert_array_equal(bin_doses(t, inner, chosen, medians=True), [1.0, 9.5])


@pytest.mark.parametrize("quantiles", [False, True])
def test_a_policy_over_bins_is_better_than_logging_and_worse_than_a_line(quantiles):
    design = DESIGNS["synthetic"]
    log = design.draw(600, 1)
    policy = tt.discretized_policy(log, quantiles=quantiles, propensity=tt.LinearGaussian())
    assert len(np.unique(policy(log.context))) <= 10
    assert 0.01 < design.value(policy) < 0.5 * design.logged_value()


def test_bins_that_do_not_matter_leave_everyone_alike():
    # No context helps: with a strong ridge on its slope the policy is one bin, the best of the two.
    t = np.random.default_rng(0).uniform(size=400)
    log = tt.LoggedData(np.random.default_rng(1).normal(size=400), t, np.abs(t - 0.9))
    model = tt.Known(lambda x, _: np.ones(len(x)), cdf=lambda _, t: np.clip(t, 0, 1))
    policy = tt.discretized_policy(log, bins=2, propensity=model)
    np.testing.assert_allclose(np.unique(policy(log.context)), [0.75], atol=0.02)


@pytest.mark.parametrize("baseline", [tt.direct_argmin, tt.discretized_policy])
def test_vector_doses_are_refused(baseline):
    with pytest.raises(tt.InvalidArgument, match="is for one dose; the log has 2"):
        baseline(DESIGNS["quadratic-2d"].draw(60, 1))


# ── median regression ────────────────────────────────────────────────────────────────────────────
def absolute_loss(x, t, coef, level):
    return np.abs(t - level - x @ coef).sum()


def test_a_median_regression_against_statsmodels():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)) * [1, 100]
    t = x @ [1.0, 0.02] + 3 + rng.standard_t(2, size=80)
    ours = tt.median_regression(x, t)
    theirs = sm.QuantReg(t, sm.add_constant(x)).fit(q=0.5, max_iter=10_000, p_tol=1e-12)
    loss = absolute_loss(x, t, ours.coef, ours.intercept)
    assert loss <= np.abs(theirs.resid).sum() * (1 + ROUNDING)
    np.testing.assert_allclose(np.append(ours.intercept, ours.coef), theirs.params, atol=1e-3)


def test_three_points_by_hand():
    # Through two of three points, the third off by 1: (0, 0), (1, 1), (2, 3). The line through
    # the outer two, t = 1.5x, misses the middle by .5; no line misses by less in sum.
    policy = tt.median_regression([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0])
    assert policy.coef == pytest.approx([1.5])
    assert policy.intercept == pytest.approx(0.0)


def test_without_an_intercept_the_slope_is_a_weighted_median():
    # min Σ|x||t/x − b|: the median of the ratios 1, 2, 4 with weights 1, 1, 3 is 4.
    policy = tt.median_regression([[1.0], [1.0], [3.0]], [1.0, 2.0, 12.0], intercept=False)
    assert policy == tt.Linear([4.0], 0.0)


def test_bounds_on_the_coefficients_hold_and_are_used():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    t = x @ [2.0, -1.0] + 0.1 * rng.normal(size=60)
    coef, level = least_absolute(x, t, np.zeros(2), np.array([1.5, 9.0]), intercept=True)
    np.testing.assert_allclose(coef, [1.5, 0.0], atol=ROUNDING)
    for b, c in itertools.product([1.3, 1.4, 1.5], [level - 0.05, level + 0.05]):
        assert absolute_loss(x, t, coef, level) <= absolute_loss(x, t, np.array([b, 0.0]), c)
    boxed = tt.median_regression(x, t, lower=0.0, upper=[1.5, 9.0], features=["a", "b"])
    assert boxed.features == ("a", "b")
    np.testing.assert_allclose(boxed.coef, coef, atol=ROUNDING)


def test_as_many_doses_as_contexts():
    with pytest.raises(tt.InvalidArgument, match="`best_dose` of `median_regression`"):
        tt.median_regression(np.zeros((3, 1)), [1.0])


def test_bounds_that_exclude_each_other():
    with pytest.raises((tt.InvalidArgument, ValueError)):
        tt.median_regression([[1.0], [2.0]], [1.0, 2.0], lower=2.0, upper=1.0)
