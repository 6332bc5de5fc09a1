"""The report page: complete, self-contained, and the same whenever the results are the same."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from html import escape, unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST
from reporting.examples import (
    BANDWIDTH,
    BEST,
    CURVES,
    LEARNED,
    LOG,
    POLICIES,
    TRUTH,
    comparison,
    made,
    report,
    usual,
    usual_learned,
)
from titrant.data.simulate import DESIGNS
from titrant.evaluation import trust
from titrant.evaluation.evaluation import Evaluation
from titrant.policies import StatusQuo
from titrant.reporting import (
    Report,
    estimates,
    figures,
    gather,
    numbers,
    render,
    tables,
    words,
    written,
)
from titrant.reporting.numbers import plain
from titrant.reporting.page import prose
from titrant.reporting.written import described

# Rows are counted before they are drawn, so the size of the page does not grow with the log. Each
# policy brings the sentences of its checks, about 700 bytes for two.
LARGEST_PAGE = 500_000
NUMBER = re.compile(r"[−+]?\d[\d,]*(?:\.\d+)?(?:e[−+]?\d+)?%?")


class Page(HTMLParser):
    """Opened tags, table cells with their kind, levels of headings, and the JSON."""

    def __init__(self, text: str):
        HTMLParser.__init__(self)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[tuple[str | None, str]] = []
        self.headings: list[int] = []
        self.data = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in {"td", "th"}:
            self._inside = "cell"
            heading = dict(attrs).get("scope") == "col"
            self.cells.append(("heading" if heading else dict(attrs).get("class"), ""))
        elif dict(attrs).get("id") == "titrant-result":
            self._inside = "result"
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag):
        if tag in {"td", "th", "script"}:
            self._inside = ""

    def handle_data(self, data):
        if self._inside == "result":
            self.data += data
        elif self._inside == "cell":
            kind, text = self.cells[-1]
            self.cells[-1] = (kind, text + data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return render(usual())


@pytest.fixture(scope="module")
def page(text) -> Page:
    return Page(text)


def every_number(value: object) -> set[float]:
    """All numbers in a JSON value, also those in its texts."""
    if isinstance(value, dict):
        return set().union(*map(every_number, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(every_number, value)) if value else set()
    return {value} if isinstance(value, (int, float)) and not isinstance(value, bool) else set()


# ── what it says ─────────────────────────────────────────────────────────────────────────────────
def test_the_embedded_json_is_the_report(page):
    data = json.loads(page.data)
    assert data.pop("decision")["verdict"] == words.decide(usual()).verdict.value
    assert data == json.loads(json.dumps(usual().to_dict()))
    assert data["truth"] == TRUTH
    assert data["intervals"]["flat"] == list(comparison()["flat"].interval(0.9))
    for name in POLICIES:
        alone = plain(comparison()[name].to_dict(0.9))
        del alone["data"]  # said once for all
        assert data["result"]["estimates"][name] == alone
    assert data["config"] == "seed = 0\n"
    assert data["versions"]["titrant"] == tt.__version__


def is_told(text: str, known: np.ndarray) -> bool:
    """Whether a number as it is written is one of the known ones, rounded as it is."""
    plain_text = text.replace(",", "").replace("−", "-").rstrip("%")
    mantissa, _, power = plain_text.partition("e")
    unit = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    digits = mantissa.partition(".")[0].lstrip("-+")
    if "." not in mantissa and not power:  # zeros before the point may be rounding, too
        unit = 10.0 ** (len(digits) - len(digits.rstrip("0"))) if digits.strip("0") else 1.0
    share = 100.0 if text.endswith("%") else 1.0
    return bool((np.abs(np.abs(known) * share - abs(float(plain_text))) <= 0.501 * unit).any())


def test_every_number_in_a_table_is_in_the_json(page):
    known = np.array(sorted(every_number(json.loads(page.data))))
    known = np.append(known, np.arange(1.0, 26.0))  # places are counted from 1
    cells = [text for kind, text in page.cells if kind == "n"]
    assert len(cells) > 200
    for cell in cells:
        for text in NUMBER.findall(cell):
            assert is_told(text, known), cell


def test_the_answer_and_every_section_are_there_in_the_order_of_a_decision(text):
    places = [
        text.index(part)
        for part in (
            "“b&lt;i&gt;st",  # the answer
            'id="answer-figure"',
            'id="sure-heading"',
            'id="try-heading"',
            'id="who-heading"',
            'id="doubt-heading"',
            'id="trust-heading"',
            'id="data-heading"',
            'id="rule-heading"',
            'id="method-heading"',
        )
    ]
    assert places == sorted(places)
    assert "&#34;class&#34;: &#34;Clipped&#34;" in text  # the rule as JSON
    assert "19 + 0.35 · weight − 0.2 · age − 9 if carrier = 1, kept within 5 … 75" in text
    assert usual().comparison[BEST].bandwidth.reason in text


def test_every_check_is_told_in_words(text):
    for name in (*POLICIES, "status quo"):
        for check in usual().comparison[name].diagnostics.checks:
            assert str(prose(check.message)) in text


@pytest.mark.usefixtures("undrawn")
def test_every_number_of_the_answer_is_in_the_json():
    for found in (usual(), usual_learned()):
        text = render(found)
        data = json.loads(Page(text).data)
        known = np.array(sorted(every_number(data)))
        answer = re.search(r'<p class="lead">(.*?)</p>', text, re.DOTALL)[1]
        assert unescape(answer) == data["decision"]["answer"]
        said = re.sub(r"&[^;]+;|90%|best of \d+ policies", " ", answer)
        numbers_said = NUMBER.findall(said)
        assert len(numbers_said) >= 6
        assert all(is_told(one, known) for one in numbers_said), answer


def test_code_in_a_sentence_is_set_as_code():
    assert prose("Pass `a < b` or `c`.") == "Pass <code>a &lt; b</code> or <code>c</code>."
    assert prose("An odd ` & no more") == "An odd ` &amp; no more"


@pytest.mark.usefixtures("undrawn")
def test_a_learned_policy_has_its_section(text):
    plain_text, text = text, render(usual_learned())
    page = Page(text)
    assert "The honest value" in text
    assert 'id="learned-heading"' in text
    cells = [cell for _, cell in page.cells]
    assert "2.94" in text
    assert "−2.94" in cells
    assert "93.8%" in cells
    assert "Chosen: direct. It scored best." in text
    # A score on rows held out is a smoothed loss: it is told less that of the chosen candidate.
    assert {"direct, chosen", "behind the chosen", "+2.00 ± 0.12"} <= {*cells}
    assert "held-out loss" not in text
    assert text.count('<p class="formula">dose = 19 + 0.35 · weight') == 2  # here, and as a rule
    assert "optimistic around 1" in text
    assert "The improvement is clear." in text
    assert "optimistic here" in text
    assert json.loads(page.data)["learned"] == plain(LEARNED)
    assert "The learned rule" not in plain_text
    assert "optimistic here" not in plain_text


@cache
def curved() -> Report:
    """The report of a rule with curves, as the log has it and as it was learned."""
    return made(LOG, {"curved": CURVES}, units={"dose": "mg"}, labels={"weight": "Weight, kg"})


@pytest.mark.parametrize("learned", [False, True])
def test_a_rule_with_curves_has_a_picture_and_points_for_each(learned):
    found = replace(curved(), learned={**LEARNED, "name": "curved"} if learned else None)
    text, points = render(found), found.rules[-1].points
    page = Page(text)
    # Once: in the section of the learned rule, or else in that of all rules.
    assert text.count("What Weight, kg adds to dose</title>") == 1
    assert text.count("What age adds to dose</title>") == 1
    above = text.index("What age adds") < text.index('id="try"')
    assert above is learned
    # The table has the points, 0 at the middle; those that are folded away come after it.
    cells = [cell for _, cell in page.cells]
    starts = [k for k, cell in enumerate(cells) if cell == "added to dose"][:2]
    weight = points["weight"]
    shown = [cell for row in weight.texts(points.decimals) for cell in row]
    at = shown.index("0", 1)
    assert float(shown[at - 1]) == weight.middle
    every = [cell for row in points.every()["weight"].texts(points.decimals) for cell in row]
    assert len(every) > len(shown)
    for start, rows in zip(starts, (shown, every), strict=True):
        assert cells[start - 1] == "Weight, kg"
        assert cells[start + 1 : start + 1 + len(rows)] == rows
    # The sentence above them says what they start at, and that they are near.
    said = words.points(found, points)
    assert said.startswith(
        f"Start at {points.start[0]:.2f}\N{NO-BREAK SPACE}mg (for Weight, kg 75, age 60) and add "
    )
    assert said in unescape(text)
    assert "dose = " in text
    assert "+ curve(Weight, kg) + curve(age), kept within 5 … 75" in text
    assert json.loads(page.data)["rules"][-1]["points"]["curves"][0]["context"] == "weight"


@pytest.mark.usefixtures("undrawn")
def test_what_each_price_of_a_capped_outcome_does_stands_on_the_page():
    second = LOG.with_outcome(LOG.treatment / 10.0)  # its mean is that of the dose, .1 a mg
    cap = tt.Cap(log=second, at_most=3.2, name="nausea")
    how = {"procedure": FAST, "grade": tt.SelfNormalized(), "policy": tt.LinearClass()}
    learner = tt.PolicyLearner(limits=tt.Limits(cap=cap), **how).fit(LOG)
    learned = described(learner)
    headings, *rows = learner.limits_.cap.table()
    found = tables.traded(learned)
    assert (found.headings, found.rows) == (headings, tuple(rows))
    # The dearer the second outcome, the less of it and the smaller the mean dose, up to rounding.
    prices, amounts, doses = (np.array([float(row[k]) for row in rows]) for k in (0, 1, 5))
    assert prices[0] == 0.0
    assert (np.diff(prices) >= 0).all()
    assert (np.diff(amounts) <= 0.02).all()
    np.testing.assert_allclose(amounts, doses / 10.0, atol=0.06)
    page = Page(render(replace(usual(), learned={**LEARNED, "limits": learned["limits"]})))
    cells = [cell for _, cell in page.cells]
    start = cells.index(headings[0])
    assert cells[start : start + len(headings)] == list(headings)
    wanted = [cell for row in rows for cell in row]
    assert cells[start + len(headings) :][: len(wanted)] == wanted
    # Without a price there is no such table.
    no_price = {**learned, "limits": {**learned["limits"], "traded": None}}
    assert tables.traded(no_price) is None
    assert tables.traded(LEARNED) is None


def test_the_average_of_candidates_is_named_where_it_is_chosen():
    score = {"behind_the_chosen": 0.5, "behind_the_chosen_se": 0.25, "weight": 0.5}
    scores = {"direct": score, "mean dose": score}
    average = {"chosen": "weighted average", "scores": scores}
    table = tables.candidates({"candidates": written._candidates(average)})
    assert [row[0] for row in table.rows] == ["direct", "mean dose", "weighted average, chosen"]
    assert table.rows[-1][1:] == ("–", "–")
    # One of them needs no row of its own, and where nothing was scored there is none.
    direct = written._candidates({**average, "chosen": "direct"})
    assert [one["chosen"] for one in direct] == [True, False]
    assert written._candidates({}) == []


def test_a_log_whose_outcome_never_varies_has_its_figures():
    # Warnings are errors: no axis may end where it begins.
    x, t = LOG.context[:300], LOG.treatment[:300]
    log = tt.LoggedData(x, t, np.ones(300), names=LOG.names)
    found = made(log, {"flat": tt.Constant(35.0)})
    assert figures.curve(found, "dose", "curve").count("<svg") == 1


@pytest.mark.usefixtures("undrawn")
def test_of_very_many_curves_a_page_has_the_largest():
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(20)]
    x = rng.normal(size=(200, 20))
    log = tt.LoggedData(x, x[:, 0] + rng.normal(size=200), rng.normal(size=200), names=names)
    policy = tt.Additive(
        np.zeros(20),
        knots=[[-1, 0, 1]] * 20,
        bends=np.outer(np.linspace(0.05, 0.2, 20), [0, 1, 0]).ravel(),
        reach=np.ones(20),
    )
    found = made(log, {"p": policy}, bandwidth=1.0)
    text = render(found)
    assert "Left out here: 8 smaller curves." in text
    assert "+ curve(x19) + … (8 smaller curves)" in text
    assert "+ curve(x7)" not in text


@pytest.mark.usefixtures("undrawn")
def test_honest_numbers_that_the_comparison_has_are_not_repeated():
    value = usual().comparison[BEST].value
    honest = {**LEARNED["honest"], "value": value}
    learned = {**LEARNED, "honest": honest, "deployed": False}
    text = render(replace(usual_learned(), learned=learned))
    assert "The honest value" not in text
    assert "Keep the status quo." in text
    assert "The status quo is kept: go on as before." in text


@pytest.mark.usefixtures("undrawn")
def test_a_run_is_repeated_by_its_file_or_else_by_its_settings(text):
    by_file, by_settings = text, render(replace(usual(), config=None))
    assert '<pre tabindex="0">seed = 0\n</pre>' in by_file
    assert "<span>Settings</span>" not in by_file
    assert "<span>Settings</span>" in by_settings
    assert "flat=constant:35" in by_settings


# ── how it is made ───────────────────────────────────────────────────────────────────────────────
def test_nothing_is_fetched_and_only_the_script_of_the_page_may_run(text, page):
    for _, attrs in page.tags:
        for name in ("src", "href", "xlink:href"):
            assert str(attrs.get(name, "#")).startswith("#")
        assert not [name for name in attrs if name.startswith("on")]
    assert [attrs.get("type") for attrs in page.of("script")] == ["application/json", None]
    assert not re.findall(r"@import|url\((?!#)", text)
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.of("meta")[3]["content"]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|eval|Function\(", script)


HOSTILE = (
    "</script><script>alert(1)</script>",
    '"\' onload=alert(1) x="',
    "قيمة الجرعة",
    "💊💉🧪",
    "long " + 60 * "name ",
    "<!--",
    "{{ 7 * 7 }} ${x} %s",
)


def hostile():
    """A report whose every name is out to break the page."""
    parts = LOG.context, LOG.treatment, LOG.outcome, LOG.propensity
    log = tt.LoggedData(*parts, bounds=(5.0, 75.0), names=HOSTILE[:3])
    rule = tt.Linear([0.35, -0.2, -9.0], 19.0, features=HOSTILE[:3])
    return made(
        *(log, {HOSTILE[3]: tt.Constant(35.0), HOSTILE[4]: tt.Clipped(rule, 5.0, 75.0)}),
        treatments=[HOSTILE[5]],
        outcome=HOSTILE[6],
        title=HOSTILE[0],
        labels={HOSTILE[1]: HOSTILE[0]},
        units={HOSTILE[5]: HOSTILE[1], HOSTILE[6]: HOSTILE[0]},
    )


def test_no_name_breaks_out_of_its_place():
    text = render(hostile())
    page = Page(text)
    assert len(page.of("script")) == 2
    assert text.count("</script>") == 2
    assert "49" not in re.search("<title>(.*?)</title>", text, re.DOTALL)[1]
    assert json.loads(page.data)["log"]["outcome"] == HOSTILE[6]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_names_cannot_break_the_page(text):
    assert "b<i>st" not in text
    assert "b&lt;i&gt;st &amp; $x$" in text
    assert "b\\u003ci>st & $x$" in text


def test_controls_in_names_are_written_out():
    # An escape sequence would act on the terminal of whoever looks at the source of the page.
    name = "red\x1b[31m\x7f\x9b"
    text = render(made(LOG, {name: tt.Constant(35.0), "flat": tt.Constant(30.0)}))
    assert not re.findall("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
    assert r"red\x1b[31m\x7f\x9b" in text
    assert name in json.loads(Page(text).data)["result"]["estimates"]


def test_the_page_is_accessible(text, page):
    assert page.of("html")[0]["lang"] == "en"
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    # No level is skipped on the way down.
    assert all(b <= a + 1 for a, b in zip(page.headings, page.headings[1:], strict=False))
    inputs = [*page.of("input"), *page.of("select")]
    assert all("name" in attrs or attrs["type"] == "range" for attrs in inputs)
    drawings = [attrs for attrs in page.of("svg") if attrs.get("role") == "img"]
    assert len(drawings) == len(page.of("figure")) > 10
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    for drawing in drawings:
        assert set(drawing["aria-labelledby"].split()) <= set(ids)
    for used in re.findall(r'(?:href="#|url\(#)([^")]+)', text):
        assert used in ids
    assert all(attrs.get("scope") in {"col", "row"} for attrs in page.of("th"))
    assert len(page.of("caption")) == len(page.of("table"))


def test_figures_follow_the_colors_of_the_page(text):
    drawings = re.findall(r'<svg [^>]*role="img".*?</svg>', text, re.DOTALL)
    for drawing in drawings:
        assert "currentColor" in drawing
        assert not re.findall(r"#[0-9a-f]{6}\b", drawing.replace("#ffffff", ""))
        assert "<style" not in drawing
        assert "font-family" not in drawing


def test_the_page_is_the_same_every_time(text):
    assert render(report()) == text
    assert not re.search(r"20\d\d-\d\d-\d\d", text)


@pytest.mark.long
def test_two_hundred_thousand_rows_make_no_larger_page(monkeypatch):
    monkeypatch.setattr(estimates, "GRID", 5)  # 25 doses on so many rows take 15 s
    monkeypatch.setattr(estimates, "STRENGTHS", (0.0, 1.0))
    monkeypatch.setattr(trust, "CALIBRATION_ROWS", 1000)
    log = DESIGNS["dosing"].draw(200_000, 0)
    rules = {"flat": tt.Constant(35.0), "rule": POLICIES[BEST], "before": StatusQuo()}
    large = render(made(log, rules))
    small = render(made(LOG, rules))
    assert len(large.encode()) < LARGEST_PAGE
    assert len(large.encode()) < 1.25 * len(small.encode())


@pytest.mark.long
def test_many_policies_and_contexts_make_no_endless_page():
    rng = np.random.default_rng(0)
    names = [f"context number {j}" for j in range(80)]
    x = rng.normal(size=(400, 80))
    t = x[:, 0] + rng.normal(size=400)
    q = np.exp(-((t - x[:, 0]) ** 2) / 2) / np.sqrt(2 * np.pi)
    log = tt.LoggedData(x, t, (t - 1) ** 2 + rng.normal(size=400), q, names=names)
    rules = {
        f"policy number {k}": tt.Linear(rng.normal(size=80) / 40, 0.1 * k, features=names)
        for k in range(15)
    }
    text = render(made(log, rules, bandwidth=1.0))
    assert len(text.encode()) < LARGEST_PAGE
    assert len(Page(text).of("figure")) < 40


# ── other logs ───────────────────────────────────────────────────────────────────────────────────
def test_vector_doses_have_figures_each():
    log = DESIGNS["quadratic-2d"].draw(500, 1)
    found = made(log, {"p": tt.Constant([0.4, 0.9])}, bandwidth=0.8)
    text = render(found)
    assert "Logged dose 1 against that of p" in text
    assert "Logged dose 2 against that of p" in text
    assert "in sd of the dose" in text


def test_a_page_without_weights_without_contexts_without_policies():
    bare = tt.LoggedData(np.empty((300, 0)), LOG.treatment[:300], LOG.outcome[:300])
    text = render(made(bare, {"flat": tt.Constant(35.0)}, propensity=tt.LinearGaussian()))
    assert "Balance:" not in text
    assert "By context" not in text
    alone = render(made(LOG, {"as logged": StatusQuo()}))
    assert "Against the status quo" not in alone
    assert "Overlap:" not in alone


def test_numbers_that_are_not_finite_are_null():
    assert plain({"a": [np.float64("nan"), float("inf")], "b": np.array(2.0)}) == {
        "a": [None, None],
        "b": 2.0,
    }


@pytest.mark.parametrize(
    ("value", "width", "shown"),
    [
        (0.0, 0.0, "0"),
        (999.96, 0.0, "1,000"),
        (-12.3456, 0.0, "−12.35"),
        (1234567.0, 0.0, "1,234,567"),
        (2e12, 0.0, "2e+12"),
        # Two digits of the uncertainty, half the width, decide.
        (1.7213, 1.746, "1.72"),
        (3.1004, 0.455, "3.10"),
        (-0.0003, 1.0, "0.00"),
        (1_234_567.0, 46_000.0, "1,235,000"),
        (1_000_003.3351, 0.398, "1,000,003.34"),
        (2.5e-7, 3e-8, "2.50e−07"),
    ],
)
def test_numbers_for_people(value, width, shown):
    assert numbers.number(value, width) == shown


def test_columns_of_numbers_have_the_same_decimals():
    cells = tables.aligned([(4.912, (2.545, 7.279)), (1.721, (0.8482, 2.594))])
    assert [value for value, _ in cells] == ["4.91", "1.72"]


# ── refused policies ─────────────────────────────────────────────────────────────────────────────
def refusing(policies):
    """The report of policies on a log without bounds, where the trust rules decide."""
    found = Evaluation.of(LOG.with_bounds(None), policies, tt.SelfNormalized(), None)
    return gather(found.compare(BANDWIDTH), found, bandwidth=BANDWIDTH)


LOST = {"lost<": tt.Constant(900.0), "edge": tt.Constant(71.0)}
"""No row within h of the one; too few effective rows near the other."""


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("others", [POLICIES, {"now": StatusQuo()}], ids=["among others", "alone"])
def test_a_refused_policy_has_a_row_and_a_reason_but_no_number(others):
    found = refusing({**LOST, **others})
    assert list(found.comparison.refused) == list(LOST)
    text = render(found)
    page = Page(text)
    cells = [cell.strip() for _, cell in page.cells]
    for name, reason in found.comparison.refused.items():
        at = cells.index(name)
        assert cells[at + 1 : at + 3] == ["–", "–"]
        assert cells[at + 3].endswith("refuse")
        assert reason.startswith(cells[at + 4].rstrip("."))
        said = f"“{escape(name)}” is refused, and so is every difference to it: {prose(reason)}"
        assert said in text
        assert f"{name} − " not in cells
    data = json.loads(page.data)
    assert data["result"]["refused"] == found.comparison.refused
    assert not set(LOST) & {*data["result"]["estimates"], *data["intervals"], *data["drawn"]}
    assert "The log cannot answer for “lost&lt;” or “edge”." in text
    if "now" in others:
        assert '<div class="answer refuse">' in text
