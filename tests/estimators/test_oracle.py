"""Every estimator against the loops of `naive`: value and standard error, all kernels and bounds.

A new estimator needs its loop here; until then its test fails by name.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import naive
from laws.designs import CASES, estimate, name, ready
from titrant.estimators import ESTIMATORS, Discretized, SmoothedEstimator
from titrant.estimators.weight import weight
from titrant.kernels import KERNELS, Boundary

ORACLE = 1e-8  # quadrature of the oracle × condition of the quadratic boundary kernel

each_kernel = pytest.mark.parametrize("kernel", [k() for k in KERNELS], ids=lambda k: str(k)[:-2])
each_boundary = pytest.mark.parametrize("boundary", list(Boundary), ids=lambda b: b.name)
each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)

LOOPS = {
    "IPW()": lambda r, w: naive.ipw(w, r.y),
    "IPW(centered=True)": lambda r, w: naive.mean_and_error(
        [r.center + wi * (yi - r.center) for wi, yi in zip(w, r.y, strict=True)]
    ),
    "SelfNormalized()": lambda r, w: naive.self_normalized(w, r.y),
    "DoublyRobust(self_normalized=False)": lambda r, w: naive.doubly_robust(
        w, r.y, r.r_tau, r.r_logged
    ),
    "DoublyRobust()": lambda r, w: naive.doubly_robust_self_normalized(w, r.y, r.r_tau, r.r_logged),
    "DirectMethod()": lambda r, w: naive.direct_method(r.r_tau),  # noqa: ARG005
    "Observed()": lambda r, w: naive.mean_and_error(r.y),  # noqa: ARG005
    "Discretized(self_normalized=False)": lambda r, w: naive.ipw(w, r.y),
    "Discretized()": lambda r, w: naive.self_normalized(w, r.y),
}


def loop_weights(rows, kernel, boundary, h):
    degree = None if boundary is Boundary.NONE else int(boundary)
    return [
        naive.weight(
            type(kernel).__name__,
            degree,
            h,
            tau=rows.tau[i].tolist(),
            t=rows.t[i].tolist(),
            q=rows.q[i],
            lower=None if rows.lower is None else rows.lower[i].tolist(),
            upper=None if rows.upper is None else rows.upper[i].tolist(),
        )
        for i in range(len(rows.y))
    ]


def bin_weights(rows, edges):
    return [
        naive.bin_weight(
            rows.tau[i, 0],
            rows.t[i, 0],
            edges,
            lambda low, high, i=i: rows.probability(np.float64(low), np.float64(high))[i],
        )
        for i in range(len(rows.y))
    ]


def test_every_estimator_has_a_loop():
    assert {name(e) for e in ESTIMATORS} <= set(LOOPS)


@each_case
@each_boundary
@each_kernel
def test_smoothed_estimators_are_the_loops(kernel, boundary, case):
    rows = case.rows(25)
    w = loop_weights(rows, kernel, boundary, case.h)
    np.testing.assert_allclose(
        weight(rows, kernel, boundary, case.scale), w, rtol=ORACLE, atol=ORACLE
    )
    for estimator in ESTIMATORS:
        if isinstance(estimator, SmoothedEstimator):
            variant = replace(estimator, kernel=kernel, boundary=boundary)
            found, expected = estimate(variant, rows, case.scale), LOOPS[name(estimator)](rows, w)
            np.testing.assert_allclose(found, expected, rtol=1e-7, err_msg=name(estimator))


@each_case
def test_estimators_without_a_kernel_are_the_loops(case):
    rows = case.rows(25)
    for estimator in ESTIMATORS:
        if isinstance(estimator, SmoothedEstimator):
            continue
        if not isinstance(estimator, Discretized):
            found = estimate(estimator, rows, case.scale)
            np.testing.assert_allclose(found, LOOPS[name(estimator)](rows, None), rtol=1e-12)
        elif case.d == 1:
            for form in (estimator, replace(estimator, bins=3), replace(estimator, quantiles=True)):
                edges = ready(form, rows).edges
                found = estimate(form, rows, case.scale)
                expected = LOOPS[name(estimator)](rows, bin_weights(rows, edges))
                np.testing.assert_allclose(found, expected, rtol=1e-10)
