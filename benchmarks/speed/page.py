"""Write the page on performance from the table: ``python -m benchmarks.speed.page``."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.speed.calls import COMMANDS as FILES
from benchmarks.speed.calls import IN_PYTHON

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "performance.md"
RESULTS = Path(__file__).parents[1] / "results" / "speed.json"
SINCE = RESULTS.with_name("speed_since.json")
SHARES = RESULTS.with_name("speed_shares.json")

INTRODUCTION = """\
# Performance

How long whole calls take as users make them: models, bandwidth, interval and trust checks by
default. Measured by `{command}` (`make bench`), which writes this page from its results. A number
is a ratio of the least CPU times of contestants that took turns on one thread, because an absolute
time says more about the machine than about the code.

{machine}{busy}

{sources}"""
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
by `{command}`, on git trees `{before}` and {now}, {when}.

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
- **Nothing is imported before it is needed**: `import titrant` loads not even numpy."""
WHY = {
    "1": """\
**The default call of many rows.** The self-normalized one beside it has become several times
  faster. Most of the time goes into asking models about all rows; they are fitted on 10,000.""",
    "2-3": """\
**The default call beside boosted trees.** The two take about as long, and which is ahead changes
  from run to run. Models are fitted on about 10,000 rows and asked about all.""",
    "2-60": """\
**Sixty contexts.** Most of our call is fitting models on about 10,000 rows.""",
    "3": """\
**A self-normalized call.** Evidence for the trust rules is a path of bandwidths, sides, balance and
  support, block by block in numpy.""",
    "4-evaluate-5000": """\
**First use of few rows.** Nothing is compiled. The default models need scikit-learn and scipy, and
  importing them is what the first call takes beyond the second.""",
    "4-evaluate-40000": """\
**First use of 40,000 rows.** Nothing is compiled either; again it is imports.""",
    "4-evaluate-1000000": """\
**First use of a million rows.** Here loops are worth their while, and are compiled.
  `titrant warm-up` does it ahead of time, and of several processes one compiles for all.""",
    "4-learn-5000": """\
**First learning.** The loops of the search are compiled; `titrant warm-up` does that, too, ahead of
  time.""",
    "6": """\
**The command line.** The default models grow their trees with scikit-learn, which loads scipy.stats
  and pandas itself; importing `sklearn.tree` alone takes longer than the target allows.""",
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
  value is honest, and each class is searched from many starts. The boosted trees next to it are
  fitted five times, and nothing is graded or searched.""",
    "12": """\
**27 bandwidths near a bound.** The target was set when one evaluation was a compiled loop of 2.8
  ms. An evaluation now goes through numpy's moments and takes several times as long, so the path
  in our own evaluations looks shorter than it is: counted in evaluations by the former compiled
  loop, it would be above 14.""",
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
"""Why a step misses its target, by its name; told while it does."""
LOOPS_LATER = (
    "Numpy weighs the rows, as compiled loops begin at 131,072 of them, no longer at 32,768: the "
    "first call compiles nothing. By the loops it would take "
)
SLOWER = {
    "evaluate, bandwidth chosen, n = 100,000": f"{LOOPS_LATER}0.073 s.",
    "evaluate, bandwidth given, n = 100,000": f"{LOOPS_LATER}0.072 s.",
    "compare, five policies, n = 100,000": f"{LOOPS_LATER}0.15 s.",
    "curve, nine doses, n = 100,000": f"{LOOPS_LATER}0.24 s, some of that for weighing the "
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
    **{
        name: f"calls from Python on {n:,} rows with {p} contexts"
        for name, (n, p) in IN_PYTHON.items()
    },
    **{name: f"commands on a file of {n:,} rows" for name, n in FILES.items()},
}
"""What the steps measure; of those without results the page says so."""
SHARED = """\
Shares of CPU time are those of one call of the row's size, of a first call those of what it does
longer than the second, by `python -m benchmarks.speed.profile`, on {where}. What
is less than a fiftieth is left out."""
FEW = 0.02

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
        names = [name for name in dict.fromkeys(x["step"] for x in missed) if name in WHY]
        shares = _shares()
        parts.append(MISSED.format(lines=_lines(missed, "target")))
        why = [f"- {WHY[name]}" + told_shares(shares.get(name)) for name in names]
        parts += ["\n".join(why)] if why else []
        if told_of := [shares[name] for name in names if name in shares]:
            parts.append(_filled(SHARED.format(where=_where(told_of))))
    if later:
        parts.append(LATER.format(lines="\n".join(later)))
    parts += [
        frame.format(lines=_by_size(found))
        for frame, kind in ((CALLS, "calls"), (COMMANDS, "commands"))
        if (found := [x for s, step in steps.items() if s.startswith(kind) for x in step["lines"]])
    ]
    if told:
        parts.append(TOLD.format(lines=_lines(told, "")))
    if SINCE.exists():
        parts.append(changed(json.loads(SINCE.read_text())))
    return "\n\n".join([*parts, HOW]) + "\n"


def told_shares(profile: dict[str, Any] | None) -> str:
    """Return which parts of the code take the time of a call, as the end of its reason."""
    if profile is None:
        return ""
    parts = [f"{part} {s:.0%}" for part, s in profile["shares"].items() if s >= FEW]
    return "\n" + _filled(f"CPU time: {', '.join(parts)}.", "  ")


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
            when=_when([*calls.values()]),
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


def _shares() -> dict[str, Any]:
    return json.loads(SHARES.read_text()) if SHARES.exists() else {}


def _where(measured: list[dict[str, Any]]) -> str:
    """Return the versions of the source and the dates of measurements."""
    trees = " and ".join(f"`{one}`" for one in dict.fromkeys(x["source"] for x in measured))
    return f"git tree {trees} of `src/titrant`, {_when(measured)}"


def _when(measured: list[dict[str, Any]]) -> str:
    dates = sorted({x["date"] for x in measured})
    return " to ".join(dict.fromkeys((dates[0], dates[-1])))


def _sources(steps: dict[str, Any]) -> str:
    """Return when and on which version of the source the steps were measured."""
    measured: dict[str, list[str]] = {}
    for name, step in steps.items():
        measured.setdefault(step["source"], []).append(EVERY[name])
    if len(measured) == 1:
        return _filled(f"Measured on {_where([*steps.values()])}.")
    lines = [
        f"- {UNNAMED if version == 'before' else f'`{version}`'}: {'; '.join(named)}"
        for version, named in measured.items()
    ]
    told = f"Measured on several versions of the source, {_when([*steps.values()])}, each by its "
    told += "git tree of `src/titrant`:"
    return "\n\n".join([_filled(told), "\n".join(lines)])


def _filled(text: str, indent: str = "") -> str:
    whole = " ".join(text.split())
    return fill(whole, 100, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def _lines(lines: list[Line], asked: str) -> str:
    """Return a table of lines; the same work measured several times has one."""
    of: dict[tuple[str, str], list[float]] = {}
    for x in lines:
        of.setdefault((x["work"], x["asked"]), []).append(x["ratio"])
    return _table(
        ("work", "measured", asked),
        [(work, " … ".join(_ends(found, asked)), asked) for (work, asked), found in of.items()],
    )


def _ends(found: list[float], asked: str) -> list[str]:
    return list(dict.fromkeys(_digits(x, asked) for x in (min(found), max(found))))


def _digits(x: float, asked: str) -> str:
    """Return a number by three digits, or by as many as tell it from the target."""
    if x >= 1000:
        return f"{x:,.0f}"
    limit = float(asked.split()[1]) if asked[:1] in {"≤", "≥"} else None
    texts = [f"{x:.{digits}g}" for digits in range(3, 9)]
    return next((text for text in texts if x == limit or float(text) != limit), texts[-1])


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
