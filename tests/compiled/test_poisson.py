"""Fused Poisson sums: the counts of `poisson_counts`, bit for bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from compiled.rows import rows
from titrant.compiled import FEWEST, Loop
from titrant.compiled import poisson as loops
from titrant.estimators import DoublyRobust, Question, SelfNormalized
from titrant.inference.bootstrap import (
    EDGES,
    REST,
    UNTOLD,
    fused_sums,
    plain_sums,
    poisson_counts,
    resampled_sums,
    row_keys,
)
from titrant.kernels import Scale

SAME = 1e-12  # relative: the same sums in another order


@pytest.mark.parametrize("draws", [1, 2, 7, 30])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("k", [0, 2, 3])
def test_sums_are_those_of_the_counts(n, draws, k):
    rng = np.random.default_rng(n)
    terms, number = rng.normal(size=(k, n)), rng.integers(0, 10**12, n)
    expected = plain_sums(terms, number, draws, 5)
    actual = fused_sums(terms, number, draws, 5)
    np.testing.assert_allclose(actual, expected, rtol=SAME, atol=SAME)
    np.testing.assert_array_equal(actual[:, 0], expected[:, 0])  # counts are whole numbers


def test_a_constant_term_is_multiplied_by_the_count():
    terms, number = np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 4.0]]), np.arange(3)
    sums = fused_sums(terms, number, 50, 1)
    np.testing.assert_array_equal(sums, plain_sums(terms, number, 50, 1))
    np.testing.assert_array_equal(sums[:, 1], 2.0 * sums[:, 0])


def test_each_draw_of_a_row_is_its_own_count():
    # The sums of one row of weight 1 are its counts. 40,000 of them are several blocks of draws
    # and hold a few that sixteen bits do not tell, of high and of low counts.
    draws, number = 40_000, np.array([12])
    counts = poisson_counts(number, draws, 0)[0]
    key = row_keys(number, 0)
    sums = loops.poisson_sums(key, np.ones((2, 1)), EDGES, REST, draws // 4)
    for column in sums:
        np.testing.assert_array_equal(column, counts)
    assert untold(key[0], draws) > 1


def untold(key, draws):
    """How many of these draws need more than sixteen bits."""
    offsets, bits = (
        np.arange(draws // 4, dtype=np.uint64) * loops.GOLDEN,
        np.empty(draws // 4, "u8"),
    )
    loops.fill(key, offsets, bits)
    return np.count_nonzero(bits.view(np.uint16) >= EDGES[-1])


def test_every_edge_counts():
    cells = np.concatenate([[0], EDGES, EDGES - 1, [2**16 - 1]]).astype(np.uint16)
    counts = np.empty(len(cells), dtype=np.uint16)
    loops.count(cells, EDGES, counts)
    np.testing.assert_array_equal(counts, np.searchsorted(EDGES, cells, side="right"))
    assert UNTOLD == loops.UNTOLD == counts.max()
    for bits in (0, *REST.tolist(), *(REST - np.uint64(1)).tolist(), 2**64 - 1):
        expected = np.searchsorted(REST, np.uint64(bits), side="right")
        assert loops.count_more(np.uint64(bits), REST) == expected


@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=repr)
def test_resampled_sums_of_questions(estimator, monkeypatch):
    asked = [Question(estimator, 0, Scale.of(h, 1)) for h in (0.2, 0.4)]
    plain = resampled_sums(asked, 20, 1, [rows(60)])
    monkeypatch.setitem(FEWEST, Loop.DRAWS, 1)
    np.testing.assert_allclose(resampled_sums(asked, 20, 1, [rows(60)]), plain, rtol=SAME)


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.DRAWS, 1)
    asked = [Question(DoublyRobust(), 0, Scale.of(0.3, 1))]
    parts = [[rows(200, seed=seed)] for seed in range(6)]

    def sums(part):
        return resampled_sums(asked, 100, 1, part)

    alone = list(map(sums, parts))
    for threads in (1, 2):
        with ThreadPoolExecutor(threads) as pool:
            np.testing.assert_array_equal(list(pool.map(sums, parts)), alone)


def test_rows_without_weight_are_never_counted(monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.DRAWS, 1)
    counted, loop = [], loops.poisson_sums
    monkeypatch.setattr(loops, "poisson_sums", lambda *a: (counted.append(len(a[0])), loop(*a))[1])
    some, scale = rows(200), Scale.of(0.1, 1)
    resampled_sums([Question(SelfNormalized(), 0, scale)], 20, 1, [some])
    assert counted == [np.count_nonzero(SelfNormalized().weight(some, scale))]
    assert counted[0] < 100
