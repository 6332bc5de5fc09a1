"""The drawing of the rooms and of the data's way through them."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK, PALE = "#22303c", "#eef3f7"
COLORS = {"in": "#dfe9f5", "math": "#e2f2ea", "meet": "#fdebd6", "out": "#efe6f5"}

ROOMS = {
    # name: (x, y, kind, what it holds)
    "data": (0.0, 4.0, "in", "the log, validated once;\nsources of batches"),
    "policies": (0.0, 2.4, "in", "τ(x)"),
    "propensity": (2.6, 5.2, "in", "q = f(t | x)"),
    "outcome": (2.6, 4.0, "in", "r̂(t, x)"),
    "kernels": (2.6, 1.6, "math", "K(u), bounds,\nseveral doses"),
    "estimators": (5.2, 3.2, "math", "terms of each row,\nvalue of their means"),
    "moments": (5.2, 1.6, "math", "n, mean, comoment;\nthey add up"),
    "bandwidth": (7.8, 4.4, "math", "the path, then h"),
    "inference": (7.8, 3.2, "math", "intervals, contrasts,\ntrust rules"),
    "optimize": (7.8, 1.6, "math", "gradients, searches"),
    "execute": (5.2, 5.2, "meet", "passes over blocks:\nhere, threads, cluster"),
    "evaluation": (10.4, 4.4, "meet", "evaluate, compare,\ncurves, trust"),
    "learning": (10.4, 1.6, "meet", "PolicyLearner,\nhonest halves"),
    "paper": (13.0, 1.6, "out", "the paper again"),
    "reporting": (13.0, 3.2, "out", "one HTML page"),
    "cli": (13.0, 4.4, "out", "parse, call, print"),
}
WAYS = {
    "data": ("propensity", "outcome", "policies"),
    "propensity": ("estimators",),
    "outcome": ("estimators",),
    "policies": ("estimators",),
    "kernels": ("estimators",),
    "execute": ("estimators",),
    "estimators": ("moments", "bandwidth"),
    "moments": ("inference", "optimize"),
    "bandwidth": ("evaluation",),
    "inference": ("evaluation",),
    "optimize": ("learning",),
    "evaluation": ("learning", "reporting", "cli"),
    "learning": ("paper", "reporting"),
}
"""Who hands over to whom."""
WIDTH, HEIGHT = 2.1, 0.85


def house() -> Figure:
    """Draw the rooms as boxes and the ways between them as arrows."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    ax = figure.add_subplot()
    for name, (x, y, kind, what) in ROOMS.items():
        ax.add_patch(
            FancyBboxPatch(
                (x, y),
                WIDTH,
                HEIGHT,
                boxstyle="round,pad=0.04",
                facecolor=COLORS[kind],
                edgecolor=INK,
                lw=0.8,
            )
        )
        ax.text(x + WIDTH / 2, y + HEIGHT - 0.2, name, ha="center", va="center", weight="bold")
        ax.text(x + WIDTH / 2, y + 0.3, what, ha="center", va="center", fontsize=7)
    for origin, targets in WAYS.items():
        for target in targets:
            ax.add_patch(_arrow(origin, target))
    ax.set(xlim=(-0.2, 15.3), ylim=(1.3, 6.3))
    ax.axis("off")
    return figure


def _arrow(origin: str, target: str) -> FancyArrowPatch:
    """Return the arrow from the side of one box to the side of the other that faces it."""
    (x0, y0, *_), (x1, y1, *_) = ROOMS[origin], ROOMS[target]
    if x0 == x1:
        down = y1 < y0
        start = (x0 + WIDTH / 2, y0 if down else y0 + HEIGHT)
        end = (x1 + WIDTH / 2, y1 + HEIGHT if down else y1)
    else:
        start, end = (x0 + WIDTH, y0 + HEIGHT / 2), (x1, y1 + HEIGHT / 2)
    return FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=9,
        color=INK,
        lw=0.8,
        shrinkA=2,
        shrinkB=2,
        connectionstyle="arc3,rad=0",
    )
