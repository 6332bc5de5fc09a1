"""The default selector against the specification, written out step by step.

Nothing is shared with the library but the rows: sums over rows give the covariance, every model
(p, k) is its own generalized least squares fit with a free parameter for each bandwidth above k,
and each fit inverts the covariance.
"""

from __future__ import annotations

import numpy as np
import pytest

from bandwidth.problems import logged, problem
from titrant.bandwidth import DEFAULT_FACTORS, AveragedBiasPath, path_of
from titrant.errors import InvalidArgument
from titrant.estimators import DoublyRobust, SelfNormalized

NAIVE = 1e-8  # an explicit inverse of a nearly singular matrix keeps about ten digits


def epanechnikov_weights(rows, g):
    u = (rows.t - rows.tau) / (g * rows.t.std(axis=0))
    k = np.where(np.abs(u) <= 1, 0.75 * (1 - u**2), 0).prod(axis=1)
    return k / (np.prod(g * rows.t.std(axis=0)) * rows.q)


def covariance(b, r, w):
    """C_jk of step 1 from sums over rows; w (K, n)."""
    n, size = len(r), len(w)
    total = w.sum(axis=1)
    m = w @ r / total
    c = (w @ (r * b) - m * (w @ b)) / (n * total)
    ess = np.maximum(total**2 / (w**2).sum(axis=1), 2)
    result = np.empty((size, size))
    for j in range(size):
        for k in range(size):
            pair = w[j] * w[k]
            kernel_part = pair @ r**2 - (m[j] + m[k]) * (pair @ r) + m[j] * m[k] * pair.sum()
            # b is centered, so that Cov(b, w(r − m)) needs no further mean.
            value = b.var() / n + c[j] + c[k] + kernel_part / (total[j] * total[k])
            inflation = ess[j] / (ess[j] - 1) * ess[k] / (ess[k] - 1)
            result[j, k] = value * np.sqrt(inflation)
    return b.mean() + m, result


def specification(b, r, rows, least):
    """Return h/sd(T), squared bias and variance at it, and the weight of p = 1, by spec.

    ``least`` is the share of its envelope that a variance counts as at least.
    """
    g = DEFAULT_FACTORS
    w = np.stack([epanechnikov_weights(rows, gj) for gj in g])
    with np.errstate(invalid="ignore", divide="ignore"):
        ess = w.sum(axis=1) ** 2 / (w**2).sum(axis=1)
    keep = ((w > 0).sum(axis=1) >= 8) & (ess >= 12) & (g <= 2)
    g, w = g[keep], w[keep]
    v, c = covariance(b - b.mean(), r, w)
    v = v + b.mean()
    size = len(g)
    # Step 3: the kernel part of the variance, smoothed; the diagonal replaced; a nugget of 2 %.
    rest = np.minimum(b.var() / len(r), 0.95 * np.diag(c))
    p = np.diag(c) - rest
    envelope = np.array([max(p[k] * g[k] for k in range(j, size)) / g[j] for j in range(size)])
    s2 = np.maximum(np.sqrt(p * envelope), least * envelope) + rest
    d = np.sqrt(s2 / np.diag(c))
    c = c * np.outer(d, d) + 0.02 * np.diag(s2)
    # Steps 4 and 5.
    inverse = np.linalg.inv(c)
    scores, curves = [], []
    for power in (1.0, 1.5, 2.0):
        for k in range(5, size + 1):
            design = np.zeros((size, 2 + size - k))
            design[:k, 0], design[:k, 1] = 1, g[:k] ** power
            design[k:, 2:] = np.eye(size - k)
            normal = np.linalg.inv(design.T @ inverse @ design)
            fit = normal @ design.T @ inverse @ (v - v.mean())
            residual = v - v.mean() - design @ fit
            scores.append(residual @ inverse @ residual + 3 * (size - k))
            curves.append((fit[1] ** 2 + normal[1, 1]) * g ** (2 * power))
    weights = np.exp(-0.5 * (np.array(scores) - min(scores)))
    weights /= weights.sum()
    squared_bias = weights @ np.array(curves)
    # Step 6.
    best = np.argmin(squared_bias + s2)
    return g[best], squared_bias[best], s2[best], weights[: size - 4].sum()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("n", [240, 1500])
