"""Classes beyond lines: curves, products, trees, and each person's own dose."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST, quadratic_log
from sweeps import long
from titrant.learn.classes.base import DoseCurves
from titrant.learn.classes.bent import AdditiveClass, ProductsClass, knots_of
from titrant.learn.classes.tree import TreeClass, TreeProblem, cuts_of, short_between
from titrant.policies.lookup import least_dose

ROUNDING = 1e-9  # sums of some hundred rows in another order
# At the smallest bandwidth a search may end in one of several near-equal kinks, by rounding; of the
# average this is a hundredth of the dose's sd.
KINKS = 0.02

LOG = quadratic_log(300)


def curved_log(n: int = 300, seed: int = 2, cell: float | None = None) -> tt.LoggedData:
    """The best dose bends with x0, jumps with x1 and has nothing to do with x2, of three values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(3, size=n)])
    t = 0.3 * X[:, 0] + rng.normal(size=n)
    best = np.abs(X[:, 0]) - (X[:, 1] > 0.4)
    y = (t - best) ** 2 + 0.3 * rng.normal(size=n)
    if cell is not None:
        X[7, 0] = cell
    return tt.LoggedData(X, t, y)


def learned(kind, log, **settings):
    return tt.PolicyLearner(policy=kind, procedure=FAST, honest=False, **settings).fit(log).policy_


# ── curves and products ──────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("kind", [AdditiveClass(), ProductsClass()], ids=repr)
def test_bends_have_no_line_in_them(kind):
    # Law: bends are orthogonal to (1, z) and of variance 1.
    fitted = kind.on(LOG)
    phi = fitted.features(LOG.context)
    straight, bends = phi[:, :3], phi[:, 3:]
    np.testing.assert_allclose(np.mean(bends**2, axis=0), 1.0, rtol=ROUNDING)
    own = [0] if isinstance(kind, AdditiveClass) else range(3)
    np.testing.assert_allclose(straight[:, own].T @ bends / len(LOG), 0.0, atol=ROUNDING)


def test_the_bends_of_a_context_are_white():
    phi = AdditiveClass().on(LOG).features(LOG.context)
    for j in range(2):
        mine = phi[:, 3 + 3 * j : 6 + 3 * j]
        np.testing.assert_allclose(mine.T @ mine / len(LOG), np.eye(3), atol=ROUNDING)
        np.testing.assert_allclose(phi[:, 1 + j] @ mine / len(LOG), 0.0, atol=ROUNDING)


def test_bends_count_three_times_in_the_ridge():
    np.testing.assert_array_equal(AdditiveClass().on(LOG).roughness, [0, 1, 1, *[3] * 6])
    np.testing.assert_array_equal(ProductsClass().on(LOG).roughness, [0, 1, 1, *[3] * 3])


def test_few_values_have_a_line():
    assert len(knots_of(np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], 9))) == 0
    assert len(knots_of(np.repeat(np.arange(6.0), 9))) == 5
    # Six values, of which nearly all are one: no knots to bend at.
    assert len(knots_of(np.append(np.zeros(200), np.arange(6.0)))) == 0


def test_a_context_that_is_to_be_straight_must_be_there():
    with pytest.raises(tt.DataError, match="uses the context `agee`"):
        AdditiveClass(straight=("agee",)).on(LOG)


def test_one_absurd_cell_does_not_flatten_a_curve():
    rule, other = (
        learned(AdditiveClass(), curved_log()),
        learned(AdditiveClass(), curved_log(cell=1e10)),
    )
    X = np.column_stack([np.linspace(-2, 2, 9), np.zeros(9), np.ones(9)])
    assert np.ptp(rule(X)) > 0.8
    np.testing.assert_allclose(other(X), rule(X), atol=0.2)  # one of few rows at the end is gone


def test_too_many_products_are_refused():
    wide = tt.LoggedData(
        np.random.default_rng(0).normal(size=(50, 13)), np.arange(50.0), np.ones(50)
    )
    with pytest.raises(tt.InvalidArgument, match="Squares and products of 13 contexts"):
        ProductsClass().on(wide)


@pytest.mark.parametrize("kind", [tt.LinearClass(), AdditiveClass(), ProductsClass()], ids=repr)
def test_a_class_that_contains_another_fits_no_worse(kind):
    # Law: least squares of any target on the features of a wider class leave no more.
    target = np.sin(3 * LOG.context[:, 0]) + LOG.context[:, 1] ** 2

    def left(one):
        phi = one.on(LOG).features(LOG.context)
        return np.sum((target - phi @ np.linalg.lstsq(phi, target, rcond=None)[0]) ** 2)

    assert left(kind) <= left(tt.LinearClass()) * (1 + ROUNDING)
    assert left(kind) <= left(tt.ConstantClass()) * (1 + ROUNDING)


