"""Tables and figures of studies: rows over replications, beside the paper's numbers; verdicts."""

from __future__ import annotations

import json
import math
from dataclasses import KW_ONLY, asdict, dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant._writing import draft, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from titrant._types import Array
    from titrant.paper.study import Findings, Piece, Settings, Study

# Rows of the tables of studies: means and root mean squared errors over replications.


Limits = tuple[float | None, float | None]
"""What a statement says about a number: its least and greatest value, None where it has none."""


def where(pieces: Iterable[Piece], wanted: dict[str, Any]) -> list[Piece]:
    """Return the pieces whose task has the wanted values."""
    return [
        piece
        for piece in pieces
        if all(piece.task[name] == value for name, value in wanted.items())
    ]


def rmse_row(
    label: str,
    squares: Array,
    *,
    quantity: str = "RMSE",
    limits: Limits | None = None,
) -> Row:
    """Return the root of the mean of squared errors."""
    rmse = float(np.sqrt(squares.mean()))
    se = standard_error(squares) / (2.0 * rmse) if rmse else 0.0
    return Row(label, quantity, rmse, se=se, limits=limits)


def falls(label: str, what: str, few: Array, many: Array, sizes: tuple[int, int]) -> Row:
    """Return the mean error of many rows over that of few (replications,): it falls below 1.

    The standard error is the delta method's, of independent logs.
    """
    ratio = float(many.mean() / few.mean())
    spread = [standard_error(one) / max(abs(one.mean()), 1e-300) for one in (few, many)]
    quantity = f"{what} at n = {sizes[1]} ÷ at n = {sizes[0]}"
    return Row(label, quantity, ratio, se=ratio * float(np.hypot(*spread)), limits=(None, 1.0))


def mean_of(
    label: str,
    quantity: str,
    values: Array,
    *,
    paper: float | None = None,
    limits: Limits | None = None,
    note: str = "",
) -> Row:
    """Return the mean of values over replications, with its standard error."""
    mean, se = float(values.mean()), standard_error(values)
    return Row(label, quantity, mean, se=se, paper=paper, limits=limits, note=note)


def around(center: float, half: float) -> tuple[float, float]:
    """Return limits so far to both sides of a center."""
    return center - half, center + half


def with_halves(columns: Sequence[Array]) -> dict[str, list[float]]:
    """Return the mean of each column over replications and half of its 95 % interval."""
    return {
        "mean": [float(values.mean()) for values in columns],
        "half": [1.96 * standard_error(values) for values in columns],
    }


def standard_error(values: Array) -> float:
    """Return the standard error of a mean over replications."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


# How a study ends: rows with a verdict each, as a table, as JSON and as a figure.

_DIGITS = 6
"""Significant digits of numbers in files: what machines agree on."""
_FEW_DIGITS = 3
"""Significant digits of numbers in tables."""
_DASH = "–"


class StatementVerdict(Enum):
    """Whether a statement about a number holds."""

    HOLDS = "holds"
    OPEN = "open: within 2 SE"
    """On the wrong side, by no more than two standard errors of the number."""
    FAILS = "FAILS"
    EXPLAINED = "fails, explained"
    REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class Row:
    """One number of a study beside the paper's, and what theory or the paper states about it."""

    label: str
    quantity: str
    ours: float
    _: KW_ONLY
    se: float | None = None
    """How far `ours` moves from one set of replications to another."""
    paper: float | None = None
    limits: Limits | None = None
    """The statement: within which limits the number lies."""
    note: str = ""
    """Why the number is where it is, where that needs an explanation."""

    @property
    def verdict(self) -> StatementVerdict:
        """Whether the statement holds, perhaps but for the error of the number."""
        if self.limits is None:
            return StatementVerdict.REPORTED
        least, most = self.limits
        low, high = (-math.inf if least is None else least), (math.inf if most is None else most)
        if low <= self.ours <= high:
            return StatementVerdict.HOLDS
        noise = 2.0 * (self.se or 0.0)
        if low - noise <= self.ours <= high + noise:
            return StatementVerdict.OPEN
        return StatementVerdict.EXPLAINED if self.note else StatementVerdict.FAILS

    def cells(self) -> tuple[str, ...]:
        """Return the row as texts: label, quantity, paper, ours, statement, verdict."""
        spread = "" if self.se is None else f" ± {_short(self.se, 2)}"
        paper = _DASH if self.paper is None else _short(self.paper)
        ours = f"{_short(self.ours, _digits(self.limits))}{spread}"
        return self.label, self.quantity, paper, ours, _statement(self.limits), self.verdict.value


