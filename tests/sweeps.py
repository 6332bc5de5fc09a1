"""Sweeps of which `make test` runs a part and `make test-all` the rest."""

from __future__ import annotations

import pytest


def long(*values: object) -> list[object]:
    """The values of a parameter, or tuples of several, with which a test is long."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.long)
        for value in values
    ]
