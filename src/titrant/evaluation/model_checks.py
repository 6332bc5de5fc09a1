"""What the fitted models say of themselves, on a sample of rows, for the trust report.

Whether doses fall evenly over the laws that were fitted to them; whether what models leave is
shared by rows that are alike; whether the bounds on predictions decide the value; and what plain
models would have said. The last two are questions of values, at the bandwidth of the estimate: the
same rows are asked again with other nuisances. And what models could not see: columns that were
left out, no context at all, and the time, along which what they leave may drift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtri

from titrant.errors import TitrantError
from titrant.estimators import DoublyRobust
from titrant.estimators.base import WeightedEstimator
from titrant.estimators.joint import joint_estimates, statistics_of
from titrant.evaluation.models.fitting import (
    contexts,
    fitted_outcome,
    folding_numbers,
    unfitted_propensity,
)
from titrant.evaluation.models.nuisance import PolicyRows
from titrant.evaluation.repeated import carry_over_findings, left_in_levels_findings
from titrant.evaluation.survey import Sample
from titrant.inference import Verdict
from titrant.inference.trust import rules
from titrant.inference.trust.alike import never_given
from titrant.inference.trust.doubts import centered_ranks
from titrant.inference.trust.evidence import in_se
from titrant.inference.trust.leftover import leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from titrant._types import Array
    from titrant.data import LoggedData
    from titrant.estimators import Joint, Question, Rows
    from titrant.evaluation.models.nuisance import Nuisances, Prepared
    from titrant.inference import Check
    from titrant.policies import Policy
    from titrant.policies.given import Planned
    from titrant.propensity.masses import ScalarLaws
    from titrant.scaling import Held


NEGLIGIBLE, LEAST_RANK = 1e-6, 1e-6
"""What is left of planned doses, in sd of the logged ones; ranks that no finite score has."""
ROWS = 2_500
"""Rows of the sample: they show a distance of .039, and the limit of the ranks is .05."""

BROKEN = (TitrantError, ArithmeticError, ValueError)
"""What numbers that are too large for it make of a model: an error of its own, or of numpy's."""

NOISE = 0.3
"""The difference of two values on the same rows, in SE of one of them, that chance may make."""


@runtime_checkable
class HasCdf(Protocol):
    """A model that knows its distribution function; one of a user's own need not."""

    def cdf(self, X: ArrayLike, t: ArrayLike) -> Array:
        """Return F(t | x) (n,)."""


def rank_findings(nuisances: Nuisances, sample: Sample) -> Iterator[Check | str]:
    """Yield the check of the ranks F(t | x) of scalar doses, where their law is modeled.

    Default models have not seen the rows that they judge. A model that was given was fitted to
    them, so that what is found is certain and may be too little: `titrant.check` fits it again.
    """
    model, crossed = nuisances.propensity, nuisances.crossed
    if sample.log.dimension > 1 or not (crossed or isinstance(model, HasCdf)):
        return
    from titrant.propensity import Known  # noqa: PLC0415

    few = sample.thinned(ROWS).seen
    try:
        law = nuisances.law(few.log, few.numbers_if_some)
        ranks = ranks_of(law, few.log.treatment)
    except TitrantError:  # such as a known density that was given without its cdf
        return
    except BROKEN as error:
        yield f"The ranks of the doses were not checked: {error}"
        return
    if not ((ranks >= 0.0) & (ranks <= 1.0)).all():
        name = type(model).__name__
        yield f"The ranks of the doses were not checked: the cdf of `{name}` leaves 0 … 1."
        return
    given = "logged doses" if isinstance(model, Known) else "the doses that the model was fitted to"
    of = "held-out doses" if crossed else given
    yield rules.propensity_pit(*evenness(ranks), of)


def plan_findings(nuisances: Nuisances, sample: Sample, plan: Planned) -> Iterator[Check]:
    """Yield the check whether doses planned for the rows follow the logged ones.

    A rule of the contexts has nothing to do with what they leave of the logged dose: the normal
    scores of its ranks where its law is modeled, else what polynomials leave.
    """
    few = sample.thinned(ROWS).seen
    log = few.log
    planned = plan.of_rows(log)
    own = _beyond(log.context, planned)
    # Rounding is all that is left of a rule that a polynomial describes.
    if not (own.std(axis=0) > NEGLIGIBLE * log.doses.std(axis=0)).any():
        return
    surprise, modeled = _beyond(log.context, log.doses), False
    if log.dimension == 1 and nuisances.propensity is not None:
        try:
            ranks = ranks_of(nuisances.law(log, few.numbers_if_some), log.treatment)
            surprise, modeled = ndtri(np.clip(ranks, LEAST_RANK, 1.0 - LEAST_RANK))[:, None], True
        except BROKEN:  # a law without a cdf
            pass
    with np.errstate(invalid="ignore", divide="ignore"):
        found = [np.corrcoef(a, b)[0, 1] for a, b in zip(own.T, surprise.T, strict=True)]
    yield rules.planned_doses(max(np.nan_to_num(found), key=abs).item(), len(log), modeled=modeled)


