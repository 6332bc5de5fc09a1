"""The terminal: where tables, notes and progress go."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import unicodedata
import warnings
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from titrant.errors import TableWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import RenderableType

    Draw = Callable[[str, float], None]
# A bar with the time left, on standard error, for work that may take more than a second.


READING, FITTING, ESTIMATING = "Reading the log", "Fitting propensities and outcomes", "Estimating"
CHECKING, LEARNING, REPORTING = "Checking", "Learning", "Writing the report"
COSTS = {READING: 1.0, FITTING: 20.0, ESTIMATING: 8.0, CHECKING: 20.0, LEARNING: 500.0}
DOUBTING, TRYING = "Bounding", "Trying"
COSTS |= {REPORTING: 80.0, DOUBTING: 60.0, TRYING: 500.0}
"""How long the parts of a run take beside each other, as measured on 100,000 rows."""

_ROWS = {"all rows": (0.0, 0.5), "first half": (0.5, 0.75), "second half": (0.75, 1.0)}
_STAGES = {"outcome models": (0.0, 0.93), "candidates": (0.93, 0.97), "grading": (0.97, 1.0)}
"""Of the time that learning takes, from where to where each stage goes."""


@dataclass(slots=True)
class Bar:
    """The parts of a run in their order, and how far it is; drawn by `draw`, if by anything."""

    parts: Mapping[str, float]
    """Each part with the time it takes beside the others."""
    draw: Draw | None = None
    """Called with what is at work and the share that is done."""
    now: str = field(default="", init=False)

    def begin(self, part: str) -> None:
        """Say that a part begins: all before it are done."""
        self.now = part
        self._move(part, 0.0)

    def advance(self, stage: str, done: int, total: int) -> None:
        """Say how much of the part is done; `stage` says what is at work."""
        self._move(f"{self.now}: {stage}", done / total)

    def learning(self, stage: str, done: int, total: int) -> None:
        """Say how far learning is: a `PolicyLearner` reports each stage of its own from 0."""
        self._move(f"{self.now}: {stage}", learned_share(stage, done, total))

    def _move(self, text: str, inside: float) -> None:
        if self.draw is not None:
            ends = dict(zip(self.parts, accumulate(self.parts.values()), strict=True))
            size = self.parts[self.now]
            self.draw(text, (ends[self.now] - size * (1.0 - inside)) / sum(self.parts.values()))


@contextlib.contextmanager
def bar(*parts: str | None) -> Iterator[Bar]:
    """Give the bar of a run with these parts, at its first; drawn on a terminal, nowhere else."""
    with drawn() as draw:
        steps = Bar({part: COSTS[part] for part in parts if part is not None}, draw)
        steps.begin(next(iter(steps.parts)))
        yield steps


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal that work of unknown length goes on, and say nothing elsewhere."""
    with drawn(length=False) as draw:
        if draw is not None:
            draw(text, 0.0)
        yield


@contextlib.contextmanager
def drawn(*, length: bool = True) -> Iterator[Draw | None]:
    """Give a function that draws what is at work and the share that is done, on standard error.

    Without a ``length`` of the work there is no bar, only a sign of life; off a terminal, None.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    class TimeLeft(bars.ProgressColumn):
        """The time left if the rest goes on like what is done."""

        def render(self, task: bars.Task) -> Text:
            """Return the time in words."""
            left = time_left(task.completed, task.fields["moved"], task.elapsed or 0.0)
            return Text(left, style="cyan")

    sign = (bars.SpinnerColumn(), bars.TextColumn("{task.description}", markup=False))
    columns = (*sign, bars.BarColumn(), TimeLeft()) if length else sign
    # Standard output is left alone: it may be a file while the bar is on the screen.
    console = Console(stderr=True)
    with bars.Progress(*columns, console=console, transient=True, redirect_stdout=False) as shown:
        task = shown.add_task("", total=1.0, moved=0.0)

        def draw(text: str, share: float) -> None:
            moved = shown.tasks[0].elapsed or 0.0
            shown.update(task, description=visible(text), completed=share, moved=moved)

        yield draw


def time_left(share: float, moved: float, elapsed: float) -> str:
    """Return the time left in words, `share` of the work being done `moved` seconds after start.

    >>> time_left(0.25, 20.0, 25.0), time_left(0.5, 100.0, 100.0), time_left(0.0, 0.0, 3.0)
    ('55 s left', '1 min 40 s left', '')
    """
    if share <= 0.0:
        return ""
    seconds = max(1, round(moved * (1.0 - share) / share - (elapsed - moved)))
    minutes, rest = divmod(seconds, 60)
    return f"{minutes} min {rest} s left" if minutes else f"{rest} s left"


def learned_share(stage: str, done: int, total: int) -> float:
    """Return the share of all learning that is done, `done` of `total` steps into a stage.

    >>> learned_share("all rows: outcome models", 15, 15)
    0.465
    """
    rows, _, work = stage.partition(": ")
    start, end = _ROWS.get(rows, (0.0, 1.0))
    first, last = _STAGES.get(work, (0.0, 0.97))
    return start + (end - start) * (first + (last - first) * done / total)


# The terminal: where tables, notes and signs of life go.

_PIPE_WIDTH = 160
"""Columns for a table that goes into a file or a pipe: wide enough that nothing is cut."""
_STDIN, _STDOUT, _STDERR = range(3)
_HIDDEN = {"Cc", "Cs", "Zl", "Zp"}
"""Controls, which move the cursor or recolor the screen; halves of characters; line separators."""
_TURNING = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that turn the direction of writing, by which a text can look like another."""


