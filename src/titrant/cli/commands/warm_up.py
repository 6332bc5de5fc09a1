"""`titrant warm-up`: what is compiled on first use, compiled ahead of it."""

from __future__ import annotations

import click

import titrant as tt
from titrant.cli.options import RunOptions, save_config, takes
from titrant.cli.terminal import note, working
from titrant.compiled import FEWEST, Loop

_FEW = 200
"""Rows to learn from: the loops of a search are compiled for any number of them."""
_EPILOG = """\b
Example:
  titrant warm-up
"""


@click.command("warm-up", epilog=_EPILOG)
@takes(RunOptions)
def warm_up(run: RunOptions) -> None:
    """Compile ahead what long logs and learning need.

    Half a minute, once; a second time it finds that all is there. Without it, the first command
    that needs a loop compiles it and says so. What is compiled stays beside the package, or in
    the user's cache where the package may not be written to.
    """
    save_config(run.save_config)
    with working("Compiling"):
        compile_defaults()
    note("The loops of evaluate, compare, check and learn are compiled.")


def compile_defaults() -> None:
    """Run what default calls run compiled: an evaluation of many rows, a search over few."""
    from titrant.data.simulate import Quadratic  # noqa: PLC0415  (loads scipy)

    many, few = Quadratic().draw(FEWEST[Loop.PATH], seed=0), Quadratic().draw(_FEW, seed=0)
    tt.evaluate(many, tt.Constant(0.0), estimator=tt.SelfNormalized(), allow_untrusted=True)
    tt.PolicyLearner(honest=False).fit(few)
