"""Trials that an estimate should survive: placebos, simulated truths, and other ways to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from titrant import _check, _drawing
from titrant._tables import Tabular
from titrant._text import between, brief
from titrant.data import LoggedData
from titrant.data.about import About
from titrant.doubt.answers import interval_method, named
from titrant.doubt.trials import Asked, Plan
from titrant.errors import InvalidArgument
from titrant.estimators import DoublyRobust
from titrant.evaluation.survey import check_log, survey_of
from titrant.evaluation.trust import doubts_report
from titrant.execute import as_engine
from titrant.inference import Diagnostics
from titrant.policies.given import bound_to

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from numpy.typing import ArrayLike

    from titrant._drawing import Axes
    from titrant.bandwidth import BandwidthSelector
    from titrant.data.source import Source
    from titrant.doubt.answers import Found
    from titrant.doubt.benchmarks import Progress
    from titrant.doubt.trials import Placebos, Trial
    from titrant.estimators import Estimator
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.evaluation.survey import Sample
    from titrant.execute import Engine
    from titrant.inference import IntervalMethod
    from titrant.propensity import PropensityModel

ROWS = 10_000
"""Rows of a log that trials are made with; of more, so many are drawn."""
DRAWS = 10
"""Draws of simulated outcomes: they show gross failures, at the price of so many evaluations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stress(Tabular):
    """An estimate, and what came of it in each trial."""

    policy: str
    against: str | None
    """The policy that is subtracted; None if the value itself is looked at."""
    rows: int
    """Rows that trials were made with."""
    of: int
    """Rows of the log."""
    original: Found
    trials: tuple[Trial, ...]
    evaluations: int
    """Evaluations that it took, each with all models fitted anew."""
    doubts: Diagnostics = field(default_factory=lambda: Diagnostics(()))
    """The doubtful columns of the log."""
    about: About = field(default_factory=About, repr=False)
    """What the log calls doses and outcome."""

    @property
    def sentence(self) -> str:
        """The finding in words."""
        bad = [trial for trial in self.trials if not trial.fine and trial.verdict != "matters"]
        leaning = [trial for trial in self.trials if trial.verdict == "matters"]
        fine = len(self.trials) - len(bad) - len(leaning)
        tried = len(self.trials) - len(leaning)
        count = f"all {tried}" if fine == tried else f"{fine} of {tried}"
        said = f"The estimate survives {count} trials"
        if tried == 1:
            said = f"The estimate {'survives' if fine else 'does not survive'} its one trial"
        if bad:
            said += "; not " + ", ".join(_told(trial) for trial in bad)
        if leaning:
            said += ". It rests on " + ", ".join(_without(trial) for trial in leaning)
        return f"{said}."

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON, with intervals at ``level``."""
        low, high = self.original.interval(level)
        return {
            "policy": self.policy,
            "against": self.against,
            "rows": self.rows,
            "of": self.of,
            "doubts": self.doubts.to_dict(),
            "estimate": {
                "value": self.original.value,
                "se": self.original.se,
                "low": low,
                "high": high,
                "level": level,
            },
            "trials": [trial.to_dict(level) for trial in self.trials],
            "evaluations": self.evaluations,
            "sentence": self.sentence,
        }

    def cells(self, level: float = 0.95) -> list[tuple[str, ...]]:
        """Return the table as texts: what was changed, value, interval, shift, verdict."""
        first = ("original", *_numbers(self.original, level), "", "")
        return [first, *(_cells(trial, level) for trial in self.trials)]

    def __str__(self) -> str:
        rows = self._texts(0.95)
        widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        doubts = [str(self.doubts)] if self.doubts.checks or self.doubts.notes else []
        return "\n".join([*doubts, *lines, self.sentence])

    def __repr__(self) -> str:
        fine = sum(trial.fine for trial in self.trials)
        return f"Stress({self.policy}: {fine} of {len(self.trials)} trials hold)"

    def _texts(self, level: float) -> list[tuple[str, ...]]:
        return [headings(level), *self.cells(level)]

    def _numbers(self, level: float) -> list[dict[str, Any]]:
        found = self.to_dict(level)
        columns = ("change", "value", "se", "low", "high", "shift", "verdict", "note")
        original = {**found["estimate"], "change": "original"}
        return [{name: row.get(name) for name in columns} for row in (original, *found["trials"])]

    def _caption(self) -> str:
        doubts = [check.message for check in self.doubts] + list(self.doubts.notes)
        return " ".join([*doubts, self.sentence])

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the estimate beside those of other ways to it; return the matplotlib axes."""
        alike = [
            t for t in self.trials if t.found is not None and t.expected == self.original.value
        ]
        founds = [self.original, *(t.found for t in alike if t.found is not None)]
        drawn = _drawing.new_axes(ax, 0.8 + 1.3 * _drawing.ROW * len(founds))
        drawn.set_xlabel(_drawing.escaped(self.about.axis(difference=self.against is not None)))
        names = ["original", *(t.change for t in alike)]
        ends = [f.interval(level) for f in founds]
        values = [f.value for f in founds]
        return _drawing.forest(drawn, names, values, ends, line=self.original.value)


