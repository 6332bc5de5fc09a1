"""The pages of the gallery as notebooks: text and code of the page, without its outputs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pages.blocks import BLOCK, ROOT

if TYPE_CHECKING:
    from pathlib import Path

GALLERY = ROOT / "docs" / "gallery"


def written() -> dict[str, str]:
    """Return the notebooks by their name."""
    return {f"{page.stem}.ipynb": notebook(page) for page in sorted(GALLERY.glob("*.md"))}


def notebook(page: Path) -> str:
    """Return a page as a notebook, in JSON of its format 4."""
    text, cells, end = page.read_text("utf-8"), list[dict[str, Any]](), 0
    for found in BLOCK.finditer(text):
        cells.append(_cell("markdown", _told(text[end : found.start()])))
        kind = "code" if found["kind"] == "python" else "markdown"
        code = found["code"] if kind == "code" else f"```sh\n{found['code']}```"
        cells.append(_cell(kind, code))
        end = found.end()
    cells.append(_cell("markdown", _told(text[end:])))
    whole = {
        "cells": [cell | {"id": f"cell-{k}"} for k, cell in enumerate(cells) if cell["source"]],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def _told(text: str) -> str:
    """Return text without links that lead nowhere from a notebook."""
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]+\)", r"\1", text)


def _cell(kind: str, text: str) -> dict[str, Any]:
    own: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    source = text.strip().splitlines(keepends=True)
    return {"cell_type": kind, "metadata": {}, "source": source, **own}
