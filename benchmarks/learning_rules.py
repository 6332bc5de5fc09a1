"""Measure which rules the learner finds: ``python -m benchmarks.learning_rules --draws 20``.

The excess risk of the automatic choice, of its classes and of common plug-in rules, all on the same
draws of problems with known truth. Records are JSON lines that a later run goes on with;
``--show`` prints the table of those that there are.
"""

from __future__ import annotations

import argparse
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from benchmarks.confounding.records import Task, digits, records_in, run_missing
from titrant.learn import LinearClass, TrainingLog
from titrant.learn.choice import ClassChoice
from titrant.learn.contenders import contender

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray

RECORDS = Path(__file__).parent / "results" / "learning_rules.jsonl.gz"
SEED = 2031
GRID = 41
"""Doses among which plug-in rules look for the least predicted loss."""
FRESH = 2000
"""Contexts over which a risk is averaged."""


# ── problems ─────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Contexts, logged doses, and the mean loss of a dose."""

    context: Callable[[np.random.Generator, int], Array]
    dose: Callable[[np.random.Generator, Array], Array]
    loss: Callable[[Array, Array], Array]
    noise: Callable[[np.random.Generator, Array], Array]
    """Outcomes with these mean losses."""
    n: int = 1000
    linear: bool = False
    """Whether the best rule is linear, or next to it."""

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return contexts, doses and outcomes."""
        x = self.context(rng, self.n)
        t = self.dose(rng, x)
        return x, t, self.noise(rng, self.loss(x, t))


def normal(p: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: rng.normal(size=(n, p))


def around(center: Callable[[Array], Array], sd: float) -> Callable[..., Array]:
    return lambda rng, x: center(x) + sd * rng.normal(size=len(x))


def gaussian(sd: float) -> Callable[..., Array]:
    return lambda rng, m: m + sd * rng.normal(size=len(m))


def squared(best: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, t: (t - best(x)) ** 2


def _usual(best: Callable[[Array], Array], p: int = 5, sd: float = 1.0, **more: Any) -> Problem:
    """Return a problem with normal contexts, doses that follow the first, and squared loss."""
    return Problem(
        context=normal(p),
        dose=around(lambda x: 0.4 * x[:, 0], 1.0),
        loss=squared(best),
        noise=gaussian(sd),
        **more,
    )


def _line(x: Array) -> Array:
    return x[:, 0] - 0.5 * x[:, 1] + 0.25 * x[:, 2]


def _thresholds(x: Array) -> Array:
    return np.where(x[:, 0] > 0.3, 1.5, np.where(x[:, 1] > 0.0, -1.5, 0.0))


def _asymmetric(x: Array, t: Array) -> Array:
    away = t - (0.8 * x[:, 0] - 0.6 * x[:, 1])
    return np.where(away > 0.0, 2.0 * away, -0.5 * away)


def _price(x: Array, t: Array) -> Array:
    slope = 1.0 + 0.4 * np.abs(x[:, 1])
    return -t / (1.0 + np.exp(slope * t - 2.0 - x[:, 0]))


def _bought(rng: np.random.Generator, x: Array, t: Array) -> Array:
    return -t * (rng.uniform(size=len(t)) < -_price(x, t) / t)


def _saturating(x: Array, t: Array) -> Array:
    benefit = 4.0 * (1.0 - np.exp(-t * np.exp(0.5 * x[:, 0])))
    return 0.3 * t**2 * (1.0 + 0.5 * (x[:, 1] > 0.0)) - benefit


LEVELS = np.array([-1.0, 0.0, 1.0, 2.0, 0.5])


def _categories(rng: np.random.Generator, n: int) -> Array:
    return np.column_stack([np.eye(5)[rng.integers(5, size=n)], rng.uniform(20, 80, n)])


def _by_category(x: Array) -> Array:
    return x[:, :5] @ LEVELS + 0.03 * (x[:, 5] - 50.0) * x[:, 2]


def _people(rng: np.random.Generator, n: int) -> Array:
    """Age, bmi, a carrier, a lab value that is skewed, and one that says nothing."""
    columns = rng.uniform(20, 80, n), rng.normal(27, 4, n), rng.uniform(size=n) < 0.4
    return np.column_stack([*columns, rng.lognormal(0.0, 0.7, n), rng.normal(size=n)]).astype(float)


def _bands(x: Array, t: Array) -> Array:
    middle = (x[:, 0] > 35) & (x[:, 0] < 55)
    best = 1.5 * middle + 0.15 * np.maximum(x[:, 1] - 30.0, 0.0)
    return np.minimum(np.abs(t - best), 2.0)


def _hours(rng: np.random.Generator, n: int) -> Array:
    return np.column_stack([rng.uniform(0, 24, n), rng.uniform(size=n) < 2 / 7, rng.normal(size=n)])


def _hourly(x: Array) -> Array:
    return 1.2 * np.cos(2 * np.pi * (x[:, 0] - 18.0) / 24.0) + 0.5 * x[:, 1]


def _subgroups(x: Array) -> Array:
    older = x[:, 0] > 50
    return np.where(x[:, 2] > 0, np.where(older, -1.0, 0.5), np.where(older, 1.5, 0.5))


def _heavy(rng: np.random.Generator, m: Array) -> Array:
    return m + 0.6 * rng.standard_t(2.5, size=len(m))


def _price_problem() -> Problem:
    # Outcomes are drawn from contexts and doses, so the noise is made in `draw` of a subclass.
    return Purchase(
        context=normal(4),
        dose=lambda rng, x: np.clip(2.0 + 0.3 * x[:, 0] + 0.7 * rng.normal(size=len(x)), 0.1, None),
        loss=_price,
        noise=gaussian(0.0),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase(Problem):
    """A price and whether it was paid."""

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Return contexts, prices and what was not earned."""
        x = self.context(rng, self.n)
        t = self.dose(rng, x)
        return x, t, _bought(rng, x, t)


