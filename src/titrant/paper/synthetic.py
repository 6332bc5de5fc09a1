"""The paper's example with one context (section 5.1), and the ways to evaluate τ(x) = βx on it.

y = 2|x − t|^1.5 + 0.2ε, x ~ U[0, 1]. Doses were logged around the best one, T ~ N(x + 0.1, 0.5²),
or at random, T ~ U[−0.5, 1.3]; propensities are known. The kernel estimates follow the paper: the
self-normalized one with the Epanechnikov kernel, propensities floored at 0.1, and no boundary
correction (the log's bounds are taken off). Only the rows named titrant's keep the bounds.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.bandwidth import PlugIn
from titrant.data.simulate import Synthetic, UniformDose
from titrant.estimators import Rows
from titrant.paper.study import crossed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from titrant.data.simulate import Design
    from titrant.paper.study import Measurement, Settings, Task

    Method = Callable[[Task], dict[str, Any]]
    """From a task to how its log is evaluated, in the words of `compare`."""


LOGGING: dict[str, Design] = {
    "normal": Synthetic(),
    "uniform": Synthetic(law=UniformDose(lower=-0.5, upper=1.3)),
}
ORACLE_ROWS = (100, 300)
"""Sizes at which IPW is asked with the bandwidth that only the truth can tell."""


@cache
def least_error(logging: str, n: int) -> tuple[float, float]:
    """Return the bandwidth with the least error of IPW at τ(x) = x, and that RMSE.

    The bias is (8/15)h^1.5 and n·Var = ∫K(u)²(4|hu|³ + σ²)/(h·f(x + hu | x))du − bias², for the
    outcome hu away from the policy has the mean 2|hu|^1.5. Neither depends on x while x ± h lies
    within the logged doses.
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    design, kernel = LOGGING[logging], tt.Epanechnikov()
    nodes, shares = np.polynomial.legendre.leggauss(40)
    u, du = 0.5 * (nodes + 1.0), 0.5 * shares  # over [0, 1]: the cube of |u| has a kink at 0
    u, du = np.r_[-u, u], np.r_[du, du]
    x = np.full((len(u), 1), 0.5)

    def mse(h: float) -> float:
        density = design.density(x, x[:, 0] + h * u)
        terms = kernel(u) ** 2 * (4.0 * np.abs(h * u) ** 3 + design.noise**2) / (h * density)
        squared_bias = (8.0 / 15.0) ** 2 * h**3
        return float(squared_bias + (terms @ du - squared_bias) / n)

    found = minimize_scalar(mse, bounds=(0.01, 0.3), method="bounded", options={"xatol": 1e-7})
    return float(found.x), float(np.sqrt(found.fun))


def line(beta: float) -> tt.Linear:
    """Return τ(x) = βx."""
    return tt.Linear(coef=[beta], intercept=0.0)


def log_tasks(settings: Settings, logging: Iterable[str], sizes: Iterable[int]) -> list[Task]:
    """Return one task for each log."""
    replications, seed = range(settings.replications), [settings.seed]
    return crossed({"logging": logging, "n": sizes, "replication": replications, "seed": seed})


def drawn(task: Task) -> tt.LoggedData:
    """Return the log of a task: logging, n, replication and seed."""
    place = list(LOGGING).index(task["logging"])
    rng = np.random.default_rng([task["seed"], task["replication"], task["n"], place])
    return LOGGING[task["logging"]].draw(task["n"], rng)


def estimates(method: Method, task: Task, policies: Mapping[str, tt.Linear]) -> Measurement:
    """Return value and bandwidth of each policy; nothing if no dose was logged near one of them."""
    how = method(task)
    log = drawn(task)
    if not how.pop("bounded", True):
        log = log.with_bounds(None)
    try:
        # The paper shows estimates from 10 rows.
        answer = tt.compare(log, policies, allow_untrusted=True, **how)
    except tt.NoOverlap:
        return {}
    if answer.refused:
        return {}
    return {
        name: {
            "value": estimate.value,
            "h": None if estimate.bandwidth is None else float(estimate.bandwidth.h),
        }
        for name, estimate in answer.estimates.items()
    }


