"""What fitted models say of themselves: ranks of doses, predictions that are cut, plain models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

import titrant as tt
from titrant.data.simulate import Quadratic
from titrant.estimators import DoublyRobust
from titrant.evaluation import model_checks
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.model_checks import evenness
from titrant.inference import Verdict
from titrant.outcome import CrossFit, Stack, ridge_pair
from titrant.outcome.stack import is_held, without_bounds

DR = DoublyRobust(outcome=LinearRegression())
PLAIN = DoublyRobust(outcome=Stack(ridge_pair()))
NOTE = "Contexts act nonlinearly"
DOSE = {"policy": tt.Constant(0.5)}


def two_humps(n: int = 1500) -> tt.LoggedData:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 1))
    t = x[:, 0] + rng.choice([-1.0, 1.0], size=n) + rng.normal(scale=0.4, size=n)
    return tt.LoggedData(x, t, t)


def sites(n: int = 1000, seed: int = 0) -> tt.LoggedData:
    """Dose and outcome depend on a site's number, by no line."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 6, n)
    level = np.array([0.0, 1.5, -1.0, 0.5, 2.0, -1.5])[site]
    t = 0.8 * level + rng.normal(size=n)
    y = 0.5 * (t - 0.5) ** 2 + 1.2 * level + 0.7 * rng.normal(size=n)
    return tt.LoggedData(np.column_stack([site, rng.normal(size=n)]), t, y)


# Ranks of doses


@pytest.mark.parametrize("n", [20, 400, 5000])
def test_the_distance_is_that_of_kolmogorov_and_smirnov(n):
    ranks = np.random.default_rng(n).uniform(size=n) ** 1.1
    distance, p = evenness(ranks)
    test = kstest(ranks, "uniform")
    assert distance == pytest.approx(test.statistic, rel=1e-12)
    # Stephens' factor against the exact law.
    assert p == pytest.approx(test.pvalue, abs=0.004)


def test_a_given_model_of_the_wrong_shape_is_warned_about_in_every_estimate():
    log = two_humps()
    wrong = tt.evaluate(log, tt.Constant(0.5), estimator=DR, propensity=tt.LinearGaussian())
    found = wrong.diagnostics["propensity_pit"]
    assert found.verdict is Verdict.WARN
    assert "of the doses that the model was fitted to" in found.message
    right = tt.evaluate(log, tt.Constant(0.5), estimator=DR, propensity=tt.LocationScale())
    assert right.diagnostics["propensity_pit"].verdict is Verdict.OK


def test_default_models_are_judged_on_rows_they_have_not_seen():
    log = two_humps(300)
    ready = Evaluation.of(log, DOSE, None, None)
    found = ready.compare()["policy"].diagnostics["propensity_pit"]
    ranks = ready.nuisances.law(log).cdf(log.treatment)
    assert found.value == pytest.approx(kstest(ranks, "uniform").statistic, rel=1e-12)
    assert "of held-out doses" in found.message


def test_a_column_and_a_known_density_without_cdf_have_no_ranks():
    design = Quadratic()
    log = design.draw(400, 0)
    policy = tt.Linear(coef=[1.0, -0.5], intercept=0.3)
    for propensity in (None, tt.Known(design.density)):
        found = tt.evaluate(log, policy, estimator=DR, propensity=propensity).diagnostics
        assert "propensity_pit" not in found.names
    known = tt.Known(design.density, design.cdf)
    found = tt.evaluate(log, policy, estimator=DR, propensity=known).diagnostics
    assert "of logged doses" in found["propensity_pit"].message
    direct = tt.DirectMethod(outcome=LinearRegression())
    assert "propensity_pit" not in tt.evaluate(log, policy, estimator=direct).diagnostics.names


class DensityOnly(BaseEstimator):
    """A user's model that knows no cdf."""

    def fit(self, X, t):
        self.model_ = tt.LinearGaussian().fit(X, t)
        return self

    def density(self, X, t):
        return self.model_.density(X, t)


class Crooked(DensityOnly):
    """A user's model whose cdf is none."""

    def cdf(self, X, t):  # noqa: ARG002
        return np.full(len(X), np.nan)


def test_models_of_a_users_own_need_no_cdf_and_a_wrong_one_is_a_note():
    log = Quadratic().draw(400, 0, propensity=False)
    policy = tt.Linear(coef=[1.0, -0.5], intercept=0.3)
    found = tt.evaluate(log, policy, estimator=DR, propensity=DensityOnly()).diagnostics
    assert "propensity_pit" not in found.names
    found = tt.evaluate(log, policy, estimator=DR, propensity=Crooked()).diagnostics
    assert "propensity_pit" not in found.names
    assert any("cdf of `Crooked` leaves 0 … 1" in note for note in found.notes)


def test_only_some_rows_of_a_long_log_are_ranked(monkeypatch):
    log = two_humps(900)
    monkeypatch.setattr(model_checks, "ROWS", 200)
    ready = Evaluation.of(log, DOSE, DR, tt.LinearGaussian())
    few = ready.survey.sample.thinned(200)
    ranks = ready.nuisances.propensity.cdf(few.log.context, few.log.treatment)
    found = ready.compare()["policy"].diagnostics["propensity_pit"]
    assert found.value == pytest.approx(kstest(ranks, "uniform").statistic, rel=1e-12)


