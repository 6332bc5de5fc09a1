"""The theorems, executed: populations against quadrature, constants by hand, and the claims."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import integrate

import titrant as tt
from titrant.data.simulate import NormalDose, Synthetic
from titrant.inference.bounds import Expansion
from titrant.paper import STUDIES
from titrant.paper.study import Piece, Settings
from titrant.paper.synthetic import LOGGING, least_error
from titrant.paper.theory import (
    PARTS,
    boundary,
    consistency,
    descent,
    doubly,
    expansion,
    generalization,
)
from titrant.paper.theory.designs import (
    BEST,
    CURVATURE,
    DENSITY,
    ESTIMATORS,
    NOISE,
    VALUE,
    BoundedLoss,
    Edge,
    Given,
    SmoothWell,
    moments,
    population,
)

GRID = 2e-4  # 2,048 quantiles of the dose, in units of the value
MINIMUM = 1e-3  # a spline through 26 bandwidths, at its flat minimum


def kernel(u):
    return 0.75 * (1.0 - u * u)


def integral(f, low=-1.0, high=1.0):
    return integrate.quad(f, low, high, epsabs=1e-13)[0]


def over_contexts(f):
    return integral(f, 0.0, 1.0)


# ── Populations ──────────────────────────────────────────────────────────────────────────────────


def test_a_population_has_the_moments_of_its_design():
    log = population(SmoothWell(), contexts=8, doses=512)
    assert len(log) == 2 * 8 * 512
    assert log.context.mean() == pytest.approx(0.5, abs=1e-12)
    assert (log.treatment - log.context[:, 0]).mean() == pytest.approx(0.1, abs=1e-12)
    assert (log.treatment - log.context[:, 0]).std() == pytest.approx(0.5, rel=2e-3)
    noise = log.outcome - SmoothWell().mean_outcome(log.context, log.treatment)
    assert noise.mean() == pytest.approx(0.0, abs=1e-12)
    assert (noise**2).mean() == pytest.approx(0.25)
    np.testing.assert_allclose(log.propensity, SmoothWell().density(log.context, log.treatment))
    assert population(SmoothWell(), contexts=2, doses=4, propensity=False).propensity is None


def test_only_laws_with_known_quantiles_have_a_population():
    with pytest.raises(TypeError, match="No quantiles are known"):
        population(SmoothWell(law=NormalDose(sd=0.5, lower=0.0)))


def test_mean_and_variance_of_ipw_are_those_of_quadrature():
    # E v̂ = ∫K(v) m(x + hv, x) dv;  n·Var v̂ = ∫K(v)²(m² + σ²)/(h f(x + hv)) dv − (E v̂)²
    h, sd = 0.3, 0.5
    m = lambda x, v: 2.0 + x - np.exp(-((h * v) ** 2))  # noqa: E731
    f = lambda v: np.exp(-0.5 * ((h * v - 0.1) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))  # noqa: E731
    mean = over_contexts(lambda x: integral(lambda v: kernel(v) * m(x, v)))
    second = over_contexts(
        lambda x: integral(lambda v: kernel(v) ** 2 * (m(x, v) ** 2 + 0.25) / (h * f(v)))
    )
    log = population(SmoothWell(), contexts=16, doses=2048)
    found, variance = moments(log, BEST, ESTIMATORS["IPW"], [h])
    assert found[0] == pytest.approx(mean, abs=GRID)
    assert variance[0] == pytest.approx(second - mean**2, rel=1e-3)
    # Self-normalized: the same mean, and by the delta method E[w²(y − v)²].
    spread = over_contexts(
        lambda x: integral(lambda v: kernel(v) ** 2 * ((m(x, v) - mean) ** 2 + 0.25) / (h * f(v)))
    )
    found, variance = moments(log, BEST, ESTIMATORS["self-normalized"], [h])
    assert found[0] == pytest.approx(mean, abs=GRID)
    assert variance[0] == pytest.approx(spread, rel=1e-3)


def test_constants_of_the_well_by_quadrature():
    x = (np.arange(20_000)[:, None] + 0.5) / 20_000
    m = SmoothWell().mean_outcome(x, x[:, 0])
    assert m.mean() == pytest.approx(VALUE)
    step = 1e-4
    bent = [SmoothWell().mean_outcome(x, x[:, 0] + s) for s in (-step, step)]
    assert ((bent[0] + bent[1] - 2 * m) / step**2).mean() == pytest.approx(CURVATURE, rel=1e-5)
    density = SmoothWell().density(x, x[:, 0])
    assert density == pytest.approx(np.full(len(x), DENSITY))
    assert ((m**2 + 0.25) / density).mean() == pytest.approx(NOISE["IPW"], rel=1e-6)
    assert (((m - VALUE) ** 2 + 0.25) / density).mean() == pytest.approx(
        NOISE["self-normalized"], rel=1e-6
    )


@pytest.mark.parametrize(
    "design", [SmoothWell(), BoundedLoss(), Edge(), Edge(curved=True)], ids=repr
)
def test_designs_know_their_best_dose(design):
    x = design.context(np.random.default_rng(0), 50)
    at_best = design.mean_outcome(x, design.best(x))
    low, high = max(design.law.lower, -2.0), min(design.law.upper, 3.0)
    for t in np.linspace(low, high, 41):
        assert (design.mean_outcome(x, np.full(50, t)) >= at_best - 1e-12).all()
    assert design.draw(30, 1).names == ("x",)


# ── Theorems 1 and 2 ─────────────────────────────────────────────────────────────────────────────


def test_the_least_error_is_found_between_the_bandwidths():
    # bias h², n·Var 1/h: d/dh(h⁴ + 1/(nh)) = 0 at h = (4n)^(−1/5).
    h = np.geomspace(0.03, 1.2, 26)
    found = {"h": h.tolist(), "mean": (7.0 + h**2).tolist(), "variance": (1.0 / h).tolist()}
    for n in (300, 10_000):
        best = (4 * n) ** -0.2
        at, mse = expansion.best_bandwidth(found, 7.0, n)
        assert at == pytest.approx(best, rel=MINIMUM)
        assert mse == pytest.approx(best**4 + 1 / (n * best), rel=1e-4)


@pytest.mark.parametrize("h", [0.1, 0.4, 1.0])
def test_the_bias_of_the_well_is_its_integral(h):
    # m(x + hu) − m(x) = 1 − exp(−h²u²)
    expected = integral(lambda u: kernel(u) * -np.expm1(-((h * u) ** 2)))
    assert expansion.well_bias(h) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("logging", LOGGING)
def test_the_least_error_at_the_kink_is_that_of_quadrature(logging):
    # Bias and variance with the density written out, at the bandwidth and a little beside it.
    def mse(h, n):
        def f(s):
            bell = np.exp(-2 * (s - 0.1) ** 2) * 2 / np.sqrt(2 * np.pi)
            return bell if logging == "normal" else 1 / 1.8

        bias = 2 * integral(lambda u: kernel(u) * 2 * (h * u) ** 1.5, 0.0, 1.0)
        side = lambda u: kernel(u) ** 2 * (4 * abs(h * u) ** 3 + 0.04) / (h * f(h * u))  # noqa: E731
        return bias**2 + (integral(side, -1.0, 0.0) + integral(side, 0.0, 1.0) - bias**2) / n

    for n in (100, 5_000):
        h, rmse = least_error(logging, n)
        assert rmse**2 == pytest.approx(mse(h, n), rel=1e-8)
        assert mse(h, n) < min(mse(0.99 * h, n), mse(1.01 * h, n))


def test_what_is_printed_differs_by_the_square_of_the_value():
    assert expansion.printed("IPW").variance(0.2) - expansion.predicted("IPW").variance(
        0.2
    ) == pytest.approx(VALUE**2)
    assert expansion.printed("self-normalized") == Expansion(
        kernel=tt.Epanechnikov(), curvature=2.0, noise=NOISE["IPW"], n=1
    )


def test_logs_are_those_of_the_estimators():
    task = {"part": "expansion", "kind": "logs", "first": 3, "count": 1, "seed": 5}
    found = expansion.measure(task)
    log = SmoothWell().draw(expansion.ROWS, np.random.default_rng([5, 1, 3]))
    u = (log.treatment - log.context[:, 0]) / 0.4
    w = np.where(np.abs(u) <= 1, kernel(u), 0.0) / (0.4 * log.propensity)
    assert found["IPW"][0][0] == pytest.approx((w * log.outcome).mean())
    assert found["self-normalized"][0][0] == pytest.approx(w @ log.outcome / w.sum())


@pytest.mark.parametrize("delta", [0.0, 0.5])
def test_the_rest_of_the_doubly_robust_variance(delta):
    # n·Var − (R/h)·E[E[(Y − r̂)²]/f] → Var m(τ(X), X) − E[δ²] = 1/12 − δ² for r̂ = m − δ. What is
    # left at a small h is of order h, so that two bandwidths tell the limit.
    model = Given(lambda X, t: SmoothWell().mean_outcome(X, t) - delta)
    robust = tt.DoublyRobust(outcome=model, folds=1, self_normalized=False, clip=0.0)
    _, variance = moments(population(SmoothWell()), BEST, robust, [0.05, 0.1])
    noise = (0.25 + delta**2) / DENSITY
    left = variance - 0.6 * noise / np.array([0.05, 0.1])
    limit = 2.0 * left[0] - left[1]
    assert limit == pytest.approx(1.0 / 12.0 - delta**2, abs=1e-3)
    theory = Expansion(
        kernel=tt.Epanechnikov(), curvature=0.0, noise=noise, n=1, rest=1.0 / 12.0 - delta**2
    )
    assert theory.variance(0.05) == pytest.approx(variance[0], rel=2e-3)


# ── The other parts ──────────────────────────────────────────────────────────────────────────────


def test_consistency_asks_each_bandwidth_by_its_name():
    task = {"part": "consistency", "n": 200, "first": 0, "seed": 1}
    found = consistency.measure(task)
    log = SmoothWell().draw(200, np.random.default_rng([1, 2, 0, 200]))
    for kind, h in consistency.bandwidths("IPW", 200).items():
        u = (log.treatment - log.context[:, 0]) / h
        w = np.where(np.abs(u) <= 1, kernel(u), 0.0) / (h * log.propensity)
        assert found["IPW"][kind][0] == pytest.approx((w * log.outcome).mean())
    assert len(found["IPW"]["best h"]) == consistency.CHUNK


def test_rates_are_fitted_by_least_squares():
    # RMSE 3·n^(−0.4) exactly.
    pieces = [
        Piece(
            {"part": "consistency", "n": n},
            {"IPW": {"best h": [VALUE + s * 3 * n**-0.4 for s in (-1, 1)]}},
        )
        for n in consistency.SIZES
    ]
    row = consistency._rate("a", "best h", "IPW", pieces, -0.4)
    assert row.ours == pytest.approx(-0.4)


@pytest.mark.parametrize("name", doubly.CASES)
def test_the_doubly_robust_bias_is_predicted_by_differences(name):
    # E[(ρ − 1)δ] + (κ₂/2)h²(ρδ)″ with ρ and δ written out again, the second derivative numerical.
    case, h, step = doubly.CASES[name], 0.3, 1e-4

    def rho(s):
        wrong = np.exp(0.5 * ((s + 0.3) ** 2 - (s - 0.1) ** 2) / 0.25)
        return wrong if case.propensity else 1.0

    def delta(s):
        return (2.0 - np.exp(-s * s) - 0.5) if case.outcome else 0.0

    product = [rho(s) * delta(s) for s in (-step, 0.0, step)]
    second = (product[0] - 2 * product[1] + product[2]) / step**2
    expected = (rho(0.0) - 1) * delta(0.0) + 0.1 * h**2 * second
    assert case.predicted(h) == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_a_given_model_says_what_it_was_given():
    model = Given(lambda X, t: X[:, 0] + 2 * t)
    X, t = np.array([[1.0], [3.0]]), np.array([[0.5], [1.0]])
    assert model.fit(X, t, t[:, 0]).predict(X, t).tolist() == [2.0, 5.0]


def test_biases_at_the_edge_by_quadrature():
    # τ = .1x, h = .2, m = 1 + 3t on [0, 1]: the kernel is cut at v = −τ/h = −x/2.
    moment = lambda j, x: integral(lambda v: kernel(v) * v**j, -x / 2, 1.0)  # noqa: E731
    m = lambda x: 1.0 + 0.3 * x  # noqa: E731
    none = over_contexts(lambda x: m(x) * moment(0, x) + 0.6 * moment(1, x)) - 1.15
    mass = over_contexts(lambda x: m(x) + 0.6 * moment(1, x) / moment(0, x)) - 1.15
    assert boundary.known("no correction") == pytest.approx(none, abs=1e-9)
    assert boundary.known("mass") == pytest.approx(mass, abs=1e-9)
    assert boundary.known("linear kernel") == 0.0


def test_the_bound_is_that_of_the_theorem():
    # (3/2·4/.25)·R + (4·¾/.5)·√(2 ln 40/n) + bias
    expected = 24.0 * 0.1 + 6.0 * np.sqrt(2 * np.log(40) / 100) + 0.02
    assert generalization.bound(100, 0.1, 0.02) == pytest.approx(expected)


def test_gaps_are_the_largest_over_all_policies():
    whole = {"truth": [0.0] * 21, "bias": [0.01] * 21}
    estimates = np.zeros((2, 21))
    estimates[0, 4], estimates[1, 20] = -0.3, 0.2
    pieces = [
        Piece({"kind": "population"}, whole),
        Piece(
            {"kind": "complexity"},
            {"a": {"found": [0.3, 0.5], "bound": 0.5, "exact": 0.4}},
        ),
        *(
            Piece(
                {"kind": "logs", "n": n},
                {
                    "estimates": estimates.tolist(),
                    "shrinking": (estimates * (250 / n) ** 0.4).tolist(),
                    "complexity": [0.1, 0.1],
                },
            )
            for n in generalization.SIZES
        ),
    ]
    found = generalization.summarize(pieces)
    gap = next(row for row in found.rows if row.quantity.startswith("largest gap"))
    assert gap.ours == pytest.approx(0.25)
    power = next(row for row in found.rows if row.quantity == "power of n in the largest gap")
    assert power.ours == pytest.approx(-0.4)
    complexity = found.rows[-1]
    assert (complexity.ours, complexity.paper) == (pytest.approx(0.4), 0.25)
    assert "2WX" in complexity.note


def test_complexity_of_an_intercept_is_its_formula():
    # E|Σσᵢ| = n·C(n, n/2)/2ⁿ for even n, near √(2n/π).
    one = generalization._complexities(0)["an intercept"]
    assert np.mean(one["found"]) == pytest.approx(one["exact"], rel=0.03)
    assert np.mean(one["found"]) > 1 / np.sqrt(generalization.SIGNED)  # what the paper prints


def test_descents_never_go_up():
    found = descent.measure({"part": "descent", "replication": 0, "seed": 3})
    for one in found.values():
        assert any(len(trace) > 2 for trace in one["traces"])
        for trace in one["traces"]:
            assert np.all(np.diff(trace) <= descent.ROUNDING)


def test_descent_needs_propensities():
    with pytest.raises(tt.DataError, match="needs the propensity"):
        descent.rows_of(Synthetic().draw(10, 0, propensity=False))


# ── The study ────────────────────────────────────────────────────────────────────────────────────


def test_every_task_belongs_to_a_part():
    tasks = STUDIES["theory"].tasks(Settings(replications=100))
    assert {task["part"] for task in tasks} == PARTS.keys()
    logs = [task for task in tasks if task.get("kind") == "logs" and "count" in task]
    assert sum(task["count"] for task in logs) == 100


@pytest.mark.long
def test_a_short_run_agrees_with_the_committed_result(tmp_path, committed):
    committed("theory", tmp_path, replications=2)


def test_every_committed_statement_holds(results):
    kept = json.loads((results / "theory.json").read_text(encoding="utf-8"))
    verdicts = {row["verdict"] for row in kept["rows"]}
    assert verdicts <= {"holds", "open: within 2 SE", "reported"}
    assert kept["settings"]["replications"] >= 2_000
