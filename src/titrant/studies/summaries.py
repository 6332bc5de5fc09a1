"""Rows of the tables of studies: means and root mean squared errors over replications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.studies.result import Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from titrant._types import Array
    from titrant.studies.study import Piece

_RMSE_SHARE = 0.2
"""An RMSE of 50 replications is known to about a fifth."""
_REFERENCE_REPLICATIONS = 50


def where(pieces: Iterable[Piece], wanted: dict[str, Any]) -> list[Piece]:
    """Return the pieces whose task has the wanted values."""
    return [
        piece
        for piece in pieces
        if all(piece.task[name] == value for name, value in wanted.items())
    ]


def mean_row(
    label: str, errors: Array, known: tuple[float, float] | None, *, note: str = ""
) -> Row:
    """Return the mean error (the truth is 0), in a band if mean and RMSE of 50 runs are known.

    The band is the known mean ± 2 of its standard errors.
    """
    band = None
    if known is not None:
        mean, rmse = known
        half = 2.0 * np.sqrt(max(rmse**2 - mean**2, 0.0) / _REFERENCE_REPLICATIONS)
        band = (mean - float(half), mean + float(half))
    return Row(
        label=label,
        quantity="mean error",
        ours=float(errors.mean()),
        se=standard_error(errors),
        band=band,
        note=note,
    )


def rmse_row(
    label: str, squares: Array, known: float | None, *, quantity: str = "RMSE", note: str = ""
) -> Row:
    """Return the root of the mean of squared errors, in a band of a fifth around the known one."""
    rmse = float(np.sqrt(squares.mean()))
    return Row(
        label=label,
        quantity=quantity,
        ours=rmse,
        se=standard_error(squares) / (2.0 * rmse) if rmse else 0.0,
        band=None if known is None else ((1 - _RMSE_SHARE) * known, (1 + _RMSE_SHARE) * known),
        note=note,
    )


def standard_error(values: Array) -> float:
    """Return the standard error of a mean over replications."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
