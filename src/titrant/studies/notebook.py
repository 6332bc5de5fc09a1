"""What has been measured so far, on disk: an interrupted run goes on where it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from titrant import __version__
from titrant._writing import append_text, write_text

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from titrant.studies.study import Measurement, Settings, Task


@dataclass(frozen=True, slots=True)
class Notebook:
    """A file with one line for each measurement, under a line that says of which run."""

    path: Path
    found: dict[str, Measurement]

    @classmethod
    def opened(cls, path: Path, name: str, settings: Settings, *, fresh: bool) -> Self:
        """Return the notebook of a run, with what an interrupted run of its kind left in it."""
        title = json.dumps(
            {
                "study": name,
                "version": __version__,
                "seed": settings.seed,
                "simulated": settings.simulated,
                "data": settings.data,
            }
        )
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        if fresh or not lines or lines[0] != title:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, title + "\n")
            return cls(path, {})
        found = dict(filter(None, map(_parsed, lines[1:])))
        # Written anew, for the last line may have been cut off in the middle.
        write_text(path, "\n".join([title, *map(_line, found.items())]) + "\n")
        return cls(path, found)

    def write(self, task: Task, found: Measurement) -> None:
        """Keep a measurement at once."""
        entry = key(task), found
        append_text(self.path, _line(entry) + "\n")
        parsed = _parsed(_line(entry))  # what a later run would read, so that both see the same
        if parsed is not None:
            self.found[parsed[0]] = parsed[1]

    def discard(self) -> None:
        """Remove the file of a run that has ended well."""
        self.path.unlink()


def key(task: Task) -> str:
    """Return the text by which a task is known."""
    return json.dumps(task, sort_keys=True)


def _line(entry: tuple[str, Measurement]) -> str:
    return json.dumps(entry)


def _parsed(line: str) -> tuple[str, Measurement] | None:
    """Return the entry of a line, None if the line was cut off."""
    try:
        entry: list[Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return entry[0], entry[1]
