"""A table as people have it, on its way to a log: gaps settled, contexts made numbers, all said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from titrant.data import frames
from titrant.data.columns import check_present, context_roles
from titrant.data.encode import encode
from titrant.data.flow import Flow
from titrant.data.keys import group_keys
from titrant.data.validate import Intake

if TYPE_CHECKING:
    from titrant._types import Array
    from titrant.data.columns import Columns
    from titrant.data.gaps import MissingRule


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
        spent = {*taken, *columns.after}
        others = (name for name in names if isinstance(name, str) and name not in spent)
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
    if settled.kept is not None:
        held = held.rows(settled.kept)
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
    flow = Flow(rows_in, len(held.table), settled.steps, notes, encoded.recipe)
    return Intake(parts.marked(settled.observed), labels, encoded.names, settled.kept, flow)
