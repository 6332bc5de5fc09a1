"""Features that jump at point masses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from titrant.outcome import Jumps, Quadratic, RidgeModel, SmoothContext, Spline, Varying

if TYPE_CHECKING:
    from titrant.outcome.ridge import Basis

SAME = {"rtol": 1e-9, "atol": 1e-9}
"""Two ways to the same sum of about fifty features."""


def rows(n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    t = np.where(rng.uniform(size=n) < 0.3, 0.0, np.exp(0.3 * rng.normal(size=n)))
    y = np.where(t == 0.0, 3.0 + x[:, 1], (t - 1.0) ** 2) + x[:, 0] + 0.1 * rng.normal(size=n)
    return x, t[:, None], y


@pytest.mark.parametrize("basis", [Quadratic(), Spline(), SmoothContext(), Varying()])
def test_features_are_the_sum_of_their_parts(basis: Basis) -> None:
    x, t, _ = rows()
    features = Jumps(basis, (0.0, 5.0)).on(x, t)
    f = features(x, t)
    coef = np.random.default_rng(1).normal(size=f.shape[1])
    level, heights = features.of_context(x, coef)
    np.testing.assert_allclose(
        level + np.einsum("ij,ij->i", heights, features.of_dose(t)), f @ coef, **SAME
    )


@pytest.mark.parametrize("basis", [Quadratic(), Spline(), SmoothContext(), Varying()])
def test_the_outcome_may_jump(basis: Basis) -> None:
    x, t, y = rows()
    model = RidgeModel(Jumps(basis, (0.0,))).fit(x, t, y)
    at_zero, near = model.predict(x, np.zeros(600)), model.predict(x, np.full(600, 1.0))
    # Noise of .1 over 180 rows at 0 with a slope of their own: .02, and the ridge's shrinkage.
    np.testing.assert_allclose(np.mean(at_zero - x[:, 0] - x[:, 1]), 3.0, atol=0.1)
    np.testing.assert_allclose(np.mean(near - x[:, 0]), 0.0, atol=0.1)


def test_knots_lie_among_the_other_doses() -> None:
    x, t, _ = rows()
    features = Jumps(Spline(), (0.0,)).on(x, t)
    inner = features.smooth
    knots = inner.dose.back(inner.knots[0][:, None])[:, 0]
    assert len(knots) == 5
    assert knots.min() > 0.0


def test_all_rows_at_point_masses() -> None:
    x, t, y = rows()
    levels = np.where(t == 0.0, 0.0, 1.0)
    model = RidgeModel(Jumps(Spline(), (0.0, 1.0))).fit(x, levels, y)
    assert np.isfinite(model.predict(x, levels)).all()
