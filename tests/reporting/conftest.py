from __future__ import annotations

import pytest

from titrant.reporting import figures


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures of a page empty, which are half of its time: for tests of its words."""
    monkeypatch.setattr(figures, "svg", lambda *_: "<svg></svg>")
