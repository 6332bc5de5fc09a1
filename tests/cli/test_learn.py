"""`titrant learn` says what the library learned; `titrant recommend` applies it to new contexts."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import titrant as tt
from plain import plainly
from sweeps import long
from titrant import learning
from titrant.cli.commands import recommend
from titrant.cli.commands.learn import CLASSES, MODELS, SAFE_LEVELS
from titrant.cli.commands.recommend import rounded
from titrant.data import files
from titrant.data.columns import Recipe
from titrant.data.files import read_table, scan
from titrant.outcome import ridge_pair
from titrant.policies.formats.loading import TrainingRange, save_learned

# What the command says and writes does not depend on models, so they are plain, and the rule is a
# constant where none is looked at; test_process.py learns by the default models.
pytestmark = pytest.mark.usefixtures("plain_models")
COLUMNS = (
    *("--treatment", "dose", "--outcome", "loss", "--propensity", "propensity"),
    *("--context", "weight,age,carrier", "--bounds", "5,75", "--models", "ridge"),
)
CONSTANT = ("--policy-class", "constant")


def api(log, **settings) -> tt.PolicyLearner:
    """The same by the Python interface."""
    return tt.PolicyLearner(
        procedure=tt.StackedDR(models=ridge_pair()),
        grade=tt.DoublyRobust(),
        **settings,
    ).fit(log)


@pytest.fixture(scope="module")
def learned(log) -> tt.PolicyLearner:
    with plainly():
        return api(log, against={"flat": tt.Constant(35.0)})


def test_the_result_is_that_of_the_python_interface(call, csv_log, learned):
    said = call("learn", csv_log, *COLUMNS, "--against", "flat=constant:35", "--json", "out.json")
    assert said.code == 0, said.err
    assert "sample" not in said.err  # it was learned from all rows
    assert tt.load_policy("policy.json") == learned.policy_
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert result["honest"] == learned.estimate_.to_dict()
    assert result["learned"] == learned.learned_.to_dict()
    assert result["deployed"] is True
    assert result["decision"] == learned.decision_


def test_the_rule_its_value_and_its_candidates_are_printed(call, csv_log, learned):
    said = call("learn", csv_log, *COLUMNS, "-o", "rule.json", "--level", "0.9")
    assert said.out.startswith("The learned rule:\n  dose = ")
    for word in ("weight", "age", "carrier", "kept within"):
        assert word in said.out.splitlines()[1]
    lines = [line.split() for line in said.out.splitlines()]
    assert next(line for line in lines if "verdict" in line)[2:4] == ["90%", "CI"]
    names = [line[0] for line in lines if line]
    for name in ("learned", "status", "mean", "direct,", "doubly"):
        assert name in names
    assert "learned − status quo" in said.out
    assert "behind the chosen" in said.out
    assert "held-out loss" not in said.out
    assert "Outcome: a loss, lower is better." in said.out
    assert learned.decision_ in " ".join(said.out.split())


def test_json_on_standard_output_stands_alone(call, csv_log):
    said = call("learn", csv_log, *COLUMNS, *CONSTANT, "--json", "-")
    assert json.loads(said.out)["honest"]["verdict"] in {"ok", "warn"}
    assert isinstance(tt.load_policy("policy.json"), tt.Constant)


@pytest.mark.long
def test_a_report_page(call, csv_log):
    said = call("learn", csv_log, *COLUMNS, "--html", "report.html")
    assert said.code == 0, said.err
    page = Path("report.html").read_text(encoding="utf-8")
    assert "on rows it was not learned from" in page
    assert "Candidates" in page


def rewards(csv_log: Path) -> Path:
    """The log with the outcome's sign turned."""
    table = pa_csv.read_csv(csv_log)
    place = table.column_names.index("loss")
    turned = table.set_column(place, "loss", pa.array(-table["loss"].to_numpy()))
    pa_csv.write_csv(turned, "rewards.csv")
    return Path("rewards.csv")


