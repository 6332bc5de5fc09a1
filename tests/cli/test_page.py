"""The page of a run: its title, its labels and units, in the words of the log."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import chromium
import pytest
from causaldata import nhefs

from cli.test_intake import FAST, LEAD

NHEFS = (
    *("nhefs.csv", "--treatment", "smkintensity82_71", "--outcome", "wt82_71"),
    *("--missing-outcome", "drop", "--context", "sex,age,education,smokeintensity,wt71,income"),
)
SHOWN = (
    *("--title", "Smoking less & weight gain", "--unit", "kg"),
    *("--label", "smkintensity82_71=change in cigarettes a day", "--label", "wt82_71=weight gain"),
    *("--label", "income=income class", "--unit", "wt71=kg"),
)


def page_of(path: str) -> tuple[str, dict]:
    """The text of a page, and its numbers."""
    page = Path(path).read_text(encoding="utf-8")
    data = json.loads(page.split('id="titrant-result">')[1].split("</script>")[0])
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", body))), data


def compared(call, page: str) -> tuple[str, dict]:
    """What the page of a comparison of the smokers says, by a run that is saved."""
    nhefs.load_pandas().data.to_csv("nhefs.csv", index=False)
    asked = ("compare", *NHEFS, "--policy", "quit=constant:-20", "--policy", "less=shift:-5")
    said = call(*asked, *FAST, *SHOWN, "--html", page, "--save-config", "run.toml")
    assert said.code == 0, said.err
    return page_of(page)


@pytest.mark.long
def test_the_page_of_the_smokers_speaks_their_words(call):
    text, data = compared(call, "page.html")
    assert "Smoking less & weight gain" in text
    assert "change in cigarettes a day → weight gain (kg), lower is better" in text
    assert "1,629 rows → 1,566 used: 63 left out" in text
    assert "\xa0kg" in data["decision"]["answer"]
    assert "smkintensity82_71" not in re.sub(r"The run as a file.*", "", text)
    assert len(Path("page.html").read_bytes()) < 500_000


@pytest.mark.long
def test_the_file_of_a_run_repeats_its_page(call):
    _, data = compared(call, "page.html")
    again = call("compare", "--config", "run.toml", "nhefs.csv", "--html", "again.html")
    assert again.code == 0, again.err
    assert page_of("again.html")[1]["labels"] == data["labels"]
    assert page_of("again.html")[1]["title"] == "Smoking less & weight gain"


@pytest.mark.parametrize(
    ("option", "text"),
    [("--label", "incme=Income"), ("--label", "income"), ("--unit", "incme=dollars")],
)
def test_a_label_of_no_column_is_refused(call, option, text):
    nhefs.load_pandas().data.head(200).to_csv("nhefs.csv", index=False)
    asked = ("evaluate", *NHEFS, "--policy", "constant:0", *FAST, "--html", "page.html")
    said = call(*asked, option, text)
    assert said.code == 2
    assert f"`{text}` must be COLUMN=TEXT" in said.err
    if text.startswith("incme"):
        assert "did you mean `income`?" in said.err


PHONE = 390
TOO_WIDE = """
(() => {
  [...document.querySelectorAll("details")].forEach(d => { d.open = true; });
  const tables = [...document.querySelectorAll(".scroll")]
    .filter(box => box.scrollWidth > box.clientWidth).map(box => box.getAttribute("aria-label"));
  const labels = [...document.querySelectorAll("figure svg text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < -1 || box.right > innerWidth + 1);
  }).map(text => text.textContent);
  const bare = [...document.querySelectorAll("tbody td")]
    .filter(cell => getComputedStyle(cell).display === "block" && !cell.dataset.h).length;
  return [document.documentElement.scrollWidth, tables, labels, bare];
})()
"""


def seen_on_a_phone(*pages: str) -> None:
    """Pages fit a phone: no table or label is wider, and every number has its heading."""
    program = chromium.find()
    if program is None:
        pytest.skip(f"how pages look on a phone needs one of {', '.join(chromium.NAMES)}")
    with chromium.opened(program) as tab:
        tab.resize(PHONE, 900)
        for page in pages:
            tab.open(Path(page).resolve().as_uri())
            assert tab.evaluate(TOO_WIDE) == [PHONE, [], [], 0], page


def run_of(call, log: tuple[str, ...], constant: str, shift: str, shown: tuple[str, ...]) -> None:
    """Everything a user does with a log, one command after the other."""
    for asked in (
        ("check", *log, "--policy", f"constant:{constant}", "--allow-untrusted"),
        ("evaluate", *log, "--policy", f"constant:{constant}", "--allow-untrusted"),
        ("evaluate", *log, "--policy", f"shift:{shift}", "--allow-untrusted"),
        (
            *(
                "compare",
                *log,
                "--policy",
                f"a=constant:{constant}",
                "--policy",
                f"b=shift:{shift}",
            ),
            *("--allow-untrusted", *shown, "--html", "compared.html"),
        ),
        ("learn", *log, "--allow-untrusted", *shown, "--html", "learned.html", "-o", "rule.json"),
        ("recommend", "rule.json", log[0], "-o", "doses.csv"),
    ):
        said = call(*asked)
        assert said.code == 0, (asked, said.err)
    for name in ("compared.html", "learned.html"):
        assert len(Path(name).read_bytes()) < 500_000


def decided(page: str, verdict: str, answer: str, reason: str) -> None:
    """A page comes to this verdict, and says so in these words."""
    text, data = page_of(page)
    found = data["decision"]
    assert found["verdict"] == verdict
    for beginning, told in ((answer, found["answer"]), (reason, found["reason"])):
        assert told.startswith(beginning), told
        assert " ".join(told.split()) in text  # spaces that keep lines whole


@pytest.mark.long
def test_a_day_with_the_smokers(call):
    nhefs.load_pandas().data.to_csv("nhefs.csv", index=False)
    run_of(call, NHEFS, "-5", "-2", SHOWN)
    care = "Read it with care: the rows left out are not like the others; "
    few = f"{care}few rows speak about “learned”"
    decided("compared.html", "warn", "No policy is clearly better than the status quo.", care)
    worse = "Keep the status quo: the learned rule is not clearly better"
    decided("learned.html", "warn", worse, few)
    seen_on_a_phone("compared.html", "learned.html")


@pytest.mark.long
@pytest.mark.skipif(not LEAD, reason="the survey's table is not part of titrant: set TITRANT_LEAD")
def test_a_day_with_the_children(call):
    contexts = "Age,Male,Race,PIR,Enough_Food,Smoke_in_Home,Smoke_Pregnant,NICU"
    log = (LEAD, "--treatment", "logBLL", "--outcome", "Math", "--context", contexts)
    shown = ("--maximize", "--label", "logBLL=log blood lead", "--unit", "points")
    run_of(call, log, "0.5", "-0.3", shown)
    care = "Read it with care: “b” gives treatments that such rows never got; "
    tie = "No policy is clearly better than the status quo. The best of 2 policies, “a”,"
    decided("compared.html", "warn", tie, care)
    lost = "Not to be trusted: the weights of “learned” do not average to 1"
    decided("learned.html", "refuse", "The log cannot answer for the learned rule.", lost)
    seen_on_a_phone("compared.html", "learned.html")
