"""Every link of the built site leads somewhere, and the site loads nothing from elsewhere.

``python -m pages.links site`` says what is broken and leaves with exit code 1 if anything is.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Tags by which a page loads something, and the attribute that says what."""
HINTS = {"canonical", "next", "prev", "edit"}
"""Kinds of <link> that load nothing."""


@dataclass
class Found:
    """The links, loads and anchors of one page."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found = Found()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.found.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") not in HINTS:
            self.found.loads.append(given[LOADED[tag]])


def read(page: Path) -> Found:
    """Return what a page links to, loads and offers as anchors."""
    reader = _Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader.found


def broken(site: Path) -> list[str]:
    """Return a sentence for each link that leads nowhere and each thing loaded from elsewhere."""
    pages = {page.resolve(): read(page) for page in sorted(site.rglob("*.html"))}
    faults = []
    for page, found in pages.items():
        here = page.relative_to(site.resolve())
        if here.name == "404.html":  # its links are absolute: it is served from anywhere
            continue
        remote = [target for target in found.loads if urlsplit(target).netloc]
        faults += [f"{here} loads {target} from elsewhere." for target in remote]
        faults += [
            f"{here} links to {target}: {fault}."
            for target in [*found.links, *found.loads]
            if (fault := _fault(target, page, pages))
        ]
    return faults


def _fault(target: str, page: Path, pages: dict[Path, Found]) -> str | None:
    """Return what is wrong with a link; links to other hosts are not followed."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if path.is_dir():
        path /= "index.html"
    if not path.is_file():
        return "there is no such file"
    anchor = unquote(parts.fragment)
    if anchor and path in pages and anchor not in pages[path].anchors:
        return "there is no such heading"
    return None


def main(folder: str) -> int:
    """Say what is broken in a built site; 1 if anything is."""
    site = Path(folder)
    faults = broken(site)
    print(
        "\n".join(faults)
        if faults
        else f"All links of {len(list(site.rglob('*.html')))} pages hold."
    )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
