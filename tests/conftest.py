from __future__ import annotations

import sys
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let coverage watch a test once for each value of each of its parameters.

    Watching makes Python half as slow again. Combinations of values, and the hundreds of rounds of
    a simulation, reach no line that has not been reached.
    """
    watched: set[tuple[str, str, int]] = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        chosen = getattr(item, "callspec", None)
        given = {"": None} if chosen is None else chosen.params
        new = {(test, name, id(value)) for name, value in given.items()} - watched
        if not new or item.get_closest_marker("slow"):
            item.add_marker("no_cover")
        watched |= new


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


@pytest.fixture(autouse=True)
def _figures_closed() -> Iterator[None]:
    """Close what a test has drawn: figures of many tests in one process would add up."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
