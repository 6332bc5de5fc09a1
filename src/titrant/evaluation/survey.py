"""What is to be known of a log before anything is estimated, in one pass over its rows.

Means, spreads and ranges, and for a log that does not fit in memory a sample of its rows, drawn
by a hash of their numbers: the same rows however the log is cut into partitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.data import LoggedData, validate
from titrant.data.columns import Recipe, Texts, added_texts, check_texts, one_clock
from titrant.data.keys import GOLDEN, splitmix64
from titrant.data.logged import joined
from titrant.data.masses import point_masses
from titrant.data.source import SAMPLE, Source, TableSource, root_of
from titrant.errors import DataError, InvalidArgument
from titrant.evaluation.shared import both_shared, partitions_with_ids, shared_by
from titrant.execute import BATCH, OverBatches, add_up
from titrant.inference.trust.balance import Contexts
from titrant.inference.trust.doubts import CONTEXT_DOUBTS, OUTCOME_DOUBTS, LogColumns, listed
from titrant.moments import Moments
from titrant.scaling import ROUNDING, Held

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.masses import PointMasses
    from titrant.evaluation.shared import Shared
    from titrant.execute import Engine
    from titrant.inference import Check


SEED = 0
"""Of the sample of rows."""
_SALT = 0x5A17
"""So that the sample is not drawn by the keys that draw folds."""
_ODD = 0xD6E8FEB86659FD93
"""A multiplier that spreads a bit over the higher half of 64; times an odd number is one-to-one."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a log in memory: all of them, or some drawn by a hash of their numbers."""

    log: LoggedData
    numbers: NDArray[np.int64]
    """The number of each row in the whole log (n,)."""
    of: int
    """The rows of the whole log."""

    @property
    def whole(self) -> bool:
        """Whether these are all rows."""
        return len(self.log) == self.of

    @property
    def numbers_if_some(self) -> NDArray[np.int64] | None:
        """The numbers of the rows, None if they are all, one after the other."""
        return None if self.whole else self.numbers

    @property
    def seen(self) -> Sample:
        """The rows whose outcome is seen."""
        if self.log.observed is None:
            return self
        seen = np.flatnonzero(self.log.observed)
        return replace(self, log=self.log.rows(seen), numbers=self.numbers[seen])

    @property
    def counting(self) -> Sample:
        """The rows that have any weight: the others are as if they were not there."""
        if self.log.weights is None or (self.log.weights > 0.0).all():
            return self
        kept = np.flatnonzero(self.log.weights)
        return replace(self, log=self.log.rows(kept), numbers=self.numbers[kept])

    @property
    def once(self) -> Sample:
        """The rows without copies in the same group, of which no model learns anything but trust.

        Residuals and cross-validated errors of a row whose copy was seen are too small.
        """
        log = self.log
        held = np.column_stack([log.outcome, log.doses, log.context])
        named = held if log.groups is None else np.column_stack([held, log.groups])
        _, first, place = np.unique(named, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        if len(first) == len(log):
            return self
        kept = log.rows(first[order])
        if log.weights is not None:  # one row counts as much as its copies do together
            kept = kept.with_weights(np.bincount(place.ravel(), weights=log.weights)[order])
        return replace(self, log=kept, numbers=self.numbers[first[order]])

    def thinned(self, most: int) -> Sample:
        """Return about ``most`` of the rows; the same ones, whether the log is in memory or not."""
        if len(self.log) <= most:
            return self
        drawn = np.flatnonzero(drawn_rows(self.numbers, most / self.of))
        return Sample(self.log.rows(drawn), self.numbers[drawn], self.of)


@dataclass(frozen=True, slots=True)
class Sums:
    """What is kept of the rows; columns are d doses, the outcome and p contexts, in this order."""

    moments: Moments
    low: Array
    """The least value of each column."""
    high: Array
    lower: Array
    """The greatest lower bound of each dose (d,) in any row."""
    upper: Array
    """The least upper bound."""
    logs: tuple[LoggedData, ...]
    """The rows drawn, in parts."""
    numbers: tuple[NDArray[np.int64], ...]
    digest: int | None
    """A hash of the rows; see `digest_of`. Not taken of rows that stay in memory."""
    weight: Array = field(default_factory=lambda: np.zeros(2))
    """Σω and Σω² (2,); 0 where rows have no weights."""
    keys: NDArray[np.int64] | None = None
    """The keys of all groups, in increasing order."""
    texts: tuple[Texts, ...] = ()
    """Of the columns from which indicators were made."""
    clocks: Mapping[str, str] = field(default_factory=dict)
    """Of the columns of dates from which contexts were made."""
    shared: Shared = field(default_factory=dict)
    """What rows of files may share, by its kind and name, where that was asked for."""

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over both sets of rows."""
        return Sums(
            self.moments + other.moments,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.maximum(self.lower, other.lower),
            np.minimum(self.upper, other.upper),
            self.logs + other.logs,
            self.numbers + other.numbers,
            _added_digests(self.digest, other.digest),
            self.weight + other.weight,
            None if self.keys is None or other.keys is None else np.union1d(self.keys, other.keys),
            added_texts(self.texts + other.texts),
            one_clock(self.clocks, other.clocks),
            both_shared(self.shared, other.shared),
        )


@dataclass(frozen=True)
class Survey:
    """What is known of a log before anything is estimated."""

    names: tuple[str, ...]
    dimension: int
    sums: Sums
    sample: Sample
    atoms: tuple[float, ...] | None = None
    """The point masses of the doses that the user named; None to look for them."""
    after: tuple[str, ...] = ()
    """Columns left out of the contexts, since they were measured after the treatment."""

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.sums.moments.rows

    @property
    def mean_weight(self) -> float | None:
        """The mean of the rows' weights, None if they have none."""
        total = float(self.sums.weight[0])
        return total / self.n if total else None

    @property
    def evenness(self) -> float | None:
        """(Σω)²/(nΣω²) of the rows' weights, None if they have none."""
        total, squares = self.sums.weight
        return float(total**2 / (self.n * squares)) if total else None

    @property
    def keys(self) -> NDArray[np.int64] | None:
        """The keys of all groups, in increasing order; None if each row is its own group."""
        keys = self.sums.keys
        return None if keys is None or len(keys) == self.n else keys

    # Where all rows are at hand numpy sums them in pairs, which rounds less than adding up blocks.

    @cached_property
    def center(self) -> float:
        """The mean outcome."""
        whole, j = self.sample.whole, self.dimension
        return float(seen_outcomes(self.sample.log).mean() if whole else self.sums.moments.mean[j])

    @cached_property
    def outcome_sd(self) -> float:
        """sd(y)."""
        whole, j = self.sample.whole, self.dimension
        return float(seen_outcomes(self.sample.log).std() if whole else self._sd[j])

    @cached_property
    def spread(self) -> Array:
        """sd(T) of each dose (d,)."""
        whole, d = self.sample.whole, self.dimension
        return np.asarray(self.sample.log.doses.std(axis=0) if whole else self._sd[:d])

    @cached_property
    def mean_dose(self) -> Array:
        """The mean of each dose (d,)."""
        whole, d = self.sample.whole, self.dimension
        return np.asarray(
            self.sample.log.doses.mean(axis=0) if whole else self.sums.moments.mean[:d]
        )

    @property
    def context_ends(self) -> tuple[Array, Array]:
        """The least and the greatest value of each context (p,)."""
        first = self.dimension + 1
        return self.sums.low[first:], self.sums.high[first:]

    @property
    def possible(self) -> tuple[Array, Array]:
        """The least and the greatest dose (d,) that is possible in every row."""
        return self.sums.lower, self.sums.upper

    @property
    def dose_ends(self) -> tuple[Array, Array]:
        """The least and the greatest logged dose (d,)."""
        return self.sums.low[: self.dimension], self.sums.high[: self.dimension]

    @property
    def outcome_ends(self) -> tuple[float, float]:
        """The least and the greatest outcome."""
        return float(self.sums.low[self.dimension]), float(self.sums.high[self.dimension])

    @cached_property
    def contexts(self) -> Contexts:
        """Means and sds of the contexts: of all rows, or of those at hand where values are held."""
        if not self.as_they_are:
            return replace(Contexts.of(self.sample.log.context, self.names, self.held), n=self.n)
        first = self.dimension + 1
        center, sd = self.sums.moments.mean[first:], self._sd[first:]
        size = np.maximum(*map(np.abs, self.context_ends))
        spread = np.where(sd > ROUNDING * size, sd, 0.0)
        return Contexts(self.n, self.names, center, spread, None)

    @cached_property
    def looked_at(self) -> LoggedData:
        """Rows by which columns are judged; of a long log as many, in memory or not."""
        return self.sample.thinned(SAMPLE).log

    @property
    def seen_share(self) -> float | None:
        """The share of rows whose outcome is seen, of those looked at; None if none is missing."""
        observed = self.looked_at.observed
        return None if observed is None else float(observed.mean())

    @cached_property
    def masses(self) -> PointMasses | None:
        """The point masses of one dose, by the rows looked at; None if there are none."""
        return None if self.dimension > 1 else point_masses(self.looked_at.treatment, self.atoms)

    @cached_property
    def held(self) -> Held:
        """How far values of the contexts are held, by the rows looked at."""
        return Held.of(self.looked_at.context)

    @cached_property
    def columns(self) -> LogColumns:
        """The rows looked at, as doubts look at them."""
        flow = self.sample.log.flow
        texts = *(one.column for one in self.sums.texts), *(() if flow is None else flow.codes)
        return LogColumns.of(self.looked_at, self.held, self.context_ends, texts)

    @cached_property
    def outcome_doubts(self) -> tuple[Check | str, ...]:
        """What is doubtful about doses and outcomes."""
        return tuple(found for doubt in OUTCOME_DOUBTS for found in doubt(self.columns))

    @cached_property
    def context_doubts(self) -> tuple[Check | str, ...]:
        """What is doubtful about contexts, and which columns were left out of them."""
        found = [one for doubt in CONTEXT_DOUBTS for one in doubt(self.columns)]
        if self.after:
            found.append(
                f"Measured after the treatment, and so not used as context: {listed(self.after)}."
            )
        return tuple(found)

    def explained(self, error: DataError) -> DataError:
        """Return an error about the log with the doubts that may be its cause before it."""
        found = (*self.outcome_doubts, *self.context_doubts)
        doubts = [one.message for one in found if not isinstance(one, str)]
        doubts += _one_weight(self.sample.log.weights)
        return DataError(" ".join([*doubts, str(error)])) if doubts else error

    @property
    def as_they_are(self) -> bool:
        """Whether no value of a context is held, so that sums over all rows can be used."""
        return self.held.passes(*self.context_ends)

    @property
    def recipe(self) -> Recipe:
        """How contexts are made of the columns of a table."""
        flow = self.sample.log.flow
        if flow is not None and flow.recipe is not None:
            return flow.recipe
        made = (texts for texts in self.sums.texts if texts.column not in self.names)
        levels = {texts.column: texts.levels for texts in made}
        return Recipe(levels, clocks=self.sums.clocks)

    @cached_property
    def digest(self) -> int:
        """A hash of all rows; see `digest_of`."""
        known = self.sums.digest
        return digest_of(self.sample.log) if known is None else known

    @cached_property
    def _sd(self) -> Array:
        return np.sqrt(np.diagonal(self.sums.moments.covariance))


def _added_digests(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else (one + other) % 2**64


def check_log(log: object) -> None:
    """Refuse what is no log, such as a table."""
    if not isinstance(log, LoggedData | Source):
        raise InvalidArgument(
            f"titrant takes a `LoggedData`; got a {type(log).__name__}. Make one by "
            "`LoggedData.from_frame`, or by `scan_parquet` from files."
        )


def survey_of(log: Source, engine: Engine, *, shared: bool = False) -> Survey:
    """Return the survey of a log, in one pass over its rows.

    With ``shared``, rows of files without groups are drawn by what they may share.
    """
    check_log(log)
    # A log in memory is its own sample, was checked when it was made, and has a digest when asked.
    if isinstance(log, LoggedData):
        sums = add_up(in_memory, log.batches(BATCH))
        sample = Sample(log, np.arange(log.first_row, log.first_row + len(log)), len(log))
        return Survey(log.names, log.dimension, sums, sample, log.atoms, log.after)
    share = min(log.sample_rows / len(log), 1.0)
    shared = shared and not log.grouped
    partitions = partitions_with_ids(log) if shared else log.partitions
    sums = engine.add_up(OverBatches(partial(sums_of, share, shared=shared), BATCH), partitions)
    check_texts(sums.texts, log.names)
    for j in range(log.dimension):
        if sums.low[j] == sums.high[j]:
            raise validate.constant_treatment("treatment", float(sums.low[j]), sums.moments.rows)
    for label, j in [*(("treatment", j) for j in range(log.dimension)), ("outcome", log.dimension)]:
        validate.check_scale(label, float(sums.low[j]), float(sums.high[j]))
    sample = Sample(joined(sums.logs), np.concatenate(sums.numbers), sums.moments.rows)
    return Survey(log.names, log.dimension, sums, sample, log.atoms, _after(log))


def _after(log: Source) -> tuple[str, ...]:
    """Return which columns of a table were said to be measured after the treatment."""
    root = root_of(log)
    return tuple(root.columns.after) if isinstance(root, TableSource) else ()


def sums_of(share: float, log: LoggedData, *, shared: bool = False) -> Sums:
    """Return the sums over some rows, with a ``share`` of the rows themselves.

    With ``shared``, also with the keys of what rows may share.
    """
    numbers = np.arange(log.first_row, log.first_row + len(log))
    drawn = drawn_rows(numbers, share)
    kept = (log.rows(drawn),), (numbers[drawn],)
    keys = shared_by(log, numbers) if shared else {}
    sums = in_memory(log)
    return replace(sums, logs=kept[0], numbers=kept[1], digest=digest_of(log), shared=keys)


def in_memory(log: LoggedData) -> Sums:
    """Return the sums over some rows that stay at hand."""
    columns = np.stack([*log.doses.T, seen_outcomes(log), *log.context.T])
    return Sums(
        Moments.of(columns.T),
        columns.min(axis=1),
        columns.max(axis=1),
        _distinct(log.lower).max(axis=0),
        _distinct(log.upper).min(axis=0),
        logs=(),
        numbers=(),
        digest=None,
        weight=np.zeros(2)
        if log.weights is None
        else np.array([log.weights.sum(), log.weights @ log.weights]),
        keys=None if log.groups is None else np.unique(log.groups),
        texts=log.texts,
        clocks=log.clocks,
    )


def _distinct(bound: Array) -> Array:
    """Return a bound (n, d) of each row, or that of the first where all rows share it."""
    return bound[:1] if bound.strides[0] == 0 else bound


def seen_outcomes(log: LoggedData) -> Array:
    """Return the outcomes (n,), the mean of those that are seen in place of missing ones."""
    if log.observed is None:
        return log.outcome
    seen = log.observed > 0.0
    return np.where(seen, log.outcome, log.outcome[seen].mean() if seen.any() else 0.0)


def digest_of(log: LoggedData) -> int:
    """Return Σᵢ H(i, every number of row i) mod 2⁶⁴, i the place of a row in the whole log.

    The sums of parts add up to that of the whole, in any cut. H goes through the numbers one by
    one, and each step is one-to-one in the number and in what came before: one cell that differs
    always makes another sum, and so do rows in another order, up to chance of 2⁻⁶⁴.
    """
    numbers = np.arange(log.first_row, log.first_row + len(log), dtype=np.uint64)
    state = splitmix64(numbers * np.uint64(GOLDEN))
    shifted = np.empty_like(state)
    for column in _every_column(log):
        state ^= np.ascontiguousarray(column).view(np.uint64)
        state *= np.uint64(_ODD)
        np.right_shift(state, np.uint64(32), out=shifted)
        state ^= shifted
    return int(splitmix64(state).sum(dtype=np.uint64))


def _every_column(log: LoggedData) -> Iterator[NDArray[Any]]:
    """Yield all that a log says of its rows, column by column (n,)."""
    yield log.outcome
    for known in (log.weights, log.groups, log.observed):
        if known is not None:
            yield known
    if log.propensity is not None:
        yield log.propensity
    for table in (log.doses, log.context):
        yield from table.T
    if log.bounded:
        for table in (log.lower, log.upper):
            yield from table.T


def drawn_rows(numbers: NDArray[np.int64], share: float) -> NDArray[np.bool_]:
    """Return which rows with these numbers (n,) belong to a sample of that share of all rows."""
    if share >= 1.0:
        return np.ones(len(numbers), dtype=bool)
    state = splitmix64(np.array([SEED + _SALT], dtype=np.uint64))
    limit = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
    drawn = np.empty(len(numbers), dtype=bool)
    for i in range(0, len(numbers), BATCH):  # few at a time stay in the cache
        some = slice(i, i + BATCH)
        key = splitmix64(state + numbers[some].astype(np.uint64) * np.uint64(GOLDEN))
        np.less(key, limit, out=drawn[some])
    return drawn


def _one_weight(weights: Array | None) -> list[str]:
    """Return a sentence if one of the weights (n,) of the rows is more than all others together."""
    if weights is None or 2.0 * weights.max() <= weights.sum():
        return []
    total, largest = float(weights.sum()), float(weights.max())
    worth = total**2 / float(weights @ weights)
    share = f"One row weight, {largest:.6g}, is {largest / total:.1%} of the sum of all"
    return [f"{share} {len(weights):,}: they are worth {worth:.1f} rows of equal weight. Check it."]


# Exact quantiles of a log that does not fit in memory, in one more pass over its rows.
#
# The quantiles of the sample say nearly where those of all rows lie. One pass counts the rows below
# that neighborhood and keeps those inside; the numbers sought are among them, in all but freak
# cases, for which the neighborhood is widened.

WIDTH = 6.0
"""Half the width of a neighborhood, in standard deviations of a rank,"""
FEWEST = 2.0
"""and as many rows of the sample more."""


@dataclass(frozen=True, slots=True)
class Neighborhood:
    """Rows below each of m intervals (m,), and the values inside each, in parts."""

    n: int
    below: Array
    inside: tuple[tuple[Array, ...], ...]

    def __add__(self, other: Neighborhood) -> Neighborhood:
        """Return the counts and values of both sets of rows."""
        inside = tuple(a + b for a, b in zip(self.inside, other.inside, strict=True))
        return Neighborhood(self.n + other.n, self.below + other.below, inside)


def quantiles(
    log: Source,
    sample: Sample,
    engine: Engine,
    column: Callable[[LoggedData], Array],
    levels: Sequence[float],
) -> Array:
    """Return the quantiles (levels, k) of columns (n, k) of a log, as `numpy.quantile` has them."""
    seen = column(sample.log)
    if sample.whole:
        return np.asarray(np.quantile(seen, levels, axis=0))
    targets = [(j, level) for level in levels for j in range(seen.shape[1])]
    found: dict[int, float] = {}
    width, fewest = WIDTH, FEWEST
    while len(found) < len(targets):
        missing = [i for i in range(len(targets)) if i not in found]
        edges = [(targets[i][0], *_around(seen, *targets[i], width, fewest)) for i in missing]
        task = OverBatches(partial(neighborhood, column, edges), BATCH)
        near = engine.add_up(task, log.partitions)
        for k, i in enumerate(missing):
            value = _order_statistics(near, k, targets[i][1])
            if value is not None:
                found[i] = value
        width, fewest = 4.0 * width + 1.0, 4.0 * fewest + 1.0
    return np.array([found[i] for i in range(len(targets))]).reshape(len(levels), -1)


def neighborhood(
    column: Callable[[LoggedData], Array],
    edges: Sequence[tuple[int, float, float]],
    log: LoggedData,
) -> Neighborhood:
    """Return the rows of a block below and inside intervals (column, from, to)."""
    values = column(log)
    below = np.array([np.count_nonzero(values[:, j] < low) for j, low, _ in edges], dtype=float)
    inside = [values[(values[:, j] >= low) & (values[:, j] <= high), j] for j, low, high in edges]
    return Neighborhood(len(values), below, tuple((part,) for part in inside))


def _around(seen: Array, j: int, level: float, width: float, fewest: float) -> tuple[float, float]:
    """Return an interval around a quantile of the sample, ± ``width`` sd of its rank and a bit."""
    ordered = np.sort(seen[:, j])
    m = len(ordered)
    reach = width * np.sqrt(m * level * (1.0 - level)) + fewest
    first, last = np.floor(level * (m - 1) - reach), np.ceil(level * (m - 1) + reach)
    low = -np.inf if first < 0 else float(ordered[int(first)])
    high = np.inf if last > m - 1 else float(ordered[int(last)])
    return low, high


def _order_statistics(near: Neighborhood, k: int, level: float) -> float | None:
    """Return the quantile by the two values around it, or None if they lie elsewhere."""
    ordered = np.sort(np.concatenate(near.inside[k]))
    at = (near.n - 1) * level
    lower = int(np.floor(at)) - int(near.below[k])
    upper = min(lower + 1, near.n - 1 - int(near.below[k]))
    if lower < 0 or upper >= len(ordered):
        return None
    a, b = ordered[lower], ordered[upper]
    share = at - np.floor(at)
    # As numpy interpolates, so that all rows in memory give the same bits.
    return float(a + (b - a) * share if share < 0.5 else b - (b - a) * (1.0 - share))  # noqa: PLR2004
