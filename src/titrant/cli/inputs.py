"""From options as typed to the objects that the library is called with."""

from __future__ import annotations

import csv
import difflib
import math
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import titrant as tt
from titrant.cli import names
from titrant.cli.app import as_typed
from titrant.cli.terminal import bad_value, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pyarrow as pa

    from titrant.cli.commands.recommend import RecommendOptions
    from titrant.cli.options import ClusterOptions, EstimatorOptions, LogOptions, PageOptions
    from titrant.data.columns import ColumnNote, Roles
    from titrant.data.files import Written
    from titrant.data.source import Source
    from titrant.policies import Policy

    Bound = float | list[float | None] | None


def _in_memory(options: LogOptions) -> Opened:
    """Return the log that the options describe, and say what was done to it."""
    table, settings = _table_and_columns(options, [options.outcome])
    log = tt.LoggedData.from_frame(table, outcome=options.outcome, **settings)
    _say_of(log, options)
    return Opened(log)


def _table_and_columns(
    options: LogOptions, outcomes: Sequence[str]
) -> tuple[pa.Table, dict[str, Any]]:
    """Return the table, and what `LoggedData.from_frame` is told of it besides the outcomes."""
    from titrant.data.columns import context_roles, dated_roles  # noqa: PLC0415

    chosen = columns(options.context) if options.context else None
    after = columns(options.after)
    every = after if chosen is None else [*dict.fromkeys([*chosen, *after])]
    roles = _roles(replace(options, outcome=outcomes[0]), every)
    limits = bounds(options.bounds, len(roles.doses))  # before anything is read
    others = (("outcome", name) for name in outcomes[1:])
    wanted = dated_roles((*roles.roles, *others, *context_roles(after)), options.treated_on)
    return _table(options, wanted, chosen is None), {
        "treatment": roles.doses[0] if len(roles.doses) == 1 else roles.doses,
        "context": None if chosen is None else (*roles.features, *after),
        "propensity": options.propensity,
        "groups": options.groups,
        "weights": options.weights,
        "bounds": limits,
        "atoms": atoms(options.atoms),
        "after": after,
        "treated_on": options.treated_on,
        "missing_treatment": options.missing_treatment,
        "missing_outcome": options.missing_outcome,
    }


def _say_of(log: tt.LoggedData, options: LogOptions) -> None:
    """Say what was done to the table of a log."""
    from titrant.data.notes import notes_on  # noqa: PLC0415

    for sentence in notes_on(log, chosen=not options.context):
        note(as_typed(sentence))


def _table(options: LogOptions, roles: Roles, found: bool) -> pa.Table:  # noqa: FBT001
    """Return the table, as a whole where contexts are to be ``found`` in it, or ids may be."""
    from titrant.data.files import STDIN, read_table  # noqa: PLC0415

    how = written(options)
    if not found and options.groups is None and options.log != STDIN:
        try:
            return read_table(options.log, roles, how=how)
        except tt.DataError:  # nothing that is not asked for keeps the rest from being read
            pass
    return read_table(options.log, roles, others=found, how=how)


def written(options: LogOptions | RecommendOptions) -> Written:
    """Return what the options say of how a table is written."""
    from titrant.data.files import Written  # noqa: PLC0415

    sep = {"tab": "\t", "\\t": "\t"}.get(options.sep or "", options.sep)
    if sep is not None and len(sep) != 1:
        raise bad_value("--sep", f"It must be one character, or `tab`; got {options.sep!r}.")
    return Written(
        separator=sep, decimal=options.decimal, encoding=options.encoding, sheet=options.sheet
    )


def _roles(options: LogOptions, context: Sequence[str]) -> tt.Columns:
    """Return which column plays which role."""
    return tt.Columns(
        treatment=columns(options.treatment),
        outcome=options.outcome,
        context=context,
        propensity=options.propensity,
        after=columns(options.after),
        groups=options.groups,
        weights=options.weights,
    )


def announce(done: Iterable[ColumnNote], contexts: Iterable[str]) -> None:
    """Say what was done to columns, and which the contexts are that were chosen."""
    from titrant.data.notes import context_note  # noqa: PLC0415

    for one in done:
        note(one.text)
    note(as_typed(context_note(contexts)))


def atoms(text: str | None) -> tuple[float, ...] | None:
    """Return the point masses that `--atoms` names, () for none; None to look for them.

    >>> atoms("0,50"), atoms("none"), atoms(None)
    ((0.0, 50.0), (), None)
    """
    if text is None:
        return None
    if text.strip().lower() == "none":
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        sentence = f"It must be doses separated by commas, or `none`; got {text!r}."
        raise bad_value("--atoms", sentence) from None