def test_rewards(call, csv_log, learned):
    call()  # into the empty folder
    said = call("learn", rewards(csv_log), *COLUMNS, "--maximize")
    assert tt.load_policy("policy.json") == learned.policy_
    # The mean dose is behind, whichever way is better.
    _, _, candidates = said.out.partition("behind the chosen")
    row = next(line for line in candidates.splitlines() if line.strip().startswith("mean dose"))
    assert float(row.split()[2]) > 0


@pytest.fixture
def flat_log(csv_log, tmp_path) -> Path:
    """The log with outcomes that no dose changes."""
    table = pa_csv.read_csv(csv_log)
    noise = np.random.default_rng(2).normal(size=len(table))
    place = table.column_names.index("loss")
    path = tmp_path / "flat.csv"
    pa_csv.write_csv(table.set_column(place, "loss", pa.array(noise)), path)
    return path


def test_safe_keeps_the_status_quo_without_an_effect(call, flat_log):
    said = call("learn", flat_log, *COLUMNS, *CONSTANT, "--safe")
    assert said.code == 0, said.err
    assert "Keep the status quo." in said.out
    assert tt.load_policy("policy.json") == tt.StatusQuo()
    advice = call("recommend", "policy.json", flat_log)
    assert advice.code == 2
    assert "keep dosing as before" in advice.err


@pytest.fixture
def doubtful(csv_log, tmp_path):
    """A function that writes the log with propensities times a number, as CSV and as Parquet."""

    def write(factor: float, ending: str) -> Path:
        table = pa_csv.read_csv(csv_log)
        place = table.column_names.index("propensity")
        column = pa.array(factor * table["propensity"].to_numpy())
        changed, path = table.set_column(place, "propensity", column), tmp_path / f"q{ending}"
        (pa_csv.write_csv if ending == ".csv" else pq.write_table)(changed, path)
        return path

    return write


# The level and the kind of file meet nowhere.
@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "level"),
    [(".csv", SAFE_LEVELS[0]), *long(*((".parquet", level) for level in SAFE_LEVELS[1:]))],
)
def test_safe_deploys_at_no_level_with_a_warning_that_bears_on_confounding(
    call, doubtful, ending, level
):
    warned = doubtful(1.3, ending)
    outputs = ("--html", "page.html", "--json", "out.json")
    said = call("learn", warned, *COLUMNS, "--safe", "--safe-level", level, *outputs)
    assert said.code == 0, said.err
    assert "Keep the status quo." in said.out
    told = "the honest estimate carries a warning that bears on confounding (mean_weight"
    assert told in " ".join(said.out.split())
    assert "titrant recommend" not in said.err
    assert "Wrote policy.json, which keeps the status quo" in said.err
    assert tt.load_policy("policy.json") == tt.StatusQuo()
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Keep the status quo. The learned rule is not shown to be better: on rows it" in page
    assert "Although it looks better, the honest" in page
    result = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert result["deployed"] is False
    assert "mean_weight" in result["stopped_by"]


def test_safe_deploys_on_ok_alone_unless_warnings_are_accepted(call, rewritten):
    few = rewritten(lambda lines: [lines[0], *lines[71:141]])
    said = call("learn", few, *COLUMNS, "--safe")
    assert "Keep the status quo." in said.out
    assert "carries a warning (effective_sample_size" in " ".join(said.out.split())
    accepted = call("learn", few, *COLUMNS, "--safe", "--safe-level", "warn", "--json", "out.json")
    assert "Deploy the learned policy." in accepted.out
    assert "  titrant recommend " in accepted.err
    assert isinstance(tt.load_policy("policy.json"), tt.Clipped)
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["stopped_by"] == []


# The strict level refuses all that the other one refuses.
@pytest.mark.parametrize("level", [*long(SAFE_LEVELS[0]), SAFE_LEVELS[1]])
def test_safe_writes_nothing_when_the_value_is_refused(call, doubtful, level):
    assert SAFE_LEVELS == learning.SAFE_LEVELS
    asked = ("--safe", "--safe-level", level)
    said = call("learn", doubtful(5.0, ".csv"), *COLUMNS, *CONSTANT, *asked)
    assert said.code == 1
    assert "policy.json was not written" in said.err
    assert not Path("policy.json").exists()


