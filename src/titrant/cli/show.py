"""Results as tables: for people, and as files."""

from __future__ import annotations

import io
from itertools import combinations
from typing import IO, TYPE_CHECKING, Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from titrant._writing import draft
from titrant.cli.app import as_typed
from titrant.cli.terminal import note, put, visible
from titrant.cli.writing import STDOUT
from titrant.inference import Verdict
from titrant.report.numbers import number, percent, told
from titrant.report.rules import linear_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from titrant.evaluation.evaluation import Comparison, Contrast, Estimate
    from titrant.inference import Check, Diagnostics
    from titrant.policies import Linear, Policy

    Writer = Callable[[IO[bytes], pa.Schema], Any]

# Tables as files: the format follows the ending of the name.


def check_format(option: str, path: str) -> None:
    """Refuse a path whose ending names no format."""
    if path != STDOUT and not path.lower().endswith(tuple(_WRITERS)):
        raise click.BadParameter(
            f"The ending of `{path}` names no format. Give a name that ends in "
            f"{', '.join(_WRITERS)}, or - for CSV on standard output.",
            param_hint=f"'{option}'",
        )


def write_table(path: str, table: pa.Table) -> None:
    """Write a table as a whole or not at all; ``-`` is CSV on standard output."""
    if path == STDOUT:
        text = io.BytesIO()
        _write_all(_csv, text, iter([table]))
        put(text.getvalue().decode())
        return
    write_tables(path, iter([table]))


def write_tables(path: str, tables: Iterator[pa.Table]) -> None:
    """Write like tables under each other to a file, as a whole or not at all, one at a time."""
    opened = next(w for ending, w in _WRITERS.items() if path.lower().endswith(ending))
    with draft(path) as stream:
        _write_all(opened, stream, tables)


def _write_all(opened: Writer, stream: IO[bytes], tables: Iterator[pa.Table]) -> None:
    """Write like tables under each other; refuse values that the format cannot hold."""
    import pyarrow as pa  # noqa: PLC0415

    table = next(tables)
    try:
        with opened(stream, table.schema) as writer:
            writer.write_table(table)
            for table in tables:
                writer.write_table(table)
    except pa.ArrowException as reason:
        raise _unfit(opened, table, reason) from None


def _unfit(opened: Writer, table: pa.Table, reason: Exception) -> Exception:
    """Return the refusal of the first column that cannot be written even by itself."""
    import pyarrow as pa  # noqa: PLC0415

    for name in table.column_names:
        alone = table.select([name])
        try:
            with opened(io.BytesIO(), alone.schema) as writer:
                writer.write_table(alone)
        except pa.ArrowException as why:
            return click.BadParameter(
                f"The column `{name}` of type {alone.schema.types[0]} cannot be written in this "
                f"format: {str(why).splitlines()[0].rstrip('.')}. Drop the column, or give another "
                "format by the ending of `-o`.",
                param_hint="'TABLE'",
            )
    return reason


def _csv(target: IO[bytes], schema: pa.Schema) -> Any:  # noqa: ANN401
    from pyarrow.csv import CSVWriter  # noqa: PLC0415

    return CSVWriter(target, schema)


def _parquet(target: IO[bytes], schema: pa.Schema) -> Any:  # noqa: ANN401
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    return ParquetWriter(target, schema)


def _arrow(target: IO[bytes], schema: pa.Schema) -> Any:  # noqa: ANN401
    from pyarrow.ipc import new_file  # noqa: PLC0415

    return new_file(target, schema)


_WRITERS: dict[str, Writer] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
}


# Results as tables for people.

_COLORS = {"ok": "green", "warn": "yellow", "refuse": "red"}


def values(
    estimates: Mapping[str, Estimate],
    level: float,
    truth: Mapping[str, float] | None = None,
    refused: Iterable[str] = (),
) -> Table:
    """Return the values of policies with their intervals, bandwidths and verdicts.

    Policies that are refused have a row, but no number in it.
    """
    rows = next(iter(estimates.values())).rows
    headings = ["policy", "value", f"{percent(level)} CI", "h", f"ESS of {rows:,}", "verdict"]
    table = _table([*headings, *(["truth"] if truth else [])])
    for name, estimate in estimates.items():
        known = [number(truth[name])] if truth else []
        _add(table, *_cells(name, estimate, level), *known)
    for name in refused:
        _add(table, name, *["–"] * 4, Verdict.REFUSE.value)
    return table


def refusals(refused: Mapping[str, str]) -> list[str]:
    """Return a sentence about each policy that has no estimate."""
    return [
        f"Refused ({name}, and every difference to it): {as_typed(reason)}"
        for name, reason in refused.items()
    ]


