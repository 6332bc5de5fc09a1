"""The page about the default says what the code says."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from benchmarks.constants import acting, learner
from benchmarks.constants import page as measured
from benchmarks.constants.effects import clear, known_records, ratio
from benchmarks.constants.learner_page import excess_ratio
from benchmarks.constants.limits import SET_ON
from benchmarks.constants.study import IMPORTED, MODELS, RECORDS, SMOOTHING, place_of, with_constant
from pages.blocks import ROOT

from titrant.outcome.ridge import quantile_knots
from titrant.outcome.stack import smooth_library
from titrant.propensity.average import smooth_members

PAGE = (ROOT / "docs/explanation/default.md").read_text("utf-8")
WRITTEN = PAGE.partition(measured.BEGIN)[0]
NAMED = re.compile(r"`((?:[a-z_]+\.)+(?:[A-Z]\w*\.)?\w+)`(?: \||)\s(-?[\d.]+\d|\d)")
CONSTANTS = dict(NAMED.findall(WRITTEN))
LIMITS = re.findall(r"^.*\| `(?:inference\.trust|scaling)\..*$", WRITTEN, re.MULTILINE)
RUNNING = "\n".join(
    line for line in WRITTEN.partition("\n## Constants")[0].splitlines() if line not in LIMITS
)
NUMBER = re.compile(r"(?<![\w.^])\d*[.,]?\d+")

VARIED = list(dict.fromkeys([*MODELS, *SMOOTHING, *acting.CONSTANTS, *learner.LEARNER]))
"""Constants that a script varies."""

# What sentences, formulas and pseudo-code say, with the constant's name in place of its number:
# as it is, in percent or as a power of ten; the number of its entries, each of them or one.
SENTENCES = r"""
rows beyond {evaluation.models.fitting.MOST_TO_FIT} are not used to fit models
one of {estimators.DoublyRobust.folds} for each row
{evaluation.models.nuisance.DEFAULT_FLOOR}/sd(T)
at {bandwidth.path.DEFAULT_FACTORS:entries} bandwidths
the {estimators.DoublyRobust.folds} sets of models
order-four kernel at {inference.RobustBiasCorrected.shrink}h
squared error among {bandwidth.path.DEFAULT_FACTORS:entries},
Below {evaluation.models.fitting.FEWEST_TO_FOLLOW} rows
Where does {inference.RobustBiasCorrected.shrink} come from?
$K = {estimators.DoublyRobust.folds}$ folds
the seed ({evaluation.survey.SEED})
with 3 to {outcome.context.LEVELS_UP_TO} values
at least {outcome.context.LEVEL_ROWS} rows and {outcome.context.LEVEL_SHARE:percent} %
({outcome.context.LEVEL_PRODUCTS} at most)
for up to {outcome.context.PRODUCTS_UP_TO} contexts
only the {outcome.context.PRODUCTS_UP_TO} along which
beyond {outcome.context.BENDS_UP_TO} contexts
forest of {outcome.Forest.trees} trees with at least {outcome.Forest.leaf} rows in a leaf
at most {outcome.Forest.rows} rows drawn with replacement
if there are up to {outcome.forest.FEW}, else a third
more than {outcome.repeated.CLEAR} standard errors of chance
around {outcome.landmarks.Landmarks.landmarks} rows
on at most {outcome.landmarks.CHOSEN_ON} rows
\frac{{propensity.average.FLOOR:power}}{\mathrm{sd}(T)}
(EM) on at most {propensity.average._ROWS} rows
$w_m < {propensity.average.LEAST}$
most {propensity.CrossPropensity.rows} rows outside the fold
up to {propensity.GaussianMixture.components} components |
BIC, {propensity.GaussianMixture.starts} starts
2 or {propensity.GatedMixture.components} components
BIC, {propensity.GatedMixture.starts} starts
a mixture of up to {propensity.SmoothLocation.components} components whose means
$\theta = {evaluation.models.nuisance.DEFAULT_FLOOR}/\mathrm{sd}(T)$
with {outcome.SmoothContext.knots} knots
one of {outcome.ridge.PENALTIES:entries} between ${outcome.ridge.PENALTIES:first power}$
and ${outcome.ridge.PENALTIES:last power}$ with
more than ${outcome.ridge.SATURATED}n$ degrees of freedom
more than {outcome.ridge.WIDE} features
the {outcome.Bounded.share:percent} and 99 % quantiles
more than {outcome.ridge.JUMPS_UP_TO},
{outcome.ridge.JUMP_PRODUCTS} at most
$h_j = {bandwidth.path.DEFAULT_FACTORS:first} \cdot
at least {bandwidth.AveragedBiasPath.fewest_rows} rows in reach
of at least {bandwidth.AveragedBiasPath.ess_floor}, and
$h \le {bandwidth.AveragedBiasPath.widest}\,
{bandwidth.AveragedBiasPath.nugget:percent} % of it is added
$k = {bandwidth.path.FEWEST}, \dots, J$
{bandwidth.AveragedBiasPath.range_penalty}\,(J - k)
fewer than {bandwidth.path.FEWEST} usable bandwidths
the bandwidth ${inference.RobustBiasCorrected.shrink}h$
{inference.rbc._SMALLEST})} \left(
The factor {inference.RobustBiasCorrected.shrink} falls
linearly to {inference.RobustBiasCorrected.at_kink} as
kink grows to {bandwidth.base.CLEAR_KINK}:
< {inference.rbc._PURITY}$, or fewer than {inference.rbc._FEWEST} rows
On logs of more than {evaluation.models.fitting.MOST_TO_FIT} rows it is computed
between the {learn.setting.TAILS:first percent} and
{learn.setting.TAILS:last percent} % quantiles of the logged doses
{outcome.Trees.trees} extra-trees
within the {outcome.Bounded.share:percent}–99 % quantiles of y
on {learn.tables.DOSES} doses
at ridge {learn.candidates.RIDGES:each}
h/s = {learn.candidates.BANDWIDTHS:each} and
ridges, floor {learn.candidates.CANDIDATE_FLOOR}/s
max(q, {learn.candidates.SCORE_FLOOR}/s)
h = {learn.candidates.BANDWIDTH}s
exp(−z/{learn.candidates.TEMPERATURE})
more than {learn.candidates.WORSE} SE worse
more than {learn.classes.bent.MORE_THAN} values
up to {learn.classes.bent.MOST_CONTEXTS} contexts
trees of {learn.classes.tree.SIZES:first} to {learn.classes.tree.SIZES:last} leaves
within {learn.choice.WITHIN} SE of the best
fewer than {evaluation.models.fitting.FEWEST_TO_FOLLOW} rows
more than {evaluation.models.fitting.MOST_TO_FIT} rows |
are fitted on {evaluation.models.fitting.MOST_TO_FIT} of them
""".strip().splitlines()
# Numbers that are no constants of the code, or have no name: a test of their own, below.
NO_CONSTANTS = (
    r"(?m)^\d\. ",  # steps of a list
    r"95 %(?! quant)",  # the level
    r"\.71",  # another value than the code's, which the page measures
    r"−99",  # an example
    r"\^\{4\}",  # the members that are added up
    r"\\frac\{3\}\{4\}",  # of the kernel
    r"n\^\{-1/5\}",  # a rate
    r"2\^\{j/4\}|26\$",  # the grid of bandwidths
    r"1, 1\.5, 2\\",  # powers of the bias
    r"5 to 95 % quantiles",  # where the knots are
)


def in_numbers(sentence: str) -> str:
    """Return a sentence with the code's numbers in place of the names."""
    return re.sub(r"\{(\w+(?:\.\w+)+)(?::([a-z ]+))?\}", number_of, sentence)


def number_of(name: re.Match[str]) -> str:
    value, of_it = place_of(name[1]).value, (name[2] or "").split()
    if "entries" in of_it:
        return f"{len(value)}"
    if "each" in of_it:
        return ", ".join(map(written, value))
    if {"first", "last"} & set(of_it):
        value = value[0 if "first" in of_it else -1]
    if "power" in of_it:
        exponent = round(math.log10(value))
        return f"10^{exponent}" if 0 <= exponent < 10 else f"10^{{{exponent}}}"
    return written(100 * value if "percent" in of_it else value)


def written(number: float) -> str:
    """Return a number in the page's style: .84 and 1,600."""
    return f"{number:,.10g}".removeprefix("0") or "0"


def test_the_page_names_enough_constants():
    assert len(CONSTANTS) > 60
    assert set(VARIED) <= set(CONSTANTS)


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_the_code(name):
    assert float(CONSTANTS[name]) == pytest.approx(float(place_of(name).value))


@pytest.mark.parametrize("sentence", SENTENCES)
def test_numbers_in_sentences_are_those_of_the_code(sentence):
    assert in_numbers(sentence) in RUNNING


def test_no_number_of_a_sentence_is_left_out():
    # 0, 1 and 2 are parts of formulas and words; those that are constants are in the sentences.
    left = RUNNING
    for others in NO_CONSTANTS:
        left = re.sub(others, "…", left)
    for sentence in sorted(map(in_numbers, SENTENCES), key=len, reverse=True):
        left = left.replace(sentence, "…")
    lines = [line for line in left.splitlines() if set(NUMBER.findall(line)) - {"0", "1", "2"}]
    assert lines == []


def test_grid_powers_knots_and_members_are_those_of_the_code():
    grid = place_of("bandwidth.path.DEFAULT_FACTORS").value
    assert "$h_j = .03 \\cdot 2^{j/4}\\, \\mathrm{sd}(T)$, $j = 0, \\dots, 26$" in RUNNING
    assert grid == pytest.approx([0.03 * 2 ** (j / 4) for j in range(27)])
    assert "p \\in \\{1, 1.5, 2\\}" in RUNNING
    assert place_of("bandwidth.averaged_bias_path.POWERS").value == (1, 1.5, 2)
    assert "5 knots at the 5 to 95 % quantiles" in RUNNING
    knots = quantile_knots(np.linspace(0, 1, 1001), 5)
    assert (knots[0], knots[-1]) == pytest.approx((0.05, 0.95))
    assert "sum_{m=1}^{4} w_m \\hat f_m" in RUNNING
    assert "sum_{m=1}^{4} w_m \\left(\\hat r_m" in RUNNING
    models = RUNNING.partition("## Folds")[2].partition("## Weight and value")[0]
    names = re.findall(r"^\| ([a-z-]+) \|", models, re.MULTILINE)
    assert names == ["member", *smooth_members(4), "member", *smooth_library(extra=4)]


@pytest.mark.parametrize("line", LIMITS, ids=lambda line: line.split(" | ")[0].strip("| ")[:40])
def test_words_about_a_limit_have_the_number_of_the_code(line):
    *words, named = line.strip("| ").split(" | ")
    told = set(NUMBER.findall(" ".join(words)))
    for _, number in NAMED.findall(named):
        assert told & {written(float(number)), written(100 * float(number))}


def how_much_each_matters() -> dict[str, str]:
    table = WRITTEN.partition("| constant | value | meaning |")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([^`]+)` .*\| ([^|]+) \|$", table, re.MULTILINE))


def test_the_page_tells_which_constants_a_script_varies_and_where_the_result_is():
    told = how_much_each_matters()
    where = {
        "how-much-the-constants-matter": {*MODELS, *SMOOTHING},
        "on-logs-where-they-act": set(acting.CONSTANTS),
        "constants-of-the-learner": set(learner.LEARNER),
    }
    for place, names in where.items():
        assert {k for k, v in told.items() if v.startswith(f"[measured](#{place})")} == names
        assert place in headings()
    assert told.keys() - set(VARIED) == {"learn.stacked.StackedDR.most_rows"}
    assert told["learn.stacked.StackedDR.most_rows"].startswith("not measured")


def headings() -> set[str]:
    """Return the anchors of the page's headings."""
    found = re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE)
    return {heading.lower().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("name", [k for k, v in how_much_each_matters().items() if "only" in v])
def test_where_a_constant_acts_is_what_the_code_says(name):
    said = how_much_each_matters()[name].partition("acts only")[2]
    assert written(place_of(name).value) in NUMBER.findall(said)


@pytest.mark.parametrize("name", VARIED)
def test_a_changed_constant_is_changed_and_put_back(name):
    places = [place_of(one) for one in (name, *IMPORTED.get(name, ()))]
    before = places[0].value
    assert [place.value for place in places] == [before] * len(places)
    with with_constant(name, 2 * before):
        assert [place.value for place in places] == [2 * before] * len(places)
    assert [place.value for place in places] == [before] * len(places)


@pytest.mark.parametrize("name", VARIED)
def test_a_smaller_and_a_larger_value_are_tried(name):
    tried = {**MODELS, **SMOOTHING, **learner.LEARNER}
    for group in acting.GROUPS:
        tried |= group.constants
    smaller, larger = tried[name]
    assert smaller < place_of(name).value < larger


def test_the_table_of_effects_is_that_of_the_records():
    assert measured.page() in PAGE


def test_the_table_of_limits_is_that_of_the_records():
    assert measured.limits() in PAGE


def test_checks_of_the_table_are_those_that_the_code_makes():
    rules = ROOT / "src/titrant/inference"
    made = "".join(path.read_text("utf-8") for path in sorted(rules.rglob("*.py")))
    table = WRITTEN.partition("| in the report |")[2].partition("\n\n")[0]
    names = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert len(names) == 20
    assert [name for name in names if f'"{name}"' not in made] == []
    assert list(SET_ON) == names


def test_words_about_effects_are_those_of_the_table():
    known = measured.page().partition("**Tuning designs")[0]
    line = re.compile(r"^\| `[\w.]+\.(\w+)` \| \S+ \| (\S+) \| (\S+) .*?\| (\S+) ", re.MULTILINE)
    lines = line.findall(known)
    effects = {(name, tried): (float(r), float(c)) for name, tried, r, c in lines}
    default = float(re.search(r"the default covers (\S+)", known)[1])
    half, twice = (round(100 * effects["range_penalty", k][0] - 100) for k in ("1.5", "6"))
    assert f"halving it raises the RMSE by {half} %, doubling it by {twice} %" in WRITTEN
    assert "intervals lose two percentage points of coverage" in WRITTEN
    assert round(100 * (default - effects["at_kink", "0.84"][1])) == 2
    assert (
        "Values\nof .71 and 1 in place of .84 move coverage by about half a percentage" in WRITTEN
    )
    for tried in ("0.71", "1"):
        assert 0.3 < 100 * abs(effects["shrink", tried][1] - default) < 0.7


def test_words_about_logs_where_constants_act_are_those_of_the_records():
    records = known_records(acting.RECORDS)
    moved = {}
    for group in acting.GROUPS:
        of_it = [r for r in records if group.holds(r)]
        for name, values in group.constants.items():
            for value in values:
                if (found := ratio(of_it, f"{name}={value:g}")) is not None:
                    moved[group.rows, len(of_it), f"{name.split('.')[-1]}={value:g}"] = found
    seen = {key: round(100 * found[0] - 100) for key, found in moved.items() if clear(found)}
    assert f"{len(seen)} of {len(moved)} changes that move the RMSE are clear" in WRITTEN
    assert seen == {
        (40, 240, "widest=4"): 7,
        (300, 50, "widest=1"): 19,
        (1000, 4, "PRODUCTS_UP_TO=40"): 22,
        (1000, 4, "BENDS_UP_TO=15"): -7,
        (40, 50, "FEWEST_TO_FOLLOW=25"): 23,
    }
    for words in (
        "`widest` of 1 in place of 2 raises it by 19 % (300 rows, tuning designs), of 4 by 7 % (40",
        "(`FEWEST_TO_FOLLOW` of 25) raise it by 23 %",
        "on four logs, products of all of them (`PRODUCTS_UP_TO` of 40) raise it by 22 %",
        "(`BENDS_UP_TO` of 15) lower it by 7 %",
    ):
        assert words in WRITTEN


def test_words_about_the_learner_are_those_of_the_records():
    records = known_records(learner.RECORDS)
    changes = [f"{name}={v:g}" for name, values in learner.LEARNER.items() for v in values]
    moved = {one: found for one in changes if clear(found := excess_ratio(records, one))}
    assert list(moved) == ["learn.candidates.BANDWIDTH=1.6"]
    found, error = moved["learn.candidates.BANDWIDTH=1.6"]
    lowered = f"lowers the excess risk by {round(100 - 100 * found)} ± {round(100 * error)} %"
    assert lowered in WRITTEN
    assert f"one of {len(changes)}\nchanges" in WRITTEN
    assert f"on {len(records)} logs of six problems" in WRITTEN
    others = [excess_ratio(records, one)[1] for one in changes if one not in moved]
    assert 2 * np.median(others) > 0.2
    assert len(learner.NAMES) == 6
    assert place_of("learn.candidates.BANDWIDTH").value == 0.8


@pytest.mark.parametrize(
    ("path", "ratio_of", "change"),
    [
        (learner.RECORDS, excess_ratio, "learn.candidates.BANDWIDTH=1.6"),
        (RECORDS, ratio, "bandwidth.AveragedBiasPath.range_penalty=1.5"),
    ],
)
def test_a_ratio_favors_neither_the_default_nor_the_change(path, ratio_of, change):
    # Default and change exchanged, a ratio is turned over.
    records = known_records(path)
    turned = [
        {**r, "found": {"default": r["found"][change], change: r["found"]["default"]}}
        for r in records
    ]
    found = ratio_of(records, change)[0]
    assert found > 1.01 or found < 0.99
    assert ratio_of(turned, change)[0] == pytest.approx(1 / found, rel=1e-12)


def test_five_questions_of_a_referee_are_answered_on_the_page():
    # Each with an answer in the table, and a section of the page that has the formulas.
    table = WRITTEN.partition("## Five short answers")[2].partition("The whole of")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    answers = {question: (answer, place) for question, answer, place in rows[1:]}
    asked = {
        "Which propensity?": "average of four conditional densities",
        "Is it cross-fitted?": "both models. Five folds",
        "Which bandwidth?": "least estimated squared error",
        "Which degrees of freedom?": "effective number of rows",
        "Where does .84 come from?": "cover 95 % on the designs",
    }
    assert list(answers) == list(asked)
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    for question, words in asked.items():
        answer, place = answers[question]
        assert words in answer
        assert set(re.findall(r"\(#([^)]+)\)", answer + place)) <= anchors
