"""The models' own share in the standard error: a jackknife over their folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from evaluation.logs import KINDS, kind_name, propensity_for, smooth_log
from titrant import Constant, DoublyRobust, SelfNormalized, StatusQuo, compare, evaluate
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.jackknife import filled, jackknife, models_share
from titrant.inference import Narrow, Normal, RobustBiasCorrected
from titrant.outcome import OutcomeModel

LOG = smooth_log()
DOSES = {"low": Constant(0.2), "high": Constant(0.6)}


class Mean(OutcomeModel):
    """The mean outcome of the training rows; `known` stands in for it."""

    def __init__(self, known=None):
        self.known = known

    def fit(self, X, t, y):  # noqa: ARG002
        self.mean_ = float(np.mean(y)) if self.known is None else self.known
        return self

    def predict(self, X, t):  # noqa: ARG002
        return np.full(len(X), self.mean_)


def asked(estimator, log=LOG, policies=DOSES):
    evaluation = Evaluation.of(log, policies, estimator, propensity_for(estimator))
    chosen, _ = evaluation.bandwidths(0.5)
    return evaluation, evaluation.point(chosen).joint


def test_three_rows_by_hand():
    # Two folds, three rows, one question: values 2 and 4, so N = ½·(1 + 1) = 1.
    influences = np.array([[[1.0], [2.0], [3.0]], [[3.0], [4.0], [5.0]]])
    assert jackknife(influences, 3) == pytest.approx(np.array([[1.0]]))


def test_chance_imbalance_shrinks_with_the_rows_and_lasting_disagreement_does_not():
    rng = np.random.default_rng(0)
    own = rng.normal(size=(5, 400, 1))
    lasting = own - own.mean(axis=1, keepdims=True) + np.arange(5.0)[:, None, None]
    assert jackknife(lasting, 400)[0, 0] == pytest.approx(8.0)  # 4/5 · (4 + 1 + 0 + 1 + 4)
    assert jackknife(lasting, 10**9)[0, 0] == pytest.approx(8.0, rel=0.01)
    fresh = rng.normal(size=(5, 100_000, 1))
    parts = [fresh[:, rows] for rows in np.arange(100_000).reshape(50, -1)]
    corrected = np.mean([jackknife(part, 100_000) for part in parts])
    # Of all rows it would be 4/100,000. Negative variances count as 0, so some of the chance stays:
    # E max(χ²₄/4 − 1, 0) = .27 of it, 4/2,000. Two MC errors of 50 samples are .2 of that.
    assert 4.0 / 100_000 < corrected < 0.47 * 4.0 / 2_000
    assert np.mean([jackknife(part, 2_000) for part in parts]) == pytest.approx(
        4.0 / 2_000, rel=0.2
    )


def test_a_variance_is_its_own_whatever_else_is_asked():
    influences = np.random.default_rng(1).normal(size=(5, 300, 6))
    whole = jackknife(influences, 10_000)
    assert np.linalg.eigvalsh(whole).min() > -1e-15
    for j in range(6):
        assert jackknife(influences[:, :, [j]], 10_000)[0, 0] == pytest.approx(whole[j, j])


def test_a_fold_without_weight_is_left_out():
    influences = np.random.default_rng(1).normal(size=(5, 300, 1))
    missing = influences.copy()
    missing[2] = np.nan
    assert np.isfinite(jackknife(missing, 300)).all()
    assert jackknife(missing, 300)[0, 0] > 0.0


def test_degrees_of_freedom_are_those_of_the_sum_of_two_variances():
    _, point = asked(DoublyRobust(outcome=LinearRegression()))
    share = np.diag([1.0, 0.0])
    found = point.with_models(share, 4.0).degrees_with_models(np.ones(2), np.array([100.0, 50.0]))
    assert found == pytest.approx([4.0 / (1.0 / 100.0 + 1.0 / 4.0), 50.0])


@pytest.mark.parametrize("estimator", KINDS, ids=kind_name)
def test_it_is_the_loop_over_folds(estimator):
    evaluation, point = asked(estimator)
    nuisances, values = evaluation.nuisances, []
    for k in range(nuisances.folds):
        prepared = nuisances.prepare(LOG, by=k)
        rows = [evaluation.policy_rows.rows(prepared, q.policy) for q in point.questions]
        asked_of = list(zip(point.questions, rows, strict=True))
        means = [(q, q.estimator.terms(r, q.scale).mean(axis=0)) for q, r in asked_of]
        values.append([q.estimator.value(mean) for q, mean in means])
    apart = np.array(values) - np.mean(values, axis=0)
    folds = len(values)
    naive = sum(np.outer(a, a) for a in apart) * (folds - 1) / folds
    share = models_share(evaluation.policy_rows, point.questions, evaluation.survey.sample)
    assert share == pytest.approx(naive, abs=1e-14)


def test_every_row_is_judged_by_the_one_model():
    estimator = DoublyRobust(outcome=Mean())
    nuisances = asked(estimator)[0].nuisances
    for k, model in enumerate(nuisances.outcome.models_):
        assert (nuisances.prepare(LOG, by=k).r_logged == model.mean_).all()


@pytest.mark.parametrize("estimator", [SelfNormalized(), DoublyRobust(outcome=Mean(known=0.3))])
def test_models_that_do_not_depend_on_the_rows_have_no_share(estimator):
    evaluation, point = asked(estimator)
    share = models_share(evaluation.policy_rows, point.questions, evaluation.survey.sample)
    assert np.abs(share).max() < 1e-30  # rounding


@pytest.mark.parametrize("interval", [RobustBiasCorrected(), Normal(), Narrow()])
def test_it_is_in_the_standard_error_and_in_the_interval(interval):
    def width(outcome):
        estimator = DoublyRobust(outcome=outcome)
        found = compare(LOG, DOSES, estimator=estimator, bandwidth=0.5, interval=interval)
        return found["low"].se, found["low"].confidence.se

    evaluation, point = asked(DoublyRobust(outcome=LinearRegression()))
    share = models_share(evaluation.policy_rows, point.questions, evaluation.survey.sample)[0, 0]
    se, interval_se = width(LinearRegression())
    assert se**2 == pytest.approx(point.covariance[0, 0] + share)
    bare = interval.infer(point, evaluation.over_rows)
    assert interval_se**2 == pytest.approx(bare.interval(0).se ** 2 + share)


def test_the_mean_outcome_rests_on_no_model():
    found = compare(LOG, DOSES | {"now": StatusQuo()}, allow_untrusted=True)
    assert found["now"].se == pytest.approx(LOG.outcome.std() / np.sqrt(len(LOG)))


@pytest.mark.long
def test_the_standard_error_of_the_direct_method_is_that_of_its_model():
    # y = x'b + noise by least squares, the policy's value a mean of predictions: the delta method
    # alone knows the spread of the contexts, the share what 500 rows know of b.
    from titrant import DirectMethod  # noqa: PLC0415

    def one(seed):
        rng = np.random.default_rng(seed)
        x, t = rng.normal(size=(500, 1)), rng.normal(size=500)
        log = type(LOG)(x, t, 2.0 * t + x[:, 0] + rng.normal(size=500))
        estimator = DirectMethod(outcome=LinearRegression())
        found = evaluate(log, Constant(2.0), estimator=estimator, interval=Normal())
        return found.value - 4.0, found.se

    errors, se = np.array([one(seed) for seed in range(200)]).T
    # 200 errors know their sd to 5 %; with the delta method alone the ratio is near 2.3.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(np.sqrt(np.mean(se**2)), rel=0.2)


def long_log(n=6_000, seed=3):
    rng = np.random.default_rng(seed)
    x, t = rng.normal(size=(n, 2)), rng.normal(size=n)
    return type(LOG)(x, t, t**2 + x[:, 0] + rng.normal(size=n))


@pytest.mark.long
def test_the_share_rests_on_all_rows_that_models_are_fitted_on():
    # 6,000 rows are no more than default models take, so none of them is left out: the share is
    # the loop over all rows, without a part that chance imbalance would explain.
    log, doses = long_log(), {"far": Constant(2.5)}
    evaluation, point = asked(DoublyRobust(outcome=LinearRegression()), log, doses)
    (question,), values = point.questions, []
    for k in range(evaluation.nuisances.folds):
        rows = evaluation.policy_rows.rows(evaluation.nuisances.prepare(log, by=k), 0)
        values.append(
            question.estimator.value(question.estimator.terms(rows, question.scale).mean(axis=0))
        )
    share = models_share(evaluation.policy_rows, point.questions, evaluation.survey.sample)
    assert share[0, 0] == pytest.approx(len(values) * 0.8 * np.var(values), rel=1e-9)


@pytest.mark.long
def test_a_share_that_the_sample_does_not_tell_is_the_other_variance_and_said(monkeypatch):
    # No row of the sample is near the far dose, while rows of the log are.
    monkeypatch.setattr("titrant.evaluation.models.jackknife.MOST_TO_FIT", 500)
    log = long_log()
    doses = {"far": Constant(2.9), "near": Constant(0.0)}
    options = {"bandwidth": 0.02, "allow_untrusted": True}
    estimator = DoublyRobust(outcome=LinearRegression())
    found = compare(log, doses, estimator=estimator, **options)
    evaluation = Evaluation.of(log, doses, estimator, None)
    point = evaluation.point(evaluation.bandwidths(0.02)[0]).joint
    share = models_share(evaluation.policy_rows, point.questions, evaluation.survey.sample)
    assert np.isnan(share[0, 0])
    assert share[0, 1] == 0.0
    np.testing.assert_array_equal(
        np.diagonal(filled(share, point.covariance))[0], point.covariance[0, 0]
    )
    assert found["far"].se == pytest.approx(np.sqrt(2.0 * point.covariance[0, 0]))
    assert any(
        "share" in note and "not measured" in note for note in found["far"].diagnostics.notes
    )
