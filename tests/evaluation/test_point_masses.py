"""Doses with point masses: exact weights at them, a kernel over the other rows, what is said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import lognorm
from sklearn.linear_model import LinearRegression

import naive
import titrant as tt
from sweeps import long
from titrant.bandwidth import SELECTORS
from titrant.compiled import FEWEST, Loop
from titrant.data.masses import PointMasses
from titrant.errors import DataError, InvalidArgument
from titrant.estimators import ESTIMATORS, IPW, Rows, SelfNormalized
from titrant.estimators.weight import weight
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.masses import with_masses
from titrant.inference import INTERVALS, Verdict
from titrant.kernels import Boundary, Epanechnikov, Scale
from titrant.outcome import ridge_pair

SAME = {"rtol": 1e-12}
"""The same formula in another order."""
QUADRATURE = {"rtol": 1e-4}
"""Sums over 40,000 equally likely doses."""
NAMED = {"zero": tt.Constant(0.0), "one": tt.Constant(1.0)}
QUICK = tt.DoublyRobust(outcome=LinearRegression())
"""With known propensities: for what does not depend on models."""


def some_none(n: int = 500, seed: int = 0) -> tt.LoggedData:
    """A third without a dose, more often where x₀ is high, which is worse by itself."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    none = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(0.7 - 0.8 * x[:, 0]))
    t = np.where(none, 0.0, np.exp(0.3 * x[:, 0] + 0.4 * rng.normal(size=n)))
    y = np.where(none, 1.0, (t - 1.0) ** 2) + x[:, 0] + 0.3 * rng.normal(size=n)
    return tt.LoggedData(x, t, y)


def list_prices(n: int = 600, seed: int = 0) -> tt.LoggedData:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = np.clip(np.round(3.0 + 0.5 * x[:, 0] + 1.1 * rng.normal(size=n)), 1.0, 5.0)
    y = (t - 3.0) ** 2 / 2.0 + x[:, 0] + 0.3 * rng.normal(size=n)
    return tt.LoggedData(x, t, y)


def either(x: np.ndarray) -> np.ndarray:
    return np.where(x[:, 1] > 0.0, 0.0, 1.0)


def by_sign(x: np.ndarray) -> np.ndarray:
    return np.where(x[:, 0] > 0.0, 0.0, 1.0)


def masses(values: list[float], *, levels: bool = False, low: float = -np.inf) -> PointMasses:
    shares = np.full(len(values), 0.3 / len(values))
    return PointMasses(np.array(values), shares, levels=levels, low=low, high=np.inf)


def rows_of(t: np.ndarray, tau: np.ndarray, q: np.ndarray, y: np.ndarray | None = None) -> Rows:
    return Rows(tau=tau[:, None], t=t[:, None], y=np.zeros(len(t)) if y is None else y, q=q)


# The weight.


def test_three_rows() -> None:
    # s = 2, so that q = P/2 at the point mass 0. The policy gives 0 to the first two rows: the
    # first, at 0 with P = .4, has w = 1/.4 = 2.5; the second, at 1, has none. The third is given
    # 1.5 and was given 1: u = −.5/1, w = .75·(1 − .25)/(1·.3) = 1.875. The fourth is given 1 and
    # was given 0: a point mass tells nothing of other doses.
    t, tau = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.5, 1.0])
    q, y = np.array([0.2, 0.3, 0.3, 0.2]), np.array([4.0, 9.0, 2.0, 9.0])
    found = with_masses(rows_of(t, tau, q, y), masses([0.0]), 2.0)
    estimator = SelfNormalized(boundary=Boundary.NONE)
    w = estimator.weight(found, Scale.of(1.0, 1))
    np.testing.assert_allclose(w, [2.5, 0.0, 1.875, 0.0], **SAME)
    mean = estimator.terms(found, Scale.of(1.0, 1)).mean(axis=0)
    np.testing.assert_allclose(estimator.value(mean), (2.5 * 4 + 1.875 * 2) / 4.375, **SAME)


@pytest.mark.parametrize("h", [0.2, 0.7])
@pytest.mark.parametrize("tau", [0.0, 0.3, 1.1])
def test_the_mean_weight_is_one_whatever_the_context(h: float, tau: float) -> None:
    # T is 0 with probability .3, else uniform on (0, 2): density .5·.7, bounded by the mass at 0.
    n = 40_000
    t = np.append(0.0, (np.arange(n) + 0.5) / n * 2.0)
    probability = np.append(0.3, np.full(n, 0.7 / n))
    s = 0.8
    q = np.append(0.3 / s, np.full(n, 0.7 * 0.5))
    rows = with_masses(rows_of(t, np.full(n + 1, tau), q), masses([0.0], low=0.0), s)
    for boundary in (Boundary.LINEAR, Boundary.QUADRATIC):
        w = IPW(boundary=boundary).weight(rows, Scale.of(h, 1))
        np.testing.assert_allclose(w @ probability, 1.0, **QUADRATURE)


