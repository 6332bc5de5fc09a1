"""The paper's quadratic design: every way to a rule for ten contexts that figure 5 compares.

The best rule is affine. The paper looks for rules without an intercept, and so does every method
here but those that say otherwise; the best of them is 6.25 worse than the best affine one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import titrant as tt
from titrant.data.simulate import TenContexts
from titrant.outcome import Bounded, Quadratic, RidgeModel, Trees

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.ensemble import RandomForestRegressor

    from titrant._types import Array
    from titrant.paper.study import Measurement, Task
    from titrant.policies import Policy

    Method = Callable[[tt.LoggedData], Callable[[Array], Array]]
    """From a log to a rule."""


N = 400
TEST = 1000
H, CLIP = 2.6, 0.02
"""The authors' bandwidth and floor under the propensity."""
RULES = 50
"""Rules among which discretized evaluation chooses."""
THROUGH_ZERO = tt.LinearClass(intercept=False)
QUARTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _quadratic() -> RidgeModel:
    """Return the correct outcome model."""
    return RidgeModel(Quadratic())


def _forest() -> RandomForestRegressor:
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    return RandomForestRegressor(n_estimators=10, random_state=0)


def _learned(
    log: tt.LoggedData,
    procedure: tt.CPO | tt.StackedDR | None = None,
    policy: tt.LinearClass = THROUGH_ZERO,
) -> Policy:
    """Return the rule learned by a procedure, the propensity imputed by linear regression."""
    learner = tt.PolicyLearner(
        policy=policy, procedure=procedure, propensity=tt.LinearGaussian(), honest=False
    )
    return learner.fit(log).policy_


def _direct(log: tt.LoggedData, model: object) -> Policy:
    return _learned(log, tt.CPO(estimator=tt.DirectMethod(outcome=model), restarts=4))


def _doubly_robust(log: tt.LoggedData, model: object) -> Policy:
    estimator = tt.DoublyRobust(outcome=model, clip=CLIP)
    return _learned(log, tt.CPO(estimator=estimator, bandwidth=H, restarts=4))


def _kernel(
    log: tt.LoggedData,
    *,
    restarts: int = 4,
    spread: float = 0.3,
    start: Policy | None = None,
) -> Policy:
    """Return the paper's own: the least self-normalized estimate among the ends of some searches.

    Doses are not kept in the logged range.
    """
    procedure = tt.CPO(
        estimator=tt.SelfNormalized(clip=CLIP),
        bandwidth=H,
        restarts=restarts,
        spread=spread,
        start=start,
        clipped=False,
    )
    return _learned(log, procedure)


def _discretized(log: tt.LoggedData) -> tt.Linear:
    """Return the best of random rules by the estimate that calls ten bins of doses actions.

    That estimate is a step function of the coefficients: a gradient search stays where it begins.
    """
    x, t = log.context, log.treatment
    spread = np.std(t - x @ np.linalg.lstsq(x, t, rcond=None)[0])
    size = np.sqrt(np.mean(x**2, axis=0) * x.shape[1])
    noise = np.random.default_rng(0).standard_normal((RULES, x.shape[1]))
    rules = {str(k): tt.Linear(spread * each / size) for k, each in enumerate(noise)}
    found = tt.compare(
        log,
        rules,
        estimator=tt.Discretized(bins=10, clip=CLIP),
        propensity=tt.LinearGaussian(),
        allow_untrusted=True,
    )
    return rules[min(rules, key=lambda name: found[name].value)]


def _best_constant(log: tt.LoggedData) -> tt.Constant:
    """Return the constant with the least self-normalized estimate, trusted or not, as in 2018."""
    return tt.best_constant(
        log,
        estimator=tt.SelfNormalized(clip=CLIP),
        bandwidth=H,
        propensity=tt.LinearGaussian(),
        allow_untrusted=True,
    )


METHODS: dict[str, Method] = {
    "titrant's default": _learned,
    "titrant's default, with intercept": lambda log: _learned(log, policy=tt.LinearClass()),
    "titrant's default, trees only": lambda log: _learned(
        log, tt.StackedDR(models={"trees": Bounded(Trees())})
    ),
    "direct, quadratic": lambda log: _direct(log, _quadratic()),
    "doubly robust, quadratic": lambda log: _doubly_robust(log, _quadratic()),
    "doubly robust, forest": lambda log: _doubly_robust(log, _forest()),
    "direct, forest": lambda log: _direct(log, _forest()),
    "CPO": _kernel,
    "CPO, one start": lambda log: _kernel(log, restarts=1),
    "CPO, best of 12 wide starts": lambda log: _kernel(log, restarts=12, spread=1.0),
    "CPO from direct, forest": lambda log: _kernel(log, restarts=1, start=_direct(log, _forest())),
    "discretized": _discretized,
    "best constant": _best_constant,
    "mean dose": tt.mean_dose,
}


def measure(task: Task) -> Measurement:
    """Return how much worse a rule is than the best without an intercept, and its outcomes."""
    design = TenContexts.sample(task["draw"], overlap=task["scenario"] == "B")
    log = design.draw(N, np.random.default_rng([task["draw"], N]), propensity=False)
    rule = METHODS[task["method"]](log)
    excess = design.value(rule) - design.value_of_affine(design.best_coef)
    return {"excess": excess, **_outcomes(design, rule, task)}


def _outcomes(design: TenContexts, rule: Callable[[Array], Array], task: Task) -> Measurement:
    """Return mean and quantiles of the outcomes under a rule, and the best, over 1,000 new rows."""
    x = design.context(np.random.default_rng([task["draw"], TEST]), TEST)
    under, best = design.mean_outcome(x, rule(x)), design.mean_outcome(x, design.best(x))
    return {
        "mean": float(under.mean()),
        "quartiles": np.quantile(under, QUARTILES).tolist(),
        "best_mean": float(best.mean()),
        "best_quartiles": np.quantile(best, QUARTILES).tolist(),
    }
