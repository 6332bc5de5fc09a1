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


@pytest.mark.parametrize("name", [*MODELS, *SMOOTHING])
def test_a_changed_constant_is_changed_and_put_back(name):
    before = place_of(name).value
    with with_constant(name, 2 * before):
        assert place_of(name).value == 2 * before
    assert place_of(name).value == before


def test_the_table_of_effects_is_that_of_the_records():
    assert measured.page() in PAGE
