"""For whom, elsewhere, and beyond the mean: questions about a policy whose answers are known."""
