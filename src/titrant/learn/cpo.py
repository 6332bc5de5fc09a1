"""The paper's own learner: minimize one estimate over the class, from many starts.

It overfits rather than gets stuck: the best of many restarts by the unpenalized value is often
worse than a typical one. Keep a penalty, and prefer the default procedure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.errors import InvalidArgument
from titrant.estimators import IPW, DirectMethod, DoublyRobust, SelfNormalized
from titrant.kernels.base import CompactKernel
from titrant.learn.procedure import Learned, Procedure
from titrant.learn.setting import Units
from titrant.optimize import LBFGS, AffineSearch, Constraint, Free, PolicyObjective
from titrant.optimize.fused import Second

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.learn.classes import FittedClass, PolicyClass
    from titrant.learn.procedure import Progress
    from titrant.outcome import DoseTable

    Searched = IPW | SelfNormalized | DoublyRobust | DirectMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class CPO(Procedure):
    """Minimize v̂(β) + λ·SE + ridge‖β‖² by L-BFGS from seeded random starts.

    Parameters
    ----------
    estimator : IPW, SelfNormalized, DoublyRobust or DirectMethod, with kernel and clip
    bandwidth : in units of the dose; None is s·n^(−1/5), s the sd of the dose given the context
    se_weight, ridge, ess_floor : penalties; the ridge is on (β/s)², the loss in units of sd(y)
    restarts, spread : random starts around the mean dose, and how far they go in units of s
    constraint : a `Box` or `Ball` on the parameters of the class
    clipped : keep doses in the range that was logged (.5 to 99.5 %)
    """

    estimator: Searched = field(default_factory=SelfNormalized)
    bandwidth: float | None = None
    se_weight: float = 0.0
    ridge: float = 0.0
    ess_floor: float = 0.0
    restarts: int = 32
    spread: float = 1.0
    constraint: Constraint = field(default_factory=Free)
    clipped: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        _check.count(self.restarts, "restarts", "CPO")
        for name in ("se_weight", "ridge", "ess_floor", "spread"):
            _check.nonnegative(getattr(self, name), name, "CPO")

    def learn(
        self, log: LoggedData, q: Array, policy_class: PolicyClass, progress: Progress
    ) -> Learned:
        """Return the policy with the least penalized estimate found."""
        if log.dimension > 1:
            raise InvalidArgument(
                f"`CPO` learns one dose; the log has {log.dimension}. Learn each dose on its own."
            )
        units, fitted = Units.of(log), policy_class.on(log)
        phi = fitted.features(log.context)
        h = self.bandwidth or units.dose_sd * len(log) ** -0.2
        objective = self._objective(log, q, fitted, units, h)
        starts = self._starts(log, phi, units)
        progress("search", 0, 1)
        solution = LBFGS(constraint=self.constraint).minimize(objective, starts)
        progress("search", 1, 1)
        policy = (
            units.clipped(fitted, solution.params)
            if self.clipped
            else fitted.policy(solution.params)
        )
        report = {
            "procedure": "continuous policy optimizer",
            "objective": repr(self.estimator),
            "bandwidth": h,
            "se_weight": self.se_weight,
            "ridge": self.ridge,
            "ess_floor": self.ess_floor,
            "restarts": self.restarts,
            "seed": self.seed,
        }
        return Learned(policy=policy, solution=solution, report=report)

    def _objective(
        self, log: LoggedData, q: Array, fitted: FittedClass, units: Units, h: float
    ) -> PolicyObjective:
        from titrant.nuisance import floor_of  # noqa: PLC0415

        estimator = self.estimator
        kernel = getattr(estimator, "kernel", None) or SelfNormalized().kernel
        if not isinstance(kernel, CompactKernel):
            raise _check.invalid("kernel", "CPO", "compact, such as Epanechnikov()", kernel)
        table, logged = self._model(log, units)
        direct = isinstance(estimator, DirectMethod)
        search = AffineSearch(
            phi=fitted.features(log.context),
            t=log.treatment,
            e=log.outcome - logged,
            q=np.ones(len(log))
            if direct
            else np.maximum(q, floor_of(estimator, log.doses.std(axis=0))),
            kernel=kernel,
            h=h,
            boundary=SelfNormalized().boundary if direct else estimator.boundary,  # type: ignore[union-attr]
            lower=log.lower[:, 0].copy() if log.bounded else None,
            upper=log.upper[:, 0].copy() if log.bounded else None,
            low=units.low if self.clipped else -np.inf,
            high=units.high if self.clipped else np.inf,
            table=table,
            center=float(logged[0]) if table is None else 0.0,
            second=self._second(),
            direct=direct,
        )
        return PolicyObjective(
            statistics=search,
            estimator=estimator,
            se_weight=self.se_weight,
            ridge=self.ridge / units.dose_sd**2 * fitted.penalized,
            ess_floor=self.ess_floor,
            scale=units.outcome_sd,
        )

    def _second(self) -> Second:
        if self.se_weight:
            return Second.ALL
        return Second.WEIGHTS if self.ess_floor else Second.NONE

    def _model(self, log: LoggedData, units: Units) -> tuple[DoseTable | None, Array]:
        """Return the table of the outcome model, if any, and the baseline at the logged dose."""
        settings: Any = self.estimator
        if not settings.uses_outcome_model:
            centered = isinstance(settings, SelfNormalized) or settings.centered
            return None, np.full(len(log), log.outcome.mean() if centered else 0.0)
        from titrant.nuisance import fitted_outcome  # noqa: PLC0415
        from titrant.outcome import DoseTable  # noqa: PLC0415

        model = fitted_outcome(log, settings)
        if model is None:
            raise InvalidArgument(f"`{type(settings).__name__}` has no outcome model to tabulate.")
        fold = model.fold(log.first_row, len(log))
        table = DoseTable.of(model, fold, log.context, bounds=(units.low, units.high))
        return table, model.predict(fold, log.context, log.treatment)

    def _starts(self, log: LoggedData, phi: Array, units: Units) -> Array:
        """Return the mean dose and random starts around it (restarts, P)."""
        rng = np.random.default_rng(self.seed)
        mean = np.linalg.lstsq(phi, np.full(len(log), log.treatment.mean()), rcond=None)[0]
        size = np.sqrt(np.mean(phi**2, axis=0) * phi.shape[1])
        noise = rng.standard_normal((self.restarts, phi.shape[1]))
        noise[0] = 0.0
        return np.asarray(mean + self.spread * units.dose_sd * noise / np.maximum(size, 1e-12))