def headings(level: float) -> tuple[str, ...]:
    """Return what the columns of the table are called."""
    return "trial", "value", f"{100 * level:g}% CI", "shift in SE", "verdict"


def _numbers(found: Found, level: float) -> tuple[str, str]:
    low, high = found.interval(level)
    return brief(found.value, high - low), between(low, high)


def _cells(trial: Trial, level: float) -> tuple[str, ...]:
    value, ends = ("–", trial.note or "–") if trial.found is None else _numbers(trial.found, level)
    shift = "–" if trial.shift is None else in_se(trial.shift)
    return trial.change, value, ends, shift, trial.verdict


def _told(trial: Trial) -> str:
    by = "" if trial.shift is None else f", {in_se(trial.shift)} SE"
    return f"{trial.change} ({trial.verdict}{by})"


def _without(trial: Trial) -> str:
    by = "" if trial.shift is None else f" ({in_se(trial.shift)} SE without it)"
    return trial.change.removeprefix("without ") + by


def in_se(shift: float) -> str:
    """Return a shift in standard errors, with its sign.

    >>> in_se(-0.01), in_se(1.26)
    ('+0.0', '+1.3')
    """
    return f"{round(shift, 1) + 0.0:+.1f}"


def stress(
    log: Source,
    policy: AnyPolicy,
    against: AnyPolicy | None = None,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    placebo_outcomes: Placebos = (),
    placebo_treatments: Placebos = (),
    contexts: Sequence[str] | None = None,
    draws: int = DRAWS,
    rows: int = ROWS,
    seed: int = 0,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
    progress: Progress | None = None,
) -> Stress:
    """Return what becomes of an estimate when one thing after the other is changed.

    Each trial estimates everything anew, models included, and takes as long as `evaluate`; without
    placebos there are about 8 + ``draws`` of them, and one for each context left out. Trust rules
    refuse none.

    Parameters
    ----------
    log, policy, estimator, bandwidth, propensity, interval, ignore_doubts, executor : as in
        `evaluate`
    against : another policy, if the difference is what is looked at
    placebo_outcomes : outcomes that the treatment cannot have changed, such as those of the year
        before, and that were no reason for it: a dict of columns, or names of contexts, which
        models then do not see. The policy should make no difference to them
    placebo_treatments : treatments that cannot have changed the outcome, in the same way. Their
        quartiles should make no difference, given the contexts and the treatment
    contexts : columns of the context to leave out, one at a time; unless given, all up to 10, of
        more those that tell most about the dose
    draws : of simulated outcomes, 0 for none
    rows : of a log with more rows so many are drawn, and all trials are made with these
    seed : of permutations and draws
    progress : called with a stage, the steps done and the steps in all

    Returns
    -------
    Stress : the ``original`` estimate and its ``trials``, each with what was changed, what came of
        it and a verdict; ``sentence`` sums them up, ``doubts`` are about columns of the log

    >>> from titrant import Constant, LinearGaussian, SelfNormalized
    >>> from titrant.data import DESIGNS
    >>> quick = {"estimator": SelfNormalized(), "propensity": LinearGaussian(), "bandwidth": 8}
    >>> log = DESIGNS["dosing"].draw(300, 0)
    >>> found = stress(log, Constant(35), **quick, draws=0, contexts=["age"])
    >>> [trial.change for trial in found.trials][:2]
    ['doses permuted', 'without age']
    """
    return stressed(
        log,
        named(policy, against),
        given=against is not None,
        estimator=estimator,
        bandwidth=bandwidth,
        propensity=propensity,
        interval=interval,
        placebo_outcomes=placebo_outcomes,
        placebo_treatments=placebo_treatments,
        contexts=contexts,
        draws=draws,
        rows=rows,
        seed=seed,
        ignore_doubts=ignore_doubts,
        executor=executor,
        progress=progress,
    )