def rows_of(log: tt.LoggedData) -> Rows:
    """Return the rows of a log that has propensities, floored at 0.1 as in the paper."""
    if log.propensity is None:
        raise tt.DataError("The study needs the propensity of every row; the log has none.")
    return Rows(
        tau=log.doses,  # not read
        t=log.doses,
        y=log.outcome,
        x=log.context,
        center=float(log.outcome.mean()),
        q=np.maximum(log.propensity, 0.1),
    )


def _kernel(bandwidth: PlugIn | float) -> Method:
    """Return the paper's estimate at a bandwidth."""
    estimator = tt.SelfNormalized(kernel=tt.Epanechnikov(), clip=0.1)
    return lambda _: {"estimator": estimator, "bandwidth": bandwidth, "bounded": False}


def _oracle(task: Task) -> dict[str, Any]:
    """Return IPW at the bandwidth that only the truth can tell."""
    best, _ = least_error(task["logging"], task["n"])
    return {"estimator": tt.IPW(), "bandwidth": best, "bounded": False}


def _discretized(task: Task) -> dict[str, Any]:
    """Return the estimate that calls ten bins of doses actions."""
    design = LOGGING[task["logging"]]
    known = tt.Known(design.density, design.cdf)
    return {"estimator": tt.Discretized(bins=10, clip=0.1), "propensity": known}


def _forest(_: Task) -> dict[str, Any]:
    """Return the direct method with ten trees, fitted and asked on the same rows as in 2018."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    trees = RandomForestRegressor(n_estimators=10, random_state=0)
    return {"estimator": tt.DirectMethod(outcome=trees, folds=1)}


def _cubic(_: Task) -> dict[str, Any]:
    """Return the direct method with all products of x and t up to the third degree."""
    from sklearn.linear_model import LinearRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import PolynomialFeatures  # noqa: PLC0415

    cubic = make_pipeline(PolynomialFeatures(3), LinearRegression())
    return {"estimator": tt.DirectMethod(outcome=cubic, folds=1)}


METHODS: dict[str, Method] = {
    "kernel, h = 0.1": _kernel(0.1),
    "kernel, plug-in as printed": _kernel(PlugIn(as_printed=True)),
    "kernel, plug-in as printed, half pilot": _kernel(PlugIn(as_printed=True, pilot=0.5)),
    "kernel, plug-in corrected": _kernel(PlugIn()),
    "kernel, titrant's bandwidth": lambda _: {"estimator": tt.SelfNormalized(clip=0.1)},
    "titrant's default": lambda _: {},
    "IPW, oracle bandwidth": _oracle,
    "discretized, 10 bins": _discretized,
    "direct, forest": _forest,
    "direct, cubic": _cubic,
}
"""The authors' constant is h = 0.1; the plug-in is the paper's formula with its unknowns smoothed.

The paper does not say how much to smooth them. A pilot of 1 is the normal reference rule; half of
it is nearer to what cross-validation chooses here.
"""
SHOWN = (
    "kernel, plug-in as printed",
    "kernel, titrant's bandwidth",
    "titrant's default",
    "discretized, 10 bins",
    "direct, forest",
    "direct, cubic",
)
"""Methods that figures 1 to 3 draw."""
OURS = (
    "The pilot of the plug-in, by which its unknowns are smoothed: the normal reference rule.",
    "Ten trees in the forest, as in the authors' code, and a random state of 0.",
    "Its trees break ties by the last bits of outcomes; the forest differs between processors.",
    "The sd of the logged dose, 0.5, and the constant h = 0.1 are those of the authors' code.",
)
"""Settings that the paper does not give."""
