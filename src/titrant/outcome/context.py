"""Features of the context that bend and interact: φ(x)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from titrant import _check
from titrant.moments import Moments
from titrant.outcome.gcv import unexplained
from titrant.outcome.standard import Standard

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from titrant._types import Array

PRODUCTS_UP_TO = 15
"""Contexts up to which all products are features."""
BENDS_UP_TO = 30
"""Contexts up to which columns get splines: beyond, they would outnumber the rows of most logs and
take most of the time."""
LEVELS_UP_TO = 12
"""A column with this many values or fewer is a category: its levels get indicators."""
LEVEL_ROWS, LEVEL_SHARE = 5, 0.01
"""A level has an indicator if it is held by this many rows and this share of them."""
TOLD = 0.05
"""A prediction that differs from a function of φ by less, in sds of its target, tells nothing."""
TOLD_ROWS = 5_000
"""About as many rows are enough to see that."""


@dataclass(frozen=True, slots=True)
class Bends:
    """Cubic B-splines of a column, continued as straight lines beyond the outer knots."""

    knots: Array

    def __call__(self, z: Array) -> Array:
        """Return the splines at z (n,), (n, m + 2) for m knots."""
        first, last = self.knots[0], self.knots[-1]
        padded = np.r_[[first] * 3, self.knots, [last] * 3]
        splines = BSpline(padded, np.eye(len(self.knots) + 2), 3)
        inside = np.clip(z, first, last)
        values, beyond = np.asarray(splines(inside)), (z - inside)[:, None]
        if beyond.any():
            slopes = splines(np.array([first, last]), nu=1)
            values += beyond * np.where(beyond < 0.0, slopes[0], slopes[1])
        return values


@dataclass(frozen=True, slots=True)
class Levels:
    """Indicators of the common values of a column."""

    values: Array

    def __call__(self, x: Array) -> Array:
        """Return 1 where x (n,) is a level (n, L); a level that is rare or new has none."""
        return np.asarray(x[:, None] == self.values, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ContextMap:
    """φ(x) in fixed units, with fixed knots and levels; see `ContextFeatures`."""

    extra: int
    """Columns at the end of x that enter as they are."""
    told: Array
    """1 for an extra column that tells something of its own, 0 for one that does not (extra,)."""
    units: Standard
    """z: contexts in sds, far values held, codes in columns of their own."""
    levels: dict[int, Levels]
    bends: dict[int, Bends]
    products: bool

    @classmethod
    def of(cls, x: Array, extra: int = 0) -> Self:
        """Lay the features out over contexts x (n, p + extra)."""
        context = x[:, : x.shape[1] - extra]
        units = Standard.of_contexts(context)
        z, levels, bends = units(context), {}, {}
        for j in np.flatnonzero(units.inverse[: context.shape[1]]):
            values, rows = np.unique(context[:, j], return_counts=True)
            if len(values) > LEVELS_UP_TO and context.shape[1] <= BENDS_UP_TO:
                knots = np.unique(np.quantile(z[:, j], [0.0, 0.25, 0.5, 0.75, 1.0]))
                bends[int(j)] = Bends(knots)
            elif 2 < len(values) <= LEVELS_UP_TO:  # noqa: PLR2004  (two values are a line)
                common = rows >= max(LEVEL_ROWS, LEVEL_SHARE * len(x))
                levels[int(j)] = Levels(values[common])
        products = context.shape[1] <= PRODUCTS_UP_TO
        bare = cls(0, np.empty(0), units, levels, bends, products)
        return cls(extra, bare.told_by(context, x[:, context.shape[1] :]), *bare.layout)

    @property
    def layout(self) -> tuple[Standard, dict[int, Levels], dict[int, Bends], bool]:
        """Everything but the extra columns."""
        return self.units, self.levels, self.bends, self.products

    def lines(self, x: Array) -> Array:
        """Return (z, extra columns) (n, k + extra): what the dose interacts with."""
        z, extra = self._parts(x)
        return np.hstack([z, extra])

    def __call__(self, x: Array) -> Array:
        """Return φ(x) and the extra columns (n, F) at contexts x (n, p + extra)."""
        z, extra = self._parts(x)
        shapes = [level(x[:, j]) for j, level in self.levels.items()]
        shapes += [bend(z[:, j]) for j, bend in self.bends.items()]
        j, k = np.triu_indices(z.shape[1] if self.products else 0)
        return np.hstack([z, *shapes, z[:, j] * z[:, k], extra])

    def told_by(self, context: Array, extra: Array) -> Array:
        """Return 1 for each extra column (n, e) that is no function of φ(context), else 0 (e,).

        The out-of-bag mean of a row lacks the row's own value. Where nothing else moves a
        prediction, that alone remains, and a regression would take it for a cause.
        """
        if not extra.shape[1]:
            return np.empty(0)
        some = slice(None, None, max(1, len(context) // TOLD_ROWS))
        columns = np.column_stack([self(context[some]), extra[some]])
        left = unexplained(Moments.of(columns), extra.shape[1])
        return np.asarray(left > TOLD, dtype=np.float64)

    def _parts(self, x: Array) -> tuple[Array, Array]:
        p = x.shape[1] - self.extra
        return self.units(x[:, :p]), x[:, p:] * self.told


class ContextFeatures(TransformerMixin, BaseEstimator):
    """φ(x): what a regression needs to follow contexts that act nonlinearly.

    Each column in its sds, z, far values held: one absurd cell does not flatten it. A column with
    3 to 12 values adds indicators of the levels held by at least 5 rows and 1 %; one with more adds
    cubic B-splines with knots at its minimum, quartiles and maximum, linear beyond, if there are at
    most 30 contexts. Up to 15 contexts, all products zⱼzₖ (j ≤ k) are added.

    Parameters
    ----------
    extra : columns at the end of X that enter as they are: predictions of another model for the
        training rows, in sds of their target. One that differs from a function of φ by less than
        .05 is left out (its values are 0).

    Fitted: `map_`.
    """

    def __init__(self, *, extra: int = 0) -> None:
        self.extra = extra

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002 (the interface)
        """Lay units, levels and knots out over contexts X (n, p)."""
        x = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        self.map_ = ContextMap.of(x, extra_columns(self.extra, x, "ContextFeatures"))
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return φ(x) (n, F)."""
        check_is_fitted(self)
        return self.map_(np.asarray(validate_data(self, X, reset=False, dtype=np.float64)))


def extra_columns(extra: object, x: Array, owner: str) -> int:
    """Return how many of the columns of x (n, p) are extra, checked to be so many."""
    number = _check.count(extra, "extra", owner, at_least=0)
    if number > x.shape[1]:
        raise _check.invalid("extra", owner, f"at most the {x.shape[1]} columns there are", extra)
    return number
