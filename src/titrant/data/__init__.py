"""Logged data: what was known, what was done, what came of it; and designs with a known truth.

`frames` (tables of other libraries), `files` (CSV, Parquet, Arrow) and `simulate` (the designs) are
modules of their own, loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from titrant.data.columns import Columns
from titrant.data.logged import LoggedData

if TYPE_CHECKING:
    from titrant.data.simulate import (
        DESIGNS,
        Design,
        Dosing,
        NormalDose,
        Quadratic,
        Synthetic,
        TenContexts,
        UniformDose,
    )

__all__ = [
    "DESIGNS",
    "Columns",
    "Design",
    "Dosing",
    "LoggedData",
    "NormalDose",
    "Quadratic",
    "Synthetic",
    "TenContexts",
    "UniformDose",
]


def __getattr__(name: str) -> object:
    """Import a design when it is first used (PEP 562): they load scipy, logs need not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("titrant.data.simulate"), name)
