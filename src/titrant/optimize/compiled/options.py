"""How loops are compiled."""

from __future__ import annotations

FAST = {"reassoc", "nsz", "contract", "arcp"}
"""Sums may be reordered and fused, but a nan stays a nan."""
