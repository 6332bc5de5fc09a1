"""The trust report of an estimate: every number against loops, laws, good and bad logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import naive
import titrant as tt
from titrant.data.simulate import NormalDose, Quadratic, Synthetic, UniformDose
from titrant.errors import NoOverlap, UntrustedEstimate
from titrant.estimators import DoublyRobust
from titrant.evaluation import evaluation
from titrant.inference import Normal, Verdict
from titrant.inference.trust import support
from titrant.inference.trust.support import LinearSurrogate, Support, extended_range
from titrant.kernels import Boundary
from titrant.propensity import truncated_density

# The same sums in another order: numbers of order 1 over 500 rows.
LOOP = 1e-9
# Blocks change the order of sums, and a ratio of two small differences feels it more.
BLOCKS = 1e-7
# Outcomes near 1,000 keep 13 of their 16 digits below the point; differences lose a few more.
SHIFTED = 1e-6

DESIGN = Quadratic()
POLICY = tt.Linear(coef=[1.0, -0.5], intercept=0.3)
MODEL = LinearRegression()
DR = DoublyRobust(outcome=MODEL)
NAMES = {
    "effective_sample_size",
    "largest_weight_share",
    "mean_weight",
    "influence_tail",
    "floor_share",
    "covariate_balance",
    "binned_balance",
    "dose_jump",
    "value_range",
    "support",
    "bandwidth_sensitivity",
    "smoothing_gap",
    "outcome_model_gap",
}


def numbers(estimate):
    return {c.name: c.value for c in estimate.diagnostics}


def log_of(n: int = 500, seed: int = 0, **law) -> tt.LoggedData:
    design = replace(DESIGN, law=NormalDose(sd=0.6, **law)) if law else DESIGN
    return design.draw(n, seed)


# Every number, the plain way


def test_weights_by_loops():
    log, h, clip = log_of(), 0.5, 0.55
    found = tt.evaluate(log, POLICY, estimator=tt.SelfNormalized(clip=clip), bandwidth=h)
    tau = POLICY(log.context)
    w = []
    for i in range(len(log)):
        u = (log.treatment[i] - tau[i]) / h
        w.append(max(0.75 * (1 - u * u), 0.0) / (h * max(log.propensity[i], clip)))
    low = sum(wi for wi, q in zip(w, log.propensity, strict=True) if q < clip)
    report = numbers(found)
    assert report["effective_sample_size"] == pytest.approx(
        sum(w) ** 2 / sum(wi * wi for wi in w), rel=LOOP
    )
    assert report["largest_weight_share"] == pytest.approx(max(w) / sum(w), rel=LOOP)
    assert report["mean_weight"] == pytest.approx(sum(w) / len(w), rel=LOOP)
    assert report["floor_share"] == pytest.approx(low / sum(w), rel=LOOP)
    assert 0 < report["floor_share"] < 1
    five, ten = (100 * sum(sorted(w, reverse=True)[:k]) / sum(w) for k in (5, 10))
    shares = f"the largest 5 {five:.3g} %, the largest 10 {ten:.3g} %."
    assert shares in found.diagnostics["largest_weight_share"].message
    x = log.context
    moved = np.abs(np.average(x, axis=0, weights=w) - x.mean(axis=0)) / x.std(axis=0)
    assert report["covariate_balance"] == pytest.approx(moved.max(), rel=LOOP)


def delta_se(estimate, estimator, log):
    """The standard error of models that are given: the checks compare values by the same models."""
    ready = evaluation.Evaluation.of(log, {"p": POLICY}, estimator, None)
    rows, scale = ready.held_blocks[0][0], ready.question(0, estimate.bandwidth).scale
    w = estimator.weight(rows, scale)
    return naive.doubly_robust_self_normalized(w, rows.y, rows.r_tau, rows.r_logged)[1]


def test_other_bandwidths_by_other_evaluations():
    log, h = log_of(), 0.4
    found = tt.evaluate(log, POLICY, estimator=DR, bandwidth=h)
    values = [
        tt.evaluate(log, POLICY, estimator=DR, bandwidth=f * h).value
        for f in (0.5, 0.5**0.5, 1.0, 2.0**0.5, 2.0)
    ]
    expected = (max(values) - min(values)) / delta_se(found, DR, log)
    assert numbers(found)["bandwidth_sensitivity"] == pytest.approx(expected, rel=LOOP)


def test_gaps_by_other_evaluations_and_influence_functions():
    log, h = log_of(), 0.5
    report = numbers(tt.evaluate(log, POLICY, estimator=DR, bandwidth=h))
    corrected = replace(DR, boundary=Boundary.QUADRATIC)
    center = tt.evaluate(log, POLICY, estimator=corrected, bandwidth=0.84 * h)
    own = tt.evaluate(log, POLICY, estimator=DR, bandwidth=h)
    gap = abs(own.value - center.value) / delta_se(center, corrected, log)
    assert report["smoothing_gap"] == pytest.approx(gap, rel=LOOP)

    without = tt.SelfNormalized(boundary=Boundary.QUADRATIC)
    plain = tt.evaluate(log, POLICY, estimator=without, bandwidth=0.84 * h)
    ready = evaluation.Evaluation.of(log, {"p": POLICY}, corrected, None)
    rows = ready.held_blocks[0][0]
    w = without.weight(rows, ready.question(0, own.bandwidth).scale.times(0.84))
    w = w / w.mean()
    e = rows.y - rows.r_logged
    # Rows' influence on the difference: (r̂(τ) − mean + w(e − Σwe/Σw)) − w(y − Σwy/Σw).
    influence = rows.r_tau - rows.r_tau.mean() + w * (e - np.mean(w * e))
    influence -= w * (rows.y - np.mean(w * rows.y))
    gap = abs(center.value - plain.value) / (influence.std() / len(log) ** 0.5)
    assert report["outcome_model_gap"] == pytest.approx(gap, rel=LOOP)


def test_the_support_by_a_model_is_its_density_at_the_policys_dose():
    log = log_of().with_propensity(None)
    far = tt.Linear(coef=[0.0, 0.0], intercept=1.2)
    found = tt.evaluate(
        log, far, estimator=tt.SelfNormalized(clip=0.2), bandwidth=0.5,
        propensity=tt.LinearGaussian(), allow_untrusted=True,
    )  # fmt: skip
    model = tt.LinearGaussian().fit(log.context, log.treatment)
    thin = model.density(log.context, far(log.context)) < 0.2
    assert 0.1 < thin.mean() < 0.9
    assert numbers(found)["support"] == pytest.approx(thin.mean(), abs=1e-12)
    assert "fitted for this check" not in found.diagnostics["support"].message


def test_the_support_beside_a_column_is_that_of_a_linear_gaussian_model():
    log = log_of()
    far = tt.Linear(coef=[1.0, -0.5], intercept=0.2 + 0.6 * 2.4)
    found = tt.evaluate(log, far, estimator=tt.SelfNormalized(clip=0.0), allow_untrusted=True)
    model = tt.LinearGaussian().fit(log.context, log.treatment)
    # The user's floor is 0: the level is the default floor, .01/sd(T).
    thin = model.density(log.context, far(log.context)) < 0.01 / log.treatment.std()
    assert numbers(found)["support"] == pytest.approx(thin.mean(), abs=1e-12)
    assert "fitted for this check alone" in found.diagnostics["support"].message


def test_the_support_within_bounds_is_that_of_the_truncated_model():
    log = log_of(lower=0.0, upper=1.0).with_propensity(None)
    model = tt.LinearGaussian()
    clip = 1.45  # between the densities of the model and of the model cut to the bounds
    found = tt.evaluate(
        log, tt.Constant(0.5), estimator=tt.SelfNormalized(clip=clip), bandwidth=0.3,
        propensity=model, allow_untrusted=True,
    )  # fmt: skip
    fitted = tt.LinearGaussian().fit(log.context, log.treatment)
    tau = np.full(len(log), 0.5)
    within = truncated_density(fitted, log.context, tau, 0.0, 1.0) < clip
    assert 0 < within.mean() < (fitted.density(log.context, tau) < clip).mean()
    assert numbers(found)["support"] == pytest.approx(within.mean(), abs=1e-12)


def test_doses_far_beyond_all_logged_ones_are_outside_whatever_a_model_says():
    # Doses uniform on [−.5, 1.3] have a normal model that reaches to 1.8. The range may be
    # extended by the width of its last twentieth, .09.
    log = Synthetic(law=UniformDose(lower=-0.5, upper=1.3)).draw(400, 0).with_bounds(None)
    for dose, expected in ((1.3, 0.0), (1.36, 0.0), (1.42, 1.0), (-0.56, 0.0), (-0.62, 1.0)):
        found = tt.evaluate(
            log, tt.Constant(dose), estimator=tt.SelfNormalized(), allow_untrusted=True
        )
        assert numbers(found)["support"] == expected


def test_the_range_is_extended_by_the_width_of_its_edges():
    # 0, 1, …, 100: the 5 % quantiles are 5 and 95, so the range −5 … 105.
    low, high = extended_range(np.column_stack([np.arange(101.0), np.full(101, 7.0)]))
    assert low.tolist() == [-5.0, 7.0]
    assert high.tolist() == [105.0, 7.0]


def test_boundary_mass_counts_doses_within_h_of_a_bound():
    # Constant dose rules at a known distance .25 from the lower bound 0.
    log = log_of(lower=0.0, upper=3.0)
    near = tt.Constant(0.25)

    def boundary_mass(h, boundary):
        estimator = tt.SelfNormalized(boundary=boundary)
        found = tt.evaluate(log, near, estimator=estimator, bandwidth=h, allow_untrusted=True)
        check = found.diagnostics["boundary_mass"]
        return check.value, check.verdict

    assert boundary_mass(0.24, Boundary.NONE) == (0.0, Verdict.OK)
    assert boundary_mass(0.26, Boundary.NONE) == (1.0, Verdict.WARN)
    assert boundary_mass(0.26, Boundary.LINEAR) == (1.0, Verdict.OK)
    # A rule that is near the bound in some rows only.
    line = tt.Linear(coef=[1.0, 0.0], intercept=0.0)
    found = tt.evaluate(log, line, estimator=tt.SelfNormalized(), bandwidth=0.3)
    expected = np.mean(log.context[:, 0] < 0.3)
    assert numbers(found)["boundary_mass"] == pytest.approx(expected, abs=1e-12)


def test_boundary_mass_of_vector_doses_looks_at_each_dose():
    design = Quadratic(dimension=2, law=NormalDose(sd=0.6, lower=-1.0, upper=2.5))
    log = design.draw(800, 0)
    # The second dose is .3 from its upper bound, the first far from both.
    rule = tt.Constant([0.5, 2.2])
    for h, expected in (([0.4, 0.29], 0.0), ([0.4, 0.31], 1.0)):
        found = tt.evaluate(
            log, rule, estimator=tt.SelfNormalized(), bandwidth=h, allow_untrusted=True
        )
        assert numbers(found)["boundary_mass"] == expected


# Laws


@pytest.fixture
def few_rows_a_block(monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK", 77)


def test_blocks_do_not_matter(request):
    log = log_of(lower=-0.5, upper=1.8)
    rules = {"a": POLICY, "b": tt.Constant(0.5)}
    whole = tt.compare(log, rules, estimator=DR, bandwidth=0.5)
    request.getfixturevalue("few_rows_a_block")
    parts = tt.compare(log, rules, estimator=DR, bandwidth=0.5)
    for name in rules:
        assert numbers(whole[name]) == pytest.approx(numbers(parts[name]), rel=BLOCKS)
        assert set(numbers(whole[name])) == NAMES | {"boundary_mass"}


def test_policies_do_not_see_each_other():
    log = log_of()
    alone = tt.evaluate(log, POLICY, estimator=DR, bandwidth=0.5)
    beside = tt.compare(log, {"far": tt.Constant(0.9), "p": POLICY}, estimator=DR, bandwidth=0.5)
    assert numbers(beside["p"]) == pytest.approx(numbers(alone), rel=LOOP)


@pytest.mark.parametrize("estimator", [DR, tt.SelfNormalized()], ids=["DR", "SN"])
@pytest.mark.parametrize(("shift", "scale"), [(1e3, 1.0), (0.0, 1e-4)])
def test_zero_and_unit_of_the_outcome_do_not_matter(estimator, shift, scale):
    log = log_of()
    moved = tt.LoggedData(
        log.context, log.treatment, shift + scale * log.outcome, log.propensity, names=log.names
    )
    here, there = (tt.evaluate(g, POLICY, estimator=estimator) for g in (log, moved))
    assert numbers(there) == pytest.approx(numbers(here), rel=SHIFTED)
    for check in here.diagnostics:
        assert there.diagnostics[check.name].verdict is check.verdict


def test_the_report_does_not_depend_on_the_interval():
    log = log_of()
    default = tt.evaluate(log, POLICY, estimator=DR, bandwidth=0.5)
    naive = tt.evaluate(log, POLICY, estimator=DR, bandwidth=0.5, interval=Normal())
    assert numbers(naive) == numbers(default)


def test_a_constant_outcome_is_no_cause_for_alarm():
    log = log_of()
    flat = tt.LoggedData(log.context, log.treatment, np.full(len(log), 0.1), log.propensity)
    report = numbers(tt.evaluate(flat, POLICY, estimator=DR, bandwidth=0.5))
    assert report["bandwidth_sensitivity"] == 0.0
    assert report["smoothing_gap"] == 0.0
    assert report["outcome_model_gap"] == 0.0


# Estimators without weights, a bandwidth or an outcome model have fewer checks


def test_each_estimator_has_the_checks_that_apply():
    log = log_of().with_propensity(None)
    model = tt.LinearGaussian()

    def names(estimator):
        found = tt.evaluate(log, POLICY, estimator=estimator, propensity=model).diagnostics
        return set(found.names), found.notes

    modeled = NAMES | {"propensity_pit"}
    assert names(DR) == (modeled, ())
    assert names(tt.SelfNormalized()) == (modeled - {"outcome_model_gap"}, ())
    smoothing = {"bandwidth_sensitivity", "smoothing_gap", "outcome_model_gap", "floor_share"}
    smoothing |= {"dose_jump"}
    assert names(tt.Discretized())[0] >= NAMES - smoothing - {"influence_tail"}
    assert not names(tt.Discretized())[0] & smoothing
    direct, notes = names(tt.DirectMethod(outcome=MODEL))
    assert direct == {
        "effective_sample_size",
        "largest_weight_share",
        "mean_weight",
        "support",
        "value_range",
    }
    assert "uses no propensities" in notes[0]


def test_a_log_without_contexts_and_a_matrix_bandwidth():
    rng = np.random.default_rng(0)
    t = rng.normal(size=(400, 2))
    q = norm.pdf(t).prod(axis=1)
    log = tt.LoggedData(np.empty((400, 0)), t, t.sum(axis=1) ** 2, q)
    found = tt.evaluate(
        log,
        tt.Constant([0.1, 0.2]),
        estimator=tt.SelfNormalized(boundary=Boundary.NONE),
        bandwidth=[[0.8, 0.3], [0.3, 0.9]],
    )
    assert "covariate_balance" not in found.diagnostics.names
    assert "smoothing_gap" in found.diagnostics.names
    bounded = log.with_bounds((-5.0, 5.0))
    found = tt.evaluate(
        bounded,
        tt.Constant([0.1, 0.2]),
        estimator=tt.SelfNormalized(boundary=Boundary.NONE),
        bandwidth=[[0.8, 0.3], [0.3, 0.9]],
        interval=Normal(),
    )
    # No correction at bounds along the axes of a full matrix, hence no bias-corrected estimate.
    assert "smoothing_gap" not in found.diagnostics.names
    assert "bandwidth_sensitivity" in found.diagnostics.names


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_surrogate_is_the_linear_gaussian_model(dimension):
    log = Quadratic(dimension=dimension).draw(300, 0)
    model = tt.LinearGaussian() if dimension == 1 else tt.MultivariateGaussian()
    fitted = model.fit(log.context, log.treatment)
    surrogate = LinearSurrogate.of(log)
    expected = fitted.density(log.context, log.treatment)
    assert surrogate.density(log.context, log.doses) == pytest.approx(expected, rel=LOOP)


def test_doses_without_a_density_leave_the_support_unchecked():
    x = np.arange(30.0)
    determined = tt.LoggedData(x, 2 * x + 1, x, np.ones(30))
    assert Support.of(determined, 0.1, modeled=False) is None
    one_dose = determined.rows(np.full(9, 3))
    assert Support.of(one_dose, 0.1, modeled=False) is None
    assert Support.of(one_dose, 0.1, modeled=True) is None
    # The second dose repeats the first.
    t = np.column_stack([np.sin(x), -np.sin(x)])
    assert Support.of(tt.LoggedData(x, t, x, np.ones(30)), 0.1, modeled=False) is None


def test_a_long_log_has_a_surrogate_of_some_of_its_rows(monkeypatch):
    log = DESIGN.draw(4000, 0)
    monkeypatch.setattr(support, "SURROGATE_ROWS", 1000)
    part = Support.of(log, 0.1, modeled=False)
    assert part.model.coef.tolist() == Support.of(log, 0.1, modeled=False).model.coef.tolist()
    # Four standard errors, .6/√1000 over sd(x) = .29, of coefficients of order 1.
    assert part.model.coef == pytest.approx(LinearSurrogate.of(log).coef, abs=0.26)
    assert part.model.coef.tolist() != LinearSurrogate.of(log).coef.tolist()
    # Its range is that of all rows.
    assert part.highest > log.treatment.max()


def test_weights_that_cancel_leave_the_gaps_unchecked():
    # At a bound with all doses far inside, a local quadratic fit extrapolates: it weighs the
    # nearer doses positively and the farther ones negatively.
    t = np.linspace(0.6, 0.95, 60)
    log = tt.LoggedData(np.ones((60, 1)), t, t, np.ones(60), bounds=(0.0, 1.0))
    found = tt.evaluate(
        log, tt.Constant(0.0), estimator=tt.SelfNormalized(), bandwidth=1.2, allow_untrusted=True
    ).diagnostics
    assert "smoothing_gap" not in found.names
    assert "bandwidth_sensitivity" in found.names
    assert any("weights cancel" in note for note in found.notes)


def test_more_contexts_than_rows_leave_the_support_unchecked():
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(60, 80)), rng.normal(size=60)
    log = tt.LoggedData(x, t, t**2, norm.pdf(t))
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized(), allow_untrusted=True)
    assert "support" not in found.diagnostics.names
    assert any("support was not checked" in note for note in found.diagnostics.notes)


# Good and bad logs


def square_model():
    return DoublyRobust(outcome=make_pipeline(PolynomialFeatures(2), LinearRegression()))


def test_a_good_log_raises_no_alarm():
    found = tt.evaluate(log_of(2000, 1), POLICY, estimator=square_model())
    assert found.diagnostics.verdict is Verdict.OK
    assert found.trusted
    assert str(found).endswith("ok")


def test_propensities_that_ignore_the_context_are_found_out():
    # T depends on x; the density of all doses is a wrong propensity, and weights by it leave
    # contexts whose doses are near the policy's over-represented.
    log = DESIGN.draw(2000, 1)
    q = norm.pdf(log.treatment, log.treatment.mean(), log.treatment.std())
    found = tt.evaluate(log.with_propensity(q), tt.Constant(0.9), estimator=square_model())
    assert found.diagnostics["covariate_balance"].verdict is Verdict.WARN
    assert "'x0'" in found.diagnostics["covariate_balance"].message


def test_propensities_of_twice_the_size_are_found_out():
    log = DESIGN.draw(1000, 1)
    found = tt.evaluate(
        log.with_propensity(2.5 * log.propensity), POLICY, estimator=DR, allow_untrusted=True
    )
    assert found.diagnostics["mean_weight"].value == pytest.approx(0.4, abs=0.1)
    assert found.diagnostics["mean_weight"].verdict is not Verdict.OK
    assert found.diagnostics["covariate_balance"].verdict is Verdict.OK


def test_heavy_tailed_weights_are_found_out():
    # Under a kernel much wider than q the weights are nearly 1/q ∝ exp(z²/2), z the standard
    # normal residual of the dose: P(1/q > s) ~ 1/s up to logarithms, a tail index of almost 1.
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    t = rng.normal(scale=0.35, size=4000) + x
    log = tt.LoggedData(x, t, t**2, norm.pdf(t, x, 0.35))
    wide = tt.SelfNormalized(kernel=tt.Gaussian(), clip=0.0)
    found = tt.evaluate(log, tt.Constant(0.0), estimator=wide, bandwidth=2.0, allow_untrusted=True)
    assert found.diagnostics["influence_tail"].verdict is Verdict.WARN


def test_without_overlap_there_is_a_refusal_and_no_nan():
    log = log_of(300)
    far = tt.Constant(40.0)
    with pytest.raises(NoOverlap, match=r"300 rows"):
        tt.evaluate(log, far, estimator=DR)
    with pytest.raises(NoOverlap, match=r"closest 3\d"):
        tt.evaluate(log, far, estimator=DR, bandwidth=0.5, allow_untrusted=True)


def test_hardly_any_overlap_is_refused_with_numbers_or_marked():
    log = log_of(300)
    far = tt.Linear(coef=[1.0, -0.5], intercept=0.2 + 0.6 * 3.2)
    with pytest.raises(UntrustedEstimate) as refusal:
        tt.evaluate(log, far, estimator=DR, bandwidth=0.5)
    sentence = str(refusal.value)
    assert "of 300 rows (20 wanted, 10 needed)" in sentence
    assert "Ask about a policy closer to the log" in sentence
    assert sentence.endswith("Pass `allow_untrusted=True` to see the number all the same.")
    marked = tt.evaluate(log, far, estimator=DR, bandwidth=0.5, allow_untrusted=True)
    assert not marked.trusted
    assert str(marked).endswith("refuse")
    assert marked.to_dict()["diagnostics"]["verdict"] == "refuse"
    assert marked.diagnostics["effective_sample_size"].verdict is Verdict.REFUSE
    assert np.isfinite([c.value for c in marked.diagnostics]).all()


def test_the_share_of_the_floor_is_one_of_absolute_weights():
    # At a bound some weights are negative: Σw and Σ|w| differ, and the share is one of Σ|w|.
    rng = np.random.default_rng(4)
    t = rng.uniform(size=400)
    log = tt.LoggedData(rng.normal(size=(400, 1)), t, t, rng.uniform(0.5, 1.5, 400), bounds=(0, 1))
    h, clip = 0.3, 0.9
    estimator = tt.SelfNormalized(clip=clip)
    asked = {"estimator": estimator, "bandwidth": h, "allow_untrusted": True}
    found = tt.evaluate(log, tt.Constant(0.0), **asked)
    # The linear boundary kernel K(v)(a₂ − a₁v)/(a₀a₂ − a₁²) on [0, 1/h], a_j = ∫₀¹ vʲK(v) dv.
    v = t / h
    kernel = np.where(v <= 1, 0.75 * (1 - v**2), 0.0)
    a = 0.5, 0.1875, 0.1
    w = (
        kernel
        * (a[2] - a[1] * v)
        / (a[0] * a[2] - a[1] ** 2)
        / (h * np.maximum(log.propensity, clip))
    )
    raised = np.abs(w[log.propensity <= clip]).sum()
    assert np.abs(w).sum() > 1.1 * w.sum()
    assert numbers(found)["floor_share"] == pytest.approx(raised / np.abs(w).sum(), rel=LOOP)


def without_events(events: int) -> tt.LoggedData:
    """Return a log of 300 rows whose few events are all at the highest doses."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    t = 10.0 + x + 2.0 * rng.normal(size=300)
    y = np.zeros(300)
    y[np.argsort(-t)[:events]] = 1.0
    return tt.LoggedData(x[:, None], t, y)


