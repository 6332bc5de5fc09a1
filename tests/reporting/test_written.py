"""`report` writes the page of a log and its policies in one call."""

from __future__ import annotations

import pytest

import titrant as tt
from reporting.examples import BANDWIDTH, LOG, POLICIES
from titrant.evaluation.evaluation import Evaluation
from titrant.outcome import ridge_pair
from titrant.reporting import gather, render

QUICK = {"estimator": tt.SelfNormalized(), "bandwidth": BANDWIDTH}


@pytest.mark.long
def test_the_page_is_that_of_the_evaluation(tmp_path):
    path = tmp_path / "page.html"
    found = tt.report(LOG, POLICIES, path, **QUICK, level=0.9, title="Ours", units={"dose": "mg"})
    evaluation = Evaluation.of(LOG, POLICIES, tt.SelfNormalized(), None)
    compared = evaluation.compare(BANDWIDTH)
    same = gather(
        compared, evaluation, bandwidth=BANDWIDTH, level=0.9, title="Ours", units={"dose": "mg"}
    )
    assert path.read_text(encoding="utf-8") == render(found) == render(same)
    for name in POLICIES:
        assert found.comparison[name].value == compared[name].value


def test_one_policy_goes_by_what_it_is_called_and_doses_have_a_page_too():
    doses = LOG.treatment + 1.0
    found = tt.report(LOG, doses, **QUICK, allow_untrusted=True)
    assert found.comparison.names == ["status quo", "doses given"]
    assert found.strengths is None
    assert found.person is None
    assert "doses given" in render(found)


def test_a_report_is_one_line_and_a_notebook_shows_its_conclusion(tmp_path):
    path = tmp_path / "page.html"
    found = tt.report(LOG, {"a < b": 35.0}, path, **QUICK)
    worst = found.comparison["a < b"].diagnostics.verdict.value
    assert repr(found) == f"Report('status quo', 'a < b'; verdict {worst}; {str(path)!r})"
    shown = found._repr_html_()
    assert "“a &lt; b”" in shown
    assert "<p>" + worst in shown
    assert shown.count("<table>") >= 1


def test_what_was_estimated_before_is_no_page():
    estimate = tt.evaluate(LOG, tt.Constant(35.0), **QUICK)
    with pytest.raises(tt.InvalidArgument, match="rows of a log, which a `Estimate` does not hold"):
        tt.report(LOG, estimate)


@pytest.mark.long
@pytest.mark.usefixtures("plain_models")
def test_the_page_of_a_learner_has_its_honest_value(tmp_path):
    procedure = tt.StackedDR(models=ridge_pair())
    grade = tt.SelfNormalized()
    learner = tt.PolicyLearner(policy=tt.Linear(), procedure=procedure, grade=grade).fit(LOG)
    found = tt.report(LOG, learner, tmp_path / "page.html")
    assert found.learned["honest"]["value"] == learner.estimate_.value
    assert found.focus == "learned"
    assert (tmp_path / "page.html").stat().st_size < 500_000
    with pytest.raises(tt.InvalidArgument, match="`bandwidth` of a learned policy is that of its"):
        tt.report(LOG, learner, bandwidth=3.0)
    with pytest.raises(tt.InvalidArgument, match=r"another log, of 600 rows; this one has 9\."):
        tt.report(LOG.rows(slice(0, 9)), learner)
