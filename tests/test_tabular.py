"""A result as a table: in a data frame, in LaTeX and in a notebook, the same rows."""

from __future__ import annotations

import re
import sys
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import titrant as tt
from reporting.examples import CURVES
from titrant._tables import Tabular, latex
from titrant.data.simulate import DESIGNS
from titrant.outcome import ridge_pair

LOG = DESIGNS["dosing"].draw(300, 2)
QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": 6.0}
POLICIES = {"a_1": tt.Constant(35.0), "50% & more": tt.Constant(30.0), "far": tt.Constant(74.0)}


@cache
def results() -> dict[str, Tabular]:
    compared = tt.compare(LOG, POLICIES, **QUICK)
    procedure = tt.StackedDR(models=ridge_pair())
    limits = tt.Limits(at_least=10.0, at_most=60.0)
    learner = tt.PolicyLearner(policy=tt.Linear(), procedure=procedure, limits=limits).fit(LOG)
    two = {"loss": LOG, "dose": LOG.with_outcome(LOG.treatment)}
    known = tt.Constant(35.0)
    return {
        "Estimate": compared["a_1"],
        "Contrast": compared.contrast("a_1", "50% & more"),
        "Comparison": compared,
        "Differences": compared.differences(),
        "Curve": tt.curve(LOG, tt.Constant, [35.0, 30.0, 74.0], **QUICK),
        "BandwidthPath": tt.bandwidth_path(LOG, known, estimator=tt.SelfNormalized()),
        "Diagnostics": compared["a_1"].diagnostics,
        "Description": tt.describe(LOG),
        "Subgroups": tt.subgroups(LOG, known, by={"age": [50]}, **QUICK),
        "Outcomes": tt.outcomes(two, {"a": known, "b": tt.Constant(30.0)}, **QUICK),
        "Sensitivity": tt.sensitivity(LOG, known, **QUICK, benchmarks=()),
        "Stress": tt.stress(LOG, known, **QUICK, draws=0, contexts=["age"]),
        "HonestValue": learner.estimate_,
        "ClassChoice": learner.choice_,
        "LimitsFound": learner.limits_,
        "Recommended": learner.recommend(LOG.context[:5]),
        "Points": CURVES.policy.points(LOG),
    }


KINDS = (
    *("Estimate", "Contrast", "Comparison", "Differences", "Curve", "BandwidthPath"),
    *("Diagnostics", "Description", "Subgroups", "Outcomes", "Sensitivity", "Stress"),
    *("HonestValue", "ClassChoice", "LimitsFound", "Recommended", "Points"),
)


def test_every_result_with_a_table_is_looked_at_here():
    def all_below(kind: type) -> set[type]:
        own = kind.__subclasses__()
        return {*own, *(one for each in own for one in all_below(each))}

    assert all(type(results()[kind]).__name__ == kind for kind in KINDS)
    assert {kind.__name__ for kind in all_below(Tabular)} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_frame_the_page_of_a_notebook_and_latex_have_the_same_rows(kind):
    found = results()[kind]
    frame = found.to_frame()
    lines = found.to_latex().splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    first = found._repr_html_().split("</table>")[0]
    notes = len(found.notes) if kind == "Diagnostics" else 0
    apart = found.names if kind == "Outcomes" else [None]  # a row each, there columns
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == (len(body) - notes) * len(apart)
    assert first.count("<tr>") == len(body) + 1
    ampersands = {len(re.findall(r"(?<!\\)&", line)) for line in body}
    assert len(ampersands) == 1  # names are escaped


@pytest.mark.parametrize("kind", KINDS)
def test_each_library_has_the_same_numbers(kind):
    found = results()[kind]
    arrow, polars, pandas = (found.to_frame(name) for name in ("pyarrow", "polars", "pandas"))
    assert isinstance(arrow, pa.Table)
    assert isinstance(polars, pl.DataFrame)
    assert arrow.to_pylist() == polars.to_dicts()
    assert list(pandas.columns) == arrow.column_names


def test_the_numbers_are_those_of_the_results():
    compared = results()["Comparison"]
    frame = compared.to_frame(level=0.8).set_index("policy")
    low, high = compared["a_1"].interval(0.8)
    assert frame.loc["a_1", ["value", "low", "high"]].tolist() == [compared["a_1"].value, low, high]
    assert np.isnan(frame.loc["far", "value"])
    assert frame.loc["far", "reason"] == compared.refused["far"]
    apart = compared.differences().to_frame()
    contrast = compared.contrast("a_1", "50% & more")
    assert apart.loc[0, ["a", "b", "difference"]].tolist() == [
        *("a_1", "50% & more", contrast.difference)
    ]
    curve = results()["Curve"].to_frame()
    np.testing.assert_array_equal(curve["value"], results()["Curve"].values)
    bounds = results()["Sensitivity"]
    assert bounds.to_frame(level=0.8).loc[1, "low"] == bounds.interval(1.1, 0.8)[0]
    assert "80\\% interval" in bounds.to_latex(level=0.8)
    assert "80\\% CI" in results()["Stress"].to_latex(level=0.8)


def test_latex_is_written_with_its_own_signs():
    text = latex([["policy", "Γ"], ["a_1 & 5% <$x$> \\", "-1.5 … 2 − x-3"]], "a caption")
    assert text.startswith("% a caption\n\\begin{tabular}{lr}\n\\toprule\npolicy & $\\Gamma$ \\\\")
    assert r"a\_1 \& 5\% $<$\$x\$$>$ \textbackslash{} & $-$1.5 \ldots{} 2 $-$ x-3 \\" in text


def test_a_library_that_is_missing_is_named_with_what_to_do(monkeypatch):
    estimate = results()["Estimate"]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(tt.InvalidArgument, match=r"polars .*not installed.*library='pyarrow'"):
        estimate.to_frame("polars")
    with pytest.raises(tt.InvalidArgument, match="must be one of 'pandas', 'polars', 'pyarrow'"):
        estimate.to_frame("excel")


def test_a_comparison_of_many_policies_is_told_against_the_first():
    many = tt.compare(LOG, {f"p{d}": tt.Constant(d) for d in (28, 30, 32, 34, 36)}, **QUICK)
    assert many._repr_html_().count(" − p28</td>") == 4
    assert "−" not in repr(many)
    assert len(many.differences()) == 10
    assert str(many.differences()).count("\n") == 9
    assert [c.a for c in many.differences()][:4] == ["p28"] * 4
