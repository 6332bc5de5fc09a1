"""How strong the recorded contexts are as causes of the dose: what a hidden one is measured by.

Were context j not recorded, it would be a hidden cause. How strong, the propensities tell:

    Γ_j = exp of the .9 quantile of |log f(t | x)/f(t | x without x_j)|, weighted like the estimate,

with the model of the doses fitted anew without it, on the same rows and in the same folds. A policy
that moves the logged dose is weighted by the densities at two doses; what a cause does to both is
at most the square. The
largest ratio would say how far one row can stray, and is of no use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import InvalidArgument
from titrant.estimators import SelfNormalized
from titrant.evaluation.models.nuisance import Nuisances
from titrant.evaluation.survey import survey_of
from titrant.execute import Engine
from titrant.policies import Move, Randomized

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.doubt.residuals import SignedWeight
    from titrant.evaluation.evaluation import Evaluation
    from titrant.evaluation.survey import Sample
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel

    Progress = Callable[[str, int, int], None]

ROWS = 2_000
"""Rows that the models of benchmarks are fitted on; of more, so many are drawn. A .9 quantile of
their ratios is known from them to a few percent."""
QUANTILE = 0.9
"""Of |log ratio|: at the median a hidden cause is taken for weaker than it is, the maximum is one
row's affair."""


def blocks(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the contexts by the column that they are made of, such as all levels of `sex`."""
    from titrant.data.features import column_of  # noqa: PLC0415  (loads tables)

    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        column = column_of(name)
        found[column] = (*found.get(column, ()), name)
    return found


def chosen_blocks(
    names: Sequence[str], asked: Sequence[str] | None, owner: str
) -> dict[str, tuple[str, ...]]:
    """Return the blocks that are asked for, all unless some are."""
    every = blocks(names)
    if asked is None:
        return every
    if isinstance(asked, str) or not all(isinstance(name, str) for name in asked):
        raise InvalidArgument(
            f"The contexts of `{owner}` must be a list of names, such as ['age']; got {asked!r}."
        )
    unknown = [name for name in asked if name not in every]
    if unknown:
        raise InvalidArgument(
            f"`{owner}` cannot leave out {unknown[0]!r}: the log's contexts are made of "
            f"{', '.join(every) or 'no column'}."
        )
    return {name: every[name] for name in asked}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """|log f(t | x)/f(t | x without a block)| (n,) of some rows, for each block of contexts."""

    sample: Sample
    ratios: Mapping[str, Array]

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        propensity: PropensityModel | None,
        left_out: Mapping[str, Sequence[str]],
        progress: Progress,
    ) -> LeftOut:
        """Fit the model of the doses with all contexts and without each block.

        A propensity that is known, as a column or a function, cannot be fitted without a context:
        the default model of the log takes its place, on both sides.
        """
        sample, given = evaluation.survey.sample.thinned(ROWS).seen, evaluation.nuisances
        rows = sample.log.with_propensity(None)
        model = None if given.known else propensity
        ratios: dict[str, Array] = {}
        whole: Array | None = None
        for done, (name, contexts) in enumerate(left_out.items()):
            progress("benchmarks", done, len(left_out))
            if whole is None:  # that of the evaluation itself, where it saw the same rows
                same = sample.whole and not given.known
                whole = floored(given, rows) if same else density(rows, model)
            ratios[name] = np.abs(np.log(whole / density(rows.without(contexts), model)))
        return cls(sample, ratios)

    def strengths(self, evaluation: Evaluation, signed: SignedWeight) -> dict[str, float]:
        """Return Γ_j of each block, the strongest first, by the rows that carry an estimate."""
        few = self.sample
        prepared = evaluation.nuisances.prepare(few.log, few.numbers_if_some)
        rows = {q.policy: evaluation.policy_rows.rows(prepared, q.policy) for q, _ in signed.parts}
        weight = np.abs(signed(rows)) * next(iter(rows.values())).counts
        doses = max(densities(evaluation.policies[q.policy]) for q, _ in signed.parts)
        found = {
            name: float(np.exp(doses * weighted_quantile(ratio, weight, QUANTILE)))
            for name, ratio in self.ratios.items()
        }
        known = [one for one in found.items() if not np.isnan(one[1])]
        return dict(sorted(known, key=lambda one: -one[1]))


def densities(policy: Policy) -> int:
    """Return at how many doses a hidden cause acts on the weight of a row under a policy.

    One that moves the logged dose is weighted by f at the dose that it came from over f at the
    logged one; all others by f at the logged dose alone.
    """
    moves = isinstance(policy, Move) and not isinstance(policy, Randomized)
    return 2 if moves else 1


def density(log: LoggedData, model: PropensityModel | None) -> Array:
    """Return f(t | x) (n,) of logged doses by the model or the default one, floored."""
    survey = survey_of(log, Engine(pin=False))
    nuisances = Nuisances.of(log, SelfNormalized(), model, survey, survey.masses)
    return floored(nuisances, log)


def floored(nuisances: Nuisances, log: LoggedData) -> Array:
    """Return f(t | x) (n,) of logged doses, floored."""
    return np.maximum(nuisances.law(log).density(log.doses), nuisances.floor)


def weighted_quantile(values: Array, weight: Array, p: float) -> float:
    """Return the smallest value (n,) up to which lies a share p of the weight; nan without any."""
    near = np.flatnonzero(weight > 0.0)
    if not len(near):
        return float("nan")
    order = near[np.argsort(values[near], kind="stable")]
    along = np.cumsum(weight[order])
    return float(values[order[min(int(np.searchsorted(along, p * along[-1])), len(order) - 1)]])
