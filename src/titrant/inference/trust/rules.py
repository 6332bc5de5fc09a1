"""When not to trust an estimate: from a number to a verdict, one rule a function.

Each rule states its limits as constants with their reason. Limits on distances that have a
standard error are in standard errors; where a large log would make any distance significant,
the distance must also be material.

A warning must mean that the *estimate* is at risk: a check of weights, bins or the floor warns
where what it found also moves the value. Limits were set on the ten tuning designs of
`benchmarks/confounding` and on sixteen variants of them (thin overlap; heavy-tailed contexts,
doses and noise; kinks), 300 and 1,000 rows, 14 logs each at two doses, by the default models and
by the plain ones. On ten fresh logs of each, without the kinks, ok then covers .97 and warned .90
by the default models (999 estimates), .96 and .70 by the plain ones, whose failing logs are meant
to be caught; 2.6 and 2.4 % of the estimates miss with an ok, and 11 % of sound logs are warned
about. On the ten tuning designs alone: .98 and .92 (25 warned of 400), .98 and .64 (141 of 400);
1.8 and 1.5 %; 4 and 5 %.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant.inference.diagnostics import Check, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.inference.trust.alike import NeverGiven
    from titrant.inference.trust.balance import BinnedImbalance, Bins, Imbalance
    from titrant.inference.trust.leftover import Leftover


ESS_WANTED, ESS_NEEDED = 20.0, 10.0
"""Below 10 effective rows intervals mean nothing. From 10 to 30 they are wide and covered in 69 of
69 logs; a standard error that is itself known to a sixth only, at 20, is worth a word."""
TAIL_WANTED, TAIL_NEEDED = 20.0, 5.0
"""Beyond a quantile there are a share of the effective rows: a mean of them, or an end of its
interval, is known no better than their number allows."""
SHARE_MUCH, SHARE_TOO_MUCH = 0.2, 0.3
"""One row that holds a fifth of all weight colors the estimate; one that holds 30 % is it. At 30
effective rows the largest of ordinary weights holds a tenth: 74 of 74 such logs covered."""
TAIL_INDEX, TAIL_SHARE = 0.8, 0.7
"""Above a shape k of 1 even a mean does not settle, and k̂ is good to .1 or .2. It matters if the
five rows with most influence are most of the variance. That is 1 % of sound logs; the tail of the
weights alone, k > .7, the limit of importance sampling, was 9 %, and those logs covered .98."""
MEAN_WEIGHT_SE, MEAN_WEIGHT_GAP, MEAN_WEIGHT_GAP_DR = 3.0, 0.05, 0.25
"""Beyond both the mean weight is not 1 by chance (1 in 370) and the difference is material."""
MEAN_WEIGHT_LOW, MEAN_WEIGHT_HIGH = 0.5, 2.0
"""Beyond these, too, half of the weight that belongs to the policy's doses is missing, or the
propensities are wrong by a factor: the estimate is of other doses than those asked about."""
FLOOR_SHARE, FLOOR_SE = 0.05, 1.0
"""Raised rows count less than they should, by an unknown factor. Below a twentieth of all weight
that is nothing; above, it matters if the value would move were they to count twice. (By their
weight alone a third of the logs with a dose at the edge were warned of, and all of them covered.)
"""
OUTSIDE_SHARE, OUTSIDE_MOST = 0.1, 0.5
"""Where the policy leaves the support, rows with the nearest doses stand in for missing ones; when
that is so for most rows, the estimate is an extrapolation."""
MODEL_GAP_SE = 4.0
"""Both sides are bias-corrected: at the bandwidth that suits the doubly robust estimate the plain
self-normalized one is smoothed too much. The standard error takes fitted models as given, and
without the outcome model the whole confounding rests on the propensities: 2.58 SE, 1 in 100 by
chance, are passed by 6 % of sound logs, which cover; 4 by less than 1 %."""
SMOOTHING_GAP_SE = 1.5
"""At the best bandwidth the smoothing bias is about half a standard error."""
SENSITIVITY_SE = 4.0
"""At twice the best bandwidth the bias is about 2 SE and noise adds 1; 1 % of good logs reach 4."""
IMBALANCE_SD = 0.1
"""The usual limit of a material standardized difference."""
IMBALANCE_RATE = 0.0027
"""How often chance alone may pass the limit over all contexts together: 3 SE for a single one."""
LEVELED_SE, LEVELED_FAR = 0.3, 1.0
"""Imbalance of a bin is harmless as long as leveling it leaves the value alone. With the default
models a third of the imbalance found in bins moves the value by less than .3 SE, and such logs
cover .95 at 300 rows. By chance leveling moves a value by about √(5/effective rows) of its SE; by a
whole SE only if weights and outcome model are wrong together, whatever the bins show."""
LEFT_RATE, LEFT_SE = 0.001, 0.5
"""How often chance alone may show a bias in any of the cells that are looked at, were it normal:
sums of products have longer tails, and of 600 logs of 200 rows without one .003 (normal residuals)
to .008 (log-normal) pass it, of 300 of 1,000 rows none. It matters if it is half a standard error
or more; cells show about two thirds of what is there."""
JUMP_SE, JUMP_LEFT = 3.0, 0.7
"""1 in 370 by chance. At half the bandwidth a jump keeps its size and a bend loses three quarters
of it. Jumps of .5, 1 and 2 residual sds are seen in .08, .38 and .97 of logs of 300 rows, .63, .98
and 1 of 1,000, .93, 1 and 1 of 5,000 (40 each). Without one, .004 of 2,900 estimates are warned of,
.008 of 820 near kinks, .03 of 360 at steep bends."""
CUT_SE = 1.0
"""Predictions are held to the middle of the outcomes and, by the default models, as far again.
Where that moves the value by as much as its standard error, the value rests on rows that the models
cannot reach. (Without that margin, values of long-tailed outcomes were off by 4 SE at 100,000 rows;
not held at all, errors on heavy-tailed contexts doubled.)"""
RICH_SE = 2.0
"""Standard errors by which the plain models' value differs: never passed in 360 sound logs."""
MASS_ROWS_WANTED, MASS_ROWS_NEEDED = 30, 10
"""Rows with exactly the policy's dose: fewer than 10 are not a mean with an error."""
MASS_SHARE = 0.1
"""Of the rows, from which on a policy rests on a point mass."""
PIT_DISTANCE, PIT_RATE = 0.05, 0.001
"""A distribution function off by 5 points moves weights by about a tenth of their size."""
STABILIZED_GAP, STABILIZED_SE = 0.1, 3.0
"""The mean stabilized weight estimates 1; its marginal density is itself good to a few percent."""

