"""What is left of confounding: by loops, by hand, by laws, and by chance."""

import math

import numpy as np
import pytest

import titrant as tt
from titrant.evaluation.model_checks import by_column
from titrant.inference.trust.alike import LOOKS, Looks
from titrant.inference.trust.leftover import CELL_ROWS, FEWEST_ROWS, Leftover, biases, leftovers
from titrant.inference.trust.rules import LEFT_RATE, leftover_bias
from titrant.outcome import Stack, ridge_pair

# Sums of some sixty numbers of order 1, in another order.
LOOP = 1e-12


def drawn(n: int = 60, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, 6, n),
        rng.normal(size=(n, 2)),
        rng.normal(size=n),
        rng.uniform(0.5, 2.0, n),
        rng.integers(0, 25, n),
    )


def by_loops(cell, a, e, omega, unit):
    """Return b̂ and its SE: each pair of units of a cell, one after the other."""
    bias = variance = 0.0
    for c in set(cell):
        inside = np.flatnonzero(cell == c)
        units = [inside[unit[inside] == u] for u in set(unit[inside])]
        m, count = len(units), omega[inside].sum()
        if m == 1:
            continue
        weight = [sum(omega[i] * a[i] for i in rows) for rows in units]
        rest = [sum(omega[i] * e[i] for i in rows) for rows in units]
        over = m / (count * (m - 1))
        for i in range(m):
            for j in range(m):
                if i != j:
                    bias += over * weight[i] * rest[j]
                    variance += over**2 * (
                        weight[i] ** 2 * rest[j] ** 2 + weight[i] * rest[i] * weight[j] * rest[j]
                    )
    return bias / omega.sum(), math.sqrt(variance) / omega.sum()


@pytest.mark.parametrize("grouped", [False, True])
def test_by_loops(grouped):
    cell, a, e, omega, unit = drawn()
    bias, se = biases(cell, a, e, omega, unit if grouped else None)
    for k in range(2):
        expected = by_loops(cell, a[:, k], e, omega, unit if grouped else np.arange(len(e)))
        np.testing.assert_allclose((bias[k], se[k]), expected, rtol=LOOP)


def test_three_rows_by_hand():
    # One cell of three rows: products of different rows are 1·(2 + 3) + 0·(1 + 3) − 1·(1 + 2) = 2,
    # over n_c − 1 = 2 and n = 3: b̂ = 1/3. Squares: (1 + 0 + 1)(1 + 4 + 9) − (1 + 0 + 9) = 18, and
    # (1 + 0 − 3)² − (1 + 0 + 9) = −6: SE = √((18 − 6)/4)/3.
    bias, se = biases(
        np.zeros(3, dtype=int), np.array([[1.0], [0.0], [-1.0]]), np.array([1.0, 2, 3]), np.ones(3)
    )
    assert bias[0] == pytest.approx(1 / 3)
    assert se[0] == pytest.approx(math.sqrt(3.0) / 3)


def test_a_constant_added_to_residuals_or_weights_of_mean_zero_changes_no_bias():
    cell, a, e, omega, _ = drawn()
    a -= np.average(a, axis=0, weights=omega)
    ones = np.ones_like(omega)
    a = a - a.mean(axis=0)
    # Σ_c Σ_{i≠j} aᵢ·c/(n_c − 1) = c·Σ_i aᵢ = 0.
    np.testing.assert_allclose(
        biases(cell, a, e + 5.0, ones)[0], biases(cell, a, e, ones)[0], atol=1e-12
    )


def test_units_and_order_do_not_matter():
    rng = np.random.default_rng(1)
    x, a, e = rng.normal(size=(300, 3)), rng.normal(size=(300, 2)), rng.normal(size=300)
    ones, order = np.ones(300), rng.permutation(300)
    found = leftovers(x, a, e, ones, None)
    again = leftovers(np.exp(3 * x[order]), a[order], 10 * e[order], ones, None)
    for one, other in zip(found, again, strict=True):
        assert other.contexts == one.contexts
        assert other.bias == pytest.approx(10 * one.bias)
        assert other.se == pytest.approx(10 * one.se)


def test_cells_hold_about_as_many_rows_each_and_equal_values_together():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.lognormal(size=1200), rng.integers(0, 3, 1200), np.ones(1200)])
    look = Looks(x)
    # The constant makes no cells; one context and two, fine and coarse.
    assert look.varying == [0, 1]
    sizes = CELL_ROWS
    alone = list(look.cells(1, look.varying, sizes))
    pairs = list(look.cells(2, look.varying, sizes))
    assert [at for _, at in alone] == [(0,), (1,)] * 2
    assert [at for _, at in pairs] == [(0, 1)] * 2
    fine = np.bincount(alone[0][0])
    assert fine.max() <= fine[fine > 0].min() + 1
    assert len(set(alone[1][0])) == 3


