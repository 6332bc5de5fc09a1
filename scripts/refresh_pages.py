"""Run the code blocks of pages and write what they print into the pages.

Without arguments every page: ``python scripts/refresh_pages.py docs/tutorials/*.md``.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path

from pages.blocks import blocks, pages, printed


def refreshed(text: str, page: Path) -> str:
    """Return the page with the outputs that its blocks produce."""
    parts, end = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block, output in printed(list(blocks(text, str(page)))):
            if block.output is not None:
                start, stop = block.span
                parts += [text[end:start], output]
                end = stop
    return "".join([*parts, text[end:]])


def main(given: list[str]) -> None:
    """Refresh the pages named, or all."""
    for page in [Path(name).resolve() for name in given] or pages():
        begun = time.process_time()
        text = page.read_text(encoding="utf-8")
        new = refreshed(text, page)
        page.write_text(new, encoding="utf-8")
        state = "same" if new == text else "CHANGED"
        print(f"{time.process_time() - begun:6.1f} s of CPU  {state:<8}{page}")


if __name__ == "__main__":
    main(sys.argv[1:])
