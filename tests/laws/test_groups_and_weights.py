"""Rows that do not count alike, or not for themselves: the laws of weights and groups."""

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import titrant as tt
from titrant.data.keys import repeating
from titrant.data.logged import _assembled
from titrant.errors import TableWarning
from titrant.estimators import ESTIMATORS as ROOM
from titrant.estimators import Observed, PartlyObserved, Question
from titrant.estimators.joint import GroupSums, ask, joint_estimates, statistics_of
from titrant.estimators.rows import Rows
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.questions.cells import Cut, Inside
from titrant.evaluation.questions.subgroups import part_sums
from titrant.evaluation.repeated import design_effect, together_in
from titrant.inference.rbc import influence, influence_sums, left_out, parts
from titrant.kernels import Scale
from titrant.learn import TrainingLog
from titrant.outcome import ridge_pair
from titrant.propensity.logistic import SeenModel

EXACT = 1e-12
PASSES = 1e-9  # rows dropped into bins, or not: sums in another order
POLICIES = {"low": tt.Constant(-0.3), "rule": tt.Linear([0.4, 0.0], 0.1)}
ESTIMATORS = [e for e in ROOM if e.uses_propensity or e.uses_outcome_model]
WITHOUT_BINS = [e for e in ESTIMATORS if not isinstance(e, tt.Discretized)]
BY_WEIGHTS_ALONE = [e for e in WITHOUT_BINS if not e.uses_outcome_model]


def columns(n=240, seed=0, groups=60):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    t = 0.6 * x[:, 0] + rng.normal(size=n)
    own = rng.normal(size=groups)
    who = rng.integers(groups, size=n)
    y = (t - 0.2) ** 2 + x[:, 0] + own[who] + 0.3 * rng.normal(size=n)
    q = stats.norm.pdf(t - 0.6 * x[:, 0])
    return {"context": x, "treatment": t, "outcome": y, "propensity": q}, who


def some_rows(n=40, seed=1, **more):
    rng = np.random.default_rng(seed)
    t, y = rng.normal(size=(n, 1)), rng.normal(size=n)
    more = {"r_tau": rng.normal(size=n), "r_logged": rng.normal(size=n)} | more
    return Rows(tau=np.zeros((n, 1)), t=t, y=y, q=rng.uniform(0.2, 1, n), center=0.1, **more)


def numbers(result):
    return [
        number
        for name in POLICIES
        for number in (result[name].value, result[name].se, *result[name].interval())
    ]


def compared(log, estimator, **settings):
    if isinstance(estimator, tt.Discretized):  # which needs a law, not a column
        settings = {"propensity": tt.LinearGaussian()} | settings
    return tt.compare(log, POLICIES, estimator=estimator, allow_untrusted=True, **settings)


# ── groups of one row ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_groups_of_one_row_are_no_groups(estimator):
    data, _ = columns()
    plain = compared(tt.LoggedData(**data), estimator)
    single = compared(tt.LoggedData(**data, groups=np.arange(240)[::-1]), estimator)
    np.testing.assert_allclose(numbers(single), numbers(plain), rtol=EXACT)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_groups_of_one_row_are_no_groups_where_propensities_are_estimated(estimator):
    data = columns()[0] | {"propensity": None}
    # Ids in the order of the rows: folds go by the number of the group, which is then the row's.
    logs = tt.LoggedData(**data), tt.LoggedData(**data, groups=np.arange(240))
    plain, single = (compared(log, estimator, propensity=tt.LinearGaussian()) for log in logs)
    np.testing.assert_allclose(numbers(single), numbers(plain), rtol=EXACT)


def test_groups_of_one_row_are_no_groups_in_the_default_call():
    data = columns()[0] | {"propensity": None}
    logs = tt.LoggedData(**data), tt.LoggedData(**data, groups=np.arange(240))
    plain, single = (tt.evaluate(log, tt.Constant(-0.3)) for log in logs)
    for name in ("value", "se", "ess"):
        assert getattr(single, name) == pytest.approx(getattr(plain, name), rel=EXACT)
    np.testing.assert_allclose(single.interval(), plain.interval(), rtol=EXACT)


