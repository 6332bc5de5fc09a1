"""What a policy changes for some of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.errors import UntrustedEstimate
from titrant.estimators import Ask, Discretized, Observed
from titrant.estimators.joint import asked, relayed
from titrant.evaluation.schedule import served
from titrant.inference import RobustBiasCorrected
from titrant.inference.rules import ESS_NEEDED
from titrant.kernels import Scale
from titrant.report import counting
from titrant.report.content import CONTEXTS, Subgroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import Question, Rows
    from titrant.estimators.joint import Search
    from titrant.evaluation.evaluation import Comparison, Evaluation


NOTHING: dict[str, Any] = {"ess": 0.0, "difference": None, "interval": None}


@dataclass(frozen=True, slots=True)
class ContextRange:
    """The rows whose context number ``column`` is more than ``above`` and at most ``up_to``."""

    column: int
    above: float
    up_to: float

    def inside(self, rows: Rows) -> NDArray[np.intp]:
        """Return which of some rows these are."""
        x = rows.need("x", "subgroups")[:, self.column]
        return np.flatnonzero((x > self.above) & (x <= self.up_to))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two policies to compare: their numbers, the questions about them, and the level."""

    places: Sequence[int]
    questions: Sequence[Question]
    level: float


@dataclass(frozen=True, slots=True)
class PartSums:
    """Rows of one part: how many, Σω, the range of the context, Σωt (d,), Σωτ (d,) and Σωy.

    y is what `Observed` takes for it where outcomes are missing.
    """

    n: int
    weight: float
    low: float
    high: float
    logged: Array
    doses: Array
    outcome: float

    def __add__(self, other: PartSums) -> PartSums:
        """Return the sums over both sets of rows."""
        return PartSums(
            self.n + other.n,
            self.weight + other.weight,
            min(self.low, other.low),
            max(self.high, other.high),
            self.logged + other.logged,
            self.doses + other.doses,
            self.outcome + other.outcome,
        )


@dataclass(frozen=True, slots=True)
class IfAny:
    """A statistic of rows, or None where there are no rows."""

    found: Any

    def __add__(self, other: IfAny) -> IfAny:
        """Return the statistic of both sets of rows."""
        if self.found is None or other.found is None:
            return other if self.found is None else self
        return IfAny(self.found + other.found)


def subgroups(
    whole: Evaluation,
    comparison: Comparison,
    pair: tuple[str, str],
    tau: Array,
    level: float,
) -> tuple[Subgroup, ...]:
    """Return what the first policy of the pair changes against the second, by thirds of contexts.

    The contexts are those that the policy's doses ``tau``, or else the logged ones, go with most
    in the rows in memory; what is said about a part is from all of its rows.
    """
    if pair[0] == pair[1]:
        return ()
    parts = list(_parts(whole, tau))
    places = [whole.names.index(name) for name in pair]
    questions = [
        replace(whole.question(i, comparison[name].bandwidth), policy=k)
        for k, (i, name) in enumerate(zip(places, pair, strict=True))
    ]
    both = Pair(places, questions, level)
    searches = [_described(whole, both, part) for part in parts]
    found = served(searches, whole.over_rows)
    return tuple(one for one in found if not isinstance(one, UntrustedEstimate))


def _parts(whole: Evaluation, tau: Array) -> Iterator[ContextRange]:
    """Yield the thirds of the main contexts, or their values if they have few."""
    log = whole.log
    columns = [tau[:, j] for j in range(tau.shape[1])] + list(log.doses.T)
    for c in counting.main_contexts(log.context, columns, CONTEXTS):
        cuts = counting.cuts_of(log.context[:, c], counting.THIRDS).tolist()
        for above, up_to in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True):
            yield ContextRange(c, above, up_to)


def _described(whole: Evaluation, pair: Pair, part: ContextRange) -> Search[Subgroup]:
    """Return one part, in passes over the rows."""

    def of_its_rows(request: Ask) -> Ask:
        return Ask(partial(of_part, part, pair.places, request.statistic))

    sums: PartSums = (yield of_its_rows(Ask(partial(part_sums, part.column)))).found
    name = whole.source.names[part.column]
    known = isinstance(whole.estimator, Discretized)  # its bins' probabilities know all rows only
    difference = relayed(_difference(pair), of_its_rows, attrgetter("found"))
    return Subgroup(
        context=name,
        label=counting.part_label(name, sums.low, sums.high),
        rows=sums.n,
        logged_dose=sums.logged / sums.weight,
        policy_dose=sums.doses / sums.weight,
        outcome=sums.outcome / sums.weight,
        **(NOTHING if known else (yield from difference)),
    )


def _difference(pair: Pair) -> Search[dict[str, Any]]:
    """Return ESS, difference and interval on some rows, at the bandwidths of all rows."""
    point = yield from asked(pair.questions)
    ess = float(point.tally.ess[0])
    if ess < ESS_NEEDED:
        return NOTHING | {"ess": ess}
    contrast = (yield from RobustBiasCorrected().search(point)).contrast(0, 1)
    return {"ess": ess, "difference": contrast.center, "interval": contrast.at(pair.level)}


def of_part(
    part: ContextRange,
    places: Sequence[int],
    statistic: Callable[[Sequence[Rows]], Any],
    rows: Sequence[Rows],
) -> IfAny:
    """Return a statistic of those of some rows that are in a part."""
    inside = part.inside(rows[0])
    return IfAny(statistic([rows[i].take(inside) for i in places]) if len(inside) else None)


def part_sums(column: int, rows: Sequence[Rows]) -> PartSums:
    """Return the sums of some rows under a first policy."""
    focus = rows[0]
    x, omega = focus.need("x", "subgroups")[:, column], focus.counts
    y = Observed().terms(focus, Scale.of(1.0, focus.t.shape[1]))[:, 0]
    return PartSums(
        len(x),
        float(omega.sum()),
        float(x.min()),
        float(x.max()),
        omega @ focus.t,
        omega @ focus.tau,
        float(omega @ y),
    )
