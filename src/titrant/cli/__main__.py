"""``python -m titrant.cli``, for machines on which scripts are not on the path."""

from titrant.cli import main

main()
