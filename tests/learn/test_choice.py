"""The choice among classes: its score, its rule, and what must not matter to it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from benchmarks.rules.measure import line_falls_short

import titrant as tt
from learn.examples import FAST, GRADE, changed, quadratic_log
from learn.test_scores import rows_of
from learn.test_shapes import KINKS, curved_log
from sweeps import long
from titrant.kernels import Epanechnikov
from titrant.learn.candidates import (
    BANDWIDTH,
    CANDIDATE_FLOOR,
    SCORE_FLOOR,
    dose_curves,
    fair_scores,
    smoothed_at,
)
from titrant.learn.choice import ClassChoice, ClassScore, amount, difference, simplest
from titrant.optimize import Box

EXACT = 1e-12
QUADRATURE = 1e-9  # 32 Gauss nodes on a quadratic times a quadratic are exact


def chosen(log, **settings) -> tt.PolicyLearner:
    return tt.PolicyLearner(policy=tt.Automatic(), procedure=FAST, honest=False, **settings).fit(
        log
    )


# ── the score ────────────────────────────────────────────────────────────────────────────────────
def test_smoothing_a_quadratic_adds_its_curvature():
    # r̂ = 1 + t²: ∫K_h(t − τ)(1 + t²)dt = 1 + τ² + h²·⅕, ⅕ the second moment of Epanechnikov's.
    rows, units = rows_of(quadratic_log(40))
    h = BANDWIDTH * units.dose_sd
    tau = np.linspace(units.low + h, units.high - h, 40)
    assert Epanechnikov().second_moment == pytest.approx(0.2)
    np.testing.assert_allclose(
        smoothed_at(tau, rows, units), 1 + tau**2 + 0.2 * h * h, rtol=QUADRATURE
    )


def test_a_constant_is_smoothed_to_itself_at_bounds_too():
    # Law: weights of smoothing sum to 1 wherever the dose is.
    log = quadratic_log(40).with_bounds((-5.0, 5.0))
    rows, units = rows_of(log)
    table = type(rows.table)(units.low, units.high, np.full_like(rows.table.values, 7.0))
    flat = type(rows)(rows.phi, rows.roughness, rows.rows, table)
    for dose in (units.low, units.high, 0.0):
        np.testing.assert_allclose(smoothed_at(np.full(40, dose), flat, units), 7.0, rtol=EXACT)


def test_the_score_is_that_of_a_loop():
    log = quadratic_log(40)
    rows, units = rows_of(log)
    s, h = units.dose_sd, BANDWIDTH * units.dose_sd
    tau = np.full(40, 0.3)
    expected = []
    for t, y, q in zip(log.treatment, log.outcome, log.propensity, strict=True):
        u = (t - 0.3) / h
        w = 0.75 * max(1 - u * u, 0) / (h * max(q, SCORE_FLOOR / s))
        expected.append(1 + 0.09 + 0.2 * h * h + w * (y - 1 - t * t))
    np.testing.assert_allclose(fair_scores(tau, rows, units), expected, rtol=QUADRATURE)


def test_robust_curves_are_those_of_a_loop():
    log = quadratic_log(20)
    rows, units = rows_of(log)
    s, h = units.dose_sd, BANDWIDTH * units.dose_sd
    found = dose_curves(rows, units)
    assert len(found.grid) == 41
    for i in range(20):
        for g, dose in enumerate(found.grid):
            u = (log.treatment[i] - dose) / h
            w = 0.75 * max(1 - u * u, 0) / (h * max(log.propensity[i], CANDIDATE_FLOOR / s))
            wanted = 1 + dose**2 + w * (log.outcome[i] - 1 - log.treatment[i] ** 2)
            assert found.robust[i, g] == pytest.approx(wanted, rel=1e-9)


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────
# Three classes on four rows, by hand. The best is the last, mean 1.5. The second differs from it by
# 1, −1, 1, 1: mean ½, sd √¾, SE √¾/2 = .433: more than one SE behind. With 1, −1, 1, 0 it is ¼
# behind, SE √(.6875)/2 = .415: within. The first is 2 behind in all rows.
LAST = np.array([1.0, 2.0, 1.0, 2.0])


def test_the_simplest_within_one_error_of_the_best():
    far = LAST + 2.0
    behind, near = np.array([1.0, -1.0, 1.0, 1.0]), np.array([1.0, -1.0, 1.0, 0.0])
    assert simplest(np.stack([far, LAST + behind, LAST])) == 2
    assert simplest(np.stack([far, LAST + near, LAST])) == 1
    assert simplest(np.stack([LAST, LAST])) == 0


def test_differences_by_hand_and_of_groups():
    d = np.array([1.0, -1.0, 1.0, 1.0])
    assert difference(LAST + d, LAST) == pytest.approx((0.5, np.sqrt(0.75) / 2))
    # Groups {0, 1}, {2, 3}: sums of d − ½ are −1 and 1, so SE = √2/4.
    groups = np.array([5, 5, 9, 9])
    assert difference(LAST + d, LAST, groups) == pytest.approx((0.5, np.sqrt(2) / 4))
    # Law: rows repeated within their groups leave mean and SE as they are.
    twice = np.repeat(np.arange(4), 2)
    assert difference(np.repeat(LAST + d, 2), np.repeat(LAST, 2), twice) == pytest.approx(
        difference(LAST + d, LAST)
    )


@pytest.mark.parametrize(
    ("value", "se", "said"),
    [
        (0.7694, 0.0871, "0.769 ± 0.087"),
        (123.4, 17.0, "123 ± 17"),
        (0.5, 0.0, "0.5"),
        (0.00123, 0.00045, "0.00123 ± 0.00045"),
    ],
)
def test_amounts_have_the_digits_that_the_error_leaves(value, se, said):
    assert amount(value, se) == said


def choice_of(*classes, personal=None, at="linear") -> ClassChoice:
    return ClassChoice(
        at, tuple(ClassScore(*c) for c in classes), personal and ClassScore(*personal)
    )


def test_the_line_says_what_a_richer_rule_would_gain():
    classes = ("constant", 1, 0.5, 0.1), ("linear", 3, 0.0, 0.0), ("additive", 9, -0.05, 0.04)
    little = choice_of(*classes, personal=("personal", None, -0.1, 0.06))
    assert little.richer is None
    assert little.finding == "No richer rule is seen to gain anything over the linear one."
    much = choice_of(*classes, personal=("personal", None, -0.77, 0.09))
    assert much.finding == (
        "A personal rule would gain 0.770 ± 0.090; the linear rule is not enough."
    )
    assert much.to_dict()["finding"] == much.finding
    bent = choice_of(("linear", 3, 0.4, 0.05), ("additive", 9, 0.0, 0.0), at="additive")
    assert bent.finding.startswith("A linear rule would lose 0.400 ± 0.050. No richer rule")
    assert line_falls_short(bent)
    assert line_falls_short(much)
    assert not line_falls_short(little)
    slightly = choice_of(("linear", 3, 0.06, 0.05), ("additive", 9, 0.0, 0.0), at="additive")
    assert slightly.finding.startswith("A linear rule is 0.060 ± 0.050 behind, perhaps by chance.")
    assert not line_falls_short(slightly)
    assert "0.770" in much._repr_html_()
    assert str(much).splitlines()[2].split() == ["linear,", "chosen", "3", "–", "–"]
    graded = much.graded(1.25, 0.01).table()[2]
    assert graded == ("linear, chosen", "3", "–", "–", "1.250 ± 0.010")


# ── on logs ──────────────────────────────────────────────────────────────────────────────────────
BENT = curved_log(500)


@cache
def of_bent() -> tt.PolicyLearner:
    """What is chosen for the log that most tests hold something against."""
    return chosen(BENT)


def test_what_is_chosen():
    assert chosen(quadratic_log(400)).choice_.chosen == "linear"
    found = of_bent()
    assert found.choice_.chosen in {"additive", "tree"}
    assert [one.name for one in found.choice_.classes] == [
        *("constant", "linear", "additive", "tree", "products")
    ]
    assert "A linear rule would lose" in found.choice_.finding
    own = next(one for one in found.choice_.classes if one.name == found.choice_.chosen)
    assert (own.behind, own.se) == (0.0, 0.0)


def test_a_chosen_line_is_the_line_that_is_asked_for():
    # Law: the choice changes what is learned, never how: bit for bit.
    log = quadratic_log(400)
    line = tt.PolicyLearner(policy=tt.LinearClass(), procedure=FAST, honest=False).fit(log)
    assert chosen(log).policy_ == line.policy_
    assert line.choice_.chosen == "linear"
    assert line.choice_.personal is not None


@pytest.mark.parametrize("shift", [-1e4, *long(20.0)])
def test_the_zero_of_the_outcome_does_not_matter(shift):
    mine, yours = of_bent(), chosen(changed(BENT, shift=shift))
    assert mine.choice_.chosen == yours.choice_.chosen
    for a, b in zip(mine.choice_.classes, yours.choice_.classes, strict=True):
        assert (b.behind, b.se) == pytest.approx((a.behind, a.se), rel=0.02, abs=1e-3)


def test_units_do_not_matter():
    # Law: doses times 1,024 and outcomes times 64: the same class, 64 times the differences.
    mine, yours = of_bent(), chosen(changed(BENT, dose=1024.0, outcome=64.0))
    assert mine.choice_.chosen == yours.choice_.chosen
    for a, b in zip(mine.choice_.classes, yours.choice_.classes, strict=True):
        assert (b.behind / 64, b.se / 64) == pytest.approx((a.behind, a.se), rel=0.02, abs=1e-3)
    np.testing.assert_allclose(
        yours.policy_(BENT.context) / 1024, mine.policy_(BENT.context), atol=KINKS
    )


def test_rewards_are_losses_with_the_other_sign():
    rewards = chosen(changed(BENT, outcome=-1.0), maximize=True)
    losses = of_bent()
    assert rewards.choice_.chosen == losses.choice_.chosen
    np.testing.assert_allclose(
        rewards.policy_(BENT.context), losses.policy_(BENT.context), atol=KINKS
    )


def test_a_class_is_chosen_unless_one_is_named():
    log = quadratic_log(100)
    usual = tt.PolicyLearner(procedure=FAST, honest=False).fit(log)
    assert usual.choice_.to_dict() == chosen(log).choice_.to_dict()
    assert usual.policy_ == chosen(log).policy_
    # A constraint is on the parameters of one class, and a search over parameters needs them.
    assert tt.StackedDR(constraint=Box(-np.ones(3), np.ones(3))).usual_class == tt.LinearClass()
    assert tt.CPO().usual_class == tt.LinearClass()


def test_a_constraint_is_on_one_class():
    procedure = tt.StackedDR(models=FAST.models, folds=3, constraint=tt.optimize.Ball(1.0))
    with pytest.raises(tt.InvalidArgument, match="Name the class to learn"):
        tt.PolicyLearner(policy=tt.Automatic(), procedure=procedure).fit(BENT)


def test_without_contexts_there_is_one_dose():
    bare = tt.LoggedData(np.empty((200, 0)), BENT.treatment[:200], BENT.outcome[:200])
    found = chosen(bare)
    assert isinstance(found.policy_, tt.Constant)
    assert [one.name for one in found.choice_.classes] == ["constant"]


def test_few_rows_and_many_contexts():
    rng = np.random.default_rng(0)
    log = tt.LoggedData(rng.normal(size=(60, 14)), rng.normal(size=60), rng.normal(size=60))
    names = [one.name for one in chosen(log).choice_.classes]
    assert names == ["constant", "linear", "additive", "tree"]


def test_classes_of_ones_own_may_compete():
    mine = tt.Automatic(classes=(tt.ConstantClass(), tt.RBFClass(centers=5)))
    found = tt.PolicyLearner(policy=mine, procedure=FAST, honest=False).fit(BENT)
    assert [one.name for one in found.choice_.classes] == ["constant", "rbf"]
    for wrong in ((), ("linear",), (tt.learn.ClippedClass(tt.LinearClass(), 0.0, 1.0),)):
        with pytest.raises(tt.InvalidArgument, match="`classes` of `Automatic`"):
            tt.Automatic(classes=wrong)


def test_limits_are_kept_by_whatever_is_chosen():
    clipped = tt.learn.ClippedClass(tt.Automatic(), -0.2, 0.5)
    found = tt.PolicyLearner(policy=clipped, procedure=FAST, honest=False).fit(BENT)
    far = np.random.default_rng(0).normal(size=(500, 3)) * 30
    assert found.policy_(far).min() >= -0.2
    assert found.policy_(far).max() <= 0.5


@pytest.mark.long
def test_the_honest_value_grades_the_choice():
    # Each half chooses for itself.
    learner = tt.PolicyLearner(policy=tt.Automatic(), procedure=FAST, grade=GRADE).fit(BENT)
    assert learner.choice_.honest == (learner.estimate_.value, learner.estimate_.se)
    first, _ = learner.estimate_.policies
    half = tt.learn.TrainingLog.of(BENT).halves(0)[0].log
    assert chosen(half).policy_ == first


@pytest.mark.parametrize("kind", ["weights", "groups"])
def test_weights_and_groups(kind):
    rng = np.random.default_rng(3)
    given = rng.uniform(0.2, 3.0, len(BENT)) if kind == "weights" else np.arange(len(BENT)) // 3
    log = tt.LoggedData(BENT.context, BENT.treatment, BENT.outcome, **{kind: given})
    plain = {one.name: one for one in of_bent().choice_.classes}
    found = chosen(log).choice_
    for one in found.classes:
        assert one.se <= 3 * plain[one.name].se + 0.1
    assert found.chosen in {"additive", "tree"}
