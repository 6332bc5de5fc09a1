"""Laws of limits: they hold in every row, and loose ones change nothing."""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import titrant as tt
from titrant.errors import DataError, InvalidArgument
from titrant.learn import POLICY_CLASSES
from titrant.learn.limits import PARTS, LimitedClass, Limits
from titrant.learn.limits.keeping import moved
from titrant.learn.limits.prices import largest_difference
from titrant.learn.setting import TrainingLog, silent
from titrant.optimize import Ball
from titrant.outcome import ridge_pair
from titrant.policies import Constant, InLimits, Linear
from titrant.policies.clipped import Steps

NEAR = 1e-9  # of a dose near 20: steps are products, limits differences
BUDGET = 0.005  # how near a budget is met where rows differ
NAMES = ("age", "bmi", "now", "most", "sex")
QUICK = ("steps", "mean dose", "monotone")
"""Limits that every class is learned within in `make test`; the others are in all tests."""
CLASSES = (
    tt.LinearClass(),
    tt.AdditiveClass(),
    tt.TreeClass(),
    tt.LinearTreeClass(),
    tt.PersonalClass(),
)


@cache
def problem(n=300, seed=0, unit=1.0):
    """A log whose best dose rises with age and falls with bmi, in units of the dose."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    now = 20.0 + 3.0 * rng.normal(size=n)
    most = now + rng.uniform(0.0, 6.0, n)
    mean = 20.0 + 2.0 * x[:, 0]
    t = mean + 4.0 * rng.normal(size=n)
    sex = (rng.random(n) < 0.4).astype(float)
    best = 22.0 + 3.0 * x[:, 0] - 2.0 * x[:, 1] + 3.0 * (sex - 0.4)
    y = (t - best) ** 2 / 10.0 + 0.5 * rng.normal(size=n)
    q = np.exp(-((t - mean) ** 2) / 32.0) / (4.0 * np.sqrt(2.0 * np.pi))
    contexts = np.column_stack([x, unit * now, unit * most, sex])
    return tt.LoggedData(contexts, unit * t, y, q / unit, names=NAMES)


def harm(log):
    """A second outcome that rises with the dose: its mean is the dose in units of the log."""
    noise = np.random.default_rng(7).normal(size=len(log))
    return log.with_outcome(log.treatment + 0.1 * noise * np.std(log.treatment))


def within_cap(log, at_most):
    return Limits(cap=tt.Cap(log=harm(log), at_most=at_most, name="harm"))


BINDING = {
    "steps": Limits(steps=2.5),
    "at least": Limits(at_least=20.0),
    "at most": Limits(at_most="most"),
    "largest change": Limits(current="now", largest_change=2.0),
    "monotone": Limits(decreasing="age"),
    "mean dose": Limits(mean_dose=20.0),
    "equal": Limits(equal_across="sex", margin=0.5),
    "cap": within_cap(problem(), 20.0),
    "alike values": Limits(alike_across="sex", value_margin=0.3),
}
LOOSE = {
    "steps": Limits(steps=1e-11),
    "at least": Limits(at_least=-100.0),
    "at most": Limits(at_most=1000.0),
    "largest change": Limits(current="now", largest_change=1000.0),
    "monotone": Limits(increasing="age", decreasing=("bmi",)),
    "mean dose": Limits(mean_dose=100.0),
    "equal": Limits(equal_across="sex", margin=100.0),
    "cap": within_cap(problem(), 100.0),
    "alike values": Limits(alike_across="sex", value_margin=100.0),
}


def learned(log, limits, kind=CLASSES[0], *, told=False):
    procedure = tt.StackedDR(models=ridge_pair())
    within = LimitedClass(kind, limits, told=told) if limits is not None else kind
    return procedure.learn(TrainingLog.of(log), within, silent)


@cache
def free():
    return learned(problem(), None)


@cache
def bound_by(part):
    return learned(problem(), BINDING[part], told=True)


def doses(found, log):
    return found.policy(dict(zip(log.names, log.context.T, strict=True)))


def breaches(part, limits, found, log):
    """How far the doses are from keeping a limit, at most."""
    tau = doses(found, log)
    now, most, sex = log.context[:, 2], log.context[:, 3], log.context[:, 4] > 0.5
    best = 22.0 + log.context @ [3.0, -2.0, 0.0, 0.0, 3.0] - 1.2
    loss = (tau - best) ** 2 / 10.0
    older = found.policy(dict(zip(log.names, (log.context + [1, 0, 0, 0, 0]).T, strict=True)))  # noqa: RUF005
    far = {
        "steps": lambda: np.abs(tau - Steps.checked(limits.steps, "test").nearest(tau)),
        "at least": lambda: limits.at_least - tau,
        "at most": lambda: tau - most,
        "largest change": lambda: np.abs(tau - now) - limits.largest_change,
        "mean dose": lambda: tau.mean() - limits.mean_dose,
        "equal": lambda: abs(tau[sex].mean() - tau[~sex].mean()) - limits.margin,
        "monotone": lambda: older - tau,
        # The mean of harm is the dose; it is kept as it is estimated, on rows held out.
        "cap": lambda: tau.mean() - limits.cap.at_most - 0.5,
        # So are values; a rule that knows the sexes has little to lose by either.
        "alike values": lambda: abs(loss[sex].mean() - loss[~sex].mean()) - limits.value_margin,
    }
    return np.max(far[part]())


def test_every_limit_has_its_examples():
    assert set(BINDING) == set(LOOSE) == set(PARTS)
    for part in PARTS:
        assert BINDING[part].parts == (part,)
        assert BINDING[part].without(part) == Limits()


# law: a limit holds in every row, whatever the class.
@pytest.mark.parametrize(
    ("part", "kind"),
    [
        pytest.param(
            part, kind, marks=() if kind is CLASSES[0] or part in QUICK else pytest.mark.long
        )
        for part in PARTS
        for kind in CLASSES
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_limit_holds_in_every_row(part, kind):
    log, limits = problem(), BINDING[part]
    if part in {"monotone", "equal"} and kind in CLASSES[2:]:
        why = "be held monotone in `age`" if part == "monotone" else "be kept alike across `sex`"
        said = f"A rule of the class `{kind.name}` cannot {why}: .* `AdditiveClass()`"
        with pytest.raises(InvalidArgument, match=re.escape(said).replace(r"\.\*", ".*")):
            learned(log, limits, kind)
        return
    found = bound_by(part) if kind is CLASSES[0] else learned(log, limits, kind)
    assert breaches(part, limits, found, log) <= NEAR
    assert tt.policies.policy_from_dict(found.policy.to_dict()) == found.policy


@pytest.mark.parametrize("part", ["monotone", "equal"])
def test_the_classes_that_a_refusal_names_can_keep_the_limit(part):
    # Of all classes of the room those named can, and no other.
    log = problem()
    able, refused = set(), set()
    for kind in POLICY_CLASSES:
        within = LimitedClass(kind, BINDING[part])
        try:
            able |= {type(one).__name__ for one in within.competing(log)}
        except InvalidArgument as error:
            refused.add(str(error).partition("cannot")[2])
    (said,) = refused
    assert set(re.findall(r"`(\w+)\(\)`", said)) == able
    assert ("ProductsClass" in able) is (part == "equal")
    # One dose for all is no help where rows have limits of their own.
    both = replace(BINDING["equal"], at_most="most")
    with pytest.raises(InvalidArgument, match=r"These can: `LinearClass\(\)`, `Add"):
        LimitedClass(tt.TreeClass(), both).competing(log)


# A known truth: losses are (dose − best)²/10, so the best doses within a budget are the best ones,
# all less by the same.
def test_a_rule_within_a_budget_is_near_the_best_one_within_it():
    log, limits = problem(), BINDING["mean dose"]
    tau = doses(bound_by("mean dose"), log)
    best = 22.0 + log.context @ [3.0, -2.0, 0.0, 0.0, 3.0] - 1.2
    over = best.mean() - limits.mean_dose
    assert over > 0.5  # the budget binds
    assert abs(tau.mean() - limits.mean_dose) <= BUDGET * limits.mean_dose
    found = tt.evaluate(log, bound_by("mean dose").policy, estimator=tt.SelfNormalized())
    behind = np.mean((tau - best) ** 2) / 10.0 - over**2 / 10.0
    assert -NEAR <= behind <= 2.0 * found.se


# law: a rule that was moved gives no dose outside of those it may be learned between, and the mean
# that meets the budget is that of the doses as they are then held.
@pytest.mark.parametrize("kind", CLASSES[2:], ids=lambda kind: kind.name)
def test_a_rule_moved_to_a_budget_stays_within_the_range_of_doses(kind):
    log, limits = problem(), Limits(mean_dose=14.0)
    found = learned(log, limits, kind)
    low, high = found.report["dose_range"]
    tau = doses(found, log)
    assert low - NEAR <= tau.min() < low + 0.1  # some are held
    assert tau.max() <= high + NEAR
    assert 0.0 <= 14.0 - tau.mean() + NEAR <= BUDGET * 14.0


def test_rules_moved_by_hand_are_held():
    x, ends = np.array([[0.0], [1.0], [2.0]]), (5.0, 20.0)
    questions = ([0, 0], [0.5, 1.5], [-1, -2], [1, -3])
    tree = tt.Tree(*questions, [6.0, 12.0, 19.0])
    lines = tt.LinearTree(
        *(*questions, [6.0, 10.0, 0.0]),
        slopes=[[0.0], [2.0], [12.0]],
        lower=[6.0, 12.0, 4.0],
        upper=[6.0, 12.0, 19.0],
    )
    curves = (np.arange(5.0, 21.0) - np.array([[6.0], [12.0], [19.0]])) ** 2
    each = tt.Personal(x, curves, grid=np.arange(5.0, 21.0), scale=[1.0], nearest=1)
    for rule in (tree, lines, each):
        assert rule(x).tolist() == [6.0, 12.0, 19.0]
        lower = moved(rule, -4.0, ends)
        assert lower(x).tolist() == [5.0, 8.0, 15.0]
        assert moved(lower, 6.0, ends)(x).tolist() == [11.0, 14.0, 20.0]
    assert moved(Constant(6.0), -4.0, ends) == Constant(5.0)


RISES = {
    "linear": tt.LinearClass(),
    "linear, on the user's scale": tt.LinearClass(standardize=False),
    "linear without intercept": tt.LinearClass(intercept=False),
    "constant": tt.ConstantClass(),
    "additive": tt.AdditiveClass(straight=("age",)),
}
"""Every class that accepts signs."""
numbers = st.floats(-1e3, 1e3)


# law: with the sign that a limit asks for, whatever the other parameters, a dose never falls in its
# context, whoever the person; nor does it on steps.
@pytest.mark.parametrize("name", RISES)
@given(
    params=st.lists(numbers, min_size=20, max_size=20),
    person=st.lists(numbers, min_size=5, max_size=5),
    ages=st.tuples(numbers, numbers),
)
def test_a_signed_slope_never_falls(name, params, person, ages):
    fitted = RISES[name].on(problem())
    beta = np.array(params)[: len(fitted.penalized)]
    place = fitted.slope("age")
    if place is not None:
        beta[place] = abs(beta[place])
    rule = fitted.policy(beta)
    younger, older = (
        dict(zip(NAMES, [[age], *([v] for v in person[1:])], strict=True)) for age in sorted(ages)
    )
    low, high = rule(younger)[0], rule(older)[0]
    # The sums differ in one term alone: by rounding of the largest, a dose may seem to fall.
    assert high >= low - NEAR * (1.0 + abs(low))
    steps = Limits(steps=2.5, increasing="age").kept(rule)
    assert steps(older)[0] >= steps(younger)[0] - 2.5 * (high < low)


def test_every_class_that_accepts_signs_is_in_the_list():
    for kind in tt.learn.POLICY_CLASSES:
        within = LimitedClass(kind, Limits(increasing="age"))
        try:
            able = within.competing(problem())
        except InvalidArgument:
            continue
        assert {type(one) for one in able} <= {type(one) for one in RISES.values()}


# law: limits hold together, too.
def test_all_limits_hold_together():
    log = problem()
    limits = replace(BINDING["at most"], steps=2.5, current="now", largest_change=6.0)
    limits = replace(limits, mean_dose=19.0, increasing="bmi", equal_across="sex", margin=0.5)
    found = learned(log, limits)
    for part in limits.parts:
        if part != "monotone":
            far = 0.1 if part == "equal" else NEAR  # steps of 2.5 in 300 rows
            assert breaches(part, limits, found, log) <= far
    assert found.policy.policy.policy.coef[1] >= 0.0


# law: a limit that does not bind changes nothing.
@pytest.mark.parametrize("part", PARTS)
def test_a_loose_limit_changes_nothing(part):
    log = problem()
    loose = learned(log, LOOSE[part], told=True)
    np.testing.assert_allclose(doses(loose, log), doses(free(), log), rtol=0, atol=1e-9)
    assert abs(loose.limits[part].cost) <= NEAR
    assert loose.limits[part].binds == 0.0 or part == "steps"


# law: a limit costs nothing that is clearly below zero, and one that binds is said to.
# Alike values bind where a rule cannot serve both groups: see one dose for all.
@pytest.mark.parametrize("part", [part for part in PARTS if part != "alike values"])
def test_a_binding_limit_is_told_with_its_cost(part):
    found = bound_by(part).limits
    cost = found[part]
    assert cost.binds > 0.05
    assert cost.cost > -2.0 * cost.se
    assert part in found.finding


# law: a tighter limit never gains.
def test_a_tighter_budget_costs_more():
    tighter = learned(problem(), Limits(mean_dose=18.0), told=True)
    costs = [found.limits["mean dose"].cost for found in (bound_by("mean dose"), tighter)]
    assert BINDING["mean dose"].mean_dose > 18.0
    assert costs == sorted(costs)


# law: units. A log in other units with limits in other units gives the doses in other units.
@pytest.mark.parametrize(
    "part", [pytest.param(p, marks=() if p in QUICK else pytest.mark.long) for p in PARTS]
)
def test_limits_go_with_the_units_of_the_dose(part):
    log, other, unit = problem(), problem(unit=4.0), 4.0
    numbers = ("steps", "at_least", "largest_change", "mean_dose", "margin")
    given_ = {name: getattr(BINDING[part], name) for name in numbers}
    changed = {name: unit * value for name, value in given_.items() if value is not None}
    if part == "cap":
        changed = {"cap": within_cap(other, unit * BINDING[part].cap.at_most).cap}
    a = bound_by(part)
    b = learned(other, replace(BINDING[part], **changed))
    off = np.abs(doses(b, other) / unit - doses(a, log))
    # A search ends where it ends: a row near the middle of two steps may go either way.
    assert np.mean(off > 1e-4) <= (0.02 if part == "steps" else 0.0)


def test_a_budget_is_met_and_its_price_is_that_of_the_truth():
    # Loss (t − θ)²/10 with E θ = 22: at mean dose 20, one unit more saves 2·2/10 = .4.
    log, limits = problem(n=2000), Limits(mean_dose=20.0)
    found = learned(log, limits, told=True)
    assert abs(doses(found, log).mean() - 20.0) <= BUDGET * 20.0
    price, se = found.limits.price
    assert abs(price - 0.4) <= 3.0 * se
    assert se < 0.1
    steps = learned(log, replace(limits, steps=2.5))
    assert abs(doses(steps, log).mean() - 20.0) <= BUDGET * 20.0


def test_a_cap_on_a_second_outcome_comes_with_its_trade_off():
    log = problem(n=1000)
    found = learned(log, within_cap(log, 20.0), told=True)
    cap = found.limits.cap
    prices, seconds = [p.price for p in cap.curve], [p.second for p in cap.curve]
    assert prices == sorted(prices)
    assert prices[0] == 0.0
    # The dearer the second outcome, the less of it.
    assert all(b <= a + 1e-9 for a, b in pairwise(seconds))
    assert cap.at in cap.curve
    assert cap.at.second <= 20.0
    # Its mean is the mean dose: what was kept on rows held out holds of the rule.
    assert abs(doses(found, log).mean() - cap.at.second) <= 4.0 * cap.at.second_se
    assert found.limits["cap"].cost > 0.0
    assert "harm" in found.limits.finding


def two_groups(n=1000):
    """A fifth of the people needs 24, the others 18; loss (t − best)²/10."""
    rng = np.random.default_rng(5)
    sex, t = (rng.random(n) < 0.2).astype(float), rng.uniform(12.0, 30.0, n)
    y = (t - np.where(sex > 0.5, 24.0, 18.0)) ** 2 / 10.0 + 0.3 * rng.normal(size=n)
    context = np.column_stack([sex, rng.normal(size=n)])
    return tt.LoggedData(context, t, y, np.full(n, 1 / 18.0), names=("sex", "age"))


def test_one_dose_for_all_moves_towards_those_who_do_worse():
    # Of a dose c the fifth loses ((24 − c)² − (c − 18)²)/10 = (252 − 12c)/10 more than the others:
    # 2.16 at the best dose, 19.2, and .5 at 20.58. Beyond 21 the others would do worse.
    log, constant = two_groups(), tt.policies.Constant
    free = learned(log, None, tt.ConstantClass()).policy
    found = learned(
        log, Limits(alike_across="sex", value_margin=0.5), tt.ConstantClass(), told=True
    )
    assert isinstance(free, constant)
    assert free.dose == pytest.approx(19.2, abs=0.3)
    assert found.policy.dose == pytest.approx(20.58, abs=0.3)
    cap = found.limits.cap
    gaps = [point.second for point in cap.curve]
    assert gaps[0] == pytest.approx(2.16, abs=4.0 * cap.curve[0].second_se)
    assert cap.at.second <= 0.5
    assert all(b <= a + 1e-9 for a, b in pairwise(gaps[:-2]))
    assert "mean outcomes of groups of sex" in found.limits.finding
    assert found.limits["alike values"].binds == 1.0
    assert found.limits["alike values"].cost > 0.0


def test_the_largest_difference_of_three_groups_by_hand():
    # Means 2, 5 and 0: the second and the third differ by 5. Residuals ∓1, 0 and ∓2, times 6/2.
    score, group = np.array([1.0, 3.0, 5.0, 5.0, -2.0, 2.0]), np.array([0, 0, 1, 1, 2, 2])
    gap, se = largest_difference(score, group, None)
    assert gap == 5.0
    each = np.array([0.0, 0.0, 0.0, 0.0, 6.0, -6.0])
    assert se == pytest.approx(each.std() / np.sqrt(6), rel=1e-12)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (within_cap(problem(), -50.0), r"The mean of harm is to be at most -50, and no rule .*"),
        (Limits(mean_dose=1.0), r"No rule has a mean dose of at most 1: .* have a mean of"),
        (Limits(at_least=30.0, at_most="most"), r"rows .* the limits leave no dose: in row"),
        (Limits(steps=50.0, at_least=20.0, at_most=30.0), "leave no dose"),
        (Limits(steps=80.0), "No dose on the steps is near a logged dose: those are from"),
        (Limits(steps=[-40.0, 90.0]), "No dose on the steps is near a logged dose"),
    ],
)
def test_what_nothing_keeps_to_is_refused_with_the_numbers(limits, said):
    with pytest.raises(DataError, match=said):
        learned(problem(), limits)


def test_wrong_limits_are_refused():
    for wrong in ({"steps": 0.0}, {"steps": []}, {"current": "now"}, {"largest_change": 2.0}):
        with pytest.raises(InvalidArgument):
            Limits(**wrong)
    with pytest.raises(InvalidArgument, match="which `increasing` has"):
        Limits(increasing="age", decreasing=("age",))
    with pytest.raises(InvalidArgument, match="given together with `alike_across`"):
        Limits(value_margin=0.5)
    with pytest.raises(InvalidArgument, match="each has a price of its own"):
        replace(within_cap(problem(), 20.0), alike_across="sex", value_margin=0.5)
    with pytest.raises(DataError, match="wish"):
        tt.PolicyLearner(limits=Limits(at_most="wish")).fit(problem())
    with pytest.raises(InvalidArgument, match="`StackedDR` keeps to `limits`"):
        tt.PolicyLearner(limits=Limits(steps=1.0), procedure=tt.CPO(), honest=False).fit(problem())
    ball = tt.StackedDR(models=ridge_pair(), constraint=Ball(9.0))
    within = LimitedClass(CLASSES[0], BINDING["mean dose"])
    with pytest.raises(InvalidArgument, match="a constraint on parameters"):
        ball.learn(TrainingLog.of(problem()), within, silent)


@pytest.mark.usefixtures("plain_models")
def test_it_is_graded_as_it_is_deployed():
    log = problem(n=200)
    learner = tt.PolicyLearner(
        procedure=tt.StackedDR(models=ridge_pair()), limits=Limits(steps=5.0), policy=Linear()
    ).fit(log)
    for policy in (learner.policy_, *learner.estimate_.policies):
        tau = policy(log.context)
        np.testing.assert_array_equal(tau, 5.0 * np.round(tau / 5.0))
    assert learner.limits_["steps"].binds > 0.9
    assert "steps" in str(learner.limits_)


# ── A policy within limits ──────────────────────────────────────────────────────────────────────

number = st.floats(-50.0, 50.0)
steps_ = st.one_of(
    st.none(), st.floats(0.1, 20.0), st.lists(number, min_size=1, max_size=6, unique=True)
)


@given(number, steps_, st.tuples(number, st.floats(0.0, 30.0), number, st.floats(0.0, 30.0)))
def test_a_policy_within_limits_keeps_them_and_goes_no_further(raw, steps, limits):
    low, room, now, change = limits
    policy = InLimits(
        Constant(raw), steps=steps, at_least="low", at_most="high", current="now",
        largest_change=change,
    )  # fmt: skip
    table = {"low": [low], "high": [low + room], "now": [now]}
    within = [max(low, now - change), min(low + room, now + change)]
    scale = 1.0 + 1e2
    if not policy.possible(table)[0]:
        with pytest.raises(DataError, match="leave no dose"):
            policy(table)
        return
    dose = policy(table)[0]
    assert within[0] - NEAR * scale <= dose <= within[1] + NEAR * scale
    if isinstance(steps, float):
        assert abs(dose / steps - round(dose / steps)) < 1e-6
    elif steps is not None:
        assert dose in steps
        allowed = [s for s in steps if within[0] <= s <= within[1]]
        # No other strength that is allowed is nearer.
        assert all(abs(dose - raw) <= abs(s - raw) + NEAR * scale for s in allowed)
    else:
        assert dose == np.clip(raw, *within)


@given(st.lists(number, min_size=1, max_size=8), steps_)
def test_a_list_of_multiples_is_the_step(raw, steps):
    tau = np.array(raw)
    if isinstance(steps, float):
        every = Steps(steps * np.arange(-600, 601))
        for name in ("nearest", "above", "below"):
            one, other = getattr(Steps(steps), name)(tau), getattr(every, name)(tau)
            # Halves may fall on either side by a rounding.
            assert np.all(np.abs(one - other) <= steps * (1.0 + NEAR))
            assert np.mean(np.abs(one - other) > NEAR) <= 0.5 or len(tau) == 1


def test_rows_are_given_what_the_policy_gives():
    log, limits = problem(), Limits(steps=2.5, at_most="most", current="now", largest_change=5.0)

    class Ends:
        low, high, dose_sd = 10.0, 30.0, 4.0

    rows = limits.on(log, Ends)
    raw = np.linspace(0.0, 40.0, len(log))
    x = log.context.copy()
    x[:, 0] = np.clip(raw, 10.0, 30.0)
    policy = limits.kept(Linear([1.0], features=["age"]))
    table = dict(zip(NAMES, x.T, strict=True))
    np.testing.assert_allclose(policy(table), rows.given(raw), rtol=NEAR)
