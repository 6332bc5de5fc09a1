"""Trials: one thing is changed, all is estimated anew, and verdicts are what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import titrant as tt
from titrant.doubt import trials as module
from titrant.doubt.trials import World, at_most
from titrant.evaluation import Evaluation
from titrant.evaluation.models.nuisance import Nuisances

QUICK = {
    "estimator": tt.DoublyRobust(outcome=LinearRegression(), folds=2),
    "propensity": tt.LinearGaussian(),
    "bandwidth": 0.6,
}
POLICY = tt.Constant(0.5)
AS_IT_IS = 1e-12  # the same sums of the same numbers
# Where a trial takes the default models they may be quick; the usual trials take them as they are.
plainly = pytest.mark.usefixtures("plain_models")


def drawn(n=300, seed=0, **more):
    """A dose that depends on x0 and, a little, on x1; an outcome that both have a say in."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    t = 0.7 * x[:, 0] + 0.2 * x[:, 1] + rng.normal(size=n)
    y = t + 2.0 * x[:, 0] + 0.3 * rng.normal(size=n)
    return tt.LoggedData(x, t, y, **more)


def by_change(found):
    return {trial.change: trial for trial in found.trials}


def test_the_usual_trials():
    stages = []
    found = tt.stress(drawn(), POLICY, **QUICK, draws=2, progress=lambda *step: stages.append(step))
    trials = by_change(found)
    assert list(trials) == [
        "doses permuted",
        "2 draws of outcomes with a known truth",
        "without x0",
        "without x1",
        "without x2",
        "folds by seed 1",
        "folds by seed 2",
        "4 folds",
        "with the default propensity",
        "with the default outcome models",
    ]
    assert trials["doses permuted"].expected == 0.0
    assert trials["doses permuted"].verdict == "passes"
    assert trials["2 draws of outcomes with a known truth"].verdict == "covers"
    assert trials["without x0"].verdict == "matters"
    assert trials["without x0"].shift > 2.0
    assert all(trials[f"without {name}"].fine for name in ("x1", "x2"))
    assert found.rows == found.of == 300
    assert found.evaluations == 13
    assert stages == [("evaluation", 0, 1), *(("trials", k, 10) for k in range(10))]
    assert "It rests on x0" in found.sentence
    assert "all 9 trials" in found.sentence
    assert str(found).endswith(found.sentence)
    assert "<table>" in found._repr_html_()
    assert "9 of 10 trials hold" in repr(found)
    assert len(found.plot().lines) > 0


def test_one_draw_and_one_trial_are_told_as_one():
    found = tt.stress(drawn(120), POLICY, **QUICK, draws=1, contexts=())
    one = by_change(found)["1 draw of outcomes with a known truth"]
    assert one.note.startswith("the interval holds the truth, ")
    assert replace(found, trials=(one,)).sentence == "The estimate survives its one trial."
    lost = replace(one, verdict="misses")
    said = replace(found, trials=(lost,)).sentence
    assert said.startswith("The estimate does not survive its one trial; not ")


def test_every_trial_fits_its_own_models(monkeypatch):
    fitted = []
    made = Nuisances.of.__func__

    def watched(cls, log, *rest, **named):
        fitted.append((log.treatment.tobytes(), log.outcome.tobytes(), log.names, len(log)))
        return made(cls, log, *rest, **named)

    monkeypatch.setattr(Nuisances, "of", classmethod(watched))
    found = tt.stress(drawn(120), POLICY, **QUICK, draws=3)
    assert len(fitted) == found.evaluations
    # one set of outcomes for each draw, and doses of their own for the permutation
    assert len({outcome for _, outcome, _, _ in fitted}) == 1 + 3
    assert len({treatment for treatment, _, _, _ in fitted}) == 2


def test_no_propensity_is_carried_over_to_other_doses():
    asked = {}

    class Watched(tt.LinearGaussian):
        def fit(self, X, t):
            asked[np.asarray(t).tobytes()] = True
            return super().fit(X, t)

    log = drawn(120)
    tt.stress(log, POLICY, **(QUICK | {"propensity": Watched()}), draws=0, contexts=["x0"])
    assert list(asked) == [log.treatment.tobytes()]  # permuted doses get the default model