def _statement(limits: Limits | None) -> str:
    if limits is None:
        return _DASH
    least, most = limits
    if least is None or most is None:
        return f"≤ {_short(most)}" if most is not None else f"≥ {_short(least or 0.0)}"
    return " … ".join(_short(limit, _digits(limits)) for limit in (least, most))


def _digits(limits: Limits | None) -> int:
    """Return how many digits tell two limits apart: three, unless the limits are nearly equal."""
    least, most = limits or (None, None)
    if least is None or most is None:
        return _FEW_DIGITS
    enough = (d for d in range(_FEW_DIGITS, _DIGITS) if _short(least, d) != _short(most, d))
    return next(enough, _DIGITS)


HEADINGS = ("", "quantity", "paper", "titrant", "statement", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A study that has been run."""

    name: str
    title: str
    claim: str
    command: str
    """What to type to get this result again."""
    settings: dict[str, Any]
    rows: tuple[Row, ...]
    series: dict[str, Any]
    sample: dict[str, float]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, study: Study, settings: Settings, findings: Findings) -> Result:
        """Put the findings under the study's name."""
        return cls(
            name=f"{study.name}-simulated" if settings.simulated else study.name,
            title=f"{study.title} (MADE-UP PATIENTS)" if settings.simulated else study.title,
            claim=study.claim,
            command=command(study.name, settings),
            settings=asdict(settings) | {"data": None},  # a path says nothing on another machine
            # A reduced run prints numbers, not verdicts.
            rows=tuple(replace(row, limits=None) for row in findings.rows)
            if settings.quick
            else findings.rows,
            series=findings.series,
            sample=findings.sample,
            notes=findings.notes,
        )

    @property
    def ok(self) -> bool:
        """Whether every statement holds or its failure is explained."""
        return all(row.verdict is not StatementVerdict.FAILS for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, numbers to six digits."""
        plain = asdict(self)
        for entry, row in zip(plain["rows"], self.rows, strict=True):
            entry["verdict"] = row.verdict.value
        rounded: dict[str, Any] = _rounded(plain)
        return rounded

    def save(self, folder: Path, draw: Callable[[Figure, dict[str, Any]], None]) -> None:
        """Write NAME.json, NAME.svg and NAME.png."""
        folder.mkdir(parents=True, exist_ok=True)
        plain = self.to_dict()
        text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(folder / f"{self.name}.json", text + "\n")
        saved(folder / self.name, lambda figure: self._draw(figure, plain["series"], draw))

    def _draw(
        self,
        figure: Figure,
        series: dict[str, Any],
        draw: Callable[[Figure, dict[str, Any]], None],
    ) -> None:
        draw(figure, series)
        if self.settings["simulated"]:
            figure.suptitle("made-up patients", color="#b00020")

    def as_text(self) -> str:
        """Return the table, the explanations and the notes for a terminal."""
        lines = [f"{self.name}: {self.title}", f"The paper: {self.claim}", ""]
        lines += _aligned([HEADINGS, *(row.cells() for row in self.rows)])
        explained = dict.fromkeys(f"{row.label}: {row.note}" for row in self.rows if row.note)
        return "\n".join([*lines, "", *explained, *self.notes, f"$ {self.command}"])


def command(name: str, settings: Settings) -> str:
    """Return the command that runs a study with these settings."""
    words = ["titrant", "reproduce", name, "--replications", str(settings.replications)]
    words += ["--quick"] if settings.quick else []
    words += ["--seed", str(settings.seed)] if settings.seed else []
    words += ["--simulated"] if settings.simulated else []
    return " ".join(words)


def _aligned(table: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def _short(number: float, digits: int = _FEW_DIGITS) -> str:
    return f"{number:.{digits}g}"


def _rounded(value: Any) -> Any:  # noqa: ANN401  (plain values, nested)
    """Return plain values with floats to six digits, and no NaN, which JSON does not know."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value


# ── Figures of studies: one style, SVG and PNG, the same bytes from the same numbers ──────────────

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "titrant",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.facecolor": "white",
}
_SIZE = (9.0, 4.0)
_DPI = 130
COLORS = ("#2a78c2", "#c2572a", "#3a9a5c", "#8a5ac2", "#b8860b", "#5a6b7b", "#c23a7a", "#20a0a0")


def saved(stem: Path, draw: Callable[[Figure], None]) -> None:
    """Write `stem`.svg and `stem`.png as `draw` fills an empty figure."""
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415  (no pyplot: no global state)

    with rc_context(_STYLE):
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw(figure)
        nothing: Any = {"Date": None, "Creator": None}
        with draft(stem.with_name(f"{stem.name}.svg")) as stream:
            figure.savefig(stream, format="svg", metadata=nothing)
        with draft(stem.with_name(f"{stem.name}.png")) as stream:
            figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})


