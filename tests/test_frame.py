"""The package's front page and the files that set the project up."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import titrant

ROOT = Path(__file__).parents[1]
HEAVY = {
    "click", "dask", "jinja2", "matplotlib", "narwhals", "numba", "pandas", "polars", "pyarrow",
    "rich", "scipy", "sklearn",
}  # fmt: skip

# `import titrant` may cost this many times the CPU of `import numpy` (a promise of the project).
IMPORT_RATIO = 1.5


def python(code: str) -> str:
    """Standard output of `code` in a fresh interpreter."""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return run.stdout


def cpu_seconds(code: str) -> float:
    """CPU time, user and system, of `code` in a fresh interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    python(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# ── the public names ─────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("name", titrant.__all__)
def test_every_public_name_resolves_to_the_object_of_its_room(name):
    room = importlib.import_module(f"titrant.{titrant._HOME[name]}")
    assert getattr(titrant, name) is getattr(room, name)


@pytest.mark.parametrize("name", titrant.__all__)
def test_every_public_object_has_a_docstring(name):
    assert inspect.getdoc(getattr(titrant, name))


def test_type_checkers_see_the_same_names_from_the_same_rooms():
    stub = Path(titrant.__file__).with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    seen = {
        alias.asname: statement.module
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname == alias.name
    }
    assert seen == {name: f"titrant.{room}" for name, room in titrant._HOME.items()}


@pytest.mark.parametrize("name", titrant.__all__)
def test_no_module_shadows_a_public_name(name):
    # Importing `titrant.evaluate` would replace the function `titrant.evaluate` by the module.
    assert importlib.util.find_spec(f"titrant.{name}") is None


def test_the_lists_agree():
    assert titrant.__all__ == sorted(titrant.__all__)
    assert set(titrant.__all__) <= set(dir(titrant))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = titrant.evalute


# ── the cost of importing ────────────────────────────────────────────────────────────────────────
def test_import_loads_nothing_heavy():
    loaded = json.loads(python("import json, sys, titrant; print(json.dumps([*sys.modules]))"))
    assert not HEAVY & {module.partition(".")[0] for module in loaded}


def test_import_costs_little_more_than_numpy():
    # Interleaved, best of seven each: the minimum is what the work costs without the neighbors.
    times = [(cpu_seconds("import titrant"), cpu_seconds("import numpy")) for _ in range(7)]
    ours, numpys = map(min, zip(*times, strict=True))
    assert ours <= IMPORT_RATIO * numpys


# ── the lock files ───────────────────────────────────────────────────────────────────────────────
def locked(name: str) -> dict[str, str]:
    """Versions by package of one lock file; anything but pins with hashes fails."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    entries = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    pin = re.compile(r"([a-z0-9-]+)==(\S+)(?: ; [^\\]+?)?((?:\s+--hash=sha256:[0-9a-f]{64})+)")
    pins = [pin.fullmatch(entry.strip()) for entry in entries]
    assert all(pins), "a line of the lock is not name==version with hashes"
    return {match[1]: match[2] for match in pins if match}


@pytest.mark.parametrize(("name", "extras"), [("run", []), ("dev", ["dask", "dev"])])
def test_the_lock_satisfies_pyproject(name, extras):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    versions = locked(name)
    for requirement in map(Requirement, wanted):
        assert versions[requirement.name.lower()] in requirement.specifier


def test_development_runs_what_users_run():
    assert locked("run").items() <= locked("dev").items()


def test_ci_is_executable():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
