"""A table as people have it goes in, the same from any library, and what was done to it is said."""

from __future__ import annotations

import datetime as dt
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import titrant as tt
from sweeps import long
from titrant.data.columns import Recipe, Step
from titrant.data.features import IS_MISSING, with_features
from titrant.data.intake import MOST_LEVELS
from titrant.data.notes import context_note
from titrant.errors import DataError, InvalidArgument

DAY = dt.datetime(2024, 2, 28, 22)  # noqa: DTZ001  (a Wednesday; tables hold naive times)
ROLES = {"treatment": "dose", "outcome": "loss"}
MESSY = {
    "dose": [1.0, 2.0, None, 4.0, 5.0, 6.0],
    "loss": [0.5, None, 0.3, 0.2, 0.1, 0.9],
    "age": [30, None, 50, 44, 60, None],
    "sex": ["m", "f", "f", None, "f", "m"],
    "visit": [DAY, DAY, DAY + dt.timedelta(2), None, DAY + dt.timedelta(2), DAY],
    "smoker": [True, False, None, True, False, False],
}
LIBRARIES = {
    "dict": lambda columns: columns,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "Arrow": pa.table,
    "stream": lambda columns: pa.table(columns).to_reader(),
}


@pytest.mark.parametrize("made", LIBRARIES.values(), ids=LIBRARIES)
def test_known_answer(made):
    # Without row 2 (no dose) and row 1 (no outcome) ages are 30, 44, 60 and one that is missing.
    log = tt.LoggedData.from_frame(
        made(MESSY), **ROLES, missing_treatment="drop", missing_outcome="drop"
    )
    found = dict(zip(log.names, log.context.T.tolist(), strict=True))
    assert found == {
        "age": [30.0, 44.0, 60.0, 44.0],
        "age is missing": [0.0, 0.0, 0.0, 1.0],
        "sex=m": [1.0, 0.0, 0.0, 1.0],
        "sex=missing": [0.0, 1.0, 0.0, 0.0],
        "visit.month": [2.0, 2.0, 3.0, 2.0],
        "visit.day": [28.0, 28.0, 1.0, 28.0],
        "visit.weekday": [3.0, 3.0, 5.0, 3.0],
        "visit.days": [19781.0, 19781.0, 19783.0, 19781.0],
        "visit is missing": [0.0, 1.0, 0.0, 0.0],
        "smoker": [1.0, 1.0, 0.0, 0.0],
    }
    assert log.flow.rows == (
        "6 rows → 4 used: 1 left out because the treatment column `dose` is missing; 1 left out "
        "because the outcome column `loss` is missing."
    )
    assert [(note.column, note.done) for note in log.flow.notes] == [
        ("age", "filled"),
        ("sex", "encoded"),
        ("visit", "encoded"),
        ("visit", "filled"),
    ]


numbers = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(float("nan")))
texts = st.one_of(st.none(), st.sampled_from(["a", "b", "NA", "", " ", "c=d"]))
days = st.one_of(st.none(), st.dates(dt.date(1990, 1, 1), dt.date(2030, 12, 31)))
rows = st.lists(st.tuples(numbers, numbers, texts, days), min_size=12, max_size=40)


