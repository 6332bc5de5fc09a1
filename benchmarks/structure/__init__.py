"""Logs whose rows or doses have a structure of their own, with and without what is said of it."""
