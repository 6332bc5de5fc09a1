"""A checkpoint belongs to one log and one question: nothing else goes on from it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import titrant as tt
from equivalence.test_sources import Chunks
from titrant.data.simulate import Quadratic
from titrant.evaluation.survey import digest_of, sums_of, survey_of
from titrant.execute import Engine

N, PART = 256, 64
LOG = Quadratic().draw(N, 1)
# Losses of few binary digits with mean ½: 1 − loss has the same moments to the last bit.
SHORT = np.round(LOG.outcome * 1024) / 1024
HALF = LOG.with_outcome(SHORT - SHORT.mean() + 0.5)


def remade(log, **changed):
    """The log with other arrays."""
    parts = {"context": log.context, "treatment": log.treatment, "outcome": log.outcome,
             "propensity": log.propensity, **changed}  # fmt: skip
    return tt.LoggedData(**parts, names=log.names)


def one_bit(array, row=7):
    """The array with one number moved to the next one that a computer knows."""
    other = np.array(array)
    other[row] = np.nextafter(other[row], np.inf)
    return other


def permuted(log):
    return log.rows(np.random.default_rng(0).permutation(len(log)))


def swapped(log):
    """The first two rows change places."""
    order = np.arange(len(log))
    order[[0, 1]] = [1, 0]
    return log.rows(order)


OTHER_LOGS = {
    "1 − loss": lambda log: log.with_outcome(1 - log.outcome),
    "−loss": lambda log: log.with_outcome(-log.outcome),
    "−loss and −dose": lambda log: remade(log, outcome=-log.outcome, treatment=-log.treatment),
    "rows in another order": permuted,
    "two rows swapped": swapped,
    "one row less": lambda log: log.rows(slice(0, len(log) - 1)),
    "a bit of a loss": lambda log: log.with_outcome(one_bit(log.outcome)),
    "a bit of a dose": lambda log: remade(log, treatment=one_bit(log.treatment)),
    "a bit of a propensity": lambda log: remade(log, propensity=one_bit(log.propensity)),
    "a bit of a context": lambda log: remade(log, context=one_bit(log.context)),
    "contexts exchanged": lambda log: remade(log, context=log.context[:, ::-1].copy()),
}
others = pytest.mark.parametrize("other", OTHER_LOGS.values(), ids=OTHER_LOGS)


# The hash of the rows


@pytest.mark.parametrize("size", [1, 7, PART, N])
def test_parts_add_up_to_the_whole_in_any_cut(size):
    assert survey_of(Chunks(LOG, size), Engine()).sums.digest == digest_of(LOG)


@given(st.lists(st.integers(1, N - 1), max_size=6))
def test_sums_of_digests_are_those_of_the_rows(ends):
    edges = [0, *sorted(set(ends)), N]
    parts = [sums_of(1.0, LOG.rows(slice(a, b))) for a, b in pairwise(edges)]
    total = parts[0]
    for part in parts[1:]:
        total += part
    assert total.digest == digest_of(LOG)


@others
def test_another_log_has_another_digest(other):
    assert digest_of(other(LOG)) != digest_of(LOG)


def test_bounds_belong_to_the_rows():
    rows = {"context": LOG.context, "treatment": LOG.treatment, "outcome": LOG.outcome}
    found = {digest_of(tt.LoggedData(**rows, bounds=b)) for b in [None, (-9, 9), (-9, 8)]}
    assert len(found) == 3


# The search


def learned(log, folder, **settings):
    how = {"procedure": tt.CPO(bandwidth=0.8, restarts=2), **settings}
    learner = tt.PolicyLearner(honest=False, executor=Engine(), checkpoint=folder, **how)
    return learner.fit(Chunks(log, PART))


def states(folder):
    return len(list(folder.glob("search-*.npz")))


def test_the_same_search_finds_its_state(tmp_path):
    first = learned(HALF, tmp_path)
    assert learned(HALF, tmp_path).policy_ == first.policy_
    assert states(tmp_path) == 1


def test_another_log_does_not_go_on_from_it(tmp_path):
    learned(HALF, tmp_path)
    for number, (name, other) in enumerate(OTHER_LOGS.items(), 2):
        found = learned(other(HALF), tmp_path)
        assert states(tmp_path) == number, name
        assert found.policy_ == learned(other(HALF), None).policy_, name


def test_losses_of_the_same_moments_have_another_policy(tmp_path):
    other = HALF.with_outcome(1 - HALF.outcome)
    one, two = (survey_of(Chunks(log, PART), Engine()) for log in (HALF, other))
    assert (one.center, one.outcome_sd) == (two.center, two.outcome_sd)
    assert learned(HALF, tmp_path).policy_ != learned(other, tmp_path).policy_


def narrow(_, t):
    return np.exp(-0.5 * (t / 0.8) ** 2) + 0.01


def wide(_, t):
    return np.exp(-0.5 * (t / 1.6) ** 2) + 0.01


narrow.__qualname__ = wide.__qualname__ = "density"

OTHER_QUESTIONS = {
    "a reward": {"maximize": True},
    "a bandwidth": {"procedure": tt.CPO(bandwidth=0.9, restarts=2)},
    "an estimator": {"procedure": tt.CPO(estimator=tt.IPW(), bandwidth=0.8, restarts=2)},
    "a policy class": {"policy": tt.Constant(0.0)},
    "a density": {"propensity": tt.Known(wide)},
}


def test_another_question_does_not_go_on_from_it(tmp_path):
    learned(HALF, tmp_path, propensity=tt.Known(narrow))
    for number, (name, change) in enumerate(OTHER_QUESTIONS.items(), 2):
        learned(HALF, tmp_path, **{"propensity": tt.Known(narrow), **change})
        assert states(tmp_path) == number, name


def test_another_titrant_does_not_go_on_from_it(tmp_path, monkeypatch):
    learned(HALF, tmp_path)
    monkeypatch.setattr("titrant.learn.cpo.installed", lambda: "0.0.0 (source 0)")
    learned(HALF, tmp_path)
    assert states(tmp_path) == 2
