"""What was done: the doses of the log, as they were given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from titrant.errors import InvalidArgument
from titrant.policies.base import Policy

if TYPE_CHECKING:
    from titrant._types import Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StatusQuo(Policy):
    """Keep dosing as before. Its value on a log is the mean outcome; no weights are needed.

    It has no formula, so it gives no doses for new contexts.
    """

    def __call__(self, X: Array) -> Array:  # noqa: ARG002
        """Refuse: what was done is in the log, not in a formula."""
        raise InvalidArgument(
            "The status quo has no formula for new contexts: keep dosing as before. "
            "Use it in `compare`, beside the policies that would replace it."
        )
