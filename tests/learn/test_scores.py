"""Scores of candidates and how they become one policy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import sem

import titrant as tt
from learn.examples import quadratic_log
from titrant.data.simulate import DESIGNS
from titrant.learn.candidates import (
    BANDWIDTH,
    SCORE_FLOOR,
    HeldOutScores,
    LearningRows,
    paired,
    scores,
    weights_of,
)
from titrant.learn.classes import LinearClass, TreeClass
from titrant.learn.setting import Units
from titrant.learn.tables import Curves
from titrant.outcome import DoseTable, ridge_pair

ROUNDING = 1e-12


def rows_of(log) -> tuple[LearningRows, Units]:
    """A log with an outcome model r̂(t, x) = 1 + t², known exactly to the table."""
    units = Units.of(log)
    grid = np.linspace(units.low, units.high, 81)
    table = DoseTable(units.low, units.high, np.tile(1 + grid**2, (len(log), 1)))
    rows = LearningRows.of(log, log.propensity, LinearClass().on(log), units)
    return rows.with_curves(Curves(table, 1 + log.treatment**2)), units


@pytest.mark.parametrize("bounds", [None, (-3.0, 3.0)], ids=["unbounded", "bounded"])
def test_scores_are_those_of_a_loop(bounds):
    log = quadratic_log(40).with_bounds(bounds)
    rows, units = rows_of(log)
    params = np.array([[0.3, 0.5, -0.2], [0.0, 0.0, 0.0], [40.0, 0.0, 0.0]])
    h, s = BANDWIDTH * units.dose_sd, units.dose_sd
    expected = np.empty((3, 40))
    for j, beta in enumerate(params):
        for i in range(40):
            tau = min(max(rows.phi[i] @ beta, units.low), units.high)
            u = (tau - log.treatment[i]) / h
            assert bounds is None or (-3 + h < tau < 3 - h)  # where the boundary changes nothing
            w = 0.75 * max(1 - u * u, 0) / (h * max(log.propensity[i], SCORE_FLOOR / s))
            expected[j, i] = 1 + tau**2 + w * (log.outcome[i] - 1 - log.treatment[i] ** 2)
    np.testing.assert_allclose(scores(params, rows, units), expected, rtol=1e-9)


def test_rows_without_a_model_say_so():
    log = quadratic_log(40)
    rows = LearningRows.of(log, log.propensity, LinearClass().on(log), Units.of(log))
    with pytest.raises(tt.InvalidArgument, match="carry no outcome model"):
        scores(np.zeros((1, 3)), rows, Units.of(log))


def test_some_rows_of_rows():
    log = quadratic_log(40).with_bounds((-9, 9))
    rows, units = rows_of(log)
    index = np.array([3, 5, 8])
    part = LearningRows.of(log.rows(index), log.propensity[index], LinearClass().on(log), units)
    table = DoseTable(rows.table.lower, rows.table.upper, rows.table.values[index])
    kept = rows.only(index, Curves(table, rows.rows.r_logged[index]))
    np.testing.assert_array_equal(kept.phi, part.phi)
    for name in ("t", "y", "q", "lower", "upper"):
        np.testing.assert_array_equal(getattr(kept.rows, name), getattr(part.rows, name))
    assert len(kept.table.values) == 3


# Three candidates on four rows, by hand.
# best: 1, 2, 3, 2 (mean 2). second: differences 1, −1, 1, 1: mean ½, sd √(¾), SE √(¾)/2 = .43301,
# z = 1.15470, weight exp(−2.30940) = .09933. third: the same as the best, weight 1.
SCORE = np.array([[2.0, 1.0, 4.0, 3.0], [1.0, 2.0, 3.0, 2.0], [1.0, 2.0, 3.0, 2.0]])
SECOND = np.exp(-0.5 / (np.sqrt(0.75) / 2) / 0.5)


def test_weights_by_hand():
    w = weights_of(SCORE)
    np.testing.assert_allclose(w, np.array([SECOND, 1, 1]) / (2 + SECOND), rtol=ROUNDING)
    assert pytest.approx(0.09933, abs=1e-5) == SECOND


def test_the_weights_know_no_units():
    # Law: scores times 8 plus 100 have the same weights.
    np.testing.assert_allclose(weights_of(8 * SCORE + 100), weights_of(SCORE), rtol=ROUNDING)


def test_a_difference_that_never_varies_is_decisive():
    np.testing.assert_array_equal(weights_of(np.array([[1.0, 2.0], [2.0, 3.0]])), [1.0, 0.0])


def test_paired_is_the_mean_and_its_standard_error():
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    mean, se = paired(a, b)
    assert mean == pytest.approx(np.mean(a - b))
    assert se == pytest.approx(sem(a - b, ddof=0))


def held_out(behind: float) -> HeldOutScores:
    """The best candidate's scores vary by 1 around those of an average ``behind`` SEs behind."""
    wiggle = np.tile([1.0, -1.0], 8)  # sd 1, SE ¼
    return HeldOutScores(
        np.stack([np.zeros(16), np.ones(16)]), np.array([0.7, 0.3]), wiggle + behind / 4
    )


@pytest.mark.parametrize(("behind", "alone"), [(-1.0, False), (0.2, False), (0.3, True)])
def test_the_average_is_kept_unless_clearly_worse(behind, alone):
    found = held_out(behind)
    assert found.best_alone is alone
    params = np.array([[1.0, 0.0], [0.0, 10.0]])
    expected = [1.0, 0.0] if alone else [0.7, 3.0]
    np.testing.assert_allclose(found.combined(params), expected)


def test_the_reasons_are_written_out():
    names = ("a", "b")
    said = held_out(0.3).to_dict(names)
    assert said["chosen"] == "a"
    assert "0.075 above that of `a`, the best (SE 0.25)" in said["because"]
    entry = {"behind_the_chosen": 1.0, "behind_the_chosen_se": 0.0, "weight": 0.3}
    assert said["scores"]["b"] == entry


def test_scores_are_told_less_that_of_what_was_chosen():
    said = held_out(-1.0).to_dict(("a", "b"))
    assert said["chosen"] == "weighted average"
    # The average scores ¼ less than the best candidate, in scores that vary by 1: SE ¼.
    assert said["scores"]["a"]["behind_the_chosen"] == pytest.approx(0.25)
    assert said["scores"]["a"]["behind_the_chosen_se"] == pytest.approx(0.25)
    assert said["scores"]["b"]["behind_the_chosen"] == pytest.approx(1.25)


@pytest.mark.parametrize("kind", [LinearClass(), TreeClass()], ids=["averaged", "alone"])
def test_no_score_is_told_as_a_value(kind):
    # A score is a smoothed loss: beside the honest value it would be taken for one.
    log = DESIGNS["synthetic"].draw(200, 4)
    far = log.with_outcome(log.outcome + 1e6)
    procedure = tt.StackedDR(models=ridge_pair())
    learner = tt.PolicyLearner(policy=kind, procedure=procedure, honest=False).fit(far)
    told = learner.learned_.report["candidates"]
    assert told["scores"]
    for entry in told["scores"].values():
        assert set(entry) == {"behind_the_chosen", "behind_the_chosen_se", "weight"}
        assert all(abs(x) < 1e5 for x in entry.values())
    assert set(told) == {"chosen", "because", "scores"}
