"""A jump at the policy's dose: sums by loops, blocks, jumps seen and bends passed over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import titrant as tt
from inference.rows import in_blocks, in_one_block, some_rows
from titrant.estimators import DoublyRobust, Question, Rows
from titrant.inference import Verdict
from titrant.inference.trust.evidence import Jump, side_sums
from titrant.kernels import Scale
from titrant.outcome import Stack, ridge_pair

# The same sums in another order.
LOOP = 1e-9
H = 0.8
QUESTION = Question(DoublyRobust(), 0, Scale.of(H, 1))


def sums_by_loops(rows, h, side):
    """The linear boundary kernel K(v)(a₂ − a₁|v|)/(a₀a₂ − a₁²) on one side of τ, a_j = ∫₀¹vʲK."""
    a = 0.5, 0.1875, 0.1
    total = np.zeros(5)
    for t, tau, y, r, q in zip(
        rows.t[:, 0], rows.tau[:, 0], rows.y, rows.r_logged, rows.q, strict=True
    ):
        v = (t - tau) / h
        if v * side <= 0 or abs(v) > 1:
            continue
        kernel = 0.75 * (1 - v * v) * (a[2] - a[1] * abs(v)) / (a[0] * a[2] - a[1] ** 2)
        w, e = kernel / (h * q), y - r
        total += [w, w * e, w * w, w * w * e, w * w * e * e]
    return total


def test_the_sums_by_loops():
    rows = some_rows(200)
    found = side_sums(rows, QUESTION)
    for i, h in enumerate((H, H / 2)):
        for k, side in enumerate((-1, 1)):
            assert found[i, k] == pytest.approx(sums_by_loops(rows, h, side), rel=LOOP)


def test_the_sums_add_up_over_blocks():
    rows = some_rows()

    def own(r):
        return side_sums(r[0], QUESTION)

    assert in_blocks(rows)(own) == pytest.approx(in_one_block(rows)(own), rel=LOOP)


def test_a_line_is_the_same_from_both_sides_and_a_step_is_its_size():
    """Weights that reproduce lines on a fine grid of doses of equal propensity."""
    t = np.linspace(-1, 1, 4001)[:, None]
    flat = np.zeros(len(t))
    rows = Rows(
        tau=np.zeros_like(t), t=t, y=3 + 2 * t[:, 0], q=np.full(len(t), 0.5), r_tau=flat,
        r_logged=flat,
    )  # fmt: skip
    # The grid's sums are integrals up to its step.
    assert Jump.of(side_sums(rows, QUESTION)).size == pytest.approx(0.0, abs=3e-3)
    stepped = replace(rows, y=rows.y + 1.5 * (t[:, 0] > 0))
    found = Jump.of(side_sums(stepped, QUESTION))
    assert found.size == pytest.approx(1.5, abs=3e-3)
    assert found.narrow == pytest.approx(1.5, abs=3e-3)


def test_the_se_is_that_of_two_weighted_means():
    rows = some_rows(300)
    found = Jump.of(side_sums(rows, QUESTION))
    variance = 0.0
    for k in range(2):
        w, we, w2, w2e, w2e2 = side_sums(rows, QUESTION)[0, k]
        mean = we / w
        variance += (w2e2 - 2 * mean * w2e + mean**2 * w2) / w**2
    assert found.se == pytest.approx(variance**0.5, rel=LOOP)


def test_rows_at_the_dose_itself_are_on_neither_side():
    rows = some_rows(100)
    added = replace(
        rows,
        **{
            name: np.concatenate([getattr(rows, name), getattr(rows, name)[:9]])
            for name in ("t", "y", "q", "r_tau", "r_logged")
        },
        tau=np.concatenate([rows.tau, rows.t[:9]]),
    )
    assert side_sums(added, QUESTION) == pytest.approx(side_sums(rows, QUESTION), rel=LOOP)


def test_a_side_without_rows_has_no_jump():
    rows = some_rows(100)
    above = replace(rows, tau=np.full_like(rows.tau, rows.t.min() - 0.1))
    assert Jump.of(side_sums(above, QUESTION)) is None


def test_a_late_block_may_have_no_rows_on_a_side():
    # Eight rows after the first block, and a dose that one of them at most is near.
    log = log_of(np.tanh, n=65_536 + 8)
    options = {"estimator": tt.SelfNormalized(), "bandwidth": 0.05, "allow_untrusted": True}
    found = tt.compare(log, {"low": tt.Constant(-3.9), "middle": tt.Constant(0.0)}, **options)
    assert found["middle"].diagnostics["dose_jump"].verdict is Verdict.OK
    assert any("jump" in note for note in found["low"].diagnostics.notes)


def test_vector_doses_have_no_sides():
    t = np.zeros((5, 2))
    rows = Rows(tau=t, t=t, y=np.zeros(5))
    assert side_sums(rows, Question(DoublyRobust(), 0, Scale.of(1.0, 2))) is None


def log_of(response, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = 0.5 * x[:, 0] + rng.normal(size=n)
    y = response(t) + x[:, 0] + 0.7 * rng.normal(size=n)
    q = np.exp(-((t - 0.5 * x[:, 0]) ** 2) / 2) / np.sqrt(2 * np.pi)
    return tt.LoggedData(x, t, y, q)


PLAIN = {"estimator": DoublyRobust(outcome=Stack(ridge_pair()))}


@pytest.mark.parametrize(
    ("response", "dose", "verdict"),
    [
        (lambda t: 0.5 * t**2 + 1.0 * (t >= 0), 0.0, Verdict.WARN),
        (lambda t: 0.5 * t**2 - 1.0 * (t >= 0), 0.0, Verdict.WARN),
        (lambda t: 0.5 * t**2 + 1.0 * (t >= 0), 1.2, Verdict.OK),
        (lambda t: 0.5 * t**2, 0.0, Verdict.OK),
        (np.abs, 0.0, Verdict.OK),
        (lambda t: np.tanh(3 * t), 0.0, Verdict.OK),
    ],
    ids=["up", "down", "elsewhere", "smooth", "kink", "steep"],
)
def test_a_jump_at_the_dose_is_told_from_bends(response, dose, verdict):
    found = tt.evaluate(log_of(response), tt.Constant(dose), **PLAIN).diagnostics["dose_jump"]
    assert found.verdict is verdict


def test_too_few_rows_on_a_side_are_a_note():
    rng = np.random.default_rng(0)
    t = rng.uniform(size=300)
    log = tt.LoggedData(rng.normal(size=(300, 1)), t, t, np.ones(300), bounds=(0, 1))
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized()).diagnostics
    assert "dose_jump" not in found.names
    assert any("jump" in note and "too few doses close by" in note for note in found.notes)
