"""`titrant recommend`, `export`: a saved policy on new contexts, or where there is no titrant."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.compute as pc

import titrant as tt
from titrant.cli.inputs import announce, columns, written
from titrant.cli.options import (
    RunOptions,
    argument,
    column_names,
    decimal,
    encoding,
    flag,
    option,
    save_config,
    separator,
    sheet,
    takes,
)
from titrant.cli.terminal import bad_value, note, working
from titrant.cli.writing import PIPE, check_format, check_outputs, write_table, write_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from titrant._types import Array
    from titrant.data.columns import Recipe
    from titrant.policies import Policy, TrainingRange

# Texts that a spreadsheet would run as formulas, made harmless.


FORMULA = r"^[\s\pZ\pC]*(=|\+|-|@|＝|＋|－|＠)|^[\t\r\n]"
"""How a cell begins that a spreadsheet takes for a formula: it drops blanks before the sign, and
some take the full-width signs of Chinese and Japanese keyboards for the narrow ones."""
NUMBER = r"^ *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *$"
"""A number, which may begin with a sign: columns of a CSV that no one asked for are texts."""
GUARD = "'"
"""What makes a spreadsheet read the rest of a cell as it is written."""


def guarded(table: pa.Table) -> pa.Table:
    """Return a table with an apostrophe before names and texts that would run as formulas."""
    columns = [_guarded(column) if _is_text(column.type) else column for column in table.columns]
    names = _guarded(pa.array(table.column_names, pa.string())).to_pylist()
    return pa.table(columns, names=names)


def _guarded(texts: Any) -> Any:  # noqa: ANN401  (an array of texts, in chunks or not)
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if pa.types.is_fixed_size_binary(texts.type):  # an apostrophe does not fit in
        texts = texts.cast(pa.binary())
    seen = _decoded(texts)
    runs = pc.and_not(
        pc.match_substring_regex(seen, FORMULA), pc.match_substring_regex(seen, NUMBER)
    )
    quoted = pc.binary_join_element_wise(
        pa.scalar(GUARD, texts.type), texts, pa.scalar("", texts.type)
    )
    return pc.if_else(pc.fill_null(runs, fill_value=False), quoted, texts)


def _decoded(texts: Any) -> Any:  # noqa: ANN401
    """Return bytes as the text that they are, if they are one."""
    try:
        return texts.cast(pa.large_string())
    except pa.ArrowInvalid:
        return texts


def _is_text(kind: pa.DataType) -> bool:
    """Return whether a CSV shows values of this type as text; bytes are written as they are."""
    is_a = pa.types
    if is_a.is_dictionary(kind):
        return _is_text(kind.value_type)
    return any(is_one(kind) for is_one in (
        is_a.is_string, is_a.is_large_string,
        is_a.is_binary, is_a.is_large_binary, is_a.is_fixed_size_binary,
    ))  # fmt: skip


# `titrant recommend`: a saved policy on new contexts.

OUTSIDE = "outside_training"
"""The column that marks rows with a context beyond those of the training."""
UNKNOWN = "unknown_text"
"""The column that names texts of a row that the training had not, where the policy uses texts."""
MOST_UNKNOWN = 10
"""Unknown texts that a note names, the most common ones."""
NO_DOSE = "no_dose_because"
"""The column that says why a row has no dose, where some have none."""
LARGE = 16 << 20
"""Bytes above which a file passes through in parts."""


@dataclass(frozen=True, slots=True)
class RecommendOptions:
    """Which policy, for whom, and where the doses go."""

    policy_file: str = argument("policy_file", metavar="POLICY")
    table: str = argument("table", metavar="TABLE")
    output: str = option(
        "-o",
        "--output",
        default=PIPE,
        show_default=False,
        metavar="FILE",
        help="CSV, Parquet or Arrow by its ending.  [default: CSV on standard output]",
    )
    treatment: tuple[str, ...] = column_names(
        "--treatment", "What to call the new column of doses, or columns.  [default: dose]"
    )
    context: tuple[str, ...] = column_names(
        "--context",
        "The contexts in the policy's order.  [default: those named in the policy, or all "
        "columns that are numbers, or text with few values]",
    )
    explain: bool = flag(
        "--explain",
        "Add the doses that are as good (`dose_from`, `dose_to`), whether such people and doses "
        "were in the log (`seen`) and the `reason`. Who was not seen gets no dose.",
    )
    margin: float | None = option(
        "--margin",
        type=click.FloatRange(min=0.0),
        metavar="X",
        help="With --explain, doses are as good that lose at most so much more.  [default: a "
        "twentieth of the outcome's sd]",
    )
    keep: str | None = option(
        "--keep",
        metavar="COLUMN",
        help="With --explain, the current dose, which is kept where such people and doses were "
        "not seen.  [default: the policy's own, if it has one]",
    )
    strict: bool = flag(
        "--strict",
        "All rows or none: without it, rows with a gap that the policy cannot fill get no dose, "
        "and `no_dose_because` says why.",
    )
    exact: bool = flag(
        "--exact",
        "All digits of each dose.  [default: rounded to a thousandth of the logged range]",
    )
    guard_formulas: bool = flag(
        "--guard-formulas",
        "Put an apostrophe before column names and texts that begin with = + - @, also after "
        "blanks, or with a tab or a line break, so that a spreadsheet does not run them. Numbers "
        "stay as they are.",
    )
    sep: str | None = separator()
    decimal: str | None = decimal()
    encoding: str | None = encoding()
    sheet: str | None = sheet()


_EXAMPLE = """\b
Example:
  titrant recommend policy.json patients.csv -o doses.csv
