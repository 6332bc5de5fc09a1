"""The steps from the standard error to the interval are those of the interval, and of the records.

The full run is `python -m benchmarks.widths`.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import widths
from benchmarks.confounding import study as confounding
from benchmarks.confounding.page import NARROW, WIDE, covering, halves, of_form, trade
from benchmarks.confounding.records import records_in, same, task_of
from benchmarks.structure import study as structure
from benchmarks.structure.page import MISSING, Found
from benchmarks.structure.page import widths as told_of_structure
from benchmarks.widths import Steps, least_corrected, narrow_se, steps_of, told_and_off

import titrant as tt

DIGITS = 1e-4  # records keep five digits


@pytest.fixture(scope="module")
def made_again() -> list:
    return records_in(widths.RECORDS)


@pytest.fixture(scope="module")
def studied() -> list:
    return [r for r in records_in(confounding.RECORDS) if "failed" not in r]


def test_what_was_made_again_is_what_the_studies_recorded(made_again: list, studied: list) -> None:
    known = {task_of(r): r["default"] for r in studied}
    known |= {task_of(r): r["with"] for r in records_in(structure.RECORDS) if "failed" not in r}
    assert {task_of(r) for r in made_again} == set(widths.tasks())
    for record in made_again:
        kept = known[task_of(record)]
        for name in ("value", "se", "low", "high", "verdict"):
            assert same(kept[name], record[name]), task_of(record)


def test_the_factors_make_the_half_width(made_again: list) -> None:
    made = Steps(made_again)
    half = (made.number("high") - made.number("low")) / 2
    product = np.prod(list(made.factors().values()), axis=0)
    np.testing.assert_allclose(product * widths.NORMAL * made.number("se"), half, rtol=5 * DIGITS)


def test_an_interval_reaches_as_far_as_its_formula_says(made_again: list) -> None:
    made = Steps(made_again)
    se, corrected = made.number("se"), made.number("corrected")
    gap = made.number("value") - made.number("center")
    for i, reach in enumerate(made.number("reach")):
        by_chance = max(0.0, corrected[i] ** 2 - se[i] ** 2)
        bias = max(0.0, gap[i] ** 2 - by_chance)
        s = max(corrected[i] ** 2, se[i] ** 2 + bias) ** 0.5
        assert reach == pytest.approx(s, rel=10 * DIGITS)
    least = least_corrected(se, made.number("reach"), gap)
    # Two of 456 fits have a smaller standard error than the value; they count as having its own.
    assert (least <= np.maximum(corrected, se) * (1 + 10 * DIGITS)).all()
    assert (corrected < se).sum() == 2
    assert (corrected <= made.number("reach") * (1 + DIGITS)).all()


def test_the_least_fit_behind_an_interval() -> None:
    # SE 3 and se_R 5, D = 16: without a gap s = 5, and nothing else gives it. A gap of √40 is
    # 24 more than chance: s² = 9 + 24, which se_R = √33 would give as well. With a gap of √20,
    # 4 more than chance, s stays 5, as it would be if D were 4 and the gap widened it. A gap of 4
    # with s = 5 is what D = 0 gives, too.
    squares = [25.0, 33.0, 25.0, 25.0], [0.0, 40.0, 20.0, 16.0]
    least = least_corrected(np.full(4, 3.0), *np.sqrt(squares))
    np.testing.assert_allclose(least, [5.0, 5.0, 13.0**0.5, 3.0])


@pytest.mark.usefixtures("plain_models")
@pytest.mark.slow
def test_the_steps_are_those_of_the_default_and_of_the_narrow_interval() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 2))
    t = x[:, 0] + rng.normal(size=300)
    log = tt.LoggedData(x, t, (t - x[:, 1]) ** 2 + rng.normal(size=300))
    policies = {"0": tt.Constant(0.0), "1": tt.Constant(1.0)}
    made = Steps([steps_of(log, policies)])
    factors = np.prod(list(made.factors().values()), axis=0)
    for interval, factor in ((None, factors), (tt.Narrow(), made.narrow())):
        found = tt.compare(log, policies, interval=interval, allow_untrusted=True)
        low, high = np.transpose([found[name].interval() for name in policies])
        half = factor * widths.NORMAL * made.number("se")
        np.testing.assert_allclose((high - low) / 2, half, rtol=5 * DIGITS)


def test_narrow_is_three_tenths_of_the_corrected_fit() -> None:
    # .7·10 + .3·(20 + 30) = 22
    assert narrow_se(10**0.5, 20**0.5, 30**0.5) == pytest.approx(22**0.5)


def test_what_the_standard_error_tells() -> None:
    # Errors 1 ± 2 have sd √8 and a mean of 1, whose variance is 8/2: no more than chance. Errors
    # 3 ± 1 have sd √2 and a mean of 3: 9 − 1 = 8 is left, in SE of 2 it is 2.
    one = np.array([-1.0, 3.0]), np.array([1.0, 3.0])
    other = np.array([2.0, 4.0]), np.array([2.0, 2.0])
    assert told_and_off([other]) == pytest.approx((2**0.5, 2**0.5))
    assert told_and_off([one]) == pytest.approx((2 / 8**0.5, 0.0))
    # (1 − 4)/4 and 8/4, on average .625
    assert told_and_off([one, other])[1] == pytest.approx(0.625**0.5)


def test_coverages_are_counted_as_loops_count_them(studied: list) -> None:
    names = [n for n in confounding.CLAIMED if confounding.DESIGNS[n].kind == "sound"]
    within, wide, estimates = 0, 0, 0
    for record in studied:
        if record["design"] not in names or record["n"] != 1000:
            continue
        found = record["default"]
        for i, truth in enumerate(record["truth"]):
            if found["value"][i] is None:
                continue
            estimates += 1
            wide += found["low"][i] <= truth <= found["high"][i]
            within += abs(found["value"][i] - truth) <= widths.NORMAL * found["se"][i]
    own = of_form(studied, names)
    among = np.isfinite(own.error)
    covers = covering(own, halves(own))
    assert (among.sum(), covers[WIDE][among].sum()) == (estimates, wide)
    assert covers["1.96·SE"][among].sum() == within
    narrow = halves(own)[NARROW]
    assert f"it covers {np.mean(np.abs(own.error[among]) <= narrow[among]):.3f}" in trade(studied)


def test_the_row_of_missing_outcomes_is_counted_as_loops_count_it(
    made_again: list, studied: list
) -> None:
    records = [r for r in records_in(structure.RECORDS) if "failed" not in r]
    own = [r for r in records if r["design"] == MISSING]
    covered, naive, logs = 0, 0, []
    for record in own:
        found = record["with"]
        for i, truth in enumerate(record["truth"]):
            covered += found["low"][i] <= truth <= found["high"][i]
            naive += abs(found["value"][i] - truth) <= widths.NORMAL * found["se"][i]
            logs.append(np.log((found["high"][i] - found["low"][i]) / 2 / found["se"][i]))
    n = len(logs)
    factor = np.exp(np.mean(logs)) / widths.NORMAL
    row = f"| {MISSING} | {n} | {naive / n:.3f} | {covered / n:.3f} | {factor:.2f} | "
    assert row in told_of_structure(records, made_again, studied)


def test_a_normal_law_is_covered_by_intervals_of_the_right_width() -> None:
    # Errors of sd √2 in intervals of ±1.96·√2.
    width = np.full(2, 2 * widths.NORMAL * 2**0.5)
    found = Found(np.array([-1.0, 1.0]), np.ones(2) > 0, width, np.ones(2), ["ok", "ok"])
    assert found.normal_coverage == pytest.approx(0.95)
