"""`titrant export`: a saved policy for where there is no titrant."""

from __future__ import annotations

from dataclasses import dataclass

import click

import titrant as tt
from titrant.cli.options import RunOptions, argument, flag, option, save_config, takes
from titrant.cli.writing import PIPE, check_outputs


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Which policy, in which language, and where it goes."""

    policy_file: str = argument("policy_file", metavar="POLICY")
    sql: bool = flag("--sql", "One SQL expression a dose.")
    python: bool = flag("--python", "A function that needs nothing but Python.")
    excel: bool = flag("--excel", "One spreadsheet formula a dose, of the cells A2, B2, …")
    name: str = option("--name", default="dose", metavar="NAME", help="What the dose is called.")
    output: str = option(
        "-o",
        "--output",
        default=PIPE,
        show_default=False,
        metavar="FILE",
        help="Where to write it.  [default: standard output]",
    )


_EXAMPLE = """\b
Example:
  titrant export policy.json --sql
"""


@click.command("export", epilog=_EXAMPLE)
@takes(ExportOptions, RunOptions)
def export(options: ExportOptions, run: RunOptions) -> None:
    """Write the saved POLICY as SQL, as Python or as a spreadsheet formula.

    It gives the doses that `titrant recommend` gives, to rounding. Columns are those of the table
    that the policy was learned from. A row without a value that the rule needs has no dose. Whether
    a row lies outside the contexts of the training is for `recommend` to say.
    """
    from titrant._writing import write_text  # noqa: PLC0415
    from titrant.policies import load_training  # noqa: PLC0415
    from titrant.policies.exporting import to_excel, to_python, to_sql  # noqa: PLC0415

    if options.sql + options.python + options.excel != 1:
        raise click.UsageError("Give one of --sql, --python and --excel.")
    check_outputs(run, [("--output", options.output)], [("POLICY", options.policy_file)])
    policy, training = tt.load_policy(options.policy_file), load_training(options.policy_file)
    recipe = None if training is None else training.recipe
    save_config(run.save_config)
    if options.excel:
        text = to_excel(policy, recipe=recipe)
    else:
        written = to_sql if options.sql else to_python
        text = written(policy, recipe=recipe, name=options.name)
    if options.output == PIPE:
        click.echo(text.rstrip("\n"))
    else:
        write_text(options.output, text.rstrip("\n") + "\n")