RATIO_WANTED, RATIO_NEEDED = 0.25, 0.1
"""The effective share of rows behind a policy that changes the logged dose. Its weights are ratios
of densities, whose tails grow with the change: intervals covered .93 at .23, .90 at .13 and .74 at
.05 of 1,000 normal doses, and no better of 4,000."""
RATIO_TAIL, RATIO_TAIL_MOST = 0.5, 0.8
"""Beyond a shape k of ½ the variance of the weights does not exist."""
KEPT_SHARE = 0.2
"""Where more rows keep their dose, the policy is another one than its name says."""
BEYOND_SHARE = 0.05
"""Of the rows, moved beyond all logged doses; the largest of normal ones always are, about 2 %."""
RATIO_GAP_SE, RATIO_GAP_SD = 2.58, 0.15
"""1 in 100 by chance. With and without the outcome model such an estimate rests on nearly the same
sums, so that the error of their difference is small and any propensity a little off passes it: it
must also be material. Hours between bounds, whose intervals cover, have gaps of .04 to .12 sd; and
of the misses under confounding `leftover_bias` saw all but 4 of those that a limit of .05 saw."""

GROUPS_WANTED, GROUPS_NEEDED = 30, 10
"""Between 15 groups, the fewest tried, and 30 intervals by group cover about as they should."""
EVEN_WANTED, EVEN_NEEDED = 0.5, 0.1
"""Weights worth half as many even ones make errors 1.4 times as large, a tenth 3.2 times."""
UNSEEN_MUCH, UNSEEN_MOST = 0.05, 0.25
"""Of a population: what hardly any row stands for is not in the value, whatever it is there."""
UNBALANCED_SD = 0.5
"""Weights that leave half an sd between two populations have not brought one to the other."""
SEEN_WANTED, SEEN_NEEDED = 0.5, 0.1
"""Where most outcomes are missing, the value is mostly the models' word."""
UNSEEN_ROWS = 3.0
"""Of m rows, as a share, the others that none of them shows: (1 − 3/m)^m is .05, which is called
the rule of three."""
DESIGN_EFFECT = 1.5
"""A variance so much larger makes a 95 % interval cover .89."""

DRIFT_RATE = 1e-4
"""By chance, of doses and of outcomes, each; where both pass it at 1,000 rows, what drifts moves a
value by about half a standard error or more."""

CARRY_OVER_RATE = 1e-3
"""By chance, of what models leave of outcomes against the dose before, groups being independent."""
LEFT_IN_LEVELS = 0.05
"""The correlation of what models leave of a dose and of the outcome of another row at its level.
Where 400 levels with 2.5 rows each confound as much as noise varies it is .16 to .24, and three
quarters of the confounding are left; of 60 levels with 15 rows each .04 to .11, and values are off
by up to two standard errors."""
NEVER_SHARE, NEVER_ROWS = 0.03, 30
"""People for whom no log can say what the policy's dose would do. A few are in every log: of a
policy one sd off the usual dose about a hundredth. The rows are two small cells."""
FAR_FROM_LEVEL, LEVELS_SHARE = 2.5, 0.05
"""A dose so many sds (of the doses within levels) from the mean dose of its level is hardly ever
given there; where that is so in more than a twentieth of the rows, levels that confound are not
adjusted for by rows but by a model's extrapolation."""

