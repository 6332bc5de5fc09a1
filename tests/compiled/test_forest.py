"""A forest at every dose of a grid in one walk down each tree."""

from __future__ import annotations

import numpy as np
import pytest

from titrant.compiled.forest import forest_curves, parted
from titrant.outcome import Trees
from titrant.outcome.base import OutcomeModel


def test_two_trees_worked_out_by_hand():
    # Tree one asks for the dose first: at most 2 is worth 10; above, a context of at most 0 is
    # worth 20, one above 30. Tree two is a leaf worth 4. At the threshold a dose goes left.
    roots = np.array([0, 5])
    children = np.array([[1, 2], [-1, -1], [3, 4], [-1, -1], [-1, -1], [-1, -1]])
    feature = np.array([1, -2, 0, -2, -2, -2])
    threshold = np.array([2.0, -2.0, 0.0, -2.0, -2.0, -2.0])
    value = np.array([0.0, 10.0, 0.0, 20.0, 30.0, 4.0])
    x, doses = np.array([[-1.0], [1.0]], np.float32), np.array([1.0, 2.0, 2.5, 3.0], np.float32)
    curves = forest_curves(x, doses, roots, children, feature, threshold, value)
    np.testing.assert_array_equal(curves, [[7, 7, 12, 12], [7, 7, 17, 17]])


@pytest.mark.parametrize("threshold", [0.0, 1.0, 1.5, 2.0, 9.0])
def test_the_grid_parts_where_sorting_says(threshold):
    doses = np.array([0.5, 1.0, 1.0, 2.0, 3.0], np.float32)
    assert parted(doses, threshold) == np.searchsorted(doses, threshold, side="right")


@pytest.mark.parametrize("p", [0, 1, 3])
def test_curves_have_the_bits_of_predictions_at_each_dose(p):
    rng = np.random.default_rng(p)
    x, t = rng.normal(size=(60, p)), rng.normal(size=60)
    model = Trees(trees=3, leaf=2).fit(x, t, t**2 + x.sum(axis=1))
    # Beyond the logged doses too, and with one dose twice.
    grid = np.append(np.linspace(-4.0, 4.0, 12), 4.0)
    np.testing.assert_array_equal(
        model.curve(x[:20], grid), OutcomeModel.curve(model, x[:20], grid)
    )


def test_a_context_that_is_no_number_is_refused():
    x, t = np.arange(20.0)[:, None], np.linspace(0.0, 1.0, 20)
    model = Trees(trees=2).fit(x, t, t)
    with pytest.raises(ValueError, match="NaN"):
        model.curve(np.array([[np.nan]]), t)
