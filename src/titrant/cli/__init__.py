"""The command line: parse → call → print; nothing else.

`run` turns whatever happens into an exit code: 0 ok, 1 refused by the trust rules, 2 usage or
bad data, 3 a bug of titrant, 130 interrupted, 143 terminated. Where standard output is closed or
full, files are still written, and `main` leaves with 2. Nothing heavy is imported before a command
needs it, so that ``titrant --help`` answers at once.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    try:
        from titrant.cli.app import settled  # noqa: PLC0415
        from titrant.cli.terminal import behave  # noqa: PLC0415

        output = behave()
        code = settled(output, run(sys.argv[1:]))
    except KeyboardInterrupt:  # while modules were imported or another error was explained
        code = 130
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Return the exit code of ``titrant`` called with `arguments`."""
    from titrant.cli.app import explain, titrant  # noqa: PLC0415
    from titrant.cli.terminal import Terminated  # noqa: PLC0415

    try:
        code = titrant.main([*arguments], prog_name="titrant", standalone_mode=False)
    except (Exception, KeyboardInterrupt, Terminated) as error:  # noqa: BLE001  (each gets its sentence)
        return explain(error, debug="--debug" in arguments)
    return code if isinstance(code, int) else 0