def stressed(
    log: Source,
    policies: Mapping[str, AnyPolicy],
    *,
    given: bool,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    placebo_outcomes: Placebos = (),
    placebo_treatments: Placebos = (),
    contexts: Sequence[str] | None = None,
    draws: int = DRAWS,
    rows: int = ROWS,
    seed: int = 0,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
    progress: Progress | None = None,
) -> Stress:
    """Return the same of two policies by name; ``given`` says that their difference is asked."""
    say = _silent if progress is None else progress
    check_log(log)
    log, policies = bound_to(log, policies)
    _check.count(draws, "draws", "stress", at_least=0)
    _check.count(rows, "rows", "stress", at_least=1)
    _check.count(seed, "seed", "stress", at_least=0)
    survey = survey_of(log, as_engine(executor, log))
    sample = survey.sample.thinned(rows)
    asked = Asked(
        log=sample.log,
        policies=policies,
        estimator=DoublyRobust() if estimator is None else estimator,
        propensity=propensity,
        bandwidth=bandwidth,
        method=interval_method(interval, "stress"),
    )
    say("evaluation", 0, 1)
    original = asked.answer()
    plan = Plan(
        asked=asked,
        original=original,
        against=given,
        seed=seed,
        draws=draws,
        placebo_outcomes=_of_sample(placebo_outcomes, sample, log),
        placebo_treatments=_of_sample(placebo_treatments, sample, log),
        contexts=contexts,
    )
    waiting = plan.trials()
    trials = []
    for done, trial in enumerate(waiting):
        say("trials", done, len(waiting))
        trials.append(trial())
    a, b = policies
    return Stress(
        policy=a,
        against=b if given else None,
        rows=len(sample.log),
        of=sample.of,
        original=original.target(against=given),
        trials=tuple(trials),
        evaluations=1 + len(waiting) + draws,
        doubts=doubts_report(survey, ignore_doubts=ignore_doubts),
        about=log.about,
    )


def _of_sample(placebos: Placebos, sample: Sample, log: Source) -> Placebos:
    """Return placebos of the rows that were drawn, where columns of all rows are given."""
    if not isinstance(placebos, Mapping) or sample.whole:
        return placebos
    first = log.first_row if isinstance(log, LoggedData) else 0
    short = [name for name, column in placebos.items() if np.shape(column) != (sample.of,)]
    if short:
        raise InvalidArgument(
            f"The placebo {short[0]!r} must be {sample.of:,} numbers, one for each row of the log; "
            f"got shape {np.shape(placebos[short[0]])}."
        )
    return {name: np.asarray(column)[sample.numbers - first] for name, column in placebos.items()}


def _silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""