def ribbon(
    axes: Axes,
    x: Sequence[float],
    mean: Sequence[float],
    half: Sequence[float],
    *,
    label: str,
    color: str,
) -> None:
    """Draw a mean with the band mean ± half around it."""
    axes.plot(x, mean, label=label, color=color)
    low = [m - a for m, a in zip(mean, half, strict=True)]
    high = [m + a for m, a in zip(mean, half, strict=True)]
    axes.fill_between(x, low, high, color=color, alpha=0.15, lw=0)


def boxes(axes: Axes, losses: dict[str, Any], *, label: str, most: float | None = None) -> None:
    """Draw 5, 25, 50, 75 and 95 % of losses as one box a rule, the mean printed beside its name.

    ``losses`` maps a rule to its "mean" and "quartiles" (5); ``most`` ends the axis.
    """
    for place, one in enumerate(losses.values()):
        least, low, middle, high, greatest = one["quartiles"]
        axes.plot([least, greatest], [place, place], color="#5a6b7b", lw=0.8, zorder=1)
        axes.barh(place, high - low, left=low, height=0.6, color="#b7d1ea", zorder=2)
        axes.plot([middle, middle], [place - 0.3, place + 0.3], color=COLORS[0], zorder=3)
        axes.plot(one["mean"], place, marker="D", ms=3, color=COLORS[1], zorder=4)
    names = [f"{name}  {one['mean']:.2f}" for name, one in losses.items()]
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    if most is not None:
        axes.set_xlim(0.0, most)


def dots(axes: Axes, values: dict[str, dict[str, list[float]]], *, label: str) -> None:
    """Draw the mean ± 2 SE of values (group → name → numbers), one row a name."""
    for k, (group, by_name) in enumerate(values.items()):
        numbers = [np.asarray(one) for one in by_name.values()]
        error = [2.0 * one.std() / max(len(one) - 1, 1) ** 0.5 for one in numbers]
        places = [place + 0.25 * k for place in range(len(numbers))]
        means = [one.mean() for one in numbers]
        axes.errorbar(means, places, xerr=error, fmt="o", ms=3, color=COLORS[k], label=group)
    axes.set_yticks(range(len(by_name)), list(by_name), fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=1.0)
    axes.axvline(0.0, color="black", lw=0.8)
    axes.set_xlabel(label)
    axes.legend(fontsize=7)
