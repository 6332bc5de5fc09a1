"""Designs whose truth is known, each drawn as a log that says its structure and one that does not.

A design draws a log; ``with_remedy`` and ``without`` say of that same log what a user would, or
would not. Policies are those whose values are asked for, with their true values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import titrant as tt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from titrant.evaluation.evaluation import AnyPolicy

    Array = np.ndarray
    Versions = tuple[tt.LoggedData, tt.LoggedData]

TRUTH_ROWS = 1_000_000
"""Contexts over which true values are averaged: good to .001 sd of the outcome."""


@dataclass(frozen=True, slots=True)
class Design:
    """One way in which logs come about."""

    about: str
    draw: Callable[[int, np.random.Generator], Versions]
    """A log of n rows with the remedy, and the same log without."""
    outcome: Callable[[Array, Array], Array]
    """E[Y | T = t, x] (n,), for true values."""
    policies: Mapping[str, AnyPolicy]
    contexts: int = 2

    def versions(self, n: int, seed: Sequence[int]) -> Versions:
        """Return the log of n rows with the remedy, and without."""
        return self.draw(n, np.random.default_rng(seed))

    def truth(self, policy: str) -> float:
        """Return the true value of a policy: contexts are independent standard normals."""
        x = np.random.default_rng(7).normal(size=(TRUTH_ROWS, self.contexts))
        x = np.concatenate([x, -x])
        chosen = self.policies[policy]
        doses = chosen(x) if callable(chosen) else np.asarray(chosen)
        return float(self.outcome(np.ravel(doses), x).mean())

    def on_masses(self, policy: str, n: int = 1000) -> float:
        """Return the share of rows whose dose by a policy is one that several logged doses are."""
        log, _ = self.versions(n, [7])
        dose, count = np.unique(log.treatment, return_counts=True)
        chosen = self.policies[policy]
        doses = chosen(log.context) if callable(chosen) else np.asarray(chosen)
        return float(np.isin(doses, dose[count > 1]).mean())


# Doses with point masses. The remedy, found by itself, is to treat them as such; without it, with
# ``atoms=()``, all doses have one density.


def point_masses(
    dose: Callable[[Array, np.random.Generator], Array],
    outcome: Callable[[Array, Array], Array],
    noise: float,
) -> Callable[[int, np.random.Generator], Versions]:
    """Return how a log is drawn of doses given contexts, and outcomes given both."""

    def draw(n: int, rng: np.random.Generator) -> Versions:
        x = rng.normal(size=(n, 2))
        t = dose(x, rng)
        y = outcome(t, x) + noise * rng.normal(size=n)
        log = tt.LoggedData(x, t, y)
        return log, log.with_atoms(())

    return draw


def _common(x: Array) -> Array:
    """Return what dose and outcome share: more than a line."""
    return np.asarray(x[:, 0] + 0.4 * (x[:, 0] ** 2 - 1.0) + 0.5 * x[:, 1])


def _some_none(x: Array, rng: np.random.Generator) -> Array:
    none = rng.uniform(size=len(x)) < 1.0 / (1.0 + np.exp(0.7 - 0.7 * _common(x)))
    amount = np.exp(0.25 * x[:, 0] + 0.45 * rng.normal(size=len(x)))
    return np.where(none, 0.0, amount)


def _some_none_outcome(t: Array, x: Array) -> Array:
    # Those without any dose are another kind of case: the outcome jumps at 0.
    return np.where(t == 0.0, 1.5 + 0.3 * x[:, 1], (t - 1.2) ** 2) + 0.7 * _common(x)


def _capped(x: Array, rng: np.random.Generator) -> Array:
    return np.minimum(2.0 + 0.4 * _common(x) + 0.8 * rng.normal(size=len(x)), 2.6)


def _capped_outcome(t: Array, x: Array) -> Array:
    return np.asarray((t - 1.8 - 0.2 * x[:, 1]) ** 2 + 0.7 * _common(x))


PRICES = np.array([4.99, 5.99, 6.99, 7.99, 8.99, 9.99, 11.99, 13.99, 15.99])


def _list_price(x: Array, rng: np.random.Generator) -> Array:
    wanted = 9.0 + 1.2 * _common(x) + 2.5 * rng.normal(size=len(x))
    return np.asarray(PRICES[np.abs(wanted[:, None] - PRICES).argmin(axis=1)])


def _list_price_outcome(t: Array, x: Array) -> Array:
    return np.asarray(((t - 9.5 - 0.5 * x[:, 1]) / 3.0) ** 2 + 0.7 * _common(x))


def _five_mg(x: Array, rng: np.random.Generator) -> Array:
    wanted = 35.0 + 5.0 * _common(x) + 9.0 * rng.normal(size=len(x))
    return np.maximum(5.0 * np.round(wanted / 5.0), 5.0)


def _five_mg_outcome(t: Array, x: Array) -> Array:
    return np.asarray(((t - 38.0 - 3.0 * x[:, 1]) / 10.0) ** 2 + 0.7 * _common(x))


def _either(at: float, elsewhere: float) -> AnyPolicy:
    def policy(x: Array) -> Array:
        return np.where(x[:, 1] > 0.0, at, elsewhere)

    return policy


def _constants(*doses: float) -> dict[str, AnyPolicy]:
    return {f"{dose:g}": tt.Constant(dose) for dose in doses}


POINT_MASSES: dict[str, Design] = {
    "some without a dose": Design(
        "about a third have none (the outcome jumps there), the others a skewed amount",
        point_masses(_some_none, _some_none_outcome, 0.5),
        _some_none_outcome,
        {**_constants(0.0, 0.6, 1.2), "0 or 1.2": _either(0.0, 1.2)},
    ),
    "capped doses": Design(
        "a quarter at a cap, the outcome smooth there",
        point_masses(_capped, _capped_outcome, 0.5),
        _capped_outcome,
        {**_constants(2.6, 2.0, 1.2), "2.6 or 2": _either(2.6, 2.0)},
    ),
    "nine list prices": Design(
        "prices between 4.99 and 15.99 and none else",
        point_masses(_list_price, _list_price_outcome, 0.5),
        _list_price_outcome,
        {**_constants(8.99, 11.99), "7.99 or 9.99": _either(7.99, 9.99), "9.5": tt.Constant(9.5)},
    ),
    "multiples of 5 mg": Design(
        "doses rounded to 5 mg, .45 sd apart",
        point_masses(_five_mg, _five_mg_outcome, 0.5),
        _five_mg_outcome,
        {**_constants(35.0, 45.0), "30 or 40": _either(30.0, 40.0), "37": tt.Constant(37.0)},
    ),
}


# Rows that belong together. The remedy is to say which; without it, rows count as independent.


def panel(dose_too: bool) -> Callable[[int, np.random.Generator], Versions]:  # noqa: FBT001
    """Return how rows of patients are drawn, ten each, whose outcomes have something in common.

    With ``dose_too`` a patient's doses do as well, by a habit that the outcome does not share.
    """

    def draw(n: int, rng: np.random.Generator) -> Versions:
        who = np.repeat(np.arange(n // 10), 10)
        own, habit = rng.normal(size=(2, n // 10))
        x = rng.normal(size=(n, 2))
        t = 0.7 * _common(x) + (0.8 * habit[who] if dose_too else 0.0) + rng.normal(size=n)
        y = _panel_outcome(t, x) + 0.8 * own[who] + 0.5 * rng.normal(size=n)
        return tt.LoggedData(x, t, y, groups=who), tt.LoggedData(x, t, y)

    return draw


def _panel_outcome(t: Array, x: Array) -> Array:
    return np.asarray(0.5 * (t - 0.5) ** 2 + 0.7 * _common(x))


def _copied(n: int, rng: np.random.Generator) -> Versions:
    who = np.repeat(np.arange(n // 4), 4)
    x = rng.normal(size=(n // 4, 2))
    t = 0.7 * _common(x) + rng.normal(size=n // 4)
    y = _panel_outcome(t, x) + rng.normal(size=n // 4)
    x, t, y = x[who], t[who], y[who]
    return tt.LoggedData(x, t, y, groups=who), tt.LoggedData(x, t, y)


def _own(n: int, rng: np.random.Generator) -> Versions:
    x = rng.normal(size=(n, 2))
    t = 0.7 * _common(x) + rng.normal(size=n)
    y = _panel_outcome(t, x) + rng.normal(size=n)
    return tt.LoggedData(x, t, y, groups=np.arange(n)), tt.LoggedData(x, t, y)


# Rows that were drawn with unequal chances. The remedy is their inverse as weights.


def _sampled(n: int, rng: np.random.Generator) -> Versions:
    x = rng.normal(size=(8 * n, 2))
    chance = 1.0 / (1.0 + np.exp(1.5 - 1.2 * x[:, 0]))
    kept = np.flatnonzero(rng.uniform(size=len(x)) < chance)[:n]
    x, chance = x[kept], chance[kept]
    t = 0.7 * _common(x) + rng.normal(size=len(x))
    y = _panel_outcome(t, x) + 0.7 * rng.normal(size=len(x))
    return tt.LoggedData(x, t, y, weights=1.0 / chance), tt.LoggedData(x, t, y)


# Outcomes that are missing by context and dose. Without the remedy such rows are dropped.


def _unseen(n: int, rng: np.random.Generator) -> Versions:
    x = rng.normal(size=(n, 2))
    t = 0.7 * _common(x) + rng.normal(size=n)
    y = _panel_outcome(t, x) + 0.7 * rng.normal(size=n)
    seen = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-0.9 + 1.0 * x[:, 0] - 0.4 * t))
    whole = tt.LoggedData(x, t, np.where(seen, y, np.nan), missing_outcome="weight")
    return whole, tt.LoggedData(x[seen], t[seen], y[seen])


# Texts of many levels that doses and outcomes follow. Without the remedy the column is left out.


def texts(levels: int) -> Callable[[int, np.random.Generator], Versions]:
    """Return how rows are drawn that have a text: its levels' effects are those of every log."""
    effect = np.random.default_rng(levels).normal(size=levels)
    effect -= effect.mean()

    def draw(n: int, rng: np.random.Generator) -> Versions:
        x, level = rng.normal(size=(n, 2)), rng.integers(0, levels, n)
        t = 0.7 * _common(x) + 0.7 * effect[level] + rng.normal(size=n)
        y = _panel_outcome(t, x) + 0.7 * effect[level] + 0.7 * rng.normal(size=n)
        table = {"x0": x[:, 0], "x1": x[:, 1], "place": [f"L{k:03d}" for k in level]}
        roles = {"treatment": "t", "outcome": "y"}
        whole, bare = (
            tt.LoggedData.from_frame(table | {"t": t, "y": y}, context=names, **roles)
            for names in (["x0", "x1", "place"], ["x0", "x1"])
        )
        return whole, bare

    return draw


