"""Where results go: a file, or standard output; and which files cannot be meant."""

from __future__ import annotations

import csv
import fnmatch
import glob
import io
import json
import os
import stat
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from titrant import _writing
from titrant.cli.terminal import bad_value, note, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from titrant.cli.options import RunOptions
    from titrant.evaluation.curves import Curve
    from titrant.evaluation.description import Description
    from titrant.evaluation.evaluation import Comparison
    from titrant.evaluation.questions.outcomes import Outcomes
    from titrant.evaluation.questions.subgroups import Subgroups
    from titrant.inference import Diagnostics

    Named = Iterable[tuple[str, str | None]]
    Identity = tuple[object, ...]
    Writer = Callable[[IO[bytes], pa.Schema], Any]


PIPE = "-"
"""Standard output among the files to write, standard input among those to read."""


def check_outputs(run: RunOptions, outputs: Named, inputs: Named = (), *, made: Named = ()) -> None:
    """Refuse files that cannot be written, or that are read too, before any work is done.

    All are pairs (option, path), to which those of every run are added; the folders of ``made``
    need not exist yet.
    """
    written = [*outputs, ("--save-config", run.save_config)]
    for option, path in written:
        check_writable(option, path)
    check_apart([*written, *made], [*inputs, ("--config", run.config)])


def check_writable(option: str, path: str | None) -> None:
    """Refuse a path that cannot be written to."""
    if path is None or path == PIPE:
        return
    target, folder = Path(path), Path(path).parent
    if not folder.is_dir():
        raise bad_value(option, f"The folder `{folder}` does not exist. Make it first.")
    if target.is_dir():
        raise bad_value(option, f"`{target}` is a folder. Give the name of a file.")
    if target.exists() and not target.is_file():
        raise bad_value(option, f"`{target}` is a device or a pipe. Give the name of a file, or -.")
    if _writing.is_of_the_system(target):
        raise bad_value(
            option,
            f"`{target}` leads through /dev or /proc, where no file is written. Give the name of a "
            "file, or - for standard output.",
        )
    if not os.access(folder, os.W_OK):
        raise bad_value(
            option, f"The folder `{folder}` cannot be written to. Choose another place."
        )


def write_text(path: str, text: str) -> None:
    """Write `text` to a file, or to standard output for ``-``."""
    if path == PIPE:
        put(text)
    else:
        _writing.write_text(path, text)


def write_json(path: str | None, content: object) -> None:
    """Write a result for programs, if it was asked for."""
    if path is not None:
        write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_rows(path: str | None, rows: Sequence[Mapping[str, object]]) -> None:
    """Write the table of a result as CSV, if it was asked for; a row may lack some columns."""
    if path is None:
        return
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def note_written(path: str | None) -> None:
    """Say which file was written, if it is one."""
    if path not in (None, PIPE):
        note(f"Wrote {path}.")


# Files that a command would both read and write, or write twice.

# `Path` fails at a text that is too long for the name of a file; `os.path` says that it is none.
# ruff: noqa: PTH110, PTH112, PTH113, PTH207

_STDIN = 0
_OTHER = "Give another name or folder."


def check_apart(outputs: Named, inputs: Named) -> None:
    """Refuse an output that is another output or an input; all are pairs (option, path)."""
    given = [(option, path) for option, path in inputs if path]
    read = [(option, path) for option, path in given if path != PIPE]
    sources = {identity(file): one for one in read for file in _files(one[1])}
    sources |= {_redirected(): one for one in given if one[1] == PIPE}
    taken: dict[Identity, str] = {}
    for option, path in outputs:
        if path is None:
            continue
        here = identity(path)
        if here in taken:
            raise bad_value(option, _twice(path, taken[here]))
        if here in sources:
            source, file = sources[here]
            piped = "the file that is read from standard input as"
            what = piped if file == PIPE else f"`{file}`, which is read as"
            raise bad_value(option, f"`{path}` would replace {what} `{source}`. {_OTHER}")
        for source, file in read:
            if _would_be_read(path, file):
                part = f"`{path}` would be read as a part of `{file}` (`{source}`) the next time."
                raise bad_value(option, f"{part} {_OTHER}")
        taken[here] = option


def _twice(path: str, other: str) -> str:
    if path == PIPE:
        return f"Standard output takes `{other}` already. Give the name of a file."
    return f"`{path}` is the file of `{other}` too. Give each its own."


def identity(path: str) -> Identity:
    """Return what two paths share if they are one file, by whatever names and links.

    A file that is yet to be made is its folder and its name, whose case many disks ignore.
    """
    if path == PIPE:
        return (PIPE,)
    real = Path(os.path.realpath(path))
    try:
        return _inode(real.stat())
    except OSError:
        return (*_folder(real.parent), real.name.casefold())