def behave() -> Guarded:
    """Make this process a good neighbor in a shell; return its standard output."""
    _fill_gaps()
    output = Guarded(_STDOUT)
    if sys.platform != "win32":  # whose console is no file
        sys.stdout = _text(output, sys.stdout)
        sys.stderr = _text(Guarded(_STDERR), sys.stderr)
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` wants it ignored
                signal.signal(number, _terminate)
    warnings.showwarning = _warned  # a library's warning without its lines of code
    warnings.simplefilter("ignore", TableWarning)  # of which there are notes
    return output


class Terminated(BaseException):
    """Another process wants this one to end, which it does like after Ctrl-C: tidily."""

    def __init__(self, number: int) -> None:
        self.number = number


class Guarded(io.FileIO):
    """A standard stream that nobody may be reading any more.

    A table that cannot be printed is no reason to leave without the files that were asked for: the
    first failure is kept, to be told at the end, and what comes after it is dropped.
    """

    def __init__(self, number: int) -> None:
        io.FileIO.__init__(self, number, "w", closefd=False)
        self.failure: OSError | None = None

    def write(self, content: Any, /) -> int:  # noqa: ANN401  (whatever has a buffer)
        """Write what is wanted, or say so."""
        if self.failure is None:
            try:
                return io.FileIO.write(self, content) or 0
            except OSError as error:
                self.failure = error
        return len(content)


def show(what: RenderableType) -> None:
    """Print a table or text on standard output."""
    from rich.console import Console  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if terminal else _PIPE_WIDTH, highlight=False)
    console.print(visible(what, keep="\n") if isinstance(what, str) else what, markup=False)


def put(text: str) -> None:
    """Write data to standard output as they are; a terminal gets them without controls.

    Not by click, which takes colors out of a text that goes to a file, also out of data.
    """
    sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)


def bad_value(option: str, sentence: str) -> click.BadParameter:
    """Return the error that refuses the value of an option or argument."""
    return click.BadParameter(sentence, param_hint=f"'{option}'")


def note(text: str, *, keep: str = "") -> None:
    """Say something beside the result, in one line on standard error."""
    click.echo(visible(text, keep=keep), err=True)


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text whose control characters are written out, but for those to `keep`.

    >>> visible("a\x1b[31mred")
    'a\\x1b[31mred'
    """
    if text.isprintable() and text.isascii():
        return text
    return "".join(c if c in keep or not _acts(c) else _escaped(c) for c in text)


def _acts(character: str) -> bool:
    """Return whether a terminal would act on a character instead of showing it."""
    return character in _TURNING or unicodedata.category(character) in _HIDDEN


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _fill_gaps() -> None:
    """Open what the shell closed: the next file to be opened would become a standard stream."""
    for number in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(number)
        except OSError:
            # Read-only, so that writing fails as it would on a closed stream.
            os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(_STDIN, encoding="utf-8", closefd=False)  # noqa: SIM115


def _text(raw: Guarded, before: TextIO | None) -> TextIO:
    """Return a text stream like the one before, which was None if it was closed."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=None if before is None else before.encoding,
        errors="replace",  # a terminal without − or ≥ still gets its table
        line_buffering=raw.isatty() or raw.fileno() == _STDERR,
    )


def _terminate(number: int, _: object) -> NoReturn:
    raise Terminated(number)


def _warned(message: Warning | str, *_: object, **__: object) -> None:
    note(f"Warning: {' '.join(str(message).split())}")
