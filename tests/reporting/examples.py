"""Logs and reports that the tests of this room share; quick estimators throughout."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import titrant as tt
from titrant.data.simulate import DESIGNS
from titrant.evaluation.evaluation import Evaluation
from titrant.reporting import Report, gather

LOG = DESIGNS["dosing"].draw(600, 3)
BEST = "b<i>st & $x$"
"""A name that would break a page that does not escape it."""
POLICIES = {
    "flat": tt.Constant(35.0),
    BEST: tt.Clipped(tt.Linear([0.35, -0.2, -9.0], 19.0, features=LOG.names), 5.0, 75.0),
}
BANDWIDTH = 6.0
"""In mg; choosing one for each of 25 doses would take most of the time of a test."""
SETTINGS = {"seed": 0, "policy": ("flat=constant:35",), "maximize": True, "clip": None}
TRUTH = {"flat": 5.1, BEST: 3.0}
LEARNED = {
    "name": BEST,
    "deployed": True,
    "honest": {
        "value": 3.3125,
        "interval": [3.0625, 3.5625],
        "verdict": "warn",
        "against": {"status quo": {"difference": -2.9375, "interval": [-3.3125, -2.5625]}},
    },
    "chosen": "direct",
    "because": "It scored best.",
    "decision": "The improvement is clear.",
    "candidates": [
        {
            "name": "mean dose",
            "behind": 2.0,
            "behind_se": 0.125,
            "weight": 0.0625,
            "chosen": False,
        },
        {"name": "direct", "behind": 0.0, "behind_se": 0.0, "weight": 0.9375, "chosen": True},
    ],
    "outcome_models": {"ridge": 0.25, "trees": 0.75},
}


CURVES = tt.Clipped(
    tt.Additive(
        [0.1, 0.0, -4.0],
        24.0,
        knots=[[50, 65, 75, 85, 110], [25, 50, 60, 75], []],
        bends=[0, 3, 1, 0, 2, 1.5, -1, 0, 1],
        reach=[20, 15, 0],
        features=LOG.names,
    ),
    5.0,
    75.0,
)
"""A rule with curves of two contexts and a line in the third."""


@cache
def evaluation() -> Evaluation:
    return Evaluation.of(LOG, POLICIES, tt.SelfNormalized(), None)


@cache
def comparison() -> tt.Comparison:
    return evaluation().compare(BANDWIDTH)


def report(**changed: object) -> Report:
    """Return the report of the two policies, with some arguments changed."""
    given = {
        "level": 0.9,
        "bandwidth": BANDWIDTH,
        "settings": SETTINGS,
        "truth": TRUTH,
        "config": "seed = 0\n",
        **changed,
    }
    return gather(comparison(), evaluation(), **given)


@cache
def usual() -> Report:
    return report()


@cache
def usual_learned() -> Report:
    # The best policy is the focus either way, so nothing else changes.
    return replace(usual(), learned=LEARNED)


def made(
    log, policies, estimator=None, *, bandwidth=BANDWIDTH, propensity=None, **changed
) -> Report:
    """Return the report of any policies on any log."""
    found = Evaluation.of(log, policies, estimator or tt.SelfNormalized(), propensity)
    compared = found.compare(bandwidth, allow_untrusted=True)
    return gather(compared, found, bandwidth=bandwidth, **changed)
