"""Warfarin patients: the consortium's table, the study's features, and made-up look-alikes."""

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
from titrant.data.columns import check_present
from titrant.data.logged import LoggedData
from titrant.data.validate import frozen, unreadable
from titrant.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from titrant._types import Array

    Record = dict[str, str]
    Feature = tuple[str, Callable[[Record], float]]
    Cells = NDArray[np.str_]
    PatientNumbers = NDArray[np.intp]

# From the consortium's table to the study's features: 87 columns, of which 81 vary.
#
# A record is one row of the table, every cell a text; ``NA`` and the empty text mean missing.


DOSE = "Therapeutic Dose of Warfarin"
STABLE = "Subject Reached Stable Dose of Warfarin"
INR = "INR on Reported Therapeutic Dose of Warfarin"
GENDER, RACE, ETHNICITY = "Gender", "Race (OMB)", "Ethnicity (OMB)"
AGE, HEIGHT, WEIGHT = "Age", "Height (cm)", "Weight (kg)"
INDICATION = "Indication for Warfarin Treatment"
CYP2C9 = "CYP2C9 consensus"

AGES = (
    *("10 - 19", "20 - 29", "30 - 39", "40 - 49", "50 - 59"),
    *("60 - 69", "70 - 79", "80 - 89", "90+"),
)

YES_NO = (
    "Diabetes",
    "Congestive Heart Failure and/or Cardiomyopathy",
    "Valve Replacement",
    "Aspirin",
    "Acetaminophen or Paracetamol (Tylenol)",
    "Was Dose of Acetaminophen or Paracetamol (Tylenol) >1300mg/day",
    "Simvastatin (Zocor)",
    "Atorvastatin (Lipitor)",
    "Fluvastatin (Lescol)",
    "Lovastatin (Mevacor)",
    "Pravastatin (Pravachol)",
    "Rosuvastatin (Crestor)",
    "Cerivastatin (Baycol)",
    "Amiodarone (Cordarone)",
    "Carbamazepine (Tegretol)",
    "Phenytoin (Dilantin)",
    "Rifampin or Rifampicin",
    "Sulfonamide Antibiotics",
    "Macrolide Antibiotics",
    "Anti-fungal Azoles",
    "Herbal Medications, Vitamins, Supplements",
    "Current Smoker",
)

VKORC1 = {
    "VKORC1 -1639 consensus": ("A/A", "A/G", "G/G"),
    "VKORC1 497 consensus": ("G/G", "G/T", "T/T"),
    "VKORC1 1173 consensus": ("C/C", "C/T", "T/T"),
    "VKORC1 1542 consensus": ("C/C", "C/G", "G/G"),
    "VKORC1 3730 consensus": ("A/A", "A/G", "G/G"),
    "VKORC1 2255 consensus": ("C/C", "C/T", "T/T"),
    "VKORC1 -4451 consensus": ("A/A", "A/C", "C/C"),
}

COLUMNS = (
    *(STABLE, DOSE, INR, GENDER, RACE, ETHNICITY, AGE, HEIGHT, WEIGHT, INDICATION, CYP2C9),
    *YES_NO,
    *VKORC1,
)
"""The columns of the table that the recipe reads."""

LEAST_SD = 0.05


def usable(record: Record) -> bool:
    """Return whether a stable dose was reached, and the dose and the INR on it are known."""
    return record[STABLE] == "1" and not _missing(record[DOSE]) and not _missing(record[INR])


def dose(record: Record) -> float:
    """Return the therapeutic dose in mg a week."""
    return float(record[DOSE])


def bmi(record: Record) -> float:
    """Return kg/m², 0 when height or weight is missing."""
    height, weight = _number(record[HEIGHT]), _number(record[WEIGHT])
    return 1e4 * weight / height**2 if height and weight else 0.0


def feature_matrix(records: Sequence[Record]) -> tuple[tuple[str, ...], Array]:
    """Return the names of the features that vary (population sd ≥ 0.05) and their values (n, p)."""
    every = tuple(features())
    table = np.array([[value(record) for _, value in every] for record in records])
    varies = table.std(axis=0) >= LEAST_SD
    names = tuple(name for (name, _), keep in zip(every, varies, strict=True) if keep)
    return names, table[:, varies]


