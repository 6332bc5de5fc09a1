"""What a report is made of, held to loops and to public functions that give the same numbers."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import titrant as tt
from equivalence.test_sources import Chunks
from reporting.examples import BANDWIDTH, BEST, LOG, POLICIES, comparison, made, report, usual
from titrant.data.simulate import DESIGNS
from titrant.errors import InvalidArgument
from titrant.evaluation.curves import bandwidth_path, curve
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import survey_of
from titrant.evaluation.trust import calibrated
from titrant.execute import Engine
from titrant.inference.trust.evidence import tail_index
from titrant.policies import StatusQuo
from titrant.reporting import estimates, gather, render
from titrant.reporting.content import LOGGED

# The same sums over the same rows, in blocks or at once.
ROUNDING = 1e-10


def test_the_status_quo_joins_without_changing_anything_else():
    whole = usual().comparison
    assert whole.names == ["status quo", "flat", BEST]
    for name in POLICIES:
        assert whole[name].to_dict() == comparison()[name].to_dict()
    assert whole["status quo"].value == pytest.approx(LOG.outcome.mean(), abs=ROUNDING)


def test_a_status_quo_under_another_name_is_kept():
    found = Evaluation.of(LOG, {"before": StatusQuo(), **POLICIES}, tt.SelfNormalized(), None)
    compared = found.compare(6.0)
    made_of = gather(compared, found, bandwidth=6.0)
    assert made_of.comparison is compared
    assert made_of.status_quo == "before"


def test_a_policy_called_status_quo_is_not_mistaken_for_it():
    found = made(LOG, {"status quo": tt.Constant(35.0)})
    assert found.status_quo == "as logged"
    assert found.focus == "status quo"


def test_the_focus_is_the_best_policy_or_the_learned_one():
    assert usual().focus == BEST
    assert report(maximize=True, truth=None).focus == "flat"
    honest = {"value": 5.0, "interval": [4.0, 6.0], "against": {}}
    assert report(learned={"name": "flat", "honest": honest}).focus == "flat"


def test_a_refused_policy_is_no_focus():
    # Only 3 of 600 were given 60 mg or more: no evidence, however low their loss.
    tried = {"flat": tt.Constant(35.0), "wild": tt.Constant(66.0)}
    lucky = LOG.with_outcome(np.where(LOG.treatment > 58, -100.0, LOG.outcome))
    found = made(lucky, tried, bandwidth=8.0)
    assert not found.comparison["wild"].trusted
    assert found.comparison["wild"].value < found.comparison["flat"].value
    assert found.focus == "flat"


def test_many_policies_are_drawn_up_to_four_the_focus_among_them():
    many = {f"c{d}": tt.Constant(float(d)) for d in range(28, 42, 2)}
    found = made(LOG, many, bandwidth=4.0)
    values = {name: found.comparison[name].value for name in many}
    best_four = sorted(values, key=values.get)[:4]
    assert set(found.drawn) == set(best_four)
    assert list(found.drawn) == [name for name in many if name in best_four]
    assert {r.policy for r in found.rules} == {found.status_quo, *found.drawn}


def test_the_curve_is_that_of_the_library():
    found = usual().curves["dose"]
    # The middle 96 % of doses are 15.3 … 55.1: steps of 2 are the finest round ones of 25 at most.
    grid = np.arange(16.0, 56.0, 2.0)
    wanted = curve(LOG, tt.Constant, grid, estimator=tt.SelfNormalized(), bandwidth=6.0)
    np.testing.assert_array_equal(found.parameters, wanted.parameters)
    np.testing.assert_array_equal(found.values, wanted.values)
    assert found.refused == wanted.refused


def test_the_strength_of_a_rule_goes_from_the_mean_dose_to_the_rule():
    found, mean = usual().strengths, LOG.treatment.mean()
    at = dict(zip(found.parameters.tolist(), found.values.tolist(), strict=True))
    rule = POLICIES[BEST]
    flat, half, more = (
        tt.Constant(mean),
        lambda x: (rule(x) + mean) / 2,
        lambda x: np.clip(mean + 1.25 * (rule(x) - mean), 5.0, 75.0),
    )
    for beta, policy in ((0.0, flat), (0.5, half), (1.0, rule), (1.25, more)):
        wanted = tt.evaluate(LOG, policy, estimator=tt.SelfNormalized(), bandwidth=6.0)
        assert at[beta] == pytest.approx(wanted.value, rel=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "most", "steps"),
    [
        (14.8, 55.6, 10, [15, 20, 25, 30, 35, 40, 45, 50, 55]),
        (-0.31, 0.33, 9, [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3]),
        (3.0, 3.0, 9, [3.0]),
        (0.0, 1e6, 3, [0.0, 500_000.0, 1_000_000.0]),
    ],
)
def test_points_of_a_curve_are_round(low, high, most, steps):
    assert estimates.round_steps(low, high, most).tolist() == steps


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 40))
def test_round_steps_are_few_even_and_inside(low, width, most):
    found = estimates.round_steps(low, low + width, most)
    slack = 1e-9 * max(abs(low), width)
    assert 1 <= len(found) <= most
    assert found[0] >= low - slack
    assert found[-1] <= low + width + slack
    if len(found) > 2:
        np.testing.assert_allclose(np.diff(found), found[1] - found[0], rtol=1e-6, atol=slack)


def test_few_prices_are_the_points_themselves():
    prices = np.repeat([9.9, 12.5, 14.9, 19.0], 30)
    assert estimates.dose_grid(prices, None).tolist() == [9.9, 12.5, 14.9, 19.0]
    # Of whole numbers, each given often, those nearest to even steps.
    cigarettes = np.repeat(np.arange(60.0), 5)
    assert set(estimates.dose_grid(cigarettes, None)) <= set(cigarettes)


def test_every_dose_a_little_more_or_less():
    model = tt.LinearGaussian()
    found = made(LOG, POLICIES, propensity=model).shifts
    assert found.parameters.tolist() == [-10.0, -5.0, 0.0, 5.0, 10.0]
    wanted = tt.evaluate(
        LOG, tt.Shift(-5.0), estimator=tt.SelfNormalized(), propensity=model, bandwidth=6.0
    )
    assert found.values[1] == pytest.approx(wanted.value, rel=1e-9)
    assert found.values[2] == pytest.approx(LOG.outcome.mean(), rel=1e-9)
    assert usual().shifts is None  # a column of propensities says nothing of other doses


def test_names_of_the_page():
    found = report(
        treatments=["dose"],
        outcome="loss",
        title="Doses",
        labels={"dose": "weekly dose", "age": "Age"},
        units={"dose": "mg", "loss": "days"},
    )
    assert (found.log.treatments, found.log.units) == (("weekly dose",), ("mg",))
    assert (found.title, found.log.outcome_unit, found.dose_unit) == ("Doses", "days", "mg")
    assert list(found.curves) == ["weekly dose"]
    assert "− 0.2 · Age" in found.rules[-1].formulas[0]


def test_rules_that_treat_all_alike_have_no_strength():
    assert made(LOG, {"flat": tt.Constant(35.0)}).strengths is None
    assert made(LOG, {"as logged": StatusQuo()}).strengths is None


def test_progress_is_told_in_percent():
    said = []
    report(progress=lambda stage, done, total: said.append((stage, done, total)))
    shares = [done / total for _, done, total in said]
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] < 1
    assert "calibration" in [stage for stage, _, _ in said]


def test_unless_given_each_dose_of_the_curve_has_its_own_bandwidth():
    found = report(bandwidth=None).curves["dose"].comparison.estimates.values()
    assert len({float(one.bandwidth.h) for one in found}) > 1


def test_the_paths_are_those_of_the_library():
    assert list(usual().paths) == ["flat", BEST]
    wanted = bandwidth_path(LOG, POLICIES["flat"], estimator=tt.SelfNormalized())
    np.testing.assert_array_equal(usual().paths["flat"].values, wanted.values)


def test_the_paths_hold_the_models_share_as_all_errors_do():
    robust = tt.DoublyRobust(outcome=LinearRegression(), folds=2)
    found = made(LOG, POLICIES, robust).paths[BEST]
    np.testing.assert_array_equal(
        found.covariance, bandwidth_path(LOG, POLICIES[BEST], estimator=robust).covariance
    )
    h = float(found.bandwidths[-8])
    alone = tt.evaluate(LOG, POLICIES[BEST], estimator=robust, bandwidth=h)
    assert found.se[-8] == pytest.approx(alone.se, rel=1e-8)


def test_the_calibration_is_that_of_the_library():
    model = tt.LinearGaussian()
    found = made(LOG, POLICIES, propensity=model, seed=4)
    rows = survey_of(LOG, Engine(pin=False)).sample
    fitted = Nuisances.of(LOG, tt.SelfNormalized(), model)
    assert found.calibration == calibrated(fitted, rows, 5, 4)
    assert found.calibration_checks.names == ("propensity_pit",)


def weights_by_hand(name: str) -> np.ndarray:
    """Return K((t − τ)/h)/(h·q) by the formula; the doses of these policies are far from bounds."""
    tau = POLICIES[name](LOG.context)
    h = float(comparison()[name].bandwidth.h)
    assert ((tau - 5 > h) & (75 - tau > h)).all()
    u = (LOG.treatment - tau) / h
    q = np.maximum(LOG.propensity, 0.01 / LOG.treatment.std())
    return np.where(np.abs(u) < 1, 0.75 * (1 - u**2), 0.0) / (h * q)


def test_the_weights_are_those_of_the_formula():
    w = weights_by_hand("flat")
    (found,) = (one for one in usual().weights if one.policy == "flat")
    assert found.reached == np.count_nonzero(w)
    assert found.ess == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found.mean == pytest.approx(w.mean())
    assert found.mean_se == pytest.approx(w.std() / np.sqrt(600))
    largest = np.sort(w)[::-1]
    for k, share in zip(found.largest, found.share, strict=True):
        assert share == pytest.approx(largest[:k].sum() / w.sum())
    assert found.tail == pytest.approx(tail_index(largest[:256], np.count_nonzero(w)))


def test_the_balance_is_the_distance_of_weighted_means():
    w = weights_by_hand("flat")
    q = np.maximum(LOG.propensity, 0.01 / LOG.treatment.std())
    (found,) = (one for one in usual().balance if one.policy == "flat")
    for name, near, weighted in zip(found.contexts, found.near, found.weighted, strict=True):
        x = LOG.context[:, LOG.names.index(name)]
        for distance, weight in ((near, w * q), (weighted, w)):
            moved = np.average(x, weights=weight) - x.mean()
            assert distance == pytest.approx(abs(moved) / x.std())


def test_the_balance_with_missing_outcomes_is_of_the_rows_that_have_one():
    # Outcomes of the old are recorded half as often; a column says how likely each dose was.
    rng, old = np.random.default_rng(5), LOG.context[:, 0] > np.median(LOG.context[:, 0])
    recorded = rng.uniform(size=len(LOG)) < np.where(old, 0.45, 0.9)
    log = tt.LoggedData(
        LOG.context,
        LOG.treatment,
        np.where(recorded, LOG.outcome, np.nan),
        LOG.propensity,
        bounds=(5.0, 75.0),
        names=LOG.names,
        missing_outcome="weight",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = made(log, {"flat": tt.Constant(35.0)}).balance
    for name, near in zip(found.contexts, found.near, strict=True):
        x = log.context[:, log.names.index(name)]
        total = weight = 0.0
        for i in range(len(log)):
            u = (log.treatment[i] - 35.0) / BANDWIDTH
            if recorded[i] and abs(u) < 1:
                total += (1 - u**2) * x[i]
                weight += 1 - u**2
        assert near == pytest.approx(abs(total / weight - x.mean()) / x.std())
    # Weighting undoes both who got such doses and whose outcome was recorded.
    age = found.contexts.index(LOG.names[0])
    assert found.weighted[age] < found.near[age] / 2


def test_a_subgroup_is_an_evaluation_of_its_rows():
    # Without a floor, and with logged propensities, nothing but the rows differs.
    exact = tt.SelfNormalized(clip=0.0)
    found = made(LOG, {"flat": tt.Constant(35.0)}, exact, bandwidth=6.0, level=0.9)
    carriers = LOG.rows(LOG.context[:, 2] == 1)
    (group,) = (one for one in found.subgroups if one.label == "carrier = 1")
    pair = {"flat": tt.Constant(35.0), "before": StatusQuo()}
    alone = tt.compare(carriers, pair, estimator=exact, bandwidth=6.0, allow_untrusted=True)
    wanted = alone.contrast("flat", "before")
    assert group.rows == len(carriers)
    assert group.difference == pytest.approx(wanted.difference)
    assert group.interval == pytest.approx(wanted.interval(0.9))
    assert group.ess == pytest.approx(alone["flat"].ess)
    assert group.outcome == pytest.approx(carriers.outcome.mean())
    assert group.logged_dose == pytest.approx([carriers.treatment.mean()])
    assert group.policy_dose == pytest.approx([35.0])


def test_subgroups_cover_all_rows_of_each_context():
    found = usual().subgroups
    for context in {one.context for one in found}:
        assert sum(one.rows for one in found if one.context == context) == len(LOG)


def test_a_subgroup_without_rows_in_reach_says_so():
    # Heavy patients never got doses near 10: thirds by weight, one of them without overlap.
    x = np.repeat([0.0, 1.0], 200)
    rng = np.random.default_rng(0)
    t = np.where(x == 0, rng.uniform(0, 20, 400), rng.uniform(40, 60, 400))
    log = tt.LoggedData(x[:, None], t, rng.normal(size=400), np.full(400, 0.05), names=["heavy"])
    found = made(log, {"ten": tt.Constant(10.0)}, bandwidth=5.0)
    light, heavy = found.subgroups
    assert light.difference is not None
    assert heavy.difference is heavy.interval is None
    assert heavy.ess == 0


def test_dose_summaries_begin_with_the_log():
    first, second, third = usual().dose_summaries
    assert first.policy == LOGGED
    assert first.mean == pytest.approx(LOG.treatment.mean())
    assert first.change == 0
    assert second.mean == second.low == second.high == 35.0
    assert third.change == pytest.approx(np.abs(POLICIES[BEST](LOG.context) - LOG.treatment).mean())


@pytest.mark.parametrize(
    "estimator", [tt.DirectMethod(outcome=LinearRegression(), folds=2), tt.Discretized()]
)
def test_estimators_without_a_bandwidth_have_no_paths(estimator):
    model = tt.LinearGaussian() if estimator.uses_propensity else None
    found = made(LOG, {"flat": tt.Constant(35.0)}, estimator, propensity=model)
    assert found.paths == {}
    assert [one.bandwidth for one in found.overlap] == [None]
    if not estimator.uses_propensity:
        assert found.weights == found.balance == ()
        assert found.calibration is None
        assert found.calibration_checks.notes == ("The estimator uses no propensities.",)


def test_the_status_quo_alone_is_a_report_too():
    found = made(LOG, {"as logged": StatusQuo()})
    assert found.focus == found.status_quo == "as logged"
    assert found.drawn == found.subgroups == found.profiles == found.overlap == ()


def test_without_context_there_is_no_one_to_tell_apart():
    log = tt.LoggedData(np.empty((300, 0)), LOG.treatment[:300], LOG.outcome[:300])
    found = made(log, {"flat": tt.Constant(35.0)}, propensity=tt.LinearGaussian())
    assert found.profiles == found.subgroups == found.balance == ()


def test_each_of_several_doses_is_looked_at():
    log = DESIGNS["quadratic-2d"].draw(500, 1)
    found = made(log, {"p": tt.Constant([0.4, 0.9])}, bandwidth=0.8, treatments=["a", "b"])
    assert [one.treatment for one in found.overlap] == ["a", "b"]
    assert {one.treatment for one in found.profiles} == {"a", "b"}
    assert list(found.curves) == ["a", "b"]
    mean = log.doses.mean(axis=0)
    p = found.curves["b"].parameters[3]
    wanted = tt.evaluate(
        log, tt.Constant([mean[0], p]), estimator=tt.SelfNormalized(), bandwidth=0.8
    )
    assert found.curves["b"].values[3] == pytest.approx(wanted.value)


def test_a_curve_that_the_log_cannot_answer_is_a_note():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    # The dose follows the context so closely that no dose was given to most of them.
    log = tt.LoggedData(x, 100 * x[:, 0] + rng.normal(size=200), rng.normal(size=200))
    rule = tt.Linear([100.0], 0.0)
    found = made(log, {"rule": rule}, propensity=tt.LinearGaussian(), bandwidth=1.0)
    assert found.curves == {}
    assert found.curve_notes[0].startswith("dose: The log answers none of the 20 parameters")


def test_names_must_fit_the_doses():
    with pytest.raises(InvalidArgument, match=r"1 treatment\(s\), but 2 name\(s\)"):
        report(treatments=["a", "b"])


def test_nothing_is_fitted_for_the_report_but_the_calibration():
    # `evaluation` holds the nuisances; without them nothing could be estimated.
    class Unfittable(tt.LinearGaussian):
        fits = 0

        def fit(self, X, t):
            Unfittable.fits += 1
            return tt.LinearGaussian.fit(self, X, t)

    found = Evaluation.of(LOG, POLICIES, tt.SelfNormalized(), Unfittable())
    compared = found.compare(6.0)
    assert Unfittable.fits == 1
    gather(compared, found, bandwidth=6.0)
    assert Unfittable.fits == 1 + 5  # the folds of the calibration


# A log that is read part by part


def of_chunks(sample_rows):
    found = Evaluation.of(Chunks(LOG, 130, sample_rows), POLICIES, tt.SelfNormalized(), None)
    return gather(found.compare(BANDWIDTH), found, level=0.9, bandwidth=BANDWIDTH)


def numbers(found, *names):
    """All numbers of some parts of a report."""
    told = found.to_dict()
    return [x for name in names for x in plain_numbers(told[name])]


def plain_numbers(value):
    if isinstance(value, dict):
        return [x for one in value.values() for x in plain_numbers(one)]
    if isinstance(value, list):
        return [x for one in value for x in plain_numbers(one)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


EVERY = ("differences", "strengths", "weights", "bandwidth_paths", "balance")
"""Parts of a report that are from all rows."""


def test_a_log_in_parts_gives_the_numbers_of_the_log_in_memory():
    there, here = of_chunks(len(LOG)), usual()
    assert there.log.sample is None
    parts = (*EVERY, "curves", "doses", "dose_summaries", "profiles", "subgroups", "overlap")
    np.testing.assert_allclose(numbers(there, *parts), numbers(here, *parts), rtol=1e-8, atol=1e-9)


def test_of_a_larger_log_doses_are_counted_on_a_sample_and_values_on_all_rows():
    there, here = of_chunks(250), usual()
    assert 200 < there.log.sample < 300
    assert there.log.rows == len(LOG)
    for counts in there.doses:
        assert all(c.sum() == there.log.sample for c in counts.counts.values())
    np.testing.assert_allclose(numbers(there, *EVERY), numbers(here, *EVERY), rtol=1e-8, atol=1e-9)
    # Parts are cut where the sample says; each row is in one part of every context.
    contexts = {s.context for s in there.subgroups}
    assert sum(s.rows for s in there.subgroups) == len(contexts) * len(LOG)
    page = render(there)
    assert f"on a sample of {there.log.sample} of the 600 rows" in page
    assert (
        json.loads(page.split('id="titrant-result">')[1].split("</script>")[0])["log"]["sample"]
        == there.log.sample
    )
