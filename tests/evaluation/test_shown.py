"""Results in a notebook: what is drawn and tabulated is what was estimated, names stay names."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from evaluation.logs import NEAR, smooth_log
from titrant import Constant, SelfNormalized, bandwidth_path, compare, curve, describe

LOG = smooth_log(400)
SN = SelfNormalized()
POLICIES = {"near": NEAR, "<b>$bold$</b>": Constant(0.4)}
RESULT = compare(LOG, POLICIES, estimator=SN, bandwidth=0.5)
CURVE = curve(LOG, Constant, [0.4, 0.1, 50.0], estimator=SN, bandwidth=0.5)
PATH = bandwidth_path(LOG, NEAR, estimator=SN, bandwidths=[1e-6, 0.3, 0.6])
CONTRAST = RESULT.contrast("near", "<b>$bold$</b>")
SHOWN = {
    "estimate": RESULT["near"],
    "comparison": RESULT,
    "contrast": CONTRAST,
    "curve": CURVE,
    "path": PATH,
    "diagnostics": RESULT["near"].diagnostics,
    "description": describe(LOG),
}


@pytest.fixture
def axes():
    # A figure of its own, without pyplot: nothing stays open.
    return Figure().add_subplot()


@pytest.mark.parametrize("name", SHOWN)
def test_a_table_for_notebooks(name):
    html = SHOWN[name]._repr_html_()
    assert html.startswith("<table>")
    assert html.endswith("</table>")
    assert html.count("<tr>") == html.count("</tr>") >= 2
    assert "<b>" not in html  # a policy's name is text, not markup


def test_tables_hold_the_numbers():
    low, high = RESULT["near"].interval()
    row = RESULT["near"]._repr_html_()
    assert f"<td>{RESULT['near'].value:.4g}</td><td>{low:.4g} … {high:.4g}</td>" in row
    cells = row.split("<tbody>")[1].removesuffix("</tbody></table>")
    assert cells in RESULT._repr_html_()
    assert f"<td>{CONTRAST.difference:.4g}</td>" in CONTRAST._repr_html_()
    assert "1 parameters refused" in CURVE._repr_html_()
    assert all(f"<td>{v:.4g}</td>" in CURVE._repr_html_() for v in CURVE.values)


@pytest.mark.parametrize("name", SHOWN)
def test_drawings_draw_on_the_axes_given(name, axes):
    assert SHOWN[name].plot(axes) is axes
    axes.figure.canvas.draw()  # names with $ are no formulas


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_are_drawn_at_their_level(axes, level):
    RESULT.plot(axes, level=level)
    drawn = [tuple(line.get_xdata()) for line in axes.get_lines()]
    for estimate in RESULT.estimates.values():
        assert estimate.interval(level) in drawn
        assert (estimate.value,) in drawn


def test_a_contrast_is_drawn_beside_zero(axes):
    CONTRAST.plot(axes)
    drawn = [tuple(line.get_xdata()) for line in axes.get_lines()]
    assert (0.0, 0.0) in {tuple(map(float, x)) for x in drawn if len(x) == 2}
    assert CONTRAST.interval() in drawn


def test_a_curve_is_drawn_from_left_to_right(axes):
    # The parameters were given as .4, .1.
    CURVE.plot(axes)
    line = axes.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), [0.1, 0.4])
    np.testing.assert_array_equal(line.get_ydata(), CURVE.values[::-1])
    heights = [c.get_paths()[0].get_extents().ymax for c in axes.collections]
    np.testing.assert_allclose(
        heights, [CURVE.band()[:, 1].max(), CURVE.band(simultaneous=False)[:, 1].max()]
    )


def test_a_path_leaves_out_what_no_row_reaches(axes):
    PATH.plot(axes, chosen=0.3)
    curves = [line for line in axes.get_lines() if len(line.get_xdata()) == 2]
    assert any(np.allclose(line.get_ydata(), PATH.values[1:]) for line in curves)


def test_without_axes_there_is_a_new_figure():
    from matplotlib import pyplot as plt  # noqa: PLC0415  (only here is pyplot's state touched)

    before = plt.get_fignums()
    axes = RESULT["near"].plot()
    assert len(plt.get_fignums()) == len(before) + 1
    plt.close(axes.figure)
