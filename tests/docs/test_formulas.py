"""Formulas of the pages are typeset, and keep every symbol on the way."""

from __future__ import annotations

import re
from html import unescape

import markdown
import pytest
from pages import formulas
from pages.blocks import ROOT, pages

CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
STAR = re.compile(r"(?<![\w*\\])[A-Za-z]\*(?!\*)")
COMMAND = re.compile(r"\\(?:operatorname|mathrm|text|begin|end)\b|\\[A-Za-z]+|\\.")
SITE = {"pymdownx.arithmatex": {"generic": True, "smart_dollar": True}}
EXTENSIONS = ["tables", "attr_list", "md_in_html", "pymdownx.superfences", *SITE]
each_page = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


def prose(page):
    return CODE.sub("", page.read_text("utf-8"))


def rendered(text):
    """The page as the site has it."""
    return formulas.typeset(markdown.markdown(text, extensions=EXTENSIONS, extension_configs=SITE))


def said(html):
    return unescape(re.sub(r"<[^>]+>", "", html))


@each_page
def test_every_formula_keeps_its_letters_and_numbers(page):
    for display, inline in MATH.findall(prose(page)):
        latex = display or inline
        drawn = said(formulas.mathml(latex))
        assert "\\" not in drawn, latex
        for symbol in re.findall(r"[A-Za-z0-9]", COMMAND.sub(" ", latex)):
            assert symbol in drawn, (latex, symbol)


@each_page
def test_no_dollar_and_no_star_of_a_formula_is_lost(page):
    text = prose(page)
    html = rendered(text)
    assert "arithmatex" not in html
    assert html.count("<math") == len(MATH.findall(text))
    plain = MATH.sub("", text)
    assert "$" not in plain
    # h* in a sentence: its star must not begin or end what is emphasized.
    assert len(STAR.findall(said(rendered(plain)))) == len(STAR.findall(plain))


@each_page
def test_what_is_emphasized_is_words(page):
    for found in re.findall(r"<em>(.*?)</em>", rendered(prose(page)), re.DOTALL):
        assert not re.search(r"[∂∫√∑^]", said(found)), found


def test_symbols_of_a_known_formula():
    drawn = formulas.typeset(
        rendered(r"The best is $h^* = \left(\frac{C_3}{4 C_1^2 n}\right)^{1/5}$, *not* more.")
    )
    assert said(drawn) == "The best is h*=(C34C12n)1/5, not more."
    assert "<em>not</em>" in drawn
    assert drawn.count("<math") == 1


def test_a_formula_in_a_line_of_its_own_scrolls():
    drawn = rendered("Before.\n\n$$\\hat v = \\sum_i w_i y_i$$\n\nAfter.")
    assert '<div class="formula" tabindex="0"><math' in drawn
    assert 'display="block"' in drawn
