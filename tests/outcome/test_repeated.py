"""Effects of the values that a context repeats, and what they do for an estimate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import titrant as tt
from titrant.outcome.forest import FoldForests, Forest
from titrant.outcome.repeated import RepeatedValues, Shrinkage, candidates

RNG = np.random.default_rng


def clinics(n, seed, number=40):
    """A clinic moves dose and outcome; its number says nothing."""
    r = RNG(seed)
    k = r.integers(0, number, n)
    a, z = r.normal(size=number)[k], r.normal(size=n)
    t = a + 0.5 * z + r.normal(size=n)
    y = 1.5 * a + z + 0.5 * t + 0.5 * r.normal(size=n)
    return tt.LoggedData(np.column_stack([k, z]), t, y), float((1.5 * a + z + 0.5).mean())


def test_shrunk_means_by_loops():
    r = RNG(0)
    codes, left = r.integers(0, 8, 200), r.normal(size=(200, 2))
    left[:, 0] += np.arange(8)[codes]
    found = Shrinkage.of(codes, left)
    assert found.between[0] > 0.0
    assert found.between[1] == 0.0
    effects = found.effects(codes, left)
    for level in range(8):
        rows = left[codes == level, 0]
        kept = len(rows) * found.between[0] / (len(rows) * found.between[0] + found.within[0])
        assert effects[level, 0] == pytest.approx(kept * rows.mean())
    assert not effects[:, 1].any()


def test_variances_are_those_that_were_drawn():
    r = RNG(1)
    codes = r.integers(0, 500, 20_000)
    left = (0.6 * r.normal(size=500))[codes] + 1.2 * r.normal(size=20_000)
    found = Shrinkage.of(codes, left[:, None])
    assert found.within[0] == pytest.approx(1.44, rel=0.05)
    assert found.between[0] == pytest.approx(0.36, rel=0.2)  # 500 draws know it to 6 %


def test_values_that_do_not_differ_have_no_effect():
    silent = 0
    for seed in range(60):
        r = RNG(seed)
        x = r.integers(0, 40, (400, 1)).astype(float)
        found, effects = RepeatedValues.fit_out_of_fold(x, r.normal(size=(400, 2)), 0)
        silent += not found.parts
        assert found.parts or not effects.any()
    # Three standard errors, two targets and four ways to look at a column: 1 % each.
    assert silent >= 54


def test_effects_of_a_row_do_not_know_its_own_target():
    r = RNG(2)
    x = r.integers(0, 10, (300, 1)).astype(float)
    left = x + r.normal(size=(300, 1))
    _, before = RepeatedValues.fit_out_of_fold(x, left, 0)
    changed = left.copy()
    changed[7] += 0.01
    _, after = RepeatedValues.fit_out_of_fold(x, changed, 0)
    # But for the variances, which a hundredth of an sd in one row moves by next to nothing.
    assert after[7] == pytest.approx(before[7], abs=1e-6)


def test_new_values_have_no_effect():
    r = RNG(3)
    x = r.integers(0, 10, (300, 1)).astype(float)
    found, _ = RepeatedValues.fit_out_of_fold(x, x + r.normal(size=(300, 1)), 0)
    assert found(np.array([[3.0]]), 1)[0, 0] != 0.0
    assert found(np.array([[99.5]]), 1)[0, 0] == 0.0


def test_days_have_weekdays_and_numbers_with_fractions_have_none():
    days = np.arange(730.0)[:, None]
    assert list(candidates(days)) == [(0, 7), (0, 24), (0, 12), (0, None)]
    assert list(candidates(days + 0.5)) == [(0, None)]
    assert list(candidates(np.arange(12.0)[:, None])) == [(0, None)]


def test_a_forest_knows_clinics_that_it_has_seen():
    log, _ = clinics(2_000, 0)
    targets = np.column_stack([log.outcome, log.treatment])
    forest = Forest().fit(log.context, targets)
    units = (targets - targets.mean(axis=0)) / targets.std(axis=0)
    left = units - forest.predict(log.context)
    assert left.var(axis=0).max() < 0.55  # trees alone leave .7 of the dose


@pytest.mark.long
@pytest.mark.parametrize("number", [20, 40])
def test_codes_are_adjusted_for(number):
    errors, covered = [], []
    for seed in range(6):
        log, truth = clinics(1_000, seed, number)
        found = tt.evaluate(log, tt.Constant(1.0), allow_untrusted=True)
        low, high = found.interval()
        errors.append(abs(found.value - truth) / found.se)
        covered.append(low <= truth <= high)
    # Without the effects of clinics 5 to 12 SE, and none of six covers.
    assert np.mean(errors) < 2.0
    assert sum(covered) >= 5


@pytest.mark.long
def test_a_weekday_among_numbered_days_is_adjusted_for():
    covered = []
    for seed in range(4):
        r = RNG(seed)
        day, z = r.integers(0, 730, 1_000), r.normal(size=1_000)
        weekend = day % 7 >= 5
        t = 10 + 1.5 * weekend + 0.4 * z + r.normal(size=1_000)
        y = 3 * weekend + 0.5 * z - 0.3 * (t - 10) + 0.7 * r.normal(size=1_000)
        log = tt.LoggedData(np.column_stack([day, z]), t, y)
        low, high = tt.evaluate(log, tt.Constant(11.5), allow_untrusted=True).interval()
        covered.append(low <= float((3 * weekend + 0.5 * z - 0.45).mean()) <= high)
    assert sum(covered) >= 3  # none before: 7 SE off


def test_outcomes_of_a_fold_have_no_say_in_the_means_of_its_codes():
    log, _ = clinics(300, 4, number=12)
    x, t, y = log.context, log.treatment, log.outcome
    before = FoldForests(folds=3)
    extended = before.fit_extend(x, t, y)
    fold = before.fold(0, len(x), None)
    for k in range(3):
        own = np.flatnonzero(fold == k)
        changed = y.copy()
        changed[own] += 50.0 * RNG(k).normal(size=len(own))
        after = FoldForests(folds=3)
        again = after.fit_extend(x, t, changed)
        # Law: what judges the rows of a fold has not seen one of their outcomes, bit for bit;
        kept, same = (forests.forests_[k].repeated_.parts for forests in (before, after))
        assert kept, "no code has an effect"
        for a, b in zip(kept, same, strict=True):
            np.testing.assert_array_equal(a.effects, b.effects)
        np.testing.assert_array_equal(again[k], extended[k])
        np.testing.assert_array_equal(after.extend(fold, x)[own], before.extend(fold, x)[own])
        # what judges the others has.
        other = (k + 1) % 3
        assert not np.array_equal(again[other], extended[other])


@pytest.mark.long
def test_four_hundred_texts_that_confound():
    """A product moves price and demand; its name, one of 400, is all that the log has of it."""
    r = RNG(6)
    n, names = 4_000, np.array([f"product {k:03}" for k in range(400)])
    k = r.integers(0, 400, n)
    level, z = r.normal(size=400)[k], r.normal(size=n)
    t = level + 0.5 * z + r.normal(size=n)
    y = 1.5 * level + z + 0.5 * t + 0.5 * r.normal(size=n)
    table = {"product": names[k], "z": z, "price": t, "demand": y}
    log = tt.LoggedData.from_frame(pa.table(table), treatment="price", outcome="demand")
    truth = float((1.5 * level + z + 0.5).mean())
    found = tt.evaluate(log, tt.Constant(1.0))
    low, high = found.interval(0.99)
    assert low <= truth <= high
    # Ten rows a name leave a tenth of what it does; without the name all of it is confounding.
    without = tt.LoggedData(z[:, None], t, y)
    blind = tt.evaluate(without, tt.Constant(1.0), allow_untrusted=True)
    assert abs(found.value - truth) < 0.35 * abs(blind.value - truth)
