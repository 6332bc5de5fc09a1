"""What every policy class has: a picture, a picture on the page, and doses that no row upsets."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import titrant as tt
from learn.examples import FAST
from reporting.examples import usual
from titrant.learn import POLICY_CLASSES
from titrant.reporting import counting, figures

ABSURD = 7
"""The row of which one number is absurd."""
EVERY = pytest.mark.parametrize("kind", POLICY_CLASSES, ids=repr)


@cache
def log(factor: float = 1.0, n: int = 200, cell: float | None = None) -> tt.LoggedData:
    """The best dose is x0 − x1/2, and higher for those of site B.

    One outcome is multiplied, or one cell of x0 has another number.
    """
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, size=n)])
    t = 0.4 * x[:, 0] + rng.normal(size=n)
    y = 5.0 + (t - best(x)) ** 2 + rng.normal(size=n)
    y[ABSURD] *= factor
    if cell is not None:
        x[ABSURD, 0] = cell
    return tt.LoggedData(x, t, y, names=("x0", "x1", "site=B"))


def best(x):
    return x[:, 0] - 0.5 * x[:, 1] + x[:, 2]


@cache
def learner(
    kind: tt.learn.PolicyClass, factor: float = 1.0, cell: float | None = None
) -> tt.PolicyLearner:
    how = {"procedure": FAST, "honest": False}
    return tt.PolicyLearner(policy=kind, **how).fit(log(factor, cell=cell))


def error_of(found: tt.PolicyLearner) -> float:
    """How far doses are from the best ones, but that of the row that is made absurd."""
    wrong = found.predict(log().context) - best(log().context)
    return float(np.sqrt(np.mean(np.delete(wrong, ABSURD) ** 2)))


@EVERY
def test_every_class_is_drawn(kind):
    ax = learner(kind).plot(context="x0")
    logged, doses = ax.get_lines()
    np.testing.assert_array_equal(logged.get_ydata(), log().treatment)
    np.testing.assert_array_equal(doses.get_ydata(), learner(kind).predict(log().context))
    assert ax.get_xlabel() == "x0"


@EVERY
def test_every_class_has_a_picture_on_the_page(kind):
    # "flat" is a policy that the page knows and has a color for.
    doses = learner(kind).predict(log().context)
    x = log().context[:, 0]
    found = counting.profile("x0", "dose", x, log().treatment, {"flat": doses})
    picture = figures.profile(usual(), found, "profile")
    assert picture.count("<svg") == 1
    assert "dose against x0" in picture
    # What is drawn are means of the doses of the rows.
    assert doses.min() - 1e-9 <= min(found.means["flat"])
    assert max(found.means["flat"]) <= doses.max() + 1e-9


@pytest.mark.long
@EVERY
def test_one_outcome_ten_times_as_large_does_little_harm(kind):
    # One of 200 rows. Errors of doses from the best ones are compared, not the doses: a tree may
    # ask other questions and be as good.
    before, after = (error_of(learner(kind, by)) for by in (1.0, 10.0))
    assert after - before < 0.2 * best(log().context).std()


@pytest.mark.parametrize("cell", [1e3, 1e6, -1e6])
@pytest.mark.parametrize("kind", [*POLICY_CLASSES, tt.Automatic()], ids=repr)
def test_one_absurd_cell_of_a_context_does_little_harm(kind, cell):
    # Doses of the other 199 people: a far cell counts as the median. Where contexts are asked to be
    # taken as they are, it counts as it is, and the search has one column of another size.
    most = 0.2 if getattr(kind, "standardize", True) else 0.3
    before, after = error_of(learner(kind)), error_of(learner(kind, cell=cell))
    assert after - before < most * best(log().context).std()
    # Who has the absurd cell gets a dose that was given to someone.
    dose = float(learner(kind, cell=cell).predict(log(cell=cell).context)[ABSURD])
    assert log().treatment.min() <= dose <= log().treatment.max()


@EVERY
def test_an_absurd_outcome_leaves_doses_within_those_logged(kind):
    # What is learned from it is the subject of tests/learning/test_absurd_outcomes.py.
    doses = learner(kind, 1e6).predict(log().context)
    assert np.isfinite(doses).all()
    assert log().treatment.min() <= doses.min()
    assert doses.max() <= log().treatment.max()


def test_a_question_about_a_category_reads_as_one():
    rng = np.random.default_rng(1)
    n = 300
    site = rng.choice(["A", "B", "C"], n)
    t = rng.normal(size=n)
    y = (t - np.where(site == "B", 1.5, -0.5)) ** 2 + 0.3 * rng.normal(size=n)
    table = {"site": site, "dose": t, "loss": y}
    made = tt.LoggedData.from_frame(table, treatment="dose", outcome="loss", context=["site"])
    found = tt.PolicyLearner(policy=tt.TreeClass(depth=1), procedure=FAST, honest=False).fit(made)
    told = found.recommend({"site": ["B", "A"]})
    assert told.reason[0].startswith("site is B: ")
    assert told.reason[1].startswith("site is not B: ")
    # A text that the log never had is like no one in it, though its indicators are the reference's.
    assert found.recommend({"site": ["B", "b"]}).seen.tolist() == [True, False]
