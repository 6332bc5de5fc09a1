"""Which titrant runs here: workers that run another one would add other numbers to ours."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import titrant
from titrant.errors import ExecutionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable

_DIGITS = 16
"""Of the hash: enough that no two sources share them."""


@cache
def installed() -> str:
    """Return the version and a hash of the source, such as "0.1.0 (source 5f0c…)".

    Read once in a process, when it is first asked for.
    """
    digest = sha256()
    for name, content in sorted(_modules(files(titrant), "")):
        digest.update(f"{name} {len(content)} ".encode() + content)
    return f"{titrant.__version__} (source {digest.hexdigest()[:_DIGITS]})"


def _modules(folder: Traversable, place: str) -> Iterator[tuple[str, bytes]]:
    """Yield the place and the content of each module, also of a package in a zip file."""
    for one in folder.iterdir():
        if one.is_dir():
            yield from _modules(one, f"{place}{one.name}/")
        elif one.name.endswith(".py"):
            yield f"{place}{one.name}", one.read_bytes()


@cache
def check_sender(sender: str, host: str) -> None:
    """Refuse to work on ``host``, here, for a process that runs another titrant."""
    check_same(sender, installed(), host)


def check_same(sender: str, worker: str, place: str) -> None:
    """Refuse a worker at a place that runs another titrant than the process it works for."""
    if sender != worker:
        raise ExecutionError(
            f"All workers must run the titrant of the process that they work for, which is {sender}"
            f"; got {worker} on `{place}`. Install the same one there and start the workers anew."
        )


def cannot_load(reason: str) -> ExecutionError:
    """Return the refusal of a worker that has no titrant, or one that lacks a part of a task."""
    return ExecutionError(
        f"A worker cannot load its task ({reason}). Install titrant {installed()}, which runs "
        "here, where the workers run, and start them anew."
    )


class WhichInstalled:
    """A question that travels pickled: to open it is to answer which titrant is installed."""

    def __reduce__(self) -> tuple[Callable[[], str], tuple[()]]:
        """Return what opening it calls."""
        return installed, ()
