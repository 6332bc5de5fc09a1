"""What the models add to the error of an estimate: a jackknife over their folds.

The delta method takes propensity and outcome model as given. They were learned from as many rows
as the estimate, and other rows would have given others. Cross-fitting has already left out each
fold once: with Vₖ the value were *all* rows judged by the models that have not seen fold k,

    N = (K − 1)/K · Σₖ (Vₖ − V̄)(Vₖ − V̄)ᵀ

is the delete-a-group jackknife of what the models contribute. It needs no further fit, and holds
for any model. Of a long log, the rows that default models are fitted on are judged; where next to
none of them is near a policy, N is not known and counts as the delta method's variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from titrant.evaluation.models.fitting import MOST_TO_FIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from titrant._types import Array
    from titrant.estimators import Question, Rows
    from titrant.evaluation.survey import Sample


FEWEST = 10
"""Rows with weight, of those that were drawn, without which they do not tell the models' share."""


class JudgedRows(Protocol):
    """Rows of a sample under policies, by models that have not seen a fold."""

    @property
    def folds(self) -> int:
        """In how many folds models were cross-fitted."""

    def judged_by(self, k: int, sample: Sample) -> Callable[[int], Rows]:
        """Return what gives the rows under policy i, all by the models without fold k."""


def models_share(
    policy_rows: JudgedRows,
    questions: Sequence[Question],
    sample: Sample,
    familiar: Sequence[Rows] = (),
) -> Array:
    """Return N (m, m) for m questions about the whole log of which the rows are a sample.

    ``familiar`` are rows under every policy whose distances may be known already.

    Where the sample does not tell, the variance is nan and the covariances are 0; see `filled`.
    """
    if policy_rows.folds == 1:
        return np.zeros((len(questions), len(questions)))
    few = sample.thinned(MOST_TO_FIT)
    judged = judged_rows(policy_rows, {q.policy for q in questions}, few, familiar)
    return share_of(judged, questions, few)


def judged_rows(
    policy_rows: JudgedRows,
    policies: Iterable[int],
    few: Sample,
    familiar: Sequence[Rows] = (),
) -> Iterator[dict[int, Rows]]:
    """Yield for each fold all rows under these policies, judged by models that have not seen it.

    Models that were not cross-fitted, or none, yield nothing. What is known of the distances of
    ``familiar`` rows, or of those of another fold, is not found again.
    """
    folds = policy_rows.folds
    known: dict[int, Rows] = dict(enumerate(familiar))
    for k in range(folds if folds > 1 else 0):
        judged = policy_rows.judged_by(k, few)
        rows = {i: judged(i).like(known.get(i)) for i in policies}
        known |= rows
        yield rows


def share_of(
    judged: Iterable[Mapping[int, Rows]], questions: Sequence[Question], few: Sample
) -> Array:
    """Return N (m, m) from the rows as the models of each fold see them; see `models_share`."""
    m, fewest = len(questions), 1 if few.whole else FEWEST
    each = [
        np.stack([pseudo_values(q, rows[q.policy], fewest) for q in questions], axis=1)
        for rows in judged
    ]
    if not each:
        return np.zeros((m, m))
    influences = np.stack(each)
    told = np.flatnonzero(~np.isnan(influences).all(axis=(0, 1)))
    if len(told) == m:
        return jackknife(influences, few.of)
    share = np.diag(np.full(m, np.nan))
    share[np.ix_(told, told)] = jackknife(influences[:, :, told], few.of)
    return share


def filled(share: Array, covariance: Array) -> Array:
    """Return N (m, m) with the delta method's variances where the sample does not tell.

    That is a convention, not a bound: at doses far from most rows the share was up to thirty times
    that variance (a dose two sd from the mean one, 100,000 rows).
    """
    return np.where(np.isnan(share), np.diag(np.diagonal(covariance)), share)


def share_notes(share: Array) -> list[str | None]:
    """Return for each question the note that its share was not told by the sample, or None."""
    note = (
        f"The models' share in the error was not measured: fewer than {FEWEST} of the rows that "
        "models were judged on have weight. It counts as much as all other error (an SE 1.4 times "
        "as large), and may be more."
    )
    return [note if np.isnan(own) else None for own in np.diagonal(share)]


def pseudo_values(question: Question, rows: Rows, fewest: int = 1) -> Array:
    """Return the value plus each row's influence on it (n,): their mean is the value.

    nan where fewer than ``fewest`` rows have weight.
    """
    terms = question.terms(rows)
    if np.count_nonzero(question.weights(terms) * rows.counts) < fewest:
        return np.full(len(terms), np.nan)
    if rows.omega is None:
        mean = terms.mean(axis=0)
        return np.asarray(question.value(mean) + (terms - mean) @ question.gradient(mean))
    mean = np.average(terms, axis=0, weights=rows.omega)
    moved = rows.omega * ((terms - mean) @ question.gradient(mean))
    return np.asarray(question.value(mean) + moved / rows.omega.mean())


def jackknife(influences: Array, n: int) -> Array:
    """Return N (m, m) of n rows from K × some of the rows × m influences.

    Where the rows are some of n, how they happen to be balanced is more to blame for the spread of
    the Vₖ than it would be over all: a part of N falls in proportion to the rows, and is known from
    how much the models' disagreement varies from row to row.
    """
    folds, some, m = influences.shape
    apart = influences - np.nanmean(influences, axis=0)
    means = np.nan_to_num(apart.mean(axis=1))
    found = (folds - 1) / folds * means.T @ means
    if some == n:
        return np.asarray(found)
    within = np.nan_to_num(apart - apart.mean(axis=1, keepdims=True))
    by_chance = (folds - 1) / folds * np.sum(within**2, axis=(0, 1)) / some**2
    own = np.diagonal(found)
    lasting = np.maximum(own - by_chance, 0.0) + by_chance * (some / n)
    # Each variance is its own policy's affair, whatever else is compared; correlations stay.
    factor = np.sqrt(np.divide(lasting, own, out=np.zeros(m), where=own > 0.0))
    return np.asarray(found * np.outer(factor, factor))
