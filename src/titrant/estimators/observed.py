"""The value of the status quo: the outcomes that were observed, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators.average import Average

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.estimators.rows import Rows
    from titrant.kernels import Scale


@dataclass(frozen=True)
class Observed(Average):
    """v̂ = mean(y): what the logged doses were worth, whatever policy is asked about."""

    def terms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002  (no bandwidth here)
        """Return y (n, 1)."""
        return rows.y[:, None]

    def dterms(self, rows: Rows, scale: Scale) -> Array:  # noqa: ARG002
        """Return 0 (n, 1, d): no policy changes what was observed."""
        return np.zeros((len(rows.y), 1, rows.tau.shape[1]))