def test_a_safe_level_asks_for_safe(call, csv_log):
    said = call("learn", csv_log, *COLUMNS, "--safe-level", "warn")
    assert said.code == 2
    assert "add --safe" in said.err


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("constant", tt.Constant),
        ("products", tt.Clipped),
        ("tree", tt.Tree),
        ("linear-tree", tt.LinearTree),
        *long(("rbf", tt.Clipped), ("additive", tt.Clipped), ("personal", tt.Personal)),
    ],
    ids=str,
)
def test_classes(call, csv_log, name, kind):
    said = call("learn", csv_log, *COLUMNS, "--policy-class", name, "--models", "ridge")
    assert said.code == 0, said.err
    assert isinstance(tt.load_policy("policy.json"), kind)
    assert name in CLASSES
    assert MODELS == ("all", "ridge")
    assert "rule would gain" in said.out or "No richer rule is seen" in said.out
    doses = call("recommend", "policy.json", csv_log, "-o", "doses.csv", "--treatment", "given")
    assert doses.code == 0, doses.err


def test_the_choice_is_told_on_the_terminal_in_json_and_on_the_page(call, csv_log):
    files = "--json", "learned.json", "--html", "page.html"
    said = call("learn", csv_log, *COLUMNS, *files)  # unless a class is named, one is chosen
    assert said.code == 0, said.err
    told = json.loads(Path("learned.json").read_text(encoding="utf-8"))["choice"]
    assert {one["class"] for one in told["classes"]} >= {"constant", "linear", "additive", "tree"}
    assert told["finding"] in " ".join(said.out.split())
    assert "behind the chosen" in said.out
    page = Path("page.html").read_text(encoding="utf-8")
    assert told["finding"].split(".")[0] in page
    assert "Classes of rules" in page


def test_an_untrusted_value_writes_no_policy(call, csv_log, tmp_path):
    # Twenty rows a half, worth fewer than ten for the learned policy.
    lines = csv_log.read_text(encoding="utf-8").splitlines()[:41]
    few = tmp_path / "few.csv"
    few.write_text("\n".join(lines) + "\n", encoding="utf-8")
    line = ("--policy-class", "linear")
    said = call("learn", few, *COLUMNS, *line, "--maximize")
    assert said.code == 1
    assert " --maximize   # the same dose for everyone, dose by dose" in said.err
    said = call("learn", few, *COLUMNS, *line)
    assert said.code == 1
    assert "Not to be trusted (learned)" in said.err
    assert "policy.json was not written" in said.err
    assert not Path("policy.json").exists()
    said = call("learn", few, *COLUMNS, *line, "--allow-untrusted")
    assert said.code == 0
    assert "Wrote policy.json.\nNext:\n  titrant recommend policy.json NEW.csv" in said.err
    assert Path("policy.json").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("-o", "-"), "The policy goes to a file."),
        (("-o", "no/policy.json"), "The folder `no` does not exist."),
        (("--against", "learned=constant:35"), "under names of their own, not 'learned'"),
        (("--against", "constant:x"), "is not a number"),
        (("--policy-class", "forest"), "'forest' is not one of"),
        (("--procedure", "cpo"), "Only `--procedure stacked` with one dose takes a library"),
    ],
)
def test_wrong_requests(call, csv_log, options, sentence):
    said = call("learn", csv_log, *COLUMNS, *options)
    assert said.code == 2
    assert sentence in said.err
    assert not Path("policy.json").exists()


def test_a_run_is_repeated_by_its_file(call, csv_log):
    call("learn", csv_log, *COLUMNS, *CONSTANT, "--seed", 3, "--save-config", "run.toml")
    first = Path("policy.json").read_bytes()
    assert call("learn", "--config", "run.toml").code == 0
    assert Path("policy.json").read_bytes() == first


# ── recommend: rows outside the training ─────────────────────────────────────────────────────────
NEW = "id,weight,age,carrier\na,80,50,0\nb,300,50,1\nc,80,19.5,0\nd,300,5,2\n"


@pytest.fixture
def policy_file(learned, tmp_path) -> Path:
    learned.save(tmp_path / "policy.json")
    return tmp_path / "policy.json"


