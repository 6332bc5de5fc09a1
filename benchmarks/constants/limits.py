"""The limits of the trust rules: what they were set on, and how often the records meet them.

No limit is varied: the records of `benchmarks.confounding` hold which checks warned, not by how
much. What a limit was set on is said beside it in the code; this is the short of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.confounding import study
from benchmarks.confounding.designs import DESIGNS
from benchmarks.confounding.page import FEWEST, Estimates, judged, said, share, table, written
from benchmarks.confounding.records import records_in

if TYPE_CHECKING:
    Array = np.ndarray
    Record = dict[str, Any]

VARIANTS = "tuning designs and 16 variants of them, not kept"
SET_ON = {
    "effective_sample_size": VARIANTS,
    "largest_weight_share": VARIANTS,
    "mean_weight": "chance (3 SE), and convention",
    "influence_tail": VARIANTS,
    "floor_share": VARIANTS,
    "support": "convention",
    "smoothing_gap": "reasoning: the bias at the chosen bandwidth is about half an SE",
    "bandwidth_sensitivity": VARIANTS,
    "outcome_model_gap": VARIANTS,
    "covariate_balance": "convention (.1 sd), and chance as of 3 SE",
    "binned_balance": VARIANTS,
    "never_given": "designs of [doses that nobody alike was given]"
    "(confounding.md#doses-that-nobody-alike-was-given)",
    "leftover_bias": "chance, on 900 logs without a bias, not kept (half an SE is convention); "
    "three of the designs *newest* were seen",
    "dose_jump": "chance (3 SE), and logs with and without a jump, not kept",
    "cut_predictions": "convention (1 SE)",
    "propensity_pit": "reasoning: 5 points move weights by a tenth",
    "drift": "chance",
    "value_range": "no limit: what is beyond all outcomes",
    "no_variation": "chance (rule of three)",
    "stray_outcomes": "reasoning: heavy tails are answers",
}
"""What the limits of each check were set on."""


def limits() -> str:
    """Return the text between the marks."""
    records = [r for r in records_in(study.RECORDS) if "failed" not in r]
    found = {by: Estimates(judged(records, by), by) for by in ("default", "plain")}
    heads = ["check", "limits set on", "sound", "misses", "misses, plain models", "coverage"]
    warned = {name for by in found for name in said(records, by)}
    names = (*(name for name in SET_ON if name in warned), *sorted(warned - set(SET_ON)))
    lines = [line(name, found) for name in names]
    sound, missed, plain = (np.sum(among) for among in amongs(found))
    return "\n".join(
        [
            f"Of the estimates behind [confounding](confounding.md) ({len(records):,} logs), the",
            f"share that each check warns of: of {sound:,} estimates on sound designs, of",
            f"{missed:,} whose interval misses, and of {plain:,} of plain models whose interval",
            "misses, which the checks are meant to catch. The last column is how often intervals",
            "of the default cover where the check warns; a dash stands for fewer than ten.",
            "",
            table(heads, lines),
            "",
        ]
    )


def line(name: str, found: dict[str, Estimates]) -> list[str]:
    sound, missed, plain = amongs(found)
    default = found["default"]
    fires = default.fires(name)
    shares = [share(fires, sound), share(fires, missed), share(found["plain"].fires(name), plain)]
    warned = fires & np.isfinite(default.error)
    coverage = share(default.covers, warned) if warned.sum() >= FEWEST else np.nan
    return [
        f"`{name}`",
        SET_ON.get(name, "see the code"),
        *(written(number, ".3f") for number in shares),
        written(coverage, ".3f"),
    ]


def amongs(found: dict[str, Estimates]) -> tuple[Array, Array, Array]:
    """Return which estimates are of sound designs, which miss, and which of plain models miss."""
    default, plain = found["default"], found["plain"]
    kind = np.array([DESIGNS[r["design"]].kind for r in default.records])[default.log]
    known = np.isfinite(default.error)
    return (
        known & (kind == "sound"),
        known & ~default.covers,
        np.isfinite(plain.error) & ~plain.covers,
    )
