"""What pages name exists: files, rooms, links; and the tools of the pages do what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pages import api, commands, links, notebooks
from pages.blocks import ROOT, blocks, pages, printed

import titrant
from titrant.cli.app import COMMANDS

AT_ROOT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
# Results of benchmarks are left out: a page may say where the next run will write them.
NAMED = re.compile(
    r"`((?!benchmarks/results/)"
    r"(?:src|tests|scripts|docs|benchmarks|requirements)/[\w./-]+\.\w+)`"
)
LINK = re.compile(r"(?<=\]\()(?!https?:)([^)#\s]+)")
SOURCE = re.compile(r'(?<=src=")(?!https?:)([^"]+)')
EXAMPLES = {"NAME", "smallest_steady", "stump", "tricube", "truncated"}  # yet to be added


@pytest.mark.parametrize("page", AT_ROOT, ids=lambda page: page.name)
def test_links_of_pages_outside_the_site_lead_somewhere(page):
    text = page.read_text("utf-8")
    for target in [*LINK.findall(text), *SOURCE.findall(text)]:
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page):
    for name in NAMED.findall(page.read_text("utf-8")):
        assert (ROOT / name).is_file() or Path(name).stem in EXAMPLES, name


def test_the_readme_is_one_page_with_one_answer_from_real_data():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 66
    assert len(text.split()) <= 650
    assert "interval you can rely on" not in text  # it comes with a verdict
    (block,) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert "from causaldata import nhefs" in block[0]
    assert re.search(r"95% CI .* (ok|warn)$", block[1].strip())


def test_a_version_begins_with_what_is_new_in_short_and_what_changes():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest = next(part for part in text.split("\n## ")[1:] if re.match(r"\[\d", part))
    parts = [part.partition("\n\n") for part in newest.split("\n### ")[1:]]
    assert [head for head, _, _ in parts[:2]] == ["In short", "What changes for you"]
    for _, _, bullets in parts[:2]:
        assert bullets.count("\n- ") < 9
        assert len(bullets.split()) < 220
    # A blank line within a list makes two of it.
    assert [head for head, _, bullets in parts if "\n\n- " in bullets] == []


def test_the_index_leads_to_every_page():
    docs = ROOT / "docs"
    linked = set(LINK.findall((docs / "index.md").read_text("utf-8")))
    by_hand = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    # Pages of single measurements are reached from what they measure.
    names = ("structure", "moves", "hidden", "questions", "learning", "performance")
    measured = {f"explanation/{name}.md" for name in (*names, "planning-1e10-rows")}
    assert by_hand - measured <= linked


def test_the_map_of_the_house_has_every_room():
    # A room that nobody finds on the map will be built twice.
    drawn = (ROOT / "docs/explanation/architecture.md").read_text("utf-8")
    tree = drawn.partition("src/titrant/\n")[2].partition("```")[0]
    for place in (ROOT / "src/titrant").iterdir():
        if place.name == "__pycache__" or place.suffix not in {"", ".py"}:
            continue
        name = f"{place.name}/" if place.is_dir() else place.name
        assert re.search(rf"(^  |, ){re.escape(name)}", tree, re.MULTILINE), name


def test_the_reference_has_every_public_name_and_command():
    text = api.page()
    assert all(f"{{ #{name} }}" in text for name in titrant.__all__)
    deeper = ("Expansion", "Generalization", "CCCP", "LBFGS", "Synthetic", "load_warfarin")
    assert all(f"{{ #{name} }}" in text for name in deeper)
    told = commands.page()
    assert all(f"## titrant {name} " in told for name in COMMANDS)
    assert "`treatment`" in commands.config_page()


def test_the_reference_begins_with_an_example_that_works(capsys):
    exec(api.EXAMPLE, {})  # noqa: S102
    assert "Verdict.OK" in capsys.readouterr().out


def test_blocks_are_found_run_and_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fence = "```"
    page = "\n".join(
        [
            f"{fence}python\nx = 2\nprint(x)\n{fence}\n\n{fence}text\n2\n{fence}",
            f"<!-- not run: example -->\n{fence}python\n1 / 0\n{fence}",
            f"{fence}python\nprint(x + 1)\n{fence}\n\n{fence}text\nanother\n{fence}\n",
        ]
    )
    found = list(blocks(page, "page.md"))
    assert [b.why_not for b in found] == [None, "example", None]
    assert [(b.output, out) for b, out in printed(found)] == [("2\n", "2\n"), ("another\n", "3\n")]
    assert found[2].place == "page.md:14"


def test_pages_of_the_gallery_are_notebooks_too():
    for page in notebooks.GALLERY.glob("*.md"):
        cells = json.loads(notebooks.notebook(page))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        assert code == [
            b.code.strip() for b in blocks(page.read_text("utf-8"), "") if b.kind == "python"
        ]
        assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
        assert "".join(cells[0]["source"]).startswith("# ")
        assert len({cell["id"] for cell in cells}) == len(cells)


def test_a_command_that_fails_is_noticed():
    page = "```sh\ntitrant evaluate no-such-file.csv\n```\n"
    with pytest.raises(AssertionError, match="exit code 2"):
        list(printed(list(blocks(page, "page.md"))))


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">ok</a><a href="b.html#gone">no</a><a href="c.html">no</a>'
        '<a href="https://example.org">not followed</a>'
        '<script src="https://cdn.example.org/x.js"></script>',
        "utf-8",
    )
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>', "utf-8")
    assert links.broken(tmp_path) == [
        "a.html loads https://cdn.example.org/x.js from elsewhere.",
        "a.html links to b.html#gone: there is no such heading.",
        "a.html links to c.html: there is no such file.",
    ]


# The paper's studies, behind the pages about them.
DEEP = ("titrant.paper.",)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_import_from_rooms_alone(page):
    # What a reader copies stays true when a room is furnished anew.
    for name in re.findall(
        r"^(?:from|import) (titrant\.\w+\.[\w.]+)", page.read_text("utf-8"), re.MULTILINE
    ):
        assert name.startswith(DEEP), name


KINDS = ("Error", "Misprint", "Ambiguous", "Inferred from the authors' code")


def test_every_erratum_is_of_a_kind_and_executed():
    text = (ROOT / "docs" / "explanation" / "errata.md").read_text("utf-8")
    graded = text.partition("## Readings")[0]
    entries = re.split(r"^### ", graded, flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    for entry in entries:
        title, _, body = entry.partition("\n\n")
        kind = re.match(r"\*([^*]+?)\.?\*", body)
        assert kind, title
        assert kind[1] in KINDS, title
        assert "```python" in body, title


# "(Welch 1951)", "Stephens (1970)", "Golub, Heath & Wahba 1979)": the last author and the year.
CITED = re.compile(r"\b([A-Z][\w-]+) \(?((?:19|20)\d\d)(?=[),])")


def test_literature_that_the_code_rests_on_is_in_the_bibliography():
    told = (ROOT / "docs/explanation/bibliography.md").read_text("utf-8").split("\n- ")
    code = [path.read_text("utf-8") for path in (ROOT / "src/titrant").rglob("*.py")]
    cited = {found for text in code for found in CITED.findall(text)}
    assert len(cited) >= 10
    for author, year in cited:
        assert any(author in entry and f"({year})" in entry for entry in told), (author, year)
