"""The parts of learning a policy: classes, outcome curves, candidates, scores, honest values."""
