"""The section on rules: what it compares, worked out on two draws of one problem."""

from __future__ import annotations

import pytest
from benchmarks.rules import library, vector
from benchmarks.rules.page import CONSTANT, ECONML, LEARNED_CONSTANT, _library, _vector, found_in

NAME = "one dose for all"


def record(draw: int, automatic: float, constant: float) -> dict[str, object]:
    excess = {"automatic": automatic, "linear": 0.08, "constant": constant}
    excess |= {"boosted": 0.4, "forest": 0.4, "quadratic": 0.08}
    truth = {"constant": 0.0, "line": 0.0, "within": 0.0, "sd": 1.0}
    return {
        "design": NAME,
        "replication": draw,
        "chosen": "linear",
        "announced": False,
        "excess": excess,
        "truth": truth,
    }


RECORDS = [record(0, 0.02, 0.03), record(1, 0.022, 0.01)]


def test_the_best_constant_is_an_oracle_and_the_learned_one_is_not():
    # Excesses of .02 and .022 are more than 2 SE above the oracle's 0, not above .03 and .01.
    (found,) = found_in(RECORDS, [])
    assert found.worse_than(CONSTANT)
    assert not found.worse_than(LEARNED_CONSTANT)
    assert found.excess(LEARNED_CONSTANT).tolist() == [0.03, 0.01]


def test_econml_counts_on_the_draws_it_was_measured_on():
    # Without it the best other has .08: .021/.08. On draw 1 it has .011, half of .022.
    assert found_in(RECORDS, [])[0].ratio_to_the_best == pytest.approx(0.021 / 0.08)
    theirs = [
        {"design": NAME, "replication": 1, "excess": 0.011},
        {"design": NAME, "replication": 9, "excess": 1e-6},  # a draw that nobody else has
    ]
    (found,) = found_in(RECORDS, theirs)
    assert found.excess(ECONML).tolist() == [0.011]
    assert found.ratio_to_the_best == pytest.approx(2.0)


def test_the_wider_library_and_two_doses_are_told_once_there_are_records():
    assert _library([]) == _vector([]) == []
    wider = {
        "design": library.PROBLEMS[0],
        "stack": {"forest": 0.25, "smooth": 0.25},
        "excess": {library.USUAL: {"automatic": 0.2}, library.WIDER: {"automatic": 0.1}},
    }
    (told,) = _library([wider])
    assert "0.50 times the excess" in told
    assert "50% of the weight" in told
    pair = {"automatic": 0.1, "quadratic": 0.2}
    known = [
        {"design": name, "chosen": "linear", "excess": pair, "squared": pair}
        for name in vector.DESIGNS
    ]
    _, table = _vector(known)
    assert "| lines | 1 | 0.100 | 0.200 | 0.100 | 0.200 | linear 1 |" in table
