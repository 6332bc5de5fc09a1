"""From options as typed to the objects that the library is called with."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Any

import click

from titrant.cli import names
from titrant.cli.terminal import note

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from titrant._types import Array
    from titrant.cli.options import LogOptions, MethodOptions
    from titrant.data import LoggedData
    from titrant.data.encode import Encoded

    Bound = float | list[float | None] | None

FEW_DOSES = 10
"""Different doses in a long log up to which they look like steps."""
_SAMPLE = 10_000


def read_log(options: LogOptions) -> LoggedData:
    """Return the log that the options describe, and say how its context was made."""
    return logged(options, read_encoded(options))


def read_encoded(options: LogOptions) -> Encoded:
    """Return the table that the options describe, its context made of numbers, and say how."""
    from titrant.data import Columns  # noqa: PLC0415
    from titrant.data.encode import encode  # noqa: PLC0415

    context = columns(options.context) if options.context else None
    roles = Columns(
        treatment=columns(options.treatment),
        outcome=options.outcome,
        context=context or [],
        propensity=options.propensity,
    )
    bounds(options.bounds, len(roles.doses))  # before anything is read
    encoded = encode(_table(options.log, roles, whole=context is None), context, roles.needed)
    announce(encoded, chosen=context is None)
    return encoded


def logged(options: LogOptions, encoded: Encoded) -> LoggedData:
    """Return the log in a table whose context is made of numbers."""
    from titrant.data import LoggedData  # noqa: PLC0415

    doses = columns(options.treatment)
    log = LoggedData.from_frame(
        encoded.table,
        treatment=doses[0] if len(doses) == 1 else doses,
        outcome=options.outcome,
        context=encoded.names,
        propensity=options.propensity,
        bounds=bounds(options.bounds, len(doses)),
    )
    for name, column in zip(doses, log.doses.T, strict=True):
        _note_steps(name, column)
    return log


def announce(encoded: Encoded, *, chosen: bool) -> None:
    """Say how contexts were made, and which they are when they were chosen for the user."""
    from titrant.data.wording import listed  # noqa: PLC0415

    for sentence in encoded.notes:
        note(sentence)
    if chosen:
        note(f"Context: {listed(encoded.names) or 'none'}. Choose others with `--context`.")


def _note_steps(name: str, doses: Array) -> None:
    """Say so if doses (n,) were given in a few steps, which is not what propensities assume."""
    import numpy as np  # noqa: PLC0415

    # A sample that holds more of them than are few settles the matter.
    if len(np.unique(doses[:_SAMPLE])) <= FEW_DOSES < len(doses) / FEW_DOSES:
        steps = len(np.unique(doses))
        if steps <= FEW_DOSES:
            note(
                f"Column `{name}` takes only {steps} different values in {len(doses):,} rows. A "
                "density of the dose describes doses that vary freely: mind the trust checks, and "
                "rather ask about one of these values with a bandwidth that reaches the next."
            )


def method(options: MethodOptions) -> dict[str, Any]:
    """Return the keyword arguments of `evaluate` and `compare` that say how to estimate."""
    _check_used(options)
    return {
        "estimator": names.estimator(
            options.estimator,
            options.kernel,
            options.clip,
            options.seed,
            edges=None if options.edges is None else names.edges(options.edges),
            outcome_model=options.outcome_model,
        ),
        "bandwidth": None
        if options.bandwidth is None
        else names.bandwidth(options.bandwidth, options.seed),
        "propensity": names.propensity_model(options.propensity_model, options.seed),
        "allow_untrusted": options.allow_untrusted,
    }


def columns(texts: Iterable[str]) -> list[str]:
    """Return the names in comma lists; a name with a comma stands in double quotes.

    >>> columns(["age,bmi", '"dose, mg"'])
    ['age', 'bmi', 'dose, mg']
    """
    return [name.strip() for text in texts for name in comma_list(text) if name.strip()]


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
        raise click.BadParameter(
            f"Give it once for all treatments or once for each of {dimension}; got {len(pairs)}.",
            param_hint="'--bounds'",
        )
    return [low for low, _ in pairs], [high for _, high in pairs]


def _bound(text: str) -> tuple[float | None, float | None]:
    low, comma, high = text.partition(",")
    try:
        pair = _side(low), _side(high)
    except ValueError:
        comma = ""
    if not comma:
        raise click.BadParameter(
            f"It must be LO,HI with a number or nothing on each side; got {text!r}.",
            param_hint="'--bounds'",
        )
    return pair


def _side(text: str) -> float | None:
    """Return a number, perhaps spelled inf; one that is too large for a float is none."""
    if not text.strip():
        return None
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(text)
    return value


def _table(path: str, roles: Any, *, whole: bool) -> pa.Table:  # noqa: ANN401  (Columns)
    """Return the whole table, in which contexts are found, or its named columns."""
    from titrant.data.files import read_table  # noqa: PLC0415

    return read_table(path, roles.roles, others=whole)


def _check_used(options: MethodOptions) -> None:
    """Refuse an option that the estimator would ignore."""
    taken = names.ESTIMATORS[options.estimator].takes
    given = {
        "kernel": options.kernel,
        "bandwidth": options.bandwidth,
        "clip": options.clip,
        "edges": options.edges,
        "outcome_model": options.outcome_model,
    }
    for name, value in given.items():
        if value is not None and name not in taken:
            said = name.replace("_", " ")
            raise click.BadParameter(
                f"The estimator `{options.estimator}` has no {said}. Leave the option out.",
                param_hint=f"'--{name.replace('_', '-')}'",
            )
