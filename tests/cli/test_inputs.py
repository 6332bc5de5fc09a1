"""Tables in, whatever their form; what cannot be used is refused with a sentence and code 2."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from titrant.cli import inputs

POLICY = ("--policy", "constant:35", "--json", "-")


@pytest.fixture
def expected(call, csv_log, plain):
    return json.loads(call("evaluate", csv_log, *plain, *POLICY).out)


def test_parquet_and_arrow_and_patterns_give_what_csv_gives(call, table, plain, expected):
    whole = pa.table(table)
    pq.write_table(whole, "log.parquet")
    feather.write_feather(whole, "log.feather", compression="uncompressed")
    pq.write_table(whole.slice(0, 250), "part-0.parquet")
    pq.write_table(whole.slice(250), "part-1.parquet")
    for path in ("log.parquet", "log.feather", "part-*.parquet"):
        assert json.loads(call("evaluate", path, *plain, *POLICY).out) == expected


def test_the_default_context_is_every_other_column_with_text_encoded(call, csv_log):
    said = call(
        *("evaluate", csv_log, "--treatment", "dose", "--outcome", "loss", "--propensity"),
        *("propensity", "--estimator", "sn", *POLICY),
    )
    assert said.code == 0
    encoded, context = said.err.splitlines()
    assert encoded == "Column `sex` is text: encoded 0/1 as `sex=male` (all 0: `female`)."
    assert context.startswith('Context: `weight`, `age`, `carrier`, `Größe, "cm"`, `sex=male`.')


def test_headers_with_commas_and_quotes_can_be_named(call, csv_log, plain):
    said = call(
        *("evaluate", csv_log, *plain, "--context", '"Größe, ""cm"""', "--policy"),
        *('linear:intercept=-1,"Größe, ""cm""=0.2"', "--json", "-"),
    )
    assert said.code == 0, said.err


def test_policies_use_encoded_columns(call, csv_log):
    said = call(
        *("evaluate", csv_log, "--treatment", "dose", "--outcome", "loss", "--estimator", "sn"),
        *("--propensity", "propensity", "--context", "sex", "--policy"),
        *("linear:intercept=34,sex=male=2", "--json", "-"),
    )
    assert said.code == 0, said.err
    assert json.loads(said.out)["policy"] == "linear:intercept=34,sex=male=2"


def refusal(call, *arguments) -> str:
    """Return the sentence with which a call was refused."""
    said = call(*arguments)
    assert said.code == 2
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith("Error: ")
    return last


def test_a_wrong_column_is_answered_with_the_closest_name(call, csv_log):
    wrong = ("--treatment", "doze", "--outcome", "loss", *POLICY)
    assert "did you mean `dose`?" in refusal(call, "evaluate", csv_log, *wrong)
    context = ("--treatment", "dose", "--outcome", "loss", "--context", "wieght", *POLICY)
    assert "did you mean `weight`?" in refusal(call, "evaluate", csv_log, *context)


def test_missing_numbers_are_counted(call, rewritten, plain):
    def without_one(lines):
        return [lines[0], "," + lines[1].split(",", 1)[1], *lines[2:]]

    said = call("evaluate", rewritten(without_one), *plain, *POLICY)
    assert said.code == 0
    assert "Column `weight` is missing in 1 of 600 rows: the median, " in said.err
    assert "`weight is missing` says where." in said.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: lines[:1], "A log must have at least 2 rows; got an empty table."),
        (lambda lines: lines[:2], "A log must have at least 2 rows; got 1 row."),
        (lambda _: [], "is empty. A CSV begins with a line of column names."),
    ],
    ids=["no rows", "one row", "no bytes"],
)
def test_tables_without_enough_in_them(call, rewritten, plain, change, said):
    assert said in refusal(call, "evaluate", rewritten(change), *plain, *POLICY)


