"""Questions about a log besides the value of a policy: for whom, elsewhere, and how badly."""
