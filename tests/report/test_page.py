"""The report page: complete, self-contained, and the same whenever the results are the same."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import titrant as tt
from titrant.data.simulate import DESIGNS
from titrant.policies import StatusQuo
from titrant.report import Report, render
from titrant.report.content import LOGGED, dose_counts
from titrant.report.numbers import number, span
from titrant.report.page import answer

# Rows are counted before they are drawn, so the size of the page does not grow with the log.
LARGEST_PAGE = 400_000

LOG = DESIGNS["dosing"].draw(600, 3)
POLICIES = {
    "flat": tt.Constant(35.0),
    "b<i>st & $x$": tt.Clipped(tt.Linear([0.35, -0.2, -9.0], 19.0), 5.0, 75.0),
}
COMPARISON = tt.compare(LOG, POLICIES, estimator=tt.SelfNormalized())


def report(**changed) -> Report:
    settings = {"seed": 0, "policy": ("flat=constant:35",), "maximize": True, "clip": None}
    given = {"level": 0.9, "maximize": False, "settings": settings, **changed}
    return Report.of(COMPARISON, LOG, POLICIES, **given)


class Tags(HTMLParser):
    """Collects opened tags, and the text of the element `titrant-data`."""

    def __init__(self):
        HTMLParser.__init__(self)
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self._inside = False

    def handle_starttag(self, tag, attrs):
        self.opened.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") == "titrant-data"

    def handle_data(self, data):
        self.data += data if self._inside else ""

    def handle_endtag(self, tag):
        self._inside = self._inside and tag != "script"


@pytest.fixture(scope="module")
def page() -> str:
    return render(report(truth={"flat": 5.1, "b<i>st & $x$": 3.0}))


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


def test_the_embedded_json_is_the_report(page):
    data = json.loads(parsed(page).data)
    assert data["result"] == json.loads(json.dumps(COMPARISON.to_dict()))
    assert data["truth"] == {"flat": 5.1, "b<i>st & $x$": 3.0}
    assert data["intervals"]["flat"] == list(COMPARISON["flat"].interval(0.9))


def test_the_tables_show_the_numbers_of_the_results(page):
    for estimate in COMPARISON.estimates.values():
        low, high = estimate.interval(0.9)
        assert f'<td class="n">{number(estimate.value)}</td>' in page
        assert f'<td class="n">{span(low, high)}</td>' in page
        for check in estimate.diagnostics.checks:
            assert check.message.replace("'", "&#39;").replace('"', "&#34;") in page


def test_nothing_is_fetched_and_nothing_is_run(page):
    tags = parsed(page).opened
    assert not [
        attrs
        for _, attrs in tags
        if {"src", "href"} & set(attrs) and not str(attrs.get("href", "")).startswith("#")
    ]
    assert [attrs["type"] for tag, attrs in tags if tag == "script"] == ["application/json"]
    assert not re.findall(r"@import|url\((?!#)", page)


def test_names_cannot_break_the_page(page):
    assert "b<i>st" not in page.replace("b\\u003ci>st", "")
    assert "b&lt;i&gt;st &amp; $x$" in page


def test_figures_have_words_beside_them(page):
    tags = parsed(page).opened
    figures = [attrs for tag, attrs in tags if tag == "figure"]
    assert len(figures) == 2
    assert all(figure["aria-label"] for figure in figures)
    assert sum(tag == "svg" for tag, _ in tags) == 2
    assert "currentColor" in page


def test_the_page_is_small_and_the_same_every_time(page):
    assert len(page.encode()) < LARGEST_PAGE
    assert render(report(truth={"flat": 5.1, "b<i>st & $x$": 3.0})) == page


def test_vector_doses_have_a_figure_each():
    log = DESIGNS["quadratic-2d"].draw(500, 1)
    policies = {"p": tt.Constant([0.4, 0.9])}
    found = tt.compare(log, policies, estimator=tt.SelfNormalized(), bandwidth=0.8)
    page = render(Report.of(found, log, policies, level=0.95, maximize=False, settings={}))
    assert sum(tag == "figure" for tag, _ in parsed(page).opened) == 3
    assert "Differences" not in page


@pytest.mark.parametrize(("maximize", "best"), [(False, "b<i>st & $x$"), (True, "flat")])
def test_the_answer_names_the_best_policy(maximize, best):
    sentence = answer(report(maximize=maximize))
    extreme = "highest estimated mean reward" if maximize else "lowest estimated mean loss"
    assert sentence.startswith(f"{best} has the {extreme}, {number(COMPARISON[best].value)} (90% ")
    assert sentence.endswith("Its difference to every other policy is clear of zero.")


def test_the_answer_says_when_it_is_open():
    policies = {"a": tt.Constant(35.0), "b": tt.Constant(35.5)}
    found = tt.compare(LOG, policies, estimator=tt.SelfNormalized())
    page = Report.of(found, LOG, policies, level=0.95, maximize=False, settings={})
    assert "is not clear of zero." in answer(page)


def test_the_status_quo_gives_the_logged_doses():
    policies = {"as logged": StatusQuo()}
    found = tt.compare(LOG, policies, estimator=tt.SelfNormalized())
    page = Report.of(found, LOG, policies, level=0.95, maximize=False, settings={})
    (counts,) = page.doses
    np.testing.assert_array_equal(counts.counts["as logged"], counts.counts[LOGGED])
    assert "The estimated mean loss of as logged is" in answer(page)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (999.96, "1,000.0"),
        (-12.3456, "-12.35"),
        (1234567.0, "1,234,567"),
        (2e12, "2.000e+12"),
    ],
)
def test_numbers_have_four_digits(value, shown):
    assert number(value) == shown


def test_doses_are_counted_over_their_common_range():
    counts = dose_counts(np.array([0.0, 1.0, 1.0, 4.0]), {"p": np.array([2.0, 2.0, 2.0, 8.0])})
    # 40 bins of width 0.2 from 0 to 8; 8 falls in the last one.
    assert counts.edges[0] == 0.0
    assert counts.edges[-1] == 8.0
    assert counts.counts[LOGGED].sum() == counts.counts["p"].sum() == 4
    assert counts.counts[LOGGED][5] == 2
    assert counts.counts["p"][10] == 3
    assert counts.counts["p"][39] == 1
