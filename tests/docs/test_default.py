"""The page about the default says what the code says."""

from __future__ import annotations

import re

import pytest
from benchmarks.constants import page as measured
from benchmarks.constants.study import MODELS, SMOOTHING, place_of, with_constant
from pages.blocks import ROOT

PAGE = (ROOT / "docs/explanation/default.md").read_text("utf-8")
WRITTEN = PAGE.partition(measured.BEGIN)[0]
NAMED = re.compile(r"`((?:[a-z_]+\.)+(?:[A-Z]\w*\.)?\w+)`(?: \||)\s(-?[\d.]+\d|\d)")
CONSTANTS = dict(NAMED.findall(WRITTEN))


def test_the_page_names_enough_constants():
    assert len(CONSTANTS) > 60
    assert {*MODELS, *SMOOTHING} <= set(CONSTANTS)


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_the_code(name):
    assert float(CONSTANTS[name]) == pytest.approx(float(place_of(name).value))


def test_the_page_tells_which_constants_a_script_varies():
    table = WRITTEN.partition("| constant | value | meaning |")[2].partition("\n\n")[0]
    told = dict(re.findall(r"^\| `([^`]+)` .*\| ([^|]+) \|$", table, re.MULTILINE))
    measured_here = {name for name, matters in told.items() if matters.startswith("[measured]")}
    assert measured_here == {*MODELS, *SMOOTHING}
    assert {told[name] for name in told.keys() - measured_here} == {"not measured"}


@pytest.mark.parametrize("name", [*MODELS, *SMOOTHING])
def test_a_changed_constant_is_changed_and_put_back(name):
    before = place_of(name).value
    with with_constant(name, 2 * before):
        assert place_of(name).value == 2 * before
    assert place_of(name).value == before


def test_the_table_of_effects_is_that_of_the_records():
    assert measured.page() in PAGE


def test_five_questions_of_a_referee_are_answered_on_the_page():
    # Each with an answer in the table, and a section of the page that has the formulas.
    table = WRITTEN.partition("## Five short answers")[2].partition("The whole of")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    answers = {question: (answer, place) for question, answer, place in rows[1:]}
    asked = {
        "Which propensity?": "average of four conditional densities",
        "Is it cross-fitted?": "both models. Five folds",
        "Which bandwidth?": "least estimated squared error",
        "Which degrees of freedom?": "effective number of rows",
        "Where does .84 come from?": "cover 95 % on the designs",
    }
    assert list(answers) == list(asked)
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    for question, words in asked.items():
        answer, place = answers[question]
        assert words in answer
        assert set(re.findall(r"\(#([^)]+)\)", answer + place)) <= anchors
