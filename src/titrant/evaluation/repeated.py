"""Rows that share something: copies, ids that repeat, rows of one group, levels of a text.

Where no groups are given, copies of rows and columns that may be ids are looked for. A context may
repeat its values without any harm: ages do. What tells is the *design effect*, by how much larger
the variance of an estimate is when rows with the same value count as one. It is taken of weighted
residuals alone, which are independent between rows that only share a context, and of what a curve
along the values leaves of them: an effect of age is one of the number, not of who it is.

Where doses act on later rows of a group, the dose before tells what models leave of an outcome. And
of a text with many levels a dose may be usual in the log and unheard of at a level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from titrant.data.keys import CALLED_ID, FEWEST_IDS, MOST_ALONE, ROWS_OF_ID, WholeKeys, are_alone
from titrant.evaluation.shared import COPIES, columns_shared, row_keys
from titrant.inference import Verdict
from titrant.inference.rbc import parts
from titrant.inference.trust import rules

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.data.keys import Keys
    from titrant.estimators import Joint, Question, Rows
    from titrant.evaluation.shared import Kind
    from titrant.evaluation.survey import Survey
    from titrant.inference import Check

FEWEST_GROUPS = 20
"""With several rows, without which earlier doses are not looked at."""
TWINS = 0.05
"""Share of rows with a copy from which on copies are looked at."""
WONDER = 10.0
"""Times the copies of a row expected by chance, from which on equal rows are no chance: contexts
that go together make some times as many as independent ones."""
TELLING = 3
"""Columns, those with most values, by which chance is judged: others may be made of these."""
USUAL_ROWS = 12.0
"""Rows of an id, on average, at most: above, a column may as well be a code, such as a clinic's,
that models follow and whose residuals are alike for that reason; unless it is called as ids are."""
PIECES, VALUES_OF_PIECE = 12, 3
"""Of the curve along the values of a column, at most, and values of each, at least. Where an age, a
year of birth or a score explains two thirds of the variance of outcomes, their mean is warned of in
none of 100 logs each of 300, 400 and 1,000 rows if its effect is a line, a parabola, a bend or a
wave, in .00 to .17 if it is a step; without a curve it was in all. (Of hours, 24 values, .02 at a
wave and .64 at a step.) Effects of 20 to 100 patients with 5 or 10 rows each that double the
variance or more are found in .97 of logs if ids are in random order, in .92 if in an order along
which outcomes drift; without a curve in .98 and .99."""


class Together(NamedTuple):
    """Rows that may belong together: the keys that they share."""

    kind: Kind
    keys: WholeKeys

    @property
    def what(self) -> str:
        """What they share, in words."""
        return f"column `{self.kind.name}`" if self.kind.name else "copies"

    @property
    def known(self) -> Keys:
        """The keys of rows that have one: those of rows without an id are their own."""
        keys = self.keys.keys
        return keys[~are_alone(keys)] if self.kind.name else keys


def together_in(log: LoggedData) -> Iterator[Together]:
    """Yield which rows of a log in memory may belong together; nothing mostly."""
    columns = log.outcome, *log.doses.T, *log.context.T
    numbers = np.arange(len(log))
    if _sharing(log.outcome) >= TWINS * len(log):  # as copies do
        keys = WholeKeys(row_keys(log), numbers, len(log))
        if are_copies(keys, map(collision, columns), len(log)):
            yield Together(COPIES, keys)
    for kind, own in columns_shared(log):
        keys = WholeKeys(own, numbers, len(log))
        if are_ids(keys, kind.name):
            yield Together(kind, keys)


def together_among(survey: Survey) -> Iterator[Together]:
    """Yield which rows of files may belong together, of those drawn by what they share."""
    some, n = survey.sample.log, survey.n
    columns = some.outcome, *some.doses.T, *some.context.T
    for kind, keys in survey.sums.shared.items():
        if are_ids(keys, kind.name) if kind.name else are_copies(keys, map(collision, columns), n):
            yield Together(kind, keys)


def repeated_findings(
    known: Sequence[Together],
    point: Joint,
    own: Sequence[Array],
    numbers: Keys | None = None,
    *,
    contexts: Container[str] = (),
    encoded: Container[str] = (),
) -> list[list[Check | str]]:
    """Return for each question what is found about rows that belong together.

    ``own`` are the `residuals` of each question in the rows with these ``numbers`` (m,), or in all
    rows; columns that were ``encoded`` are followed by models. A text among the ``contexts`` may be
    looked at as a column beside them, too.
    """
    found: list[list[Check | str]] = [[] for _ in point.questions]
    for one in known:
        name, what = one.kind.name, one.what
        context = name in contexts
        keys, named = one.keys.keys, one.known
        different = len(np.unique(named))
        values, each = different << one.keys.halvings, len(named) / different
        rows = np.unique(keys, return_counts=True)[1]
        place = one.keys.numbers
        place = place if numbers is None else np.searchsorted(numbers, place)
        about = "about " if one.keys.halvings else ""
        for i in range(len(point.questions)):
            # Models may have seen a row's copies, and then leave other residuals than they should.
            copied = one.kind == COPIES
            effect = (
                float(rows @ rows) / len(keys) if copied else design_effect(own[i][place], keys)
            )
            share = float(rows[rows > 1].sum() / len(keys))
            if effect > rules.DESIGN_EFFECT:
                found[i].append(
                    rules.repeated_rows(effect, what, f"{about}{values:,}", share, context=context)
                )
            elif copied:
                found[i].append(
                    f"{rules.seen_copies(share)}. If they should not, keep one of each; if rows "
                    "of one belong together, say `groups` (`--groups`); the variance of this "
                    f"estimate would be {effect:.2f} times as large."
                )
            elif not one.kind.context and CALLED_ID.search(name) and name not in encoded:
                found[i].append(
                    f"The {what} repeats each of {about}{values:,} values, {each:.1f} rows "
                    f"on average, and has no part in the log. If rows of one belong together, say "
                    f"`groups={name!r}` (`--groups`); the variance of this estimate would "
                    f"be {effect:.2f} times as large."
                )
    return found


def residuals(question: Question, mean: Array, n: int, blocks: Sequence[Sequence[Rows]]) -> Array:
    """Return each row's part in the error of an estimate that its context does not explain (n,)."""
    each = [parts(question, mean, n, rows[question.policy]) for rows in blocks]
    base, own, *_ = np.concatenate(each).T
    return np.asarray(own if own.any() else base)


