"""What the library is asked about the policies beyond their values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import TitrantError, UntrustedEstimate
from titrant.estimators import SmoothedEstimator, ask
from titrant.evaluation.curves import curve_on, path_search_on
from titrant.evaluation.models.moves import doses_under
from titrant.evaluation.passes import served
from titrant.evaluation.trust import CALIBRATION_ROWS, calibrated, shape_checks
from titrant.inference import Diagnostics
from titrant.inference.trust.balance import balance_sums, imbalance
from titrant.inference.trust.evidence import tail_index
from titrant.inference.trust.rules import covariate_balance
from titrant.policies import Constant, Function, Move, Shift, doses
from titrant.reporting.content import DOSES, Balance, Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import BandwidthPath, BandwidthSelector
    from titrant.data import LoggedData
    from titrant.data.masses import PointMasses
    from titrant.estimators import Question, Rows
    from titrant.evaluation.curves import Curve
    from titrant.evaluation.evaluation import Comparison, Evaluation
    from titrant.inference.trust.balance import Contexts
    from titrant.policies import Policy
    from titrant.propensity import Calibration


GRID = 25
"""Doses at which the value of the same dose for all is estimated."""
MANY = 4
"""Times as many different doses as points of a curve are too many to be list prices."""
SHIFTS = 8
"""Steps of a change of every dose, half of them down, at most, up to one sd."""
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
    for j, treatment in enumerate(treatments[:DOSES]):
        grid = dose_grid(whole.log.doses[:, j], whole.nuisances.masses)
        family = _family(whole.survey.mean_dose, j)
        try:
            found[treatment] = curve_on(whole, family, grid, bandwidth=bandwidth)
        except UntrustedEstimate as refusal:
            notes.append(f"{treatment}: {refusal}")
    return found, tuple(notes)


def dose_grid(logged: Array, masses: PointMasses | None) -> Array:
    """Return the doses at which a curve is estimated, by logged doses (n,).

    The logged ones themselves if they are few; of some more, the nearest to even steps; else steps
    of a round size. Point masses are among them.
    """
    if masses is not None and masses.levels:
        return masses.values
    given = np.unique(logged)
    low, high = np.quantile(logged, GRID_ENDS).tolist()
    if len(given) <= GRID:
        return given
    grid = round_steps(low, high, GRID)
    if len(given) <= MANY * GRID and len(logged) >= MANY * len(given):
        grid = given[np.unique(np.abs(given[:, None] - grid).argmin(axis=0))]
    return grid if masses is None else np.union1d(grid, masses.values)


def round_steps(low: float, high: float, most: int) -> Array:
    """Return at most so many multiples of 1, 2 or 5 times a power of ten between two numbers.

    >>> round_steps(14.8, 55.6, 10).tolist()
    [15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0]
    """
    if not high > low:
        return np.array([low])
    power = 10.0 ** np.floor(np.log10((high - low) / most))
    sizes = power * np.array([1.0, 2.0, 5.0, 10.0, 20.0, 50.0])
    first, last = np.ceil(low / sizes), np.floor(high / sizes)
    chosen = int(np.argmax(last - first + 1 <= most))
    steps = np.arange(first[chosen], last[chosen] + 1)
    # Divided rather than multiplied, tenths are the numbers that people write.
    size = float(sizes[chosen])
    return np.asarray(steps * size if size >= 1.0 else steps / round(1.0 / size))


def _family(mean: Array, j: int) -> Callable[[float], Policy]:
    """Return the policies that give everyone the same dose, the j-th of them as a parameter.

    The others stay at their means (d,).
    """

    def constant(dose: float) -> Policy:
        if len(mean) == 1:
            return Constant(dose)
        return Constant(np.where(np.arange(len(mean)) == j, dose, mean))

    return constant


def strengths(
    whole: Evaluation, focus: str, bandwidth: BandwidthSelector | ArrayLike | None
) -> Curve | None:
    """Return the value of t̄ + β·(τ(x) − t̄) over β, for a rule τ that treats rows differently.

    None for other rules, and where the log does not answer.
    """
    log, rule = whole.log, whole.policies[whole.names.index(focus)]
    if not rule.is_rule or not np.ptp(doses_of(rule, log), axis=0).any():
        return None
    try:
        return curve_on(whole, partly(whole, rule), STRENGTHS, bandwidth=bandwidth)
    except UntrustedEstimate:
        return None


def partly(whole: Evaluation, rule: Policy) -> Callable[[float], Policy]:
    """Return t̄ + β·(τ(x) − t̄) as a policy for each β."""
    part_of = partial(Partly, rule, whole.survey.mean_dose, whole.survey.possible)
    return lambda b: Function(part_of(b), features=rule.features or None)


def shifts(whole: Evaluation, bandwidth: BandwidthSelector | ArrayLike | None) -> Curve | None:
    """Return the value of t + δ over δ, in round steps up to one sd(T) in either direction.

    Doses that would leave the bounds stay. None where the log does not answer: several doses, a
    column of propensities without a model.
    """
    if whole.source.dimension > 1 or not whole.estimator.uses_propensity:
        return None
    reach = float(whole.log.treatment.std())
    try:
        return curve_on(whole, Shift, round_steps(-reach, reach, SHIFTS + 1), bandwidth=bandwidth)
    except TitrantError:
        return None


@dataclass(frozen=True, slots=True)
class Partly:
    """A rule τ applied in part: t̄ + β·(τ(x) − t̄), kept within the doses that are possible."""

    rule: Policy
    mean: Array
    """t̄ (d,)."""
    possible: tuple[Array, Array]
    """The least and the greatest dose (d,)."""
    beta: float

    def __call__(self, x: Array) -> Array:
        """Return the doses for contexts x (n, p) in the order of the rule."""
        tau = self.mean + self.beta * (doses(self.rule, x, len(self.mean)) - self.mean)
        kept: Array = np.clip(tau, *self.possible)
        return kept[:, 0] if len(self.mean) == 1 else kept


def doses_of(policy: Policy, log: LoggedData) -> Array:
    """Return the doses of a policy (n, d); those of the status quo are in the log."""
    return doses_under(policy, log) if isinstance(policy, Move) else policy.of_rows(log)


def paths(whole: Evaluation, drawn: Sequence[str]) -> dict[str, BandwidthPath]:
    """Return the estimate of each drawn policy over bandwidths, if the estimator has one."""
    estimator = whole.estimator
    if not isinstance(estimator, SmoothedEstimator):
        return {}

    drawn = [name for name in drawn if whole.smoothed(whole.names.index(name))]
    places = [whole.names.index(name) for name in drawn]
    searches = [path_search_on(whole, i, whole.problem(i, estimator)) for i in places]
    found = served(searches, whole.over_rows)
    pairs = zip(drawn, found, strict=True)
    return {name: one for name, one in pairs if not isinstance(one, UntrustedEstimate)}


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
    """Return how alike the rows behind each drawn policy and all rows are, as the check sees it."""
    contexts = whole.survey.contexts
    if not contexts.names or not drawn or not whole.estimator.uses_propensity:
        return ()
    questions = [
        whole.question(whole.names.index(name), comparison[name].bandwidth) for name in drawn
    ]
    sums = whole.over_rows(partial(weight_sums, questions))
    mean = sums[:, :2] / sums[:, 2:]
    moved = whole.over_rows(partial(weighted_contexts, questions, mean, contexts))
    effect = ask(questions, whole.over_rows).design_effect
    effects = np.maximum(np.broadcast_to(effect, len(drawn)), 1.0)
    each = zip(drawn, moved, effects, strict=True)
    return tuple(_balance_of(name, both, contexts, float(by)) for name, both, by in each)


def near_and_weighted(question: Question, rows: Sequence[Rows]) -> tuple[Array, Array]:
    """Return the weights of rows near a policy's doses (n,), and those over the propensity.

    A row without an outcome has neither, and its q is infinite. So both are of the same rows,
    before and after weighting, which has to undo who got such doses and whose outcome was recorded.
    """
    mine = rows[question.policy]
    w = question.estimator.weights(question.estimator.terms(mine, question.scale))
    speaks = np.ones(len(w), dtype=bool) if mine.seen is None else mine.seen > 0.0
    if mine.kept is not None:  # no row is further from a policy that changes its own dose
        return speaks.astype(np.float64), w
    if not isinstance(question.estimator, SmoothedEstimator):
        return 1.0 * (w != 0), w
    q = mine.need("q", "balance")
    return np.multiply(w, q, out=np.zeros_like(w), where=speaks), w


def weight_sums(questions: Sequence[Question], rows: Sequence[Rows]) -> Array:
    """Return Σωw of both kinds of weights and Σω (m, 3) of some rows for m policies."""
    omega = [rows[q.policy].counts for q in questions]
    return np.array(
        [
            [*(o @ w for w in near_and_weighted(q, rows)), o.sum()]
            for q, o in zip(questions, omega, strict=True)
        ]
    )


def weighted_contexts(
    questions: Sequence[Question], mean: Array, contexts: Contexts, rows: Sequence[Rows]
) -> Array:
    """Return what `imbalance` takes (m, 2, 2, p), by mean weights (m, 2) and the contexts."""
    x = rows[0].need("x", "balance")
    return np.array(
        [
            [
                balance_sums(w, x, float(m), contexts, rows[q.policy].counts)
                for w, m in zip(near_and_weighted(q, rows), means, strict=True)
            ]
            for q, means in zip(questions, mean, strict=True)
        ]
    )


def _balance_of(name: str, sums: Array, contexts: Contexts, effect: float) -> Balance:
    """Return the balance of the contexts before and after dividing by the propensity."""
    before, after = (imbalance(one, contexts, effect) for one in sums)
    check = covariate_balance(after, contexts.names)
    kept = np.argsort(-np.maximum(before.in_sd, after.in_sd), kind="stable")[:BALANCED]
    return Balance(
        policy=name,
        contexts=tuple(contexts.names[k] for k in kept),
        near=before.in_sd[kept],
        weighted=after.in_sd[kept],
        in_se=after.in_se[kept],
        check=check,
    )


def calibration(whole: Evaluation, seed: int) -> tuple[Calibration | None, Diagnostics]:
    """Return the held-out calibration of the propensities, and its checks."""
    if not whole.estimator.uses_propensity:
        return None, Diagnostics((), ("The estimator uses no propensities.",))
    rows = whole.survey.sample.thinned(CALIBRATION_ROWS)
    try:
        found = calibrated(whole.nuisances, rows, FOLDS, seed)
    except TitrantError as error:
        return None, Diagnostics((), (f"The propensities could not be calibrated: {error}",))
    return found, Diagnostics.of(shape_checks(found))