FOLLOWS, FOLLOWS_ROUGHLY, FOLLOWS_SE = 0.3, 0.9, 4.0
"""Doses planned for rows are taken for a function of the contexts. Where a tenth of their variance
beyond the contexts (.3²) is that of the logged dose, they are none, and rows near them are not
those that the weights stand for. Where no model says what the contexts leave of the logged dose,
polynomials do, and only doses that are the logged ones but for little are refused."""

CONFOUNDING = frozenset(
    {
        "planned_doses",
        "mean_weight",
        "covariate_balance",
        "binned_balance",
        "leftover_bias",
        "outcome_model_gap",
        "propensity_pit",
        "coded_contexts",
        "silent_contexts",
        "copied_outcomes",
        "late_outcomes",
        "leaked_outcomes",
        "copied_treatments",
        "acting_gaps",
        "stray_doses",
        "drift",
        "carry_over",
        "level_support",
        "left_in_levels",
        "never_given",
        "decimal_groups",
    }
)
"""The checks whose warning bears on confounding: contexts may not be adjusted for as they should,
so that a difference between policies may be one between those who got other doses. The other
checks are of overlap, smoothing and outcomes."""


def bears_on_confounding(check: Check) -> bool:
    """Return whether a check warns, or refuses, because contexts may not be adjusted for."""
    return check.verdict is not Verdict.OK and check.name in CONFOUNDING


def judge(value: float, *, warn: bool, refuse: bool = False) -> Verdict:
    """Return the verdict of a check from whether its limits are passed; a nan is refused."""
    if refuse or math.isnan(value):
        return Verdict.REFUSE
    return Verdict.WARN if warn else Verdict.OK


def effective_sample_size(ess: float, units: int, noun: str = "rows") -> Check:
    """Return the check of (Σw)²/Σw², w that of a row, or of all rows of a group."""
    return _check(
        "effective_sample_size",
        ess,
        f"The effective sample size is {_count(ess)} of {units:,} {noun} ({ESS_WANTED:g} wanted, "
        f"{ESS_NEEDED:g} needed).",
        f"Ask about a policy closer to the log, widen the bandwidth, or collect more {noun}.",
        judge(ess, warn=ess < ESS_WANTED, refuse=ess < ESS_NEEDED),
    )


def tail_rows(rows: float, beyond: str) -> Check:
    """Return the check of the effective rows on the thin side of a quantile."""
    return _check(
        "tail_rows",
        rows,
        f"About {_count(rows)} effective rows lie {beyond} ({TAIL_WANTED:g} wanted, "
        f"{TAIL_NEEDED:g} needed).",
        "Ask about a quantile nearer to the middle or a larger share, widen the bandwidth, or "
        "collect more rows.",
        judge(rows, warn=rows < TAIL_WANTED, refuse=rows < TAIL_NEEDED),
    )


def group_count(groups: int) -> Check:
    """Return the check of how many groups there are: errors are known from these alone."""
    return _check(
        "group_count",
        groups,
        f"The rows belong to {groups:,} groups ({GROUPS_WANTED} wanted, {GROUPS_NEEDED} needed).",
        "Collect rows of more groups, or take groups that are smaller if these are independent.",
        judge(groups, warn=groups < GROUPS_WANTED, refuse=groups < GROUPS_NEEDED),
    )


def row_weights(evenness: float, rows: int) -> Check:
    """Return the check of (Σω)²/(nΣω²), what n rows of uneven weight are worth in even ones."""
    return _check(
        "row_weights",
        evenness,
        f"The weights of {rows:,} rows are worth {_percent(evenness)} of as many even ones "
        f"({_percent(EVEN_WANTED)} wanted, {_percent(EVEN_NEEDED)} needed).",
        "Trim the largest weights, and say so, or collect more of the rows that count most.",
        judge(evenness, warn=evenness < EVEN_WANTED, refuse=evenness < EVEN_NEEDED),
    )


def population_overlap(share: float, most: float) -> Check:
    """Return the check of the share of a population whose contexts hardly come in the log."""
    return _check(
        "population_overlap",
        share,
        f"{_percent(share)} of the population have contexts that come more than {most:g} times as "
        f"often there as in the log ({_percent(UNSEEN_MUCH)} is much, {_percent(UNSEEN_MOST)} too "
        "much).",
        "The log says next to nothing about them: ask about the part of the population that it "
        "has rows of.",
        judge(share, warn=share > UNSEEN_MUCH, refuse=share > UNSEEN_MOST),
    )


