"""How often a wrong law of the doses is seen, and how often a right one is doubted.

`python -m benchmarks.confounding.laws` draws 60 logs of each case and size, evaluates a constant
high dose with a law of the doses that is wrong in a known way, or right, and counts warnings of
`propensity_pit` in `evaluate` and in `check`, of `stabilized_weight` in `check`, and, with 1,000
rows, of any check in `evaluate`. The estimate is self-normalized: neither check depends on an
outcome model. Models that take long have 20 logs, and the default is asked by `check` alone, whose
ranks are those of `evaluate`. A quarter of an hour of CPU; what is known is not drawn again.

All cases were written with the rules in view and for this table; no limit was changed. At first the
median dose was asked about, where contexts balance by symmetry. Only the last column depends on it.
"""

from __future__ import annotations

import argparse
import json
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

import titrant as tt
from titrant.inference import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray
    Doses = Callable[[np.random.Generator, Array], Array]
    Density = Callable[[Array, Array], Array]

RESULTS = Path(__file__).parents[1] / "results" / "laws.json"
LOGS, FEW = 60, 20
SIZES, MIDDLE, SEED = (300, 1000, 2500), 1000, 2034
HIGH = 0.8
"""The quantile of the doses that is asked about: contexts of rows near it are not those of all."""
ASKED = {
    "pit in evaluate": "`propensity_pit` in `evaluate`",
    "pit in check": "in `check`",
    "weight": "`stabilized_weight` in `check`",
    "any": "any check in `evaluate`, 1,000 rows",
}
"""What is counted, and the head of its column."""
CHECKS = dict.fromkeys(("pit in evaluate", "pit in check"), "propensity_pit")
CHECKS["weight"] = "stabilized_weight"


# ── laws of the doses ────────────────────────────────────────────────────────────────────────────


def normal(t: Array, mean: Array | float, sd: Array | float) -> Array:
    """Return the density of the normal law (n,)."""
    return np.exp(-0.5 * ((t - mean) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))


def evenly(_: Array) -> float:
    return 1.0


def around(mean: Callable[[Array], Array], sd: Callable[[Array], Array | float] = evenly) -> Doses:
    """Return normal doses with a mean and an sd that follow the contexts."""
    return lambda rng, x: mean(x) + sd(x) * rng.normal(size=len(x))


def line(x: Array) -> Array:
    return 0.5 * x[:, 0] + 0.3 * x[:, 1]


def step(x: Array) -> Array:
    return 1.5 * (x[:, 0] > 0.0) + 0.3 * x[:, 1]


def bowl(x: Array) -> Array:
    return 0.7 * x[:, 0] ** 2


def board(x: Array) -> Array:
    return 1.2 * np.sign(x[:, 0]) * np.sign(x[:, 1])


def growing(x: Array) -> Array:
    return np.exp(0.5 * x[:, 0])


def lognormal(rng: np.random.Generator, x: Array) -> Array:
    return np.exp(0.3 * x[:, 0] + 0.5 * rng.normal(size=len(x)))


def long_tailed(rng: np.random.Generator, x: Array) -> Array:
    return line(x) + rng.standard_t(3, len(x)) / np.sqrt(3.0)


def humps(apart: float) -> Doses:
    """Return doses about one of two centers, so many sds apart."""

    def doses(rng: np.random.Generator, x: Array) -> Array:
        side = np.where(rng.random(len(x)) < 0.5, -0.5, 0.5)
        return line(x) + apart * side + rng.normal(size=len(x))

    return doses


def between_humps(apart: float) -> Density:
    """Return the density of `humps`."""

    def density(x: Array, t: Array) -> Array:
        sides = (normal(t, line(x) + side * apart, 1.0) for side in (-0.5, 0.5))
        return 0.5 * sum(sides)

    return density


