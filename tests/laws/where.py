"""Where an answer may be computed: by loops or by numpy, in memory, in chunks or from files."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from equivalence.test_sources import Chunks, in_files
from titrant.compiled import FEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator

SEVERAL_BLOCKS = 32_769
"""Rows: the last block of them has one."""


@contextmanager
def loops(*, on: bool) -> Iterator[None]:
    """Compiled loops wherever there are any, or nowhere, whatever the number of rows."""
    many = 1 if on else sys.maxsize
    with pytest.MonkeyPatch.context() as patch:
        for loop in FEWEST:
            patch.setitem(FEWEST, loop, many)
        yield


def everywhere(log, ask, folder):
    """What `ask` answers: by numpy in memory first, then by loops, in chunks and from files."""
    files = in_files(log, folder, 3, sample_rows=len(log))
    chunks = Chunks(log, 90 if len(log) < SEVERAL_BLOCKS else 20_000, sample_rows=len(log))
    answers = []
    for on, source in ((False, log), (True, log), (False, chunks), (True, files)):
        with loops(on=on):
            answers.append(ask(source))
    return answers
