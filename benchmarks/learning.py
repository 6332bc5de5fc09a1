"""Measure the default learner: ``python -m benchmarks.learning``.

Regret on designs with known truth, the rate at which ``safe=True`` deploys without an effect, and
the coverage of the honest interval. Each replication is kept under ``--cache``, so a run that was
stopped goes on where it was. The summary goes to ``benchmarks/results/learning.json`` when all
are there; ``--quick`` runs two replications of each experiment and writes it to the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.data.simulate import (
    Design,
    DoseLaw,
    Dosing,
    NormalDose,
    Synthetic,
    TenContexts,
    UniformDose,
)
from titrant.outcome import Bounded, Trees

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 2026
OUT = Path(__file__).parent / "results" / "learning.json"
SHIFT = 20.0
AFFINE = 6.25
"""How much the best affine rule of the ten contexts is better than the best one through 0."""

Record = dict[str, Any]


# ── designs ──────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTruth(Design):
    """m = (t − b(x))², b = 0.5 + x0 − x1/2 + x2/4 + 0·x3 + 0·x4, x ~ U[0, 1]⁵, T ~ N(0.8, 0.6²)."""

    law: DoseLaw = field(default_factory=lambda: NormalDose(sd=0.6))
    noise: float = 0.5

    @property
    def names(self) -> tuple[str, ...]:
        """Five contexts."""
        return tuple(f"x{j}" for j in range(5))

    def context_at(self, u: np.ndarray) -> np.ndarray:
        """Return x = u."""
        return u

    def center(self, X: np.ndarray) -> np.ndarray:
        """Return 0.8."""
        return np.full(len(X), 0.8)

    def mean_outcome(self, X: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return (t − b(x))²."""
        return (t - self.best(X)) ** 2

    def best(self, X: np.ndarray) -> np.ndarray:
        """Return b(x)."""
        return 0.5 + X @ [1.0, -0.5, 0.25, 0.0, 0.0]


# ── one replication of each experiment ───────────────────────────────────────────────────────────
TREES = tt.StackedDR(models={"trees": Bounded(Trees())})
THROUGH_ZERO = tt.LinearClass(intercept=False)
DESIGNS: dict[str, Design] = {
    "normal": Synthetic(),
    "uniform": Synthetic(law=UniformDose(lower=-0.5, upper=1.3)),
    "dosing": Dosing(),
}


def one_parameter(logging: str, seed: list[int]) -> Record:
    """Regret on the paper's design, n = 300; its best policy is worth 0."""
    design = DESIGNS[logging]
    found = tt.PolicyLearner(honest=False).fit(design.draw(300, seed))
    return {"regret": design.value(found.policy_)}


def linear_truth(seed: list[int]) -> Record:
    """Regret on a linear truth, n = 2000, and how far ±20 on the outcome moves the policy."""
    design = LinearTruth()
    log = design.draw(2000, seed)
    policies = [
        tt.PolicyLearner(honest=False).fit(log.with_outcome(log.outcome + shift)).policy_
        for shift in (0.0, SHIFT, -SHIFT)
    ]
    moved = [np.abs(p.params - policies[0].params).max() for p in policies[1:]]
    return {"regret": design.value(policies[0]), "moved_by_a_shift": float(max(moved))}


def ten_contexts(scenario: str, library: str, seed: list[int]) -> Record:
    """Excess risk on one draw of the ten-context design, n = 400, propensity imputed."""
    design = TenContexts.sample(seed[-1], overlap=scenario == "B")
    log = design.draw(400, seed, propensity=False)
    settings: dict[str, Any] = {
        "default": {},
        "trees only": {"procedure": TREES},
        "default, no intercept": {"policy": THROUGH_ZERO},
    }[library]
    learner = tt.PolicyLearner(honest=False, propensity=tt.LinearGaussian(), **settings)
    value = design.value(learner.fit(log).policy_)
    through_zero = design.value_of_affine(design.best_coef)
    return {
        "excess_over_best_affine": value - through_zero + AFFINE,
        "excess_over_best_linear_without_intercept": value - through_zero,
    }


