"""Covariate balance: three rows by hand, the difference of two means, laws."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.inference.trust import balance
from titrant.inference.trust.balance import (
    BinnedContext,
    Bins,
    Contexts,
    balance_sums,
    binned_imbalance,
    binned_sums,
    imbalance,
)
from titrant.scaling import Held

# Sums of a few numbers of order 1 in another order.
EXACT = 1e-12


def found(w: np.ndarray, x: np.ndarray):
    contexts = Contexts.of(x, tuple("abcdefgh"[: x.shape[1]]), Held.of(x))
    return imbalance(balance_sums(w, x, w.mean(), contexts), contexts)


def test_three_rows_by_hand():
    """w = (0, 2, 1), x = (1, 2, 6).

    Weighted mean (4 + 6)/3 = 10/3, plain mean 3: they differ by 1/3. The sd of x is √(14/3).
    z = (w − 1)(x − 3) = (2, −1, 0): Σz = 1 and Σz² = 5, so the difference is 1/√5 of its SE.
    """
    result = found(np.array([0.0, 2.0, 1.0]), np.array([[1.0], [2.0], [6.0]]))
    assert result.in_sd == pytest.approx([(1 / 3) / (14 / 3) ** 0.5], rel=EXACT)
    assert result.in_se == pytest.approx([1 / 5**0.5], rel=EXACT)


def test_it_is_the_weighted_mean_less_the_plain_one():
    rng = np.random.default_rng(0)
    w, x = rng.exponential(size=50) * 3, rng.normal(size=(50, 4))
    expected = np.abs(np.average(x, axis=0, weights=w) - x.mean(axis=0)) / x.std(axis=0)
    assert found(w, x).in_sd == pytest.approx(expected, rel=1e-9)


def test_units_of_context_and_weight_do_not_matter():
    rng = np.random.default_rng(1)
    w, x = rng.exponential(size=50), rng.normal(size=(50, 2))
    a, b = found(w, x), found(7 * w, 40 + 1e-3 * x)
    assert b.in_sd == pytest.approx(a.in_sd, rel=1e-9)
    assert b.in_se == pytest.approx(a.in_se, rel=1e-9)


def test_in_se_is_about_standard_normal_when_weights_know_nothing_of_the_context():
    rng = np.random.default_rng(2)
    z = [found(rng.exponential(size=400), rng.normal(size=(400, 8))).in_se for _ in range(200)]
    # Means of 1,600 squared standard normals: 1 ± 3·√(2/1600).
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=0.11)


def test_a_constant_context_is_in_balance():
    x = np.column_stack([np.full(9, 0.1), np.zeros(9), np.arange(9.0)])
    result = found(np.arange(9.0), x)
    assert result.in_sd[:2].tolist() == [0.0, 0.0]
    assert result.in_se[:2].tolist() == [0.0, 0.0]
    assert result.in_sd[2] > 0
    # Equal weights move nothing.
    assert found(np.ones(9), x).in_sd.tolist() == [0.0, 0.0, 0.0]


# In bins


def binned(w: np.ndarray, we: np.ndarray, x: np.ndarray, blocks: int = 1):
    """Return bins and imbalance, gathered over blocks of rows."""
    bins = Bins.of(x, tuple("abcdefgh"[: x.shape[1]]), Held.of(x))
    parts = np.array_split(np.arange(len(w)), blocks)
    size = int(bins.starts[-1])
    sums = sum(binned_sums(bins.codes(x[i]), size, w[i], we[i]) for i in parts)
    return bins, binned_imbalance(sums, bins, residuals=True)


def test_three_rows_in_bins_by_hand(monkeypatch):
    """w = (0, 2, 1), x = (1, 1, 2), e = (5, 1, 4).

    The share of x = 1 is 2/3 of the rows and 2/3 of the weight: in balance. Its weighted residual
    is 1, that of x = 2 is 4, so leveled 2/3·1 + 1/3·4 = 2, and Σwe/Σw = 6/3 = 2: nothing moves.
    With w = (0, 1, 2) the weighted share of x = 1 is 1/3, off by 1/3 or (1/3)/√(2/9) sds; z = (w −
    1)(1[x = 1] − 2/3) = (−1/3, 0, −2/3), Σz = −1 and Σz² = 5/9. Residuals 1 and 4 again: leveled
    2, against 9/3 = 3.
    """
    monkeypatch.setattr(balance, "FEWEST_ROWS", 1)
    x, e = np.array([[1.0], [1.0], [2.0]]), np.array([5.0, 1.0, 4.0])
    w = np.array([0.0, 2.0, 1.0])
    _, even = binned(w, w * e, x)
    assert even.in_sd == pytest.approx([0.0, 0.0], abs=EXACT)
    assert even.leveled == pytest.approx([0.0], abs=EXACT)
    w = np.array([0.0, 1.0, 2.0])
    bins, off = binned(w, w * e, x)
    assert off.share == pytest.approx([2 / 3, 1 / 3], rel=EXACT)
    assert off.weighted == pytest.approx([1 / 3, 2 / 3], rel=EXACT)
    assert off.in_sd == pytest.approx([(1 / 3) / (2 / 9) ** 0.5] * 2, rel=EXACT)
    assert off.in_se == pytest.approx([1 / (5 / 9) ** 0.5] * 2, rel=EXACT)
    assert off.leveled == pytest.approx([-1.0], rel=EXACT)
    assert bins.place(1) == (0, "'a' = 2")


def some_log(n: int = 400):
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), rng.lognormal(size=n)])
    w = rng.exponential(size=n) * (rng.random(n) < 0.6)
    return w, w * rng.normal(size=n), x


def test_bins_by_loops():
    w, we, x = some_log()
    bins, found = binned(w, we, x)
    n, mean, overall = len(w), w.mean(), we.sum() / w.sum()
    assert [cut.size for cut in bins.cuts] == [6, 4, 6]
    for j, cut in enumerate(bins.cuts):
        leveled = 0.0
        for k in range(cut.size):
            low = -np.inf if k == 0 else cut.edges[k - 1]
            high = np.inf if k == cut.size - 1 else cut.edges[k]
            inside = (x[:, j] > low) & (x[:, j] <= high)
            p = inside.mean()
            z = [(w[i] / mean - 1) * (inside[i] - p) for i in range(n)]
            at = int(bins.starts[j]) + k
            moved = abs(np.average(inside, weights=w) - p)
            assert found.in_sd[at] == pytest.approx(moved / (p * (1 - p)) ** 0.5, rel=1e-9)
            assert found.in_se[at] == pytest.approx(
                abs(sum(z)) / sum(v * v for v in z) ** 0.5, rel=1e-9
            )
            leveled += p * (we[inside].sum() / w[inside].sum() - overall)
        assert found.leveled[j] == pytest.approx(leveled, rel=1e-9)
    assert found.tested == 16


def test_blocks_of_rows_add_up():
    whole, parts = binned(*some_log())[1], binned(*some_log(), blocks=7)[1]
    for name in ("share", "weighted", "in_sd", "in_se", "leveled"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9)


def test_a_bend_that_leaves_the_mean_alone_is_seen_in_bins():
    # Twice the weight where |x| is large: the mean of x stays, its outer bins gain.
    x = np.linspace(-2, 2, 601)[:, None]
    w = np.where(np.abs(x[:, 0]) > 1.397, 2.0, 1.0)
    assert found(w, x).in_sd[0] < 1e-9
    _, seen = binned(w, w * x[:, 0] ** 2, x)
    assert seen.in_sd[[0, 5]].min() > 0.2
    assert seen.in_se.max() > 5
    assert abs(seen.leveled[0]) > 0.2


def test_right_residuals_are_not_moved_by_wrong_weights_nor_wrong_ones_by_right_weights():
    # Double robustness: leveling moves the mean only where both are off.
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 1))
    wrong_w, right_w = np.exp(0.5 * x[:, 0]), rng.exponential(size=20_000)
    wrong_e, right_e = x[:, 0] + rng.normal(size=20_000), rng.normal(size=20_000)
    shift = {
        name: abs(binned(w, w * e, x)[1].leveled[0])
        for name, w, e in (
            ("wrong weights", wrong_w, right_e),
            ("wrong residuals", right_w, wrong_e),
            ("both", wrong_w, wrong_e),
        )
    }
    # Five products of means of some 3,000 rows, each off by about .02.
    assert max(shift["wrong weights"], shift["wrong residuals"]) < 0.02
    assert shift["both"] > 0.3


def test_bins_say_which_rows_they_hold():
    cut = BinnedContext("age", np.array([40.0, 61.5]))
    assert [cut.words(k) for k in range(3)] == [
        "'age' up to 40",
        "'age' from 40 to 61.5",
        "'age' above 61.5",
    ]


def test_rare_levels_and_constant_contexts_are_not_judged():
    x = np.column_stack([np.r_[np.zeros(496), np.ones(4)], np.full(500, 3.0)])
    w = np.where(x[:, 0] > 0, 50.0, 1.0)
    _, seen = binned(w, w, x)
    assert seen.in_sd[[1, 2]].tolist() == [0.0, 0.0]
    assert seen.tested == 1


@pytest.mark.parametrize(("rows", "bins"), [(4_000, 40), (3_900, 6)])
def test_many_values_are_bins_of_their_own_if_each_has_rows(rows, bins):
    x = np.arange(float(rows))[:, None] % 40
    assert Bins.of(x, ("clinic",), Held.of(x)).cuts[0].size == bins


def test_a_log_with_many_equal_values_has_fewer_bins():
    x = np.r_[np.zeros(80), np.arange(1.0, 41.0)][:, None]
    bins = Bins.of(x, ("x",), Held.of(x))
    assert bins.cuts[0].size < 6
    codes = bins.codes(x)
    assert (np.bincount(codes[:, 0], minlength=bins.cuts[0].size) > 0).all()
