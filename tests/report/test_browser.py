"""The report page in a real browser: quiet, alone, and to be seen on a phone and in the dark."""

from __future__ import annotations

import json

import chromium
import pytest

from report.examples import usual_learned
from titrant.report import render

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