@pytest.mark.parametrize("estimator", WITHOUT_BINS, ids=repr)
def test_sums_of_groups_of_one_row_are_those_of_rows(estimator):
    rows = some_rows()
    question = Question(estimator, 0, Scale.of(0.8, 1))
    alone = joint_estimates([question], statistics_of([question], [rows]))
    single = replace(rows, group=np.arange(40), omega=np.ones(40))
    grouped = joint_estimates([question], statistics_of([question], [single]))
    for name in ("values", "covariance"):
        expected = getattr(alone, name)
        np.testing.assert_allclose(getattr(grouped, name), expected, rtol=EXACT)
    assert grouped.tally.ess == pytest.approx(alone.tally.ess, rel=EXACT)
    assert grouped.design_effect == pytest.approx([1.0])
    means = [alone.mean(0)]
    expected = influence_sums([question], means, 40, [rows]).comoment()
    found = influence_sums([question], means, 40, [single]).comoment()
    np.testing.assert_allclose(found, expected, rtol=EXACT)


# ── known answers and the naive loop ─────────────────────────────────────────────────────────────


def test_three_rows():
    """Weights 1, 1, 2 on outcomes 0, 4, 6, two of one group: the mean is 4, groups give ∓8, ±8.

    Deviations ω(y − 4) are −4, 0, 4; the rows of the first group add up to −4. With ω̄ per group 2
    and G = 2, n = 3: Var = (4² + 4²)/2/2² · 2·2/(1·3)/2.
    """
    rows = Rows(
        tau=np.zeros((3, 1)),
        t=np.zeros((3, 1)),
        y=np.array([0.0, 4.0, 6.0]),
        omega=np.array([1.0, 1.0, 2.0]),
        group=np.array([7, 7, 9]),
    )
    question = Question(Observed(), 0, Scale.of(1.0, 1))
    found = joint_estimates([question], statistics_of([question], [rows]))
    assert found.values == pytest.approx([4.0])
    assert found.covariance == pytest.approx(np.array([[(16 + 16) / 2 / 4 * (4 / 3) / 2]]))
    assert found.rows == 3


def test_leaving_out_a_group_against_the_loop():
    rows = some_rows()
    rng = np.random.default_rng(5)
    omega, group = rng.uniform(0.5, 2, 40), rng.integers(9, size=40)
    omega /= omega.mean()
    rows = replace(rows, omega=omega, group=group)
    question = Question(tt.DoublyRobust(), 0, Scale.of(0.8, 1))
    point = joint_estimates([question], statistics_of([question], [rows]))
    m = point.mean(0)
    b, we, w = question.estimator.terms(rows, question.scale).T
    total = (omega * w).sum()
    phi = []
    for g in np.unique(group):
        own = group == g
        base = (omega[own] * (b[own] - m[0])).sum() * (1 - 1 / 40) / (1 - omega[own].sum() / 40)
        lever = (omega[own] * w[own]).sum() / total
        residual = (omega[own] * (we[own] - w[own] * m[1] / m[2])).sum() / m[2]
        phi.append(base + residual / (1 - lever))
    found = influence_sums([question], [m], 40, [rows]).comoment()
    assert found == pytest.approx(np.array([[np.sum(np.square(phi))]]))


def test_parts_add_up_to_the_influence_of_a_row():
    rows, question = some_rows(), Question(tt.DoublyRobust(), 0, Scale.of(0.8, 1))
    mean = ask([question], lambda statistic: statistic([rows])).mean(0)
    alone = parts(question, mean, 40, rows)
    np.testing.assert_allclose(
        left_out(alone, np.array([1 / 40]))[:, 0],
        influence(question, mean, 40, rows),
        rtol=1e-10,
        atol=1e-12,
    )


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", WITHOUT_BINS, ids=repr)
def test_a_row_repeated_within_its_group_with_its_weight_shared_changes_nothing(estimator):
    data, who = columns()
    log = tt.LoggedData(**data, groups=who, weights=np.ones(240))
    again = np.repeat(np.arange(240), 3)
    repeated = {name: part[again] for name, part in data.items()}
    shared = tt.LoggedData(**repeated, groups=who[again], weights=np.full(720, 1 / 3))
    one, other = (compared(one, estimator, bandwidth=0.5) for one in (log, shared))
    for name in POLICIES:
        assert other[name].value == pytest.approx(one[name].value, rel=1e-10)
        # Up to how few groups are told from many rows: (n − 1)/n of 240 or 720 rows.
        assert other[name].se == pytest.approx(one[name].se, rel=0.002)


