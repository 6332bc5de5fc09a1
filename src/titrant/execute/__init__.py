"""Where the work runs: statistics of blocks of rows, added in their order."""

from titrant.execute.engine import Engine
from titrant.execute.reduce import BLOCK, add_up

__all__ = ["BLOCK", "Engine", "add_up"]
