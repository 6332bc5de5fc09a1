"""Rows in any chunks give the estimate of all rows: what streams and clusters rest on."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from laws.designs import CASES, IDS, PAIRS, ready, take, variants
from titrant.estimators import SelfNormalized
from titrant.moments import Moments

CHUNKS = 1e-12  # relative to the spread of the terms

SPLITS = [[20], [0, 1, 13, 13, 40]]


@pytest.mark.parametrize(("estimator", "case"), PAIRS, ids=IDS)
def test_moments_of_chunks_are_those_of_the_whole(estimator, case):
    rows = case.rows(40)
    for variant in variants(ready(estimator, rows)):
        whole = Moments.of(variant.terms(rows, case.scale))
        size = np.abs(whole.mean) + np.sqrt(np.diagonal(whole.covariance)) + 1
        for cuts in SPLITS:
            parts = [take(rows, index) for index in np.split(np.arange(40), cuts)]
            merged = reduce(add, [Moments.of(variant.terms(p, case.scale)) for p in parts])
            assert merged.n == 40
            assert np.abs((merged.mean - whole.mean) / size).max() < CHUNKS, variant
            difference = (merged.covariance - whole.covariance) / np.outer(size, size)
            assert np.abs(difference).max() < CHUNKS, variant


@pytest.mark.parametrize(("estimator", "case"), PAIRS, ids=IDS)
def test_one_row_at_a_time(estimator, case):
    rows = case.rows(40)
    estimator = ready(estimator, rows)
    whole = estimator.terms(rows, case.scale)
    single = [estimator.terms(take(rows, np.array([i])), case.scale) for i in range(40)]
    np.testing.assert_allclose(np.concatenate(single), whole, rtol=CHUNKS, atol=CHUNKS)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_same_chunks_in_the_same_order_give_the_same_bits(case):
    rows = case.rows(40)
    parts = [take(rows, index) for index in np.split(np.arange(40), 4)]
    estimator = SelfNormalized()
    forward = [Moments.of(estimator.terms(p, case.scale)) for p in parts]
    backward = [Moments.of(estimator.terms(p, case.scale)) for p in reversed(parts)][::-1]
    first, second = reduce(add, forward), reduce(add, backward)
    assert first.mean.tobytes() == second.mean.tobytes()
    assert first.comoment.tobytes() == second.comoment.tobytes()


@pytest.mark.parametrize(("estimator", "case"), PAIRS, ids=IDS)
def test_no_rows_have_no_terms(estimator, case):
    rows = case.rows(40)
    none = take(rows, np.arange(0))
    terms = ready(estimator, rows).terms(none, case.scale)
    assert terms.shape == (0, estimator.size)
    slopes = ready(estimator, rows).dterms(none, case.scale)
    assert slopes.shape == (0, estimator.size, case.d)
