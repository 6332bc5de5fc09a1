"""What every selector owes: no units, no zero, no order; data in reach or a refusal; a reason.

Each law runs over the room's list of selectors, so a new one is held to it the moment it exists.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from bandwidth.problems import affine, logged, name, problem, redosed
from titrant.bandwidth import (
    SELECTORS,
    BandwidthSelector,
    Fixed,
    LeaveOneOut,
    PlugIn,
    RuleOfThumb,
    path_of,
)
from titrant.bandwidth.path import usable
from titrant.errors import NoOverlap
from titrant.estimators import (
    ESTIMATORS,
    IPW,
    DoublyRobust,
    SelfNormalized,
    SmoothedEstimator,
)
from titrant.estimators.form import has_kernel_weight
from titrant.kernels import Gaussian

ROOM = "titrant.bandwidth"
SAME = 1e-7  # rounding, after a fifth root and a division by a small curvature

SMOOTHED = [e for e in ESTIMATORS if isinstance(e, SmoothedEstimator)]
# Plain weighting moves with the zero of the outcome, and so does the paper's plug-in.
EQUIVARIANT = [e for e in SMOOTHED if e != IPW()]
STABLE = [s for s in SELECTORS if s != PlugIn(as_printed=True)]
# It looks at the outcome not at all and keeps to its formula wherever two rows are in reach.
BLIND = RuleOfThumb()
# Cross-validation is a minimum of noise: its choice need not shrink on one data set.
STEADY = [s for s in SELECTORS if s != LeaveOneOut()]

every = pytest.mark.parametrize("selector", SELECTORS, ids=name)


def pairs(selectors, estimators):
    """Each selector with each estimator, but for plug-ins that know the kernel's weight alone."""
    return pytest.mark.parametrize(
        ("selector", "estimator"),
        [
            pytest.param(selector, estimator, id=f"{name(selector)}-{estimator!r}")
            for selector in selectors
            for estimator in estimators
            if has_kernel_weight(estimator) or not isinstance(selector, PlugIn)
        ],
    )


every_pair = pairs(SELECTORS, SMOOTHED)


def chosen(selector, estimator, rows):
    return selector.select(problem(estimator, rows))


def test_the_list_holds_every_selector_once():
    assert len(set(map(name, SELECTORS))) == len(SELECTORS)
    listed = {type(s).__name__ for s in (*SELECTORS, Fixed(1.0))}
    room = [s for s in BandwidthSelector.__subclasses__() if s.__module__.startswith(ROOM)]
    assert listed == {cls.__name__ for cls in room}


@pairs(STABLE, EQUIVARIANT)
def test_shifting_the_outcome_changes_nothing(selector, estimator):
    rows = logged()
    before, after = (chosen(selector, estimator, r) for r in (rows, affine(rows, 1.0, 50.0)))
    np.testing.assert_allclose(after.h, before.h, rtol=SAME)
    if before.bias is not None:
        np.testing.assert_allclose([after.bias, after.se], [before.bias, before.se], rtol=SAME)


@every_pair
@pytest.mark.parametrize("factor", [100.0, -0.02])
def test_scaling_the_outcome_scales_the_errors_alone(selector, estimator, factor):
    rows = logged()
    before, after = (chosen(selector, estimator, r) for r in (rows, affine(rows, factor, 0.0)))
    np.testing.assert_allclose(after.h, before.h, rtol=SAME)
    for a, b in ((after.bias, before.bias), (after.se, before.se)):
        assert (a is None) == (b is None)
        assert b is None or abs(a) == pytest.approx(abs(factor * b), rel=SAME)


@every_pair
def test_scaling_the_dose_scales_the_bandwidth(selector, estimator):
    rows = logged()
    before, after = (chosen(selector, estimator, r) for r in (rows, redosed(rows, 0.001)))
    np.testing.assert_allclose(after.h, 0.001 * before.h, rtol=SAME)


@pairs(SELECTORS, EQUIVARIANT)
def test_the_order_of_rows_does_not_matter(selector, estimator):
    rows = logged()  # few enough that nothing is sampled
    order = np.random.default_rng(1).permutation(len(rows.y))
    before, after = (chosen(selector, estimator, r) for r in (rows, rows.take(order)))
    np.testing.assert_allclose(after.h, before.h, rtol=SAME)


@every
def test_rows_in_chunks_give_the_choice_of_the_whole(selector):
    rows = logged()
    whole, chunks = (selector.select(problem(DoublyRobust(), rows, k)) for k in (1, 7))
    np.testing.assert_allclose(chunks.h, whole.h, rtol=SAME)


