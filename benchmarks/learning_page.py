"""Write the page on the learner's measured quality: ``python -m benchmarks.learning_page``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.learning import OUT
from benchmarks.rules.page import section

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "learning.md"

INTRODUCTION = """\
All choices of the learner are made from logged data. This page is written from records by
`python -m benchmarks.learning_page`."""
OLDER = """\
## An older learner, which always learned a line

Measured by `{command}` on seeds that no setting was chosen by, before version 0.2: *default* is
the learner of then. Every number is a mean over replications with its Monte-Carlo standard error.
That of today chooses the shape of its rule, and is what the tables above are about."""
DESIGNS = """\
*One parameter* is the paper's design with one context, n = 300, its best policy worth 0. *Linear
truth* has five contexts, n = 2000, noise of sd .5; `moved by a shift`: how far ±20 on the outcomes
moves any coefficient. *Ten contexts* is the paper's second design, n = 400, with the propensity by
linear regression; A with the doses of the authors' code, B with overlap. Its best rule through 0
is 6.25 worse than the best one with an intercept, so what the default learns is compared with the
latter; the class without intercept is what the paper learns. *No effect* draws outcomes that the
dose does not touch. *Honest interval* asks whether the interval covers the true value of the policy
learned on all rows."""
COLUMNS = ("design", "replications", "measured", "mean")


def page(results: dict[str, Any]) -> str:
    """Return the page as Markdown; every number comes from ``results``."""
    rows = [row for found in results["experiments"] for row in _rows(found)]
    table = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    notes = [f"- {e['name']}: {e['note']}." for e in results["experiments"] if e["note"]]
    parts = [
        "# How good learned policies are",
        INTRODUCTION,
        section(),
        OLDER.format(command=results["command"]),
        "\n".join(f"| {' | '.join(row)} |" for row in table),
        "### The designs",
        DESIGNS,
        "\n".join(dict.fromkeys(notes)),
        f"Machine: {results['machine']}.",
    ]
    return "\n\n".join(parts) + "\n"


def _rows(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one row for each number of an experiment."""
    return [
        (
            found["name"],
            str(found["replications"]),
            key.replace("_", " "),
            f"{mean:.4f} ± {found['standard_error'][key]:.4f}",
        )
        for key, mean in found["mean"].items()
    ]


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(OUT.read_text())))
