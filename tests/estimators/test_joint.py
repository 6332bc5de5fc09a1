"""Several questions at once: the same answers as one by one, and how they vary together."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from laws.designs import CASES, at, estimate, ready, take
from titrant.estimators import ESTIMATORS, IPW, DirectMethod, Question, SelfNormalized, ask
from titrant.estimators.joint import Tally, joint_estimates, statistics_of
from titrant.kernels import Scale
from titrant.moments import Moments

EXACT = 1e-10  # the same moments, beside other columns

CASE = CASES[0]
ROWS = CASE.rows(60)
OTHER = at(ROWS, np.clip(ROWS.tau + 0.1, 0, 1))


def questions():
    """Every estimator on two policies, at two bandwidths."""
    return [
        Question(ready(estimator, ROWS), policy, Scale.of(h, 1))
        for estimator in ESTIMATORS
        for policy in (0, 1)
        for h in (0.4, 0.9)
    ]


def in_one_pass(statistic):
    return statistic([ROWS, OTHER])


def influence(question):
    """Each row's part in the estimate's error, g·(terms − mean) (n,): its variance is that of v."""
    rows = [ROWS, OTHER][question.policy]
    terms = question.estimator.terms(rows, question.scale)
    mean = terms.mean(axis=0)
    return (terms - mean) @ question.estimator.gradient(mean)


def test_answers_are_those_of_each_question_alone():
    joint = ask(questions(), in_one_pass)
    for i, question in enumerate(questions()):
        rows = [ROWS, OTHER][question.policy]
        expected = estimate(question.estimator, rows, question.scale)
        np.testing.assert_allclose([joint.values[i], joint.se[i]], expected, rtol=EXACT)
        terms = question.estimator.terms(rows, question.scale)
        np.testing.assert_allclose(joint.mean(i), terms.mean(axis=0), rtol=EXACT)


def test_covariance_is_that_of_the_influences():
    joint = ask(questions(), in_one_pass)
    parts = np.stack([influence(q) for q in questions()])
    expected = parts @ parts.T / 60**2
    np.testing.assert_allclose(joint.covariance, expected, rtol=1e-8, atol=1e-12)


def test_known_answer_of_a_paired_difference():
    # Direct method: r̂ = 1, 5, 6 and 2, 5, 8: differences 1, 0, 2 with mean 1, variance 2/3;
    # the error of their mean is √(2/3)/√3 = √2/3, far below that of independent samples.
    a = take(ROWS, np.arange(3))
    rows = [at(a, a.tau), at(a, a.tau)]
    object.__setattr__(rows[0], "r_tau", np.array([1.0, 5, 6]))
    object.__setattr__(rows[1], "r_tau", np.array([2.0, 5, 8]))
    asked = [Question(DirectMethod(), policy, CASE.scale) for policy in (0, 1)]
    joint = ask(asked, lambda statistic: statistic(rows))
    np.testing.assert_allclose(joint.values, [4, 5])
    c = joint.covariance
    assert c[0, 0] + c[1, 1] - 2 * c[0, 1] == pytest.approx(2 / 9)
    assert c[0, 0] + c[1, 1] > 2


def test_a_policy_does_not_differ_from_itself():
    twice = [Question(SelfNormalized(), 0, CASE.scale)] * 2
    joint = ask(twice, in_one_pass)
    c = joint.covariance
    assert joint.values[0] == joint.values[1]
    assert c[0, 0] + c[1, 1] - 2 * c[0, 1] == pytest.approx(0, abs=1e-15)


def test_blocks_add_up():
    whole = ask(questions(), in_one_pass)

    def in_blocks(statistic):
        blocks = np.split(np.arange(60), [7, 30, 31])
        return reduce(add, [statistic([take(ROWS, b), take(OTHER, b)]) for b in blocks])

    chunked = ask(questions(), in_blocks)
    np.testing.assert_allclose(chunked.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(chunked.covariance, whole.covariance, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(chunked.tally.total, whole.tally.total, rtol=1e-12)


def test_weights_are_tallied():
    joint = ask(questions(), in_one_pass)
    for i, question in enumerate(questions()):
        rows = [ROWS, OTHER][question.policy]
        terms = question.estimator.terms(rows, question.scale)
        w = question.estimator.weights(terms)
        assert joint.tally.total[i] == pytest.approx(w.sum())
        assert joint.tally.count[i] == np.count_nonzero(w)
    sn = next(i for i, q in enumerate(questions()) if q.estimator == SelfNormalized())
    expected = SelfNormalized().weight(ROWS, Scale.of(0.4, 1)).sum()
    assert joint.tally.total[sn] == pytest.approx(expected)


@pytest.mark.parametrize("h", [1e-9, 0.05, 5.0], ids=["none in reach", "some", "all"])
def test_rows_without_weight_count_by_their_baseline(h):
    # Moments and tally of rows taken apart are those of all terms of all rows.
    both = [Question(q.estimator, q.policy, Scale.of(h, 1)) for q in questions() if q.weighted]
    plain = [q for q in both if q.estimator == SelfNormalized()]
    for asked in (both, plain):  # b of each row, and one that all rows share
        found = statistics_of(asked, [ROWS, OTHER])
        z = [q.terms([ROWS, OTHER][q.policy]) for q in asked]
        w = np.stack([q.weights(own) for q, own in zip(asked, z, strict=True)], axis=1)
        moments, tally = Moments.of(np.hstack(z)), Tally.of(w)
        assert (found.moments.n, found.tally.n) == (60, 60)
        np.testing.assert_allclose(found.moments.mean, moments.mean, rtol=EXACT, atol=1e-14)
        np.testing.assert_allclose(found.moments.comoment, moments.comoment, EXACT, atol=1e-10)
        for name in ("total", "absolute", "squares", "count", "largest"):
            np.testing.assert_allclose(getattr(found.tally, name), getattr(tally, name), EXACT)


def test_without_overlap_there_is_no_value():
    far = at(ROWS, ROWS.tau + 100)
    for estimator in (IPW(), SelfNormalized()):
        asked = [Question(estimator, 0, CASE.scale), Question(DirectMethod(), 0, CASE.scale)]
        joint = joint_estimates(asked, statistics_of(asked, [far]))
        assert np.isnan(joint.values[0])
        assert np.isfinite(joint.values[1])
        assert joint.tally.count[0] == 0