@pytest.mark.parametrize(
    ("events", "estimator"), [(0, tt.SelfNormalized()), (1, tt.SelfNormalized()), (0, DR)]
)
def test_an_interval_without_width_is_no_certainty(events, estimator):
    how = {"estimator": estimator, "propensity": tt.LinearGaussian()}
    log = without_events(events)
    found = tt.evaluate(log, 10.0, **how)
    assert found.interval() == pytest.approx((0.0, 0.0), abs=1e-15)
    check = found.diagnostics["no_variation"]
    assert found.diagnostics.verdict is Verdict.WARN
    assert check.value == pytest.approx(3.0 / found.ess)
    assert "an outcome of 1 in up to about" in check.message
    assert "rule of three" in check.message
    assert found.to_dict()["diagnostics"]["checks"]["no_variation"]["verdict"] == "warn"
    assert tt.check(log, 10.0, **how)["no_variation"].verdict is Verdict.WARN
    both = tt.compare(log, {"ten": 10.0, "nine": 9.0}, **how)
    assert all("no_variation" in e.diagnostics.names for e in both.estimates.values())


@pytest.mark.parametrize("policy", [tt.StatusQuo(), tt.Constant(10.0)])
def test_equal_outcomes_of_any_size_are_no_certainty(policy):
    log = without_events(0)
    same = log.with_outcome(np.full(300, 1e6 + 0.3))
    found = tt.evaluate(
        same, policy, estimator=tt.SelfNormalized(), propensity=tt.LinearGaussian()
    ).diagnostics["no_variation"]
    assert found.verdict is Verdict.WARN
    assert "other outcomes in up to about" in found.message


def test_an_interval_with_some_width_is_not_looked_at():
    log = without_events(0)
    far = log.with_outcome(1.7e9 + log.treatment)  # seconds since 1970
    found = tt.evaluate(
        far, 10.0, estimator=tt.SelfNormalized(), propensity=tt.LinearGaussian()
    ).diagnostics
    assert "no_variation" not in found.names
    rare = tt.evaluate(without_events(150), 10.0, estimator=DR, propensity=tt.LinearGaussian())
    assert "no_variation" not in rare.diagnostics.names
