"""When not to trust an estimate: from a number to a verdict, one rule a function.

Each rule states its limits as constants with their reason. Limits on distances that have a
standard error are in standard errors; where a large log would make any distance significant,
the distance must also be material.

Limits were set on ten simulated designs of 1,000 rows, each with a good and a poor outcome model.
With right propensities 92 % of the logs pass; 95 % intervals cover in .96 of those and in .71 of
the others. Where doses depend on the context, propensities that ignore it are warned about in
83 % of the logs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from titrant.inference.diagnostics import Check, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant.inference.balance import Imbalance
    from titrant.inference.columns import Coded

ESS_WANTED, ESS_NEEDED = 30.0, 10.0
"""Below 30 effective rows intervals begin to miss too often, below 10 they mean nothing."""
SHARE_MUCH, SHARE_TOO_MUCH = 0.1, 0.3
"""One row that holds a tenth of all weight colors the estimate; one that holds 30 % is it."""
TAIL_INDEX = 0.7
"""Above this shape k weighted means settle too slowly for their standard errors to be true."""
MEAN_WEIGHT_SE = 3.0
"""Beyond it the mean weight is not 1 by chance (1 in 370)."""
MEAN_WEIGHT_LOW, MEAN_WEIGHT_HIGH = 0.5, 2.0
"""Beyond these, too, half of the weight that belongs to the policy's doses is missing, or the
propensities are wrong by a factor: the estimate is of other doses than those asked about."""
FLOOR_SHARE = 0.05
"""Raised rows count less than they should, by an unknown factor; a twentieth of all weight, taken
at twice its due, is as much as the standard error of 400 effective rows."""
OUTSIDE_SHARE, OUTSIDE_MOST = 0.1, 0.5
"""Where the policy leaves the support, rows with the nearest doses stand in for missing ones; when
that is so for most rows, the estimate is an extrapolation."""
MODEL_GAP_SE = 2.58
"""1 in 100 by chance. Both sides are bias-corrected: at the bandwidth that suits the doubly
robust estimate the plain self-normalized one is smoothed too much, and the two differ by more
than 2 SE in most *good* logs."""
SMOOTHING_GAP_SE = 1.5
"""At the best bandwidth the smoothing bias is about half a standard error."""
SENSITIVITY_SE = 4.0
"""At twice the best bandwidth the bias is about 2 SE and noise adds 1; 1 % of good logs reach 4."""
IMBALANCE_SD = 0.1
"""The usual limit of a material standardized difference."""
IMBALANCE_RATE = 0.0027
"""How often chance alone may pass the limit over all contexts together: 3 SE for a single one."""
PIT_DISTANCE, PIT_RATE = 0.05, 0.001
"""A distribution function off by 5 points moves weights by about a tenth of their size."""
STABILIZED_GAP, STABILIZED_SE = 0.1, 3.0
"""The mean stabilized weight estimates 1; its marginal density is itself good to a few percent."""

SPREAD_LEFT = 0.1
"""A context most of whose variance is that of a few rows says next to nothing of the others."""


def judge(value: float, *, warn: bool, refuse: bool = False) -> Verdict:
    """Return the verdict of a check from whether its limits are passed; a nan is refused."""
    if refuse or math.isnan(value):
        return Verdict.REFUSE
    return Verdict.WARN if warn else Verdict.OK


def effective_sample_size(ess: float, rows: int) -> Check:
    """Return the check of (Σw)²/Σw²."""
    return _check(
        "effective_sample_size",
        ess,
        f"The effective sample size is {_count(ess)} of {rows:,} rows ({ESS_WANTED:g} wanted, "
        f"{ESS_NEEDED:g} needed).",
        "Ask about a policy closer to the log, widen the bandwidth, or collect more rows.",
        judge(ess, warn=ess < ESS_WANTED, refuse=ess < ESS_NEEDED),
    )


def largest_weight_share(shares: tuple[float, float, float]) -> Check:
    """Return the check of the shares of Σ|w| that the largest 1, 5 and 10 weights hold."""
    one, five, ten = shares
    return _check(
        "largest_weight_share",
        one,
        f"The largest weight holds {_percent(one)} of all weight ({_percent(SHARE_MUCH)} is much, "
        f"{_percent(SHARE_TOO_MUCH)} too much), the largest 5 {_percent(five)}, "
        f"the largest 10 {_percent(ten)}.",
        "Raise `clip` or the bandwidth, or ask about a policy closer to the log.",
        judge(one, warn=one > SHARE_MUCH, refuse=one > SHARE_TOO_MUCH),
    )


def weight_tail(index: float) -> Check:
    """Return the check of the tail index k̂ of the largest weights."""
    return _check(
        "weight_tail",
        index,
        f"The tail index of the largest weights is {index:.2f} (above {TAIL_INDEX:g} a few rows "
        "to come could change the estimate).",
        "Raise `clip` or the bandwidth, or ask about a policy closer to the log.",
        judge(index, warn=index > TAIL_INDEX),
    )


def mean_weight(mean: float, se: float) -> Check:
    """Return the check that the weights average to 1."""
    far = abs(mean - 1.0) > MEAN_WEIGHT_SE * se
    return _check(
        "mean_weight",
        mean,
        f"The mean weight is {mean:.3f} ± {se:.3f} and should be 1 within {MEAN_WEIGHT_SE:g} SE "
        f"(beyond {MEAN_WEIGHT_LOW:g} … {MEAN_WEIGHT_HIGH:g} it is refused).",
        "The propensities look wrong, or the policy leaves the support: check both.",
        judge(mean, warn=far, refuse=far and not MEAN_WEIGHT_LOW <= mean <= MEAN_WEIGHT_HIGH),
    )


def floor_share(share: float, floor: float, of_rows: float) -> Check:
    """Return the check of the share of Σ|w| on rows whose propensity the floor raised.

    Raised rows far from the policy's doses have no weight and do no harm, hence not ``of_rows``.
    """
    return _check(
        "floor_share",
        share,
        f"The floor {floor:.3g} raised the propensity of {_percent(of_rows)} of all rows; they "
        f"hold {_percent(share)} of the weight ({_percent(FLOOR_SHARE)} is much).",
        "Lower `clip`, check the propensities, or ask about a policy closer to the log: such rows "
        "count less than they should.",
        judge(share, warn=share > FLOOR_SHARE),
    )


def dose_bin(low: float, high: float, bins: str, off: float, logged: str | None) -> Check:
    """Return the check of which bin a policy's doses, from low to high, fell in.

    ``off`` is the share of rows whose dose is none of the logged levels; ``logged`` are the levels
    that answer for them, None where doses were logged over a range.
    """
    doses = f"dose {low:.6g} is" if low == high else f"doses, {low:.6g} to {high:.6g}, are"
    found = f"The policy's {doses} valued by the rows of the bin {bins}"
    if logged is None:
        found += "; the value is that of the doses logged there."
    elif not off:
        found += f", logged at {logged}."
    else:
        found += (
            f", logged at {logged}: in {_percent(off)} of the rows no such dose was ever logged, "
            "and the value is that of the logged ones."
        )
    remedy = "Ask about a dose that was logged, such as the one of this bin."
    return _check("dose_bin", off, found, remedy, judge(off, warn=off > 0.0 and bool(logged)))


def support(share: float, level: float, *, surrogate: bool) -> Check:
    """Return the check of the share of rows whose policy dose lies outside the support."""
    by = ", by a linear-Gaussian model fitted for this check alone" if surrogate else ""
    return _check(
        "support",
        share,
        f"The policy's dose lies outside the support in {_percent(share)} of the rows (density "
        f"under {level:.3g} or far beyond all logged doses{by}; {_percent(OUTSIDE_SHARE)} is much, "
        f"{_percent(OUTSIDE_MOST)} too much).",
        "Keep the policy near doses that were logged for such contexts, for example by `Clipped`.",
        judge(share, warn=share > OUTSIDE_SHARE, refuse=share > OUTSIDE_MOST),
    )


def boundary_mass(share: float, *, corrected: bool) -> Check:
    """Return the check of the share of rows with a policy dose within h of a bound."""
    return _check(
        "boundary_mass",
        share,
        f"The policy's dose is within h of a bound in {_percent(share)} of the rows, where the "
        f"kernel is {'' if corrected else 'not '}corrected (none may be without correction).",
        "Use `boundary=Boundary.LINEAR`, the default.",
        judge(share, warn=share > 0.0 and not corrected),
    )


def smoothing_gap(gap: float) -> Check:
    """Return the check of |v̂ − v̂ bias-corrected| in standard errors."""
    return _check(
        "smoothing_gap",
        gap,
        f"The estimate and its bias-corrected center differ by {gap:.2f} SE "
        f"({SMOOTHING_GAP_SE:g} is much).",
        "The outcome bends sharply at the policy's dose: trust the bias-corrected interval.",
        judge(gap, warn=gap > SMOOTHING_GAP_SE),
    )


def outcome_model_gap(gap: float) -> Check:
    """Return the check of |doubly robust − self-normalized| in standard errors of the difference.

    Both by the local quadratic kernel at the same bandwidth.
    """
    return _check(
        "outcome_model_gap",
        gap,
        f"With and without the outcome model the bias-corrected estimates differ by {gap:.2f} SE "
        f"of their difference ({MODEL_GAP_SE:g} is much).",
        "The propensities or the outcome model are wrong: check the calibration by "
        "`titrant.check`, and try other models.",
        judge(gap, warn=gap > MODEL_GAP_SE),
    )


def bandwidth_sensitivity(spread: float) -> Check:
    """Return the check of the range of the estimates between h/2 and 2h, in standard errors."""
    return _check(
        "bandwidth_sensitivity",
        spread,
        f"Between half and twice the bandwidth the estimate moves by {spread:.2f} SE "
        f"({SENSITIVITY_SE:g} is much).",
        "Look at the bandwidth path, and trust the bias-corrected interval more than the estimate.",
        judge(spread, warn=spread > SENSITIVITY_SE),
    )


def covariate_balance(found: Imbalance, names: tuple[str, ...]) -> Check:
    """Return the check of the context that the weights move most."""
    limit = _bonferroni(IMBALANCE_RATE, len(names))
    material = (found.in_sd > IMBALANCE_SD) & (found.in_se > limit)
    worst = np.where(material, found.in_sd, 0.0) if material.any() else found.in_sd
    j = int(np.argmax(worst))
    in_sd, in_se = float(found.in_sd[j]), float(found.in_se[j])
    return _check(
        "covariate_balance",
        in_sd,
        f"Under the weights the mean of {names[j]!r} moves by {in_sd:.2f} sd, {in_se:.1f} SE "
        f"(beyond {IMBALANCE_SD:g} sd and {limit:.1f} SE is much).",
        "The propensities do not describe how doses depended on this context: use another model.",
        judge(in_sd, warn=bool(material.any())),
    )


def coded_values(name: str, found: Sequence[Coded], rows: int) -> Check:
    """Return the check of values that look like codes, such as −9999 for a missing number."""
    listed = "; ".join(f"{c.column!r} is {c.value:g} in {c.rows:,} rows" for c in found)
    return _check(
        name,
        float(max(c.rows for c in found)),
        f"Far from all other values, {listed} (of {rows:,}): this looks like a code, not a number.",
        "Say what was not recorded as missing, or drop these rows.",
        Verdict.WARN,
    )


def stray_doses(name: str, farthest: float) -> Check:
    """Return the check of doses of which a few lie so far off that they are most of the spread."""
    return _check(
        "stray_doses",
        farthest,
        f"Most of the spread of the {name} is that of a few rows far from all others, such as "
        f"{farthest:.6g}: models of the doses follow them.",
        "Correct these doses or drop the rows.",
        Verdict.WARN,
    )


def silent_contexts(names: Sequence[str], of: int) -> Check:
    """Return the check of contexts that vary by rounding only, or in a few rows only."""
    listed = ", ".join(map(repr, names))
    return _check(
        "silent_contexts",
        float(len(names)),
        f"Of {of:,} contexts, {listed} say{'s' * (len(names) == 1)} next to nothing: the values "
        "vary by rounding only, or a few of them lie far from all others.",
        "Subtract a large offset, correct the values, or take logarithms; until then nothing is "
        "adjusted for it.",
        Verdict.WARN,
    )


def propensity_pit(distance: float, p_value: float) -> Check:
    """Return the check that held-out doses fall evenly over their fitted distributions."""
    return _check(
        "propensity_pit",
        distance,
        f"The ranks F(t | x) of held-out doses are {distance:.3f} from even, p = {p_value:.2g} "
        f"(beyond {PIT_DISTANCE:g} with p < {PIT_RATE:g} is much).",
        "Use a propensity model of another shape, such as LocationScale() or KernelConditional().",
        judge(distance, warn=distance > PIT_DISTANCE and p_value < PIT_RATE),
    )


def stabilized_weight(mean: float, se: float) -> Check:
    """Return the check that g(t)/f(t | x), g the density of all doses, averages to 1."""
    gap = abs(mean - 1.0)
    # One huge weight makes a huge SE with it, so beyond 2 the SE is no excuse.
    far = gap > STABILIZED_SE * se or gap > 1.0
    digits = ".3f" if gap < 1000.0 else ".3g"  # noqa: PLR2004
    return _check(
        "stabilized_weight",
        mean,
        f"The held-out mean of f(t)/f(t | x) is {mean:{digits}} ± {se:{digits}} and should be 1 "
        f"(beyond {STABILIZED_GAP:g} and {STABILIZED_SE:g} SE is much).",
        "The propensities are wrong or hardly overlap: check the model or the column.",
        judge(mean, warn=gap > STABILIZED_GAP and far),
    )


def overlap(reason: str) -> Check:
    """Return the refusal of a policy that no logged dose comes near, in the words of its error."""
    return Check("overlap", 0.0, Verdict.REFUSE, reason)


def _check(name: str, value: float, fact: str, remedy: str, verdict: Verdict) -> Check:
    """Return the check whose message is the fact and, unless it is ok, the remedy."""
    message = fact if verdict is Verdict.OK else f"{fact} {remedy}"
    return Check(name, float(value), verdict, message)


def _bonferroni(rate: float, tests: int) -> float:
    """Return how many SEs chance alone passes at ``rate`` in any of several two-sided tests."""
    from scipy.special import ndtri  # noqa: PLC0415

    return float(-ndtri(rate / (2 * tests)))


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= ESS_WANTED else f"{number:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
