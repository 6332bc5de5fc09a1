"""Policies as they are typed: a file, or a short text such as ``constant:35``."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from titrant.cli.inputs import bounds, comma_list

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant.data.source import Source
    from titrant.policies import Policy

FORMS = (
    "a file.json, constant:DOSE, linear:intercept=A,COLUMN=B, logged-mean, status-quo, "
    "clipped:LO,HI:POLICY or rounded:STEP:POLICY"
)


def policies(texts: Sequence[str], log: Source) -> dict[str, Policy]:
    """Return the policies by name; the log has every context column that they name."""
    from titrant.policies.loading import MOST_NESTED  # noqa: PLC0415

    found: dict[str, Policy] = {}
    for text in texts:
        name, spec = named(text)
        if name in found:
            raise _refusal(
                f"Two policies are called `{name}`. Name them apart, as in `other={spec}`."
            )
        layers = _peeled(spec)[0]
        if layers > MOST_NESTED:
            raise _refusal(
                f"The policy is wrapped {layers:,} times; {MOST_NESTED} is the most. Give one "
                "`clipped:` and one `rounded:` that do the same."
            )
        found[name] = policy(spec, log)
        _check_columns(found[name], log.names, name)
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
    if _is_file(spec):
        from titrant.policies import load_policy  # noqa: PLC0415

        return load_policy(spec)
    raise _refusal(f"{spec!r} is no policy: give {FORMS}.")


def _check_columns(policy: Policy, available: Sequence[str], name: str) -> None:
    """Refuse a policy that names a context which the log lacks, in the words of the option."""
    for feature in policy.features or ():
        if feature not in available:
            raise _refusal(_no_column(f"The policy `{name}` uses", feature, available))


def _is_file(spec: str) -> bool:
    """Return whether a policy is meant to be read from a file."""
    if spec in _WORDS or spec.partition(":")[0] in _KINDS:
        return False
    # Not by `Path`, which fails at a text that is too long for a name.
    return spec.endswith(".json") or os.path.isfile(spec)  # noqa: PTH113


def _peeled(spec: str) -> tuple[int, str]:
    """Return how often a policy is wrapped, and what is wrapped.

    >>> _peeled("clipped:0,9:rounded:1:rule.json")
    (2, 'rule.json')
    """
    layers = 0
    kind, _, rest = spec.partition(":")
    while kind in {"clipped", "rounded"}:
        layers, spec = layers + 1, rest.partition(":")[2]
        kind, _, rest = spec.partition(":")
    return layers, spec


def _logged_mean(log: Source) -> Policy:
    from titrant.execute import as_engine  # noqa: PLC0415
    from titrant.policies import Constant  # noqa: PLC0415
    from titrant.survey import HeldSurvey, survey_of  # noqa: PLC0415

    survey = survey_of(log, as_engine(None, log))
    if isinstance(survey, HeldSurvey):
        return Constant(survey.log.treatment.mean(axis=0))
    mean = survey.sums.moments.mean[: log.dimension]
    return Constant(float(mean[0]) if len(mean) == 1 else mean)


def _status_quo(_: Source) -> Policy:
    from titrant.policies import StatusQuo  # noqa: PLC0415

    return StatusQuo()


def _constant(text: str, _: Source) -> Policy:
    from titrant.policies import Constant  # noqa: PLC0415

    doses = [_number(part, f"constant:{text}") for part in text.split(",")]
    return Constant(doses[0] if len(doses) == 1 else doses)


def _linear(text: str, log: Source) -> Policy:
    from titrant.policies import Constant, Linear  # noqa: PLC0415

    terms: dict[str, float] = {}
    for column, coefficient in map(_term, comma_list(text)):
        if column in terms:
            raise _refusal(f"`{column}` is given twice in `linear:{text}`. Give each term once.")
        terms[column] = coefficient
    if not terms:
        raise _refusal(f"`linear:{text}` names neither an intercept nor a column. Give {FORMS}.")
    intercept = terms.pop("intercept", 0.0)
    for column in terms:
        if column not in log.names:
            raise _refusal(_no_column(f"`linear:{text}` uses", column, log.names))
    if not log.names:
        return Constant(intercept)
    return Linear([terms.get(c, 0.0) for c in log.names], intercept, features=log.names)


def _clipped(text: str, log: Source) -> Policy:
    from titrant.policies import Clipped  # noqa: PLC0415

    limits, _, inner = text.partition(":")
    pair = bounds((limits,), log.dimension)
    low, high = (None, None) if pair is None else pair
    return Clipped(policy(inner, log), low, high)


def _rounded(text: str, log: Source) -> Policy:
    from titrant.policies import Rounded  # noqa: PLC0415

    step, _, inner = text.partition(":")
    return Rounded(policy(inner, log), _number(step, f"rounded:{text}"))


def _term(text: str) -> tuple[str, float]:
    """Return column and coefficient; the column may be an indicator such as ``sex=male``."""
    column, _, coefficient = text.rpartition("=")
    return column.strip(), _number(coefficient, text)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _refusal(f"{text!r} in `{where}` is not a number. Give {FORMS}.") from None


def _no_column(who: str, column: str, available: Sequence[str]) -> str:
    close = difflib.get_close_matches(column, available, n=1)
    hint = f"; did you mean `{close[0]}`?" if close else "."
    return f"{who} `{column}`, which is not in the context{hint} It has {', '.join(available)}."


def _refusal(sentence: str) -> click.BadParameter:
    return click.BadParameter(sentence, param_hint="'--policy'")


_WORDS: dict[str, Callable[[Source], Policy]] = {
    "logged-mean": _logged_mean,
    "status-quo": _status_quo,
}
_KINDS: dict[str, Callable[[str, Source], Policy]] = {
    "constant": _constant,
    "linear": _linear,
    "clipped": _clipped,
    "rounded": _rounded,
}
