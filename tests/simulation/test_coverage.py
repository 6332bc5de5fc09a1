"""Do intervals hold? Repeated logs of a smooth design, in a reduced and seeded form."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import DESIGN, FAR, NEAR
from titrant import Constant, DoublyRobust, SelfNormalized, compare, curve, evaluate
from titrant.inference import Normal, PoissonBootstrap, RobustBiasCorrected


def logs(times, *, n, seed):
    rng = np.random.default_rng(seed)
    return (DESIGN.draw(n, rng) for _ in range(times))


def inside(interval, truth):
    low, high = interval
    return low < truth < high


@pytest.mark.long
@pytest.mark.slow
def test_the_default_interval_covers(replications):
    # 300 logs know a coverage of .95 to .0126.
    times = replications(300, 3_000)
    truth = DESIGN.value_of_offset(0.1)
    found = [
        [
            inside(evaluate(log, NEAR, estimator=SelfNormalized(), interval=kind).interval(), truth)
            for kind in (None, RobustBiasCorrected(recentered=True))
        ]
        for log in logs(times, n=400, seed=1)
    ]
    around_value, around_corrected = np.mean(found, axis=0)
    assert 0.92 <= around_corrected <= 0.98
    # The value has the smaller error of the two, so the same width around it covers more.
    assert around_value >= around_corrected


@pytest.mark.long
@pytest.mark.slow
def test_at_a_wide_bandwidth_only_correction_covers(replications):
    # h = .8: bias .128, twice the standard error. The naive interval cannot know.
    times = replications(200, 2_000)
    truth = DESIGN.value_of_offset(0.1)
    methods = (RobustBiasCorrected(recentered=True), PoissonBootstrap(draws=200), Normal())
    covered = np.array(
        [
            [
                inside(
                    evaluate(
                        log, NEAR, estimator=SelfNormalized(), bandwidth=0.8, interval=method
                    ).interval(),
                    truth,
                )
                for method in methods
            ]
            for log in logs(times, n=400, seed=2)
        ]
    )
    corrected, bootstrap, naive = covered.mean(axis=0)
    assert 0.91 <= corrected <= 0.98
    assert bootstrap >= 0.90  # percentiles of 200 draws, and as far as the biased estimate itself
    assert naive < 0.5


@pytest.mark.slow
@pytest.mark.long
def test_paired_contrasts_cover(replications):
    # V(near) − V(far) = .01 − .49, with an outcome model that leaves curvature.
    times = replications(150, 2_000)
    truth = DESIGN.value_of_offset(0.1) - DESIGN.value_of_offset(0.7)
    estimator = DoublyRobust(outcome=LinearRegression())
    covered = [
        inside(
            compare(
                log,
                {"near": NEAR, "far": FAR},
                estimator=estimator,
                bandwidth=0.5,
                interval=RobustBiasCorrected(recentered=True),
            )
            .contrast("near", "far")
            .interval(),
            truth,
        )
        for log in logs(times, n=500, seed=3)
    ]
    assert 0.90 <= np.mean(covered) <= 0.99  # 150 logs: ± .018


@pytest.mark.long
@pytest.mark.slow
def test_the_band_covers_the_whole_dose_response_curve(replications):
    # V(c) = 1.5 + Var b + (c − ¼)², b = x₀ − x₁/2. All five points at once; one by one they miss.
    times = replications(150, 2_000)
    doses = np.array([-0.3, 0.0, 0.3, 0.6, 0.9])
    truth = 1.5 + 1.25 / 12 + (doses - 0.25) ** 2
    whole, single = [], []
    for log in logs(times, n=500, seed=4):
        found = curve(log, Constant, doses, estimator=SelfNormalized(), bandwidth=0.45)
        assert not found.refused
        for simultaneous, kept in ((True, whole), (False, single)):
            band = found.band(simultaneous=simultaneous)
            kept.append(((band[:, 0] < truth) & (truth < band[:, 1])).all())
    assert 0.90 <= np.mean(whole) <= 0.995  # 150 logs: ± .018
    assert np.mean(single) < np.mean(whole) - 0.05
