"""Classes of a user's own that write into arrays, reuse them, or keep more than their fields."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import titrant as tt
from titrant.compiled import FEWEST, Loop
from titrant.estimators import SelfNormalized
from titrant.estimators import rows as rows_module
from titrant.kernels import Boundary, Epanechnikov, Scale
from titrant.outcome import OutcomeModel, RidgeModel, SecondOrder
from titrant.propensity import LinearGaussian

SAME = 1e-12  # the same numbers in another order


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 2))
    t = 0.5 * x[:, 0] + rng.normal(size=600)
    y = (t - 0.8 * x[:, 0]) ** 2 + x[:, 1] + rng.normal(scale=0.5, size=600)
    return tt.LoggedData(x, t, y)


def asked(log, policies, **settings):
    found = tt.compare(log, policies, allow_untrusted=True, **settings)
    return {name: (e.value, e.se, *e.interval()) for name, e in found.estimates.items()}


# ── outcome models ───────────────────────────────────────────────────────────────────────────────


class Standardized(OutcomeModel):
    """Least squares on standardized contexts and the dose, squared."""

    def fit(self, X, t, y):
        self.center_, self.spread_ = X.mean(axis=0), X.std(axis=0)
        self.coef_ = np.linalg.lstsq(self._columns(X.copy(), t), y, rcond=None)[0]
        return self

    def predict(self, X, t):
        return self._columns(X, t) @ self.coef_

    def _columns(self, X, t):
        t = np.reshape(t, len(X))
        z = (X - self.center_) / self.spread_
        return np.column_stack([np.ones(len(t)), z, t, t**2, z * t[:, None]])


class InPlace(Standardized):
    """The same, standardizing the very array it is given."""

    def _columns(self, X, t):
        t = np.reshape(t, len(X))
        X -= self.center_
        X /= self.spread_
        return np.column_stack([np.ones(len(t)), X, t, t**2, X * t[:, None]])


@pytest.mark.parametrize("estimator", [tt.DirectMethod, tt.DoublyRobust])
def test_a_model_may_write_into_what_it_is_given(log, estimator):
    policies = {"a": tt.Constant(0.5), "b": tt.Constant(0.5), "c": tt.Linear(coef=[0.8, 0.0])}
    plain = asked(log, policies, estimator=estimator(outcome=Standardized()))
    found = asked(log, policies, estimator=estimator(outcome=InPlace()))
    assert found["a"] == pytest.approx(found["b"], rel=SAME)
    for name in policies:
        assert found[name] == pytest.approx(plain[name], rel=1e-9)


def test_a_prediction_that_is_set_late_is_asked(log):
    class Late(RidgeModel):
        pass

    estimator = tt.DirectMethod(outcome=Late(SecondOrder()))
    before = asked(log, {"a": tt.Constant(0.5)}, estimator=estimator)
    Late.predict = lambda self, X, t: RidgeModel.predict(self, X, t) + 7.0
    after = asked(log, {"a": tt.Constant(0.5)}, estimator=estimator)
    assert after["a"][0] == pytest.approx(before["a"][0] + 7.0, rel=1e-9)


# ── propensities ─────────────────────────────────────────────────────────────────────────────────


def doubled(self, X, t):
    return 2.0 * LinearGaussian.density(self, X, t)


class Written(LinearGaussian):
    """A density of its own, in the body of the class."""

    density = doubled


def test_a_density_that_is_set_late_is_asked(log):
    class SetOnClass(LinearGaussian):
        pass

    class SetInFit(LinearGaussian):
        def fit(self, X, t):
            LinearGaussian.fit(self, X, t)
            self.density = lambda X, t: doubled(self, X, t)
            return self

    SetOnClass.density = doubled
    found = [
        asked(log, {"a": tt.Constant(0.5)}, estimator=tt.IPW(), propensity=model, bandwidth=0.6)
        for model in (Written(), SetOnClass(), SetInFit())
    ]
    plain = asked(
        log, {"a": tt.Constant(0.5)}, estimator=tt.IPW(), propensity=LinearGaussian(), bandwidth=0.6
    )
    assert found[0]["a"][0] == pytest.approx(plain["a"][0] / 2.0, rel=1e-6)
    for one in found[1:]:
        assert one["a"] == pytest.approx(found[0]["a"], rel=SAME)


# ── policies ─────────────────────────────────────────────────────────────────────────────────────


class Buffered:
    """A rule that writes its doses into the same array at every call."""

    def __init__(self, buffer, slope):
        self.buffer, self.slope = buffer, slope

    def __call__(self, X):
        out = self.buffer[: len(X)]
        np.multiply(X[:, 0], self.slope, out=out)
        return out


def test_a_policy_may_use_its_array_again(log):
    buffer = np.empty(len(log))
    found = asked(log, {"a": Buffered(buffer, 0.8), "b": Buffered(buffer, -0.5)}, bandwidth=0.6)
    plain = asked(
        log,
        {"a": tt.Linear(coef=[0.8, 0.0]), "b": tt.Linear(coef=[-0.5, 0.0])},
        bandwidth=0.6,
    )
    for name in found:
        assert found[name] == pytest.approx(plain[name], rel=SAME)


# ── estimators and kernels ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class Capped(SelfNormalized):
    """Weights up to a cap, as a dataclass."""

    cap: float = 1e9

    def weight(self, rows, scale):
        return np.minimum(SelfNormalized.weight(self, rows, scale), self.cap)


class CappedInPlace(SelfNormalized):
    """The same, with a constructor of its own, in the array it is given."""

    def __init__(self, cap=1e9):
        SelfNormalized.__init__(self)
        object.__setattr__(self, "cap", cap)

    def weight(self, rows, scale):
        w = SelfNormalized.weight(self, rows, scale)
        w[w > self.cap] = self.cap
        return w


@pytest.mark.long
@pytest.mark.parametrize("many", [1, 10**9], ids=["loops", "numpy"])
def test_weights_may_be_changed_in_place_and_settings_reach_the_interval(log, many, monkeypatch):
    monkeypatch.setitem(FEWEST, Loop.WEIGHTS, many)
    policies = {"a": tt.Constant(0.5)}
    plain = asked(log, policies, estimator=SelfNormalized(), bandwidth=0.6)
    record = asked(log, policies, estimator=Capped(cap=1.5), bandwidth=0.6)
    own = asked(log, policies, estimator=CappedInPlace(1.5), bandwidth=0.6)
    assert own["a"] == pytest.approx(record["a"], rel=SAME)
    assert own["a"][1] < plain["a"][1]


def test_another_boundary_keeps_all_that_an_estimator_holds():
    own = CappedInPlace(1.5).with_boundary(Boundary.QUADRATIC)
    assert (own.cap, own.boundary, type(own)) == (1.5, Boundary.QUADRATIC, CappedInPlace)


class Shape(Epanechnikov):
    """A kernel whose instances differ and are equal."""

    def __init__(self, coefficients):
        object.__setattr__(self, "coefficients", coefficients)


@dataclass(frozen=True)
class Listed(Epanechnikov):
    """A kernel with a field that has no hash."""

    knots: list = field(default_factory=list)


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (Shape((1.0, -1.0)), "a field for all that differs; 'coefficients' is none"),
        (Listed(), "hashable"),
    ],
    ids=["unlisted", "unhashable"],
)
def test_kernels_that_cannot_be_told_apart_are_refused(kernel, sentence):
    with pytest.raises(tt.InvalidArgument, match=sentence):
        SelfNormalized(kernel=kernel)


@dataclass(frozen=True)
class Reused(Epanechnikov):
    """A kernel that writes into what it is given, and gives the same array at every call."""

    scratch: tuple = (np.empty(10_000),)

    def __call__(self, u):
        out = self.scratch[0][: u.size].reshape(u.shape)
        np.multiply(u, u, out=u)
        np.multiply(0.75, 1.0 - u, out=out)
        out[u > 1.0] = 0.0
        return out

    def __eq__(self, other):
        return type(other) is Reused

    def __hash__(self):
        return 7


def test_a_kernel_may_write_into_what_it_is_given_and_use_its_array_again(log):
    # Kernel values are kept between passes: they and the distances must be nobody else's arrays.
    policies = {"a": tt.Constant(0.5), "b": tt.Linear(coef=[0.8, 0.0])}
    plain = asked(log, policies, estimator=SelfNormalized(kernel=Epanechnikov()))
    own = asked(log, policies, estimator=SelfNormalized(kernel=Reused()))
    for name in policies:
        assert own[name] == pytest.approx(plain[name], rel=1e-9)


def test_distances_are_known_again_only_where_they_are_the_same(log):
    ready = tt.evaluation.Evaluation.of(log, {"a": tt.Constant(0.5)}, None, LinearGaussian())
    kernel, scale = Epanechnikov(), Scale.of(0.6, 1)
    rows = ready.held_blocks[0][0]
    first = rows.distances.reached(kernel, scale)
    again = ready.held_blocks[0][0]
    assert again.distances.reached(kernel, scale) is first  # the next pass
    assert replace(again, q=2.0 * again.q).distances is again.distances  # other models
    assert not replace(again, tau=again.tau + 1e-9).distances.kept  # another policy
    assert not again.forgotten().distances.kept
    assert again.like(replace(again, tau=again.tau + 1e-9)).distances is again.distances
    same = replace(again, tau=again.tau.copy(), t=again.t.copy())
    assert not same.distances.kept
    assert same.like(again).distances is again.distances
    # Some rows, in any order: what is known of all is what they would find themselves.
    index = np.random.default_rng(0).permutation(len(log))[:200]
    some = again.take(index)
    for own, alone in zip(
        some.distances.reached(kernel, scale),
        some.forgotten().distances.reached(kernel, scale),
        strict=True,
    ):
        np.testing.assert_array_equal(own, alone)


def test_no_more_is_kept_of_distances_than_the_limit(log, monkeypatch):
    ready = tt.evaluation.Evaluation.of(log, {"a": tt.Constant(0.5)}, None, LinearGaussian())
    monkeypatch.setattr(rows_module, "KEPT", 1000)
    rows = ready.held_blocks[0][0]
    for h in np.linspace(0.1, 3.0, 30):
        rows.distances.reached(Epanechnikov(), Scale.of(h, 1))
    kept = rows.distances.kept.values()
    assert 0 < sum(one.near.size + one.v.size + one.values.size for one in kept) <= 1000
