"""One answer wherever it is computed: by loops or numpy, in memory, in chunks or from files.

Each law runs over the list of a room, at few rows and at more than loops begin with.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from evaluation.logs import KINDS, NEAR, propensity_for
from laws.designs import name
from laws.where import SEVERAL_BLOCKS, everywhere
from learn.examples import SEARCHED, unclipped
from learn.kinds import AFFINE
from outcome.models import LISTED
from sweeps import long
from titrant.bandwidth import SELECTORS
from titrant.data.simulate import Quadratic
from titrant.estimators import SmoothedEstimator
from titrant.inference import INTERVALS
from titrant.kernels import KERNELS
from titrant.optimize import CONSTRAINTS
from titrant.propensity import PROPENSITIES, MultivariateGaussian

CLOSE = 1e-9  # the same sums by other operations, in another order
DERIVED = 1e-7  # bandwidths and intervals that rest on small differences of such sums
SEARCHED_TO = 2e-5  # where two searches for one minimum end, in units of the parameters

FEW = Quadratic().draw(400, seed=3)
MANY = Quadratic().draw(SEVERAL_BLOCKS, seed=4)
each_log = pytest.mark.parametrize("log", [FEW, MANY], ids=["few rows", "many rows"])

FORMS = [*KINDS, *(tt.SelfNormalized(kernel=kernel()) for kernel in KERNELS)]
"""Every estimator with its own kernel, and one with every kernel."""
SMOOTH_FORMS = [form for form in FORMS if isinstance(form, SmoothedEstimator)]


def numbers(estimate):
    return [estimate.value, estimate.se, estimate.ess, *estimate.interval()]


def assert_one_answer(answers, rtol, atol=0.0):
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=rtol, atol=atol)


@each_log
@pytest.mark.parametrize("estimator", FORMS, ids=name)
def test_estimates(estimator, log, tmp_path):
    settings = {"bandwidth": 0.5} if isinstance(estimator, SmoothedEstimator) else {}

    def ask(source):
        return numbers(
            tt.evaluate(
                source,
                NEAR,
                estimator=estimator,
                propensity=propensity_for(estimator),
                interval=tt.Normal(),
                allow_untrusted=True,
                **settings,
            )
        )

    assert_one_answer(everywhere(log, ask, tmp_path), CLOSE)


@each_log
@pytest.mark.parametrize("estimator", SMOOTH_FORMS, ids=name)
def test_bandwidth_paths(estimator, log, tmp_path):
    def ask(source):
        path = tt.bandwidth_path(source, NEAR, estimator=estimator, bandwidths=[0.2, 0.5, 1.1])
        return np.concatenate([path.values, path.se, path.ess, path.count])

    assert_one_answer(everywhere(log, ask, tmp_path), DERIVED)


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_bandwidths(selector, tmp_path):
    def ask(source):
        found = tt.evaluate(
            source, NEAR, estimator=tt.SelfNormalized(), bandwidth=selector, allow_untrusted=True
        )
        return [float(found.bandwidth.h), found.value]

    assert_one_answer(everywhere(FEW, ask, tmp_path), DERIVED)


@pytest.mark.parametrize("interval", INTERVALS, ids=repr)
def test_intervals(interval, tmp_path):
    if isinstance(interval, tt.PoissonBootstrap):
        interval = replace(interval, draws=100)

    def ask(source):
        return tt.evaluate(
            source, NEAR, estimator=tt.SelfNormalized(), interval=interval, bandwidth=0.5
        ).interval()

    assert_one_answer(everywhere(FEW, ask, tmp_path), DERIVED)


@pytest.mark.parametrize(
    "model", [m for m in PROPENSITIES if m is not MultivariateGaussian], ids=lambda m: m.__name__
)
def test_propensities(model, tmp_path):
    log = tt.LoggedData(FEW.context, FEW.treatment, FEW.outcome, names=FEW.names)

    def ask(source):
        asked = {"propensity": model(), "estimator": tt.SelfNormalized(), "bandwidth": 0.5}
        return numbers(tt.evaluate(source, NEAR, allow_untrusted=True, **asked))

    assert_one_answer(everywhere(log, ask, tmp_path), DERIVED)


@pytest.mark.parametrize("model", LISTED.values(), ids=LISTED.keys())
def test_outcome_models(model, tmp_path):
    def ask(source):
        estimator = tt.DoublyRobust(outcome=model, folds=2)
        return numbers(
            tt.evaluate(source, NEAR, estimator=estimator, bandwidth=0.5, allow_untrusted=True)
        )

    assert_one_answer(everywhere(FEW, ask, tmp_path), DERIVED)


# ── searches ─────────────────────────────────────────────────────────────────────────────────────

# Wide enough for one valley: where there are several, rounding may decide between them.
WIDE = {"bandwidth": 0.9, "restarts": 2, "clipped": False}


def learned(source, policy=None, **settings):
    """The doses of the policy that a search finds."""
    procedure = tt.CPO(**{**WIDE, **settings})
    learner = tt.PolicyLearner(policy=policy, procedure=procedure, honest=False).fit(source)
    return unclipped(learner.policy_)(FEW.context)


@pytest.mark.parametrize("log", [FEW, *long(MANY)], ids=["few rows", "many rows"])
@pytest.mark.parametrize("kind", SEARCHED)
def test_searches_by_every_estimator(kind, log, tmp_path):
    def ask(source):
        return learned(source, estimator=SEARCHED[kind])

    assert_one_answer(everywhere(log, ask, tmp_path), SEARCHED_TO, SEARCHED_TO)


@pytest.mark.long
@pytest.mark.parametrize("kind", AFFINE, ids=repr)
def test_searches_in_every_class(kind, tmp_path):
    def ask(source):
        return learned(source, kind, estimator=tt.IPW(centered=True), ridge=0.03)

    assert_one_answer(everywhere(FEW, ask, tmp_path), SEARCHED_TO, SEARCHED_TO)


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_searches_in_every_set(constraint, tmp_path):
    def ask(source):
        # Smooth: at the kinks of a kernel a projected search ends a little here or there.
        smooth = tt.SelfNormalized(kernel=tt.Gaussian())
        return learned(source, estimator=smooth, constraint=constraint)

    assert_one_answer(everywhere(FEW, ask, tmp_path), SEARCHED_TO, SEARCHED_TO)
