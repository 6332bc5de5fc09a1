"""Digits that an interval gives meaning to are written, on the terminal and in Python."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from titrant._text import between, brief, digits
from titrant.reporting.numbers import number, span


def plainly(text: str) -> str:
    """Return what a page shows with the minus and the space of a keyboard."""
    return text.replace("−", "-").replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e9, -1e10])
@pytest.mark.parametrize("width", [0.004, 0.398, 7.0])
def test_both_ends_of_an_interval_are_told_apart(offset, width):
    # Two digits of the width: the ends as written are off by at most 5 % of it.
    low, high = offset + 1.234567, offset + 1.234567 + width
    for text in (between(low, high), plainly(span(low, high))):
        ends = [float(end.replace(",", "")) for end in text.split(" … ")]
        np.testing.assert_allclose(ends, [low, high], rtol=0, atol=0.05 * width)


def test_without_an_interval_four_digits_and_whole_numbers():
    assert digits(0.0) == digits(float("nan")) == 4
    assert (brief(0.0), brief(float("nan")), brief(12.0)) == ("0", "nan", "12")
    assert number(123_456.7) == "123,457"
    assert plainly(number(3e-7, 1e-8)) == "3.000e-07"
    assert plainly(number(2e9, 2e8)) == "2,000,000,000"


def test_an_interval_without_width_or_end():
    assert between(3.0, 3.0) == "3 … 3"
    assert plainly(span(-np.inf, 2.0)) == "-inf … 2"


def test_an_outcome_far_from_zero_shows_its_interval():
    rng = np.random.default_rng(0)
    dose = rng.normal(0, 1, 300)
    log = tt.LoggedData(np.zeros((300, 0)), dose, 1e7 + dose**2 + rng.normal(0, 0.3, 300))
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized())
    low, high = found.interval()
    assert low < 1e7 < high < low + 1
    for text in (str(found), found._repr_html_()):
        assert between(low, high) in text
        assert brief(found.value, high - low) in text
