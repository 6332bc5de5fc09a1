"""Which rules the learner finds: excess risks on problems whose truth is known."""
