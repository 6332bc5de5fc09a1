"""What the command line calls the parts of the library, and how it makes them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

import titrant as tt

if TYPE_CHECKING:
    from titrant.bandwidth import BandwidthSelector
    from titrant.estimators import Estimator
    from titrant.outcome import OutcomeModel
    from titrant.propensity import PropensityModel

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class NamedEstimator:
    """A name for an estimator: its class, its fixed settings, and what else it may be given."""

    cls: str
    help: str
    takes: tuple[str, ...]
    settings: tuple[tuple[str, bool], ...] = ()


_SMOOTHED = ("kernel", "bandwidth", "clip")
_MODELED = ("outcome_model", "seed")

ESTIMATORS = {
    "dr": NamedEstimator("DoublyRobust", "doubly robust, self-normalized", (*_SMOOTHED, *_MODELED)),
    "dr-unnormalized": NamedEstimator(
        "DoublyRobust",
        "doubly robust",
        (*_SMOOTHED, *_MODELED),
        (("self_normalized", False),),
    ),
    "sn": NamedEstimator("SelfNormalized", "self-normalized weighting", _SMOOTHED),
    "ipw": NamedEstimator("IPW", "plain weighting", _SMOOTHED),
    "centered-ipw": NamedEstimator(
        "IPW", "weighting around the mean outcome", _SMOOTHED, (("centered", True),)
    ),
    "dm": NamedEstimator("DirectMethod", "outcome model alone", _MODELED),
    "discretized": NamedEstimator("Discretized", "dose bins, ten or at --edges", ("clip", "edges")),
}
SMOOTH = "smooth"
"""The default models, which follow contexts that act nonlinearly."""
OUTCOME_MODELS = {
    SMOOTH: "the default, four ridge models that follow contexts which act nonlinearly",
    "ridge": "two ridge models that are linear in the contexts",
    "library": "these, a well and trees",
}
"""Stacks of outcome models."""
KERNELS = {
    "epanechnikov": "Epanechnikov",
    "gaussian": "Gaussian",
    "triangular": "Triangular",
    "uniform": "Uniform",
    "biweight": "Biweight",
}
PROPENSITIES = {
    "linear-gaussian": "LinearGaussian",
    "heteroscedastic": "HeteroscedasticGaussian",
    "mixture": "GaussianMixture",
    "location-scale": "LocationScale",
    "kernel": "KernelConditional",
    "smooth-location": "SmoothLocation",
    "smooth-location-scale": "SmoothLocationScale",
    "gated-mixture": "GatedMixture",
    "average": "DensityAverage",
    "multivariate-gaussian": "MultivariateGaussian",
}
DESIGNS = (
    *("dosing", "synthetic", "synthetic-uniform", "quadratic", "quadratic-2d"),
    *("ten-contexts", "ten-contexts-overlap"),
)
LEARNED, STATUS_QUO, MEAN_DOSE = "learned", "status quo", "mean dose"
"""The policies that a learner compares.

All are static, so that help needs no import; a test holds them to the lists of their rooms.
"""


class BandwidthText(click.ParamType):  # type: ignore[type-arg]  # newer clicks only
    """A bandwidth as typed: numbers, or the name of a selector."""

    name = "H|SELECTOR"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text as it is, once it can be understood."""
        text = str(value)
        try:
            bandwidth(text)
        except ValueError:
            self.fail(
                f"{text!r} is neither numbers nor one of {', '.join(selectors())}.", param, ctx
            )
        return text

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[click.shell_completion.CompletionItem]:
        """Return the selectors that begin like this."""
        item = click.shell_completion.CompletionItem
        return [item(name) for name in selectors() if name.startswith(incomplete)]


class EdgesText(click.ParamType):  # type: ignore[type-arg]  # newer clicks only
    """The inner edges of dose bins as typed: numbers that grow."""

    name = "EDGE,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text as it is, once it can be understood."""
        text = str(value)
        try:
            found = edges(text)
        except ValueError:
            self.fail(f"{text!r} must be numbers with commas between, as 1,2,3.", param, ctx)
        if any(not low < high for low, high in pairwise(found)):
            self.fail(f"{text!r} must be numbers that grow, as 1,2,3.", param, ctx)
        return text


def edges(text: str) -> tuple[float, ...]:
    """Return the numbers meant by `text`; anything else is a ValueError."""
    found = tuple(float(part) for part in text.split(","))
    if not all(map(math.isfinite, found)):
        raise ValueError(text)
    return found


def selectors() -> dict[str, BandwidthSelector | None]:
    """Return every bandwidth selector by name; None is the library's own choice."""
    from titrant.bandwidth import SELECTORS  # noqa: PLC0415

    return {AUTO: None} | {selector_name(selector): selector for selector in SELECTORS}


def selector_name(selector: BandwidthSelector) -> str:
    """Return the name of a selector: PlugIn(as_printed=True) is plug-in-as-printed."""
    record: Any = selector  # selectors are dataclasses, their base is not
    switches = [f.name for f in fields(record) if getattr(record, f.name) is True]
    return "-".join([kebab(type(selector).__name__), *(s.replace("_", "-") for s in switches)])


def bandwidth(text: str, seed: int = 0) -> BandwidthSelector | float | list[float] | None:
    """Return the selector or the numbers meant by `text`; anything else is a ValueError."""
    known: dict[str, Any] = selectors()
    if text in known:
        selector = known[text]
        drawn = selector is not None and "seed" in {f.name for f in fields(selector)}
        made: BandwidthSelector | None = replace(selector, seed=seed) if drawn else selector
        return made
    numbers = [float(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def estimator(
    name: str,
    kernel: str | None,
    clip: float | None,
    seed: int,
    *,
    edges: tuple[float, ...] | None = None,
    outcome_model: str | None = None,
    doses: int = 1,
) -> Estimator:
    """Return the estimator called `name` for so many doses, with what it takes of the rest."""
    choice = ESTIMATORS[name]
    given: dict[str, Any] = {
        "kernel": None if kernel is None else getattr(tt, KERNELS[kernel])(),
        "clip": clip,
        "seed": seed,
        "edges": edges,
    }
    wanted = {k: v for k, v in given.items() if k in choice.takes and v is not None}
    if outcome_model is not None and "outcome_model" in choice.takes:
        wanted["outcome"] = _outcome_model(outcome_model, seed, doses)
    made: Estimator = getattr(tt, choice.cls)(**wanted, **dict(choice.settings))
    return made


def _outcome_model(name: str, seed: int, doses: int) -> OutcomeModel | None:
    if name == SMOOTH:
        return None
    from titrant.outcome import library, ridge_pair  # noqa: PLC0415

    return tt.Stack(ridge_pair() if name == "ridge" else library(doses, seed=seed), seed=seed)


def propensity_model(name: str | None, seed: int) -> PropensityModel | None:
    """Return the propensity model called `name`; None is the default one."""
    if name in (None, SMOOTH):
        return None
    model: Any = getattr(tt, PROPENSITIES[name])()
    made: PropensityModel = model.set_params(seed=seed) if "seed" in model.get_params() else model
    return made


def kebab(name: str) -> str:
    """Return a class name as it is typed: RuleOfThumb is rule-of-thumb."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
