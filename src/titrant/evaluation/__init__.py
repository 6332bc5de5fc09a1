"""The pages where the rooms meet for evaluation: what is asked of a log, and how it is answered."""

from titrant.evaluation.evaluation import (
    Comparison,
    Contrast,
    Estimate,
    Evaluation,
    compare,
    evaluate,
)

__all__ = ["Comparison", "Contrast", "Estimate", "Evaluation", "compare", "evaluate"]
