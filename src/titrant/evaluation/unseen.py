"""What models could not see: columns that were left out, and logs without any context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from titrant.data import LoggedData


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
