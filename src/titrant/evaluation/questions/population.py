"""The value in another population: rows of the log count as often as their contexts come there.

ω(x) = g(x)/f(x), g the contexts of the population and f those of the log, is multiplied into the
weights of the rows; all else stays as it is. It needs that outcomes depend on contexts and doses
there as they do here. The table is taken for the population itself and the weights for known:
fitted weights level what true ones leave to chance, so intervals err on the wide side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.data import LoggedData
from titrant.data.columns import named_table
from titrant.data.validate import counted as numbered
from titrant.data.validate import first_rows, listed, of_rows
from titrant.errors import DataError, InvalidArgument
from titrant.evaluation.models.fitting import MOST_TO_FIT, contexts, counted, folding_numbers
from titrant.evaluation.questions.changed import changed
from titrant.execute.engine import pinned
from titrant.inference.trust import rules
from titrant.outcome.crossfit import fold_of
from titrant.policies.calling import contexts_for
from titrant.propensity.logistic import DensityRatio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.columns import Recipe
    from titrant.data.frames import NamedTable
    from titrant.data.source import Source
    from titrant.evaluation.survey import Survey
    from titrant.inference import Check

CAP = 20.0
"""No row counts more than so many: a context that comes twenty times as often in the population
has next to no rows to learn from."""
_SHOWN = 6
"""Texts that a sentence names."""


@dataclass(frozen=True, slots=True, eq=False)
class Transport:
    """Multiplies the weights of rows by ω(x), by models that have not seen their fold."""

    model: DensityRatio
    keys: NDArray[np.int64] | None
    """Of all groups, by which rows are in folds."""

    def __call__(self, log: LoggedData) -> LoggedData:
        """Return some rows with their weights in the population."""
        return log.with_weights(counted(log) * np.minimum(self.ratio(log), CAP))

    def ratio(self, log: LoggedData, numbers: NDArray[np.int64] | None = None) -> Array:
        """Return ω (n,) before any is cut."""
        by = folding_numbers(log, numbers, self.keys)
        fold = self.model.fold(log.first_row, len(log), by)
        return self.model.ratio(fold, contexts(log))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Another population: how its contexts differ from those of the log, and what weights do."""

    transport: Transport
    rows: int
    names: tuple[str, ...]
    before: Array
    """|mean there − mean here| of each context, in sds of the population's (p,)."""
    after: Array
    """The same of the weighted rows."""
    cut: float
    """The share of rows whose weight was cut at `CAP`."""
    unseen: float
    """The share of the population whose contexts come more than `CAP` times as often as here."""
    worth: float
    """(Σω)²/(nΣω²) of the weights."""

    @classmethod
    @pinned()
    def of(cls, log: Source, survey: Survey, table: object) -> Population:
        """Fit the weights of a log to a second table of contexts."""
        if not log.names:
            raise InvalidArgument(
                "The log has no contexts, so that another population is the same to it. Give its "
                "contexts, or leave `weights_to` out."
            )
        there = _contexts(table, log.names, survey.recipe)
        sample = survey.sample.thinned(MOST_TO_FIT)
        rows, m = sample.log, len(there)
        some = there[:: -(-m // MOST_TO_FIT)]
        model = DensityRatio().fit(
            rows.context,
            some,
            weights=rows.weights,
            first_row=rows.first_row,
            numbers=folding_numbers(rows, sample.numbers_if_some, survey.keys),
        )
        transport = Transport(model, survey.keys)
        ratio = transport.ratio(rows, sample.numbers_if_some)
        own = counted(rows)
        omega = own * np.minimum(ratio, CAP)
        mean, sd = there.mean(axis=0), there.std(axis=0)
        unit = np.where(sd > 0.0, sd, np.maximum(rows.context.std(axis=0), 1e-300))
        return cls(
            transport=transport,
            rows=m,
            names=log.names,
            before=np.abs(np.average(rows.context, axis=0, weights=own) - mean) / unit,
            after=np.abs(np.average(rows.context, axis=0, weights=omega) - mean) / unit,
            cut=float(np.mean(ratio > CAP)),
            unseen=float(np.mean(model.ratio(fold_of(0, m, model.folds, model.seed), there) > CAP)),
            worth=float(omega.sum() ** 2 / (len(omega) * omega @ omega)),
        )

    def on(self, log: Source) -> Source:
        """Return the log with the weights of its rows in the population."""
        return changed(log, self.transport, weighted=True)

    def findings(self) -> Iterator[Check | str]:
        """Yield the checks of the weights, and what was done."""
        yield rules.population_overlap(self.unseen, CAP)
        yield rules.population_balance(self.before, self.after, self.names)
        yield (
            f"Rows are weighted to a population of {self.rows:,}; {100 * self.cut:.3g} % of their "
            f"weights were cut at {CAP:g} times the usual. The weights count as known."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return how the population differs, as plain values."""
        return {
            "rows": self.rows,
            "cut": self.cut,
            "unseen": self.unseen,
            "worth": self.worth,
            "balance": {
                name: {"before": float(b), "after": float(a)}
                for name, b, a in zip(self.names, self.before, self.after, strict=True)
            },
        }


def _contexts(table: object, names: Sequence[str], recipe: Recipe) -> Array:
    """Return the contexts (m, p) of the population, as the log has its own."""
    if isinstance(table, LoggedData):
        raise InvalidArgument(
            "`weights_to` must be a table of contexts; got a log. Give the table that it was made "
            "of, or its `context` as an array."
        )
    owner = "table of `weights_to`"
    named = named_table(table)
    if named is None and isinstance(table, Mapping):
        raise DataError(f"The {owner} has no columns; the log's contexts are {listed(names)}.")
    there = contexts_for(names, table, owner, recipe=recipe)
    if there.ndim != 2 or there.shape[1] != len(names):  # noqa: PLR2004  (rows and columns)
        raise DataError(
            f"`weights_to` must have {numbered(len(names), 'column')}, the log's contexts in their "
            f"order ({listed(names)}); got an array of shape {there.shape}. Give these columns, or "
            "a table with their names."
        )
    if not len(there):
        raise DataError(f"The {owner} has no rows, so there is no population to weight to.")
    missing = np.asarray(~np.isfinite(there).all(axis=1))
    if missing.any():
        raise DataError(
            f"`weights_to` has a context that is missing or not finite in {of_rows(missing)} "
            f"({first_rows(missing)}). Fill these in, or leave the rows out."
        )
    if named is not None:
        _refuse_new_texts(named, recipe.levels)
    return there


def _refuse_new_texts(table: NamedTable, levels: Mapping[str, Sequence[str]]) -> None:
    """Refuse texts that the log never had: their indicators are all 0, as the reference's are."""
    for name, strange in table.unseen(levels).items():
        if strange.any():
            texts = Counter(repr(text) for text in np.array(table.texts(name))[strange].tolist())
            each = ", ".join(f"{text} in {rows:,}" for text, rows in texts.most_common(_SHOWN))
            raise DataError(
                f"The column `{name}` of `weights_to` has a text that the log never had in "
                f"{of_rows(strange)} ({each}): nothing tells the outcomes of such rows. The log "
                f"has {listed(levels[name])}. Write the texts as there, or leave these rows out "
                "and say so."
            )
