"""That the page about hidden causes is that of its records.

The full run is `python -m benchmarks.hidden`.
"""

from __future__ import annotations

from benchmarks.confounding.records import records_in
from benchmarks.hidden.page import FEWEST, PAGE, page
from benchmarks.hidden.study import RECORDS


def test_the_page_is_that_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(records_in(RECORDS))


def test_designs_with_few_logs_have_no_row() -> None:
    records = records_in(RECORDS)
    name = records[0]["design"]
    own = [r for r in records if r["design"] == name]
    assert f"| {name} | value | {len(own)} |" in page(own)
    few = page(own[: FEWEST - 1])
    assert f"| {name} |" not in few
    assert f"*{name}* ({FEWEST - 1})" in few
