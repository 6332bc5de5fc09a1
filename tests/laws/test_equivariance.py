"""What must not change when units, zeros, order or the number of copies do: for every estimator.

Each law runs over the room's list of estimators, so a new one is held to it the moment it exists;
where it has a kernel and a boundary, over all of those too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import CASES, IDS, PAIRS, NormalBins, estimate, name, take, variants
from titrant.estimators import ESTIMATORS, IPW, Discretized, Rows, SelfNormalized
from titrant.kernels import Boundary, Scale

EXACT = 1e-9  # the same sums, rounded elsewhere; weights of both signs cancel a few digits

# Plain inverse weighting moves with the zero of the outcome. That is what it is known for.
MOVES_WITH_ZERO = {IPW(), Discretized(self_normalized=False)}

each_estimator = pytest.mark.parametrize(("estimator", "case"), PAIRS, ids=IDS)
stable = pytest.mark.parametrize(
    ("estimator", "case"),
    [pair for pair in PAIRS if pair[0] not in MOVES_WITH_ZERO],
    ids=[i for pair, i in zip(PAIRS, IDS, strict=True) if pair[0] not in MOVES_WITH_ZERO],
)


def assert_close(actual, expected, what):
    np.testing.assert_allclose(actual, expected, rtol=EXACT, atol=EXACT, err_msg=repr(what))


def affine(rows: Rows, factor: float, shift: float) -> Rows:
    """Outcomes in other units; the model, refitted, predicts in those."""
    return replace(
        rows,
        y=factor * rows.y + shift,
        center=factor * rows.center + shift,
        r_tau=factor * rows.r_tau + shift,
        r_logged=factor * rows.r_logged + shift,
    )


def test_the_list_names_what_it_holds():
    assert len({name(e) for e in ESTIMATORS}) == len(ESTIMATORS)
    assert set(ESTIMATORS) >= MOVES_WITH_ZERO


@stable
def test_shifting_the_outcome_shifts_the_value_and_not_its_error(estimator, case):
    # v(y + c) = v(y) + c, SE(y + c) = SE(y)
    rows = case.rows()
    for variant in variants(estimator):
        value, se = estimate(variant, rows, case.scale)
        shifted = estimate(variant, affine(rows, 1.0, 1000.0), case.scale)
        assert_close(shifted, [value + 1000, se], variant)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_self_normalized_value_does_not_depend_on_the_center(case):
    # Σw(y − c)/Σw + c is Σwy/Σw for every c; so is its standard error.
    rows = case.rows()
    for variant in variants(SelfNormalized()):
        expected = estimate(variant, rows, case.scale)
        for center in (0.0, -50.0):
            moved = estimate(variant, replace(rows, center=center), case.scale)
            assert_close(moved, expected, variant)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_plain_weighting_moves_by_the_mean_weight(case):
    # mean w(y + c) = mean wy + c·mean w, and the mean weight is not 1.
    rows = case.rows()
    value, _ = estimate(IPW(), rows, case.scale)
    w = IPW().weight(rows, case.scale).mean()
    assert abs(w - 1) > 1e-3
    shifted, _ = estimate(IPW(), affine(rows, 1.0, 10.0), case.scale)
    assert shifted == pytest.approx(value + 10 * w, rel=EXACT)


@each_estimator
def test_scaling_the_outcome_scales_the_value_and_its_error(estimator, case):
    # v(ay) = a·v(y), SE(ay) = |a|·SE(y)
    rows = case.rows()
    for variant in variants(estimator):
        value, se = estimate(variant, rows, case.scale)
        for a in (3.0, -2.0):
            scaled = estimate(variant, affine(rows, a, 0.0), case.scale)
            assert_close(scaled, [a * value, abs(a) * se], variant)


def redosed(rows: Rows, factor: float, shift: float) -> Rows:
    """Doses in other units: t → factor·t + shift; densities are per unit of dose."""
    d, bounds = rows.t.shape[1], {}
    if rows.lower is not None:
        ends = factor * rows.lower + shift, factor * rows.upper + shift
        bounds = dict(zip(("lower", "upper"), ends if factor > 0 else ends[::-1], strict=True))
    bins = rows.probability
    return replace(
        rows,
        t=factor * rows.t + shift,
        tau=factor * rows.tau + shift,
        q=rows.q / abs(factor) ** d,
        r_slope=rows.r_slope / factor,
        probability=bins and NormalBins(factor * bins.mean + shift, abs(factor) * bins.sd),
        **bounds,
    )


@each_estimator
@pytest.mark.parametrize("factor", [0.01, 7.0], ids=["smaller", "larger"])
def test_scaling_the_dose_changes_nothing_when_h_scales_too(estimator, case, factor):
    # t → ct, h → ch (H → c²H), q → q/cᵈ: the same value and error, slopes divided by c.
    rows = case.rows()
    power = 2 if np.ndim(case.h) == 2 else 1
    scale = Scale.of(np.asarray(case.h) * factor**power, case.d)
    other = redosed(rows, factor, 0.0)
    for variant in variants(estimator):
        expected = estimate(variant, rows, case.scale)
        assert_close(estimate(variant, other, scale), expected, variant)
        if not isinstance(variant, Discretized):
            slopes = variant.dterms(rows, case.scale)
            assert_close(variant.dterms(other, scale) * factor, slopes, variant)


@each_estimator
def test_moving_the_zero_of_the_dose_changes_nothing(estimator, case):
    rows = case.rows()
    for variant in variants(estimator):
        expected = estimate(variant, rows, case.scale)
        assert_close(estimate(variant, redosed(rows, 1.0, 8.0), case.scale), expected, variant)


@each_estimator
def test_turning_the_dose_around_changes_nothing(estimator, case):
    # t → −t, and with it lower ↔ upper: no estimator prefers a side.
    rows = case.rows()
    for variant in variants(estimator):
        expected = estimate(variant, rows, case.scale)
        assert_close(estimate(variant, redosed(rows, -1.0, 0.0), case.scale), expected, variant)


@each_estimator
def test_swapping_the_doses_changes_nothing(estimator, case):
    # The order of the d doses is a matter of the table.
    rows, turn = case.rows(), np.arange(case.d)[::-1]
    h = np.asarray(case.h)
    h = h if h.ndim == 0 else h[turn] if h.ndim == 1 else h[np.ix_(turn, turn)]
    swapped = {
        field: getattr(rows, field)[:, turn]
        for field in ("t", "tau", "lower", "upper", "r_slope")
        if getattr(rows, field) is not None
    }
    other, scale = replace(rows, **swapped), Scale.of(h, case.d)
    for variant in variants(estimator):
        expected = estimate(variant, rows, case.scale)
        assert_close(estimate(variant, other, scale), expected, variant)


@each_estimator
def test_order_of_the_rows_does_not_matter(estimator, case):
    rows = case.rows()
    shuffled = take(rows, np.random.default_rng(9).permutation(len(rows.y)))
    for variant in variants(estimator):
        expected = estimate(variant, rows, case.scale)
        assert_close(estimate(variant, shuffled, case.scale), expected, variant)


@each_estimator
def test_every_row_twice_divides_the_error_by_root_two(estimator, case):
    # The same value: no row is a degree of freedom that a copy could add.
    rows = case.rows()
    doubled = take(rows, np.tile(np.arange(len(rows.y)), 2))
    for variant in variants(estimator):
        value, se = estimate(variant, rows, case.scale)
        both = estimate(variant, doubled, case.scale)
        assert_close(both, [value, se / np.sqrt(2)], variant)


def test_infinite_bounds_are_no_bounds():
    # ±∞ where a table has no bound: the same weights as without bounds at all.
    for case in CASES:
        rows = replace(case.rows(), lower=None, upper=None)
        everywhere = np.full(rows.t.shape, np.inf)
        endless = replace(rows, lower=-everywhere, upper=everywhere)
        for boundary in Boundary:
            estimator = SelfNormalized(boundary=boundary)
            expected = estimate(estimator, rows, case.scale)
            assert_close(estimate(estimator, endless, case.scale), expected, case)


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_a_bound_on_one_side_alone_counts(side):
    # None on the other side means ∞ there; it must not switch the correction off.
    case = CASES[1]
    rows = replace(case.rows(), lower=np.zeros((40, 1)), upper=np.ones((40, 1)))
    other, infinity = ("upper", np.inf) if side == "lower" else ("lower", -np.inf)
    stated = replace(rows, **{other: np.full((40, 1), infinity)})
    silent = replace(rows, **{other: None})
    for variant in variants(SelfNormalized()):
        expected = estimate(variant, stated, case.scale)
        assert_close(estimate(variant, silent, case.scale), expected, variant)
