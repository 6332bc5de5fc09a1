"""Every part of the library has its name on the command line."""

from __future__ import annotations

import pytest

import titrant as tt
from titrant.bandwidth import SELECTORS, Slope, Subsampled
from titrant.cli.app import COMMANDS, titrant
from titrant.cli.names import (
    ESTIMATORS,
    KERNELS,
    PROPENSITIES,
    bandwidth,
    estimator,
    kebab,
    selectors,
)
from titrant.estimators import ESTIMATORS as ALL_ESTIMATORS
from titrant.estimators import Observed
from titrant.kernels import KERNELS as ALL_KERNELS
from titrant.propensity import PROPENSITIES as ALL_PROPENSITIES


def test_kernels():
    assert list(KERNELS.values()) == [kernel.__name__ for kernel in ALL_KERNELS]


def test_propensity_models():
    assert set(PROPENSITIES.values()) == {model.__name__ for model in ALL_PROPENSITIES}


def test_estimators():
    # `Observed` is how the policy `status-quo` is evaluated, whatever the estimator.
    made = {type(estimator(name, None, None, 0)) for name in ESTIMATORS}
    assert made == {type(one) for one in ALL_ESTIMATORS} - {Observed}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("dr", tt.DoublyRobust(kernel=tt.Gaussian(), clip=0.1, seed=4)),
        (
            "dr-unnormalized",
            tt.DoublyRobust(self_normalized=False, kernel=tt.Gaussian(), clip=0.1, seed=4),
        ),
        ("dm", tt.DirectMethod(seed=4)),
    ],
)
def test_estimators_with_an_outcome_model_take_the_seed(name, meant):
    assert repr(estimator(name, "gaussian", 0.1, 4)) == repr(meant)


def test_selectors():
    assert list(selectors().values()) == [None, *SELECTORS]
    assert {"auto", "rule-of-thumb", "plug-in", "plug-in-as-printed"} <= set(selectors())


def test_a_selector_takes_the_seed():
    assert bandwidth("subsampled", 9) == Subsampled(seed=9)
    assert bandwidth("slope", 9) == Slope()


@pytest.mark.parametrize(
    ("name", "typed"), [("RuleOfThumb", "rule-of-thumb"), ("PlugIn", "plug-in"), ("Slope", "slope")]
)
def test_class_names_as_typed(name, typed):
    assert kebab(name) == typed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_entry(call, name):
    said = call(name, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: titrant {name}")
    assert "--debug" in said.out


def test_the_list_of_commands(call):
    said = call()
    assert said.code == 0
    assert all(f"\n  {name} " in said.out for name in COMMANDS)
    assert titrant.list_commands(None) == list(COMMANDS)  # type: ignore[arg-type]


def test_the_version(call):
    assert call("--version").out == f"titrant, version {tt.__version__}\n"


def test_an_unknown_command(call):
    said = call("evalute")
    assert said.code == 2
    assert said.err == (
        "Error: No such command 'evalute'. Did you mean 'evaluate'? Try `titrant --help`.\n"
    )
