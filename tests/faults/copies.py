"""Another titrant for another process: a copy of this one whose source differs by a comment."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path


def altered(folder):
    """The folder to put first on the path of a process."""
    # Found without importing it: a process that begins here is to import the copy.
    source = Path(find_spec("titrant").origin).parent
    shutil.copytree(source, folder / "titrant", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "titrant" / "moments.py").open("a") as file:
        file.write("# Another comment.\n")
    return str(folder)


def look_first_in(folder):
    """Let this process import from a folder before all others."""
    sys.path.insert(0, folder)
