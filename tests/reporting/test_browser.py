"""The report page in a real browser: quiet, alone, tried by mouse and keys, seen on a phone."""

from __future__ import annotations

import json
from dataclasses import replace

import chromium
import numpy as np
import pytest

from reporting.examples import CURVES, LOG, made, usual, usual_learned
from reporting.test_page import hostile
from reporting.test_whom import PEOPLE, RULES, row_of
from titrant.policies import InLimits, Linear
from titrant.propensity import LinearGaussian
from titrant.reporting import render
from titrant.reporting.whom import person

pytestmark = pytest.mark.long

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
# Of the Web Content Accessibility Guidelines 2.2, level AA.
TEXT_CONTRAST, GRAPHICS_CONTRAST = 4.5, 3.0
# Text of a figure on a phone, in pixels: that of a footnote.
SMALLEST_TEXT = 10.0

FIGURES = """
[...document.querySelectorAll("figure svg")].map(svg => {
  const r = svg.getBoundingClientRect(), drawn = svg.getBBox();
  const texts = [...svg.querySelectorAll("text")].map(t =>
    parseFloat(getComputedStyle(t).fontSize) * r.width / svg.viewBox.baseVal.width);
  return {
    title: svg.querySelector("title").textContent, left: r.left, right: r.right,
    width: r.width, height: r.height, drawn: drawn.width * drawn.height,
    visible: svg.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}),
    smallest: Math.min(...texts),
  };
})
"""
COLORS = """
(() => {
  const probe = document.createElement("span");
  document.body.append(probe);
  const rgb = name => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
  };
  const names = ["paper", "soft", "ink", "muted", "accent", "ok", "warn", "refuse", "c1", "c2",
                 "c3", "c4"];
  const found = Object.fromEntries(names.map(name => [name, rgb(name)]));
  probe.remove();
  return found;
})()
"""


@pytest.fixture(scope="module")
def shown():
    return usual_learned()


@pytest.fixture(scope="module")
def url(shown, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(shown), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def tab():
    program = chromium.find()
    if program is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(chromium.NAMES)} is installed")
    with chromium.opened(program) as tab:
        yield tab


@pytest.fixture
def page(tab, url):
    """Return a function that opens the page at a width, in light or in dark."""

    def opened(width: int = 1280, scheme: str = "light", media: str = "") -> chromium.Tab:
        tab.resize(width, 900)
        tab.prefer(scheme, media)
        tab.open(url)
        return tab

    return opened


@pytest.mark.parametrize("width", WIDTHS)
def test_the_console_is_silent_and_nothing_is_requested(page, url, width):
    tab = page(width)
    kinds = [event.get("method") for event in tab.events]
    assert not {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"} & set(
        kinds
    )
    requests = [
        event["params"]["request"]["url"]
        for event in tab.events
        if event.get("method") == "Network.requestWillBeSent"
    ]
    assert requests == [url]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_figure_is_seen_as_a_whole(page, width, scheme):
    tab = page(width, scheme)
    figures = tab.evaluate(FIGURES)
    assert len(figures) > 12
    for figure in figures:
        assert figure["visible"], figure
        assert figure["left"] >= 0, figure
        assert figure["right"] <= width, figure
        assert min(figure["width"], 2 * figure["height"]) > 150, figure
        assert figure["drawn"] > 0, figure
        assert figure["smallest"] >= SMALLEST_TEXT, figure


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_itself_never_scrolls_sideways(page, width):
    assert page(width).evaluate("document.documentElement.scrollWidth") == width


def test_on_a_phone_no_table_is_wider_than_the_screen(page):
    script = """
    [...document.querySelectorAll("details")].forEach(d => { d.open = true; });
    [...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth)
      .map(box => box.getAttribute("aria-label"))
    """
    assert page(390).evaluate(script) == []


