"""What a user can do where the study finds that the default falls short.

`python -m benchmarks.confounding.remedies` evaluates logs of the study again, about 3 CPU minutes.
Where propensities are known and the loss has its kink at the very dose: by the default call, with
plain outcome models, and with half the bandwidth that the default chose. Where regions with oblique
borders are a common cause: with the region as one more context.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from benchmarks.confounding.designs import DESIGNS, hospital, marker
from benchmarks.confounding.records import Task, digits
from benchmarks.confounding.study import PLAIN, SEED, log_of

if TYPE_CHECKING:
    from titrant.inference.results import Estimate

    Said = dict[str, Any]

RESULTS = Path(__file__).parents[1] / "results" / "remedies.json"
ROWS = 1000
KINKED = ("V shape at the dose, known", "paper, uniform logging, β = 1, known")
KINKED_LOGS = 40
CALLS = {
    "default": "the default",
    "plain": "`DoublyRobust(outcome=Stack(ridge_pair()))`",
    "half": "half the default's bandwidth",
}
REGIONS = {"nearest of seven hospitals": hospital, "highest of four markers": marker}
REGIONS_LOGS = 20


def main() -> None:
    warnings.simplefilter("ignore")
    kinked = {name: [three_calls(name, i) for i in range(KINKED_LOGS)] for name in KINKED}
    regions = {name: [told(name, i) for i in range(REGIONS_LOGS)] for name in REGIONS}
    found = {"kinked": kinked, "regions": regions}
    RESULTS.write_text(json.dumps(found) + "\n", encoding="utf-8")


def three_calls(name: str, replication: int) -> dict[str, Said]:
    """Return what each call says of one log."""
    log, design = log_of(Task(name, ROWS, replication, SEED)), DESIGNS[name]
    rule, truth = design.policies["rule"], design.truths["rule"]
    default = tt.evaluate(log, rule, allow_untrusted=True)
    plain = tt.evaluate(log, rule, estimator=PLAIN[0], allow_untrusted=True)
    h = float(default.bandwidth.h) / 2
    half = tt.evaluate(log, rule, bandwidth=h, allow_untrusted=True)
    each = zip(CALLS, (default, plain, half), strict=True)
    return {
        call: said(estimate, truth)
        | {"h": digits(float(estimate.bandwidth.h)), "kink": digits(estimate.bandwidth.kink)}
        for call, estimate in each
    }


def told(name: str, replication: int) -> list[Said]:
    """Return what the default says of each policy if the number of the region is a context."""
    log, design = log_of(Task(name, ROWS, replication, SEED)), DESIGNS[name]
    x = log.context
    more = tt.LoggedData(np.column_stack([x, REGIONS[name](x)]), log.treatment, log.outcome)
    doses = {policy: design.policies[policy](x) for policy in design.policies}
    found = tt.compare(more, doses, allow_untrusted=True).estimates
    return [said(found[policy], design.truths[policy]) for policy in doses]


def said(estimate: Estimate, truth: float) -> Said:
    """Return the error of an estimate, and whether it says so."""
    low, high = estimate.interval()
    return {
        "error": digits(estimate.value - truth),
        "covers": bool(low <= truth <= high),
        "width": digits(high - low),
        "verdict": estimate.diagnostics.verdict.value,
    }


def results() -> dict[str, Any]:
    """Return what `main` found."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def kinks() -> list[list[str]]:
    """Return each call's row: how it does at a kink, what it chose and why."""
    lines = []
    for name, logs in results()["kinked"].items():
        for call, words in CALLS.items():
            of = [log[call] for log in logs]
            evidence = "–" if call == "half" else f"{np.mean([s['kink'] for s in of]):.2f}"
            width = np.mean([s["width"] for s in of])
            h = np.median([s["h"] for s in of])
            lines.append([name, words, *counted(of), f"{width:.3f}", f"{h:.2f}", evidence])
    return lines


def regions() -> list[list[str]]:
    """Return each design's row: how the default does with the region among its contexts."""
    return [
        [name, f"{len(logs)}", *counted([one for log in logs for one in log])]
        for name, logs in results()["regions"].items()
    ]


def counted(of: list[Said]) -> list[str]:
    """Return coverage, silent misses, bias and RMSE."""
    error, covers = np.array([s["error"] for s in of]), np.array([s["covers"] for s in of])
    silent = ~covers & np.array([s["verdict"] == "ok" for s in of])
    each = covers.mean(), silent.mean(), error.mean(), np.sqrt(np.mean(error**2))
    return [f"{number:.3f}" for number in each]


if __name__ == "__main__":
    main()