def _beyond(x: Array, columns: Array) -> Array:
    """Return what cubic polynomials of each context (n, p) leave of columns (n, d)."""
    sd = x.std(axis=0)
    z = (x[:, sd > 0.0] - x[:, sd > 0.0].mean(axis=0)) / sd[sd > 0.0]
    powers = 3 if 3 * z.shape[1] < len(x) / 10 else 1 if z.shape[1] < len(x) / 10 else 0
    design = np.column_stack([np.ones(len(x)), *(z**k for k in range(1, powers + 1))])
    left: Array = columns - design @ np.linalg.lstsq(design, columns, rcond=None)[0]
    return left


def ranks_of(law: ScalarLaws, t: Array) -> Array:
    """Return F(t | x) of doses (n,), spread evenly over its steps where doses have point masses."""
    from titrant.propensity import MixedLaws  # noqa: PLC0415

    return law.ranks(t) if isinstance(law, MixedLaws) else law.cdf(t)


def evenness(ranks: Array) -> tuple[float, float]:
    """Return the Kolmogorov distance of ranks (n,) from even on [0, 1], and its p-value."""
    from scipy.special import kolmogorov  # noqa: PLC0415

    n = len(ranks)
    u, steps = np.sort(ranks), np.arange(n + 1) / n
    distance = float(max(np.max(steps[1:] - u), np.max(u - steps[:-1])))
    root = np.sqrt(n)
    # Stephens (1970): with this factor the limiting law is good to .001 from five rows on.
    return distance, float(kolmogorov((root + 0.12 + 0.11 / root) * distance))