def differences(
    comparison: Comparison,
    level: float,
    *,
    maximize: bool,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Table:
    """Return the paired difference of each pair of policies, and which is better if it is clear."""
    table = _table(["difference", "value", f"{percent(level)} CI", "better"])
    for a, b in combinations(comparison.estimates, 2) if pairs is None else pairs:
        contrast = comparison.contrast(a, b)
        better = _better(contrast, level, maximize=maximize)
        _add(table, f"{a} − {b}", *told(contrast.difference, contrast.interval(level)), better)
    return table


def coefficients(learned: Policy, truth: Linear) -> Table:
    """Return the coefficients of a learned linear rule beside those of the best one."""
    found = linear_part(learned)
    table = _table(["rule: dose =", "learned", "truth"])
    if found is None or found.coef is None or truth.coef is None:
        return table
    _add(table, "intercept", number(float(found.intercept)), number(float(truth.intercept)))
    for name, ours, theirs in zip(truth.features or (), found.coef, truth.coef, strict=True):
        _add(table, f"per unit of {name}", number(float(ours)), number(float(theirs)))
    return table


def candidates(found: Sequence[Mapping[str, Any]], *, maximize: bool) -> Table:
    """Return what a learned policy was chosen from, with values on rows held out."""
    value = "held-out reward" if maximize else "held-out loss"
    table = _table(["candidate", value, "behind the best", "SE", "weight"])
    for c in found:
        numbers = (-c["loss"] if maximize else c["loss"], c["behind"], c["behind_se"])
        _add(table, c["name"], *map(number, numbers), f"{c['weight']:.1%}")
    return table


def checks(report: Diagnostics) -> Table:
    """Return the checks of a trust report, each with its verdict and its sentence."""
    table = _table(["check", "verdict", "finding"])
    for check in report.checks:
        _add(table, check.name.replace("_", " "), check.verdict.value, as_typed(check.message))
    return table


def overlap(estimates: Mapping[str, Estimate]) -> Table:
    """Return how much of the log speaks about each policy."""
    rows = next(iter(estimates.values())).rows
    table = _table(["overlap", f"ESS of {rows:,}", "largest weight", "mean weight"])
    for name, estimate in estimates.items():
        checks = estimate.diagnostics
        largest, mean = checks["largest_weight_share"].value, checks["mean_weight"].value
        _add(table, name, f"{estimate.ess:,.0f}", f"{largest:.1%}", f"{mean:.3f}")
    return table


def reading(*, maximize: bool) -> str:
    """Return how values are to be read."""
    sense = "a reward, higher" if maximize else "a loss, lower"
    return f"Outcome: {sense} is better."


def cautions(estimates: Mapping[str, Estimate]) -> None:
    """Say on standard error what the trust checks object to and what was unusual."""
    for name, estimate in estimates.items():
        for verdict, word in ((Verdict.REFUSE, "Not to be trusted"), (Verdict.WARN, "Warning")):
            for message in estimate.diagnostics.messages(verdict):
                note(f"{word} ({name}): {as_typed(message)}")
        for remark in _remarks(estimate):
            note(f"Note ({name}): {remark}")


def bandwidth(estimate: Estimate) -> str:
    """Return the bandwidth of an estimate, of each dose if there are several."""
    if estimate.bandwidth is None:
        return "–"
    return ", ".join(number(h) for h in estimate.bandwidth.h.ravel().tolist())


def _remarks(estimate: Estimate) -> list[str]:
    """Return what was unusual: of the bandwidth, of the interval, of the checks themselves."""
    h, interval = estimate.bandwidth, estimate.confidence.note
    said = [f"bandwidth, {h.flag}"] if h is not None and h.flag else []
    said += [f"interval, {interval}"] if interval else []
    said += [check.message for check in estimate.diagnostics if _names_a_bin(check)]
    return [*said, *estimate.diagnostics.notes]


def _names_a_bin(check: Check) -> bool:
    """Whether a check says in which bin a dose fell, and is no caution that is said anyway."""
    return check.name == "dose_bin" and check.verdict is Verdict.OK


def _cells(name: str, estimate: Estimate, level: float) -> list[str]:
    verdict = estimate.diagnostics.verdict
    return [
        name,
        *told(estimate.value, estimate.interval(level)),
        bandwidth(estimate),
        f"{estimate.ess:,.0f}",
        verdict.value,
    ]


def _add(table: Table, name: str, *cells: str) -> None:
    """Add a row; texts are shown as they are, also those with brackets or control characters."""
    colored = (Text(visible(cell), style=_COLORS.get(cell, "")) for cell in cells)
    table.add_row(Text(visible(name)), *colored)


def _better(contrast: Contrast, level: float, *, maximize: bool) -> str:
    """Return the better policy, or that the interval leaves it open."""
    low, high = contrast.interval(level)
    if low <= 0 <= high:
        return "not clear"
    return contrast.a if (low > 0) is maximize else contrast.b


def _table(headings: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, heading in enumerate(headings):
        words = place == 0 or heading in {"verdict", "better", "finding"}
        table.add_column(heading, justify="left" if words else "right", overflow="fold")
    return table