PROBLEMS: dict[str, Problem] = {
    "linear, p = 5": _usual(_line, linear=True),
    "linear, p = 40": _usual(_line, 40, linear=True),
    "asymmetric loss": Problem(
        context=normal(5),
        dose=around(lambda x: 0.4 * x[:, 0], 1.0),
        loss=_asymmetric,
        noise=gaussian(0.5),
        linear=True,
    ),
    "price and purchase": _price_problem(),
    "thresholds": _usual(_thresholds),
    "sine": _usual(lambda x: 1.5 * np.sin(2.0 * x[:, 0])),
    "product": _usual(lambda x: x[:, 0] * x[:, 1]),
    "saturating benefit": Problem(
        context=normal(4),
        dose=lambda rng, x: np.clip(1.2 + 0.2 * x[:, 0] + 0.6 * rng.normal(size=len(x)), 0.0, None),
        loss=_saturating,
        noise=gaussian(0.7),
    ),
    "categories": Problem(
        context=_categories,
        dose=around(lambda x: 0.5 + 0.01 * (x[:, 5] - 50.0), 1.0),
        loss=squared(_by_category),
        noise=gaussian(1.0),
    ),
    "noisy, n = 200": _usual(_line, sd=3.0, n=200, linear=True),
    # Invented after the recipe was settled.
    "age band, capped loss": Problem(
        context=_people,
        dose=around(lambda x: 0.02 * (x[:, 0] - 50.0) + 0.5, 0.9),
        loss=_bands,
        noise=gaussian(0.4),
    ),
    "hinge, heavy tails": Problem(
        context=_people,
        dose=around(lambda x: 0.3 * x[:, 3], 0.8),
        loss=squared(lambda x: 1.2 * np.maximum(x[:, 3] - 1.0, 0.0) - 0.05 * (x[:, 1] - 27.0)),
        noise=_heavy,
    ),
    "ratio": _usual(lambda x: 2.0 * x[:, 0] / (1.0 + np.abs(x[:, 1]))),
    "hour of the day": Problem(
        context=_hours,
        dose=around(lambda x: 0.3 * x[:, 2], 0.9),
        loss=squared(_hourly),
        noise=gaussian(1.0),
    ),
    "subgroups of subgroups": Problem(
        context=_people,
        dose=around(lambda x: 0.5 * x[:, 2], 1.0),
        loss=squared(_subgroups),
        noise=gaussian(1.0),
    ),
    "one dose for all": Problem(
        context=normal(10),
        dose=around(lambda x: 0.3 * x[:, 0], 1.0),
        loss=squared(lambda x: np.full(len(x), 0.5)),
        noise=gaussian(2.0),
        linear=True,
    ),
}


# ── contestants ──────────────────────────────────────────────────────────────────────────────────
def least(model: Any, x: Array, ends: tuple[float, float]) -> Array:
    """Return the dose (n,) with the least prediction of a regressor of (x, t)."""
    grid = np.linspace(*ends, GRID)
    rows = np.column_stack([np.repeat(x, GRID, axis=0), np.tile(grid, len(x))])
    return np.asarray(grid[np.argmin(model.predict(rows).reshape(len(x), GRID), axis=1)])


