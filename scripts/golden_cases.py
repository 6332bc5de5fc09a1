"""The forty cases of the golden numbers; each returns name → number."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from golden_logs import (
    BLOCKS,
    CONTEXTS,
    FEW,
    MANY,
    SETTLED,
    SETTLED_BOUNDED,
    bounded,
    boxed,
    center,
    scalar,
    scanned,
    vector,
)

import titrant as tt
from titrant.bandwidth import SELECTORS
from titrant.inference import INTERVALS, Verdict
from titrant.kernels import KERNELS
from titrant.optimize import Ball, Box
from titrant.propensity import PROPENSITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from golden_logs import Array

    from titrant.data.source import Source
    from titrant.inference import Diagnostics
    from titrant.policies import Policy

    Numbers = dict[str, float | None]

CASES: dict[str, Callable[[], Numbers]] = {}
LINE = tt.Linear([0.5, -0.1, 0.0], 0.3, features=CONTEXTS)
"""The policy that most cases evaluate; within [0, 1] wherever contexts are."""
TWO = tt.Linear([[0.4, 0.2], [0.0, -0.1], [0.0, 0.0]], [0.3, 0.5], features=CONTEXTS)
"""For two doses."""
SMOOTH = tt.SelfNormalized(kernel=tt.Biweight())
"""What most searches minimize. The slope of this kernel has no jumps, so that a search ends in the
same place to the last digits when sums are rounded in another way."""
RULES: dict[str, Any] = {
    "line": LINE,
    "status quo": tt.StatusQuo(),
    "constant": tt.Constant(0.5),
    "clipped": tt.Clipped(tt.Linear([1.5, 0.0, 0.0], -0.2, features=CONTEXTS), 0.1, 0.9),
    "rounded": tt.Rounded(LINE, 0.25),
    "bumps": tt.RBF([[0.2, 0.5, 0.5], [0.8, 0.5, 0.5]], [-0.2, 0.3], scale=0.4, intercept=0.5),
    "function": lambda X: 0.2 + 0.4 * X[:, 0] ** 2,
}
"""Policies of every kind."""
NEW = np.random.default_rng(5).uniform(size=(4, len(CONTEXTS)))
"""Contexts for which learned policies recommend doses."""


def case(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
    """Enter a case under the name of its function."""
    CASES[function.__name__] = function
    return function


# ── numbers of results ───────────────────────────────────────────────────────────────────────────
def put(parts: Mapping[str, Numbers]) -> Numbers:
    """Return the numbers of several results under their names."""
    return {f"{name}.{key}": x for name, numbers in parts.items() for key, x in numbers.items()}


def named(things: Iterable[Any]) -> dict[str, Any]:
    """Return things by the names of their classes, a second of a class with its number."""
    found: dict[str, Any] = {}
    seen: Counter[str] = Counter()
    for thing in things:
        name = type(thing).__name__
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} {seen[name]}"] = thing
    return found


def listed(name: str, values: Iterable[float] | Array | float) -> Numbers:
    """Return numbers under a name and their places; what is not finite is None."""
    flat = np.ravel(np.asarray(values, dtype=np.float64)).tolist()
    numbers = [x if math.isfinite(x) else None for x in flat]
    return {name if len(flat) == 1 else f"{name}.{i}": x for i, x in enumerate(numbers)}


def of_report(report: Diagnostics) -> Numbers:
    """Return the numbers of all checks, and the verdict of each as its place among verdicts."""
    order = list(Verdict)
    found: Numbers = {}
    for check in report:
        found |= listed(check.name, check.value)
        found[f"{check.name}.verdict"] = float(order.index(check.verdict))
    return found


def of_estimate(estimate: tt.Estimate, *, checks: bool = True) -> Numbers:
    """Return value, error, interval, effective rows, bandwidth and checks of an estimate."""
    found = listed("value", estimate.value) | listed("se", estimate.se)
    found |= listed("ess", estimate.ess) | listed("interval", estimate.interval())
    if estimate.bandwidth is not None:
        h = estimate.bandwidth
        found |= listed("h", h.h) | listed("kink", h.kink)
        found |= {} if h.bias is None else listed("bias", h.bias)
    return found | (of_report(estimate.diagnostics) if checks else {})


def of_comparison(comparison: tt.Comparison) -> Numbers:
    """Return all estimates, paired differences to the first policy, and simultaneous intervals."""
    first, *others = comparison.names
    found = put({name: of_estimate(comparison[name]) for name in comparison.names})
    for name in others:
        contrast = comparison.contrast(name, first)
        found |= listed(f"{name}.less {first}", [contrast.difference, contrast.se])
        found |= listed(f"{name}.less {first}.interval", contrast.interval())
    for name, ends in comparison.simultaneous().items():
        found |= listed(f"{name}.simultaneous", ends)
    for name, ends in comparison.simultaneous_contrasts(first).items():
        found |= listed(f"{name}.simultaneous less {first}", ends)
    return found


def of_curve(curve: tt.Curve) -> Numbers:
    """Return parameters, values and both bands of a curve, and how many points were refused."""
    found = listed("parameter", curve.parameters) | listed("value", curve.values)
    found |= listed("band", curve.band()) | listed("pointwise", curve.band(simultaneous=False))
    return found | listed("refused", len(curve.refused))


def of_path(path: tt.BandwidthPath) -> Numbers:
    """Return a path and, of its covariance, the products of neighbors."""
    found: Numbers = listed("neighbors", np.diagonal(path.covariance, 1))
    for name in ("bandwidths", "values", "se", "ess", "count"):
        found |= listed(name, getattr(path, name))
    return found


def of_policy(policy: Policy | Callable[[Array], Array]) -> Numbers:
    """Return the doses that a policy recommends for new contexts, and its parameters if any."""
    doses = listed("dose", np.asarray(policy(NEW)))
    params = getattr(policy, "params", None)
    return doses if params is None else doses | listed("params", params)


def of_learner(learner: tt.PolicyLearner) -> Numbers:
    """Return the learned policy, the objective it reached and its honest value."""
    found = of_policy(learner.learned_.policy) | listed("objective", learner.solution_.value)
    honest: tt.HonestValue | None = learner.estimate_
    if honest is None:
        return found
    found |= put({"honest": of_estimate(honest.comparison["learned"])})
    for name in honest.names:
        found |= listed(f"honest.gain over {name}", honest.gain(name))
    return found


def evaluated(log: Source, policy: Any = LINE, **options: Any) -> Numbers:  # noqa: ANN401
    """Return the numbers of an evaluation, whatever the trust rules say of it."""
    return of_estimate(tt.evaluate(log, policy, allow_untrusted=True, **options))


def values(log: Source, policy: Any = LINE, **options: Any) -> Numbers:  # noqa: ANN401
    """Return the same without the checks, for cases with many evaluations."""
    found = tt.evaluate(log, policy, allow_untrusted=True, **options)
    return of_estimate(found, checks=False)


def learned(log: Source, **options: Any) -> Numbers:  # noqa: ANN401
    """Return the numbers of a learner without an honest value, unless asked for."""
    return of_learner(tt.PolicyLearner(**{"honest": False, **options}).fit(log))


# ── evaluate: estimators, kernels, bounds ────────────────────────────────────────────────────────
@case
def default_few() -> Numbers:
    """Evaluate with every default: propensity, outcome model, bandwidth, interval."""
    return evaluated(scalar(FEW, known=False))


@case
def default_many() -> Numbers:
    """Evaluate with every default in compiled loops."""
    return evaluated(scalar(MANY, known=False))


@case
def default_bounded_few() -> Numbers:
    """Evaluate with every default within bounds that all rows share."""
    return evaluated(bounded(FEW, known=False))


@case
def default_bounded_many() -> Numbers:
    """Evaluate in compiled loops within bounds that all rows share."""
    return evaluated(bounded(MANY))


@case
def bounds_by_row_few() -> Numbers:
    """Evaluate within bounds of each row."""
    return evaluated(bounded(FEW, by_row=True))


@case
def bounds_by_row_many() -> Numbers:
    """Evaluate in compiled loops within bounds of each row."""
    return evaluated(bounded(MANY, by_row=True), estimator=tt.SelfNormalized())


def _estimators() -> dict[str, Any]:
    return {
        "IPW": tt.IPW(),
        "IPW centered": tt.IPW(centered=True),
        "IPW clipped": tt.IPW(clip=0.3),
        "self-normalized": tt.SelfNormalized(),
        "doubly robust": tt.DoublyRobust(folds=3, seed=1),
        "doubly robust, mean": tt.DoublyRobust(self_normalized=False),
        "direct": tt.DirectMethod(folds=3),
    }


def _binned() -> dict[str, Any]:
    return {
        "discretized": tt.Discretized(),
        "discretized, mean": tt.Discretized(self_normalized=False, bins=6),
        "discretized, quantiles": tt.Discretized(quantiles=True, bins=5),
        "discretized, edges": tt.Discretized(edges=(0.0, 0.4, 0.7)),
    }


@case
def estimators_few() -> Numbers:
    """Evaluate by every estimator in each of its forms."""
    log = scalar(FEW)
    return put({name: evaluated(log, estimator=e) for name, e in _estimators().items()})


@case
def estimators_many() -> Numbers:
    """Evaluate by every estimator in compiled loops."""
    log = scalar(MANY)
    return put({name: evaluated(log, estimator=e) for name, e in _estimators().items()})


@case
def estimators_bounded_many() -> Numbers:
    """Evaluate by every estimator near bounds, in compiled loops."""
    log = bounded(MANY)
    return put({name: values(log, estimator=e) for name, e in _estimators().items()})


def _in_bins(log: Source) -> Numbers:
    model = tt.LinearGaussian()
    return put({name: values(log, estimator=e, propensity=model) for name, e in _binned().items()})


@case
def discretized_few() -> Numbers:
    """Evaluate by bins of every kind and a model of the doses, once with all checks."""
    log = scalar(FEW, known=False)
    checked = evaluated(log, estimator=tt.Discretized(), propensity=tt.GaussianMixture())
    return _in_bins(log) | put({"checked": checked})


@case
def discretized_many() -> Numbers:
    """Evaluate by bins of every kind with many rows."""
    return _in_bins(scalar(MANY, known=False))


def _kernels(log: Source, bandwidth: float | None = None) -> Numbers:
    return put(
        {
            k.__name__: values(log, estimator=tt.SelfNormalized(kernel=k()), bandwidth=bandwidth)
            for k in KERNELS
        }
    )


@case
def kernels_few() -> Numbers:
    """Evaluate by every kernel, at a bandwidth chosen for it."""
    return _kernels(scalar(FEW))


@case
def kernels_many() -> Numbers:
    """Evaluate by every kernel, in compiled loops for those that have one."""
    return _kernels(scalar(MANY))


@case
def kernels_bounded_many() -> Numbers:
    """Evaluate by every kernel near bounds, at one bandwidth."""
    return _kernels(bounded(MANY), 0.2)


def _boundaries(log: Source) -> Numbers:
    return put(
        {
            b.name: values(log, estimator=tt.SelfNormalized(boundary=b), bandwidth=0.3)
            for b in tt.Boundary
        }
    )


@case
def boundaries_few() -> Numbers:
    """Evaluate with every correction at bounds."""
    return _boundaries(bounded(FEW)) | put({"by row": _boundaries(bounded(FEW, by_row=True))})


@case
def boundaries_many() -> Numbers:
    """Evaluate with every correction at bounds in compiled loops."""
    return _boundaries(bounded(MANY)) | put({"by row": _boundaries(bounded(MANY, by_row=True))})


# ── evaluate: bandwidths, intervals, propensities, vectors ───────────────────────────────────────
def _selectors(log: Source) -> Numbers:
    return _chosen_by([*SELECTORS, tt.Fixed(0.3), tt.Subsampled(rows=200)], log)


def _chosen_by(selectors: list[Any], log: Source) -> Numbers:
    plain: dict[str, Any] = {"estimator": tt.SelfNormalized()}
    return put({name: values(log, bandwidth=s, **plain) for name, s in named(selectors).items()})


@case
def selectors_few() -> Numbers:
    """Evaluate at the choice of every selector."""
    return _selectors(scalar(FEW))


@case
def selectors_many() -> Numbers:
    """Evaluate at the choice of every selector; one that looks at pairs of rows gets a part."""
    quick = [s for s in SELECTORS if not isinstance(s, tt.LeaveOneOut)]
    return _chosen_by([*quick, tt.Subsampled(tt.LeaveOneOut(), rows=500)], scalar(MANY))


def _intervals(log: Source, **options: Any) -> Numbers:  # noqa: ANN401
    methods = [*INTERVALS, tt.PoissonBootstrap(draws=200, seed=3, bias_corrected=False)]
    return put({name: values(log, interval=m, **options) for name, m in named(methods).items()})


@case
def intervals_few() -> Numbers:
    """Evaluate with every kind of interval."""
    return _intervals(scalar(FEW), estimator=tt.DoublyRobust(folds=2))


@case
def intervals_many() -> Numbers:
    """Evaluate with every kind of interval in compiled loops."""
    return _intervals(bounded(MANY), estimator=tt.SelfNormalized(), bandwidth=0.2)


@case
def propensities_few() -> Numbers:
    """Evaluate by every model of one dose, and by a known density."""
    log = scalar(FEW, known=False)
    known = tt.Known(lambda X, t: np.exp(-(((t - center(X)) / 0.6) ** 2) / 2) / 1.503976)
    models = named(model() for model in PROPENSITIES if model is not tt.MultivariateGaussian)
    found = {n: values(log, estimator=tt.IPW(), propensity=m) for n, m in models.items()}
    return put(found | {"Known": values(log, propensity=known)})


@case
def propensities_many() -> Numbers:
    """Evaluate many rows by two models, one of them truncated at bounds."""
    plain: dict[str, Any] = {"estimator": tt.SelfNormalized(), "bandwidth": 0.25}
    return put(
        {
            "linear": values(scalar(MANY, known=False), propensity=tt.LinearGaussian(), **plain),
            "mixture": values(bounded(MANY, known=False), propensity=tt.GaussianMixture(), **plain),
        }
    )


@case
def vector_few() -> Numbers:
    """Evaluate two doses with every default."""
    return evaluated(vector(FEW, known=False), TWO)


@case
def vector_many() -> Numbers:
    """Evaluate two doses with many rows, at bandwidths of every form."""
    log = vector(MANY)
    forms = {"chosen": None, "each": [0.4, 0.5], "matrix": [[0.2, 0.05], [0.05, 0.3]]}
    return put(
        {n: values(log, TWO, estimator=tt.SelfNormalized(), bandwidth=h) for n, h in forms.items()}
    )


@case
def vector_bounded() -> Numbers:
    """Evaluate two doses in a box, with few rows and with more."""
    plain: dict[str, Any] = {"estimator": tt.DoublyRobust(folds=2), "bandwidth": [0.3, 0.4]}
    return put({f"{n}": values(boxed(n), TWO, **plain) for n in (FEW, 4_000)})


# ── compare, curves, paths, checks ───────────────────────────────────────────────────────────────
@case
def compare_few() -> Numbers:
    """Compare policies of every kind, with contrasts and simultaneous intervals."""
    return of_comparison(tt.compare(scalar(FEW), RULES, allow_untrusted=True))


@case
def compare_many() -> Numbers:
    """Compare in compiled loops over several blocks of rows, one policy out of reach."""
    rules = {name: RULES[name] for name in ("line", "status quo", "clipped")}
    far = {"far": tt.Constant(9.0)}
    found = tt.compare(scalar(BLOCKS), rules | far, estimator=tt.SelfNormalized())
    return of_comparison(found) | listed("refused", len(found.refused))


@case
def curves() -> Numbers:
    """Draw the value of constant doses from few rows and from many."""
    few = tt.curve(scalar(FEW), tt.Constant, [0.1, 0.3, 0.5, 0.7, 9.0])
    # Estimates that share rows: where all correlations are near 0, the axes along which the
    # simultaneous band is drawn are a matter of rounding, and so is its fifth digit.
    plain: dict[str, Any] = {"estimator": tt.SelfNormalized(), "bandwidth": 0.3}
    many = tt.curve(bounded(MANY), tt.Constant, [0.2, 0.3, 0.5], **plain)
    return put({"few": of_curve(few), "many": of_curve(many)})


@case
def paths() -> Numbers:
    """Follow the bandwidth path in numpy, from bins, and from bins near bounds."""
    grid = np.geomspace(0.05, 1.2, 9)
    plain: dict[str, Any] = {"estimator": tt.SelfNormalized(), "bandwidths": grid}
    return put(
        {
            "few": of_path(tt.bandwidth_path(scalar(FEW), LINE)),
            "many": of_path(tt.bandwidth_path(scalar(MANY), LINE, **plain)),
            "bounded": of_path(tt.bandwidth_path(bounded(MANY), LINE, **plain)),
            "vector": of_path(tt.bandwidth_path(vector(FEW), TWO, **plain)),
        }
    )


@case
def checks() -> Numbers:
    """Check a log, and a policy on logs of few rows and many."""
    many = tt.check(scalar(MANY), LINE, estimator=tt.SelfNormalized())
    return put(
        {
            "log": of_report(tt.check(scalar(FEW, known=False))),
            "few": of_report(tt.check(bounded(FEW), LINE)),
            "many": of_report(many),
        }
    )


# ── learning ─────────────────────────────────────────────────────────────────────────────────────
@case
def stacked() -> Numbers:
    """Learn by the default procedure, grade honestly, save and load the policy."""
    learner = tt.PolicyLearner().fit(scalar(SETTLED))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy.json"
        learner.save(path)
        return of_learner(learner) | put({"saved": of_policy(tt.load_policy(path))})


@case
def stacked_other() -> Numbers:
    """Learn by the default procedure from rewards, within bounds, and one dose for all."""
    log = scalar(SETTLED)
    rewards = log.with_outcome(-log.outcome)
    return put(
        {
            "rewards": learned(rewards, maximize=True),
            "bounded": learned(bounded(SETTLED_BOUNDED)),
            "constant": learned(scalar(SETTLED_BOUNDED), policy=tt.Constant(0.0)),
        }
    )


def _search(estimator: Any = SMOOTH, **options: Any) -> tt.CPO:  # noqa: ANN401
    """Return the paper's learner with few starts and a penalty."""
    return tt.CPO(estimator=estimator, **{"bandwidth": 0.4, "ridge": 0.01, "restarts": 3} | options)


