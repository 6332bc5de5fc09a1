"""Write the page "The paper, reproduced" from results/*.json: ``python scripts/reproduced.py``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from titrant.paper import STUDIES
from titrant.paper.result import HEADINGS, Row, StatementVerdict

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "explanation" / "reproduced.md"

INTRODUCTION = """\
Kallus and Zhou, [Policy Evaluation and Optimization with Continuous
Treatments](https://proceedings.mlr.press/v84/kallus18a.html) (AISTATS 2018): every figure, the
table and the theorems, run again with titrant's public functions. This page is written from
`results/` by `python scripts/reproduced.py`: every measured number comes from there. The files in
`results/` are what `titrant reproduce` wrote. The tests measure a part of every experiment again
and compare, so that a change of the code that moves a number is noticed.

Numbers stand beside the paper's, where the paper prints one. A *statement* is what a theorem
predicts about a number, or what the paper claims, written so that it can fail. It *holds* where our
number is on the right side, however near; it is *open* where our number is on the wrong side by no
more than two Monte-Carlo standard errors; or it *fails* with the reason below the table. Numbers
without a statement are *reported*. Settings that the paper does not give are listed as ours:
another choice gives other numbers. Corrections to the paper are on the page [errata](errata.md),
its theorems in plain words on [theorems](theorems.md)."""

PLACES = {
    "figure-1": "Figure 1",
    "figure-1-uniform": "Figure 1 with doses logged at random",
    "figure-2": "Figure 2",
    "figure-3": "Figure 3",
    "figure-4": "Figure 4",
    "figure-5": "Figure 5",
    "figure-6": "Figure 6",
    "table-1": "Table 1",
    "theory": "The theorems",
}
"""Every experiment, in the order of the paper."""
SIMULATED = "**Made-up patients** stand in for the warfarin table in this run."
FOUND = {
    "figure-1": (
        "The error of the kernel estimates falls with n, and the discretized estimate is biased. "
        "Its variance is larger at the paper's plug-in bandwidth with the normal-reference pilot, "
        "which is ours; with half of that pilot the ratio of standard deviations is {half}, which "
        "does not decide it, and at the constant of the authors' code it is {constant}."
    ),
    "figure-1-uniform": (
        "The same, with a smaller bias of the discretized estimate. The ratio is {half} with half "
        "of the pilot and {constant} at the constant of the authors' code."
    ),
    "figure-2": (
        "The mean of every kernel estimate is least at β = 1, to the steps of the grid. How tight "
        "evaluations are near it is drawn, not tested."
    ),
    "figure-3": (
        "The mean of every kernel estimate is least at β = 1, to the steps of the grid. How tight "
        "evaluations are near it is drawn, not tested."
    ),
    "figure-4": "It does, at every bandwidth tried.",
    "figure-5": (
        "With the penalty of the authors' code, alone or with their other settings, the kernel "
        "estimate beats discretizing on every draw and is level with the direct forest. Without "
        "penalty (our four starts) it overfits. Titrant's default comes near the best rule of its "
        "class, because its library holds the true outcome model and the stack finds it; with "
        "trees only it does worse."
    ),
    "figure-6": "As in table 1, on fewer splits.",
    "table-1": (
        "The kernel estimate is far better than the mean dose. It does not clearly improve on the "
        "direct method: the same forest, asked dose by dose, is level with it, and a linear rule "
        "from that forest is ahead. Searched as the paper describes, without standardizing, it is "
        "worse than the mean dose. Titrant's default makes every choice from the log and comes "
        "close to the best linear rule that sees the truth."
    ),
    "theory": (
        "The rates hold. Some of the paper's constants are wrong: its column is its formula, "
        "evaluated, and [errata](errata.md) has the corrections."
    ),
}
"""What the numbers say about the claim, in a sentence; names in braces are those of `QUOTED`."""
QUOTED = {
    "half": "discretized ÷ kernel, plug-in as printed, half pilot",
    "constant": "discretized ÷ kernel, h = 0.1",
}
"""Rows whose numbers the sentences quote."""
AGAIN = (
    "To repeat: `{command}` (seed {seed}, {replications:,} replications; each draws its log from "
    "the seed and its own number)."
)
EMPTY = {"–", StatementVerdict.REPORTED.value}
MISSING = "Not run yet: `titrant reproduce {name}`"


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page as Markdown; every number comes from ``results``."""
    places = PLACES | {name: name for name in results if name not in PLACES}
    sections = [_section(name, place, results.get(name)) for name, place in places.items()]
    parts = ["# The paper, reproduced", INTRODUCTION, _summary(places, results), *sections]
    return "\n\n".join(parts) + "\n"


def committed() -> dict[str, dict[str, Any]]:
    """Return every result in results/ by its name."""
    read = (json.loads(path.read_text("utf-8")) for path in sorted(RESULTS.glob("*.json")))
    return {result["name"]: result for result in read}


def _summary(places: dict[str, str], results: dict[str, dict[str, Any]]) -> str:
    """Return one line for each experiment: how many statements hold."""
    verdicts = list(StatementVerdict)
    head = ["", *(verdict.value for verdict in verdicts)]
    lines = []
    for name, place in places.items():
        if name not in results:
            lines.append([f"{place}, not run yet", *("" for _ in verdicts)])
            continue
        counted = Counter(_row(entry).verdict for entry in results[name]["rows"])
        counts = [str(counted[verdict] or "") for verdict in verdicts]
        lines.append([f"[{place}](#{_anchor(place)})", *counts])
    return _table(head, lines)


def _section(name: str, place: str, result: dict[str, Any] | None) -> str:
    """Return an experiment: claim, figure, table, explanations, command and seeds."""
    if result is None:
        return f"## {place}\n\n{MISSING.format(name=name)}"
    rows = [_row(entry) for entry in result["rows"]]
    judged = [row for row in rows if row.limits is not None or row.paper is not None]
    others = [row for row in rows if row.limits is None and row.paper is None]
    settings = result["settings"]
    parts = [
        f"## {place}",
        f"{result['title']}. **The paper says:** {result['claim']}",
        f"**We find:** {_found(name, rows)}" if name in FOUND else "",
        SIMULATED if settings["simulated"] else "",
        f"![{place}: {result['title']}](../../results/{name}.svg)",
        _rows(judged),
        _explanations(rows),
        *result["notes"],
        _ours(name),
        _folded(others) if judged else _rows(others),
        AGAIN.format(command=result["command"], **settings),
    ]
    return "\n\n".join(part for part in parts if part)


def _found(name: str, rows: list[Row]) -> str:
    """Return what the numbers say, those it quotes taken from the rows."""
    ours = {row.label: _cells(row)[3] for row in rows}
    return FOUND[name].format(**{key: ours.get(label, "–") for key, label in QUOTED.items()})


def _ours(name: str) -> str:
    """Return the settings of an experiment that the paper does not give."""
    study = STUDIES.get(name)
    listed = "\n".join(f"- {setting}" for setting in study.ours) if study else ""
    return f"Our settings, where the paper gives none:\n\n{listed}" if listed else ""


def _explanations(rows: list[Row]) -> str:
    """Return every note once, with the rows that it is about."""
    about: dict[str, list[str]] = {}
    for row in rows:
        if row.note and row.label not in about.setdefault(row.note, []):
            about[row.note].append(row.label)
    return "\n".join(f"- {'; '.join(labels)}: {note}" for note, labels in about.items())


def _folded(rows: list[Row]) -> str:
    """Return the rows that nothing is held against, folded up."""
    if not rows:
        return ""
    title = f"<summary>{len(rows)} more numbers</summary>"
    return f'<details markdown="1">\n{title}\n\n{_rows(rows)}\n\n</details>'


def _rows(rows: list[Row]) -> str:
    """Return the table of rows, without columns that are empty: it fits a phone."""
    if not rows:
        return ""
    cells = [list(HEADINGS), *(_cells(row) for row in rows)]
    kept = [k for k in range(len(HEADINGS)) if any(line[k] not in EMPTY for line in cells[1:])]
    head, *lines = ([line[k] for k in kept] for line in cells)
    return _table(head, lines)


def _cells(row: Row) -> list[str]:
    """Return a row as texts, the numbers of the paper with a digit more."""
    label, quantity, paper, *rest = row.cells()
    return [label, quantity, paper if row.paper is None else f"{row.paper:.4g}", *rest]


def _row(entry: dict[str, Any]) -> Row:
    """Return a row of a table from its plain values."""
    fields = {name: value for name, value in entry.items() if name != "verdict"}
    return Row(**fields | {"limits": None if entry["limits"] is None else tuple(entry["limits"])})


def _table(head: list[str], rows: list[list[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in (head, *rows)]
    lines = [escaped[0], ["---"] * len(head), *escaped[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _anchor(place: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it."""
    return place.lower().replace(",", "").replace(" ", "-")


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(committed()), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} has been written.")
