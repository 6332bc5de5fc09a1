"""`titrant recommend`: a saved policy on new contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from titrant.cli.options import RunOptions, argument, option, takes

if TYPE_CHECKING:
    import pyarrow as pa

    from titrant._types import Array
    from titrant.policies import Policy


@dataclass(frozen=True, slots=True)
class RecommendOptions:
    """Which policy, for whom, and where the doses go."""

    policy_file: str = argument("policy_file", metavar="POLICY")
    table: str = argument("table", metavar="TABLE")
    output: str = option(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="CSV, Parquet or Arrow by its ending.  [default: CSV on standard output]",
    )
    treatment: tuple[str, ...] = option(
        "--treatment",
        multiple=True,
        metavar="COLUMN,…",
        help="What to call the new column of doses, or columns.  [default: dose]",
    )
    context: tuple[str, ...] = option(
        "--context",
        multiple=True,
        metavar="COLUMN,…",
        help="The contexts in the policy's order.  [default: those named in the policy, or all "
        "columns that are numbers, or text with few values]",
    )


_EXAMPLE = """\b
Example:
  titrant recommend policy.json patients.csv -o doses.csv
"""


@click.command("recommend", epilog=_EXAMPLE)
@takes(RecommendOptions, RunOptions)
def command(options: RecommendOptions, run: RunOptions) -> None:
    """Write TABLE with the doses that the saved POLICY gives its rows.

    POLICY is a JSON file; TABLE a CSV, Parquet or Arrow file, or - for CSV from a pipe.
    """
    from titrant.cli import config  # noqa: PLC0415
    from titrant.cli.inputs import columns  # noqa: PLC0415
    from titrant.cli.tables import check_table_path, write_table  # noqa: PLC0415
    from titrant.cli.writing import check_writable  # noqa: PLC0415
    from titrant.data.files import read_table  # noqa: PLC0415
    from titrant.policies import load_policy  # noqa: PLC0415
    from titrant.policies.calling import check_doses  # noqa: PLC0415

    check_table_path("--output", options.output)
    check_writable("--save-config", run.save_config)
    policy = load_policy(options.policy_file)
    table = read_table(options.table)
    contexts = _contexts(table, policy, columns(options.context))
    doses = policy(contexts)
    check_doses(doses, len(contexts), f"The policy `{options.policy_file}`")
    config.save(click.get_current_context(), run.save_config)
    write_table(options.output, _with_doses(table, doses, columns(options.treatment)))


def _contexts(table: pa.Table, policy: Policy, named: list[str]) -> Array:
    """Return the contexts (n, p) that the policy is called with."""
    import numpy as np  # noqa: PLC0415

    from titrant.cli.inputs import announce  # noqa: PLC0415
    from titrant.data.encode import encode, with_features  # noqa: PLC0415
    from titrant.data.frames import read_context  # noqa: PLC0415

    wanted = named or list(policy.features or ())
    if wanted:
        return read_context(with_features(table, wanted), wanted)
    encoded = encode(table, None, ())
    announce(encoded, chosen=True)
    if not encoded.names:
        return np.zeros((len(table), 0))
    return read_context(encoded.table, encoded.names)


def _with_doses(table: pa.Table, doses: Array, named: list[str]) -> pa.Table:
    """Return the table with one column a dose behind its own."""
    count = 1 if doses.ndim == 1 else doses.shape[1]
    names = named or (["dose"] if count == 1 else [f"dose_{j}" for j in range(count)])
    if len(names) != count:
        raise click.BadParameter(
            f"The policy gives {count} dose(s); got {len(names)} names.",
            param_hint="'--treatment'",
        )
    for name, column in zip(names, doses.reshape(len(table), count).T, strict=True):
        if name in table.column_names:
            raise click.BadParameter(
                f"The table already has a column `{name}`. Give another name.",
                param_hint="'--treatment'",
            )
        table = table.append_column(name, [column])
    return table