def test_levels_match_exactly_or_stand_for_the_doses_around_them() -> None:
    levels = masses([0.0, 1.0, 2.0, 3.0, 4.0], levels=True)
    p, s = np.array([0.1, 0.3, 0.3, 0.2, 0.1]), 1.2
    for tau in levels.values:
        rows = with_masses(rows_of(levels.values, np.full(5, tau), p / s), levels, s)
        w = IPW().weight(rows, Scale.of(0.1, 1))
        np.testing.assert_allclose(w @ p, 1.0, **SAME)
        assert np.count_nonzero(w) == 1
    # Between them Σ spacing·K((a − τ)/h)/h is near 1, and the same in every context.
    means = []
    for prob in (p, p[::-1]):
        rows = with_masses(rows_of(levels.values, np.full(5, 1.7), prob / s), levels, s)
        means.append(IPW().weight(rows, Scale.of(1.5, 1)) @ prob)
    np.testing.assert_allclose(means[0], means[1], **SAME)
    np.testing.assert_allclose(means[0], 1.0, atol=0.05)


@pytest.mark.parametrize("many", [1, 10**9], ids=["loops", "numpy"])
def test_weights_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setitem(FEWEST, Loop.WEIGHTS, many)
    rng = np.random.default_rng(0)
    n, h, s = 300, 0.4, 0.9
    t = np.where(rng.uniform(size=n) < 0.4, 0.0, rng.uniform(0.0, 2.0, n))
    tau = np.where(rng.uniform(size=n) < 0.5, 0.0, rng.uniform(0.05, 2.0, n))
    q = rng.uniform(0.1, 0.6, n)
    rows = with_masses(rows_of(t, tau, q), masses([0.0], low=0.0), s)
    expected = np.zeros(n)
    for i in range(n):
        if tau[i] == 0.0:
            expected[i] = 1.0 / (s * q[i]) if t[i] == 0.0 else 0.0
        elif t[i] != 0.0:
            ends = -tau[i] / h, np.inf
            kernel = naive.local_kernel("Epanechnikov", 1, (t[i] - tau[i]) / h, *ends)
            expected[i] = kernel / (h * q[i])
    w = weight(rows, Epanechnikov(), Boundary.LINEAR, Scale.of(h, 1))
    np.testing.assert_allclose(w, expected, rtol=1e-10, atol=1e-12)


def test_no_bandwidth_moves_a_weight_that_is_exact() -> None:
    rows = with_masses(
        rows_of(np.zeros(4), np.array([0.0, 0.0, 1.0, 1.0]), np.full(4, 0.2)), masses([0.0]), 1.0
    )
    for h in (0.01, 3.0):
        scale = Scale.of(h, 1)
        np.testing.assert_array_equal(IPW().weight(rows, scale), [5.0, 5.0, 0.0, 0.0])
        np.testing.assert_array_equal(IPW().weight_slope(rows, scale), np.zeros((4, 1)))
    assert len(rows.smoothed().y) == 0


# Estimates.


def test_values_of_doses_on_and_off_a_point_mass() -> None:
    log = some_none(1000)
    found = tt.compare(log, {**NAMED, "either": either, "as it was": tt.StatusQuo()})
    assert not found.refused
    truths = {"zero": 1.0, "one": 0.0, "either": 0.5}
    for name, truth in truths.items():
        low, high = found[name].interval(0.999)
        assert low < truth < high
        assert high - low < 0.7
    assert found["zero"].bandwidth is None
    assert found["one"].bandwidth is not None
    assert found["either"].bandwidth is not None
    contrast = found.contrast("zero", "one")
    low, high = contrast.interval(0.999)
    assert low < 1.0 < high
    # The difference is paired: all that contexts do to both falls out of it.
    assert contrast.se < np.hypot(found["zero"].se, found["one"].se)


def test_one_density_for_all_is_said_to_be_wrong() -> None:
    log = some_none(1000)
    one = tt.compare(log.with_atoms(()), NAMED, allow_untrusted=True)
    pit = {c.name: c for c in one["zero"].diagnostics}["propensity_pit"]
    assert pit.verdict is Verdict.WARN
    apart = tt.compare(log, NAMED, allow_untrusted=True)
    pit = {c.name: c for c in apart["zero"].diagnostics}["propensity_pit"]
    assert pit.verdict is Verdict.OK


