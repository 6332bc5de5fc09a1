"""What a policy changes for some of the rows: the thirds of the contexts that matter most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.evaluation.questions.cells import FEW_VALUES, Cut, cuts_of
from titrant.evaluation.questions.subgroups import parts_on
from titrant.report import counting
from titrant.report.content import CONTEXTS, Subgroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant._types import Array
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.evaluation.questions.subgroups import Subgroup as Part


def subgroups(
    whole: Evaluation, comparison: Comparison, pair: tuple[str, str], tau: Array, level: float
) -> tuple[Subgroup, ...]:
    """Return what the first policy of the pair changes against the second, by thirds of contexts.

    The contexts are those that the policy's doses ``tau``, or else the logged ones, go with most
    in the rows in memory; what is said about a part is from all of its rows.
    """
    cells = list(_thirds(whole, tau))
    if pair[0] == pair[1] or not cells:
        return ()
    bandwidths = {name: comparison[name].bandwidth for name in pair}
    parts, *_ = parts_on(whole, bandwidths, cells)
    return tuple(_shown(part, level) for part in parts)


def _thirds(whole: Evaluation, tau: Array) -> Iterator[Cut]:
    """Yield the main contexts in thirds, or by their values if they have few."""
    log = whole.log
    columns = [tau[:, j] for j in range(tau.shape[1])] + list(log.doses.T)
    for c in counting.main_contexts(log.context, columns, CONTEXTS):
        cuts = tuple(cuts_of(log.context[:, c], counting.THIRDS).tolist())
        yield Cut(whole.source.names[c], c, cuts, levels=len(cuts) < FEW_VALUES)


def _shown(part: Part, level: float) -> Subgroup:
    return Subgroup(
        context=part.column,
        label=part.label,
        rows=part.rows,
        logged_dose=part.logged_dose,
        policy_dose=part.policy_dose,
        outcome=part.outcome,
        ess=part.ess,
        difference=part.difference if part.trusted else None,
        interval=part.interval(level) if part.trusted else None,
    )
