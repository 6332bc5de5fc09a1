"""Where the work runs: statistics of blocks of rows, added in their order."""

from titrant.execute.engine import BATCH, BLOCK, Engine, OverBatches, add_up, as_engine

__all__ = ["BATCH", "BLOCK", "Engine", "OverBatches", "add_up", "as_engine"]
