"""Every block of the README and the guides runs, and prints what the page shows.

The blocks of a page run in order and share their names. A `text` block right after a
Python or shell block is that block's output; `python scripts/refresh_pages.py` writes it anew.
"""

from __future__ import annotations

import os
import re

import pytest
from pages.blocks import ROOT, blocks, commands, pages, printed

from sweeps import long

PAGES = pages()
# Their blocks take many seconds of CPU: they learn, simulate or start clusters.
HOW_TO = (
    *("announce-a-study", "change-the-dose", "compare-many-policies", "limits-of-the-real-world"),
    *("a-table-as-it-is", "add-parts", "big-data", "choose-an-estimator", "own-outcome-model"),
    *("point-masses", "reproduce-the-paper", "unknown-propensities", "what-if-we-are-wrong"),
)
LONG = [ROOT / f"docs/how-to/{name}.md" for name in HOW_TO]
LONG += [ROOT / f"docs/tutorials/{name}.md" for name in ("evaluate", "learn", "price", "vector")]
LONG += [ROOT / f"docs/explanation/{name}.md" for name in ("overfitting", "theorems")]
LONG += [
    ROOT / f"docs/gallery/{name}.md"
    for name in ("smoking", "lead", "warfarin", "bidding", "pricing")
]
SHORT = [page for page in PAGES if page not in LONG]


def named(page):
    return str(page.relative_to(ROOT))


TABLES = {
    name: f"the page needs a table that is not part of titrant: set {name}"
    for name in ("TITRANT_LEAD", "TITRANT_WARFARIN")
}
"""Variables that a page of the gallery reads the path of a table from."""


def missing_table(text):
    """Why the blocks of a page cannot run here, or None."""
    needed = [why for name, why in TABLES.items() if f'os.environ["{name}"]' in text]
    absent = [why for why in needed if not os.environ.get(why.split()[-1])]
    return absent[0] if absent else None


each_page = pytest.mark.parametrize("page", PAGES, ids=named)
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


# That lines are tested is for tests to show.
@pytest.mark.no_cover
@pytest.mark.parametrize("page", [*SHORT, *long(*LONG)], ids=named)
def test_code_blocks_run_and_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    if why := missing_table(text):
        pytest.skip(why)
    found = list(blocks(text, str(page)))
    for block, output in printed(found):
        if block.output is not None:
            assert output == block.output, block.place


@each_page
def test_every_fence_is_of_a_kind_that_is_run_or_shown(page):
    # A fence without a language, or in one that nothing runs, would rot unseen.
    fences = re.findall(r"^```(\S*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= {"python", "sh", "text", "json", "toml"}
    assert set(fences[1::2]) <= {""}


@each_page
def test_commands_exist(page):
    for block in blocks(page.read_text(encoding="utf-8"), str(page)):
        if block.kind == "sh":
            for words in commands(block.code):
                known = words[0] in {"titrant", "git", "python", "pip"}
                goals = [w for w in words[1:] if "=" not in w and w != "..."]
                assert known or (words[0] == "make" and set(goals) <= TARGETS), (block.place, words)