def test_copies_of_every_row_make_intervals_as_wide_as_the_rows_themselves():
    data, _ = columns(400)
    four = np.tile(np.arange(400), 4)
    copied = {name: part[four] for name, part in data.items()}
    alone = compared(tt.LoggedData(**data), tt.SelfNormalized(), bandwidth=0.5)
    taken = compared(tt.LoggedData(**copied), tt.SelfNormalized(), bandwidth=0.5)
    known = compared(tt.LoggedData(**copied, groups=four), tt.SelfNormalized(), bandwidth=0.5)
    for name in POLICIES:
        width = {
            key: np.diff(result[name].interval())[0]
            for key, result in (("alone", alone), ("taken", taken), ("known", known))
        }
        assert width["known"] == pytest.approx(width["alone"], rel=0.05)
        assert width["known"] >= 1.8 * width["taken"]


@pytest.mark.parametrize("estimator", BY_WEIGHTS_ALONE, ids=repr)
def test_a_bandwidth_path_of_copies_has_the_errors_of_the_rows_themselves(estimator):
    data, _ = columns(400)
    four = np.tile(np.arange(400), 4)
    copied = {name: part[four] for name, part in data.items()}

    def path(**settings):
        return tt.bandwidth_path(tt.LoggedData(**settings), tt.Constant(-0.3), estimator=estimator)

    alone, taken = path(**data), path(**copied)
    known = path(**copied, groups=four)
    np.testing.assert_allclose(known.values, alone.values, rtol=PASSES)
    # Law: groups of copies are the rows, up to the factor for G groups instead of n rows.
    few = 400 * 1599 / (399 * 1600)
    np.testing.assert_allclose(known.covariance, few * alone.covariance, rtol=PASSES, atol=PASSES)
    np.testing.assert_allclose(taken.covariance, alone.covariance / 4, rtol=PASSES, atol=PASSES)


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("groups", [False, True])
def test_the_unit_of_weights_does_not_matter(estimator, groups):
    data, who = columns()
    omega = np.random.default_rng(3).uniform(0.2, 3, 240)
    who = {"groups": who} if groups else {}
    one = compared(tt.LoggedData(**data, weights=omega, **who), estimator)
    other = compared(tt.LoggedData(**data, weights=4096 * omega, **who), estimator)
    np.testing.assert_allclose(numbers(other), numbers(one), rtol=1e-10)


@pytest.mark.usefixtures("plain_models")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_equal_weights_are_no_weights(estimator):
    data, _ = columns()
    plain = compared(tt.LoggedData(**data), estimator, bandwidth=0.5)
    equal = compared(tt.LoggedData(**data, weights=np.full(240, 2.0)), estimator, bandwidth=0.5)
    np.testing.assert_allclose(numbers(equal), numbers(plain), rtol=1e-9)


def test_rows_of_no_weight_do_not_count():
    data, _ = columns()
    half = np.arange(240) % 2
    kept = {name: part[half == 1] for name, part in data.items()}
    without = compared(tt.LoggedData(**kept), tt.SelfNormalized(), bandwidth=0.5)
    zero = compared(tt.LoggedData(**data, weights=half), tt.SelfNormalized(), bandwidth=0.5)
    for name in POLICIES:
        assert zero[name].value == pytest.approx(without[name].value, rel=1e-10)
        assert zero[name].se == pytest.approx(without[name].se, rel=1e-10)


@pytest.mark.parametrize("cuts", [[13], [1, 2, 30], [0, 20]], ids=str)
def test_a_group_may_straddle_blocks(cuts):
    rows = some_rows(group=np.random.default_rng(0).integers(7, size=40))
    question = [Question(tt.DoublyRobust(), 0, Scale.of(0.8, 1))]
    whole = joint_estimates(question, statistics_of(question, [rows]))
    pieces = [rows.take(index) for index in np.split(np.arange(40), cuts)]
    cut = reduce(add, [statistics_of(question, [piece]) for piece in pieces])
    merged = joint_estimates(question, cut)
    np.testing.assert_allclose(merged.values, whole.values, rtol=EXACT)
    np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=EXACT)


