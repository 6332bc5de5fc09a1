"""What is said of a table on its way to a log: warnings in Python, notes on the command line."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from titrant.data.validate import listed
from titrant.errors import TableWarning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from titrant._types import Array
    from titrant.data.logged import LoggedData

FEW_DOSES = 10
"""Different doses in a long log up to which they look like steps."""
_SAMPLE = 10_000
TITLE = "Notes on the table, which `log.flow` keeps:"


def notes_on(log: LoggedData, *, chosen: bool) -> Iterator[str]:
    """Yield a sentence for each thing that nobody asked for; ``chosen`` if contexts were found."""
    if log.flow is not None:
        if log.flow.steps:
            yield log.flow.rows
        yield from (note.text for note in log.flow.notes)
        if chosen:
            yield context_note(log.names)
    for name, doses in zip(log.about.treatments, log.doses.T, strict=True):
        yield from _steps(name, doses, apart=log.atoms != () and log.dimension == 1)


def context_note(names: Iterable[str]) -> str:
    """Return which the contexts are that were found in a table."""
    return f"Context: {listed(names) or 'none'}. Choose others with `context=[…]`."


def warn_of(log: LoggedData, *, chosen: bool) -> None:
    """Warn of all that is to be noted, in one warning, at the call of `from_frame`."""
    found = list(notes_on(log, chosen=chosen))
    if found:
        warnings.warn("\n".join([TITLE, *found]), TableWarning, stacklevel=3)


def _steps(name: str, doses: Array, *, apart: bool) -> Iterator[str]:
    """Say so if doses (n,) were given in a few steps; ``apart`` if each is valued by its rows."""
    # A sample that holds more of them than are few settles the matter.
    if len(np.unique(doses[:_SAMPLE])) <= FEW_DOSES < len(doses) / FEW_DOSES:
        steps = len(np.unique(doses))
        if steps <= FEW_DOSES:
            what = (
                "Rows with exactly one of them answer for it; ask about these rather than others."
                if apart
                else "A density of the dose describes doses that vary freely: mind the trust "
                "checks, and rather ask about one of these values with a bandwidth that reaches "
                "the next."
            )
            given = f"Column `{name}` takes only {steps} different values in {len(doses):,} rows."
            yield f"{given} {what}"