def test_rows_outside_the_training_are_marked(call, policy_file):
    Path("new.csv").write_text(NEW)
    said = call("recommend", policy_file, "new.csv", "-o", "doses.csv")
    assert said.code == 0, said.err
    doses = pa_csv.read_csv("doses.csv")
    assert doses.column_names == ["id", "weight", "age", "carrier", "dose", "outside_training"]
    assert doses["id"].to_pylist() == ["a", "b", "c", "d"]
    assert doses["outside_training"].to_pylist() == [False, True, True, True]
    assert said.err.startswith("3 of 4 rows lie outside the contexts that the policy was learned ")
    assert "`weight` beyond 4" in said.err
    assert "`carrier` beyond 0 … 1 in 1" in said.err


def test_the_ranges_of_the_training_go_by_name(call, policy_file):
    # JSON objects have no order: a file written anew by another program means the same.
    content = json.loads(policy_file.read_text(encoding="utf-8"))
    ranges = content["training"]["context"]
    content["training"]["context"] = dict(reversed(ranges.items()))
    policy_file.write_text(json.dumps(content))
    Path("new.csv").write_text(NEW)
    said = call("recommend", policy_file, "new.csv", "-o", "doses.csv")
    assert said.code == 0, said.err
    outside = pa_csv.read_csv("doses.csv")["outside_training"].to_pylist()
    assert outside == [False, True, True, True]
    assert "`carrier` beyond 0 … 1 in 1" in said.err


def test_a_training_without_one_of_the_contexts(call, policy_file):
    content = json.loads(policy_file.read_text(encoding="utf-8"))
    del content["training"]["context"]["age"]
    policy_file.write_text(json.dumps(content))
    Path("new.csv").write_text(NEW)
    said = call("recommend", policy_file, "new.csv")
    assert said.code == 2
    assert "has no range for `age`. Save the policy again." in said.err


def test_nothing_is_said_when_all_are_inside(call, policy_file):
    Path("new.csv").write_text("\n".join(NEW.splitlines()[:2]) + "\n")
    said = call("recommend", policy_file, "new.csv")
    assert said.err == ""
    assert said.out.splitlines()[1].endswith(",false")


def test_a_column_of_that_name_is_not_overwritten(call, policy_file):
    Path("new.csv").write_text(NEW.replace("id,", "outside_training,", 1))
    said = call("recommend", policy_file, "new.csv")
    assert said.code == 2
    assert "already has a column `outside_training`. Rename it." in said.err


def test_a_text_that_the_training_had_not_is_marked(call, csv_log):
    # All indicators of an unknown text are 0, as those of the reference are: it would get the dose
    # of the reference without a word.
    assert call("learn", csv_log, *COLUMNS, "--context", "sex").code == 0
    rows = ["80,50,0,female", "80,50,0,male", "80,50,0,M"]
    Path("new.csv").write_text("\n".join(["weight,age,carrier,sex", *rows]) + "\n")
    said = call("recommend", "policy.json", "new.csv", "-o", "doses.csv")
    assert said.code == 0, said.err
    assert pa_csv.read_csv("doses.csv")["outside_training"].to_pylist() == [False, False, True]
    assert "1 of 3 rows" in said.err
    assert "`sex` none of `female`, `male` in 1" in said.err
    Path("new.csv").write_text("weight,age,carrier,sex\n80,50,0,\n")
    said = call("recommend", "policy.json", "new.csv")
    assert said.code == 2
    assert "`sex` must name a category in every row; got none in 1 of 1 row" in said.err


@pytest.fixture
def by_sex(tmp_path) -> Path:
    """Return the file of a policy that was learned from a column of texts, `F` and `M`."""
    policy = tt.Linear([0.5, 4.0], 10.0, features=["weight", "sex=M"])
    recipe = Recipe(levels={"sex": ("F", "M"), "unused": ("a", "b")})
    training = TrainingRange(
        ("weight", "sex=M"), np.array([40.0, 0.0]), np.array([120.0, 1.0]), 400, recipe
    )
    save_learned(policy, training, tmp_path / "by_sex.json")
    return tmp_path / "by_sex.json"


