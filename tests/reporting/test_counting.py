"""Rows become counts and means: known answers, loops, laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from titrant.reporting import counting
from titrant.reporting.content import LOGGED

# Means of at most a few thousand numbers of size 1, summed in another order.
ROUNDING = 1e-12


def test_doses_are_counted_over_their_common_range():
    counts = counting.dose_counts(
        np.array([0.0, 1.0, 1.0, 4.0]), {"p": np.array([2.0, 2.0, 2.0, 8.0])}
    )
    # 40 bins of width 0.2 from 0 to 8; 8 falls in the last one.
    assert counts.edges[0] == 0.0
    assert counts.edges[-1] == 8.0
    assert counts.counts[LOGGED].sum() == counts.counts["p"].sum() == 4
    assert counts.counts[LOGGED][5] == 2
    assert counts.counts["p"][10] == 3
    assert counts.counts["p"][39] == 1


def test_a_summary_of_five_doses():
    # Sorted 0 1 2 3 10: mean 3.2; quantiles .1, .5, .9 at places .4, 2, 3.6: .4, 2, 7.2.
    # The policy is 1 above the logged dose but in one row, where it is 2 below: change 6/5.
    tau = np.array([10.0, 0.0, 3.0, 1.0, 2.0])
    found = counting.dose_summary("p", "dose", tau, np.array([9.0, -1.0, 2.0, 3.0, 1.0]))
    assert (found.mean, found.low, found.median, found.high) == pytest.approx((3.2, 0.4, 2, 7.2))
    assert found.change == pytest.approx(1.2)


def test_an_overlap_map_counts_each_row_once_where_its_two_doses_are():
    logged, tau = np.array([0.0, 24.0, 5.5, 5.5]), np.array([0.0, 24.0, 10.2, 10.2])
    found = counting.overlap_map("p", "dose", logged, tau, 4.0)
    # 24 cells of width 1 from 0 to 24; the last one holds its upper end.
    assert found.edges.tolist() == list(range(25))
    assert found.counts.sum() == 4
    assert found.counts[0, 0] == found.counts[23, 23] == 1
    assert found.counts[5, 10] == 2
    assert found.within == 0.5  # |5.5 − 10.2| is not below 4
    assert counting.overlap_map("p", "dose", logged, tau, None).within is None


@pytest.mark.parametrize("values", [[0.0, 1.0], [3.0], [1.0, 2.0, 5.0, 7.0, 8.0, 9.0]])
def test_a_context_with_few_values_is_taken_value_by_value(values):
    x = np.repeat(values, 3)
    np.testing.assert_array_equal(counting.parts_of(x, 3), np.repeat(range(len(values)), 3))


def test_a_context_with_many_values_is_cut_into_even_parts():
    part = counting.parts_of(np.random.default_rng(0).permutation(90.0 + np.arange(90)), 3)
    assert np.bincount(part).tolist() == [30, 30, 30]


@given(
    hnp.arrays(np.float64, st.integers(1, 60), elements=st.integers(-9, 9).map(float)),
    st.integers(2, 9),
)
def test_parts_are_intervals_without_gaps_and_none_is_empty(x, parts):
    part = counting.parts_of(x, parts)
    assert set(part) == set(range(part.max() + 1))
    for k in range(part.max()):
        assert x[part == k].max() < x[part == k + 1].min()


def test_a_profile_is_what_a_loop_finds():
    rng = np.random.default_rng(1)
    x, logged, tau = rng.normal(size=(3, 400))
    found = counting.profile("age", "dose", x, logged, {"p": tau})
    part = counting.parts_of(x, counting.PARTS)
    for k in range(counting.PARTS):
        rows = [i for i in range(400) if part[i] == k]
        assert found.rows[k] == len(rows) == 50
        assert found.centers[k] == pytest.approx(np.mean(x[rows]), abs=ROUNDING)
        assert found.logged[k, 1] == pytest.approx(np.mean(logged[rows]), abs=ROUNDING)
        assert found.logged[k, [0, 2]] == pytest.approx(np.quantile(logged[rows], [0.1, 0.9]))
        assert found.means["p"][k] == pytest.approx(np.mean(tau[rows]), abs=ROUNDING)


def test_the_share_explained_is_that_of_an_analysis_of_variance():
    # Groups (0, 2) and (4, 6): means 1 and 5 around 3. Between 4, within 1, total 5.
    assert counting.explained(np.array([0.0, 2, 4, 6]), np.array([0, 0, 1, 1])) == pytest.approx(
        0.8
    )
    assert counting.explained(np.full(4, 3.0), np.array([0, 0, 1, 1])) == 0.0


def test_the_main_contexts_are_those_that_doses_go_with():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.normal(size=(500, 3)), np.ones(500), rng.integers(0, 2, 500)])
    strong, weak = 3.0 * x[:, 1] + x[:, 4], np.full(500, 2.0)
    assert counting.main_contexts(x, [weak, strong], 2) == [1, 4]
    # A constant column tells nothing, and is never among them.
    assert 3 not in counting.main_contexts(x, [strong], 9)
    assert counting.main_contexts(np.empty((500, 0)), [strong], 3) == []
