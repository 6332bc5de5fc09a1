"""What mkdocs is told while it builds: pages and figures that are made and not written.

The reference comes from the code, the figures from their scripts, and the files at the root of the
project appear as pages.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

from pages import api, commands, figures, formulas, notebooks, schemas
from pages.blocks import ROOT

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT_PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Files at the root of the project, and the pages they become."""
RESULTS = ROOT / "results"
"""The figures of the studies, which their page shows from where they lie."""
AT_ROOT = {**ROOT_PAGES, "README.md": "index.md"}
LINK = re.compile(r"(?<=\]\()(?P<target>[\w./-]+\.(?:md|png|svg))(?=[#)])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made to what is written."""
    made: dict[str, str | bytes] = {
        "reference/api.md": api.page(),
        "reference/cli.md": commands.page(),
        "reference/config.md": commands.config_page(),
        "reference/schemas.md": schemas.page(),
        **{f"reference/schemas/{name}": text for name, text in schemas.files().items()},
        **{f"images/{name}": drawn for name, drawn in figures.drawn().items()},
        **{f"gallery/{name}": text for name, text in notebooks.written().items()},
        **{to: (ROOT / name).read_text("utf-8") for name, to in ROOT_PAGES.items()},
        **{f"results/{path.name}": path.read_bytes() for path in RESULTS.glob("*.svg")},
    }
    for uri, content in made.items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links between docs/ and the root of the project to the pages of the site."""
    del config, files
    uri = page.file.src_uri
    origin = {v: k for k, v in ROOT_PAGES.items()}.get(uri, f"docs/{uri}")

    def moved(found: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(origin), found["target"]))  # noqa: PTH118, PTH120
        place = AT_ROOT.get(target, target.removeprefix("docs/"))
        return os.path.relpath(place, os.path.dirname(uri) or ".")  # noqa: PTH120

    whole = LINK.sub(moved, markdown)
    if uri.startswith("gallery/"):
        name = uri.removeprefix("gallery/").replace(".md", ".ipynb")
        whole += f"\n\n[This page as a notebook]({name})\n"
    return whole


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Typeset the formulas."""
    del page, config, files
    return formulas.typeset(html)


COMING = {
    "explanation/learning.md",
    "explanation/planning-1e10-rows.md",
    "gallery/smoking.md",
}
"""Pages written from measurements that may not have been made yet."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation the pages that are still to come."""
    config.nav = _present(config.nav)
    return config


def _present(nav: Any) -> Any:  # noqa: ANN401  (lists and dicts of YAML)
    if isinstance(nav, list):
        return [kept for item in nav if (kept := _present(item))]
    if isinstance(nav, dict):
        kept = {title: _present(below) for title, below in nav.items()}
        return {title: below for title, below in kept.items() if below}
    return None if nav in COMING and not (ROOT / "docs" / nav).is_file() else nav
