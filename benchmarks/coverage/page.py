"""Write the calibration page of the docs: ``python -m benchmarks.coverage.page``."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.coverage.summary import (
    DEFAULT_INTERVAL,
    LARGE,
    keeps_its_band,
    monte_carlo_se,
)

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "calibration.md"

INTRODUCTION = """\
This page compares bandwidth selectors and intervals with each other, on designs whose propensities
are known (estimated in one of them) and with plain outcome models: DR is
`DoublyRobust(outcome=Stack(ridge_pair()))`, SN is `SelfNormalized()`. The reference is the interval
that titrant gave by default before version 0.2, `RobustBiasCorrected(recentered=True)`: it lies
around its bias-corrected center. Today's default lies around the value and has other models. Its
coverage, and what its verdicts are worth, are on [another page](confounding.md), which holds the
same designs too.

Measured by `{command}`, written from its results by `python -m benchmarks.coverage.page`. Each
coverage comes with its Monte-Carlo standard error."""
COVERAGE = """\
At the bandwidth that chooses itself. To be called calibrated, it must cover .93 to .97 in smooth
designs at n ≥ 1000, .91 to .98 at n = 200, and at least .90 where the outcome has a kink at the
policy's dose (all within two Monte-Carlo standard errors)."""
INTERVALS = """\
Coverage of nominal 95 % over the smooth designs: mean, and the worst of them in parentheses.
Robust bias-corrected intervals are recentered. Bootstrap and Bernstein intervals are made around
the estimate at the averaged bias path's bandwidth only. Widths are relative to the first row's."""
SELECTORS = """\
RMSE divided by that of the best single bandwidth for the design, which nobody knows: mean, and the
worst design in parentheses. Selectors that read every row take part in every tenth replication,
leave-one-out up to n = 1000."""
VERDICTS = """\
Coverage of the recentered interval among estimates with each verdict, over all designs and over
those that are made to fail (a policy far off the data, wrong propensities), by the trust rules of
that time. Estimates refused for want of any overlap have no interval. Those of today are
[measured elsewhere](confounding.md#what-a-verdict-is-worth)."""


def page(results: dict[str, Any]) -> str:
    """Return the page as Markdown; every number comes from ``results``."""
    cells = results["cells"]
    good = [c for c in cells if c["sound"]]
    parts = [
        "# Bandwidths and intervals compared",
        INTRODUCTION.format(command=results["command"]),
        "## The recentered 95 % interval",
        COVERAGE,
        _coverage_table(good),
        _outside(good),
        "## Other intervals",
        INTERVALS,
        _interval_table([c for c in good if c["smooth"]]),
        "## Bandwidth selectors",
        SELECTORS,
        _selector_table(good),
        "## The trust rules of then",
        VERDICTS,
        _verdict_table(cells),
    ]
    return "\n\n".join(parts) + "\n"


def _coverage_table(cells: list[dict[str, Any]]) -> str:
    rows: dict[tuple[str, bool], dict[tuple[str, int], str]] = defaultdict(dict)
    for c in cells:
        found = c["intervals"][DEFAULT_INTERVAL]
        text = f"{found['coverage']:.3f} ± {found['coverage_se']:.3f}"
        rows[c["design"], c["smooth"]][c["estimator"], c["n"]] = text
    columns = sorted({(c["estimator"], c["n"]) for c in cells})
    short = {"doubly robust": "DR", "self-normalized": "SN"}
    head = ["design", "kind", *(f"{short[e]}, n = {n}" for e, n in columns)]
    return _table(
        head,
        [
            [name, "smooth" if smooth else "kink", *(row.get(k, "") for k in columns)]
            for (name, smooth), row in rows.items()
        ],
    )


def _outside(cells: list[dict[str, Any]]) -> str:
    """Say which cells do not cover as they should: they are shown, not hidden."""
    missed = [c for c in cells if not keeps_its_band(c)]
    if not missed:
        return f"All {len(cells)} cells are calibrated in this sense."
    named = "; ".join(
        f"{c['design']}, n = {c['n']}, {c['estimator']}: "
        f"{c['intervals'][DEFAULT_INTERVAL]['coverage']:.3f}"
        for c in missed
    )
    return f"{len(cells) - len(missed)} of {len(cells)} cells are. The others: {named}."


def _interval_table(cells: list[dict[str, Any]]) -> str:
    rows = []
    kinds = dict.fromkeys(k for c in cells for k in c["intervals"])
    for kind in kinds:
        cover = {
            large: [
                c["intervals"][kind]["coverage"]
                for c in cells
                if kind in c["intervals"] and (c["n"] >= LARGE) == large
            ]
            for large in (False, True)
        }
        width = [
            c["intervals"][kind]["median_width"] / c["intervals"][DEFAULT_INTERVAL]["median_width"]
            for c in cells
            if kind in c["intervals"]
        ]
        selector, name = kind.split(" | ")
        rows.append(
            [
                name,
                selector,
                *(_mean_and_worst(cover[large], min) for large in (False, True)),
                f"{sum(width) / len(width):.2f}",
            ]
        )
    head = ["interval", "bandwidth", "n = 200", "n ≥ 1000", "relative width"]
    return _table(head, rows)


def _selector_table(cells: list[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for c in cells for name in c["selectors"])
    rows = []
    for name in names:
        ratio = {
            large: [
                c["selectors"][name]["rmse_over_oracle"]
                for c in cells
                if name in c["selectors"] and (c["n"] >= LARGE) == large
            ]
            for large in (False, True)
        }
        rows.append([name, *(_mean_and_worst(ratio[large], max) for large in (False, True))])
    return _table(["selector", "n = 200: mean (worst)", "n ≥ 1000: mean (worst)"], rows)


def _verdict_table(cells: list[dict[str, Any]]) -> str:
    rows = []
    for verdict in ("ok", "warn", "refuse"):
        row = [verdict]
        for chosen in (cells, [c for c in cells if not c["sound"]]):
            count = sum(c["verdicts"][verdict]["replications"] for c in chosen)
            n = sum(c["verdicts"][verdict]["with_interval"] for c in chosen)
            covered = sum(c["verdicts"][verdict]["covered"] for c in chosen)
            share = f"{covered / n:.3f} ± {monte_carlo_se(covered / n, n):.3f}" if n else "–"
            row += [f"{count:,}", share]
        rows.append(row)
    return _table(
        ["verdict", "estimates", "coverage", "of designs made to fail", "coverage there"], rows
    )


def _mean_and_worst(values: list[float], worst: Any) -> str:
    return f"{sum(values) / len(values):.3f} ({worst(values):.3f})" if values else "–"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RESULTS.read_text())))
