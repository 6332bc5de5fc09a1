"""The order of a log's columns, and columns that a policy does not know, change no answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import titrant as tt
from titrant.data.simulate import DESIGNS
from titrant.evaluation.evaluation import Evaluation
from titrant.policies import RBF, Clipped, Function, Linear, Rounded
from titrant.reporting import gather

# With a known propensity and no outcome model nothing but the policy looks at contexts. Fitted
# models add up over contexts in another order.
CLOSE = 1e-8

LOG = DESIGNS["dosing"].draw(400, 3)
NAMES = LOG.names  # weight, age, carrier
RULE = Linear([0.35, -0.2, -9.0], 20.0, features=NAMES)
RULES = {
    "linear": Clipped(RULE, 5.0, 75.0),
    "nested": Clipped(Rounded(RULE, 2.5), 5.0, 75.0),
    "two of three": Linear([0.3, -0.2], 20.0, features=["weight", "age"]),
    "rbf": RBF([[80.0, 50.0], [60.0, 30.0]], [5.0, -5.0], scale=20.0, intercept=30.0,
               features=["weight", "age"]),
    "function": Function(lambda x: 30.0 + 0.1 * x[:, 0], features=["age"]),
    "constant": tt.Constant(35.0),
}  # fmt: skip
PLAIN = tt.SelfNormalized()


def ordered(*names) -> tt.LoggedData:
    """The log with these contexts, in this order; `noise` is one that no policy knows."""
    x = dict(zip(NAMES, LOG.context.T, strict=True))
    x["noise"] = np.random.default_rng(0).normal(size=len(LOG))
    columns = np.column_stack([x[name] for name in names])
    bounds = (LOG.lower[:, 0], LOG.upper[:, 0])
    return tt.LoggedData(
        columns, LOG.treatment, LOG.outcome, LOG.propensity, bounds=bounds, names=names
    )


def in_file(log, folder):
    pq.write_table(pa.table(log.to_columns()), folder / "log.parquet")
    columns = tt.Columns(
        treatment="treatment", outcome="outcome", context=log.names, propensity="propensity"
    )
    return tt.scan_parquet(str(folder / "log.parquet"), columns, bounds=(5, 75))


OTHERS = {
    "turned": ordered("carrier", "age", "weight"),
    "shifted": ordered("age", "carrier", "weight"),
    "with one more": ordered("noise", "carrier", "weight", "age"),
}
each_order = pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


@each_order
@each_rule
def test_evaluate(other, rule, tmp_path):
    expected = tt.evaluate(LOG, rule, estimator=PLAIN, allow_untrusted=True)
    found = tt.evaluate(other, rule, estimator=PLAIN, allow_untrusted=True)
    assert (found.value, found.se) == (expected.value, expected.se)
    assert found.interval() == expected.interval()
    in_parts = tt.evaluate(in_file(other, tmp_path), rule, estimator=PLAIN, allow_untrusted=True)
    assert in_parts.value == pytest.approx(expected.value, rel=CLOSE)
    assert in_parts.se == pytest.approx(expected.se, rel=CLOSE)


def test_evaluate_with_fitted_models():
    expected = tt.evaluate(LOG, RULES["linear"])
    found = tt.evaluate(OTHERS["turned"], RULES["linear"])
    assert found.value == pytest.approx(expected.value, rel=CLOSE)
    assert found.se == pytest.approx(expected.se, rel=CLOSE)


@each_order
def test_compare_curve_check_and_path(other):
    def answers(log):
        compared = tt.compare(log, RULES, estimator=PLAIN, allow_untrusted=True)
        drawn = tt.curve(log, lambda s: Clipped(RULE, 5.0, s), [30.0, 40.0], estimator=PLAIN)
        checked = tt.check(log, RULES["linear"], estimator=PLAIN)
        path = tt.bandwidth_path(log, RULES["two of three"], estimator=PLAIN)
        return (
            [e.value for e in compared.estimates.values()],
            compared.covariance,
            drawn.values,
            [c.value for c in checked.checks if "context" not in c.name],
            path.values,
        )

    for found, expected in zip(answers(other), answers(LOG), strict=True):
        np.testing.assert_allclose(found, expected, rtol=CLOSE)


def test_a_name_that_the_log_lacks_is_refused_before_anything_is_fitted(tmp_path):
    few = ordered("weight", "carrier")
    message = "The policy `new` uses the context `age`, which the log lacks"
    for log in (few, in_file(few, tmp_path)):
        with pytest.raises(tt.DataError, match=message):
            tt.compare(log, {"old": tt.Constant(30.0), "new": RULES["linear"]})
    for use in (tt.evaluate, tt.check, tt.bandwidth_path):
        with pytest.raises(tt.DataError, match="uses the context `age`"):
            use(few, RULES["linear"])
    with pytest.raises(tt.DataError, match="uses the context `age`"):
        tt.curve(few, lambda b: Clipped(RULE, b), [1.0, 2.0])


def test_a_log_without_names_of_its_own():
    # x0, x1, x2 are no weight, age and carrier: to say so takes one argument.
    bounds = (LOG.lower[:, 0], LOG.upper[:, 0])
    bare = tt.LoggedData(LOG.context, LOG.treatment, LOG.outcome, LOG.propensity, bounds=bounds)
    with pytest.raises(tt.DataError, match=r"lacks. The log has `x0`, `x1`, `x2`. .*names="):
        tt.evaluate(bare, RULE)
    nameless = Linear(RULE.coef, RULE.intercept)
    expected = tt.evaluate(LOG, RULE, estimator=PLAIN).value
    assert tt.evaluate(bare, nameless, estimator=PLAIN).value == expected


def test_a_report_goes_by_names():
    def report(log):
        rules = {"rule": RULES["linear"], "constant": tt.Constant(35.0)}
        evaluation = Evaluation.of(log, rules, PLAIN, None)
        return gather(evaluation.compare(), evaluation)

    found, expected = report(OTHERS["turned"]), report(LOG)
    np.testing.assert_allclose(found.strengths.values, expected.strengths.values, rtol=CLOSE)
    assert found.dose_summaries == expected.dose_summaries
    assert found.rules[1].formulas == expected.rules[1].formulas
