"""The page "The paper, reproduced": written from the committed results, and true to them."""

from __future__ import annotations

import re

import reproduced

RESULT = {
    "name": "figure-9",
    "title": "A title",
    "claim": "a claim.",
    "command": "titrant reproduce figure-9 --replications 7",
    "settings": {"replications": 7, "seed": 3, "simulated": False, "quick": False, "data": None},
    "rows": [
        {
            "label": "a | b",
            "quantity": "mean",
            "ours": 1.5,
            "se": 0.25,
            "paper": 1.0,
            "limits": [1.0, 2.0],
            "note": "",
            "verdict": "holds",
        },
        {
            "label": "c",
            "quantity": "mean",
            "ours": 4.0,
            "se": 0.1,
            "paper": None,
            "limits": [1.0, 2.0],
            "note": "Because.",
            "verdict": "fails, explained",
        },
        {
            "label": "d",
            "quantity": "mean",
            "ours": 5.0,
            "se": None,
            "paper": None,
            "limits": None,
            "note": "",
            "verdict": "reported",
        },
    ],
    "series": {},
    "sample": {},
    "notes": ["A note."],
}


def test_the_page_is_written_from_the_committed_results():
    # After a study was run anew: python scripts/reproduced.py
    assert reproduced.PAGE.read_text("utf-8") == reproduced.page(reproduced.committed())


def test_every_result_has_a_section_with_table_figure_and_command():
    page = reproduced.page({"figure-9": RESULT})
    section = page[page.index("## figure-9") :]
    assert "| a \\| b | mean | 1 | 1.5 ± 0.25 | 1 … 2 | holds |" in section
    assert "- c: Because." in section
    assert "A note." in section
    assert "(../../results/figure-9.svg)" in section
    assert "`titrant reproduce figure-9 --replications 7` (seed 3, 7 replications" in section
    # What nothing is held against is folded up.
    assert section.index("<details") < section.index("| d | mean |") < section.index("</details>")


def test_the_summary_counts_verdicts():
    page = reproduced.page({"figure-9": RESULT})
    line = next(line for line in page.splitlines() if line.startswith("| [figure-9]"))
    # holds, open, FAILS, explained, reported
    assert line.endswith("| 1 |  |  | 1 | 1 |")


def test_what_has_not_been_run_is_said():
    page = reproduced.page({})
    for name, place in reproduced.PLACES.items():
        assert f"## {place}\n\nNot run yet: `titrant reproduce {name}`" in page


def test_made_up_patients_are_called_so():
    simulated = RESULT | {"settings": RESULT["settings"] | {"simulated": True}}
    assert "Made-up patients" in reproduced.page({"figure-9": simulated})
    assert "Made-up patients" not in reproduced.page({"figure-9": RESULT})


def test_figures_and_links_of_the_page_exist():
    text = reproduced.PAGE.read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (reproduced.PAGE.parent / target).exists(), target
