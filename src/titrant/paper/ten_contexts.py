"""Figure 5: rules for ten contexts; the outcomes of one draw, and the excess risk over 22 draws.

The best rule is affine. The paper looks for rules without an intercept, and so does every method
here but those that say otherwise; the best of them is 6.25 worse than the best affine one. With the
outcome as it is printed, and not as the authors' code has it, the best rule has no intercept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import titrant as tt
from titrant.data.simulate import TenContexts
from titrant.outcome import Bounded, RidgeModel, SecondOrder, Trees
from titrant.paper.result import Row, boxes, dots, mean_of, standard_error, where
from titrant.paper.study import Findings, Study, crossed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure
    from sklearn.ensemble import RandomForestRegressor

    from titrant._types import Array
    from titrant.paper.study import Measurement, Piece, Settings, Task
    from titrant.policies import Policy

    Method = Callable[[tt.LoggedData], Callable[[Array], Array]]
    """From a log to a rule."""


N = 400
TEST = 1000
H, CLIP = 2.6, 0.02
"""The bandwidth of the paper, and the floor under the propensity, which is that of its code."""
PENALTY = 0.5
"""What the authors' code multiplies ‖β‖ by."""
DRAWN, KEPT, LEFT_OUT = 2000, 1000, 200.0
"""The authors' code draws so many rows, leaves out those whose outcome reaches 200, takes the range
of doses from the next 1,000 and learns from 400 of these."""
RULES = 50
"""Rules among which discretized evaluation chooses."""
THROUGH_ZERO = tt.LinearClass(intercept=False)
QUARTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def _quadratic() -> RidgeModel:
    """Return the correct outcome model."""
    return RidgeModel(SecondOrder())


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


