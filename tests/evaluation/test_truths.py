"""Logs whose answer is known: bounds, vector doses, propensities however given, exact models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator

from evaluation.logs import (
    DESIGN,
    FAR,
    KINDS,
    KNOWN,
    NEAR,
    TrueMean,
    kind_name,
    propensity_for,
    smooth_log,
    with_model,
)
from titrant import (
    IPW,
    Clipped,
    Constant,
    DirectMethod,
    Discretized,
    DoublyRobust,
    GaussianMixture,
    Known,
    Linear,
    LinearGaussian,
    LoggedData,
    MultivariateGaussian,
    SelfNormalized,
    UntrustedEstimate,
    evaluate,
)
from titrant.bandwidth import RuleOfThumb
from titrant.data.simulate import Quadratic
from titrant.estimators import Observed, SmoothedEstimator
from titrant.kernels import Boundary

SIGMAS = 4  # a seeded sample may be this many of its own standard errors off
EXACT = 1e-12  # no noise and nothing to estimate: only rounding remains

SMOOTHED = [k for k in KINDS if isinstance(k, SmoothedEstimator)]


def uniform_log(n):
    rng = np.random.default_rng(0)
    x, t = rng.uniform(size=(n, 1)), rng.uniform(size=n)
    return LoggedData(x, t, 5 + rng.normal(size=n), np.ones(n), bounds=(0, 1))


@pytest.mark.parametrize("tau", [0.0, 1.0])
@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
def test_a_policy_at_the_bound_sees_the_whole_outcome(estimator, tau):
    # T ~ U[0, 1], E[Y] = 5: half of the kernel hangs over the edge, the answer is 5 and not 2.5.
    log = uniform_log(4_000)
    found = evaluate(log, Constant(tau), estimator=estimator, bandwidth=0.2)
    assert found.value == pytest.approx(5.0, abs=SIGMAS * found.se)
    assert found.se < 0.4
    low, high = found.interval()
    assert low < 5.0 < high


def test_without_correction_half_of_it_is_lost():
    # What the correction is for: the same log, boundary off.
    log = uniform_log(4_000)
    estimator = IPW(boundary=Boundary.NONE)
    found = evaluate(log, Constant(0.0), estimator=estimator, bandwidth=0.2, allow_untrusted=True)
    assert found.value == pytest.approx(2.5, abs=SIGMAS * found.se)


def test_a_bound_far_from_every_logged_dose_stays_unanswered():
    # Bounds say which doses are possible, not which were tried: nothing was logged below .6.
    log = uniform_log(400)
    log = log.rows(log.treatment > 0.6)
    with pytest.raises(UntrustedEstimate, match=r"outside the support in 100 % of the rows"):
        evaluate(log, Constant(0.0), estimator=SelfNormalized(), bandwidth=0.8)


def test_a_slope_at_the_bound_leaves_no_bias():
    # m = 5 + 3t without noise on a grid of doses: linear boundary kernels reproduce a line.
    n = 2_000
    t = (np.arange(n) + 0.5) / n
    log = LoggedData(np.zeros((n, 1)), t, 5 + 3 * t, np.ones(n), bounds=(0, 1))
    for tau in (0.0, 0.05, 0.5, 1.0):
        found = evaluate(log, Constant(tau), estimator=SelfNormalized(), bandwidth=0.3)
        assert found.value == pytest.approx(5 + 3 * tau, abs=1e-5)  # midpoints: error O(n⁻²)


def test_bounds_that_differ_by_row():
    # T ~ U[x, 2x + 1] and τ = x, each row's own lower bound; m = 5.
    rng = np.random.default_rng(1)
    n = 4_000
    x = rng.uniform(size=(n, 1))
    low, high = x[:, 0], 2 * x[:, 0] + 1
    t = rng.uniform(low, high)
    y = 5 + rng.normal(size=n)
    log = LoggedData(x, t, y, 1 / (high - low), bounds=(low, high))
    found = evaluate(log, lambda X: X[:, 0], estimator=IPW(), bandwidth=0.3)
    assert found.value == pytest.approx(5.0, abs=SIGMAS * found.se)
    # Were the bounds those of the whole column, most rows would lose half of their weight.
    column = evaluate(
        log.with_bounds((0.0, 3.0)),
        lambda X: X[:, 0],
        estimator=IPW(),
        bandwidth=0.3,
        allow_untrusted=True,  # its mean weight is far from 1
    )
    assert column.value < 5.0 - 8 * column.se


@pytest.mark.parametrize("h", [0.35, (0.3, 0.4), ((0.12, 0.03), (0.03, 0.1))], ids=repr)
@pytest.mark.parametrize("estimator", [SelfNormalized(), IPW()], ids=kind_name)
def test_two_doses(estimator, h):
    # m″ = 2 in each dose: smoothing adds κ₂·tr H exactly (h² for each dose if h is a number).
    design = Quadratic(dimension=2)
    log = design.draw(4_000, 2)

    def policy(X):
        return design.best(X) + 0.1

    found = evaluate(log, policy, estimator=estimator, bandwidth=h)
    spread = np.trace(np.asarray(h)) if np.ndim(h) == 2 else np.sum(np.broadcast_to(h, 2) ** 2)
    expected = design.value_of_offset(0.1) + spread / 5
    assert found.value == pytest.approx(expected, abs=SIGMAS * found.se)
    assert found.se < 0.15
    assert np.shape(found.bandwidth.h) == np.shape(h)


def test_two_doses_choose_their_bandwidths():
    design = Quadratic(dimension=2)
    log = design.draw(1_500, 3)

    def policy(X):
        return design.best(X) + 0.1

    for bandwidth in (None, RuleOfThumb()):
        found = evaluate(log, policy, estimator=SelfNormalized(), bandwidth=bandwidth)
        ratio = found.bandwidth.h / log.treatment.std(axis=0)
        assert ratio.shape == (2,)
        assert ratio[0] == pytest.approx(ratio[1])
        low, high = found.interval()
        assert low < design.value_of_offset(0.1) < high


def test_product_of_two_bandwidths_is_their_diagonal_matrix():
    log = Quadratic(dimension=2).draw(300, 4)
    policy = Constant([0.4, 0.9])
    results = [
        evaluate(log, policy, estimator=SelfNormalized(), bandwidth=h)
        for h in ((0.7, 0.5), ((0.49, 0.0), (0.0, 0.25)))
    ]
    assert results[0].value == pytest.approx(results[1].value, rel=EXACT)
    assert results[0].interval() == pytest.approx(results[1].interval(), rel=1e-10)


def test_known_column_known_function_and_exact_model_agree():
    # T ~ N(x0 − x1/2 + .2, .6²) is a linear-Gaussian law.
    log = smooth_log(4_000, 5)
    bare = log.with_propensity(None)

    def run(given, propensity=None):
        return evaluate(
            given, NEAR, estimator=SelfNormalized(), bandwidth=0.4, propensity=propensity
        )

    column, function = run(log), run(bare, KNOWN)
    assert function.value == pytest.approx(column.value, rel=EXACT)
    assert function.se == pytest.approx(column.se, rel=EXACT)
    assert function.interval() == pytest.approx(column.interval(), rel=EXACT)
    # The fitted model has the law's four parameters from 4,000 rows.
    for model in (LinearGaussian(), GaussianMixture(components=2), None):
        fitted = run(bare, model)
        assert fitted.value == pytest.approx(column.value, abs=0.5 * column.se)
        assert fitted.se == pytest.approx(column.se, rel=0.03)


def test_a_model_that_is_given_replaces_the_column():
    log = smooth_log(300)
    wrong = log.with_propensity(log.propensity * np.exp(log.treatment))
    settings = {"estimator": SelfNormalized(), "bandwidth": 0.4}
    right = evaluate(log, NEAR, **settings).value
    assert evaluate(wrong, NEAR, **settings).value != pytest.approx(right, rel=1e-3)
    found = evaluate(wrong, NEAR, propensity=KNOWN, **settings)
    assert found.value == pytest.approx(right, rel=EXACT)


def test_the_model_given_is_not_fitted_itself():
    model = LinearGaussian()
    evaluate(smooth_log(), NEAR, estimator=SelfNormalized(), bandwidth=0.5, propensity=model)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_bounds_truncate_a_fitted_propensity_and_not_a_known_one():
    # N(.5, .4²) cut to [0, 1]: f = φ/(Φ(hi) − Φ(lo)). A known density is taken at its word.
    rng = np.random.default_rng(6)
    t = rng.normal(0.5, 0.4, size=6_000)
    t = t[(t > 0) & (t < 1)]
    x = np.zeros((len(t), 1))
    log = LoggedData(x, t, 5 + rng.normal(size=len(t)), bounds=(0, 1))
    mass = norm.cdf(1.25) - norm.cdf(-1.25)
    whole = Known(lambda _, d: norm.pdf(d, 0.5, 0.4))
    cut = Known(lambda _, d: norm.pdf(d, 0.5, 0.4) / mass)

    def value(model):
        found = evaluate(log, Constant(0.5), estimator=IPW(), bandwidth=0.2, propensity=model)
        return found.value, found.se

    (taken, se), (right, _) = value(whole), value(cut)
    assert taken == pytest.approx(right / mass, rel=1e-10)
    assert right == pytest.approx(5.0, abs=SIGMAS * se)

    class Uncut(BaseEstimator):
        """The law before it was cut, as a model: to cut it is up to the evaluation."""

        def fit(self, X, y):  # noqa: ARG002
            return self

        def density(self, X, t):  # noqa: ARG002
            return norm.pdf(t, 0.5, 0.4)

        def cdf(self, X, t):  # noqa: ARG002
            return norm.cdf(t, 0.5, 0.4)

    assert value(Uncut())[0] == pytest.approx(right, rel=1e-10)


def test_two_fitted_doses():
    design = Quadratic(dimension=2)
    log = design.draw(3_000, 7)

    def policy(X):
        return design.best(X) + 0.1

    def run(given, model=None):
        return evaluate(given, policy, estimator=SelfNormalized(), bandwidth=0.5, propensity=model)

    column, bare = run(log), log.with_propensity(None)
    for model in (MultivariateGaussian(), None):
        fitted = run(bare, model)
        assert fitted.value == pytest.approx(column.value, abs=0.5 * column.se)


@pytest.mark.parametrize("policy", [NEAR, FAR, Constant(0.5)], ids=["near", "far", "constant"])
@pytest.mark.parametrize("self_normalized", [True, False])
@pytest.mark.parametrize("bounds", [None, (-4.0, 4.0)], ids=["unbounded", "bounded"])
def test_with_the_true_outcome_model_dr_is_the_truth(policy, self_normalized, bounds):
    # No noise and r̂ = m: every residual is 0, so DR is the mean of m(τ(x), x) and nothing else.
    log = smooth_log(300, noise=0.0).with_bounds(bounds)
    truth = DESIGN.mean_outcome(log.context, policy(log.context)).mean()
    estimator = DoublyRobust(outcome=TrueMean(), self_normalized=self_normalized)
    for h in (0.3, 1.0, None):
        found = evaluate(log, policy, estimator=estimator, bandwidth=h, allow_untrusted=True)
        assert found.value == pytest.approx(truth, rel=EXACT)
    direct = evaluate(log, policy, estimator=DirectMethod(outcome=TrueMean()))
    assert direct.value == pytest.approx(truth, rel=EXACT)
    assert direct.se == pytest.approx(found.se, rel=1e-10)


def test_two_roles_of_the_outcome_model():
    # One prediction in both roles, r̂(t, x) twice, is the mistake of a peer (truth 0 → 1.997).
    # m = 2(t − x)², τ = x: V = 0.
    class Model(BaseEstimator):
        def fit(self, X, y):  # noqa: ARG002
            return self

        def predict(self, X):
            return 2 * (X[:, 1] - X[:, 0]) ** 2

    rng = np.random.default_rng(8)
    x = rng.uniform(size=(1_000, 1))
    t = rng.normal(x[:, 0], 1.0)
    y = 2 * (t - x[:, 0]) ** 2
    log = LoggedData(x, t, y, norm.pdf(t - x[:, 0]))
    found = evaluate(log, lambda X: X[:, 0], estimator=DoublyRobust(outcome=Model()), bandwidth=0.5)
    assert found.value == pytest.approx(0.0, abs=EXACT)


@pytest.mark.parametrize("estimator", [k for k in KINDS if k != Observed()], ids=kind_name)
def test_every_estimator_finds_the_value(estimator):
    # V of τ = b + .1 is 1.51; smoothing adds h²/5 = .018 to those without a model.
    log = smooth_log(2_000, 9)
    settings = {"propensity": propensity_for(estimator), "bandwidth": 0.3}
    found = evaluate(log, NEAR, estimator=with_model(estimator, TrueMean()), **settings)
    slack = 0.1 if isinstance(estimator, Discretized) else 0.018  # ten bins of .4 each
    assert found.value == pytest.approx(1.51, abs=SIGMAS * found.se + slack)
    assert 0 < found.se < 0.1
    assert found.rows == 2_000


def test_a_log_without_context():
    rng = np.random.default_rng(10)
    t = rng.normal(size=800)
    log = LoggedData(np.empty((800, 0)), t, (t - 1) ** 2 + rng.normal(size=800))
    found = evaluate(log, Constant(0.5), estimator=SelfNormalized(), propensity=LinearGaussian())
    low, high = found.interval()
    assert low < 0.25 < high


def test_the_direct_method_needs_no_propensity():
    log = smooth_log(300)
    with_column, without = (
        evaluate(given, NEAR, estimator=DirectMethod(outcome=TrueMean()))
        for given in (log, log.with_propensity(None))
    )
    assert without.value == with_column.value
    assert without.interval() == with_column.interval()


def test_a_policy_object_and_its_function_are_one_policy():
    log = smooth_log()
    settings = {"estimator": SelfNormalized(), "bandwidth": 0.5}
    as_object = evaluate(log, NEAR, **settings)
    as_function = evaluate(log, lambda X: X @ [1.0, -0.5] + 0.1, **settings)
    as_column = evaluate(log, lambda X: (X @ [1.0, -0.5] + 0.1)[:, None], **settings)
    assert as_function.value == pytest.approx(as_object.value, rel=EXACT)
    assert as_column.value == pytest.approx(as_object.value, rel=EXACT)


def test_a_policy_clipped_to_the_bounds_is_within_them():
    log = uniform_log(400)
    policy = Clipped(Linear(coef=[3.0], intercept=-1.0), 0.0, 1.0)
    found = evaluate(log, policy, estimator=SelfNormalized(), bandwidth=0.3)
    assert found.value == pytest.approx(5.0, abs=SIGMAS * found.se)