def heaped(rng: np.random.Generator, x: Array) -> Array:
    """Return doses in mg of which three in ten were rounded to tens."""
    t = 50.0 + 10.0 * (line(x) + rng.normal(size=len(x)))
    return np.where(rng.random(len(x)) < 0.3, 10.0 * np.round(t / 10.0), t)


# ── what a user says of them ─────────────────────────────────────────────────────────────────────


def told(mean: Callable[[Array], Array | float], sd: float) -> tt.Known:
    """Return a normal law that is taken for known."""
    return tt.Known(
        lambda x, t: normal(t, mean(x), sd), lambda x, t: ndtr((np.asarray(t) - mean(x)) / sd)
    )


def column(density: Density, factor: float = 1.0, *, shuffled: bool = False) -> Density:
    """Return a column of densities, off by a factor, or those of other rows."""

    def values(x: Array, t: Array) -> Array:
        q = factor * density(x, t)
        return np.random.default_rng(5).permutation(q) if shuffled else q

    return values


def right(x: Array, t: Array) -> Array:
    return normal(t, line(x), 1.0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Doses, and what is said of their law: a model, a column of densities, or nothing."""

    wrong: str
    """What is."""
    doses: Doses
    model: tt.PropensityModel | None = None
    column: Density | None = None
    logs: int = LOGS

    def seen(self, n: int, seed: list[int]) -> dict[str, bool]:
        """Return what warns of one log; nothing of what was not asked."""
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 3))
        t = self.doses(rng, x)
        z = (t - t.mean()) / t.std()
        y = 0.5 * (z - 0.5) ** 2 + x[:, 0] + x[:, 1] + rng.normal(size=n)
        log = tt.LoggedData(x, t, y, None if self.column is None else self.column(x, t))
        report = tt.check(log, propensity=self.model)
        said = {"pit in check": report, "weight": report}
        if self.model is not None or self.column is not None:
            dose = tt.Constant(float(np.quantile(t, HIGH)))
            how: dict[str, Any] = {"propensity": self.model, "allow_untrusted": True}
            found_by = tt.evaluate(log, dose, estimator=tt.SelfNormalized(), **how)
            said["pit in evaluate"] = found_by.diagnostics
        found = {
            what: warns(report, CHECKS[what])
            for what, report in said.items()
            if CHECKS[what] in report.names
        }
        if n == MIDDLE and "pit in evaluate" in said:
            found["any"] = said["pit in evaluate"].verdict is not Verdict.OK
        return found


def warns(report: tt.Diagnostics, name: str) -> bool:
    """Return whether a check of a report warns or refuses."""
    return report[name].verdict is not Verdict.OK


LINEAR = tt.LinearGaussian()
MEAN, SPREAD, SHAPE, COLUMN, NOTHING, UNSAID = (
    *("mean", "spread", "shape", "column"),
    *("nothing", "nothing said"),
)
CASES = {
    "a step of 1.5 sd; a line": Case(wrong=MEAN, doses=around(step), model=LINEAR),
    "a bowl; a line": Case(wrong=MEAN, doses=around(bowl), model=LINEAR),
    "a checkerboard; a line": Case(wrong=MEAN, doses=around(board), model=LINEAR),
    "a line; off by .3 sd": Case(
        wrong=MEAN, doses=around(line), model=told(lambda x: line(x) + 0.3, 1.0)
    ),
    "a line; no context": Case(
        wrong=MEAN, doses=around(line), model=told(lambda _: 0.0, float(np.sqrt(1.34)))
    ),
    "spread that grows; one spread": Case(wrong=SPREAD, doses=around(line, growing), model=LINEAR),
    "spread 1; .7": Case(wrong=SPREAD, doses=around(line), model=told(line, 0.7)),
    "spread 1; 1.4": Case(wrong=SPREAD, doses=around(line), model=told(line, 1.4)),
    "log-normal; normal": Case(wrong=SHAPE, doses=lognormal, model=LINEAR),
    "long tails; normal": Case(wrong=SHAPE, doses=long_tailed, model=LINEAR),
    "two humps, 3 sd apart; normal": Case(wrong=SHAPE, doses=humps(3.0), model=LINEAR),
    "three in ten rounded; normal": Case(wrong=SHAPE, doses=heaped, model=LINEAR, logs=FEW),
    "column times 1.5": Case(wrong=COLUMN, doses=around(line), column=column(right, 1.5)),
    "column times .9": Case(wrong=COLUMN, doses=around(line), column=column(right, 0.9)),
    "column of other rows": Case(
        wrong=COLUMN, doses=around(line), column=column(right, shuffled=True)
    ),
    "a line; a line": Case(wrong=NOTHING, doses=around(line), model=LINEAR),
    "spread that grows; one that may": Case(
        wrong=NOTHING, doses=around(line, growing), model=tt.HeteroscedasticGaussian()
    ),
    "two humps, 3 sd apart; a mixture": Case(
        wrong=NOTHING, doses=humps(3.0), model=tt.GaussianMixture(), logs=FEW
    ),
    "right column": Case(wrong=NOTHING, doses=around(line), column=column(right)),
    "right column, two humps 6 sd apart": Case(
        wrong=NOTHING, doses=humps(6.0), column=column(between_humps(6.0))
    ),
    "a line; default": Case(wrong=UNSAID, doses=around(line), logs=FEW),
    "a step of 1.5 sd; default": Case(wrong=UNSAID, doses=around(step), logs=FEW),
    "a checkerboard; default": Case(wrong=UNSAID, doses=around(board), logs=FEW),
    "log-normal; default": Case(wrong=UNSAID, doses=lognormal, logs=FEW),
    "two humps, 3 sd apart; default": Case(wrong=UNSAID, doses=humps(3.0), logs=FEW),
}
"""Truth; what is said of it."""


def counted(cell: tuple[str, int]) -> dict[str, list[int]]:
    """Return of a case and size how many logs are warned of, and of how many it was asked."""
    name, n = cell
    case = CASES[name]
    key = zlib.crc32(name.encode())
    each = [case.seen(n, [SEED, n, replication, key]) for replication in range(case.logs)]
    return {
        what: [sum(s[what] for s in each if what in s), sum(what in s for s in each)]
        for what in ASKED
    }


def main() -> None:
    """Count in the cells that are not known yet, those of 1,000 rows and the cheap ones first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    found = known()
    every = [(name, n) for n in sorted(SIZES, key=lambda n: n != MIDDLE) for name in CASES]
    cells = [(name, n) for name, n in every if str(n) not in found.get(name, {})]
    cells.sort(key=lambda cell: -CASES[cell[0]].logs)
    with ProcessPoolExecutor(parser.parse_args().workers) as pool:
        for (name, n), counts in zip(cells, pool.map(counted, cells), strict=True):
            found.setdefault(name, {})[str(n)] = counts
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def known() -> dict[str, dict[str, Any]]:
    """Return the counts by case and size."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "{}"
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def table() -> str:
    """Return the shares of logs that are warned of, as far as they are known."""
    found = known()
    lines = [["wrong", "doses; what is said of them", *ASKED.values()]]
    lines.append(["---"] * len(lines[0]))
    for name, by_size in found.items():
        cells = [shares(by_size, what) for what in ASKED]
        lines.append([CASES[name].wrong, name, *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shares(by_size: dict[str, Any], what: str) -> str:
    """Return the shares of warned logs at each size; a dash where nothing was asked."""
    sizes = [MIDDLE] if what == "any" else SIZES
    counts = [by_size.get(str(n), {}).get(what, [0, 0]) for n in sizes]
    texts = [f"{warned / asked:.2f}" if asked else "–" for warned, asked in counts]
    return " / ".join(texts) if any(asked for _, asked in counts) else "–"


if __name__ == "__main__":
    main()
