"""What a description says of a log is what is in it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from causaldata import nhefs
from scipy.stats import pearsonr

import titrant as tt
from titrant.data.logged import _assembled
from titrant.evaluation.description import BINS, CODE, CONSTANT, FEW, NUMBER, YES_NO

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12  # sums of a few hundred numbers of ordinary size
SAMPLED = 0.1  # quartiles and correlations of a fourth of 4,000 rows
N = 400
RNG = np.random.default_rng(0)
AGE = RNG.normal(50.0, 10.0, N)
DOSE = np.round(0.1 * AGE + RNG.normal(size=N))
LOSS = DOSE + RNG.normal(size=N)
TABLE = {
    "age": AGE,
    "sex": 1.0 * (RNG.random(N) < 0.4),
    "stage": RNG.integers(1, 5, N).astype(float),
    "seqn": np.arange(100.0, 100.0 + N),
    "site": np.ones(N),
}
LOG = tt.LoggedData(np.column_stack(list(TABLE.values())), DOSE, LOSS, names=list(TABLE))
FOUND = tt.describe(LOG)


def test_the_columns_are_summed_up():
    (dose,) = FOUND.treatments
    assert FOUND.rows == FOUND.looked_at == N
    for column, values in ((dose.column, DOSE), (FOUND.outcome, LOSS)):
        expected = values.mean(), values.std(), values.min(), values.max()
        got = column.mean, column.sd, column.low, column.high
        np.testing.assert_allclose(got, expected, atol=ROUNDING)
        assert column.quartiles == tuple(np.quantile(values, (0.25, 0.5, 0.75)))
        assert column.distinct == len(np.unique(values))


def test_common_doses_come_with_their_share():
    values, rows = np.unique(DOSE, return_counts=True)
    (dose,) = FOUND.treatments
    assert dose.column.common[0] == (values[np.argmax(rows)], rows.max() / N)
    shares = [share for _, share in dose.column.common]
    assert shares == sorted(shares, reverse=True)
    assert FOUND.outcome.common == ()
    assert FOUND.common_values()[1].startswith("Most common values of the treatment: ")


def test_the_histogram_holds_all_rows():
    (dose,) = FOUND.treatments
    assert dose.counts.sum() == N
    assert len(dose.counts) == len(dose.edges) - 1 == BINS
    assert (dose.edges[0], dose.edges[-1]) == (DOSE.min(), DOSE.max())
    assert len(dose.picture) == BINS
    assert "█" in dose.picture


def test_kinds():
    kinds = {c.column.name: c.column.kind for c in FOUND.contexts}
    expected = {"age": NUMBER, "sex": YES_NO, "stage": FEW, "seqn": CODE, "site": CONSTANT}
    assert kinds == expected


def test_contexts_beside_the_dose():
    age, *_, site = FOUND.contexts
    assert age.correlation[0] == pytest.approx(pearsonr(AGE, DOSE)[0], abs=ROUNDING)
    assert age.explains_dose[0] >= age.correlation[0] ** 2
    assert (site.correlation, site.explains_dose, site.explains_outcome) == ((0.0,), (0.0,), 0.0)


def test_what_bends_is_seen_though_it_does_not_correlate():
    x = np.linspace(-1.0, 1.0, N)
    t = x**2 + 0.01 * np.sin(97.0 * x)
    (found,) = tt.describe(tt.LoggedData(x[:, None], t, t + x)).contexts
    assert abs(found.correlation[0]) < SAMPLED
    assert found.explains_dose[0] > 0.8  # sixths of x leave little of a parabola open


def test_the_doubts_are_those_of_the_trust_report():
    assert FOUND.doubts.names == ("constant_contexts", "key_contexts")
    report = tt.check(LOG, propensity=tt.LinearGaussian())
    assert report.checks[:2] == FOUND.doubts.checks


def test_plain_and_written():
    plain = json.loads(json.dumps(FOUND.to_dict(), allow_nan=False))
    assert [c["name"] for c in plain["contexts"]] == list(TABLE)
    assert plain["doubts"]["verdict"] == "warn"
    text = str(FOUND)
    for name in TABLE:
        assert f"\n{name} " in text
    assert "key_contexts" in text
    assert repr(FOUND).startswith("Description(400 rows; 1 dose(s), 5 contexts; constant_contexts")
    sound = tt.describe(tt.LoggedData(AGE[:, None], DOSE, LOSS))
    assert str(sound).endswith("No column is doubtful.")


def test_a_log_without_contexts_and_one_with_two_doses():
    bare = tt.describe(tt.LoggedData(np.empty((N, 0)), DOSE, LOSS))
    assert bare.contexts == ()
    doses = np.column_stack([DOSE, AGE])
    two = tt.describe(tt.LoggedData(LOG.context[:, :2], doses, LOSS))
    assert [t.column.name for t in two.treatments] == ["treatment 0", "treatment 1"]
    assert two.contexts[0].correlation[1] == pytest.approx(1.0)


def test_groups_and_weights_are_told():
    whose = np.repeat(np.arange(N // 4), 4)
    weights = np.where(np.arange(N) < N / 2, 1.0, 3.0)
    log = tt.LoggedData(AGE[:, None], DOSE, LOSS, weights=weights, groups=whose)
    found = tt.describe(log)
    # Of weights 1 and 3 in equal numbers: (n·2)²/(n·n·5) = .8.
    assert (found.groups, found.evenness) == (N // 4, pytest.approx(0.8))
    assert found.size == "400 rows, in 100 groups, with weights worth 80.0% of even ones"
    assert (FOUND.groups, FOUND.evenness) == (None, None)


def test_missing_outcomes_are_no_outcomes():
    known = np.arange(N) % 4 > 0
    whole = tt.LoggedData(AGE[:, None], DOSE, LOSS)
    parts = replace(whole._parts, outcome=np.where(known, LOSS, 0.0), observed=1.0 * known)
    found = tt.describe(_assembled(parts, whole.names, whole._limits, 0))
    assert (found.rows, found.looked_at, found.seen) == (N, 300, 0.75)
    assert found.size.endswith("the outcome known in 75.0%, 300 of them looked at")
    expected = LOSS[known].mean(), LOSS[known].std()
    assert (found.outcome.mean, found.outcome.sd) == pytest.approx(expected)
    assert found.doubts.names == ()


def gappy():
    """A table with gaps in numbers and texts, a text of 70 levels, and two thirds of doses at 0."""
    rng = np.random.default_rng(3)
    n, rows = 1200, np.arange(1200)
    product = np.array([f"p{k:02d}" for k in range(70)])[rng.integers(0, 70, n)]
    dose = np.where(rows % 3 > 0, 0.0, rng.uniform(1.0, 9.0, n))
    table = {
        "age": np.where(rows % 10 == 0, np.nan, rng.normal(50.0, 9.0, n)),
        "bmi": np.where(rows % 10 == 0, np.nan, rng.normal(25.0, 3.0, n)),
        "sex": np.where(rows % 4 == 0, None, np.where(rng.random(n) < 0.5, "f", "m")),
        "product": product,
        "dose": dose,
        "loss": dose + rng.normal(size=n),
    }
    with pytest.warns(tt.TableWarning):
        return tt.LoggedData.from_frame(table, treatment="dose", outcome="loss")


def test_contexts_have_their_share_of_missing_cells():
    found = tt.describe(gappy())
    missing = {c.column.name: c.column.missing for c in found.contexts}
    # Those of `bmi` have no column of their own: they are the gaps of `age`.
    assert missing["age"] == missing["bmi"] == missing["age is missing"] == pytest.approx(0.1)
    assert missing["sex=m"] == missing["sex=missing"] == pytest.approx(0.25)
    assert missing["product"] == 0.0
    plain = {one["name"]: one for one in found.to_dict()["contexts"]}
    assert plain["bmi"]["missing"] == pytest.approx(0.1)
    row = dict(zip(found.headings, found.table()[2], strict=True))
    assert (row["column"], row["missing"]) == ("age", "10.0%")
    assert "missing" not in FOUND.headings  # where nothing is
    assert all(len(row) == len(FOUND.headings) for row in FOUND.table())


def test_a_code_of_many_texts_has_no_mean_and_no_correlation():
    found = tt.describe(gappy())
    code = next(c for c in found.contexts if c.column.name == "product")
    assert code.column.kind == CODE
    plain = json.loads(json.dumps(code.to_dict(), allow_nan=False))
    assert (plain["mean"], plain["sd"], plain["correlation"]) == (None, None, None)
    assert (plain["distinct"], plain["kind"]) == (70, "code")
    cells = next(row for row in found.table() if row[0] == "product")
    row = dict(zip(found.headings, cells, strict=True))
    assert (row["mean"], row["median"], row["r with dose"]) == ("", "", "")
    assert row["values"] == "70"


def test_a_code_of_many_texts_explains_what_the_means_of_its_texts_do():
    rng = np.random.default_rng(4)
    n, k = 1400, 70
    country = rng.permutation(np.repeat(np.arange(k), n // k))
    rich = rng.normal(size=k)[country]  # in no order of the alphabet
    table = {
        "country": [f"c{one:02d}" for one in country],
        "idle": [f"i{one:02d}" for one in rng.integers(0, k, n)],
        "income": rich + 0.5 * rng.normal(size=n),
    }
    table["years"] = -rich + 0.5 * rng.normal(size=n)
    with pytest.warns(tt.TableWarning):
        log = tt.LoggedData.from_frame(table, treatment="income", outcome="years")
    found = {c.column.name: c for c in tt.describe(log).contexts}

    def adjusted(y: np.ndarray) -> float:  # 1 − s²_within/s²
        within = sum(float(y[country == c].var()) * n / k for c in range(k))
        return 1.0 - within / (n - k) / float(y.var(ddof=1))

    country_row = found["country"]
    assert country_row.explains_dose[0] == pytest.approx(adjusted(log.doses[:, 0]), abs=1e-9)
    assert country_row.explains_outcome == pytest.approx(adjusted(log.outcome), abs=1e-9)
    assert country_row.explains_outcome > 0.6
    # As many texts that say nothing explain nothing.
    assert max(found["idle"].explains_dose[0], found["idle"].explains_outcome) < 0.03


def test_point_masses_are_told_as_such():
    found = tt.describe(gappy())
    (dose,) = found.treatments
    assert (dose.masses, dose.levels) == (((0.0, pytest.approx(2 / 3)),), False)
    assert found.common_values()[0] == "Point masses of the treatment: 66.7% exactly at 0."
    assert dose.to_dict()["point_masses"] == [{"value": 0.0, "share": pytest.approx(2 / 3)}]
    prices = np.resize([9.0, 12.0, 15.0], N)
    (listed,) = tt.describe(tt.LoggedData(AGE[:, None], prices, LOSS)).treatments
    assert listed.levels
    assert listed.exactly("price") == "Nearly every price is one of 3 levels: 9, 12, 15."
    (free,) = tt.describe(tt.LoggedData(AGE[:, None], AGE + LOSS, LOSS)).treatments
    assert free.exactly("dose") is None


def test_the_main_contexts_are_those_that_explain_most():
    main = FOUND.main_contexts(2)
    assert len(main.contexts) == 2
    assert main.contexts[0].column.name == "age"


def test_files_are_described_by_their_sums_and_a_sample(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    t = x + rng.normal(size=4000)
    table = {"x": x, "t": t, "y": t + rng.normal(size=4000)}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    columns = tt.Columns(treatment="t", outcome="y", context="x")
    source = tt.scan_parquet(tmp_path / "log.parquet", columns, sample_rows=1000)
    found = tt.describe(source)
    log = tt.LoggedData.from_frame(table, treatment="t", outcome="y", context="x")
    whole = tt.describe(log)
    assert (found.rows, whole.looked_at) == (4000, 4000)
    assert 800 < found.looked_at < 1200
    assert f"4,000 rows, {found.looked_at:,} of them looked at" in str(found)
    for ours, all_rows in ((found.outcome, whole.outcome), (found.contexts[0].column, None)):
        expected = whole.contexts[0].column if all_rows is None else all_rows
        np.testing.assert_allclose(
            (ours.mean, ours.sd, ours.low, ours.high),
            (expected.mean, expected.sd, expected.low, expected.high),
            atol=ROUNDING,
        )
        np.testing.assert_allclose(ours.quartiles, expected.quartiles, atol=SAMPLED)
    gap = found.contexts[0].correlation[0] - whole.contexts[0].correlation[0]
    assert abs(gap) < SAMPLED


# ── A public table ───────────────────────────────────────────────────────────────────────────────
KNOWN = ["sex", "race", "age", "education", "smokeintensity", "smokeyrs", "exercise", "wt71"]


@pytest.fixture(scope="module")
def smokers() -> pd.DataFrame:
    table = nhefs.load_pandas().data
    return table[table["wt82_71"].notna()].astype(float)


def described(table: pd.DataFrame, *more: str) -> tt.Description:
    log = tt.LoggedData.from_frame(
        table, treatment="smkintensity82_71", outcome="wt82_71", context=[*KNOWN, *more]
    )
    return tt.describe(log)


def test_a_sound_table_is_not_doubted(smokers):
    assert described(smokers).doubts.names == ()


def test_what_the_book_leaves_out_is_doubted(smokers):
    # wt82_71 = wt82 − wt71; seqn is a key; nobody left is censored.
    found = described(smokers, "wt82", "seqn", "censored").doubts
    assert found.names == ("constant_contexts", "key_contexts", "leaked_outcomes")
    assert "'wt82' with 'wt71'" in found["leaked_outcomes"].message
    assert "'seqn'" in found["key_contexts"].message
    assert "'censored'" in found["constant_contexts"].message