def test_levels_of_a_text_are_cells_and_rare_ones_are_one():
    rng = np.random.default_rng(2)
    x = np.column_stack([rng.integers(0, 30, 1200), rng.integers(0, 5, 1200)]).astype(float)
    ((pair, _), *_) = Looks(x, frozenset({0, 1})).cells(2, [0, 1], CELL_ROWS)
    # Ten bins of a number: 19 levels of the first text and one for its rare ones, 5 of the other.
    assert len(set(pair)) == 20 * 5
    counts = np.bincount(x[:, 0].astype(int))
    kept = np.argsort(-counts, kind="stable")[:19]
    for level in kept[:3]:
        assert len(set(pair[x[:, 0] == level])) == 5
    rare = ~np.isin(x[:, 0], kept)
    assert len(set(pair[rare])) == 5


def test_the_level_of_a_text_stands_for_its_indicators():
    x = np.array([[1.5, 0, 0, 1], [2.5, 1, 0, 0], [3.5, 0, 1, 0], [4.5, 0, 0, 1]])
    made, names, texts = by_column(x, ["age", "site=B", "site=C", "sex=m"])
    np.testing.assert_array_equal(made, [[1.5, 0, 1], [2.5, 1, 0], [3.5, 2, 0], [4.5, 0, 1]])
    assert (names, texts) == (["age", "site", "sex"], [1, 2])
    same, names, texts = by_column(x, ["a", "b", "c", "d"])
    assert same is x
    assert (names, texts) == (["a", "b", "c", "d"], [])


@pytest.mark.parametrize(("contexts", "among"), [(8, (8, 8, 8)), (40, (40, 28, 14))])
def test_of_many_contexts_those_are_taken_together_that_show_most_alone(contexts, among):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(400, contexts))
    # Two contexts act alone a little and much together.
    both = np.sign(x[:, -1] * x[:, -2]) + 0.3 * (x[:, -1] + x[:, -2])
    a, e = both + rng.normal(size=400), both + rng.normal(size=400)
    (left,) = leftovers(x, a[:, None], e, np.ones(400), None)
    assert left.among == among
    assert {contexts - 2, contexts - 1} <= set(left.contexts)
    assert left.looks <= 2 * (contexts + 2 * LOOKS)


def test_chance_alone_is_rarely_taken_for_a_bias():
    rng = np.random.default_rng(3)
    rate = np.mean(
        [
            leftovers(
                rng.normal(size=(200, 3)),
                np.maximum(rng.normal(size=(200, 1)), 0.0) * 2.5 - 1.0,
                rng.standard_t(4, 200),
                np.ones(200),
                None,
            )[0].p_value
            < LEFT_RATE
            for _ in range(400)
        ]
    )
    # Less than one in a hundred, as its constant says of long tails, and three standard errors.
    assert rate <= 0.008 + 3 * math.sqrt(0.008 * 0.992 / 400)


def test_what_rows_of_a_patient_share_is_no_pattern_of_contexts():
    rng = np.random.default_rng(4)
    patient = np.repeat(np.arange(60), 10)
    x, shared = rng.normal(size=(60, 2))[patient], rng.normal(size=60)[patient]
    a, e = shared + rng.normal(size=600), shared + rng.normal(size=600)
    alone = leftovers(x, a[:, None], e, np.ones(600), None)[0]
    by_patient = leftovers(x, a[:, None], e, np.ones(600), patient)[0]
    assert alone.p_value < 1e-6
    assert by_patient.p_value > LEFT_RATE


def test_few_rows_show_nothing():
    few = FEWEST_ROWS - 1
    assert leftovers(np.ones((few, 1)), np.ones((few, 1)), np.ones(few), np.ones(few), None) == []


def test_a_bias_counts_that_is_clear_and_large():
    clear = Leftover(bias=0.3, se=0.03, contexts=(0, 2), looks=14)
    check = leftover_bias(clear, 0.2, ("age", "sex", "bmi"))
    assert check.verdict.value == "warn"
    assert "`age` and `bmi`" in check.message
    assert leftover_bias(clear, 0.7, ("age", "sex", "bmi")).verdict.value == "ok"
    unclear = Leftover(bias=0.3, se=0.2, contexts=(1,), looks=14)
    assert leftover_bias(unclear, 0.2, ("age", "sex", "bmi")).verdict.value == "ok"


def test_models_that_miss_a_pattern_of_two_contexts_are_told():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (1500, 3))
    quarter = np.sign(x[:, 0]) * np.sign(x[:, 1])
    t = 0.8 * quarter + rng.normal(size=1500)
    log = tt.LoggedData(x, t, t + 1.5 * quarter + 0.7 * rng.normal(size=1500))
    plain = {
        "estimator": tt.DoublyRobust(outcome=Stack(ridge_pair())),
        "propensity": tt.LinearGaussian(),
    }
    told = tt.evaluate(log, tt.Constant(1.0), **plain)
    assert told.diagnostics["leftover_bias"].verdict.value == "warn"
    assert "`x0`" in told.diagnostics["leftover_bias"].message
    # Plain models that are given the pattern leave nothing.
    given = tt.LoggedData(np.column_stack([x, quarter]), t, log.outcome)
    assert "leftover_bias" not in tt.evaluate(given, tt.Constant(1.0), **plain).diagnostics.names
