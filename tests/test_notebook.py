"""Results in a notebook: a small table each, and a drawing on matplotlib axes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from html import escape

import matplotlib as mpl
import numpy as np
import pytest

import titrant as tt
from plain import plainly
from titrant.data.simulate import DESIGNS
from titrant.evaluation.curves import bandwidth_path, curve
from titrant.outcome import ridge_pair

mpl.use("agg")
from matplotlib import pyplot as plt

LOG = DESIGNS["dosing"].draw(400, 2)
PLAIN = {"estimator": tt.SelfNormalized(), "bandwidth": 6.0}


@cache
def results() -> dict[str, object]:
    policies = {"flat $5 <b>": tt.Constant(35.0), "low": tt.Constant(30.0)}
    compared = tt.compare(LOG, policies, **PLAIN)
    return {
        "estimate": compared["low"],
        "contrast": compared.contrast("low", "flat $5 <b>"),
        "comparison": compared,
        "curve": curve(LOG, tt.Constant, [35.0, 30.0, 25.0, 74.0], **PLAIN),
        "path": bandwidth_path(LOG, tt.Constant(35.0), estimator=tt.SelfNormalized()),
        "diagnostics": compared["low"].diagnostics,
        "honest value": learned().estimate_,
    }


@cache
def learned() -> tt.PolicyLearner:
    procedure = tt.StackedDR(models=ridge_pair())
    with plainly():
        return tt.PolicyLearner(procedure=procedure, against={"$5 <b>": tt.Constant(35.0)}).fit(LOG)


KINDS = ("estimate", "contrast", "comparison", "curve", "path", "diagnostics", "honest value")


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[dh]>(.*?)</t[dh]>", row) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_equally_long_rows_and_escapes_names(kind):
    html = results()[kind]._repr_html_()
    assert html.startswith("<table>")
    for table in html.split("<table>")[1:]:
        assert len({len(row) for row in cells(table)}) == 1
    assert "<b>" not in html
    assert not re.findall(r"<(?!/?(?:table|caption|thead|tbody|tr|th|td)\b)", html)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plot_returns_axes_its_own_or_those_given(kind):
    own = results()[kind].plot()
    assert isinstance(own, mpl.axes.Axes)
    own.figure.canvas.draw()
    _, (left, right) = plt.subplots(1, 2)
    assert results()[kind].plot(right) is right
    assert not left.has_data()


def test_the_table_of_a_comparison_has_the_numbers_of_its_estimates():
    compared = results()["comparison"]
    _, first, second, _, apart = cells(compared._repr_html_())
    assert apart[0] == "flat $5 &lt;b&gt; − low"
    assert first[0] == "flat $5 &lt;b&gt;"
    low, high = compared["low"].interval()
    assert second[:4] == ["low", f"{compared['low'].value:.4g}", f"{low:.4g} … {high:.4g}", "6"]
    assert second[-1] == compared["low"].diagnostics.verdict.value
    assert cells(compared["low"]._repr_html_())[1] == second


def drawn_lines(ax) -> list[np.ndarray]:
    return [np.asarray(line.get_xydata()) for line in ax.lines]


def test_a_comparison_draws_each_interval_and_value():
    compared = results()["comparison"]
    ax = compared.plot(level=0.8)
    bar, dot = drawn_lines(ax)[2:4]  # of the second policy
    np.testing.assert_allclose(bar[:, 0], compared["low"].interval(0.8))
    np.testing.assert_allclose(dot, [[compared["low"].value, 1.0]])
    assert [text.get_text() for text in ax.texts] == [r"flat \$5 <b>", "low"]


def test_an_honest_value_is_drawn_and_told_beside_what_it_is_compared_with():
    honest = learned().estimate_
    ax = honest.plot()
    assert [text.get_text() for text in ax.texts] == [
        *("learned", "status quo", "mean dose", r"\$5 <b>")
    ]
    bar, dot = drawn_lines(ax)[:2]
    np.testing.assert_allclose(bar[:, 0], honest.interval())
    np.testing.assert_allclose(dot, [[honest.value, 0.0]])
    row = cells(honest._repr_html_())[2]
    contrast = honest.comparison.contrast("learned", "status quo")
    low, high = contrast.interval()
    assert row == ["learned − status quo", f"{contrast.difference:.4g}", f"{low:.4g} … {high:.4g}"]
    assert f"{-contrast.difference:.4g}" in honest.finding()


def test_a_learned_policy_is_drawn_against_the_context_that_moves_it_most():
    learner = learned()
    doses = learner.predict(LOG.context)
    moves = [abs(np.corrcoef(doses, x)[0, 1]) for x in LOG.context.T]
    main = int(np.argmax(moves))
    ax = learner.plot()
    assert ax.get_xlabel() == LOG.names[main]
    logged, ours = drawn_lines(ax)
    np.testing.assert_array_equal(logged, np.column_stack([LOG.context[:, main], LOG.treatment]))
    np.testing.assert_array_equal(ours, np.column_stack([LOG.context[:, main], doses]))
    _, (left, right) = plt.subplots(1, 2)
    assert learner.plot(right, context="age") is right
    assert right.get_xlabel() == "age"
    assert not left.has_data()
    with pytest.raises(tt.InvalidArgument, match=r"one of the log's contexts, weight, age"):
        learner.plot(context="height")


def test_a_learned_policy_without_contexts_is_drawn_row_by_row():
    log = tt.LoggedData(np.empty((400, 0)), LOG.treatment, LOG.outcome)
    learner = tt.PolicyLearner(procedure=tt.StackedDR(models=ridge_pair()), honest=False).fit(log)
    assert learner.plot().get_xlabel() == "row"


def test_a_notebook_shows_what_was_learned_and_before_that_the_parameters():
    learner = learned()
    html = learner._repr_mimebundle_(include=None, exclude=None)["text/html"]
    assert html == learner._repr_html_()
    assert escape(learner.decision_) in html
    assert learner.estimate_._repr_html_() in html
    assert escape(repr(learner.policy_)) in html
    assert "PolicyLearner" in tt.PolicyLearner()._repr_html_()


def test_a_contrast_is_drawn_beside_zero():
    contrast = results()["contrast"]
    zero, bar, _ = drawn_lines(contrast.plot())
    np.testing.assert_array_equal(zero[:, 0], [0.0, 0.0])
    np.testing.assert_allclose(bar[:, 0], contrast.interval())


def test_a_curve_is_drawn_from_left_to_right_in_both_bands():
    found = results()["curve"]
    assert found.parameters.tolist() == [35.0, 30.0, 25.0]  # nobody got 74
    ax = found.plot()
    (line,) = drawn_lines(ax)
    np.testing.assert_allclose(line[:, 0], [25.0, 30.0, 35.0])
    np.testing.assert_allclose(line[:, 1], found.values[::-1])
    together, alone = (np.ptp(band.get_paths()[0].vertices[:, 1]) for band in ax.collections)
    assert together > alone
    assert "1 parameters refused" in found._repr_html_()


def test_a_path_is_drawn_on_a_log_scale_with_the_chosen_bandwidth():
    found = results()["path"]
    line, mark = drawn_lines(found.plot(chosen=6.0))
    seen = np.isfinite(found.values)
    np.testing.assert_allclose(line[:, 0], found.bandwidths[seen])
    np.testing.assert_allclose(mark[:, 0], [6.0, 6.0])
    assert found.plot().get_xscale() == "log"
    assert len(cells(found._repr_html_())) == 1 + len(found.values)


def test_a_path_of_vector_doses_is_in_sd():
    log = DESIGNS["quadratic-2d"].draw(300, 1)
    found = bandwidth_path(log, tt.Constant([0.4, 0.9]), estimator=tt.SelfNormalized())
    (line,) = drawn_lines(found.plot())
    np.testing.assert_allclose(line[:, 0], found.factors[np.isfinite(found.values)])
    assert ", " in cells(found._repr_html_())[1][0]  # one bandwidth a dose


def test_diagnostics_draw_every_check():
    found = results()["diagnostics"]
    words = [text.get_text() for text in found.plot().texts]
    for check in found.checks:
        assert check.name.replace("_", " ") in words
        assert f"{check.value:.3g}" in words


def test_a_long_name_is_shortened_in_its_middle():
    name = "a" * 40 + "b" * 40
    ax = tt.compare(LOG, {name: tt.Constant(35.0)}, **PLAIN).plot()
    shown = ax.texts[0].get_text()
    assert len(shown) < 50
    assert shown.startswith("aaa")
    assert shown.endswith("bbb")


def test_results_are_shown_as_tables_without_matplotlib():
    code = (
        "import json, sys, titrant as tt\n"
        "from titrant.data.simulate import DESIGNS\n"
        "log = DESIGNS['dosing'].draw(300, 2)\n"
        "tt.evaluate(log, tt.Constant(35.0), estimator=tt.SelfNormalized())._repr_html_()\n"
        "print(json.dumps([*sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"matplotlib", "jinja2"} & set(json.loads(run.stdout))