@pytest.mark.parametrize("large", [1, 1 << 20])
def test_texts_that_the_training_had_not_are_named(call, by_sex, large, monkeypatch):
    monkeypatch.setattr(recommend, "LARGE", large)
    texts = ["M", "m", " M", "X", "m", "F"]
    Path("new.csv").write_text("weight,sex\n" + "".join(f"80,{text}\n" for text in texts))
    said = call("recommend", by_sex, "new.csv", "-o", "doses.csv")
    assert said.code == 0, said.err
    with Path("doses.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # Doses stay what the rule gives where no indicator is 1, which is what it gives for `F`.
    assert [float(row["dose"]) for row in rows] == [54.0, 50.0, 50.0, 50.0, 50.0, 50.0]
    small = "`sex` is 'm' (did you mean 'M'?), dosed as 'F'"
    blank = "`sex` is ' M' (did you mean 'M'?), dosed as 'F'"
    other = "`sex` is 'X', dosed as 'F'"
    assert [row["unknown_text"] for row in rows] == ["", small, blank, other, small, ""]
    assert said.err.startswith(
        "4 of 6 rows have a text that the policy was not learned from: "
        f"{small}, in 2; {blank}, in 1; {other}, in 1. See the column `unknown_text`.\n"
    )


def test_explained_rows_name_unknown_texts_too(call, by_sex):
    Path("new.csv").write_text("weight,sex\n80,M\n80,m\n")
    said = call("recommend", by_sex, "new.csv", "--explain")
    _, known, unknown = csv.reader(said.out.splitlines())
    assert (known[2], known[-1]) == ("54", "")
    assert (unknown[2], unknown[-1]) == ("", "`sex` is 'm' (did you mean 'M'?)")  # no dose


def test_a_column_of_texts_that_is_not_there_is_named(call, by_sex):
    Path("new.csv").write_text("weight\n80\n")
    said = call("recommend", by_sex, "new.csv")
    assert said.code == 2
    assert "`sex=M` is not in the table, nor is the column `sex` of which it is made." in said.err


def test_texts_chosen_as_numbers_are_refused_with_what_to_do(call, by_sex):
    Path("new.csv").write_text("kg,gender\n80,M\n")
    said = call("recommend", by_sex, "new.csv", "--context", "kg,gender")
    assert said.code == 2
    assert "`--context` names the numbers `weight`, `sex=M` of the policy in this order" in said.err
    assert "but `gender` holds texts. Leave the option out" in said.err
    assert "as the policy does: `weight`, `sex`." in said.err


def test_the_texts_of_a_log_in_parts_are_saved_as_those_in_memory(call, csv_log):
    pq.write_table(pa_csv.read_csv(csv_log), "log.parquet")
    saved = []
    for words in (("--context", "sex"), ("--context", "sex=male", "--in-parts")):
        said = call("learn", "log.parquet", *COLUMNS, *words, *CONSTANT)
        assert said.code == 0, said.err
        saved.append(json.loads(Path("policy.json").read_text())["training"]["levels"])
    assert saved[0] == saved[1] == {"sex": ["female", "male"]}


KEYS = [["007", "12345678901234567890", "1.50", "NA"], ["0123", "9" * 20, "TRUE", "2020-01-01"]]


@pytest.mark.parametrize("large", [1, 1 << 20])
@pytest.mark.parametrize("policy", ["learned", "constant"])
def test_what_the_policy_does_not_use_passes_as_written(
    call, policy_file, policy, large, monkeypatch
):
    monkeypatch.setattr(recommend, "LARGE", large)
    if policy == "constant":
        tt.Constant(35.0).save(policy_file)
    rows = [",".join([*key, "80,50,0"]) for key in KEYS]
    Path("new.csv").write_text("\n".join(["a,b,c,d,weight,age,carrier", *rows]) + "\n")
    said = call("recommend", policy_file, "new.csv", "-o", "doses.csv")
    assert (said.code, said.err) == (0, "")
    with Path("doses.csv").open(newline="") as file:
        assert [row[:4] for row in csv.reader(file)][1:] == KEYS


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_a_large_file_passes_in_parts_to_the_same_result(
    call, policy_file, log, ending, monkeypatch
):
    table = pa.table({name: log.context[:, j] for j, name in enumerate(log.names)})
    table = pa.concat_tables([table] * 10).append_column("key", [np.arange(6000)])
    pa_csv.write_csv(table, "new.csv")
    pq.write_table(table, "new.parquet", row_group_size=500)
    source = "new.csv" if ending == "csv" else "new.parquet"
    assert call("recommend", policy_file, source, "-o", f"whole.{ending}").code == 0
    monkeypatch.setattr(recommend, "LARGE", 1000)
    monkeypatch.setattr(files.reading, "BLOCK", 20_000)
    monkeypatch.setattr(files.reading, "ROWS", 700)
    assert call("recommend", policy_file, source, "-o", f"parts.{ending}").code == 0
    assert Path(f"parts.{ending}").stat().st_size > 100_000
    read = {"csv": pa_csv.read_csv, "parquet": pq.read_table, "arrow": _read_arrow}[ending]
    assert read(f"parts.{ending}").equals(read(f"whole.{ending}"))
    assert read(f"parts.{ending}")["key"].to_pylist() == list(range(6000))


def _read_arrow(path: str) -> pa.Table:
    return pa.ipc.open_file(path).read_all()


def test_parts_that_do_not_fit_the_first_are_read_as_a_whole(call, policy_file, monkeypatch):
    # Whole numbers first, decimals a block later: the types settle only with the whole file.
    rows = ["80,50,0"] * 2000 + ["80.5,50.5,0"]
    Path("new.csv").write_text("weight,age,carrier\n" + "\n".join(rows) + "\n")
    monkeypatch.setattr(recommend, "LARGE", 1000)
    monkeypatch.setattr(files.reading, "BLOCK", 4000)
    said = call("recommend", policy_file, "new.csv", "-o", "doses.csv")
    assert said.code == 0, said.err
    assert len(pa_csv.read_csv("doses.csv")) == 2001
    bad = [*rows[:-1], "none,50,0"]
    Path("new.csv").write_text("weight,age,carrier\n" + "\n".join(bad) + "\n")
    said = call("recommend", policy_file, "new.csv", "-o", "other.csv", "--strict")
    assert said.code == 2
    assert "row 2000" in said.err
    assert not Path("other.csv").exists()


@pytest.mark.parametrize(
    "words", [(), ("--in-parts",), ("--procedure", "cpo")], ids=["memory", "stacked", "cpo"]
)
def test_only_a_search_in_parts_has_a_state_to_keep(call, csv_log, words):
    said = call("learn", csv_log, *COLUMNS, "--checkpoint", "state", *words)
    assert said.code == 2
    assert "Only a search over a log in parts has a state to keep" in said.err
    assert not list(Path().iterdir())


def test_a_log_in_parts_says_from_how_many_rows_it_was_learned(call, table, monkeypatch):
    call()  # into the empty folder
    pq.write_table(pa.table(table), "log.parquet")
    small = {**scan.scan_parquet.__kwdefaults__, "sample_rows": 300}
    monkeypatch.setattr(scan.scan_parquet, "__kwdefaults__", small)
    said = call("learn", "log.parquet", *COLUMNS, *CONSTANT, "--in-parts")
    assert said.code == 0, said.err
    assert re.search(r"Learned from a sample of \d{3} of 600 rows and graded on all", said.err)
    assert "mean dose" in said.out


def arrow_file(path: str, table: pa.Table) -> str:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.fixture
def by_age(call):
    """An empty folder with a policy of one context."""
    call()
    tt.Linear([-1.0], features=("age",)).save("policy.json")


@pytest.mark.usefixtures("by_age")
@pytest.mark.parametrize("above", [recommend.LARGE, 0], ids=["whole", "stream"])
def test_repeated_column_names_are_refused(call, monkeypatch, above):
    monkeypatch.setattr(recommend, "LARGE", above)
    Path("new.csv").write_text("age,note,note\n1,a,b\n2,c,d\n")
    said = call("recommend", "policy.json", "new.csv", "-o", "doses.csv")
    assert said.code == 2
    assert "column names of a table must differ; got `note` 2 times" in said.err


@pytest.mark.usefixtures("by_age")
@pytest.mark.parametrize("output", ["-", "doses.csv"])
@pytest.mark.parametrize(
    "column",
    [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([None], pa.month_day_nano_interval())],
)
def test_values_that_no_csv_can_hold_are_refused_by_the_name_of_their_column(call, output, column):
    source = arrow_file("new.arrow", pa.table({"age": [1.0], "odd": column}))
    said = call("recommend", "policy.json", source, "-o", output)
    assert said.code == 2
    assert f"The column `odd` of type {column.type} cannot be written in this format" in said.err
    assert call("recommend", "policy.json", source, "-o", "doses.arrow").code == 0


@pytest.mark.usefixtures("by_age")
def test_new_patients_are_no_log(call):
    Path("new.csv").write_text("age,b\n1,a\n,b\n")
    said = call("recommend", "policy.json", "new.csv", "--strict")
    assert said.code == 2
    assert "All numbers of the contexts of a policy must be present and finite" in said.err
    assert "a log" not in said.err


@pytest.mark.usefixtures("by_age")
def test_rows_that_cannot_be_served_are_marked_and_the_others_served(call):
    Path("new.csv").write_text("age,b\n1,a\n,b\nold,c\n2,d\n")
    said = call("recommend", "policy.json", "new.csv")
    assert said.code == 0
    assert said.out.splitlines() == [
        '"age","b","dose","no_dose_because"',
        '"1","a",-1,',
        '"","b",,"`age` is missing"',
        '"old","c",,"`age` is no number"',
        '"2","d",-2,',
    ]
    reasons = "`age` is missing in 1; `age` is no number in 1"
    assert said.err == f"2 of 4 rows have no dose: {reasons}. See the column `no_dose_because`.\n"


def test_a_row_whose_limits_leave_no_dose_has_none(call):
    rule = tt.Linear([1.0], features=["age"])
    tt.InLimits(rule, at_least=2.0, at_most="most").save("policy.json")
    Path("new.csv").write_text("age,most\n1,5\n9,5\n3,1\n")
    said = call("recommend", "policy.json", "new.csv")
    assert [line.split(",")[2:] for line in said.out.splitlines()[1:]] == [
        *(["2", ""], ["5", ""], ["", '"the limits leave no dose"'])
    ]
    assert call("recommend", "policy.json", "new.csv", "--strict").code == 2


def test_doses_are_rounded_within_the_limits_of_the_rule():
    def told(policy, wide=70.0):
        return rounded(policy, policy(np.empty((1, 0))), np.empty((1, 0)), wide).tolist()

    # A thousandth of 70 is .07, so that doses have two decimals.
    assert told(tt.Constant(35.37134)) == [35.37]
    assert told(tt.Constant(35.37134), None) == [35.37134]
    assert told(tt.Constant(0.1 + 0.2), None) == [0.3]
    assert told(tt.Clipped(tt.Constant(80.0), 0.0, 200.0 / 3.0)) == [200.0 / 3.0]
    assert told(tt.Clipped(tt.Constant(-5.0), 0.001, 9.0)) == [0.001]
    assert told(tt.Rounded(tt.Constant(1.0), 0.125)) == [1.0]
    assert told(tt.Rounded(tt.Constant(0.37), 0.125)) == [0.375]
    assert told(tt.InLimits(tt.Constant(36.0), steps=[1.0, 35.125])) == [35.125]
    inside = tt.Clipped(tt.Constant(80.0), 0.0, 200.0 / 3.0)
    assert told(tt.InLimits(inside, at_least=1.0)) == [200.0 / 3.0]
    assert told(tt.Clipped(tt.InLimits(tt.Constant(0.37), steps=0.125), 0.0, 9.0)) == [0.375]


@pytest.mark.usefixtures("by_age")
def test_views_of_texts_are_texts(call):
    texts = pa.table({"age": [1.0], "text": pa.array(["a"], pa.string_view())})
    said = call("recommend", "policy.json", arrow_file("new.arrow", texts))
    assert (said.code, said.out) == (0, '"age","text","dose"\n1,"a",-1\n')


RUNS = ("=1+1", "\n=1", "  -1+2", "＝1", "＋1", "－1", "＠x", "\u3000=1")
HARMLESS = ("a", " -5 ", "5", "fünf", "ｆ")
TEXT_TYPES = (
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.binary()),
)  # fmt: skip


