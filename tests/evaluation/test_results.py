"""What an evaluation hands back: one readable line, and plain values that survive JSON."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import FAR, KINDS, KNOWN, NEAR, kind_name, propensity_for, smooth_log
from titrant import (
    Constant,
    DirectMethod,
    DoublyRobust,
    LinearGaussian,
    SelfNormalized,
    compare,
    evaluate,
)
from titrant.data.simulate import Quadratic
from titrant.estimators import SmoothedEstimator
from titrant.evaluation.evaluation import Evaluation
from titrant.inference import INTERVALS, Normal, RobustBiasCorrected
from titrant.policies import StatusQuo

LOG = smooth_log()

each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
each_kind = pytest.mark.parametrize("estimator", KINDS, ids=kind_name)


def survives_json(plain):
    # allow_nan=False refuses the tokens NaN and Infinity, which are not JSON.
    return json.loads(json.dumps(plain, allow_nan=False)) == plain


def run(estimator, interval=None, h=0.5, **settings):
    settings = {"propensity": propensity_for(estimator)} | settings
    return evaluate(LOG, NEAR, estimator=estimator, bandwidth=h, interval=interval, **settings)


@each_interval
@each_kind
def test_estimates_survive_json(estimator, interval):
    found = run(estimator, interval, h=None)
    plain = found.to_dict()
    assert survives_json(plain)
    assert plain["value"] == found.value
    assert plain["se"] == found.se
    assert plain["rows"] == 240
    assert plain["effective_sample_size"] == found.ess
    assert (plain["interval"]["low"], plain["interval"]["high"]) == found.interval(0.95)
    assert plain["diagnostics"]["verdict"] in {"ok", "warn", "refuse"}
    if isinstance(estimator, SmoothedEstimator):
        assert plain["bandwidth"]["h"] == float(found.bandwidth.h)
        assert plain["bandwidth"]["reason"].endswith(".")
    else:
        assert plain["bandwidth"] is None


@each_interval
def test_comparisons_survive_json(interval):
    policies = {"a": NEAR, "b": FAR, "c": Constant(0.4)}
    result = compare(
        LOG,
        policies,
        estimator=SelfNormalized(),
        bandwidth=0.5,
        interval=interval,
        allow_untrusted=True,
    )
    plain = result.to_dict()
    assert survives_json(plain)
    pairs = [(c["a"], c["b"]) for c in plain["contrasts"]]
    assert pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    for c in plain["contrasts"]:
        contrast = result.contrast(c["a"], c["b"])
        assert c["difference"] == contrast.difference
        assert (c["interval"]["low"], c["interval"]["high"]) == contrast.interval()


def test_vector_bandwidths_survive_json():
    log = Quadratic(dimension=2).draw(300, 0)
    for h in (0.8, (0.8, 0.9), ((0.6, 0.1), (0.1, 0.7))):
        found = evaluate(log, Constant([0.3, 0.9]), estimator=SelfNormalized(), bandwidth=h)
        assert survives_json(found.to_dict())
        assert found.to_dict()["bandwidth"]["h"] == np.asarray(h).tolist()
        assert "\n" not in str(found)


def test_estimates_that_are_refused_survive_json_too():
    # One row within h, none within h/2.
    far = Constant(float(LOG.treatment.max()) + 0.45)
    for interval in INTERVALS:
        found = evaluate(
            LOG,
            far,
            estimator=SelfNormalized(),
            bandwidth=0.5,
            interval=interval,
            allow_untrusted=True,
        )
        assert survives_json(found.to_dict())
        assert found.to_dict()["diagnostics"]["verdict"] == "refuse"


@each_kind
def test_one_readable_line(estimator):
    found = run(estimator)
    low, high = found.interval()
    h = "  h 0.5" if isinstance(estimator, SmoothedEstimator) else ""
    verdict = found.diagnostics.verdict.value
    assert str(found) == (
        f"value {found.value:.4g}  95% CI {low:.4g} … {high:.4g}{h}  "
        f"ESS {found.ess:,.0f} of 240  {verdict}"
    )
    assert repr(found) == f"Estimate(Linear: {found})"


def test_a_comparison_is_printed_with_its_differences_unless_they_are_many():
    few = {f"c{k}": Constant(0.1 * k) for k in range(4)}
    found = compare(LOG, few, estimator=SelfNormalized(), bandwidth=0.5)
    assert str(found).splitlines()[4:] == str(found.differences()).splitlines()
    many = compare(LOG, {**few, "c4": Constant(0.4)}, estimator=SelfNormalized(), bandwidth=0.5)
    assert len(str(many).splitlines()) == 5


@each_interval
def test_every_result_is_one_line_to_the_debugger(interval):
    policies = {"a": NEAR, "b": Constant(0.4)}
    result = compare(LOG, policies, estimator=SelfNormalized(), bandwidth=0.5, interval=interval)
    contrast = result.contrast("a", "b")
    for shown in (repr(result), repr(contrast), str(contrast), repr(result["a"].diagnostics)):
        assert "\n" not in shown
        assert len(shown) < 300
    assert f"a {result['a'].value:.4g}" in repr(result)
    low, high = contrast.interval()
    expected = f"a − b: {contrast.difference:.4g}  95% CI {low:.4g} … {high:.4g}"
    assert str(contrast) == expected
    assert repr(contrast) == f"Contrast({expected})"
    lines = str(result).splitlines()
    assert lines == [*(f"{name}  {result[name]}" for name in ("a", "b")), expected]
    assert f"a − b {contrast.difference:.4g} ({low:.4g} … {high:.4g})" in repr(result)


def test_the_policy_is_called_by_its_name():
    def half_dose(X):
        return 0.5 * X[:, 0]

    found = evaluate(LOG, half_dose, estimator=SelfNormalized(), bandwidth=0.5)
    assert found.policy == "half_dose"
    assert evaluate(LOG, NEAR, estimator=SelfNormalized(), bandwidth=0.5).policy == "Linear"


def test_the_result_says_how_it_was_made():
    column = run(SelfNormalized()).method
    assert column["estimator"] == repr(SelfNormalized())
    assert column["propensity"] == "the log's column"
    assert column["outcome_model"] is None
    assert column["floor"] == pytest.approx(0.01 / LOG.treatment.std())
    assert column["floor_share"] == pytest.approx(np.mean(LOG.propensity < column["floor"]))
    fitted = run(SelfNormalized(clip=0.0), propensity=LinearGaussian()).method
    assert fitted["propensity"] == "LinearGaussian()"
    assert (fitted["floor"], fitted["floor_share"]) == (0.0, 0.0)
    direct = run(DirectMethod(outcome=LinearRegression())).method
    assert direct["propensity"] is None
    assert (direct["floor"], direct["floor_share"]) == (None, None)
    assert direct["outcome_model"] == "LinearRegression()"
    policies = {"new": NEAR, "now": StatusQuo()}
    doubly = DoublyRobust(outcome=LinearRegression())
    both = compare(LOG, policies, estimator=doubly, bandwidth=0.5, propensity=KNOWN)
    assert both["new"].method["outcome_model"] == "LinearRegression()"
    assert both["new"].method["propensity"] == "Known(<lambda>)"  # no address: equal in every run
    assert both["now"].method == {
        "estimator": "Observed()",
        "propensity": None,
        "floor": None,
        "floor_share": None,
        "outcome_model": None,
    }


def test_results_are_frozen_and_travel_between_processes():
    found = run(SelfNormalized())
    with pytest.raises(AttributeError):
        found.value = 0.0
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()  # noqa: S301


def test_ess_and_normal_interval_are_their_formulas():
    found = run(SelfNormalized(), Normal())
    u = (NEAR(LOG.context) - LOG.treatment) / 0.5
    w = np.where(np.abs(u) < 1, 1 - u**2, 0.0) / np.maximum(LOG.propensity, found.method["floor"])
    assert found.ess == pytest.approx(w.sum() ** 2 / np.sum(w**2), rel=1e-10)
    # z = 1.6449 at 90 %, 1.95996 at 95 %, 2.5758 at 99 %.
    for level, z in ((0.9, 1.6448536269514722), (0.95, 1.959963984540054), (0.99, 2.5758293035489)):
        half = z * found.se
        assert found.interval(level) == pytest.approx((found.value - half, found.value + half))
    assert math.isinf(found.confidence.degrees)


def test_a_kink_is_asked_about_by_itself():
    # The same bandwidth chosen with and without evidence of a kink: two questions, two intervals,
    # whichever was asked first.
    def evaluation():
        return Evaluation.of(smooth_log(), {"near": NEAR}, SelfNormalized(), None)

    one = evaluation()
    plain = replace(one.bandwidth(0, 0.5), kink=0.0)
    kinked = replace(plain, kink=1.0)

    def interval(asked, h):
        return asked.comparison({0: h}, RobustBiasCorrected())["near"].interval()

    first, second = interval(one, plain), interval(one, kinked)
    assert first == interval(evaluation(), plain)
    assert second == interval(evaluation(), kinked)
    assert first != second
