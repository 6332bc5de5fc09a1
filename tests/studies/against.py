"""Whether a new run of a study contradicts the committed one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from titrant.paper.result import Result

STANDARD_ERRORS = 4.0
DIGITS = 6  # of numbers in files
SAMPLE = 1e-3  # of the same log, measured again
LAST_BITS = {"direct, forest": 0.05}
"""Methods that hang on the last bits of an outcome, in which processors differ, and how far: trees
that are grown to single rows break ties by them (tests/studies/test_synthetic.py shows it)."""


def contradictions(new: Result, old: dict[str, Any]) -> list[str]:
    """What a new run, perhaps a quick one, says against a committed result.

    The sample must agree to three digits, but for methods that hang on last bits; every row within
    4 standard errors: those committed, as much greater as the new run is shorter.
    """
    found = [
        f"{name}: {value:.6g}, committed {old['sample'].get(name)}."
        for name, value in new.sample.items()
        if not math.isclose(
            value,
            old["sample"].get(name, math.nan),
            rel_tol=LAST_BITS.get(name, SAMPLE),
            abs_tol=1e-6,
        )
    ]
    before = {(row["label"], row["quantity"]): row for row in old["rows"]}
    repeated = old["settings"]["replications"] / new.settings["replications"]
    shorter = math.sqrt(max(repeated, 1.0))
    for row in new.rows:
        past = before.get((row.label, row.quantity))
        if past is None:
            found.append(f"{row.label}, {row.quantity}: not in the committed result.")
            continue
        tolerance = STANDARD_ERRORS * shorter * (past["se"] or 0.0)
        tolerance += 10.0 ** (1 - DIGITS) * abs(past["ours"])
        if abs(row.ours - past["ours"]) > tolerance:
            found.append(
                f"{row.label}, {row.quantity}: {row.ours:.4g}, committed {past['ours']:.4g}, "
                f"tolerance {tolerance:.2g}."
            )
    return found
