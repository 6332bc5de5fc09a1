"""Goal 10: files larger than memory, from the results of ``python -m benchmarks.scale``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.optimize import Line

RESULTS = Path(__file__).parents[1] / "results" / "scale.json"


def out_of_core() -> list[Line]:
    """Return the lines about goal 10 that the last run of the scale benchmark wrote, if any."""
    if not RESULTS.exists():
        return []
    lines: list[dict[str, Any]] = json.loads(RESULTS.read_text()).get("lines", [])
    return [Line(**{**line, "goal": 10}) for line in lines]
