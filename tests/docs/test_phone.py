"""Pages of the site on a phone: no wider than its screen."""

from __future__ import annotations

import shutil

import chromium
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from pages import formulas
from pages.blocks import ROOT

pytestmark = pytest.mark.long

PHONE = 390
PAGES = sorted(path.stem for path in (ROOT / "docs" / "explanation").glob("*.md"))
"""They have the widest tables and formulas."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """These pages alone, by the theme, extensions and styles of the site."""
    source, built = (tmp_path_factory.mktemp(name) for name in ("docs", "site"))
    shutil.copytree(ROOT / "docs" / "stylesheets", source / "stylesheets")
    shutil.copytree(ROOT / "results", source / "results", ignore=shutil.ignore_patterns("*.json"))
    (source / "explanation").mkdir()
    for name in PAGES:
        text = (ROOT / "docs" / "explanation" / f"{name}.md").read_text("utf-8")
        place = source / "explanation" / f"{name}.md"
        place.write_text(text.replace("../../results/", "../results/"), encoding="utf-8")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        docs_dir=str(source),
        site_dir=str(built),
        strict=False,
        nav=None,
        hooks=[],
        plugins=[],
    )
    build(config)
    for page in (built / "explanation").glob("*.html"):
        page.write_text(formulas.typeset(page.read_text("utf-8")), encoding="utf-8")
    return built


@pytest.fixture(scope="module")
def tab():
    program = chromium.find()
    if program is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(chromium.NAMES)} is installed")
    with chromium.opened(program) as tab:
        yield tab


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_no_wider_than_a_phone(name, site, tab):
    tab.resize(PHONE, 800)
    tab.open((site / "explanation" / f"{name}.html").as_uri())
    assert tab.evaluate("document.querySelectorAll('h1').length") == 1
    # What is wider scrolls in a frame of its own.
    assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE
