"""The honest value: who learns on what, who grades whom, and what is then deployed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST, GRADE, SEEN, Memorizing, numbered, quadratic_log
from sweeps import long
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.inference.diagnostics import Check, Diagnostics, Verdict
from titrant.inference.trust.rules import CONFOUNDING
from titrant.learn.honest import LEARNED, HonestValue, pooled, student
from titrant.learning import SAFE_LEVELS
from titrant.outcome import fold_of
from titrant.propensity import LinearGaussian

ROUNDING = 1e-12


def no_share(shown, questions, sample, familiar):  # noqa: ARG001
    """Stand in for `models_share`: nothing is added to the error."""
    return np.zeros((len(questions), len(questions)))


def test_no_model_meets_a_row_that_it_has_seen(monkeypatch):
    # The memorizing model raises if it is asked about a row of its own fit. Its diaries show who
    # was fitted on what: learners on all rows and on each half, graders on each half only. Only the
    # jackknife judges all rows by each model, and only errors come of it: it is left out.
    monkeypatch.setattr("titrant.evaluation.evaluation.models_share", no_share)
    SEEN.pop("learning", None)
    SEEN.pop("grading", None)
    log = numbered(80)
    tt.PolicyLearner(
        procedure=tt.StackedDR(models={"m": Memorizing("learning")}, folds=3),
        grade=tt.DoublyRobust(outcome=Memorizing("grading"), folds=4),
    ).fit(log)
    half = fold_of(0, 80, 2, 0)
    rows = [set(np.flatnonzero(half == k).astype(float)) for k in (0, 1)]
    assert rows[0] | rows[1] == set(map(float, range(80)))
    assert not rows[0] & rows[1]
    # Three folds: 3 + 3 fits each for all rows, the first half and the second.
    fits = SEEN["learning"]
    assert len(fits) == 18
    assert all(seen <= rows[0] for seen in fits[6:12])
    assert all(seen <= rows[1] for seen in fits[12:])
    # Graders: the second half grades what the first learned, and the other way round.
    grades = SEEN["grading"]
    assert len(grades) == 8
    assert all(seen <= rows[1] for seen in grades[:4])
    assert all(seen <= rows[0] for seen in grades[4:])


def test_each_half_grades_the_policy_of_the_other():
    # By hand: learn on one half, compare on the other, swap, pool.
    log = quadratic_log(200)
    found = tt.PolicyLearner(procedure=FAST, grade=GRADE, seed=5).fit(log).estimate_
    half = fold_of(0, 200, 2, 5)
    parts = []
    for k in (0, 1):
        learned_on, graded_on = log.rows(half == k), log.rows(half != k)
        policy = tt.PolicyLearner(procedure=FAST, honest=False).fit(learned_on).policy_
        assert found.policies[k] == policy
        policies = {
            LEARNED: policy,
            "status quo": tt.StatusQuo(),
            # As the survey adds it up: the last bit of a mean depends on the order of its sum.
            "mean dose": tt.Constant(float(survey_of(learned_on, Engine()).mean_dose[0])),
        }
        parts.append(tt.compare(graded_on, policies, estimator=GRADE, allow_untrusted=True))
    values = [part[LEARNED].value for part in parts]
    assert found.value == pytest.approx(np.mean(values), rel=ROUNDING)
    intervals = [student(part[LEARNED].confidence) for part in parts]
    assert found.confidence == pooled(np.array([0.5, 0.5]), intervals)
    for name in ("status quo", "mean dose"):
        contrasts = [student(part.contrast(LEARNED, name).confidence) for part in parts]
        assert found.contrast(name) == pooled(np.array([0.5, 0.5]), contrasts)


def test_an_odd_row_weighs_its_half():
    found = tt.PolicyLearner(procedure=FAST, grade=tt.SelfNormalized()).fit(quadratic_log(201))
    rows = [half[LEARNED].rows for half in found.estimate_.halves]
    assert sorted(rows) == [100, 101]
    values = [half[LEARNED].value for half in found.estimate_.halves]
    assert found.estimate_.value == pytest.approx(np.average(values, weights=rows))


def test_policies_of_the_user_are_compared_as_they_are():
    log = quadratic_log(200)
    best = tt.Linear([1.0, -0.5])
    found = tt.PolicyLearner(
        procedure=FAST,
        grade=tt.SelfNormalized(),
        against={"best": best, "half": lambda X: 0.5 * X[:, 0], "logged": tt.StatusQuo()},
    ).fit(log)
    honest = found.estimate_
    assert honest.names == ["status quo", "mean dose", "best", "half", "logged"]
    assert honest.contrast("logged") == honest.contrast("status quo")
    assert abs(honest.contrast("best").center) < 0.2


def test_an_effect_is_deployed_and_says_so():
    found = tt.PolicyLearner(procedure=FAST, grade=GRADE, safe=True).fit(quadratic_log(400))
    assert found.deployed_
    assert found.stopped_by_ == ()
    assert isinstance(found.policy_, tt.Clipped)
    assert found.decision_.startswith("Deploy the learned policy. The improvement")


@pytest.fixture(scope="module")
def warned() -> tt.LoggedData:
    """A clear effect, but propensities a third too large: the mean weight is 1/1.3."""
    log = quadratic_log(400)
    return tt.LoggedData(log.context, log.treatment, log.outcome, 1.3 * log.propensity)


@pytest.fixture(scope="module")
def small() -> tt.LoggedData:
    """A clear effect in so few rows that the effective sample size is warned about."""
    return quadratic_log(80)


def assert_kept(found: tt.PolicyLearner, why: str) -> None:
    """Assert that a clear improvement was not deployed, and that the decision says why."""
    assert found.estimate_.verdict.value == "warn"
    assert found.estimate_.improves()
    assert not found.deployed_
    assert found.policy_ == tt.StatusQuo()
    assert found.decision_.startswith("Keep the status quo. The improvement")
    assert f"excludes zero, but the honest estimate carries a warning{why}" in found.decision_
    assert found.decision_.endswith(".")
    assert not found.decision_.endswith("..")


def test_a_warning_keeps_the_status_quo_and_says_so(small):
    found = tt.PolicyLearner(procedure=FAST, grade=GRADE, safe=True).fit(small)
    assert_kept(found, " (effective_sample_size): The effective sample size is")
    assert found.stopped_by_ == ("effective_sample_size",)


def test_a_warning_is_no_obstacle_where_it_is_accepted(small):
    made = tt.PolicyLearner(procedure=FAST, grade=GRADE, safe=True, safe_level="warn").fit(small)
    assert made.estimate_.verdict.value == "warn"
    assert made.deployed_
    assert made.stopped_by_ == ()
    assert made.decision_.startswith("Deploy the learned policy. The improvement")
    assert made.decision_.endswith("which excludes zero.")


@pytest.mark.parametrize("level", SAFE_LEVELS)
def test_a_warning_that_bears_on_confounding_is_never_accepted(warned, level):
    found = tt.PolicyLearner(procedure=FAST, grade=GRADE, safe=True, safe_level=level).fit(warned)
    assert_kept(found, " that bears on confounding (mean_weight): The mean weight is")
    assert found.stopped_by_ == ("mean_weight",)


@pytest.mark.parametrize("level", SAFE_LEVELS)
@pytest.mark.parametrize("seed", [0, *long(1, 2)])
def test_confounding_that_plain_models_cannot_follow_is_not_deployed(seed, level):
    # No dose does anything: contexts that raise the dose raise the loss, both exponentially.
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1000, 2))
    shared = np.exp(x[:, 0])
    log = tt.LoggedData(x, shared + rng.normal(size=1000), shared + 0.5 * rng.normal(size=1000))
    found = tt.PolicyLearner(
        policy=tt.Constant(0.0),
        procedure=FAST,
        grade=GRADE,
        propensity=LinearGaussian(),
        safe=True,
        safe_level=level,
    ).fit(log)
    assert_kept(found, " that bears on confounding")
    assert set(found.stopped_by_) <= CONFOUNDING


def with_warning(honest: HonestValue, name: str) -> HonestValue:
    """The same grades, but this check of the learned policy warns in the first half."""
    first, second = honest.halves
    graded = first[LEARNED]
    said = Check(name, 1.0, Verdict.WARN, "Something is off.")
    others = tuple(check for check in graded.diagnostics if check.name != name)
    marked = replace(graded, diagnostics=Diagnostics((said, *others)))
    half = replace(first, estimates={**first.estimates, LEARNED: marked})
    return replace(honest, halves=(half, second))


@pytest.fixture(scope="module")
def sound() -> HonestValue:
    return tt.PolicyLearner(procedure=FAST, grade=GRADE).fit(quadratic_log(400)).estimate_


def test_without_warnings_nothing_speaks_against_an_improvement(sound):
    for worst in (Verdict.OK, Verdict.WARN):
        assert sound.objections(worst) == ()
        assert sound.objection(worst) is None
        assert sound.finding(worst=worst).endswith("which excludes zero.")


# Law: of all checks, those of the list are objections at every level, the others at "ok" alone.
@pytest.mark.parametrize(
    "name", sorted({*CONFOUNDING, "influence_tail", "support", "smoothing_gap"})
)
def test_which_warnings_bear_on_confounding_stands_in_one_list(sound, name):
    doubted = with_warning(sound, name)
    assert [c.name for c in doubted.objections(Verdict.OK)] == [name]
    assert [c.name for c in doubted.objections(Verdict.WARN)] == [name] * (name in CONFOUNDING)
    bears = " that bears on confounding" if name in CONFOUNDING else ""
    assert doubted.objection() == (
        f"the honest estimate carries a warning{bears} ({name}): Something is off"
    )


def test_a_warning_that_bears_on_confounding_comes_before_others(sound):
    doubted = with_warning(with_warning(sound, "influence_tail"), "covariate_balance")
    assert [c.name for c in doubted.objections()] == ["covariate_balance"]


@pytest.mark.parametrize("level", SAFE_LEVELS)
def test_a_refused_estimate_is_never_deployed(level):
    log = quadratic_log(400)
    wrong = tt.LoggedData(log.context, log.treatment, log.outcome, 5.0 * log.propensity)
    found = tt.PolicyLearner(procedure=FAST, grade=GRADE, safe=True, safe_level=level).fit(wrong)
    assert found.estimate_.verdict.value == "refuse"
    assert not found.deployed_
    assert found.stopped_by_ == ("mean_weight",)
    assert "but the trust rules refuse" in found.decision_


def test_no_effect_keeps_the_status_quo_and_says_so():
    rng = np.random.default_rng(8)
    log = quadratic_log(200).with_outcome(rng.normal(size=200))
    found = tt.PolicyLearner(procedure=FAST, grade=GRADE, safe=True).fit(log)
    assert not found.deployed_
    assert found.policy_ == tt.StatusQuo()
    assert found.decision_.startswith("Keep the status quo. The improvement")
    assert "does not exclude zero" in found.decision_
    assert found.stopped_by_ == ()  # it was the bound
    # What was not deployed can be looked at: no context is seen to matter.
    assert isinstance(found.learned_.policy, tt.Constant)
    with pytest.raises(tt.InvalidArgument, match="keep dosing as before"):
        found.predict(log.context)


def test_without_honesty_there_is_no_value():
    found = tt.PolicyLearner(procedure=FAST, honest=False).fit(quadratic_log(100))
    assert found.estimate_ is None
    assert "was not compared" in found.decision_


def test_the_in_sample_value_is_optimistic_and_the_honest_one_is_not():
    # Pure noise with mean 0: every policy is worth 0. On its own rows the learned one looks better.
    learner = tt.PolicyLearner(procedure=tt.CPO(ridge=0.003), grade=tt.SelfNormalized())
    in_sample, honest = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        log = quadratic_log(150, seed).with_outcome(rng.normal(size=150))
        found = learner.fit(log)
        in_sample.append(found.in_sample_estimate().value)
        honest.append(found.estimate_.value)
    error = np.std(honest, ddof=1) / np.sqrt(12)
    assert abs(np.mean(honest)) < 3 * error
    assert np.mean(in_sample) < np.mean(honest) - 2 * error
