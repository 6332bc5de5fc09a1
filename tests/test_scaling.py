"""One absurd value may not make a column say nothing: what is held, what passes as it is."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.doubts import ALONE, PAIRS, two_codes

from titrant.scaling import Code, Held, Standard, codes_of, ends_without_few, robust_sd, spread_of

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=4000)
CLEAN = {
    "normal": NORMAL,
    "log-normal": RNG.lognormal(size=4000),
    "exponential": RNG.exponential(size=4000),
    "two values": RNG.integers(0, 2, 4000) * 1.0,
    "one in 200": (RNG.random(4000) < 0.005) * 1.0,
    "a band": RNG.integers(1, 6, 4000) * 1.0,
    "zeros and amounts": np.where(RNG.random(4000) < 0.7, 0.0, RNG.gamma(3.0, size=4000)),
    "constant": np.full(4000, 0.1),
    "heavy tails": RNG.standard_t(3, 4000),
    "very heavy tails": RNG.standard_t(2, 4000),
    "large accounts": np.append(NORMAL[:3900], 40 * RNG.lognormal(0, 0.6, 100)),
    "few rows": NORMAL[:5],
}


@pytest.mark.parametrize("column", CLEAN.values(), ids=CLEAN)
def test_plausible_columns_pass_to_the_last_bit(column):
    x = column[:, None]
    held = Held.of(x)
    assert held(x) is x
    assert held.columns(x) is x
    assert held.passes(x.min(axis=0), x.max(axis=0))


@pytest.mark.parametrize("column", CLEAN.values(), ids=CLEAN)
@pytest.mark.parametrize("unit", [1.0, -1.0, 1e-30, 1e30])
def test_one_absurd_cell_counts_as_a_usual_value(column, unit):
    x = column[:, None].copy() * unit
    x[3] = 1e60
    seen = Held.of(x)(x)
    if np.unique(np.delete(column, 3)).size < 2:
        return  # beside one value only, any other is a second value
    # Law: the other rows keep their values, and the cell lies among them.
    np.testing.assert_array_equal(np.delete(seen, 3, axis=0), np.delete(x, 3, axis=0))
    others = np.delete(x, 3)
    assert others.min() <= seen[3, 0] <= others.max()


@pytest.mark.parametrize("column", CLEAN.values(), ids=CLEAN)
@pytest.mark.parametrize("unit", [1.0, -1.0, 1e-30, 1e30])
@pytest.mark.parametrize("absurd", [1e60, -1e60])
def test_an_absurd_cell_that_was_not_seen_before_counts_as_a_usual_value(column, unit, absurd):
    # The row may be one of a fold that the model did not learn from.
    x = column[:, None] * unit
    held = Held.of(x)
    if np.unique(column).size < 2:
        return  # beside one value only, any other is a second value
    # Law: the cell counts as the median of the others, and as one that is held.
    new = np.array([[absurd]])
    assert held(new)[0, 0] == held.center[0]
    assert x.min() <= held.center[0] <= x.max()
    assert held.strays(new).all()
    assert not held.passes(new[0], new[0])


@pytest.mark.parametrize("column", CLEAN.values(), ids=CLEAN)
def test_new_values_a_little_beyond_the_others_pass_as_they_are(column):
    middle = np.median(column)
    beyond = middle + 3.0 * (np.array([[column.min()], [column.max()]]) - middle)
    assert Held.of(column[:, None])(beyond) is beyond


def test_a_code_becomes_a_column_of_its_own():
    x = np.column_stack([NORMAL, NORMAL])
    x[:80, 0], x[80:100, 0], x[5, 1] = -9999.0, 9999.0, 1e10
    held = Held.of(x)
    assert set(held.codes) == {Code(0, -9999.0, 80), Code(0, 9999.0, 20)}
    assert held.strayed == ()  # one cell is an accident
    seen = held(x)
    np.testing.assert_array_equal(seen[:100, 0], np.full(100, np.median(NORMAL[100:])))
    assert [int(column.sum()) for column in seen[:, 2:].T] == [code.rows for code in held.codes]


def test_many_different_absurd_values_are_marked_together():
    x = NORMAL[:, None].copy()
    rows = RNG.random(4000) < 0.02
    x[rows, 0] *= 1e6
    held = Held.of(x)
    assert held.codes == ()
    assert held.strayed == (0,)
    np.testing.assert_array_equal(held(x)[:, 1], held.strays(x)[:, 0])
    assert held(x)[:, 0].std() < 2 * NORMAL.std()
    assert not held.passes(x.min(axis=0), x.max(axis=0))


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([1, 2, 3, 4, 5] * 20 + [99] * 4, [99.0]),
        ([0, 1] * 40 + [-9] * 3, [-9.0]),
        ([0, 1] * 40 + [2] * 3, []),  # a third level
        ([0] * 90 + [1] * 5, []),  # of two values none is far from the others
        ([1, 2, 3] * 30 + [99] * 2, []),  # twice may be chance
        ([*range(40), *[-9999] * 60], [-9999.0]),  # in more than half of the rows
        ([*range(100), 999, 999, 999, -999, -999, -999], [-999.0, 999.0]),
        # Usual codes need be 3 robust sds away, others 10: of 18 … 89 an sd is 26.7.
        ([*range(18, 90), *[-99] * 4], [-99.0]),
        ([*range(18, 90), *[180] * 4], []),
        ([*range(18, 90), *[99] * 4], []),
        # −98 is written as often as −99 is; any other number is a code where it alone is negative,
        # farther from the others than nearly all of these are apart: ages 22 … 85.
        ([*range(18, 90), *[-98] * 4], [-98.0]),
        ([*range(18, 90), *[-90] * 4], [-90.0]),
        ([*range(18, 90), *[-50] * 4], []),
        # Side by side, two are judged by what lies beyond both,
        ([*range(18, 90), *[-99] * 4, *[-98] * 4], [-99.0, -98.0]),
        ([*range(18, 90), *[-99] * 4, -98], [-99.0, -98.0]),  # though one of them is rare
        ([*range(18, 90), *[-88] * 4, *[-99] * 4], [-99.0, -88.0]),
        ([*range(18, 90), *[997, 998, 999] * 3], [997.0, 998.0, 999.0]),
        ([1, 2, 3, 4, 5] * 20 + [98, 99] * 4, [98.0, 99.0]),
        # and not if they are no usual codes, or the last of values that go on.
        ([*range(18, 90), *[2000, 2001] * 4], []),
        ([*[92, 93, 94] * 9, *[96, 97, 98, 99] * 20], []),
        # Up to ten, of which some are written more seldom: a listed one, or a whole family, is
        # beside them, and they are closer to each other than to the rest.
        ([*range(18, 90), *[*range(-99, -94)] * 4], [-99.0, -98.0, -97.0, -96.0, -95.0]),
        ([*range(18, 90), *[*range(990, 1000)] * 4], [990.0 + k for k in range(10)]),
        ([*range(18, 90), *[996, 998] * 4], [996.0, 998.0]),
        ([*range(18, 90), *[-99, -96] * 4], [-99.0, -96.0]),
        ([*range(18, 90), *[-66, -77, -88, -99] * 4], [-99.0, -88.0, -77.0, -66.0]),
        ([*range(18, 90), *[9996, 9998, 9999] * 4], [9996.0, 9998.0, 9999.0]),
        ([*range(18, 90), *[985, 999] * 4], [985.0, 999.0]),
        ([*range(18, 90), *[991, 992, 994] * 4], [991.0, 992.0, 994.0]),
        ([*range(18, 90), *[300, 999] * 4], [999.0]),  # 300 is nearer to 89 than to 999
        ([*range(18, 90), *[-9, -8, -7, -6, -99] * 4], [-99.0, -9.0, -8.0, -7.0, -6.0]),
        ([*range(18, 90), *[*range(-8, 0)] * 4], [float(k) for k in range(-8, 0)]),
        # Negative ones, with the rows of many of the steps above them: 5 in each of 30 are too few,
        ([*range(18, 90), *[-2, -1] * 4], [-2.0, -1.0]),
        ([*range(30)] * 2 + [-2, -1] * 20, [-2.0, -1.0]),
        ([*range(30)] * 2 + [-2, -1] * 5, []),
        # 8 and 9 across three steps from a scale of whole numbers.
        ([1, 2, 3, 4, 5] * 20 + [8, 9] * 5, [8.0, 9.0]),
        ([0, 1] * 40 + [9] * 5, [9.0]),
        ([1, 2, 3, 4, 5, 6] * 20 + [8, 9] * 5, []),
        ([1, 2, 3, 4, 5] * 20 + [8, 9] * 2, []),  # a few may be a count's
        ([1, 2, 3, 5] * 20 + [8] * 5, []),  # 1, 2, 3, 5, 8, 13
        ([0, 1, 2, 3] * 20 + [7] * 5, []),  # days of a week
        # A negative one below a scale, if a step lies between, unless they are half of the scale.
        ([*range(11)] * 10 + [-9] * 4, [-9.0]),
        ([*range(11)] * 10 + [-9, -8] * 4, [-9.0, -8.0]),
        ([1, 2, 3, 4, 5] * 20 + [-1] * 4, [-1.0]),
        ([0, 1, 2, 3, 4, 5] * 20 + [-1] * 4, []),
        ([-2, -1, 1, 2] * 20, []),
        ([0, 2, 4, 7, 10, 12] * 20 + [-3] * 4, []),  # grades of a scale with gaps
        # A usual code that alone is negative need not be away at all,
        ([*range(18, 90), *[-9] * 4], [-9.0]),
        ([*range(30), *[-1] * 4], [-1.0]),
        # unless there are few rows of it, few other values, or others below 0.
        ([*range(30)] * 20 + [-1] * 4, []),
        ([0, 1, 2, 3] * 20 + [-1] * 4, []),
        ([*range(-9, 30), *[-9] * 4], []),
    ],
)
def test_what_looks_like_a_code(column, codes):
    assert codes_of(np.array(column, dtype=float)) == codes


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([1, 2, 3, 4, 8] * 20, []),  # doubled
        ([1, 2, 3, 9] * 20, []),
        ([1, 2, 3, 4, 5] * 20 + [8, 9] * 5, [8.0, 9.0]),  # one would hardly choose both
        ([1, 2, 3, 4, 5] * 20 + [99] * 5, [99.0]),
        ([1, 2, 3, 4, 5] * 20 + [-1] * 5, [-1.0]),
    ],
)
def test_what_looks_like_a_code_among_doses_that_were_chosen(column, codes):
    assert codes_of(np.array(column, dtype=float), chosen=True) == codes


def test_the_unit_of_doses_is_that_of_all_that_were_chosen():
    doses = np.array([1.0, 2, 3, 4, 8] * 20)[:, None]
    assert 1.0 / Standard.of_doses(doses).inverse[0] == pytest.approx(doses.std())


@pytest.mark.parametrize("kind", [kind for kind in ALONE if kind != "prices of plans"])
def test_no_value_of_honest_columns_of_many_kinds_is_a_code(kind):
    for seed in range(10):
        column = np.asarray(ALONE[kind](np.random.default_rng(seed), 1000), dtype=float)
        held = Held.of(column[:, None])
        assert held.codes == ()
        # Law: what is neither a code nor absurd passes to the last bit.
        if not held.strays(column[:, None]).any():
            assert held(column[:, None]).tobytes() == column.tobytes()


@pytest.mark.parametrize("base", PAIRS)
def test_codes_side_by_side_become_columns_of_their_own(base):
    rng = np.random.default_rng(3)
    for codes in PAIRS[base]:
        if (base, codes) == ("ages", (98, 99)):
            continue  # nine years beyond the oldest: only their rows tell, and nothing is held
        x = two_codes(rng, base, codes, 1000)[:, None]
        held = Held.of(x)
        assert {code.value for code in held.codes} == set(codes)
        coded = np.isin(x[:, 0], codes)
        seen = held(x)
        # Law: other rows keep their values; rows of a code count as the median of these.
        np.testing.assert_array_equal(seen[~coded, 0], x[~coded, 0])
        assert set(seen[coded, 0]) == {np.median(x[~coded, 0])}
        for code, mark in zip(held.codes, seen[:, 1:].T, strict=True):
            np.testing.assert_array_equal(mark, x[:, 0] == code.value)


def test_held_columns_do_not_depend_on_units_or_on_zero():
    x = np.column_stack([NORMAL, CLEAN["log-normal"]])
    x[7, 0], x[:10, 1] = 1e8, -99.0
    seen = Held.of(x)(x)
    unit, zero = np.array([3.0, 1e-4]), np.array([-40.0, 5.0])
    moved = x * unit + zero
    np.testing.assert_allclose(Held.of(moved)(moved)[:, :2], seen[:, :2] * unit + zero, rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e8, 1e12, 1.7e18])
def test_a_large_offset_is_no_rounding(offset):
    # At 1.7e18, nanoseconds since 1970, neighboring doubles are 256 apart.
    x = offset + (NORMAL[:, None] if offset < 1e15 else 1e6 * NORMAL[:, None])
    expected = 1.0 if offset < 1e15 else 1e6
    assert spread_of(x)[0] == pytest.approx(NORMAL.std() * expected, rel=1e-3)


def test_spread_of_rounding_is_none_and_of_tiny_numbers_some():
    x = np.column_stack([0.1 + 1e-17 * NORMAL, 1e-200 * NORMAL, np.ones(4000)])
    assert spread_of(x)[[0, 2]].tolist() == [0.0, 0.0]
    assert spread_of(x)[1] == pytest.approx(1e-200 * NORMAL.std())


def test_robust_sd():
    # Quartiles of 1 … 5 are 2 and 4; 0 0 0 0 7: no range, and 7 is the one other value.
    assert robust_sd(np.arange(1.0, 6.0)) == pytest.approx(2 / 1.349)
    assert robust_sd(np.array([0.0, 0, 0, 0, 7])) == 7.0
    assert robust_sd(np.ones(3)) == 0.0


# ── a few absurd outcomes ─────────────────────────────────────────────────────────────────────────


def absurd(column):
    low, high = ends_without_few(column)
    return np.flatnonzero((column < low) | (column > high)).tolist()


def test_three_values_and_an_absurd_one():
    # The median of −1, 0, 1, 900 is .5: above it lie .5 and 899.5, below .5 and 1.5. On sides of so
    # few values a gap is a factor of 100, and 899.5² is most of the sum of squares.
    assert ends_without_few(np.array([-1.0, 0.0, 1.0, 900.0])) == (-np.inf, 1.0)
    # 40.5 is less than 100 times .5.
    assert ends_without_few(np.array([-1.0, 0.0, 1.0, 40.0])) == (-np.inf, np.inf)


@pytest.mark.parametrize("column", CLEAN.values(), ids=CLEAN)
def test_of_plausible_outcomes_none_is_absurd(column):
    assert ends_without_few(column) == (-np.inf, np.inf)


@pytest.mark.parametrize("column", CLEAN.values(), ids=CLEAN)
@pytest.mark.parametrize("far", [[1e6], [-1e6], [-9999.0, -9999.0], [1e6, -1e9]], ids=str)
def test_a_few_absurd_outcomes_are_found_among_any(column, far):
    if np.ptp(column) == 0.0 or len(column) < 10:
        pytest.skip("beside one value, or a handful, there is nothing to measure by")
    assert absurd(np.append(column, far)) == [*range(len(column), len(column) + len(far))]


def test_absurd_is_the_same_in_other_units_and_another_order():
    column = np.append(NORMAL, [1e5, -1e7])
    # Law: ends(a + b·y) = a + b·ends(y), the ends change places where b < 0, in any order of rows.
    low, high = ends_without_few(column)
    assert ends_without_few(column[::-1]) == (low, high)
    assert ends_without_few(5.0 - 2.0 * column) == pytest.approx((5 - 2 * high, 5 - 2 * low))


def test_many_far_outcomes_are_a_kind_of_rows():
    column = np.append(NORMAL, np.full(60, 1e6))
    assert ends_without_few(column) == (-np.inf, np.inf)
    # Beyond them, one may still be absurd.
    assert absurd(np.append(column, 1e12)) == [len(column)]


HEAVY = {
    "t": lambda rng, n: rng.standard_t(2.5, n),
    "log-normal": lambda rng, n: rng.lognormal(0.0, 1.5, n),
    "Pareto": lambda rng, n: rng.pareto(2.5, n),
    "costs, mostly 0": lambda rng, n: (rng.random(n) < 0.3) * rng.lognormal(0.0, 1.5, n),
    "counts": lambda rng, n: 1.0 * rng.negative_binomial(0.3, 0.03, n),
    "stays": lambda rng, n: np.where(rng.random(n) < 0.02, 15.0, 1.0) * rng.gamma(2.0, 2.0, n),
}


@pytest.mark.parametrize("law", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("n", [300, 2000])
def test_heavy_tails_are_hardly_ever_absurd(law, n):
    rng = np.random.default_rng(1)
    assert sum(bool(absurd(law(rng, n))) for _ in range(200)) <= 1
