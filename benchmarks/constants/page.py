"""Write the tables of `docs/explanation/default.md` from the records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.designs import KNOWN, TUNING
from benchmarks.confounding.records import records_in
from benchmarks.constants.limits import limits
from benchmarks.constants.study import MODELS, RECORDS, SMOOTHING, place_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Array = np.ndarray
    Record = dict[str, Any]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "default.md"
BEGIN = "<!-- constants: written by python -m benchmarks.constants.page -->\n"
END = "<!-- end of constants -->"
LIMITS_BEGIN = "<!-- limits: written by python -m benchmarks.constants.page -->\n"
LIMITS_END = "<!-- end of limits -->"
HEAD = ("constant", "value", "tried", "RMSE", "coverage", "width")


def page() -> str:
    """Return the text between the marks."""
    records = [r for r in records_in(RECORDS) if "failed" not in r]
    known = [r for r in records if r["design"] in KNOWN]
    tuning = [r for r in records if r["design"] in TUNING]
    return "\n".join(
        [
            "Each constant is changed alone and the call is made again on the same logs of 1,000",
            "rows (`python -m benchmarks.constants`). RMSE and width are ratios to those of the",
            "default, coverage is that of 95 % intervals; ± is a Monte-Carlo standard error,",
            "paired for the ratios. Trust checks play no part: every estimate counts. Where all",
            "intervals of few logs cover, that error is 0 and says nothing.",
            "",
            f"**Calibration designs, known propensities** ({told(known)}):",
            "",
            *table(known, SMOOTHING),
            "",
            f"**Tuning designs, unknown propensities** ({told(tuning)}):",
            "",
            *table(tuning, {**SMOOTHING, **MODELS}),
            "",
        ]
    )


def told(records: Sequence[Record]) -> str:
    errors, covered, _ = numbers(records, "default")
    designs = len({r["design"] for r in records})
    share = np.mean([c.mean() for c in covered])
    return (
        f"{len(records)} logs of {designs} designs, {sum(map(len, errors))} estimates; the default "
        f"covers {share:.3f} ± {clustered(covered):.3f}"
    )


def table(records: Sequence[Record], constants: Mapping[str, tuple[float, float]]) -> list[str]:
    rows = [HEAD, ("---",) * len(HEAD)]
    for name, values in constants.items():
        now = f"{place_of(name).value:g}"
        changes = [(f"{value:g}", effect(records, f"{name}={value:g}")) for value in values]
        rows += [(f"`{name}`", now, tried, *found) for tried, found in changes]
    return ["| " + " | ".join(row) + " |" for row in rows]


def effect(records: Sequence[Record], change: str) -> tuple[str, str, str]:
    """Return the ratio of RMSEs, the coverage and the ratio of widths, with their errors."""
    before, after = numbers(records, "default"), numbers(records, change)
    if all(np.array_equal(a, b) for a, b in zip(before[0], after[0], strict=True)) and all(
        np.array_equal(a, b) for a, b in zip(before[2], after[2], strict=True)
    ):
        return "the same", "the same", "the same"
    # Errors in units of their design's RMSE, so that no design outweighs the others.
    units = unit_errors(records)
    a, b = (squares(errors, units) for errors in (before[0], after[0]))
    ratio = float(np.sqrt(b.mean() / a.mean()))
    spread = (b / b.mean() - a / a.mean()).std() / np.sqrt(len(a)) * ratio / 2
    covered = np.mean([c.mean() for c in after[1]])
    widths = np.array([np.log(w2 / w1).mean() for w1, w2 in zip(before[2], after[2], strict=True)])
    return (
        f"{ratio:.3f} ± {spread:.3f}",
        f"{covered:.3f} ± {clustered(after[1]):.3f}",
        f"{np.exp(widths.mean()):.3f}",
    )


def numbers(records: Sequence[Record], change: str) -> tuple[list[Array], list[Array], list[Array]]:
    """Return errors, coverage and widths of the policies of each log."""
    errors, covered, widths = [], [], []
    for record in records:
        truth = np.array(record["truth"])
        value, low, high = np.array(record["found"][change]).T
        errors.append(value - truth)
        covered.append(((low <= truth) & (truth <= high)).astype(float))
        widths.append(high - low)
    return errors, covered, widths


def unit_errors(records: Sequence[Record]) -> list[float]:
    """Return the default's RMSE on the design of each log."""
    by_design: dict[str, list[Array]] = {}
    for record, error in zip(records, numbers(records, "default")[0], strict=True):
        by_design.setdefault(record["design"], []).append(error)
    rmse = {name: float(np.sqrt(np.mean(np.square(e)))) for name, e in by_design.items()}
    return [rmse[record["design"]] for record in records]


def squares(errors: Sequence[Array], units: Sequence[float]) -> Array:
    """Return the mean squared error of each log, in its unit."""
    return np.array([np.mean((e / unit) ** 2) for e, unit in zip(errors, units, strict=True)])


def clustered(covered: Sequence[Array]) -> float:
    """Return the standard error of the mean coverage, the policies of a log one draw."""
    each = np.array([c.mean() for c in covered])
    return float(each.std() / np.sqrt(len(each)))


def main() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text("utf-8")
    for begin, new, end in ((BEGIN, page(), END), (LIMITS_BEGIN, limits(), LIMITS_END)):
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{new}{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