def test_sums_of_groups_merge_by_key():
    a = GroupSums.of(np.array([5, 2, 5]), np.array([[1.0], [2.0], [4.0]]))
    b = GroupSums.of(np.array([9, 5]), np.array([[8.0], [16.0]]))
    both = a + b
    assert both.keys.tolist() == [2, 5, 9]
    assert both.sums.tolist() == [[2.0], [21.0], [8.0]]
    assert both.rows == 5


# ── memory, files, folds, draws ──────────────────────────────────────────────────────────────────


def test_files_and_memory_agree(tmp_path):
    data, who = columns(600)
    omega = np.random.default_rng(3).uniform(0.2, 3, 600)
    table = {"x0": data["context"][:, 0], "x1": data["context"][:, 1], "t": data["treatment"]}
    table |= {"y": data["outcome"], "who": [f"p{k}" for k in who], "w": omega}
    for part in range(3):
        own = slice(200 * part, 200 * part + 200)
        some = {name: column[own] for name, column in table.items()}
        pq.write_table(pa.table(some), tmp_path / f"{part}.parquet")
    roles = {"treatment": "t", "outcome": "y", "context": ["x0", "x1"]}
    roles |= {"weights": "w", "groups": "who"}
    files = tt.scan_parquet(tmp_path, tt.Columns(**roles))
    memory = tt.LoggedData.from_frame(table, **roles)
    assert files.grouped
    assert files.weighted
    found, expected = (compared(log, None) for log in (files, memory))
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-8)
    again = compared(tt.scan_parquet(tmp_path, tt.Columns(**roles)), None)
    assert numbers(again) == numbers(found)


def test_no_group_is_in_two_folds_or_halves():
    data, who = columns()
    log = tt.LoggedData(**data, groups=who)
    evaluation = Evaluation.of(log, POLICIES, None, None)
    fold = evaluation.nuisances.prepare(log).fold
    assert all(len(set(fold[who == g])) == 1 for g in np.unique(who))
    assert set(fold) == set(range(5))
    first, second = (half.log for half in TrainingLog.of(log).halves(0))
    assert not set(first.groups) & set(second.groups)
    assert len(first) + len(second) == 240


def test_a_group_is_drawn_as_a_whole():
    data, _ = columns(300)
    four = np.tile(np.arange(300), 4)
    copied = {name: part[four] for name, part in data.items()}
    bootstrap = tt.PoissonBootstrap(draws=2_000)
    settings = {"bandwidth": 0.5, "interval": bootstrap}
    alone = compared(tt.LoggedData(**data), tt.SelfNormalized(), **settings)
    known = compared(tt.LoggedData(**copied, groups=four), tt.SelfNormalized(), **settings)
    for name in POLICIES:
        errors = [result[name].confidence.se for result in (known, alone)]
        assert errors[0] == pytest.approx(errors[1], rel=0.1)