def test_doses_in_few_steps_are_pointed_out(call, rewritten, plain):
    def in_steps(lines):
        place = lines[0].split(",").index("dose")
        rows = [line.split(",") for line in lines]
        for i, row in enumerate(rows[1:]):
            row[place] = str(10 * (1 + i % 7))
        return [",".join(row) for row in rows]

    asked = (*plain, "--policy", "constant:40", "--allow-untrusted")
    said = call("evaluate", rewritten(in_steps), *asked)
    assert "Column `dose` takes only 7 different values in 600 rows." in said.err
    assert "different values" not in call("evaluate", rewritten(list), *asked).err


def test_doses_outside_the_bounds(call, csv_log):
    columns = ("--treatment", "dose", "--outcome", "loss", "--bounds", "9,75")
    sentence = refusal(call, "evaluate", csv_log, *columns, *POLICY)
    assert "The treatment column `dose` must lie within its bounds; got 2 of 600 rows" in sentence


def test_a_file_that_is_not_there(call, csv_log, plain):
    near = csv_log.with_name("lgo.csv")
    assert f"did you mean `{csv_log}`?" in refusal(call, "evaluate", near, *plain, *POLICY)


USAGE = [
    (("--bounds", "5"), "Invalid value for '--bounds': It must be LO,HI"),
    (("--bounds", "a,b"), "got 'a,b'"),
    (("--bounds", "1,2", "--bounds", "3,4"), "once for each of 1; got 3."),
    (("--bandwidth", "0"), "must be a finite number > 0"),
    (("--bandwidth", "nan"), "must be a finite number > 0"),
    (("--bandwidth", "thumb"), "'thumb' is neither numbers nor one of auto,"),
    (("--kernel", "cosine"), "'cosine' is not one of"),
    (("--clip", "-1"), "must be a finite number ≥ 0"),
    (("--level", "1"), "1.0 is not in the range 0<x<1"),
    (("--estimator", "dm", "--clip", "1"), "The estimator `dm` has no clip. Leave the option out."),
    (
        ("--tretment", "dose"),
        "Did you mean one of: '--missing-treatment', '--treated-on', '--treatment'?",
    ),
    (("--policy", "constant:3"), "Use `titrant compare` for several."),
    (("--html", "nowhere/report.html"), "The folder `nowhere` does not exist. Make it first."),
    (("--json", "."), "is a folder. Give the name of a file."),
]


@pytest.mark.parametrize(("options", "sentence"), USAGE, ids=lambda o: " ".join(o)[:40])
def test_wrong_options_are_refused_with_a_remedy(call, csv_log, plain, options, sentence):
    assert sentence in refusal(call, "evaluate", csv_log, *plain, *POLICY, *options)


POLICIES = [
    ("constant:", "'' in `constant:` is not a number."),
    ("linear:wieght=1", "did you mean `weight`?"),
    ("linear:", "`linear:` names neither an intercept nor a column."),
    ("=constant:3", "'=constant:3' is no policy"),
    ("constnt:3", "'constnt:3' is no policy: give a dose such as 35, a file.json, constant:DOSE,"),
    ("nowhere.json", "cannot be opened: No such file or directory."),
    ("constant:1,2", "gives 2 dose(s) per row, but the log has 1 treatment(s)."),
    ("constant:99", "Write it as `clipped:LO,HI:POLICY`, or widen the bounds."),
    ("rounded:0:constant:3", "The `step` of `Rounded` must be made of numbers > 0"),
]


@pytest.mark.parametrize(("policy", "sentence"), POLICIES)
def test_wrong_policies_are_refused_with_a_remedy(call, csv_log, plain, policy, sentence):
    assert sentence in refusal(call, "evaluate", csv_log, *plain, "--policy", policy)


def test_two_policies_of_one_name(call, csv_log, plain):
    pair = ("--policy", "a=constant:30", "--policy", "a=constant:40")
    assert "Two policies are called `a`." in refusal(call, "compare", csv_log, *plain, *pair)


def test_compare_wants_two(call, csv_log, plain):
    one = refusal(call, "compare", csv_log, *plain, "--policy", "constant:35")
    assert "Use `titrant evaluate` for one." in one


def test_nothing_is_written_when_the_options_are_wrong(call, csv_log, plain, tmp_path):
    refusal(call, "evaluate", csv_log, *plain, "--policy", "constant:99", "--html", "r.html")
    assert list(tmp_path.iterdir()) == []


