"""No row is judged by models of the default call that have seen its fold, nor its group's rows."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import titrant as tt
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine

N = 200
each_kind = pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups, point masses"])


def log_of(*, grouped: bool, rows=None, column: str = "") -> tt.LoggedData:
    """Return a log, a column of some rows in another order: its mean and spread stay."""
    rng = np.random.default_rng(8)
    x = np.column_stack([rng.normal(size=N), rng.integers(0, 12, N)])
    t = np.sin(2.0 * x[:, 0]) + 0.7 * rng.normal(size=N)
    if grouped:
        t = np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-x[:, 0])), 0.0, t)
    y = t**2 + np.abs(x[:, 0]) + 0.1 * x[:, 1] + 0.5 * rng.normal(size=N)
    columns = {"treatment": t, "outcome": y}
    if column:
        columns[column][rows] = columns[column][rows][::-1]
    groups = rng.permutation(np.arange(N) // 4) if grouped else None
    return tt.LoggedData(x, **columns, groups=groups)


def nuisances_of(log: tt.LoggedData) -> Nuisances:
    survey = survey_of(log, Engine(pin=False))
    return Nuisances.of(log, tt.DoublyRobust(), None, survey, survey.masses)


@cache
def fitted(*, grouped: bool) -> tuple[tt.LoggedData, Nuisances]:
    log = log_of(grouped=grouped)
    return log, nuisances_of(log)


@each_kind
def test_outcomes_of_a_fold_have_no_say_in_what_is_expected_of_its_rows(grouped):
    log, one = fitted(grouped=grouped)
    prepared = one.prepare(log)
    own = prepared.fold == 2
    assert (one.masses is not None) == grouped
    changed = nuisances_of(log_of(grouped=grouped, rows=own, column="outcome")).prepare(log)
    # Predictions of forests and landmarks, and by these that of the outcome.
    for name in ("seen", "r_logged"):
        before, after = getattr(prepared, name), getattr(changed, name)
        np.testing.assert_array_equal(after[own], before[own])
        assert not np.allclose(after[~own], before[~own])


def members_of(made: Nuisances, fold: int) -> dict[str, object]:
    """Return the densities, by name, that judge the rows of a fold."""
    law = made.propensity
    kept = [name for name, weight in zip(law.names_, law.weights_, strict=True) if weight > 0.0]
    return dict(zip(kept, law.averages_[fold].models, strict=True))


@each_kind
def test_doses_of_a_fold_have_no_say_in_the_densities_of_its_rows(grouped):
    # But for the weights of the densities, and for where the searches of later folds begin.
    log, one = fitted(grouped=grouped)
    prepared, asked = one.prepare(log), np.full(N, 0.4)
    own = prepared.fold == 0
    other = nuisances_of(log_of(grouped=grouped, rows=own, column="treatment"))
    np.testing.assert_array_equal(other.prepare(log).seen[own], prepared.seen[own])
    for fold in (0, 1):
        rows = prepared.fold == fold
        before, after = members_of(one, fold), members_of(other, fold)
        both = before.keys() & after.keys()
        assert both
        for name in both:
            found = [m[name].density(prepared.seen[rows], asked[rows]) for m in (before, after)]
            assert np.array_equal(*found) == (fold == 0)
    if grouped:
        before, after = (made.probabilities.fits_[0].coef for made in (one, other))
        np.testing.assert_array_equal(after, before)
