"""Exact search for one parameter: never above a grid, equal to brute force, with a certificate."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from laws.designs import name
from optimize.lines import EXACT_ESTIMATORS, EXACT_KERNELS, Brute, H, design, negated, reach
from sweeps import long
from titrant.estimators import IPW, DoublyRobust, Rows, SelfNormalized
from titrant.kernels import Boundary, Epanechnikov, Gaussian, Triangular, Uniform
from titrant.optimize import Status, exact_line

BELOW = 1e-9  # how far above a grid's least value rounding may put the exact one
CERTIFICATE = 1e-10  # gap between the sums in the sweep and those taken afresh

FORMS = [
    pytest.param(replace(e, kernel=k), id=f"{name(e)}-{k}")
    for e in EXACT_ESTIMATORS
    for k in EXACT_KERNELS
]


@pytest.mark.parametrize("estimator", FORMS)
@pytest.mark.parametrize("line", ["τ = βx, x of both signs", *long("τ = β", "τ = βx")])
@pytest.mark.parametrize("maximize", [False, True])
def test_never_above_a_dense_grid(estimator, line, maximize):
    x, rows = design(200, 3, signed="signs" in line)
    slope = 1.0 if line == "τ = β" else x
    rows = negated(rows) if maximize else rows
    brute = Brute(estimator, rows, H, slope)
    for floor in (15.0, 2.0):
        solution = exact_line(estimator, rows, H, slope=slope, low=-1.0, high=2.0, ess_floor=floor)
        assert solution.status is Status.CONVERGED
        assert solution.value <= brute.least(-1.0, 2.0, 2001, floor) + BELOW
        assert solution.value == pytest.approx(brute(solution.params)[0][0], abs=1e-12)
        assert brute(solution.params)[1][0] >= floor * (1 - 1e-6)
        assert -1.0 <= solution.params[0] <= 2.0
        assert 0 <= solution.gap <= CERTIFICATE


@pytest.mark.parametrize("estimator", EXACT_ESTIMATORS, ids=name)
def test_never_above_twenty_thousand_points(estimator):
    x, rows = design(100, 8)
    solution = exact_line(estimator, rows, H, slope=x, low=-0.5, high=2.0)
    assert solution.value <= Brute(estimator, rows, H, x).least(-0.5, 2.0, 20_001, 10.0) + BELOW


def refined(brute: Brute, low: float, high: float, floor: float) -> float:
    """The least feasible value in a cell, on grids that shrink about their best point."""
    # A kernel that jumps does so at the ends.
    margin = 1e-9 * (high - low) if isinstance(brute.estimator.kernel, Uniform) else 0.0
    ends, least = (low + margin, high - margin), np.inf
    for _ in range(4):
        grid = np.linspace(*ends, 41)
        value, ess = brute(grid)
        value = np.where(ess >= floor, value, np.inf)
        best = int(np.argmin(value))
        least = min(least, value[best])
        ends = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    return least


@pytest.mark.parametrize("estimator", FORMS)
def test_equal_to_brute_force_over_all_cells(estimator):
    # Every cell between breakpoints on a grid of its own, refined about its best point.
    x, rows = design(12, 1)
    brute = Brute(estimator, rows, 0.6, x)
    found = exact_line(estimator, rows, 0.6, slope=x, low=0.0, high=2.0, ess_floor=3.0)
    t = rows.t[:, 0]
    breaks = np.concatenate([(t - 0.6) / x, t / x, (t + 0.6) / x, [0.0, 2.0]])
    breaks = np.unique(np.clip(breaks, 0.0, 2.0))
    least = min(refined(brute, *ends, floor=3.0) for ends in pairwise(breaks))
    assert found.value == pytest.approx(least, abs=2e-6)
    assert found.value <= least + BELOW


def test_three_rows_worked_out():
    # Doses 0, 1, 2, losses 3, 0, 3, q = 1, h = 1.5, Epanechnikov, constant policy β, n = 3.
    # Around β = 1 all rows have weight ¾(1 − u²)/1.5 = ½(1 − (β − t)²/2.25), so that
    # Σw·y = ½·3·[2 − (β² + (β − 2)²)/2.25] = 1.5·[2 − (2(β − 1)² + 2)/2.25], largest at β = 1:
    # 5/3 · …: 1.5·(2 − 2/2.25) = 5/3, and Σw = ½·[3 − 2/2.25] = 19/18. Self-normalized, 30/19.
    # Where only the middle row has weight, |β − 1| < ½ fails (rows reach 1.5), so the least of
    # Σw·y/Σw is where the outer rows matter least: with δ = (β − 1)², N = 5/3 − 4δ/3 and
    # S = 19/18 − 2δ/3; N/S falls in δ until row 0 leaves at β = 1.5.
    rows = Rows(
        tau=np.zeros((3, 1)),
        t=np.array([[0.0], [1.0], [2.0]]),
        y=np.array([3.0, 0.0, 3.0]),
        q=np.ones(3),
        center=2.0,
    )
    settings = {"low": 0.5, "high": 1.5, "ess_floor": 0.0}
    largest = exact_line(SelfNormalized(), negated(rows), 1.5, **settings)
    assert largest.params[0] == pytest.approx(1.0, abs=1e-7)
    assert largest.value == pytest.approx(-30 / 19)
    least = exact_line(SelfNormalized(), rows, 1.5, **settings)
    assert abs(least.params[0] - 1.0) == pytest.approx(0.5)
    assert least.value == pytest.approx((5 / 3 - 1 / 3) / (19 / 18 - 1 / 6))
    # IPW: mean w·y = N/3, least where the outer rows weigh least, again at the ends.
    least = exact_line(IPW(), rows, 1.5, **settings)
    assert least.value == pytest.approx((5 / 3 - 1 / 3) / 3)


def test_many_rows_agree_with_the_search_over_few_buckets():
    # n = 30,000 goes through bounds over buckets; sorting rows and shifting doses moves them all.
    x, rows = design(30_000, 2)
    solution = exact_line(SelfNormalized(), rows, 0.2, slope=x, **reach(rows, 0.2, x))
    brute = Brute(SelfNormalized(), rows, 0.2, x)
    assert solution.value <= brute.least(0.5, 1.5, 801, 10.0) + BELOW
    assert 0 <= solution.gap <= CERTIFICATE
    assert solution.evaluations < 6_000  # of 60,000 cells
    order = np.argsort(rows.t[:, 0])
    everywhere = reach(rows, 0.2, x)
    again = exact_line(SelfNormalized(), rows.take(order), 0.2, slope=x[order], **everywhere)
    assert again.params == pytest.approx(solution.params, abs=1e-9)
    assert again.value == pytest.approx(solution.value, abs=1e-12)


def test_rows_that_do_not_move_with_the_parameter():
    # slope 0: a row's weight is the same for every β.
    x, rows = design(100, 4)
    slope = np.where(np.arange(100) % 3, x, 0.0)
    for kernel in (Epanechnikov(), Triangular()):
        estimator = IPW(kernel=kernel, centered=True)
        solution = exact_line(estimator, rows, H, slope=slope, low=-1.0, high=3.0)
        brute = Brute(estimator, rows, H, slope)
        assert solution.value <= brute.least(-1.0, 3.0, 4001, 10.0) + BELOW
        assert solution.value == pytest.approx(brute(solution.params)[0][0], abs=1e-12)


@pytest.mark.parametrize("shift", [-20.0, 20.0, 1e4])
def test_a_shift_of_the_outcome_changes_no_policy(shift):
    for estimator in (SelfNormalized(), IPW(centered=True)):
        x, rows = design(200, 7)
        _, shifted = design(200, 7, shift=shift)
        everywhere = reach(rows, H, x)
        plain = exact_line(estimator, rows, H, slope=x, **everywhere)
        moved = exact_line(estimator, shifted, H, slope=x, **everywhere)
        assert moved.params == pytest.approx(plain.params, abs=1e-8)
        assert moved.value == pytest.approx(plain.value + shift, abs=1e-8)


def test_off_the_data_is_never_preferred_but_by_plain_ipw():
    # Positive losses. Off the data plain IPW is 0, less than any loss: it leaves the data. The
    # centered one is the mean loss there, and a self-normalized one must reach its floor.
    x, rows = design(400, 0, shift=5.0)
    wide = {"slope": x, "low": -20.0, "high": 20.0}
    away = exact_line(IPW(), rows, H, **wide, ess_floor=0.0)
    assert away.value < 0.5
    assert abs(away.params[0]) > 3
    for estimator, floor in ((IPW(centered=True), 0.0), (SelfNormalized(), 10.0)):
        solution = exact_line(estimator, rows, H, **wide, ess_floor=floor)
        assert 0.7 < solution.params[0] < 1.3


def test_no_overlap_is_a_status():
    _, rows = design(40, 0)
    solution = exact_line(SelfNormalized(), rows, H, ess_floor=39.9, **reach(rows, H))
    assert solution.status is Status.INFEASIBLE
    assert "Raise the bandwidth" in solution.to_dict()["advice"]
    assert solution.bound is None
    assert solution.gap is None
    assert np.isnan(solution.value)


def test_what_is_not_piecewise_polynomial_is_refused():
    _, rows = design(30, 0)
    bounded = replace(rows, lower=np.full((30, 1), -9.0), upper=np.full((30, 1), 9.0))
    plane = replace(rows, t=np.zeros((30, 2)))
    for estimator, given in (
        (SelfNormalized(kernel=Gaussian()), rows),
        (DoublyRobust(), rows),
        (SelfNormalized(), bounded),
        (SelfNormalized(), plane),
    ):
        with pytest.raises(ValueError, match="The exact search needs `IPW` or `SelfNormalized`"):
            exact_line(estimator, given, H, low=0.0, high=1.0)
    inside = SelfNormalized(boundary=Boundary.NONE)
    exact_line(inside, bounded, H, ess_floor=2.0, **reach(rows, H))
    with pytest.raises(ValueError, match=r"low < high; got 2\.0 to 1\.0"):
        exact_line(SelfNormalized(), rows, H, low=2.0, high=1.0)
    with pytest.raises(ValueError, match="The `h` of `exact_line` must be a finite number > 0"):
        exact_line(SelfNormalized(), rows, 0.0, low=0.0, high=1.0)
