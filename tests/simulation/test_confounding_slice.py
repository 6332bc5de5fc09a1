"""A small seeded slice of the benchmark of confounding, and how its records are kept.

The slice would catch a default that no longer follows nonlinear confounding, not a shift of a few
percent. The full run is `python -m benchmarks.confounding --plan`.
"""

import gzip
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from benchmarks.confounding import remedies, safe, study
from benchmarks.confounding.designs import (
    DESIGNS,
    GROUPS,
    HOSPITALS,
    TUNING,
    hospital,
    marker,
    quarters_and_regime,
)
from benchmarks.confounding.page import PAGE, Estimates, missing, never_ok, page, share_se, speaking
from benchmarks.confounding.records import Task, records_in, run_missing
from benchmarks.coverage.designs import Case
from benchmarks.widths import RECORDS as WIDTHS

import titrant as tt

SEED = 78
NONLINEAR = ("threshold", "periodic", "site number")
SOUND = ("linear",)


@pytest.mark.long
@pytest.mark.slow
def test_a_slice_covers_and_is_closer_than_the_plain_models(replications):
    tasks = [
        Task(name, 400, i, SEED)
        for name in (*NONLINEAR, *SOUND)
        for i in range(replications(3, 30))
    ]
    tasks += [Task("site number", 1000, i, SEED) for i in range(replications(2, 20))]
    records = [{"design": task.design, **study.study(task)} for task in tasks]
    found = Estimates(records)
    # .95 less three Monte-Carlo standard errors, the three estimates of a log counted as one; the
    # plain models cover .62 here.
    assert np.mean(found.covers) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(records))
    # The plain models are off by three times as much.
    bent = Estimates([r for r in records if r["design"] in NONLINEAR])
    default, plain = (np.sqrt(np.mean(bent.error_of(by) ** 2)) for by in ("default", "plain"))
    assert default < plain
    for by in ("default", "plain"):
        each = Estimates(records, by)
        assert np.all(each.number("low") <= each.number("value"))
        assert np.all(each.number("value") <= each.number("high"))


@pytest.mark.slow
def test_the_study_makes_the_very_default_call():
    task = Task("linear", 300, 0, SEED)
    log, policies = study.log_of(task), TUNING["linear"].policies
    expected, found = tt.compare(log, policies), study.study(task)["default"]
    assert found["verdict"] == [
        expected[name].diagnostics.verdict.value if name in expected.estimates else "refuse"
        for name in policies
    ]
    for i, name in enumerate(policies):
        if name in expected.estimates:
            # Records keep five digits.
            assert found["value"][i] == pytest.approx(expected[name].value, rel=1e-4)
            assert found["low"][i] == pytest.approx(expected[name].interval()[0], rel=1e-4)


@pytest.mark.slow
def test_the_study_of_safe_deployments_asks_what_the_learner_decides():
    # By the halves alone, on which deploying rests; a log that is refused raises in `fit`.
    task = Task("randomized", 200, 0, SEED)
    log = safe.log_of(task)
    found = safe.run(task)
    learner = tt.PolicyLearner(safe=True, seed=0).fit(log)
    assert found["deployed"] == learner.deployed_
    assert found["bound"] == pytest.approx(learner.estimate_.gain()[1], rel=1e-4)


def test_names_tell_designs_apart():
    assert sum(map(len, GROUPS.values())) == len(DESIGNS)
    assert not {*GROUPS["held out"], *GROUPS["fresh"]} & {*TUNING}
    assert len(GROUPS["held out"]) == len(GROUPS["fresh"]) == 10


BORROWED = {*GROUPS["calibration"], *GROUPS["known"]}
"""Designs of another benchmark, whose one rule moves with the contexts as its doses do."""


@pytest.mark.parametrize("name", [name for name in DESIGNS if name not in BORROWED])
def test_policies_lie_inside_the_doses(name):
    log = DESIGNS[name].draw(4000, [1])
    low, high = np.quantile(log.treatment, [0.05, 0.95])
    for policy in DESIGNS[name].policies.values():
        tau = policy(log.context)
        assert low <= tau.min() <= tau.max() <= high