@plainly
def test_a_context_that_is_hidden_is_as_good_as_gone():
    log, models = drawn(), (QUICK["estimator"], QUICK["propensity"])
    hidden = Evaluation.of(log, {"p": POLICY}, *models, hidden=("x0",)).compare(0.6)["p"]
    without = tt.evaluate(log.without(["x0"]), POLICY, **QUICK)
    assert hidden.value == pytest.approx(without.value, rel=AS_IT_IS)
    assert hidden.interval() == pytest.approx(without.interval(), rel=AS_IT_IS)
    # but a policy sees it
    rule = tt.Linear(coef=[0.7], intercept=0.3, features=["x0"])
    found = by_change(tt.stress(log, rule, **QUICK, draws=0, contexts=["x0"]))
    assert found["without x0"].found is not None


@plainly
def test_a_placebo_outcome_with_a_hidden_cause_fails():
    rng = np.random.default_rng(1)
    log = drawn(500)
    cause = log.treatment + rng.normal(size=500)  # goes with the dose, whatever the contexts say
    found = by_change(
        tt.stress(
            log,
            tt.Constant(1.5),
            **QUICK,
            draws=0,
            contexts=(),
            placebo_outcomes={"last year": cause, "noise": rng.normal(size=500)},
        )
    )
    assert found["last year as the outcome"].verdict == "fails"
    assert found["noise as the outcome"].verdict == "passes"
    named = by_change(
        tt.stress(log, POLICY, **QUICK, draws=0, contexts=(), placebo_outcomes=["x2"])
    )
    assert named["x2 as the outcome"].verdict == "passes"


@plainly
def test_placebo_treatments():
    rng = np.random.default_rng(2)
    log = drawn(400)
    # goes with the dose and has no effect of its own; what x0 does is another thing
    placebo = {"other": log.treatment + rng.normal(size=400)}
    asked = {"draws": 0, "contexts": (), "placebo_treatments": placebo}
    found = by_change(tt.stress(log, POLICY, **QUICK, **asked))
    assert found["other as the treatment"].verdict == "passes"
    assert found["other as the treatment"].expected == 0.0
    effective = by_change(
        tt.stress(log, POLICY, **QUICK, draws=0, contexts=(), placebo_treatments=["x0"])
    )
    assert effective["x0 as the treatment"].verdict == "fails"


def test_groups_are_left_out_the_largest_first():
    groups = np.repeat(np.arange(30), 10)
    groups[:40] = 0
    log = drawn(groups=groups)
    found = by_change(tt.stress(log, POLICY, **QUICK, draws=1, contexts=()))
    names = [change for change in found if "group" in change]
    assert names[0] == "without the group of row 0 (40 rows)"
    assert len(names) == 5
    kept = tt.evaluate(log.rows(groups != 0), POLICY, **QUICK, allow_untrusted=True)
    assert found[names[0]].found.value == pytest.approx(kept.value, rel=AS_IT_IS)


@plainly
def test_rows_are_drawn_and_columns_with_them():
    log = drawn(600)
    asked = {"draws": 0, "contexts": (), "rows": 250, "placebo_outcomes": {"y": log.outcome}}
    found = tt.stress(log, POLICY, **QUICK, **asked)
    assert 200 < found.rows < 300
    assert found.of == 600
    # the outcome itself as a placebo: its difference to the status quo, on the same rows
    same = tt.stress(log, POLICY, tt.StatusQuo(), **QUICK, draws=0, contexts=(), rows=250)
    placebo = by_change(found)["y as the outcome"].found
    assert placebo.value == pytest.approx(same.original.value, rel=AS_IT_IS)


