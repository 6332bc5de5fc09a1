"""A progress bar on the terminal, by rich; imported when one is drawn."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from titrant.cli.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class TimeLeft(ProgressColumn):
    """The time left if the rest goes on like what is done."""

    def render(self, task: Task) -> Text:
        """Return the time in words."""
        known = task.completed, task.fields["moved"], task.elapsed or 0.0
        return Text(time_left(*known), style="cyan")


@contextlib.contextmanager
def drawn(*, length: bool = True) -> Iterator[Callable[[str, float], None]]:
    """Give a function that draws what is at work and the share that is done, on standard error.

    Without a ``length`` of the work there is no bar, only a sign of life.
    """
    sign = (SpinnerColumn(), TextColumn("{task.description}", markup=False))
    columns = (*sign, BarColumn(), TimeLeft()) if length else sign
    # Standard output is left alone: it may be a file while the bar is on the screen.
    with Progress(
        *columns, console=Console(stderr=True), transient=True, redirect_stdout=False
    ) as progress:
        task = progress.add_task("", total=1.0, moved=0.0)

        def draw(text: str, share: float) -> None:
            moved = progress.tasks[0].elapsed or 0.0
            progress.update(task, description=visible(text), completed=share, moved=moved)

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
