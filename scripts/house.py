"""Print how large the house is and how it hangs together: ``make house``.

Code lines and modules of every room, which room imports which, and, of a default `evaluate` on a
small log, how deep the kernel lies and how often each row's weight is computed, and for whom.
Nothing is patched: the interpreter reports each call of the kernel, so the library runs as always.
"""

from __future__ import annotations

import ast
import graphlib
import importlib.util
import io
import os
import sys
import textwrap
import tokenize
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import titrant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import CodeType, FrameType

    from numpy.typing import NDArray

PACKAGE = Path(__file__).parents[1] / "src" / "titrant"
FILES = 14
"""A folder with more files than these is named."""
SMALL = 20
"""A module with fewer code lines is named."""
ROWS = 1_000
"""Few enough for numpy: compiled loops would hide their weights from the interpreter."""
FRONT = "titrant"
"""The package's front page among the rooms."""
COMPILED = "compiled"
"""The folders of compiled loops."""
_BLANK = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


# ── lines ────────────────────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True)
class Module:
    """A module of the package: where it is and what it says."""

    path: Path
    root: Path
    source: str

    @property
    def name(self) -> str:
        """Its name within the package, such as ``kernels.base``; the front page is ``titrant``."""
        parts = self.path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or FRONT

    @property
    def room(self) -> str:
        """The folder or module directly in the package that it belongs to."""
        return self.name.split(".")[0]

    @property
    def lines(self) -> int:
        """Its code lines."""
        return code_lines(self.source)


def modules(root: Path = PACKAGE) -> list[Module]:
    """Return every module below a package's folder, in the order of their paths."""
    return [Module(path, root, path.read_text("utf-8")) for path in sorted(root.rglob("*.py"))]


def code_lines(source: str) -> int:
    """Return how many lines hold code: no blank ones, comments or docstrings."""
    filled: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _BLANK:
            filled.update(range(token.start[0], token.end[0] + 1))
    return len(filled - set(_docstring_lines(ast.parse(source))))


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Give the lines of texts that stand by themselves, also those below a constant or field."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                yield from range(first, last + 1)


def crowded(root: Path = PACKAGE) -> dict[str, int]:
    """Return the folders with more than `FILES` files, each with their number."""
    folders = [root, *(path for path in sorted(root.rglob("*")) if path.is_dir())]
    counts = {
        str(folder.relative_to(root.parent)): sum(path.is_file() for path in folder.iterdir())
        for folder in folders
        if folder.name != "__pycache__"
    }
    return {folder: count for folder, count in counts.items() if count > FILES}


# ── imports ──────────────────────────────────────────────────────────────────────────────────────
def graph(house: Sequence[Module]) -> dict[str, set[str]]:
    """Return which rooms each room imports when it runs, late imports in functions too."""
    rooms = {module.room for module in house}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in house:
        found[module.room] |= {_room(name, rooms) for name in imported(module)} - {module.room, ""}
    return found


def imported(module: Module) -> Iterator[str]:
    """Give the full names that a module imports, those for type checkers left out."""
    base = f"{FRONT}.{module.name}" if module.name != FRONT else FRONT
    package = base if module.path.name == "__init__.py" else base.rpartition(".")[0]
    for node in _run(ast.parse(module.source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=origin, names=names, level=level):
                relative = "." * level + (origin or "")
                start = importlib.util.resolve_name(relative, package)
                yield from (f"{start}.{alias.name}" for alias in names)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """Give every node that runs, one within another; nothing below ``if TYPE_CHECKING``."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for other in node.orelse:
            yield from _run(other)
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _run(child)


def _room(name: str, rooms: set[str]) -> str:
    """Return the room of an imported name, the front page for a public one, "" for another's."""
    package, _, rest = name.partition(".")
    if package != FRONT:
        return ""
    room = rest.split(".")[0]
    return room if room in rooms else FRONT


def from_the_top(imports: Mapping[str, set[str]]) -> tuple[list[str], list[str]]:
    """Return the rooms, each above those it imports, and a circle of imports if there is one."""
    try:
        return list(graphlib.TopologicalSorter(imports).static_order())[::-1], []
    except graphlib.CycleError as error:
        return sorted(imports), list(error.args[1])


# ── calls ────────────────────────────────────────────────────────────────────────────────────────
@dataclass(slots=True)
class Calls:
    """What a default `evaluate` asked of the kernel."""

    rows: int
    weights: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """How many weights each stack of frames between `evaluate` and the kernel computed."""
    distances: set[bytes] = field(default_factory=set)
    """The distances of which weights were computed, each array once."""
    distinct: int = 0
    loops: Counter[str] = field(default_factory=Counter)
    """Calls of compiled loops, whose weights are not counted; seen only where numba is off."""

    @property
    def deepest(self) -> tuple[str, ...]:
        """The longest stack, from the frame below `evaluate` to the one that calls the kernel."""
        return max(self.weights, key=len)

    @property
    def per_row(self) -> float:
        """How often the weight of a row was computed."""
        return self.weights.total() / self.rows

    @property
    def distinct_per_row(self) -> float:
        """How often, had no distance been asked twice."""
        return self.distinct / self.rows

    def note(self, u: NDArray[np.float64], stack: tuple[str, ...]) -> None:
        """Add a call of the kernel."""
        self.weights[stack] += u.size
        key = np.ascontiguousarray(u).tobytes()
        if key not in self.distances:
            self.distances.add(key)
            self.distinct += u.size


def small_log(n: int, *, known: bool) -> titrant.LoggedData:
    """Return a log of n rows with one dose, with the column of propensities if ``known``."""
    rng = np.random.default_rng(16)
    x = rng.standard_normal((n, 3))
    noise = rng.standard_normal(n)
    t = 0.5 * x[:, 0] + noise
    y = (t - x[:, 0]) ** 2 + 0.3 * rng.standard_normal(n)
    q = np.exp(-0.5 * noise**2) / np.sqrt(2.0 * np.pi)
    return titrant.LoggedData(x, t, y, q if known else None)


def calls(log: titrant.LoggedData) -> Calls:
    """Return what one default `evaluate` on a log asks of the kernel."""
    found = Calls(len(log))
    kernel = titrant.DoublyRobust().kernel
    called, top = type(kernel).__call__.__code__, titrant.evaluate.__code__
    before = sys.getprofile()

    def report(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        if frame.f_code is called:
            u = frame.f_locals[called.co_varnames[1]]
            found.note(np.asarray(u), stack_above(frame, top))
        elif COMPILED in _module_of(frame).split("."):
            found.loops[f"{_module_of(frame)}:{frame.f_code.co_name}"] += 1

    policy = titrant.Linear([0.5, 0.0, 0.0], 0.1)
    sys.setprofile(report)
    try:
        titrant.evaluate(log, policy)
    finally:
        sys.setprofile(before)
    return found


def stack_above(frame: FrameType, top: CodeType) -> tuple[str, ...]:
    """Return the frames strictly between a function and a frame, as module:function."""
    names: list[str] = []
    above = frame.f_back
    while above is not None and above.f_code is not top:
        names.append(f"{_module_of(above)}:{above.f_code.co_qualname}")
        above = above.f_back
    return tuple(names[::-1])


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "?")).removeprefix(f"{FRONT}.")


