"""Policy files: numbers survive exactly, and what is wrong is named with a remedy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from titrant.errors import PolicyFileError
from titrant.policies import RBF, Clipped, Constant, Linear, Rounded, load_policy, policy_from_dict

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.lists(st.text(), min_size=3, max_size=3, unique=True)


def through_json(policy):
    return policy_from_dict(json.loads(json.dumps(policy.to_dict(), allow_nan=False)))


def same_bits(a, b):
    # Stricter than ==: tells −0.0 from 0.0.
    return np.asarray(a).tobytes() == np.asarray(b).tobytes() and np.shape(a) == np.shape(b)


@given(arrays(float, (3,), elements=FINITE), FINITE, NAMES)
def test_linear_is_exact(coef, intercept, names):
    back = through_json(Linear(coef, intercept, features=names))
    assert same_bits(back.coef, coef)
    assert same_bits(back.intercept, intercept)
    assert back.features == tuple(names)


@given(
    arrays(float, (2, 3), elements=FINITE),
    arrays(float, (2, 2), elements=FINITE),
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
)
def test_rbf_is_exact(centers, coef, scale):
    back = through_json(RBF(centers, coef, scale=scale))
    assert same_bits(back.centers, centers)
    assert same_bits(back.coef, coef)
    assert same_bits(back.scale, scale)


@given(FINITE, st.floats(min_value=0, exclude_min=True, allow_infinity=False), FINITE)
def test_nested_policies_are_exact(dose, step, offset):
    back = through_json(
        Clipped(Rounded(Constant(dose), step, offset), lower=None, upper=[3.0, None])
    )
    assert same_bits(back.policy.policy.dose, dose)
    assert same_bits(back.policy.step, step)
    assert same_bits(back.policy.offset, offset)
    assert back.lower == -np.inf
    np.testing.assert_array_equal(back.upper, [3.0, np.inf])


def test_a_template_can_be_kept():
    assert through_json(Linear(features=["a", "b"])) == Linear(features=["a", "b"])


def test_the_file_is_what_it_says(tmp_path):
    Clipped(Constant(2.5), upper=3).save(tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text()) == {
        "format": "titrant-policy",
        "version": 1,
        "class": "Clipped",
        "policy": {"class": "Constant", "dose": 2.5},
        "lower": None,
        "upper": 3.0,
    }


GOOD = Linear([1.0], 2.0).to_dict()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], '"format": "titrant-policy"'),
        ({}, '"format": "titrant-policy"'),
        ({**GOOD, "format": "other"}, "Give a file that `policy.save` wrote"),
        ({**GOOD, "version": 2}, "has version 2; this titrant reads version 1. Update titrant"),
        ({**GOOD, "class": "Neural"}, "class 'Neural'; known are Constant, Linear, Additive"),
        ({**GOOD, "class": ["Linear"]}, "known are"),
        ({**GOOD, "class": "Function"}, "known are"),
        ({k: v for k, v in GOOD.items() if k != "coef"}, r"without \['coef'\]"),
        ({**GOOD, "slope": 1}, r"with unknown \['slope'\]"),
        ({**GOOD, "coef": ["a"]}, "holds a wrong value. The `coef` of `Linear`"),
        ({**GOOD, "coef": {"class": "Constant", "dose": 1.0}}, "wrong value"),
        ({**GOOD, "coef": {}}, "class None"),
        ({**GOOD, "intercept": float("nan")}, "`intercept`"),
        ({**GOOD, "intercept": 10**400}, "wrong value"),
        ({**GOOD, "features": 3}, "distinct names"),
        ({**Rounded(Constant(1), 1).to_dict(), "policy": "3"}, "wrong value"),
    ],
)
def test_a_wrong_document_is_refused_with_a_remedy(content, message):
    with pytest.raises(PolicyFileError, match=message):
        policy_from_dict(content)


def test_a_wrong_file_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(PolicyFileError, match="cannot be opened: No such file"):
        load_policy(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("dose = 3")
    with pytest.raises(PolicyFileError, match="is not JSON"):
        load_policy(tmp_path / "text.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyFileError, match="is not JSON"):
        load_policy(tmp_path / "binary.json")
