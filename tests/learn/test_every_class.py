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

EVERY = pytest.mark.parametrize("kind", POLICY_CLASSES, ids=repr)


@cache
def log(factor: float = 1.0, n: int = 200) -> tt.LoggedData:
    """The best dose is x0 − x1/2, and higher for those of site B; one outcome is multiplied."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, size=n)])
    t = 0.4 * x[:, 0] + rng.normal(size=n)
    y = 5.0 + (t - best(x)) ** 2 + rng.normal(size=n)
    y[7] *= factor
    return tt.LoggedData(x, t, y, names=("x0", "x1", "site=B"))


def best(x):
    return x[:, 0] - 0.5 * x[:, 1] + x[:, 2]


@cache
def learner(kind: tt.learn.PolicyClass, factor: float = 1.0) -> tt.PolicyLearner:
    return tt.PolicyLearner(policy=kind, procedure=FAST, honest=False).fit(log(factor))


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
    wanted = best(log().context)
    before, after = (
        np.sqrt(np.mean((learner(kind, by).predict(log().context) - wanted) ** 2))
        for by in (1.0, 10.0)
    )
    assert after - before < 0.2 * wanted.std()


@EVERY
def test_an_absurd_outcome_leaves_doses_within_those_logged(kind):
    # It ruins what is learned: see the limits in docs/how-to/shape-of-a-rule.md.
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
