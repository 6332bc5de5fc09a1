"""Plain default models, for tests that are not about models."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from titrant.evaluation.models import fitting

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plainly() -> Iterator[None]:
    """Let default models be those of a log of few rows, which take a fraction of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "FEWEST_TO_FOLLOW", math.inf)
        yield
