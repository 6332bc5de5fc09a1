"""The measures of `make house`, on small inputs with known answers."""

from __future__ import annotations

import house
import pytest

SOURCE = '''\
"""A module.

With two paragraphs.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from titrant.above import Other  # for type checkers

LIMIT = 3
"""What a constant means."""


def f(x):
    """Return a text."""
    # A reason.
    from titrant.below.deep import g

    return g("""two
lines""", x)
'''


@pytest.fixture(scope="module")
def found():
    return house.calls(house.small_log(300, known=True))


def module(tmp_path, path, source):
    return house.Module(tmp_path / path, tmp_path, source)


def test_code_lines_leave_out_blanks_comments_and_docstrings():
    assert house.code_lines(SOURCE) == 8
    assert house.code_lines("") == 0


def test_imports_of_functions_count_and_those_of_type_checkers_do_not(tmp_path):
    own = module(tmp_path, "here/part.py", SOURCE + "from . import sibling\nimport numpy\n")
    names = ["above.py", "below/deep.py", "__init__.py"]
    others = [module(tmp_path, name, "") for name in names]
    assert house.graph([own, *others]) == {
        "here": {"below"}, "above": set(), "below": set(), "titrant": set()
    }  # fmt: skip


def test_a_circle_of_imports_is_told():
    assert house.from_the_top({"a": {"b"}, "b": set()}) == (["a", "b"], [])
    order, circle = house.from_the_top({"a": {"b"}, "b": {"a"}})
    assert order == ["a", "b"]
    assert set(circle) == {"a", "b"}


def test_forks_of_stacks_are_listed_with_their_sums():
    stacks = {("m:a", "m:b", "n:c"): 3, ("m:a", "m:d"): 1, ("m:a", "m:b", "n:e"): 2}
    assert list(house.who_asks(stacks)) == [
        (5, "m:b"), (3, "  n:c"), (2, "  n:e"), (1, "m:d")
    ]  # fmt: skip


def test_the_package_is_measured():
    modules = house.modules()
    assert sum(m.lines for m in modules if m.room == "estimators") > 500
    assert {"evaluation", "kernels"} <= {m.room for m in modules}
    assert house.from_the_top(house.graph(modules))[1] == []


def test_every_weight_of_an_evaluation_is_counted(found):
    assert found.rows == 300
    assert 1.0 <= found.distinct_per_row <= found.per_row
    assert sum(count for count, name in house.who_asks(found.weights) if name[0] != " ") == (
        found.weights.total()
    )


def test_the_way_to_the_kernel_is_short_and_gone_seldom(found):
    assert len(found.deepest) <= 12
    assert found.per_row <= 12.0


def test_the_stack_leads_from_evaluate_to_the_kernel(found):
    assert all(name.partition(":")[2] for name in found.deepest)
    assert max(map(len, found.weights)) == len(found.deepest) > 0
    assert next(iter(house.frames(found))).startswith(f"\n{len(found.deepest)} frames")
