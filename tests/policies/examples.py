"""One or more filled instances of every policy class, for the laws that all policies obey."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from titrant.policies import (
    RBF,
    Additive,
    Clipped,
    Constant,
    Function,
    InLimits,
    Linear,
    LinearTree,
    Personal,
    Policy,
    Products,
    Rounded,
    Tree,
)

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
    "additive": Additive(
        [0.3, -1.1, 0.25],
        2.0,
        knots=[[-1, 0, 1], [], [-1.0, -0.2, 0.3, 1.1]],
        bends=[0.1, -0.5, 0.3, 1.0, 0.0, -1.0, 0.5],
        reach=[0.5, 0.0, 0.2],
    ),
    "additive vector": Additive(
        [[0.3, 1.0], [-1.1, 0.5], [0.25, -2.0]],
        [2.0, 1.0],
        knots=[[], [-1, 0, 1], []],
        bends=[[0.1, 0.0], [-0.5, 1.0], [0.3, 0.2]],
        reach=[0, 1, 0],
    ),
    "products": Products(
        [0.3, -1.1, 0.25],
        2.0,
        pairs=[(0, 0), (0, 2)],
        bends=[0.5, -0.3],
        center=[0.1, 0, -0.2],
        size=[0.3, 1, 2],
    ),
    "products vector": Products(
        [[0.3, 1.0], [-1.1, 0.5], [0.25, -2.0]],
        [2.0, 1.0],
        pairs=[(1, 2)],
        bends=[[0.5, 0.1]],
        center=[0, 0, 0],
        size=[1, 1, 1],
    ),
    "tree": Tree([0, 2, 2], [0.1, -0.5, 0.7], [1, -1, -3], [2, -2, -4], [1.0, 2.5, -1.0, 4.0]),
    "tree vector": Tree([1], [0.0], [-2], [-1], [[1.0, 2.0], [3.0, 4.0]]),
    "linear tree": LinearTree(
        *([0, 2], [0.1, -0.5], [1, -1], [-3, -2], [1.0, 2.5, -1.0]),
        slopes=[[0.3, 0.0, -1.1], [0.0, 0.0, 0.0], [0.7, -0.25, 0.0]],
        lower=[-0.5, 2.0, -2.0],
        upper=[2.0, 3.0, 0.1],
    ),
    "personal": Personal(
        [[0.0, 1.0, -1.0], [2.0, 0.5, 0.3], [-1.0, 0.0, 0.0]],
        [[4.0, 1.0, 0.5, 2.0], [0.0, 1.0, 2.0, 3.0], [9.0, 4.0, 3.0, 0.0]],
        grid=[0.0, 1.0, 2.0, 3.0],
        scale=[1.0, 2.0, 1.0],
        nearest=2,
    ),
    "clipped": Clipped(LINEAR, 1.0, 3.0),
    "clipped vector": Clipped(PLANE, [0.0, None], [None, 1.0]),
    "rounded": Rounded(LINEAR, 0.5, 0.1),
    "rounded vector": Rounded(PLANE, [0.5, 2.0]),
    "in steps": InLimits(LINEAR, steps=0.5, at_least=-1.0),
    "in strengths": InLimits(LINEAR, steps=[1.0, 2.0, 2.5, 5.0], at_most=4.0),
    "in limits": InLimits(
        LINEAR, at_least=-30.0, at_most="bmi", current="age", largest_change=20.0
    ),
    "in limits and steps": InLimits(LINEAR, steps=0.25, current="age", largest_change=1.0),
}
PARAMETRIC = {name: policy for name, policy in EXAMPLES.items() if policy.parametric}


def contexts(n: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


FEATURES = ("age", "bmi", "sex")


def named(policy: Policy) -> Policy:
    """The same policy that knows the names of its contexts, however deep they are inside."""
    own = {field.name for field in fields(policy)}
    if "policy" in own:
        return replace(policy, policy=named(policy.policy))
    return replace(policy, features=FEATURES) if "features" in own else policy


NAMED = {
    **{name: named(policy) for name, policy in EXAMPLES.items()},
    "nested": Clipped(Rounded(Clipped(LINEAR, 0.0), 0.5), None, 2.2),
    "function": Function(lambda x: x[:, 0] - 2.0 * x[:, 2], features=FEATURES),
    "clipped function": Clipped(Function(lambda x: x @ [1, 2, 3], features=FEATURES), -1.0, 1.0),
}
"""Every policy, knowing the names of its contexts."""

TABLES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas, shuffled index": lambda columns: pd.DataFrame(columns).set_index(
        np.random.default_rng(3).permutation(len(columns["age"]))
    ),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "arrow": pa.table,
    "arrow stream": lambda columns: pa.table(columns).to_reader(),
}
"""From columns by name to a table of each kind."""