def who_asks(weights: Mapping[tuple[str, ...], int], depth: int = 0) -> Iterator[tuple[int, str]]:
    """Give the count and the function at each fork of the stacks, indented by its depth."""
    branches: dict[str, dict[tuple[str, ...], int]] = {}
    for stack, count in weights.items():
        branches.setdefault(stack[0] if stack else "", {})[stack[1:]] = count
    if len(branches) == 1 and (only := next(iter(branches))):
        yield from who_asks(branches[only], depth)
        return
    for name, below in sorted(branches.items(), key=lambda item: -sum(item[1].values())):
        others = _elsewhere(name, next(iter(below))) if len(below) == 1 else ""
        yield sum(below.values()), "  " * depth + name + others
        if len(below) > 1:
            yield from who_asks(below, depth + 1)


def _elsewhere(name: str, below: tuple[str, ...]) -> str:
    """Return the first function below a last fork that lies in another module, after an arrow."""
    module = name.partition(":")[0]
    return next((f" → {other}" for other in below if other.partition(":")[0] != module), "")


# ── what is printed ──────────────────────────────────────────────────────────────────────────────
def sizes(house: Sequence[Module]) -> Iterator[str]:
    """Give the lines about lines, rooms, crowded folders and small modules."""
    lines = {module.name: module.lines for module in house}
    yield f"{sum(lines.values()):,} code lines in {len(house)} modules"
    for room in sorted({module.room for module in house}):
        own = [lines[module.name] for module in house if module.room == room]
        yield f"{sum(own):7,}  {len(own):3}  {room}"
    yield from _listed(f"folders with more than {FILES} files", crowded())
    small = {name: count for name, count in lines.items() if count < SMALL}
    yield from _listed(f"modules under {SMALL} code lines", small)


def _listed(title: str, counts: Mapping[str, int]) -> Iterator[str]:
    yield f"\n{len(counts)} {title}"
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    yield from _wrapped("", (f"{name} {count}" for name, count in ordered), ", ")


def imports(house: Sequence[Module]) -> Iterator[str]:
    """Give a line for each room, from the top of the house down."""
    found = graph(house)
    order, circle = from_the_top(found)
    edges = sum(len(below) for below in found.values())
    yield f"\n{edges} imports between {len(order)} rooms, the topmost first"
    if circle:
        yield f"a circle: {' → '.join(circle)}"
    for room in order:
        if found[room]:
            yield from _wrapped(f"{room} → ", sorted(found[room], key=order.index), " ")


def _wrapped(start: str, words: Iterable[str], between: str) -> list[str]:
    text = start + between.join(words)
    return textwrap.wrap(
        text, 100, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False
    )


def frames(found: Calls) -> Iterator[str]:
    """Give the lines about the deepest way from `evaluate` to the kernel."""
    stack = found.deepest
    unrolled = sum(name.endswith(("<listcomp>", "<setcomp>", "<dictcomp>")) for name in stack)
    # Since Python 3.12 such comprehensions have no frame of their own.
    title = "frames between evaluate and the kernel"
    yield f"\n{len(stack)} {title}, {unrolled} of them comprehensions"
    yield from (f"  {name}" for name in stack)


def weights(title: str, found: Calls) -> Iterator[str]:
    """Give the lines about who asks for weights, and how often each row's is computed."""
    yield (
        f"\n{found.per_row:.1f} weights a row in evaluate, n = {found.rows:,}, {title}; "
        f"{found.distinct_per_row:.1f} if none were computed twice"
    )
    yield from (f"  {count / found.rows:5.1f}  {name}" for count, name in who_asks(found.weights))
    if found.loops:
        yield from _listed("compiled loops ran besides; their weights are not counted", found.loops)


def main() -> None:
    """Print everything."""
    # Loops run as plain Python, so that one that ran unseen is named. numba is loaded late.
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    house = modules()
    fitted, known = (calls(small_log(ROWS, known=known)) for known in (False, True))
    parts = (
        sizes(house),
        imports(house),
        frames(fitted),
        weights("propensity fitted", fitted),
        weights("propensity known", known),
    )
    for part in parts:
        print("\n".join(part))


if __name__ == "__main__":
    main()
