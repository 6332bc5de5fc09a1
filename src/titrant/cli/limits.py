"""Limits of the real world, as they are typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from titrant.cli.inputs import columns
from titrant.cli.options import column_names, option
from titrant.cli.terminal import bad_value

if TYPE_CHECKING:
    from titrant.data.source import Source
    from titrant.learn.limits import Limits


class NumbersText(click.ParamType):  # type: ignore[type-arg]  # newer clicks only
    """A number, or several with commas between."""

    name = "X[,X…]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text as it is, once it can be understood."""
        text = str(value)
        try:
            numbers(text)
        except ValueError:
            self.fail(f"{text!r} is neither a number nor numbers with commas between.", param, ctx)
        return text


def numbers(text: str) -> float | list[float]:
    """Return a number, or several with commas between."""
    found = [float(part) for part in text.split(",") if part.strip()]
    return found if "," in text else float(text)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """What the learned rule must keep to."""

    steps: str | None = option(
        "--steps",
        type=NumbersText(),
        help="The doses there are: multiples of `2.5`, or the strengths `1,2,5`.",
    )
    at_least: str | None = option(
        "--at-least", metavar="X|COLUMN", help="The smallest dose: a number, or each row's own."
    )
    at_most: str | None = option(
        "--at-most", metavar="X|COLUMN", help="The largest dose: a number, or each row's own."
    )
    current: str | None = option(
        "--current", metavar="COLUMN", help="Each row's dose so far, for --largest-change."
    )
    largest_change: float | None = option(
        "--largest-change", type=float, metavar="X", help="How far the dose may be from --current."
    )
    increasing: tuple[str, ...] = column_names(
        "--increasing", "Contexts with which the dose must not fall."
    )
    decreasing: tuple[str, ...] = column_names(
        "--decreasing", "Contexts with which the dose must not rise."
    )
    mean_dose: float | None = option(
        "--mean-dose", type=float, metavar="X", help="The budget: the mean dose is at most this."
    )
    equal_across: str | None = option(
        "--equal-across",
        metavar="COLUMN:MARGIN",
        help="The mean doses of the groups of a column differ by at most a margin: `sex:0.5`.",
    )
    alike_across: str | None = option(
        "--alike-across",
        metavar="COLUMN:MARGIN",
        help="The mean outcomes of the groups of a column under the rule differ by at most a "
        "margin: `sex:0.5`.",
    )
    cap: str | None = option(
        "--cap",
        metavar="COLUMN:MOST",
        help="The mean of a second outcome under the rule is at most this: `nausea:0.3`. The "
        "column is no context.",
    )


def named_number(text: str | None, name: str) -> tuple[str, float] | None:
    """Return a column and the number behind its colon."""
    if text is None:
        return None
    column, colon, value = text.rpartition(":")
    try:
        if colon and column:
            return column, float(value)
    except ValueError:
        pass
    raise bad_value(name, f"{text!r} is not a column, a colon and a number.")


def limits(options: LimitOptions, second: Source | None) -> Limits | None:
    """Return the limits that were typed; None if there are none.

    ``second`` is the log with the outcome that has a cap.
    """
    import titrant as tt  # noqa: PLC0415

    if (options.current is None) != (options.largest_change is None):
        raise bad_value("--largest-change", "It is from --current: give both, or neither.")
    equal = named_number(options.equal_across, "--equal-across")
    alike = named_number(options.alike_across, "--alike-across")
    cap = named_number(options.cap, "--cap")
    made = tt.Limits(
        steps=None if options.steps is None else numbers(options.steps),
        at_least=_end(options.at_least),
        at_most=_end(options.at_most),
        current=options.current,
        largest_change=options.largest_change,
        increasing=tuple(columns(options.increasing)),
        decreasing=tuple(columns(options.decreasing)),
        mean_dose=options.mean_dose,
        equal_across=None if equal is None else equal[0],
        margin=None if equal is None else equal[1],
        alike_across=None if alike is None else alike[0],
        value_margin=None if alike is None else alike[1],
        cap=None if cap is None else tt.Cap(log=second, at_most=cap[1], name=cap[0]),  # type: ignore[arg-type]  # refused there if it is in files
    )
    return made if made.parts else None


def _end(text: str | None) -> float | str | None:
    """Return a number, or the name of a column."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
