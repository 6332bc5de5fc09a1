from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import hypothesis
import pytest

from plain import plainly

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

# The same examples on every run and machine; compiling on first use may exceed any deadline.
hypothesis.settings.register_profile("titrant", derandomize=True, deadline=None, print_blob=False)
hypothesis.settings.load_profile("titrant")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run slow simulations at full size")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is neither a new test nor a new value of a parameter to test-all, unwatched.

    Where parameters multiply, `make test` runs each value of each of them, and combinations of
    values that it has run are long. Coverage watches a value once: watching makes Python half as
    slow again, and combinations, like hundreds of rounds of a simulation, reach no other line.
    """
    run: set[Hashable] = set()
    watched: set[Hashable] = set()
    for item in items:
        given = parameters(item)
        if len(given) > 1 and not item.get_closest_marker("long"):
            if run.issuperset(given):
                item.add_marker("long")
            run |= given
        values = {(item.nodeid.partition("[")[0], "", 0)}
        values |= {
            (test, name, v)
            for test, names, ids in given
            for name, v in zip(names, ids, strict=True)
        }
        if watched.issuperset(values) or item.get_closest_marker("slow"):
            item.add_marker("no_cover")
        watched |= values


def parameters(item: pytest.Item) -> set[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """Return test, names and values of each parametrization of an item, by marks or fixtures."""
    test, given = item.nodeid.partition("[")[0], getattr(item, "callspec", None)
    values = {} if given is None else dict(given.params)
    together = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        names = names.replace(",", " ").split() if isinstance(names, str) else names
        together.append(tuple(name for name in names if name in values))
    of_marks = {name for names in together for name in names}
    together += [(name,) for name in values if name not in of_marks]
    return {(test, names, tuple(id(values[name]) for name in names)) for names in together if names}


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
