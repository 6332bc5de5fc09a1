"""The default call on public tables, against published analyses of them.

NHEFS: weight gain from 1971 to 1982 of 1,162 light to moderate smokers, had all changed their
cigarettes a day by the same number; Hernán and Robins, *Causal Inference: What If*, chapter 12.
NHANES III: math scores of 2,521 children, had all the same lead in their blood; tabulated, with
the published curve, in the R package adrftools.
"""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from causaldata import nhefs
from scipy.stats import norm

import titrant as tt

PRINTED = 0.01  # the book's and the package's figures have two decimals

# ── Smokers ──────────────────────────────────────────────────────────────────────────────────────

CONFOUNDERS = [
    "sex", "race", "age", "education", "smokeintensity", "smokeyrs", "exercise", "active", "wt71"
]  # fmt: skip
CODED = ["education", "exercise", "active"]
PUBLISHED = {0: (2.00, 1.42, 2.58), 20: (0.90, -1.67, 3.47)}
"""Cigarettes more a day: mean weight gain in kg, and its 95 % interval."""


@pytest.fixture(scope="module")
def smokers() -> pd.DataFrame:
    table = nhefs.load_pandas().data
    known = table[(table["smokeintensity"] <= 25) & table["wt82_71"].notna()]
    named = known.rename(columns={"smkintensity82_71": "change", "wt82_71": "gain"})
    return named[[*CONFOUNDERS, "change", "gain"]].astype(float).reset_index(drop=True)


def gain(table: pd.DataFrame, change: float) -> tt.Estimate:
    """The default call: weight gain, had all changed by so many cigarettes a day."""
    contexts = [name for name in table if name not in ("change", "gain")]
    log = tt.LoggedData.from_frame(table, treatment="change", outcome="gain", context=contexts)
    return tt.evaluate(log, tt.Constant(change))


@pytest.mark.parametrize("change", PUBLISHED)
def test_the_rows_are_those_of_the_book(smokers, change):
    # Its own analysis, stabilized normal weights and a parabola in the change, gives its figures.
    assert len(smokers) == 1162
    squares = ["age", "smokeintensity", "smokeyrs", "wt71"]
    terms = [*(f"C({name})" for name in CODED), *squares, *(f"I({name}**2)" for name in squares)]
    fit = smf.ols(f"change ~ sex + race + {' + '.join(terms)}", smokers).fit()
    own, spread = smokers["change"], np.sqrt(fit.mse_resid)
    weights = norm.pdf(own, own.mean(), own.std()) / norm.pdf(own, fit.fittedvalues, spread)
    means = smf.wls("gain ~ change + I(change**2)", smokers, weights=weights).fit(cov_type="HC0")
    at = np.array([1.0, change, change**2])
    value, se = at @ means.params, np.sqrt(at @ means.cov_params() @ at)
    found = value, value - 1.96 * se, value + 1.96 * se
    np.testing.assert_allclose(found, PUBLISHED[change], atol=PRINTED)


@pytest.mark.parametrize("change", PUBLISHED)
def test_the_default_call_lies_within_the_published_interval(smokers, change):
    found = gain(smokers, change)
    value, low, high = PUBLISHED[change]
    assert low < found.value < high
    assert found.interval()[0] < value < found.interval()[1]


CODINGS = {
    "indicators of levels": lambda t: pd.get_dummies(
        t, columns=CODED, drop_first=True, dtype=float
    ),
    "rows in another order": lambda t: t.sample(frac=1.0, random_state=1),
    "columns in another order": lambda t: t[t.columns[::-1]],
    "a column twice": lambda t: t.assign(again=t["education"]),
    "a code that says nothing": lambda t: t.assign(site=np.arange(len(t)) * 7919 % 40),
    "an absurd cell": lambda t: t.assign(wt71=t["wt71"].where(t.index != 3, 9999.0)),
}


@pytest.mark.long
@pytest.mark.parametrize("coding", CODINGS.values(), ids=CODINGS)
def test_however_the_table_is_written_it_stays_there(smokers, coding):
    _, low, high = PUBLISHED[0]
    found = gain(coding(smokers), 0.0)
    assert low < found.value < high
    # Nor does the way of writing it make the interval much wider or narrower.
    assert 1.5 < np.ptp(found.interval()) < 2.2


# ── Children ─────────────────────────────────────────────────────────────────────────────────────

TABLE = os.environ.get("TITRANT_LEAD")
needs_table = pytest.mark.skipif(
    not TABLE, reason="the survey's table is not part of titrant: set TITRANT_LEAD"
)
LEAD = {
    0.0: (8.394, 0.17),
    0.5: (8.305, 0.12),
    1.0: (8.066, 0.11),
    1.5: (7.484, 0.14),
    2.0: (7.078, 0.22),
}
"""Log of the lead in µg/dL: mean score in math, and its standard error."""
KNOWN = ["Age", "Male", "Race", "PIR", "Enough_Food", "Smoke_in_Home", "Smoke_Pregnant", "NICU"]


@pytest.fixture(scope="module")
def children() -> pd.DataFrame:
    return pd.read_csv(TABLE)[[*KNOWN, "logBLL", "Math"]]


RACES = {
    "indicators of levels": lambda t: pd.get_dummies(
        t, columns=["Race"], drop_first=True, dtype=float
    ),
    "a code": lambda t: t.assign(Race=t["Race"].astype("category").cat.codes.astype(float)),
}


@pytest.mark.long
@needs_table
@pytest.mark.parametrize("coding", RACES.values(), ids=RACES)
def test_the_default_curve_lies_within_the_published_intervals(children, coding):
    table = coding(children)
    assert len(table) == 2521
    contexts = [name for name in table if name not in ("logBLL", "Math")]
    log = tt.LoggedData.from_frame(table, treatment="logBLL", outcome="Math", context=contexts)
    found = tt.compare(log, {str(lead): tt.Constant(lead) for lead in LEAD})
    off = [(found[str(lead)].value - mean) / se for lead, (mean, se) in LEAD.items()]
    assert np.abs(off).max() < 1.96, off


@needs_table
@pytest.mark.parametrize("coding", RACES.values(), ids=RACES)
def test_no_column_is_doubted(children, coding):
    table = coding(children)
    contexts = [name for name in table if name not in ("logBLL", "Math")]
    log = tt.LoggedData.from_frame(table, treatment="logBLL", outcome="Math", context=contexts)
    assert not tt.describe(log).doubts.names


@needs_table
def test_without_contexts_the_curve_is_another_one(children):
    # Were the models not to adjust, the test above would show it: by 4 standard errors at no lead.
    log = tt.LoggedData.from_frame(children, treatment="logBLL", outcome="Math", context=[])
    mean, se = LEAD[0.0]
    assert tt.evaluate(log, tt.Constant(0.0)).value > mean + 3.0 * se