# ── trees ────────────────────────────────────────────────────────────────────────────────────────
def small_problem(n: int = 60, seed: int = 0) -> tuple[TreeProblem, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(4, size=n), rng.uniform(size=n)])
    D = rng.normal(size=(n, 5)).cumsum(axis=1)
    return TreeProblem.of(X, D), X, D


def cost(D, rows) -> float:
    return (
        np.inf if np.count_nonzero(rows) < 10 else min(sum(D[rows, g]) for g in range(D.shape[1]))
    )


def best_stump(D, X, cuts, rows) -> float:
    """The least cost of some rows with one cut or none, by a loop over all cuts."""
    found = [cost(D, rows)]
    for j in range(X.shape[1]):
        for cut in cuts[j]:
            low = X[:, j] <= cut
            found.append(cost(D, rows & low) + cost(D, rows & ~low))
    return min(found)


def cost_of(tree, X, D) -> float:
    leaf = tree.leaves(X)
    return sum(min(D[leaf == k].sum(axis=0)) for k in range(len(tree.doses)))


@pytest.mark.parametrize("seed", range(6))
def test_the_search_at_depth_two_is_that_of_a_loop(seed):
    problem, X, D = small_problem(seed=seed)
    every = np.ones(len(X), dtype=bool)
    found = []
    for j, cuts in enumerate(problem.cuts):
        for cut in cuts:
            low = every & (X[:, j] <= cut)
            if min(low.sum(), (~low).sum()) >= 10:
                found.append(
                    best_stump(D, X, problem.cuts, low) + best_stump(D, X, problem.cuts, ~low)
                )
    tree = problem.tree(problem.grown(2, 4), np.arange(5.0), ("a", "b", "c"))
    assert cost_of(tree, X, D) == pytest.approx(min(found), rel=ROUNDING)


@pytest.mark.parametrize("seed", range(4))
def test_a_stump_is_that_of_a_loop(seed):
    problem, X, D = small_problem(seed=seed)
    tree = problem.tree(problem.grown(1, 2), np.arange(5.0), ("a", "b", "c"))
    every = np.ones(len(X), dtype=bool)
    assert cost_of(tree, X, D) == pytest.approx(best_stump(D, X, problem.cuts, every), rel=ROUNDING)


@pytest.mark.parametrize("seed", range(4))
def test_more_leaves_cost_no_more_and_are_large_enough(seed):
    rng = np.random.default_rng(seed)
    log = tt.LoggedData(rng.normal(size=(400, 3)), np.arange(400.0), np.zeros(400))
    D = rng.normal(size=(400, 7))
    trees = TreeClass().found(log, DoseCurves(np.arange(7.0), D, D))
    assert list(TreeClass().candidates.values()) == [2, 3, 4, 6, 8]
    sizes = [len(tree.doses) for tree in trees]
    assert sizes[:3] == [2, 3, 4]
    assert sizes == sorted(sizes)
    assert sizes[-1] <= 8
    costs = [cost_of(tree, log.context, D) for tree in trees]
    assert all(b <= a + ROUNDING for a, b in pairwise(costs[1:]))
    for tree in trees:
        assert np.bincount(tree.leaves(log.context)).min() >= 16
        assert max(len(answers) for answers, _ in tree.paths()) <= 3
        # A leaf's dose is the vertex of the parabola at its least cost.
        rows = tree.leaves(log.context) == 0
        assert tree.doses[0] == pytest.approx(least_dose(np.arange(7.0), D[rows].mean(0)[None])[0])


def test_nothing_to_cut_is_a_constant():
    log = tt.LoggedData(np.zeros((40, 2)), np.arange(40.0), np.zeros(40))
    D = np.tile((np.arange(5.0) - 2.0) ** 2, (40, 1))
    assert set(map(repr, TreeClass().found(log, DoseCurves(np.arange(5.0), D, D)))) == {
        repr(tt.Constant(2.0))
    }


@pytest.mark.parametrize("size", [3, 19, 20])
def test_too_few_rows_for_two_leaves_are_a_constant(size):
    log = tt.LoggedData(np.arange(size * 1.0)[:, None], np.arange(size * 1.0), np.zeros(size))
    D = np.random.default_rng(0).normal(size=(size, 5))
    tree = TreeClass().found(log, DoseCurves(np.arange(5.0), D, D))[-1]
    assert isinstance(tree, tt.Tree if size >= 20 else tt.Constant)


