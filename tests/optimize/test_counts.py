"""What a search may cost, counted and never timed: evaluations and readings of the rows.

The limits are what was counted when they were written, with a margin. A change that needs more
says so here.
"""

from __future__ import annotations

import numpy as np
import pytest

from optimize.problems import POLICIES, OwnSums, around, fused, log
from titrant.estimators import IPW, DoublyRobust, SelfNormalized
from titrant.optimize import LBFGS, PolicyObjective

MARGIN = 1.25  # another order of summation moves counts by a few percent
POLICY = POLICIES["linear"]
ROUNDS = 150
"""Of 32 self-normalized restarts: as many readings of the rows."""
SEARCHES = {
    "centered": (IPW(centered=True), {}, 498),
    "doubly robust": (DoublyRobust(self_normalized=False), {}, 1183),
    "self-normalized": (SelfNormalized(), {}, 2647),
    "ESS floor": (SelfNormalized(), {"ess_floor": 40.0}, 3027),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_evaluations_of_32_restarts(name):
    estimator, more, counted = SEARCHES[name]
    objective = fused(estimator, POLICY, log(120, seed=5), ridge=0.01, **more)
    found = LBFGS().minimize(objective, around(POLICY, 32, seed=9))
    assert found.evaluations <= MARGIN * counted


def test_a_round_of_all_restarts_is_one_reading_of_the_rows():
    # Law: over a source of rows the cost is rounds, not evaluations: each round asks once, for
    # all runs that are still going.
    objective = fused(SelfNormalized(), POLICY, log(120, seed=5), in_memory=False, ridge=0.01)
    asked = []

    def statistics(params):
        asked.append(len(params))
        return objective.statistics(params)

    rounds = []
    search = LBFGS(progress=lambda number, value: rounds.append((number, value)))
    counting = PolicyObjective(
        statistics=OwnSums(statistics), estimator=SelfNormalized(), ridge=0.01
    )
    found = search.minimize(counting, around(POLICY, 32, seed=9))
    assert len(asked) == len(rounds)
    assert sum(asked) == found.evaluations
    assert asked[0] == 32
    # Runs end and none begins anew.
    assert np.all(np.diff(asked) <= 0)
    assert len(asked) <= MARGIN * ROUNDS