def test_a_policy_of_point_masses_has_no_bandwidth() -> None:
    log = some_none()
    one = tt.evaluate(log, NAMED["zero"])
    other = tt.evaluate(log, NAMED["zero"], bandwidth=0.05)
    assert one.value == other.value
    assert one.interval() == other.interval()
    names = {check.name for check in one.diagnostics}
    assert not names & {"bandwidth_sensitivity", "smoothing_gap", "boundary_mass", "dose_jump"}
    assert {"outcome_model_gap", "rows_at_dose", "seldom_dose"} <= names
    low, high = one.interval()
    np.testing.assert_allclose((low + high) / 2.0, one.value, **SAME)
    with pytest.raises(InvalidArgument, match="no bandwidth has a say"):
        tt.bandwidth_path(log, NAMED["zero"])


@pytest.mark.parametrize("interval", INTERVALS, ids=lambda i: repr(i)[:30])
def test_every_interval(interval: object) -> None:
    log, policies = known_log()[0], {**NAMED, "either": by_sign}
    found = tt.compare(log, policies, estimator=QUICK, interval=interval)
    for name in ("zero", "one", "either"):
        low, high = found[name].interval()
        assert low <= found[name].value <= high or "recentered=True" in repr(interval)
    assert np.isfinite(found.contrast("zero", "either").interval()).all()


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_every_selector(selector: object) -> None:
    log, policies = known_log()[0], {**NAMED, "either": by_sign}
    found = tt.compare(log, policies, estimator=QUICK, bandwidth=selector)
    assert found["zero"].bandwidth is None
    for name in ("one", "either"):
        assert found[name].bandwidth.h > 0.0


def test_both_kinds_choose_a_bandwidth_by_the_rows_that_are_smoothed() -> None:
    log = some_none()

    def mostly_none(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 1] > 1.0, 1.0, 0.0)

    evaluation = Evaluation.of(log, {"mostly none": mostly_none}, None, None)
    asked = evaluation.asked_masses
    assert asked is not None
    given = (log.context[:, 1] > 1.0) & (log.treatment > 0.0)
    assert asked[0].smoothed == np.count_nonzero(given)
    chosen = evaluation.bandwidth(0, None)
    assert chosen is not None
    # Rows at 0, of which there are ten times as many, would allow a bandwidth for one row.
    distance = np.abs(log.treatment[given] - 1.0)
    assert np.count_nonzero(distance <= float(chosen.h)) >= 8


SOME, PRICES = some_none(), list_prices()


# Estimators see weights, whichever kind of point mass these come from.
@pytest.mark.parametrize(
    ("log", "estimator"),
    [
        *((SOME, estimator) for estimator in ESTIMATORS),
        (PRICES, ESTIMATORS[0]),
        *long(*((PRICES, estimator) for estimator in ESTIMATORS[1:])),
    ],
)
def test_every_estimator(log: tt.LoggedData, estimator: object) -> None:
    at = {"zero": tt.Constant(float(log.treatment.min())), "mid": tt.Constant(3.0 / 2.0)}
    found = tt.compare(log, at, estimator=estimator, allow_untrusted=True)
    assert np.isfinite(found["zero"].value)


def test_other_units_of_the_dose() -> None:
    # Eight times the dose: the same bits, and the same values.
    log = some_none()
    other = tt.LoggedData(log.context, 8.0 * log.treatment, log.outcome)
    one = tt.compare(log, NAMED)
    eight = tt.compare(other, {"zero": tt.Constant(0.0), "one": tt.Constant(8.0)})
    for name in NAMED:
        np.testing.assert_allclose(one[name].value, eight[name].value, rtol=1e-8)
        np.testing.assert_allclose(one[name].se, eight[name].se, rtol=1e-6)


def test_files_give_the_bits_of_memory(tmp_path) -> None:
    log = some_none()
    pq.write_table(pa.table(log.to_columns()), tmp_path / "log.parquet")
    columns = tt.Columns(treatment="treatment", outcome="outcome", context=log.names)
    files = tt.scan_parquet(tmp_path / "log.parquet", columns)
    policies = {**NAMED, "either": either}
    one, other = tt.compare(log, policies), tt.compare(files, policies)
    for name in policies:
        assert one[name].value == other[name].value
        assert one[name].interval() == other[name].interval()
        assert one[name].diagnostics == other[name].diagnostics
    named = tt.scan_parquet(tmp_path / "log.parquet", columns, atoms=())
    assert (
        tt.evaluate(named, NAMED["one"]).value
        == tt.evaluate(log.with_atoms(()), NAMED["one"]).value
    )


