"""Empirical Bernstein intervals: the formula, the ranges, and that they cover."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inference.rows import in_blocks, in_one_block, some_rows
from titrant.estimators import ESTIMATORS, IPW, Question, Rows, SelfNormalized, ask
from titrant.inference import EmpiricalBernstein, Normal
from titrant.inference.bernstein import BernsteinInterval
from titrant.inference.rbc import influence
from titrant.kernels import Scale

EXACT = 1e-12

H = Scale.of(1.2, 1)
NEEDS_NO_CDF = [e for e in ESTIMATORS if type(e).__name__ != "Discretized"]


def test_known_answer():
    # δ = .05: ln(3/δ) = ln 60 = 4.094345; √(2·4.094345) = 2.861589.
    # half = .1·2.861589 + 3·.02·4.094345 = .2861589 + .2456607 = .5318196.
    interval = BernsteinInterval(1.0, 0.1, 0.02)
    assert interval.at(0.95) == pytest.approx((1 - 0.5318196, 1 + 0.5318196), abs=1e-7)
    assert "smoothing bias" in interval.note


def test_three_rows():
    # IPW with K(0) = 3/4, h = 1, q = 1/2: w·y = 3y/2 = 0, 3, 9 for y = 0, 2, 6; mean 4,
    # V = (16 + 1 + 25)/3 = 14, R = 9; at 95 %: √(2·14·ln 60/3) + 3·9·ln 60/3.
    rows = Rows(
        tau=np.zeros((3, 1)), t=np.zeros((3, 1)), y=np.array([0.0, 2.0, 6.0]), q=np.full(3, 0.5)
    )
    over_rows = in_one_block(rows)
    point = ask([Question(IPW(), 0, Scale.of(1.0, 1))], over_rows)
    interval = EmpiricalBernstein().infer(point, over_rows).interval(0)
    half = math.sqrt(28 * math.log(60) / 3) + 9 * math.log(60)
    assert interval.at(0.95) == pytest.approx((4 - half, 4 + half), rel=EXACT)


def two_policies():
    near = some_rows(seed=1)
    far = Rows(
        tau=near.tau + 0.3,
        t=near.t,
        y=near.y,
        center=near.center,
        q=near.q,
        r_tau=np.cos(near.tau[:, 0] + 0.3),
        r_logged=near.r_logged,
    )
    return near, far


def test_ranges_are_those_of_the_influences_and_of_their_differences():
    rows = two_policies()
    questions = [Question(e, p, H) for e in NEEDS_NO_CDF for p in (0, 1)]
    point = ask(questions, in_one_block(*rows))
    phi = [influence(q, point.mean(i), 60, rows[q.policy]) for i, q in enumerate(questions)]
    inference = EmpiricalBernstein().infer(point, in_one_block(*rows))
    for a in range(len(questions)):
        own = inference.interval(a)
        assert own.range_per_row == pytest.approx((max(phi[a]) - min(phi[a])) / 60, rel=EXACT)
        assert own.se == pytest.approx(point.se[a], rel=EXACT)
        for b in range(len(questions)):
            d = phi[a] - phi[b]
            contrast = inference.contrast(a, b)
            assert contrast.range_per_row == pytest.approx((max(d) - min(d)) / 60, abs=1e-14)
            assert contrast.center == point.values[a] - point.values[b]


def test_blocks_change_nothing():
    rows = two_policies()
    questions = [Question(e, p, H) for e in NEEDS_NO_CDF for p in (0, 1)]
    results = []
    for over_rows in (in_one_block(*rows), in_blocks(*rows)):
        inference = EmpiricalBernstein().infer(ask(questions, over_rows), over_rows)
        pairs = [inference.contrast(a, b).at(0.9) for a in range(4) for b in range(4)]
        results.append([inference.interval(i).at(0.9) for i in range(len(questions))] + pairs)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("estimator", NEEDS_NO_CDF, ids=repr)
def test_it_is_wider_than_the_normal_interval(estimator, level):
    over_rows = in_one_block(some_rows())
    point = ask([Question(estimator, 0, H)], over_rows)
    normal = Normal().infer(point, over_rows).interval(0).at(level)
    wide = EmpiricalBernstein().infer(point, over_rows).interval(0).at(level)
    assert wide[0] < normal[0] < normal[1] < wide[1]


@pytest.mark.parametrize("estimator", [IPW(), SelfNormalized()], ids=repr)
def test_it_covers_the_smoothed_value(estimator):
    # T ~ U[−1, 1], Y = T² + rare spikes of 5, τ = 0, h = 1: E w·y over E w by one integral.
    # E[Y] smoothed = κ₂ + 5·.02 = .3. 400 samples of 40 rows; it covers in nearly all.
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        t = rng.uniform(-1, 1, size=(40, 1))
        y = t[:, 0] ** 2 + 5 * (rng.uniform(size=40) < 0.02)
        rows = Rows(tau=np.zeros((40, 1)), t=t, y=y, center=float(y.mean()), q=np.full(40, 0.5))
        over_rows = in_one_block(rows)
        point = ask([Question(estimator, 0, Scale.of(1.0, 1))], over_rows)
        low, high = EmpiricalBernstein().infer(point, over_rows).interval(0).at(0.9)
        covered += low < 0.3 < high
    assert covered >= 0.9 * 400