def population_balance(before: Array, after: Array, names: tuple[str, ...]) -> Check:
    """Return the check of how far weighted rows are from a population, in its sds (p,)."""
    j = int(np.argmax(after))
    far = float(after[j])
    return _check(
        "population_balance",
        far,
        f"Weighted to the population, rows differ from it most in {names[j]!r}, by {far:.2f} sd "
        f"({before[j]:.2f} before; largest before {float(before.max()):.2f}; {IMBALANCE_SD:g} sd "
        f"is much, {UNBALANCED_SD:g} sd too much).",
        "The log has too few rows like those of the population: ask about a part that it has.",
        judge(far, warn=far > IMBALANCE_SD, refuse=far > UNBALANCED_SD),
    )


def outcomes_seen(share: float) -> Check:
    """Return the check of the share of rows whose outcome is known."""
    return _check(
        "outcomes_seen",
        share,
        f"The outcome is known in {_percent(share)} of the rows ({_percent(SEEN_WANTED)} wanted, "
        f"{_percent(SEEN_NEEDED)} needed); the others count as like rows of the same contexts and "
        "dose. If the outcome itself decides whether it is known, no such number holds.",
        "Find out why outcomes are missing, and collect those that can be had.",
        judge(share, warn=share < SEEN_WANTED, refuse=share < SEEN_NEEDED),
    )


def repeated_rows(effect: float, what: str, values: str, share: float, *, context: bool) -> Check:
    """Return the check of rows that may belong together, since ``what`` repeats.

    ``effect`` is by how much that makes the variance larger; ``context`` if it is one so far.
    """
    if what == "copies":
        seen = seen_copies(share)
        remedy = "Keep one of each, or give the id of those who have several rows as `groups`."
    else:
        seen = f"The {what} repeats each of {values} values, as an id would"
        instead = ", not as a context" if context else ""
        remedy = f"If it is one, give it as `groups` (`--groups`){instead}: {what}."
    return _check(
        "repeated_rows",
        effect,
        f"{seen}; were they one draw each, the variance would be {effect:.1f} times as large "
        f"({DESIGN_EFFECT:g} is much).",
        remedy,
        judge(effect, warn=effect > DESIGN_EFFECT),
    )


def seen_copies(share: float) -> str:
    """Return how many rows have copies, in words."""
    return f"{_percent(share)} of the rows equal another row"


def drift(doses: float, outcomes: float, along: str = "the order of the rows") -> Check:
    """Return the check of drift in both doses and outcomes, by the p-values of none."""
    worst = max(doses, outcomes)
    return _check(
        "drift",
        worst,
        f"Along {along}, doses (p = {doses:.1g}) and outcomes (p = {outcomes:.1g}) drift beyond "
        f"what the contexts explain (p < {DRIFT_RATE:g} for both is much).",
        "Something that changed over time is not among the contexts: add a column with the time, "
        "such as the date or the number of the visit, and name it as a context.",
        judge(worst, warn=worst < DRIFT_RATE),
    )


def left_in_levels(p: float, shared: float, name: str) -> Check:
    """Return the check of what doses and outcomes of the levels of a text still share."""
    return _check(
        "left_in_levels",
        abs(shared),
        f"Of two rows at one level of {name!r}, what the models leave of the dose of one goes with "
        f"what they leave of the outcome of the other: correlation {shared:.2f}, p = {p:.1g} "
        f"(beyond {LEFT_IN_LEVELS:g} with p < {CARRY_OVER_RATE:g} is much). Levels with few rows "
        "cannot be adjusted for.",
        "Join levels, such as regions of postal codes, or give as contexts what makes them differ.",
        judge(abs(shared), warn=abs(shared) > LEFT_IN_LEVELS and p < CARRY_OVER_RATE),
    )


def carry_over(p: float, pairs: int) -> Check:
    """Return the check of earlier doses that tell about later outcomes, by the p-value of none."""
    return _check(
        "carry_over",
        p,
        f"Within groups, the dose of the row before tells what the models leave of the outcome "
        f"(p = {p:.1g} in {pairs:,} pairs of rows; p < {CARRY_OVER_RATE:g} is much).",
        "Doses act on later rows, or who gets more differs in something that is not recorded: add "
        "the dose before, and the outcome before, as contexts. The value is that of one decision "
        "after the doses of the log, not of having followed the policy all along.",
        judge(p, warn=p < CARRY_OVER_RATE),
    )


def level_support(share: float, column: str, levels: int) -> Check:
    """Return the check of policy doses far from those of their level, in a share of the rows."""
    return _check(
        "level_support",
        share,
        f"In {_percent(share)} of the rows the policy's dose is more than {FAR_FROM_LEVEL:g} sd "
        f"from the doses given at their level of `{column}`, which has {levels:,} of them "
        f"({_percent(LEVELS_SHARE)} is much).",
        "What the policy would do at these levels is the models' guess: ask about a policy closer "
        "to the doses of each, such as one with the level's usual dose, or about a shift.",
        judge(share, warn=share > LEVELS_SHARE),
    )


