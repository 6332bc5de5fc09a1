"""What a model, a selector or a rival of the user's own answers is checked, not believed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator

import titrant as tt
from titrant.bandwidth import Bandwidth, BandwidthSelector
from titrant.data.simulate import Quadratic
from titrant.outcome import ridge_pair

LOG = Quadratic().draw(400, seed=0, propensity=False)
POLICY = tt.Constant(0.2)


class Own:
    """The four methods, and nothing of scikit-learn's."""

    def fit(self, X, y):
        self.line_ = np.linalg.lstsq(np.c_[np.ones(len(X)), X], y, rcond=None)[0]
        self.sd_ = np.std(y - self._mean(X))
        return self

    def _mean(self, X):
        return np.c_[np.ones(len(X)), X] @ self.line_

    def density(self, X, t):
        return norm.pdf(t, self._mean(X), self.sd_)

    def cdf(self, X, t):
        return norm.cdf(t, self._mean(X), self.sd_)

    def sample(self, X, seed):
        return np.random.default_rng(seed).normal(self._mean(X), self.sd_)


class Sound(Own, BaseEstimator):
    pass


def saying(answer):
    class Odd(Sound):
        def density(self, X, t):
            return answer(Own.density(self, X, t))

    return Odd()


@pytest.mark.usefixtures("plain_models")
def test_a_propensity_of_ones_own_is_that_of_the_library():
    theirs = tt.evaluate(LOG, POLICY, propensity=Sound(), bandwidth=0.5)
    ours = tt.evaluate(LOG, POLICY, propensity=tt.LinearGaussian(), bandwidth=0.5)
    # Their sd divides by n, ours by what the regression leaves of it.
    assert theirs.value == pytest.approx(ours.value, abs=0.02 * ours.se)


def test_one_that_cannot_be_copied_is_told_how():
    with pytest.raises(tt.InvalidArgument, match=r"inherit `sklearn\.base\.BaseEstimator`"):
        tt.evaluate(LOG, POLICY, propensity=Own())


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda _: 0.5, "must be an array of floats, one a row; got a float"),
        (lambda q: q[:, None], "shape \\(400,\\); got shape \\(400, 1\\)"),
        (lambda q: q[:-1], "got shape \\(399,\\)"),
        (lambda q: np.ma.masked_less(q, 0.1), "got a MaskedArray"),
        (lambda q: np.where(q < 0.1, np.nan, q), "negative or not finite in"),
        (lambda q: np.where(q < 0.1, np.inf, q), "negative or not finite in"),
        (lambda q: -q, "negative or not finite in 400 of 400 rows"),
        (lambda q: q.astype(str), "one a row; got a ndarray of <U"),
        (lambda q: q + 0j, "got a ndarray of complex128"),
        (lambda _: None, "got a NoneType"),
    ],
)
def test_what_its_density_may_not_be(answer, sentence):
    with pytest.raises(tt.DataError, match=f"The density of the propensity `Odd`.*{sentence}"):
        tt.evaluate(LOG, POLICY, propensity=saying(answer), estimator=tt.SelfNormalized())


def selecting(answer):
    class Own(BandwidthSelector):
        def select(self, problem):  # noqa: ARG002
            return answer

    return Own()


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("h", [0.5, np.float64(0.5), np.array(0.5)])
def test_a_selector_may_say_h_as_a_number(h):
    own = selecting(Bandwidth(h=h, selector="own", reason="known"))
    found = tt.evaluate(LOG, POLICY, bandwidth=own)
    assert found.value == tt.evaluate(LOG, POLICY, bandwidth=0.5).value
    assert found.to_dict()["bandwidth"]["h"] == 0.5


@pytest.mark.usefixtures("plain_models")
def test_a_selector_must_say_why():
    with pytest.raises(tt.InvalidArgument, match="must return a `Bandwidth"):
        tt.evaluate(LOG, POLICY, bandwidth=selecting(0.5))
    with pytest.raises(tt.InvalidArgument, match="`h` of `Bandwidth`"):
        Bandwidth(h="wide", selector="own", reason="known")


@pytest.mark.usefixtures("plain_models")
def test_a_rival_that_cannot_be_graded_is_named():
    learner = tt.PolicyLearner(
        procedure=tt.StackedDR(models=ridge_pair()),
        against={"near": tt.Constant(0.0), "far": tt.Constant(50.0)},
    )
    with pytest.raises(tt.NoOverlap, match="Policy 'far' cannot be graded"):
        learner.fit(LOG)


def test_doses_far_from_zero_have_a_density():
    # Offsets of a dose change nothing: 1e12 leaves four digits of a dose of order one.
    moved = tt.LoggedData(LOG.context, LOG.treatment + 1e12, LOG.outcome)
    there = tt.evaluate(moved, tt.Constant(0.2 + 1e12), bandwidth=0.5)
    here = tt.evaluate(LOG, POLICY, bandwidth=0.5)
    assert there.value == pytest.approx(here.value, abs=0.05 * here.se)


@pytest.mark.usefixtures("plain_models")
def test_a_comparison_is_a_collection_of_names():
    found = tt.compare(LOG, {"a": POLICY, "b": tt.Constant(0.1), "far": tt.Constant(99.0)})
    assert list(found) == ["a", "b"]
    assert len(found) == 2
    assert "a" in found
    assert "far" not in found
