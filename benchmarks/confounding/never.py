"""How often people are seen whose like were never given the policy's dose.

`python -m benchmarks.confounding.never` draws 300 logs of each design and size and asks the check
`never_given` alone, without models: some minutes. The limits of the check were set on `SEEN`, then
frozen; `FRESH` was written afterwards.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding.designs import HELD_OUT, LATEST, NEWEST
from titrant.inference import Verdict
from titrant.inference.trust import rules
from titrant.inference.trust.alike import NEAR, never_given

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray
    Contexts = Callable[[np.random.Generator, int], Array]
    Doses = Callable[[np.random.Generator, Array], Array]

RESULTS = Path(__file__).parents[1] / "results" / "never_given.json"
LOGS, SIZES, SEED = 300, (300, 1000, 2500), 2032
HARDLY = 0.005
"""A dose is never given, in truth, to people of whom fewer than one in 200 have one near it."""


@dataclass(frozen=True)
class Spared:
    """Contexts, a law of doses, and the dose that is asked about."""

    contexts: Contexts
    doses: Doses
    asked: float

    def never(self) -> float:
        """Return the share of people to whom it is never given, of 3,000 with 2,000 doses each."""
        rng = np.random.default_rng(0)
        x = self.contexts(rng, 3000)
        t = np.stack([self.doses(rng, x) for _ in range(2000)])
        near = np.abs(t - self.asked) <= NEAR * t.std()
        return float(np.mean(near.mean(axis=0) < HARDLY))


def people(rng: np.random.Generator, n: int) -> Array:
    """Return age, a skewed marker, two scores and the number of a clinic."""
    scores = rng.normal(size=(n, 2))
    clinic = rng.integers(1, 13, n)
    return np.column_stack([rng.uniform(20, 90, n), rng.gamma(2.0, 1.0, n), scores, clinic])


def normal(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(size=(n, 4))


def low_for(group: Callable[[Array], Array], low: float = -1.0, spread: float = 0.3) -> Doses:
    """Return doses that follow age and a score, and lie around ``low`` in a group."""

    def doses(rng: np.random.Generator, x: Array) -> Array:
        t = 0.02 * (x[:, 0] - 55.0) + 0.5 * x[:, 2] + rng.normal(size=len(x))
        return np.where(group(x), low + spread * rng.normal(size=len(x)), t)

    return doses


def capped(rng: np.random.Generator, x: Array) -> Array:
    """Return doses that are capped for most of a tenth."""
    t = np.exp(0.3 * x[:, 1] + 0.5 * rng.normal(size=len(x)))
    bad = (x[:, 0] < -1.28) & (rng.random(len(x)) < 0.998)
    return np.where(bad, np.minimum(t, 0.8), t)


def by_stage(rng: np.random.Generator, x: Array) -> Array:
    """Return doses by a table: clinics are stages here, and the last has half a dose."""
    center = np.where(x[:, 4] == 12, 0.5, 2.0)
    return center + np.where(x[:, 4] == 12, 0.15, 1.0) * rng.normal(size=len(x))


def narrower(rng: np.random.Generator, x: Array) -> Array:
    """Return doses whose spread shrinks with age, around one center."""
    return np.exp(-0.03 * (x[:, 0] - 50.0)) * rng.normal(size=len(x))


SEEN = {
    "the oldest tenth": Spared(people, low_for(lambda x: x[:, 0] > 83), 1.5),
    "one clinic of twelve": Spared(people, low_for(lambda x: x[:, 4] == 7), 1.5),
    "old with a high marker": Spared(
        people, low_for(lambda x: (x[:, 0] > 60) & (x[:, 1] > 2.8)), 1.5
    ),
    "middle of a range": Spared(people, low_for(lambda x: np.abs(x[:, 2]) < 0.075), 1.5),
    "a high marker": Spared(people, low_for(lambda x: x[:, 1] > 4.74), 1.5),
    "capped": Spared(normal, capped, 2.0),
    "three contexts at once": Spared(
        people, low_for(lambda x: (x[:, 0] > 60) & (x[:, 2] > 0.3) & (x[:, 3] > 0.3)), 1.5
    ),
    "long-tailed doses": Spared(
        normal, lambda rng, x: x[:, 0] + 0.7 * rng.standard_t(3, len(x)), 1.5
    ),
    "log-normal doses": Spared(
        normal, lambda rng, x: np.exp(0.5 * x[:, 0] + 0.5 * rng.normal(size=len(x))), 2.5
    ),
    "unequal spread": Spared(
        normal,
        lambda rng, x: 0.5 * x[:, 1] + np.exp(0.4 * x[:, 0]) * rng.normal(size=len(x)),
        1.5,
    ),
    "lower doses for a tenth": Spared(
        normal, lambda rng, x: rng.normal(size=len(x)) - 1.5 * (x[:, 0] > 1.28), 1.0
    ),
    "nobody spared": Spared(people, low_for(lambda x: x[:, 0] < 0), 1.5),
}
FRESH = {
    "two clinics, the old alone": Spared(
        people, low_for(lambda x: (x[:, 4] <= 3) & (x[:, 0] > 65), -0.5, 0.4), 2.0
    ),
    "the young": Spared(people, low_for(lambda x: x[:, 0] < 24, -0.6, 0.2), 1.0),
    "last stage of twelve": Spared(people, by_stage, 2.5),
    "a low marker or a low score": Spared(
        people, low_for(lambda x: (x[:, 1] < 0.25) | (x[:, 3] < -2.0), -1.2, 0.3), 1.0
    ),
    "spread that shrinks with age": Spared(people, narrower, 1.5),
    "steep line": Spared(normal, lambda rng, x: 1.2 * x[:, 0] + rng.normal(size=len(x)), 1.5),
    "gamma doses": Spared(normal, lambda rng, x: rng.gamma(4.0, np.exp(0.25 * x[:, 1]) / 4.0), 1.8),
    "two humps": Spared(
        normal,
        lambda rng, x: (
            np.where(rng.random(len(x)) < 0.5 + 0.2 * np.tanh(x[:, 0]), -1.5, 1.5)
            + 0.5 * rng.normal(size=len(x))
        ),
        1.0,
    ),
    "uniform doses": Spared(normal, lambda rng, x: rng.uniform(0, 1, len(x)), 0.95),
    "a rare habit": Spared(
        normal,
        lambda rng, x: (
            rng.normal(size=len(x)) - 2.5 * ((x[:, 0] > 1.0) & (rng.random(len(x)) < 0.9))
        ),
        0.8,
    ),
}


def warned(x: Array, t: Array, doses: Array) -> list[bool]:
    """Return whether the check warns of each policy's doses (n, m)."""
    names = [f"x{j}" for j in range(x.shape[1])]
    each = never_given(x, t, doses, np.ones(len(t)), None)
    return [rules.never_given(found, names).verdict is Verdict.WARN for found in each]


