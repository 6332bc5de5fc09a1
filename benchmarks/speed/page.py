"""Write the page on performance from the table: ``python -m benchmarks.speed.page``."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "performance.md"
RESULTS = Path(__file__).parents[1] / "results" / "speed.json"
SINCE = RESULTS.with_name("speed_since.json")

INTRODUCTION = """\
# Performance

How long whole calls take as users make them: models, bandwidth, interval and trust checks by
default. Measured by `{command}` (`make bench`), which writes this page from its results. A number
is a ratio of the least CPU times of contestants that took turns on one thread, because an absolute
time says more about the machine than about the code.

{machine}{busy}{sources}"""
HOLDS = """\
## What holds

{lines}"""
MISSED = """\
## Where a target is missed

{lines}"""
LATER = """\
## Not measured yet

{lines}"""
CALLS = """\
## Calls from Python

CPU time of one call, everything by default and the propensity fitted unless said, in that of an
analyst's boosted trees on the same rows: outcome and dose by scikit-learn's
`HistGradientBoostingRegressor` as it comes, in five folds, combined into one doubly robust value
without an interval. In brackets CPU seconds on this machine. "boosted rule" is the dose with the
least prediction of such trees, in five folds.

{lines}"""
COMMANDS = """\
## Commands

CPU time of a whole command on a file with three contexts, propensity fitted, in that of
`python -c "import numpy"`; in brackets CPU seconds on this machine. Compiled code is in its cache.

{lines}"""
TOLD = """\
## For information

{lines}"""
CHANGED = """\
## Before and now

Least CPU time of calls that were public before the rooms of the source were made anew, at
`{commit}`, and still are, after their loops were compiled. Both took turns on one thread. Estimates
are self-normalized, without models, and propensities known, unless a line says otherwise. Measured
by `{command}`, on git trees `{before}` and {now}.

{lines}"""
HOW = """\
## How

- **Models from sums.** One pass over the rows keeps sums of products of each fold's features; fits
  without a fold, ridge paths, weights of the stack and predictions out of fold are small algebra on
  them, equal to fitting anew up to rounding.
- **Rows that count, once.** A compiled loop weighs all rows of a block. Those without weight in any
  question have a baseline and nothing else, so that one term stands for them; the few others are
  gathered, and their moments are one product of matrices. Moments are centered, so an outcome of
  10⁸ + noise loses no digits, and are added in one order, so that threads change no bit. Few rows
  (below 131,072), vector doses, the Gaussian and kernels of your own are weighted in numpy:
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
  compiled code; see `benchmarks/speed/search.py`.
- **Nothing is imported before it is needed**: `import titrant` loads numpy alone."""
WHY = {
    "1": """\
**The default call of many rows.** The self-normalized one beside it has become several times
  faster. Half of the CPU time goes into asking models about all rows, most of that forests and
  landmarks that have not seen them; a quarter is fitting models, on 10,000 rows.""",
    "2-3": """\
**The default call beside boosted trees.** The two take about as long, and which is ahead changes
  from run to run. Two thirds of ours are fitting models on about 10,000 rows, and more than half of
  that is growing forests and finding landmarks; the law of the doses is a quarter of it. A fifth of
  the call is asking models about all rows.""",
    "2-60": """\
**Sixty contexts.** Three quarters of our call are fitting models on about 10,000 rows: the laws of
  the doses and the forests more than a quarter of the call each, the ridges a fifth. The last
  quarter is asking them about all rows.""",
    "3": """\
**A self-normalized call.** Of its CPU time two fifths are evidence for the trust rules: a path of
  bandwidths, sides, balance and support, block by block in numpy. The interval is an eighth, and so
  is each of what is judged by a sample of the columns, the choice of the bandwidth with the
  estimate at it, and the survey of the log with its rows.""",
    "4-evaluate-5000": """\
**First use of few rows.** Nothing is compiled; what the first call takes beyond the second is
  mostly importing scikit-learn and scipy, which the default models need: two thirds of it.""",
    "4-evaluate-40000": """\
**First use of 40,000 rows.** Nothing is compiled either. Nine tenths of what the first call takes
  beyond the second are imports, three quarters of them scikit-learn's with what it loads of scipy
  and pandas, which alone take about as long as the target allows.""",
    "4-evaluate-1000000": """\
**First use of a million rows.** Here loops are worth their while, and are compiled.
  `titrant warm-up` does it ahead of time, and of several processes one compiles for all.""",
    "4-learn-5000": """\
**First learning.** The loops of the search are compiled; `titrant warm-up` does that, too, ahead of
  time.""",
    "6": """\
**The command line.** In a profile of the whole command, three quarters of its CPU time are imports,
  two fifths scikit-learn's, which the default models grow their trees with and which loads
  scipy.stats and pandas itself. The models are a sixth, reading the file a twentieth.""",
    "7": """\
**Ten million rows of files.** Reading the columns, which it is held against, is less than a
  hundredth of the call. Models are asked once about each row, as in memory; later passes go over
  the rows with their answers. Memory is that of the blocks that threads hold and of the sample.""",
    "9": """\
