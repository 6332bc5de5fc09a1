"""Not worse by more than a margin: the bound, its direction and its words."""

import numpy as np
import pytest
from scipy import stats

from titrant.errors import InvalidArgument
from titrant.inference.base import StudentInterval
from titrant.inference.results import Contrast


def contrast(difference=1.0, se=1.0, degrees=np.inf, **more):
    interval = StudentInterval(difference, se, degrees, "t")
    return Contrast(a="new", b="old", difference=difference, se=se, confidence=interval, **more)


def test_the_bound_by_hand():
    """1 ± 1.6449: a loss of the new is at most 2.6449 more, a reward at most .6449 less."""
    z = stats.norm.ppf(0.95)
    assert contrast().bound() == pytest.approx(1 + z)
    assert contrast(maximize=True).bound() == pytest.approx(z - 1)
    assert contrast(degrees=7.0).bound(0.975) == pytest.approx(1 + stats.t.ppf(0.975, 7))
    # The one-sided bound at .975 is the end of the 95 % interval.
    assert contrast().bound(0.975) == pytest.approx(contrast().interval(0.95)[1])


def test_a_margin_is_met_when_the_bound_is_below_it():
    assert contrast(margin=2.65).not_worse()
    assert not contrast(margin=2.64).not_worse()
    assert contrast(margin=0.65, maximize=True).not_worse()
    assert not contrast(margin=0.64, maximize=True).not_worse()
    assert not contrast(margin=2.65).not_worse(0.975)


def test_losses_are_rewards_with_another_sign():
    loss, reward = contrast(0.7, margin=1.0), contrast(-0.7, margin=1.0, maximize=True)
    assert loss.bound(0.9) == pytest.approx(reward.bound(0.9))
    assert loss.not_worse(0.6) == reward.not_worse(0.6)


def test_it_is_said():
    assert "not worse by more than 3" in str(contrast(margin=3.0))
    assert "not shown to be not worse by more than 1" in str(contrast(margin=1.0))
    assert "margin" not in contrast().to_dict()
    told = contrast(margin=3.0).to_dict()["margin"]
    assert told["not_worse"] is True
    assert told["margin"] == 3.0
    with pytest.raises(InvalidArgument, match="has no margin"):
        contrast().not_worse()
    with pytest.raises(InvalidArgument, match=r"between 0.5 and 1"):
        contrast(margin=1.0).bound(0.5)