def test_what_has_no_answer_is_told_and_stops_nothing():
    log = drawn(200)
    own = np.column_stack([log.treatment - 1.0, log.treatment + 1.0])
    bounded = log.with_bounds((np.minimum(own[:, 0], 0.0), np.maximum(own[:, 1], 1.0)))
    found = tt.stress(bounded, POLICY, **QUICK, draws=0, contexts=())
    permuted = found.trials[0]
    assert permuted.verdict == "no answer"
    assert "bounds of its own" in permuted.note
    assert "not doses permuted (no answer)" in found.sentence
    assert permuted.to_dict()["value"] is None


def test_a_world_knows_its_truth():
    log, policies = drawn(), {"a": POLICY, "status quo": tt.StatusQuo()}
    asked = module.Asked(log=log, policies=policies, method=tt.Normal(), **QUICK)
    alone, apart = (World.of(asked, against=against) for against in (False, True))
    folds = Evaluation.of(log, policies, *(QUICK[k] for k in ("estimator", "propensity")))
    model = folds.nuisances.outcome.models_[0]
    at = model.predict(log.context, np.full(300, 0.5))
    assert alone.truth == pytest.approx(at.mean(), rel=1e-9)
    assert apart.truth == pytest.approx((at - alone.mean).mean(), rel=1e-9)
    one, other = (alone.drawn(np.random.default_rng(k)).outcome for k in (0, 1))
    # y* = r ± e, with signs of their own in each draw
    np.testing.assert_allclose(np.abs(one - alone.mean), np.abs(alone.residual), atol=1e-9)
    assert (one != other).any()
    grouped = replace(asked, log=drawn(groups=np.repeat(np.arange(30), 10)))
    world = World.of(grouped, against=False)
    signs = (world.drawn(np.random.default_rng(0)).outcome - world.mean) / world.residual
    assert (np.abs(signs.reshape(30, 10) - signs[::10, None]) < 1e-9).all()


def test_a_world_of_two_values_has_no_others():
    log = drawn()
    binary = replace_outcome(log, (log.outcome > 0.5).astype(float))
    asked = module.Asked(
        log=binary,
        policies={"a": POLICY, "status quo": tt.StatusQuo()},
        method=tt.Normal(),
        **QUICK,
    )
    world = World.of(asked, against=False)
    assert set(world.drawn(np.random.default_rng(0)).outcome) == {0.0, 1.0}
    assert 0.0 < world.truth < 1.0


def replace_outcome(log, outcome):
    return log.with_outcome(outcome)


@pytest.mark.long
def test_the_default_models_are_made_plainer_and_richer():
    log = drawn(150)
    found = by_change(tt.stress(log, POLICY, bandwidth=0.6, draws=0, contexts=()))
    assert "plainer models" in found
    assert "with trees and wells" in found
    assert "with the default propensity" not in found
    column = log.with_propensity(np.full(150, 0.3))
    known = by_change(tt.stress(column, POLICY, bandwidth=0.6, draws=0, contexts=()))
    assert "plainer models" in known


def test_chances():
    # of three intervals that cover with chance .95 none does in .05³ of cases
    assert at_most(0, 3, 0.95) == pytest.approx(0.05**3)
    assert at_most(3, 3, 0.95) == 1.0


@plainly
def test_estimators_without_outcome_models():
    found = by_change(
        tt.stress(
            drawn(),
            POLICY,
            tt.Constant(0.0),
            estimator=tt.SelfNormalized(),
            propensity=tt.LinearGaussian(),
            bandwidth=0.6,
            draws=1,
            contexts=(),
        )
    )
    assert "with an outcome model" in found
    assert not [change for change in found if "fold" in change]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"draws": -1}, "`draws` of `stress`"),
        ({"placebo_outcomes": "x0"}, "list of contexts' names or a dict"),
        ({"placebo_outcomes": ["weight"]}, "'weight' is no context"),
        ({"placebo_treatments": {"z": [1.0]}}, "must be 300 finite numbers"),
        ({"contexts": ["weight"]}, "cannot leave out 'weight'"),
        ({"interval": "wide"}, "`interval` of `stress`"),
    ],
)
def test_what_is_refused(more, said):
    with pytest.raises(tt.InvalidArgument, match=said):
        tt.stress(drawn(), POLICY, **QUICK, **({"draws": 0} | more))