def never_given(found: NeverGiven, names: Sequence[str]) -> Check:
    """Return the check of the rows for whom the policy's dose is unheard of among rows alike."""
    by = _listed(names, found.contexts) if found.contexts else "the dose expected of them"
    much = found.share > NEVER_SHARE and found.rows >= NEVER_ROWS
    return _check(
        "never_given",
        found.share,
        f"In {_percent(found.share)} of the rows nobody alike in {by} was given a dose near the "
        f"policy's ({_percent(NEVER_SHARE)} is much, from {NEVER_ROWS} rows on).",
        "What the dose would do to them the log does not say, and the value takes it from others: "
        "let the policy leave them at doses they had, or ask about the rest alone by "
        "`weights_to=` or subgroups.",
        judge(found.share, warn=much),
    )


def leftover_bias(found: Leftover, se: float, names: Sequence[str]) -> Check:
    """Return the check of the bias that rows alike in a few contexts show, by the SE of a value."""
    size, alike = abs(found.bias) / se, _listed(names, found.contexts)
    return _check(
        "leftover_bias",
        size,
        f"Rows alike in {alike} share weights and outcomes that the models do not explain, which "
        f"moves the value by about {found.bias:+.3g}, {size:.2g} SE ({LEFT_SE:g} is much, if it is "
        f"beyond chance: p = {found.p_value:.1g} over {found.looks} looks).",
        f"The models miss how dose and outcome go with {alike}. Add a context that says it, such "
        "as a product or a group of levels, or give models of your own.",
        judge(size, warn=found.p_value < LEFT_RATE and size > LEFT_SE),
    )


def _listed(names: Sequence[str], places: Sequence[int]) -> str:
    """Return the names at some places as a list to read."""
    *others, last = (f"`{names[j]}`" for j in places)
    return f"{', '.join(others)} and {last}" if others else last


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


def influence_tail(index: float, share: float) -> Check:
    """Return the check of the tail index k̂ of the rows' weighted residuals.

    ``share`` is that of the five largest in the variance of the estimate.
    """
    return _check(
        "influence_tail",
        index,
        f"The tail index of the rows' weighted residuals is {index:.2f}, and the largest 5 hold "
        f"{_percent(share)} of the variance (above {TAIL_INDEX:g} and {_percent(TAIL_SHARE)} a few "
        "rows to come could change the estimate).",
        "Raise `clip` or the bandwidth, or ask about a policy closer to the log.",
        judge(index, warn=index > TAIL_INDEX and share > TAIL_SHARE),
    )


def ratio_rows(share: float) -> Check:
    """Return the check of (Σw)²/Σw², w ratios of densities, as a share of all rows."""
    return _check(
        "effective_share",
        share,
        f"Under the policy the rows are worth {_percent(share)} of what they are "
        f"({_percent(RATIO_WANTED)} wanted, {_percent(RATIO_NEEDED)} needed).",
        "Ask about a smaller change of the dose.",
        judge(share, warn=share < RATIO_WANTED, refuse=share < RATIO_NEEDED),
    )


def ratio_tail(index: float) -> Check:
    """Return the check of the tail index k̂ of weights that are ratios of densities."""
    return _check(
        "weight_tail",
        index,
        f"The tail index of the weights is {index:.2f} (above {RATIO_TAIL:g} a few rows may "
        f"decide, above {RATIO_TAIL_MOST:g} they do).",
        "Ask about a smaller change of the dose.",
        judge(index, warn=index > RATIO_TAIL, refuse=index > RATIO_TAIL_MOST),
    )


def kept_doses(share: float) -> Check:
    """Return the check of the share of rows that keep their dose at a bound."""
    return _check(
        "kept_doses",
        share,
        f"{_percent(share)} of the rows keep their dose, since the policy's would lie beyond a "
        f"bound ({_percent(KEPT_SHARE)} is much).",
        "The value is that of the policy in the other rows alone: say so, or ask about a change "
        "that more rows can make.",
        judge(share, warn=share > KEPT_SHARE),
    )


def beyond_logged(share: float, negative: float, low: float, high: float) -> Check:
    """Return the check of the share of rows whose new dose lies beyond all logged ones.

    ``negative`` is the share of rows with a dose below 0 where none was logged.
    """
    fact = (
        f"The policy's dose lies beyond all logged ones, {low:.6g} to {high:.6g}, in "
        f"{_percent(share)} of the rows ({_percent(BEYOND_SHARE)} is much)"
    )
    if negative > 0.0:
        fact += f", and below 0, where none was logged, in {_percent(negative)}"
    return _check(
        "beyond_logged",
        share,
        f"{fact}.",
        "If such doses are impossible, give the policy `low` and `high`, or the log `bounds`: rows "
        "that would leave them then keep their dose.",
        judge(share, warn=share > BEYOND_SHARE or negative > 0.0),
    )