@case
def cpo_few() -> Numbers:
    """Search by every estimator, penalty, constraint and class."""
    log, biweight = scalar(FEW), tt.Biweight()
    ways = {
        "self-normalized": _search(),
        "chosen bandwidth": _search(bandwidth=None, restarts=1),
        "IPW": _search(tt.IPW(kernel=biweight)),
        "IPW centered": _search(tt.IPW(kernel=biweight, centered=True)),
        "doubly robust": _search(tt.DoublyRobust(kernel=biweight, folds=2), se_weight=1.0),
        "direct": _search(tt.DirectMethod(folds=2)),
        "box": _search(constraint=Box(np.full(4, -0.3), np.full(4, 0.6))),
        "ball": _search(constraint=Ball(0.2), ess_floor=30.0),
        "Epanechnikov": _search(tt.SelfNormalized(), bandwidth=1.0, ridge=0.1),
        "Gaussian": _search(tt.SelfNormalized(kernel=tt.Gaussian())),
        "from a policy": _search(start=LINE, clipped=False, restarts=1),
    }
    found = {name: learned(log, procedure=way) for name, way in ways.items()}
    bumps = tt.RBFClass(centers=RULES["bumps"].centers, scale=0.4)
    return put(found | {"bumps": learned(log, policy=bumps, procedure=_search())})


