"""Hours and days of dates with a time zone are those of the log's clock, wherever a row is from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import titrant as tt
from titrant.data.columns import Recipe
from titrant.data.features import with_features
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.policies import Linear
from titrant.policies.calling import recommended
from titrant.policies.formats.exporting import to_sql
from titrant.policies.formats.loading import load_training

N = 60
RNG = np.random.default_rng(5)
SEEN = pd.Timestamp("2024-03-30 20:00") + pd.to_timedelta(RNG.uniform(0.0, 48.0, N), "h")
BERLIN = SEEN.tz_localize("Europe/Berlin", ambiguous="NaT", nonexistent="shift_forward")
PARTS = ("hour", "weekday", "day", "month", "days")
HOURS = Linear([1.0], features=["seen.hour"])


def table_of(seen) -> pd.DataFrame:
    return pd.DataFrame({"seen": seen, "dose": RNG.normal(size=N), "loss": RNG.normal(size=N)})


def recipe_of(seen) -> Recipe:
    with pytest.warns(tt.TableWarning):
        log = tt.LoggedData.from_frame(table_of(seen), treatment="dose", outcome="loss")
    return log.flow.recipe


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Europe/Berlin"])
def test_the_same_moment_has_the_same_hour_in_every_zone(zone):
    recipe = recipe_of(BERLIN)
    assert recipe.clocks == {"seen": "Europe/Berlin"}
    with pytest.warns(tt.TableWarning, match="by the clock of Europe/Berlin"):
        tt.LoggedData.from_frame(table_of(BERLIN), treatment="dose", outcome="loss")
    names = [f"seen.{part}" for part in PARTS]
    there = pa.Table.from_pandas(pd.DataFrame({"seen": BERLIN.tz_convert(zone)}))
    found = with_features(there, names, recipe)
    for part in PARTS[:-1]:
        expected = BERLIN.day_of_week + 1 if part == "weekday" else getattr(BERLIN, part)
        np.testing.assert_array_equal(found[f"seen.{part}"], expected)
    midnight = BERLIN.tz_localize(None).normalize()
    days = (midnight - pd.Timestamp("1970-01-01")) // pd.Timedelta("1D")
    np.testing.assert_array_equal(found["seen.days"], days)
    doses = recommended(HOURS, pd.DataFrame({"seen": BERLIN.tz_convert(zone)}), recipe=recipe)
    np.testing.assert_array_equal(doses, BERLIN.hour)


@pytest.mark.parametrize(
    ("learned", "served", "said"),
    [
        (BERLIN, SEEN, "the zone of the log is Europe/Berlin, and here it is none"),
        (SEEN, BERLIN, "the zone of the log is none, and here it is Europe/Berlin"),
        (SEEN.strftime("%Y-%m-%d %H:%M"), BERLIN, "the zone of the log is none"),
    ],
)
def test_a_clock_without_a_zone_is_not_guessed(learned, served, said):
    with pytest.raises(tt.DataError, match=f"`seen` must be of the time zone.* {said}"):
        recommended(HOURS, pd.DataFrame({"seen": served}), recipe=recipe_of(learned))


def test_a_saved_rule_knows_its_clock(tmp_path):
    with pytest.warns(tt.TableWarning):
        log = tt.LoggedData.from_frame(table_of(BERLIN), treatment="dose", outcome="loss")
    learner = tt.PolicyLearner(policy=tt.LinearClass(), honest=False).fit(log)
    learner.save(tmp_path / "policy.json")
    assert load_training(tmp_path / "policy.json").recipe == log.flow.recipe
    here, there = (pd.DataFrame({"seen": at}) for at in (BERLIN, BERLIN.tz_convert("UTC")))
    np.testing.assert_array_equal(learner.predict(there), learner.predict(here))


def write(folder, *columns) -> tt.data.source.TableSource:
    for k, seen in enumerate(columns):
        pq.write_table(pa.Table.from_pandas(table_of(seen)), folder / f"part-{k}.parquet")
    names = tt.Columns(treatment="dose", outcome="loss", context=["seen.hour"])
    return tt.scan_parquet(folder, names)


def test_files_of_two_zones_are_refused_and_those_of_one_tell_it(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    source = write(tmp_path / "one", BERLIN, BERLIN)
    survey = survey_of(source, Engine())
    assert survey.recipe.clocks == {"seen": "Europe/Berlin"}
    mixed = write(tmp_path / "two", BERLIN, BERLIN.tz_convert("UTC"))
    said = "`seen` must be of one time zone.*got Europe/Berlin in some files and UTC in others"
    with pytest.raises(tt.DataError, match=said):
        survey_of(mixed, Engine())


def test_files_by_the_recipe_of_a_log_are_read_by_its_clock(tmp_path):
    recipe = recipe_of(BERLIN)
    pq.write_table(pa.Table.from_pandas(table_of(BERLIN.tz_convert("UTC"))), tmp_path / "a.parquet")
    names = tt.Columns(treatment="dose", outcome="loss", context=["seen.hour"])
    source = tt.scan_parquet(tmp_path, names, recipe=recipe)
    (batch,) = (batch for part in source.partitions for batch in part.batches(10**6))
    np.testing.assert_array_equal(batch.context[:, 0], BERLIN.hour)


def test_other_programs_have_other_clocks():
    with pytest.raises(tt.InvalidArgument, match="`seen` are those of Europe/Berlin"):
        to_sql(HOURS, recipe=Recipe(clocks={"seen": "Europe/Berlin"}))
    assert "seen" in to_sql(HOURS, recipe=Recipe(clocks={"seen": ""}))