def test_it_is_the_specification(seed, d, n):
    rows = logged(n, d, seed=seed)
    cases = [
        (SelfNormalized(), np.zeros(n), rows.y - 3.0, 0.0),
        (DoublyRobust(), rows.r_tau, rows.y - rows.r_logged, 0.5),
    ]
    for estimator, b, r, least in cases:
        task = problem(estimator, rows)
        choice = AveragedBiasPath().select(task)
        g, squared_bias, s2, linear = specification(b, r, rows, least)
        np.testing.assert_allclose(choice.h / task.spread, g, rtol=1e-12)
        assert choice.bias**2 == pytest.approx(squared_bias, rel=NAIVE)
        assert choice.se**2 == pytest.approx(s2, rel=NAIVE)
        # A third of the weight each when the path says nothing: that is no evidence of a kink.
        assert choice.kink == pytest.approx(max(1.5 * linear - 0.5, 0.0), rel=NAIVE, abs=NAIVE)


def test_a_path_already_computed_serves_as_well():
    task = problem(DoublyRobust(), logged())
    selector = AveragedBiasPath()
    assert selector.select_from(path_of(task), task).to_dict() == selector.select(task).to_dict()


def test_the_common_factor_of_two_doses_multiplies_their_spreads():
    # h_j = g·sd_j with g on the grid: the rate n^(−1/(d+4)) is left to the data.
    task = problem(DoublyRobust(), logged(800, d=2))
    ratio = AveragedBiasPath().select(task).h / task.spread
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-12)
    assert np.abs(DEFAULT_FACTORS / ratio[0] - 1).min() < 1e-12


def test_a_curved_outcome_asks_for_less_smoothing_than_a_flat_one():
    # The bias seen in the path decides, not the number of rows.
    rows = logged(2000)
    u = rows.t[:, 0] - rows.tau[:, 0]
    noise = np.random.default_rng(5).normal(size=2000)
    wide, narrow = (
        AveragedBiasPath().select(problem(SelfNormalized(), rows_with(rows, bend * u**2 + noise)))
        for bend in (0.0, 5.0)
    )
    assert narrow.h < wide.h / 2
    assert narrow.bias > wide.bias


def test_a_kink_at_the_dose_is_told_from_a_curve():
    rows = logged(4000)
    u = rows.t[:, 0] - rows.tau[:, 0]
    noise = 0.3 * np.random.default_rng(6).normal(size=4000)
    kinked, smooth, flat = (
        AveragedBiasPath().select(problem(SelfNormalized(), rows_with(rows, mean + noise))).kink
        for mean in (np.abs(u), u**2, 0 * u)
    )
    assert kinked > 0.5
    assert smooth < 0.05
    assert flat < 0.1


def test_units_do_not_matter_to_a_kink():
    rows = logged(1500)
    y = np.abs(rows.t[:, 0] - rows.tau[:, 0]) + rows.y
    kinks = [
        AveragedBiasPath().select(problem(SelfNormalized(), rows_with(rows, z))).kink
        for z in (y, 1e6 - 40.0 * y)
    ]
    assert kinks[0] == pytest.approx(kinks[1], rel=1e-6)


def rows_with(rows, y):
    return type(rows)(tau=rows.tau, t=rows.t, y=y, x=rows.x, q=rows.q, center=float(y.mean()))


def test_an_edge_of_the_grid_is_flagged():
    rows = logged(2000)
    steep = rows_with(rows, 100 * (rows.t[:, 0] - rows.tau[:, 0]) ** 2)
    choice = AveragedBiasPath(ess_floor=300).select(problem(SelfNormalized(), steep))
    assert choice.flag == "the smallest usable bandwidth"


@pytest.mark.parametrize("field", ["range_penalty", "ess_floor", "widest", "nugget", "fewest_rows"])
def test_settings_are_checked(field):
    with pytest.raises(InvalidArgument, match=f"`{field}` of `AveragedBiasPath`"):
        AveragedBiasPath(**{field: 0})
