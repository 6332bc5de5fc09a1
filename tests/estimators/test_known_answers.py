"""Three rows by hand, for each estimator: h = 2, Epanechnikov, logged doses 1, 4, 9 → τ = 2, 4, 6.

row   τ − t    u      K(u) = ¾(1 − u²)    q     w = K/(h·q)     y    r̂(τ)  r̂(t)   e = y − r̂(t)
 0      1     1/2     ¾·¾ = 9/16         ½     9/16             4     1      2       2
 1      0      0      3/4                 ¼     3/2             10     5      8       2
 2     −3    −3/2     0                   1     0               99     6     90       9

Σw = 33/16, Σwy = 9/4 + 15 = 69/4, Σwe = 9/8 + 3 = 33/8, ȳ = 113/3.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from laws.designs import estimate
from titrant.estimators import IPW, DirectMethod, Discretized, DoublyRobust, Rows, SelfNormalized
from titrant.kernels import Boundary, Scale

SCALE = Scale.of(2.0, 1)


def rows() -> Rows:
    return Rows(
        tau=np.array([[2.0], [4.0], [6.0]]),
        t=np.array([[1.0], [4.0], [9.0]]),
        y=np.array([4.0, 10.0, 99.0]),
        center=113 / 3,
        q=np.array([1 / 2, 1 / 4, 1.0]),
        r_tau=np.array([1.0, 5.0, 6.0]),
        r_logged=np.array([2.0, 8.0, 90.0]),
        r_slope=np.array([[0.5], [0.0], [-1.0]]),
        # P(bin) is the same in each row, ½ of the bin above 3 and ¼ of the bin below.
        probability=lambda low, high: np.where(high > 3, 0.5, 0.25),  # noqa: ARG005
    )


def test_weights():
    np.testing.assert_allclose(SelfNormalized().weight(rows(), SCALE), [9 / 16, 3 / 2, 0])


def test_slopes_of_weights():
    # ∂w/∂τ = K′(u)/(h²q), K′(u) = −3u/2: row 0 (−3/4)/(4·½) = −3/8; row 1 at the top: 0.
    np.testing.assert_allclose(
        SelfNormalized().weight_slope(rows(), SCALE), [[-3 / 8], [0], [0]], atol=1e-15
    )


def test_ipw():
    # v = (9/4 + 15 + 0)/3 = 23/4; deviations −7/2, 37/4, −23/4; SE = √Σ²/3
    value, se = estimate(IPW(), rows(), SCALE)
    assert value == pytest.approx(23 / 4)
    assert se == pytest.approx(sqrt(49 / 4 + 1369 / 16 + 529 / 16) / 3)


def test_ipw_centered():
    # c = 113/3; w(y − c) = (9/16)(−101/3) = −303/16, (3/2)(−83/3) = −83/2, 0; v = c + their mean.
    value, _ = estimate(IPW(centered=True), rows(), SCALE)
    assert value == pytest.approx(113 / 3 + (-303 / 16 - 83 / 2) / 3)


def test_self_normalized():
    # v = (69/4)/(33/16) = 92/11; y − v = −48/11, 18/11; w(y − v) = −27/11, 27/11;
    # SE = √(2·27²/11²)/(33/16) = (27√2/11)(16/33)
    value, se = estimate(SelfNormalized(), rows(), SCALE)
    assert value == pytest.approx(92 / 11)
    assert se == pytest.approx(27 * sqrt(2) / 11 * 16 / 33)


def test_doubly_robust():
    # terms 1 + 9/8 = 17/8, 5 + 3 = 8, 6 + 0; mean 43/8; deviations −13/4, 21/8, 5/8
    value, se = estimate(DoublyRobust(self_normalized=False), rows(), SCALE)
    assert value == pytest.approx(43 / 8)
    assert se == pytest.approx(sqrt(169 / 16 + 441 / 64 + 25 / 64) / 3)


def test_doubly_robust_self_normalized():
    # mean r̂(τ) = 4, Σwe/Σw = (33/8)/(33/16) = 2; v = 6. Residuals beyond 2: 0, 0, 7 with w = 0;
    # influence = r̂(τ) − 4 = −3, 1, 2: SE = √14/3
    value, se = estimate(DoublyRobust(), rows(), SCALE)
    assert value == pytest.approx(6)
    assert se == pytest.approx(sqrt(14) / 3)


def test_direct_method():
    value, se = estimate(DirectMethod(), rows(), SCALE)
    assert value == pytest.approx(4)
    assert se == pytest.approx(sqrt(14) / 3)


def test_discretized():
    # One inner edge at 3: bins of τ low, high, high; of t low, high, high; w = 4, 2, 2.
    # v = (16 + 20 + 198)/8 = 117/4; un-normalized 234/3 = 78.
    value, se = estimate(Discretized(edges=(3.0,)), rows(), SCALE)
    assert value == pytest.approx(117 / 4)
    # w(y − v) = 4(−101/4), 2(−77/4), 2(279/4) = −101, −77/2, 279/2
    assert se == pytest.approx(sqrt(101**2 + 38.5**2 + 139.5**2) / 8)
    value, se = estimate(Discretized(edges=(3.0,), self_normalized=False), rows(), SCALE)
    assert value == pytest.approx(78)
    assert se == pytest.approx(sqrt(62**2 + 58**2 + 120**2) / 3)


def test_discretized_edges_belong_to_the_bin_below():
    # Inner edge at 4: τ = 2, 4, 6 and t = 1, 4, 9 in bins low, low, high: (−∞, 4] and (4, ∞).
    seen = []
    given = rows()

    def probability(low, high):
        seen.append((low.tolist(), high.tolist()))
        return np.array([0.5, 0.25, 0.2])

    w = Discretized(edges=(4.0,)).weight(
        Rows(tau=given.tau, t=given.t, y=given.y, probability=probability), SCALE
    )
    np.testing.assert_allclose(w, [2, 4, 5])
    assert seen == [([-np.inf, -np.inf, 4.0], [4.0, 4.0, np.inf])]


def test_two_doses():
    # h = (2, 4), τ − t = (1, 2): u = ½, ½; w = (9/16)²/(2·4·½) = 81/1024.
    one = Rows(
        tau=np.array([[2.0, 5.0]]),
        t=np.array([[1.0, 3.0]]),
        y=np.array([3.0]),
        q=np.array([0.5]),
    )
    scale = Scale.of([2.0, 4.0], 2)
    np.testing.assert_allclose(IPW().weight(one, scale), [81 / 1024])
    # ∂w/∂τ₀ = (−¾)(9/16)/(2·2·4·½) = −27/512, ∂w/∂τ₁ half of it.
    np.testing.assert_allclose(IPW().weight_slope(one, scale), [[-27 / 512, -27 / 1024]])


def test_at_a_bound():
    # τ = 0 = lo, t = 1, h = 2: v = ½, K = 9/16. None 9/32, mass 9/16, linear (9/38)/2 = 9/76.
    one = Rows(
        tau=np.zeros((1, 1)),
        t=np.ones((1, 1)),
        y=np.ones(1),
        q=np.ones(1),
        lower=np.zeros((1, 1)),
        upper=np.full((1, 1), np.inf),
    )
    for boundary, expected in [
        (Boundary.NONE, 9 / 32),
        (Boundary.MASS, 9 / 16),
        (Boundary.LINEAR, 9 / 76),
    ]:
        assert IPW(boundary=boundary).weight(one, SCALE)[0] == pytest.approx(expected)
    assert IPW().weight(one, SCALE)[0] == pytest.approx(9 / 76)  # linear is the default
