"""``python -m titrant``, for machines on which scripts are not on the path."""

from titrant.cli import main

main()
