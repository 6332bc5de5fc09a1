"""A module for each kind of command; it is imported when one of its commands is called."""
