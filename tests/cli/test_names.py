"""Every part of the library has its name on the command line."""

from __future__ import annotations

import click
import pytest

import titrant as tt
from titrant.bandwidth import SELECTORS, Slope, Subsampled
from titrant.cli.app import COMMANDS, titrant
from titrant.cli.names import (
    DESIGNS,
    ESTIMATORS,
    KERNELS,
    LEARNED,
    MEAN_DOSE,
    PROPENSITIES,
    STATUS_QUO,
    bandwidth,
    estimator,
    kebab,
    selectors,
)
from titrant.data import simulate
from titrant.estimators import ESTIMATORS as ALL_ESTIMATORS
from titrant.estimators import Observed
from titrant.kernels import KERNELS as ALL_KERNELS
from titrant.learn import honest
from titrant.propensity import PROPENSITIES as ALL_PROPENSITIES


def test_kernels():
    assert list(KERNELS.values()) == [kernel.__name__ for kernel in ALL_KERNELS]


def test_designs():
    assert list(simulate.DESIGNS) == list(DESIGNS)


def test_policies_of_a_learner():
    theirs = (honest.LEARNED, honest.STATUS_QUO, honest.MEAN_DOSE)
    assert theirs == (LEARNED, STATUS_QUO, MEAN_DOSE)


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


WORDS = {
    *("treatment", "outcome", "context", "propensity", "bounds", "maximize", "policy", "estimator"),
    *("kernel", "bandwidth", "clip", "seed", "html", "json", "config", "save_config"),
}


def options_of(name: str) -> dict[str, click.Option]:
    command = titrant.get_command(click.Context(titrant), name)
    return {p.name: p for p in command.params if isinstance(p, click.Option)}


def test_one_vocabulary_for_all_commands():
    every = {name: options_of(name) for name in COMMANDS}
    assert set(every["evaluate"]) >= WORDS
    assert set(every["compare"]) == set(every["evaluate"])
    assert set(every["check"]) >= WORDS - {"maximize", "html"}
    assert set(every["learn"]) >= WORDS - {"policy", "estimator", "kernel", "bandwidth", "clip"}
    for name in COMMANDS:
        assert {"config", "save_config", "debug"} <= set(every[name]), name
    # A word means the same everywhere: its type, and whether it is given once or more often.
    for word in WORDS:
        kinds = {
            (repr(found[word].type), found[word].multiple, found[word].is_flag)
            for found in every.values()
            if word in found
        }
        assert len(kinds) == 1, (word, kinds)


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
