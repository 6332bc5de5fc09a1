"""Draw logs, evaluate two doses by the default call, and keep a record a log."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import titrant as tt
from benchmarks.confounding.designs import DESIGNS, Design
from titrant.outcome import Stack, ridge_pair

RECORDS = Path(__file__).parent / "records.jsonl"
DOSES = (0.0, 1.0)
PLAIN = {
    "estimator": tt.DoublyRobust(outcome=Stack(ridge_pair())),
    "propensity": tt.GaussianMixture(),
}
"""The plain models, to compare with."""


def record(design: Design, name: str, n: int, replication: int, seed: int) -> dict[str, Any]:
    """Return what is kept of one log."""
    x, t, y = design.draw(n, [seed, n, replication, sum(map(ord, name))])
    log = tt.LoggedData(x, t, y)
    rules = {str(dose): tt.Constant(dose) for dose in DOSES}
    found: dict[str, Any] = {"design": name, "n": n, "replication": replication, "seed": seed}
    for kind, settings in (("default", {}), ("plain", PLAIN)):
        began = time.process_time()
        result = tt.compare(log, rules, allow_untrusted=True, **settings)
        cpu = time.process_time() - began
        found[kind] = {"cpu": round(cpu, 2)} | {
            policy: kept(result, policy, design.value(float(policy))) for policy in rules
        }
    return found


def kept(result: tt.Comparison, policy: str, truth: float) -> dict[str, Any]:
    """Return error, standard error, interval and verdict of one estimate."""
    if policy in result.refused:
        return {"verdict": "refuse"}
    estimate = result[policy]
    low, high = estimate.interval()
    return {
        "error": round(estimate.value - truth, 5),
        "se": round(estimate.se, 5),
        "covers": bool(low <= truth <= high),
        "width": round(high - low, 5),
        "verdict": estimate.diagnostics.verdict.value,
        "checks": [c.name for c in estimate.diagnostics if c.verdict.value != "ok"],
    }


def known_records() -> list[dict[str, Any]]:
    """Return the records that are there."""
    if not RECORDS.exists():
        return []
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    asked = parser.parse_args()
    done = {(r["design"], r["n"], r["replication"], r["seed"]) for r in known_records()}
    with RECORDS.open("a", encoding="utf-8") as file:
        for replication in range(asked.replications):
            for name in asked.designs:
                if (name, asked.rows, replication, asked.seed) in done:
                    continue
                found = record(DESIGNS[name], name, asked.rows, replication, asked.seed)
                file.write(json.dumps(found) + "\n")
                file.flush()
            print(f"{replication + 1} of {asked.replications} replications", flush=True)


if __name__ == "__main__":
    main()
