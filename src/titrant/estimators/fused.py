"""Joint statistics of many rows by compiled loops, where `fused_weight` says that there are any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.estimators.form import has_common_terms
from titrant.estimators.fused_weight import Columns, bandwidth, column, has_loop, smoothing
from titrant.estimators.smoothed import SmoothedEstimator
from titrant.estimators.tally import KEPT, Tally
from titrant.moments import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.estimators.base import Estimator
    from titrant.estimators.fused_weight import Smoothing
    from titrant.estimators.joint import Question
    from titrant.estimators.rows import Rows

_CELLS = 65_536
"""Numbers in a chunk of terms of several questions: half a MiB stays in a core's cache."""
_CHUNKS = (512, 4096)
"""Fewest and most rows of such a chunk."""
_TERMS = 3


def fusible(questions: Sequence[Question], rows: Sequence[Rows]) -> bool:
    """Whether compiled loops can answer all of these questions."""
    return all(_fusible(q.estimator, rows[q.policy]) for q in questions)


def _fusible(estimator: Estimator, rows: Rows) -> bool:
    return has_common_terms(estimator) and has_loop(estimator.kernel, rows)


def fused_statistics(questions: Sequence[Question], rows: Sequence[Rows]) -> tuple[Moments, Tally]:
    """Return the joint moments of the terms and the tally of weights, in one pass."""
    arguments = [_arguments(q, rows[q.policy]) for q in questions]
    return _one(arguments[0]) if len(arguments) == 1 else _several(arguments)


@dataclass(frozen=True, slots=True)
class _Arguments:
    columns: Columns
    y: Array
    b: Array
    r: Array
    smoothing: Smoothing


def _arguments(question: Question, rows: Rows) -> _Arguments:
    estimator = question.estimator
    assert isinstance(estimator, SmoothedEstimator)  # noqa: S101  (asked by fusible)
    b, r = estimator.references(rows)
    settings = smoothing(estimator.kernel, estimator.boundary, bandwidth(question.scale))
    return _Arguments(Columns.of(rows), column(rows.y), column(b), column(r), settings)


def _one(arguments: _Arguments) -> tuple[Moments, Tally]:
    from titrant.compiled.statistics import statistics  # noqa: PLC0415  (numba)

    a, c = arguments, arguments.columns
    mean, comoment, tally, pool = statistics(
        c.t, c.tau, a.y, c.q, c.bounds, a.b, a.r, *a.smoothing, KEPT
    )
    moments = Moments(len(a.y), mean, comoment)
    return moments, _tally(moments, tally[:, None], [pool])


def rows_of_chunk(k: int) -> int:
    """Return how many rows with k terms are done at a time: a multiple of eight words of flags.

    Flags are read eight words at once, so that a chunk of another size would be read beyond its
    end.
    """
    from titrant.compiled.flags import WORD  # noqa: PLC0415  (numba)

    return int(np.clip(_CELLS // k, *_CHUNKS)) // WORD**2 * WORD**2


def _several(arguments: Sequence[_Arguments]) -> tuple[Moments, Tally]:
    from titrant.compiled.largest import tally_weights  # noqa: PLC0415
    from titrant.compiled.moments import add_chunk  # noqa: PLC0415
    from titrant.compiled.terms import write_terms  # noqa: PLC0415

    n, m = len(arguments[0].y), len(arguments)
    k = _TERMS * m
    size = rows_of_chunk(k)
    mean, comoment = np.zeros(k), np.zeros((k, k))
    sums, own, terms = np.empty(k), np.zeros((k, k)), np.empty((k, size))
    tally, pools = np.zeros((m, 3)), np.empty((m, size + 2 * KEPT))
    marks = [(0, 0.0)] * m
    flags, which = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.int64)
    for start in range(0, n, size):
        stop = min(start + size, n)
        for j, a in enumerate(arguments):
            base, z, w = terms[_TERMS * j : _TERMS * (j + 1), : stop - start]
            c = a.columns
            write_terms(
                c.t, c.tau, a.y, c.q, c.bounds, a.b, a.r, *a.smoothing, start, stop, base, z, w
            )
            marks[j] = tally_weights(w, tally[j], pools[j], *marks[j], KEPT, flags, which)
        add_chunk(terms, stop - start, mean, comoment, start, sums, own)
    moments = Moments(n, mean, np.tril(comoment) + np.tril(comoment, -1).T)
    return moments, _tally(
        moments, tally.T, [p[:s] for p, (s, _) in zip(pools, marks, strict=True)]
    )


def _tally(moments: Moments, sums: Array, pools: Sequence[Array]) -> Tally:
    """Return the tally of sums (3, m) and the largest weights; Σw and Σw² are in the moments."""
    n, mean = moments.n, moments.mean[_TERMS - 1 :: _TERMS]
    largest = np.zeros((len(pools), min(KEPT, n)))
    for out, pool in zip(largest, pools, strict=True):
        kept = np.sort(pool)[::-1][: len(out)]
        out[: len(kept)] = kept
    absolute, fourths, count = sums
    squares = np.diagonal(moments.comoment)[_TERMS - 1 :: _TERMS] + n * mean**2
    return Tally(n, n * mean, absolute, squares, fourths, count, largest)