"""


@click.command("recommend", epilog=_EXAMPLE)
@takes(RecommendOptions, RunOptions)
def recommend(options: RecommendOptions, run: RunOptions) -> None:
    """Write TABLE with the doses that the saved POLICY gives its rows.

    POLICY is a JSON file; TABLE a CSV, Excel, Parquet or Arrow file, or - for CSV from a pipe. For
    a learned policy the column `outside_training` marks rows with a context beyond those that it
    was learned from, and `unknown_text` names the texts that it was not learned from. Columns of a
    CSV that the policy does not use stay as they are written. Large files pass through in parts
    when -o names a file.
    """
    from titrant.policies import load_training  # noqa: PLC0415

    read = [("POLICY", options.policy_file), ("TABLE", options.table)]
    check_outputs(run, [("--output", options.output)], read)
    check_format("--output", options.output)
    policy = tt.load_policy(options.policy_file)
    chosen = columns(options.context)
    # The same dose for everyone asks for no contexts, known or not.
    training = load_training(options.policy_file) if policy.features else None
    if not options.explain and (options.margin is not None or options.keep is not None):
        raise bad_value("--explain", "--margin and --keep go with it: add it.")
    if options.explain and load_training(options.policy_file) is None:
        what = f"{options.policy_file} does not say what it was learned from."
        raise bad_value("--explain", f"{what} Save it by `titrant learn` or `learner.save`.")
    advice = Advice(
        options.policy_file,
        policy,
        training and training.of_features(policy.features or ()),
        chosen or (None if policy.features is None else list(policy.features)),
        columns(options.treatment),
        options,
    )
    save_config(run.save_config)
    if options.output == PIPE:  # no sign of life amid the rows
        _write(advice, options)
    else:
        with working(f"Applying {options.policy_file}"):
            _write(advice, options)
    advice.note_rows()


@dataclass(slots=True)
class Advice:
    """A policy at work, and a count of the contexts that it was not learned from."""

    path: str
    policy: Policy
    training: TrainingRange | None
    contexts: list[str] | None
    """The columns it is called with; None for all that are fit."""
    names: list[str]
    """What to call the doses."""
    options: RecommendOptions
    rows: int = 0
    outside: int = 0
    """How many rows have any context that is strange to the training."""
    strange: Counter[str] = field(default_factory=Counter)
    """How many rows are strange in what way."""
    unknown: Counter[str] = field(default_factory=Counter)
    """How many rows have texts that the training had not, by what is said of them."""
    problems: Counter[str] = field(default_factory=Counter)
    """How many rows have no dose, by the reason."""

    def on(self, table: pa.Table) -> pa.Table:
        """Return the table with the doses behind its own columns; rows without one say why."""
        import numpy as np  # noqa: PLC0415

        if self.options.strict or self.contexts is None:
            return self.all_of(table)
        readable, why = without_dose(table, self.contexts, self.recipe)
        if isinstance(self.policy, tt.InLimits) and not self.options.explain:
            at = np.flatnonzero(why == "")
            x = self.contexts_of(readable.take(pa.array(at)))
            why[at[~self.policy.possible(x)]] = "the limits leave no dose"
        served = why == ""
        if served.all() or not served.any():  # of which the library says what is wrong
            return self.all_of(readable, table)
        made = self.all_of(readable.filter(pa.array(served)), table.filter(pa.array(served)))
        place = np.cumsum(served) - 1
        each = made.select(made.column_names[len(table.column_names) :])
        each = each.take(pa.array(place, mask=~served))
        for name in each.column_names:
            table = _appended(table, name, each[name])
        self.problems.update(why[~served].tolist())
        self.rows += self.problems.total()
        return _appended(table, NO_DOSE, pa.array(why, mask=served))

    @property
    def recipe(self) -> Recipe | None:
        """How contexts were made of the columns of the log."""
        return None if self.training is None else self.training.recipe

    def contexts_of(self, table: pa.Table) -> Array:
        """Return the contexts (n, p) that the policy is called with."""
        if self.options.context and self.policy.features:
            _check_no_texts(table, columns(self.options.context), self.policy.features)
        return _contexts(table, self.contexts, self.recipe)

    def all_of(self, readable: pa.Table, table: pa.Table | None = None) -> pa.Table:
        """Return the table with a dose in every row; its contexts are read of the first one."""
        from titrant.policies.calling import recommended  # noqa: PLC0415

        table = readable if table is None else table
        self.rows += len(table)
        x = self.contexts_of(readable)
        if self.options.explain:
            return self._explained(table, x)
        doses = self._rounded(recommended(self.policy, x, owner=f"policy `{self.path}`"), x)
        made = _with_doses(table, doses, self.names)
        if self.training is None:
            return made
        made = _appended(made, OUTSIDE, self._counted(self.training, table, x))
        return self._with_unknown(made, table)

    def _with_unknown(self, made: pa.Table, table: pa.Table) -> pa.Table:
        """Return doses with the texts of each row that the training had not; count them.

        The column is there wherever the policy uses texts, so that parts of a file are alike.
        """
        training = self.training
        known = {} if training is None else training.texts_of(training.names)
        if training is None or not known:
            return made
        codes = training.recipe.codes
        dosed = () if self.options.explain else [name for name in known if name not in codes]
        said = unknown_texts(table, known, dosed)
        self.unknown.update(words for words in said.tolist() if words is not None)
        return _appended(made, UNKNOWN, pa.array(said, pa.string()))

    def _rounded(self, doses: Array, x: Array) -> Array:
        """Return doses in as many digits as matter, within the policy's limits."""
        people = None if self.training is None else self.training.people
        wide = None if people is None else float(people.grid[-1] - people.grid[0])
        return doses if self.options.exact else rounded(self.policy, doses, x, wide)

    def _explained(self, table: pa.Table, x: Array) -> pa.Table:
        """Return the table with doses and what is known of each person's."""
        import numpy as np  # noqa: PLC0415

        from titrant.policies.advice import advice  # noqa: PLC0415

        training = self.training
        strange = (
            np.zeros(len(x), dtype=bool)
            if training is None
            else np.any(
                [*_strange(training, table, x).values(), np.zeros(len(x), dtype=bool)], axis=0
            )
        )
        keep = self.options.keep
        now = None if keep is None else _contexts(table, [keep], None)[:, 0]
        people = None if training is None else training.people
        margin = self.options.margin
        told = advice(self.policy, x, people, strange, margin=margin, current=now)
        self.outside += int((~told.seen).sum())
        dose, low, high = (self._rounded(one, x) for one in (told.dose, told.low, told.high))
        dose = np.where(told.seen, dose, told.dose)  # a dose that is kept stays as it is
        made = _with_doses(table, dose, self.names)
        name = (self.names or ["dose"])[0]
        parts = {f"{name}_from": low, f"{name}_to": high, "seen": told.seen}
        for column, values in {**parts, "reason": np.array(told.reason, dtype=object)}.items():
            made = _appended(made, column, values)
        return self._with_unknown(made, table)

    def forget(self) -> None:
        """Begin to count anew."""
        self.rows, self.outside = 0, 0
        self.strange, self.unknown, self.problems = Counter(), Counter(), Counter()

    def note_rows(self) -> None:
        """Say how many rows have no dose, and how many lie where the policy was not learned."""
        if self.problems:
            reasons = "; ".join(f"{why} in {count:,}" for why, count in self.problems.items())
            note(
                f"{self.problems.total():,} of {self.rows:,} rows have no dose: {reasons}. See the "
                f"column `{NO_DOSE}`."
            )
        if self.unknown:
            self._note_unknown()
        if not self.outside:
            return
        if self.options.explain:
            note(
                f"In {self.outside:,} of {self.rows:,} rows such people or doses were not in the "
                "log. See the columns `seen` and `reason`."
            )
            return
        found = ", ".join(f"{way} in {count:,}" for way, count in self.strange.items() if count)
        note(
            f"{self.outside:,} of {self.rows:,} rows lie outside the contexts that the policy was "
            f"learned from: {found}. See the column `{OUTSIDE}`."
        )

    def _note_unknown(self) -> None:
        """Say which texts the training had not, and in how many rows."""
        common = self.unknown.most_common(MOST_UNKNOWN)
        found = "; ".join(f"{words}, in {count:,}" for words, count in common)
        left = len(self.unknown) - len(common)
        note(
            f"{self.unknown.total():,} of {self.rows:,} rows have a text that the policy was not "
            f"learned from: {found}{f'; and {left:,} more' if left else ''}. See the column "
            f"`{UNKNOWN}`."
        )

    def _counted(self, training: TrainingRange, table: pa.Table, x: Array) -> NDArray[np.bool_]:
        """Return which rows (n,) have contexts that the training had not, and count them."""
        import numpy as np  # noqa: PLC0415

        ways = _strange(training, table, x)
        row = np.any([*ways.values(), np.zeros(len(x), dtype=bool)], axis=0)
        self.outside += int(row.sum())
        self.strange.update({way: int(rows.sum()) for way, rows in ways.items()})
        return np.asarray(row)


