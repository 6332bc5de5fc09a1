"""The figures of the explanations, each drawn by its function from titrant's own numbers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import titrant as tt
from pages.house import house
from titrant.data import Quadratic, Synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

INK, GRAY, BLUE, ORANGE, GREEN = "#22303c", "#9aa5b1", "#2878b5", "#d9822b", "#2a9d6f"
STYLE = {
    "svg.hashsalt": "titrant",  # the same drawing gives the same file
    "svg.fonttype": "path",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
}
NEAR = 0.12  # of a dose of 0.6
LOGS = 4  # for each number of contexts


def drawn() -> dict[str, bytes]:
    """Return every figure as SVG by file name."""
    with mpl.rc_context(STYLE):
        return {f"{name}.svg": _svg(draw()) for name, draw in FIGURES.items()}


def _svg(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    return out.getvalue()


def _axes(columns: int = 1, width: float = 7.0, height: float = 2.9) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, list(axes)


def idea_log() -> Figure:
    """Draw a log, a policy, and the rows near it, in three steps."""
    log = Synthetic().draw(260, 3)
    x, t, y = log.context[:, 0], log.treatment, log.outcome
    h, tau = 0.22, 0.55 * x
    u = (tau - t) / h
    w = tt.Epanechnikov()(u) / log.propensity
    figure, (left, middle, right) = _axes(3, 9.2, 3.1)
    line = np.linspace(0, 1, 2)
    for ax in (left, middle, right):
        ax.plot(line, 0.55 * line, color=ORANGE, lw=2)
        ax.set(xlabel="context x", xlim=(-0.03, 1.03), ylim=(-1.3, 2.2))
    left.scatter(x, t, c=y, s=9, cmap="viridis_r", vmax=3)
    left.set(ylabel="dose t", title="1  A log and a rule")
    middle.scatter(x, t, s=6, color=GRAY, alpha=0.5)
    near = np.abs(u) <= 1
    middle.fill_between(line, 0.55 * line - h, 0.55 * line + h, color=ORANGE, alpha=0.15)
    middle.scatter(x[near], t[near], s=10, color=BLUE)
    middle.set(title="2  Rows within h of the rule")
    right.scatter(x, t, s=4, color=GRAY, alpha=0.4)
    right.scatter(x[near], t[near], s=12 * w[near], color=BLUE, alpha=0.75)
    right.set(title="3  Nearness ÷ propensity")
    return figure


def idea_kernels() -> Figure:
    """Draw the kernels."""
    figure, (ax,) = _axes(1, 6.2, 2.7)
    u = np.linspace(-1.6, 1.6, 641)
    for kernel in (tt.Epanechnikov(), tt.Triangular(), tt.Uniform(), tt.Biweight(), tt.Gaussian()):
        ax.plot(u, kernel(u), lw=2, label=type(kernel).__name__)
    ax.set(xlabel="u = (τ(x) − t)/h", ylabel="K(u)", ylim=(0, 1.05))
    ax.legend(frameon=False, ncols=2, fontsize=8)
    return figure


def idea_propensity() -> Figure:
    """Draw why rare doses count more: what was logged, and what the weights make of it."""
    rng = np.random.default_rng(1)
    n = 60_000
    x = rng.uniform(0, 1, n)
    t = 0.2 + 0.8 * x + rng.normal(0, 0.3, n)
    q = np.exp(-((t - 0.2 - 0.8 * x) ** 2) / 0.18) / np.sqrt(0.18 * np.pi)
    near = np.abs(t - 0.6) < NEAR
    figure, (left, right) = _axes(2, 7.6, 2.8)
    bins = np.linspace(0, 1, 21)
    left.hist(x[near], bins=bins, color=GRAY)
    left.set(title="who got a dose near 0.6", xlabel="context x", ylabel="rows")
    right.hist(x[near], bins=bins, weights=1 / q[near], color=BLUE)
    right.set(title="the same rows, weighted by 1/f(t | x)", xlabel="context x", ylabel="weight")
    return figure


def idea_bandwidth() -> Figure:
    """Draw the bandwidth path of one log with the truth beside it."""
    design = Quadratic()
    log = design.draw(1500, 5)
    path = tt.bandwidth_path(log, _offset(design), estimator=tt.SelfNormalized())
    chosen = tt.evaluate(log, _offset(design), estimator=tt.SelfNormalized())
    h = path.factors * float(log.treatment.std())
    keep = path.se < 1
    figure, (ax,) = _axes(1, 6.6, 3.0)
    ax.fill_between(
        h[keep],
        (path.values - 2 * path.se)[keep],
        (path.values + 2 * path.se)[keep],
        color=BLUE,
        alpha=0.18,
        lw=0,
    )
    ax.plot(h[keep], path.values[keep], color=BLUE, lw=2, label="estimate ± 2 SE")
    ax.axhline(design.value_of_offset(0.3), color=INK, ls="--", lw=1, label="truth")
    ax.axvline(float(chosen.bandwidth.h), color=ORANGE, lw=1.5, label="chosen h")
    ax.set(xscale="log", xlabel="bandwidth h", ylabel="value")
    ax.legend(frameon=False, fontsize=8)
    return figure


def _offset(design: Quadratic) -> Callable[[np.ndarray], np.ndarray]:
    return lambda X: design.best(X) + 0.3


def boundary() -> Figure:
    """Draw the kernel of a dose at a bound, cut off and corrected."""
    from titrant.kernels.boundary import local_factor  # noqa: PLC0415

    kernel, v = tt.Epanechnikov(), np.linspace(0, 1, 201)
    low, high = np.full_like(v, 0.0), np.full_like(v, 9.0)
    figure, (ax,) = _axes(1, 6.2, 2.7)
    names = {
        "NONE": "none: half of the weight is lost",
        "MASS": "mass: leans inward",
        "LINEAR": "linear (default): balanced by negative weights",
    }
    for color, (name, label) in zip((GRAY, ORANGE, BLUE), names.items(), strict=True):
        ax.plot(
            v,
            kernel(v) * local_factor(kernel, tt.Boundary[name], v, low, high),
            color=color,
            lw=2,
            label=label,
        )
    ax.axhline(0, color=INK, lw=0.6)
    ax.set(xlabel="(t − τ)/h, with τ on the lower bound", ylabel="weight")
    ax.legend(frameon=False, fontsize=8)
    return figure


def intervals() -> Figure:
    """Draw intervals of many logs: without and with correction of the smoothing bias."""
    design = Quadratic()
    truth = design.value_of_offset(0.0)
    figure, axes = _axes(2, 7.6, 3.0)
    for ax, method, title in (
        (axes[0], tt.Normal(), "normal: ignores the bias"),
        (axes[1], tt.RobustBiasCorrected(), "robust bias-corrected"),
    ):
        missed = 0
        for seed in range(40):
            estimate = tt.evaluate(
                design.draw(600, seed),
                design.best,
                estimator=tt.SelfNormalized(),
                bandwidth=0.6,
                interval=method,
            )
            low, high = estimate.interval()
            out = not low <= truth <= high
            missed += out
            ax.plot([seed, seed], [low, high], color=ORANGE if out else BLUE, lw=2)
        ax.axhline(truth, color=INK, ls="--", lw=1)
        ax.set(title=f"{title}: {missed} of 40 miss", xlabel="log", ylim=(1.2, 1.9))
    axes[0].set_ylabel("value")
    return figure


def overfitting() -> Figure:
    """Draw the value that a learner sees beside the true one, on outcomes that are pure noise."""
    from pages.noise import learned_from_noise  # noqa: PLC0415

    sizes = (1, 2, 4, 8, 12, 16)
    seen = np.array([[learned_from_noise(p, seed) for seed in range(LOGS)] for p in sizes])
    figure, (ax,) = _axes(1, 6.2, 2.8)
    ax.axhline(0, color=INK, ls="--", lw=1, label="true value of every policy")
    ax.plot(sizes, seen, ".", color=GRAY, ms=4)
    ax.plot(
        sizes,
        seen.mean(axis=1),
        "o-",
        color=ORANGE,
        lw=2,
        label="value on the rows it learned from",
    )
    ax.set(xlabel="contexts that the rule may use", ylabel="loss, in sd of the noise")
    ax.legend(frameon=False, fontsize=8, loc="lower left")
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "idea-log": idea_log,
    "idea-kernels": idea_kernels,
    "idea-propensity": idea_propensity,
    "idea-bandwidth": idea_bandwidth,
    "boundary": boundary,
    "intervals": intervals,
    "overfitting": overfitting,
    "house": house,
}
