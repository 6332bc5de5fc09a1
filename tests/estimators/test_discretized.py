"""The discretized baseline: where its bins lie, what its floor does, what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import titrant as tt
from laws.designs import CASES, NormalBins, estimate
from titrant.errors import InvalidArgument
from titrant.estimators import Discretized, Rows
from titrant.inference import Verdict
from titrant.kernels import Scale

ANY = Scale.of(1.0, 1)


def test_bins_of_equal_width_lie_over_the_logged_doses():
    doses = np.array([2.0, 12.0, 3.0, 3.5])
    assert Discretized(bins=5).on(doses).edges == (4.0, 6.0, 8.0, 10.0)


def test_bins_of_equal_count():
    doses = np.arange(1.0, 10.0)
    assert Discretized(bins=4, quantiles=True).on(doses).edges == (3.0, 5.0, 7.0)


def test_repeated_quantiles_are_one_edge():
    # 32 doses are a range; 90 of 121 rows are at the least one, so two quartiles are there.
    doses = np.array([1.0] * 90 + [2.0 + k for k in range(31)])
    assert Discretized(bins=4, quantiles=True).on(doses).edges == (1.0, 2.0)


PRICES = np.repeat([0.89, 0.99, 1.09, 1.19, 1.29, 1.39, 1.49, 1.59, 1.79], 20)


@pytest.mark.parametrize("quantiles", [False, True])
@pytest.mark.parametrize("bins", [2, 4, 9, 10, 40])
@pytest.mark.parametrize("levels", [2, 9, 25, 30])
def test_an_edge_is_never_on_one_of_few_levels(levels, bins, quantiles):
    # Law: every bin holds whole levels, at least one; with bins enough each level has its own.
    rng = np.random.default_rng(levels)
    values = np.cumsum(rng.uniform(0.1, 1.0, levels))
    doses = rng.permutation(np.concatenate([values, rng.choice(values, 5 * levels)]))
    laid = Discretized(bins=bins, quantiles=quantiles).on(doses)
    assert not np.isin(laid.edges, values).any()
    reached = np.unique(laid.bin_of(values))
    assert len(reached) == len(laid.edges) + 1
    assert len(reached) == levels if bins >= levels else len(reached) <= bins


def test_edges_of_list_prices_lie_midway():
    laid = Discretized().on(PRICES)
    np.testing.assert_allclose(laid.edges, [0.94, 1.04, 1.14, 1.24, 1.34, 1.44, 1.54, 1.69])
    assert laid.name_of(laid.bin_of(np.array([1.19]))[0]) == "(1.14, 1.24]"
    assert [laid.name_of(i) for i in (0, 8)] == ["up to 0.94", "above 1.69"]


def price_log(prices=PRICES, seed=0):
    """Each price sells in its own way, so that a value tells at which price it was found."""
    rng = np.random.default_rng(seed)
    t = rng.permutation(prices)
    return tt.LoggedData(rng.normal(size=(len(t), 1)), t, 100 * t)


@pytest.mark.parametrize("price", np.unique(PRICES).tolist())
def test_a_list_price_is_valued_by_its_own_rows(price):
    found = tt.evaluate(
        price_log(),
        tt.Constant(price),
        estimator=tt.Discretized(),
        propensity=tt.LinearGaussian(),
        allow_untrusted=True,
    )
    assert found.value == pytest.approx(100 * price)
    check = found.diagnostics["dose_bin"]
    assert check.verdict is Verdict.OK
    assert f"dose {price:g} is valued by" in check.message
    assert f"logged at {price:g}." in check.message


def test_a_price_that_was_never_listed_is_warned_about_with_its_bin():
    log = price_log()
    asked = {"estimator": tt.Discretized(), "propensity": tt.LinearGaussian()}
    found = tt.evaluate(log, tt.Constant(1.21), **asked, allow_untrusted=True)
    check = found.diagnostics["dose_bin"]
    assert found.value == pytest.approx(119.0)
    assert (check.verdict, check.value) == (Verdict.WARN, 1.0)
    assert "bin (1.14, 1.24], logged at 1.19: in 100 % of the rows" in check.message
    # A rule of several doses: the fullest bins are named, and only the rows off the list count.
    rule = tt.evaluate(
        log, lambda X: np.where(X[:, 0] > 0, 1.19, 1.5), **asked, allow_untrusted=True
    )
    share = float(np.mean(log.context[:, 0] <= 0))
    assert rule.diagnostics["dose_bin"].value == pytest.approx(share)
    assert "(1.14, 1.24] (" in rule.diagnostics["dose_bin"].message


def test_a_bin_of_a_range_of_doses_is_named():
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 10, 400)
    log = tt.LoggedData(rng.normal(size=(400, 1)), t, t)
    found = tt.evaluate(
        log,
        tt.Constant(2.5),
        estimator=tt.Discretized(edges=(2.0, 3.0, 8.0)),
        propensity=tt.LinearGaussian(),
        allow_untrusted=True,
    )
    check = found.diagnostics["dose_bin"]
    assert check.verdict is Verdict.OK
    assert check.message.startswith("The policy's dose 2.5 is valued by the rows of the bin (2, 3]")


def test_a_short_log_has_no_levels():
    # Thirty rows have at most thirty doses, however they were drawn.
    doses = np.linspace(0.0, 29.0, 30)
    np.testing.assert_allclose(Discretized(bins=2).on(doses).edges, [14.5])


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
