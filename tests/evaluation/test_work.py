"""More contexts than the default models can take in minutes are refused before any work."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import titrant as tt
from sweeps import long
from titrant import learning
from titrant.evaluation.models import fitting
from titrant.evaluation.models.fitting import (
    MOST_MINUTES,
    check_work,
    outcome_work,
    propensity_work,
)
from titrant.learn import setting
from titrant.outcome import Spline

OWN = {
    "estimator": tt.DoublyRobust(outcome=LinearRegression()),
    "propensity": tt.LinearGaussian(),
    "bandwidth": 1.0,
}


def wide_log(p, n=400, **columns):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(n, p)), rng.normal(size=n)
    return tt.LoggedData(x, t, t**2 + x[:, 0], **columns)


@pytest.fixture(scope="module")
def widest():
    return wide_log(2_000, n=5_000)


@pytest.fixture
def idle(monkeypatch):
    """No model may be fitted."""

    def fail(*_, **__):
        raise AssertionError("a model is fitted")

    for place, name in [
        (fitting, "fitted_propensity"),
        (fitting, "fitted_outcome"),
        (setting, "survey_of"),
    ]:
        monkeypatch.setattr(place, name, fail)


ASKED = {
    "evaluate": lambda log: tt.evaluate(log, tt.Constant(0.0)),
    "compare": lambda log: tt.compare(log, {"a": tt.Constant(0.0), "b": tt.StatusQuo()}),
    "curve": lambda log: tt.curve(log, tt.Constant, [0.0, 0.5]),
    "check": lambda log: tt.check(log, tt.Constant(0.0)),
    "bandwidth_path": lambda log: tt.bandwidth_path(log, tt.Constant(0.0)),
    "learn": lambda log: tt.PolicyLearner().fit(log),
    "search": lambda log: tt.PolicyLearner(procedure=tt.CPO(bandwidth=1.0)).fit(log),
}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("name", ["evaluate", *long(*list(ASKED)[1:])])
def test_two_thousand_contexts_are_refused_with_a_remedy_before_any_work(name, widest):
    with pytest.raises(tt.DataError) as caught:
        ASKED[name](widest)
    found = re.fullmatch(
        r"The default models would take about ([\d,]+) minutes for 2,000 contexts and 5,000 rows; "
        r"more than 10 are not begun\. Name fewer contexts \(up to (\d+) for so many rows\), "
        r"or give `propensity` and an outcome model of your own\.",
        str(caught.value),
    )
    minutes, most = (int(part.replace(",", "")) for part in found.groups())
    assert minutes > MOST_MINUTES
    # Halving the contexts of a cubic problem brings it down eightfold.
    assert 150 <= most <= 1_000


def test_models_of_ones_own_are_not_limited():
    # No default model: nothing is known of the work, and nothing is refused.
    log = wide_log(200, n=450)
    check_work(wide_log(2_000), outcome=False, propensity=False)
    assert tt.evaluate(log, tt.Constant(0.0), allow_untrusted=True, **OWN).rows == 450


@pytest.mark.parametrize("times", [1.0, 4.0])
def test_as_many_contexts_as_the_sentence_names_are_taken(times):
    both = {"outcome": True, "propensity": True, "times": times}
    with pytest.raises(tt.DataError) as caught:
        check_work(wide_log(1_500, n=3_000), **both)
    most = int(re.search(r"up to (\d+) for", str(caught.value))[1])
    check_work(wide_log(most, n=3_000), **both)
    with pytest.raises(tt.DataError, match=f"{most + 1} contexts"):
        check_work(wide_log(most + 1, n=3_000), **both)


def test_two_hundred_contexts_are_no_reason_to_refuse():
    log = wide_log(200, n=5_000)
    check_work(log, outcome=True, propensity=True)
    check_work(log, outcome=True, propensity=True, times=learning.FITS)


@pytest.mark.parametrize("d", [1, 2])
def test_the_work_counts_the_features_of_the_spline(d):
    # Four times 16nF² + 250F³ of F features; without rows F = (work/1000)^(1/3).
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(50, 7)), rng.normal(size=(50, d))
    features = Spline().on(x, t)(x, t).shape[1]
    assert (outcome_work(0, 7, d) / 1000) ** (1 / 3) == pytest.approx(features)


def test_work_grows_with_rows_and_contexts():
    assert outcome_work(1_000, 20, 1) < outcome_work(2_000, 20, 1) < outcome_work(2_000, 21, 1)
    assert propensity_work(1_000, 20) < propensity_work(2_000, 20) < propensity_work(2_000, 21)


@pytest.mark.parametrize(("times", "most"), [(1.0, 427), (learning.FITS, 250)])
def test_the_numbers_that_the_pages_name(widest, times, most):
    with pytest.raises(tt.DataError, match=f"up to {most} for so many rows"):
        check_work(widest, outcome=True, propensity=True, times=times)
