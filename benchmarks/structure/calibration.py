"""How well P(T = a | x) is calibrated where doses have point masses, beside its true values.

`python -m benchmarks.structure.calibration` fits the default models to logs of every design with
point masses and predicts contexts that they have not seen; what is kept of each point mass goes to
``benchmarks/results/mass_calibration.json``. ``--logs 2`` is a trial and writes nothing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from benchmarks.structure.designs import POINT_MASSES
from benchmarks.structure.study import ROWS
from titrant.evaluation.evaluation import Evaluation
from titrant.propensity import MixedLaws

if TYPE_CHECKING:
    from benchmarks.structure.designs import Design

    Array = np.ndarray[Any, np.dtype[np.float64]]

OUT = Path(__file__).parents[1] / "results" / "mass_calibration.json"
LOGS, NEW, SEED = 10, 20_000, 2029


def slopes(design: Design, replication: int) -> list[float]:
    """Return of each point mass of a log the slope β of E[1{T = a} | p̂] = α + βp̂ in new rows.

    1 is calibrated, less is a p̂ that varies too much.
    """
    log = design.versions(ROWS, [SEED, replication])[0]
    fresh = design.versions(NEW, [SEED, replication, 1])[0]
    nuisances = Evaluation.of(log, {"logged": tt.StatusQuo()}, tt.DoublyRobust(), None).nuisances
    law = nuisances.law(fresh)
    if not isinstance(law, MixedLaws):
        raise TypeError("a design with point masses has a law of them")
    at = fresh.treatment[:, None] == law.masses.values
    pairs = zip(at.T.astype(float), law.probabilities.T, strict=True)
    return [float(np.cov(hit, p)[0, 1] / np.var(p, ddof=1)) for hit, p in pairs]


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=LOGS)
    logs = parser.parse_args().logs
    found = {
        name: [[round(slope, 4) for slope in slopes(design, k)] for k in range(logs)]
        for name, design in POINT_MASSES.items()
    }
    for name, each in found.items():
        flat = np.concatenate(each)
        low, high = np.quantile(flat, [0.1, 0.9])
        print(f"{name}: {len(flat)} slopes, mean {flat.mean():.2f}, {low:.2f} … {high:.2f}")
    if logs >= LOGS:
        OUT.write_text(json.dumps({"logs": logs, "slopes": found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