def without_dose(
    table: pa.Table, contexts: list[str], recipe: Recipe | None
) -> tuple[pa.Table, NDArray[Any]]:
    """Return the table with numbers in place of texts that hold some, and why rows have no dose.

    The reason (n,) is empty where a row has a value of each context that the log had in every row.
    """
    import numpy as np  # noqa: PLC0415

    from titrant.data import features  # noqa: PLC0415
    from titrant.data.columns import IS_MISSING, Recipe  # noqa: PLC0415

    known, why = recipe or Recipe(), np.full(len(table), "", dtype=object)
    for name in contexts:
        there = name in table.column_names
        column, part = (name, "") if there else features.source_of(name, table.column_names)
        if column not in table.column_names or part == IS_MISSING:
            continue
        amount = there and name not in known.codes
        if amount and features.is_text(table[column].type):
            plain = pc.utf8_trim_whitespace(features.as_text(table[column]))
            like = pc.match_substring_regex(plain, NUMBER)
            found = pc.cast(pc.if_else(like, plain, None), pa.float64())
            strange = features.gaps(found) & ~features.gaps(table[column])
            if strange.all():  # no column of numbers
                continue
            why[strange & (why == "")] = f"`{column}` is no number"
            table = table.set_column(table.column_names.index(column), column, found)
        if amount or part in features.PARTS:
            missing = features.gaps(table[column]) & (name not in known.fills)
        else:
            level = features.MISSING in known.levels.get(column, ())
            level = level or f"{column}={features.MISSING}" in contexts
            missing = features.without_text(table[column], may_miss=level) & (not level)
        why[missing & (why == "")] = f"`{column}` is missing"
    return table, why


