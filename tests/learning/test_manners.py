"""PolicyLearner as an estimator: parameters, fitted state, refusals, progress, files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

import titrant as tt
from learn.examples import FAST, GRADE, QUADRATIC, quadratic_log
from titrant.data.simulate import DESIGNS, Synthetic
from titrant.outcome import ridge_pair
from titrant.policies import load_training

LOG = quadratic_log(200)


@pytest.fixture(scope="module")
def learner() -> tt.PolicyLearner:
    return tt.PolicyLearner(procedure=FAST, grade=GRADE, against={"zero": tt.Constant(0.0)}).fit(
        LOG
    )


def test_parameters_in_and_out():
    against = {"zero": tt.Constant(0.0)}
    made = tt.PolicyLearner(
        policy=tt.Linear(), procedure=FAST, propensity=tt.LinearGaussian(), against=against, seed=3
    )
    params = made.get_params(deep=False)
    assert params["against"] is against
    assert set(params) == {
        "policy", "procedure", "propensity", "limits", "maximize", "safe", "safe_level", "against",
        "grade", "honest", "seed", "progress", "ignore_doubts", "executor", "checkpoint",
    }  # fmt: skip
    made.set_params(seed=7, safe=True)
    assert (made.seed, made.safe) == (7, True)
    with pytest.raises(ValueError, match="Invalid parameter 'saef'"):
        made.set_params(saef=True)


def test_a_clone_is_unfitted_and_learns_the_same(learner):
    copy = clone(learner)
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert copy.fit(LOG).policy_ == learner.policy_
    assert copy.estimate_.value == learner.estimate_.value


def test_parameters_are_keywords():
    with pytest.raises(TypeError):
        tt.PolicyLearner(tt.Linear())


def test_fit_returns_self_and_leaves_parameters_alone():
    made = tt.PolicyLearner(procedure=FAST, honest=False)
    before = made.get_params()
    assert made.fit(LOG) is made
    assert made.get_params() == before


def test_the_repr_is_that_of_scikit_learn():
    assert repr(tt.PolicyLearner(safe=True)) == "PolicyLearner(safe=True)"


def test_fitted_state(learner):
    assert isinstance(learner.policy_, tt.Clipped)
    assert learner.policy_ is learner.learned_.policy
    assert learner.deployed_
    assert learner.estimate_.names == ["status quo", "mean dose", "zero"]
    assert np.isfinite(learner.solution_.value)
    np.testing.assert_array_equal(learner.predict(LOG.context), learner.policy_(LOG.context))
    assert learner.predict(LOG.context[:3].tolist()).shape == (3,)
    assert learner.decision_.startswith("The improvement over the status quo is ")


def test_the_result_is_plain_when_asked(learner):
    plain = json.loads(json.dumps(learner.learned_.to_dict(), allow_nan=False))
    assert tt.policies.policy_from_dict(plain["policy"]) == learner.policy_
    report = plain["report"]
    assert report["procedure"] == "stacked doubly robust"
    assert 0.5 < report["outcome_models"]["quadratic"] <= 1.0
    assert len(report["candidates"]["scores"]) == 9
    weights = [c["weight"] for c in report["candidates"]["scores"].values()]
    assert sum(weights) == pytest.approx(1.0)
    assert report["dose_range"] == np.quantile(LOG.treatment, [0.005, 0.995]).tolist()


def test_the_same_seed_gives_the_same_bits(learner):
    again = tt.PolicyLearner(procedure=FAST, grade=GRADE, against=learner.against).fit(LOG)
    assert again.policy_ == learner.policy_
    assert again.estimate_.to_dict() == learner.estimate_.to_dict()
    other = tt.PolicyLearner(procedure=FAST, grade=GRADE, seed=1).fit(LOG)
    assert other.policy_ == learner.policy_  # the seed draws the halves, not the policy
    assert other.estimate_.value != learner.estimate_.value


def test_a_pickled_learner_is_the_same(learner):
    back = pickle.loads(pickle.dumps(learner))  # noqa: S301  (our own bytes)
    assert back.policy_ == learner.policy_
    assert back.estimate_.to_dict() == learner.estimate_.to_dict()
    np.testing.assert_array_equal(back.predict(LOG.context), learner.predict(LOG.context))


def test_unfitted():
    with pytest.raises(NotFittedError):
        tt.PolicyLearner().predict(LOG.context)
    with pytest.raises(NotFittedError):
        tt.PolicyLearner().in_sample_estimate()


def test_in_a_loop_of_cross_validation():
    # What scikit-learn users write: split, clone, fit, grade on the rest.
    made = tt.PolicyLearner(procedure=FAST, honest=False)
    values = []
    for train, test in KFold(4, shuffle=True, random_state=0).split(LOG.context):
        policy = clone(made).fit(LOG.rows(train)).policy_
        values.append(tt.evaluate(LOG.rows(test), policy, estimator=tt.SelfNormalized()).value)
    assert np.mean(values) == pytest.approx(1.5, abs=0.25)


def test_the_in_sample_value_says_so(learner):
    found = learner.in_sample_estimate()
    assert found.policy == "learned, in-sample"
    again = tt.evaluate(LOG, learner.policy_, estimator=GRADE)
    assert found.value == again.value


def test_a_saved_learner_is_a_policy_file_with_ranges(learner, tmp_path):
    path = tmp_path / "policy.json"
    learner.save(path)
    assert tt.load_policy(path) == learner.policy_
    training = load_training(path)
    assert training.names == ("x0", "x1")
    np.testing.assert_array_equal(training.low, LOG.context.min(axis=0))
    np.testing.assert_array_equal(training.high, LOG.context.max(axis=0))
    assert training.rows == 200


def test_progress_tells_where_it_is():
    said = []
    made = tt.PolicyLearner(
        procedure=FAST, grade=tt.SelfNormalized(), progress=lambda *step: said.append(step)
    )
    made.fit(LOG)
    stages = list(dict.fromkeys(stage for stage, _, _ in said))
    assert stages == [
        f"{where}: {what}"
        for where, whats in {
            "all rows": ["outcome models", "candidates"],
            "first half": ["outcome models", "candidates", "grading"],
            "second half": ["outcome models", "candidates", "grading"],
        }.items()
        for what in whats
    ]
    for stage in stages:
        steps = [(done, total) for where, done, total in said if where == stage]
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        assert steps[-1][0] == steps[-1][1]


WRONG = [
    ({"safe": True, "honest": False}, "`safe=True` needs `honest=True`"),
    ({"safe_level": "refuse"}, "`safe_level` of `PolicyLearner` must be one of 'ok', 'warn'"),
    ({"procedure": "cpo"}, "The `procedure` of `PolicyLearner` must be a procedure such as"),
    ({"seed": -1}, "The `seed` of `PolicyLearner`"),
    ({"policy": "linear"}, "The `policy` of `PolicyLearner`"),
    ({"against": {"learned": tt.Constant(1.0)}}, "under names of their own, not 'learned'"),
]


@pytest.mark.parametrize(("settings", "said"), WRONG, ids=[said for _, said in WRONG])
def test_wrong_settings(settings, said):
    with pytest.raises(tt.InvalidArgument, match=said):
        tt.PolicyLearner(**settings).fit(LOG)


def test_a_table_is_no_log():
    with pytest.raises(tt.InvalidArgument, match="takes a `LoggedData`; got a dict"):
        tt.PolicyLearner().fit({"dose": [1, 2]})


@pytest.mark.parametrize("n", [2, 11])
def test_too_few_rows(n):
    with pytest.raises(tt.DataError, match=f"needs at least 12 rows, .* got {n}"):
        tt.PolicyLearner(procedure=FAST).fit(LOG.rows(slice(0, n)))


def test_few_rows_of_a_half():
    with pytest.raises(tt.DataError, match=r"in each half .* got 10"):
        tt.PolicyLearner(procedure=FAST).fit(LOG.rows(slice(0, 20)))


def test_as_few_rows_as_it_takes():
    few = LOG.rows(slice(0, 24))
    found = tt.PolicyLearner(procedure=FAST, grade=tt.SelfNormalized()).fit(few)
    assert np.isfinite(found.estimate_.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"folds": 2}, "The `folds` of `StackedDR` must be a whole number ≥ 3"),
        ({"models": {}}, "The `models` of `StackedDR` must be a mapping with at least one model"),
        ({"candidates": ()}, "The `candidates` of `StackedDR` must be at least one"),
    ],
)
def test_wrong_procedures(settings, said):
    with pytest.raises(tt.InvalidArgument, match=said):
        tt.StackedDR(**settings)


def test_of_a_large_log_a_stated_number_of_rows_is_learned_from():
    log = Synthetic().draw(300, 4)
    procedure = tt.StackedDR(models=ridge_pair(), most_rows=120)
    learned = tt.PolicyLearner(procedure=procedure, honest=False).fit(log).learned_
    assert (learned.report["learned_on"], learned.report["rows"]) == (120, 300)
    all_rows = tt.PolicyLearner(procedure=tt.StackedDR(models=ridge_pair()), honest=False).fit(log)
    assert all_rows.learned_.report["learned_on"] == 300
    assert not np.array_equal(all_rows.policy_.params, learned.policy.params)


def test_without_contexts():
    bare = tt.LoggedData(np.empty((200, 0)), LOG.treatment, LOG.outcome)
    policy = tt.PolicyLearner(procedure=FAST, honest=False).fit(bare).policy_
    assert isinstance(policy, tt.Constant)
    assert QUADRATIC.value(policy) < 1.66  # the best constant is worth 1.604


def test_constant_and_repeated_contexts():
    X = np.column_stack([LOG.context, np.full(200, 0.1), LOG.context[:, 0]])
    log = tt.LoggedData(X, LOG.treatment, LOG.outcome, LOG.propensity)
    policy = tt.PolicyLearner(procedure=FAST, honest=False).fit(log).policy_
    assert policy.policy.coef[2] == 0
    np.testing.assert_allclose(policy.policy.coef[0], policy.policy.coef[3], rtol=1e-6)
    assert np.mean((policy(X) - QUADRATIC.best(LOG.context)) ** 2) < 0.03


def test_bounds_that_differ_between_rows():
    # A learned dose is possible in every row, also in those of the half that grades it.
    rng = np.random.default_rng(0)
    low = np.where(rng.uniform(size=200) < 0.02, np.minimum(0.1, LOG.treatment), -9.0)
    log = tt.LoggedData(
        LOG.context, LOG.treatment, LOG.outcome, LOG.propensity, bounds=(low, np.inf)
    )
    found = tt.PolicyLearner(procedure=FAST, grade=tt.SelfNormalized()).fit(log)
    assert found.policy_.lower == low.max()
    assert (found.policy_(log.context) >= low).all()


def test_rewards_and_the_mean_dose_in_bounds():
    # All rows but one allow doses above 0 only; the mean dose of a half is moved into the bounds.
    low = np.where(np.arange(200) == 7, LOG.treatment[7], -9.0)
    log = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, LOG.propensity, bounds=(low, 9.0))
    found = tt.PolicyLearner(procedure=tt.CPO(restarts=2), grade=tt.SelfNormalized())
    assert np.isfinite(found.fit(log).estimate_.contrast("mean dose").center)


def test_a_model_that_gives_a_dose_no_chance_is_floored():
    def density(X, t):
        return np.where(t > 1.5, 0.0, QUADRATIC.density(X, t))

    assert (LOG.treatment > 1.5).sum() == 10
    made = tt.PolicyLearner(procedure=FAST, propensity=tt.Known(density), honest=False)
    assert QUADRATIC.value(made.fit(LOG).policy_) < 1.6


def test_names_reach_the_policy():
    design = DESIGNS["dosing"]
    found = tt.PolicyLearner(procedure=FAST, honest=False).fit(design.draw(300, 1))
    assert found.policy_.features == ("weight", "age", "carrier")
    # On the scale of kg, years and 0/1: the best rule is 19 + .35·weight − .2·age − 9·carrier.
    np.testing.assert_allclose(found.policy_.policy.coef, [0.35, -0.2, -9.0], rtol=0.25)
