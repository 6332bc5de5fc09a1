"""What makes intervals wider than 1.96 standard errors: `python -m benchmarks.widths`.

The records of the studies of confounding and of structure hold an interval's ends, not what it was
made of. Here a few of their logs are evaluated again, and every step from the standard error to
the half-width is kept: of the designs of confounding on which claims rest, and of two designs of
structure, with the remedy. Both pages show the steps as factors.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri, stdtrit

from benchmarks.confounding import study as confounding
from benchmarks.confounding.records import CLOSE, Task, digits, run_missing
from benchmarks.structure import designs as structured
from benchmarks.structure import study as structure
from titrant.estimators.joint import ask
from titrant.inference.rbc import Narrow, corrected_question

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import titrant as tt
    from titrant.evaluation.evaluation import AnyPolicy

    Array = np.ndarray
    Record = dict[str, Any]

RECORDS = Path(__file__).parent / "results" / "widths.jsonl.gz"
ROWS = 1000
STRUCTURED = ("outcomes missing", "four copies")
"""Designs of structure whose intervals cover most."""
LOGS, STRUCTURED_LOGS = 4, 20
"""The first logs of each design that are made again."""
TWO_SIDED = 0.975
"""The quantile of an interval of 95 %."""
NORMAL = float(ndtri(TWO_SIDED))


def tasks() -> list[Task]:
    """Return the logs that are made again."""
    return [
        *(Task(d, ROWS, i, confounding.SEED) for i in range(LOGS) for d in confounding.CLAIMED),
        *(Task(d, ROWS, i, structure.SEED) for i in range(STRUCTURED_LOGS) for d in STRUCTURED),
    ]


def steps(task: Task) -> dict[str, Any]:
    """Return what the intervals of one log are made of, lists in the order of its policies."""
    if task.design in STRUCTURED:
        design = structured.DESIGNS[task.design]
        log = design.versions(task.n, structure.seed_of(task))[0]
        return steps_of(log, design.policies)
    return steps_of(confounding.log_of(task), confounding.DESIGNS[task.design].policies)


def steps_of(log: tt.LoggedData, policies: Mapping[str, AnyPolicy]) -> dict[str, list[Any]]:
    """Return the estimates, and the standard errors on the way from theirs to their intervals'.

    ``own`` takes the models as given, ``se`` does not; ``fourth`` is that of the order-four fit
    ``center``, ``corrected`` the same with each row left out (se_R), ``reach`` (s) reaches over the
    gap between value and center; the half-width is its product with t of so many ``degrees``.
    """
    evaluation, found = confounding.evaluated(log, policies)
    each = [found[name] for name in policies]
    point = evaluation.point({i: e.bandwidth for i, e in enumerate(each)}).joint
    questions = [corrected_question(question) for question in point.questions]
    fourth = ask(questions, evaluation.over_rows).covariance
    left_out = confounding.RECENTERED.infer(point, evaluation.over_rows)
    se = np.array([e.se for e in each])
    models = se**2 - np.diagonal(point.covariance)
    numbers = {
        "own": point.se,
        "center": left_out.centers,
        "fourth": np.sqrt(np.diagonal(fourth) + models),
        "corrected": np.sqrt(np.diagonal(left_out.covariance) + models),
        "reach": [e.confidence.se for e in each],
        "degrees": [e.confidence.degrees for e in each],
    }
    told = confounding.estimates(found, policies)
    return told | {name: [digits(float(v)) for v in values] for name, values in numbers.items()}


@dataclass(frozen=True)
class Steps:
    """What was recorded of several logs, as arrays over all their estimates."""

    records: Sequence[Record]

    def number(self, what: str) -> Array:
        """Return a recorded number of each estimate."""
        return np.concatenate([r[what] for r in self.records]).astype(float)

    def factors(self) -> dict[str, Array]:
        """Return what each step multiplies 1.96 standard errors by; all make the half-width."""
        se, fourth, corrected = map(self.number, ("se", "fourth", "corrected"))
        reach = self.number("reach")
        return {
            "order four": fourth / se,
            "row left out": corrected / fourth,
            "gap": reach / corrected,
            "Student": stdtrit(self.number("degrees"), TWO_SIDED) / NORMAL,
        }

    def narrow(self) -> Array:
        """Return the half-width of `Narrow()` in units of 1.96 standard errors."""
        gap = self.number("value") - self.number("center")
        s = narrow_se(self.number("se"), self.number("corrected"), gap)
        return s / self.number("se") * self.factors()["Student"]


def narrow_se(se: Array, corrected: Array, gap: Array) -> Array:
    """Return the standard error that `Narrow()` goes by."""
    a = Narrow().share
    return np.sqrt((1.0 - a) * se**2 + a * (corrected**2 + gap**2))


def least_corrected(se: Array, reach: Array, gap: Array) -> Array:
    """Return the least se_R with which an interval goes by s = ``reach``; se_R below se is se.

    s² − se² is D = se_R² − se², or gap² − D where that is more, so D may be either of the two.
    """
    apart = reach**2 - se**2
    other = gap**2 - apart
    # Where D is next to 0, rounding decides on which side of 0 it is found.
    either = other >= -CLOSE * reach**2
    return np.sqrt(se**2 + np.where(either, np.minimum(apart, np.maximum(other, 0.0)), apart))


def factor_table(records: Sequence[Record], groups: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return a line of factors for each group of designs, geometric means so that they multiply."""
    lines = []
    for name, designs in groups.items():
        own = Steps([r for r in records if r["design"] in designs])
        factors = own.factors()
        half = np.prod(list(factors.values()), axis=0)
        share = 1.0 - np.mean((own.number("own") / own.number("se")) ** 2)
        each = [*map(geometric_mean, (*factors.values(), half, own.narrow()))]
        lines.append([name, f"{len(own.records)}", *(f"{v:.2f}" for v in each), f"{share:.2f}"])
    return lines


FACTOR_HEADS = [
    "designs",
    "logs",
    "order-four fit",
    "row left out",
    "gap",
    "Student's t",
    "product",
    "product, narrow",
    "models' share of SE²",
]
FACTORS = """\
The way from 1.96·SE to the half-width, as factors that make a product (geometric means over
estimates): the SE of the *order-four fit* at .84h over that of the value, the allowance for
smoothing bias; what residuals that *leave the row out* (HC3) add; what reaching over a *gap*
between value and bias-corrected center adds; and *Student's quantile* over 1.96. The records do not
hold these steps: they are those of the first logs of each design, evaluated again by
`python -m benchmarks.widths`. *Models' share* is the part of SE² that is owed to fitted models."""


def geometric_mean(values: Array) -> float:
    return float(np.exp(np.mean(np.log(values))))


def told_and_off(cells: Iterable[tuple[Array, Array]]) -> tuple[float, float]:
    """Return what the SE says of the spread of estimates, and the RMS of the bias in SE.

    Of each design and policy there are the errors and SE of its estimates. The first is the mean
    over these of mean SE/sd of errors; the square of the other is without what chance adds to it.
    """
    told, squares = [], []
    for error, se in cells:
        spread = error.std(ddof=1)
        told.append(se.mean() / spread)
        squares.append((error.mean() ** 2 - spread**2 / len(error)) / se.mean() ** 2)
    return float(np.mean(told)), float(np.sqrt(max(np.mean(squares), 0.0)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.widths", description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--anew", action="store_true")
    asked = parser.parse_args()
    run_missing(RECORDS, tasks(), steps, asked.workers, anew=asked.anew)


if __name__ == "__main__":
    main()
