"""Warfarin patients whose best dose is known, and doses logged as the paper simulates them.

The table belongs to the International Warfarin Pharmacogenetics Consortium and is not part of
titrant; `load_warfarin` reads a copy of yours, `simulated_cohort` makes up patients like them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.data import warfarin_recipe, wording
from titrant.data.arrays import frozen
from titrant.data.columns import check_present
from titrant.data.logged import LoggedData
from titrant.data.warfarin_simulated import simulated_records
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.warfarin_recipe import Record

    Rows = NDArray[np.intp]

KNOWN_SHA256 = "c44776ff36fc442becc7d3f7149594e1b7c54bebc063f5ca23fa030699f9a37a"
"""The table of 5,700 patients and 67 columns with which the study's numbers were made."""

WHERE = (
    "PharmGKB offers the table to everyone as submission 553247439 of the International Warfarin "
    "Pharmacogenetics Consortium; save it as CSV, one line a patient, `NA` for missing values. "
    "Without it, `titrant reproduce --simulated` and `simulated_cohort()` make up patients "
    "like these."
)

_PATIENTS = 3964
_TRAIN_SHARE = 0.8
_MIXTURE = 0.5  # θ of the paper: the share of the dose's variance that follows the BMI
_TOLERANCE = 0.1  # a dose within 10 % of the therapeutic one is right


class UnknownTable(UserWarning):
    """The warfarin table is not the one with which the study's numbers were made."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Cohort:
    """Patients, the dose that proved right for each, and the paper's way of logging other doses.

    The logged dose follows the BMI: with μ and σ of the therapeutic dose over the whole cohort
    and Z the standardized BMI, T = |μ + σ√½·Z + σ√½·ε|, ε ~ N(0, 1). Its density at t ≥ 0 is
    φ(t; m, s) + φ(−t; m, s), m = μ + σ√½·Z, s = σ√½; the paper's lacks s and the reflection.

    Attributes
    ----------
    features (n, p), names (p,), therapeutic_dose (n,) in mg a week, simulated: made up by code
    """

    features: Array
    names: tuple[str, ...]
    therapeutic_dose: Array
    simulated: bool

    def __post_init__(self) -> None:
        """Keep the arrays read-only."""
        object.__setattr__(self, "features", frozen(self.features))
        object.__setattr__(self, "therapeutic_dose", frozen(self.therapeutic_dose))

    def __len__(self) -> int:
        """Return the number of patients n."""
        return len(self.therapeutic_dose)

    def __repr__(self) -> str:
        """Return one line that says whether the patients are real."""
        kind = "simulated patients" if self.simulated else "patients"
        return f"Cohort({len(self):,} {kind}; {len(self.names)} features)"

    @property
    def bmi(self) -> Array:
        """The body mass index (n,), one of the features."""
        return self._bmi_of(self.features)

    @property
    def logging_sd(self) -> float:
        """The sd s = σ√½ of the logged dose given the BMI, before reflection."""
        return float(self.therapeutic_dose.std() * np.sqrt(1.0 - _MIXTURE))

    def logging_mean(self, X: Array) -> Array:
        """Return m = μ + σ√½·Z (n,), the mean of the logged dose before reflection."""
        z = (self._bmi_of(X) - self.bmi.mean()) / self.bmi.std()
        mu, sigma = self.therapeutic_dose.mean(), self.therapeutic_dose.std()
        return np.asarray(mu + sigma * np.sqrt(_MIXTURE) * z)

    def density(self, X: Array, t: Array) -> Array:
        """Return f(t | x) = φ(t; m, s) + φ(−t; m, s) for t ≥ 0, else 0 (n,)."""
        m, s = self.logging_mean(X), self.logging_sd
        bells = np.exp(-0.5 * ((t - m) / s) ** 2) + np.exp(-0.5 * ((t + m) / s) ** 2)
        return np.where(t >= 0.0, bells / (s * np.sqrt(2.0 * np.pi)), 0.0)

    def cdf(self, X: Array, t: Array) -> Array:
        """Return P(T ≤ t | x) = Φ((t − m)/s) − Φ((−t − m)/s) for t ≥ 0, else 0 (n,)."""
        from scipy.special import ndtr  # noqa: PLC0415 - arrays alone do not need scipy

        m, s = self.logging_mean(X), self.logging_sd
        inside = ndtr((t - m) / s) - ndtr((-t - m) / s)
        return np.where(t >= 0.0, np.clip(inside, 0.0, 1.0), 0.0)

    def split(self, seed: int) -> tuple[Rows, Rows]:
        """Return the patients to learn from, four in five, and those to judge by."""
        order = _stream(seed, "split").permutation(len(self))
        cut = int(_TRAIN_SHARE * len(self))
        return order[:cut], order[cut:]

    def log(self, rows: Rows, seed: int) -> LoggedData:
        """Return simulated doses and their losses for some patients.

        A seed gives each patient of the cohort one dose, whichever `rows` are asked for.
        """
        x = self.features[rows]
        noise = _stream(seed, "log").standard_normal(len(self))[rows]
        t = np.abs(self.logging_mean(x) + self.logging_sd * noise)
        return LoggedData(
            x,
            t,
            self.thresholded(t, rows),
            self.density(x, t),
            bounds=(0.0, None),
            names=self.names,
        )

    def plain(self, doses: Array, rows: Rows) -> Array:
        """Return |τ − T*| (m,) for the doses (m,) of some patients: the loss of the table."""
        return np.abs(doses - self.therapeutic_dose[rows])

    def thresholded(self, doses: Array, rows: Rows) -> Array:
        """Return max(|τ − T*| − 0.1·T*, 0) (m,): the loss that is logged and learned from."""
        slack = _TOLERANCE * self.therapeutic_dose[rows]
        return np.maximum(self.plain(doses, rows) - slack, 0.0)

    def _bmi_of(self, X: Array) -> Array:
        return X[:, self.names.index("BMI")]


def load_warfarin(path: str | PathLike[str]) -> Cohort:
    """Return the patients of the consortium's table, a CSV of yours.

    Kept are the 3,964 patients with a stable dose, an INR on it, height and weight; features are
    the 81 that vary among those with a stable dose and an INR. A table other than the known one
    is accepted with the warning `UnknownTable`.
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(f"There is no warfarin table at `{file}`. {WHERE}")
    content = file.read_bytes()
    _check_known(file, content)
    try:
        return _cohort(_records(content), simulated=False)
    except (ValueError, csv.Error) as reason:  # also cells that are no numbers, and bad encodings
        if isinstance(reason, DataError):
            raise
        raise wording.unreadable(str(file), "the warfarin table", reason) from None


