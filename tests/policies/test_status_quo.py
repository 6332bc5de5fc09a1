"""The status quo is a policy by name only: it is compared, saved and loaded, but never called."""

import numpy as np
import pytest

from titrant import InvalidArgument, load_policy
from titrant.policies import StatusQuo


def test_it_gives_no_doses_for_new_contexts():
    with pytest.raises(InvalidArgument, match="keep dosing as before"):
        StatusQuo()(np.zeros((3, 2)))


def test_it_is_saved_and_loaded(tmp_path):
    StatusQuo().save(tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json") == StatusQuo()
