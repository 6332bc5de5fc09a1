"""The reference of the library: every public name with its signature and docstring."""

from __future__ import annotations

import ast
import enum
import inspect
import re
from importlib import import_module
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import titrant

if TYPE_CHECKING:
    from collections.abc import Iterator

SECTIONS = (
    ("The log", ("data",)),
    ("Evaluation", ("evaluation", "curves", "trust")),
    ("What if we are wrong", ("doubt",)),
    ("Learning", ("learning", "learn.")),
    ("The page", ("reporting",)),
    ("Policies", ("policies",)),
    ("Estimators", ("estimators",)),
    ("Propensities and outcome models", ("propensity", "outcome")),
    ("Bandwidths", ("bandwidth",)),
    ("Intervals", ("inference",)),
    ("Kernels", ("kernels",)),
    ("Running elsewhere", ("execute",)),
    ("Errors and warnings", ("errors",)),
)
"""The headings of the page with the rooms under each; a room of no heading fails the build."""


INTRODUCTION = """Every public name, as `import titrant as tt` gives it, and then what lies deeper:
designs with known truth, loaders, searches and the theory. Arrays come with their shape: n rows,
p contexts, d doses."""
EXAMPLE = """\
import titrant as tt
from titrant.data import DESIGNS

log = DESIGNS["dosing"].draw(1000, seed=0)  # or tt.LoggedData.from_frame(table, …)
estimate = tt.evaluate(log, tt.Constant(30.0))
print(estimate.value, estimate.interval(), estimate.diagnostics.verdict)
"""
DEEPER = (
    (
        "Simulated logs with known truth",
        "data",
        ("Design", "Synthetic", "Quadratic", "TenContexts", "Dosing", "NormalDose", "UniformDose"),
    ),
    ("Loaders", "paper.warfarin_table", ("load_warfarin", "simulated_cohort", "Cohort")),
    ("Searches", "optimize", ("LBFGS", "exact_line", "Box", "Ball", "Solution")),
    ("The convex-concave procedure", "paper.cccp", ("CCCP",)),
    (
        "The paper's theory as numbers",
        "inference",
        ("Expansion", "Generalization", "LinearBall", "RBFBall"),
    ),
)
"""Headings with a module and its names, for those who need more than the public ones."""
WIDTH = 88
"""Of a block on the page."""


def page() -> str:
    """Return the reference of all public names."""
    homes: dict[str, str] = dict(titrant._HOME)  # noqa: SLF001  (the one list of public names)
    parts = ["# Library", INTRODUCTION, f"```python\n{EXAMPLE}```"]
    for heading, rooms in SECTIONS:
        names = sorted((n for n, home in homes.items() if _in(home, rooms)), key=_order)
        if names:
            parts += [f"## {heading}", *(entry(n, getattr(titrant, n)) for n in names)]
    missing = [n for n, home in homes.items() if not any(_in(home, r) for _, r in SECTIONS)]
    if missing:
        raise ValueError(f"No heading of the reference takes {missing}; add one to SECTIONS.")
    for heading, room, names in DEEPER:
        home = import_module(f"titrant.{room}")
        parts += [f"## {heading}", f"In `titrant.{room}`."]
        public = [name for name in names if name not in homes]
        parts += [entry(name, getattr(home, name)) for name in public]
    return "\n\n".join(parts) + "\n"


def _in(home: str, rooms: tuple[str, ...]) -> bool:
    return any(home == room or home.startswith(room.rstrip(".") + ".") for room in rooms)


def _order(name: str) -> tuple[bool, str]:
    """Return a key that puts functions before classes, then goes by the alphabet."""
    return name[0].isupper(), name.lower()


def entry(name: str, thing: Any) -> str:  # noqa: ANN401
    """Return the entry of one name."""
    parts = [f"### {name} {{ #{name} }}", *signature(name, thing), described(thing)]
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        parts += list(members(thing))
    return "\n\n".join(part for part in parts if part)


