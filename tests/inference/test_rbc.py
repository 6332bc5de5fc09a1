"""Robust bias-corrected intervals: influences, degrees of freedom, stand-ins, and bias."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from inference.rows import at_distances, in_blocks, in_one_block, some_rows
from titrant import (
    Constant,
    Gaussian,
    InvalidArgument,
    LoggedData,
    SelfNormalized,
    compare,
    evaluate,
)
from titrant.estimators import (
    ESTIMATORS,
    IPW,
    DirectMethod,
    DoublyRobust,
    Question,
    Rows,
    ask,
)
from titrant.estimators.joint import answered
from titrant.inference import Normal, RobustBiasCorrected
from titrant.inference.base import StudentInterval, quantile
from titrant.inference.rbc import corrected_answers, corrected_question, influence, widening
from titrant.kernels import Boundary, Scale, Uniform

EXACT = 1e-12
LOOP = 1e-9  # leaving out each of 60 rows in turn subtracts nearly equal sums
GRID = 1e-4  # a grid of doses in place of an integral: 1/N² times derivatives

H = Scale.of(1.2, 1)
CORRECTED = RobustBiasCorrected(recentered=True)
NEEDS_NO_CDF = [e for e in ESTIMATORS if type(e).__name__ != "Discretized"]


def infer(rows, estimator=None, scale=H, **settings):
    """The inference about one policy around the corrected fit, and the answer it starts from."""
    question = Question(estimator or SelfNormalized(), 0, scale)
    over_rows = in_one_block(rows)
    point = ask([question], over_rows)
    return RobustBiasCorrected(recentered=True, **settings).infer(point, over_rows), point


# ── influence ────────────────────────────────────────────────────────────────────────────────────


def test_influence_of_three_rows():
    # Uniform kernel at h = 1: w = ½/q = 1, 2, 1; y = 1, 2, 6: v = 11/4.
    # Left out in turn: 10/3, 7/2, 5/3; φ/n = v − v₋ᵢ = −7/12, −3/4, 13/12.
    rows = at_distances([0.1, -0.5, 0.9], w=[2.0, 4.0, 2.0], y=[1.0, 2.0, 6.0])
    question = Question(SelfNormalized(kernel=Uniform()), 0, Scale.of(1.0, 1))
    point = ask([question], in_one_block(rows))
    assert point.values[0] == pytest.approx(11 / 4, rel=EXACT)
    phi = influence(question, point.mean(0), 3, rows)
    np.testing.assert_allclose(phi / 3, [-7 / 12, -3 / 4, 13 / 12], rtol=EXACT)


@pytest.mark.parametrize("boundary", [Boundary.LINEAR, Boundary.QUADRATIC], ids=lambda b: b.name)
@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=repr)
def test_influence_is_what_leaving_the_row_out_changes(estimator, boundary):
    # φᵢ = bᵢ − b̄ + n(ratio − ratio without row i): the weighted part left out, HC3.
    rows, n = some_rows(), 60
    question = Question(estimator.with_boundary(boundary), 0, H)
    terms = question.estimator.terms(rows, H)
    b, we, w = terms.T
    point = ask([question], in_one_block(rows))
    expected = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        change = we.sum() / w.sum() - we[others].sum() / w[others].sum()
        expected.append(b[i] - b.mean() + n * change)
    found = influence(question, point.mean(0), n, rows)
    np.testing.assert_allclose(found, expected, rtol=LOOP, atol=LOOP)


@pytest.mark.parametrize(
    "estimator",
    [IPW(), IPW(centered=True), DoublyRobust(self_normalized=False), DirectMethod()],
    ids=repr,
)
def test_without_normalization_influence_is_the_terms_themselves(estimator):
    rows = some_rows()
    question = Question(estimator, 0, H)
    total = estimator.terms(rows, H)[:, :2].sum(axis=1)
    point = ask([question], in_one_block(rows))
    found = influence(question, point.mean(0), 60, rows)
    np.testing.assert_allclose(found, total - total.mean(), rtol=LOOP, atol=LOOP)


def test_one_dominating_row_does_not_make_the_interval_infinite():
    # Leverage 1 − 10⁻⁶ would divide by 10⁻⁶; the floor .05 keeps a factor of at most 20.
    rows = at_distances([0.0, 0.1, 0.2], w=[1e6, 0.5, 0.5], y=[0.0, 1.0, -1.0])
    inference, _ = infer(rows)
    assert 0 < inference.interval(0).se < 1.0


# ── the interval ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", NEEDS_NO_CDF, ids=repr)
def test_center_error_and_degrees_come_from_the_corrected_question(estimator):
    rows = some_rows()
    inference, point = infer(rows, estimator)
    question = corrected_question(point.questions[0], 0.84)
    corrected = ask([question], in_one_block(rows))
    w = question.estimator.weights(question.estimator.terms(rows, question.scale))
    phi = influence(question, corrected.mean(0), 60, rows)
    interval = inference.interval(0)
    assert interval.center == pytest.approx(corrected.values[0], rel=EXACT)
    assert interval.se == pytest.approx(math.sqrt(np.sum(phi**2)) / 60, rel=EXACT)
    degrees = np.sum(w) ** 2 / np.sum(w**2) - 1
    assert interval.degrees == pytest.approx(degrees, rel=EXACT)
    half = stats.t.ppf(0.975, degrees) * interval.se
    assert interval.at(0.95) == pytest.approx((interval.center - half, interval.center + half))
    assert interval.method == "robust bias-corrected t"


def test_only_smoothed_estimators_have_a_bias_to_correct():
    question = Question(DirectMethod(), 0, H)
    assert corrected_question(question, 0.84) is question
    smoothed = corrected_question(Question(SelfNormalized(), 0, H), 0.5)
    assert smoothed.estimator == SelfNormalized(boundary=Boundary.QUADRATIC)
    assert 1 / smoothed.scale.inverse_root[0, 0] == pytest.approx(0.6)


@pytest.mark.parametrize("shrink", [1.0, 0.71])
def test_shrink_is_the_bandwidth_of_the_interval(shrink):
    rows = some_rows()
    inference, _ = infer(rows, shrink=shrink)
    quadratic = SelfNormalized(boundary=Boundary.QUADRATIC)
    question = Question(quadratic, 0, Scale.of(1.2 * shrink, 1))
    expected = ask([question], in_one_block(rows)).values[0]
    assert inference.interval(0).center == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize(
    ("kink", "factor"), [(0.0, 0.84), (0.05, 0.72), (0.1, 0.6), (0.7, 0.6), (1.0, 0.6)]
)
def test_evidence_of_a_kink_narrows_the_bandwidth_of_the_interval(kink, factor):
    question = Question(SelfNormalized(), 0, H, kink)
    corrected = corrected_question(question)
    assert 1 / corrected.scale.inverse_root[0, 0] == pytest.approx(1.2 * factor, rel=EXACT)
    # A user's own factor is never widened by it.
    narrow = corrected_question(question, 0.5)
    assert 1 / narrow.scale.inverse_root[0, 0] == pytest.approx(0.6, rel=EXACT)


@pytest.mark.parametrize("field", ["shrink", "at_kink"])
@pytest.mark.parametrize("bad", [0, -0.84, math.nan, math.inf, True, "0.84"])
def test_shrink_is_a_finite_number_above_zero(field, bad):
    with pytest.raises(InvalidArgument, match=f"The `{field}` of `RobustBiasCorrected` must be"):
        RobustBiasCorrected(**{field: bad})


def test_joint_covariance_is_that_of_the_influences():
    near, far = some_rows(seed=1), some_rows(seed=1)
    far = Rows(
        tau=far.tau + 0.4, t=far.t, y=far.y, center=far.center, q=far.q,
        r_tau=np.cos(far.tau[:, 0] + 0.4), r_logged=far.r_logged,
    )  # fmt: skip
    questions = [Question(e, p, H) for e in (SelfNormalized(), DoublyRobust()) for p in (0, 1)]
    over_rows = in_one_block(near, far)
    inference = CORRECTED.infer(ask(questions, over_rows), over_rows)
    answers = answered(corrected_answers(ask(questions, over_rows)), over_rows)
    phi = np.array(
        [influence(a.question, a.mean, 60, (near, far)[a.question.policy]) for a in answers]
    )
    np.testing.assert_allclose(inference.covariance, phi @ phi.T / 60**2, rtol=EXACT)
    # A difference: √Σ(φ_a − φ_b)²/n and the smaller degrees of freedom.
    contrast = inference.contrast(0, 3)
    assert contrast.se == pytest.approx(math.sqrt(np.sum((phi[0] - phi[3]) ** 2)) / 60, rel=1e-10)
    assert contrast.degrees == min(inference.degrees[0], inference.degrees[3])
    assert contrast.center == inference.centers[0] - inference.centers[3]


@pytest.mark.parametrize("estimator", NEEDS_NO_CDF, ids=repr)
def test_blocks_change_nothing(estimator):
    rows = some_rows()
    question = Question(estimator, 0, H)
    results = []
    for over_rows in (in_one_block(rows), in_blocks(rows)):
        inference = CORRECTED.infer(ask([question], over_rows), over_rows)
        interval = inference.interval(0)
        results.append((interval.center, interval.se, interval.degrees))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-11)


# ── what stands in when the corrected fit is not usable ──────────────────────────────────────────

# The order-four Epanechnikov kernel is K(v)(15 − 35v²)/8: at v = .25 it is .7031·1.6016 = 1.1261,
# at v = .8 it is .27·(−.925) = −.24975. Distances below are in units of .84h, h = 1.
INNER, OUTER = 0.25 * 0.84, 0.8 * 0.84
PLUS, MINUS = 0.703125 * (15 - 35 / 16) / 8, 0.27 * (15 - 22.4) / 8


def opposing(share: float) -> Rows:
    """Two rows near, two rows far whose negative weight is ``share`` of the positive one."""
    far = share * PLUS / -MINUS
    return at_distances([INNER, -INNER, OUTER, -OUTER], w=[1, 1, far, far], y=[1.0, 2.0, 4.0, 9.0])


@pytest.mark.parametrize("share", [0.2, 0.32, 0.34, 0.6, 0.99, 1.01, 2.9, 3.1])
def test_weights_that_cancel_are_not_used(share):
    # |Σw|/Σ|w| = |1 − s|/(1 + s) is ½ at s = 1/3 and s = 3.
    rows = opposing(share)
    inference, point = infer(rows, scale=Scale.of(1.0, 1))
    interval = inference.interval(0)
    if 1 / 3 < share < 3:
        # At h/2 only the near pair counts, alike: (1 + 2)/2.
        assert interval.note == "second-order kernel at h/2"
        assert interval.center == pytest.approx(1.5, rel=EXACT)
        halved = ask([Question(SelfNormalized(), 0, Scale.of(0.5, 1))], in_one_block(rows))
        assert interval.center == pytest.approx(halved.values[0], rel=EXACT)
        assert interval.degrees == pytest.approx(1.0)
        # Left out in turn: 2 and 1, so φ/n = ∓½ and SE = √½.
        assert interval.se == pytest.approx(math.sqrt(0.5), rel=EXACT)
    else:
        assert interval.note is None
        mean = (PLUS * 3 - share * PLUS * 13) / (2 * PLUS * (1 - share))
        assert interval.center == pytest.approx(mean, rel=1e-9)
    # The estimate itself is untouched.
    assert point.values[0] == ask(point.questions, in_one_block(rows)).values[0]


@pytest.mark.parametrize(
    "distances",
    [[0.9, -0.9, 0.95], [0.1, 0.9, -0.9], [0.6, -0.7, 0.75]],
    ids=["none nearer", "one nearer", "all negative and none within h/2"],
)
def test_with_hardly_a_row_nearer_the_estimate_itself_stands_in(distances):
    rows = at_distances(distances, y=[1.0, 5.0, 2.0])
    if distances[0] == 0.6:
        rows = at_distances([*distances, 0.5], y=[1.0, 5.0, 2.0, 3.0])  # and one that opposes
        rows.q[3] = 0.15
    inference, point = infer(rows, scale=Scale.of(1.0, 1))
    interval = inference.interval(0)
    assert interval.note == "second-order kernel at h, its smoothing bias not corrected"
    assert interval.center == point.values[0]
    assert np.isfinite([interval.se, interval.degrees]).all()
    assert interval.se > 0


def test_each_policy_has_its_own_stand_in():
    good, bad = some_rows(4), opposing(0.9)
    questions = [Question(SelfNormalized(), p, Scale.of(1.0, 1)) for p in (0, 1)]
    good = Rows(tau=good.tau * 0, t=np.array([[0.1], [-0.2], [0.3], [0.0]]), y=bad.y,
                center=bad.center, q=good.q)  # fmt: skip
    over_rows = in_one_block(good, bad)
    inference = CORRECTED.infer(ask(questions, over_rows), over_rows)
    assert inference.notes == (None, "second-order kernel at h/2")
    assert inference.contrast(0, 1).note == "second-order kernel at h/2"
    alone = CORRECTED.infer(ask(questions[:1], over_rows), over_rows)
    assert inference.interval(0).at(0.95) == pytest.approx(alone.interval(0).at(0.95), rel=EXACT)


# ── bias ─────────────────────────────────────────────────────────────────────────────────────────


def grid_log(m, *, low=-2.0, high=2.0, n=4_001, bounds=None):
    """Doses on a midpoint grid, uniform density, no noise: sums are integrals."""
    t = low + (np.arange(n) + 0.5) * (high - low) / n
    return LoggedData(np.zeros((n, 1)), t, m(t), np.full(n, 1 / (high - low)), bounds=bounds)


def parabola(t):
    return 3 + 2 * t + 5 * t**2


def corrected(log, policy, estimator, bandwidth):
    """The estimate with its interval around the corrected fit."""
    return evaluate(log, policy, estimator=estimator, bandwidth=bandwidth, interval=CORRECTED)


@pytest.mark.parametrize("h", [0.2, 0.5, 1.0])
def test_the_center_has_no_quadratic_bias(h):
    # m″/2 = 5: v_h = m(τ) + 5·κ₂h² = m(τ) + h², the center m(τ) itself; also with a cubic.
    for m in (parabola, lambda t: parabola(t) - 4 * (t - 0.3) ** 3):
        found = corrected(grid_log(m), Constant(0.3), SelfNormalized(), h)
        assert found.value == pytest.approx(m(0.3) + h**2, abs=GRID)
        assert found.confidence.center == pytest.approx(m(0.3), abs=GRID)


def test_the_bias_that_remains_is_of_order_four():
    # m = t⁴ at 0: κ₄ of the order-four Epanechnikov kernel is −1/21, at .84h.
    centers = [
        corrected(grid_log(lambda t: t**4), Constant(0.0), SelfNormalized(), h).confidence.center
        for h in (0.5, 1.0)
    ]
    np.testing.assert_allclose(centers, [-((0.84 * h) ** 4) / 21 for h in (0.5, 1.0)], rtol=1e-3)


@pytest.mark.parametrize("tau", [0.0, 0.15, 1.0])
def test_the_center_has_no_quadratic_bias_at_a_bound(tau):
    # Exactly at the bound the weights of order four are half negative; a wider kernel than
    # Epanechnikov's keeps them usable.
    log = grid_log(parabola, low=0.0, high=1.0, bounds=(0.0, 1.0))
    estimator = SelfNormalized(kernel=Gaussian())
    found = corrected(log, Constant(tau), estimator, 0.1)
    assert found.confidence.note is None
    assert found.confidence.center == pytest.approx(parabola(tau), abs=GRID)
    assert abs(found.value - parabola(tau)) > 0.01


def test_the_center_has_no_quadratic_bias_in_two_doses():
    side = (np.arange(121) + 0.5) / 121 * 4 - 2
    t = np.stack([g.ravel() for g in np.meshgrid(side, side)], axis=1)
    y = 1 + t[:, 0] + 2 * t[:, 0] ** 2 - t[:, 1] ** 2 + 3 * t[:, 0] * t[:, 1]
    log = LoggedData(np.zeros((len(t), 1)), t, y, np.full(len(t), 1 / 16))
    truth = 1 + 0.2 + 2 * 0.04 - 0.09 + 3 * 0.06
    found = corrected(log, Constant([0.2, 0.3]), SelfNormalized(), (0.8, 1.0))
    assert found.confidence.center == pytest.approx(truth, abs=2e-3)  # 121² points
    # κ₂(2·.64 − 1·1.0) = .056 remains in the estimate.
    assert found.value - truth == pytest.approx(0.056, abs=2e-3)


def test_the_naive_interval_misses_where_the_corrected_one_covers():
    # The curvature is known: v_h is off by h² = .25, many times its standard error.
    log = grid_log(lambda t: parabola(t) + 0.3 * np.sin(1e4 * t))
    truth = parabola(0.3)
    for interval, covers in ((Normal(), False), (CORRECTED, True)):
        found = evaluate(
            log, Constant(0.3), estimator=SelfNormalized(), bandwidth=0.5, interval=interval
        )
        low, high = found.interval()
        assert (low < truth < high) == covers


# ── Student's t ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("degrees", [1.0, 2.5, 10.0, 300.0, math.inf])
def test_quantiles_are_students(degrees):
    for p in (0.5, 0.9, 0.975, 0.999):
        expected = stats.norm.ppf(p) if math.isinf(degrees) else stats.t.ppf(p, degrees)
        assert quantile(p, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_known_answer_of_an_interval():
    # t.975 with one degree of freedom is 12.7062.
    interval = StudentInterval(2.0, 0.5, 1.0, "t")
    assert interval.at(0.95) == pytest.approx((2 - 6.35310, 2 + 6.35310), abs=1e-4)
    assert interval.to_dict() == {
        "method": "t",
        "center": 2.0,
        "se": 0.5,
        "level": 0.95,
        "low": interval.at(0.95)[0],
        "high": interval.at(0.95)[1],
        "note": None,
    }


def test_more_degrees_narrow_the_interval_of_a_contrast():
    # Between a policy with many rows and one with few the smaller number of degrees counts.
    rng = np.random.default_rng(0)
    t = rng.normal(size=3_000)
    log = LoggedData(np.zeros((3_000, 1)), t, t**2 + rng.normal(size=3_000), stats.norm.pdf(t))
    pair = {"many": Constant(0.0), "few": Constant(2.2)}
    result = compare(log, pair, estimator=SelfNormalized(), bandwidth=0.4)
    few, many = (result[name].confidence.degrees for name in ("few", "many"))
    assert few < 0.5 * many
    assert result.contrast("many", "few").confidence.degrees == few


# ── what the interval reaches over ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("gap", "se", "corrected_se", "expected"),
    [
        (0.0, 1.0, 1.25, 1.25),
        # Chance explains a squared gap of 1.25² − 1² = .5625.
        (0.75, 1.0, 1.25, 1.25),
        # Beyond it: 1² + (2² − .5625) = 4.4375.
        (2.0, 1.0, 1.25, math.sqrt(4.4375)),
        # A corrected fit that is surer than the value explains no gap at all.
        (0.5, 1.0, 0.9, math.sqrt(1.25)),
    ],
)
def test_an_interval_reaches_over_what_chance_does_not_explain(gap, se, corrected_se, expected):
    rows = some_rows(60)
    point = ask([Question(SelfNormalized(), 0, H)], in_one_block(rows))
    point = dataclasses.replace(point, values=np.array([1.0]), covariance=np.array([[se**2]]))
    variance = np.array([corrected_se**2])
    factor = widening(point, np.array([1.0 - gap]), variance)
    assert factor[0] * corrected_se == pytest.approx(expected, rel=EXACT)


def test_equal_policies_still_differ_by_nothing():
    rows = some_rows(60)
    questions = [Question(SelfNormalized(), 0, H), Question(SelfNormalized(), 0, H)]
    point = ask(questions, in_one_block(rows))
    contrast = RobustBiasCorrected().infer(point, in_one_block(rows)).contrast(0, 1)
    assert contrast.se == pytest.approx(0.0, abs=1e-7)
