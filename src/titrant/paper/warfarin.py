"""The warfarin patients: every way to a dosing rule that figure 6 and table 1 compare.

Four patients in five are learned from: the log holds a simulated dose of each and its loss, never
the dose that proved right. The rules are judged by that dose on the patients left over.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

import titrant as tt
from titrant.optimize import Box, paper_box
from titrant.paper.warfarin_table import WHERE, load_warfarin, simulated_cohort

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.ensemble import RandomForestRegressor

    from titrant._types import Array
    from titrant.paper.study import Measurement, Settings, Task
    from titrant.paper.warfarin_table import Cohort, Rows

    Method = Callable[["Case"], Array]
    """From a case to the doses of its new patients."""


VARIABLE = "TITRANT_WARFARIN"
QUARTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FAR = 3.0
"""A dose so many sd from its center was logged for one patient in 400."""


@dataclass(frozen=True, slots=True)
class Case:
    """A split of the patients and the log of one part."""

    cohort: Cohort
    train: Rows
    test: Rows
    log: tt.LoggedData
    seed: int

    @classmethod
    def of(cls, cohort: Cohort, seed: int) -> Case:
        """Return the split and the log that a seed draws."""
        train, test = cohort.split(seed)
        return cls(cohort, train, test, cohort.log(train, seed), seed)

    @property
    def patients(self) -> Array:
        """The contexts of the new patients."""
        return self.cohort.features[self.test]

    def learned(
        self, procedure: tt.CPO | None = None, policy: tt.LinearClass | None = None
    ) -> Array:
        """Return the doses of a rule learned from the log."""
        learner = tt.PolicyLearner(policy=policy, procedure=procedure, honest=False)
        return learner.fit(self.log).policy_(self.patients)

    def forest(self) -> RandomForestRegressor:
        """Return the outcome model of the paper's direct method."""
        from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

        return RandomForestRegressor(n_estimators=10, random_state=self.seed)


# ── The rules ────────────────────────────────────────────────────────────────────────────────────


def _kernel(h: float, restarts: int = 1) -> Method:
    """Return the paper's learner with standardized features and an intercept."""
    estimator = tt.SelfNormalized(clip=0.005)
    procedure = tt.CPO(estimator=estimator, bandwidth=h, restarts=restarts)
    return lambda case: case.learned(procedure)


def _literal(case: Case) -> Array:
    """Return the doses of the paper's learner to the letter: raw features, no intercept, its box.

    The search begins where every feature gives an equal share of the mean dose.
    """
    share = case.log.context.shape[1] * case.log.context.mean(axis=0)
    greatest = case.log.treatment.max() / (0.25 * share)
    procedure = tt.CPO(
        estimator=tt.SelfNormalized(clip=0.005),
        bandwidth=4.0,
        restarts=1,
        start=tt.Linear(case.log.treatment.mean() / share),
        constraint=Box(-greatest, greatest),
        clipped=False,
    )
    raw = tt.LinearClass(intercept=False, standardize=False)
    learner = tt.PolicyLearner(policy=raw, procedure=procedure, honest=False)
    return learner.fit(case.log.with_bounds(None)).policy_(case.patients)


def _centered(case: Case) -> Array:
    """Return the doses of centered IPW, its settings chosen with the truth in view."""
    estimator = tt.IPW(centered=True, clip=0.02)
    return case.learned(tt.CPO(estimator=estimator, bandwidth=20.0, ridge=0.001))


def _best_through_zero(case: Case) -> Array:
    x, best = case.cohort.features[case.train], case.cohort.therapeutic_dose[case.train]
    box = paper_box(x, best)
    rule = tt.median_regression(x, best, intercept=False, lower=box.lower, upper=box.upper)
    return rule(case.patients)


def _best(case: Case) -> Array:
    x, best = case.cohort.features[case.train], case.cohort.therapeutic_dose[case.train]
    return tt.median_regression(x, best)(case.patients)


def _bins(*, quantiles: bool, se_weight: float = 0.0) -> Method:
    """Return learning over ten bins of the dose, as POEM does it."""

    def doses(case: Case) -> Array:
        known = tt.Known(case.cohort.density, case.cohort.cdf)
        rule = tt.discretized_policy(
            case.log, bins=10, quantiles=quantiles, propensity=known, se_weight=se_weight
        )
        return rule(case.patients)

    return doses


METHODS: dict[str, Method] = {
    "titrant's default": lambda case: case.learned(),
    "best in class, no intercept": _best_through_zero,
    "best in class": _best,
    "CPO, h = 4": _kernel(4.0),
    "CPO, h = 10": _kernel(10.0),
    "CPO, h = 10, best of 8 starts": _kernel(10.0, restarts=8),
    "CPO to the letter": _literal,
    "centered IPW, h = 20": _centered,
    "direct, forest": lambda case: tt.direct_argmin(case.log, case.forest())(case.patients),
    "direct, forest, linear rule": lambda case: tt.direct_linear(case.log, case.forest())(
        case.patients
    ),
    "10 even bins": _bins(quantiles=False),
    "10 even bins, penalized": _bins(quantiles=False, se_weight=1.0),
    "10 quantile bins": _bins(quantiles=True),
    "10 quantile bins, penalized": _bins(quantiles=True, se_weight=1.0),
    "mean dose": lambda case: tt.mean_dose(case.log)(case.patients),
    "original": lambda case: case.cohort.log(case.test, case.seed).treatment,
}
"""The slow one first, so that processes end together."""


# ── One piece of work ────────────────────────────────────────────────────────────────────────────


def tasks(settings: Settings) -> list[Task]:
    """Return one task for each rule and split."""
    table = None if settings.simulated else find_table(settings.data)
    return [
        {"method": method, "split": settings.seed + k, "table": table}
        for method in METHODS
        for k in range(settings.replications)
    ]


def measure(task: Task) -> Measurement:
    """Return the losses of a rule on the new patients: plain |τ − T*| and thresholded."""
    case = Case.of(_cohort(task["table"]), task["split"])
    doses = METHODS[task["method"]](case)
    plain = case.cohort.plain(doses, case.test)
    thresholded = case.cohort.thresholded(doses, case.test)
    distance = np.abs(doses - case.cohort.logging_mean(case.patients)) / case.cohort.logging_sd
    return {
        "L1": float(plain.mean()),
        "sd": float(plain.std(ddof=1)),
        "L2": float(np.mean(plain**2)),
        "thresholded": float(thresholded.mean()),
        "far": float(np.mean(distance > FAR)),
        "plain_quartiles": np.quantile(plain, QUARTILES).tolist(),
        "thresholded_quartiles": np.quantile(thresholded, QUARTILES).tolist(),
    }


def find_table(data: str | None) -> str:
    """Return where the table is: as told, or by the environment."""
    path = data or os.environ.get(VARIABLE)
    if path is None:
        raise tt.DataError(
            f"No warfarin table was given: name it by `--data` or in {VARIABLE}. {WHERE}"
        )
    return path


@cache
def _cohort(table: str | None) -> Cohort:
    return simulated_cohort() if table is None else load_warfarin(table)
