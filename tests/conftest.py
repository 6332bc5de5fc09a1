from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import pytest

from plain import plainly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The same examples on every run and machine; compiling on first use may exceed any deadline.
hypothesis.settings.register_profile("titrant", derandomize=True, deadline=None, print_blob=False)
hypothesis.settings.load_profile("titrant")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow simulations at full size")


@pytest.fixture(scope="session")
def replications(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """How often a slow simulation repeats: `replications(reduced, full)`; full with --full."""
    full_size = request.config.getoption("--full")
    return lambda reduced, full: full if full_size else reduced


@pytest.fixture
def plain_models() -> Iterator[None]:
    """Let default models be plain, and quick: for a test that is not about them."""
    with plainly():
        yield
