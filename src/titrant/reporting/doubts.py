"""What if we are wrong: the doubts of a page, found where they are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from titrant.evaluation.evaluation import Evaluation
    from titrant.inference.results import Comparison


def doubts_of(
    how: Mapping[str, Any], *, sensitivity: bool, stress: bool, seed: int, level: float
) -> Callable[[Evaluation, Comparison, str], Mapping[str, Any]] | None:
    """Return what finds the doubts of a page; None if none are wanted.

    ``how`` are the estimator, bandwidth and propensity of `evaluate`.
    """
    if not (sensitivity or stress):
        return None
    from titrant.doubt.sensitivity import left_out_of, sensitivity_of  # noqa: PLC0415
    from titrant.doubt.stress import stressed  # noqa: PLC0415

    def found(evaluation: Evaluation, comparison: Comparison, name: str) -> Mapping[str, Any]:
        bounds, trials = None, None
        if sensitivity:
            left_out = left_out_of(evaluation, how["propensity"], None, lambda *_: None)
            known = sensitivity_of(evaluation, comparison, left_out, given=False, level=level)
            bounds = known.to_dict()
        if stress:
            pair = dict(zip(evaluation.names, evaluation.policies, strict=True))
            tried = stressed(evaluation.source, pair, given=False, **how, seed=seed)
            trials = tried.to_dict(level)
        return {"policy": name, "sensitivity": bounds, "stress": trials}

    return found
