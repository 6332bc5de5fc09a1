"""Policies that change the logged dose: their weights, values, checks and refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import naive
import titrant as tt
from evaluation.logs import DESIGN, KNOWN, smooth_log
from titrant.compiled import FEWEST, Loop
from titrant.estimators import PartlyObserved, Rows
from titrant.evaluation.evaluation import Evaluation
from titrant.kernels import Scale

ROUNDING = 1e-12
"""Of means of a few hundred numbers of size 1."""
SAME = 1e-9
"""Of computations that take the same steps in other units, or in other blocks."""
INTEGRAL = 2e-3
"""Of integrals as sums over a grid of doses, where the integrand jumps at bounds."""

NOTHING = [tt.Shift(0.0), tt.Multiply(1.0), tt.Tilt(0.0)]
PLAIN = tt.DoublyRobust(outcome=LinearRegression())
MOVES = {
    "shift": tt.Shift(0.4),
    "shift, kept": tt.Shift(-0.3, low=-1.0),
    "multiply": tt.Multiply(0.8),
    "moved": tt.Moved(lambda x, t: 0.7 * t + 0.1 * x[:, 0], lambda x, t: (t - 0.1 * x[:, 0]) / 0.7),
    "limited": tt.Limited(-0.5, 0.9),
    "tilt": tt.Tilt(0.4),
    "randomized": tt.Randomized(tt.Linear([1.0, -0.5], 0.2), 0.5),
}


def weights_of(log, policy, h=1.0, **settings):
    """The weights of a log of one block under a policy, by the self-normalized estimator."""
    settings = {"estimator": tt.SelfNormalized(clip=0.0)} | settings
    evaluation = Evaluation.of(log, {"policy": policy}, **({"propensity": KNOWN} | settings))
    return evaluation.estimator.weight(evaluation.held_blocks[0][0], Scale.of(h, 1))


# No change is the status quo.


each_nothing = pytest.mark.parametrize("policy", NOTHING, ids=repr)
each_form = pytest.mark.parametrize(
    "estimator",
    [PLAIN, replace(PLAIN, self_normalized=False), tt.SelfNormalized(), tt.IPW(centered=True)],
    ids=["DR", "DR, not normalized", "SN", "IPW"],
)
each_law = pytest.mark.parametrize("propensity", [KNOWN, tt.LinearGaussian()], ids=["known", "fit"])


def unchanged(log, policy, **settings):
    """The status quo and a policy that changes nothing, compared."""
    found = tt.compare(log, {"as it was": tt.StatusQuo(), "no change": policy}, **settings)
    return found["as it was"], found["no change"], found.contrast("no change", "as it was")


@each_nothing
@each_form
@each_law
def test_no_change_is_the_status_quo(policy, estimator, propensity):
    log = smooth_log(300)
    quo, same, apart = unchanged(log, policy, estimator=estimator, propensity=propensity)
    # Law: w = 1 in each row, so that mean r̂ + mean(y − r̂) = ȳ, exactly,
    assert same.value == pytest.approx(quo.value, abs=ROUNDING)
    assert same.se == pytest.approx(quo.se, abs=ROUNDING)
    assert same.ess == pytest.approx(300)
    assert same.bandwidth is None
    # and the paired difference is 0 without error.
    assert apart.difference == pytest.approx(0.0, abs=ROUNDING)
    # Law: the interval of a ratio leaves each row out of its own residual, which makes its SE
    # larger by n/(n − 1) at most; that of a mean does not.
    assert same.confidence.degrees == pytest.approx(quo.confidence.degrees)
    assert quo.confidence.se - ROUNDING <= same.confidence.se <= quo.confidence.se * 300 / 299


def with_gaps(log, share=0.3, seed=5):
    """The log with outcomes missing by context and dose, to be weighted by the chance of it."""
    rng = np.random.default_rng(seed)
    chance = 2.0 * share * norm.cdf(log.context[:, 0] + log.treatment)
    y = np.where(rng.uniform(size=len(log)) < chance, np.nan, log.outcome)
    gaps = tt.LoggedData(log.context, log.treatment, y, missing_outcome="weight")
    assert gaps.observed is not None
    return gaps


@each_nothing
@each_form
@each_law
def test_no_change_is_the_status_quo_where_outcomes_are_missing(policy, estimator, propensity):
    log = with_gaps(smooth_log(300))
    quo, same, apart = unchanged(log, policy, estimator=estimator, propensity=propensity)
    # Law: w = a in each row of both, the chance that an outcome is seen given context and dose.
    assert same.value == pytest.approx(quo.value, abs=ROUNDING)
    assert same.se == pytest.approx(quo.se, abs=ROUNDING)
    assert same.ess == pytest.approx(quo.ess)
    assert same.interval() == pytest.approx(quo.interval(), abs=SAME)
    assert apart.difference == pytest.approx(0.0, abs=ROUNDING)


def test_no_change_of_parts_where_outcomes_are_missing():
    log = with_gaps(smooth_log(300))
    policy, by = tt.Shift(0.0), {"x0": [0.0]}
    settings = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    for part in tt.subgroups(log, policy, by=by, **settings):
        # Law: the mean outcome of a part is what its status quo is worth.
        assert part.value == pytest.approx(part.against, abs=ROUNDING)
        assert part.outcome == pytest.approx(part.against, abs=ROUNDING)


def test_the_status_quo_of_three_rows_of_which_one_has_no_outcome():
    # r̂ = 1, 3, 5 at outcomes 2, missing, 6 and a = 2, 0, 1: mean r̂ = 3, Σa·e = 2·1 + 1·1 = 3 and
    # Σa = 3. Value 3 + 3/3, or 3 + 3/3 of a mean over three rows. With a = 4, 0, 1 it is 3 + 5/5,
    # or 3 + 5/3 un-normalized.
    rows = Rows(
        tau=np.zeros((3, 1)),
        t=np.zeros((3, 1)),
        y=np.array([2.0, 0.0, 6.0]),
        r_logged=np.array([1.0, 3.0, 5.0]),
        seen=np.array([2.0, 0.0, 1.0]),
    )
    other = replace(rows, seen=np.array([4.0, 0.0, 1.0]))
    scale = Scale.of(1.0, 1)

    def value(estimator, some):
        return estimator.value(estimator.terms(some, scale).mean(axis=0))

    plain = PartlyObserved(self_normalized=False)
    assert value(PartlyObserved(), rows) == pytest.approx(4.0)
    assert value(plain, rows) == pytest.approx(4.0)
    assert value(PartlyObserved(), other) == pytest.approx(4.0)
    assert value(plain, other) == pytest.approx(3.0 + 5.0 / 3.0)
    # Without an outcome model r is the mean outcome c of the log: 4 + (4·(−2) + 1·2)/5.
    bare = replace(other, r_logged=None, center=4.0)
    assert value(PartlyObserved(), bare) == pytest.approx(4.0 - 6.0 / 5.0)


def test_the_status_quo_with_gaps_is_the_loop():
    evaluation = Evaluation.of(
        with_gaps(smooth_log(60)), {"q": tt.StatusQuo()}, PLAIN, tt.LinearGaussian()
    )
    rows = evaluation.held_blocks[0][0]
    found = evaluation.point({0: None}).joint
    r, a, y = rows.r_logged, rows.seen, rows.y
    value, se = naive.doubly_robust_self_normalized(a, y, r, r)
    assert found.values[0] == pytest.approx(value, abs=ROUNDING)
    assert found.se[0] == pytest.approx(se, abs=ROUNDING)


@pytest.mark.long
def test_no_change_of_doses_with_point_masses():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 1))
    t = np.where(rng.uniform(size=400) < 0.3, 0.0, np.exp(0.3 * x[:, 0] + rng.normal(size=400)))
    log = tt.LoggedData(x, t, rng.normal(size=400) + t)
    levels = tt.LoggedData(x, np.minimum(np.round(t), 4.0), log.outcome)
    for one in (log, levels):
        for policy in NOTHING:
            found = tt.evaluate(one, policy, estimator=tt.SelfNormalized(), ignore_doubts=True)
            assert found.value == pytest.approx(one.outcome.mean(), abs=ROUNDING)


# Three rows worked out by hand. The dose is even over 0 … 10: f = 1/10, F = t/10.

EVEN = tt.Known(
    lambda X, t: np.where((t >= 0.0) & (t <= 10.0), 0.1, 0.0),  # noqa: ARG005
    lambda X, t: np.clip(np.asarray(t) / 10.0, 0.0, 1.0),  # noqa: ARG005
)
THREE = tt.LoggedData(np.zeros((3, 1)), [1.0, 5.0, 9.0], [2.0, 3.0, 7.0], bounds=(0.0, 10.0))


def value_of_three(policy, **settings):
    settings = {"estimator": tt.SelfNormalized(clip=0.0), "propensity": EVEN} | settings
    return tt.evaluate(THREE, policy, allow_untrusted=True, ignore_doubts=True, **settings).value


def test_shift_of_three_rows():
    # 2 more: 1 comes from −1, which is impossible: w = 0. 5 comes from 3: w = 1. 9 comes from 7,
    # and keeps its own dose, since 11 is impossible: w = 2. Value (3 + 2·7)/3 = 17/3.
    assert value_of_three(tt.Shift(2.0)) == pytest.approx(17 / 3)
    # Not above 8: 5 comes from 3, w = 1; 9 keeps its dose and no other becomes 9, w = 1; none
    # becomes 1. Value (3 + 7)/2.
    assert value_of_three(tt.Shift(2.0, high=8.0)) == pytest.approx(5.0)


def test_multiple_of_three_rows():
    # Half: t comes from 2t with slope 2. 1 from 2: w = 2; 5 from 10: w = 2; 9 from 18: w = 0.
    assert value_of_three(tt.Multiply(0.5)) == pytest.approx((2.0 + 3.0) / 2.0)
    # Without self-normalization: mean(w·y) = (2·2 + 2·3)/3.
    found = value_of_three(tt.Multiply(0.5), estimator=tt.IPW(clip=0.0))
    assert found == pytest.approx(10.0 / 3.0)


def test_cap_of_three_rows():
    # At most 4, the uniform kernel at h = 2: 1 stays, w = 1. Six in ten doses become 4, and 5 is
    # near: w = K/h · .6/.1 = .5/2 · 6 = 1.5. 9 is far from 4: w = 0. Value (2 + 1.5·3)/2.5.
    estimator = tt.SelfNormalized(kernel=tt.Uniform(), clip=0.0)
    found = value_of_three(tt.Limited(high=4.0), estimator=estimator, bandwidth=2.0)
    assert found == pytest.approx((2.0 + 4.5) / 2.5)


def test_tilt_of_three_rows():
    # w ∝ e^{δt}; the integral is the same in all rows and falls out of the ratio.
    w = np.exp(0.3 * THREE.treatment)
    assert value_of_three(tt.Tilt(0.3)) == pytest.approx(w @ THREE.outcome / w.sum())
    # Without self-normalization w = e^{δt}/∫e^{δs}f ds, ∫ = (e^{10δ} − 1)/(10δ).
    level = (math.exp(3.0) - 1.0) / 3.0
    found = value_of_three(tt.Tilt(0.3), estimator=tt.IPW(clip=0.0))
    assert found == pytest.approx(w @ THREE.outcome / level / 3.0, rel=1e-6)


def test_draws_of_three_rows():
    # w = g(t)/f, g the normal density at 5 ± 3 within 0 … 10.
    w = norm.pdf(THREE.treatment, 5.0, 3.0)
    policy = tt.Randomized(tt.Constant(5.0), 3.0)
    assert value_of_three(policy) == pytest.approx(w @ THREE.outcome / w.sum())
    inside = norm.cdf(5.0 / 3.0) - norm.cdf(-5.0 / 3.0)
    found = value_of_three(policy, estimator=tt.IPW(clip=0.0))
    assert found == pytest.approx(w / inside / 0.1 @ THREE.outcome / 3.0)


# Doses with point masses at 0 and 4, else even between: P(0) = .2, P(4) = .1, f = .7/4.


def _mixed(X, t):  # noqa: ARG001
    t = np.asarray(t)
    inner = np.where((t > 0.0) & (t < 4.0), 0.7 / 4.0, 0.0)
    return np.where(t == 0.0, 0.2, np.where(t == 4.0, 0.1, inner))


def _mixed_cdf(X, t):  # noqa: ARG001
    t = np.asarray(t)
    return np.clip(0.2 * (t >= 0) + 0.1 * (t >= 4) + 0.7 * np.clip(t / 4.0, 0, 1), 0.0, 1.0)


MIXED = tt.Known(_mixed, _mixed_cdf)


def mixed_log(n=600, seed=5):
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=n)
    t = np.where(u < 0.2, 0.0, np.where(u < 0.3, 4.0, 4.0 * rng.uniform(size=n)))
    x = rng.normal(size=(n, 1))
    return tt.LoggedData(x, t, (t - 1.0) ** 2 + x[:, 0], bounds=(0.0, 4.0))


def naive_weight(t, move, back, slope, kernel):
    """The weight of one dose under a change of it, as a sum over all that may become it."""

    def goes(s):
        to = move(s)
        return s if to < 0.0 or to > 4.0 else to

    own = float(_mixed(None, np.array([t]))[0])
    if t in (0.0, 4.0):
        total = sum(p for a, p in ((0.0, 0.2), (4.0, 0.1)) if goes(a) == t)
        return total / own
    w = 1.0 if goes(t) == t else 0.0
    s = back(t)
    if 0.0 < s < 4.0 and s != t:
        w += 0.7 / 4.0 * slope / own
    for a, p in ((0.0, 0.2), (4.0, 0.1)):
        if goes(a) not in (0.0, 4.0):
            w += p * kernel(t - goes(a)) / own
    return w


@pytest.mark.parametrize(
    ("policy", "move", "back", "slope"),
    [
        (tt.Shift(-0.7), lambda t: t - 0.7, lambda t: t + 0.7, 1.0),
        (tt.Shift(4.0), lambda t: t + 4.0, lambda t: t - 4.0, 1.0),
        (tt.Multiply(0.75), lambda t: 0.75 * t, lambda t: t / 0.75, 1 / 0.75),
        (tt.Multiply(1.5), lambda t: 1.5 * t, lambda t: t / 1.5, 1 / 1.5),
    ],
    ids=["shift", "onto another", "multiply", "kept"],
)
def test_weights_beside_point_masses_are_those_of_a_loop(policy, move, back, slope):
    log = mixed_log()
    h = 0.2

    def epanechnikov(u):
        return max(0.75 * (1.0 - (u / h) ** 2), 0.0) / h

    found = weights_of(log, policy, h=h, propensity=MIXED)
    wanted = [naive_weight(t, move, back, slope, epanechnikov) for t in log.treatment.tolist()]
    np.testing.assert_allclose(found, wanted, rtol=SAME, atol=SAME)


def test_a_cap_at_a_point_mass_needs_no_bandwidth():
    # At most 4 changes nothing; at least 0 neither. Both ends are point masses: no kernel.
    log = mixed_log()
    found = tt.evaluate(log, tt.Limited(0.0, 4.0), estimator=tt.SelfNormalized(), propensity=MIXED)
    assert found.bandwidth is None
    assert found.value == pytest.approx(log.outcome.mean(), abs=ROUNDING)


def test_levels_move_from_one_to_another():
    # Levels 1, 2, 3 with P = .5, .3, .2; one more: 3 stays. w(1) = 0, w(2) = .5/.3,
    # w(3) = (.3 + .2)/.2.
    p = np.array([0.5, 0.3, 0.2])
    law = tt.Known(lambda X, t: p[np.clip(np.asarray(t).astype(int) - 1, 0, 2)])  # noqa: ARG005
    t = np.repeat([1.0, 2.0, 3.0], [100, 60, 40])
    rng = np.random.default_rng(0)
    log = tt.LoggedData(rng.normal(size=(200, 1)), t, rng.normal(size=200), bounds=(1.0, 3.0))
    w = weights_of(log, tt.Shift(1.0), propensity=law)
    np.testing.assert_allclose(w, np.repeat([0.0, 0.5 / 0.3, 2.5], [100, 60, 40]))
    # Half a level more is given by none: a kernel reads it off its neighbors, and that is said.
    found = tt.evaluate(
        log, tt.Shift(0.5), propensity=law, estimator=tt.SelfNormalized(), allow_untrusted=True
    )
    assert found.bandwidth is not None
    assert found.diagnostics["between_levels"].value == 0.8  # those at 3 stay
    # Without bounds the 40 rows at 3 go beyond the list, and only they do.
    free = tt.LoggedData(log.context, t, log.outcome)
    found = tt.evaluate(
        free, tt.Shift(1.0), propensity=law, estimator=tt.SelfNormalized(), allow_untrusted=True
    )
    assert found.diagnostics["between_levels"].value == 0.2
    with pytest.raises(tt.DataError, match="a draw from a normal law is none of them"):
        tt.evaluate(log, tt.Randomized(tt.Constant(2.0), 0.5), propensity=law)


RARE = tt.Known(
    lambda X, t: np.array([0.4, 0.3, 0.25, 0.05])[np.clip(np.asarray(t).astype(int) - 1, 0, 3)],  # noqa: ARG005
    lambda X, t: np.array([0.0, 0.4, 0.7, 0.95, 1.0])[np.clip(np.asarray(t).astype(int), 0, 4)],  # noqa: ARG005
)


def rare_log():
    """Levels 1, 2 and 3 with P = .4, .3 and .25; in twenty rows one has 4, which is none."""
    rng = np.random.default_rng(0)
    t = np.repeat([1.0, 2.0, 3.0, 4.0], [80, 60, 50, 10])
    x = rng.normal(size=(200, 1))
    return tt.LoggedData(x, t, t**2 + rng.normal(size=200), atoms=(1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("policy", "each"),
    [
        (tt.Limited(high=3.0), [1.0, 1.0, (0.25 + 0.05) / 0.25, 0.0]),
        (tt.Limited(high=2.0), [1.0, (0.3 + 0.25 + 0.05) / 0.3, 0.0, 0.0]),
        (tt.Limited(low=2.0, high=3.0), [0.0, 0.7 / 0.3, 0.3 / 0.25, 0.0]),
        (tt.Shift(-1.0, low=1.0), [0.7 / 0.4, 0.25 / 0.3, 0.05 / 0.25, 0.0]),
        (tt.Shift(-2.0, low=1.0), [0.65 / 0.4, 0.35 / 0.3, 0.0, 0.0]),
    ],
    ids=repr,
)
def test_a_dose_that_few_rows_have_becomes_a_level(policy, each):
    # 4 is no level, and moves all the same: its probability lands on the level that it becomes.
    w = weights_of(rare_log(), policy, propensity=RARE)
    np.testing.assert_allclose(w, np.repeat(each, [80, 60, 50, 10]))


def test_no_dose_is_beyond_a_cap():
    log = rare_log()
    settings = {"estimator": tt.SelfNormalized(clip=0.0), "propensity": RARE}
    found = tt.evaluate(log, tt.Limited(high=3.0), **settings)
    # .4·ȳ(1) + .3·ȳ(2) + .3·ȳ(3), of counts that are as their probabilities
    means = [log.outcome[log.treatment == a].mean() for a in (1.0, 2.0, 3.0)]
    assert found.value == pytest.approx(np.dot([0.4, 0.3, 0.3], means))
    assert found.diagnostics["kept_doses"].value == 0.0
    assert "off_levels" not in {check.name for check in found.diagnostics}
    # A fitted law holds such doses as well: the mean weight is 1.
    rng = np.random.default_rng(1)
    x = rng.normal(size=(600, 1))
    t = np.clip(5.0 * np.round((30.0 + 6.0 * x[:, 0] + 8.0 * rng.normal(size=600)) / 5.0), 0, 70)
    w = weights_of(tt.LoggedData(x, t, t), tt.Limited(high=35.0), propensity=tt.LinearGaussian())
    assert w[t > 35.0].max() == 0.0
    assert w.mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.long
def test_caps_of_doses_in_steps_are_covered():
    """Doses are multiples of 5, those at both ends rare; at most 35 changes the mean by −.685."""

    def mean(x, t):
        return ((t - 25.0) / 10.0) ** 2 + 2.0 * np.sin(1.5 * x[:, 0]) + x[:, 1]

    for seed in range(1000, 1006):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(800, 2))
        about = 30.0 + 8.0 * np.sin(1.5 * x[:, 0]) + 4.0 * x[:, 1]
        t = 5.0 * np.round((about + 8.0 * rng.normal(size=800)) / 5.0)
        log = tt.LoggedData(x, t, mean(x, t) + 0.5 * rng.normal(size=800))
        found = tt.compare(log, {"cap": tt.Limited(high=35.0), "as it was": tt.StatusQuo()})
        low, high = found.contrast("cap", "as it was").interval()
        assert low < -0.685 < high  # of 400,000 draws, ± .002


def test_a_dose_that_stays_for_want_of_a_level_is_told():
    settings = {"estimator": tt.SelfNormalized(), "propensity": RARE, "allow_untrusted": True}
    for policy in (tt.Shift(1.0), tt.Tilt(0.2)):
        check = tt.evaluate(rare_log(), policy, **settings).diagnostics["off_levels"]
        assert check.verdict.value == "warn"
        assert "10 of 200 rows keep their dose: it is none of the levels" in check.message
    nothing = tt.evaluate(rare_log(), tt.Tilt(0.0), **settings)
    assert "off_levels" not in {check.name for check in nothing.diagnostics}


# Weights are a law's ratio to another: ∫ w(t, x) f(t | x) dt = 1, whatever the context.


@pytest.mark.parametrize("name", MOVES)
def test_weights_integrate_to_one(name):
    t = np.linspace(-3.0, 3.4, 12_801)
    x = np.tile([0.3, 0.2], (len(t), 1))
    log = tt.LoggedData(x, t, np.arange(len(t)) % 7.0, atoms=())
    f = norm.pdf(t, 0.3 - 0.1 + 0.2, 0.6)  # the law of KNOWN there: nearly all of it is in range
    w = weights_of(log, MOVES[name], h=0.3)
    assert np.trapezoid(w * f, t) == pytest.approx(1.0, abs=INTEGRAL)
    # Under them the mean dose is that of the policy.
    draws = np.random.default_rng(0).normal(0.4, 0.6, size=200_000)
    to = {
        "shift": draws + 0.4,
        "shift, kept": np.where(draws - 0.3 < -1.0, draws, draws - 0.3),
        "multiply": 0.8 * draws,
        "moved": 0.7 * draws + 0.03,
        "limited": np.clip(draws, -0.5, 0.9),
        "tilt": draws + 0.4 * 0.36,
        "randomized": np.full(1, 0.4),
    }[name]
    assert np.trapezoid(w * f * t, t) == pytest.approx(to.mean(), abs=0.01)


def test_compiled_loops_see_the_same_weights(monkeypatch):
    # A cap at both ends, and point masses that land elsewhere: all that a kernel decides about.
    wide, masses = smooth_log(500), mixed_log(500)
    for log, policy, law in (
        (wide, tt.Limited(-0.2, 0.6), KNOWN),
        (masses, tt.Multiply(0.75), MIXED),
    ):
        plain = weights_of(log, policy, h=0.5, propensity=law)
        monkeypatch.setitem(FEWEST, Loop.WEIGHTS, 1)
        compiled = weights_of(log, policy, h=0.5, propensity=law)
        monkeypatch.undo()
        np.testing.assert_allclose(compiled, plain, rtol=SAME, atol=SAME)


# Other units, other blocks, other places.


def in_units(policy, c):
    if isinstance(policy, tt.Shift):
        return tt.Shift(c * policy.by, c * policy.low, c * policy.high)
    if isinstance(policy, tt.Limited):
        return tt.Limited(c * policy.low, c * policy.high)
    if isinstance(policy, tt.Tilt):
        return tt.Tilt(policy.strength / c)
    if isinstance(policy, tt.Randomized):
        rule = policy.policy
        return tt.Randomized(tt.Linear(c * rule.coef, c * rule.intercept), c * policy.sd)
    if isinstance(policy, tt.Moved):
        return tt.Moved(
            lambda x, t: c * policy.function(x, t / c), lambda x, t: c * policy.inverse(x, t / c)
        )
    return policy


@pytest.mark.parametrize("name", MOVES)
def test_units_of_the_dose_change_nothing(name):
    log, c = smooth_log(300), 1000.0
    # Law: the value is the same whatever the unit of the dose.
    other = tt.LoggedData(log.context, c * log.treatment, log.outcome)
    plain = tt.LoggedData(log.context, log.treatment, log.outcome)
    settings = {"estimator": PLAIN, "propensity": tt.LinearGaussian(), "allow_untrusted": True}
    own = tt.evaluate(plain, MOVES[name], **settings)
    same = tt.evaluate(other, in_units(MOVES[name], c), **settings)
    assert same.value == pytest.approx(own.value, rel=1e-7)
    assert same.se == pytest.approx(own.se, rel=1e-6)


def test_files_give_what_memory_gives(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    log = smooth_log(900)
    columns = {"a": log.context[:, 0], "b": log.context[:, 1], "t": log.treatment, "y": log.outcome}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet", row_group_size=200)
    files = tt.scan_parquet(
        tmp_path / "log.parquet", tt.Columns(context=("a", "b"), treatment="t", outcome="y")
    )
    held = tt.LoggedData(log.context, log.treatment, log.outcome, names=["a", "b"])
    settings = {"estimator": PLAIN, "propensity": tt.LinearGaussian(), "allow_untrusted": True}
    own, same = (tt.compare(one, MOVES, **settings) for one in (held, files))
    for name in MOVES:
        assert same[name].value == pytest.approx(own[name].value, rel=SAME)
        assert same[name].se == pytest.approx(own[name].se, rel=SAME)
        assert same[name].interval() == pytest.approx(own[name].interval(), rel=1e-7)


@pytest.mark.parametrize("name", MOVES)
def test_copies_in_groups_and_weights(name):
    log = smooth_log(200)
    settings = {"estimator": tt.SelfNormalized(), "propensity": KNOWN, "bandwidth": 0.5}
    settings["allow_untrusted"] = True
    own = tt.evaluate(
        tt.LoggedData(log.context, log.treatment, log.outcome), MOVES[name], **settings
    )
    three = [np.repeat(part, 3, axis=0) for part in (log.context, log.treatment, log.outcome)]
    # Law: a row repeated within its group changes neither value nor SE,
    copies = tt.LoggedData(*three, groups=np.repeat(np.arange(200), 3))
    found = tt.evaluate(copies, MOVES[name], **settings)
    assert found.value == pytest.approx(own.value, rel=SAME)
    assert found.se == pytest.approx(own.se, rel=0.01)  # up to G/(G − 1)
    # and weights of any one size change nothing.
    even = tt.LoggedData(log.context, log.treatment, log.outcome, weights=np.full(200, 2.5))
    assert tt.evaluate(even, MOVES[name], **settings).value == pytest.approx(own.value, rel=SAME)


@pytest.mark.parametrize("propensity", [KNOWN, tt.LinearGaussian()], ids=["known", "fitted"])
def test_outcomes_missing_by_dose(propensity):
    # The chance of an outcome depends on contexts and dose. V of τ = T + c is known: with the
    # design's m = 1 + x0 + (t − b)², T ~ N(b + .2, .6²), it is 1 + E x0 + .36 + (.2 + c)².
    log = smooth_log(20_000, seed=4)
    chance = 1.0 / (1.0 + np.exp(-0.8 - log.context[:, 0] - 1.5 * log.treatment))
    seen = np.random.default_rng(1).uniform(size=len(log)) < chance
    y = np.where(seen, log.outcome, np.nan)
    missing = tt.LoggedData(log.context, log.treatment, y, missing_outcome="weight")
    settings = {"estimator": tt.SelfNormalized(), "propensity": propensity}
    policies = {"shift": tt.Shift(0.3), "cap": tt.Limited(high=0.5), "tilt": tt.Tilt(0.8)}
    found = tt.compare(missing, policies, allow_untrusted=True, **settings)
    # A tilt by δ moves the mean of a normal law of sd .6 by .36·δ.
    doses = {
        "shift": log.treatment + 0.3,
        "cap": np.minimum(log.treatment, 0.5),
        "tilt": log.treatment + 0.36 * 0.8,
    }
    for name, t in doses.items():
        low, high = found[name].interval(0.9999)
        assert low < DESIGN.mean_outcome(log.context, t).mean() < high
        mean = next(check for check in found[name].diagnostics if check.name == "mean_weight")
        assert abs(mean.value - 1.0) < 0.03


# Values and their company.


def test_the_direct_method_is_the_mean_prediction():
    log = smooth_log(200)
    model = LinearRegression()
    found = tt.evaluate(log, tt.Shift(0.3), estimator=tt.DirectMethod(outcome=model, folds=1))
    design = np.column_stack([log.context, log.treatment])
    model.fit(design, log.outcome)
    assert found.value == pytest.approx(model.predict(design).mean() + 0.3 * model.coef_[-1])


def test_beside_rules_of_contexts_with_paired_differences():
    log = smooth_log(600)
    policies = {"as it was": tt.StatusQuo(), "more": tt.Shift(0.2), "rule": tt.Linear([1.0, -0.5])}
    found = tt.compare(log, policies, estimator=PLAIN, propensity=KNOWN)
    difference = found.contrast("more", "as it was")
    # (t − b)² with T − b ~ N(.2, .36): .2 more adds .2·(2·.2 + .2) = .12.
    assert abs(difference.difference - 0.12) < 4.0 * difference.se
    # Pairing takes out what both share.
    assert difference.se < 0.5 * math.hypot(found["more"].se, found["as it was"].se)
    assert found["more"].bandwidth is None
    assert found["more"].interval()[0] < found["more"].value < found["more"].interval()[1]


def test_a_curve_over_the_amount():
    log = smooth_log(300)
    found = tt.curve(log, tt.Shift, [-0.2, 0.0, 0.2], estimator=PLAIN, propensity=KNOWN)
    assert found.values[1] == pytest.approx(log.outcome.mean(), abs=ROUNDING)
    assert found.band().shape == (3, 2)


# Checks.


def checks_of(log, policy, **settings):
    settings = {"estimator": tt.SelfNormalized(), "propensity": KNOWN} | settings
    found = tt.evaluate(log, policy, allow_untrusted=True, **settings)
    return {check.name: check.verdict.value for check in found.diagnostics}


def test_a_change_that_is_too_large_is_refused():
    log = smooth_log(1000)
    assert checks_of(log, tt.Shift(0.3))["effective_share"] == "ok"
    far = checks_of(log, tt.Shift(1.4))
    assert far["effective_share"] == "refuse"
    assert far["weight_tail"] != "ok"
    with pytest.raises(tt.UntrustedEstimate, match="the rows are worth"):
        tt.evaluate(log, tt.Shift(1.4), estimator=tt.SelfNormalized(), propensity=KNOWN)


@pytest.mark.parametrize("policy", [tt.Shift(40.0), tt.Multiply(1e-9), tt.Tilt(400.0)], ids=repr)
def test_a_change_that_leaves_the_log_altogether(policy):
    # Whatever the propensities give there, numbers too small to be divided are no weights.
    settings = {"estimator": tt.SelfNormalized(), "propensity": KNOWN}
    with pytest.raises(tt.UntrustedEstimate):
        tt.evaluate(smooth_log(200), policy, **settings)


def test_rows_that_keep_their_dose_are_told():
    log = smooth_log(400)
    found = tt.evaluate(
        log, tt.Shift(0.2, high=0.5), estimator=tt.SelfNormalized(), propensity=KNOWN
    )
    kept = next(check for check in found.diagnostics if check.name == "kept_doses")
    assert kept.verdict.value == "warn"
    assert kept.value == pytest.approx(np.mean(log.treatment + 0.2 > 0.5))


def test_impossible_doses_are_pointed_out():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(500, 1))
    t = np.exp(0.3 * x[:, 0] + 0.5 * rng.normal(size=500))
    y = t + rng.normal(size=500)
    log = tt.LoggedData(x, t, y)
    settings = {"propensity": tt.LinearGaussian()}

    def told(one, policy):
        found = tt.evaluate(
            one, policy, estimator=tt.SelfNormalized(), allow_untrusted=True, **settings
        )
        check = next(check for check in found.diagnostics if check.name == "beyond_logged")
        return "below 0, where none was logged" in check.message, check.verdict.value

    assert told(log, tt.Shift(-0.5)) == (True, "warn")
    assert not told(log, tt.Shift(-0.5, low=0.0))[0]
    assert not told(tt.LoggedData(x, t, y, bounds=(0.0, None)), tt.Shift(-0.5))[0]
    assert told(log, tt.Multiply(1.05)) == (False, "ok")
    # A normal law of skewed doses is seen in their ranks.
    assert checks_of(log, tt.Shift(-0.1), **settings)["propensity_pit"] == "warn"


# Refusals.


class Twice(tt.SelfNormalized):
    def weight(self, rows, scale):
        return 2.0 * super().weight(rows, scale)


@pytest.mark.parametrize(
    ("policy", "settings", "sentence"),
    [
        (tt.Shift(1.0), {}, r"the log's column of propensities .* `propensity=Known\(function\)`"),
        (tt.Shift(1.0), {"estimator": tt.Discretized(), "propensity": KNOWN}, "a way of its own"),
        (tt.Shift(1.0), {"estimator": Twice(), "propensity": KNOWN}, "a way of its own"),
        (tt.Tilt(1.0), {"estimator": tt.DirectMethod()}, "does not estimate"),
    ],
)
def test_refused_in_a_sentence(policy, settings, sentence):
    with pytest.raises(tt.InvalidArgument, match=sentence):
        tt.evaluate(smooth_log(100), policy, **settings)


def test_a_cap_without_a_cdf_is_refused_and_others_are_answered():
    log, bare = smooth_log(300), tt.Known(KNOWN.density)
    settings = {"estimator": tt.SelfNormalized(), "propensity": bare, "allow_untrusted": True}
    reason = "Policy 'cap', a `Limited`, needs how likely doses beyond its ends are"
    policies = {"cap": tt.Limited(high=0.5), "more": tt.Shift(0.2)}
    found = tt.compare(log, policies, **settings)
    assert found.names == ["more"]
    assert found.refused["cap"].startswith(reason)
    assert found["more"].value == tt.evaluate(log, policies["more"], **settings).value
    with pytest.raises(tt.InvalidArgument, match=reason):
        tt.compare(log, {"cap": policies["cap"]}, **settings)


def test_vector_doses_are_refused():
    rng = np.random.default_rng(0)
    log = tt.LoggedData(rng.normal(size=(99, 1)), rng.normal(size=(99, 2)), rng.normal(size=99))
    with pytest.raises(tt.InvalidArgument, match="changes one dose, and the log has 2"):
        tt.evaluate(log, tt.Multiply(0.9))


def test_a_path_takes_a_bandwidth():
    with pytest.raises(tt.InvalidArgument, match="no path"):
        tt.bandwidth_path(smooth_log(100), tt.Shift(0.1), propensity=KNOWN, estimator=PLAIN)
    found = tt.bandwidth_path(
        smooth_log(200), tt.Limited(high=0.5), propensity=KNOWN, estimator=tt.SelfNormalized()
    )
    assert np.isfinite(found.values).any()
