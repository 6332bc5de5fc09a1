"""Tables in files, CSV, Excel, Parquet and Arrow: which files a path means, and how they are read.

`paths` finds the files, `written` knows how people write numbers and texts, `reading` makes tables
of them.
"""

from titrant.data.files.paths import (
    FilesWarning,
    check_no_copies,
    format_of,
    no_match,
    paths_of,
    say_other_columns,
)
from titrant.data.files.reading import FORMATS, STDIN, read_log, read_table, stream_of
from titrant.data.files.written import AS_IT_SEEMS, Written

__all__ = [
    "AS_IT_SEEMS",
    "FORMATS",
    "STDIN",
    "FilesWarning",
    "Written",
    "check_no_copies",
    "format_of",
    "no_match",
    "paths_of",
    "read_log",
    "read_table",
    "say_other_columns",
    "stream_of",
]
