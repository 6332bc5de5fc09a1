"""Policies that change the logged dose: the weights of rows, and what is said of such a policy.

With f(t | x) the law of the logged dose and g(t | x) that of the policy's, w = g/f. A dose t that
comes from s = d⁻¹(t, x) has g = f(s | x)·|∂s/∂t|; a row that keeps its dose adds f(t | x) itself.
Where the law has point masses, so has g: what lands on another point mass is a ratio of
probabilities, and what lands elsewhere, such as all that a cap makes one dose, has no ratio. That
part alone is smoothed: g's mass P(x) at c gives w = P(x)·K*((t − c)/h)/(h·f(t | x)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from titrant.errors import DataError, InvalidArgument
from titrant.estimators import Discretized
from titrant.estimators.form import has_kernel_weight
from titrant.evaluation.models.masses import WIDE, beside_masses
from titrant.inference.trust import rules
from titrant.policies.calling import called, contexts_for
from titrant.policies.moves import Limited, Move, OneToOne, Randomized, Tilt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.masses import PointMasses
    from titrant.data.source import Source
    from titrant.estimators import Estimator, Rows
    from titrant.evaluation.models.masses import AskedMasses
    from titrant.evaluation.models.nuisance import Prepared
    from titrant.inference import Check
    from titrant.policies import Policy
    from titrant.propensity import PropensityModel
    from titrant.propensity.masses import KnownMixedLaws, MixedLaws, ScalarLaws

NODES, DRAWN_NODES = 96, 20
"""Gauss nodes of integrals over all doses, among which a law a tenth of sd(T) wide is seen, and
over the quantiles of a normal law."""
NOTHING = 1e-30
"""A ratio below this is no weight: if all rows have such, the policy leaves the log altogether."""


def refuse_moves(
    policies: Mapping[str, Policy],
    log: Source,
    estimator: Estimator,
    propensity: PropensityModel | None,
) -> None:
    """Refuse policies that change the logged dose where nothing tells the law of other doses."""
    for name, policy in policies.items():
        if isinstance(policy, Move):
            _refuse(name, policy, log, estimator, propensity)


def _refuse(
    name: str,
    policy: Move,
    log: Source,
    estimator: Estimator,
    propensity: PropensityModel | None,
) -> None:
    who = f"Policy {name!r}, a `{type(policy).__name__}`,"
    if log.dimension > 1:
        raise InvalidArgument(
            f"{who} changes one dose, and the log has {log.dimension}. Ask about a log with one of "
            "them as the treatment and the others among the contexts, or about a rule of contexts."
        )
    own = type(estimator).__name__
    if not estimator.uses_propensity:
        if isinstance(policy, Tilt):
            raise InvalidArgument(
                f"{who} is a change of the law of the doses, which `{own}` does not estimate. Take "
                "`DoublyRobust()`."
            )
        return
    if isinstance(estimator, Discretized) or not has_kernel_weight(estimator):
        raise InvalidArgument(
            f"{who} is valued by a ratio of densities, and `{own}` weights rows in a way of its "
            "own. Take `DoublyRobust()`, `SelfNormalized()` or `IPW()`."
        )
    if propensity is None and log.has_propensity:
        raise InvalidArgument(
            f"{who} needs f(t | x) at another dose than the one logged, and the log's column of "
            "propensities has it at that one alone. Give `propensity=Known(function)` with the "
            "density as a function of contexts and dose, or a model to fit such as "
            "`LinearGaussian()`."
        )
    if isinstance(policy, Limited) and _has_no_cdf(propensity):
        raise InvalidArgument(_without_cdf(name))


def caps_without_cdf(
    policies: object, estimator: Estimator | None, propensity: PropensityModel | None
) -> dict[str, str]:
    """Return the caps that a known density alone cannot value, with the reason, beside others."""
    weighted = estimator is None or getattr(estimator, "uses_propensity", False)
    if not (isinstance(policies, Mapping) and weighted and _has_no_cdf(propensity)):
        return {}
    caps = [name for name, policy in policies.items() if isinstance(policy, Limited)]
    return {name: _without_cdf(name) for name in caps} if len(caps) < len(policies) else {}


def _has_no_cdf(propensity: object) -> bool:
    if propensity is None:
        return False
    from titrant.propensity import Known  # noqa: PLC0415

    return isinstance(propensity, Known) and not propensity.has_cdf


def _without_cdf(name: str) -> str:
    return (
        f"Policy {name!r}, a `Limited`, needs how likely doses beyond its ends are, P(T > c | x), "
        "and the `Known` propensity was made without a cdf. Pass `cdf=` to `Known`, or leave this "
        "policy out."
    )


# The rows of a block under such a policy.


@dataclass(frozen=True, slots=True)
class DoseLaw:
    """What is known of the doses of a log, whatever the row."""

    masses: PointMasses | None
    unit: float
    """sd(T)."""
    low: float
    """The least logged dose,"""
    high: float
    """and the greatest."""

    def density(self, block: Prepared, t: Array) -> Array:
        """Return the density (n,) of doses that are no point mass, also where t is one."""
        f = self._fitted(block, t)
        return f if block.of_all is None else f * block.of_all(t)

    def _fitted(self, block: Prepared, t: Array) -> Array:
        if self.masses is not None:
            return _with_masses(block.law).beside(t)
        assert block.law is not None  # noqa: S101  (refused otherwise)
        return block.law.density(t)

    def probabilities(self, block: Prepared) -> Array:
        """Return the probability of each point mass (n, K), K = 0 without."""
        n = len(block.log)
        if self.masses is None:
            return np.empty((n, 0))
        p = _with_masses(block.law).at_masses(n)
        if block.of_all is None:
            return p
        return p * np.stack([block.of_all(np.full(n, a)) for a in self.values], axis=1)

    def rare(self, block: Prepared, t: Array) -> Array:
        """Return the probability (n,) of doses that rows without a level have, 0 elsewhere."""
        p = _with_masses(block.law).at_rare(t)
        return p if block.of_all is None else p * block.of_all(t)

    def beyond(self, block: Prepared, c: float, *, above: bool) -> Array:
        """Return P(T > c | x) or P(T < c | x) (n,)."""
        law, n = block.law, len(block.log)
        assert law is not None  # noqa: S101  (asked by _mapped)
        at = np.full(n, c)
        k = int(self.index(at[:1])[0])
        there = self.values > c if above else self.values < c
        there[self.index(self.values) == k] = False
        own = np.zeros(n) if k < 0 else _with_masses(law).at_masses(n)[:, k]
        p = np.maximum(1.0 - law.cdf(at) if above else law.cdf(at) - own, 0.0)
        if block.of_all is None:
            return p
        # The law was fitted to rows with an outcome: point masses and the others as all rows have.
        known = _with_masses(law).at_masses(n)[:, there].sum(axis=1) if there.any() else 0.0
        end = self.high + self.unit if above else self.low - self.unit
        fitted, whole = np.zeros(n), np.zeros(n)
        for node, share in zip(*_gauss(DRAWN_NODES), strict=True):
            s = at + (end - at) * node
            f = share * self._fitted(block, s)
            fitted, whole = fitted + f, whole + f * block.of_all(s)
        more = np.divide(whole, fitted, out=np.ones(n), where=fitted > 0.0)
        here = self.probabilities(block)[:, there].sum(axis=1)
        return np.asarray(here + more * np.maximum(p - known, 0.0))

    @property
    def values(self) -> Array:
        """The point masses (K,)."""
        return np.empty(0) if self.masses is None else self.masses.values

    def index(self, t: Array) -> NDArray[np.intp]:
        """Return which point mass each dose (n,) is, −1 for none."""
        return np.full(len(t), -1) if self.masses is None else self.masses.index(t)

    @property
    def levels(self) -> bool:
        """Whether (nearly) all doses are point masses."""
        return self.masses is not None and self.masses.levels

    @property
    def only_levels(self) -> bool:
        """Whether all doses are point masses."""
        return self.levels and not (self.masses is not None and len(self.masses.rare))


def _with_masses(law: ScalarLaws | None) -> MixedLaws | KnownMixedLaws:
    from titrant.propensity.masses import KnownMixedLaws, MixedLaws  # noqa: PLC0415

    assert isinstance(law, MixedLaws | KnownMixedLaws)  # noqa: S101  (the doses have point masses)
    return law


def with_move(rows: Rows, policy: Move, prepared: Prepared, dose: DoseLaw) -> Rows:
    """Return rows of the status quo, τ = t, as they are under a policy that changes t."""
    moved = _moved(rows, policy, prepared, dose)
    if moved.fixed is None:
        return moved
    return replace(moved, fixed=np.where(moved.fixed < NOTHING, 0.0, moved.fixed))


def _moved(rows: Rows, policy: Move, prepared: Prepared, dose: DoseLaw) -> Rows:
    if isinstance(policy, Tilt):
        return _tilted(rows, policy, prepared, dose)
    if isinstance(policy, Randomized):
        return _randomized(rows, policy, prepared, dose)
    if isinstance(policy, Limited | OneToOne):
        return _mapped(rows, policy, prepared, dose)
    raise InvalidArgument(
        f"`{type(policy).__name__}` must derive from `OneToOne`, or be one of titrant's: how a "
        "policy weights rows is known of these."
    )


@dataclass(frozen=True, slots=True)
class Goes:
    """Where each row's doses go under a policy d(t, x)."""

    policy: Limited | OneToOne
    x: Array
    lower: Array
    upper: Array
    """The least and the greatest dose that is possible in each row (n,)."""

    @classmethod
    def of(cls, policy: Limited | OneToOne, log: LoggedData) -> Goes:
        """Return that of the rows of a block."""
        x = contexts_for(policy.features, log.context, called(policy), log.names)
        lower = np.maximum(_bound(log, -np.inf), policy.low)
        upper = np.minimum(_bound(log, np.inf), policy.high)
        if isinstance(policy, Limited):  # a cap that is impossible in a row is none
            lower, upper = _bound(log, -np.inf), _bound(log, np.inf)
        return cls(policy, x, lower, upper)

    def __call__(self, t: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the doses (n,) that become of t (n,), and which stay for want of a bound."""
        policy = self.policy
        to = policy.moved(t) if isinstance(policy, Limited) else policy.moved(self.x, t)
        kept = (to < self.lower) | (to > self.upper)
        return np.where(kept, t, to), kept

    def inside(self, t: Array) -> NDArray[np.bool_]:
        """Return which doses (n,) another can become."""
        return np.asarray((t >= self.lower) & (t <= self.upper))


def _mapped(rows: Rows, policy: Limited | OneToOne, prepared: Prepared, dose: DoseLaw) -> Rows:
    """Return the rows under d(t, x)."""
    log, t = prepared.log, rows.t[:, 0]
    goes, at = Goes.of(policy, log), dose.index(t)
    tau, kept = goes(t)
    off = np.zeros(len(t), dtype=bool)
    if dose.levels and isinstance(policy, OneToOne) and rows.q is not None:
        # A dose that is no level may become one. If it does not, no rows answer for it: it stays.
        off = ~kept & (at < 0) & (dose.index(tau) < 0) & (tau != t)
        tau = np.where(off, t, tau)
    moved = replace(_predicted(rows, tau, prepared), kept=kept, off_levels=off)
    if rows.q is None or prepared.law is None:
        return moved
    stays = np.where(at >= 0, kept | (dose.index(tau) == at), kept | (tau == t))
    comes = np.where(stays & ~kept, 0.0, _comes(goes, t, prepared, dose))
    landings = _landings(goes, prepared, dose)
    onto = landings.onto(at) / dose.unit
    fixed = as_seen(prepared, t) * stays + (comes + onto) / rows.q
    return _smoothed(replace(moved, fixed=fixed), landings, dose)


def _comes(goes: Goes, t: Array, prepared: Prepared, dose: DoseLaw) -> Array:
    """Return how likely each row's dose (n,) is to come of one that is no point mass.

    It is a density, and rows without a point mass answer for it. Where doses are levels it is a
    probability over sd(T), and rows at levels do.
    """
    policy, log = goes.policy, prepared.log
    if isinstance(policy, Limited) or dose.only_levels:
        return np.zeros(len(t))
    s, slope = policy.origin(goes.x, t, dose.unit)
    answers = goes.inside(t) & ((dose.index(t) >= 0) == dose.levels)
    possible = answers & (s >= _bound(log, -np.inf)) & (s <= _bound(log, np.inf))
    f = dose.rare(prepared, s) / dose.unit if dose.levels else dose.density(prepared, s) * slope
    return np.where(possible, f, 0.0)


@dataclass(frozen=True, slots=True)
class Landings:
    """Where point masses of the policy's law come to lie: J doses in each row, nan for none."""

    dose: Array
    """c (n, J)."""
    probability: Array
    """P(x) of each (n, J)."""
    index: NDArray[np.intp]
    """Which point mass of the log each is (n, J), −1 for none."""

    def onto(self, at: NDArray[np.intp]) -> Array:
        """Return how much probability lands on the point mass ``at`` of each row (n,)."""
        there = (self.index == at[:, None]) & (at[:, None] >= 0)
        return np.asarray(np.sum(np.where(there, self.probability, 0.0), axis=1))


def _landings(goes: Goes, prepared: Prepared, dose: DoseLaw) -> Landings:
    """Return what becomes of the log's point masses, and the doses that a cap makes one."""
    n, policy, found = len(prepared.log), goes.policy, []
    if isinstance(policy, Limited):
        for end, up in ((policy.low, False), (policy.high, True)):
            if np.isfinite(end):
                c = np.full(n, end)
                beyond = dose.beyond(prepared, end, above=up)
                found.append((np.where(goes.inside(c), c, np.nan), beyond))
    else:
        p = dose.probabilities(prepared)
        for k, value in enumerate(dose.values):
            to, kept = goes(np.full(n, value))
            gone = ~kept & (dose.index(to) != k)
            found.append((np.where(gone, to, np.nan), p[:, k]))
    if not found:
        return Landings(np.empty((n, 0)), np.empty((n, 0)), np.empty((n, 0), dtype=np.intp))
    c, probability = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    there = ~np.isnan(c)
    index = np.full(c.shape, -1)
    index[there] = dose.index(c[there])
    return Landings(c, np.where(there, probability, 0.0), index)


def _smoothed(rows: Rows, landings: Landings, dose: DoseLaw) -> Rows:
    """Return the rows with a kernel about the landing that is nearest to each row's dose.

    So each row answers for one, and the kernel of each ends midway to the next.
    """
    t = rows.t[:, 0]
    c = np.where(landings.index < 0, landings.dose, np.nan)
    there = ~np.isnan(c)
    if not there.any():
        return replace(rows, share=np.zeros(len(t)))
    away = np.where(there, np.abs(t[:, None] - c), np.inf)
    nearest = np.argmin(away, axis=1)[:, None]
    own = there.any(axis=1)
    about = np.where(own, np.take_along_axis(c, nearest, axis=1)[:, 0], t)
    share = np.where(own, np.take_along_axis(landings.probability, nearest, axis=1)[:, 0], 0.0)
    below = np.max(np.where(c < about[:, None], c, -np.inf), axis=1)
    above = np.min(np.where(c > about[:, None], c, np.inf), axis=1)
    ends = ((about + below) / 2.0)[:, None], ((about + above) / 2.0)[:, None]
    lower = ends[0] if rows.lower is None else np.maximum(rows.lower, ends[0])
    upper = ends[1] if rows.upper is None else np.minimum(rows.upper, ends[1])
    aimed = replace(rows, about=about[:, None], share=share, lower=lower, upper=upper)
    return aimed if dose.masses is None else beside_masses(aimed, dose.masses, dose.unit)


def _tilted(rows: Rows, policy: Tilt, prepared: Prepared, dose: DoseLaw) -> Rows:
    """Return the rows under a law ∝ f·e^{δt}: w = e^{δt}/∫e^{δs}f(s | x)ds, b = r̄, e = y − r̄.

    r̄ = ∫r̂·(tilted density). With y − r̂(t, x) for e the error would not hold that of f. Where
    outcomes are missing, b = r̄ + w(r̂(t, x) − r̄) and e = y − r̂(t, x): their sum is the same where
    an outcome is seen for sure.
    """
    n, t, delta = len(rows.y), rows.t[:, 0], policy.strength
    lower = np.maximum(_bound(prepared.log, -np.inf), dose.low - dose.unit)
    upper = np.minimum(_bound(prepared.log, np.inf), dose.high + dose.unit)
    if dose.masses is not None:
        lower, upper = np.maximum(lower, dose.masses.low), np.minimum(upper, dose.masses.high)
    top = upper if delta > 0.0 else lower
    parts: list[tuple[Array, Array]] = []
    if not dose.levels:
        for node, share in zip(*_gauss(NODES), strict=True):
            s = lower + (upper - lower) * node
            parts.append((s, share * (upper - lower) * dose.density(prepared, s)))
    p = dose.probabilities(prepared)
    parts.extend((np.full(n, a), p[:, k]) for k, a in enumerate(dose.values))
    plain, tilted, predicted = np.zeros(n), np.zeros(n), np.zeros(n)
    for s, f in parts:
        more = f * np.exp(delta * (s - top))
        plain, tilted = plain + f, tilted + more
        if prepared.outcome is not None:
            predicted += more * prepared.outcome(s[:, None])
    if not (tilted > 0.0).all():
        raise DataError(
            f"The `strength` {delta:g} of `Tilt` leaves no dose that was given in "
            f"{int(np.sum(tilted <= 0.0)):,} of {n:,} rows. Ask about a smaller one."
        )
    w = np.exp(delta * (t - top)) * plain / tilted
    off = dose.index(t) < 0 if dose.levels else np.zeros(n, dtype=bool)
    w = np.where(off, 1.0, w)
    mean = None if prepared.outcome is None else predicted / tilted
    baseline, reference = mean, mean
    if prepared.factor is not None and mean is not None and rows.r_logged is not None:
        # A missing outcome is predicted at the dose that was given: y = r̂(t, x) + a(y − r̂(t, x)).
        baseline, reference = mean + w * (rows.r_logged - mean), rows.r_logged
    return replace(
        rows,
        r_tau=baseline,
        r_logged=reference,
        fixed=as_seen(prepared, t) * w,
        share=np.zeros(n),
        kept=np.zeros(n, dtype=bool),
        off_levels=off if delta else np.zeros(n, dtype=bool),
    )


def _randomized(rows: Rows, policy: Randomized, prepared: Prepared, dose: DoseLaw) -> Rows:
    """Return the rows under draws from g = N(τ(x), sd²) within bounds: w = g/f, b = ∫r̂g."""
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    from titrant.evaluation.models.nuisance import check_within_bounds  # noqa: PLC0415

    log, t, sd = prepared.log, rows.t[:, 0], policy.sd
    if dose.levels:
        raise DataError(
            f"The doses of the log are levels, and a draw from a normal law is none of them. Ask "
            f"about a rule that gives levels, such as `Rounded({policy.policy!r}, step)`."
        )
    tau = policy.policy.of_rows(log)
    check_within_bounds(tau, log)
    m = tau[:, 0]
    low, high = (ndtr((_bound(log, end) - m) / sd) for end in (-np.inf, np.inf))
    moved = replace(rows, tau=tau, kept=np.zeros(len(t), dtype=bool))
    if prepared.outcome is not None:
        mean = np.zeros(len(t))
        for node, share in zip(*_gauss(DRAWN_NODES), strict=True):
            s = np.clip(m + sd * ndtri(low + (high - low) * node), *_range(log))
            mean += share * prepared.outcome(s[:, None])
        moved = replace(moved, r_tau=mean)
    if rows.q is None:
        return moved
    g = np.exp(-0.5 * ((t - m) / sd) ** 2) / (np.sqrt(2.0 * np.pi) * sd * (high - low))
    fixed = np.where(dose.index(t) < 0, g / rows.q, 0.0)
    return replace(moved, fixed=fixed, share=np.zeros(len(t)))


def _predicted(rows: Rows, tau: Array, prepared: Prepared) -> Rows:
    column = tau[:, None]
    r_tau = None if prepared.outcome is None else prepared.outcome(column)
    return replace(rows, tau=column, r_tau=r_tau)


def as_seen(prepared: Prepared, t: Array) -> Array:
    """Return Δ/P(Δ = 1 | x, t) (n,) at the logged doses, 1 where no outcome is missing."""
    if prepared.factor is None:
        return np.ones(len(t))
    return prepared.factor if prepared.of_all is None else prepared.factor * prepared.of_all(t)


def _bound(log: LoggedData, side: float) -> Array:
    """Return the least (side −∞) or the greatest dose that is possible in each row (n,)."""
    if not log.bounded:
        return np.full(len(log), side)
    return np.asarray((log.lower if side < 0.0 else log.upper)[:, 0])


def _range(log: LoggedData) -> tuple[Array, Array]:
    return _bound(log, -np.inf), _bound(log, np.inf)


def _gauss(size: int) -> tuple[list[float], list[float]]:
    """Return nodes and weights of Gauss–Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    return ((nodes + 1.0) / 2.0).tolist(), (weights / 2.0).tolist()


def doses_under(policy: Move, log: LoggedData) -> Array:
    """Return the doses (n, 1) that become of those logged; of draws, what they lie about."""
    if isinstance(policy, Limited | OneToOne):
        return Goes.of(policy, log)(log.treatment)[0][:, None]
    if isinstance(policy, Randomized):
        return policy.policy.of_rows(log)
    return log.doses


# What is said of such a policy where doses have point masses.


def move_findings(
    masses: PointMasses, smoothed: int, asked: AskedMasses | None, n: int
) -> Iterator[Check | str]:
    """Yield what is found about a policy on a log whose doses have point masses.

    A kernel has a say in the weights of ``smoothed`` of n rows.
    """
    told = f"Of the log, {masses.told()}."
    off_levels = 0 if asked is None else asked.off_levels
    if off_levels:
        yield rules.off_levels(off_levels, n)
    if not smoothed:
        yield f"{told} A row at one of these keeps it or gets another: no bandwidth is needed."
        return
    yield (
        f"{told} The policy changes some of these doses, or moves many doses to the same one; a "
        "dose given exactly there is valued by the rows close by, within the bandwidth."
    )
    if masses.levels:
        elsewhere = smoothed if asked is None else asked.elsewhere - off_levels
        yield rules.between_levels(elsewhere / n, 0.0, WIDE, masses.values.tolist())
