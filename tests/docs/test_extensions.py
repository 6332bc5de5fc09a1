"""The how-tos are true: a class of theirs and one entry in a list pass the tests of laws."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from pages.blocks import ROOT, blocks

ENTRIES = {
    "Tricube": "titrant.kernels.KERNELS += (Tricube,)",
    "Truncated": "titrant.estimators.ESTIMATORS += (Truncated(),)",
    "HalfSpace": "titrant.optimize.CONSTRAINTS += (HalfSpace((1.0, 1.0, 1.0), 0.1),)",
    "StumpClass": "titrant.learn.POLICY_CLASSES += (StumpClass(),)",
}
"""What is added to which list; the tests that run on it have its name in theirs."""
LISTS = """
import titrant.estimators, titrant.kernels, titrant.learn, titrant.optimize
from examples_of_pages import *
"""
LAWS = (
    *("tests/kernels", "tests/laws", "tests/bandwidth/test_laws.py", "tests/learn"),
    *("tests/optimize/test_constraints.py", "tests/optimize/test_scaled.py"),
)
LEAST = {"Tricube": 150, "Truncated": 100, "HalfSpace": 6, "StumpClass": 14}
"""How many tests find it, at least."""

CLASS_OR_IMPORT = re.compile(
    r"^(?:from|import) .*\n|^(?:@.*\n)*class .*\n(?:(?: .*)?\n)*", re.MULTILINE
)


def classes():
    """The imports and classes of both pages, without the lines that show what they do."""
    pages = [ROOT / "docs/how-to" / name for name in ("add-a-kernel.md", "add-parts.md")]
    found = [block for page in pages for block in blocks(page.read_text("utf-8"), str(page))]
    code = "\n\n".join(block.code for block in found if block.kind == "python")
    return "".join(part for part in CLASS_OR_IMPORT.findall(code) if "__future__" not in part)


@pytest.mark.long
def test_a_class_and_an_entry_pass_the_laws(tmp_path):
    # A plugin is loaded before any test is: the tests are made from the longer lists.
    (tmp_path / "examples_of_pages.py").write_text(classes(), "utf-8")
    (tmp_path / "entries.py").write_text(LISTS + "\n".join(ENTRIES.values()), "utf-8")
    # Laws that go through all kernels inside one test have no kernel in their name.
    wanted = " or ".join([*ENTRIES, "moments_of_chunks"])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "entries", "-p", "no:cacheprovider"),
            *("-vv", "-k", wanted, *LAWS),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    passed = [line for line in done.stdout.splitlines() if " PASSED" in line]
    for name, least in LEAST.items():
        assert sum(name in line for line in passed) >= least, name
