"""For whom a policy changes what: laws, known answers and loops."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression
from statsmodels.stats.oneway import anova_oneway

import titrant as tt
from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.estimators import Observed, Part, Question, Rows
from titrant.estimators.joint import joint_estimates, statistics_of
from titrant.evaluation.questions.cells import Cut, Inside, Labeled
from titrant.evaluation.questions.subgroups import Equality
from titrant.inference import Verdict
from titrant.inference.base import StudentInference
from titrant.inference.rbc import influence_sums
from titrant.kernels import Scale

EXACT = 1e-12
POLICY = tt.Linear([0.4, 0.0, 0.0], 0.1)
PLAIN = {"outcome": LinearRegression(), "folds": 3}
LINEAR = [tt.IPW(), tt.DoublyRobust(self_normalized=False, **PLAIN)]
EVERY = [
    tt.SelfNormalized(),
    tt.DoublyRobust(**PLAIN),
    tt.DirectMethod(**PLAIN),
    tt.Discretized(),
    *LINEAR,
]


def columns(n=600, seed=0):
    rng = np.random.default_rng(seed)
    x, s = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    t = 0.6 * x[:, 0] + rng.normal(size=n)
    y = (t - 0.2 - (s == 1)) ** 2 + x[:, 0] + 0.3 * rng.normal(size=n)
    q = stats.norm.pdf(t - 0.6 * x[:, 0])
    return {
        "context": {"a": x[:, 0], "b": x[:, 1], "s": s},
        "treatment": t,
        "outcome": y,
        "propensity": q,
    }


def log_of(n=600, seed=0, **more):
    return tt.LoggedData(**columns(n, seed), **more)


def asked(log, by, estimator=None, **more):
    settings = {"estimator": estimator or tt.SelfNormalized(), "allow_untrusted": True} | more
    return tt.subgroups(log, POLICY, by=by, **settings)


def numbers(found):
    return np.array(
        [
            (p.value, p.against, p.difference, p.se, p.ess, p.share, *p.interval())
            for p in found.answered
        ]
    )


def variants(n=600):
    rng = np.random.default_rng(8)
    plain = columns(n)
    missing = plain | {"outcome": np.where(rng.random(n) < 0.15, np.nan, plain["outcome"])}
    return {
        "plain": tt.LoggedData(**plain),
        "weights": tt.LoggedData(**plain, weights=rng.uniform(0.5, 2.0, n)),
        "groups": tt.LoggedData(**plain, groups=rng.integers(0, n // 4, n)),
        "missing": tt.LoggedData(**missing, missing_outcome="weight"),
        "modeled": tt.LoggedData(**plain).with_propensity(None),
    }


# ── one part is the log ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", EVERY, ids=repr)
@pytest.mark.parametrize("variant", ["plain", "weights", "groups", "missing", "modeled"])
def test_one_part_is_the_whole_log(estimator, variant):
    log = variants()[variant]
    if isinstance(estimator, tt.Discretized) and variant == "missing":
        return  # it refuses missing outcomes
    if isinstance(estimator, tt.Discretized):
        log = log.with_propensity(None)
    settings = {"propensity": None if log.has_propensity else tt.LinearGaussian()}
    found = asked(log, np.full(len(log), "all"), estimator, **settings)
    pair = {"p": POLICY, "q": tt.StatusQuo()}
    whole = tt.compare(log, pair, estimator=estimator, allow_untrusted=True, **settings)
    (part,) = found
    contrast = whole.contrast("p", "q")
    expected = whole["p"].value, whole["p"].ess, whole["q"].value, contrast.difference, contrast.se
    got = part.value, part.ess, part.against, part.difference, part.se
    np.testing.assert_allclose(got, expected, rtol=EXACT, atol=EXACT)
    np.testing.assert_allclose(part.interval(), contrast.interval(), rtol=1e-10)
    assert part.share == pytest.approx(1.0)
    assert found.equality == ()
    at_once = found.simultaneous()["all"]
    np.testing.assert_allclose(at_once, part.interval(), rtol=1e-10)


@pytest.mark.parametrize("estimator", LINEAR, ids=repr)
@pytest.mark.parametrize("variant", ["plain", "weights", "groups"])
def test_parts_of_a_linear_estimator_add_up_to_the_whole(estimator, variant):
    # Σ share·value = value, of the policy and of the status quo: only ratios do not add up.
    found = asked(variants()[variant], {"a": 4}, estimator)
    for side in ("value", "against"):
        total = sum(part.share * getattr(part, side) for part in found)
        name = found.policy if side == "value" else found.against
        assert total == pytest.approx(found.whole[name].value, rel=EXACT)


@pytest.mark.parametrize("variant", ["plain", "weights", "missing"])
def test_a_part_is_an_evaluation_of_its_rows(variant):
    # With known propensities and no floor nothing but the rows differs.
    exact, log = tt.SelfNormalized(clip=0.0), variants()[variant]
    found = asked(log, "s", exact, bandwidth=0.7)
    if variant == "missing":  # which outcomes are seen is fitted to all rows: values only
        assert found["s = 1"].against == pytest.approx(found["s = 1"].outcome)
        return
    for k, part in enumerate(found):
        rows = log.rows(log.context[:, 2] == k)
        pair = {"p": POLICY, "q": tt.StatusQuo()}
        alone = tt.compare(rows, pair, estimator=exact, bandwidth=0.7, allow_untrusted=True)
        contrast = alone.contrast("p", "q")
        assert part.label == f"s = {k}"
        assert part.rows == len(rows)
        assert part.value == pytest.approx(alone["p"].value)
        assert part.difference == pytest.approx(contrast.difference)
        # The factor 1 − 1/n of weighted rows takes Σω of the part for its number of rows.
        near = 1e-10 if variant == "plain" else 1e-4
        assert part.interval() == pytest.approx(contrast.interval(), rel=near)
        assert part.ess == pytest.approx(alone["p"].ess)


# ── labels, order, files ─────────────────────────────────────────────────────────────────────────


def test_labels_say_what_columns_say_whatever_they_are_called():
    log = log_of()
    s = log.context[:, 2].astype(int)
    by_column = asked(log, "s")
    by_label = asked(log, np.array(["z", "m", "a"])[s])
    np.testing.assert_allclose(numbers(by_label)[::-1], numbers(by_column), rtol=EXACT)
    assert [part.label for part in by_label] == ["a", "m", "z"]
    by_cut = asked(log, {"s": [0.5, 1.5]})
    np.testing.assert_allclose(numbers(by_cut), numbers(by_column), rtol=EXACT)
    assert [part.label for part in by_cut] == ["s ≤ 0.5", "0.5 < s ≤ 1.5", "s > 1.5"]
    assert by_cut.equality[0].p_value == pytest.approx(by_label.equality[0].p_value)


def test_labels_find_their_rows_in_a_slice_and_in_a_sample_of_a_long_log():
    whole = log_of(1200)
    some = whole.rows(slice(500, 1200))
    s = some.context[:, 2]
    np.testing.assert_allclose(numbers(asked(some, s)), numbers(asked(some, "s")), rtol=EXACT)
    # Models are judged on 10,000 of the rows, whose numbers are not consecutive.
    long = log_of(10_400).with_propensity(None)
    settings = {"estimator": tt.DoublyRobust(**PLAIN), "propensity": tt.LinearGaussian()}
    by_label = asked(long, long.context[:, 2], bandwidth=0.5, **settings)
    by_column = asked(long, "s", bandwidth=0.5, **settings)
    np.testing.assert_allclose(numbers(by_label), numbers(by_column), rtol=EXACT)


def test_the_order_of_rows_does_not_matter():
    log = log_of()
    order = np.random.default_rng(3).permutation(len(log))
    s = log.context[:, 2]
    np.testing.assert_allclose(
        numbers(asked(log.rows(order), s[order])), numbers(asked(log, s)), rtol=1e-10
    )


@pytest.mark.parametrize("variant", ["plain", "weights", "groups"])
def test_files_are_memory(variant, tmp_path):
    log = variants()[variant]
    names = {"treatment": "t", "outcome": "y", "propensity": "q"}
    optional = {"weights": "w"} if log.weighted else {"groups": "g"} if log.grouped else {}
    table = pa.table(log.to_columns(**names, **optional))
    for k in range(3):
        pq.write_table(table.slice(200 * k, 200), tmp_path / f"{k}.parquet")
    roles = tt.Columns(**names, **optional, context=("a", "b", "s"))
    source = tt.scan_parquet(str(tmp_path / "*.parquet"), roles)
    by = {"s": None, "a": 3}
    here, there = asked(log, by), asked(source, by)
    np.testing.assert_allclose(numbers(there), numbers(here), rtol=1e-9)
    assert [part.label for part in there] == [part.label for part in here]
    assert there.equality[0].p_value == pytest.approx(here.equality[0].p_value)
    with pytest.raises(InvalidArgument, match="a log in memory"):
        asked(source, log.context[:, 2])


def test_texts_are_parts_by_their_levels():
    data = columns(300)
    sex = np.array(["f", "m", "other"])[data["context"]["s"]]
    table = {"t": data["treatment"], "y": data["outcome"], "q": data["propensity"], "sex": sex}
    log = tt.LoggedData.from_frame(
        table, treatment="t", outcome="y", propensity="q", context=["sex"]
    )
    settings = {"estimator": tt.SelfNormalized(), "bandwidth": 0.6, "allow_untrusted": True}
    found = tt.subgroups(log, tt.Constant(0.1), by="sex", **settings)
    same = tt.subgroups(log, tt.Constant(0.1), by=sex, **settings)
    assert [part.label for part in found] == ["sex=f", "sex=m", "sex=other"]
    np.testing.assert_allclose(numbers(found), numbers(same), rtol=EXACT)


# ── known answers and loops ──────────────────────────────────────────────────────────────────────


def three():
    return Rows(
        tau=np.zeros((3, 1)),
        t=np.zeros((3, 1)),
        y=np.array([1.0, 3.0, 8.0]),
        x=np.array([[0.0], [0.0], [1.0]]),
    )


def test_three_rows():
    """Outcomes 1, 3 in one part, 8 in the other: means 2 and 8.

    Influences on the first are 1(y − 2)/(2/3) = −3/2, 3/2, 0: Var = (9/4 + 9/4)/3/3 = 1/2, that of
    a mean of two; on the second all are 0, and so is the covariance.
    """
    cells = Cut("x", 0, (0.5,), levels=False)
    parts: list[Part] = [Inside(cells, 0), Inside(cells, 1)]
    questions = [Question(Observed(), 0, Scale.of(1.0, 1), part=part) for part in parts]
    found = joint_estimates(questions, statistics_of(questions, [three()]))
    assert found.values == pytest.approx([2.0, 8.0])
    np.testing.assert_allclose(found.covariance, [[0.5, 0.0], [0.0, 0.0]], atol=EXACT)
    assert found.tally.ess.tolist() == [2.0, 1.0]
    assert questions[0].share(found.mean(0)) == pytest.approx(2 / 3)


def test_the_gradient_of_a_part_is_that_of_its_value():
    question = Question(
        tt.DoublyRobust(), 0, Scale.of(1.0, 1), part=Inside(Cut("x", 0, (0.5,), levels=False), 0)
    )
    mean, step = np.array([0.4, 0.3, 0.7, 0.6]), 1e-6
    loop = [
        (question.value(mean + step * e) - question.value(mean - step * e)) / (2 * step)
        for e in np.eye(4)
    ]
    np.testing.assert_allclose(question.gradient(mean), loop, rtol=1e-8)
    assert question.values(np.stack([mean, 2 * mean])) == pytest.approx([question.value(mean)] * 2)


@pytest.mark.parametrize("grouped", [False, True])
def test_leaving_out_against_the_loop(grouped):
    """φ of each unit, left out of its part: base and residual by their own shares of the part."""
    rng = np.random.default_rng(4)
    n = 60
    omega, group = rng.uniform(0.5, 2.0, n), rng.integers(0, 12, n)
    omega /= omega.mean()
    rows = Rows(
        tau=np.zeros((n, 1)),
        t=rng.normal(size=(n, 1)),
        y=rng.normal(size=n),
        x=rng.integers(0, 2, (n, 1)).astype(float),
        q=rng.uniform(0.2, 1.0, n),
        r_tau=rng.normal(size=n),
        r_logged=rng.normal(size=n),
        omega=omega,
        group=group if grouped else None,
    )
    part = Inside(Cut("x", 0, (0.5,), levels=False), 1)
    question = Question(tt.DoublyRobust(), 0, Scale.of(0.9, 1), part=part)
    mean = joint_estimates([question], statistics_of([question], [rows])).mean(0)
    b, we, w = tt.DoublyRobust().terms(rows, Scale.of(0.9, 1)).T
    inside = rows.x[:, 0] == 1.0
    whole = (omega * inside).sum()
    m0 = (omega * b)[inside].sum() / whole
    total, level = (omega * w)[inside].sum(), (omega * we)[inside].sum() / (omega * w)[inside].sum()
    square = 0.0
    units = group if grouped else np.arange(n)
    for g in np.unique(units):
        own = (units == g) & inside
        share = omega[own].sum() / whole
        base = (omega[own] * (b[own] - m0)).sum() / whole * (1 - 1 / whole) / (1 - share)
        lever = (omega[own] * w[own]).sum() / total
        residual = (omega[own] * (we[own] - w[own] * level)).sum() / total / (1 - lever)
        square += (base + residual) ** 2
    found = influence_sums([question], [mean], n, [rows]).comoment()[0, 0] / n**2
    assert found == pytest.approx(square, rel=1e-10)


def test_the_test_of_equality_by_hand():
    """d = 1, 3 with variances 1, 3, covariance 0: F = 4/4, ν = (1 + 3)²/(1/9 + 9/7)."""
    found = StudentInference(
        "t", np.array([1.0, 3.0]), np.diag([1.0, 3.0]), np.array([9.0, 7.0]), (None, None)
    )
    test = Equality.of("x", found)
    assert test.statistic == pytest.approx(1.0)
    assert test.degrees == pytest.approx(16 / (1 / 9 + 9 / 7))
    assert test.p_value == pytest.approx(stats.f.sf(1.0, 1, test.degrees))
    normal = Equality.of("x", replace(found, degrees=np.full(2, np.inf)))
    assert normal.p_value == pytest.approx(stats.chi2.sf(1.0, 1))
    assert str(normal).startswith("x: equal in all 2 parts? F(1, ∞) = 1.00")


def test_the_test_of_equality_is_that_of_unequal_variances_in_statsmodels():
    rng = np.random.default_rng(7)
    groups = [rng.normal(0.3 * k, 1 + k, 9 + 3 * k) for k in range(4)]
    found = StudentInference(
        "t",
        np.array([g.mean() for g in groups]),
        np.diag([g.var(ddof=1) / len(g) for g in groups]),
        np.array([len(g) - 1.0 for g in groups]),
        (None,) * 4,
    )
    expected = anova_oneway(groups, use_var="unequal")
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):  # which parts are held against which is no matter
        test = Equality.of("x", found.only(order))
        assert test.statistic == pytest.approx(expected.statistic)
        assert test.p_value == pytest.approx(expected.pvalue)


# ── refusals, output ─────────────────────────────────────────────────────────────────────────────


def test_a_part_with_few_rows_is_refused_and_the_others_are_answered():
    log = log_of()
    labels = np.where(np.arange(len(log)) < 12, "few", "rest")
    found = tt.subgroups(log, POLICY, by=labels, estimator=tt.SelfNormalized(), bandwidth=0.6)
    assert list(found.refused) == ["few"]
    assert found["few"].diagnostics.verdict is Verdict.REFUSE
    assert "effective" in found["few"].reason
    with pytest.raises(UntrustedEstimate, match="few has no estimate"):
        found["few"].interval()
    assert [part.label for part in found.answered] == ["rest"]
    assert found.to_dict()["parts"][0]["difference"] is None
    shown = asked(log, labels, bandwidth=0.6)
    assert [part.label for part in shown.answered] == ["few", "rest"]


def test_a_part_that_no_row_is_near_has_no_number():
    x = np.repeat([0.0, 1.0], 200)
    rng = np.random.default_rng(0)
    t = np.where(x == 0, rng.uniform(0, 20, 400), rng.uniform(40, 60, 400))
    log = tt.LoggedData({"heavy": x}, t, rng.normal(size=400), np.full(400, 0.05))
    found = tt.subgroups(log, tt.Constant(10.0), by="heavy", bandwidth=5.0, allow_untrusted=True)
    assert found["heavy = 0"].trusted
    assert np.isnan(found["heavy = 1"].value)
    assert "None of the 200 rows" in found.refused["heavy = 1"]
    assert found.to_dict()["parts"][1]["value"] is None
    assert found.equality == ()


def test_a_part_whose_rows_do_not_count_is_none():
    log = log_of()
    weights = (log.context[:, 2] != 1).astype(float)
    found = asked(log.with_weights(weights), "s", tt.DoublyRobust(**PLAIN))
    assert [part.label for part in found] == ["s = 0", "s = 2"]
    assert sum(part.share for part in found) == pytest.approx(1.0)


def test_against_another_policy():
    log = log_of()
    found = asked(log, "s", against=tt.Constant(0.0))
    back = tt.subgroups(
        log,
        tt.Constant(0.0),
        by="s",
        against=POLICY,
        estimator=tt.SelfNormalized(),
        allow_untrusted=True,
    )
    for one, other in zip(found, back, strict=True):
        assert one.difference == pytest.approx(-other.difference)
        assert one.interval()[0] == pytest.approx(-other.interval()[1])
    # The same policy changes nothing, for no one.
    same = asked(log, "s", against=POLICY)
    assert [part.difference for part in same] == [0.0] * 3
    assert same.equality[0].p_value == 1.0
    assert (same.policy, same.against) == ("Linear", "other Linear")


@pytest.mark.parametrize("interval", [tt.Normal(), tt.Narrow(), tt.RobustBiasCorrected(shrink=0.7)])
def test_other_intervals(interval):
    found = asked(log_of(), "s", interval=interval)
    for part in found:
        low, high = part.interval()
        wide = found.simultaneous()[part.label]
        assert wide[0] < low < part.difference < high < wide[1]


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("nope", "no context `nope`"),
        ("a", "has 600 values"),
        ({"a": 1}, "whole number ≥ 2"),
        ({"a": [2.0, 1.0]}, "increasing cut points"),
        ({"a": 51}, "51 parts"),
        ({}, "names no column"),
        (np.arange(5), "a label for each of 600"),
        (np.arange(600), "600 parts"),
        (np.r_[np.nan, np.zeros(599)], "no label in 1 of"),
        ({"one": 3}, "the one value"),
        (
            {"sex": 3},
            "`sex` holds texts, which have no quantiles or cut points; got 3. Give by='sex'",
        ),
        (["sex", "s"], r"a list of 2 names. For .* give by=\{'sex': None, 's': None\}"),
    ],
)
def test_what_is_no_part(by, words):
    data = columns()
    data["context"]["one"] = np.ones(600)
    data["context"]["sex=m"] = np.arange(600) % 2.0
    with pytest.raises(InvalidArgument, match=words):
        tt.subgroups(tt.LoggedData(**data), tt.Constant(0.0), by=by, estimator=tt.SelfNormalized())


def test_a_policy_changes_nothing_beside_itself():
    found = asked(log_of(), "s", against=POLICY)
    for part in found:
        assert (part.difference, part.se, *part.interval()) == (0.0, 0.0, 0.0, 0.0)
    assert found.equality[0].p_value == 1.0


def test_the_test_says_that_it_is_of_corrected_differences():
    assert str(asked(log_of(), "s").equality[0]).endswith("(of bias-corrected differences)")
    same = asked(log_of(), "s", interval=tt.Normal()).equality[0]
    assert "corrected" not in str(same)


def test_what_cannot_be_asked():
    log = log_of()
    with pytest.raises(InvalidArgument, match="changes nothing"):
        tt.subgroups(log, tt.StatusQuo(), by="s")
    with pytest.raises(InvalidArgument, match="no joint covariance"):
        asked(log, "s", interval=tt.PoissonBootstrap())
    with pytest.raises(InvalidArgument, match="There is no part"):
        asked(log, "s")["s = 9"]


def test_it_says_itself():
    found = asked(log_of(), "s")
    assert str(found).count("\n") == 5
    assert "s = 1" in found._repr_html_()
    assert repr(found) == "Subgroups(Linear − status quo; 3 parts)"
    assert "F(2, " in str(found)
    assert found.plot().get_xlabel() == "difference"
    assert found.to_dict()["equality"][0]["parts"] == 3


def test_codes_are_found_by_number():
    cells = Labeled("labels", ("a", "b"), 10, np.array([0, 1, 1, 0]))
    rows = replace(three(), first_row=11)
    assert cells.codes(rows).tolist() == [1, 1, 0]
    assert cells.codes(replace(rows, numbers=np.array([13, 10, 12]))).tolist() == [0, 0, 1]
