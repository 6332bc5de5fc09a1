"""Policy classes: features and policies are two views of the same rule."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from learn.examples import quadratic_log
from learn.kinds import AFFINE
from titrant.learn.classes import ClippedClass, ConstantClass, LinearClass, RBFClass, class_of

ROUNDING = 1e-9  # the square root of the RBF's Gram matrix, conditioned to 1e8, is solved for twice

LOG = quadratic_log(60)
NEW = np.random.default_rng(5).uniform(-1, 2, (25, 2))
each_class = pytest.mark.parametrize("kind", AFFINE, ids=repr)


@each_class
@pytest.mark.parametrize("doses", [(), (3,)], ids=["one dose", "three doses"])
def test_a_policy_gives_features_times_parameters(kind, doses):
    # Law: policy(β)(x) = φ(x)'β, on contexts that the scales have not seen, for any β.
    fitted = kind.on(LOG)
    phi = fitted.features(NEW)
    beta = np.random.default_rng(3).normal(size=(phi.shape[1], *doses))
    given = fitted.policy(beta)(NEW)
    assert given.shape == (len(NEW), *doses)
    np.testing.assert_allclose(given, phi @ beta, rtol=ROUNDING, atol=ROUNDING)


@each_class
def test_every_parameter_but_the_intercept_is_penalized(kind):
    fitted = kind.on(LOG)
    phi = fitted.features(LOG.context)
    constant = np.ptp(phi, axis=0) == 0
    np.testing.assert_array_equal(fitted.penalized, np.where(constant, 0.0, 1.0))


def test_standardized_features_have_mean_0_and_variance_1():
    phi = LinearClass().on(LOG).features(LOG.context)
    np.testing.assert_allclose(phi.mean(axis=0), [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(phi.std(axis=0), [0, 1, 1], rtol=1e-12)


def test_without_an_intercept_features_keep_their_zero():
    # Law: τ(0) = 0 for every β.
    fitted = LinearClass(intercept=False).on(LOG)
    np.testing.assert_array_equal(fitted.features(np.zeros((1, 2))), [[0, 0]])
    np.testing.assert_allclose(np.mean(fitted.features(LOG.context) ** 2, axis=0), 1, rtol=1e-12)


def with_context(column) -> tt.LoggedData:
    X = np.column_stack([LOG.context, np.broadcast_to(column, len(LOG))])
    return tt.LoggedData(X, LOG.treatment, LOG.outcome)


@pytest.mark.parametrize("value", [0.0, 0.1, -7e6])
def test_a_constant_context_has_no_coefficient(value):
    # The mean of sixty times .1 is not .1, and the sd not 0, in floating point.
    fitted = LinearClass().on(with_context(value))
    np.testing.assert_array_equal(fitted.features(NEW @ np.ones((2, 3)))[:, 3], 0.0)
    assert fitted.policy(np.ones(4)).coef[2] == 0


def test_a_constant_context_stands_in_for_a_missing_intercept():
    fitted = LinearClass(intercept=False).on(with_context(5.0))
    assert fitted.policy(np.array([0.0, 0.0, 1.0])).coef[2] == pytest.approx(1 / 5)


def test_the_norm_of_rbf_parameters_is_that_of_the_space():
    # Law: ‖β‖ without the intercept is the RKHS norm (coef'K coef)^½ of the policy.
    fitted = RBFClass(centers=7).on(LOG)
    beta = np.random.default_rng(1).normal(size=8)
    assert fitted.policy(beta).norm() == pytest.approx(np.linalg.norm(beta[1:]), rel=1e-5)


def test_rbf_centers_are_drawn_by_the_seed_among_the_contexts():
    drawn = [RBFClass(centers=9, seed=s).on(LOG).centers for s in (1, 1, 2)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert {tuple(c) for c in drawn[0]} <= {tuple(x) for x in LOG.context}


def test_the_scale_of_rbfs_is_the_median_distance_in_sds_of_each_context():
    sd = LOG.context.std(axis=0)
    z = LOG.context / sd
    pairs = [np.linalg.norm(a - b) for i, a in enumerate(z) for b in z[:i]]
    assert RBFClass(centers=3).on(LOG).scale == pytest.approx(sd * np.median(pairs))


def test_rbfs_do_not_depend_on_the_units_of_contexts():
    # The same features whatever the units: the policies that can be learned are the same.
    units = np.array([1000.0, 1e-3])
    other = tt.LoggedData(LOG.context * units, LOG.treatment, LOG.outcome)
    np.testing.assert_allclose(
        RBFClass(centers=9).on(other).features(other.context),
        RBFClass(centers=9).on(LOG).features(LOG.context),
        atol=1e-9,  # the inverse root of a near-singular kernel matrix
    )


def test_without_contexts_a_linear_policy_is_constant():
    bare = tt.LoggedData(np.empty((60, 0)), LOG.treatment, LOG.outcome)
    assert LinearClass().on(bare).policy(np.array([2.5])) == tt.Constant(2.5)


@pytest.mark.parametrize("kind", [LinearClass(intercept=False), RBFClass()])
def test_without_contexts_nothing_else_can_be_learned(kind):
    bare = tt.LoggedData(np.empty((60, 0)), LOG.treatment, LOG.outcome)
    with pytest.raises(tt.InvalidArgument, match="context"):
        kind.on(bare)


def test_templates_stand_for_classes():
    assert class_of(None) == LinearClass()
    assert class_of(tt.Linear()) == LinearClass()
    assert class_of(tt.Constant(3.0)) == ConstantClass()
    rbf = class_of(tt.RBF(NEW, scale=2.0))
    assert isinstance(rbf, RBFClass)
    assert rbf.scale == 2.0
    np.testing.assert_array_equal(rbf.on(LOG).centers, NEW)
    kind = RBFClass(centers=4)
    assert class_of(kind) is kind


def test_clipped_templates_keep_their_limits():
    # The narrower of nested limits holds on each side.
    nested = class_of(tt.Clipped(tt.Clipped(tt.Linear(), 1, 8), 0, 5))
    assert nested.limits == (1, 5)
    assert class_of(tt.Linear()).limits == (-np.inf, np.inf)
    assert ClippedClass(ConstantClass(), -np.inf, 3).limits == (-np.inf, 3)


@pytest.mark.parametrize("wrong", ["linear", 3, tt.Rounded(tt.Linear(), 1), tt.Linear, len])
def test_what_is_no_template(wrong):
    with pytest.raises(tt.InvalidArgument, match="The `policy` of `PolicyLearner` must be"):
        class_of(wrong)


@pytest.mark.parametrize(
    "template", [tt.Linear(features=["x1", "b"]), tt.RBF(NEW, scale=1, features=["x0", "b"])]
)
def test_named_contexts_must_be_in_the_log(template):
    with pytest.raises(tt.DataError, match=r"uses the context `b`, .* The log has `x0`, `x1`\."):
        class_of(template).on(LOG)


@pytest.mark.parametrize("names", [("x1", "x0"), ("x0", "x1"), ("x1",)])
@pytest.mark.parametrize("kind", [LinearClass, RBFClass])
def test_a_template_takes_its_contexts_by_name(kind, names):
    # Law: features of all contexts of the log = features of the named ones alone, in that order.
    some = LOG.context[:, [LOG.names.index(name) for name in names]]
    alone = tt.LoggedData(some, LOG.treatment, LOG.outcome, names=names)
    chosen = {"features": names} if kind is LinearClass else {"names": names}
    fitted, expected = kind(**chosen).on(LOG), kind().on(alone)
    np.testing.assert_array_equal(fitted.features(LOG.context), expected.features(some))
    beta = np.arange(1.0, 1.0 + len(fitted.penalized))
    assert fitted.policy(beta) == expected.policy(beta)
    assert fitted.policy(beta).features == names


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"centers": 0}, "`centers` of `RBFClass` must be a whole number ≥ 1"),
        ({"centers": [[np.nan]]}, "`centers` of `RBFClass` must be 2-dimensional"),
        ({"scale": 0.0}, "`scale` of `RBFClass`"),
        ({"seed": -1}, "`seed` of `RBFClass`"),
    ],
)
def test_wrong_rbf_settings(settings, said):
    with pytest.raises(tt.InvalidArgument, match=said):
        RBFClass(**settings)


def test_centers_must_be_as_wide_as_the_context():
    with pytest.raises(tt.InvalidArgument, match="as wide as the context, which has 2 columns"):
        RBFClass(centers=np.zeros((3, 5))).on(LOG)
