"""Bounds under hidden causes: laws, a naive loop, groups, weights and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import naive
import titrant as tt
from evaluation.logs import FAR, KINDS, NEAR, changed, kind_name, propensity_for, smooth_log
from sweeps import long
from titrant.doubt.sensitivity import GRID, LARGEST
from titrant.estimators.base import WeightedEstimator
from titrant.estimators.form import is_ratio

ROUNDING = 1e-9  # of values of size one; y + (ψ(e) − e) − r is ψ(e) up to rounding
WEIGHTED = [kind for kind in KINDS if isinstance(kind, WeightedEstimator)]
FREE = [kind for kind in KINDS if not isinstance(kind, WeightedEstimator)]
SOME = (1.0, 1.2, 2.0, 6.0)
LOG = smooth_log()


def asked(log=LOG, policy=NEAR, against=FAR, estimator=None, **more):
    dr = tt.DoublyRobust(outcome=LinearRegression()) if estimator is None else estimator
    given = {"propensity": propensity_for(dr), "bandwidth": 0.5, "benchmarks": ()} | more
    return tt.sensitivity(log, policy, against, estimator=dr, allow_untrusted=True, **given)


ANSWERS: dict[tuple[str, str], tt.Sensitivity] = {}


def usual(estimator, against=FAR):
    """The answer for the usual log, which several laws are held against."""
    key = repr(estimator), repr(against)
    if key not in ANSWERS:
        ANSWERS[key] = asked(against=against, estimator=estimator)
    return ANSWERS[key]


each_kind = pytest.mark.parametrize("estimator", WEIGHTED, ids=kind_name)


@each_kind
def test_no_hidden_cause_gives_the_estimate(estimator):
    more = {"bandwidth": 0.5, "allow_untrusted": True, "propensity": propensity_for(estimator)}
    compared = tt.compare(LOG, {"a": NEAR, "b": FAR}, estimator=estimator, **more)
    found, difference = usual(estimator, None), compared.contrast("a", "b")
    assert found.bounds(1.0) == (compared["a"].value,) * 2
    np.testing.assert_allclose(found.interval(1.0), compared["a"].interval(), rtol=ROUNDING)
    apart = usual(estimator)
    np.testing.assert_allclose(apart.bounds(1.0), (difference.difference,) * 2, rtol=ROUNDING)
    np.testing.assert_allclose(apart.interval(1.0), difference.interval(), rtol=ROUNDING)


@each_kind
@pytest.mark.parametrize("against", [None, FAR, tt.StatusQuo()], ids=["value", "far", "logged"])
def test_bounds_are_nested(estimator, against):
    rows = usual(estimator, against).table(GRID)
    lower, upper = (np.array([row[end] for row in rows]) for end in ("lower", "upper"))
    assert (np.diff(lower) <= ROUNDING).all()
    assert (np.diff(upper) >= -ROUNDING).all()


@each_kind
def test_upper_of_y_is_minus_lower_of_minus_y(estimator):
    found = usual(estimator)
    mirrored = asked(changed(LOG, outcome=-LOG.outcome), estimator=estimator)
    for gamma in SOME:
        (a, b), (c, d) = found.bounds(gamma), mirrored.bounds(gamma)
        np.testing.assert_allclose((a, b), (-d, -c), atol=ROUNDING)
        (a, b), (c, d) = found.interval(gamma), mirrored.interval(gamma)
        np.testing.assert_allclose((a, b), (-d, -c), atol=ROUNDING)


@each_kind
def test_bounds_follow_scale_and_shift_of_the_outcome(estimator):
    found = usual(estimator, None)
    other = asked(changed(LOG, outcome=3.0 * LOG.outcome), against=None, estimator=estimator)
    for gamma in SOME:
        np.testing.assert_allclose(other.bounds(gamma), np.multiply(found.bounds(gamma), 3.0))
    if is_ratio(estimator):  # un-normalized values do not move with the zero of the outcome
        moved = asked(changed(LOG, outcome=LOG.outcome + 7.0), against=None, estimator=estimator)
        for gamma in SOME:
            np.testing.assert_allclose(moved.bounds(gamma), np.add(found.bounds(gamma), 7.0))


@pytest.mark.parametrize("bounds", [None, (-2.5, 2.5)], ids=["unbounded", "bounded"])
@pytest.mark.parametrize("gamma", [1.3, 3.0])
def test_against_loops(gamma, bounds):
    log = LOG if bounds is None else LOG.rows(np.abs(LOG.treatment) < 2.5).with_bounds(bounds)
    h, estimator = 0.5, tt.SelfNormalized()
    limits = {} if bounds is None else {"lower": [bounds[0]], "upper": [bounds[1]]}
    share = []
    for policy in (NEAR, FAR):
        rows = zip(policy(log.context), log.treatment, log.propensity, strict=True)
        w = [
            naive.weight("Epanechnikov", 1, h, tau=[tau], t=[t], q=q, **limits)
            for tau, t, q in rows
        ]
        share.append([wi / sum(w) for wi in w])
    y = log.outcome.tolist()
    upper = naive.hidden_cause(share[0], y, gamma)
    found = asked(log, against=None, estimator=estimator)
    assert found.bounds(gamma)[1] == pytest.approx(upper, rel=ROUNDING)
    # a difference: rows that both policies use alike cancel
    signed = [a - b for a, b in zip(*share, strict=True)]
    apart = asked(log, estimator=estimator).bounds(gamma)
    e = [yi - float(np.mean(y)) for yi in y]
    own = [
        sum(a * ei for a, ei in zip(signed, e, strict=True)),
        naive.hidden_cause(signed, e, gamma),
        -naive.hidden_cause(signed, [-ei for ei in e], gamma),
    ]
    assert apart == pytest.approx((own[2], own[1]), rel=ROUNDING)
    assert own[2] < own[0] < own[1]


def test_a_difference_is_bounded_more_tightly_than_its_parts():
    close = replace(NEAR, intercept=NEAR.intercept + 0.1)
    both = asked(policy=close, against=NEAR)
    alone = [asked(policy=policy, against=None) for policy in (close, NEAR)]
    (low, high), (a, b), (c, d) = (s.bounds(1.5) for s in (both, *alone))
    assert high - low < 0.4 * ((b - c) - (a - d))


def test_standard_error_against_the_bootstrap():
    """With the cut-off found again in every draw: at the quantile it adds nothing."""
    log, h, gamma = smooth_log(800, seed=3), 0.6, 2.0
    found = asked(
        log, against=None, estimator=tt.SelfNormalized(), bandwidth=h, interval=tt.Normal()
    )
    low, high = found.bounds(gamma)[1], found.interval(gamma)[1]
    se = (high - low) / 1.959964
    u = (log.treatment - NEAR(log.context)) / h
    w = np.maximum(0.75 * (1 - u**2), 0.0) / log.propensity
    near = np.flatnonzero(w)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(300):
        n = rng.poisson(1.0, len(w))[near]
        a = n * w[near] / (n @ w[near])
        draws.append(naive.hidden_cause(a[n > 0], log.outcome[near][n > 0], gamma))
    # 300 draws know a standard deviation to 4 %; the models' share is 0
    assert se == pytest.approx(np.std(draws), rel=0.12)


def test_groups_and_weights():
    rng = np.random.default_rng(1)
    log = LOG
    parts = log.context, log.treatment, log.outcome, log.propensity
    once = asked(log)
    # weights that are all 2 change nothing; groups of one row neither
    same = asked(tt.LoggedData(*parts, weights=np.full(len(log), 2.0)))
    alone = asked(tt.LoggedData(*parts, groups=np.arange(len(log))))
    for other in (same, alone):
        np.testing.assert_allclose(other.bounds(2.0), once.bounds(2.0), rtol=ROUNDING)
        np.testing.assert_allclose(other.interval(2.0), once.interval(2.0), rtol=1e-6)
    # a row of weight 0 is not there
    zero = rng.random(len(log)) < 0.2
    weighted = tt.LoggedData(*parts, weights=1.0 - zero)
    kept = tt.LoggedData(*(part[~zero] for part in parts))
    by = {"estimator": tt.SelfNormalized(), "against": None}
    np.testing.assert_allclose(
        asked(weighted, **by).bounds(2.0), asked(kept, **by).bounds(2.0), rtol=ROUNDING
    )
    # rows that come in copies are one group: same bounds, same interval
    twice = tt.LoggedData(
        *(np.repeat(part, 2, axis=0) for part in parts), groups=np.repeat(np.arange(len(log)), 2)
    )
    np.testing.assert_allclose(
        asked(twice, **by).bounds(2.0), asked(log, **by).bounds(2.0), rtol=ROUNDING
    )


def test_over_files(tmp_path):
    log = smooth_log(600)
    pq.write_table(pa.table(log.to_columns()), tmp_path / "log.parquet", row_group_size=150)
    columns = tt.Columns(
        treatment="treatment", outcome="outcome", propensity="propensity", context=log.names
    )
    files = tt.scan_parquet(tmp_path / "log.parquet", columns)
    by = {"estimator": tt.SelfNormalized()}
    one, other = asked(log, **by), asked(files, **by)
    for gamma in SOME:
        np.testing.assert_allclose(one.bounds(gamma), other.bounds(gamma), rtol=ROUNDING)
        np.testing.assert_allclose(one.interval(gamma), other.interval(gamma), rtol=ROUNDING)
    # the cut-off of a sample makes the bounds wider, never tighter
    few = asked(tt.scan_parquet(tmp_path / "log.parquet", columns, sample_rows=100), **by)
    low, high = few.bounds(2.0)
    assert low <= one.bounds(2.0)[0] + ROUNDING
    assert high >= one.bounds(2.0)[1] - ROUNDING


def test_missing_outcomes_and_two_doses():
    y = LOG.outcome.copy()
    y[::5] = np.nan
    gaps = tt.LoggedData(LOG.context, LOG.treatment, y, LOG.propensity, missing_outcome="weight")
    rows = asked(gaps).table(SOME)
    assert np.isfinite([list(row.values()) for row in rows]).all()
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(300, 2)), rng.normal(size=(300, 2))
    log = tt.LoggedData(x, t, (t**2).sum(axis=1) + rng.normal(size=300))
    doses = [tt.Constant([0.2, 0.1]), tt.Constant([1.0, 0.5])]
    found = asked(log, *doses, propensity=tt.MultivariateGaussian(), bandwidth=0.8)
    assert found.bounds(2.0)[0] < found.estimate < found.bounds(2.0)[1]


def test_tipping_points():
    found = asked()
    bound, interval = found.tipping.bound, found.tipping.interval
    assert 1.0 < interval < bound < LARGEST
    # just below it the end is on its side of 0, and at it no longer
    for tip, end in ((bound, found.bounds), (interval, found.interval)):
        assert end(tip / 1.001)[1] < 0.0 <= end(tip)[1]
    # the further apart, the stronger the cause that it takes
    tips = [
        asked(against=replace(FAR, intercept=c)).tipping.bound or np.inf for c in (0.5, 0.7, 0.9)
    ]
    assert tips == sorted(tips)
    assert tips[0] < tips[-1]
    # a wider interval tips earlier
    assert asked(level=0.99).tipping.interval < interval
    assert asked(policy=FAR, against=NEAR).tipping.bound == pytest.approx(bound)


def test_verdicts():
    found = asked(against=None)
    tips = {"bound": 2.0, "interval": 1.5}
    for interval, benchmarks, verdict in (
        (1.0, {}, "undecided"),
        (1.05, {"a": 1.01}, "fragile"),
        (1.5, {"a": 1.7, "b": 1.1}, "doubtful"),
        (1.5, {"a": 1.2}, "robust"),
        (None, {"a": 1.2}, "robust"),
        (1.5, {}, "unrated"),
        (None, {}, "robust"),
    ):
        tipping = replace(found.tipping, **(tips | {"interval": interval}))
        one = replace(found, tipping=tipping, benchmarks=benchmarks)
        assert one.verdict == verdict
        assert one.sentence.lower().startswith(verdict)
        assert one.sentence.endswith(".")


def test_what_is_shown():
    found = asked()
    assert "tipping Γ" in repr(found)
    assert str(found) == found.sentence
    assert "<table>" in found._repr_html_()
    plain = found.to_dict()
    assert plain["tipping"] == {"bound": found.tipping.bound, "interval": found.tipping.interval}
    assert [row["gamma"] for row in plain["bounds"]] == sorted({*GRID, 1.1, 1.25, 1.5, 2, 3, 5})
    axes = replace(found, benchmarks={"age": 1.3, "$x": 1.1}).plot()
    assert axes.get_xlabel() == "strength Γ of a hidden cause"


def test_benchmarks_tell_strong_contexts_from_weak_ones():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(500, 3))
    t = x[:, 0] + 0.3 * x[:, 1] + rng.normal(size=500)
    log = tt.LoggedData(x, t, t**2 + x[:, 0] + 0.3 * rng.normal(size=500))
    model = {"propensity": tt.LinearGaussian(), "bandwidth": 0.5}
    found = asked(log, tt.Constant(0.5), tt.Constant(0.0), benchmarks=None, **model)
    assert list(found.benchmarks) == ["x0", "x1", "x2"]
    # a coefficient of 0 is estimated as ± .045, which moves log f by .09 in one row of ten or so
    assert found.benchmarks["x2"] < 1.2 < found.benchmarks["x1"] < found.benchmarks["x0"]
    assert found.benchmark_rows == 500
    # a known propensity is not fitted without a context: the default model is, twice
    known = log.with_propensity(norm.pdf(t, x[:, 0] + 0.3 * x[:, 1]))
    one = asked(known, tt.Constant(0.5), None, benchmarks=["x0"], bandwidth=0.5)
    assert list(one.benchmarks) == ["x0"]
    assert one.benchmarks["x0"] > 1.5


@pytest.mark.parametrize("against", [None, tt.Shift(-0.2), NEAR], ids=["value", "shift", "rule"])
def test_policies_that_move_the_dose(against):
    shift, log = tt.Shift(-0.4), LOG.with_propensity(None)
    more = {"propensity": tt.LinearGaussian(), "bandwidth": 0.5}
    estimator = tt.DoublyRobust(outcome=LinearRegression())
    found = asked(log, shift, against, **more)
    both = {"a": shift, "b": against or tt.StatusQuo()}
    compared = tt.compare(log, both, estimator=estimator, allow_untrusted=True, **more)
    own = compared["a"].interval() if against is None else compared.contrast("a", "b").interval()
    np.testing.assert_allclose(found.interval(1.0), own, rtol=ROUNDING)
    rows = found.table(GRID)
    lower, upper = (np.array([row[end] for row in rows]) for end in ("lower", "upper"))
    assert (np.diff(lower) <= ROUNDING).all()
    assert (np.diff(upper) >= -ROUNDING).all()


def separate(a, b, gamma):
    """The bounds of the first less the second, each by itself."""
    (low, high), (least, most) = a.bounds(gamma), b.bounds(gamma)
    return low - most, high - least


@pytest.mark.parametrize("against", [tt.Shift(-0.2), NEAR, *long(tt.Tilt(0.3))], ids=repr)
def test_beside_a_move_each_side_is_bounded_by_itself(against):
    # A cause acts on the same row by another ratio of densities under each policy.
    log, more = LOG.with_propensity(None), {"propensity": tt.LinearGaussian(), "bandwidth": 0.5}
    shift = tt.Shift(-0.4)
    both = asked(log, shift, against, **more)
    alone = [asked(log, policy, None, **more) for policy in (shift, against)]
    turned = asked(log, against, shift, **more)
    mirrored = asked(changed(log, outcome=-log.outcome), shift, against, **more)
    for gamma in SOME:
        low, high = both.bounds(gamma)
        assert (low, high) == pytest.approx(separate(*alone, gamma), rel=ROUNDING)
        assert turned.bounds(gamma) == pytest.approx((-high, -low), rel=ROUNDING)
        assert mirrored.bounds(gamma) == pytest.approx((-high, -low), rel=ROUNDING)


def test_what_two_policies_share_still_cancels():
    log, more = LOG.with_propensity(None), {"propensity": tt.LinearGaussian(), "bandwidth": 0.5}
    shift = tt.Shift(-0.4)
    assert asked(log, shift, tt.Shift(-0.4), **more).bounds(3.0) == (0.0, 0.0)
    # Against the status quo, which is observed, only the move is in doubt.
    alone, against = asked(log, shift, None, **more), asked(log, shift, tt.StatusQuo(), **more)
    wanted = np.subtract(alone.bounds(3.0), log.outcome.mean())
    np.testing.assert_allclose(against.bounds(3.0), wanted, rtol=ROUNDING)
    # Draws about a rule are a rule: their rows have its ratio.
    drawn = tt.Randomized(NEAR, 0.6)
    both = asked(log, drawn, NEAR, **more)
    parts = [asked(log, policy, None, **more) for policy in (drawn, NEAR)]
    (low, high), (least, most) = both.bounds(2.0), separate(*parts, 2.0)
    assert least < low < high < most


def test_a_cause_that_helps_one_shift_and_harms_the_other():
    """Doses shake u, and u turns with the dose: E[Y(t ± .15)] = ±c·κ/4, none of it as logged.

    1 − κ ≤ f(t | u)/f(t) ≤ 1 + κ, so that ratios of densities at two doses are within
    (1 + κ)/(1 − κ) = 3.
    """
    rng, period, kappa, c = np.random.default_rng(1), 0.6, 0.5, 2.0
    x, t = rng.normal(size=(1000, 1)), rng.normal(size=1000)
    u = rng.random(1000) < 0.5 * (1.0 + kappa * np.sin(2.0 * np.pi * t / period))
    y = c * (u - 0.5) * np.sin(2.0 * np.pi * t / period - np.pi / 2.0)
    log = tt.LoggedData(x, t, y + 0.1 * rng.normal(size=1000))
    found = asked(log, tt.Shift(0.15), tt.Shift(-0.15), propensity=tt.LinearGaussian())
    low, high = found.bounds(3.0)
    assert abs(found.estimate) < 0.1
    assert low < c * kappa / 2.0 < high


def test_a_cause_acts_on_a_ratio_of_densities_twice():
    log = LOG.with_propensity(None)
    found = asked(log, tt.Shift(0.0), None, propensity=tt.LinearGaussian(), benchmarks=["x0"])
    # by 0 every weight is 1: the .9 quantile of all rows, squared
    x, t = log.context, log.treatment
    fitted = [tt.LinearGaussian().fit(z, t).density(z, t) for z in (x, x[:, 1:])]
    both = np.maximum(fitted, 0.01 / t.std())  # the default floor
    ratio = np.sort(np.abs(np.log(both[0] / both[1])))
    at = ratio[int(np.ceil(0.9 * len(t))) - 1]
    assert found.benchmarks["x0"] == pytest.approx(np.exp(2 * at), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.9, 0.5, 0.0, -1.0, "a", None, np.nan, np.inf])
def test_every_strength_that_is_none_is_refused_by_one_sentence(gamma):
    with pytest.raises(tt.InvalidArgument, match="`gamma` of `Sensitivity` must be a number ≥ 1;"):
        asked().bounds(gamma)


def test_what_is_refused():
    with pytest.raises(tt.InvalidArgument, match="nothing to doubt"):
        asked(policy=tt.StatusQuo())
    with pytest.raises(tt.InvalidArgument, match="cannot leave out 'weight'"):
        asked(benchmarks=["weight"])
    with pytest.raises(tt.InvalidArgument, match="list of names"):
        asked(benchmarks="x0")
    with pytest.raises(tt.InvalidArgument, match="`interval` must be a method"):
        asked(interval=0.95)
    for estimator in FREE:
        if estimator.uses_outcome_model:
            with pytest.raises(tt.InvalidArgument, match="weighted residuals"):
                asked(estimator=estimator)
