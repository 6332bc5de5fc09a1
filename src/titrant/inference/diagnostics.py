"""When not to trust an estimate: checks with a number, a verdict and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from titrant.errors import UntrustedEstimate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from titrant.inference.base import Interval


class Verdict(Enum):
    """What a check says of an estimate."""

    OK = "ok"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Check:
    """One number about an estimate, with its verdict."""

    name: str
    value: float
    verdict: Verdict
    message: str
    """A sentence with the number, the rule and, unless ok, the remedy."""


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The checks of one estimate; its verdict is that of the worst."""

    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst check."""
        order = list(Verdict)
        return max((c.verdict for c in self.checks), key=order.index, default=Verdict.OK)

    def __getitem__(self, name: str) -> Check:
        """Return the check called `name`."""
        return next(c for c in self.checks if c.name == name)

    def messages(self, verdict: Verdict) -> list[str]:
        """Return the sentences of all checks with this verdict."""
        return [c.message for c in self.checks if c.verdict is verdict]

    def require_trust(self) -> None:
        """Raise an error with the numbers and remedies when a check refuses."""
        if self.verdict is Verdict.REFUSE:
            reasons = " ".join(self.messages(Verdict.REFUSE))
            raise UntrustedEstimate(
                f"{reasons} Pass `allow_untrusted=True` to see the number all the same."
            )

    def to_dict(self) -> dict[str, object]:
        """Return the checks as plain values."""
        checks = {
            c.name: {"value": c.value, "verdict": c.verdict.value, "message": c.message}
            for c in self.checks
        }
        return {"verdict": self.verdict.value, "checks": checks}


def judge(value: float, *, warn: bool, refuse: bool = False) -> Verdict:
    """Return the verdict of a check from whether its limits are passed; a nan is refused."""
    if refuse or value != value:  # noqa: PLR0124  (only nan differs from itself)
        return Verdict.REFUSE
    return Verdict.WARN if warn else Verdict.OK


def weight_checks(
    *, ess: float, largest_share: float, mean_weight: float, mean_weight_se: float, rows: int
) -> Iterable[Check]:
    """Return the checks of the weights behind an estimate."""
    yield Check(
        "effective_sample_size",
        ess,
        judge(ess, warn=ess < 30, refuse=ess < 10),  # noqa: PLR2004
        f"The effective sample size is {ess:.3g} of {rows:,} rows (30 wanted, 10 needed)."
        + ("" if ess >= 30 else " Ask about a policy closer to the log, or collect more rows."),  # noqa: PLR2004
    )
    yield Check(
        "largest_weight_share",
        largest_share,
        judge(largest_share, warn=largest_share > 0.1, refuse=largest_share > 0.3),  # noqa: PLR2004
        f"The largest weight is {largest_share:.1%} of all weight (10 % is much, 30 % too much)."
        + ("" if largest_share <= 0.1 else " Raise `clip` or the bandwidth."),  # noqa: PLR2004
    )
    far = abs(mean_weight - 1.0) > 3.0 * mean_weight_se
    yield Check(
        "mean_weight",
        mean_weight,
        judge(mean_weight, warn=far),
        f"The mean weight is {mean_weight:.3f} ± {mean_weight_se:.3f} and should be 1."
        + (" The propensities look wrong, or the policy leaves the support." if far else ""),
    )


def smoothing_check(value: float, interval: Interval) -> Check:
    """Return the check that the estimate and its bias-corrected center agree."""
    gap = abs(value - interval.center) / interval.se if interval.se > 0 else 0.0
    large = gap > 1.5  # noqa: PLR2004
    return Check(
        "smoothing_gap",
        gap,
        judge(gap, warn=large),
        f"The estimate and its bias-corrected center differ by {gap:.2f} SE (1.5 is much)."
        + (" The outcome bends sharply at the policy's dose: trust the interval." if large else ""),
    )
