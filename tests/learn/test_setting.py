"""The units of learning: against a regression, in other units, and what has no units."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

import titrant as tt
from learn.examples import changed, quadratic_log
from titrant.learn.classes import ConstantClass, LinearClass
from titrant.learn.setting import Units, cut, dose_range, dose_sd

ROUNDING = 1e-10

LOG = quadratic_log(80)
FREE = (-np.inf, np.inf)


def test_the_unit_of_dose_is_what_a_regression_leaves():
    residual = sm.OLS(LOG.treatment, sm.add_constant(LOG.context)).fit().resid
    assert dose_sd(LOG) == pytest.approx(residual.std(), rel=ROUNDING)


def test_two_contexts_that_say_the_same_change_nothing():
    twice = tt.LoggedData(np.hstack([LOG.context] * 2), LOG.treatment, LOG.outcome)
    assert dose_sd(twice) == pytest.approx(dose_sd(LOG), rel=ROUNDING)


def test_known_answer():
    # Doses 0 … 200 without context: s = sd = √((201² − 1)/12) = 58.0230; the .5 % quantile of 201
    # equally spaced doses is their 1st after the smallest: 1, and 199 on the other side.
    t = np.arange(201.0)
    log = tt.LoggedData(np.empty((201, 0)), t, np.tile([1.0, -1.0, 0.0], 67))
    units = Units.of(log)
    assert units.dose_sd == pytest.approx(np.sqrt((201**2 - 1) / 12))
    assert (units.low, units.high) == pytest.approx((1, 199))
    assert units.outcome_sd == pytest.approx(np.sqrt(2 / 3))


def test_units_scale_with_the_log():
    # Law: doses times 7 and outcomes times 3 plus 100 make every unit so much larger.
    ours, theirs = Units.of(LOG), Units.of(changed(LOG, dose=7, outcome=3, shift=100))
    assert theirs.dose_sd == pytest.approx(7 * ours.dose_sd)
    assert (theirs.low, theirs.high) == pytest.approx((7 * ours.low, 7 * ours.high))
    assert theirs.outcome_sd == pytest.approx(3 * ours.outcome_sd)


def test_each_dose_of_a_vector_has_its_own_unit():
    rng = np.random.default_rng(0)
    t = rng.normal(size=(100, 2)) * [1, 50]
    both = tt.LoggedData(rng.normal(size=(100, 1)), t, rng.normal(size=100))
    alone = [tt.LoggedData(both.context, t[:, j], both.outcome) for j in range(2)]
    np.testing.assert_allclose(dose_sd(both), [dose_sd(log)[0] for log in alone])


def test_bounds_of_every_row_and_limits_of_the_class_narrow_the_range():
    low = np.full(80, LOG.treatment.min() - 1)
    low[3] = min(0.2, LOG.treatment[3])
    log = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, bounds=(low, 9.0))
    assert dose_range(log, FREE, tails=False) == (low[3], 9.0)
    assert dose_range(log, (0.3, 0.9), tails=True) == (0.3, 0.9)
    assert dose_range(LOG, FREE, tails=False) == FREE


def test_a_policy_is_cut_and_a_constant_stays_one():
    units = Units(dose_sd=2.0, outcome_sd=1.0, low=-1.0, high=1.0)
    assert units.policy(ConstantClass().on(LOG), np.array([4.0])) == tt.Constant(1.0)
    learned = units.policy(LinearClass(standardize=False).on(LOG), np.array([0.0, 0.25, 0.0]))
    assert learned == tt.Clipped(tt.Linear([0.5, 0.0], 0.0, features=LOG.names), -1, 1)
    free = tt.Linear([1.0])
    assert cut(free, -np.inf, np.inf) is free


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            tt.LoggedData(np.eye(300)[:, :1], [*[5.0] * 299, 6.0], np.arange(300.0)),
            "The logged doses lie at 5 from the 0.5% to the 99.5% quantile",
        ),
        (
            tt.LoggedData(np.arange(20.0), 3 + 2 * np.arange(20.0), np.arange(20.0)),
            "a linear function of the context",
        ),
        (
            tt.LoggedData(np.eye(6)[:, :5], np.arange(6.0), np.arange(6.0)),
            "Of 6 rows with 5 contexts nothing can be learned",
        ),
        (
            tt.LoggedData(
                np.zeros((4, 0)), [0.0, 1.0, 5.0, 6.0], np.arange(4.0),
                bounds=([0, 0, 4, 4], [2, 2, 6, 6]),
            ),
            "a policy could give at least 4 and at most 2",
        ),
    ],
    ids=["constant", "function of context", "too few rows", "bounds without overlap"],
)  # fmt: skip
def test_logs_that_leave_nothing_to_learn(log, said):
    with pytest.raises(tt.DataError, match=said):
        Units.of(log)


def test_constant_outcomes_have_the_unit_1():
    assert Units.of(LOG.with_outcome(np.full(80, 3.0))).outcome_sd == 1.0
