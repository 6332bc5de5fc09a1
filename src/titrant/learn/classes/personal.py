"""The dose with the least loss for each person, kept as a table: for reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant import _check
from titrant.learn.classes.base import CurveClass, used_columns, varying
from titrant.policies import Personal
from titrant.scaling import Held, spread_of

if TYPE_CHECKING:
    from titrant.data import LoggedData
    from titrant.learn.classes.base import DoseCurves


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalClass(CurveClass):
    """Each person's least loss by the curves of the ``nearest`` like people, of ``most`` kept.

    It is what an unrestricted rule would do. It has no formula, and no person can read it.
    """

    nearest: int = 10
    most: int = 1000
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _check.count(self.nearest, "nearest", "PersonalClass")
        _check.count(self.most, "most", "PersonalClass")

    @property
    def candidates(self) -> dict[str, int | None]:
        """The least loss of each person."""
        return {"least curve": None}

    def found(self, log: LoggedData, curves: DoseCurves) -> tuple[Personal]:
        """Return the table of the rows, or of as many as are kept, evenly drawn."""
        used = varying(self.features, log, "A personal policy")
        x = used_columns(log.context, used)
        spread = spread_of(Held.of(x).columns(x))
        some = np.unique(np.linspace(0, len(x) - 1, self.most).astype(np.intp))
        return (
            Personal(
                x[some],
                curves.model[some],
                grid=curves.grid,
                scale=np.where(spread > 0.0, spread, 1.0),
                nearest=min(self.nearest, len(some)),
                features=tuple(log.names[j] for j in used),
            ),
        )