def mean_weight(mean: float, se: float, gap: float = MEAN_WEIGHT_GAP) -> Check:
    """Return the check that the weights average to 1, within 3 SE or ``gap``."""
    far = abs(mean - 1.0) > MEAN_WEIGHT_SE * se
    material = abs(mean - 1.0) > gap
    return _check(
        "mean_weight",
        mean,
        f"The mean weight is {mean:.3f} ± {se:.3f} and should be 1 within {MEAN_WEIGHT_SE:g} SE or "
        f"{gap:g} (beyond {MEAN_WEIGHT_LOW:g} … {MEAN_WEIGHT_HIGH:g} it is refused).",
        "The propensities look wrong, or the policy leaves the support: check both; amounts that "
        "are skewed are described better by their logarithms, or with `bounds` of (0, inf).",
        judge(
            mean,
            warn=far and material,
            refuse=far and not MEAN_WEIGHT_LOW <= mean <= MEAN_WEIGHT_HIGH,
        ),
    )


def floor_share(share: float, floor: float, of_rows: float, moved: float) -> Check:
    """Return the check of the share of Σ|w| on rows whose propensity the floor raised.

    Raised rows far from the policy's doses have no weight and do no harm, hence not ``of_rows``.
    ``moved`` is how far the value would move, in standard errors, if they counted twice.
    """
    return _check(
        "floor_share",
        share,
        f"The floor {floor:.3g} raised the propensity of {_percent(of_rows)} of all rows; they "
        f"hold {_percent(share)} of the weight, and at twice that they would move the value by "
        f"{_in_se(moved)} ({_percent(FLOOR_SHARE)} and {FLOOR_SE:g} SE are much).",
        "Lower `clip`, check the propensities, or ask about a policy closer to the log: such rows "
        "count less than they should.",
        judge(share, warn=share > FLOOR_SHARE and moved > FLOOR_SE),
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
        f"The estimate and its bias-corrected center differ by {_in_se(gap)} "
        f"({SMOOTHING_GAP_SE:g} is much).",
        "The outcome bends sharply at the policy's dose: give a smaller `bandwidth`, or look at "
        "`RobustBiasCorrected(recentered=True)`.",
        judge(gap, warn=gap > SMOOTHING_GAP_SE),
    )


def ratio_model_gap(gap: float, in_sd: float) -> Check:
    """Return the check of |doubly robust − self-normalized|, the weights ratios of densities.

    ``gap`` is in standard errors of the difference, ``in_sd`` in sds of what is averaged.
    """
    return _check(
        "outcome_model_gap",
        gap,
        f"With and without the outcome model the estimates differ by {_in_se(gap)} of their "
        f"difference, {in_sd:.3f} sd of a row ({RATIO_GAP_SE:g} with {RATIO_GAP_SD:g} are much).",
        "The propensities or the outcome model are wrong: check the calibration by "
        "`titrant.check`, and try other models.",
        judge(gap, warn=gap > RATIO_GAP_SE and in_sd > RATIO_GAP_SD),
    )


def outcome_model_gap(gap: float) -> Check:
    """Return the check of |doubly robust − self-normalized| in standard errors of the difference.

    Both by the local quadratic kernel at the same bandwidth.
    """
    return _check(
        "outcome_model_gap",
        gap,
        f"With and without the outcome model the bias-corrected estimates differ by {_in_se(gap)} "
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
        f"Between half and twice the bandwidth the estimate moves by {_in_se(spread)} "
        f"({SENSITIVITY_SE:g} is much).",
        "Look at the bandwidth path; at a smaller `bandwidth` less is smoothed.",
        judge(spread, warn=spread > SENSITIVITY_SE),
    )


def balance_limit(contexts: int) -> float:
    """Return how many standard errors chance moves none of so many contexts by."""
    return _bonferroni(IMBALANCE_RATE, contexts)


def is_unbalanced(in_sd: Array, in_se: Array, limit: float) -> Any:  # noqa: ANN401  (as in_sd is)
    """Return whether weighting moves a context materially and beyond chance."""
    return (in_sd > IMBALANCE_SD) & (in_se > limit)


def covariate_balance(found: Imbalance, names: tuple[str, ...]) -> Check:
    """Return the check of the context that the weights move most."""
    limit = balance_limit(len(names))
    material = is_unbalanced(found.in_sd, found.in_se, limit)
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


