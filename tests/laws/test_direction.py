"""Which way is better: said once, on the log, it is known wherever the log goes."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from sweeps import long
from titrant.data.logged import LoggedData
from titrant.data.simulate import DESIGNS
from titrant.evaluation.evaluation import Evaluation
from titrant.outcome import ridge_pair
from titrant.reporting import gather
from titrant.reporting.words import answer, decide

DRAWN = DESIGNS["dosing"].draw(300, 4)
GAIN = 20.0 - DRAWN.outcome
MODEL = ridge_pair()["quadratic"]
QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": 6.0}
POLICIES = {"low": tt.Constant(20.0), "flat": tt.Constant(35.0)}


def log_of(outcome, maximize=None) -> LoggedData:
    table = DRAWN.to_columns(treatment="dose", outcome="gain") | {"gain": outcome}
    return LoggedData.from_frame(
        table,
        treatment="dose",
        outcome="gain",
        context=DRAWN.names,
        propensity="propensity",
        maximize=maximize,
    )


KNOWS = log_of(GAIN, maximize=True)
SILENT = log_of(GAIN)
LOSSES = log_of(-GAIN)


def learned(log, **said):
    procedure = tt.StackedDR(models=ridge_pair())
    learner = tt.PolicyLearner(policy=tt.Linear(), procedure=procedure, honest=False, **said)
    return learner.fit(log).policy_


def searched(log, **said):
    procedure = tt.CPO(estimator=tt.SelfNormalized(), bandwidth=8.0, restarts=2)
    return tt.PolicyLearner(procedure=procedure, honest=False, **said).fit(log).policy_


SEARCHES = {
    "PolicyLearner": learned,
    "CPO": searched,
    "best_constant": lambda log, **said: tt.best_constant(log, doses=5, **QUICK, **said),
    "best_constant, searched": lambda log, **said: tt.best_constant(
        log, estimator=tt.SelfNormalized(), bandwidth=6.0, allow_untrusted=True, **said
    ),
    "direct_argmin": lambda log, **said: tt.direct_argmin(log, MODEL, doses=9, **said),
    "direct_linear": lambda log, **said: tt.direct_linear(log, MODEL, **said),
    "discretized_policy": lambda log, **said: tt.discretized_policy(
        log, bins=3, propensity=tt.LinearGaussian(), restarts=1, **said
    ),
}


SOON = ("CPO", "direct_argmin", "direct_linear", "discretized_policy")


@pytest.mark.parametrize("name", [*SOON, *long(*(name for name in SEARCHES if name not in SOON))])
def test_said_on_the_log_or_in_the_call_or_by_the_sign_is_the_same(name):
    # maximize on the log = maximize in the call = the negated outcomes, bit by bit.
    search = SEARCHES[name]
    on_log, in_call, negated = search(KNOWS), search(SILENT, maximize=True), search(LOSSES)
    x = DRAWN.context[:20]
    np.testing.assert_array_equal(on_log(x), in_call(x))
    np.testing.assert_array_equal(on_log(x), negated(x))


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_call_that_contradicts_its_log_is_refused(search):
    sentence = r"is told maximize=False, but the log was made with maximize=True: higher outcomes"
    with pytest.raises(tt.InvalidArgument, match=sentence):
        search(KNOWS, maximize=False)


def test_an_honest_value_gains_in_the_direction_of_the_log():
    def honest(log, **said):
        procedure = tt.StackedDR(models=ridge_pair())
        grade = tt.SelfNormalized()
        learner = tt.PolicyLearner(policy=tt.Linear(), procedure=procedure, grade=grade, **said)
        return learner.fit(log)

    on_log, in_call, negated = honest(KNOWS), honest(SILENT, maximize=True), honest(LOSSES)
    assert on_log.estimate_.maximize
    assert on_log.decision_ == in_call.decision_ == negated.decision_
    np.testing.assert_allclose(on_log.estimate_.value, -negated.estimate_.value)


def test_a_contrast_knows_the_better_one():
    found = {log: tt.compare(log, POLICIES, **QUICK) for log in (KNOWS, SILENT, LOSSES)}
    on_log, in_call, negated = (found[log] for log in (KNOWS, SILENT, LOSSES))
    asked = {"margin": 1.0}
    known = on_log.contrast("low", "flat", **asked)
    told = in_call.contrast("low", "flat", maximize=True, **asked)
    turned = negated.contrast("low", "flat", **asked)
    assert known.better() == told.better() == turned.better() is not None
    assert known.bound() == told.bound() == pytest.approx(turned.bound())
    assert on_log.to_dict(margin=1.0) == in_call.to_dict(margin=1.0, maximize=True)
    with pytest.raises(tt.InvalidArgument, match="maximize=False, but the log"):
        on_log.contrast("low", "flat", maximize=False)
    # Which is better is shown where someone said which way is.
    assert known.better() in on_log._repr_html_().split("better</th>")[1]
    assert "better</th>" not in in_call._repr_html_()


def test_the_page_knows_the_direction_the_names_and_the_units():
    def page(log, **said):
        evaluation = Evaluation.of(log, POLICIES, tt.SelfNormalized(), None)
        found = gather(evaluation.compare(6.0), evaluation, bandwidth=6.0, **said)
        return found, answer(found, decide(found))

    on_log, sentence = page(KNOWS)
    in_call, told = page(SILENT, maximize=True)
    negated, _ = page(LOSSES)
    assert on_log.maximize
    assert on_log.focus == in_call.focus == negated.focus
    assert sentence == told
    assert "mean gain" in sentence
    assert on_log.log.treatments == ("dose",)
    with pytest.raises(tt.InvalidArgument, match="`report` is told maximize=False"):
        page(KNOWS, maximize=False)


def test_pictures_have_names_units_and_the_direction():
    named = LoggedData.from_frame(
        DRAWN.to_columns(treatment="dose", outcome="gain"),
        treatment="dose",
        outcome="gain",
        context=DRAWN.names,
        propensity="propensity",
        maximize=True,
        units={"gain": "kg", "dose": "mg"},
    )
    found = tt.curve(named, tt.Constant, [30.0, 35.0], **QUICK)
    ax = found.plot()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dose in mg", "gain in kg, higher is better")
    compared = tt.compare(named, POLICIES, **QUICK)
    assert compared["low"].plot().get_xlabel() == "gain in kg, higher is better"
    assert compared.contrast("low", "flat").plot().get_xlabel() == "difference of gain in kg"
    changes = tt.curve(named, tt.Shift, [0.0, 1.0], propensity=tt.LinearGaussian())
    assert changes.plot().get_xlabel() == "change of dose in mg"
    above = tt.evaluate(named, POLICIES["flat"], functional=tt.Exceeds(3.0), **QUICK)
    assert above.plot().get_xlabel() == "gain: Exceeds(threshold=3.0), higher is better"
    bare = tt.evaluate(DRAWN, POLICIES["flat"], **QUICK)
    assert bare.plot().get_xlabel() == "value"


def test_several_outcomes_say_which_of_them_are_rewards():
    table = DRAWN.to_columns(treatment="dose", outcome="gain")
    table |= {"gain": GAIN, "harm": DRAWN.treatment}
    logs = LoggedData.from_frame(
        table,
        treatment="dose",
        outcome=["gain", "harm"],
        context=DRAWN.names,
        propensity="propensity",
        maximize=["gain"],
        units={"gain": "kg"},
    )
    assert [log.maximize for log in logs.values()] == [True, False]
    assert logs["gain"].about.units == {"gain": "kg"}
    found = tt.outcomes(logs, POLICIES, **QUICK)
    silent = {"gain": SILENT, "harm": SILENT.with_outcome(DRAWN.treatment)}
    told = tt.outcomes(silent, POLICIES, **QUICK)
    assert found.dominated() == told.dominated(["gain"])
    assert found.trade_offs() == told.trade_offs(maximize=["gain"])
    with pytest.raises(tt.InvalidArgument, match="`outcome harm` is told maximize=True"):
        found.dominated(["gain", "harm"])
    with pytest.raises(tt.DataError, match="names `game`, which is none of the outcomes"):
        logs["gain"].from_frame(
            table, treatment="dose", outcome=["gain"], context="age", maximize=["game"]
        )


def test_another_outcome_has_a_direction_of_its_own():
    assert KNOWS.with_outcome(-GAIN).maximize is None
    assert KNOWS.with_outcome(-GAIN, maximize=False).maximize is False
    assert KNOWS.rows(slice(0, 9)).maximize
    assert KNOWS.losses(maximize=True).maximize is False
    assert "higher outcomes are better" in repr(KNOWS)


def test_a_log_in_files_knows_the_direction_by_its_columns(tmp_path):
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = DRAWN.to_columns(treatment="dose", outcome="gain") | {"gain": GAIN}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    roles = {"treatment": "dose", "outcome": "gain", "context": DRAWN.names}
    columns = tt.Columns(**roles, propensity="propensity", maximize=True, units={"dose": "mg"})
    source = tt.scan_parquet(tmp_path / "log.parquet", columns)
    np.testing.assert_allclose(searched(source)(DRAWN.context), searched(KNOWS)(DRAWN.context))
    found = tt.compare(source, POLICIES, **QUICK)
    assert found.contrast("low", "flat").maximize
    assert found.about.dose() == "dose in mg"


@pytest.mark.parametrize("said", [1, "yes"])
def test_a_direction_is_true_or_false(said):
    with pytest.raises(tt.InvalidArgument, match="must be True"):
        tt.LoggedData([[1.0], [2.0]], [1.0, 2.0], [0.0, 1.0], maximize=said)


def test_a_unit_is_that_of_a_dose_or_the_outcome():
    with pytest.raises(tt.DataError, match="A unit is given for `bmi`, which is neither"):
        tt.Columns(treatment="dose", outcome="gain", context="age", units={"bmi": "kg/m²"})
