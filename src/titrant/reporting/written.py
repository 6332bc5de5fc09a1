"""`report`: a log and policies in, the page about them out, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from titrant._writing import write_text
from titrant.errors import InvalidArgument
from titrant.evaluation.evaluation import Comparison, Estimate, Evaluation, name_of
from titrant.learn.honest import HonestValue
from titrant.reporting.doubts import doubts_of
from titrant.reporting.gather import gather
from titrant.reporting.learned import described, honest_value
from titrant.reporting.learned import policies as learned_policies
from titrant.reporting.page import render

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from concurrent.futures import Executor
    from typing import Any

    from numpy.typing import ArrayLike

    from titrant.bandwidth import BandwidthSelector
    from titrant.data.source import Source
    from titrant.estimators import Estimator
    from titrant.evaluation.evaluation import AnyPolicy
    from titrant.execute import Engine
    from titrant.inference import IntervalMethod
    from titrant.learning import PolicyLearner
    from titrant.propensity import PropensityModel
    from titrant.reporting.content import Report


def report(
    log: Source,
    policies: Mapping[str, AnyPolicy] | AnyPolicy | PolicyLearner,
    path: str | os.PathLike[str] | None = None,
    *,
    estimator: Estimator | None = None,
    bandwidth: BandwidthSelector | ArrayLike | None = None,
    propensity: PropensityModel | None = None,
    interval: IntervalMethod | None = None,
    weights_to: object = None,
    level: float = 0.95,
    maximize: bool | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    sensitivity: bool = False,
    stress: bool = False,
    seed: int = 0,
    allow_untrusted: bool = False,
    ignore_doubts: bool = False,
    executor: Executor | Engine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Write the page about policies on a log to ``path``, and return what it shows.

    One HTML file that needs nothing but itself: what to do, how sure that is, for whom, what if we
    are wrong. The status quo is always among the policies. ``comparison`` of what comes back is the
    `Comparison` that the page is made of, so that nothing has to be estimated twice.

    Parameters
    ----------
    log : the logged rows, as for `evaluate`; ``maximize`` and units are taken from it
    policies : one policy or several by name, as for `evaluate` and `compare`, or a `PolicyLearner`
        that was fitted to the log, whose own settings then say how
    path : of the file; None writes nothing
    estimator, bandwidth, propensity, interval, weights_to, allow_untrusted, ignore_doubts, executor
        : as for `evaluate`
    level : of all intervals
    maximize : whether the outcome is a reward, unless the log says it
    title, labels, units : of the page; what columns are called on it, and their units, by name
    sensitivity, stress : look into hidden causes, and put the estimate to trials, which takes some
        twenty times as long as the rest
    seed : of all draws
    progress : called with what is at work, the share of the time that is over, and 100

    >>> import numpy as np, titrant as tt
    >>> rng = np.random.default_rng(0)
    >>> x, t = rng.normal(size=300), rng.normal(size=300)
    >>> log = tt.LoggedData({"age": x}, t, (t - x) ** 2 + rng.normal(size=300))
    >>> quick = {"estimator": tt.SelfNormalized(), "propensity": tt.LinearGaussian()}
    >>> page = tt.report(log, {"none": 0.0, "some": 0.5}, **quick)  # and "page.html" to write it
    >>> page.comparison.names
    ['status quo', 'none', 'some']
    """
    from titrant.learning import PolicyLearner  # noqa: PLC0415 - loads scikit-learn

    how: dict[str, Any] = {"estimator": estimator, "bandwidth": bandwidth, "propensity": propensity}
    shown: dict[str, Any] = {"learned": None, "interval": interval}
    if isinstance(policies, PolicyLearner):
        comparison, evaluation = _of_learner(log, policies)
        given = [name for name, one in {**how, "interval": interval}.items() if one is not None]
        if given:
            raise InvalidArgument(
                f"The `{given[0]}` of a learned policy is that of its learner. Leave it out, or "
                "give it to `PolicyLearner`."
            )
        shown["learned"], seed = described(policies, level), policies.seed
        how = {"estimator": policies.grade, "bandwidth": None, "propensity": policies.propensity}
    else:
        asked = policies if isinstance(policies, Mapping) else {name_of(policies): policies}
        _refuse_results(asked)
        models = estimator, propensity, executor
        evaluation = Evaluation.of(
            log, asked, *models, weights_to=weights_to, ignore_doubts=ignore_doubts
        )
        comparison = evaluation.compare(bandwidth, interval, allow_untrusted=allow_untrusted)
    found = gather(
        comparison,
        evaluation,
        level=level,
        maximize=maximize,
        bandwidth=how["bandwidth"],
        **shown,
        title=title,
        labels=labels,
        units=units,
        doubts=doubts_of(how, sensitivity=sensitivity, stress=stress, seed=seed, level=level),
        seed=seed,
        progress=progress,
    )
    if path is not None:
        write_text(path, render(found))
    return found


def _of_learner(log: Source, learner: PolicyLearner) -> tuple[Comparison, Evaluation]:
    """Return the honest comparison of a learner, and its policies on all rows."""
    honest, source = honest_value(learner), learner.source_
    if (len(log), log.names) != (len(source), source.names):
        raise InvalidArgument(
            f"The learner was fitted to another log, of {len(source):,} rows; this one has "
            f"{len(log):,}. Give the log that it was fitted to."
        )
    evaluation = Evaluation.of(
        source,
        learned_policies(learner),
        learner.grade,
        learner.propensity,
        learner.executor,
        ignore_doubts=learner.ignore_doubts,
    )
    return honest.comparison, evaluation


def _refuse_results(policies: Mapping[str, object]) -> None:
    """Refuse what was estimated before: numbers do not hold the rows that a page is about."""
    for given in policies.values():
        if isinstance(given, Comparison | Estimate | HonestValue):
            raise InvalidArgument(
                f"A page is about the rows of a log, which a `{type(given).__name__}` does not "
                "hold. Give `report` the log and the policies, or the learner; what it returns has "
                "the estimates as `comparison`."
            )
