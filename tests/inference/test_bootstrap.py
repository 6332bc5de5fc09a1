"""The Poisson bootstrap: the counts, the resampled estimates, and what is made of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from inference.rows import at_distances, in_blocks, in_one_block, some_rows
from titrant import InvalidArgument
from titrant.data.keys import splitmix64
from titrant.estimators import ESTIMATORS, DoublyRobust, Question, Rows, SelfNormalized, ask
from titrant.estimators.joint import answered
from titrant.inference import PoissonBootstrap, bootstrap
from titrant.inference.bootstrap import (
    EDGES,
    REST,
    UNTOLD,
    PercentileInterval,
    poisson_counts,
    row_keys,
)
from titrant.inference.rbc import corrected_answers
from titrant.kernels import Scale

EXACT = 1e-12
SIGMAS = 4  # of the Monte-Carlo error of the quantity compared

H = Scale.of(1.2, 1)
NEEDS_NO_CDF = [e for e in ESTIMATORS if type(e).__name__ != "Discretized"]
PLAIN = PoissonBootstrap(draws=100, bias_corrected=False)

# ── counts ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def counts():
    return poisson_counts(np.arange(2_000), 500, seed=3)


def test_counts_are_poisson(counts):
    # A million counts: mean and variance 1 to 1/1000 and √(μ₄ − 1)/1000 = √3/1000, μ₄ = 1 + 3.
    assert counts.mean() == pytest.approx(1.0, abs=SIGMAS * 1e-3)
    assert counts.var() == pytest.approx(1.0, abs=SIGMAS * 1.8e-3)
    observed = np.bincount(counts.astype(int).ravel(), minlength=9)
    expected = stats.poisson.pmf(np.arange(8), 1) * counts.size
    expected = np.append(expected, stats.poisson.sf(7, 1) * counts.size)
    observed = np.append(observed[:8], observed[8:].sum())
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_the_law_of_a_count_is_poissons():
    # A cell is 2⁻¹⁶; those from the last edge on are shared out by the rest, in units of 2⁻⁶⁴.
    shares = np.diff(EDGES.astype(float), prepend=0.0) / 2**16
    untold = 1.0 - EDGES[-1] / 2**16
    law = np.diff(REST / 2.0**64, prepend=0.0, append=1.0) * untold
    law[: len(shares)] += shares
    expected = stats.poisson.pmf(np.arange(len(law)), 1)
    np.testing.assert_allclose(law, expected, rtol=0.0, atol=1e-16)
    assert len(shares) == UNTOLD
    assert untold < 1 / 13_000


def test_what_sixteen_bits_do_not_tell_is_counted_by_more(monkeypatch):
    # With all cells untold every count comes from the rest, whose mean is 4.5.
    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "EDGES", np.zeros(UNTOLD, dtype=np.uint16))
        more = poisson_counts(np.arange(400), 500, seed=3)
    share = np.diff(REST / 2.0**64, prepend=0.0, append=1.0)
    observed = np.bincount(more.astype(int).ravel(), minlength=len(share))[:9]
    assert stats.chisquare(observed, share[:9] / share[:9].sum() * observed.sum()).pvalue > 1e-3


def test_three_counts_by_hand():
    # The sixteen lowest bits of the first hash are those of draw 0, the next those of draw 1, …
    key = row_keys(np.array([7]), seed=1)
    bits = int(splitmix64(key)[0])
    cells = [bits >> shift & 0xFFFF for shift in (0, 16, 32)]
    expected = [sum(cell >= edge for edge in EDGES.tolist()) for cell in cells]
    assert poisson_counts(np.array([7]), 3, seed=1).tolist() == [expected]


def test_counts_of_rows_and_of_draws_are_uncorrelated(counts):
    # Largest of 499 + 1,999 correlations between neighbors: below 4.5 standard errors.
    z = (counts - 1) / counts.std()
    by_draw = (z[:, 1:] * z[:, :-1]).mean(axis=0) * math.sqrt(len(z))
    by_row = (z[1:] * z[:-1]).mean(axis=1) * math.sqrt(z.shape[1])
    assert np.abs(by_draw).max() < 4.5
    assert np.abs(by_row).max() < 4.5
    # No draw and no row has too many or too few counts in all.
    assert stats.kstest(z.sum(axis=0) / math.sqrt(len(z)), "norm").pvalue > 1e-3
    assert stats.kstest(z.sum(axis=1) / math.sqrt(z.shape[1]), "norm").pvalue > 1e-3


def test_seeds_draw_other_counts(counts):
    other = poisson_counts(np.arange(2_000), 500, seed=4)
    z = (counts - 1) * (other - 1)
    assert z.mean() == pytest.approx(0.0, abs=SIGMAS * 1e-3)


def test_a_count_depends_on_seed_row_and_draw_alone(counts):
    # Not on the block the row comes in, its neighbors, or how many draws there are.
    np.testing.assert_array_equal(poisson_counts(np.arange(70, 90), 500, 3), counts[70:90])
    rows = np.array([1_500, 3, 77])
    np.testing.assert_array_equal(poisson_counts(rows, 500, 3), counts[rows])
    for draws in (1, 2, 101, 102, 499):
        np.testing.assert_array_equal(poisson_counts(np.arange(5), draws, 3), counts[:5, :draws])
    large = poisson_counts(np.array([2**40]), 4, seed=2**70 + 1)
    np.testing.assert_array_equal(large, poisson_counts(np.array([2**40]), 4, seed=1))


# ── resampled estimates ──────────────────────────────────────────────────────────────────────────


def drawn(method, questions, over_rows):
    return method.infer(ask(questions, over_rows), over_rows).draws


def loop_draws(question, rows, counts):
    """The estimate on each resampled log, row by row: terms counted N times, then the value."""
    b, we, w = (
        np.zeros((3, len(rows.y)))
        if question.estimator.size == 1
        else question.estimator.terms(rows, question.scale).T
    )
    if question.estimator.size == 1:
        b = question.estimator.terms(rows, question.scale)[:, 0]
    out = []
    for draw in range(counts.shape[1]):
        total = base = weighted = weight = 0.0
        for i in range(len(rows.y)):
            n = counts[i, draw]
            total += n
            base += n * b[i]
            weighted += n * we[i]
            weight += n * w[i]
        normalized = getattr(question.estimator, "normalized", False)
        out.append(base / total + weighted / (weight if normalized else total))
    return np.array(out)


@pytest.mark.parametrize("bias_corrected", [False, True])
@pytest.mark.parametrize("estimator", NEEDS_NO_CDF, ids=repr)
def test_draws_are_those_of_a_resampling_loop(estimator, bias_corrected):
    rows = some_rows()
    question = Question(estimator, 0, H)
    over_rows = in_one_block(rows)
    method = PoissonBootstrap(draws=100, seed=9, bias_corrected=bias_corrected)
    found = drawn(method, [question], over_rows)[:, 0]
    if bias_corrected:
        point = ask([question], over_rows)
        question = answered(corrected_answers(point), over_rows)[0].question
    expected = loop_draws(question, rows, poisson_counts(np.arange(60), 100, 9))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("estimator", NEEDS_NO_CDF, ids=repr)
def test_blocks_change_nothing(estimator, monkeypatch):
    # Neither those of the log nor those in which counts are drawn.
    rows = some_rows()
    questions = [Question(estimator, 0, H), Question(SelfNormalized(), 0, H)]
    whole = drawn(PLAIN, questions, in_one_block(rows))
    np.testing.assert_allclose(drawn(PLAIN, questions, in_blocks(rows)), whole, rtol=1e-11)
    monkeypatch.setattr(bootstrap, "_BLOCK", 700)
    np.testing.assert_allclose(drawn(PLAIN, questions, in_one_block(rows)), whole, rtol=1e-11)


def test_a_batch_of_a_longer_log_keeps_its_counts():
    rows = some_rows()
    late = Rows(tau=rows.tau, t=rows.t, y=rows.y, center=rows.center, q=rows.q, first_row=1_000)
    question = Question(SelfNormalized(), 0, H)
    expected = loop_draws(question, late, poisson_counts(1_000 + np.arange(60), 100, 0))
    np.testing.assert_allclose(
        drawn(PLAIN, [question], in_one_block(late))[:, 0], expected, rtol=1e-10
    )


def test_rows_without_weight_are_skipped_only_where_they_cannot_matter(monkeypatch):
    rows = some_rows(200)
    narrow = Scale.of(0.3, 1)
    for estimator in (SelfNormalized(), DoublyRobust()):
        question = Question(estimator, 0, narrow)
        found = drawn(PLAIN, [question], in_one_block(rows))
        with monkeypatch.context() as patch:
            patch.setattr(bootstrap, "is_ratio_around_a_constant", lambda estimator: False)  # noqa: ARG005
            np.testing.assert_allclose(drawn(PLAIN, [question], in_one_block(rows)), found)


def test_numerator_and_denominator_are_resampled_together():
    # A frozen denominator would turn a constant outcome of 10 into 10·Σw*/Σw: an interval.
    rows = some_rows()
    tens = Rows(tau=rows.tau, t=rows.t, y=np.full(60, 10.0), center=0.0, q=rows.q)
    draws = drawn(PLAIN, [Question(SelfNormalized(), 0, H)], in_one_block(tens))
    np.testing.assert_allclose(draws, 10.0, rtol=EXACT)


@pytest.mark.parametrize("estimator", NEEDS_NO_CDF, ids=repr)
def test_the_error_is_that_of_the_delta_method(estimator):
    # 2,000 draws know a standard deviation to 1/√4,000 = 1.6 %; 1,000 rows make ratios linear.
    rows = some_rows(1_000, seed=5)
    questions = [Question(estimator, 0, Scale.of(0.8, 1))]
    point = ask(questions, in_one_block(rows))
    method = PoissonBootstrap(draws=2_000, bias_corrected=False)
    interval = method.infer(point, in_one_block(rows)).interval(0)
    assert interval.se == pytest.approx(point.se[0], rel=SIGMAS * 0.016)
    assert interval.center == point.values[0]
    low, high = interval.at(0.95)
    assert high - low == pytest.approx(2 * 1.96 * point.se[0], rel=0.1)


def test_contrasts_are_paired():
    # Both policies see the same resampled logs.
    near = some_rows(1_000, seed=6)
    far = Rows(tau=near.tau + 0.1, t=near.t, y=near.y, center=near.center, q=near.q)
    over_rows = in_one_block(near, far)
    point = ask([Question(SelfNormalized(), p, Scale.of(0.8, 1)) for p in (0, 1)], over_rows)
    inference = PoissonBootstrap(draws=2_000, bias_corrected=False).infer(point, over_rows)
    c = point.covariance
    paired = math.sqrt(c[0, 0] + c[1, 1] - 2 * c[0, 1])
    assert paired < 0.5 * math.sqrt(c[0, 0])
    assert inference.contrast(0, 1).se == pytest.approx(paired, rel=SIGMAS * 0.016)
    apart = np.sort(inference.draws[:, 0] - inference.draws[:, 1])
    np.testing.assert_array_equal(inference.contrast(0, 1).draws, apart)


# ── intervals of draws ───────────────────────────────────────────────────────────────────────────


def test_known_percentiles():
    # 0, 1, …, 100 in any order: 5 % and 95 % are 5 and 95; sd √(101² − 1)/√12.
    draws = np.random.default_rng(0).permutation(101).astype(float)
    interval = PercentileInterval.of(7.0, draws, "m")
    assert interval.at(0.9) == pytest.approx((5.0, 95.0))
    assert interval.at(0.95) == pytest.approx((2.5, 97.5))
    # An estimate beside the middle is held all the same.
    assert PercentileInterval.of(1.0, draws, "m").at(0.9) == pytest.approx((1.0, 95.0))
    assert PercentileInterval.of(99.0, draws, "m").at(0.9) == pytest.approx((5.0, 99.0))
    assert interval.center == 7.0
    assert interval.se == pytest.approx(math.sqrt((101**2 - 1) / 12))
    assert interval.note is None


def test_draws_without_a_row_in_reach_are_left_out_and_counted():
    # Two rows in reach: a draw misses both with probability e⁻², one in seven.
    rows = at_distances([0.0, 0.1, 5.0, 6.0], y=[1.0, 3.0, 50.0, 70.0])
    question = Question(SelfNormalized(), 0, Scale.of(1.0, 1))
    method = PoissonBootstrap(draws=1_000, bias_corrected=False)
    over_rows = in_one_block(rows)
    inference = method.infer(ask([question], over_rows), over_rows)
    empty = int(np.isnan(inference.draws).sum())
    assert empty == pytest.approx(1_000 * math.exp(-2), abs=SIGMAS * 11)
    interval = inference.interval(0)
    assert interval.note == f"{empty} of 1,000 draws had no row in reach"
    assert 1.0 <= interval.at(0.95)[0] < interval.at(0.95)[1] <= 3.0
    noted = replace(inference, notes=("first reason",)).interval(0)
    assert noted.note == f"first reason; {empty} of 1,000 draws had no row in reach"


def test_what_stands_in_is_that_of_the_default_interval():
    # Negative weights of order four that cancel most of the positive ones.
    rows = at_distances([0.2, -0.2, 0.67, -0.67], w=[1, 1, 4.2, 4.2], y=[1.0, 2.0, 4.0, 9.0])
    question = Question(SelfNormalized(), 0, Scale.of(1.0, 1))
    over_rows = in_one_block(rows)
    point = ask([question], over_rows)
    interval = PoissonBootstrap(draws=200).infer(point, over_rows).interval(0)
    assert interval.note.startswith("second-order kernel at h/2")
    low, high = interval.at(0.99)
    # The two rows that h/2 reaches have outcomes 1 and 2; the estimate itself, of four rows, 5.03.
    assert 1.0 <= low <= 2.0
    assert high == point.values[0]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"draws": 99}, "draws"),
        ({"draws": 1e3}, "draws"),
        ({"draws": True}, "draws"),
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_settings_are_checked(settings, name):
    with pytest.raises(InvalidArgument, match=f"The `{name}` of `PoissonBootstrap` must be"):
        PoissonBootstrap(**settings)


def test_the_same_seed_is_the_same_interval():
    rows = some_rows()
    question = Question(SelfNormalized(), 0, H)
    over_rows = in_one_block(rows)
    point = ask([question], over_rows)
    first, again, other = (
        PoissonBootstrap(draws=300, seed=seed).infer(point, over_rows).interval(0).at(0.95)
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
