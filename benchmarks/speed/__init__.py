"""How fast titrant is, as ratios: every goal against what it competes with, in one process."""