def boosted(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of gradient-boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

    model = HistGradientBoostingRegressor(random_state=0).fit(np.column_stack([x, t]), y)
    return least(model, new, ends)


def forest(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of a random forest."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    model = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    return least(model.fit(np.column_stack([x, t]), y), new, ends)


def quadratic(x: Array, t: Array, y: Array, new: Array, ends: tuple[float, float]) -> Array:
    """Return the arg-min of a cross-validated ridge regression on all squares and products."""
    from sklearn.linear_model import RidgeCV  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler  # noqa: PLC0415

    model = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        RidgeCV(np.logspace(-2, 4, 13)),
    )
    return least(model.fit(np.column_stack([x, t]), y), new, ends)


PLUG_INS = {"boosted": boosted, "forest": forest, "quadratic": quadratic}
CONTESTANTS = ("automatic", "linear", *PLUG_INS)


# ── one draw ─────────────────────────────────────────────────────────────────────────────────────
def measure(task: Task) -> dict[str, Any]:
    """Return the excess risks of all contestants on one draw, and what was chosen."""
    problem = PROBLEMS[task.design]
    rng = np.random.default_rng([task.seed, task.replication, zlib.crc32(task.design.encode())])
    x, t, y = problem.draw(rng)
    new = problem.context(rng, FRESH)
    every = np.linspace(t.min() - 2.0, t.max() + 2.0, 401)
    risks = np.stack([problem.loss(new, np.full(FRESH, dose)) for dose in every], axis=1)
    best = float(risks.min(axis=1).mean())
    began = time.process_time()
    log = tt.LoggedData(x, t, y)
    procedure, kind = tt.StackedDR(), tt.Automatic()
    arena = procedure.arena(TrainingLog.of(log), kind)
    modeled = time.process_time()
    found = [contender(one, arena) for one in kind.competing(log)]
    choice = ClassChoice.of(found, arena)
    learned = {one.name: one.learned(arena).policy for one in found}
    ended = time.process_time()
    policies = {"automatic": learned[choice.chosen], **learned}
    excess = {name: problem.loss(new, rule(new)).mean() - best for name, rule in policies.items()}
    ends = tuple(np.quantile(t, [0.005, 0.995]))
    for name, rule in PLUG_INS.items():
        excess[name] = problem.loss(new, rule(x, t, y, new, ends)).mean() - best
    excess["best constant"] = risks.mean(axis=0).min() - best
    line = next(one for one in choice.classes if one.name == LinearClass().name)
    return {
        "chosen": choice.chosen,
        "linear_behind": [digits(line.behind), digits(line.se)],
        "excess": {name: digits(float(value)) for name, value in excess.items()},
        "finding": choice.finding,
        "cpu": [digits(modeled - began), digits(ended - modeled)],
    }


# ── the table ────────────────────────────────────────────────────────────────────────────────────
def show(records: list[dict[str, Any]]) -> None:
    """Print mean excess risks ± their standard errors, and what was chosen."""
    names = (*CONTESTANTS, "best constant")
    print("problem".ljust(24), "draws", *(name.rjust(15) for name in names), " chosen")
    for name in PROBLEMS:
        mine = [r for r in records if r["design"] == name and "failed" not in r]
        if not mine:
            continue
        values = {c: np.array([r["excess"][c] for r in mine]) for c in names}
        error = {c: v.std(ddof=1) / np.sqrt(len(v)) if len(v) > 1 else 0 for c, v in values.items()}
        cells = [f"{v.mean():.3f} ± {error[c]:.3f}".rjust(15) for c, v in values.items()]
        kinds = [r["chosen"] for r in mine]
        counts = ", ".join(f"{kind} {kinds.count(kind)}" for kind in dict.fromkeys(kinds))
        print(name.ljust(24), str(len(mine)).rjust(5), *cells, f" {counts}")
    for wanted, what in ((True, "linear"), (False, "not linear")):
        logs = [np.log(ratio) for ratio in ratios(records, linear=wanted).values()]
        if logs:
            print(f"automatic over linear, truth {what}: {np.exp(np.mean(logs)):.3f}")


def ratios(records: list[dict[str, Any]], *, linear: bool) -> dict[str, float]:
    """Return the mean excess of the automatic rule over that of the linear one, by problem."""
    found = {}
    for name, problem in PROBLEMS.items():
        mine = [r["excess"] for r in records if r["design"] == name and "failed" not in r]
        if mine and problem.linear == linear:
            both = [np.mean([e[c] for e in mine]) for c in ("automatic", "linear")]
            found[name] = float(both[0] / both[1])
    return found


def main() -> None:
    """Run the draws that are missing, then print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learning_rules", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the table alone")
    asked = parser.parse_args()
    if not asked.show:
        tasks = [
            Task(name, PROBLEMS[name].n, draw, asked.seed)
            for draw in range(asked.draws)
            for name in asked.problems
        ]
        run_missing(RECORDS, tasks, measure, asked.workers, anew=asked.anew)
    show(records_in(RECORDS))


if __name__ == "__main__":
    main()
