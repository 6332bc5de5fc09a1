"""What is told of each person: doses as good, whether they were seen, and the reason."""

import json

import numpy as np
import pytest

import titrant as tt
from policies.examples import FEATURES, NAMED, contexts
from titrant.errors import PolicyFileError
from titrant.policies import (
    Additive,
    Clipped,
    Constant,
    InLimits,
    Linear,
    LinearTree,
    TrainingRange,
    Tree,
)
from titrant.policies.advice import REASONS, People, advice, reasons
from titrant.policies.calling import recommended
from titrant.policies.formats.loading import load_training, save_learned

# Two groups, around age 40 and 60; losses (t − 20)² and (t − 30)² on a grid of whole doses.
GRID = np.arange(10.0, 41.0)
PEOPLE = People(
    names=("age",),
    centers=np.array([[40.0], [60.0]]),
    scale=np.array([10.0]),
    reach=np.array([1.0, 1.0]),
    doses=np.array([[15.0, 25.0], [22.0, 38.0]]),
    grid=GRID,
    losses=np.stack([(GRID - 20.0) ** 2, (GRID - 30.0) ** 2]),
    margin=4.0,
)
RULE = Linear([0.5], 0.0, features=["age"])
X = np.array([[40.0], [60.0], [58.0], [90.0], [36.0]])


def test_known_answers():
    # age 40: dose 20, losses within 4 from 18 to 22. age 60: 30, from 28 to 32. age 58: 29, loss 1,
    # within 5 from 30 − √5 to 30 + √5. 90 is 3 units from 60. 36: 18, loss 4, within 8: 20 ± √8.
    told = advice(RULE, X, PEOPLE, np.zeros(5, dtype=bool))
    np.testing.assert_array_equal(told.seen, [True, True, True, False, True])
    np.testing.assert_allclose(told.dose, [20.0, 30.0, 29.0, np.nan, 18.0])
    low = [18.0, 28.0, 30.0 - np.sqrt(5.0), np.nan, 20.0 - np.sqrt(8.0)]
    high = [22.0, 32.0, 30.0 + np.sqrt(5.0), np.nan, 20.0 + np.sqrt(8.0)]
    np.testing.assert_allclose(told.low, low, atol=0.2)  # a grid of whole doses, looked at by .15
    np.testing.assert_allclose(told.high, high, atol=0.2)
    assert told.reason[0] == "0 + 20 for age 40"
    assert told.reason[3] == "no one like this is in the log: no dose (0 + 45 for age 90)"
    assert told.to_dict()["dose"][3] is None


# law: the dose is one of those that are as good, and a wider margin has them all.
@pytest.mark.parametrize("margin", [0.0, 1.0, 9.0])
def test_the_dose_is_in_its_range(margin):
    none = np.zeros(5, dtype=bool)
    told = advice(RULE, X, PEOPLE, none, margin=margin)
    wider = advice(RULE, X, PEOPLE, none, margin=margin + 1.0)
    seen = told.seen
    assert np.all((told.low <= told.dose)[seen])
    assert np.all((told.dose <= told.high)[seen])
    assert np.all((wider.low <= told.low)[seen])
    assert np.all((told.high <= wider.high)[seen])


def test_the_current_dose_is_kept_where_a_dose_was_not_seen():
    rule = Linear([0.5], 12.0, features=["age"])  # 32 at age 40, where 15 … 25 were given
    told = advice(rule, X[:2], PEOPLE, np.zeros(2, dtype=bool), current=np.array([17.0, 28.0]))
    np.testing.assert_array_equal(told.dose, [17.0, 28.0])
    assert told.reason[0].startswith("32 was not given to people like this, who got 15 … 25: the")
    limited = InLimits(RULE, steps=5.0, current="now", largest_change=2.0)
    both = np.array([[40.0, 19.0], [60.0, 26.0], [60.0, 12.5]])
    people = People(
        **{
            **{name: getattr(PEOPLE, name) for name in PEOPLE.__slots__},
            "names": ("age", "now"),
            "centers": np.column_stack([PEOPLE.centers, [20.0, 20.0]]),
            "scale": np.array([10.0, 100.0]),
        }
    )
    told = advice(limited, both, people, np.zeros(3, dtype=bool))
    # 26 ± 2 has 25; 12.5 ± 2 has no multiple of 5 but 10 … 15: none, so the current dose is kept.
    np.testing.assert_array_equal(told.dose, [20.0, 25.0, 12.5])
    assert "the limits leave no dose" in told.reason[2]
    assert told.reason[1].endswith(", at most 28, so 25")
    assert np.all(told.high[:2] <= both[:2, 1] + 2.0)


