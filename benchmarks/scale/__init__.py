"""Logs larger than memory: time and memory beside those of the same rows in memory."""
