"""The value in another population: rows of the log count as often as their contexts come there.

ω(x) = g(x)/f(x), g the contexts of the population and f those of the log, is multiplied into the
weights of the rows; all else stays as it is. It needs that outcomes depend on contexts and doses
there as they do here. The table is taken for the population itself and the weights for known:
fitted weights level what true ones leave to chance, so intervals err on the wide side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import InvalidArgument
from titrant.evaluation.fitting import MOST_TO_FIT, contexts, counted, folding_numbers
from titrant.evaluation.questions.changed import changed
from titrant.inference import rules
from titrant.outcome.crossfit import fold_of
from titrant.policies.calling import contexts_for
from titrant.propensity.logistic import DensityRatio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.source import Source
    from titrant.evaluation.survey import Survey
    from titrant.inference import Check

CAP = 20.0
"""No row counts more than so many: a context that comes twenty times as often in the population
has next to no rows to learn from."""


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
    def of(cls, log: Source, survey: Survey, table: object) -> Population:
        """Fit the weights of a log to a second table of contexts."""
        if not log.names:
            raise InvalidArgument(
                "The log has no contexts, so that another population is the same to it. Give its "
                "contexts, or leave `weights_to` out."
            )
        there = contexts_for(log.names, table, "`weights_to`", recipe=survey.recipe)
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
