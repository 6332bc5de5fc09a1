"""Policies as people have them: numbers, doses row by row, functions of a data frame."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import titrant as tt
from titrant.data.features import decoded
from titrant.outcome import ridge_pair
from titrant.policies.given import bound_to

RNG = np.random.default_rng(5)
N = 240
AGE = RNG.uniform(30.0, 70.0, N)
SEX = RNG.choice(["f", "m", "x"], N)
DOSE = 20.0 + 0.2 * AGE + 4.0 * RNG.normal(size=N)
LOSS = (DOSE - 0.5 * AGE - 3.0 * (SEX == "m")) ** 2 / 20.0 + RNG.normal(size=N)
TABLE = pd.DataFrame(
    {
        "dose": DOSE,
        "loss": LOSS,
        "age": np.where(np.arange(N) % 40 == 7, np.nan, AGE),
        "sex": pd.Series(SEX).where(np.arange(N) % 50 != 3, None),
        "place": [f"p{i % 60:02d}" for i in range(N)],
    }
)
LOG = tt.LoggedData.from_frame(TABLE, treatment="dose", outcome="loss")
QUICK = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian(), "bandwidth": 6.0}
ROUGH = QUICK | {"allow_untrusted": True}


def rule(df: pd.DataFrame) -> pd.Series:
    """Return a dose by every kind of column: numbers with gaps, texts with gaps, codes."""
    by_sex = df["sex"].map({"f": 0.0, "m": 2.0}).fillna(1.0).astype(float)
    return 22.0 + 0.2 * df["age"].fillna(50.0) + by_sex + (df["place"] > "p30")


DOSES = rule(TABLE).to_numpy()


def test_the_columns_of_a_log_are_those_of_its_table():
    found = decoded(LOG.context, LOG.names, LOG.flow.recipe)
    assert list(found) == ["age", "sex", "place"]
    np.testing.assert_array_equal(found["age"], TABLE["age"])
    assert pd.isna(pd.Series(found["sex"])).tolist() == TABLE["sex"].isna().tolist()
    kept = TABLE["sex"].notna()
    assert found["sex"][kept].tolist() == TABLE["sex"][kept].tolist()
    assert found["place"].tolist() == TABLE["place"].tolist()


def test_contexts_without_a_recipe_keep_their_names():
    x = np.array([[1.0, 2.0], [0.0, 3.0]])
    found = decoded(x, ("sex=m", "visit.month"))
    assert list(found) == ["sex=m", "visit.month"]


@pytest.mark.parametrize(
    "given",
    [
        tt.TablePolicy(rule),
        tt.TablePolicy(lambda table: rule(table.to_pandas()), library="polars"),
        tt.TablePolicy(lambda table: rule(table.to_pandas()), library="pyarrow"),
        tt.Clipped(tt.TablePolicy(rule), 0.0, 100.0),
        DOSES,
        DOSES.tolist(),
        pd.Series(DOSES, index=np.arange(N)[::-1]),
        pl.Series(DOSES),
        DOSES[:, None],
    ],
    ids=["table", "polars", "arrow", "wrapped", "array", "list", "Series", "pl.Series", "(n, 1)"],
)
def test_a_function_of_the_table_and_its_doses_are_one_policy(given):
    log, found = bound_to(LOG, {"rule": given})
    np.testing.assert_allclose(found["rule"].of_rows(log)[:, 0], DOSES)
    # Wherever rows go, their doses go with them.
    some = np.array([3, 77, 5])
    np.testing.assert_allclose(found["rule"].of_rows(log.rows(some))[:, 0], DOSES[some])


def test_numbers_arrays_and_functions_are_compared_side_by_side():
    policies = {"table": tt.TablePolicy(rule), "rows": DOSES, "flat": 30, "also": DOSES + 1.0}
    found = tt.compare(LOG, policies, **ROUGH)
    assert found["table"].value == found["rows"].value
    assert found.contrast("table", "rows").se == 0.0
    assert found["flat"].value == tt.evaluate(LOG, tt.Constant(30.0), **ROUGH).value
    assert found["also"].value == tt.evaluate(LOG, DOSES + 1.0, **ROUGH).value


QUESTIONS = {
    "subgroups": lambda policy: tt.subgroups(LOG, policy, by={"age": [50]}, **ROUGH),
    "functional": lambda policy: tt.compare(
        LOG, {"p": policy}, functional=tt.Exceeds(1.0), **ROUGH
    ),
    "outcomes": lambda policy: tt.outcomes({"a": LOG}, {"p": policy, "q": 30}, **ROUGH),
    "sensitivity": lambda policy: tt.sensitivity(LOG, policy, 30, **ROUGH, benchmarks=()),
    "stress": lambda policy: tt.stress(LOG, policy, **QUICK, draws=0, contexts=["age"], rows=200),
}


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(
            ask, id=name, marks=[pytest.mark.long] if name in {"sensitivity", "stress"} else []
        )
        for name, ask in QUESTIONS.items()
    ],
)
def test_doses_of_rows_go_through_every_question(ask):
    by_table, by_rows = ask(tt.TablePolicy(rule)).to_frame(), ask(DOSES).to_frame()
    assert by_table.equals(by_rows)


def test_a_learner_is_compared_with_doses_of_rows_in_both_halves():
    against = {"rows": DOSES, "table": tt.TablePolicy(rule), "flat": 30.0}
    procedure = tt.StackedDR(models=ridge_pair())
    learner = tt.PolicyLearner(
        policy=tt.Linear(),
        procedure=procedure,
        grade=tt.SelfNormalized(),
        propensity=tt.LinearGaussian(),
        against=against,
    ).fit(LOG)
    found = learner.estimate_.comparison
    assert found["rows"].value == found["table"].value
    assert learner.get_params()["against"] is against  # what was given stays as it is


def test_two_doses_are_planned_in_two_columns():
    t = np.column_stack([DOSE, AGE + RNG.normal(size=N)])
    log = tt.LoggedData(AGE, t, LOSS)
    bound, found = bound_to(log, {"a": t + 1.0, "b": t - 1.0})
    np.testing.assert_array_equal(found["b"].of_rows(bound), t - 1.0)
    with pytest.raises(tt.InvalidArgument, match=r"240 rows of 2 doses; got 240 rows\."):
        bound_to(log, {"a": DOSE})


def test_doses_for_another_number_of_rows_are_refused_with_counts():
    with pytest.raises(tt.InvalidArgument, match=r"log: 240 rows; got 3 rows\. For the same"):
        tt.evaluate(LOG, [1.0, 2.0, 3.0], **QUICK)
    gappy = TABLE.assign(loss=TABLE["loss"].where(TABLE["age"] > 31.0))
    left = int(gappy["loss"].isna().sum())
    log = tt.LoggedData.from_frame(
        gappy, treatment="dose", outcome="loss", context="age", missing_outcome="drop"
    )
    with pytest.raises(tt.InvalidArgument, match=f"{left} left out .* Leave these rows out"):
        tt.evaluate(log, DOSES, **QUICK)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (True, "A policy must be a policy of titrant, a number"),
        ("35", "A policy must be a policy of titrant, a number"),
        ({"dose": DOSES}, "A policy must be a policy of titrant, a number"),
        (np.where(np.arange(N) == 4, np.nan, DOSES), r"missing or not finite in 1 of 240 rows"),
        (
            tt.TablePolicy(lambda df: df["bmi"]),
            r"KeyError 'bmi'.*columns of the log's contexts, `age`",
        ),
        (tt.TablePolicy(lambda _: 1.0), r"must return one dose per row"),
        (lambda df: df["age"], r"wrap it as `TablePolicy\(function\)`"),
    ],
)
def test_what_is_no_policy_is_refused_in_a_sentence(given, said):
    with pytest.raises(tt.TitrantError, match=said):
        tt.evaluate(LOG, given, **QUICK)


@pytest.mark.parametrize("given", [lambda _, t: 0.9 * t, lambda: 0.9, lambda _, *, t: 0.9 * t])
def test_a_function_of_the_logged_dose_is_told_of_moves(given):
    said = r"`Shift\(by\)`, `Multiply\(by\)`, or `Moved\(function, inverse\)`"
    with pytest.raises(tt.InvalidArgument, match=said):
        tt.evaluate(LOG, given, **QUICK)
    with pytest.raises(tt.InvalidArgument, match=said):
        tt.TablePolicy(given)


def test_any_function_that_contexts_alone_will_do_for_is_a_policy():
    def optional(X, t=30.0):
        return np.full(len(X), t)

    wanted = tt.evaluate(LOG, 30.0, **QUICK).value
    for given in (optional, lambda *args: 30.0 + 0.0 * args[0][:, 0], partial(optional, t=30.0)):
        assert tt.evaluate(LOG, given, **QUICK).value == pytest.approx(wanted)


def test_doses_of_rows_are_of_a_log_in_memory(tmp_path):
    TABLE[["dose", "loss"]].assign(x=AGE).to_parquet(tmp_path / "log.parquet")
    columns = tt.Columns(treatment="dose", outcome="loss", context="x")
    source = tt.scan_parquet(tmp_path / "log.parquet", columns)
    with pytest.raises(tt.InvalidArgument, match="read part by part takes rules alone"):
        tt.evaluate(source, DOSES, **QUICK)
    # A function of a table works there, too.
    by_file = tt.evaluate(source, tt.TablePolicy(lambda df: 20 + 0.2 * df["x"]), **ROUGH)
    by_rule = tt.evaluate(source, tt.Linear([0.2], 20.0, features=("x",)), **ROUGH)
    assert by_file.value == pytest.approx(by_rule.value, rel=1e-12)


def test_planned_doses_are_for_no_one_else():
    log, found = bound_to(LOG, {"rows": DOSES})
    with pytest.raises(tt.InvalidArgument, match="one a row are those of one log"):
        found["rows"](LOG.context)
    with pytest.raises(tt.InvalidArgument, match="one a row are those of one log"):
        found["rows"].of_rows(LOG)
    assert log.planned.shape == (N, 1)


def test_a_function_of_a_table_takes_new_people_and_is_not_saved():
    policy = tt.TablePolicy(rule)
    np.testing.assert_allclose(policy(TABLE.head(5)), DOSES[:5])
    with pytest.raises(tt.InvalidArgument, match="takes a table, and was given an array"):
        policy(np.zeros((2, 3)))
    with pytest.raises(tt.InvalidArgument, match="cannot be saved"):
        policy.to_dict()
    with pytest.raises(tt.InvalidArgument, match="`function` of `TablePolicy`"):
        tt.TablePolicy(3)
    with pytest.raises(tt.InvalidArgument, match="`library` of `TablePolicy`"):
        tt.TablePolicy(rule, library="excel")


def test_a_policy_without_a_name_is_called_what_it_is():
    assert tt.evaluate(LOG, 30, **ROUGH).policy == "constant 30"
    assert tt.evaluate(LOG, DOSES, **ROUGH).policy == "doses given"
    assert tt.evaluate(LOG, tt.TablePolicy(rule), **ROUGH).policy == "rule"


HIDDEN = RNG.normal(size=N)
BY_HIDDEN = 20.0 + 0.2 * AGE + 3.0 * HIDDEN + 2.0 * RNG.normal(size=N)


@pytest.mark.parametrize(
    ("logged", "doses", "verdict"),
    [
        # What is a rule of the contexts, however bent, or drawn at random is none of the log's.
        (DOSE, DOSES, "ok"),
        (DOSE, 30.0 + 5.0 * np.sin(AGE), "ok"),
        (DOSE, 30.0 + RNG.normal(size=N), "ok"),
        (DOSE, 20.0 + 0.2 * LOG.context[:, LOG.names.index("age")], None),
        # What changes the logged dose, or follows what the log does not have, is no such rule.
        (DOSE, DOSE + 1.0, "refuse"),
        (DOSE, DOSE.round(), "refuse"),
        (BY_HIDDEN, 20.0 + 0.2 * AGE + 2.0 * HIDDEN, "refuse"),
    ],
    ids=["rule", "bent", "random", "line", "shift", "rounded", "hidden"],
)
@pytest.mark.parametrize("modeled", [True, False])
def test_doses_that_follow_the_logged_ones_are_no_rule(logged, doses, verdict, modeled):
    log = LOG.with_treatment(logged)
    if not modeled:  # a column of propensities says nothing of ranks
        log = log.with_propensity(np.full(N, 0.1))
    settings = {**ROUGH, "propensity": tt.LinearGaussian() if modeled else None}
    found = tt.evaluate(log, doses, **settings).diagnostics
    if verdict is None:
        assert "planned_doses" not in found.names
        return
    # Polynomials of the contexts know less: only what is nearly the logged dose is refused.
    rough = "warn" if verdict == "refuse" and logged is BY_HIDDEN and not modeled else verdict
    assert found["planned_doses"].verdict.value == rough


def test_the_check_of_planned_doses_by_hand():
    # Two of three: no contexts, so that what is left are the distances from the mean:
    # (−1, 0, 1) and (−1, 1, 0) have the correlation 1/2.
    log = tt.LoggedData(np.empty((3, 0)), [1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.5, 0.5, 0.5])
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 5.0, "allow_untrusted": True}
    found = tt.evaluate(log, [1.0, 3.0, 2.0], **settings).diagnostics["planned_doses"]
    assert found.value == pytest.approx(0.5)
    assert found.verdict.value == "ok"  # of three rows that is chance


# Parts of a table that are put together again are in another order: position would give people the
# doses of others.
def test_doses_in_another_order_are_refused():
    people = pd.DataFrame({"age": [70.0, 30.0, 60.0, 20.0]})

    def by_parts(table):
        old = table["age"] > 50
        return pd.concat([0.1 * table.loc[old, "age"], 0.2 * table.loc[~old, "age"]])

    with pytest.raises(tt.DataError, match=r"another order .* `doses.reindex\(table.index\)`"):
        tt.TablePolicy(by_parts)(people)
    mended = tt.TablePolicy(lambda table: by_parts(table).reindex(table.index))
    assert mended(people).tolist() == [7.0, 6.0, 6.0, 4.0]
    numbered = tt.TablePolicy(lambda table: by_parts(table).sort_index().reset_index(drop=True))
    assert numbered(people.set_index(pd.Index([9, 3, 4, 5]))).tolist() == [6.0, 6.0, 4.0, 7.0]
