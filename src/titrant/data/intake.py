"""A table as people have it, on its way to a log: gaps settled, contexts made numbers, all said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from titrant.data import frames
from titrant.data.columns import check_present, context_roles
from titrant.data.encode import encode
from titrant.data.features import as_text, is_number, is_text
from titrant.data.flow import LEFT_OUT, Flow
from titrant.data.gaps import differences
from titrant.data.keys import group_keys, repeating
from titrant.data.validate import Intake

if TYPE_CHECKING:
    from collections.abc import Sequence

    from titrant._types import Array
    from titrant.data.columns import Columns
    from titrant.data.gaps import MissingRule

MOST_COMPARED = 20
"""Levels of a text, the most frequent ones, by which rows left out are compared with the others."""


def taken_in(
    frame: object, columns: Columns, missing: MissingRule, *, all_others: bool = False
) -> Intake:
    """Return the log in a table of any library, before it is checked.

    With ``all_others``, all columns without a role that are fit to be contexts are.
    """
    taken = [name for role, name in columns.roles if role != "context"]
    roles = columns.roles
    if all_others:
        frame, names = frames.with_names(frame)
        check_present(context_roles(columns.after), names)
        aside = {*taken, *columns.after}
        others = (name for name in names if isinstance(name, str) and name not in aside)
        roles = (*roles, *context_roles(others))
    label = frames.labels_of(roles)
    held = frames.as_arrow(frame, roles)
    rows_in = len(held.table)

    def floats(name: str) -> Array:
        return frames.from_arrow(held.table[name], label[name])

    settled = missing.settle(
        frames.stacked([floats(name) for name in columns.doses], rows_in),
        floats(columns.outcome),
        [label[name] for name in columns.doses],
        label[columns.outcome],
        column=columns.outcome,
    )
    apart = differences(settled.kept, _compared(held.table, taken))
    unused = frames.unused(frame, {name for _, name in roles})
    if settled.kept is not None:
        held = held.rows(settled.kept)
        unused = {name: column[settled.kept] for name, column in unused.items()}
    encoded = encode(held.table, None if all_others else columns.features, taken)
    keys = {name: group_keys(ids, label[name]) for name, ids in held.ids.items()}
    numbers = {name: floats(name) for name in taken if name not in keys}
    labels = frames.part_labels(columns, encoded.names)
    numbers |= {
        name: frames.from_arrow(encoded.table[name], what)
        for name, what in zip(encoded.names, labels.context, strict=True)
    }
    parts = frames.parts_of(columns, encoded.names, {**numbers, **keys})
    notes = (*settled.notes, *encoded.notes)
    flow = Flow(rows_in, len(held.table), settled.steps, notes, encoded.recipe, apart)
    left_out = [note.column for note in encoded.notes if note.done == LEFT_OUT]
    unused |= {name: held.table[name].to_numpy() for name in left_out}
    ids = repeating(unused)
    made = parts.marked(settled.observed)
    return Intake(made, labels, encoded.names, settled.kept, flow, ids)


def _compared(table: pa.Table, taken: Sequence[str]) -> dict[str, Array]:
    """Return what rows are compared by (n,): numbers as they are, gaps NaN, and common texts."""
    found: dict[str, Array] = {}
    for name in table.column_names:
        column = table[name]
        if is_number(column.type) or name in taken:
            found[name] = frames.from_arrow(column, name)
        elif is_text(column.type):
            values = as_text(column)
            counts = pc.value_counts(values).sort(order="descending", by="counts").to_pylist()
            for level in (one["values"] for one in counts[:MOST_COMPARED]):
                if level is not None:
                    same = pc.fill_null(pc.equal(values, level), fill_value=False)
                    found[f"{name}={level}"] = np.asarray(same.to_numpy(), dtype=np.float64)
    return found