def _redirected() -> Identity:
    """Return the file behind standard input, as in ``< log.csv``; a pipe is like no file."""
    try:
        found = os.fstat(_STDIN)
    except OSError:  # it is closed
        return ()
    return _inode(found) if stat.S_ISREG(found.st_mode) else ()


def _folder(folder: Path) -> Identity:
    try:
        return _inode(folder.stat())
    except OSError:
        return (str(folder),)


def _inode(found: os.stat_result) -> Identity:
    return (found.st_dev, found.st_ino)


def _files(path: str) -> list[str]:
    """Return the files and folders that reading `path` would open."""
    if os.path.isdir(path):
        return [path, *map(str, Path(path).iterdir())]
    if not os.path.exists(path) and glob.has_magic(path):
        return glob.glob(path, recursive=True)
    return [path]


def _would_be_read(output: str, source: str) -> bool:
    """Return whether a file at `output` would be taken for a part of the log at `source`."""
    if output == PIPE or os.path.isfile(source):
        return False
    target = Path(os.path.realpath(output))
    if os.path.isdir(source):
        from titrant.data.files import format_of  # noqa: PLC0415  (loads numpy)

        folder = _folder(Path(source))
        inside = any(_folder(one) == folder for one in target.parents)
        return inside and format_of(target.name) is not None
    return glob.has_magic(source) and _matches(target, source)


def _matches(target: Path, pattern: str) -> bool:
    """Return whether a file that may not exist yet would be found by a pattern."""
    where, name = os.path.split(pattern)
    where = pattern if name == "**" else where
    folders = glob.glob(where, recursive=True) if where else ["."]
    inside = any(_folder(Path(one)) == _folder(target.parent) for one in folders)
    return inside and fnmatch.fnmatch(target.name, name)


# Tables as files: the format follows the ending of the name.

_WRITERS = {
    ".csv": ("pyarrow.csv", "CSVWriter"),
    ".parquet": ("pyarrow.parquet", "ParquetWriter"),
    ".arrow": ("pyarrow.ipc", "new_file"),
    ".feather": ("pyarrow.ipc", "new_file"),
}


def check_format(option: str, path: str) -> None:
    """Refuse a path whose ending names no format."""
    if path != PIPE and not path.lower().endswith(tuple(_WRITERS)):
        raise bad_value(
            option,
            f"The ending of `{path}` names no format. Give a name that ends in "
            f"{', '.join(_WRITERS)}, or - for CSV on standard output.",
        )


def write_table(path: str, table: pa.Table) -> None:
    """Write a table as a whole or not at all; ``-`` is CSV on standard output."""
    if path == PIPE:
        text = io.BytesIO()
        _write_all(_writer(".csv"), text, iter([table]))
        put(text.getvalue().decode())
    else:
        write_tables(path, iter([table]))


def write_tables(path: str, tables: Iterator[pa.Table]) -> None:
    """Write like tables under each other to a file, as a whole or not at all, one at a time."""
    with _writing.draft(path) as stream:
        _write_all(_writer(path), stream, tables)


def _writer(path: str) -> Writer:
    """Return what opens a stream for tables in the format of a name."""
    known = _WRITERS.items()
    module, name = next(place for ending, place in known if path.lower().endswith(ending))
    opener: Writer = getattr(import_module(module), name)
    return opener


def _write_all(opener: Writer, stream: IO[bytes], tables: Iterator[pa.Table]) -> None:
    """Write like tables under each other; refuse values that the format cannot hold."""
    import pyarrow as pa  # noqa: PLC0415

    table = next(tables)
    try:
        with opener(stream, table.schema) as writer:
            writer.write_table(table)
            for table in tables:
                writer.write_table(table)
    except pa.ArrowException as reason:
        raise _unfit(opener, table, reason) from None


def _unfit(opener: Writer, table: pa.Table, reason: Exception) -> Exception:
    """Return the refusal of the first column that cannot be written even by itself."""
    import pyarrow as pa  # noqa: PLC0415

    for name in table.column_names:
        alone = table.select([name])
        try:
            with opener(io.BytesIO(), alone.schema) as writer:
                writer.write_table(alone)
        except pa.ArrowException as why:
            return bad_value(
                "TABLE",
                f"The column `{name}` of type {alone.schema.types[0]} cannot be written in this "
                f"format: {str(why).splitlines()[0].rstrip('.')}. Drop the column, or give another "
                "format by the ending of `-o`.",
            )
    return reason


# Results as rows for spreadsheets: one name a column, one number a cell, all digits.

REFUSED = "refuse"
"""The verdict on what has no number."""