def method(options: EstimatorOptions, log: LogOptions) -> dict[str, Any]:
    """Return the keyword arguments of `check` and `compare` that say how to estimate."""
    _check_used(options)
    check_one_propensity(options.propensity_model, log)
    return {
        "estimator": names.estimator(
            options.estimator,
            options.kernel,
            options.clip,
            options.seed,
            edges=None if options.edges is None else names.edges(options.edges),
            outcome_model=options.outcome_model,
            doses=len(columns(log.treatment)),
        ),
        "bandwidth": None
        if options.bandwidth is None
        else names.bandwidth(options.bandwidth, options.seed),
        "propensity": names.propensity_model(options.propensity_model, options.seed),
    }


def population(path: str | None) -> object:
    """Return the table to which rows are weighted, None if none is asked for."""
    if path is None:
        return None
    from titrant.data.files import read_table  # noqa: PLC0415
    from titrant.data.frames import notes_of  # noqa: PLC0415

    table = read_table(path)
    for told in notes_of(table):
        note(told.text)
    return table


def functional(text: str | None) -> Any:  # noqa: ANN401  (a functional, None for the mean)
    """Return what is asked of the outcomes under a policy.

    >>> functional("quantile:0.9"), functional(None)
    (Quantile(probability=0.9), None)
    """
    if text is None:
        return None
    name, _, number = text.partition(":")
    known: dict[str, Callable[[float], Any]] = {
        "quantile": tt.Quantile,
        "exceeds": tt.Exceeds,
        "tail": tt.TailMean,
        "lower-tail": partial(tt.TailMean, lower=True),
    }
    try:
        return known[name](float(number))
    except (KeyError, ValueError):
        raise bad_value(
            "--functional",
            f"It must be quantile:P, exceeds:C, tail:SHARE or lower-tail:SHARE; got {text!r}.",
        ) from None


def columns(texts: Iterable[str]) -> list[str]:
    """Return the names in comma lists; a name with a comma stands in double quotes.

    >>> columns(["age,bmi", '"dose, mg"'])
    ['age', 'bmi', 'dose, mg']
    """
    return [name.strip() for text in texts for name in comma_list(text) if name.strip()]


def page(options: PageOptions, log: LogOptions, found: Source) -> dict[str, Any]:
    """Return the title of a page, and the labels and units of columns by their names."""
    from titrant.data.features import column_of  # noqa: PLC0415

    known = [*columns(log.treatment), log.outcome, *map(column_of, found.names), *found.names]
    units = [text if "=" in text else f"{log.outcome}={text}" for text in options.unit]
    return {
        "title": options.title,
        "labels": _by_column("--label", options.label, known),
        "units": _by_column("--unit", units, known),
    }


