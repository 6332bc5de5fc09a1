"""Whether to trust an estimate: the rules, what they are judged by, and doubts about columns."""