@pytest.mark.usefixtures("by_age")
@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
def test_whatever_a_csv_shows_as_text_is_guarded(call, kind):
    texts = [*RUNS, *HARMLESS]
    table = pa.table({"age": np.ones(len(texts)), "text": pa.array(texts).cast(kind)})
    said = call("recommend", "policy.json", arrow_file("new.arrow", table), "--guard-formulas")
    shown = [row[1] for row in csv.reader(io.StringIO(said.out, newline=""))][1:]
    assert shown == [*(f"'{text}" for text in RUNS), *HARMLESS]


@pytest.mark.usefixtures("by_age")
def test_texts_of_a_fixed_length_are_guarded(call):
    table = pa.table({"age": [1.0, 1.0], "text": pa.array([b"=1+", b"abc"], pa.binary(3))})
    said = call("recommend", "policy.json", arrow_file("new.arrow", table), "--guard-formulas")
    assert [line.split(",")[1] for line in said.out.splitlines()] == ['"text"', '"\'=1+"', '"abc"']


@pytest.mark.usefixtures("by_age")
def test_bytes_that_are_no_text_go_to_a_file(call):
    table = pa.table({"age": [1.0], "text": pa.array([b"=\xff"])})
    words = ("recommend", "policy.json", arrow_file("new.arrow", table), "--guard-formulas")
    said = call(*words)
    assert said.code == 2
    assert "The column `text` of type binary cannot be written in this format" in said.err
    assert call(*words, "-o", "doses.arrow").code == 0
    assert read_table("doses.arrow")["text"].to_pylist() == [b"'=\xff"]


