"""The how-to "add a kernel" is true: its class and one entry in the list pass the tests of laws."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from pages.blocks import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "add-a-kernel.md"
ENTRY = """
import titrant.kernels
from cone import Cone

titrant.kernels.KERNELS = (*titrant.kernels.KERNELS, Cone)
"""


def test_one_file_and_one_entry_pass_the_laws(tmp_path):
    kernel = next(iter(blocks(PAGE.read_text("utf-8"), str(PAGE))))
    (tmp_path / "cone.py").write_text(kernel.code, "utf-8")
    (tmp_path / "entry.py").write_text(ENTRY, "utf-8")
    paths = [str(tmp_path), *sys.path]
    # The plugin is loaded before any test is: the lists of tests are made from the longer list.
    # Laws that go through all kernels inside one test have no kernel in their name.
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "entry", "-p", "no:cacheprovider", "-q"),
            *("tests/kernels", "tests/laws", "-k", "Cone or moments_of_chunks"),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    assert passed > 150, done.stdout[-300:]
    assert "failed" not in done.stdout
