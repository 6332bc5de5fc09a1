"""Policies that change the dose that was given: d(t, x), or a law that dose is drawn from anew.

They ask about doses near those in the log: "five fewer a day", "ten percent off", "never above
40". What they give depends on the logged dose, so they are evaluated, and recommend nothing for
contexts alone. Where the log has T with the density f(t | x), a policy that moves it has another
one, and their ratio weights the rows; no bandwidth is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check
from titrant.errors import DataError, InvalidArgument
from titrant.policies.base import Policy
from titrant.policies.calling import checked_doses
from titrant.policies.constant import StatusQuo, as_policy
from titrant.policies.formats.saving import feature_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from titrant._types import Array

    OfDose = Callable[[Array, Array], ArrayLike]


class Move(Policy):
    """A policy whose dose depends on the one that was given."""

    __slots__ = ()

    def __call__(self, X: Array) -> Array:  # noqa: ARG002
        """Refuse: the dose that was given is in the log, not in the contexts."""
        name = type(self).__name__
        raise InvalidArgument(
            f"`{name}` changes the dose that was given, so it has none for contexts alone. Use it "
            "in `evaluate`, `compare` or `curve`, on a log; `low` and `high` keep it within bounds."
        )

    @property
    def is_rule(self) -> bool:
        """Not a rule: it is about the rows of a log."""
        return False

    @property
    def features(self) -> tuple[str, ...] | None:
        """No context at all, unless a policy says otherwise."""
        return ()


class OneToOne(Move):
    """A policy d(t, x) that is one-to-one in t, kept between `low` and `high`.

    A row whose new dose would lie beyond keeps its dose, and so does one beyond the log's bounds.
    """

    __slots__ = ()

    low: float
    high: float

    @abstractmethod
    def moved(self, x: Array, t: Array) -> Array:
        """Return d(t, x) (n,) of contexts x (n, p) and doses t (n,)."""

    @abstractmethod
    def origin(self, x: Array, t: Array, sd: float = 1.0) -> tuple[Array, Array]:
        """Return d⁻¹(t, x) and |∂d⁻¹/∂t| (n,); ``sd`` is that of the doses, for their unit."""

    def check_ends(self) -> None:
        """Check `low` and `high`; None is an open side."""
        ends = _ends(self.low, self.high, type(self).__name__)
        for name, end in zip(("low", "high"), ends, strict=True):
            object.__setattr__(self, name, end)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shift(OneToOne):
    """d(t) = t + by: everyone gets so much more, or less.

    A row whose dose would leave `low` … `high`, or the log's bounds, keeps it.

    >>> Shift(-5.0, low=0.0).moved(np.empty((2, 0)), np.array([20.0, 30.0]))
    array([15., 25.])
    """

    by: float
    low: float = field(default=-np.inf)
    high: float = field(default=np.inf)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _check.number(self.by, "by", "Shift"))
        self.check_ends()

    def moved(self, x: Array, t: Array) -> Array:  # noqa: ARG002
        """Return t + by (n,)."""
        return t + self.by

    def origin(self, x: Array, t: Array, sd: float = 1.0) -> tuple[Array, Array]:  # noqa: ARG002
        """Return t − by and 1 (n,)."""
        return t - self.by, np.ones_like(t)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Multiply(OneToOne):
    """d(t) = by·t, by > 0: ten percent off every price is `Multiply(0.9)`.

    A row whose dose would leave `low` … `high`, or the log's bounds, keeps it.

    >>> Multiply(0.9).moved(np.empty((2, 0)), np.array([10.0, 20.0]))
    array([ 9., 18.])
    """

    by: float
    low: float = field(default=-np.inf)
    high: float = field(default=np.inf)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _check.positive(self.by, "by", "Multiply"))
        self.check_ends()

    def moved(self, x: Array, t: Array) -> Array:  # noqa: ARG002
        """Return by·t (n,)."""
        return self.by * t

    def origin(self, x: Array, t: Array, sd: float = 1.0) -> tuple[Array, Array]:  # noqa: ARG002
        """Return t/by and 1/by (n,)."""
        return t / self.by, np.full_like(t, 1.0 / self.by)


STEP = 1e-5
"""Half the step, in sd(T), over which the slope of an inverse is taken where it is not given."""
NEARLY = 1e-6
"""How far, in units of the doses, an inverse may miss the dose that it should give back."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Moved(OneToOne):
    """d(t, x) = function(x, t), one-to-one in t, with its inverse(x, t).

    All three are functions of contexts (n, p) and doses (n,) that treat each row by itself. The
    `slope` is ∂inverse/∂t; without it, it is taken from the inverse by differences. With
    `features` they get those columns in that order, else the contexts in the order of the log. A
    row whose dose would leave `low` … `high`, or the log's bounds, keeps it.

    >>> halved = Moved(lambda x, t: t / 2, lambda x, t: 2 * t)
    >>> halved.origin(np.empty((1, 0)), np.array([3.0]))[0]
    array([6.])
    """

    function: OfDose
    inverse: OfDose = None  # type: ignore[assignment]  # left out, it is refused in a sentence
    slope: OfDose | None = None
    low: float = field(default=-np.inf, kw_only=True)
    high: float = field(default=np.inf, kw_only=True)
    features: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("function", "inverse", "slope"):
            given = getattr(self, name)
            if not (callable(given) or (given is None and name == "slope")):
                rule = "a function of contexts (n, p) and doses (n,)"
                if name == "inverse":
                    rule += ", the dose that becomes t"
                raise _check.invalid(name, "Moved", rule, given)
        object.__setattr__(self, "features", feature_names(self.features, None, "Moved"))
        self.check_ends()

    def moved(self, x: Array, t: Array) -> Array:
        """Return function(x, t) (n,), refused where the inverse does not lead back to t."""
        to = _of_dose(self.function, "function", x, t)
        back = _of_dose(self.inverse, "inverse", x, to)
        scale = max(float(np.abs(t).max(initial=0.0)), float(np.ptp(t)) if len(t) else 0.0)
        off = np.abs(back - t) > NEARLY * scale
        if off.any():
            i = int(np.argmax(off))
            raise DataError(
                f"The `inverse` of `Moved` does not lead back to the dose in {off.sum():,} of "
                f"{len(t):,} rows: it makes {back[i]:.6g} of {to[i]:.6g}, which the function made "
                f"of {t[i]:.6g}. Give functions with inverse(x, function(x, t)) = t."
            )
        return to

    def origin(self, x: Array, t: Array, sd: float = 1.0) -> tuple[Array, Array]:
        """Return inverse(x, t) and |∂inverse/∂t| (n,)."""
        s = _of_dose(self.inverse, "inverse", x, t)
        if self.slope is not None:
            return s, np.abs(_of_dose(self.slope, "slope", x, t))
        above, below = t + STEP * sd, t - STEP * sd
        up, down = (_of_dose(self.inverse, "inverse", x, at) for at in (above, below))
        return s, np.abs(up - down) / (above - below)

    def to_dict(self) -> dict[str, Any]:
        """Refuse: code is not data."""
        raise InvalidArgument(
            "`Moved` holds Python functions and cannot be saved as data. Save a policy such as "
            "`Shift` or `Multiply`, or keep the functions in a module."
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Limited(Move):
    """d(t) = min(max(t, low), high): what was given, capped. None is an open side.

    The doses beyond an end become that very dose, which is valued as a constant one is, by rows
    close to it; the others stay as they are.

    >>> Limited(high=40.0).moved(np.array([35.0, 50.0]))
    array([35., 40.])
    """

    low: float = field(default=-np.inf)
    high: float = field(default=np.inf)

    def __post_init__(self) -> None:
        low, high = _ends(self.low, self.high, "Limited")
        if np.isinf(low) and np.isinf(high):
            rule = "a number where `low` is none: a cap on either side"
            raise _check.invalid("high", "Limited", rule, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def moved(self, t: Array) -> Array:
        """Return the doses t (n,), capped."""
        return np.clip(t, self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tilt(Move):
    """Draw from a density ∝ f(t | x)·e^{strength·t}: higher doses more often than before, or less.

    At the strength log(2)/10 a dose of 10 more becomes twice as likely, beside the other, as it
    was. Doses that were never given to such contexts are not given now.

    >>> Tilt(0.5)
    Tilt(strength=0.5)
    """

    strength: float

    def __post_init__(self) -> None:
        strength = _check.number(self.strength, "strength", "Tilt")
        object.__setattr__(self, "strength", strength)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Randomized(Move):
    """Draw from N(policy(x), sd²), within the log's bounds: a rule that is followed roughly.

    >>> from titrant.policies import Constant
    >>> Randomized(Constant(35.0), sd=2.0)
    Randomized(policy=Constant(dose=35.0), sd=2.0)
    """

    policy: Policy
    sd: float

    def __post_init__(self) -> None:
        inner = as_policy(self.policy)
        if isinstance(inner, (Move, StatusQuo)):
            rule = "a policy that gives contexts their dose, such as Constant(35.0)"
            raise _check.invalid("policy", "Randomized", rule, inner)
        object.__setattr__(self, "policy", inner)
        object.__setattr__(self, "sd", _check.positive(self.sd, "sd", "Randomized"))

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the context columns of the policy inside."""
        return self.policy.features


MOVES: tuple[type[Move], ...] = (Shift, Multiply, Limited, Tilt, Randomized)
"""Every policy that changes the logged dose and can be saved."""


def _ends(low: object, high: object, owner: str) -> tuple[float, float]:
    """Return the ends of doses, None and infinity being an open side."""
    least = -np.inf if low is None or low == -np.inf else _check.number(low, "low", owner)
    most = np.inf if high is None or high == np.inf else _check.number(high, "high", owner)
    if not least < most:
        raise _check.invalid("high", owner, f"above `low` = {least:g}", high)
    return least, most


def _of_dose(function: OfDose, name: str, x: Array, t: Array) -> Array:
    value = checked_doses(function(x, t), len(t), f"{name} of the policy `Moved`")
    if value.ndim > 1:
        raise DataError(
            f"The {name} of the policy `Moved` must return one number a row, shape ({len(t)},); "
            f"got {value.shape}."
        )
    return value