def signature(name: str, thing: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the call of a function or class as a block, one parameter a line when it is long."""
    if inspect.isclass(thing) and issubclass(thing, (BaseException, enum.Enum)):
        return
    text = call(name, thing)
    if len(text) > WIDTH:
        inner, _, returned = text[len(name) + 1 :].rpartition(")")
        lines = "".join(f"\n    {part}," for part in re.split(r", (?![^\[(]*[\])])", inner))
        text = f"{name}({lines}\n){returned}"
    yield f"```text\n{text}\n```"


def call(name: str, thing: Any) -> str:  # noqa: ANN401
    """Return the signature of something that is called, on one line."""
    found = inspect.signature(thing)
    shown = [
        p.replace(default=_default(p.default), annotation=_Shown(p.annotation))
        for p in found.parameters.values()
        if p.name != "self"
    ]
    returned = inspect.Signature.empty if inspect.isclass(thing) else found.return_annotation
    kept = returned if returned is inspect.Signature.empty else _Shown(returned)
    return f"{name}{found.replace(parameters=shown, return_annotation=kept)}"


class _Shown:
    """A part of a signature that shows itself as it is written in code."""

    def __init__(self, text: object) -> None:
        self.text = text if isinstance(text, str) else getattr(text, "__name__", str(text))

    def __repr__(self) -> str:
        return self.text


def _default(default: object) -> object:
    """Return a default as it is written: a factory as …, a member of an enumeration by name."""
    if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return _Shown("…")
    if isinstance(default, enum.Enum):
        return _Shown(f"{type(default).__name__}.{default.name}")
    return default


def described(thing: Any) -> str:  # noqa: ANN401
    """Return the docstring of a thing as Markdown."""
    return markdown(inspect.getdoc(thing) or "")


def members(cls: type) -> Iterator[str]:
    """Yield the documented attributes and public methods of a class, as lists."""
    attributes = attribute_docs(cls)
    if attributes:
        yield "**Attributes**"
        yield "\n".join(f"- `{name}`: {_inline(text)}" for name, text in attributes.items())
    methods = list(_methods(cls))
    if methods:
        yield "**Methods**"
        yield "\n".join(
            f"- `{call(name, method)}`: {_inline(inspect.getdoc(method) or '')}"
            for name, method in methods
        )


def attribute_docs(cls: type) -> dict[str, str]:
    """Return the strings below the attributes of a class and the docstrings of its properties."""
    found: dict[str, str] = {}
    body = ast.parse(dedent(inspect.getsource(cls))).body[0]
    if isinstance(body, ast.ClassDef):
        found |= _documented(body)
    for name, value in vars(cls).items():
        if isinstance(value, property) and not name.startswith("_"):
            found[name] = inspect.getdoc(value) or ""
    return found


def _documented(body: ast.ClassDef) -> dict[str, str]:
    """Return the attributes of a class that a string stands under."""
    found = {}
    for field, below in pairwise(body.body):
        targets = field.targets if isinstance(field, ast.Assign) else [getattr(field, "target", 0)]
        told = below.value if isinstance(below, ast.Expr) else None
        if (
            isinstance(targets[0], ast.Name)
            and isinstance(told, ast.Constant)
            and isinstance(told.value, str)
        ):
            found[targets[0].id] = told.value
    return found


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(cls).items():
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if inspect.isfunction(function) and not name.startswith("_"):
            yield name, getattr(cls, name)


def _inline(text: str) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].replace("``", "`").split())


HEAD = re.compile(r"^(?P<title>[A-Z][a-z]+)\n-{3,}\n", re.MULTILINE)


def markdown(docstring: str) -> str:
    """Return a docstring as Markdown: sections as lists, examples and drawings as blocks."""
    text = docstring.replace("``", "`").replace("::\n", "\n")
    pieces = HEAD.split(text)
    parts = [_paragraphs(pieces[0])]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        parts += [f"**{title}**", _entries(body)]
    return "\n\n".join(part for part in parts if part)


def _paragraphs(text: str) -> str:
    return "\n\n".join(_paragraph(p) for p in re.split(r"\n{2,}", text.strip()))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("    ") or re.match(r"\|.*\|$", text.splitlines()[0] if text else ""):
        return text if text.startswith("|") else f"```text\n{dedent(text)}\n```"
    return text


def _entries(body: str) -> str:
    """Return ``name : what it is`` as a list; an example after the last one stays a block."""
    listed, _, rest = body.strip().partition("\n\n")
    entries = re.split(r"\n(?=\S)", listed)
    lines = []
    for text in entries:
        name, colon, what = " ".join(text.split()).partition(" : ")
        lines.append(f"- `{name}`: {what}" if colon else f"- {name}")
    return "\n".join(lines) + (f"\n\n{_paragraphs(rest)}" if rest else "")