# Predictions that are cut


def heavy_context(n: int = 800, seed: int = 6) -> tt.LoggedData:
    """An outcome far from its usual range where a heavy-tailed context is, and doses follow it."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(2.2, size=n)
    t = 0.8 * x + rng.normal(size=n)
    y = 3.0 * np.abs(x) + t + 0.3 * rng.normal(size=n)
    return tt.LoggedData(np.column_stack([np.abs(x), x]), t, y)


def test_a_value_that_rests_on_cut_predictions_is_warned_about():
    log = heavy_context()
    how = {"estimator": PLAIN, "propensity": tt.LinearGaussian(), "allow_untrusted": True}
    found = tt.evaluate(log, tt.Constant(0.0), **how).diagnostics["cut_predictions"]
    assert found.verdict is Verdict.WARN
    ready = Evaluation.of(log, {"p": tt.Constant(0.0)}, PLAIN, how["propensity"])
    chosen, _ = ready.bandwidths(None)
    point = ready.point(chosen).joint
    outcome = without_bounds(ready.nuisances.outcome)
    free = replace(ready, nuisances=replace(ready.nuisances, outcome=outcome))
    moved = free.point(chosen).joint.values[0] - point.values[0]
    se = tt.evaluate(log, tt.Constant(0.0), **how).se
    assert found.value == pytest.approx(abs(moved) / se, rel=1e-9)


def test_an_ordinary_log_is_hardly_moved_by_the_cut():
    log = Quadratic().draw(800, 0, propensity=False)
    policy = tt.Linear(coef=[1.0, -0.5], intercept=0.3)
    found = tt.evaluate(log, policy, estimator=PLAIN, propensity=tt.LinearGaussian())
    assert found.diagnostics["cut_predictions"].value < 0.2


def test_models_that_hold_nothing_are_not_asked():
    found = tt.evaluate(sites(), tt.Constant(0.5), estimator=DR, propensity=tt.LinearGaussian())
    assert "cut_predictions" not in found.diagnostics.names


def test_a_model_without_bounds_is_that_of_no_bounds_and_the_first_stays_as_it_was():
    log = heavy_context()
    x, t, y = log.context, log.treatment, log.outcome
    model = CrossFit(Stack(ridge_pair())).fit(x, t, y)
    assert is_held(model)
    fold = model.fold(0, len(x))
    before = model.predict(fold, x, t)
    free = without_bounds(model)
    assert not is_held(free)
    assert model.predict(fold, x, t).tolist() == before.tolist()
    # Within the bounds of its training rows nothing changes; beyond, the models go on.
    inside = np.isclose(free.predict(fold, x, t), before, atol=1e-12)
    assert 0.8 < inside.mean() < 1.0
    assert free.predict(fold, x, t).max() > before.max()
    assert not is_held(CrossFit(LinearRegression()).fit(x, t, y))


# Plain models


def test_contexts_that_act_by_steps_are_noted_and_lines_are_not():
    found = tt.evaluate(sites(), tt.Constant(1.0), allow_untrusted=True)
    # It does not change the verdict.
    assert not [c for c in found.diagnostics if "plain" in c.name]
    (note,) = (n for n in found.diagnostics.notes if n.startswith(NOTE))
    plain = tt.evaluate(
        sites(), tt.Constant(1.0), estimator=PLAIN, propensity=tt.GaussianMixture(),
        bandwidth=float(found.bandwidth.h), allow_untrusted=True,
    )  # fmt: skip
    by = plain.value - found.value
    ready = Evaluation.of(sites(), {"p": tt.Constant(1.0)}, PLAIN, tt.GaussianMixture())
    se = ready.point({0: found.bandwidth}).joint.se[0]  # of models that are given
    assert f"off by {by:.3g}, {abs(by) / se:.1f} of its SE" in note
    assert not [n for n in plain.diagnostics.notes if n.startswith(NOTE)]
    linear = tt.evaluate(Quadratic().draw(600, 0, propensity=False), tt.Constant(0.5))
    assert not [n for n in linear.diagnostics.notes if n.startswith(NOTE)]


@pytest.mark.long
def test_plain_models_that_cannot_be_fitted_are_a_note():
    # Most rows have a context far out and are left out of the check, which leaves too few.
    rng = np.random.default_rng(0)
    x, t = np.exp(12 * rng.normal(size=(60, 29))), rng.normal(size=60)
    log = tt.LoggedData(x, t, t**2 + rng.normal(size=60))
    found = tt.evaluate(log, tt.Constant(0.0), allow_untrusted=True)
    notes = [n for n in found.diagnostics.notes if n.startswith("What plain models would give")]
    assert len(notes) == 1
    assert "cannot determine" in notes[0]


def test_no_side_check_ends_an_evaluation(monkeypatch):
    def broken(*_):
        raise np.linalg.LinAlgError("no solution")

    monkeypatch.setattr(model_checks.SecondOpinions, "_answers", broken)
    found = tt.evaluate(sites(300), tt.Constant(0.5), allow_untrusted=True)
    assert sum("not checked: no solution" in note for note in found.diagnostics.notes) == 2