@every
def test_the_same_problem_has_the_same_answer_to_the_last_bit(selector):
    large = logged(700)  # more rows than any selector looks at, so that some are drawn
    first, second = (chosen(selector, SelfNormalized(), large) for _ in range(2))
    assert first.to_dict() == second.to_dict()


@every_pair
@pytest.mark.parametrize("bounded", [False, True], ids=["unbounded", "bounded"])
def test_the_choice_is_one_that_the_data_can_bear(selector, estimator, bounded):
    task = problem(estimator, logged(bounded=bounded))
    choice = selector.select(task)
    g = choice.h / task.spread[0]
    assert choice.flag is None or not choice.flag.startswith("fallback")
    path = path_of(task)
    factors = path.factors[usable(path)]
    assert factors[0] * (1 - 1e-12) <= g <= factors[-1] * (1 + 1e-12)
    there = path_of(task, np.array([g]))
    assert there.count[0] >= 8
    assert np.isfinite(there.values[0])


@every_pair
def test_vector_doses_have_one_bandwidth_each_in_proportion_to_their_spread(selector, estimator):
    rows = logged(d=2)
    h = chosen(selector, estimator, rows).h
    assert h.shape == (2,)
    assert h[1] / h[0] == pytest.approx(rows.t[:, 1].std() / rows.t[:, 0].std(), rel=1e-12)
    # The units of one dose are not those of the other.
    unit = np.array([1.0, 60.0])
    other = replace(
        rows, t=rows.t * unit, tau=rows.tau * unit, q=rows.q / 60, floor=rows.floor / 60
    )
    np.testing.assert_allclose(chosen(selector, estimator, other).h, h * unit, rtol=SAME)


@every
@pytest.mark.parametrize("d", [1, 2])
def test_no_overlap_is_refused(selector, d):
    rows = logged(d=d, off=40.0)
    with pytest.raises(NoOverlap, match=r"No bandwidth up to 2\.72 sd\(T\) reaches .* 240 rows"):
        chosen(selector, SelfNormalized(), rows)


@every
def test_few_rows_in_reach_give_a_flagged_rule_of_thumb(selector):
    rows = logged(n=14, off=1.5)
    task = problem(SelfNormalized(), rows)
    choice = selector.select(task)
    assert np.isfinite(choice.h)
    assert path_of(task, np.array([choice.h / task.spread[0]])).count[0] >= 2
    if selector != BLIND:
        assert choice.flag.startswith("fallback: ")
        assert "rule of thumb" in choice.reason


def test_the_rule_of_thumb_moves_only_where_it_reaches_no_two_rows():
    near = chosen(BLIND, SelfNormalized(), logged(n=14, off=1.5))
    assert near.flag is None
    far = problem(SelfNormalized(), logged(off=4.2))
    assert path_of(far, np.array([BLIND.factor(far)])).count[0] < 2
    moved = BLIND.select(far)
    assert moved.flag == "fallback: no two rows in reach of it"
    assert moved.h > BLIND.factor(far) * far.spread[0]


@every_pair
def test_an_outcome_that_never_varies_is_no_trouble(selector, estimator):
    rows = logged()
    flat = replace(rows, y=np.full_like(rows.y, 3.0), r_tau=rows.y * 0 + 3, r_logged=rows.y * 0 + 3)
    choice = chosen(selector, estimator, flat)
    assert np.isfinite(choice.h)
    assert choice.h > 0


@every
def test_a_kernel_without_an_end_is_no_trouble(selector):
    choice = chosen(selector, SelfNormalized(kernel=Gaussian()), logged())
    assert np.isfinite(choice.h)
    assert choice.flag is None or not choice.flag.startswith("fallback")


@pytest.mark.parametrize("selector", STEADY, ids=name)
def test_more_rows_ask_for_less_smoothing(selector):
    # The bias stays, the variance falls.
    small, large = (chosen(selector, IPW(centered=True), logged(n)) for n in (200, 6_000))
    assert large.h <= small.h


@every
def test_the_choice_explains_itself(selector):
    choice = chosen(selector, DoublyRobust(), logged())
    assert choice.reason.endswith(".")
    assert type(selector).__name__ in {choice.selector, "Subsampled"}
    told = json.loads(json.dumps(choice.to_dict()))
    assert told["h"] == float(choice.h)
    assert told["reason"] == choice.reason
