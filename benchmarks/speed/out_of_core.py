"""Goal 10, logs in files: measured by `benchmarks.scale`, whose last results are told here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.optimize import Line

RESULTS = Path(__file__).parents[1] / "results" / "scale.json"


def out_of_core() -> list[Line]:
    """Return what `python -m benchmarks.scale` found last; nothing if it has not run."""
    if not RESULTS.exists():
        return []
    goals: list[dict[str, Any]] = json.loads(RESULTS.read_text())["goals"]
    return [
        Line(
            10,
            f"files of 10⁷ rows, {goal['goal']}",
            goal["measured"],
            f"≤ {goal['at_most']:g}",
            bool(goal["met"]),
            {},
        )
        for goal in goals
    ]