GUARDED = {
    # As they come, and as a spreadsheet can bear them: texts and names, but no numbers.
    "=name": ("=1+1", "@x", "ok", "-a", "+b", "\tc", "", "-5", "+3.2e4", "-.5", "−7"),
    "'=name": ("'=1+1", "'@x", "ok", "'-a", "'+b", "'\tc", "", "-5", "+3.2e4", "-.5", "−7"),
}


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
@pytest.mark.parametrize("encoded", [True, False])
def test_formulas_are_guarded_where_asked(call, ending, encoded):
    call()
    tt.Linear([-1.0], features=("age",)).save("policy.json")
    (name, texts), (guarded_name, guarded) = GUARDED.items()
    column = pa.array(texts).dictionary_encode() if encoded else pa.array(texts)
    table = pa.table({"age": np.arange(1.0, 12.0), name: column, "n": -np.arange(11)})
    source, target = f"in{ending}", f"out{ending}"
    if ending == ".csv":
        pa_csv.write_csv(table.set_column(1, name, pa.array(texts)), source)
    elif ending == ".parquet":
        pq.write_table(table, source)
    else:
        with pa.ipc.new_file(source, table.schema) as writer:
            writer.write_table(table)
    options = ("--treatment", "+dose", "-o", target)
    assert call("recommend", "policy.json", source, *options, "--guard-formulas").code == 0
    made = read_table(target, typed=["n", "'+dose"] if ending == ".csv" else None)
    assert made.column_names == ["age", guarded_name, "n", "'+dose"]
    assert tuple(made[guarded_name].to_pylist()) == guarded
    assert made["n"].to_pylist() == list(range(0, -11, -1))
    assert made["'+dose"].to_pylist() == [-float(x) for x in range(1, 12)]
    assert call("recommend", "policy.json", source, *options).code == 0
    plain = read_table(target, typed=["n"] if ending == ".csv" else None)
    assert plain.column_names == ["age", name, "n", "+dose"]
    assert tuple(plain[name].to_pylist()) == texts