def binned_balance(found: BinnedImbalance, bins: Bins, se: float) -> Check:
    """Return the check of the shares of rows in bins of each context, ``se`` of the estimate.

    Without residuals to level any bin that is off materially and beyond chance is too much.
    """
    limit = _bonferroni(IMBALANCE_RATE, max(found.tested, 1))
    material = (found.in_sd > IMBALANCE_SD) & (found.in_se > limit)
    contexts = range(len(bins.cuts))
    off = np.array([material[bins.of_context(j)].any() for j in contexts])
    if found.leveled is None:
        moved = np.full(len(off), np.inf)
        warned = off
    else:
        moved = np.abs(found.leveled) / se if se > 0.0 else np.zeros(len(off))
        warned = (off & (moved > LEVELED_SE)) | (moved > LEVELED_FAR)
    asked = int(np.argmax(np.where(warned, moved, -1.0))) if warned.any() else None
    own = slice(0, len(material)) if asked is None else bins.of_context(asked)
    k = own.start + int(np.argmax(np.where(material[own], 1.0, 0.0) + found.in_sd[own]))
    j, rows = bins.place(k)
    in_sd = float(found.in_sd[k])
    fact = (
        f"Under the weights the share of {rows} goes from {_percent(float(found.share[k]))} to "
        f"{_percent(float(found.weighted[k]))}, {in_sd:.2f} sd, {found.in_se[k]:.1f} SE "
        f"({IMBALANCE_SD:g} sd and {limit:.1f} SE are much)"
    )
    if found.leveled is not None:
        fact += (
            f"; with all bins of it at their shares the value moves by {_in_se(float(moved[j]))} "
            f"({LEVELED_SE:g} is then much, {LEVELED_FAR:g} always)"
        )
    return _check(
        "binned_balance",
        in_sd,
        f"{fact}.",
        "The models do not describe how doses and outcomes depended on this context: models that "
        "you gave may be too plain for it; the default ones need more rows there.",
        judge(in_sd, warn=bool(warned.any())),
    )


def rows_at_mass(rows: int, asked: int, dose: str) -> Check:
    """Return the check of how many rows were given the very ``dose`` that the policy gives them."""
    return _check(
        "rows_at_dose",
        float(rows),
        f"{rows:,} of the {asked:,} rows to which the policy gives {dose} were given "
        f"it ({MASS_ROWS_WANTED} wanted, {MASS_ROWS_NEEDED} needed).",
        "Ask about a dose that more rows like these were given, or collect more rows.",
        judge(rows, warn=rows < MASS_ROWS_WANTED, refuse=rows < MASS_ROWS_NEEDED),
    )


def thin_mass(share: float, value: float, thin: float) -> Check:
    """Return the check of the share of rows that seldom are given the policy's dose."""
    return _check(
        "seldom_dose",
        share,
        f"In {_percent(share)} of rows the policy gives exactly {value:.6g} where that had a "
        f"probability below {thin:g} (above {_percent(MASS_SHARE)} is much).",
        "Few rows stand for all of these: leave the policy as it was in such contexts.",
        judge(share, warn=share > MASS_SHARE),
    )


def between_levels(share: float, wide: float, gap: float, levels: Sequence[float]) -> Check:
    """Return the check of policy doses between list prices, ``wide`` where these are far apart."""
    listed = ", ".join(f"{level:.6g}" for level in levels)
    refuse = wide > MASS_SHARE
    fact = (
        f"In {_percent(share)} of rows the policy's dose lies between list prices, or beyond them: "
        f"the only doses that were given are {listed}; in {_percent(wide)} of rows it lies between "
        f"two that are more than {gap:g} sd(T) apart (above {_percent(MASS_SHARE)} is too much)."
    )
    remedy = "What was never given is read off its neighbors: ask about the doses listed."
    return _check("between_levels", share, fact, remedy, judge(share, warn=True, refuse=refuse))


def off_levels(rows: int, n: int) -> Check:
    """Return the check of rows whose dose is none of the levels, and does not become one."""
    return _check(
        "off_levels",
        rows / n,
        f"{rows:,} of {n:,} rows keep their dose: it is none of the levels, the policy's is "
        "neither, and no rows answer for it.",
        "The value is that of the policy in the other rows: say so, or ask about a change from "
        "level to level.",
        judge(rows / n, warn=True),
    )


def planned_doses(correlation: float, n: int, *, modeled: bool) -> Check:
    """Return the check of doses planned for n rows: what they share with the logged ones.

    ``correlation`` is that of both beyond the contexts; ``modeled`` if by a model of the doses.
    """
    size, chance = abs(correlation), FOLLOWS_SE / math.sqrt(n)
    limit = FOLLOWS if modeled else FOLLOWS_ROUGHLY
    return _check(
        "planned_doses",
        size,
        f"Beyond the contexts, the doses given for the rows go with the logged doses: correlation "
        f"{correlation:.2g} (chance stays below {chance:.2g}; {limit:g} is too much).",
        "They should be a rule of the contexts. If they change the logged dose, ask by `Shift`, "
        "`Multiply`, `Limited` or `Moved`; if they use a column that is no context, make it one.",
        judge(size, warn=size > chance, refuse=size > max(chance, limit)),
    )