def rows(
    comparison: Comparison,
    level: float,
    pairs: Iterable[tuple[str, str]] | None = None,
    **told: str,
) -> list[dict[str, object]]:
    """Return the value of each policy and the difference of each pair; ``told`` is of all."""
    found = [
        {**told, "policy": name, "minus": None, **_row(e.value, e.se, e.interval(level), level)}
        | {"ess": e.ess, "verdict": e.diagnostics.verdict.value, "reason": None}
        for name, e in comparison.estimates.items()
    ]
    found += [
        {**told, "policy": name, "verdict": REFUSED, "reason": reason}
        for name, reason in comparison.refused.items()
    ]
    for a, b in combinations(comparison.estimates, 2) if pairs is None else pairs:
        c = comparison.contrast(a, b)
        of_pair = _row(c.difference, c.se, c.interval(level), level)
        found.append({**told, "policy": a, "minus": b, **of_pair})
    return found


def _row(value: float, se: float, ends: tuple[float, float], level: float) -> dict[str, object]:
    return {"value": value, "se": se, "low": ends[0], "high": ends[1], "level": level}


def outcome_rows(found: Outcomes, level: float) -> list[dict[str, object]]:
    """Return the values and differences of policies by each outcome."""
    each = (rows(c, level, outcome=name) for name, c in found.comparisons.items())
    return [row for table in each for row in table]


def subgroup_rows(found: Subgroups, level: float) -> list[dict[str, object]]:
    """Return what a policy changes in each part."""
    copied = ("column", "label", "rows", "value", "against", "difference", "se")
    told = []
    for part in found.to_dict(level)["parts"]:
        own = part["interval"] or {"low": None, "high": None}
        both = part["simultaneous"] or (None, None)
        ends = {"low": own["low"], "high": own["high"], "level": level}
        told.append(
            {name: part[name] for name in copied}
            | ends
            | {"at_once_low": both[0], "at_once_high": both[1]}
            | {"ess": part["effective_sample_size"]}
            | {"verdict": part["diagnostics"]["verdict"]}
        )
    return told


def curve_rows(found: Curve, over: str, level: float) -> list[dict[str, object]]:
    """Return the points of a curve, and those that the log cannot answer with the reason."""
    each = zip(
        found.parameters, found.comparison.estimates.values(), found.band(level), strict=True
    )
    told: list[dict[str, object]] = [
        {over: float(parameter), **_row(e.value, e.se, e.interval(level), level)}
        | {"band_low": float(low), "band_high": float(high), "ess": e.ess}
        | {"verdict": e.diagnostics.verdict.value, "reason": None}
        for parameter, e, (low, high) in each
    ]
    refused = {"verdict": REFUSED}
    return told + [{over: p, **refused, "reason": why} for p, why in found.refused.items()]


def check_rows(report: Diagnostics) -> list[dict[str, object]]:
    """Return the checks of a trust report."""
    return [{"check": name, **check} for name, check in report.to_dict()["checks"].items()]


def column_rows(found: Description) -> list[dict[str, object]]:
    """Return the columns of a log."""
    copied = ("name", "kind", "mean", "sd", "low", "high", "distinct")
    plain = found.to_dict()
    each = [*plain["treatments"], plain["outcome"], *plain["contexts"]]
    return [{name: column[name] for name in copied} for column in each]


# A curve as a picture.

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 1rem auto;
padding: 0 1rem; }} svg {{ width: 100%; height: auto; }} td, th {{ padding: .15rem .7rem;
text-align: right; font-variant-numeric: tabular-nums; }}</style></head>
<body><h1>{title}</h1><p>{sentence}</p>{drawing}{table}</body></html>
"""


def draw_curve(path: str, found: Curve, words: tuple[str, str, str], level: float) -> None:
    """Write a curve as .svg, .png or .html; ``words`` are parameter, outcome and a sentence."""
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415  (no pyplot: no global state)

    from titrant._drawing import escaped  # noqa: PLC0415

    over, outcome, _ = words
    kind = Path(path).suffix.lower().removeprefix(".")
    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "titrant", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = found.plot(figure.subplots(), level=level)
        axes.set_xlabel(escaped(over))
        axes.set_ylabel(escaped(f"mean {outcome}"))
        form, metadata = ("png", None) if kind == "png" else ("svg", {"Date": None})
        figure.savefig(out, format=form, metadata=metadata, dpi=160)
    content = out.getvalue()
    if kind == "html":
        content = _curve_page(content.decode(), found, words, level).encode()
    with _writing.draft(path) as stream:
        stream.write(content)


def _curve_page(drawing: str, found: Curve, words: tuple[str, str, str], level: float) -> str:
    from html import escape  # noqa: PLC0415

    from titrant._text import table, written_out  # noqa: PLC0415

    over, outcome, sentence = words
    every = curve_rows(found, over, level)
    shown = [name for name in every[0] if name not in {"level", "reason"}]
    cells = [[_cell(row.get(name)) for name in shown] for row in every]
    title = escape(written_out(f"Mean {outcome} over {over}"))
    return _PAGE.format(
        title=title,
        sentence=escape(written_out(sentence)),
        drawing=drawing[drawing.index("<svg") :],
        table=table(shown, cells),
    )


def _cell(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str("–" if value is None else value)
