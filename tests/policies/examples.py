"""One or more filled instances of every policy class, for the laws that all policies obey."""

from __future__ import annotations

import numpy as np

from titrant.policies import RBF, Clipped, Constant, Linear, Rounded

CENTERS = np.array([[0.0, 1.0, -1.0], [2.0, 0.5, 0.3]])
LINEAR = Linear([0.3, -1.1, 0.25], 2.0, features=["age", "bmi", "sex"])
PLANE = Linear([[0.3, 1.0], [-1.1, 0.5], [0.25, -2.0]], [2.0, -1.0])

EXAMPLES = {
    "constant": Constant(35.0),
    "constant vector": Constant([1.5, -2.0]),
    "linear": LINEAR,
    "linear vector": PLANE,
    "rbf": RBF(CENTERS, [0.7, -0.2], scale=1.3, intercept=0.5),
    "rbf vector": RBF(CENTERS, [[0.7, 1.0], [-0.2, 0.1]], scale=1.3, intercept=[0.5, 0.1]),
    "clipped": Clipped(LINEAR, 1.0, 3.0),
    "clipped vector": Clipped(PLANE, [0.0, None], [None, 1.0]),
    "rounded": Rounded(LINEAR, 0.5, 0.1),
    "rounded vector": Rounded(PLANE, [0.5, 2.0]),
}
PARAMETRIC = {name: policy for name, policy in EXAMPLES.items() if policy.parametric}


def contexts(n: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))
