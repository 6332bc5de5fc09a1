"""One statement of the paper and how it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from titrant.studies.study import Findings, Measurement, Piece, Settings, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Tasks that carry the part's name under "part", their measurement and what all say."""

    name: str
    tasks: Callable[[Settings], Sequence[Task]]
    measure: Callable[[Task], Measurement]
    summarize: Callable[[Sequence[Piece]], Findings]