# ── known answers ────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("texts", "dimension", "expected"),
    [
        ((), 1, None),
        (("0,75",), 1, (0.0, 75.0)),
        ((" 0 , ",), 1, (0.0, None)),
        ((",5e1",), 2, (None, 50.0)),
        (("0,1", "-2,"), 2, ([0.0, -2.0], [1.0, None])),
    ],
)
def test_bounds_as_typed(texts, dimension, expected):
    assert inputs.bounds(texts, dimension) == expected


def test_comma_lists_as_typed():
    assert inputs.columns(["a, b", "c", '"d,e"', ""]) == ["a", "b", "c", "d,e"]


@pytest.mark.parametrize("given", ["0,", "0;5", "no"])
def test_point_masses_that_are_no_doses(call, rewritten, plain, given):
    asked = ("evaluate", rewritten(list), *plain, *POLICY, "--atoms", given)
    assert "doses separated by commas, or `none`" in refusal(call, *asked)


def test_point_masses_are_found_named_or_denied(call, rewritten):
    def some_none(lines):
        place = lines[0].split(",").index("dose")
        rows = [line.split(",") for line in lines]
        for row in rows[1::3]:
            row[place] = "0"
        return [",".join(row) for row in rows]

    roles = ("--treatment", "dose", "--outcome", "loss", "--context", "age")
    how = ("--estimator", "sn", "--allow-untrusted", "--json", "-")
    asked = ("evaluate", rewritten(some_none), *roles, "--policy", "constant:0", *how)
    found, named, none = (
        json.loads(call(*asked, *atoms).out)
        for atoms in ((), ("--atoms", "0"), ("--atoms", "none"))
    )
    assert found == named
    assert found["bandwidth"] is None
    assert none["bandwidth"] is not None


# ── Files as people write them ───────────────────────────────────────────────────────────────────


def written_for_people(table, path):
    """Write the log with semicolons, decimal commas, points between thousands and latin-1."""

    def cell(name, value):
        if isinstance(value, str):
            return value
        text = f"{value!r}".replace(".", ",")
        return f"{text} %" if name == "age" else text

    rows = [";".join(cell(name, v) for name, v in zip(table, row, strict=True))
            for row in zip(*table.values(), strict=True)]  # fmt: skip
    head = ";".join(table).replace('"', "")
    path.write_text("\n".join([head, *rows]) + "\n", encoding="latin-1")


def test_a_file_written_for_people_gives_the_same_numbers(call, table, plain, expected, tmp_path):
    written_for_people(table, tmp_path / "messy.csv")
    said = call("evaluate", "messy.csv", *plain, *POLICY)
    assert said.code == 2
    assert "is not in UTF-8: its column names hold other bytes. Name its encoding" in said.err
    said = call("evaluate", "messy.csv", *plain, *POLICY, "--encoding", "latin-1")
    assert said.code == 0, said.err
    for sentence in (
        "`messy.csv`: its columns are separated by ';'.",
        "Numbers are read with a decimal comma: ",
        "Column `age` is written with signs or separators, and read as numbers: ",
    ):
        assert sentence in said.err
    found = json.loads(said.out)
    assert {**found, "data": None} == {**expected, "data": None}
    assert [one["done"] for one in found["data"]["columns"]] == ["read"] * 3
    given = ("--encoding", "latin-1", "--sep", ";", "--decimal", ",")
    said = call("evaluate", "messy.csv", *plain, *POLICY, *given)
    assert "separated by" not in said.err
    assert json.loads(said.out)["value"] == expected["value"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sep", ";;"), "It must be one character, or `tab`; got ';;'."),
        (("--encoding", "latin-0"), "cannot be read in the encoding 'latin-0'"),
        (("--sheet", "a"), "is a file in CSV, which has no sheet to choose"),
        (("--decimal", ",", "--in-parts"), "A log that is read part by part is in Parquet"),
    ],
)
def test_what_a_file_has_not_is_refused(call, csv_log, plain, options, words):
    assert words in refusal(call, "evaluate", csv_log, *plain, *POLICY, *options)