@case
def cpo_many() -> Numbers:
    """Search many rows, also near bounds."""
    search = _search(se_weight=0.5, bandwidth=0.3)
    return put(
        {
            "free": learned(scalar(MANY), procedure=search),
            "bounded": learned(bounded(MANY), procedure=search),
            "by row": learned(bounded(MANY, by_row=True), procedure=search),
        }
    )


@case
def cpo_honest() -> Numbers:
    """Search and grade by halves, for rewards and for two doses."""
    rewards = scalar(FEW).with_outcome(-scalar(FEW).outcome)
    plain: dict[str, Any] = {"honest": True, "grade": tt.SelfNormalized()}
    two = _search(bandwidth=[0.8, 0.9], ridge=0.1)
    return put(
        {
            "rewards": learned(rewards, procedure=_search(), maximize=True, **plain),
            "vector": learned(vector(SETTLED), procedure=two, **plain),
        }
    )


@case
def baselines() -> Numbers:
    """Make the policies that learned ones are compared with."""
    log = scalar(FEW)
    best = 0.2 + 0.6 * log.context[:, 0]
    return put(
        {
            "mean": of_policy(tt.mean_dose(log)),
            "constant": of_policy(tt.best_constant(log, estimator=tt.SelfNormalized(), doses=9)),
            "exact": of_policy(
                tt.best_constant(log, estimator=tt.SelfNormalized(), allow_untrusted=True)
            ),
            "argmin": of_policy(tt.direct_argmin(log)),
            "linear": of_policy(tt.direct_linear(log)),
            "bins": of_policy(tt.discretized_policy(log, bins=4)),
            "median": of_policy(tt.median_regression(log.context, best)),
        }
    )


