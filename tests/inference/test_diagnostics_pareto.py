"""The tail index of weights against known laws, scipy's likelihood and the published recipe."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import genpareto

from titrant.estimators import Tally
from titrant.inference.trust.evidence import pareto_shape, tail_index

# The mean of 30 estimates, each with a standard error of about (1 + k)/√255, has one of .02.
MEAN_OF_THIRTY = 0.05
# Zhang and Stephens' estimate and the maximum likelihood differ by less than one SE, 1.3/√2000.
LIKELIHOOD = 0.03
# The same sums in another order, of numbers of order 1.
LOOP = 1e-12


def largest(w: np.ndarray) -> np.ndarray:
    return Tally.of(w[:, None]).largest[0]


@pytest.mark.parametrize("k", [-0.5, 0.0, 0.3, 0.8])
def test_simulated_tails_are_recovered(k):
    found = [
        tail_index(largest(genpareto.rvs(k, size=20_000, random_state=seed)), 20_000)
        for seed in range(30)
    ]
    # 255 weights beside a prior of 10 at ½.
    expected = (255 * k + 10 * 0.5) / 265
    assert np.mean(found) == pytest.approx(expected, abs=MEAN_OF_THIRTY)


@pytest.mark.parametrize("k", [-0.3, 0.3, 0.8])
def test_the_shape_agrees_with_scipys_maximum_likelihood(k):
    x = np.sort(genpareto.rvs(k, scale=3.0, size=2000, random_state=1))
    reference, _, _ = genpareto.fit(x, floc=0.0)
    assert pareto_shape(x) == pytest.approx(reference, abs=LIKELIHOOD)


def test_the_shape_is_the_published_recipe():
    """Zhang & Stephens (2009), as loops."""
    x = np.sort(genpareto.rvs(0.4, size=37, random_state=3)).tolist()
    n = len(x)
    m = 30 + int(n**0.5)
    thetas, lengths = [], []
    for j in range(1, m + 1):
        theta = 1 / x[-1] + (1 - (m / (j - 0.5)) ** 0.5) / (3 * x[int(n / 4 + 0.5) - 1])
        k = sum(np.log(1 - theta * xi) for xi in x) / n
        thetas.append(theta)
        lengths.append(n * (np.log(-theta / k) - k - 1))
    weights = [1 / sum(np.exp(b - a) for b in lengths) for a in lengths]
    theta = sum(w * t for w, t in zip(weights, thetas, strict=True))
    k = sum(np.log(1 - theta * xi) for xi in x) / n
    assert pareto_shape(np.array(x)) == pytest.approx(k, abs=LOOP)


def test_the_tail_has_no_unit():
    w = largest(genpareto.rvs(0.5, size=500, random_state=2))
    assert tail_index(1e-6 * w, 500) == pytest.approx(tail_index(w, 500), abs=1e-9)


def test_the_length_of_the_tail():
    # min(count/5, 3√count): 5 of 25 weights; of 24 only 4, too few.
    w = largest(genpareto.rvs(0.2, size=25, random_state=0))
    assert tail_index(w, 25) is not None
    assert tail_index(w[:24], 24) is None
    # 3√100 = 30 > 100/5 = 20: what lies below the threshold, the 21st weight, changes nothing.
    w = largest(genpareto.rvs(0.2, size=100, random_state=0))
    assert tail_index(w[:21], 100) == tail_index(w, 100)
    assert tail_index(w[:20], 100) != tail_index(w, 100)


def test_equal_weights_have_no_tail():
    assert tail_index(np.full(200, 0.7), 200) is None
    rounding = 0.7 * (1 + 1e-16 * np.arange(200)[::-1])
    assert tail_index(rounding, 200) is None


def test_the_tail_merges_over_blocks():
    w = genpareto.rvs(0.5, size=3000, random_state=4)[:, None]
    parts = sum((Tally.of(p) for p in np.array_split(w, 7)[1:]), Tally.of(np.array_split(w, 7)[0]))
    assert np.array_equal(parts.largest, Tally.of(w).largest)