**Dask.** A pass may give a partition to another worker than the pass before, which then has to ask
  the models again. Naming a task takes a hash of all models it holds, and each worker imports what
  models need.""",
    "10": """\
**Learning 10,000 rows.** The rule is learned three times, on all rows and on each half, so that its
  value is honest; more than half of learning is the search of each class from many starts. The
  boosted trees next to it are fitted five times, and nothing is graded or searched.""",
    "13-search": """\
**32 restarts, and the exact optimum.** On another processor all were fast enough: 15 times scipy's
  speed and more at n = 400, and 46 evaluations for the exact optimum. Where a line counts as missed
  though it is fast, its best value is not scipy's to 10⁻⁶. Which of many valleys the best of 32
  random starts finds is chance: in twelve searches with 82 contexts, by centered IPW and doubly
  robust on six logs other than those above, our best was more than 10⁻⁶ above scipy's once, by
  3·10⁻⁵, and below it five times, by up to 4·10⁻⁵. The median of our 32 values is never above
  scipy's where one is missed.""",
    "13-intervals": """\
**The bootstrap.** It draws for the rows near the policy alone. How that compares with drawing whole
  logs anew depends on the processor: on another one it was 78 times as fast.""",
}
"""Why a step misses its target, as profiles showed, by its name; told while it does."""
NOTES = {
    "12": """\
The target for 27 bandwidths near a bound was 10 evaluations, when one was a compiled loop of 2.8
ms. An evaluation now goes through numpy's moments and takes several times as long, so the path in
our own evaluations looks shorter than it is, and there is no verdict: in the loop of then it would
be above 14.""",
}
"""What is to be known about numbers for information, by step."""
LOOPS_LATER = (
    "Numpy weighs the rows, as compiled loops begin at 131,072 of them, no longer at 32,768: the "
    "first call compiles nothing. By the loops it would take "
)
SLOWER = {
    "evaluate, bandwidth chosen, n = 100,000": f"{LOOPS_LATER}0.073 s.",
    "evaluate, bandwidth given, n = 100,000": f"{LOOPS_LATER}0.072 s.",
    "compare, five policies, n = 100,000": f"{LOOPS_LATER}0.15 s.",
    "curve, nine doses, n = 100,000": f"{LOOPS_LATER}0.24 s, a seventh of that for weighing the "
    "rows on each side of a dose, by which a trust rule now judges.",
    "bandwidth_path, 27 bandwidths, n = 1,000,000": "The path itself takes what it took. Before it "
    "the log is now surveyed as files are: range and moments of every column, and 100,000 rows "
    "drawn by their numbers, in which point masses of the dose are looked for, which is new.",
}
"""What a call does beyond what it did, where it takes over a tenth longer, as profiles showed; told
while it does."""
TENTH = 1.1
UNNAMED = "a version before those, whose commit was not kept"
EVERY = {
    "1": "`evaluate()` of 10⁶ rows beside a self-normalized one",
    "2-3": "`evaluate()` of 10⁵ rows with 3 contexts beside boosted trees",
    "2-60": "`evaluate()` of 10⁵ rows with 60 contexts beside boosted trees",
    "3": "a self-normalized `evaluate()` of 10⁶ rows beside numpy",
    "4-evaluate-5000": "the first `evaluate()` after installation, of 5,000 rows",
    "4-evaluate-40000": "the same of 40,000 rows",
    "4-evaluate-1000000": "the same of 10⁶ rows",
    "4-learn-5000": "the first rule learned after installation, from 5,000 rows",
    "5": "a call where nothing can be written",
    "6": "`titrant evaluate` on a small file",
    "7": "`evaluate()` over files of 10⁷ rows beside reading them",
    "8": "`evaluate()` in memory beside over files",
    "9": "Dask beside threads",
    "10": "learning from 10⁴ rows beside boosted trees",
    "11": "learning from 10⁵ rows beside 10⁴, and its memory",
    "12": "27 bandwidths near a bound",
    "13-search": "searches beside scipy",
    "13-intervals": "intervals beside resampling",
    "13-plug-in": "the plug-in beside statsmodels",
    "13-imports": "importing",
    "13-growth": "growth with the rows",
}

Line = dict[str, Any]


def write(table: dict[str, Any]) -> None:
    """Write the page."""
    PAGE.write_text(text(table))


