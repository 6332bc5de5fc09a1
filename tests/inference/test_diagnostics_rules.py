"""Each trust rule on both sides of each limit, and what the report made of them says."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.inference import Check, Diagnostics, Verdict, trust_rules
from titrant.inference.balance import Imbalance

OK, WARN, REFUSE = Verdict.OK, Verdict.WARN, Verdict.REFUSE
TINY = 1e-9  # a step across a limit


def share(one: float) -> Check:
    return trust_rules.largest_weight_share((one, one, one))


def outside(part: float) -> Check:
    return trust_rules.support(part, 0.02, surrogate=False)


def raised(part: float) -> Check:
    return trust_rules.floor_share(part, 0.02, 0.5)


def near_bound(part: float) -> Check:
    return trust_rules.boundary_mass(part, corrected=False)


def near_corrected_bound(part: float) -> Check:
    return trust_rules.boundary_mass(part, corrected=True)


def ess(value: float) -> Check:
    return trust_rules.effective_sample_size(value, 1000)


def mean_weight(mean: float) -> Check:
    return trust_rules.mean_weight(mean, 0.1)


def sure_mean_weight(mean: float) -> Check:
    return trust_rules.mean_weight(mean, 0.01)


def unsure_mean_weight(mean: float) -> Check:
    return trust_rules.mean_weight(mean, 0.3)


def stabilized(mean: float) -> Check:
    return trust_rules.stabilized_weight(mean, 0.05)


def sure_stabilized(mean: float) -> Check:
    return trust_rules.stabilized_weight(mean, 0.001)


def pit(distance: float) -> Check:
    return trust_rules.propensity_pit(distance, 1e-4)


def pit_by_chance(distance: float) -> Check:
    return trust_rules.propensity_pit(distance, 1e-3)


@pytest.mark.parametrize(
    ("rule", "value", "verdict"),
    [
        (ess, 30.0, OK),
        (ess, 30.0 - TINY, WARN),
        (ess, 10.0, WARN),
        (ess, 10.0 - TINY, REFUSE),
        (ess, 0.0, REFUSE),
        (ess, math.nan, REFUSE),
        (share, 0.1, OK),
        (share, 0.1 + TINY, WARN),
        (share, 0.3, WARN),
        (share, 0.3 + TINY, REFUSE),
        (trust_rules.weight_tail, 0.7, OK),
        (trust_rules.weight_tail, 0.7 + TINY, WARN),
        (trust_rules.weight_tail, -0.5, OK),
        (mean_weight, 1.0 + 0.3 - TINY, OK),
        (mean_weight, 1.0 + 0.3 + TINY, WARN),
        (mean_weight, 1.0 - 0.3 - TINY, WARN),
        (sure_mean_weight, 1.0 + 0.03 - TINY, OK),
        (sure_mean_weight, 1.0 - 0.03 - TINY, WARN),
        # Refused when it is both far from 1 in its own standard errors and off by a factor of 2.
        (sure_mean_weight, 0.5, WARN),
        (sure_mean_weight, 0.5 - TINY, REFUSE),
        (sure_mean_weight, 2.0, WARN),
        (sure_mean_weight, 2.0 + TINY, REFUSE),
        (unsure_mean_weight, 0.3, OK),
        (raised, 0.05, OK),
        (raised, 0.05 + TINY, WARN),
        (outside, 0.1, OK),
        (outside, 0.1 + TINY, WARN),
        (outside, 0.5, WARN),
        (outside, 0.5 + TINY, REFUSE),
        (near_bound, 0.0, OK),
        (near_bound, TINY, WARN),
        (near_corrected_bound, 1.0, OK),
        (trust_rules.smoothing_gap, 1.5, OK),
        (trust_rules.smoothing_gap, 1.5 + TINY, WARN),
        (trust_rules.outcome_model_gap, 2.58, OK),
        (trust_rules.outcome_model_gap, 2.58 + TINY, WARN),
        (trust_rules.outcome_model_gap, math.inf, WARN),
        (trust_rules.bandwidth_sensitivity, 4.0, OK),
        (trust_rules.bandwidth_sensitivity, 4.0 + TINY, WARN),
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
    assert trust_rules.stabilized_weight(math.inf, math.inf).verdict is WARN


def test_one_huge_weight_is_not_excused_by_the_se_it_makes():
    found = trust_rules.stabilized_weight(2.8e18, 2.8e18)
    assert found.verdict is WARN
    assert "is 2.8e+18 ± 2.8e+18 and" in found.message
    assert trust_rules.stabilized_weight(1.9, 0.5).verdict is OK


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
    found = trust_rules.covariate_balance(Imbalance(np.array(in_sd), np.array(in_se)), names)
    assert found.verdict is verdict
    assert f"'{named}'" in found.message
    assert found.value == in_sd[names.index(named)]


def test_messages_carry_the_numbers_the_rule_and_the_remedy():
    assert ess(8.0).message == (
        "The effective sample size is 8 of 1,000 rows (30 wanted, 10 needed). "
        "Ask about a policy closer to the log, widen the bandwidth, or collect more rows."
    )
    assert trust_rules.largest_weight_share((0.02, 0.08, 0.14)).message == (
        "The largest weight holds 2 % of all weight (10 % is much, 30 % too much), "
        "the largest 5 8 %, the largest 10 14 %."
    )
    surrogate = trust_rules.support(0.25, 0.017, surrogate=True).message
    assert "25 %" in surrogate
    assert "0.017" in surrogate
    assert "linear-Gaussian model fitted for this check alone" in surrogate
    assert "`Clipped`" in surrogate


# The report


def report() -> Diagnostics:
    return Diagnostics.of([ess(200.0), share(0.2), "The tail was not fitted.", ess(5.0)])


def test_the_worst_check_is_the_verdict():
    assert Diagnostics(()).verdict is OK
    assert Diagnostics((ess(50.0), share(0.2))).verdict is WARN
    assert report().verdict is REFUSE


def test_a_refusal_raises_with_numbers_and_remedy_and_nothing_else_does():
    Diagnostics((share(0.2),)).require_trust()
    with pytest.raises(UntrustedEstimate, match=r"size is 5 of 1,000 rows .* `allow_untrusted="):
        report().require_trust()


def test_checks_by_name():
    found = Diagnostics((ess(50.0), share(0.2)))
    assert found.names == ("effective_sample_size", "largest_weight_share")
    assert found["largest_weight_share"].value == 0.2
    assert [c.name for c in found] == list(found.names)
    with pytest.raises(InvalidArgument, match=r"no check 'ess'.* 'effective_sample_size', "):
        found["ess"]


def test_a_report_is_plain_when_asked_and_readable_otherwise():
    found = Diagnostics.of([ess(8.0), trust_rules.outcome_model_gap(math.inf), "A <note>."])
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
    a, b = Diagnostics.of([ess(50.0), "One."]), Diagnostics.of([share(0.2), "Two."])
    assert (a + b).names == ("effective_sample_size", "largest_weight_share")
    assert (a + b).notes == ("One.", "Two.")