def no_effect(seed: list[int]) -> Record:
    """Whether ``safe=True`` deploys when the outcome follows the context and never the dose."""
    rng = np.random.default_rng(seed)
    log = Synthetic().draw(300, rng)
    flat = log.with_outcome(log.context[:, 0] + 0.5 * rng.standard_normal(300))
    return {"deployed": bool(tt.PolicyLearner(safe=True).fit(flat).deployed_)}


def coverage(name: str, n: int, seed: list[int]) -> Record:
    """Whether the honest interval covers the value of what was learned, by the whole library."""
    design = DESIGNS[name]
    found = tt.PolicyLearner().fit(design.draw(n, seed))
    low, high = found.estimate_.interval()
    of_halves = float(np.mean([design.value(p) for p in found.estimate_.policies]))
    return {
        "covers": low <= design.value(found.policy_) <= high,
        "covers_the_halves": low <= of_halves <= high,
        "width": high - low,
        "in_sample_less_truth": found.in_sample_estimate().value - design.value(found.policy_),
        "honest_less_truth": found.estimate_.value - design.value(found.policy_),
    }


# ── the experiments and their goals ──────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is measured, how often, and what its means must reach."""

    name: str
    replicate: Callable[..., Record]
    arguments: tuple[Any, ...] = ()
    replications: int
    at_most: dict[str, float] = field(default_factory=dict)
    at_least: dict[str, float] = field(default_factory=dict)
    note: str = ""


def _ten(scenario: str, library: str, goal: float | None, key: str) -> Experiment:
    return Experiment(
        name=f"ten contexts, {scenario}, {library}",
        replicate=ten_contexts,
        arguments=(scenario, library),
        replications=22,
        at_most={} if goal is None else {key: goal},
        note="propensity by linear regression; replication r is the r-th draw of coefficients",
    )


BEST_AFFINE = "excess_over_best_affine"
THROUGH = "excess_over_best_linear_without_intercept"
EXPERIMENTS = (
    Experiment(
        name="one parameter, normal logging",
        replicate=one_parameter,
        arguments=("normal",),
        replications=100,
        at_most={"regret": 0.012},
    ),
    Experiment(
        name="one parameter, uniform logging",
        replicate=one_parameter,
        arguments=("uniform",),
        replications=100,
        at_most={"regret": 0.008},
    ),
    Experiment(
        name="linear truth",
        replicate=linear_truth,
        replications=20,
        at_most={"regret": 0.01, "moved_by_a_shift": 1e-6},
    ),
    _ten("A", "default", 0.4, BEST_AFFINE),
    _ten("B", "default", 0.3, BEST_AFFINE),
    _ten("A", "default, no intercept", 0.4, THROUGH),
    _ten("B", "default, no intercept", 0.3, THROUGH),
    _ten("A", "trees only", None, BEST_AFFINE),
    _ten("B", "trees only", 1.61, BEST_AFFINE),
    Experiment(
        name="no effect",
        replicate=no_effect,
        replications=500,
        at_most={"deployed": 0.07},
        note="the outcome follows the context alone, n = 300",
    ),
    *(
        Experiment(
            name=f"honest interval, dosing, n = {n}",
            replicate=coverage,
            arguments=("dosing", n),
            replications=200,
            at_least={"covers": 0.92},
        )
        for n in (300, 1000)
    ),
    *(
        Experiment(
            name=f"honest interval, the paper's kink, n = {n}",
            replicate=coverage,
            arguments=("normal", n),
            replications=50,
            note="the learned policy sits on a kink of infinite curvature, and averaging around it "
            "overstates the loss",
        )
        for n in (300, 1000)
    ),
)