def dose_jump(size: float, in_se: float, narrow: float) -> Check:
    """Return the check of the outcome's jump at the policy's dose, in standard errors.

    ``narrow`` is its size at half the bandwidth.
    """
    lasts = narrow * size > 0.0 and abs(narrow) > JUMP_LEFT * abs(size)
    return _check(
        "dose_jump",
        in_se,
        f"Outcomes just above and just below the policy's dose differ by {size:.3g}, "
        f"{_in_se(in_se, 1)}, and by {narrow:.3g} at h/2 ({JUMP_SE:g} SE with "
        f"{_percent(JUMP_LEFT)} left are much).",
        "The outcome jumps at this very dose, and the estimate is a mean of both sides: ask about "
        "a dose a bandwidth away, on the side that is meant.",
        judge(in_se, warn=in_se > JUMP_SE and lasts),
    )


def value_range(value: float, least: float, greatest: float) -> Check:
    """Return the check of where a value lies between the least outcome (0) and the greatest (1)."""
    extent = greatest - least
    place = (value - least) / extent if extent > 0.0 else 0.5
    return _check(
        "value_range",
        place,
        f"The value is {value:.4g}, and outcomes run from {least:.4g} to {greatest:.4g}.",
        "No policy is worth more or less than every outcome, so too few rows are near this one: "
        "ask about a policy closer to the log, or give a larger `bandwidth`.",
        judge(place, warn=not 0.0 <= place <= 1.0),
    )


def no_variation(value: float, ess: float, noun: str, *, binary: bool) -> Check:
    """Return the check of an interval without width, from the effective number of rows.

    ``binary`` if outcomes are 0 or 1. It warns wherever it is made.
    """
    share = min(UNSEEN_ROWS / ess, 1.0) if ess > 0.0 else 1.0
    others = f"an outcome of {1.0 - round(value):g}" if binary else "other outcomes"
    return _check(
        "no_variation",
        share,
        f"All {noun} that speak about the policy say the same, {value:.4g}, so the interval has no "
        f"width; with an effective number of {_count(ess)} {noun}, {others} in up to about "
        f"{_percent(share)} of them would not be seen ({UNSEEN_ROWS:g} of {_count(ess)}, the rule "
        "of three).",
        f"Tell that share with the value, which is not certain: collect more {noun}, or ask about "
        "an outcome that varies.",
        judge(share, warn=True),
    )


def propensity_pit(distance: float, p_value: float, of: str = "held-out doses") -> Check:
    """Return the check that doses fall evenly over their fitted distributions.

    ``of`` says which doses: those that a model was fitted to are more even than others.
    """
    return _check(
        "propensity_pit",
        distance,
        f"The ranks F(t | x) of {of} are {distance:.3f} from even, p = {p_value:.2g} "
        f"(beyond {PIT_DISTANCE:g} with p < {PIT_RATE:g} is much).",
        "Use a propensity model of another shape, such as LocationScale() or KernelConditional().",
        judge(distance, warn=distance > PIT_DISTANCE and p_value < PIT_RATE),
    )


def cut_predictions(moved: float) -> Check:
    """Return the check of how far the bounds of the outcome model move the value, in SE."""
    return _check(
        "cut_predictions",
        moved,
        "Predictions are held near the outcomes that were seen; without that the value moves by "
        f"{_in_se(moved)} ({CUT_SE:g} is much).",
        "The value rests on predictions beyond the outcomes seen, at contexts or doses of few "
        "rows: ask about a policy closer to the log, take logarithms of skewed contexts, or give "
        "an outcome model of your own.",
        judge(moved, warn=moved > CUT_SE),
    )


def stabilized_weight(mean: float, se: float) -> Check:
    """Return the check that g(t)/f(t | x), g the density of all doses, averages to 1.

    That is so whatever g is, as long as each row may get all doses of g. Where doses have gaps, a
    smooth g reaches into them, the few weights there are huge, and most samples hold none: the
    mean is below 1 of the right f as well. So no estimate is judged by it, `titrant.check` alone
    tells it.
    """
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


def unfitted(reason: str) -> Check:
    """Return the refusal of a log that no model of its doses can be fitted to."""
    return Check("unfitted", 0.0, Verdict.REFUSE, reason)


def _check(name: str, value: float, fact: str, remedy: str, verdict: Verdict) -> Check:
    """Return the check whose message is the fact and, unless it is ok, the remedy."""
    message = fact if verdict is Verdict.OK else f"{fact} {remedy}"
    return Check(name, float(value), verdict, message)


def _bonferroni(rate: float, tests: int) -> float:
    """Return how many SEs chance alone passes at ``rate`` in any of several two-sided tests."""
    from scipy.special import ndtri  # noqa: PLC0415

    return float(-ndtri(rate / (2 * tests)))


def _in_se(ratio: float, digits: int = 2) -> str:
    """Return so many standard errors; there is no such number where the standard error is 0."""
    return f"{ratio:.{digits}f} SE" if math.isfinite(ratio) else "more than the SE of 0"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= ESS_WANTED else f"{number:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
