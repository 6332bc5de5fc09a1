"""The sources of a commit, in a work tree of a moment: what today's code is held against."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """Give the folder of a commit's files, which is gone afterwards."""
    git = ("git", "-C", str(Path(__file__).parent), "worktree")
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run([*git, "add", "--quiet", "--detach", tree, revision], check=True)  # noqa: S603
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)  # noqa: S603
