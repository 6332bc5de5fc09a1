"""How often intervals cover, and how close bandwidths come to the best one, on known designs."""
