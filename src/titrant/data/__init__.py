"""Logged data: what was known, what was done, what came of it.

`frames` (tables of other libraries), `files` (CSV, Parquet, Arrow) and `simulate` (designs with a
known truth) are modules of their own, loaded when they are used.
"""

from titrant.data.columns import Columns
from titrant.data.logged import LoggedData

__all__ = ["Columns", "LoggedData"]