def simulated_cohort(n: int = _PATIENTS, seed: int = 0) -> Cohort:
    """Return made-up patients with the columns of the real ones; see `warfarin_simulated`."""
    _check.count(n, "n", "simulated_cohort", at_least=100)
    _check.count(seed, "seed", "simulated_cohort", at_least=0)
    return _cohort(simulated_records(n, seed), simulated=True)


def _check_known(file: Path, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != KNOWN_SHA256:
        warnings.warn(
            f"The warfarin table `{file}` has sha256 {found}, not {KNOWN_SHA256} of the table with "
            "which the study's numbers were made; expect numbers that differ.",
            UnknownTable,
            stacklevel=3,
        )


def _records(content: bytes) -> list[Record]:
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), restval="NA")
    needed = tuple(("warfarin", name) for name in warfarin_recipe.COLUMNS)
    check_present(needed, reader.fieldnames or ())
    return list(reader)


def _cohort(records: Sequence[Record], *, simulated: bool) -> Cohort:
    stable = [record for record in records if warfarin_recipe.usable(record)]
    known = np.array([warfarin_recipe.bmi(record) > 0 for record in stable], dtype=bool)
    if np.count_nonzero(known) < 2:  # noqa: PLR2004
        raise DataError(
            f"The warfarin table must have patients with a stable dose, its INR, height and "
            f"weight; got {np.count_nonzero(known):,} of {len(records):,} rows. {WHERE}"
        )
    # The features are chosen before the patients without a BMI are dropped, as the authors did.
    names, features = warfarin_recipe.feature_matrix(stable)
    dose = np.array([warfarin_recipe.dose(record) for record in stable])
    return Cohort(
        features=np.ascontiguousarray(features[known]),
        names=names,
        therapeutic_dose=dose[known],
        simulated=simulated,
    )


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """Return random numbers of their own for each purpose."""
    number = _check.count(seed, "seed", f"Cohort.{purpose}", at_least=0)
    return np.random.default_rng([number, *purpose.encode()])