def _by_column(option: str, texts: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return COLUMN=TEXT as a dict; either may contain an equals sign."""
    from titrant.data.validate import did_you_mean  # noqa: PLC0415

    found = {}
    for text in texts:
        cuts = [i for i, letter in enumerate(text) if letter == "="]
        own = [i for i in cuts if text[:i] in known]
        if not own:
            named = text.partition("=")[0]
            raise bad_value(
                option,
                f"`{text}` must be COLUMN=TEXT, COLUMN one of the log's"
                f"{did_you_mean(named, known)}",
            )
        found[text[: own[-1]]] = text[own[-1] + 1 :]
    return found


def comma_list(text: str) -> list[str]:
    """Return the parts of a comma list, in which double quotes protect commas."""
    try:
        return next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        raise click.BadParameter(
            f"{text!r} is no list of names: put a name with a line break in double quotes.",
            param_hint="a comma list",
        ) from None


def bounds(texts: tuple[str, ...], dimension: int) -> tuple[Bound, Bound] | None:
    """Return (lower, upper), each a number for all doses or a list with one for each.

    >>> bounds(("0,",), 1), bounds(("0,1", ",5"), 2)
    ((0.0, None), ([0.0, None], [1.0, 5.0]))
    """
    if not texts:
        return None
    pairs = [_bound(text) for text in texts]
    if len(pairs) == 1:
        return pairs[0]
    if len(pairs) != dimension:
        raise bad_value(
            "--bounds",
            f"Give it once for all treatments or once for each of {dimension}; got {len(pairs)}.",
        )
    return [low for low, _ in pairs], [high for _, high in pairs]


def _bound(text: str) -> tuple[float | None, float | None]:
    pair = _ends(text)
    if pair is None:
        sentence = f"It must be LO,HI with a number or nothing on each side; got {text!r}."
        raise bad_value("--bounds", sentence)
    return pair


def _ends(text: str) -> tuple[float | None, float | None] | None:
    """Return the numbers in ``LO,HI``, each of which may be left out; None if it is no such text.

    >>> _ends("0,"), _ends(",5"), _ends("5")
    ((0.0, None), (None, 5.0), None)
    """
    low, comma, high = text.partition(",")
    try:
        return (_side(low), _side(high)) if comma else None
    except ValueError:
        return None


def _side(text: str) -> float | None:
    """Return a number, perhaps spelled inf; one that is too large for a float is none."""
    if not text.strip():
        return None
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(text)
    return value


def check_one_propensity(model: str | None, log: LogOptions) -> None:
    """Refuse the default model beside a column, which would be taken in its place."""
    if model == names.SMOOTH and log.propensity is not None:
        raise bad_value(
            "--propensity-model",
            f"The default model is fitted where a log has no propensities; column "
            f"`{log.propensity}` has them. Leave out one of the two.",
        )


def _check_used(options: EstimatorOptions) -> None:
    """Refuse an option that the estimator would ignore."""
    taken = names.ESTIMATORS[options.estimator].takes
    for name in ("kernel", "bandwidth", "clip", "edges", "outcome_model"):
        if getattr(options, name) is not None and name not in taken:
            raise bad_value(
                f"--{name.replace('_', '-')}",
                f"The estimator `{options.estimator}` has no {name.replace('_', ' ')}. Leave the "
                "option out.",
            )


# Policies as they are typed: a file, or a short text such as ``constant:35``.

_refused = partial(bad_value, "--policy")
FORMS = (
    "a dose such as 35, a file.json, constant:DOSE, linear:intercept=A,COLUMN=B, logged-mean, "
    "status-quo, clipped:LO,HI:POLICY, rounded:STEP:POLICY, or a change of the logged dose: "
    "shift:BY, multiply:BY, limited:LO,HI, tilt:STRENGTH, randomized:SD:POLICY"
)


def policies(texts: Sequence[str], log: Source) -> dict[str, Policy]:
    """Return the policies by name; the log has every context column that they name."""
    from titrant.policies.formats.loading import MOST_NESTED  # noqa: PLC0415

    found: dict[str, Policy] = {}
    for text in texts:
        name, spec = named(text)
        if name in found:
            raise _refused(
                f"Two policies are called `{name}`. Name them apart, as in `other={spec}`."
            )
        layers = _peeled(spec)[0]
        if layers > MOST_NESTED:
            raise _refused(
                f"The policy is wrapped {layers:,} times; {MOST_NESTED} is the most. Give one "
                "`clipped:` and one `rounded:` that do the same."
            )
        found[name] = policy(spec, log)
        _check_columns(f"The policy `{name}` uses", found[name].features or (), log.names)
    return found


def named(text: str) -> tuple[str, str]:
    """Return the name and the policy in ``NAME=POLICY``; a policy's own name unless given.

    >>> named("new=rules/v2.json"), named("rules/v2.json"), named("linear:intercept=1,age=2")
    (('new', 'rules/v2.json'), ('v2', 'rules/v2.json'), ('linear:intercept=1,age=2', ...))
    """
    name, equals, spec = text.partition("=")
    if equals and name.strip() and ":" not in name:
        return name.strip(), spec
    return (Path(text).stem if text.endswith(".json") else text), text


def files(texts: Sequence[str], option: str = "--policy") -> list[tuple[str, str]]:
    """Return the files that policies are read from, each with the option that names them."""
    inner = (_peeled(named(text)[1])[1] for text in texts)
    return [(option, spec) for spec in inner if _is_file(spec)]


def policy(spec: str, log: Source) -> Policy:
    """Return the policy that a text describes; `log` gives column names and mean doses."""
    kind, colon, rest = spec.partition(":")
    if spec in _WORDS:
        return _WORDS[spec](log)
    if colon and kind in _KINDS:
        return _KINDS[kind](rest, log)
    if _is_dose(spec):
        return _constant(spec, log)
    if _is_file(spec):
        return tt.load_policy(spec)
    raise _refused(f"{spec!r} is no policy: give {FORMS}.")


def _check_columns(who: str, used: Iterable[str], available: Sequence[str]) -> None:
    """Refuse a context which the log lacks, in the words of the option."""
    for column in used:
        if column not in available:
            close = difflib.get_close_matches(column, available, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else "."
            raise _refused(
                f"{who} `{column}`, which is not in the context{hint} It has "
                f"{', '.join(available)}."
            )


def _is_file(spec: str) -> bool:
    """Return whether a policy is meant to be read from a file."""
    if spec in _WORDS or spec.partition(":")[0] in _KINDS or _is_dose(spec):
        return False
    # Not by `Path`, which fails at a text that is too long for a name.
    return spec.endswith(".json") or os.path.isfile(spec)  # noqa: PTH113


def _is_dose(spec: str) -> bool:
    """Return whether a policy is a plain number, or one for each treatment with commas between.

    >>> _is_dose("35"), _is_dose("35,0.5"), _is_dose("35.json")
    (True, True, False)
    """
    try:
        return all(math.isfinite(float(part)) for part in spec.split(","))
    except ValueError:
        return False


def _peeled(spec: str) -> tuple[int, str]:
    """Return how often a policy is wrapped, and what is wrapped.

    >>> _peeled("clipped:0,9:rounded:1:rule.json")
    (2, 'rule.json')
    """
    layers = 0
    kind, _, rest = spec.partition(":")
    while kind in {"clipped", "rounded", "randomized"}:
        layers, spec = layers + 1, rest.partition(":")[2]
        kind, _, rest = spec.partition(":")
    return layers, spec


def _logged_mean(log: Source) -> Policy:
    from titrant.evaluation.survey import survey_of  # noqa: PLC0415
    from titrant.execute import as_engine  # noqa: PLC0415

    mean = survey_of(log, as_engine(None, log)).mean_dose
    return tt.Constant(float(mean[0]) if len(mean) == 1 else mean)


def _constant(text: str, _: Source) -> Policy:
    doses = [_number(part, f"constant:{text}") for part in text.split(",")]
    return tt.Constant(doses[0] if len(doses) == 1 else doses)


def _linear(text: str, log: Source) -> Policy:
    terms: dict[str, float] = {}
    for column, coefficient in map(_term, comma_list(text)):
        if column in terms:
            raise _refused(f"`{column}` is given twice in `linear:{text}`. Give each term once.")
        terms[column] = coefficient
    if not terms:
        raise _refused(f"`linear:{text}` names neither an intercept nor a column. Give {FORMS}.")
    intercept = terms.pop("intercept", 0.0)
    _check_columns(f"`linear:{text}` uses", terms, log.names)
    if not log.names:
        return tt.Constant(intercept)
    return tt.Linear([terms.get(c, 0.0) for c in log.names], intercept, features=log.names)


def _clipped(text: str, log: Source) -> Policy:
    limits, inner = _wrapped("clipped", "LO,HI", text, log)
    return tt.Clipped(inner, *_limits(limits, f"clipped:{text}"))


def _rounded(text: str, log: Source) -> Policy:
    step, inner = _wrapped("rounded", "STEP", text, log)
    return tt.Rounded(inner, _number(step, f"rounded:{text}"))


def _shift(text: str, _: Source) -> Policy:
    return tt.Shift(*_change("shift", text))


def _multiply(text: str, _: Source) -> Policy:
    return tt.Multiply(*_change("multiply", text))


def _change(kind: str, text: str) -> tuple[float, Any, Any]:
    """Return the amount and the ends in ``BY`` or ``BY:LO,HI``."""
    by, colon, limits = text.partition(":")
    low, high = _limits(limits, f"{kind}:{text}") if colon else (None, None)
    return _number(by, f"{kind}:{text}"), low, high


def _limited(text: str, _: Source) -> Policy:
    low, high = _limits(text, f"limited:{text}")
    return tt.Limited(low, high)  # type: ignore[arg-type]  # None is an open side


def _tilt(text: str, _: Source) -> Policy:
    return tt.Tilt(_number(text, f"tilt:{text}"))


def _randomized(text: str, log: Source) -> Policy:
    sd, inner = _wrapped("randomized", "SD", text, log)
    return tt.Randomized(inner, _number(sd, f"randomized:{text}"))


def _wrapped(kind: str, first: str, text: str, log: Source) -> tuple[str, Policy]:
    """Return what stands first in ``kind:first:POLICY``, and the policy."""
    given, _, inner = text.partition(":")
    if not inner:
        raise _refused(f"`{kind}:{text}` names no policy. Write it as {kind}:{first}:POLICY.")
    return given, policy(inner, log)


def _limits(text: str, where: str) -> tuple[float | None, float | None]:
    """Return the ends in ``LO,HI``, a part of a policy."""
    pair = _ends(text)
    if pair is None:
        raise _refused(
            f"{text!r} in `{where}` must be LO,HI with a number or nothing on each side, such as "
            "0,40 or 0, alone."
        )
    return pair


def _term(text: str) -> tuple[str, float]:
    """Return column and coefficient; the column may be an indicator such as ``sex=male``."""
    column, _, coefficient = text.rpartition("=")
    return column.strip(), _number(coefficient, text)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _refused(f"{text!r} in `{where}` is not a number. Give {FORMS}.") from None


_WORDS: dict[str, Callable[[Source], Policy]] = {
    "logged-mean": _logged_mean,
    "status-quo": lambda _: tt.StatusQuo(),
}
_KINDS: dict[str, Callable[[str, Source], Policy]] = {
    "constant": _constant,
    "linear": _linear,
    "clipped": _clipped,
    "rounded": _rounded,
    "shift": _shift,
    "multiply": _multiply,
    "limited": _limited,
    "tilt": _tilt,
    "randomized": _randomized,
}


# Where a command works on its log: here, in memory, or part by part on a Dask cluster.


@dataclass(frozen=True, slots=True)
class Opened:
    """A log, and who works on it."""

    log: Source
    executor: Executor | None = None
    """None without a cluster."""


@contextmanager
def opened(log: LogOptions, cluster: ClusterOptions) -> Iterator[Opened]:
    """Lend the log and the executor that works on it."""
    if not in_parts(cluster):
        yield _in_memory(log)
        return
    source = _scanned(log, [log.outcome])[log.outcome]
    with _working(cluster) as executor:
        yield Opened(source, executor)


@contextmanager
def opened_by_outcome(
    log: LogOptions, names: Sequence[str], cluster: ClusterOptions
) -> Iterator[tuple[Mapping[str, Source], Executor | None]]:
    """Lend a log of the same rows for each outcome, and the executor that works on them."""
    if not in_parts(cluster):
        table, settings = _table_and_columns(log, names)
        logs = tt.LoggedData.from_frame(table, outcome=list(names), **settings)
        _say_of(logs[names[0]], log)
        yield logs, None
        return
    sources = _scanned(log, names)
    with _working(cluster) as executor:
        yield sources, executor


@contextmanager
def _working(cluster: ClusterOptions) -> Iterator[Executor | None]:
    """Lend the executor of a cluster, if there is one."""
    if cluster.workers is None and cluster.dask is None:
        yield None
        return
    with tt.dask_executor(workers=cluster.workers, address=cluster.dask) as executor:
        yield executor


def in_parts(cluster: ClusterOptions) -> bool:
    """Return whether the log is to be worked on part by part."""
    return cluster.in_parts or cluster.workers is not None or cluster.dask is not None


def _scanned(log: LogOptions, outcomes: Sequence[str]) -> dict[str, Source]:
    """Return the Parquet files of the log, yet to be read, by each of the outcomes."""
    if not log.context:
        raise bad_value(
            "--context",
            "Name the context columns: a log that is read part by part is not searched for them.",
        )
    for name in ("sep", "decimal", "encoding", "sheet"):
        if getattr(log, name) is not None:
            sentence = (
                "A log that is read part by part is in Parquet, which has none. Leave it out."
            )
            raise bad_value(f"--{name}", sentence)
    if log.treated_on is not None:
        raise bad_value(
            "--treated-on",
            "A log that is read part by part is not searched for dates. Name the columns measured "
            "after the treatment by `--after`.",
        )
    for name in ("missing_treatment", "missing_outcome"):
        if getattr(log, name) != "refuse":
            raise bad_value(
                f"--{name.replace('_', '-')}",
                "A log that is read part by part keeps all its rows. Leave it out, or read the log "
                "as a whole, without `--in-parts`, `--workers` and `--dask`.",
            )
    roles = _roles(replace(log, outcome=outcomes[0]), columns(log.context))
    limits = bounds(log.bounds, len(roles.doses))
    by_outcome = roles.by_outcome(outcomes) if len(outcomes) > 1 else {roles.outcome: roles}
    return {
        name: tt.scan_parquet(log.log, own, bounds=limits, atoms=atoms(log.atoms))
        for name, own in by_outcome.items()
    }
