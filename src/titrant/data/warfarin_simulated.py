"""Made-up warfarin patients, for those who do not have the consortium's table.

No record is copied or resampled: every cell is drawn from frequencies of the usual size, and the
dose from the consortium's published dosing equation (N Engl J Med 2009; 360: 753, appendix),

    √dose = 5.6044 − 0.2614·decades + 0.0087·cm + 0.0128·kg + genes, race, drugs + noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.data.warfarin_recipe import (
    AGE,
    AGES,
    CYP2C9,
    DOSE,
    ETHNICITY,
    GENDER,
    HEIGHT,
    INDICATION,
    INR,
    RACE,
    STABLE,
    VKORC1,
    WEIGHT,
    YES_NO,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.warfarin_recipe import Record

    Texts = NDArray[np.str_]

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
    cells: dict[str, Texts]


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


def _genotype(rng: np.random.Generator, site: str, low: NDArray[np.bool_]) -> Texts:
    """Return texts such as A/G (n,) from the haplotypes (n, 2), some missing."""
    first, second, share, missing = _SITES[site]
    carries = rng.random(low.shape) < share
    alleles = np.where(low | ~carries if site in _ON_SECOND else low & carries, first, second)
    alleles.sort(axis=1)
    return _with_missing(rng, _joined(alleles), missing)


def _cyp2c9(rng: np.random.Generator, race: NDArray[np.intp]) -> Texts:
    u = rng.random((len(race), 2))
    two, three = _STAR_2[race][:, None], _STAR_3[race][:, None]
    alleles = np.where(u < two, "*2", np.where(u < two + three, "*3", "*1"))
    alleles.sort(axis=1)
    return _with_missing(rng, _joined(alleles), 0.02)


def _indications(rng: np.random.Generator, n: int) -> Texts:
    main = rng.choice(list("12345678"), n, p=(0.09, 0.07, 0.4, 0.21, 0.03, 0.05, 0.03, 0.12))
    also = np.where(rng.random(n) < 0.1, "; 8", "")  # noqa: PLR2004
    return np.char.add(main, also)


def _joined(alleles: Texts) -> Texts:
    return np.char.add(np.char.add(alleles[:, 0], "/"), alleles[:, 1])


def _with_missing(rng: np.random.Generator, cells: Texts, share: float) -> Texts:
    return np.where(rng.random(len(cells)) < share, "NA", cells)


def _texts(numbers: Array) -> Texts:
    return np.array([f"{number:.2f}" for number in numbers])
