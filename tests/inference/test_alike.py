"""Doses that nobody alike was given: by loops, by hand, by laws, and where all doses are given."""

import math

import numpy as np
import pytest

import titrant as tt
from titrant.inference.trust import rules
from titrant.inference.trust.alike import CELL_ROWS, FEWEST_UNITS, Looks, NeverGiven, never_given


def logged(n: int = 600, seed: int = 0, *, spared: bool = True, above: float = 1.3):
    """Contexts (n, 3) and doses (n,); those with a high first context have low doses alone."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    t = 0.5 * x[:, 1] + rng.normal(size=n)
    few = x[:, 0] > above
    return x, np.where(few & spared, -1.0 + 0.3 * rng.normal(size=n), t)


def share_by_loops(x, t, tau, unit):
    """Return the largest share of rows whose dose is unheard of, row by row and cell by cell."""
    n, shares = len(t), [0.0]
    look = Looks(x)
    for together in (1, 2):
        chosen = look.among(together, dict.fromkeys(look.varying, 0.0))
        for cell, _ in look.cells(together, chosen, CELL_ROWS):
            never = 0
            for c in set(cell):
                alike = [j for j in range(n) if cell[j] == c]
                if len({unit[j] for j in alike}) < FEWEST_UNITS:
                    continue
                mean = sum(t[j] for j in alike) / len(alike)
                sd = math.sqrt(sum((t[j] - mean) ** 2 for j in alike) / (len(alike) - 1))
                if not any(abs(t[j] - tau[j]) <= 0.5 * np.std(t) for j in alike):
                    never += sum(abs(tau[i] - mean) > 5.0 * sd for i in alike)
            shares.append(never / n)
    return max(shares)


@pytest.mark.parametrize("grouped", [False, True])
def test_by_loops(grouped):
    x, t = logged(160, above=0.5)
    tau = np.column_stack([np.full(160, 1.0), 1.0 + 0.3 * x[:, 1]])
    unit = np.arange(160) // 2 if grouped else None
    found = never_given(x[:, :2], t, tau, np.ones(160), unit)
    rows = np.arange(160) if unit is None else unit
    for k in range(2):
        assert found[k].share == pytest.approx(share_by_loops(x[:, :2], t, tau[:, k], rows))
    assert found[0].share > 0.0


def test_two_cells_by_hand():
    # A context of two values: at 1 doses are 0 or 2 (mean 1, sd about 1), at 0 they are 0 or .2.
    # A dose of 2 is given at 1; at 0 it is 1.9 from the mean .1, 18 of their sds.
    x = np.repeat([0.0, 1.0], [16, 48])[:, None]
    t = np.r_[np.tile([0.0, 0.2], 8), np.tile([0.0, 2.0], 24)]
    [found] = never_given(x, t, np.full((64, 1), 2.0), np.ones(64), None)
    assert (found.share, found.rows, found.contexts) == (0.25, 16, (0,))
    # Counted by weights, those at 0 are half of all.
    omega = np.repeat([3.0, 1.0], [16, 48])
    assert never_given(x, t, np.full((64, 1), 2.0), omega, None)[0].share == 0.5
    # Of two patients a cell says nothing.
    unit = np.r_[np.arange(16) % 2, 2 + np.arange(48)]
    assert never_given(x, t, np.full((64, 1), 2.0), np.ones(64), unit)[0].rows == 0


def test_units_order_and_rising_scales_change_nothing():
    x, t = logged()
    tau = np.full((len(t), 1), 1.0)
    ones = np.ones(len(t))
    own = never_given(x, t, tau, ones, None)
    assert own[0].share > rules.NEVER_SHARE
    # Doses in other units (a power of two keeps each digit).
    assert never_given(x, 4.0 * t, 4.0 * tau, ones, None) == own
    # Contexts go by their ranks; rows by no order.
    assert never_given(np.exp(x), t, tau, ones, None) == own
    order = np.random.default_rng(1).permutation(len(t))
    assert never_given(x[order], t[order], tau, ones, None) == own


def test_people_told_by_three_contexts_are_alike_in_the_dose_expected_of_them():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(1500, 4))
    few = (x[:, :3] > 0.1).all(axis=1)
    t = np.where(few, -1.5 + 0.2 * rng.normal(size=1500), 1.0 + 0.5 * rng.normal(size=1500))
    asked, ones = np.full((1500, 1), 1.5), np.ones(1500)
    expected = np.where(few, -1.0, 0.7) + 0.2 * rng.normal(size=1500)
    [found] = never_given(x, t, asked, ones, None, expected=expected)
    assert found.contexts == ()
    # Cells are of 32 rows, of which the last may hold others.
    assert few.mean() - 32 / 1500 < found.share <= few.mean()
    assert "`" not in str(rules.never_given(found, ["a", "b", "c", "d"])).split("(")[0]


def test_of_many_contexts_those_that_tell_of_the_dose_are_paired_in_any_order():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 40))
    few = (x[:, 0] > 0.4) & (x[:, 1] > 0.4)
    t = np.where(few, -2.0 + 0.2 * rng.normal(size=1000), rng.normal(size=1000))
    asked, ones = np.full((1000, 1), 1.0), np.ones(1000)
    [first] = never_given(x, t, asked, ones, None)
    [last] = never_given(x[:, ::-1], t, asked, ones, None)
    assert first.contexts == (0, 1)
    assert last.contexts == (38, 39)
    assert first.share == last.share > rules.NEVER_SHARE


def checks_of(estimate):
    return [check.name for check in estimate.diagnostics if check.verdict.value != "ok"]


@pytest.mark.usefixtures("plain_models")
def test_a_dose_that_some_never_had_is_warned_of_and_one_they_had_is_not():
    x, t = logged(800, 2)
    y = (t - 1.0) ** 2 + x[:, 1] + np.random.default_rng(3).normal(size=len(t))
    log = tt.LoggedData(x, t, y, names=["creatinine", "age", "weight"])
    rules = {"all": 1.0, "the others": lambda x: np.where(x[:, 0] > 1.3, -1.0, 1.0)}
    found = tt.compare(log, rules, allow_untrusted=True)
    assert "never_given" in checks_of(found["all"])
    [said] = [str(check) for check in found["all"].diagnostics if check.name == "never_given"]
    assert "`creatinine`" in said
    assert "never_given" not in checks_of(found["the others"])
    # With as many people whose doses are like those of others, there is nothing to say.
    x, t = logged(800, 2, spared=False)
    log = tt.LoggedData(x, t, y, names=["creatinine", "age", "weight"])
    assert "never_given" not in checks_of(tt.evaluate(log, 1.0, allow_untrusted=True))


@pytest.mark.usefixtures("plain_models")
def test_a_few_who_never_had_the_dose_are_noted():
    # Too few for a warning, but what the dose does to them is taken from others.
    rng = np.random.default_rng(4)
    clearance, age = rng.uniform(0.0, 120.0, 1500), rng.normal(size=1500)
    t = np.where(clearance < 3.0, 10.0 + rng.normal(size=1500), 40.0 + 8.0 * rng.normal(size=1500))
    y = age + rng.normal(size=1500)
    found = tt.evaluate(tt.LoggedData({"clearance": clearance, "age": age}, t, y), 40.0)
    assert "never_given" not in checks_of(found)
    [note] = [note for note in found.diagnostics.notes if "nobody alike in" in note]
    assert note.startswith("In 2")
    # Where they have doses like those of others, there is nothing to say.
    given = tt.LoggedData({"clearance": clearance, "age": age}, rng.permutation(t), y)
    assert "nobody alike" not in " ".join(tt.evaluate(given, 40.0).diagnostics.notes)


@pytest.mark.parametrize(
    ("share", "rows", "said"), [(0.05, 20, "ok"), (0.05, 30, "warn"), (0.02, 300, "ok")]
)
def test_much_is_a_share_and_a_number_of_rows(share, rows, said):
    assert rules.never_given(NeverGiven(share, rows, (0,)), ["age"]).verdict.value == said