def test_weights_undo_how_rows_were_drawn():
    """Rows with a high context were drawn four times as often; weights of ¼ bring back the mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    kept = rng.random(20_000) < np.where(x > 0, 0.8, 0.2)
    x = x[kept]
    t = 0.5 * x + rng.normal(size=len(x))
    y = 2 * x + t + rng.normal(size=len(x))
    weights = np.where(x > 0, 0.25, 1.0)
    log = tt.LoggedData(x[:, None], t, y, stats.norm.pdf(t - 0.5 * x), weights=weights)
    found = tt.evaluate(log, tt.Constant(0.5), estimator=tt.SelfNormalized())
    assert abs(found.value - 0.5) < 4 * found.se
    plain = tt.evaluate(log.rows(slice(None)), tt.StatusQuo())
    assert plain.value == pytest.approx(np.average(y, weights=weights))


def test_bernstein_knows_no_groups():
    data, who = columns()
    with pytest.raises(tt.errors.InvalidArgument, match="knows no groups"):
        tt.evaluate(
            tt.LoggedData(**data, groups=who),
            tt.Constant(0.0),
            estimator=tt.IPW(),
            bandwidth=0.5,
            interval=tt.EmpiricalBernstein(),
        )


def test_a_policy_is_learned_of_the_population_that_weights_stand_for():
    """Most rows want the dose −1, but those that count most want 1."""
    rng = np.random.default_rng(0)
    n = 1200
    wants = np.where(rng.random(n) < 0.8, -1.0, 1.0)
    t = rng.normal(size=n)
    y = (t - wants) ** 2 + 0.2 * rng.normal(size=n)
    weights = np.where(wants > 0, 8.0, 0.5)
    log = tt.LoggedData(np.empty((n, 0)), t, y, stats.norm.pdf(t), weights=weights)
    best = np.average(wants, weights=weights)
    procedure = tt.StackedDR(models=ridge_pair())
    learner = tt.PolicyLearner(policy=tt.Constant(0.0), procedure=procedure).fit(log)
    # The dose of least loss is known to about .1 from so few rows; without weights it is −.6.
    assert learner.policy_(np.empty((1, 0)))[0] == pytest.approx(best, abs=0.4)
    assert learner.estimate_.comparison["learned"].method["weights_worth"] < n


def missing(log, seen):
    """Return the log with the outcomes missing where ``seen`` is 0."""
    parts_ = replace(log._parts, outcome=np.where(seen, log.outcome, 0.0), observed=1.0 * seen)
    return _assembled(parts_, log.names, log._limits, 0)


@pytest.mark.long
def test_missing_outcomes_that_others_stand_for():
    """Those with a high context are mostly not seen; dropping them is off by many SE."""
    data, _ = columns(2000)
    log = tt.LoggedData(**{name: part for name, part in data.items() if name != "propensity"})
    rng = np.random.default_rng(1)
    seen = rng.random(2000) < 1 / (1 + np.exp(1.5 * log.context[:, 0]))
    policy = tt.Constant(0.2)
    whole, some = tt.evaluate(log, policy), tt.evaluate(missing(log, seen), policy)
    dropped = tt.evaluate(log.rows(seen), policy)
    assert abs(some.value - whole.value) < 3 * some.se
    assert abs(dropped.value - whole.value) > 5 * dropped.se
    assert some.diagnostics["outcomes_seen"].value == pytest.approx(seen.mean())
    status = tt.evaluate(missing(log, seen), tt.StatusQuo(), estimator=tt.DoublyRobust())
    assert status.value == pytest.approx(log.outcome.mean(), abs=4 * status.se)
    with pytest.raises(tt.errors.InvalidArgument, match="outcome is known"):
        tt.PolicyLearner(policy=tt.Constant(0.0)).fit(missing(log, seen))
    with pytest.raises(tt.errors.InvalidArgument, match="does not know missing"):
        tt.evaluate(missing(log, seen), policy, estimator=tt.Discretized())


@pytest.mark.parametrize("estimator", WITHOUT_BINS, ids=repr)
def test_outcomes_that_are_not_seen_do_not_matter(estimator):
    data, _ = columns()
    seen = np.random.default_rng(2).random(240) < 0.7
    log = tt.LoggedData(**data)
    one = compared(missing(log, seen), estimator, bandwidth=0.5)
    other = log.with_outcome(np.where(seen, log.outcome, 77.0))
    parts_ = replace(other._parts, observed=1.0 * seen)
    moved = compared(_assembled(parts_, log.names, log._limits, 0), estimator, bandwidth=0.5)
    for name in POLICIES:
        assert moved[name].value == pytest.approx(one[name].value, rel=1e-9)


def test_copies_are_seen_among_few_values_and_equal_rows_of_few_values_are_no_copies():
    rng = np.random.default_rng(6)
    x = np.round(rng.normal(size=(400, 3)))
    t, y = rng.normal(size=400), np.round(2.0 * rng.normal(size=400))
    twice = tt.LoggedData(np.tile(x, (2, 1)), np.tile(t, 2), np.tile(y, 2))
    assert "copies" in {one.what for one in together_in(twice)}
    assert "copies" not in {one.what for one in together_in(tt.LoggedData(x, t, y))}
    # Whole doses, ages and yes or no: of 3,000 rows most have a twin by chance.
    few = [rng.integers(20, 70, 3000), rng.integers(0, 2, 3000)]
    discrete = tt.LoggedData(np.column_stack(few), 5.0 * rng.integers(0, 12, 3000), few[1])
    assert "copies" not in {one.what for one in together_in(discrete)}


def test_copies_and_ids_are_seen_where_no_groups_are_given():
    data, _ = columns(300)
    four = np.tile(np.arange(300), 4)
    copied = tt.LoggedData(**{name: part[four] for name, part in data.items()})
    check = tt.evaluate(copied, tt.Constant(0.2)).diagnostics["repeated_rows"]
    assert check.verdict.value == "warn"
    assert check.value == pytest.approx(4.0)
    assert (
        "repeated_rows"
        not in tt.evaluate(tt.LoggedData(**data), tt.Constant(0.2)).diagnostics.names
    )
    # Of 300 rows 69 are there twice: Σ rows²/n = (231 + 69·4)/369 = 1.37, too little for a warning.
    some = np.append(np.arange(300), np.arange(69))
    found = tt.evaluate(
        tt.LoggedData(**{name: part[some] for name, part in data.items()}), tt.Constant(0.2)
    ).diagnostics
    assert "repeated_rows" not in found.names
    (note,) = (note for note in found.notes if "equal another row" in note)
    assert note.startswith("37.4 % of the rows equal another row. ")
    assert note.endswith("the variance of this estimate would be 1.37 times as large.")
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(100), 10)
    t = rng.normal(size=1000)
    y = t**2 + 2 * rng.normal(size=100)[who] + 0.3 * rng.normal(size=1000)
    x = np.column_stack([rng.normal(size=1000), who])
    log = tt.LoggedData(x, t, y, stats.norm.pdf(t), names=["age", "patient"])
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized()).diagnostics
    assert "`patient`" in found["repeated_rows"].message


def visits(shared=2.0, n=1000):
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(n // 10), 10)
    t = rng.normal(size=n)
    y = t**2 + shared * rng.normal(size=n // 10)[who] + 0.3 * rng.normal(size=n)
    return {
        "age": rng.normal(size=n),
        "patient": [f"P-{k}" for k in who],
        "t": t,
        "y": y,
        "q": stats.norm.pdf(t),
    }


def of_table(table, **more):
    roles = {"treatment": "t", "outcome": "y", "propensity": "q", "context": ["age"]}
    return tt.LoggedData.from_frame(table, **roles | more)


@pytest.mark.parametrize("made", [dict, pl.DataFrame, pa.table], ids=["dict", "polars", "arrow"])
def test_ids_are_seen_that_have_no_part_in_the_log(made):
    log = of_table(made(visits()))
    assert list(log.ids) == ["patient"]
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized()).diagnostics
    assert "`patient`" in found["repeated_rows"].message
    assert found.verdict.value == "warn"
    # As large as the design effect of the same column among the contexts.
    numbered = visits() | {"patient": np.repeat(np.arange(100.0), 10)}
    beside, with_it = (
        tt.evaluate(of_table(table, **more), tt.Constant(0.0), estimator=tt.SelfNormalized())
        for table, more in ((made(numbered), {}), (numbered, {"context": ["patient"]}))
    )
    beside, with_it = (e.diagnostics["repeated_rows"] for e in (beside, with_it))
    assert beside.value == pytest.approx(with_it.value)
    assert beside.message.endswith("give it as `groups` (`--groups`): column `patient`.")
    assert with_it.message.endswith("(`--groups`), not as a context: column `patient`.")
    assert of_table(made(visits()), groups="patient").ids == {}
    assert log.rows(slice(0, 500)).ids == {}


EFFECTS = {
    "line": lambda z: z,
    "parabola": lambda z: z**2,
    "bend": lambda z: np.maximum(z, 0.0),
    "wave": lambda z: np.sin(3.0 * z),
}


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
@pytest.mark.parametrize(("first", "last"), [(20, 85), (1930, 2005), (0, 40)])
def test_the_effect_of_a_number_is_no_sign_of_an_id(effect, first, last):
    rng = np.random.default_rng(0)
    number = rng.integers(first, last, 400)
    y = 2.0 * effect(4.0 * (number - first) / (last - first) - 2.0) + rng.normal(size=400)
    assert design_effect(y - y.mean(), number) < 1.2


@pytest.mark.parametrize("role", [{}, {"context": ["x"]}], ids=["context", "beside"])
def test_the_status_quo_is_not_warned_of_ages(role):
    rng = np.random.default_rng(0)
    age, x = rng.integers(20, 85, 400), rng.normal(size=400)
    t = 20.0 + 0.1 * (age - 50) + x + 4.0 * rng.normal(size=400)
    y = 0.06 * (age - 50) + 0.02 * (t - 20.0) ** 2 + x + 1.5 * rng.normal(size=400)
    table = {"age": age, "x": x, "t": t, "y": y}
    log = tt.LoggedData.from_frame(table, treatment="t", outcome="y", **role)
    assert "repeated_rows" not in tt.evaluate(log, tt.StatusQuo()).diagnostics.names


@pytest.mark.parametrize("drift", [0.0, 1.0], ids=["random order", "order of entry"])
@pytest.mark.parametrize("rows", [5, 10])
def test_effects_of_who_it_is_are_seen_along_any_order(drift, rows):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), rows)
    y = (rng.normal(size=60) + drift * np.linspace(-1.0, 1.0, 60))[who]
    y += rng.normal(size=len(who))
    assert design_effect(y - y.mean(), who) > 1.5


def test_the_design_effect_by_loops():
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 30, 200)
    own = rng.normal(size=200) + rng.normal(size=30)[keys]
    rank = np.array([np.mean(keys < k) + np.mean(keys == k) / 2 for k in keys])
    hinges = [np.maximum(rank - j / 10, 0.0) for j in range(1, 10)]  # 30 values, 3 of each piece
    terms = np.column_stack([np.ones(200), rank, *hinges])
    left = own - terms @ np.linalg.lstsq(terms, own, rcond=None)[0]
    groups = sum(left[keys == k].sum() ** 2 for k in np.unique(keys)) / (1 - 11 / 30)
    expected = 1 + (groups - left @ left / (1 - 11 / 200)) / (own @ own)
    assert design_effect(own, keys) == pytest.approx(expected)


def test_ids_of_independent_rows_are_pointed_out_and_no_more():
    log = of_table(visits(shared=0.0))
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized()).diagnostics
    assert "repeated_rows" not in found.names
    assert any("groups='patient'" in note for note in found.notes)
    called = {**visits(shared=0.0), "batch": visits()["patient"]}
    del called["patient"]
    log = of_table(called)
    found = tt.evaluate(log, tt.Constant(0.0), estimator=tt.SelfNormalized()).diagnostics
    assert not any("batch" in note for note in found.notes)


def test_columns_that_do_not_repeat_as_ids_do_are_none():
    n, rng = 300, np.random.default_rng(0)
    columns = {
        "measured": rng.normal(size=n),
        "key": np.arange(n),
        "sex": np.where(rng.random(n) < 0.5, "f", "m"),
        "gaps": np.where(rng.random(n) < 0.1, np.nan, np.arange(n) // 3),
        "lists": np.array([[k] for k in range(n)] + [None], dtype=object)[:n],
    }
    assert repeating(columns) == {}
    assert list(repeating({**columns, "who": np.arange(n) // 3})) == ["who"]


@pytest.mark.parametrize("groups", [3, 4])
def test_fewer_groups_than_folds_are_refused(groups):
    data, _ = columns()
    data.pop("propensity")
    log = tt.LoggedData(**data, groups=np.arange(240) % groups)
    with pytest.raises(tt.errors.UntrustedEstimate, match=f"many groups; there are {groups}"):
        tt.evaluate(log, tt.Constant(0.2))
    one = tt.LoggedData(**data, weights=np.r_[1.0, np.zeros(239)])
    with pytest.raises(tt.errors.UntrustedEstimate, match="rows that count; there is 1"):
        tt.evaluate(one, tt.Constant(0.2))


def test_one_group_is_refused_as_such():
    data, _ = columns()
    with pytest.raises(tt.DataError, match="All 240 rows belong to one group"):
        tt.evaluate(tt.LoggedData(**data, groups=np.zeros(240)), tt.Constant(0.2))


def test_few_missing_outcomes_say_little_of_many_features():
    """Outcomes missing by chance: p̂ is their share, whatever the contexts are."""
    rng = np.random.default_rng(6)
    x, seen = rng.normal(size=(800, 9)), rng.random(800) > 0.04
    model = SeenModel().fit(x, seen)
    p = model.probability(model.fold(0, 800), x)
    assert np.all(np.abs(p - seen.mean()) < 0.1)
    assert (seen / p).mean() == pytest.approx(1.0, abs=0.02)
    strong = rng.random(800) < stats.norm.cdf(1.5 * x[:, 0])
    followed = model.fit(x, strong).probability(model.fold(0, 800), x)
    assert np.corrcoef(followed, stats.norm.cdf(1.5 * x[:, 0]))[0, 1] > 0.95


def test_the_effective_sample_size_counts_groups():
    data, who = columns()
    found = tt.evaluate(tt.LoggedData(**data, groups=who), tt.Constant(0.2))
    assert f"of {len(np.unique(who))} groups" in str(found)
    assert "of 240  " in str(tt.evaluate(tt.LoggedData(**data), tt.Constant(0.2)))


def test_means_of_some_rows_know_weights_and_missing_outcomes():
    """Of outcomes 2, missing, 6 with ω = 1, 1, 2 and a = 2, 0, 1 around r̂ = 1, 3, 5.

    Σω = 4, Σωr̂ = 1 + 3 + 10 = 14, Σωae = 2·1 + 2·1 = 4, Σωa = 2 + 2 = 4: ȳ = 14/4 + 4/4.
    """
    rows = Rows(
        tau=np.ones((3, 1)),
        t=np.array([[1.0], [2.0], [4.0]]),
        y=np.array([2.0, 0.0, 6.0]),
        x=np.zeros((3, 1)),
        omega=np.array([1.0, 1.0, 2.0]),
        seen=np.array([2.0, 0.0, 1.0]),
        r_logged=np.array([1.0, 3.0, 5.0]),
    )
    part = Inside(Cut("x", 0, (1.0,), levels=False), 0)
    sums = part_sums([part], PartlyObserved(), 0, [rows])
    assert (sums.rows.tolist(), sums.total) == ([3], 4.0)
    # Σω, Σωt, Σωτ, and Σω(r̂, ae, a)
    assert sums.sums.tolist() == [[4.0, 11.0, 4.0, 14.0, 4.0, 4.0]]
    assert PartlyObserved().value(sums.sums[0, 3:] / sums.sums[0, 0]) == 14 / 4 + 4 / 4


def measured(n=300):
    rng = np.random.default_rng(0)
    age = rng.normal(50.0, 10.0, n)
    t = 20.0 + 0.3 * (age - 50.0) + 3.0 * rng.normal(size=n)
    y = 0.05 * (t - 20.0) ** 2 + 0.4 * (age - 50.0) + rng.normal(size=n)
    return {"age": age, "z": rng.normal(size=n), "t": t, "y": y, "who": np.arange(n) // 2}


PLAIN = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}


@pytest.mark.parametrize("made", [dict, pl.DataFrame, pa.table])
def test_groups_that_are_amounts_are_doubted(made):
    table = made(measured())
    with pytest.warns(TableWarning, match="`age` says which rows belong together and is no"):
        log = tt.LoggedData.from_frame(table, treatment="t", outcome="y", groups="age")
    assert log.names == ("z", "who")
    assert any("nothing is adjusted for it" in sentence for sentence in log.flow)
    found = tt.evaluate(log, 24.0, **PLAIN).diagnostics
    assert found["decimal_groups"].verdict.value == "warn"
    assert "'age'" in found["decimal_groups"].message
    # Whoever chooses contexts knows what is left out, and may be wrong about ids all the same.
    chosen = tt.LoggedData.from_frame(
        table, treatment="t", outcome="y", groups="age", context=["z"]
    )
    assert not any("belong together" in sentence for sentence in chosen.flow)
    assert "decimal_groups" in tt.evaluate(chosen, 24.0, **PLAIN).diagnostics.names


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(300) // 2,
        np.arange(300) / 1.0,
        [f"{k / 10}" for k in range(300)],
        np.random.default_rng(0).permutation(10**9 + np.arange(300)),
        [k if k % 2 else f"P-{k}" for k in range(300)],
    ],
    ids=["integers", "floats", "texts", "numbers", "mixed"],
)
def test_ids_are_no_amounts(ids):
    table = measured() | {"who": ids}
    with pytest.warns(TableWarning, match="`who` says which rows belong together and is no"):
        log = tt.LoggedData.from_frame(table, treatment="t", outcome="y", groups="who")
    assert log.flow.decimal_groups is None
    assert "decimal_groups" not in tt.evaluate(log, 24.0, **PLAIN).diagnostics.names


@pytest.mark.parametrize("more", [{}, {"bandwidth": 3.0, "allow_untrusted": True}])
def test_rows_of_one_group_are_refused_as_such(more):
    log = of_table(visits() | {"patient": ["A"] * 1000}, groups="patient")
    with pytest.raises(tt.DataError, match="All 1,000 rows belong to one group: errors are known"):
        tt.evaluate(log, 0.2, estimator=tt.SelfNormalized(), **more)
