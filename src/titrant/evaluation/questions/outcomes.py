"""Several outcomes of the same rows: benefit and harm, jointly.

Each outcome is evaluated as it would be alone, with models and bandwidths of its own, so that its
numbers do not depend on what else is asked; only a given law of the doses is fitted once. One pass
over all of them side by side gives the covariance across outcomes and policies.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.data import LoggedData
from titrant.errors import DataError, InvalidArgument, UntrustedEstimate
from titrant.evaluation.evaluation import Evaluation, nothing_answered
from titrant.evaluation.questions.together import Evaluations, Pick
from titrant.inference.base import simultaneous_probability
from titrant.policies import StatusQuo
from titrant.policies.base import is_exactly

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from titrant._types import Array
    from titrant.bandwidth import BandwidthSelector
    from titrant.data.source import Source
    from titrant.estimators import Estimator
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.execute import Engine
    from titrant.inference import IntervalMethod
    from titrant.inference.base import StudentInference, StudentInterval
    from titrant.inference.results import Comparison
    from titrant.propensity import CrossPropensity, PropensityModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes(Tabular):
    """Policies by several outcomes of the same rows, with all differences jointly."""

    comparisons: Mapping[str, Comparison]
    """By outcome, each as `compare` gives it."""
    policies: tuple[str, ...]
    """Those that are answered for every outcome."""
    reference: str
    """What tables compare them with: the status quo if it is among them, else the first."""
    covariance: Array
    """Of the values (m, m), all policies by the first outcome, then by the next."""
    inference: StudentInference
    """What the intervals of all of them rest on, in this order."""

    def __getitem__(self, outcome: str) -> Comparison:
        """Return the comparison by one outcome."""
        if outcome not in self.comparisons:
            known = ", ".join(map(repr, self.comparisons))
            raise InvalidArgument(f"There is no outcome {outcome!r}; there are {known}.")
        return self.comparisons[outcome]

    @property
    def names(self) -> list[str]:
        """The outcomes."""
        return list(self.comparisons)

    def differences(
        self, reference: str, level: float = 0.95, *, seed: int = 0
    ) -> dict[str, dict[str, tuple[float, float, float]]]:
        """Return each policy less ``reference``, by outcome: the difference and its interval.

        All intervals, over policies and outcomes, hold at once with probability ``level``.
        """
        base = self._place(reference)
        others = [p for p in self.policies if p != reference]
        if not others:
            return {}
        m = len(self.policies)
        pairs = [
            (k * m + self._place(p), k * m + base) for p in others for k in range(len(self.names))
        ]
        d = np.array([_row(a, b, m * len(self.names)) for a, b in pairs])
        p = simultaneous_probability(d @ self.inference.covariance @ d.T, level, seed)
        ends = iter([self.inference.contrast(a, b) for a, b in pairs])
        return {
            policy: {outcome: _told(next(ends), p) for outcome in self.names} for policy in others
        }

    def dominated(
        self, maximize: Collection[str] | None = None, level: float | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Return the policies that another beats in every outcome, with those that do.

        ``maximize`` names the outcomes that are rewards, unless the logs say it. By their values, a
        policy is dominated by one that is nowhere worse and somewhere better; with a ``level`` only
        where that is shown: the other is better in every outcome at once, by simultaneous
        intervals.
        """
        rewards = self._rewards(maximize)
        sign = np.array([-1.0 if name in rewards else 1.0 for name in self.names])
        found: dict[str, tuple[str, ...]] = {}
        for policy in self.policies:
            others = [other for other in self.policies if other != policy]
            if level is None:
                by = [o for o in others if _beats(sign * self._apart(o, policy))]
            else:
                by = [o for o in others if (self._worst(o, policy, level, sign) < 0.0).all()]
            if by:
                found[policy] = tuple(by)
        return found

    def _rewards(self, maximize: Collection[str] | None) -> list[str]:
        """Return the outcomes of which more is better, by a call or by their logs."""
        for name in maximize or ():
            self[name]
        return [
            name
            for name, compared in self.comparisons.items()
            if compared.about.direction(
                None if maximize is None else name in maximize, f"outcome {name}"
            )
        ]

    def _apart(self, a: str, b: str) -> Array:
        """Return the value of a less that of b by each outcome."""
        return np.array([c[a].value - c[b].value for c in self.comparisons.values()])

    def _worst(self, a: str, b: str, level: float, sign: Array) -> Array:
        """Return how much worse than b a may be by each outcome; less than 0 where it is better."""
        ends = np.array(list(self.differences(b, level)[a].values()))[:, 1:]
        return np.where(sign > 0.0, ends[:, 1], -ends[:, 0])

    def _place(self, policy: str) -> int:
        if policy not in self.policies:
            known = ", ".join(map(repr, self.policies))
            raise InvalidArgument(
                f"Policy {policy!r} is not answered for every outcome; those that are: {known}."
            )
        return self.policies.index(policy)

    def sentences(self, level: float = 0.95, maximize: Collection[str] | None = None) -> list[str]:
        """Return which policies others beat in all outcomes together, in sentences."""
        beaten, shown = self.dominated(maximize), self.dominated(maximize, level)
        if not beaten:
            return ["No policy is beaten by another in all outcomes: each gives something up."]
        return [
            f"{policy} is beaten by {other}: better in some outcome and worse in none by the "
            f"estimates, which the intervals {'' if other in shown.get(policy, ()) else 'do not '}"
            "show."
            for policy, by in beaten.items()
            for other in by
        ]

    def difference_table(self, level: float = 0.95) -> list[list[str]]:
        """Return headings, and a row for each policy: its difference to the `reference`.

        The intervals hold for all policies and outcomes at once with probability ``level``.
        """
        at = f"{100 * level:g}% at once"
        rows = [["difference", *(text for name in self.names for text in (name, at))]]
        for policy, by in self.differences(self.reference, level).items():
            told = ((brief(d, high - low), between(low, high)) for d, low, high in by.values())
            rows.append([f"{policy} − {self.reference}", *chain.from_iterable(told)])
        return rows

    def trade_offs(
        self, level: float = 0.95, maximize: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Return what a page says of the outcomes together: two tables, headings first, in texts.

        Plain values of the same are in `to_dict`.
        """
        return {
            "values": [self.headings(level), *self.table(level)],
            "differences": self.difference_table(level) if len(self.policies) > 1 else None,
            "sentences": self.sentences(level, maximize),
            "rewards": self._rewards(maximize),
        }

    def to_dict(
        self, level: float = 0.95, maximize: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON; ``maximize`` names the rewards."""
        return {
            "dominated": {p: list(by) for p, by in self.dominated(maximize).items()},
            "outcomes": {name: c.to_dict(level) for name, c in self.comparisons.items()},
            "policies": list(self.policies),
            "correlation": _correlation(self.inference.covariance).tolist(),
            "differences": {
                reference: {
                    policy: {
                        outcome: {"difference": d, "low": low, "high": high}
                        for outcome, (d, low, high) in by.items()
                    }
                    for policy, by in self.differences(reference, level).items()
                }
                for reference in self.policies
            },
        }

    def table(self, level: float = 0.95) -> list[list[str]]:
        """Return a row of texts for each policy: value and interval by each outcome."""
        rows = []
        for policy in self.policies:
            cells = [policy]
            for c in self.comparisons.values():
                low, high = c[policy].interval(level)
                cells += [brief(c[policy].value, high - low), between(low, high)]
            rows.append(cells)
        return rows

    def headings(self, level: float = 0.95) -> list[str]:
        """Return what the columns of `table` are called."""
        return ["policy", *(text for n in self.names for text in (n, f"{100 * level:g}% CI"))]

    def __str__(self) -> str:
        rows = [self.headings(), *self.table()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )

    def __repr__(self) -> str:
        return f"Outcomes({', '.join(self.names)}; {len(self.policies)} policies)"

    def _texts(self, level: float) -> list[list[str]]:
        return [self.headings(level), *self.table(level)]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        return [
            {"outcome": outcome, **row}
            for outcome, compared in self.comparisons.items()
            for row in compared._numbers(level)  # noqa: SLF001
        ]


def outcomes(
    logs: Mapping[str, Source],
    policies: Mapping[str, AnyPolicy],
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    weights_to: object = None,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
) -> Outcomes:
    """Return how good each policy would have been by each of several outcomes, jointly.

    Parameters
    ----------
    logs : the same rows with one outcome each, by name: `LoggedData.from_frame` with a list of
        outcomes, ``log.with_outcome(y)``, or `scan_parquet` with another outcome column
    policies : by name; the other parameters are those of `compare`

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=1000), rng.normal(size=1000)
    >>> q = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    >>> pain = tt.LoggedData(x, t, (t - 1) ** 2 + rng.normal(size=1000), q)
    >>> nausea = pain.with_outcome(t + rng.normal(size=1000))
    >>> rules = {"none": tt.Constant(0.0), "some": tt.Constant(0.5)}
    >>> both = {"pain": pain, "nausea": nausea}
    >>> found = tt.outcomes(both, rules, estimator=tt.SelfNormalized(), bandwidth=0.5)
    >>> {name: round(d, 1) for name, (d, low, high) in found.differences("none")["some"].items()}
    {'pain': -0.8, 'nausea': 0.6}
    >>> found.dominated()
    {}
    """
    evaluations = evaluations_of(
        logs,
        policies,
        estimator,
        propensity,
        executor,
        ignore_doubts=ignore_doubts,
        weights_to=weights_to,
    )
    return outcomes_on(evaluations, bandwidth, interval, allow_untrusted=allow_untrusted)


def evaluations_of(
    logs: Mapping[str, Source],
    policies: Mapping[str, AnyPolicy],
    estimator: Estimator | None,
    propensity: PropensityModel | None,
    executor: Executor | Engine | None = None,
    *,
    ignore_doubts: bool = False,
    weights_to: object = None,
) -> dict[str, Evaluation]:
    """Return the evaluations of the same rows by each outcome.

    A propensity that is given is fitted once: it does not know the outcome. The default one does,
    by the forests that it shares with the outcome model.
    """
    if not isinstance(logs, Mapping) or not logs:
        raise InvalidArgument("The outcomes must be a dict with a log for each, by name.")
    _check_same(logs)
    found: dict[str, Evaluation] = {}
    for name, log in logs.items():
        first = next(iter(found.values()), None)
        found[name] = Evaluation.of(
            log,
            policies,
            estimator,
            propensity,
            executor,
            ignore_doubts=ignore_doubts,
            weights_to=weights_to,
            law=None if first is None or propensity is None else _law(first, log),
        )
        if first is not None:
            _check_same_sums(found, name)
    return found


def outcomes_on(
    evaluations: Mapping[str, Evaluation],
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    interval: IntervalMethod | None = None,
    *,
    allow_untrusted: bool = False,
) -> Outcomes:
    """Return the policies of several evaluations of the same rows, jointly; see `outcomes`."""
    found = {
        name: e.compare(bandwidth, interval, allow_untrusted=allow_untrusted)
        for name, e in evaluations.items()
    }
    each = tuple(evaluations.values())
    answered = tuple(p for p in each[0].names if all(p in c for c in found.values()))
    if not answered:
        reasons = {p: UntrustedEstimate(w) for c in found.values() for p, w in c.refused.items()}
        raise nothing_answered(reasons)
    picks = [
        Pick(k, each[k].names.index(p), c[p].bandwidth)
        for k, c in enumerate(found.values())
        for p in answered
    ]
    point, inference = Evaluations(each).inferred(picks, interval)
    rules = dict(zip(each[0].names, each[0].policies, strict=True))
    logged = (p for p in answered if is_exactly(rules[p], StatusQuo))
    return Outcomes(
        comparisons=found,
        policies=answered,
        reference=next(logged, answered[0]),
        covariance=point.covariance,
        inference=inference,
    )


def _law(first: Evaluation, log: Source) -> PropensityModel | CrossPropensity | None:
    """Return the law of the doses that was fitted for the first outcome, if all rows have it."""
    seen = first.log.observed is None
    seen = seen and (not isinstance(log, LoggedData) or log.observed is None)
    return first.nuisances.propensity if seen else None


def _check_same(logs: Mapping[str, Source]) -> None:
    """Refuse logs that are not the same rows."""
    (first, one), *rest = logs.items()
    for name, other in rest:
        same = len(one) == len(other) and one.names == other.names
        if same and isinstance(one, LoggedData) and isinstance(other, LoggedData):
            pairs = (one.doses, other.doses), (one.context, other.context)
            same = all(np.array_equal(a, b) for a, b in pairs)
        if not same or isinstance(one, LoggedData) != isinstance(other, LoggedData):
            raise _other_rows(first, name, len(one), len(other))


def _check_same_sums(found: Mapping[str, Evaluation], name: str) -> None:
    """Refuse files whose doses or contexts do not add up to those of the first log."""
    first, one = next(iter(found.items()))
    rows = [(e.survey.sums.moments, e.survey.dimension) for e in (one, found[name])]
    a, b = (np.delete(moments.mean, d) for moments, d in rows)
    if not np.array_equal(a, b):
        raise _other_rows(first, name, one.survey.n, found[name].survey.n)


def _other_rows(first: str, name: str, n: int, m: int) -> DataError:
    return DataError(
        f"The logs of {first!r} and {name!r} are not the same rows ({n:,} and {m:,}). Give one "
        "table with a column for each outcome (`LoggedData.from_frame(…, outcome=[…])`), or scan "
        'the same files; keep rows whose outcome is missing by `missing_outcome="weight"`.'
    )


def _row(a: int, b: int, m: int) -> Array:
    row = np.zeros(m)
    row[a], row[b] = 1.0, -1.0
    return row


def _told(found: StudentInterval, p: float) -> tuple[float, float, float]:
    return (found.center, *found.around(p))


def _beats(gap: Array) -> bool:
    return bool((gap <= 0.0).all() and (gap < 0.0).any())


def _correlation(covariance: Array) -> Array:
    sd = np.sqrt(np.diagonal(covariance))
    unit = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0.0)
    return np.asarray(covariance * np.outer(unit, unit))
