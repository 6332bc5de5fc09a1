"""From scored candidates to one policy: an average, unless the best alone is clearly better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.learn.candidates import Candidate

TEMPERATURE = 0.5
"""A candidate z SEs behind the best has weight exp(−z/.5)."""
WORSE = 0.25
"""The average is kept unless it scores more than this many SEs worse than the best."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Scores of all candidates and of their average on rows that had no part in learning them."""

    score: Array
    """Each row's say on each candidate (candidates, n)."""
    weights: Array
    """The candidates' shares in the average (candidates,)."""
    average: Array
    """Each row's say on the average (n,)."""

    @property
    def best(self) -> int:
        """The candidate with the least mean score."""
        return int(np.argmin(self.score.mean(axis=1)))

    @property
    def best_alone(self) -> bool:
        """Whether the average scores clearly worse than the best candidate."""
        behind, se = paired(self.average, self.score[self.best])
        return behind > WORSE * se

    def combined(self, params: Array) -> Array:
        """Return the parameters (P,) to use, from those of all candidates (candidates, P)."""
        return params[self.best] if self.best_alone else self.weights @ params

    def to_dict(self, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """Return why the policy was chosen, as plain values."""
        behind = [paired(score, self.score[self.best]) for score in self.score]
        return {
            "chosen": candidates[self.best].name if self.best_alone else "weighted average",
            "scores": {
                candidate.name: {
                    "held_out_loss": float(score.mean()),
                    "behind_the_best": difference,
                    "behind_the_best_se": se,
                    "weight": float(weight),
                }
                for candidate, score, (difference, se), weight in zip(
                    candidates, self.score, behind, self.weights, strict=True
                )
            },
            "average_held_out_loss": float(self.average.mean()),
        }


def paired(a: Array, b: Array) -> tuple[float, float]:
    """Return the mean of a − b (n,) and its standard error."""
    difference = a - b
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))


def weights_of(score: Array) -> Array:
    """Return the share of each candidate, exp(−z/.5), z its SEs behind the best (candidates,)."""
    best = score[int(np.argmin(score.mean(axis=1)))]
    behind = np.array([paired(s, best) for s in score])
    z = np.divide(behind[:, 0], behind[:, 1], out=np.zeros(len(score)), where=behind[:, 1] > 0)
    w = np.exp(-z / TEMPERATURE)
    return np.asarray(w / w.sum())
