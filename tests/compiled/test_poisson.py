"""Fused Poisson sums: the counts of `poisson_counts`, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from compiled.rows import rows
from titrant.compiled import poisson as loops
from titrant.estimators import DoublyRobust, Question, SelfNormalized
from titrant.inference import bootstrap
from titrant.inference.bootstrap import fused_sums, plain_sums, poisson_counts, resampled_sums
from titrant.kernels import Scale

SAME = 1e-12  # relative: the same sums in another order


@pytest.mark.parametrize("draws", [1, 2, 7, 30])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_sums_are_those_of_the_counts(n, draws):
    rng = np.random.default_rng(n)
    terms, number = rng.normal(size=(n, 2)), rng.integers(0, 10**12, n)
    expected = plain_sums(terms, number, draws, 5)
    actual = fused_sums(terms, number, draws, 5)
    np.testing.assert_allclose(actual, expected, rtol=SAME, atol=SAME)
    np.testing.assert_array_equal(actual[:, 0], expected[:, 0])  # counts are whole numbers


def test_each_draw_of_a_row_is_its_own_count():
    # One row of weight 1: the sums are the counts, rare ones (8 and more times) included.
    draws, number = 40_000, np.array([12])
    counts = poisson_counts(number, draws, 0)[0]
    assert counts.max() >= 7
    sums = loops.poisson_sums(
        bootstrap._keys(number, 0), np.zeros((1, 0)), THRESHOLDS, draws // 2
    ).reshape(-1, 2)[:, ::-1]
    np.testing.assert_array_equal(sums.ravel(), counts)


THRESHOLDS = bootstrap._THRESHOLDS.astype(np.uint32)


def test_every_threshold_counts():
    numbers = np.concatenate([THRESHOLDS, THRESHOLDS - 1]).astype(np.uint32)
    counts = np.empty(len(numbers))
    loops.count(numbers, THRESHOLDS, counts)
    np.testing.assert_array_equal(counts, np.searchsorted(THRESHOLDS, numbers, side="right"))


@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust()], ids=repr)
def test_resampled_sums_of_questions(estimator, monkeypatch):
    asked = [Question(estimator, 0, Scale.of(h, 1)) for h in (0.2, 0.4)]
    plain = resampled_sums(asked, 20, 1, [rows(60)])
    monkeypatch.setattr(bootstrap, "_MANY", 1)
    np.testing.assert_allclose(resampled_sums(asked, 20, 1, [rows(60)]), plain, rtol=SAME)


def test_rows_without_weight_are_never_counted(monkeypatch):
    monkeypatch.setattr(bootstrap, "_MANY", 1)
    counted, loop = [], loops.poisson_sums
    monkeypatch.setattr(loops, "poisson_sums", lambda *a: (counted.append(len(a[0])), loop(*a))[1])
    some, scale = rows(200), Scale.of(0.1, 1)
    resampled_sums([Question(SelfNormalized(), 0, scale)], 20, 1, [some])
    assert counted == [np.count_nonzero(SelfNormalized().weight(some, scale))]
    assert counted[0] < 100
