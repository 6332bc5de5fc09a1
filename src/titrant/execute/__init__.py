"""Where the work runs: statistics of blocks of rows, added in their order."""

from titrant.execute.engine import Engine, as_engine
from titrant.execute.reduce import BATCH, BLOCK, OverBatches, add_up

__all__ = ["BATCH", "BLOCK", "Engine", "OverBatches", "add_up", "as_engine"]