@given(rows)
def test_whatever_is_missing_is_filled_and_marked(drawn):
    x, y, sex, day = (list(column) for column in zip(*drawn, strict=True))
    n = len(drawn)
    columns = {
        "dose": np.arange(float(n)),
        "loss": [1.0, 2.0, *y[2:]],
        "x": np.array(x, dtype=float),
        "sex": pa.array(sex, pa.string()),
        "day": pa.array(day, pa.date32()),
    }
    table = pa.table({**columns, "loss": np.array(columns["loss"], dtype=float)})
    log = tt.LoggedData.from_frame(
        table, **ROLES, context=["x", "sex", "day"], missing_outcome="drop"
    )
    known = ~np.isnan(np.array(columns["loss"], dtype=float))
    assert len(log) == log.flow.rows_used == known.sum()
    assert log.flow.rows_in == n == len(log) + sum(step.rows for step in log.flow.steps)
    assert np.isfinite(log.context).all()
    gaps = np.isnan(columns["x"][known])
    at = log.names.index
    if gaps.all():
        assert "x" not in log.names
    else:
        column = log.context[:, at("x")]
        np.testing.assert_array_equal(column[~gaps], columns["x"][known][~gaps])
        assert (column[gaps] == log.flow.recipe.fills.get("x")).all()
        if gaps.any():
            np.testing.assert_array_equal(log.context[:, at(f"x{IS_MISSING}")], gaps)
    # Rows left out are as if they had never been in the table.
    again = tt.LoggedData.from_frame(
        table.filter(pa.array(known)), **ROLES, context=["x", "sex", "day"]
    )
    assert again.names == log.names
    np.testing.assert_array_equal(again.context, log.context)
    assert again.flow.recipe == log.flow.recipe
    # The recipe makes the same contexts of the same rows, as it must of new ones.
    made = with_features(table.filter(pa.array(known)), log.names, log.flow.recipe)
    for name, column in zip(log.names, log.context.T, strict=True):
        np.testing.assert_array_equal(np.asarray(made[name].to_numpy(), dtype=float), column)


def test_a_table_of_numbers_is_taken_as_it_is():
    table = {"dose": [1.0, 2.0, 3.0], "loss": [0.1, 0.2, 0.3], "x": [5.0, -0.0, 7.25]}
    log = tt.LoggedData.from_frame(table, **ROLES, context="x")
    assert log.flow.plain
    assert list(log.flow) == ["3 rows, all used."]
    np.testing.assert_array_equal(log.context[:, 0], table["x"])
    assert tt.LoggedData([[1.0], [2.0]], [1, 2], [3, 4]).flow is None


# ── Doses and outcomes that are missing ──────────────────────────────────────────────────────────


def test_outcomes_that_are_weighted_for_stay_as_zero():
    log = tt.LoggedData.from_frame(
        MESSY, **ROLES, context=[], missing_treatment="drop", missing_outcome="weight"
    )
    assert log.observed.tolist() == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert log.outcome.tolist() == [0.5, 0.0, 0.2, 0.1, 0.9]
    assert log.flow.steps == (Step("the treatment column `dose` is missing", 1),)
    assert log.flow.notes[0].column == "loss"
    assert "missing in 1 of 5 rows: these rows stay" in log.flow.notes[0].text
    assert log.rows(slice(1, 3)).observed.tolist() == [0.0, 1.0]
    # As a table again it has the gap, not the number that stands in its place.
    assert np.isnan(log.to_columns()["outcome"]).tolist() == [False, True, False, False, False]


def test_arrays_without_some_outcomes():
    x, t = np.arange(8.0).reshape(4, 2), [1.0, 2.0, 3.0, 4.0]
    y = [0.5, np.nan, 0.25, 1.0]
    options = {
        "weights": [1.0, 2.0, 3.0, 4.0],
        "groups": ["a", "a", "b", "b"],
        "bounds": ([0.0, 1.0, 2.0, 3.0], None),
    }
    dropped = tt.LoggedData(x, t, y, **options, missing_outcome="drop")
    assert dropped.outcome.tolist() == [0.5, 0.25, 1.0]
    assert dropped.weights.tolist() == [1.0, 3.0, 4.0]
    assert dropped.lower.ravel().tolist() == [0.0, 2.0, 3.0]
    assert dropped.observed is None
    assert dropped.flow.rows == "4 rows → 3 used: 1 left out because the outcome is missing."
    marked = tt.LoggedData(x, t, y, **options, missing_outcome="weight")
    assert marked.observed.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert marked.outcome.tolist() == [0.5, 0.0, 0.25, 1.0]
    whole = tt.LoggedData(x, t, [1, 2, 3, 4], missing_outcome="weight")
    assert whole.observed is None
    assert whole.flow is None


@pytest.mark.parametrize(("count", "end"), [(12, "`x11`"), (13, "`x12`"), (14, "and 2 more")])
def test_a_list_of_contexts_hides_no_single_name(count, end):
    assert f"{end}. Choose others" in context_note(f"x{k}" for k in range(count))


