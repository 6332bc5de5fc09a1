"""Features that jump at point masses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from titrant.outcome import Jumps, RidgeModel, SecondOrder, SmoothContext, Spline, Varying

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


@pytest.mark.parametrize("basis", [SecondOrder(), Spline(), SmoothContext(), Varying()])
def test_features_are_the_sum_of_their_parts(basis: Basis) -> None:
    x, t, _ = rows()
    features = Jumps(basis, (0.0, 5.0)).on(x, t)
    f = features(x, t)
    coef = np.random.default_rng(1).normal(size=f.shape[1])
    level, heights = features.of_context(x, coef)
    np.testing.assert_allclose(
        level + np.einsum("ij,ij->i", heights, features.of_dose(t)), f @ coef, **SAME
    )


@pytest.mark.parametrize("basis", [SecondOrder(), Spline(), SmoothContext(), Varying()])
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


def wide(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return 110 contexts and 2 predictions, which two contexts move, and doses at ten values."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, 110))
    told = np.column_stack([x[:, 7] + x[:, 31], x[:, 31]]) + 0.1 * rng.normal(size=(n, 2))
    return np.hstack([x, told]), np.arange(n) % 11 + 0.01 * rng.normal(size=n) * (
        np.arange(n) % 11 > 9
    )


MANY = tuple(float(k) for k in range(10))


def test_jumps_have_products_with_the_contexts_that_tell_most() -> None:
    # 112 columns at ten point masses would be 1,120 products; 200 are those of 20 columns.
    x, t = wide()
    features = Jumps(SmoothContext(extra=2), MANY).on(x, t[:, None])
    assert set(features.beside[:2]) == {110, 111}
    assert set(features.beside[2:4]) == {7, 31}
    assert len(set(features.beside)) == 20
    alone = SmoothContext(extra=2).on(x, t[:, None])(x, t[:, None]).shape[1]
    f = features(x, t[:, None])
    assert f.shape[1] == alone + 10 + 200
    coef = np.random.default_rng(1).normal(size=f.shape[1])
    level, heights = features.of_context(x, coef)
    np.testing.assert_allclose(
        level + np.einsum("ij,ij->i", heights, features.of_dose(t[:, None])), f @ coef, **SAME
    )
    # The same columns, wherever they stand.
    order = np.append(np.random.default_rng(2).permutation(110), [110, 111])
    moved = Jumps(SmoothContext(extra=2), MANY).on(x[:, order], t[:, None])
    assert set(order[moved.beside]) == set(features.beside)
    # Few products are all made, and where nothing says which contexts tell, none of too many.
    assert len(Jumps(SmoothContext(extra=2), MANY[:8]).on(x, t[:, None]).beside) == 112
    for basis in (SecondOrder(), Spline(), SmoothContext()):
        plain = Jumps(basis, MANY).on(x, t[:, None])
        assert not len(plain.beside)
        f = plain(x, t[:, None])
        assert f.shape[1] == basis.on(x, t[:, None])(x, t[:, None]).shape[1] + 10
        level, heights = plain.of_context(x, coef[: f.shape[1]])
        sums = level + np.einsum("ij,ij->i", heights, plain.of_dose(t[:, None]))
        np.testing.assert_allclose(sums, f @ coef[: f.shape[1]], **SAME)