MOST_DIGITS = 9
"""Of a dose of which nothing is known; enough to drop what adding up leaves behind."""


def rounded(policy: Policy, doses: Array, x: Array, wide: float | None) -> Array:
    """Return doses (n,) or (n, d) in as many digits as matter, within the limits of the policy.

    That is to a power of ten, at most a thousandth of the range of logged doses; where this is not
    known, or doses are in steps, to nine digits.
    """
    import numpy as np  # noqa: PLC0415

    layers = [policy]
    while isinstance(layers[-1], (tt.Clipped, tt.InLimits, tt.Rounded)):
        layers.append(layers[-1].policy)
    steps = any(isinstance(p, tt.Rounded) or getattr(p, "steps", None) is not None for p in layers)
    flat = [float(f"{dose:.{MOST_DIGITS}g}") for dose in doses.ravel().tolist()]
    found = np.array(flat).reshape(doses.shape)
    if steps:
        return found
    if wide is not None and wide > 0.0:
        found = np.round(doses, -int(np.floor(np.log10(wide / 1000.0))))
    for one in reversed(layers):
        if isinstance(one, tt.Clipped):
            found = np.clip(found, one.lower, one.upper)
        elif isinstance(one, tt.InLimits):
            own = x if one.features is None else x[:, : len(one.features)]
            found = np.clip(found, *one.limits(own))
    return found