def text(table: dict[str, Any]) -> str:
    """Return the page as Markdown; every number comes from the results."""
    steps: dict[str, Any] = table["steps"]
    of = {
        name: [line | {"step": name} for line in step["lines"]]
        for name, step in steps.items()
        if not name.startswith(("calls", "commands"))
    }
    lines = [line for found in of.values() for line in found]
    held = [line for line in lines if line["goal"] and line["passed"]]
    missed = [line for line in lines if line["goal"] and not line["passed"]]
    told = [line for line in lines if not line["goal"]]
    later = [f"- {what}" for name, what in EVERY.items() if name not in steps]
    parts = [
        INTRODUCTION.format(
            command=table["command"],
            machine=_machine(table),
            busy=_busy(steps),
            sources=_sources(steps),
        )
    ]
    if held:
        parts.append(HOLDS.format(lines=_lines(held, "at least or at most")))
    if missed:
        why = [f"- {WHY[name]}" for name in dict.fromkeys(x["step"] for x in missed) if name in WHY]
        parts.append(MISSED.format(lines=_lines(missed, "target")))
        parts += ["\n".join(why)] if why else []
    if later:
        parts.append(LATER.format(lines="\n".join(later)))
    parts += [
        frame.format(lines=_by_size(found))
        for frame, kind in ((CALLS, "calls"), (COMMANDS, "commands"))
        if (found := [x for s, step in steps.items() if s.startswith(kind) for x in step["lines"]])
    ]
    if told:
        parts.append(TOLD.format(lines=_lines(told, "")))
        parts += [NOTES[name] for name in dict.fromkeys(x["step"] for x in told) if name in NOTES]
    if SINCE.exists():
        parts.append(changed(json.loads(SINCE.read_text())))
    return "\n\n".join([*parts, HOW]) + "\n"


def changed(table: dict[str, Any]) -> str:
    """Return the section on what calls took before a change and take now."""
    calls, before = table["calls"], table["before"]
    cells = {
        name: (f"{x['before']:.2g} s", f"{x['now']:.2g} s", f"{x['now'] / x['before']:.2f}")
        if "now" in x
        else (f"cannot be asked {x['cannot']}", "", "")
        for name, x in calls.items()
    }
    parts = [
        CHANGED.format(
            commit=before["commit"],
            before=before["source"],
            now=" and ".join(dict.fromkeys(f"`{x['source']}`" for x in calls.values())),
            command=table["command"],
            lines=_table(("call", "before", "now", "ratio"), [(n, *c) for n, c in cells.items()]),
        )
    ]
    why = [
        fill(f"- **{name}.** {SLOWER[name]}", 100, subsequent_indent="  ", break_on_hyphens=False)
        for name in slower(table)
        if name in SLOWER
    ]
    return "\n\n".join([*parts, *(["\n".join(why)] if why else [])])


def slower(table: dict[str, Any]) -> list[str]:
    """Return the calls that take over a tenth longer than before."""
    calls = table["calls"].items()
    return [name for name, x in calls if "now" in x and x["now"] > TENTH * x["before"]]


def _machine(table: dict[str, Any]) -> str:
    facts = table["machine"]
    named = (f"{name} {facts[name]}" for name in ("numpy", "numba", "scipy", "scikit-learn"))
    about = f"{facts['processor']}, {facts['cores']} cores, Python {facts['python']}"
    return f"Machine: {about}, {', '.join(named)}."


def _busy(steps: dict[str, Any]) -> str:
    loads = [step["load"] for step in steps.values() if step["load"] is not None]
    if not loads or max(loads) < 1.5:
        return ""
    return (
        f"\nIt was busy with other work: up to {max(loads):.0f} processes shared its cores, which "
        "makes caches colder\nand ratios rougher."
    )


def _sources(steps: dict[str, Any]) -> str:
    """Return which steps were measured on which version of the source, where there are several."""
    measured: dict[str, list[str]] = {}
    for name, step in steps.items():
        what = "calls from Python" if name.startswith("calls") else "commands"
        measured.setdefault(step["source"], []).append(EVERY.get(name, what))
    if len(measured) < 2:
        return ""
    lines = [
        f"- {UNNAMED if version == 'before' else f'`{version}`'}: {'; '.join(dict.fromkeys(named))}"
        for version, named in measured.items()
    ]
    told = "The steps were measured on several versions of the source, each by its git tree:"
    return "\n\n".join(["", told, "\n".join(lines)])


def _lines(lines: list[Line], asked: str) -> str:
    """Return a table of lines; the same work measured several times has one."""
    of: dict[tuple[str, str], list[float]] = {}
    for x in lines:
        of.setdefault((x["work"], x["asked"]), []).append(x["ratio"])
    return _table(
        ("work", "measured", asked),
        [(work, " … ".join(_ends(found)), asked) for (work, asked), found in of.items()],
    )


def _ends(found: list[float]) -> list[str]:
    return list(
        dict.fromkeys(f"{x:,.3g}" if x < 1000 else f"{x:,.0f}" for x in (min(found), max(found)))
    )


def _by_size(lines: list[Line]) -> str:
    """Return a table with a column for each number of rows."""
    sizes = sorted({x["details"]["n"] for x in lines})
    rows: dict[tuple[str, Any], dict[int, str]] = {}
    for x in lines:
        d = x["details"]
        cell = f"{x['ratio']:.2g} ({d['seconds']:.2g} s)"
        rows.setdefault((d["call"], d.get("p")), {})[d["n"]] = cell
    by_p = sorted(rows, key=lambda key: key[1] or 0)
    named = [
        (call if p is None else f"{call}, {p} contexts", *(rows[call, p].get(n, "") for n in sizes))
        for call, p in by_p
    ]
    return _table(("call", *(f"{n:,} rows" for n in sizes)), named)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ("---",) * len(head), *rows])


if __name__ == "__main__":
    write(json.loads(RESULTS.read_text()))