def features() -> Iterator[Feature]:
    """Yield the 87 features, each a name and a function of a record."""
    yield from _person()
    for digit in "12345678":
        yield f"Indication {digit}", _contains(INDICATION, digit)
    for column in YES_NO:
        yield f"{column} = 0", _equals(column, "0")
        yield f"{column} = 1", _equals(column, "1")
    for genotype in ("*1/*1", "*1/*2", "*1/*3"):
        yield f"CYP2C9 {genotype}", _equals(CYP2C9, genotype)
    yield "CYP2C9 missing", lambda record: float(_missing(record[CYP2C9]))
    for column, genotypes in VKORC1.items():
        for genotype in genotypes:
            yield f"{column.removesuffix(' consensus')} {genotype}", _equals(column, genotype)


def _person() -> Iterator[Feature]:
    yield "Male", _equals(GENDER, "male")
    yield "White", _equals(RACE, "White")
    yield "Asian", _equals(RACE, "Asian")
    yield "Black", _equals(RACE, "Black or African American")
    yield "Non-hispanic", _equals(ETHNICITY, "not Hispanic or Latino")
    yield (
        "Age group",
        lambda record: float(AGES.index(age) + 1 if (age := record[AGE]) in AGES else 0),
    )
    yield "No age", lambda record: float(record[AGE] not in AGES)
    yield "Height", lambda record: _number(record[HEIGHT])
    yield "Weight", lambda record: _number(record[WEIGHT])
    yield "BMI", bmi


def _equals(column: str, text: str) -> Callable[[Record], float]:
    return lambda record: float(record[column] == text)


def _contains(column: str, text: str) -> Callable[[Record], float]:
    return lambda record: float(text in record[column])


def _number(cell: str) -> float:
    return 0.0 if _missing(cell) else float(cell)


def _missing(cell: str) -> bool:
    return cell in ("", "NA")


# Made-up warfarin patients, for those who do not have the consortium's table.
#
# No record is copied or resampled: every cell is drawn from frequencies of the usual size, and the
# dose from the consortium's published dosing equation (N Engl J Med 2009; 360: 753, appendix),
#
#     √dose = 5.6044 − 0.2614·decades + 0.0087·cm + 0.0128·kg + genes, race, drugs + noise.

_NOISE = 1.05  # sd of √dose around the equation
_LEAST_ROOT = 1.5  # doses do not fall under 2.25 mg a week

_RACES = ("White", "Asian", "Black or African American", "Unknown")
_RACE_SHARES = (0.55, 0.28, 0.08, 0.09)
_AGE_SHARES = (0.003, 0.022, 0.04, 0.095, 0.19, 0.245, 0.275, 0.12, 0.01)

# By race, in the order above.
_HEIGHT = np.array([173.0, 164.0, 174.0, 172.0])
_LOG_BMI = np.log([28.5, 23.5, 29.5, 28.0])
_LOW_DOSE_HAPLOTYPE = np.array([0.39, 0.9, 0.11, 0.4])
_STAR_2, _STAR_3 = np.array([0.13, 0.0, 0.03, 0.12]), np.array([0.07, 0.04, 0.02, 0.07])

# Alleles of a VKORC1 site on the low-dose and the other haplotype, how often a haplotype carries
# a variant of its own (of 497 on the first, of 3730 and −4451 on the second), share missing.
_SITES = {
    "VKORC1 -1639 consensus": ("A", "G", 1.0, 0.25),
    "VKORC1 497 consensus": ("G", "T", 0.5, 0.65),
    "VKORC1 1173 consensus": ("T", "C", 1.0, 0.35),
    "VKORC1 1542 consensus": ("C", "G", 1.0, 0.35),
    "VKORC1 3730 consensus": ("G", "A", 0.6, 0.4),
    "VKORC1 2255 consensus": ("T", "C", 1.0, 0.55),
    "VKORC1 -4451 consensus": ("C", "A", 0.4, 0.85),
}
_ON_SECOND = ("VKORC1 3730 consensus", "VKORC1 -4451 consensus")