def _strange(training: TrainingRange, table: pa.Table, x: Array) -> dict[str, NDArray[np.bool_]]:
    """Return which rows (n,) of contexts x (n, p) are strange to the training, in which way."""
    from titrant.data.features import unseen  # noqa: PLC0415
    from titrant.data.validate import listed  # noqa: PLC0415

    ranges = zip(training.names, training.low, training.high, training.beyond(x).T, strict=True)
    beyond = {f"`{name}` beyond {low:.6g} … {high:.6g}": rows for name, low, high, rows in ranges}
    other = {
        f"`{name}` none of {listed(training.levels[name])}": rows
        for name, rows in unseen(table, training.levels).items()
    }
    return {**beyond, **other}


def unknown_texts(
    table: pa.Table, known: Mapping[str, Sequence[str]], dosed: Collection[str] = ()
) -> NDArray[Any]:
    """Return which texts of each row are none of the known ones of their column, in words (n,).

    None where there is no such text. One that differs from a known text by case or spaces alone
    comes with that text, and one of the columns ``dosed`` with the text whose dose it gets: all its
    indicators are 0, as those of the reference are.
    """
    import numpy as np  # noqa: PLC0415

    from titrant.data.features import as_text, unseen  # noqa: PLC0415

    said = np.full(len(table), None, dtype=object)
    for name, rows in unseen(table, known).items():
        alike = {_folded(text): text for text in reversed(known[name])}
        end = f", dosed as {known[name][0]!r}" if name in dosed else ""
        found = as_text(table[name]).filter(pa.array(rows)).to_pylist()
        for i, text in zip(np.flatnonzero(rows).tolist(), found, strict=True):
            like = None if text is None else alike.get(_folded(text))
            meant = "" if like is None else f" (did you mean {like!r}?)"
            words = f"`{name}` is {text!r}{meant}{end}"
            said[i] = words if said[i] is None else f"{said[i]}; {words}"
    return said


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


