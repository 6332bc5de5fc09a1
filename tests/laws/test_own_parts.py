"""A part of a user's own is honored everywhere, or refused in a sentence; it is never replaced.

Every pair of `own.py` is asked through the public names, with compiled loops on and off, in memory
and in parts, at few and at many rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest

import titrant as tt
from equivalence.test_sources import Chunks, in_files
from laws import where
from laws.own import (
    CONSTRAINTS,
    ESTIMATORS,
    Along,
    Bent,
    HalfSpace,
    Negative,
    Quotient,
    Stump,
    Tilted,
    Tricube,
)
from optimize.functions import Numerical
from sweeps import long
from titrant.bandwidth import PlugIn
from titrant.compiled import FEWEST, Loop
from titrant.data.simulate import Quadratic
from titrant.inference import INTERVALS
from titrant.kernels import Biweight, Epanechnikov
from titrant.kernels.base import CompactKernel
from titrant.learn import Automatic
from titrant.learn.classes.linear import FittedLinear, LinearClass
from titrant.optimize import LBFGS, Constraint, Status
from titrant.outcome import ridge_pair
from titrant.policies import Policy

CLOSE = 1e-9  # the same sums by other operations
SEARCHED = 2e-5  # where two searches for one minimum end, in units of the parameters
INSIDE = 1e-8  # how far rounding may carry a point out of its set

LOG = Quadratic().draw(500, seed=3)
MANY = Quadratic().draw(where.SEVERAL_BLOCKS, seed=4)
POLICY = tt.Linear([0.9, -0.4], 0.2)

each_estimator = pytest.mark.parametrize("name", ESTIMATORS)
each_constraint = pytest.mark.parametrize("name", CONSTRAINTS)


@pytest.fixture(params=[True, False], ids=["loops", "numpy"])
def loops(request):
    with where.loops(on=request.param):
        yield request.param


def in_memory(log):
    return log


def in_chunks(log):
    return Chunks(log, 90, sample_rows=len(log))


each_source = pytest.mark.parametrize("source", [in_memory, in_chunks])
# One search over files is in `test_over_files`.
searched_source = pytest.mark.parametrize("source", [in_memory, *long(in_chunks)])


def numbers(estimate):
    return [estimate.value, estimate.se, estimate.ess, float(estimate.bandwidth.h)]


def params(learner):
    inside = learner.policy_.policy if isinstance(learner.policy_, tt.Clipped) else learner.policy_
    return inside.params


def learned(log, **settings):
    maximize = settings.pop("maximize", False)
    procedure = tt.CPO(bandwidth=0.9, restarts=2, **settings)
    return tt.PolicyLearner(procedure=procedure, maximize=maximize, honest=False).fit(log)


# ── estimators and kernels ───────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("loops")
@each_source
@each_estimator
def test_an_estimate_and_its_bandwidth(name, source):
    pair = ESTIMATORS[name]
    asked = {"allow_untrusted": True, "interval": tt.Normal()}
    mine = tt.evaluate(source(LOG), POLICY, estimator=pair.own, **asked)
    twin = tt.evaluate(source(pair.change(LOG)), POLICY, estimator=pair.twin, **asked)
    np.testing.assert_allclose(numbers(mine), numbers(twin), rtol=CLOSE)
    np.testing.assert_allclose(mine.interval(), twin.interval(), rtol=CLOSE)


@pytest.mark.usefixtures("loops")
@each_source
@each_estimator
def test_a_bandwidth_path(name, source):
    pair = ESTIMATORS[name]
    mine = tt.bandwidth_path(source(LOG), POLICY, estimator=pair.own)
    twin = tt.bandwidth_path(source(pair.change(LOG)), POLICY, estimator=pair.twin)
    for column in ("values", "se", "ess", "count"):
        np.testing.assert_allclose(getattr(mine, column), getattr(twin, column), rtol=1e-7)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
@each_estimator
def test_an_interval(name, interval):
    pair = ESTIMATORS[name]
    if isinstance(interval, tt.PoissonBootstrap):
        interval = replace(interval, draws=100)
    asked = {"bandwidth": 0.5, "allow_untrusted": True, "interval": interval}
    mine = tt.evaluate(LOG, POLICY, estimator=pair.own, **asked).interval()
    twin = tt.evaluate(pair.change(LOG), POLICY, estimator=pair.twin, **asked).interval()
    # A value of another form has no leverage to leave out: its interval is the delta method's.
    rough = isinstance(pair.own, (Quotient, Negative))
    np.testing.assert_allclose(mine, twin, rtol=0.02 if rough else CLOSE)


@pytest.mark.parametrize("name", ["a weight", "a baseline", "terms", "a kernel's value"])
def test_one_row_more_than_loops_take_changes_little(name, monkeypatch):
    for loop in (Loop.WEIGHTS, Loop.PATH):
        monkeypatch.setitem(FEWEST, loop, len(MANY) - 1)
    # The rows from which on loops would be used: nothing but rounding tells the two apart.
    pair = ESTIMATORS[name]
    asked = {"allow_untrusted": True, "interval": tt.Normal()}
    many = numbers(tt.evaluate(MANY, POLICY, estimator=pair.own, **asked))
    twins = numbers(tt.evaluate(pair.change(MANY), POLICY, estimator=pair.twin, **asked))
    np.testing.assert_allclose(many, twins, rtol=1e-7)
    mine, twin = (
        tt.bandwidth_path(log, POLICY, estimator=estimator)
        for log, estimator in ((MANY, pair.own), (pair.change(MANY), pair.twin))
    )
    np.testing.assert_allclose(mine.values, twin.values, rtol=1e-7)
    np.testing.assert_allclose(mine.se, twin.se, rtol=1e-6)
    fewer = tt.evaluate(MANY.rows(slice(0, -2)), POLICY, estimator=pair.own, **asked)
    np.testing.assert_allclose(numbers(fewer), many, rtol=0.01)


@pytest.mark.usefixtures("loops")
@searched_source
@each_estimator
def test_a_learned_policy(name, source):
    pair = ESTIMATORS[name]
    mine = learned(source(LOG), estimator=pair.own)
    twin = learned(source(pair.change(LOG)), estimator=pair.twin)
    np.testing.assert_allclose(params(mine), params(twin), atol=SEARCHED)
    assert mine.solution_.value * mine.learned_.report["outcome_unit"] + mine.learned_.report[
        "outcome_center"
    ] == pytest.approx(
        twin.solution_.value * twin.learned_.report["outcome_unit"]
        + twin.learned_.report["outcome_center"],
        abs=1e-6,
    )


# A negative value of a reward is a loss again: nothing that one would maximize.
GOOD = [name for name, pair in ESTIMATORS.items() if not isinstance(pair.own, Negative)]


@searched_source
@pytest.mark.parametrize("name", GOOD)
def test_a_policy_learned_from_rewards(name, source):
    # An estimator of one's own is shown rewards as they were logged, not their negatives.
    pair = ESTIMATORS[name]
    rewards = LOG.with_outcome(-LOG.outcome)
    # What has the outcome's sign turns with it; the built-in twin is shown losses.
    if name == "a baseline":
        pair = replace(pair, own=replace(pair.own, slope=-2.0))
    if name == "a weight beside a model":
        pair = replace(pair, own=replace(pair.own, outcome=Along(-2.0)))
    mine = learned(source(rewards), estimator=pair.own, maximize=True)
    twin = learned(source(pair.change(rewards)), estimator=pair.twin, maximize=True)
    np.testing.assert_allclose(params(mine), params(twin), atol=SEARCHED)


def test_penalties_of_an_estimator_of_ones_own():
    pair = ESTIMATORS["a weight"]
    penalties = {"ridge": 0.01, "se_weight": 0.5, "ess_floor": 60}
    mine = learned(LOG, estimator=pair.own, **penalties)
    twin = learned(pair.change(LOG), estimator=pair.twin, **penalties)
    np.testing.assert_allclose(params(mine), params(twin), atol=SEARCHED)
    with pytest.raises(tt.InvalidArgument, match="`ess_floor` of `CPO` must be 0 without weights"):
        tt.CPO(estimator=Quotient(), ess_floor=60)


def test_the_best_constant_by_an_estimator_of_ones_own():
    for pair in (ESTIMATORS["a weight"], ESTIMATORS["a kernel of high degree"]):
        mine = tt.best_constant(LOG, estimator=pair.own, bandwidth=0.9)
        twin = tt.best_constant(pair.change(LOG), estimator=pair.twin, bandwidth=0.9)
        assert mine.dose == pytest.approx(twin.dose, abs=1e-4)


def test_over_files(tmp_path):
    pair = ESTIMATORS["a weight"]
    (tmp_path / "own").mkdir()
    (tmp_path / "twin").mkdir()
    files = in_files(LOG, tmp_path / "own", 3)
    twins = in_files(pair.change(LOG), tmp_path / "twin", 3)
    np.testing.assert_allclose(
        params(learned(files, estimator=pair.own)),
        params(learned(twins, estimator=pair.twin)),
        atol=SEARCHED,
    )


def test_what_cannot_be_honored_is_refused():
    with pytest.raises(tt.InvalidArgument, match="`Tilted` weights rows in its own way"):
        tt.evaluate(LOG, POLICY, estimator=Tilted(), bandwidth=PlugIn())

    @dataclass
    class Mutable(Epanechnikov.__mro__[1]):
        coefficients = (0.75, 0.0, -0.75)

    with pytest.raises(tt.InvalidArgument, match="must be hashable"):
        tt.SelfNormalized(kernel=Mutable())


class Peaked(Epanechnikov):
    """¾(1 − u²) and 15/16(1 − u²)² mixed by a number of its own, beside the fields."""

    __slots__ = ("share",)

    def __init__(self, share):
        object.__setattr__(self, "share", share)

    @property
    def coefficients(self):
        one, other = (np.resize((*k.coefficients, 0, 0), 5) for k in (Epanechnikov, Biweight))
        return tuple(one + self.share * (other - one))


class PeakedByDict(Epanechnikov):
    __init__, coefficients = Peaked.__init__, Peaked.coefficients


@dataclass(frozen=True, eq=False)
class PeakedByField(Epanechnikov):
    share: float
    coefficients = Peaked.coefficients


@dataclass(frozen=True, slots=True)
class PeakedUncompared(Epanechnikov):
    share: float = field(compare=False)
    coefficients = Peaked.coefficients


@dataclass(frozen=True, slots=True)
class PeakedOpenly(Epanechnikov):
    share: float
    coefficients = Peaked.coefficients


class PeakedByItself(CompactKernel):
    """Equal to itself alone."""

    second_moment, roughness = Epanechnikov.second_moment, Epanechnikov.roughness
    bound, lipschitz = Biweight.bound, Biweight.lipschitz
    __init__, coefficients = Peaked.__init__, Peaked.coefficients


@pytest.mark.parametrize("kind", [Peaked, PeakedByDict, PeakedByField, PeakedUncompared])
def test_a_kernel_that_equals_another_is_refused(kind):
    # What is computed once for equal kernels would be that of the first of them.
    assert kind(0.2) == kind(0.8)
    with pytest.raises(tt.InvalidArgument, match="a field for all that differs; 'share' is none"):
        tt.SelfNormalized(kernel=kind(0.2))


@pytest.mark.parametrize("kind", [PeakedOpenly, PeakedByItself])
def test_a_kernel_with_a_number_of_its_own_is_told_from_others(kind):
    # A mixture of two kernels has the mixture of their sums: the weighted mean of both estimates.
    asked = {"bandwidth": 0.5, "allow_untrusted": True, "interval": tt.Normal()}
    ends = [
        tt.evaluate(LOG, POLICY, estimator=tt.IPW(kernel=kernel), **asked).value
        for kernel in (Epanechnikov(), Biweight())
    ]
    for on in (True, False):
        with where.loops(on=on):
            for share in (0.2, 0.8):
                mixed = tt.evaluate(LOG, POLICY, estimator=tt.IPW(kernel=kind(share)), **asked)
                assert mixed.value == pytest.approx(np.interp(share, [0, 1], ends), rel=CLOSE)


@pytest.mark.usefixtures("loops")
def test_one_estimator_that_says_otherwise_by_itself():
    # Its weight and that weight's slope are those of `Tilted`, in no class.
    own, twin = tt.SelfNormalized(clip=0.0), Tilted(clip=0.0)
    object.__setattr__(own, "weight", twin.weight)
    object.__setattr__(own, "weight_slope", twin.weight_slope)
    mine, theirs = (tt.bandwidth_path(LOG, POLICY, estimator=e) for e in (own, twin))
    np.testing.assert_array_equal(mine.values, theirs.values)
    np.testing.assert_array_equal(mine.se, theirs.se)
    np.testing.assert_array_equal(*(params(learned(LOG, estimator=e)) for e in (own, twin)))
    lower = tt.SelfNormalized()
    object.__setattr__(lower, "value", lambda mean: float(lower.values(mean)) - 1.0)
    below, plain = (
        tt.bandwidth_path(LOG, POLICY, estimator=e).values for e in (lower, tt.SelfNormalized())
    )
    np.testing.assert_allclose(below, plain - 1.0, rtol=CLOSE)


# ── constraints ──────────────────────────────────────────────────────────────────────────────────


# A smooth objective: where doses are cut to a range it has kinks, and near-equal minima there.
SMOOTH = {"estimator": tt.SelfNormalized(kernel=tt.Gaussian()), "clipped": False}


@each_source
@each_constraint
def test_a_constraint(name, source):
    pair = CONSTRAINTS[name]
    mine, twin = (learned(source(LOG), constraint=c, **SMOOTH) for c in (pair.own, pair.twin))
    np.testing.assert_allclose(params(mine), params(twin), atol=SEARCHED)
    assert mine.solution_.status is Status.CONVERGED


@each_source
def test_a_sum_of_coefficients_stays_below_its_limit(source):
    # Without the limit the parameters' sum is .44.
    half = HalfSpace((1.0, 1.0, 1.0), 0.3)
    free, held = (learned(source(LOG), **given) for given in ({}, {"constraint": half}))

    def total(learner):
        unit = learner.learned_.report["dose_unit"][0]
        return float(np.sum(learner.solution_.params)) * unit

    assert total(free) > 0.4
    assert total(held) == pytest.approx(0.3, abs=INSIDE)
    assert held.solution_.value > free.solution_.value


@pytest.mark.parametrize("size", [2, 5, 30])
def test_the_nearest_point_of_a_half_space(size):
    # Known answer: the least ‖β − c‖² in a set is at the projection of c, here badly scaled.
    rng = np.random.default_rng(size)
    half, c = HalfSpace(tuple(rng.normal(size=size)), -1.0), 3 + rng.normal(size=size)
    objective = Numerical(lambda b: float(np.sum((b - c) ** 2)))
    found = LBFGS(constraint=half).minimize(objective, rng.normal(size=(4, size)))
    np.testing.assert_allclose(found.params, half.project(c[None])[0], atol=1e-5)
    assert found.status is Status.CONVERGED
    assert np.all(found.ends @ np.asarray(half.normal) <= -1.0 + INSIDE)


def test_a_narrow_valley_across_a_half_space():
    # Rosenbrock's valley, cut off at x ≤ .5: the least value is at (.5, .25).
    def rosenbrock(b):
        return float((1 - b[0]) ** 2 + 100 * (b[1] - b[0] ** 2) ** 2)

    half = HalfSpace((1.0, 0.0), 0.5)
    found = LBFGS(constraint=half).minimize(
        Numerical(rosenbrock, step=1e-7), np.array([[-1.2, 1.0]])
    )
    np.testing.assert_allclose(found.params, [0.5, 0.25], atol=1e-4)


@dataclass(frozen=True)
class Halving(Constraint):
    """A `project` that never arrives."""

    def project(self, params):
        return params / 2


def test_a_projection_that_is_none_is_refused():
    objective = Numerical(lambda b: float(np.sum((b - [2.0, 0.3]) ** 2)))
    with pytest.raises(tt.InvalidArgument, match="leaves its own points where they are"):
        LBFGS(constraint=Halving()).minimize(objective, np.array([[-0.5, 2.0], [1.0, 1.0]]))


# ── policies and propensities ────────────────────────────────────────────────────────────────────


class Steeper(tt.Linear):
    """A linear policy that gives twice the dose."""

    def __call__(self, X):
        return 2.0 * tt.Linear.__call__(self, X)


class Frozen(tt.StatusQuo):
    """A status quo with a formula."""

    def __call__(self, X):
        return X[:, 0] - 0.5 * X[:, 1]


def test_a_subclass_of_a_policy_is_not_taken_for_its_base():
    own = tt.evaluate(LOG, Frozen(), estimator=tt.SelfNormalized(), bandwidth=0.5)
    same = tt.evaluate(
        LOG, lambda X: X[:, 0] - 0.5 * X[:, 1], estimator=tt.SelfNormalized(), bandwidth=0.5
    )
    assert own.value == same.value
    with pytest.raises(tt.InvalidArgument, match="not a subclass of theirs"):
        tt.PolicyLearner(policy=Steeper()).fit(LOG)


STUMP = Stump(0, 0.2, -0.3, 0.4)


@pytest.mark.usefixtures("loops")
@searched_source
@pytest.mark.parametrize("name", ["a weight", "terms", "a kernel's value"])
def test_a_policy_of_ones_own_is_learned_by_its_own_parameters(name, source, tmp_path):
    pair = ESTIMATORS[name]
    found = [
        tt.PolicyLearner(
            policy=STUMP,
            procedure=tt.CPO(estimator=estimator, bandwidth=0.9, restarts=2, clipped=False),
            honest=False,
        ).fit(source(log))
        for estimator, log in ((pair.own, LOG), (pair.twin, pair.change(LOG)))
    ]
    mine, twin = (learner.policy_ for learner in found)
    np.testing.assert_allclose(mine.params, twin.params, atol=SEARCHED)
    # The best dose rises with the first context: so does the learned step, and it is worth more.
    assert mine.high - mine.low > STUMP.high - STUMP.low
    before, after = (
        tt.evaluate(LOG, policy, estimator=pair.own, bandwidth=0.9, allow_untrusted=True).value
        for policy in (STUMP, mine)
    )
    assert after < before - 0.05
    found[0].save(tmp_path / "stump.json")
    assert tt.load_policy(tmp_path / "stump.json", classes=[Stump]) == mine


@each_source
def test_a_policy_of_ones_own_within_a_set_bounds_and_limits(source):
    log = LOG.with_bounds((-9.0, 9.0))
    half = HalfSpace((0.0, -1.0, 1.0), 1.0)
    procedure = tt.CPO(bandwidth=0.9, restarts=2, constraint=half, ridge=0.001)
    found = tt.PolicyLearner(policy=tt.Clipped(STUMP, -0.8, 0.9), procedure=procedure, honest=False)
    policy = found.fit(source(log)).policy_
    assert isinstance(policy, tt.Clipped)
    assert (policy.lower, policy.upper) == (-0.8, 0.9)
    assert policy.policy.high - policy.policy.low == pytest.approx(1.0, abs=INSIDE)


def test_what_cannot_learn_a_policy_of_ones_own_says_so():
    bent, started = Bent(0, 0.2, -0.3, 0.4), tt.CPO(start=tt.Constant(1.0), restarts=1)
    for policy, procedure, said in (
        (STUMP, None, r"Use `PolicyLearner\(procedure=CPO"),
        (bent, tt.CPO(), "a `vjp` of the same shape"),
        (STUMP, started, "The `start` of `CPO` must be None or a `Stump`"),
    ):
        learner = tt.PolicyLearner(policy=policy, procedure=procedure, honest=False)
        with pytest.raises(tt.InvalidArgument, match=said):
            learner.fit(LOG)


class Squared(tt.Linear):
    """A line in the squares of the contexts."""

    def __call__(self, X):
        return tt.Linear.__call__(self, X**2)


class FittedSquares(FittedLinear):
    """Its features, with the slopes of a line in the contexts themselves."""

    def features(self, X):
        return FittedLinear.features(self, X**2)

    def policy(self, params):
        coef, level = self.scaled(params)
        return Squared(coef, level, features=self.names)


class SquaresClass(LinearClass):
    def on(self, log):
        scales = LinearClass(standardize=False).on(log)
        return FittedSquares(*(getattr(scales, f.name) for f in fields(scales)))


class FittedOther(FittedLinear):
    """The same rules, their coefficients counted otherwise by ridges."""

    @property
    def roughness(self):
        return 2.0 * self.penalized


class OtherClass(LinearClass):
    def on(self, log):
        line = LinearClass.on(self, log)
        return FittedOther(*(getattr(line, f.name) for f in fields(line)))


def test_a_class_of_ones_own_is_not_held_monotone_by_the_slopes_of_another():
    log = Quadratic().draw(600, seed=1)

    def rule(policy, **limits):
        procedure = tt.StackedDR(models=ridge_pair())
        declared = tt.Limits(**limits) if limits else None
        learner = tt.PolicyLearner(
            policy=policy, procedure=procedure, limits=declared, honest=False
        )
        return learner.fit(log).policy_(np.array([[-2.0, 0.0], [0.0, 0.0], [2.0, 0.0]]))

    # Along x₀ a rule of x₀² falls and rises, whatever the sign of its coefficient.
    with pytest.raises(tt.InvalidArgument, match="`FittedSquares` has no single slope in `x0`"):
        rule(SquaresClass(), increasing=["x0"])
    doses = rule(SquaresClass())
    assert doses[0] == doses[2] > doses[1] + 0.5
    # What leaves features and rules as they are keeps its slopes, and their signs.
    assert rule(OtherClass(), increasing=["x0"])[2] > 0.5
    assert np.ptp(rule(OtherClass(), decreasing=["x0"])) == 0.0


# As the default choice leaves out trees, and says so.
def test_a_class_of_ones_own_that_cannot_be_monotone_is_left_out_of_a_choice():
    log = Quadratic().draw(600, seed=1)

    def learner(kind):
        procedure = tt.StackedDR(models=ridge_pair())
        limits = tt.Limits(increasing=["x0"])
        found = tt.PolicyLearner(policy=kind, procedure=procedure, limits=limits, honest=False)
        return found.fit(log)

    several = learner(Automatic(classes=(SquaresClass(), OtherClass(), tt.TreeClass())))
    alone = learner(OtherClass())
    assert [one.name for one in several.choice_.classes] == ["other"]
    assert several.policy_ == alone.policy_
    left_out = "cannot keep to `increasing`: squares, tree."
    assert sum(note.endswith(left_out) for note in several.notes_) == 1
    assert not any("Left out" in note for note in alone.notes_)
    for none in (SquaresClass(), Automatic(classes=(SquaresClass(), tt.TreeClass()))):
        with pytest.raises(tt.InvalidArgument, match="`FittedSquares` has no single slope in `x0`"):
            learner(none)


class Wide(tt.LinearGaussian):
    """Every density a little smaller, every probability a little nearer to one half."""

    def density(self, X, t):
        return 0.7 * tt.LinearGaussian.density(self, X, t)

    def cdf(self, X, t):
        return 0.05 + 0.9 * tt.LinearGaussian.cdf(self, X, t)


def test_a_subclass_of_a_propensity_is_asked_within_bounds_too():
    # Within bounds the density is f/(F(high) − F(low)), both by the model's own methods.
    low, high = float(LOG.treatment.min() - 1), float(LOG.treatment.max() + 0.2)
    bounded = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, bounds=(low, high))
    model = Wide().fit(LOG.context, LOG.treatment)
    mass = np.diff([model.cdf(LOG.context, end) for end in (low, high)], axis=0)[0]
    column = model.density(LOG.context, LOG.treatment) / mass
    known = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, column, bounds=(low, high))
    asked = {"estimator": tt.IPW(), "bandwidth": 0.5, "allow_untrusted": True}
    policy = tt.Clipped(POLICY, low, high)
    mine, twin = (
        tt.evaluate(log, policy, propensity=given, **asked)
        for log, given in ((bounded, Wide()), (known, None))
    )
    assert mine.value == pytest.approx(twin.value, rel=CLOSE)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stepped(Policy):
    """One dose up to a threshold of a context, another beyond; with every kind of field."""

    column: int
    threshold: float
    doses: tuple[float, ...]
    above: bool = True
    names: tuple[tuple[str, ...], ...] = (("a", "b"), ("c",))
    inside: Policy = field(default_factory=lambda: tt.Constant(1.0))
    note: str | None = None
    rows: np.int64 = field(default_factory=lambda: np.int64(3))

    def __call__(self, X):
        low, high = self.doses
        return np.where((X[:, self.column] > self.threshold) == self.above, high, low)


def test_a_policy_of_ones_own_is_saved_and_read(tmp_path):
    policy = Stepped(1, 0.5, (0.2, 0.7))
    policy.save(tmp_path / "policy.json")
    back = tt.load_policy(tmp_path / "policy.json", classes=[Stepped])
    assert back == policy
    assert (type(back.column), type(back.above), back.names) == (int, bool, policy.names)
    X = LOG.context
    assert np.array_equal(back(X), policy(X))
    nested = tt.Clipped(policy, 0.3, 0.6)
    nested.save(tmp_path / "nested.json")
    assert tt.load_policy(tmp_path / "nested.json", classes=[Stepped]) == nested


def test_what_cannot_be_read_or_saved_says_how(tmp_path):
    Stepped(1, 0.5, (0.2, 0.7)).save(tmp_path / "policy.json")
    with pytest.raises(tt.PolicyFileError, match=r"load_policy\(path, classes=\[Stepped\]\)"):
        tt.load_policy(tmp_path / "policy.json")
    for wrong, said in ((np.inf, "it holds inf"), (np.nan, "nan"), ({"a": 1}, "a dict")):
        with pytest.raises(tt.InvalidArgument, match=f"field `threshold` of `Stepped`.*{said}"):
            Stepped(1, wrong, (0.2, 0.7)).save(tmp_path / "wrong.json")
    impostor = type("Linear", (Stepped,), {})
    with pytest.raises(tt.InvalidArgument, match="would be read back as titrant's `Linear`"):
        impostor(1, 0.5, (0.2, 0.7)).save(tmp_path / "wrong.json")


def test_the_tricube_is_the_kernel_it_says():
    u = np.linspace(-1.2, 1.2, 41)
    spelled = ESTIMATORS["a kernel of high degree"].twin.kernel
    for j in range(3):
        np.testing.assert_allclose(
            Tricube().antiderivative(j, u), spelled.antiderivative(j, u), atol=CLOSE
        )
    np.testing.assert_allclose(Tricube().derivative(u), spelled.derivative(u), atol=CLOSE)