def test_words_that_are_not_known():
    with pytest.raises(InvalidArgument, match=r"`missing_outcome` .* 'refuse', 'drop', 'weight'"):
        tt.LoggedData.from_frame(MESSY, **ROLES, missing_outcome="impute")
    with pytest.raises(InvalidArgument, match=r"`missing_treatment` .* one of 'refuse', 'drop'"):
        tt.LoggedData.from_frame(MESSY, **ROLES, missing_treatment="weight")


def test_a_log_needs_some_outcomes():
    with pytest.raises(DataError, match=r"missing in 3 of 3 rows\. Use a log with outcomes"):
        tt.LoggedData([1, 2, 3], [1, 2, 3], [np.nan] * 3, missing_outcome="weight")


def test_rows_that_are_left_out_take_their_bounds_weights_and_ids_along():
    table = {
        "dose": [1.0, None, 3.0, 4.0],
        "loss": [0.1, 0.2, 0.3, 0.4],
        "w": [1.0, None, 2.0, 3.0],
        "who": ["a", None, "b", 3],
    }
    log = tt.LoggedData.from_frame(
        table,
        **ROLES,
        context=[],
        weights="w",
        groups="who",
        bounds=(None, [1.0, 9.0, 3.0, 4.0]),
        missing_treatment="drop",
    )
    assert log.weights.tolist() == [1.0, 2.0, 3.0]
    assert log.upper.ravel().tolist() == [1.0, 3.0, 4.0]
    assert len(np.unique(log.groups)) == 3


def test_the_flow_goes_where_the_rows_go():
    log = tt.LoggedData.from_frame(MESSY, **ROLES, missing_treatment="drop", missing_outcome="drop")
    others = [
        log.rows([0, 2]),
        next(log.batches(2)),
        log.with_bounds((0, 9)),
        log.with_outcome([1.0, 2.0, 3.0, 4.0]),
        log.numbered(7),
        pickle.loads(pickle.dumps(log)),  # noqa: S301
    ]
    assert all(other.flow == log.flow for other in others)


# ── Texts ────────────────────────────────────────────────────────────────────────────────────────


def stores(n: int, levels: int) -> dict[str, list[object]]:
    """Return n rows of so many stores, none of which is a key."""
    return {
        "dose": [float(i % 7) for i in range(n)],
        "loss": [float(i % 5) for i in range(n)],
        "store": [f"store {i % levels:03}" for i in range(n)],
        "x": [float(i) / 3 for i in range(n)],
    }


def test_many_texts_are_one_code():
    table = stores(200, MOST_LEVELS + 1)
    table["store"][4] = None
    log = tt.LoggedData.from_frame(table, **ROLES, context=["store", "x"])
    assert log.names == ("store", "x")
    assert log.flow.codes == ("store",)
    assert log.context[:6, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 51.0, 5.0]  # the missing one is last
    assert "is text with 52 different values: a code from 0 to 51" in log.flow.notes[0].text
    assert "a learned rule does not use it" in log.flow.notes[0].text
    fewer = tt.LoggedData.from_frame(stores(200, MOST_LEVELS), **ROLES, context=["store", "x"])
    assert len(fewer.names) == MOST_LEVELS
    assert fewer.flow.codes == ()


def test_a_text_that_the_recipe_does_not_know_has_a_code_of_its_own():
    recipe = Recipe({"store": ("a", "b")}, {}, ("store",))
    made = with_features(pa.table({"store": ["b", "z", "a", "y"]}), ["store"], recipe)
    assert made["store"].to_pylist() == [1.0, 2.0, 0.0, 2.0]
    with pytest.raises(DataError, match="must name a category in every row; got none in 1 of 2"):
        with_features(pa.table({"store": ["b", None]}), ["store"], recipe)


def test_na_is_a_gap_in_a_log_and_a_text_where_no_gap_is_known():
    table = {"dose": [1, 2, 3], "loss": [1, 2, 4], "sex": ["m", "NA", "f"]}
    log = tt.LoggedData.from_frame(table, **ROLES)
    assert log.names == ("sex=m", "sex=missing")
    old = with_features(pa.table({"sex": ["m", "NA"]}), ["sex=NA"])
    assert old["sex=NA"].to_pylist() == [0.0, 1.0]