_RULE: dict[str, AnyPolicy] = {
    **_constants(0.0, 1.0),
    "rule": tt.Clipped(tt.Linear([0.5, 0.0], 0.5), 0.0, 1.0),
}
_RULE_OF_TABLE: dict[str, AnyPolicy] = {
    **_constants(0.0, 1.0),
    "rule": tt.Clipped(tt.Linear([0.5, 0.0], 0.5, features=["x0", "x1"]), 0.0, 1.0),
}
PANELS: dict[str, Design] = {
    "ten rows a patient": Design(
        "patients' outcomes have something in common",
        panel(dose_too=False),
        _panel_outcome,
        _RULE,
    ),
    "ten rows a patient, doses too": Design(
        "so have their doses, by a habit of its own",
        panel(dose_too=True),
        _panel_outcome,
        _RULE,
    ),
    "four copies": Design("250 rows, each four times", _copied, _panel_outcome, _RULE),
    "rows of their own": Design(
        "1,000 such rows, each drawn by itself; with is `groups=` of one row each",
        _own,
        _panel_outcome,
        _RULE,
    ),
}
SAMPLED: dict[str, Design] = {
    "drawn by context": Design(
        "rows were drawn with a chance of .1 to .8 that rises with a context",
        _sampled,
        _panel_outcome,
        _RULE,
    ),
}
UNSEEN: dict[str, Design] = {
    "outcomes missing": Design(
        "three in ten outcomes are missing, by context and dose",
        _unseen,
        _panel_outcome,
        _RULE,
    ),
}
TEXTS: dict[str, Design] = {
    f"a text of {levels} levels": Design(
        f"about {1000 / levels:.2g} rows a level",
        texts(levels),
        _panel_outcome,
        _RULE_OF_TABLE,
    )
    for levels in (49, 400)
}

GROUPS: dict[str, tuple[str, ...]] = {
    "Rows that belong together": tuple(PANELS),
    "Rows drawn with unequal chances": tuple(SAMPLED),
    "Outcomes that are missing": tuple(UNSEEN),
    "Texts of many levels": tuple(TEXTS),
    "Doses with point masses": tuple(POINT_MASSES),
}
"""The heading under which designs are shown."""
DESIGNS: dict[str, Design] = {**PANELS, **SAMPLED, **UNSEEN, **TEXTS, **POINT_MASSES}
