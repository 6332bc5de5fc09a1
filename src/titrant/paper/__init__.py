"""The paper's experiments, one file each, written with the public names of titrant alone.

A study is made of independent pieces of work, which are measured side by side and kept as they
come (`study`), and ends as a table with verdicts (`result`) and a figure (`figures`).
``titrant reproduce figure-1 --quick`` runs one.
"""

from __future__ import annotations

from titrant.paper import figure_1, figure_2, figure_4, ten_contexts, theory, warfarin
from titrant.paper.result import Result, Row, StatementVerdict
from titrant.paper.study import Findings, Piece, Settings, Study, Task

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        figure_1.NORMAL,
        figure_1.UNIFORM,
        figure_2.UNIFORM,
        figure_2.NORMAL,
        figure_4.STUDY,
        ten_contexts.STUDY,
        warfarin.FIGURE_6,
        warfarin.TABLE_1,
        theory.STUDY,
    )
}
"""Every study by its name, in the order of the paper."""

__all__ = [
    "STUDIES",
    "Findings",
    "Piece",
    "Result",
    "Row",
    "Settings",
    "StatementVerdict",
    "Study",
    "Task",
]
