"""What a policy changes for some of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.estimators import Discretized, ask
from titrant.execute import add_up
from titrant.inference import RobustBiasCorrected
from titrant.inference.trust_rules import ESS_NEEDED
from titrant.report import counting
from titrant.report.content import Subgroup
from titrant.report.gather.log import CONTEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.estimators import JointPass, Rows
    from titrant.evaluation import Comparison, Evaluation


def subgroups(
    whole: Evaluation,
    comparison: Comparison,
    pair: tuple[str, str],
    tau: Array,
    level: float,
) -> tuple[Subgroup, ...]:
    """Return what the first policy of the pair changes against the second, by thirds of contexts.

    The contexts are those that the policy's doses, or else the logged ones, go with most.
    """
    log, (focus, reference) = whole.log, pair
    if focus == reference:
        return ()
    columns = [tau[:, j] for j in range(tau.shape[1])] + list(log.doses.T)
    found = []
    for c in counting.main_contexts(log.context, columns, CONTEXTS):
        x = log.context[:, c]
        part = counting.parts_of(x, counting.THIRDS)
        labels = counting.part_labels(log.names[c], x, part)
        for k, label in enumerate(labels):
            rows = np.flatnonzero(part == k)
            found.append(
                Subgroup(
                    context=log.names[c],
                    label=label,
                    rows=len(rows),
                    logged_dose=log.doses[rows].mean(axis=0),
                    policy_dose=tau[rows].mean(axis=0),
                    outcome=float(log.outcome[rows].mean()),
                    **_difference(whole, comparison, pair, rows, level),
                )
            )
    return tuple(found)


def _difference(
    whole: Evaluation,
    comparison: Comparison,
    pair: tuple[str, str],
    rows: NDArray[np.intp],
    level: float,
) -> dict[str, Any]:
    """Return ESS, difference and interval on some rows, at the bandwidths of all rows."""
    places = [whole.names.index(name) for name in pair]
    questions = [
        replace(whole.question(i, comparison[name].bandwidth), policy=k)
        for k, (i, name) in enumerate(zip(places, pair, strict=True))
    ]
    nothing = {"ess": 0.0, "difference": None, "interval": None}
    if isinstance(whole.estimator, Discretized):  # its bins' probabilities know all rows only
        return nothing
    over_rows = _on_rows(whole, places, rows)
    point = ask(questions, over_rows)
    ess = float(point.tally.ess[0])
    if ess < ESS_NEEDED:
        return nothing | {"ess": ess}
    inference = RobustBiasCorrected().infer(point, over_rows)
    return {
        "ess": ess,
        "difference": float(point.values[0] - point.values[1]),
        "interval": inference.contrast(0, 1).at(level),
    }


def _on_rows(whole: Evaluation, places: Sequence[int], chosen: NDArray[np.intp]) -> JointPass:
    """Return a pass over the chosen rows, under the policies with these numbers."""
    parts: list[list[Rows]] = []
    start = 0
    for block in whole.blocks:
        size = len(block[0].y)
        inside = chosen[(chosen >= start) & (chosen < start + size)] - start
        if len(inside):
            parts.append([block[i].take(inside) for i in places])
        start += size

    def over_rows(statistic: Callable[[Sequence[Rows]], Any]) -> Any:  # noqa: ANN401
        return add_up(statistic, parts)

    return over_rows
