"""Problems with known truth: what a dose costs in every context, and how far a line falls short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray
    Rng = np.random.Generator
    Noise = Callable[[Rng, Array, Array, Array], Array]
    """Outcomes (n,) of contexts, doses and their mean losses."""

DOSES = 401
"""Among which a best dose is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Contexts, logged doses, and the mean loss of a dose."""

    context: Callable[[Rng, int], Array]
    dose: Callable[[Rng, Array], Array]
    loss: Callable[[Array, Array], Array]
    noise: Noise
    n: int = 1000
    fresh: bool = False
    """Whether it was invented after the recipe was settled, and never run before."""

    def draw(self, rng: Rng) -> tuple[Array, Array, Array]:
        """Return contexts, doses and outcomes."""
        x = self.context(rng, self.n)
        t = self.dose(rng, x)
        return x, t, self.noise(rng, x, t, self.loss(x, t))

    def losses(self, x: Array, doses: Array) -> Array:
        """Return the mean loss of each dose (G,) for contexts x (n, p): (n, G)."""
        return np.stack([self.loss(x, np.full(len(x), dose)) for dose in doses], axis=1)


def normal(p: int) -> Callable[[Rng, int], Array]:
    return lambda rng, n: rng.normal(size=(n, p))


def around(center: Callable[[Array], Array], sd: float) -> Callable[..., Array]:
    return lambda rng, x: center(x) + sd * rng.normal(size=len(x))


def gaussian(sd: float) -> Noise:
    return lambda rng, _, __, m: m + sd * rng.normal(size=len(m))


def squared(best: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda x, t: (t - best(x)) ** 2


def _usual(best: Callable[[Array], Array], p: int = 5, sd: float = 1.0, **more: Any) -> Problem:
    """Return a problem with normal contexts, doses that follow the first, and squared loss."""
    return Problem(
        context=normal(p),
        dose=around(lambda x: 0.4 * x[:, 0], 1.0),
        loss=squared(best),
        noise=gaussian(sd),
        **more,
    )


def _line(x: Array) -> Array:
    return x[:, 0] - 0.5 * x[:, 1] + 0.25 * x[:, 2]


def _thresholds(x: Array) -> Array:
    return np.where(x[:, 0] > 0.3, 1.5, np.where(x[:, 1] > 0.0, -1.5, 0.0))


def _asymmetric(x: Array, t: Array) -> Array:
    away = t - (0.8 * x[:, 0] - 0.6 * x[:, 1])
    return np.where(away > 0.0, 2.0 * away, -0.5 * away)


def _price(x: Array, t: Array) -> Array:
    slope = 1.0 + 0.4 * np.abs(x[:, 1])
    return -t / (1.0 + np.exp(slope * t - 2.0 - x[:, 0]))


def _bought(rng: Rng, _: Array, t: Array, m: Array) -> Array:
    return -t * (rng.uniform(size=len(t)) < -m / t)


def _saturating(x: Array, t: Array) -> Array:
    benefit = 4.0 * (1.0 - np.exp(-t * np.exp(0.5 * x[:, 0])))
    return 0.3 * t**2 * (1.0 + 0.5 * (x[:, 1] > 0.0)) - benefit


LEVELS = np.array([-1.0, 0.0, 1.0, 2.0, 0.5])


def _categories(rng: Rng, n: int) -> Array:
    return np.column_stack([np.eye(5)[rng.integers(5, size=n)], rng.uniform(20, 80, n)])


def _by_category(x: Array) -> Array:
    return x[:, :5] @ LEVELS + 0.03 * (x[:, 5] - 50.0) * x[:, 2]


def _people(rng: Rng, n: int) -> Array:
    """Age, bmi, a carrier, a lab value that is skewed, and one that says nothing."""
    columns = rng.uniform(20, 80, n), rng.normal(27, 4, n), rng.uniform(size=n) < 0.4
    return np.column_stack([*columns, rng.lognormal(0.0, 0.7, n), rng.normal(size=n)]).astype(float)


def _bands(x: Array, t: Array) -> Array:
    middle = (x[:, 0] > 35) & (x[:, 0] < 55)
    best = 1.5 * middle + 0.15 * np.maximum(x[:, 1] - 30.0, 0.0)
    return np.minimum(np.abs(t - best), 2.0)


def _hours(rng: Rng, n: int) -> Array:
    return np.column_stack([rng.uniform(0, 24, n), rng.uniform(size=n) < 2 / 7, rng.normal(size=n)])


def _hourly(x: Array) -> Array:
    return 1.2 * np.cos(2 * np.pi * (x[:, 0] - 18.0) / 24.0) + 0.5 * x[:, 1]


def _subgroups(x: Array) -> Array:
    older = x[:, 0] > 50
    return np.where(x[:, 2] > 0, np.where(older, -1.0, 0.5), np.where(older, 1.5, 0.5))


def _heavy(rng: Rng, _: Array, __: Array, m: Array) -> Array:
    return m + 0.6 * rng.standard_t(2.5, size=len(m))


# ── fresh: of other kinds, invented after the recipe was settled ─────────────────────────────────
def _patients(rng: Rng, n: int) -> Array:
    """Weight, age, creatinine and sex."""
    columns = rng.normal(75, 14, n), rng.uniform(25, 90, n), rng.lognormal(0.0, 0.35, n)
    return np.column_stack([*columns, rng.integers(2, size=n)]).astype(float)


def _cleared(x: Array) -> Array:
    """Return the dose in proportion to the clearance of the kidney."""
    return np.asarray(0.012 * (140.0 - x[:, 1]) * x[:, 0] / (72.0 * x[:, 2]))


def _relative(x: Array, t: Array) -> Array:
    return 2.0 * np.minimum(np.abs(np.log(np.maximum(t, 1e-3) / _cleared(x))), 1.5)


def _sites(rng: Rng, n: int) -> Array:
    """Three sites as columns of their own, and three measurements."""
    return np.column_stack([np.eye(3)[rng.integers(3, size=n)], rng.normal(size=(n, 3))])


def _tangled(rng: Rng, n: int) -> Array:
    """Fifteen contexts, correlated .3 in pairs."""
    return np.sqrt(0.3) * rng.normal(size=(n, 1)) + np.sqrt(0.7) * rng.normal(size=(n, 15))


def _market(x: Array) -> Array:
    """Return the bid that wins every second auction, of hour and weekend."""
    return 2.0 + 0.8 * np.sin(2 * np.pi * (x[:, 0] - 8.0) / 24.0) - 0.4 * x[:, 1]


def _worth(x: Array) -> Array:
    return 3.5 + 0.5 * x[:, 2]


def _bid(x: Array, t: Array) -> Array:
    return -(_worth(x) - t) / (1.0 + np.exp(-4.0 * (t - _market(x))))


def _won(rng: Rng, x: Array, t: Array, _: Array) -> Array:
    won = rng.uniform(size=len(t)) < 1.0 / (1.0 + np.exp(-4.0 * (t - _market(x))))
    return -(_worth(x) - t) * won


def _uneven(rng: Rng, x: Array, _: Array, m: Array) -> Array:
    return m + (0.4 + 0.5 * np.abs(x[:, 0])) * rng.normal(size=len(m))


FRESH: dict[str, Problem] = {
    "clearance, relative loss": Problem(
        context=_patients,
        dose=lambda rng, x: 1.4 * (x[:, 0] / 75) ** 0.5 * rng.lognormal(-0.1, 0.5, len(x)),
        loss=_relative,
        noise=gaussian(0.5),
        fresh=True,
    ),
    "slopes of three sites": Problem(
        context=_sites,
        dose=around(lambda x: 0.4 * x[:, 3], 1.0),
        loss=squared(lambda x: 1.2 * x[:, 3] * (x[:, 0] - x[:, 2]) + 0.4 * x[:, 4]),
        noise=gaussian(1.0),
        fresh=True,
    ),
    "step of a sum": _usual(lambda x: 1.3 * np.tanh(4.0 * (x[:, 0] + x[:, 1])), fresh=True),
    "bids": Problem(
        context=_hours,
        dose=lambda rng, x: np.clip(2.2 + 0.3 * x[:, 2] + 0.7 * rng.normal(size=len(x)), 0.1, None),
        loss=_bid,
        noise=_won,
        n=2000,
        fresh=True,
    ),
    "U in age, absolute loss, n = 500": Problem(
        context=_people,
        dose=around(lambda x: 1.0 + 0.01 * (x[:, 0] - 50.0), 0.8),
        loss=lambda x, t: 1.5 * np.abs(t - 2.4 * ((x[:, 0] - 50.0) / 30.0) ** 2 - 0.4 * x[:, 2]),
        noise=gaussian(0.7),
        n=500,
        fresh=True,
    ),
    "wave among 15 contexts": Problem(
        context=_tangled,
        dose=around(lambda x: 0.3 * x[:, 0], 1.0),
        loss=squared(lambda x: 1.2 * np.cos(2.5 * x[:, 0]) + 0.5 * x[:, 1]),
        noise=gaussian(1.0),
        fresh=True,
    ),
    "line, correlated contexts, uneven noise": Problem(
        context=lambda rng, n: _tangled(rng, n)[:, :6],
        dose=around(lambda x: 0.5 * x[:, 0] + 0.3 * x[:, 1], 0.9),
        loss=squared(lambda x: 0.7 * x[:, 0] - 0.4 * x[:, 1] + 0.2),
        noise=_uneven,
        fresh=True,
    ),
    "one dose for all, confounded": Problem(
        context=normal(4),
        dose=around(lambda x: np.sin(2.0 * x[:, 0]), 0.9),
        loss=lambda x, t: (t - 0.3) ** 2 + 2.0 * np.sin(2.0 * x[:, 0]),
        noise=gaussian(1.0),
        fresh=True,
    ),
}

PROBLEMS: dict[str, Problem] = {
    "linear, p = 5": _usual(_line),
    "linear, p = 40": _usual(_line, 40),
    "asymmetric loss": Problem(
        context=normal(5),
        dose=around(lambda x: 0.4 * x[:, 0], 1.0),
        loss=_asymmetric,
        noise=gaussian(0.5),
    ),
    "price and purchase": Problem(
        context=normal(4),
        dose=lambda rng, x: np.clip(2.0 + 0.3 * x[:, 0] + 0.7 * rng.normal(size=len(x)), 0.1, None),
        loss=_price,
        noise=_bought,
    ),
    "thresholds": _usual(_thresholds),
    "sine": _usual(lambda x: 1.5 * np.sin(2.0 * x[:, 0])),
    "product": _usual(lambda x: x[:, 0] * x[:, 1]),
    "saturating benefit": Problem(
        context=normal(4),
        dose=lambda rng, x: np.clip(1.2 + 0.2 * x[:, 0] + 0.6 * rng.normal(size=len(x)), 0.0, None),
        loss=_saturating,
        noise=gaussian(0.7),
    ),
    "categories": Problem(
        context=_categories,
        dose=around(lambda x: 0.5 + 0.01 * (x[:, 5] - 50.0), 1.0),
        loss=squared(_by_category),
        noise=gaussian(1.0),
    ),
    "noisy, n = 200": _usual(_line, sd=3.0, n=200),
    # Seen while models were added to the library.
    "age band, capped loss": Problem(
        context=_people,
        dose=around(lambda x: 0.02 * (x[:, 0] - 50.0) + 0.5, 0.9),
        loss=_bands,
        noise=gaussian(0.4),
    ),
    "hinge, heavy tails": Problem(
        context=_people,
        dose=around(lambda x: 0.3 * x[:, 3], 0.8),
        loss=squared(lambda x: 1.2 * np.maximum(x[:, 3] - 1.0, 0.0) - 0.05 * (x[:, 1] - 27.0)),
        noise=_heavy,
    ),
    "ratio": _usual(lambda x: 2.0 * x[:, 0] / (1.0 + np.abs(x[:, 1]))),
    "hour of the day": Problem(
        context=_hours,
        dose=around(lambda x: 0.3 * x[:, 2], 0.9),
        loss=squared(_hourly),
        noise=gaussian(1.0),
    ),
    "subgroups of subgroups": Problem(
        context=_people,
        dose=around(lambda x: 0.5 * x[:, 2], 1.0),
        loss=squared(_subgroups),
        noise=gaussian(1.0),
    ),
    "one dose for all": Problem(
        context=normal(10),
        dose=around(lambda x: 0.3 * x[:, 0], 1.0),
        loss=squared(lambda x: np.full(len(x), 0.5)),
        noise=gaussian(2.0),
    ),
}
PROBLEMS |= FRESH


# ── how far a line falls short ───────────────────────────────────────────────────────────────────
STEP = 1e-4
"""Of the differences that are a loss's slope."""


def line_loss(problem: Problem, x: Array, ends: tuple[float, float]) -> float:
    """Return the least mean loss over contexts x (n, p) of a linear rule kept between two doses."""
    from scipy.optimize import minimize  # noqa: PLC0415

    size = x.std(axis=0)
    z = np.column_stack([np.ones(len(x)), (x - x.mean(axis=0))[:, size > 0] / size[size > 0]])
    grid = np.linspace(*ends, DOSES)
    losses = problem.losses(x, grid)
    best, constant = grid[losses.argmin(axis=1)], np.zeros(z.shape[1])
    constant[0] = grid[losses.mean(axis=0).argmin()]

    def loss(beta: Array) -> tuple[float, Array]:
        dose = z @ beta
        at = problem.loss(x, np.clip(dose, *ends)).mean()
        sides = [problem.loss(x, np.clip(dose + step, *ends)) for step in (-STEP, STEP)]
        return float(at), z.T @ (sides[1] - sides[0]) / (2 * STEP * len(x))

    starts = constant, np.linalg.lstsq(z, best, rcond=None)[0]
    return min(float(minimize(loss, s, jac=True, method="L-BFGS-B").fun) for s in starts)