# ── files ────────────────────────────────────────────────────────────────────────────────────────
@case
def files_default() -> Numbers:
    """Evaluate files with every default: models of a sample of rows, sums over all."""
    with scanned(scalar(MANY, known=False)) as log:
        return evaluated(log)


@case
def files_compare() -> Numbers:
    """Compare policies over files, with a curve, a path and the trust report."""
    rules = {name: RULES[name] for name in ("line", "status quo", "function")}
    plain: dict[str, Any] = {"estimator": tt.SelfNormalized()}
    with scanned(bounded(MANY), (0.0, 1.0)) as log:
        return put(
            {
                "compare": of_comparison(tt.compare(log, rules, **plain)),
                "curve": of_curve(tt.curve(log, tt.Constant, [0.3, 0.6], **plain)),
                "path": of_path(tt.bandwidth_path(log, LINE, bandwidths=[0.1, 0.3, 0.9], **plain)),
                "check": of_report(tt.check(log, LINE, **plain)),
            }
        )


@case
def files_choices() -> Numbers:
    """Evaluate files of few rows by every selector and interval, by bins, and two doses."""
    plain: dict[str, Any] = {"estimator": tt.SelfNormalized()}
    with scanned(scalar(FEW)) as log:
        found = {"selectors": _selectors(log), "intervals": _intervals(log, **plain)}
    with scanned(scalar(FEW, known=False)) as log:
        found["bins"] = _in_bins(log)
    with scanned(vector(FEW)) as log:
        found["vector"] = values(log, TWO, **plain)
    return put(found)


@case
def files_learn() -> Numbers:
    """Learn from files; a search that was stopped goes on from its checkpoint."""
    search = _search(se_weight=0.5, bandwidth=0.3)
    with scanned(scalar(MANY)) as log, TemporaryDirectory() as folder:
        with suppress(InterruptedError):
            learned(log, procedure=search, checkpoint=folder, executor=_stopping(60))
        resumed = learned(log, procedure=search, checkpoint=folder)
    with scanned(scalar(FEW)) as log:
        graded = learned(log, procedure=search, honest=True, grade=tt.SelfNormalized())
    with scanned(scalar(SETTLED)) as log:
        return put({"resumed": resumed, "graded": graded, "stacked": learned(log)})


def _stopping(after: int) -> tt.Engine:
    """Return an engine whose work is interrupted when so many partitions are done."""
    done = 0

    def progress(_: int, __: int) -> None:
        nonlocal done
        done += 1
        if done == after:
            raise InterruptedError

    return tt.Engine(progress=progress)
