"""The code blocks of a page: found, run in their order, and held against the output shown.

A `text` block right after a Python or shell block is what that block prints. The Python blocks of
a page share their names. Of shell blocks the lines that call titrant run; those that call make or
git are held to what the Makefile knows by a test. Above a block that must not run stands a comment
that says why: ``<!-- not run: takes an hour -->``.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
OUTSIDE = ("README.md", "CONTRIBUTING.md")
"""Pages with code that do not lie in docs/."""

BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n+)?"
    r"```(?P<kind>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<output>.*?)^```$)?",
    flags=re.DOTALL | re.MULTILINE,
)


def pages() -> list[Path]:
    """Return every page that may hold code."""
    return [*(ROOT / name for name in OUTSIDE), *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code with the output that the page shows, if it shows one."""

    page: str
    kind: str
    code: str
    line: int
    output: str | None
    span: tuple[int, int]
    """Where the output stands in the text of the page."""
    why_not: str | None
    """Why the block must not run."""

    @property
    def place(self) -> str:
        """The page and line, as an editor understands them."""
        return f"{self.page}:{self.line + 1}"


def blocks(text: str, page: str) -> Iterator[Block]:
    """Yield the blocks of a page in their order."""
    for found in BLOCK.finditer(text):
        yield Block(
            page,
            found["kind"],
            found["code"],
            text.count("\n", 0, found.start("code")),
            found["output"],
            found.span("output"),
            found["why"],
        )


def printed(given: list[Block]) -> Iterator[tuple[Block, str]]:
    """Run the blocks of one page in the current folder and yield what each prints."""
    names = _module().__dict__
    for block in given:
        if block.why_not is not None:
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if block.kind == "python":
                _run_python(block, names)
            else:
                _run_shell(block)
        yield block, "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _module() -> ModuleType:
    """Return a module for the names of a page: a dataclass looks its annotations up in one."""
    module = ModuleType("page")
    sys.modules["page"] = module
    return module


def _run_python(block: Block, names: dict[str, object]) -> None:
    """Run a block under the line numbers of its page, so that a traceback points there."""
    code = compile("\n" * block.line + block.code, block.page, "exec")
    exec(code, names)  # noqa: S102  (our own pages)


def _run_shell(block: Block) -> None:
    """Run the lines that call titrant; each must succeed."""
    from titrant.cli import run  # noqa: PLC0415  (its modules are heavy, most pages need none)

    for words in commands(block.code):
        if words[0] == "titrant" and (code := run(words[1:])):
            raise AssertionError(f"{block.place}: {shlex.join(words)} left with exit code {code}.")


def commands(code: str) -> Iterator[list[str]]:
    """Yield the words of each command of a shell block, lines joined at a backslash."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words
