"""Where searches begin: doses that make sense, and seeded random points around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant import _check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array


def nearest_params(phi: Array, doses: ArrayLike) -> Array:
    """Return the parameters (P,) whose doses φ'β are nearest to `doses`, a number or (n,)."""
    wanted = np.broadcast_to(np.asarray(doses, dtype=np.float64), (len(phi),))
    return np.asarray(np.linalg.lstsq(phi, wanted, rcond=None)[0])


def usual_starts(
    phi: Array,
    treatment: Array,
    *,
    doses: Sequence[ArrayLike] = (),
    count: int = 32,
    spread: float = 0.5,
    seed: int = 0,
) -> Array:
    """Return starts (count, P) for policies τ = φ'β: the usual ones and random ones around them.

    The usual ones are the mean dose, the regression of the logged dose on φ, and whatever
    `doses` (each a number, such as the best constant, or one for each row) are added.

    Parameters
    ----------
    phi : features (n, P)
    treatment : logged doses (n,)
    doses : more doses to begin at
    count : number of starts; at least the usual ones are returned
    spread : how far the random ones differ, in sd of the logged dose
    seed : of the random ones
    """
    points = [nearest_params(phi, d) for d in (treatment.mean(), treatment, *doses)]
    return starts_around(
        np.stack(points), phi, count=count, scale=spread * float(treatment.std()), seed=seed
    )


def starts_around(points: Array, phi: Array, *, count: int, scale: float, seed: int) -> Array:
    """Return the points (k, P), then random ones around them in turn, `count` in all.

    Each random start moves the doses by `scale` (root mean square, in expectation), shared evenly
    among the parameters whatever the units of their features.
    """
    _check.count(count, "count", "starts_around")
    _check.nonnegative(scale, "scale", "starts_around")
    more = max(count - len(points), 0)
    size = np.sqrt(np.mean(phi**2, axis=0))
    each = np.divide(scale / np.sqrt(phi.shape[1]), size, out=np.zeros_like(size), where=size > 0)
    noise = np.random.default_rng(seed).normal(size=(more, phi.shape[1]))
    return np.concatenate([points, points[np.arange(more) % len(points)] + each * noise])