def _penalized(log: tt.LoggedData) -> tt.Linear:
    """Return the rule of least v̂ + ½‖β‖, v̂ plain IPW: the objective of the authors' code."""
    from scipy.optimize import minimize  # noqa: PLC0415

    x, t, y, kernel = log.context, log.treatment, log.outcome, tt.Epanechnikov()
    weighted = y / _propensity(log)

    def objective(beta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient at β (p,)."""
        u, size = (x @ beta - t) / H, float(np.linalg.norm(beta))
        value = np.mean(kernel(u) * weighted) / H + PENALTY * size
        slope = x.T @ (kernel.derivative(u) * weighted) / (H**2 * len(y))
        return float(value), slope + PENALTY * beta / max(size, 1e-12)

    starts = 0.3 * np.random.default_rng(0).standard_normal((2, x.shape[1]))
    ends = [minimize(objective, start, jac=True, method="L-BFGS-B") for start in starts]
    return tt.Linear(min(ends, key=lambda end: end.fun).x)


def _as_in_2018(log: tt.LoggedData) -> tt.Linear:
    """Return the rule that the search of the authors' code ends at.

    Doses stay within the bounds of the log, v̂ is divided by the kernel's mass between them, and no
    coefficient leaves a box. Of two ends the one of least v̂ + ½‖β‖ is taken; the way there follows
    another gradient, that of the self-normalized estimate and of ½‖β‖², without the mass.
    """
    from scipy.optimize import minimize  # noqa: PLC0415

    x, t, y, kernel = log.context, log.treatment, log.outcome, tt.Epanechnikov()
    n, p = x.shape
    q, low, high = _propensity(log), float(log.lower[0, 0]), float(log.upper[0, 0])

    def estimate(beta: Array) -> tuple[float, Array]:
        """Return v̂ and u = (τ(x) − t)/h (n,)."""
        tau = np.clip(x @ beta, low, high)
        mass = kernel.cdf((high - tau) / H) - kernel.cdf((low - tau) / H)
        u = (tau - t) / H
        return float(np.mean(kernel(u) * y / (q * mass))) / H, u

    def objective(beta: Array) -> float:
        return estimate(beta)[0] + PENALTY * float(np.linalg.norm(beta))

    def gradient(beta: Array) -> Array:
        value, u = estimate(beta)
        total = max(float(np.mean(kernel(u) / q)) / H, CLIP)
        each = kernel.derivative(u) / (q * H**2 * n)
        quotient = (total * x.T @ (each * y) - value * x.T @ each) / total**2
        slope: Array = quotient + 2.0 * PENALTY * beta
        return slope

    ends = [
        minimize(
            objective,
            start,
            jac=gradient,
            method="L-BFGS-B",
            bounds=[(low / (0.5 * p), high / (0.5 * p))] * p,
            options={"gtol": 0.1, "maxfun": 1000},
        )
        for start in np.random.default_rng(0).uniform(size=(2, p))
    ]
    return tt.Linear(min(ends, key=lambda end: end.fun).x)


def _propensity(log: tt.LoggedData) -> Array:
    """Return the density of each logged dose by linear regression, floored."""
    x, t = log.context, log.treatment
    return np.maximum(tt.LinearGaussian().fit(x, t).density(x, t), CLIP)


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


DESIGNS = {"A": {}, "B": {"overlap": True}, "printed": {"printed": True}}
"""What `TenContexts.sample` is asked for in each scenario."""
AUTHORS = "CPO, the authors' search"
ALL_ROWS = f"{AUTHORS}, all rows"
PENALIZED = "CPO, IPW + ½‖β‖"
NO_PENALTY = "CPO, no penalty"

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
    AUTHORS: _as_in_2018,
    ALL_ROWS: _as_in_2018,
    PENALIZED: _penalized,
    NO_PENALTY: _kernel,
    f"{NO_PENALTY}, one start": lambda log: _kernel(log, restarts=1),
    f"{NO_PENALTY}, best of 12 wide starts": lambda log: _kernel(log, restarts=12, spread=1.0),
    f"{NO_PENALTY}, from direct, forest": lambda log: _kernel(
        log, restarts=1, start=_direct(log, _forest())
    ),
    "discretized": _discretized,
    "best constant": _best_constant,
    "mean dose": tt.mean_dose,
}


def measure(task: Task) -> Measurement:
    """Return how much worse a rule is than the best without an intercept, and its outcomes."""
    design = TenContexts.sample(task["draw"], **DESIGNS[task["scenario"]])
    rule = METHODS[task["method"]](_logged(design, task))
    excess = design.value(rule) - design.value_of_affine(design.best_coef)
    return {"excess": excess, **_outcomes(design, rule, task)}


def _logged(design: TenContexts, task: Task) -> tt.LoggedData:
    """Return 400 rows; those of the authors' code are chosen by their outcomes."""
    if task["method"] != AUTHORS:
        log = design.draw(N, np.random.default_rng([task["draw"], N]), propensity=False)
        return log.with_bounds(_range(log)) if task["method"] == ALL_ROWS else log
    log = design.draw(DRAWN, np.random.default_rng([task["draw"], DRAWN]), propensity=False)
    kept = np.flatnonzero(log.outcome < LEFT_OUT)[:KEPT]
    return log.rows(kept[:N]).with_bounds(_range(log.rows(kept)))


def _range(log: tt.LoggedData) -> tuple[float, float]:
    return float(log.treatment.min()), float(log.treatment.max())


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


# The table and the figure.

SCENARIOS = {
    "A": "A as in the authors' code",
    "B": "B with overlap",
    "printed": "A as printed",
}
PICTURE = {"scenario": "A", "draw": 0}
TICKS = (-100, -10, 0, 1, 10, 100)
WITH_INTERCEPT = "titrant's default, with intercept"
EXCESS = "excess over linear"
EXCESS_AFFINE = "excess over affine"
MEDIAN = "median excess"
DIFFERENCE = "difference of excesses"

OTHERS = ("direct, forest", "discretized", "mean dose")
"""Methods that the paper finds CPO ahead of."""
JUDGED = {
    AUTHORS: "",
    PENALIZED: "",
    NO_PENALTY: (
        "Without penalty (our four starts) it overfits: the more starts compete by their own "
        "estimate, the worse the winner is in truth."
    ),
}
"""Searches that are held against them, and why one may be behind."""
CLASS = (
    "Excess is over the best rule without an intercept, the class of the paper. The quadratic "
    "model is the true one of this design. The picture of the paper is one draw of it."
)
OURS = (
    "Neither penalty nor starts are given. The floor of 0.02 is that of the authors' code.",
    "The authors' search: ½‖β‖, two starts in [0, 1], a box, 400 rows with outcomes below 200.",
    "It follows the gradient of the self-normalized estimate and of ½‖β‖², as their code does.",
    "That is not the gradient of its objective, and some ends hang on the last bits of outcomes.",
    "All rows: the same on 400 rows with any outcome. IPW + ½‖β‖: that penalty alone, all rows.",
    "No penalty: the self-normalized estimate from four starts with a spread of 0.3, all rows.",
    "θ = b_q + N(2, 1) and variances (z + |min z| + ½)/2, z ~ N(0, 1), are the authors' code's.",
    "“Positive” coefficients are read as non-zero: three in each b; the authors' b_x has six.",
    "A and B: −2x₃ in the doses, a sum in the outcome. A as printed: −3x₃, and the product.",
    "Discretized evaluation, a step function, chooses the best of 50 rules drawn at random.",
    "Ten trees in the forests, as in the authors' code. The direct forest has no penalty here.",
)


def tasks(settings: Settings) -> list[Task]:
    """Return one task for each method, scenario and draw."""
    draws = range(settings.seed, settings.seed + settings.replications)
    return crossed({"method": METHODS, "scenario": SCENARIOS, "draw": draws})


def excesses(pieces: Sequence[Piece], method: str, scenario: str) -> Array:
    """Return the excess risk on each draw over the best rule without an intercept."""
    found = where(pieces, {"method": method, "scenario": scenario})
    return np.array([piece.found["excess"] for piece in found])


def summarize(pieces: Sequence[Piece]) -> Findings:
    """Return the table over draws, and the outcomes of the first."""
    rows = [
        row
        for scenario in SCENARIOS
        for method in METHODS
        for row in _rows(scenario, method, excesses(pieces, method, scenario))
    ]
    rows += [row for scenario in SCENARIOS for row in _claims(pieces, scenario)]
    return Findings(
        rows=tuple(rows),
        series={
            "outcomes": _shown_outcomes(pieces),
            "excess": {
                scenario: {m: excesses(pieces, m, scenario).tolist() for m in METHODS}
                for scenario in SCENARIOS
            },
        },
        sample={m: float(excesses(pieces, m, "A")[0]) for m in METHODS},
        notes=(CLASS,),
    )


def _rows(scenario: str, method: str, excess: Array) -> list[Row]:
    label = f"{SCENARIOS[scenario]}, {method}"
    mean, se = float(excess.mean()), standard_error(excess)
    rows = [Row(label, EXCESS, mean, se=se)]
    if method == WITH_INTERCEPT:
        # How much better the best affine rule is than the best one without an intercept.
        affine = TenContexts.sample(0, **DESIGNS[scenario]).best_intercept ** 2
        rows.append(Row(label, EXCESS_AFFINE, mean + affine, se=se))
    if method in {AUTHORS, NO_PENALTY, "best constant"}:
        # The standard error is that of the mean, times 1.25 as for a normal law.
        rows.append(Row(label, MEDIAN, float(np.median(excess)), se=1.25 * se))
    return rows


def _claims(pieces: Sequence[Piece], scenario: str) -> list[Row]:
    """Return how far CPO is ahead of others on the same draws, which the paper says it is."""
    return [
        mean_of(
            f"{SCENARIOS[scenario]}, {method} − {other}",
            DIFFERENCE,
            excesses(pieces, method, scenario) - excesses(pieces, other, scenario),
            limits=(None, 0.0),
            note=note,
        )
        for other in OTHERS
        for method, note in JUDGED.items()
    ]


def _shown_outcomes(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return mean and quantiles of the outcomes of the first draw, the best of all rules first."""
    shown = {piece.task["method"]: piece.found for piece in where(pieces, PICTURE)}
    one = next(iter(shown.values()))
    best = {"best of all": {"mean": one["best_mean"], "quartiles": one["best_quartiles"]}}
    return best | {m: {k: found[k] for k in ("mean", "quartiles")} for m, found in shown.items()}


def draw(figure: Figure, series: dict[str, Any]) -> None:
    """Draw the outcomes of the first draw as boxes, and the mean excess over all."""
    figure.set_size_inches(10.0, 5.5)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    boxes(left, series["outcomes"], label=f"outcomes of one draw, {SCENARIOS['A']}")
    dots(right, series["excess"], label="mean excess risk ± 2 SE")
    right.set_xticks(TICKS, [str(excess) for excess in TICKS])


STUDY = Study(
    name="figure-5",
    title="Learning rules for ten contexts from 400 rows, quadratic outcome",
    claim=(
        "the kernel estimate learns better rules than the direct method, discretizing and the mean "
        "dose."
    ),
    ours=OURS,
    replications=22,
    quick_replications=3,
    tasks=tasks,
    measure=measure,
    summarize=summarize,
    draw=draw,
)
