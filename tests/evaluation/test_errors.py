"""What cannot be answered is refused in one sentence with its numbers and a remedy, never a nan."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import KINDS, KNOWN, NEAR, kind_name, smooth_log
from titrant import (
    IPW,
    Constant,
    DataError,
    Discretized,
    DoublyRobust,
    InvalidArgument,
    Known,
    Linear,
    LinearGaussian,
    LoggedData,
    NoOverlap,
    Normal,
    SelfNormalized,
    UntrustedEstimate,
    bandwidth_path,
    check,
    compare,
    evaluate,
)
from titrant.bandwidth import SELECTORS
from titrant.data.simulate import Quadratic
from titrant.estimators import SmoothedEstimator
from titrant.inference import INTERVALS
from titrant.propensity import CrossPropensity

LOG = smooth_log()
SN = SelfNormalized()
SMOOTHED = [k for k in KINDS if isinstance(k, SmoothedEstimator)]


def refused(error, sentence, log=LOG, policy=NEAR, **settings):
    settings = {"estimator": SN, "bandwidth": 0.5} | settings
    with pytest.raises(error) as caught:
        evaluate(log, policy, **settings)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
@pytest.mark.parametrize("allow_untrusted", [False, True])
def test_no_overlap_is_refused_even_when_untrusted_results_are_allowed(estimator, allow_untrusted):
    # There is no number to show. The nearest logged dose is 97 units away.
    nearest = 100 - LOG.treatment.max()
    refused(
        NoOverlap,
        "No logged dose lies within h = 0.5 of the dose of policy 'Constant' in any of 240 rows "
        f"(closest {nearest:.3g}). Increase the bandwidth or check that doses share a unit.",
        policy=Constant(100.0),
        estimator=estimator,
        allow_untrusted=allow_untrusted,
    )


@pytest.mark.parametrize("selector", [None, *SELECTORS], ids=repr)
def test_no_selector_finds_a_bandwidth_without_overlap(selector):
    with pytest.raises(NoOverlap, match="240 rows"):
        evaluate(LOG, Constant(1e6), estimator=SN, bandwidth=selector)


def test_an_empty_bin_is_refused():
    gap = LOG.rows(np.abs(LOG.treatment - 0.5) > 0.3)
    refused(
        NoOverlap,
        "No logged dose falls in the bin of the dose of policy 'Constant' in any of "
        f"{len(gap)} rows. Use fewer bins or check that doses share a unit.",
        log=gap,
        policy=Constant(0.5),
        estimator=Discretized(edges=(0.25, 0.75)),
        propensity=KNOWN,
    )


@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
@pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
def test_hardly_any_overlap_gives_numbers_and_a_refusal(estimator, interval):
    # One row is within h, none within .84h or h/2: still no nan, and no warning on the way.
    last = LOG.treatment.max()
    far = Constant(float(last) + 0.95)
    settings = {"estimator": estimator, "bandwidth": 1.0, "interval": interval}
    assert np.sum(last + 0.95 - LOG.treatment < 1.0) == 1
    with pytest.raises(UntrustedEstimate, match="effective sample size is 1 of 240 rows"):
        evaluate(LOG, far, **settings)
    found = evaluate(LOG, far, allow_untrusted=True, **settings)
    assert not found.trusted
    assert np.isfinite([found.value, found.se, *found.interval()]).all()
    assert "refuse" in str(found)


def test_the_refusal_names_the_numbers_and_the_way_out():
    with pytest.raises(UntrustedEstimate) as caught:
        evaluate(LOG, Constant(2.9), estimator=SN, bandwidth=0.5)
    sentence = str(caught.value)
    ess = evaluate(LOG, Constant(2.9), estimator=SN, bandwidth=0.5, allow_untrusted=True).ess
    assert f"The effective sample size is {ess:.3g} of 240 rows" in sentence
    assert sentence.endswith("Pass `allow_untrusted=True` to see the number all the same.")


@pytest.mark.parametrize(
    "bad", [0, 0.0, -1, -0.5, np.nan, np.inf, -np.inf, True, "wide", [], [[[0.5]]]], ids=repr
)
@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
def test_a_bandwidth_is_a_finite_number_above_zero(estimator, bad):
    with pytest.raises(
        InvalidArgument,
        match=re.escape("The `bandwidth` of `evaluate` must be a finite number > 0; got"),
    ):
        evaluate(LOG, NEAR, estimator=estimator, bandwidth=bad)


def test_a_bandwidth_of_zero_is_quoted():
    sentence = "The `bandwidth` of `evaluate` must be a finite number > 0; got 0.0."
    refused(InvalidArgument, sentence, bandwidth=0.0)


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ([0.5, 0.5, 0.5], "a number or 2 numbers, one per dose"),
        ([0.5], "a number or 2 numbers, one per dose"),
        ([0.5, 0.0], "a finite number > 0"),
        ([0.5, np.nan], "a finite number > 0"),
        ([[1.0, 2.0], [2.0, 1.0]], "a symmetric positive definite 2 × 2 matrix"),
        ([[1.0, 0.1], [0.2, 1.0]], "a symmetric positive definite 2 × 2 matrix"),
        (np.eye(3), "a symmetric positive definite 2 × 2 matrix"),
        ([[1.0, 2.0], [3.0]], "a finite number > 0"),
    ],
)
def test_a_bandwidth_has_the_shape_of_the_dose(bad, rule):
    log = Quadratic(dimension=2).draw(50, 1)
    with pytest.raises(InvalidArgument, match=f"must be {re.escape(rule)}; got"):
        evaluate(log, Constant([0.0, 0.5]), estimator=SN, bandwidth=bad)


def test_a_full_matrix_and_bounds_exclude_each_other():
    log = Quadratic(dimension=2).draw(200, 1).with_bounds((-9, 9))
    h = [[1.0, 0.3], [0.3, 1.0]]
    with pytest.raises(
        InvalidArgument, match="full bandwidth matrix cannot be corrected at bounds"
    ):
        evaluate(log, Constant([0.5, 1.0]), estimator=SN, bandwidth=h)


@pytest.mark.parametrize("model", [LinearGaussian, Known])
def test_a_propensity_class_in_place_of_a_model(model):
    refused(
        InvalidArgument,
        f"The `propensity` must be a model, not its class: write `{model.__name__}()`.",
        propensity=model,
    )


@pytest.mark.parametrize("bad", [LOG.propensity, 0.5, "gaussian", KNOWN.density], ids=type)
def test_a_propensity_that_is_no_model(bad):
    with pytest.raises(InvalidArgument, match="The `propensity` must be a model such as"):
        evaluate(LOG, NEAR, estimator=SN, bandwidth=0.5, propensity=bad)


@pytest.mark.parametrize("bad", [SelfNormalized, "dr", 3])
def test_an_estimator_that_is_none(bad):
    refused(
        InvalidArgument,
        f"The `estimator` must be an estimator such as SelfNormalized(); got {bad!r}.",
        estimator=bad,
    )


@pytest.mark.parametrize("bad", [LinearRegression, np.zeros(240), "forest"], ids=type)
def test_an_outcome_model_is_a_model_and_no_array(bad):
    # An array could stand for one of the two predictions only.
    with pytest.raises(InvalidArgument, match="outcome model must be"):
        evaluate(LOG, NEAR, estimator=DoublyRobust(outcome=bad), bandwidth=0.5)


@pytest.mark.parametrize("bad", ["0.5", True, Constant, None])
def test_a_policy_that_is_none(bad):
    with pytest.raises(InvalidArgument, match="A policy must be a policy of titrant, a number"):
        evaluate(LOG, bad, estimator=SN, bandwidth=0.5)


def test_a_policy_outside_the_bounds():
    log = LOG.with_bounds((-3, 3))
    outside = np.sum(4 * log.context[:, 0] > 3)
    refused(
        DataError,
        f"The policy gives doses outside the bounds in {outside} of 240 rows (its doses run from "
        f"{4 * log.context[:, 0].min():.6g} to {4 * log.context[:, 0].max():.6g}). "
        "Wrap it as `Clipped(policy, lower, upper)`, or widen the bounds.",
        log=log,
        policy=lambda X: 4 * X[:, 0],
    )


def test_a_policy_outside_one_rows_own_bounds():
    low = np.full(240, -5.0)
    low[7] = LOG.treatment[7]  # the dose that was given is the least possible one
    log = LOG.with_bounds((low, None))
    below = Constant(float(LOG.treatment[7]) - 0.01)
    with pytest.raises(DataError, match="outside the bounds in 1 of 240 rows"):
        evaluate(log, below, estimator=SN, bandwidth=0.5)
    evaluate(log, Constant(float(LOG.treatment[7])), estimator=SN, bandwidth=0.5)


@pytest.mark.parametrize(
    ("log", "policy", "given", "wanted"),
    [
        (LOG, Constant([0.1, 0.2]), 2, 1),
        (Quadratic(dimension=2).draw(60, 0), NEAR, 1, 2),
    ],
)
def test_a_policy_of_another_dimension(log, policy, given, wanted):
    refused(
        DataError,
        f"The policy `{type(policy).__name__}` gives {given} dose(s) per row, but the log has "
        f"{wanted} treatment(s). Give a policy for the same treatments in the same order.",
        log=log,
        policy=policy,
    )


def test_a_policy_function_that_gives_one_dose_for_all():
    with pytest.raises(DataError, match="must return one dose per row"):
        evaluate(LOG, lambda X: 0.5, estimator=SN, bandwidth=0.5)  # noqa: ARG005
    with pytest.raises(DataError, match="not finite in 240 of 240 rows"):
        evaluate(LOG, lambda X: np.full(len(X), np.nan), estimator=SN, bandwidth=0.5)


def test_bins_need_a_cdf_that_a_column_does_not_have():
    refused(
        InvalidArgument,
        "`Discretized` needs bin edges, one treatment and a propensity with a cdf; "
        "call it through `evaluate` with `propensity=` a model such as LinearGaussian().",
        estimator=Discretized(),
    )
    without_cdf = Known(lambda X, t: np.ones(len(t)))  # noqa: ARG005
    with pytest.raises(InvalidArgument, match="Known` propensity was made without `cdf`"):
        evaluate(LOG, NEAR, estimator=Discretized(), propensity=without_cdf)


def test_bins_are_for_one_dose():
    log = Quadratic(dimension=2).draw(60, 0)
    with pytest.raises(InvalidArgument, match="one treatment"):
        evaluate(log, Constant([0.1, 0.2]), estimator=Discretized())


def test_a_propensity_of_zero_needs_a_floor():
    zero = Known(lambda X, t: np.where(t > 0, 0.5, 0.0))  # noqa: ARG005
    some = int(np.sum(LOG.treatment <= 0))
    refused(
        DataError,
        f"The propensity is 0 in {some} of 240 rows. "
        "Give the estimator a `clip` > 0 or check the propensity model.",
        estimator=IPW(clip=0.0),
        propensity=zero,
    )
    # The default floor is such a clip.
    found = evaluate(
        LOG, NEAR, estimator=IPW(), bandwidth=0.5, propensity=zero, allow_untrusted=True
    )
    assert found.method["floor_share"] == pytest.approx(some / 240)


def test_vector_bounds_need_a_known_propensity():
    log = Quadratic(dimension=2).draw(60, 0, propensity=False).with_bounds((-9, 9))
    with pytest.raises(InvalidArgument, match="Truncation of vector propensities"):
        evaluate(log, Constant([0.1, 0.2]), estimator=SN, bandwidth=1.0)


@pytest.mark.parametrize("bad", [Normal, "bootstrap"])
def test_an_interval_that_is_none(bad):
    refused(
        InvalidArgument,
        f"The `interval` must be a method such as RobustBiasCorrected(); got {bad!r}.",
        interval=bad,
    )


@pytest.mark.parametrize("bad", [{"dose": [1.0]}, np.zeros((3, 2)), None], ids=type)
@pytest.mark.parametrize("ask", [evaluate, check, bandwidth_path], ids=lambda f: f.__name__)
def test_a_table_is_no_log(bad, ask):
    with pytest.raises(InvalidArgument, match=f"takes a `LoggedData`; got a {type(bad).__name__}"):
        ask(bad, NEAR)


def test_policies_have_names():
    with pytest.raises(InvalidArgument, match="must be a dict with a name for each"):
        compare(LOG, [NEAR], estimator=SN)


def test_no_policy_at_all():
    with pytest.raises(InvalidArgument, match="There is no policy to evaluate"):
        compare(LOG, {}, estimator=SN)


def test_an_unknown_name_is_answered_with_the_known_ones():
    result = compare(LOG, {"new": NEAR, "old": Constant(0.5)}, estimator=SN, bandwidth=0.5)
    sentence = "There is no policy 'nwe' in this comparison; it has 'new', 'old'."
    for ask in (
        lambda: result["nwe"],
        lambda: result.contrast("nwe", "old"),
        lambda: result.contrast("old", "nwe"),
        lambda: result.only(["nwe"]),
        lambda: result.simultaneous_contrasts("nwe"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            ask()
        assert str(caught.value) == sentence


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, np.nan, "95%", True])
@pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)
def test_a_level_is_a_probability(interval, level):
    found = evaluate(LOG, NEAR, estimator=SN, bandwidth=0.5, interval=interval)
    with pytest.raises(InvalidArgument, match="must be a number strictly between 0 and 1; got"):
        found.interval(level)


# A refused policy among others: a row with its reason.
LOST, EDGE = Constant(99.0), Constant(2.9)  # no row within h; an ESS that the trust rules refuse
GOOD = {"near": NEAR, "constant": Constant(0.4)}
MIXED = {"lost": LOST, "near": NEAR, "edge": EDGE, "constant": Constant(0.4)}
each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: type(i).__name__)


def reason_of(policy, **settings):
    """The sentence with which `evaluate` refuses a policy."""
    with pytest.raises(UntrustedEstimate) as caught:
        evaluate(LOG, policy, bandwidth=0.5, **settings)
    return str(caught.value)


@each_interval
@pytest.mark.parametrize("estimator", SMOOTHED, ids=kind_name)
def test_a_refused_policy_is_a_row_with_the_reason_of_evaluate(estimator, interval):
    settings = {"estimator": estimator, "interval": interval}
    found = compare(LOG, MIXED, bandwidth=0.5, **settings)
    assert found.names == list(GOOD)
    assert list(found.refused) == ["lost", "edge"]
    assert found.refused["lost"] == reason_of(LOST, **settings).replace("'Constant'", "'lost'")
    assert found.refused["edge"] == reason_of(EDGE, **settings)
    # What is refused does not touch the others.
    alone = compare(LOG, GOOD, bandwidth=0.5, **settings)
    assert alone.refused == {}
    for name in GOOD:
        assert found[name].value == alone[name].value
        assert found[name].interval() == pytest.approx(alone[name].interval(), rel=1e-12)
    ours, theirs = (c.contrast("near", "constant") for c in (found, alone))
    assert ours.difference == theirs.difference
    assert ours.se == pytest.approx(theirs.se, rel=1e-9)
    assert ours.interval() == pytest.approx(theirs.interval(), rel=1e-9)


def test_with_untrusted_results_allowed_only_a_policy_without_numbers_is_refused():
    found = compare(LOG, MIXED, estimator=SN, bandwidth=0.5, allow_untrusted=True)
    assert found.names == ["near", "edge", "constant"]
    assert list(found.refused) == ["lost"]
    assert not found["edge"].trusted
    assert "refuse" in str(found["edge"])


def test_nothing_about_a_refused_policy_is_answered_with_a_number():
    found = compare(LOG, MIXED, estimator=SN, bandwidth=0.5)
    for name in ("lost", "edge"):
        for ask in (
            lambda name=name: found[name],
            lambda name=name: found.contrast(name, "near"),
            lambda name=name: found.contrast("near", name),
            lambda name=name: found.only([name]),
            lambda name=name: found.simultaneous_contrasts(name),
        ):
            with pytest.raises(UntrustedEstimate) as caught:
                ask()
            assert str(caught.value) == f"Policy {name!r} has no estimate. {found.refused[name]}"
    assert list(found.simultaneous()) == list(GOOD)
    assert list(found.simultaneous_contrasts("near")) == ["constant"]


def test_a_refused_policy_is_shown_without_numbers():
    found = compare(LOG, MIXED, estimator=SN, bandwidth=0.5)
    plain = found.to_dict()
    assert plain["refused"] == found.refused
    assert list(plain["estimates"]) == list(GOOD)
    assert [(c["a"], c["b"]) for c in plain["contrasts"]] == [("near", "constant")]
    lines = str(found).splitlines()
    assert lines[2:4] == [f"{n:<8}  refused: {why}" for n, why in found.refused.items()]
    assert lines[4:] == [str(found.contrast("near", "constant"))]
    assert "lost refused, edge refused; near − constant" in repr(found)
    values, _ = found._repr_html_().split("<table>")[1:]
    _, *rows = values.split("<tr>")[2:]
    for row, (name, why) in zip(rows[1:], found.refused.items(), strict=True):
        cells = re.findall("<td[^>]*>(.*?)</td>", row)
        assert cells == [name, *["–"] * 5, f"refuse: {html.escape(why)}"]


@pytest.mark.parametrize(
    ("policies", "kind"),
    [
        ({"lost": LOST, "far": Constant(-99.0)}, NoOverlap),
        ({"lost": LOST, "edge": EDGE}, UntrustedEstimate),
    ],
)
def test_a_comparison_without_any_estimate_raises_every_reason(policies, kind):
    with pytest.raises(kind) as caught:
        compare(LOG, policies, estimator=SN, bandwidth=0.5)
    assert type(caught.value) is kind
    said = str(caught.value)
    assert said.startswith("The log answers for none of the 2 policies. Policy 'lost': No logged ")
    for name, policy in policies.items():
        assert reason_of(policy, estimator=SN).replace("'Constant'", repr(name)) in said


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (LOST, "The policy gives doses outside the bounds in 240 of 240 rows"),
        (
            lambda X: np.full(len(X), np.nan),
            "a dose that is missing or not finite in 240 of 240 rows",
        ),
        (Constant([0.1, 0.2]), "The policy `Constant` gives 2 dose(s) per row"),
    ],
    ids=["outside the bounds", "not finite", "of two doses"],
)
@pytest.mark.parametrize("selector", [0.5, *SELECTORS], ids=repr)
def test_an_error_of_one_policy_among_several_names_it(policy, sentence, selector):
    log = LOG.with_bounds((-9, 9))
    with pytest.raises(DataError, match=rf"^Policy 'bad': .*{re.escape(sentence)}"):
        compare(log, {"near": NEAR, "bad": policy}, estimator=SN, bandwidth=selector)


@pytest.mark.parametrize("n", [2, 5, 10, 12])
def test_too_few_rows_for_the_default_models(n):
    # Of 12 rows in 5 folds some fold leaves 9, of 13 each leaves 10: two of each inner fold.
    log = LoggedData(np.arange(n) % 3.0, np.arange(n) ** 1.5, np.arange(n) % 4.0)
    with pytest.raises(DataError, match=f"needs at least 13 rows with an outcome; the log has {n}"):
        evaluate(log, Constant(1.0))


@pytest.mark.parametrize(
    "policy", [lambda X: X["age"], lambda X: X.age, lambda X: X[:, 3]], ids=["[]", ".", "3"]
)
def test_a_policy_that_takes_contexts_for_a_table_is_told_what_it_gets(policy):
    log = LoggedData(
        np.zeros((9, 2)), np.arange(9.0), np.arange(9.0), np.ones(9), names=["age", "bmi"]
    )
    told = "the contexts as an array, here of 9 rows and 2 columns in the order `age`, `bmi`, not"
    with pytest.raises(DataError, match=told):
        evaluate(log, policy, estimator=SN, bandwidth=1.0)


def test_too_few_rows_for_the_folds():
    log = LoggedData([[1.0], [2], [3]], [0.1, 0.5, 0.7], [1.0, 2, 3], [1.0, 1, 1])
    with pytest.raises(DataError, match="with 5 folds needs at least 10 rows to learn from; got 3"):
        evaluate(
            log,
            Linear(coef=[0.2]),
            estimator=DoublyRobust(outcome=LinearRegression()),
            bandwidth=1.0,
        )


@pytest.mark.parametrize("estimator", [DoublyRobust(), SelfNormalized(), IPW()], ids=repr)
def test_a_cross_fitted_propensity_of_ones_own_is_refused(estimator):
    log = smooth_log()
    unknown = LoggedData(log.context, log.treatment, log.outcome)
    crossed = CrossPropensity({"line": LinearGaussian()})
    with pytest.raises(InvalidArgument, match=r"Leave `propensity` out .* `DensityAverage"):
        evaluate(unknown, Constant(0.4), estimator=estimator, propensity=crossed)


def test_a_weight_that_is_more_than_all_others_is_named_as_the_cause():
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(2, 200))
    weights = np.r_[1e9, np.ones(199)]
    log = LoggedData(x[:, None], t, t**2, weights=weights)
    with pytest.raises(DataError, match="cannot determine") as caught:
        evaluate(log, Constant(0.0), estimator=SN, propensity=LinearGaussian())
    assert str(caught.value).startswith(
        "One row weight, 1e+09, is 100.0% of the sum of all 200: they are worth 1.0 rows of equal "
        "weight. Check it. "
    )