def test_reasons_are_in_the_rules_own_terms():
    rule = Clipped(Linear([0.1, -2.0], 20.0, features=["age", "female"]), 10.0, 24.0)
    assert reasons(rule, np.array([[61.0, 0.0], [31.0, 1.0]])) == [
        "20 + 6.1 for age 61, at most 24",
        "20 + 3.1 for age 31 − 2 for female 1",
    ]
    # What an indicator says reads as such; where it says no it adds nothing.
    names = ["age", "age is missing", "site=North"]
    told = Linear([0.1, -1.0, 0.25], 20.0, features=names)
    assert reasons(told, np.array([[48.0, 1.0, 0.0], [30.0, 0.0, 1.0]])) == [
        "20 + 4.8 for age 48 − 1 as age is missing",
        "20 + 3 for age 30 + 0.25 as site is North",
    ]
    # A curve is told from its middle, 50: age 70 adds .1·(70 − 50) and what bends.
    curve = Additive(
        *([0.1], 20.0), knots=[[20, 50, 80]], bends=[0.0, 0.0, 0.0], reach=[9.0], features=["age"]
    )
    assert reasons(curve, np.array([[70.0], [50.0]])) == ["25 + 2 for age 70", "25"]
    tree = Tree([0], [50.0], [-1], [-2], [3.0, 5.2], features=["age"])
    assert reasons(InLimits(tree, steps=2.5), np.array([[40.0], [60.0]])) == [
        "age ≤ 50: 3, rounded to 2.5",
        "age > 50: 5.2, rounded to 5",
    ]
    at_sites = LinearTree(
        *([1], [0.5], [-1], [-2], [10.0, 12.0]),
        slopes=[[0.0, 0.0], [0.5, 0.0]],
        lower=[5.0, 5.0],
        upper=[20.0, 40.0],
        features=["age", "site=B"],
    )
    assert reasons(at_sites, np.array([[40.0, 0.0], [40.0, 1.0], [60.0, 1.0]])) == [
        "site is not B: 10",
        "site is B: 12 + 20 for age 40",
        "site is B: 12 + 30 for age 60, at most 40",
    ]
    assert reasons(Constant(3.0), np.empty((2, 0))) == ["3 for everyone"] * 2


# law: every policy has a reason for every row, and the terms of a sum add up to the dose.
@pytest.mark.parametrize("name", [n for n, p in NAMED.items() if p(contexts()).ndim == 1])
def test_every_policy_has_reasons(name):
    policy, x = NAMED[name], contexts()
    said = reasons(policy, x)
    assert len(said) == len(x)
    assert all(said)
    if type(policy) in REASONS and "for" in said[0] and name in {"linear", "additive"}:
        signed = said[0].replace("− ", "−").replace("+ ", "").replace("−", "-")
        terms = [float(part.split(" for ")[0].split()[-1]) for part in signed.split(" for ")[:-1]]
        total = float(signed.split()[0]) + sum(terms)
        assert abs(total - recommended(policy, x)[0]) < 0.01


def test_people_are_saved_with_the_policy(tmp_path):
    training = TrainingRange(("age",), np.array([20.0]), np.array([80.0]), 9, people=PEOPLE)
    path = tmp_path / "policy.json"
    save_learned(RULE, training, path)
    people = load_training(path).people
    for name in ("centers", "scale", "reach", "doses", "grid", "losses"):
        np.testing.assert_allclose(getattr(people, name), getattr(PEOPLE, name), rtol=1e-5)
    content = json.loads(path.read_text())
    content["training"]["people"]["losses"] = [[1.0]]
    path.write_text(json.dumps(content))
    with pytest.raises(PolicyFileError, match="the shape of losses"):
        load_training(path)


@pytest.mark.usefixtures("plain_models")
def test_a_learner_recommends():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    t = 20.0 + 3.0 * rng.normal(size=200)
    y = (t - 20.0 - 2.0 * x[:, 0]) ** 2 / 9.0 + rng.normal(size=200)
    log = tt.LoggedData(x, t, y, names=FEATURES)
    learner = tt.PolicyLearner(policy=tt.LinearClass(), honest=False).fit(log)
    told = learner.recommend(dict(zip(FEATURES, x.T, strict=True)))
    np.testing.assert_array_equal(told.dose[told.seen], learner.predict(x)[told.seen])
    assert told.seen.mean() > 0.8
    far = learner.recommend(x[:2] + 100.0, current=[1.0, 2.0])
    np.testing.assert_array_equal(far.dose, [1.0, 2.0])
    assert not far.seen.any()