def test_cuts_are_short_numbers_between_values():
    assert cuts_of(np.array([0.0, 1.0, 1.0])).tolist() == [0.5]
    assert cuts_of(np.array([3.0, 3.0])).tolist() == []
    assert short_between(49.0, 50.0) == 49.5
    assert short_between(-3e-5, 2e-5) == 0.0
    assert short_between(61.7, 64.1) == 63.0
    assert short_between(-1e10, 3.0) == 0.0
    rng = np.random.default_rng(0)
    for low, high in np.sort(rng.normal(size=(50, 2)) * 10.0 ** rng.integers(-9, 9, (50, 1))):
        assert low <= short_between(low, high) < high
    neighbors = np.nextafter(0.1, 1.0)
    assert short_between(0.1, neighbors) == 0.1
    x = rng.normal(size=1000)
    assert len(cuts_of(x)) == 15
    share = np.mean(x[:, None] <= cuts_of(x), axis=0)
    np.testing.assert_allclose(share, np.arange(1, 16) / 16, atol=2e-3)


def test_trees_see_the_order_of_contexts_only():
    # Law: contexts in other units, and one absurd cell, leave a tree's groups as they are.
    log = curved_log()
    X = log.context.copy()
    X[:, 0] = np.exp(5.0 * X[:, 0])
    X[np.argmax(X[:, 0]), 0] = 1e10
    other = tt.LoggedData(X, log.treatment, log.outcome)
    D = np.random.default_rng(1).normal(size=(len(log), 9))
    curves = DoseCurves(np.arange(9.0), D, D)
    for mine, yours in zip(
        TreeClass().found(log, curves), TreeClass().found(other, curves), strict=True
    ):
        np.testing.assert_array_equal(mine(log.context), yours(other.context))


@pytest.mark.parametrize("depth", [0, 4, 1.5])
def test_wrong_depths(depth):
    with pytest.raises(tt.InvalidArgument, match="`depth` of `TreeClass`"):
        TreeClass(depth=depth)


# ── every class, learned ─────────────────────────────────────────────────────────────────────────
SHAPES = [
    *(AdditiveClass(), TreeClass(), ProductsClass(), tt.PersonalClass(), tt.Automatic()),
    tt.LinearTreeClass(),
]


@pytest.mark.parametrize(
    "kind", [*SHAPES[1:3], SHAPES[5], *long(SHAPES[0], *SHAPES[3:5])], ids=repr
)
def test_the_order_of_contexts_does_not_matter(kind):
    # Law: contexts are found by name; a log with its columns turned around gives the same doses.
    log = curved_log()
    turned = tt.LoggedData(log.context[:, ::-1], log.treatment, log.outcome, names=("c", "b", "a"))
    mine = learned(
        kind, tt.LoggedData(log.context, log.treatment, log.outcome, names=("a", "b", "c"))
    )
    yours = learned(kind, turned)
    table = dict(zip("abc", log.context.T, strict=True))
    np.testing.assert_allclose(yours(table), mine(table), atol=KINKS)


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        *((kind, (-3.0, 4.0)) for kind in SHAPES),
        (SHAPES[0], None),
        *long(*((kind, None) for kind in SHAPES[1:])),
    ],
    ids=repr,
)
def test_learned_policies_are_saved_and_serve_tables(kind, bounds, tmp_path):
    log = curved_log().with_bounds(bounds) if bounds is None else bounded(bounds)
    learner = tt.PolicyLearner(policy=kind, procedure=FAST, honest=False).fit(log)
    learner.save(tmp_path / "policy.json")
    table = dict(zip(log.names, log.context.T, strict=True))
    again = tt.load_policy(tmp_path / "policy.json")
    np.testing.assert_array_equal(again(table), learner.predict(table))
    if bounds is not None:
        assert bounds[0] <= again(table).min()
        assert again(table).max() <= bounds[1]


def bounded(bounds) -> tt.LoggedData:
    log = curved_log()
    inside = (log.treatment > bounds[0]) & (log.treatment < bounds[1])
    return log.rows(inside).with_bounds(bounds)


@pytest.mark.parametrize("kind", [*SHAPES[1::2], tt.Automatic()], ids=repr)
def test_a_search_over_parameters_refuses_what_has_none(kind):
    learner = tt.PolicyLearner(policy=kind, procedure=tt.CPO(restarts=1), honest=False)
    with pytest.raises(tt.InvalidArgument, match="Leave the procedure out"):
        learner.fit(LOG)
