"""Write the tables of `docs/explanation/default.md` from the records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.confounding.designs import KNOWN, TUNING
from benchmarks.confounding.records import records_in
from benchmarks.constants import acting
from benchmarks.constants.effects import decides, known_records, table, told
from benchmarks.constants.learner_page import learners
from benchmarks.constants.limits import limits
from benchmarks.constants.study import MODELS, RECORDS, SMOOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.constants.effects import Record

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "default.md"
BEGIN = "<!-- constants: written by python -m benchmarks.constants.page -->\n"
END = "<!-- end of constants -->"
LIMITS_BEGIN = "<!-- limits: written by python -m benchmarks.constants.page -->\n"
LIMITS_END = "<!-- end of limits -->"


def page() -> str:
    """Return the text between the marks."""
    records = known_records(RECORDS)
    known = [r for r in records if r["design"] in KNOWN]
    tuning = [r for r in records if r["design"] in TUNING]
    models = {**SMOOTHING, **MODELS}
    return "\n".join(
        [
            "Each constant is changed alone and the call is made again on the same logs of 1,000",
            "rows (`python -m benchmarks.constants`). RMSE and width are ratios to those of the",
            "default, errors in units of the RMSE of both on their design, so that each design",
            "counts alike; coverage is that of 95 % intervals; ± is a Monte-Carlo standard error,",
            "paired for the ratios. Trust checks play no part: every estimate counts. Where all",
            "intervals of few logs cover, that error is 0 and says nothing.",
            "",
            f"**Calibration designs, known propensities** ({told(known)}):",
            "",
            *table(known, SMOOTHING),
            "",
            decides(known, SMOOTHING),
            "",
            f"**Tuning designs, unknown propensities** ({told(tuning)}):",
            "",
            *table(tuning, models),
            "",
            decides(tuning, models),
            "",
            *on_logs_where_they_act(),
            "### Constants of the learner",
            "",
            learners(),
            "",
        ]
    )


def on_logs_where_they_act() -> list[str]:
    """Return a table for each group of `acting`."""
    failed = sum("failed" in r for r in records_in(acting.RECORDS))
    records = known_records(acting.RECORDS)
    lines = [
        "### On logs where they act",
        "",
        "Other constants act only on some logs: on few rows, on many, on many contexts. They are",
        "changed on such logs (`python -m benchmarks.constants --acting`), of which there are few.",
        "*The same* says that no estimate of these logs moved.",
        *([f"{failed} logs failed and are left out."] if failed else []),
        "",
    ]
    for group in acting.GROUPS:
        of_it = [r for r in records if group.holds(r)]
        lines += [f"**{group.title}** ({told(of_it)}):", "", *table(of_it, group.constants), ""]
        lines += [decides(of_it, group.constants), ""]
    return [*lines, *never_moved(records)]


def never_moved(records: Sequence[Record]) -> list[str]:
    """Return which constants of `acting` did nothing on any of its logs."""
    moved = {
        change.partition("=")[0]
        for record in records
        for change, found in record["found"].items()
        if found != record["found"]["default"]
    }
    still = [f"`{name}`" for name in acting.CONSTANTS if name not in moved]
    if not still:
        return []
    return [
        f"On none of these {len(records)} logs did the values tried of these constants move an",
        f"estimate: {', '.join(still)}. What they do where they act remains unknown.",
        "",
    ]


def main() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text("utf-8")
    for begin, new, end in ((BEGIN, page(), END), (LIMITS_BEGIN, limits(), LIMITS_END)):
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{new}{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