def test_compiled_loops_and_numpy_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = known_log(40_000)
    policies = {**NAMED, "either": by_sign}
    values = []
    for many in (1, 10**9):
        monkeypatch.setitem(FEWEST, Loop.WEIGHTS, many)
        found = tt.compare(log, policies, estimator=SelfNormalized(), bandwidth=0.3)
        values.append([(e.value, *e.interval()) for e in found.estimates.values()])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-10)


# Levels.


def test_levels_are_valued_by_their_rows() -> None:
    log = list_prices(1000)
    found = tt.compare(log, {"3": tt.Constant(3.0), "4": tt.Constant(4.0)})
    for name, truth in (("3", 0.0), ("4", 0.5)):
        assert found[name].bandwidth is None
        low, high = found[name].interval(0.999)
        assert low < truth < high


def test_between_list_prices() -> None:
    # sd(T) is 1.15, so that one between two levels is .87 sd from either: too far apart.
    log = list_prices(1000)
    with pytest.raises(tt.UntrustedEstimate, match=r"between list prices.*are 1, 2, 3, 4, 5;"):
        tt.evaluate(log, tt.Constant(3.5))
    rng = np.random.default_rng(0)
    fine = np.round(log.treatment + rng.normal(size=1000)).clip(0.0, 6.0)
    close = tt.LoggedData(log.context, fine, log.outcome)
    found = tt.evaluate(close, tt.Constant(3.5))
    checks = {check.name: check for check in found.diagnostics}
    assert checks["between_levels"].verdict is Verdict.WARN
    assert found.bandwidth is not None


def test_a_page_asks_about_levels() -> None:
    from titrant.reporting.estimates import dose_grid  # noqa: PLC0415

    logged = list_prices().treatment
    levels = masses([1.0, 2.0, 3.0], levels=True)
    assert dose_grid(logged, levels).tolist() == [1.0, 2.0, 3.0]
    assert 0.0 in dose_grid(some_none().treatment, masses([0.0]))
    # Few values are asked about as they are; of many, doses in between.
    assert dose_grid(logged, None).tolist() == np.unique(logged).tolist()
    between = dose_grid(np.linspace(0.0, 1.0, 200) ** 2, None)
    np.testing.assert_allclose(np.diff(between), 0.05)


# What is said.


def test_few_rows_at_the_dose_asked_for() -> None:
    log = some_none(400)
    t = log.treatment.copy()
    at = np.flatnonzero(t == 0.0)
    t[at[25:]] = 1.0 + 1e-3 * np.arange(len(at) - 25)
    found = tt.LoggedData(log.context, t, log.outcome, atoms=[0.0])
    checks = {c.name: c for c in tt.evaluate(found, NAMED["zero"]).diagnostics}
    assert checks["rows_at_dose"].verdict is Verdict.WARN
    assert (
        "25 of the 400 rows to which the policy gives exactly 0" in checks["rows_at_dose"].message
    )
    t[at[8:]] = 1.0 + 1e-3 * np.arange(len(at) - 8)
    fewer = tt.LoggedData(log.context, t, log.outcome, atoms=[0.0])
    with pytest.raises(tt.UntrustedEstimate, match="8 of the 400 rows"):
        tt.evaluate(fewer, NAMED["zero"])


def test_a_few_rows_at_a_point_mass_by_the_way_are_no_reason() -> None:
    def seldom_none(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 1] > 1.8, 0.0, 1.0)

    log = some_none()
    names = {check.name for check in tt.evaluate(log, seldom_none).diagnostics}
    assert not names & {"rows_at_dose", "seldom_dose"}


def test_it_is_said_in_plain_words() -> None:
    log = some_none()
    share = 100.0 * np.mean(log.treatment == 0.0)
    notes = tt.evaluate(log, NAMED["one"]).diagnostics.notes
    assert any(f"{share:.2g} % of doses are exactly 0" in note for note in notes)


def test_check_sees_nothing_wrong_in_a_log_with_point_masses() -> None:
    for log in (some_none(800), list_prices(800)):
        report = {check.name: check for check in tt.check(log)}
        assert report["propensity_pit"].verdict is Verdict.OK
        assert report["stabilized_weight"].verdict is Verdict.OK


# Propensities that are known, or models of a user's own.