def test_regions_are_those_of_a_loop_over_places():
    x = np.random.default_rng(3).normal(size=(50, 5))
    for row, nearest, highest in zip(x, hospital(x), marker(x), strict=True):
        away = [math.dist(row[:2], place) for place in HOSPITALS]
        assert nearest == away.index(min(away))
        assert highest == list(row[:4]).index(max(row[:4]))
    # Day 0 begins a quarter, day 89 ends it, day 251 is in the regime: 71 days into the third.
    days = np.array([[0.0], [89.0], [251.0]])
    expected = [-1.76, 2.72 * (89 / 90 - 0.5) - 0.4, 2.72 * (71 / 90 - 0.5) + 0.5]
    np.testing.assert_allclose(quarters_and_regime(days), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    [name for name, design in GROUPS["calibration"].items() if isinstance(design.case, Case)],
)
def test_known_designs_are_those_of_calibration_with_their_propensities(name):
    without, known = DESIGNS[name], DESIGNS[f"{name}, known"]
    log, same = without.draw(200, [1]), known.draw(200, [1])
    assert same.has_propensity
    assert not log.has_propensity
    for column in ("context", "treatment", "outcome"):
        np.testing.assert_array_equal(getattr(same, column), getattr(log, column))
    assert known.truths == without.truths


def test_each_stage_of_the_plan_is_balanced_wherever_it_stops():
    tasks = study.plan(SEED)
    assert len(set(tasks)) == len(tasks)
    done = Counter()
    for names, n, replications in study.STAGES:
        wanted = sum(replications - done[name, n] for name in names)
        for count, task in enumerate(tasks[done.total() :][:wanted], 1):
            assert task.n == n
            assert task.design in names
            done[task.design, n] += 1
            if count in (wanted // 7, wanted // 2, wanted):
                reached = [done[name, n] for name in names]
                assert max(reached) - min(reached) <= 1
        assert all(done[name, n] == replications for name in names)
    assert done.total() == len(tasks)


def test_every_design_has_its_stage():
    of_size = {n: Counter(t.design for t in study.plan(SEED) if t.n == n) for n in (300, 1000)}
    assert set(of_size[1000]) == set(DESIGNS)
    for name in study.CLAIMED:
        assert of_size[1000][name] >= 200
        assert of_size[300][name] >= 100


def written(path, records, rest=""):
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress((lines + rest).encode()))


def test_runs_go_on_where_they_stopped(tmp_path):
    path = tmp_path / "records.jsonl.gz"
    tasks = [Task("linear", 10, i, 0) for i in range(3)]
    known = {**tasks[1]._asdict(), "rows": 10, "cpu": 3.0}
    written(path, [known], '{"design": "cut sho')
    run_missing(path, tasks, count_rows, workers=1)
    found = records_in(path)
    # The known one is not made again, and a failure is on record; of two that are done at once,
    # either may be written first.
    found = [found[0], *sorted(found[1:], key=lambda r: r["replication"])]
    assert [r["replication"] for r in found] == [1, 0, 2]
    assert found[0] == known
    assert found[1]["rows"] == 10
    assert found[2]["failed"] == "ValueError: no such log"


def test_a_file_cut_short_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "records.jsonl.gz"
    written(path, [{"rows": i, "noise": str(hash(i) * 7919)} for i in range(5000)])
    path.write_bytes(path.read_bytes()[:-2000])
    found = records_in(path)
    assert 0 < len(found) < 5000
    assert [r["rows"] for r in found] == list(range(len(found)))


@pytest.mark.long
def test_code_that_finds_other_numbers_does_not_add_to_records(tmp_path):
    path = tmp_path / "records.jsonl.gz"
    tasks = [Task("linear", 10, i, 0) for i in range(2)]
    old = {**tasks[0]._asdict(), "rows": 11, "cpu": 3.0}
    written(path, [old])
    with pytest.raises(SystemExit, match="--anew"):
        run_missing(path, tasks, count_rows, workers=1)
    assert records_in(path) == [old]
    run_missing(path, tasks, count_rows, workers=1, anew=True)
    assert [r["rows"] for r in records_in(path)] == [10, 10]


