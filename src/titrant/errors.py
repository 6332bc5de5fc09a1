"""Everything titrant raises on purpose.

::

    TitrantError
    ├── InvalidArgument    a parameter is outside what its formula allows  (also a ValueError)
    ├── DataError          the table cannot be used as it is               (also a ValueError)
    ├── PolicyFileError    a saved policy cannot be read                   (also a ValueError)
    ├── ExecutionError     an engine did not return the result of a partition
    └── UntrustedEstimate  the data cannot answer the question
        └── NoOverlap      no logged dose lies near the doses asked about

What is no error but should be known is a warning: `TableWarning`.

Each message is a sentence with the numbers that matter, followed by what to change.
"""


class TitrantError(Exception):
    """Base of all errors that titrant raises on purpose."""


class InvalidArgument(TitrantError, ValueError):
    """A parameter is outside what its formula allows."""


class DataError(TitrantError, ValueError):
    """The table cannot be used as it is."""


class PolicyFileError(TitrantError, ValueError):
    """A saved policy cannot be read."""


class ExecutionError(TitrantError):
    """An engine did not return the result of a partition: it failed, died or took too long."""


class UntrustedEstimate(TitrantError):
    """The data cannot answer the question; the message names the numbers and the remedy."""


class NoOverlap(UntrustedEstimate):
    """No logged dose lies near the doses asked about."""


class TableWarning(UserWarning):
    """What was done to a table on its way to a log without being asked for."""