@dataclass(frozen=True)
class SecondOpinions:
    """Questions about policies, asked of a sample of rows with different nuisances."""

    nuisances: Nuisances
    sample: Sample
    hold: Held
    """How far contexts are held: rows beyond are left out, since a fold may not have seen any."""
    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    questions: tuple[Question, ...]
    se: Array
    """Of the estimates from all rows (m,)."""
    familiar: Sequence[Rows] = ()
    """Rows under every policy whose distances may be known already."""

    def findings(self) -> list[list[Check | str]]:
        """Return what is found about each question; a check that fails is a note."""
        found: list[list[Check | str]] = [[] for _ in self.questions]
        if self.nuisances.outcome is None:
            return found
        for what, add in (
            ("Bounds on predictions were", self._add_cuts),
            ("What plain models would give was", self._add_plain),
            ("Drift along the rows was", self._add_over_time),
            ("Confounding that is left was", self._add_leftovers),
            ("Doses that nobody alike was given were", self._add_never_given),
        ):
            try:
                add(found)
            except BROKEN as error:
                for one in found:
                    one.append(f"{what} not checked: {error}")
        return found

    def _add_cuts(self, found: list[list[Check | str]]) -> None:
        """Add the check of how far the bounds on predictions move each value."""
        free = self._without_bounds
        if free is None:
            return
        # What a cut moves on a sample it moves on all rows, up to the noise of the sample.
        se = np.maximum(self.se, NOISE * self._given.se)
        for one, moved in zip(found, list(self._moved(free, se)), strict=True):
            if moved is not None:
                one.append(rules.cut_predictions(abs(moved)))

    def _add_plain(self, found: list[list[Check | str]]) -> None:
        """Add a note on each value that plain models would give otherwise."""
        plain = self._plain
        if plain is None:
            return
        differences = plain.values - self._given.values
        each = zip(found, list(self._moved(plain, plain.se)), differences, strict=True)
        for one, moved, by in each:
            if moved is not None and abs(moved) > rules.RICH_SE:
                one.append(plain_note(float(by), abs(moved)))

    def _add_over_time(self, found: list[list[Check | str]]) -> None:
        """Add the checks of drift and of earlier doses to all values that rest on models."""
        made, ranks = self._prepared, self._ranks
        if ranks is None or made.r_logged is None:
            return
        log, left = made.log, made.log.outcome - made.r_logged
        seen = np.arange(len(log)) if log.observed is None else np.flatnonzero(log.observed)
        checks = drift_findings(ranks[seen], left[seen], log.rows(seen), self._orders(seen))
        groups = None if self.nuisances.keys is None else log.groups
        if groups is not None:
            checks += carry_over_findings(ranks[seen], left[seen], groups[seen])
        checks += left_in_levels_findings(ranks[seen], left[seen], log.rows(seen))
        for one, question in zip(found, self.questions, strict=True):
            if question.estimator.uses_outcome_model:
                one.extend(checks)

    def _add_leftovers(self, found: list[list[Check | str]]) -> None:
        """Add the check of a bias that rows alike in a few contexts show, to weighted values."""
        units = self._few.log.groups
        for i, (question, rows) in enumerate(zip(self.questions, self._rows, strict=True)):
            own = question.estimator
            if not isinstance(own, WeightedEstimator) or rows.x is None:
                continue
            if not own.uses_propensity:  # the status quo, which weights no dose
                continue
            w = question.weights(question.terms(rows))
            counted = rows.counts * (1.0 if question.part is None else question.part.inside(rows))
            among = np.flatnonzero(counted if rows.seen is None else counted * rows.seen)
            omega, mean = counted[among], np.average(w, weights=counted)
            if not mean > 0.0:
                continue
            a, e = w[among] / mean - 1.0, own.baseline(rows)[1][among]
            unit = None if units is None else units[among]
            x, names, texts = by_column(rows.x[among], self._few.log.names)
            for left in leftovers(x, a[:, None], e, omega, unit, nominal=texts):
                check = rules.leftover_bias(left, float(self.se[i]), names)
                if check.verdict is not Verdict.OK:
                    found[i].append(check)
                if min(left.among) < left.among[0]:
                    found[i].append(looked_note(left.among))

    def _add_never_given(self, found: list[list[Check | str]]) -> None:
        """Add the check of people whose like were never given the policy's dose; few are a note."""
        asked = [
            (one, rows)
            for one, question, rows in zip(found, self.questions, self._rows, strict=True)
            if question.smoothed and rows.fixed is None and rows.x is not None
        ]
        log = self._few.log
        if log.dimension > 1 or not asked:
            return
        x, names, texts = by_column(log.context, log.names)
        tau = np.column_stack([rows.tau for _, rows in asked])
        counts, expected = asked[0][1].counts, self._expected
        each = never_given(
            x, log.treatment, tau, counts, log.groups, nominal=texts, expected=expected
        )
        for (one, _), never in zip(asked, each, strict=True):
            if never.rows:
                check = rules.never_given(never, names)
                one.append(check.message if check.verdict is Verdict.OK else check)

    @property
    def _expected(self) -> Array | None:
        """E[T | x] of the rows (n,) by forests that have not seen them; None without forests."""
        made = self._prepared
        own = contexts(made.log).shape[1]
        # Contexts are extended by the outcome expected of a row, then by its dose.
        return made.seen[:, own + 1] if made.seen.shape[1] > own else None

    @property
    def _ranks(self) -> Array | None:
        """F(t | x) of the rows (n,) by a fitted model, None where it does not say.

        What is wrong with a cdf is told by `rank_findings`.
        """
        nuisances, made = self.nuisances, self._prepared
        asked = nuisances.crossed or isinstance(nuisances.propensity, HasCdf)
        if nuisances.known or made.law is None or made.log.dimension > 1 or not asked:
            return None
        try:
            ranks = ranks_of(made.law, made.log.treatment)
        except (TitrantError, *BROKEN):
            return None
        return ranks if ((ranks >= 0.0) & (ranks <= 1.0)).all() else None

    def _orders(self, seen: NDArray[np.intp]) -> dict[str, Array]:
        """Return what some of the rows may be ordered by: their numbers, and columns left out."""
        whole, numbers = self.sample.log, self._few.numbers[seen]
        place = numbers - whole.first_row
        left_out = {f"the column `{k}`": v[place] for k, v in whole.orders.items()}
        return {"the order of the rows": numbers.astype(np.float64), **left_out}

    def _moved(self, other: Joint, se: Array) -> Iterator[float | None]:
        """Yield how far each value moves, in standard errors (m,); None without an answer."""
        own = self._given
        for i, question in enumerate(self.questions):
            answered = np.isfinite(own.values[i]) and np.isfinite(other.values[i])
            if not (question.estimator.uses_outcome_model and answered):
                yield None
                continue
            yield in_se(other.values[i] - own.values[i], float(se[i]), own.values[i])

    @cached_property
    def _few(self) -> Sample:
        few = self.sample.thinned(ROWS)
        if few.log.observed is not None:
            return few
        usual = np.flatnonzero(~self.hold.strays(few.log.context).any(axis=1))
        if len(usual) in (0, len(few.log)):
            return few
        return Sample(few.log.rows(usual), few.numbers[usual], few.of)

    @cached_property
    def _prepared(self) -> Prepared:
        return self.nuisances.prepare(self._few.log, self._few.numbers_if_some)

    @cached_property
    def _rows(self) -> list[Rows]:
        return self._made(self.nuisances, self._prepared, self.familiar)

    @cached_property
    def _given(self) -> Joint:
        return joint_estimates(self.questions, statistics_of(self.questions, self._rows))

    @property
    def _without_bounds(self) -> Joint | None:
        """The answers if nothing held the predictions; None if nothing does."""
        from titrant.outcome.stack import is_held, without_bounds  # noqa: PLC0415

        outcome = self.nuisances.outcome
        if outcome is None or not is_held(outcome):
            return None
        other = replace(self.nuisances, outcome=without_bounds(outcome))
        return self._answers(other, other.predicted(self._prepared))

    @property
    def _plain(self) -> Joint | None:
        """The answers by plain models; None unless both models are the default ones."""
        given = self.nuisances
        if not given.crossed or given.outcome is None or not given.outcome.extended_:
            return None
        if given.masses is not None:  # plain models know none
            return None
        from titrant.outcome.base import weighed  # noqa: PLC0415

        seen = self._few.seen.counting
        log, numbers = seen.log, folding_numbers(seen.log, seen.numbers, given.keys)
        model = unfitted_propensity(None, log.dimension)
        model = weighed(model.fit, contexts(log), log.treatment, weights=log.weights)
        outcome = fitted_outcome(log, DoublyRobust(folds=given.outcome.folds), numbers)
        plain = replace(given, propensity=model, outcome=outcome, forests=None)
        return self._answers(plain, plain.prepare(self._few.log, self._few.numbers))

    def _answers(self, nuisances: Nuisances, prepared: Prepared) -> Joint:
        rows = self._made(nuisances, prepared, self._rows)
        return joint_estimates(self.questions, statistics_of(self.questions, rows))

    def _made(
        self, nuisances: Nuisances, prepared: Prepared, familiar: Sequence[Rows]
    ) -> list[Rows]:
        """Return the rows under every policy."""
        made = PolicyRows(nuisances, self.names, self.policies, len(prepared.log)).block(prepared)
        return [one.like(other) for one, other in zip_longest(made, familiar)]