def count_rows(task):
    if task.replication == 2:
        raise ValueError("no such log")
    return {"rows": task.n, "cpu": 4.0}


def test_the_error_of_a_share_counts_logs():
    log = np.repeat(np.arange(100), 3)
    covers = np.repeat(np.arange(100) < 90, 3)
    every = np.ones(300, dtype=bool)
    # Three equal estimates of a log tell no more than one: √(.9·.1/100), and a half more.
    assert share_se(covers, every, log) == pytest.approx(math.sqrt(0.09 / 100 + 0.005**2))
    assert share_se(every, every, log) == pytest.approx(0.005)


@pytest.mark.parametrize(
    "path", sorted(Path(study.__file__).parents[1].glob("*/*.gz")), ids=lambda p: f"{p.parent.name}"
)
def test_committed_records_are_whole(path):
    # A file that a stop cut short is read as far as it goes: the page would be of fewer logs.
    text = gzip.decompress(path.read_bytes()).decode()
    assert text.endswith("\n")
    assert all(json.loads(line) for line in text.splitlines())


def test_coverage_where_a_check_warns_is_counted_as_loops_count_it():
    # Twelve logs of two estimates: the first is warned of by two checks and misses in every third
    # log, the second by one of them and covers; the last log has no value of its first.
    def record(i):
        missed = {"value": [0.0, 0.0], "low": [0.5 if i % 3 == 0 else -1.0, -1.0], "high": [1, 1]}
        if i == 11:
            missed["value"] = [None, 0.0]
        checks = [["leftover_bias", "support"], ["support"]]
        return {"design": "linear", "truth": [0.0, 0.0], "default": {**missed, "checks": checks}}

    lines = [
        line.strip("| ").split(" | ")
        for line in speaking(list(map(record, range(12)))).splitlines()
    ]
    counted = {
        line[0]: [cell.split(" ± ")[0] for cell in line[1:]] for line in lines if len(line) > 1
    }
    assert counted["`support`"] == ["23", "0.826", "23", "0.826", "12", "1.000"]
    assert counted["`leftover_bias`"] == ["11", "0.636", "11", "0.636", "0", "–"]
    assert counted["*no check*"] == ["0", "–", "0", "–", "0", "–"]


def test_what_is_missing_of_a_plan_is_counted_by_group_and_rows():
    tasks = [
        Task(name, n, i, 0)
        for n in (300, 1000)
        for name in ("linear", "rush hours")
        for i in (0, 1)
    ]
    records = [task._asdict() for task in tasks]
    assert missing(tasks, records) == "All 8 logs of the plan are among them."
    assert missing(tasks, [records[0], *records[2:7]]) == (
        "Of the plan's 8 logs 2 are missing: *tuning* 1 of 300 rows, *held out* 1 of 1,000 rows."
    )


def test_kinds_without_any_ok_are_named():
    runs = [{"design": d, "verdict": v} for d, v in (("a", "ok"), ("a", "warn"), ("b", "warn"))]
    assert "Of the kind *b* no log" in never_ok(runs)
    assert never_ok(runs[:2]) == ""


def test_remedies_are_counted_as_in_three_lines():
    # Two of three cover; of the others one is silent: bias (.3 + 0 − .6)/3, RMSE √(.45/3).
    each = ((0.3, True, "ok"), (0.0, True, "warn"), (-0.6, False, "ok"))
    found = [dict(zip(("error", "covers", "verdict"), one, strict=True)) for one in each]
    assert remedies.counted(found) == ["0.667", "0.333", "-0.100", "0.387"]


def test_the_page_is_written_from_the_records():
    assert PAGE.read_text() == page(*map(records_in, (study.RECORDS, safe.RECORDS, WIDTHS)))
