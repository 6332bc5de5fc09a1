"""The section on rules: what it compares, worked out on two draws of one problem."""

from __future__ import annotations

import pytest
from benchmarks.rules import library, vector
from benchmarks.rules.found import CONSTANT, ECONML, LEARNED_CONSTANT, found_in, listed
from benchmarks.rules.measure import HONEST_PROBLEMS
from benchmarks.rules.page import NEW, _library, _seen, _vector
from benchmarks.rules.targets import Target, targets

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


def test_a_target_is_met_missed_with_its_reason_or_open():
    assert Target("a", "1", met=True, reason="why").cells == ("a", "1", "met")
    assert Target("a", "1", met=False, reason="why").cells == ("a", "1", "missed. why")
    assert Target("a", "1", met=None, reason="why").cells == ("a", "1", "open: fewer than 300 logs")
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"], [])] == [
        "*a*",
        "*a* and *b*",
        "*a*, *b* and *c*",
        "none",
    ]


def rules(name: str, automatic: float, *, line: float, announced: bool) -> list[dict[str, object]]:
    """Two draws of a problem whose best line loses ``line``, and whose learned line .4."""
    draws = [record(k, automatic, 1.0) | {"design": name, "announced": announced} for k in (0, 1)]
    for one in draws:
        one["excess"] = {**one["excess"], "linear": 0.4}
        one["truth"] = {"constant": 1.0, "line": line, "within": 0.0, "sd": 1.0}
    return draws


# sine .04/.4 = .1 (seen), bids .2/.4 = .5 (fresh), ratio .4/.4 = 1 (nearly best): their
# geometric mean is .05^(1/3) = .37. Where a line is best: .2/.4 and .1/.4.
EVERY_KIND = found_in(
    [
        *rules("sine", 0.04, line=0.5, announced=True),
        *rules("bids", 0.2, line=0.5, announced=False),
        *rules("ratio", 0.4, line=0.05, announced=True),
        *rules("linear, p = 5", 0.2, line=0.0, announced=False),
        *rules("one dose for all, confounded", 0.1, line=0.0, announced=True),
    ],
    [],
)


def by_beginning(beginning: str, found: list[Target]) -> Target:
    (one,) = [one for one in found if one.asked.startswith(beginning)]
    return one


def test_excess_is_told_by_kind_and_by_when_a_problem_was_invented():
    found = targets(EVERY_KIND, [], [], [])
    bent = by_beginning("excess ≤ .25", found)
    assert (
        bent.measured
        == "0.100 on 1 seen; 0.500 on 1 fresh; 0.37 with the 1 where it is nearly best"
    )
    straight = by_beginning("excess ≤ 1.0", found)
    assert straight.measured == "0.50 on 1 seen; 0.25 on 1 fresh; 0.35 on all"
    assert (bent.met, straight.met) == (False, True)
    # Best lines lose .5 in four logs, two of which say so; learned ones .4 in all ten, six do.
    said = by_beginning("that a line", found)
    assert said.measured.startswith("2 of 4 (")
    assert ", 6 of 10 (" in said.measured
    assert said.met is False
    needless = by_beginning("it is said", found)
    assert needless.measured.startswith("2 of 4 (")
    assert needless.met is False


@pytest.mark.parametrize(
    ("n", "covered", "met"), [(299, 285, None), (300, 285, True), (300, 270, False)]
)
def test_coverage_is_open_until_there_are_enough_logs(n, covered, met):
    logs = [(name, k < covered) for name in HONEST_PROBLEMS for k in range(n)]
    honest = [
        {
            "design": name,
            "covers": covers,
            "covers_the_halves": covers,
            # Losses below the interval: the rule is better than it says.
            "true": {"whole": 0.5, "halves": 0.5},
            "interval": [0.4 if covers else 0.6, 0.9],
        }
        for name, covers in logs
    ]
    found = targets(EVERY_KIND, honest, [], [])
    halves, whole = [one for one in found if "honest" in one.asked]
    assert (halves.met, whole.met) == (met, met)
    assert f"{covered} of {n} (" in halves.measured
    assert met is not False or "Of 60 intervals that miss, 60 are too pess" in halves.cells[2]


def test_deployments_and_doses_of_patients_are_held_against_their_targets():
    safe = [{"design": "linear", "deployed": k < 15} for k in range(300)]
    off = {"automatic": 8.5, "steps of 2.5 mg a day": 9.0, "right, steps of 2.5 mg a day": 4.0}
    found = targets(EVERY_KIND, [], [{"plain": off}], safe)
    assert by_beginning("`safe=True`", found).met is True  # 15 of 300 are 5 %
    assert by_beginning("warfarin: ", found).met is True
    steps = by_beginning("warfarin in steps", found)
    assert (steps.measured, steps.met) == ("0.50 more", False)
    assert "is 4.00 mg off" in steps.reason


def test_what_earlier_learners_have_seen_is_said():
    draws = [record(draw, 0.02, 0.03) for draw in (0, NEW)]
    draws[0]["excess"] = {**draws[0]["excess"], "automatic": 9.0}
    told = _seen(found_in(draws, []), draws)
    assert f"Draws 0 to {NEW - 1} of every problem" in told
    assert "- 0.25 times where a line is best (1 seen problems)" in told  # .02/.08 on the new draw
