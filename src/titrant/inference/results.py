"""What an evaluation returns: frozen, self-describing, and plain when asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from titrant.errors import InvalidArgument
from titrant.inference.diagnostics import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from titrant.bandwidth import Bandwidth
    from titrant.inference.base import Interval
    from titrant.inference.diagnostics import Diagnostics


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The value of one policy on one log, with how sure one may be of it."""

    policy: str
    value: float
    """The estimate v̂ at the chosen bandwidth."""
    se: float
    """Its standard error by the delta method (variance only; the interval also knows the bias)."""
    rows: int
    ess: float
    """Effective sample size."""
    method: Mapping[str, Any]
    """Estimator, kernel, propensity, floor and outcome model, as plain values."""
    bandwidth: Bandwidth | None
    """None for estimators that have none."""
    confidence: Interval
    diagnostics: Diagnostics

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval at ``level``."""
        return self.confidence.at(level)

    @property
    def trusted(self) -> bool:
        """Whether no check refuses the estimate."""
        return self.diagnostics.verdict is not Verdict.REFUSE

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "policy": self.policy,
            "value": self.value,
            "se": self.se,
            "interval": self.confidence.to_dict(),
            "rows": self.rows,
            "effective_sample_size": self.ess,
            "bandwidth": None if self.bandwidth is None else self.bandwidth.to_dict(),
            "method": dict(self.method),
            "diagnostics": self.diagnostics.to_dict(),
        }

    def __str__(self) -> str:
        low, high = self.interval()
        h = "" if self.bandwidth is None else f"  h {_short(self.bandwidth.h.tolist())}"
        return (
            f"value {self.value:.4g}  95% CI {low:.4g} … {high:.4g}{h}  "
            f"ESS {self.ess:,.0f} of {self.rows:,}  {self.diagnostics.verdict.value}"
        )

    def __repr__(self) -> str:
        return f"Estimate({self.policy}: {self})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """The difference of two policies on the same rows."""

    a: str
    b: str
    difference: float
    """v̂_a − v̂_b; negative means that a loses less."""
    se: float
    confidence: Interval

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the difference at ``level``."""
        return self.confidence.at(level)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "se": self.se,
            "interval": self.confidence.to_dict(),
        }

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.a} − {self.b}: {self.difference:.4g}  95% CI {low:.4g} … {high:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several policies on one log, with all paired differences."""

    estimates: Mapping[str, Estimate]
    contrasts: Mapping[tuple[str, str], Contrast]

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate of the policy called `name`."""
        return self.estimates[self._known(name)]

    def contrast(self, a: str, b: str) -> Contrast:
        """Return how much the value of `a` differs from that of `b`, paired."""
        return self.contrasts[self._known(a), self._known(b)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON; each pair once."""
        names = list(self.estimates)
        pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
        return {
            "estimates": {name: e.to_dict() for name, e in self.estimates.items()},
            "contrasts": [self.contrasts[pair].to_dict() for pair in pairs],
        }

    def __str__(self) -> str:
        width = max(map(len, self.estimates))
        return "\n".join(f"{name:<{width}}  {e}" for name, e in self.estimates.items())

    def _known(self, name: str) -> str:
        if name not in self.estimates:
            known = ", ".join(map(repr, self.estimates))
            raise InvalidArgument(
                f"There is no policy {name!r} in this comparison; it has {known}."
            )
        return name


def _short(h: Any) -> str:  # noqa: ANN401  (a number or nested lists of numbers)
    return f"{h:.4g}" if isinstance(h, float) else "[" + ", ".join(map(_short, h)) + "]"
