"""What the library is asked about the policies beyond their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from titrant.bandwidth import DEFAULT_FACTORS, path_of
from titrant.curves import curve_on
from titrant.errors import TitrantError, UntrustedEstimate
from titrant.estimators import SmoothedEstimator, ask
from titrant.inference import Diagnostics
from titrant.inference.balance import Contexts, balance_sums, imbalance
from titrant.inference.pareto import tail_index
from titrant.policies import Constant, Function, StatusQuo, doses
from titrant.report.content import Balance, Weights
from titrant.report.gather.log import DOSES
from titrant.trust import calibrated, calibration_checks, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import BandwidthPath, BandwidthSelector
    from titrant.curves import Curve
    from titrant.data import LoggedData
    from titrant.evaluation import Comparison, Evaluation
    from titrant.policies import Policy
    from titrant.propensity import Calibration

GRID = 25
"""Doses at which the value of the same dose for all is estimated."""
GRID_ENDS = 0.02, 0.98
"""Quantiles of the logged doses between which they lie: beyond, hardly a row could speak."""
STRENGTHS = tuple(k / 8 for k in range(11))
"""Of a rule, from the mean dose for everyone (0) over the rule as it is (1) to more than it."""
BALANCED = 12
"""Contexts in a table of balance."""
LARGEST = (1, 2, 5, 10, 20, 50, 100, 200)
FOLDS = 5


def curves(
    whole: Evaluation,
    treatments: Sequence[str],
    bandwidth: BandwidthSelector | ArrayLike | None,
) -> tuple[dict[str, Curve], tuple[str, ...]]:
    """Return the value of one dose for all, by treatment; other doses stay at their means."""
    found, notes = {}, []
    log = whole.log
    for j, treatment in enumerate(treatments[:DOSES]):
        low, high = np.quantile(log.doses[:, j], GRID_ENDS).tolist()
        grid = np.linspace(low, high, GRID)
        try:
            found[treatment] = curve_on(whole, _family(log, j), grid, bandwidth=bandwidth)
        except UntrustedEstimate as refusal:
            notes.append(f"{treatment}: {refusal}")
    return found, tuple(notes)


def _family(log: LoggedData, j: int) -> Callable[[float], Policy]:
    """Return the policies that give everyone the same dose, the j-th of them as a parameter."""
    mean = log.doses.mean(axis=0)

    def constant(dose: float) -> Policy:
        if log.dimension == 1:
            return Constant(dose)
        return Constant(np.where(np.arange(log.dimension) == j, dose, mean))

    return constant


def strengths(
    whole: Evaluation, focus: str, bandwidth: BandwidthSelector | ArrayLike | None
) -> Curve | None:
    """Return the value of t̄ + β·(τ(x) − t̄) over β, for a rule τ that treats rows differently.

    None for other rules, and where the log does not answer.
    """
    log, rule = whole.log, whole.policies[whole.names.index(focus)]
    if isinstance(rule, StatusQuo):
        return None
    mean = log.doses.mean(axis=0)
    low, high = log.lower.max(axis=0), log.upper.min(axis=0)
    if not np.ptp(doses(rule, log.context, log.dimension), axis=0).any():
        return None

    def part_of(beta: float) -> Policy:
        def dose(x: Array) -> Array:
            tau = mean + beta * (doses(rule, x, log.dimension) - mean)
            kept: Array = np.clip(tau, low, high)
            return kept[:, 0] if log.dimension == 1 else kept

        return Function(dose)

    try:
        return curve_on(whole, part_of, STRENGTHS, bandwidth=bandwidth)
    except UntrustedEstimate:
        return None


def paths(whole: Evaluation, drawn: Sequence[str]) -> dict[str, BandwidthPath]:
    """Return the estimate of each drawn policy over bandwidths, if the estimator has one."""
    estimator = whole.estimator
    if not isinstance(estimator, SmoothedEstimator):
        return {}
    return {
        name: path_of(whole.problem(whole.names.index(name), estimator), DEFAULT_FACTORS)
        for name in drawn
    }


def weights(whole: Evaluation, comparison: Comparison, reference: str) -> tuple[Weights, ...]:
    """Return how the weight is spread over rows; the status quo has none."""
    names = [name for name in comparison.names if name != reference]
    if not names or not whole.estimator.uses_propensity:
        return ()
    questions = [
        whole.question(whole.names.index(name), comparison[name].bandwidth) for name in names
    ]
    tally = ask(questions, whole.over_rows).tally
    found = []
    for i, name in enumerate(names):
        numbers = tuple(k for k in LARGEST if k <= min(tally.count[i], tally.largest.shape[1]))
        shares = np.cumsum(tally.largest[i]) / tally.absolute[i]
        found.append(
            Weights(
                policy=name,
                rows=tally.n,
                reached=int(tally.count[i]),
                ess=float(tally.ess[i]),
                mean=float(tally.mean[i]),
                mean_se=float(tally.mean_se[i]),
                largest=numbers,
                share=tuple(float(shares[k - 1]) for k in numbers),
                tail=tail_index(tally.largest[i], int(tally.count[i])),
            )
        )
    return tuple(found)


def balance(whole: Evaluation, comparison: Comparison, drawn: Sequence[str]) -> tuple[Balance, ...]:
    """Return how alike the rows behind each drawn policy and all rows are."""
    if not whole.log.names or not whole.estimator.uses_propensity:
        return ()
    contexts = Contexts.of(whole.log.context, whole.log.names)
    return tuple(_balance_of(whole, comparison, name, contexts) for name in drawn)


def _balance_of(
    whole: Evaluation, comparison: Comparison, name: str, contexts: Contexts
) -> Balance:
    """Return the balance of the contexts before and after dividing by the propensity."""
    i = whole.names.index(name)
    question = whole.question(i, comparison[name].bandwidth)
    pairs = []
    for rows in whole.blocks:
        w = question.estimator.weights(question.estimator.terms(rows[i], question.scale))
        smooth = isinstance(question.estimator, SmoothedEstimator)
        pairs.append((w * rows[i].need("q", "balance") if smooth else 1.0 * (w != 0), w))
    near, weighted = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    x = whole.log.context
    before, after = (
        imbalance(balance_sums(w, x, float(w.mean()), contexts.center), contexts).in_sd
        for w in (near, weighted)
    )
    kept = np.argsort(-np.maximum(before, after), kind="stable")[:BALANCED]
    return Balance(
        policy=name,
        contexts=tuple(contexts.names[k] for k in kept),
        near=before[kept],
        weighted=after[kept],
        left_out=len(contexts.names) - len(kept),
    )


def calibration(whole: Evaluation, seed: int) -> tuple[Calibration | None, Diagnostics]:
    """Return the held-out calibration of the propensities, and its checks."""
    if not whole.estimator.uses_propensity:
        return None, Diagnostics((), ("The estimator uses no propensities.",))
    log = sample(whole.log, seed)
    try:
        found = calibrated(log, whole.nuisances.propensity, FOLDS, seed)
    except TitrantError as error:
        return None, Diagnostics((), (f"The propensities could not be calibrated: {error}",))
    return found, Diagnostics.of(calibration_checks(found))