# Share of yes and of missing for each yes/no column, in the order of the recipe.
_YES = (
    *(0.11, 0.13, 0.18, 0.17, 0.09, 0.001, 0.1, 0.04, 0.001, 0.007, 0.012),
    *(0.006, 0.0, 0.05, 0.007, 0.006, 0.0005, 0.001, 0.0005, 0.006, 0.16, 0.08),
)
_UNKNOWN = (*(0.4, 0.3, 0.3, 0.3, 0.6, 0.8, 0.3), *((0.55,) * 6), 0.25, *((0.55,) * 6), 0.65, 0.4)

_CYP2C9_EFFECTS = {
    "*1/*2": -0.5211,
    "*1/*3": -0.9357,
    "*2/*2": -1.0616,
    "*2/*3": -1.9206,
    "*3/*3": -2.3312,
}
_VKORC1_EFFECTS = np.array([0.0, -0.8677, -1.6974])  # by the number of low-dose haplotypes
_RACE_EFFECTS = np.array([0.0, -0.1092, -0.2760, -0.1032])
_INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")


@dataclass(frozen=True, slots=True)
class _Patients:
    """What a dose depends on, each (n,); `low` counts low-dose haplotypes, the rest are cells."""

    race: NDArray[np.intp]
    age: NDArray[np.intp]
    height: Array
    weight: Array
    low: NDArray[np.intp]
    cells: dict[str, Cells]


def simulated_records(n: int, seed: int) -> list[Record]:
    """Return n rows like those of the consortium's table."""
    rng = np.random.default_rng([seed, n])
    patients = _patients(rng, n)
    root = np.maximum(_root_dose(patients) + _NOISE * rng.standard_normal(n), _LEAST_ROOT)
    cells = {
        **patients.cells,
        DOSE: _texts(np.round(2.0 * root**2) / 2.0),
        STABLE: np.full(n, "1"),
        INR: np.full(n, "2.5"),
        RACE: np.array(_RACES)[patients.race],
        ETHNICITY: _with_missing(rng, np.full(n, "not Hispanic or Latino"), 0.2),
        AGE: _with_missing(rng, np.array(AGES)[patients.age], 0.007),
        HEIGHT: _texts(patients.height),
        WEIGHT: _texts(patients.weight),
        INDICATION: _with_missing(rng, _indications(rng, n), 0.1),
    }
    columns = [column.tolist() for column in cells.values()]
    return [dict(zip(cells, row, strict=True)) for row in zip(*columns, strict=True)]


def _patients(rng: np.random.Generator, n: int) -> _Patients:
    race = rng.choice(len(_RACES), n, p=_RACE_SHARES)
    male = rng.random(n) < 0.58  # noqa: PLR2004
    height = _HEIGHT[race] + np.where(male, 4.0, -8.0) + 7.0 * rng.standard_normal(n)
    bmi = np.exp(_LOG_BMI[race] + 0.2 * rng.standard_normal(n))
    low = rng.random((n, 2)) < _LOW_DOSE_HAPLOTYPE[race][:, None]
    cells = {GENDER: np.where(male, "male", "female"), CYP2C9: _cyp2c9(rng, race)}
    cells |= {site: _genotype(rng, site, low) for site in VKORC1}
    for column, yes, missing in zip(YES_NO, _YES, _UNKNOWN, strict=True):
        answer = np.where(rng.random(n) < yes / (1.0 - missing), "1", "0")
        cells[column] = _with_missing(rng, answer, missing)
    return _Patients(
        race=race,
        age=rng.choice(len(AGES), n, p=_AGE_SHARES),
        height=height,
        weight=bmi * height**2 / 1e4,
        low=low.sum(axis=1),
        cells=cells,
    )


def _root_dose(patients: _Patients) -> Array:
    """Return √dose by the consortium's equation (n,)."""
    cells = patients.cells
    inducer = np.logical_or.reduce([cells[name] == "1" for name in _INDUCERS])
    genes = _VKORC1_EFFECTS[patients.low] + sum(
        effect * (cells[CYP2C9] == genotype) for genotype, effect in _CYP2C9_EFFECTS.items()
    )
    body = 0.0087 * patients.height + 0.0128 * patients.weight - 0.2614 * (patients.age + 1)
    drugs = 1.1816 * inducer - 0.5503 * (cells["Amiodarone (Cordarone)"] == "1")
    return np.asarray(5.6044 + body + genes + _RACE_EFFECTS[patients.race] + drugs)


