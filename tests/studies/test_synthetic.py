"""The paper's first example: each method against its formula, and the claims of figures 1 to 4."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm
from sklearn.ensemble import RandomForestRegressor

from naive import KERNELS, bin_weight, ipw, self_normalized
from studies.against import LAST_BITS, SAMPLE
from sweeps import long
from titrant.errors import DataError
from titrant.paper import STUDIES, figure_1, figure_2, figure_4, synthetic
from titrant.paper.study import Piece
from titrant.paper.synthetic import METHODS, drawn, estimates, least_error, line

CLOSE = 1e-9  # the same sums in another order
DIGITS = 1e-4  # files keep six digits, and an sd is the root of a difference of squares

TASK = {"logging": "normal", "n": 120, "replication": 3, "seed": 5}
UNIFORM = TASK | {"logging": "uniform"}


def value(method, task):
    return estimates(METHODS[method], task, {"best": line(1.0)})["best"]["value"]


def epanechnikov(log, h, clip):
    """The kernel weights of τ(x) = x without a correction at the bounds, row by row."""
    return [
        KERNELS["Epanechnikov"]((t - x) / h) / (h * max(q, clip))
        for x, t, q in zip(log.context[:, 0], log.treatment, log.propensity, strict=True)
    ]


@pytest.mark.parametrize("task", [TASK, UNIFORM])
def test_kernel_with_the_authors_constant_is_their_formula(task):
    log = drawn(task)
    expected, _ = self_normalized(epanechnikov(log, 0.1, 0.1), log.outcome)
    assert value("kernel, h = 0.1", task) == pytest.approx(expected, rel=CLOSE)


def test_ipw_is_run_at_the_oracle_bandwidth():
    task = TASK | {"n": 100}
    log = drawn(task)
    expected, _ = ipw(epanechnikov(log, least_error("normal", 100)[0], 0.0), log.outcome)
    # Titrant's own floor is 0.01/sd(T); no dose of this log is that unlikely.
    assert log.propensity.min() > 0.01 / log.treatment.std()
    assert value("IPW, oracle bandwidth", task) == pytest.approx(expected, rel=CLOSE)


def test_discretized_is_ten_even_bins_with_integrated_propensities():
    log = drawn(TASK)
    x, t = log.context[:, 0], log.treatment
    edges = np.linspace(t.min(), t.max(), 11)[1:-1]
    width = edges[1] - edges[0]
    w = []
    for xi, ti in zip(x, t, strict=True):
        law = norm(xi + 0.1, 0.5)
        probability = lambda low, high, law=law: max(law.cdf(high) - law.cdf(low), 0.1 * width)  # noqa: E731
        w.append(bin_weight(xi, ti, edges, probability))
    expected, _ = self_normalized(w, log.outcome)
    assert value("discretized, 10 bins", TASK) == pytest.approx(expected, rel=CLOSE)


def test_direct_methods_average_predictions_at_the_policy():
    log = drawn(TASK)
    x, t, y = log.context[:, 0], log.treatment, log.outcome
    trees = RandomForestRegressor(n_estimators=10, random_state=0).fit(np.c_[x, t], y)
    assert value("direct, forest", TASK) == pytest.approx(trees.predict(np.c_[x, x]).mean())

    def powers(a, b):
        return np.stack([a**i * b**j for i in range(4) for j in range(4 - i)], axis=1)

    coefficients, *_ = np.linalg.lstsq(powers(x, t), y, rcond=None)
    expected = (powers(x, x) @ coefficients).mean()
    assert value("direct, cubic", TASK) == pytest.approx(expected, rel=1e-7)


def test_of_these_methods_only_a_forest_hangs_on_the_last_bits_of_outcomes(monkeypatch):
    # Processors differ in the last bit of a power. A kernel estimate moves by no more than that.
    task = {"logging": "uniform", "n": 300, "replication": 0, "seed": 0}
    log, rng = drawn(task), np.random.default_rng(0)
    found = {"direct, forest": [], "direct, cubic": [], "kernel, h = 0.1": []}
    for _ in range(6):
        up = np.where(rng.random(len(log)) < 0.5, np.inf, -np.inf)
        moved = log.with_outcome(np.nextafter(log.outcome, up))
        monkeypatch.setattr(synthetic, "drawn", lambda _, moved=moved: moved)
        for method, values in found.items():
            values.append(value(method, task))
    spread = {method: np.ptp(values) / np.mean(values) for method, values in found.items()}
    assert SAMPLE < spread["direct, forest"] < LAST_BITS["direct, forest"]
    assert spread["direct, cubic"] < 1e-9
    assert spread["kernel, h = 0.1"] < 1e-9


def test_half_a_pilot_chooses_a_smaller_bandwidth():
    def h(method):
        return estimates(METHODS[method], TASK, {"best": line(1.0)})["best"]["h"]

    printed, half = h("kernel, plug-in as printed"), h("kernel, plug-in as printed, half pilot")
    assert 0 < half < printed
    assert h("kernel, h = 0.1") == 0.1
    assert h("direct, cubic") is None


def test_a_log_belongs_to_its_task():
    assert (drawn(TASK).treatment == drawn(dict(TASK)).treatment).all()
    for change in ({"seed": 6}, {"replication": 4}, {"n": 119}, {"logging": "uniform"}):
        other = drawn(TASK | change)
        assert other.treatment[0] != drawn(TASK).treatment[0]
    assert len(drawn(TASK)) == 120
    assert (drawn(UNIFORM).lower == -0.5).all()


def test_no_answer_where_no_dose_was_logged_near():
    def far(beta):
        return line(beta * 50.0)

    assert estimates(METHODS["kernel, h = 0.1"], TASK, {"far": far(1.0)}) == {}


# ── The studies ──────────────────────────────────────────────────────────────────────────────────


def test_figure_1_asks_each_method_where_it_can_answer():
    def left_out(n):
        return set(METHODS) - set(figure_1._asked(TASK | {"n": n}))

    assert left_out(10) == {"titrant's default", "IPW, oracle bandwidth"}
    assert left_out(20) == {"IPW, oracle bandwidth"}
    assert left_out(300) == set()


def test_figure_1_curves_leave_out_logs_without_an_answer():
    task = {"logging": "normal", "n": 300, "seed": 0}
    found = [{"best": {"value": v, "h": 0.1}} for v in (0.1, 0.3)] + [{}, {}]
    pieces = [
        Piece(task | {"replication": k}, {"kernel, h = 0.1": answer})
        for k, answer in enumerate(found)
    ]
    curve = figure_1._curve(pieces, "kernel, h = 0.1")
    # mean .2, its se √(.02/2) = .1, RMSE √((.01 + .09)/2)
    assert curve == {
        "n": [300],
        "mean": [pytest.approx(0.2)],
        "half": [pytest.approx(0.196)],
        "rmse": [pytest.approx(0.05**0.5)],
        "answered": [0.5],
    }


@pytest.mark.parametrize("name", ["figure-1", "figure-1-uniform"])
def test_figure_1_draws_the_spread_that_its_table_judges(results, name):
    kept = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    figure = Figure()
    STUDIES[name].draw(figure, kept["series"])
    drawn_at_300 = {
        line.get_label(): line.get_ydata()[-1]
        for line in figure.axes[2].get_lines()
        if not line.get_label().startswith("_")
    }
    assert set(drawn_at_300) == {figure_1.BINNED, *figure_1.COMPARED}
    ratios = {row["label"]: row["ours"] for row in kept["rows"]}
    for kernel in figure_1.COMPARED:
        ratio = drawn_at_300[figure_1.BINNED] / drawn_at_300[kernel]
        assert ratios[f"discretized ÷ {kernel}"] == pytest.approx(ratio, rel=DIGITS)


def test_figure_2_knows_the_truth_of_every_slope():
    # 2·E[(|1 − β|X)^1.5], X uniform: 0.8|1 − β|^1.5
    x = (np.arange(100_000) + 0.5) / 100_000
    truth = [np.mean(2 * np.abs(x - beta * x) ** 1.5) for beta in figure_2.BETAS]
    np.testing.assert_allclose(figure_2.TRUTH, truth, atol=1e-8)
    assert figure_2.BETAS[0] == 0.0
    assert figure_2.BETAS[-1] == 1.3


def test_figure_2_least_and_regret_worked_out():
    # Two logs: the first finds β = 1 best, the second 0.9, whose true value is .8·.1^1.5.
    errors = np.ones((2, len(figure_2.BETAS)))
    at = figure_2.BETAS.index
    errors[0, at(1.0)] = 0.0
    errors[1, at(0.9)] = 0.0
    assert figure_2._regret("a", errors).ours == pytest.approx(0.4 * 0.1**1.5)
    assert figure_2._least("kernel", errors).ours == 1.0
    assert figure_2._least("kernel", errors).limits == (0.9, 1.1)
    assert figure_2._least("direct", errors).limits is None


@pytest.mark.parametrize("task", [TASK, UNIFORM])
def test_figure_4_finds_the_least_estimate_over_all_slopes(task):
    log = drawn(task | {"n": 40})
    x = log.context[:, 0]

    def estimate(beta):
        u = (log.treatment - beta * x) / 0.3
        w = 0.75 * np.maximum(1 - u * u, 0) / np.maximum(log.propensity, 0.1)
        return w @ log.outcome / w.sum()

    grid = np.linspace(0.0, 1.3, 13_001)
    best = grid[np.argmin([estimate(beta) for beta in grid])]
    assert figure_4.learned_slope(log, 0.3, 1.3) == pytest.approx(best, abs=2e-4)


def test_figure_4_needs_propensities():
    with pytest.raises(DataError, match="needs the propensity"):
        figure_4.learned_slope(drawn(TASK).with_propensity(None), 0.3, 1.3)


def test_figure_4_regrets_worked_out():
    slopes = {30: (0.5, 0.5, 0.5), 100: (1.0, 0.75, None), 300: (1.0, 0.75, 0.75)}
    pieces = [
        Piece(
            {"logging": "normal", "n": n, "seed": 0, "replication": k},
            {"kernel, h = 0.3": beta, "direct, cubic": beta},
        )
        for n, each in slopes.items()
        for k, beta in enumerate(each)
    ]
    # .8·.25^1.5 = .1; a log without an answer does not count.
    regret = figure_4.regrets(pieces, "kernel, h = 0.3", "normal", 100)
    assert regret.tolist() == pytest.approx([0.0, 0.1])
    *means, ratio = figure_4._rows(pieces, "normal", "kernel, h = 0.3")
    assert means[1].ours == pytest.approx(0.05)
    # (0 + .1 + .1)/3 ÷ .8·.5^1.5
    assert ratio.ours == pytest.approx(0.2 / 3 / (0.8 * 0.5**1.5))
    assert len(figure_4._rows(pieces, "normal", "direct, cubic")) == 3


def test_figure_4_rescales_the_bandwidth_of_another_log():
    task = TASK | {"n": 40}
    h = figure_4.plug_in(task | {"n": figure_4.N0}) * (figure_4.N0 / 40) ** 0.2
    found = figure_4.measure(task)
    assert found[figure_4.RESCALED] == figure_4.learned_slope(drawn(task), h, 1.3)


@pytest.mark.parametrize(
    "name", ["figure-1", *long("figure-1-uniform", "figure-2", "figure-3", "figure-4")]
)
def test_a_short_run_agrees_with_the_committed_result(name, tmp_path, committed):
    # Figure 4 divides two means, which those of a few logs do as no normal error says.
    committed(name, tmp_path, replications=16 if name == "figure-4" else 4)


@pytest.mark.parametrize("name", ["figure-1", "figure-1-uniform"])
def test_the_committed_figure_1_shows_what_the_paper_claims(name, results):
    series = json.loads((results / f"{name}.json").read_text())["series"]
    kernel, binned = series["kernel, titrant's bandwidth"], series["discretized, 10 bins"]
    # The kernel estimate converges: its error falls by more than half from 30 to 300 rows.
    at_30, at_300 = kernel["n"].index(30), kernel["n"].index(300)
    assert kernel["rmse"][at_300] < kernel["rmse"][at_30] / 2
    # The discretized one keeps its bias: its interval at 300 rows excludes the truth, 0.
    assert binned["mean"][-1] - binned["half"][-1] > 0


def test_studies_of_this_example_are_listed():
    names = {"figure-1", "figure-1-uniform", "figure-2", "figure-3", "figure-4"}
    assert names <= STUDIES.keys()
