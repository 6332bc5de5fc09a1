"""Take the pictures of the README: the demo's report on a desk, in light, and on a phone, in dark.

Needs a Chromium. Run it by `make screenshots`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import chromium

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LARGEST = 300_000
"""Bytes of a picture in the README."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its name, the screen, and the colors the reader prefers."""

    name: str
    width: int
    height: int
    scale: float
    scheme: str


SHOTS = (
    Shot("report-desktop.png", 1280, 1640, 1.0, "light"),
    Shot("report-phone.png", 390, 1320, 1.5, "dark"),
)


def main() -> None:
    """Write all pictures."""
    program = chromium.find()
    if program is None:
        sys.exit(f"No browser found. Install one of {', '.join(chromium.NAMES)} first.")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium.opened(program) as tab:
        page = Path(folder) / "report.html"
        demo = [sys.executable, "-m", "titrant", "demo", "--html", str(page)]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  (our own demo)
        for shot in SHOTS:
            take(tab, page, shot)


def take(tab: chromium.Tab, page: Path, shot: Shot) -> None:
    """Write one picture and say how large it is."""
    tab.prefer(shot.scheme)
    tab.resize(shot.width, shot.height, shot.scale)
    tab.open(page.as_uri())
    path = IMAGES / shot.name
    tab.screenshot(path)
    size = path.stat().st_size
    print(f"{path.relative_to(IMAGES.parents[1])}: {size:,} bytes")
    if size > LARGEST:
        sys.exit(f"{shot.name} is larger than {LARGEST:,} bytes. Show less of the page.")


if __name__ == "__main__":
    main()
