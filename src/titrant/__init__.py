"""Evaluate policies for continuous treatments (doses, prices, bids) from logged data.

Each public name is imported from its room when it is first used, so that
``import titrant`` costs next to nothing. The stub beside this file is the list of them.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.2.0"


def _homes() -> dict[str, str]:
    """Return the room of each public name, from the lines of the stub."""
    stub = __loader__.get_data(f"{__file__}i").decode()  # from a folder or a zip file
    lines = [line.split() for line in stub.splitlines() if line.startswith("from titrant.")]
    return dict(sorted((words[-1], words[1].removeprefix("titrant.")) for words in lines))


_HOME = _homes()
__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    """Import a public name from its room on first use and keep it (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'titrant' has no attribute {name!r}")
    value = getattr(import_module(f"titrant.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
