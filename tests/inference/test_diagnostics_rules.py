"""Each trust rule on both sides of each limit, and what the report made of them says."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.inference import Check, Diagnostics, Verdict
from titrant.inference.trust import rules
from titrant.inference.trust.balance import BinnedContext, BinnedImbalance, Bins, Imbalance
from titrant.scaling import Held

OK, WARN, REFUSE = Verdict.OK, Verdict.WARN, Verdict.REFUSE
TINY = 1e-9  # a step across a limit


def share(one: float) -> Check:
    return rules.largest_weight_share((one, one, one))


def outside(part: float) -> Check:
    return rules.support(part, 0.02, surrogate=False)


def raised(part: float) -> Check:
    return rules.floor_share(part, 0.02, 0.5, 1.01)


def harmlessly_raised(part: float) -> Check:
    return rules.floor_share(part, 0.02, 0.5, 1.0)


def tail(index: float) -> Check:
    return rules.influence_tail(index, 0.71)


def tail_of_many(index: float) -> Check:
    return rules.influence_tail(index, 0.7)


def jump(in_se: float) -> Check:
    return rules.dose_jump(-1.0, in_se, -0.71)


def bend(in_se: float) -> Check:
    return rules.dose_jump(-1.0, in_se, -0.7)


def turn(in_se: float) -> Check:
    return rules.dose_jump(-1.0, in_se, 2.0)


def near_bound(part: float) -> Check:
    return rules.boundary_mass(part, corrected=False)


def near_corrected_bound(part: float) -> Check:
    return rules.boundary_mass(part, corrected=True)


def ess(value: float) -> Check:
    return rules.effective_sample_size(value, 1000)


def mean_weight(mean: float) -> Check:
    return rules.mean_weight(mean, 0.1)


def sure_mean_weight(mean: float) -> Check:
    return rules.mean_weight(mean, 0.01)


def robust_mean_weight(mean: float) -> Check:
    return rules.mean_weight(mean, 0.01, rules.MEAN_WEIGHT_GAP_DR)


def share_of_events(value: float) -> Check:
    return rules.value_range(value, 0.0, 1.0)


def unsure_mean_weight(mean: float) -> Check:
    return rules.mean_weight(mean, 0.3)


def stabilized(mean: float) -> Check:
    return rules.stabilized_weight(mean, 0.05)


def sure_stabilized(mean: float) -> Check:
    return rules.stabilized_weight(mean, 0.001)


def pit(distance: float) -> Check:
    return rules.propensity_pit(distance, 1e-4)


def pit_by_chance(distance: float) -> Check:
    return rules.propensity_pit(distance, 1e-3)


@pytest.mark.parametrize(
    ("rule", "value", "verdict"),
    [
        (robust_mean_weight, 0.75, OK),
        (robust_mean_weight, 0.75 - TINY, WARN),
        (robust_mean_weight, 0.5 - TINY, REFUSE),
        (share_of_events, 0.0, OK),
        (share_of_events, -TINY, WARN),
        (share_of_events, 1.0 + TINY, WARN),
        (ess, 20.0, OK),
        (ess, 20.0 - TINY, WARN),
        (ess, 10.0, WARN),
        (ess, 10.0 - TINY, REFUSE),
        (ess, 0.0, REFUSE),
        (ess, math.nan, REFUSE),
        (share, 0.2, OK),
        (share, 0.2 + TINY, WARN),
        (share, 0.3, WARN),
        (share, 0.3 + TINY, REFUSE),
        (tail, 0.8, OK),
        (tail, 0.8 + TINY, WARN),
        (tail, -0.5, OK),
        (tail_of_many, 2.0, OK),
        (mean_weight, 1.0 + 0.3 - TINY, OK),
        (mean_weight, 1.0 + 0.3 + TINY, WARN),
        (mean_weight, 1.0 - 0.3 - TINY, WARN),
        (sure_mean_weight, 1.0 + 0.05 - TINY, OK),
        (sure_mean_weight, 1.0 - 0.05 - TINY, WARN),
        # Refused when it is both far from 1 in its own standard errors and off by a factor of 2.
        (sure_mean_weight, 0.5, WARN),
        (sure_mean_weight, 0.5 - TINY, REFUSE),
        (sure_mean_weight, 2.0, WARN),
        (sure_mean_weight, 2.0 + TINY, REFUSE),
        (unsure_mean_weight, 0.3, OK),
        (raised, 0.05, OK),
        (raised, 0.05 + TINY, WARN),
        (harmlessly_raised, 0.9, OK),
        (jump, 3.0, OK),
        (jump, 3.0 + TINY, WARN),
        (bend, 9.0, OK),
        (turn, 9.0, OK),
        (rules.cut_predictions, 1.0, OK),
        (rules.cut_predictions, 1.0 + TINY, WARN),
        (outside, 0.1, OK),
        (outside, 0.1 + TINY, WARN),
        (outside, 0.5, WARN),
        (outside, 0.5 + TINY, REFUSE),
        (near_bound, 0.0, OK),
        (near_bound, TINY, WARN),
        (near_corrected_bound, 1.0, OK),
        (rules.smoothing_gap, 1.5, OK),
        (rules.smoothing_gap, 1.5 + TINY, WARN),
        (rules.outcome_model_gap, 4.0, OK),
        (rules.outcome_model_gap, 4.0 + TINY, WARN),
        (rules.outcome_model_gap, math.inf, WARN),
        (rules.bandwidth_sensitivity, 4.0, OK),
        (rules.bandwidth_sensitivity, 4.0 + TINY, WARN),
        (pit, 0.05, OK),
        (pit, 0.05 + TINY, WARN),
        (pit_by_chance, 0.9, OK),
        (stabilized, 1.0 + 0.15 - TINY, OK),
        (stabilized, 1.0 + 0.15 + TINY, WARN),
        (stabilized, 1.0 - 0.15 - TINY, WARN),
        (sure_stabilized, 1.0 + 0.1 - TINY, OK),
        (sure_stabilized, 1.0 + 0.1 + TINY, WARN),
    ],
)
def test_each_rule_on_both_sides_of_its_limits(rule, value, verdict):
    found = rule(value)
    assert found.verdict is verdict
    assert found.value == value or math.isnan(value)
    # Sentences; when all is well the fact alone.
    assert found.message.endswith(".")
    facts = found.message.count(". ") + 1
    assert facts == (1 if verdict is OK else 2)


def test_an_infinite_stabilized_weight_warns():
    # A held-out density of 0 makes mean and standard error infinite: inf > 3·inf is False.
    assert rules.stabilized_weight(math.inf, math.inf).verdict is WARN


def test_one_huge_weight_is_not_excused_by_the_se_it_makes():
    found = rules.stabilized_weight(2.8e18, 2.8e18)
    assert found.verdict is WARN
    assert "is 2.8e+18 ± 2.8e+18 and" in found.message
    assert rules.stabilized_weight(1.9, 0.5).verdict is OK


@pytest.mark.parametrize(
    ("in_sd", "in_se", "named", "verdict"),
    [
        # One context: the limits are .1 sd and Φ⁻¹(1 − .0027/2) = 3.000 SE.
        ([0.11], [2.99], "age", OK),
        ([0.09], [9.0], "age", OK),
        ([0.11], [3.01], "age", WARN),
        # Two contexts: Φ⁻¹(1 − .0027/4) = 3.205 SE. The worst is named first by what is wrong
        # with it, then by its size.
        ([0.11, 0.5], [3.1, 1.0], "bmi", OK),
        ([0.11, 0.5], [3.21, 1.0], "age", WARN),
        ([0.11, 0.5], [3.21, 3.21], "bmi", WARN),
    ],
)
def test_balance_must_be_off_both_materially_and_beyond_chance(in_sd, in_se, named, verdict):
    names = ("age", "bmi")[: len(in_sd)]
    found = rules.covariate_balance(Imbalance(np.array(in_sd), np.array(in_se)), names)
    assert found.verdict is verdict
    assert f"'{named}'" in found.message
    assert found.value == in_sd[names.index(named)]


def binned(in_sd, in_se, leveled, se=1.0) -> Check:
    """Return the check of two contexts, the first with two levels, the second in three parts."""
    bins = Bins(
        (
            BinnedContext("sex", np.array([0.5]), np.array([0.0, 1.0])),
            BinnedContext("age", np.array([40.0, 60.0])),
        ),
        Held.of(np.zeros((9, 2))),
    )
    share, weighted = np.array([0.5, 0.5, 0.3, 0.3, 0.4]), np.array([0.6, 0.4, 0.2, 0.3, 0.5])
    moved = None if leveled is None else np.array(leveled)
    found = BinnedImbalance(share, weighted, np.array(in_sd), np.array(in_se), 5, moved)
    return rules.binned_balance(found, bins, se)


FIVE = 3.46  # Φ⁻¹(1 − .0027/10), the limit of five bins


@pytest.mark.parametrize(
    ("in_sd", "in_se", "leveled", "named", "verdict"),
    [
        # Off by more than .1 sd, beyond chance, and with more than .3 SE of the value in it.
        ([0, 0, 0.11, 0, 0], [0, 0, FIVE + 0.01, 0, 0], [0, 0.31], "'age' up to 40", WARN),
        ([0, 0, 0.11, 0, 0], [0, 0, FIVE + 0.01, 0, 0], [0, -0.31], "'age' up to 40", WARN),
        ([0, 0, 0.09, 0, 0], [0, 0, 9.0, 0, 0], [0, 0.9], "'age' up to 40", OK),
        ([0, 0, 0.11, 0, 0], [0, 0, FIVE - 0.01, 0, 0], [0, 0.9], "'age' up to 40", OK),
        ([0, 0, 0, 0.5, 0], [0, 0, 0, 9.0, 0], [0, 0.3], "'age' from 40 to 60", OK),
        # A value that moves by a whole SE is too much, whatever the bins show.
        ([0, 0, 0, 0, 0.01], [0, 0, 0, 0, 0.1], [0, 1.01], "'age' above 60", WARN),
        # The context that moves the value is named, not the one that is off most.
        ([0.9, 0.9, 0, 0.2, 0], [9, 9, 0, 9, 0], [0.1, 0.5], "'age' from 40 to 60", WARN),
        ([0.9, 0.9, 0, 0.2, 0], [9, 9, 0, 9, 0], [0.6, 0.5], "'sex' = 0", WARN),
        # Without residuals, material imbalance beyond chance is enough.
        ([0.2, 0.2, 0, 0, 0], [9, 9, 0, 0, 0], None, "'sex' = 0", WARN),
        ([0.2, 0.2, 0, 0, 0], [3, 3, 0, 0, 0], None, "'sex' = 0", OK),
    ],
)
def test_bins_are_off_where_that_moves_the_value(in_sd, in_se, leveled, named, verdict):
    found = binned(in_sd, in_se, leveled)
    assert found.verdict is verdict
    assert f"share of {named} goes from" in found.message
    assert found.message.endswith(".")


def test_an_estimate_without_error_cannot_be_moved():
    assert binned([0.5] * 5, [9] * 5, [0.0, 0.0], se=0.0).verdict is OK


def test_messages_carry_the_numbers_the_rule_and_the_remedy():
    assert ess(8.0).message == (
        "The effective sample size is 8 of 1,000 rows (20 wanted, 10 needed). "
        "Ask about a policy closer to the log, widen the bandwidth, or collect more rows."
    )
    assert rules.largest_weight_share((0.02, 0.08, 0.14)).message == (
        "The largest weight holds 2 % of all weight (20 % is much, 30 % too much), "
        "the largest 5 8 %, the largest 10 14 %."
    )
    surrogate = rules.support(0.25, 0.017, surrogate=True).message
    assert "25 %" in surrogate
    assert "0.017" in surrogate
    assert "linear-Gaussian model fitted for this check alone" in surrogate
    assert "`Clipped`" in surrogate


# The report


def report() -> Diagnostics:
    return Diagnostics.of([ess(200.0), share(0.25), "The tail was not fitted.", ess(5.0)])


def test_the_worst_check_is_the_verdict():
    assert Diagnostics(()).verdict is OK
    assert Diagnostics((ess(50.0), share(0.25))).verdict is WARN
    assert report().verdict is REFUSE


def test_a_refusal_raises_with_numbers_and_remedy_and_nothing_else_does():
    Diagnostics((share(0.25),)).require_trust()
    with pytest.raises(UntrustedEstimate, match=r"size is 5 of 1,000 rows .* `allow_untrusted="):
        report().require_trust()


def test_checks_by_name():
    found = Diagnostics((ess(50.0), share(0.25)))
    assert found.names == ("effective_sample_size", "largest_weight_share")
    assert found["largest_weight_share"].value == 0.25
    assert [c.name for c in found] == list(found.names)
    with pytest.raises(InvalidArgument, match=r"no check 'ess'.* 'effective_sample_size', "):
        found["ess"]


def test_a_report_is_plain_when_asked_and_readable_otherwise():
    found = Diagnostics.of([ess(8.0), rules.outcome_model_gap(math.inf), "A <note>."])
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["verdict"] == "refuse"
    assert plain["checks"]["effective_sample_size"]["value"] == 8.0
    assert plain["checks"]["outcome_model_gap"]["value"] is None
    assert plain["notes"] == ["A <note>."]
    lines = str(found).splitlines()
    assert lines[0].startswith("refuse  effective_sample_size: The effective")
    assert lines[-1] == "note    A <note>."
    assert repr(found) == "Diagnostics(refuse; 2 checks; effective_sample_size, outcome_model_gap)"
    assert "A &lt;note&gt;." in found._repr_html_()


def test_reports_add_up():
    a, b = Diagnostics.of([ess(50.0), "One."]), Diagnostics.of([share(0.25), "Two."])
    assert (a + b).names == ("effective_sample_size", "largest_weight_share")
    assert (a + b).notes == ("One.", "Two.")


def test_the_page_names_the_warnings_that_bear_on_confounding():
    page = Path(__file__).parents[2] / "docs" / "how-to" / "read-the-trust-report.md"
    told = page.read_text(encoding="utf-8").split("bear on confounding?")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", told)) == rules.CONFOUNDING


@pytest.mark.parametrize(
    "check",
    [
        rules.floor_share(0.1, 0.02, 0.5, math.inf),
        rules.smoothing_gap(math.inf),
        rules.outcome_model_gap(math.inf),
        rules.ratio_model_gap(math.inf, 1.0),
        rules.bandwidth_sensitivity(math.inf),
        rules.dose_jump(1.0, math.inf, 1.0),
        rules.cut_predictions(math.inf),
    ],
)
def test_a_standard_error_of_0_is_no_unit(check):
    assert check.verdict is WARN
    assert "inf" not in check.message
    assert "more than the SE of 0" in check.message


def test_what_rows_without_variation_do_not_show():
    found = rules.no_variation(1.0, 60.0, "groups", binary=True)
    assert (found.value, found.verdict) == (0.05, WARN)
    assert "60 groups, an outcome of 0 in up to about 5 % of them" in found.message
    assert rules.no_variation(2.5, 2.0, "rows", binary=False).value == 1.0
