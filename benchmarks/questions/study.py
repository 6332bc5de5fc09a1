"""One log of the study: what is asked of it by the default call, and with known propensities."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import titrant as tt
from benchmarks.confounding.records import digits
from benchmarks.confounding.study import timed
from benchmarks.questions.designs import DESIGNS, FUNCTIONALS, POLICY, Elsewhere, Parts, Risk
from titrant.inference import Normal
from titrant.outcome import RidgeModel, SecondOrder

if TYPE_CHECKING:
    from benchmarks.confounding.records import Task

    Record = dict[str, Any]

RECORDS = Path(__file__).parent / "records.jsonl.gz"
SEED = 2032
DEFAULT = "default call"
KNOWN = "weights alone, propensities known"
MODELED = "quadratic model, propensities known"
SETTINGS: dict[str, Any] = {
    DEFAULT: {},
    KNOWN: {"estimator": tt.SelfNormalized()},
    MODELED: {"estimator": tt.DoublyRobust(outcome=RidgeModel(SecondOrder()))},
}


def study(task: Task) -> Record:
    """Return what is kept of one log."""
    design = DESIGNS[task.design]
    seed = [task.seed, task.n, task.replication, zlib.crc32(task.design.encode())]
    found, used = timed(lambda: asked(design, task.n, seed))
    return found | used


def asked(design: Parts | Elsewhere | Risk, n: int, seed: list[int]) -> Record:
    if isinstance(design, Parts):
        return by_parts(design, design.draw(n, seed))
    if isinstance(design, Elsewhere):
        return elsewhere(design, *design.draw(n, seed))
    return risk(design, design.draw(n, seed))


def shown(log: tt.LoggedData, how: str) -> tt.LoggedData:
    """Return the log as a call sees it: the default one has to learn the propensities."""
    return log.with_propensity(None) if how == DEFAULT else log


def by_parts(design: Parts, log: tt.LoggedData) -> Record:
    """Return differences by parts, pointwise and all at once, and the p-value of equality."""
    found: Record = {"truth": [digits(truth) for truth in design.truths()]}
    for how in (DEFAULT, KNOWN):
        parts = tt.subgroups(
            shown(log, how), POLICY, by={"x2": design.cuts}, allow_untrusted=True, **SETTINGS[how]
        )
        at_once = parts.simultaneous()
        found[how] = {
            "value": [digits(part.difference) for part in parts],
            "ends": [[digits(end) for end in part.interval()] for part in parts],
            "at_once": [[digits(end) for end in at_once[part.label]] for part in parts],
            "p": digits(parts.equality[0].p_value),
        }
    return found


def elsewhere(design: Elsewhere, log: tt.LoggedData, there: dict[str, Any]) -> Record:
    """Return the value in the other population, and what it would be without weights."""
    truth = digits(design.truth(there))
    found: Record = {"truth": truth, "beyond": digits(design.beyond)}
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "default call": (DEFAULT, {"weights_to": there}),
        "weights alone": (KNOWN, {"weights_to": there}),
        "weights alone, `Normal()`": (KNOWN, {"weights_to": there, "interval": Normal()}),
        "default call, the log as it is": (DEFAULT, {}),
        "weights alone, the log as it is": (KNOWN, {}),
    }
    for name, (how, more) in calls.items():
        settings = SETTINGS[how] | more
        e = tt.evaluate(shown(log, how), POLICY, allow_untrusted=True, **settings)
        found[name] = kept(e)
    return found


def risk(design: Risk, log: tt.LoggedData) -> Record:
    """Return quantiles, tails and thresholds by each call."""
    found: Record = {"truth": {name: digits(v) for name, v in design.truths().items()}}
    for how, settings in SETTINGS.items():
        found[how] = {
            name: kept(
                tt.evaluate(
                    shown(log, how),
                    POLICY,
                    functional=functional,
                    allow_untrusted=True,
                    **settings,
                )
            )
            for name, functional in FUNCTIONALS.items()
        }
    return found


def kept(found: tt.Estimate) -> Record:
    return {
        "value": digits(found.value),
        "se": digits(found.se),
        "ends": [digits(end) for end in found.interval()],
    }
