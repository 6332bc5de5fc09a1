"""Columns of a log that are likely not what they are taken for, named before anything is estimated.

What separates a leak from a good predictor is *exactness*. Whatever is known before a dose is given
leaves some of the outcome open, if only the error of measuring it: the same quantity measured at an
earlier visit explains 90 or 95 % of it. A column that was computed from the outcome leaves nothing
open but rounding. So a context is called a leak if it puts the rows in the order of the outcome
(rank correlation beyond .99), if it parts the outcomes into ranges that do not overlap, or if the
outcome is a sum, difference, product or ratio of it and other columns, or of it and squares and
products of others, up to a thousandth of its variance.

A noisy copy of the outcome, such as one measured at a later visit, is not exact. What gives it away
is the dose: without the context the dose explains some of the outcome, beside it next to nothing,
since the copy holds the effect already. Beside a predictor that was known before, a dose with an
effect explains *more* of what is left. Only a strong confounder of a dose without effect looks like
a late copy too, and where the dose explains nothing at all the two cannot be told apart: then a
context that explains nine tenths by itself gets a note, no more. The same holds of doses: one that
a context predicts well is confounded, one that a context knows exactly leaves nothing to compare.

A doubt is a function of a `LogColumns` that yields checks and notes, and an entry in `DOUBTS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from titrant.data.about import About
from titrant.data.columns import IS_MISSING
from titrant.data.keys import MOST_WHOLE
from titrant.data.masses import FEW_VALUES, has_many, heaps
from titrant.data.validate import counted
from titrant.inference.diagnostics import Check, Verdict
from titrant.scaling import (
    CODE_ROWS,
    NEXT_TO_USUAL,
    USUAL_CODES,
    Held,
    ends_without_few,
    robust_sd,
    spread_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.columns import Dated
    from titrant.data.gaps import Difference

FAR = 5.0
"""Robust sds from the median beyond which a value is one of the few that may dominate."""
FEW = 0.05
SPREAD_LEFT = 0.1
"""A column most of whose variance is that of a few rows says next to nothing of the others."""
FEWEST = 20
"""Rows, of a log or of a level, from which on agreement is no chance."""
RANKED = 2_500
"""Rows by which ranks are compared: ranking many takes time."""
SAME_ORDER = 0.99
"""A rank correlation that no cause of an outcome has, but a copy or a transform of it."""
SAME_DOSE = 0.995
"""A rank correlation with the dose beyond which hardly any dose is left to chance: R² of .99."""
STRONG = 0.9
"""Squared rank correlation with the outcome that is worth a word."""
LEFT_BY_LATE = 0.5
"""A late copy of the outcome leaves less than this share of what all other columns leave,"""
DOSE_TELLS, DOSE_ROWS = 0.02, 20.0
"""and while the dose explains this share of what others leave, and so many rows' worth,"""
DOSE_HIDDEN, DOSE_LEFT = 0.2, 0.1
"""beside it the dose explains less than these: of that share, and of what is left."""
MOST_BESIDE = 15
"""Other contexts that are looked at beside it."""
PARTED = 0.999
"""Share of the greatest variance of ranks between levels: .999 is no overlap but by a slip."""
FEW_LEVELS = 12
EMPTY = 0.99
"""Share of missing outcomes from which on a level of a context has none."""
EXACT = 0.999
"""R² beyond which only rounding is left: a column rounded to a tenth of its sd keeps .9992."""
SOLVED = 10_000
"""Rows by which columns are solved for each other, fewer where there are many columns,"""
WORK = 2e8
"""so that rows times squared columns stay below this."""
PRODUCTS = 12
"""Squares and products of contexts that are looked at beside the columns."""
MOST_FOUND = 5
"""Leaks after which the search for more ends."""
REPEATS = 10.0
"""So many repeated values are expected among measured whole numbers, and none is a key."""
GAPS = 0.05
"""Share of missing values from which on gaps are looked at,"""
ROWS_A_CONTEXT = 20
"""with so many rows, on either side, for each context beside it,"""
ACTING = 0.08
"""and the share of the dose's variance, given other contexts, from which on a context acts: knowing
it changes the odds of a dose by a factor of 1.2 in a usual row."""
COINCIDENCE = 5
"""Rows apart from the usual value that two columns may share by chance."""
_RIDGE = 1e-10
_ONE_DIGIT = 9.0
_CENSORED = re.compile(
    r"(^|[_. ])(censor(ed|ing)?|lost[_ ]to[_ ]follow[_ ]?up|ltfu|attrition|withdr(ew|awn|awal)|"
    r"outcome[_ ](observed|seen|missing))$",
    re.IGNORECASE,
)
"""Names of columns that say what became of a row."""
_CALLED_WEIGHT = re.compile(
    r"^(p|aw?|f|svy|samp(le|ling)?|survey|design|pop(ulation)?|person|per|hh|household|mec|"
    r"int(erview)?|exam|nonresponse|post(strat(ification)?)?|rak(ed|ing)|rep(licate)?|asec|fnl)"
    r"(wt|wgt|wght|weight)s?\d*$|^(weights|wts|wgts)$|^wt(mec|int|saf|dr|finl?|supp|sa|sb)\w*$|"
    r"^ip(t|c)?ws?$",
    re.IGNORECASE,
)
"""Names of sampling weights, without signs between the words: MEC_wt, pweight, WTINT2YR."""
_WEIGHTS = frozenset({"weight", "weights", "wt", "wts", "wgt", "wght"})
_OF_A_THING = frozenset(
    {"body", "birth", "kg", "lb", "lbs", "g", "gram", "grams", "gross", "net", "parcel", "oz"}
)
_EVEN, _NO_BODY, _ONE = 0.25, 500.0, 0.005
_NAMED_KEY = re.compile(r"(^|[_. ])(id|key|seqn|uid|index|row|rownum|number)$", re.IGNORECASE)