def by_column(x: Array, names: Sequence[str]) -> tuple[Array, list[str], list[int]]:
    """Return contexts (n, k) with the level of a text in place of its indicators.

    Then their names, and which are numbers of levels. A level that no indicator has is 0.
    """
    told = [j for j, name in enumerate(names) if "=" in name]
    if not told:
        return x, list(names), []
    from titrant.data.features import column_of  # noqa: PLC0415 - loads pyarrow

    of_text: dict[str, list[int]] = {}
    for j in told:
        of_text.setdefault(column_of(names[j]), []).append(j)
    rest = [j for j in range(len(names)) if j not in told]
    levels = [(x[:, at] != 0.0) @ np.arange(1.0, len(at) + 1.0) for at in of_text.values()]
    made = np.column_stack([x[:, rest], *levels])
    return made, [*(names[j] for j in rest), *of_text], list(range(len(rest), made.shape[1]))


def looked_note(among: tuple[int, ...]) -> str:
    """Return the note that not all pairs or triples of contexts were looked at."""
    every, pairs, triples = among
    which = (
        f"pairs of {pairs} and triples of {triples}" if pairs < every else f"triples of {triples}"
    )
    return (
        f"Confounding that is left was looked for in each of {every} contexts and in {which} of "
        "them, those that show most alone. A pattern of others would not be seen: leave out "
        "contexts that cannot matter."
    )


def plain_note(by: float, in_se: float) -> str:
    """Return the note that contexts act in ways which plain models do not follow."""
    size = f", {in_se:.1f} of its SE" if np.isfinite(in_se) else ""
    return (
        f"Contexts act nonlinearly: plain models (`GaussianMixture()`, `Stack(ridge_pair())`) "
        f"would give a value that is off by {by:.3g}{size}."
    )


