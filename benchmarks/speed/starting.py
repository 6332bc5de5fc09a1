"""Row 6: a whole command on a small file; and row 13: what importing costs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.speed.draws import people
from benchmarks.speed.measuring import IMPORT_NUMPY, Line, at_most, commands_in_turn, told

TITRANT = (sys.executable, "-m", "titrant")
COLUMNS = ("--treatment", "t", "--outcome", "y")
POLICY = ("--policy", "constant:0.3")
STARTS: dict[str, tuple[str, ...]] = {
    "import titrant": (sys.executable, "-c", "import titrant"),
    "titrant --help": (*TITRANT, "--help"),
}


def write(path: Path, n: int, p: int, *, known: bool) -> None:
    """Write a log as CSV or Parquet."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pa.table(people(n, p, known=known).to_columns(treatment="t", outcome="y"))
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pq.write_table(table, path)


def command(repeats: int) -> list[Line]:
    """Row 6, with the propensity in a column and with it fitted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "known.csv", 5_000, 3, known=True)
        write(folder / "fitted.csv", 5_000, 3, known=False)
        ask = (*TITRANT, "evaluate")
        known, fitted, trees, numpy = commands_in_turn(
            [
                (*ask, "known.csv", *COLUMNS, "--propensity", "propensity", *POLICY),
                (*ask, "fitted.csv", *COLUMNS, *POLICY),
                (sys.executable, "-c", "import sklearn.tree"),
                IMPORT_NUMPY,
            ],
            repeats,
            folder,
        )
    work, of = "titrant evaluate, a CSV of 5,000 rows, propensity", "× import numpy"
    lines = [
        at_most(6, f"{work} {how}", seconds / numpy, 7, of, seconds=seconds, peer=numpy)
        for how, seconds in (("known", known), ("fitted", fitted))
    ]
    return [*lines, told("import sklearn.tree, which the default models need", trees / numpy, of)]


def imports(repeats: int) -> list[Line]:
    """Row 13, importing."""
    *least, numpy = commands_in_turn([*STARTS.values(), IMPORT_NUMPY], repeats, Path.cwd())
    of = "× import numpy"
    return [
        at_most(13, name, seconds / numpy, 1.5, of, seconds=seconds)
        for name, seconds in zip(STARTS, least, strict=True)
    ]