def design_effect(own: Array, keys: Keys) -> float:
    """Return 1 + (Σ_g(Σ_{i∈g}φ̃ᵢ)²/(1 − k/G) − Σφ̃²/(1 − k/n))/Σφ², about 1 for independent rows.

    φ̃ is what the least-squares curve of k terms along the ranks of the G keys leaves of φ (n,).
    Keys without an order, as of texts, lose nothing by it but those k degrees of freedom.
    """
    total = float(own @ own)
    if total == 0.0:
        return 1.0
    _, place, rows = np.unique(keys, return_inverse=True, return_counts=True)
    terms = bent_lines((np.cumsum(rows) - rows / 2) / len(keys))
    sums, root = np.bincount(place, weights=own), np.sqrt(rows)
    curve = terms @ np.linalg.lstsq(root[:, None] * terms, sums / root, rcond=None)[0]
    left, k = sums - rows * curve, terms.shape[1]
    between = float(left @ left) / (1.0 - k / len(rows))
    within = (total - float(rows @ curve**2)) / (1.0 - k / len(keys))
    return float(1.0 + (between - within) / total)


def bent_lines(u: Array) -> Array:
    """Return 1, u and (u − a)₊ at even knots a between 0 and 1, for ranks u (G,)."""
    pieces = min(PIECES, len(u) // VALUES_OF_PIECE)
    knots = np.arange(1, pieces) / pieces
    return np.column_stack([np.ones(len(u)), u, np.maximum(u[:, None] - knots, 0.0)])


def are_copies(keys: WholeKeys, collisions: Iterable[float], n: int) -> bool:
    """Whether too many of n rows are equal for chance, given that of each column to be so."""
    rows = np.unique(keys.keys, return_counts=True)[1]
    if rows[rows > 1].sum() < TWINS * rows.sum():
        return False
    shares = sorted(collisions)[:TELLING]
    return bool(rows @ (rows - 1) / rows.sum() > WONDER * n * np.prod(shares))


def _sharing(column: Array) -> int:
    """Return how many rows hold a value that another holds as well."""
    values = np.sort(column)
    same = values[1:] == values[:-1]
    return int(np.count_nonzero(np.append(same, False) | np.append(False, same)))


def collision(column: Array) -> float:
    """Return the chance that two rows, of those of a column (n,), hold the same value."""
    counts = np.unique(column, return_counts=True)[1] / len(column)
    return float(counts @ counts)


def are_ids(keys: WholeKeys, name: str) -> bool:
    """Whether the values of a column may be ids of those who have several rows."""
    values = len(np.unique(keys.keys))
    if keys.values < FEWEST_IDS or np.mean(are_alone(keys.keys)) > MOST_ALONE:
        return False
    least, most = ROWS_OF_ID
    return least <= len(keys.keys) / values <= (most if CALLED_ID.search(name) else USUAL_ROWS)


# Rows of one group in their order, and rows at one level of a text.


def carry_over_findings(ranks: Array, left: Array, groups: Keys) -> list[Check]:
    """Return a check if the dose before tells what is left of outcomes, in groups (n,) of rows.

    ``ranks`` and ``left`` are those of `drift_findings`, in the order of the rows.
    """
    order = np.argsort(groups, kind="stable")
    same = np.flatnonzero(groups[order][1:] == groups[order][:-1])
    before, now = order[same], order[same + 1]
    if len(np.unique(groups[now])) < FEWEST_GROUPS:
        return []
    found = rules.carry_over(carried_over(ranks[before], left[now], groups[now]), len(now))
    return [] if found.verdict is Verdict.OK else [found]


def carried_over(u: Array, e: Array, groups: Keys) -> float:
    """Return the p-value of no covariance of earlier ranks u and residuals e (n,), by groups.

    T = Σ_g S_g/√Σ_g S_g², S_g = Σ_{i∈g} (uᵢ − ū)(eᵢ − ē), against Student's law with G − 1 degrees
    of freedom.

    Of 2,400 simulated panels without carry-over (30 to 300 groups of 4 to 10 rows; groups have an
    effect on outcomes, and in a quarter of the panels each on doses, doses follow doses, or rows
    are sorted by dose) none has p < .001, with residuals of cubic regressions. Where each sd of the
    dose before moves outcomes by .2, groups having an sd of 1 and rows of .5, that is seen in .94
    of panels of 100 groups of 10 rows and in .08 of 30 groups; where by .5, in all and in .90.
    """
    from scipy.special import stdtr  # noqa: PLC0415

    _, place = np.unique(groups, return_inverse=True)
    s = np.bincount(place, weights=(u - u.mean()) * (e - e.mean()))
    scale = float(np.sqrt(s @ s))
    return 1.0 if scale == 0.0 else float(2.0 * stdtr(len(s) - 1, -abs(s.sum()) / scale))


def left_in_levels_findings(ranks: Array, left: Array, log: LoggedData) -> Iterator[Check]:
    """Yield a check for each text of many levels that doses and outcomes still share.

    ``ranks`` and ``left`` are those of `drift_findings`, of the rows of the log.
    """
    for name in () if log.flow is None else log.flow.codes:
        _, level = np.unique(log.context[:, log.names.index(name)], return_inverse=True)
        p, shared = left_in_levels(ranks, left, level)
        found = rules.left_in_levels(p, shared, name)
        if found.verdict is not Verdict.OK:
            yield found


def left_in_levels(u: Array, e: Array, level: Keys) -> tuple[float, float]:
    """Return the p-value of no covariance of ranks u and residuals e of different rows of a level.

    T = Σ_l S_l/√Σ_l S_l², S_l = Σ_{i≠j∈l} (uᵢ − ū)(eⱼ − ē), against Student's law with L − 1
    degrees of freedom; and the correlation of such pairs, 0 where there are none.

    Models that have not seen the rows leave of a level's effect what its other rows do not tell. Of
    80 simulated logs of 1,000 rows whose levels (60 or 400) move doses, outcomes, both apart or
    none, none has a correlation beyond .07 and none p < .001. Where 400 levels move both alike, by
    .7 sd of their noise, 6 of 6 have .16 to .24 and p < .00002; where 49 do, models follow.
    """
    from scipy.special import stdtr  # noqa: PLC0415

    u, e = u - u.mean(), e - e.mean()
    rows = np.bincount(level)
    s = np.bincount(level, u) * np.bincount(level, e) - np.bincount(level, u * e)
    scale, pairs = float(np.sqrt(s @ s)), float(rows @ (rows - 1))
    if scale == 0.0 or pairs == 0.0:
        return 1.0, 0.0
    p = float(2.0 * stdtr(max(len(s) - 1, 1), -abs(s.sum()) / scale))
    return p, float(s.sum() / pairs / (u.std() * e.std()))


def level_findings(log: LoggedData, tau: Array) -> Iterator[Check]:
    """Yield a check for each text of many levels at which doses tau (n,) are unheard of.

    Such a text is one column of codes. Its levels are told by their mean doses t̄_l; s is the sd of
    doses within levels. Doses count where |τ − t̄_l| > 2.5 s. Without an effect of levels on doses
    none of 480 simulated logs is warned of, at the median dose or the 95 % quantile; where levels
    move doses by twice their sd within, at the median dose .99 are, by 1.5 times .64, by 1 none.
    """
    codes = () if log.flow is None else log.flow.codes
    for name in codes:
        _, level = np.unique(log.context[:, log.names.index(name)], return_inverse=True)
        rows = np.bincount(level)
        mean = np.bincount(level, weights=log.treatment) / rows
        within = np.sum((log.treatment - mean[level]) ** 2) / max(len(level) - len(rows), 1)
        far = np.abs(tau - mean[level]) > rules.FAR_FROM_LEVEL * np.sqrt(within)
        found = rules.level_support(float(far.mean()), name, len(rows))
        if found.verdict is not Verdict.OK:
            yield found
