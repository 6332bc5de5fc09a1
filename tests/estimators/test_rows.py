"""Rows and the problem of a bandwidth: what is taken, what stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from laws.designs import CASES, variants
from titrant.errors import InvalidArgument
from titrant.estimators import ESTIMATORS, Problem, SelfNormalized, SmoothedEstimator
from titrant.kernels import Boundary, Scale


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_terms_of_some_rows_are_some_of_the_terms(case):
    rows, index = replace(case.rows(), floor=0.1), np.array([31, 2, 2, 17])
    some = rows.take(index)
    assert (some.center, some.floor) == (rows.center, rows.floor)
    assert some.probability is None
    for estimator in ESTIMATORS:
        if isinstance(estimator, SmoothedEstimator):
            for variant in variants(estimator):
                whole = variant.terms(rows, case.scale)
                np.testing.assert_allclose(
                    variant.terms(some, case.scale), whole[index], rtol=1e-12, atol=1e-12
                )


def test_another_boundary_and_nothing_else():
    for estimator in ESTIMATORS:
        if isinstance(estimator, SmoothedEstimator):
            other = estimator.with_boundary(Boundary.MASS)
            assert other.boundary is Boundary.MASS
            assert other.with_boundary(estimator.boundary) == estimator


def test_a_field_that_is_missing():
    rows = CASES[0].rows()
    assert rows.need("q", "weight") is rows.q
    with pytest.raises(InvalidArgument) as error:
        replace(rows, q=None).need("q", "weight")
    assert str(error.value) == "`weight` needs `q` for its terms; the rows carry none."


def test_bandwidths_of_a_problem_are_in_spreads_of_each_dose():
    rows = CASES[2].rows()
    spread = np.array([0.5, 2.0])
    problem = Problem(SelfNormalized(), 40, spread, lambda statistic: statistic(rows), lambda: rows)
    expected = Scale.of([0.15, 0.6], 2)
    np.testing.assert_allclose(problem.scale(0.3).inverse_root, expected.inverse_root)
    assert problem.scale(0.3).volume == pytest.approx(0.09)
