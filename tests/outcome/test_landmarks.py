"""Ridge regressions on bumps: kernels, features, the penalty, predictions without a fold."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from titrant.errors import DataError, InvalidArgument
from titrant.outcome import Forest, Landmarks
from titrant.outcome import landmarks as room
from titrant.outcome.crossfit import fold_of
from titrant.scaling import Standard

V = np.array([0.5, 0.3, 0.2])


def ring(n, p=4, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    g = np.sin(2.5 * np.hypot(x[:, 0], x[:, 1]))
    return x, g, g + noise * rng.normal(size=n)


@pytest.mark.parametrize("kernel", room.kernels(V), ids=repr)
def test_a_context_is_like_itself(kernel):
    z = np.random.default_rng(0).normal(size=(20, 3))
    alike = kernel(z, z)
    np.testing.assert_allclose(np.diagonal(alike), 1.0)
    np.testing.assert_allclose(alike, alike.T)
    assert np.linalg.eigvalsh(alike).min() > -1e-12


def test_kernels_are_what_they_say():
    a, b = np.array([[0.0, 1.0, -1.0]]), np.array([[0.5, -1.0, 0.0]])
    together = room.Overall(V, 0.8)(a, b)[0, 0]
    naive = np.exp(-sum(3 * V[j] * (a[0, j] - b[0, j]) ** 2 for j in range(3)) / (2 * 0.8**2 * 3))
    assert together == pytest.approx(naive)
    one = [np.exp(-((a[0, j] - b[0, j]) ** 2) / (2 * 0.8**2)) for j in range(3)]

    def added_up(k):
        pairs = sum(V[j] * V[i] * k[j] * k[i] for j in range(3) for i in range(j))
        return sum(V[j] * k[j] for j in range(3)) + 3 * pairs

    assert room.Pairs(V, 0.8)(a, b)[0, 0] == pytest.approx(added_up(one) / added_up([1, 1, 1]))


@pytest.mark.parametrize("kernel", room.kernels(V), ids=repr)
def test_features_give_the_kernel_at_landmarks(kernel):
    z = np.random.default_rng(1).normal(size=(40, 3))
    f = room.Bumps.around(z[:15], kernel)(z)
    np.testing.assert_allclose(f @ f[:15].T, kernel(z, z[:15]), atol=5e-5)


def test_the_penalty_is_that_of_least_gcv():
    rng = np.random.default_rng(2)
    z, u = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    u[:, 0] += np.sin(2 * z[:, 0])
    choices = [room.Bumps.around(z[:20], kernel) for kernel in room.kernels(V)]
    for j, chosen in enumerate(room.Chosen.of(choices, z, u)):
        scores = []
        for bumps in choices:
            f = bumps(z)
            for penalty in room.PENALTIES:
                hat = f @ np.linalg.solve(f.T @ f + penalty * np.eye(20), f.T)
                left = u[:, j] - hat @ u[:, j]
                scores.append((left @ left / (1 - np.trace(hat) / 60) ** 2, penalty))
        assert (chosen.score, chosen.penalty) == pytest.approx(min(scores))


def test_predictions_lack_the_fold_of_a_row():
    x, _, y = ring(150)
    model = Landmarks(landmarks=30)
    out = model.fit_out_of_fold(x, y)
    z, u = Standard.of_contexts(x).grained(x), (y - y.mean()) / y.std(ddof=0)
    chosen, fold = model.chosen_[0], fold_of(0, 150, 5, 0)
    f = chosen.bumps(z)
    for k in range(5):
        others = fold != k
        gram = f[others].T @ f[others] + chosen.penalty * np.eye(30)
        coef = np.linalg.solve(gram, f[others].T @ u[others])
        np.testing.assert_allclose(out[~others, 0], f[~others] @ coef, atol=1e-5)


def test_of_three_rows():
    """One landmark at z = 0 (rows −1, 0, 1 in sds ±1.2247): û(0) = Σk·u/(Σk² + λ)."""
    x, y = np.array([[-1.0], [0.0], [1.0]]), np.array([1.0, -2.0, 1.0])
    middle = next(s for s in range(20) if np.random.default_rng(s).permutation(3)[0] == 1)
    model = Landmarks(landmarks=1, seed=middle)
    model.fit(x, y)
    chosen = model.chosen_[0]
    k = chosen.bumps.kernel(np.array([[0.0]]), Standard.of_contexts(x)(x))[0]
    u = (y - y.mean()) / y.std()
    expected = k @ u / (k @ k + chosen.penalty)
    assert model.predict([[0.0]])[0, 0] == pytest.approx(expected, rel=1e-5)


def test_rings_that_trees_cut_into_boxes():
    x, _, y = ring(800)
    new, truth, _ = ring(2000, seed=1)
    forest = Forest()
    forest.fit(x, y)
    smooth = Landmarks().fit(x, y, forest.importance_)

    def left(model):
        return 1 - np.corrcoef(model.predict(new)[:, 0], truth)[0, 1] ** 2

    assert left(smooth) < 0.5 * left(forest)


def test_noise_is_not_followed():
    rng = np.random.default_rng(3)
    x, u = rng.normal(size=(500, 4)), rng.normal(size=(500, 2))
    assert np.abs(Landmarks().fit_out_of_fold(x, u)).max() < 0.3


@pytest.mark.parametrize("by", [1e-6, 1e9])
def test_units_do_not_matter(by):
    x, _, y = ring(200)
    one, other = Landmarks().fit(x, y), Landmarks().fit(by * x + 3 * by, 10 * y - 4)
    np.testing.assert_allclose(other.predict(by * x + 3 * by), one.predict(x), atol=1e-4)


def test_many_rows_choose_on_some(monkeypatch):
    x, truth, y = ring(1200)
    monkeypatch.setattr(room, "CHOSEN_ON", 400)
    prediction = Landmarks().fit(x, y).predict(x)[:, 0]
    assert np.corrcoef(prediction, truth)[0, 1] ** 2 > 0.8


@pytest.mark.parametrize("p", [0, 1, 3])
def test_contexts_that_say_nothing(p):
    y = np.random.default_rng(0).normal(size=12)
    model = Landmarks().fit(np.ones((12, p)), y, np.zeros(max(p, 1)))
    np.testing.assert_allclose(model.predict(np.ones((5, p))), 0.0, atol=1e-6)


def test_manners():
    x, _, y = ring(40)
    assert clone(Landmarks(landmarks=7, seed=3)).get_params() == {"landmarks": 7, "seed": 3}
    with pytest.raises(NotFittedError):
        Landmarks().predict(x)
    with pytest.raises(InvalidArgument, match="landmarks"):
        Landmarks(landmarks=0).fit(x, y)
    with pytest.raises(DataError, match="`Landmarks` cannot learn from 1 of 40 rows"):
        Landmarks().fit(np.where(x == x[0, 0], np.nan, x), y)
    with pytest.raises(DataError, match="4 columns"):
        Landmarks().fit(x, y).predict(x[:, :2])


@pytest.mark.parametrize("kernel", room.kernels(V), ids=repr)
def test_predictions_are_those_of_the_features(kernel):
    rng = np.random.default_rng(5)
    z, c = rng.normal(size=(60, 3)), rng.normal(size=20)
    bumps = room.Bumps.around(z[:20], kernel)
    by_likeness = kernel(z, z[:20]) @ bumps.in_likeness(c)
    np.testing.assert_allclose(by_likeness, bumps(z) @ c, rtol=1e-9, atol=1e-10)
