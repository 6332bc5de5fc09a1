"""The discretized baseline: where its bins lie, what its floor does, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from laws.designs import CASES, NormalBins, estimate
from titrant.errors import InvalidArgument
from titrant.estimators import Discretized, Rows
from titrant.kernels import Scale

ANY = Scale.of(1.0, 1)


def test_bins_of_equal_width_lie_over_the_logged_doses():
    doses = np.array([2.0, 12.0, 3.0, 3.5])
    assert Discretized(bins=5).on(doses).edges == (4.0, 6.0, 8.0, 10.0)


def test_bins_of_equal_count():
    doses = np.arange(1.0, 10.0)
    assert Discretized(bins=4, quantiles=True).on(doses).edges == (3.0, 5.0, 7.0)


def test_repeated_quantiles_are_one_edge():
    doses = np.array([1.0] * 90 + [2.0] * 10)
    assert Discretized(bins=4, quantiles=True).on(doses).edges == (1.0,)


def test_given_edges_stay():
    estimator = Discretized(edges=(1.0, 2.0))
    assert estimator.on(np.array([50.0, 60.0])) is estimator


def test_everything_in_one_bin_is_the_mean_outcome():
    # Edges beyond all doses: P(bin) = 1, weights 1: the policy is not looked at.
    rows = CASES[0].rows()
    probability = NormalBins(np.full(40, 0.5), 1e-3)
    given = replace(rows, probability=probability)
    for self_normalized in (True, False):
        estimator = Discretized(edges=(-9.0, 9.0), self_normalized=self_normalized)
        value, se = estimate(estimator, given, ANY)
        assert value == pytest.approx(rows.y.mean())
        assert se == pytest.approx(stats.sem(rows.y, ddof=0))


def test_narrow_bins_approach_the_uniform_kernel():
    # A bin centered at τ of width 2h has P ≈ 2h·f: the weight of the uniform kernel.
    t = np.linspace(-0.9, 0.9, 19)[:, None]
    h, density = 0.05, stats.norm(0.1).pdf(0.1)
    rows = Rows(
        tau=np.full_like(t, 0.1), t=t, y=np.ones(19), probability=NormalBins(np.full(19, 0.1))
    )
    w = Discretized(edges=(0.1 - h, 0.1 + h)).weight(rows, ANY)
    np.testing.assert_allclose(w, 0.5 * (np.abs(t[:, 0] - 0.1) <= h) / (h * density), rtol=1e-3)


def test_the_floor_is_on_the_density_of_a_bin():
    # Bins (0, 2] and (2, 4]: P = .1, .9, floor .15 a unit of dose → .3, .9.
    rows = Rows(
        tau=np.array([[1.0], [3.0]]),
        t=np.array([[1.5], [3.5]]),
        y=np.ones(2),
        probability=lambda low, high: np.where(high > 2, 0.9, 0.1),  # noqa: ARG005
        floor=0.15,
    )
    w = Discretized(edges=(0.0, 2.0, 4.0)).weight(rows, ANY)
    np.testing.assert_allclose(w, [1 / 0.3, 1 / 0.9])
    unfloored = Discretized(edges=(0.0, 2.0, 4.0)).weight(replace(rows, floor=0.0), ANY)
    np.testing.assert_allclose(unfloored, [10, 1 / 0.9])


def test_an_impossible_bin_gives_no_infinite_weight():
    rows = Rows(
        tau=np.array([[1.0], [3.0]]),
        t=np.array([[1.0], [3.0]]),
        y=np.ones(2),
        probability=lambda low, high: np.where(high > 2, 1.0, 0.0),  # noqa: ARG005
    )
    assert Discretized(edges=(2.0,)).weight(rows, ANY).tolist() == [0, 1]


@pytest.mark.parametrize(
    "lacking",
    [
        (Discretized(), {}),
        (Discretized(edges=(0.5,)), {"probability": None}),
        (Discretized(edges=(0.5,)), {"t": np.zeros((40, 2)), "tau": np.zeros((40, 2))}),
    ],
    ids=["edges", "probability", "one treatment"],
)
def test_says_what_it_needs(lacking):
    estimator, fields = lacking
    rows = replace(CASES[0].rows(), **fields)
    with pytest.raises(InvalidArgument, match="needs bin edges, one treatment and a propensity"):
        estimator.terms(rows, ANY)


@pytest.mark.parametrize("bins", [0, 1, -3, 2.5, True, None])
def test_bins_are_a_whole_number(bins):
    with pytest.raises(InvalidArgument, match="The `bins` of `Discretized` must be a whole number"):
        Discretized(bins=bins)


@pytest.mark.parametrize(
    "edges",
    [(1.0, 1.0), (2.0, 1.0), (0.0, np.nan), (0.0, np.inf), "ab", ((1.0,), (2.0,))],
    ids=repr,
)
def test_edges_are_increasing_numbers(edges):
    with pytest.raises(InvalidArgument, match="The `edges` of `Discretized` must be"):
        Discretized(edges=edges)
