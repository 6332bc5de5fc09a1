"""Loops compiled by numba; importing one of these modules loads numba, so it is done late.

They take arrays and numbers only. What is computed is defined elsewhere, in numpy: kernels by
their coefficients (`titrant.kernels`), weights in `titrant.estimators.weight`, terms in
`titrant.estimators.base`. The loops here do the same to a million rows in one reading.

When one of them stands in for numpy is said here; for which estimators it may,
in `titrant.estimators.form`. Forests at a grid of doses (`titrant.compiled.forest`, the bits of
`Trees.predict`), the steps of L-BFGS and the exact search along a line (both in
`titrant.optimize.compiled`) stand in for nothing, and are used at any size.
"""

from __future__ import annotations

from enum import Enum


class Loop(Enum):
    """What is computed by numpy when there is little of it, and by a loop when there is much."""

    WEIGHTS = "the weights of rows"
    PATH = "the bandwidth path, from bins of rows"
    DRAWS = "Poisson counts of resampled rows"
    SEARCH = "the sums of a search over policies"


FEWEST = {Loop.WEIGHTS: 131_072, Loop.PATH: 131_072, Loop.DRAWS: 1_000_000, Loop.SEARCH: 0}
"""Rows, or counts of `DRAWS`, from which on a loop is used. With fewer rows an evaluation by numpy
takes a tenth of a second more at most, and compiling takes as long as 150 such calls. A search goes
over its rows thousands of times."""


def pays(loop: Loop, size: int) -> bool:
    """Whether there is so much to do that a loop does it.

    Whether the loop has been compiled before does not matter: an answer has the same bits at the
    first call and at the second, on this worker and on another.
    """
    return size >= FEWEST[loop]
