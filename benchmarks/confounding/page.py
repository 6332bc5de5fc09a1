"""Write the page about confounding from the records."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.confounding.__main__ import DOSES, known_records
from benchmarks.confounding.designs import HELD_OUT, TUNING, Design

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "confounding.md"
INTRODUCTION = """\
# Where dose and outcome share a cause

In most logs a context moved both the dose and the outcome, and nobody wrote down how: a threshold
in kidney function, a site's habits, the hour of the day. The default models have to find out. This
page says how well they do, and what they cannot.

Measured by `python -m benchmarks.confounding`, written by `python -m benchmarks.confounding.page`.
Each log is evaluated by the very default call, without propensities, at two doses; *plain* is the
same with `GaussianMixture()` and `Stack(ridge_pair())`. A *silent miss* is an interval that misses
with the verdict ok. A coverage of .95 from 100 estimates has a Monte-Carlo standard error of .02.
The designs are in `benchmarks/confounding/designs.py`."""
HEADS = {
    "tuning": "## Designs that were looked at while the default was put together",
    "held out": "## Designs that were written down before any of them was run",
}
CLOSING = """\
## What is assumed, what is seen, and what is not

- Every cause that moved both dose and outcome is among the contexts. No table can show one that is
  not.
- Contexts may act by curves, steps, levels of a code, products of two, and all of these together;
  the models find them if there are rows enough. Where overlap is thin a warning says so.
- A shape of many contexts at once, such as a bump in eight, may be found by no learner in 1,000
  rows, and no check sees it. The row marked *radial* is a mild one."""


def main() -> None:
    records = known_records()
    sizes = sorted({r["n"] for r in records})
    parts = [INTRODUCTION]
    for half, designs in (("tuning", TUNING), ("held out", HELD_OUT)):
        parts.append(HEADS[half])
        parts += [table(records, designs, n) for n in sizes]
    PAGE.write_text("\n\n".join([*parts, CLOSING]) + "\n", encoding="utf-8")


def table(records: list[dict[str, Any]], designs: dict[str, Design], n: int) -> str:
    """Return the table of one half of the designs at one size."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for r in records:
        if r["n"] == n and r["design"] in designs:
            groups[r["design"]].append(r)
    heads = ["kind", "estimates", "coverage", "ok", "coverage if ok", "silent misses"]
    heads += ["RMSE", "RMSE, plain", "coverage, plain", "CPU s"]
    lines = [f"n = {n:,}", "", f"| design | {' | '.join(heads)} |", "| --- " * 11 + "|"]
    lines += [row(name, designs[name].kind, groups[name]) for name in designs if groups[name]]
    every = [r for rs in groups.values() for r in rs]
    return "\n".join([*lines, row("all", "", every)] if every else [])


def row(name: str, kind: str, records: list[dict[str, Any]]) -> str:
    rich, plain = of(records, "default"), of(records, "plain")
    ok = np.array([e["verdict"] == "ok" for e in rich])
    covers = np.array([e["covers"] for e in rich])
    cells = [
        kind,
        f"{len(rich):,}",
        f"{covers.mean():.2f}",
        f"{ok.mean():.2f}",
        f"{covers[ok].mean():.2f}" if ok.any() else "–",
        f"{np.mean(ok & ~covers):.3f}",
        f"{rmse(rich):.3f}",
        f"{rmse(plain):.3f}",
        f"{np.mean([e['covers'] for e in plain]):.2f}",
        f"{np.mean([r['default']['cpu'] for r in records]):.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def of(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the estimates that are there, by the default or the plain models."""
    found = [r[kind][str(dose)] for r in records for dose in DOSES]
    return [e for e in found if "error" in e]


def rmse(estimates: list[dict[str, Any]]) -> float:
    return float(np.sqrt(np.mean([e["error"] ** 2 for e in estimates])))


if __name__ == "__main__":
    main()