def _genotype(rng: np.random.Generator, site: str, low: NDArray[np.bool_]) -> Cells:
    """Return texts such as A/G (n,) from the haplotypes (n, 2), some missing."""
    first, second, share, missing = _SITES[site]
    carries = rng.random(low.shape) < share
    alleles = np.where(low | ~carries if site in _ON_SECOND else low & carries, first, second)
    alleles.sort(axis=1)
    return _with_missing(rng, _joined(alleles), missing)


def _cyp2c9(rng: np.random.Generator, race: NDArray[np.intp]) -> Cells:
    u = rng.random((len(race), 2))
    two, three = _STAR_2[race][:, None], _STAR_3[race][:, None]
    alleles = np.where(u < two, "*2", np.where(u < two + three, "*3", "*1"))
    alleles.sort(axis=1)
    return _with_missing(rng, _joined(alleles), 0.02)


def _indications(rng: np.random.Generator, n: int) -> Cells:
    main = rng.choice(list("12345678"), n, p=(0.09, 0.07, 0.4, 0.21, 0.03, 0.05, 0.03, 0.12))
    also = np.where(rng.random(n) < 0.1, "; 8", "")  # noqa: PLR2004
    return np.char.add(main, also)


def _joined(alleles: Cells) -> Cells:
    return np.char.add(np.char.add(alleles[:, 0], "/"), alleles[:, 1])


def _with_missing(rng: np.random.Generator, cells: Cells, share: float) -> Cells:
    return np.where(rng.random(len(cells)) < share, "NA", cells)


def _texts(numbers: Array) -> Cells:
    return np.array([f"{number:.2f}" for number in numbers])


# Warfarin patients whose best dose is known, and doses logged as the paper simulates them.
#
# The table belongs to the International Warfarin Pharmacogenetics Consortium and is not part of
# titrant; `load_warfarin` reads a copy of yours, `simulated_cohort` makes up patients like them.

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

    def split(self, seed: int) -> tuple[PatientNumbers, PatientNumbers]:
        """Return the patients to learn from, four in five, and those to judge by."""
        order = _stream(seed, "split").permutation(len(self))
        cut = int(_TRAIN_SHARE * len(self))
        return order[:cut], order[cut:]

    def log(self, rows: PatientNumbers, seed: int) -> LoggedData:
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

    def plain(self, doses: Array, rows: PatientNumbers) -> Array:
        """Return |τ − T*| (m,) for the doses (m,) of some patients: the loss of the table."""
        return np.abs(doses - self.therapeutic_dose[rows])

    def thresholded(self, doses: Array, rows: PatientNumbers) -> Array:
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
        raise unreadable(str(file), "the warfarin table", reason) from None


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
    needed = tuple(("warfarin", name) for name in COLUMNS)
    check_present(needed, reader.fieldnames or ())
    return list(reader)


def _cohort(records: Sequence[Record], *, simulated: bool) -> Cohort:
    stable = [record for record in records if usable(record)]
    known = np.array([bmi(record) > 0 for record in stable], dtype=bool)
    if np.count_nonzero(known) < 2:  # noqa: PLR2004
        raise DataError(
            f"The warfarin table must have patients with a stable dose, its INR, height and "
            f"weight; got {np.count_nonzero(known):,} of {len(records):,} rows. {WHERE}"
        )
    # The features are chosen before the patients without a BMI are dropped, as the authors did.
    names, features = feature_matrix(stable)
    doses = np.array([dose(record) for record in stable])
    return Cohort(
        features=np.ascontiguousarray(features[known]),
        names=names,
        therapeutic_dose=doses[known],
        simulated=simulated,
    )


def _stream(seed: int, purpose: str) -> np.random.Generator:
    """Return random numbers of their own for each purpose."""
    number = _check.count(seed, "seed", f"Cohort.{purpose}", at_least=0)
    return np.random.default_rng([number, *purpose.encode()])