# What models could not see. Where something that changed while the log was written is not among the
# contexts, what models leave of doses and of outcomes both drift along the order of the rows.
# Either drift alone confounds nothing.

BLOCKS, RUNS = 10, 10
"""Blocks of consecutive rows whose means are compared, and runs of rows in each of them, by whose
means chance is judged: rows of one patient that follow each other are no drift."""
FEWEST = 2 * BLOCKS * RUNS
"""Rows from which on it is looked for."""
SORTED = 0.1
"""Neighbors that differ by less, in units of what chance makes 2: rows were sorted by that column.
Sorted by the outcome, or by the dose, they show no time. (A price may stay for weeks, so that doses
must rise or fall throughout.)

None of 3,600 simulated logs of 200, 1,000 and 2,500 independent rows, a third with long tails and a
third sorted by a context, was warned of; with 5 rows of a patient together, 4 of 800 logs of 200
rows and none of 1,600 larger ones. Drift that makes up a third of the variance of doses and of
outcomes, given the contexts, is seen in .67 of logs of 200 rows and in all larger ones; a tenth in
.02 and in all larger ones."""


def unseen_notes(log: LoggedData, *, modeled: bool) -> Iterator[str]:
    """Yield what an estimate takes for granted about columns that are no contexts.

    Where propensities are known and not ``modeled``, it takes nothing for granted.
    """
    if not modeled:
        return
    if not log.names:
        yield (
            "The log has no contexts: the estimate is right only if doses were given without "
            "regard to anything that matters to the outcome, as at random."
        )
    left_out = () if log.flow is None else log.flow.left_out
    for name in left_out:
        if name in log.ids:
            rows = len(log) / len(np.unique(log.ids[name]))
            yield (
                f"The column `{name}` is no context, being a key whose values have {rows:.1f} rows "
                "each on average: the estimate is right only if those who differ in dose and "
                "outcome do so by their contexts. Name it as a context if they do not."
            )


def drift_findings(
    ranks: Array, left: Array, log: LoggedData, orders: Mapping[str, Array]
) -> list[Check]:
    """Return a check if both doses and outcomes drift along one of several orders, of the first.

    ``ranks`` are F(t | x) and ``left`` is y − r̂(t, x), each (n,), by models that have not seen the
    row; ``log`` has the same rows, and so have the columns of ``orders``.
    """
    for along, column in orders.items():
        order = np.argsort(column, kind="stable")
        found = list(_findings(ranks[order], left[order], log.rows(order), along))
        if found:
            return found
    return []


def _findings(ranks: Array, left: Array, log: LoggedData, along: str) -> Iterator[Check]:
    steps = np.diff(log.treatment)
    by_dose = bool((steps >= 0.0).all() or (steps <= 0.0).all())
    if len(left) < FEWEST or by_dose or is_sorted(log.outcome):
        return
    found = rules.drift(drift(ranks), drift(left), along)
    if found.verdict is not Verdict.OK:
        yield found


def drift(values: Array) -> float:
    """Return the p-value of no drift along the order of values (n,).

    It is that of an analysis of variance of m_bs, the mean rank in run s of block b:

        F = S·Σ_b (m_b − m)²/(B − 1) / (Σ_bs (m_bs − m_b)²/(B·(S − 1))).
    """
    from scipy.special import fdtrc  # noqa: PLC0415

    runs = np.array_split(centered_ranks(values), BLOCKS * RUNS)
    m = np.array([run.mean() for run in runs]).reshape(BLOCKS, RUNS)
    of_block = m.mean(axis=1)
    between = RUNS * np.sum((of_block - m.mean()) ** 2) / (BLOCKS - 1)
    within = np.sum((m - of_block[:, None]) ** 2) / (BLOCKS * (RUNS - 1))
    if within == 0.0:
        return 1.0
    return float(fdtrc(BLOCKS - 1, BLOCKS * (RUNS - 1), between / within))


def is_sorted(values: Array) -> bool:
    """Return whether neighbors among values (n,) are much closer than chance would have them.

    That is von Neumann's ratio of their ranks, Σ(r_{i+1} − r_i)²/Σ(r_i − r̄)², about 2 by chance.
    """
    r = centered_ranks(values)
    total = float(r @ r)
    return total == 0.0 or float(np.sum(np.diff(r) ** 2)) < SORTED * total
