"""The bandwidth path against loops over rows: values, standard errors and joint covariance."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import naive
from bandwidth.problems import logged, problem
from titrant.bandwidth import DEFAULT_FACTORS, path_of
from titrant.estimators import IPW, DoublyRobust, Question, Rows, SelfNormalized, ask
from titrant.kernels import Epanechnikov, Gaussian, Triangular

LOOPS = 1e-9  # the same sums in another order; weights of both signs cancel a few digits
CHUNKS = 1e-11  # merging centered moments

FACTORS = np.array([0.3, 0.5, 0.9, 1.8])
CASES = [(1, False), (1, True), (2, False)]
each_case = pytest.mark.parametrize(("d", "bounded"), CASES, ids=["line", "bounded", "plane"])
each_kernel = pytest.mark.parametrize(
    "kernel", [Epanechnikov(), Gaussian(), Triangular()], ids=lambda k: type(k).__name__
)


def weights(rows, kernel, g):
    """The weights (n,) at g·sd(T), row by row."""
    h, bounded = (g * rows.t.std(axis=0)).tolist(), rows.lower is not None
    return [
        naive.weight(
            type(kernel).__name__,
            1,
            h,
            tau=rows.tau[i].tolist(),
            t=rows.t[i].tolist(),
            q=rows.q[i],
            lower=rows.lower[i].tolist() if bounded else None,
            upper=rows.upper[i].tolist() if bounded else None,
        )
        for i in range(len(rows.y))
    ]


def influence(estimator, rows, w):
    """The influence of each row on the estimate (n,): its textbook form."""
    w, n = np.asarray(w), len(w)
    if isinstance(estimator, IPW):
        return w * rows.y - (w * rows.y).mean()
    if isinstance(estimator, SelfNormalized):
        value = (w * rows.y).sum() / w.sum()
        return n * w * (rows.y - value) / w.sum()
    e = rows.y - rows.r_logged
    if not estimator.normalized:
        z = rows.r_tau + w * e
        return z - z.mean()
    correction = (w * e).sum() / w.sum()
    return rows.r_tau - rows.r_tau.mean() + n * w * (e - correction) / w.sum()


def expected(estimator, rows, w):
    """The value and its standard error, by loops."""
    y, r_tau, r_logged = rows.y.tolist(), rows.r_tau.tolist(), rows.r_logged.tolist()
    if isinstance(estimator, IPW):
        return naive.ipw(w, y)
    if isinstance(estimator, SelfNormalized):
        return naive.self_normalized(w, y)
    if estimator.normalized:
        return naive.doubly_robust_self_normalized(w, y, r_tau, r_logged)
    return naive.doubly_robust(w, y, r_tau, r_logged)


@each_case
@each_kernel
@pytest.mark.parametrize(
    "make",
    [IPW, SelfNormalized, DoublyRobust, partial(DoublyRobust, self_normalized=False)],
    ids=["ipw", "self-normalized", "doubly robust", "doubly robust, plain"],
)
def test_every_bandwidth_is_the_estimator_there(make, kernel, d, bounded):
    estimator, rows = make(kernel=kernel), logged(60, d, bounded=bounded)
    path = path_of(problem(estimator, rows), FACTORS)
    w = [weights(rows, kernel, g) for g in FACTORS]
    loops = np.array([expected(estimator, rows, wj) for wj in w])
    np.testing.assert_allclose(path.values, loops[:, 0], rtol=LOOPS)
    np.testing.assert_allclose(path.se, loops[:, 1], rtol=LOOPS)
    # Joint covariance: that of the stacked influence functions.
    phi = np.stack([influence(estimator, rows, wj) for wj in w])
    np.testing.assert_allclose(
        path.covariance, phi @ phi.T / len(rows.y) ** 2, rtol=1e-8, atol=LOOPS * path.se.max() ** 2
    )
    np.testing.assert_allclose(path.ess, [sum(v) ** 2 / sum(x * x for x in v) for v in w])
    assert path.count.tolist() == [sum(x != 0 for x in v) for v in w]


@each_case
@pytest.mark.parametrize("estimator", [IPW(), SelfNormalized(), DoublyRobust()], ids=repr)
def test_a_path_is_the_answer_to_all_questions_at_once(estimator, d, bounded):
    task = problem(estimator, logged(d=d, bounded=bounded))
    path = path_of(task, FACTORS)
    questions = [Question(estimator, 0, task.scale(g)) for g in FACTORS]
    joint = ask(questions, lambda statistic: task.over_rows(lambda rows: statistic([rows])))
    np.testing.assert_allclose(path.values, joint.values, rtol=CHUNKS)
    np.testing.assert_allclose(path.covariance, joint.covariance, rtol=1e-8)
    np.testing.assert_allclose(path.ess, joint.tally.ess, rtol=CHUNKS)
    assert path.count.tolist() == joint.tally.count.tolist()


@each_case
@pytest.mark.parametrize("parts", [2, 40])
def test_chunks_give_the_path_of_the_whole(d, bounded, parts):
    rows = logged(240, d, bounded=bounded)
    whole, chunks = (path_of(problem(DoublyRobust(), rows, k)) for k in (1, parts))
    known = whole.count > 0
    size = np.abs(whole.values[known]).max()
    np.testing.assert_allclose(chunks.values[known], whole.values[known], atol=CHUNKS * size)
    np.testing.assert_allclose(
        chunks.covariance, whole.covariance, atol=CHUNKS * np.abs(whole.covariance).max()
    )
    np.testing.assert_allclose(chunks.ess, whole.ess, rtol=CHUNKS)
    np.testing.assert_array_equal(chunks.count, whole.count)
    assert chunks.n == whole.n == 240


def test_three_rows_by_hand():
    # sd(T) = √(2/3) of t = 0, 1, 2; the bandwidth 2 reaches |t − τ| = 0, 1 and, barely not, 2:
    # K(0) = 3/4, K(1/2) = 9/16, K(1) = 0. With q = 1, w = 3/8, 9/32, 0 and y = 4, 8, 100:
    # Σwy/Σw = (3/2 + 9/4)/(21/32) = 40/7; ESS = (21/32)²/((12/32)² + (9/32)²) = 441/225.
    t = np.array([[0.0], [1.0], [2.0]])
    by_hand = Rows(tau=np.zeros((3, 1)), t=t, y=np.array([4.0, 8.0, 100.0]), q=np.ones(3))
    spread = np.sqrt(2 / 3)
    path = path_of(problem(SelfNormalized(), by_hand), np.array([2 / spread]))
    assert path.values[0] == pytest.approx(40 / 7, rel=1e-14)
    assert path.ess[0] == pytest.approx(441 / 225, rel=1e-14)
    assert path.count[0] == 2
    assert path.bandwidths[0] == pytest.approx(2.0, rel=1e-14)


def test_bandwidths_out_of_reach_are_nan_and_never_warn():
    path = path_of(problem(SelfNormalized(), logged(off=4.0)))
    none = path.count == 0
    assert none.any()
    assert np.isnan(path.values[none]).all()
    assert (path.ess[none] == 0).all()
    assert np.isfinite(path.values[~none]).all()


def test_a_path_in_plain_values():
    task = problem(SelfNormalized(), logged(d=2))
    path = path_of(task)
    told = path.to_dict()
    assert told["rows"] == 240
    assert len(told["values"]) == len(told["se"]) == len(told["ess"]) == 27
    np.testing.assert_allclose(told["bandwidths"], DEFAULT_FACTORS[:, None] * task.spread)
    assert told["rows_in_reach"] == path.count.astype(int).tolist()