def known_log(n: int = 800) -> tuple[tt.LoggedData, np.ndarray]:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(n, 1))
    p = 1.0 / (1.0 + np.exp(0.5 - 0.5 * x[:, 0]))
    none = rng.uniform(size=n) < p
    t = np.where(none, 0.0, rng.uniform(0.0, 2.0, n))
    y = np.where(none, 1.0, (t - 1.0) ** 2) + x[:, 0] + 0.2 * rng.normal(size=n)
    return tt.LoggedData(x, t, y, np.where(none, p, (1.0 - p) / 2.0)), p


def test_a_column_holds_probabilities_at_point_masses() -> None:
    log, _ = known_log()
    for estimator in (tt.DoublyRobust(), SelfNormalized()):
        found = tt.compare(log, NAMED, estimator=estimator)
        for name, truth in (("zero", 1.0), ("one", 0.0)):
            low, high = found[name].interval(0.999)
            assert low < truth < high
    mean = {c.name: c for c in found["zero"].diagnostics}["mean_weight"]
    assert mean.verdict is Verdict.OK


def test_a_column_of_densities_at_point_masses_is_refused() -> None:
    log, _ = known_log()
    wrong = log.with_propensity(np.where(log.treatment == 0.0, 3.0, log.propensity))
    with pytest.raises(DataError, match=r"averages to 0\.1\d*, not 1"):
        tt.evaluate(wrong, NAMED["one"])
    assert np.isfinite(tt.evaluate(wrong.with_atoms(()), NAMED["one"], allow_untrusted=True).value)


def test_a_known_function_is_read_likewise() -> None:
    log, p = known_log()

    def density(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        none = 1.0 / (1.0 + np.exp(0.5 - 0.5 * x[:, 0]))
        return np.where(t == 0.0, none, (1.0 - none) / 2.0)

    bare = log.with_propensity(None)
    by_function = tt.evaluate(bare, NAMED["zero"], propensity=tt.Known(density))
    by_column = tt.evaluate(log, NAMED["zero"])
    np.testing.assert_allclose(by_function.value, by_column.value, rtol=1e-10)
    assert p.min() > 0.0


@pytest.mark.parametrize("log", [some_none(800), list_prices(800)], ids=["some none", "prices"])
def test_a_model_of_ones_own_tells_of_the_other_doses(log: tt.LoggedData) -> None:
    dose = float(np.median(log.treatment[log.treatment > 0.0]))
    at = float(log.treatment.min()) if log.treatment.min() == 0.0 else 3.0
    found = tt.compare(
        log, {"at": tt.Constant(at), "dose": tt.Constant(dose)}, propensity=tt.LinearGaussian()
    )
    truth = 1.0 if at == 0.0 else 0.0
    low, high = found["at"].interval(0.999)
    assert low < truth < high


@dataclass(frozen=True)
class Halved(SelfNormalized):
    """An estimator that weights rows in a way of its own."""

    def weight(self, rows: Rows, scale: Scale) -> np.ndarray:
        return 0.5 * SelfNormalized.weight(self, rows, scale)


def test_an_estimator_with_a_weight_of_its_own_sees_one_density() -> None:
    log = some_none()
    own = tt.evaluate(log, NAMED["one"], estimator=Halved(), bandwidth=0.4, allow_untrusted=True)
    plain = tt.evaluate(
        log.with_atoms(()),
        NAMED["one"],
        estimator=SelfNormalized(),
        bandwidth=0.4,
        allow_untrusted=True,
    )
    np.testing.assert_allclose(own.value, plain.value, rtol=1e-10)
    assert any("`Halved` takes them for a density" in note for note in own.diagnostics.notes)


# Learning.


@pytest.mark.long
def test_learning_works_and_is_graded_by_exact_weights() -> None:
    log = some_none(400)
    learner = tt.PolicyLearner(procedure=tt.StackedDR(models=ridge_pair())).fit(log)
    assert np.isfinite(learner.policy_(log.context)).all()


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("asked", [np.float64, np.float32])
def test_doses_of_32_bits_are_those_of_64(kind, asked):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1500, 1))
    at = rng.random(1500) < 0.3
    dose = np.where(at, 0.7, np.exp(0.2 * x[:, 0] + 0.5 * rng.normal(size=1500)))
    y = np.where(at, 2.0, (dose - 1) ** 2) + x[:, 0] + 0.3 * rng.normal(size=1500)
    q = np.where(at, 0.3, 0.7 * lognorm.pdf(dose, 0.5, scale=np.exp(0.2 * x[:, 0])))
    log = tt.LoggedData(x, dose.astype(kind), y, q)
    found = tt.evaluate(log, lambda X: np.full(len(X), 0.7, dtype=asked), estimator=QUICK)
    assert found.value == pytest.approx(2.0, abs=0.1)