@dataclass(frozen=True)
class LogColumns:
    """The columns of a log, as doubts look at them."""

    names: tuple[str, ...]
    context: Array
    """(n, p), as logged."""
    doses: Array
    """(n, d)"""
    outcome: Array
    """(n,)"""
    held: Held
    """How far values of the contexts are held."""
    ends: tuple[Array, Array]
    """The least and the greatest value of each context (p,), of all rows where these are some."""
    rows: int
    """Rows by which codes were counted, also those whose outcome is missing."""
    differing: tuple[Difference, ...] = ()
    """By which columns the rows that were left out differ from these."""
    unseen: tuple[Array, Array] | None = None
    """The contexts (m, p) of all rows, and 1 where the outcome is missing (m,), if some are."""
    dated: tuple[Dated, ...] = ()
    """How the dates of columns lie to that of the treatment, where it is known."""
    about: About = field(default_factory=About)
    """What the log calls its doses and its outcome."""
    decimal_groups: str | None = None
    """The column of groups, where it holds numbers that are not whole."""
    texts: tuple[str, ...] = ()
    """The contexts whose numbers are places of texts in a list."""
    groups: NDArray[np.int64] | None = None
    """Which rows belong together (n,), where that is known."""
    weighted: bool = False
    """Whether rows have weights."""

    @classmethod
    def of(
        cls, log: LoggedData, held: Held, ends: tuple[Array, Array], texts: tuple[str, ...] = ()
    ) -> Self:
        """Return the columns of a log, of the rows whose outcome is known."""
        known = log if log.observed is None else log.rows(log.observed > 0.0)
        return cls(
            log.names,
            known.context,
            known.doses,
            known.outcome,
            held,
            ends,
            len(log),
            () if log.flow is None else log.flow.differing,
            None if log.observed is None else (log.context, 1.0 - log.observed),
            () if log.flow is None else log.flow.dated,
            log.about,
            None if log.flow is None else log.flow.decimal_groups,
            texts,
            known.groups,
            log.weighted,
        )

    def __len__(self) -> int:
        return len(self.outcome)

    @cached_property
    def seen(self) -> Array:
        """The contexts (n, p) as models see them: far values and codes held."""
        return self.held(self.context)[:, : len(self.names)]

    @cached_property
    def spread(self) -> Array:
        """The sd of each context seen (p,), 0 where values differ by rounding only."""
        return spread_of(self.seen)

    @cached_property
    def dose_names(self) -> tuple[str, ...]:
        """What the doses are called."""
        d = self.doses.shape[1]
        return tuple(f"treatment {j}" for j in range(d)) if d > 1 else ("treatment",)

    @cached_property
    def varying(self) -> list[int]:
        """The contexts that say something."""
        return [j for j in range(len(self.names)) if self.spread[j]]

    @cached_property
    def filled(self) -> dict[int, int]:
        """The contexts that were filled, each with the column that says in which rows."""
        place = {name: j for j, name in enumerate(self.names)}
        marks = {j: name.removesuffix(IS_MISSING) for name, j in place.items()}
        return {place[base]: j for j, base in marks.items() if base in place and j != place[base]}

    @property
    def gaps(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Yield the contexts that were filled, each with the rows in which it was missing (n,)."""
        for base, j in self.filled.items():
            yield base, self.context[:, j] > 0.0

    @cached_property
    def recorded(self) -> list[Array]:
        """The values that each context had in the table, in all rows: no fill and no text's place.

        A median that was filled in heaps at its value.
        """
        x = self.context if self.unseen is None else self.unseen[0]
        there = {j: x[:, mark] == 0.0 for j, mark in self.filled.items()}
        each = [x[there[j], j] if j in there else x[:, j] for j in range(len(self.names))]
        pairs = zip(self.names, each, strict=True)
        return [column[:0] if name in self.texts else column for name, column in pairs]

    @cached_property
    def order(self) -> dict[int, float]:
        """The rank correlation of each varying context with the outcome."""
        return {j: rank_correlation(self.seen[:, j], self.outcome) for j in self.varying}

    @cached_property
    def copies(self) -> list[int]:
        """The contexts that have the order of the outcome."""
        y = self.outcome
        return [
            j for j, r in self.order.items() if abs(r) > SAME_ORDER or parts(self.seen[:, j], y)
        ]

    @cached_property
    def late(self) -> list[int]:
        """The contexts that hold what the dose does to the outcome."""
        strong = (j for j, r in self.order.items() if r**2 > STRONG and j not in self.copies)
        return [j for j in strong if hides_dose(self, j)]

    @cached_property
    def some(self) -> slice:
        """Rows by which columns are solved for each other."""
        most = int(min(SOLVED, max(WORK / (1 + len(self.names)) ** 2, 500)))
        return slice(None, None, max(1, -(-len(self) // most)))

    def named(self, columns: Iterable[int]) -> str:
        """Return the names of contexts, in a list."""
        return listed([self.names[j] for j in columns])


def ignored(found: Iterable[Check | str]) -> Iterator[str]:
    """Yield findings as notes, which lower no verdict."""
    for one in found:
        yield one if isinstance(one, str) else f"A doubt that was to be ignored: {one.message}"


def listed(names: Sequence[str]) -> str:
    """Return names in quotes, with commas between."""
    return ", ".join(map(repr, names))


def _doubt(name: str, value: float, fact: str, remedy: str) -> Check:
    return Check(name, float(value), Verdict.WARN, f"{fact} {remedy}", explains=True)


# Of outcomes and doses.


def coded_doses(log: LogColumns) -> Iterator[Check]:
    """Yield codes such as −9999 among doses, far from all others: doses heap at list prices."""
    held = _held_by_several(log.doses, log.groups, chosen=True)
    names = tuple(log.about.treatments or log.dose_names)
    yield from _coded("coded_doses", held, [log.doses[:0, 0]] * len(names), names, len(log))


def coded_outcomes(log: LogColumns) -> Iterator[Check]:
    """Yield codes such as −9999 among outcomes."""
    held = _held_by_several(log.outcome[:, None], log.groups)
    names = (log.about.outcome or "outcome",)
    yield from _coded("coded_outcomes", held, [log.outcome], names, len(log))


def stray_doses(log: LogColumns) -> Iterator[Check]:
    """Yield doses of which a few lie so far off that they are most of the spread."""
    for name, column in zip(log.dose_names, log.doses.T, strict=True):
        if not spread_by_many(column):
            yield _doubt(
                "stray_doses",
                farthest(column),
                f"Most of the spread of the {name} is that of a few rows far from all others, such "
                f"as {farthest(column):.6g}: models of the doses follow them.",
                "Correct these doses or drop the rows.",
            )


def stray_outcomes(log: LogColumns) -> Iterator[Check]:
    """Yield outcomes of which a few beyond a wide gap are most of the spread.

    A tail without a gap is an answer, however heavy: it is what the outcome is like.
    """
    low, high = ends_without_few(log.outcome)
    rows = np.count_nonzero((log.outcome < low) | (log.outcome > high))
    if rows:
        far = farthest(log.outcome)
        yield _doubt(
            "stray_outcomes",
            far,
            f"Most of the spread of the outcome is that of {rows:,} of {len(log):,} rows far from "
            f"all others, such as {far:.6g}: they decide every estimate they have weight in.",
            "Correct these outcomes, or say what they should count for.",
        )


def dropped_rows(log: LogColumns) -> Iterator[Check]:
    """Yield by which columns the rows that were left out differ from the others."""
    if log.differing:
        most = log.differing[:MOST_FOUND]
        said = ", ".join(f"{one.column!r} by {one.sds:+.2f} sd" for one in most)
        yield _doubt(
            "dropped_rows",
            abs(most[0].sds),
            f"Rows were left out since something is missing in them, and they are not like the "
            f"others: they differ in {said}. What is left stands for another population.",
            'Keep rows without an outcome (`missing_outcome="weight"`), or say for whom the '
            "estimate is meant.",
        )


# Of single contexts.


def coded_contexts(log: LogColumns) -> Iterator[Check]:
    """Yield codes among contexts."""
    yield from _coded("coded_contexts", log.held, log.recorded, log.names, log.rows)


def silent_contexts(log: LogColumns) -> Iterator[Check]:
    """Yield contexts that vary by rounding only, or in a few rows only."""
    columns = zip(range(len(log.names)), log.seen.T, log.spread, strict=True)
    found = [j for j, x, sd in columns if np.ptp(x) > 0.0 and not (sd > 0.0 and spread_by_many(x))]
    if found:
        yield _doubt(
            "silent_contexts",
            len(found),
            f"Of {len(log.names):,} contexts, {log.named(found)} say{'s' * (len(found) == 1)} "
            "next to nothing: the values vary by rounding only, or a few of them lie far from all "
            "others.",
            "Subtract a large offset, correct the values, or take logarithms; until then nothing "
            "is adjusted for it.",
        )


def constant_contexts(log: LogColumns) -> Iterator[Check]:
    """Yield contexts with one value."""
    low, high = log.ends
    found = np.flatnonzero(low == high).tolist()
    if found:
        yield _doubt(
            "constant_contexts",
            len(found),
            f"Contexts with one value in all rows explain nothing: {log.named(found)}.",
            "Leave them out, or find where their values were lost.",
        )


def key_contexts(log: LogColumns) -> Iterator[Check]:
    """Yield contexts that number the rows or name whom they are about."""
    columns = zip(log.names, log.context.T, strict=True)
    # The running time of dates is known to be one.
    found = [
        j for j, (name, x) in enumerate(columns) if is_key(x, name) and not name.endswith(".days")
    ]
    if found:
        yield _doubt(
            "key_contexts",
            len(found),
            f"The values of {log.named(found)} are whole numbers of which none comes twice: this "
            "looks like a row number or a key, not like something measured.",
            "Leave it out of the contexts, unless it is the time and doses changed with time.",
        )


def deciding_contexts(log: LogColumns) -> Iterator[Check]:
    """Yield contexts that decide, or by their name say, whether the outcome is missing."""
    found = [j for j, name in enumerate(log.names) if _CENSORED.search(name) and log.spread[j]]
    if log.unseen is not None:
        x, missing = log.unseen
        rest = (j for j in range(len(log.names)) if j not in found)
        found += [j for j in rest if decides(x[:, j], missing)]
    if found:
        yield _doubt(
            "deciding_contexts",
            len(found),
            f"By {log.named(found)}, a row's outcome is known or missing: it seems to say what "
            "became of a row, not what was known before the dose.",
            "Name it in `after` if so; else no outcome stands for the rows that lack it.",
        )


def late_dates(log: LogColumns) -> Iterator[Check | str]:
    """Yield contexts whose dates are after that of the treatment in some rows, most aside."""
    found = [one for one in log.dated if one.later and not one.after]
    many = [one for one in found if one.later > FEW * one.rows]
    if many:
        said = ", ".join(f"{one.column!r} in {one}" for one in many)
        yield _doubt(
            "late_dates",
            max(one.later / one.rows for one in many),
            f"Dates among the contexts are after that of the treatment: {said}. What was measured "
            "then may be an effect of the dose.",
            "Name it in `after` if it was measured after the treatment; else correct these dates.",
        )
    for one in found:
        if one not in many:
            yield f"The date {one.column!r} is after that of the treatment in {one}."


def weight_contexts(log: LogColumns) -> Iterator[Check | str]:
    """Yield contexts that are called as sampling weights are, and note those that may be some."""
    if log.weighted:
        return
    kinds = zip(log.names, log.context.T, strict=True)
    found = {name: sampling_weights(name, x) for name, x in kinds if np.ptp(x) > 0.0}
    called = [name for name, sure in found.items() if sure]
    if called:
        yield _doubt(
            "weight_contexts",
            len(called),
            f"{_are_contexts(called)} called as sampling weights are: if rows stand for unequal "
            "parts of a population, no mean over them as they are is that of the population.",
            "Give it as `weights` (`--weights`), and choose the contexts without it; or leave it "
            "out if it is none.",
        )
    for name in (name for name, sure in found.items() if sure is False):
        yield (
            f"Should the context {name!r} be sampling weights, by how much of a population each "
            "row stands for, give it as `weights` (`--weights`), not as a context."
        )


def decimal_groups(log: LogColumns) -> Iterator[Check]:
    """Yield the column of groups if it holds amounts, which would be adjusted for as a context."""
    if log.decimal_groups is not None:
        yield _doubt(
            "decimal_groups",
            1.0,
            f"The groups are numbers that are not whole, in {log.decimal_groups!r}: this looks "
            "like something measured, not like an id, and nothing is adjusted for it.",
            "Make it a context, and give as `groups` (`--groups`) the id of those who have several "
            "rows, if there is one; if this is an id, write it as text.",
        )


def _are_contexts(names: Sequence[str]) -> str:
    one = len(names) == 1
    return f"The context{'' if one else 's'} {listed(names)} {'is' if one else 'are'}"


def sampling_weights(name: str, x: Array) -> bool | None:
    """Return True if a context (n,) is called as sampling weights are; None if it is none.

    False where it is called a weight, which may be that of a body, and its values are unlike one:
    their mean is 1, or they are large numbers whose sd is more than half of their mean. Of adults
    and of newborn children it is a fifth; weights of rows that vary as little hardly matter.
    """
    mean, sd = float(x.mean()), float(x.std())
    if x.min() < 0.0 or sd < _EVEN * mean:
        return None
    if _CALLED_WEIGHT.search(re.sub(r"[\W_]+", "", name)):
        return True
    words = re.split(r"[\W_]+", name.lower())
    if not _WEIGHTS.intersection(words) or _OF_A_THING.intersection(words):
        return None
    large = mean > _NO_BODY and sd > mean / 2.0
    return False if large or abs(mean - 1.0) < _ONE else None


def decides(x: Array, missing: Array) -> bool:
    """Whether a context (n,) says what is missing (n,), or has a level in which all is."""
    level, place, rows = np.unique(x, return_inverse=True, return_counts=True)
    if len(level) > FEW_LEVELS:
        return parts(x, missing)
    share = np.bincount(place, weights=missing) / rows
    return bool(np.any((share > EMPTY) & (rows >= FEWEST)))


def held_values(log: LogColumns) -> Iterator[str]:
    """Yield a note for each context with values that are held, codes aside."""
    strays = log.held.strays(log.context)
    for j in np.flatnonzero(strays.any(axis=0)):
        far = log.context[strays[:, j], j]
        several = j in log.held.strayed
        median = f"the median, {log.held.center[j]:.6g}"
        counted_as = "the last value before that" if several else median
        yield (
            f"In {counted(len(far), 'row')} the context {log.names[j]!r} lies far beyond all other "
            f"values (such as {far[0]:.6g}); models count it as {counted_as}."
        )


# Of contexts beside other columns.


def repeated_contexts(log: LogColumns) -> Iterator[Check]:
    """Yield contexts that are another one, on its scale or on another: r² beyond `EXACT`."""
    columns = log.varying
    x = standardized(log.seen[log.some][:, columns])
    # Rows that a thinned log leaves out may be all in which a column varies.
    same = np.triu((x.T @ x / max(len(x), 1)) ** 2 > EXACT, k=1)
    pairs = [
        (columns[i], columns[j])
        for i, j in zip(*np.nonzero(same), strict=True)
        if _apart_rows(x[:, i]) >= COINCIDENCE
    ]
    if len(log) >= FEWEST and pairs:
        firsts = {j: i for i, j in reversed(pairs)}
        said = "; ".join(f"{log.names[j]!r} is {log.names[i]!r}" for j, i in firsts.items())
        yield _doubt(
            "repeated_contexts",
            len(firsts),
            f"Some contexts are others once more, in the same or in other units: {said}.",
            "Keep one of each; if they should differ, find where the values come from.",
        )


def copied_outcomes(log: LogColumns) -> Iterator[Check | str]:
    """Yield contexts that have the order of the outcome, and note those that come near it."""
    order, found = log.order, log.copies
    if found:
        yield _doubt(
            "copied_outcomes",
            len(found),
            f"The order of the rows by {log.named(found)} is that of the outcome: a context that "
            "knows the outcome hides what the dose does.",
            "Leave it out of the contexts, unless it was known before the dose was given.",
        )
    for j, r in order.items():
        if r**2 > STRONG and j not in found and j not in log.late:
            yield (
                f"The context {log.names[j]!r} alone explains {r**2:.0%} of the outcome's order. "
                "That is sound if it was known before the dose was given, such as the same "
                "quantity at an earlier visit; if not, name it in `after`."
            )


def late_outcomes(log: LogColumns) -> Iterator[Check]:
    """Yield noisy copies of the outcome: contexts beside which the dose explains nothing more."""
    if log.late:
        most = max(log.order[j] ** 2 for j in log.late)
        yield _doubt(
            "late_outcomes",
            most,
            f"Beside {log.named(log.late)}, which explains {most:.0%} of the outcome's order, the "
            "dose explains next to nothing, and without it a lot: so a context looks that was "
            "measured after the dose and holds its effect.",
            "Name it in `after` if it was; it is sound if it was known before, and the dose has "
            "little effect of its own.",
        )


def hides_dose(log: LogColumns, j: int) -> bool:
    """Whether a context holds what the dose does to the outcome, as a late copy of it would.

    With e the share that the dose explains of what other contexts leave of the outcome, by a
    cross-fitted R², e beside context j is below .1 and below a fifth of e without it.
    """
    rows = log.some
    y, t, z = log.outcome[rows], standardized(log.doses[rows]), log.seen[rows, j]
    others = [k for k in log.varying if k != j]
    if len(others) > MOST_BESIDE:
        tells = [abs(rank_correlation(log.seen[:, k], log.outcome)) for k in others]
        others = [others[i] for i in np.argsort(tells)[::-1][:MOST_BESIDE]]
    x = standardized(log.seen[rows][:, others])
    crossed = (t[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    dose = np.hstack([*(bent(own) for own in t.T), crossed])
    late = bent(z)
    late = np.hstack([late, late[:, :1] * x])
    beside = np.hstack([x, x**2])

    def r2(*columns: Array) -> float:
        return max(cross_fitted_r2(standardized(np.hstack(columns)), y), 0.0)

    others_and_dose = r2(beside, dose)
    without = _share(r2(beside), others_and_dose)
    clear = without > max(DOSE_TELLS, DOSE_ROWS / len(y))
    if not clear or 1.0 - r2(bent(z)) > LEFT_BY_LATE * (1.0 - others_and_dose):
        return False
    left = _share(r2(beside, late), r2(beside, late, dose))
    return left < min(DOSE_HIDDEN * without, DOSE_LEFT)


def _share(without: float, with_it: float) -> float:
    """Return how much of what is left is explained by a column more, from R² without and with."""
    return (with_it - without) / max(1.0 - without, np.finfo(float).tiny)


def bent(column: Array) -> Array:
    """Return a column (n,) in its sds, and its hinges at the quartiles (n, ≤ 4)."""
    z = standardized(column[:, None])[:, 0]
    return np.column_stack([z, *(np.maximum(z - k, 0.0) for k in np.unique(_quartiles(z)))])


def _quartiles(z: Array) -> Array:
    return np.asarray(np.quantile(z, [0.25, 0.5, 0.75]))


def leaked_outcomes(log: LogColumns) -> Iterator[Check]:
    """Yield contexts of which, with other columns, the outcome is a sum, product or ratio."""
    copies = {j for j, r in log.order.items() if abs(r) > SAME_ORDER}
    rest = [j for j in log.varying if j not in copies]
    x, t, y = log.seen[log.some][:, rest], log.doses[log.some], log.outcome[log.some]
    how, found = "sum or difference", determined(y, t, x)
    if not found:
        # As logged: far values, as ratios have, are not far in logarithms.
        logged = log.context[log.some][:, rest]
        how, found = "product or ratio", _by_logarithms(y, t, logged)
    if not found:
        how, found = "sum with a square or product", _beside_products(y, t, x)
    said = []
    for one in found:
        beside = f" with {log.named(rest[j] for j in one.others)}" if one.others else ""
        left = f" (R² {one.without:.2f} without it)" if one.without < EXACT else ""
        said.append(f"{log.names[rest[one.column]]!r}{beside}{left}")
    if said:
        yield _doubt(
            "leaked_outcomes",
            len(said),
            f"The outcome can be computed exactly, as a {how}, from {' and from '.join(said)}, the "
            "dose given: such a context knows the outcome and hides what the dose does.",
            "Leave it out of the contexts.",
        )


def acting_gaps(log: LogColumns) -> Iterator[Check]:
    """Yield contexts with gaps whose values those who gave the doses seem to have known.

    Where a value is known, the dose's variance given other contexts falls from s₀² to s₁² as the
    value is taken into account. Where it is missing in the table and was so for whoever gave the
    dose, that variance is s₁²; where they had the value, it is s₀².
    """
    found: list[tuple[int, float]] = []
    for j, gap in log.gaps:
        share, moved = float(gap.mean()), gap_effect(log, j, gap)
        if share > GAPS and moved is not None:
            found.append((j, share))
    if found:
        said = " and ".join(f"{log.names[j]!r} ({share:.0%} missing)" for j, share in found)
        yield _doubt(
            "acting_gaps",
            max(share for _, share in found),
            f"Doses follow {said}, and vary as much where the value is missing as if it had been "
            "known there: what the table lacks, those who gave the doses seem to have seen.",
            "Find the values; else this is hidden confounding, which no adjustment removes.",
        )


def gap_effect(log: LogColumns, j: int, gap: NDArray[np.bool_]) -> float | None:
    """Return R² of the dose by context j given the others, if missing rows vary as if it acted.

    None if that is at most `ACTING`, or if the rows in which it is missing (`gap`, n) vary less
    than midway between the variances s₀² and s₁², each as rows with their other contexts have it.
    """
    known = ~gap
    most = min(int(known.sum()), int(gap.sum())) // ROWS_A_CONTEXT
    others = [k for k in log.varying if k != j and not log.names[k].endswith(IS_MISSING)]
    if not most:
        return None
    x = standardized(log.seen[:, others[: min(most, MOST_BESIDE)]])
    x = np.column_stack([np.ones(len(x)), x])
    own = bent(log.seen[:, j])
    for t in standardized(log.doses).T:
        without = left_squares(x[known], t[known])
        beside = left_squares(np.hstack([x, own])[known], t[known])
        share = 1.0 - float(beside.mean() / max(without.mean(), np.finfo(float).tiny))
        s0, s1 = (expected(x[known], e, x[gap]) for e in (without, beside))
        s = float(left_squares(x[gap], t[gap]).mean())
        if share > ACTING and s > np.sqrt(s0 * s1):
            return share
    return None


def left_squares(x: Array, t: Array) -> Array:
    """Return e²·n/(n − k) (n,), e what least squares on x (n, k) leaves of t (n,)."""
    e = t - x @ np.linalg.lstsq(x, t, rcond=None)[0]
    return np.asarray(e**2 * (len(t) / max(len(t) - x.shape[1], 1)))


def expected(x: Array, squares: Array, at: Array) -> float:
    """Return the mean at rows (m, k) of what least squares on x (n, k) says of squares (n,)."""
    found = float((at @ np.linalg.lstsq(x, squares, rcond=None)[0]).mean())
    return max(found, 0.1 * float(squares.mean()))


def copied_treatments(log: LogColumns) -> Iterator[Check]:
    """Yield contexts that are the dose, rescaled or in classes, or that it is computed from."""
    found: list[int] = []
    said: list[str] = []
    apart: list[int] = []
    for name, t in zip(log.dose_names, log.doses.T, strict=True):
        copies = [j for j in log.varying if _copies_dose(log.seen[:, j], t)]
        # Of two values one is as well that of people who were given doses of their own.
        apart += [j for j in copies if len(np.unique(log.seen[:, j])) == len(("yes", "no"))]
        copies = [j for j in copies if j not in apart]
        if copies:
            said.append(f"The order of the rows by {log.named(copies)} is that of the {name}.")
        elif not apart:
            copies = _sources_of(t, log)
            if copies:
                said.append(f"The {name} can be computed from {log.named(copies)} exactly.")
        found += copies
    if apart:
        yield _doubt(
            "copied_treatments",
            len(set(apart)),
            f"Rows that differ in {log.named(list(dict.fromkeys(apart)))} were given doses that do "
            "not overlap: nothing in the log tells what the doses of one do to the other.",
            "Let the policy leave the few at doses they had, or ask about the others alone by "
            "`weights_to=` or subgroups. Without this context the value would be wrong for them "
            "in silence: leave it out only if it was made from the dose.",
        )
    if found:
        yield _doubt(
            "copied_treatments",
            len(set(found)),
            f"{' '.join(said)} Rows that are alike in this have no other doses to compare with.",
            "Leave it out of the contexts if it is the dose in other units, or was computed from "
            "it; if it set the dose, this log cannot tell what other doses do.",
        )


def _copies_dose(x: Array, t: Array) -> bool:
    return _same_order(x, t, SAME_DOSE) or parts(x, t)


def _sources_of(t: Array, log: LogColumns) -> list[int]:
    """Return the contexts that a dose (n,) is an exact linear function of."""
    x = log.seen[log.some][:, log.varying]
    found = determined(t[log.some], np.empty((len(x), 0)), x)
    return list(dict.fromkeys(log.varying[j] for f in found for j in (f.column, *f.others)))


OUTCOME_DOUBTS: tuple[Callable[[LogColumns], Iterator[Check | str]], ...] = (
    coded_doses,
    coded_outcomes,
    stray_doses,
    stray_outcomes,
    dropped_rows,
)
"""Doubts about doses and outcomes, for every estimate."""
CONTEXT_DOUBTS: tuple[Callable[[LogColumns], Iterator[Check | str]], ...] = (
    coded_contexts,
    silent_contexts,
    constant_contexts,
    key_contexts,
    repeated_contexts,
    copied_outcomes,
    late_outcomes,
    leaked_outcomes,
    copied_treatments,
    acting_gaps,
    deciding_contexts,
    late_dates,
    decimal_groups,
    weight_contexts,
    held_values,
)
"""Doubts about contexts, for every estimate that adjusts for them."""
DOUBTS = OUTCOME_DOUBTS + CONTEXT_DOUBTS


# Codes and strays.


class Coded(NamedTuple):
    """A value that looks like a code, and where it stands."""

    column: str
    value: float
    rows: int


def codes(held: Held, names: tuple[str, ...]) -> list[Coded]:
    """Return the codes in named columns; 0 is left out, which is an amount as well."""
    return [Coded(names[c.column], c.value, c.rows) for c in held.codes if c.value]


def heaped(column: Array, known: Iterable[float]) -> list[tuple[float, int]]:
    """Return the usual codes at which the values of a column (n,) heap, with their rows.

    They may stand among the others, where nothing but their number tells them: they are point
    masses, by the rule for doses. What has other point masses, as prices have, says nothing by one
    more; 0 is one of many amounts, though beside it −1 may be another. Nor do greatest values say
    that come next to another whole number: a scale of two digits ends at 99.
    """
    values, counts = np.unique(column, return_counts=True)
    if len(values) <= FEW_VALUES:
        return []
    heap, usual = heaps(values, counts), np.isin(values, list(USUAL_CODES))
    less_usual = np.isin(values, list(NEXT_TO_USUAL))
    for run in _runs_apart(values, (usual | less_usual) & has_many(counts)):
        usual[run] = True
        for i in run:  # side by side, 98 and 99 would be taken for each other's neighbors
            alone = np.delete(np.arange(len(values)), [k for k in run if k != i])
            heap[i] = heaps(values[alone], counts[alone])[alone == i].item()
    goes_on = values[-1] == values[-2] + 1.0 and not usual[-2]
    usual |= less_usual & np.isin(values + np.sign(values), values[heap & usual])
    zero = heap & (values == 0.0)
    if (heap & ~usual & ~zero).any():
        return []
    if zero.any():
        usual &= np.abs(values) > _ONE_DIGIT
    if goes_on:
        usual[-2:] = False
    usual &= ~np.isin(values, list(known))
    found = heap & usual
    return list(zip(values[found].tolist(), counts[found].tolist(), strict=True))


def _runs_apart(values: Array, listed: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
    """Yield the places of the values (m,), increasing, at each end that are all listed (m,).

    Not those that go on in the next value, a whole number before or after them.
    """
    for order in (np.arange(len(values)), np.arange(len(values))[::-1]):
        run = order[np.logical_and.accumulate(listed[order])]
        if 0 < len(run) < len(order):
            last, following = values[order[len(run) - 1]], values[order[len(run)]]
            if abs(following - last) != 1.0:
                yield run


def _held_by_several(
    columns: Array, groups: NDArray[np.int64] | None, *, chosen: bool = False
) -> Held:
    """Return how columns (n, p) are held, with the codes of several groups only.

    The rows of one group may be copies.
    """
    held = Held.of(columns, chosen=chosen)
    if groups is None:
        return held
    several = [
        c
        for c in held.codes
        if len(np.unique(groups[columns[:, c.column] == c.value])) >= CODE_ROWS
    ]
    return replace(held, codes=tuple(several))


def _coded(
    name: str, held: Held, columns: Sequence[Array], names: tuple[str, ...], rows: int
) -> Iterator[Check]:
    """Yield a check of the codes far from the values of columns, and of those among them."""
    far = codes(held, names)
    apart = [[c.value for c in held.codes if c.column == j] for j in range(len(names))]
    among = [
        Coded(label, *one)
        for label, column, known in zip(names, columns, apart, strict=True)
        for one in heaped(column, known)
    ]
    facts = [
        f"{where}, {_listed(found)} (of {rows:,}): this looks like a code, not a number."
        for where, found in (
            ("Far from all other values", far),
            ("In many more rows than the values around it", among),
        )
        if found
    ]
    if facts:
        most = max(c.rows for c in (*far, *among))
        remedy = "Say what was not recorded as missing, or drop these rows."
        yield _doubt(name, most, " ".join(facts), remedy)


def _listed(found: Sequence[Coded]) -> str:
    return "; ".join(f"{c.column!r} is {c.value:g} in {c.rows:,} rows" for c in found)


def spread_by_many(column: Array) -> bool:
    """Whether more than a tenth of Σ(x − median)² is left without the few farthest rows."""
    distance = np.abs(column - np.median(column))
    far = distance > FAR * robust_sd(column)
    if not far.any() or np.mean(far) > FEW:
        return True
    squares = (distance / distance.max()) ** 2
    return bool(squares[~far].sum() > SPREAD_LEFT * squares.sum())


def farthest(column: Array) -> float:
    """Return the value of a column (n,) that is farthest from its median."""
    return float(column[np.argmax(np.abs(column - np.median(column)))])


def is_key(column: Array, name: str = "") -> bool:
    """Whether a column (n,) numbers rows: whole numbers that only rise or fall, or never repeat.

    Of n whole numbers measured between a and b, about n²/(2(b − a)) repeat another, more where
    some are likelier. None that does is no chance if that is many, or if the column is called a
    key.
    """
    n = len(column)
    if n < FEWEST or float(np.abs(column).max()) >= MOST_WHOLE or (column % 1.0).any():
        return False
    steps = np.diff(column)
    if (steps > 0.0).all() or (steps < 0.0).all():
        return True
    many = n * n / 2.0 > REPEATS * float(np.ptp(column))
    return (many or bool(_NAMED_KEY.search(name))) and len(np.unique(column)) == n


def _apart_rows(column: Array) -> int:
    """Return how many values of a column (n,) are not its most frequent one."""
    return len(column) - int(np.unique(column, return_counts=True)[1].max())


# The same order.


def rank_correlation(a: Array, b: Array) -> float:
    """Return Spearman's correlation of two columns (n,), 0 if there are few rows or one value."""
    if len(a) < FEWEST:
        return 0.0
    some = slice(None, None, max(1, len(a) // RANKED))
    a, b = centered_ranks(a[some]), centered_ranks(b[some])
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0.0 else 0.0


def _same_order(a: Array, b: Array, limit: float = SAME_ORDER) -> bool:
    return abs(rank_correlation(a, b)) > limit


def centered_ranks(values: Array) -> Array:
    """Return the ranks of values (n,) less their mean; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - count / 2.0)[place] - len(values) / 2.0)


def parts(a: Array, b: Array) -> bool:
    """Whether one of two columns (n,) has few levels that part the other into separate ranges."""
    some = slice(None, None, max(1, len(a) // RANKED))
    return _parts(a[some], b[some]) or _parts(b[some], a[some])


def _parts(levels: Array, values: Array) -> bool:
    """Whether values (n,) of different levels (n,) do not overlap.

    Σ n_g r̄_g², r̄ the mean ranks of levels, is then what ranks one after the other would give.
    Levels at either end count as one until they have enough rows, as those of a rounded dose.
    """
    _, place, count = np.unique(levels, return_inverse=True, return_counts=True)
    first = np.searchsorted(np.cumsum(count), FEWEST)
    last = len(count) - 1 - np.searchsorted(np.cumsum(count[::-1]), FEWEST)
    if not first < last < first + FEW_LEVELS:
        return False
    place = np.clip(place, first, last) - first
    count = np.bincount(place)
    if count.min() < FEWEST:
        return False
    mean = np.bincount(place, centered_ranks(values)) / count
    sizes = count[np.argsort(mean)]
    apart = np.cumsum(sizes) - sizes / 2.0 - len(values) / 2.0
    return bool(count @ mean**2 > PARTED * (sizes @ apart**2))


# Exact functions.


class Determined(NamedTuple):
    """A column of x without which a target is not known exactly, and those needed beside it."""

    column: int
    others: tuple[int, ...]
    without: float
    """R² without the column."""


def determined(target: Array, given: Array, x: Array) -> list[Determined]:
    """Return the columns of x (n, p) by which, beside ``given`` (n, d), a target (n,) is exact.

    Exact is a cross-fitted R² of least squares beyond `EXACT`. From columns that suffice those
    are left out that can be; of the rest the one is named without which the fit is worst. The
    search goes on without it, as another leak may hide behind the first.
    """
    found: list[Determined] = []
    left = list(range(x.shape[1]))
    d = given.shape[1]
    z, y = standardized(np.column_stack([given, x])), standardized(target[:, None])[:, 0]
    known = cross_fitted_r2(z, y) if left else 0.0
    if known <= EXACT or cross_fitted_r2(z[:, :d], y) > EXACT:
        return []
    while known > EXACT and len(found) < MOST_FOUND:
        needed = indispensable(z[:, [*range(d), *(d + j for j in left)]], y, d)
        column, *others = (left[k] for k in needed)
        left.remove(column)
        known = cross_fitted_r2(z[:, [*range(d), *(d + j for j in left)]], y)
        found.append(Determined(column, tuple(others), max(known, 0.0)))
    return found


def cross_fitted_r2(z: Array, y: Array) -> float:
    """Return R² of y (n,) by least squares on z (n, k), fitted on odd rows for even ones and back.

    0 where there are fewer than four rows for each column.
    """
    n, k = z.shape
    if k == 0 or n < max(FEWEST, 4 * (k + 1)):
        return 0.0
    halves = slice(0, None, 2), slice(1, None, 2)
    left, total = 0.0, 0.0
    for fit, test in (halves, halves[::-1]):
        center, mean = z[fit].mean(axis=0), float(y[fit].mean())
        a = z[fit] - center
        gram = a.T @ a
        gram[np.diag_indices(k)] += _RIDGE * n
        beta = np.linalg.solve(gram, a.T @ (y[fit] - mean))
        left += float(np.sum((y[test] - mean - (z[test] - center) @ beta) ** 2))
        total += float(np.sum((y[test] - mean) ** 2))
    return 1.0 - left / total if total > 0.0 else 0.0


def indispensable(z: Array, y: Array, always: int) -> list[int]:
    """Return columns of z (n, k) that together leave y (n,) exact, the most needed first.

    The first ``always`` columns stay; the others are numbered after them. Without column j the
    residual sum of squares grows by β_j²/(A⁻¹)_jj, A = zᵀz, and A⁻¹ loses its row and column.
    """
    n, k = z.shape
    inverse = np.linalg.inv(z.T @ z + _RIDGE * n * np.eye(k))
    beta = inverse @ (z.T @ y)
    total = float(y @ y)
    residual = float(np.sum((y - z @ beta) ** 2))
    left = list(range(always, k))
    while len(left) > 1:
        grows = beta[left] ** 2 / np.diagonal(inverse)[left]
        j = left[int(np.argmin(grows))]
        if residual + grows.min() > (1.0 - EXACT) * total:
            break
        residual += float(grows.min())
        left.remove(j)
        column, pivot = inverse[:, j].copy(), inverse[j, j]
        beta = beta - column * beta[j] / pivot
        inverse = inverse - np.outer(column, column) / pivot
    grows = beta[left] ** 2 / np.diagonal(inverse)[left]
    return [left[i] - always for i in np.argsort(-grows, kind="stable")]


def standardized(x: Array) -> Array:
    """Return the columns of x (n, p) with mean 0 and sd 1; 0 where there is one value."""
    sd = spread_of(x)
    origin = x[:1]  # subtracted first: an offset of 1e12 would be all that is left
    moved = (x - origin) / np.where(sd > 0.0, sd, 1.0)
    return np.where(sd > 0.0, moved - moved.mean(axis=0), 0.0)


def _by_logarithms(y: Array, t: Array, x: Array) -> list[Determined]:
    """Return what determines log |y| by logarithms of sizes, where most outcomes are not 0."""
    rows = y != 0.0
    if 2 * np.count_nonzero(rows) < len(y) or not (x.size and rows.any()):
        return []
    y, t, x = np.abs(y[rows]), np.abs(t[rows]), np.abs(x[rows])
    positive = np.flatnonzero((x > 0.0).all(axis=0))
    doses = np.log(t[:, (t > 0.0).all(axis=0)])
    found = determined(np.log(y), doses, np.log(x[:, positive]))
    back = positive.tolist()
    return [
        f._replace(column=back[f.column], others=tuple(back[j] for j in f.others)) for f in found
    ]


def _beside_products(y: Array, t: Array, x: Array) -> list[Determined]:
    """Return the column of x (n, p) by which, beside products of columns, y is exact.

    Squares, too, but not of doses: a loss may be a square without noise. Products are taken that go
    most with what all columns leave of y. One column is named: others may hide behind it.
    """
    (n, d), p = t.shape, x.shape[1]
    z, target = standardized(np.column_stack([t, x])), standardized(y[:, None])[:, 0]
    if p == 0 or n < max(FEWEST, 4 * (d + p + 1)):
        return []
    design = np.column_stack([np.ones(n), z])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    size = np.sqrt(np.maximum((z**2).T @ z**2 / n - (z.T @ z / n) ** 2, np.finfo(float).tiny))
    pairs = np.column_stack(np.triu_indices(d + p))
    pairs = pairs[pairs[:, 1] >= d]
    told = (np.abs((z * left[:, None]).T @ z) / size)[tuple(pairs.T)]
    pairs = pairs[np.argsort(-told, kind="stable")[:PRODUCTS]]
    given = np.column_stack([z, standardized(z[:, pairs[:, 0]] * z[:, pairs[:, 1]])])
    if cross_fitted_r2(given, target) <= EXACT:
        return []
    needed = [d + k for k in indispensable(given, target, d)]
    column = next((k for k in needed if k < d + p), None)
    if column is None:
        return []
    parts_of = ([k] if k < d + p else pairs[k - d - p].tolist() for k in needed)
    others = dict.fromkeys(k - d for ks in parts_of for k in ks if k >= d and k != column)
    without = cross_fitted_r2(np.delete(given, column, axis=1), target)
    return [Determined(column - d, tuple(others), max(without, 0.0))]
