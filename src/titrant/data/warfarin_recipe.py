"""From the consortium's table to the study's features: 87 columns, of which 81 vary.

A record is one row of the table, every cell a text; ``NA`` and the empty text mean missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from titrant._types import Array

    Record = dict[str, str]
    Feature = tuple[str, Callable[[Record], float]]

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