def _write(advice: Advice, options: RecommendOptions) -> None:
    """Write the doses of a large file part by part, of anything else at once."""
    from titrant.data.features import typed  # noqa: PLC0415
    from titrant.data.files import AS_IT_SEEMS, read_table, stream_of  # noqa: PLC0415
    from titrant.data.frames import notes_of  # noqa: PLC0415

    def finished(dosed: pa.Table) -> pa.Table:
        return guarded(dosed) if options.guard_formulas else dosed

    # What the policy does not use goes through as it is written.
    used = None if advice.contexts is None else typed(advice.contexts)
    how = written(options)
    stream = stream_of(options.table, LARGE, used) if how == AS_IT_SEEMS else None
    if stream is not None and advice.contexts is not None and options.output != PIPE:
        # A file whose later parts do not fit the first, or whose rows cannot all have a dose, is
        # read as a whole, which settles the types of its columns, or says what is wrong and where.
        with contextlib.suppress(tt.DataError):
            write_tables(options.output, (finished(advice.all_of(part)) for part in stream()))
            return
        advice.forget()
    table = read_table(options.table, typed=used, how=how)
    for told in notes_of(table):
        note(told.text)
    write_table(options.output, finished(advice.on(table)))


def _check_no_texts(table: pa.Table, chosen: list[str], features: Sequence[str]) -> None:
    """Refuse a column of texts that was chosen in place of an indicator made of it."""
    from titrant.data.features import column_of, is_text  # noqa: PLC0415
    from titrant.data.validate import listed  # noqa: PLC0415

    for name, feature in zip(chosen, features, strict=False):
        texts = name in table.column_names and is_text(table[name].type)
        if texts and column_of(feature) != feature:
            raise tt.DataError(
                f"`--context` names the numbers {listed(features)} of the policy in this order, "
                f"but `{name}` holds texts. Leave the option out, and name the columns of the "
                f"table as the policy does: {listed(dict.fromkeys(map(column_of, features)))}."
            )


def _contexts(table: pa.Table, wanted: list[str] | None, recipe: Recipe | None) -> Array:
    """Return the contexts (n, p) that the policy is called with."""
    from titrant.data.intake import encode  # noqa: PLC0415
    from titrant.data.validate import listed  # noqa: PLC0415
    from titrant.policies.calling import contexts_for  # noqa: PLC0415

    if wanted is None:
        encoded = encode(table, None, ())
        if encoded.filled:
            raise tt.DataError(
                "The policy does not know the names of its contexts, and a table with gaps could "
                f"give it others: values are missing in {listed(encoded.filled)}. Name the columns "
                "by `--context`, or fill them."
            )
        announce(encoded.notes, encoded.names)
        table, wanted = encoded.table, list(encoded.names)
    return contexts_for(wanted, table, "policy", recipe=recipe)


def _with_doses(table: pa.Table, doses: Array, named: list[str]) -> pa.Table:
    """Return the table with one column a dose behind its own."""
    count = 1 if doses.ndim == 1 else doses.shape[1]
    names = named or (["dose"] if count == 1 else [f"dose_{j}" for j in range(count)])
    if len(names) != count:
        sentence = f"The policy gives {count} dose(s); got {len(names)} names."
        raise bad_value("--treatment", sentence)
    for name, column in zip(names, doses.reshape(len(table), count).T, strict=True):
        table = _appended(table, name, column)
    return table


def _appended(table: pa.Table, name: str, column: Any) -> pa.Table:  # noqa: ANN401  (an array)
    if name in table.column_names:
        option, remedy = (
            ("TABLE", "Rename it")
            if name in {OUTSIDE, UNKNOWN, NO_DOSE}
            else ("--treatment", "Give another name")
        )
        raise bad_value(option, f"The table already has a column `{name}`. {remedy}.")
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.array(column, from_pandas=True)
    return table.append_column(name, column)


# The policy itself, for where there is no titrant.


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


_EXPORTED = """\b
Example:
  titrant export policy.json --sql
"""


@click.command("export", epilog=_EXPORTED)
@takes(ExportOptions, RunOptions)
def export(options: ExportOptions, run: RunOptions) -> None:
    """Write the saved POLICY as SQL, as Python or as a spreadsheet formula.

    It gives the doses that `titrant recommend` gives, to rounding. Columns are those of the table
    that the policy was learned from. A row without a value that the rule needs has no dose. Whether
    a row lies outside the contexts of the training is for `recommend` to say.
    """
    from titrant._writing import write_text  # noqa: PLC0415
    from titrant.policies import load_training  # noqa: PLC0415
    from titrant.policies.formats.exporting import to_excel, to_python, to_sql  # noqa: PLC0415

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
