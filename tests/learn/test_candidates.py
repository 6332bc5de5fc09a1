"""The candidates: where they start, and where they must end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from learn.examples import quadratic_log
from titrant.learn.candidates import (
    CANDIDATES,
    Candidate,
    LearningRows,
    first_starts,
    learn_candidates,
)
from titrant.learn.classes import LinearClass
from titrant.learn.setting import Units
from titrant.learn.tables import Curves
from titrant.optimize import Ball, Box, Free, Status
from titrant.outcome import DoseTable

SEARCH = 1e-4  # a search that stops at 2e-9 of the objective is this near in its parameters
EXACT = 1e-9

LOG = quadratic_log(150)


def problem(best):
    """Rows with the outcome model r̂ = (t − best(x))², best (n,)."""
    units = Units.of(LOG)
    grid = np.linspace(units.low, units.high, 81)
    table = DoseTable(units.low, units.high, (grid - best[:, None]) ** 2)
    rows = LearningRows.of(LOG, LOG.propensity, LinearClass().on(LOG), units)
    return rows.with_curves(Curves(table, (LOG.treatment - best) ** 2)), units


INSIDE = 0.3 * LOG.context[:, 0] + 0.2
WEAK = (Candidate("direct", None, 1e-12),)


def test_the_direct_method_finds_the_line_of_the_best_doses():
    # min Σ(τ − best)² over linear τ is least squares of best on the contexts.
    rng = np.random.default_rng(0)
    best = INSIDE + 0.1 * rng.normal(size=len(LOG))
    rows, units = problem(best)
    params, _ = learn_candidates(WEAK, rows, units, Free())
    line = np.linalg.lstsq(rows.phi, best, rcond=None)[0]
    np.testing.assert_allclose(params[0], line, atol=SEARCH)


def test_starts_are_the_mean_dose_the_best_constant_and_the_best_doses():
    rows, units = problem(INSIDE)
    mean, constant, line = first_starts(rows) * units.dose_sd
    np.testing.assert_allclose(mean, [LOG.treatment.mean(), 0, 0], atol=EXACT)
    grid = rows.table.grid
    nearest = grid[np.argmin(np.abs(grid - INSIDE.mean()))]
    np.testing.assert_allclose(constant, [nearest, 0, 0], atol=EXACT)
    step = grid[1] - grid[0]
    np.testing.assert_allclose(rows.phi @ line / units.dose_sd, INSIDE, atol=step)


def test_the_mean_dose_is_a_candidate_as_it_is():
    rows, units = problem(INSIDE)
    params, solutions = learn_candidates(CANDIDATES[:1], rows, units, Free())
    np.testing.assert_allclose(params[0] * units.dose_sd, [LOG.treatment.mean(), 0, 0], atol=EXACT)
    loss = np.mean((np.clip(LOG.treatment.mean(), units.low, units.high) - INSIDE) ** 2)
    assert solutions[0].value == pytest.approx(loss / units.outcome_sd, rel=1e-6)
    assert solutions[0].status is Status.CONVERGED


def test_a_stronger_ridge_leaves_smaller_slopes():
    rows, units = problem(LOG.context @ [1.0, -0.5])
    ridges = tuple(Candidate(str(r), None, r) for r in (10.0, 1.0, 0.1, 0.0))
    params, _ = learn_candidates(ridges, rows, units, Free())
    sizes = np.linalg.norm(params[:, 1:], axis=1)
    assert (np.diff(sizes) > 0).all()
    assert sizes[0] < 0.2 * sizes[-1]


@pytest.mark.parametrize("h", [0.4, 1.6])
def test_residuals_that_vanish_leave_the_direct_method(h):
    # A perfect model: y = r̂(t, x), so every doubly robust candidate is the direct one.
    rows, units = problem(INSIDE)
    perfect = replace(rows, rows=replace(rows.rows, y=rows.rows.r_logged))
    pair = (Candidate("direct", None, 0.01), Candidate("robust", h, 0.01))
    params, _ = learn_candidates(pair, perfect, units, Free())
    np.testing.assert_allclose(params[1], params[0], atol=SEARCH)


@pytest.mark.parametrize(
    "constraint",
    [
        Box(np.array([-np.inf, -0.1, -0.1]), np.array([np.inf, 0.1, 0.1])),
        Ball(0.15, counted=np.array([False, True, True])),
    ],
    ids=["box", "ball"],
)
def test_every_candidate_stays_within_the_constraint(constraint):
    rows, units = problem(LOG.context @ [2.0, -1.0])
    params, _ = learn_candidates(CANDIDATES, rows, units, constraint)
    beta = params * units.dose_sd
    np.testing.assert_allclose(constraint.project(beta), beta, atol=EXACT)
    assert np.abs(beta[-1, 1:]).max() > 0.05  # and the constraint binds
