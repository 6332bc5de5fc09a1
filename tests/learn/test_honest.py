"""Pooling two halves: by hand, against Welch, and what follows for a decision."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

import titrant as tt
from learn.examples import quadratic_log
from titrant.inference.base import StudentInterval
from titrant.inference.diagnostics import Check, Diagnostics, Verdict
from titrant.learn.honest import (
    LEARNED,
    MEAN_DOSE,
    STATUS_QUO,
    HonestValue,
    PooledInference,
    pooled,
    pooled_comparison,
    student,
)

ROUNDING = 1e-12

POLICIES = {
    LEARNED: tt.Linear([1.0, -0.5]),
    STATUS_QUO: tt.StatusQuo(),
    MEAN_DOSE: tt.Constant(0.4),
}


def halves(n=200):
    log = quadratic_log(n)
    parts = log.rows(slice(0, n // 4)), log.rows(slice(n // 4, n))
    return tuple(
        tt.compare(part, POLICIES, estimator=tt.SelfNormalized(), allow_untrusted=True)
        for part in parts
    )


PARTS = halves()
HONEST = HonestValue(PARTS, maximize=False)


def test_two_intervals_by_hand():
    # Shares ¼ and ¾, centers 2 and 4: center 3.5. Variances (¼·.4)² = .01 and (¾·.4)² = .09:
    # se √.1. Degrees (.1)²/(.01²/5 + .09²/10) = .01/.00083 = 12.048.
    parts = [StudentInterval(2.0, 0.4, 5.0, "t"), StudentInterval(4.0, 0.4, 10.0, "t", "a note")]
    found = pooled(np.array([0.25, 0.75]), parts)
    assert found.center == pytest.approx(3.5)
    assert found.se == pytest.approx(math.sqrt(0.1))
    assert found.degrees == pytest.approx(12.0481927711)
    assert found.note == "a note"
    half = stats.t.ppf(0.975, found.degrees) * found.se
    assert found.at(0.95) == pytest.approx((3.5 - half, 3.5 + half))


def test_the_degrees_of_freedom_are_welchs():
    # The mean of two means has the error of their difference, halved.
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=9), rng.normal(size=14) * 3
    reference = stats.ttest_ind(a, b, equal_var=False)
    parts = [StudentInterval(x.mean(), stats.sem(x), len(x) - 1.0, "t") for x in (a, b)]
    found = pooled(np.array([0.5, 0.5]), parts)
    assert found.degrees == pytest.approx(reference.df, rel=ROUNDING)
    low, high = reference.confidence_interval()
    assert np.diff(found.at(0.95)) == pytest.approx((high - low) / 2, rel=1e-9)


@pytest.mark.parametrize("degrees", [math.inf, 7.0])
def test_intervals_without_error_or_with_normal_quantiles(degrees):
    certain = [StudentInterval(1.0, 0.0, degrees, "t")] * 2
    assert pooled(np.array([0.5, 0.5]), certain).at(0.95) == (1.0, 1.0)
    normal = [StudentInterval(1.0, 0.2, math.inf, "normal")] * 2
    assert pooled(np.array([0.5, 0.5]), normal).degrees == math.inf


def test_only_t_intervals_can_be_pooled():
    bernstein = tt.compare(
        quadratic_log(100), POLICIES, estimator=tt.IPW(), interval=tt.EmpiricalBernstein(),
        allow_untrusted=True,
    )  # fmt: skip
    with pytest.raises(TypeError, match="graded by t intervals"):
        student(bernstein[LEARNED].confidence)


def test_values_are_means_over_rows():
    shares = np.array([0.25, 0.75])
    for name in POLICIES:
        found = HONEST.comparison[name]
        values = [part[name].value for part in PARTS]
        assert found.value == pytest.approx(shares @ values, rel=ROUNDING)
        assert found.se == pytest.approx(np.hypot(*(shares * [p[name].se for p in PARTS])))
        assert found.rows == 200
        assert found.ess == pytest.approx(sum(part[name].ess for part in PARTS))
    assert HONEST.value == HONEST.comparison[LEARNED].value
    # The status quo is worth the mean outcome of all rows.
    assert HONEST.comparison[STATUS_QUO].value == pytest.approx(quadratic_log().outcome.mean())


@pytest.mark.parametrize("name", [STATUS_QUO, MEAN_DOSE])
def test_contrasts_are_paired_within_each_half(name):
    parts = [student(part.contrast(LEARNED, name).confidence) for part in PARTS]
    expected = pooled(np.array([0.25, 0.75]), parts)
    assert HONEST.contrast(name) == expected
    # Law: the contrast of a and b is minus that of b and a.
    back = HONEST.comparison.contrast(name, LEARNED).confidence
    assert back.center == pytest.approx(-expected.center)
    assert back.se == pytest.approx(expected.se)


def test_the_joint_covariance_gives_the_standard_errors():
    joint = HONEST.comparison
    np.testing.assert_allclose(
        np.sqrt(np.diagonal(joint.covariance)), [e.se for e in joint.estimates.values()]
    )
    assert isinstance(joint.inference, PooledInference)
    assert joint[LEARNED].bandwidth.h == pytest.approx(
        np.mean([part[LEARNED].bandwidth.h for part in PARTS])
    )
    assert joint[STATUS_QUO].bandwidth is None


def decided(difference: float, se: float, *, maximize=False, refused=False) -> HonestValue:
    """Return a value whose pooled difference to the status quo is given, with many degrees."""

    class Fixed(PooledInference):
        def interval(self, _):
            return StudentInterval(1.0, se, math.inf, "fixed")

        def contrast(self, *_):
            return StudentInterval(difference, se * math.sqrt(2), math.inf, "fixed")

    def part(comparison):
        verdict = Verdict.REFUSE if refused else Verdict.OK
        report = Diagnostics((Check("ess", 1.0, verdict, "ESS is 1."),))
        estimates = {
            n: type(e)(**{f: getattr(e, f) for f in e.__slots__} | {"diagnostics": report})
            for n, e in comparison.estimates.items()
        }
        return tt.Comparison(
            estimates=estimates, covariance=comparison.covariance, inference=Fixed((), np.ones(0))
        )

    # Two equal halves: the pooled error is that of one divided by √2.
    return HonestValue((part(PARTS[1]), part(PARTS[1])), maximize)


Z = stats.norm.ppf(0.95)


@pytest.mark.parametrize(
    ("difference", "maximize", "better"),
    [
        (-Z * 0.1 - 1e-9, False, True),
        (-Z * 0.1 + 1e-9, False, False),
        (Z * 0.1 + 1e-9, False, False),
        (Z * 0.1 + 1e-9, True, True),
        (Z * 0.1 - 1e-9, True, False),
    ],
)
def test_an_improvement_is_decided_by_one_side(difference, maximize, better):
    # One-sided 95 %: 1.645 SEs, not 1.96; in the direction of the outcome.
    honest = decided(difference, 0.1, maximize=maximize)
    assert honest.improves() is better
    gain, bound = honest.gain()
    assert gain == pytest.approx(difference if maximize else -difference)
    assert bound == pytest.approx(gain - Z * 0.1)
    assert (" excludes zero" in honest.finding()) is better


@pytest.mark.parametrize("maximize", [False, True])
def test_nothing_has_no_sign(maximize):
    said = decided(0.0, 0.0, maximize=maximize).finding()
    assert "bound is 0, which does not exclude zero" in said


def test_a_refused_grade_never_improves():
    honest = decided(-5.0, 0.1, refused=True)
    assert not honest.improves()
    assert not honest.trusted
    assert honest.verdict is Verdict.REFUSE
    assert "but the trust rules refuse" in honest.finding()
    assert honest.finding().endswith("(ess).")


def test_each_check_is_taken_from_the_half_where_it_is_worse():
    worse = pooled_comparison(PARTS)[LEARNED].diagnostics
    order = list(Verdict)
    reports = [part[LEARNED].diagnostics for part in PARTS]
    # Of some checks, such as `dose_jump`, a half may have too few rows: then the other one speaks.
    assert set(worse.names) == {name for report in reports for name in report.names}
    for check in worse:
        found = [report[check.name].verdict for report in reports if check.name in report.names]
        assert order.index(check.verdict) == max(map(order.index, found))


def test_everything_is_plain_when_asked():
    plain = json.loads(json.dumps(HONEST.to_dict(), allow_nan=False))
    assert plain["value"] == HONEST.value
    assert set(plain["contrasts"]) == {STATUS_QUO, MEAN_DOSE}
    assert len(plain["halves"]) == 2
    assert repr(HONEST).startswith("HonestValue(honest value 1.")
    assert "\n" not in repr(HONEST)
    html = HONEST._repr_html_()
    assert "learned − status quo" in html
    assert HONEST.verdict.value in html


def test_unknown_names_are_named():
    with pytest.raises(tt.InvalidArgument, match="There is no policy 'best'"):
        HONEST.contrast("best")
    with pytest.raises(tt.InvalidArgument, match="level"):
        HONEST.gain(level=1.5)