def test_on_a_phone_every_number_has_its_heading_and_no_word_is_broken(tab, tmp_path):
    # Of two policies there are tables of differences, side by side on a desk.
    page = opened(tab, tmp_path, usual())
    bare = """
    [...document.querySelectorAll("details")].forEach(d => { d.open = true; });
    [...document.querySelectorAll("tbody td")]
      .filter(cell => getComputedStyle(cell).display === "block" && !cell.dataset.h).length
    """
    assert page.evaluate(bare) == 0
    broken = """
    [...document.querySelectorAll("table:not(.wide) thead th")].filter(heading => {
      const text = document.createRange();
      const height = parseFloat(getComputedStyle(heading).lineHeight);
      text.selectNodeContents(heading);
      const lines = Math.round(text.getBoundingClientRect().height / height);
      return lines > heading.textContent.split(/\\s+/).length;
    }).map(heading => heading.textContent)
    """
    assert page.evaluate(broken) == []
    wide = """
    [...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth)
      .map(box => box.getAttribute("aria-label"))
    """
    assert page.evaluate(wide) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_curves_and_their_points_fit(tab, tmp_path, width):
    page = opened(tab, tmp_path, made(LOG, {"curved": CURVES}), width)
    script = """
    [...document.querySelectorAll("details")].forEach(d => { d.open = true; });
    [...document.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth)
      .map(box => box.getAttribute("aria-label"))
    """
    assert page.evaluate(script) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    seen = [one for one in page.evaluate(FIGURES) if "adds to" in one["title"]]
    assert len(seen) == 2
    for figure in seen:
        assert figure["visible"]
        assert 0 <= figure["left"] < figure["right"] <= width
        assert figure["smallest"] >= SMALLEST_TEXT


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_too_wide_for_the_screen_scrolls_by_itself(page, width):
    script = """
    [...document.querySelectorAll("table")].filter(t => t.checkVisibility()).every(t => {
      const box = t.closest(".scroll").getBoundingClientRect();
      return box.left >= 0 && box.right <= innerWidth;
    })
    """
    assert page(width).evaluate(script)


def test_the_json_in_the_page_is_the_report(page, shown):
    data = page().evaluate('JSON.parse(document.getElementById("titrant-result").textContent)')
    del data["decision"]
    assert data == json.loads(json.dumps(shown.to_dict()))


