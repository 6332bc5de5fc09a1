"""Each doubt names the column it is about, nothing else, and stays silent on sound logs."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.doubts import CHOSEN, LIKE_CODED

import titrant as tt
from sweeps import long
from titrant.data.gaps import Difference, differences
from titrant.evaluation.survey import survey_of
from titrant.execute import as_engine
from titrant.inference.trust import doubts
from titrant.inference.trust.doubts import (
    DOUBTS,
    EXACT,
    cross_fitted_r2,
    determined,
    held_values,
    is_key,
    parts,
)
from titrant.inference.trust.rules import CONFOUNDING
from titrant.outcome import ridge_pair

N = 600
EXACTLY = 1e-6  # the ridge that keeps equal columns solvable is 1e-10
POLICY = tt.Constant(0.5)
NAMES = ("age", "weight", "sex")


def drawn(seed=0, n=N):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(n, 2)), rng.random(n) < 0.4])
    t = x[:, 0] + rng.normal(size=n)
    y = 1 + 2 * x[:, 0] + 0.5 * t + np.sin(x[:, 1]) + rng.normal(size=n)
    return rng, x, t, y


class Rows(NamedTuple):
    rng: np.random.Generator
    x: np.ndarray
    t: np.ndarray
    y: np.ndarray


def with_column(column, seed=0, n=N):
    """A log with a context more, called `odd`."""
    rows = Rows(*drawn(seed, n))
    x = np.column_stack([rows.x, column(rows)])
    return tt.LoggedData(x, rows.t, rows.y, names=[*NAMES, "odd"])


def found_in(log):
    survey = survey_of(log, as_engine(None, log))
    return [*survey.outcome_doubts, *survey.context_doubts]


def checks_of(log):
    return {one.name: one.message for one in found_in(log) if not isinstance(one, str)}


def coded(rng, column, code, share=0.1):
    return np.where(rng.random(len(column)) < share, code, column)


def twice_coded(d, column, pair):
    for code in pair:
        column = coded(d.rng, column, code, share=0.07)
    return column


def far_doses(d):
    d.t[3] = 3e3
    return d.rng.normal(size=len(d.t))


def far_outcomes(d):
    d.y[3] = 1e7
    return d.rng.normal(size=len(d.t))


def coded_dose(d):
    d.t[d.rng.random(len(d.t)) < 0.1] = -999.0
    return d.rng.normal(size=len(d.t))


def coded_outcome(d):
    d.y[d.rng.random(len(d.y)) < 0.05] = -999.0
    return d.rng.normal(size=len(d.t))


def coded_outcome_among(d):
    d.y[:] *= 60.0
    d.y[d.rng.random(len(d.y)) < 0.05] = -99.0
    return d.rng.normal(size=len(d.t))


def two_codes_of_outcomes(d):
    for code in (-99.0, -98.0):
        d.y[d.rng.random(len(d.y)) < 0.05] = code
    return d.rng.normal(size=len(d.t))


def five_codes_of_outcomes(d):
    rows = d.rng.random(len(d.y)) < 0.1
    d.y[rows] = d.rng.integers(-99, -94, np.count_nonzero(rows))
    return d.rng.normal(size=len(d.t))


def later(d):
    """A noisy copy of outcomes that the dose moves and chance as well."""
    d.y[:] += 1.5 * d.t + 3.0 * d.rng.normal(size=len(d.t))
    return d.y + 0.9 * d.rng.normal(size=len(d.t))


def far_value(d):
    odd = d.rng.normal(size=len(d.t))
    odd[:1] = 1e9
    return odd


EXAMPLES = {
    "coded_doses": [coded_dose],
    "coded_outcomes": [
        coded_outcome,
        coded_outcome_among,
        two_codes_of_outcomes,
        five_codes_of_outcomes,
    ],
    "stray_doses": [far_doses],
    "stray_outcomes": [far_outcomes],
    "dropped_rows": [],
    "coded_contexts": [
        lambda d: coded(d.rng, d.rng.integers(18, 90, len(d.t)), -99.0),
        lambda d: coded(d.rng, d.rng.integers(18, 90, len(d.t)), -9.0),
        lambda d: coded(d.rng, d.rng.poisson(9, len(d.t)), -1.0),
        lambda d: coded(d.rng, d.rng.normal(120, 20, len(d.t)), 999.0),
        lambda d: coded(d.rng, d.rng.normal(size=len(d.t)), 9999.0, share=0.5),
        lambda d: coded(d.rng, d.rng.normal(0, 30, len(d.t)), -99.0),
        lambda d: coded(d.rng, d.rng.normal(0, 30, len(d.t)), -9.0, share=0.05),
        lambda d: coded(d.rng, d.rng.uniform(-200, 200, len(d.t)), 88.0),
        lambda d: coded(d.rng, np.round(d.rng.uniform(-200, 200, len(d.t))), -99.0),
        lambda d: coded(d.rng, d.rng.integers(18, 90, len(d.t)), 77.0),
        lambda d: coded(d.rng, np.round(d.rng.lognormal(10.5, 0.8, len(d.t))), 9999.0),
        *(
            lambda d, pair=pair: twice_coded(d, d.rng.integers(18, 90, len(d.t)), pair)
            for pair in ((-99.0, -98.0), (98.0, 99.0), (-1.0, -2.0), (998.0, 999.0))
        ),
        lambda d: twice_coded(d, d.rng.integers(1, 6, len(d.t)), (8.0, 9.0)),
        lambda d: twice_coded(d, np.round(d.rng.uniform(-200, 200, len(d.t))), (98.0, 99.0)),
    ],
    "silent_contexts": [lambda d: d.x[:, 1] + 1e16],
    "constant_contexts": [lambda d: np.full(len(d.t), 3.0)],
    "key_contexts": [
        lambda d: np.arange(len(d.t)) + 51_624.0,
        lambda d: np.cumsum(d.rng.integers(1, 9, len(d.t))),
        lambda d: d.rng.permutation(3 * len(d.t))[: len(d.t)],
        lambda d: -np.arange(float(len(d.t))),
    ],
    "repeated_contexts": [
        lambda d: d.x[:, 1],
        lambda d: 5.0 - 2.2 * d.x[:, 1],
        lambda d: np.round(d.x[:, 1], 1),
        lambda d: 1.0 - d.x[:, 2],
    ],
    "copied_outcomes": [
        lambda d: 3.0 - 2.0 * d.y,
        lambda d: np.exp(d.y),
        lambda d: 1.0 * (d.y > 1.0),
        lambda d: np.digitize(d.y, [-1.0, 1.0, 3.0]),
    ],
    "late_outcomes": [later, lambda d: 9.0 - 3.0 * later(d)],
    "leaked_outcomes": [
        lambda d: d.y + d.x[:, 1],
        lambda d: d.y - d.t,
        lambda d: d.t - 2.0 * d.y,
        lambda d: d.y + 3.0 * d.x[:, 1] - d.x[:, 2] + d.t,
        lambda d: np.round(d.y + d.x[:, 1], 1),
        lambda d: d.y / d.x[:, 1],
        lambda d: d.y * d.x[:, 1],
        lambda d: d.y - d.x[:, 1] ** 2,
        lambda d: d.y - 3.0 * d.x[:, 0] * d.x[:, 1],
        lambda d: d.y - 2.0 * d.t * d.x[:, 1],
    ],
    "copied_treatments": [
        lambda d: 2.0 * d.t + 1.0,
        lambda d: np.arctan(d.t),
        lambda d: np.digitize(d.t, [-1.0, 0.0, 1.0]),
        lambda d: np.round(d.t, 1),
        lambda d: np.round(d.t),
        lambda d: np.floor(2.0 * d.t),
        lambda d: d.t + d.x[:, 1],
    ],
    "acting_gaps": [],
    "deciding_contexts": [],
    "late_dates": [],
    "decimal_groups": [],
    "weight_contexts": [],
    "held_values": [far_value],
}
"""For each doubt, columns that must raise it; others have tests of their own."""
CASES = [(name, spoil) for name, spoils in EXAMPLES.items() for spoil in spoils]
RAISED = [(name, spoil) for name, spoil in CASES if name != "held_values"]
OF_ONE_UNIT = {"coded_doses", "coded_outcomes"}
"""−999 is a code in its own unit."""
ABOUT_CONTEXTS = [c for c in RAISED if "stray" not in c[0] and c[0] not in OF_ONE_UNIT]


def test_every_doubt_has_examples():
    assert [doubt.__name__ for doubt in DOUBTS] == list(EXAMPLES)


@pytest.mark.parametrize(("name", "spoil"), RAISED)
def test_the_doubt_is_raised_and_no_other(name, spoil):
    assert set(checks_of(with_column(spoil))) == {name}


def test_a_note_says_what_models_make_of_far_values():
    # As `Held` does: one is most likely a slip, several are held at the end of the others.
    def told(far):
        log = with_column(
            lambda d: np.append(d.rng.normal(size=len(d.t) - far), 1e9 * np.arange(1, 1 + far))
        )
        columns = survey_of(log, as_engine(None, log)).columns
        (note,) = held_values(columns)
        odd = log.names.index("odd")
        (held,) = np.unique(columns.held.columns(log.context)[-far:, odd])
        return note, held, np.median(log.context[:, odd]), np.sort(log.context[:, odd])[-far - 1]

    note, held, median, _ = told(1)
    assert note.startswith("In 1 row the context 'odd' lies far beyond all other values (such as")
    assert note.endswith(f"models count it as the median, {held:.6g}.")
    assert held == pytest.approx(median, abs=0.05)
    note, held, _, last = told(9)
    assert note.startswith("In 9 rows")
    assert note.endswith("models count it as the last value before that.")
    assert held == last


@pytest.mark.parametrize(("name", "spoil"), ABOUT_CONTEXTS)
def test_the_column_is_named(name, spoil):
    assert "'odd'" in checks_of(with_column(spoil))[name]


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("n", [3, 19, 40, N])
def test_each_is_silent_on_sound_logs(doubt, n):
    for seed in range(5):
        _, x, t, y = drawn(seed, n)
        x[:3, 2] = 0.0, 1.0, 0.0
        log = tt.LoggedData(x, t, y)
        assert not list(doubt(survey_of(log, as_engine(None, log)).columns))


@pytest.mark.parametrize("doubt", DOUBTS)
def test_each_takes_a_log_without_contexts(doubt):
    _, _, t, y = drawn()
    log = tt.LoggedData(np.empty((N, 0)), t, y)
    assert not list(doubt(survey_of(log, as_engine(None, log)).columns))


@pytest.mark.parametrize(("name", "spoil"), ABOUT_CONTEXTS)
def test_the_order_of_columns_does_not_matter(name, spoil):
    log = with_column(spoil)
    turned = tt.LoggedData(log.context[:, ::-1], log.treatment, log.outcome, names=log.names[::-1])
    assert list(checks_of(turned)) == [name]
    if name != "repeated_contexts":  # of two copies, the later is called one of the first
        assert "'odd'" in checks_of(turned)[name]


@pytest.mark.parametrize(("name", "spoil"), RAISED)
def test_units_of_outcomes_and_doses_do_not_matter(name, spoil):
    log = with_column(spoil)
    if name in OF_ONE_UNIT:
        return
    t, y = 1e3 * log.treatment - 7.0, 1e-3 * log.outcome
    assert list(checks_of(tt.LoggedData(log.context, t, y, names=log.names))) == [name]


@pytest.mark.parametrize("spoil", [spoil for name, spoil in RAISED if name != "key_contexts"])
def test_the_order_of_rows_does_not_matter(spoil):
    log = with_column(spoil)
    rows = np.random.default_rng(4).permutation(N)
    assert checks_of(log.rows(rows)).keys() == checks_of(log).keys()


@pytest.mark.parametrize(("name", "spoil"), RAISED)
def test_doubts_lower_the_verdict_unless_ignored(name, spoil):
    log = with_column(spoil)
    report = tt.check(log, propensity=tt.LinearGaussian())
    assert report[name].verdict.value == "warn"
    assert report.verdict.value in {"warn", "refuse"}
    if "unfitted" in report.names:  # doses that contexts determine have no law to ignore doubts by
        return
    ignored = tt.check(log, propensity=tt.LinearGaussian(), ignore_doubts=True)
    assert name not in ignored.names
    assert any(report[name].message in note for note in ignored.notes)


# The default models are fitted to one kind of copy, and a plain one to each.
COPIES = EXAMPLES["copied_treatments"]
BY_DEFAULT = [(COPIES[0], None), *long(*((spoil, None) for spoil in COPIES[1:]))]


@pytest.mark.parametrize(
    ("spoil", "model"), [*((spoil, tt.LinearGaussian()) for spoil in COPIES), *BY_DEFAULT]
)
def test_what_a_copied_treatment_makes_fail_names_it(spoil, model):
    log = with_column(spoil)
    with pytest.raises(tt.TitrantError, match="'odd'"):
        tt.evaluate(log, POLICY, propensity=model)
    for policy in (None, POLICY):
        report = tt.check(log, policy, propensity=model)
        assert report.verdict.value != "ok"
        assert "'odd'" in report["copied_treatments"].message


def test_people_with_doses_of_their_own_are_no_copy_of_the_dose():
    def spared(d):
        few = d.rng.random(len(d.t)) < 0.04
        d.t[few] = -9.0 + 0.3 * d.rng.normal(size=few.sum())
        return few

    said = checks_of(with_column(spared))["copied_treatments"]
    # Without the context the value would be wrong in silence, so nobody is told to leave it out.
    assert "'odd' were given doses that do not overlap" in said
    assert "leave it out only if it was made from the dose" in said
    assert "is that of the treatment" not in said


# ── What is no leak ──────────────────────────────────────────────────────────────────────────────
def noisy(rng, column, r2):
    return column + column.std() * np.sqrt(1.0 / r2 - 1.0) * rng.normal(size=len(column))


def earlier(d, r2):
    """What explains so much of the outcome, and was there before the dose."""
    before = d.y.std() * np.sqrt(r2 / (1.0 - r2)) * d.rng.normal(size=len(d.y))
    d.y[:] += before
    return before


@pytest.mark.parametrize("r2", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("n", [100, N, 3000])
def test_a_good_predictor_is_no_leak(r2, n):
    # The same quantity at an earlier visit, and what doses are chosen by.
    for seed in range(3):
        assert not checks_of(with_column(lambda d: earlier(d, r2), seed, n))
        assert not checks_of(with_column(lambda d: noisy(d.rng, d.t, r2), seed, n))


def test_a_context_that_explains_most_of_the_outcome_gets_a_note():
    log = with_column(lambda d: earlier(d, 0.95))
    notes = [one for one in found_in(log) if isinstance(one, str)]
    assert len(notes) == 1
    assert "'odd' alone explains 9" in notes[0]


HONEST = {
    "incomes": lambda rng, n: np.round(rng.lognormal(10.5, 0.8, n)),
    "ages": lambda rng, n: rng.integers(18, 90, n),
    "rare events": lambda rng, n: rng.permutation(n) < 2,
    "scores in elevenths": lambda rng, n: 11.0 * rng.binomial(14, 0.5, n),
    "scores up to 99": lambda rng, n: np.minimum(np.round(rng.normal(85, 12, n)), 99.0),
    "shares in whole percents": lambda rng, n: np.round(99.0 * rng.beta(3, 3, n) ** 0.1),
    "prices": lambda rng, n: rng.choice(
        [9.0, 19, 29, 39, 49, 59, 79, 99, 129, 149, 199, 249, 299, 399], n
    ),
    "changes in fives": lambda rng, n: np.where(
        rng.random(n) < 0.5, 5.0 * np.round(rng.normal(0, 1.2, n)), rng.normal(0, 6, n)
    ),
    "scores from -1 to 1": lambda rng, n: rng.integers(-1, 2, n),
    "temperatures": lambda rng, n: np.round(rng.normal(5, 5, n)),
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
    "counts": lambda rng, n: rng.negative_binomial(1, 0.1, n),
    "clinics": lambda rng, n: rng.integers(0, 40, n),
    "years": lambda rng, n: rng.integers(1999, 2024, n),
    "moments": lambda rng, n: 1.7e18 + np.round(1e15 * rng.random(n)),
}


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("n", [60, N])
def test_honest_columns_raise_nothing(kind, n):
    for seed in range(10):
        assert not checks_of(with_column(lambda d: HONEST[kind](d.rng, n), seed, n))


def test_a_code_among_the_values_is_named_with_its_rows():
    log = with_column(lambda d: np.where(np.arange(N) % 10 == 0, -99.0, d.rng.normal(0, 60, N)))
    assert checks_of(log)["coded_contexts"] == (
        "In many more rows than the values around it, 'odd' is -99 in 60 rows (of 600): this looks "
        "like a code, not a number. Say what was not recorded as missing, or drop these rows."
    )
    half = np.random.default_rng(1).normal(0, 60, N)
    half[::20], half[10::20] = -99.0, 99999.0
    said = checks_of(with_column(lambda _: half))["coded_contexts"]
    assert said.startswith("Far from all other values, 'odd' is 99999 in 30 rows (of 600): this")
    assert "In many more rows than the values around it, 'odd' is -99 in 30 rows" in said


def test_codes_side_by_side_are_all_named_among_the_values_too():
    def said(column):
        return checks_of(with_column(column))["coded_contexts"]

    for code, other in ((-99.0, -98.0), (98.0, 99.0), (-1.0, -2.0)):
        found = said(lambda d, c=(code, other): twice_coded(d, d.rng.integers(18, 90, N), c))
        assert f"'odd' is {code:g} in " in found
        assert f"'odd' is {other:g} in " in found
    inside = said(lambda d: twice_coded(d, np.round(d.rng.uniform(-200, 200, N)), (98.0, 99.0)))
    assert inside.startswith("In many more rows than the values around it, 'odd' is 98 in ")
    assert "'odd' is 99 in " in inside


def test_two_codes_among_ages_move_no_value_unseen():
    # In a tenth of the rows doses follow an age that is not there: no adjustment helps, and the
    # value of the dose 1.2 is some .1 too large. It was called ok.
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 1000)
    z = (age - 53.5) / 20.8
    t = 0.9 * z + rng.normal(size=1000)
    y = 0.5 * (t - 0.3) ** 2 + 1.5 * z + 0.5 * rng.normal(size=1000)
    place = rng.random(1000)
    age = np.where(place < 0.05, -99, np.where(place < 0.1, -98, age))
    estimate = tt.evaluate(tt.LoggedData(age[:, None], t, y, names=["age"]), tt.Constant(1.2))
    assert estimate.diagnostics.verdict.value == "warn"
    assert "'age' is -99 in " in estimate.diagnostics["coded_contexts"].message
    assert "'age' is -98 in " in estimate.diagnostics["coded_contexts"].message


def test_a_median_that_was_filled_in_and_the_places_of_texts_are_no_codes(tmp_path):
    rng, x, t, y = drawn(n=2000)
    score = np.round(rng.normal(88, 40, 2000), 1)
    score[rng.random(2000) < 0.4] = np.nan
    score += 88.0 - np.nanmedian(score)
    names = [f"s{k:03d}" for k in rng.integers(0, 150, 2000)]
    clinic = np.where(rng.random(2000) < 0.1, "s077", names)
    table = {"x": x[:, 0], "score": score, "clinic": clinic, "t": t, "y": y}
    log = tt.LoggedData.from_frame(table, treatment="t", outcome="y")
    column = log.context[:, log.names.index("score")]
    assert np.count_nonzero(column == 88.0) > 700
    places = log.context[:, log.names.index("clinic")]
    assert np.count_nonzero(places == 77.0) > 200
    assert "coded_contexts" not in checks_of(log)
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    roles = tt.Columns(treatment="t", outcome="y", context=log.names)
    over_files = tt.scan_parquet(tmp_path / "log.parquet", roles, recipe=log.flow.recipe)
    assert "coded_contexts" not in checks_of(over_files)


def test_a_far_outcome_of_one_group_is_no_code_though_its_row_is_there_four_times():
    _, x, t, y = drawn()
    y[5] = y.max() + 40.0 * y.std()
    four = np.repeat(np.arange(N), 4)
    asked = {"groups": four}
    named = "coded_outcomes"
    assert named not in checks_of(tt.LoggedData(x[four], t[four], y[four], **asked))
    assert named in checks_of(tt.LoggedData(x[four], t[four], y[four]))
    y[::9] = -9999.0
    assert named in checks_of(tt.LoggedData(x[four], t[four], y[four], **asked))


def test_codes_of_outcomes_side_by_side_move_no_value_unseen():
    # Five codes from −99 to −95 among outcomes about 50, more at high doses, made 46 of 53.
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 80, 1500)
    t = 10 + age / 20 + 2 * rng.normal(size=1500)
    y = np.round(50 + 3 * (t - 13) + 8 * rng.normal(size=1500))
    missing = rng.random(1500) < np.clip(0.15 + 0.03 * (t - 13), 0.01, 0.4)

    def said(codes):
        marked = np.where(missing, rng.choice(codes, 1500), y)
        return checks_of(tt.LoggedData(age[:, None], t, marked, names=["age"]))

    for codes in ([*range(-99, -94)], [*range(-8, 0)], [*range(9995, 10000)], [996, 998]):
        (message,) = said(codes).values()
        for code in codes:
            assert f"'outcome' is {code} in " in message


@pytest.mark.parametrize("doses", [(1, 2, 3, 4, 8), (1, 2, 3, 9), (0, 1, 2, 3, 4, 5, 9)], ids=str)
def test_a_large_dose_beyond_a_scale_was_chosen(doses):
    rng, x, _, y = drawn()
    t = rng.choice(doses, N).astype(float)
    assert not checks_of(tt.LoggedData(x, t, y))
    assert "coded_outcomes" in checks_of(tt.LoggedData(x, y, t))  # of outcomes no one chose any
    t[rng.random(N) < 0.2] = 8.0
    t[rng.random(N) < 0.2] = 9.0
    assert "coded_doses" in checks_of(tt.LoggedData(x, t, y))  # hardly both were chosen


def test_missing_together_by_chance_is_no_copy():
    # Two rare 0/1 columns may have their single 1 in the same row.
    def single(d):
        d.x[:, 2] = 0.0
        d.x[7, 2] = 1.0
        return d.x[:, 2]

    assert "repeated_contexts" not in checks_of(with_column(single))


# ── Several at once, products, vectors ───────────────────────────────────────────────────────────
def test_two_leaks_are_both_named():
    _, x, t, y = drawn()
    x = np.column_stack([x, y + x[:, 1], y - t])
    message = checks_of(tt.LoggedData(x, t, y, names=[*NAMES, "cost", "net"]))["leaked_outcomes"]
    assert "'cost'" in message
    assert "'net'" in message
    assert "'age'" not in message


@pytest.mark.parametrize(
    "how", [lambda y, t, _: y * t, lambda y, t, _: y / t, lambda y, _, z: z / y]
)
def test_products_and_ratios_are_leaks(how):
    _, x, t, y = drawn()
    t, y, z = np.exp(t / 3), np.exp(y / 3), np.exp(x[:, 1])
    odd = np.column_stack([x, z, how(y, t, z)])
    found = checks_of(tt.LoggedData(odd, t, y, names=[*NAMES, "size", "odd"]))
    assert "as a product or ratio, from 'odd'" in found["leaked_outcomes"]


def test_a_leak_beside_products_is_named_with_them():
    _, x, t, y = drawn()
    odd = y - x[:, 0] ** 2 + 2.0 * x[:, 0] * x[:, 1]
    log = tt.LoggedData(np.column_stack([x, odd]), t, y, names=[*NAMES, "odd"])
    found = checks_of(log)["leaked_outcomes"]
    assert "as a sum with a square or product, from 'odd' with 'age', 'weight' (R² 0." in found
    # No leak: what is known but for noise of a hundredth of the variance, or a square of the dose.
    rng = np.random.default_rng(1)
    for outcome in (
        x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=N),
        (t - x[:, 0]) ** 2 + x[:, 0] * x[:, 1],
    ):
        assert not checks_of(tt.LoggedData(x, t, outcome, names=NAMES))


def test_each_of_several_doses_is_looked_at():
    rng, x, t, y = drawn()
    doses = np.column_stack([t, rng.normal(size=N)])
    log = tt.LoggedData(np.column_stack([x, doses[:, 1] + 1.0]), doses, y, names=[*NAMES, "odd"])
    assert "'odd' is that of the treatment 1." in checks_of(log)["copied_treatments"]


def test_names_are_written_as_they_are():
    _, x, t, y = drawn()
    log = tt.LoggedData(np.column_stack([x, 2 * t]), t, y, names=["BMI", "INR", "Sex", "DoseMG"])
    assert "'DoseMG'" in checks_of(log)["copied_treatments"]


def test_an_outcome_that_the_dose_alone_knows_is_not_held_against_a_context():
    _, x, t, _ = drawn()
    assert not checks_of(tt.LoggedData(x, t, 2.0 * t + 1.0))


def test_what_bears_on_confounding_exists():
    made = {"coded_contexts", "silent_contexts", "copied_outcomes", "leaked_outcomes"}
    made |= {"late_outcomes", "acting_gaps"}
    assert made | {"copied_treatments", "stray_doses"} <= CONFOUNDING & set(EXAMPLES)


# ── Known answers ────────────────────────────────────────────────────────────────────────────────
def test_exactness_worked_out():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(400, 3))
    y = z @ [1.0, -2.0, 0.0]
    assert cross_fitted_r2(z, y) == pytest.approx(1.0, abs=EXACTLY)
    # Of noise nothing is explained on the other half, rather less.
    assert cross_fitted_r2(z, rng.normal(size=400)) < 0.02
    # As many columns as rows fit any outcome: nothing is said.
    assert cross_fitted_r2(rng.normal(size=(40, 30)), rng.normal(size=40)) == 0.0
    found = determined(y, np.empty((400, 0)), z)
    assert [(f.column, f.others) for f in found] == [(1, (0,))]
    # Without column 1, of variance 4 in 5, columns 0 and 2 explain 1 in 5.
    assert found[0].without == pytest.approx(0.2, abs=0.1)


def test_a_drop_of_columns_is_least_squares_without_them():
    rng = np.random.default_rng(2)
    z = doubts.standardized(rng.normal(size=(300, 4)))
    y = doubts.standardized((z @ [3.0, 0.5, 0.0, 0.0])[:, None])[:, 0]
    # .5²/9.25 = .027 of the variance is more than rounding: both are needed, the first more.
    assert doubts.indispensable(z, y, 0) == [0, 1]
    assert EXACT > 1.0 - 0.027
    assert doubts.indispensable(z, y, 1) == [0]  # the first is always there


def test_parts_worked_out():
    low, high = np.arange(20.0), np.arange(20.0) + 20.0
    values = np.concatenate([low, high])
    assert parts(values >= 20.0, values)
    assert parts(values, values < 20.0)
    crossed = np.concatenate([low, high - 5.0])
    assert not parts(values >= 20.0, crossed)
    assert not parts(values[1:] >= 20.0, values[1:])  # 19 rows of a level are too few


def test_keys_worked_out():
    rng = np.random.default_rng(0)
    assert is_key(np.arange(20.0))
    assert not is_key(np.arange(19.0))
    assert not is_key(np.arange(20.0) / 7)
    # 200 different numbers below 600 would repeat 200²/1200 = 33 times by chance,
    few = rng.permutation(600)[:200].astype(float)
    assert is_key(few)
    # below 60,000 a third of a time.
    assert not is_key(100.0 * few)
    assert is_key(100.0 * few, "patient_id")


# ── Elsewhere ────────────────────────────────────────────────────────────────────────────────────
def leaking(tmp_path):
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    _, x, t, y = drawn(n=5000)
    table = {"age": x[:, 0], "weight": x[:, 1], "cost": y + x[:, 1], "dose": t, "loss": y}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    return table


def test_files_are_doubted_by_their_sample(tmp_path):
    table = leaking(tmp_path)
    context = ["age", "weight", "cost"]
    columns = tt.Columns(treatment="dose", outcome="loss", context=context)
    source = tt.scan_parquet(tmp_path / "log.parquet", columns, sample_rows=800)
    report = tt.check(source, propensity=tt.LinearGaussian())
    assert "'cost'" in report["leaked_outcomes"].message
    log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context=context)
    assert list(checks_of(log)) == ["leaked_outcomes"]


def test_columns_measured_after_the_treatment_are_left_out(tmp_path):
    table = leaking(tmp_path)
    context = ["age", "weight", "cost"]
    roles = {"treatment": "dose", "outcome": "loss", "context": context}
    log = tt.LoggedData.from_frame(table, **roles, after=["cost"])
    assert log.names == ("age", "weight")
    assert log.after == ("cost",)
    assert pickle.loads(pickle.dumps(log)).after == ("cost",)  # noqa: S301
    source = tt.scan_parquet(tmp_path / "log.parquet", tt.Columns(**roles, after="cost"))
    for one in (log, source):
        assert one.names == ("age", "weight")
        report = tt.evaluate(one, POLICY, propensity=tt.LinearGaussian()).diagnostics
        assert any("so not used as context: 'cost'" in note for note in report.notes)
        assert "leaked_outcomes" not in report.names
    with pytest.raises(tt.DataError, match="did you mean `cost`"):
        tt.Columns(**roles, after=["cots"])


def test_a_level_that_one_half_lacks_is_no_constant_column():
    # Columns are judged by the whole log: one row with a 1 is in one half only.
    rng, x, t, y = drawn(n=400)
    x[:, 2] = 0.0
    x[5, 2] = 1.0
    y = (t - x[:, 0]) ** 2 + rng.normal(size=400)
    learner = tt.PolicyLearner(
        procedure=tt.StackedDR(models=ridge_pair()), propensity=tt.LinearGaussian()
    )
    learner.set_params(grade=tt.SelfNormalized()).fit(tt.LoggedData(x, t, y))
    for half in learner.estimate_.halves:
        assert "constant_contexts" not in half["learned"].diagnostics.names


# ── copies of the outcome that were measured later ───────────────────────────────────────────────


def with_earlier(followed, effect, seed=0, n=N):
    """A log with an earlier measurement of the outcome, which the dose may follow."""
    rng = np.random.default_rng(seed)
    x, before = rng.normal(size=(2, n))
    t = followed * before + np.sqrt(1 - followed**2) * rng.normal(size=n)
    y = 4.0 * before + effect * t + 0.5 * x + 0.5 * rng.normal(size=n)
    return tt.LoggedData(np.column_stack([x, before]), t, y, names=["x", "before"])


@pytest.mark.parametrize("followed", [0.0, 0.5])
def test_an_earlier_outcome_is_no_late_one(followed):
    for seed in range(5):
        assert not checks_of(with_earlier(followed, 0.8, seed))


def test_a_confounder_of_a_dose_without_effect_looks_like_a_late_outcome():
    # What cannot be told apart: x → t and x → y without t → y, from t → y → x with little noise.
    assert list(checks_of(with_earlier(0.7, 0.0))) == ["late_outcomes"]


def test_without_an_effect_to_hold_no_context_is_late():
    assert not checks_of(with_earlier(0.0, 0.0))


# ── rows that were left out ──────────────────────────────────────────────────────────────────────


def with_gaps(gone, **more):
    """A table whose outcome is missing where `gone` (n,) says."""
    _, x, t, y = drawn()
    table = {"age": x[:, 0], "town": np.where(x[:, 2] > 0, "a", "b"), "t": t}
    table["y"] = np.where(gone(x, t), np.nan, y)
    names = ["age", "town", *more]
    return tt.LoggedData.from_frame(
        {**table, **more}, treatment="t", outcome="y", context=names, missing_outcome="drop"
    )


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        (lambda x, t: x[:, 0] + t > 1.0, "'age'"),
        (lambda x, t: t > 0.8, "'t'"),  # noqa: ARG005
        (lambda x, t: (x[:, 2] > 0) & (t > -1.0), "'town=a'"),
    ],
)
def test_rows_left_out_that_are_not_like_the_others_are_told(gone, named):
    found = checks_of(with_gaps(gone))
    assert list(found) == ["dropped_rows"]
    assert named in found["dropped_rows"]


def test_rows_left_out_by_chance_are_no_doubt():
    doubted = 0
    for seed in range(40):
        chance = np.random.default_rng([9, seed]).random(N) < 0.2
        doubted += bool(checks_of(with_gaps(lambda *_, chance=chance: chance)))
    assert doubted <= 2  # one in a hundred logs


@pytest.mark.parametrize(("rows", "gone"), [(300, 8), (800, 27), (3000, 30)])
def test_levels_that_few_rows_left_out_lack_by_chance_are_no_doubt(rows, gone):
    told = 0
    for seed in range(100):
        rng = np.random.default_rng([17, seed])
        clinic = rng.integers(0, 9, rows)
        columns = {str(k): (clinic == k).astype(float) for k in range(9)}
        kept = np.arange(rows) >= gone
        told += bool(differences(kept, columns | {"age": rng.normal(size=rows)}))
    assert told <= 5  # by the sd of the rows left out alone it would be more than half of them


def test_the_difference_of_five_rows():
    """0, 0, 0, 0, 1 kept beside five of 10: a difference of 9.8 in sds of all ten, 4.909."""
    values = np.array([0.0, 0.0, 0.0, 0.0, 1.0, *[10.0] * 5])
    found = differences(np.arange(10) < 5, {"x": values})
    assert found == (Difference("x", pytest.approx(9.8 / values.std())),)
    assert differences(None, {"x": values}) == ()
    assert differences(np.arange(10) < 6, {"x": values}) == ()  # four rows tell nothing


def test_arrays_are_compared_as_tables_are():
    _, x, t, y = drawn()
    log = tt.LoggedData(x, t, np.where(t > 0.8, np.nan, y), missing_outcome="drop")
    assert "'treatment'" in checks_of(log)["dropped_rows"]


# ── what says that an outcome is missing ─────────────────────────────────────────────────────────


def test_a_context_that_says_which_outcomes_are_missing_is_named():
    rng, x, t, y = drawn()
    gone = rng.random(N) < 0.3
    odd = np.where(gone, 1.0, 0.0)
    log = tt.LoggedData(
        np.column_stack([x, odd]),
        t,
        np.where(gone, np.nan, y),
        names=[*NAMES, "odd"],
        missing_outcome="weight",
    )
    assert "'odd'" in checks_of(log)["deciding_contexts"]
    named = tt.LoggedData(
        np.column_stack([x, rng.random(N) < 0.5]), t, y, names=[*NAMES, "censored"]
    )
    assert "'censored'" in checks_of(named)["deciding_contexts"]


def test_a_context_on_which_missing_outcomes_depend_is_no_doubt():
    rng, x, t, y = drawn()
    gone = rng.random(N) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    log = tt.LoggedData(x, t, np.where(gone, np.nan, y), names=NAMES, missing_outcome="weight")
    assert not checks_of(log)


# ── weights ──────────────────────────────────────────────────────────────────────────────────────

SURE = ("MEC_wt", "pweight", "pweights", "weights", "WTINT2YR", "wtmec4yr", "sampling weight")
SURE += ("survey_weight", "sample.wt", "PERWT", "hhwt", "ASECWT", "svy_wt", "repwt12", "fnlwgt")
NONE = ("weight", "wt", "wt71", "wt82_71", "birth weight", "birthweight", "bwt", "body_weight")
NONE += ("Weight (kg)", "weight82", "overweight", "weighted score", "wait", "height", "newt")


def called(name, column, **asked):
    _, x, t, y = drawn()
    log = tt.LoggedData(np.column_stack([x[:, 0], column]), t, y, names=["age", name], **asked)
    notes = [one for one in found_in(log) if isinstance(one, str)]
    return checks_of(log), notes


def of_survey(rng):
    return rng.lognormal(8.0, 1.0, N).round(2)


BODIES = {
    "adults, kg": lambda rng: rng.normal(75, 15, N).clip(38).round(1),
    "children, lb": lambda rng: rng.uniform(20, 180, N).round(),
    "newborn, g": lambda rng: rng.normal(3300, 550, N).clip(500).round(),
    "parcels, kg": lambda rng: rng.lognormal(1.5, 1.0, N).round(2),
    "z scores": lambda rng: rng.normal(size=N),
}


@pytest.mark.parametrize("name", SURE)
def test_sampling_weights_among_the_contexts_are_doubted_by_their_name(name):
    checks, notes = called(name, of_survey(np.random.default_rng(0)))
    assert list(checks) == ["weight_contexts"]
    assert f"'{name}' is called as sampling weights are" in checks["weight_contexts"]
    assert "`--weights`" in checks["weight_contexts"]
    assert not notes
    checks, _ = called(name, of_survey(np.random.default_rng(0)), weights=np.full(N, 2.0))
    assert not checks
    below = np.random.default_rng(0).normal(size=N)
    assert not called(name, below)[0]
    assert called(name, BODIES["adults, kg"](np.random.default_rng(3))) == ({}, [])


@pytest.mark.parametrize("name", NONE)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_weighs_something_is_no_sampling_weight(name, body):
    assert called(name, body(np.random.default_rng(1))) == ({}, [])


@pytest.mark.parametrize("name", ["weight", "final_weight", "wt", "Weight 2019", "exam.wgt"])
def test_a_weight_unlike_that_of_a_body_gets_a_note(name):
    rng = np.random.default_rng(2)
    scaled = of_survey(rng)
    for column in (of_survey(rng), scaled / scaled.mean()):
        checks, notes = called(name, column)
        if not checks:
            assert len(notes) == 1
            assert f"Should the context '{name}' be sampling weights" in notes[0]
        else:
            assert name == "exam.wgt"
    assert called("birth weight", of_survey(rng)) == ({}, [])


# ── gaps that act ────────────────────────────────────────────────────────────────────────────────


def with_missing(slope, *, seen, share=0.3, seed=0, n=1000):
    """A log of doses that follow a context, where it is missing too if it was seen."""
    rng = np.random.default_rng(seed)
    a, v = rng.normal(size=(2, n))
    gap = rng.random(n) < share
    t = 0.5 * a + slope * np.where(gap & (not seen), 0.0, v) + rng.normal(size=n)
    y = (t - 0.3) ** 2 + a + v + 0.5 * rng.normal(size=n)
    table = {"a": a, "v": np.where(gap, np.nan, v), "t": t, "y": y}
    return tt.LoggedData.from_frame(table, treatment="t", outcome="y", context=["a", "v"])


def test_gaps_that_whoever_gave_the_dose_did_not_have_are_told():
    for seed in range(5):
        found = checks_of(with_missing(1.0, seen=True, seed=seed))
        assert list(found) == ["acting_gaps"]
        assert "'v' (" in found["acting_gaps"]


@pytest.mark.parametrize(
    "log",
    [
        with_missing(0.8, seen=False),  # missing for whoever gave the dose as well
        with_missing(0.1, seen=True),  # next to no part in the dose
        with_missing(0.8, seen=True, share=0.04),  # hardly ever missing
    ],
    ids=["unseen", "weak", "rare"],
)
def test_other_gaps_are_no_doubt(log):
    assert not checks_of(log)


# ── The page ─────────────────────────────────────────────────────────────────────────────────────


def test_the_page_tells_what_was_counted():
    root = Path(__file__).parents[2]
    found = json.loads((root / "benchmarks" / "results" / "doubts.json").read_text())
    page = (root / "docs" / "how-to" / "look-at-a-log.md").read_text(encoding="utf-8")
    told = " ".join(page.split("Measured on ")[1].split("\n## ")[0].split())
    assert found["logs"] == 100
    clean, spoiled, honest = found["clean"], found["spoiled"], found["honest"]
    assert told.startswith(
        f"100 logs of 300 and 100 of 1,000 rows of each of {len(clean)} sound designs"
    )
    assert {share for of_rows in clean.values() for share in of_rows.values()} == {0.0}
    assert "none of the logs is doubted" in told
    always = [way for way, share in spoiled.items() if share == 1.0]
    assert f"spoiled in one of {len(always)} ways" in told
    zeros, rounded, *late = (
        f"{100 * spoiled[way]:.0f}"
        for way in (
            "incomes, a third 0, with 9999",
            "outcome plus a context, rounded",
            *(f"later outcome, R² {r2}" for r2 in (".98", ".95", ".90")),
        )
    )
    assert f"9999 among incomes of which a third are 0 in {zeros};" in told
    assert f"rounded to a twentieth of its sd in {rounded}, the others" in told
    times, over, square = (
        f"{100 * spoiled[f'outcome {way}']:.0f}"
        for way in ("times a context", "over a context", "less a squared context")
    )
    assert f"named in {times}, over a context in {over}, and less the square" in told
    assert f"the square of a context in {square}." in told
    assert (
        f"{late[0]} of 100 logs if it explains 98 %, in {late[1]} if 95 %, and in {late[2]}" in told
    )
    earlier = {
        key.removeprefix("earlier outcome, R² "): f"{100 * v:.0f}" for key, v in honest.items()
    }
    assert earlier[".90"] == earlier[".95"] == "0"
    assert f"doubted in none of 100 logs, one that explains 98 % in {earlier['.98']}." in told
    low, high = (earlier[f".95, correlated {r} with the dose"] for r in (".5", ".8"))
    without = earlier[".95, correlated .5 with a dose without effect"]
    assert (
        f"in {low} logs at a correlation of .5 and in {high} at .8, and in {without} at .5" in told
    )
    assert honest["cause of the dose, R² .95"] == 0.0
    assert honest["rare event"] == 0.01
    assert "doubted in none, a yes/no column with 1 % yes in one." in told
    told_of = {"rare event", "cause of the dose, R² .95"}
    heaps = {k: v for k, v in honest.items() if not k.startswith("earlier") and k not in told_of}
    top = f"{100 * heaps.pop('scores, a tenth at the top, 99'):.0f}"
    assert not any(heaps.values())
    assert len(heaps) == 10
    assert f"a score of which a tenth is at the top, 99, in {top}." in told


def test_the_page_tells_what_was_counted_in_columns_alone():
    root = Path(__file__).parents[2]
    alone = json.loads((root / "benchmarks" / "results" / "doubts.json").read_text())["alone"]
    page = (root / "docs" / "how-to" / "look-at-a-log.md").read_text(encoding="utf-8")
    told = " ".join(page.split("\nCodes are also looked for ")[1].split("\n## ")[0].split())
    honest, coded = alone["honest"], alone["coded"]
    silent = sum(share == 0.0 for share in honest.values())
    assert f"Of {len(honest)} kinds" in told
    assert f"{silent} are never doubted" in told
    late, plans = honest["minutes late"], honest["prices of plans"]
    assert silent == len(honest) - 3
    assert late == honest["changes up to 9 either way"]
    assert f"Minutes late, and changes cut at 9 either way, are in {100 * late:.1f} %" in told
    assert f"99, in {100 * plans:.0f} %" in told
    seen = sum(share >= 0.99 for share in coded.values())
    assert f"{seen} of {len(coded)} ways" in told
    assert f"only in {100 * coded['ages with 98 and 99']:.0f} %" in told
    assert set(alone["like coded"]) == set(LIKE_CODED)
    assert min(alone["like coded"].values()) > 0.99
    chosen = [doses for doses, share in alone["chosen"].items() if share == 0.0]
    assert chosen == [doses for doses in CHOSEN if not doses.endswith(("99", "77"))]
    assert {alone["chosen"][doses] for doses in CHOSEN if doses not in chosen} == {1.0}