def test_numbers_that_are_text_are_not_taken_for_names():
    table = stores(100, 30)
    table["store"] = [str(i % 30) for i in range(100)]
    with pytest.raises(DataError, match="`store` holds numbers that are written as text"):
        tt.LoggedData.from_frame(table, **ROLES)


WRITTEN = ("%d.%m.%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y/%m/%d")


def of_dates(written, **more):
    n = len(written)
    numbers = {"dose": np.arange(float(n)), "loss": np.arange(n) ** 2.0}
    return tt.LoggedData.from_frame({**numbers, "visit": written}, **ROLES, **more)


@pytest.mark.parametrize("how", WRITTEN)
def test_dates_written_as_text_are_the_dates_that_they_say(how):
    moments = [DAY + dt.timedelta(hours=31 * i) for i in range(40)]
    written = [moment.strftime(how) for moment in moments]
    log = of_dates([*written, " NA "])
    read = [dt.datetime.strptime(text, how) for text in written]  # noqa: DTZ007
    expected = of_dates([*read, None])
    assert log.names == expected.names
    np.testing.assert_array_equal(log.context, expected.context)
    assert log.flow.recipe.dates == {"visit": how}
    assert f"which are read as {how}: {written[0]!r} is 2024-02-28" in str(log.flow)
    # Later rows are read alike, also where no number tells the day from the month.
    table = pa.table({"visit": [dt.datetime(2024, 3, 2).strftime(how)]})  # noqa: DTZ001
    made = with_features(table, log.names, log.flow.recipe)
    assert (made["visit.month"][0].as_py(), made["visit.day"][0].as_py()) == (3.0, 2.0)
    with pytest.raises(DataError, match=r"`visit` must be written as .* in 1 of 1 rows"):
        with_features(pa.table({"visit": ["March 2"]}), log.names, log.flow.recipe)


@pytest.mark.parametrize(
    "written",
    [
        [f"{1 + i % 12}/{1 + i // 12}/2024" for i in range(40)],  # which is the month?
        [f"{1 + i}/{40 - i}/2024" for i in range(12, 28)] * 3 + [f"1/{i}/2024" for i in range(30)],
        [f"2024-01-{1 + i % 28:02}{' 08:15' * (i % 2)}" for i in range(60)],
        [*(f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(60)), "soon"],
        [f"3/{1 + i % 28}/24" for i in range(60)],
    ],
    ids=["neither above 12", "both above 12", "two ways", "a word", "two digits"],
)
def test_dates_that_may_be_others_are_refused(written):
    with pytest.raises(DataError, match="`visit` holds dates that are written as text, such as"):
        of_dates(written)


@pytest.mark.parametrize("text", ["1.{}.12", "192.168.{}.1", "{}-{}", "123-{}-6789", "2024-99-{}"])
def test_other_texts_are_no_dates(text):
    assert "dates" not in str(of_dates([text.format(10 + i, i) for i in range(40)]).flow)


def test_dates_of_all_kinds():
    moments = [dt.datetime(2023, 12, 31, 23), dt.datetime(2024, 1, 1, 5), None]  # noqa: DTZ001
    table = pa.table(
        {
            "dose": [1.0, 2.0, 3.0],
            "loss": [1.0, 2.0, 4.0],
            "at": pa.array(moments, pa.timestamp("ns")),
            "day": pa.array([None if m is None else m.date() for m in moments], pa.date64()),
            "clock": pa.array([dt.time(8, 30), dt.time(9), dt.time(23)], pa.time64("us")),
        }
    )
    log = tt.LoggedData.from_frame(table, **ROLES)
    assert log.names == (
        *("at.year", "at.month", "at.day", "at.weekday", "at.hour", "at.days", "at is missing"),
        *("day.year", "day.month", "day.day", "day.weekday", "day.days", "clock.hour"),
    )
    assert log.context[1].tolist() == [2024, 1, 1, 1, 5, 19723, 0, 2024, 1, 1, 1, 19723, 9]
    assert log.context[2].tolist() == [2023, 1, 1, 1, 5, 19722, 1, 2023, 1, 1, 1, 19722, 23]
    with pytest.raises(DataError, match=r"`at\.month` is made of a date; the column `at` holds"):
        with_features(pa.table({"at": ["1/2/24"]}), ["at.month"])