def seen(name: str, design: Spared, n: int) -> float:
    """Return the share of logs of a design that are warned of."""
    found = []
    for replication in range(LOGS):
        rng = np.random.default_rng([SEED, n, replication, zlib.crc32(name.encode())])
        x = design.contexts(rng, n)
        found += warned(x, design.doses(rng, x), np.full((n, 1), design.asked))
    return float(np.mean(found))


def false_alarms(n: int) -> dict[str, Any]:
    """Return how many estimates of the study's sound designs are warned of; 60 logs of each."""
    found: list[bool] = []
    for name, design in {**HELD_OUT, **NEWEST, **LATEST}.items():
        if design.kind != "sound":
            continue
        for replication in range(LOGS // 5):
            log = design.draw(n, [SEED, n, replication, zlib.crc32(name.encode())])
            doses = np.column_stack([policy(log.context) for policy in design.policies.values()])
            found += warned(log.context, log.treatment, doses)
    return {"estimates": len(found), "warned": float(np.mean(found))}


def main() -> None:
    designs = {
        name: {"never": design.never(), **{str(n): seen(name, design, n) for n in SIZES}}
        for name, design in {**SEEN, **FRESH}.items()
    }
    found = {"logs": LOGS, "designs": designs, "study": {str(n): false_alarms(n) for n in SIZES}}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def table() -> str:
    """Return the results as a table."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    head = ["design", "written", "never given to", *(f"warned, n = {n:,}" for n in SIZES)]
    lines = [head, ["---"] * len(head)]
    for when, designs in (("before", SEEN), ("after", FRESH)):
        for name in designs:
            row = found["designs"][name]
            shares = [f"{row[str(n)]:.3f}" for n in SIZES]
            lines.append([name, when, f"{row['never']:.1%}", *shares])
    study = [f"{found['study'][str(n)]['warned']:.3f}" for n in SIZES]
    lines.append(["*the study's sound designs*", "before", "–", *study])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
