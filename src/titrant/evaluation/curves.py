"""Value over a family of policies, and value over bandwidths: two curves of a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check, _drawing
from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.bandwidth import DEFAULT_FACTORS, path_search
from titrant.errors import InvalidArgument, UntrustedEstimate
from titrant.estimators import DoublyRobust, Question, SmoothedEstimator
from titrant.evaluation.evaluation import Evaluation
from titrant.evaluation.models.jackknife import filled, models_share
from titrant.inference import Verdict
from titrant.policies import Constant, Shift
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from titrant._drawing import Axes
    from titrant._types import Array
    from titrant.bandwidth import BandwidthPath, BandwidthSelector
    from titrant.data.source import Source
    from titrant.estimators import Estimator, Problem
    from titrant.estimators.joint import Search
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.execute import Engine
    from titrant.inference.results import Comparison
    from titrant.propensity import PropensityModel


@dataclass(frozen=True, slots=True)
class Curve(Tabular):
    """The value of a one-parameter family of policies, with pointwise and simultaneous bands.

    Arrays are (m,) over the parameters that the log can answer; ``refused`` holds the others,
    each with the reason.
    """

    parameters: Array
    comparison: Comparison
    refused: dict[float, str]
    parameter: str = "parameter"
    """What the parameter is called: the dose where the family is `Constant`."""

    @property
    def values(self) -> Array:
        """The estimates (m,)."""
        return np.array([e.value for e in self.comparison.estimates.values()])

    def band(self, level: float = 0.95, *, simultaneous: bool = True, seed: int = 0) -> Array:
        """Return lower and upper ends (m, 2), for the whole curve at once unless told otherwise."""
        if simultaneous:
            return np.array(list(self.comparison.simultaneous(level, seed=seed).values()))
        return np.array([e.interval(level) for e in self.comparison.estimates.values()])

    def best(self, *, maximize: bool | None = None) -> float:
        """Return the parameter with the best estimate; ``maximize`` unless the log says it."""
        reward = self.comparison.about.direction(maximize, "best")
        return float(self.parameters[int((np.argmax if reward else np.argmin)(self.values))])

    def about_as_good(
        self, level: float = 0.95, *, maximize: bool | None = None, seed: int = 0
    ) -> list[float]:
        """Return the other parameters that are not clearly worse than the best one, in order.

        By the intervals of all paired differences to the best one at once.
        """
        best = self.best(maximize=maximize)
        names = dict(zip(self.parameters.tolist(), self.comparison.names, strict=True))
        if len(names) == 1:
            return []
        gaps = self.comparison.simultaneous_contrasts(names[best], level, seed=seed)
        others = sorted(p for p in names if p != best)
        return [p for p in others if gaps[names[p]][0] <= 0.0 <= gaps[names[p]][1]]

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the curve as plain lists; the names of the bands tell their level in percent."""
        return {
            "parameters": self.parameters.tolist(),
            "values": self.values.tolist(),
            f"pointwise_{100 * level:g}": self.band(level, simultaneous=False).tolist(),
            f"simultaneous_{100 * level:g}": self.band(level).tolist(),
            "refused": {str(parameter): why for parameter, why in self.refused.items()},
        }

    def __repr__(self) -> str:
        low, high = self.parameters.min(), self.parameters.max()
        answered = f"{len(self.parameters)} parameters from {low:.4g} to {high:.4g}"
        return f"Curve({answered}; {len(self.refused)} refused)"

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the values, the pointwise band and the simultaneous one; return the axes."""
        order = np.argsort(self.parameters)
        bands = [self.band(level, simultaneous=both)[order] for both in (True, False)]
        drawn = _drawing.new_axes(ax)
        drawn.set_xlabel(_drawing.escaped(self.parameter))
        drawn.set_ylabel(_drawing.escaped(self.comparison.about.value))
        return _drawing.band(drawn, self.parameters[order], self.values[order], bands)

    def _texts(self, level: float) -> list[list[str]]:
        at = f"{100 * level:g}%"
        rows = [
            [
                f"{row['parameter']:.4g}",
                brief(row["value"], row["high"] - row["low"]),
                between(row["low"], row["high"]),
                between(row["band_low"], row["band_high"]),
            ]
            for row in self._numbers(level)
        ]
        return [[self.parameter, "value", f"{at} CI", f"{at} band"], *rows]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        bands = self.band(level, simultaneous=False).tolist(), self.band(level).tolist()
        each = zip(self.parameters.tolist(), self.values.tolist(), *bands, strict=True)
        return [
            {
                "parameter": p,
                "value": v,
                "low": low,
                "high": high,
                "band_low": band[0],
                "band_high": band[1],
            }
            for p, v, (low, high), band in each
        ]

    def _caption(self) -> str:
        return f"{len(self.refused)} parameters refused"


def curve(
    log: Source,
    family: Callable[[float], AnyPolicy],
    parameters: ArrayLike,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    executor: Executor | Engine | None = None,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
) -> Curve:
    """Return the value of ``family(p)`` at each parameter p, e.g. `Constant` over doses.

    The parameters of the evaluation are those of `evaluate`. Where the log cannot answer, or not
    to be trusted, the point is left out and its reason kept in ``refused``.

    Returns
    -------
    Curve : ``parameters`` and ``values``, ``band(level)`` of the whole curve at once or pointwise,
        ``refused``, and the ``comparison`` behind it; ``plot()`` draws it

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> age, noise = rng.uniform(30, 70, 500), rng.normal(size=(2, 500))
    >>> dose = 20 + 0.3 * age + 4 * noise[0]
    >>> loss = (dose - 0.7 * age) ** 2 / 40 + noise[1]
    >>> table = {"age": age, "dose": dose, "loss": loss}
    >>> log = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context="age")
    >>> quick = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    >>> found = tt.curve(log, tt.Constant, [30, 35, 40, 90], **quick)
    >>> found
    Curve(3 parameters from 30 to 40; 1 refused)
    >>> found.values.round(1).tolist(), list(found.refused)
    ([2.1, 1.5, 2.3], [90.0])
    """
    grid = _grid(parameters)
    policies = {str(p): family(p) for p in grid}
    models = estimator, propensity, executor
    evaluation = Evaluation.of(log, policies, *models, ignore_doubts=ignore_doubts)
    return _curve(evaluation, grid, bandwidth, allow_untrusted=allow_untrusted)


def curve_on(
    evaluation: Evaluation,
    family: Callable[[float], AnyPolicy],
    parameters: ArrayLike,
    *,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    allow_untrusted: bool = False,
) -> Curve:
    """Return the curve by the log, estimator and nuisances of an evaluation that was made before.

    The other parameters are those of `curve`.
    """
    grid = _grid(parameters)
    whole = evaluation.with_policies({str(p): family(p) for p in grid})
    return _curve(whole, grid, bandwidth, allow_untrusted=allow_untrusted)


def _parameter(evaluation: Evaluation) -> str:
    """Return what the parameter of a family is called: a dose, a change of it, or just that."""
    policies = evaluation.policies
    if evaluation.source.dimension == 1 and all(is_exactly(p, Constant) for p in policies):
        return evaluation.source.about.dose()
    if all(is_exactly(p, Shift) for p in policies):
        return f"change of {evaluation.source.about.dose()}"
    return "parameter"


def _grid(parameters: ArrayLike) -> list[float]:
    """Return each parameter once, in the order given."""
    numbers = _check.finite_array(parameters, "parameters", "curve", ndim=1).tolist()
    return list(dict.fromkeys(numbers))


def _curve(
    evaluation: Evaluation,
    grid: list[float],
    bandwidth: BandwidthSelector | ArrayLike | None,
    *,
    allow_untrusted: bool,
) -> Curve:
    choices = evaluation.choices(bandwidth)
    bandwidths, refusals = choices.bandwidths, choices.refused
    refused = {grid[i]: str(refusal) for i, refusal in refusals.items()}
    if bandwidths:
        comparison = evaluation.comparison(bandwidths, None, choices.point)
        shown = comparison.estimates.items()
        trusted = [name for name, e in shown if e.trusted or allow_untrusted]
        for name, estimate in shown:
            if name not in trusted:
                refused[float(name)] = " ".join(estimate.diagnostics.messages(Verdict.REFUSE))
        if trusted:
            kept = comparison.only(trusted)
            return Curve(
                np.array([float(p) for p in trusted]), kept, refused, _parameter(evaluation)
            )
    raise UntrustedEstimate(
        f"The log answers none of the {len(grid)} parameters of the curve; "
        f"the first one because: {next(iter(refused.values()))}"
    )


def bandwidth_path(
    log: Source,
    policy: AnyPolicy,
    *,
    estimator: SmoothedEstimator | None = None,
    propensity: PropensityModel | None = None,
    bandwidths: ArrayLike | None = None,
    executor: Executor | Engine | None = None,
) -> BandwidthPath:
    """Return the estimate of ``policy`` over a grid of bandwidths, from one pass over the rows.

    ``bandwidths`` are in units of the dose (for vector doses: of sd(T)); unless given, 27 of
    them from .03 to 2.7 sd(T). The other parameters are those of `evaluate`.
    """
    chosen = DoublyRobust() if estimator is None else estimator
    if not isinstance(chosen, SmoothedEstimator):
        raise InvalidArgument(f"`{type(chosen).__name__}` has no bandwidth, so it has no path.")
    evaluation = Evaluation.of(log, {"policy": policy}, chosen, propensity, executor)
    if not evaluation.smoothed(0):
        raise InvalidArgument(
            "The policy gives point masses of the dose only, by the rows at them: no bandwidth has "
            "a say, so there is no path."
        )
    problem = evaluation.problem(0, chosen)
    if bandwidths is None:
        return path_on(evaluation, 0, problem)
    h = np.sort(_check.finite_array(bandwidths, "bandwidths", "bandwidth_path", ndim=1))
    if not len(h) or h[0] <= 0.0:
        raise _check.invalid("bandwidths", "bandwidth_path", "numbers > 0", bandwidths)
    unit = problem.spread[0] if len(problem.spread) == 1 else 1.0
    return path_on(evaluation, 0, problem, h / unit)


def path_on(
    evaluation: Evaluation, i: int, problem: Problem, factors: Array = DEFAULT_FACTORS
) -> BandwidthPath:
    """Return the path of policy number i of an evaluation, whose ``problem`` it is.

    Its standard errors are those of `evaluate`: they hold the models' share.
    """
    return problem.answered(path_search_on(evaluation, i, problem, factors))


def path_search_on(
    evaluation: Evaluation, i: int, problem: Problem, factors: Array = DEFAULT_FACTORS
) -> Search[BandwidthPath]:
    """Ask for one pass, and return the same."""
    path = yield from path_search(problem, factors)
    questions = [Question(problem.estimator, i, problem.scale(factor)) for factor in factors]
    share = models_share(evaluation.policy_rows, questions, evaluation.survey.sample)
    return replace(path, covariance=path.covariance + filled(share, path.covariance))
