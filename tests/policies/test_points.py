"""Points of curves: a table by which nobody's dose moves by more than a hundredth of an sd."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST
from titrant.policies.points import MOVED, next_finer, points_of, round_below

N = 600
RNG = np.random.default_rng(5)
NAMES = ("age", "crp", "carrier", "visits")
# An age, something skewed with a long tail, a yes/no, and a count.
X = np.column_stack(
    [
        *(RNG.uniform(20, 80, N), np.exp(RNG.normal(1, 1, N))),
        *(RNG.integers(2, size=N), RNG.poisson(4, N)),
    ]
)
KNOTS = [np.quantile(X[:, j], [0.05, 0.275, 0.5, 0.725, 0.95]) for j in (0, 1, 3)]


def log_of(x=X, sd=1.0, d=1, names=NAMES):
    t = sd * np.random.default_rng(0).normal(size=(len(x), d))
    return tt.LoggedData(x, t[:, 0] if d == 1 else t, np.zeros(len(x)), names=names)


def ruled(seed=0, size=1.0, d=None):
    """A rule whose curves bend as much as their heights may."""
    rng = np.random.default_rng(seed)
    more = () if d is None else (d,)
    return tt.Additive(
        rng.normal(size=(4, *more)) * size / np.array([20, 5, 2, 2]).reshape(4, *[1] * len(more)),
        rng.normal(size=more) if more else 3.0,
        knots=[KNOTS[0], KNOTS[1], [], KNOTS[2]],
        bends=size * rng.normal(size=(15, *more)),
        reach=[26.0, 6.0, 0.0, 3.0],
        features=NAMES,
    )


def column_of(x, names=NAMES):
    return dict(zip(names, x.T, strict=True))


@pytest.mark.parametrize("sd", [0.03, 1.0, 250.0])
@pytest.mark.parametrize("seed", range(4))
def test_straight_lines_between_points_move_nobody_by_more_than_a_hundredth_of_an_sd(seed, sd):
    # Curves are as large as the doses spread; the points are a rule of their own.
    log, policy = log_of(sd=sd), ruled(seed, sd)
    found = policy.points(log)
    among = ~np.any(
        [one.beyond(log.context[:, NAMES.index(one.context)]) for one in found.curves], 0
    )
    moved = np.abs(found.given(column_of(log.context))[:, 0] - policy(log.context))
    assert moved[among].max() <= MOVED * log.treatment.std()
    # Who is not among the points has a crp beyond the reach of its curve, and is counted.
    assert found.outside == (~among).sum() < 0.05 * N
    # What is said of the points shown at once is so.
    rough = np.abs(found.given(column_of(log.context), every=False)[:, 0] - policy(log.context))
    assert found.off == pytest.approx(rough[among].max())


def test_points_are_round_and_few_and_rounded():
    found = ruled().points(log_of())
    for one in found.curves:
        assert all(len(f"{value:.12g}".replace(".", "").strip("-0")) <= 3 for value in one.values)
        assert len(one.first) <= 12
        assert set(one.first) <= set(range(len(one.values)))
        # The ends are shown, and the middle, where nothing is added.
        assert {0, len(one.values) - 1} <= set(one.first)
        assert one.added[one.values.tolist().index(one.middle)] == 0.0
        (decimals,) = found.decimals
        np.testing.assert_allclose(one.added, np.round(one.added, decimals), atol=1e-12)
    # A count has whole values only, from the least to the largest that the curve bends for.
    visits = found["visits"].values
    assert (visits == np.round(visits)).all()
    assert visits[0] == X[:, 3].min()
    assert visits[-1] == min(X[:, 3].max(), KNOTS[2][-1] + 3.0)
    assert found["age"].values[0] <= X[:, 0].min()
    assert found["age"].values[-1] >= X[:, 0].max()


def test_the_points_shown_are_the_roundest_and_those_that_tell_most():
    # Twelve of some fifty: the tens all the way, then fives and ones where the curve bends.
    policy = tt.Additive([0.0], knots=[[20, 50, 80]], bends=[-2.0, 0.0, -2.0], reach=[26.0])
    found = policy.points(log_of(X[:, :1], names=("age",)))["age"]
    assert len(found.values) > 20
    shown = found.values[list(found.first)]
    assert len(shown) == 12
    assert {20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0} <= {*shown.tolist()}
    assert (shown % 5.0 == 0.0).all()


def test_more_points_stand_where_a_curve_bends_more():
    # A curve like the logarithm of a skewed context bends where most people are.
    policy = tt.Additive([0.0], knots=[KNOTS[1]], bends=np.log(KNOTS[1]), reach=[6.0])
    values = policy.points(log_of(X[:, [1]], names=("crp",)))["crp"].values
    assert (values < 3.0).sum() > 0.5 * len(values)


def test_points_by_hand():
    # A curve that is straight needs its ends, round values and its middle: 2·x, 0 at 5.
    policy = tt.Additive([2.0], 1.0, knots=[[1, 5, 9]], bends=[0, 0, 0], reach=[9.0])
    x = np.linspace(0.0, 10.0, 41)[:, None]
    found = points_of(policy, log_of(x, names=("x",)))
    assert found.start == 11.0
    assert found["x"].values.tolist() == [0.0, 5.0, 10.0]
    assert found["x"].added[:, 0].tolist() == [-10.0, 0.0, 10.0]
    assert found.table() == [
        ("context", "value", "added to dose"),
        ("start", "x 5", "11.00"),
        ("x", "0", "−10.00"),
        ("x", "5", "0"),
        ("x", "10", "+10.00"),
    ]
    assert found.lines_of_text() == ["curve(x): −10.00 at 0, 0 at 5, +10.00 at 10"]
    assert found.off == pytest.approx(0.0, abs=1e-12)


def test_an_absurd_value_does_not_stretch_the_points():
    x = X.copy()
    x[7, 0] = 1e6
    found = ruled().points(log_of(x))
    # The others are below 80. The curve goes on for 26 beyond its last knot, and nobody is there.
    assert found["age"].values[-1] == 80.0
    assert found.outside == ruled().points(log_of()).outside + 1


def test_each_of_two_doses_has_its_points():
    policy, log = ruled(d=2), log_of(d=2)
    found = policy.points(log)
    assert found.doses == ("dose 1", "dose 2")
    column = column_of(log.context)
    among = ~np.any([one.beyond(column[one.context]) for one in found.curves], 0)
    moved = np.abs(found.given(column) - policy(log.context))[among]
    assert (moved <= MOVED * log.doses.std(axis=0)).all()
    assert len(found.lines_of_text()) == 6
    assert found.to_frame().columns.tolist() == [
        *("context", "value", "added to dose 1", "added to dose 2")
    ]


def test_points_are_a_table_and_pictures():
    found = ruled().points(log_of())
    # The start, the line and the points shown; every point if that is asked for.
    assert len(found.to_frame()) == 2 + sum(len(one.first) for one in found.curves)
    every = found.every()
    assert len(every.to_frame()) == 2 + sum(len(one.values) for one in found.curves)
    assert (every.off <= MOVED * log_of().treatment.std()).all()
    assert (every.off < found.off).all()
    assert "carrier" in found.to_latex()
    assert "added to dose" in found._repr_html_()
    assert str(found).splitlines()[1].startswith("start")
    line = found.plot("crp").get_lines()[1]
    x = line.get_xdata()
    np.testing.assert_array_equal(line.get_ydata(), ruled().added(1, x))
    assert found.plot().get_xlabel() == "age"
    with pytest.raises(tt.InvalidArgument, match="one with a curve, age, crp, visits"):
        found["carrier"]


def test_of_many_curves_the_largest_are_kept_in_their_order():
    found = ruled().points(log_of())
    size = {one.context: np.ptp(one.line[:, 1]) for one in found.curves}
    kept = found.largest(2)
    smallest = min(size, key=size.get)
    assert [one.context for one in kept.curves] == [name for name in size if name != smallest]
    assert kept.left_out == 1
    assert found.largest(9).left_out == 0


def test_a_rule_without_curves_has_a_start_and_lines():
    policy = tt.Additive([2.0], 1.0, knots=[[]], bends=[], reach=[0.0])
    found = policy.points(log_of(X[:, :1], names=("age",)))
    assert not found.curves
    assert found.lines["age"] == pytest.approx(2.0)
    assert found.outside == 0


@pytest.mark.parametrize("value", [1e-7, 0.0123, 0.5, 1.0, 4.99, 777.0, 1e12])
def test_round_numbers_divide_each_other(value):
    found = round_below(value)
    assert found <= value * (1 + 1e-9) < 2.5 * found * (1 + 1e-9)
    for _ in range(5):
        finer = next_finer(found)
        assert found / finer == pytest.approx(round(found / finer))
        assert finer < found
        found = finer


def test_a_learner_tells_the_points_of_its_curves():
    rng = np.random.default_rng(2)
    age = rng.uniform(20, 80, 300)
    t = 4 + rng.normal(size=300)
    y = (t - 5 + ((age - 50) / 15) ** 2) ** 2 + rng.normal(size=300)
    log = tt.LoggedData(age[:, None], t, y, names=["age"])
    how = {"procedure": FAST, "honest": False}
    learner = tt.PolicyLearner(policy=tt.AdditiveClass(), **how).fit(log)
    found = learner.points()
    # The best dose is highest at 50; limits come after what points say.
    assert found["age"].added[found["age"].values.tolist().index(20)] < -0.5
    low, high = learner.policy_.lower, learner.policy_.upper
    given = np.clip(found.given({"age": age})[:, 0], low, high)
    np.testing.assert_allclose(given, learner.predict(age[:, None]), atol=MOVED * t.std())
    line = tt.PolicyLearner(policy=tt.LinearClass(), **how).fit(log)
    with pytest.raises(tt.InvalidArgument, match=r"class `Linear`\. Ask for curves"):
        line.points()