# ── Estimates and rules ──────────────────────────────────────────────────────────────────────────


def confounded(n: int, levels: int, seed: int) -> tuple[dict[str, object], float]:
    """Return doses and outcomes that both depend on the store, and the value of the dose 0."""
    rng, law = np.random.default_rng(seed), ([0.0, 0.0], [[1.0, 0.64], [0.64, 1.0]])
    t_of, y_of = np.random.default_rng(7).multivariate_normal(*law, levels).T
    k, x = rng.integers(levels, size=n), rng.normal(size=n)
    t = t_of[k] + 0.5 * x + rng.normal(size=n)
    y = 0.3 * (t - 0.5) ** 2 + y_of[k] + 0.5 * x + rng.normal(0.0, 0.5, n)
    store = [f"store {code:03}" for code in k]
    return {"store": store, "x": x, "dose": t, "loss": y}, 0.3 * 0.25 + y_of.mean()


@pytest.mark.long
@pytest.mark.parametrize(("n", "levels"), [*long((2_000, 49)), (4_000, 100)])
def test_a_confounder_of_many_texts_is_adjusted_for(n, levels):
    table, truth = confounded(n, levels, 0)
    log = tt.LoggedData.from_frame(table, **ROLES)
    assert bool(log.flow.codes) == (levels > MOST_LEVELS)
    found = tt.evaluate(log, tt.Constant(0.0))
    blind = tt.LoggedData.from_frame(table, **ROLES, context=["x"])
    without = tt.evaluate(blind, tt.Constant(0.0), allow_untrusted=True)
    assert abs(found.value - truth) < 3.0 * found.se
    assert abs(without.value - truth) > 3.0 * without.se
    assert found.to_dict()["data"] == log.flow.to_dict()


def test_a_rule_is_not_learned_of_codes():
    table, _ = confounded(400, 60, 2)
    log = tt.LoggedData.from_frame(table, **ROLES)
    fast = {"procedure": tt.CPO(bandwidth=1.0, restarts=1), "propensity": tt.LinearGaussian()}
    learner = tt.PolicyLearner(**fast, honest=False).fit(log)
    assert learner.policy_.features == ("x",)
    with pytest.raises(InvalidArgument, match="`store` is a code of many texts, not an amount"):
        tt.PolicyLearner(**fast, policy=tt.LinearClass(features=("store",)), honest=False).fit(log)


def test_a_learned_rule_serves_gaps_as_it_was_trained(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    age, sex = rng.uniform(20, 80, n), rng.choice(["f", "m"], n).astype(object)
    age[rng.random(n) < 0.2], sex[rng.random(n) < 0.1] = np.nan, None
    dose = rng.normal(10, 2, n)
    loss = (dose - 8 - np.nan_to_num(age, nan=70.0) / 20) ** 2 + rng.normal(size=n)
    table = pd.DataFrame({"age": age, "sex": sex, "dose": dose, "loss": loss})
    log = tt.LoggedData.from_frame(table, **ROLES)
    learner = tt.PolicyLearner(
        procedure=tt.CPO(bandwidth=2.0, restarts=1), propensity=tt.LinearGaussian(), honest=False
    ).fit(log)
    assert learner.policy_.features == ("age", "age is missing", "sex=m", "sex=missing")
    # Doses of the table are those of the contexts of the log, gaps and all.
    np.testing.assert_array_equal(learner.predict(table), learner.policy_(log.context))
    np.testing.assert_array_equal(learner.predict(pl.from_pandas(table)), learner.predict(table))
    learner.save(tmp_path / "policy.json")
    # The file of the policy alone does not say what stands for a missing age.
    with pytest.raises(DataError, match="must be present and finite"):
        tt.load_policy(tmp_path / "policy.json")(table)
