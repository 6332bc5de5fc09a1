"""What an estimator refuses, and in which words: for every estimator that has the setting."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from laws.designs import CASES, name, ready
from titrant.errors import InvalidArgument
from titrant.estimators import ESTIMATORS, IPW, DirectMethod, DoublyRobust, SmoothedEstimator
from titrant.kernels import Boundary, Epanechnikov, Gaussian

REFUSED = {
    "kernel": [Epanechnikov, "epanechnikov", None, 3],
    "clip": [-0.1, math.nan, math.inf, "0.1", True],
    "boundary": ["linear", 1, None, True],
    "folds": [0, -1, 2.5, None, True],
    "seed": [-1, 0.5, None, True],
}
SETTINGS = [
    (estimator, field, value)
    for estimator in ESTIMATORS
    for field, values in REFUSED.items()
    if field in {f.name for f in fields(estimator)}
    for value in values
]


@pytest.mark.parametrize(
    ("estimator", "field", "value"), SETTINGS, ids=[f"{name(e)}-{f}-{v}" for e, f, v in SETTINGS]
)
def test_settings_outside_their_range(estimator, field, value):
    owner = type(estimator).__name__
    with pytest.raises(InvalidArgument) as error:
        replace(estimator, **{field: value})
    assert str(error.value).startswith(f"The `{field}` of `{owner}` must be ")
    assert str(error.value).endswith(f"; got {value!r}.")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_estimators_are_values(estimator):
    assert replace(estimator) == estimator
    assert hash(replace(estimator)) == hash(estimator)
    with pytest.raises(FrozenInstanceError):
        setattr(estimator, next((f.name for f in fields(estimator)), "anything"), None)
    with pytest.raises(TypeError):
        type(estimator)(5)  # keywords only
    with pytest.raises(TypeError):
        type(estimator)(bandwith=0.1)  # a typo is not swallowed


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_defaults_of_smoothing(estimator):
    if isinstance(estimator, SmoothedEstimator):
        assert estimator.kernel == Epanechnikov()
        assert estimator.boundary is Boundary.LINEAR
        assert estimator.clip is None


NEEDS = [
    (estimator, field)
    for estimator in ESTIMATORS
    for field, needed in [
        ("q", isinstance(estimator, SmoothedEstimator)),
        ("r_tau", estimator.uses_outcome_model),
        ("r_logged", estimator.uses_outcome_model and estimator.uses_propensity),
    ]
    if needed
]


@pytest.mark.parametrize(("estimator", "field"), NEEDS, ids=[f"{name(e)}-{f}" for e, f in NEEDS])
def test_says_which_array_is_missing(estimator, field):
    case = CASES[0]
    with pytest.raises(InvalidArgument, match=f"needs `{field}` for its terms"):
        estimator.terms(replace(case.rows(), **{field: None}), case.scale)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_uses_what_it_says_and_nothing_else(estimator):
    # The flags tell the evaluation what to estimate; what they leave out may be missing.
    case = CASES[0]
    rows = case.rows()
    spare = {}
    if not estimator.uses_propensity:
        spare |= {"q": None, "probability": None}
    if not estimator.uses_outcome_model:
        spare |= {"r_tau": None, "r_logged": None, "r_slope": None}
    bare = replace(rows, x=None, **spare)
    terms = ready(estimator, rows).terms(bare, case.scale)
    np.testing.assert_array_equal(terms, ready(estimator, rows).terms(rows, case.scale))
    wider = ready(estimator, rows).terms(rows, case.scale.times(1.5))
    assert np.array_equal(terms, wider) is not isinstance(estimator, SmoothedEstimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_sizes_of_terms(estimator):
    case = CASES[0]
    rows = case.rows()
    estimator = ready(estimator, rows)
    terms = estimator.terms(rows, case.scale)
    assert terms.shape == (40, estimator.size)
    assert estimator.dterms(rows, case.scale).shape == (40, estimator.size, 1)
    assert estimator.gradient(terms.mean(axis=0)).shape == (estimator.size,)
    assert type(estimator.value(terms.mean(axis=0))) is float
    assert estimator.weights(terms).shape == (40,)


def test_a_full_matrix_cannot_be_corrected_at_bounds():
    case, bounded = CASES[4], CASES[3].rows()
    for kernel in (Epanechnikov(), Gaussian()):
        for call in (IPW(kernel=kernel).terms, IPW(kernel=kernel).dterms):
            with pytest.raises(InvalidArgument, match="matrix cannot be corrected at bounds"):
                call(bounded, case.scale)
    uncorrected = IPW(boundary=Boundary.NONE)
    free = replace(bounded, lower=None, upper=None)
    np.testing.assert_array_equal(
        uncorrected.terms(bounded, case.scale), uncorrected.terms(free, case.scale)
    )


@pytest.mark.parametrize("estimator", [DoublyRobust, DirectMethod])
def test_one_fold_is_for_models_of_ones_own(estimator):
    with pytest.raises(InvalidArgument, match="at least 2 for the default outcome model"):
        estimator(folds=1)
    assert estimator(outcome=LinearRegression(), folds=1).folds == 1
