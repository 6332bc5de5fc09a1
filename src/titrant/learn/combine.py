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

    def to_dict(self, candidates: Sequence[Candidate], center: float) -> dict[str, Any]:
        """Return why the policy was chosen, as plain values; ``center`` is added to all scores."""
        behind = [paired(score, self.score[self.best]) for score in self.score]
        return {
            "chosen": candidates[self.best].name if self.best_alone else "weighted average",
            "because": self._because(candidates[self.best].name),
            "scores": {
                candidate.name: {
                    "held_out_loss": float(score.mean()) + center,
                    "behind_the_best": difference,
                    "behind_the_best_se": se,
                    "weight": float(weight),
                }
                for candidate, score, (difference, se), weight in zip(
                    candidates, self.score, behind, self.weights, strict=True
                )
            },
            "average_held_out_loss": float(self.average.mean()) + center,
        }

    def _because(self, best: str) -> str:
        behind, se = paired(self.average, self.score[self.best])
        far = f"{abs(behind):.3g} {'above' if behind > 0 else 'below'} that of `{best}`, the best"
        rule = f"it is kept unless it lies more than {WORSE:g} of the difference's SE above"
        return f"the held-out loss of the weighted average lies {far} (SE {se:.3g}); {rule}"


def paired(a: Array, b: Array) -> tuple[float, float]:
    """Return the mean of a − b (n,) and its standard error."""
    difference = a - b
    return float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))


def weights_of(score: Array) -> Array:
    """Return the share of each candidate, exp(−z/.5), z its SEs behind the best (candidates,)."""
    best = score[int(np.argmin(score.mean(axis=1)))]
    behind = np.array([paired(s, best) for s in score])
    # A difference that is the same in all rows has no SE: it is none, or as clear as can be.
    z = behind[:, 0] / np.maximum(behind[:, 1], np.finfo(np.float64).tiny)
    w = np.exp(-z / TEMPERATURE)
    return np.asarray(w / w.sum())
