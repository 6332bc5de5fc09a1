"""Two-bandwidth, path fit, SLOPE, leave-one-out, subsampled, rule of thumb, fixed: by naive means.

Each oracle is the formula of the specification over plain loops or least squares of numpy.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import naive
from bandwidth.problems import logged, problem
from titrant.bandwidth import (
    DEFAULT_FACTORS,
    AveragedBiasPath,
    Fixed,
    LeaveOneOut,
    PathFit,
    PlugIn,
    RuleOfThumb,
    Slope,
    Subsampled,
    TwoBandwidth,
    as_selector,
    leave_one_out,
    path_of,
)
from titrant.bandwidth.base import best_factor
from titrant.bandwidth.leave_one_out import sample, subproblem
from titrant.bandwidth.path import usable
from titrant.bandwidth.path_fits import last_in_agreement, parabola_slope
from titrant.errors import InvalidArgument
from titrant.estimators import IPW, DoublyRobust, SelfNormalized

NAIVE = 1e-9  # the same sums in another order

each_estimator = pytest.mark.parametrize(
    "estimator", [SelfNormalized(), DoublyRobust(), IPW()], ids=repr
)
each_dimension = pytest.mark.parametrize("d", [1, 2])


def influence(estimator, rows, g):
    """The estimate at g·sd(T) and the influence of each row on it, over an Epanechnikov kernel."""
    h = g * rows.t.std(axis=0)
    u = (rows.t - rows.tau) / h
    w = np.where(np.abs(u) <= 1, 0.75 * (1 - u**2), 0).prod(axis=1) / (np.prod(h) * rows.q)
    if isinstance(estimator, IPW):
        z = w * rows.y
        return z.mean(), z - z.mean()
    if isinstance(estimator, SelfNormalized):
        b, e = np.zeros_like(rows.y), rows.y
    else:
        b, e = rows.r_tau, rows.y - rows.r_logged
    correction = (w * e).sum() / w.sum()
    return b.mean() + correction, b - b.mean() + w * (e - correction) / w.mean()


# ── bias against variance ────────────────────────────────────────────────────────────────────────


@each_dimension
def test_the_best_factor_minimizes_squared_bias_plus_variance(d):
    g = best_factor(0.3, 0.02, d)
    around = np.linspace(0.9, 1.1, 2001) * g
    assert around[np.argmin(0.3 * around**4 + 0.02 / around**d)] == pytest.approx(g, rel=1e-4)


def test_the_best_factor_by_hand():
    # B² = 2, V = 256: g⁵ = 256/8 = 32, g = 2. Two doses: g⁶ = 2·256/8 = 64, g = 2.
    assert best_factor(2.0, 256.0, 1) == pytest.approx(2.0, rel=1e-14)
    assert best_factor(2.0, 256.0, 2) == pytest.approx(2.0, rel=1e-14)
    assert best_factor(0.0, 1.0, 1) == math.inf
    assert best_factor(0.0, 0.0, 1) == math.inf


# ── two bandwidths ───────────────────────────────────────────────────────────────────────────────


def two_bandwidth(estimator, rows, ess_floor=15):
    """h/sd(T) of the specification: two rounds, each from the estimates at b and b/2."""
    n, d = rows.t.shape
    task = problem(estimator, rows)
    path = path_of(task)
    rule = 2.34 * n ** (-1 / (d + 4))
    enough = (path.ess >= ess_floor) & (path.count >= 8)
    low = path.factors[enough].min()
    b = 1.26 * rule
    for _ in range(2):
        b = max(b, 2 * low)
        v, phi = influence(estimator, rows, b)
        v_half, phi_half = influence(estimator, rows, b / 2)
        slope = (v - v_half) / (b**2 - b**2 / 4)
        slope_variance = ((phi - phi_half) ** 2).sum() / n**2 / (b**2 - b**2 / 4) ** 2
        se2 = (phi**2).sum() / n**2
        variance = n * b**d * se2
        h = (d * variance / (4 * n * (slope**2 + slope_variance))) ** (1 / (d + 4))
        h = min(max(h, low), 1.6 * rule)
        b = 1.6 * h
    return h


@each_estimator
@each_dimension
@pytest.mark.parametrize(("n", "seed"), [(240, 0), (240, 1), (3000, 2)])
def test_two_bandwidths_by_the_formula(estimator, d, n, seed):
    rows = logged(n, d, seed=seed)
    task = problem(estimator, rows)
    h = TwoBandwidth().select(task).h
    np.testing.assert_allclose(h, two_bandwidth(estimator, rows) * task.spread, rtol=NAIVE)


def test_half_of_the_pilot_has_the_effective_sample_size_asked_for():
    rows = logged(240)
    task = problem(SelfNormalized(), rows)
    expected = two_bandwidth(SelfNormalized(), rows, ess_floor=90) * task.spread
    np.testing.assert_allclose(TwoBandwidth(ess_floor=90).select(task).h, expected, rtol=NAIVE)


def test_two_bandwidths_cannot_exceed_the_cap():
    rows = logged(400)
    flat = replace(rows, y=np.random.default_rng(3).normal(size=400), center=0.0)
    choice = TwoBandwidth(ess_floor=40.0).select(problem(SelfNormalized(), flat))
    cap = 1.6 * 2.34 * rows.t.std() * 400**-0.2
    assert choice.h <= cap * (1 + 1e-12)


def test_a_larger_ess_floor_raises_the_smallest_choice():
    rows = logged(3000)
    steep = replace(rows, y=1000 * (rows.t - rows.tau)[:, 0] ** 2)
    choice = TwoBandwidth(ess_floor=400.0).select(problem(SelfNormalized(), steep))
    assert choice.flag == "the smallest usable bandwidth"
    assert path_of(problem(SelfNormalized(), steep), choice.h / rows.t.std(axis=0)).ess[0] >= 400


# ── path fit ─────────────────────────────────────────────────────────────────────────────────────


def test_a_parabola_by_hand():
    # v = 1, 4, 13 at g² = 0, 1, 4 lie on 1 + 3g² whatever the weights; with v = 1, 1, 2 and equal
    # weights, g² − 5/3 = (−5, −2, 7)/3 and b = (7/3·2 − 7/3)/(78/9) = 7/26.
    g = np.array([0.0, 1.0, 2.0])
    for s2 in (np.ones(3), np.array([0.1, 5.0, 2.0])):
        assert parabola_slope(g, np.array([1.0, 4.0, 13.0]), s2) == pytest.approx(3.0, rel=1e-14)
    found = parabola_slope(g, np.array([1.0, 1.0, 2.0]), np.full(3, 7.0))
    assert found == pytest.approx(7 / 26, rel=1e-14)


@each_estimator
@each_dimension
@pytest.mark.parametrize("seed", range(3))
def test_path_fit_by_least_squares(estimator, d, seed):
    rows = logged(300, d, seed=seed)
    n, task = len(rows.y), problem(estimator, rows)
    path = path_of(task)
    g = DEFAULT_FACTORS[(path.ess >= 12) & (path.count >= 8) & (DEFAULT_FACTORS <= 1.2)]
    pairs = [influence(estimator, rows, gj) for gj in g]
    v = np.array([value for value, _ in pairs])
    se = np.array([math.sqrt((phi**2).sum()) / n for _, phi in pairs])
    design = np.column_stack([np.ones_like(g), g**2])
    (_, slope), *_ = np.linalg.lstsq(design / se[:, None], v / se, rcond=None)
    best = np.argmin((slope * g**2) ** 2 + se**2)
    choice = PathFit().select(task)
    np.testing.assert_allclose(choice.h, g[best] * task.spread, rtol=1e-12)
    assert choice.bias == pytest.approx(slope * g[best] ** 2, rel=1e-8)
    assert choice.se == pytest.approx(se[best], rel=NAIVE)


# ── SLOPE ────────────────────────────────────────────────────────────────────────────────────────


def test_agreement_by_hand():
    # [0, 4], [2, 5], [3, 3.5] meet in [3, 3.5]; [3.6, 9] meets each neighbor but not all; the
    # last one would meet them again and comes too late.
    centers, half = np.array([2.0, 3.5, 3.25, 6.3, 3.25]), np.array([2.0, 1.5, 0.25, 2.7, 0.1])
    assert last_in_agreement(centers, half) == 2
    assert last_in_agreement(centers[:1], half[:1]) == 0
    assert last_in_agreement(np.zeros(4), np.zeros(4)) == 3


@each_estimator
@pytest.mark.parametrize("seed", range(3))
def test_slope_by_a_search_for_a_common_point(estimator, seed):
    rows = logged(600, seed=seed)
    n, task = len(rows.y), problem(estimator, rows)
    path = path_of(task)
    g = DEFAULT_FACTORS[(path.ess >= 12) & (path.count >= 8) & (DEFAULT_FACTORS <= 2)]
    best = None
    intervals = []
    for gj in g:
        value, phi = influence(estimator, rows, gj)
        se = math.sqrt((phi**2).sum()) / n
        intervals.append((value - 2 * se, value + 2 * se))
        # If intervals on a line have a common point, then one of their left ends is one.
        if not any(all(lo <= left <= hi for lo, hi in intervals) for left, _ in intervals):
            break
        best = gj
    assert Slope().select(task).h == pytest.approx(best * task.spread[0], rel=1e-12)


# ── leave-one-out ────────────────────────────────────────────────────────────────────────────────


@each_estimator
@pytest.mark.parametrize(("d", "bounded"), [(1, False), (1, True), (2, False)])
def test_leave_one_out_by_loops(estimator, d, bounded):
    n = 36
    rows = logged(n, d, bounded=bounded)
    e = rows.y - rows.r_logged if isinstance(estimator, DoublyRobust) else rows.y
    task = problem(estimator, rows)
    # The oracle knows no policy outside the bounds: take rows whose shift stays inside.
    u = rows.t - rows.tau
    stays = (u > -0.05).all(axis=1) & (u < 0.5).all(axis=1) if bounded else u[:, 0] > -1
    points = np.flatnonzero(stays)[:4]
    factors = [0.9, 1.7]
    found = leave_one_out.prediction_errors(
        estimator, rows, points, [task.scale(g) for g in factors]
    )
    for g, error in zip(factors, found, strict=True):
        squares = importance = 0.0
        for i in points:
            top = bottom = 0.0
            for j in range(n):
                if j == i:
                    continue
                w = naive.weight(
                    "Epanechnikov",
                    1,
                    (g * rows.t.std(axis=0)).tolist(),
                    tau=(rows.tau[j] + u[i]).tolist(),
                    t=rows.t[j].tolist(),
                    q=rows.q[j],
                    lower=rows.lower[j].tolist() if bounded else None,
                    upper=rows.upper[j].tolist() if bounded else None,
                )
                top, bottom = top + w * e[j], bottom + w
            squares += (e[i] - top / bottom) ** 2 / rows.q[i]
            importance += 1 / rows.q[i]
        assert error == pytest.approx(squares / importance, rel=1e-8)


def test_leave_one_out_takes_the_least_error():
    rows = logged(200)
    task = problem(SelfNormalized(), rows)
    path = path_of(task)
    factors = path.factors[usable(path)]
    near = np.flatnonzero(np.abs(rows.t - rows.tau)[:, 0] <= task.spread[0])
    errors = leave_one_out.prediction_errors(
        SelfNormalized(), rows, near, [task.scale(g) for g in factors]
    )
    choice = LeaveOneOut().select(task)
    assert choice.h == pytest.approx(factors[np.argmin(errors)] * task.spread[0], rel=1e-12)


def test_leave_one_out_in_blocks_is_the_same(monkeypatch):
    rows = logged(100)
    task = problem(SelfNormalized(), rows)
    arguments = SelfNormalized(), rows, np.arange(0, 100, 3), [task.scale(0.8)]
    whole = leave_one_out.prediction_errors(*arguments)
    monkeypatch.setattr(leave_one_out, "_CELLS", 250)  # two points at a time
    np.testing.assert_allclose(leave_one_out.prediction_errors(*arguments), whole, rtol=1e-14)


def test_a_row_without_neighbors_rules_a_bandwidth_out():
    rows = logged(100)
    u = (rows.t - rows.tau)[:, 0]
    lonely = np.array([np.argmax(u)])  # the outermost row
    task = problem(SelfNormalized(), rows)
    gap = np.diff(np.sort(u))[-1] / task.spread[0]
    scales = [task.scale(gap * 0.99), task.scale(gap * 1.5)]
    errors = leave_one_out.prediction_errors(SelfNormalized(), rows, lonely, scales)
    assert errors[0] == math.inf
    assert np.isfinite(errors[1])


# ── subsampled ───────────────────────────────────────────────────────────────────────────────────


@each_dimension
def test_a_subsample_chooses_and_the_rate_rescales(d):
    rows = logged(3000, d)
    task = problem(DoublyRobust(), rows)
    part = rows.take(sample(3000, 400, 4))
    spread = rows.t.std(axis=0)
    small = AveragedBiasPath().select(replace(problem(DoublyRobust(), part), spread=spread))
    choice = Subsampled(AveragedBiasPath(), rows=400, seed=4).select(task)
    ratio = (400 / 3000) ** (1 / (d + 4))
    np.testing.assert_allclose(choice.h, small.h * ratio, rtol=1e-12)
    assert choice.bias == pytest.approx(small.bias * ratio**2)
    assert choice.se == pytest.approx(small.se * ratio**2)
    assert choice.selector == "Subsampled(AveragedBiasPath)"
    assert "400 of 3,000 rows" in choice.reason


def test_few_rows_are_not_sampled():
    task = problem(SelfNormalized(), logged(200))
    plain = PlugIn().select(task)
    assert Subsampled(PlugIn(), rows=200).select(task).to_dict() == plain.to_dict()


def test_another_seed_draws_other_rows():
    first, second = (sample(100, 10, seed) for seed in (0, 1))
    assert first.tolist() != second.tolist()
    assert len(set(first.tolist())) == 10
    assert first.tolist() == sorted(first.tolist())
    assert sample(5, 10, 0).tolist() == [0, 1, 2, 3, 4]


def test_a_part_of_a_problem_is_the_problem_of_those_rows():
    rows = logged(50, 2, bounded=True)
    part = subproblem(problem(DoublyRobust(), rows), 20, 7)
    index = sample(50, 20, 7)
    assert part.n == 20
    np.testing.assert_array_equal(part.spread, rows.t.std(axis=0))
    found = part.rows()
    for field in ("tau", "t", "y", "x", "q", "lower", "upper", "r_tau", "r_logged"):
        np.testing.assert_array_equal(getattr(found, field), getattr(rows, field)[index])
    assert (found.center, found.floor) == (rows.center, rows.floor)
    assert part.over_rows(lambda r: r.y.sum()) == pytest.approx(rows.y[index].sum())


# ── the rule of thumb, and the user's own ────────────────────────────────────────────────────────


def test_the_rule_of_thumb():
    task = problem(SelfNormalized(), logged(243))  # 243^(−1/5) = 1/3
    choice = RuleOfThumb(constant=1.5).select(task)
    assert choice.h == pytest.approx(0.5 * task.spread[0], rel=1e-12)
    assert choice.se == pytest.approx(path_of(task, np.array([0.5])).se[0], rel=NAIVE)
    plane = problem(SelfNormalized(), logged(729, 2))  # 729^(−1/6) = 1/3
    np.testing.assert_allclose(RuleOfThumb().select(plane).h, plane.spread / 3, rtol=1e-12)


def test_a_number_is_a_selector():
    task = problem(SelfNormalized(), logged(d=2))
    assert as_selector(0.4) == Fixed(0.4)
    assert as_selector(PlugIn()) == PlugIn()
    for h in (0.4, [0.4, 0.7], [[0.5, 0.1], [0.1, 0.9]]):
        choice = as_selector(h).select(task)
        np.testing.assert_array_equal(choice.h, h)
        assert choice.reason == "The bandwidth was given."
    with pytest.raises(InvalidArgument, match="2 numbers, one per dose"):
        Fixed([0.1, 0.2, 0.3]).select(task)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TwoBandwidth(ess_floor=0), "`ess_floor` of `TwoBandwidth`"),
        (lambda: PathFit(widest=-1), "`widest` of `PathFit`"),
        (lambda: Slope(width=math.nan), "`width` of `Slope`"),
        (lambda: LeaveOneOut(window=0), "`window` of `LeaveOneOut`"),
        (lambda: LeaveOneOut(points=2.5), "`points` of `LeaveOneOut`"),
        (lambda: RuleOfThumb(constant=0), "`constant` of `RuleOfThumb`"),
        (lambda: Subsampled(0.3), "`selector` of `Subsampled` must be a selector such as"),
        (lambda: Subsampled(rows=0), "`rows` of `Subsampled`"),
    ],
)
def test_settings_are_checked(make, sentence):
    with pytest.raises(InvalidArgument, match=sentence):
        make()
