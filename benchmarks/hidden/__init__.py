"""Logs with a cause of the dose that is not recorded, of a strength that is known."""