def luminance(rgb: list[float]) -> float:
    parts = [c / 255 for c in rgb]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: list[float], b: list[float]) -> float:
    bright, dim = sorted([luminance(a), luminance(b)], reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colors_stand_out(page, scheme):
    colors = page(scheme=scheme).evaluate(COLORS)
    assert (luminance(colors["paper"]) < luminance(colors["ink"])) is (scheme == "dark")
    for ground in ("paper", "soft"):
        for name in ("ink", "muted", "accent", "ok", "warn", "refuse"):
            assert contrast(colors[name], colors[ground]) >= TEXT_CONTRAST, (name, ground)
    for name in ("c1", "c2", "c3", "c4"):  # titles of figures are set in them, too
        assert contrast(colors[name], colors["paper"]) >= TEXT_CONTRAST, name


def test_figures_turn_dark_with_the_page(page):
    script = """
    (() => {
      const svg = document.querySelector("figure svg");
      const series = [...svg.querySelectorAll("path")].find(p => p.style.stroke.includes("--c"));
      return [getComputedStyle(svg.querySelector("text")).fill, getComputedStyle(series).stroke];
    })()
    """
    light, dark = (page(scheme=scheme).evaluate(script) for scheme in SCHEMES)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    assert "none" not in {*light, *dark}


def test_on_paper_it_is_light_and_nothing_is_folded_away(page):
    tab = page(scheme="dark", media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("""
        [...document.querySelectorAll("details table, details ul, details pre")]
          .every(e => e.getBoundingClientRect().height > 0)
    """)
    assert tab.pdf().startswith(b"%PDF")


def test_those_who_do_not_see_are_told_of_every_figure(page):
    nodes = page().call("Accessibility.getFullAXTree")["nodes"]
    images = [
        node
        for node in nodes
        if node.get("role", {}).get("value") == "image" and not node["ignored"]
    ]
    assert len(images) == page().evaluate('document.querySelectorAll("figure svg").length')
    assert all(node["name"]["value"] for node in images)


def test_the_table_of_contents_leads_to_every_section(page):
    script = """
    [...document.querySelectorAll("nav a")].map(a => a.getAttribute("href")).join() ===
    [...document.querySelectorAll("section")].map(s => "#" + s.id).join()
    """
    assert page().evaluate(script)


# ── to be tried ──────────────────────────────────────────────────────────────────────────────────
def press(tab, key: str, code: int) -> None:
    for kind in ("keyDown", "keyUp"):
        text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
        tab.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=key,
            windowsVirtualKeyCode=code,
            **text,
        )


def opened(tab, tmp_path, report, width=390):
    path = tmp_path / "page.html"
    path.write_text(render(report), encoding="utf-8")
    tab.resize(width, 900)
    tab.prefer("light")
    tab.open(path.as_uri())
    return tab


@pytest.mark.parametrize("name", RULES)
def test_the_form_gives_the_doses_of_the_rule(tab, tmp_path, shown, name):
    policy = RULES[name]
    found = replace(shown, person=person(policy, PEOPLE, 1.0))
    page = opened(tab, tmp_path, found)
    wanted = policy(PEOPLE.context)
    for i in range(0, len(PEOPLE), 7):
        row = [row_of(i)[field["column"]] for field in found.person["fields"]]
        given = page.evaluate(f"""
        (() => {{
          const form = document.querySelector("form.person"), row = {json.dumps(row)};
          row.forEach((value, k) => {{ form.elements[`field-${{k}}`].value = value ?? ""; }});
          form.dispatchEvent(new Event("input"));
          return [...form.querySelectorAll("[data-dose]")].map(p => Number(p.dataset.exact));
        }})()
        """)
        np.testing.assert_allclose(given, np.atleast_1d(wanted[i]), rtol=1e-9, atol=1e-9)


def test_the_form_says_whether_such_people_were_in_the_log(tab, tmp_path, shown):
    page = opened(tab, tmp_path, shown)
    script = """
    (() => {
      const form = document.querySelector("form.person");
      form.elements["field-0"].value = WEIGHT;
      form.dispatchEvent(new Event("input"));
      const seen = what => !form.querySelector(what).hidden;
      return [seen("[data-outside]"), seen("[data-nobody]"), seen("[data-lacking]"),
              form.querySelector("[data-alike]").textContent];
    })()
    """
    outside, nobody, lacking, alike = page.evaluate(script.replace("WEIGHT", "80"))
    cell = np.ones(len(LOG), dtype=bool)
    near, at = shown.person["near"], {"weight": 80.0, "age": None, "carrier": None}
    for one in near["contexts"]:
        x = LOG.context[:, LOG.names.index(one["context"])]
        start = {f["column"]: f["start"] for f in shown.person["fields"]}[one["context"]]
        value = at[one["context"]] or float(start)
        cell &= np.searchsorted(one["cuts"], x) == np.searchsorted(one["cuts"], value)
    assert (outside, lacking, int(alike)) == (False, False, int(cell.sum()))
    assert nobody in (True, False)
    assert page.evaluate(script.replace("WEIGHT", "900")) == [True, True, False, "0"]
    assert page.evaluate(script.replace("WEIGHT", '""'))[2] is True


def test_the_form_says_where_limits_leave_no_dose(tab, tmp_path, shown):
    inside = Linear([0.5], features=["weight"])
    limited = InLimits(inside, at_least=30.0, at_most="weight")
    page = opened(tab, tmp_path, replace(shown, person=person(limited, LOG, 1.0)))
    script = """
    (() => {
      const form = document.querySelector("form.person");
      form.elements["field-0"].value = WEIGHT;
      form.dispatchEvent(new Event("input"));
      const seen = what => !form.querySelector(what).hidden;
      return [seen("[data-impossible]"), seen("[data-filled]"), seen("[data-lacking]")];
    })()
    """
    assert page.evaluate(script.replace("WEIGHT", "29")) == [True, False, False]
    assert page.evaluate(script.replace("WEIGHT", "30")) == [False, True, False]
    assert page.evaluate(script.replace("WEIGHT", '""')) == [False, False, True]


def test_a_slider_goes_along_what_was_computed_by_keys_alone(tab, tmp_path):
    found = made(LOG, {"flat": lambda x: 30.0 + x[:, 2]}, propensity=LinearGaussian())
    page = opened(tab, tmp_path, found)
    names = page.evaluate("[...document.querySelectorAll('.slide')].map(s => s.dataset.table)")
    assert names == ["curve-0-points", "shifts-points", "strengths-points"]
    for name in names:
        told = f"""
        (() => {{
          const slide = document.querySelector('[data-table="{name}"]');
          const rows = [...document.querySelectorAll("#{name} tbody tr")];
          const range = slide.querySelector("input"), k = Number(range.value);
          const cells = [...rows[k].cells].map(cell => cell.textContent);
          const said = [...slide.querySelectorAll("[data-cell]")].map(cell => cell.textContent);
          const dot = document.getElementById(slide.dataset.figure).querySelector("circle.mark");
          return [k, rows.length, said.join() === cells.slice(0, 3).join(), dot.getAttribute("cx")];
        }})()
        """
        page.evaluate(f"document.querySelector('[data-table=\"{name}\"] input').focus()")
        before = page.evaluate(told)
        press(page, "ArrowLeft", 37)
        after = page.evaluate(told)
        assert after[0] == before[0] - 1
        assert after[2] is before[2] is True
        assert float(after[3]) < float(before[3])
        press(page, "End", 35)
        press(page, "ArrowRight", 39)  # not beyond the last point
        last = page.evaluate(told)
        assert last[0] == last[1] - 1


def test_a_table_sorts_by_keys_alone(page):
    tab = page()
    column = """
    [...document.querySelectorAll("#curve-0-points tbody tr")].map(r => r.cells[1].textContent)
    """
    tab.evaluate("document.querySelector('#curve-0-points').closest('details').open = true")
    tab.evaluate("document.querySelectorAll('#curve-0-points thead button')[1].focus()")
    for turn in (1, -1):
        press(tab, "Enter", 13)
        values = [float(text.replace(",", "")) for text in tab.evaluate(column)]
        assert values == sorted(values)[::turn]
    heading = "document.querySelectorAll('#curve-0-points thead th')[1].getAttribute('aria-sort')"
    assert tab.evaluate(heading) == "descending"


def test_without_a_script_everything_is_read_and_nothing_pretends_to_work(tab, url):
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.resize(390, 900)
        tab.open(url)
        nodes = tab.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        for what, seen in ((".slide", False), ("form.person", False), ("#answer-figure", True)):
            node = tab.call("DOM.querySelector", nodeId=nodes, selector=what)["nodeId"]
            try:
                tall = tab.call("DOM.getBoxModel", nodeId=node)["model"]["height"] > 0
            except RuntimeError:  # it has no box
                tall = False
            assert tall is seen, what
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_do_nothing_and_fit(tab, tmp_path, width):
    page = opened(tab, tmp_path, hostile(), width)
    kinds = {event.get("method") for event in page.events}
    assert not kinds & {
        "Page.javascriptDialogOpening",
        "Runtime.consoleAPICalled",
        "Runtime.exceptionThrown",
        "Log.entryAdded",
    }
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("document.scripts.length") == 2


@pytest.mark.parametrize("width", WIDTHS)
def test_no_label_of_a_figure_leaves_the_screen(page, width):
    script = """
    [...document.querySelectorAll("figure svg text")].map(t => t.getBoundingClientRect())
      .filter(box => box.width && (box.left < -1 || box.right > innerWidth + 1)).length
    """
    assert page(width).evaluate(script) == 0