# ── running ──────────────────────────────────────────────────────────────────────────────────────
def main() -> None:
    """Parse, run the replications that are missing, and write the summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two replications of each")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="by their names")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--cache", type=Path, default=Path(".benchmark-cache/learning"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    chosen = [e for e in EXPERIMENTS if not given.only or any(w in e.name for w in given.only)]
    counts = {e.name: 2 if given.quick else e.replications for e in chosen}
    run_missing(chosen, counts, given.cache, given.workers)
    summary = {
        "command": "python -m benchmarks.learning",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, numpy {np.__version__}",
        "experiments": [summarize(e, kept(e, counts[e.name], given.cache)) for e in chosen],
    }
    elsewhere = given.quick or given.only
    out = given.out or (given.cache / "summary.json" if elsewhere else OUT)
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, summary)
    show(summary)
    print(out)


def run_missing(
    chosen: list[Experiment], counts: dict[str, int], cache: Path, workers: int
) -> None:
    """Run the replications that the cache does not hold, with a bar on stderr."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    cache.mkdir(parents=True, exist_ok=True)
    every = [(e.name, r) for e in chosen for r in range(counts[e.name])]
    missing = [task for task in every if not (cache / file_name(*task)).exists()]
    bar = Progress(console=Console(stderr=True))
    with bar, ProcessPoolExecutor(workers, initializer=_quiet) as pool:
        task = bar.add_task("replications", total=len(every), completed=len(every) - len(missing))
        for done in as_completed([pool.submit(run_one, *one, cache) for one in missing]):
            done.result()
            bar.advance(task)


def run_one(name: str, replication: int, cache: Path) -> None:
    """Run one replication and keep it."""
    place, experiment = next((i, e) for i, e in enumerate(EXPERIMENTS) if e.name == name)
    # Both libraries see the same draws of the ten contexts; the other experiments their own.
    stream = 3 if experiment.replicate is ten_contexts else place
    record = experiment.replicate(*experiment.arguments, [SEED, stream, replication])
    write(cache / file_name(name, replication), record)


def _quiet() -> None:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    warnings.simplefilter("ignore")


def file_name(name: str, replication: int) -> str:
    """Return where a replication is kept."""
    words = "".join(c if c.isalnum() else "-" for c in name)
    return f"{SEED}-{words}-{replication}.json"


def kept(experiment: Experiment, count: int, cache: Path) -> list[Record]:
    """Return the replications of an experiment."""
    paths = [cache / file_name(experiment.name, r) for r in range(count)]
    return [json.loads(path.read_text()) for path in paths]


def write(path: Path, content: Any) -> None:
    """Write JSON under a temporary name, then rename: a stopped run leaves no half file."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


def summarize(experiment: Experiment, records: list[Record]) -> dict[str, Any]:
    """Return means with their Monte-Carlo errors, and whether they reach the goals."""
    keys = list(records[0])
    values = {key: np.array([float(r[key]) for r in records]) for key in keys}
    error = np.sqrt(len(records))
    means = {key: float(v.mean()) for key, v in values.items()}
    met = [means[key] <= goal for key, goal in experiment.at_most.items()]
    met += [means[key] >= goal for key, goal in experiment.at_least.items()]
    return {
        "name": experiment.name,
        "replications": len(records),
        "mean": means,
        "standard_error": {key: float(v.std(ddof=1) / error) for key, v in values.items()},
        "median": {key: float(np.median(v)) for key, v in values.items()},
        "at_most": experiment.at_most,
        "at_least": experiment.at_least,
        "reached": all(met) if met else None,
        "note": experiment.note,
    }


def show(summary: dict[str, Any]) -> None:
    """Print one line for each number."""
    for found in summary["experiments"]:
        verdict = {True: "reached", False: "MISSED", None: ""}[found["reached"]]
        print(f"{found['name']} ({found['replications']} replications) {verdict}")
        for key, mean in found["mean"].items():
            goal = found["at_most"].get(key, found["at_least"].get(key))
            sign = "≤" if key in found["at_most"] else "≥"
            wanted = "" if goal is None else f"   goal {sign} {goal:g}"
            print(f"    {key:<42} {mean:10.4g} ± {found['standard_error'][key]:.2g}{wanted}")


if __name__ == "__main__":
    main()
