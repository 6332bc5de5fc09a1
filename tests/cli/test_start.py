"""What a command loads before it answers: scikit-learn takes a second, pandas half of one."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import titrant as tt
from sweeps import long
from titrant.data.simulate import DESIGNS

HEAVY = ("dask", "matplotlib", "numba", "pandas", "polars", "pyarrow", "rich", "scipy", "sklearn")
LOADED = f"""
import sys
from titrant.cli import run
code = run(sys.argv[1:])
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(code, *sorted(loaded.intersection({HEAVY!r})), file=sys.stderr)
"""
LOG = ["log.csv", "--treatment", "dose", "--outcome", "loss", "--context", "age,weight"]
KNOWN = [*LOG, "--propensity", "propensity"]
ADVICE = ["policy.json", "log.csv", "--treatment", "advised", "-o", "doses.csv"]
RULE = ["--policy", "constant:0.5", "--allow-untrusted"]


@pytest.mark.parametrize(
    ("command", "loads"),
    [
        (["evaluate", "--help"], set()),
        (["recommend", *ADVICE], {"pandas", "pyarrow"}),  # as pyarrow does with an array of doses
        (["evaluate", *KNOWN, *RULE, "--estimator", "sn"], {"pyarrow", "rich", "scipy"}),
        # Propensities are held against a density that is fitted without contexts, by scikit-learn,
        # which loads pandas where it is installed.
        *long((["check", *KNOWN], {"pandas", "pyarrow", "rich", "scipy", "sklearn"})),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_loads_what_it_needs(tmp_path, command, loads):

    log = DESIGNS["dosing"].draw(300, 1)
    pa_csv.write_csv(
        pa.table(log.to_columns(treatment="dose", outcome="loss")), tmp_path / "log.csv"
    )
    rule = tt.Linear(coef=[0.1], intercept=0.0, features=("age",))
    rule.save(tmp_path / "policy.json")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *command],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    code, *loaded = done.stderr.splitlines()[-1].split()
    assert (int(code), set(loaded)) == (0, loads)
