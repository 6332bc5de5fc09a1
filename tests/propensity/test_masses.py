"""Laws with point masses: they add up to 1, ranks are even, probabilities are learned."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.data.masses import PointMasses
from titrant.propensity import LinearGaussian, MixedLaws, Truncated
from titrant.propensity.masses import (
    CrossMasses,
    KnownMixedLaws,
    interval_probabilities,
    softmax_path,
)

EXACT = {"rtol": 1e-12}
"""Sums of a few numbers."""
QUADRATURE = {"rtol": 1e-9}
"""200 nodes over doses up to 12; nine sds above the mean there is nothing left."""


def fitted() -> tuple[LinearGaussian, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    return LinearGaussian().fit(x, 1.0 + x[:, 0] + rng.normal(size=400)), x[:3]


def mixed(*, levels: bool = False) -> MixedLaws:
    model, x = fitted()
    masses = PointMasses(
        np.array([0.0, 2.0]), np.array([0.3, 0.2]), levels=levels, low=0.0, high=np.inf
    )
    p = np.array([[0.3, 0.2], [0.1, 0.4], [0.5, 0.05]])
    rest = None if levels else Truncated.of(model, x, 0.0, np.inf)
    return MixedLaws(masses, p, rest, 1.7)


def test_masses_and_density_add_up_to_one() -> None:
    law = mixed()
    nodes, weights = np.polynomial.legendre.leggauss(200)  # none of them is a point mass
    each = np.stack([law.density(np.full(3, t)) for t in 6.0 * (nodes + 1.0)])
    at = np.stack([1.7 * law.density(np.full(3, a)) for a in law.masses.values])
    total = 6.0 * weights @ each + at.sum(axis=0)
    np.testing.assert_allclose(total, 1.0, **QUADRATURE)
    np.testing.assert_allclose(at.T, law.probabilities, **EXACT)


def test_the_distribution_function_steps_by_the_masses() -> None:
    law = mixed()
    for k, a in enumerate(law.masses.values):
        step = law.cdf(np.full(3, a)) - law.cdf(np.full(3, a - 1e-12))
        np.testing.assert_allclose(step, law.probabilities[:, k], rtol=1e-6)
    low, high = np.full(3, -1.0), np.full(3, 0.5)
    np.testing.assert_allclose(law.between(low, high), law.cdf(high), **EXACT)
    np.testing.assert_array_equal(law.cdf(np.full(3, np.inf)), 1.0)


def test_ranks_of_doses_from_the_law_are_even() -> None:
    n = 4000
    rng = np.random.default_rng(1)
    masses = PointMasses(
        np.array([0.0, 1.0]), np.array([0.3, 0.7]), levels=True, low=-np.inf, high=np.inf
    )
    p = rng.uniform(0.1, 0.9, n)
    law = MixedLaws(masses, np.column_stack([p, 1.0 - p]), None, 1.0)
    t = (rng.uniform(size=n) > p).astype(float)
    ranks = law.ranks(t)
    assert ((ranks >= 0.0) & (ranks <= 1.0)).all()
    # The largest distance of 4,000 even ranks passes 1.95/√n once in a thousand.
    u = np.sort(ranks)
    assert np.max(np.abs(u - np.arange(n) / n)) < 1.95 / np.sqrt(n)


def test_between_levels_the_density_is_interpolated() -> None:
    law = mixed(levels=True)
    # Spacing 2 on both sides: heights P/2 at 0 and 2; at .5 a quarter of the way.
    expected = 0.75 * law.probabilities[:, 0] / 2.0 + 0.25 * law.probabilities[:, 1] / 2.0
    np.testing.assert_allclose(law.density(np.full(3, 0.5)), expected, **EXACT)


def test_interval_probabilities_are_those_of_the_doses_around() -> None:
    model, x = fitted()
    law = Truncated.of(model, x, -np.inf, np.inf)
    masses = PointMasses(
        np.array([0.0, 1.0, 3.0]), np.full(3, 1 / 3), levels=True, low=-np.inf, high=np.inf
    )
    p = interval_probabilities(law, masses, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, **EXACT)
    expected = law.cdf(np.full(3, 2.0)) - law.cdf(np.full(3, 0.5))
    np.testing.assert_allclose(p[:, 1], expected, **EXACT)


def test_what_is_known_is_a_probability_at_masses() -> None:
    model, x = fitted()
    law = Truncated.of(model, x, -np.inf, np.inf)
    masses = PointMasses(np.array([0.0]), np.array([0.3]), levels=False, low=0.0, high=np.inf)
    known = KnownMixedLaws(masses, law, 2.0)
    both = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(known.density(both), law.density(both) / [2.0, 2.0, 1.0], **EXACT)
    np.testing.assert_array_equal(known.cdf(both), law.cdf(both))


def test_softmax_of_a_class_without_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    label = (rng.uniform(size=120) < 0.4).astype(np.intp) * 2
    p = softmax_path(x, label, 0, 4)(x)
    assert p.shape[2] == 4
    np.testing.assert_allclose(p.sum(axis=2), 1.0, **EXACT)
    assert p[:, :, [1, 3]].max() < 1e-12
    # A ridge without penalty on the constant keeps the shares of the classes.
    np.testing.assert_allclose(p[:, :, 2].mean(axis=0), np.mean(label == 2), atol=0.01)
    alone = softmax_path(x, np.full(120, 1, dtype=np.intp), 0, 3)(x)
    np.testing.assert_allclose(alone[:, :, 1], 1.0, **EXACT)


def crossed(n: int, *, informative: bool) -> tuple[CrossMasses, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 2))
    p = 1.0 / (1.0 + np.exp(-1.5 * x[:, 0])) if informative else np.full(n, 0.3)
    index = np.where(rng.uniform(size=n) < p, 0, -1)
    model = CrossMasses()
    fold = model.fold(0, n)
    outside = [x[fold != k] for k in range(5)]
    return model.fit(index, size=1, extended=outside, held_out=x, fold=fold), fold, x, p


@pytest.mark.parametrize("informative", [True, False])
def test_probabilities_are_learned(*, informative: bool) -> None:
    model, fold, x, p = crossed(1500, informative=informative)
    found = model.probabilities(fold, x)[:, 0]
    assert ((found >= 0.0) & (found <= 1.0)).all()
    # About seven effective parameters of 1,200 rows leave an error of .04 at most.
    assert np.sqrt(np.mean((found - p) ** 2)) < 0.05
    np.testing.assert_allclose(model.weights_.sum(), 1.0, **EXACT)


def test_no_row_is_judged_by_a_model_that_saw_it() -> None:
    model, fold, x, _ = crossed(300, informative=True)
    rows = np.flatnonzero(fold == 2)
    index = np.where(np.arange(300) % 2 == 0, 0, -1)
    index_other = index.copy()
    index_other[rows] = -1 - index[rows]
    outside = [x[fold != k] for k in range(5)]
    known = {"size": 1, "extended": outside, "held_out": x, "fold": fold}
    one, other = CrossMasses().fit(index, **known), CrossMasses().fit(index_other, **known)
    np.testing.assert_array_equal(one.fits_[2].coef, other.fits_[2].coef)
    assert not np.array_equal(one.fits_[1].coef, other.fits_[1].coef)
    assert model.probabilities(fold[:7], x[:7]).shape == (7, 1)


# Levels, and doses that few rows have: 5 below them, 15 between, 40 and 45 above.

RARE = PointMasses(
    np.array([10.0, 20.0, 30.0]),
    np.full(3, 0.3),
    levels=True,
    low=-np.inf,
    high=np.inf,
    rare=np.array([5.0, 15.0, 40.0, 45.0]),
    rare_shares=np.array([0.02, 0.02, 0.045, 0.015]),
)


def test_doses_that_few_rows_have_add_to_the_distribution() -> None:
    p = np.array([[0.5, 0.2, 0.1], [0.1, 0.2, 0.3]])
    rare = np.array([[0.1, 0.02, 0.08], [0.0, 0.0, 0.4]])
    law = MixedLaws(RARE, p, None, 1.0, rare=rare)
    for t, first, second in (
        (5.0, 0.1, 0.0),
        (10.0, 0.6, 0.1),
        (19.0, 0.62, 0.1),
        (30.0, 0.92, 0.6),
        (40.0, 0.92 + 0.75 * 0.08, 0.6 + 0.75 * 0.4),
        (45.0, 1.0, 1.0),
    ):
        np.testing.assert_allclose(law.cdf(np.full(2, t)), [first, second], **EXACT)
    np.testing.assert_allclose(law.at_rare(np.array([45.0, 45.0])), [0.02, 0.1], **EXACT)
    np.testing.assert_array_equal(law.at_rare(np.array([30.0, 44.0])), 0.0)


def test_intervals_beyond_the_levels_are_those_of_doses_that_few_rows_have() -> None:
    model, x = fitted()
    law = Truncated.of(model, x, -np.inf, np.inf)
    masses = PointMasses(
        *(np.array([0.0, 1.0]), np.array([0.5, 0.4]), True, -np.inf, np.inf),
        *(np.array([-1.0, 0.5, 3.0]), np.array([0.03, 0.05, 0.02])),
    )
    p = interval_probabilities(law, masses, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, **EXACT)
    np.testing.assert_allclose(p[:, 2], 0.95 * law.cdf(np.full(3, -0.5)), **EXACT)
    np.testing.assert_allclose(p[:, 3], 0.05, **EXACT)
    np.testing.assert_allclose(p[:, 4], 0.95 * (1.0 - law.cdf(np.full(3, 2.0))), **EXACT)
