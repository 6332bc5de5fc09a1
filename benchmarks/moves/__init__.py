"""Policies that change the logged dose, by the default call, on designs whose truth is known."""
